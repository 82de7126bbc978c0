"""What a change took from the tests: fewer of them, fewer assertions, new skips (SPEC 4, PRE_COMMIT).

Told from the text without its comments, the same way for every language, so it counts words that test frameworks share.
A phrase is a question to the reviewer, not a verdict: a reason answers it.
"""

import re
from collections.abc import Sequence

from code_intel_server.codebase.languages import Language, language_of
from code_intel_server.codebase.roles import Role, named_as_tests, role

_TESTS = re.compile(
    r"^\s*(?:async\s+)?(?:def|sub|fun|func|function|proc|defp?)\s+[\w.`]*(?:test|spec|should)\w*"
    r"|^\s*(?:it|test|specify|scenario|describe|context|property|testWidgets|TEST|TEST_F|TEST_P|TEST_CASE|SCENARIO)\s*(?:\.each\b.*)?[(\s][\"'(`\w]"
    r"|^\s*(?:@(?:\w+\.)*(?:Test|ParameterizedTest|RepeatedTest)\b|#\[(?:\w+::)?(?:test|rstest)\b|\[(?:Fact|Theory|Test|TestMethod|TestCase)\b)",
    re.MULTILINE,
)
_ASSERTIONS = re.compile(
    r"\bassert\w*!?\b|\bexpect\w*\s*[({.]|\bshould(?:\.|_\w+|\s*\()|\brequire\.\w+\(|\bXCTAssert\w*|\b(?:EXPECT|ASSERT|REQUIRE|CHECK)\w*\s*\("
    r"|\bt\.(?:Error|Errorf|Fatal|Fatalf|Fail|FailNow|is|ok|equal|deepEqual)\(|\bpytest\.raises\b|\bverify\s*\(|^\s*refute\w*\b"
)
_SKIPS = re.compile(
    r"\b(?:pytest\.)?mark\.(?:skip|skipif|xfail)\b|\bpytest\.(?:skip|xfail|importorskip)\(|\bunittest\.(?:skip\w*|expectedFailure)\b|\bself\.skipTest\("
    r"|\b(?:it|test|describe|context|suite)\.(?:skip|todo|fixme|failing)\b|\bx(?:it|describe|test|context|specify)\s*\(|\bt\.(?:Skip|Skipf|SkipNow)\("
    r"|#\[ignore\b|@(?:Disabled|Ignore|Ignored|Skip)\b|\bSkip\s*=\s*\"|\[Ignore\b|\bmarkTestSkipped\(|\bXCTSkip|\bGTEST_SKIP|\bpending\b\s*(?:[\"'(]|$)"
    r"|@tag\s+:skip|\bDISABLED_\w+|\b__test__\s*=\s*False|\bSkipTest\b",
    re.MULTILINE,
)
_FOCUS = re.compile(r"\b(?:it|test|describe|context|suite)\.only\b|\bf(?:it|describe|context)\s*\(")
_HOLLOW = re.compile(
    r"\bassert\s*\(?\s*(?:True|true|1)\s*\)?\s*;?\s*$|\bassertTrue\s*\(\s*(?:True|true)\s*\)|\bexpect\(\s*(true|1)\s*\)\.(?:toBe|toEqual)\(\s*\1\s*\)|\bassert!\(true\)"
    r"|\|\|\s*true\b|\bor\s+True\b",
    re.MULTILINE,
)
_GROWING = (
    (_SKIPS, "skip", "skips"),
    (_FOCUS, "focused test", "focused tests"),
    (_HOLLOW, "assertion that always holds", "assertions that always hold"),
)
_SHRINKING = ((_TESTS, "test", "tests"), (_ASSERTIONS, "assertion", "assertions"))
# What Python's runners collect: another name is a test no more.
_SHRINKING_IN_PYTHON = (
    (re.compile(r"^\s*(?:async\s+)?def\s+test\w*", re.MULTILINE), "test", "tests"),
    (re.compile(r"^\s*class\s+Test\w*", re.MULTILINE), "test class", "test classes"),
    (_ASSERTIONS, "assertion", "assertions"),
)


def weakened(path: str, before: Sequence[str] | None, after: Sequence[str] | None) -> tuple[str, ...]:
    """What the tests in a file lost between two versions, one short phrase each; `None` is a version without the file."""
    if before is None or not is_test_file(path):
        return ()
    language = language_of(path, "\n".join(before[:50]).encode("utf-8", "replace"))
    old = _without_comments(before, language)
    if after is None:
        count = len(_TESTS.findall(old))
        return (f"file with {_counted(count, 'test', 'tests')} removed",) if count else ()
    new = _without_comments(after, language)
    lost = [
        f"{_counted(less, one, many)} fewer"
        for pattern, one, many in _shrinking(path, old)
        if (less := _count(pattern, old) - _count(pattern, new)) > 0
    ]
    gained = [
        f"{_counted(more, one, many)} more"
        for pattern, one, many in _GROWING
        if (more := _count(pattern, new) - _count(pattern, old)) > 0
    ]
    return (*lost, *gained)


def leaves_the_tests(old_path: str, path: str) -> bool:
    """Whether a renamed test file is one no more: by its folder, or by the names that runners collect."""
    hidden = named_as_tests(old_path) and not named_as_tests(path)
    return is_test_file(old_path) and (hidden or not is_test_file(path))


def is_test_file(path: str) -> bool:
    """Whether a path is a test's by its folder or name."""
    return role(path) is Role.TESTS


def _shrinking(path: str, old: str) -> Sequence[tuple["re.Pattern[str]", str, str]]:
    """What is counted; in Python by the names that are collected, where the file has such."""
    tests = _SHRINKING_IN_PYTHON[0][0]
    return _SHRINKING_IN_PYTHON if path.endswith(".py") and tests.search(old) else _SHRINKING


def _count(pattern: "re.Pattern[str]", text: str) -> int:
    return sum(1 for _ in pattern.finditer(text))


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def _without_comments(lines: Sequence[str], language: Language | None) -> str:
    """The text with comments blanked out: a test that was commented out is gone."""
    text = "\n".join(lines)
    if language is None or not language.grammar:
        return text
    from code_intel_server.codebase.structure import comment_ranges, has_grammar, parse

    parsed = parse(text.encode("utf-8", "replace"), language) if has_grammar(language) else None
    if parsed is None:
        return text
    kept = bytearray(parsed.text)
    for start, end in comment_ranges(parsed):
        kept[start:end] = re.sub(rb"[^\n]", b" ", kept[start:end])
    return kept.decode("utf-8", "replace")
