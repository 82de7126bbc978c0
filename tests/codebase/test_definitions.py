"""find_definitions: by name, part of a name, kind, and what the symbol stands in."""

from pathlib import Path

import pytest
from tests.codebase.lookup_project import explorer

from code_intel_server.codebase.answers import Page
from code_intel_server.codebase.symbols import ctags, definitions
from code_intel_server.codebase.symbols.definitions import NameMatch
from code_intel_server.errors import Rejected

FILES = {
    "shop/basket.py": (
        "LIMIT = 3\n\n\nclass Basket:\n    def add(self, item, count=1):\n        def inner():\n            pass\n\n    async def total(self):\n        return 0\n"
        "\n\nclass Box(Basket):\n    def add(self, item):\n        pass\n\n\ndef add(a, b):\n    return a + b\n"
    ),
    "shop/cart.js": "class Cart {\n  add(item) {}\n}\nfunction addAll(items) {}\n",
    "lib/box.cpp": "namespace store {\nclass Box {\n public:\n  int add(int n);\n};\nint Box::add(int n) { return n; }\n}\n",
    "tests/test_basket.py": "def add():\n    pass\n",
}
DECLARED = ("lib/box.cpp", 4)
"""In the class, which without ctags is told beside the definition."""


def found(tmp_path: Path, symbol: str, **options: object) -> list[tuple[str, int, str]]:
    answer = explorer(tmp_path, FILES).find_definitions(symbol, page=Page(50), **options)  # type: ignore[arg-type]
    assert answer.complete
    return [(row.path, row.start_line, row.kind) for row in answer.results]


def test_a_definition_says_where_it_is_what_it_is_and_what_it_stands_in(tmp_path: Path) -> None:
    (row,) = explorer(tmp_path, FILES).find_definitions("Basket.add").results
    assert (row.path, row.start_line, row.end_line) == ("shop/basket.py", 5, 7)
    assert (row.symbol, row.kind, row.scope, row.qualified) == ("add", "method", "Basket", "Basket.add")
    assert row.signature.removeprefix("def ") == "add(self, item, count=1)"
    assert row.text == "def add(self, item, count=1):"
    assert row.language == "python"


def test_every_definition_of_a_name_is_found_code_before_tests(tmp_path: Path) -> None:
    paths = [path for path, _, _ in found(tmp_path, "add")]
    assert set(paths) == {"lib/box.cpp", "shop/basket.py", "shop/cart.js", "tests/test_basket.py"}
    assert paths.count("shop/basket.py") == 3
    assert paths[-1] == "tests/test_basket.py"


@pytest.mark.parametrize(
    ("symbol", "expected"),
    [
        ("Box.add", {("lib/box.cpp", 6), ("shop/basket.py", 14)}),
        ("store::Box::add", {("lib/box.cpp", 6)}),
        ("shop.basket.Box.add", {("shop/basket.py", 14)}),
        ("basket.add", {("shop/basket.py", 18)}),
        ("Basket#add", {("shop/basket.py", 5)}),
        ("Basket.add()", {("shop/basket.py", 5)}),
        ("Basket.add.inner", {("shop/basket.py", 6)}),
        ("Nothing.add", set()),
    ],
)
def test_a_qualified_name_means_that_one_only(tmp_path: Path, symbol: str, expected: set[tuple[str, int]]) -> None:
    assert {(path, line) for path, line, _ in found(tmp_path, symbol)} - {DECLARED} == expected


def test_a_prefix_ignores_case_and_puts_the_same_name_first(tmp_path: Path) -> None:
    rows = explorer(tmp_path, FILES).find_definitions("add", match=NameMatch.PREFIX).results
    *same, last = [row.symbol for row in rows]
    assert set(same) == {"add"}
    assert last == "addAll"


def test_fuzzy_letters_in_order_find_the_nearest_name_first(tmp_path: Path) -> None:
    rows = explorer(tmp_path, FILES).find_definitions("bskt", match=NameMatch.FUZZY).results
    assert rows[0].symbol == "Basket"
    assert [
        row.symbol for row in explorer(tmp_path, FILES).find_definitions("LIKE%_", match=NameMatch.FUZZY).results
    ] == []


