"""Embedding verification of QUERY_FRAME: symbols scored against the query and resolved in the symbol cache (SPEC 4)."""

import contextlib
import sqlite3
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from code_intel_server.codebase.answers import Page
from code_intel_server.codebase.definitions import resolve
from code_intel_server.codebase.reference import Reference
from code_intel_server.errors import CodeIntelError
from code_intel_server.flow.ports import SymbolRelevance

if TYPE_CHECKING:
    from code_intel_server.tools.desk import Desk

_SYMBOLS_AT_MOST = 20
_PLACES = 3


class LookupRelevance:
    """Implements the `Relevance` port over the desk's symbol cache and index."""

    def __init__(self, desk: "Desk") -> None:
        self._desk = desk

    def symbols(self, symbols: Sequence[str], query: str) -> tuple[SymbolRelevance, ...]:
        """Score and resolve at most 20 symbols; what cannot be had is left out, never waited for."""
        wanted = [symbol for symbol in dict.fromkeys(symbols) if symbol.strip()][:_SYMBOLS_AT_MOST]
        if not wanted:
            return ()
        scores: tuple[float | None, ...] = (None,) * len(wanted)
        with contextlib.suppress(CodeIntelError, OSError, sqlite3.Error):
            scores = self._desk.index.likeness(wanted, query)
        return tuple(
            SymbolRelevance(symbol, score, self._places(symbol)) for symbol, score in zip(wanted, scores, strict=True)
        )

    def definitions(self, symbols: Sequence[str]) -> Mapping[str, Sequence[Reference]]:
        """Where the cache has each symbol, without bringing it up to date: who asks looks at the file."""
        return {symbol: self._defined(symbol) for symbol in symbols}

    def _defined(self, symbol: str) -> Sequence[Reference]:
        try:
            found = resolve(self._desk.explorer.cache, symbol)[:_PLACES]
        except (CodeIntelError, OSError, sqlite3.Error):
            return ()
        return [Reference(one.path, one.tag.start_line, one.tag.end_line) for one in found]

    def _places(self, symbol: str) -> tuple[str, ...]:
        try:
            found = self._desk.explorer.find_definitions(symbol, page=Page(_PLACES))
        except (CodeIntelError, OSError, sqlite3.Error):
            return ()
        return tuple(f"{row.path}:{row.start_line}" for row in found.results)
