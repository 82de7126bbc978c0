"""Lists of submits: each is a submit of its own, in order, as far as `PIPELINED` lets them be sent together (SPEC 2).

Q1 to Q3 may also be answered in one payload, which is the list of their answers; one summary may serve a whole list.

A list ends at the first refusal, and where an element leads to an instruction that the agent has not read. The checkpoint
keeps the digest of what was accepted of it, so that the same list, sent again, is answered again or goes on behind that.
"""

import itertools
from collections.abc import Sequence
from typing import Protocol, TypeGuard

from pydantic import JsonValue

from code_intel_server.common.printable import blank
from code_intel_server.contract import Contract
from code_intel_server.errors import CodeIntelError, Rejected
from code_intel_server.flow import responses
from code_intel_server.flow.dispatch import Submission, SubmitContext, replayed
from code_intel_server.flow.handlers.gates import answered_against
from code_intel_server.flow.payloads import GATE_FIELDS, chained, digest, parse_object, parsed
from code_intel_server.flow.ports import Ports
from code_intel_server.flow.session import SessionState
from code_intel_server.flow.steps import BY_PLACE
from code_intel_server.flow.turn import Note

Fields = dict[str, JsonValue]

_SEVERAL = 2
_GATES = [step.fields for step in BY_PLACE.values() if not step.fields.isdisjoint(GATE_FIELDS)]
_OF_OTHER_STEPS = frozenset().union(*(step.fields for step in BY_PLACE.values())) - frozenset().union(*_GATES)


class Host(Protocol):
    """Who keeps the session: each submit of a list is judged, persisted and logged by itself."""

    @property
    def state(self) -> SessionState | None:
        """The session as the last accepted submit left it; None where that was its last."""

    def submit_one(self, data: JsonValue, context: SubmitContext) -> Submission:
        """Judge one payload and keep what it led to."""


def elements(data: JsonValue) -> list[JsonValue] | None:
    """The submits of a list, or of one payload that answers several of Q1 to Q3; None for anything else, an empty list too.

    Either may come as JSON text. An element without a summary has that of the next one that has,
    else of the last; a commit has its message.
    """
    try:
        given = parsed(data)
    except Rejected:
        return None
    several = [_meant(one) for one in given] if isinstance(given, list) else _answers(given)
    if not isinstance(given, list) and len(several) == 1:
        return None
    return _with_summaries([one for element in several for one in _answers(element)]) or None


def _meant(element: JsonValue) -> JsonValue:
    """An element that came as JSON text as what it says; one that is none as it is, to be refused in its turn."""
    try:
        return parsed(element)
    except Rejected:
        return element


def _answers(element: JsonValue) -> list[JsonValue]:
    """A payload that answers several gates as one of each, with the reason they share or its own; any other as it is."""
    if not isinstance(element, dict):
        return [element]
    asked = [field for field in GATE_FIELDS if field in element]
    if len(asked) < _SEVERAL:
        return [element]
    own = {name for field in GATE_FIELDS for name in (field, f"{field}_reason")}
    shared = {name: value for name, value in element.items() if name not in own}
    return [shared | {name: element[name] for name in (field, f"{field}_reason") if name in element} for field in asked]


def _with_summaries(batch: list[JsonValue]) -> list[JsonValue]:
    """The elements, those without a summary with that of the next which has one, else of the last."""
    said: JsonValue = next((one["summary"] for one in reversed(batch) if _has_summary(one)), None)
    filled: list[JsonValue] = []
    for element in reversed(batch):
        said = element["summary"] if _has_summary(element) else said
        # A commit is summed up by its message; another summary behind it would make another payload of it.
        if isinstance(element, dict) and said is not None and "commit_message" not in element:
            filled.append({**element, "summary": said})
        else:
            filled.append(element)
    return filled[::-1]


def _has_summary(element: JsonValue) -> TypeGuard[dict[str, JsonValue]]:
    return isinstance(element, dict) and not blank(str(element.get("summary") or ""))


