"""`path:line` and `path:start-end`: the only form in which evidence points at code (v1.16, READY impl)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_STRICT = re.compile(r"(?P<path>.+):(?P<start>\d{1,9})(?:-(?P<end>\d{1,9}))?", re.DOTALL)
_LINES = re.compile(r":(?P<start>\d{1,9})(?:-(?P<end>\d{1,9}))?")
_NO_PATH = re.compile(r"[^\w./@+~\-]")
_ENDS_AS_PATH = re.compile(r"[\w\-]\.?\Z")
_PATH_AT_MOST = 1024

Version = tuple[str, Sequence[str] | None, Sequence[str] | None]
"""A file that changed: its path, its lines before and now; `None` where there are none."""


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
    return _reference(match["path"], match) if match else None


def find_references(text: str) -> list[Reference]:
    """Every reference that occurs in a sentence; paths with spaces are only found as the whole text."""
    whole = parse_reference(text.strip())
    found: list[Reference] = []
    after = 0
    # Looked for from the colon: what stands before may be one endless word.
    for lines in _LINES.finditer(text):
        before = text[max(after, lines.start() - _PATH_AT_MOST) : lines.start()]
        path = _NO_PATH.split(before)[-1]
        if _ENDS_AS_PATH.search(path[-2:]):
            found.append(_reference(path, lines))
            after = lines.end()
    return found if whole is None else [whole, *found]


def _reference(path: str, lines: "re.Match[str]") -> Reference:
    start = int(lines["start"])
    return Reference(path, start, int(lines["end"]) if lines["end"] else start)
