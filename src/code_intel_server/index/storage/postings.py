"""Which words stand in which units, and how often: an inverted index in batches, so that adding changes nothing that is there.

A unit is a chunk or a file, by number. It has words of two kinds; each posting is a unit with its two counts. Batches of
about the same size are put together as they become many: a word is then looked up in a few dozen of them at most.
"""

import sqlite3
import struct
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Entries = NDArray[np.void]
    """Postings of one term; fields `unit`, `first` and `second`."""

SCHEMA = """
CREATE TABLE postings (
    batch INTEGER NOT NULL, term TEXT NOT NULL, entries BLOB NOT NULL, PRIMARY KEY (batch, term)
) WITHOUT ROWID;
CREATE TABLE batches (id INTEGER PRIMARY KEY AUTOINCREMENT, size INTEGER NOT NULL);
"""

_ENTRY = struct.Struct("<IBB")
_DTYPE = [("unit", "<u4"), ("first", "u1"), ("second", "u1")]
_MOST = 255
"""Counts end here: beyond that one more says nothing."""

_TOGETHER = 8
"""So many batches of about one size are put together."""

_LARGEST = 1 << 16
"""Batches of so many units stay as they are: what is put together has to fit into memory."""

_TERMS_AT_ONCE = 500


def add_postings(connection: sqlite3.Connection, units: Sequence[tuple[int, str, str]]) -> None:
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
    _write(connection, entries, len(units))
    _put_together(connection)


def find_postings(connection: sqlite3.Connection, schema: str, terms: Sequence[str]) -> "dict[str, Entries]":
    """The postings of the terms that are there, in the database attached as `schema`; in no order."""
    import numpy as np

    found: defaultdict[str, list[bytes]] = defaultdict(list)
    for at in range(0, len(terms), _TERMS_AT_ONCE):
        part = terms[at : at + _TERMS_AT_ONCE]
        query = (
            f"SELECT p.term, p.entries FROM {schema}.batches b CROSS JOIN {schema}.postings p ON p.batch = b.id "  # noqa: S608
            f"WHERE p.term IN ({','.join('?' * len(part))})"
        )
        for term, entries in connection.execute(query, part):
            found[term].append(entries)
    return {term: np.frombuffer(b"".join(blobs), dtype=_DTYPE) for term, blobs in found.items()}


def thin_out(connection: sqlite3.Connection, keeps: "Callable[[NDArray[Any]], NDArray[np.bool_]]") -> None:
    """Drop the units that are not kept, batch by batch, within the caller's transaction."""
    import numpy as np

    for (batch,) in connection.execute("SELECT id FROM batches ORDER BY id").fetchall():
        kept: dict[str, bytes] = {}
        units: set[int] = set()
        for term, blob in connection.execute("SELECT term, entries FROM postings WHERE batch = ?", (batch,)):
            entries = np.frombuffer(blob, dtype=_DTYPE)
            if len(left := entries[keeps(entries["unit"])]):
                kept[term] = left.tobytes()
                units.update(left["unit"].tolist())
        _remove(connection, [batch])
        if units:
            _write(connection, kept, len(units))
    _put_together(connection)


def _put_together(connection: sqlite3.Connection) -> None:
    while batches := _of_one_size(connection):
        entries: defaultdict[str, bytearray] = defaultdict(bytearray)
        marks = ",".join("?" * len(batches))
        query = f"SELECT term, entries FROM postings WHERE batch IN ({marks})"  # noqa: S608
        for term, blob in connection.execute(query, list(batches)):
            entries[term] += blob
        _remove(connection, list(batches))
        _write(connection, entries, sum(batches.values()))


def _of_one_size(connection: sqlite3.Connection) -> dict[int, int]:
    """Batches to put together, with their sizes; none where no size has enough of them."""
    by_size: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for batch, size in connection.execute("SELECT id, size FROM batches WHERE size < ? ORDER BY id", (_LARGEST,)):
        by_size[size.bit_length() // 3][batch] = size
    return next((batches for batches in by_size.values() if len(batches) >= _TOGETHER), {})


def _write(connection: sqlite3.Connection, entries: Mapping[str, bytes | bytearray], size: int) -> None:
    batch = connection.execute("INSERT INTO batches (size) VALUES (?)", (size,)).lastrowid
    rows: Iterable[tuple[object, ...]] = ((batch, term, bytes(blob)) for term, blob in sorted(entries.items()))
    connection.executemany("INSERT INTO postings VALUES (?, ?, ?)", rows)


def _remove(connection: sqlite3.Connection, batches: Sequence[int]) -> None:
    for table, column in (("postings", "batch"), ("batches", "id")):
        connection.executemany(f"DELETE FROM {table} WHERE {column} = ?", [(one,) for one in batches])  # noqa: S608
