"""Which parts of a file can be left out when it is parsed again: the members of its modules, classes and the like.

A grammar reads the members of a body one after the other, and what it makes of one does not depend on the others as long as
there is no error. A member counts only where it takes whole lines and nothing besides it would read differently without it:

- In Python a comment belongs to the block that its column and that of the next statement say. So comments before a member
  must not stand left of it, and those behind it not right of it. A function may lack its body for the grammar, and what
  follows then is in any column: so all members of a body must be in one.
- In JavaScript a line that ends without a semicolon may go on in the next. So what is before a member must be closed.
- A body keeps at least one member, since it may not be empty.

Only languages are here whose files were compared, part with whole (`benchmarks/lookups.md`). C and C++ are not: two of three
files have what their grammars take for errors.
"""

import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tree_sitter

    from code_intel_server.codebase.syntax.grammars import Parsed

_SMALLEST = 64
"""Bytes of a member that is worth leaving out."""


@dataclass(frozen=True)
class _Shape:
    """How a language builds its files: which nodes have members, in which such nodes stand, and what a member is that may be left out."""

    bodies: frozenset[str]
    around: frozenset[str]
    members: frozenset[str]
    remark: bytes
    by_column: bool
    must_be_closed: bool
    lead: str

    @cached_property
    def line_end(self) -> "re.Pattern[bytes]":
        """What may be behind a member on its last line, with the empty lines below."""
        return re.compile(rb"[ \t]*(?:%b)?\r?(?:\n(?:[ \t]*\r?\n)*|\Z)" % self.remark)


def _shape(
    bodies: str,
    around: str,
    members: str,
    *,
    remark: bytes = rb"//[^\r\n\\]*",
    by_column: bool = False,
    must_be_closed: bool = False,
    lead: str = "",
) -> _Shape:
    types = (frozenset(bodies.split()), frozenset(around.split()), frozenset(members.split()))
    return _Shape(*types, remark, by_column, must_be_closed, lead)


_CLOSED_TYPES = (
    "function_declaration generator_function_declaration class_declaration abstract_class_declaration method_definition "
    "interface_declaration enum_declaration"
)
_CLOSED = frozenset(_CLOSED_TYPES.split())
"""Statements of JavaScript that end with their brace."""

_SCRIPT = _shape(
    "program class_body statement_block",
    "class_declaration abstract_class_declaration export_statement internal_module expression_statement call_expression "
    "arguments arrow_function function_expression lexical_declaration variable_declarator assignment_expression",
    f"{_CLOSED_TYPES} export_statement expression_statement lexical_declaration variable_declaration",
    must_be_closed=True,
    lead="decorator",
)
SHAPES = {
    "python": _shape(
        "module block",
        "class_definition decorated_definition if_statement else_clause",
        "class_definition decorated_definition function_definition if_statement try_statement with_statement for_statement "
        "while_statement match_statement expression_statement assignment augmented_assignment call assert_statement",
        remark=rb"#[^\r\n]*",
        by_column=True,
    ),
    "java": _shape(
        "program class_body interface_body enum_body enum_body_declarations annotation_type_body",
        "class_declaration interface_declaration enum_declaration record_declaration annotation_type_declaration",
        "class_declaration interface_declaration enum_declaration record_declaration annotation_type_declaration "
        "method_declaration constructor_declaration compact_constructor_declaration field_declaration",
    ),
    "javascript": _SCRIPT,
    "typescript": _SCRIPT,
    "tsx": _SCRIPT,
    "go": _shape("source_file", "", "function_declaration method_declaration type_declaration"),
    "csharp": _shape(
        "compilation_unit declaration_list",
        "namespace_declaration class_declaration struct_declaration record_declaration interface_declaration",
        "class_declaration struct_declaration record_declaration interface_declaration enum_declaration method_declaration "
        "constructor_declaration property_declaration operator_declaration destructor_declaration",
    ),
    "rust": _shape(
        "source_file declaration_list",
        "impl_item mod_item trait_item",
        "function_item impl_item mod_item trait_item struct_item enum_item macro_definition",
    ),
}
_BLANKS = b" \t"
_BACKSLASH = b" \t\r\\"
_ODD_SPACE = ("\u200b".encode(), "\u2060".encode(), "\ufeff".encode())
"""What the grammar of Python takes for space, too, and does not count as a column."""

_TAB_COLUMNS = 8
_GOES_ON = (b"\\\n", b"\\\r\n")


def spans_of(parsed: "Parsed") -> bytes:
    """Where the members of a file stand that can be left out; none where it has errors."""
    shape = SHAPES.get(parsed.language.name)
    if shape is None or parsed.has_errors or parsed.is_rubble:
        return b""
    if shape.by_column and _is_odd(parsed.text):
        return b""
    found = _members(parsed.root, parsed.text, shape)
    found.sort(key=lambda span: (span[0], -span[1]))
    return array("I", [byte for span in found for byte in span]).tobytes()


