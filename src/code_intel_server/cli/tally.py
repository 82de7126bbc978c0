"""What a project's sessions have in common: counted from the archive, the decision log and the outcome log (SPEC 10)."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any

from code_intel_server.cli.record import (
    LOOP_EVENTS,
    STEP_NAMES,
    Course,
    Fields,
    Told,
    course,
    number,
    taken_apart,
    text,
)
from code_intel_server.workspace.journals import SCHEMA_VERSION

if TYPE_CHECKING:
    from code_intel_server.tools.desk import Desk
    from code_intel_server.workspace.journals import Tail

ARCHIVES_READ = 100
LINES_READ = 20_000
TREND_LENGTH = 30
_WRONG_ENDS = ("failed", "forced", "abandoned", "failure")
_TOP = 10


@dataclass(slots=True)
class PhaseTally:
    """One step over all sessions; seconds of each stay."""

    accepted: int = 0
    refusals: Counter[str] = field(default_factory=Counter)
    loops: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    tools: Counter[str] = field(default_factory=Counter)

    @property
    def worst(self) -> str:
        """What fails most here; '' where nothing does."""
        both = self.refusals + Counter({LOOP_EVENTS[event]: count for event, count in self.loops.items()})
        return both.most_common(1)[0][0] if both else ""


@dataclass(slots=True)
class Tally:
    """All sessions together. `trend` is (session id, outcome), oldest first; an outcome is what the user said, else how it ended."""

    sessions: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    phases: dict[int, PhaseTally] = field(default_factory=lambda: defaultdict(PhaseTally))
    refusals: Counter[str] = field(default_factory=Counter)
    loops: Counter[str] = field(default_factory=Counter)
    looping: int = 0
    evidence: Counter[str] = field(default_factory=Counter)
    tools: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    failures: Counter[str] = field(default_factory=Counter)
    trend: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, told: Course) -> None:
        """Count one session's course."""
        self.sessions += 1
        self.looping += bool(told.loops)
        for visit in told.visits:
            phase = self.phases[visit.step]
            phase.accepted += 1
            phase.seconds += [visit.seconds] if visit.seconds is not None else []
            if visit.loops:
                phase.loops[visit.event] += 1
                self.loops[visit.event] += 1
        for refusal in told.refusals:
            self.phases[refusal.step].refusals[refusal.key] += 1
            self.refusals[refusal.key] += 1
            if "evidence" in refusal.key:
                self.evidence[refusal.key] += 1

    def as_json(self) -> dict[str, Any]:
        """As data; times in seconds."""
        return {
            "sessions": self.sessions,
            "ends": dict(self.ends),
            "sessions_with_loops": self.looping,
            "loops": {LOOP_EVENTS[event]: count for event, count in self.loops.items()},
            "refusals": dict(self.refusals.most_common()),
            "evidence_failures": dict(self.evidence.most_common()),
            "failures": dict(self.failures.most_common(_TOP)),
            "phases": [
                {
                    "step": step,
                    "name": STEP_NAMES.get(step, ""),
                    "accepted": phase.accepted,
                    "refused": phase.refusals.total(),
                    "loops": phase.loops.total(),
                    "fails_most_on": phase.worst,
                    "seconds": round(sum(phase.seconds), 1),
                    "median_seconds": round(median(phase.seconds), 1) if phase.seconds else None,
                }
                for step, phase in sorted(self.phases.items())
            ],
            "tools": {phase: dict(tools.most_common()) for phase, tools in self.tools.items()},
            "trend": [{"session_id": session_id, "outcome": outcome} for session_id, outcome in self.trend],
            "notes": self.notes,
        }


def tally(desk: "Desk") -> Tally:
    """Count what the project's logs hold, the newest first where they hold too much to be read."""
    from code_intel_server.tools.archives import finished_sessions, read_archive

    counted = Tally()
    log = desk.decisions.tail(LINES_READ)
    outcomes = desk.outcomes.tail(LINES_READ)
    over = finished_sessions(desk)
    records = (read_archive(desk, session_id) for session_id in over[:ARCHIVES_READ])
    archived = {told.session_id: told for record in records if record is not None for told in [taken_apart(record)]}
    by_session = _by_session(log.records)
    for session_id in sorted(archived.keys() | by_session.keys()):
        told = archived.get(session_id)
        counted.add(told.course if told and told.course.visits else course(by_session.get(session_id, [])))
        if told:
            _add_record(counted, told)
    _add_outcomes(counted, outcomes.records, archived)
    counted.notes += [*_remarks("decision", log), *_remarks("outcome", outcomes)]
    if len(over) > ARCHIVES_READ:
        counted.notes.append(f"Of {len(over)} kept sessions the newest {ARCHIVES_READ} were read.")
    return counted


def _by_session(rows: Iterable[Fields]) -> dict[str, list[Fields]]:
    found: dict[str, list[Fields]] = defaultdict(list)
    for row in rows:
        if text(row, "session_id"):
            found[text(row, "session_id")].append(row)
    return found


def _add_record(counted: Tally, told: Told) -> None:
    for phase, tools in told.tools.items():
        for tool, row in tools.items():
            counted.tools[phase][tool] += number(row, "calls")
    counted.ends["forced" if told.state.get("forced") else _END_NAMES.get(told.end, told.end)] += 1


_END_NAMES = {"SESSION_COMPLETE": "complete", "SESSION_ABANDONED": "abandoned"}


def _add_outcomes(counted: Tally, rows: Iterable[Fields], archived: dict[str, Told]) -> None:
    """Outcome of each session and what it failed on; what the user said counts more than how it ended."""
    said = {
        session_id: "forced" if told.state.get("forced") else _END_NAMES.get(told.end, told.end)
        for session_id, told in archived.items()
    }
    by_user: set[str] = set()
    for row in rows:
        session_id, outcome = text(row, "session_id"), text(row, "outcome")
        if outcome in {"success", "partial", "failure"}:
            by_user.add(session_id)
            said[session_id] = outcome
        elif outcome and session_id not in by_user:
            said[session_id] = outcome
        failures = row.get("failures")
        counted.failures.update(why for why in failures if isinstance(why, str)) if isinstance(failures, list) else None
    counted.trend = sorted(said.items())[-TREND_LENGTH:]


def _remarks(name: str, log: "Tail") -> list[str]:
    """What a reader must know of a log that was not read whole."""
    remarks: list[str] = []
    newer = sum(number(row, "schema") > SCHEMA_VERSION for row in log.records)
    if log.skipped:
        remarks.append(f"{log.skipped} line(s) of the {name} log are torn or foreign and were passed over.")
    if newer:
        remarks.append(f"{newer} line(s) of the {name} log are of a newer version: what they add is not counted.")
    if log.truncated:
        remarks.append(f"The {name} log is long: only its newest {len(log.records)} lines were read.")
    return remarks


def kind_of(outcome: str) -> str:
    """How an outcome is drawn: success, partial, wrong or other."""
    if outcome in {"success", "complete"}:
        return "success"
    if outcome in _WRONG_ENDS:
        return "wrong"
    return "partial" if outcome == "partial" else "other"
