"""Each occurrence of a name is told for what it is, and files are cut where a reader would cut them (SPEC 2, SPEC 8)."""

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from code_intel_server.codebase.files.languages import LANGUAGES_BY_NAME
from code_intel_server.codebase.syntax.grammars import node_text
from code_intel_server.codebase.syntax.structure import (
    Borders,
    Parsed,
    Uses,
    blocks_of,
    outline_of,
    parse,
    structure_of,
)

if TYPE_CHECKING:
    import tree_sitter

STATEMENTS = [
    b"    a = 1\n",
    b"    if a:\n        b(\n            1,\n        )\n        # and\n        c = 2\n",
    b"    # says\n",
    b"\n",
    b"    a = (\n        1 +\n        2\n    ); b = 3\n",
    b"    def g():\n        for x in y:\n            z(x)\n\n        return 1\n",
]

# The marked name `«name»` is classified.
USES = [
    ("python", "def «f»(): pass\n", "definition"),
    ("python", "«f»(1)\n", "call"),
    ("python", "a.«f»(1)\n", "call"),
    ("python", "from a import «f»\n", "import"),
    ("python", "import «os».path\n", "import"),
    ("python", "x = a.«f»\n", "attribute"),
    ("python", "def g(a: «F»): pass\n", "type"),
    ("python", "class A(«F»): pass\n", "type"),
    ("python", "# call «f» here\n", "comment"),
    ("python", "x = 'f «f»'\n", "string"),
    ("python", "x = f'{«f»(1)}'\n", "call"),
    ("python", "x = «f»\n", "other"),
    ("javascript", "import { «f» } from './a';\n", "import"),
    ("javascript", "new «F»();\n", "call"),
    ("javascript", "x.«f»;\n", "attribute"),
    ("javascript", "const s = `${«f»()}`;\n", "call"),
    ("javascript", "/* «f» */\n", "comment"),
    ("typescript", "let x: «F»;\n", "type"),
    ("tsx", "const a = <«App» />;\n", "call"),
    ("tsx", "const a = <Theme.«Provider» x />;\n", "call"),
    ("javascript", "const a = <Theme.«Provider»></Theme.Provider>;\n", "call"),
    ("tsx", "const a = <b>more «posts» {c}</b>;\n", "string"),
    ("tsx", "const a = <b>more {«c»}</b>;\n", "other"),
    ("javascript", "const { «f», g } = require('./a');\n", "import"),
    ("javascript", "const { g: «f» } = require('./a').b;\n", "import"),
    ("javascript", "const { «f» } = await import('./a');\n", "import"),
    ("javascript", "const «f» = require('./a');\n", "import"),
    ("javascript", "const «f» = makes(require('./a'));\n", "definition"),
    ("javascript", "exports.a = function «f»() {};\n", "definition"),
    ("javascript", "class A extends b.«C» {}\n", "type"),
    ("typescript", "await «f»<number>(1);\n", "call"),
    ("typescript", "await a.«f»<number>(1);\n", "call"),
    ("typescript", "a.«f»!(1);\n", "call"),
    ("typescript", "«f»!(1);\n", "call"),
    ("typescript", "import «A» = b.C;\n", "import"),
    ("typescript", "class A extends b.«C» {}\n", "type"),
    ("typescript", "const a = b as «c».D;\n", "type"),
    ("typescript", "type A = typeof «b»;\n", "type"),
    ("typescript", "type A = (b: C, ...«d»: E[]) => F;\n", "other"),
    ("typescript", "type A = («b»: C, d?: E) => F;\n", "other"),
    ("typescript", "type A = [«b»: C];\n", "other"),
    ("typescript", "type A = (b: «C») => F;\n", "type"),
    ("typescript", "function a(b: C): «b» is D {}\n", "other"),
    ("typescript", "function a(b: C): b is «D» {}\n", "type"),
    ("go", "package a\nfunc g() { fmt.«Println»() }\n", "call"),
    ("go", "package a\nvar x «T»\n", "type"),
    ("rust", "fn g() { «f»::<u8>(); }\n", "call"),
    ("rust", "use a::«f»;\n", "import"),
    ("java", "class A { «B» b; }\n", "type"),
    ("java", "class A { void f() { «g»(); } }\n", "call"),
    ("c", "int g(void) { return «f»(1); }\n", "call"),
    ("c", "#include <«stdio».h>\n", "import"),
    ("cpp", "void Foo::«bar»() {}\n", "definition"),
    ("cpp", "void «Foo»::bar() {}\n", "other"),
    ("cpp", "template <class K, class V>\nV Map<K, V>::«at»(K k) { return V(); }\n", "definition"),
    ("ruby", "class A::«B»\nend\n", "definition"),
    ("ruby", "x = a.«f»(1)\n", "call"),
    ("php", "<?php $a->«f»();\n", "call"),
    ("bash", "«f» 1\n", "call"),
    ("json", '{"a": "«f»"}\n', "other"),
    ("html", "<script>\nfunction «f»() {}\n</script>\n", "definition"),
    ("html", "<script>\n«f»();\n</script>\n", "call"),
]


