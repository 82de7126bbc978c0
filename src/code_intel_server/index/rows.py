"""Chunks as rows: how they are written, found and queued for ChromaDB, within a transaction of the caller."""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from code_intel_server.index.lexical import index_terms
from code_intel_server.index.values import Chunk, FileState

if TYPE_CHECKING:
    from code_intel_server.index.values import Matrix

VARIABLES = 500
"""How many values one statement may ask for."""

CHUNK_COLUMNS = "SELECT c.seq, c.id, f.path, c.start_line, c.end_line, c.text, c.kind, c.symbol, c.scope, c.header, c.names, f.language"
WORDS_FOR_TEXT = CHUNK_COLUMNS.replace("c.text", "''") + ", l.symbol || ' ' || l.body"
"""A chunk without its text but with its terms: what ranking reads of hundreds of chunks."""


class Row(NamedTuple):
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
    """A file with its new chunks and their vectors (None: no embedder) and the digests of what was embedded."""

    state: FileState
    chunks: Sequence[Chunk]
    vectors: Sequence[bytes | None]
    digests: Sequence[bytes]


def pack(vectors: "Matrix") -> list[bytes]:
    """Vectors as stored: 16-bit floats, a third of a percent off at most and half as big."""
    half = vectors.astype("<f2")
    return [row.tobytes() for row in half]


def unpack(blobs: Sequence[bytes], dim: int) -> "Matrix":
    """Stored vectors as a matrix of 32-bit floats."""
    import numpy as np

    flat = np.frombuffer(b"".join(blobs), dtype="<f2")
    return flat.reshape(len(blobs), dim).astype(np.float32)


def row_of(row: tuple[Any, ...]) -> Row:
    """A chunk from the columns of `CHUNK_COLUMNS` and its terms."""
    seq, ident, path, start, end, text, kind, symbol, scope, header, names, language, terms = row
    defined = tuple(names.split("\n")) if names else ()
    return Row(seq, Chunk(ident, path, start, end, text, kind, symbol, scope, header, defined), language, terms)


def marks(values: Sequence[object]) -> str:
    return ",".join("?" * len(values))


def write_file(connection: sqlite3.Connection, file: FileWrite) -> None:
    state = file.state
    connection.execute(
        "INSERT INTO files (path, size, mtime_ns, digest, indexed_ns, language) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (path) DO UPDATE SET size = excluded.size, mtime_ns = excluded.mtime_ns, digest = excluded.digest, "
        "indexed_ns = excluded.indexed_ns, language = excluded.language",
        (state.path, state.size, state.mtime_ns, state.digest, state.indexed_ns, state.language),
    )
    file_id = connection.execute("SELECT id FROM files WHERE path = ?", (state.path,)).fetchone()[0]
    old = dict(connection.execute("SELECT id, seq FROM chunks WHERE file_id = ?", (file_id,)).fetchall())
    fresh = []
    for chunk, vector, digest in zip(file.chunks, file.vectors, file.digests, strict=True):
        seq = old.pop(chunk.id, None)
        if seq is None:
            fresh.append(_insert_chunk(connection, file_id, chunk, vector, digest))
        else:
            connection.execute(
                "UPDATE chunks SET start_line = ?, end_line = ? WHERE seq = ?", (chunk.start_line, chunk.end_line, seq)
            )
    delete_chunks(connection, [(seq, ident) for ident, seq in old.items()])
    enqueue(connection, "forest", [ident for ident, has_vector in fresh if has_vector], removed=False)


def _insert_chunk(
    connection: sqlite3.Connection, file_id: int, chunk: Chunk, vector: bytes | None, digest: bytes
) -> tuple[str, bool]:
    seq = connection.execute(
        "INSERT INTO chunks (id, file_id, start_line, end_line, kind, symbol, scope, header, names, text, digest, vector) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            chunk.id, file_id, chunk.start_line, chunk.end_line, chunk.kind, chunk.symbol, chunk.scope, chunk.header,
            "\n".join(chunk.names), chunk.text, digest, vector,
        ),
    ).lastrowid  # fmt: skip
    names = " ".join((*chunk.names, chunk.scope))
    connection.execute(
        "INSERT INTO lexical (rowid, symbol, path, body) VALUES (?, ?, ?, ?)",
        (seq, index_terms(names), index_path_words(chunk.path), index_terms(chunk.text)),
    )
    connection.executemany(
        "INSERT INTO symbols VALUES (?, ?, ?)", [(name, name == chunk.symbol, seq) for name in chunk.names]
    )
    return chunk.id, vector is not None


def delete_chunks(connection: sqlite3.Connection, chunks: Sequence[tuple[int, str]]) -> None:
    for seq, _ in chunks:
        connection.execute("DELETE FROM lexical WHERE rowid = ?", (seq,))
        connection.execute("DELETE FROM symbols WHERE seq = ?", (seq,))
        connection.execute("DELETE FROM chunks WHERE seq = ?", (seq,))
    enqueue(connection, "forest", [ident for _, ident in chunks], removed=True)


def enqueue(connection: sqlite3.Connection, collection: str, ids: Iterable[str], *, removed: bool) -> None:
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
