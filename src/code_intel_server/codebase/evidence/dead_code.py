"""Code that is never run, and statements that run and do nothing, known by the table of `node_kinds` (SPEC 4, READY impl)."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from code_intel_server.codebase.evidence.equal_forms import is_do, shorter_form
from code_intel_server.codebase.evidence.node_kinds import (
    ASSERTED,
    BLANK,
    CALLS_BY_NAME,
    EMPTY_CALL,
    ENDS_ON_ITS_OWN,
    IMPERATIVE,
    JUMPS_BY_CALL,
    LAST_RETURN,
    NEVER_COMPILED,
    NO_COMMAND,
    NO_ROUNDS,
    NOTHING_ADDED,
    RETHROWS,
    UNCOMPILED,
    UNREACHED,
    VALUE,
    VOID,
    constant,
    is_block,
    is_decided,
    is_pure,
    means,
)
from code_intel_server.codebase.evidence.stubs import LONGEST_STUB
from code_intel_server.codebase.syntax.grammars import node_text
from code_intel_server.codebase.syntax.outlines import OutlineDefinition

if TYPE_CHECKING:
    from tree_sitter import Node

_DIRECTIVES = frozenset({"attribute_item", "inner_attribute_item", "directive"})
_IF_FALSE = re.compile(r"#if\s+false\b")
_NO_EFFECT = "a statement without effect"
_PLAIN = re.compile(r"[$@]?[\w.]+")


@dataclass(frozen=True, slots=True)
class DeadCode:
    """Tells of the nodes of one file what runs; `definitions` are the ids of the nodes that define something."""

    _language: str
    _is_code: bool
    _text: bytes
    _definitions: Collection[int]

    def children(self, node: "Node") -> Iterator[tuple["Node", str]]:
        """The children, each with why it cannot run: a condition that never holds, a jump before it; '' where it can."""
        branch = self._never(node)
        never = ""  # why what follows does not run
        for child in node.children:
            text = node_text(child) if child.type in _DIRECTIVES else ""
            why = ""
            if child.type == "directive":
                why, never = never, UNCOMPILED if _IF_FALSE.match(text) else ""
                why = why or never
            elif NEVER_COMPILED.match(text):
                why = never = UNCOMPILED
            elif child.id in branch:
                why = "code under a condition that never holds"
            elif child.type in {"else_clause", "finally_clause"} and all(map(self._is_vain, child.named_children)):
                why = "a branch without code"
            elif child.type in {"recipe_line", "run_instruction"} and NO_COMMAND.fullmatch(node_text(child)):
                why = "a command that does nothing"
            elif (node.type, child.type) == ("object_creation_expression", "initializer_expression") and not (
                child.named_child_count
            ):
                why = "white space or punctuation"
            elif child.type == "jsx_expression" and any(map(is_decided, child.named_children)):
                why = "a condition that never holds"
            elif child.type == "rule_set" and not any(
                is_block(one.type) and one.named_child_count for one in child.children
            ):
                why = "a rule without declarations"
            elif child.is_named and not (never == UNREACHED and self._is_hoisted(child)):
                why = never
            if never == UNCOMPILED and self._language == "rust" and child.type != "attribute_item":
                never = ""
            yield child, why
            if not never and self._is_code and child.is_named and means("sequence", node.type) and self._jumps(child):
                never = UNREACHED

    def core(self, node: "Node") -> "list[Node] | None":
        """What a node comes to that adds nothing to it: what always runs, what is caught to be thrown on, `x and True`."""
        if self._is_code and (shorter := self._shorter(node)) is not None:
            return shorter
        if node.child_count == 3 and (side := self._neutral(node)) is not None:
            return [node.children[2 if side == 0 else 0]]
        if not self._is_code or not (node.type.startswith("if") or node.type.startswith("try")):
            return None
        blocks = [child for child in node.named_children if is_block(child.type)]
        rest = [child for child in node.named_children if not (is_block(child.type) or child.is_extra)]
        if len(blocks) != 1 or not blocks[0].named_child_count:
            return None
        if node.type.startswith("if"):
            adds_nothing = self._holds(node) is True and len(rest) == 1
        else:
            adds_nothing = bool(rest) and all(RETHROWS.fullmatch(node_text(one)[:LONGEST_STUB]) for one in rest)
        return blocks[0].named_children if adds_nothing else None

    def _shorter(self, node: "Node") -> "list[Node] | None":
        above = node.parent
        ends = above is not None and means("sequence", above.type) and node.next_named_sibling is None
        ends_function = ends and above is not None and self._ends_function(above)
        return shorter_form(node, self._language, ends_function=ends_function)

    def _neutral(self, node: "Node") -> int | None:
        """Which side of an operator changes nothing; None where both count."""
        word = (
            node_text(node.children[1]).lower() if node.children[1].end_byte - node.children[1].start_byte < 4 else ""
        )
        if word not in {"and", "&&", "or", "||"}:
            return None
        nothing = word in {"and", "&&"}
        sides = (constant(node.children[0]), constant(node.children[2]))
        return next((place for place, value in enumerate(sides) if value is nothing), None)

    def is_never_called(self, item: OutlineDefinition, node: "Node", above: "Node") -> bool:
        """Whether a function within a function is named nowhere else in the file."""
        if self._language not in IMPERATIVE or not item.kind.is_callable or not means("sequence", above.type):
            return False
        name = re.escape(item.name.encode())
        return (
            node.type.startswith(("function_d", "local_function"))
            and len(re.findall(rb"\b%s\b" % name, self._text)) == 1
        )

    def _is_hoisted(self, node: "Node") -> bool:
        """Whether a statement holds wherever it is in its block."""
        return node.is_extra or (means("hoisted", node.type) and self._language != "python")

    def _never(self, node: "Node") -> set[int]:
        """The children of a conditional node that its constant condition leaves out."""
        value = self._holds(node)
        if value is None or node.type.startswith("do"):
            return set()
        children = node.children
        other = next((n for n, child in enumerate(children) if means("otherwise", child.type)), len(children))
        if not value:
            return {child.id for child in children[:other]}
        return {child.id for child in children[other:]} if node.type.startswith(("if", "unless", "preproc")) else set()

    def _holds(self, node: "Node") -> bool | None:
        """Whether the condition of a node always or never holds; None where it depends."""
        if not means("condition", node.type):
            return None
        if node.type.startswith("for") and (over := node.child_by_field_name("right")) is not None:
            return False if NO_ROUNDS.fullmatch(node_text(over)[:LONGEST_STUB]) else None
        named = node.named_children
        condition = node.child_by_field_name("condition") or (named[0] if len(named) > 1 else None)
        value = constant(condition) if condition is not None else None
        return value if value is None else value is not node.type.startswith(("unless", "until"))

    def _jumps(self, node: "Node") -> bool:
        """Whether nothing behind a statement is reached."""
        if means("jump", node.type):
            return True
        if node.type.startswith("if") and self._holds(node):
            return any(map(self._jumps, self._running(node)))
        inner = node.named_children[0] if means("statement", node.type) and node.named_child_count else node
        if means("jump", inner.type):
            return True
        calls = re.search(r"call|invocation|^command$", inner.type)
        return bool(calls) and bool(JUMPS_BY_CALL.match(node_text(inner)[:80]))

    def _running(self, node: "Node") -> Iterator["Node"]:
        never = self._never(node)
        for child in node.named_children:
            if child.id not in never:
                yield child
                if is_block(child.type):
                    yield from child.named_children

    def why(self, node: "Node", above: "Node", *, in_function: bool, is_last: bool) -> str:
        """Why a statement does nothing; '' where it does something."""
        if node.type == "empty_statement" or (node.type == ";" and self._language in ENDS_ON_ITS_OWN):
            return "white space or punctuation"
        if not node.is_named or not means("sequence", above.type):
            return ""
        inner = node
        if means("statement", node.type):
            if not node.named_child_count:
                return "white space or punctuation"
            inner = node.named_children[0]
        text = node_text(inner) if inner.end_byte - inner.start_byte < LONGEST_STUB else ""
        if in_function and self._is_local(text):
            return "a variable that nobody reads"
        if means("assignment", inner.type):
            return _NO_EFFECT if self._assigns_nothing(inner, text) else ""
        is_alone = above.type in {"function_definition", "method"}
        rules: tuple[tuple[str, bool], ...] = (
            ("a repetition", self._is_said_twice(node)),
            (_NO_EFFECT, bool(text) and self._says_nothing(text, above)),
            (_NO_EFFECT, bool(text) and self._is_unused(inner, node, is_last=is_last)),
            ("white space or punctuation", _is_empty_block(inner, text) and node.id != above.id and not is_alone),
            (
                "a condition that never holds",
                is_decided(inner) or (self._language == "bash" and text.startswith(": <<")),
            ),
            (_NO_EFFECT, is_last and above.named_child_count > 1 and self._ends_anyway(text, above)),
            ("a condition without a body", inner.type.startswith(("if", "do")) and self._is_empty_condition(inner)),
        )
        return next((why for why, holds in rules if holds), "")

    def _says_nothing(self, text: str, above: "Node") -> bool:
        """Whether a statement computes nothing by its very words."""
        if self._language == "bash" and text in {":", "true"}:
            return above.named_child_count > 1
        compact = "".join(text.split())
        return bool(VOID.fullmatch(text) or ASSERTED.fullmatch(text) or EMPTY_CALL.fullmatch(compact))

    def _is_local(self, text: str) -> bool:
        """Whether a statement gives a plain value to a name of a function that occurs nowhere else in the file."""
        found = VALUE.fullmatch(text) if self._language in IMPERATIVE - CALLS_BY_NAME else None
        name = found["name"].encode() if found else b""
        return bool(name) and len(re.findall(rb"\b%s\b" % name, self._text)) == 1

    def _is_unused(self, inner: "Node", node: "Node", *, is_last: bool) -> bool:
        """Whether a value is computed by nothing that has an effect, and taken by nobody."""
        if self._language not in IMPERATIVE and (self._language != "ruby" or is_last):
            return False
        is_value = self._language == "rust" and is_last and not node_text(node).endswith(";")
        of_a_case = node.parent is not None and {node.type, node.parent.type} & {"case_pattern", "if_clause"}
        never_asked = node.type == "if_clause" and constant(node.named_children[0]) is not None
        if is_value or (of_a_case and not never_asked):
            return False
        if means("statement", node.type):
            begins = node.prev_named_sibling is None or node_text(node.prev_named_sibling)[:1] in {"'", '"'}
            is_directive = inner.type == "string" and self._language != "python" and begins
            return not is_directive and is_pure(inner, self._language)
        bare = self._language in {"kotlin", "swift", "ruby", "r", "groovy"} and not is_last
        return (bare or self._language == "python") and not is_block(inner.type) and is_pure(inner, self._language)

    def _assigns_nothing(self, node: "Node", text: str) -> bool:
        if not text or self._language == "svelte" or self._language not in IMPERATIVE | {"ruby"}:
            return False
        if NOTHING_ADDED.fullmatch(text):
            return True
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        left = left or node.child_by_field_name("target")
        right = right or node.child_by_field_name("result")
        if node.child_count == 3 and node.children[1].type == "=" and _PLAIN.fullmatch(node_text(node.children[0])):
            return node_text(node.children[0]) == node_text(node.children[2])
        value = right or node.child_by_field_name("value")
        pattern = node.child_by_field_name("pattern")
        if node.type == "let_declaration" and pattern and value and node_text(pattern) == node_text(value):
            return True
        return bool(BLANK.fullmatch(text)) and value is not None and is_pure(value, self._language)

    def _is_said_twice(self, node: "Node") -> bool:
        """Whether an import is there twice in the same words, or a label of access next to its like."""
        text = node_text(node)
        if node.type == "access_specifier":
            beside = (node.prev_named_sibling, node.next_named_sibling)
            return any(one is not None and one.type == node.type and node_text(one) == text for one in beside)
        if not means("imports", node.type) or node.parent is None:
            return False
        alike = [one for one in node.parent.named_children if one.type == node.type and node_text(one) == text]
        return len(alike) > 1

    def _ends_anyway(self, text: str, block: "Node") -> bool:
        """Whether a statement at the end of a block only says what would happen without it."""
        if text.rstrip(";") == "continue":
            return block.parent is not None and bool(re.match(r"for|while|do_|enhanced_for|loop", block.parent.type))
        return bool(LAST_RETURN.fullmatch(text)) and self._ends_function(block)

    def _ends_function(self, block: "Node") -> bool:
        around = block.parent
        if around is not None and means("sequence", around.type):
            around = around.parent
        return around is not None and (around.id in self._definitions or around.type == "function_definition")

    def _is_empty_condition(self, node: "Node") -> bool:
        """Whether a condition asks for nothing but names, and nothing follows from it."""
        condition = node.child_by_field_name("condition")
        if condition is None or not is_pure(condition, self._language):
            return False
        rest = [child for child in node.named_children if child.id != condition.id]
        return bool(rest) and all(self._is_vain(child) for child in rest)

    def _is_vain(self, node: "Node") -> bool:
        if node.is_extra or means("prose", node.type) or node.type in {"pass_statement", "empty_statement"}:
            return True
        return is_block(node.type) and all(map(self._is_vain, node.named_children))

    def is_frill(self, node: "Node", behind: "Node | None", above: "Node", further: "Node") -> bool:
        """Whether a mark says nothing that the tree does not: an end of line, a last comma, brackets around a whole value."""
        if node.type == ";":
            return self._language in ENDS_ON_ITS_OWN
        if node.type == "array" and above.type == "array_creation_expression":
            return True
        if node.type in {"#else", "#endif"} or (node.type == ":" and above.type == "field_declaration_list"):
            return True
        if node.type == ",":
            if above.type == "match_arm" or (behind is not None and behind.type == "keywords" and is_do(behind)):
                return True
            one = self._language == "python" and above.type == "tuple" and above.named_child_count == 1
            return behind is not None and behind.type in {")", "]", "}"} and not one
        if node.type in {"(", ")"} and above.type.startswith("parenthesized"):
            return bool(
                re.search(
                    r"statement|assign|declarator|clause|^argument|parenthesized|^return|block|^where$", further.type
                )
            )
        return False


_BRANCH = re.compile(
    rb"[ \t]*#[ \t]*(?:(?P<if>if\w*)[ \t]+(?P<never>(?:0|false)[ \t]*(?://.*)?\r?$)?|(?P<else>el\w+)|(?P<end>endif))"
)


def without_dead_branches(content: bytes) -> tuple[bytes, dict[int, str]]:
    """A file with blanks for what a preprocessor leaves out by `#if 0` or `#if false`, and the lines of it.

    Grammars read both branches of a condition, and what may stand nowhere else makes them lose the rest of the file.
    """
    if not re.search(rb"#[ \t]*if[ \t]+(?:0|false)", content):
        return content, {}
    lines, dead, nested = content.split(b"\n"), dict[int, str](), list[bool]()
    for number, line in enumerate(lines, 1):
        found = _BRANCH.match(line)
        out = True in nested
        if found and found["if"]:
            nested.append(found["never"] is not None)
            out |= nested[-1]
        elif found and nested and found["else"] and nested[-1]:
            nested[-1] = False
        elif found and nested and found["end"]:
            nested.pop()
        if out:
            dead[number] = UNCOMPILED
            lines[number - 1] = re.sub(rb"[^\r]", b" ", line)
    return b"\n".join(lines), dead


def _is_empty_block(node: "Node", text: str) -> bool:
    return is_block(node.type) and not node.named_child_count and "{" in text
