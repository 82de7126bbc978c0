"""One finding of the doctor."""

from dataclasses import dataclass
from enum import StrEnum


class Grade(StrEnum):
    """The state of a finding; only BAD makes the doctor's exit status 1."""

    GOOD = "ok"
    WARNING = "warning"
    BAD = "broken"
    UNUSED = "not used"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was examined, its state, and what to do where it is not well."""

    name: str
    grade: Grade
    text: str
    remedy: str = ""


def good(name: str, text: str) -> Finding:
    """All is well."""
    return Finding(name, Grade.GOOD, text)


def warning(name: str, text: str, remedy: str) -> Finding:
    """It works, but less well than it could."""
    return Finding(name, Grade.WARNING, text, remedy)


def bad(name: str, text: str, remedy: str) -> Finding:
    """Sessions cannot work like this."""
    return Finding(name, Grade.BAD, text, remedy)
