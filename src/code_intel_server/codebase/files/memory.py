"""What was found out about files before, kept while they look the same: a next page costs no second parse."""

import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Generic, NamedTuple, TypeVar

Remembered = TypeVar("Remembered")


class _Kept(NamedTuple, Generic[Remembered]):
    look: Hashable
    rows: Sequence[Remembered]


class FileMemory(Generic[Remembered]):
    """Rows by question about a file, for the one look it has; the longest unused forgotten beyond `most` rows. Safe to use from several threads."""

    def __init__(self, most: int = 20_000) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, _Kept[Remembered]] = OrderedDict()
        self._rows = 0

    def known(self, question: Hashable, look: Hashable) -> Sequence[Remembered] | None:
        """The rows kept under `question`, None where none are or the file looked otherwise then."""
        with self._lock:
            kept = self._kept.get(question)
            if kept is None or kept.look != look:
                return None
            self._kept.move_to_end(question)
            return kept.rows

    def keep(self, question: Hashable, look: Hashable, rows: Sequence[Remembered]) -> None:
        """Keep rows under `question`, in place of those for another look."""
        with self._lock:
            before = self._kept.pop(question, None)
            self._kept[question] = _Kept(look, rows)
            self._rows += len(rows) + 1 - (len(before.rows) + 1 if before else 0)
            while self._rows > self._most:
                _, gone = self._kept.popitem(last=False)
                self._rows -= len(gone.rows) + 1
