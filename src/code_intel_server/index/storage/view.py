"""The chunks of one checkout as arrays: which there are, how long they are, what is embedded of them; one state of it."""

import sqlite3
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Flags = NDArray[np.bool_]

_FILES = (
    "SELECT f.id, f.first, f.last - f.first + 1, f.words, k.lengths, k.passages FROM named_files f "
    "JOIN shared.contents k ON k.id = f.content ORDER BY f.path"
)


class View:
    """A chunk's place is its position in the order of path and line: the same in every checkout with the same files."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Read the state that the connection has now."""
        import numpy as np

        rows = connection.execute(_FILES).fetchall()
        ids, first, counts, words, lengths, passages = zip(*rows, strict=True) if rows else ((),) * 6
        count = np.array(counts, dtype=np.int64)
        self.files: Ints = np.array(ids, dtype=np.int64)
        self.file_at: Ints = np.repeat(np.arange(len(rows)), count)
        before = np.repeat(np.cumsum(count) - count, count)
        self.units: Ints = np.repeat(np.array(first, dtype=np.int64), count) + np.arange(len(before)) - before
        own = np.frombuffer(b"".join(lengths), dtype="=u2").astype(np.float64)
        self.lengths: NDArray[np.float64] = own + np.array(words, dtype=np.float64)[self.file_at]
        self.passages: Ints = np.frombuffer(b"".join(passages), dtype="=i8")
        self.seqs: Ints = (self.files[self.file_at] << 32) | self.units

    def __len__(self) -> int:
        """How many chunks there are."""
        return len(self.units)

    def of_units(self, units: "NDArray[Any]") -> "tuple[Ints, Ints]":
        """Where the repository's chunks stand here, and which of the `units` each of these places is of."""
        return _find(units.astype("i8"), self.units, self._by_unit)

    def of_files(self, files: "NDArray[Any]") -> "tuple[Ints, Ints]":
        """Which of our files the numbers are, and which of the numbers each of these is."""
        return _find(files.astype("i8"), self.files, self._by_file)

    def of_seqs(self, seqs: Sequence[int]) -> dict[int, int]:
        """The places of chunks by their number; vanished ones are left out."""
        import numpy as np

        places, which = _find(np.array(seqs, dtype=np.int64), self.seqs, self._by_seq)
        return {seqs[at]: place for place, at in zip(places.tolist(), which.tolist(), strict=True)}

    def of_passages(self, keys: Iterable[str]) -> dict[int, str]:
        """The chunks (by their number) in which a passage of one of the keys stands, and which."""
        import numpy as np

        numbers = {int.from_bytes(bytes.fromhex(key), "big", signed=True): key for key in keys}
        places = np.flatnonzero(np.isin(self.passages, np.fromiter(numbers, dtype=np.int64)))
        passages = self.passages[places].tolist()
        return {seq: numbers[one] for seq, one in zip(self.seqs[places].tolist(), passages, strict=True)}

    def within(self, files: Collection[int]) -> "Flags":
        """Which chunks are of these files."""
        import numpy as np

        return np.isin(self.files, np.fromiter(files, dtype=np.int64))[self.file_at]

    @cached_property
    def _by_unit(self) -> "Ints":
        return self.units.argsort(kind="stable")

    @cached_property
    def _by_file(self) -> "Ints":
        return self.files.argsort(kind="stable")

    @cached_property
    def _by_seq(self) -> "Ints":
        return self.seqs.argsort(kind="stable")


def best_places(scores: "NDArray[Any]", limit: int) -> "Ints":
    """The places with the highest scores above 0, at most `limit`; of equal ones the first."""
    import numpy as np

    places = np.flatnonzero(scores > 0)
    if len(places) > limit:
        found = scores[places]
        places = places[found >= np.partition(found, -limit)[-limit]]
    return places[(-scores[places]).argsort(kind="stable")][:limit]


def _find(wanted: "Ints", among: "Ints", order: "Ints") -> "tuple[Ints, Ints]":
    """Every place of `among` that holds one of the wanted values, and which of them; `order` sorts it."""
    import numpy as np

    ordered = among[order]
    start, end = np.searchsorted(ordered, wanted, "left"), np.searchsorted(ordered, wanted, "right")
    count = end - start
    which = np.repeat(np.arange(len(wanted)), count)
    inside = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
    return order[start[which] + inside], which
