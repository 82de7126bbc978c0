"""`path:line` and `path:start-end`: the only form in which evidence points at code (v1.16, READY impl)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_STRICT = re.compile(r"(?P<path>.+):(?P<start>\d{1,9})(?:-(?P<end>\d{1,9}))?", re.DOTALL)
_LINES = re.compile(r":(?P<start>\d{1,9})(?:-(?P<end>\d{1,9}))?")
_SENTENCE = re.compile(r"[.;!?]\s+(?=[A-Z(])")
_NO_PATH = re.compile(r"[^\w./@+~\-]")
_ENDS_AS_PATH = re.compile(r"[\w\-]\.?\Z")
_BETWEEN = re.compile(r"[,;\n]")
_BARE = re.compile(r"\d{1,9}(?:-\d{1,9})?")
_PATH_AT_MOST = 1024

Replaced = tuple[tuple[int, int], tuple[int, int]]
"""A hunk: the first line (1-based) and the number of lines that were, and of those that took their place."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Lines `start` to `end` of a file, 1-based and inclusive."""

    path: str
    start: int
    end: int

    def __str__(self) -> str:
        """As it is written."""
        return f"{self.path}:{self.start}" if self.start == self.end else f"{self.path}:{self.start}-{self.end}"


@dataclass(frozen=True, slots=True)
class RangeVerdict:
    """What changed at a range: an `empty` implementation, only what is `trivial` (comments, white space, what cannot run), or code.

    `why` says which, in words for a sentence; '' for code. `prose` where it is comments or docstrings, `overrides` where what
    is empty takes the place of something inherited.
    """

    empty: bool
    trivial: bool
    why: str = ""
    prose: bool = False
    overrides: bool = False


def parse_reference(text: str) -> Reference | None:
    """The reference that `text` is, or None where it has any other form."""
    match = _STRICT.fullmatch(text)
    return _reference(match["path"], match) if match else None


def parse_references(text: str) -> list[Reference]:
    """The references a list of them is (`a.py:1-5, b.py:7; 9-12`, a bare range being one of the file before); [] for anything else."""
    found: list[Reference] = []
    for piece in filter(None, map(str.strip, _BETWEEN.split(text))):
        one = parse_reference(f"{found[-1].path}:{piece}" if found and _BARE.fullmatch(piece) else piece)
        if one is None:
            whole = parse_reference(text.strip())  # a name may hold what is between two
            return [whole] if whole else []
        found.append(one)
    return found


def references_in(text: str) -> list[Reference]:
    """Every reference that occurs in a sentence; paths with spaces are only found as the whole text."""
    whole = parse_reference(text.strip())
    found = [_reference(path, lines) for path, lines in _occurring(text)]
    return found if whole is None else [whole, *found]


def find_claims(text: str) -> list[tuple[Reference, str, bool]]:
    """Every reference that occurs in a text, the words of its sentence about it, and whether they follow it or come before."""
    found = list(_occurring(text))
    claims: list[tuple[Reference, str, bool]] = []
    for number, (path, lines) in enumerate(found):
        begin = found[number - 1][1].end() if number else 0
        end = found[number + 1][1].start() - len(found[number + 1][0]) if number + 1 < len(found) else len(text)
        behind = text[lines.end() : end]
        before = text[begin : lines.start() - len(path)]
        follow = bool(re.search(r"\w", behind)) and not before.endswith("(")
        words = _SENTENCE.split(behind)[0] if follow else _SENTENCE.split(before)[-1]
        claims.append((_reference(path, lines), words, follow))
    return claims


def _occurring(text: str) -> Iterator[tuple[str, "re.Match[str]"]]:
    """Path and line part of each reference; looked for from the colon, as what is before may be one endless word."""
    after = 0
    for lines in _LINES.finditer(text):
        before = text[max(after, lines.start() - _PATH_AT_MOST) : lines.start()]
        path = _NO_PATH.split(before)[-1]
        if _ENDS_AS_PATH.search(path[-2:]):
            yield path, lines
            after = lines.end()


def _reference(path: str, lines: "re.Match[str]") -> Reference:
    start = int(lines["start"])
    return Reference(path, start, int(lines["end"]) if lines["end"] else start)
