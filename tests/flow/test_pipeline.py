"""Lists of submits: one after the other through the same table, no further than was read, once whatever is repeated (SPEC 2)."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from code_intel_server.flow.phases import (
    POST_IMPL_VERIFY,
    Q2,
    Q3,
    READY_COMPLETE,
    READY_IMPL,
    READY_PLAN,
    Flags,
    GateLevel,
    Phase,
)
from code_intel_server.flow.session import SessionState
from code_intel_server.flow.transitions import AHEAD, ENDING, PIPELINED, QUALITY_LIMIT, TABLE, Target
from tests.flow.world import Session

REASON = "Everything was found."
FIELDS = ("needs_more_information", "has_unverified_hypotheses", "needs_impact_analysis")


def questions(*answers: bool, **more: object) -> list[dict[str, object]]:
    """Payloads of Q1 to Q3 with these answers."""
    return [
        {"summary": f"{field} {yes}", field: yes, "reason": REASON, **more}
        for field, yes in zip(FIELDS, answers, strict=False)
    ]


def at_questions(**flags: object) -> Session:
    """A session that stands at Q1."""
    session = Session(Flags(no_doc=True, **flags))  # type: ignore[arg-type]
    session.frame()
    session.explore()
    return session


def report(task: str, line: int, **item: object) -> dict[str, object]:
    """The report of a task of one item."""
    entry = {"item": f"Item of {task}", "status": "done", "evidence": f"app.py:{line}", **item}
    return {"summary": f"{task} is done.", "task_id": task, "checklist": [entry]}


def at_work(*tasks: str) -> Session:
    """A session with these tasks planned, each done in a line of its own."""
    session = Session().to_ready()
    session.plan(*tasks)
    session.world.call("check_write_target", "app.py")
    return session.edit(text="def main():\n" + "".join(f"    print('{task}')\n" for task in tasks))


def restored(session: Session, state: SessionState) -> Session:
    """The session as a new process finds it where `state` was the last one on disk."""
    session.state = SessionState.from_checkpoint(json.loads(json.dumps(state.to_checkpoint())))
    return session


DONE: dict[str, object] = {"summary": "All is done."}
WORK: list[dict[str, object]] = [report("t1", 2), report("t2", 3), report("t3", 4), DONE]


def test_the_three_questions_go_as_one_list_each_a_submit_of_its_own() -> None:
    session = at_questions()
    before = session.state.submits
    answer = session.raw(questions(False, False, False))
    assert (answer["success"], answer["accepted"], answer["step"]) == (True, 3, 12)
    assert "Plan by the guidelines" in str(answer["instruction"]) and "hints" not in answer
    assert [state.place.step for state in session.kept[-3:]] == [8, 10, 12]
    assert session.state.submits - before == 3
    assert {key for key in session.state.summaries if "Q" in key} >= {"step_06_Q1", "step_08_Q2", "step_10_Q3"}


def test_the_three_questions_are_answered_in_one_payload() -> None:
    """Found by real agents: they saw all three questions and answered them three times in the same words."""
    session = at_questions()
    said = {
        **dict.fromkeys(FIELDS, False),
        "reason": REASON,
        "needs_impact_analysis_reason": "Its users were looked up.",
    }
    before = session.state.submits
    answer = session.raw({**said, "summary": "Nothing is open.", "odd": 1})
    assert ("accepted" in answer, answer["step"], answer["ignored_fields"]) == (False, 12, ["odd"])
    assert session.state.submits - before == 3
    assert session.state.summaries["step_06_Q1"] == session.state.summaries["step_10_Q3"] == "Nothing is open."
    assert session.raw({**said, "summary": "Nothing is open.", "odd": 1})["step"] == 12
    assert session.state.submits - before == 3, "the same payload again does nothing twice"


def test_a_question_that_is_answered_alone_is_a_submit_as_any() -> None:
    answer = at_questions().raw({"needs_more_information": False, "reason": REASON, "summary": "Q1."})
    assert (answer["phase"], "accepted" in answer) == ("Q2", False)


@pytest.mark.parametrize("serving", [0, 1, 3])
def test_one_summary_serves_a_whole_list(serving: int) -> None:
    session = at_work("t1", "t2", "t3")
    batch = [{name: value for name, value in one.items() if name != "summary"} for one in WORK]
    batch[serving]["summary"] = "Three lines are printed."
    assert session.raw(batch)["accepted"] == 4
    assert {text for key, text in session.state.summaries.items() if "READY_IMPL" in key} == {
        "Three lines are printed."
    }


def test_a_list_in_which_nothing_is_summed_up_is_refused_at_what_sums_up_the_work() -> None:
    session = at_work("t1", "t2", "t3")
    batch = [{**one, "summary": " "} for one in WORK]
    answer = session.raw(batch)
    assert (answer["success"], answer["element"], answer["accepted"]) == (False, 4, 3)


@pytest.mark.parametrize(
    ("answers", "accepted", "phase"),
    [((True, False, False), 1, "SEMANTIC"), ((False, True, False), 2, "VERIFICATION"), ((False, False, True), 3, "IMPACT_ANALYSIS")],
)  # fmt: skip
def test_a_list_ends_before_a_phase_that_a_question_asks_for(
    answers: tuple[bool, ...], accepted: int, phase: str
) -> None:
    session = at_questions()
    answer = session.raw(questions(*answers))
    assert (answer["success"], answer["phase"], answer["accepted"]) == (True, phase, accepted)
    left = 3 - accepted
    assert (f"{left} not looked at: {phase} came first" in str(answer.get("hints"))) is bool(left)


def test_under_gate_full_each_question_leads_into_its_phase() -> None:
    session = at_questions(gate_level=GateLevel.FULL)
    answer = session.raw(questions(False, False, False))
    assert (answer["phase"], answer["accepted"]) == ("SEMANTIC", 1)


def test_reports_and_the_end_of_the_work_go_as_one_list() -> None:
    session = at_work("t1", "t2", "t3")
    answer = session.raw(WORK)
    assert (answer["phase"], answer["accepted"]) == ("POST_IMPL_VERIFY", 4)
    assert [entry.task_id for entry in session.state.used_ranges] == ["t1", "t2", "t3"]


def test_behind_reports_that_leave_a_task_the_answer_says_only_what_differs() -> None:
    session = at_work("t1", "t2", "t3")
    answer = session.raw(WORK[:2])
    assert answer["instruction"] == "As before; get_session_status repeats it."
    assert (answer["phase"], answer["step"], answer["call"], answer["accepted"]) == ("READY", 13, "submit_phase", 2)
    assert answer["next_task"] == {"id": "t3", "description": "Do t3", "checklist": ["Item of t3"]}
    assert "task_id" in answer["expected_payload"]  # type: ignore[operator]
    kept = session.state.last_submit
    assert kept is not None and "Do next_task" in str(kept.response["instruction"]), "the hook tells the whole"


def test_nothing_is_submitted_to_an_instruction_that_nobody_has_read() -> None:
    session = at_work("t1")
    verdict = {"summary": "Green.", "passed": True, "verifier_used": "tests", "details": "green"}
    answer = session.raw([report("t1", 2), DONE, verdict])
    assert (answer["phase"], answer["accepted"]) == ("POST_IMPL_VERIFY", 2)
    session = Session().to_ready()
    tasks = [{"id": "t1", "description": "Do t1", "checklist": ["Item of t1"]}]
    answer = session.raw([{"summary": "Plan.", "tasks": tasks}, report("t1", 2)])
    assert (answer["phase"], answer["step"], answer["accepted"]) == ("READY", 13, 1)


def test_lists_go_on_behind_moves_of_the_table_alone_and_into_no_gate() -> None:
    for place, to in PIPELINED:
        targets = {target for (at, _), target in TABLE.items() if at == place}
        assert to in targets or Target.FORWARD in targets
        assert to in {*AHEAD, Q2, Q3, READY_IMPL, READY_COMPLETE, *ENDING}
    assert not {READY_PLAN, READY_COMPLETE, POST_IMPL_VERIFY} & {place for place, _ in PIPELINED}


def at_commit(**flags: object) -> Session:
    """A session at step 17 whose changes were looked at."""
    session = Session(Flags(**flags)).to_ready().to_commit()  # type: ignore[arg-type]
    session.world.call("review_changes")
    return session


COMMIT: dict[str, object] = {
    "reviewed_files": ["app.py"],
    "commit_message": "Add it",
    "review_prompt_used": "garbage_detection",
}
QUALITY: dict[str, object] = {"issues": [], "quality_prompt_used": "quality_review"}
MERGING: dict[str, object] = {"summary": "It was added."}


@pytest.mark.parametrize("quality", [True, False])
def test_steps_17_to_19_go_as_one_list_whose_instructions_came_with_the_first(quality: bool) -> None:
    session = at_commit(no_quality=not quality)
    ahead = session.status()["then"]
    assert isinstance(ahead, list)
    assert [row["phase"] for row in ahead] == [*(["QUALITY_REVIEW"] if quality else []), "MERGE"]
    answer = session.raw([COMMIT, *([QUALITY] if quality else []), MERGING])
    assert (answer["phase"], answer["accepted"]) == ("SESSION_COMPLETE", 2 + quality)
    assert answer["commit"] == session.state.commits[-1]


def test_what_is_asked_ahead_of_the_review_names_its_procedure() -> None:
    """Found by a review: a project's own procedure could be named by an agent that had not been told where it is."""
    session = at_commit()
    alone = at_commit()
    alone.raw(COMMIT)
    ahead = session.status()["then"]
    assert isinstance(ahead, list)
    quality = ahead[0]
    assert {name: quality.get(name) for name in ("resources", "procedure")} == {
        name: alone.status().get(name) for name in ("resources", "procedure")
    }


