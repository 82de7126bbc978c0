"""The one door to the grammars: parses text and runs the queries of `queries/`.

One query file a language says what a definition is. The captures are

    @definition.<kind>   the node of a definition            @name    its name
    @declarator          what is around the name, however deep it is in there (C); that of a function without a body declares
    @own                 a name of its own that what is bound to @name has besides: no definition
    @body                its body, where that is not the node's field `body`
    @arity               what counts the arguments where @clause does not join functions that differ in that
    @clause              a definition in several parts, one below the other, that are one (clauses of a function)
    @flat                a definition that holds what comes up to the next of its kind (a heading, a stage)
    @selector            a definition whose name is all the words before its parameters, a colon behind each (Objective-C)
    @scope               a qualifier that the tree does not nest (Go's receiver)
    @lead                comments, decorators and attributes: they belong to the definition below them
    @inject.<language>   text in another language (a script in a page)
    @call  @import  @import.module  @type  @attribute        uses, after the line `;;; uses`
    @import.name         a name that is bound to what is imported, outside of the @import itself
    @definition          a name that is defined where nobody looks for a symbol (`f.g = function h() {}` calls itself `h`)

Patterns are in order of preference: where two find the same name, the first wins. A file that begins with
`;;; like <language>` adds that language's patterns to its own.
"""

import re
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from itertools import accumulate, repeat
from operator import add

import tree_sitter
import tree_sitter_language_pack

from code_intel_server.codebase.files.languages import Language
from code_intel_server.codebase.syntax.hazards import hazardous
from code_intel_server.codebase.syntax.masking import masked, mended

MAX_PARSED_BYTES = 1024 * 1024
"""Larger files are not parsed: SPEC 8 skips them too."""

_PARSE_SECONDS = 2.0
_READ_BYTES = 64 * 1024
_NODE_BYTES = 128
_QUICK_BYTES = 128 * 1024
_KEPT_BYTES = 256 * 1024
"""Of text; a tree takes up to a hundred times as much."""

_MOST_AT_THE_TOP = 30_000
_MOST_LOOSE_MARKS = 4000
_MOST_RANGES = 48
_MOST_ERRORS = 1000
_NEAR_BYTES = 512
_USES = ";;; uses"
_WIDE = frozenset({"clause", "flat"})
"""Captures whose meaning depends on the definitions before and behind."""

_local = threading.local()

Captures = Mapping[str, Sequence[tree_sitter.Node]]
Ranges = Sequence[tuple[int, int]]
"""Byte ranges, the end exclusive."""


@dataclass(frozen=True)
class _Queries:
    """The compiled halves of a query file."""

    definitions: tree_sitter.Query
    uses: tree_sitter.Query | None

    @cached_property
    def is_local(self) -> bool:
        """Whether a definition can be known without looking at the ones besides it, or into parts in other languages."""
        names = [self.definitions.capture_name(number) for number in range(self.definitions.capture_count)]
        return not any(name in _WIDE or name.startswith("inject.") for name in names)


class Parsed:
    """One parsed file. `text` is what the grammar saw; see `readable` for how it differs from the file's bytes.

    With `ranges` the queries tell only what touches or encloses one of them.
    """

    def __init__(self, text: bytes, language: Language, tree: tree_sitter.Tree, ranges: Ranges = ()) -> None:
        self.text = text
        self.language = language
        self.tree = tree
        self._ranges = ranges

    def near(self, bytes_: Sequence[int]) -> "Parsed":
        """This file as far as it concerns these bytes: they and all around them get the same answers, many times sooner.

        The whole file where its language does not allow that, or they are all over it.
        """
        queries = queries_of(self.language)
        ranges = _merged(bytes_)
        if queries is None or not queries.is_local or not 0 < len(ranges) <= _MOST_RANGES:
            return self
        part = Parsed(self.text, self.language, self.tree, ranges)
        part.line_starts = self.line_starts
        return part

    @property
    def root(self) -> tree_sitter.Node:
        """The node of the whole file."""
        return self.tree.root_node

    @cached_property
    def has_errors(self) -> bool:
        """Whether some part did not parse."""
        return self.tree.root_node.has_error

    @cached_property
    def is_rubble(self) -> bool:
        """Whether the text is so far from its language that asking for definitions is hopeless; nothing is found then."""
        return _is_rubble(self.tree.root_node)

    @cached_property
    def line_starts(self) -> tuple[int, ...]:
        """The byte at which each line begins."""
        lengths = map(
            add, map(len, self.text.split(b"\n")), repeat(1)
        )  # of thousands of files: nothing here runs Python
        return tuple(accumulate(lengths, initial=0))[:-1]

    def line_end(self, line: int) -> int:
        """The byte behind a 1-based line, its line feed included."""
        return self.line_starts[line] if line < len(self.line_starts) else len(self.text)

    @cached_property
    def definition_matches(self) -> tuple[tuple[int, Captures], ...]:
        """(pattern number, captures) of each match of the query file's first half."""
        queries = queries_of(self.language)
        return _run(queries.definitions, self.root, self._ranges) if queries and not self.is_rubble else ()

    @cached_property
    def leads(self) -> dict[int, int]:
        """Last line → first line of every comment, decorator or attribute that begins its line."""
        nodes = [
            node
            for part in (self, *self.injected)
            for _, found in part.definition_matches
            for node in found.get("lead", ())
        ]
        return {last_line(node): node.start_point.row + 1 for node in nodes if begins_line(self.text, node)}

    @cached_property
    def use_matches(self) -> tuple[tuple[int, Captures], ...]:
        """(pattern number, captures) of each match of the query file's second half."""
        queries = queries_of(self.language)
        return _run(queries.uses, self.root, self._ranges) if queries and queries.uses and not self.is_rubble else ()

    @cached_property
    def injected(self) -> tuple["Parsed", ...]:
        """The parts in other languages, each parsed over the whole text so that lines and offsets need no mending."""
        from code_intel_server.codebase.files.languages import LANGUAGES_BY_NAME

        ranges: dict[str, list[tree_sitter.Range]] = {}
        for _, captures in self.definition_matches:
            for capture, nodes in captures.items():
                if capture.startswith("inject."):
                    ranges.setdefault(capture.removeprefix("inject."), []).extend(node.range for node in nodes)
        parsed = (_parse_ranges(self.text, LANGUAGES_BY_NAME[name], parts) for name, parts in ranges.items())
        return tuple(part for part in parsed if part)


