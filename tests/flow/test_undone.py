"""What a report showed is judged again against what is to be committed (SPEC 4, PRE_COMMIT)."""

import pytest

from code_intel_server.flow.checks.judgement import Judge
from code_intel_server.flow.checks.ranges import carried
from code_intel_server.flow.handlers.undone import reworked, undone
from code_intel_server.flow.payloads import CommitPayload
from code_intel_server.flow.turn import Turn
from code_intel_server.workspace.values import Hunk
from tests.flow.world import Session, World

TWO = "def main():\n    return 2\n"
DONE = {"item": "Item of t1", "status": "done"}


def verified(text: str = TWO, evidence: str = "app.py:2") -> Session:
    """A session before its commit whose only task was reported with `text` in app.py."""
    session = Session().to_ready("app.py", "README.md").planned("t1")
    session.edit(text=text).report("t1", evidence)
    session.verified()
    assert session.state.phase == "PRE_COMMIT"
    return session


@pytest.mark.parametrize(
    "after",
    [
        "def main():\n    return 1\n",
        "def main():\n    pass  # TODO\n",
        "def main():\n    # return 2\n    return 1\n",
        "def main():\n    return 1\n    return 2\n",
        "def main():\n    raise NotImplementedError\n",
        "def main():\n    if False:\n        return 2\n    return 1\n",
        "",
    ],
    ids=["undone", "todo", "commented", "behind_a_return", "stub", "never", "deleted"],
)
def test_work_that_is_gone_goes_back_to_the_plan_and_is_named_by_item(after: str) -> None:
    session = verified()
    session.edit(text=after).edit("README.md", "# Other\n")
    if not after:
        del session.world.files["app.py"]
    answer = session.commit("app.py", "README.md")
    assert (answer["success"], answer["phase"], answer["step"]) == (True, "READY", 12)
    assert answer["undone"] == ["t1: Item of t1 (app.py:2-2)"]
    assert "t1: Item of t1 (app.py:2-2)" in str(answer["revert_reason"])
    assert session.world.commits == []


@pytest.mark.parametrize(
    "after",
    [
        "# A module.\n\n" + TWO,
        "def main():\n    return 3\n",
        "def main():\n\n    return  2  # two\n",
        "def start():\n    return 2\n",
        "def other():\n    return 1\n\n\ndef main():\n    return other() + 1\n",
    ],
    ids=["moved_down", "changed", "formatted", "renamed", "rewritten"],
)
def test_work_that_only_looks_otherwise_is_committed(after: str) -> None:
    session = verified()
    session.edit(text=after)
    answer = session.commit("app.py")
    assert answer["phase"] == "QUALITY_REVIEW", answer


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ("def main():\n    return 7\n", True),
        ("def main():\n    return None\n", True),
        ("OTHER = 1\n", True),
        ("# A module.\n\n" + TWO, False),
        ("def main():\n\n    return 2  # two\n", False),
    ],
)
def test_what_does_something_else_than_at_its_report_is_said_in_answer_and_trailer(after: str, *, said: bool) -> None:
    session = verified()
    answer = session.edit(text=after).commit("app.py")
    trailers = dict(session.world.commits[-1].trailers)
    assert ("Changed again" in str(answer.get("warning"))) is said
    assert trailers.get("Code-Intel-Reworked", "") == ("t1: Item of t1 (app.py:2-2)" if said else "")


def test_what_a_later_task_reports_anew_is_not_said_to_be_changed_again() -> None:
    session = Session().to_ready("app.py", "README.md").planned("t1", "t2")
    session.edit(text="def main():\n    return 2\n").report("t1")
    session.edit(text="def main():\n    return 2 + 0 * 3\n").report("t2", "app.py:2", reason="It refines the first.")
    session.verified()
    session.commit("app.py")
    assert "Code-Intel-Reworked" not in dict(session.world.commits[-1].trailers)


def test_a_binary_file_that_is_another_than_at_its_report_is_said() -> None:
    session = Session(world=World(files={"app.py": "x = 1\n", "README.md": "#\n", "logo.png": "\0a"})).to_ready(
        "app.py", "logo.png"
    )
    session.plan("t1")
    session.edit("logo.png", "\0b").report("t1", "logo.png:1")
    session.verified()
    session.edit("logo.png", "\0c").commit("logo.png")
    assert dict(session.world.commits[-1].trailers)["Code-Intel-Reworked"] == "t1: Item of t1 (logo.png:1-1)"


def test_work_that_moved_to_another_file_is_committed() -> None:
    session = verified("def main():\n    value = compute(2)\n    return value\n", "app.py:2-3")
    session.edit(text="from lib import main\n").edit(
        "lib.py", "def main():\n    value = compute(2)\n    return value\n"
    )
    assert session.commit("app.py", "lib.py")["phase"] == "QUALITY_REVIEW"


MOVED = "    value = compute(2)\n    return value\n"


def test_work_that_was_put_back_here_and_stands_in_another_file_is_committed() -> None:
    session = verified(f"def main():\n{MOVED}", "app.py:2-3")
    session.edit(text="def main():\n    return 1\n").edit("lib.py", f"def other():\n{MOVED}")
    answer = session.commit("app.py", "lib.py")
    assert answer["phase"] == "QUALITY_REVIEW", answer


def test_a_line_of_one_letter_is_found_nowhere_else() -> None:
    session = verified("def main():\n    return (\n        2\n    )\n", "app.py:3")
    session.edit(text="def main():\n    return 1\n").edit("lib.py", "X = (\n    2\n)\n")
    assert session.commit("app.py", "lib.py")["undone"] == ["t1: Item of t1 (app.py:3-3)"]


