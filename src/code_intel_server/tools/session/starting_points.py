"""The places at which a report is begun: by meaning where the index is ready, by words alone until then (SPEC 2)."""

import contextlib
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from code_intel_server.codebase.answers import Page
from code_intel_server.codebase.files.ignore import project_files
from code_intel_server.codebase.issue_report import IssueReport, matching, read_report
from code_intel_server.errors import CodeIntelError
from code_intel_server.index.retrieval.lexical import query_words
from code_intel_server.index.retrieval.starting_points import (
    CHARACTERS,
    CodeRange,
    ScoredRange,
    StartingPoint,
    fused,
    is_aside,
)
from code_intel_server.tools.shaping import Fields, fitting_rows

if TYPE_CHECKING:
    from code_intel_server.codebase.explorer import Explorer
    from code_intel_server.index.code_index import CodeIndex
    from code_intel_server.workspace.state.journals import LedgerFile

COLD_SECONDS = 1.0
"""What looking for words in all files may take where there is no index yet."""
_WORDS = 10
_SHORTEST = 3
_MOST_FILES = 200
"""A word that more files hold says nothing of the place."""
_NAMED, _MENTIONED = 3.0, 2.0
_LOOKED_UP, _COMMON = 3, 8
"""Names of a title whose definitions are looked for, and how many of one say nothing of the place."""
_LEAST = 0.35
"""What a file must be worth compared with the best: a word alone is little."""
_FIELD = "starting_points"


class Lookups(Protocol):
    """What points are found with, each made when it is first asked for."""

    @property
    def index(self) -> "CodeIndex":
        """The index; Unavailable where there is none."""

    @property
    def explorer(self) -> "Explorer":
        """The lookups that need no index."""


class StartingPoints:
    """The starting points of one project's reports; the last report's are remembered."""

    def __init__(self, lookups: Lookups) -> None:
        self._lookups = lookups
        self._lock = threading.Lock()
        self._text = ""
        self._points: list[StartingPoint] | None = None
        self._indexed = False

    def of(self, text: str) -> list[StartingPoint]:
        """At most eight places, the best first; never raises, and never waits for an index."""
        with self._lock:
            if self._text != text:
                self._text, self._points, self._indexed = text, None, False
            if not self._indexed:
                self._points = self._found(read_report(text))
            return self._points or []

    def rows(self, text: str) -> Fields:
        """The field of an answer, as many points as 1.5 KB hold; nothing where there are none."""
        shown = fitting_rows(self.of(text), CHARACTERS - len(_FIELD)).results
        return {_FIELD: shown} if shown else {}

    def shown(self, text: str, ledger: "LedgerFile", phase: str) -> Fields:
        """The same, entered in a session's ledger: their files were shown, by no lookup of the agent's."""
        fields, points = self.rows(text), self.of(text)
        if points:
            ledger.add("start_session", phase, "ok", len(points), [one.path for one in points])
        return fields

    def _found(self, report: IssueReport) -> list[StartingPoint]:
        """The points of the index, where it is ready by now; until then those of words alone."""
        with contextlib.suppress(CodeIntelError, OSError, ValueError, sqlite3.Error):
            points = self._lookups.index.starting_points(report)
            self._indexed = bool(points)
            if points:
                return points
            return _by_words(self._lookups.explorer, report) if self._points is None else self._points
        return self._points or []


def _by_words(explorer: "Explorer", report: IssueReport) -> list[StartingPoint]:
    """The files that hold the report's names and words, each at the first line that does; within COLD_SECONDS."""
    deadline = time.monotonic() + COLD_SECONDS
    named = [name.rpartition(".")[2] for name in report.names]
    words = [word for word in dict.fromkeys((*named, *query_words(report.title))) if len(word) >= _SHORTEST][:_WORDS]
    holding = [*_holding(explorer, words, named, deadline)]
    in_few_files = {why for _, _, why in holding}  # a definition is looked for in all files that hold the name
    titled = [name for name in named if name in report.title and f"has {name}" in in_few_files]
    defining = [*_defining(explorer, titled, deadline)]
    places = {place.path: place for _, place, _ in reversed(defining)}
    holding = [(worth, places.get(place.path, place), why) for worth, place, why in holding]
    found = fused([*_mentioned(explorer, report), *defining, *holding], least=_LEAST)
    return [_at_a_line(explorer, one, words) if time.monotonic() < deadline else one for one in found]


def _mentioned(explorer: "Explorer", report: IssueReport) -> Iterator[ScoredRange]:
    """What frames and paths of a report name."""
    if not report.frames and not report.paths:
        return
    known = project_files(explorer.project).paths
    for frame in report.frames:
        if path := matching(frame.path, _called(known, frame.path)):
            yield _MENTIONED, CodeRange(path, max(frame.line, 1), max(frame.line, 1), frame.function), "traceback"
    for named in report.paths:
        if path := matching(named, _called(known, named)):
            yield _MENTIONED, CodeRange(path, 1, 1, ""), "path named"


def _called(known: Sequence[str], path: str) -> list[str]:
    name = path.rpartition("/")[2]
    return [one for one in known if one.rpartition("/")[2] == name]


def _holding(
    explorer: "Explorer", words: Sequence[str], named: Sequence[str], deadline: float
) -> Iterator[ScoredRange]:
    """The files that hold each word, the fewer they are the more it is worth."""
    for word in words:
        forms = [*dict.fromkeys((word, word.lower(), word.capitalize()))]
        left = deadline - time.monotonic()
        files = explorer.files_mentioning(forms, left) if left > 0 else None
        if not files or len(files) > _MOST_FILES:
            continue
        worth = (_NAMED if word in named else 1.0) / max(1, sum(not is_aside(path) for path in files))
        yield from ((worth, CodeRange(path, 1, 1, ""), f"has {word}") for path in files)


def _defining(explorer: "Explorer", named: Sequence[str], deadline: float) -> Iterator[ScoredRange]:
    """The definitions of the first names, the fewer there are the more each is worth."""
    for name in named[:_LOOKED_UP]:
        if time.monotonic() < deadline:
            found = explorer.find_definitions(name, page=Page(_COMMON))
            rows = found.results if found.total <= _COMMON else ()
            worth = _NAMED / max(1, sum(not is_aside(row.path) for row in rows))
            for row in rows:
                yield worth, CodeRange(row.path, row.start_line, row.end_line, row.qualified), f"defines {name}"


def _at_a_line(explorer: "Explorer", point: StartingPoint, words: Sequence[str]) -> StartingPoint:
    """The point at the first definition, or line, that has one of the words, where it has no line yet."""
    if point.symbol or point.start_line > 1 or not words:
        return point
    rows = explorer.search_text(words, point.path, regex=False, word=True, ignore_case=True, page=Page(1)).results
    return replace(point, start_line=rows[0].start_line, end_line=rows[0].end_line) if rows else point
