"""submit(): what every phase takes, what it refuses and where it leads (SPEC 3, 4)."""

import re
from pathlib import Path

import pytest

from code_intel_server.contract.loader import Contract
from code_intel_server.flow.handlers.review import uncompared
from code_intel_server.flow.phases import Flags, GateLevel, Intent, Phase, Substep
from code_intel_server.flow.session import Receipt
from code_intel_server.workspace.values import (
    Beside,
    Change,
    ChangeKind,
    CommandRun,
    GitIntent,
    GitOperation,
    HandMerges,
    ProofStatus,
    SeenTests,
)
from tests.flow.world import Session, World, WorldTree

REASON = "Everything was found."


def test_a_whole_session_goes_from_documents_to_the_merge() -> None:
    session = Session().to_ready().to_commit()
    session.commit()
    session.send(issues=[], quality_prompt_used="quality_review", quality_score="good")
    answer = session.raw({"summary": "merged"})
    assert answer["phase"] == "SESSION_COMPLETE"
    assert "Merged llm_task_20260201_123456 → main" in str(answer["message"])
    assert session.state.completed_steps == [3, 4, 5, 6, 8, 10, 12, 13, 14, 15, 17, 18, 19]
    assert session.world.commits[0].trailers == (
        ("Code-Intel-Session", "20260201_123456"),
        ("Code-Intel-Tasks", "t1"),
        ("Code-Intel-Proof", "none, as no verify commands are configured; by the agent's word: green"),
    )


def test_every_answer_says_what_to_do_and_what_to_send() -> None:
    session = Session()
    answer = session.send(documents_reviewed=["README.md"])
    for key in (
        "success",
        "session_id",
        "phase",
        "step",
        "instruction",
        "expected_payload",
        "call",
        "compaction_count",
    ):
        assert key in answer
    assert answer["step"] == 4
    assert answer["call"] == "submit_phase"
    assert "after a compaction" in answer["expected_payload"]["compaction_count"]  # type: ignore[index]


def test_nothing_is_asked_for_that_nobody_needs_to_send() -> None:
    """Found with real agents: they filled what is optional, or known to the server, at every step."""
    session = Session()
    session.state.hooked = True
    session.to_ready()
    assert sorted(session.plan("t1")["expected_payload"]) == ["checklist", "task_id"]  # type: ignore[call-overload]
    session.edit().report("t1")
    asked = sorted(session.send()["expected_payload"])  # type: ignore[call-overload]
    assert asked == ["details", "failed_tasks", "not_run", "passed", "tests_reason", "verifier_used"]


def test_a_refusal_of_a_payload_with_nothing_in_it_names_what_the_place_asks_for() -> None:
    """Found by playing: in READY only a summary was missing, and in step 15 a field that is not asked for."""
    session = Session().to_ready()
    assert session.raw({})["missing_fields"] == ["summary", "tasks"]
    session.plan("t1")
    assert session.raw({})["missing_fields"] == ["checklist", "task_id"]
    session.send(checklist=[{"item": "Item of t1", "status": "done", "evidence": "app.py:2"}])
    assert session.error == "failures.READY.unknown_task"
    session.edit().report("t1")
    assert session.raw({})["missing_fields"] == ["summary"]
    session.send()
    answer = session.raw({})
    assert (answer["message"], answer["missing_fields"]) == (
        "details must be str.",
        ["details", "passed", "verifier_used"],
    )


def test_what_was_said_sums_a_report_a_review_and_the_merge_up() -> None:
    """Found with real agents: they wrote the same summary four or five times."""
    session = Session().to_ready()
    session.plan("t1")
    session.edit().world.call("check_write_target", "app.py")
    session.raw({"task_id": "t1", "checklist": [{"item": "Item of t1", "status": "done", "evidence": "app.py:2"}]})
    session.raw({"summary": "Done."})
    session.send(passed=True, verifier_used="tests", details="green")
    session.world.call("review_changes")
    kept = {"reviewed_files": ["app.py"], "review_prompt_used": "garbage_detection"}
    session.raw({**kept, "commit_message": "Add it\n\nBecause."})
    session.raw({"issues": [], "quality_prompt_used": "quality_review"})
    assert session.raw({"reviewed_files": ["app.py"]})["phase"] == "MERGE"
    assert session.error == "common_failures.payload_fits_other_phase"
    assert session.raw({"summary": "Add it"})["phase"] == "SESSION_COMPLETE"
    said = {key.rpartition("_")[2]: summary for key, summary in session.kept[-1].summaries.items()}
    assert (said["IMPLEMENTATION.t1"], said["REVIEW"], said["MERGE"]) == (
        "Item of t1: app.py:2",
        "No issues.",
        "Add it",
    )


def test_issues_that_no_phase_asked_for_are_kept_with_the_merge() -> None:
    session = Session(Flags(no_quality=True)).to_ready().to_commit()
    session.commit()
    answer = session.raw({"issues": ["app.py:2 - no test", " "]})
    assert "1 quality issue(s) unresolved" in str(answer["instruction"])
    assert session.state.unresolved_issues == ["app.py:2 - no test"]


def test_blank_issues_are_no_summary_of_a_merge() -> None:
    session = Session(Flags(no_quality=True)).to_ready().to_commit()
    session.commit()
    session.raw({"issues": ["", " "]})
    assert session.error == "common_failures.summary_required"


def test_issues_are_no_merge_where_a_phase_has_asked_for_them() -> None:
    session = Session().to_ready().to_commit()
    session.commit()
    session.send(issues=[], quality_prompt_used="quality_review")
    session.send(issues=["app.py:2 - no test"], quality_prompt_used="again")
    assert session.error == "common_failures.payload_fits_other_phase"


def test_details_and_the_commit_message_sum_their_step_up_and_the_end_says_what_was_not_run() -> None:
    session = Session(Flags(no_quality=True)).to_ready().to_verify()
    session.send(passed=False, verifier_used="tests", details="red", not_run=["e2e: no browser", "mypy: not here"])
    session.plan("fix")
    session.edit(text="def main():\n    return 3\n").report("fix", reason="the same line again")
    session.send()
    verdict = {"passed": True, "verifier_used": "tests", "details": "All green.", "not_run": ["mypy: not here", " "]}
    session.raw(verdict)
    assert session.state.summaries["step_15_POST_IMPL_VERIFY"] == "All green."
    session.world.call("review_changes")
    kept = {"reviewed_files": ["app.py"], "review_prompt_used": "garbage_detection"}
    session.raw({**kept, "commit_message": "Add it"})
    assert session.state.summaries["step_17_PRE_COMMIT"] == "Add it"
    assert ("Code-Intel-Not-Run", "mypy: not here") in session.world.commits[-1].trailers
    assert "not run: e2e: no browser, mypy: not here;" in str(session.send()["instruction"])


@pytest.mark.parametrize(
    ("payload", "key"),
    [
        ({"tools_used": []}, "common_failures.summary_required"),
        ({"summary": " ", "tools_used": []}, "common_failures.summary_required"),
        ({"summary": 3, "tools_used": []}, "common_failures.summary_required"),
        ({"summary": "\u200b\u2060 \u3164\ufe0f"}, "common_failures.summary_required"),
        ({"summary": "x", "tools_used": "search_text"}, "common_failures.tools_used_invalid"),
        ({"summary": "x", "tools_used": [1]}, "common_failures.tools_used_invalid"),
        ({"summary": "x", "tools_used": [], "documents_reviewed": "a.md"}, "common_failures.field_invalid"),
        ({"summary": "x", "tools_used": [], "compaction_count": "1"}, "common_failures.field_invalid"),
        ([], "session_messages.invalid_data"),
        ("{", "session_messages.invalid_data"),
        ("[1]", "session_messages.invalid_data"),
        ('{"summary": NaN}', "session_messages.invalid_data"),
        ("[" * 100_000, "session_messages.invalid_data"),
        (None, "session_messages.invalid_data"),
        ({"summary": "a\x00b"}, "common_failures.text_invalid"),
        ({"summary": "\ud800"}, "common_failures.text_invalid"),
        ({"\ud800": "x"}, "common_failures.text_invalid"),
        ({"summary": "x" * 70_000}, "common_failures.payload_too_large"),
        ({"summary": "x", "tools_used": ["t"] * 2001}, "common_failures.payload_too_large"),
        ({"summary": "x", "tools_used": [[["t"] * 9] * 200] * 10}, "common_failures.payload_too_large"),
        ({"summary": "x", "tasks": []}, "failures.READY.phase_mismatch_register"),
        ({"summary": "x", "task_id": "t"}, "failures.READY.phase_mismatch_complete"),
        ({"summary": "x", "tools_used": [], "documents_reviewed": []}, "failures.DOCUMENT_RESEARCH.empty_documents"),
        (
            {"summary": "x", "tools_used": [], "documents_reviewed": ["no.md"]},
            "failures.DOCUMENT_RESEARCH.document_not_found",
        ),
        (
            {"summary": "x", "tools_used": [], "documents_reviewed": ["/etc/passwd"]},
            "failures.DOCUMENT_RESEARCH.document_not_found",
        ),
    ],
)
def test_a_bad_payload_is_refused_with_the_reinstruction_and_changes_nothing(payload: object, key: str) -> None:
    session = Session()
    answer = session.raw(payload)
    assert session.error == key
    assert answer["success"] is False
    assert answer["phase"] == answer["current_phase"] == "DOCUMENT_RESEARCH"
    assert answer["expected_payload"]
    assert session.state.submits == 0


def test_a_json_string_is_parsed() -> None:
    session = Session()
    session.raw('{"summary": "read", "tools_used": [], "documents_reviewed": ["README.md"]}')
    assert session.state.phase is Phase.QUERY_FRAME


def test_a_payload_of_another_phase_is_told_so() -> None:
    session = Session()
    answer = session.send(explored_files=["app.py"], findings=["x"])
    assert "EXPLORATION" in str(answer["hints"])


def test_unknown_fields_are_ignored_and_named() -> None:
    answer = Session().send(documents_reviewed=["README.md"], mood="good")
    assert answer["ignored_fields"] == ["mood"]


def test_a_refusal_says_first_what_is_wrong() -> None:
    answer = Session().send(documents_reviewed=["no.md"])
    assert [*answer][:4] == ["success", "error", "message", "remedy"]
    assert [*Session().raw({"documents": []})][:3] == ["success", "error", "message"]


def test_a_refused_shape_names_all_missing_and_all_ignored_fields_at_once() -> None:
    answer = Session().raw({"documents": ["README.md"]})
    assert answer["missing_fields"] == ["documents_reviewed", "summary"]
    assert answer["ignored_fields"] == ["documents"]
    content = Session().send(documents_reviewed=["no.md"], documents=[])
    assert content["ignored_fields"] == ["documents"]
    assert "missing_fields" not in content
    assert "ignored_fields" not in Session().send(documents_reviewed=[])


