"""What may be written, what was, and who has looked at it: the control tools of a session (SPEC 2, 4)."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.driver import git, repository

from code_intel_server.cli.hook.sessions import led
from code_intel_server.tools import exploration, writing
from code_intel_server.tools.current_project import CurrentProject
from code_intel_server.tools.guard import Guard

FILES = {
    "app.py": "def main():\n    return 1\n",
    "README.md": "# App\n\nSays one.\n",
    ".code-intel/config.json": json.dumps({"sync_on_start": False}),
}
DONE = {"item": "Return two", "status": "done", "evidence": "app.py:2"}
REVIEW = {"commit_message": "Return two", "review_prompt_used": "garbage_detection", "tools_used": ["review_changes"]}


class Client:
    """Calls tools as the server does, without a process between."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.current = CurrentProject(root)
        self.guard = Guard(self.current)

    def submit(self, **data: object) -> dict[str, Any]:
        answer: dict[str, Any] = {**self.current.sessions.submit({"summary": "Done.", "tools_used": [], **data})}  # type: ignore[dict-item]
        return answer

    def accepted(self, **data: object) -> dict[str, Any]:
        answer = self.submit(**data)
        assert answer["success"], answer
        return answer

    def check(self, *paths: str) -> dict[str, Any]:
        return self.guard.call("check_write_target", lambda: writing.check_write_target(self.current, paths)).fields

    def add(self, *paths: str) -> None:
        reason = "It belongs to the change."
        self.guard.call("add_explored_files", lambda: writing.add_explored_files(self.current, paths, reason))

    def review(self, path: str | None = None, limit: int = 50, offset: int = 0) -> dict[str, Any]:
        return self.guard.call(
            "review_changes", lambda: writing.review_changes(self.current, path, limit, offset)
        ).fields

    def planned(self) -> None:
        """A fast session at step 13, with app.py explained."""
        self.current.sessions.start("Make main return two", "MODIFY", {"fast": True, "no_doc": True})
        self.accepted(action_type="change")
        self.add("app.py")
        self.plan()

    def plan(self) -> dict[str, Any]:
        return self.submit(tasks=[{"id": "t1", "description": "Return two", "checklist": ["Return two"]}])

    def reported(self) -> None:
        self.planned()
        self.check("app.py")
        (self.root / "app.py").write_text("def main():\n    return 2\n")
        self.accepted(task_id="t1", checklist=[DONE])


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = Client(repository(tmp_path / "repo", FILES))
    yield made
    made.current.services.close()


def test_a_call_counts_though_the_session_was_changed_while_it_ran(client: Client) -> None:
    """Found by a review: what came back beside add_explored_files was in no ledger, and its tool refused as not used."""
    client.planned()

    def meanwhile() -> dict[str, Any]:
        writing.add_explored_files(client.current, ["README.md"], "It belongs to the change.")
        return {"results": [{"path": "README.md"}]}

    client.guard.call("search_text", meanwhile)
    active = client.current.sessions.active
    assert active is not None
    assert (active.ledger.entries()[-1].tool, active.ledger.entries()[-1].files) == ("search_text", ("README.md",))


def test_many_write_targets_are_answered_each_on_its_own(client: Client) -> None:
    client.planned()
    answer = client.check("app.py", "README.md", "../outside.py", "app.py", "new.py")
    assert answer["allowed"] is False
    rows = {row["path"]: row["allowed"] for row in answer["results"]}
    assert rows == {"app.py": True, "README.md": False, "../outside.py": False, "new.py": True}
    assert "outside of the project" in answer["results"][2]["reason"]
    assert "add_explored_files" in answer["remedy"]


def test_without_exploration_the_files_of_a_plan_are_writable(client: Client) -> None:
    """Found by real agents in quick sessions: their plan named the files, and each had to be named once more."""
    client.current.sessions.start("Make main return two", "MODIFY", {"fast": True, "no_doc": True})
    client.accepted(action_type="change")
    task = {"id": "t1", "description": "Let main return two.", "status": "pending", "checklist": [DONE["item"]]}
    (client.root / "sub/.git/hooks").mkdir(parents=True)
    (client.root / "sub/.git/hooks/post-checkout").write_text("#!/bin/sh\n")
    kept_out = ["../outside.py", ".git/config", "sub/.git/hooks/post-checkout", "far/made.py"]
    answer = client.accepted(tasks=[task | {"files": ["app.py", "made.py", *kept_out]}])
    assert answer["not_writable"] == kept_out
    rows = {row["path"]: row["allowed"] for row in client.check("app.py", "made.py", "README.md")["results"]}
    assert rows == {"app.py": True, "made.py": True, "README.md": False}
    (client.root / "app.py").write_text("def main():\n    return 2\n")
    client.accepted(task_id="t1", checklist=[DONE])


