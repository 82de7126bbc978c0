"""Judges what the code at a range of lines is worth as evidence, by syntax tree (SPEC 4, READY impl).

The theory: a range is looked at from the root down, cutting away what lies outside. Comments, docstrings, decorators and
punctuation are nothing. A definition whose header is in the range stands for its body. What is left over falls in three:

    stub          a statement that only says "to be written", an empty body
    declaration   a name and a type, but nothing that happens: a field, a prototype, an abstract method
    code          everything else

Code makes the range real. Without code a stub makes it empty; only declarations, or nothing at all, make it trivial.
A type that declares members is code: it is a new type. So is an exception class without a body: its name is its point.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import TYPE_CHECKING

from code_intel_server.codebase.anatomy import (
    BLOCK,
    body_of,
    fault_names,
    header_of,
    initialises,
    members_of,
    only_declares,
    places_of,
)
from code_intel_server.codebase.grammars import Parsed, last_line, node_text
from code_intel_server.codebase.languages import Language, LanguageKind
from code_intel_server.codebase.outlines import Definition, header_end, single_definitions
from code_intel_server.codebase.reference import RangeVerdict
from code_intel_server.codebase.stubs import LONGEST_STUB, is_stub, is_todo
from code_intel_server.codebase.syntax import SymbolKind

if TYPE_CHECKING:
    import tree_sitter


class Worth(Enum):
    """What a piece of the range is."""

    STUB = "stub"
    DECLARATION = "declaration"
    CODE = "code"


_NOTHING = re.compile(
    r"comment|^pod$|haddock|^decorator$|annotation$|^attribute_item$|^attribute_list$|modifiers?$|^empty_statement$"
    r"|^template_parameter_list$|^type_parameters$|^access_specifier$|^requires_clause$|^php_tag$|^shebang|^hash_bang"
)
_DECLARES = re.compile(r"declaration$|_signature$|^field_definition$|^var_decl|^(?:class|struct|enum)_specifier$")
_BRINGS_IN = re.compile(
    r"import|using|use_|package|namespace|include|export|alias|module|extern|friend|static_assert|template"
)
_VALUE = re.compile(r"(?<![=!<>])=(?![=>])")
_DEEPEST = 400
_KEYWORDS_ONLY = re.compile(r"(?:\W|\b(?:do|end|begin|then|in)\b)*")
_ELIXIR_ATTRIBUTE = re.compile(r"@(?:doc|moduledoc|typedoc|spec|impl)\b")
_INHERITS = re.compile(r"[(:;]|extends|<:")
_VALUES = frozenset({SymbolKind.FIELD, SymbolKind.PROPERTY, SymbolKind.VARIABLE, SymbolKind.CONSTANT})
_HOLLOW = frozenset({SymbolKind.CLASS, SymbolKind.IMPL, SymbolKind.MODULE, SymbolKind.NAMESPACE, SymbolKind.OBJECT})

_REAL = RangeVerdict(empty=False, trivial=False)
_STUB = RangeVerdict(empty=True, trivial=False, why="an implementation without code")
_DECLARATIONS = RangeVerdict(empty=False, trivial=True, why="declarations only")
_TO_DO = RangeVerdict(empty=True, trivial=False, why="only a note of what is to be done")


def judge_parsed(parsed: Parsed, path: str, start: int, end: int) -> RangeVerdict:
    """Judge lines `start`..`end` (1-based, inclusive) of a parsed file."""
    lines = parsed.text.decode("utf-8", "replace").split("\n")[start - 1 : end]
    if parsed.language.kind is LanguageKind.DOCS and _only_to_do(lines):
        return _TO_DO
    part = next((part for part in parsed.injected if _covers(part, start, end)), parsed)
    found = _Judge(part, declares=path.endswith(".pyi")).range(start, end)
    if Worth.CODE in found:
        return _REAL
    if Worth.STUB in found:
        return _STUB
    return _DECLARATIONS if found else _of_nothing(lines)


def _covers(part: Parsed, start: int, end: int) -> bool:
    """Whether the range lies in one stretch of a part in another language (the script of a page)."""
    return any(
        stretch.start_point.row + 1 < start and end < stretch.end_point.row + 1 for stretch in part.tree.included_ranges
    )


def _of_nothing(lines: Sequence[str]) -> RangeVerdict:
    """Comments and white space: trivial, or empty where all they say is that something is to be done."""
    if _only_to_do(lines):
        return _TO_DO
    words = any(re.search(r"\w", line) for line in lines)
    why = "only comments or documentation" if words else "only white space or punctuation"
    return RangeVerdict(empty=False, trivial=True, why=why, prose=words)


def _only_to_do(lines: Sequence[str]) -> bool:
    said = [line for line in lines if re.search(r"\w", line)]
    return bool(said) and all(is_todo(line) for line in said)


class _Judge:
    """Walks one file; a range is a pair of 1-based inclusive lines.

    `declares` goes down with the walk: true where a stub is the usual form of a declaration (a protocol, a `.pyi`).
    """

    def __init__(self, parsed: Parsed, *, declares: bool) -> None:
        self._parsed = parsed
        self._language = parsed.language.name
        self._declares = declares
        found = single_definitions(parsed) if parsed.language.kind is LanguageKind.CODE else []
        found = [item for item in found if _is_judged_by_body(item)]
        self._items = {node.id: item for item in found for node in places_of(item)}
        self._starts = sorted(item.node.start_byte for item in found)
        self._faults = fault_names(found)

    def range(self, start: int, end: int) -> set[Worth]:
        """What lines `start`..`end` hold."""
        return self._look(self._parsed.root.named_children, start, end, declares=self._declares)

    def _look(self, nodes: "Iterable[tree_sitter.Node]", start: int, end: int, *, declares: bool) -> set[Worth]:
        """What the parts of `nodes` in the range are worth."""
        found: set[Worth] = set()
        # The type of the node above goes along: asking a node for its parent costs a walk from the root.
        pending = [(node, "block", 0) for node in nodes]
        while pending and Worth.CODE not in found:
            node, above, depth = pending.pop()
            if not start <= last_line(node) or node.start_point.row + 1 > end or self._is_nothing(node, above):
                continue
            item = self._items.get(node.id)
            if item is not None:
                found |= self._item(item, start, end, declares=declares)
            elif _length(node) <= LONGEST_STUB and is_stub(node_text(node), self._language):
                found.add(Worth.DECLARATION if declares else Worth.STUB)
            elif depth < _DEEPEST and self._opens(node, start, end):
                pending += [(child, node.type, depth + 1) for child in _inner(node)]
            else:
                found.add(self._plain(node))
        return found

    def _opens(self, node: "tree_sitter.Node", start: int, end: int) -> bool:
        """Whether to look inside: it is cut by the range, only holds others, or has definitions to judge by themselves."""
        if node.named_child_count == 0:
            return bool(BLOCK.search(node.type)) and bool(_KEYWORDS_ONLY.fullmatch(node_text(node)))
        cut = node.start_point.row + 1 < start or last_line(node) > end
        return cut or bool(BLOCK.search(node.type)) or self._holds_items(node)

    def _holds_items(self, node: "tree_sitter.Node") -> bool:
        """Whether a definition begins inside the node, not with it."""
        at = bisect_left(self._starts, node.start_byte + (node.id in self._items))
        return at < len(self._starts) and self._starts[at] < node.end_byte

    def _is_nothing(self, node: "tree_sitter.Node", above: str) -> bool:
        if node.is_extra or _NOTHING.search(node.type):
            return True
        if self._language == "python" and node.type == "string":
            return above in {"block", "module", "expression_statement"}
        if self._language == "elixir" and node.type == "unary_operator":
            return bool(_ELIXIR_ATTRIBUTE.match(node_text(node)))
        return above == "linkage_specification" and node.type == "string_literal"

    def _plain(self, node: "tree_sitter.Node") -> Worth:
        """A statement that is no definition: a bare declaration, or code."""
        if self._language == "python" and node.type == "assignment":
            return Worth.CODE if node.child_by_field_name("right") else Worth.DECLARATION
        if not _DECLARES.search(node.type) or _BRINGS_IN.search(node.type):
            return Worth.CODE
        text = node_text(node)
        return Worth.CODE if "{" in text or _VALUE.search(text) else Worth.DECLARATION

    def _item(self, item: Definition, start: int, end: int, *, declares: bool) -> set[Worth]:
        declares = declares or only_declares(item, self._language)
        if item.kind in _VALUES and item.body is None:
            return self._value(item, start, end, declares=declares)
        if item.kind.is_callable or item.kind in _VALUES:
            return self._callable(item, start, end, declares=declares)
        return self._type(item, start, end, declares=declares)

    def _is_named(self, item: Definition, start: int, end: int) -> bool:
        """Whether the header is in the range, at least in part."""
        return start <= header_end(self._parsed.text, item) and end >= item.node.start_point.row + 1

    def _value(self, item: Definition, start: int, end: int, *, declares: bool) -> set[Worth]:
        """A constant or field: code where it has a value."""
        if self._is_named(item, start, end):
            return {Worth.CODE if _VALUE.search(node_text(item.node)) else Worth.DECLARATION}
        return self._look(item.node.named_children, start, end, declares=declares)

    def _callable(self, item: Definition, start: int, end: int, *, declares: bool) -> set[Worth]:
        """A function is worth what its body is; its header stands for all of it."""
        body = body_of(item, self._language)
        if body is None:
            return {Worth.DECLARATION}
        whole = self._look(body, 1, item.end_line, declares=declares) or self._hollow_function(item, declares=declares)
        if self._is_named(item, start, end) or whole != {Worth.CODE}:
            return whole
        return self._look(body, start, end, declares=declares)

    def _hollow_function(self, item: Definition, *, declares: bool) -> set[Worth]:
        if initialises(item):
            return {Worth.CODE}
        return {Worth.DECLARATION if declares else Worth.STUB}

    def _type(self, item: Definition, start: int, end: int, *, declares: bool) -> set[Worth]:
        """A type is worth what its members in the range are; its header makes declarations a type."""
        members = members_of(item, holds_items=self._holds_items(item.node))
        if members is None:
            return {self._bodiless(item)}
        whole = self._look(members, 1, item.end_line, declares=declares)
        if Worth.CODE not in whole and item.name in self._faults and not self._holds_items(item.node):
            return {Worth.CODE}
        if not whole:
            return {self._hollow_type(item, declares=declares)}
        inside = self._look(members, start, end, declares=declares)
        if not self._is_named(item, start, end):
            return inside
        inside = inside or whole
        return {Worth.CODE} if inside == {Worth.DECLARATION} else inside

    def _hollow_type(self, item: Definition, *, declares: bool) -> Worth:
        """A type or module whose body has no members: a marker where its kind or header makes it one, else a stub."""
        if declares or item.kind not in _HOLLOW:
            return Worth.DECLARATION
        marks = item.kind is SymbolKind.IMPL and re.search(r"\bfor\b|:|\(", header_of(item))
        return Worth.CODE if marks else Worth.STUB

    def _bodiless(self, item: Definition) -> Worth:
        """A type or module without a body: code where its header brings parameters or bases."""
        if self._language == "ruby":
            return Worth.CODE if item.name in self._faults else Worth.STUB
        after_name = header_of(item).partition(item.name)[2]
        imports = item.kind in {SymbolKind.MODULE, SymbolKind.NAMESPACE}
        return Worth.CODE if imports or _INHERITS.search(after_name) else Worth.DECLARATION


def _is_judged_by_body(item: Definition) -> bool:
    kind = item.kind
    if kind is SymbolKind.MACRO:
        return item.body is not None
    return kind.is_callable or kind.is_type or kind in _VALUES or kind in _HOLLOW


def _length(node: "tree_sitter.Node") -> int:
    return node.end_byte - node.start_byte


def _inner(node: "tree_sitter.Node") -> "list[tree_sitter.Node]":
    """What to look at inside a node that is cut or holds definitions; the target of an assignment is not its worth."""
    target = node.child_by_field_name("left") if node.type == "assignment_expression" else None
    return [child for child in node.named_children if target is None or child.id != target.id]


def judge_text(lines: Sequence[str], language: Language | None) -> RangeVerdict:
    """Judge lines of a file without a grammar: by comment markers, and each line as a statement."""
    bare = [(_uncommented(line, language)) for line in lines]
    if _only_to_do([_unmarked(line, language) for line in lines]):
        return _TO_DO
    code = [line for line in bare if line]
    if not code:
        return _of_nothing(lines)
    stubs = (
        language is not None
        and language.kind is LanguageKind.CODE
        and all(is_stub(line, language.name) for line in code)
    )
    return _STUB if stubs else _REAL


def _unmarked(line: str, language: Language | None) -> str:
    """The line without the marker that opens a comment."""
    text = line.strip()
    markers = [*language.line_comments, *(opening for opening, _ in language.block_comments)] if language else []
    return next((text[len(marker) :] for marker in markers if text.lower().startswith(marker.lower())), text)


def _uncommented(line: str, language: Language | None) -> str:
    """The line without comments and white space, '' where nothing but punctuation is left."""
    text = line.strip()
    if not re.search(r"\w", text) or language is None:
        return text
    if any(text.lower().startswith(marker.lower()) for marker in language.line_comments):
        return ""
    for opening, closing in language.block_comments:
        if text.startswith(opening) and (text.endswith(closing) or closing not in text):
            return ""
    return text
