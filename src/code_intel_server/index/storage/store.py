"""The index of one checkout: which content each of its files has, and what ChromaDB still has to be told (SPEC 9).

What the files hold is in the repository's `contents`, attached to every connection here; both together are the truth.
ChromaDB is only a faster copy of the vectors. While it is used every change to chunks leaves a row in `outbox` within the
same transaction; rows leave the outbox when ChromaDB has acknowledged them, so a kill between the two only means that the
same, repeatable change is sent again. The files are disposable: damaged or of another schema, they are set aside and built
anew from the sources.
"""

import contextlib
import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from code_intel_server.index.storage.contents import (
    CONTENTS,
    Content,
    ContentStore,
    FileWrite,
    check_place,
    model_number,
    uid_of,
)
from code_intel_server.index.storage.database import fetched, uri_for_reading
from code_intel_server.index.storage.outbox import ChromaOutbox, uses_chroma
from code_intel_server.index.storage.rows import (
    ROWS_OF_FILE,
    ROWS_OF_IDS,
    ROWS_OF_SEQS,
    VIEWS,
    ChunkRow,
    enqueue,
    ids_of,
    matrix_of,
    row_of,
)
from code_intel_server.index.storage.view import View
from code_intel_server.index.values import Agreement, FileState

if TYPE_CHECKING:
    from code_intel_server.index.values import Matrix

# The column `mtime_ns` holds the change time: another name would have every index built anew.
_STATE = "SELECT path, size, mtime_ns, digest, indexed_ns, language FROM named_files"
_AT_PATH = "WHERE id = (SELECT id FROM shared.paths WHERE path = ?)"


