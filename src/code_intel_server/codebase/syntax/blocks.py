"""Where a file may be cut: definitions with what belongs to them, and borders between statements (SPEC 8, chunks)."""

from code_intel_server.codebase.syntax.grammars import Parsed, begins_line
from code_intel_server.codebase.syntax.values import Block, Outline, Symbol


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
        children=children,
    )


def lead_line(leads: dict[int, int], line: int, above: int) -> int:
    """The first line of the comments and decorators that directly precede a definition at `line`, which lies below `above`."""
    while (first := leads.get(line - 1)) is not None and first > above:
        line = first
    return line


class Borders:
    """Where statements, with their comments, begin after `start_line` up to `end_line` (1-based)."""

    def __init__(self, parsed: Parsed, start_line: int, end_line: int) -> None:
        self._depths: dict[int, int] = {}
        low, high = parsed.line_end(start_line), parsed.line_end(end_line)
        pending = [(parsed.root, 0)]
        while pending:
            node, depth = pending.pop()
            for child in node.named_children:
                start, end = child.start_byte, child.end_byte
                if end <= low or start >= high:
                    continue
                line = child.start_point.row + 1
                if start >= low and line - 1 not in parsed.leads and begins_line(parsed.text, child):
                    self._depths[line] = min(depth, self._depths.get(line, depth))
                if end > parsed.line_end(line):
                    pending.append((child, depth + 1))

    def outermost(self, first: int, last: int) -> list[int]:
        """The lines from `first` to `last` at which the outermost of the statements there begin, in order; none where none does."""
        depths = {line: self._depths[line] for line in range(first, last + 1) if line in self._depths}
        best = min(depths.values(), default=None)
        return [line for line, depth in depths.items() if depth == best]
