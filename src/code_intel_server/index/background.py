"""Keeps the store up to date without anybody waiting for it."""

import sqlite3
import threading
import time
from collections.abc import Callable

from code_intel_server.contract import packaged_message
from code_intel_server.errors import CodeIntelError
from code_intel_server.index.sync import Synchroniser
from code_intel_server.index.values import SyncProgress, SyncReport

RESCAN_SECONDS = 10.0
RESCAN_COST = 50
"""A look at all files is due after this many times what the last one took, at least `RESCAN_SECONDS`."""

END_SECONDS = 5.0
"""How long a close waits for a running sync to end at its next batch."""

_ENDED_BADLY = "The last sync of the index ended unexpectedly; the next one goes on from there."


class BackgroundSync:
    """Runs syncs in a daemon thread, at most one at a time, and remembers how the last one went."""

    def __init__(
        self, synchroniser: Synchroniser, on_done: Callable[[], None], on_damage: Callable[[str], None]
    ) -> None:
        self._synchroniser = synchroniser
        self._on_done = on_done
        self._on_damage = on_damage
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._due_at = 0.0
        self.trouble = ""
        """Why the last sync failed, '' where it did not."""

    @property
    def running(self) -> bool:
        """Whether a sync is under way in the background."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def ran(self) -> bool:
        """Whether this process has looked at all files once."""
        return self._due_at > 0

    def start(self, first: Callable[[str], float] | None = None) -> threading.Thread:
        """Start a sync unless one runs; `first` orders the files. Returns the thread that does it."""
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                thread = threading.Thread(target=self._work, args=(first,), name="index-sync", daemon=True)
                thread.start()  # may fail where there are no more threads
                self._thread = thread
            return self._thread

    def start_if_due(self) -> None:
        """Look again where the last look was a while ago; often in small projects, seldom in huge ones."""
        if self.ran and not self._stop.is_set() and time.monotonic() >= self._due_at:
            self.start()

    def run_now(
        self, progress: SyncProgress | None, should_stop: Callable[[], bool], *, anew: bool = False
    ) -> SyncReport:
        """Sync in the calling thread (after one that may be running), from nothing with `anew`.

        Raises sqlite3.Error, CodeIntelError, OSError.
        """
        started = time.monotonic()
        try:
            report = self._synchroniser.run(
                progress=progress, should_stop=lambda: self._stop.is_set() or should_stop(), anew=anew
            )
        finally:
            self._on_done()
        self.trouble = ""
        self._set_due(time.monotonic() - started if not report.chunks else 0.0)
        return report

    def stop(self) -> None:
        """Let a running sync end at its next batch, and wait for that (`END_SECONDS` at most); one that starts now ends at once."""
        self._stop.set()
        # Not between the making of a thread and its start: only one that was started can be waited for.
        with self._lock:
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(END_SECONDS)

    def _work(self, first: Callable[[str], float] | None) -> None:
        # Stands until a run has ended in a way that we know.
        self.trouble = _ENDED_BADLY
        started = time.monotonic()
        scan_seconds = 0.0
        try:
            report = self._run(first)
            scan_seconds = 0.0 if report.chunks else time.monotonic() - started
            self.trouble = ""
        except CodeIntelError as error:
            self.trouble = f"The index could not be brought up to date: {packaged_message(error)}"
        except (sqlite3.Error, OSError) as error:
            self.trouble = f"The index could not be brought up to date: {error}"
        finally:
            self._set_due(scan_seconds)
            self._on_done()

    def _run(self, first: Callable[[str], float] | None) -> SyncReport:
        try:
            return self._synchroniser.run(first=first, should_stop=self._stop.is_set)
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError as error:
            self._on_damage(str(error))
        # What is empty now is filled at once: until the next look is due it would pass for the whole index.
        return self._synchroniser.run(first=first, should_stop=self._stop.is_set)

    def _set_due(self, scan_seconds: float) -> None:
        self._due_at = time.monotonic() + max(RESCAN_SECONDS, RESCAN_COST * scan_seconds)
