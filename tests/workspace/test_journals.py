"""Journals and the ledger: appended at once, read whatever happened to them."""

import fcntl
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest

from code_intel_server.workspace.state import journals
from code_intel_server.workspace.state.journals import Journal, LedgerFile, decode_record, encode_record

KEY = bytes(range(32))
SESSION = "20260201_123456"

APPENDER = """
import sys
from pathlib import Path
from code_intel_server.workspace.state.journals import Journal
journal = Journal(Path(sys.argv[1]), max_bytes=int(sys.argv[3]), keep=50)
for number in range(int(sys.argv[2])):
    journal.append({"who": sys.argv[4], "n": number})
    print(number, flush=True)
"""


def appender(path: Path, count: int, who: str, max_bytes: int = 1 << 20) -> "subprocess.Popen[str]":
    """A real process that appends `count` records and says so after each."""
    return subprocess.Popen(
        [sys.executable, "-c", APPENDER, str(path), str(count), str(max_bytes), who], stdout=subprocess.PIPE, text=True
    )


def ledger(path: Path, session: str = SESSION, key: bytes = KEY) -> LedgerFile:
    """The ledger as a process that has just begun sees it."""
    return LedgerFile(path, session, key)


def test_records_come_back_in_order_with_time_and_schema(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "logs" / "decisions.jsonl")
    for number in range(5):
        assert journal.append({"phase": "READY", "n": number})
    tail = journal.tail()
    assert [record["n"] for record in tail.records] == [0, 1, 2, 3, 4]
    assert tail.records[0]["schema"] == 1
    assert str(tail.records[0]["at"]).endswith("+00:00")
    assert not tail.truncated
    assert [record["n"] for record in journal.tail(2).records] == [3, 4]
    assert journal.tail(2).truncated


def test_no_file_yet_is_no_record(tmp_path: Path) -> None:
    assert Journal(tmp_path / "none.jsonl").tail() == journals.Tail(())


def test_a_torn_last_line_costs_that_line_and_the_next_record_stands_on_its_own(tmp_path: Path) -> None:
    path = tmp_path / "decisions.jsonl"
    journal = Journal(path)
    journal.append({"n": 1})
    journal.append({"n": 2})
    whole = path.read_bytes()
    second = whole.index(b"\n") + 1
    for length in range(second, len(whole) - 1):
        path.write_bytes(whole[:length])
        journal.append({"n": 3})
        assert [record["n"] for record in journal.tail().records] == [1, 3], length


def test_what_is_no_record_is_skipped_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "outcomes.jsonl"
    lines = [b'{"n": 1}', b"[1]", b"not json", b"\xff\xfe", b"[" * 60_000, b'{"schema": 99, "n": 2, "new": {"x": []}}', b"x" * 300_000, b'{"n": 3}']  # fmt: skip
    path.write_bytes(b"\n".join(lines) + b"\n")
    tail = Journal(path).tail()
    assert [record["n"] for record in tail.records] == [1, 2, 3]
    assert tail.records[1] == {"schema": 99, "n": 2, "new": {"x": []}}
    assert tail.skipped == 5


def test_the_end_of_a_gigabyte_is_read_at_once_and_in_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "decisions.jsonl"
    with path.open("wb") as stream:
        stream.truncate(1 << 30)
    Journal(path, max_bytes=1 << 40).append({"n": 1})
    really_read, read = os.pread, []

    def counted(descriptor: int, length: int, offset: int) -> bytes:
        data = really_read(descriptor, length, offset)
        read.append(len(data))
        return data

    monkeypatch.setattr(os, "pread", counted)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tail = Journal(path).tail()
    assert 0 < sum(read) <= 8 * 1024 * 1024  # of a gigabyte
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40_000  # kilobytes
    assert [record["n"] for record in tail.records] == [1]
    assert tail.truncated


