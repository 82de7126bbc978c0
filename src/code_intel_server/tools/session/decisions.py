"""What the decision log keeps of each call: where it stood, what it led to, why it was refused (SPEC 10)."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from code_intel_server.flow.dispatch import Submission
from code_intel_server.flow.phases import Event, Phase
from code_intel_server.flow.session import SessionState
from code_intel_server.flow.tasks import TaskModel
from code_intel_server.tools.services import now

_SETBACKS = {Event.FAILED, Event.REVERTED, Event.ISSUES}
_ACCOUNT_CHARACTERS = 400


@dataclass(frozen=True, slots=True)
class Decision:
    """What the decision log keeps of one call: `key` of the refusal ('' where accepted), in words what was found wrong.

    `account` says for people what an accepted submit found, decided or did.
    """

    what: str
    event: str = ""
    key: str = ""
    said: str = ""
    proof: JsonValue = None
    account: str = ""


def decision_of(submission: Submission, before: SessionState) -> Decision:
    """A submission as the decision log keeps it."""
    state, response = submission.state, submission.response
    if submission.replayed:
        return Decision("replay", submission.event)
    if state is None:
        return Decision(
            "submit", submission.event, submission.key, str(response.get("message", "")), response.get("proof")
        )
    wrong = "; ".join(state.unresolved_issues) if state.forced else state.revert_reason
    wrong = wrong if submission.event in _SETBACKS else ""
    account = "" if wrong else _account(submission, before, state)
    return Decision("submit", submission.event, "", wrong, response.get("proof"), account)


def _account(submission: Submission, before: SessionState, after: SessionState) -> str:
    """What the server itself knows of it first, then the agent's summary; one line of at most 400 characters."""
    place = submission.place
    assert place is not None  # it was accepted
    match place.phase, submission.event:
        case _, Event.PLANNED | Event.PLANNED_AGAIN:
            pending = [task.description for task in after.tasks if task.pending]
            said = [f"{len(pending)} task{'' if len(pending) == 1 else 's'}: {'; '.join(pending)}"]
        case _, Event.REPORTED | Event.REPORTED_LAST:
            open_before = {task.id for task in before.tasks if task.pending}
            said = [_reported(task) for task in after.tasks if not task.pending and task.id in open_before]
        case _, Event.COMMITTED:
            new = after.commits[len(before.commits) :]
            said = [f"committed {new[-1][:10]}" if new else "nothing to commit"]
        case Phase.MERGE, _:
            said = [_merged(submission, after)]
        case Phase.Q1, _:
            said = ["more has to be found" if after.q1 else "enough is known", after.summaries[place.summary_key]]
        case Phase.Q2, _:
            said = ["to be verified" if after.q2 else "nothing is unverified", after.summaries[place.summary_key]]
        case Phase.Q3, _:
            said = [
                "others are affected" if after.q3 else "nothing else is affected",
                after.summaries[place.summary_key],
            ]
        case _:
            said = [after.summaries.get(place.summary_key, "")]
    return " ".join(": ".join(said).split())[:_ACCOUNT_CHARACTERS]


def _merged(submission: Submission, after: SessionState) -> str:
    answer, branch = submission.response, after.task_branch
    if branch and isinstance(commit := answer.get("merge_commit"), str):
        return f"merged into {branch.base} as {commit[:10]}"
    if branch and "push" in answer:
        return f"committed on {branch.name}, not merged"
    return str(answer.get("message", "")).partition(" Session complete")[0]


def _reported(task: TaskModel) -> str:
    places = dict.fromkeys(item.evidence for item in task.checklist if item.evidence)
    reasons = dict.fromkeys(item.reason for item in task.checklist if item.reason)
    return f"{task.id} done: {', '.join(places)}" if places else f"{task.id}: nothing to change, {'; '.join(reasons)}"


def decision_row(
    decision: Decision, before: SessionState, after: SessionState, calls: int, started: float
) -> dict[str, JsonValue]:
    """The line of the log: `calls` is the length of the ledger, `started` a monotonic time."""
    row: dict[str, JsonValue] = {
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
    if decision.account:
        row["account"] = decision.account
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
