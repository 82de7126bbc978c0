"""SQLite connections that close themselves when nobody holds them any more."""

import contextlib
import sqlite3


class OwnedConnection(sqlite3.Connection):
    """Closed with whoever held it: a thread that ended, a store that was dropped. Python 3.13 and later warn of the others.

    To be made with `check_same_thread=False`, since the one who clears away may be another thread.
    """

    def __del__(self) -> None:
        """Close what is still open; what never opened has nothing to close."""
        with contextlib.suppress(sqlite3.Error):
            self.close()
