"""search_text: lines that match one or several patterns, most relevant first, counted per pattern (SPEC 2).

All patterns run in one pass over the tree. Which of them a line matches is then asked of ripgrep again, over the
matching lines only: the answer is exact for every regex it accepts, and a few milliseconds a pattern.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from code_intel_server.codebase import globs as globbing
from code_intel_server.codebase import ripgrep, search_order
from code_intel_server.codebase.answers import FIRST_PAGE, Answer, Page, Skipped, answer
from code_intel_server.codebase.project import MAX_FILE_BYTES, Project, inside, shown
from code_intel_server.codebase.ripgrep import FileMatches, Match, Query
from code_intel_server.codebase.text import decode, is_binary, read_bytes, read_text, split_lines
from code_intel_server.errors import Rejected

MAX_PATTERNS = 50
MAX_CONTEXT = 20
MOST_COUNTED = 100_000
"""Lines that are asked which of several patterns they match; with more, the counts are lower bounds, as the total is."""

SHOWN_COLUMNS = 240
"""Characters of a line that a row shows, around the match."""


@dataclass(frozen=True, slots=True)
class TextRow:
    """A matching line. `pattern` is the first of the asked ones that it matches, `also` the others; `before` and `after` are context."""

    path: str
    start_line: int
    end_line: int
    text: str
    pattern: str
    also: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    defines: bool = False


def search_text(
    project: Project,
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
) -> Answer[TextRow]:
    """Lines that match any of `patterns`, grouped by file: definitions first, then code, tests, documentation, vendored.

    Globs as in `.gitignore`; a leading '!' excludes. Raises Rejected('tool_errors.query.no_pattern'),
    Rejected('tool_errors.generic.pattern_invalid') and the errors of `inside`.
    """
    query = Query(_checked([patterns] if isinstance(patterns, str) else patterns), regex, word, ignore_case)
    where = inside(project.root, path)
    if refusal := _unsearchable(project.root / where):
        counts = tuple((pattern, 0) for pattern in query.patterns)
        return answer((), page, 0, engine=ripgrep.ENGINE, incomplete_because=[f"{where} {refusal}"], counts=counts)
    found = _search_all(project, query, where, globs, seconds)
    files = [file for file in found.files if _wanted(file.path, globs)]
    total = sum(file.count for file in files)
    owners = _owners(project, query, files)
    on_page = list(_on_page(search_order.in_order(project.root, query, files), page))
    rows = _rows(project, query, owners, on_page, min(max(context_lines, 0), MAX_CONTEXT))
    return answer(
        rows,
        page,
        total,
        engine=ripgrep.ENGINE,
        incomplete_because=found.problems,
        skipped=skipped,
        counts=owners.counts if owners else ((query.patterns[0], total),),
        more=found.overflowed,
    )


def _checked(patterns: Sequence[str]) -> tuple[str, ...]:
    unique = tuple(dict.fromkeys(patterns))
    if not unique or not all(pattern.strip() for pattern in unique):
        raise Rejected("tool_errors.query.no_pattern")
    if len(unique) > MAX_PATTERNS:
        raise Rejected(
            "tool_errors.generic.argument_invalid", field="patterns", expected=f"at most {MAX_PATTERNS} patterns"
        )
    for pattern in unique:
        if "\0" in pattern or "\n" in pattern:
            raise Rejected(
                "tool_errors.generic.pattern_invalid", pattern=pattern, error="a pattern is one line of text"
            )
    return unique


def _unsearchable(target: Path) -> str:
    """Why a path named outright is not searched: ripgrep would not apply its own limits to it."""
    if target.is_dir():
        return ""
    if not target.is_file():
        return "is no regular file"
    data = read_bytes(target)
    if data is None:
        return f"is larger than {MAX_FILE_BYTES // 1024 // 1024} MB or cannot be read"
    return "is binary" if is_binary(data) else ""


def _search_all(project: Project, query: Query, where: str, globs: Sequence[str], seconds: float) -> ripgrep.Found:
    """All matches; where they are too many for one answer, the first of every file in path order, so that the answer stays the same."""
    narrowing = _narrowing(globs)
    found = ripgrep.search(project, query, path=where, extra=narrowing, seconds=seconds)
    if not found.overflowed:
        return found
    return ripgrep.search(
        project, query, path=where, extra=(*narrowing, "--sort=path", "--max-count=20"), seconds=seconds
    )


def _narrowing(globs: Sequence[str]) -> tuple[str, ...]:
    """Options that spare ripgrep files no glob means.

    Never an including `--glob`: that would override `.gitignore`. A file type made of the globs' names does not.
    """
    excluding = [part for glob in globs if glob.startswith("!") for part in ("--glob", glob)]
    names = [glob.rsplit("/", 1)[-1] for glob in globs if not glob.startswith("!")]
    simple = names and all(name and not set(name) & set(":{}[]\\") and name != "**" for name in names)
    types = [part for name in names for part in ("--type-add", f"asked:{name}")] if simple else []
    return (*excluding, *types, *(("--type", "asked") if types else ()))


def _wanted(path: str, globs: Sequence[str]) -> bool:
    including = [glob for glob in globs if not glob.startswith("!")]
    return not including or any(globbing.matches(path, glob) for glob in including)


def _on_page(files: Iterable[FileMatches], page: Page) -> Iterator[tuple[int, Match]]:
    """The matches of the page, each with its number in its file, taking only so many files as that needs."""
    wanted = page.range
    first = 0
    for file in files:
        if first + file.count > wanted.start:
            numbered = islice(enumerate(file.lines()), wanted.stop - first)
            yield from ((number, match) for number, match in numbered if first + number >= wanted.start)
        first += file.count
        if first >= wanted.stop:
            return


@dataclass(frozen=True, slots=True)
class _Owners:
    """Which of several patterns a line matches: the lines are numbered by file, a file's from `starts` on."""

    starts: Mapping[str, int]
    numbers: Mapping[str, Collection[int]]

    @property
    def counts(self) -> tuple[tuple[str, int], ...]:
        return tuple((pattern, len(numbers)) for pattern, numbers in self.numbers.items())

    def of(self, path: str, number: int) -> tuple[str, ...]:
        """The patterns of a line by its number in its file."""
        whole = self.starts[path] + number
        return (
            tuple(pattern for pattern, numbers in self.numbers.items() if whole in numbers) or tuple(self.numbers)[:1]
        )


