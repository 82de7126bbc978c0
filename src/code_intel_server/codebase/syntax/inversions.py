"""Assertions turned round, so that a run shows which tests pass whatever they assert (SPEC 4, Receipts).

An equality becomes one with NaN, which nothing equals, so that a value that equals everything is noticed too.
"""

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from code_intel_server.codebase.files.languages import Language
from code_intel_server.codebase.syntax.grammars import Captures, Parsed, matches, node_text, parse
from code_intel_server.codebase.syntax.mutants import Edit, edited

if TYPE_CHECKING:
    from tree_sitter import Node

_EQUALS_NOTHING = b' float("nan") or float("nan") =='
_NO_VALUE = frozenset({"keyword_argument", "list_splat", "dictionary_splat", "comment"})
_EQUALITY = re.compile(r"(?:.*\.)?assert(?:\.strict)?\.(?:deep)?(?:strict)?equal", re.IGNORECASE)
_CONDITION = re.compile(r"(?:.*\.)?assert(?:\.strict)?(?:\.ok)?")
_NODE_TEST = re.compile(r"(?:.*\.)?(?:it|test|specify)(?:\.only)?")
_GO_FAILS = re.compile(r"\{\s*t\.(?:Error|Fatal|Fail)")
_TESTIFY = {"Equal": "NotEqual", "True": "False", "Nil": "NotNil", "NoError": "Error", "Contains": "NotContains"}


def _around(node: "Node", before: bytes, after: bytes) -> Iterator[Edit]:
    yield from ((node.start_byte, node.start_byte, before), (node.end_byte, node.end_byte, after))


def _python(_: Parsed, found: Captures) -> Iterator[Edit]:
    (node,) = found["assertion"]
    if node.type == "assert_statement":
        outer = inner = next(child for child in node.named_children if child.type != "comment")
        while inner.type == "parenthesized_expression" and len(inner.named_children) == 1:
            inner = inner.named_children[0]
        if inner.type == "comparison_operator" and [child.type for child in inner.children[1:-1]] == ["=="]:
            at = inner.children[1].end_byte
            yield at, at, _EQUALS_NOTHING
        else:
            yield from _around(outer, b" not (", b")")
        return
    (name,), (arguments,) = found["name"], found["arguments"]
    said, given = node_text(name), arguments.named_children
    if node_text(found["self"][0]) != "self" or not said.startswith("assert"):
        return
    two = given[:2]
    if (
        said.endswith(("Equal", "Equals"))
        and "Not" not in said
        and len(two) > 1
        and not _NO_VALUE & {one.type for one in two}
    ):
        yield name.start_byte, name.end_byte, b"assertTrue"
        yield two[0].start_byte, two[0].start_byte, b"("
        yield two[0].end_byte, two[1].start_byte, b") ==" + _EQUALS_NOTHING + b" ("
        yield two[1].end_byte, arguments.end_byte - 1, b")"
    else:
        yield from _around(node, b"self.fail(", b")")  # whatever it returns


def _javascript(_: Parsed, found: Captures) -> Iterator[Edit]:
    (node,), (function,), (arguments,) = found["assertion"], found["function"], found["arguments"]
    said = node_text(function)
    if said == "expect" and node.parent is not None and node.parent.type == "member_expression":
        yield node.end_byte, node.end_byte, b".not"
    elif _EQUALITY.fullmatch(said):
        name = said.rpartition(".")[2]
        yield function.end_byte - len(name), function.end_byte, f"not{name[0].upper()}{name[1:]}".encode()
    elif _CONDITION.fullmatch(said) and arguments.named_children:
        yield from _around(arguments.named_children[0], b"!(", b")")


def _go(parsed: Parsed, found: Captures) -> Iterator[Edit]:
    if "condition" in found:
        if _GO_FAILS.match(node_text(found["body"][0])):
            yield from _around(found["condition"][0], b"!(", b")")
        return
    (module,), (name,) = found["module"], found["name"]
    turned = _TESTIFY.get(node_text(name))
    if turned and f'/testify/{node_text(module)}"'.encode() in parsed.text:  # other libraries lack some of these
        yield name.start_byte, name.end_byte, turned.encode()


def _named_function(node: "Node") -> str:
    name = node.child_by_field_name("name") if node.type in {"function_definition", "function_declaration"} else None
    said = node_text(name) if name is not None else ""
    return said if said.lower().startswith("test") else ""


def _titled_call(node: "Node") -> str:
    function, arguments = (node.child_by_field_name(name) for name in ("function", "arguments"))
    if function is None or arguments is None or not _NODE_TEST.fullmatch(node_text(function)):
        return ""
    first = arguments.named_children[:1]
    return node_text(first[0])[1:-1] if first and first[0].type == "string" else ""


_PYTHON = """
(assert_statement) @assertion
(call function: (attribute object: (identifier) @self attribute: (identifier) @name)
      arguments: (argument_list) @arguments) @assertion
"""
_JAVASCRIPT = "(call_expression function: (_) @function arguments: (arguments) @arguments) @assertion"
_GO = """
(if_statement condition: (_) @condition consequence: (block) @body) @assertion
(call_expression function: (selector_expression operand: (identifier) @module field: (field_identifier) @name)) @assertion
"""
LANGUAGES: dict[str, tuple[str, Callable[[Parsed, Captures], Iterator[Edit]], Callable[["Node"], str]]] = {
    "python": (_PYTHON, _python, _named_function),
    **dict.fromkeys(("javascript", "typescript", "tsx"), (_JAVASCRIPT, _javascript, _titled_call)),
    "go": (_GO, _go, _named_function),
}
"""What finds the assertions of a language, what turns one round, and what names a test that it is in."""


def inverted(text: bytes, language: Language) -> tuple[bytes, frozenset[str]]:
    """A file with the assertions of its tests turned round, and the names of these tests; none where it is not understood."""
    parsed = parse(text, language) if language.name in LANGUAGES else None
    if parsed is None or parsed.text != text or parsed.has_errors:
        return text, frozenset()
    query, turned, test_name = LANGUAGES[parsed.language.name]
    edits: list[Edit] = []
    names: set[str] = set()
    for found in sorted(matches(parsed, query), key=lambda one: one["assertion"][0].start_byte):
        around = found["assertion"][0].parent
        while around is not None and not (name := test_name(around)):
            around = around.parent
        made = [*turned(parsed, found)] if around is not None else []
        if made and not (edits and made[0][0] < edits[-1][1]):  # one within another's edits is left as it is
            edits += made
            names.add(name)
    after = edited(parsed, edits)
    return after, frozenset(names if after != text else ())
