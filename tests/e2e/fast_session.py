"""A small repository and the moves of a short session in it, which many tests take."""

from pathlib import Path

from tests.e2e.driver import Fields, Server

FILES = {
    "app.py": "def main():\n    return 1\n",
    "README.md": "# App\n\nSays one.\n",
    "CLAUDE.md": "# Rules\n\n- Keep it small.\n",
    ".gitignore": ".env\n",
}


def start(server: Server, **flags: object) -> Fields:
    answer = server.call("start_session", query="Make main return two", intent="MODIFY", flags=flags)
    assert answer["success"], answer
    return answer


def to_ready(server: Server) -> None:
    """A fast session up to its plan, with app.py explained."""
    start(server, fast=True, no_doc=True)
    server.accepted(action_type="change", target_symbols=["main"])
    added = server.call("add_explored_files", paths=["app.py"], reason="holds the function to change")
    assert added["added"] == ["app.py"]


def plan(server: Server) -> Fields:
    task = {"id": "t1", "description": "Return two", "status": "pending", "checklist": ["Return two"]}
    return server.accepted(tasks=[task])


def edit_and_report(server: Server, root: Path) -> Fields:
    assert server.call("check_write_target", path="app.py")["allowed"]
    (root / "app.py").write_text("def main():\n    return 2\n")
    item = {"item": "Return two", "status": "done", "evidence": "app.py:2"}
    return server.accepted(task_id="t1", checklist=[item], tools_used=["check_write_target"])


def finish(server: Server, root: Path) -> Fields:
    """From the plan to the merge of a fast session."""
    plan(server)
    edit_and_report(server, root)
    verify_and_commit(server)
    return server.call("submit_phase", data={"summary": "Merged."})


def verify_and_commit(server: Server) -> None:
    """From the completion of the plan to the merge."""
    server.accepted(summary="All is done.")
    server.accepted(passed=True, verifier_used="generic", details="looked at it")
    commit_all(server)


def commit_all(server: Server, message: str = "Return two") -> Fields:
    """Review what changed and commit all of it."""
    paths = [row["path"] for row in server.call("review_changes")["results"]]
    words = {"commit_message": message, "review_prompt_used": "garbage_detection", "tools_used": ["review_changes"]}
    return server.accepted(reviewed_files=paths, **words)
