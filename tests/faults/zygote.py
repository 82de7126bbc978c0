"""Starts a server process in milliseconds: one interpreter that has imported everything forks them on request.

A kill run starts thousands of servers, and four fifths of each start is the import of modules. A forked server is a
process of its own with its own pipes, threads, locks and children, and runs `serve` as the installed command does.
"""

import ctypes
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Self, cast

from mcp.server.mcpserver import MCPServer

from tests.e2e.driver import ENVIRONMENT, Server
from tests.faults.gate import Gate, ask_from_now_on

WARM = ("contract", "flow", "workspace", "codebase", "tools")
SOON = ("anyio._backends._asyncio", "numpy", "code_intel_server.index.code_index", "code_intel_server.index.opened")
"""What a server loads soon after it begins."""
ALONE = {"OPENBLAS_NUM_THREADS": "1"}
"""A process that forks may have no second thread."""
_REQUEST_BYTES = 65536
_PR_SET_PTRACER = 0x59616D61
_ATTACH_SECONDS = 20.0


class Zygote:
    """The forking interpreter. Use as a context manager."""

    def __init__(self) -> None:
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        os.set_inheritable(theirs.fileno(), True)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.zygote", str(theirs.fileno())],
            cwd=Path(__file__).resolve().parents[2],
            env={**os.environ, **ENVIRONMENT, "PYTHONPATH": f"{ENVIRONMENT['PYTHONPATH']}{os.pathsep}.", **ALONE},
            stdin=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),),
        )
        theirs.close()
        assert self._ours.recv(16) == b"ready"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ours.close()
        self._process.wait(20)

    def fork(
        self, root: Path, environment: dict[str, str], log: IO[bytes], gate: socket.socket | None = None
    ) -> "Forked":
        """A server that waits, not yet serving, for `go`; behind a gate where its keeper listens on `gate`."""
        inputs, outputs, started = os.pipe(), os.pipe(), os.pipe()
        request = json.dumps({"root": str(root), "environment": environment}).encode()
        descriptors = [inputs[0], outputs[1], log.fileno(), started[0], *([gate.fileno()] if gate is not None else [])]
        socket.send_fds(self._ours, [request], descriptors)
        pid = int(self._ours.recv(16))
        for descriptor in (inputs[0], outputs[1], started[0]):
            os.close(descriptor)
        return Forked(pid, inputs[1], outputs[0], started[1])


class Forked:
    """One forked server, with as much of `subprocess.Popen` as the driver uses."""

    def __init__(self, pid: int, stdin: int, stdout: int, gate: int) -> None:
        self.pid = pid
        self.stdin: IO[bytes] | None = open(stdin, "wb", buffering=0)  # noqa: SIM115 - a descriptor
        self.stdout: IO[bytes] | None = open(stdout, "rb")  # noqa: SIM115 - a descriptor
        self._gate = gate
        self._handle = os.pidfd_open(pid)

    def go(self) -> None:
        """Let it serve."""
        with suppress(BrokenPipeError):
            os.write(self._gate, b"!")
        os.close(self._gate)

    def poll(self) -> int | None:
        """0 where it has ended."""
        return 0 if select.select([self._handle], [], [], 0)[0] else None

    def wait(self, timeout: float) -> int:
        """Until it has ended; how is not known, for it is not our child."""
        if not select.select([self._handle], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("server", timeout)
        return 0

    def send_signal(self, number: int) -> None:
        """Nothing where it has ended already."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, number)

    def __del__(self) -> None:
        with suppress(OSError):
            os.close(self._handle)


class ForkedServer(Server):
    """The driver's server, from a zygote; `tracer` are the words of a strace that is attached before it serves."""

    def __init__(self, zygote: Zygote, root: Path, *tracer: str, **environment: str) -> None:
        self._zygote, self._tracer, self.tracing = zygote, tracer, None
        super().__init__(root, **environment)

    tracing: subprocess.Popen[bytes] | None

    def _started(self, before: tuple[str, ...], environment: dict[str, str]) -> Forked:
        child = self._zygote.fork(self.root, environment, self._log)
        if self._tracer:
            self.tracing = subprocess.Popen([*self._tracer, "-p", str(child.pid)], stderr=subprocess.DEVNULL)
            deadline = time.monotonic() + _ATTACH_SECONDS
            while not _traced(child.pid):
                assert time.monotonic() < deadline and self.tracing.poll() is None, "strace did not attach"
                time.sleep(0.002)
        child.go()
        return child

    def _end(self) -> None:
        super()._end()
        if self.tracing is not None:
            self.tracing.wait(60)


class GatedServer(ForkedServer):
    """A forked server behind a gate."""

    def __init__(self, zygote: Zygote, root: Path, gate: Gate) -> None:
        self._gate = gate
        super().__init__(zygote, root)

    def _started(self, before: tuple[str, ...], environment: dict[str, str]) -> Forked:
        child = self._zygote.fork(self.root, environment, self._log, self._gate.theirs)
        self._gate.open(child.pid)
        child.go()
        return child


def _traced(pid: int) -> bool:
    rows = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(row for row in rows if row.startswith("TracerPid:")).split()[1] != "0"


def main() -> int:
    """Import, then fork a server for every request until the other end is closed."""
    control = socket.socket(fileno=int(sys.argv[1]))
    _import_all()
    _build_before()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system reaps
    assert threading.active_count() == 1 and len(list(Path("/proc/self/task").iterdir())) == 1
    control.send(b"ready")
    while True:
        request, descriptors, _, _ = socket.recv_fds(control, _REQUEST_BYTES, 5)
        if not request:
            return 0
        pid = os.fork()
        if pid == 0:
            control.close()
            _serve(json.loads(request), descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        control.send(str(pid).encode())


def _import_all() -> None:
    importlib.import_module("code_intel_server.server")
    for room in WARM:
        package = importlib.import_module(f"code_intel_server.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    for name in SOON:
        importlib.import_module(name)


class _Later:
    """Stands for what a server finds its project by, until there is one."""

    found: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.found, name)


def _build_before() -> None:
    """Make the tools' schemas and read the packaged texts once, for they are the same in every server."""
    from code_intel_server import server
    from code_intel_server.contract.loader import Contract
    from code_intel_server.tools.late import Late

    Contract.load(None)
    later = _Later()
    made = server.build(cast("Late", later))

    def built(late: Late) -> MCPServer:
        later.found = late
        return made

    server.build = built


def _serve(request: dict[str, object], descriptors: list[int]) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, descriptor in enumerate(descriptors[:3]):
        os.dup2(descriptor, number)
        os.close(descriptor)
    environment = request["environment"]
    assert isinstance(environment, dict)
    os.environ.update(environment)
    os.chdir(str(request["root"]))
    ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_ulong(-1 & (2**64 - 1)), 0, 0, 0)
    os.read(descriptors[3], 1)
    os.close(descriptors[3])
    for gate in descriptors[4:]:
        ask_from_now_on(socket.socket(fileno=gate))
    from code_intel_server.server import serve

    try:
        serve(Path.cwd())
    finally:
        os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
