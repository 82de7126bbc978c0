"""Another output of an example, another literal that is no plain string, and a changed line of a fixture are told (SPEC 4)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from code_intel_server.codebase.weakening import weakened

PY = 'def f(x):\n    """Adds.\n\n    >>> f(1)\n    4\n    >>> f(\n    ...     2)\n    5\n    """\n    return x + 3\n'
GO = (
    "package a\n\nfunc ExampleF() {\n\tfmt.Println(f(1))\n\t// Output: 4\n\t// 5\n}\n\n"
    "func ExampleG() {\n\tfmt.Println(1)\n\t// Output:\n\t// 1\n}\n"
)
JS = "it('a', () => {\n  expect(f(1)).toMatch(/abc/);\n});\n"
RUBY = "describe 'x' do\n  it 'a' do\n    expect(f).to match(/abc/)\n  end\nend\n"
ELIXIR = 'defmodule A do\n  test "a" do\n    assert f() =~ ~r/abc/\n  end\nend\n'
RUST = "#[test]\nfn a() {\n    assert_eq!(f(), 'a');\n}\n"
DATA = '{\n "a": 1,\n "b": 2\n}\n'

OTHERWISE = [
    ("src/a.py", PY, "    4\n", "    9\n", "an example prints no longer `4`"),
    ("src/a.py", PY, "    5\n", "    9\n    10\n", "an example prints no longer `5`"),
    ("src/a.py", PY, ">>> f(1)\n", ">>> f(1)  # doctest: +SKIP\n", "an example prints no longer `4`"),
    ("src/a.py", PY.replace("\n", "\r\n"), "    4\r\n", "    9\r\n", "an example prints no longer `4`"),
    ("src/a.py", PY, "    4\n", "", "an example prints no longer `4`"),
    ("tests/test_a.py", PY, "    4\n", "    9\n", "an example prints no longer `4`"),
    ("a_test.go", GO, "Output: 4", "Output: 5", "an example prints no longer `4 5`"),
    ("a_test.go", GO, "// Output: 4", "// prints 4", "an example prints no longer `4 5`"),
    ("a_test.go", GO, "// 1", "// 2", "an example prints no longer `1`"),
    ("src/a.test.js", JS, "abc", ".*", "expects no longer `/abc/`"),
    ("spec/a_spec.rb", RUBY, "abc", ".*", "expects no longer `/abc/`"),
    ("test/a_test.exs", ELIXIR, "abc", ".*", "expects no longer `~r/abc/`"),
    ("tests/a.rs", RUST, "'a'", "'b'", "expects no longer `'a'`"),
    ("tests/fixtures/a.json", DATA, "2", "3", "1 recorded line changed"),
    ("tests/unit/my-fixtures/deep/a.yaml", DATA, "2", "3", "1 recorded line changed"),
    ("pkg/testdata/a.txt", DATA, "2", "3", "1 recorded line changed"),
    ("src/__fixtures__/a.json", DATA, "2", "3", "1 recorded line changed"),
    ("test/golden/a.out", DATA, "2", "3", "1 recorded line changed"),
]

AS_BEFORE = [
    ("src/a.py", PY, "    4\n", "    4\n    >>> f(3)\n    6\n"),
    ("src/a.py", PY, "    >>> f(1)\n    4\n", ""),
    ("src/a.py", PY, "f(1)", "f(size=1)"),
    ("src/a.py", PY, "\n", "\r\n"),
    ("src/a.py", PY, "    ", "\t"),
    ("src/a.go", GO, "// 1", "// 2"),
    ("a_test.go", GO, "// Output: 4\n\t// 5", "// Output:\n\t// 4\n\t// 5"),
    ("a_test.go", GO, "fmt.Println(1)", 'fmt.Println("1")'),
    ("tests/fixtures/a.json", DATA, "2", '2,\n "c": 3'),
    ("tests/fixtures/a.json", DATA, "\n ", "\r\n    "),
    ("tests/fixtures/a.svg", DATA, "2", "3"),
    ("fixtures/tests.json", DATA, "2", "3"),
    ("app/fixtures/a.json", DATA, "2", "3"),
]


@pytest.mark.parametrize(("path", "text", "old", "new", "said"), OTHERWISE, ids=range(len(OTHERWISE)))
def test_what_is_compared_with_and_reads_otherwise_is_said(path: str, text: str, old: str, new: str, said: str) -> None:
    assert old in text
    assert weakened(path, text.split("\n"), text.replace(old, new).split("\n")) == (said,)


@pytest.mark.parametrize(("path", "text", "old", "new"), AS_BEFORE, ids=range(len(AS_BEFORE)))
def test_what_is_new_or_moved_is_not(path: str, text: str, old: str, new: str) -> None:
    assert old in text
    assert weakened(path, text.split("\n"), text.replace(old, new).split("\n")) == ()


def test_a_new_or_a_removed_fixture_says_nothing() -> None:
    assert weakened("tests/fixtures/a.json", None, DATA.split("\n")) == ()
    assert weakened("tests/fixtures/a.json", DATA.split("\n"), None) == ()


@given(st.lists(st.sampled_from([">>> f()", "... g", "4", "", '"""', "func ExampleA() {", "// Output: 1", "// 2", "}", "\x0c", "é"]), max_size=30))  # fmt: skip
def test_any_lines_are_compared(lines: list[str]) -> None:
    for path in ("src/a.py", "a_test.go"):
        assert weakened(path, lines, lines) == ()
        weakened(path, PY.split("\n"), lines)
        weakened(path, lines, GO.split("\n"))
