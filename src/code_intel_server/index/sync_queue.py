"""Whose turn it is to bring the store up to date: one run at a time, and a rebuild before whoever only takes in changes.

A run whose work a rebuild is about to throw away ends, and its caller waits for that rebuild as everybody does who comes
while it is under way: all of them are told what it did. Nobody waits longer than wanted: who waits looks up often.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from code_intel_server.index.values import SyncReport

POLL_SECONDS = 0.2
"""How often who waits asks whether to go on waiting."""

_PASSING_SECONDS = 0.005


class SyncQueue:
    """Hands out the turns of one store's runs."""

    def __init__(self) -> None:
        self.running = threading.Lock()
        """Held by the run under way."""
        self.in_vain = threading.Event()
        """Set where all is about to be done anew: the run that is under way may end."""
        self.rebuilt: SyncReport | None = None
        """What the last rebuild that came to its end did."""
        self._asking = threading.Lock()
        self._rebuilds_asked = 0

    @contextlib.contextmanager
    def asked(self, *, rebuild: bool) -> Iterator[SyncReport | None]:
        """Hand over the report of the last rebuild; where one is asked for, what is under way ends unless that is one too."""
        with self._asking:
            self._rebuilds_asked += rebuild
            if rebuild and self._rebuilds_asked == 1:
                self.in_vain.set()
            earlier = self.rebuilt
        try:
            yield earlier
        finally:
            with self._asking:
                self._rebuilds_asked -= rebuild
                if not self._rebuilds_asked:
                    self.in_vain.clear()  # of one that was given up before its turn

    @contextlib.contextmanager
    def taken(self, *, rebuild: bool, gives_up: Callable[[], bool]) -> Iterator[bool]:
        """The caller's turn for the length of the block; False where `gives_up`, asked while waiting, said so."""
        mine = self._wait(gives_up, rebuild=rebuild)
        try:
            if rebuild and mine:
                self.in_vain.clear()
            yield mine
        finally:
            if mine:
                self.running.release()

    def _wait(self, gives_up: Callable[[], bool], *, rebuild: bool) -> bool:
        while True:
            if self.running.acquire(timeout=POLL_SECONDS):
                if rebuild or not self.in_vain.is_set():
                    return True
                self.running.release()
                time.sleep(_PASSING_SECONDS)  # whoever asked for the rebuild goes first
            if gives_up():
                return False
