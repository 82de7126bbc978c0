"""A gate before every system call that changes something, of a forked server and all that it starts.

`strace` counts calls in each thread and stops a process at every call there is. Here the kernel itself asks (a seccomp filter
with a listener: user notification) before each write, fsync, rename, unlink, mkdir, link, opening for writing and start of
a program, of any thread of the server or child of git, in the order in which they come. So the Nth call of a move is one
place that can be reached again (another thread's may come sooner or later), and N counts up until the move has no more. At that place the caller is killed before the
call, the server is killed while its child goes on alone, or the call returns an error of the disk instead of being done.
"""

import ctypes
import errno
import fcntl
import functools
import os
import platform
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from benchmarks.faults.kills import command

HERE = Path(__file__).resolve().parents[2]

KINDS: Mapping[str, Sequence[int]] = {
    "write": (1, 18, 20, 40, 326),  # write, pwrite64, writev, sendfile, copy_file_range
    "truncate": (76, 77),
    "fsync": (74, 75),
    "rename": (82, 264, 316),
    "unlink": (84, 87, 263),
    "mkdir": (83, 258),
    "link": (86, 88, 265, 266),
    "open": (2, 257),  # only where something may be written
    "exec": (59,),
}
"""Kind → its system calls on x86-64."""

_KIND_OF = {number: kind for kind, numbers in KINDS.items() for number in numbers}
_FLAGS_AT = {2: 1, 257: 2}
"""Opening call → which of its arguments are the flags."""
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_X86_64 = 0xC000003E
_ALLOW, _ASK = 0x7FFF0000, 0x7FC00000
_LOAD, _EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
_NEW_LISTENER, _ONLY_DEATH_ENDS_THE_WAIT = 1 << 3, 1 << 5
_RECEIVE, _ANSWER = 0xC0502100, 0xC0182101
_GO_ON = 1


def _filter() -> bytes:
    """The program that the kernel runs at each call."""
    rows: list[tuple[int, int, int, int]] = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, _X86_64), (_RETURN, 0, 0, _ALLOW)]
    rows.append((_LOAD, 0, 0, 0))
    for number in _KIND_OF:
        if number in _FLAGS_AT:
            rows += [
                (_EQUAL, 0, 4, number),
                (_LOAD, 0, 0, 16 + 8 * _FLAGS_AT[number]),
                (_ANY_BIT, 0, 1, _WRITING),
                (_RETURN, 0, 0, _ASK),
                (_RETURN, 0, 0, _ALLOW),
            ]
        else:
            rows += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ASK)]
    rows.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("HBBI", *row) for row in rows)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("rows", ctypes.c_void_p))


