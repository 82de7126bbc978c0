"""Clauses of SPEC 4 that are easily lost: exact borders, whose failures count, what is measured from where."""

import pytest

from code_intel_server.flow.payloads import FIELD_LIMIT, ITEM_LIMIT, PLAN_LIMIT
from code_intel_server.flow.phases import Flags
from code_intel_server.workspace.values import CommandRun, ProofStatus
from tests.flow.world import Session, World


def test_the_limits_are_those_of_the_specification() -> None:
    assert (FIELD_LIMIT, PLAN_LIMIT, ITEM_LIMIT) == (64 * 1024, 96 * 1024, 2000)


@pytest.mark.parametrize(("size", "accepted"), [(FIELD_LIMIT, True), (FIELD_LIMIT + 1, False)])
@pytest.mark.parametrize("character", ["x", "é"])
def test_a_field_holds_64_kb_to_the_byte(size: int, accepted: bool, character: str) -> None:
    session = Session()
    width = len(character.encode())
    summary = character * (size // width) + "x" * (size % width)
    answer = session.send(documents_reviewed=["README.md"], summary=summary)
    assert answer["success"] is accepted
    if not accepted:
        assert (answer["error"], session.error) == ("payload_too_large", "common_failures.payload_too_large")
        assert "summary is too large: at most 64 KB" in str(answer["message"])


@pytest.mark.parametrize(("items", "accepted"), [(ITEM_LIMIT, True), (ITEM_LIMIT + 1, False)])
def test_a_field_holds_2000_items(items: int, accepted: bool) -> None:
    answer = Session().send(documents_reviewed=["README.md"] * items)
    assert answer["success"] is accepted
    assert accepted or "documents_reviewed is too large: at most 2000 items" in str(answer["message"])


@pytest.mark.parametrize(("more", "accepted"), [(0, True), (1, False)])
def test_a_plan_holds_96_kb_to_the_byte(more: int, accepted: bool) -> None:
    session = Session().to_ready()
    task = {"id": "t1", "description": "", "status": "pending", "checklist": ["Do it"]}
    words = sum(len(str(text)) for text in ("id", "t1", "description", "status", "pending", "checklist", "Do it"))
    answer = session.send(tasks=[task | {"description": "x" * (PLAN_LIMIT - words + more)}])
    assert answer["success"] is accepted, answer["message"]
    assert accepted or session.error == "failures.READY.plan_too_large"


def test_where_no_task_is_named_the_failure_counts_for_those_of_this_round_alone() -> None:
    session = Session().to_ready().to_verify()
    session.send(passed=False, verifier_used="tests", details="first")
    session.plan("t2")
    session.edit(text="def main():\n    return 1 + 2\n").report("t2", "app.py:2")
    session.send(summary="Done again.")
    session.send(passed=False, verifier_used="tests", details="second")
    assert [(task.id, task.failure_count) for task in session.state.tasks] == [("t1", 1), ("t2", 1)]


def test_where_tasks_are_named_the_failure_counts_for_them_alone() -> None:
    session = Session().to_ready().planned("t1", "t2")
    session.edit().report("t1")
    session.edit("README.md", "# App\n\nMore.\n")
    session.world.call("check_write_target", *session.world.files)
    skipped = {"item": "Item of t2", "status": "skipped", "reason": "It is done already."}
    session.state.added_files["README.md"] = "It says how to start."
    session.send(task_id="t2", checklist=[skipped], tools_used=["check_write_target"])
    session.send(summary="Done.")
    session.send(passed=False, verifier_used="tests", details="no", failed_tasks=["t2"])
    assert [(task.id, task.failure_count) for task in session.state.tasks] == [("t1", 0), ("t2", 1)]


@pytest.mark.parametrize("run", ["app.py", "main.py"])
def test_a_script_that_a_verify_command_runs_needs_a_reason_under_its_old_name_and_its_new_one(run: str) -> None:
    session = Session().to_ready()
    session.state.added_files["main.py"] = "The new name of it."
    session.plan("t1")
    session.world.files["main.py"] = session.world.files.pop("app.py")
    session.report("t1", "main.py:1")
    session.verified()
    session.world.scripts[run] = f"python {run}"
    answer = session.commit("main.py")
    assert session.error == "failures.PRE_COMMIT.tests_changed_need_reason"
    assert f"the verify command python {run} runs this file" in str(answer["message"])
    assert session.commit({"path": "main.py", "reason": "It got a better name."})["success"]


def test_a_quality_revert_opens_a_new_round_too() -> None:
    session = Session().to_ready().to_commit()
    session.commit()
    session.send(issues=["app.py:2 - a better name"], quality_prompt_used="quality_review")
    session.plan("t2")
    session.edit(text="def main():\n    return 1 + 2\n").report("t2", "app.py:2")
    session.send(summary="Done again.")
    session.send(passed=False, verifier_used="tests", details="second")
    assert [(task.id, task.failure_count) for task in session.state.tasks] == [("t1", 0), ("t2", 1)]


def test_after_continue_changes_are_measured_from_head_as_it_was_at_the_start() -> None:
    """What lay uncommitted on that branch is part of the work that goes on: it is reviewed, and evidence may point to it."""
    world = World(stale=("llm_task_old",), current="llm_task_old", current_base="main")
    world.heads[world.head()] = dict(world.files)
    world.files["app.py"] = "def main():\n    return 3\n"
    session = Session(world=world)
    session.send(choice="continue")
    session.to_ready().plan("t1")
    assert session.report("t1", "app.py:2")["success"], session.error
    session.verified()
    session.send(reviewed_files=[], commit_message="Go on", review_prompt_used="garbage_detection", summary="Nothing.")
    assert session.error == "common_failures.required_tools_not_used"
    world.call("review_changes")
    answer = session.send(
        reviewed_files=[], commit_message="Go on", review_prompt_used="garbage_detection", tools_used=["review_changes"]
    )
    assert answer["missing"] == ["app.py"]


def test_quotes_can_be_copied_from_the_answer_that_asks_for_them() -> None:
    session = Session(query="Add a login page")
    assert session.send(documents_reviewed=["README.md"])["query"] == "Add a login page"
    assert session.status()["query"] == "Add a login page"
    assert "query" not in session.frame()


def test_an_answer_that_was_lost_is_given_again_with_all_it_said() -> None:
    """Not only where the session stands: what the server thinks of the exploration came with that answer alone."""
    session = Session(Flags(no_doc=True))
    session.frame()
    first = session.explore()
    assert {"confidence", "unseen_files"} <= set(first)
    again = session.send(
        explored_files=["app.py"],
        findings=["app.py:1 - entry"],
        tools_used=["mcp__code-intel__search_text", "find_definitions"],
    )
    assert again == first


def test_without_verification_no_command_runs_at_the_commit() -> None:
    session = Session(Flags(no_verify=True), world=World(proof=ProofStatus.FAILED)).to_ready()
    session.to_verify()
    assert session.state.phase == "PRE_COMMIT"
    assert session.commit()["success"]
    assert session.world.proof_runs == 0


def test_a_refusal_says_what_to_do_about_it() -> None:
    answer = Session().send(documents_reviewed=["nowhere.md"])
    assert "search_files finds them" in str(answer["remedy"])


def test_who_has_forgotten_the_plan_is_told_the_next_task_and_how_far_it_is() -> None:
    session = Session().to_ready().planned("t1", "t2")
    session.edit().report("t1")
    for answer in (session.status(), session.raw({})):
        assert answer["task_progress"] == "1/2"
        assert answer["next_task"] == {"id": "t2", "description": "Do t2", "checklist": ["Item of t2"]}
    session.world.call("check_write_target", *session.world.files)
    skipped = {"item": "Item of t2", "status": "skipped", "reason": "It is done already."}
    session.send(task_id="t2", checklist=[skipped], tools_used=["check_write_target"])
    assert "next_task" not in session.status()


def test_a_new_plan_may_reword_what_is_pending_and_nothing_that_is_done() -> None:
    session = Session().to_ready().planned("t1", "t2")
    session.edit().report("t1")
    tasks = [
        {"id": "t1", "description": "Other words", "status": "completed"},
        {"id": "t2", "description": "Do less", "status": "pending", "checklist": ["Only this", "And this"]},
    ]
    answer = session.send(tasks=tasks)
    assert answer["next_task"] == {"id": "t2", "description": "Do less", "checklist": ["Only this", "And this"]}
    done = session.state.tasks[0]
    assert (done.description, [item.evidence for item in done.checklist]) == ("Do t1", ["app.py:2"])


def test_issues_that_stay_unresolved_are_named_in_the_answer_that_goes_on() -> None:
    session = Session().to_ready().to_commit()
    session.commit()
    session.state.quality_revert_count = 2
    answer = session.send(issues=["app.py:2 - a better name"], quality_prompt_used="quality_review")
    assert (answer["phase"], answer["issues"]) == ("MERGE", ["app.py:2 - a better name"])
    assert "unresolved quality issues" in str(answer["warning"])


def test_only_the_user_can_stop_a_session_and_only_where_they_are_asked() -> None:
    session = Session().to_ready().to_verify()
    session.state.verification_failure_count = 2
    session.send(passed=False, verifier_used="tests", details="again")
    answer = session.send(prompt_used="step_back", action_taken="Thought about it.", user_decision="stop")
    assert (answer["phase"], answer["step"]) == ("READY", 12)


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (CommandRun(("make",), ProofStatus.FAILED, 2, 0.1, "", ""), "exit status 2, without a word"),
        (CommandRun(("make",), ProofStatus.FAILED, 1, 0.1, "1 failed", ""), "1 failed"),
        (
            CommandRun(("make",), ProofStatus.FAILED, -9, 300, "test 7 ...", "ended after its time limit of 300 s"),
            "ended after its time limit of 300 s\ntest 7 ...",
        ),
    ],
)
def test_why_a_command_failed_is_in_the_message_whatever_it_printed(run: CommandRun, said: str) -> None:
    session = Session(world=World(proof=ProofStatus.FAILED, run=run)).to_ready().to_verify()
    answer = session.send(passed=True, verifier_used="tests", details="green")
    assert str(answer["message"]) == f"The server ran `make` and it failed: {said}"


