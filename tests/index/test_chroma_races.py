"""ChromaDB's child ends, is closed or replaced at the moments that matter: nothing is damaged and nothing stays out of work."""

import contextlib
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from code_intel_server.index.code_index import CodeIndex
from code_intel_server.index.vectors.chroma_link import ChromaLink
from code_intel_server.index.vectors.chromadb_manager import ChromaManager
from tests.index.builders import HashEncoder, engine_of, manager_of, ready
from tests.index.cases import Case
from tests.index.holding import LONG, Held, aside


def _vector() -> Any:
    return HashEncoder().encode(["login throttle"], "query")[0]


def _at_the_probe(monkeypatch: pytest.MonkeyPatch, do: Any) -> None:
    """Before each search in ChromaDB something is done."""
    really_ask = ChromaLink.ask

    def ask(self: ChromaLink, head: dict[str, Any], *arguments: Any, **options: Any) -> dict[str, Any]:
        if head["op"] == "near":
            do(self)
        return really_ask(self, head, *arguments, **options)

    monkeypatch.setattr(ChromaLink, "ask", ask)


def test_a_close_while_chromadb_proves_itself_leaves_its_folder_where_it_is(
    local: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held()
    _at_the_probe(monkeypatch, lambda _: held.wait())
    index = local.open()
    manager = manager_of(index)
    manager.kick()
    assert held.entered.wait(LONG)
    link = manager._link
    assert link is not None
    closing, raised = aside(index.close)
    assert link._child.wait(LONG) is not None
    held.go_on.set()
    closing.join(LONG)
    assert (raised, manager.rebuilt) == ([], [])
    assert not (local.root / ".code-intel" / "cache" / "chroma.damaged").exists()


def test_a_child_that_is_killed_once_while_it_proves_itself_is_forgiven(
    local: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[int] = []

    def kill_the_first(link: ChromaLink) -> None:
        if not killed:
            killed.append(link.pid)
            os.kill(link.pid, signal.SIGKILL)

    _at_the_probe(monkeypatch, kill_the_first)
    index = local.open()
    manager_of(index).kick()
    assert ready(index)
    assert (len(killed), manager_of(index).rebuilt) == (1, [])


def test_a_child_that_brings_itself_down_each_time_it_proves_itself_loses_its_folder(
    local: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[int] = []

    def kill_two(link: ChromaLink) -> None:
        if len(killed) < 2:
            killed.append(link.pid)
            os.kill(link.pid, signal.SIGKILL)

    _at_the_probe(monkeypatch, kill_two)
    index = local.open()
    manager_of(index).kick()
    assert ready(index)
    assert "set aside" in manager_of(index).rebuilt[0]


def test_a_folder_is_not_blamed_for_a_store_that_was_replaced_meanwhile(
    local: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = manager_of(local.open())
    store = manager._store
    really_settled = store.settled

    def settled() -> dict[str, int] | None:
        monkeypatch.undo()
        store.rebuild("it is damaged")
        return really_settled()

    monkeypatch.setattr(store, "settled", settled)
    manager.kick()
    assert manager.await_ready(LONG)
    assert (manager.rebuilt, manager.counts()) == ([], {"forest": 0, "map": 0})


def _filled(local: Case) -> tuple[CodeIndex, ChromaManager]:
    index = local.open()
    manager = manager_of(index)
    manager.kick()
    assert ready(index)
    return index, manager


def test_a_child_found_ended_while_there_is_nothing_to_fill_is_replaced(local: Case) -> None:
    _, manager = _filled(local)
    first = manager.child_pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    assert manager.near("forest", _vector(), 5) is None
    assert manager.await_ready(LONG)
    assert manager.child_pid not in {None, first}
    assert manager.near("forest", _vector(), 5) is not None


def test_a_search_in_a_child_that_was_replaced_meanwhile_leaves_the_new_one_alone(
    local: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, manager = _filled(local)
    held = Held()
    first = manager._link
    _at_the_probe(monkeypatch, lambda link: held.wait() if link is first and not held.entered.is_set() else None)
    searching, _ = aside(lambda: manager.near("forest", _vector(), 5))
    assert held.entered.wait(LONG)
    assert first is not None
    os.kill(first.pid, signal.SIGKILL)
    assert manager.near("forest", _vector(), 5) is None
    assert manager.await_ready(LONG)
    second = manager.child_pid
    held.go_on.set()
    searching.join(LONG)
    assert (manager.child_pid, manager.near("forest", _vector(), 5) is not None) == (second, True)


def test_a_thread_that_ends_as_nobody_foresaw_says_so_and_is_replaced(
    local: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, manager = _filled(local)
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    monkeypatch.setattr(manager, "_fill", lambda: 1 / 0)
    manager.kick()
    if (thread := manager._thread) is not None:
        thread.join(LONG)
    assert "ended unexpectedly" in manager.reason
    assert engine_of(index) == "sqlite-vectors+bm25"
    monkeypatch.undo()
    manager.kick()
    assert ready(index)
    assert engine_of(index) == "chromadb+bm25"


def test_a_close_while_the_child_comes_up_ends_it_and_the_thread(local: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[ChromaLink] = []
    asked = threading.Event()
    really_ask = ChromaLink.ask

    def ask(self: ChromaLink, head: dict[str, Any], *arguments: Any, **options: Any) -> dict[str, Any]:
        os.kill(self.pid, signal.SIGSTOP)  # it never answers
        started.append(self)
        asked.set()
        return really_ask(self, head, *arguments, **options)

    monkeypatch.setattr(ChromaLink, "ask", ask)
    index = local.open()
    manager = manager_of(index)
    manager.kick()
    assert asked.wait(LONG)
    thread = manager._thread
    assert thread is not None
    index.close()
    assert not thread.is_alive()
    assert [link._child.returncode is not None for link in started] == [True]
    assert not (local.root / ".code-intel" / "cache" / "chroma.damaged").exists()


def test_a_link_closed_while_it_is_written_to_gives_its_descriptor_to_no_other_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = ChromaLink(tmp_path / "cache")
    number, held, really_write = link._stdin.fileno(), Held(), os.write

    def write(descriptor: int, data: Any) -> int:
        if descriptor == number and not held.entered.is_set():
            held.wait()
        return really_write(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    asking, raised = aside(lambda: link.ask({"op": "count"}, timeout=LONG))
    assert held.entered.wait(LONG)
    closing, _ = aside(link.close)
    assert link._child.wait(LONG) is not None
    closing.join(0.2)
    with contextlib.ExitStack() as files:
        for place in range(64):  # one of them has the number, if it is free
            files.enter_context((tmp_path / f"precious{place}").open("wb"))
        held.go_on.set()
        for thread in (asking, closing):
            thread.join(LONG)
    assert {path.stat().st_size for path in tmp_path.glob("precious*")} == {0}
    assert "ended" in str(raised[0])
