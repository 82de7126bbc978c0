"""The symbols of every file in SQLite: disposable, shared by processes, never trusted further than the files themselves.

All checkouts of a repository have one store: what a content defines is kept once, and each of them says which content its
files have. What no checkout refers to any more is removed once a day (`clean_up`). Where there can be no file (`store_file`), a cache in memory does the same work for the life of the process.
"""

import contextlib
import os
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from code_intel_server.codebase.files.project import ProjectScope
from code_intel_server.codebase.symbols.ctags import Tag
from code_intel_server.codebase.symbols.store_file import connect, identity, make_tables, prepared, remove_store
from code_intel_server.common.owned_connection import OwnedConnection, lengthen_log, shorten_log, transaction

# Made once the first full refresh is in: that halves its time, and a store without them is small enough to scan.
_INDEXES = (
    # Exact names are found by it too: few differ in nothing but case.
    "CREATE INDEX IF NOT EXISTS symbols_any_case ON symbols (name COLLATE NOCASE)",
    "CREATE INDEX IF NOT EXISTS symbols_content ON symbols (content)",
)
_ANY_CASE = "symbols.name COLLATE NOCASE"
_LAST_CHARACTER = "\U0010ffff"
_FIELDS = "path, engine, ctime_ns, size, symbols.name, kind, scope, signature, start_line, end_line, language"
_SELECT = f"SELECT {_FIELDS} FROM "
_JOINED = "symbols JOIN here USING (content)"
_NAMED = (
    f"{_JOINED} WHERE {_ANY_CASE} = ?1 AND symbols.name = ?1 UNION ALL {_SELECT} {_JOINED} "
    f"WHERE {_ANY_CASE} >= ?2 AND {_ANY_CASE} < ?3 AND symbols.name >= ?2 AND symbols.name < ?3 AND symbols.name LIKE '%:'"
)
_FILES_NAMED = f"SELECT DISTINCT path FROM {_JOINED} WHERE {_ANY_CASE} = ?1 AND symbols.name = ?1"


_ADOPT = "INSERT OR REPLACE INTO files SELECT ?1, ?2, ?3, ?4, id FROM contents WHERE key = ?5"

CLEAN_UP_SECONDS = 86_400.0
_PART = 500
"""So many contents are removed at once, and so many files looked up."""


