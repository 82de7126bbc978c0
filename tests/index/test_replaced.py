"""The index's file replaced by an empty one, on request or for its damage, while others read, write or fill from it."""

import shutil
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from code_intel_server.codebase.files.ignore import FileListing
from code_intel_server.index import code_index
from code_intel_server.index import map as map_
from code_intel_server.index.code_index import CodeIndex
from code_intel_server.index.storage.rows import OutboxItem
from code_intel_server.index.storage.store import Store
from code_intel_server.index.sync import WAITING
from code_intel_server.index.values import Agreement, ChromaMode, SyncReport
from code_intel_server.index.vectors.dense import BruteForce
from tests.index.builders import (
    SAMPLE,
    HashEncoder,
    everything_found,
    indexed,
    lister,
    make_index,
    manager_of,
    owns,
    ready,
    write_files,
)
from tests.index.holding import LONG, OFF, Held, aside


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write_files(tmp_path, SAMPLE)
    return tmp_path


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "index.sqlite3", writable=True)


def store_of(index: CodeIndex) -> Store:
    store = index._open().store
    assert store is not None
    return store


def test_a_read_that_outlasts_the_file_lends_its_connection_to_nobody(store: Store) -> None:
    with store.reading():
        store.rebuild("it is damaged")
    store.set_meta(said="anew")
    assert store.meta("said") == "anew"


def test_a_reader_follows_the_owner_to_the_new_file(store: Store) -> None:
    store.set_meta(said="before")
    reader = Store(store.path, writable=False)
    assert reader.meta("said") == "before"
    store.rebuild("it is damaged")
    store.set_meta(said="anew")
    assert reader.meta("said") == "anew"


