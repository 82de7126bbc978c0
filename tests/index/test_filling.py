"""When ChromaDB gets what a sync stores: beside it where processors are free, after it where they are not; told apart by nothing but time."""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from code_intel_server.index import dense, opened, sync
from code_intel_server.index.chromadb_manager import ChromaManager, ChromaState
from code_intel_server.index.code_index import CodeIndex
from code_intel_server.index.values import ChromaMode
from tests.index.builders import SAMPLE, engine_of, everything_found, make_index, manager_of, ready, write_files
from tests.index.holding import LONG, aside

MORE = {f"src/more{number}.py": f"def more_{number}():\n    return {number}\n" for number in range(6)}


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CodeIndex]:
    """Of a project whose every file is a batch."""
    monkeypatch.setattr(sync, "_FIRST_BATCH_CHUNKS", 1)
    monkeypatch.setattr(sync, "BATCH_CHUNKS", 1)
    write_files(tmp_path, SAMPLE)
    made = make_index(tmp_path, mode=ChromaMode.LOCAL)
    yield made
    made.close()


def at_each_batch(index: CodeIndex, look: Callable[[], object]) -> list[object]:
    """What `look` saw after every batch of a sync."""
    seen: list[object] = []

    def progress(done: float, total: float, message: str) -> None:
        seen.append(look())

    assert not index.sync(progress=progress).cancelled
    return seen


def test_with_few_processors_a_sync_does_not_share_them_with_chromadb(
    index: CodeIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opened, "processors", lambda: 3)
    seen = at_each_batch(index, lambda: manager_of(index).child_pid)
    assert seen == [None] * len(SAMPLE)
    assert ready(index)
    assert everything_found(index)


def test_with_processors_to_spare_chromadb_is_filled_meanwhile(
    index: CodeIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opened, "processors", lambda: 4)
    seen = at_each_batch(index, lambda: ready(index, LONG))
    assert seen == [True] * len(SAMPLE)
    assert everything_found(index)


def test_a_sync_of_very_much_does_not_let_chromadb_wait_for_its_end(
    index: CodeIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opened, "processors", lambda: 1)
    monkeypatch.setattr(opened, "BEHIND_AT_MOST", 3)
    manager = manager_of(index)
    seen = at_each_batch(index, lambda: manager._thread is not None and ready(index, LONG))
    assert not seen[0]
    assert seen[-1]
    assert ready(index)
    assert everything_found(index)


def test_what_chromadb_does_not_have_yet_is_found_by_the_vectors_in_the_store(
    index: CodeIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opened, "processors", lambda: 1)
    index.sync()
    assert ready(index)
    assert engine_of(index) == "chromadb+bm25"
    write_files(tmp_path, MORE)
    seen = at_each_batch(index, lambda: engine_of(index))
    assert seen == ["sqlite-vectors+bm25"] * len(MORE)
    assert ready(index)
    assert engine_of(index) == "chromadb+bm25"
    assert everything_found(index)


def test_a_sync_that_fails_leaves_chromadb_with_all_that_was_stored(
    index: CodeIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opened, "processors", lambda: 1)
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
    assert ready(index)
    assert everything_found(index)


def test_a_batch_stored_while_the_last_filling_ends_is_not_taken_for_filled(
    index: CodeIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = manager_of(index)
    really_fill, really_set, filled = manager._fill, manager._set, threading.Event()

    def fill() -> None:
        really_fill()
        manager.fall_behind()

    def put(state: ChromaState) -> None:
        really_set(state)
        if state is ChromaState.READY:
            filled.set()

    with monkeypatch.context() as patch:
        patch.setattr(manager, "_fill", fill)
        patch.setattr(manager, "_set", put)
        index.sync()
        assert filled.wait(LONG)
        assert manager.state is ChromaState.FILLING
    manager.kick()
    assert ready(index)


def test_who_waits_for_chromadb_hears_how_far_it_is(index: CodeIndex) -> None:
    told: list[tuple[float, float]] = []
    index.sync()
    index.settle(lambda done, total, _: told.append((done, total)))
    assert manager_of(index).state is ChromaState.READY
    assert all(0 <= done <= total for done, total in told)


def test_nobody_waits_for_a_chromadb_that_is_closed_meanwhile_or_a_store_that_cannot_be_read(
    index: CodeIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager, store = manager_of(index), index._open().store
    assert store is not None
    monkeypatch.setattr(manager, "_bring_up_to_date", lambda: None)  # it fills for ever
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
    manager.close()
    settling.join(LONG)
    assert not settling.is_alive()


def test_nobody_waits_for_a_chromadb_that_fails_or_is_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path, SAMPLE)

    def fails(_: ChromaManager) -> None:
        raise OSError("no process")

    monkeypatch.setattr(ChromaManager, "_bring_up_to_date", fails)
    for mode in (ChromaMode.LOCAL, ChromaMode.OFF):
        index = make_index(tmp_path, mode=mode)
        index.sync()
        index.settle(lambda done, total, message: None)
        assert manager_of(index).state is (ChromaState.FAILED if mode is ChromaMode.LOCAL else ChromaState.OFF)
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