def test_fields_that_a_payload_may_leave_out_are_not_called_missing() -> None:
    session = Session()
    session.send(documents_reviewed=["README.md"])
    assert session.raw({"target": "x"})["missing_fields"] == ["action_type", "summary", "target_symbols"]


def test_no_documents_are_right_where_the_project_has_none() -> None:
    session = Session(world=World(documents=[]))
    session.send(documents_reviewed=[])
    assert session.state.phase is Phase.QUERY_FRAME


def test_an_accepted_submit_sent_again_gets_the_same_answer_and_one_effect() -> None:
    session = Session()
    first = session.send(documents_reviewed=["README.md"], compaction_count=0)
    again = session.send(documents_reviewed=["README.md"], compaction_count=1)
    assert again == first
    assert session.last is not None
    assert session.last.replayed
    assert session.state.submits == 1


class TestQueryFrame:
    def at(self) -> Session:
        session = Session(Flags(no_doc=True), query="Add a  LOGIN page to the App")
        assert session.state.phase is Phase.QUERY_FRAME
        return session

    def test_only_the_action_type_is_required(self) -> None:
        session = self.at()
        session.send(action_type=" ")
        assert session.error == "failures.QUERY_FRAME.action_type_required"
        assert "hints" not in session.send(action_type="add"), "a request of a few words says what it says"

    def test_a_quote_is_compared_with_case_and_white_space_folded(self) -> None:
        session = self.at()
        session.send(action_type="add", target_feature={"value": "login", "quote": "a login\npage"})
        assert session.state.query_frame is not None
        assert session.state.query_frame.slots["target_feature"].value == "login"

    @pytest.mark.parametrize(
        ("intent", "slots", "missing"),
        [
            (Intent.IMPLEMENT, {}, ["target feature", "fix approach"]),
            (Intent.MODIFY, {}, ["target feature", "fix approach"]),
            (Intent.INVESTIGATE, {}, ["target feature", "reproduction condition", "current problem"]),
            (Intent.QUESTION, {}, ["target feature"]),
            (Intent.MODIFY, {"observed_issue": "login"}, []),
            (Intent.INVESTIGATE, {"target_feature": "login page"}, []),
        ],
    )
    def test_slots_of_a_long_request_are_asked_after_only_where_all_were_left_out(
        self, intent: Intent, slots: dict[str, str], missing: list[str]
    ) -> None:
        session = Session(Flags(no_doc=True), intent, query="Add a login page to the App. " * 20)
        given = {name: {"value": quote, "quote": quote} for name, quote in slots.items()}
        hints = session.send(action_type="do", **given).get("hints", [])
        assert isinstance(hints, list)
        assert len(hints) == len(missing) and all(word in hint for word, hint in zip(missing, hints, strict=True))

    def test_a_quote_that_the_user_never_said_is_refused_by_name(self) -> None:
        session = self.at()
        answer = session.send(action_type="add", observed_issue={"value": "slow", "quote": "it is slow"})
        assert session.error == "failures.QUERY_FRAME.quote_not_found"
        assert "observed_issue" in str(answer["message"])

    @pytest.mark.parametrize("slot", ["login", {"value": "login"}])
    def test_a_value_without_a_quote_is_refused(self, slot: object) -> None:
        session = self.at()
        session.send(action_type="add", target_feature=slot)
        assert session.error == "failures.QUERY_FRAME.quote_required"

    def test_symbols_are_scored_and_resolved(self) -> None:
        answer = self.at().send(action_type="add", target_symbols=["main", "nothing"], target_feature=None)
        assert answer["symbol_relevance"] == [
            {"symbol": "main", "score": 0.5, "resolved": ["app.py"]},
            {"symbol": "nothing", "score": 0.5, "resolved": []},
        ]


class TestExploration:
    def at(self, **flags: object) -> Session:
        session = Session(Flags(no_doc=True, **flags))  # type: ignore[arg-type]
        session.frame()
        return session

    def test_two_distinct_lookups_must_really_have_run(self) -> None:
        session = self.at()
        session.world.call("search_text")
        session.world.call("search_text")
        session.world.call("find_definitions", outcome="failed")
        session.send(explored_files=["app.py"], findings=["x"], tools_used=["search_text", "find_definitions"])
        assert session.error == "common_failures.exploration_min_tools"

    def test_what_ran_need_not_be_reported(self) -> None:
        session = self.at()
        session.world.call("search_text")
        session.world.call("query")
        session.raw({"summary": "Looked.", "explored_files": ["app.py"], "findings": ["x"]})
        assert session.state.phase is Phase.Q1

    @pytest.mark.parametrize("empty", [{"explored_files": []}, {"findings": []}, {"findings": [" "]}])
    def test_empty_results_are_refused(self, empty: dict[str, object]) -> None:
        session = self.at()
        session.world.call("search_text")
        session.world.call("query")
        given = {"explored_files": ["app.py"], "findings": ["x"], "tools_used": ["search_text", "query"]} | empty
        session.send(**given)
        assert session.error == "failures.EXPLORATION.empty_result"

    def test_files_that_do_not_exist_are_named(self) -> None:
        session = self.at()
        answer = session.explore("gone.py", "app.py")
        assert session.error == "failures.EXPLORATION.file_not_found"
        assert "gone.py" in str(answer["message"])

    def test_the_server_says_how_sure_it_is_and_which_files_no_tool_showed(self) -> None:
        session = self.at()
        session.world.call("search_text", "app.py")
        session.world.call("get_symbols", "app.py")
        answer = session.send(
            explored_files=["./app.py", "README.md", "app.py"],
            findings=["x"],
            tools_used=["search_text", "get_symbols"],
        )
        assert answer["unseen_files"] == ["README.md"]
        assert answer["confidence"] == pytest.approx(0.3 * 0.5 + 0.4 * 0.5 + 0.3)
        assert session.state.explored_files == ["app.py"], "what nothing has shown is not writable"
        assert "README.md" in str(answer["hints"])

    @pytest.mark.parametrize("look", ["get_symbols", "client", "search_files"])
    def test_a_file_claimed_unseen_is_writable_once_it_was_looked_at(self, look: str) -> None:
        session = self.at()
        session.world.call("search_text", "app.py")
        session.world.call("get_symbols", "app.py")
        session.send(explored_files=["app.py", "README.md"], findings=["x"])
        for field in ("needs_more_information", "has_unverified_hypotheses", "needs_impact_analysis"):
            session.send(**{field: False}, reason="Nothing is left open.")
        session.plan("t1")
        session.edit("README.md", "# Other\n")
        session.report("t1", "README.md:1", reason="The title is the work.")
        assert session.error == "failures.READY.unexplored_changes"
        if look == "client":
            session.world.reads.add("README.md")
        else:
            session.world.call(look, "README.md")
        answer = session.report("t1", "README.md:1", reason="The title is the work.")
        assert answer["success"] is (look != "search_files"), "a mere name shows nothing"

    def test_a_document_that_step_3_listed_was_shown(self) -> None:
        """Found in play: the server called a changelog unseen that it had itself told to read."""
        session = Session()
        session.world.files["other.py"] = "x = 1\n"
        session.send(documents_reviewed=["README.md"])
        session.frame()
        session.world.call("search_text", "app.py")
        session.world.call("get_symbols", "app.py")
        answer = session.send(explored_files=["app.py", "README.md", "other.py"], findings=["x"])
        assert answer["unseen_files"] == ["other.py"]
        assert session.state.explored_files == ["app.py", "README.md"], "so it may be written"


class TestGates:
    def at(self, **flags: object) -> Session:
        session = Session(Flags(no_doc=True, **flags))  # type: ignore[arg-type]
        session.frame()
        session.explore()
        return session

    @pytest.mark.parametrize(
        ("payload", "key"),
        [
            ({"reason": REASON}, "semantic_needs_more_information_required"),
            ({"needs_more_information": "no", "reason": REASON}, "semantic_needs_more_information_type"),
            ({"needs_more_information": True}, "semantic_reason_required"),
            ({"needs_more_information": True, "reason": 3}, "semantic_reason_required"),
            ({"needs_more_information": True, "reason": "too short"}, "semantic_reason_length"),
        ],
    )
    def test_q1_wants_a_boolean_and_a_reason(self, payload: dict[str, object], key: str) -> None:
        session = self.at()
        session.send(**payload)
        assert session.error == f"tool_errors.check_phase_necessity.{key}"

    def test_each_gate_names_its_own_field(self) -> None:
        session = self.at()
        session.send(needs_more_information=False, needs_more_information_reason=REASON)
        session.send(reason=REASON)
        assert session.error == "tool_errors.check_phase_necessity.verification_has_unverified_required"
        session.send(has_unverified_hypotheses=False, reason=REASON)
        session.send(needs_impact_analysis=1, reason=REASON)
        assert session.error == "tool_errors.check_phase_necessity.impact_needs_analysis_type"

    def assessed(
        self, *symbols: str, intent: Intent = Intent.MODIFY, action: str = "change", **flags: object
    ) -> Session:
        session = Session(Flags(no_doc=True, **flags), intent)  # type: ignore[arg-type]
        session.send(action_type=action, target_symbols=list(symbols))
        session.answer = session.explore("app.py", "README.md")
        return session

    def test_the_three_questions_come_with_what_the_server_would_choose_and_why(self) -> None:
        session = self.assessed("main")
        session.state.unseen_files = ["README.md"]
        assert session.status()["server_assessment"] == {
            "needs_more_information": "false: everything you named was found: main.",
            "has_unverified_hypotheses": "true, unless you have read them: no tool of this session has shown README.md.",
            "needs_impact_analysis": "true: nobody has looked who uses main.",
        }

    @pytest.mark.parametrize(
        ("symbols", "action"), [(("nothing",), "add a validator"), (("main", "nothing"), "change")]
    )
    def test_a_name_that_is_to_be_added_need_not_be_there(self, symbols: tuple[str, ...], action: str) -> None:
        asked = self.assessed(*symbols, action=action).status().get("server_assessment", {})
        assert isinstance(asked, dict) and "needs_more_information" not in asked

    def test_a_later_question_comes_with_its_own_assessment_alone(self) -> None:
        assert "true: defined nowhere in the project: nothing." in str(self.assessed("nothing").answer)
        session = self.assessed("main", "nothing")
        assert "server_assessment" not in session.send(needs_more_information=False, reason=REASON)
        answer = session.send(has_unverified_hypotheses=False, reason=REASON)
        assert answer["server_assessment"] == {"needs_impact_analysis": "true: nobody has looked who uses main."}
        session.world.call("find_references", "app.py")
        assert "was looked up" in str(session.status()["server_assessment"])
        assert "server_assessment" not in session.send(needs_impact_analysis=False, reason=REASON)

    @pytest.mark.parametrize("gate", [GateLevel.AUTO, GateLevel.FULL])
    def test_the_server_says_nothing_where_it_knows_nothing_or_nothing_depends_on_it(self, gate: GateLevel) -> None:
        session = self.assessed(*(["main"] if gate is GateLevel.FULL else []), gate_level=gate)
        assert "server_assessment" not in session.answer

    def test_where_nothing_is_to_be_changed_no_impact_is_to_be_analysed(self) -> None:
        answer = self.assessed("main", intent=Intent.QUESTION).answer
        assert answer["server_assessment"]["needs_impact_analysis"] == "false: this session changes nothing."  # type: ignore[index]

    def test_gate_full_runs_what_was_judged_needless_and_says_so(self) -> None:
        session = Session(Flags(no_doc=True, gate_level=GateLevel.FULL))
        session.frame()
        answer = session.explore()
        assert "SEMANTIC runs" in str(answer["hints"])
        session.send(needs_more_information=False, reason=REASON)
        assert session.state.phase is Phase.SEMANTIC

    def test_yes_leads_into_the_phase(self) -> None:
        session = self.at()
        session.send(needs_more_information=True, reason=REASON)
        session.world.call("semantic_search", results=0)
        session.send(search_results=[], tools_used=["semantic_search"])
        session.send(has_unverified_hypotheses=True, reason=REASON)
        assert session.state.phase.name == "VERIFICATION"
        session.send(hypotheses_verified=[{"hypothesis": "h", "result": True, "evidence": "app.py:1"}])
        session.send(needs_impact_analysis=True, reason=REASON)
        assert session.state.phase.name == "IMPACT_ANALYSIS"
        session.world.call("analyze_impact")
        session.send(impact_summary={}, tools_used=["analyze_impact"])
        assert session.error == "failures.IMPACT_ANALYSIS.empty_impact_summary"
        session.world.call("analyze_impact", asks=("a1 app.py:1", "b2 use.py:3"))
        session.send(impact_summary={"tests": "none"}, must_verify={"b2": "only reads"}, tools_used=["analyze_impact"])
        assert session.state.phase.name == "READY"
        assert session.state.must_verify == {"a1 app.py:1": "", "b2 use.py:3": "only reads"}


