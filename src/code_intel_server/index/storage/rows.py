"""Chunks as rows: how those of a checkout's files are found and queued for ChromaDB, within a transaction of the caller."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from code_intel_server.index.values import Chunk

if TYPE_CHECKING:
    from code_intel_server.index.values import Matrix

_COLUMNS = (
    "(f.id << 32) | c.seq AS seq, p.tag || c.key AS id, f.id AS file_id, p.path, f.language, f.digest, c.start_line, "
    "c.end_line, c.at, c.size, c.kind, c.symbol, c.scope, c.header, c.names, c.passage"
)
_FILES = "main.files f JOIN shared.paths p ON p.id = f.id"
_CHUNKS = f"{_FILES} JOIN shared.chunks c ON c.seq BETWEEN f.first AND f.last"
_SYMBOLS = f"shared.symbols s JOIN shared.chunks c ON c.seq = s.seq JOIN {_FILES} AND f.content = c.content"
VIEWS = (
    f"CREATE TEMP VIEW named_files AS SELECT f.*, p.path, p.words FROM {_FILES}",
    f"CREATE TEMP VIEW chunks AS SELECT {_COLUMNS} FROM {_CHUNKS}",
    f"CREATE TEMP VIEW definitions AS SELECT s.name, s.place = 0 AS own, {_COLUMNS} FROM {_SYMBOLS}",
)
"""The repository's paths and chunks as those of one checkout: `named_files`, `chunks`, and `definitions` with a
row for each name they define."""

_ROW = f"SELECT {_COLUMNS} FROM "
ROWS_OF_SEQS = (
    f"{_ROW} json_each(?) w CROSS JOIN main.files f ON f.id = w.value >> 32 "
    "CROSS JOIN shared.paths p ON p.id = f.id "
    "CROSS JOIN shared.chunks c ON c.seq = (w.value & 4294967295) AND c.seq BETWEEN f.first AND f.last"
)
"""The chunks of numbers, given as a JSON list."""

ROWS_OF_IDS = (
    f"{_ROW} json_each(?) w CROSS JOIN shared.chunks c ON c.key = substr(w.value, 9) "
    "CROSS JOIN main.files f ON f.content = c.content "
    "CROSS JOIN shared.paths p ON p.id = f.id AND p.tag = substr(w.value, 1, 8)"
)
"""The chunks of public ids, given as a JSON list."""

ROWS_OF_FILE = f"{_ROW} {_CHUNKS} WHERE f.id = ? ORDER BY c.seq"


class ChunkRow(NamedTuple):
    """A chunk as stored: without its text, which begins `at` its first line's character and has `size` characters.

    No `seq` ever means two chunks. `digest` is that of the whole file as it was indexed.
    """

    seq: int
    chunk: Chunk
    language: str
    digest: bytes
    at: int
    size: int
    file_id: int
    passage: int


def passage_key(passage: int) -> str:
    """What a passage is called in ChromaDB."""
    return f"{passage & (1 << 64) - 1:016x}"


class OutboxItem(NamedTuple):
    """A change that ChromaDB has not acknowledged: `vector` is None where the id was removed; `id` is what ChromaDB knows it by."""

    seq: int
    id: str
    vector: bytes | None


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
    """A chunk from the columns of the views."""
    seq, ident, file_id, path, language, digest, start, end, at, size, kind, symbol, scope, header, names, passage = row
    defined = tuple(names.split("\n")) if names else ()
    chunk = Chunk(ident, path, start, end, "", kind, symbol, scope, header, defined)
    return ChunkRow(seq, chunk, language, digest, at, size, file_id, passage)


def ids_of(connection: sqlite3.Connection, paths: Iterable[str]) -> set[str]:
    """The public ids of all chunks of files."""
    query = "SELECT c.id FROM json_each(?) w CROSS JOIN chunks c ON c.path = w.value"
    return {row[0] for row in connection.execute(query, (json.dumps([*paths]),))}


def enqueue(connection: sqlite3.Connection, collection: str, ids: Iterable[str], *, removed: bool) -> None:
    """Note that ids of a collection were put or removed, for ChromaDB to be informed."""
    connection.executemany(
        "INSERT INTO outbox (collection, id, removed) VALUES (?, ?, ?)",
        [(collection, one, int(removed)) for one in ids],
    )


def in_scope(connection: sqlite3.Connection, path: str, language: str) -> list[int] | None:
    """Numbers of the files under a folder (or the file itself) and of a language; None where neither narrows."""
    clauses, values = [], []
    if path not in {"", "."}:
        clauses.append("(path = ? OR substr(path, 1, ?) = ?)")
        values += [path, len(path) + 1, path + "/"]
    if language:
        clauses.append("language = ?")
        values.append(language)
    if not clauses:
        return None
    query = f"SELECT id FROM named_files WHERE {' AND '.join(clauses)}"
    return [row[0] for row in connection.execute(query, values)]