def test_what_a_plan_names_before_it_was_looked_at_needs_the_look_alone(client: Client) -> None:
    """Found by real agents: after the look that the hint asks for came a refusal that wants check_write_target too."""
    client.current.sessions.start("Make main return two", "MODIFY", {"no_doc": True})
    client.accepted(action_type="change")
    for tool in ("search_text", "find_definitions"):
        client.guard.call(tool, lambda: {"results": [{"path": "app.py"}]})
    client.accepted(
        explored_files=["app.py", "README.md"],
        findings=["app.py:1 - main"],
        tools_used=["search_text", "find_definitions"],
    )
    client.accepted(
        needs_more_information=False,
        has_unverified_hypotheses=False,
        needs_impact_analysis=False,
        reason="Nothing else is touched.",
    )
    task = {"id": "t1", "description": "Say two.", "status": "pending", "checklist": ["README says two"]}
    assert client.accepted(tasks=[task | {"files": ["README.md"]}])["not_writable"] == ["README.md"]
    (client.root / "README.md").write_text("# App\n\nSays two.\n")
    done = {"item": "README says two", "status": "done", "evidence": "README.md:3"}
    assert client.submit(task_id="t1", checklist=[done])["unexplored"] == ["README.md"]
    client.guard.call("get_symbols", lambda: {"results": [{"path": "README.md"}]})
    client.accepted(task_id="t1", checklist=[done])


def test_what_a_lookup_has_shown_since_its_claim_is_writable_at_once(client: Client) -> None:
    """Found by a reader: the hook, which judges by the checkpoint, refused a file that get_symbols had just shown."""
    client.planned()
    active = client.current.sessions.active
    assert active is not None
    state = active.state.draft()
    state.unseen_files = ["README.md"]
    client.current.sessions.active = replace(active, state=state)
    client.guard.call("get_symbols", lambda: {"results": [{"path": "README.md"}]})
    assert "README.md" in led(str(client.root), state.session_id).explored


@pytest.mark.parametrize("paths", [(), ("", " "), tuple(f"new_{number}.py" for number in range(101))])
def test_no_write_target_and_too_many_are_refused(client: Client, paths: tuple[str, ...]) -> None:
    client.planned()
    assert "1 to 100 paths" in client.check(*paths)["message"]


def test_a_refused_path_gives_no_permission(client: Client) -> None:
    client.planned()
    client.check("app.py", "README.md")
    (client.root / "app.py").write_text("def main():\n    return 2\n")
    (client.root / "README.md").write_text("# App\n\nSays two.\n")
    assert client.submit(task_id="t1", checklist=[DONE])["unexplored"] == ["README.md"]
    client.add("README.md")
    client.accepted(task_id="t1", checklist=[DONE])


def test_a_resumed_agent_learns_what_is_changed_already(client: Client) -> None:
    client.reported()
    (client.root / "app.py").write_text("import os\n\ndef main():\n    return 2\n")
    expected = [{"path": "app.py", "status": "modified", "lines": "1-2, 4", "task": "t1"}]
    assert client.current.sessions.status()["changed_files"] == expected
    client.current.services.close()
    again = Client(client.root)
    restored: dict[str, Any] = {**again.current.sessions.status()}
    assert (restored["restored"], restored["changed_files"]) == (True, expected)
    again.current.services.close()


