"""Which assertions of two versions of a test file belong together: those of a test that both have by its name (SPEC 4, PRE_COMMIT).

What stands in both word for word, wherever, is left out: it stayed or was moved. What belongs to no test that both have is
kept apart: it is compared by the whole file alone.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from code_intel_server.codebase.expectations import Expectation

if TYPE_CHECKING:
    from code_intel_server.codebase.reached import Reached, Unit

IS_TEST = re.compile(rb"[Tt]est|['\"`]")
"""The names of tests: in languages that call them so, or where a string says what they test."""
_WORD = re.compile(rb"\w+")

Key = tuple[int, bytes]
"""The group and the name of a test."""

_Grouped = dict[Key, list[Expectation]]


@dataclass(slots=True)
class Pair:
    """What one test expected that it does not any more, and what it expects now that it did not."""

    old: list[Expectation] = field(default_factory=list)
    new: list[Expectation] = field(default_factory=list)

    def twins(self) -> Iterator[tuple[list[Expectation], list[Expectation]]]:
        """What is expected of the same, before and now, where that is not fewer times."""
        frames: dict[bytes, tuple[list[Expectation], list[Expectation]]] = {one.frame: ([], []) for one in self.old}
        for number, side in enumerate((self.old, self.new)):
            for one in side:
                if one.frame in frames:
                    frames[one.frame][number].append(one)
        return ((old, new) for old, new in frames.values() if len(new) >= len(old))


@dataclass(slots=True)
class Paired:
    """The changed expectations of two versions: `tests` of those that both have, `rest` of all others together.

    `named` are the expectations that are new under a name which others may use: a constant, or a new function.
    """

    tests: list[Pair]
    rest: Pair
    named: dict[bytes, list[Expectation]]

    def brought_by_name(self, pair: Pair) -> Iterator[Expectation]:
        """What is new elsewhere and used by name in what a test expects now."""
        for word in {word for one in pair.new for word in _WORD.findall(one.text)}:
            yield from self.named.get(word, ())


def paired(before: "Reached", after: "Reached", old: Sequence[Expectation], new: Sequence[Expectation]) -> Paired:
    """Put the expectations of a test beside those of the same test; in time that grows with the text alone."""
    here, there = _grouped(before.units, old), _grouped(after.units, new)
    tests = [Pair(here.pop(one), there.pop(other)) for one, other in matched(here, there)]
    rest = Pair([one for group in here.values() for one in group], [one for group in there.values() for one in group])
    every = [*tests, rest]
    for pair in every:
        _leave_out(_in_both(pair.old, pair.new), pair)
    _leave_out(
        _in_both([one for pair in every for one in pair.old], [one for pair in every for one in pair.new]), *every
    )
    named: dict[bytes, list[Expectation]] = {name: [*found] for (_, name), found in there.items()}
    for one in (one for pair in every for one in pair.new if one.bound):
        named.setdefault(one.bound, []).append(one)
    return Paired([pair for pair in tests if pair.old or pair.new], rest, named)


def _grouped(units: Sequence["Unit"], found: Sequence[Expectation]) -> _Grouped:
    """What is expected by each test, and outside of them all under no name."""
    grouped: _Grouped = {(0, b""): []}
    for each in units:
        grouped[(each.group, each.name)] = []
    starts = [unit.start for unit in units]
    for one in found:
        grouped[key_at(units, starts, one.start) or (0, b"")].append(one)
    return grouped


def key_at(units: Sequence["Unit"], starts: Sequence[int], place: int) -> Key | None:
    """The test in which a place is; `starts` are those of the units."""
    at = bisect_right(starts, place) - 1
    return (units[at].group, units[at].name) if at >= 0 and place < units[at].end else None


def _in_both(old: Sequence[Expectation], new: Sequence[Expectation]) -> "Counter[bytes]":
    return Counter(one.key for one in old) & Counter(one.key for one in new)


def _leave_out(both: "Counter[bytes]", *pairs: Pair) -> None:
    """Take from both sides what stands in both, as often as it does."""
    left, right = both.copy(), both.copy()
    for pair in pairs:
        pair.old, pair.new = _without(pair.old, left), _without(pair.new, right)


def _without(found: Sequence[Expectation], both: "Counter[bytes]") -> list[Expectation]:
    kept = []
    for one in found:
        if both[one.key] > 0:
            both[one.key] -= 1
        else:
            kept.append(one)
    return kept


def matched(here: Iterable[Key], there: Iterable[Key]) -> list[tuple[Key, Key]]:
    """The tests of both sides that are the same: by group and name, or else by a name that only one of each side has."""
    ours, theirs = dict.fromkeys(here), dict.fromkeys(there)
    both = [key for key in ours if key in theirs]
    left, right = _once(key for key in ours if key not in theirs), _once(key for key in theirs if key not in ours)
    return [*((key, key) for key in both), *((left[name], right[name]) for name in left if name in right)]


def _once(keys: Iterable[Key]) -> dict[bytes, Key]:
    """By its name alone each test whose name only one has."""
    every = [*keys]
    names = Counter(name for _, name in every)
    return {key[1]: key for key in every if names[key[1]] == 1}
