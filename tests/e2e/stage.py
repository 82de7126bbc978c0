"""One agent at work on a small project, for the cheat and the honest matrix: a real server, and a copy of the project for each test.

What a test did is counted, for `benchmarks/enforcement.md`.
"""

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pytest

from code_intel_server.workspace.project.trust import Approvals
from tests.e2e.driver import Fields, Server, git, repository

APP = "def main():\n    return 1\n\n\ndef helper(value):\n    return value + 1\n\n\ndef spare(value):\n    return value - 1\n"
APP_DONE = APP.replace("return 1\n\n\ndef helper", "return 2\n\n\ndef helper")
LONG = APP_DONE + "".join(f"\n\nROW_{number} = {number}\n" for number in range(800))
TESTS = """\
from app import helper, main


def test_main():
    assert main() in {1, 2}


def test_helper():
    assert helper(1) == 2
    assert helper(2) == 3


def test_spare():
    assert helper(0) == 1
"""
FILES = {
    "app.py": APP,
    "lib.py": "LIMIT = 10\n\n\ndef other():\n    return LIMIT\n",
    "pkg/deep.py": "def deep():\n    return 3\n",
    "tests/test_app.py": TESTS,
    "README.md": "# App\n\nSays one.\n",
    ".gitignore": ".env\nbuild/\n__pycache__/\n",
    ".code-intel/config.json": json.dumps({"sync_on_start": False}) + "\n",
}
QUERY = "Make main return two"
ITEM = "Return two"
REASON = "It is needed for this task."
FLOW_TOOLS = {"start_session", "submit_phase", "get_session_status"}
COUNTED = ("calls", "submits", "refusals", "bytes", "flow_bytes")


class Agent(Server):
    """A client that counts what it asks and what it gets."""

    def __init__(self, root: Path, **environment: str) -> None:
        super().__init__(root, **environment)
        self.calls = self.submits = self.refusals = self.bytes = self.flow_bytes = 0

    def call(self, tool: str, **arguments: object) -> Fields:
        """A tool call, counted."""
        answer = super().call(tool, **arguments)
        self.calls += 1
        self.submits += tool == "submit_phase"
        self.refusals += tool == "submit_phase" and not answer["success"]
        size = len(json.dumps(answer, ensure_ascii=False).encode())
        self.bytes += size
        review = len(json.dumps(answer.get("review", ""), ensure_ascii=False).encode()) - 2
        self.flow_bytes += size - review if tool in FLOW_TOOLS else 0
        return answer

    def __enter__(self) -> Self:
        return self


@dataclass
class Mark:
    """When an attack was made and when it was noticed, counted in submits."""

    at: int | None = None
    noticed: int | None = None