class TestSemanticAndVerification:
    def at_semantic(self) -> Session:
        session = TestGates().at()
        session.send(needs_more_information=True, reason=REASON)
        return session

    def test_semantic_search_must_have_run(self) -> None:
        session = self.at_semantic()
        session.send(search_results=["app.py:1"], tools_used=["semantic_search"])
        assert session.error == "common_failures.required_tools_not_used"

    def test_no_results_are_refused_where_the_search_found_some(self) -> None:
        session = self.at_semantic()
        session.world.call("semantic_search", results=3)
        session.send(search_results=[], tools_used=["semantic_search"])
        assert session.error == "failures.SEMANTIC.empty_search_results"

    def test_results_of_a_search_that_ran_are_taken(self) -> None:
        session = self.at_semantic()
        session.world.call("semantic_search", results=3)
        session.send(search_results=["app.py:1"], tools_used=["semantic_search"])
        assert session.state.phase is Phase.Q2

    def test_no_search_at_all_cannot_have_been_empty(self) -> None:
        session = self.at_semantic()
        override = session.contract.texts.phases["SEMANTIC", ""]
        assert override.required_tools == ("semantic_search",)

    def at_verification(self) -> Session:
        session = TestGates().at()
        session.send(needs_more_information=False, reason=REASON)
        session.send(has_unverified_hypotheses=True, reason=REASON)
        return session

    def test_hypotheses_must_be_given_and_hold(self) -> None:
        session = self.at_verification()
        session.send(hypotheses_verified=[])
        assert session.error == "failures.VERIFICATION.empty_hypotheses"
        session.send(hypotheses_verified=[{"hypothesis": "h", "result": False, "evidence": "app.py:1"}])
        assert session.error == "failures.VERIFICATION.result_false_exists"
        session.send(hypotheses_verified=[{"hypothesis": "h", "result": "yes", "evidence": "app.py:1"}])
        assert session.error == "common_failures.field_invalid"

    @pytest.mark.parametrize(
        ("evidence", "good"),
        [
            ("app.py:1", True),
            ("see app.py:1-2, it returns", True),
            ("search_text showed it", True),
            ("analyze_impact showed it", False),
            ("app.py:99", False),
            ("app.py:2-1", False),
            ("gone.py:1", False),
            ("../app.py:1", False),
            ("", False),
        ],
    )
    def test_evidence_is_a_place_that_exists_or_a_tool_that_ran(self, evidence: str, good: bool) -> None:
        session = self.at_verification()
        session.send(hypotheses_verified=[{"hypothesis": "h", "result": True, "evidence": evidence}])
        assert (session.state.phase is Phase.Q3) is good
        assert session.error == ("" if good else "failures.VERIFICATION.evidence_invalid")


class TestBranchIntervention:
    def at(self, **world: object) -> Session:
        return Session(world=World(stale=("llm_task_old",), **world))  # type: ignore[arg-type]

    @pytest.mark.parametrize("choice", [None, "", "Delete", 3, ["delete"]])
    def test_another_choice_is_refused(self, choice: object) -> None:
        session = self.at()
        session.send(choice=choice)
        assert session.error == "failures.BRANCH_INTERVENTION.invalid_choice"

    def test_delete_removes_the_branches_recoverably(self) -> None:
        session = self.at()
        answer = session.send(choice="delete")
        assert answer["branches_removed"] == ["llm_task_old"]
        assert answer["archived"] == ["refs/code-intel/archive/llm_task_old"]
        assert session.last is not None
        assert session.last.retired == ("20200101_000000",)
        assert session.state.phase is Phase.DOCUMENT_RESEARCH

    def test_merge_is_offered_only_on_a_task_branch_with_a_base(self) -> None:
        session = self.at(bases={"llm_task_old": "main"})
        assert session.started["branches"] == [{"name": "llm_task_old", "base": "main"}]
        assert "'merge'" not in str(session.started["expected_payload"])
        assert "`git switch llm_task_old`" in str(session.send(choice="merge")["hints"])
        assert session.error == "failures.BRANCH_INTERVENTION.merge_not_offered"
        session = self.at(current="llm_task_old", current_base="main")
        assert "merge: merge the current one" in str(session.started["instruction"])
        answer = session.send(choice="merge")
        assert answer["merge_commit"]
        assert "llm_task_old: its session did not come to its end" in str(answer["warning"])
        assert session.state.base == "main"

    def test_where_the_branches_are_gone_nothing_is_said_to_be_detected_and_delete_goes_on(self) -> None:
        session = self.at(current="llm_task_old", current_base="main")
        assert session.send(choice="x")["hints"]
        session.world.stale = ()
        answer = session.send(choice="x")
        assert "are gone" in str(answer["instruction"])
        assert "merge'" not in str(answer["expected_payload"])
        assert "hints" not in answer
        assert session.send(choice="delete")["branches_removed"] == []
        assert session.state.phase is Phase.DOCUMENT_RESEARCH
        assert session.state.branch_policy is None

    def test_a_failed_operation_is_the_users_and_continue_stays_open(self) -> None:
        session = self.at(failing={"retire": "failures.BRANCH_INTERVENTION.branch_operation_failed"})
        answer = session.send(choice="delete")
        assert answer["error"] == "branch_operation_failed"
        assert answer["requires_user_intervention"] is True
        session.send(choice="continue")
        assert session.state.branch_policy == "continue"

    def test_continue_on_a_task_branch_goes_on_with_it(self) -> None:
        session = self.at(current="llm_task_old", current_base="main")
        session.send(choice="continue")
        session.to_ready().plan("t1")
        assert session.state.task_branch is not None
        assert session.state.task_branch.name == "llm_task_old"

    def test_continue_off_a_task_branch_commits_where_head_is_and_merges_nothing(self) -> None:
        session = self.at()
        session.send(choice="continue")
        session.to_ready().to_commit()
        assert session.state.task_branch is None
        session.commit()
        assert session.world.commits[0].branch is None
        session.send(issues=[], quality_prompt_used="quality_review")
        assert session.raw({"summary": "end"})["message"] == "No task branch. Session complete."


