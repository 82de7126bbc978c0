"""What of a source text can run at all, told by its syntax tree: a test in a string, or behind a `return`, runs no more.

Blanked out are, lines and offsets kept, comments and the inside of strings, and what is never come to: what follows a
statement that leaves its block, the branch of a condition that is written as a constant, and in Python what its test
runners do not collect: a test whose name is given something else further down, one inside a function, a `Test…` class
that has a constructor; and a function within a function that never names it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from code_intel_server.codebase.grammars import Parsed

if TYPE_CHECKING:
    import tree_sitter

    Nodes = Sequence[tree_sitter.Node]

_QUIET = re.compile(
    r"comment|^pod$|haddock|string|heredoc_body|^sigil$|^regex(?:_literal)?$|^(?:char|character|rune)_literal$"
)
_UNSAID = re.compile(r"comment|^pod$|haddock|heredoc_body")
"""What of it no assertion names."""
_HOLDS_CODE = frozenset({"bash", "nix"})
"""Languages whose strings are full of commands."""

_BLOCK = re.compile(
    r"block$|^compound_statement$|^body_statement$|_body$|^body$|^statements$|_list$(?<!argument_list)"
    r"|^(?:module|program|source_file|translation_unit|chunk|compilation_unit|then|else|do)$"
)
_LEAVES = re.compile(
    rb"(?:return|raise|throw|exit|die|quit|skip|abort)\b"
    rb"|(?:sys\.exit|os\._exit|pytest\.(?:skip|exit|xfail)|process\.exit|Deno\.exit|System\.exit|os\.Exit|(?:std::)?process::exit"
    rb"|self\.skipTest|this\.skip|t\.(?:Skip|Skipf|SkipNow|skip)|GTEST_SKIP)\b"
)
_LONGEST_LEAVE = 24
_LEAVING = re.compile(r"^(?:return|raise|throw|jump|control_transfer|exit)|call|invocation|^(?:command|identifier)$")
_WRAPS = frozenset({"expression_statement", "statement"})
_STAYS = frozenset({"labeled_statement", "function_declaration", "function_definition", "method", "subroutine"})
"""What is come to though a `return` stands above it."""

_CONDITION = re.compile(r"^(?:if|unless|elif|preproc_(?:if|elif)|conditional_expression|ternary|while)")
_FALSE = re.compile(rb"(?:False|false|0|None|null|nil|undefined|NaN|\"\"|''|\[\]|\(\)|\{\}|!\s?1|!\s?true|not[ ]True)")
_TRUE = re.compile(rb"(?:True|true|1|!\s?0|!\s?false|not False)")
_LONGEST_CONSTANT = 24
_COLLECTED = re.compile(rb"[Tt]est\w*+")
_LONGEST_BINDING = 1000
_FUNCTIONS = frozenset({"function_definition", "lambda"})
_HOLDS_FUNCTIONS = frozenset({"function_definition", "class_definition", "decorated_definition"})
_LONGEST_FUNCTION = 20_000
_LOOPS = frozenset({"for_statement", "while_statement"})
_CALLED = re.compile(r"^(?:function_(?:definition|declaration|item)|method(?:_declaration|_definition)?|subroutine)$")
_GROUPS = re.compile(r"^(?:class|module|namespace|mod_item|object|struct|trait|interface)")
_SAYS = re.compile(r"call")
_SAID_TEST = re.compile(rb"(?:it|test|specify|scenario|example)\b")
_SAID_GROUP = re.compile(rb"(?:RSpec\.)?(?:describe|context|suite|feature)\b")
_ENDS = re.compile(rb"[ \t\r\n]{0,12}+return\b")
_SURROUNDINGS = re.compile(rb"(?i:env|platform|\bgoos\b|\bci\b|version|hostname)")
_ATTRIBUTES = frozenset({"attribute_item", "decorator"})
_ARGUMENTS = frozenset({"arguments", "argument_list"})
_QUOTES = frozenset({b"'", b'"', b"`"})
_LONGEST_NAME = 200

_TO_BLANK = bytes(byte if byte in b"\r\n" else 32 for byte in range(256))


@dataclass(frozen=True, slots=True)
class Reached:
    """Two readings of a text: with what can run, and without that of it which stands under a condition.

    `source` is the text itself and `alive` what can run of it, byte for byte at the same place; `strings` are the places of
    the strings that can be come to, `units` the functions and tests, `conditional` what stands
    under a condition, and `guards` where a condition leaves what it stands in, each from the first to the last.
    """

    text: str
    certain: str
    source: bytes = b""
    alive: bytes = b""
    strings: Sequence[tuple[int, int]] = ()
    units: "Sequence[Unit]" = ()
    conditional: Sequence[tuple[int, int]] = ()
    guards: Sequence[int] = ()


class Unit(NamedTuple):
    """A function or test that stands in no other, decorators included; `group` tells it from one of its name in another class."""

    start: int
    end: int
    name: bytes
    group: int


def reached(parsed: Parsed) -> Reached:
    """What can run of a parsed file; it takes time in proportion to the size of the tree."""
    walk = _Walk(parsed.text, parsed.language.name)
    for part in (parsed, *parsed.injected):
        walk.through(part.root)
    alive = _blanked(parsed.text, walk.dead)
    certain = _blanked(alive, walk.conditional)
    return Reached(
        alive.decode("utf-8", "replace"),
        certain.decode("utf-8", "replace"),
        parsed.text,
        alive,
        sorted(walk.strings),
        sorted(walk.units),
        _merged(walk.conditional),
        sorted(walk.guards),
    )


def _merged(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The outermost of some ranges, of which one holds another or none of it."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(ranges, key=lambda place: (place[0], -place[1])):
        if not merged or start >= merged[-1][1]:
            merged.append((start, end))
    return merged


def _blanked(text: bytes, ranges: Sequence[tuple[int, int]]) -> bytes:
    """The text with these ranges of it made of spaces; one inside another costs nothing more."""
    parts: list[bytes] = []
    at = 0
    for start, end in sorted(ranges):
        if end > at:
            alive = max(start, at)
            parts += [text[at:alive], text[alive:end].translate(_TO_BLANK)]
            at = end
    return b"".join([*parts, text[at:]])


@dataclass(slots=True)
class _Walk:
    """Goes through a tree once, from the root down, and notes the bytes that are dead and those under a condition."""

    text: bytes
    language: str
    dead: list[tuple[int, int]] = field(default_factory=list)
    conditional: list[tuple[int, int]] = field(default_factory=list)
    strings: list[tuple[int, int]] = field(default_factory=list)
    units: list[Unit] = field(default_factory=list)
    guards: list[int] = field(default_factory=list)
    _leads: dict[int, int] = field(default_factory=dict)

    def through(self, root: "tree_sitter.Node") -> None:
        """Note what is dead below a root."""
        pending: list[tuple[tree_sitter.Node, bool, int | None]] = [(root, False, 0)]
        while pending:
            node, inside, group = pending.pop()
            if _QUIET.search(node.type) and self._is_quiet(node):
                continue
            children = self._alive(node, inside=inside)
            inside = inside or (self.language == "python" and node.type in _FUNCTIONS)
            group = None if group is None else self._group(node, group)
            pending += [(child, inside, group) for child in children]
            if group is not None:
                self._led(children)

    def _group(self, node: "tree_sitter.Node", group: int) -> int | None:
        """In which group of tests stands what is below a node; None below a function or a test, which is noted."""
        kind = node.type
        if _SAYS.search(kind):
            start = node.start_byte
            begun = self.text[start : start + _LONGEST_LEAVE]
            is_test = _SAID_TEST.match(begun) is not None
            if not is_test and not _SAID_GROUP.match(begun):
                return group
            name = self._told(node)
        else:
            is_test = _CALLED.match(kind) is not None
            if not is_test and not _GROUPS.match(kind):
                return group
            name = self._called(node)
        if not name:
            return group
        if not is_test:
            return hash((group, name))
        around = node.parent
        start = around.start_byte if around and around.type == "decorated_definition" else node.start_byte
        self.units.append(Unit(self._leads.get(start, start), node.end_byte, name, group))
        return None

    def _led(self, children: "Nodes") -> None:
        """Note where the attributes begin that stand before a function."""
        lead: int | None = None
        for child in children:
            if child.type in _ATTRIBUTES:
                lead = child.start_byte if lead is None else lead
            elif lead is not None:
                self._leads[child.start_byte] = lead
                lead = None

    def _called(self, node: "tree_sitter.Node") -> bytes:
        """The name that a function or class is defined by."""
        name = node.child_by_field_name("name") or node.child_by_field_name("declarator")
        if name is None:
            name = next((child for child in node.named_children if child.type.endswith("identifier")), None)
        return b"" if name is None else self.text[name.start_byte : min(name.end_byte, name.start_byte + _LONGEST_NAME)]

    def _told(self, node: "tree_sitter.Node") -> bytes:
        """The text that a test or group is introduced by: the first argument, where that is a string."""
        given = node.child_by_field_name("arguments")
        if given is None:
            given = next((child for child in node.named_children if child.type in _ARGUMENTS), None)
        first = given.named_children[0] if given is not None and given.named_child_count else None
        if first is None or self.text[first.start_byte : first.start_byte + 1] not in _QUOTES:
            return b""
        return self.text[first.start_byte : min(first.end_byte, first.start_byte + _LONGEST_NAME)]

    def _is_quiet(self, node: "tree_sitter.Node") -> bool:
        """Whether the node is a comment or a string, noted as such; of a string the first and last byte stay."""
        start, end = node.start_byte, node.end_byte
        if _UNSAID.search(node.type):
            self.dead.append((start, end))
        elif self.language in _HOLDS_CODE or node.type.startswith("string_array"):
            return False
        else:
            self.strings.append((start, end))
            if end - start > 2:
                self.dead.append((start + 1, end - 1))
        return True

    def _alive(self, node: "tree_sitter.Node", *, inside: bool) -> "Nodes":
        """The children to go on with; those that nothing comes to are noted."""
        children = node.named_children
        if _CONDITION.match(node.type):
            self.conditional.append((node.start_byte, node.end_byte))
            return self._branches(node, children)
        if self.language == "python":
            self._python(node, children, inside=inside)
        if _BLOCK.search(node.type):
            return self._before_the_end(children)
        return children

    def _before_the_end(self, children: "Nodes") -> "Nodes":
        """The statements of a block up to one that leaves it, with what is come to all the same."""
        at = next((number for number, child in enumerate(children) if self._leaves(child)), None)
        if at is None:
            return children
        stays = [child for child in children[at + 1 :] if self._stays(child)]
        kept = {child.id for child in stays}
        self.dead += [(child.start_byte, child.end_byte) for child in children[at + 1 :] if child.id not in kept]
        return [*children[: at + 1], *stays]

    def _stays(self, node: "tree_sitter.Node") -> bool:
        return node.type in _STAYS and self.language != "python"

    def _leaves(self, node: "tree_sitter.Node") -> bool:
        start = node.start_byte
        if _LEAVES.match(self.text, start, min(start + _LONGEST_LEAVE, node.end_byte)) is None:
            return False
        while node.type in _WRAPS and node.named_child_count == 1:
            node = node.named_children[0]
        return _LEAVING.search(node.type) is not None

    def _branches(self, node: "tree_sitter.Node", children: "Nodes") -> "Nodes":
        """What can be come to below a condition: all, unless it is written as a constant."""
        condition = node.child_by_field_name("condition")
        if condition is not None:
            self._note_guard(node, condition)
        if condition is None or condition.end_byte - condition.start_byte > _LONGEST_CONSTANT:
            return children
        said = (
            self.text[condition.start_byte : condition.end_byte].strip().removeprefix(b"(").removesuffix(b")").strip()
        )
        never = "alternative" if _TRUE.fullmatch(said) else "consequence" if _FALSE.fullmatch(said) else ""
        if node.type.startswith("unless"):
            never = {"alternative": "consequence", "consequence": "alternative"}.get(never, "")
        if never:
            self.dead += [(child.start_byte, child.end_byte) for child in self._never(node, children, never)]
        return children

    def _note_guard(self, node: "tree_sitter.Node", condition: "tree_sitter.Node") -> None:
        """Note a condition below which a function ends at once: in Python any, elsewhere one that asks where it runs."""
        branch = node.child_by_field_name("consequence") or node.child_by_field_name("body")
        if branch is None:
            return
        begun = branch.start_byte + (self.text[branch.start_byte : branch.start_byte + 1] == b"{")
        if _ENDS.match(self.text, begun, begun + _LONGEST_CONSTANT) is None:
            return
        asked = self.text[condition.start_byte : min(condition.end_byte, condition.start_byte + _LONGEST_NAME)]
        if self.language == "python" or _SURROUNDINGS.search(asked):
            self.guards.append(node.start_byte)

    def _never(self, node: "tree_sitter.Node", children: "Nodes", branch: str) -> "Iterator[tree_sitter.Node]":
        """The children that make up a branch of a condition: by their field, or what is neither condition nor `else`."""
        named = node.children_by_field_name(branch)
        if named or branch == "alternative":
            yield from named
            return
        for child in children:
            if not child.type.startswith(("el", "preproc_el")) and child != node.child_by_field_name("condition"):
                yield child

    # -- what Python's runners collect -----------------------------------------------------------------------------

    def _python(self, node: "tree_sitter.Node", children: "Nodes", *, inside: bool) -> None:
        if node.type in {"module", "block"}:
            self._overtaken(children)
        elif node.type in _LOOPS:
            self.conditional.append((node.start_byte, node.end_byte))
        elif node.type == "class_definition" and self._is_made(node):
            self.dead.append((node.start_byte, node.end_byte))
        elif inside and node.type == "function_definition" and (name := node.child_by_field_name("name")):
            self.dead.append((node.start_byte, name.end_byte if self._may_be_called(node, name) else node.end_byte))

    def _may_be_called(self, function: "tree_sitter.Node", name: "tree_sitter.Node") -> bool:
        """Whether a function within another is named there once more, or may be called by whoever sees it."""
        around = function.parent
        while around is not None and around.type not in _HOLDS_FUNCTIONS:
            around = around.parent
        if around is None or around.type != "function_definition":
            return True
        if around.end_byte - around.start_byte > _LONGEST_FUNCTION:
            return True
        said = re.escape(self.text[name.start_byte : name.end_byte])
        return len(re.findall(rb"\b" + said + rb"\b", self.text[around.start_byte : around.end_byte])) > 1

    def _overtaken(self, statements: "Nodes") -> None:
        """Note the tests whose name is deleted, or stands for something else, further down in the same block."""
        later: set[bytes] = set()
        for statement in reversed(statements):
            name = self._defined(statement)
            if name in later:
                self.dead.append((statement.start_byte, statement.end_byte))
            later |= {name} if name else self._bound(statement)

    def _defined(self, node: "tree_sitter.Node") -> bytes:
        """The name of the test or class of tests that a statement defines, b'' for any other."""
        if node.type == "decorated_definition":
            node = node.child_by_field_name("definition") or node
        if node.type not in {"function_definition", "class_definition"}:
            return b""
        name = node.child_by_field_name("name")
        said = self.text[name.start_byte : name.end_byte] if name else b""
        return said if _COLLECTED.fullmatch(said) else b""

    def _bound(self, node: "tree_sitter.Node") -> set[bytes]:
        """The names of tests that a statement takes away; one handed to a call, whose result takes its place, stays."""
        if node.type == "delete_statement":
            return self._names(node) if node.named_child_count else set()
        found: set[bytes] = set()
        wrapped = node.type == "expression_statement" and node.named_child_count == 1
        inner: tree_sitter.Node | None = node.named_children[0] if wrapped else node
        while inner is not None and inner.type == "assignment":
            left, inner = inner.child_by_field_name("left"), inner.child_by_field_name("right")
            if left is not None and inner is not None and left.type not in {"attribute", "subscript"}:
                found |= self._names(left)
        return found - self._names(inner) if found and inner is not None and inner.type == "call" else found

    def _names(self, node: "tree_sitter.Node") -> set[bytes]:
        end = min(node.end_byte, node.start_byte + _LONGEST_BINDING)
        return set(re.findall(rb"(?<![\w.])[Tt]est\w*+(?![.\[])", self.text[node.start_byte : end]))

    def _is_made(self, node: "tree_sitter.Node") -> bool:
        """Whether a class is named like one of tests, is no `TestCase`, and has a constructor: it is not collected."""
        body, bases = node.child_by_field_name("body"), node.child_by_field_name("superclasses")
        if (
            body is None
            or not self._defined(node)
            or (bases and b"TestCase" in self.text[bases.start_byte : bases.end_byte])
        ):
            return False
        names = (
            child.child_by_field_name("name") for child in body.named_children if child.type == "function_definition"
        )
        return any(name and self.text[name.start_byte : name.end_byte] in {b"__init__", b"__new__"} for name in names)
