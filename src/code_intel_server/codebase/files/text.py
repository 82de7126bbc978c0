"""Bytes of the user's files as valid text: UTF-8, UTF-16 by its byte order mark, else latin-1."""

import codecs
import errno
import os
from pathlib import Path

from code_intel_server.codebase.files.project import MAX_FILE_BYTES, within
from code_intel_server.common import safe_open

_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_SNIFFED = 8192
_LINKED = frozenset({errno.ELOOP, errno.ENOTDIR})


def decode(data: bytes) -> str:
    """`data` as text; never fails, and never yields a lone surrogate."""
    if data.startswith(_UTF16_MARKS):
        return data.decode("utf-16", "replace")
    if data.startswith(codecs.BOM_UTF8):
        data = data[len(codecs.BOM_UTF8) :]
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def as_searched(data: bytes) -> bytes:
    """`data` as ripgrep searches it: UTF-16 re-coded as UTF-8, without a byte order mark."""
    return decode(data).encode() if data.startswith(_UTF16_MARKS) else data.removeprefix(codecs.BOM_UTF8)


def counted(number: int, thing: str) -> str:
    """`1 file`, `2 files`: for a thing that takes an s."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def is_binary(data: bytes) -> bool:
    """Whether the beginning of a file holds a NUL byte and no UTF-16 mark."""
    return not data.startswith(_UTF16_MARKS) and b"\0" in data[:_SNIFFED]


def begins_binary(root: Path, path: str) -> bool:
    """Whether the file at `path` below `root` is binary as `is_binary` has it; False for what cannot be read."""
    handle = _opened(root, path)
    if handle is None:
        return False
    with os.fdopen(handle, "rb", buffering=0) as stream:
        try:
            return is_binary(stream.read(_SNIFFED) or b"")
        except OSError:
            return False


def read_bytes(root: Path, path: str, limit: int = MAX_FILE_BYTES) -> bytes | None:
    """The content of a regular file of at most `limit` bytes below `root`; None for anything else, without waiting on a FIFO.

    `path` is relative. Links that lead to another place below `root` are followed, those that lead out are not, whatever
    is put in the place of a folder meanwhile.
    """
    handle = _opened(root, path)
    if handle is None:
        return None
    with os.fdopen(handle, "rb", buffering=0) as stream:
        try:
            if os.fstat(handle).st_size > limit:
                return None
            data = stream.read(limit + 1)
        except OSError:
            return None
    return data if data is not None and len(data) <= limit else None


def _opened(root: Path, path: str) -> int | None:
    try:
        return safe_open.open_below(root, path)
    except (OSError, ValueError) as problem:
        if not (isinstance(problem, OSError) and problem.errno in _LINKED):
            return None
    real = within(root, path)
    try:
        return None if real is None else safe_open.open_below(root, real)
    except (OSError, ValueError):
        return None


def read_text(root: Path, path: str) -> str | None:
    """The text of a regular, not binary file of at most 1 MB below `root`; None for anything else."""
    data = read_bytes(root, path)
    return None if data is None or is_binary(data) else decode(data)


def split_lines(text: str) -> list[str]:
    """Lines as editors and ripgrep count them: split at line feeds only, a trailing carriage return dropped."""
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


class Lines:
    """The lines of a text as ripgrep counts them."""

    def __init__(self, text: bytes) -> None:
        self._lines = text.split(b"\n")

    def at(self, number: int) -> bytes | None:
        """A 1-based line, with its carriage return; None beyond the end."""
        return self._lines[number - 1] if 0 < number <= len(self._lines) else None

    def all(self) -> list[bytes]:
        """Every line."""
        return self._lines
