"""What a change asks the runs for: which test files alone, and what of it would steer the original tests (SPEC 4, Receipts)."""

import random
import re
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from code_intel_server.codebase.files.languages import LANGUAGES_BY_NAME, language_of
from code_intel_server.codebase.files.roles import Role, in_two, is_runner_file, is_test_file, named_as_tests, role
from code_intel_server.receipts.checkout import Changed, FileSide
from code_intel_server.receipts.files import FileClass, file_class
from code_intel_server.receipts.results import Case
from code_intel_server.workspace.files import read_beneath

_GO_TEST = re.compile(r"func ((?:Test|Example|Fuzz)(?![a-z])(?!Main\()\w*)\(")
_BEAR_ON_NOTHING = frozenset(
    {"test", "import", "package_clause", "function_declaration", "type_declaration", "const_declaration"}
)
"""What a Go file may get without the tests that it has noticing,"""

_RUN_BY_THEMSELVES = ("func init(", "func TestMain(")
"""but for these."""

_LOOKED_AT = 30
"""Changed files of the product, in a change of more no part is looked for that tests alone tie to the rest; files of tests."""

_APART_AT_MOST = 4
_MUTATED_AT_MOST = 100
_INVERTED_AT_MOST = 50
_INVERTED_FILES = 8
_INVERTED_SECONDS = 2.0
_INVERTED_BYTES = 1 << 20
_NAMED_BY_FOLDER = frozenset({"__init__", "index", "mod", "main"})
_LIBRARIES = ("lib/python*/site-packages", "Lib/site-packages")


def changed_tests(steering: Sequence[Changed], units: Collection[str]) -> frozenset[str] | None:
    """The new and changed test files where nothing else that changed can bear on other tests; None where it can.

    `units` are the files that were seen to hold tests; a new file next to one, of the same kind, is taken for another.
    """
    collected = set()
    kinds = {_kind(unit) for unit in units}
    for one in steering:
        name = one.path.rpartition("/")[2]
        runs = one.file_class is FileClass.BOTH or name == "__init__.py" or is_runner_file(one.path)
        is_new = not one.old.there and _kind(one.path) in kinds
        if runs or not one.new.there or not (one.path in units or named_as_tests(one.path) or is_new):
            return None
        collected.add(one.path)
    return frozenset(collected)


def renamed_files(changed: Sequence[Changed]) -> dict[str, str]:
    """The files that were renamed and nothing else, each with its new path."""
    added = {one.new.oid: one.path for one in changed if not one.old.there}
    return {one.path: added.pop(one.old.oid) for one in changed if not one.new.there and one.old.oid in added}


def changed_functions(old: bytes, new: bytes) -> frozenset[str] | None:
    """The tests that a Go file gets or changes; None where another change in it can bear on the tests of its package."""
    before, after = _go_parts(old), _go_parts(new)
    if before is None or after is None or before.keys() - after.keys():
        return None
    added = after.keys() - before.keys()
    if any(kind not in _BEAR_ON_NOTHING or said.startswith(_RUN_BY_THEMSELVES) for kind, said in added):
        return None
    return frozenset(name for kind, name in after if kind == "test" and before.get((kind, name)) != after[kind, name])


def _go_parts(text: bytes) -> dict[tuple[str, str], str] | None:
    """A Go file's tests by name, and all else at its top, comments left out, by what it says; None if it does not parse."""
    from code_intel_server.codebase.syntax.grammars import node_text, parse

    parsed = parse(text, LANGUAGES_BY_NAME["go"])
    if parsed is None or parsed.has_errors:
        return None
    parts: dict[tuple[str, str], str] = {}
    for node in parsed.root.named_children:
        said = node_text(node)
        if node.type == "import_declaration":
            listed = [one.named_children if one.type == "import_spec_list" else [one] for one in node.named_children]
            parts |= {("import", node_text(one)): "" for spec in listed for one in spec if one.type == "import_spec"}
        elif found := _GO_TEST.match(said):
            parts["test", found[1]] = said
        elif node.type != "comment" or said.startswith("//go:"):
            parts[node.type, said] = ""
    return parts


