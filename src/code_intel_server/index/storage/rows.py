"""Chunks as rows: how they are written, found and queued for ChromaDB, within a transaction of the caller."""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from code_intel_server.index.chunks.cutting import Cut, Terms
from code_intel_server.index.retrieval.lexical import index_terms
from code_intel_server.index.values import Chunk

if TYPE_CHECKING:
    from code_intel_server.index.values import Matrix

VARIABLES = 500
"""How many values one statement may ask for."""

CHUNK_COLUMNS = "SELECT c.seq, c.id, f.path, c.start_line, c.end_line, c.text, c.kind, c.symbol, c.scope, c.header, c.names, f.language"
WORDS_FOR_TEXT = CHUNK_COLUMNS.replace("c.text", "''") + ", l.symbol || ' ' || l.body"
"""A chunk without its text but with its terms: what ranking reads of hundreds of chunks."""


class ChunkRow(NamedTuple):
    """A chunk as stored, with the file it belongs to; `seq` only ever grows."""

    seq: int
    chunk: Chunk
    language: str
    terms: str = ""


class OutboxItem(NamedTuple):
    """A change that ChromaDB has not acknowledged: `vector` is None where the id was removed."""

    seq: int
    id: str
    vector: bytes | None


class FileWrite(NamedTuple):
    """A file as it was cut, and the vectors of its chunks (None: no embedder)."""

    cut: Cut
    vectors: Sequence[bytes | None]


def pack(vectors: "Matrix") -> list[bytes]:
    """Vectors as stored: 16-bit floats, a third of a percent off at most and half as big."""
    half = vectors.astype("<f2")
    return [row.tobytes() for row in half]


def unpack(blobs: Sequence[bytes], dim: int) -> "Matrix":
    """Stored vectors as a matrix of 32-bit floats."""
    return matrix_of(b"".join(blobs), dim)


def matrix_of(packed: bytes | bytearray, dim: int) -> "Matrix":
    """Stored vectors, one behind the other, as a matrix of 32-bit floats."""
    import numpy as np

    return np.frombuffer(packed, dtype="<f2").reshape(-1, dim).astype(np.float32)


def row_of(row: tuple[Any, ...]) -> ChunkRow:
    """A chunk from the columns of `CHUNK_COLUMNS` and its terms."""
    seq, ident, path, start, end, text, kind, symbol, scope, header, names, language, terms = row
    defined = tuple(names.split("\n")) if names else ()
    return ChunkRow(seq, Chunk(ident, path, start, end, text, kind, symbol, scope, header, defined), language, terms)


def sql_placeholders(values: Sequence[object]) -> str:
    """The placeholders of a statement that takes so many values."""
    return ",".join("?" * len(values))


def write_files(connection: sqlite3.Connection, files: Iterable[FileWrite]) -> None:
    """Replace the chunks of files; those whose id stays keep their row, vector and words."""
    fresh = _Fresh(_last_seq(connection))
    for file in files:
        state = file.cut.state
        values = (state.path, state.size, state.mtime_ns, state.digest, state.indexed_ns, state.language)
        connection.execute(_PUT_FILE, values)
        file_id = connection.execute("SELECT id FROM files WHERE path = ?", (state.path,)).fetchone()[0]
        old = dict(connection.execute("SELECT id, seq FROM chunks WHERE file_id = ?", (file_id,)).fetchall())
        path_words = index_path_words(state.path)
        cut = file.cut
        for chunk, terms, digest, vector in zip(cut.chunks, cut.terms, cut.digests, file.vectors, strict=True):
            seq = old.pop(chunk.id, None)
            if seq is None:
                fresh.add(file_id, chunk, terms, path_words, digest, vector)
            else:
                lines = (chunk.start_line, chunk.end_line, seq)
                connection.execute("UPDATE chunks SET start_line = ?, end_line = ? WHERE seq = ?", lines)
        delete_chunks(connection, [(seq, ident) for ident, seq in old.items()])
    fresh.write(connection)


