"""What files hold is kept once for all worktrees: the same answers as from a cold index, nothing taken on trust, nothing lost."""

import contextlib
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from code_intel_server.index.code_index import CodeIndex
from code_intel_server.index.storage import contents, postings
from code_intel_server.index.storage.contents import CONTENTS, ContentStore
from code_intel_server.index.storage.store import Store
from code_intel_server.tools.services import ProjectServices
from tests.index.builders import SAMPLE, HashEncoder, lister, write_files
from tests.index.holding import OFF

VIEW = ".code-intel/cache/index.sqlite3"
FILES = SAMPLE | {f"src/m{n}.py": f"def function_{n}():\n    return {n}\n" for n in range(20)}
CHANGED = {
    "src/store/database.py": "def open_file(path):\n    # read the settings\n    return path\n",
    "src/new.py": "NEW = 1\n",
}
QUESTIONS = ("login throttle", "open the database", "read the settings", "matchRoute", "how is the program run", "NEW")


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """The folder that worktrees have in common."""
    return tmp_path / "git" / "code-intel"


@pytest.fixture
def first(tmp_path: Path, shared: Path) -> Path:
    root = tmp_path / "first"
    write_files(root, FILES)
    with opened(root, shared) as index:
        index.sync()
    return root


@pytest.fixture
def second(first: Path, tmp_path: Path) -> Path:
    """Another worktree, in which a file was changed, one added and one removed."""
    root = tmp_path / "second"
    shutil.copytree(first, root, ignore=shutil.ignore_patterns(".code-intel"))
    write_files(root, CHANGED)
    (root / "src/web/router.js").unlink()
    return root


@contextlib.contextmanager
def opened(root: Path, shared: Path | None, encoder: HashEncoder | None = None) -> Iterator[CodeIndex]:
    model = encoder or HashEncoder()
    index = CodeIndex(root, OFF, encoder=lambda: model, lister=lister(root), shared=lambda: shared)
    try:
        yield index
    finally:
        index.close()


def store_of(index: CodeIndex) -> Store:
    store = index._open().store
    assert store is not None
    return store


def answers(index: CodeIndex) -> list[list[tuple[str, str, int, float, str]]]:
    return [
        [(hit.path, hit.text, hit.start_line, hit.score, hit.chunk_id) for hit in index.search(one).hits]
        for one in QUESTIONS
    ]


def counted(shared: Path, table: str) -> int:
    with contextlib.closing(sqlite3.connect(shared / CONTENTS)) as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608


def test_another_worktree_answers_as_from_a_cold_index_and_cuts_only_what_differs(
    second: Path, shared: Path, tmp_path: Path
) -> None:
    encoder = HashEncoder()
    with opened(second, shared, encoder) as index:
        report = index.sync()
        assert (report.added, report.chunks, encoder.encoded) == (len(FILES), 2, 2)
        assert index.search("login").complete
        begun = answers(index)
    shutil.rmtree(second / ".code-intel")
    with opened(second, tmp_path / "cold") as cold:
        cold.sync()
        assert answers(cold) == begun
    assert not begun[3] or all(hit[0] != "src/web/router.js" for hit in begun[3])


def test_an_index_of_a_few_edits_answers_as_one_that_was_built_at_once(
    first: Path, shared: Path, tmp_path: Path
) -> None:
    with opened(first, shared) as index:
        for number in range(12):  # so many that batches of words are put together
            write_files(first, {f"src/m{number}.py": f"def other_{number}():\n    return 'login' * {number}\n"})
            index.sync()
        (first / "src/m19.py").rename(first / "src/renamed.py")
        index.sync()
        edited = answers(index)
    shutil.rmtree(first / ".code-intel")
    with opened(first, tmp_path / "cold") as cold:
        cold.sync()
        assert answers(cold) == edited