def test_nobody_reads_a_file_that_is_only_being_made(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    held, really_create = Held(), store._create

    def slowly(connection: sqlite3.Connection) -> sqlite3.Connection:
        held.wait()
        return really_create(connection)

    monkeypatch.setattr(store, "_create", slowly)
    rebuilding, _ = aside(lambda: store.rebuild("it is damaged"))
    assert held.entered.wait(LONG)
    taken_for_removed: list[bool] = []
    looking, _ = aside(lambda: taken_for_removed.append(store.removed))
    reading, raised = aside(lambda: store.count("files"))
    reading.join(0.2)
    held.go_on.set()
    for thread in (rebuilding, reading, looking):
        thread.join(LONG)
    assert (raised, taken_for_removed) == ([], [False])


def test_of_many_who_find_the_same_damage_one_replaces_the_file(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = make_index(project)
    index.sync()
    all_found_it = threading.Barrier(3)

    def damaged(*_: object, **__: object) -> None:
        all_found_it.wait(LONG)
        raise sqlite3.DatabaseError("malformed")

    monkeypatch.setattr(code_index, "find", damaged)
    searches = [aside(lambda: index.search("login"))[0] for _ in range(3)]
    for thread in searches:
        thread.join(LONG)
    assert len([note for note in store_of(index).notes if "set aside" in note]) == 1
    index.close()


def test_a_rebuild_that_was_wanted_is_no_remark_of_later_answers(project: Path) -> None:
    index = make_index(project)
    for _ in range(2):
        assert index.sync(rebuild=True).notes == ()
    assert index.search("login").notes == index.sync().notes == ()
    index.close()


def test_the_same_damage_a_second_time_is_said_once(project: Path) -> None:
    index = make_index(project)
    index.sync()
    for _ in range(2):
        assert store_of(index).rebuild("it is damaged")
    report = index.sync()
    assert (report.added, [note for note in report.notes if "set aside" in note]) == (len(SAMPLE), list(report.notes))
    assert len(report.notes) == 1
    index.close()


def test_a_sync_under_way_fills_the_file_that_took_the_place_of_a_damaged_one(project: Path) -> None:
    first = make_index(project)
    first.sync()
    first.close()
    held = Held()

    def listed() -> FileListing:
        held.wait()
        return lister(project)()

    index = CodeIndex(project, OFF, encoder=HashEncoder, lister=listed)
    opened = index._open()
    assert opened.background is not None
    thread = opened.background.start()
    assert held.entered.wait(LONG)
    index._damaged(opened, "malformed", 0)
    held.go_on.set()
    thread.join(LONG)
    assert indexed(index) == len(SAMPLE)
    index.close()


def test_a_sync_that_finds_damage_fills_the_new_file_at_once(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = make_index(project)
    index.sync()
    store, opened = store_of(index), index._open()
    really_files, damages = store.files, [sqlite3.DatabaseError("malformed")]

    def files() -> object:
        if damages:
            raise damages.pop()
        return really_files()

    monkeypatch.setattr(store, "files", files)
    assert opened.background is not None
    opened.background.start().join(LONG)
    assert (indexed(index), opened.background.trouble) == (len(SAMPLE), "")
    index.close()


class HeldWrite:
    """An index of which one call, asked for first, is held while it writes."""

    def __init__(self, project: Path, monkeypatch: pytest.MonkeyPatch, *, rebuild: bool) -> None:
        self.index, self.held = make_index(project), Held()
        store = store_of(self.index)
        really_write = store.write

        def write(files: Sequence[object]) -> None:
            if not self.held.entered.is_set():
                self.held.wait()
            really_write(files)  # type: ignore[arg-type]

        monkeypatch.setattr(store, "write", write)
        self._asked: list[tuple[threading.Thread, list[BaseException]]] = []
        self.reports: dict[str, SyncReport] = {}
        self.ask("first", rebuild=rebuild)
        assert self.held.entered.wait(LONG)

    def ask(self, name: str, *, rebuild: bool) -> None:
        """Ask for one more, and wait until it waits for its turn."""
        waits = threading.Event()

        def progress(done: int, total: int, message: str) -> None:
            if message == WAITING:
                waits.set()

        def work() -> None:
            self.reports[name] = self.index.sync(rebuild=rebuild, progress=progress)

        self._asked.append(aside(work))
        assert name == "first" or waits.wait(LONG)

    def go_on(self) -> None:
        self.held.go_on.set()
        for thread, raised in self._asked:
            thread.join(LONG)
            assert raised == []


@pytest.mark.parametrize("rebuild", [True, False])
def test_who_asks_for_a_rebuild_beside_another_run_gets_one_and_nothing_is_missing(
    project: Path, monkeypatch: pytest.MonkeyPatch, rebuild: bool
) -> None:
    asked = HeldWrite(project, monkeypatch, rebuild=rebuild)
    asked.ask("second", rebuild=True)
    asked.go_on()
    first, second = asked.reports["first"], asked.reports["second"]
    assert (first.cancelled, second.cancelled) == (False, False)
    assert (second.added, first.files, second.files) == (len(SAMPLE), len(SAMPLE), len(SAMPLE))
    # A run that only takes in changes was ended, waited, and found all of them taken in.
    assert (first.added, first.unchanged) == ((len(SAMPLE), 0) if rebuild else (0, len(SAMPLE)))
    asked.index.close()


class CancelledHereError(Exception):
    """What a client's cancelling raises in the call."""


@pytest.mark.parametrize("rebuild", [True, False])
@pytest.mark.parametrize("raises", [True, False])
def test_who_waits_for_a_rebuild_is_let_go_at_once(
    project: Path, monkeypatch: pytest.MonkeyPatch, rebuild: bool, raises: bool
) -> None:
    asked = HeldWrite(project, monkeypatch, rebuild=True)
    reports, waits, gone = list[SyncReport](), threading.Event(), threading.Event()

    def progress(done: int, total: int, message: str) -> None:
        waits.set()
        if raises and gone.is_set():
            raise CancelledHereError

    second, raised = aside(
        lambda: reports.append(
            asked.index.sync(rebuild=rebuild, progress=progress, should_stop=lambda: gone.is_set() and not raises)
        )
    )
    assert waits.wait(LONG)
    gone.set()
    second.join(LONG)  # the first rebuild is held all the while
    assert ([*map(type, raised)], [one.cancelled for one in reports]) == (
        ([CancelledHereError], []) if raises else ([], [True])
    )
    asked.go_on()
    assert not asked.reports["first"].cancelled
    assert asked.index.sync().unchanged == len(SAMPLE)
    asked.index.close()


def test_a_rebuild_that_is_stopped_before_it_begins_leaves_the_index_as_it_is(project: Path) -> None:
    index = make_index(project)
    index.sync()
    assert index.sync(rebuild=True, should_stop=lambda: True).cancelled
    assert (store_of(index).epoch, indexed(index)) == (0, len(SAMPLE))
    index.close()


def test_what_chromadb_had_of_the_old_file_is_not_acknowledged_in_the_new_one(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(project, {f"src/m{n}.py": f"def function_{n}():\n    return {n}\n" for n in range(20)})
    index = make_index(project, mode=ChromaMode.LOCAL)
    manager, held = manager_of(index), Held()
    really_hand_over = manager._hand_over

    def hand_over(key: str, items: list[OutboxItem]) -> None:
        really_hand_over(key, items)
        held.wait()

    monkeypatch.setattr(manager, "_hand_over", hand_over)
    index.sync()
    assert held.entered.wait(LONG)
    write_files(project, {f"src/new{n}.py": f"def fresh_{n}():\n    return {n * 7}\n" for n in range(5)})
    index.sync(rebuild=True)
    held.go_on.set()
    assert ready(index) and everything_found(index)
    index.close()


def _nearest(brute: BruteForce, store: Store) -> dict[str, float]:
    vector = HashEncoder().encode(["login throttle attempts"], "query")[0]
    rows = store.rows(found := brute.search(vector, 50))
    return {rows[seq].chunk.id: round(score, 5) for seq, score in found.items()}


def test_vectors_of_the_old_file_are_not_taken_for_those_of_the_new_one(project: Path) -> None:
    index = make_index(project)
    index.sync()
    store = store_of(index)
    brute = BruteForce(store)
    _nearest(brute, store)
    (project / "README.md").rename(project / "tests" / "zz.md")  # as many chunks in another order
    index.sync(rebuild=True)
    assert _nearest(brute, store) == _nearest(BruteForce(store), store)
    index.close()


def test_vectors_that_come_late_to_known_chunks_are_searched(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = make_index(project, encoder=HashEncoder(name="before"))
    first.sync()
    first.close()
    index = make_index(project, encoder=HashEncoder(name="after"))
    write_files(project, {"src/new.py": "def new():\n    return 1\n"})
    store, held = store_of(index), Held()
    brute, really_without = BruteForce(store), store.without_vectors

    def without_vectors(limit: int, after: int = 0) -> object:
        if not after:
            held.wait()
        return really_without(limit, after)

    monkeypatch.setattr(store, "without_vectors", without_vectors)
    syncing, _ = aside(index.sync)
    assert held.entered.wait(LONG)
    _nearest(brute, store)
    held.go_on.set()
    syncing.join(LONG)
    assert _nearest(brute, store) == _nearest(BruteForce(store), store)
    index.close()


def test_vectors_of_another_model_are_compared_with_no_question(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = make_index(project, encoder=HashEncoder(name="before"))
    first.sync()
    first.close()
    index = make_index(project, encoder=HashEncoder(name="after"))
    store, held = store_of(index), Held()
    really_forget = store.forget_vectors

    def forget_vectors() -> None:
        held.wait()
        really_forget()

    monkeypatch.setattr(store, "forget_vectors", forget_vectors)
    syncing, _ = aside(index.sync)
    assert held.entered.wait(LONG)
    answer = index.search("login throttle", wait=0)
    assert (answer.engine, answer.complete) == ("bm25", False)
    assert any("another model" in note for note in answer.notes)
    held.go_on.set()
    syncing.join(LONG)
    answer = index.search("login throttle")
    assert (answer.engine, answer.complete) == ("sqlite-vectors+bm25", True)
    index.close()


def test_who_has_looked_at_the_agreements_before_removes_none_that_came_since(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = make_index(project)
    index.sync()
    index.record("Where are logins slowed down?", ["LoginThrottle"], [])
    index.close()
    index = make_index(project)
    held, really_read = Held(), map_.read_agreement

    def read(path: Path) -> Agreement | None:
        if not held.entered.is_set():
            held.wait()
        return really_read(path)

    monkeypatch.setattr(map_, "read_agreement", read)
    searching, _ = aside(lambda: index._map(index._open()).refresh())
    assert held.entered.wait(LONG)
    recording, raised = aside(lambda: index.record("How are routes matched?", ["matchRoute"], []))
    recording.join(0.2)
    held.go_on.set()
    for thread in (searching, recording):
        thread.join(LONG)
    assert raised == []
    assert {one.query for one, _ in store_of(index).agreements()} == {
        "Where are logins slowed down?",
        "How are routes matched?",
    }
    index.close()


def _remove_the_cache(folder: Path) -> None:
    shutil.rmtree(folder)


def _remove_the_file(folder: Path) -> None:
    (folder / "index.sqlite3").unlink()


@pytest.mark.parametrize("remove", [_remove_the_cache, _remove_the_file])
def test_an_index_that_was_removed_under_its_owner_is_made_again(
    project: Path, remove: Callable[[Path], object]
) -> None:
    index = make_index(project)
    index.sync()
    remove(project / ".code-intel" / "cache")
    answer = index.search("login throttle", wait=LONG)
    assert (answer.complete, len(answer.hits) > 0) == (True, True)
    assert (project / ".code-intel" / "cache" / "index.sqlite3").exists()
    index.close()


def test_who_owned_a_cache_that_was_removed_leaves_it_to_whoever_has_made_it_again(project: Path) -> None:
    index = make_index(project)
    index.sync()
    shutil.rmtree(project / ".code-intel" / "cache")
    other = make_index(project)
    other.sync()
    assert (owns(other), owns(index)) == (True, False)
    assert not owns(index)
    index.close()
    other.close()
