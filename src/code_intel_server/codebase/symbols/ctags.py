"""The one place that knows Universal Ctags' command line and output.

It reads no option files (`--options=NONE`: a repository's `.ctags.d` could make it write files), and is fed paths that
begin with './' through `-L -`, because it takes a line that begins with '-' for an option. Many files share one process.
"""

import fnmatch
import json
import re
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from os import environ, pathsep
from pathlib import Path
from typing import NamedTuple

from code_intel_server import process
from code_intel_server.codebase.symbols.kinds import normal_kind

ENGINE = "universal-ctags"
MAX_TAGS_OUTPUT = 32 * process.MEBIBYTE
_READ_AT_ONCE = process.MEBIBYTE
_PROBE_SECONDS = 3.0
_PATIENCE_SECONDS = 2.0
_REST_SECONDS = 60.0

_MADE_UP = re.compile(r"(?:anonymous(?:Function|Class)|__anon)[0-9a-f]*", re.IGNORECASE)
_SCOPES_TELL = frozenset({"Go", "PHP"})
"""Languages of which ctags tells methods by what they are in only."""

_NO_TYPES = frozenset({"", "package", "namespace", "function"})
_OPERATOR = re.compile(r"\b(operator) +(?=\W)")
_BREAK = "\n"
_HERE = "./"
_NO_LINE_OF_TEXT = re.compile("[\n\r\ud800-\udfff]")

_resting: dict[str, float] = {}
"""A ctags that hung or flooded us is left alone until then, so that not every lookup waits for it."""

_ARGUMENTS = (
    "--options=NONE",
    "--quiet",
    "--sort=no",
    "--links=no",
    "--output-format=json",
    "--fields=NFneKSlsp-P-T-f-t-k",
    # Names that an import binds are no definitions, and neither are JSON keys, headings or anchors.
    "--kinds-Python=cfmv",
    # What a library declares whose source is not here.
    "--kinds-C=+px",
    "--kinds-C++=+px",
    "--kinds-CUDA=+px",
    "--languages=-JSON,XML,SVG,HTML,Markdown,ReStructuredText,Asciidoc,Man,Diff,RelaxNG,Glade,PlistXML,XSLT",
    "-L",
    "-",
    "-f",
    "-",
)


class Tag(NamedTuple):
    """A definition (a hundred thousand at a time, so a plain tuple). `kind` in the vocabulary of `kinds`, `scope` as 'Outer.Inner', lines 1-based and inclusive."""

    name: str
    kind: str
    scope: str
    signature: str
    start_line: int
    end_line: int
    language: str


@dataclass(frozen=True, slots=True)
class Tagged:
    """Tags by path as it was asked for (files without any may be left out); `problem` says why there may be too few."""

    tags: Mapping[str, Sequence[Tag]]
    problem: str = ""


def ctags_program() -> str | None:
    """Absolute path of a Universal Ctags that writes JSON; None where there is none on PATH, or it misbehaved just now."""
    found = _find(environ.get("PATH", ""))
    if found and time.monotonic() < _resting.get(found, 0.0):
        return None
    return found if found and _usable(found, Path(found).stat().st_mtime_ns) else None


@lru_cache(maxsize=8)
def _find(search_path: str) -> str | None:
    # Relative entries would let a project's own `ctags` be run.
    absolute = pathsep.join(entry for entry in search_path.split(pathsep) if Path(entry).is_absolute())
    return shutil.which("ctags", path=absolute) or shutil.which("universal-ctags", path=absolute)


def accepts(path: str) -> bool:
    """Whether ctags can be handed a file of this name and name it back: no line break, nothing but text."""
    return _NO_LINE_OF_TEXT.search(path) is None


def reader() -> Callable[[str], bool]:
    """What tells of a file's name whether ctags takes it for one in a language that it knows."""
    program = ctags_program()
    if program:
        try:
            return _reader(program, Path(program).stat().st_mtime_ns)
        except LookupError:
            _resting[program] = time.monotonic() + _REST_SECONDS
    return _reads_nothing


def _reads_nothing(_: str) -> bool:
    return False


@lru_cache(maxsize=8)
def _reader(program: str, _changed: int) -> Callable[[str], bool]:
    done = _asked(program, "--list-maps")
    if not done:
        raise LookupError(program)  # not kept, as an answer is
    patterns = chain.from_iterable(line.split()[1:] for line in done.decode("utf-8", "replace").splitlines())
    names = re.compile("|".join(map(fnmatch.translate, patterns)), re.IGNORECASE)
    return lru_cache(maxsize=4096)(lambda name: names.match(name) is not None)


@lru_cache(maxsize=8)
def _usable(program: str, _changed: int) -> bool:
    return any(line.startswith(b"json") for line in _asked(program, "--list-features").splitlines())


def _asked(program: str, what: str) -> bytes:
    """What ctags says of itself; nothing where it fails."""
    argv = [program, "--options=NONE", what]
    try:
        done = process.run(argv, cwd=Path("/"), timeout=_PROBE_SECONDS, env=process.clean_environment())
    except OSError:
        return b""
    return done.stdout if done.ok else b""


