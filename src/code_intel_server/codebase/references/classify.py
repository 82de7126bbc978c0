"""What a name is on the lines that ripgrep found in one file: the rows of `find_references` and of impact (SPEC 2).

The syntax tree says it. A file that no grammar reads is told line by line, unless it is a document by its type.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from code_intel_server.codebase.answers import InFile, labelled
from code_intel_server.codebase.files import ripgrep
from code_intel_server.codebase.files.languages import Language, LanguageKind, language_of
from code_intel_server.codebase.files.project import valid_text
from code_intel_server.codebase.files.ripgrep import FileMatches
from code_intel_server.codebase.files.text import Lines, as_searched, decode
from code_intel_server.codebase.symbols.freshness import SourceFiles
from code_intel_server.codebase.symbols.names import expression
from code_intel_server.codebase.syntax.values import Outline, Symbol, Use

if TYPE_CHECKING:
    from code_intel_server.codebase.syntax.structure import Parsed

PROSE = frozenset({Use.COMMENT, Use.STRING})
_WORD = re.compile(r"\w+")
_TEXT_COLUMNS = 200
_TRANSLATIONS = (".po", ".pot")
"""They hold what the program says, and where, in comments."""


@dataclass(frozen=True, slots=True)
class ReferenceRow(InFile):
    """A line on which a symbol is used as `kind`. `enclosing` is the qualified symbol around it ('' at the top), of `enclosing_kind`.

    `binding` is certain or possible, '' where nobody asked which symbol is meant.
    """

    path: str
    start_line: int
    end_line: int
    text: str
    symbol: str
    kind: Use
    enclosing: str
    enclosing_kind: str = ""
    enclosing_line: int = 0
    binding: str = ""

    @property
    def heading(self) -> Mapping[str, object]:
        """Whether the rows certainly mean what was asked for."""
        return {"binding": self.binding} if self.binding else {}

    def as_row(self) -> str:
        """`12: text  [call in Basket.checkout]`."""
        return f"{self.start_line}: {labelled(self.text, self.kind.value, self.enclosing)}"


Rows = Sequence[ReferenceRow]
Told = Rows | None
"""The rows of a file; None for one that cannot be read."""


@dataclass(frozen=True, slots=True)
class NameQuery:
    """What to look for in a line, and whether comments and strings count."""

    names: re.Pattern[bytes]
    include_comments: bool


def occurrences(names: Sequence[str]) -> re.Pattern[bytes]:
    """What finds any of `names` in UTF-8 text; where a name's end is part of a word, only at that word's end."""
    # What must not be before a word is looked at once for all of them: of a hundred names most places are none.
    in_words, others = ([one for one in names if bool(_WORD.match(one[0])) is is_word] for is_word in (True, False))
    groups = [rb"(?<![\w\x80-\xff])(?:" + _any_of(in_words) + b")"] if in_words else []
    return re.compile(b"|".join([*groups, *([_any_of(others)] if others else [])]))


def _any_of(names: Sequence[str]) -> bytes:
    return b"|".join(
        expression(name).encode("utf-8", "replace") + (rb"(?![\w\x80-\xff])" if _WORD.match(name[-1]) else b"")
        for name in sorted(names, key=len, reverse=True)
    )


def classify(standing: SourceFiles, file: FileMatches, asked: NameQuery) -> Told:
    """What the names are on the lines that ripgrep found in one file; None where the file cannot be read."""
    data = standing.content(file.path)
    if data is None:
        return None
    language = language_of(file.path, data)
    document = is_document(file.path, language)
    if document and not asked.include_comments:
        return ()
    file = standing.matches(file, asked.names)
    if document:
        return tuple(_plain(file, data, asked, Use.COMMENT))
    parsed = _parsed(data, language) if language else None
    return tuple(_by_tree(parsed, file, asked) if parsed else _plain(file, data, asked, Use.OTHER))


def unparsed(standing: SourceFiles, file: FileMatches, asked: NameQuery) -> Told:
    """The lines of a file that time did not suffice to parse, their uses untold (`other`)."""
    content = standing.content(file.path)
    return None if content is None else list(_plain(standing.matches(file, asked.names), content, asked, Use.OTHER))


def is_document(path: str, language: Language | None) -> bool:
    """Whether it is prose, which mentions and does not use. What is in no known language may well be code."""
    return path.endswith(_TRANSLATIONS) if language is None else language.kind is LanguageKind.DOCS


def may_hold(file: FileMatches, asked: NameQuery) -> bool:
    """Whether a name is on some line of the file as ripgrep printed it, or may be in what it did not print."""
    return file.may_be_cut or asked.names.search(file.printed) is not None


def _plain(file: FileMatches, content: bytes, asked: NameQuery, use: Use) -> Iterator[ReferenceRow]:
    """The lines as ripgrep found them, all taken for the same use."""
    lines = Lines(as_searched(content))
    for match in file.lines():
        line = lines.at(match.line) or b""  # none where the file has changed since the search
        name = asked.names.search(line)
        if name is not None:
            text = _clipped(decode(line[: ripgrep.MAX_COLUMNS]))
            yield ReferenceRow(valid_text(file.path), match.line, match.line, text, decode(name[0]), use, "")


def _parsed(data: bytes, language: Language) -> "Parsed | None":
    from code_intel_server.codebase.syntax import structure

    return structure.parse(data, language) if structure.has_queries(language) else None


def _by_tree(parsed: "Parsed", file: FileMatches, asked: NameQuery) -> Iterator[ReferenceRow]:
    from code_intel_server.codebase.syntax import structure

    found = list(_occurrences(parsed, file, asked))
    near = parsed.near([byte for _, byte, _ in found])
    uses, outline = structure.Uses(near), structure.outline_of(near)
    seen: set[tuple[int, bytes, Use]] = set()
    for number, byte, name in found:
        if uses.is_part(byte, name):
            continue
        begin, end = parsed.line_starts[number - 1], parsed.line_end(number)
        use = uses.at(number, byte - begin)
        if (number, name, use) in seen or (use in PROSE and not asked.include_comments):
            continue
        seen.add((number, name, use))
        around = _around(outline, byte)
        yield ReferenceRow(
            path=valid_text(file.path),
            start_line=number,
            end_line=number,
            text=_clipped(decode(parsed.text[begin:end])),
            symbol=decode(name),
            kind=use,
            enclosing=around.qualified if around else "",
            enclosing_kind=around.kind.value if around else "",
            enclosing_line=around.start_line if around else 0,
        )


def _occurrences(parsed: "Parsed", file: FileMatches, asked: NameQuery) -> Iterator[tuple[int, int, bytes]]:
    """(line, byte, name) of every occurrence on the lines that ripgrep found."""
    for number in (match.line for match in islice(file.lines(), len(parsed.line_starts))):
        if number > len(parsed.line_starts):
            continue  # the file has changed since the search
        begin = parsed.line_starts[number - 1]
        line = parsed.text[begin : parsed.line_end(number)]
        yield from ((number, begin + found.start(), found[0]) for found in asked.names.finditer(line))


def _around(outline: Outline, byte: int) -> Symbol | None:
    """The innermost symbol around a byte; a definition's own name is in what is around the definition."""
    from code_intel_server.codebase.syntax import structure

    found = structure.symbol_at(outline, byte)
    if found is None or found.name_byte != byte:
        return found
    return outline.symbols[found.parent_index] if found.parent_index is not None else None


def _clipped(text: str) -> str:
    return text.strip()[:_TEXT_COLUMNS]
