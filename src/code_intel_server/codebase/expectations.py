"""What the assertions of a test file expect: a change after which they no longer name a value is asked for a reason (SPEC 4, PRE_COMMIT).

The quickest way to a green test is another expected value. Compared are the values (numbers, strings, constants) and the
ways of comparing (`==`, `is not`, `toBe`) in assertions, in the tables that feed them and in what is called `expected`: of
names only those of errors, so a renaming says nothing, and not their order, so neither does another layout.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from code_intel_server.codebase.meanings import keys

if TYPE_CHECKING:
    from code_intel_server.codebase.by_test import Paired
    from code_intel_server.codebase.reached import Reached

_SAID_AT_MOST = 3
_LONGEST_STATEMENT = 4_000
_LONGEST_SAID = 40

# Each takes time in proportion to the text, as those of `weakening` do.
_STATEMENTS = re.compile(
    rb"\bassert\w*!?|\bexpect\w*+(?=\s*+[({.])|\bExpect\(|\b(?:is_expected|should)\b|\.Should\w*+\(|\brequire\.\w++\(|\bXCTAssert\w*+"
    rb"|\bAssert(?:\.|::)\w++|\b(?:EXPECT|ASSERT|REQUIRE|CHECK)\w*+\s*+\(|\bt\.(?:is|ok|equal|deepEqual)\(|\brefute\w*+|(?:\.|\b)(?:must|wont)_\w++"
    rb"|\b(?:parametrize|raises|InlineData|TestCase|(?:Csv|Value)Source)\(|\.each\(|\bshould(?:Not)?(?:Be|Equal|Contain|Match|Have|Start|End)\w*+(?=[ \t])"
    rb"|\b(?i:want|expected|expectation|(?:test_?)?cases|(?:test_?)?table|tests)\w*+[ \t]*+(?::=|[:=](?![=]))"
    rb"|\b(?:[A-Za-z]{1,20}_)?(?i:tol(?:erance)?|eps(?:ilon)?|[ra]tol)\b[ \t]*+(?::=|[:=](?![=]))"
    # Go's own way; the message is none of it, and that there is no error is said in many ways.
    rb"|\bif\b[^\n{}]{0,300}+(?<!!= nil )(?=\{[ \t\r]{0,20}+\n[ \t]{0,80}+t\.(?:Error|Fatal|Fail))"
)
_VALUES = re.compile(
    rb"(?<![\w.])-?\d(?:(?<=[eE])[+-](?=\d)|[\w.])*|(?<![\w:)\]}'\"`?])(?<![\w)\]]\[):[A-Za-z_]\w*+|\b[A-Z]\w*+(?:(?<=Error)|(?<=Exception))|\b(?:True|False|None|true|false|null|nil|undefined|NaN|Infinity)\b"
    rb"|\braises\b(?=\()|\bis[ ]not\b|\bis\b|\bnot[ ]in\b|\bin\b|\bnot\b|===|!==|==|!=|<=|>=|=~|[<>]"
    rb"|\b(?:assert|refute|must_|wont_|EXPECT_|ASSERT_|REQUIRE_|CHECK_|XCTAssert)\w*+!?"
    rb"|(?<=\.)(?:not|resolves|rejects|to|to[A-Z_]\w*+|[Ee]q\w*+|[Ee]qual\w*+|deep\w*+|strict\w*+|[Nn]ot[A-Z_]\w*+|be|be_\w++|Be[A-Z]?\w*+|[Cc]ontain\w*+|[Mm]atch\w*+|[Ii]nclude\w*+)\b"
    rb"|\bshould(?:Not)?[A-Z]\w*+"
)
_MARKS = re.compile(rb"[()\[\]{};,]|(?<!\\)\n")
_NAME = re.compile(rb"(?:(?:\bassert\.|\bString::|\bstd::)[\w!]++|[\w!]++)$")
_LONGEST_NAME = 80
_EXPECTS = re.compile(
    rb"[A-Z]|std::|(?:assert|refute|expect|require|must_|wont_|is|has|have|be|does|equal|eq|deep|not|contain|include|match|start|end|to(?![a-z])"
    rb"|raise|throw|change|within|close|least|most|above|below|greater|less|same|any|all|each|parametrize|approx|a_|an_)"
    rb"|(?:ok|and|or|in|if|await|set|list|dict|tuple|frozenset|bytes|vec!|str|int|float|date|datetime|timedelta|array|of|(?:list|set|map|array)Of|asList)$"
)
_OPEN, _SHUT = b"([{", b")]}"
_NUMBER = re.compile(rb"[ \t\r\n]*+(?:[A-Za-z_]\w{0,30}+[ \t]*+[:=][ \t]*+)?-?\d[\w.]*+[ \t\r\n]*+\Z")
_TABLES = re.compile(rb"\.?(?:parametrize|InlineData|TestCase|(?:Csv|Value)Source|each)\(")
_ROWS = re.compile(_TABLES.pattern + rb"|(?i:(?:test_?)?cases|(?:test_?)?table|tests)")
_LABEL = re.compile(
    rb"\b(?:name|desc(?:ription)?|title|label|ids?|scenario|test_?[nN]ame)[\"']?[ \t]{0,4}+(?::|=>?)[ \t]{0,4}+\Z"
)
_IS_VALUE = re.compile(rb"[-\d'\"`:]|(?:True|False|None|true|false|null|nil|undefined|NaN|Infinity)\Z")
_LAYOUT = b" \t\r\n"
_LONGEST_LABEL = 24
_KEYED = re.compile(rb"[ \t]{0,20}+:[ \t]{0,20}+\{")
_BINDS = re.compile(rb"\w++(?=[ \t]*+(?::=|[:=])\Z)")
_GOES_ON = re.compile(rb"[ \t\r\n]{0,200}+(?:\.(?=\w)|&&|\|\||==|!=|and\b|or\b)")


@dataclass(frozen=True, slots=True)
class Expectation:
    """A statement that expects something: where it begins, its text, what can be compared of it, the name that it binds.

    `code` is the text without the inside of strings, `frame` without the values that are expected.
    """

    start: int
    text: bytes
    code: bytes
    frame: bytes
    values: tuple[bytes, ...]
    bound: bytes
    asserts: bool
    has_margin: bool
    handed_over: tuple[tuple[int, int], ...]

    @property
    def key(self) -> bytes:
        """The text without its layout."""
        return self.text.translate(None, _LAYOUT)

    @property
    def is_refusal(self) -> bool:
        """Whether it says what must not be: Go's condition of an error, or a refuted one."""
        return self.text.startswith((b"if", b"refute", b"assertFalse", b"assert_false", b"assert not"))


