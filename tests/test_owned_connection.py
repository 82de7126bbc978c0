"""The write-ahead log beside a database stays small, also after what was written at once."""

import sqlite3
from pathlib import Path

import pytest

from code_intel_server.common.owned_connection import OwnedConnection, bound_log, lengthen_log, shorten_log, transaction

MEGABYTE = 1 << 20
LOG_AT_MOST = 4.5 * MEGABYTE
"""The log is looked at when a transaction ends: it may be over its 4 MB by one of them."""


@pytest.fixture
def written(tmp_path: Path) -> OwnedConnection:
    connection = OwnedConnection(tmp_path / "x.sqlite3", isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("CREATE TABLE rows (data BLOB)")
    bound_log(connection)
    return connection


def put(connection: OwnedConnection, megabytes: float) -> int:
    """Write so much in transactions of 64 KiB; how long the log became meanwhile."""
    [path] = [row[2] for row in connection.execute("PRAGMA database_list")]
    largest = 0
    for _ in range(int(megabytes * 16)):
        connection.execute("INSERT INTO rows VALUES (zeroblob(65000))")
        largest = max(largest, Path(f"{path}-wal").stat().st_size)
    return largest


def test_the_log_is_emptied_at_four_megabytes_however_much_is_written(written: OwnedConnection) -> None:
    assert 3 * MEGABYTE < put(written, 30) < LOG_AT_MOST


def test_meanwhile_the_log_may_be_long_and_is_short_again_with_the_next_write(
    written: OwnedConnection, tmp_path: Path
) -> None:
    lengthen_log(written)
    assert 12 * MEGABYTE < put(written, 30) < 18 * MEGABYTE
    shorten_log(written)
    put(written, 0.1)
    assert (tmp_path / "x.sqlite3-wal").stat().st_size < LOG_AT_MOST
    assert put(written, 10) < LOG_AT_MOST


def test_a_transaction_longer_than_the_log_leaves_no_long_log(written: OwnedConnection, tmp_path: Path) -> None:
    written.execute("BEGIN")
    put(written, 12)
    written.execute("COMMIT")
    put(written, 0.1)
    assert (tmp_path / "x.sqlite3-wal").stat().st_size < LOG_AT_MOST


def test_a_connection_closed_meanwhile_ends_the_long_log_without_an_error(written: OwnedConnection) -> None:
    lengthen_log(written)
    written.close()
    shorten_log(written)


def test_a_transaction_that_cannot_be_committed_leaves_none_open(written: OwnedConnection) -> None:
    with pytest.raises(sqlite3.OperationalError, match="cannot commit"), transaction(written):
        unfinished = written.execute("INSERT INTO rows VALUES ('a'), ('b') RETURNING data")
    assert not written.in_transaction
    unfinished.close()
    with transaction(written):
        written.execute("INSERT INTO rows VALUES ('c')")
    assert written.execute("SELECT data FROM rows").fetchall() == [("c",)]


def test_what_went_wrong_is_told_also_where_sqlite_has_ended_the_transaction_itself(written: OwnedConnection) -> None:
    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"), transaction(written):
        written.execute("CREATE TABLE names (name TEXT UNIQUE ON CONFLICT ROLLBACK)")
        written.execute("INSERT INTO names VALUES ('a')")
        written.execute("INSERT INTO names VALUES ('a')")
    assert not written.in_transaction