def test_work_that_is_gone_is_not_what_changed_elsewhere_in_the_file() -> None:
    session = verified()
    session.edit(text="X = 1\n\n\ndef main():\n    return 1\n")
    assert session.commit("app.py")["undone"] == ["t1: Item of t1 (app.py:2-2)"]


def test_without_a_snapshot_nobody_can_tell_what_was_undone() -> None:
    session = verified()
    turn = Turn(session.state, CommitPayload(summary="Done."), session.ports)
    judge = Judge.at(session.state, session.ports, "")
    assert not undone(turn, judge, ()) and not reworked(judge, ())


def test_an_empty_override_is_work_with_a_reason() -> None:
    session = Session().to_ready("app.py").planned("t1")
    body = "class A:\n    def run(self):\n        return 1\n\n\nclass B(A):\n    def run(self):\n        pass\n"
    assert not session.edit(text=body).report("t1", "app.py:8")["success"]
    assert session.report("t1", "app.py:8", reason="B must do nothing here.")["success"]


def test_a_reason_for_the_file_commits_without_the_work_and_says_so() -> None:
    session = verified()
    session.edit(text="def main():\n    return 1\n").edit("README.md", "# Other\n")
    entry = {"path": "app.py", "decision": "keep", "reason": "The user wants one after all."}
    answer = session.commit(entry, "README.md")
    assert answer["phase"] == "QUALITY_REVIEW"
    assert "The user wants one after all." in str(answer["warning"])
    assert ("Code-Intel-Undone", "t1: Item of t1 (app.py:2-2): The user wants one after all.") in session.world.commits[
        -1
    ].trailers


@pytest.mark.parametrize("status", ["done", "skipped"])
def test_a_task_that_repeats_the_item_settles_it(status: str) -> None:
    session = verified()
    session.edit(text="def main():\n    return 1\n").edit("README.md", "# Other\n")
    session.commit("app.py", "README.md")
    recorded = {"id": "t1", "description": "Do t1", "status": "completed"}
    session.send(tasks=[recorded, {"id": "t2", "description": "Again", "checklist": ["Item of t1"]}])
    session.world.call("check_write_target", "app.py", "README.md")
    if status == "done":
        session.edit()
    answer = session.send(
        task_id="t2",
        checklist=[
            {
                **DONE,
                "status": status,
                "evidence": "app.py:2",
                "reason": None if status == "done" else "It is not wanted any more.",
            }
        ],
    )
    assert answer["success"], answer
    session.verified()
    assert session.commit("app.py", "README.md")["phase"] == "QUALITY_REVIEW"


def test_what_is_left_or_discarded_is_not_in_the_commit_and_its_reason_is_kept() -> None:
    session = verified()
    session.edit("README.md", "# Other\n")
    leave = {"path": "app.py", "decision": "leave", "reason": "The user is still at it."}
    answer = session.commit(leave, "README.md")
    assert answer["phase"] == "QUALITY_REVIEW", answer
    assert session.state.undone == {"t1: Item of t1 (app.py:2-2)": "The user is still at it."}


def test_a_dropped_task_and_one_of_which_all_is_skipped_are_said_in_the_trailers() -> None:
    session = Session(world=World()).to_ready("app.py", "README.md").planned("t1", "t2", "t3")
    session.plan("t1", "t2")
    session.edit().report("t1")
    session.edit("README.md", "# Other\n")
    session.world.call("check_write_target", "README.md")
    skipped = {"item": "Item of t2", "status": "skipped", "reason": "It was not needed."}
    assert "although every item" in str(session.send(task_id="t2", checklist=[skipped])["warning"])
    session.verified()
    session.commit("app.py", "README.md")
    trailers = dict(session.world.commits[-1].trailers)
    assert (trailers["Code-Intel-Dropped"], trailers["Code-Intel-Only-Skipped"]) == ("t3", "t2")


def test_a_range_is_carried_through_later_changes_with_what_took_its_place() -> None:
    assert carried([], 3, 4) == (3, 4)
    assert carried([Hunk(1, 0, 2, 5)], 3, 4) == (8, 9)
    assert carried([Hunk(3, 2, 3, 6)], 3, 4) == (3, 8)
    assert carried([Hunk(3, 1, 3, 0)], 2, 4) == (2, 3)


def test_what_a_later_round_takes_back_is_committed_and_said() -> None:
    session = verified()
    session.commit("app.py")
    session.send(issues=["It was better before."], quality_prompt_used="quality_review")
    session.plan("fix1")
    session.edit(text="def main():\n    return 1\n")
    session.edit("login.py", "def login():\n    return True\n").report("fix1", "login.py:1-2")
    session.send(summary="Taken back.")
    session.send(passed=True, verifier_used="tests", details="green")
    answer = session.commit("login.py")
    assert answer["phase"] == "QUALITY_REVIEW"
    gone = "these lines are gone since a later round, which may do it elsewhere"
    assert f"t1: Item of t1 (app.py:2-2): {gone}" in str(answer["warning"])


def test_code_that_is_too_large_for_a_syntax_tree_is_said_not_to_be_judged_by_it() -> None:
    session = Session().to_ready("app.py", "README.md").planned("t1")
    answer = session.edit(text="# one more comment\n" * 60_000 + TWO).report("t1", "app.py:60002")
    assert "syntax tree: app.py" in str(answer["warning"])
