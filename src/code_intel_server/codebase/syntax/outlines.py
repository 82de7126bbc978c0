"""Makes the outline of a parsed file: which symbols it defines, and which is in which (SPEC 2, `get_symbols`)."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from code_intel_server.codebase.syntax.grammars import Captures, Parsed, node_text
from code_intel_server.codebase.syntax.markup import is_mixin_call
from code_intel_server.codebase.syntax.values import Outline, Symbol, SymbolKind

if TYPE_CHECKING:
    from tree_sitter import Node

_SIGNATURE_CHARACTERS = 240
_KINDS = {f"definition.{kind}": kind for kind in SymbolKind}
_NEWLINE = 10
_CALLED_LIKE_THEIR_CLASS = frozenset({"cpp", "cuda"})
"""Languages whose constructors no grammar tells from other methods."""

_WITH_DECLARATORS = frozenset({"c", "cpp", "cuda", "objective-c"})
_DECLARED = frozenset({SymbolKind.VARIABLE, SymbolKind.DECLARATION})
_DECLARED_NAMES = frozenset({"identifier", "field_identifier", "type_identifier"})
_AROUND_ONE = frozenset({"parenthesized_declarator", "reference_declarator"})

_BLANKS = frozenset({"go", "rust"})
"""Languages in which nothing can be used that is called `_`."""

_MODULES = frozenset({SymbolKind.MODULE, SymbolKind.NAMESPACE})
_PARTS = re.compile(r"::|[<>]|\boperator\b")
_WITH_ARGUMENTS = re.compile(r"<(?:[^<>]|<(?:[^<>]|<[^<>]*>)*>)*>")


class OutlineDefinition(NamedTuple):
    """A definition as the query found it. `scope` is a qualifier written in its own text, `arity` -1 where it tells nothing.

    `name_byte` is where the name begins behind its qualifier. `end_byte` and `end_line` are those of `node` until the body, a further clause or the text below a heading moves them.
    """

    kind: SymbolKind
    node: "Node"
    name_node: "Node"
    name: str
    scope: str
    body: "Node | None"
    end_byte: int
    end_line: int
    clause: bool
    flat: bool
    arity: int = -1
    name_byte: int = 0


def outline_of(parsed: Parsed) -> Outline:
    """The symbols, those of injected parts included, nested: a symbol's parent is the innermost one around it."""
    pending = [(item, part) for part in (parsed, *parsed.injected) for item in definitions_of(part)]
    if parsed.injected:
        pending.sort(key=lambda pair: (pair[0].node.start_byte, -pair[0].end_byte))
    symbols: list[Symbol] = []
    around: list[int] = []
    for item, part in pending:
        while around and not (_inside(item, symbols[around[-1]]) and _may_hold(symbols[around[-1]], item, part)):
            around.pop()
        symbols.append(_symbol(part, item, symbols, around[-1] if around else None))
        around.append(len(symbols) - 1)
    return Outline(tuple(symbols), parsed.has_errors, complete=not parsed.is_rubble)


def definitions_of(parsed: Parsed) -> list[OutlineDefinition]:
    """The definitions in order of appearance, the outer before the inner, each with all it reaches over."""
    return _flat_extended(_clauses_merged(single_definitions(parsed)), parsed)


def single_definitions(parsed: Parsed) -> list[OutlineDefinition]:
    """The definitions as their nodes are, each clause by itself; of two for one name the first pattern's.

    What is bound to a name is known by that alone: an `@own` name besides it is none.
    """
    best: dict[int, tuple[int, OutlineDefinition]] = {}
    own: set[int] = set()
    for pattern, captures in parsed.definition_matches:
        own.update(node.start_byte for node in captures.get("own", ()))
        for capture, nodes in captures.items():
            kind = _KINDS.get(capture)
            if kind is not None:
                item = _definition(parsed.text, kind, nodes[0], captures)
                if item is None or _is_none(item, parsed):
                    continue
                at = item.name_node.start_byte
                if at not in best or pattern < best[at][0]:
                    best[at] = (pattern, item)
    for at in own:
        best.pop(at, None)
    found = (item for _, item in best.values())
    in_order = sorted(found, key=lambda item: (item.node.start_byte, -item.end_byte, item.name_node.start_byte))
    return list(_outside_of_functions(in_order)) if parsed.language.name in _WITH_DECLARATORS else in_order


def _outside_of_functions(found: list[OutlineDefinition]) -> Iterator[OutlineDefinition]:
    """The definitions without what a function declares for itself: below a condition its declarations look like a file's."""
    end = 0
    for item in found:
        if item.kind in _DECLARED and item.node.start_byte < end:
            continue
        if item.kind.is_callable and item.kind is not SymbolKind.MACRO:
            end = max(end, item.end_byte)
        yield item


def _is_none(item: OutlineDefinition, parsed: Parsed) -> bool:
    """Whether what looks like a definition gives nothing a name: a call of a mixin, a blank in place of a name."""
    language = parsed.language.name
    if language == "less":
        return is_mixin_call(parsed.text, item.name_node.end_byte)
    return item.name == "_" and language in _BLANKS and not item.kind.is_callable


