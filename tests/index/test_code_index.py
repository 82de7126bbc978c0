"""What the tools see of the index: answers, their worth, Map, and every kind of trouble."""

import errno
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal
from unittest.mock import Mock

import numpy as np
import pytest
from numpy.typing import NDArray

from code_intel_server.errors import Rejected, Unavailable
from code_intel_server.index.code_index import CodeIndex
from code_intel_server.index.storage.ownership import OwnerLock
from code_intel_server.index.values import ChromaMode, ChromaSettings, Collection, IndexSettings
from code_intel_server.index.vectors.embedding import Encoder, load_encoder
from tests.index.builders import SAMPLE, HashEncoder, indexed, lister, make_index, owns, write_files

OFF = IndexSettings(chroma=ChromaSettings(mode=ChromaMode.OFF))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write_files(tmp_path, SAMPLE)
    return tmp_path


@pytest.fixture
def index(project: Path) -> Iterator[CodeIndex]:
    made = make_index(project)
    made.sync()
    yield made
    made.close()


def paths(index: CodeIndex, query: str) -> list[str]:
    return [hit.path for hit in index.search(query).hits]


# Searching


def test_the_first_question_is_answered_before_any_sync_was_asked_for(project: Path) -> None:
    index = make_index(project)
    answer = index.search("how many failed attempts may a login have")
    assert answer.hits[0].path == "src/auth/throttle.py"
    assert answer.indexed_files == len(SAMPLE)
    index.close()


class SlowEncoder(HashEncoder):
    """Takes its time over passages, as on a machine that is busy."""

    def encode(self, texts: Sequence[str], kind: Literal["query", "passage"]) -> NDArray[np.float32]:
        if kind == "passage":
            threading.Event().wait(0.3)
        return super().encode(texts, kind)


def test_the_first_question_waits_for_something_to_answer_from(project: Path) -> None:
    index = make_index(project, OFF, SlowEncoder())
    assert index.search("login throttle", wait=0.01).hits[0].path == "src/auth/throttle.py"
    index.close()


def test_a_question_that_may_not_wait_is_answered_from_nothing(project: Path) -> None:
    index = make_index(project, OFF, SlowEncoder())
    answer = index.search("login throttle", wait=0)
    assert (answer.hits, answer.complete) == ((), False)
    index.close()


def test_a_result_says_where_what_and_why(index: CodeIndex) -> None:
    hit = index.search("LoginThrottle").hits[0]
    assert (hit.path, hit.symbol, hit.kind, hit.language) == (
        "src/auth/throttle.py",
        "LoginThrottle",
        "class",
        "python",
    )
    assert "defines LoginThrottle" in hit.why
    assert hit.text.splitlines()[3] == "class LoginThrottle:"
    assert (hit.start_line, hit.end_line, hit.fresh) == (1, 11, True)


def test_the_definition_comes_before_its_uses_and_tests(index: CodeIndex) -> None:
    assert paths(index, "LoginThrottle")[:2] == ["src/auth/throttle.py", "tests/test_throttle.py"]


def test_a_question_for_tests_brings_tests_first(index: CodeIndex) -> None:
    assert paths(index, "tests of the throttle")[0] == "tests/test_throttle.py"


def test_a_path_finds_its_file(index: CodeIndex) -> None:
    assert paths(index, "web/router.js")[0] == "src/web/router.js"


def test_folder_and_language_narrow_the_search(index: CodeIndex) -> None:
    inside = index.search("throttle login", path="src/")
    assert {hit.path.split("/")[0] for hit in inside.hits} == {"src"}
    only = index.search("throttle login route", language="javascript")
    assert {hit.path for hit in only.hits} == {"src/web/router.js"}
    assert index.search("throttle", path="no/such/folder").hits == ()


