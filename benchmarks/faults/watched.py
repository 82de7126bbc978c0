"""Servers whose system calls are watched from before they serve: by a strace that is attached, or behind a gate."""

import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.faults.gate import Gate
from tests.e2e import zygote
from tests.e2e.driver import Server
from tests.e2e.zygote import Forked

_ATTACH_SECONDS = 20.0


class TracedServer(Server):
    """`tracer` are the words of a strace; nothing is attached where there are none."""

    def __init__(self, root: Path, *tracer: str, **environment: str) -> None:
        self._tracer, self.tracing = tracer, None
        super().__init__(root, **environment)

    tracing: subprocess.Popen[bytes] | None

    def _started(self, environment: Mapping[str, str]) -> Forked:
        child = zygote.shared().fork(self.root, environment, self._log)
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


class GatedServer(Server):
    """A server behind a gate."""

    def __init__(self, root: Path, gate: Gate) -> None:
        self._gate = gate
        super().__init__(root)

    def _started(self, environment: Mapping[str, str]) -> Forked:
        child = zygote.shared().fork(self.root, environment, self._log, self._gate.theirs)
        self._gate.open(child.pid)
        child.go()
        return child


def _traced(pid: int) -> bool:
    rows = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(row for row in rows if row.startswith("TracerPid:")).split()[1] != "0"
