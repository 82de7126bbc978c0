"""Outlines are right: against what a reader expects, against ctags, and against Python's own parser."""

import ast
import asyncio
import email
import json
import re
import unittest
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.codebase.outline_entry import entry

from code_intel_server import process
from code_intel_server.codebase.files.languages import LANGUAGES, LANGUAGES_BY_NAME, language_of
from code_intel_server.codebase.syntax.grammars import queries_of
from code_intel_server.codebase.syntax.structure import has_queries, outline
from code_intel_server.codebase.syntax.values import SymbolKind

SAMPLES = Path(__file__).parent / "samples"
QUERIES = Path(__file__).parents[2] / "src/code_intel_server/codebase/queries"
CALLABLE_OR_TYPE = {
    "function", "method", "class", "struct", "interface", "enum", "trait", "subroutine", "func", "singletonMethod",
}  # fmt: skip
CTAGS_SAMPLES = (
    "shop.pyw", "shop.js", "shop.go", "shop.rs", "Shop.java", "shop.c", "shop.cpp", "shop.rb", "shop.php", "Shop.cs",
    "shop.lua", "shop.sh", "shop.pl", "shop.ts",
)  # fmt: skip


def expected_outlines() -> dict[str, tuple[str, list[str]]]:
    """Sample name -> (language, rows) of outlines.txt; `has_errors` after the language is kept with it."""
    expected: dict[str, tuple[str, list[str]]] = {}
    rows: list[str] = []
    for line in (SAMPLES / "outlines.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("== "):
            _, name, language = line.split(" ", 2)
            rows = []
            expected[name] = (language, rows)
        else:
            rows.append(line)
    return expected


EXPECTED = expected_outlines()

Reading = set[tuple[str, int, int]]
"""(name, its line, last line)."""

SECOND_READER: dict[str, Reading] = {
    sample: {(row[1], int(row[2]), int(row[3])) for row in re.finditer(r"(?:^|, )(.+?) (\d+)-(\d+)(?=, |$)", rows)}
    for line in (SAMPLES / "second_reader.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
    for sample, _, rows in [line.partition(": ")]
}

# Where the two readers differed, and what was found right: (only the second reader's, only the first's).
SETTLED: dict[str, tuple[Reading, Reading]] = {
    # A companion without a name is spoken of by its class: `Price.free`.
    "shop.kt": ({("Companion", 11, 15)}, set()),
    "shop.cpp": ({("==", 12, 12)}, {("operator==", 12, 12)}),
    # Named constructors are qualified by their class, accessors are properties.
    "shop.dart": (
        {("Price.free", 13, 13), ("Price.parse", 14, 16), ("isFree", 21, 21), ("limit", 22, 24)},
        {("free", 13, 13), ("parse", 14, 16)},
    ),
    # A macro without parameters, an exception and a module type were overlooked.
    "shop.c": (set(), {("LIMIT", 4, 4)}),
    "shop.erl": (set(), {("LIMIT", 6, 6)}),
    "shop.ml": (set(), {("Not_found_price", 8, 8), ("REPOSITORY", 10, 12)}),
}

# Where ctags sees what is none: an object that is assigned to, and the type of the method assigned to its prototype.
NOT_DEFINED = {("exports", 38), ("Price", 34)}


def plain(name: str) -> str:
    """A name without the scope and the word `operator` that ctags or we put before it."""
    return re.split(r"::|[.:]", name)[-1].removeprefix("operator").strip()


@pytest.mark.parametrize("name", EXPECTED)
def test_the_outline_of_a_sample_is_what_a_reader_expects(name: str) -> None:
    language, rows = EXPECTED[name]
    assert entry(SAMPLES / name) == [f"== {name} {language}", *rows]


def test_every_sample_has_an_expected_outline() -> None:
    assert {path.name for path in SAMPLES.iterdir()} == {*EXPECTED, "outlines.txt", "second_reader.txt"}


def test_every_query_file_has_a_sample_unless_it_is_like_another() -> None:
    own = [path for path in QUERIES.iterdir() if not path.read_text(encoding="utf-8").startswith(";;; like ")]
    assert {path.stem for path in own} - {language.split()[0] for language, _ in EXPECTED.values()} == set()


@pytest.mark.parametrize("name", SECOND_READER)
def test_a_second_reader_who_saw_the_sample_alone_found_the_same_types_and_callables(name: str) -> None:
    data = (SAMPLES / name).read_bytes()
    language = language_of(name, data)
    assert language is not None
    told = outline(data, language).symbols
    ours = {
        (symbol.name, symbol.line, symbol.end_line)
        for symbol in told
        if symbol.kind.is_callable or symbol.kind.is_type or symbol.kind is SymbolKind.TYPE
    }
    theirs = SECOND_READER[name]
    assert (theirs - ours, ours - theirs) == SETTLED.get(name, (set(), set()))


def test_the_second_reader_read_thirty_languages() -> None:
    assert len({EXPECTED[name][0].split()[0] for name in SECOND_READER}) >= 30


def test_at_least_forty_languages_have_an_expected_outline() -> None:
    assert len({language.split()[0] for language, rows in EXPECTED.values() if rows}) >= 40


@pytest.mark.needs("universal-ctags")
@pytest.mark.parametrize("name", CTAGS_SAMPLES)
def test_every_function_and_type_that_ctags_sees_is_in_the_outline(name: str) -> None:
    forced = ["--language-force=Python"] if name.endswith(".pyw") else []
    argv = ["ctags", "--options=NONE", "--output-format=json", "--fields=+n", *forced, "-f", "-", name]
    tags = [json.loads(line) for line in process.run(argv, cwd=SAMPLES, timeout=30).stdout.splitlines()]
    wanted = {(tag["name"], tag["line"]) for tag in tags if tag["kind"] in CALLABLE_OR_TYPE}
    anonymous = {tag for tag in wanted if tag[0].startswith(("__anon", "anonymous", "AnonymousFunction"))}
    data = (SAMPLES / name).read_bytes()
    language = language_of(name, data)
    assert language is not None
    ours = {(plain(symbol.name), symbol.line) for symbol in outline(data, language).symbols}
    theirs = {(plain(tag), line) for tag, line in wanted - anonymous - NOT_DEFINED}
    assert theirs
    assert theirs <= ours


def by_ast(source: bytes) -> set[tuple[str, str, int]]:
    """(kind, qualified name, first line) of every function and class, as Python's parser sees them."""

    def visit(node: ast.AST, scope: str) -> Iterator[tuple[str, str, int]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{scope}.{child.name}" if scope else child.name
                yield "class" if isinstance(child, ast.ClassDef) else "function", name, child.lineno
                yield from visit(child, name)
            else:
                yield from visit(child, scope)

    return set(visit(ast.parse(source), ""))


@pytest.mark.parametrize("package", [asyncio, email, json, unittest], ids=lambda package: package.__name__)
def test_python_definitions_are_those_of_pythons_own_parser(package: object) -> None:
    kinds = {SymbolKind.FUNCTION: "function", SymbolKind.METHOD: "function", SymbolKind.CLASS: "class"}
    folder = Path(str(getattr(package, "__file__", ""))).parent
    for path in sorted(folder.glob("*.py")):
        source = path.read_bytes()
        symbols = outline(source, LANGUAGES_BY_NAME["python"]).symbols
        assert {(kinds[s.kind], s.qualified, s.start_line) for s in symbols if s.kind in kinds} == by_ast(source), path


@pytest.mark.parametrize(
    "language", [item for item in LANGUAGES if has_queries(item)], ids=lambda language: language.name
)
def test_every_query_file_compiles_and_bears_any_text(language: object) -> None:
    from code_intel_server.codebase.files.languages import Language
    from code_intel_server.codebase.syntax.structure import parse, structure_of

    assert isinstance(language, Language)
    for text in (b"", b"\n", b"\0\xff\xfe{[(<", "ä ö\n".encode(), b"a b c\n" * 50):
        parsed = parse(text, language)
        assert parsed is not None
        assert all(symbol.start_line <= symbol.end_line for symbol in structure_of(parsed).outline.symbols)


def test_latin_1_and_utf_16_files_keep_their_lines() -> None:
    source = "# é\ndef früh():\n    pass\n"
    for data in (source.encode("latin-1"), source.encode("utf-16"), source.encode()):
        (symbol,) = outline(data, LANGUAGES_BY_NAME["python"]).symbols
        assert (symbol.start_line, symbol.end_line) == (2, 3)


def test_loose_marks_by_the_thousand_do_not_take_the_square_of_their_number() -> None:
    made = outline(b"(" * 300_000, LANGUAGES_BY_NAME["python"])
    assert made.has_errors
    assert not made.complete


def test_every_kind_of_definition_that_a_query_names_is_known() -> None:
    named = set()
    for language in LANGUAGES:
        queries = queries_of(language)
        if queries is not None:
            query = queries.definitions
            named |= {query.capture_name(number) for number in range(query.capture_count)}
    kinds = {name.removeprefix("definition.") for name in named if name.startswith("definition.")}
    assert kinds > {"function", "heading"}
    assert kinds <= {str(kind) for kind in SymbolKind}
