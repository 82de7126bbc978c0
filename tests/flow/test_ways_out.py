"""Every refusal of a phase leads out in one step: it is provoked, and then done literally what it says (SPEC 4, contract)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import zip_longest

import pytest

from code_intel_server.contract.loader import Contract
from code_intel_server.contract.retired import RETIRED
from code_intel_server.flow.phases import Flags, GateLevel
from code_intel_server.workspace.values import ProofStatus
from tests.flow.world import Session, World

Fields = dict[str, object]
DONE = {"item": "Item of t1", "status": "done", "evidence": "app.py:2"}
DOCUMENTED = {"documents_reviewed": ["README.md"]}
VERDICT = {"passed": True, "verifier_used": "tests", "details": "green"}
FAILED = {"passed": False, "verifier_used": "tests", "details": "red"}
ELSEWHERE = {
    "common_failures.payload_fits_other_phase": "a hint beside another refusal",
    "common_failures.list_element": "tests/flow/test_pipeline.py: what an element of a list is refused for has its own way out",
    "common_failures.tests_need_reason": "tests/flow/test_seen_tests.py",
    "common_failures.waiver_denied": "tests/flow/test_authors.py",
    "failures.POST_IMPL_VERIFY.tree_changed": "tests/honest/test_sessions.py, the user edits during only_verify",
    "failures.PRE_COMMIT.branch_manager_not_found": "tests/tools/test_lost_branch.py, with a real session",
    "failures.PRE_COMMIT.original_not_kept": "tests/workspace/test_branches_commit.py, with a real file that is too large",
    "failures.PRE_COMMIT.path_invalid": "tests/workspace/test_branches_commit.py, with real paths",
    "failures.PRE_COMMIT.repository_uncommitted": "tests/cheats/test_hidden.py, with a real submodule",
    "failures.PRE_COMMIT.repository_within": "tests/workspace/test_branches_commit.py, with a real repository",
    "failures.READY.repository_uncommitted": "tests/cheats/test_hidden.py, with a real submodule",
    "failures.PRE_COMMIT.tests_changed_need_reason": "tests/cheats/test_weakened.py",
    "failures.PRE_COMMIT.head_moved": "tests/honest/test_remedies.py, with real branches",
    "failures.PRE_COMMIT.branch_gone": "tests/cheats/test_git.py, with real branches",
    "failures.MERGE.head_moved": "tests/honest/test_remedies.py, with real branches",
    "failures.MERGE.uncommitted": "tests/honest/test_sessions.py, with a real merge",
    "failures.MERGE.proof_failed": "tests/cheats/test_git.py, with a real merge",
    "failures.MERGE.quality_review_required": "the table of transitions leads nowhere else",
    "failures.MERGE.branch_manager_not_found": "tests/tools/test_lost_branch.py, with a real session",
    "failures.QUALITY_REVIEW.quality_forced_completion": "no refusal: the third review with issues goes on",
    "failures.VERIFY_INTERVENTION.user_escalation": "no refusal: the instruction of an escalation",
    "failures.VERIFY_INTERVENTION.escalation_count": "no refusal: the instruction of an escalation",
    "failures.PRE_COMMIT.work_undone": "tests/flow/test_undone.py",
    "failures.PRE_COMMIT.proof_failed": "tests/flow/test_submit.py: goes back to the plan by itself",
}
"""Refusals whose way out is walked where what they need is at hand."""


@dataclass(frozen=True)
class Case:
    """Where a session is, what is refused there, what is done then, and what is sent then.

    `says` are the words of the refusal that ask for it, where it names neither a field that is sent otherwise nor a tool that
    is called.
    """

    start: Callable[[], Session]
    bad: Mapping[str, object]
    good: Mapping[str, object]
    meanwhile: Callable[[Session], object] = lambda _session: None
    says: str = ""


def fresh(gate_level: GateLevel = GateLevel.AUTO) -> Session:
    return Session(Flags(gate_level=gate_level))


def framed() -> Session:
    session = Session()
    session.send(**DOCUMENTED)
    return session


def exploring() -> Session:
    session = framed()
    session.frame()
    return session


def full() -> Session:
    """In SEMANTIC, on the road with every gate."""
    session = fresh(gate_level=GateLevel.FULL)
    session.send(**DOCUMENTED)
    session.frame()
    session.explore()
    session.send(needs_more_information=True, reason="There is more to find.")
    return session


def verifying_hypotheses() -> Session:
    session = full()
    session.world.call("semantic_search", "app.py")
    session.send(search_query="x", search_results=["app.py:1"])
    session.send(has_unverified_hypotheses=True, reason="One is open still.")
    return session


def impact() -> Session:
    session = verifying_hypotheses()
    session.send(hypotheses_verified=[{"hypothesis": "h", "result": True, "evidence": "app.py:1"}])
    session.send(needs_impact_analysis=True, reason="Others may use it.")
    return session


def ready() -> Session:
    return Session().to_ready()


def planned(*ids: str) -> Session:
    session = ready()
    session.plan(*(ids or ("t1",)))
    return session


def edited(*ids: str) -> Session:
    session = planned(*ids).edit()
    session.world.call("check_write_target", "app.py")
    return session


def verifying() -> Session:
    return ready().to_verify()


def committing() -> Session:
    session = ready().to_commit()
    session.world.call("review_changes")
    return session


def reviewing_quality() -> Session:
    session = committing()
    session.commit()
    return session


def intervening(rounds: int = 1) -> Session:
    session = ready()
    for turn in range(rounds):
        for failure in range(3):
            name = f"t{turn}{failure}"
            session.plan(name)
            session.edit(text=f"def main():\n    return {turn}{failure}\n").report(name)
            session.send(summary=f"All of {name} is done.")
            session.send(**FAILED, summary=f"Failed {name}.")
        if turn < rounds - 1:
            session.send(prompt_used="step_back", action_taken=f"Thought again {turn}.")
    assert str(session.state.phase) == "VERIFY_INTERVENTION", session.state.phase
    return session


def stale() -> Session:
    return Session(world=World(stale=("llm_task_old",)))


def fails(key: str, operation: str, start: Callable[[], Session]) -> Callable[[], Session]:
    def begin() -> Session:
        session = start()
        session.world.failing[operation] = key
        return session

    return begin


def resolved(session: Session) -> None:
    session.world.failing.clear()


def task(name: str = "t1", **changes: object) -> Fields:
    whole = {"id": name, "description": f"Do {name}", "status": "pending", "checklist": [f"Item of {name}"]}
    return {**whole, **changes}


def reports(**item: object) -> Fields:
    return {"task_id": "t1", "checklist": [{**DONE, **item}]}


def commits(*reviewed: object, **more: object) -> Fields:
    words = {"commit_message": "Add it", "review_prompt_used": "garbage_detection"}
    return {"reviewed_files": [*(reviewed or ("app.py",))], **words, **more}


def wrote(path: str, text: str) -> Callable[[Session], Session]:
    return lambda session: session.edit(path, text)


def before(start: Callable[[], Session], *steps: Callable[[Session], object]) -> Callable[[], Session]:
    def begin() -> Session:
        session = start()
        for step in steps:
            step(session)
        return session

    return begin


def adds(path: str) -> Callable[[Session], None]:
    """`add_explored_files` with a reason."""

    def add(session: Session) -> None:
        state = session.state.draft()
        state.added_files = {**state.added_files, path: "It belongs to this."}
        state.explained_files = [*state.explained_files, path]
        session.state = state

    return add


def looked_up(session: Session) -> None:
    session.world.call("search_text", "app.py")
    session.world.call("get_symbols", "app.py")


def looks(session: Session) -> None:
    session.world.call("review_changes")


HYPOTHESIS = {"hypothesis": "main is called", "result": True, "evidence": "app.py:1"}
STRAY = before(edited, wrote("README.md", "# Other\n"))
IN_COMMIT = "failures.PRE_COMMIT."

CASES: Mapping[str, Case] = {
    "common_failures.summary_required": Case(fresh, {**DOCUMENTED, "summary": " "}, DOCUMENTED),
    "common_failures.tools_used_invalid": Case(fresh, {**DOCUMENTED, "tools_used": "none"}, DOCUMENTED),
    "common_failures.exploration_min_tools": Case(
        before(exploring, lambda one: one.world.call("search_text", "app.py")),
        {"explored_files": ["app.py"], "findings": ["app.py:1 - entry"]},
        {"explored_files": ["app.py"], "findings": ["app.py:1 - entry"]},
        lambda one: one.world.call("find_definitions", "app.py"),
    ),
    "common_failures.required_tools_not_used": Case(
        full, {"search_results": ["app.py:1"]}, {"search_results": ["app.py:1"]},
        lambda one: one.world.call("semantic_search", "app.py"),
    ),
    "common_failures.field_invalid": Case(ready, {"tasks": "t1"}, {"tasks": [task()]}),
    "common_failures.payload_too_large": Case(fresh, {**DOCUMENTED, "summary": "x" * 70_000}, DOCUMENTED),
    "common_failures.text_invalid": Case(fresh, {**DOCUMENTED, "summary": "a\0b"}, DOCUMENTED),
    "failures.BRANCH_INTERVENTION.invalid_choice": Case(stale, {"choice": "keep"}, {"choice": "delete"}),
    "failures.BRANCH_INTERVENTION.merge_not_offered": Case(stale, {"choice": "merge"}, {"choice": "continue"}, says="'delete' and 'continue'"),
    "failures.BRANCH_INTERVENTION.branch_operation_failed": Case(
        fails("failures.BRANCH_INTERVENTION.branch_operation_failed", "retire", stale),
        {"choice": "delete"}, {"choice": "continue"},
        says="'continue' stays open",
    ),
    "failures.DOCUMENT_RESEARCH.empty_documents": Case(fresh, {"documents_reviewed": []}, DOCUMENTED),
    "failures.DOCUMENT_RESEARCH.document_not_found": Case(fresh, {"documents_reviewed": ["NONE.md"]}, DOCUMENTED),
    "failures.QUERY_FRAME.action_type_required": Case(framed, {"action_type": ""}, {"action_type": "add"}),
    "failures.QUERY_FRAME.quote_not_found": Case(
        framed,
        {"action_type": "add", "target_feature": {"value": "page", "quote": "a pie"}},
        {"action_type": "add", "target_feature": {"value": "page", "quote": "a login page"}},
    ),
    "failures.QUERY_FRAME.quote_required": Case(
        framed, {"action_type": "add", "target_feature": {"value": "page", "quote": ""}}, {"action_type": "add"}
    ),
    "failures.EXPLORATION.empty_result": Case(
        before(exploring, looked_up),
        {"explored_files": [], "findings": []},
        {"explored_files": ["app.py"], "findings": ["app.py:1 - entry"]},
    ),
    "failures.EXPLORATION.file_not_found": Case(
        before(exploring, looked_up),
        {"explored_files": ["none.py"], "findings": ["none.py:1 - entry"]},
        {"explored_files": ["app.py"], "findings": ["app.py:1 - entry"]},
    ),
    "failures.SEMANTIC.empty_search_results": Case(
        before(full, lambda one: one.world.call("semantic_search", "app.py")),
        {"search_results": []}, {"search_results": ["app.py:1"]},
    ),
    "failures.SEMANTIC.file_not_found": Case(
        before(full, lambda one: one.world.call("semantic_search", "app.py")),
        {"search_results": ["ap.py:1"]}, {"search_results": ["app.py:1"]}, says="app.py.",
    ),
    "failures.VERIFICATION.empty_hypotheses": Case(
        verifying_hypotheses, {"hypotheses_verified": []}, {"hypotheses_verified": [HYPOTHESIS]}
    ),
    "failures.VERIFICATION.result_false_exists": Case(
        verifying_hypotheses,
        {"hypotheses_verified": [{**HYPOTHESIS, "result": False}]},
        {"hypotheses_verified": [{**HYPOTHESIS, "hypothesis": "main is not called"}]},
    ),
    "failures.VERIFICATION.evidence_invalid": Case(
        verifying_hypotheses,
        {"hypotheses_verified": [{**HYPOTHESIS, "evidence": "I know it"}]},
        {"hypotheses_verified": [{**HYPOTHESIS, "evidence": "find_references"}]},
        lambda one: one.world.call("find_references", "app.py"),
        says="name of the tool",
    ),
    "failures.IMPACT_ANALYSIS.empty_impact_summary": Case(
        before(impact, lambda one: one.world.call("analyze_impact", "app.py")),
        {"impact_summary": {}}, {"impact_summary": {"callers": "none"}},
        lambda one: one.world.call("analyze_impact", "app.py"),
    ),
    "failures.READY.branch_creation_failed": Case(
        fails("failures.READY.branch_creation_failed", "create", ready), {"tasks": [task()]}, {"tasks": [task()]}, resolved,
        says="submit the same plan again",
    ),
    "failures.READY.phase_mismatch_register": Case(framed, {"tasks": [task()]}, {"action_type": "add"}, says="expected_payload"),
    "failures.READY.phase_mismatch_complete": Case(framed, reports(), {"action_type": "add"}, says="expected_payload"),
    "failures.READY.empty_tasks": Case(ready, {"tasks": []}, {"tasks": [task()]}, says="At least one task"),
    "failures.READY.duplicate_task_ids": Case(ready, {"tasks": [task(), task()]}, {"tasks": [task(), task("t2")]}, says="must be unique"),
    "failures.READY.no_pending_tasks": Case(
        before(edited, lambda one: one.report("t1")),
        {"tasks": [task(status="completed")]}, {"tasks": [task(status="completed"), task("t2")]},
    ),
    "failures.READY.task_id_required": Case(ready, {"tasks": [task(id=" ")]}, {"tasks": [task()]}),
    "failures.READY.description_required": Case(ready, {"tasks": [task(description="")]}, {"tasks": [task()]}),
    "failures.READY.checklist_required": Case(ready, {"tasks": [task(checklist=[])]}, {"tasks": [task()]}),
    "failures.READY.checklist_items_duplicate": Case(
        ready, {"tasks": [task(checklist=["a", "a"])]}, {"tasks": [task(checklist=["a", "b"])]}
    ),
    "failures.READY.completed_not_recorded": Case(ready, {"tasks": [task(status="completed")]}, {"tasks": [task()]}, says="Register it as 'pending'"),
    "failures.READY.completed_missing": Case(
        before(edited, lambda one: one.report("t1")),
        {"tasks": [task(), task("t2")]}, {"tasks": [task("t2")]},
    ),
    "failures.READY.plan_too_large": Case(ready, {"tasks": [task(description="x" * 100_000)]}, {"tasks": [task()]}),
    "failures.READY.changes_before_ready": Case(
        before(ready, wrote("README.md", "# Other\n")), {"tasks": [task()]}, {"tasks": [task()]}, adds("README.md"),
        says="add_explored_files",
    ),
    "failures.READY.no_tasks": Case(ready, reports(), {"tasks": [task()]}),
    "failures.READY.unknown_task": Case(edited, {**reports(), "task_id": "t9"}, reports(), says="Registered tasks: t1"),
    "failures.READY.already_completed": Case(
        before(lambda: edited("t1", "t2"), lambda one: one.report("t1")),
        {**reports(), "summary": "Again."},
        {"task_id": "t2", "checklist": [{**DONE, "item": "Item of t2", "reason": "The same line does both."}]},
        says="next_task",
    ),
    "failures.READY.wrong_order": Case(
        lambda: edited("t1", "t2"), {"task_id": "t2", "checklist": [{**DONE, "item": "Item of t2"}]}, reports(),
        says="Report 't1' first",
    ),
    "failures.READY.no_tasks_registered": Case(ready, {"summary": "All is done."}, {"tasks": [task()]}),
    "failures.READY.plan_after_setback": Case(
        before(verifying, lambda one: one.send(**FAILED)),
        {"summary": "All is done."}, {"tasks": [task(status="completed"), task("t2")]},
    ),
    "failures.READY.incomplete_tasks": Case(edited, {"summary": "All is done."}, reports()),
    "failures.READY.checklist_items_mismatch": Case(edited, reports(item="Another"), reports()),
    "failures.READY.checklist_item_pending": Case(edited, reports(status="pending"), reports()),
    "failures.READY.checklist_evidence_required": Case(edited, reports(evidence=""), reports()),
    "failures.READY.checklist_evidence_format_invalid": Case(edited, reports(evidence="app.py"), reports(), says="<file_path>:<line>"),
    "failures.READY.checklist_evidence_file_not_found": Case(edited, reports(evidence="none.py:1"), reports(), says="Verify the file path"),
    "failures.READY.checklist_evidence_line_out_of_range": Case(edited, reports(evidence="app.py:99"), reports(), says="within 1-2"),
    "failures.READY.checklist_evidence_empty_impl": Case(
        before(edited, wrote("app.py", "def main():\n    pass\n")), reports(), reports(),
        wrote("app.py", "def main():\n    return 2\n"),
        says="Add actual implementation code",
    ),
    "failures.READY.checklist_evidence_unchanged": Case(edited, reports(evidence="app.py:1"), reports(), says="lines you changed"),
    "failures.READY.write_not_checked": Case(
        lambda: planned().edit(), reports(), reports(), lambda one: one.world.call("check_write_target", "app.py")
    ),
    "failures.READY.checklist_reason_required": Case(
        edited, reports(status="skipped", evidence=""),
        reports(status="skipped", evidence="", reason="It is not needed after all."),
    ),
    "failures.READY.range_reused_needs_reason": Case(
        before(lambda: edited("t1", "t2"), lambda one: one.report("t1")),
        {"task_id": "t2", "checklist": [{**DONE, "item": "Item of t2"}]},
        {"task_id": "t2", "checklist": [{**DONE, "item": "Item of t2", "reason": "The same line does both."}]},
    ),
    "failures.READY.trivial_needs_reason": Case(
        before(edited, wrote("app.py", "def main():\n    # why\n    return 1\n")),
        reports(), reports(reason="The comment is what was wanted."),
    ),
    "failures.READY.unexplored_changes": Case(STRAY, reports(), reports(), adds("README.md"), says="add_explored_files"),
    "failures.POST_IMPL_VERIFY.unexplored_changes": Case(
        before(verifying, wrote("README.md", "# Other\n")), VERDICT, {**FAILED, "details": "README.md has to stay."}
    ),
    "failures.POST_IMPL_VERIFY.verifier_not_found": Case(verifying, {**VERDICT, "verifier_used": "none"}, VERDICT),
    "failures.POST_IMPL_VERIFY.passed_required": Case(verifying, {"verifier_used": "tests"}, VERDICT),
    "failures.POST_IMPL_VERIFY.details_required": Case(verifying, {**FAILED, "details": ""}, FAILED),
    "failures.POST_IMPL_VERIFY.unknown_failed_tasks": Case(verifying, {**FAILED, "failed_tasks": ["t9"]}, FAILED),
    "failures.POST_IMPL_VERIFY.proof_failed": Case(
        before(verifying, lambda one: setattr(one.world, "proof", ProofStatus.FAILED)), VERDICT, FAILED
    ),
    "failures.VERIFY_INTERVENTION.prompt_not_found": Case(
        intervening, {"prompt_used": "none", "action_taken": "Thought."}, {"prompt_used": "step_back", "action_taken": "x"}
    ),
    "failures.VERIFY_INTERVENTION.action_taken_required": Case(
        intervening, {"prompt_used": "step_back"}, {"prompt_used": "step_back", "action_taken": "Thought."}
    ),
    "failures.VERIFY_INTERVENTION.escalation_prompt_required": Case(
        lambda: intervening(3), {"prompt_used": "step_back", "action_taken": "Thought."},
        {"prompt_used": "user_escalation", "action_taken": "Asked.", "user_decision": "continue"},
    ),
    "failures.VERIFY_INTERVENTION.user_decision_required": Case(
        lambda: intervening(3), {"prompt_used": "user_escalation", "action_taken": "Asked."},
        {"prompt_used": "user_escalation", "action_taken": "Asked.", "user_decision": "stop"},
    ),
    f"{IN_COMMIT}missing_commit_message": Case(committing, commits(commit_message=""), {"revert_reason": "Not good yet."}),
    f"{IN_COMMIT}review_failed": Case(
        committing, commits({"path": "app.py", "decision": "discard"}),
        commits({"path": "app.py", "decision": "discard", "reason": "It is not needed."}),
    ),
    f"{IN_COMMIT}files_not_reviewed": Case(committing, {**commits(), "reviewed_files": []}, commits("*")),
    f"{IN_COMMIT}unexplored_changes": Case(
        before(committing, wrote("README.md", "# Other\n"), looks), commits("app.py", "README.md"),
        commits("app.py", {"path": "README.md", "decision": "leave", "reason": "The user edits it."}),
    ),
    f"{IN_COMMIT}decided_twice": Case(
        committing, commits("app.py", {"path": "app.py", "decision": "discard", "reason": "It is not needed."}), commits()
    ),
    f"{IN_COMMIT}leave_needs_reason": Case(committing, commits({"path": "app.py", "decision": "leave"}), commits(), says="what belongs to the task is kept"),
    f"{IN_COMMIT}changed_meanwhile": Case(
        before(committing, lambda one: one.world.call("review_changes", "app.py", tree=one.ports.tree.snapshot()),
               wrote("app.py", "def main():\n    return 3\n")),
        commits(), commits(), lambda one: one.world.call("review_changes", "app.py", tree=one.ports.tree.snapshot()),
    ),
    f"{IN_COMMIT}shown_in_part": Case(
        before(committing, lambda one: one.world.call("review_changes", tree=one.ports.tree.snapshot(), asks=("app.py",))),
        commits(), commits(), lambda one: one.world.call("review_changes", "app.py", tree=one.ports.tree.snapshot()),
    ),
    f"{IN_COMMIT}review_prompt_not_found": Case(committing, commits(review_prompt_used="none"), commits()),
    f"{IN_COMMIT}finalize_failed": Case(
        fails("failures.PRE_COMMIT.finalize_failed", "commit", committing), commits(), {"revert_reason": "A hook complains."}
    ),
    "failures.QUALITY_REVIEW.issues_required": Case(
        reviewing_quality, {"quality_prompt_used": "quality_review"},
        {"quality_prompt_used": "quality_review", "issues": []},
    ),
    "failures.QUALITY_REVIEW.quality_prompt_not_found": Case(
        reviewing_quality, {"quality_prompt_used": "none", "issues": []},
        {"quality_prompt_used": "quality_review", "issues": []},
    ),
    "failures.QUALITY_REVIEW.tree_changed": Case(
        before(reviewing_quality, wrote("app.py", "def main():\n    return 3\n")),
        {"quality_prompt_used": "quality_review", "issues": []},
        {"quality_prompt_used": "quality_review", "issues": ["app.py changed since the commit"]},
    ),
    "failures.MERGE.merge_failed": Case(
        fails("failures.MERGE.merge_failed", "merge",
              before(reviewing_quality, lambda one: one.send(quality_prompt_used="quality_review", issues=[]))),
        {"summary": "Merged."}, {"summary": "Merged."}, resolved,
        says="Retry submit_phase after resolution",
    ),
}  # fmt: skip


def differing(bad: object, good: object) -> set[str]:
    """The fields, at any depth, that one payload has otherwise than another."""
    if isinstance(bad, list) and isinstance(good, list):
        return {name for old, new in zip_longest(bad, good) for name in differing(old, new)}
    if not isinstance(good, Mapping):
        return set()
    old = bad if isinstance(bad, Mapping) else {}
    names = {name for name in old.keys() | good.keys() if old.get(name) != good.get(name)}
    return names | {inner for name in names for inner in differing(old.get(name), good.get(name))}


@pytest.mark.parametrize("key", sorted(CASES))
def test_what_a_refusal_says_leads_out_in_one_step(key: str) -> None:
    case = CASES[key]
    session = case.start()
    answer = session.send(**case.bad)
    assert answer["success"] is False and session.error == key, (session.error, answer.get("message"))
    assert answer["expected_payload"], "what to send stands in the refusal itself"
    called = len(session.world.calls)
    case.meanwhile(session)
    done = differing(case.bad, case.good) | {call.tool for call in session.world.calls[called:]}
    said = f"{answer['message']} {answer.get('remedy', '')}"
    assert case.says in said if case.says else any(word in said for word in done), (done, said)
    after = session.send(**case.good)
    assert after["success"], (after.get("error"), after.get("message"), after.get("remedy"))


def test_every_refusal_of_a_phase_has_its_way_out() -> None:
    keys = {key for key in Contract.load(None).texts.messages if key.startswith(("failures.", "common_failures."))}
    assert keys - RETIRED.keys() == CASES.keys() | ELSEWHERE.keys()