def test_reading_stops_at_its_limit_of_bytes(tmp_path: Path) -> None:
    path = tmp_path / "decisions.jsonl"
    path.write_bytes(b"".join(b'{"n": %04d}\n' % n for n in range(1000, 2000)))
    tail = Journal(path).tail(max_bytes=120)
    assert [record["n"] for record in tail.records] == list(range(1990, 2000))[-len(tail.records) :]
    assert 8 <= len(tail.records) <= 10
    assert tail.truncated


def test_a_log_is_rotated_by_size_and_read_across_its_files(tmp_path: Path) -> None:
    path = tmp_path / "decisions.jsonl"
    journal = Journal(path, max_bytes=1000, keep=2)
    for number in range(100):
        journal.append({"n": number})
    assert {entry.name for entry in tmp_path.iterdir()} <= {path.name, f"{path.name}.1", f"{path.name}.2"}
    assert sum(entry.stat().st_size for entry in tmp_path.iterdir()) < 3300
    numbers = [record["n"] for record in journal.tail().records]
    assert numbers == list(range(100))[-len(numbers) :]
    assert len(numbers) > 20


def test_processes_that_append_and_rotate_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "outcomes.jsonl"
    children = [appender(path, 150, who, max_bytes=2000) for who in ("a", "b", "c")]
    for child in children:
        child.communicate(timeout=60)
    tail = Journal(path, keep=50).tail()
    assert tail.skipped == 0
    for who in ("a", "b", "c"):
        assert [record["n"] for record in tail.records if record["who"] == who] == list(range(150))


def test_a_killed_writer_has_lost_nothing_it_had_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "outcomes.jsonl"
    child = appender(path, 100_000, "a")
    assert child.stdout is not None
    acknowledged = [int(child.stdout.readline()) for _ in range(50)][-1]
    child.send_signal(signal.SIGKILL)
    child.communicate(timeout=10)
    numbers = [record["n"] for record in Journal(path).tail(200_000).records]
    assert numbers == list(range(len(numbers)))
    assert len(numbers) > acknowledged


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.mkdir(), lambda path: path.symlink_to("/dev/full")], ids=["fifo", "folder", "link"])  # fmt: skip
def test_a_log_that_cannot_be_written_or_read_stops_nobody(tmp_path: Path, make: object) -> None:
    assert callable(make)
    path = tmp_path / "decisions.jsonl"
    make(path)
    assert Journal(path).append({"n": 1}) is False
    assert Journal(path).tail().records == ()
    one = ledger(path)
    one.add("search_text", "EXPLORATION", "ok")
    assert len(one.entries()) == 1


def test_a_stopped_process_that_holds_the_file_keeps_nobody_waiting(tmp_path: Path) -> None:
    path = tmp_path / "decisions.jsonl"
    journal = Journal(path, max_bytes=200)
    journal.append({"n": 0})
    with path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        for number in range(1, 10):
            assert journal.append({"n": number})
    journal.append({"n": 10})
    assert [record["n"] for record in journal.tail().records] == list(range(11))
    assert path.with_name(f"{path.name}.1").exists(), "it is rotated once it is free"


def test_a_folder_that_a_repository_aims_elsewhere_gets_no_log(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".code-intel").mkdir()
    (tmp_path / ".code-intel" / "logs").symlink_to(tmp_path / "elsewhere")
    logs = tmp_path / ".code-intel" / "logs"
    assert Journal(logs / "decisions.jsonl").append({"n": 1}) is False
    ledger(logs / "ledger" / "x.jsonl").add("query", "Q1", "ok")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_record_stays_one_short_line_whatever_is_in_it() -> None:
    cyclic_free = {
        "text": "a\nb\u2028\ud800" * 10_000,
        "list": list(range(10_000)),
        "nan": float("nan"),
        "path": Path("x"),
    }
    for record in (cyclic_free, {str(n): "y" * 5000 for n in range(500)}, {"deep": {"x": [{"y": "z" * 9000}] * 500}}):
        line = encode_record(record)
        assert len(line) <= journals.MAX_RECORD_BYTES
        assert line.count(b"\n") == 1
        assert decode_record(line) is not None
    wide: object = "x" * 50
    for _ in range(4):
        wide = [wide] * 20
    assert json.loads(encode_record({"wide": wide})) == {"schema": 1, "oversized": True}
    assert json.loads(encode_record({"nan": float("inf"), "path": Path("x"), "none": None})) == {
        "nan": None,
        "path": "x",
        "none": None,
    }