@pytest.mark.parametrize("more", [{"leave": ["secret.env"]}, {"compaction_count": 1}])
def test_a_list_stops_behind_a_commit_of_which_something_was_not_understood(more: dict[str, object]) -> None:
    answer = at_commit().raw([COMMIT | more, QUALITY, MERGING])
    assert (answer["phase"], answer["accepted"]) == ("QUALITY_REVIEW", 1)


def test_a_list_whose_review_is_mended_goes_on_behind_the_commit() -> None:
    session = at_commit()
    assert session.raw([COMMIT, {"quality_prompt_used": "quality_review"}, MERGING])["element"] == 2
    answer = session.raw([COMMIT, QUALITY, {"summary": "It was added, as asked."}])
    assert (answer["phase"], answer["accepted"]) == ("SESSION_COMPLETE", 3)


def test_a_list_stops_behind_a_commit_that_has_something_to_say() -> None:
    session = at_commit()
    session.world.files["junk.txt"] = "x"
    session.world.call("review_changes")
    junk = {"path": "junk.txt", "decision": "discard", "reason": "left over by a run"}
    answer = session.raw([COMMIT | {"reviewed_files": ["app.py", junk]}, QUALITY, MERGING])
    assert (answer["phase"], answer["accepted"]) == ("QUALITY_REVIEW", 1)
    assert answer["archived"] == ["refs/code-intel/archive/discarded"]


