"""A second worktree begins with the index of the first: the same answers as from a cold one, and nothing taken on trust."""

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from code_intel_server.index.code_index import CodeIndex
from code_intel_server.tools.services import ProjectServices
from tests.index.builders import SAMPLE, HashEncoder, lister, make_index, write_files
from tests.index.holding import OFF

INDEX = ".code-intel/cache/index.sqlite3"
CHANGED = {
    "src/store/database.py": "def open_file(path):\n    # read the settings\n    return path\n",
    "src/new.py": "NEW = 1\n",
}
QUESTIONS = ("login throttle", "open the database", "read the settings", "matchRoute", "how is the program run", "NEW")


@pytest.fixture
def first(tmp_path: Path) -> Path:
    root = tmp_path / "first"
    write_files(root, SAMPLE | {f"src/m{n}.py": f"def function_{n}():\n    return {n}\n" for n in range(20)})
    index = make_index(root)
    index.sync()
    index.close()
    return root


@pytest.fixture
def second(first: Path, tmp_path: Path) -> Path:
    """Another worktree, in which a file was changed, one added and one removed."""
    root = tmp_path / "second"
    shutil.copytree(first, root, ignore=shutil.ignore_patterns(".code-intel"))
    write_files(root, CHANGED)
    (root / "src/web/router.js").unlink()
    return root


def beside(root: Path, *others: Path, encoder: HashEncoder | None = None) -> CodeIndex:
    """An index that may begin with those of others."""
    model = encoder or HashEncoder()
    return CodeIndex(
        root, OFF, encoder=lambda: model, lister=lister(root), siblings=lambda: [one / ".code-intel" for one in others]
    )


@contextlib.contextmanager
def closing_of(index: CodeIndex) -> Iterator[CodeIndex]:
    try:
        yield index
    finally:
        index.close()


def answers(index: CodeIndex) -> list[list[tuple[str, str, int, float]]]:
    return [[(hit.path, hit.text, hit.start_line, hit.score) for hit in index.search(one).hits] for one in QUESTIONS]


def test_another_worktree_answers_as_from_a_cold_index_and_embeds_only_what_differs(first: Path, second: Path) -> None:
    encoder = HashEncoder()
    with closing_of(beside(second, first, encoder=encoder)) as index:
        report = index.sync()
        assert (report.changed, report.added, report.removed, encoder.encoded) == (1, 1, 1, 2)
        begun = answers(index)
        assert index.search("login").complete
    shutil.rmtree(second / ".code-intel")
    with closing_of(make_index(second)) as cold:
        cold.sync()
        assert answers(cold) == begun


def test_a_file_that_differs_is_not_answered_from_the_other_worktree_before_the_first_sync(
    first: Path, second: Path
) -> None:
    with closing_of(beside(second, first)) as index:
        answer = index.search("open connection to the sqlite database", wait=0)
        assert all(hit.text in (second / hit.path).read_text() for hit in answer.hits)


def test_the_worktrees_have_nothing_more_to_do_with_each_other(first: Path, second: Path) -> None:
    before = (first / INDEX).read_bytes()
    with closing_of(beside(second, first)) as index:
        index.sync()
        shutil.rmtree(first / ".code-intel")
        assert index.search("read the settings").hits[0].path == "src/store/database.py"
    assert b"open_connection" in before


def test_the_first_worktree_may_be_open_and_written_meanwhile(first: Path, second: Path) -> None:
    with closing_of(make_index(first)) as owner:
        write_files(first, {"src/late.py": "def arrives_late():\n    return 1\n"})
        owner.sync()  # stands in the log beside the file
        shutil.copy(first / "src/late.py", second / "src/late.py")
        encoder = HashEncoder()
        with closing_of(beside(second, first, encoder=encoder)) as index:
            assert index.sync().unchanged == 24
        assert encoder.encoded == 2


@pytest.mark.parametrize("damage", ["garbage", "another version", "made elsewhere", "first sync", "a link", "gone"])
def test_an_index_that_is_not_to_be_believed_is_not_taken_over(first: Path, second: Path, damage: str) -> None:
    file = first / INDEX
    if damage == "garbage":
        file.write_bytes(os.urandom(5000))
    elif damage in {"a link", "gone"}:
        file.rename(first / "index.sqlite3")
        if damage == "a link":
            file.symlink_to(first / "index.sqlite3")
    else:
        change = {
            "another version": "UPDATE meta SET value = '0' WHERE key = 'schema'",
            "made elsewhere": "UPDATE meta SET value = '0' WHERE key = 'folder'",
            "first sync": "DELETE FROM meta WHERE key = 'synced_at'",
        }[damage]
        with contextlib.closing(sqlite3.connect(file)) as connection, connection:
            connection.execute(change)
    with closing_of(beside(second, first)) as index:
        assert index.sync().added == 25
        assert index.search("login throttle").hits[0].path == "src/auth/throttle.py"
        assert not index.search("login throttle").notes
    assert not list((second / ".code-intel/cache").glob("*.part*"))


def test_a_kill_while_the_copy_is_made_loses_nothing(first: Path, second: Path) -> None:
    """What it leaves is a part without the name of an index, which the next one replaces; so is a log without its file."""
    cache = second / ".code-intel/cache"
    cache.mkdir(parents=True)
    (cache / "index.sqlite3.part").write_bytes((first / INDEX).read_bytes()[:5000])
    for name in ("index.sqlite3.part-wal", "index.sqlite3-wal", "index.sqlite3.part-journal"):
        (cache / name).write_bytes(os.urandom(5000))
    killed = (
        "import os, sys, sqlite3, signal\nfrom pathlib import Path\nfrom code_intel_server.index import sibling\n"
        "Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "sibling.begin_with_sibling(Path(sys.argv[1]), [Path(sys.argv[2])])"
    )
    done = subprocess.run([sys.executable, "-c", killed, str(cache / "index.sqlite3"), str(first / INDEX)], check=False)
    assert done.returncode < 0
    assert not (cache / "index.sqlite3").exists()
    with closing_of(beside(second, first)) as index:
        report = index.sync()
        assert (report.changed, report.added, report.removed) == (1, 1, 1)
        assert not index.search("login throttle").notes
    assert not list(cache.glob("*.part*"))


def test_another_model_keeps_the_words_of_the_other_worktree_and_makes_vectors_of_its_own(
    first: Path, second: Path
) -> None:
    with closing_of(beside(second, first, encoder=HashEncoder(dim=24, name="another"))) as index:
        assert index.sync().unchanged == 23
        assert index.search("login throttle").hits[0].path == "src/auth/throttle.py"


def test_a_git_worktree_begins_with_the_index_of_its_repository(tmp_path: Path) -> None:
    root = tmp_path / "repository"
    write_files(root / "part", SAMPLE)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-C", str(root)]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"], ["worktree", "add", "-q", "../other"]):
        subprocess.run([*git, *arguments], check=True)
    for place, unchanged in ((root, 0), (tmp_path / "other", len(SAMPLE))):
        (place / "part" / ".code-intel").mkdir()
        services = ProjectServices(place / "part")
        assert services.index.sync().unchanged == unchanged
        services.close()
