"""Sessions that take any legal or illegal turn at any time agree with a plain model of SPEC 3."""

from collections import Counter
from typing import Any

import pytest
from benchmarks.faults.results import Record
from hypothesis import HealthCheck, seed, settings
from hypothesis import Phase as HypothesisPhase
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from code_intel_server.flow.phases import Flags, GateLevel, Intent
from tests.flow.world import Session, World

STEPS_IN_CI = 5_000
STEPS_A_SESSION = 100
REASON = "Because it is written so."
AS_BEFORE = "As before; get_session_status repeats it."

steps: Counter[str] = Counter()


class Model:
    """The transitions and the limits once more, as plain sentences (SPEC 3.3, 3.4)."""

    def __init__(self, flags: Flags, intent: Intent, stale: bool) -> None:
        self.flags = flags
        self.only_verify = flags.only_verify
        self.investigating = not self.only_verify and (
            intent in {Intent.INVESTIGATE, Intent.QUESTION} or flags.only_explore
        )
        shaping = not self.only_verify and not self.investigating
        self.fast, self.quick = shaping and flags.fast, shaping and flags.quick
        self.no_verify, self.no_quality = shaping and flags.no_verify, shaping and flags.no_quality
        # The matrix has no step 16 without step 15 either.
        self.no_intervention = shaping and (flags.no_intervention or flags.quick or flags.no_verify)
        self.full = flags.gate_level is GateLevel.FULL
        self.failures = self.interventions = self.quality = 0
        if self.only_verify:
            self.at = "POST_IMPL_VERIFY"
        else:
            self.at = "BRANCH_INTERVENTION" if stale else self._after_branches()

    def _after_branches(self) -> str:
        return "QUERY_FRAME" if self.flags.no_doc else "DOCUMENT_RESEARCH"

    def _built(self) -> str:
        """After READY 14 or a passed verification."""
        return "end" if self.quick or self.only_verify else "PRE_COMMIT"

    def _explored(self) -> str:
        return "end" if self.investigating else "READY 12"

    def ok(self) -> None:
        """What the phase wanted was given."""
        self.at = {
            "BRANCH_INTERVENTION": self._after_branches(),
            "DOCUMENT_RESEARCH": "QUERY_FRAME",
            "QUERY_FRAME": "READY 12" if self.fast or self.quick else "EXPLORATION",
            "EXPLORATION": "Q1",
            "SEMANTIC": "Q2",
            "VERIFICATION": "Q3",
            "IMPACT_ANALYSIS": self._explored(),
            "READY 14": self._built() if self.no_verify else "POST_IMPL_VERIFY",
            "MERGE": "end",
        }[self.at]

    def question(self, yes: bool) -> None:
        """Q1, Q2 or Q3 is answered."""
        yes_to, no_to = {
            "Q1": ("SEMANTIC", "Q2"),
            "Q2": ("VERIFICATION", "Q3"),
            "Q3": ("IMPACT_ANALYSIS", self._explored()),
        }[self.at]
        self.at = yes_to if yes or self.full else no_to

    def failed(self) -> None:
        """A verification failed, or the commit sent the work back."""
        self.failures += 1
        third = self.failures >= 3 and not self.no_intervention
        self.at = "end" if self.only_verify else "VERIFY_INTERVENTION" if third else "READY 12"

    def passed(self) -> None:
        """A verification passed."""
        self.at = self._built()

    def intervened(self) -> None:
        """Somebody stepped back and thought."""
        self.interventions += 1
        self.failures = 0
        self.at = "READY 12"

    def committed(self) -> None:
        """The work is committed."""
        self.failures = 0
        self.at = "MERGE" if self.no_quality or self.fast else "QUALITY_REVIEW"

    def reviewed(self, issues: bool) -> None:
        """The quality review found issues or none; the third time nothing goes back."""
        self.quality += issues
        self.at = "READY 12" if issues and self.quality < 3 else "MERGE"