def test_a_list_stops_behind_a_quality_review_with_issues() -> None:
    session = at_commit()
    answer = session.raw([COMMIT, QUALITY | {"issues": ["app.py:1 - wrong"]}, MERGING])
    assert (answer["phase"], answer["step"], answer["accepted"]) == ("READY", 12, 2)
    last = at_commit()
    last.state.quality_revert_count = QUALITY_LIMIT - 1
    answer = last.raw([COMMIT, QUALITY | {"issues": ["app.py:1 - wrong"]}, MERGING])
    assert (answer["phase"], answer["accepted"]) == ("MERGE", 2), "in spite of issues: that is read before the merge"


START: list[dict[str, object]] = [
    {"documents_reviewed": ["README.md"]},
    {"action_type": "fix", "target_symbols": ["main"]},
    {"explored_files": ["app.py"], "findings": ["app.py:1 - main"], "summary": "All that main does."},
]


PLAN: dict[str, object] = {
    "tasks": [
        {"id": "t1", "description": "Do t1", "checklist": ["Item of t1"], "files": ["app.py", "docs/x.md", "../x"]}
    ]
}


def looked_up(*tools: str) -> Session:
    """A session that has made these lookups and submitted nothing."""
    session = Session()
    for tool in tools:
        session.world.call(tool, "app.py")
    return session


