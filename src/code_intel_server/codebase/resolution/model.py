"""What a file declares: its scopes, the symbols bound in each, and their declarations, read from its syntax tree.

A language says with one tree-sitter query what opens a scope and what declares a name. Captures of a match: `decl.KIND` the
whole declaration, `name` its name, `type` its declared type, `value` what it is set to; in place of `value` stand `element`
(each of what it goes over), `item` (a part of it) or `enter` (what entering it gives). `scope.KIND` opens a scope by itself;
a `decl.class` and a `decl.function` open one behind their name.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tree_sitter import Node

    from code_intel_server.codebase.syntax.grammars import Captures, Parsed

Key = tuple[str, int]
"""A symbol's file and the byte at which its first name begins: one wherever it is looked at from."""

_OPENING = {"class": "class", "function": "function", "alias": "block", "variant": "class"}
"""Kinds of declarations that open a scope behind their name, and its kind."""
_HOW = ("value", "element", "item", "enter", "scope.namespace")


@dataclass(slots=True, eq=False, repr=False)
class Scope:
    """A stretch of a file in which names are bound. `owner` is the class or function that it is the inside of."""

    kind: str
    start: int
    end: int
    parent: "Scope | None" = None
    owner: "Declaration | None" = None
    symbols: dict[str, "BoundSymbol"] = field(default_factory=dict)
    wide: list["Declaration"] = field(default_factory=list)
    """Imports of everything: what they bind is not written here."""

    def around(self, *kinds: str) -> "Scope | None":
        """The innermost scope of one of these kinds, this one or around it."""
        scope: Scope | None = self
        while scope is not None and scope.kind not in kinds:
            scope = scope.parent
        return scope


@dataclass(slots=True, eq=False, repr=False)
class Declaration:
    """One place that gives a name its meaning; `inner` is the scope it opens."""

    model: "Model"
    name: str
    kind: str
    node: "Node"
    name_node: "Node"
    scope: Scope
    type_node: "Node | None" = None
    value_node: "Node | None" = None
    how: str = "value"
    inner: Scope | None = None
    member_of: "Declaration | None" = None
    """The class that it belongs to, where it is declared apart from it."""
    index: int = 0
    """Which part of the value it is, for an `item`."""

    @property
    def key(self) -> Key:
        """See `Key`."""
        return self.model.path, self.name_node.start_byte

    def __hash__(self) -> int:
        """By key."""
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        """By key: models are made anew when they were forgotten."""
        return isinstance(other, Declaration) and self.key == other.key

    @property
    def line(self) -> int:
        """1-based line of the name."""
        return self.name_node.start_point.row + 1

    @property
    def owner(self) -> "Declaration | None":
        """The class that it is a member of."""
        return self.member_of or (self.scope.owner if self.scope.kind == "class" else None)


@dataclass(slots=True, eq=False, repr=False)
class BoundSymbol:
    """All declarations of one name in one scope."""

    name: str
    scope: Scope
    declarations: list[Declaration] = field(default_factory=list)

    @property
    def key(self) -> Key:
        """See `Key`."""
        return self.declarations[0].key

    @property
    def owner(self) -> Declaration | None:
        """The class that it is a member of."""
        return self.declarations[0].owner

    def __repr__(self) -> str:
        """Kind, name and place."""
        first = self.declarations[0]
        return f"<{first.kind} {self.name} {first.model.path}:{first.line}>"

    def __hash__(self) -> int:
        """By key."""
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        """By key: models are made anew when they were forgotten."""
        return isinstance(other, BoundSymbol) and self.key == other.key


class DeclarationRules(Protocol):
    """How a language declares names."""

    @property
    def name(self) -> str:
        """The language's."""

    @property
    def wide_scopes(self) -> bool:
        """Whether a function's scope begins before its name."""

    def matches(self, parsed: "Parsed") -> "Iterator[Captures]":
        """What the language's query finds in a file."""

    def spelled(self, text: str) -> str:
        """A name as it is compared."""

    def declare(self, model: "Model", one: Declaration, scope: Scope) -> None:
        """Bind a declaration that is in `scope`."""


