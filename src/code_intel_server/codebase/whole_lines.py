"""Matching lines as they stand in their files: ripgrep cuts the long ones."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from code_intel_server.codebase.ripgrep import Match
from code_intel_server.codebase.text import as_searched, read_bytes


class WholeLines:
    """Reads a file only for a line that was cut, and only once for all those that follow each other."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lines = lru_cache(maxsize=1)(self._read)

    def of(self, match: Match) -> bytes:
        """The line, with the carriage return that a pattern may mean; its beginning where the file has changed since."""
        if not match.cut:
            return match.text + match.ending
        lines = self._lines(match.path)
        return lines[match.line - 1] if match.line <= len(lines) else match.text

    def _read(self, path: str) -> Sequence[bytes]:
        return as_searched(read_bytes(self._root / path) or b"").split(b"\n")
