"""What files hold, kept once for all checkouts of a repository: chunks, names, words and vectors by the content's hash.

A checkout's own database (`store`) says which content each of its files has. Content is only ever added, by any number of
processes at once, each file's in one transaction; what is there already is left as it is. What no checkout refers to any
more is removed at times, while nobody is indexing (`users`). The text of chunks is not in it: that comes from the checkout.
"""

import contextlib
import fcntl
import hashlib
import os
import sqlite3
import time
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from code_intel_server.common.owned_connection import transaction
from code_intel_server.index.chunks.cutting import Cut
from code_intel_server.index.storage import postings
from code_intel_server.index.storage.database import BESIDE, Database, identity
from code_intel_server.index.values import Chunk
from code_intel_server.workspace.files import make_folder

VERSION = "1"
CONTENTS = f"contents-{VERSION}.sqlite3"
"""The file's name; servers of another version have a file of their own."""

CLEAN_UP_SECONDS = 86_400.0
FORGOTTEN_SECONDS = 30 * 86_400.0
"""A file of another version that nobody has written for so long is removed."""

VARIABLES = 500
_LONGEST = (1 << 16) - 1


class Content(NamedTuple):
    """A content that is there: its number and those of its chunks, `first` to `last`."""

    id: int
    first: int
    last: int


class FileWrite(NamedTuple):
    """A file as it was cut, the key of its content, and the vectors of its chunks (None: known already, or no embedder).

    `anew` says to put it in place of what is known under the key.
    """

    cut: Cut
    vectors: Sequence[bytes | None]
    key: bytes
    anew: bool = False