def test_steps_3_to_12_go_as_one_list_whose_instructions_came_with_the_first() -> None:
    session = looked_up("search_text", "find_references")
    ahead = session.status()["then"]
    assert isinstance(ahead, list)
    assert [row["phase"] for row in ahead] == ["QUERY_FRAME", "EXPLORATION", "Q1", "READY"]
    assert all(row["instruction"] and "summary" not in row["expected_payload"] for row in ahead), "one serves them all"
    assert ahead[-1]["task_planning"] == "Do task_planning."
    answer = session.raw([*START, *questions(False, False, False), PLAN | {"summary": "Plan."}])
    assert (answer["phase"], answer["step"], answer["accepted"]) == ("READY", 13, 7)
    assert session.state.completed_steps == [3, 4, 5, 6, 8, 10, 12]
    assert {session.state.summaries[f"step_0{step}"] for step in ("3_DOCUMENT_RESEARCH", "5_EXPLORATION")} == {
        "All that main does."
    }


def test_what_a_plan_names_needs_no_write_check_where_it_may_be_written() -> None:
    session = looked_up("search_text", "find_references")
    answer = session.raw([*START, *questions(False, False, False), PLAN | {"summary": "Plan."}])
    assert answer["not_writable"] == ["docs/x.md", "../x"]
    session.edit(text="def main():\n    print('t1')\n")
    assert session.raw(report("t1", 2))["step"] == 14


def test_a_list_stops_where_the_server_sees_a_question_differently() -> None:
    """Its assessment comes with the exploration's answer, so an answer sent before it was read is not taken against it."""
    session = looked_up("search_text", "get_symbols")
    answer = session.raw([*START, *questions(False, False, False), PLAN | {"summary": "Plan."}])
    assert (answer["success"], answer["phase"], answer["accepted"]) == (True, "Q1", 3)
    assert str(answer["server_assessment"]["needs_impact_analysis"]).startswith("true")  # type: ignore[index]
    assert "4 not looked at: Q1 came first" in str(answer["hints"])
    answer = session.raw([*questions(False, False, False), PLAN | {"summary": "Plan."}])
    assert (answer["step"], answer["accepted"]) == (13, 4), "now it was read"


def test_a_payload_that_answers_all_questions_is_one_element_of_its_list() -> None:
    answers = {**dict.fromkeys(FIELDS, False), "reason": REASON}
    session = looked_up("search_text", "find_references")
    answer = session.raw([*START, answers, PLAN | {"summary": "Plan."}])
    assert (answer["step"], answer["accepted"]) == (13, 5)
    session = looked_up("search_text", "find_references")
    answer = session.raw([*START, answers, {"tasks": [], "summary": "Plan."}])
    assert (answer["phase"], answer["element"], answer["accepted"]) == ("READY", 5, 4)
    assert str(answer["message"]).startswith("Element 5 of the list: ")


def test_answers_that_come_as_json_text_stop_a_list_too() -> None:
    session = looked_up("search_text", "get_symbols")
    answers = [json.dumps(one) for one in questions(False, False, False)]
    assert session.raw([*START, *answers, PLAN | {"summary": "Plan."}])["phase"] == "Q1"
    session = looked_up("search_text", "find_references")
    answers = [json.dumps({**dict.fromkeys(FIELDS, False), "reason": REASON})]
    answer = session.raw([*START, *answers, PLAN | {"summary": "Plan."}])
    assert (answer["step"], answer["accepted"]) == (13, 5)
    answer = session.raw(["{", PLAN | {"summary": "Plan."}])
    assert (answer["success"], answer["element"]) == (False, 1)


