"""Walks a project for its documents, and reads again only the folders that changed since it last found none in them.

Whether a project has any document is asked with every answer in DOCUMENT_RESEARCH; where it has none, only a walk over all
of it can tell. A folder's mtime changes with every name that comes or goes in it, so the next walk only asks for that.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from code_intel_server.common.own_folder import FOLDER, is_written

MAX_FILES_SEEN = 100_000
RACY_MTIME_NS = 2_000_000_000
"""A folder that changed this shortly before it was read may change again without its mtime telling."""

_PRUNED = {
    ".git",
    "node_modules",
    "__pycache__",
    ".venv",
    "venv",
    ".tox",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
}


class _Barren(NamedTuple):
    """A folder in which nothing matched: its mtime in ns, how many names it has, and the folders to go on with."""

    mtime_ns: int
    names: int
    folders: tuple[str, ...]


class DocumentWalk:
    """Finds files below one project folder; what it remembers is good for one way of matching."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._barren: dict[str, _Barren] = {}

    def matching(self, starts: Sequence[str], wanted: Callable[[str], bool]) -> Iterator[str]:
        """Project-relative paths of the wanted files, each once, those below the first of `starts` first.

        Links are not followed, well-known machine folders, our own and what the
        server of a project within this one writes are left out, after `MAX_FILES_SEEN` names it ends.
        """
        given: set[str] = set()
        seen = 0
        pending = ["" if start == "." else f"{start}/" for start in reversed(starts)]
        while pending:
            folder = pending.pop()
            before = _mtime_ns(self._root / folder)
            known = self._barren.get(folder)
            if known is None or known.mtime_ns != before:
                names, files, folders = _read(self._root / folder, folder)
                found = [path for path in files[: MAX_FILES_SEEN - seen] if wanted(path)]
                known = _Barren(before, names, tuple(reversed(folders)))
                # A folder that could not be read, or has nothing in it, costs nothing to try again.
                if names and not found and time.time_ns() - before > RACY_MTIME_NS:
                    self._barren[folder] = known
                fresh = [path for path in found if path not in given]
                given.update(fresh)
                yield from fresh
            seen += known.names
            if seen >= MAX_FILES_SEEN:
                return
            pending += known.folders


def _read(place: Path, folder: str) -> tuple[int, list[str], list[str]]:
    """How many names are in a folder, and its files and folders, project-relative (folders end in `/`) and sorted."""
    try:
        with os.scandir(place) as entries:
            children = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return 0, [], []
    files, folders = [], []
    for child in children:
        path = folder + child.name
        if child.is_dir(follow_symlinks=False):
            if child.name not in _PRUNED and path != FOLDER and not is_written(path):
                folders.append(f"{path}/")
        elif child.is_file(follow_symlinks=False) and not is_written(path):
            files.append(path)
    return len(children), files, folders


def _mtime_ns(folder: Path) -> int:
    """When a name last came to the folder or went; -1 where that cannot be known."""
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return -1