def has_queries(language: Language | None) -> bool:
    """Whether the language has a grammar and a query file."""
    return language is not None and bool(language.grammar) and _query_text(language.name) is not None


def parse(data: bytes, language: Language) -> Parsed | None:
    """The syntax tree of a file; None where it has no grammar that survives it, is over 1 MiB, or takes over 2 s of this thread's time.

    What was parsed last is kept: one lookup asks for the same file several times.
    """
    if not language.grammar or len(data) > MAX_PARSED_BYTES:
        return None
    kept = _recent.get((data, language.name))
    if kept is not None:
        return kept
    text = readable(data)
    if hazardous(text, language.name):
        return None
    tree = _best(_parser(language.grammar), text, language)
    return _recent.keep((data, language.name), Parsed(text, language, tree)) if tree else None


class _RecentTrees:
    """The trees of the texts that were parsed last, up to `_KEPT_BYTES` of text."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[bytes, str], Parsed] = OrderedDict()
        self._bytes = 0

    def get(self, key: tuple[bytes, str]) -> Parsed | None:
        """The tree of a text in a language, where it is kept."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def keep(self, key: tuple[bytes, str], parsed: Parsed) -> Parsed:
        """Keep a tree in place of the oldest ones."""
        with self._lock:
            self._bytes += 0 if key in self._kept else len(key[0])
            self._kept[key] = parsed
            while self._bytes > _KEPT_BYTES:
                (data, _), _ = self._kept.popitem(last=False)
                self._bytes -= len(data)
        return parsed


_recent = _RecentTrees()


def readable(data: bytes) -> bytes:
    """The text as UTF-8 of the same lines: UTF-16 is re-coded, other bytes that are no UTF-8 become question marks.

    Offsets stay those of the file except for UTF-16.
    """
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace").encode("utf-8", "replace")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return re.sub("[\udc80-\udcff]", "?", data.decode("utf-8", "surrogateescape")).encode("utf-8")
    return data


def node_text(node: tree_sitter.Node) -> str:
    """What the node spans."""
    raw = node.text
    return raw.decode("utf-8", "replace") if raw else ""


def begins_line(text: bytes, node: tree_sitter.Node) -> bool:
    """Whether nothing but white space is before the node on its line."""
    start = node.start_byte
    return not text[start - node.start_point.column : start].strip()


def last_line(node: tree_sitter.Node) -> int:
    """1-based last line; a node that ends with its line's newline does not reach into the next."""
    start, end = node.start_point, node.end_point
    return end.row if end.column == 0 and end.row > start.row else end.row + 1


@cache
def queries_of(language: Language) -> _Queries | None:
    """The compiled queries of a language; None where it has no query file."""
    text = _query_text(language.name)
    if text is None or not language.grammar:
        return None
    grammar = _grammar(language.grammar)
    definitions, _, uses = text.partition(_USES)
    return _Queries(tree_sitter.Query(grammar, definitions), tree_sitter.Query(grammar, uses) if uses.strip() else None)


@cache
def _query_text(name: str) -> str | None:
    path = files("code_intel_server.codebase").joinpath("queries", f"{name}.scm")
    if not path.is_file():
        return None
    text = path.read_text(encoding="utf-8")
    base = re.match(r";;; like (\S+)\n", text)
    return text if base is None else _joined(_query_text(base[1]) or "", text)


def _joined(base: str, own: str) -> str:
    """Both halves of two query files, the own patterns first."""
    own_definitions, _, own_uses = own.partition(_USES)
    definitions, _, uses = base.partition(_USES)
    return f"{own_definitions}\n{definitions}\n{_USES}\n{own_uses}\n{uses}"


