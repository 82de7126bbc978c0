"""Payloads of the right form that say nothing: every phase asks for what it is there for."""

from tests.e2e.stage import ITEM, REASON, Stage, plan, report, verdict


def test_a_choice_that_nobody_offered(stage: Stage) -> None:
    """Stopped by: three choices, and `merge` only where HEAD is on a task branch whose base is known."""
    stage.git("branch", "llm_task_20200101_000000")
    assert stage.begin(no_doc=True)["phase"] == "BRANCH_INTERVENTION"
    stage.refused("choice must be", choice="ignore")
    stage.refused("merge is not possible", choice="merge")


def test_documents_that_were_not_read_or_do_not_exist(stage: Stage) -> None:
    """Stopped by: where the project has documents some must be named, and those named must exist."""
    stage.begin()
    stage.refused("Read the specified documents", documents_reviewed=[])
    stage.refused("not in the project", documents_reviewed=["README.md", "docs/architecture.md"])


def test_a_frame_without_an_action_or_with_a_wish_unquoted(stage: Stage) -> None:
    """Stopped by: what is wanted must be said, and what the user is said to have said must be quoted."""
    stage.begin(no_doc=True)
    stage.refused("action_type is required", action_type=" ")
    stage.refused("no quote", action_type="change", desired_action={"value": "drop the tests", "quote": " "})


def test_a_submit_without_a_summary_or_with_one_that_nobody_can_see(stage: Stage) -> None:
    """Stopped by: every phase wants a summary that a reader sees."""
    stage.begin(no_doc=True)
    stage.refused("summary is required", action_type="change", summary="  ", tools_used=[])
    stage.refused("summary is required", action_type="change", summary="\u200b\u2060")
    stage.refused("tools_used must be a list", action_type="change", tools_used="all")


def test_a_search_an_impact_or_a_hypothesis_that_says_nothing(stage: Stage) -> None:
    """Stopped by: empty results only where the server's own search was empty; an impact and hypotheses never."""
    stage.begin(no_doc=True, gate_level="full")
    stage.accepted(action_type="change")
    stage.explore()
    stage.accepted(needs_more_information=True, reason=REASON)
    found = stage.call("semantic_search", query="main returns one")
    assert found["results"]
    searched = {"search_query": "main", "tools_used": ["semantic_search"]}
    stage.refused("Search results are empty", search_results=[], **searched)
    stage.accepted(search_results=["app.py:1"], **searched)
    stage.accepted(has_unverified_hypotheses=True, reason=REASON)
    stage.refused("Verification results are empty", hypotheses_verified=[])
    doubt = {"hypothesis": "main is called once", "evidence": "app.py:1"}
    stage.refused("result=false exist", hypotheses_verified=[{**doubt, "result": False}])
    stage.accepted(hypotheses_verified=[{**doubt, "result": True}])
    stage.accepted(needs_impact_analysis=True, reason=REASON)
    stage.call("analyze_impact", targets=["main"])
    stage.refused("Impact analysis results are empty", impact_summary={}, tools_used=["analyze_impact"])


def test_tasks_sent_before_their_phase(stage: Stage) -> None:
    """Stopped by: plans and reports are taken in READY only, wherever else they come."""
    stage.begin(no_doc=True)
    stage.refused("only allowed in READY phase", **plan())
    stage.refused("only in READY phase", **report())


def test_a_plan_that_leaves_nothing_to_prove(stage: Stage) -> None:
    """Stopped by: tasks with ids, descriptions and checklists of their own, and one of them to be done."""
    stage.ready()
    stage.refused("At least one task is required", tasks=[])
    stage.refused("must be unique", **plan("t1", [ITEM], {"id": "t1", "description": "Again", "checklist": [ITEM]}))
    stage.refused("has no description", tasks=[{"id": "t1", "description": " ", "checklist": [ITEM]}])
    stage.refused("no checklist", **plan("t1", [ITEM, " "]))
    stage.refused("twice", **plan("t1", [ITEM, ITEM]))
    skipped = {"item": ITEM, "status": "skipped", "reason": "It turned out to be unnecessary."}
    stage.refused("No tasks registered", task_id="t1", checklist=[skipped], summary="Done.")


