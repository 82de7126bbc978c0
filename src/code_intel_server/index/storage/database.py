"""The SQLite file of the index: opened, replaced where it is damaged, read by many threads and written by one (SPEC 9)."""

import contextlib
import os
import sqlite3
import tempfile
import threading
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from code_intel_server.common.owned_connection import OwnedConnection, bound_log, lengthen_log, shorten_log, transaction
from code_intel_server.workspace.files import make_folder
from code_intel_server.workspace.paths import aimed_elsewhere

BUSY_SECONDS = 10.0
BESIDE = ("-wal", "-shm", "-journal")
"""What SQLite keeps besides the file, by the endings of their names."""

_VARIABLES = 500
OTHER_VERSION = "it was written by another version"


class Database:
    """The file and its connections; safe to use from many threads. `writable` is False where another process owns it."""

    NAME = "The index"
    VERSION = ""
    SCHEMA = ""
    """Its tables, a statement each, `;` at the end of a line between them; `meta` is one of them."""

    def __init__(self, path: Path, *, writable: bool) -> None:
        """Open `path`, making or replacing it where `writable`; `notes` say what had to be set aside.

        Raises sqlite3.Error or OSError where a reader finds nothing to read.
        """
        self.notes: list[str] = []
        self.writable = writable
        self.path = path
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._write_lock = threading.RLock()
        self._idle: list[sqlite3.Connection] = []
        self._idle_of: object = None
        self._idle_lock = threading.Lock()
        """Also held while the file is replaced: nobody opens what is half there. Taken after the one above."""
        self._closed = False
        self.epoch = 0
        """Grows where the file was replaced: what was read before is of another one."""
        if writable:
            self._open_for_writing()
            self._written = identity(self.path)
        else:
            with self.reading() as connection:
                if reason := self._why_not(connection):
                    raise sqlite3.DatabaseError(reason)

    # Opening

    def _open_for_writing(self) -> None:
        try:
            self._check_place()
            make_folder(self.path.parent)
            self._writer = self._prepare()
        except (
            sqlite3.OperationalError,
            PermissionError,
            NotADirectoryError,
            FileExistsError,
            FileNotFoundError,
        ) as error:
            if not _cannot_write(error):
                raise
            self._temporary = tempfile.TemporaryDirectory(prefix="code-intel-index-")
            self.notes.append(
                f"{self.NAME} is kept in a temporary folder, because {self.path.parent} cannot be written."
            )
            self.path = Path(self._temporary.name) / self.path.name
            self._writer = self._prepare()

    def _prepare(self) -> sqlite3.Connection:
        try:
            connection = self._connect()
            if not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
                return self._create(connection)
            reason = self._why_not(connection)
            if not reason:
                return connection
        except sqlite3.OperationalError:
            raise
        except (sqlite3.DatabaseError, UnicodeDecodeError):
            reason = "it is damaged"
        with contextlib.suppress(UnboundLocalError, sqlite3.Error):
            connection.close()
        self.set_aside(reason)
        return self._create(self._connect())

    def _why_not(self, connection: sqlite3.Connection) -> str:
        """Why the file is not to be believed, '' where it is: what came with a clone may say anything of the files."""
        known = _meta(connection)
        if "schema" not in known:
            return "it is none of ours"
        if known["schema"] != self.VERSION:
            return OTHER_VERSION
        return "" if known.get("folder") == self._folder() else "it was made in another folder"

    def _folder(self) -> str:
        """What tells the folder of the file from a copy of it: not its name, under which it may be moved."""
        return str(self.path.parent.stat().st_ino)

    def _create(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        known = {"store": uuid.uuid4().hex, "schema": self.VERSION, "folder": self._folder()}
        with transaction(connection):
            for statement in self.SCHEMA.split(";\n"):
                connection.execute(statement)
            connection.executemany("INSERT INTO meta VALUES (?, ?)", known.items())
        return connection

    def _check_place(self) -> None:
        """A link that a repository put there leads to a file that is not ours: neither written, nor read, nor moved."""
        files = (self.path, *(self.path.with_name(self.path.name + suffix) for suffix in BESIDE))
        if any(map(aimed_elsewhere, files)):
            raise sqlite3.OperationalError("unable to open database file: a link leads out of its folder")

    def set_aside(self, reason: str) -> None:
        """Move the file out of the way (the last such file is kept) so that it can be built anew; a `reason` is noted."""
        self._check_place()
        kept = self.path.with_name(self.path.name + ".damaged")
        for suffix in BESIDE:
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
        with contextlib.suppress(FileNotFoundError):
            self.path.replace(kept)
        if reason == OTHER_VERSION:
            kept.unlink(missing_ok=True)  # nobody looks at it: it is whole, and of no use
            self.notes.append(f"{self.NAME} was built anew, because {reason}.")
        elif reason:
            self.notes.append(f"{self.NAME} was set aside as {kept.name} and built anew, because {reason}.")

    @property
    def temporary(self) -> bool:
        """Whether it lives in a temporary folder, because its own cannot be written."""
        return self._temporary is not None

    def rebuild(self, reason: str = "", *, seen_at: int | None = None) -> bool:
        """Replace the file by an empty one while running; without a reason it was wanted, and nobody needs to be informed.

        False where nothing was done: the store is closed, and the file another process's by now, or the one in which
        something was `seen_at` that epoch was replaced already.
        """
        with self._write_lock:
            if self._closed or seen_at not in {None, self.epoch}:
                return False
            with self._idle_lock:
                self._drop_idle()
                self._writer.close()
                self.set_aside(reason)
                self._writer = self._create(self._connect())
                self._written = identity(self.path)
                self.epoch += 1
            return True

    def reopen(self) -> None:
        """Take up the file that another process has put in place of ours."""
        with self._write_lock, self._idle_lock:
            self._drop_idle()
            self._writer.close()
            self._writer = self._prepare()
            self._written = identity(self.path)
            self.epoch += 1

    def _connect(self) -> sqlite3.Connection:
        self._check_place()
        connection = sqlite3.connect(
            self.uri,
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=64,
            factory=OwnedConnection,
        )
        connection.execute("PRAGMA mmap_size = 268435456")
        connection.execute("PRAGMA temp_store = MEMORY")
        if self.writable:
            connection.execute("PRAGMA journal_mode = WAL")
            # The index is disposable and WAL keeps it consistent; a power loss may only cost the last batches.
            connection.execute("PRAGMA synchronous = NORMAL")
            # A batch of a large sync fits into memory.
            connection.execute("PRAGMA cache_size = -16384")
            bound_log(connection)
            connection.execute("PRAGMA secure_delete = OFF")
        return connection

    @property
    def uri(self) -> str:
        """How SQLite is told which file to open, and for what."""
        return f"{self.path.absolute().as_uri()}?mode=rwc" if self.writable else uri_for_reading(self.path)

    def close(self) -> None:
        """Close every connection, and let nothing be written any more; what is still being read is read to its end."""
        with self._write_lock:
            with self._idle_lock:
                self._closed = True
                self._drop_idle()
            if self.writable:
                self._writer.close()
            if self._temporary is not None:
                self._temporary.cleanup()

    def _drop_idle(self) -> None:
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    # Transactions

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection for reading, for one thread at a time."""
        with self._idle_lock:
            file = self.file_version()
            if file != self._idle_of:
                self._drop_idle()
                self._idle_of = file
            connection = self._idle.pop() if self._idle else self._connect()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        with self._idle_lock:
            if not self._closed and file == self._idle_of:
                self._idle.append(connection)
                return
        connection.close()

    @property
    def removed(self) -> bool:
        """Whether somebody took our file away or put another one in its place: what is written to it is lost."""
        with self._idle_lock:  # not while we replace it ourselves
            return self.writable and identity(self.path) != self._written

    def file_version(self) -> object:
        """What tells the file that is there from the one before it, which a connection would go on reading for ever."""
        if self.writable:
            return self.epoch
        return identity(self.path)  # its owner replaces it without telling us

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """The writing connection within one transaction, rolled back if the body raises."""
        with self._write_lock:
            self._check_open()
            with transaction(self._writer):
                yield self._writer

    @contextlib.contextmanager
    def in_bulk(self) -> Iterator[None]:
        """Meanwhile what is written need not be moved into the file after each batch; for a large sync."""
        with self._write_lock:
            self._check_open()
            writer = self._writer
            lengthen_log(writer)
        try:
            yield
        finally:
            with self._write_lock:
                shorten_log(writer)

    def _check_open(self) -> None:
        """Raise for a store that was closed: SQLite's own error of a closed connection would be one of damage."""
        if self._closed:
            raise sqlite3.OperationalError("it was closed meanwhile")


class IndexFile(Database):
    """The database of one checkout, for who looks at it alone; `store` knows what is in it."""

    VERSION = "3"


def fetched(
    connection: sqlite3.Connection, query: str, values: Sequence[object], *before: object
) -> Iterator[tuple[Any, ...]]:
    """The rows of a query for `values`, which take the place of its `{}`: as many at once as one statement may ask for."""
    for at in range(0, len(values), _VARIABLES):
        part = values[at : at + _VARIABLES]
        yield from connection.execute(query.format(",".join("?" * len(part))), (*before, *part))


def uri_for_reading(path: Path) -> str:
    """How SQLite is told to read a file; without a log where nobody can be writing one: it would otherwise want to make its files there."""
    alone = not path.with_name(path.name + "-wal").exists() and not os.access(path.parent, os.W_OK)
    return f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if alone else ''}"


def _meta(connection: sqlite3.Connection) -> dict[str, str]:
    """What the file says of itself; nothing where it is none of ours."""
    try:
        rows = connection.execute("SELECT key, value FROM meta WHERE key IN ('schema', 'folder')").fetchall()
    except sqlite3.OperationalError as error:
        if "no such" in str(error):
            return {}
        raise
    return {str(key): str(value) for key, value in rows}


def identity(path: Path) -> tuple[int, int] | None:
    """What tells a file from any other; None where there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _cannot_write(error: Exception) -> bool:
    if isinstance(error, OSError):
        return True
    text = str(error)
    return "readonly" in text or "unable to open" in text or "disk I/O" in text
