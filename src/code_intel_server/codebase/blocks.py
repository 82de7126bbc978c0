"""Where a file may be cut: definitions with what belongs to them, and borders between statements (SPEC 8, chunks)."""

from typing import TYPE_CHECKING

from code_intel_server.codebase.grammars import Parsed, begins_line, last_line
from code_intel_server.codebase.syntax import Block, Border, Outline, Symbol

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


def borders_of(parsed: Parsed, start_line: int, end_line: int) -> tuple[Border, ...]:
    """Lines after `start_line` up to `end_line` at which a statement (with its comments) begins, in order."""
    leads = parsed.leads
    found: dict[int, int] = {}
    # All that begins between the lines lies within the smallest node around them: the rest of the file is not walked.
    around = parsed.root.named_descendant_for_point_range((start_line - 1, 0), (end_line, 0)) or parsed.root
    pending = [(around, _depth(around))]
    while pending:
        node, depth = pending.pop()
        for child in node.named_children:
            first, last = child.start_point.row + 1, last_line(child)
            if last <= start_line or first > end_line:
                continue
            if first > start_line and begins_line(parsed.text, child) and first - 1 not in leads:
                found[first] = min(depth, found.get(first, depth))
            if last > first:
                pending.append((child, depth + 1))
    return tuple(Border(line, found[line]) for line in sorted(found))


def _depth(node: "tree_sitter.Node") -> int:
    depth = 0
    while (parent := node.parent) is not None:
        node, depth = parent, depth + 1
    return depth