def test_a_field_of_the_wrong_form_is_named_with_its_form_and_the_place_that_breaks_it() -> None:
    session = Session().to_ready()
    task = {"id": "t1", "description": "Do it", "status": "pending", "checklist": [{"item": [3]}]}
    answer = session.send(tasks=[task])
    assert str(answer["message"]).startswith("tasks must be list[{id, description, status, checklist: ")
    assert str(answer["message"]).endswith("(tasks.0.checklist.0.item: Input should be a valid string).")
    assert session.send(tasks="t1")["message"].endswith("independent: true.")  # type: ignore[attr-defined]


def test_an_edit_after_the_receipt_voids_it_and_the_new_receipt_is_for_what_is_committed() -> None:
    session = Session(world=World(proof=ProofStatus.PROVEN)).to_ready().to_commit()
    first = session.state.receipt
    session.edit(text="def main():\n    return 1 + 1\n")
    session.world.proof = ProofStatus.UNPROVEN
    answer = session.commit()
    assert "ran the verify commands again" in str(answer["warning"])
    second = session.state.receipt
    assert first is not None and second is not None
    assert (first.status, second.status) == ("proven", "unproven")
    assert first.tree != second.tree == session.state.trees.committed
    assert ("Code-Intel-Unproven", "pytest -q") in session.world.commits[0].trailers


