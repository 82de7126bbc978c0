"""What a change took from the tests: fewer of them, fewer assertions, new skips (SPEC 4, PRE_COMMIT).

Told from what of the text can run (`reached`), the same way for every language, so it counts words that test frameworks share.
A phrase is a question to the reviewer, not a verdict: a reason answers it.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from code_intel_server.codebase.expectations import expectations
from code_intel_server.codebase.got_around import got_around
from code_intel_server.codebase.languages import Language, LanguageKind, language_of
from code_intel_server.codebase.loosened import expected_less
from code_intel_server.codebase.records import (
    is_fixture,
    is_record,
    no_longer_fed,
    no_longer_printed,
    no_longer_recorded,
)
from code_intel_server.codebase.roles import is_test_file, named_as_tests
from code_intel_server.codebase.stand_ins import lasting, stood_in_for

if TYPE_CHECKING:
    from code_intel_server.codebase.reached import Reached

# Each pattern takes time in proportion to the text, whatever the text: what repeats is possessive, or ends with its line.
_TESTS = re.compile(
    r"^[ \t]*+(?:(?:async|public|private|protected|internal|static|final|override|suspend|open|pub|export)[ \t]++){0,5}"
    r"(?:def|sub|fun|func|function|proc|defp?|void)[ \t]++[\w.`]*(?:test|spec|should)\w*+"
    r"|^func[ \t]++(?:\([^()\n]{0,200}\)[ \t]*+)?(?:Test|Benchmark|Fuzz|Example)\w*+"
    r"|^[ \t]*+(?:it|test|specify|scenario|describe|context|property|testWidgets|TEST|TEST_F|TEST_P|TEST_CASE|SCENARIO)[ \t]*+(?:\.each\b[^\n]*)?[(\s][\"'(`\w]"
    r"|^[ \t]*+(?:@(?:\w++\.){0,20}(?:Test|ParameterizedTest|RepeatedTest)\b|#\[(?:\w+::)?(?:test|rstest)\b|\[(?:Fact|Theory|Test|TestMethod|TestCase)\b)",
    re.MULTILINE,
)
_ASSERTIONS = re.compile(
    r"\bassert\w*!?\b|\b(?:is_)?expect\w*+\s*+[({.]|\bis_expected\b|\bExpect\(|\bshould(?:\.|_\w+|[A-Z]\w*|\s*+\()|\.Should\w*+\(|\brequire\.\w+\(|\bXCTAssert\w*"
    r"|\bAssert(?:\.|::)\w|\b(?:EXPECT|ASSERT|REQUIRE|CHECK)\w*+\s*+\("
    r"|\bt\.(?:Error|Errorf|Fatal|Fatalf|Fail|FailNow|is|ok|equal|deepEqual)\(|\bpytest\.raises\b|\bverify\s*+\(|\brefute\w*+|\bflunk\b"
    r"|(?:\.|^[ \t]*+)(?:must|wont)_\w++",
    re.MULTILINE,
)
_SKIPS = re.compile(
    r"^@(?:\w{1,40}\.){0,3}(?:skip\w*+|xfail|expectedFailure)\b|\b(?:pytest\.)?mark\.(?:skip|skipif|xfail)\b|(?<=\w)\.(?:skipif|xfail)\b|\bpytest\.(?:skip|xfail|importorskip)\(|\bunittest\.(?:skip\w*|expectedFailure)\b|\bself\.skipTest\("
    r"|\b(?:it|test|describe|context|suite)(?:\.\w{1,20})?\.(?:skip(?:If)?|todo|fixme|failing|fails|runIf)\b|\bx(?:it|describe|test|context|specify)[ \t]*+[(\"']"
    r"|\bt\.(?:Skip|Skipf|SkipNow|skip|todo)\(|\bthis\.skip\(|\b(?:skip|todo):\s?(?:true\b|[\"'`])"
    r"|#!?\[ignore\b|#!?\[cfg\((?!test\))|#!?\[cfg_attr\([^\n\]]{0,200}\bignore\b|@(?:Disabled|Ignore|Ignored|Skip)\b|@(?:Disabled|Enabled)(?:If|On|For)\w"
    r"|\bassum(?:e|ing)(?:True|False|That)\s*+\(|\bSkip\s*+=\s*+\"|\[Ignore\b|\bmarkTest(?:Skipped|Incomplete)\(|\bXCTSkip|\bGTEST_SKIP|\bpending\b[ \t]*+(?:[\"'(]|$)"
    r"|@(?:module|describe)?tag\s++:?skip\b|\bDISABLED_\w+|\b__test__\s*+=\s*+False|\b__unittest_skip__\b|\bSkipTest\b|^[ \t]*+skip\b(?![ \t]*+[=.:,)])"
    r"|\bimport\b[^\n]{0,200}\b(?:skip\w{0,10}|expectedFailure) as\b|\b(?:const|let|var)[ \t]++(?:it|test|describe|expect|assert)[ \t]*+="
    r"[ \t]*+(?:async[ \t]*+)?(?:\(|function\b|\w++[ \t]*+=>)|\bfunction[ \t]++(?:it|test|describe|expect|assert)[ \t]*+\("
    r"|\bgetattr\([ \t]?pytest\.mark\b|\btesting\.Short\(|\babstract[ \t]++class[ \t]++\w*Tests?\b"
    r"|@(?:Test|ParameterizedTest|RepeatedTest)\b[ \t]*+\n?[ \t]*+(?:private|static|abstract)\b"
    r"|\bparametrize\([^()\[\]\n]{0,200}\[[ \t]?\]|\.each\(\[[ \t]?\]\)|\bglobals\(\)\.(?:pop|clear|__delitem__)\b|\bdef load_tests\b",
    re.MULTILINE,
)
_FOCUS = re.compile(
    r"\b(?:it|test|describe|context|suite)(?:\.\w{1,20})?\.only\b|\bf(?:it|describe|context)[ \t]*+[(\"']|\b(?:only|focus):\s?true\b"
)
_HOLLOW = re.compile(
    r"\bassert[ \t]*+(?:\(\s*+)?(?:True|true|1)\b\s*+\)?[ \t]*+;?[ \t\r]*+$|\bassert[ \t]++(?:True|1)[ \t\r]*+$|\bassertTrue\s*+\(\s*+(?:True|true)\s*+\)"
    r"|\bexpect\(\s*+(true|1)\s*+\)\.(?:toBe|toEqual)\(\s*+\1\s*+\)|\bassert!\(true\)|\bassert[ \t]++(\w{1,80})[ \t]++==[ \t]++\2[ \t\r]*+$|\|\|\s*+true\b|\bor\s++True\b"
    r"|\bassert[ \t]*+\((?:[^()\n,]|\([^()\n]{0,200}+\)){0,300},(?:[^()\n]|\([^()\n]{0,200}+\)){0,300}\)[ \t\r]*+$"
    r"|\bassert[ \t]++\[(?![^\n]{0,300}\bfor\b)[^\[\]\n]{1,300}+\][ \t\r]*+$|\bmacro_rules![ \t]++\w*assert",
    re.MULTILINE,
)
_SWALLOWS = re.compile(
    r"\bexcept\b[ \t]*+\*?[ \t]*+(?::|\(?[^\n:]{0,200}\b(?:AssertionError|BaseException|Exception)\b)"
    r"|\b(?:suppress|raises|assertRaises)\([^\n()]{0,200}\b(?:AssertionError|BaseException|Exception)\b"
    r"|\bcatch[ \t]*+(?:\([ \t]*+\w*+[ \t]*+\))?[ \t]*+\{[ \t\n]*+\}|\.catch\([ \t]*+\([ \t]*+\w*+[ \t]*+\)[ \t]*+=>[ \t]*+\{[ \t\n]*+\}"
    r"|\bcatch[ \t]*+\([^\n()]{0,100}\b(?:Throwable|AssertionError|Error|Exception)\b"
    r"|\bassertThrows\([ \t]?(?:Throwable|AssertionError|Error|Exception)\.class|\bexpected[ \t]?=[ \t]?(?:Throwable|AssertionError|Error|Exception)\.class"
    r"|\bdef[ \t]++__a?exit__[ \t]*+\([^\n]{0,300}\n?[ \t]*+return[ \t]++(?:True|1)\b|(?<![.\w])recover\(\)|\bcatch_unwind\b|#\[should_panic\]|\brescue[ \t]*+(?:=>|\n|Exception\b|Minitest::Assertion\b)"
)
_REPEATS = re.compile(
    r"\bretryTimes\(|\bthis\.retries\(|\bmark\.flaky\b|@flaky\b|@(?:RepeatedIfExceptionsTest|RetryingTest)\b|\bretries:[ \t]?[1-9]"
)
_IN_PLACE = re.compile(
    r"\bMagicMock\b|\bAsyncMock\b|\bmonkeypatch\.set\w++|\b(?:mock|mocker)\.patch\b|@patch\b|\b(?:jest|vi)\.(?:mock|spyOn|doMock)\("
    r"|\bsinon\.(?:stub|replace|mock)\b|\bMockito\.(?:mock|when)\b|@(?:MockBean|Mock)\b"
)
_EXITS = re.compile(
    r"\bos\._exit\b|\b(?:process|Deno|System)\.exit\(|\bos\.Exit\([ \t]?0|\bprocess::exit\(|\bexitProcess\(|\bexit!(?!=)"
)
_ENDS_ALL = re.compile(r"\bos\._exit\b|\bos\.Exit\([ \t]?0|\bprocess::exit\([ \t]?0|\bexit!(?!=)")
_PHRASE_CHARACTERS = 120
MAX_COMPARED_CHARACTERS = 4 * 1024 * 1024
"""Code that is longer tells by its length; other files of tests that are longer, which are data, tell nothing."""

_PASSED_BY = re.compile(r"\..*|build|CVS|_darcs|.*\.egg")
_PASSED_BY_GO = re.compile(r"[._].*|testdata")
_TESTS_BEGIN = re.compile(r"[ \t]*+#\[cfg\((?:all\()?test\b")
_ATTRIBUTE = re.compile(r"[ \t]*+(?:#\[|//|$)")
_MODULE = re.compile(r"[ \t]*+(?:\][ \t]*+)?(?:pub(?:\(\w+\))?[ \t]++)?mod[ \t]")

_GROWING = (
    (_SKIPS, "skip", "skips"),
    (_FOCUS, "focused test", "focused tests"),
    (_HOLLOW, "assertion that always holds", "assertions that always hold"),
    (_EXITS, "exit from the whole run", "exits from the whole run"),
    (_SWALLOWS, "place where a failure is swallowed", "places where a failure is swallowed"),
    (_REPEATS, "test that may fail", "tests that may fail"),
)
_TAKES, _EMPTIES = re.compile(r" fewer$"), re.compile(r"\balways holds? more$")
_SHRINKING = ((_TESTS, "test", "tests"), (_ASSERTIONS, "assertion", "assertions"))
# What Python's runners collect: another name is a test no more.
_SHRINKING_IN_PYTHON = (
    (re.compile(r"^[ \t]*+(?:async[ \t]++)?def[ \t]++test\w*+", re.MULTILINE), "test", "tests"),
    (
        re.compile(r"^[ \t]*+class[ \t]++(?:Test\w*+|\w++[ \t]*+\([^()\n]{0,200}TestCase\b)", re.MULTILINE),
        "test class",
        "test classes",
    ),
    (_ASSERTIONS, "assertion", "assertions"),
)


def weakened(path: str, before: Sequence[str] | None, after: Sequence[str] | None) -> tuple[str, ...]:
    """What the tests in a file lost between two versions, one short phrase each; `None` is a version without the file."""
    if before is None or not any(before):
        # A new file takes nothing away; but the first `__init__.py` of a folder is run before the tests that lie there already.
        before = () if path.endswith("/__init__.py") else None
    if before is None:
        return _brought(path, after or ())
    if is_record(path):
        changed = no_longer_recorded(before, after)
        return (changed,) if changed else ()
    if is_fixture(path) and after is not None and (changed := no_longer_fed(before, after)):
        return (changed,)
    if not is_test_file(path):
        if not path.endswith(".rs") or not (before := _tests_inside(before)):
            return () if after is None else no_longer_printed(path, before, after)
        after = None if after is None else _tests_inside(after)
    language = language_of(path, "\n".join(before[:50]).encode("utf-8", "replace"))
    if max(_length(before), _length(after or ())) > MAX_COMPARED_CHARACTERS:
        return ("too long to be compared",) if language and language.kind is LanguageKind.CODE else ()
    old = _read(before, language)
    if after is None:
        count = _count(_TESTS, (old or _as_written(before)).text)
        return (f"file with {_counted(count, 'test', 'tests')} removed",) if count else ()
    new = _read(after, language)
    if old is not None and new is not None:
        was, now = expectations(old), expectations(new)
        found = (*_compared(path, old, new), *got_around(path, old, new, was, now), *_for_all(path, old, new))
        found = (*found, *no_longer_printed(path, before, after))
        if any(map(_EMPTIES.search, found)):
            return found
        # What a test that is gone expected is gone with it.
        in_all = not any(map(_TAKES.search, found))
        return (*found, *expected_less(old, new, was, now, in_all=in_all))
    found = _compared(path, _as_written(before), _as_written(after))
    return found if old is None else (*found, "can no more be read by its syntax")


def _brought(path: str, lines: Sequence[str]) -> tuple[str, ...]:
    """What a new file of tests does to those that are there: it is loaded in one run with them."""
    language = language_of(path, "\n".join(lines[:50]).encode("utf-8", "replace")) if is_test_file(path) else None
    read = _read(lines, language) if _length(lines) <= MAX_COMPARED_CHARACTERS else None
    if read is None:
        return ()
    ends = _count(_ENDS_ALL, read.text)
    told = (f"{_counted(ends, 'exit from the whole run', 'exits from the whole run')} more",) if ends else ()
    return (*told, *_for_all(path, _as_written(()), read))


def _for_all(path: str, old: "Reached", new: "Reached") -> tuple[str, ...]:
    """What has another meaning from now on in every test, not only in those of this file."""
    fresh = sorted(lasting(path, new) - lasting(path, old))
    return (f"another meaning for all tests of {', '.join(fresh)}"[:_PHRASE_CHARACTERS],) if fresh else ()


def _compared(path: str, old: "Reached", new: "Reached") -> tuple[str, ...]:
    """What one reading has less of, or more, than the other."""
    shrinking = _shrinking(path, old.text)
    fewer = [_count(pattern, old.text) - _count(pattern, new.text) for pattern, _, _ in shrinking]
    lost = [
        f"{_counted(less, one, many)} fewer" for less, (_, one, many) in zip(fewer, shrinking, strict=True) if less > 0
    ]
    tests = shrinking[0][0]
    hidden = _count(tests, old.certain) - _count(tests, new.certain) - max(fewer[0], 0)
    moved = [f"{_counted(hidden, 'test', 'tests')} more under a condition"] if hidden > 0 else []
    gained = [
        f"{_counted(more, one, many)} more"
        for pattern, one, many in _GROWING
        if (more := _count(pattern, new.text) - _count(pattern, old.text)) > 0
    ]
    # A new test may need its stand-ins; tests that were there get them in the place of what they tested.
    more_tests = max(-fewer[0], 0)
    replaced = _count(_IN_PLACE, new.text) - _count(_IN_PLACE, old.text) + len(stood_in_for(path, old, new))
    mocked = [f"{_counted(replaced, 'stand-in', 'stand-ins')} more"] if replaced > 0 and not more_tests else []
    return (*lost, *moved, *gained, *mocked)


def count_tests(path: str, text: str, language: Language | None) -> int:
    """How many tests a part of a test file holds that can run."""
    read = _read(text.split("\n"), language)
    reached = (read or _as_written(text.split("\n"))).text
    return _count(_shrinking(path, reached)[0][0], reached)


def certain_tests(path: str, lines: Sequence[str], language: Language | None) -> int | None:
    """How many tests of a file run whatever happens; None where its syntax does not tell, or where something may keep
    tests from running or from failing."""
    read = _read(lines, language)
    if read is None or any(pattern.search(read.text) for pattern, _, _ in _GROWING):
        return None
    return _count(_shrinking(path, read.text)[0][0], read.certain)


def leaves_the_tests(old_path: str, path: str) -> bool:
    """Whether a renamed test file is one no more: by its folder, by the names that runners collect, or as they enter no such folder."""
    hidden = (named_as_tests(old_path) and not named_as_tests(path)) or (
        _is_entered(old_path) and not _is_entered(path)
    )
    return is_test_file(old_path) and (hidden or not is_test_file(path))


def _is_entered(path: str) -> bool:
    """Whether the runners of a file's language look into all of its folders, as long as nobody tells them otherwise."""
    *folders, name = path.split("/")
    if name.endswith(".rs"):
        return folders[-1:] == ["tests"] or "tests" not in folders  # a folder below holds modules of tests
    passed_by = _PASSED_BY_GO if name.endswith(".go") else _PASSED_BY
    return not any(passed_by.fullmatch(folder) for folder in folders)