class Stage:
    """What an agent does in a session on the small project; every move goes through the real server."""

    def __init__(self, root: Path, agent: Agent) -> None:
        self.root = root
        self.agent = agent
        self.mark = Mark()
        self._before = self._totals()

    # -- the server -------------------------------------------------------------------------------------------------

    def call(self, tool: str, **arguments: object) -> Fields:
        """Any tool."""
        return self.agent.call(tool, **arguments)

    def accepted(self, **data: object) -> Fields:
        """A submit that must be accepted."""
        answer = self.agent.submit(**data)
        said = f"{answer.get('error')}: {answer.get('message')} {answer.get('remedy', '')}"
        assert answer["success"], said
        return answer

    def accepted_list(self, *data: Fields) -> Fields:
        """Submits sent as one list, all of which must be accepted."""
        answer = self.agent.call("submit_phase", data=[{"summary": "Done.", **one} for one in data])
        assert answer["success"] and answer["accepted"] == len(data), answer
        return answer

    def refused(self, says: str, **data: object) -> Fields:
        """A submit that must be refused in these words, leaving the session where it was, with the whole instruction."""
        before = self.agent.call("get_session_status")
        answer = self.agent.submit(**data)
        assert answer["success"] is False, f"accepted, and now in {answer['phase']}"
        said = f"{answer['error']} {answer['message']} {answer.get('remedy', '')}"
        assert says in said, said
        assert answer["phase"] == before["phase"]
        assert answer["instruction"] and answer["expected_payload"]
        self.notice()
        return answer

    def cheat(self) -> None:
        """From here on the attack is in place."""
        self.mark.at = self.agent.submits

    def notice(self) -> None:
        """The server has said so."""
        if self.mark.noticed is None:
            self.mark.noticed = self.agent.submits

    def kill_and_restart(self) -> Fields:
        """Kill the server, start another, restore the session."""
        self.restart()
        return self.call("get_session_status")

    def restart(self) -> None:
        """Kill the server and start another, which restores nothing by itself."""
        self.agent.kill()
        self._replace(Agent(self.root))

    def _replace(self, agent: Agent) -> None:
        old = self.agent
        for name in COUNTED:
            setattr(agent, name, getattr(old, name))
        self.agent = agent

    def counts(self) -> dict[str, int]:
        """What was counted since the stage was set."""
        return {name: now - self._before[name] for name, now in self._totals().items()}

    def _totals(self) -> dict[str, int]:
        return {name: getattr(self.agent, name) for name in COUNTED}

    # -- the session ------------------------------------------------------------------------------------------------

    def begin(self, query: str = QUERY, intent: str = "MODIFY", /, **flags: object) -> Fields:
        """Start a session; it must start."""
        answer = self.call("start_session", query=query, intent=intent, flags=flags)
        assert answer["success"], answer
        return answer

    def framed(self, **flags: object) -> Fields:
        """A session without documents whose request is understood."""
        self.begin(no_doc=True, **flags)
        return self.accepted(action_type="change")

    def finished(self) -> None:
        """The only task is reported, and the work verified."""
        self.accepted(**report())
        self.accepted(summary="Done.")
        self.accepted(**verdict())

    def ready(self, *explored: str, **flags: object) -> None:
        """A fast session (quick where asked) up to its plan, with `app.py` or the named files explained."""
        self.begin(**({} if flags.get("quick") else {"fast": True}), no_doc=True, **flags)
        self.accepted(action_type="change", target_symbols=["main"])
        self.explain(*(explored or ("app.py",)))

    def explain(self, *paths: str) -> None:
        """Widen the writable set."""
        answer = self.call("add_explored_files", paths=[*paths], reason=REASON)
        assert answer.get("added"), answer

    def planned(self, *explored: str, **flags: object) -> None:
        """A session with one task of one item, registered."""
        self.ready(*explored, **flags)
        self.accepted(**plan())

    def reported(self, *explored: str, **flags: object) -> None:
        """A session whose only task is really done and reported."""
        self.planned(*explored, **flags)
        self.edit()
        self.accepted(**report())

    def completed(self, *explored: str, **flags: object) -> None:
        """A session that stands before its verification."""
        self.reported(*explored, **flags)
        self.accepted(summary="All tasks are done.")

    def verified(self, *explored: str, **flags: object) -> None:
        """A session that stands before its commit."""
        self.completed(*explored, **flags)
        self.accepted(**verdict())

    def unseen(self) -> None:
        """A session that stands before its commit and has changed more than an answer shows by itself."""
        self.planned()
        self.edit(text=LONG)
        self.accepted_list(report(), {"summary": "All tasks are done."})
        assert "review" not in self.accepted(**verdict())

    def committed(self, *explored: str, **flags: object) -> None:
        """A session that stands before its merge (quality review skipped by fast)."""
        self.verified(*explored, **flags)
        self.accepted(**self.commit())

    def refused_start(self, phase: str) -> None:
        """A new session does not get past `phase`."""
        assert self.begin()["phase"] == phase

    def nothing_to_fix(self, name: str = "none") -> None:
        """After work was sent back: a plan whose only new task turns out to need nothing."""
        rows = self.call("get_session_status")["tasks"]
        done = [{**row, "checklist": [ITEM]} for row in rows if row["status"] == "completed"]
        self.accepted(**plan(name, ["Look again"], *done))
        self.call("check_write_target", path="app.py")
        item = {"item": "Look again", "status": "skipped", "reason": "Nothing has to change after all."}
        self.accepted(task_id=name, checklist=[item], tools_used=["check_write_target"], summary=f"{name} is done.")
        self.accepted(summary=f"{name}: nothing to fix.")

    def explore(self, *paths: str) -> Fields:
        """The EXPLORATION phase, done as it should be."""
        self.look(*paths)
        return self.accepted(**exploration(*(paths or ("app.py",))))

    def look(self, *paths: str) -> None:
        """The lookups that EXPLORATION asks for."""
        self.call("search_text", patterns="def main")
        for path in paths or ("app.py",):
            self.call("get_symbols", path=path)

    def shut_gates(self) -> Fields:
        """Q1 to Q3, none of which needs anything."""
        return self.accepted_list(*shut_gates())

    def before_quality(self) -> None:
        """A session of all steps but the documents that stands before its quality review."""
        self.framed()
        self.explore()
        self.shut_gates()
        self.accepted(**plan())
        self.edit()
        self.finished()
        assert self.accepted(**self.commit())["phase"] == "QUALITY_REVIEW"

    # -- the files --------------------------------------------------------------------------------------------------

    def write(self, path: str, text: str) -> Path:
        """Write a file as any program of the user's could."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def read(self, path: str) -> str:
        """A file's text."""
        return (self.root / path).read_text(encoding="utf-8")

    def edit(self, path: str = "app.py", text: str = APP_DONE) -> None:
        """Ask, then write: what the instruction wants."""
        assert self.call("check_write_target", path=path)["allowed"]
        self.write(path, text)

    def git(self, *arguments: str) -> str:
        """Git behind the server's back."""
        return git(self.root, *arguments)

    def commit(self, *decisions: object, **more: object) -> Fields:
        """The PRE_COMMIT payload after a review: everything kept unless decided otherwise."""
        rows = self.call("review_changes")["results"]
        decided = {entry["path"] for entry in decisions if isinstance(entry, dict)}
        kept = [row["path"] for row in rows if row["path"] not in decided]
        return {
            "reviewed_files": [*kept, *decisions], "commit_message": "Return two",
            "review_prompt_used": "garbage_detection", "tools_used": ["review_changes"], "summary": "Reviewed.", **more,
        }  # fmt: skip

    # -- the user ---------------------------------------------------------------------------------------------------

    @property
    def approvals(self) -> Approvals:
        """What the user allows, kept outside the project."""
        return Approvals(self.root.parent / "state" / "code-intel")

    def user_wants(self, *commands: list[str], trusted: bool = True, **settings: object) -> None:
        """The user's configuration, committed before the session, trusted or not."""
        config = {"sync_on_start": False, "verify_commands": [*commands], **settings}
        file = self.write(".code-intel/config.json", json.dumps(config))
        if self.git("status", "--porcelain"):
            self.git("commit", "-qam", "Configure")
        if trusted:
            self.approvals.trust(file)


