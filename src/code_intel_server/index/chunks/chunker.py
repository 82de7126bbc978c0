"""Cuts a file into chunks by its syntax (SPEC 8).

A definition with its comment and decorators is a chunk where it fits; a class or namespace that does not is its header
and its members, each under the header; a function that does not is cut at the borders of its statements. Neighbours
that are small are put together. What is between definitions is cut the same way as text without a grammar: by
windows of lines. Markdown is cut by heading.

A chunk's id is made of its path and text, so that the same file gives the same ids, in any checkout; chunks of one file
that are alike to the letter are distinguished by their number.
"""

import hashlib
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from code_intel_server.codebase.files.languages import Language, LanguageKind
from code_intel_server.codebase.syntax.values import Block, Symbol, SymbolKind
from code_intel_server.index.chunks.windows import (
    CHARACTERS_PER_TOKEN,
    Best,
    Section,
    Span,
    TokenLines,
    by_layout,
    cut,
    sections,
)
from code_intel_server.index.values import Chunk, ChunkStrategy, lookup_names, path_tag

if TYPE_CHECKING:
    from code_intel_server.codebase.syntax.structure import Borders

CHUNKER_VERSION = "11"
"""Another version means other chunks: the index is then cut anew."""

MERGE_FRACTION = 0.4
"""Neighbours are put together up to this part of `chunk_max_tokens`."""

MAX_DATA_CHUNKS = 40
"""Of a file that is neither code nor prose only the beginning is indexed: the rest is more of the same."""

MAX_LINE_BYTES = 1 << 16
"""A file with a longer line is cut by lines: its syntax would say nothing about that line, and may take minutes over it."""

MAX_WINDOWS_OF_A_LINE = 8
"""A single line is indexed up to this many chunks: beyond that it is minified or data, and nobody reads it."""


class _Piece(NamedTuple):
    """Lines on the way to a chunk. `leads` says that they are the head of a definition whose members are chunks of their own."""

    span: Span
    kind: str = "text"
    symbol: str = ""
    scope: str = ""
    header: str = ""
    leads: bool = False


@dataclass(frozen=True, slots=True)
class _Source:
    """A file with what its syntax says."""

    lines: TokenLines
    symbols: Sequence[Symbol]
    best: Callable[[Span], Best]
    limit: int
    by_line: Sequence[tuple[int, int]]
    """(line, number) of every symbol, sorted: what a span defines is a slice of it."""

    @property
    def small(self) -> int:
        """The size up to which neighbours are put together."""
        return int(self.limit * MERGE_FRACTION)

    def defined_in(self, span: Span) -> Iterator[Symbol]:
        """The symbols whose names are in a span, in their order."""
        first, last = bisect_left(self.by_line, (span.start + 1,)), bisect_left(self.by_line, (span.end + 1,))
        return (self.symbols[number] for number in sorted(number for _, number in self.by_line[first:last]))


def _source(lines: TokenLines, symbols: Sequence[Symbol], best: Callable[[Span], Best], limit: int) -> _Source:
    by_line = sorted((symbol.line, number) for number, symbol in enumerate(symbols))
    return _Source(lines, symbols, best, limit, by_line)


def chunk_file(
    path: str, data: bytes, language: Language | None, *, max_tokens: int, strategy: ChunkStrategy = ChunkStrategy.AST
) -> list[Chunk]:
    """The chunks of a file in order; every visible line of code or prose is in one, but for the far end of enormous lines."""
    pieces, source = _pieces(data, language, max_tokens, strategy)
    chunks = (chunk for piece in pieces for chunk in _finish(path, piece, source))
    prose = language is not None and language.kind in {LanguageKind.CODE, LanguageKind.DOCS}
    return list(_identified(chunks if prose else islice(chunks, MAX_DATA_CHUNKS)))


