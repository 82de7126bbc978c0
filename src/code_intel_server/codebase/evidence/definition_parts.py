"""What of a definition is header, body and members, where the grammars disagree; used to judge evidence (`effects`)."""

import re
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from code_intel_server.codebase.syntax.grammars import node_text
from code_intel_server.codebase.syntax.outlines import OutlineDefinition
from code_intel_server.codebase.syntax.values import SymbolKind

if TYPE_CHECKING:
    from tree_sitter import Node

    Nodes = list[Node]

BLOCK = re.compile(
    r"block$|^compound_statement$|^body_statement$|_body$|^body$|^statements$|_list$(?<!argument_list)(?<!parameter_list)"
    r"|^Block$|^suite$|^braced_expression$|^structure$|^ERROR$|declarations$|^Statement$|^AssignExpr$|^ErrorUnionExpr$|^SuffixExpr$"
    r"|^expression_statement$|^statement$|^match$|^pipeline$|^pipeline_chain$|^internal_procedures$|^parenthesized_expression$"
)
"""Nodes that only hold others: they are judged by what they hold."""

_HOLLOW = frozenset({SymbolKind.CLASS, SymbolKind.IMPL, SymbolKind.MODULE, SymbolKind.NAMESPACE, SymbolKind.OBJECT})
_LISPS = frozenset({"clojure", "commonlisp", "emacs-lisp", "scheme", "racket"})
# Where a body without statements leaves no node at all; elsewhere a function without a body is a declaration.
_NO_BODY_IS_EMPTY = frozenset({"ruby", "lua", "luau", "julia", "powershell", "matlab"})
_FORTRAN_HEADER = re.compile(
    r"^(?:end_)?(?:subroutine|function|module_procedure)_statement$|^implicit_statement$|^use_statement$"
)
_FAULT = re.compile(r"(?i:exception|error|warning|fault|failure|interrupt|throwable|exit)$")
_INITIALISES = re.compile(
    r"\)\s*(?:noexcept\s*)?:|\bthis\.|\bsuper\.|\A[^(]*+\(.*\b(?:private|public|protected|readonly)\s", re.DOTALL
)
_PRIVATE = re.compile(r"\s*(?:\[.*\]\s*)?private\b")
_DECLARES = re.compile(r"@\s*(?:[\w.]*\.)?(?:overload|abstract\w+)\b")
_PROTOCOL = re.compile(r"class\s+\w++.*[(,\s.]Protocol\b", re.DOTALL)
_WORDS = re.compile(r"[A-Za-z_]\w*")
_NO_BASES = {"extends", "implements", "public", "private", "protected", "with", "virtual"}


def places_of(item: OutlineDefinition) -> "Nodes":
    """The nodes of the definition: its own, and a body that is next to it (Dart)."""
    is_sibling = item.body is not None and item.body.start_byte >= item.node.end_byte
    return [item.node, item.body] if is_sibling and item.body is not None else [item.node]


def body_of(item: OutlineDefinition, language: str) -> "Nodes | None":
    """The nodes of a function's body without what belongs to its header; None where it only declares."""
    if language in _LISPS:
        return _lisp_body(item)
    if language == "fortran":
        return [node for node in item.node.named_children if not _FORTRAN_HEADER.match(node.type)]
    if item.body is None:
        return [] if language in _NO_BODY_IS_EMPTY else None
    if language == "groovy":  # its grammar puts the name into the block
        return _without_name(item, item.body.named_children)
    # A body next to its signature is the definition; only what is in it may be looked at.
    return item.body.named_children if len(places_of(item)) > 1 else [item.body]


def _lisp_body(item: OutlineDefinition) -> "Nodes":
    """What follows name, docstring and parameters in a Lisp definition."""
    outer = item.node.named_children[0] if item.node.named_child_count == 1 else item.node
    body = [
        node
        for node in outer.named_children
        if node.start_byte > item.name_node.end_byte and node.type not in {"str_lit", "string", "map_lit", "meta_lit"}
    ]
    parameters = bool(body) and body[0].type in {"vec_lit", "list_lit"} and not _is_arity(body[0])
    return body[1:] if parameters else body


def _is_arity(node: "Node") -> bool:
    """`([x] …)`: one arity of a Clojure function."""
    return node.type == "list_lit" and node.named_child_count > 0 and node.named_children[0].type == "vec_lit"


def hollow_type(item: OutlineDefinition, language: str, words: Iterable[tuple[int, bool]]) -> bool:
    """Whether a type or module says nothing: `words` are the bytes of its tokens, each with whether it is no stub.

    One without members is a marker where its kind or header makes it one.
    """
    after = [node for node in item.node.named_children if node.start_byte > item.name_node.start_byte]
    body = item.body or next((node for node in after if BLOCK.search(node.type)), None)
    if body is None:
        return language == "ruby"
    name = item.name_node
    inside = [
        is_work
        for at, is_work in words
        if body.start_byte <= at < body.end_byte and not name.start_byte <= at < name.end_byte
    ]
    if inside:
        return not any(inside)
    marks = item.kind is SymbolKind.IMPL and re.search(r"\bfor\b|:|\(", header_of(item))
    return item.kind in _HOLLOW and not marks


def _without_name(item: OutlineDefinition, nodes: "Nodes") -> "Nodes":
    return [node for node in nodes if not node.start_byte <= item.name_node.start_byte < node.end_byte]


def header_of(item: OutlineDefinition) -> str:
    """The text before the body."""
    whole = node_text(item.node)
    return whole if item.body is None else whole[: max(item.body.start_byte - item.node.start_byte, 0)]


def may_be_empty(item: OutlineDefinition, language: str, faults: Collection[str]) -> bool:
    """Whether a definition is rightly without code: an exception, a declaration, a constructor that works in its header."""
    if item.kind.is_type:
        return item.name in faults or (language == "python" and bool(_PROTOCOL.match(header_of(item))))
    return _initialises(item) or (language == "python" and _only_declares(item))


def _initialises(item: OutlineDefinition) -> bool:
    """Whether a constructor with an empty body does its work in its header, or exists to forbid construction."""
    if item.body is None:
        return False
    named_as_type = bool(item.scope) and item.scope.split(".")[-1] == item.name
    if item.kind is not SymbolKind.CONSTRUCTOR and item.name != "__construct" and not named_as_type:
        return False
    header = header_of(item)
    return bool(_PRIVATE.match(header) or _INITIALISES.search(header))


def _only_declares(item: OutlineDefinition) -> bool:
    """Whether the header says that the body is no implementation: Python's abstract methods, overloads and protocols."""
    above = item.node.parent
    decorated = above is not None and above.type == "decorated_definition"
    if above is not None and decorated and any(_DECLARES.match(node_text(node)) for node in above.children):
        return True
    around = above.parent if above is not None and above.type in {"block", "decorated_definition"} else None
    return around is not None and around.type == "class_definition" and bool(_PROTOCOL.match(node_text(around)[:500]))


def fault_names(items: Iterable[OutlineDefinition]) -> set[str]:
    """Types that are exceptions: by the name of a base, followed through the file, or by their own where they have a base."""
    bases = {item.name: _bases(item) for item in items if item.kind.is_type}
    faults = {name for name, above in bases.items() if above and any(map(_FAULT.search, (name, *above)))}
    while more := {name for name, above in bases.items() if above & faults} - faults:
        faults |= more
    return faults


def _bases(item: OutlineDefinition) -> set[str]:
    return set(_WORDS.findall(header_of(item).partition(item.name)[2])) - _NO_BASES