def test_a_language_is_found_in_any_case_and_one_that_nothing_is_in_is_told(index: CodeIndex) -> None:
    assert index.search("throttle login route", language="JavaScript").hits
    answer = index.search("throttle", language="klingon")
    assert (answer.hits, answer.complete) == ((), False)
    assert "klingon" in answer.notes[-1] and "javascript, markdown, python" in answer.notes[-1]
    assert index.search("throttle", language="javascript", path="tests").complete


def test_an_empty_question_is_refused(index: CodeIndex) -> None:
    with pytest.raises(Rejected, match="empty_query"):
        index.search("  \n")


@pytest.mark.parametrize(
    "query", ["'; DROP TABLE chunks; --", '"', "NEAR(", "a AND", "*", "路由", "\0", "x" * 10_000, "\ud800"]
)
def test_no_question_is_too_odd(index: CodeIndex, query: str) -> None:
    index.search(query)
    assert indexed(index, "chunks") > 0


def test_a_file_changed_since_the_sync_is_answered_as_it_is_now(index: CodeIndex, project: Path) -> None:
    changed = "\n\n\n" + SAMPLE["src/auth/throttle.py"]
    write_files(project, {"src/auth/throttle.py": changed})
    hit = index.search("LoginThrottle").hits[0]
    lines = changed.split("\n")
    assert hit.fresh
    assert "\n".join(lines[hit.start_line - 1 : hit.end_line]) == hit.text


def test_a_file_deleted_since_the_sync_is_not_answered(index: CodeIndex, project: Path) -> None:
    (project / "src/auth/throttle.py").unlink()
    assert "src/auth/throttle.py" not in paths(index, "LoginThrottle")


def test_a_second_good_chunk_of_a_file_is_not_hidden(tmp_path: Path) -> None:
    long_function = "def {0}_invoice(order):\n" + "    # the invoice of an order\n    total = order.total\n" * 20
    files = {"src/invoice.py": long_function.format("create") + "\n\n" + long_function.format("cancel")}
    files |= {f"src/m{n}.py": f"def unrelated_{n}():\n    return 'order' * {n}\n" for n in range(20)}
    write_files(tmp_path, files)
    index = make_index(tmp_path)
    found = index.search("create or cancel the invoice of an order").hits[:2]
    assert [hit.path for hit in found] == ["src/invoice.py", "src/invoice.py"]
    index.close()


# Chunks


