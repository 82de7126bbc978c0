"""Tests that stand as before and are got around: left early, asserting under a condition or where nothing calls, replaced (SPEC 4).

Only tests that both versions have are looked at: a new one takes nothing away, however it is built.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from code_intel_server.codebase.by_test import IS_TEST, Key, key_at, matched
from code_intel_server.codebase.expectations import Expectation
from code_intel_server.codebase.text import counted

if TYPE_CHECKING:
    from code_intel_server.codebase.reached import Reached, Unit

_PUT_ON = re.compile(
    rb"^[ \t]*+(?:@[ \t]*+([\w.]++)|(?P<test>[Tt]est\w*+)[ \t]*+=[ \t]*+([\w.]++|\()(?=[^\n]{0,200}\b(?P=test)\b))",
    re.MULTILINE,
)
_DEFINED = re.compile(
    rb"^[ \t]*+(?:(?:async[ \t]++)?(?:def|class)[ \t]++(\w++)|(\w++)[ \t]*+=(?!=)([^\n]{0,200}))", re.MULTILINE
)
_IMPORTED = re.compile(rb"^from[ \t]++([\w.]++)[ \t]++import[ \t]++(\([^()]{0,2000}+\)|[^\n]{0,500}+)", re.MULTILINE)
_OF_TESTS = re.compile(rb"\..*|(?:.*\.)?(?:tests?|conftest|\w*(?:utils?|helpers?))(?:\..*)?")
_REPLACES = re.compile(rb"\blambda\b|\bskip|\bxfail\b")
_ONLY_MARKS = re.compile(rb"\breturn[ \t]++(?:pytest\.)?mark\.(?!skip|xfail)")
_WORD = re.compile(rb"\w++")
_KEEPS_HELPERS = (".py", ".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".mts", ".cts")
"""Languages in which what a file of tests defines is called in that file, unless it is exported."""
_CALLED_BY_OTHERS = re.compile(rb"pytest_|set_?[uU]p|tear_?[dD]own|load_tests|before|after")
_EXPORTED = re.compile(rb"\bexport(?:[ \t]++default)?[ \t]++\Z")
_LONGEST_EXPORT = 20
_LONGEST_DEFINITION = 4_000
_SAID_AT_MOST = 3


def got_around(
    path: str, before: "Reached", after: "Reached", old: Sequence[Expectation], new: Sequence[Expectation]
) -> tuple[str, ...]:
    """What keeps tests that were there from failing, one short phrase each; `old` and `new` are what they expect."""
    same = matched(_keys(before.units), _keys(after.units))
    was, now = _Tests(before, old), _Tests(after, new)
    early = hidden = 0
    for one, other in same:
        early += max(now.left_early[other] - was.left_early[one], 0)
        less = was.asserted[one, False] - now.asserted[other, False]
        hidden += max(min(less, now.asserted[other, True] - was.asserted[one, True]), 0)
    uncalled = _no_more_called(before, after, was, now) if path.endswith(_KEEPS_HELPERS) else 0
    put_on = _put_on(before, after, same) if path.endswith(".py") else []
    return (
        *([f"{early} more that leave a test before it asserts"] if early else []),
        *([f"{counted(hidden, 'assertion')} more under a condition"] if hidden else []),
        *([f"{counted(uncalled, 'assertion')} more that nothing calls"] if uncalled else []),
        *([f"tests replaced by what `{'`, `'.join(put_on[:_SAID_AT_MOST])}` gives"] if put_on else []),
    )


def _keys(units: Sequence["Unit"]) -> list[Key]:
    return [(unit.group, unit.name) for unit in units]


class _Tests:
    """How often each test of a text may be left before it asserts, and how many of its assertions are under a condition."""

    def __init__(self, read: "Reached", found: Sequence[Expectation]) -> None:
        """Count them all, in time that grows with the text alone."""
        starts = [unit.start for unit in read.units]
        last: dict[Key, int] = {}
        self.asserted: Counter[tuple[Key, bool]] = Counter()
        self.left_early: Counter[Key] = Counter()
        for one in found:
            key = key_at(read.units, starts, one.start)
            if key is not None and one.asserts:
                last[key] = one.start
                begun = starts[bisect_right(starts, one.start) - 1]
                self.asserted[key, _is_inside(read.conditional, one.start, begun)] += 1
        for guard in read.guards:
            key = key_at(read.units, starts, guard)
            if key is not None and guard < last.get(key, 0):
                self.left_early[key] += 1


def _is_inside(ranges: Sequence[tuple[int, int]], place: int, begun: int) -> bool:
    """Whether a place is in one of some ranges that begins behind `begun`: a test that is in one as a whole counts as such."""
    at = bisect_left(ranges, (place + 1, 0)) - 1
    return at >= 0 and begun < ranges[at][0] and place < ranges[at][1]


def _no_more_called(before: "Reached", after: "Reached", was: _Tests, now: _Tests) -> int:
    """How many assertions stand in functions that no test calls, and did not before; a test by another name is a test fewer."""
    uncalled = _uncalled(before, was)
    found = _uncalled(after, now) - uncalled
    if not found:
        return 0
    names = {unit.name for unit in after.units}
    gone = {name for (_, name), _ in was.asserted if name not in names and (IS_TEST.match(name) or name in uncalled)}
    return found.total() if len(found) > len(gone) else 0


def _uncalled(read: "Reached", tests: _Tests) -> "Counter[bytes]":
    """How much is asserted in each function that is no test and that nothing else in the file names."""
    asserted: Counter[bytes] = Counter()
    for ((group, name), _), count in tests.asserted.items():
        asserted[name] += 0 if group or IS_TEST.match(name) else count
    asserted = +asserted
    named = Counter(_WORD.findall(read.alive)) if asserted else asserted
    for start, end, name, group in read.units:
        if name not in asserted or group:
            continue
        handed_on = read.source.startswith(b"@", start) or _EXPORTED.search(
            read.source, max(start - _LONGEST_EXPORT, 0), start
        )
        own = _WORD.findall(read.alive[start:end]).count(name)
        if handed_on or named[name] > own or _CALLED_BY_OTHERS.match(name):
            del asserted[name]
    return asserted


# -- decorators of Python --------------------------------------------------------------------------------------------


def _put_on(before: "Reached", after: "Reached", same: Sequence[tuple[Key, Key]]) -> list[str]:
    """The decorators that tests have now and had not, where what this project defines may take the test's place."""
    was, now = _decorators(before), _decorators(after)
    more: Counter[bytes] = Counter()
    for one, other in ((None, None), *same):
        more += now.get(other, Counter()) - was.get(one, Counter())
    defined = _definitions(after) if more or now else {}
    found = [name for name in more if _may_replace(name, defined)]
    worn = {name for names in now.values() for name in names}
    changed = _definitions(before) if worn & defined.keys() else {}
    found += [
        name
        for name in worn - {*found}
        if name in defined and changed.get(name, defined[name]) != defined[name] and _may_replace(name, defined)
    ]
    return sorted(name.decode("utf-8", "replace") for name in found)