def no_longer_expected(found: "Paired", old: Sequence[Expectation], new: Sequence[Expectation]) -> str:
    """The values and comparisons that assertions named and name no more, in a few words; '' for none.

    By the whole file of `old` and `new`, and by each test: an old value that only another test now names is gone from there.
    """
    named: dict[bytes, bytes] = {}
    gone = _lost(named, old, new)
    for pair in found.tests:
        for one, other in pair.twins():
            gone |= _lost(named, one, other)
        if sum(one.asserts for one in pair.new) >= sum(one.asserts for one in pair.old):
            gone |= _lost(named, pair.old, [*pair.new, *found.brought_by_name(pair)])
    return in_words([*dict.fromkeys(named[key] for key in gone)])


def in_words(values: Sequence[bytes]) -> str:
    """The first of some values as they are told; '' for none."""
    said = ", ".join(_said(value) for value in values[:_SAID_AT_MOST])
    return said + (f" and {len(values) - _SAID_AT_MOST} more" if len(values) > _SAID_AT_MOST else "")


def expectations(read: "Reached") -> list[Expectation]:
    """What a text expects, statement by statement."""
    return [*_expected(read)]


def _lost(named: dict[bytes, bytes], old: Sequence[Expectation], new: Sequence[Expectation]) -> dict[bytes, None]:
    """What is named less often than before, by what it has in common with others of its meaning; `named` keeps the first."""
    lost: Counter[bytes] = Counter()
    for sign, found in ((1, old), (-1, new)):
        for value in (value for one in found for value in one.values):
            for key in keys(value):
                named.setdefault(key, value)
                lost[key] += sign
    return {key: None for key, count in lost.items() if count > 0}