def ask_from_now_on(told: socket.socket) -> None:
    """Put this process and all it will start behind a gate, whose keeper gets the listener through `told`."""
    libc, rows = ctypes.CDLL(None, use_errno=True), _filter()
    kept = ctypes.create_string_buffer(rows, len(rows))
    program = _Program(len(rows) // 8, ctypes.addressof(kept))
    libc.prctl(38, 1, 0, 0, 0)  # no new privileges, without which only root may
    listener = libc.syscall(317, 1, _NEW_LISTENER | _ONLY_DEATH_ENDS_THE_WAIT, ctypes.byref(program))
    if listener < 0:
        told.send(os.strerror(ctypes.get_errno()).encode())
    else:
        socket.send_fds(told, [b"listener"], [listener])
        os.close(listener)
    told.close()


@functools.cache
def missing() -> str:
    """Why there can be no gate on this machine; '' where there can: on x86-64 Linux whose kernel lets itself be asked."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        return "the system calls are those of Linux on x86-64"
    command = [sys.executable, "-m", "benchmarks.faults.gate"]
    try:
        tried = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False, timeout=60)
    except subprocess.TimeoutExpired:
        return "the process that tries it does not end"
    return tried.stderr.strip()[-200:]


@dataclass(frozen=True, slots=True)
class Call:
    """One system call that was asked about: `who` is "server" or the git command; `disk` where a disk could fail it."""

    kind: str
    who: str
    disk: bool = True

    @property
    def label(self) -> str:
        """What is counted in the tables."""
        return f"{'server' if self.who == 'server' else 'git'} {self.kind}"


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens at the `number`th call: `how` is "caller" or "server" (killed), or the name of an error.

    With `when`, in place of a number: at the first call before which it is true.
    """

    number: int
    how: str = "caller"
    when: Callable[[], bool] | None = None

    def is_at(self, number: int) -> bool:
        """Whether it happens at this call."""
        return self.when() if self.when else number == self.number

    @property
    def error(self) -> int:
        """The error number; 0 where something is killed."""
        return int(getattr(errno, self.how, 0))


class Gate:
    """Keeps one server's gate: opens it at each call, counts while armed, and does the fault at its place."""

    def __init__(self) -> None:
        self._socket, self.theirs = socket.socketpair()
        self._server = 0
        self._counting = False
        self._fault: Fault | None = None
        self._lock = threading.Lock()
        self.calls: list[Call] = []
        self.fired: Call | None = None
        self._thread = threading.Thread(target=self._keep, daemon=True)

    def open(self, server: int) -> Self:
        """Begin, for the server of this process id."""
        self._server = server
        self.theirs.close()
        self._thread.start()
        return self

    def arm(self, fault: Fault | None) -> None:
        """Count from one from now on, and do this."""
        with self._lock:
            self.calls, self.fired, self._fault, self._counting = [], None, fault, True

    def disarm(self) -> None:
        """Let everything through again."""
        with self._lock:
            self._counting, self._fault = False, None

    def close(self) -> None:
        """Once all behind the gate have ended."""
        self._thread.join(60)
        assert not self._thread.is_alive(), "somebody behind the gate still lives"

    def _keep(self) -> None:
        said, descriptors, _, _ = socket.recv_fds(self._socket, 100, 1)
        self._socket.close()
        if not descriptors:
            assert not said, f"no gate here: {said.decode()}"
            return
        listener = descriptors[0]
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        while not poll.poll()[0][1] & select.POLLHUP:
            asked = bytearray(80)
            with suppress(OSError):  # the caller was killed meanwhile
                fcntl.ioctl(listener, _RECEIVE, asked)
                number, caller, _, call, _, _, *arguments = struct.unpack("QIIiIQ6Q", asked)
                error = self._asked(caller, call, arguments)
                flags = 0 if error else _GO_ON
                fcntl.ioctl(listener, _ANSWER, bytearray(struct.pack("QqiI", number, 0, -error, flags)))
        os.close(listener)

    def _asked(self, caller: int, number: int, arguments: Sequence[int]) -> int:
        """The error that the call returns; 0 where it may go on."""
        with self._lock:
            if not self._counting:
                return 0
            call = self._described(caller, _KIND_OF[number], arguments[0])
            if call is None:
                return 0
            self.calls.append(call)
            fault = self._fault
            if fault is None or self.fired is not None or not fault.is_at(len(self.calls)):
                return 0
            if fault.error:
                self.fired = call if call.disk else None
                return fault.error if self.fired else 0
            self.fired = call
            with suppress(OSError):
                victim = self._server if fault.how == "server" else _process_of(caller)
                os.kill(victim, signal.SIGKILL)
                # Who is told to go on before he sees the signal makes the call, and dies behind it.
                return errno.EINTR if victim == _process_of(caller) else 0
            return 0

    def _described(self, caller: int, kind: str, argument: int) -> Call | None:
        """None where the caller is neither the server nor a git: the index's own processes, a hook, a search."""
        try:
            disk = kind not in {"write", "fsync"} or _is_disk(caller, argument)
            if Path(f"/proc/{self._server}/task/{caller}").is_dir():
                return Call(kind, "server", disk)
            if kind == "exec":
                program = _text_at(caller, argument)
                return Call(kind, "git", False) if program.name == "git" and program.exists() else None
            words = Path(f"/proc/{caller}/cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            return None
        return Call(kind, command(words[1:]), disk) if Path(words[0]).name == "git" else None


def _text_at(caller: int, address: int) -> Path:
    with open(f"/proc/{caller}/mem", "rb", buffering=0) as memory:  # noqa: PTH123 - no file
        memory.seek(address)
        return Path(os.fsdecode(memory.read(4096).partition(b"\0")[0]))


def _is_disk(caller: int, descriptor: int) -> bool:
    return os.readlink(f"/proc/{caller}/fd/{descriptor & 0xFFFFFFFF}").startswith("/")  # noqa: PTH115 - no path


def _process_of(thread: int) -> int:
    rows = Path(f"/proc/{thread}/status").read_text().splitlines()
    return int(next(row for row in rows if row.startswith("Tgid:")).split()[1])


def main() -> int:
    """Try it in this process."""
    ours, theirs = socket.socketpair()
    ask_from_now_on(theirs)
    said, descriptors, _, _ = socket.recv_fds(ours, 100, 1)
    if descriptors:
        os.kill(os.getpid(), signal.SIGKILL)  # whatever is written from now on waits for an answer: no exit may write
    sys.stderr.write(said.decode())
    return 1


if __name__ == "__main__":
    sys.exit(main())
