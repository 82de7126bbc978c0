"""The file that the symbol store lies in: made, found usable, or made anew.

WAL: readers go on while another process writes, and a killed writer leaves the last commit (measured in
`tests/codebase/test_symbol_cache.py`). There is none where the folder cannot be written or is a symlink, and one that
was made in another folder (a cache that came with a clone) or says that it has another version is made anew.
"""

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from code_intel_server.common.owned_connection import OwnedConnection, bound_log, transaction

SYMBOLS_SCHEMA = 13
"""Raised whenever what is stored changes, its sense included: each version has a file of its own, for servers of two may run next to each other."""

_BUSY_SECONDS = 10.0

_SCHEMA = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE checkouts (id INTEGER PRIMARY KEY AUTOINCREMENT, root BLOB NOT NULL, identity TEXT NOT NULL UNIQUE)",
    # Without a key it is the content of one file alone.
    "CREATE TABLE contents (id INTEGER PRIMARY KEY AUTOINCREMENT, key BLOB UNIQUE, engine TEXT NOT NULL)",
    # Paths are bytes: a file's name need not be text.
    """CREATE TABLE files (
        checkout INTEGER NOT NULL, path BLOB NOT NULL, ctime_ns INTEGER NOT NULL, size INTEGER NOT NULL,
        content INTEGER NOT NULL, PRIMARY KEY (checkout, path)
    ) WITHOUT ROWID""",
    "CREATE INDEX files_content ON files (content, checkout)",
    """CREATE TABLE symbols (
        id INTEGER PRIMARY KEY, content INTEGER NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL,
        scope TEXT NOT NULL, signature TEXT NOT NULL, start_line INTEGER NOT NULL, end_line INTEGER NOT NULL,
        language TEXT NOT NULL
    )""",
)


def prepared(folder: Path, mode: int = 0o777) -> Path | None:
    """The file in `folder`, made with `mode`, with a store in it; None where there can be none on disk."""
    path = folder / f"symbols-{SYMBOLS_SCHEMA}.sqlite3"
    if any(part.is_symlink() for part in (path, path.parent, path.parent.parent)):
        return None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode, exist_ok=True)
        with _one_at_a_time(path.with_suffix(".lock")):
            if not _usable(path):
                remove_store(path)
                _create(path)
    except (OSError, sqlite3.Error):
        return None
    return path


def make_tables(connection: sqlite3.Connection) -> None:
    """Make an empty store's tables."""
    for statement in _SCHEMA:
        connection.execute(statement)


def connect(path: Path) -> sqlite3.Connection:
    """A connection in which every statement is its own transaction unless one is begun. Raises sqlite3.Error."""
    connection = sqlite3.connect(
        path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, factory=OwnedConnection
    )
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA synchronous = NORMAL")
    bound_log(connection)
    connection.execute("PRAGMA cache_size = -8000")  # KiB
    return connection


def remove_store(path: Path) -> None:
    """Throw the store away, with what SQLite keeps next to it."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _usable(path: Path) -> bool:
    if not path.exists():
        return False
    try:
        with contextlib.closing(connect(path)) as connection:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            owner = connection.execute("SELECT value FROM meta WHERE name = 'folder'").fetchone()
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
    except sqlite3.OperationalError as problem:
        return "locked" in str(problem)
    except sqlite3.DatabaseError:
        return False
    return bool(version == SYMBOLS_SCHEMA and owner == (identity(path.parent),))


def _create(path: Path) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))  # SQLite's would be 0644
    with contextlib.closing(connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        with transaction(connection):
            make_tables(connection)
            connection.execute("INSERT INTO meta VALUES ('folder', ?)", (identity(path.parent),))
            connection.execute(f"PRAGMA user_version = {SYMBOLS_SCHEMA}")


@contextlib.contextmanager
def _one_at_a_time(path: Path) -> Iterator[None]:
    """Keep a process from taking another's half-made store for a damaged one."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def identity(folder: Path) -> str:
    """What tells a folder from a copy of it elsewhere: a cache that came with a clone is not believed."""
    status = folder.stat()
    return f"{os.fsencode(folder).hex()}|{status.st_dev}|{status.st_ino}"
