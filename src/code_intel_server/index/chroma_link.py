"""The server's end of the pipe to the ChromaDB child: one request at a time, each within its time limit."""

import os
import selectors
import sys
import threading
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from code_intel_server import process
from code_intel_server.index.chroma_wire import frame, read_frame

if TYPE_CHECKING:
    from code_intel_server.index.values import Matrix

_PIECE = 65536


class ChildFailedError(Exception):
    """The child answered with an error (`crashed` False), or ended, hung or spoke nonsense (`crashed` True)."""

    def __init__(self, reason: str, *, crashed: bool) -> None:
        super().__init__(reason)
        self.crashed = crashed


class ChromaLink:
    """A running child. After a failure that left it in an unknown state it is ended and this link is of no more use."""

    def __init__(self, folder: Path) -> None:
        """Start the child with `folder` as its working directory: ChromaDB reads a `.env` where it runs, not the project's."""
        folder.mkdir(parents=True, exist_ok=True)
        environment = process.clean_environment({"ANONYMIZED_TELEMETRY": "False", "PYTHONUNBUFFERED": "1"})
        # -P: no module may be loaded from the folder, whoever put it there.
        argv = [sys.executable, "-P", "-m", "code_intel_server.index.chroma_child"]
        self._child = process.spawn(argv, cwd=folder, env=environment)
        assert self._child.stdin is not None  # noqa: S101 - piped by spawn
        assert self._child.stdout is not None  # noqa: S101 - piped by spawn
        self._stdin: IO[bytes] = self._child.stdin
        self._stdout: IO[bytes] = self._child.stdout
        for stream in (self._stdin, self._stdout):
            os.set_blocking(stream.fileno(), False)
        self._lock = threading.Lock()
        self._closed = False

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._child.pid

    def ask(self, head: dict[str, Any], vectors: "Matrix | None" = None, *, timeout: float) -> dict[str, Any]:
        """Send one request and return its answer. Raises ChildFailedError; the child is gone where that says `crashed`.

        `timeout` in seconds counts from when the child is free.
        """
        body = b""
        if vectors is not None:
            head = {**head, "dim": int(vectors.shape[-1])}
            body = vectors.astype("<f4").tobytes()
        with self._lock:
            deadline = time.monotonic() + timeout
            try:
                if self._closed:
                    raise EOFError
                self._send(frame(head, body), deadline)
                reply, _ = read_frame(lambda size: self._receive(size, deadline))
            except (OSError, EOFError, ValueError) as error:
                self._end()
                raise ChildFailedError(_why(error), crashed=True) from error
        if "error" in reply:
            raise ChildFailedError(str(reply["error"]), crashed=False)
        return reply

    def close(self) -> None:
        """End the child and whatever it started."""
        self._end()

    def _end(self) -> None:
        if not self._closed:
            self._closed = True
            process.end_group(self._child)
            self._stdin.close()
            self._stdout.close()

    def _send(self, data: bytes, deadline: float) -> None:
        view = memoryview(data)
        with selectors.DefaultSelector() as selector:
            selector.register(self._stdin.fileno(), selectors.EVENT_WRITE)
            while view:
                _wait(selector, deadline)
                view = view[os.write(self._stdin.fileno(), view[:_PIECE]) :]

    def _receive(self, size: int, deadline: float) -> bytes:
        parts = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(self._stdout.fileno(), selectors.EVENT_READ)
            while len(parts) < size:
                _wait(selector, deadline)
                piece = os.read(self._stdout.fileno(), min(_PIECE, size - len(parts)))
                if not piece:
                    raise EOFError
                parts += piece
        return bytes(parts)


def _wait(selector: selectors.BaseSelector, deadline: float) -> None:
    left = deadline - time.monotonic()
    if left <= 0 or not selector.select(left):
        raise TimeoutError


def _why(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    if isinstance(error, ValueError):
        return "it answered nonsense"
    return "it ended"