class Model:
    """One parsed file and what it declares, `language` the name of what it is written in."""

    def __init__(self, path: str, parsed: "Parsed", rules: DeclarationRules) -> None:
        self.path = path
        self.parsed = parsed
        self.language = rules.name
        self.top = Scope("module", 0, len(parsed.text) + 1)
        self._scopes: list[Scope] = [self.top]
        self._starts: list[int] = [0]
        self.by_name_byte: dict[int, BoundSymbol] = {}
        self.nameless_at: dict[tuple[int, int], Declaration] = {}
        self.exports: dict[str, BoundSymbol] = {}
        self.apart: list[tuple[str, BoundSymbol]] = []
        """Members that are declared apart from their class, each with its name."""
        _read(self, rules)

    @property
    def size(self) -> int:
        """Bytes of its text."""
        return len(self.parsed.text)

    def scope_at(self, byte: int) -> Scope:
        """The innermost scope around a byte."""
        scope: Scope | None = self._scopes[bisect_right(self._starts, byte) - 1]
        while scope is not None and scope.end <= byte:
            scope = scope.parent
        return scope or self.top

    def nameless(self, kind: str, node: "Node", scope: Scope) -> Declaration:
        """The declaration of a class or function without a name: an object as it is written, a lambda."""
        fields = map(node.child_by_field_name, ("return_type", "result", "type"))
        returned = next((field for field in fields if field is not None), None)
        made = Declaration(
            self, "", kind, node, node, self.top, type_node=returned if kind == "function" else None, inner=scope
        )
        self.nameless_at[node.start_byte, node.end_byte] = made
        return made

    def nest(self, scopes: Iterable[Scope]) -> None:
        """Put these scopes into each other, as they lie."""
        around = [self.top]
        for scope in sorted(scopes, key=lambda one: (one.start, -one.end)):
            while around[-1].end < scope.end or around[-1].end <= scope.start:
                around.pop()
            scope.parent = around[-1]
            around.append(scope)
            self._scopes.append(scope)
        self._starts = [scope.start for scope in self._scopes]

    def bind(self, declaration: Declaration, scope: Scope, name: str = "") -> BoundSymbol:
        """Add a declaration to the symbol of its name in `scope`, which may keep it under another `name`."""
        declaration.scope = scope
        name = name or declaration.name
        symbol = scope.symbols.get(name)
        if symbol is None:
            symbol = scope.symbols[name] = BoundSymbol(declaration.name, scope)
        symbol.declarations.append(declaration)
        self.by_name_byte[declaration.name_node.start_byte] = symbol
        return symbol

    def leaf(self, byte: int) -> "Node | None":
        """The innermost node around a byte."""
        return self.parsed.root.descendant_for_byte_range(byte, byte + 1)

    def text(self, node: "Node") -> str:
        """What a node spans."""
        return self.parsed.text[node.start_byte : node.end_byte].decode("utf-8", "replace")


def _read(model: Model, rules: DeclarationRules) -> None:
    """Find all scopes, then bind every declaration in the one it is in."""
    found: list[tuple[str, Captures]] = []
    scopes: dict[tuple[int, int], Scope] = {}
    for captures in rules.matches(model.parsed):
        for capture, nodes in captures.items():
            part, _, kind = capture.partition(".")
            if part == "scope":
                for node in nodes:
                    _open(model, scopes, kind, node)
            elif part == "decl":
                found.append((kind, captures))
    declarations = [
        _declaration(model, kind, captures, name, rules.spelled(model.text(name)))
        for kind, captures in found
        for name in captures["name"]
    ]
    for one in declarations:
        _open_inside(scopes, one, wide=rules.wide_scopes)
    model.nest(scopes.values())
    for scope in scopes.values():
        if scope.owner is not None and not scope.owner.name and scope.parent is not None:
            scope.owner.scope = scope.parent
    for one in sorted(declarations, key=lambda one: one.name_node.start_byte):
        known = model.by_name_byte.get(one.name_node.start_byte)
        if known is None:
            scope = model.scope_at(one.name_node.start_byte)
            rules.declare(model, one, scope.parent or scope if scope is one.inner else scope)
        elif one.type_node is not None and known.declarations[-1].type_node is None:
            known.declarations[-1].type_node = one.type_node


def _open(model: Model, scopes: dict[tuple[int, int], Scope], kind: str, node: "Node") -> None:
    scope = scopes.setdefault(node.byte_range, Scope(kind, *node.byte_range))
    if scope.owner is None and kind in {"class", "function"}:
        scope.owner = model.nameless(kind, node, scope)


def _open_inside(scopes: dict[tuple[int, int], Scope], one: Declaration, *, wide: bool) -> None:
    """The scope that a declaration opens."""
    if one.kind in _OPENING:
        start = one.node.start_byte if wide else one.name_node.end_byte
        end = one.node.end_byte
        one.inner = scopes.setdefault((start, end), Scope(_OPENING[one.kind], start, end, owner=one))
    elif one.kind == "namespace" and one.value_node is not None:
        one.inner = scopes[one.value_node.byte_range]
        one.inner.owner = one


def _declaration(model: Model, kind: str, captures: "Captures", name: "Node", spelled: str) -> Declaration:
    how = next((one for one in _HOW if one in captures), "value")
    return Declaration(
        model=model,
        name=spelled,
        kind=kind,
        node=captures[f"decl.{kind}"][0],
        name_node=name,
        scope=model.top,
        type_node=next(iter(captures.get("type", ())), None),
        value_node=next(iter(captures.get(how, ())), None),
        how=how,
        index=_place(name) if how == "item" or kind == "part" else 0,
    )


def _place(name: "Node") -> int:
    """Which of its parent's children a name is."""
    return name.parent.named_children.index(name) if name.parent is not None else 0


def fills(parent: "Node", field_name: str, node: "Node") -> bool:
    """Whether a node fills a field of its parent: known by place, since nodes that a grammar renames twice are not equal."""
    return any(child.byte_range == node.byte_range for child in parent.children_by_field_name(field_name))
