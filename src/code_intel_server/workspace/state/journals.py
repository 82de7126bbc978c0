"""Append-only JSON lines: the ledger of a session, the decisions and the outcomes.

A record is one line, written by one `write` to a descriptor opened for appending: a killed process loses at most the line
it was writing. Readers take whatever is whole: a torn line, a line of a newer version's making, or a gigabyte of them
neither stop nor swamp anyone. Nothing here is synced to the disk: after a power loss a lookup may have to be repeated.
"""

import contextlib
import fcntl
import hashlib
import hmac
import json
import os
import stat
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from code_intel_server.workspace.files import make_folder, read_regular, write_all
from code_intel_server.workspace.paths import aimed_elsewhere
from code_intel_server.workspace.values import LedgerEntry

JOURNAL_SCHEMA = 1
MAX_RECORD_BYTES = 64 * 1024
MAX_TEXT_CHARACTERS = 2000
MAX_ITEMS = 200
MAX_LEDGER_ENTRIES = 10_000
MAX_LEDGER_BYTES = 16 * 1024 * 1024
_READS_BYTES = 4 * 1024 * 1024

JournalRecord = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Tail:
    """The last records of a journal, oldest first; `skipped` lines were no records, `truncated` where more lie before."""

    records: tuple[dict[str, object], ...]
    skipped: int = 0
    truncated: bool = False


