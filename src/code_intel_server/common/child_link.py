"""The server's end of the pipes to a child of ours: frames sent and received within a time limit."""

import os
import selectors
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from code_intel_server import process
from code_intel_server.common.child_wire import read_frame

_PIECE = 65536
_LOOK_SECONDS = 0.1


class ChildFailedError(Exception):
    """The child answered with an error (`crashed` False), or ended, hung or spoke nonsense (`crashed` True)."""

    def __init__(self, reason: str, *, crashed: bool) -> None:
        super().__init__(reason)
        self.crashed = crashed


class StoppedError(Exception):
    """Whoever waits for the child does not want to wait any longer."""


class ChildPipes:
    """A running child and its pipes. After a failure that left it in an unknown state it is ended and this is of no more use."""

    def __init__(
        self,
        argv: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        should_stop: Callable[[], bool] | None = None,
    ) -> None:
        """Run a program with `folder` as its working directory. Raises OSError where no process can be started.

        Where `should_stop` says so, a wait ends with StoppedError.
        """
        self._child = process.spawn(argv, cwd=folder, env=process.clean_environment(environment))
        assert self._child.stdin is not None  # piped by spawn
        assert self._child.stdout is not None  # piped by spawn
        self._stdin: IO[bytes] = self._child.stdin
        self.answers: IO[bytes] = self._child.stdout
        """Where answers come from: to wait for several children at once."""
        for stream in (self._stdin, self.answers):
            os.set_blocking(stream.fileno(), False)
        process.widen(self.answers)
        self._should_stop = should_stop
        self._ending = threading.Lock()
        self._closed = False

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._child.pid

    @property
    def ended_by(self) -> int:
        """The signal that ended the child, 0 where none did or it has not been closed."""
        return max(0, -(self._child.returncode or 0))

    def end(self) -> None:
        """End the child and whatever it started, from any thread; who waits for its answer hears that it ended."""
        with self._ending:
            if self._child.returncode is None:
                process.end_group(self._child)

    def close(self) -> None:
        """End the child and close its pipes; not while another thread uses them, whose numbers may then be other files'."""
        self.end()
        if not self._closed:
            self._closed = True
            self._stdin.close()
            self.answers.close()

    def send(self, data: bytes, deadline: float) -> None:
        """Write all of `data`. Raises OSError (TimeoutError at the monotonic `deadline`) or EOFError; the child is then to be closed."""
        if self._closed:
            raise EOFError
        view = memoryview(data)
        while view:
            self._wait(self._stdin, selectors.EVENT_WRITE, deadline)
            view = view[os.write(self._stdin.fileno(), view[:_PIECE]) :]

    def read(self, most: int, deadline: float) -> bytes:
        """What has come, waited for, at most so many bytes. Raises as `send`."""
        if self._closed:
            raise EOFError
        while True:
            try:
                piece = os.read(self.answers.fileno(), min(_PIECE, most))
            except BlockingIOError:
                self._wait(self.answers, selectors.EVENT_READ, deadline)
                continue
            if not piece:
                raise EOFError
            return piece

    def _wait(self, stream: IO[bytes], event: int, deadline: float) -> None:
        with selectors.PollSelector() as selector:
            selector.register(stream.fileno(), event)
            while True:
                left = deadline - time.monotonic()
                if left <= 0:
                    if selector.select(0):
                        return  # it came in time: whoever waits was busy elsewhere
                    raise TimeoutError
                if self._should_stop is None:
                    if selector.select(left):
                        return
                elif selector.select(min(left, _LOOK_SECONDS)):
                    return
                elif self._should_stop():
                    raise StoppedError


class ChildLink(ChildPipes):
    """A running child of ours, with which frames are exchanged."""

    def __init__(
        self, module: str, folder: Path, environment: Mapping[str, str], should_stop: Callable[[], bool] | None = None
    ) -> None:
        """Run a module of ours, as `ChildPipes` runs programs."""
        folder.mkdir(exist_ok=True)
        # -P: no module may be loaded from the folder, whoever put it there.
        super().__init__([sys.executable, "-P", "-m", module], folder, environment, should_stop)

    def receive(self, deadline: float) -> tuple[dict[str, Any], bytes]:
        """The next frame. Raises as `send`, and ValueError for anything but a frame."""
        return read_frame(lambda size: self._exactly(size, deadline))

    def _exactly(self, size: int, deadline: float) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            parts += self.read(size - len(parts), deadline)
        return bytes(parts)


def why(error: Exception) -> str:
    """What became of a child, in words, from what `send` or `receive` raised."""
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    if isinstance(error, ValueError):
        return "it answered nonsense"
    return "it ended"
