"""Skipping and reordering phases."""

import pytest

from tests.e2e.stage import ITEM, REASON, Stage, exploration, plan, report, verdict


@pytest.mark.parametrize(
    "payload",
    [
        plan(),
        report(),
        verdict(),
        {"commit_message": "Done", "reviewed_files": ["app.py"], "review_prompt_used": "garbage_detection"},
        {"issues": [], "quality_prompt_used": "quality_review"},
        {"summary": "Merged."},
    ],
    ids=["plan", "report", "verdict", "commit", "quality", "merge"],
)
def test_the_payload_of_a_later_phase_does_not_lead_there(stage: Stage, payload: dict[str, object]) -> None:
    """Stopped by: the phase is the server's; a payload is judged as the phase it stands in."""
    stage.begin(no_doc=True)
    stage.refused("", **payload)
    assert stage.call("get_session_status")["phase"] == "QUERY_FRAME"


def test_naming_the_wished_phase_in_the_payload_changes_nothing(stage: Stage) -> None:
    """Stopped by: phase fields of a payload are ignored, and named as ignored."""
    stage.begin(no_doc=True)
    wish = {"phase": "MERGE", "current_phase": "MERGE", "step": 19, "next_phase": "MERGE"}
    answer = stage.accepted(action_type="change", **wish)
    assert answer["phase"] == "EXPLORATION"
    assert set(answer["ignored_fields"]) >= set(wish)
    stage.notice()


def test_exploration_cannot_be_left_with_nothing_explored(stage: Stage) -> None:
    """Stopped by: EXPLORATION's payload must name files and findings."""
    stage.framed()
    stage.call("search_text", patterns="main")
    stage.call("get_symbols", path="app.py")
    stage.refused("Exploration results are empty", **exploration())


def test_a_gate_cannot_be_answered_without_a_reason(stage: Stage) -> None:
    """Stopped by: Q1 to Q3 want a boolean and a reason of ten characters."""
    stage.framed()
    stage.explore()
    stage.refused("reason", needs_more_information=False, reason="no")
    stage.refused("", needs_more_information="false", reason=REASON)


def test_a_gate_forced_open_by_full_cannot_be_answered_shut(stage: Stage) -> None:
    """Stopped by: with gate_level full the table leads through the phase whatever the answer."""
    stage.begin(no_doc=True, gate_level="full")
    stage.accepted(action_type="change")
    stage.explore()
    answer = stage.accepted(needs_more_information=False, reason=REASON)
    assert answer["phase"] == "SEMANTIC"
    stage.notice()


def test_flags_cannot_be_added_by_a_second_start(stage: Stage) -> None:
    """Stopped by: one session a process; a second start is refused and the first goes on with its flags."""
    stage.begin(no_doc=True)
    again = stage.call("start_session", query="x", intent="MODIFY", flags={"quick": True, "no_verify": True})
    assert again["error"] == "session_active"
    assert stage.call("get_session_status")["flags"] == ["no_doc"]
    stage.notice()


def test_flags_cannot_be_added_in_a_submit(stage: Stage) -> None:
    """Stopped by: flags are taken at the start only; in a payload they are ignored."""
    stage.begin(no_doc=True)
    answer = stage.accepted(action_type="change", flags={"quick": True}, fast=True)
    assert answer["phase"] == "EXPLORATION"
    assert {"flags", "fast"} <= set(answer["ignored_fields"])
    stage.notice()


def test_the_second_task_cannot_be_reported_before_the_first(stage: Stage) -> None:
    """Stopped by: reports come in the plan's order."""
    stage.ready()
    stage.accepted(**plan("t1", [ITEM], {"id": "t2", "description": "Second", "checklist": ["Second"]}))
    stage.edit()
    stage.refused("wrong_order", **report("t2", item="Second"))


def test_completion_cannot_be_claimed_with_a_task_pending(stage: Stage) -> None:
    """Stopped by: the server's own task list."""
    stage.planned()
    stage.refused("still pending", summary="All done, honestly.", all_complete=True)


def test_a_plan_cannot_declare_its_tasks_completed(stage: Stage) -> None:
    """Stopped by: completed is only what the server recorded."""
    stage.ready()
    done = {"id": "t1", "description": "Task", "status": "completed", "checklist": [ITEM]}
    stage.refused("never reported complete", tasks=[done])


def test_a_pending_task_cannot_be_replanned_as_completed(stage: Stage) -> None:
    """Stopped by: completed is only what the server recorded, in every re-plan."""
    stage.planned()
    done = {"id": "t1", "description": "Task t1", "status": "completed", "checklist": [ITEM]}
    fresh = {"id": "t2", "description": "Task", "status": "pending", "checklist": ["Else"]}
    stage.refused("never reported complete", tasks=[done, fresh])


def test_a_plan_cannot_go_without_a_checklist(stage: Stage) -> None:
    """Stopped by: every task needs items, or nothing would have to be proven."""
    stage.ready()
    stage.refused("no checklist", tasks=[{"id": "t1", "description": "Task", "status": "pending", "checklist": []}])


def test_a_report_cannot_leave_out_or_reword_an_item(stage: Stage) -> None:
    """Stopped by: the reported items must be the plan's, each once."""
    stage.ready()
    stage.accepted(**plan("t1", [ITEM, "Hard part"]))
    stage.edit()
    stage.refused("don't match", **report())
    stage.refused("don't match", **report(item="Easy part"))


def test_a_merge_cannot_come_before_the_commit(stage: Stage) -> None:
    """Stopped by: the order of phases; a summary alone is no commit."""
    stage.unseen()
    stage.refused("review_changes", summary="Merged.")
    stage.call("review_changes")
    stage.refused("commit_message is required", summary="Merged.", tools_used=["review_changes"])
    assert stage.git("log", "--format=%s", "main").strip() == "Initial commit"


def test_the_quality_review_cannot_be_skipped_by_a_merge_payload(stage: Stage) -> None:
    """Stopped by: QUALITY_REVIEW wants issues and a procedure before MERGE is reached."""
    stage.before_quality()
    stage.refused("issues must be a list", summary="Merged.")


def test_a_failed_verdict_cannot_be_replaced_by_a_passed_one(stage: Stage) -> None:
    """Stopped by: a failed verdict leads back to planning, where no verdict is taken; the failure stays counted."""
    stage.completed()
    assert stage.accepted(**verdict(passed=False))["phase"] == "READY"
    stage.refused("needs a new plan before it can be completed", **verdict())
    stage.refused("needs a new plan before it can be completed", summary="There was nothing to fix.")
    assert stage.call("get_session_status")["counters"]["verification_failure_count"] == 1