class Journal:
    """A log that several processes may append to; rotated by size, the `keep` older files next to it as `.1`, `.2`, …"""

    def __init__(self, path: Path, *, max_bytes: int = 5 * 1024 * 1024, keep: int = 3) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._keep = keep

    def append(self, record: JournalRecord) -> bool:
        """Add a record with its `schema` and the time `at`; long texts and lists are cut. False where it cannot be written.

        A log that cannot be written stops nobody's work.
        """
        stamped = {"schema": JOURNAL_SCHEMA, "at": datetime.now(UTC).isoformat(timespec="milliseconds"), **record}
        try:
            with _appending(self._path) as descriptor:
                if _append_line(descriptor, encode_record(stamped)) > self._max_bytes:
                    self._rotate(descriptor)
        except OSError:
            return False
        return True

    def tail(self, count: int = 1000, *, max_bytes: int = 8 * 1024 * 1024) -> Tail:
        """The last `count` records over all files, reading at most `max_bytes`."""
        records: list[dict[str, object]] = []
        skipped, left, truncated = 0, max_bytes, False
        for path in (self._path, *(self._rotated(number) for number in range(1, self._keep + 1))):
            for line in _lines_backwards(path, left):
                if len(records) == count:
                    return Tail(tuple(reversed(records)), skipped, truncated=True)
                record = decode_record(line)
                if record is None:
                    skipped += 1
                else:
                    records.append(record)
            size = _size(path)
            truncated = truncated or size > left
            left = max(0, left - size)
        return Tail(tuple(reversed(records)), skipped, truncated)

    def _rotated(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")

    def _rotate(self, descriptor: int) -> None:
        """Move every file one number on; the last falls off. One process does it; whoever else is writing writes on.

        A line that another process adds to the file just moved is in the journal all the same.
        """
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            moved = not os.path.samestat(os.fstat(descriptor), self._path.lstat())
        except (BlockingIOError, FileNotFoundError):
            return
        if moved:
            return
        for number in range(self._keep, 0, -1):
            source = self._path if number == 1 else self._rotated(number - 1)
            with contextlib.suppress(FileNotFoundError):
                source.replace(self._rotated(number))


class LedgerFile:
    """The server's own record of the tools that ran in one session (SPEC 2), for any number of threads of one process.

    Every line carries an HMAC over the session and itself, so that a line written by another hand counts for nothing. The last
    MAX_LEDGER_ENTRIES calls are kept in memory and read back after a restart.
    """

    def __init__(self, path: Path, session_id: str, key: bytes, reads: Path | None = None) -> None:
        self._path = path
        self._reads = reads
        self._session = session_id.encode()
        self._key = key
        self._mutex = threading.Lock()
        self._ended = False
        self._entries: deque[LedgerEntry] = deque(self._stored(), maxlen=MAX_LEDGER_ENTRIES)

    def entries(self) -> tuple[LedgerEntry, ...]:
        """Every call of this session in order."""
        with self._mutex:
            return tuple(self._entries)

    def reads(self) -> frozenset[str]:
        """The files that the client has read by its own tools, as far as its hook noted it (`cli.hook`)."""
        try:
            lines = read_regular(self._reads, _READS_BYTES).decode().splitlines() if self._reads else []
            found = [json.loads(line) for line in lines]
        except (OSError, ValueError, RecursionError):
            return frozenset()
        return frozenset(path for path in found if isinstance(path, str))

    def add(
        self,
        tool: str,
        phase: str,
        outcome: str,
        results: int = 0,
        files: Sequence[str] = (),
        tree: str = "",
        asks: Sequence[str] = (),
    ) -> LedgerEntry:
        """Record a call: in memory for certain, and in the file at once where it can be written. `files` is cut after 200, or where a line is full."""
        with self._mutex:
            seq = self._entries[-1].seq + 1 if self._entries else 1
            call = LedgerEntry(
                seq, tool, phase, outcome, results, _fitting([*asks, *files])[len(asks) :], tree, tuple(asks)
            )
            self._entries.append(call)
            if self._ended:
                return call
            with contextlib.suppress(OSError), _appending(self._path) as descriptor:
                _append_line(descriptor, self._line(call))
            return call

    @contextlib.contextmanager
    def ending(self) -> Iterator[None]:
        """Write nothing any more, unless the body fails: the file goes with its session, and a lookup that ends later must not
        make it again; but a session that could not be ended goes on, and so does what is kept of it."""
        with self._mutex:
            self._ended = True
        try:
            yield
        except BaseException:
            with self._mutex:
                self._ended = False
            raise

    def _line(self, call: LedgerEntry) -> bytes:
        content = [
            call.seq,
            call.tool,
            call.phase,
            call.outcome,
            call.results,
            list(call.files),
            call.tree,
            list(call.asks),
        ]
        # Not `encode_record`: what is signed must not be shortened. `add` has made it fit.
        return json.dumps({"schema": JOURNAL_SCHEMA, "call": content, "mac": self._mac(content)}).encode() + b"\n"

    def _mac(self, content: Sequence[object]) -> str:
        message = b"\0".join((b"ledger", self._session, json.dumps(content).encode()))
        return hmac.new(self._key, message, hashlib.sha256).hexdigest()[:32]

    def _stored(self) -> list[LedgerEntry]:
        """The calls in the file, each sequence number once, in order."""
        calls: dict[int, LedgerEntry] = {}
        for line in _lines_backwards(self._path, MAX_LEDGER_BYTES):
            call = self._call(decode_record(line))
            if call is not None:
                calls.setdefault(call.seq, call)
            if len(calls) >= MAX_LEDGER_ENTRIES:
                break
        return [calls[seq] for seq in sorted(calls)]

    def _call(self, record: dict[str, object] | None) -> LedgerEntry | None:
        content = (record or {}).get("call")
        mac = (record or {}).get("mac")
        if not isinstance(content, list) or not isinstance(mac, str) or not mac.isascii():
            return None
        if not hmac.compare_digest(mac, self._mac(content)):
            return None
        # Its form is ours: we have signed it; release 1.16 without a tree and what was asked.
        later: list[object] = ["", []]
        seq, tool, phase, outcome, results, files, tree, asks = content + later[len(content) - 6 :]
        named, asked = tuple(map(str, files)), tuple(map(str, asks))
        return LedgerEntry(int(seq), str(tool), str(phase), str(outcome), int(results), named, str(tree), asked)


def encode_record(record: JournalRecord) -> bytes:
    """A record as one line of ASCII JSON, texts and lists cut so that it stays within MAX_LINE_BYTES."""
    for characters, items in ((MAX_TEXT_CHARACTERS, MAX_ITEMS), (200, 50), (40, 10)):
        line = json.dumps(_short(record, characters, items), ensure_ascii=True).encode("ascii") + b"\n"
        if len(line) <= MAX_RECORD_BYTES:
            return line
    return json.dumps({"schema": JOURNAL_SCHEMA, "oversized": True}).encode("ascii") + b"\n"


def decode_record(line: bytes) -> dict[str, object] | None:
    """The record of a line; None for what is none. Fields we do not know stay: a newer version may have written them."""
    if not line or len(line) > MAX_RECORD_BYTES:
        return None
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _short(value: object, characters: int, items: int) -> object:
    if isinstance(value, str):
        return value if len(value) <= characters else f"{value[:characters]}…"
    if isinstance(value, Mapping):
        return {str(name)[:100]: _short(inner, characters, items) for name, inner in list(value.items())[:items]}
    if isinstance(value, list | tuple | set | frozenset):
        return [_short(inner, characters, items) for inner in list(value)[:items]]
    if isinstance(value, float) and not -1e308 <= value <= 1e308:
        return None
    return value if value is None or isinstance(value, bool | int | float) else str(value)[:characters]


def _fitting(names: Sequence[str]) -> tuple[str, ...]:
    """As many of `names` as fit into one line of the ledger, at most MAX_ITEMS."""
    kept: list[str] = []
    left = MAX_RECORD_BYTES - 4096
    for name in names[:MAX_ITEMS]:
        left -= len(json.dumps(name)) + 2
        if left < 0:
            break
        kept.append(name)
    return tuple(kept)


@contextlib.contextmanager
def _appending(path: Path) -> Iterator[int]:
    """A descriptor that appends to a regular file, made with its folder where it is missing; never waits."""
    if aimed_elsewhere(path):
        raise OSError("a link leads out of the folder")
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o644)
    except FileNotFoundError:
        make_folder(path.parent)
        descriptor = os.open(path, flags, 0o644)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("not a regular file")
        yield descriptor
    finally:
        os.close(descriptor)


def _append_line(descriptor: int, line: bytes) -> int:
    """Add a line, behind a torn one on a new line; how long the file is then, as far as this process has seen it."""
    end = os.fstat(descriptor).st_size
    torn = end > 0 and os.pread(descriptor, 1, end - 1) != b"\n"
    write_all(descriptor, b"\n" + line if torn else line)
    return end + len(line)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _lines_backwards(path: Path, max_bytes: int) -> Iterator[bytes]:
    """The whole lines in the last `max_bytes` of a regular file, the last first; over-long ones come empty, blank ones not."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    try:
        status = os.fstat(descriptor)
        start = max(0, status.st_size - max_bytes)
        lines = os.pread(descriptor, max_bytes, start).split(b"\n") if stat.S_ISREG(status.st_mode) else []
    finally:
        os.close(descriptor)
    whole = lines[1:] if start else lines
    yield from (line if len(line) <= MAX_RECORD_BYTES else b"" for line in reversed(whole) if line)
