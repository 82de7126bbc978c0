"""What names are in constructs that other languages' own parsers showed to be told wrongly (benchmarks/uses_vs_parsers.md)."""

import re
from pathlib import Path

import pytest
from tests.codebase.lookup_project import explorer

from code_intel_server.codebase.explorer import Explorer
from code_intel_server.codebase.files.languages import LANGUAGES_BY_NAME
from code_intel_server.codebase.symbols import ctags
from code_intel_server.codebase.symbols.definitions import NameMatch
from code_intel_server.codebase.syntax.structure import Uses, outline, parse
from code_intel_server.codebase.syntax.values import Use

MARKED = re.compile(r"‹(\w+)›")

USES = [
    # Go
    ("go", Use.OTHER, "var d ‹time›.Duration\n"),
    ("go", Use.TYPE, "var d time.‹Duration›\n"),
    ("go", Use.OTHER, "var table [‹size›]byte\nvar other [2 * ‹size›]byte\n"),
    ("go", Use.TYPE, "func f() { a := (*‹T›)(p)\n b := (*ast.‹Expr›)(nil) }\n"),
    ("go", Use.CALL, "func f() { ‹Map›[int, string](xs)\n lo.‹Map›[int](xs)\n go ‹run›[T]()\n (‹f›)(x)\n (unsafe.‹Pointer›)(x) }\n"),
    ("go", Use.STRING, "var r = '‹g›'\n"),
    # Java
    ("java", Use.CALL, "class A { Object a = new Map.‹Entry›(); Object b = new java.util.‹List›<String>(); }\n"),
    ("java", Use.TYPE, "@‹Inject› @java.io.‹Serial› @‹Named›(\"a\") class A {}\n"),
    ("java", Use.DEFINITION, "record Point(int ‹x›, int ‹y›) {}\n"),
    ("java", Use.DEFINITION, "package org.acme.‹shop›;\n"),
    ("java", Use.OTHER, "package ‹org›.‹acme›.shop;\n"),
    # Ruby
    ("ruby", Use.CALL, "a = ‹Array›(x)\nb.‹Float› 1\n"),
    ("ruby", Use.DEFINITION, "class A\n  attr_accessor :‹a›, :‹b›\n  alias :‹c› :d\n  define_method(:‹e›) { |x| x }\nend\n"),
    ("ruby", Use.DEFINITION, "‹A›, ‹B› = 1, 2\n‹C› ||= 3\nShop::‹D› = Struct.new(:‹e›)\n"),
    ("ruby", Use.OTHER, 'Dir.chdir(a) { ‹Gem›::‹Specification›.load("b") }\n'),
    # PHP
    ("php", Use.ATTRIBUTE, "<?php $a = $b->‹c›->‹d›; $e = $f?->‹g›; $h = K::‹LIMIT›;\n"),
    ("php", Use.CALL, "<?php $a = $b->c->‹d›(); K::‹make›();\n"),
    ("php", Use.TYPE, "<?php class A extends ‹B› implements \\X\\‹C›, ‹D› { use ‹T›; }\n"),
    ("php", Use.TYPE, "<?php #[‹Route›('/')] function f() { return $x instanceof ‹Foo›; }\n"),
    ("php", Use.OTHER, "<?php function f(\\‹Acme›\\‹Shop›\\Cart $a) {}\n"),
    ("php", Use.TYPE, "<?php function f(\\Acme\\Shop\\‹Cart› $a) {}\n"),
    ("php", Use.DEFINITION, "<?php define('‹LIMIT›', 3); \\define(\"‹MORE›\", LIMIT);\n"),
    ("php", Use.DEFINITION, "<?php class A { function __construct(private Foo $‹a›, public readonly int $‹b› = 1) {} }\n"),
    # C
    ("c", Use.CALL, "#define TWICE(x) ‹run›(x); ‹run› (x)\n"),
    ("c", Use.STRING, '#define SAY(x) log("‹some› text", \'‹a›\') + other\n'),
    ("c", Use.COMMENT, "#define BOTH(x) do { \\\n  run(x); /* ‹why› */ \\\n} while (0)\nint f(void) { return 1; }\n"),
    ("c", Use.OTHER, "int ‹f›(void);\n"),
    ("c", Use.DEFINITION, "char **‹argv›, *‹names›[3][4];\nint (*‹hook›)(int) = 0;\nstruct A { char **‹a›; int (*‹b›)(int); };\n"),
    ("c", Use.DEFINITION, "typedef int ‹work›(int);\ntypedef int (‹more›)(int);\ntypedef char **‹text›;\nvoid (‹g›)(int a) {}\n"),
]  # fmt: skip


@pytest.mark.parametrize(("language", "use", "source"), USES)
def test_a_marked_name_is_told_as_its_languages_parser_has_it(language: str, use: Use, source: str) -> None:
    text = MARKED.sub(r"\1", source)
    parsed = parse(text.encode(), LANGUAGES_BY_NAME[language])
    assert parsed and not parsed.has_errors
    uses = Uses(parsed)
    told = [
        (found[1], uses.at(number, len(MARKED.sub(r"\1", line[: found.start()]).encode())))
        for number, line in enumerate(source.split("\n"), 1)
        for found in MARKED.finditer(line)
    ]
    assert told
    assert told == [(name, use) for name, _ in told]


