"""The scripted agent acts on what responses say, and stops where they say nothing (SPEC 4, self-contained responses)."""

from pathlib import Path
from typing import Any

import pytest

from code_intel_server.cli import init
from code_intel_server.cli.proof import SampleWork, prove
from code_intel_server.cli.proof.agent import handshake, run_session
from code_intel_server.cli.proof.script import Edit, Fields, Script, Stuck, ToolCall
from code_intel_server.common.resources import templates_dir
from tests.cli.helpers import project
from tests.e2e.driver import Server


@pytest.fixture
def work(tmp_path: Path) -> SampleWork:
    (tmp_path / "app.py").write_text("x = 1\n")
    return SampleWork(tmp_path, "app.py")


def answer(phase: str, expected: dict[str, str], instruction: str = "", **more: Any) -> Fields:
    return {
        "success": True, "phase": phase, "step": 5, "instruction": instruction, "expected_payload": expected, **more,
    }  # fmt: skip


def test_it_calls_the_tools_that_the_instruction_names_at_once_and_reports_those_that_answered(
    work: SampleWork,
) -> None:
    actions = Script(work).run()
    assert next(actions)[0].tool == "start_session"  # type: ignore[union-attr]
    named = "Use find_definitions or search_text, not submit_phase, and unknown_tool never."
    wanted = actions.send([answer("ANYTHING", {"summary": "str", "tools_used": "list"}, named)])
    assert [call.tool for call in wanted if isinstance(call, ToolCall)] == ["find_definitions", "search_text"]
    (submit,) = actions.send([{"results": [{"path": "app.py", "rows": ["1: x"]}]}, {"success": False, "message": "no"}])
    assert isinstance(submit, ToolCall)
    assert submit.arguments["data"]["tools_used"] == ["find_definitions"]
    assert "app.py:1" in submit.arguments["data"]["summary"]


def test_it_asks_before_writing_and_widens_the_writable_set_where_that_is_the_answer(work: SampleWork) -> None:
    actions = Script(work).run()
    next(actions)
    task = {"id": "t1", "description": "Add it", "checklist": ["the item"]}
    (asked,) = actions.send([answer("READY", {"task_id": "str", "checklist": "list"}, next_task=task)])
    (added,) = actions.send([{"results": [{"path": "app.py", "allowed": False}, {"path": "b.py", "allowed": True}]}])
    (again,), (edit,), (submit,) = (actions.send([{}]) for _ in range(3))
    assert isinstance(asked, ToolCall) and isinstance(added, ToolCall) and isinstance(again, ToolCall)
    assert isinstance(edit, Edit) and isinstance(submit, ToolCall)
    assert asked.tool == "check_write_target"
    assert (added.tool, added.arguments["paths"]) == ("add_explored_files", ["app.py"])
    assert (again.tool, again.arguments["paths"]) == ("check_write_target", ["app.py"])
    assert submit.arguments["data"]["checklist"] == [{"item": "the item", "status": "done", "evidence": "app.py:4-6"}]


@pytest.mark.parametrize(("response", "why"), [
    (answer("ODD", {"horoscope": "str"}), "expects 'horoscope'"),
    ({"success": False, "error": "project_locked", "message": "another client has it"}, "another client has it"),
    (answer("POST_IMPL_VERIFY", {"verifier_used": "str"}), "names none"),
], ids=["a field that nothing explains", "no phase", "a procedure that is not named"])  # fmt: skip
def test_a_response_that_does_not_lead_on_stops_it_with_the_reason(
    work: SampleWork, response: Fields, why: str
) -> None:
    actions = Script(work).run()
    next(actions)
    with pytest.raises(Stuck, match=why):
        actions.send([response])


def test_three_refusals_of_one_phase_stop_it_with_the_reason(work: SampleWork) -> None:
    actions = Script(work).run()
    next(actions)
    refused = answer("EXPLORATION", {"summary": "str"}) | {"success": False, "message": "look closer", "remedy": "do"}
    actions.send([refused])
    actions.send([refused])
    with pytest.raises(Stuck, match="EXPLORATION: look closer do"):
        actions.send([refused])