class ContentStore(Database):
    """The shared file. Raises sqlite3.Error or OSError where it cannot be written, or a reader finds nothing."""

    NAME = "What is known of the repository's files"
    VERSION = VERSION
    SCHEMA = (
        """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE checkouts (path BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE contents (
    id INTEGER PRIMARY KEY AUTOINCREMENT, key BLOB NOT NULL UNIQUE, first INTEGER NOT NULL, last INTEGER NOT NULL,
    lengths BLOB NOT NULL, passages BLOB NOT NULL
);
CREATE TABLE chunks (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, content INTEGER NOT NULL, key TEXT NOT NULL, start_line INTEGER NOT NULL,
    end_line INTEGER NOT NULL, at INTEGER NOT NULL, size INTEGER NOT NULL, kind TEXT NOT NULL, symbol TEXT NOT NULL,
    scope TEXT NOT NULL, header TEXT NOT NULL, names TEXT NOT NULL, passage INTEGER NOT NULL
);
CREATE INDEX chunks_key ON chunks (key);
CREATE TABLE symbols (
    name TEXT NOT NULL COLLATE NOCASE, seq INTEGER NOT NULL, place INTEGER NOT NULL, PRIMARY KEY (name, seq, place)
) WITHOUT ROWID;
CREATE TABLE vectors (id INTEGER PRIMARY KEY, passage INTEGER NOT NULL, model INTEGER NOT NULL, vector BLOB NOT NULL);
CREATE UNIQUE INDEX vectors_passage ON vectors (passage, model);
"""
        + postings.SCHEMA
    )

    def _open_for_writing(self) -> None:
        make_folder(self.path.parent, 0o700)
        with self._locked("open", fcntl.LOCK_EX):
            self._writer = self._prepare()

    def _check_place(self) -> None:
        super()._check_place()
        check_place(self.path)

    def replace(self, reason: str) -> None:
        """Have an empty file in place of one that is damaged; or the one that another process has put there already."""
        with self._locked("open", fcntl.LOCK_EX):
            if identity(self.path) == self._written:
                self.rebuild(reason)
            else:
                self.reopen()

    def damaged(self) -> bool:
        """Whether SQLite finds fault with the file itself; reads all of it."""
        try:
            with self.reading() as connection:
                return bool(connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",))
        except sqlite3.OperationalError:
            return False
        except sqlite3.DatabaseError:
            return True

    @property
    def uid(self) -> str:
        """What tells this file from one that takes its place later."""
        with self.reading() as connection:
            return uid_of(connection, "main")

    # Contents

    @property
    def empty(self) -> bool:
        """Whether nothing is there yet."""
        with self.reading() as connection:
            return connection.execute("SELECT 1 FROM contents LIMIT 1").fetchone() is None

    def known(self, keys: Sequence[bytes]) -> dict[bytes, Content]:
        """Those of the contents that are there."""
        found: dict[bytes, Content] = {}
        with self.reading() as connection:
            for part in in_parts(keys):
                query = f"SELECT key, id, first, last FROM contents WHERE key IN ({','.join('?' * len(part))})"  # noqa: S608
                found.update((row[0], Content(*row[1:])) for row in connection.execute(query, part))
        return found

    def put(self, files: Iterable[FileWrite], model: str) -> dict[bytes, Content]:
        """Add the contents of files that are not there yet, in one transaction; answers which content has which key.

        Whoever refers to what was replaced keeps it.
        """
        with self.writing() as connection:
            adding = _Adding(connection, model_number(model))
            for file in files:
                adding.take(file)
            adding.write()
        return adding.found

    def passages_with_vectors(self, passages: Sequence[int], model: str) -> set[int]:
        """Those of the passages that have a vector of the model."""
        found: set[int] = set()
        with self.reading() as connection:
            for part in in_parts(passages):
                query = f"SELECT passage FROM vectors WHERE model = ? AND passage IN ({','.join('?' * len(part))})"  # noqa: S608
                found.update(row[0] for row in connection.execute(query, (model_number(model), *part)))
        return found

    def put_vectors(self, vectors: Mapping[int, bytes], model: str) -> None:
        """Add vectors by passage."""
        with self.writing() as connection:
            rows = [(passage, model_number(model), vector) for passage, vector in vectors.items()]
            connection.executemany(_PUT_VECTOR, rows)

    # Who uses it

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Meanwhile nothing is removed: for who refers to contents that no checkout may refer to yet."""
        with self._locked("users", fcntl.LOCK_SH):
            yield

    @contextlib.contextmanager
    def _locked(self, name: str, how: int) -> Iterator[None]:
        with _lock_file(self.path.with_suffix(f".{name}")) as file:
            fcntl.flock(file, how)
            yield

    def register(self, checkout: Path) -> None:
        """Note the database of a checkout that refers to contents here. Waits for nobody where that is known."""
        named = (os.fsencode(checkout.absolute()),)
        with self.reading() as connection:
            if connection.execute("SELECT 1 FROM checkouts WHERE path = ?", named).fetchone():
                return
        with self.writing() as connection:
            connection.execute("INSERT OR IGNORE INTO checkouts VALUES (?)", named)
            connection.execute("INSERT OR IGNORE INTO meta VALUES ('cleaned', ?)", (str(time.time()),))

    def clean_up_if_due(self) -> None:
        """Remove what no checkout refers to, once a day or where a checkout is gone; not while anybody is indexing."""
        with self.reading() as connection:
            checkouts = [Path(os.fsdecode(row[0])) for row in connection.execute("SELECT path FROM checkouts")]
            cleaned = connection.execute("SELECT value FROM meta WHERE key = 'cleaned'").fetchone()
        due = not cleaned or not 0 <= time.time() - float(cleaned[0]) < CLEAN_UP_SECONDS
        if due or not all(one.exists() for one in checkouts):
            with contextlib.suppress(BlockingIOError), self._locked("users", fcntl.LOCK_EX | fcntl.LOCK_NB):
                self._clean_up()

    def _clean_up(self) -> None:
        uid, referred, models, gone = self.uid, set[int](), set[int](), list[tuple[bytes]]()
        with self.reading() as connection:
            rows = connection.execute("SELECT path FROM checkouts").fetchall()
        for checkout in (Path(os.fsdecode(row[0])) for row in rows):
            if not checkout.exists():
                gone.append((os.fsencode(checkout),))
                continue
            try:
                contents, model = _referred(checkout, uid)
            except sqlite3.Error:
                return  # it may refer to anything
            referred |= contents
            models.add(model)
        with self.writing() as connection:
            connection.executemany("DELETE FROM checkouts WHERE path = ?", gone)
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('cleaned', ?)", (str(time.time()),))
            _remove_others(connection, referred, models)
        self._remove_other_versions()

    def _remove_other_versions(self) -> None:
        for file in self.path.parent.glob("contents-*.sqlite3*"):
            with contextlib.suppress(OSError):
                old = time.time() - file.lstat().st_mtime > FORGOTTEN_SECONDS
                if old and not file.name.startswith(self.path.name):
                    file.unlink()


class _Adding:
    """Contents that are added in one transaction, written table by table at its end: one statement for thousands of rows."""

    def __init__(self, connection: sqlite3.Connection, model: int) -> None:
        self._connection = connection
        self._model = model
        self._seq = _last(connection, "chunks")
        self._id = _last(connection, "contents")
        self.found: dict[bytes, Content] = {}
        self._contents: list[tuple[object, ...]] = []
        self._chunks: list[tuple[object, ...]] = []
        self._words: list[tuple[int, str, str]] = []
        self._symbols: list[tuple[str, int, int]] = []
        self._vectors: list[tuple[int, int, bytes]] = []

    def take(self, file: FileWrite) -> None:
        """Take in the content of a file; nothing is written yet."""
        cut, key = file.cut, file.key
        if not cut.chunks or key in self.found or self._is_there(file):
            return
        self._id += 1
        passages = [passage_of(digest) for digest in cut.digests]
        content = Content(self._id, self._seq + 1, self._seq + len(cut.chunks))
        lengths = [
            terms.symbol.count(" ") + bool(terms.symbol) + terms.body.count(" ") + bool(terms.body)
            for terms in cut.terms
        ]
        packed = array("H", [min(length, _LONGEST) for length in lengths]).tobytes(), array("q", passages).tobytes()
        self._contents.append((content.id, key, content.first, content.last, *packed))
        for chunk, terms, passage, at in zip(cut.chunks, cut.terms, passages, _starts(cut.chunks), strict=True):
            self._seq += 1
            self._chunks.append(
                (
                    self._seq, content.id, chunk.key, chunk.start_line, chunk.end_line, at, len(chunk.text), chunk.kind,
                    chunk.symbol, chunk.scope, chunk.header, "\n".join(chunk.names), passage,
                )
            )  # fmt: skip
            self._words.append((self._seq, terms.symbol, terms.body))
            names = enumerate(chunk.names, start=1)
            self._symbols += [(name, self._seq, 0 if name == chunk.symbol else place) for place, name in names]
        vectors = zip(passages, file.vectors, strict=True)
        self._vectors += [(passage, self._model, vector) for passage, vector in vectors if vector is not None]
        self.found[key] = content

    def _is_there(self, file: FileWrite) -> bool:
        key = file.key
        if file.anew:
            self._connection.execute("UPDATE contents SET key = randomblob(32) WHERE key = ?", (key,))
            return False
        row = self._connection.execute("SELECT id, first, last FROM contents WHERE key = ?", (key,)).fetchone()
        if row:
            self.found[key] = Content(*row)
        return bool(row)

    def write(self) -> None:
        """Write what was taken in."""
        write = self._connection.executemany
        write("INSERT INTO contents VALUES (?, ?, ?, ?, ?, ?)", self._contents)
        write("INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", self._chunks)
        write("INSERT OR IGNORE INTO symbols VALUES (?, ?, ?)", self._symbols)
        write(_PUT_VECTOR, self._vectors)
        postings.add_postings(self._connection, self._words)


_PUT_VECTOR = "INSERT OR REPLACE INTO vectors (passage, model, vector) VALUES (?, ?, ?)"


def check_place(path: Path) -> None:
    """Raise sqlite3.OperationalError where a link is in the way: it leads to a file that is not ours."""
    if any(map(os.path.islink, (path.parent, *(path.with_name(path.name + suffix) for suffix in ("", *BESIDE))))):
        raise sqlite3.OperationalError("unable to open database file: a link leads out of its folder")


def key_of(digest: bytes, language: str, recipe: str) -> bytes:
    """What content is found by: what the file holds, what it is written in, and by which rules it is cut."""
    return hashlib.blake2b(digest + f"{language}\0{recipe}".encode(), digest_size=20).digest()


def passage_of(digest: bytes) -> int:
    """What is embedded of a chunk, as a number."""
    return int.from_bytes(digest[:8], "little", signed=True)


def model_number(model: str) -> int:
    """An embedding model, as a number."""
    return int.from_bytes(hashlib.blake2b(model.encode(), digest_size=6).digest())


def uid_of(connection: sqlite3.Connection, schema: str) -> str:
    """What tells a file from any other, in the database attached as `schema`."""
    row = connection.execute(f"SELECT value FROM {schema}.meta WHERE key = 'store'").fetchone()  # noqa: S608
    return str(row[0]) if row else ""


def in_parts(values: Sequence[object]) -> Iterator[Sequence[object]]:
    """As many at once as one statement may ask for."""
    return (values[at : at + VARIABLES] for at in range(0, len(values), VARIABLES))


def _starts(chunks: Sequence[Chunk]) -> Iterator[int]:
    """Where each chunk begins in its first line, in characters: only a line too long for one chunk is in several."""
    line, at = 0, 0
    for chunk in chunks:
        at = at if chunk.start_line == line else 0
        yield at
        line, at = chunk.end_line, at + len(chunk.text)


def _last(connection: sqlite3.Connection, table: str) -> int:
    """The highest number a row ever had; a new one is above it, so that no number ever means two things."""
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
    return int(row[0]) if row else 0


@contextlib.contextmanager
def _lock_file(path: Path) -> Iterator[IO[bytes]]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(descriptor, "rb", buffering=0) as file:  # noqa: PTH123 - a descriptor, opened with our own flags
        yield file


def _referred(checkout: Path, uid: str) -> tuple[set[int], int]:
    """The contents that a checkout's database refers to, and the model whose vectors it wants."""
    uri = f"{checkout.as_uri()}?mode=ro"
    with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=1.0)) as connection, transaction(connection):
        known = dict(connection.execute("SELECT key, value FROM meta WHERE key IN ('contents', 'model')"))
        if known.get("contents") != uid:
            return set(), 0
        rows = connection.execute("SELECT DISTINCT content FROM files WHERE content IS NOT NULL")
        return {row[0] for row in rows}, model_number(known.get("model", ""))