@pytest.mark.parametrize(
    ("kind", "symbols"),
    [("class", {"Basket", "Box", "Cart"}), ("function", {"add", "addAll", "inner", "total"}), ("constant", set())],
)
def test_a_kind_narrows_and_function_means_methods_too(tmp_path: Path, kind: str, symbols: set[str]) -> None:
    project = explorer(tmp_path, FILES)
    names = {
        row.symbol
        for name in ("Basket", "Box", "Cart", "add", "addAll", "inner", "total")
        for row in project.find_definitions(name, kind=kind).results
    }
    assert names == symbols


def test_a_name_that_is_of_another_kind_is_said_to_be(tmp_path: Path) -> None:
    project = explorer(tmp_path, FILES)
    [note] = project.find_definitions("Basket", kind="foo").notes
    assert "class" in note and "foo" in note
    assert project.find_definitions("Basket", kind="class").notes == ()
    assert project.find_definitions("Nowhere", kind="class").notes == ()


def test_a_path_narrows(tmp_path: Path) -> None:
    assert {path for path, _, _ in found(tmp_path, "add", path="shop")} == {"shop/basket.py", "shop/cart.js"}
    assert {path for path, _, _ in found(tmp_path, "add", path="shop/cart.js")} == {"shop/cart.js"}


@pytest.mark.parametrize("symbol", ["", "  ", ".", "::", "()", "f\0"])
def test_no_symbol_is_refused(tmp_path: Path, symbol: str) -> None:
    with pytest.raises(Rejected, match=r"query\.no_symbol"):
        explorer(tmp_path, FILES).find_definitions(symbol)


def test_pages_hold_the_whole_in_order(tmp_path: Path) -> None:
    project = explorer(tmp_path, FILES)
    whole = project.find_definitions("add").results
    first, second = project.find_definitions("add", page=Page(4)), project.find_definitions("add", page=Page(4, 4))
    assert (first.total, first.next_offset, second.next_offset) == (len(whole), 4, None)
    assert first.results + second.results == whole


@pytest.mark.parametrize(
    ("file", "text", "asked", "places"),
    [
        ("a.php", "<?php\nnamespace App\\Shop;\nclass Cart {\n  static function make() {}\n}\n", "Cart::make", [(4, "App.Shop.Cart")]),
        ("a.php", "<?php\nnamespace App\\Shop;\nclass Cart {\n}\n", r"App\Shop\Cart", [(3, "App.Shop")]),
        ("a.php", "<?php\nnamespace App\\Shop;\nclass Cart {\n}\n", r"App\Shop", [(2, "App")]),
        ("a.ex", "defmodule My.Mod do\n  def run!(x), do: x\nend\n", "My.Mod.run!", [(2, "My.Mod")]),
        ("a.ex", "defmodule My.Mod do\n  def run!(x), do: x\nend\n", "My.Mod", [(1, "My")]),
        ("a.ex", "defmodule My.Mod do\n  def run!(x), do: x\nend\n", "Mod", [(1, "My")]),
        ("A.java", "package com.shop;\nclass A {\n  record Price(int cents) {}\n}\n", "com.shop", [(1, "com")]),
        ("A.java", "package com.shop;\nclass A {\n  record Price(int cents) {}\n}\n", "A.Price", [(3, "A")]),
        ("a.go", "package a\n\ntype T[K any] struct{ f K }\n\nfunc (t *T[K]) Do() {}\n", "T.Do", [(5, "a.T")]),
        ("a.rs", "const MAX: usize = 1;\nfn r#type() {}\n", "MAX", [(1, "")]),
        ("a.rs", "const MAX: usize = 1;\nfn r#type() {}\n", "type", [(2, "")]),
        ("a.lua", "local M = {}\nfunction M.go() end\nfunction M:run() end\nreturn M\n", "M.go", [(2, "M")]),
        ("a.lua", "local M = {}\nfunction M.go() end\nfunction M:run() end\nreturn M\n", "M:run", [(3, "M")]),
        ("a.clj", "(ns app.core)\n(defn- hidden! [] 1)\n(def ^:dynamic *ctx* nil)\n", "hidden!", [(2, "")]),
        ("a.clj", "(ns app.core)\n(defn- hidden! [] 1)\n(def ^:dynamic *ctx* nil)\n", "*ctx*", [(3, "")]),
        ("a.clj", "(ns app.core)\n(defn- hidden! [] 1)\n", "app.core", [(1, "app")]),
        pytest.param(
            *("a.cpp", "struct A { };\nbool operator ==(A a, A b) { return true; }\n", "operator==", [(2, "")]),
            marks=pytest.mark.needs("universal-ctags"),
        ),
        ("a.cpp", "struct A { void *operator new(unsigned long n) { return 0; } };\n", "operator new", [(1, "A")]),
        ("a.js", "class A {\n  #count = 1;\n  #bump() {}\n}\n", "A.#bump", [(3, "A")]),
    ],
)  # fmt: skip
def test_a_name_is_found_as_its_language_writes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, text: str, asked: str, places: list[tuple[int, str]]
) -> None:
    monkeypatch.setattr(definitions, "INLINE_LIMIT", 0)  # only files are tagged that hold the name
    answer = explorer(tmp_path, {file: text}).find_definitions(asked)
    assert [(row.start_line, row.scope) for row in answer.results] == places
    assert answer.complete


