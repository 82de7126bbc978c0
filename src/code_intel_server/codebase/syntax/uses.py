"""What each occurrence of a name is, and which imports and calls a file holds (SPEC 2, `find_references`, `analyze_structure`)."""

import re
from bisect import bisect_right
from itertools import dropwhile, takewhile
from typing import TYPE_CHECKING

from code_intel_server.codebase.files.languages import LanguageKind
from code_intel_server.codebase.syntax.grammars import Parsed, node_text
from code_intel_server.codebase.syntax.outlines import definitions_of, outline_of, split_qualified
from code_intel_server.codebase.syntax.quoted_code import is_program, shows_as_program
from code_intel_server.codebase.syntax.values import Call, Import, Outline, Structure, Symbol, SymbolKind, Use

if TYPE_CHECKING:
    from tree_sitter import Node

    Path = list[tuple[Node, str]]

_TEXT_CHARACTERS = 240
_ATTRIBUTE_LEAVES = frozenset({"property_identifier", "field_identifier", "shorthand_field_identifier"})
_ATTRIBUTE_FIELDS = frozenset({"attribute", "property", "field", "member"})
_TYPE_LEAVES = frozenset({"type_identifier", "primitive_type", "predefined_type"})
_STRING = re.compile(
    r"string|char_lit|rune_lit|character|heredoc|raw_text|jsx_text|template_chars|regex|(?<!auto)quoted"
)
_INTERPOLATION = re.compile(r"interpolation|substitution|embedded|expansion")
_WITH_TEXT = frozenset({"token_tree", "command"})
"""What is given a string and may run it: a macro's arguments, a command."""

_TYPE_POSITION = re.compile(
    r"(?:^|_)type(?:s|_annotation|_arguments|_parameters|_list|_clause|_identifier|_query)?$"
    r"|heritage|superclass|base_class|base_list"
)
_NAMING = frozenset({"required_parameter", "optional_parameter", "rest_pattern", "type_predicate", "namespace_name"})
"""What names something else within a type: the `a` of `(a: B) => C`, the `a` of `a is B`, the `A` of `A\\B`."""

_WORD = re.compile(
    r"(?:.*_)?identifier|sym_name|class_name|id_name|word|variable|operator_name|value_name|name|symbol|constant"
)
_MORE_OF_A_WORD = b"$?!'-"
_SIGIL = b"$"
_LETTER_IN = frozenset({"javascript", "typescript", "tsx", "jsx", "java"})
"""What is part of a word in some languages, though no pattern for words takes it in."""

_WITH_MACROS = frozenset({"c", "cpp", "cuda", "objective-c"})
_QUOTED_IN_A_MACRO = re.compile(
    rb"""/\*(?:[^*]|\*(?!/)){0,400}\*/|//[^\n]*|"(?:[^"\\\n]|\\.){0,200}"|'(?:[^'\\\n]|\\.){0,200}'"""
)
_CALLED_IN_A_MACRO = re.compile(rb"\w+[ \t]{0,20}\(")
_NEAR_BYTES = 400

_STATEMENT = re.compile(r"statement|block|body|declaration$|definition$|arguments|argument_list")


class Uses:
    """Answers for one parsed file; make it once and ask for each place."""

    def __init__(self, parsed: Parsed) -> None:
        self._parts = [_Part(part) for part in (*parsed.injected, parsed)]
        self._parsed = parsed

    def at(self, line: int, column: int) -> Use:
        """What the name at a 1-based line and 0-based byte column is.

        Data and pages (JSON, HTML) know no strings in this sense: what is quoted there is what such a file says.
        """
        byte = self._parsed.line_starts[line - 1] + column
        return next(part for part in self._parts if part.covers(byte)).at(byte)

    def is_part(self, byte: int, name: bytes) -> bool:
        """Whether what is at `byte` is only part of a longer name: `get` in `$get`, `valid` in `valid?`, `btn` in `btn-small`."""
        text, end = self._parsed.text, byte + len(name)
        if not any(mark in _MORE_OF_A_WORD for mark in (*text[max(byte - 1, 0) : byte], *text[end : end + 1])):
            return False
        part = next(part for part in self._parts if part.covers(byte))
        if text[max(byte - 1, 0) : byte] == _SIGIL and part.grammar not in _LETTER_IN:
            return False  # it marks a variable there, and is no letter of its name
        leaf = part.leaf(byte)
        return bool(_WORD.fullmatch(leaf.type)) and (leaf.start_byte < byte or leaf.end_byte > end)


