"""Q1, Q2, Q3: the agent judges what is needed, the server says what it would have chosen (SPEC 4)."""

from dataclasses import dataclass

from pydantic import JsonValue

from code_intel_server.errors import Rejected
from code_intel_server.flow.judgement import REASON_LENGTH
from code_intel_server.flow.payloads import Payload, Q1Payload, Q2Payload, Q3Payload
from code_intel_server.flow.phases import Event, Intent
from code_intel_server.flow.turn import Outcome, Turn

CONFIDENT = 0.7


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate's field and the stems of its messages under `check_phase_necessity`."""

    field: str
    required: str
    stem: str


_Q1 = Gate("needs_more_information", "semantic_needs_more_information", "semantic")
_Q2 = Gate("has_unverified_hypotheses", "verification_has_unverified", "verification")
_Q3 = Gate("needs_impact_analysis", "impact_needs_analysis", "impact")


def q1(turn: Turn[Q1Payload]) -> Outcome:
    """Whether SEMANTIC is needed."""
    state = turn.state
    state.q1 = _judged(turn.payload, _Q1)
    confidence = state.confidence or 0.0
    return _answer(state.q1, confidence < CONFIDENT, f"confidence {confidence:.2f} of the exploration")


def q2(turn: Turn[Q2Payload]) -> Outcome:
    """Whether VERIFICATION is needed."""
    state = turn.state
    state.q2 = _judged(turn.payload, _Q2)
    unseen = len(state.unseen_files)
    return _answer(state.q2, unseen > 0, f"{unseen} explored file(s) were shown by no tool")


def q3(turn: Turn[Q3Payload]) -> Outcome:
    """Whether IMPACT_ANALYSIS is needed."""
    state = turn.state
    state.q3 = _judged(turn.payload, _Q3)
    looked = any(call.tool in {"find_references", "analyze_impact"} for call in turn.calls())
    if state.intent not in {Intent.IMPLEMENT, Intent.MODIFY}:
        return _answer(state.q3, False, "nothing is to be changed")
    return _answer(state.q3, not looked, "references were looked up" if looked else "no references looked up")


def _judged(payload: Payload, gate: Gate) -> bool:
    given = payload.model_dump()
    value = given[gate.field]
    reason = given["reason"] if given["reason"] is not None else given[f"{gate.field}_reason"]
    if value is None:
        raise Rejected(f"tool_errors.check_phase_necessity.{gate.required}_required")
    if not isinstance(value, bool):
        raise Rejected(f"tool_errors.check_phase_necessity.{gate.required}_type")
    if not isinstance(reason, str) or not reason.strip():
        raise Rejected(f"tool_errors.check_phase_necessity.{gate.stem}_reason_required")
    if len(reason.strip()) < REASON_LENGTH:
        raise Rejected(f"tool_errors.check_phase_necessity.{gate.stem}_reason_length")
    return value


def _answer(chosen: bool, server: bool, why: str) -> Outcome:
    fields: dict[str, JsonValue] = {"server_assessment": {"needed": server, "why": why, "agrees": server == chosen}}
    return Outcome(Event.OK, fields)
