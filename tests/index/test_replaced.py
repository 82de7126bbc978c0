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
from code_intel_server.index.sync import JOINED
from code_intel_server.index.values import Agreement, ChromaMode, SyncReport
from code_intel_server.index.vectors.dense import BruteForce
from tests.index.builders import (
    SAMPLE,
    HashEncoder,
    everything_found,
    lister,
    make_index,
    manager_of,
    ready,
    write_files,
)
from tests.index.holding import LONG, OFF, Held, Queue, aside


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
    assert index.status().files == len(SAMPLE)
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
    assert (index.status().files, opened.background.trouble) == (len(SAMPLE), "")
    index.close()


def test_a_rebuild_does_not_wait_for_a_sync_whose_work_it_throws_away(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = make_index(project)
    opened, store, held = index._open(), store_of(index), Held()
    really_write, written = store.write, []

    def write(files: Sequence[object]) -> None:
        written.append(len(files))
        if len(written) == 1:
            held.wait()
        really_write(files)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "write", write)
    assert opened.background is not None
    opened.background.start()
    assert held.entered.wait(LONG)
    rebuilding, raised = aside(lambda: index.sync(rebuild=True))
    assert opened.synchroniser is not None
    assert opened.synchroniser._turns.in_vain.wait(LONG)
    held.go_on.set()
    rebuilding.join(LONG)
    assert (raised, index.status().files) == ([], len(SAMPLE))
    index.close()


