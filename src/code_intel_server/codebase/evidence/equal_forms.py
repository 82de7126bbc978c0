"""One thing that a language lets be written in two ways: the table of what the longer form comes to (SPEC 4).

A form is in the table only where the shorter one means the same in every program: `this.x` is `x` unless the function
around it has an `x` of its own.
"""

import re
from typing import TYPE_CHECKING

from code_intel_server.codebase.syntax.grammars import node_text

if TYPE_CHECKING:
    from tree_sitter import Node

_THIS_MAY_BE_LEFT_OUT = frozenset({"java", "csharp", "cpp", "dart", "kotlin", "scala", "groovy"})
_BRACES_MAY_BE_LEFT_OUT = frozenset(
    ("c", "cpp", "objective-c", "cuda", "java", "csharp", "javascript", "typescript", "tsx", "php", "dart", "kotlin")
) | {"scala", "groovy"}
_VALUE_OF_THE_LAST = frozenset({"rust", "ruby", "scala", "julia"})
"""Languages in which a function is worth what its last expression is."""

_MEMBER = re.compile(r"^(?:field_expression|field_access|member_access_expression|navigation_expression)$")
_PAIR = re.compile(r"^(?:pair|field_initializer)$")
_BRACED = re.compile(r"^(?:block|compound_statement|statement_block|braced_expression)$")
_BRANCHES = re.compile(r"^(?:if|else|for|while|do|foreach|enhanced_for)(?:_|$)")
_UNSAFE_WITHOUT_BRACES = re.compile(
    r"^(?:if|for|while|do|foreach|enhanced_for|labeled|case)|declaration|definition|_item$"
)
_FUNCTION = re.compile(r"function|method|constructor|lambda|accessor|^init_")
_RETURN = re.compile(r"(?:return|jump|control_transfer)(?:_statement|_expression)?$")
_NO_VALUE = re.compile(r"declaration|_item$|^ERROR$")


def shorter_form(node: "Node", language: str, *, ends_function: bool) -> "list[Node] | None":
    """The nodes that a node written out comes to; None where it has no shorter form."""
    parts = node.children
    value = _value_alone(node, language)
    if value is not None:
        return [value]
    if len(parts) == 2 and node.type == "navigation_expression" and parts[0].type == "self_expression":
        name = parts[1].children[-1]
        return [name] if language == "swift" and not _is_declared(name, node) else None
    if len(parts) == 3 and _MEMBER.match(node.type) and parts[0].type == "this":
        free = language in _THIS_MAY_BE_LEFT_OUT and not _is_declared(parts[2], node)
        return [parts[2]] if free else None
    if len(parts) == 3 and _PAIR.match(node.type) and parts[1].type == ":" and parts[2].type == "identifier":
        return [parts[2]] if node_text(parts[0]) == node_text(parts[2]) else None
    if len(parts) == 3 and _BRACED.match(node.type) and node.parent is not None:
        return [parts[1]] if _is_needless(parts[1], node.parent, language) else None
    if language == "r" and node.type == "call" and ends_function and node_text(parts[0]) == "return":
        arguments = parts[-1].named_children
        return [arguments[0]] if len(arguments) == 1 else None
    if language in _VALUE_OF_THE_LAST and ends_function:
        inner = parts[0] if node.type == "expression_statement" and parts else node
        if re.match(r"return(?:_expression)?$", inner.type) and inner.named_child_count == 1:
            value = inner.named_children[0]
            listed = value.type == "argument_list"
            return [value] if not listed else value.named_children if value.named_child_count == 1 else None
    return None


def _value_alone(node: "Node", language: str) -> "Node | None":
    """The one value that a body, a branch or an attribute in brackets, or behind `do:`, comes to."""
    above = (node.parent.type if node.parent is not None else "", node.type)
    named = [child for child in node.named_children if not child.is_extra]
    if len(named) != 1:
        return None
    only = named[0]
    if above == ("arrow_function", "statement_block"):
        return _returned(only)
    if above == ("match_arm", "block") and language == "rust" and not _NO_VALUE.search(only.type):
        return None if node_text(only).endswith(";") else only
    if above == ("function_declaration", "function_body") and language == "kotlin":
        statements = [child for child in only.named_children if not child.is_extra]
        inside = statements[0] if only.type == "statements" and len(statements) == 1 else None
        return only if node.children[0].type == "=" else _returned(inside)
    if above == ("jsx_attribute", "jsx_expression") and only.type == "string":
        return None if re.search(r"[&\\]", node_text(only)) else only
    if language == "elixir" and node.type == "do_block":
        return only
    if language == "elixir" and node.type == "keywords" and is_do(node):
        return only.named_children[1]
    return None


def is_do(keywords: "Node") -> bool:
    """Whether Elixir's keywords are `do: value` and nothing else."""
    only = keywords.named_children[0] if keywords.named_child_count == 1 else keywords
    return only.type == "pair" and only.named_child_count == 2 and node_text(only.named_children[0]).strip() == "do:"


def _returned(statement: "Node | None") -> "Node | None":
    """The value that a statement returns."""
    if statement is None or not _RETURN.match(statement.type) or statement.named_child_count != 1:
        return None
    value = statement.named_children[0]
    is_return = node_text(statement.children[0]) == "return" and value.type not in {"object", "sequence_expression"}
    return value if is_return else None


def _is_needless(statement: "Node", above: "Node", language: str) -> bool:
    """Whether braces hold one statement that needs none."""
    if language not in _BRACES_MAY_BE_LEFT_OUT or not statement.is_named or statement.is_extra:
        return False
    if _UNSAFE_WITHOUT_BRACES.search(statement.type):
        return False
    return bool(_BRANCHES.match(above.type)) or (language == "scala" and above.type == "function_definition")


def _is_declared(name: "Node", node: "Node") -> bool:
    """Whether a function around a node may have a parameter or a variable of that name."""
    word = re.escape(node_text(name))
    declared = re.compile(rf"(?:[\w>\]?]\s+|[&*(,]\s*){word}\s*(?:[,)=;:\[{{]|$)")
    above = node.parent
    while above is not None:
        if _FUNCTION.search(above.type) and declared.search(node_text(above)):
            return True
        above = above.parent
    return False