class _Part:
    """The uses in one language of a file."""

    def __init__(self, parsed: Parsed) -> None:
        self._parsed = parsed
        self.grammar = parsed.language.grammar
        self._names = {item.name_byte for item in definitions_of(parsed) if item.kind is not SymbolKind.DECLARATION}
        self._marked: dict[int, Use] = {}
        self._imports: list[tuple[int, int]] = []
        for _, captures in parsed.use_matches:
            for capture, nodes in captures.items():
                if capture in {"call", "type", "attribute", "definition"}:
                    self._marked.update((node.start_byte, Use(capture)) for node in nodes)
                elif capture in {"import", "import.name"}:
                    self._imports += [node.byte_range for node in nodes]
        self._data = parsed.language.kind in {LanguageKind.CONFIG, LanguageKind.DOCS, LanguageKind.MARKUP}

    def covers(self, byte: int) -> bool:
        """Whether the byte lies in what was parsed in this language."""
        ranges = self._parsed.tree.included_ranges
        return any(part.start_byte <= byte < part.end_byte for part in ranges)

    def at(self, byte: int) -> Use:
        """What the name that begins at this byte is; a comment before all, then an import, a definition, a string."""
        path = self._path(byte)
        leaf, field = path[-1]
        quoted = self._quoted(path)
        if leaf.type == "preproc_arg" or (leaf.child_count and self._parsed.language.name in _WITH_MACROS):
            return self._in_macro(leaf, byte)
        if quoted is Use.COMMENT:
            return quoted
        if any(start <= byte < end for start, end in self._imports):
            return Use.IMPORT
        if leaf.start_byte in self._names or byte in self._names:
            return Use.DEFINITION
        if quoted and not self._data and self._marked.get(byte) is not Use.ATTRIBUTE:  # no member: `T["name"]`
            return Use.OTHER if self._is_program(path, byte) else quoted
        return self._marked.get(leaf.start_byte) or _by_position(leaf, field, path)

    def leaf(self, byte: int) -> "Node":
        """The innermost node around a byte."""
        return self._parsed.root.descendant_for_byte_range(byte, byte + 1) or self._parsed.root

    def _path(self, byte: int) -> "Path":
        """The nodes around a byte from the root down, each with the field it fills in the one above."""
        cursor = self._parsed.tree.walk()
        path: Path = []
        while True:
            node = cursor.node
            if node is None or not node.start_byte <= byte < node.end_byte:
                break
            path.append((node, cursor.field_name or ""))
            if cursor.goto_first_child_for_byte(byte) is None:
                break
        return path or [(self._parsed.root, "")]

    @staticmethod
    def _quoted(path: "Path") -> Use | None:
        """Whether the leaf is in a comment or a string, unless the program takes over again inside it."""
        for node, _ in reversed(path):
            if "comment" in node.type:
                return Use.COMMENT
            if _INTERPOLATION.search(node.type):
                return None
            if _STRING.search(node.type):
                return Use.STRING if node is path[-1][0] or not shows_as_program(path[-1][0]) else None
        return None

    def _in_macro(self, leaf: "Node", byte: int) -> Use:
        """What a name is in the text of a macro of C, which is one leaf to the grammar, or in what it was not shown."""
        text = self._parsed.text
        begin, end = max(leaf.start_byte, byte - _NEAR_BYTES), min(leaf.end_byte, byte + _NEAR_BYTES)
        begin = max(text.rfind(b"\n", begin, byte) + 1, begin)
        for found in _QUOTED_IN_A_MACRO.finditer(text, begin, end):
            if found.start() <= byte < found.end():
                return Use.STRING if found[0][:1] in b"\"'" else Use.COMMENT
        return Use.CALL if _CALLED_IN_A_MACRO.match(text, byte, end) else Use.OTHER

    def _is_program(self, path: "Path", byte: int) -> bool:
        """Whether the string that the path ends in uses what it names at the byte."""
        nodes = [node for node, _ in reversed(path)]
        inner = dropwhile(lambda node: not _STRING.search(node.type), nodes)
        *_, string = takewhile(lambda node: _STRING.search(node.type), inner)
        around = next((node for node in nodes if node.type in _WITH_TEXT), string)
        return is_program(self._parsed.language.name, self._parsed.text, byte, around, string)


