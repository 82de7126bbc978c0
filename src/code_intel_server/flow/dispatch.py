"""submit(): shape → required tools → handler → settle → response (SPEC 4).

A refused submit changes no state, but for the git intent that `Ports.record` has saved before an effect; an accepted one
returns a new state that the caller persists before the agent hears of it. Git, the tests and the files are behind `Ports`;
lock and checkpoint are the caller's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from code_intel_server.contract import AnyOf, Contract, RequiredTool
from code_intel_server.errors import CodeIntelError, Rejected
from code_intel_server.flow import responses
from code_intel_server.flow.access import LOOKUPS
from code_intel_server.flow.checks.judgement import WRITE_CHECK, rejected_paths, unchecked
from code_intel_server.flow.payloads import (
    SHAPE_REFUSALS,
    Payload,
    ReportPayload,
    chained,
    digest,
    missing_fields,
    parse_object,
    ready_place,
)
from code_intel_server.flow.phases import (
    MERGE,
    PRE_COMMIT,
    QUALITY_REVIEW,
    READY_COMPLETE,
    READY_IMPL,
    READY_PLAN,
    End,
    Event,
    Phase,
    Place,
)
from code_intel_server.flow.ports import Ports
from code_intel_server.flow.session import LastSubmit, SessionState
from code_intel_server.flow.steps import BY_PLACE, fits_another, ignored_fields
from code_intel_server.flow.tasks import ItemStatus
from code_intel_server.flow.transitions import PIPELINED, QUALITY_LIMIT, Settled, enter, settle
from code_intel_server.flow.turn import Note, Outcome, Turn

LOOKUP_GROUP = "lookup"
_FITS_ANOTHER = "common_failures.payload_fits_other_phase"


@dataclass(frozen=True, slots=True)
class Submission:
    """What a submit led to. `state` is None for a refusal; `event` and `key` go to the decision log.

    `response` is the answer to the agent; what the state keeps of it for a repeat is always the whole. `place` is whose
    payload was accepted, which inside READY need not be where the session was.
    """

    response: dict[str, JsonValue]
    state: SessionState | None = None
    end: End | None = None
    event: str = ""
    key: str = ""
    replayed: bool = False
    retired: tuple[str, ...] = ()
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class SubmitContext:
    """What a payload comes with: the place whose instruction the agent has read, and what was accepted of its list before.

    `number` counts that, and `chain` identifies it (`payloads.chained`); 0 and '' for a payload alone or at the beginning.
    `warnings` go into the answer to an accepted one.
    """

    known_place: Place | None
    number: int = 0
    chain: str = ""
    warnings: tuple[Note, ...] = ()


def submit(
    state: SessionState, data: JsonValue, contract: Contract, ports: Ports, context: SubmitContext | None = None
) -> Submission:
    """Judge one payload. Never raises for anything an agent can send."""
    payload: Mapping[str, JsonValue] = {}
    context = context or SubmitContext(state.place)
    try:
        payload = parse_object(data)
        identity = digest(payload)
        if state.last_submit is not None and state.last_submit.digest == identity:
            return Submission(replayed(state, contract, ports), replayed=True)
        return _accept(state, payload, identity, contract, ports, context)
    except CodeIntelError as error:
        return _refuse(state, payload, contract, ports, error, known=context.known_place == state.place)


def replayed(state: SessionState, contract: Contract, ports: Ports) -> dict[str, JsonValue]:
    """The whole answer to the last accepted submit; where it was too large to be kept, the instruction it led to."""
    last = state.last_submit
    response = dict(last.response) if last else {}
    response = response or responses.current_step(state, contract, ports)
    return response | {"phase_summaries": dict(state.summaries)} if last and last.with_summaries else response


def _refuse(
    state: SessionState,
    data: Mapping[str, JsonValue],
    contract: Contract,
    ports: Ports,
    error: CodeIntelError,
    *,
    known: bool,
) -> Submission:
    extra: dict[str, JsonValue] = {}
    at = _asked(state, data)
    if at == READY_COMPLETE and "summary" not in data:  # nothing says which it was to be
        at = state.place
    other = fits_another(at, data) if error.key != _FITS_ANOTHER else None
    if other is not None:
        note = Note(_FITS_ANOTHER, {"phase": state.phase, "other_phase": other})
        extra["hints"] = [responses.say(contract, note)]
    else:
        extra |= _named_fields(at, data, contract, error.key)
    if _compacted(state, data):
        extra["phase_summaries"] = dict(state.summaries)
    return Submission(responses.refusal(state, contract, ports, error, extra, known=known), key=error.key)


def _named_fields(place: Place, data: Mapping[str, JsonValue], contract: Contract, key: str) -> dict[str, JsonValue]:
    """Which fields a refused payload has too many, and too few where its shape was refused: all at once, not one a submit."""
    named: dict[str, JsonValue] = {"ignored_fields": [*ignored_fields(place, data)]}
    if key in SHAPE_REFUSALS:
        expected = contract.phase(place.contract_key).expected_payload
        named["missing_fields"] = [*missing_fields(data, expected)]
    return {name: fields for name, fields in named.items() if fields}


def _compacted(state: SessionState, data: Mapping[str, JsonValue]) -> bool:
    count = data.get("compaction_count")
    return isinstance(count, int) and not isinstance(count, bool) and count != state.compaction_count


def _accept(
    state: SessionState,
    data: Mapping[str, JsonValue],
    identity: str,
    contract: Contract,
    ports: Ports,
    context: SubmitContext,
) -> Submission:
    place = _place(state, data)
    if place == state.place and place in {READY_COMPLETE, MERGE}:
        _refuse_of_another(place, data, contract)
    draft = state.draft()
    expected = contract.phase(place.contract_key).expected_payload
    turn, judge = BY_PLACE[place].begin(draft, data, expected, ports)
    payload = turn.payload
    _require_tools(turn, place, contract)
    outcome = judge()
    # A plan may come at every place of READY; where it leads depends on where the session is.
    settled = settle(draft.route, state.place if place == READY_PLAN else place, outcome.event, draft.counters)
    _apply(draft, place, payload, settled)
    extra = dict(outcome.fields)
    if new := {what: author for what, author in draft.decisions.items() if what not in state.decisions}:
        extra["decisions"] = {**new}
    unknown = ignored_fields(place, data)
    if unknown:
        extra["ignored_fields"] = [*unknown]
    earlier = state.last_submit if context.number else None
    if _compacted(state, data) or draft.compacted or (earlier and earlier.with_summaries):
        extra["phase_summaries"] = dict(draft.summaries)
        draft.compacted = False
    if payload.compaction_count is not None:
        draft.compaction_count = payload.compaction_count
    draft.submits += 1
    response = responses.with_earlier_notes(
        _respond(draft, settled, outcome, extra, contract, ports, context.warnings), earlier
    )
    if place == PRE_COMMIT and settled.to == QUALITY_REVIEW:
        response = responses.without_text(response)  # which step 17 has brought
    # What a commit warns of, archived or ignored is read before the work is called good.
    said = (
        outcome.warnings or context.warnings or settled.forced or unknown or {"archived", "phase_summaries"} & {*extra}
    )
    unread = place.step >= PRE_COMMIT.step and bool(said)
    draft.last_submit = _kept(response, identity, context, onward=(place, settled.to) in PIPELINED and not unread)
    if settled.to == context.known_place:
        response = responses.shortened(response, contract)
    end = settled.to if isinstance(settled.to, End) else None
    return Submission(response, draft, end, event=str(outcome.event), retired=outcome.retired, place=place)


def _kept(response: Mapping[str, JsonValue], identity: str, context: SubmitContext, *, onward: bool) -> LastSubmit:
    """What is remembered of an accepted submit, and of those before it in its list."""
    # Not validated: it is our own answer, as large as all the rest of a state together.
    return LastSubmit.model_construct(
        digest=identity,
        response={name: value for name, value in response.items() if name != "phase_summaries"},
        with_summaries="phase_summaries" in response,
        number=context.number + 1,
        chain=chained(context.chain, identity),
        onward=onward,
    )


def _place(state: SessionState, data: Mapping[str, JsonValue]) -> Place:
    """The place whose payload this is; a plan or a report outside READY has messages of its own."""
    if fits_another(state.place, data) is Phase.READY:
        register = "tasks" in data
        raise Rejected(f"failures.READY.phase_mismatch_{'register' if register else 'complete'}")
    return _asked(state, data)


def _asked(state: SessionState, data: Mapping[str, JsonValue]) -> Place:
    """Where the session is; inside READY the place that the payload's shape picks."""
    return ready_place(data) if state.phase is Phase.READY else state.place


