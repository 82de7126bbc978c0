"""Objective-C methods: called by their whole selector, found by its first word too."""

from pathlib import Path

import pytest
from tests.codebase.lookup_project import explorer

from code_intel_server.codebase.explorer import Explorer
from code_intel_server.codebase.symbols import ctags
from code_intel_server.codebase.symbols.definitions import NameMatch
from code_intel_server.codebase.symbols.names import readings, symbol_parts, written

FILES = {
    "Cache.h": "@interface Cache : NSObject\n- (void)addImage:(Image *)image withIdentifier:(NSString *)name;\n@end\n",
    "Cache.m": (
        '#import "Cache.h"\n'
        "@implementation Cache\n"
        "- (void)addImage:(Image *)image withIdentifier:(NSString *)name {\n    [self purge];\n}\n"
        "- (void)addImage:(Image *)image {\n    [self addImage:image\n    withIdentifier:nil];\n}\n"
        "- (void)purge { }\n"
        "@end\n"
    ),
    "Use.m": '#import "Cache.h"\n@implementation Use\n- (void)run {\n    [cache addImage:one withIdentifier:@"x"];\n}\n@end\n',
}
BOTH = [("Cache.m", 3), ("Cache.m", 6), ("Cache.h", 2)]


@pytest.fixture(params=[pytest.param("universal-ctags", marks=pytest.mark.needs("universal-ctags")), "tree-sitter"])
def found(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Explorer:
    if request.param == "tree-sitter":
        monkeypatch.setattr(ctags, "ctags_program", lambda: None)
    return explorer(tmp_path, FILES)


def places(found: Explorer, symbol: str, match: NameMatch = NameMatch.EXACT) -> set[tuple[str, int]]:
    return {(row.path, row.start_line) for row in found.find_definitions(symbol, match=match).results}


@pytest.mark.parametrize("refreshed", [False, True])
def test_a_method_is_found_by_its_selector_and_by_its_first_word(found: Explorer, refreshed: bool) -> None:
    if refreshed:
        found.refresh_all()
    whole = {("Cache.m", 3), ("Cache.h", 2)}
    assert places(found, "addImage:withIdentifier:") == whole
    assert places(found, "Cache.addImage:withIdentifier:") == whole
    assert places(found, "-[Cache addImage:withIdentifier:]") == whole
    assert places(found, "addImage") == whole | {("Cache.m", 6)}
    assert places(found, "addImage:") == {("Cache.m", 6)}
    assert places(found, "withIdentifier") == set()


def test_on_a_cold_cache_a_selector_is_looked_for_by_its_first_word(
    found: Explorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("code_intel_server.codebase.symbols.definitions.INLINE_LIMIT", 0)
    assert places(found, "addImage:withIdentifier:") == {("Cache.m", 3), ("Cache.h", 2)}


def test_the_calls_of_a_method_are_found_by_its_selector(found: Explorer) -> None:
    rows = found.find_references("addImage:withIdentifier:", kinds=["call"]).results
    assert [(row.path, row.start_line, row.enclosing) for row in rows] == [
        ("Cache.m", 7, "Cache.addImage:"),
        ("Use.m", 4, "Use.run"),
    ]


@pytest.mark.parametrize("target", ["addImage:withIdentifier:", "Cache.m", "Cache.m:3"])
def test_the_impact_of_a_method_reaches_its_callers(found: Explorer, target: str) -> None:
    impact = found.analyze_impact([target])
    assert "Use.m" in {row.path for row in impact.answer.results}
    assert not impact.unresolved


@pytest.mark.parametrize(
    ("symbol", "taken_apart", "as_written"),
    [
        ("Class.method", ["Class", "method"], "method"),
        ("ns::f()", ["ns", "f"], "f"),
        ("move:to:", ["move:to:"], "move"),
        ("Piece.move:to:", ["Piece", "move:to:"], "move"),
        ("+[Piece(Chess) move:to:]", ["Piece", "move:to:"], "move"),
        ("at::", ["at::"], "at"),
        ("list:method", ["list:method"], "list:method"),
        (r"App\Models\User", ["App", "Models", "User"], "User"),
    ],
)
def test_a_name_is_taken_apart(symbol: str, taken_apart: list[str], as_written: str) -> None:
    assert symbol_parts(symbol) == taken_apart
    assert written(symbol_parts(symbol)[-1]) == as_written


def test_what_is_no_name_has_no_parts() -> None:
    assert symbol_parts(" :: ") == []


def test_a_colon_is_part_of_the_name_first_and_comes_before_a_method_then() -> None:
    assert readings("M:run") == [["M:run"], ["M", "run"]]
    assert readings("a.M:run") == [["a", "M:run"], ["a", "M", "run"]]
    assert readings("move:to:") == [["move:to:"]]
    assert readings("Class.method") == [["Class", "method"]]


@pytest.mark.parametrize(("file", "text", "symbol"), [
    pytest.param(*("a.vim", "function! s:DoIt()\nendfunction\n", "s:DoIt"), marks=pytest.mark.needs("universal-ctags")),
    ("a.sh", "log:info() {\n  echo hi\n}\n", "log:info"),
    ("a.lua", "local M = {}\nfunction M:run()\nend\nreturn M\n", "M:run"),
])  # fmt: skip
def test_a_name_with_a_colon_is_found(tmp_path: Path, file: str, text: str, symbol: str) -> None:
    (tmp_path / file).write_text(text)
    answer = Explorer(tmp_path).find_definitions(symbol)
    assert [row.path for row in answer.results] == [file]