def _run(query: tree_sitter.Query, root: tree_sitter.Node, ranges: Ranges) -> tuple[tuple[int, Captures], ...]:
    """The matches; what touches several of the ranges may come several times."""
    cursor = tree_sitter.QueryCursor(query)
    if not ranges:
        return tuple(cursor.matches(root))
    found: list[tuple[int, Captures]] = []
    for start, end in ranges:
        cursor.set_byte_range(start, end)
        # A pattern that spells out a parent matches below every parent around the range, wherever the match lies.
        found += [match for match in cursor.matches(root) if _touches(match[1], start, end)]
    return tuple(found)


def _touches(captures: Captures, start: int, end: int) -> bool:
    return any(node.start_byte < end and node.end_byte > start for nodes in captures.values() for node in nodes)


def _merged(bytes_: Sequence[int]) -> list[tuple[int, int]]:
    """Ranges of one byte each, those that lie near each other as one."""
    ranges: list[tuple[int, int]] = []
    for byte in sorted(bytes_):
        if ranges and byte - ranges[-1][1] <= _NEAR_BYTES:
            ranges[-1] = (ranges[-1][0], byte + 1)
        else:
            ranges.append((byte, byte + 1))
    return ranges


def _is_rubble(root: tree_sitter.Node) -> bool:
    """Whether an error node holds thousands of loose marks, over which a query takes the square of their number.

    Nor is a text read that has tens of thousands of statements at its top: no person wrote it.
    """
    if root.named_child_count > _MOST_AT_THE_TOP:
        return True
    pending = [root] if root.has_error else []
    while pending:
        node = pending.pop()
        if node.child_count - node.named_child_count > _MOST_LOOSE_MARKS and node.is_error:
            return True
        if node.child_count <= _MOST_LOOSE_MARKS:
            pending += [child for child in node.children if child.has_error]
    return False


def matches(parsed: Parsed, text: str) -> Iterator[Captures]:
    """What another query finds in a parsed file: the captures of each match. The query is kept compiled."""
    if parsed.is_rubble:
        return
    cursor = tree_sitter.QueryCursor(_compiled(parsed.language.grammar, text))
    yield from (captures for _, captures in cursor.matches(parsed.root))


@cache
def _compiled(grammar: str, text: str) -> tree_sitter.Query:
    return tree_sitter.Query(_grammar(grammar), text)


@cache
def _grammar(name: str) -> tree_sitter.Language:
    return tree_sitter.Language(tree_sitter_language_pack.get_binding(name))  # type: ignore[arg-type]


def _parser(grammar: str) -> tree_sitter.Parser:
    """This thread's parser: a parser holds state while it parses, so threads do not share one."""
    parsers: dict[str, tree_sitter.Parser] = _local.__dict__.setdefault("parsers", {})
    if grammar not in parsers:
        parsers[grammar] = tree_sitter.Parser(_grammar(grammar))
    return parsers[grammar]


def _best(parser: tree_sitter.Parser, text: bytes, language: Language) -> tree_sitter.Tree | None:
    """The tree of a whole text, or of the text mended where that has fewer errors; both within one time limit."""
    deadline = time.thread_time() + _PARSE_SECONDS
    readily = masked(text, language.name)
    tree = _tree(parser, readily, deadline)
    if tree is None or not tree.root_node.has_error:
        return tree
    otherwise = mended(readily, language.name)
    better = _tree(parser, otherwise, deadline) if otherwise != readily else None
    return better if better is not None and _errors(better.root_node) < _errors(tree.root_node) else tree


def _errors(root: tree_sitter.Node) -> int:
    """How many parts of a text did not parse, each counted once; no more than a thousand are distinguished."""
    count, pending = 0, [root]
    while pending and count < _MOST_ERRORS:
        node = pending.pop()
        if node.is_error or node.is_missing:
            count += 1
        elif node.has_error:
            pending += node.children
    return count


def _tree(parser: tree_sitter.Parser, text: bytes, deadline: float) -> tree_sitter.Tree | None:
    """Parse until this thread has taken as much time: the recovery from errors can take minutes over a long text that was made for it."""
    if len(text) <= _QUICK_BYTES:
        return parser.parse(text)
    view = memoryview(text)
    piece = _READ_BYTES

    def read(offset: int, _: object) -> bytes:
        """The next piece of the text for the parser, which looks at the clock between two of them."""
        return bytes(view[offset : offset + piece])

    try:
        return parser.parse(read, progress_callback=lambda _, __: time.thread_time() > deadline)
    except ValueError:
        parser.reset()
        return None
    finally:
        # The tree keeps the function: from now on it is asked for the text of single nodes, by every query with a
        # condition for thousands of them.
        piece = _NODE_BYTES


def _parse_ranges(text: bytes, language: Language, ranges: list[tree_sitter.Range]) -> Parsed | None:
    if hazardous(text, language.name):
        return None
    parser = tree_sitter.Parser(_grammar(language.grammar), included_ranges=ranges)
    tree = _tree(parser, text, time.thread_time() + _PARSE_SECONDS)
    return Parsed(text, language, tree) if tree else None