def test_a_plan_or_report_that_forgets_or_repeats_what_was_done(stage: Stage) -> None:
    """Stopped by: recorded tasks stay in every plan, named or not; none is reported twice, none that was not planned."""
    stage.ready()
    stage.accepted(**plan("t1", [ITEM], {"id": "t2", "description": "Second", "checklist": ["Second"]}))
    stage.edit()
    stage.refused("not found", **report("t9"))
    stage.accepted(**report())
    stage.edit()
    stage.refused("already completed", **report(reason="Once more."))
    done = {"id": "t1", "description": "Task t1", "status": "completed", "checklist": [ITEM]}
    stage.refused("cannot be pending again", **plan("t3", ["Third"], {**done, "status": "pending"}))
    stage.refused("must have status 'pending'", tasks=[done])
    assert stage.accepted(**plan("t3", ["Third"]))["task_progress"] == "1/2", "what was done stays recorded"


def test_evidence_that_names_no_place(stage: Stage) -> None:
    """Stopped by: evidence is an existing file and a line in it, in a form that can be read."""
    stage.planned()
    stage.edit()
    stage.refused("requires evidence", **report(evidence=""))
    stage.refused("invalid format", **report(evidence="in main, of course"))
    stage.refused("file not found", **report(evidence="nowhere.py:1"))
    stage.refused("file not found", **report(evidence="../outside.py:1"))


def test_a_verdict_that_is_none(stage: Stage) -> None:
    """Stopped by: passed is true or false."""
    stage.completed()
    stage.refused("passed must be true or false", **verdict(passed=None))


def test_an_intervention_that_did_nothing(stage: Stage) -> None:
    """Stopped by: a procedure that exists and what came of it; after two, the user's own decision."""
    stage.completed()
    rounds = 0

    def fail_until_it_is_due() -> None:
        nonlocal rounds
        while stage.accepted(**verdict(passed=False, details=f"Round {rounds}."))["phase"] == "READY":
            rounds += 1
            stage.nothing_to_fix(f"fix{rounds}")
        rounds += 1

    for _ in range(2):
        fail_until_it_is_due()
        stage.refused("No intervention prompt", prompt_used="wishful_thinking", action_taken="Thought again.")
        stage.refused("action_taken must say", prompt_used="step_back", action_taken=" ")
        stage.accepted(prompt_used="step_back", action_taken="Read it again.")
        stage.nothing_to_fix(f"after{rounds}")
    fail_until_it_is_due()
    stage.refused("must be the escalation", prompt_used="step_back", action_taken="Read it again.")
    asked = {"prompt_used": "user_escalation", "action_taken": "Asked."}
    stage.refused("user_decision must be", **asked)
    stage.refused("user_decision must be", **asked, user_decision="whatever")


def test_decisions_about_files_without_a_reason(stage: Stage) -> None:
    """Stopped by: keep, discard or leave; the last two with a reason."""
    stage.verified()
    stage.refused("keep, discard or leave", **stage.commit({"path": "app.py", "decision": "hide", "reason": REASON}))
    stage.refused("missing reason", **stage.commit({"path": "app.py", "decision": "discard", "reason": " "}))
    stage.refused("left without a reason", **stage.commit({"path": "app.py", "decision": "leave", "reason": " "}))


def test_a_quality_review_by_no_procedure(stage: Stage) -> None:
    """Stopped by: a list of issues, found by a procedure that exists."""
    stage.before_quality()
    stage.refused("issues must be a list", quality_prompt_used="quality_review", issues=None)
    stage.refused("No review procedure", quality_prompt_used="a_glance", issues=[])