def _is_odd(text: bytes) -> bool:
    """Whether columns are hard to tell; a line of nothing but a backslash goes on in the next one's column."""
    if b"\v" in text or b"\f" in text or text.count(b"\r") != text.count(b"\r\n"):
        return True
    if not text.isascii() and any(space in text for space in _ODD_SPACE):
        return True
    return any(not _line(text, start).strip(_BACKSLASH) for start in _continued(text))


def _continued(text: bytes) -> Iterator[int]:
    """Where the lines begin that end with a backslash."""
    for end in _GOES_ON:
        at = text.find(end)
        while at >= 0:
            yield text.rfind(b"\n", 0, at) + 1
            at = text.find(end, at + 1)


def _members(root: "tree_sitter.Node", text: bytes, shape: _Shape) -> list[tuple[int, int]]:
    """Where the members of all bodies stand that can be left out; none where a body's members stand in several columns."""
    found: list[tuple[int, int]] = []
    pending = [root]
    while pending:
        node = pending.pop()
        children = node.named_children
        if node.type in shape.bodies:
            if shape.by_column and len({*_columns_of(children, text)}) > 1:
                return []
            found += _free(children, text, shape)
        pending += [child for child in children if child.type in shape.bodies or child.type in shape.around]
    return found


def _columns_of(children: "Sequence[tree_sitter.Node]", text: bytes) -> Iterator[int]:
    """The columns of those that begin their line."""
    for child in children:
        first = child.start_byte
        blanks = text[text.rfind(b"\n", 0, first) + 1 : first]
        if not blanks.strip(_BLANKS) and not child.is_extra:
            yield _columns(blanks)


def _free(children: "Sequence[tree_sitter.Node]", text: bytes, shape: _Shape) -> Iterator[tuple[int, int]]:
    """The members of one body that can be left out, but for one where that would be all."""
    found: list[tuple[int, int]] = []
    stay = 0
    before: tree_sitter.Node | None = None
    lead: tree_sitter.Node | None = None
    for child in children:
        kind = child.type
        if kind == shape.lead:
            lead = lead or child
            continue
        if child.is_extra:
            continue
        first, lead = (lead or child).start_byte, None
        last = child.end_byte
        span = None
        if (
            kind in shape.members
            and last - first >= _SMALLEST
            and not (shape.must_be_closed and not _is_closed(before, text))
        ):
            span = _whole_lines(text, first, last, shape)
        before = child
        if span:
            found.append(span)
        else:
            stay += 1
    if not stay and found:
        found.remove(min(found, key=lambda span: span[1] - span[0]))
    yield from found


def _whole_lines(text: bytes, first: int, last: int, shape: _Shape) -> tuple[int, int] | None:
    """The lines from one byte to another, with the empty ones behind; None where they cannot go without what is next to them."""
    start = text.rfind(b"\n", 0, first) + 1
    blanks = text[start:first]
    if blanks.strip(_BLANKS) or text.endswith(_GOES_ON, 0, start):
        return None
    behind = shape.line_end.match(text, last)
    if behind is None or (shape.by_column and not _in_column(text, start, behind.end(), _columns(blanks))):
        return None
    return start, behind.end()


def _is_closed(before: "tree_sitter.Node | None", text: bytes) -> bool:
    """Whether a statement of JavaScript ends where it ends, whatever comes next."""
    if before is None:
        return True
    if before.type == "export_statement":
        declared = before.child_by_field_name("declaration")
        if declared is not None and declared.type in _CLOSED:
            return True
    return before.type in _CLOSED or b";" in text[before.end_byte - 1 : before.end_byte + 1]


def _in_column(text: bytes, start: int, end: int, column: int) -> bool:
    """Whether no comment next to these lines would belong to another block without them (see above)."""
    below = _line(text, end)
    if below.lstrip()[:1] == b"#" and _columns(below[: below.index(b"#")]) > column:
        return False
    while start > 0:
        end, start = start, text.rfind(b"\n", 0, start - 1) + 1
        line = text[start:end].lstrip()
        if line[:1] == b"#":
            if _columns(text[start : end - len(line)]) < column:
                return False
        elif line:
            break
    return True


def _columns(blanks: bytes) -> int:
    """As the grammar counts."""
    return len(blanks) + (_TAB_COLUMNS - 1) * blanks.count(b"\t")


def _line(text: bytes, start: int) -> bytes:
    end = text.find(b"\n", start)
    return text[start : end if end >= 0 else len(text)]