SIMPLE_VALUES: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 10**12),
    st.sampled_from(["", " ", "app.py", "../x", "t0", "\ud800", "nul\0", "\u202e", "x" * 300]),
    st.just([]),
    st.just([{}]),
    st.just({}),
)
FIELDS = [
    "summary", "choice", "documents_reviewed", "action_type", "explored_files", "findings", "needs_more_information",
    "reason", "search_query", "hypotheses_verified", "impact_summary", "tasks", "task_id", "checklist", "passed",
    "verifier_used", "prompt_used", "reviewed_files", "commit_message", "revert_reason", "issues",
    "quality_prompt_used", "tools_used", "compaction_count", "user_decision", "details",
]  # fmt: skip


class SessionMachine(RuleBasedStateMachine):
    """One session after the other, each with any flags."""

    def __init__(self) -> None:
        super().__init__()
        self.session: Session | None = None
        self.number = 0

    # -- start ---------------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.session is None)
    @rule(
        intent=st.sampled_from(Intent),
        gate=st.sampled_from(GateLevel),
        stale=st.booleans(),
        given=st.sets(
            st.sampled_from(["no_verify", "no_quality", "only_explore", "fast", "quick", "no_doc", "no_intervention"]),
            max_size=2,
        ),
        only_verify=st.integers(0, 19),
    )
    def start(self, intent: Intent, gate: GateLevel, stale: bool, given: set[str], only_verify: int) -> None:
        """A new session, where the flags agree with each other."""
        if {"fast", "quick"} <= given:
            given = given - {"quick"}
        if only_verify == 0:
            given = {"only_verify"}
        flags = Flags(gate, **dict.fromkeys(given, True))
        world = World(stale=("llm_task_1",) if stale else ())
        self.session = Session(flags, intent, world)
        self.session.state.added_files["app.py"] = "the file to change"
        self.model = Model(flags, intent, stale)
        self.tasks: list[str] = []
        self.payload: dict[str, object] = {}
        self.agree()

    # -- turns ---------------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.session is not None)
    @rule(turns=st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=1, max_size=8))
    def go_on(self, turns: list[tuple[bool, int]]) -> None:
        """The payloads that the phases want, each in one of its variants."""
        for yes, other in turns:
            if self.session is None:
                return
            at = self.model.at
            steps[at] += 1
            getattr(self, "_" + at.split()[0].lower())(yes, other)
            self.agree()

    @precondition(lambda self: self.session is not None)
    @rule(data=st.dictionaries(st.sampled_from(FIELDS), SIMPLE_VALUES, max_size=4))
    def nonsense(self, data: dict[str, object]) -> None:
        """Whatever an agent may send without meaning it is refused, changes nothing and is answered with the instruction."""
        steps["nonsense"] += 1
        assert self.session is not None
        answer = self.session.raw({"tools_used": [], **data} if self.model.at == "MERGE" else data)
        if answer["success"]:
            assert self._may_pass(data), (self.model.at, data)
            self._follow_unmeant()
            return
        assert answer["error"] and answer["message"] and answer["instruction"] and answer["expected_payload"]
        self.agree()

    @precondition(lambda self: self.session is not None and bool(self.payload))
    @rule()
    def once_more(self) -> None:
        """The last accepted payload, sent again, has the same answer and no effect."""
        steps["again"] += 1
        assert self.session is not None
        again = self.session.raw(self.payload)
        assert again["instruction"] != AS_BEFORE
        # Where the first answer was short, the one to a repeat is the whole.
        assert again | {"instruction": self.answer["instruction"]} == self.answer | self.prose(again)
        self.agree()

    def prose(self, again: dict[str, object]) -> dict[str, object]:
        """What a repeated answer has beside a short one."""
        short = self.answer["instruction"] == AS_BEFORE
        return {name: value for name, value in again.items() if short and name == "resources"}

    @precondition(lambda self: self.session is not None and self.model.at in {"Q1", "READY 13"})
    @rule(answers=st.tuples(st.booleans(), st.booleans(), st.booleans()), more=st.booleans(), again=st.booleans())
    def together(self, answers: tuple[bool, bool, bool], more: bool, again: bool) -> None:
        """What may be sent together goes as one list, as far as nothing comes between."""
        assert self.session is not None
        steps["list"] += 1
        data = self._questions(answers) if self.model.at == "Q1" else self._reports(more)
        accepted = 0
        for place in ("Q1", "Q2", "Q3") if self.model.at == "Q1" else ():
            if self.model.at == place:
                self.model.question(answers[accepted])
                accepted += 1
        if not accepted:
            accepted, self.model.at = len(data), "READY 13" if self.tasks else "READY 14"
            if more and not self.tasks:
                self.model.ok()
        self.answer = self.session.raw(data)
        assert (self.answer["success"], self.answer["accepted"]) == (True, accepted), self.answer
        if again and self.model.at != "end":
            assert self.session.raw(data)["accepted"] == accepted
        self.payload = {}
        self.agree()

    def _questions(self, answers: tuple[bool, bool, bool]) -> list[dict[str, object]]:
        self.number += 1
        fields = ("needs_more_information", "has_unverified_hypotheses", "needs_impact_analysis")
        summary = f"Said {self.number}."
        return [{"summary": summary, name: yes, "reason": REASON} for name, yes in zip(fields, answers, strict=True)]

    def _reports(self, whole: bool) -> list[dict[str, object]]:
        """The report of the next task, or those of all tasks and the end of the work."""
        data = [self._done() for _ in range(len(self.tasks) if whole else 1)]
        self.number += 1
        return [*data, {"summary": f"All is done, {self.number}."}] if whole else data

    def _may_pass(self, data: dict[str, object]) -> bool:
        if not str(data.get("summary", "")).strip():
            return False
        framed = self.model.at == "QUERY_FRAME" and bool(str(data.get("action_type", "")).strip())
        return framed or self.model.at in {"MERGE", "READY 14"}

    def _follow_unmeant(self) -> None:
        self.model.ok()
        self.payload = {}
        self.agree()

    # -- what each phase wants ---------------------------------------------------------------------------------------

    def send(self, **payload: object) -> None:
        assert self.session is not None
        self.number += 1
        self.payload = {"summary": f"Said {self.number}.", "tools_used": [], **payload}
        self.answer = self.session.raw(self.payload)
        assert self.answer["success"], (self.model.at, self.answer)

    def called(self, *tools: str) -> list[str]:
        assert self.session is not None
        for tool in tools:
            self.session.world.call(tool, "app.py")
        return list(tools)

    def _branch_intervention(self, yes: bool, other: int) -> None:
        self.send(choice="delete" if yes else "continue")
        self.model.ok()

    def _document_research(self, yes: bool, other: int) -> None:
        self.send(documents_reviewed=["README.md"])
        self.model.ok()

    def _query_frame(self, yes: bool, other: int) -> None:
        self.send(action_type="add", target_symbols=["main"])
        self.model.ok()

    def _exploration(self, yes: bool, other: int) -> None:
        tools = self.called("search_text", "get_symbols")
        self.send(explored_files=["app.py"], findings=["app.py:1"], tools_used=tools)
        self.model.ok()

    def _q1(self, yes: bool, other: int) -> None:
        self.send(needs_more_information=yes, reason=REASON)
        self.model.question(yes)

    def _semantic(self, yes: bool, other: int) -> None:
        self.send(search_query="main", search_results=["app.py:1"], tools_used=self.called("semantic_search"))
        self.model.ok()

    def _q2(self, yes: bool, other: int) -> None:
        self.send(has_unverified_hypotheses=yes, reason=REASON)
        self.model.question(yes)

    def _verification(self, yes: bool, other: int) -> None:
        self.send(hypotheses_verified=[{"hypothesis": "main is called", "result": True, "evidence": "app.py:1"}])
        self.model.ok()

    def _q3(self, yes: bool, other: int) -> None:
        self.send(needs_impact_analysis=yes, reason=REASON)
        self.model.question(yes)

    def _impact_analysis(self, yes: bool, other: int) -> None:
        self.send(impact_summary={"callers": "none"}, tools_used=self.called("analyze_impact"))
        self.model.ok()

    def _ready(self, yes: bool, other: int) -> None:
        substep = self.model.at.split()[1]
        if substep == "12" or (substep != "12" and other == 0):
            self._plan(1 + yes)
        elif substep == "13":
            self._report()
        else:
            self.send(summary=f"All is done, {self.number}.")
            self.model.ok()

    def _plan(self, fresh: int) -> None:
        assert self.session is not None
        recorded = [task for task in self.session.state.tasks if not task.pending]
        self.tasks = [f"t{self.number}_{n}" for n in range(fresh)]
        done = [{"id": t.id, "description": t.description, "status": "completed"} for t in recorded]
        new = [{"id": t, "description": f"Do {t}", "status": "pending", "checklist": [{"item": t}]} for t in self.tasks]
        self.send(tasks=done + new)
        self.model.at = "READY 13"

    def _done(self) -> dict[str, object]:
        """The next task done; its report."""
        assert self.session is not None
        self.number += 1
        self.called("check_write_target")
        task, files = self.tasks.pop(0), self.session.world.files
        files["app.py"] += f"value_{self.number} = {self.number}\n"
        line = files["app.py"].count("\n")
        item = {"item": task, "status": "done", "evidence": f"app.py:{line}"}
        return {"summary": f"{task} is done.", "task_id": task, "checklist": [item]}

    def _report(self) -> None:
        self.send(**self._done())
        self.model.at = "READY 13" if self.tasks else "READY 14"

    def _post_impl_verify(self, yes: bool, other: int) -> None:
        passed = yes and other > 1
        self.send(passed=passed, verifier_used="tests", details="looked", failed_tasks=[])
        if passed:
            self.model.passed()
        else:
            self.model.failed()

    def _verify_intervention(self, yes: bool, other: int) -> None:
        if self.model.interventions < 2:
            self.send(prompt_used="step_back", action_taken="Thought about it.")
            self.model.intervened()
            return
        stop = other == 0
        decision = "stop" if stop else "continue"
        self.send(prompt_used="user_escalation", action_taken="Asked the user.", user_decision=decision)
        if stop:
            self.model.at = "end"
        else:
            self.model.intervened()

    def _pre_commit(self, yes: bool, other: int) -> None:
        tools = self.called("review_changes")
        words: dict[str, object] = {"reviewed_files": ["app.py"], "review_prompt_used": "garbage_detection"}
        if other == 0:
            self.send(**words, revert_reason="Left-overs were found.", tools_used=tools)
            self.model.failed()
        else:
            self.send(**words, commit_message="Add it", tools_used=tools)
            self.model.committed()

    def _quality_review(self, yes: bool, other: int) -> None:
        issues = ["app.py:1 could be clearer"] if yes else []
        self.send(issues=issues, quality_prompt_used="quality_review", quality_score="fair")
        self.model.reviewed(yes)

    def _merge(self, yes: bool, other: int) -> None:
        self.send()
        self.model.ok()

    # -- agreement -----------------------------------------------------------------------------------------------------

    def agree(self) -> None:
        """Place and counters are the model's."""
        assert self.session is not None
        assert self.session.last is None or (self.session.last.end is not None) == (self.model.at == "end")
        state = self.session.state
        if self.model.at == "end":
            self.session = None
            return
        place = state.place
        told = f"READY {place.step}" if str(place.phase) == "READY" else str(place.phase)
        assert told == self.model.at
        counted = (state.verification_failure_count, state.intervention_count, state.quality_revert_count)
        assert counted == (self.model.failures, self.model.interventions, self.model.quality)


def run_machine(wanted: int, first: int) -> None:
    """At least `wanted` steps, and each place among them; another road with another seed."""
    steps.clear()
    run_state_machine_as_test(
        seed(first)(type("Seeded", (SessionMachine,), {})),
        settings=settings(
            max_examples=wanted // 90,
            stateful_step_count=STEPS_A_SESSION,
            deadline=None,
            derandomize=False,
            database=None,
            phases=[HypothesisPhase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert sum(steps.values()) >= wanted, steps
    assert len(steps) == 21, sorted(steps)


@pytest.mark.no_cover  # the roads are covered elsewhere, and watching takes longer than the walk
def test_the_server_agrees_with_the_model_at_every_step(record_property: Record) -> None:
    run_machine(STEPS_IN_CI, 0)
    record_property("executions", sum(steps.values()))


@pytest.mark.full
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(26))
def test_the_server_agrees_with_the_model_for_a_hundred_thousand_steps(part: int, record_property: Record) -> None:
    run_machine(100_000, part)
    record_property("executions", sum(steps.values()))
