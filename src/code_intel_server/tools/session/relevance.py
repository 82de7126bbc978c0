"""Embedding verification of QUERY_FRAME: symbols scored against what the query says and resolved in the symbol cache (SPEC 4)."""

import contextlib
import sqlite3
from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING

from code_intel_server.codebase.answers import Page
from code_intel_server.codebase.evidence import Reference
from code_intel_server.codebase.issue_report import IssueReport, read_report
from code_intel_server.codebase.symbols.definitions import DefinitionRow, resolve
from code_intel_server.errors import CodeIntelError
from code_intel_server.flow.ports import SymbolRelevance

if TYPE_CHECKING:
    from code_intel_server.tools.services import ProjectServices

_SYMBOLS_AT_MOST = 20
_PLACES, _LOOKED_AT = 3, 20


class LookupRelevance:
    """Implements the `Relevance` port over the project's symbol cache and index."""

    def __init__(self, services: "ProjectServices") -> None:
        self._services = services

    def symbols(self, symbols: Sequence[str], query: str) -> tuple[SymbolRelevance, ...]:
        """Score and resolve at most 20 symbols; what cannot be had is left out, never waited for."""
        wanted = [symbol for symbol in dict.fromkeys(symbols) if symbol.strip()][:_SYMBOLS_AT_MOST]
        if not wanted:
            return ()
        scores: tuple[float | None, ...] = (None,) * len(wanted)
        report = read_report(query)
        with contextlib.suppress(CodeIntelError, OSError, sqlite3.Error):
            scores = self._services.index.likeness(wanted, f"{report.title}\n{report.prose}".strip())
        begun = {point.path for point in self._services.starting_points.of(query)}
        return tuple(self._row(symbol, score, report, begun) for symbol, score in zip(wanted, scores, strict=True))

    def _row(self, symbol: str, score: float | None, report: IssueReport, begun: Set[str]) -> SymbolRelevance:
        """A symbol with its definitions, those at starting points first; one that the report names is meant."""
        implementations: dict[tuple[str, str], DefinitionRow] = {}  # of overloads the longest is one
        for row in self._places(symbol):
            known = implementations.setdefault((row.path, row.qualified), row)
            if row.end_line - row.start_line > known.end_line - known.start_line:
                implementations[row.path, row.qualified] = row
        found = sorted(implementations.values(), key=lambda row: row.path not in begun)
        meant = symbol in report.names or any(row.path in begun for row in found)
        return SymbolRelevance(symbol, score, tuple(f"{row.path}:{row.start_line}" for row in found[:_PLACES]), meant)

    def definitions(self, symbols: Sequence[str]) -> Mapping[str, Sequence[Reference]]:
        """Where the cache has each symbol, without bringing it up to date: who asks looks at the file."""
        return {symbol: self._defined(symbol) for symbol in symbols}

    def _defined(self, symbol: str) -> Sequence[Reference]:
        try:
            found = resolve(self._services.explorer.cache, symbol)[:_PLACES]
        except (CodeIntelError, OSError, sqlite3.Error):
            return ()
        return [Reference(one.path, one.tag.start_line, one.tag.end_line) for one in found]

    def _places(self, symbol: str) -> Sequence[DefinitionRow]:
        try:
            return self._services.explorer.find_definitions(symbol, page=Page(_LOOKED_AT)).results
        except (CodeIntelError, OSError, sqlite3.Error):
            return ()
