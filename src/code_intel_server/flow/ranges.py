"""Which changed places a range of lines rests on, and where they went since (SPEC 4, READY impl).

A *spot* is a changed line (twice its number) or a gap in which lines were deleted (twice the number of the line before,
plus one). One change proves one item: so spots are compared, not ranges, which can be padded with unchanged lines; and
the spots of earlier reports are followed through later edits, which can move them.
"""

from collections.abc import Iterable, Iterator, Sequence

from code_intel_server.workspace.values import Hunk

Spots = frozenset[int]

_INDENTED = (".py", ".pyi", ".pyx", ".yml", ".yaml", ".coffee", ".nim", ".fs", ".hs", ".pug", ".haml", ".sass")


def meets(hunk: Hunk, start: int, end: int) -> bool:
    """Whether a range overlaps a hunk's new lines, or stands beside the place of a pure deletion."""
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


def only_white_space(hunk: Hunk, before: Sequence[str], after: Sequence[str], path: str) -> bool:
    """Whether a hunk changes nothing but white space; indentation counts where the language says something by it."""
    old = before[hunk.old_start - 1 : hunk.old_start - 1 + hunk.old_count] if hunk.old_count else ()
    new = after[hunk.new_start - 1 : hunk.new_start - 1 + hunk.new_count] if hunk.new_count else ()
    return [*_squeezed(old, path)] == [*_squeezed(new, path)]


def _squeezed(lines: Iterable[str], path: str) -> Iterator[str]:
    for line in lines:
        words = " ".join(line.split())
        if words:
            indent = len(line) - len(line.lstrip()) if path.endswith(_INDENTED) else 0
            yield " " * indent + words
