"""A kill behind the renaming of a checkpoint leaves undone nothing that belongs to its submit (SPEC 7)."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from benchmarks.faults import gate
from benchmarks.faults.gate import Fault, Gate
from benchmarks.faults.scenarios import FILES
from benchmarks.faults.watched import GatedServer

from code_intel_server.flow.ports import Author
from code_intel_server.tools.current_project import CurrentProject
from tests.e2e.driver import Fields, Server, git, repository
from tests.e2e.fast_session import edit_and_report, plan, start, to_ready, verify_and_commit

pytestmark = pytest.mark.skipif(bool(gate.missing()), reason=f"no gate before system calls: {gate.missing()}")
Move = Callable[[Server], Fields]


def killed(root: Path, move: Move, when: Callable[[], bool]) -> Fields:
    """Play `move` with a kill at the first call before which `when` is true; the answer to it, sent again to the next server."""
    watched = Gate()
    with GatedServer(root, watched) as server:
        assert server.call("get_session_status")["success"]
        watched.arm(Fault(0, when=when))
        with pytest.raises(EOFError):
            move(server)
        server.wait(20)
    watched.close()
    with Server(root) as server:
        server.call("get_session_status")
        return move(server)


def interrupted(root: Path) -> str:
    """A session that was killed in the middle of its work."""
    with Server(root) as server:
        to_ready(server)
        plan(server)
        session_id = str(server.call("get_session_status")["session_id"])
        server.kill()
    return session_id


def submits(root: Path, session_id: str) -> list[tuple[str, str]]:
    """Phase and event of each accepted submit of a session, as the decision log has them."""
    rows = [json.loads(line) for line in (root / ".code-intel/logs/decisions.jsonl").read_text().splitlines()]
    mine = [row for row in rows if (row["session_id"], row["what"]) == (session_id, "submit")]
    return [(row["phase"], row["event"]) for row in mine if row["verdict"] == "accepted"]


def whose_word(root: Path, choice: str) -> Author:
    """Whose word a choice is that the restored session would ask for now."""
    sessions = CurrentProject(root, root).sessions
    sessions.status()
    assert sessions.active is not None
    user = sessions.ports(sessions.active).user
    sessions.services.close()
    return user.decides("stale_branches", choice, (choice, "continue"))[1]


def test_the_session_of_a_branch_that_was_given_up_goes_with_it_and_the_submit_is_logged_once(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", FILES)
    given_up = interrupted(root)
    with Server(root) as server:
        session_id = start(server, fast=True, no_doc=True)["session_id"]
        server.kill()
    said = {"hook_event_name": "UserPromptSubmit", "cwd": str(root), "session_id": "talk", "prompt": "delete them"}
    subprocess.run([sys.executable, "-m", "code_intel_server", "hook"], input=json.dumps(said), text=True, check=True)
    saved = root / ".code-intel/sessions" / f"{session_id}.json"

    def phase() -> str:
        return str(json.loads(saved.read_bytes())["orchestrator_state"]["phase_state"]["current_phase"])

    answer = killed(root, lambda server: server.submit(choice="delete"), lambda: phase() == "QUERY_FRAME")
    assert answer["decisions"] == {"stale branches: delete": "heard by the hook"}
    assert sorted({file.name.partition(".")[0] for file in saved.parent.glob("*.json")}) == [session_id]
    assert submits(root, session_id) == [("BRANCH_INTERVENTION", "ok")]
    assert whose_word(root, "delete") is Author.AGENT  # what was said before it answers no later question
    assert git(root, "branch", "--list", f"llm_task_{given_up}") == ""


def test_the_session_whose_branch_another_one_merged_goes_with_its_end(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", FILES)
    interrupted(root)
    with Server(root) as server:
        session_id = start(server, fast=True, no_doc=True)["session_id"]
        server.accepted(choice="continue")
        server.accepted(action_type="change")
        server.call("add_explored_files", paths=["app.py"], reason="holds the function to change")
        plan(server)
        edit_and_report(server, root)
        verify_and_commit(server)
        server.kill()
    sessions = root / ".code-intel/sessions"
    merge: Move = lambda server: server.call("submit_phase", data={"summary": "Merged."})  # noqa: E731
    assert killed(root, merge, lambda: not (sessions / f"{session_id}.json").exists())["phase"] == "SESSION_COMPLETE"
    assert not [*sessions.glob("*.json")]


def test_a_stop_at_an_escalation_that_was_killed_comes_to_its_end_when_it_is_sent_again(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", FILES)
    with Server(root) as server:
        to_ready(server)
        session_id = str(server.call("get_session_status")["session_id"])
        escalated(server, root)
        server.kill()
    saved = root / ".code-intel/sessions" / f"{session_id}.json"

    def abandoning() -> bool:
        return b'"abandon' in saved.read_bytes()

    stop = {"prompt_used": "user_escalation", "action_taken": "Asked the user.", "user_decision": "stop"}
    answer = killed(root, lambda server: server.submit(**stop), abandoning)
    assert answer["phase"] == "SESSION_ABANDONED"
    assert not saved.exists() and git(root, "rev-parse", "--abbrev-ref", "HEAD").strip() == "main"
    with Server(root) as server:
        assert start(server, fast=True, no_doc=True)["success"]


def escalated(server: Server, root: Path) -> None:
    """Fail until the user is asked."""
    for number in range(20):
        item = f"Return two, try {number}"
        task = {"id": f"t{number}", "description": "Return two", "status": "pending", "checklist": [item]}
        server.accepted(tasks=[task])
        server.call("check_write_target", path="app.py")
        (root / "app.py").write_text(f"def main():\n    return 2 + {number}\n")
        done = {"item": item, "status": "done", "evidence": "app.py:2", "reason": "The same line, tried again."}
        server.accepted(task_id=f"t{number}", checklist=[done])
        server.accepted(summary="All is done.")
        answer = server.accepted(passed=False, verifier_used="generic", details="looked at it, and it is wrong")
        if answer["phase"] == "VERIFY_INTERVENTION":
            if "user_decision" in answer["expected_payload"]:
                return
            server.accepted(prompt_used="step_back", action_taken="Thought about it.")
    raise AssertionError("nobody was asked")