def _shrinking(path: str, old: str) -> Sequence[tuple["re.Pattern[str]", str, str]]:
    """What is counted; in Python by the names that are collected, where the file has such."""
    tests = _SHRINKING_IN_PYTHON[0][0]
    return _SHRINKING_IN_PYTHON if path.endswith(".py") and tests.search(old) else _SHRINKING


def _count(pattern: "re.Pattern[str]", text: str) -> int:
    return sum(1 for _ in pattern.finditer(text))


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def _tests_inside(lines: Sequence[str]) -> Sequence[str]:
    """Rust keeps a module's tests at the end of its file: from where they begin on, nothing where there are none."""
    for number, line in enumerate(lines):
        if _TESTS_BEGIN.match(line):
            behind = next((line for line in lines[number + 1 : number + 6] if not _ATTRIBUTE.match(line)), "")
            if _MODULE.match(behind):
                return lines[number:]
    return ()


def _length(lines: Sequence[str]) -> int:
    return sum(map(len, lines)) + len(lines)


def _as_written(lines: Sequence[str]) -> "Reached":
    """The text as it stands, where no syntax tells more."""
    from code_intel_server.codebase.reached import Reached

    text = _bare("\n".join(lines))
    return Reached(text, text)


def _read(lines: Sequence[str], language: Language | None) -> "Reached | None":
    """What of the text can run; None where it cannot be told. A test in a comment or a string is gone."""
    if language is None or not language.grammar:
        return None
    from code_intel_server.codebase.reached import reached
    from code_intel_server.codebase.structure import has_grammar, parse

    parsed = parse("\n".join(lines).encode("utf-8", "replace"), language) if has_grammar(language) else None
    if parsed is None or parsed.is_rubble:
        return None
    found = reached(parsed)
    return replace(found, text=_bare(found.text), certain=_bare(found.certain))


def _bare(text: str) -> str:
    """Without blank lines and indentation, which say nothing here and take time."""
    return "\n".join(filter(None, map(str.strip, text.split("\n"))))