class TestVerification:
    def test_several_verifiers_may_have_been_followed(self) -> None:
        session = Session().to_ready().to_verify()
        session.send(passed=True, verifier_used=["tests", "generic"], details="green")
        assert session.state.phase is Phase.PRE_COMMIT

    def test_the_verifiers_that_fit_the_change_are_named_and_those_of_the_project(self) -> None:
        files = [f".code-intel/verifiers/{name}.md" for name in ("api", "backend", "docs", "generic", "ours", "tests")]
        session = Session(world=World(prompt_files=files)).to_ready().to_verify()
        assert session.status()["resources"] == [".code-intel/verifiers/backend.md", ".code-intel/verifiers/ours.md"]

    @pytest.mark.parametrize("said", ["tests (with the generic one)", ["tests and generic"], "tests, generic"])
    def test_verifiers_may_be_named_in_a_sentence(self, said: object) -> None:
        session = Session().to_ready().to_verify()
        assert session.send(passed=True, verifier_used=said, details="green")["success"]
        assert session.state.receipt and session.state.receipt.verifier.count(".md") == 2

    @pytest.mark.parametrize(
        ("payload", "key"),
        [
            ({}, "passed_required"),
            ({"passed": True, "verifier_used": "nope"}, "verifier_not_found"),
            ({"passed": True}, "verifier_not_found"),
            ({"passed": True, "verifier_used": ["tests", "nope"]}, "verifier_not_found"),
            ({"passed": True, "verifier_used": "api, and docstests"}, "verifier_not_found"),
            ({"passed": True, "verifier_used": []}, "verifier_not_found"),
            ({"passed": False, "verifier_used": "tests", "failed_tasks": ["zz"]}, "unknown_failed_tasks"),
            ({"passed": False, "verifier_used": "tests"}, "details_required"),
        ],
    )
    def test_a_verdict_needs_its_parts(self, payload: dict[str, object], key: str) -> None:
        session = Session().to_ready().to_verify()
        session.send(**payload)
        assert session.error == f"failures.POST_IMPL_VERIFY.{key}"

    def test_a_pass_against_a_failing_command_is_refused_with_its_output(self) -> None:
        session = Session(world=World(proof=ProofStatus.FAILED)).to_ready().to_verify()
        answer = session.send(passed=True, verifier_used="tests.md", details="all green")
        assert session.error == "failures.POST_IMPL_VERIFY.proof_failed"
        assert "1 failed" in str(answer["message"])
        assert answer["proof"]["status"] == "failed"  # type: ignore[index]
        session.send(passed=False, verifier_used="tests", details="1 failed")
        assert session.state.phase is Phase.READY

    @pytest.mark.parametrize(
        ("status", "trailer"),
        [(ProofStatus.UNPROVEN, "Code-Intel-Unproven"), (ProofStatus.WAIVED, "Code-Intel-Waived")],
    )
    def test_what_was_not_proven_is_said_in_answer_and_trailer(self, status: ProofStatus, trailer: str) -> None:
        session = Session(world=World(proof=status)).to_ready().to_verify()
        answer = session.send(passed=True, verifier_used="tests", details="green")
        assert "pytest -q" in str(answer["warning"])
        answer = session.commit()
        assert "pytest -q" in str(answer["warning"])
        assert (trailer, "pytest -q") in session.world.commits[0].trailers

    def test_what_was_proven_is_said_in_the_trailers_of_commit_and_merge(self) -> None:
        session = Session(Flags(no_quality=True), world=World(proof=ProofStatus.PROVEN)).to_ready().to_commit()
        session.commit()
        session.raw({"summary": "merged"})
        for trailers in (session.world.commits[0].trailers, session.world.merge_trailers):
            assert [row for row in trailers if row[0] == "Code-Intel-Proof"] == [("Code-Intel-Proof", "pytest -q")]

    def test_what_was_written_during_the_proof_and_is_as_before_again_is_said_in_answer_and_trailer(self) -> None:
        world = World(proof=ProofStatus.PROVEN, rewrites_on_proof=("b.py", "a.py"))
        session = Session(world=world).to_ready().to_verify()
        answer = session.send(passed=True, verifier_used="tests", details="green")
        assert "as before again: a.py, b.py" in str(answer["warning"])
        session.commit()
        assert ("Code-Intel-Rewritten-In-Proof", "a.py, b.py") in session.world.commits[0].trailers

    @pytest.mark.parametrize(
        ("details", "other"),
        [
            ("All of it: 1139 passed, ruff is clean.", True),
            ("`pytest -q`: 1,140 passed.", False),
            ("tests/test_login.py: 12 passed", False),
            ("12 passed in the new file, 1140 passed in all", False),
            ("green", False),
        ],
    )
    def test_a_number_of_passed_tests_that_the_server_did_not_see_is_said(self, details: str, other: bool) -> None:
        """Found with a real agent: its details had a number of its own, and nobody compared it with the server's run."""
        ran = CommandRun(("pytest", "-q"), ProofStatus.PROVEN, 0, 1.5, "", "1140 passed")
        session = Session(world=World(proof=ProofStatus.PROVEN, run=ran)).to_ready().to_verify()
        answer = session.send(passed=True, verifier_used="tests", details=details)
        assert answer["success"]
        said = "details says 1139 passed; the server's own run of `pytest -q` says 1140 passed"
        assert (said in str(answer.get("warning"))) is other, answer.get("warning")

    def test_what_a_command_left_is_the_sessions_as_soon_as_somebody_writes_to_it(self) -> None:
        world = World(proof=ProofStatus.PROVEN, writes_on_proof={"left.xml": "1\n"})
        session = Session(world=world).to_ready().to_verify()
        answer = session.send(passed=True, verifier_used="tests", details="green")
        assert "Left by the verify commands: left.xml." in str(answer["warning"])
        world.writes_on_proof = {"left.xml": "2\n"}
        session.edit("left.xml", "mine\n")
        assert session.commit()["missing"] == ["left.xml"]
        session.edit("left.xml", "1\n").commit("*")
        assert session.world.commits[0].keep == ("app.py",)

    def test_without_commands_the_verdict_is_marked(self) -> None:
        session = Session().to_ready().to_verify()
        answer = session.send(passed=True, verifier_used="tests", details="green")
        assert answer["proof"] == "none"
        assert "proof: none" in str(answer["warning"])

    def test_a_failure_goes_back_to_the_plan_with_reason_and_tasks(self) -> None:
        session = Session().to_ready().to_verify()
        answer = session.send(passed=False, verifier_used="tests", details="test_x fails")
        assert (answer["phase"], answer["step"]) == ("READY", 12)
        assert answer["revert_reason"] == "test_x fails"
        assert answer["tasks"] == [
            {
                "id": "t1",
                "description": "Do t1",
                "status": "completed",
                "failure_count": 1,
                "revert_reason": "test_x fails",
            }
        ]
        assert session.state.verification_failure_count == 1

    def test_three_failures_lead_to_an_intervention_and_back(self) -> None:
        session = Session().to_ready().to_verify()
        for number in range(3):
            session.send(passed=False, verifier_used="tests", details=f"fails {number}", failed_tasks=["t1"])
            if number < 2:
                assert session.state.place.step == 12
                session.plan(f"fix{number}")
                session.edit(text=f"def main():\n    return {number + 5}\n").report(
                    f"fix{number}", reason="the same line again"
                )
                session.send()
        assert session.state.phase is Phase.VERIFY_INTERVENTION
        session.send(prompt_used="nope", action_taken="x")
        assert session.error == "failures.VERIFY_INTERVENTION.prompt_not_found"
        session.send(prompt_used="interventions/step_back.md")
        assert session.error == "failures.VERIFY_INTERVENTION.action_taken_required"
        session.send(prompt_used="interventions/step_back.md", action_taken="Start from the test.")
        assert session.state.place.step == 12
        assert session.state.intervention_count == 1
        assert session.state.verification_failure_count == 0
        assert all(task.failure_count == 0 for task in session.state.tasks)

    def escalating(self) -> Session:
        session = Session().to_ready().to_verify()
        session.state.intervention_count = 2
        session.state.verification_failure_count = 2
        answer = session.send(passed=False, verifier_used="tests", details="still")
        assert answer["requires_user_intervention"] is True
        assert "user_escalation procedure" in str(answer["instruction"])
        assert "Intervention executed 2 times" in str(answer["message"])
        for told in (session.status(), session.raw({})):
            assert told["requires_user_intervention"] is True
        return session

    def test_after_two_interventions_the_user_decides(self) -> None:
        session = self.escalating()
        session.send(prompt_used="step_back", action_taken="x", user_decision="continue")
        assert session.error == "failures.VERIFY_INTERVENTION.escalation_prompt_required"
        session.send(prompt_used="user_escalation", action_taken="asked", user_decision="maybe")
        assert session.error == "failures.VERIFY_INTERVENTION.user_decision_required"
        session.send(prompt_used=".code-intel/user_escalation.md", action_taken="asked", user_decision="continue")
        assert session.state.place.step == 12

    def test_the_user_may_stop_the_session(self) -> None:
        session = self.escalating()
        answer = session.send(prompt_used="user_escalation", action_taken="asked", user_decision="stop")
        assert answer["phase"] == "SESSION_ABANDONED"

    def test_without_interventions_the_third_failure_asks_the_user(self) -> None:
        session = Session(Flags(no_intervention=True)).to_ready().to_verify()
        session.state.verification_failure_count = 2
        answer = session.send(passed=False, verifier_used="tests", details="again")
        assert answer["step"] == 12
        assert answer["requires_user_intervention"] is True
        assert str(answer["warning"]).count("3 times") == 1

    def test_that_the_user_must_be_asked_is_said_until_the_new_plan_and_not_after_it(self) -> None:
        """An agent that has forgotten everything can act on any one answer."""
        session = Session(Flags(no_intervention=True)).to_ready().to_verify()
        session.state.verification_failure_count = 2
        session.send(passed=False, verifier_used="tests", details="again")
        for answer in (session.status(), session.raw({}), session.send(tasks=[])):
            assert answer["requires_user_intervention"] is True
            assert "3 times" in str(answer["warning"])
        fix = {"id": "fix", "description": "Fix it", "status": "pending", "checklist": ["Fix it"]}
        answer = session.send(tasks=[{"id": "t1", "description": "As it is", "status": "completed"}, fix])
        assert answer["step"] == 13
        assert "requires_user_intervention" not in answer and "warning" not in answer

    @pytest.mark.parametrize(("passed", "said"), [(True, "passed"), (False, "failed")])
    def test_only_verify_ends_with_its_verdict(self, passed: bool, said: str) -> None:
        session = Session(Flags(only_verify=True))
        assert "Change nothing" in str(session.started["instruction"])
        answer = session.send(passed=passed, verifier_used="generic", details="looked at it")
        assert answer["phase"] == "SESSION_COMPLETE"
        assert f"Verification {said}" in str(answer["message"])
        verification = "none; by the agent's word: looked at it" if passed else "not passed"
        assert f"1 step(s); verification: {verification}." in str(answer["instruction"])

    def test_procedures_that_only_the_package_has_are_sent_as_text(self) -> None:
        session = Session(world=World(packaged_prompts=True)).to_ready().to_verify()
        answer = session.status()
        assert answer["procedures"] == {"generic": "Do generic."}
        session.send(passed=True, verifier_used="tests", details="green")
        answer = session.status()
        assert answer["procedure"] == {"name": "garbage_detection", "text": "Do garbage_detection."}