def test_what_is_changed_belongs_to_the_tasks_whose_evidence_names_it(client: Client) -> None:
    """Also when everything was edited before the first report: then the tree cannot tell them apart."""
    client.current.sessions.start("Make main return two", "MODIFY", {"fast": True, "no_doc": True})
    client.accepted(action_type="change")
    client.add("app.py", "README.md")
    tasks = [{"id": "t1", "checklist": ["Return two"]}, {"id": "t2", "checklist": ["Say two", "Return an int"]}]
    client.accepted(tasks=[{**task, "description": "Two"} for task in tasks])
    client.check("app.py", "README.md")
    (client.root / "app.py").write_text("def main() -> int:\n    return 2\n")
    (client.root / "README.md").write_text("# App\n\nSays two.\n")
    client.accepted(task_id="t1", checklist=[DONE])
    said = [{"item": "Say two", "status": "done", "evidence": "README.md:3"}]
    typed = [{"item": "Return an int", "status": "done", "evidence": "app.py:1"}]
    client.accepted(task_id="t2", checklist=said + typed)
    assert {row["path"]: row["task"] for row in client.review()["results"]} == {"README.md": "t2", "app.py": "t1, t2"}


def test_changes_are_reviewed_from_step_13_on(client: Client) -> None:
    client.current.sessions.start("Make main return two", "MODIFY", {"fast": True, "no_doc": True})
    assert client.review()["error"] == "phase_blocked"
    client.accepted(action_type="change")
    assert client.review()["error"] == "phase_blocked"
    client.add("app.py")
    client.plan()
    (client.root / "app.py").write_text("def main():\n    return 2\n")
    assert [row["path"] for row in client.review()["results"]] == ["app.py"]


def test_tests_come_behind_what_they_test(client: Client) -> None:
    """Found by an agent: the first page held tests, and the end of the list, the product, was overlooked."""
    client.reported()
    (client.root / "a_test.py").write_text("def test_main():\n    assert True\n")
    assert [row["path"] for row in client.review()["results"]] == ["app.py", "a_test.py"]


def test_what_is_committed_was_looked_at_as_it_is(client: Client) -> None:
    client.reported()
    client.review()
    client.accepted()
    client.accepted(passed=True, verifier_used="generic")
    (client.root / "app.py").write_text("def main():\n    return 3\n")
    (client.root / "junk.txt").write_text("left behind\n")
    files = ["app.py", {"path": "junk.txt", "decision": "discard", "reason": "left behind by a test"}]
    answer = client.submit(reviewed_files=files, **REVIEW)
    assert answer["changed"] == ["app.py"]
    client.review("app.py")
    client.accepted(reviewed_files=files, **REVIEW)
    assert git(client.root, "show", "HEAD:app.py").endswith("3\n")


@pytest.fixture
def refused(client: Client) -> Client:
    """A session whose commit a hook refused, after the commit had archived what it discards."""
    client.reported()
    client.accepted()
    client.accepted(passed=True, verifier_used="generic")
    hook = client.root / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    _refuse_without(client, "junk.txt")
    return client


def _refuse_without(client: Client, name: str) -> None:
    (client.root / name).write_text("left behind\n")
    client.review()
    files: list[Any] = ["app.py", {"path": name, "decision": "discard", "reason": "left behind by a test"}]
    assert not client.submit(reviewed_files=files, **REVIEW)["success"]
    assert not (client.root / name).exists()


def test_what_refused_commits_archived_is_named_by_the_next_one(refused: Client) -> None:
    """Found by a reader: the archive of the first attempt was on disk, and in no answer."""
    _refuse_without(refused, "more.txt")
    (refused.root / ".git/hooks/pre-commit").unlink()
    refused.review()
    first, second = refused.accepted(reviewed_files=["app.py"], **REVIEW)["archived"]
    assert git(refused.root, "show", f"{first}:junk.txt") == "left behind\n"
    assert git(refused.root, "show", f"{second}:more.txt") == "left behind\n"


def test_what_a_refused_commit_archived_is_named_where_the_work_goes_back_to_the_plan(refused: Client) -> None:
    [archive] = refused.accepted(revert_reason="The hook is right: it must be three.")["archived"]
    assert git(refused.root, "show", f"{archive}:junk.txt") == "left behind\n"


def test_what_was_staged_otherwise_for_a_committed_file_is_named(client: Client) -> None:
    client.reported()
    client.accepted()
    client.accepted(passed=True, verifier_used="generic")
    (client.root / "app.py").write_text("def main():\n    return 'staged'\n")
    git(client.root, "add", "app.py")
    (client.root / "app.py").write_text("def main():\n    return 2\n")
    client.review()
    [archive] = client.accepted(reviewed_files=["app.py"], **REVIEW)["archived"]
    assert git(client.root, "show", f"{archive}:app.py").endswith("'staged'\n")