def _by_position(leaf: "Node", field: str, path: "Path") -> Use:
    """Attribute or type, as the node's own type, the field it fills and the nodes around it say."""
    if leaf.type == "package_identifier" or field == "length":
        return Use.OTHER
    if leaf.type in _TYPE_LEAVES:
        return Use.TYPE
    if leaf.type in _ATTRIBUTE_LEAVES or field in _ATTRIBUTE_FIELDS:
        return Use.ATTRIBUTE
    if field in {"type", "return_type", "superclass", "superclasses"}:
        return Use.TYPE
    if field in {"pattern", "name", ""} and len(path) > 1 and path[-2][0].type in _NAMING:
        return Use.OTHER
    for node, place in reversed(path[:-1][-5:]):
        if _TYPE_POSITION.search(node.type) or place in {"type", "return_type", "superclasses"}:
            return Use.TYPE
        if _STATEMENT.search(node.type) or place == "length":
            break
    return Use.OTHER


def structure_of(parsed: Parsed) -> Structure:
    """Symbols, imports and calls of a file and the parts injected in it, in order of lines."""
    outline = outline_of(parsed)
    parts = (parsed, *parsed.injected)
    imports = sorted((item for part in parts for item in _imports(part)), key=lambda item: item.line)
    calls = sorted((item for part in parts for item in _calls(part, outline)), key=lambda item: item.line)
    return Structure(outline, tuple(imports), tuple(calls))


def _imports(parsed: Parsed) -> list[Import]:
    found: dict[tuple[int, str], Import] = {}
    for _, captures in parsed.use_matches:
        for statement in captures.get("import", ())[:1]:
            text = " ".join(node_text(statement).split())[:_TEXT_CHARACTERS]
            for node in captures.get("import.module", (statement,)):
                module = node_text(node).strip("\"'`<> \n")
                found.setdefault((statement.start_byte, module), Import(module, statement.start_point.row + 1, text))
    return list(found.values())


def _calls(parsed: Parsed, whole: Outline) -> list[Call]:
    nodes = {node.start_byte: node for _, captures in parsed.use_matches for node in captures.get("call", ())}
    return [_call(node, whole) for _, node in sorted(nodes.items())]


def _call(node: "Node", whole: Outline) -> Call:
    around = symbol_at(whole, node.start_byte)
    name = split_qualified(node_text(node))[1]
    return Call(name, node.start_point.row + 1, around.qualified if around else "")


def symbol_at(whole: Outline, byte: int) -> Symbol | None:
    """The innermost symbol around a byte: the last that starts before it, or one of that one's parents."""
    index: int | None = bisect_right(whole.symbols, byte, key=lambda symbol: symbol.start_byte) - 1
    while index is not None and index >= 0:
        symbol = whole.symbols[index]
        if byte < symbol.end_byte:
            return symbol
        index = symbol.parent_index
    return None