class TestPreCommit:
    def at(self, **world: object) -> Session:
        return Session(world=World(**world)).to_ready().to_commit()  # type: ignore[arg-type]

    def test_review_changes_must_have_run_in_this_round(self) -> None:
        session = self.at()
        session.send(reviewed_files=["app.py"], commit_message="m", tools_used=["review_changes"])
        assert session.error == "common_failures.required_tools_not_used"

    @pytest.mark.parametrize(
        ("change", "key"),
        [
            ({"commit_message": " "}, "failures.PRE_COMMIT.missing_commit_message"),
            ({"review_prompt_used": "nope"}, "failures.PRE_COMMIT.review_prompt_not_found"),
            ({"reviewed_files": []}, "failures.PRE_COMMIT.files_not_reviewed"),
            ({"reviewed_files": [{"path": "app.py", "decision": "discard"}]}, "failures.PRE_COMMIT.review_failed"),
            ({"reviewed_files": [{"path": "app.py", "decision": "burn"}]}, "common_failures.field_invalid"),
            ({"reviewed_files": [3]}, "common_failures.field_invalid"),
        ],
    )
    def test_a_commit_needs_its_parts(self, change: dict[str, object], key: str) -> None:
        session = self.at()
        session.world.call("review_changes")
        payload = {
            "reviewed_files": ["app.py"],
            "commit_message": "m",
            "review_prompt_used": "garbage_detection",
            "tools_used": ["review_changes"],
        }
        session.send(**payload | change)
        assert session.error == key

    def test_what_the_impact_asked_to_verify_is_changed_explained_or_undecided(self) -> None:
        session = self.at()
        assert "must_verify" not in session.status()["expected_payload"]  # type: ignore[operator]
        session.world.call("analyze_impact", asks=("a1 app.py:1", "b2 use.py:3", "c3 docs/use.md:9", "d4 far.py:2"))
        left = ["b2 use.py:3", "c3 docs/use.md:9", "d4 far.py:2"]
        assert "must_verify" in session.status()["expected_payload"]  # type: ignore[operator]
        assert session.status()["must_verify"] == left, "what can be said of them is asked for before the commit"
        said = {"b2": "calls it with one argument as before", "d4": "changed"}
        answer = session.commit("app.py", must_verify=said)
        assert "docs/use.md:9, far.py:2." in str(answer["warning"])
        assert session.state.must_verify == {
            "a1 app.py:1": "changed",
            "b2 use.py:3": "calls it with one argument as before",
            "c3 docs/use.md:9": "",
            "d4 far.py:2": "",
        }

    def test_an_entry_that_nobody_asked_to_verify_is_refused_with_those_there_are(self) -> None:
        session = self.at()
        session.world.call("analyze_impact", asks=("a1 app.py:1",))
        session.commit("app.py", must_verify={"zz": "changed"})
        assert session.error == "common_failures.field_invalid"

    @pytest.mark.parametrize("pattern", ["app.py", "./app.py", "*.py", "*"])
    def test_globs_cover_files(self, pattern: str) -> None:
        session = self.at()
        session.commit(pattern)
        assert session.world.commits[0].keep == ("app.py",)

    def test_a_name_that_cannot_be_shown_is_taken_as_it_was_shown(self) -> None:
        session = self.at()
        session.edit("\x7f\udcff.py", "x = 1\n")
        session.commit("app.py", "\\x7f\\udcff.py")
        assert sorted(session.world.commits[0].keep) == ["app.py", "\x7f\udcff.py"]

    def test_a_folder_covers_what_is_in_it_and_an_exact_path_wins(self) -> None:
        session = Session(
            world=World(files={"src/a.py": "x = 1\n", "src/b.py": "y = 1\n"}, documents=[])
        ).to_ready_without_documents()
        session.plan("t1")
        session.edit("src/a.py", "x = 2\n").edit("src/b.py", "y = 2\n").report("t1", "src/a.py:1")
        session.send()
        session.send(passed=True, verifier_used="tests", details="green")
        session.commit("src/", {"path": "src/b.py", "decision": "leave", "reason": "the user's own"})
        assert session.world.commits[0].keep == ("src/a.py",)
        assert session.world.commits[0].leave == ("src/b.py",)

    @pytest.mark.parametrize(
        "twice",
        [
            ["app.py", {"path": "./app.py", "decision": "leave", "reason": "the user's"}],
            [{"path": "*.py", "decision": "discard", "reason": "left over"}, "app.*"],
        ],
    )
    def test_a_file_that_is_decided_twice_and_differently_is_named(self, twice: list[object]) -> None:
        session = self.at()
        answer = session.commit(*twice)
        assert session.error == "failures.PRE_COMMIT.decided_twice"
        assert "app.py" in str(answer["message"])

    def test_a_file_named_twice_alike_keeps_its_reason(self) -> None:
        session = self.at()
        session.world.scripts["app.py"] = "python app.py"
        reasoned = {"path": "app.py", "decision": "keep", "reason": "It checked the old way."}
        session.commit("app.py", reasoned, "app.py", "*.py")
        assert session.world.commits[0].keep == ("app.py",)

    def test_a_file_that_a_verify_command_runs_is_kept_with_a_reason_only(self) -> None:
        session = self.at()
        session.world.scripts["app.py"] = "python app.py"
        answer = session.commit("app.py")
        assert session.error == "failures.PRE_COMMIT.tests_changed_need_reason"
        assert "the verify command python app.py runs this file" in str(answer["message"])
        session.commit({"path": "app.py", "decision": "keep", "reason": "It checks one thing more."})
        assert session.world.commits[0].keep == ("app.py",)

    @pytest.mark.parametrize(
        ("path", "kind", "old_path", "said"),
        [
            ("app_test.py", ChangeKind.MODIFIED, "", "a test of before"),
            ("app_test.py", ChangeKind.DELETED, "", "a test of before"),
            ("notes.txt", ChangeKind.RENAMED, "app_test.py", "a test of before"),
            ("app_test.py", ChangeKind.ADDED, "", ""),
            ("a/conftest.py", ChangeKind.ADDED, "", "may decide which tests run"),
            (".cargo/config.toml", ChangeKind.MODIFIED, "", "may decide which tests run"),
            ("other/config.toml", ChangeKind.MODIFIED, "", ""),
            ("package.json", ChangeKind.MODIFIED, "", "may decide which tests run"),
            ("ci.toml", ChangeKind.MODIFIED, "", "the verify command pytest -c ci.toml runs this file"),
            ("lib/x.py", ChangeKind.RENAMED, "sub/x.py", "leaves a folder that the verify command run sub names"),
            ("sub/y.py", ChangeKind.RENAMED, "sub/x.py", ""),
            ("app.py", ChangeKind.MODIFIED, "", ""),
        ],
    )
    def test_what_bears_on_the_tests_needs_a_reason_where_no_run_compared_them(
        self, path: str, kind: ChangeKind, old_path: str, said: str
    ) -> None:
        session = self.at(proof=ProofStatus.PROVEN)
        session.world.arguments = {"ci.toml": "pytest -c ci.toml", "sub": "run sub"}
        found = "".join(uncompared(session.state, session.ports, Change(path, kind, old_path)))
        assert said in found and bool(said) is bool(found)
        receipt = session.state.receipt
        assert receipt is not None
        receipt.tests = SeenTests()
        assert uncompared(session.state, session.ports, Change(path, kind, old_path)) == ()
        receipt.tests, receipt.status = None, ProofStatus.NONE
        if path == "package.json":
            assert uncompared(session.state, session.ports, Change(path, kind)) == ()

    @pytest.mark.parametrize(("late_edit", "looks"), [(False, 2), (True, 2)])
    def test_a_commit_looks_at_the_tree_before_and_after(self, late_edit: bool, looks: int) -> None:
        """And once more after each verify command that runs; no other look could see anything new."""
        session = self.at(proof=ProofStatus.PROVEN)
        if late_edit:
            session.edit(text="def main():\n    return 3\n")
        runs = session.world.proof_runs
        session.world.looks = 0
        session.commit()
        assert session.world.commits
        assert session.world.proof_runs == runs + late_edit
        assert session.world.looks == looks

    def test_the_instruction_names_no_field_that_its_answer_lacks(self) -> None:
        """Found with a real agent: it looked for `review` and `needs_reason` in an answer that had neither."""
        instruction = str(self.at().status()["instruction"])
        assert {"review", "needs_reason"}.isdisjoint(re.findall(r"\w+", instruction))

    def test_a_discarded_file_is_archived_and_put_back(self) -> None:
        session = self.at()
        answer = session.commit({"path": "app.py", "decision": "discard", "reason": "debug output only"})
        assert session.world.files["app.py"] == "def main():\n    return 1\n"
        assert "Nothing to commit" in str(answer["warning"])
        assert session.state.commits == []

    def test_what_is_discarded_may_have_changed_since_the_look(self) -> None:
        session = self.at()
        session.edit("junk.txt", "x\n")
        session.world.call("review_changes", "app.py", tree=session.ports.tree.snapshot())
        session.edit("junk.txt", "y\n")
        answer = session.send(
            reviewed_files=["app.py", {"path": "junk.txt", "decision": "discard", "reason": "left over"}],
            commit_message="Add it",
            review_prompt_used="garbage_detection",
        )
        assert answer["success"], answer
        assert session.world.commits[0].keep == ("app.py",)

    def test_each_file_that_is_committed_was_shown_whole_as_it_is_in_some_look(self) -> None:
        """Found by an opponent: a first look that showed a file whole counted for what it was made afterwards."""
        session, junk = self.at(), {"path": "junk.txt", "decision": "discard", "reason": "left over"}
        session.edit("junk.txt", "x\n")
        session.world.call("review_changes", "app.py", "junk.txt", tree=session.ports.tree.snapshot())
        session.edit("junk.txt", "y\n")
        session.world.call("review_changes", "junk.txt", tree=session.ports.tree.snapshot())
        session.edit("app.py", "def main():\n    return 3\n")
        session.world.call("review_changes", "app.py", tree=session.ports.tree.snapshot(), asks=("app.py",))
        payload = {
            "reviewed_files": ["app.py", junk],
            "commit_message": "Add it",
            "review_prompt_used": "garbage_detection",
        }
        session.send(**payload)
        assert session.error == "failures.PRE_COMMIT.shown_in_part"
        session.edit("app.py", "def main():\n    return 2\n")
        session.edit("new.py", "x = 1\n")
        session.state.added_files["new.py"] = "needed for the change at hand"
        session.world.call("review_changes", "app.py", tree=session.ports.tree.snapshot())
        payload["reviewed_files"] = ["app.py", junk, "new.py"]
        session.send(**payload)
        assert session.error == "failures.PRE_COMMIT.shown_in_part", "no look showed new.py"
        session.world.call("review_changes", "new.py", tree=session.ports.tree.snapshot())
        assert session.send(**payload)["success"], "the first look showed app.py so"

    def test_a_file_was_shown_by_the_name_that_an_answer_gives_it(self) -> None:
        session = self.at()
        session.edit("soft\u00adhyphen.py", "x = 1\n")
        session.state.added_files["soft\u00adhyphen.py"] = "needed for the change at hand"
        session.world.call("review_changes", "app.py", "soft\\xadhyphen.py", tree=session.ports.tree.snapshot())
        kept = ["app.py", "soft\\xadhyphen.py"]
        answer = session.send(reviewed_files=kept, commit_message="Add it", review_prompt_used="garbage_detection")
        assert answer["success"], answer

    @pytest.mark.parametrize(("mine", "more"), [((), 0), (("mine.txt",), 1)])
    def test_tests_that_saw_what_is_left_out_of_the_commit_run_again_without_it(
        self, mine: tuple[str, ...], more: int
    ) -> None:
        session = self.at(
            proof=ProofStatus.PROVEN,
            tests=SeenTests({"fail_to_pass": 0, "pass_to_pass": 1, "flaky": 0}, passed_before=1),
        )
        assert session.state.receipt is not None
        for path in mine:
            session.edit(path, "x\n")
        session.state.receipt.tree = session.ports.tree.snapshot()
        runs = session.world.proof_runs
        session.commit("app.py", *({"path": path, "decision": "leave", "reason": "the user's own"} for path in mine))
        assert session.world.commits[0].leave == mine
        assert session.world.proof_runs == runs + more

    def test_an_earlier_configuration_is_named_in_the_trailers(self) -> None:
        session = self.at()
        session.state.earlier_config = True
        session.commit()
        assert ("Code-Intel-Config", "trusted earlier, and another content since") in session.world.commits[0].trailers

    def test_discarding_beside_a_commit_names_the_archive(self) -> None:
        session = self.at()
        session.edit("junk.txt", "x\n")
        answer = session.commit("app.py", {"path": "junk.txt", "decision": "discard", "reason": "left over"})
        assert answer["archived"] == ["refs/code-intel/archive/discarded"]
        assert "junk.txt" not in session.world.files

    def test_a_change_that_nobody_explored_is_not_committed(self) -> None:
        session = self.at()
        session.world.files["README.md"] = "# Changed\n"
        answer = session.commit("*")
        assert session.error == "failures.PRE_COMMIT.unexplored_changes"
        assert answer["unexplored"] == ["README.md"]
        session.commit("app.py", {"path": "README.md", "decision": "leave", "reason": "the user's own edit"})
        assert session.state.phase is Phase.QUALITY_REVIEW

    def test_what_tests_no_longer_show_is_asked_once_and_the_reason_is_kept(self) -> None:
        asked = {"t.py::old": "passed before this change and fails with it"}
        counts = {"fail_to_pass": 2, "pass_to_pass": 8, "flaky": 1}
        seen = SeenTests(counts, passed_before=9, questions=asked, runs={"red": "0 of 2 passed, 0.1 s"})
        session = Session(world=World(proof=ProofStatus.PROVEN, tests=seen)).to_ready().to_verify()
        verdict = {"passed": True, "verifier_used": "tests", "details": "green"}
        answer = session.send(**verdict)
        assert session.error == "common_failures.tests_need_reason"
        assert answer["tests"] == ["t.py::old (passed before this change and fails with it)"]
        session.send(**verdict, tests_reason="too short")
        assert session.error == "common_failures.tests_need_reason"
        answer = session.send(**verdict, tests_reason="It checked what nobody wants.")
        assert isinstance(told := answer["tests"], dict)
        assert told["with_a_reason"] == {"t.py::old": "It checked what nobody wants."}
        session.edit(text="def main():\n    return 3\n")
        asked["t.py::old"] = "passed before this change and hangs with it"
        session.commit("app.py")
        assert session.error == "common_failures.tests_need_reason"
        asked["t.py::old"] = "passed before this change and fails with it"
        session.commit("app.py")
        assert [
            row
            for row in session.world.commits[0].trailers
            if row[0][11:] not in {"Session", "Tasks", "Proof", "Reworked"}
        ] == [
            ("Code-Intel-Fail-To-Pass", "2"),
            ("Code-Intel-Pass-To-Pass", "8 of 9"),
            ("Code-Intel-Flaky", "1"),
            ("Code-Intel-Original-Tests", "1 with a reason: It checked what nobody wants."),
        ]

    def test_what_was_uncommitted_before_is_not_committed_in_silence(self) -> None:
        session = self.at(uncommitted=("app.py", "more.py"))
        answer = session.commit()
        assert "which the review did not show: app.py" in str(answer["warning"])
        assert ("Code-Intel-Unreviewed", "app.py") in session.world.commits[0].trailers

    @pytest.mark.parametrize(
        ("tracked", "untracked", "named", "trailer"),
        [
            (("lib.py", "a.py"), ("new.py", "notes.md"), "lib.py, new.py", "a.py, lib.py; 1 untracked file(s)"),
            (("lib.py",), (), "lib.py", "lib.py"),
            ((), ("new.py", "tests/new.py"), "new.py, tests/new.py", "2 untracked file(s)"),
        ],
    )
    def test_what_the_proof_saw_otherwise_than_committed_is_told(
        self, tracked: tuple[str, ...], untracked: tuple[str, ...], named: str, trailer: str
    ) -> None:
        """Of what git does not track the commit says how much there was: the names are the user's own affair."""
        session = self.at(proof=ProofStatus.PROVEN, beside=Beside(tracked, untracked))
        answer = session.commit()
        assert named in str(answer["warning"])
        assert ("Code-Intel-Proven-Beside", trailer) in session.world.commits[0].trailers
        assert session.world.beside_asked == [frozenset({"app.py"})], "what is committed is not beside the commit"

    @pytest.mark.parametrize("untracked", [(), ("notes.md", "docs/plan.txt")])
    def test_what_cannot_bear_on_the_proof_is_not_told(self, untracked: tuple[str, ...]) -> None:
        session = self.at(proof=ProofStatus.PROVEN, beside=Beside((), untracked))
        assert "otherwise than the commit" not in str(session.commit())
        assert "Code-Intel-Proven-Beside" not in dict(session.world.commits[0].trailers)

    @pytest.mark.parametrize("proof", [ProofStatus.NONE, ProofStatus.WAIVED, ProofStatus.UNPROVEN])
    def test_where_nothing_was_proven_only_the_configuration_matters(self, proof: ProofStatus) -> None:
        """It names the commands, or none."""
        session = self.at(proof=proof, beside=Beside(("lib.py",), ("new.py",)), left_out=("a.py",))
        assert "otherwise than the commit" not in str(session.commit())
        session = self.at(proof=proof, beside=Beside(("lib.py",), ("new.py",)), left_out=(".code-intel/config.json",))
        assert "otherwise than the commit holds them: .code-intel/config.json." in str(session.commit()["warning"])
        assert ("Code-Intel-Proven-Beside", ".code-intel/config.json") in session.world.commits[0].trailers

    def test_what_was_left_out_of_the_checkout_when_the_commands_ran_is_told(self) -> None:
        """Also where it is back by the time of the commit, and one of the files that are committed."""
        session = self.at(proof=ProofStatus.PROVEN, left_out=("app.py", "tests/test_app.py"))
        session.world.left_out = ()
        session.commit()
        assert ("Code-Intel-Proven-Beside", "app.py, tests/test_app.py") in session.world.commits[0].trailers

    def test_without_a_verification_nothing_lay_beside_a_proof(self) -> None:
        session = self.at(proof=ProofStatus.PROVEN, beside=Beside(("lib.py",), ()))
        session.state.receipt = None
        session.state.flags = Flags(no_verify=True)
        session.commit()
        assert session.world.beside_asked == []
        assert session.world.commits

    def test_an_edit_after_the_receipt_runs_the_proofs_again(self) -> None:
        session = self.at(proof=ProofStatus.PROVEN)
        assert session.world.proof_runs == 1
        session.edit(text="def main():\n    return 3\n")
        session.commit()
        assert session.world.proof_runs == 2
        assert session.state.phase is Phase.QUALITY_REVIEW

    def test_an_unchanged_tree_keeps_its_receipt(self) -> None:
        session = self.at(proof=ProofStatus.PROVEN)
        session.commit()
        assert session.world.proof_runs == 1

    def test_a_proof_that_now_fails_goes_back_to_the_plan_and_counts(self) -> None:
        session = self.at(proof=ProofStatus.PROVEN)
        session.edit(text="def main():\n    return 3\n")
        session.world.proof = ProofStatus.FAILED
        answer = session.commit()
        assert answer["step"] == 12
        assert "pytest -q" in str(answer["revert_reason"])
        assert "1 failed" in str(answer["warning"])
        assert session.state.verification_failure_count == 1
        assert session.world.commits == []

    def test_a_revert_reason_instead_of_a_message_goes_back_to_the_plan(self) -> None:
        session = self.at()
        session.world.call("review_changes")
        answer = session.send(revert_reason="leaks a handle", tools_used=["review_changes"])
        assert answer["step"] == 12
        assert answer["revert_reason"] == "leaks a handle"
        assert session.state.verification_failure_count == 1

    def test_a_commit_resets_the_consecutive_failures(self) -> None:
        session = self.at()
        session.state.verification_failure_count = 2
        session.commit()
        assert session.state.verification_failure_count == 0

    def test_without_verification_nothing_is_proven_and_the_trailer_says_so(self) -> None:
        session = Session(Flags(no_verify=True), world=World(proof=ProofStatus.FAILED)).to_ready().planned("t1")
        session.edit().report("t1")
        session.send()
        assert session.state.phase is Phase.PRE_COMMIT
        session.commit()
        assert ("Code-Intel-Skipped", "POST_IMPL_VERIFY, VERIFY_INTERVENTION") in session.world.commits[0].trailers

    def test_a_failing_hook_is_the_users_and_changes_nothing(self) -> None:
        session = self.at(failing={"commit": "failures.PRE_COMMIT.finalize_failed"})
        answer = session.commit()
        assert answer["error"] == "finalize_failed"
        session.world.failing.clear()
        session.commit("app.py", mood="again")
        assert session.state.phase is Phase.QUALITY_REVIEW

    def test_what_changed_outside_of_the_projects_folder_is_named(self) -> None:
        session = self.at()
        session.world.outside = ("package-lock.json",)
        assert "in no commit of this session: package-lock.json" in str(session.commit()["warning"])

    def test_a_lost_branch_is_said(self) -> None:
        session = self.at()
        session.state.task_branch = None
        session.commit()
        assert session.error == "failures.PRE_COMMIT.branch_manager_not_found"

    def test_both_names_of_a_renamed_file_are_committed(self) -> None:
        session = Session().to_ready().planned("t1")
        session.world.files["main.py"] = session.world.files.pop("app.py")
        session.report("t1", "app.py:1")
        session.send()
        session.send(passed=True, verifier_used="tests", details="green")
        session.commit("main.py")
        assert session.world.commits[0].keep == ("main.py", "app.py")


