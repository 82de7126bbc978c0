"""What of a file's text has an effect, by syntax tree: the tokens that count as work (SPEC 4, READY impl, evidence).

The theory: two versions of a file differ in work where they differ in tokens, once all that changes nothing is left out
(`node_kinds` says what a kind of node means). A statement that only says that code is to be written is a stub, and so is a
definition as a whole whose body holds nothing else.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from code_intel_server.codebase.evidence.dead_code import DeadCode
from code_intel_server.codebase.evidence.definition_parts import (
    body_of,
    fault_names,
    header_of,
    hollow_type,
    may_be_empty,
    places_of,
)
from code_intel_server.codebase.evidence.node_kinds import (
    AT_THE_HEAD,
    CLOSED_BY_END,
    DIRECTIVE,
    ENDS_ON_ITS_OWN,
    FRAME,
    HEAD,
    INDENTED,
    PROGRAM,
    SAME_QUOTES,
    SAME_QUOTES_OF_PLAIN_TEXT,
    WORD_BY_WORD,
    WRAPS,
    is_block,
    means,
    never_built,
    normal_text,
)
from code_intel_server.codebase.evidence.stubs import LONGEST_STUB, is_stub
from code_intel_server.codebase.files.languages import LanguageKind
from code_intel_server.codebase.syntax.grammars import Parsed, last_line, node_text
from code_intel_server.codebase.syntax.outlines import OutlineDefinition, single_definitions
from code_intel_server.codebase.syntax.values import SymbolKind

if TYPE_CHECKING:
    from tree_sitter import Node

_NODES_AT_MOST = 60_000
"""About a second's work."""

_DEEPEST = 200


class TooLong(Exception):
    """A file has more to look at than there is time for."""


class Token(NamedTuple):
    """A word that counts: what it is, in which 1-based line and at which byte it is, whether it only is in a stub, and
    whether it is a name, whatever it says."""

    key: str
    line: int
    byte: int
    stub: bool = False
    named: bool = False


class Hollow(NamedTuple):
    """Lines of a definition without an implementation, and the bytes of its name and behind its header.

    `overrides` where it takes the place of something inherited.
    """

    start: int
    end: int
    name: int
    body: int
    overrides: bool


@dataclass
class Effects:
    """What a version of a file says: tokens in order, the lines of prose, and why other lines do not count."""

    tokens: list[Token] = field(default_factory=list)
    prose: dict[int, str] = field(default_factory=dict)
    idle: dict[int, str] = field(default_factory=dict)
    hollow: list[Hollow] = field(default_factory=list)


def effects_of(parsed: Parsed, path: str, near: Sequence[tuple[int, int]]) -> Effects:
    """The effects of a parsed file as far as lines `near` (pairs, inclusive, in order) are concerned. Raises TooLong."""
    found = _Walk(parsed, path, near).effects()
    for part in parsed.injected:
        stretches = [(one.start_byte, one.end_byte) for one in part.tree.included_ranges]
        inner = _Walk(part, path, near).effects()
        outer = [token for token in found.tokens if not any(start <= token.byte < end for start, end in stretches)]
        found.tokens = sorted([*outer, *inner.tokens], key=lambda token: token.byte)
        found.prose |= inner.prose
        found.idle |= inner.idle
        found.hollow += inner.hollow
    if never_built(parsed.text) and not PROGRAM.search(parsed.text):
        found.idle |= {token.line: "code that is never built" for token in found.tokens}
        found.tokens = []
    return found


