"""Which matches are shown first: files where a match is the name that its line defines, then by the part a file plays, then by path.

Ripgrep is not asked for columns: that costs it a third of its time over tens of thousands of lines, and only the few
lines that begin like a definition need one. Nor is everything found looked through: files are taken in chunks, and where
the first ones fill the page, the others come behind them anyway.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from operator import attrgetter
from pathlib import Path

from code_intel_server.codebase.files import ripgrep
from code_intel_server.codebase.files.ripgrep import FileMatches, Query
from code_intel_server.codebase.files.roles import RELEVANCE, role

_KEYWORDS = (
    rb"[ \t]*(?:(?:export|default|public|private|protected|internal|static|final|abstract|async|pub(?:\([^)\n]*\))?|unsafe|extern|inline"
    rb"|virtual|override|data|sealed|open|suspend|declare|local|partial|readonly)[ \t]+)*"
    rb"(?:def|class|function\*?|func|fn|fun|struct|enum|union|interface|trait|type|module|namespace|record|object|protocol|sub|macro_rules!"
    rb"|macro|#[ \t]*define|typedef|package|extension|mod|let|var|val|const|defmodule|defp?|defmacro)[ \t]+(?:\([^)\n]*\)[ \t]*)?"
)
_DEFINING_LINES = re.compile(rb"^\d+:((" + _KEYWORDS + rb").*)$", re.MULTILINE)
_CHUNKS = (250, 1000)
"""Files looked through at once: few first, since these often fill the page, then more; the last chunk takes the rest."""

_MOST_A_FILE = 1000
"""Lines of one file that are tried: enough for any that a person wrote."""

Line = tuple[bytes, int]
"""A line's text, and how many of its bytes are before the name that it defines."""


class Columns:
    """Where a query first matches in a line. Ripgrep is asked about many lines at once, and about none twice."""

    def __init__(self, root: Path, query: Query) -> None:
        self._root = root
        self._query = query
        self._known: dict[bytes, int] = {}

    def of(self, lines: Sequence[bytes]) -> Sequence[int]:
        """The 1-based byte column of the first match in each line, 0 where there is none."""
        new = [line for line in dict.fromkeys(lines) if line not in self._known]
        self._known.update(zip(new, self._asked(new), strict=True))
        return [self._known[line] for line in lines]

    def _asked(self, lines: Sequence[bytes]) -> Sequence[int]:
        if self._query.is_plain:
            sought = [pattern.encode("utf-8", "replace") for pattern in self._query.patterns]
            return [min((at for text in sought if (at := line.find(text)) >= 0), default=-1) + 1 for line in lines]
        found = ripgrep.first_columns(self._query, b"".join(line + b"\n" for line in lines), self._root)
        return [found.get(number, 0) for number in range(len(lines))]


def by_relevance(columns: Columns, files: Collection[FileMatches]) -> Iterator[FileMatches]:
    """The files, most relevant first; only as much is looked through as the caller takes."""
    by_role = sorted(sorted(files, key=attrgetter("path")), key=lambda file: RELEVANCE[role(file.path)])
    others: list[FileMatches] = []
    for chunk in _chunks(by_role):
        defining = _with_definition(columns, chunk)
        yield from (file for number, file in enumerate(chunk) if number in defining)
        others += [file for number, file in enumerate(chunk) if number not in defining]
    yield from others


def _chunks(files: Sequence[FileMatches]) -> Iterator[Sequence[FileMatches]]:
    start = 0
    for size in (*_CHUNKS, len(files)):
        if start < len(files):
            yield files[start : start + size]
        start += size


def _with_definition(columns: Columns, files: Sequence[FileMatches]) -> set[int]:
    """The numbers of the files of which a match is a defined name."""
    lines: list[Line] = []
    owners: list[int] = []
    for number, file in enumerate(files):
        for found in islice(_DEFINING_LINES.finditer(file.printed), _MOST_A_FILE):
            lines.append((found[1], len(found[2])))
            owners.append(number)
    return {owners[index] for index in _fitting(columns, lines)}


def _fitting(columns: Columns, lines: Sequence[Line]) -> set[int]:
    """The numbers of the lines whose first match begins no later than the name that they define."""
    places = zip(columns.of([text for text, _ in lines]), lines, strict=True)
    return {number for number, (column, (_, before)) in enumerate(places) if 0 < column <= before + 1}
