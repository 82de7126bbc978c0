"""An index that is closed while something of it is only beginning, or takes too long to end."""

import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from code_intel_server.codebase.files.ignore import FileListing
from code_intel_server.index import background, code_index
from code_intel_server.index.code_index import CodeIndex
from code_intel_server.index.map import Map
from code_intel_server.index.retrieval import search
from code_intel_server.tools.services import ProjectServices
from tests.index.builders import SAMPLE, HashEncoder, lister, make_index, owns, write_files
from tests.index.holding import LONG, OFF, Held, aside


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write_files(tmp_path, SAMPLE)
    return tmp_path


def _held_in_lister(project: Path, held: Held) -> CodeIndex:
    def listed() -> FileListing:
        held.wait()
        return lister(project)()

    return CodeIndex(project, OFF, encoder=HashEncoder, lister=listed)


def test_a_sync_that_is_just_being_started_is_waited_for(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held, before = Held(), set(threading.enumerate())

    class SlowToStart(threading.Thread):
        def start(self) -> None:
            if self.name == "index-sync":
                held.wait()
            super().start()

    index = make_index(project)
    monkeypatch.setattr(threading, "Thread", SlowToStart)
    starter, _ = aside(index.start)
    assert held.entered.wait(LONG)
    monkeypatch.undo()
    opened = index._opened
    assert opened is not None
    assert opened.background is not None
    closer, raised = aside(opened.background.stop)
    closer.join(0.2)
    held.go_on.set()
    for thread in (starter, closer):
        thread.join(LONG)
    index.close()
    assert raised == []
    assert "index-sync" not in {thread.name for thread in set(threading.enumerate()) - before}


def test_a_sync_that_wants_the_model_while_the_index_is_closed_gets_it_and_ends(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "END_SECONDS", LONG)
    held = Held()
    index = _held_in_lister(project, held)
    index.start()
    assert held.entered.wait(LONG)
    opened = index._opened
    assert opened is not None
    sync, store = opened.background, opened.store
    assert sync is not None
    assert store is not None
    running_at_the_end: list[bool] = []
    really_close = store.close

    def look_and_close() -> None:
        running_at_the_end.append(sync.running)
        really_close()

    monkeypatch.setattr(store, "close", look_and_close)
    closer, raised = aside(index.close)
    assert sync._stop.wait(LONG)
    held.go_on.set()
    closer.join(LONG)
    assert (running_at_the_end, raised) == ([False], [])


def test_a_sync_that_outlives_its_index_leaves_the_file_alone(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = make_index(project)
    first.sync()
    first.close()
    monkeypatch.setattr(background, "END_SECONDS", 0.01)
    held = Held()
    index = _held_in_lister(project, held)
    opened = index._open()
    assert opened.background is not None
    thread = opened.background.start()
    assert held.entered.wait(LONG)
    index.close()
    (project / "new.py").write_text("def new():\n    return 1\n")
    held.go_on.set()
    thread.join(LONG)
    cache = project / ".code-intel" / "cache"
    assert not (cache / "index.sqlite3.damaged").exists()
    with sqlite3.connect(cache / "index.sqlite3") as database:
        assert database.execute("SELECT count(*) FROM files").fetchone() == (len(SAMPLE),)
    database.close()


def test_a_call_that_comes_after_the_close_finds_nothing_and_opens_nothing(project: Path) -> None:
    index = make_index(project)
    index.close()
    answer = index.search("login")
    assert (answer.hits, answer.complete) == ((), False)
    assert "closed" in answer.notes[0]
    assert not (project / ".code-intel").exists()


def test_a_desk_that_was_left_before_its_index_was_made_holds_none(project: Path) -> None:
    services = ProjectServices(project)
    services.close()
    services.index.start()
    other = make_index(project)
    assert owns(other)
    other.close()


def test_a_sync_of_a_caller_that_outlives_its_index_leaves_the_file_alone(project: Path) -> None:
    first = make_index(project)
    first.sync()
    first.close()
    held = Held()
    index = _held_in_lister(project, held)
    (project / "new.py").write_text("def new():\n    return 1\n")
    syncing, raised = aside(index.sync)
    assert held.entered.wait(LONG)
    index.close()
    held.go_on.set()
    syncing.join(LONG)
    assert raised == []
    assert not (project / ".code-intel" / "cache" / "index.sqlite3.damaged").exists()


def test_a_search_that_outlives_its_index_leaves_the_file_alone(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = make_index(project)
    index.sync()
    (project / "src" / "auth" / "throttle.py").write_text("class LoginThrottle:\n    pass\n")
    held, really_find = Held(), search.find

    def find(*arguments: Any, **options: Any) -> object:
        found = really_find(*arguments, **options)
        held.wait()
        return found

    monkeypatch.setattr(code_index, "find", find)
    searching, raised = aside(lambda: index.search("login throttle"))
    assert held.entered.wait(LONG)
    index.close()
    held.go_on.set()
    searching.join(LONG)
    assert raised == []
    assert not (project / ".code-intel" / "cache" / "index.sqlite3.damaged").exists()


def test_what_was_agreed_is_kept_by_an_index_that_is_closed_meanwhile(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = make_index(project)
    held, really_write = Held(), Map.write

    def write(*arguments: Any) -> object:
        held.wait()
        return really_write(*arguments)

    monkeypatch.setattr(Map, "write", write)
    recording, raised = aside(lambda: index.record("Slow logins down", ["LoginThrottle"], []))
    assert held.entered.wait(LONG)
    index.close()
    held.go_on.set()
    recording.join(LONG)
    assert raised == []
    assert len(list((project / ".code-intel" / "agreements").iterdir())) == 1