def _pieces(
    data: bytes, language: Language | None, limit: int, strategy: ChunkStrategy
) -> tuple[Iterable[_Piece], _Source]:
    if strategy is ChunkStrategy.AST and len(data) > MAX_LINE_BYTES and longest_line(data) > MAX_LINE_BYTES:
        strategy = ChunkStrategy.TEXT
    if strategy is ChunkStrategy.AST and language is not None and language.name != "markdown":
        from code_intel_server.codebase.syntax import structure

        parsed = structure.parse(data, language) if structure.has_queries(language) else None
        if parsed is not None:
            lines, outline = TokenLines(parsed.text.decode("utf-8", "replace")), structure.outline_of(parsed)

            def best(span: Span) -> Best:
                return _by_borders(structure.Borders(parsed, span.start + 1, span.end), by_layout(lines, span))

            source = _source(lines, outline.symbols, best, limit)
            return _members(source, structure.blocks_of(parsed, outline), Span(0, len(lines)), "", ""), source
    lines = TokenLines(decode_text(data))
    source = _source(lines, (), lambda span: by_layout(lines, span), limit)
    if strategy is ChunkStrategy.AST and language is not None and language.name == "markdown":
        return _by_heading(source, sections(lines)), source
    return _split(source, _Piece(Span(0, len(lines))), source.limit), source


def longest_line(data: bytes) -> int:
    """The bytes of the longest line."""
    return max(map(len, data.split(b"\n")))


