"""get_symbols, get_function_at_line, analyze_structure: what a file or folder is made of, by syntax tree (SPEC 2)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from code_intel_server.codebase.answers import InFile, LookupAnswer, Page, Row, Skipped, answer, labelled, lines_of
from code_intel_server.codebase.files.ignore import project_files
from code_intel_server.codebase.files.languages import Language, language_of
from code_intel_server.codebase.files.project import ProjectScope, inside_file, path_inside, valid_text
from code_intel_server.codebase.files.text import decode, is_binary, read_bytes, split_lines
from code_intel_server.codebase.symbols.tagging import SYNTAX_TREE, tag_files
from code_intel_server.codebase.syntax.values import Call, Import, Symbol
from code_intel_server.common.word_set import word_set
from code_intel_server.errors import Rejected

if TYPE_CHECKING:
    from code_intel_server.codebase.syntax.structure import Parsed

MAX_FOLDER_FILES = 500
FIRST_FILES = Page(20)
MAX_SOURCE_LINES = 400
OUTLINE_COLUMNS = 160
"""Characters of a signature that an outline shows."""

_CODE_KINDS = word_set(
    "function method constructor macro class struct interface trait impl enum object module namespace"
)
_LINES_SHOWN = 4
"""Lines of calls of the same name that are shown."""


@dataclass(frozen=True, slots=True)
class SymbolRow(InFile):
    """A symbol of an outline. `line` holds the name, `depth` counts the symbols around it."""

    path: str
    start_line: int
    end_line: int
    line: int
    symbol: str
    kind: str
    scope: str
    signature: str
    depth: int

    def as_row(self) -> str:
        """`12-15:   def pay(order)`, as far to the right as it is deep; with its kind where the text does not begin by it."""
        said = " ".join(self.signature.split())[:OUTLINE_COLUMNS] or self.symbol
        if self.symbol not in said:
            said = f"{self.symbol}  {said}"
        if said.startswith(self.symbol):
            said = labelled(said, self.kind, "")
        return f"{lines_of(self.start_line, self.end_line)}: {'  ' * self.depth}{said}"


@dataclass(frozen=True, slots=True)
class SourceRow(InFile):
    """The innermost function or class around a line, with its source (at most 400 lines, then `cut`)."""

    path: str
    start_line: int
    end_line: int
    symbol: str
    kind: str
    scope: str
    signature: str
    source: str
    cut: bool
    enclosing: tuple[str, ...]

    def as_row(self) -> dict[str, object]:
        """Place, qualified name, kind and source."""
        row: dict[str, object] = {"start_line": self.start_line, "end_line": self.end_line}
        symbol = f"{self.scope}.{self.symbol}" if self.scope else self.symbol
        return row | {"symbol": symbol, "kind": self.kind, "source": self.source} | ({"cut": True} if self.cut else {})


@dataclass(frozen=True, slots=True)
class StructureRow(Row):
    """What one file is made of."""

    path: str
    start_line: int
    end_line: int
    language: str
    symbols: tuple[SymbolRow, ...]
    imports: tuple[Import, ...]
    calls: tuple[Call, ...]
    has_errors: bool

    def as_row(self) -> dict[str, object]:
        """Path and language, and lines of text for symbols, imports and calls."""
        row: dict[str, object] = {"path": self.path, "language": self.language, "lines": self.end_line}
        row["symbols"] = tuple(symbol.as_row() for symbol in self.symbols)
        row["imports"] = tuple(f"{item.line}: {item.text}" for item in self.imports)
        row["calls"] = tuple(_folded(self.calls))
        return row | ({"has_errors": True} if self.has_errors else {})


def _folded(calls: Iterable[Call]) -> Iterator[str]:
    """A line of text for each name called in a symbol, by the first call, with the lines of the first `_LINES_SHOWN`."""
    lines: dict[tuple[str, str], list[int]] = {}
    for call in calls:
        lines.setdefault((call.name, call.inside), []).append(call.line)
    for (name, scope), at in lines.items():
        more = f" and {len(at) - _LINES_SHOWN} more" if len(at) > _LINES_SHOWN else ""
        yield f"{', '.join(map(str, at[:_LINES_SHOWN]))}{more}: {name}{f'  [in {scope}]' if scope else ''}"


@dataclass(frozen=True, slots=True)
class _Source:
    """A file that was read for its structure."""

    path: str
    data: bytes
    language: Language


def get_symbols(project: ProjectScope, path: str) -> LookupAnswer[SymbolRow]:
    """The outline of one file in order of lines, nested ones with their `scope` and `depth`.

    Raises Rejected('tool_errors.query.no_file_path') and the errors of `inside_file`.
    """
    relative = inside_file(project.root, path)
    source, why_not = _read(project, relative)
    if source is None:
        return answer((), Page(1), 0, engine=SYNTAX_TREE, incomplete_because=[why_not])
    return _outlined(project, relative, _parsed(source), source.language)


def _outlined(project: ProjectScope, path: str, parsed: "Parsed | None", language: Language) -> LookupAnswer[SymbolRow]:
    if parsed is None:
        return _by_other_engine(project, path, language)
    from code_intel_server.codebase.syntax import structure

    outline = structure.outline_of(parsed)
    rows = _symbol_rows(path, outline.symbols)
    return answer(
        rows, Page(len(rows) or 1), len(rows), engine=SYNTAX_TREE, incomplete_because=_trouble(outline.has_errors)
    )


def get_function_at_line(project: ProjectScope, path: str, line: int) -> LookupAnswer[SourceRow]:
    """The innermost function or class around a 1-based line, with its source; no row where the line is in none.

    A decorator or comment directly above one belongs to it: asked for by such a line, it begins there.
    Raises Rejected('tool_errors.generic.argument_invalid') for a line the file does not have and the errors of `inside_file`.
    """
    relative = inside_file(project.root, path)
    source, why_not = _read(project, relative)
    if source is None:
        return answer((), Page(1), 0, engine=SYNTAX_TREE, incomplete_because=[why_not])
    lines = split_lines(decode(source.data))
    if not 1 <= line <= len(lines):
        raise Rejected(
            "tool_errors.generic.argument_invalid",
            field="line",
            expected=f"a line of {valid_text(relative)}, 1 to {len(lines)}",
        )
    parsed = _parsed(source)
    found = _outlined(project, relative, parsed, source.language)
    rows = _led(parsed, found.results, line) if parsed else found.results
    around = [row for row in rows if row.start_line <= line <= row.end_line and _holds_code(row)]
    if not around:
        return answer((), Page(1), 0, engine=found.engine, incomplete_because=found.incomplete_because)
    around.sort(key=lambda row: (row.end_line - row.start_line, -row.depth))
    row = _source_row(around, lines)
    return answer((row,), Page(1), 1, engine=found.engine, incomplete_because=found.incomplete_because)


def analyze_structure(
    project: ProjectScope, path: str, *, page: Page = FIRST_FILES, skipped: Skipped | None = None
) -> LookupAnswer[StructureRow]:
    """Symbols, imports and calls of one file, or of the files below a folder (at most 500), one row a file.

    Raises the errors of `path_inside`.
    """
    where = path_inside(project.root, path)
    if (project.root / where).is_dir():
        listing = project_files(project)
        below, without = _with_queries(name for name in listing.paths if where == "." or name.startswith(f"{where}/"))
        problems = [
            *listing.problems,
            *([f"there is no outline of {', '.join(without)}"] if without else []),
            *([f"only the first {MAX_FOLDER_FILES} of {len(below)} files"] if len(below) > MAX_FOLDER_FILES else []),
        ]
    else:
        below, problems = [inside_file(project.root, path)], []
    below = below[:MAX_FOLDER_FILES]
    named = page.cut(below)
    rows = [row for name in named if (row := _structure_row(project, name, problems))]
    return answer(rows, page, len(below), engine=SYNTAX_TREE, incomplete_because=problems, skipped=skipped)


def _with_queries(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """The files that have a structure, and the names of the languages of those that have none."""
    from code_intel_server.codebase.syntax import structure

    languages = {name: language for name in names if (language := language_of(name))}
    below = [name for name, language in languages.items() if structure.has_queries(language)]
    return below, sorted(
        {language.name for name, language in languages.items()} - {languages[name].name for name in below}
    )


def _read(project: ProjectScope, path: str) -> tuple[_Source | None, str]:
    data = read_bytes(project.root, path)
    if data is None:
        return None, f"{valid_text(path)} is larger than 1 MB or cannot be read"
    if is_binary(data):
        return None, f"{valid_text(path)} is binary"
    language = language_of(path, data)
    if language is None:
        return None, f"the language of {valid_text(path)} is not known"
    return _Source(path, data, language), ""


def _parsed(source: _Source) -> "Parsed | None":
    from code_intel_server.codebase.syntax import structure

    return structure.parse(source.data, source.language) if structure.has_queries(source.language) else None


def _symbol_rows(path: str, symbols: Sequence[Symbol]) -> list[SymbolRow]:
    depths: list[int] = []
    rows = []
    for symbol in symbols:
        depths.append(0 if symbol.parent_index is None else depths[symbol.parent_index] + 1)
        rows.append(
            SymbolRow(
                path=valid_text(path),
                start_line=symbol.start_line,
                end_line=symbol.end_line,
                line=symbol.line,
                symbol=symbol.name,
                kind=symbol.kind.value,
                scope=symbol.scope,
                signature=symbol.signature,
                depth=depths[-1],
            )
        )
    return rows


def _by_other_engine(project: ProjectScope, path: str, language: Language) -> LookupAnswer[SymbolRow]:
    """The outline by ctags, for a language without a query file."""
    tagging = tag_files(project.root, [path])
    rows = [
        SymbolRow(
            valid_text(path),
            tag.start_line,
            tag.end_line,
            tag.start_line,
            tag.name,
            tag.kind,
            tag.scope,
            tag.signature,
            tag.scope.count(".") + bool(tag.scope),
        )
        for file in tagging.files
        for tag in sorted(file.tags, key=lambda tag: (tag.start_line, -tag.end_line))
    ]
    problems = (*tagging.problems, *(() if rows else (f"there is no outline of {language.name}",)))
    return answer(
        rows,
        Page(len(rows) or 1),
        len(rows),
        engine=(tagging.files and tagging.files[0].engine) or SYNTAX_TREE,
        incomplete_because=problems,
    )


def _trouble(has_errors: bool) -> Iterator[str]:
    if has_errors:
        yield "part of the file does not parse (has_errors); the rest is sound"


def _holds_code(row: SymbolRow) -> bool:
    return row.kind in _CODE_KINDS


def _led(parsed: "Parsed", rows: Sequence[SymbolRow], line: int) -> Sequence[SymbolRow]:
    """The rows, one that begins below `line` moved up to where its decorators and comments begin, if the line is one of them."""
    from code_intel_server.codebase.syntax import structure

    nearest = next((number for number, row in enumerate(rows) if row.start_line > line and _holds_code(row)), None)
    if nearest is None:
        return rows
    below = rows[nearest]
    first = structure.lead_line(parsed.leads, below.start_line, 0)
    # The last comment in a function may stand directly above the next one.
    ends_another = any(row.start_line <= line <= row.end_line < below.end_line for row in rows)
    if first > line or ends_another:
        return rows
    return [*rows[:nearest], replace(below, start_line=first), *rows[nearest + 1 :]]


def _source_row(around: Sequence[SymbolRow], lines: Sequence[str]) -> SourceRow:
    row = around[0]
    last = min(row.end_line, row.start_line + MAX_SOURCE_LINES - 1, len(lines))
    return SourceRow(
        path=row.path,
        start_line=row.start_line,
        end_line=row.end_line,
        symbol=row.symbol,
        kind=row.kind,
        scope=row.scope,
        signature=row.signature,
        source="\n".join(lines[row.start_line - 1 : last]),
        cut=last < row.end_line,
        enclosing=tuple(outer.symbol for outer in reversed(around[1:])),
    )


def _structure_row(project: ProjectScope, path: str, problems: list[str]) -> StructureRow | None:
    source, why_not = _read(project, path)
    parsed = _parsed(source) if source else None
    if source is None or parsed is None:
        problems.append(why_not or f"there is no outline of {source.language.name if source else path}")
        return None
    from code_intel_server.codebase.syntax import structure

    found = structure.structure_of(parsed)
    return StructureRow(
        path=valid_text(path),
        start_line=1,
        end_line=max(len(split_lines(decode(source.data))), 1),
        language=source.language.name,
        symbols=tuple(_symbol_rows(path, found.outline.symbols)),
        imports=found.imports,
        calls=found.calls,
        has_errors=found.outline.has_errors,
    )
