"""Where a file may be cut: definitions with what belongs to them, and borders between statements (SPEC 8, chunks)."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from code_intel_server.codebase.syntax.grammars import Parsed
from code_intel_server.codebase.syntax.values import Block, Outline, Symbol

if TYPE_CHECKING:
    import tree_sitter


def blocks_of(parsed: Parsed, outline: Outline) -> tuple[Block, ...]:
    """The definitions as nested blocks; siblings never share a line, nor do they share one with their parent's header."""
    leads = parsed.leads
    children: dict[int | None, list[int]] = {}
    for index, symbol in enumerate(outline.symbols):
        children.setdefault(symbol.parent_index, []).append(index)

    def build(parent: int | None, above: int) -> tuple[Block, ...]:
        """The blocks directly inside `parent`, those left out that begin no later than line `above`."""
        made: list[Block] = []
        for index in children.get(parent, ()):
            symbol = outline.symbols[index]
            if symbol.start_line <= above:
                continue
            inner = build(index, symbol.header_end_line)
            made.append(_block(index, symbol, lead_line(leads, symbol.start_line, above), inner))
            above = symbol.end_line
        return tuple(made)

    return build(None, 0)


def _block(index: int, symbol: Symbol, lead_line: int, children: tuple[Block, ...]) -> Block:
    return Block(
        symbol_index=index,
        lead_line=lead_line,
        start_line=symbol.start_line,
        header_end_line=symbol.header_end_line,
        end_line=symbol.end_line,
        start_byte=symbol.start_byte,
        end_byte=symbol.end_byte,
        children=children,
    )


def comment_ranges(parsed: Parsed) -> tuple[tuple[int, int], ...]:
    """The (start, end) bytes of every comment."""
    leads = (
        node
        for part in (parsed, *parsed.injected)
        for _, found in part.definition_matches
        for node in found.get("lead", ())
    )
    return tuple(
        (node.start_byte, node.end_byte) for node in leads if "comment" in node.type or node.type in {"pod", "haddock"}
    )


def lead_line(leads: dict[int, int], line: int, above: int) -> int:
    """The first line of the comments and decorators that directly precede a definition at `line`, which lies below `above`."""
    while (first := leads.get(line - 1)) is not None and first > above:
        line = first
    return line


class Borders:
    """Where statements, with their comments, begin after `start_line` up to `end_line` (1-based).

    The tree is walked only as far down as somebody asks: most of what is cut is cut between outer statements, and the
    inner ones are many. Asked from the top to the bottom: what lies above a question is forgotten.
    """

    def __init__(self, parsed: Parsed, start_line: int, end_line: int) -> None:
        self._parsed = parsed
        self._leads = parsed.leads
        self._low, self._high = parsed.line_end(start_line), parsed.line_end(end_line)
        self._depths: dict[int, int] = {}
        # All that begins between the lines lies within the smallest node around them: the rest of the file is not walked.
        around = parsed.root.named_descendant_for_point_range((start_line - 1, 0), (end_line, 0)) or parsed.root
        self._closed = [_Closed(_depth(around), around.start_byte, around.end_byte, around)]

    def outermost(self, first: int, last: int) -> list[int]:
        """The lines from `first` to `last` at which the outermost of the statements there begin, in order; none where none does."""
        start, end = self._parsed.line_end(first - 1), self._parsed.line_end(last)
        lines = range(first, last + 1)
        best = min((self._depths[line] for line in lines if line in self._depths), default=None)
        later: list[_Closed] = []
        inside: list[_Closed] = []

        def sort(nodes: Iterable[_Closed]) -> None:
            """Keep what overlaps the lines, put off what begins behind them, drop what ends before."""
            for node in nodes:
                if node.start >= end:
                    later.append(node)
                elif node.end > start:
                    heappush(inside, node)

        sort(self._closed)
        while inside and (best is None or inside[0].depth <= best):
            node = heappop(inside)
            found, below = self._opened(node)
            sort(below)
            if any(line in lines for line in found):
                best = node.depth if best is None else min(best, node.depth)
        self._closed = inside + later
        return [line for line in lines if best is not None and self._depths.get(line) == best]

    def _opened(self, node: "_Closed") -> "tuple[list[int], list[_Closed]]":
        """The lines at which the nodes directly inside begin, and those of them that hold lines of their own."""
        parsed, starts = self._parsed, self._parsed.line_starts
        found: list[int] = []
        below: list[_Closed] = []
        for child in node.node.named_children:
            start, end = child.start_byte, child.end_byte
            if (end <= self._low and start < self._low) or start >= self._high:
                continue
            line = bisect_right(starts, start)
            if start >= self._low and line - 1 not in self._leads and not parsed.text[starts[line - 1] : start].strip():
                self._depths[line] = min(node.depth, self._depths.get(line, node.depth))
                found.append(line)
            if end > parsed.line_end(line):
                below.append(_Closed(node.depth + 1, start, end, child))
        return found, below


@dataclass(frozen=True, slots=True, order=True)
class _Closed:
    """A node of several lines, at a depth, whose inside has not been looked at; the outer and upper come first."""

    depth: int
    start: int
    end: int
    node: "tree_sitter.Node" = field(compare=False)


def _depth(node: "tree_sitter.Node") -> int:
    depth = 0
    while (parent := node.parent) is not None:
        node, depth = parent, depth + 1
    return depth
