"""Vector search over the store itself: every vector compared, so exact; by the owner of the index and by who reads along."""

import threading
import time
from collections.abc import Collection
from typing import TYPE_CHECKING

from code_intel_server.index.storage.rows import OutboxItem, unpack
from code_intel_server.index.storage.store import Store
from code_intel_server.index.storage.view import View, best_places

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from code_intel_server.index.values import Matrix

_STALE_FRACTION = 0.2
UNUSED_SECONDS = 60.0


class BruteForce:
    """A matrix of the vectors of all passages, read when first asked for and extended as the store grows."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._edition: tuple[object, ...] = ()
        self._passages: NDArray[np.int64] | None = None
        self._matrix: Matrix | None = None
        self._placed: tuple[View, NDArray[np.int64]] | None = None
        self._used_at = 0.0

    def search(self, vector: "Matrix", limit: int, files: Collection[int] | None = None) -> dict[int, float]:
        """Cosine likeness of the `limit` nearest chunks by number; of those of `files` only, where given.

        A chunk that has just been removed may still be named; its row is then no longer to be found.
        """

        with self._lock:
            self._used_at = time.monotonic()
            view = self._store.view()
            passages, matrix, at = self._current(view, vector.shape[-1])
        if not len(passages):
            return {}
        scores = (matrix @ vector.reshape(-1))[at]
        scores[passages[at] != view.passages] = -1.0
        if files is not None:
            scores[~view.within(files)] = -1.0
        best = best_places(scores, limit)
        return dict(zip(view.seqs[best].tolist(), scores[best].tolist(), strict=True))

    def _current(self, view: View, dim: int) -> "tuple[NDArray[np.int64], Matrix, NDArray[np.int64]]":
        """The passages in order of their numbers, their vectors, and where in them each chunk of the view is."""
        import numpy as np

        edition = self._store.vectors_edition()
        known, matrix = self._passages, self._matrix
        same = self._placed is not None and self._placed[0] is view and edition == self._edition
        if same and self._placed is not None and known is not None and matrix is not None and matrix.shape[1] == dim:
            return known, matrix, self._placed[1]
        many = known is not None and len(known) > len(view) * (1 + _STALE_FRACTION)
        if known is None or matrix is None or many or edition != self._edition or matrix.shape[1] != dim:
            known, matrix = np.zeros(0, dtype=np.int64), np.zeros((0, dim), dtype=np.float32)
        lacking = np.setdiff1d(view.passages, known)
        if len(lacking):
            found, vectors = self._store.vectors(dim, lacking.tolist())
            known = np.concatenate([known, np.array(found, dtype=np.int64)])
            order = known.argsort(kind="stable")
            known, matrix = known[order], np.concatenate([matrix, vectors])[order]
        at = np.searchsorted(known, view.passages).clip(max=max(len(known) - 1, 0))
        self._passages, self._matrix, self._edition = known, matrix, edition
        # What has no vector yet is asked for again: another process may bring it.
        complete = bool(len(known)) and bool((known[at] == view.passages).all())
        self._placed = (view, at) if complete else None
        return known, matrix, at

    def forget_unused(self) -> None:
        """Give the memory back where nobody has searched here for a minute: ChromaDB answers again."""
        if self._matrix is None:
            return
        with self._lock:
            if time.monotonic() - self._used_at >= UNUSED_SECONDS:
                self._passages, self._matrix, self._placed = None, None, None


def compared(items: list[OutboxItem], vector: "Matrix") -> dict[str, float]:
    """Cosines of what waits for ChromaDB, each by the vector it has now."""
    waiting = {item.id: item.vector for item in items if item.vector is not None}
    if not waiting:
        return {}
    scores = unpack([*waiting.values()], int(vector.shape[-1])) @ vector.reshape(-1)
    return dict(zip(waiting, map(float, scores), strict=True))