def _declared(declarator: "Node", kind: SymbolKind) -> "tuple[Node | None, SymbolKind]":
    """The name in a declarator of C, and what it is: a function without a body is a declaration."""
    node: Node | None = declarator
    is_function = False
    while node is not None and node.type not in _DECLARED_NAMES:
        if node.type != "parenthesized_declarator":
            is_function = node.type == "function_declarator"
        inner = node.child_by_field_name("declarator")
        if inner is None and node.type in _AROUND_ONE:
            inner = node.named_child(node.named_child_count - 1)
        node = inner
    return node, SymbolKind.DECLARATION if is_function and kind is SymbolKind.VARIABLE else kind


def _definition(text: bytes, kind: SymbolKind, node: "Node", captures: Captures) -> OutlineDefinition | None:
    name_node = captures["name"][0] if "name" in captures else node
    if "declarator" in captures:
        declared, kind = _declared(captures["declarator"][0], kind)
        if declared is None:
            return None
        name_node = declared
    body = captures["body"][0] if "body" in captures else node.child_by_field_name("body")
    scope = node_text(captures["scope"][0]).strip('"') if "scope" in captures else ""
    qualifier, name = split_qualified(text[name_node.start_byte : name_node.end_byte].decode("utf-8", "replace"))
    if "selector" in captures:
        name = _selector(node)
    if name_node.type == "simple_symbol":
        name = name[1:]
    last = body if body is not None and body.end_byte > node.end_byte else node
    end_byte, end_line = _trimmed(text, node, last.end_byte, last.end_point.row)
    return OutlineDefinition(
        kind=kind,
        node=node,
        name_node=name_node,
        name=name,
        scope=_dotted(scope, qualifier),
        body=body,
        end_byte=end_byte,
        end_line=end_line,
        clause="clause" in captures,
        flat="flat" in captures,
        arity=captures["arity"][0].named_child_count if "arity" in captures else -1,
        name_byte=_name_byte(text, name_node, _last_part(name) if kind in _MODULES else name),
    )


def _last_part(module: str) -> str:
    """What a module is called in those that it is in: `c` of `a.b.c`."""
    return module[max(module.rfind("."), module.rfind("\\")) + 1 :]


def _name_byte(text: bytes, node: "Node", name: str) -> int:
    """Where the name begins in the node that holds it with its qualifier."""
    start, end = node.byte_range
    written = name.encode("utf-8", "replace")
    return end - len(written) if text.endswith(written, start, end) else start


def _selector(node: "Node") -> str:
    words = (child for child in node.named_children if child.type in {"identifier", "method_parameter"})
    return "".join(node_text(child) if child.type == "identifier" else ":" for child in words)


def _clauses_merged(found: list[OutlineDefinition]) -> list[OutlineDefinition]:
    """Several clauses (and the signature) of one function, written one after the other, are one definition."""
    merged: list[OutlineDefinition] = []
    last: dict[int, int] = {}
    for item in found:
        if not item.clause:
            merged.append(item)
            continue
        parent = item.node.parent
        place = parent.id if parent else 0
        at = last.get(place)
        if at is not None and (merged[at].name, merged[at].arity) == (item.name, item.arity):
            body = merged[at].body or item.body
            merged[at] = merged[at]._replace(end_byte=item.end_byte, end_line=item.end_line, body=body)
        else:
            last[place] = len(merged)
            merged.append(item)
    return merged


def _flat_extended(found: list[OutlineDefinition], parsed: Parsed) -> list[OutlineDefinition]:
    """A heading that its tree does not put around its text reaches to the next one."""
    end, row = parsed.root.end_byte, parsed.root.end_point.row
    extended: list[OutlineDefinition] = []
    for item in reversed(found):
        if not item.flat:
            extended.append(item)
            continue
        end_byte, end_line = _trimmed(parsed.text, item.node, end, row)
        extended.append(item._replace(end_byte=max(item.end_byte, end_byte), end_line=max(item.end_line, end_line)))
        end, row = item.node.start_byte, item.node.start_point.row
    return extended[::-1]


def _trimmed(text: bytes, node: "Node", end: int, row: int) -> tuple[int, int]:
    """(byte, 1-based line) of the end of what is before `end` in 0-based `row`, white space apart."""
    start = node.start_byte
    while end > start and text[end - 1] in b" \t\r\n\f":
        end -= 1
        row -= text[end] == _NEWLINE
    return end, row + 1


def split_qualified(text: str) -> tuple[str, str]:
    """`Outer<T>::inner` → ('Outer', 'inner'); names are put on one line, quotes around them removed."""
    if text.isidentifier():
        return "", text
    name = " ".join(text.split())
    if len(name) > 1 and name[0] in "\"'`" and name[-1] == name[0]:
        name = name[1:-1]
    if "::" in name:
        at = _last_colons(name)
        qualifier, last = _WITH_ARGUMENTS.sub("", name[: max(at, 0)]), name[at + 2 :]
        if at >= 0 and " " not in qualifier and (" " not in last or last.startswith("operator ")):
            return qualifier.replace("::", ".").strip("."), last
    return "", name