_PUT_FILE = (
    "INSERT INTO files (path, size, mtime_ns, digest, indexed_ns, language) VALUES (?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (path) DO UPDATE SET size = excluded.size, mtime_ns = excluded.mtime_ns, digest = excluded.digest, "
    "indexed_ns = excluded.indexed_ns, language = excluded.language"
)


def _last_seq(connection: sqlite3.Connection) -> int:
    """The highest number a chunk ever had; a new one is above it, so that no number ever means two chunks."""
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'chunks'").fetchone()
    return int(row[0]) if row else 0


class _Fresh:
    """New chunks of one transaction, written table by table at its end: one statement for thousands of rows."""

    def __init__(self, last_seq: int) -> None:
        self._seq = last_seq
        self._chunks: list[tuple[object, ...]] = []
        self._words: list[tuple[int, str, str, str]] = []
        self._symbols: list[tuple[str, bool, int]] = []
        self._ids: list[str] = []

    def add(
        self, file_id: int, chunk: Chunk, terms: Terms, path_words: str, digest: bytes, vector: bytes | None
    ) -> None:
        """Take in a chunk under the next number, with its words and symbols; nothing is written yet."""
        self._seq += 1
        seq = self._seq
        self._chunks.append(
            (
                seq, chunk.id, file_id, chunk.start_line, chunk.end_line, chunk.kind, chunk.symbol, chunk.scope,
                chunk.header, "\n".join(chunk.names), chunk.text, digest, vector,
            )
        )  # fmt: skip
        self._words.append((seq, terms.symbol, path_words, terms.body))
        self._symbols += [(name, name == chunk.symbol, seq) for name in chunk.names]
        if vector is not None:
            self._ids.append(chunk.id)

    def write(self, connection: sqlite3.Connection) -> None:
        """Write what was taken in, and put it into ChromaDB's outbox."""
        connection.executemany(
            "INSERT INTO chunks (seq, id, file_id, start_line, end_line, kind, symbol, scope, header, names, text, digest, vector) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            self._chunks,
        )
        connection.executemany("INSERT INTO lexical (rowid, symbol, path, body) VALUES (?, ?, ?, ?)", self._words)
        connection.executemany("INSERT INTO symbols VALUES (?, ?, ?)", self._symbols)
        enqueue(connection, "forest", self._ids, removed=False)


def delete_chunks(connection: sqlite3.Connection, chunks: Sequence[tuple[int, str]]) -> None:
    """Remove chunks, given by number and id, with their words and symbols, and have ChromaDB told."""
    for seq, _ in chunks:
        connection.execute("DELETE FROM lexical WHERE rowid = ?", (seq,))
        connection.execute("DELETE FROM symbols WHERE seq = ?", (seq,))
        connection.execute("DELETE FROM chunks WHERE seq = ?", (seq,))
    enqueue(connection, "forest", [ident for _, ident in chunks], removed=True)


def enqueue(connection: sqlite3.Connection, collection: str, ids: Iterable[str], *, removed: bool) -> None:
    """Note that ids of a collection were put or removed, for ChromaDB to be informed."""
    connection.executemany(
        "INSERT INTO outbox (collection, id, removed) VALUES (?, ?, ?)",
        [(collection, one, int(removed)) for one in ids],
    )


def index_path_words(path: str) -> str:
    """The terms of a path; the file's own name counts twice, as it says most."""
    folder, _, name = path.rpartition("/")
    return index_terms(f"{folder} {name} {name.partition('.')[0]}")


def in_scope(connection: sqlite3.Connection, path: str, language: str) -> list[int] | None:
    """Sequence numbers of the chunks under a folder or file and of a language; None where neither narrows."""
    clauses, values = [], []
    if path not in {"", "."}:
        clauses.append("(path = ? OR substr(path, 1, ?) = ?)")
        values += [path, len(path) + 1, path + "/"]
    if language:
        clauses.append("language = ?")
        values.append(language)
    if not clauses:
        return None
    query = f"SELECT seq FROM chunks WHERE file_id IN (SELECT id FROM files WHERE {' AND '.join(clauses)})"  # noqa: S608
    return [row[0] for row in connection.execute(query, values)]
