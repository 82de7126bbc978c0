"""The codebase room's front door: every lookup of one project, over one symbol cache."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Unpack

from code_intel_server.codebase.answers import FIRST_PAGE, LookupAnswer, Page
from code_intel_server.codebase.external_resolution import ExternalSources, SourceSettings
from code_intel_server.codebase.files import ripgrep, search_files
from code_intel_server.codebase.files.ignore import SkipCounter
from code_intel_server.codebase.files.memory import FileMemory
from code_intel_server.codebase.files.project import ProjectScope
from code_intel_server.codebase.files.search_files import FileRow
from code_intel_server.codebase.impact import FIRST_IMPACTS as FIRST_TOUCHED
from code_intel_server.codebase.impact import History, Impact, analyze_impact
from code_intel_server.codebase.references import finder, go_to_definition
from code_intel_server.codebase.references.classify import ReferenceRow
from code_intel_server.codebase.symbols import definitions, file_structure
from code_intel_server.codebase.symbols.cache import Refresh, SymbolCache, TaggingProgress
from code_intel_server.codebase.symbols.definitions import DefinitionRow, NameMatch
from code_intel_server.codebase.symbols.file_structure import FIRST_FILES, SourceRow, StructureRow, SymbolRow
from code_intel_server.codebase.text_search import SearchOptions, TextRow, search_text


class Explorer:
    """Lookups of one project (SPEC 2, tool group `lookup`). Safe to call from several threads; opens nothing before it is asked."""

    def __init__(
        self,
        root: Path | str,
        exclude_patterns: Sequence[str] = (),
        *,
        keeps: bool = True,
        sources: Callable[[], SourceSettings] = SourceSettings,
        shared: Callable[[], Path | None] = lambda: None,
    ) -> None:
        """With `keeps` False nothing is written below `root`: the symbol cache lives in memory.

        `shared` gives a folder of all checkouts of the repository, None where there is none. `sources` tells which SCIP index and language servers the project has, asked for anew with each question.
        """
        self.project = ProjectScope.at(root, tuple(exclude_patterns), keeps=keeps)
        self.cache = SymbolCache(self.project, shared=shared)
        self.skips = SkipCounter(self.project)
        self.sources = ExternalSources(self.project, sources)
        self._classified = FileMemory[ReferenceRow]()
        self._refreshing = threading.Lock()

    def close(self) -> None:
        """Let go of language servers; a later lookup would start others."""
        self.sources.close()

    def refresh_all(
        self, progress: TaggingProgress = lambda _done, _total: None, cancelled: Callable[[], bool] = lambda: False
    ) -> Refresh:
        """Bring the symbol cache up to date and count what is skipped; for a background thread, one after the other."""
        with self._refreshing:  # two at once would tag every file twice
            refresh = self.cache.refresh_all(progress, cancelled)
            if not cancelled():
                self.skips.refresh()
        return refresh

    def search_text(
        self,
        patterns: str | Sequence[str],
        path: str = ".",
        *,
        page: Page = FIRST_PAGE,
        **wanted: Unpack[SearchOptions],
    ) -> LookupAnswer[TextRow]:
        """See `search_text`."""
        return search_text(self.project, patterns, path=path, page=page, skipped=self.skips.latest, **wanted)

    def files_mentioning(self, words: Sequence[str], seconds: float) -> tuple[str, ...] | None:
        """The files that hold one of these words, project-relative; None where it took longer or some could not be read."""
        query = ripgrep.Query(tuple(words), regex=False, word=True)
        search_files, problems = ripgrep.matching_files(self.project, query, seconds=seconds)
        return None if problems else search_files

    def search_files(self, pattern: str, path: str = ".", *, page: Page = FIRST_PAGE) -> LookupAnswer[FileRow]:
        """See `files.search_files`."""
        return search_files.search_files(self.project, pattern, path=path, page=page, skipped=self.skips.latest)

    def find_definitions(
        self,
        symbol: str | None = None,
        *,
        at: str | None = None,
        kind: str | None = None,
        path: str = ".",
        match: str = NameMatch.EXACT,
        page: Page = FIRST_PAGE,
    ) -> LookupAnswer[DefinitionRow]:
        """See `definitions.find_definitions`, and `go_to_definition`: of a place, and of what nothing is defined under."""
        if at:
            return go_to_definition.definitions_at(
                self.project, self.cache, at, page=page, skipped=self.skips.latest, sources=self.sources
            )
        found = definitions.find_definitions(
            self.project,
            self.cache,
            symbol or "",
            kind=kind,
            path=path,
            match=NameMatch(match),
            page=page,
            skipped=self.skips.latest,
        )
        if found.total or kind or path != "." or match != NameMatch.EXACT:
            return found
        return go_to_definition.definitions_otherwise(self.project, self.cache, symbol or "", found, page)

    def find_references(
        self,
        symbol: str | None = None,
        *,
        at: str | None = None,
        path: str = ".",
        kinds: Sequence[str] = (),
        include_comments: bool = False,
        page: Page = FIRST_PAGE,
    ) -> LookupAnswer[ReferenceRow]:
        """See `references.find_references`."""
        return finder.find_references(
            self.project,
            self.cache,
            symbol,
            at=at,
            path=path,
            kinds=tuple(kinds),
            include_comments=include_comments,
            page=page,
            skipped=self.skips.latest,
            memory=self._classified,
            sources=self.sources,
        )

    def get_symbols(self, path: str) -> LookupAnswer[SymbolRow]:
        """See `file_structure.get_symbols`."""
        return file_structure.get_symbols(self.project, path)

    def get_function_at_line(self, path: str, line: int) -> LookupAnswer[SourceRow]:
        """See `file_structure.get_function_at_line`."""
        return file_structure.get_function_at_line(self.project, path, line)

    def analyze_structure(self, path: str, *, page: Page = FIRST_FILES) -> LookupAnswer[StructureRow]:
        """See `file_structure.analyze_structure`."""
        return file_structure.analyze_structure(self.project, path, page=page, skipped=self.skips.latest)

    def analyze_impact(
        self, targets: Sequence[str], *, depth: int = 2, page: Page = FIRST_TOUCHED, history: History | None = None
    ) -> Impact:
        """See `impact.analyze_impact`."""
        return analyze_impact(
            self.project, self.cache, targets, depth=depth, page=page, history=history, skipped=self.skips.latest
        )
