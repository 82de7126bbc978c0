"""The one subprocess door: argument lists, no shell, no inherited stdin, own process group, time and output limits.

Every child leads a process group of its own, so that a time limit, an output limit or our own end takes its
descendants with it. Output is read while the child runs, so a child that prints for ever fills no pipe and no memory.
`tests/test_architecture.py` proves that no other module starts a process.
"""

import contextlib
import fcntl
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import IO

MEBIBYTE = 1024 * 1024
_CHUNK = 65536
_PIPE_BYTES = 4 * _CHUNK
"""What a pipe is asked to hold, so that a child writes on while we pause."""

_FEW_READS = 8
_PAUSE_SECONDS = 0.002
"""Between reads of a child that prints much in small pieces, as ripgrep does, one a file: to wake up for each takes a third of the time."""

_POLL_SECONDS = 0.05
_SHORTEST_SECONDS = 0.0005
_DRAIN_SECONDS = 0.2
_TERM_GRACE_SECONDS = 0.5

_live_groups: set[int] = set()
_live_lock = threading.Lock()
_ended = False


class Overflow(Enum):
    """What to do when a child prints more than its limit."""

    KILL = "kill"
    """End the child: whoever reads wants only the beginning (search)."""
    KEEP_TAIL = "tail"
    """Let it go on and keep the last bytes (test runs)."""


@dataclass(frozen=True, slots=True)
class Completed:
    """What a child left behind; `truncated` where output was dropped, `timed_out` where the limit ended it."""

    argv: tuple[str, ...]
    returncode: int
    stdout: bytes
    stderr: bytes
    seconds: float
    timed_out: bool = False
    truncated: bool = False

    @property
    def ok(self) -> bool:
        """Whether the child ended by itself with status 0 and nothing of its output was dropped by force."""
        return self.returncode == 0 and not self.timed_out

    def text(self) -> str:
        """Standard output, undecodable bytes replaced."""
        return self.stdout.decode("utf-8", "replace")

    def error_text(self) -> str:
        """Standard error, undecodable bytes replaced."""
        return self.stderr.decode("utf-8", "replace")


@dataclass(slots=True)
class _Sink:
    """Collects one stream up to `limit` bytes, from its beginning or its end."""

    limit: int
    overflow: Overflow
    data: bytearray = field(default_factory=bytearray)
    dropped: bool = False

    def feed(self, piece: bytes) -> bool:
        """Take `piece`; False asks for the child's end."""
        self.data += piece
        if len(self.data) <= self.limit:
            return True
        self.dropped = True
        if self.overflow is Overflow.KILL:
            del self.data[self.limit :]
            return False
        if len(self.data) > 2 * self.limit:
            del self.data[: -self.limit]
        return True

    def bytes(self) -> bytes:
        """What is kept of the output: its end, or its beginning, as was asked."""
        return bytes(self.data[-self.limit :] if self.overflow is Overflow.KEEP_TAIL else self.data)


def run(
    argv: Sequence[str],
    *,
    cwd: Path,
    timeout: float,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    max_output: int = 16 * MEBIBYTE,
    overflow: Overflow = Overflow.KILL,
    merge: bool = False,
    on_wait: Callable[[], None] | None = None,
) -> Completed:
    """Run a child to its end and return what it printed.

    `timeout` in seconds of wall time, `max_output` in bytes a stream. With `merge` both streams are read as one, in the
    order in which they were written, as `stdout`. `stdin` is fed through a pipe of ours; without it
    the child reads end-of-file. `on_wait` is called about every 50 ms: for progress, or to cancel by raising, which
    ends the child's group before the exception leaves. Raises FileNotFoundError or PermissionError where the program
    cannot be started.
    """
    started = time.monotonic()
    child = _start(
        argv,
        cwd,
        env,
        stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
        stderr=subprocess.STDOUT if merge else subprocess.PIPE,
    )
    sinks = (_Sink(max_output, overflow), _Sink(max_output, overflow))
    try:
        timed_out = not _pump(child, sinks, stdin, started + timeout, on_wait)
    finally:
        end_group(child)
        for stream in (child.stdin, child.stdout, child.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
    return Completed(
        argv=tuple(argv),
        returncode=child.returncode,
        stdout=sinks[0].bytes(),
        stderr=sinks[1].bytes(),
        seconds=time.monotonic() - started,
        timed_out=timed_out,
        truncated=sinks[0].dropped or sinks[1].dropped,
    )


def spawn(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str] | None = None) -> "subprocess.Popen[bytes]":
    """Start a long-lived child with piped stdin and stdout and discarded stderr; end it with `end_group`."""
    return _start(argv, cwd, env, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)


def detach(argv: Sequence[str], *, cwd: Path, descriptors: Sequence[int] = ()) -> int:
    """Start a child that outlives us, its streams closed but for `descriptors`, and return its id.

    It has to bring its own end with it.
    """
    child = subprocess.Popen(
        list(argv),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        pass_fds=descriptors,
    )
    child.returncode = 0  # nobody waits for it
    return child.pid


