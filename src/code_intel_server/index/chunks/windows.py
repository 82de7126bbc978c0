"""Cutting lines where the layout suggests it: for text without a grammar, and for what a grammar leaves too long."""

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

CHARACTERS_PER_TOKEN = 3
"""How tokens are estimated: a token for every three visible characters of a line, and one for its indentation and end.

Word-piece tokenisers make a token of about three to four characters of source code, so this errs on the safe side.
"""

Best = Callable[[Sequence[int]], int]
"""The best of some lines (0-based, in order) to cut before."""

_FENCE = re.compile(r"^\s*(```|~~~)")
_ATX = re.compile(r"^(#{1,6})\s+")


class Span(NamedTuple):
    """Lines `start` to `end`, 0-based, `end` exclusive."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with the text below it; `trail` are the headings above it, outermost first, itself last."""

    span: Span
    trail: tuple[str, ...]


class TokenLines:
    """The lines of a file with the running sum of their tokens."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        if self.lines and not self.lines[-1]:
            self.lines.pop()
        visible = [len(line.strip()) for line in self.lines]
        self._sums = [0, *accumulate([1 + -(-count // CHARACTERS_PER_TOKEN) if count else 0 for count in visible])]

    def __len__(self) -> int:
        """How many lines there are; the end of the last one makes none."""
        return len(self.lines)

    def fitting(self, start: int, limit: int) -> int:
        """The end of the longest span from `start` on of at most `limit` tokens."""
        return bisect_right(self._sums, self._sums[start] + limit) - 1

    def tokens(self, span: Span) -> int:
        """The estimated tokens of a span."""
        return self._sums[span.end] - self._sums[span.start]

    def text(self, span: Span) -> str:
        """The lines of a span, without the last newline."""
        return "\n".join(self.lines[span.start : span.end])

    def trimmed(self, span: Span) -> Span:
        """The span without blank lines at its ends."""
        start, end = span.start, span.end
        while start < end and not self.lines[start].strip():
            start += 1
        while end > start and not self.lines[end - 1].strip():
            end -= 1
        return Span(start, end)


def by_layout(lines: TokenLines, span: Span) -> Best:
    """The best place to cut: before it blank lines, and little indentation; the lowest of equals."""

    def value(at: int) -> float:
        line = lines.lines[at]
        if not line.strip():
            return -1.0
        indent = len(line) - len(line.lstrip())
        after_blank = at > span.start and not lines.lines[at - 1].strip()
        closing = line.lstrip()[0] in ")}]"
        return (2.0 if after_blank else 0.0) - 0.25 * min(indent, 40) - (3.0 if closing else 0.0)

    return lambda candidates: max(reversed(candidates), key=value)


def cut(lines: TokenLines, span: Span, limit: int, best: Best) -> list[Span]:
    """Spans of at most `limit` tokens (a longer line is alone), cut at the best place of each second half."""
    spans: list[Span] = []
    start = span.start
    while start < span.end:
        end = min(max(start + 1, lines.fitting(start, limit)), span.end)
        if end < span.end:
            middle = start + max(1, (end - start) // 2)
            end = best(range(middle, end + 1))
        spans.append(Span(start, end))
        start = end
    return spans


def sections(lines: TokenLines) -> list[Section]:
    """A Markdown text by its headings; what is before the first heading is a section with an empty trail."""
    starts: list[tuple[int, tuple[str, ...]]] = [(0, ())]
    trail: dict[int, str] = {}
    fence = ""
    for at, line in enumerate(lines.lines):
        marker = _FENCE.match(line)
        if marker and (not fence or fence == marker[1]):
            fence = "" if fence else marker[1]
        heading = None if fence or marker else _heading(lines.lines, at)
        if heading:
            level, title = heading
            trail = {depth: text for depth, text in trail.items() if depth < level} | {level: title}
            starts.append((at, tuple(text for _, text in sorted(trail.items()))))
    ends = [at for at, _ in starts[1:]] + [len(lines)]
    return [Section(Span(at, end), path) for (at, path), end in zip(starts, ends, strict=True) if at < end]


def _heading(lines: Sequence[str], at: int) -> tuple[int, str] | None:
    found = _ATX.match(lines[at])
    if found:
        return len(found[1]), lines[at][found.end() :].rstrip().rstrip("#").rstrip()
    below = lines[at + 1].strip() if at + 1 < len(lines) else ""
    if len(below) >= 3 and set(below) in ({"="}, {"-"}) and lines[at].strip() and lines[at].strip()[0].isalnum():
        return (1 if below[0] == "=" else 2), lines[at].strip()
    return None