class TestQualityAndMerge:
    def at(self, **world: object) -> Session:
        session = TestPreCommit().at(**world)
        session.commit()
        return session

    @pytest.mark.parametrize(
        ("payload", "key"),
        [
            ({"quality_prompt_used": "quality_review"}, "issues_required"),
            ({"issues": [], "quality_prompt_used": "nope"}, "quality_prompt_not_found"),
        ],
    )
    def test_a_verdict_on_quality_needs_its_parts(self, payload: dict[str, object], key: str) -> None:
        session = self.at()
        session.send(**payload)
        assert session.error == f"failures.QUALITY_REVIEW.{key}"

    def test_the_tree_must_be_what_was_committed(self) -> None:
        session = self.at()
        session.edit(text="def main():\n    return 9\n")
        answer = session.send(issues=[], quality_prompt_used="quality_review")
        assert answer["error"] == "commit_execution_failed"
        assert answer["changed"] == ["app.py"]
        session.send(issues=["app.py:2 changed after the commit"], quality_prompt_used="quality_review")
        assert session.state.place.step == 12

    def test_issues_go_back_to_the_plan_and_the_third_time_to_the_merge(self) -> None:
        session = self.at()
        for number in range(3):
            answer = session.send(issues=[f"ugly {number}"], quality_prompt_used="quality_review")
            if number == 2:
                break
            assert answer["revert_reason"] == f"Quality review: ugly {number}"
            assert f"{number + 1} of 3" in str(answer["warning"])
            session.plan(f"fix{number}")
            session.edit(text=f"def main():\n    return {number + 20}\n").report(
                f"fix{number}", reason="the same line again"
            )
            session.send()
            session.send(passed=True, verifier_used="tests", details="green")
            session.commit(mood=number)
        assert answer["phase"] == "MERGE"
        assert answer["warning"] == "Completed with unresolved quality issues."
        final = session.raw({"summary": "end"})
        assert "1 quality issue(s) unresolved" in str(final["instruction"])

    def test_what_a_commit_holds_needs_no_review_in_a_later_round_and_what_changed_since_does(self) -> None:
        session = TestPreCommit().at()
        session.world.scripts["run.sh"] = "sh run.sh"
        session.edit("run.sh", "true\n").edit("b.py", "x = 1\n")
        session.state.added_files |= dict.fromkeys(("run.sh", "b.py"), "needed for the change at hand")
        session.commit("app.py", "b.py", {"path": "run.sh", "decision": "keep", "reason": "runs one test more"})
        session.send(issues=["b.py:1 is too low"], quality_prompt_used="quality_review")
        session.plan("fix")
        session.edit("b.py", "x = 2\n").report("fix", "b.py:1")
        session.send()
        session.send(passed=True, verifier_used="tests", details="green")
        session.world.call("review_changes", "b.py", tree=session.ports.tree.snapshot())
        payload = {"commit_message": "Raise it", "review_prompt_used": "garbage_detection"}
        assert session.send(reviewed_files=[], **payload)["missing"] == ["b.py"]
        assert session.send(reviewed_files=["b.py"], **payload)["success"]
        assert set(session.world.commits[-1].keep) == {"app.py", "b.py", "run.sh"}
        assert session.state.file_reasons == {"run.sh": "runs one test more"}

    def merged_by_hand(self, proof: ProofStatus, flags: Flags | None = None) -> Session:
        """Before the merge, with one merge of the base made by hand on the branch."""
        session = Session(flags or Flags(no_quality=True), world=World(proof=ProofStatus.PROVEN)).to_ready()
        session.to_verify()
        if not session.state.flags.no_verify:
            session.send(passed=True, verifier_used="tests", details="green")
        session.commit()
        session.world.heads[session.state.tip] = dict(session.world.files)
        session.edit("lib.py", "MERGED = 1\n")
        session.world.hand_merges = HandMerges(("abc",), ("lib.py",))
        session.world.heads["abc"] = dict(session.world.files)
        session.world.proof = proof
        return session

    def test_what_was_merged_by_hand_is_proven_and_named(self) -> None:
        session = self.merged_by_hand(ProofStatus.PROVEN)
        runs = session.world.proof_runs
        answer = session.send()
        assert "Merged by hand: abc" in str(answer["warning"])
        assert "lib.py" in str(answer["warning"])
        assert session.world.proof_runs == runs + 1

    def test_a_merge_by_hand_that_fails_its_proof_is_refused_and_one_that_was_proven_is_not_run_again(self) -> None:
        session = self.merged_by_hand(ProofStatus.FAILED)
        session.world.hand_merges = HandMerges(("abc",))
        session.send()
        assert session.error == "failures.MERGE.proof_failed"
        session.world.proof = ProofStatus.PROVEN
        session.world.failing["merge"] = "failures.MERGE.merge_failed"
        session.send()
        assert session.error == "failures.MERGE.merge_failed"
        session.state.receipt = Receipt(status="proven", tree=session.ports.tree.snapshot(), verifier="tests")
        session.world.failing.clear()
        runs = session.world.proof_runs
        answer = session.send()
        assert answer["phase"] == "SESSION_COMPLETE"
        assert session.world.proof_runs == runs

    def test_a_merge_by_hand_is_proven_as_it_was_committed(self) -> None:
        session = self.merged_by_hand(ProofStatus.PROVEN)
        session.edit("lib.py", "MERGED = 2\n")
        session.send()
        assert session.error == "failures.MERGE.uncommitted"

    @pytest.mark.parametrize("proof", [ProofStatus.NONE, ProofStatus.UNPROVEN, ProofStatus.WAIVED])
    def test_what_lies_beside_a_merge_by_hand_is_named_where_no_command_runs(self, proof: ProofStatus) -> None:
        session = self.merged_by_hand(proof)
        session.edit("lib.py", "MERGED = 2\n")
        answer = session.send()
        assert "not in the merge made by hand: lib.py." in str(answer["warning"])
        assert answer["phase"] == "SESSION_COMPLETE"

    def test_without_verification_a_merge_by_hand_is_named_only(self) -> None:
        session = self.merged_by_hand(ProofStatus.FAILED, Flags(no_quality=True, no_verify=True))
        assert "Merged by hand" in str(session.send()["warning"])

    def test_the_merge_waits_for_the_quality_review(self) -> None:
        session = self.at()
        session.send(issues=[], quality_prompt_used="quality_review")
        session.state.completed_steps.remove(18)
        session.raw({"summary": "end"})
        assert session.error == "failures.MERGE.quality_review_required"

    def test_a_session_without_branch_information_is_inconsistent(self) -> None:
        session = self.at()
        session.send(issues=[], quality_prompt_used="quality_review")
        session.state.task_branch = None
        session.raw({"summary": "end"})
        assert session.error == "failures.MERGE.branch_manager_not_found"

    def test_a_conflict_is_the_users_and_can_be_tried_again(self) -> None:
        session = self.at(failing={"merge": "failures.MERGE.merge_failed"})
        session.send(issues=[], quality_prompt_used="quality_review")
        assert session.raw({"summary": "end"})["error"] == "merge_failed"
        session.world.failing.clear()
        assert session.raw({"summary": "end"})["phase"] == "SESSION_COMPLETE"

    def test_a_merge_that_nobody_verified_as_a_whole_is_said_to_be_one(self) -> None:
        session = self.at(combined=True)
        session.send(issues=[], quality_prompt_used="quality_review")
        assert "nobody has verified them together" in str(session.raw({"summary": "end"})["warning"])

    def test_commits_that_the_merge_brought_back_are_named(self) -> None:
        session = self.at(brought_back=("0123456789abcdef",))
        session.send(issues=[], quality_prompt_used="quality_review")
        answer = session.raw({"summary": "end"})
        assert "stands on them: 0123456789ab." in str(answer["warning"])

    def test_finish_mode_branch_says_how_to_push(self) -> None:
        session = self.at(push_hint="git push origin llm_task_x")
        session.send(issues=[], quality_prompt_used="quality_review")
        assert session.raw({"summary": "end"})["push"] == "git push origin llm_task_x"

    def test_a_branch_that_is_kept_for_a_folder_in_use_is_said_with_the_cause(self) -> None:
        session = self.at(push_hint="git push origin llm_task_x", busy="it is on other")
        session.send(issues=[], quality_prompt_used="quality_review")
        assert "is in use: it is on other." in str(session.raw({"summary": "end"})["message"])