def test_a_plan_of_too_many_files_is_refused_and_another_file_makes_another_plan() -> None:
    session = Session().to_ready()
    task = {"id": "t1", "description": "Do t1", "checklist": ["Item of t1"]}
    many = [f"f{number}.py" for number in range(101)]
    assert session.raw({"tasks": [{**task, "files": many}], "summary": "Plan."})["success"] is False
    assert session.error == "common_failures.payload_too_large"
    session.raw({"tasks": [{**task, "independent": True}], "summary": "Plan."})
    answer = session.raw({"tasks": [{**task, "files": ["independent"]}], "summary": "Another."})
    assert "progress" in answer and session.state.tasks[0].independent is False


def test_a_list_that_agrees_with_the_server_goes_into_the_phase_that_it_wants() -> None:
    session = looked_up("search_text", "get_symbols")
    answer = session.raw([*START, *questions(False, False, True)])
    assert (answer["phase"], answer["accepted"]) == ("IMPACT_ANALYSIS", 6)


def test_one_by_one_they_bring_their_instructions_themselves() -> None:
    session = Session()
    answer = session.send(**START[0])
    assert answer["phase"] == "QUERY_FRAME" and "then" not in answer


def test_a_list_without_the_lookups_stops_at_the_exploration() -> None:
    session = Session()
    answer = session.raw([*START])
    assert (answer["success"], answer["element"], answer["accepted"], answer["phase"]) == (False, 3, 2, "EXPLORATION")


@pytest.mark.parametrize(
    ("flags", "phases"),
    [
        (Flags(no_doc=True), ["EXPLORATION", "Q1", "READY"]),
        (Flags(fast=True), ["QUERY_FRAME", "READY"]),
        (Flags(quick=True, no_doc=True), ["READY"]),
        (Flags(gate_level=GateLevel.FULL), ["QUERY_FRAME", "EXPLORATION"]),
        (Flags(only_explore=True), ["QUERY_FRAME", "EXPLORATION", "Q1"]),
        (Flags(only_verify=True), []),
    ],
)
def test_only_what_follows_in_this_session_is_named_ahead(flags: Flags, phases: list[str]) -> None:
    ahead = Session(flags).status().get("then", [])
    assert isinstance(ahead, list)
    assert [row["phase"] for row in ahead if isinstance(row, dict)] == phases
    if flags.fast or flags.quick:
        assert "add_explored_files" in str(ahead[-1])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"summary": "x", "documents_reviewed": ["README.md"]}, "needs_more_information"),
        ([{"summary": "nested"}], "data must be an object"),
        ([], "data must be an object"),
        (7, "data must be an object"),
        (None, "data must be an object"),
        ({"summary": "a\x00b"}, "no text"),
        ({"summary": "x", "reason": [[[[]]]] * 3000}, "too large"),
    ],
)
def test_a_wrong_submit_in_the_middle_is_the_one_refusal_and_names_it(wrong: object, said: str) -> None:
    session = at_questions()
    first, _, third = questions(False, False, False)
    answer = session.raw([first, wrong, third])
    assert (answer["success"], answer["element"], answer["accepted"]) == (False, 2, 1)
    assert str(answer["message"]).startswith("Element 2 of the list: ")
    if said != "needs_more_information":
        assert said in str(answer["message"])
    assert session.state.phase is Phase.Q2
    # Nobody has read it yet, so it comes whole.
    assert "VERIFICATION is needed" in str(answer["instruction"])


@pytest.mark.parametrize("empty", [[], "[]"])
def test_an_empty_list_is_no_payload(empty: object) -> None:
    session = at_questions()
    answer = session.raw(empty)
    assert (session.error, answer["success"]) == ("session_messages.invalid_data", False)
    assert "a list of objects only where the instruction says so" in str(answer["remedy"])
    assert session.state.phase is Phase.Q1