OUTLINES: dict[str, tuple[str, str, list[str]]] = {
    "a blank in place of a name is no definition in Go": (
        "go",
        "package p\nvar _ I = T{}\ntype T struct {\n\t_ [4]byte\n\ta int\n}\nfunc _() {}\n",
        ["module p 1", "struct T 3", "field T.a 5", "function _ 7"],
    ),
    "what a record and a module of Java declare": (
        "java",
        "record Point(int x, int... y) {\n  Point { }\n}\n",
        ["class Point 1", "field Point.x 1", "field Point.y 1", "constructor Point.Point 2"],
    ),
    "a module of Java": ("java", "open module org.acme.shop {\n  requires java.sql;\n}\n", ["module org.acme.shop 1"]),
    "what Ruby's classes, modules and structures declare": (
        "ruby",
        ("class Shop::Cart\n  attr_reader :items, :owner\n  alias :size :count\n  define_method(:total) do\n    def inner; end\n  end\nend\n"
         "module Tax\n  def rate; end\nend\nPoint = Struct.new(:x, :y) do\n  def dist; end\nend\nShop::LIMIT = 3\ndef top; end\n"),
        ["class Shop.Cart 1", "property Shop.Cart.items 2", "property Shop.Cart.owner 2", "method Shop.Cart.size 3",
         "method Shop.Cart.total 4", "method Shop.Cart.total.inner 5", "module Tax 8", "method Tax.rate 9",
         "constant Point 11", "property Point.x 11", "property Point.y 11", "method Point.dist 12",
         "constant Shop.LIMIT 14", "function top 15"],
    ),
    "what PHP's constructors and calls of define declare": (
        "php",
        "<?php\nnamespace Acme;\nclass Cart {\n  public function __construct(\n    private array $items,\n    int $total,\n  ) {}\n}\ndefine('LIMIT', 3);\n",
        ["namespace Acme 2", "class Cart 3", "constructor Cart.__construct 4", "field Cart.items 5", "constant LIMIT 9"],
    ),
    "what a header of C declares between the braces for C++": (
        "c",
        (
            '#ifndef LIB_H\n#ifdef __cplusplus\nextern "C" {\n#endif\nint plain(void);\nconst char *text(int a), **texts(void);\n'
            "typedef struct item { int a; } item;\nint inl(int a)\n{\n#ifdef DEBUG\n  int local = 1;\n#endif\n  return a;\n}\n"
            "#ifdef DEBUG\nchar *level;\n#endif\n#if defined(__cplusplus)\n} /* C */\n#endif\n#endif\n"
        ),
        ["declaration plain 5", "declaration text 6", "declaration texts 6", "struct item 7", "field item.a 7",
         "type item 7", "function inl 8", "variable level 16"],
    ),
    "what stands behind and before macros in C": (
        "c",
        ("LIB_API int one(void);\nstatic LIB_INLINE long two(long a) { return a; }\nvoid three(const char *f, ...) LIB_PRINTF(1, 2);\n"
         "LIB_API(int) *four(void)\n{\n  if (four) STOP;\n  return 0;\n}\nDIAGNOSTIC_PUSH\nint five(void) { return 5; }\nLIST_OF(a, b)\nint six;\n"),
        ["declaration one 1", "function two 2", "declaration three 3", "function four 4", "function five 10", "variable six 12"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("language", "source", "rows"), OUTLINES.values(), ids=OUTLINES.keys())
def test_an_outline_has_the_definitions_that_the_languages_parser_has(
    language: str, source: str, rows: list[str]
) -> None:
    found = outline(source.encode(), LANGUAGES_BY_NAME[language])
    assert [f"{one.kind} {one.qualified} {one.line}" for one in found.symbols] == rows
    assert not found.has_errors


def kinds(found: Explorer, name: str) -> list[str]:
    """Line and kind of all definitions of a name, by the engine that tags its files."""
    return [f"{row.start_line} {row.kind}" for row in found.find_definitions(name).results]


def test_a_go_method_is_found_as_a_method_and_a_type_within_a_function_is_found(tmp_path: Path) -> None:
    found = explorer(
        tmp_path,
        {
            "a.go": 'package a\n\nimport log "l/og"\n\ntype T struct{}\n\nfunc (t *T) Do() {}\nfunc (u U) Go() {}\nvar _ = T{}\n',
            "b.go": "package a\n\nfunc Run() {\n\ttype Local struct{ Field int }\n}\n",
        },
    )
    assert kinds(found, "T.Do") == kinds(found, "Do") == ["7 method"]
    assert kinds(found, "Go") == ["8 method"]
    assert kinds(found, "Run") == ["3 function"]
    assert kinds(found, "Local") == ["4 struct"]
    assert kinds(found, "log") == kinds(found, "_") == []


def test_javas_constructors_and_what_stands_in_classes_without_a_name_are_found(tmp_path: Path) -> None:
    found = explorer(
        tmp_path,
        {
            "A.java": "class A {\n  A(int a) {}\n  @interface Mark {}\n}\n",
            "B.java": "class B {\n  Runnable r = new Runnable() {\n    public void run() {}\n  };\n}\n",
            "module-info.java": "module org.acme.shop {\n  exports org.acme;\n}\n",
        },
    )
    assert kinds(found, "A") == ["1 class", "2 constructor"]
    assert [row.start_line for row in found.find_definitions("A", kind="constructor").results] == [2]
    assert kinds(found, "Mark") == ["3 interface"]
    assert kinds(found, "run") == ["3 method"]
    assert kinds(found, "org.acme.shop") == ["1 module"]


def test_what_ruby_defines_is_found_by_its_whole_name(tmp_path: Path) -> None:
    found = explorer(
        tmp_path,
        {
            "a.rb": "class Shop::Cart\n  attr_writer :owner\n  def total; end\n  alias_method :sum, :total\nend\nTEXT = <<~RUBY\n  def invented; end\nRUBY\n"
        },
    )
    assert kinds(found, "Shop::Cart#total") == ["3 method"]
    assert kinds(found, "owner") == ["2 property"]
    assert kinds(found, "sum") == ["4 method"]
    assert kinds(found, "invented") == []


@pytest.mark.parametrize("folder", ["src", "vendor"])
def test_what_php_defines_is_found_with_its_namespace_and_what_it_imports_is_not(tmp_path: Path, folder: str) -> None:
    text = (
        "<?php\nnamespace Acme\\Shop;\n\nuse Other\\Tax;\nuse Other\\Rate as Fee;\n\nclass Cart\n{\n    private $items;\n"
        "    public function __construct() {}\n    public function total()\n    {\n        return 1;\n    }\n}\nfunction loose() {}\n"
    )
    found = explorer(tmp_path, {f"{folder}/a.php": text})
    assert kinds(found, "Acme\\Shop\\Cart") == kinds(found, "Cart") == ["7 class"]
    assert kinds(found, "Acme\\Shop\\Cart::total") == ["11 method"]
    assert kinds(found, "items") == ["9 field"]
    assert kinds(found, "__construct") == ["10 constructor"]
    assert kinds(found, "Acme\\Shop\\loose") == ["16 function"]
    assert kinds(found, "Acme\\Shop") == ["2 namespace"]
    assert kinds(found, "Tax") == kinds(found, "Fee") == []


def test_php_that_ctags_does_not_know_is_found_with_its_last_line(tmp_path: Path) -> None:
    found = explorer(
        tmp_path,
        {
            "a.php": "<?php\nenum Suit: string\n{\n    case Hearts = 'h';\n\n    public function color()\n    {\n    }\n}\n"
        },
    )
    (suit,) = found.find_definitions("Suit").results
    assert (suit.kind, suit.start_line, suit.end_line) == ("enum", 2, 9)
    assert kinds(found, "Suit::Hearts") == ["4 member"]
    assert kinds(found, "color") == ["6 method"]


def test_a_function_of_c_that_follows_a_lost_brace_stands_by_itself() -> None:
    source = "int f(int a) {\n#ifdef X\n  if (a) {\n#else\n  if (!a) {\n#endif\n    a++;\n  }\n  return a;\n}\n\nint g(int b) {\n  return b;\n}\n"
    assert [one.qualified for one in outline(source.encode(), LANGUAGES_BY_NAME["c"]).symbols] == ["f", "g"]


@pytest.mark.parametrize("has_ctags", [pytest.param(True, marks=pytest.mark.needs("universal-ctags")), False])
def test_a_declaration_is_told_where_its_definition_is_not_in_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_ctags: bool
) -> None:
    if not has_ctags:
        monkeypatch.setattr(ctags, "ctags_program", lambda: None)
    found = explorer(
        tmp_path,
        {
            "include/lib.h": "int lib_open(const char *path);\nint lib_own(int a);\n",
            "include/box.hpp": "class Box {\n  int weigh();\n  int open();\n};\n",
            "src/own.c": '#include "lib.h"\nint lib_own(int a) {\n  return lib_open("a") + a;\n}\n',
            "src/box.cpp": "int Box::open() { return 1; }\n",
        },
    )
    assert kinds(found, "lib_open") == ["1 declaration"]
    assert [row.path for row in found.find_definitions("lib_open", kind="function").results] == ["include/lib.h"]
    assert [row.path for row in found.find_definitions("lib_own").results] == ["src/own.c"]
    assert [row.path for row in found.find_definitions("lib_own", kind="declaration").results] == ["include/lib.h"]
    prefixed = found.find_definitions("lib_", match=NameMatch.PREFIX).results
    assert [(row.symbol, row.kind) for row in prefixed] == [("lib_own", "function"), ("lib_open", "declaration")]
    assert len(kinds(found, "Box.weigh")) == 1
    if has_ctags:
        assert [row.path for row in found.find_definitions("Box.open").results] == ["src/box.cpp"]
    roles = {(row.path, row.start_line, row.kind.value) for row in found.find_references("lib_own").results}
    assert roles == {("src/own.c", 2, "definition"), ("include/lib.h", 2, "other")}