def _refuse_of_another(place: Place, data: Mapping[str, JsonValue], contract: Contract) -> None:
    """Refuse the payload of another phase at a place that asks for nothing of its own: the whole of it, or one without a summary."""
    other = fits_another(place, data)
    whole = other is not None and not missing_fields(data, contract.phase(other).expected_payload)
    if other is not None and (whole or "summary" not in data):
        raise Rejected(_FITS_ANOTHER, phase=place.phase, other_phase=other)


def _require_tools(turn: Turn[Payload], place: Place, contract: Contract) -> None:
    """Required tools, as the ledger knows them: what a payload says of its calls proves nothing (SPEC 4)."""
    required = contract.phase(place.contract_key).required_tools
    if place == READY_IMPL:
        required = _of_a_report(turn, required)
    # A review counts since this round's plan, the other tools at any time.
    called = {call.tool for call in turn.calls(turn.state.marks.round if place.phase is Phase.PRE_COMMIT else 0)}
    missing = [name for name in required if isinstance(name, str) and name not in called]
    if missing:
        raise Rejected("common_failures.required_tools_not_used", missing_list=", ".join(missing))
    if any(len(called & _members(group)) < group.at_least for group in required if isinstance(group, AnyOf)):
        raise Rejected("common_failures.exploration_min_tools")