@pytest.mark.parametrize(("language", "marked", "expected"), USES, ids=range(len(USES)))
def test_a_use_is_told_for_what_it_is(language: str, marked: str, expected: str) -> None:
    before, _, rest = marked.partition("«")
    text = before + rest.replace("»", "")
    parsed = parse(text.encode(), LANGUAGES_BY_NAME[language])
    assert parsed is not None
    line = before.count("\n") + 1
    column = len(before.rpartition("\n")[2].encode())
    assert Uses(parsed).at(line, column) == expected


def test_imports_and_calls_of_a_file_are_listed_with_their_place() -> None:
    source = b"import os\nfrom a.b import c\n\n\ndef f():\n    return os.path.join(c())\n"
    parsed = parse(source, LANGUAGES_BY_NAME["python"])
    assert parsed is not None
    made = structure_of(parsed)
    assert [(item.module, item.line) for item in made.imports] == [("os", 1), ("a.b", 2)]
    assert [(call.name, call.line, call.inside) for call in made.calls] == [("join", 6, "f"), ("c", 6, "f")]


def test_a_block_begins_with_its_comments_and_decorators() -> None:
    parsed = parse(
        b"x = 1\n\n# says\n@dec\ndef f():\n    pass\n\n\nclass A:\n    # inner\n    def g(self):\n        pass\n",
        LANGUAGES_BY_NAME["python"],
    )
    assert parsed is not None
    blocks = [block for block in blocks_of(parsed, outline_of(parsed)) if block.end_line > block.start_line]
    assert [(block.lead_line, block.start_line, block.end_line) for block in blocks] == [(3, 5, 6), (9, 9, 12)]
    assert [(child.lead_line, child.start_line) for child in blocks[1].children] == [(10, 11)]


def test_blocks_never_share_a_line_with_their_sibling() -> None:
    parsed = parse(b"int a, b; int c;\nint f() { return 1; } int g() { return 2; }\n", LANGUAGES_BY_NAME["c"])
    assert parsed is not None
    lines = [(block.lead_line, block.end_line) for block in blocks_of(parsed, outline_of(parsed))]
    assert all(before[1] < after[0] for before, after in pairwise(lines))


def test_borders_lie_between_statements_and_the_outer_ones_weigh_more() -> None:
    source = b"def f(a):\n    b = 1\n    if a:\n        c = 2\n        d = 3\n    # says\n    return b\n"
    parsed = parse(source, LANGUAGES_BY_NAME["python"])
    assert parsed is not None
    borders = Borders(parsed, 1, 7)
    assert borders.outermost(2, 7) == [2]  # the body itself begins there
    assert borders.outermost(3, 7) == [3, 6]
    assert borders.outermost(5, 7) == [6]
    assert [Borders(parsed, 1, 7).outermost(line, line) for line in (4, 5, 7)] == [[4], [5], []]


@given(lines=st.lists(st.sampled_from(STATEMENTS), min_size=1, max_size=30), data=st.data())
def test_borders_asked_for_a_few_lines_at_a_time_are_those_of_the_whole_walk(
    lines: list[bytes], data: st.DataObject
) -> None:
    parsed = parse(b"def f(a):\n" + b"".join(lines), LANGUAGES_BY_NAME["python"])
    assert parsed is not None
    last = len(parsed.line_starts)
    depths = _every_border(parsed)
    borders, first = Borders(parsed, 1, last), 2
    while first <= last:
        end = data.draw(st.integers(first, last))
        best = min((depths[line] for line in range(first, end + 1) if line in depths), default=None)
        assert borders.outermost(first, end) == [n for n in range(first, end + 1) if depths.get(n, -1) == best]
        first = data.draw(st.integers(first + 1, end + 1))


def _every_border(parsed: Parsed) -> dict[int, int]:
    """Line to the least depth of what begins it, by a walk over the whole tree."""
    depths: dict[int, int] = {}

    def walk(node: "tree_sitter.Node", depth: int) -> None:
        for child in node.named_children:
            line = child.start_point.row + 1
            indent = parsed.text[child.start_byte - child.start_point.column : child.start_byte]
            if line > 1 and not indent.strip() and line - 1 not in parsed.leads:
                depths[line] = min(depth, depths.get(line, depth))
            walk(child, depth + 1)

    walk(parsed.root, 0)
    return depths


def test_a_name_longer_than_a_piece_of_a_large_file_is_whole() -> None:
    name = "n" * 1000
    text = f"def {name}():\n    pass\n".encode() + b"x = 1  # filled up\n" * 10_000
    parsed = parse(text, LANGUAGES_BY_NAME["python"])
    assert parsed is not None
    assert [symbol.name for symbol in outline_of(parsed).symbols if symbol.name.startswith("n")] == [name]
    assert [node_text(node) for _, found in parsed.definition_matches for node in found.get("name", ())][:1] == [name]
