"""search_text: lines that match one or several patterns, most relevant first, counted per pattern (SPEC 2).

All patterns run in one pass over the tree. How many lines each of them matches is then asked of ripgrep again, over the
matching lines only: exact for every regex it accepts, and a few milliseconds a pattern.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import TypedDict

from code_intel_server import process
from code_intel_server.codebase.answers import FIRST_PAGE, InFile, LookupAnswer, Page, Skipped, answer
from code_intel_server.codebase.files import ripgrep
from code_intel_server.codebase.files.project import MAX_FILE_BYTES, ProjectScope, of_length, path_inside, valid_text
from code_intel_server.codebase.files.ripgrep import FileMatches, Match, Query
from code_intel_server.codebase.files.text import decode, is_binary, read_bytes
from code_intel_server.codebase.symbols.freshness import SourceFiles
from code_intel_server.codebase.text_search import order
from code_intel_server.codebase.text_search.order import Columns
from code_intel_server.common import globs as globbing
from code_intel_server.errors import Rejected

MAX_PATTERNS = 50
MAX_CONTEXT = 20
_SOUND = "globs whose brackets and braces match"
WHOLE_BYTES = 64 * process.MEBIBYTE
"""Matching lines that are read whole to be counted a pattern; of more, a line that arrived cut is judged by its beginning."""

FIRST_LINES = 20
"""Matching lines of each file that are taken where all of them are too many for one answer."""

SHOWN_COLUMNS = (240, 160, 120, 80, 60)
"""Characters of a line that a row shows, around the match: the most with which the page costs what it should."""

PAGE_CHARACTERS, ROW_CHARACTERS = 4_000, 80
"""What a page should cost with its paths: so much, and a long one so much a row."""

_OF_A_FILE, _OF_A_ROW = 26, 9
"""Characters besides a path, and besides a line."""


@dataclass(frozen=True, slots=True)
class TextRow(InFile):
    """A matching line; `before` and `after` are context."""

    path: str
    start_line: int
    end_line: int
    text: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()

    def as_row(self) -> str:
        """`12: text`, the lines around it as ripgrep writes them (`11- text`)."""
        first = self.start_line - len(self.before)
        above = (f"{number}- {text}" for number, text in enumerate(self.before, first))
        below = (f"{number}- {text}" for number, text in enumerate(self.after, self.start_line + 1))
        return "\n".join([*above, f"{self.start_line}: {self.text}", *below])


class SearchOptions(TypedDict, total=False):
    """What may be given to a search besides its patterns. Globs as in `.gitignore`; a leading '!' excludes."""

    regex: bool
    word: bool
    ignore_case: bool
    globs: Sequence[str]
    context_lines: int


def search_text(
    project: ProjectScope,
    patterns: str | Sequence[str],
    *,
    path: str = ".",
    regex: bool = True,
    word: bool = False,
    ignore_case: bool = False,
    globs: Sequence[str] = (),
    context_lines: int = 0,
    page: Page = FIRST_PAGE,
    skipped: Skipped | None = None,
    seconds: float = ripgrep.SEARCH_SECONDS,
) -> LookupAnswer[TextRow]:
    """Lines that match any of `patterns`, grouped by file: definitions first, then code, tests, documentation, vendored.

    Of `SearchOptions` every key is an argument. At most MAX_PATTERNS patterns and as many globs, MAX_CONTEXT lines of context.
    Raises Rejected('tool_errors.query.no_pattern'),
    Rejected('tool_errors.generic.pattern_not_one_line'), Rejected('tool_errors.generic.pattern_invalid'),
    Rejected('tool_errors.generic.argument_invalid') and the errors of `path_inside`.
    """
    _require_few(globs, "globs")
    for glob in globs:
        if of_length(glob, "globs").startswith("!") and globbing.fault(glob[1:]):
            raise Rejected("tool_errors.generic.argument_invalid", field="globs", expected=_SOUND)
    query = Query(_checked([patterns] if isinstance(patterns, str) else patterns), regex, word, ignore_case)
    where = path_inside(project.root, path)
    if refusal := _unsearchable(project.root, where):
        counts = tuple((pattern, 0) for pattern in query.patterns)
        return answer((), page, 0, engine=ripgrep.ENGINE, incomplete_because=[f"{where} {refusal}"], counts=counts)
    found = _search_all(project, query, where, globs, seconds)
    wanted = [glob for glob in globs if not glob.startswith("!")]
    files = globbing.meant(found.files, wanted, attrgetter("path")) if wanted else found.files
    columns, sources = Columns(project.root, query), SourceFiles(project.root)
    on_page = [(match, sources.whole(match)) for match in _on_page(order.by_relevance(columns, files), page)]
    counts, problems = _counted(project, query, files, seconds)
    context = min(max(context_lines, 0), MAX_CONTEXT)
    return answer(
        _rows(sources, columns, on_page, context),
        page,
        sum(file.count for file in files),
        engine=ripgrep.ENGINE,
        incomplete_because=(*found.problems, *problems),
        skipped=skipped,
        counts=counts,
        more=found.overflowed,
    )


def _checked(patterns: Sequence[str]) -> tuple[str, ...]:
    unique = tuple(dict.fromkeys(patterns))
    if not unique or not all(pattern.strip() for pattern in unique):
        raise Rejected("tool_errors.query.no_pattern")
    _require_few(unique, "patterns")
    for pattern in unique:
        if "\0" in of_length(pattern, "patterns") or "\n" in pattern:
            raise Rejected("tool_errors.generic.pattern_not_one_line", pattern=pattern.replace("\0", "\\0"))
    return unique


def _require_few(given: Sequence[str], field: str) -> None:
    if len(given) > MAX_PATTERNS:
        raise Rejected("tool_errors.generic.argument_invalid", field=field, expected=f"at most {MAX_PATTERNS} {field}")


def _unsearchable(root: Path, where: str) -> str:
    """Why a path named outright is not searched: ripgrep would not apply its own limits to it."""
    target = root / where
    if target.is_dir():
        return ""
    if not target.is_file():
        return "is no regular file"
    data = read_bytes(root, where)
    if data is None:
        return f"is larger than {MAX_FILE_BYTES // 1024 // 1024} MB or cannot be read"
    return "is binary" if is_binary(data) else ""


def _search_all(
    project: ProjectScope, query: Query, where: str, globs: Sequence[str], seconds: float
) -> ripgrep.SearchResult:
    """All matches; where they are too many for one answer, the first of every file in path order, so that the answer stays the same."""
    narrowing = _narrowing(globs)
    found = ripgrep.search(project, query, path=where, extra=narrowing, seconds=seconds)
    if not found.overflowed:
        return found
    first = (*narrowing, "--sort=path", f"--max-count={FIRST_LINES}")
    again = ripgrep.search(project, query, path=where, extra=first, seconds=seconds)
    only = f"of each file only the first {FIRST_LINES} matching lines are counted and shown"
    return replace(again, problems=tuple(dict.fromkeys((*found.problems, *again.problems, only))), overflowed=True)


def _narrowing(globs: Sequence[str]) -> tuple[str, ...]:
    """Options that spare ripgrep files no glob means.

    Never an including `--glob`: that would override `.gitignore`. A file type made of the globs' names does not.
    """
    excluding = [part for glob in globs if glob.startswith("!") for part in ("--glob", glob)]
    names = [glob.rsplit("/", 1)[-1] for glob in globs if not glob.startswith("!")]
    simple = names and all(name and not set(name) & set(":{}[]\\") and name != "**" for name in names)
    types = [part for name in names for part in ("--type-add", f"asked:{name}")] if simple else []
    return (*excluding, *types, *(("--type", "asked") if types else ()))


def _on_page(files: Iterable[FileMatches], page: Page) -> Iterator[Match]:
    """The matches of the page, taking only so many files as that needs."""
    wanted = page.range
    first = 0
    for file in files:
        if first + file.count > wanted.start:
            yield from islice(file.lines(), max(wanted.start - first, 0), wanted.stop - first)
        first += file.count
        if first >= wanted.stop:
            return


def _counted(
    project: ProjectScope, query: Query, files: Sequence[FileMatches], seconds: float
) -> tuple[tuple[tuple[str, int], ...], tuple[str, ...]]:
    """How many lines each pattern matches, counted for so many `seconds`, and where that is uncertain."""
    if len(query.patterns) == 1:
        return ((query.patterns[0], sum(file.count for file in files)),), ()
    deadline = time.monotonic() + seconds
    counts = dict.fromkeys(query.patterns, 0)
    problems: list[str] = []
    text = b"".join(_whole_lines(project.root, files))
    for pattern in query.patterns:
        if time.monotonic() > deadline:
            problems.append(f"the lines of each pattern were not counted to the end within {seconds:g} s")
            break
        counts[pattern], why = ripgrep.count_lines(replace(query, patterns=(pattern,)), text, project.root)
        problems += [f"the lines of {pattern} may be more than its count says: {reason}" for reason in why]
    return tuple(counts.items()), tuple(dict.fromkeys(problems))


def _whole_lines(root: Path, files: Iterable[FileMatches]) -> Iterator[bytes]:
    """The matching lines, those that arrived cut as they are in their files."""
    sources, size = SourceFiles(root), 0

    def whole(match: Match) -> bytes:
        """The line, or its beginning where enough was read."""
        return sources.whole(match) if size < WHOLE_BYTES else match.text

    for file in files:
        for part in file.texts(whole):
            size += len(part)
            yield part


def _rows(
    sources: SourceFiles, columns: Columns, on_page: Sequence[tuple[Match, bytes]], context: int
) -> list[TextRow]:
    width = _width([line for _, line in on_page], {match.path for match, _ in on_page})
    long = [number for number, (_, line) in enumerate(on_page) if len(line) > width]
    starts = dict(zip(long, columns.of([on_page[number][1] for number in long]), strict=True))
    rows = []
    for number, (match, line) in enumerate(on_page):
        above = sources.texts(match.path, range(max(match.line - context, 1), match.line))
        below = sources.texts(match.path, range(match.line + 1, match.line + 1 + context))
        rows.append(
            TextRow(
                path=valid_text(match.path),
                start_line=match.line,
                end_line=match.line,
                text=_excerpt(line.removesuffix(b"\r"), starts.get(number) or 1, width),
                before=tuple(text[:width] for text in above),
                after=tuple(text[:width] for text in below),
            )
        )
    return rows


def _width(lines: Sequence[bytes], paths: Iterable[str]) -> int:
    room = max(PAGE_CHARACTERS, ROW_CHARACTERS * len(lines)) - sum(len(path) + _OF_A_FILE for path in paths)
    room -= _OF_A_ROW * len(lines)
    fitting = (width for width in SHOWN_COLUMNS if sum(min(len(line), width) for line in lines) <= room)
    return next(fitting, SHOWN_COLUMNS[-1])


def _excerpt(line: bytes, column: int, width: int) -> str:
    """The line, or the part around its match where it is long."""
    start = len(decode(line[: column - 1]))
    text = decode(line)
    if len(text) <= width:
        return text
    begin = max(0, min(start - width // 4, len(text) - width))
    end = begin + width
    return f"{'…' if begin else ''}{text[begin:end]}{'…' if end < len(text) else ''}"