def mutants(changed: Sequence[Changed], content: Callable[[FileSide], bytes]) -> dict[str, bytes] | None:
    """The changed files of the product, those functions doing nothing that none of them had before; None of too many files."""
    from code_intel_server.codebase.syntax.mutants import LANGUAGES, functions, mutant

    named = ((one, language_of(one.path)) for one in changed if one.file_class is FileClass.PRODUCT)
    product = [(one, language) for one, language in named if language and language.name in LANGUAGES]
    if len(product) > _MUTATED_AT_MOST:
        return None
    known = {own for one, language in product for own in functions(content(one.old), language)}
    # Nothing is written but regular files: a link may lead out of the checkout.
    regular = [(one, language, content(one.new)) for one, language in product if one.new.mode.startswith("100")]
    made = {one.path: (text, mutant(text, language, known)) for one, language, text in regular}
    return {path: after for path, (before, after) in made.items() if after != before}


def inversions(
    checkout: Path, files: Iterable[str], cases: Collection[Case], preferred: Collection[str]
) -> tuple[dict[str, bytes], set[str]]:
    """Some files of tests with their assertions turned round, and the ids of some of these tests, both drawn by chance.

    `cases` are the tests that may be drawn, `preferred` files come first.
    """
    from code_intel_server.codebase.syntax.inversions import inverted

    chance = random.SystemRandom()  # what is drawn nobody knows before
    units = {case.unit for case in cases}
    drawn = [path for path in files if (path in units or path.endswith("_test.go")) and language_of(path)]
    chance.shuffle(drawn)
    made: dict[str, bytes] = {}
    found: list[Case] = []
    for path in sorted(drawn, key=lambda path: path not in preferred)[:_LOOKED_AT]:
        language = language_of(path)
        if language is None or len(made) == _INVERTED_FILES or len(found) >= _INVERTED_AT_MOST:
            break
        try:
            before, _ = read_beneath(checkout, path, _INVERTED_BYTES)
        except OSError:  # gone, or behind a link, which may lead out of the checkout
            continue
        text, names = inverted(before, language)
        named = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, names))})(?!\w)")
        if names and (inside := [case for case in cases if _is_of(case, path, named)]):
            made[path] = text
            found += inside
    chance.shuffle(found)
    ids: set[str] = set()
    seconds = 0.0
    for case in found:
        if len(ids) < _INVERTED_AT_MOST and seconds + case.seconds < _INVERTED_SECONDS:
            ids.add(case.id)
            seconds += case.seconds
    return made, ids or {case.id for case in found[:1]}


def _is_of(case: Case, path: str, named: re.Pattern[str]) -> bool:
    """Whether a test is one of these names in a file; of Go, whose units are packages, one that no other test runs."""
    if path.endswith(".go"):
        folder = path.rpartition("/")[0]
        inside = not folder or case.unit.endswith(f"/{folder}")
        return inside and named.fullmatch(case.id.partition(":")[2]) is not None
    # unittest's has a module.
    said = case.id.removeprefix(path) if case.id.startswith(path) else case.id.rpartition(".")[2]
    return case.unit == path and named.search(said) is not None


def shadowing(changed: Iterable[Changed], base: Collection[str], borrowed: Iterable[Path]) -> list[Changed]:
    """The added files that a Python process with the project on its search path would take for a library of its own.

    `base` are the files that were there before, `borrowed` the folders with the libraries.
    """
    added = {one.path: one for one in changed if one.path.endswith(".py") and one.new.there and not one.old.there}
    modules = {top for path in added if (top := _module(path))}
    modules -= {path.removeprefix("src/").partition("/")[0].removesuffix(".py") for path in base}
    if not modules:
        return []
    folders = [found for folder in borrowed for pattern in _LIBRARIES for found in folder.glob(pattern)]
    libraries = {entry.name.partition(".")[0] for folder in folders for entry in folder.iterdir()}
    stands_in = modules & (libraries | sys.stdlib_module_names)
    return [
        one
        for path, one in added.items()
        if path.removeprefix("src/").partition("/")[0].removesuffix(".py") in stands_in
    ]


