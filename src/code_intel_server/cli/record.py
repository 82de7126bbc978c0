"""A session as `report` and `insights` read it: out of its record or the decision log, whatever of it is there.

Records may be of a newer version, cut or damaged: a field that is missing or of another type reads as if empty.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from code_intel_server.flow.phases import FLAG_NAMES, READY_IMPL, READY_PLAN, STEPS, Flags, GateLevel, Intent, Phase
from code_intel_server.flow.transitions import Road
from code_intel_server.tools.archives import SCHEMA

Fields = Mapping[str, Any]

STEP_NAMES: dict[int, str] = {1: "start_session"} | {
    step: f"{place.phase} {place.substep}" if place.phase is Phase.READY else str(place.phase)
    for place, step in sorted(STEPS.items(), key=lambda pair: pair[1])
}
_BOOLEANS = tuple(name for name in FLAG_NAMES if name != "gate_level")
_STEPS_BY_KEY = {place.contract_key: step for place, step in STEPS.items()}
LOOP_EVENTS = {
    "failed": "verification failed",
    "reverted": "commit refused by proof or review",
    "issues": "quality issues",
    "intervened": "after an intervention",
}
# The payload's shape picks the step inside READY, not where the session stood.
_EVENT_STEPS = {"planned": READY_PLAN.step, "reported": READY_IMPL.step, "reported_last": READY_IMPL.step}


@dataclass(frozen=True, slots=True)
class Refusal:
    """A submit that was refused, and why."""

    step: int
    key: str
    said: str
    at: str
    proof: object = None


@dataclass(frozen=True, slots=True)
class Visit:
    """A stay at a step until a submit was accepted; `seconds` is None where the log does not tell."""

    number: int
    step: int
    event: str
    next_step: int
    at: str
    seconds: float | None
    said: str = ""
    proof: object = None
    refusals: tuple[Refusal, ...] = ()

    @property
    def loops(self) -> bool:
        """Whether the session went back from here."""
        return self.event in LOOP_EVENTS and self.next_step < self.step


@dataclass(slots=True)
class Course:
    """What one session went through: its visits, and the refusals at the step where it stands."""

    visits: list[Visit] = field(default_factory=list)
    waiting: list[Refusal] = field(default_factory=list)
    restored: int = 0
    replayed: int = 0

    @property
    def refusals(self) -> list[Refusal]:
        """Every refusal in order."""
        return [refusal for visit in self.visits for refusal in visit.refusals] + self.waiting

    @property
    def loops(self) -> list[Visit]:
        """The visits that led back."""
        return [visit for visit in self.visits if visit.loops]


def course(rows: Iterable[Fields]) -> Course:
    """The course of one session out of its decisions, oldest first."""
    told = Course()
    since: datetime | None = None
    for row in rows:
        what, at = text(row, "what"), text(row, "at") or text(row, "ts")
        if what in {"start", "restore"}:
            since = moment(at)
            told.restored += what == "restore"
        elif what == "replay":
            told.replayed += 1
        elif what == "submit" and text(row, "verdict") == "refused":
            told.waiting.append(
                Refusal(number(row, "step"), text(row, "reason"), text(row, "said"), at, row.get("proof"))
            )
        elif what == "submit":
            told.visits.append(_visit(row, len(told.visits) + 1, at, since, tuple(told.waiting)))
            told.waiting = []
            since = moment(at)
    return told


def skipped_by_flags(state: Fields) -> dict[int, str]:
    """The gates that would have run but for a flag: step → phase, as the commit's trailer names them (SPEC 3.2)."""
    given = mapping(state, "flags")
    flags = Flags(GateLevel.AUTO, **dict.fromkeys((name for name in _BOOLEANS if given.get(name) is True), True))
    try:
        road = Road(Intent(text(state, "intent")), flags)
    except ValueError:
        return {}
    return {_STEPS_BY_KEY[key]: key for key in road.gates_skipped_by_flag()}


def _visit(row: Fields, count: int, at: str, since: datetime | None, refusals: tuple[Refusal, ...]) -> Visit:
    event = text(row, "event")
    step = _EVENT_STEPS.get(event, number(row, "step"))
    seconds = elapsed(since, moment(at))
    return Visit(
        count, step, event, number(row, "next_step"), at, seconds, text(row, "said"), row.get("proof"), refusals
    )