def test_a_thousand_submits_are_one_refusal_of_the_first_that_does_not_fit() -> None:
    session = at_questions()
    answer = session.raw([{"summary": "x"}] * 1000)
    assert (answer["success"], answer["element"], answer["accepted"]) == (False, 1, 0)
    many = [*questions(False, False, False), *[{"summary": f"{number}"} for number in range(997)]]
    answer = session.raw(many)
    assert (answer["success"], answer["phase"], answer["accepted"], answer["element"]) == (False, "READY", 3, 4)


@pytest.mark.parametrize("inner", [False, True])
def test_a_list_may_come_as_json_text_and_so_may_what_is_in_it(inner: bool) -> None:
    session = at_questions()
    payloads = questions(False, False, False)
    answer = session.raw(json.dumps([json.dumps(one) for one in payloads] if inner else payloads))
    assert (answer["phase"], answer["accepted"]) == ("READY", 3)


def test_a_repeated_list_has_the_same_answer_and_no_second_effect() -> None:
    session = at_questions()
    data = questions(False, False, False)
    first, submits = session.raw(data), session.state.submits
    assert session.raw(data) == first
    assert session.raw([*data, {"summary": "more"}])["element"] == 4
    assert session.state.submits == submits


def test_the_answer_to_a_lost_list_of_reports_is_the_whole() -> None:
    session = at_work("t1", "t2", "t3")
    first = session.raw(WORK[:2])
    again = session.raw(WORK[:2])
    assert "check_write_target(paths) before" in str(again.pop("instruction"))
    assert again == {name: value for name, value in first.items() if name != "instruction"}


@pytest.mark.parametrize("answers", [(False, False, False), (False, True, False), (True, False, False)])
def test_a_list_of_questions_killed_behind_any_submit_comes_to_the_same_end(answers: tuple[bool, ...]) -> None:
    data = questions(*answers)
    session = at_questions()
    start, taken = session.state, len(session.kept)
    whole, end = session.raw(data), session.state
    for state in [start, *session.kept[taken:]]:
        killed = restored(at_questions(), state)
        assert killed.raw(data) == whole
        assert killed.state.model_dump() == end.model_dump()


@pytest.mark.parametrize("tool", ["find_references", "get_symbols"])
def test_the_list_of_steps_3_to_12_killed_behind_any_submit_comes_to_the_same_end(tool: str) -> None:
    data = [*START, *questions(False, False, False), PLAN | {"summary": "Plan."}]
    session = looked_up("search_text", tool)
    start, taken = session.state, len(session.kept)
    whole, end = session.raw(data), session.state
    assert len(session.kept) - taken == (7 if tool == "find_references" else 3)
    for state in [start, *session.kept[taken:]]:
        killed = restored(looked_up("search_text", tool), state)
        assert killed.raw(data) == whole
        assert killed.state.model_dump() == end.model_dump()


def test_a_list_of_reports_killed_behind_any_submit_comes_to_the_same_end() -> None:
    session = at_work("t1", "t2", "t3")
    start, taken = session.state, len(session.kept)
    whole, end = session.raw(WORK), session.state
    assert len(session.kept) - taken == len(WORK)
    for state in [start, *session.kept[taken:]]:
        killed = restored(at_work("t1", "t2", "t3"), state)
        assert killed.raw(WORK) == whole
        assert killed.state.model_dump() == end.model_dump()


def test_a_list_sent_again_with_its_wrong_submit_mended_goes_on_behind_what_was_accepted() -> None:
    session = at_questions()
    first, second, third = questions(False, False, False)
    bad = {**second, "reason": "short"}
    assert session.raw([first, bad, third])["element"] == 2
    assert session.raw([first, bad, third])["element"] == 2
    answer = session.raw([first, second, third])
    assert (answer["phase"], answer["accepted"]) == ("READY", 3)


def test_the_last_submit_of_a_list_sent_alone_is_a_repeat_and_an_earlier_one_is_none() -> None:
    session = at_questions()
    data = questions(False, False, False)
    session.raw(data)
    submits = session.state.submits
    assert session.raw(data[2])["success"] and session.state.submits == submits
    assert session.raw(data[0])["success"] is False


