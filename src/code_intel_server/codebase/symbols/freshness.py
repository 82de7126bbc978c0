"""Holds what ripgrep and ctags told against the files themselves.

Both open files by name: who swaps a folder for a link while they run makes them read what the link leads to. So what an
answer shows is taken from the file as `text.read_bytes` opens it, never outside the project; what is there
differently is looked for anew, and left out where it is not there.
"""

import re
from dataclasses import replace
from pathlib import Path

from code_intel_server.codebase.files.ripgrep import FileMatches, Match
from code_intel_server.codebase.files.text import Lines, as_searched, decode, is_binary, read_bytes
from code_intel_server.codebase.symbols import ctags
from code_intel_server.codebase.symbols.ctags import Tag
from code_intel_server.codebase.symbols.store import StoredSymbol

_REMEMBERED_BYTES = 8 * 1024 * 1024
_SPACE = b" \t\r\n\f\v"
_WORD = re.compile(r"\w+")
_COMMENT = re.compile(rb"/\*.{0,1000}?\*/|(?://|#|--)[^\n]*", re.DOTALL)
_MARK = re.compile(
    r"(?P<comment>/\*.{0,1000}?\*/|(?://|#|--)[^\n]*)|(?P<quoted>\"(?:\\.|[^\"\\\n]){0,300}\"|'(?:\\.|[^'\\\n]){0,300}')"
    r"|[()\[\]{};]|(?<=\))\s{0,99}:(?!:)|\n(?!\s{0,99}\()",
    re.DOTALL,
)
"""What tells where the beginning of a definition ends; in brackets only these count."""
_SIGNATURE_BYTES = 4096
"""Bytes behind the beginning of a definition in which its signature stands, besides its own length."""


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
        self._defined: dict[StoredSymbol, bool] = {}

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

    def holds(self, path: str, *texts: str) -> bool:
        """Whether every word of `texts` is in the file, whatever the letters' case."""
        words = [word.encode() for text in texts for word in _WORD.findall(text)]
        content = self.content(path)
        if content is None:
            return False
        missing = [word.lower() for word in words if word not in content]
        folded = content.lower() if missing else b""
        return all(word in folded for word in missing)

    def defines(self, symbol: StoredSymbol) -> bool:
        """Whether the file may define the symbol: a syntax tree was made of what was read so, of ctags the words must be there."""
        known = self._defined.get(symbol)
        if known is None:
            if symbol.engine != ctags.ENGINE:
                known = self.content(symbol.path) is not None
            else:
                known = self.holds(symbol.path, symbol.tag.name, symbol.tag.scope)
            self._defined[symbol] = known
        return known

    def signature(self, path: str, engine: str, tag: Tag) -> str:
        """The tag's signature, '' where it is differently behind the definition's first line."""
        text = tag.signature
        if engine != ctags.ENGINE or not _WORD.search(text):
            return text
        behind = self._file(path).lines.behind(tag.start_line, len(text) * 4 + _SIGNATURE_BYTES)
        wanted = text.encode().translate(None, _SPACE)
        if wanted in behind.translate(None, _SPACE):
            return text
        # ctags leaves out comments, attributes and continuation marks, and changes quotes.
        stands = wanted in _COMMENT.sub(b"", behind).translate(None, _SPACE) or _in_order(text, _head(behind))
        return text if stands else ""


def _head(behind: bytes) -> str:
    """A definition's beginning up to its body, without comments: till no bracket is open and its line or clause ends."""
    text, depth, begin = behind.decode("utf-8", "replace"), 0, 0
    parts: list[str] = []
    for mark in _MARK.finditer(text):
        if mark["comment"]:
            parts.append(text[begin : mark.start()])
            begin = mark.end()
        elif not mark["quoted"]:
            if depth == 0 and mark[0] not in "([":
                return "".join([*parts, text[begin : mark.start()]])
            depth += (mark[0] in "([{") - (mark[0] in ")]}")
    return "".join([*parts, text[begin:]])


def _in_order(signature: str, head: str) -> bool:
    """Whether every word of a signature is in a definition's beginning, in this order, whatever the letters' case."""
    standing = iter(_WORD.findall(head.lower()))
    return all(word in standing for word in _WORD.findall(signature.lower()))


def same(match: Match, line: bytes | None) -> bool:
    """Whether a line is the one that was found."""
    if line is None:
        return False
    return line.startswith(match.text) if match.cut else line == match.text + match.ending