def end_group(child: "subprocess.Popen[bytes]") -> None:
    """End the child and everything in its process group (SIGTERM, then SIGKILL), and reap it."""
    if child.returncode is None:
        if not _exited(child):
            _signal_group(child.pid, signal.SIGTERM)
            _await_exit(child, time.monotonic() + _TERM_GRACE_SECONDS, None)
        # Not reaped yet, so its id is still its own: descendants that live on are hit, and nobody else.
        _signal_group(child.pid, signal.SIGKILL)
    child.wait()
    with _live_lock:
        _live_groups.discard(child.pid)


def end_all() -> None:
    """Kill every process group we started that still lives, and start no other: the last act of a server (SPEC 7)."""
    global _ended  # noqa: PLW0603 - the process ends once
    _ended = True
    patient = _live_lock.acquire(timeout=_TERM_GRACE_SECONDS)  # somebody may hang in starting a child
    groups = list(_live_groups)
    if patient:
        _live_lock.release()
    for group in groups:
        _signal_group(group, signal.SIGKILL)


def clean_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Our environment without the variables through which git, ripgrep or ctags could be made to run or read something.

    Keeps PATH, HOME, locale, proxies and the like; adds `extra` last.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("GIT_", "RIPGREP_", "CTAGS")) and name not in {"RIPGREP_CONFIG_PATH", "ETAGS"}
    }
    kept.update(extra or {})
    return kept


def _start(
    argv: Sequence[str], cwd: Path, env: Mapping[str, str] | None, *, stdin: int, stderr: int
) -> "subprocess.Popen[bytes]":
    """Start a child and note it in one step, so that `end_all` never misses one that is just being born."""
    with _live_lock:
        if _ended:
            raise PermissionError("the server ends: no child is started any more")
        child = subprocess.Popen(
            list(argv),
            cwd=cwd,
            env=dict(os.environ if env is None else env),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
            start_new_session=True,
        )
        _live_groups.add(child.pid)
        return child


def _exited(child: "subprocess.Popen[bytes]") -> bool:
    """Whether the child has ended. Leaves it unreaped where the system can: until then its group id names no other."""
    if child.returncode is not None:
        return True
    if not hasattr(os, "waitid"):
        return child.poll() is not None
    try:
        return os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def _signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _pump(
    child: "subprocess.Popen[bytes]",
    sinks: tuple[_Sink, _Sink],
    stdin: bytes | None,
    deadline: float,
    on_wait: Callable[[], None] | None,
) -> bool:
    """Move bytes until the child ends, asks for too much or meets its deadline (then False)."""
    pending = memoryview(stdin or b"")
    with selectors.PollSelector() as selector:
        _register(selector, child, sinks)
        exited_at: float | None = None
        reads = 0
        while selector.get_map():
            now = time.monotonic()
            if now >= deadline:
                return False
            if exited_at is None and _exited(child):
                exited_at = now
            if exited_at is not None and now - exited_at > _DRAIN_SECONDS:
                return True  # a descendant holds the pipe; the group is ended by our caller
            for key, _ in selector.select(min(_POLL_SECONDS, deadline - now)):
                if isinstance(key.data, _Sink):
                    reads += 1
                    if not _read(selector, key.fileobj, key.data):
                        return True
                else:
                    pending = _write(selector, child.stdin, pending)
            if on_wait is not None:
                on_wait()
            if reads > _FEW_READS and not pending and exited_at is None:
                time.sleep(_PAUSE_SECONDS)
        return _await_exit(child, deadline, on_wait)


def _register(selector: selectors.BaseSelector, child: "subprocess.Popen[bytes]", sinks: tuple[_Sink, _Sink]) -> None:
    for stream, sink in zip((child.stdout, child.stderr), sinks, strict=True):
        if stream is not None:  # else merged
            os.set_blocking(stream.fileno(), False)
            selector.register(stream, selectors.EVENT_READ, sink)
    if child.stdout is not None:
        widen(child.stdout)
    if child.stdin is not None:
        os.set_blocking(child.stdin.fileno(), False)
        selector.register(child.stdin, selectors.EVENT_WRITE)


def widen(stream: IO[bytes]) -> None:
    """Let a pipe hold more, where the system can and allows it."""
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with contextlib.suppress(OSError):
            fcntl.fcntl(stream.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def _read(selector: selectors.BaseSelector, stream: object, sink: _Sink) -> bool:
    assert hasattr(stream, "fileno")  # registered above
    try:
        piece = os.read(stream.fileno(), _PIPE_BYTES)
    except BlockingIOError:
        return True
    if not piece:
        selector.unregister(stream)
        return True
    return sink.feed(piece)


def _write(selector: selectors.BaseSelector, stream: IO[bytes] | None, pending: memoryview) -> memoryview:
    assert stream is not None  # registered only where it exists
    try:
        pending = pending[os.write(stream.fileno(), pending[:_CHUNK]) :]
    except BlockingIOError:
        return pending
    except BrokenPipeError:
        pending = pending[:0]
    if not pending:
        selector.unregister(stream)
        stream.close()
    return pending


def _await_exit(child: "subprocess.Popen[bytes]", deadline: float, on_wait: Callable[[], None] | None) -> bool:
    """Wait for the end itself; whether it came before the deadline."""
    pause = _SHORTEST_SECONDS
    while not _exited(child):
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(left, pause))
        pause = min(pause * 2, _POLL_SECONDS)  # looked for a little less often the longer it takes
        if on_wait is not None:
            on_wait()
    return True
