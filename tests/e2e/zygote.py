"""Starts a server process in milliseconds: one interpreter that has imported everything forks them on request.

Four fifths of a start is the import of modules. A forked server is a process of its own with its own pipes, environment,
threads, locks and children, and runs `serve` as the installed command does.
"""

import atexit
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
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self, cast

from coverage import Coverage

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

TESTS = Path(__file__).resolve().parents[2]
WARM = ("contract", "flow", "workspace", "codebase", "tools")
SOON = (
    "anyio._backends._asyncio",
    "numpy",
    "code_intel_server.index.code_index",
    "code_intel_server.index.storage.open_index",
)
"""What a server loads soon after it begins."""
ALONE = {"OPENBLAS_NUM_THREADS": "1"}
"""A process that forks may have no second thread."""
OBSERVED_INTO = "CODE_INTEL_TEST_COVERAGE"
"""The variable that names the file in which coverage keeps what a server has run; where it is empty, it is not observed."""
_REQUEST_BYTES = 1 << 17
_PR_SET_PTRACER = 0x59616D61


class Zygote:
    """The forking interpreter. Use as a context manager."""

    def __init__(self) -> None:
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._alone = threading.Lock()
        os.set_inheritable(theirs.fileno(), True)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.e2e.zygote", str(theirs.fileno())],
            cwd=TESTS,
            env={**os.environ, "PYTHONPATH": f"{TESTS / 'src'}{os.pathsep}{TESTS}", **ALONE},
            stdin=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),),
        )
        theirs.close()
        assert self._ours.recv(16) == b"ready"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End it; the servers live on."""
        self._ours.close()
        self._process.wait(20)

    def fork(
        self, root: Path, environment: Mapping[str, str], log: IO[bytes], gate: socket.socket | None = None
    ) -> "Forked":
        """A server that waits, not yet serving, for `go`; behind a gate where its keeper listens on `gate`."""
        inputs, outputs, started = os.pipe(), os.pipe(), os.pipe()
        request = json.dumps({"root": str(root), "environment": dict(environment)}).encode()
        descriptors = [inputs[0], outputs[1], log.fileno(), started[0], *([gate.fileno()] if gate is not None else [])]
        with self._alone:
            socket.send_fds(self._ours, [request], descriptors)
            pid = int(self._ours.recv(16))
        for descriptor in (inputs[0], outputs[1], started[0]):
            os.close(descriptor)
        return Forked(self, pid, inputs[1], outputs[0], started[1])

    def status(self, pid: int) -> int:
        """How a server that has ended did so, as `subprocess` has it."""
        with self._alone:
            self._ours.send(json.dumps({"ended": pid}).encode())
            return int(self._ours.recv(16))


@cache
def shared() -> Zygote:
    """The one of this process, until it ends."""
    zygote = Zygote()
    atexit.register(zygote.close)
    return zygote


class Forked:
    """One forked server, with as much of `subprocess.Popen` as the driver uses."""

    def __init__(self, zygote: Zygote, pid: int, stdin: int, stdout: int, gate: int) -> None:
        self.pid = pid
        self._zygote = zygote
        self._status: int | None = None
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
        """Its exit status where it has ended."""
        if self._status is None and select.select([self._handle], [], [], 0)[0]:
            self._status = self._zygote.status(self.pid)
        return self._status

    def wait(self, timeout: float) -> int:
        """Until it has ended; its exit status."""
        if self._status is None and not select.select([self._handle], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("server", timeout)
        status = self.poll()
        assert status is not None
        return status

    def send_signal(self, number: int) -> None:
        """Nothing where it has ended already."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, number)

    def __del__(self) -> None:
        with suppress(OSError):
            os.close(self._handle)


def main() -> int:
    """Import, then fork a server for every request until the other end is closed."""
    control = socket.socket(fileno=int(sys.argv[1]))
    _import_all()
    _build_before()
    assert threading.active_count() == 1 and len(list(Path("/proc/self/task").iterdir())) == 1
    control.send(b"ready")
    while True:
        request, descriptors, _, _ = socket.recv_fds(control, _REQUEST_BYTES, 5)
        if not request:
            return 0
        asked = json.loads(request)
        if "ended" in asked:
            _, status = os.waitpid(asked["ended"], 0)
            control.send(str(os.waitstatus_to_exitcode(status)).encode())
            continue
        pid = os.fork()
        if pid == 0:
            control.close()
            _serve(asked, descriptors)
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
    from code_intel_server.tools.lazy import LazyTools

    Contract.load(None)
    later = _Later()
    made = server.build(cast("LazyTools", later))

    def built(late: LazyTools) -> "MCPServer":
        later.found = late
        return made

    server.build = built


def _serve(request: dict[str, Any], descriptors: list[int]) -> None:
    for number, descriptor in enumerate(descriptors[:3]):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["root"])
    ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_ulong(-1 & (2**64 - 1)), 0, 0, 0)
    os.read(descriptors[3], 1)
    os.close(descriptors[3])
    for gate in descriptors[4:]:
        from benchmarks.faults.gate import ask_from_now_on

        ask_from_now_on(socket.socket(fileno=gate))
    if observed := os.environ.pop(OBSERVED_INTO, ""):
        Coverage(observed, data_suffix=True, config_file=str(TESTS / "pyproject.toml")).start()
    from code_intel_server.server import serve

    try:
        serve(Path.cwd())
    finally:
        os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
