"""The first index of another worktree: begun as a copy of the index of one that is there already.

Worktrees of a repository differ in few files. The copy is whole before it takes its name, believes nothing about the
files of its own worktree (its first sync holds the content of each against it), and keeps chunks, words and vectors of
all that are the same. It is a file of its own: what happens to either worktree later is nothing to the other.
"""

import contextlib
import sqlite3
import uuid
from collections.abc import Iterable
from pathlib import Path

from code_intel_server.index.storage.database import BESIDE, Database
from code_intel_server.workspace.paths import aimed_elsewhere

_TRIED = 3
"""How many of the worktrees are tried, the one whose index was written last first."""


def begin_with_sibling(database: Path, siblings: Iterable[Path]) -> bool:
    """Make a missing `database` a copy of the newest whole one among `siblings`; False where there is none to be had."""
    if database.exists() or aimed_elsewhere(database):
        return False
    stamps = {path: stamp for path in siblings if path != database and (stamp := _written_at(path))}
    part = database.with_name(f"{database.name}.part")
    for sibling in sorted(stamps, key=lambda path: -stamps[path])[:_TRIED]:
        try:
            database.parent.mkdir(parents=True, exist_ok=True)
            _remove(part)
            _copy(sibling, part)
            _remove(database)  # a log that outlived its file would be read into this one
            part.replace(database)
        except (sqlite3.Error, OSError):
            with contextlib.suppress(OSError):
                _remove(part)
        else:
            return True
    return False


def _written_at(path: Path) -> int:
    with contextlib.suppress(OSError):
        if not aimed_elsewhere(path):
            return path.stat().st_mtime_ns
    return 0


def _remove(path: Path) -> None:
    for suffix in ("", *BESIDE):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _copy(sibling: Path, part: Path) -> None:
    """Copy a consistent state, also of one that is being written. Raises sqlite3.Error where it is not to be believed or not whole."""
    source = Database(sibling, writable=False)
    try:
        with source.reading() as connection, contextlib.closing(sqlite3.connect(part)) as copy:
            connection.backup(copy)
            if not copy.execute("SELECT 1 FROM meta WHERE key = 'synced_at'").fetchone():
                raise sqlite3.DataError("its first sync has not ended")
            known = {"store": uuid.uuid4().hex, "folder": str(part.parent.stat().st_ino)}
            with copy:
                copy.execute("DELETE FROM meta WHERE key IN ('synced_at', 'pending', 'chroma')")
                copy.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", known.items())
                copy.execute("DELETE FROM outbox")
                copy.execute("UPDATE files SET mtime_ns = -1, indexed_ns = 0")  # no stamp of another file counts
    finally:
        source.close()
