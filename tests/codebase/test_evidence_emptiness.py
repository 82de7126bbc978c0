"""Evidence is a difference of syntax: what is no implementation is refused, what is one never is (SPEC 4, READY impl)."""

import pytest
from tests.codebase.changes import CHANGES, HOLLOW, HONEST, STRANGERS, Change, StrangersChange
from tests.codebase.emptiness_corpus import CASES, CODE, EMPTY, FORMS, TRIVIAL, Case, parts

from code_intel_server.codebase.evidence.changed_syntax import Comparison, compare, whole
from code_intel_server.codebase.evidence.location import RangeVerdict
from code_intel_server.codebase.files.languages import language_of


def identity(case: Case) -> str:
    """`python-empty-12`."""
    return f"{case[0]}-{case[2]}-{CASES.index(case)}"


@pytest.mark.parametrize("case", CASES, ids=identity)
def test_no_verdict_of_the_corpus_is_wrong(case: Case) -> None:
    language, path, _, expected, marked = case
    text, start, end = parts(marked)
    found = language_of(path, text.encode())
    assert found is not None
    assert found.name == language
    verdict = whole(path, text.encode()).judge(start, end)
    assert (EMPTY if verdict.empty else TRIVIAL if verdict.trivial else CODE) == expected, text


def test_at_least_fifteen_languages_show_all_six_forms() -> None:
    forms: dict[str, set[str]] = {}
    for language, _, form, _, _ in CASES:
        forms.setdefault(language, set()).add(form)
    complete = {language for language, seen in forms.items() if seen >= FORMS}
    assert len(complete) >= 15, complete


def difference(change: Change) -> Comparison:
    """What the two versions of a change differ in."""
    return compare(change.path, change.before.encode(), change.after.encode(), change.hunks)


@pytest.mark.parametrize("change", STRANGERS, ids=str)
def test_a_change_of_strangers_is_judged_as_they_meant_it(change: StrangersChange) -> None:
    assert (change.is_taken() is (change.kind == HONEST)) is not change.known


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_one_line_that_changes_something_is_evidence_and_one_that_changes_nothing_is_none(change: Change) -> None:
    verdict = difference(change).judge(*change.lines)
    assert (not verdict.empty and not verdict.trivial) is (change.kind != HOLLOW), verdict


def judged(path: str, before: str, after: str) -> RangeVerdict:
    """A file as a whole, of which every line may have changed."""
    count = after.count("\n")
    hunks = [((1, before.count("\n")), (1, count))]
    return compare(path, before.encode(), after.encode(), hunks).judge(1, count)


@pytest.mark.parametrize(("path", "before", "after", "why"), [
    ("a.c", "a  = 1;\n", "a = 1;\n", "changes of white space or notation"),
    ("a.c", "int f() {\nreturn 1; }\n", "int f()\n{\n  return 1;\n}\n", "changes of white space or notation"),
    ("a.py", "a = 1\r\nb = 2\r\n", "a = 1\nb = 2\n", "changes of white space or notation"),
    ("a.txt", "a  b\n", "a b\n", "changes of white space or notation"),
    ("a.py", "a = 1\n", "a = 1  # one\n", "only comments or documentation"),
    ("a.py", "def f():\n    return 1\n", "def f():\n    return 1\n    f()\n", "code that is never reached"),
    ("a.py", "def f():\n    return 1\n", "def f():\n    # TODO: more\n    return 1\n", "only a note of what is to be done"),
    ("a.py", "def f():\n    return 1\n", "def f():\n    pass\n", "an implementation without code"),
])  # fmt: skip
def test_a_refusal_says_what_was_changed_instead(path: str, before: str, after: str, why: str) -> None:
    assert judged(path, before, after).why == why


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        (
            "A.java",
            "class A {\n    void set(int size) {\n        size = size;\n    }\n}\n",
            "class A {\n    void set(int size) {\n        this.size = size;\n    }\n}\n",
        ),
        (
            "a.c",
            "void f(void)\n{\n    if (a)\n        if (b) g();\n    else h();\n}\n",
            "void f(void)\n{\n    if (a) {\n        if (b) g(); }\n    else h();\n}\n",
        ),
        ("a.js", "f({ name: other });\n", "f({ name: name });\n"),
        ("a.rb", "def f\n  rows.each { |one| g(one) }\nend\n", "def f\n  rows.each { |one| return g(one) }\nend\n"),
        ("a.rs", "fn f() -> i32 {\n    if a { 1 } else { 2 };\n    3\n}\n", "fn f() -> i32 {\n    if a { return 1 } else { 2 };\n    3\n}\n"),
        ("a.rs", "fn f(n: i32) -> i32 {\n    n / 2\n}\n", "fn f(n: i32) -> i32 {\n    if n == 0 { return 1; }\n    n / 2\n}\n"),
        ("a.php", "<?php\nf(array(1));\n", "<?php\nf(array(2));\n"),
        ("a.c", "void f(void)\n{\n    if (a)\n        g();\n    h();\n}\n", "void f(void)\n{\n    if (a) {\n        g();\n    h(); }\n}\n"),
        ("a.js", "const f = () => { g(); };\n", "const f = () => g();\n"),
    ],
)  # fmt: skip
def test_what_only_looks_like_the_same_written_otherwise_is_work(path: str, before: str, after: str) -> None:
    verdict = judged(path, before, after)
    assert not verdict.empty and not verdict.trivial, verdict


def test_indentation_is_a_change_where_the_language_says_something_by_it() -> None:
    assert not judged("a.py", "if a:\n    b()\n    c()\n", "if a:\n    b()\nc()\n").trivial
    assert not judged("a.coffee", "if a\n  b()\n  c()\n", "if a\n  b()\nc()\n").trivial


def test_an_empty_override_is_told_from_an_empty_method() -> None:
    base = "class Base:\n    def log(self):\n        print(self)\n\n\n"
    assert (
        judged("a.py", base, f"{base}class Quiet(Base):\n    def log(self):\n        pass\n\n    x = 1\n").trivial
        is False
    )
    comparison = whole(
        "a.py",
        f"{base}class Quiet(Base):\n    def log(self):\n        pass\n\n    def other(self):\n        pass\n".encode(),
    )
    assert comparison.judge(7, 8).overrides
    assert not comparison.judge(10, 11).overrides
    assert whole("a.py", b"class Quiet(Library):\n    def log(self):\n        pass\n").judge(2, 3).overrides


def test_a_decorator_before_an_empty_function_that_was_there_is_work() -> None:
    before, after = "def cli():\n    pass\n", "@group\ndef cli():\n    pass\n"
    hunks = [((0, 0), (1, 1))]
    assert not compare("a.py", before.encode(), after.encode(), hunks).judge(1, 1).empty
    assert whole("a.py", after.encode()).judge(1, 3).empty


@pytest.mark.parametrize(("path", "content"), [
    ("a.py", b"(" * 50_000), ("a.js", b"[" * 3_000 + b"]" * 3_000), ("a.js", b"var a=1;" * 10_000),
    ("a.c", b"/* x */ " * 200_000), ("a.py", b"\xff\xfe" + "a = 1\n".encode("utf-16-le")), ("a.py", b"\0\1\2"),
    ("a.rs", b"\xc3\x28" * 1000), ("A.cs", b"public record(int B, int C);\n"),
])  # fmt: skip
def test_no_content_is_too_strange_for_a_verdict(path: str, content: bytes) -> None:
    assert isinstance(whole(path, content).judge(1, 1), RangeVerdict)