def accepted_prefix(batch: Sequence[JsonValue], number: int, chain: str) -> int:
    """How many submits of a list are accepted: `number` where its first ones are those that `chain` identifies, else 0."""
    found, known = 0, ""
    for element in batch[:number]:
        try:
            known = chained(known, digest(parse_object(element)))
        except CodeIntelError:
            return 0
        found += 1
    return found if found == number and known == chain else 0


def submit_list(data: JsonValue, batch: Sequence[JsonValue], host: "Host", contract: Contract, ports: Ports) -> Fields:
    """Submit the elements of `data` one by one, from behind what was accepted of the same list before."""
    state = host.state
    assert state is not None  # callers have looked
    last = state.last_submit
    number = accepted_prefix(batch, last.number, last.chain) if last else 0
    chain = last.chain if last and number else ""
    known = None if number else state.place
    answer = replayed(state, contract, ports) if number else Fields()
    # A list that begins with a gate's answer, and nothing else, begins where the assessments were read.
    read = any(one.keys().isdisjoint(_OF_OTHER_STEPS) for one in _gates_in(batch[:1]))
    while number < len(batch) and (not number or _onward(host.state)):
        if number and not read and _against(host.state, batch[number:], ports):
            break
        before = host.state
        submission = host.submit_one(batch[number], SubmitContext(known, number, chain))
        number, answer = number + 1, submission.response
        if submission.state is None and not submission.replayed:
            return _refused(answer, _given(data, number - 1), before if number > 1 else None, contract)
        chain = chained(chain, digest(parse_object(batch[number - 1])))
    return list_answer(answer, number, len(batch), contract, data)


def _onward(state: SessionState | None) -> bool:
    """Whether a list goes on where its last accepted element has led."""
    return state is not None and state.last_submit is not None and state.last_submit.onward


def _against(state: SessionState | None, rest: Sequence[JsonValue], ports: Ports) -> bool:
    """Whether what comes next in a list answers a gate against the assessment, which came with none of its instructions."""
    assert state is not None  # it goes on
    return answered_against(state, ports.ledger.entries(), _gates_in(rest))


def _gates_in(batch: Sequence[JsonValue]) -> list[dict[str, JsonValue]]:
    return [one for one in batch if isinstance(one, dict) and not one.keys().isdisjoint(GATE_FIELDS)]


def list_answer(answer: Fields, accepted: int, total: int, contract: Contract, data: JsonValue) -> Fields:
    """The answer to `data`, `total` submits, accepted as far as it goes, and how much of it was not looked at."""
    said: Fields = {**answer, "accepted": _given(data, accepted)} if isinstance(parsed(data), list) else {**answer}
    if accepted < total:
        before, left_over = _given(data, accepted), _given(data, total) - _given(data, accepted)
        left = Note("hints.list_stopped", {"accepted": before, "left": left_over, "phase": answer["phase"]})
        given = answer.get("hints")
        said["hints"] = [*(given if isinstance(given, list) else []), responses.say(contract, left)]
    return said


def _given(data: JsonValue, submits: int) -> int:
    """How many elements of `data`, as they were sent, are among its first `submits`: one may answer several gates."""
    given = parsed(data)
    sizes = [len(_answers(_meant(one))) for one in given] if isinstance(given, list) else [1] * submits
    return sum(total <= submits for total in itertools.accumulate(sizes))


def _refused(answer: Fields, accepted: int, before: SessionState | None, contract: Contract) -> Fields:
    """The refusal of the element behind the `accepted` ones, with what to report of the submits `before` it."""
    named = Note("common_failures.list_element", {"number": accepted + 1, "message": answer["message"]})
    said = responses.with_earlier_notes(answer, before.last_submit if before else None)
    return said | {"message": responses.say(contract, named), "element": accepted + 1, "accepted": accepted}