def test_of_equally_good_answers_the_order_is_the_same_in_whatever_order_files_came(
    tmp_path: Path, shared: Path
) -> None:
    root, named = tmp_path / "root", [f"src/{letter}.py" for letter in "hgfedcba"]
    for name in named:  # one after the other, the last of the listing first
        write_files(root, {name: "def login(user):\n    return user.throttle\n"})
        with opened(root, shared) as index:
            index.sync()
            begun = answers(index)
    shutil.rmtree(root / ".code-intel")
    with opened(root, tmp_path / "cold") as cold:
        cold.sync()
        assert answers(cold) == begun
    assert len(begun[0]) == len(named)


def test_text_comes_from_the_checkout_and_what_has_changed_is_said(first: Path, second: Path, shared: Path) -> None:
    for root in (first, second):
        with opened(root, shared) as index:
            index.sync()
            hits = [hit for one in QUESTIONS for hit in index.search(one).hits]
            assert hits
            for hit in hits:
                lines = (root / hit.path).read_text().split("\n")
                assert hit.text == "\n".join(lines[hit.start_line - 1 : hit.end_line])
    with opened(first, shared) as owner, opened(first, shared) as reader:
        owner.sync()
        (first / "src/store/database.py").write_text("def open_connection():\n    pass\n")
        answer = reader.search("open_connection")
        assert (answer.hits[0].text, answer.hits[0].fresh) == ("def open_connection():\n    pass", False)
        assert any("src/store/database.py" in note for note in answer.notes)


def test_a_line_in_several_chunks_is_read_piece_by_piece(tmp_path: Path, shared: Path) -> None:
    words = " ".join(f"word{number}" for number in range(900))
    write_files(tmp_path / "long", {"a.txt": f"{words}\n"})
    with opened(tmp_path / "long", shared) as index:
        index.sync()
        hits = index.search("word3 word300 word700").hits
        assert len(hits) > 2
        assert all(hit.text in words for hit in hits) and len({hit.text for hit in hits}) == len(hits)