class TestEndings:
    def test_an_investigation_ends_after_its_last_question(self) -> None:
        session = Session(intent=Intent.QUESTION)
        session.send(documents_reviewed=["README.md"])
        session.frame()
        session.explore()
        session.send(needs_more_information=False, reason=REASON)
        session.send(has_unverified_hypotheses=False, reason=REASON)
        answer = session.send(needs_impact_analysis=False, reason=REASON)
        assert answer["phase"] == "SESSION_COMPLETE"
        assert "Exploration complete" in str(answer["message"])
        assert "6 step(s); verification: not part of this session." in str(answer["instruction"])
        assert answer["call"] == "none"

    def test_quick_ends_with_the_verdict_and_makes_no_branch(self) -> None:
        session = Session(Flags(quick=True, no_doc=True))
        answer = session.frame()
        assert "add_explored_files" in str(answer["instruction"])
        session.state.added_files["app.py"] = "the file to change"
        session.to_verify()
        assert session.world.current == "main"
        answer = session.send(passed=True, verifier_used="tests", details="green")
        assert "(--quick)" in str(answer["message"])
        assert "5 step(s); 1 of 1 tasks completed; verification: none; by the agent's word: green; skipped" in str(
            answer["instruction"]
        )

    def test_quick_without_verification_ends_with_the_completion(self) -> None:
        session = Session(Flags(quick=True, no_doc=True, no_verify=True))
        session.frame()
        session.state.added_files["app.py"] = "the file to change"
        session.plan("t1")
        session.edit().report("t1")
        assert "--no-verify + --quick" in str(session.send()["message"])


class TestCompaction:
    def test_the_example_of_v1_13_replays(self) -> None:
        session = Session(Flags(no_doc=True))
        first = session.send(action_type="add", compaction_count=0)
        assert first["compaction_count"] == 0
        assert "phase_summaries" not in first
        session.world.call("search_text")
        session.world.call("query")
        found = {"explored_files": ["app.py"], "findings": ["x"], "tools_used": ["search_text", "query"]}
        second = session.send(**found, compaction_count=1)
        assert second["compaction_count"] == 1
        assert second["phase_summaries"] == {"step_04_QUERY_FRAME": "Done.", "step_05_EXPLORATION": "Done."}
        third = session.send(needs_more_information=False, reason=REASON, compaction_count=1)
        assert "phase_summaries" not in third
        fourth = session.send(has_unverified_hypotheses=False, reason=REASON, compaction_count=2)
        assert fourth["compaction_count"] == 2
        assert "phase_summaries" in fourth

    def test_a_refusal_carries_the_summaries_but_does_not_store_the_count(self) -> None:
        session = Session(Flags(no_doc=True))
        session.frame()
        answer = session.send(compaction_count=1)
        assert "phase_summaries" in answer
        assert session.state.compaction_count == 0

    def test_an_absent_count_is_not_compared(self) -> None:
        session = Session(Flags(no_doc=True))
        session.state.compaction_count = 4
        answer = session.frame()
        assert "phase_summaries" not in answer
        assert answer["compaction_count"] == 4

    def test_the_hook_brings_the_summaries_back_once_without_a_count(self) -> None:
        session = Session(Flags(no_doc=True))
        session.state.compacted = True
        assert "phase_summaries" in session.frame()
        assert not session.state.compacted


