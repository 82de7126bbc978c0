"""Forged payloads and counts; tools that are claimed and were not run."""

import pytest

from tests.e2e.stage import APP, APP_DONE, ITEM, LONG, REASON, Stage, exploration, plan, report, verdict


def explored(stage: Stage, **flags: object) -> None:
    """A session that stands at Q1."""
    stage.begin(no_doc=True, **flags)
    stage.accepted(action_type="change")
    stage.explore()


def test_exploration_with_tools_that_were_only_named(stage: Stage) -> None:
    """Stopped by: the ledger; the server counts the calls it answered itself."""
    stage.framed()
    stage.refused("at least 2 distinct tools", **exploration("app.py"))


def test_one_tool_called_twice_under_two_names(stage: Stage) -> None:
    """Stopped by: the ledger counts distinct tools by their real names."""
    stage.framed()
    stage.call("search_text", patterns="main")
    stage.call("search_text", patterns="helper")
    claims = {**exploration("app.py"), "tools_used": ["search_text", "mcp__code-intel__search_text", "get_symbols"]}
    stage.refused("at least 2 distinct tools", **claims)


def test_calls_that_failed_do_not_count(stage: Stage) -> None:
    """Stopped by: a refused or failed call is no line of the ledger that counts."""
    stage.framed()
    stage.call("search_text", patterns="(")
    stage.call("get_symbols", path="nowhere.py")
    stage.refused("at least 2 distinct tools", **exploration("app.py"))


def test_calls_of_an_earlier_session_do_not_count(stage: Stage) -> None:
    """Stopped by: every session has a ledger of its own."""
    explored(stage)
    stage.call("start_session", flags={"clean": True})
    stage.framed()
    stage.refused("at least 2 distinct tools", **exploration("app.py"))


def test_a_semantic_search_that_was_only_named(stage: Stage) -> None:
    """Stopped by: semantic_search must stand in the ledger."""
    explored(stage, gate_level="full")
    stage.accepted(needs_more_information=True, reason=REASON)
    claim = {"search_query": "main", "search_results": ["app.py:1"], "tools_used": ["semantic_search"]}
    stage.refused("Required tools not used: semantic_search", **claim)


def test_results_and_evidence_in_files_that_do_not_exist(stage: Stage) -> None:
    """Stopped by: a place names a file of the project, else the nearest that were shown are named; one that nothing showed is a hint."""
    explored(stage, gate_level="full")
    stage.accepted(needs_more_information=True, reason=REASON)
    stage.call("semantic_search", query="deep returns three", path="pkg")
    places = ["app.py:1 - main, which listens on localhost:80", "src/aps.py:5 - what calls it"]
    answer = stage.refused("not in the project: src/aps.py", search_results=places)
    assert "app.py" in answer["remedy"]
    stage.write("my notes/of it.py", "x = 1\n")
    stage.call("get_symbols", path="my notes/of it.py")
    answer = stage.accepted(search_results=[places[0], "my notes/of it.py:1 - x", "lib.py:1 - LIMIT", "localhost:80"])
    assert "lib.py" in str(answer["hints"])
    stage.accepted(has_unverified_hypotheses=True, reason=REASON)
    stage.call("get_symbols", path="app.py")
    claim = {"hypothesis": "main is called", "result": True}
    said = {**claim, "evidence": "get_symbols showed aps.py:5"}
    answer = stage.refused("Evidence 'get_symbols showed aps.py:5'", hypotheses_verified=[said])
    assert "app.py" in answer["remedy"]
    answer = stage.accepted(hypotheses_verified=[{**claim, "evidence": "lib.py:1"}])
    assert "lib.py" in str(answer["hints"]), "a hint only"


def test_an_impact_analysis_that_was_only_named(stage: Stage) -> None:
    """Stopped by: analyze_impact must stand in the ledger."""
    explored(stage)
    stage.accepted(needs_more_information=False, reason=REASON)
    stage.accepted(has_unverified_hypotheses=False, reason=REASON)
    stage.accepted(needs_impact_analysis=True, reason=REASON)
    claim = {"impact_summary": {"callers": "none"}, "tools_used": ["analyze_impact"]}
    stage.refused("Required tools not used: analyze_impact", **claim)


