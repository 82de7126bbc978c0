"""Tests that left one file and stand unchanged in another beside it: such a test is moved, not taken away (SPEC 4, PRE_COMMIT).

Only where nobody can doubt that the copy runs as the original did: in the same folder and under a name of the same make,
at the top of its file, in a file that skips nothing and that no configuration leaves out, with every name that it uses bound
by the same statements. Anything else is asked for a reason, as any test that is gone.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from code_intel_server.codebase import weakening
from code_intel_server.codebase.languages import Language, language_of
from code_intel_server.codebase.reference import Version
from code_intel_server.codebase.roles import named_as_tests
from code_intel_server.codebase.steering import decides, telling_lines
from code_intel_server.codebase.text import decode, read_bytes

if TYPE_CHECKING:
    import tree_sitter

_FILES_AT_MOST = 50
_WORD = re.compile(r"\w+")
_PLACE = re.compile(r"[\w./-]+")
_MAKE = re.compile(r"(?P<prefix>test_|Tests?(?=[A-Z]))?\w*?(?P<suffix>_tests?|_specs?|Tests?)?(?P<rest>\..*)")
_LEAVES_OUT = re.compile(
    r"(?i)ignore|deselect|exclude|include|norecurse|collect|python_|runtest|match|regex|spec|grep|filter|invert|\bskip|-[km]\b"
    r"|autotests|harness"
)
_COMMANDS = ".code-intel/config.json"
"""Where the verify commands stand; they may run but a part of the tests."""
_CHOOSES = re.compile(
    r"\"-{1,2}(?:k|t|g|run|skip|filter|grep|ignore|deselect|exclude|testNamePattern|test|tests)[\"=-]"
)
_COLLECTED_BY_NAME = frozenset({"python", "javascript", "typescript", "tsx", "go", "rust", "ruby", "elixir", "php"})
"""Languages whose runners find a new file by themselves."""
_SYSTEMS = frozenset(
    [
        "aix",
        "android",
        "darwin",
        "dragonfly",
        "freebsd",
        "illumos",
        "ios",
        "js",
        "linux",
        "netbsd",
        "openbsd",
        "plan9",
        "solaris",
        "wasip1",
        "windows",
        "386",
        "amd64",
        "arm",
        "arm64",
        "loong64",
        "mips",
        "mips64",
        "mips64le",
        "mipsle",
        "ppc64",
        "ppc64le",
        "riscv64",
        "s390x",
        "wasm",
    ]
)
"""Go builds a file for one system only whose name ends with it."""
_PARTS_OF_NEXT = frozenset({"attribute_item", "inner_attribute_item", "decorator", "attribute", "annotation"})


@dataclass(frozen=True, slots=True)
class _Part:
    """A statement at the top of a file with what belongs to it, as lines from `first` to `last` (0-based, inclusive)."""

    first: int
    last: int
    text: str


@dataclass(frozen=True, slots=True)
class _Text:
    """A file of tests: its parts that hold tests, and the others."""

    tests: tuple[_Part, ...]
    others: tuple[str, ...]


def without_moved(
    root: Path, path: str, before: Sequence[str], after: Sequence[str] | None, beside: Sequence[Version]
) -> Sequence[str]:
    """The lines `before` without the tests that `after` lacks and that another file of the folder has instead."""
    language = language_of(path, "\n".join(before[:50]).encode("utf-8", "replace"))
    if language is None or language.name not in _COLLECTED_BY_NAME:
        return before
    others = [version for version in beside[:_FILES_AT_MOST] if _runs_alike(root, path, version[0])]
    old = _read(path, before, language) if others else None
    if old is None:
        return before
    kept = _read(path, after or (), language) if after else _Text((), ())
    if kept is None:
        return before
    still = [part.text for part in kept.tests]
    gone = [part for part in old.tests if not _take(still, part.text)]
    found = list(_found(root, path, old, gone, others, language)) if gone else []
    taken = {number for part in found for number in range(part.first, part.last + 1)}
    return [line for number, line in enumerate(before) if number not in taken]


def left_behind(root: Path, old_path: str, path: str) -> str:
    """The line of the project's configuration that names a folder out of which a file was moved; '' where none does."""
    left = {str(folder) for folder in PurePosixPath(old_path).parents} - {str(at) for at in PurePosixPath(path).parents}
    told = (line for folder in (*PurePosixPath(old_path).parents,) for line in _steering(root, folder.as_posix()))
    return next((line for line in told if left and not left.isdisjoint(_folders_in(line))), "")


def _folders_in(line: str) -> set[str]:
    return {word.removeprefix("./").strip("/") for word in _PLACE.findall(line)}


def _found(
    root: Path, path: str, old: _Text, gone: Sequence[_Part], others: Sequence[Version], language: Language
) -> Iterator[_Part]:
    left = [*gone]
    for other, was, now in others:
        new = _read(other, now or (), language) if now else None
        if new is None or not left or not _all_run(other, now or (), new, language) or _is_left_out(root, path, other):
            continue
        if telling_lines(PurePosixPath(other).name, now or ()):
            continue
        had = _read(other, was or (), language) if was else _Text((), ())
        if had is None or not {*new.others} <= {*had.others, *old.others}:
            continue
        arrived = [part.text for part in new.tests]
        for part in had.tests:
            _take(arrived, part.text)
        for part in [part for part in left if _binds_alike(part.text, old.others, new.others)]:
            if _take(arrived, part.text):
                left.remove(part)
                yield part


