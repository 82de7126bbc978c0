"""What was found out about files before, kept while they look the same: a next page costs no second parse."""

import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

Row = TypeVar("Row")


class FileMemory(Generic[Row]):
    """Rows by key (which names the file's look), the longest unused forgotten beyond `most` rows. Safe to use from several threads."""

    def __init__(self, most: int = 20_000) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, Sequence[Row]] = OrderedDict()
        self._rows = 0

    def known(self, key: Hashable) -> Sequence[Row] | None:
        """The rows kept under `key`, None where none are."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key]

    def keep(self, key: Hashable, rows: Sequence[Row]) -> None:
        """Keep rows under `key`, unless some are."""
        with self._lock:
            if key not in self._kept:
                self._kept[key] = rows
                self._rows += len(rows) + 1
            while self._rows > self._most:
                _, gone = self._kept.popitem(last=False)
                self._rows -= len(gone) + 1