def _decorators(read: "Reached") -> dict[Key | None, "Counter[bytes]"]:
    """How often each decorator stands on each test, and under None on classes; given to one by its name as well."""
    starts = [unit.start for unit in read.units]
    by_name = {unit.name: (unit.group, unit.name) for unit in read.units}
    found: dict[Key | None, Counter[bytes]] = {}
    for put in _PUT_ON.finditer(read.alive):
        key = by_name.get(put["test"]) if put["test"] else key_at(read.units, starts, put.start())
        if key is None or IS_TEST.match(key[1]):
            found.setdefault(key, Counter())[put[1] or put[3]] += 1
    return found


def _definitions(read: "Reached") -> dict[bytes, bytes]:
    """What the names are bound to that a text defines, or brings in from where tests keep their helpers."""
    found: dict[bytes, bytes] = {}
    for said in _IMPORTED.finditer(read.alive):
        if _OF_TESTS.fullmatch(said[1]):
            found |= dict.fromkeys(_WORD.findall(said[2]), b"skip")
    ends = {unit.start: unit.end for unit in read.units}
    for said in _DEFINED.finditer(read.alive):
        start, name = said.start(), said[1] or said[2]
        begun = said.end() - len(said[0].lstrip())
        end = min(ends.get(begun, start + len(said[0])), start + _LONGEST_DEFINITION)
        found[name] = said[3] if said[2] else b"lambda " + read.source[begun:end]
    return found


def _may_replace(name: bytes, defined: dict[bytes, bytes]) -> bool:
    """Whether a decorator is of this project and does more than to mark or to feed a test."""
    text = b"lambda" if name == b"(" else defined.get(name.partition(b".")[0], b"")
    return _REPLACES.search(text) is not None and not _ONLY_MARKS.search(text)