class Stamp(NamedTuple):
    """How a file looked when it was tagged: when it was last written or touched (its change time), and its size."""

    ctime_ns: int
    size: int


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file and what it defines, as it goes into the store; without a `key` nobody else may believe that of its content."""

    path: str
    stamp: Stamp
    engine: str
    tags: Sequence[Tag]
    key: bytes | None = None


@dataclass(frozen=True, slots=True)
class StoredSymbol:
    """A symbol as it comes out of the store."""

    path: str
    engine: str
    stamp: Stamp
    tag: Tag


class SymbolStore:
    """One checkout's part of a store. Opens on first use; every thread reads through a connection of its own."""

    def __init__(self, project: ProjectScope, shared: Callable[[], Path | None] = lambda: None) -> None:
        """`shared` gives the folder that all checkouts of the repository have, None where there is none."""
        self._project = project
        self._shared = shared
        self._checkout = 0
        self._local = threading.local()
        self._lock = threading.RLock()
        self._opened = threading.Event()
        self._path: Path | None = None
        self._memory: sqlite3.Connection | None = None
        self._generation = 0

    @property
    def persistent(self) -> bool:
        """Whether the store outlives this process."""
        self._open()
        return self._path is not None

    def stamps(self) -> dict[str, Stamp]:
        """How every file in the store looked, by path."""
        rows = self._read("SELECT path, ctime_ns, size FROM here")
        return {os.fsdecode(path): Stamp(ctime_ns, size) for path, ctime_ns, size in rows}

    def stamps_of(self, paths: Iterable[str]) -> dict[str, Stamp]:
        """How the given files looked, as far as they are in the store."""
        wanted, found = [os.fsencode(path) for path in paths], dict[str, Stamp]()
        for at in range(0, len(wanted), _PART):
            part = wanted[at : at + _PART]
            query = f"SELECT path, ctime_ns, size FROM here WHERE path IN ({','.join('?' * len(part))})"
            found.update((os.fsdecode(path), Stamp(*stamp)) for path, *stamp in self._read(query, part))
        return found

    @property
    def empty(self) -> bool:
        """Whether nothing is known yet, of no checkout."""
        return not self._read("SELECT 1 FROM contents LIMIT 1")

    def adopt(self, files: Mapping[str, tuple[Stamp, bytes]]) -> set[str]:
        """Note which files have a content that is known by its key, in one transaction; answers which these are."""
        adopted: set[str] = set()
        with self._write() as connection:
            for path, (stamp, key) in files.items():
                values = (self._checkout, os.fsencode(path), *stamp, key)
                if connection.execute(_ADOPT, values).rowcount:
                    adopted.add(path)
        return adopted

    def put(self, entries: Sequence[StoredFile]) -> None:
        """Replace what the store knows of these files, in one transaction."""
        with self._write() as connection:
            for entry in entries:
                place = (self._checkout, os.fsencode(entry.path))
                content = self._content(connection, entry)
                connection.execute("INSERT OR REPLACE INTO files VALUES (?,?,?,?,?)", (*place, *entry.stamp, content))

    def _content(self, connection: sqlite3.Connection, entry: StoredFile) -> int:
        """The number of what a file holds, its symbols added where they are not there yet."""
        known = connection.execute("SELECT id FROM contents WHERE key = ?", (entry.key,)).fetchone()
        if known is None:
            known = (connection.execute("INSERT INTO contents VALUES (NULL,?,?)", (entry.key, entry.engine)).lastrowid,)
            rows = ((*known, *tag) for tag in entry.tags)
            connection.executemany("INSERT INTO symbols VALUES (NULL,?,?,?,?,?,?,?,?)", rows)
        return int(known[0])

    def clean_up(self) -> None:
        """Remove what no checkout that is still there refers to; once a day, in parts, so that nobody waits for long."""
        if not self._is_due():
            return
        for ident, root, said in self._read("SELECT id, root, identity FROM checkouts"):
            with contextlib.suppress(OSError):
                if identity(Path(os.fsdecode(root))) == said:
                    continue
            with self._write() as connection:
                connection.execute("DELETE FROM files WHERE checkout = ?", (ident,))
                connection.execute("DELETE FROM checkouts WHERE id = ?", (ident,))
        gone = "SELECT id FROM contents WHERE id NOT IN (SELECT content FROM files) LIMIT ?"
        while True:
            with self._write() as connection:
                rows = connection.execute(gone, (_PART,)).fetchall()
                connection.executemany("DELETE FROM symbols WHERE content = ?", rows)
                connection.executemany("DELETE FROM contents WHERE id = ?", rows)
            if not rows:
                return

    def _is_due(self) -> bool:
        """Whether nobody has cleaned up today; then the caller does."""
        with self._write() as connection:
            last = connection.execute("SELECT value FROM meta WHERE name = 'cleaned'").fetchone()
            now = time.time()
            connection.execute("INSERT OR IGNORE INTO meta VALUES ('cleaned', ?)", (str(now),))
            if last is None or 0 <= now - float(last[0]) < CLEAN_UP_SECONDS:
                return False
            connection.execute("UPDATE meta SET value = ? WHERE name = 'cleaned'", (str(now),))
        return True

    @contextlib.contextmanager
    def in_bulk(self) -> Iterator[None]:
        """Meanwhile what this thread puts waits less for the disk; for a first refresh."""
        with self._connection() as connection:
            lengthen_log(connection)
        try:
            yield
        finally:
            with self._lock:
                shorten_log(connection)

    def index(self) -> None:
        """Make what exact lookups need to be fast; called after the first full refresh."""
        with self._write() as connection:
            for statement in _INDEXES:
                connection.execute(statement)

    def forget(self, paths: Iterable[str]) -> None:
        """Drop files and their symbols."""
        with self._write() as connection:
            rows = [(self._checkout, os.fsencode(path)) for path in paths]
            connection.executemany("DELETE FROM files WHERE checkout = ? AND path = ?", rows)

    def named(self, name: str) -> list[StoredSymbol]:
        """Symbols called exactly `name`, or by a selector whose first word it is (`name:to:`)."""
        return self._symbols(_NAMED, (name, f"{name}:", f"{name}:{_LAST_CHARACTER}"))

    def files_naming(self, name: str) -> frozenset[str]:
        """The files in which a symbol was called exactly `name` when they were tagged; none where the store cannot be read."""
        try:
            return frozenset(os.fsdecode(path) for (path,) in self._read(_FILES_NAMED, (name,)))
        except (OSError, sqlite3.Error):
            return frozenset()  # an order depends on it, and nothing else

    def engines(self) -> list[str]:
        """Who tagged the files that were tagged, by name."""
        return [engine for (engine,) in self._read("SELECT DISTINCT engine FROM here ORDER BY engine")]

    def tagged_by(self, engine: str) -> set[str]:
        """The files that this engine tagged."""
        return {os.fsdecode(path) for (path,) in self._read("SELECT path FROM here WHERE engine = ?", (engine,))}

    def prefixed(self, prefix: str, limit: int) -> list[StoredSymbol]:
        """Symbols whose name begins with `prefix`, in any (ASCII) case, at most `limit`."""
        return self._symbols(
            f"{_JOINED} WHERE {_ANY_CASE} >= ? AND {_ANY_CASE} < ? LIMIT ?", (prefix, prefix + _LAST_CHARACTER, limit)
        )

    def lettered(self, letters: str, limit: int) -> list[StoredSymbol]:
        """Symbols whose name holds `letters` in this order, in any (ASCII) case, at most `limit`."""
        like = f"%{'%'.join(map(_like, letters))}%"
        return self._symbols(f"{_JOINED} WHERE symbols.name LIKE ? ESCAPE '\\' LIMIT ?", (like, limit))

    def in_file(self, path: str) -> list[StoredSymbol]:
        """The symbols of one file in order of lines."""
        return self._symbols(f"{_JOINED} WHERE path = ? ORDER BY start_line, end_line DESC", (os.fsencode(path),))

    def close(self) -> None:
        """Close this thread's connection; those of other threads close with them."""
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._local.connection = None

    def _symbols(self, where: str, parameters: Sequence[object]) -> list[StoredSymbol]:
        rows = self._read(_SELECT + where, parameters)
        return [
            StoredSymbol(os.fsdecode(path), engine, Stamp(ctime_ns, size), Tag(*tag))
            for path, engine, ctime_ns, size, *tag in rows
        ]

    def _read(self, statement: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """The rows of a query; a damaged store is thrown away and answers as an empty one."""
        for attempt in (1, 2):
            generation = self._generation
            try:
                with self._connection() as connection:
                    return list(connection.execute(statement, parameters))
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError:
                if attempt == 2:
                    raise
                self._discard(generation)
        return []

    @contextlib.contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        """A transaction that commits at the end; writers of this process take turns, those of others wait."""
        with self._lock, self._connection() as connection, transaction(connection):
            yield connection

    @contextlib.contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        self._open()
        generation = self._generation
        if self._path is not None and not self._path.exists():  # somebody removed the cache: it can be made again
            self._discard(generation)
            self._open()
        if self._path is None:
            with self._lock:
                assert self._memory is not None  # set by _open where there is no path
                yield self._memory
            return
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None or getattr(self._local, "generation", None) != self._generation:
            connection = self._local.connection = connect(self._path)
            self._look_at_own(connection)
            self._local.generation = self._generation
        try:
            yield connection
        except sqlite3.OperationalError as problem:
            if "readonly" in str(problem):  # what the disk once refused to open for writing, SQLite opened for reading
                self.close()
            raise

    def _open(self) -> None:
        if self._opened.is_set():  # no reader waits for a writer, who has the lock
            return
        with self._lock:
            if self._opened.is_set():
                return
            if self._project.keeps:
                shared = self._shared()
                self._path = (shared and prepared(shared, 0o700)) or prepared(self._project.cache_dir)
            if self._path is not None:
                with contextlib.closing(connect(self._path)) as connection:
                    self._checkout = _checkout(connection, self._project.root)
            else:
                self._memory = sqlite3.connect(
                    ":memory:", isolation_level=None, check_same_thread=False, factory=OwnedConnection
                )
                make_tables(self._memory)
                self._look_at_own(self._memory)
            self._opened.set()

    def _look_at_own(self, connection: sqlite3.Connection) -> None:
        files = f"files JOIN contents ON contents.id = content WHERE checkout = {self._checkout}"
        connection.execute(f"CREATE TEMP VIEW here AS SELECT path, ctime_ns, size, content, engine FROM {files}")

    def _discard(self, generation: int) -> None:
        """Throw the store of that generation away, unless another thread has done so and made a new one."""
        with self._lock:
            if generation != self._generation:
                return
            self.close()
            if self._path is not None:
                remove_store(self._path)
            self._generation += 1
            self._opened.clear()


def _checkout(connection: sqlite3.Connection, root: Path) -> int:
    """The number of the checkout at `root`."""
    said, asked = identity(root), "SELECT id FROM checkouts WHERE identity = ?"
    known = connection.execute(asked, (said,)).fetchone()
    if known is None:
        connection.execute("INSERT OR IGNORE INTO checkouts VALUES (NULL,?,?)", (os.fsencode(root), said))
        known = connection.execute(asked, (said,)).fetchone()
    return int(known[0])


def _like(text: str) -> str:
    return re.sub(r"([\\%_])", r"\\\1", text)