class TwoRebuilds:
    """Of two rebuilds the first is held while it writes what it has read; the second has asked by then."""

    def __init__(self, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.index = make_index(project)
        self.index.sync()
        store, self.queue = store_of(self.index), Queue()
        self.first_of_all, self._held = store.epoch, Held()
        synchroniser = self.index._open().synchroniser
        assert synchroniser is not None
        monkeypatch.setattr(synchroniser._turns, "running", self.queue)
        really_write = store.write

        def write(files: Sequence[object]) -> None:
            if not self._held.entered.is_set():
                self._held.wait()
            really_write(files)  # type: ignore[arg-type]

        monkeypatch.setattr(store, "write", write)
        self._stopped = threading.Event()
        self.reports: dict[str, SyncReport] = {}
        self._first, _ = aside(lambda: self._rebuild("first", self._stopped.is_set))
        assert self._held.entered.wait(LONG)
        self._second, _ = aside(lambda: self._rebuild("second"))
        self.queue.await_arrivals(2)

    def _rebuild(self, name: str, should_stop: Callable[[], bool] = lambda: False) -> None:
        self.reports[name] = self.index.sync(rebuild=True, should_stop=should_stop)

    def stop_the_first(self) -> None:
        self._stopped.set()

    def go_on(self) -> tuple[SyncReport, SyncReport]:
        self._held.go_on.set()
        for thread in (self._first, self._second):
            thread.join(LONG)
        return self.reports["first"], self.reports["second"]


def test_a_rebuild_joins_one_that_is_under_way_and_both_are_told_what_was_done(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = TwoRebuilds(project, monkeypatch)
    write_files(project, {"src/late.py": "def late():\n    return 1\n"})
    first, second = two.go_on()
    assert (first.cancelled, second.cancelled) == (False, False)
    assert store_of(two.index).epoch == two.first_of_all + 1
    assert (first.files, first.added) == (len(SAMPLE), len(SAMPLE))
    # What changed after the first had looked is in what the second answers with.
    assert (second.files, second.added, second.unchanged) == (len(SAMPLE) + 1, len(SAMPLE) + 1, 0)
    assert second.chunks > first.chunks
    assert ([JOINED in one.notes for one in (first, second)]) == [False, True]
    two.index.close()


def test_a_third_rebuild_does_not_cut_short_what_the_one_that_joined_takes_in(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = TwoRebuilds(project, monkeypatch)
    store, held = store_of(two.index), Held()
    really_files, looks, third = store.files, [], []

    def files() -> object:
        looks.append(threading.current_thread().name)
        if len(set(looks)) == 1 and not held.entered.is_set():
            held.entered.set()
            third.append(aside(lambda: two.index.sync(rebuild=True))[0])
            two.queue.await_arrivals(1)
        return really_files()

    monkeypatch.setattr(store, "files", files)
    write_files(project, {"src/late.py": "def late():\n    return 1\n"})
    first, second = two.go_on()
    third[0].join(LONG)
    assert (first.cancelled, second.cancelled) == (False, False)
    assert (second.files, JOINED in second.notes) == (len(SAMPLE) + 1, True)
    two.index.close()


def test_a_rebuild_that_waited_for_one_that_was_stopped_does_it_itself(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = TwoRebuilds(project, monkeypatch)
    two.stop_the_first()
    first, second = two.go_on()
    assert (first.cancelled, second.cancelled) == (True, False)
    assert store_of(two.index).epoch == two.first_of_all + 2
    assert (second.files, second.added, JOINED in second.notes) == (len(SAMPLE), len(SAMPLE), False)
    two.index.close()


def test_a_sync_beside_a_rebuild_answers_with_what_that_did(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two = TwoRebuilds(project, monkeypatch)
    plain: list[SyncReport] = []
    beside, raised = aside(lambda: plain.append(two.index.sync()))
    two.queue.await_arrivals(1)
    two.go_on()
    beside.join(LONG)
    assert raised == []
    assert (plain[0].cancelled, plain[0].added, plain[0].files) == (False, len(SAMPLE), len(SAMPLE))
    assert JOINED in plain[0].notes
    two.index.close()


def test_a_sync_that_a_rebuild_ends_waits_for_it_and_answers_with_what_it_did(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = make_index(project)
    store, held, written = store_of(index), Held(), list[int]()
    really_write = store.write

    def write(files: Sequence[object]) -> None:
        written.append(len(files))
        if len(written) == 1:
            held.wait()
        really_write(files)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "write", write)
    reports: dict[str, SyncReport] = {}
    plain, _ = aside(lambda: reports.update(plain=index.sync()))
    assert held.entered.wait(LONG)
    rebuilding, _ = aside(lambda: reports.update(rebuild=index.sync(rebuild=True)))
    synchroniser = index._open().synchroniser
    assert synchroniser is not None
    assert synchroniser._turns.in_vain.wait(LONG)
    held.go_on.set()
    for thread in (plain, rebuilding):
        thread.join(LONG)
    assert [(one.cancelled, one.added, one.files) for one in reports.values()] == [
        (False, len(SAMPLE), len(SAMPLE))
    ] * 2
    assert JOINED in reports["plain"].notes
    index.close()


class CancelledHereError(Exception):
    """What a client's cancelling raises in the call."""


@pytest.mark.parametrize("rebuild", [True, False])
@pytest.mark.parametrize("raises", [True, False])
def test_who_waits_for_a_rebuild_is_let_go_at_once(
    project: Path, monkeypatch: pytest.MonkeyPatch, rebuild: bool, raises: bool
) -> None:
    two = TwoRebuilds(project, monkeypatch)
    reports, gone = list[SyncReport](), threading.Event()

    def progress(done: int, total: int, message: str) -> None:
        if raises and gone.is_set():
            raise CancelledHereError

    third, raised = aside(
        lambda: reports.append(
            two.index.sync(rebuild=rebuild, progress=progress, should_stop=lambda: gone.is_set() and not raises)
        )
    )
    two.queue.await_arrivals(1)
    gone.set()
    third.join(LONG)  # the first rebuild is held all the while
    assert ([*map(type, raised)], [one.cancelled for one in reports]) == (
        ([CancelledHereError], []) if raises else ([], [True])
    )
    first, second = two.go_on()
    assert (first.cancelled, second.cancelled) == (False, False)
    two.index.close()


@pytest.mark.parametrize("rebuild", [True, False])
def test_damage_found_after_joining_a_rebuild_is_mended_too(
    project: Path, monkeypatch: pytest.MonkeyPatch, rebuild: bool
) -> None:
    two = TwoRebuilds(project, monkeypatch)
    store = store_of(two.index)
    really_files, reports = store.files, list[SyncReport]()
    third, raised = aside(lambda: reports.append(two.index.sync(rebuild=rebuild)))
    two.queue.await_arrivals(1)

    def files() -> object:
        if threading.current_thread() is third and store.epoch == two.first_of_all + 1:
            raise sqlite3.DatabaseError("malformed")
        return really_files()

    monkeypatch.setattr(store, "files", files)
    two.go_on()
    third.join(LONG)
    assert (raised, [one.cancelled for one in reports]) == ([], [False])
    assert (store.epoch, two.index.status().files) == (two.first_of_all + 2, len(SAMPLE))
    two.index.close()


def test_a_rebuild_that_is_stopped_before_it_begins_leaves_the_index_as_it_is(project: Path) -> None:
    index = make_index(project)
    index.sync()
    assert index.sync(rebuild=True, should_stop=lambda: True).cancelled
    assert (store_of(index).epoch, index.status().files) == (0, len(SAMPLE))
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
    assert ready(index)
    assert everything_found(index)
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
    assert (other.status().owner, index.status().owner) == (True, False)
    assert not index.status().owner
    index.close()
    other.close()
