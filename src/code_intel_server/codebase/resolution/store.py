"""The project's files as resolution reads them: parsed on first need, kept by content, looked for where imports lead."""

import os
import threading
from collections import OrderedDict
from collections.abc import Mapping
from functools import cached_property, lru_cache

from code_intel_server.codebase.files import ripgrep
from code_intel_server.codebase.files.ignore import project_files
from code_intel_server.codebase.files.languages import language_of
from code_intel_server.codebase.files.project import ProjectScope
from code_intel_server.codebase.files.ripgrep import Query
from code_intel_server.codebase.files.text import decode, read_bytes
from code_intel_server.codebase.resolution.language import LanguageRules
from code_intel_server.codebase.resolution.languages import RESOLVERS
from code_intel_server.codebase.resolution.model import Model
from code_intel_server.codebase.symbols.cache import stamp_of

_KEPT_BYTES = 6 * 1024 * 1024
_DESCRIPTIONS = frozenset({"package.json", "go.mod", "Cargo.toml"})
"""Files that are looked for without listing all others."""


class Models:
    """Models of files, kept while their content stays and up to some 6 MB of text. Safe to use from several threads."""

    def __init__(self, most: int = _KEPT_BYTES) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[object, Model]] = OrderedDict()
        self._bytes = 0

    def get(self, path: str, stamp: object) -> Model | None:
        """What was kept of a file that looks so."""
        with self._lock:
            kept = self._kept.get(path)
            if kept is None or kept[0] != stamp:
                return None
            self._kept.move_to_end(path)
            return kept[1]

    def keep(self, path: str, stamp: object, model: Model) -> None:
        """Keep a file's model in place of the one before."""
        with self._lock:
            before = self._kept.pop(path, None)
            self._kept[path] = (stamp, model)
            self._bytes += model.size - (before[1].size if before else 0)
            while self._bytes > self._most and len(self._kept) > 1:
                _, gone = self._kept.popitem(last=False)
                self._bytes -= gone[1].size


@lru_cache(maxsize=16)
def models_of(_root: str) -> Models:
    """The models of the project at a path, kept as long as this process lives."""
    return Models()


class ProjectFiles:
    """One look at the project's files: what was read once stays so for as long as this object lives."""

    def __init__(self, project: ProjectScope) -> None:
        self._project = project
        self._root = os.fspath(project.root)
        self._models = models_of(self._root)
        self._seen: dict[str, Model | None] = {}
        self._files: dict[str, bool] = {}
        self._folders: dict[str, bool] = {}
        self._texts: dict[str, str] = {}
        self._lines: dict[str, Mapping[str, tuple[str, ...]]] = {}

    def model(self, path: str) -> Model | None:
        """A file's model; None where there is no such file, it cannot be parsed, or no resolver reads its language."""
        if path not in self._seen:
            self._seen[path] = self._model(path)
        return self._seen[path]

    def _model(self, path: str) -> Model | None:
        stamp = stamp_of(self._project, path)
        if stamp is None or resolver_of(path) is None:
            return None
        kept = self._models.get(path, stamp)
        if kept is not None:
            return kept
        from code_intel_server.codebase.syntax import structure

        data = read_bytes(self._project.root, path)
        language, resolver = language_of(path), resolver_of(path)
        parsed = structure.parse(data, language) if data is not None and language is not None else None
        if parsed is None or resolver is None:
            return None
        model = Model(path, parsed, resolver)
        self._models.keep(path, stamp, model)
        return model

    def is_file(self, path: str) -> bool:
        """Whether the project has such a file."""
        if path not in self._files:
            self._files[path] = stamp_of(self._project, path) is not None
        return self._files[path]

    def is_folder(self, path: str) -> bool:
        """Whether the project has such a folder."""
        if path not in self._folders:
            full = self._project.root / path
            self._folders[path] = full.is_dir() and not full.is_symlink()
        return self._folders[path]

    def named(self, name: str) -> tuple[str, ...]:
        """The project's files of that name, whatever their folder, in order."""
        if name in _DESCRIPTIONS and "listed" not in self.__dict__:
            return self._of_type(name)
        return self._by_name.get(name, ())

    def _of_type(self, name: str) -> tuple[str, ...]:
        # A type, since a glob would find ignored files too.
        key = f"name {name}"
        if key not in self._lines:
            found, _ = ripgrep.list_files(self._project, ("--type-add", f"description:{name}", "--type", "description"))
            self._lines[key] = dict.fromkeys(sorted(found), ())
        return tuple(self._lines[key])

    def in_folder(self, path: str) -> tuple[str, ...]:
        """The files directly in a folder, in order."""
        return self._by_folder.get(path, ())

    def text(self, path: str) -> str:
        """A file's text, '' where there is none."""
        if path not in self._texts:
            self._texts[path] = decode(read_bytes(self._project.root, path) or b"")
        return self._texts[path]

    def holding(self, pattern: str) -> Mapping[str, tuple[str, ...]]:
        """The lines that match a regular expression, by file."""
        if pattern not in self._lines:
            found = ripgrep.search(self._project, Query((pattern,)), path=".")
            self._lines[pattern] = {
                file.path: tuple(decode(match.text) for match in file.lines()) for file in found.files
            }
        return self._lines[pattern]

    @cached_property
    def listed(self) -> tuple[str, ...]:
        """Every file of the project."""
        return project_files(self._project).paths

    @cached_property
    def _by_name(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, list[str]] = {}
        for path in self.listed:
            found.setdefault(path.rpartition("/")[2], []).append(path)
        return {name: tuple(paths) for name, paths in found.items()}

    @cached_property
    def _by_folder(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, list[str]] = {}
        for path in self.listed:
            found.setdefault(path.rpartition("/")[0], []).append(path)
        return {folder: tuple(paths) for folder, paths in found.items()}


def resolver_of(path: str) -> LanguageRules | None:
    """The resolver of a file's language; None where there is none."""
    language = language_of(path)
    return RESOLVERS.get(language.name) if language else None