def _last_colons(name: str) -> int:
    """Where the last `::` is that is in no arguments of a template; -1 where there is none."""
    depth, found = 0, -1
    for part in _PARTS.finditer(name):
        if part[0] == "operator":
            break
        depth += (part[0] == "<") - (part[0] == ">")
        if part[0] == "::" and depth == 0:
            found = part.start()
    return found


def _dotted(*parts: str) -> str:
    return ".".join(part for part in parts if part)


def _may_hold(symbol: Symbol, item: OutlineDefinition, parsed: Parsed) -> bool:
    """Whether a symbol may have such a definition in it: a function of C seems to where a brace of its own is lost to an error."""
    in_function = symbol.kind is SymbolKind.FUNCTION and item.kind is SymbolKind.FUNCTION
    return not (in_function and parsed.language.name == "c")


def _inside(item: OutlineDefinition, symbol: Symbol) -> bool:
    """Whether the definition lies within the symbol; two names of one declaration are siblings."""
    same = item.node.start_byte == symbol.start_byte and item.end_byte == symbol.end_byte
    return not same and item.end_byte <= symbol.end_byte


def _symbol(parsed: Parsed, item: OutlineDefinition, symbols: list[Symbol], parent: int | None) -> Symbol:
    above = symbols[parent] if parent is not None else None
    kind = item.kind
    if kind is SymbolKind.FUNCTION and ((above and _has_methods(above, parsed)) or item.scope):
        kind = SymbolKind.METHOD
    scope = _dotted(_scope_in(above, kind), item.scope)
    if (
        kind is SymbolKind.METHOD
        and parsed.language.name in _CALLED_LIKE_THEIR_CLASS
        and item.name == scope.rpartition(".")[2]
    ):
        kind = SymbolKind.CONSTRUCTOR
    return Symbol(
        name=item.name,
        kind=kind,
        line=item.name_node.start_point.row + 1,
        start_line=item.node.start_point.row + 1,
        header_end_line=header_end(parsed.text, item),
        end_line=item.end_line,
        scope=scope,
        signature=_signature(parsed.text, item),
        parent_index=parent,
        start_byte=item.node.start_byte,
        end_byte=item.end_byte,
        name_byte=item.name_byte,
    )


def _has_methods(above: Symbol, parsed: Parsed) -> bool:
    """Whether functions directly inside are methods: in Ruby those of modules are, too, and of classes without a name."""
    return above.kind.is_type or parsed.language.name == "ruby"


def _scope_in(above: Symbol | None, kind: SymbolKind) -> str:
    """What is said before the name of a symbol directly inside `above`: a field that a constructor's parameter declares is its class's."""
    if above is None:
        return ""
    return above.scope if above.kind is SymbolKind.CONSTRUCTOR and kind is SymbolKind.FIELD else above.qualified


def _body_after_name(item: OutlineDefinition) -> "Node | None":
    return item.body if item.body is not None and item.body.start_byte > item.name_node.start_byte else None


def header_end(text: bytes, item: OutlineDefinition) -> int:
    """1-based: the line before the body where that starts a line of its own, else the line the body starts in."""
    first = item.node.start_point.row
    body = _body_after_name(item)
    if body is None:
        return max(first, item.name_node.start_point.row) + 1
    row, column = body.start_point
    start = body.start_byte - column
    # The definition or its name begins in that line: no need to look at all of it, which may be enormous.
    named = max(item.node.start_byte, item.name_node.start_byte) >= start
    if named or text[start : body.start_byte].strip():
        return max(first, row) + 1
    while row - 1 > first and _is_remark(text, start):
        start = text.rfind(b"\n", 0, start - 1) + 1
        row -= 1
    return max(first, row - 1) + 1


def _is_remark(text: bytes, start: int) -> bool:
    """Whether the line that ends before `start` is blank or a comment: it belongs to the body below it."""
    line = text[text.rfind(b"\n", 0, start - 1) + 1 : start].strip()
    return not line or line.startswith((b"#", b"--"))


def _signature(text: bytes, item: OutlineDefinition) -> str:
    """The header on one line, without the body's opening; at most 240 characters."""
    start = item.node.start_byte
    body = _body_after_name(item)
    if body is not None:
        end = min(body.start_byte, max(item.node.end_byte, item.name_node.end_byte))
    else:
        newline = text.find(b"\n", item.name_node.end_byte, item.node.end_byte)
        end = item.node.end_byte if newline < 0 else newline
    header = " ".join(text[start : min(end, start + 4 * _SIGNATURE_CHARACTERS)].decode("utf-8", "replace").split())
    return header.rstrip(" {:=;").removesuffix(" do")[:_SIGNATURE_CHARACTERS]
