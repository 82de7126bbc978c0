"""What the decision log keeps of each call: where it stood, what it led to, why it was refused (SPEC 10)."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from code_intel_server.flow.dispatch import Submission
from code_intel_server.flow.phases import Event
from code_intel_server.flow.session import SessionState
from code_intel_server.tools.desk import now

_SETBACKS = {Event.FAILED, Event.REVERTED, Event.ISSUES}


@dataclass(frozen=True, slots=True)
class Decision:
    """What the decision log keeps of one call: `key` of the refusal ('' where accepted), in words what was found wrong."""

    what: str
    event: str = ""
    key: str = ""
    said: str = ""
    proof: JsonValue = None


def decision_of(submission: Submission) -> Decision:
    """A submission as the decision log keeps it."""
    state, response = submission.state, submission.response
    if submission.replayed:
        return Decision("replay", submission.event)
    if state is None:
        return Decision(
            "submit", submission.event, submission.key, str(response.get("message", "")), response.get("proof")
        )
    wrong = state.revert_reason if submission.event in _SETBACKS else ""
    return Decision("submit", submission.event, "", wrong, response.get("proof"))


def decision_row(
    decision: Decision, before: SessionState, after: SessionState, calls: int, started: float
) -> dict[str, object]:
    """The line of the log: `calls` is the length of the ledger, `started` a monotonic time."""
    row: dict[str, object] = {
        "ts": now(),
        "session_id": after.session_id,
        "what": decision.what,
        "phase": str(before.phase),
        "step": before.place.step,
        "verdict": "refused" if decision.key else "accepted",
        "reason": decision.key,
        "event": decision.event,
        "next": str(after.phase),
        "next_step": after.place.step,
        "ledger": calls,
        "ms": round((time.monotonic() - started) * 1000, 1),
    }
    if decision.said:
        row["said"] = decision.said
    if decision.proof is not None:
        row["proof"] = decision.proof
    return row


def accepted_submits(rows: Iterable[Mapping[str, object]], session_id: str) -> int:
    """How many submits of a session the log says were accepted."""
    return sum(
        row.get("session_id") == session_id and (row.get("what"), row.get("verdict")) == ("submit", "accepted")
        for row in rows
    )