def _all_run(path: str, lines: Sequence[str], text: _Text, language: Language) -> bool:
    """Whether each test that stands at the top of a file, and no other, runs whatever happens."""
    counted = sum(weakening.count_tests(path, part.text, language) for part in text.tests)
    return weakening.certain_tests(path, lines, language) == counted


def _runs_alike(root: Path, path: str, other: str) -> bool:
    """Whether whatever collects the one file's tests collects the other's: by folder and make of the name."""
    one, two = PurePosixPath(path), PurePosixPath(other)
    crate = two.parent.name == "tests" and (root / two.parent.parent / "Cargo.toml").is_file()
    if two.suffix == ".rs" and not crate:
        return False  # a module that no other may declare
    if two.suffix == ".go" and two.stem.removesuffix("_test").rpartition("_")[2] in _SYSTEMS:
        return False
    makes = [found.groups() if (found := _MAKE.fullmatch(pure.name)) else pure.name for pure in (one, two)]
    return (
        one != two
        and one.parent == two.parent
        and named_as_tests(path) == named_as_tests(other)
        and makes[0] == makes[1]
    )


def _is_left_out(root: Path, path: str, other: str) -> bool:
    """Whether something in the project may tell the two files apart: an option that leaves tests out, or a line that names one."""
    names = {PurePosixPath(name).name.partition(".")[0] for name in (path, other)}
    told = (line for folder in PurePosixPath(other).parents for line in _steering(root, folder.as_posix()))
    if any(_LEAVES_OUT.search(line) or not names.isdisjoint(_WORD.findall(line)) for line in told):
        return True
    texts = [decode(read_bytes(root, file) or b"") for file in (_COMMANDS, *_pipelines(root))]
    return _CHOOSES.search(texts[0]) is not None or any(not names.isdisjoint(_WORD.findall(text)) for text in texts)


def _pipelines(root: Path) -> list[str]:
    """The files that say what runs elsewhere; they may name the tests they run."""
    folders = [folder for folder in (".github/workflows", ".circleci") if (root / folder).is_dir()]
    names = [f"{folder}/{entry.name}" for folder in folders for entry in sorted((root / folder).iterdir())]
    return [*names[:_FILES_AT_MOST], ".gitlab-ci.yml"]


def _steering(root: Path, folder: str) -> Iterator[str]:
    """The lines of a folder's files that decide which tests run."""
    place = root / folder
    for name in sorted(entry.name for entry in place.iterdir()) if place.is_dir() else ():
        if decides(name):
            content = read_bytes(root, name if folder == "." else f"{folder}/{name}")
            yield from telling_lines(name, decode(content or b"").split("\n"))


def _binds_alike(text: str, here: Sequence[str], there: Sequence[str]) -> bool:
    """Whether the statements that share a name with the test are the same in both files."""
    used = {*_WORD.findall(text)}
    sides = [{one for one in others if not used.isdisjoint(_WORD.findall(one))} for others in (here, there)]
    return sides[0] == sides[1]


def _take(texts: list[str], text: str) -> bool:
    """Take one of the texts away, where it is among them."""
    if text not in texts:
        return False
    texts.remove(text)
    return True


def _read(path: str, lines: Sequence[str], language: Language) -> _Text | None:
    """The parts of a file; None where its syntax does not tell them."""
    from code_intel_server.codebase.structure import has_grammar, parse

    if not has_grammar(language) or sum(map(len, lines)) > weakening.MAX_COMPARED_CHARACTERS:
        return None
    parsed = parse("\n".join(lines).encode("utf-8", "replace"), language)
    if parsed is None or parsed.has_errors:
        return None
    tests: list[_Part] = []
    others: list[str] = []
    rows: list[tuple[int, int]] = []
    for first, last in _statements(parsed.root):
        if rows and first <= rows[-1][1]:
            return None  # two on one line
        rows.append((first, last))
        part = _Part(first, last, "\n".join(line.rstrip() for line in lines[first : last + 1]))
        if weakening.count_tests(path, part.text, language):
            tests.append(part)
        else:
            others += _imported(part.text) if language.name == "python" else [part.text]
    return _Text(tuple(tests), tuple(others))


def _statements(root: "tree_sitter.Node") -> Iterator[tuple[int, int]]:
    """First and last row of each statement at the top, attributes that stand before it included, comments left out."""
    first: int | None = None
    for node in root.named_children:
        if "comment" in node.type:
            continue
        first = node.start_point[0] if first is None else first
        if node.type in _PARTS_OF_NEXT:
            continue
        last = node.end_point[0] - (1 if node.end_point[1] == 0 and node.end_point[0] > node.start_point[0] else 0)
        yield first, last
        first = None


def _imported(text: str) -> list[str]:
    """A statement of Python; one that brings in several names as one for each."""
    head, found, names = " ".join(text.split()).partition("import ")
    if not found or (head and not head.startswith("from ")) or "#" in names or ";" in names:
        return [text]
    return [f"{head}import {name.strip()}" for name in names.strip("() ").split(",") if name.strip()]
