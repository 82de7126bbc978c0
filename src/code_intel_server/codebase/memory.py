"""What was found out about files before, kept while they look the same: a next page costs no second parse."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

Row = TypeVar("Row")


class FileMemory(Generic[Row]):
    """Rows by key (which names the file's look), the longest unused forgotten beyond `most` rows. Safe to use from several threads."""

    def __init__(self, most: int = 20_000) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, Sequence[Row]] = OrderedDict()
        self._rows = 0

    def get(self, key: Hashable, make: Callable[[], Sequence[Row] | None]) -> Sequence[Row] | None:
        """The rows kept under `key`, else those that `make` makes; None, which is not kept, where it makes none."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        rows = make()
        if rows is None:
            return None
        with self._lock:
            if key not in self._kept:
                self._kept[key] = rows
                self._rows += len(rows) + 1
            while self._rows > self._most:
                _, gone = self._kept.popitem(last=False)
                self._rows -= len(gone) + 1
        return rows
