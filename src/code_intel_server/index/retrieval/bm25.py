"""BM25 over the chunks of one checkout, from the words of the repository's contents and those of the checkout's own paths.

The words' statistics are the checkout's: what other checkouts hold changes no score. Symbols and path count more than the
text, with the weights that are given; the constants are the usual ones.
"""

import math
import sqlite3
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from code_intel_server.index.storage import postings
from code_intel_server.index.storage.view import View

if TYPE_CHECKING:
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

_K1, _B = 1.2, 0.75
_LEAST_IDF = 1e-6


class FieldWeights(NamedTuple):
    """How much an occurrence counts, by where it is."""

    symbol: float
    path: float
    body: float


class _Occurrences(NamedTuple):
    """In which chunks a term stands, and how often in each: in its names, its path and its text."""

    places: "Ints"
    counts: "Floats"
    """A row each for symbol, path and body."""


class QuestionWords:
    """What the terms of one question are worth in one state of a checkout."""

    def __init__(self, connection: sqlite3.Connection, view: View, terms: Sequence[str]) -> None:
        text, paths = (postings.find_postings(connection, kind, terms) for kind in (postings.CHUNKS, postings.PATHS))
        self._view = view
        self._found = {term: _occurrences(view, text.get(term), paths.get(term)) for term in {*text, *paths}}
        mean = float(view.lengths.mean()) if len(view) else 1.0
        self._norm = _K1 * (1 - _B + _B * view.lengths / mean)

    def frequencies(self) -> dict[str, int]:
        """In how many chunks each term stands, the path counted in; those that stand in none are left out."""
        return {term: len(where.places) for term, where in self._found.items() if len(where.places)}

    def scores(self, terms: Sequence[str], weights: FieldWeights, *, every: bool = False) -> "Floats":
        """BM25 of every chunk; 0 where none of the terms stands, or with `every`, not each of them."""
        import numpy as np

        total, met = np.zeros(len(self._view)), np.zeros(len(self._view), dtype=np.int64)
        for term in dict.fromkeys(terms):
            if term not in self._found:
                continue
            places, by_field = self._found[term]
            counts = np.array(weights) @ by_field
            places, counts = places[counts > 0], counts[counts > 0]
            telling = math.log((len(total) - len(places) + 0.5) / (len(places) + 0.5)) if len(places) else 0.0
            total[places] += max(telling, _LEAST_IDF) * counts * (_K1 + 1) / (counts + self._norm[places])
            met[places] += 1
        if every:
            total[met < len(dict.fromkeys(terms))] = 0.0
        return total

    def said_by(self, seqs: Sequence[int]) -> Mapping[int, frozenset[str]]:
        """The terms that stand in each of these chunks, its path left out."""
        import numpy as np

        places = self._view.of_seqs(seqs)
        said = np.zeros(len(self._view), dtype=bool)
        found: dict[int, set[str]] = {seq: set() for seq in seqs}
        for term, (where, counts) in self._found.items():
            said[:] = False
            said[where] = counts[0] + counts[2] > 0
            for seq, place in places.items():
                if said[place]:
                    found[seq].add(term)
        return {seq: frozenset(terms) for seq, terms in found.items()}


def _occurrences(view: View, text: "NDArray[Any] | None", paths: "NDArray[Any] | None") -> _Occurrences:
    import numpy as np

    counts = np.zeros((3, len(view)))
    if text is not None:
        places, which = view.of_units(text["unit"])
        counts[0, places], counts[2, places] = text["first"][which], text["second"][which]
    if paths is not None:
        files, which = view.of_files(paths["unit"])
        of_file = np.zeros(len(view.files))
        of_file[files] = paths["second"][which]
        counts[1] = of_file[view.file_at]
    places = np.flatnonzero(counts.any(axis=0))
    return _Occurrences(places, counts[:, places])