def _members(group: AnyOf) -> frozenset[str]:
    """The tools a group names; `lookup` stands for all lookup tools."""
    return frozenset(name for name in group.names if name != LOOKUP_GROUP) | (
        LOOKUPS if LOOKUP_GROUP in group.names else frozenset()
    )


def _of_a_report(turn: Turn[Payload], required: tuple[RequiredTool, ...]) -> tuple[RequiredTool, ...]:
    """What a report requires besides the write check, which belongs to the session and the path: compared with the tree here.

    Where there is no git to tell what changed, one check is enough, and none where everything was skipped.
    """
    payload, state = turn.payload, turn.state
    assert isinstance(payload, ReportPayload)  # asked for READY_IMPL only
    if not state.tasks or WRITE_CHECK not in required:
        return required if state.tasks else ()  # without a plan that is what has to be reported
    files = unchecked(state, turn.ports, turn.now)
    if files:
        raise rejected_paths("failures.READY.write_not_checked", "unchecked", files)
    skipped = bool(payload.checklist) and all(item.status is ItemStatus.SKIPPED for item in payload.checklist)
    return required if not turn.now and not skipped else tuple(tool for tool in required if tool != WRITE_CHECK)


def _apply(draft: SessionState, place: Place, payload: Payload, settled: Settled) -> None:
    """Keep the summary, mark the step as completed and go where the table leads."""
    key = place.summary_key
    if isinstance(payload, ReportPayload):
        key = f"{key}.{payload.task_id}"
    draft.summaries[key] = payload.summary
    if place.step not in draft.completed_steps:
        draft.completed_steps.append(place.step)
    enter(draft, settled)


def _respond(
    draft: SessionState,
    settled: Settled,
    outcome: Outcome,
    extra: Mapping[str, JsonValue],
    contract: Contract,
    ports: Ports,
    more: Sequence[Note],
) -> dict[str, JsonValue]:
    warnings = [*outcome.warnings, *more]
    if isinstance(settled.to, End):
        ending = outcome.ending or Note(f"success.{draft.phase}.investigation_complete")
        return responses.finished(draft, contract, settled.to, ending, extra, warnings)
    if settled.to == READY_PLAN and outcome.event is Event.ISSUES:
        limit = {"count": draft.quality_revert_count, "limit": QUALITY_LIMIT}
        warnings.append(Note("warnings.quality_reverted", limit))
    fields = responses.accepted(draft, contract, ports, extra, warnings, outcome.hints)
    if settled.needs_user:
        fields["requires_user_intervention"] = True
    return fields