class _Walk:
    """Walks one tree in the order of its text."""

    def __init__(self, parsed: Parsed, path: str, near: Sequence[tuple[int, int]]) -> None:
        self._parsed = parsed
        self._language = parsed.language.name
        self._near = near
        self._is_code = parsed.language.kind is LanguageKind.CODE
        self._declares = path.endswith((".pyi", ".d.ts", ".mli"))
        items = [item for item in single_definitions(parsed) if item.name and _has_body(item)] if self._is_code else []
        self._items = {node.id: item for item in items for node in places_of(item)}
        self._dead = DeadCode(self._language, self._is_code, parsed.text, self._items.keys())
        self._bodies: set[int] = set()
        self._callables = [item for item in items if item.kind.is_callable]
        self._types = [item for item in items if item.kind.is_type]
        self._faults = fault_names(items)
        self._in_function = False
        self._visited = 0
        self.found = Effects()

    def effects(self) -> Effects:
        """What the whole tree says."""
        self._visit(self._parsed.root, self._parsed.root, 0, 0)
        return self.found

    def _visit(self, node: "Node", above: "Node", bounds: int, depth: int, *, is_last: bool = True) -> None:
        """Take the tokens of a node: all, none, or those of what is in it."""
        kind = node.type
        self._visited += 1
        if self._visited > _NODES_AT_MOST:
            raise TooLong
        if node.is_extra or means("prose", kind):
            return self._prose(node)
        if not self._is_near(node):
            return self._take("…", node.start_point.row + 1, node.start_byte, bounds)
        if self._is_code and self._is_docstring(node, above):
            return self._note(self.found.prose, node)
        if node.is_named and self._is_stub(node, above):
            return self._leaves(node, bounds, stub=True)
        why = self._dead.why(node, above, in_function=self._in_function, is_last=is_last) if self._is_code else ""
        if why:
            return self._note(self.found.idle, node, why)
        core = self._dead.core(node)
        if core is not None:
            for child in core:
                self._visit(child, core[0].parent or node, bounds, depth + 1, is_last=child.id == core[-1].id)
            return None
        item = self._items.get(node.id)
        if item is not None and self._in_function and self._dead.is_never_called(item, node, above):
            return self._note(self.found.idle, node, "a function that nobody calls")
        if item is not None:
            return self._definition(item, node, bounds, depth)
        return self._inside(node, above, bounds, depth)

    def _inside(self, node: "Node", above: "Node", bounds: int, depth: int) -> None:
        if depth > _DEEPEST or not node.child_count or means("quoted", node.type):
            return self._leaves(node, bounds)
        bounds += self._language in INDENTED and means("bound", node.type)
        at, text = node.start_byte, self._parsed.text
        children = [*self._dead.children(node)]
        attributes: list[list[Token]] = []
        mark = len(self.found.tokens)
        for (child, why), behind in zip_longest(children, (child for child, _ in children[1:])):
            if child.start_byte > at:
                self._between(text[at : child.start_byte], at, child.start_point.row + 1, bounds)
            at = max(at, child.end_byte)
            if why:
                self._note(self.found.idle, child, why)
            elif child.is_named or not self._dead.is_frill(child, behind, node, above):
                begin = len(self.found.tokens)
                self._visit(child, node, bounds, depth + 1, is_last=behind is None or not behind.is_named)
                if child.type == "attribute" and node.type in {"start_tag", "self_closing_tag"}:
                    attributes.append(self.found.tokens[begin:])
        if len({one[0].key for one in attributes}) == len(attributes) > 1:
            self._sort(attributes, mark)
        if node.parent is not None and not self._parsed.injected:
            self._between(text[at : node.end_byte], at, node.end_point.row + 1, bounds)
        return None

    def _sort(self, attributes: list[list[Token]], mark: int) -> None:
        """Put the attributes of a tag, whose order says nothing, into one order; all of them at the byte of the first."""
        found = [token for one in sorted(attributes, key=lambda one: [token.key for token in one]) for token in one]
        place = self.found.tokens.index(attributes[0][0], mark)
        self.found.tokens[place : place + len(found)] = [token._replace(byte=attributes[0][0].byte) for token in found]

    def _between(self, gap: bytes, at: int, end: int, bounds: int) -> None:
        """Text that the grammar gives no node, up to 1-based line `end`."""
        free = ("\\", ";") if self._language in ENDS_ON_ITS_OWN else ("\\",)
        for number, line in enumerate(gap.decode("utf-8", "replace").split("\n"), end - gap.count(b"\n")):
            for word in line.split():
                if word not in free:
                    self._take(word, number, at, bounds)

    def _leaves(self, node: "Node", bounds: int, *, stub: bool = False) -> None:
        """A node's text as it is, line by line; in markup its words."""
        first = node.start_point.row + 1
        text = normal_text(node, self._language)
        if self._language in WORD_BY_WORD:
            for number, line in enumerate(text.split("\n"), first):
                for word in line.removesuffix("\\").split():
                    self._take(word, number, node.start_byte, bounds, stub=stub)
            return
        if not means("quoted", node.type) or node.type in {"text", "jsx_text", "raw_text"}:
            lines = [" ".join(line.split()) for line in text.split("\n")]
        else:
            lines = text.replace("\r\n", "\n").split("\n")
            plain = not {*"\\#$@{"} & {*text} and self._language in SAME_QUOTES_OF_PLAIN_TEXT
            is_quoted = text[:1] in {"'", '"'} and len(text) > 1 and not {"'", '"'} & {*text[1:-1]}
            if is_quoted and (plain or self._language in SAME_QUOTES):
                lines = [line.replace("'", '"') for line in lines]
        named = node.is_named and self._language not in CLOSED_BY_END
        for number, line in enumerate(lines):
            if line:
                self._take(line, first + number, node.start_byte, bounds, stub=stub, named=named)

    def _take(self, key: str, line: int, byte: int, bounds: int, *, stub: bool = False, named: bool = False) -> None:
        self.found.tokens.append(Token(f"{bounds}:{key}" if bounds else key, line, byte, stub, named))

    # -- what does not count --------------------------------------------------------------------------------------------

    def _is_docstring(self, node: "Node", above: "Node") -> bool:
        if self._language == "python":
            return node.type == "string" and above.type in {"block", "module", "expression_statement"}
        if self._language == "elixir" and node.type == "unary_operator":
            return bool(re.match(r"@(?:doc|moduledoc|typedoc)\b", node_text(node)))
        return False

    # -- definitions ------------------------------------------------------------------------------------------------------

    def _is_stub(self, node: "Node", above: "Node") -> bool:
        if not self._is_code or node.end_byte - node.start_byte > LONGEST_STUB or node.id in self._items:
            return False
        is_statement = is_block(above.type) or above.id in self._items or node.id in self._bodies
        return is_statement and is_stub(node_text(node), self._language)

    def _definition(self, item: OutlineDefinition, node: "Node", bounds: int, depth: int) -> None:
        """A definition is worth what its body is; a hollow one is a stub as a whole."""
        mark = len(self.found.tokens)
        body = (body_of(item, self._language) or ()) if item.kind.is_callable else ()
        self._bodies.update(part.id for part in body)
        around, self._in_function = self._in_function, item.kind.is_callable
        self._inside(node, node, bounds, depth)
        self._in_function = around
        tokens = self.found.tokens[mark:]
        if self._declares or may_be_empty(item, self._language, self._faults):
            self.found.tokens[mark:] = [token._replace(stub=False) for token in tokens]
        elif self._is_hollow(item, tokens):
            outer = _wrapping(node)
            mark = bisect_left(self.found.tokens, outer.start_byte, key=lambda token: token.byte)
            self.found.tokens[mark:] = [token._replace(stub=True) for token in self.found.tokens[mark:]]
            begin = min((one.start_byte for one in body), default=item.body.start_byte if item.body else node.end_byte)
            lines = outer.start_point.row + 1, last_line(node)
            self.found.hollow.append(Hollow(*lines, item.name_node.start_byte, begin, self._overrides(item)))

    def _is_hollow(self, item: OutlineDefinition, tokens: Sequence[Token]) -> bool:
        if item.kind.is_callable:
            body = body_of(item, self._language)
            if body is None:
                return False
            at = [(part.start_byte, part.end_byte) for part in body]
            return not any(_is_work(token) and any(a <= token.byte < b for a, b in at) for token in tokens)
        words = ((token.byte, not token.stub) for token in tokens if token.stub or _is_work(token))
        return hollow_type(item, self._language, words)

    def _overrides(self, item: OutlineDefinition) -> bool:
        """Whether a method takes the place of another: its type has a base, which has it too where the file shows the base."""
        around = [one for one in self._types if _lies_in(item, one)]
        if not item.kind.is_callable or not around:
            return False
        outer = max(around, key=lambda one: one.node.start_byte)
        header = header_of(outer)
        trait, of, _ = header.partition(" for ") if outer.kind is SymbolKind.IMPL else ("", "", "")
        bases = re.findall(r"\w+", trait if of else header.partition(outer.name)[2])
        shown = [one for one in self._types if one.name in bases]
        inherited = [one for one in self._callables if one.name == item.name]
        return bool(bases) and (not shown or any(_lies_in(one, base) for one in inherited for base in shown))

    # -- notes -----------------------------------------------------------------------------------------------------------

    def _prose(self, node: "Node") -> None:
        text = node_text(node)
        if DIRECTIVE.match(text) and not (
            AT_THE_HEAD.match(text) and not HEAD.fullmatch(self._parsed.text, 0, node.start_byte)
        ):
            return self._leaves(node, 0)
        return self._note(self.found.prose, node)

    def _note(self, notes: dict[int, str], node: "Node", why: str = "") -> None:
        for number, line in enumerate(node_text(node).split("\n"), node.start_point.row + 1):
            notes[number] = why or line

    def _is_near(self, node: "Node") -> bool:
        """Whether a node has to be looked at: it is in the lines that are asked for, or decides what their function is."""
        if self._in_function and node.end_byte - node.start_byte <= LONGEST_STUB:
            return True
        place = bisect_left(self._near, node.start_point.row + 1, key=lambda lines: lines[1])
        return place < len(self._near) and self._near[place][0] <= last_line(node)


def _wrapping(node: "Node") -> "Node":
    """The node of a definition as a whole: with its decorators, its `export`, the name it is assigned to."""
    while (above := node.parent) is not None and WRAPS.match(above.type):
        if above.type == "object" and above.named_child_count > 1:
            break
        node = above
    before = node.prev_named_sibling
    return before if before is not None and before.type == "signature" else node


def _lies_in(inner: OutlineDefinition, outer: OutlineDefinition) -> bool:
    return outer.node.start_byte < inner.node.start_byte < outer.end_byte


def _has_body(item: OutlineDefinition) -> bool:
    if item.kind is SymbolKind.MACRO:
        return item.body is not None
    return (
        item.kind.is_callable
        or item.kind.is_type
        or item.kind in {SymbolKind.MODULE, SymbolKind.NAMESPACE, SymbolKind.OBJECT}
    )


def _is_work(token: Token) -> bool:
    return not token.stub and not FRAME.fullmatch(token.key.partition(":")[2] or token.key)