@pytest.mark.parametrize("part", [contents.PART, 1])
def test_a_worktree_that_goes_takes_nothing_of_another(
    first: Path, second: Path, shared: Path, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    monkeypatch.setattr(contents, "PART", part)
    with opened(second, shared) as index:
        index.sync()
        before = answers(index)
        shutil.rmtree(first)
        index.sync()  # and cleans up
        assert answers(index) == before
    assert counted(shared, "checkouts") == 1
    assert counted(shared, "contents") == len(FILES) == counted(shared, "chunks") - 1  # README has two
    assert counted(shared, "paths") == len(FILES)
    with contextlib.closing(sqlite3.connect(shared / CONTENTS)) as connection:
        held = {row[0] for row in connection.execute("SELECT seq FROM chunks")}
        assert {row[0] for row in connection.execute("SELECT seq FROM symbols")} <= held
        paths = {row[0] for row in connection.execute("SELECT id FROM paths")}
        for kind, alive in ((postings.CHUNKS, held), (postings.PATHS, paths)):
            terms = [row[0] for row in connection.execute(f"SELECT DISTINCT term FROM {kind}_postings")]  # noqa: S608
            found = postings.find_postings(connection, kind, terms)
            assert {unit for one in found.values() for unit in one["unit"].tolist()} == alive
        wanted = "SELECT passage FROM vectors EXCEPT SELECT passage FROM chunks"
        assert connection.execute(wanted).fetchall() == []


@pytest.mark.timeout(300)
def test_two_hundred_worktrees_cost_what_they_differ_by_and_leave_with_what_was_theirs(
    first: Path, shared: Path, tmp_path: Path
) -> None:
    encoder, others = HashEncoder(), [tmp_path / f"other{number}" for number in range(200)]
    for number, root in enumerate(others):
        write_files(root, FILES | {"src/own.py": f"def only_in_{number}():\n    return {number}\n"})
        with opened(root, shared, encoder) as index:
            assert (index.sync().chunks, encoder.encoded) == (1, number + 1)
    assert counted(shared, "checkouts") == 201
    assert counted(shared, "contents") == len(FILES) + 200
    for root in others[1:]:
        shutil.rmtree(root)
    with opened(others[0], shared) as index:
        index.sync()  # and cleans up
        found = index.search("only_in_0").hits[0]
        assert (found.path, found.text) == ("src/own.py", "def only_in_0():\n    return 0")
        assert index.search("only_in_7").hits[0].text == found.text, "what is gone is found by nobody"
        begun = answers(index)
    assert (counted(shared, "checkouts"), counted(shared, "contents")) == (2, len(FILES) + 1)
    shutil.rmtree(others[0] / ".code-intel")
    with opened(others[0], tmp_path / "cold") as cold:
        cold.sync()
        assert answers(cold) == begun


def test_nobody_else_can_read_what_files_hold(first: Path, shared: Path) -> None:
    assert [stat.S_IMODE(one.stat().st_mode) for one in (shared, shared / CONTENTS)] == [0o700, 0o600]


def test_nothing_is_removed_while_another_worktree_is_being_indexed(first: Path, second: Path, shared: Path) -> None:
    with opened(second, shared) as index, opened(first, shared) as other:
        index.sync()
        store, leaving = store_of(other), store_of(index)
        with store.contents.in_use():
            shutil.rmtree(second)
            leaving.contents.clean_up_if_due()
            assert counted(shared, "checkouts") == 2
        store.contents.clean_up_if_due()
        assert counted(shared, "checkouts") == 1


def test_a_worktree_that_was_moved_away_and_came_back_is_indexed_again(
    first: Path, second: Path, shared: Path, tmp_path: Path
) -> None:
    with opened(second, shared) as index:
        index.sync()
        before = answers(index)
    second.rename(tmp_path / "away")
    with opened(first, shared) as other:
        other.sync()  # and cleans up what was only the second's
    assert counted(shared, "checkouts") == 1
    (tmp_path / "away").rename(second)
    with opened(second, shared) as index:
        report = index.sync()
        assert report.added > 0
        assert answers(index) == before


def test_an_index_opens_while_the_common_contents_are_written_for_long(first: Path, shared: Path) -> None:
    with contextlib.closing(sqlite3.connect(shared / CONTENTS, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        with opened(first, shared) as index:
            assert index.search("login throttle").hits


def test_a_worktree_that_is_removed_while_it_is_used_costs_the_others_nothing(
    first: Path, second: Path, shared: Path
) -> None:
    with opened(first, shared) as index, opened(second, shared) as leaving:
        index.sync()
        leaving.sync()
        shutil.rmtree(second)
        leaving.search("login throttle")
        index.sync()
        answer = index.search("login throttle")
        assert (answer.hits[0].path, answer.complete) == ("src/auth/throttle.py", True)


def test_a_view_that_cannot_be_read_keeps_all_that_it_may_refer_to(
    first: Path, second: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contents, "CLEAN_UP_SECONDS", 0.0)
    with opened(second, shared) as index:
        index.sync()
    before = counted(shared, "contents")
    (second / VIEW).write_bytes(os.urandom(5000))
    with opened(first, shared) as index:
        (first / "src/m1.py").unlink()
        index.sync()
    assert counted(shared, "contents") == before


@pytest.mark.parametrize("damage", ["garbage", "another version", "made elsewhere", "gone"])
def test_contents_that_are_not_to_be_believed_are_built_anew_for_everybody(
    first: Path, second: Path, shared: Path, damage: str
) -> None:
    with opened(second, shared) as index:
        index.sync()
        before = answers(index)
    file = shared / CONTENTS
    if damage == "garbage":
        file.write_bytes(os.urandom(50_000))
    elif damage == "gone":
        file.unlink()
    else:
        key = "schema" if damage == "another version" else "folder"
        with contextlib.closing(sqlite3.connect(file)) as connection, connection:
            connection.execute("UPDATE meta SET value = '0' WHERE key = ?", (key,))
    with opened(first, shared) as index:
        assert index.sync().chunks == len(FILES) + 1
        said = [note for note in index.search("login").notes if "built anew" in note]
        assert len(said) == (damage != "gone")
    with opened(second, shared) as index:
        assert index.sync().chunks == 2
        assert answers(index) == before
        assert index.search("login").notes == ()


def test_a_link_in_place_of_the_folder_is_not_followed(first: Path, second: Path, shared: Path, tmp_path: Path) -> None:
    shared.rename(tmp_path / "theirs")
    shared.symlink_to(tmp_path / "theirs")
    before = (tmp_path / "theirs" / CONTENTS).read_bytes()
    with opened(second, shared) as index:
        assert index.sync().added == len(FILES)
    assert (tmp_path / "theirs" / CONTENTS).read_bytes() == before
    assert (second / ".code-intel/cache" / CONTENTS).is_file()


def test_an_index_from_before_there_were_common_contents_is_built_anew_and_said_so(first: Path, shared: Path) -> None:
    with contextlib.closing(sqlite3.connect(first / VIEW)) as connection, connection:
        connection.execute("UPDATE meta SET value = '1' WHERE key = 'schema'")
    with opened(first, shared) as index:
        assert index.sync().added == len(FILES)
        assert index.search("login").notes == ("The index was built anew, because it was written by another version.",)
    assert not list((first / ".code-intel/cache").glob("*.damaged"))


def test_who_has_contents_open_that_were_replaced_takes_up_the_new_ones(
    first: Path, second: Path, shared: Path
) -> None:
    with opened(first, shared) as one, opened(second, shared) as other:
        one.sync()
        other.sync()
        before = answers(other)
        with contextlib.closing(ContentStore(shared / CONTENTS, writable=True)) as third:
            third.replace("it is damaged")
        one.sync()
        other.sync()
        assert answers(other) == before
        assert one.search("login throttle").complete


def test_rebuilding_one_worktree_leaves_the_answers_of_the_others(first: Path, second: Path, shared: Path) -> None:
    with opened(second, shared) as other, opened(first, shared) as index:
        other.sync()
        before = answers(other)
        assert index.sync(rebuild=True).chunks == len(FILES) + 1
        assert answers(other) == before
        assert other.search("login").complete


def test_another_model_keeps_the_words_of_the_other_worktree_and_has_vectors_of_its_own(
    first: Path, second: Path, shared: Path
) -> None:
    encoder = HashEncoder(dim=24, name="another")
    with opened(second, shared, encoder) as index:
        assert index.sync().chunks == 2
        assert index.search("login throttle").engine == "sqlite-vectors+bm25"
    assert encoder.encoded == len(FILES) + 1
    with opened(first, shared) as index:
        index.sync()
        assert index.search("login throttle").engine == "sqlite-vectors+bm25"


WRITER = """
import sys
from pathlib import Path
from code_intel_server.index.code_index import CodeIndex
from tests.index.builders import HashEncoder, lister
from tests.index.holding import OFF

root, shared = map(Path, sys.argv[1:])
index = CodeIndex(root, OFF, encoder=HashEncoder, lister=lister(root), shared=lambda: shared)
print("open", flush=True)
report = index.sync()
print(report.cancelled, report.files, *report.notes, flush=True)
index.close()
"""


def start(root: Path, shared: Path) -> "subprocess.Popen[str]":
    top = Path(__file__).parents[2]
    environment = os.environ | {"PYTHONPATH": f"{top / 'src'}:{top}"}
    command = [sys.executable, "-c", WRITER, str(root), str(shared)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def many(worktree: int, count: int = 150) -> dict[str, str]:
    """Files of a worktree: most of them are in all, some are its own."""
    own = {f"own/w{worktree}_{n}.py": f"def own_{worktree}_{n}():\n    return {n}\n" for n in range(20)}
    return own | {
        f"src/m{n}.py": f"def function_{n}():\n" + "".join(f"    v{n}_{i} = {i}\n" for i in range(60))
        for n in range(count)
    }


def test_servers_in_several_worktrees_write_at_once_and_lose_nothing(tmp_path: Path, shared: Path) -> None:
    roots = [tmp_path / str(number) for number in range(3)]
    for number, root in enumerate(roots):
        write_files(root, many(number))
    writers = [start(root, shared) for root in roots]
    said = [writer.communicate(timeout=120)[0] for writer in writers]
    assert said == ["open\nFalse 170\n"] * 3
    assert counted(shared, "contents") == 150 + 3 * 20
    for number, root in enumerate(roots):
        with opened(root, shared) as index:
            assert index.sync().unchanged == 170
            begun = [[(hit.path, hit.score) for hit in index.search(one).hits] for one in ("v7_5", f"own_{number}_3")]
            assert begun[1][0][0] == f"own/w{number}_3.py"
        shutil.rmtree(root / ".code-intel")
        with opened(root, tmp_path / f"cold{number}") as cold:
            cold.sync()
            assert begun == [
                [(hit.path, hit.score) for hit in cold.search(one).hits] for one in ("v7_5", f"own_{number}_3")
            ]


@pytest.mark.timeout(300)
def test_kills_while_worktrees_share_lose_nothing(tmp_path: Path, shared: Path) -> None:
    roots = [tmp_path / str(number) for number in range(2)]
    for number, root in enumerate(roots):
        write_files(root, many(number))
    for after in (0.0, 0.02, 0.05, 0.1, 0.2, 0.4):
        writers = [start(root, shared) for root in roots]
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "open\n"
        with contextlib.suppress(subprocess.TimeoutExpired):
            writers[0].wait(after)
        for writer in writers:
            writer.send_signal(signal.SIGKILL)
            writer.communicate()
    for number, root in enumerate(roots):
        with opened(root, shared) as index:
            report = index.sync()
            assert (report.files, report.notes) == (170, ())
            assert store_of(index).without_vectors(10) == []
            found = index.search(f"own_{number}_3").hits[0]
            assert (found.path, found.fresh) == (f"own/w{number}_3.py", True)
    with contextlib.closing(sqlite3.connect(shared / CONTENTS)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_contents_of_a_version_that_nobody_uses_any_more_are_removed(
    first: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contents, "CLEAN_UP_SECONDS", 0.0)
    for name, age in (("contents-0.sqlite3", 40), ("contents-99.sqlite3", 1)):
        (shared / name).write_bytes(b"x")
        then = time.time() - age * 86_400
        os.utime(shared / name, (then, then))
    with opened(first, shared) as index:
        index.sync()
    assert {path.name for path in shared.glob("contents-*.sqlite3")} == {CONTENTS, "contents-99.sqlite3"}


def test_git_worktrees_have_one_store_in_their_common_folder(tmp_path: Path) -> None:
    root = tmp_path / "repository"
    write_files(root / "part", SAMPLE)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-C", str(root)]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"], ["worktree", "add", "-q", "../other"]):
        subprocess.run([*git, *arguments], check=True)
    for place, cut in ((root, True), (tmp_path / "other", False)):
        (place / "part" / ".code-intel").mkdir()
        services = ProjectServices(place / "part")
        assert bool(services.index.sync().chunks) == cut
        assert services.index.search("login throttle").hits[0].path == "src/auth/throttle.py"
        services.close()
        assert not list((place / "part").rglob(CONTENTS))
    assert (root / ".git/code-intel" / CONTENTS).is_file()


def test_without_a_repository_the_contents_lie_in_the_checkout(tmp_path: Path) -> None:
    write_files(tmp_path, SAMPLE)
    with opened(tmp_path, None) as index:
        index.sync()
    assert (tmp_path / ".code-intel/cache" / CONTENTS).is_file()
