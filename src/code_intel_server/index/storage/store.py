"""The index on disk: one SQLite file that holds chunks, vectors and words, and is the truth (DESIGN 3).

ChromaDB is only a faster copy of the vectors here. Every change to chunks leaves a row in `outbox` within the same
transaction; rows leave the outbox when ChromaDB has acknowledged them, so a kill between the two only means that the
same, repeatable change is sent again. The file is disposable: damaged or of another schema, it is set aside and built
anew from the sources.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from code_intel_server.index.storage.database import Database
from code_intel_server.index.storage.rows import (
    CHUNK_COLUMNS,
    VARIABLES,
    WORDS_FOR_TEXT,
    ChunkRow,
    FileWrite,
    OutboxItem,
    delete_chunks,
    enqueue,
    matrix_of,
    row_of,
    sql_placeholders,
    write_files,
)
from code_intel_server.index.values import Agreement, FileState

if TYPE_CHECKING:
    from code_intel_server.index.values import Matrix


class Store(Database):
    """What is in the index, as questions and changes."""

    # Metadata

    def meta(self, key: str) -> str:
        """A remembered value, '' where there is none."""
        with self.reading() as connection:
            row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return str(row[0]) if row else ""

    def set_meta(self, **values: str) -> None:
        """Remember values."""
        with self.writing() as connection:
            connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values.items())

    # Files and chunks

    def files(self) -> dict[str, FileState]:
        """Every indexed file by path."""
        with self.reading() as connection:
            rows = connection.execute("SELECT path, size, mtime_ns, digest, indexed_ns, language FROM files").fetchall()
        return {row[0]: FileState(*row) for row in rows}

    def files_at(self, paths: Iterable[str]) -> dict[str, FileState]:
        """What is known of these files, by path."""
        wanted = list(paths)
        found: dict[str, FileState] = {}
        with self.reading() as connection:
            for at in range(0, len(wanted), VARIABLES):
                part = wanted[at : at + VARIABLES]
                query = f"SELECT path, size, mtime_ns, digest, indexed_ns, language FROM files WHERE path IN ({sql_placeholders(part)})"  # noqa: S608
                found.update((row[0], FileState(*row)) for row in connection.execute(query, part))
        return found

    def languages(self) -> list[str]:
        """The languages of the indexed files, in alphabetical order."""
        with self.reading() as connection:
            rows = connection.execute("SELECT DISTINCT language FROM files WHERE language != '' ORDER BY language")
            return [str(row[0]) for row in rows]

    def count(self, table: str) -> int:
        """Rows of a table of ours."""
        with self.reading() as connection:
            return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608 - our own names

    def touch(self, states: Iterable[FileState]) -> None:
        """Remember new stat values of files whose content has not changed."""
        rows = [(s.size, s.mtime_ns, s.indexed_ns, s.path) for s in states]
        if rows:
            with self.writing() as connection:
                connection.executemany("UPDATE files SET size = ?, mtime_ns = ?, indexed_ns = ? WHERE path = ?", rows)

    def write(self, files: Sequence[FileWrite]) -> None:
        """Replace these files' chunks in one transaction; chunks whose id stays keep their row, vector and words."""
        with self.writing() as connection:
            write_files(connection, files)

    def remove(self, paths: Iterable[str]) -> None:
        """Forget files and their chunks."""
        with self.writing() as connection:
            for path in paths:
                row = connection.execute("SELECT id FROM files WHERE path = ?", (path,)).fetchone()
                if row:
                    old = connection.execute("SELECT seq, id FROM chunks WHERE file_id = ?", row).fetchall()
                    delete_chunks(connection, old)
                    connection.execute("DELETE FROM files WHERE id = ?", row)

    def vectors_by_digest(self, digests: Sequence[bytes]) -> dict[bytes, bytes]:
        """Vectors already made of the same text, wherever it stood."""
        found: dict[bytes, bytes] = {}
        with self.reading() as connection:
            for at in range(0, len(digests), VARIABLES):
                part = digests[at : at + VARIABLES]
                found.update(
                    connection.execute(
                        f"SELECT digest, vector FROM chunks WHERE vector IS NOT NULL AND digest IN ({sql_placeholders(part)})",  # noqa: S608
                        part,
                    ).fetchall()
                )
        return found

    def rows(self, seqs: Iterable[int], *, terms: bool = False) -> dict[int, ChunkRow]:
        """Chunks by their sequence number, or with their indexed `terms` in place of their text; vanished ones are left out."""
        columns = WORDS_FOR_TEXT if terms else f"{CHUNK_COLUMNS}, ''"
        join = "JOIN lexical l ON l.rowid = c.seq" if terms else ""
        wanted = list(seqs)
        found: dict[int, ChunkRow] = {}
        with self.reading() as connection:
            for at in range(0, len(wanted), VARIABLES):
                part = wanted[at : at + VARIABLES]
                query = f"{columns} FROM chunks c JOIN files f ON f.id = c.file_id {join} WHERE c.seq IN ({sql_placeholders(part)})"
                found.update((row[0], row_of(row)) for row in connection.execute(query, part))
        return found

    def seqs_by_id(self, ids: Iterable[str]) -> dict[int, str]:
        """Public ids by sequence number; vanished ones are left out."""
        wanted = list(ids)
        with self.reading() as connection:
            query = f"SELECT seq, id FROM chunks WHERE id IN ({sql_placeholders(wanted)})"  # noqa: S608
            return dict(connection.execute(query, wanted).fetchall())

    def neighbours(self, chunk_id: str, distance: int) -> list[ChunkRow]:
        """The chunk and up to `distance` chunks before and after it in its file, in order; empty where unknown."""
        with self.reading() as connection:
            row = connection.execute("SELECT file_id FROM chunks WHERE id = ?", (chunk_id,)).fetchone()
            if row is None:
                return []
            query = f"{CHUNK_COLUMNS}, '' FROM chunks c JOIN files f ON f.id = c.file_id WHERE c.file_id = ? ORDER BY c.start_line, c.seq"
            rows = [row_of(found) for found in connection.execute(query, row)]
        at = next(i for i, candidate in enumerate(rows) if candidate.chunk.id == chunk_id)
        return rows[max(0, at - distance) : at + distance + 1]

    # Vectors

    def vectors_version(self) -> tuple[object, ...]:
        """What a copy of the vectors is of: void where the first two differ, lacking chunks where the third has grown."""
        with self.reading() as connection:
            row = connection.execute(
                "SELECT (SELECT value FROM meta WHERE key = 'revalued'), "
                "(SELECT seq FROM sqlite_sequence WHERE name = 'chunks'), (SELECT count(*) FROM files)"
            ).fetchone()
        return (self.file_version(), *row)

    def vectors(self, dim: int, *, after: int = 0) -> "tuple[Sequence[int], Matrix]":
        """Sequence numbers and unit vectors of all chunks with `seq` above `after`, in order."""
        seqs: list[int] = []
        packed = bytearray()  # not a list of them all besides it: that is 100 MB at 100,000 chunks
        with self.reading() as connection:
            for seq, vector in connection.execute(
                "SELECT seq, vector FROM chunks WHERE seq > ? AND length(vector) = ? ORDER BY seq", (after, 2 * dim)
            ):
                seqs.append(seq)
                packed += vector
        return seqs, matrix_of(packed, dim)

    # The outbox towards ChromaDB

    def outbox(self, collection: str, limit: int) -> list[OutboxItem]:
        """The oldest unacknowledged changes of a collection, each with the vector it has now."""
        table = "chunks" if collection == "forest" else "agreements"
        with self.reading() as connection:
            rows = connection.execute(
                f"SELECT o.seq, o.id, t.vector FROM outbox o LEFT JOIN {table} t ON t.id = o.id "  # noqa: S608
                "WHERE o.collection = ? ORDER BY o.seq LIMIT ?",
                (collection, limit),
            ).fetchall()
        return [OutboxItem(*row) for row in rows]

    def acknowledge(self, collection: str, seq: int, *, seen_at: int) -> None:
        """ChromaDB has everything up to `seq` of the file that was there at that epoch: a new one counts from one again."""
        with self.writing() as connection:
            if seen_at != self.epoch:
                return
            connection.execute("DELETE FROM outbox WHERE collection = ? AND seq <= ?", (collection, seq))

    def outbox_size(self) -> int:
        """Changes that ChromaDB does not have yet."""
        return self.count("outbox")

    def clear_outbox(self) -> None:
        """ChromaDB is not used, and begins with `refill_outbox` when it is."""
        with self.writing() as connection:
            connection.execute("DELETE FROM outbox")

    def refill_outbox(self) -> None:
        """Queue everything: ChromaDB starts from nothing."""
        with self.writing() as connection:
            connection.execute("DELETE FROM outbox")
            for collection, table in (("forest", "chunks"), ("map", "agreements")):
                connection.execute(
                    f"INSERT INTO outbox (collection, id, removed) SELECT ?, id, 0 FROM {table} WHERE vector IS NOT NULL",  # noqa: S608
                    (collection,),
                )

    def sample_ids(self, limit: int, *, sent: bool = False) -> list[tuple[str, bytes]]:
        """About `limit` chunk ids with vectors, spread over the whole store; of those only that ChromaDB has, where `sent`."""
        wanted = "vector IS NOT NULL"
        if sent:
            wanted += " AND id NOT IN (SELECT id FROM outbox WHERE collection = 'forest')"
        with self.reading() as connection:
            total = connection.execute(f"SELECT count(*) FROM chunks WHERE {wanted}").fetchone()[0]  # noqa: S608
            step = max(1, total // max(1, limit))
            return connection.execute(
                f"SELECT id, vector FROM chunks WHERE {wanted} AND seq % ? = (SELECT min(seq) FROM chunks WHERE {wanted}) % ? "  # noqa: S608
                "LIMIT ?",
                (step, step, limit),
            ).fetchall()

    def settled(self) -> dict[str, int] | None:
        """How many vectors ChromaDB holds of each collection where it has everything; None while changes wait for it.

        One statement, and so one moment: a running sync adds chunks and what is to be sent of them together.
        """
        with self.reading() as connection:
            waiting, forest, known = connection.execute(
                "SELECT (SELECT count(*) FROM outbox), (SELECT count(*) FROM chunks WHERE vector IS NOT NULL), "
                "(SELECT count(*) FROM agreements WHERE vector IS NOT NULL)"
            ).fetchone()
        return None if waiting else {"forest": int(forest), "map": int(known)}

    def forget_vectors(self) -> None:
        """Another embedding model: no vector may be compared with the new ones."""
        with self.writing() as connection:
            connection.execute("UPDATE chunks SET vector = NULL")
            connection.execute("UPDATE agreements SET vector = NULL")
            connection.execute("DELETE FROM outbox")
            connection.execute(_REVALUE)

    def without_vectors(self, limit: int) -> list[ChunkRow]:
        """Chunks that still want one."""
        with self.reading() as connection:
            query = f"{CHUNK_COLUMNS}, '' FROM chunks c JOIN files f ON f.id = c.file_id WHERE c.vector IS NULL LIMIT ?"
            return [row_of(row) for row in connection.execute(query, (limit,))]

    def set_vectors(self, vectors: Mapping[str, bytes]) -> None:
        """Give chunks (by id) their vectors."""
        with self.writing() as connection:
            connection.executemany("UPDATE chunks SET vector = ? WHERE id = ?", [(v, i) for i, v in vectors.items()])
            enqueue(connection, "forest", vectors, removed=False)
            connection.execute(_REVALUE)

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
            enqueue(connection, "map", gone, removed=True)
            enqueue(connection, "map", [i for i, (_, vector) in wanted.items() if vector], removed=False)


_REVALUE = "INSERT OR REPLACE INTO meta VALUES ('revalued', hex(randomblob(8)))"
"""Noted where chunks that were there got other vectors, or lost theirs: a copy of those is void, in any process."""