def _owners(project: Project, query: Query, files: Sequence[FileMatches]) -> _Owners | None:
    """None where there is one pattern, which then owns every line. What is beyond MOST_COUNTED lines is not told apart."""
    if len(query.patterns) == 1:
        return None
    starts, texts, lines = {}, [], 0
    for file in sorted(files, key=lambda file: file.path):
        starts[file.path] = lines
        if lines < MOST_COUNTED:
            texts.append(_whole_lines(project.root, file, MOST_COUNTED - lines))
        lines += file.count
    text = b"".join(texts)
    alone = (Query((pattern,), query.regex, query.word, query.ignore_case) for pattern in query.patterns)
    return _Owners(starts, {one.patterns[0]: ripgrep.first_columns(one, text, project.root).keys() for one in alone})


def _whole_lines(root: Path, file: FileMatches, most: int) -> bytes:
    if not file.may_be_cut:
        return file.texts(most)
    return b"".join(_whole_line(root, match) + b"\n" for match in islice(file.lines(), most))


def _whole_line(root: Path, match: Match) -> bytes:
    if not match.cut:
        return match.text
    lines = (read_bytes(root / match.path) or b"").split(b"\n")
    return lines[match.line - 1] if match.line <= len(lines) else match.text


def _rows(
    project: Project, query: Query, owners: _Owners | None, on_page: Sequence[tuple[int, Match]], context: int
) -> list[TextRow]:
    matches = [match for _, match in on_page]
    defined = search_order.defining(project.root, query, matches)
    lines = [_whole_line(project.root, match) for match in matches]
    long = [number for number, line in enumerate(lines) if len(line) > SHOWN_COLUMNS]
    columns = search_order.first_columns(project.root, query, [lines[number] for number in long])
    starts = {long[index]: column for index, column in columns.items()}
    rows = []
    for number, (in_file, match) in enumerate(on_page):
        names = owners.of(match.path, in_file) if owners else query.patterns
        before, after = _context(project.root / match.path, match.line, context) if context else ((), ())
        rows.append(
            TextRow(
                path=shown(match.path),
                start_line=match.line,
                end_line=match.line,
                text=_excerpt(lines[number], starts.get(number, 1)),
                pattern=names[0],
                also=names[1:],
                before=before,
                after=after,
                defines=number in defined,
            )
        )
    return rows


def _excerpt(line: bytes, column: int) -> str:
    """The line, or the part around its match where it is long."""
    start = len(decode(line[: column - 1]))
    text = decode(line)
    if len(text) <= SHOWN_COLUMNS:
        return text
    begin = max(0, min(start - SHOWN_COLUMNS // 4, len(text) - SHOWN_COLUMNS))
    end = begin + SHOWN_COLUMNS
    return f"{'…' if begin else ''}{text[begin:end]}{'…' if end < len(text) else ''}"


def _context(path: Path, line: int, count: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    lines = [text[:SHOWN_COLUMNS] for text in split_lines(read_text(path) or "")]
    return tuple(lines[max(line - 1 - count, 0) : line - 1]), tuple(lines[line : line + count])