class TestCorners:
    def test_an_exploration_whose_named_groups_are_overridden_by_plain_tools_counts_those(self, tmp_path: Path) -> None:
        file = tmp_path / "phase_contract.yml"
        file.write_text(
            "phases:\n  EXPLORATION:\n    required_tools:\n      - any_of: [search_text, query]\n        at_least: 1\n"
        )
        session = Session(Flags(no_doc=True))
        session.contract = Contract.load(file)
        session.frame()
        session.world.call("find_definitions")
        session.send(explored_files=["app.py"], findings=["x"], tools_used=["find_definitions"])
        assert session.error == "common_failures.exploration_min_tools"
        session.world.call("query")
        session.send(explored_files=["app.py"], findings=["x"], tools_used=["query"])
        assert session.state.phase is Phase.Q1

    def test_a_whole_folder_named_twice_is_decided_once(self) -> None:
        session = TestPreCommit().at()
        session.commit("*.py", "*", "app.py")
        assert session.world.commits[0].keep == ("app.py",)

    def test_what_an_earlier_commit_changed_and_a_later_round_took_back_is_committed_too(self) -> None:
        session = TestQualityAndMerge().at()
        session.send(issues=["was better before"], quality_prompt_used="quality_review")
        session.plan("fix1")
        session.world.files["app.py"] = "def main():\n    return 1\n"
        session.edit("login.py", "def login():\n    return True\n").report("fix1", "login.py:1-2")
        session.send(summary="Taken back.")
        session.send(passed=True, verifier_used="tests", details="green")
        session.commit("login.py", mood="second")
        assert session.world.commits[1].keep == ("login.py", "app.py")

    def test_unexplored_files_that_tools_showed_need_no_hint(self) -> None:
        session = Session(Flags(no_doc=True))
        session.frame()
        assert "hints" not in session.explore("app.py")


class TestInterruptedCommit:
    """A commit that was made and never told: the next submit takes it over (SPEC 6)."""

    def at(self, new: str) -> Session:
        session = TestPreCommit().at()
        intent = GitIntent(GitOperation.COMMIT, "refs/heads/x", session.state.tip, new)
        session.state.pending = intent
        session.world.adopts = new
        return session

    def test_the_published_commit_is_told_and_not_made_twice(self) -> None:
        session = self.at("c" * 40)
        answer = session.commit()
        assert "c" * 40 in session.state.commits
        assert session.state.pending is None
        assert answer["phase"] == "QUALITY_REVIEW"

    def test_going_back_keeps_the_published_commit_as_the_tip(self) -> None:
        session = self.at("c" * 40)
        session.world.call("review_changes")
        session.send(revert_reason="leaks a handle", tools_used=["review_changes"])
        assert session.state.tip == "c" * 40
        assert session.state.place.step == 12
        assert session.state.pending is None

    def test_what_lay_untracked_before_the_session_is_in_no_later_commit(self) -> None:
        """The adopted commit does not hold it either; found by the kill run (a user's notes were committed)."""
        session = self.at("c" * 40)
        session.world.heads |= {"c" * 40: dict(session.world.files), session.state.tip: dict(session.world.files)}
        session.world.files["notes.txt"] = "mine\n"
        session.state.trees.base = session.state.trees.start = WorldTree(session.world).snapshot()
        session.edit(text="def main():\n    return 3\n")
        session.commit("app.py")
        assert [request.keep for request in session.world.commits] == [("app.py",)]

    def test_a_left_file_that_is_as_it_was_again_stays_out_of_the_next_commit(self) -> None:
        world = World()
        world.files["notes.txt"] = "mine\n"
        world.heads[world.head()] = {path: text for path, text in world.files.items() if path != "notes.txt"}
        session = Session(Flags(no_doc=True), world=world).to_ready("app.py", "notes.txt").planned("t1")
        session.edit().report("t1")
        session.edit("notes.txt", "mine, edited\n")
        session.verified()
        session.commit("app.py", {"path": "notes.txt", "decision": "leave", "reason": "the user writes it"})
        world.heads[session.state.tip] = {"app.py": world.files["app.py"], "README.md": "# App\n"}
        session.send(issues=["is not nice"], quality_prompt_used="quality_review")
        session.plan("fix1")
        session.edit(text="def main():\n    return 4\n").report("fix1")
        world.files["notes.txt"] = "mine\n"
        session.send(summary="Nicer.")
        session.send(passed=True, verifier_used="tests", details="green")
        session.commit("app.py", mood="second")
        assert [request.keep for request in world.commits] == [("app.py",), ("app.py",)]

    def test_an_intent_that_never_happened_is_dropped(self) -> None:
        session = self.at("")
        session.commit()
        assert session.state.pending is None
        assert len(session.state.commits) == 1

    def test_a_commit_that_holds_everything_already_is_the_answer(self) -> None:
        session = self.at("c" * 40)
        session.edit(text="def main():\n    return 1\n")
        answer = session.commit()
        assert answer["commit"] == "c" * 40
        assert session.state.commits == ["c" * 40]


class TestLeftFiles:
    def test_leaving_needs_a_reason_and_is_said_in_answer_and_trailer(self) -> None:
        session = TestPreCommit().at()
        session.edit("README.md", "# Mine\n")
        session.commit("app.py", {"path": "README.md", "decision": "leave"})
        assert session.error == "failures.PRE_COMMIT.leave_needs_reason"
        answer = session.commit("app.py", {"path": "README.md", "decision": "leave", "reason": "the user's edit"})
        assert "README.md" in str(answer["warning"])
        assert ("Code-Intel-Left", "README.md") in session.world.commits[-1].trailers

    def test_what_a_hook_committed_although_it_was_to_be_left_is_not_said_to_be_left(self) -> None:
        session = TestPreCommit().at()
        session.edit("README.md", "# Mine\n")
        session.world.altered = ("README.md",)
        answer = session.commit("app.py", {"path": "README.md", "decision": "leave", "reason": "the user's edit"})
        assert "does not hold what was reviewed: README.md." in str(answer["warning"])
        assert "Left uncommitted" not in str(answer["warning"])
        assert (session.state.left, session.state.altered) == ([], ["README.md"])

    def test_what_a_hook_writes_and_does_not_commit_is_said_with_the_commit(self) -> None:
        session = TestPreCommit().at()
        session.world.writes_on_commit = {"app.py": "def main():\n    return 9\n"}
        session.world.worktrees = ("wt",)
        said = str(session.commit()["warning"])
        assert "in no commit: app.py." in said
        assert "Other working trees of this repository lie in the project: wt." in said

    def test_what_a_hook_committed_in_an_earlier_round_stays_said_until_it_is_kept(self) -> None:
        session = TestPreCommit().at()
        session.state.altered = ["README.md"]
        session.commit("app.py")
        assert session.state.altered == ["README.md"]
        session = TestPreCommit().at()
        session.state.altered = ["app.py"]
        session.commit("app.py")
        assert session.state.altered == []

    def test_what_a_hook_made_of_the_commit_is_said_at_the_merge(self) -> None:
        session = TestPreCommit().at()
        session.state.altered = ["app.py"]
        session.state.left = ["x.md"]
        from code_intel_server.flow.handlers.delivery import trailers

        assert ("Code-Intel-Altered", "1 file(s) by a filter or hook") in trailers(session.state)

    def test_what_a_verify_command_writes_to_a_reviewed_file_must_be_reviewed_again(self) -> None:
        session = TestPreCommit().at(proof=ProofStatus.PROVEN)
        session.edit(text="def main():\n    return 3\n")
        session.world.writes_on_proof = {"app.py": "def main():\n    return 4\n"}
        session.commit()
        assert session.error == "failures.PRE_COMMIT.changed_meanwhile"

    def test_a_session_without_tasks_names_none(self) -> None:
        from code_intel_server.flow.handlers.delivery import trailers

        assert trailers(Session().state) == (("Code-Intel-Session", "20260201_123456"),)

    def test_globs_within_and_across_folders(self) -> None:
        from code_intel_server.flow.handlers.review import _covered

        assert _covered("src/*.py")("src/a.py")
        assert not _covered("src/*.py")("src/deep/a.py")
        assert _covered("src/**")("src/deep/a.py")
        assert _covered("**/a.py")("a.py")
        assert _covered("src/?.py")("src/a.py")
        assert not _covered("*")("src/a.py")
        assert not any(_covered(rooted)("src/a.py") for rooted in ("/**", "//**", "/src/**", "/src/", "/"))
        assert _covered("app/[id]/{x}\\*")("app/[id]/{x}\\a.py")

    @pytest.mark.parametrize("pattern", ["**b" * 30, "**/" * 500 + "x", "*b" * 30 + "c"])
    def test_no_glob_is_tried_in_every_possible_way(self, pattern: str) -> None:
        from code_intel_server.flow.handlers.review import _covered

        assert not _covered(pattern)("b/" * 60 + "b" * 60 + "a")

    def test_an_unmoved_branch_is_only_removed(self) -> None:
        session = TestQualityAndMerge().at()
        session.send(issues=[], quality_prompt_used="quality_review")
        session.world.unmoved = True
        assert "held no commit of its own" in str(session.raw({"summary": "end"})["message"])

    def test_a_project_without_documents_is_told_so(self) -> None:
        session = Session(world=World(documents=[]))
        assert "No project document" in str(session.started["instruction"])

    def test_one_packaged_procedure_of_its_kind_is_sent_alone_and_several_together(self) -> None:
        session = Session(world=World(packaged_prompts=True)).to_ready().to_verify()
        session.state.verification_failure_count = 2
        answer = session.send(passed=False, verifier_used="tests", details="again")
        assert answer["procedure"] == {"name": "step_back", "text": "Do step_back."}
        session.world.more_interventions = True
        assert set(session.status()["procedures"]) == {"step_back", "smaller_step"}  # type: ignore[call-overload]

    def test_pending_tasks_show_their_checklist_after_a_revert(self) -> None:
        session = Session().to_ready().to_verify()
        session.send(passed=False, verifier_used="tests", details="fails")
        session.plan("fix1")
        session.state.revert_reason = "again"
        session.state.substep = Substep.PLAN
        rows = session.raw({})["tasks"]
        assert rows[1]["checklist"] == ["Item of fix1"]  # type: ignore[index]
