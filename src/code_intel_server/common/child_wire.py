"""How the server talks to its children: length-prefixed frames of a JSON head and a body of raw bytes."""

import json
import os
import struct
import sys
from collections.abc import Callable
from typing import IO, Any

_PREFIX = struct.Struct(">II")
MAX_HEAD = 64 * 1024 * 1024
MAX_BODY = 256 * 1024 * 1024

Read = Callable[[int], bytes]
"""Reads exactly that many bytes. Raises EOFError where the other side has ended."""


def frame(head: dict[str, Any], body: bytes = b"") -> bytes:
    """One message."""
    text = json.dumps(head, separators=(",", ":")).encode()
    return _PREFIX.pack(len(text), len(body)) + text + body


def read_frame(read: Read) -> tuple[dict[str, Any], bytes]:
    """The next message. Raises EOFError at the end of the stream and ValueError for anything but a frame."""
    head_size, body_size = _PREFIX.unpack(read(_PREFIX.size))
    if head_size > MAX_HEAD or body_size > MAX_BODY:
        raise ValueError("not a frame")
    head = json.loads(read(head_size))
    if not isinstance(head, dict):
        raise ValueError("not a frame")  # noqa: TRY004 - a broken stream, not a wrong type in our code
    return head, read(body_size) if body_size else b""


def work(serve: Callable[[Read, IO[bytes]], None]) -> None:
    """For a child: serve the process that started us until it closes the pipes, then end at once."""
    read, out = pipes(1 << 18)
    try:
        serve(read, out)
    except (EOFError, ValueError, BrokenPipeError):
        # Nothing is left to say and nobody to say it to: no second attempt to flush at exit.
        os._exit(0)


def pipes(buffered: int = -1) -> tuple[Read, IO[bytes]]:
    """For a child: what reads exactly so many bytes of its stdin, and what was its stdout, `buffered` bytes at a time.

    Whatever a library prints goes to stderr from then on: it must not reach the pipe that carries our frames.
    """
    out = os.fdopen(os.dup(1), "wb", buffered)
    os.dup2(2, 1)
    source = sys.stdin.buffer

    def read(size: int) -> bytes:
        """So many bytes, waited for. Raises EOFError where fewer come before the end."""
        data = source.read(size)
        if len(data) < size:
            raise EOFError
        return data

    return read, out