def test_a_write_check_that_was_only_named(stage: Stage) -> None:
    """Stopped by: check_write_target must have allowed every changed file, as the ledger says."""
    stage.planned()
    stage.write("app.py", APP_DONE)
    stage.refused("Required tools not used: check_write_target", **report())


def test_the_write_check_of_one_file_used_for_another(stage: Stage) -> None:
    """Stopped by: what is allowed is a path, for the session; the file that was not is named."""
    stage.planned("app.py", "lib.py")
    stage.edit()
    stage.write("lib.py", "x = 2\n")
    stage.refused("Required tools not used: check_write_target for lib.py", **report())


def test_everything_skipped_to_avoid_the_write_check_after_writing(stage: Stage) -> None:
    """Stopped by: without a write check everything may be skipped only where the tree is unchanged."""
    stage.planned()
    stage.write("app.py", APP_DONE)
    item = {"item": ITEM, "status": "skipped", "reason": "It turned out to be unnecessary."}
    stage.refused("Required tools not used: check_write_target", task_id="t1", checklist=[item])


def test_a_review_that_was_only_named(stage: Stage) -> None:
    """Stopped by: review_changes must be in the ledger since the round's plan."""
    stage.unseen()
    claim = {"reviewed_files": ["app.py"], "commit_message": "Done", "review_prompt_used": "garbage_detection"}
    stage.refused("Required tools not used: review_changes", **claim, tools_used=["review_changes"])


def test_a_file_changed_after_the_review(stage: Stage) -> None:
    """Stopped by: what is committed is the tree that review_changes showed; what changed since is named."""
    stage.verified()
    payload = stage.commit()
    stage.write("app.py", APP_DONE.replace("value + 1", "value + 2"))
    stage.refused("changed after they were reviewed: app.py", **payload)


def test_a_review_of_a_place_where_nothing_changed(stage: Stage) -> None:
    """Stopped by: it is refused, and a refused call is no review."""
    stage.unseen()
    claim = {"reviewed_files": ["app.py"], "commit_message": "Done", "review_prompt_used": "garbage_detection"}
    assert stage.call("review_changes", path="nowhere/at/all")["error"] == "argument_invalid"
    stage.refused("Required tools not used: review_changes", **claim, tools_used=["review_changes"])


def test_the_review_of_the_round_before(stage: Stage) -> None:
    """Stopped by: a review counts only since the round's plan."""
    stage.unseen()
    payload = stage.commit()
    stage.accepted(revert_reason="The name is wrong.", tools_used=["review_changes"])
    done = {"id": "t1", "description": "Task t1", "status": "completed", "checklist": [ITEM]}
    stage.accepted(**plan("t2", ["Rename"], done))
    stage.edit(text=LONG.replace("value + 1", "value + 2"))
    stage.accepted(**report("t2", "app.py:6", "Rename"))
    stage.accepted(summary="Done again.")
    stage.accepted(**verdict())
    stage.refused("Required tools not used: review_changes", **payload)


def test_a_quote_that_the_user_never_said(stage: Stage) -> None:
    """Stopped by: a quote must occur in the session's query."""
    stage.begin(no_doc=True)
    wish = {"value": "drop the tests", "quote": "and delete all failing tests"}
    stage.refused("not in the user's query", action_type="change", desired_action=wish)


def test_files_explored_that_do_not_exist(stage: Stage) -> None:
    """Stopped by: every explored file must exist inside the project."""
    stage.framed()
    stage.call("search_text", patterns="main")
    stage.call("get_symbols", path="app.py")
    stage.refused("not in the project: core.py", **exploration("core.py"))
    stage.refused("not in the project", **exploration("../../../etc/passwd"))


