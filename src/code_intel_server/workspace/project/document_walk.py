"""Walks a project for its documents."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from code_intel_server.common.own_folder import FOLDER, is_written

MAX_FILES_SEEN = 100_000

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


def matching_documents(root: Path, starts: Sequence[str], wanted: Callable[[str], bool]) -> Iterator[str]:
    """Project-relative paths of the wanted files, each once, those below the first of `starts` first.

    Links are not followed, well-known machine folders, our own and what the server of a project within this one writes are
    left out, after `MAX_FILES_SEEN` names it ends.
    """
    given: set[str] = set()
    seen = 0
    pending = ["" if start == "." else f"{start}/" for start in reversed(starts)]
    while pending and seen < MAX_FILES_SEEN:
        folder = pending.pop()
        names, files, folders = _read(root / folder, folder)
        fresh = [path for path in files[: MAX_FILES_SEEN - seen] if path not in given and wanted(path)]
        given.update(fresh)
        yield from fresh
        seen += names
        pending += reversed(folders)


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
