"""A SCIP index as a source: which symbol it gives the name at a place, and where that symbol is.

The index was made some time ago, maybe elsewhere. What it says of a file counts only while the file still reads as the
indexer saw it: every range must hold a whole word, and most of them the name of their symbol.
"""

import os
import re
import threading
import time
import weakref
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from code_intel_server.codebase.external_resolution import scip_format
from code_intel_server.codebase.external_resolution.scip_format import Extent, RawOccurrence
from code_intel_server.codebase.external_resolution.values import (
    KnownSymbol,
    NamePlace,
    SourceError,
    from_utf8,
    from_utf16,
    in_order,
    whole_word,
)
from code_intel_server.codebase.files.text import counted, decode, read_bytes
from code_intel_server.common import safe_open

MAX_SCIP_BYTES = 1024 * 1024 * 1024
SCIP_SECONDS = 4.0
"""How long one question may take."""

_WORD = re.compile(r"\w+")
_LOCAL = "local "
_UTF8, _UTF32 = 1, 3


@dataclass(frozen=True, slots=True)
class _Named:
    """An occurrence as the file shows it."""

    place: NamePlace
    symbol: str
    defines: bool


class _OpenIndex:
    """An index file as it was opened once; closed when nobody asks it any more."""

    def __init__(self, root: Path, path: str) -> None:
        self.descriptor = safe_open.open_below(root, path)
        weakref.finalize(self, os.close, self.descriptor)
        status = os.fstat(self.descriptor)
        self.size = status.st_size
        self.stamp = (status.st_ino, status.st_size, status.st_mtime_ns)
        self.engine = ""
        self.extents: dict[str, list[Extent]] = {}

    def survey(self) -> None:
        """Find out what it holds. Raises OSError or ValueError."""
        if self.size > MAX_SCIP_BYTES:
            raise ValueError(f"larger than {MAX_SCIP_BYTES // 1024**3} GB")
        metadata, self.extents = scip_format.documents(self.descriptor, self.size)
        self.engine = scip_format.tool(metadata)


class ScipIndex:
    """The SCIP index at `path` of a project. Safe to use from several threads."""

    def __init__(self, root: Path, path: str) -> None:
        self._root = root
        self._path = path
        self._lock = threading.Lock()
        self._kept: _OpenIndex | None = None

    def symbol_at(self, path: str, line: int, column: int) -> tuple[KnownSymbol, str]:
        """The symbol at a place (1-based), and a remark ('' for none). Raises SourceError where the index does not tell."""
        try:
            return _Look(self._root, self._path, self._opened()).symbol_at(path, line, column - 1)
        except TimeoutError:
            raise SourceError(f"{self._path} took more than {SCIP_SECONDS:g} s to read") from None
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise SourceError(f"{self._path} cannot be read: {why}") from None

    def _opened(self) -> _OpenIndex:
        with self._lock:
            now = _OpenIndex(self._root, self._path)
            if self._kept is None or self._kept.stamp != now.stamp:
                now.survey()
                self._kept = now
            return self._kept