def test_a_chunk_comes_whole_with_its_neighbours(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.py": "\n\n".join(f"def f{n}():\n" + f"    x = {n}\n" * 80 for n in range(5))})
    index = make_index(tmp_path)
    index.sync()
    middle = index.search("f2").hits[0]
    around = index.chunk(middle.chunk_id, neighbours=1)
    assert [hit.symbol for hit in around] == ["f1", "f2", "f3"]
    assert index.chunk(middle.chunk_id, neighbours=0)[0].text == middle.text
    index.close()


def test_an_unknown_chunk_is_refused(index: CodeIndex) -> None:
    with pytest.raises(Rejected, match="unknown_chunk"):
        index.chunk("0123")


# Map


def test_the_same_question_hits_map_and_skips_forest(index: CodeIndex) -> None:
    index.record("Where are logins slowed down?", ["LoginThrottle.allow"], ["src/auth/throttle.py"], "20260101_000000")
    answer = index.search("where are logins  slowed down?")
    assert answer.collection is Collection.MAP
    assert answer.agreements[0].score >= 0.7
    assert answer.hits[0].path == "src/auth/throttle.py"
    assert index.search("where are logins slowed down?", collection=Collection.FOREST).collection is Collection.FOREST


def test_another_question_does_not_hit_map(index: CodeIndex) -> None:
    index.record("Where are logins slowed down?", ["LoginThrottle"], ["src/auth/throttle.py"])
    assert index.search("where are routes matched?").collection is Collection.FOREST


def test_map_comes_back_from_its_files_when_the_store_is_gone(index: CodeIndex, project: Path) -> None:
    index.record("Where are logins slowed down?", ["LoginThrottle.allow"], ["src/auth/throttle.py"], "s")
    index.close()
    for path in (project / ".code-intel/cache").iterdir():
        path.unlink()
    again = make_index(project)
    again.sync()
    answer = again.search("Where are logins slowed down?")
    assert answer.collection is Collection.MAP
    assert (answer.agreements[0].symbols, answer.agreements[0].files) == (
        ("LoginThrottle.allow",),
        ("src/auth/throttle.py",),
    )
    again.close()


def test_a_file_written_by_hand_is_an_agreement_and_a_deleted_one_is_none(index: CodeIndex, project: Path) -> None:
    write_files(project, {".code-intel/agreements/mine.md": "# who matches urls\n\n## Symbols\n- matchRoute\n"})
    assert index.search("Who matches URLs").hits[0].path == "src/web/router.js"
    (project / ".code-intel/agreements/mine.md").unlink()
    assert index.search("Who matches URLs").collection is Collection.FOREST


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\0\0", b"no heading", b"#", b"# \n## Symbols\n- ", b"x" * 100_000])
def test_an_odd_file_among_the_agreements_is_ignored(index: CodeIndex, project: Path, content: bytes) -> None:
    write_files(project, {".code-intel/agreements/odd.md": content})
    assert index.search("login throttle").hits


def test_an_agreement_whose_code_is_gone_does_not_skip_forest(index: CodeIndex) -> None:
    index.record("Where are logins slowed down?", ["NoSuchThing"], ["src/no/such.py"])
    answer = index.search("Where are logins slowed down?")
    assert answer.collection is Collection.FOREST
    assert answer.hits


# Trouble


def test_without_an_embedder_words_answer_and_say_so(project: Path) -> None:
    def missing() -> Encoder:
        raise Unavailable("tool_errors.embedding.model_unavailable", model="x", reason="no such file")

    index = CodeIndex(project, OFF, encoder=missing, lister=lister(project))
    answer = index.search("login throttle")
    assert (answer.engine, answer.hits[0].path) == ("bm25", "src/auth/throttle.py")
    assert any("embedding model" in note for note in answer.notes)
    assert "cannot be loaded (no such file). Search goes on without it." in " ".join(answer.notes)
    assert not [note for note in (*answer.notes, *index.sync().notes) if "tool_errors" in note]
    index.close()


def test_a_sync_that_fails_is_told_in_words(index: CodeIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = index._open()
    assert opened.background is not None

    def fails(**_: object) -> None:
        raise Unavailable("tool_errors.generic.program_missing", program="ripgrep", tool="this lookup")

    monkeypatch.setattr(opened.background, "_run", lambda _first: fails())
    opened.background.start().join()
    assert "tool_errors" not in opened.background.trouble
    assert "could not be brought up to date: ripgrep is not installed" in opened.background.trouble


def test_vectors_come_when_the_embedder_does(project: Path) -> None:
    def missing() -> Encoder:
        raise Unavailable("tool_errors.embedding.model_unavailable", model="x", reason="no such file")

    without = CodeIndex(project, OFF, encoder=missing, lister=lister(project))
    without.sync()
    without.close()
    with_encoder = make_index(project)
    assert with_encoder.sync().chunks == 0
    assert with_encoder.search("login throttle").engine == "sqlite-vectors+bm25"
    with_encoder.close()


def test_a_second_process_reads_by_meaning_and_takes_over_when_the_owner_ends(index: CodeIndex, project: Path) -> None:
    second = make_index(project)
    answer = second.search("login throttle")
    assert (answer.engine, answer.complete, answer.pending) == ("sqlite-vectors+bm25", True, 0)
    assert answer.hits == index.search("login throttle").hits
    assert str(os.getpid()) in answer.notes[0]
    with pytest.raises(Rejected, match="not_owner"):
        second.sync()
    write_files(project, {"src/late.py": "def arrives_late():\n    return 'late'\n"})
    index.sync()
    assert second.search("arrives late").hits[0].path == "src/late.py"  # by vectors that came since
    index.close()
    deadline = time.monotonic() + 10
    while not owns(second):
        assert time.monotonic() < deadline
    assert second.sync().unchanged == len(SAMPLE) + 1
    second.close()


def test_a_second_process_follows_the_owner_to_another_model(index: CodeIndex, project: Path) -> None:
    encoder = HashEncoder(dim=24, name="another")
    second = make_index(project, encoder=encoder)
    assert second.search("login throttle").engine == "bm25"  # the vectors are still those of the other model
    index.close()
    owner = make_index(project, encoder=encoder)
    second._opened = None
    owner.sync()
    answer = second.search("login throttle")
    assert (answer.engine, answer.hits[0].path) == ("sqlite-vectors+bm25", "src/auth/throttle.py")
    owner.close()
    second.close()


def test_a_reader_without_an_index_says_that_there_is_none(project: Path) -> None:
    owner = make_index(project)
    owner._owner.acquire()
    reader = make_index(project)
    answer = reader.search("login")
    assert (answer.hits, answer.complete) == ((), False)
    assert "nothing to read" in answer.notes[0]
    reader.close()
    owner.close()


def test_an_index_that_was_closed_blames_neither_another_process_nor_the_chunk(index: CodeIndex) -> None:
    chunk_id = index.search("login throttle").hits[0].chunk_id
    index.close()
    with pytest.raises(Unavailable, match="project_left"):
        index.sync()
    with pytest.raises(Unavailable, match="project_left"):
        index.chunk(chunk_id)


def damage(index: CodeIndex, *, shared: bool) -> Path:
    """Random bytes in place of the checkout's database, or of what is known of the repository's files."""
    opened = index._open()
    assert opened.store is not None
    owner = opened.store.contents if shared else opened.store
    database = owner.path
    owner._writer.execute("PRAGMA main.wal_checkpoint(TRUNCATE)")
    size = database.stat().st_size
    with database.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(size - 4096))
    opened.store._drop_idle()
    opened.store.contents._drop_idle()
    return database


@pytest.mark.parametrize("shared", [True, False])
def test_a_store_damaged_while_running_is_rebuilt(index: CodeIndex, *, shared: bool) -> None:
    damage(index, shared=shared)
    index.search("login throttle")
    index.sync()
    assert paths(index, "login throttle")[0] == "src/auth/throttle.py"


@pytest.mark.parametrize("shared", [True, False])
def test_a_damaged_store_that_cannot_be_replaced_is_said_until_it_can(index: CodeIndex, *, shared: bool) -> None:
    database = damage(index, shared=shared)
    in_the_way = database.with_name(f"{database.name}.damaged")
    (in_the_way / "something").mkdir(parents=True)
    answer = index.search("login throttle")
    assert (answer.hits, answer.complete) == ((), False)
    assert any("cannot be replaced" in note for note in answer.notes)
    assert any("cannot be replaced" in note for note in index.sync().notes)
    in_the_way.rename(database.with_name("elsewhere"))
    index.sync()
    assert paths(index, "login throttle")[0] == "src/auth/throttle.py"


def test_an_index_that_could_not_be_owned_on_a_full_disk_is_owned_once_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = OwnerLock(tmp_path / "index.lock")
    with monkeypatch.context() as full, pytest.raises(OSError, match="full"):
        full.setattr(os, "write", Mock(side_effect=OSError(errno.ENOSPC, "the disk is full")))
        lock.acquire()
    assert OwnerLock(tmp_path / "index.lock").acquire()


def test_a_folder_that_cannot_be_made_is_worked_around(project: Path) -> None:
    (project / ".code-intel").write_text("in the way")
    index = make_index(project)
    answer = index.search("login throttle")
    assert answer.hits[0].path == "src/auth/throttle.py"
    assert any("temporary folder" in note for note in answer.notes)
    index.close()


@pytest.mark.needs("an ordinary user")  # whom a permission stops
@pytest.mark.parametrize("indexed", [True, False])
def test_a_folder_that_may_only_be_read_is_answered_from(project: Path, *, indexed: bool) -> None:
    if indexed:
        owner = make_index(project)
        owner.sync()
        owner.close()
    folders = [project, *(path for path in project.rglob("*") if path.is_dir())]
    for path in [*project.rglob("*"), project]:
        path.chmod(0o555 if path in folders else 0o444)
    index = make_index(project)
    try:
        answer = index.search("login throttle", wait=60)
    finally:
        index.close()
        for path in folders:
            path.chmod(0o755)
    assert answer.hits[0].path == "src/auth/throttle.py"
    notes = " ".join(answer.notes)
    assert "cannot be written" in notes or "temporary folder" in notes


def _environment() -> dict[str, str]:
    root = Path(__file__).parents[2]
    return os.environ | {"PYTHONPATH": f"{root / 'src'}:{root}", "HOME": "/tmp"}


def test_a_locked_database_is_a_note_not_a_failure(index: CodeIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    def locked(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("database is locked")

    monkeypatch.setattr("code_intel_server.index.code_index.find", locked)
    answer = index.search("login")
    assert (answer.complete, answer.hits) == (False, ())
    assert "locked" in answer.notes[0]


# Background and memory


def test_the_index_starts_itself_only_when_it_is_due(project: Path) -> None:
    index = make_index(project)
    index.start()
    index.sync()
    assert index._open().age_hours() is not None
    index.close()
    again = make_index(project)
    again.start()
    background = again._open().background
    assert background is not None
    assert not background.ran
    assert not background.running
    again.close()


def test_an_index_that_may_not_start_by_itself_does_not(project: Path) -> None:
    index = make_index(project, IndexSettings(sync_on_start=False, chroma=OFF.chroma))
    index.start()
    assert not (project / ".code-intel").exists()
    index.close()


def test_a_closed_index_leaves_no_thread_and_frees_the_lock(project: Path) -> None:
    before = set(threading.enumerate())
    index = make_index(project)
    index.search("login")
    index.close()
    assert not [one for one in set(threading.enumerate()) - before if one.name in {"index-sync", "chroma"}]
    other = make_index(project)
    assert owns(other)
    other.close()


def test_rebuilding_starts_from_nothing(index: CodeIndex) -> None:
    assert index.sync(rebuild=True).added == len(SAMPLE)


def test_symbols_are_compared_with_a_question(index: CodeIndex) -> None:
    near, far = index.likeness(["LoginThrottle", "matchRoute"], "throttle a login")
    assert near is not None
    assert far is not None
    assert near > far


def test_nothing_heavy_is_loaded_before_it_is_needed() -> None:
    script = (
        "import sys\n"
        "import code_intel_server.index.code_index, code_intel_server.index.vectors.chromadb_manager\n"
        "heavy = {'numpy', 'chromadb', 'tree_sitter', 'torch', 'sentence_transformers'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, env=_environment())


def test_a_first_answer_with_the_bundled_model_comes_at_once_without_torch(tmp_path: Path) -> None:
    write_files(tmp_path, SAMPLE)
    index = CodeIndex(tmp_path, OFF, encoder=load_encoder, lister=lister(tmp_path))
    answer = index.search("slow down repeated sign-in attempts")
    assert answer.hits[0].path == "src/auth/throttle.py"
    assert "torch" not in sys.modules
    index.close()


def test_a_model_that_is_not_there_is_told_in_words_for_people(project: Path) -> None:
    def missing() -> Encoder:
        raise Unavailable("tool_errors.embedding.extra_missing", model="some/model", reason="no module")

    index = CodeIndex(project, OFF, encoder=missing, lister=lister(project))
    said = " ".join(index.sync().notes)
    index.close()
    assert "The embedding model 'some/model' needs an extra that is not installed (no module)." in said
    assert "pip install 'sentence-transformers>=5'" in said
    assert "tool_errors" not in said


def test_the_encoder_of_the_tests_keeps_the_protocol() -> None:
    encoder: Encoder = HashEncoder()
    assert encoder.encode(["a b"], "query").shape == (1, 32)