STYLES = {
    "site.css": ".btn { color: red }\n#main, .btn:hover > .btn-primary { top: 0 }\n@media print { .inner .btn { top: 0 } }\n",
    "more.scss": ".card {\n  .btn { top: 0 }\n}\n",
    "ui.py": "def btn():\n    pass\n",
    "count.js": "class Counter {\n  #count = 0;\n  main() { return this.#count; }\n}\n",
}


@pytest.mark.parametrize(
    ("asked", "places"),
    [
        (".btn", {("site.css", 1), ("site.css", 2), ("site.css", 3), ("more.scss", 2)}),
        (".btn-primary", {("site.css", 2)}),
        ("btn-primary", {("site.css", 2)}),
        (".inner", {("site.css", 3)}),
        ("#main", {("site.css", 2)}),
        ("#count", {("count.js", 2)}),  # no id of a style sheet, but a private field
        (".main", {("count.js", 3), ("site.css", 2)}),  # no class of that name: whatever is called so
    ],
)
def test_classes_and_ids_of_style_sheets_are_found_by_their_signs(
    tmp_path: Path, asked: str, places: set[tuple[str, int]]
) -> None:
    found = explorer(tmp_path, STYLES)
    assert {(row.path, row.start_line) for row in found.find_definitions(asked).results} == places


def test_a_bare_name_finds_the_code_before_the_style_sheets(tmp_path: Path) -> None:
    found = explorer(tmp_path, STYLES)
    rows = found.find_definitions("btn").results
    assert (rows[0].path, {row.kind for row in rows}) == ("ui.py", {"function", "selector"})
    assert {target.path for target in found.analyze_impact(["btn"]).targets} == {"ui.py"}


SHEETS = {
    "m.scss": "$primary: red;\n%ph { top: 1 }\n.ph { top: 2 }\n.primary { top: 3 }\n.a { @extend %ph; }\n",
    "m.less": "@size: 1;\n.mix() { top: 0 }\n.q1 { .mix(); &:hover { .in { top: 1 } } }\n.m(@a; @b: 2) { top: @a }\n",
    # the grammar, made for another language, makes no tree of it
    "broken.less": ".mix2() { top: 0 }\n.q2 { .mix2(); }\n.q3 { .mix2; &:extend(.q2 all); }\n#ns { .m2() { } }\n.q4 { #ns > .m2(); }\n",
    "a.js": "const $primary = 1;\n",
}


