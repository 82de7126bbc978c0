"""Q1, Q2, Q3: the agent judges what is needed, the server says beforehand what it would choose (SPEC 4)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from code_intel_server.common.printable import blank
from code_intel_server.errors import Rejected
from code_intel_server.flow.checks.judgement import REASON_LENGTH, list_of_paths
from code_intel_server.flow.checks.query_frame import adds
from code_intel_server.flow.payloads import Payload, Q1Payload, Q2Payload, Q3Payload
from code_intel_server.flow.phases import Event, GateLevel, Intent, Phase
from code_intel_server.flow.session import SessionState
from code_intel_server.flow.turn import Note, Outcome, Turn
from code_intel_server.workspace.values import LedgerEntry


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate's field and the stems of its messages under `check_phase_necessity`."""

    field: str
    required: str
    stem: str


_Q1 = Gate("needs_more_information", "semantic_needs_more_information", "semantic")
_Q2 = Gate("has_unverified_hypotheses", "verification_has_unverified", "verification")
_Q3 = Gate("needs_impact_analysis", "impact_needs_analysis", "impact")
_NEEDED = frozenset(f"server_assessment.{name}" for name in ("names_unknown", "users_unknown"))
"""What an answer that was given unread has to wait for. A file that no tool has shown may have been read by the agent's own
shell; it is not writable until it is looked at, whatever is answered."""


def q1(turn: Turn[Q1Payload]) -> Outcome:
    """Whether SEMANTIC is needed."""
    turn.state.q1 = _judged(turn.payload, _Q1)
    return Outcome(Event.OK)


def q2(turn: Turn[Q2Payload]) -> Outcome:
    """Whether VERIFICATION is needed."""
    turn.state.q2 = _judged(turn.payload, _Q2)
    return Outcome(Event.OK)


def q3(turn: Turn[Q3Payload]) -> Outcome:
    """Whether IMPACT_ANALYSIS is needed."""
    turn.state.q3 = _judged(turn.payload, _Q3)
    return Outcome(Event.OK)


def assessments(state: SessionState, calls: Sequence[LedgerEntry]) -> Iterator[tuple[str, Note]]:
    """What the server would choose, and why, for the question at hand and at Q1 for all three; nothing where it knows nothing.

    Nothing either under gate_level full, where no answer changes the road.
    """
    if state.flags.gate_level is GateLevel.FULL:
        return
    asked = {Phase.Q1: (_Q1, _Q2, _Q3), Phase.Q2: (_Q2,), Phase.Q3: (_Q3,)}.get(state.phase, ())
    notes = {_Q1: _of_names(state), _Q2: _of_files(state), _Q3: _of_users(state, calls)}
    yield from ((gate.field, note) for gate in asked if (note := notes[gate]))


def answered_against(
    state: SessionState, calls: Sequence[LedgerEntry], answers: Iterable[Mapping[str, JsonValue]]
) -> bool:
    """Whether `answers`, given before the server's assessment could be read, say no where it says yes."""
    said_no = {name for answer in answers for name, value in answer.items() if value is False}
    return any(field in said_no and note.key in _NEEDED for field, note in assessments(state, calls))


def _of_names(state: SessionState) -> Note | None:
    """Semantic search helps where no name is known; one that is not there among others that are may be yet to be added."""
    frame = state.query_frame
    symbols = frame.target_symbols if frame else ()
    if not state.unresolved_symbols:
        return Note("server_assessment.names_known", {"symbols": list_of_paths(symbols)}) if symbols else None
    if not {*symbols} <= {*state.unresolved_symbols} or (frame and adds(frame.action_type)):
        return None
    return Note("server_assessment.names_unknown", {"symbols": list_of_paths(state.unresolved_symbols)})


def _of_files(state: SessionState) -> Note | None:
    """A file that no tool showed is a hypothesis."""
    return (
        Note("server_assessment.files_unseen", {"files": list_of_paths(state.unseen_files)})
        if state.unseen_files
        else None
    )


def _of_users(state: SessionState, calls: Sequence[LedgerEntry]) -> Note | None:
    """A name that others use has an impact, and somebody must have looked for it."""
    if state.intent not in {Intent.IMPLEMENT, Intent.MODIFY} or state.flags.only_explore:
        return Note("server_assessment.nothing_changes")
    if any(call.outcome == "ok" and call.tool in {"find_references", "analyze_impact"} for call in calls):
        return Note("server_assessment.users_known")
    symbols = state.query_frame.target_symbols if state.query_frame else ()
    known = [symbol for symbol in symbols if symbol not in state.unresolved_symbols]
    return Note("server_assessment.users_unknown", {"symbols": list_of_paths(known)}) if known else None


def _judged(payload: Payload, gate: Gate) -> bool:
    given = payload.model_dump()
    value = given[gate.field]
    reason = given["reason"] if given["reason"] is not None else given[f"{gate.field}_reason"]
    if value is None:
        raise Rejected(f"tool_errors.check_phase_necessity.{gate.required}_required")
    if not isinstance(value, bool):
        raise Rejected(f"tool_errors.check_phase_necessity.{gate.required}_type")
    if not isinstance(reason, str) or blank(reason):
        raise Rejected(f"tool_errors.check_phase_necessity.{gate.stem}_reason_required")
    if len(reason.strip()) < REASON_LENGTH:
        raise Rejected(f"tool_errors.check_phase_necessity.{gate.stem}_reason_length")
    return value