class _Look:
    """One question to the index."""

    def __init__(self, root: Path, name: str, index: _OpenIndex) -> None:
        self._root = root
        self._name = name
        self._index = index
        self._deadline = time.monotonic() + SCIP_SECONDS
        self._read: dict[str, _Document | None] = {}

    def symbol_at(self, path: str, line: int, column: int) -> tuple[KnownSymbol, str]:
        if path not in self._index.extents:
            raise SourceError(f"{self._name} does not know {path}")
        document = self._document(path)
        if document is None:
            raise SourceError(f"{self._name} saw another content of {path}")
        here = [one for one in document.on_line.get(line, ()) if one.place.start <= column < one.place.end]
        symbols = frozenset(one.symbol for one in here)
        if not symbols:
            raise SourceError(f"{self._name} names nothing at {path}:{line}:{column + 1}")
        stale: list[str] = []
        found = [one for other in self._holding(symbols, path, stale) for one in other.named if one.symbol in symbols]

        known = KnownSymbol(
            f"SCIP index ({self._index.engine or self._name})",
            in_order(one.place for one in found if one.defines),
            frozenset(one.place for one in found),
            min(symbols).partition(" ")[2][:200],  # without the scheme: `npm react 18.2.0 index/useState().`
            self._means_other,
        )
        first = (
            f"{self._name} saw another content of {counted(len(stale), 'file')}, the first {stale[0]}" if stale else ""
        )
        return known, first

    def _means_other(self, path: str, line: int, names: Set[str]) -> bool:
        try:
            document = self._document(path)
        except (TimeoutError, OSError, ValueError):
            return False
        return document is not None and any(one.place.text in names for one in document.on_line.get(line, ()))

    def _holding(self, symbols: Set[str], path: str, stale: list[str]) -> Iterator["_Document"]:
        """The documents that hold a symbol and count; the paths of those that do not count any more go to `stale`."""
        wanted = [symbol.encode() for symbol in symbols if not symbol.startswith(_LOCAL)]
        for other, extents in self._index.extents.items():
            if other != path and not any(symbol in data for data in self._parts(extents) for symbol in wanted):
                continue
            document = self._document(other)
            if document is not None:
                yield document
            else:
                stale.append(other)

    def _parts(self, extents: Sequence[Extent]) -> Iterator[bytes]:
        for extent in extents:
            if time.monotonic() > self._deadline:
                raise TimeoutError
            yield scip_format.read(self._index.descriptor, extent)

    def _document(self, path: str) -> "_Document | None":
        """What the index says of a file; None where it says nothing, or the file reads otherwise now."""
        if path not in self._read:
            parts = [scip_format.occurrences(data) for data in self._parts(self._index.extents.get(path, ()))]
            text = decode(read_bytes(self._root, path) or b"")  # several where several configurations hold the file
            named = [one for at, part in enumerate(parts) for one in _named(path, text, at, *part)]
            self._read[path] = _Document(named) if named and _names_agree(named) else None
        return self._read[path]


class _Document:
    """What an index says of one file."""

    def __init__(self, named: Sequence[_Named]) -> None:
        self.named = named
        self.on_line: dict[int, list[_Named]] = {}
        for one in named:
            self.on_line.setdefault(one.place.line, []).append(one)


def _named(
    path: str, text: str, part: int, raw: Sequence[RawOccurrence], encoding: int, seen: bytes
) -> Iterator[_Named]:
    """The occurrences in a file; none where it does not read as it did for the indexer."""
    lines = text.split("\n")
    named = []
    for one in raw:
        if one.start == one.end:
            continue  # the file itself
        line = lines[one.line] if one.line < len(lines) else ""
        start, end = (_character(line, column, encoding) for column in (one.start, one.end))
        if not whole_word(line, start, end):
            return
        place = NamePlace(path, one.line + 1, start, end, line[start:end])
        symbol = one.symbol.decode("utf-8", "replace")
        named.append(_Named(place, f"{symbol} of {part}" if symbol.startswith(_LOCAL) else symbol, one.defines))
    if not seen or decode(seen) == text:
        yield from named


def _character(line: str, column: int, encoding: int) -> int:
    if encoding == _UTF32:
        return column
    return from_utf8(line, column) if encoding == _UTF8 else from_utf16(line, column)


def _names_agree(named: Sequence[_Named]) -> bool:
    """Whether the words in a file are the names of their symbols: each that is defined, and most that are used."""
    local: dict[str, str] = {}
    agree = differ = 0
    for one in named:
        text = one.place.text
        if not _WORD.fullmatch(text):
            continue
        is_local = one.symbol.startswith(_LOCAL)
        if local.setdefault(one.symbol, text) == text if is_local else text in one.symbol:
            agree += 1
        elif one.defines and not is_local:
            return False
        else:
            differ += 1
    return agree >= 2 * differ