def test_what_was_shown_only_in_part_is_not_kept_before_it_was_seen_whole(client: Client) -> None:
    """Found by a real agent: a review whose answer was cut was taken for a look at all of it."""
    client.reported()
    for number in range(9):
        name = f"long{number}.txt"
        client.add(name)
        (client.root / name).write_text("a line of words\n" * (400 if number == 7 else 1))
    client.accepted()
    client.accepted(passed=True, verifier_used="generic")
    looked = client.review()
    assert (looked["cut"], looked["complete"]) == (["long7.txt"], False)
    answer = client.submit(reviewed_files=["*"], **REVIEW)
    assert (answer["error"], answer["cut"]) == ("review_failed", ["long7.txt"])
    assert "cut" not in client.review("long7.txt")
    client.accepted(reviewed_files=["*"], **REVIEW)


def test_a_page_of_the_changes_shows_the_files_that_are_on_it(client: Client) -> None:
    """Found by a review: one row of many counted for all of them, as if the other pages had been read."""
    client.reported()
    client.add("new.py")
    (client.root / "new.py").write_text("x = 1\n")
    client.accepted()
    client.accepted(passed=True, verifier_used="generic")
    following = client.review(limit=1)["next_offset"]
    answer = client.submit(reviewed_files=["*"], **REVIEW)
    assert (answer["error"], answer["cut"]) == ("review_failed", ["new.py"])
    client.review(limit=1, offset=following)
    client.accepted(reviewed_files=["*"], **REVIEW)


def test_a_look_in_step_13_is_enough_where_nothing_changed_since(client: Client) -> None:
    client.reported()
    client.review()
    client.accepted()
    client.accepted(passed=True, verifier_used="generic")
    client.accepted(reviewed_files=["app.py"], **REVIEW)


@pytest.mark.parametrize("branch", ["", "llm_task_20200101_000000"])
def test_early_changes_that_were_undone_are_none(client: Client, branch: str) -> None:
    """What lay there uncommitted is back as committed, which is what the warning asks for; after `continue` too."""
    if branch:
        git(client.root, "switch", "-qc", branch)
    (client.root / "app.py").write_text("def main():\n    return 7\n")
    (client.root / "draft.py").write_text("x = 1\n")
    client.current.sessions.start("Make main return two", "MODIFY", {"fast": True, "no_doc": True})
    if branch:
        client.accepted(choice="continue")
    client.accepted(action_type="change")
    (client.root / "app.py").write_text("def main():\n    return 8\n")
    assert client.plan()["changed"] == ["app.py"]
    git(client.root, "checkout", "-q", "--", "app.py")
    (client.root / "draft.py").unlink()
    answer = client.plan()
    assert (answer["success"], answer["step"]) == (True, 13)


def test_a_wrong_place_in_a_finding_is_told_with_the_right_one(client: Client) -> None:
    """Over the real symbol cache, as far as it is filled by then, and the real files."""
    (client.root / "shop.py").write_text(
        "class Basket:\n" + "    # what is in it\n" * 40 + "    def total_price(self):\n        return 0\n"
    )
    client.current.sessions.start("Make main return two", "MODIFY", {"no_doc": True})
    client.accepted(action_type="change")
    current = client.current
    client.guard.call(
        "find_definitions",
        lambda: exploration.listed(
            current, 50, 0, lambda found, page: found.find_definitions("total_price", page=page)
        ),
    )
    client.guard.call(
        "search_text",
        lambda: exploration.listed(current, 50, 0, lambda found, page: found.search_text("return", page=page)),
    )
    answer = client.accepted(
        explored_files=["app.py", "shop.py"],
        findings=["shop.py:2 - Basket.total_price", "app.py:9 - the end", "app.py:1 - main() is here"],
        tools_used=["find_definitions", "search_text"],
    )
    assert answer["hints"] == [
        "Basket.total_price is not at shop.py:2; it is at shop.py:42.",
        "app.py:9 does not exist: app.py has 2 lines.",
    ]
