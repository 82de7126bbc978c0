"""Code that cannot run: behind a jump, or under a condition that is false as it is written (SPEC 4, READY impl)."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from code_intel_server.codebase.evidence.node_kinds import means
from code_intel_server.codebase.syntax.grammars import node_text

if TYPE_CHECKING:
    import tree_sitter

    Node = tree_sitter.Node

_FALSE = frozenset({"false", "False", "FALSE", "0", "nil", "None", "null", "NULL", "NO", "''", '""', "0.0", "$false"})
_LONGEST_LITERAL = 20


def children_with_reasons(node: "Node", language: str, *, is_code: bool) -> Iterator[tuple["Node", str]]:
    """The children of a node, each with why it cannot run, '' where it can."""
    otherwise = _otherwise(node)
    jumped = False
    for number, child in enumerate(node.children):
        hoisted = child.is_extra or (language != "python" and means("hoisted", child.type))
        if number < otherwise:
            yield child, "code under a condition that never holds"
        else:
            yield child, "code that is never reached" if jumped and child.is_named and not hoisted else ""
        jumped |= is_code and child.is_named and means("sequence", node.type) and _jumps(child)


def _otherwise(node: "Node") -> int:
    """How many children of a conditional node are left out by its condition; 0 where it may hold."""
    condition = node.child_by_field_name("condition") if means("condition", node.type) else None
    if condition is None or condition.end_byte - condition.start_byte > _LONGEST_LITERAL:
        return 0
    if node_text(condition).strip("() ") not in _FALSE:
        return 0
    return next((n for n, child in enumerate(node.children) if means("otherwise", child.type)), len(node.children))


def _jumps(node: "Node") -> bool:
    """Whether nothing behind a statement is reached."""
    inner = node.named_children[0] if means("statement", node.type) and node.named_child_count else node
    return means("jump", node.type) or means("jump", inner.type)