def plan(task: str = "t1", items: list[str] | None = None, *others: Mapping[str, object]) -> Fields:
    """A plan of one task, and of others."""
    first = {"id": task, "description": f"Task {task}", "status": "pending", "checklist": items or [ITEM]}
    return {"tasks": [first, *others], "summary": f"Plan with {task}."}


def report(task: str = "t1", evidence: str = "app.py:2", item: str = ITEM, **more: object) -> Fields:
    """A report of one item with evidence."""
    done = {"item": item, "status": "done", "evidence": evidence, **more}
    return {"task_id": task, "checklist": [done], "tools_used": ["check_write_target"], "summary": f"{task} is done."}


def shut_gates() -> list[Fields]:
    """Q1 to Q3, none of which needs anything."""
    fields = ("needs_more_information", "has_unverified_hypotheses", "needs_impact_analysis")
    return [{field: False, "reason": REASON} for field in fields]


def verdict(*, passed: object = True, **more: object) -> Fields:
    """A verdict of POST_IMPL_VERIFY."""
    words = {"verifier_used": "generic", "details": "looked at it", "summary": "Verified."}
    return {"passed": passed, **words, **more}


def exploration(*paths: str) -> Fields:
    """The payload of EXPLORATION."""
    found = [f"{path}:1 - read" for path in paths]
    return {"explored_files": [*paths], "findings": found, "tools_used": ["search_text", "get_symbols"]}


def work(stage: Stage) -> None:
    """The one task of a plan, done, reported, verified and committed."""
    stage.edit(text=APP_DONE)
    stage.accepted_list(report(), {"summary": "Done."})
    stage.accepted(**verdict())
    stage.accepted(**stage.commit())


def through_every_gate(stage: Stage) -> Fields:
    """A session without a flag in which nothing fails and no gate is needed, from start to merge."""
    stage.begin()
    stage.look()
    stage.call("find_references", symbol="main")
    frame: Fields = {"action_type": "change", "target_symbols": ["main"]}
    planned = plan()
    planned["tasks"][0]["files"] = ["app.py"]
    documents: Fields = {"documents_reviewed": ["README.md"]}
    stage.accepted_list(documents, frame, exploration("app.py"), *shut_gates(), planned)
    stage.write("app.py", APP_DONE)
    stage.accepted_list(report(), {"summary": "Done."})
    assert stage.accepted(**verdict())["review"]
    commit = {"reviewed_files": ["app.py"], "commit_message": "Return two", "review_prompt_used": "garbage_detection"}
    stage.accepted(**commit)
    stage.accepted(issues=[], quality_prompt_used="quality_review")
    return stage.accepted(summary="Merged.")


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project, to be copied."""
    return repository(tmp_path_factory.mktemp("pristine") / "repo", FILES)


@pytest.fixture
def stage(pristine: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Stage]:
    """The project as it is at first; what the test does is counted where somebody wants to know."""
    root = tmp_path / "repo"
    shutil.copytree(pristine, root)
    git(root, "update-index", "-q", "--refresh")
    set_up = Stage(root, Agent(root))
    try:
        yield set_up
    finally:
        set_up.agent.close()
    _record(request, set_up)


def _record(request: pytest.FixtureRequest, stage: Stage) -> None:
    target = os.environ.get("ENFORCEMENT_RECORD")
    if not target:
        return
    row = {"test": request.node.nodeid, "doc": request.node.obj.__doc__ or "", **stage.counts()}
    if stage.mark.noticed is not None:
        at = stage.mark.noticed - 1 if stage.mark.at is None else stage.mark.at
        row["soon"] = stage.mark.noticed - at
    with Path(target).open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
