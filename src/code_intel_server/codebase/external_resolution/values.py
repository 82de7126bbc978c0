"""What a source tells of one symbol, and how its columns are held against the files as they are now."""

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from code_intel_server.codebase.files.text import decode, read_bytes

_WORD = re.compile(r"\w+")


class SourceError(Exception):
    """A source cannot answer; the text says why, in words for people."""


@dataclass(frozen=True, slots=True)
class NamePlace:
    """A name in a file: `start` and `end` are 0-based characters of the line (1-based) that holds `text` there."""

    path: str
    line: int
    start: int
    end: int
    text: str


@dataclass(frozen=True)
class KnownSymbol:
    """One symbol as a source knows it. `references` hold the definitions; `outside` names what the project does not define.

    `means_other` says of a line without a reference whether the source takes one of these names there for another symbol.
    """

    engine: str
    definitions: tuple[NamePlace, ...]
    references: frozenset[NamePlace]
    outside: str = ""
    means_other: Callable[[str, int, Set[str]], bool] = lambda _path, _line, _names: False

    def is_on(self, path: str, line: int, names: Set[str]) -> bool:
        """Whether one of these names on a line is certainly the symbol's."""
        texts = self._texts.get((path, line), ())
        return any(not names.isdisjoint(_WORD.findall(text)) for text in texts)

    @cached_property
    def _texts(self) -> Mapping[tuple[str, int], Sequence[str]]:
        found: dict[tuple[str, int], list[str]] = {}
        for one in self.references:
            found.setdefault((one.path, one.line), []).append(one.text)
        return found

    @property
    def names(self) -> Sequence[str]:
        """What it is called where it is used, the most usual first."""
        return [
            text
            for text, _ in Counter(one.text for one in in_order(self.references)).most_common()
            if _WORD.fullmatch(text)
        ]


def text_lines(root: Path, path: str) -> Sequence[str]:
    """A file's lines without their ends, none where it cannot be read."""
    return decode(read_bytes(root, path) or b"").split("\n")


def from_utf16(line: str, column: int) -> int:
    """The character of a line that a column in UTF-16 units is; a column behind the end stays behind it."""
    if line.isascii():
        return column
    sizes = itertools.accumulate((2 if one > "\uffff" else 1 for one in line), initial=0)
    return next((at for at, size in enumerate(sizes) if size >= column), len(line) + 1)


def from_utf8(line: str, column: int) -> int:
    """The same for a column in bytes of UTF-8."""
    if line.isascii():
        return column
    sizes = itertools.accumulate((len(one.encode("utf-8", "replace")) for one in line), initial=0)
    return next((at for at, size in enumerate(sizes) if size >= column), len(line) + 1)


def whole_word(line: str, start: int, end: int) -> bool:
    """Whether a line has text there that is not cut out of a longer word."""
    if not 0 <= start < end <= len(line) or not line[start:end].strip():
        return False
    return not any(0 < at < len(line) and _joins(line[at - 1], line[at]) for at in (start, end))


def _joins(before: str, after: str) -> bool:
    return (before.isalnum() or before == "_") and (after.isalnum() or after == "_")


def in_order(places: Iterable[NamePlace]) -> tuple[NamePlace, ...]:
    """Places by file and line, each once."""
    return tuple(sorted(set(places), key=lambda one: (one.path, one.line, one.start)))


def to_utf16(line: str, character: int) -> int:
    """The column in UTF-16 units of a character."""
    return len(line[:character].encode("utf-16-le", "replace")) // 2
