"""Which words stand in which units, and how often: an inverted index in batches, so that adding changes nothing that is there.

A unit is a chunk or a path, by number. It has words of two kinds; each posting is a unit with its two counts. Batches of
about the same size are put together as they become many: a word is then looked up in a few dozen of them at most.
"""

import sqlite3
import struct
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from code_intel_server.index.storage.database import fetched

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Entries = NDArray[np.void]
    """Postings of one term; fields `unit`, `first` and `second`."""

_SCHEMA = """
CREATE TABLE {0}_postings (
    batch INTEGER NOT NULL, term TEXT NOT NULL, entries BLOB NOT NULL, PRIMARY KEY (batch, term)
) WITHOUT ROWID;
CREATE TABLE {0}_batches (id INTEGER PRIMARY KEY AUTOINCREMENT, size INTEGER NOT NULL);
"""
CHUNKS, PATHS = "chunk", "path"
"""What the units of an index are, as the names of its tables begin."""

SCHEMA = _SCHEMA.format(CHUNKS) + _SCHEMA.format(PATHS)

_ENTRY = struct.Struct("<IBB")
_DTYPE = [("unit", "<u4"), ("first", "u1"), ("second", "u1")]
_MOST = 255
"""Counts end here: beyond that one more says nothing."""

_TOGETHER = 8
"""So many batches of about one size are put together."""

_LARGEST = 1 << 16
"""Batches of so many units stay as they are: what is put together has to fit into memory."""


def add_postings(connection: sqlite3.Connection, kind: str, units: Sequence[tuple[int, str, str]]) -> None:
    """Add units with their words of the first and of the second kind, separated by spaces; within the caller's transaction."""
    if not units:
        return
    entries: defaultdict[str, bytearray] = defaultdict(bytearray)
    pack = _ENTRY.pack
    for unit, first, second in units:
        counts = Counter(second.split())
        for term, count in Counter(first.split()).items():
            entries[term] += pack(unit, min(count, _MOST), min(counts.pop(term, 0), _MOST))
        for term, count in counts.items():
            entries[term] += pack(unit, 0, min(count, _MOST))
    _write(connection, kind, entries, len(units))
    _put_together(connection, kind)


def find_postings(connection: sqlite3.Connection, kind: str, terms: Sequence[str]) -> "dict[str, Entries]":
    """The postings of the terms that are there; in no order."""
    import numpy as np

    found: defaultdict[str, list[bytes]] = defaultdict(list)
    query = (
        f"SELECT p.term, p.entries FROM {kind}_batches b CROSS JOIN {kind}_postings p ON p.batch = b.id "
        "WHERE p.term IN ({})"
    )
    for term, entries in fetched(connection, query, terms):
        found[term].append(entries)
    return {term: np.frombuffer(b"".join(blobs), dtype=_DTYPE) for term, blobs in found.items()}


def batches(connection: sqlite3.Connection, kind: str) -> list[int]:
    """The numbers of the batches."""
    return [row[0] for row in connection.execute(f"SELECT id FROM {kind}_batches ORDER BY id")]


def thin_out(
    connection: sqlite3.Connection, kind: str, batch: int, keeps: "Callable[[NDArray[Any]], NDArray[np.bool_]]"
) -> None:
    """Drop the units of a batch that are not kept, within the caller's transaction."""
    import numpy as np

    kept: dict[str, bytes] = {}
    units: set[int] = set()
    for term, blob in connection.execute(f"SELECT term, entries FROM {kind}_postings WHERE batch = ?", (batch,)):
        entries = np.frombuffer(blob, dtype=_DTYPE)
        if len(left := entries[keeps(entries["unit"])]):
            kept[term] = left.tobytes()
            units.update(left["unit"].tolist())
    _remove(connection, kind, [batch])
    if units:
        _write(connection, kind, kept, len(units))


def _put_together(connection: sqlite3.Connection, kind: str) -> None:
    while small := _of_one_size(connection, kind):
        entries: defaultdict[str, bytearray] = defaultdict(bytearray)
        query = f"SELECT term, entries FROM {kind}_postings WHERE batch IN ({','.join('?' * len(small))})"
        for term, blob in connection.execute(query, list(small)):
            entries[term] += blob
        _remove(connection, kind, list(small))
        _write(connection, kind, entries, sum(small.values()))


def _of_one_size(connection: sqlite3.Connection, kind: str) -> dict[int, int]:
    """Batches to put together, with their sizes; none where no size has enough of them."""
    by_size: defaultdict[int, dict[int, int]] = defaultdict(dict)
    query = f"SELECT id, size FROM {kind}_batches WHERE size < ? ORDER BY id"
    for batch, size in connection.execute(query, (_LARGEST,)):
        by_size[size.bit_length() // 3][batch] = size
    return next((found for found in by_size.values() if len(found) >= _TOGETHER), {})


def _write(connection: sqlite3.Connection, kind: str, entries: Mapping[str, bytes | bytearray], size: int) -> None:
    batch = connection.execute(f"INSERT INTO {kind}_batches (size) VALUES (?)", (size,)).lastrowid
    rows: Iterable[tuple[object, ...]] = ((batch, term, bytes(blob)) for term, blob in sorted(entries.items()))
    connection.executemany(f"INSERT INTO {kind}_postings VALUES (?, ?, ?)", rows)


def _remove(connection: sqlite3.Connection, kind: str, gone: Sequence[int]) -> None:
    for table, column in (("postings", "batch"), ("batches", "id")):
        connection.executemany(f"DELETE FROM {kind}_{table} WHERE {column} = ?", [(one,) for one in gone])
