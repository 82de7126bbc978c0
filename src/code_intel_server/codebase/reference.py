"""`path:line` and `path:start-end`: the only form in which evidence points at code (v1.16, READY impl)."""

import re
from dataclasses import dataclass

_STRICT = re.compile(r"(?P<path>.+):(?P<start>\d{1,9})(?:-(?P<end>\d{1,9}))?", re.DOTALL)
_WITHIN = re.compile(r"(?P<path>[\w./@+~\-]*[\w\-]\.?[\w\-]*):(?P<start>\d{1,9})(?:-(?P<end>\d{1,9}))?")


@dataclass(frozen=True, slots=True)
class Reference:
    """Lines `start` to `end` of a file, 1-based and inclusive."""

    path: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class RangeVerdict:
    """What the code at a range is: `empty` implementation, only `trivial` lines (comment, blank, declaration), or code.

    `why` says which, in words for a sentence; '' for code.
    """

    empty: bool
    trivial: bool
    why: str = ""


def parse_reference(text: str) -> Reference | None:
    """The reference that `text` is, or None where it has any other form."""
    match = _STRICT.fullmatch(text)
    return _reference(match) if match else None


def find_references(text: str) -> list[Reference]:
    """Every reference that occurs in a sentence; paths with spaces are only found as the whole text."""
    whole = parse_reference(text.strip())
    found = [_reference(match) for match in _WITHIN.finditer(text)]
    return found if whole is None else [whole, *found]


def _reference(match: "re.Match[str]") -> Reference:
    start = int(match["start"])
    return Reference(match["path"], start, int(match["end"]) if match["end"] else start)
