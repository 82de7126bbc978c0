"""What `structure` says about source text: symbols, outlines, uses and blocks, as plain values without a grammar in them."""

from dataclasses import dataclass
from enum import StrEnum


class SymbolKind(StrEnum):
    """What a definition defines. Queries name these after `@definition.`."""

    FUNCTION = "function"
    METHOD = "method"
    CONSTRUCTOR = "constructor"
    CLASS = "class"
    STRUCT = "struct"
    INTERFACE = "interface"
    TRAIT = "trait"
    IMPL = "impl"
    ENUM = "enum"
    UNION = "union"
    TYPE = "type"
    MODULE = "module"
    NAMESPACE = "namespace"
    OBJECT = "object"
    CONSTANT = "constant"
    VARIABLE = "variable"
    DECLARATION = "declaration"
    FIELD = "field"
    PROPERTY = "property"
    MEMBER = "member"
    MACRO = "macro"
    HEADING = "heading"
    SELECTOR = "selector"
    ID = "id"
    KEY = "key"
    SECTION = "section"
    TABLE = "table"
    VIEW = "view"
    INDEX = "index"
    TRIGGER = "trigger"
    TARGET = "target"
    STAGE = "stage"
    MESSAGE = "message"
    SERVICE = "service"
    RPC = "rpc"
    RESOURCE = "resource"
    LABEL = "label"

    @property
    def is_type(self) -> bool:
        """Whether functions directly inside are its methods."""
        return self in _TYPES

    @property
    def is_callable(self) -> bool:
        """Whether it has a body of statements."""
        return self in _CALLABLES


_TYPES = frozenset(
    {
        SymbolKind.CLASS,
        SymbolKind.STRUCT,
        SymbolKind.INTERFACE,
        SymbolKind.TRAIT,
        SymbolKind.IMPL,
        SymbolKind.ENUM,
        SymbolKind.UNION,
        SymbolKind.OBJECT,
    }
)
_CALLABLES = frozenset({SymbolKind.FUNCTION, SymbolKind.METHOD, SymbolKind.CONSTRUCTOR, SymbolKind.MACRO})


class Use(StrEnum):
    """What an occurrence of a name is."""

    DEFINITION = "definition"
    CALL = "call"
    IMPORT = "import"
    ATTRIBUTE = "attribute"
    TYPE = "type"
    COMMENT = "comment"
    STRING = "string"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Symbol:
    """One definition. Lines are 1-based and inclusive, bytes are offsets into the text that was parsed.

    `line` holds the name, `start_line` begins the definition (modifiers and, where the language writes them inside,
    annotations included), `header_end_line` is the last line before the body's first. `scope` is the qualified parent
    (`Outer.Inner`), '' at the top. `parent_index` points into the outline's symbols.
    """

    name: str
    kind: SymbolKind
    line: int
    start_line: int
    header_end_line: int
    end_line: int
    scope: str
    signature: str
    parent_index: int | None
    start_byte: int
    end_byte: int
    name_byte: int

    @property
    def qualified(self) -> str:
        """`Outer.Inner.name`."""
        return f"{self.scope}.{self.name}" if self.scope else self.name


@dataclass(frozen=True, slots=True)
class Outline:
    """The symbols of one file in order of appearance.

    `has_errors`: part of the text did not parse; the rest is still good. `complete` is False where the file was too big
    to parse, or has no grammar.
    """

    symbols: tuple[Symbol, ...]
    has_errors: bool = False
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Import:
    """One import: `module` as written without quotes, `text` the statement on one line."""

    module: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """One call: `name` without its receiver; `inside` is the qualified enclosing symbol, '' at the top."""

    name: str
    line: int
    inside: str


@dataclass(frozen=True, slots=True)
class Structure:
    """What `analyze_structure` answers about one file."""

    outline: Outline
    imports: tuple[Import, ...]
    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """A definition as the chunker wants it: where its comments and decorators begin, where its header and itself end.

    Lines are 1-based and inclusive; `lead_line <= start_line <= header_end_line <= end_line`. `symbol_index` points into
    the outline. `children` are the definitions directly inside that span lines of their own.
    """

    symbol_index: int
    lead_line: int
    start_line: int
    header_end_line: int
    end_line: int
    children: tuple["Block", ...]
