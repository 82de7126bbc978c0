"""record_outcome, the record of sessions that went wrong, and the lessons of it (SPEC 10)."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from pydantic import JsonValue

from code_intel_server.common.own_folder import FOLDER
from code_intel_server.common.printable import printable
from code_intel_server.errors import CodeIntelError, Rejected
from code_intel_server.flow import responses
from code_intel_server.flow.phases import End, Phase
from code_intel_server.flow.session import SessionState
from code_intel_server.flow.turn import Note
from code_intel_server.tools.session.archives import finished_sessions, read_archive
from code_intel_server.tools.shaping import Fields

if TYPE_CHECKING:
    from code_intel_server.contract import Contract
    from code_intel_server.tools.services import ProjectServices

LESSONS_AT_MOST = 3
ABANDONED, FORCED, FAILED = "abandoned", "forced", "failed"

# From where on sessions are alike: tests/tools/past_sessions.py puts queries to 30 past sessions. A lesson too few is better
# than a false one.
SIMILAR = 0.35

_OUTCOMES_READ = 500
_CATCH_UP_AT_MOST = 5


class UserVerdict(StrEnum):
    """What the user thought of a finished session."""

    SUCCESS = "success"
    PARTIAL = "partial"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True)
class Past:
    """A session that is over, as far as lessons care."""

    session_id: str
    query: str
    failures: tuple[str, ...]


def record_outcome(
    services: "ProjectServices",
    contract: "Callable[[], Contract]",
    outcome: str,
    notes: str,
    session_id: str | None,
    at: str,
) -> Fields:
    """What the user thought of the last finished session (or the named one) → OutcomeLog, and Map on success.

    A failure takes back what an earlier success of the same session put there.
    """
    verdict = UserVerdict(outcome)
    known = finished_sessions(services)
    wanted = session_id or (known[0] if known else None)
    if wanted is None:
        raise Rejected("tool_errors.record_outcome.no_finished_session")
    record = read_archive(services, wanted)
    if record is None:
        raise Rejected(
            "tool_errors.record_outcome.unknown_session", session_id=wanted, available=", ".join(known[:5]) or "none"
        )
    query, symbols, files = _learned(record)
    services.outcomes.append(
        {
            "ts": at,
            "session_id": wanted,
            "outcome": str(verdict),
            "notes": notes[:2000],
            "query": query,
            "symbols": symbols,
            "files": files,
        }
    )
    answer: Fields = {"success": True, "session_id": wanted, "outcome": str(verdict)}
    if verdict is UserVerdict.SUCCESS and query and (symbols or files):
        from code_intel_server.index.map import file_name

        answer["agreement"] = services.index.record(query, symbols, files, wanted).id
        file = f"{FOLDER}/agreements/{file_name(query)}"
        note = Note("success.record_outcome.agreement_written", {"file": file})
        answer |= {"file": file, "message": responses.say(contract(), note)}
    elif verdict is UserVerdict.FAILURE and (name := services.index.forget(query, wanted)):
        file = f"{FOLDER}/agreements/{name}"
        note = Note("success.record_outcome.agreement_removed", {"file": file})
        answer |= {"file": file, "message": responses.say(contract(), note)}
    return answer


def _learned(record: dict[str, JsonValue]) -> tuple[str, list[str], list[str]]:
    """Query, symbols and files of an archived session."""
    body = record.get("state")
    state = SessionState.from_checkpoint(body if isinstance(body, dict) else {})
    symbols = [*state.query_frame.target_symbols] if state.query_frame else []
    changed = [used.path for used in state.used_ranges]
    return state.query, symbols, list(dict.fromkeys([*changed, *state.explored_files]))[:50]


def record_end(services: "ProjectServices", state: SessionState, outcome: str, why: str, at: str) -> None:
    """A failed, forced or abandoned session is recorded by itself."""
    symbols = [*state.query_frame.target_symbols] if state.query_frame else []
    services.outcomes.append(
        {
            "ts": at,
            "session_id": state.session_id,
            "outcome": outcome,
            "notes": why,
            "query": state.query[:2000],
            "symbols": symbols,
            "files": state.explored_files[:50],
            "failures": failures_of(state),
        }
    )


def verdict_on(state: SessionState, end: str) -> tuple[str, str]:
    """The outcome that a session which ended records by itself, and why; ('', '') where it ended as it should."""
    if end == End.ABANDONED:
        return ABANDONED, "stopped by the user"
    if state.forced:
        return FORCED, "quality issues unresolved"
    if state.flags.only_verify and state.receipt is None:
        return FAILED, "verification failed"
    return "", ""


def catch_up(services: "ProjectServices", at: str) -> list[str]:
    """Record the ends that a killed process archived and did not come to record; the ids of those sessions.

    A checkpoint that was left behind is no end: its session can still be resumed, and is recorded once it is cleaned,
    abandoned or retired.
    """
    recorded = {record.get("session_id") for record in services.outcomes.tail(_OUTCOMES_READ).records}
    caught: list[str] = []
    for session_id in finished_sessions(services)[:_CATCH_UP_AT_MOST]:
        record = read_archive(services, session_id) if session_id not in recorded else None
        body = record.get("state") if record else None
        if not record or not isinstance(body, dict):
            continue
        with contextlib.suppress(CodeIntelError):
            state = SessionState.from_checkpoint(body)
            outcome, why = verdict_on(state, str(record.get("end")))
            if outcome:
                record_end(services, state, outcome, why, at)
                caught.append(session_id)
    return caught


def failures_of(state: SessionState) -> list[str]:
    """What a session failed on, in the words that the agent read."""
    reasons = [task.revert_reason for task in state.tasks if task.revert_reason]
    reasons += [state.revert_reason] if state.revert_reason else []
    if state.flags.only_verify and state.receipt is None:
        reasons += [text for key, text in state.summaries.items() if key.endswith(str(Phase.POST_IMPL_VERIFY))]
    return list(dict.fromkeys([*reasons, *state.unresolved_issues]))[:5]


def lessons(services: "ProjectServices", state: SessionState) -> list[Note]:
    """At most three: what sessions like this one failed on, each with a session that did, the likest first."""
    past = _past_failures(services)
    if not past:
        return []
    try:
        scores = services.index.likeness([one.query for one in past], state.query)
    except (CodeIntelError, OSError):
        return []
    ranked = sorted(zip((score or 0.0 for score in scores), past, strict=True), key=lambda pair: -pair[0])
    alike = [one for score, one in ranked if score >= SIMILAR]
    by_reason: dict[str, list[str]] = {}
    for one in alike:
        for reason in one.failures[:1]:
            by_reason.setdefault(printable(" ".join(reason.split()))[:200], []).append(one.session_id)
    return [
        Note("hints.lesson", {"count": len(sessions), "session_id": sessions[0], "reason": reason})
        for reason, sessions in list(by_reason.items())[:LESSONS_AT_MOST]
    ]


def _past_failures(services: "ProjectServices") -> list[Past]:
    """The sessions that failed, each once, as the log says it last."""
    found: dict[str, Past] = {}
    for record in services.outcomes.tail(_OUTCOMES_READ).records:
        failures = _texts(record.get("failures"))
        if record.get("outcome") == UserVerdict.FAILURE and not failures:
            failures = _texts([record.get("notes")])
        query = record.get("query")
        if failures and isinstance(query, str) and query.strip():
            session_id = str(record.get("session_id", ""))
            found[session_id] = Past(session_id, query, failures)
    return list(found.values())


def _texts(value: object) -> tuple[str, ...]:
    return tuple(text for text in value if isinstance(text, str) and text.strip()) if isinstance(value, list) else ()