def tag(root: Path, paths: Iterable[str], *, seconds: float) -> Tagged:
    """Tag the files at `paths` (relative to `root`, none with a line break in its name), within `seconds`."""
    program = ctags_program()
    if program is None:
        return Tagged({}, "Universal Ctags is not installed")
    listed = "".join(f"{_HERE}{path}\n" for path in paths).encode("utf-8", "surrogateescape")
    try:
        done = process.run(
            [program, *_ARGUMENTS],
            cwd=root,
            timeout=seconds,
            env=process.clean_environment(),
            stdin=listed,
            max_output=MAX_TAGS_OUTPUT,
        )
    except OSError as problem:
        return Tagged({}, f"ctags could not be started: {problem}")
    if (done.timed_out and seconds >= _PATIENCE_SECONDS) or done.truncated:
        _resting[program] = time.monotonic() + _REST_SECONDS
    return Tagged(parse_tags(done.stdout, _HERE), _problem(done, seconds))


def parse_tags(output: bytes, prefix: str) -> dict[str, list[Tag]]:
    """Tags by path without `prefix`. Lines that are no tag (torn, or no JSON) and names that ctags makes up are left out."""
    found: dict[str, list[Tag]] = {}
    path: object = None
    tags: list[Tag] = []
    for row in _records(output):
        get = row.get
        if get("path") != path:
            path = get("path")
            ours = isinstance(path, str) and path.startswith(prefix)
            tags = found.setdefault(path[len(prefix) :], []) if isinstance(path, str) and ours else []
        name, line = get("name"), get("line")
        if not (isinstance(name, str) and isinstance(line, int)) or ("non" in name and _MADE_UP.fullmatch(name)):
            continue
        end, language = get("end"), str(get("language", ""))
        kind, scope = normal_kind(str(get("kind", "")), language), _scope(str(get("scope", "")))
        if language in _SCOPES_TELL:
            kind = _kind_by_scope(language, kind, str(get("scopeKind", "")), name)
            if not kind:
                continue
        elif language == "Java" and kind == "method" and name == scope.rpartition(".")[2]:
            kind = "constructor"
        if not name.isidentifier():
            scope, name = _address(scope, _valid(name), kind)
        tags.append(
            Tag(
                name,
                kind,
                scope,
                _valid(str(get("signature", ""))),
                line,
                end if isinstance(end, int) and end >= line else line,
                language,
            )
        )
    return found


def _kind_by_scope(language: str, kind: str, scope_kind: str, name: str) -> str:
    """The functions and variables of a type are methods and fields; '' for what is no definition: a name of something imported, a blank."""
    if kind in {"type" if language == "PHP" else "packagename", ""} or (name == "_" and kind != "function"):
        return ""
    if scope_kind in _NO_TYPES:
        return kind
    return {"function": "constructor" if name == "__construct" else "method", "variable": "field"}.get(kind, kind)


@lru_cache(maxsize=4096)
def _scope(written: str) -> str:
    scope = _valid(written).replace("::", ".").replace("\\", ".")
    return ".".join(part for part in scope.split(".") if not _MADE_UP.fullmatch(part)) if "non" in scope else scope


def _address(scope: str, name: str, kind: str) -> tuple[str, str]:
    """Scope and name as other languages have them: of a module `a.b` or `a\\b` the last part is the name; `operator ==` is one word."""
    if kind in {"module", "namespace"}:
        outer, _, name = name.replace("\\", ".").rpartition(".")
        return ".".join(filter(None, (scope, outer))), name
    return scope, _OPERATOR.sub(r"\1", name)


def _valid(text: str) -> str:
    """Bytes that are no UTF-8 came as lone surrogates, which are no text."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _records(output: bytes) -> Iterable[dict[str, object]]:
    """The JSON objects, one a line; many lines at once, which is three times faster, but never all: they take ten times their text."""
    start = 0
    while (end := output.rfind(b"\n", start, start + _READ_AT_ONCE)) >= 0 or (end := output.find(b"\n", start)) >= 0:
        yield from _records_in(output[start:end])
        start = end + 1


def _records_in(whole_lines: bytes) -> Iterable[dict[str, object]]:
    text = whole_lines.decode("utf-8", "surrogateescape")
    try:
        rows = json.loads(f"[{text.replace(_BREAK, ',')}]")
    except ValueError:
        rows = [row for line in text.split(_BREAK) if line.startswith("{") and (row := _record(line)) is not None]
    return (row for row in rows if isinstance(row, dict))


def _record(line: str) -> object:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _problem(done: process.Completed, seconds: float) -> str:
    if done.timed_out:
        return f"ctags was ended after {seconds:g} s"
    if done.truncated:
        return "ctags printed more than it may"
    return "" if done.returncode == 0 else f"ctags ended with status {done.returncode}"
