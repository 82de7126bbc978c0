"""When vectors go into ChromaDB: from so many chunks on, after a sync; until then they are compared one by one, and nothing is missing."""

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from code_intel_server.index.code_index import CodeIndex
from code_intel_server.index.values import ChromaMode, ChromaSettings, IndexSettings
from code_intel_server.index.vectors import chromadb_manager, dense
from code_intel_server.index.vectors.chromadb_manager import ChromaManager, ChromaState
from tests.index.builders import SAMPLE, engine_of, everything_found, make_index, manager_of, ready, write_files
from tests.index.holding import LONG, aside

if TYPE_CHECKING:
    from code_intel_server.index.values import Matrix

MORE = {f"src/more{number}.py": f"def more_{number}():\n    return {number}\n" for number in range(6)}


@pytest.fixture
def index(tmp_path: Path) -> Iterator[CodeIndex]:
    write_files(tmp_path, SAMPLE)
    made = make_index(tmp_path, mode=ChromaMode.LOCAL)
    yield made
    made.close()


def _from(root: Path, min_chunks: int) -> CodeIndex:
    return make_index(root, IndexSettings(chroma=ChromaSettings(min_chunks=min_chunks)))


def _settled(index: CodeIndex) -> ChromaManager:
    index.sync()
    index.settle(lambda done, total, message: None)
    return manager_of(index)


def test_few_vectors_are_compared_one_by_one_without_a_process_or_a_folder(tmp_path: Path) -> None:
    write_files(tmp_path, SAMPLE)
    index = make_index(tmp_path, IndexSettings())
    manager = _settled(index)
    assert (manager.state, manager.child_pid, manager.reason) == (ChromaState.EXACT, None, "")
    assert engine_of(index) == "sqlite-vectors+bm25"
    assert index.search("login throttle").complete
    assert not (tmp_path / ".code-intel" / "chroma").exists()
    store = index._open().store
    assert store is not None
    assert store.outbox_size() == 0
    index.close()


def test_a_project_that_grows_gets_chromadb_and_one_that_shrinks_loses_it(tmp_path: Path) -> None:
    write_files(tmp_path, SAMPLE)
    index = make_index(tmp_path)
    few = index.sync().chunks
    index.close()
    index = _from(tmp_path, few + 1)
    assert _settled(index).state is ChromaState.EXACT
    write_files(tmp_path, MORE)
    index.sync()
    assert ready(index)
    assert engine_of(index) == "chromadb+bm25"
    assert everything_found(index)
    index.close()
    for name in MORE:
        (tmp_path / name).unlink()
    index = _from(tmp_path, few + 1)
    assert _settled(index).state is ChromaState.EXACT
    assert engine_of(index) == "sqlite-vectors+bm25"
    assert not (tmp_path / ".code-intel" / "chroma").exists()
    write_files(tmp_path, MORE)
    index.sync()
    assert ready(index) and everything_found(index)
    index.close()


def test_what_chromadb_does_not_have_yet_is_compared_beside_it(
    index: CodeIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.sync()
    assert ready(index)
    manager = manager_of(index)
    with monkeypatch.context() as patch:
        patch.setattr(manager, "_try", lambda: None)
        write_files(tmp_path, MORE | {"src/auth/throttle.py": "def gone():\n    return 0\n"})
        index.sync()
        answer = index.search("more 3")
        assert (answer.engine, answer.hits[0].path, answer.complete) == ("chromadb+bm25", "src/more3.py", True)
        store = index._open().store
        assert store is not None
        waiting = {ident for item in store.outbox("forest", 100) if (ident := item.id) and item.vector is not None}
        near = manager.near("forest", _vector(index, "more 3"), 1)
        assert near is not None
        assert waiting <= near.keys()
        patch.setattr(chromadb_manager, "WAITING_AT_MOST", 2)
        assert manager.near("forest", _vector(index, "more 3"), 1) is None
        assert index.search("more 3").hits[0].path == "src/more3.py"
    manager.kick()
    assert ready(index) and everything_found(index)


def _vector(index: CodeIndex, text: str) -> "Matrix":
    encoder = index._embedder()
    assert encoder is not None
    return encoder.encode([text], "query").reshape(-1)


def test_a_sync_that_fails_leaves_chromadb_with_all_that_was_stored(
    index: CodeIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.sync()
    assert ready(index)
    write_files(tmp_path, MORE)
    store = index._open().store
    assert store is not None

    def full(_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(store, "remove", full)
        assert index.sync().cancelled
    assert ready(index) and everything_found(index)


def test_who_waits_for_chromadb_hears_how_far_it_is(index: CodeIndex) -> None:
    told: list[tuple[float, float]] = []
    index.sync()
    index.settle(lambda done, total, _: told.append((done, total)))
    assert manager_of(index).state is ChromaState.READY
    assert all(0 <= done <= total for done, total in told)


def test_nobody_waits_for_a_chromadb_that_is_closed_meanwhile_or_a_store_that_cannot_be_read(
    index: CodeIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager, store, closed = manager_of(index), index._open().store, threading.Event()
    assert store is not None
    monkeypatch.setattr(manager, "_bring_up_to_date", lambda: closed.wait(LONG))  # it fills for ever
    index.sync()
    assert manager.fills

    def unreadable() -> int:
        raise sqlite3.DatabaseError("disk image is malformed")

    with monkeypatch.context() as patch:
        patch.setattr(store, "outbox_size", unreadable)
        index.settle(lambda done, total, message: None)
    waiting = threading.Event()
    settling, _ = aside(lambda: index.settle(lambda done, total, message: waiting.set()))
    assert waiting.wait(LONG)
    closing, _ = aside(manager.close)
    settling.join(LONG)
    assert not settling.is_alive()
    closed.set()
    closing.join(LONG)


def test_nobody_waits_for_a_chromadb_that_fails_or_is_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path, SAMPLE)

    def fails(_: ChromaManager) -> None:
        raise OSError("no process")

    monkeypatch.setattr(ChromaManager, "_bring_up_to_date", fails)
    for mode in (ChromaMode.LOCAL, ChromaMode.OFF):
        index = make_index(tmp_path, mode=mode)
        assert _settled(index).state is (ChromaState.FAILED if mode is ChromaMode.LOCAL else ChromaState.OFF)
        index.close()


@pytest.mark.parametrize(("after", "kept"), [(0.0, False), (60.0, True)])
def test_the_memory_of_vectors_is_given_back_once_chromadb_answers_for_a_while(
    index: CodeIndex, monkeypatch: pytest.MonkeyPatch, after: float, kept: bool
) -> None:
    index.sync()
    assert ready(index)
    index.search("login throttle", path="src")  # within a folder the store answers
    brute = index._open()._brute
    assert brute is not None
    assert brute._matrix is not None
    monkeypatch.setattr(dense, "UNUSED_SECONDS", after)
    assert engine_of(index) == "chromadb+bm25"
    assert (brute._matrix is not None) is kept
    assert index.search("login throttle", path="src").hits[0].path == "src/auth/throttle.py"
