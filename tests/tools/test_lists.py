"""Lists of submits on a real project: a log line and a checkpoint each, and a kill at every write on the way (SPEC 2, 7)."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue
from tests.e2e.driver import git, repository

from code_intel_server.tools.current_project import CurrentProject
from code_intel_server.tools.session import endings
from code_intel_server.workspace.state.checkpoints import CheckpointStore

FILES = {"app.py": "def main():\n    return 1\n", ".code-intel/config.json": json.dumps({"sync_on_start": False})}
REASON = "Nothing is left open."
QUESTIONS: list[JsonValue] = [
    {"summary": field, field: False, "reason": REASON}
    for field in ("needs_more_information", "has_unverified_hypotheses", "needs_impact_analysis")
]
REPORT: dict[str, JsonValue] = {"item": "Return two", "status": "done", "evidence": "app.py:2"}
WORK: list[JsonValue] = [
    {"summary": "t1 is done.", "task_id": "t1", "checklist": [REPORT]},
    {"summary": "t2 is done.", "task_id": "t2", "checklist": [{**REPORT, "item": "Check it", "reason": "The same line does both."}]},
    {"summary": "All is done."},
]  # fmt: skip


class Killed(BaseException):
    """The process ends here."""


@pytest.fixture(autouse=True)
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def investigating(root: Path) -> CurrentProject:
    """An investigation that stands at Q1, behind which it ends."""
    current = CurrentProject(root)
    sessions = current.sessions
    sessions.start("Where is main?", "QUESTION", {"no_doc": True})
    assert sessions.submit({"summary": "Framed.", "action_type": "find", "target_symbols": ["main"]})["success"]
    assert sessions.active is not None
    for tool in ("search_text", "get_symbols"):
        sessions.active.ledger.add(tool, "EXPLORATION", "ok", 1, ["app.py"])
    found: JsonValue = {"summary": "Found.", "explored_files": ["app.py"], "findings": ["app.py:1 - main"]}
    assert sessions.submit(found)["phase"] == "Q1"
    return current


def working(root: Path) -> CurrentProject:
    """A quick session whose two tasks are done and not reported; step 14 is its end."""
    current = CurrentProject(root)
    sessions = current.sessions
    sessions.start("Make main return two", "MODIFY", {"quick": True, "no_doc": True, "no_verify": True})
    assert sessions.submit({"summary": "Framed.", "action_type": "change"})["success"]
    active = sessions.active
    assert active is not None
    active.state.added_files["app.py"] = "The file to change."
    tasks: JsonValue = [
        {"id": "t1", "description": "Change", "checklist": ["Return two"]},
        {"id": "t2", "description": "Check", "checklist": ["Check it"]},
    ]
    assert sessions.submit({"summary": "Planned.", "tasks": tasks})["step"] == 13
    active.ledger.add("check_write_target", "READY", "ok", 1, ["app.py"])
    (root / "app.py").write_text("def main():\n    return 2\n")
    return current


def points(monkeypatch: pytest.MonkeyPatch, fatal: int) -> Callable[[], int]:
    """Let the process end before (even numbers) or behind (odd) a write of a list's way; how many writes there were."""
    seen = 0

    def around(really: Callable[..., Any]) -> Callable[..., Any]:
        def write(*arguments: Any, **more: Any) -> Any:
            nonlocal seen
            number, seen = seen, seen + 2
            if number == fatal:
                raise Killed
            done = really(*arguments, **more)
            if number + 1 == fatal:
                raise Killed
            return done

        return write

    for owner, name in ((CheckpointStore, "save"), (CheckpointStore, "delete"), (endings, "write_whole")):
        monkeypatch.setattr(owner, name, around(getattr(owner, name)))
    return lambda: seen


def decided(root: Path) -> list[str]:
    """The phases whose submits the decision log has as accepted."""
    lines = (root / ".code-intel/logs/decisions.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    return [f"{row['phase']} {row['step']}" for row in rows if row["what"] == "submit" and row["verdict"] == "accepted"]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return repository(tmp_path_factory.mktemp("lists") / "template", FILES)


@pytest.fixture
def project(template: Path, tmp_path: Path) -> Iterator[Callable[[], Path]]:
    made = 0

    def another() -> Path:
        nonlocal made
        made += 1
        git(tmp_path, "clone", "-q", str(template), str(tmp_path / f"p{made}"))
        return tmp_path / f"p{made}"

    yield another


def test_each_submit_of_a_list_has_its_log_line_and_its_checkpoint(
    project: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = project()
    current = investigating(root)
    saved: list[str] = []
    really = CheckpointStore.save

    def save(store: CheckpointStore, session_id: str, body: Any) -> int:
        saved.append(body["orchestrator_state"]["phase_state"]["current_phase"])
        return really(store, session_id, body)

    monkeypatch.setattr(CheckpointStore, "save", save)
    answer = current.sessions.submit(QUESTIONS)
    assert (answer["phase"], answer["accepted"]) == ("SESSION_COMPLETE", 3)
    assert saved == ["Q2", "Q3"]
    assert decided(root)[-3:] == ["Q1 6", "Q2 8", "Q3 10"]
    assert current.sessions.submit(QUESTIONS) == answer
    assert current.sessions.submit([*QUESTIONS, {}])["hints"]
    current.services.close()


@pytest.mark.parametrize(("make", "data"), [(investigating, QUESTIONS), (working, WORK)])
def test_a_list_killed_at_any_write_comes_to_the_same_end_when_it_is_sent_again(
    project: Callable[[], Path],
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[Path], CurrentProject],
    data: list[JsonValue],
) -> None:
    """Two checkpoints, the last answer, and the removal of what is over: each may be the last thing a process does."""
    fatal, writes = 0, 8
    while fatal < writes:
        root = project()
        current = make(root)
        with monkeypatch.context() as patched:
            count = points(patched, fatal)
            with pytest.raises(Killed):
                current.sessions.submit(data)
            writes = max(writes, count())
        current.services.close()
        later = CurrentProject(root)
        if later.services.store.usable():
            assert later.sessions.status()["restored"] is True
        answer = later.sessions.submit(data)
        assert (answer["success"], answer["phase"], answer["accepted"]) == (True, "SESSION_COMPLETE", 3), fatal
        assert later.services.store.usable() == () and later.sessions.active is None
        later.services.close()
        fatal += 1
    assert writes == 8


def test_a_cancelled_list_keeps_what_was_accepted_and_goes_on_behind_it(project: Callable[[], Path]) -> None:
    current = investigating(project())
    calls = 0

    def cancelled(_done: float, _total: float, _message: str) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise Killed

    with pytest.raises(Killed):
        current.sessions.submit(QUESTIONS, cancelled)
    assert current.sessions.status()["phase"] == "Q2"
    assert current.sessions.submit(QUESTIONS)["phase"] == "SESSION_COMPLETE"
    current.services.close()
