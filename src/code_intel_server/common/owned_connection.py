"""SQLite connections that close themselves when nobody holds them any more, and whose write-ahead log stays small."""

import contextlib
import sqlite3
from collections.abc import Iterator

_LOG_PAGES = 1000
_LONG_LOG_PAGES = 4000
"""Of 4 KiB: beyond, what is written is moved from the log into the file."""


class OwnedConnection(sqlite3.Connection):
    """Closed with its owner: a thread that ended, a store that was dropped. Python 3.13 and later warn of the others.

    To be made with `check_same_thread=False`, since the one who clears away may be another thread.
    """

    def __del__(self) -> None:
        """Close what is still open; what never opened has nothing to close."""
        with contextlib.suppress(sqlite3.Error):
            self.close()


def bound_log(connection: sqlite3.Connection) -> None:
    """Empty the log at 4 MB, and let no larger file of it stay: SQLite would keep it as large as it ever was."""
    connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
    connection.execute(f"PRAGMA journal_size_limit = {_LOG_PAGES * 4096}")


def lengthen_log(connection: sqlite3.Connection) -> None:
    """From now on let the log of this connection grow four times as long: what is written at once waits less for the disk."""
    connection.execute(f"PRAGMA wal_autocheckpoint = {_LONG_LOG_PAGES}")


def shorten_log(connection: sqlite3.Connection) -> None:
    """The end of `lengthen_log`. Not while another thread is in a transaction of this connection: it could not be committed."""
    # The connection may have been closed meanwhile, because its file was replaced.
    with contextlib.suppress(sqlite3.Error):
        connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing. Whatever goes wrong, the committing included, leaves the connection ready for the next one."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # A full disk has ended it already; and nothing is reported here instead of what went wrong.
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
