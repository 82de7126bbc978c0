"""The files behind an answer, each read once: whole lines, the lines around a match, and whether a match is still there."""

import re
from dataclasses import replace
from pathlib import Path

from code_intel_server.codebase.files.ripgrep import FileMatches, Match
from code_intel_server.codebase.files.text import Lines, as_searched, decode, is_binary, read_bytes
from code_intel_server.codebase.symbols.store import StoredSymbol

_REMEMBERED_BYTES = 8 * 1024 * 1024


class _Kept:
    """A file's bytes, and their lines once these are asked for: they are forgotten together."""

    __slots__ = ("_lines", "content")

    def __init__(self, content: bytes | None) -> None:
        self.content = content
        self._lines: Lines | None = None

    @property
    def lines(self) -> Lines:
        """The content as it is searched, none where the file could not be read; taken apart once."""
        if self._lines is None:
            self._lines = Lines(as_searched(self.content or b""))
        return self._lines


class SourceFiles:
    """The files behind one answer, each read once. For one thread."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._kept: dict[str, _Kept] = {}
        self._bytes = 0

    def content(self, path: str) -> bytes | None:
        """See `text.read_bytes`; what was read first is forgotten first."""
        return self._file(path).content

    def _file(self, path: str) -> _Kept:
        if kept := self._kept.get(path):
            return kept
        kept = self._kept[path] = _Kept(read_bytes(self._root, path))
        self._bytes += len(kept.content or b"")
        while self._bytes > _REMEMBERED_BYTES:
            self._bytes -= len(self._kept.pop(next(iter(self._kept))).content or b"")
        return kept

    def text(self, path: str, number: int) -> str:
        """A 1-based line as text, '' beyond the end, in what is binary and in what cannot be read."""
        file = self._file(path)
        line = None if file.content is None or is_binary(file.content) else file.lines.at(number)
        return "" if line is None else decode(line).removesuffix("\r")

    def texts(self, path: str, numbers: range) -> list[str]:
        """Those of the 1-based lines that there are, as text; none of what is binary or cannot be read."""
        if not numbers:
            return []  # a file that was forgotten meanwhile need not be read again
        file = self._file(path)
        if file.content is None or is_binary(file.content):
            return []
        found = [(number, line) for number in numbers if (line := file.lines.at(number)) is not None]
        if found and not found[-1][1] and file.lines.at(found[-1][0] + 1) is None:
            found.pop()  # behind the last line's end there is no other
        return [decode(line).removesuffix("\r") for _, line in found]

    def line(self, match: Match) -> bytes | None:
        """The line that now is where a match was found, with its carriage return; None where the file has none there."""
        file = self._file(match.path)
        return None if file.content is None else file.lines.at(match.line)

    def whole(self, match: Match) -> bytes:
        """The match's line, which ripgrep cuts where it is long, with its carriage return; its beginning where it is another now."""
        if not match.cut:
            return match.text + match.ending
        line = self.line(match)
        return match.text if line is None else line

    def matches(self, file: FileMatches, names: re.Pattern[bytes]) -> FileMatches:
        """The file as ripgrep found it, where every line still is so; else the lines that hold any of `names` now."""
        if self.content(file.path) is None:
            return replace(file, count=0, printed=b"")
        if all(same(match, self.line(match)) for match in file.lines()):
            return file
        found = [
            b"%d:%s\n" % (number, line)
            for number, line in enumerate(self._file(file.path).lines.all(), 1)
            if names.search(line) is not None
        ]
        return replace(file, count=len(found), printed=b"".join(found))

    def defines(self, symbol: StoredSymbol) -> bool:
        """Whether the file that defined the symbol can still be read."""
        return self.content(symbol.path) is not None


def same(match: Match, line: bytes | None) -> bool:
    """Whether a line is the one that was found."""
    if line is None:
        return False
    return line.startswith(match.text) if match.cut else line == match.text + match.ending
