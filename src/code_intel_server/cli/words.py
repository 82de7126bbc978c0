"""The words in which people read of a session: the steps, what became of a submit, how long it took."""

import re
from collections.abc import Mapping
from datetime import datetime

from code_intel_server.flow.phases import STEPS

_TITLES = (
    "Start",
    "Old branches",
    "Documents",
    "Request",
    "Exploration",
    "Enough known?",
    "Semantic search",
    "Unverified?",
    "Hypotheses",
    "Others affected?",
    "Impact",
    "Plan",
    "Implementation",
    "Completion",
    "Verification",
    "New approach",
    "Commit",
    "Quality review",
    "Merge",
)
TITLES: Mapping[int, str] = dict(enumerate(_TITLES, 1))
"""The 19 steps, each in at most 16 characters."""

_BY_PHASE = {place.contract_key: TITLES[step] for place, step in STEPS.items()} | {"READY": "Plan or implementation"}


def in_titles(message: str) -> str:
    """A message of the server's with the steps by the names that people read."""
    return re.sub(r"\b[A-Z][A-Z_0-9]+\b", lambda word: _BY_PHASE.get(word[0], word[0]), message)


TITLE_WIDTH = max(map(len, TITLES.values()))

LOOPS: Mapping[str, str] = {
    "failed": "verification failed",
    "reverted": "sent back before the commit",
    "issues": "quality issues",
    "intervened": "a new approach",
}
"""The events that lead back, and why."""

VERDICTS: Mapping[str, str] = {
    "passed": "passed",
    "failed": "failed",
    "intervened": "a new approach",
    "stopped": "stopped by the user",
    "reverted": "sent back",
    "clean": "no issues",
    "issues": "issues found",
}
"""What an accepted submit means, where its account does not say it."""

PROOFS: Mapping[str, str] = {"proven": "passed", "failed": "failed", "unproven": "not run", "waived": "waived"}
"""What became of a verify command."""


def quantity(number: int, thing: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number} {thing if number == 1 else thing + 's'}"


def flag_typed(name: str, value: object) -> str:
    """A flag as people type it: `--gate=full`, `--no-verify`."""
    typed = {"gate_level": "gate", "no_doc": "no-doc-research"}.get(name, name.replace("_", "-"))
    return f"--{typed}" if value is True else f"--{typed}={value}"


def moment(at: object) -> datetime | None:
    """A time of the log; None where it is none."""
    try:
        return datetime.fromisoformat(at) if isinstance(at, str) else None
    except ValueError:
        return None


def elapsed(since: object, until: object) -> float | None:
    """Seconds between two times of the log; None where one is none, they do not compare, or the clock was turned back."""
    begun, ended = moment(since), moment(until)
    if begun is None or ended is None or (begun.tzinfo is None) != (ended.tzinfo is None):
        return None
    seconds = (ended - begun).total_seconds()
    return seconds if seconds >= 0 else None


def duration(seconds: float | None) -> str:
    """`0.4 s`, `12 s`, `3 min 5 s`, `2 h 4 min`; a dash where it is not known."""
    if seconds is None:
        return "–"
    if seconds < 0.05:
        return "<0.1 s"
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes_left = divmod(minutes, 60)
    return f"{hours} h {minutes_left} min" if hours else f"{minutes} min {rest} s"
