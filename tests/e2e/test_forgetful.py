"""An agent that knows nothing but one response can go on from it, whichever of its forms it came in (SPEC 4)."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

from code_intel_server.cli.proof import SampleWork
from code_intel_server.cli.proof.script import Edit, Fields, Script, TaskEdits
from tests.e2e.driver import Server, repository

AS_BEFORE = "As before; get_session_status repeats it."


class TwoTasks(SampleWork):
    """A piece of work with a task behind the first, in the same step."""

    def tasks(self, response: Fields) -> list[Fields]:
        """Two tasks of one item each."""
        del response
        return [{"id": name, "description": f"Add {name}", "checklist": [f"Item of {name}"]} for name in ("t1", "t2")]

    def implement(self, task: Fields) -> TaskEdits:
        """A function of the task's own name."""
        change = super().implement(task)
        (edit,) = change.edits
        added = edit.after.removeprefix(edit.before).replace(self.symbol, f"{self.symbol}_{task['id']}")
        return replace(change, edits=(replace(edit, after=edit.before + added),))


def payload_from(response: Fields, server: Server, work: SampleWork) -> Fields:
    """What an agent that has just this response comes to submit."""
    actions = Script(work).go_on(response)
    wanted = next(actions)
    while True:
        results: list[Fields] = []
        for action in wanted:
            if isinstance(action, Edit):
                (server.root / action.path).write_text(action.after, encoding="utf-8")
                results.append({})
            elif action.tool == "submit_phase":
                data: Fields = action.arguments["data"]
                return data
            else:
                results.append(server.call(action.tool, **action.arguments))
        wanted = actions.send(results)


def test_every_single_response_is_enough_to_go_on_from(tmp_path: Path) -> None:
    """From a first answer, from a refusal, and from an answer that was lost and sent again, in turn."""
    root = repository(tmp_path / "repo", {"app.py": "x = 1\n", "docs/design.md": "# Design\n"})
    work = TwoTasks(root, "app.py")
    forms: Counter[str] = Counter()
    with Server(root) as server:
        response = server.call("start_session", query=work.query, intent=work.intent, flags=dict(work.flags))
        for turn in range(60):
            if turn % 3 == 1:
                response = server.call("submit_phase", data={"summary": ""})
                assert response["success"] is False and response["instruction"] == AS_BEFORE
            data = payload_from(response, server, work)
            answer = server.call("submit_phase", data=data)
            assert answer["success"], answer
            again = server.call("submit_phase", data=data)
            assert AS_BEFORE not in again["instruction"]
            if answer["phase"] == "SESSION_COMPLETE":
                assert again == answer
                break
            same_step = answer["instruction"] == AS_BEFORE
            forms.update({"refused": turn % 3 == 1, "next task": same_step, "entered": not same_step})
            assert same_step is (answer["step"] == 13 and answer["task_progress"] == "1/2")
            for kept in ("phase", "step", "call", "expected_payload"):
                assert answer[kept] == again[kept]
            response = again if turn % 3 == 2 else answer
    assert answer["phase"] == "SESSION_COMPLETE"
    assert all(forms.values()), forms