class Store(ChromaOutbox):
    """What is in the index, as questions and changes."""

    SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE files (
    id INTEGER PRIMARY KEY, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, digest BLOB NOT NULL,
    indexed_ns INTEGER NOT NULL, language TEXT NOT NULL, content INTEGER, first INTEGER, last INTEGER
);
CREATE INDEX files_content ON files (content);
CREATE TABLE agreements (
    id TEXT PRIMARY KEY, query TEXT NOT NULL, symbols TEXT NOT NULL, files TEXT NOT NULL, session_id TEXT NOT NULL,
    vector BLOB
) WITHOUT ROWID;
CREATE TABLE outbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, collection TEXT NOT NULL, id TEXT NOT NULL, removed INTEGER NOT NULL
);
"""

    def __init__(self, path: Path, *, writable: bool, shared: Path | None = None) -> None:
        """As `Database`; the contents lie in the folder `shared` where that can be written, else beside `path`."""
        self._shared = shared
        self._contents: ContentStore | None = None
        self._view: tuple[object, View] | None = None
        self._view_lock = threading.Lock()
        super().__init__(path, writable=writable)
        if writable:
            self._take_up_contents()

    # The contents

    @property
    def contents(self) -> ContentStore:
        """What the files hold; for the owner."""
        assert self._contents is not None  # the owner has opened it
        return self._contents

    def remarks(self) -> list[str]:
        """What had to be set aside, of both files."""
        return [*self.notes, *(self._contents.notes if self._contents is not None else ())]

    def _prepare(self) -> sqlite3.Connection:
        self._contents = self._contents or self._open_contents()
        return super()._prepare()

    def _open_contents(self) -> ContentStore:
        if self._shared is not None:
            with contextlib.suppress(sqlite3.OperationalError, OSError):
                return ContentStore(self._shared / CONTENTS, writable=True)
        self._check_place()
        return ContentStore(self.path.with_name(CONTENTS), writable=True)

    def _take_up_contents(self) -> None:
        """Believe nothing about files that was said of other contents than those that are there now."""
        uid = self.contents.uid
        if self.meta("contents") != uid:
            with self.writing() as connection:
                connection.execute("DELETE FROM files")
                connection.execute("DELETE FROM outbox")
                connection.execute("DELETE FROM meta WHERE key IN ('synced_at', 'chroma')")
                connection.execute("INSERT OR REPLACE INTO meta VALUES ('contents', ?)", (uid,))
                connection.execute(_NEXT_EDITION)
        with contextlib.suppress(sqlite3.OperationalError):  # it is written for long: the next sync does it
            self.contents.register(self.path)

    def rejoin(self) -> None:
        """Be known to the contents, and know no file any more of which something was cleaned up: the checkout had been moved away."""
        self.contents.register(self.path)
        lost = (
            "content NOT IN (SELECT id FROM shared.contents) OR id NOT IN (SELECT id FROM shared.paths)"  # not of NULL
        )
        with self.reading() as connection:
            if not connection.execute(f"SELECT 1 FROM files WHERE {lost} LIMIT 1").fetchone():
                return
        with self.writing() as connection:
            connection.execute(f"DELETE FROM files WHERE {lost}")
            connection.execute(_NEXT_EDITION)

    def _connect(self) -> sqlite3.Connection:
        connection = super()._connect()
        try:
            self._attach(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _attach(self, connection: sqlite3.Connection) -> None:
        if self._contents is not None:
            connection.execute("ATTACH ? AS shared", (uri_for_reading(self._contents.path),))
        else:
            self._attach_what_is_meant(connection)
        for view in VIEWS:
            connection.execute(view)

    def _attach_what_is_meant(self, connection: sqlite3.Connection) -> None:
        """Attach, for a reader, the contents that the owner has filled. Raises sqlite3.OperationalError where they are gone."""
        row = connection.execute("SELECT value FROM meta WHERE key = 'contents'").fetchone()
        for folder in (self._shared, self.path.parent):
            if row is None or folder is None or not (file := folder / CONTENTS).is_file():
                continue
            check_place(file)
            connection.execute("ATTACH ? AS shared", (uri_for_reading(file),))
            if uid_of(connection, "shared") == row[0]:
                return
            connection.execute("DETACH shared")
        raise sqlite3.OperationalError("what it refers to is being built anew")

    def rebuild(self, reason: str = "", *, seen_at: int | None = None) -> bool:
        """As `Database`; of the two files the damaged one is replaced, and this one in any case."""
        with self._write_lock:
            if self._closed or seen_at not in {None, self.epoch}:
                return False
            if reason and self.contents.damaged():
                self.contents.replace(reason)
                reason = ""
            done = super().rebuild(reason, seen_at=seen_at)
            self._take_up_contents()
            return done

    @property
    def removed(self) -> bool:
        """Whether somebody took away our file or the contents: what is written to it is lost."""
        return super().removed or (self._contents is not None and self._contents.removed)

    def close(self) -> None:
        """As `Database`."""
        with self._write_lock:
            super().close()
            if self._contents is not None:
                self._contents.close()

    @contextlib.contextmanager
    def in_bulk(self) -> Iterator[None]:
        """As `Database`, for both files."""
        with super().in_bulk(), self.contents.in_bulk():
            yield

    # Files and chunks

    def files(self) -> dict[str, FileState]:
        """Every indexed file by path."""
        with self.reading() as connection:
            return {row[0]: FileState(*row) for row in connection.execute(_STATE)}

    def files_at(self, paths: Iterable[str]) -> dict[str, FileState]:
        """What is known of these files, by path."""
        with self.reading() as connection:
            rows = fetched(connection, f"{_STATE} WHERE path IN ({{}})", [*paths])
            return {row[0]: FileState(*row) for row in rows}

    def languages(self) -> list[str]:
        """The languages of the indexed files, in alphabetical order."""
        with self.reading() as connection:
            rows = connection.execute("SELECT DISTINCT language FROM files WHERE language != '' ORDER BY language")
            return [str(row[0]) for row in rows]

    def touch(self, states: Iterable[FileState]) -> None:
        """Remember new stat values of files whose content has not changed."""
        rows = [(s.size, s.ctime_ns, s.indexed_ns, s.path) for s in states]
        if rows:
            with self.writing() as connection:
                connection.executemany(f"UPDATE files SET size = ?, mtime_ns = ?, indexed_ns = ? {_AT_PATH}", rows)

    def write(self, files: Sequence[FileWrite]) -> None:
        """Add the contents of files, and then note that the files hold them."""
        there = self.contents.put(files, self.meta("model"))
        self.adopt([(file.cut.state, there.get(file.key)) for file in files])

    def adopt(self, files: Sequence[tuple[FileState, Content | None]]) -> None:
        """Note what files hold, in one transaction; None where that is nothing that could be found."""
        paths = [state.path for state, _ in files]
        ids = self.contents.path_ids(paths)
        rows = [
            (ids[s.path], s.size, s.ctime_ns, s.digest, s.indexed_ns, s.language, *(content or (None, None, None)))
            for s, content in files
        ]
        with self.writing() as connection, _changing(connection, paths):
            connection.executemany("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def remove(self, paths: Iterable[str]) -> None:
        """Forget files and their chunks."""
        gone = [*paths]
        if gone:
            with self.writing() as connection, _changing(connection, gone):
                connection.executemany(f"DELETE FROM files {_AT_PATH}", [(path,) for path in gone])

    def view(self) -> View:
        """The chunks of the checkout as they are now."""
        with self._view_lock, self.reading() as connection:
            edition = (self.file_version(), *connection.execute(_EDITION).fetchone())
            if self._view is None or self._view[0] != edition:
                self._view = (edition, View(connection))
            return self._view[1]

    def rows(self, seqs: Iterable[int]) -> dict[int, ChunkRow]:
        """Chunks by their number; vanished ones are left out."""
        return {row.seq: row for row in self._rows(ROWS_OF_SEQS, json.dumps([*seqs]))}

    def seqs_by_id(self, ids: Iterable[str]) -> dict[int, str]:
        """Public ids by number; vanished ones are left out."""
        return {row.seq: row.chunk.id for row in self._rows(ROWS_OF_IDS, json.dumps([*ids]))}

    def neighbours(self, chunk_id: str, distance: int) -> list[ChunkRow]:
        """The chunk and up to `distance` chunks before and after it in its file, in order; empty where unknown."""
        for found in self._rows(ROWS_OF_IDS, json.dumps([chunk_id])):
            rows = self._rows(ROWS_OF_FILE, found.file_id)
            at = next((i for i, candidate in enumerate(rows) if candidate.seq == found.seq), None)
            if at is not None:
                return rows[max(0, at - distance) : at + distance + 1]
        return []

    def _rows(self, query: str, *values: object) -> list[ChunkRow]:
        with self.reading() as connection:
            return [row_of(row) for row in connection.execute(query, values)]

    # Vectors

    def vectors(self, dim: int, passages: "Sequence[int]") -> "tuple[list[int], Matrix]":
        """The passages that have a vector, in order, and their unit vectors."""
        found: list[int] = []
        packed = bytearray()  # not a list of them all besides it: that is 100 MB at 100,000 chunks
        query = (
            "SELECT v.passage, v.vector FROM json_each(?) w CROSS JOIN shared.vectors v "
            "ON v.passage = w.value AND v.model = ? WHERE length(v.vector) = ?"
        )
        model = model_number(self.meta("model"))
        with self.reading() as connection:
            for passage, vector in connection.execute(query, (json.dumps([*passages]), model, 2 * dim)):
                found.append(passage)
                packed += vector
        return found, matrix_of(packed, dim)

    def vectors_edition(self) -> tuple[object, ...]:
        """What a copy of the vectors is of: void where it differs, be that other chunks or other vectors."""
        with self.reading() as connection:
            row = connection.execute("SELECT (SELECT value FROM meta WHERE key = 'model')").fetchone()
        return (self.file_version(), *row)

    def forget_vectors(self) -> None:
        """Another embedding model: no vector may be compared with the new ones."""
        with self.writing() as connection:
            connection.execute("DELETE FROM meta WHERE key = 'model'")
            connection.execute("UPDATE agreements SET vector = NULL")
            connection.execute("DELETE FROM outbox")

    def without_vectors(self, limit: int, after: int = 0) -> list[ChunkRow]:
        """Chunks that still want one, in order of their numbers, beyond one."""
        query = (
            "SELECT c.* FROM chunks c LEFT JOIN shared.vectors v ON v.passage = c.passage AND v.model = ? "
            "WHERE v.id IS NULL AND c.seq > ? ORDER BY c.seq LIMIT ?"
        )
        return self._rows(query, model_number(self.meta("model")), after, limit)

    def set_vectors(self, vectors: Mapping[int, bytes]) -> None:
        """Give chunks (by their numbers) their vectors."""
        rows = self.rows(vectors)
        self.contents.put_vectors({row.passage: vectors[seq] for seq, row in rows.items()}, self.meta("model"))
        with self.writing() as connection:
            if uses_chroma(connection):
                enqueue(connection, "forest", [row.chunk.id for row in rows.values()], removed=False)
            connection.execute(_NEXT_EDITION)

    # Agreements (the mirror of the files)

    def agreements(self) -> list[tuple[Agreement, bytes | None]]:
        """Every agreement with its vector."""
        with self.reading() as connection:
            rows = connection.execute("SELECT id, query, symbols, files, session_id, vector FROM agreements").fetchall()
        return [
            (Agreement(row[0], row[1], tuple(json.loads(row[2])), tuple(json.loads(row[3])), row[4]), row[5])
            for row in rows
        ]

    def set_agreements(self, wanted: Mapping[str, tuple[Agreement, bytes | None]], removed: Iterable[str]) -> None:
        """Add or replace agreements by id and drop others."""
        gone = list(removed)
        with self.writing() as connection:
            connection.executemany("DELETE FROM agreements WHERE id = ?", [(one,) for one in gone])
            connection.executemany(
                "INSERT OR REPLACE INTO agreements VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (a.id, a.query, json.dumps(a.symbols), json.dumps(a.files), a.session_id, vector)
                    for a, vector in wanted.values()
                ],
            )
            if uses_chroma(connection):
                enqueue(connection, "map", gone, removed=True)
                enqueue(connection, "map", [i for i, (_, vector) in wanted.items() if vector], removed=False)


_EDITION = "SELECT (SELECT value FROM meta WHERE key = 'edition')"
_NEXT_EDITION = "INSERT OR REPLACE INTO meta VALUES ('edition', hex(randomblob(8)))"
"""Noted with every change to chunks or their vectors: what was read of them before is void, in any process."""


@contextlib.contextmanager
def _changing(connection: sqlite3.Connection, paths: Sequence[str]) -> Iterator[None]:
    """Note the edition, and for ChromaDB which chunks came and went, where it is used."""
    before = ids_of(connection, paths) if (told := uses_chroma(connection)) else set()
    yield
    connection.execute(_NEXT_EDITION)
    if told:
        after = ids_of(connection, paths)
        enqueue(connection, "forest", sorted(before - after), removed=True)
        enqueue(connection, "forest", sorted(after - before), removed=False)