def _expected(read: "Reached") -> Iterator[Expectation]:
    """Each statement that expects something, with the values and comparisons in it."""
    alive = read.alive
    starts = [start for start, _ in read.strings]
    at = 0
    for found in _STATEMENTS.finditer(alive):
        if found.start() < at:
            continue  # inside the one before
        if found[0].startswith(b"if"):
            statement = _Statement(alive, found.start(), until=found.end())
        else:
            statement = _Statement(alive, found.end() - found[0].endswith(b"("), keyword=found[0] == b"assert")
        at = statement.end
        values = [(value.start(), value[0]) for value in _VALUES.finditer(alive, found.start(), at)]
        strings = read.strings[bisect_left(starts, found.start()) : bisect_left(starts, at)]
        if _ROWS.match(found[0]):
            strings = [place for place in strings if not _is_label(read.source, found.start(), *place)]
        values += [(start, read.source[start:end]) for start, end in strings]
        values = [(place, value) for place, value in values if not statement.is_handed_over(place)]
        bound = _BINDS.match(found[0])
        yield Expectation(
            found.start(),
            read.source[found.start() : at],
            alive[found.start() : at],
            _without(read.source, found.start(), at, values),
            tuple(value for _, value in values),
            bound[0] if bound else b"",
            bound is None and _TABLES.match(found[0]) is None,
            statement.has_margin(alive),
            statement.calls(found.start()),
        )


def _without(text: bytes, start: int, end: int, values: Sequence[tuple[int, bytes]]) -> bytes:
    """A part of a text without the values that stand in it, and without its layout."""
    kept = []
    for place, value in sorted(values):
        if place >= start and _IS_VALUE.match(value):
            kept.append(text[start:place])
            start = place + len(value)
    return b"_".join([*kept, text[start:end]]).translate(None, _LAYOUT)


def _is_label(text: bytes, table: int, start: int, end: int) -> bool:
    """Whether a string of a table names one of its rows."""
    if _LABEL.search(text, max(0, start - _LONGEST_LABEL), start):
        return True
    return _KEYED.match(text, end) is not None and b"map[string]" in text[table : table + _LONGEST_NAME]


class _Statement:
    """What expects something, from where it says so to its end: of a line, or before a semicolon, outside of all brackets.

    What is handed to the code under test there is not expected of it; what follows the comma of an `assert` as a word of
    its language is only its message.
    """

    def __init__(self, text: bytes, start: int, *, until: int = 0, keyword: bool = False) -> None:
        """From `start` to its own end, or `until` where that is known."""
        self._calls: list[tuple[int, int]] = []
        self._commas: list[int] = []
        self._shut = 0
        inside = int(text[start : start + 1] == b"(")
        self.end = until or min(len(text), start + _LONGEST_STATEMENT)
        opened: list[tuple[int, bool]] = []
        for found in _MARKS.finditer(text, start, self.end):
            mark, at = found[0], found.start()
            if mark in _OPEN:
                opened.append((at, mark == b"(" and _is_call(text, at)))
            elif mark in _SHUT and opened:
                begun, is_call = opened.pop()
                if is_call:
                    self._note(begun, at)
                if not opened and not self._shut:
                    self._shut = at
            elif mark == b"," and len(opened) == inside and not self._shut and not keyword:
                self._commas.append(at)
            elif not until and not opened and _ends(text, found, keyword=keyword):
                self.end = at
                break

    def is_handed_over(self, place: int) -> bool:
        """Whether something stands between the brackets of a call of the code under test."""
        at = bisect_left(self._calls, (place, 0))
        return at > 0 and place < self._calls[at - 1][1]

    def has_margin(self, text: bytes) -> bool:
        """Whether the last of three or more arguments is a bare number."""
        end, commas = self._shut or self.end, self._commas
        if commas and not text[commas[-1] + 1 : end].strip():
            end, commas = commas[-1], commas[:-1]
        return len(commas) > 1 and _NUMBER.match(text, commas[-1] + 1, end) is not None

    def calls(self, start: int) -> tuple[tuple[int, int], ...]:
        """The places of what is handed to the code under test, counted from `start`."""
        return tuple((begun - start, end - start) for begun, end in self._calls)

    def _note(self, start: int, end: int) -> None:
        """Keep the outermost calls, one behind the other."""
        while self._calls and self._calls[-1][0] > start:
            self._calls.pop()
        self._calls.append((start, end))


def _ends(text: bytes, mark: "re.Match[bytes]", *, keyword: bool) -> bool:
    if mark[0] == b",":
        return keyword
    return mark[0] != b"\n" or not _GOES_ON.match(text, mark.end())


def _is_call(text: bytes, bracket: int) -> bool:
    """Whether a bracket opens a call of anything but an assertion, a matcher or a type."""
    name = _NAME.search(text, max(0, bracket - _LONGEST_NAME), bracket)
    if name is None:
        return text[bracket - 1 : bracket] in {b")", b"]"}
    return _EXPECTS.match(name[0]) is None


def _said(value: bytes) -> str:
    text = " ".join(value.decode("utf-8", "replace").split())
    return f"`{text[:_LONGEST_SAID]}{'…' if len(text) > _LONGEST_SAID else ''}`"
