"""Vector search over the store itself: every vector compared, so exact; by the owner of the index and by who reads along."""

import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from code_intel_server.index.storage.rows import OutboxItem, unpack
from code_intel_server.index.storage.store import Store

if TYPE_CHECKING:
    from code_intel_server.index.values import Matrix

_STALE_FRACTION = 0.2
UNUSED_SECONDS = 60.0


class BruteForce:
    """A matrix of all vectors, read when first asked for and extended as the store grows."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._seqs: list[int] = []
        self._matrix: Matrix | None = None
        self._version: tuple[object, ...] = ()
        self._used_at = 0.0

    def search(self, vector: "Matrix", limit: int, allowed: Sequence[int] | None = None) -> dict[int, float]:
        """Cosine likeness of the `limit` nearest chunks by sequence number; of `allowed` only, where given.

        A chunk that has just been removed may still be named; its row is then no longer to be found.
        """
        import numpy as np

        with self._lock:
            self._used_at = time.monotonic()
            matrix, seqs = self._current(vector.shape[-1])
        if not seqs:
            return {}
        scores = matrix @ vector.reshape(-1)
        if allowed is not None:
            scores[~np.isin(np.asarray(seqs), np.asarray(allowed, dtype=np.int64))] = -1.0
        count = min(limit, len(seqs))
        best = np.argpartition(-scores, count - 1)[:count]
        return {seqs[at]: float(scores[at]) for at in best if scores[at] > 0}

    def _current(self, dim: int) -> "tuple[Matrix, list[int]]":
        import numpy as np

        version = self._store.vectors_version()
        matrix = self._matrix
        if matrix is not None and matrix.shape[1] == dim and self._version == version:
            return matrix, self._seqs
        keep = (
            matrix is not None
            and matrix.shape[1] == dim
            and self._version[:2] == version[:2]
            and len(self._seqs) <= self._store.count("chunks") * (1 + _STALE_FRACTION)
        )
        seqs, new = self._store.vectors(dim, after=self._seqs[-1] if keep and self._seqs else 0)
        if keep and matrix is not None:
            self._seqs = [*self._seqs, *seqs]
            matrix = np.concatenate([matrix, new]) if len(seqs) else matrix
        else:
            self._seqs, matrix = list(seqs), new
        self._matrix, self._version = matrix, version
        return matrix, self._seqs

    def forget_unused(self) -> None:
        """Give the memory back where nobody has searched here for a minute: ChromaDB answers again."""
        if self._matrix is None:
            return
        with self._lock:
            if time.monotonic() - self._used_at >= UNUSED_SECONDS:
                self._seqs, self._matrix, self._version = [], None, ()


def compared(items: list[OutboxItem], vector: "Matrix") -> dict[str, float]:
    """Cosines of what waits for ChromaDB, each by the vector it has now."""
    waiting = {item.id: item.vector for item in items if item.vector is not None}
    if not waiting:
        return {}
    scores = unpack([*waiting.values()], int(vector.shape[-1])) @ vector.reshape(-1)
    return dict(zip(waiting, map(float, scores), strict=True))
