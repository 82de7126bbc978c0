"""What the assertions of a test file expect: a change after which they no longer name a value is asked for a reason (SPEC 4, PRE_COMMIT).

The quickest way to a green test is another expected value. Compared are the values (numbers, strings, constants) and the
ways of comparing (`==`, `is not`, `toBe`) in assertions, in the tables that feed them and in what is called `expected`: of
names only those of errors, so a renaming says nothing, and not their order, so neither does another layout.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
    # Go's own way; the message is none of it, and that there is no error is said in many ways.
    rb"|\bif\b[^\n{}]{0,300}+(?<!!= nil )(?=\{[ \t\r]{0,20}+\n[ \t]{0,80}+t\.(?:Error|Fatal|Fail))"
)
_VALUES = re.compile(
    rb"(?<![\w.])-?\d(?:(?<=[eE])[+-](?=\d)|[\w.])*+|(?<![\w:)\]}'\"`?])(?<![\w)\]]\[):[A-Za-z_]\w*+|\b[A-Z]\w*+(?:(?<=Error)|(?<=Exception))|\b(?:True|False|None|true|false|null|nil|undefined|NaN|Infinity)\b"
    rb"|\bis[ ]not\b|\bis\b|\bnot[ ]in\b|\bin\b|\bnot\b|===|!==|==|!=|<=|>=|=~|[<>]"
    rb"|\b(?:assert|refute|must_|wont_|EXPECT_|ASSERT_|REQUIRE_|CHECK_|XCTAssert)\w*+!?"
    rb"|(?<=\.)(?:not|resolves|rejects|to|to[A-Z_]\w*+|[Ee]q\w*+|[Ee]qual\w*+|deep\w*+|strict\w*+|[Nn]ot[A-Z_]\w*+|be|be_\w++|Be[A-Z]?\w*+|[Cc]ontain\w*+|[Mm]atch\w*+|[Ii]nclude\w*+)\b"
    rb"|\bshould(?:Not)?[A-Z]\w*+"
)
_RECORDS = re.compile(r"(?:^|/)__snapshots__/|\.(?:snap|ambr|golden)$|\.(?:approved|verified)\.\w+$")
_MARKS = re.compile(rb"[()\[\]{};,]|(?<!\\)\n")
_NAME = re.compile(rb"(?:(?:\bassert\.|\bString::|\bstd::)[\w!]++|[\w!]++)$")
_LONGEST_NAME = 80
_EXPECTS = re.compile(
    rb"[A-Z]|std::|(?:assert|refute|expect|require|must_|wont_|is|has|have|be|does|equal|eq|deep|not|contain|include|match|start|end|to(?![a-z])"
    rb"|raise|throw|change|within|close|least|most|above|below|greater|less|same|any|all|each|parametrize|approx|a_|an_)"
    rb"|(?:ok|and|or|in|if|await|set|list|dict|tuple|frozenset|bytes|vec!|str|int|float|date|datetime|timedelta|array|of|(?:list|set|map|array)Of|asList)$"
)
_OPEN, _SHUT = b"([{", b")]}"
_PLAIN = re.compile(rb"(['\"])([^'\"\\$#{\n]*+)\1")
_GOES_ON = re.compile(rb"[ \t\r\n]{0,200}+(?:\.(?=\w)|&&|\|\||==|!=|and\b|or\b)")


def no_longer_expected(before: "Reached", after: "Reached") -> str:
    """The values and comparisons that the assertions of `before` name and those of `after` lack, in a few words; '' for none."""
    named: dict[bytes, bytes] = {}
    lost = Counter(_same_key(value, named) for value in _expected(before))
    if lost:
        lost.subtract(Counter(_same_key(value, named) for value in _expected(after)))
    gone = [named[key] for key, count in lost.items() if count > 0]
    if not gone:
        return ""
    said = ", ".join(_said(value) for value in gone[:_SAID_AT_MOST])
    return said + (f" and {len(gone) - _SAID_AT_MOST} more" if len(gone) > _SAID_AT_MOST else "")


def is_record(path: str) -> bool:
    """Whether a file holds results that tests compare with, as the tools that record them name it."""
    return _RECORDS.search(path) is not None


def no_longer_recorded(before: Sequence[str], after: Sequence[str] | None) -> str:
    """How many lines of a record are gone or read otherwise, in a few words; '' for none."""
    lost = (Counter(before) - Counter(after or ())).total()
    return f"{lost} recorded {'line' if lost == 1 else 'lines'} changed" if lost else ""


def _same_key(value: bytes, named: dict[bytes, bytes]) -> bytes:
    """What a value has in common with others of its meaning, whichever quotes a formatter likes; `named` keeps the first."""
    key = b'"' + plain[2] + b'"' if (plain := _PLAIN.fullmatch(value)) else value
    named.setdefault(key, value)
    return key


def _expected(read: "Reached") -> Iterator[bytes]:
    """Each value and comparison in what expects something, as often as it stands there."""
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
        values += [(start, read.source[start:end]) for start, end in strings]
        yield from (value for place, value in values if not statement.is_handed_over(place))


class _Statement:
    """What expects something, from where it says so to its end: of a line, or before a semicolon, outside of all brackets.

    What is handed to the code under test there is not expected of it; what follows the comma of an `assert` as a word of
    its language is only its message.
    """

    def __init__(self, text: bytes, start: int, *, until: int = 0, keyword: bool = False) -> None:
        """From `start` to its own end, or `until` where that is known."""
        self._calls: list[tuple[int, int]] = []
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
            elif not until and not opened and _ends(text, found, keyword=keyword):
                self.end = at
                break

    def is_handed_over(self, place: int) -> bool:
        """Whether something stands between the brackets of a call of the code under test."""
        at = bisect_left(self._calls, (place, 0))
        return at > 0 and place < self._calls[at - 1][1]

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
