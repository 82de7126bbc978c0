"""Which changed places a range of lines rests on, and where they went since (SPEC 4, READY impl).

A *spot* is a changed line (twice its number) or a gap in which lines were deleted (twice the number of the line before,
plus one). One change proves one item: so spots are compared, not ranges, which can be padded with unchanged lines; and
the spots of earlier reports are followed through later edits, which can move them.
"""

from collections.abc import Iterable, Sequence

from code_intel_server.workspace.values import Hunk

Spots = frozenset[int]


def meets(hunk: Hunk, start: int, end: int) -> bool:
    """Whether a range overlaps a hunk's new lines, or is next to the place of a pure deletion."""
    if hunk.new_count:
        return start < hunk.new_start + hunk.new_count and hunk.new_start <= end
    return start <= hunk.new_start + 1 and hunk.new_start <= end


def overlap(hunk: Hunk, start: int, end: int) -> tuple[int, int]:
    """The part of a range that a hunk with new lines changed."""
    return max(start, hunk.new_start), min(end, hunk.new_start + hunk.new_count - 1)


def spots(hunks: Iterable[Hunk], start: int, end: int) -> Spots:
    """The changed places a range touches."""
    found: set[int] = set()
    for hunk in hunks:
        if not meets(hunk, start, end):
            continue
        if hunk.new_count:
            first, last = overlap(hunk, start, end)
            found.update(range(2 * first, 2 * last + 1, 2))
        else:
            found.add(2 * hunk.new_start + 1)
    return frozenset(found)


def lines_of(places: Spots) -> list[tuple[int, int]]:
    """First and last lines of what touches these places and no others: neighbours together, a gap by a line beside it."""
    runs: list[list[int]] = []
    for line in sorted({max(spot // 2, 1) for spot in places}):
        if runs and line == runs[-1][1] + 1:
            runs[-1][1] = line
        else:
            runs.append([line, line])
    return [(first, last) for first, last in runs]


def followed(hunks: Sequence[Hunk], start: int, end: int) -> Spots:
    """Where the lines and gaps of a range are after `hunks`; what was changed again since is new work and left out."""
    kept = set(range(2 * start - 1, 2 * end + 2))
    shifts: list[tuple[int, int]] = []
    for hunk in hunks:
        first, last = hunk.old_start, hunk.old_start + hunk.old_count - 1
        if hunk.old_count:
            kept.difference_update(range(2 * first - 1, 2 * last + 2))
        else:
            kept.discard(2 * hunk.old_start + 1)
        shifts.append((2 * (last if hunk.old_count else hunk.old_start), 2 * (hunk.new_count - hunk.old_count)))
    return frozenset(spot + sum(by for after, by in shifts if spot > after) for spot in kept)


def carried(hunks: Sequence[Hunk], start: int, end: int) -> tuple[int, int]:
    """The lines that a range has become after `hunks`, what took the place of some of them included."""
    return _carried(hunks, start, last=False), max(_carried(hunks, end, last=True), 1)


def _carried(hunks: Sequence[Hunk], line: int, *, last: bool) -> int:
    shift = 0
    for hunk in hunks:
        if hunk.old_start <= line < hunk.old_start + hunk.old_count:
            return max(hunk.new_start + (max(hunk.new_count - 1, 0) if last else 0), 1)
        if hunk.old_start + max(hunk.old_count - 1, 0) < line:
            shift += hunk.new_count - hunk.old_count
    return line + shift