def _remove_others(connection: sqlite3.Connection, referred: set[int], models: set[int]) -> None:
    """Remove the contents that are not referred to, with everything that is only theirs."""
    rows = connection.execute("SELECT id, first, last FROM contents").fetchall()
    gone = [row for row in rows if row[0] not in referred]
    connection.executemany("DELETE FROM chunks WHERE seq BETWEEN ? AND ?", [row[1:] for row in gone])
    connection.executemany("DELETE FROM contents WHERE id = ?", [row[:1] for row in gone])
    wanted = ",".join(map(str, models)) or "0"
    connection.execute(f"DELETE FROM vectors WHERE model NOT IN ({wanted})")  # noqa: S608 - numbers
    if not gone:
        return
    connection.execute("DELETE FROM symbols WHERE seq NOT IN (SELECT seq FROM chunks)")
    connection.execute("DELETE FROM vectors WHERE passage NOT IN (SELECT passage FROM chunks)")
    _thin_out(connection)


def _thin_out(connection: sqlite3.Connection) -> None:
    import numpy as np

    alive = np.fromiter((row[0] for row in connection.execute("SELECT seq FROM chunks ORDER BY seq")), dtype=np.int64)
    if not len(alive):
        return postings.thin_out(connection, lambda units: np.zeros(len(units), dtype=bool))
    # By searching: `isin` would look through all that is alive for each of many thousand words.
    return postings.thin_out(
        connection, lambda units: alive[np.searchsorted(alive, units).clip(max=len(alive) - 1)] == units
    )
