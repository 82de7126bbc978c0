"""Looks at the user's files for the evidence rules of SPEC 4: whether they exist, how many lines they have, what is in them.

A path is resolved once, and then opened folder by folder without following links: what a link is swapped for between the
two steps is not read. Files are read in pieces, so that one endless line costs time but no memory.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from code_intel_server.codebase.evidence.location import Replaced
from code_intel_server.codebase.files.text import decode, read_text, split_lines
from code_intel_server.common import safe_open

if TYPE_CHECKING:
    from code_intel_server.codebase.evidence.changed_syntax import Comparison

MAX_COUNTED_BYTES = 512 * 1024 * 1024
MAX_JUDGED_BYTES = 16 * 1024 * 1024
_PIECE = 1024 * 1024
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


class ProjectEvidence:
    """The evidence in one project. `root` is resolved once, here."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    def exists(self, path: str) -> bool:
        """Whether a regular file inside the project (symlinks resolved) has this path."""
        with self._opened(path) as handle:
            return handle is not None

    def normal(self, path: str) -> str | None:
        """The path relative to the project, '/'-separated, '..' and symlinks resolved; None outside the project.

        The file need not exist.
        """
        real = self._resolved(path)
        return None if real is None else real.relative_to(self._root).as_posix()

    def own_name(self, path: str) -> str | None:
        """As `normal`, but a link named by the last part stays itself; None where that lies outside the project."""
        folder, _, name = path.rstrip("/").rpartition("/")
        if name in {"", ".", ".."}:
            return self.normal(path)
        parent = self._resolved(folder or ("/" if path.startswith("/") else "."), root=True)
        return None if parent is None or "\0" in name else (parent / name).relative_to(self._root).as_posix()

    def total_lines(self, path: str) -> int | None:
        """Number of lines, a last one without newline included; None where there is no regular file or it is over 512 MiB."""
        with self._opened(path) as handle:
            return None if handle is None or os.fstat(handle).st_size > MAX_COUNTED_BYTES else _count_lines(handle)

    def lines(self, path: str) -> Sequence[str] | None:
        """The lines of a text file inside the project of at most 1 MB; None for anything else."""
        text = read_text(self._root, path)
        return None if text is None else split_lines(text)

    def compare(self, path: str, before: bytes | None, after: bytes | None, hunks: Sequence[Replaced]) -> "Comparison":
        """What two versions of a file differ in by syntax; `before` None where there was none, `after` None for the file as it lies."""
        from code_intel_server.codebase.evidence.changed_syntax import Comparison, compare, whole

        if after is None:
            with self._opened(path) as handle:
                small = handle is not None and os.fstat(handle).st_size <= MAX_JUDGED_BYTES
                content = b"".join(_pieces(handle)) if handle is not None and small else None
            return Comparison(by_lines=True) if content is None else whole(path, content)
        return compare(path, before, after, hunks)

    def _resolved(self, path: str, *, root: bool = False) -> Path | None:
        """Where the path leads, links followed; None where that is not inside the project or the path is no text.

        The project's `root` itself is none of its files, unless asked for.
        """
        if not path or "\0" in path or any("\ud800" <= letter <= "\udfff" for letter in path):
            return None
        try:
            real = (self._root / path).resolve()
        except (OSError, RuntimeError, ValueError):
            return None
        return real if (root or real != self._root) and real.is_relative_to(self._root) else None

    def load(self) -> None:
        """Load what the first report would wait for (a tenth of its time)."""
        from code_intel_server.codebase.evidence.changed_syntax import whole

        whole("a.py", b"a = 1\n")

    @contextmanager
    def _opened(self, path: str) -> Iterator[int | None]:
        """A descriptor of the regular file that the path leads to, None where there is none inside the project."""
        real = self._resolved(path)
        handle = None
        if real is not None:
            with suppress(OSError):
                handle = safe_open.open_below(self._root, real.relative_to(self._root).as_posix())
        try:
            yield handle
        finally:
            if handle is not None:
                os.close(handle)


def _pieces(handle: int) -> Iterator[bytes]:
    """The content in pieces of 1 MiB, from the beginning; what cannot be read ends it."""
    try:
        while piece := os.read(handle, _PIECE):
            yield piece
    except OSError:
        return


def _count_lines(handle: int) -> int:
    first = os.pread(handle, 2, 0)
    if first in _UTF16:
        return len(_split(decode(b"".join(_pieces(handle)))))
    count, last = 0, b"\n"
    for piece in _pieces(handle):
        count += piece.count(b"\n")
        last = piece[-1:]
    return count + (last != b"\n")


def _split(text: str) -> list[str]:
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]
