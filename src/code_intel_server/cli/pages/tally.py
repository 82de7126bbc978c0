"""What a project's sessions have in common: counted from the archive, the decision log and the outcome log (SPEC 10)."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from statistics import median
from typing import TYPE_CHECKING, Any

from code_intel_server.cli.pages.record import Fields, SessionRecord, Submit, number, session_record, submits, text
from code_intel_server.cli.words import LOOPS, TITLES, in_titles
from code_intel_server.workspace.state.journals import JOURNAL_SCHEMA

if TYPE_CHECKING:
    from code_intel_server.tools.services import ProjectServices
    from code_intel_server.workspace.state.journals import Tail

ARCHIVES_READ = 100
LINES_READ = 20_000
TREND_LENGTH = 30
USERS_WORDS = ("success", "partial", "failure")
"""The outcomes that only the user gives."""

_ENDS = {"SESSION_COMPLETE": "complete", "SESSION_ABANDONED": "abandoned"}
_KINDS = {"success": "good", "complete": "good", "partial": "warn"} | dict.fromkeys(
    ("failed", "forced", "abandoned", "failure"), "bad"
)
_TOP = 10


@dataclass(frozen=True, slots=True)
class Ended:
    """A session that is over: what was asked, and its outcome: what the user said, else how it ended."""

    session_id: str
    outcome: str
    request: str = ""
    seconds: float | None = None
    kept: bool = False
    """Whether its record is, so that there can be a report."""

    @property
    def kind(self) -> str:
        """What the outcome is worth: good, warn, bad or plain."""
        return _KINDS.get(self.outcome, "plain")


@dataclass(slots=True)
class StepTally:
    """One step over all sessions; seconds of each stay."""

    accepted: int = 0
    refusals: Counter[str] = field(default_factory=Counter)
    loops: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)

    @property
    def total(self) -> float:
        """Seconds in all."""
        return sum(self.seconds)

    @property
    def median(self) -> float | None:
        """Seconds of a usual stay."""
        return median(self.seconds) if self.seconds else None

    @property
    def worst(self) -> str:
        """What fails most here; '' where nothing does."""
        both = counts_in_words(self.refusals) + counts_in_words(self.loops)
        return both.most_common(1)[0][0] if both else ""


@dataclass(slots=True)
class Tally:
    """All sessions together; `trend` are the last that ended, oldest first."""

    sessions: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    steps: dict[int, StepTally] = field(default_factory=lambda: defaultdict(StepTally))
    refusals: Counter[str] = field(default_factory=Counter)
    loops: Counter[str] = field(default_factory=Counter)
    looping: int = 0
    tools: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    failures: Counter[str] = field(default_factory=Counter)
    trend: list[Ended] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, course: Iterable[Submit]) -> None:
        """Count one session."""
        self.sessions += 1
        looping = False
        for one in course:
            step = self.steps[one.step]
            if one.refused:
                step.refusals[one.key] += 1
                self.refusals[one.key] += 1
                continue
            step.accepted += 1
            step.seconds += [one.seconds] if one.seconds is not None else []
            if one.loops:
                step.loops[one.event] += 1
                self.loops[one.event] += 1
                looping = True
        self.looping += looping

    def as_json(self) -> dict[str, Any]:
        """As data; times in seconds, refusals by their keys."""
        return {
            "sessions": self.sessions,
            "ends": dict(self.ends),
            "sessions_with_loops": self.looping,
            "loops": dict(counts_in_words(self.loops)),
            "refusals": dict(self.refusals.most_common()),
            "evidence_failures": {key: count for key, count in self.refusals.most_common() if "evidence" in key},
            "failures": dict(self.failures.most_common(_TOP)),
            "steps": [
                {
                    "step": number,
                    "title": TITLES.get(number, ""),
                    "accepted": step.accepted,
                    "refused": step.refusals.total(),
                    "loops": step.loops.total(),
                    "fails_most_on": step.worst,
                    "seconds": round(step.total, 1),
                    "median_seconds": None if step.median is None else round(step.median, 1),
                }
                for number, step in sorted(self.steps.items())
            ],
            "tools": {phase: dict(tools.most_common()) for phase, tools in self.tools.items()},
            "trend": [
                {"session_id": one.session_id, "request": one.request, "outcome": one.outcome} for one in self.trend
            ],
            "notes": self.notes,
        }


def tally(services: "ProjectServices") -> Tally:
    """Count what the project's logs hold, the newest first where they hold too much to be read."""
    from code_intel_server.tools.session.archives import finished_sessions, read_archive

    counted = Tally()
    log, outcomes = services.decisions.tail(LINES_READ), services.outcomes.tail(LINES_READ)
    over = finished_sessions(services)
    archived = {
        session_id: session_record(kept | {"session_id": session_id})
        for session_id in over[:ARCHIVES_READ]
        if (kept := read_archive(services, session_id)) is not None
    }
    by_session: dict[str, list[Fields]] = defaultdict(list)
    for row in log.records:
        by_session[text(row, "session_id")].append(row)
    for session_id in sorted((archived.keys() | by_session.keys()) - {""}):
        record = archived.get(session_id)
        counted.add(record.submits if record and record.submits else submits(by_session.get(session_id, [])))
        for phase, tools in record.tools.items() if record else ():
            counted.tools[phase] += Counter({tool: number(row, "calls") for tool, row in tools.items()})
    counted.ends.update(_end(record) for record in archived.values())
    counted.trend = _trend(outcomes.records, archived)
    for row in outcomes.records:
        failures = row.get("failures")
        counted.failures.update(why for why in failures if isinstance(why, str)) if isinstance(failures, list) else None
    counted.notes += [*_remarks("decision", log), *_remarks("outcome", outcomes)]
    if len(over) > ARCHIVES_READ:
        counted.notes.append(f"Of {len(over)} kept sessions the newest {ARCHIVES_READ} were read.")
    return counted


