"""An assertion that lets pass another value than before is told; another layout, name or call under test is not (SPEC 4)."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from code_intel_server.codebase.weakening import weakened

PYTHON = "def test_a():\n    assert f(2) == 4, 'wrong'\n    assert g('x') == 'abc'\n    expected = [7]\n    assert h() in expected\n"
TABLE = "import pytest\n\n@pytest.mark.parametrize(('a', 'b'), [\n    (1, 2),\n    (3, 4),\n])\ndef test_a(a, b):\n    assert f(a) == b\n"
JS = "it('adds', () => {\n  expect(f(2))\n    .toBe(4);\n  expect(g()).not.toEqual({a: 'x', b: [1, 2]});\n});\n"
GO = (
    "package a\n\nfunc TestA(t *testing.T) {\n\ttests := []struct{in, want int}{\n\t\t{in: 2, want: 4},\n\t}\n"
    '\tfor _, c := range tests {\n\t\tif got := f(c.in); got != c.want {\n\t\t\tt.Errorf("got %d", got)\n\t\t}\n\t}\n}\n'
)
GOIF = 'package a\n\nfunc TestA(t *testing.T) {\n\tif got := f(2); got != 4 {\n\t\tt.Errorf("got %d", got)\n\t}\n}\n'
RUST = "#[test]\nfn a() {\n    assert_eq!(f(2), 4);\n    assert!(g().is_ok());\n}\n"
RUBY = "describe 'x' do\n  it 'a' do\n    expect(f(2)).to eq(4)\n    f(3).should == 9\n  end\nend\n"
JAVA = 'class ATest {\n  @Test void a() {\n    assertEquals(4, f(2));\n    assertThat(g()).isEqualTo("x");\n  }\n}\n'
PY, JSFILE, JAVAFILE = "tests/test_a.py", "src/a.test.js", "src/test/java/ATest.java"

OTHERWISE = [
    (PY, PYTHON, "== 4", "== 5", "`4`"),
    (PY, PYTHON, "== 4", "!= 4", "`==`"),
    (PY, PYTHON, "== 4", "is not None", "`==`, `4`"),
    (PY, PYTHON, "'abc'", "'abd'", "`'abc'`"),
    (PY, PYTHON, "[7]", "[7, 8]", ""),
    (PY, PYTHON, "[7]", "[8]", "`7`"),
    (PY, TABLE, "(3, 4)", "(3, 5)", "`4`"),
    (JSFILE, JS, "toBe(4)", "toBe(5)", "`4`"),
    (JSFILE, JS, "toBe(4)", "toBeTruthy()", "`toBe`, `4`"),
    (JSFILE, JS, ".not.", ".", "`not`"),
    (JSFILE, JS, "{a: 'x', b: [1, 2]}", "{}", "`1`, `2`, `'x'`"),
    ("a_test.go", GO, "want: 4", "want: 5", "`4`"),
    ("tests/a.rs", RUST, "4)", "5)", "`4`"),
    ("tests/a.rs", RUST, "assert_eq!(f(2), 4)", "assert_ne!(f(2), 4)", "`assert_eq!`"),
    ("spec/a_spec.rb", RUBY, "eq(4)", "eq(5)", "`4`"),
    ("spec/a_spec.rb", RUBY, "== 9", "== 8", "`9`"),
    (JAVAFILE, JAVA, "4", "5", "`4`"),
    (JAVAFILE, JAVA, 'isEqualTo("x")', "isNotNull()", '`"x"`'),
    (PY, PYTHON, "    assert f(2) == 4, 'wrong'\n", "    assert f(2) == 5, 'wrong'\n    # assert f(2) == 4\n", "`4`"),
    (PY, PYTHON, "    assert f(2) == 4, 'wrong'\n", "    assert f(2) == 5, 'wrong'\n    'assert f(2) == 4'\n", "`4`"),
    (PY, PYTHON, "'abc'", f"'{'z' * 9}'", "`'abc'`"),
    (PY, "def test_a():\n    assert f() == approx(1, abs=1e-9)\n", "1e-9", "1e9", "`1e-9`"),
    (PY, "def test_a():\n    assert f() == date(2020, 1, 2)\n", "1, 2)", "1, 3)", "`2`"),
    (PY, "EXPECTED = {'a': 1}\n\n\ndef test_a():\n    assert f() == EXPECTED\n", ": 1", ": 2", "`1`"),
    (PY, "CASES = [(1, 2)]\n\n\n@parametrize('a,b', CASES)\ndef test_a(a, b):\n    assert f(a) == b\n", "2)", "3)", "`2`"),
    (PY, "def test_a():\n    with pytest.raises(KeyError, match='no'):\n        f()\n", "KeyError", "OSError", "`KeyError`"),
    (PY, "def test_a():\n    with pytest.raises(KeyError, match='no'):\n        f()\n", ", match='no'", "", "`'no'`"),
    (JSFILE, "it('a', () => {\n  assert.strictEqual(f(2), 4);\n});\n", "4", "5", "`4`"),
    (JSFILE, "it('a', () => {\n  assert.strictEqual(f(2), 4);\n});\n", "strictEqual", "equal", "`strictEqual`"),
    ("a_test.go", GOIF, "!= 4", "!= 5", "`4`"),
    ("a_test.go", GOIF.replace("got := f(2); got", "f(2)"), "!= 4", "== 4", "`!=`"),
    ("a_test.go", GO.replace("in: ", "").replace("want: ", ""), "2, 4", "2, 5", "`4`"),
    ("tests/a.rs", RUST.replace("4", 'String::from("a")'), '"a"', '"b"', '`"a"`'),
    ("tests/a_test.cpp", 'TEST(A, b) {\n  EXPECT_EQ(f(), std::string("a"));\n}\n', '"a"', '"b"', '`"a"`'),
    ("test/a_test.exs", 'defmodule A do\n  test "a" do\n    assert f() == :ok\n  end\nend\n', ":ok", ":error", "`:ok`"),
    (JAVAFILE, JAVA.replace("4", "List.of(4)"), "4", "5", "`4`"),
    (JAVAFILE, JAVA.replace("@Test", '@ParameterizedTest @CsvSource({"1,2"})'), "1,2", "1,3", '`"1,2"`'),
    ("tests/ATests.cs", "class A {\n  [Theory]\n  [InlineData(1, 2)]\n  public void B(int a, int b) {\n  }\n}\n", "2)", "3)", "`2`"),
    ("src/test/kotlin/ATest.kt", "class A : StringSpec({\n  \"a\" {\n    f(2) shouldBe 4\n  }\n})\n", "4", "5", "`4`"),
    ("src/test/kotlin/ATest.kt", "class A : StringSpec({\n  \"a\" {\n    f(2) shouldBe 4\n  }\n})\n", "Be", "NotBe", "`shouldBe`"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "text", "old", "new", "said"), OTHERWISE, ids=range(len(OTHERWISE)))
def test_a_value_that_is_no_longer_expected_is_said(path: str, text: str, old: str, new: str, said: str) -> None:
    assert old in text
    found = weakened(path, text.splitlines(), text.replace(old, new).splitlines())
    assert found == ((f"expects no longer {said}",) if said else ())


AS_BEFORE = [
    (PY, PYTHON, "f(2)", "another_name(2)"),
    (PY, PYTHON, "f(2)", "f(size=3, name='y')"),
    (PY, PYTHON, "f(2)", "f(made([1, 2])(3)[4])"),
    (PY, PYTHON, "'wrong'", "'far too large'"),
    (PY, PYTHON, "assert f(2) == 4, 'wrong'", "assert (\n        f(\n            2\n        )\n        == 4\n    ), 'wrong'"),
    (PY, PYTHON, "    assert g('x') == 'abc'\n", "    assert g('x') == 'abc'\n    assert g('y') != 'abc'\n"),
    (PY, PYTHON, "def test_a", '"""About 4 things."""\nLIMIT = 9\n\n\ndef test_a'),
    (PY, TABLE, "(3, 4),\n", "(3, 4),\n    (5, 6),\n"),
    (JSFILE, JS, "'adds'", "'adds two'"),
    (JSFILE, JS, "f(2)", "sum({ first: 'a', second: 9 })"),
    (JSFILE, JS, "\n    .toBe(4)", ".toBe(4)"),
    ("a_test.go", GO, '"got %d"', '"it is %d"'),
    (JAVAFILE, JAVA, "f(2)", "f(3)"),
    (PY, PYTHON, "'abc'", '"abc"'),
    (PY, PYTHON, "f(2) == 4", "f(2)[:size] == 4"),
    (PY, PYTHON.replace("f(2)", "f()[:size]"), "[:size]", "[:length]"),
    (PY, PYTHON, "def test_a():\n    assert f(2) == 4", "EXPECTED = 4\n\n\ndef test_a():\n    assert f(2) == EXPECTED"),
    ("a_test.go", GOIF, '"got %d"', '"it is 4, not %d"'),
    ("a_test.go", GOIF, "f(2)", "f(3)"),
    ("a_test.go", GOIF.replace("got != 4", "got != nil"), GOIF[GOIF.index("\tif") : -2].replace("got != 4", "got != nil"), "\trequire.NoError(t, f(2))\n"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "text", "old", "new"), AS_BEFORE, ids=range(len(AS_BEFORE)))
def test_what_expects_the_same_is_not(path: str, text: str, old: str, new: str) -> None:
    assert old in text
    assert weakened(path, text.splitlines(), text.replace(old, new).splitlines()) == ()


def test_what_a_removed_assertion_expected_is_said_by_its_removal_alone() -> None:
    after = PYTHON.replace("    assert g('x') == 'abc'\n", "")
    assert weakened(PY, PYTHON.splitlines(), after.splitlines()) == ("1 assertion fewer",)


def test_another_expectation_is_not_hidden_behind_another_finding() -> None:
    after = PYTHON.replace("== 4", "== 5") + "\n\n@pytest.mark.skip\ndef test_b():\n    assert k()\n"
    assert weakened(PY, PYTHON.splitlines(), after.splitlines()) == ("1 skip more", "expects no longer `4`")


def test_only_the_first_values_are_named_and_long_ones_are_cut() -> None:
    before = f"def test_a():\n    assert f() == [1, 2, 3, 4, '{'x' * 100}']\n"
    (said,) = weakened(PY, before.splitlines(), "def test_a():\n    assert f() == []\n".splitlines())
    assert said == "expects no longer `1`, `2`, `3` and 2 more"
    (said,) = weakened(PY, before.splitlines(), before.replace("x" * 100, "").splitlines())
    assert said == f"expects no longer `'{'x' * 39}…`"


RECORD = "exports[`it 1`] = `\n<a>\n  4\n</a>\n`;\n"


@pytest.mark.parametrize(
    ("path", "after", "said"),
    [
        ("src/__snapshots__/a.test.js.snap", RECORD.replace("4", "5"), ("1 recorded line changed",)),
        ("src/__snapshots__/a.test.js.snap", None, ("5 recorded lines changed",)),
        ("src/__snapshots__/a.test.js.snap", RECORD + RECORD, ()),
        ("tests/__snapshots__/test_a.ambr", RECORD.replace("4", "5"), ("1 recorded line changed",)),
        ("tests/a.approved.txt", RECORD.replace("4", "5"), ("1 recorded line changed",)),
        ("internal/testdata/a.golden", RECORD.replace("4", "5"), ("1 recorded line changed",)),
        ("docs/golden.txt", RECORD.replace("4", "5"), ()),
    ],
)
def test_a_changed_record_of_results_is_said(path: str, after: str | None, said: tuple[str, ...]) -> None:
    assert weakened(path, RECORD.splitlines(), None if after is None else after.splitlines()) == said


def test_an_assertion_in_a_function_that_nobody_calls_is_none() -> None:
    before = "def test_a():\n    assert f()\n"
    never = "def test_a():\n    def check():\n        assert f()\n"
    called = f"{never}    check()\n"
    registered = "def test_a():\n    @app.route\n    def check():\n        assert f()\n"
    stand_in = "def test_a():\n    class Fake:\n        def send(self):\n            assert f()\n    use(Fake())\n"
    assert weakened(PY, before.splitlines(), never.splitlines()) == ("1 assertion fewer",)
    for after in (called, registered, stand_in):
        assert weakened(PY, before.splitlines(), after.splitlines()) == ()


@given(
    st.text(alphabet="assert(f1,[]{}) ==\n'#é;.\\", max_size=300),
    st.text(alphabet="assert(f1,[]{}) ==\n'#é;.\\", max_size=300),
)
def test_any_two_texts_are_compared(before: str, after: str) -> None:
    assert not any("no longer" in said for said in weakened(PY, before.split("\n"), before.split("\n")))
    weakened(PY, before.split("\n"), after.split("\n"))


@pytest.mark.parametrize(
    "unit",
    [
        "assert f(1, ",
        "assert (",
        "assert f(1)\n\n\n",
        "expected = [",
        "x.should == f(g(",
        "assert a\n  .b\n",
        "if a ",
        "assert :a ",
    ],
)
def test_the_time_grows_with_the_text_alone(unit: str) -> None:
    def seconds(count: int) -> float:
        lines = ["def test_a():", *(unit * count).split("\n")]
        started = time.process_time()
        weakened(PY, lines, [*lines, "x = 1"])
        return time.process_time() - started

    seconds(100)
    assert min(seconds(4_000) for _ in range(2)) < 40 * max(min(seconds(250) for _ in range(3)), 0.005)


def test_other_ends_of_lines_expect_nothing_else() -> None:
    text = 'def test_a():\n    assert f() == """one\n    two"""\n'
    lines, others = text.split("\n"), text.replace("\n", "\r\n").split("\n")
    assert weakened("tests/test_a.py", lines, others) == weakened("tests/test_a.py", others, lines) == ()