def test_a_receipt_that_still_holds_is_said_to_be_void_by_nobody() -> None:
    session = Session(world=World(proof=ProofStatus.PROVEN)).to_ready().to_commit()
    assert "warning" not in session.commit()
    assert session.world.proof_runs == 1


def test_a_refusal_names_the_fields_it_did_not_look_at() -> None:
    """A misspelled field would else be told to be missing, while the agent sees that it sent it."""
    session = Session(Flags(no_doc=True))
    session.frame()
    session.world.call("search_text")
    session.world.call("get_symbols")
    used = ["search_text", "get_symbols"]
    answer = session.send(explored_file=["app.py"], findings=["app.py:1 - entry"], tools_used=used)
    assert session.error == "failures.EXPLORATION.empty_result"
    assert answer["ignored_fields"] == ["explored_file"]
    assert "ignored_fields" not in session.send(findings=["app.py:1 - entry"], tools_used=used)
    elsewhere = session.send(commit_message="x")
    assert "PRE_COMMIT" in str(elsewhere["hints"]) and "ignored_fields" not in elsewhere


def test_the_whole_payload_of_another_step_ends_none_that_asks_for_nothing() -> None:
    """A field too many is only named."""
    session = Session(Flags(no_quality=True)).to_ready().planned("t1")
    session.edit().report("t1")
    verdict = {"passed": True, "verifier_used": "tests", "details": "green"}
    refused = session.send(**verdict)
    assert refused["message"] == "Currently in READY phase; this payload belongs to POST_IMPL_VERIFY."
    assert "hints" not in refused and refused["ignored_fields"] == sorted(verdict)
    assert session.send(details="green")["phase"] == "POST_IMPL_VERIFY"
    session.send(**verdict)
    assert session.commit()["phase"] == "MERGE"
    assert "belongs to PRE_COMMIT" in str(session.commit("README.md")["message"])
    assert session.send(summary="Merged.")["phase"] == "SESSION_COMPLETE"


@pytest.mark.parametrize("quote", ["fix the \x1b[31mred text", "fix the \\x1b[31mred text", "RED text"])
def test_a_quote_is_taken_as_the_query_was_shown_too(quote: str) -> None:
    """Users paste what a terminal printed; answers show its control characters as escapes."""
    session = Session(Flags(no_doc=True), query="Fix the \x1b[31mred text")
    slot = {"value": "the red text", "quote": quote}
    assert session.send(action_type="fix", target_feature=slot)["success"], session.error
    other = Session(Flags(no_doc=True), query="Fix the \x1b[31mred text")
    other.send(action_type="fix", target_feature={"value": "x", "quote": "fix the x1b"})
    assert other.error == "failures.QUERY_FRAME.quote_not_found"


def test_a_round_that_changed_nothing_is_not_said_to_have_left_the_files_as_in_the_base() -> None:
    session = Session().to_ready().to_commit()
    session.commit()
    session.send(issues=["app.py:2 - is this right?"], quality_prompt_used="quality_review")
    session.plan("t2")
    session.world.call("check_write_target", *session.world.files)
    skipped = {"item": "Item of t2", "status": "skipped", "reason": "It is right as it is."}
    session.send(task_id="t2", checklist=[skipped], tools_used=["check_write_target"])
    session.verified()
    session.world.nothing_new = True
    warning = str(session.commit()["warning"])
    assert "no file changed since this session's last commit" in warning
    assert "base" not in warning