def test_hints_and_warnings_of_every_submit_come_with_the_answer_and_with_a_refusal() -> None:
    session = at_work("t1", "t2", "t3")
    session.world.trivial.add("app.py")
    because = {"reason": "A comment is all that was asked for."}
    data = [report("t1", 2, **because), report("t2", 3, **because) | {"mood": "good"}, WORK[2]]
    answer = session.raw(data)
    assert answer["element"] == 3
    for said in ("Item of t1", "Item of t2"):
        assert said in str(answer["warning"])
    assert answer["ignored_fields"] == ["mood"]
    session.world.trivial.clear()
    answer = session.raw([*data, DONE])
    assert answer["accepted"] == 4
    assert str(answer["warning"]).count("Item of t1") == str(answer["warning"]).count("Item of t2") == 1


def test_summaries_that_a_compaction_asked_for_are_in_the_one_answer() -> None:
    session = at_questions()
    answer = session.raw(questions(False, False, False, compaction_count=1))
    assert set(answer["phase_summaries"]) >= {"step_05_EXPLORATION", "step_10_Q3"}  # type: ignore[call-overload]
    assert session.raw(questions(False, False, False, compaction_count=1)) == answer


def test_a_list_that_ends_the_session_has_its_last_answer() -> None:
    session = Session(Flags(quick=True, no_verify=True, no_doc=True))
    session.state.added_files["app.py"] = "the file to change"
    session.frame()
    session.plan("t1")
    session.world.call("check_write_target", "app.py")
    session.edit()
    answer = session.raw([report("t1", 2), DONE, {"summary": "too much"}])
    assert (answer["phase"], answer["accepted"]) == ("SESSION_COMPLETE", 2)


STEPS = st.sampled_from(
    [
        *questions(False, False, False),
        *questions(True, True, True),
        *WORK,
        DONE,
        {},
        [],
        {"summary": "x", "tasks": []},
        {"summary": "Found.", "search_results": []},
        {"summary": "Held.", "hypotheses_verified": [{"hypothesis": "h", "result": True, "evidence": "app.py:1"}]},
    ]
)


@settings(max_examples=60, deadline=None)
@given(data=st.lists(STEPS, min_size=1, max_size=6), work=st.booleans(), kill=st.integers(0, 6))
def test_any_list_leads_where_its_submits_lead_one_by_one_and_no_further_than_was_read(
    data: list[object], work: bool, kill: int
) -> None:
    made = at_work if work else at_questions
    tasks = ("t1", "t2", "t3") if work else ()
    single, accepted = made(*tasks), 0
    for number, payload in enumerate(data):
        if number and not (single.state.last_submit and single.state.last_submit.onward):
            break
        if isinstance(payload, list) or not single.raw(payload)["success"]:
            break
        accepted = number + 1
    listed = made(*tasks)
    start, before = listed.state, len(listed.kept)
    answer = listed.raw(data)
    assert answer["accepted"] == accepted
    assert listed.state.place == single.state.place
    assert listed.state.submits == single.state.submits
    states = [start, *listed.kept[before:]]
    killed = restored(made(*tasks), states[min(kill, len(states) - 1)])
    again = killed.raw(data)
    assert again["accepted"] == accepted and again["phase"] == answer["phase"]
    assert killed.state.model_dump() == listed.state.model_dump()


def test_a_list_that_begins_with_the_last_submit_goes_on_behind_it_and_can_be_repeated() -> None:
    session = at_work("t1", "t2", "t3")
    session.raw(WORK[:2])
    first = session.raw(WORK[1:])
    assert (first["phase"], first["accepted"]) == ("POST_IMPL_VERIFY", 3)
    submits = session.state.submits
    assert session.raw(WORK[1:]) == first and session.state.submits == submits


def test_the_same_report_twice_in_a_list_is_a_repeat() -> None:
    session = at_work("t1", "t2", "t3")
    answer = session.raw([WORK[0], WORK[0], WORK[1]])
    assert (answer["success"], answer["accepted"], session.state.submits) == (True, 3, session.kept[-1].submits)