def test_the_ledger_survives_a_restart_with_order_and_files(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "ledger" / f"{SESSION}.jsonl"
    first = ledger(path)
    first.add("search_text", "EXPLORATION", "ok", 3, ["src/a.py", "ü.py"])
    first.add("find_definitions", "EXPLORATION", "failed")
    again = ledger(path)
    assert again.entries() == first.entries()
    assert again.entries()[0].files == ("src/a.py", "ü.py")
    third = ledger(path).add("query", "Q1", "ok")
    assert third.seq == 3


def test_a_line_written_by_another_hand_counts_for_nothing(tmp_path: Path) -> None:
    path, other = tmp_path / "ledger.jsonl", tmp_path / "other.jsonl"
    ledger(path).add("search_text", "EXPLORATION", "ok")
    ledger(other, session="20260201_999999").add("analyze_impact", "IMPACT_ANALYSIS", "ok")
    ledger(other, key=b"x" * 32).add("semantic_search", "SEMANTIC", "ok")
    genuine = path.read_bytes()
    forged = json.dumps(
        {"schema": 1, "call": [2, "semantic_search", "SEMANTIC", "ok", 1, []], "mac": "0" * 32}
    ).encode()
    unsigned = json.dumps({"schema": 1, "call": [3, "query", "Q1", "ok", 1, []]}).encode()
    strange = [b'{"call": 5, "mac": "x"}', '{"call": [], "mac": "é"}'.encode(), b'{"call": [], "mac": 7}']
    path.write_bytes(b"\n".join([genuine + genuine.strip(), forged, unsigned, *strange, other.read_bytes()]))
    assert [call.tool for call in ledger(path).entries()] == ["search_text"]


def test_the_ledger_of_parallel_calls_counts_each_once(tmp_path: Path) -> None:
    one = ledger(tmp_path / "ledger.jsonl")
    threads = [
        Thread(target=lambda: [one.add("search_text", "EXPLORATION", "ok") for _ in range(25)]) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [call.seq for call in one.entries()] == list(range(1, 201))
    assert ledger(tmp_path / "ledger.jsonl").entries() == one.entries()


def test_the_files_of_a_call_are_capped_and_only_the_last_calls_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ledger.jsonl"
    one = ledger(path)
    call = one.add("search_files", "EXPLORATION", "ok", 5000, [f"{'d' * 600}/{number}" for number in range(5000)])
    assert 90 < len(call.files) < 120, "as many as fit into a line"
    assert ledger(path).entries() == one.entries()
    assert len(one.add("search_files", "EXPLORATION", "ok", 5000, ["x"] * 5000).files) == journals.MAX_ITEMS
    monkeypatch.setattr(journals, "MAX_LEDGER_ENTRIES", 10)
    few = ledger(path)
    for _ in range(30):
        few.add("query", "Q1", "ok")
    assert [entry.seq for entry in few.entries()] == list(range(23, 33))
    assert ledger(path).entries() == few.entries()


def test_a_full_disk_costs_no_call_of_the_running_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger.jsonl"
    one = ledger(path)
    one.add("search_text", "EXPLORATION", "ok")
    real = os.write

    def full(descriptor: int, data: bytes) -> int:
        if len(data) > 20:
            return real(descriptor, data[:20])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    one.add("find_definitions", "EXPLORATION", "ok")
    monkeypatch.undo()
    one.add("query", "EXPLORATION", "ok")
    assert [call.tool for call in one.entries()] == ["search_text", "find_definitions", "query"]
    assert [call.tool for call in ledger(path).entries()] == ["search_text", "query"]
