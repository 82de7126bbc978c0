"""The sources that a project's configuration names, asked in order: a language server for the file's language, the SCIP index."""

import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from code_intel_server.codebase.external_resolution.language_server import LanguageServer
from code_intel_server.codebase.external_resolution.scip import ScipIndex
from code_intel_server.codebase.external_resolution.values import KnownSymbol, SourceError, text_lines
from code_intel_server.codebase.files.ignore import project_files
from code_intel_server.codebase.files.languages import language_of
from code_intel_server.codebase.files.project import ProjectScope

_NAME = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """What is configured: the path of a SCIP index, the commands of language servers by language, and what is to be said of it.

    Only commands that the user trusts belong here.
    """

    scip: str = ""
    language_servers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """What the sources said of a place: the symbol that is called `name` there, or None, and why not."""

    name: str = ""
    symbol: KnownSymbol | None = None
    notes: tuple[str, ...] = ()


class ExternalSources:
    """The sources of one project. Safe to use from several threads; starts and opens nothing before it is asked."""

    def __init__(self, project: ProjectScope, settings: Callable[[], SourceSettings]) -> None:
        """`settings` are asked for anew with each question: the user may edit, trust or revoke meanwhile."""
        self._project = project
        self._settings = settings
        self._lock = threading.Lock()
        self._servers: dict[tuple[str, ...], LanguageServer] = {}
        self._index: tuple[str, ScipIndex] | None = None

    def symbol_at(self, path: str, line: int, column: int | None = None, name: str = "") -> Asked:
        """What is at a place (1-based); without a column the name given, else the line's first."""
        settings = self._settings()
        servers, index = self._up_to_date(settings)
        language = language_of(path)
        server = servers.get(settings.language_servers.get(language.name, ()) if language else ())
        here = self._name(path, line, column, name) if server is not None or index is not None else None
        if here is None:
            return Asked(notes=settings.notes)
        at = (path, line, here.start() + 1)
        notes = list(settings.notes)
        if server is not None:
            try:
                return Asked(here[0], server.symbol_at(*at, project_files(self._project).paths), tuple(notes))
            except SourceError as error:
                notes.append(f"{error}: resolved without it")
        if index is not None:
            try:
                known, said = index.symbol_at(*at)
                return Asked(here[0], known, (*notes, said) if said else tuple(notes))
            except SourceError as error:
                notes.append(f"{error}: resolved without it")
        return Asked(here[0], None, tuple(notes))

    def close(self) -> None:
        """End the language servers."""
        with self._lock:
            servers, self._servers = self._servers, {}
        for server in servers.values():
            server.close()

    def _up_to_date(
        self, settings: SourceSettings
    ) -> tuple[Mapping[tuple[str, ...], LanguageServer], ScipIndex | None]:
        """The sources of these settings; servers that they do not name any more are ended."""
        root = self._project.root
        with self._lock:
            wanted = set(settings.language_servers.values())
            gone = [self._servers.pop(argv) for argv in [*self._servers] if argv not in wanted]
            for argv in wanted - self._servers.keys():
                languages = frozenset(name for name, one in settings.language_servers.items() if one == argv)
                self._servers[argv] = LanguageServer(root, argv, languages)
            if self._index is None or self._index[0] != settings.scip:
                self._index = (settings.scip, ScipIndex(root, settings.scip))
            found = dict(self._servers), self._index[1] if settings.scip else None
        for server in gone:
            server.close()
        return found

    def _name(self, path: str, line: int, column: int | None, name: str) -> re.Match[str] | None:
        """The name at a column; without one the one that is given, else the line's first."""
        lines = text_lines(self._project.root, path)
        found = list(_NAME.finditer(lines[line - 1])) if 0 < line <= len(lines) else []
        if column is not None:
            return next((one for one in found if one.start() < column <= one.end()), None)
        return next((one for one in found if one[0] == name), found[0] if found else None)
