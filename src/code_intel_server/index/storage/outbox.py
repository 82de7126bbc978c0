"""What ChromaDB still has to be told of a checkout's chunks and agreements, and what it should hold."""

import json
import sqlite3

from code_intel_server.index.storage.contents import model_number
from code_intel_server.index.storage.database import IndexFile
from code_intel_server.index.storage.rows import OutboxItem

_PASSAGE_KEY = "printf('%016x', c.passage)"
_WITH_VECTOR = "chunks c JOIN shared.vectors v ON v.passage = c.passage AND v.model = ?"


class ChromaOutbox(IndexFile):
    """The part of the store that `ChromaManager` works with."""

    by_passage = False
    """Whether ChromaDB knows vectors by what is embedded instead of by chunk: for the checkouts that share a collection."""

    @property
    def _key(self) -> str:
        return _PASSAGE_KEY if self.by_passage else "c.id"

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

    def count(self, table: str) -> int:
        """Rows of a table of ours; `chunks` are those of the checkout's files."""
        counted = "coalesce(sum(last - first + 1), 0) FROM files" if table == "chunks" else f"count(*) FROM {table}"
        with self.reading() as connection:
            return int(connection.execute(f"SELECT {counted}").fetchone()[0])

    # The outbox towards ChromaDB

    def outbox(self, collection: str, limit: int) -> list[OutboxItem]:
        """The oldest unacknowledged changes of a collection, each with the vector it has now."""
        with self.reading() as connection:
            rows = connection.execute(
                "SELECT seq, id FROM outbox WHERE collection = ? ORDER BY seq LIMIT ?", (collection, limit)
            ).fetchall()
            ids = json.dumps([ident for _, ident in rows])
            if collection == "forest":
                query = _VECTORS_OF_IDS.format(key=_PASSAGE_KEY if self.by_passage else "w.value")
                found = connection.execute(query, (ids, model_number(self.meta("model"))))
            else:
                found = connection.execute(_AGREEMENTS_OF_IDS, (ids,))
            vectors = {ident: (key, vector) for ident, key, vector in found}
        return [OutboxItem(seq, *vectors.get(ident, (ident, None))) for seq, ident in rows]

    def acknowledge(self, collection: str, seq: int, *, seen_at: int) -> None:
        """ChromaDB has everything up to `seq` of the file that was there at that epoch: a new one counts from one again."""
        with self.writing() as connection:
            if seen_at != self.epoch:
                return
            connection.execute("DELETE FROM outbox WHERE collection = ? AND seq <= ?", (collection, seq))

    def outbox_size(self) -> int:
        """Changes that ChromaDB does not have yet."""
        return self.count("outbox")

    def use_chroma(self, used: str) -> None:
        """Note whether ChromaDB is used ('' where it is not): from then on it is told of every change; first of everything."""
        if self.meta("chroma") == used:
            return
        with self.writing() as connection:
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('chroma', ?)", (used,))
            connection.execute("DELETE FROM outbox")
            if used:
                self._refill(connection)

    def refill_outbox(self) -> None:
        """Queue everything: ChromaDB starts from nothing."""
        with self.writing() as connection:
            connection.execute("DELETE FROM outbox")
            self._refill(connection)

    def _refill(self, connection: sqlite3.Connection) -> None:
        put = "INSERT INTO outbox (collection, id, removed)"
        connection.execute(f"{put} SELECT 'forest', c.id, 0 FROM {_WITH_VECTOR}", (model_number(self.meta("model")),))
        connection.execute(f"{put} SELECT 'map', id, 0 FROM agreements WHERE vector IS NOT NULL")

    def sample_ids(self, limit: int, *, sent: bool = False) -> list[tuple[str, bytes]]:
        """About `limit` keys with vectors, spread over the whole store; of those only that ChromaDB has, where `sent`."""
        model = model_number(self.meta("model"))
        wanted = f"{_WITH_VECTOR} WHERE c.id NOT IN (SELECT id FROM outbox WHERE ? AND collection = 'forest')"
        with self.reading() as connection:
            total = connection.execute(f"SELECT count(*) FROM {wanted}", (model, sent)).fetchone()[0]
            step = max(1, total // max(1, limit))
            query = f"SELECT key, vector FROM (SELECT {self._key} AS key, v.vector, row_number() OVER () AS number FROM {wanted}) "
            return connection.execute(f"{query} WHERE number % ? = 0 LIMIT ?", (model, sent, step, limit)).fetchall()

    def settled(self) -> dict[str, int] | None:
        """How many vectors ChromaDB holds of each collection where it has everything; None while changes wait for it.

        One statement, and so one moment: a running sync adds chunks and what is to be sent of them together.
        """
        keys = "DISTINCT c.passage" if self.by_passage else "*"
        with self.reading() as connection:
            waiting, forest, known = connection.execute(
                f"SELECT (SELECT count(*) FROM outbox), (SELECT count({keys}) FROM {_WITH_VECTOR}), "
                "(SELECT count(*) FROM agreements WHERE vector IS NOT NULL)",
                (model_number(self.meta("model")),),
            ).fetchone()
        return None if waiting else {"forest": int(forest), "map": int(known)}


_VECTORS_OF_IDS = (
    "SELECT w.value, {key}, v.vector FROM json_each(?1) w CROSS JOIN shared.chunks c ON c.key = substr(w.value, 9) "
    "CROSS JOIN main.files f ON f.content = c.content "
    "CROSS JOIN shared.paths p ON p.id = f.id AND p.tag = substr(w.value, 1, 8) "
    "CROSS JOIN shared.vectors v ON v.passage = c.passage AND v.model = ?2"
)
_AGREEMENTS_OF_IDS = "SELECT a.id, a.id, a.vector FROM json_each(?) w CROSS JOIN agreements a ON a.id = w.value"


def uses_chroma(connection: sqlite3.Connection) -> bool:
    """Whether ChromaDB has to be told of changes."""
    row = connection.execute("SELECT value FROM meta WHERE key = 'chroma'").fetchone()
    return bool(row and row[0])
