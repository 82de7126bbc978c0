"""What a session found that no commit held, and has taken away: the user's own files as they were before it (SPEC 6.1).

The session's first snapshot is the only copy of such a text, and its private store outlives no session for sure. So a
session that is given up stores it in the repository, where an archive ref keeps it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from code_intel_server.errors import Unavailable
from code_intel_server.workspace.files import read_regular
from code_intel_server.workspace.git.repository import Git
from code_intel_server.workspace.tree.tree import BIG_BYTES, TreeJudge

Held = tuple[str, str]
"""Git's mode, and the id of the raw content."""


@dataclass(frozen=True, slots=True)
class SavedFiles:
    """By path from the top: what is `stored` in the repository now, and what no snapshot has kept: too large, or a repository of its own."""

    stored: Mapping[str, Held]
    not_kept: tuple[str, ...] = ()


NO_SAVED_FILES = SavedFiles({})
_LOOKED_INTO = 50


def saved_files(tree: TreeJudge, prefix: str, start: str, head: str) -> SavedFiles:
    """What snapshot `start` of the project at `prefix` held beyond a checkout of commit `head`, and the files do not hold any more."""
    try:
        changes = tree.changes(start, tree.snapshot()) if start else ()
        paths = sorted({path for change in changes for path in (change.path, change.old_path) if path})
        own = tree.uncommitted(start, head, paths)
    except Unavailable as error:
        if error.key != "tool_errors.tree.snapshot_lost":
            raise
        return NO_SAVED_FILES
    stored = tree.store(start, own)
    not_kept = tuple(prefix + path for path in own if path not in stored)
    return SavedFiles({prefix + path: held for path, held in stored.items()}, not_kept)


def but_grown(git: Git, found: SavedFiles) -> SavedFiles:
    """Without the files that have their earlier content still and more behind it, as logs and notes do."""
    if len(found.stored) > _LOOKED_INTO:
        return found
    kept = {path: held for path, held in found.stored.items() if not _has_grown(git, path, held)}
    return SavedFiles(kept, found.not_kept)


def _has_grown(git: Git, path: str, held: Held) -> bool:
    try:
        present = read_regular(git.at.top / path, 2 * BIG_BYTES)
    except OSError:
        return False
    return held[0].startswith("100") and present.startswith(git.read_blob(held[1]))