def decode_text(data: bytes) -> str:
    """Text of any encoding: UTF-16 by its mark, else UTF-8 with what is none replaced."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    return data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")


def _by_borders(borders: "Borders", layout: Best) -> Best:
    """Prefers lines where a statement begins, the outer the better; the layout decides between equals."""

    def best(candidates: Sequence[int]) -> int:
        lines = borders.outermost(candidates[0] + 1, candidates[-1] + 1)
        return layout([line - 1 for line in lines] or candidates)

    return best


def _members(source: _Source, blocks: Sequence[Block], span: Span, scope: str, header: str) -> Iterator[_Piece]:
    """The definitions directly inside a span and what is between them, small neighbours put together."""
    parts: list[_Piece] = []
    at = span.start
    for block in blocks:
        start, end = max(at, block.lead_line - 1), min(block.end_line, span.end)
        if end <= start:
            continue
        parts += _split(source, _Piece(Span(at, start), scope=scope, header=header), source.limit)
        parts += _definition(source, block, Span(start, end), header)
        at = end
    parts += _split(source, _Piece(Span(at, span.end), scope=scope, header=header), source.limit)
    yield from _merged(source, parts, header)


def _definition(source: _Source, block: Block, span: Span, header: str) -> Iterator[_Piece]:
    symbol = source.symbols[block.symbol_index]
    piece = _Piece(span, str(symbol.kind), symbol.name, symbol.scope, header)
    if source.lines.tokens(span) <= source.limit:
        yield piece
    elif block.children:
        header_end = min(max(block.header_end_line, span.start + 1), block.children[0].lead_line - 1, span.end)
        inner = list(_members(source, block.children, Span(header_end, span.end), symbol.qualified, symbol.signature))
        head = Span(span.start, header_end)
        if inner and not inner[0].symbol and source.lines.tokens(Span(head.start, inner[0].span.end)) <= source.limit:
            head = Span(head.start, inner.pop(0).span.end)
        yield from _split(source, piece._replace(span=head, leads=True), source.limit)
        yield from inner
    else:
        yield from _split(source, piece, source.limit)


def _split(source: _Source, piece: _Piece, limit: int) -> list[_Piece]:
    """A piece in parts that fit; those below the first line of a definition stand under it."""
    span = source.lines.trimmed(piece.span)
    if span.start >= span.end:
        return []
    if source.lines.tokens(span) <= limit:
        return [piece._replace(span=span)]
    spans = cut(source.lines, span, limit, source.best(span))
    parts = [piece._replace(span=part) for part in spans]
    symbol = next((symbol for symbol in source.defined_in(piece.span) if symbol.name == piece.symbol), None)
    if symbol is not None:
        # Its comment and its first part are the definition; what comes after is only part of it.
        parts = [
            part
            if part.span.start < symbol.line
            else part._replace(symbol="", scope=symbol.qualified, header=symbol.signature)
            for part in parts
        ]
    return parts


def _merged(source: _Source, parts: Sequence[_Piece], header: str) -> list[_Piece]:
    """Neighbours put together while they stay small; the weightiest definition among them names the chunk."""
    merged: list[_Piece] = []
    for part in parts:
        last = merged[-1] if merged else None
        if (
            last is not None
            and last.header == part.header == header
            and source.lines.tokens(Span(last.span.start, part.span.end)) <= source.small
        ):
            merged[-1] = max(last, part, key=_importance)._replace(span=Span(last.span.start, part.span.end))
        else:
            merged.append(part)
    return merged


def _importance(piece: _Piece) -> int:
    """Heads of large types before types before functions before the rest; `max` takes the first of equals."""
    if piece.leads:
        return 4
    return _IMPORTANCE.get(piece.kind, 1) if piece.symbol else 0


_IMPORTANCE = {str(kind): 3 if kind.is_type else 2 if kind.is_callable else 1 for kind in SymbolKind}


def _by_heading(source: _Source, parts: Iterable[Section]) -> Iterator[_Piece]:
    pieces: list[_Piece] = []
    for part in parts:
        above = " / ".join(part.trail[:-1])
        title = part.trail[-1] if part.trail else ""
        pieces += _split(source, _Piece(part.span, "section" if title else "text", title, above, above), source.limit)
    yield from _merged(source, pieces, "")


def _finish(path: str, piece: _Piece, source: _Source) -> Iterator[Chunk]:
    span = source.lines.trimmed(piece.span)
    if span.start >= span.end:
        return
    whole = source.lines.text(span)
    if source.symbols:
        names = _names(source.defined_in(span))
    else:
        names = (piece.symbol,) if piece.symbol else defined_names(whole)
    for text in _bounded(whole, source.limit):
        yield Chunk(
            "", path, span.start + 1, span.end, text, piece.kind, piece.symbol, piece.scope, piece.header, names
        )


def _names(symbols: Iterable[Symbol]) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(name for symbol in symbols for name in lookup_names(symbol.kind, symbol.name) if name.strip())
    )


_MODIFIERS = (
    r"export|default|public|private|protected|internal|static|abstract|final|sealed|open|override|inline|async|"
    r"data|case|pub(?:\([^)]{0,200}\))?|local|partial|virtual|extern|unsafe|implicit|lazy"
)
_KEYWORDS = (
    r"class|interface|struct|enum|trait|object|module|defmodule|protocol|record|namespace|type|newtype|data|def|defp|"
    r"defmacro|func|function|fn|fun|sub|proc|macro_rules!"
)
# No line is left before its keyword: from a run of blank lines, or of modifiers, each line would be tried to its end.
_DEFINES = re.compile(
    rf"^[^\S\n]*+(?:(?:{_MODIFIERS})[^\S\n]++)*(?:(?!data[^\S\n]*+\n\s*+(?:{_MODIFIERS}|{_KEYWORDS})\s)(?:{_KEYWORDS})\s++"
    r"(?:\([^)]{0,200}\)\s*+)?([A-Za-z_][\w.:]*))",
    re.MULTILINE,
)
_MAX_GUESSED = 40


def defined_names(text: str) -> tuple[str, ...]:
    """What a text without a grammar seems to define, by the words that languages begin definitions with."""
    found = (re.split(r"[.:]+", name.rstrip(".:"))[-1] for name in _DEFINES.findall(text))
    return tuple(dict.fromkeys(found))[:_MAX_GUESSED]


def _bounded(text: str, limit: int) -> Iterator[str]:
    """The text itself, or for a line that is longer than a chunk its first windows."""
    width = limit * CHARACTERS_PER_TOKEN
    if "\n" in text or len(text) <= width:
        yield text
        return
    for number in range(min(MAX_WINDOWS_OF_A_LINE, -(-len(text) // width))):
        yield text[number * width : (number + 1) * width]


def _identified(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    seen: Counter[bytes] = Counter()
    tag = ""
    for c in chunks:
        tag = tag or path_tag(c.path)
        key = hashlib.blake2b(f"{c.scope}\0{c.text}".encode("utf-8", "replace"), digest_size=8)
        digest = key.digest()
        number = seen[digest]
        seen[digest] = number + 1
        if number:
            key.update(str(number).encode())
        # Spelt out: `replace` takes as long as all the rest of this.
        yield Chunk(
            tag + key.hexdigest(),
            c.path,
            c.start_line,
            c.end_line,
            c.text,
            c.kind,
            c.symbol,
            c.scope,
            c.header,
            c.names,
        )
