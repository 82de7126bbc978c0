"""A real ChromaDB server on loopback, for the tests of `chroma.mode: http`."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path


def free_port() -> int:
    """A port that nobody uses at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def chroma_server(folder: Path, port: int) -> Iterator[None]:
    """Run `chroma run` on `folder` until the end of the block."""
    program = Path(sys.executable).with_name("chroma")
    argv = [str(program), "run", "--path", str(folder), "--host", "127.0.0.1", "--port", str(port)]
    # As we start ours (`ChromaLink`): several threads lose vectors.
    environment = os.environ | {"RAYON_NUM_THREADS": "1"}
    with subprocess.Popen(
        argv, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL
    ) as server:
        try:
            _await(port)
            yield
        finally:
            server.terminate()
            server.wait(10)


def _await(port: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
    raise TimeoutError("the ChromaDB server did not start")