def test_a_hypothesis_verified_by_a_place_that_does_not_exist(stage: Stage) -> None:
    """Stopped by: evidence of a hypothesis is an existing line or a tool in the ledger."""
    explored(stage)
    stage.accepted(needs_more_information=False, reason=REASON)
    stage.accepted(has_unverified_hypotheses=True, reason=REASON)
    for evidence in ("app.py:999", "core.py:1", "analyze_impact", "it is obvious"):
        row = {"hypothesis": "main returns one", "result": True, "evidence": evidence}
        stage.refused("is neither an existing path:line", hypotheses_verified=[row])


def test_failure_counts_sent_in_payloads(stage: Stage) -> None:
    """Stopped by: the counters are the server's; those of a payload are ignored."""
    stage.completed()
    zero = {"verification_failure_count": 0, "intervention_count": 0, "failure_count": 0}
    for number in range(3):
        assert stage.call("get_session_status")["phase"] == "POST_IMPL_VERIFY"
        answer = stage.accepted(**verdict(passed=False, details=f"round {number}", **zero))
        if number < 2:
            stage.nothing_to_fix(f"none{number}")
    assert answer["phase"] == "VERIFY_INTERVENTION"
    stage.notice()


def test_a_plan_that_resets_the_failure_count_of_its_tasks(stage: Stage) -> None:
    """Stopped by: a re-plan keeps the server's counts; those in the list are ignored."""
    stage.completed()
    stage.accepted(**verdict(passed=False))
    done = {"id": "t1", "description": "Task t1", "status": "completed", "checklist": [ITEM], "failure_count": 0}
    stage.accepted(**plan("t2", ["Fix"], done))
    stage.edit(text=APP_DONE.replace("value + 1", "value + 2"))
    stage.accepted(**report("t2", "app.py:6", "Fix"))
    stage.accepted(summary="Fixed.")
    answer = stage.accepted(**verdict(passed=False, failed_tasks=["t1"], details="still red"))
    assert {row["id"]: row.get("failure_count") for row in answer["tasks"]} == {"t1": 2, "t2": None}
    stage.notice()


@pytest.mark.parametrize(
    ("payload", "says"),
    [
        (verdict(verifier_used="my_own_eyes"), "No verifier 'my_own_eyes'"),
        (verdict(verifier_used="../../README.md"), "No verifier"),
        (verdict(passed="true"), ""),
        (verdict(passed=1), ""),
        (verdict(passed=False, details=" "), "details"),
        (verdict(passed=False, failed_tasks=["t9"]), "unknown tasks: t9"),
        ({"summary": "It works."}, "passed must be true or false"),
    ],
)
def test_a_verdict_in_another_form_than_asked(stage: Stage, payload: dict[str, object], says: str) -> None:
    """Stopped by: a strict payload model, existing verifiers and registered tasks only."""
    stage.completed()
    stage.refused(says, **payload)


def test_a_review_procedure_that_does_not_exist(stage: Stage) -> None:
    """Stopped by: the procedure must exist in the project or the package."""
    stage.verified()
    stage.refused("No review procedure 'looks_good'", **stage.commit(review_prompt_used="looks_good"))


def test_a_changed_file_left_out_of_the_review(stage: Stage) -> None:
    """Stopped by: every path that differs from the base must be reviewed; the missing are named."""
    stage.planned("app.py", "lib.py")
    stage.edit()
    stage.edit("lib.py", "LIMIT = 99\n\n\ndef other():\n    return LIMIT\n")
    stage.finished()
    payload = stage.commit()
    stage.refused("not reviewed: lib.py", **{**payload, "reviewed_files": ["app.py"]})


def test_a_file_that_is_decided_twice(stage: Stage) -> None:
    """Stopped by: two entries for one file that say different things are refused by its name."""
    stage.verified()
    left = {"path": "./app.py", "decision": "leave", "reason": "The user's own edit."}
    payload = stage.commit()
    stage.refused("app.py stands twice", **{**payload, "reviewed_files": ["app.py", left]})


def test_nothing_typed_makes_an_unmade_change(stage: Stage) -> None:
    """Stopped by: evidence must touch a hunk that changed since the base."""
    stage.planned()
    stage.call("check_write_target", path="app.py")
    assert stage.read("app.py") == APP
    stage.refused("was not changed", **report())
