"""What files hold, kept once for all checkouts of a repository: chunks, names, words and vectors by the content's hash.

A checkout's own database (`store`) says which content each of its files has. Content is only ever added, by any number of
processes at once, each file's in one transaction; what is there already is left as it is. What no checkout refers to any
more is removed at times, while nobody is indexing (`users`). The text of chunks is not in it: that comes from the checkout.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import sqlite3
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from code_intel_server.common.owned_connection import transaction
from code_intel_server.index.chunks.cutting import Cut
from code_intel_server.index.retrieval.lexical import index_terms
from code_intel_server.index.storage import postings
from code_intel_server.index.storage.database import BESIDE, Database, fetched, identity
from code_intel_server.index.values import Chunk, path_tag
from code_intel_server.workspace.files import make_folder

if TYPE_CHECKING:
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray

VERSION = "2"
CONTENTS = f"contents-{VERSION}.sqlite3"
"""The file's name; servers of another version have a file of their own."""

CLEAN_UP_SECONDS = 86_400.0
FORGOTTEN_SECONDS = 30 * 86_400.0
"""A file of another version that nobody has written for so long is removed."""

PART = 2000
"""So many contents, paths or vectors are removed at once: others that write wait no longer than for these."""

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
CREATE TABLE paths (
    id INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL UNIQUE, tag TEXT NOT NULL, words INTEGER NOT NULL
);
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

    def _connect(self) -> sqlite3.Connection:
        if self.writable:
            with contextlib.suppress(OSError):  # SQLite will say it
                os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        return super()._connect()

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
        query = "SELECT key, id, first, last FROM contents WHERE key IN ({})"
        with self.reading() as connection:
            return {key: Content(*content) for key, *content in fetched(connection, query, keys)}

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

    def path_ids(self, paths: Sequence[str]) -> dict[str, int]:
        """The numbers of paths; those that have none yet are added, with the words they are found by."""
        found = self._known_paths(paths)
        if lacking := [path for path in paths if path not in found]:
            with self.writing() as connection:
                _add_paths(connection, lacking)
            found |= self._known_paths(lacking)
        return found

    def _known_paths(self, paths: Sequence[str]) -> dict[str, int]:
        with self.reading() as connection:
            return dict(fetched(connection, "SELECT path, id FROM paths WHERE path IN ({})", paths))

    def passages_with_vectors(self, passages: Sequence[int], model: str) -> set[int]:
        """Those of the passages that have a vector of the model."""
        query = "SELECT passage FROM vectors WHERE model = ? AND passage IN ({})"
        with self.reading() as connection:
            return {row[0] for row in fetched(connection, query, passages, model_number(model))}

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
            with contextlib.suppress(BlockingIOError):
                while self._clean_up_a_part():
                    pass
                self._thin_out()
                self._remove_other_versions()

    def _clean_up_a_part(self) -> bool:
        """Remove some of what nobody refers to; whether there was any. Who is indexing goes first: BlockingIOError."""
        with self._locked("users", fcntl.LOCK_EX | fcntl.LOCK_NB):
            uid, referred, gone = self.uid, _Referred(set(), set(), set()), list[tuple[bytes]]()
            with self.reading() as connection:
                rows = connection.execute("SELECT path FROM checkouts").fetchall()
            for checkout in (Path(os.fsdecode(row[0])) for row in rows):
                if not checkout.exists():
                    gone.append((os.fsencode(checkout),))
                    continue
                try:
                    referred.take(checkout, uid)
                except sqlite3.Error:
                    return False  # it may refer to anything
            with self.writing() as connection:
                connection.executemany("DELETE FROM checkouts WHERE path = ?", gone)
                removed = _remove_some(connection, referred)
                if not removed:
                    connection.execute("INSERT OR REPLACE INTO meta VALUES ('cleaned', ?)", (str(time.time()),))
            return removed

    def _thin_out(self) -> None:
        """Drop the words of what was removed, a batch at a time: until then they are found and belong to nobody."""
        with self.reading() as connection:
            if not connection.execute("SELECT 1 FROM meta WHERE key = 'thin'").fetchone():
                return
        for kind, units in ((postings.CHUNKS, "SELECT seq FROM chunks"), (postings.PATHS, "SELECT id FROM paths")):
            with self.reading() as connection:
                batches = postings.batches(connection, kind)
            for batch in batches:
                with self.writing() as connection:
                    postings.thin_out(connection, kind, batch, _alive(connection, units))
        with self.writing() as connection:
            connection.execute("DELETE FROM meta WHERE key = 'thin'")

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
        postings.add_postings(self._connection, postings.CHUNKS, self._words)