def _end(record: SessionRecord) -> str:
    return "forced" if record.forced else _ENDS.get(record.end, record.end)


def _trend(log: Iterable[Fields], archived: Mapping[str, SessionRecord]) -> list[Ended]:
    """The last sessions that ended; what the user said of one counts more than how it ended."""
    ended = {
        one.session_id: Ended(one.session_id, _end(one), one.request, one.seconds, kept=True)
        for one in archived.values()
    }
    by_user: set[str] = set()
    for row in log:
        session_id, outcome = text(row, "session_id"), text(row, "outcome")
        if outcome and (outcome in USERS_WORDS or session_id not in by_user):
            known = ended.get(session_id) or Ended(session_id, "", text(row, "query"))
            ended[session_id] = Ended(session_id, outcome, known.request, known.seconds, known.kept)
            by_user |= {session_id} if outcome in USERS_WORDS else set()
    return [ended[session_id] for session_id in sorted(ended)][-TREND_LENGTH:]


def _remarks(name: str, log: "Tail") -> list[str]:
    """What a reader must know of a log that was not read whole."""
    remarks: list[str] = []
    newer = sum(number(row, "schema") > JOURNAL_SCHEMA for row in log.records)
    if log.skipped:
        remarks.append(f"{log.skipped} line(s) of the {name} log are torn or foreign and were passed over.")
    if newer:
        remarks.append(f"{newer} line(s) of the {name} log are of a newer version: what they add is not counted.")
    if log.truncated:
        remarks.append(f"The {name} log is long: only its newest {len(log.records)} lines were read.")
    return remarks


def counts_in_words(counts: Counter[str]) -> Counter[str]:
    """Counts of refusals or of events that lead back, by what people read in the place of their keys."""
    said: Counter[str] = Counter()
    for key, count in counts.items():
        said[LOOPS.get(key) or _reason(key)] += count
    return said


@cache
def _reason(key: str) -> str:
    """The first sentence of a refusal's message, `…` for its values; the end of the key where that says more."""
    from code_intel_server.contract import Contract

    last = key.rpartition(".")[2].replace("_", " ")
    try:
        message = Contract.load(None).message(key, {}).text
    except KeyError:
        return last
    said = re.sub(r"['\"`]?\{\w+\}['\"`]?", "…", message)
    first = re.split(r"(?<=[\w…)])[.:](?:\s|$)", said)[0]
    return last.capitalize() if first.startswith("…") else in_titles(first)
