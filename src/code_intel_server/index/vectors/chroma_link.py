"""The server's end of the pipe to the ChromaDB child: one request at a time, each within its time limit."""

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from code_intel_server.common.child_link import ChildFailedError, ChildLink, why
from code_intel_server.common.child_wire import frame

if TYPE_CHECKING:
    from code_intel_server.index.values import Matrix


class ChromaLink(ChildLink):
    """A running child. After a failure that left it in an unknown state it is ended and this link is of no more use."""

    def __init__(self, folder: Path) -> None:
        """Start the child with `folder` as its working directory: ChromaDB reads a `.env` where it runs, not the project's."""
        environment = {
            "ANONYMIZED_TELEMETRY": "False",
            "PYTHONUNBUFFERED": "1",
            # The engine builds its graph with as many threads, and vectors put in side by side can push one another out of it:
            # about one small graph in 200 had a vector that no search reached. One thread takes a sixth longer.
            "RAYON_NUM_THREADS": "1",
        }
        super().__init__("code_intel_server.index.vectors.chroma_child", folder, environment)
        self._lock = threading.RLock()

    def close(self) -> None:
        """End the child, from any thread; a request under way fails."""
        self.end()
        with self._lock:
            super().close()

    def ask(self, head: dict[str, Any], vectors: "Matrix | None" = None, *, timeout: float) -> dict[str, Any]:
        """Send one request and return its answer. Raises ChildFailedError; the child is gone where that says `crashed`.

        `timeout` in seconds counts from when the child is free.
        """
        body = b""
        if vectors is not None:
            head = {**head, "dim": int(vectors.shape[-1])}
            body = vectors.astype("=f4").tobytes()  # as this machine has them: the child reads them in place
        with self._lock:
            deadline = time.monotonic() + timeout
            try:
                self.send(frame(head, body), deadline)
                reply, _ = self.receive(deadline)
            except (OSError, EOFError, ValueError) as error:
                self.close()
                raise ChildFailedError(why(error), crashed=True) from error
        if "error" in reply:
            raise ChildFailedError(str(reply["error"]), crashed=False)
        return reply