@pytest.mark.parametrize(("symbol", "places"), [
    ("$primary", {("m.scss", 1), ("a.js", 1)}), ("primary", {("m.scss", 1), ("m.scss", 4)}),
    (".primary", {("m.scss", 4)}), ("%ph", {("m.scss", 2)}), (".ph", {("m.scss", 3)}),
    ("ph", {("m.scss", 2), ("m.scss", 3)}), ("@size", {("m.less", 1)}), ("size", {("m.less", 1)}),
    (".mix", {("m.less", 2)}), (".in", {("m.less", 3)}), (".q1", {("m.less", 3)}), (".m", {("m.less", 4)}),
    (".mix2", {("broken.less", 1)}), (".q2", {("broken.less", 2)}), (".q3", {("broken.less", 3)}),
    ("#ns", {("broken.less", 4)}), (".m2", {("broken.less", 4)}), (".q4", {("broken.less", 5)}),
])  # fmt: skip
def test_names_of_scss_and_less_are_found_with_their_marks_and_without(
    tmp_path: Path, symbol: str, places: set[tuple[str, int]]
) -> None:
    rows = explorer(tmp_path, SHEETS).find_definitions(symbol).results
    assert sorted((row.path, row.start_line) for row in rows) == sorted(places)


@pytest.mark.parametrize(
    ("files", "engine"),
    [
        ({"a.py": "def here(): pass\n"}, "universal-ctags"),
        ({"a.rs": "fn here() {}\n"}, "tree-sitter"),
        ({"a.py": "def here(): pass\n", "b.rs": "fn there() {}\n"}, "tree-sitter + universal-ctags"),
        ({"README.md": "nowhere\n"}, "universal-ctags"),
    ],
)
@pytest.mark.needs("universal-ctags")
def test_an_answer_without_a_row_names_the_engines_that_were_asked(
    tmp_path: Path, files: dict[str, str], engine: str
) -> None:
    found = explorer(tmp_path, files).find_definitions("nowhere")
    assert (found.total, found.complete, found.engine) == (0, True, engine)


@pytest.mark.parametrize(("name", "text"), [
    ("a.cu", "__global__ void helper(int n) {\n}\n"), ("a.fs", "module A\nlet helper x = x + 1\n"),
    ("a.pyi", "def helper() -> int: ...\n"), ("a.rkt", "(define (helper n) n)\n"),
    ("CMakeLists.txt", "function(helper n)\nendfunction()\n"),
])  # fmt: skip
@pytest.mark.needs("universal-ctags")
def test_a_file_is_tagged_by_the_engine_that_knows_its_language(tmp_path: Path, name: str, text: str) -> None:
    answer = explorer(tmp_path, {name: text}).find_definitions("helper")
    assert ([row.path for row in answer.results], answer.complete) == ([name], True)


def test_a_name_that_only_a_file_nobody_outlines_holds_is_not_said_to_be_defined_nowhere(tmp_path: Path) -> None:
    lookups = explorer(tmp_path, {"src/a.gleam": "pub fn helper() { 1 }\n", "b.gleam": "helper()", "c.py": "x = 1\n"})
    for asked in (
        {"symbol": "a.helper"},
        {"symbol": "HEL", "match": NameMatch.PREFIX},
        {"symbol": "hp", "match": NameMatch.FUZZY},
    ):
        answer = lookups.find_definitions(**asked)  # type: ignore[arg-type]
        assert (answer.total, answer.complete, answer.engine.replace("universal-ctags", "tree-sitter")) == (
            0,
            False,
            "tree-sitter",
        )
        assert answer.incomplete_because == ("nothing here knows definitions in the language of b.gleam and 1 more",)
    assert lookups.find_definitions("nowhere").complete
    assert lookups.find_definitions("helper", path="c.py").complete
    assert not lookups.get_symbols("b.gleam").complete


def test_without_ctags_an_answer_without_a_row_does_not_name_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ctags, "ctags_program", lambda: None)
    for files in ({"README.md": "nowhere\n"}, {"a.py": "def here(): pass\n"}):
        assert explorer(tmp_path, files).find_definitions("nowhere").engine == "tree-sitter"


@pytest.mark.parametrize("name", ["app.js", "app.ts"])
def test_a_function_assigned_to_a_member_is_found_by_both_names(tmp_path: Path, name: str) -> None:
    files = {name: "const app = {}\napp.render = function render(view) {\n  return view\n}\nexports.make = () => app\n"}
    lookups = explorer(tmp_path, files)
    assert [row.start_line for row in lookups.find_definitions("app.render").results] == [2]
    assert [row.scope for row in lookups.find_definitions("make").results] == [""]
