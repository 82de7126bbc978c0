"""What an index or a tree holds, of a million files too: git's own listing, looked into where a path is asked for.

A dictionary of as many objects would take three times the listing's size, for as long as the server runs.
"""

import os
import re
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from sys import intern

_ROW = re.compile(rb"(?:(\S) )?([0-7]{6}) (?:[a-z]+ )?([0-9a-f]+)(?: [0-3])?\t([^\0]+)\0")
"""A row of `ls-files -s -z`, with or without `-t`, and of `ls-tree -z`."""


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """What an index holds for a path; `skipped` where a sparse checkout left it out of the working tree."""

    mode: str
    oid: str
    skipped: bool = False


class IndexEntries(Mapping[str, IndexEntry]):
    """Path → entry out of `ls-files -t -s -z` or `ls-tree -r -z`, in git's order; of an unmerged path the last stage.

    Raises ValueError for output that is no such listing.
    """

    def __init__(self, output: bytes = b"") -> None:
        self._output = output
        self._starts = array("Q")
        last, read, in_order = b"", 0, True
        for row in _ROW.finditer(output):
            if row[4] == last:
                self._starts[-1] = row.start()
            else:
                self._starts.append(row.start())
            in_order &= last <= row[4]
            last, read = row[4], read + row.end() - row.start()
        if read != len(output):
            raise ValueError("a listing of git's that cannot be read")
        if not in_order:  # a damaged or forged tree
            by_path = {self._path_at(start): start for start in self._starts}
            self._starts = array("Q", (by_path[path] for path in sorted(by_path)))

    def __getitem__(self, path: str) -> IndexEntry:
        """The entry of a path. Raises KeyError where there is none."""
        try:
            wanted = os.fsencode(path)
        except UnicodeEncodeError:  # no file has such a name
            raise KeyError(path) from None
        place = bisect_left(self._starts, wanted, key=self._path_at)
        if place == len(self._starts) or self._path_at(self._starts[place]) != wanted:
            raise KeyError(path)
        return self._row_at(self._starts[place])[1]

    def __iter__(self) -> Iterator[str]:
        """The paths in git's order."""
        return (os.fsdecode(self._path_at(start)) for start in self._starts)

    def __len__(self) -> int:
        """How many paths there are."""
        return len(self._starts)

    @property
    def skips(self) -> bool:
        """Whether a sparse checkout left out any of it."""
        return self._output.startswith(b"S ") or b"\0S " in self._output

    def is_same(self, other: "IndexEntries") -> bool:
        """Whether git listed the other in the very same words: told without looking at a single row."""
        return self._output == other._output

    def repositories(self) -> dict[str, str]:
        """Path → commit of the repositories within; told at once where there is none."""
        if b"160000 " not in self._output:
            return {}
        return {os.fsdecode(path): entry.oid for path, entry in self.rows() if entry.mode == "160000"}

    def rows(self, below: str = "") -> Iterator[tuple[bytes, IndexEntry]]:
        """Every path, behind `below`, as git wrote it, with its entry; in git's order, which is that of the bytes."""
        prefix = os.fsencode(below)
        for start in self._starts:
            path, entry = self._row_at(start)
            yield prefix + path, entry

    def _path_at(self, start: int) -> bytes:
        begin = self._output.index(b"\t", start) + 1
        return self._output[begin : self._output.index(b"\0", begin)]

    def _row_at(self, start: int) -> tuple[bytes, IndexEntry]:
        row = _ROW.match(self._output, start)
        assert row is not None  # it matched here before
        return row[4], IndexEntry(intern(row[2].decode()), row[3].decode(), row[1] == b"S")


def side_by_side(*listings: Iterator[tuple[bytes, IndexEntry]]) -> Iterator[tuple[str, tuple[IndexEntry | None, ...]]]:
    """Every path that one of the `rows` holds, once, with what each of them holds for it; no listing is kept in memory."""
    heads = [next(rows, None) for rows in listings]
    while there := [head[0] for head in heads if head]:
        path = min(there)
        held = [head[1] if head and head[0] == path else None for head in heads]
        for place, rows in enumerate(listings):
            if held[place]:
                heads[place] = next(rows, None)
        yield os.fsdecode(path), tuple(held)