@dataclass(frozen=True, slots=True)
class Told:
    """A session's record, taken apart."""

    session_id: str
    end: str
    ended_at: str
    state: Fields
    summaries: dict[str, str]
    tools: dict[str, dict[str, Fields]]
    course: Course
    evidence: list[Fields]
    diff: Fields
    notes: list[str]

    @property
    def counters(self) -> dict[str, int]:
        """Name → count, for people."""
        events = Counter(visit.event for visit in self.course.visits)
        counted = mapping(self.state, "counters")  # some go back to 0 when a round passes: what happened counts
        return {
            "submits accepted": number(self.state, "submits"),
            "submits refused": len(self.course.refusals),
            "verification failures": max(events["failed"], number(counted, "verification_failure_count")),
            "interventions": max(events["intervened"], number(counted, "intervention_count")),
            "quality reviews with issues": max(events["issues"], number(counted, "quality_revert_count")),
            "compactions": number(self.state, "compaction_count"),
            "restores": self.course.restored,
            "tool calls": sum(number(row, "calls") for tools in self.tools.values() for row in tools.values()),
            "files explored": len(texts(self.state, "explored_files")),
            "files added": len(mapping(self.state, "added_files")),
            "commits": len(texts(self.state, "commits")),
        }


def taken_apart(record: Fields) -> Told:
    """A record as `archives.gather` made it, this version's or another's."""
    body = mapping(record, "state")
    payloads = mapping(body, "phase_payloads")
    notes: list[str] = []
    if number(record, "schema") > SCHEMA:
        notes.append("A newer version wrote this record: what it added is not shown.")
    if lost := texts(record, "given_up"):
        notes.append(f"The record was too big to keep whole; left out: {', '.join(lost)}.")
    return Told(
        session_id=text(record, "session_id"),
        end=text(record, "end"),
        ended_at=text(record, "ended_at"),
        state=mapping(body, "orchestrator_state"),
        summaries={str(key): text(mapping(payloads, key), "summary") for key in payloads},
        tools=_tools(mapping(record, "tools")),
        course=course(rows(record, "decisions")),
        evidence=rows(record, "evidence"),
        diff=mapping(record, "diff"),
        notes=notes,
    )


def _tools(found: Fields) -> dict[str, dict[str, Fields]]:
    return {
        str(phase): {str(tool): mapping(mapping(found, phase), tool) for tool in mapping(found, phase)}
        for phase in found
    }


def text(row: Fields, name: str) -> str:
    """A field that is a text, else ''."""
    value = row.get(name)
    return value if isinstance(value, str) else ""


def number(row: Fields, name: str) -> int:
    """A field that is a whole number, else 0."""
    value = row.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def mapping(row: Fields, name: str) -> Fields:
    """A field that is an object, else an empty one."""
    value = row.get(name)
    return value if isinstance(value, dict) else {}


def rows(row: Fields, name: str) -> list[Fields]:
    """The objects in a field that is a list."""
    value = row.get(name)
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def texts(row: Fields, name: str) -> list[str]:
    """The texts in a field that is a list."""
    value = row.get(name)
    return [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []


def moment(at: str) -> datetime | None:
    """A time of the log; None where it is none."""
    try:
        return datetime.fromisoformat(at)
    except ValueError:
        return None


def elapsed(since: datetime | None, until: datetime | None) -> float | None:
    """Seconds between two times; None where one is missing, they cannot be compared, or the clock was turned back."""
    if since is None or until is None or (since.tzinfo is None) != (until.tzinfo is None):
        return None
    seconds = (until - since).total_seconds()
    return seconds if seconds >= 0 else None


def duration(seconds: float | None) -> str:
    """`0.4 s`, `12 s`, `3 min 5 s`, `2 h 4 min`; a dash where it is not known."""
    if seconds is None:
        return "–"
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes_left = divmod(minutes, 60)
    return f"{hours} h {minutes_left} min" if hours else f"{minutes} min {rest} s"


def total(parts: Sequence[float | None]) -> float | None:
    """The sum of what is known; None where nothing is."""
    known = [part for part in parts if part is not None]
    return sum(known) if known else None