def test_procedures_are_taken_from_what_the_response_names(work: SampleWork) -> None:
    for given, expected in (
        ({"procedure": {"name": "step_back", "text": ""}}, "step_back"),
        ({"procedures": {"api": "", "generic": ""}}, "generic"),
        ({"resources": [".code-intel/verifiers/tests.md"]}, ".code-intel/verifiers/tests.md"),
    ):
        actions = Script(work).run()
        next(actions)
        (submit,) = actions.send([answer("POST_IMPL_VERIFY", {"verifier_used": "str"}, **given)])
        assert isinstance(submit, ToolCall)
        assert submit.arguments["data"]["verifier_used"] == expected


def test_a_server_that_does_not_start_is_said(tmp_path: Path) -> None:
    with pytest.raises(Stuck):
        handshake(tmp_path, ("/nowhere/at/all",))
    with pytest.raises(Stuck):
        run_session(SampleWork(tmp_path, "app.py"), tmp_path, command=("/nowhere/at/all",))


def test_a_project_of_documents_only_is_proven_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = project(tmp_path / "repo")
    for path in ("app.py", "secrets/vault.py"):
        (root / path).unlink()
    from tests.e2e.driver import git

    git(root, "commit", "-q", "-a", "-m", "Documents only")
    told: list[str] = []
    proof = prove(root, told.append)
    assert proof.phase == "SESSION_COMPLETE"
    assert "code_intel_sample.py" in told[0]


def test_rules_without_a_summary_are_summarised_before_the_first_step(work: SampleWork) -> None:
    actions = Script(work).run()
    next(actions)
    start = answer("ANYTHING", {"summary": "str"}, project_rules={"source": "CLAUDE.md", "summary": ""})
    (read,) = actions.send([start | {"context_update_required": True}])
    assert isinstance(read, ToolCall)
    assert (read.tool, read.arguments["path"]) == ("search_text", "CLAUDE.md")
    ours = "- In the middle of a session, after compaction or a restart: call get_session_status and follow its instruction."
    assert ours in (templates_dir() / "claude" / "CLAUDE.md").read_text(encoding="utf-8")
    rows = [{"path": "CLAUDE.md", "rows": ["1: # Rules", "2: - Keep it small.", f"3: {ours}"]}]
    (update,) = actions.send([{"results": rows}])
    assert isinstance(update, ToolCall)
    assert update == ToolCall("update_context", {"summary": "Rules of CLAUDE.md:\n- Keep it small."})
    (submit,) = actions.send([{"success": True}])
    assert isinstance(submit, ToolCall)
    assert submit.tool == "submit_phase"


def test_a_summary_that_is_refused_stops_it(work: SampleWork) -> None:
    actions = Script(work).run()
    next(actions)
    start = answer("ANYTHING", {"summary": "str"}, project_rules={"source": "AGENTS.md", "summary": ""})
    actions.send([start | {"context_update_required": True}])
    actions.send([{"results": []}])
    with pytest.raises(Stuck, match="update_context: line 3"):
        actions.send([{"success": False, "message": "line 3"}])


def test_a_project_with_rules_of_its_own_is_led_through_and_keeps_their_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.e2e.driver import git

    root = project(tmp_path / "repo", **{"CLAUDE.md": "# Rules\n\n- Keep it small.\n"})
    assert init.main([str(root), "--no-proof", "--no-index", "--yes"]) == 0
    script = run_session(SampleWork(root, "app.py"), root)
    assert script.responses[0]["context_update_required"] is True
    assert script.responses[-1]["phase"] == "SESSION_COMPLETE"
    assert "- Keep it small." in (root / ".code-intel/context.yml").read_text()
    assert git(root, "diff", "--name-only", "HEAD").split() == [".code-intel/context.yml"], "the user's to commit"
    with Server(root) as server:
        again = server.call("start_session", query="Add one more.", intent="IMPLEMENT", flags={})
    assert "context_update_required" not in again
    assert "Keep it small." in again["project_rules"]["summary"]