def _add_paths(connection: sqlite3.Connection, paths: Iterable[str]) -> None:
    units: list[tuple[int, str, str]] = []
    for path in paths:
        words = index_path_words(path)
        row = (path, path_tag(path), len(words.split()))
        made = connection.execute("INSERT OR IGNORE INTO paths (path, tag, words) VALUES (?, ?, ?)", row)
        if made.rowcount:  # else another process was quicker
            units.append((int(made.lastrowid or 0), "", words))
    postings.add_postings(connection, postings.PATHS, units)


_PUT_VECTOR = "INSERT OR REPLACE INTO vectors (passage, model, vector) VALUES (?, ?, ?)"


def check_place(path: Path) -> None:
    """Raise sqlite3.OperationalError where a link is in the way: it leads to a file that is not ours."""
    if any(map(os.path.islink, (path.parent, *(path.with_name(path.name + suffix) for suffix in ("", *BESIDE))))):
        raise sqlite3.OperationalError("unable to open database file: a link leads out of its folder")


def index_path_words(path: str) -> str:
    """The terms of a path; the file's own name counts twice, as it says most."""
    folder, _, name = path.rpartition("/")
    return index_terms(f"{folder} {name} {name.partition('.')[0]}")


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
    row = connection.execute(f"SELECT value FROM {schema}.meta WHERE key = 'store'").fetchone()
    return str(row[0]) if row else ""


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
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        yield file


class _Referred(NamedTuple):
    """What checkouts refer to: contents, paths, and the models whose vectors they want."""

    contents: set[int]
    paths: set[int]
    models: set[int]

    def take(self, checkout: Path, uid: str) -> None:
        """Add what a checkout's database refers to. Raises sqlite3.Error where it cannot be read."""
        uri = f"{checkout.as_uri()}?mode=ro"
        with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=1.0)) as connection, transaction(connection):
            known = dict(connection.execute("SELECT key, value FROM meta WHERE key IN ('contents', 'model')"))
            if known.get("contents") == uid:
                self.paths.update(row[0] for row in connection.execute("SELECT id FROM files"))
                rows = connection.execute("SELECT content FROM files WHERE content IS NOT NULL")
                self.contents.update(row[0] for row in rows)
                self.models.add(model_number(known.get("model", "")))


def _remove_some(connection: sqlite3.Connection, referred: _Referred) -> bool:
    """Remove some contents and paths that are not referred to, with everything that is only theirs; whether there were any."""
    contents, paths, models = (json.dumps([*ids]) for ids in referred)
    others = "NOT IN (SELECT value FROM json_each(?)) LIMIT ?"
    rows = connection.execute(f"SELECT id, first, last FROM contents WHERE id {others}", (contents, PART)).fetchall()
    for ident, first, last in rows:
        names = connection.execute("SELECT names, seq FROM chunks WHERE seq BETWEEN ? AND ?", (first, last)).fetchall()
        connection.executemany(
            "DELETE FROM symbols WHERE name = ? AND seq = ?",
            [(name, seq) for defined, seq in names for name in defined.split("\n")],
        )
        connection.execute("DELETE FROM chunks WHERE seq BETWEEN ? AND ?", (first, last))
        connection.execute("DELETE FROM contents WHERE id = ?", (ident,))
    removed = len(rows)
    gone = f"DELETE FROM paths WHERE id IN (SELECT id FROM paths WHERE id {others})"
    removed += connection.execute(gone, (paths, PART)).rowcount
    if removed:
        connection.execute("INSERT OR REPLACE INTO meta VALUES ('thin', '')")
    else:
        unused = "passage NOT IN (SELECT passage FROM chunks) OR model NOT IN (SELECT value FROM json_each(?)) LIMIT ?"
        gone = f"DELETE FROM vectors WHERE id IN (SELECT id FROM vectors WHERE {unused})"
        removed += connection.execute(gone, (models, PART)).rowcount
    return removed > 0


def _alive(connection: sqlite3.Connection, units: str) -> "Callable[[NDArray[Any]], NDArray[np.bool_]]":
    """Whether units are still there, of those that a query gives."""
    import numpy as np

    alive = np.fromiter((row[0] for row in connection.execute(f"{units} UNION ALL SELECT 1 << 40")), dtype=np.int64)
    alive.sort()
    # By searching: `isin` would look through all that is alive for each of many thousand words.
    return lambda found: alive[np.searchsorted(alive, found)] == found
