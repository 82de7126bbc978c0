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
        self._last: tuple[str, list[StartingPoint]] = ("", [])

    def of(self, text: str) -> list[StartingPoint]:
        """At most eight places, the best first; never raises, and never waits for an index."""
        with self._lock:
            if self._last[0] != text:
                self._last = (text, self._found(read_report(text)))
            return self._last[1]

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
        with contextlib.suppress(CodeIntelError, OSError, ValueError, sqlite3.Error):
            return self._lookups.index.starting_points(report) or _by_words(self._lookups.explorer, report)
        return []


def _by_words(explorer: "Explorer", report: IssueReport) -> list[StartingPoint]:
    """The files that hold the report's names and words, each at the first line that does; within COLD_SECONDS."""
    deadline = time.monotonic() + COLD_SECONDS
    named = [name.rpartition(".")[2] for name in report.names]
    words = [word for word in dict.fromkeys((*named, *query_words(report.title))) if len(word) >= _SHORTEST][:_WORDS]
    found = fused([*_mentioned(explorer, report), *_holding(explorer, words, named, deadline)], least=_LEAST)
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


def _at_a_line(explorer: "Explorer", point: StartingPoint, words: Sequence[str]) -> StartingPoint:
    """The point at the first definition, or line, that has one of the words, where it has no line yet."""
    if point.start_line > 1 or not words:
        return point
    rows = explorer.search_text(words, point.path, regex=False, word=True, ignore_case=True, page=Page(1)).results
    return replace(point, start_line=rows[0].start_line, end_line=rows[0].end_line) if rows else point
