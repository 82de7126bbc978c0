"""What lets an assertion pass more than before: a margin, an `or`, an order that counts no more (SPEC 4, PRE_COMMIT).

Nothing it named is gone, so it is told by what it has gained: against the assertion of the same test that reads the same
without it, or where a test has more of such assertions than it has new ones.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from code_intel_server.codebase.by_test import IS_TEST, Pair, Paired, paired
from code_intel_server.codebase.expectations import Expectation, in_words, no_longer_expected
from code_intel_server.codebase.text import counted

if TYPE_CHECKING:
    from code_intel_server.codebase.reached import Reached

_MARGIN = re.compile(
    rb"\b(?:abs|rel|[ra]_?tol|(?:abs|rel)_tol|max_relative|max_abs_diff|places|delta|decimal|significant|tolerance|absoluteTolerance|epsilon|accuracy|precision)"
    rb"[ \t]*+(?:=(?!=)|:(?!:))[ \t]*+[-\w.+]*+"
    rb"|\b(?:toBeCloseTo|closeTo)\([^(),\n]{0,100}+(?:\([^()\n]{0,100}+\))?,[ \t]*+-?\d[\w.]*+"
)
# Whatever the text, these are a few words, so that counting them takes time with the text alone.
_LOOSE = re.compile(
    rb"\b(?:approx|isclose|allclose|almost_equal|plusOrMinus|InDelta|InEpsilon|be_within|isCloseTo|within|offset)\b(?=\()|\bassert(?:_almost_equal|AlmostEquals?)\b"
    rb"|\b(?:sorted|set|frozenset|Counter|any|round|int|floor)\((?!\))"
    rb"|\.(?:sort|sorted|sort_by|to_set|uniq|toLowerCase|toUpperCase|trim|strip|downcase|lower|upper|casefold|ToLower|ToUpper|TrimSpace)\b(?=\(|[ \t)!])"
    rb"|\bexpect\.(?:any|anything|(?:object|array|string)Containing|stringMatching|closeTo)\(|\b(?:mock\.)?ANY\b"
)
_NOT = re.compile(rb"\bassert_?[fF]alse\b|(?<!is )\bnot\b(?! in\b)|(?<=[\s(&|])!(?=[\w($@])")
_EITHER, _ALL = (
    re.compile(rb"\b(?:or|else)\b|(?:(?<=[\w)\]'\"])|(?<=[\w)\]'\"] )(?<!\bmove ))\|\|"),
    re.compile(rb"\band\b|&&"),
)
_TURNED = b"!"
"""Without it an assertion says the opposite, too; of `not` it is told as of any value."""
_JOINED = re.compile(rb"\b(?:and|or)\b|&&|\|\||\ball\(")
_LAST = re.compile(rb",[^,]{0,60}\)")
_TAKES_A_MARGIN = re.compile(
    rb"\b(?:assert(?:Array)?Equals|Assert\.(?:Are)?Equal|assert_in_delta|assert\w{0,20}[aA]lmost_?[eE]quals?)\b"
)


def expected_less(
    before: "Reached", after: "Reached", old: Sequence[Expectation], new: Sequence[Expectation], *, in_all: bool
) -> tuple[str, ...]:
    """What the assertions of a test file, `old` and `new`, name no more, and what lets them pass more: one short phrase each.

    Where a test is gone, what it expected is gone with it: then not `in_all` of the file, but only in the tests that are left.
    """
    found = paired(before, after, old, new)
    gone = no_longer_expected(found, old if in_all else (), new)
    fewer = _fewer(found) if in_all else 0
    pairs = (*found.tests, found.rest)
    loose = dict.fromkeys(word for pair in pairs for word in _gained(pair, in_all=pair is not found.rest))
    phrases = (("expects no longer", gone), ("lets pass what it did not:", in_words([*loose])))
    lost = [f"{counted(fewer, 'assertion')} fewer in tests that stay"] if fewer else []
    return (*lost, *(f"{phrase} {said}" for phrase, said in phrases if said))


def _fewer(found: Paired) -> int:
    """How many assertions the tests that both versions have lost, which neither moved nor may stand in a new helper or table."""
    helpers = [group for name, group in found.named.items() if not IS_TEST.match(name)]
    if any(one.asserts for group in helpers for one in group):
        return 0
    kept = [pair for pair in found.tests if all(one.asserts or one.bound for one in pair.new)]
    return sum(max(sum(one.asserts for one in pair.old) - sum(one.asserts for one in pair.new), 0) for pair in kept)


def _gained(pair: Pair, *, in_all: bool) -> list[bytes]:
    """The words by which the assertions of a test let more pass; where not `in_all`, only beside what reads the same otherwise."""
    if not pair.old:
        return []
    twins: dict[bytes, list[Expectation]] = {}
    for one in reversed(pair.old):
        twins.setdefault(_skeleton(one), []).append(one)
    more: Counter[bytes] = Counter()
    left: list[Expectation] = []
    for one in pair.new:
        if found := twins.get(_skeleton(one)):
            was, now = _loose(found.pop()), _loose(one)
            more += (now - was) + Counter({_TURNED: max(was[_TURNED] - now[_TURNED], 0)})
        else:
            left.append(one)
    if in_all:
        others = [one for found in twins.values() for one in found]
        news = [loose for one in left if (loose := _loose(one))]
        spare = max(len(left) - len(others), 0)
        if len(news) - sum(1 for one in others if _loose(one)) > spare:
            more += sum(news, Counter()) - sum(map(_loose, others), Counter())
    return [*more]


def _loose(one: Expectation) -> "Counter[bytes]":
    """The words of an expectation that let more pass, without those handed to the code under test."""
    refusal = one.is_refusal
    begins = [begun for begun, _ in one.handed_over]
    found: Counter[bytes] = Counter()
    for pattern in (_MARGIN, _LOOSE, _NOT, _ALL if refusal else _EITHER):
        for word in pattern.finditer(one.code):
            at = bisect_right(begins, word.start() - 1) - 1
            if at < 0 or word.start() >= one.handed_over[at][1]:
                found[_named(word[0])] += 1
    if one.has_margin and _TAKES_A_MARGIN.match(one.code):
        found[b"a margin"] += 1
    return found


def _named(word: bytes) -> bytes:
    """What lets more pass, without how much."""
    return b"not" if _NOT.search(word) else re.split(rb"[=:(]", word)[0].strip()


def _skeleton(one: Expectation) -> bytes:
    """The text of an expectation without what lets more pass, brackets and layout."""
    text = _LAST.sub(b")", one.text) if one.has_margin and _TAKES_A_MARGIN.match(one.code) else one.text
    for pattern in (_MARGIN, _LOOSE, _NOT, _JOINED):
        text = pattern.sub(b"", text)
    return text.translate(None, b" \t\r\n(),")