@dataclass(frozen=True, slots=True)
class Apart:
    """Changed files of the product that have to do with the other changes by tests alone, and the files that mention them."""

    files: tuple[Changed, ...]
    readers: frozenset[str]


def tied_by_tests(
    changed: Sequence[Changed], before: Callable[[str], Collection[str]], now: Callable[[str], Collection[str]]
) -> tuple[list[Apart], list[str]]:
    """Groups of changed files that each can be as they were beside the others as they are, and files that only were such.

    `before` and `now` say which files of the base and of the new state mention one. Files that mention each other are one
    group; one that an unchanged file of the product mentions belongs to the product. What only tests mention may be their
    data or a helper of theirs, or a part of the product by itself: either way the tests of before pass without its change.
    """
    product = [one for one in changed if one.file_class is FileClass.PRODUCT]
    old = [one for one in product if one.old.there]
    if not product[1:] or len(old) > _LOOKED_AT or not any(role(one.path) is Role.CODE for one in product):
        return [], []
    readers = {one.path: {*before(one.path)} - {one.path} for one in old}
    groups = [{one.path} | {*filter(_belongs_to_product, readers[one.path])} for one in old]
    groups += [{one.path, other.path} for one in old for other in old if _one_package(one.path, other.path)]
    joined: list[set[str]] = []
    for group in groups:
        apart = [one for one in joined if not one & group]
        joined = [*apart, group.union(*(one for one in joined if one & group))]
    found: list[Apart] = []
    unsure: list[str] = []
    paths = {one.path for one in product}
    for group in joined:
        tests = {reader for path in group & readers.keys() for reader in readers[path] if is_test_file(reader)}
        others = (path for path in paths - group if role(path) is Role.CODE)
        if not tests or not group <= paths or not any(others):
            continue
        if len(found) == _APART_AT_MOST or any(map(_belongs_to_product, {*chain(*map(now, group))} - group)):
            unsure += group
        else:
            found.append(Apart(tuple(one for one in old if one.path in group), frozenset(tests)))
    return found, sorted(unsure)


def mentions(path: str) -> tuple[tuple[str, ...], bool]:
    """The texts by which other files mention one, and whether these are whole words."""
    folder, _, name = path.rpartition("/")
    stem, suffix = in_two(name)
    inside = folder.rpartition("/")[2]
    if suffix == ".go":
        return ((f'/{inside}"',) if inside else (), False)
    if role(path) is Role.CODE:
        return ((inside if stem in _NAMED_BY_FOLDER and inside else stem,), True)
    quoted = [f"{quote}{text}{quote}" for text in (inside, stem) if text for quote in "\"'"]
    return ((name, *((f"{inside}/",) if inside else ()), *quoted), False)


def _belongs_to_product(path: str) -> bool:
    """Whether what a file mentions may be the product's: no test, no text for people, no settings of tools for developers."""
    other = file_class(path) is FileClass.TEST or role(path) is Role.DOCUMENTATION
    return not other and not path.startswith(".")


def _one_package(one: str, other: str) -> bool:
    """Whether two files are compiled together, without one naming the other."""
    return one.endswith(".go") and other.endswith(".go") and one.rpartition("/")[0] == other.rpartition("/")[0]


def _module(path: str) -> str:
    """The top-level module that a file makes by itself: `a.py` or `a/__init__.py`; '' where it makes none."""
    inside = path.removeprefix("src/")
    name = inside.removesuffix("/__init__.py").removesuffix(".py")
    return "" if "/" in name else name


def _kind(path: str) -> tuple[str, str]:
    """Folder and suffix of a file."""
    folder, _, name = path.rpartition("/")
    return folder, name.rpartition(".")[2]
