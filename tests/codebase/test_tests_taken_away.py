"""Tests that stand in the file as before and run no more are told, whatever keeps them from it; honest edits are not (SPEC 4)."""

import time
from pathlib import Path

import pytest

from code_intel_server.codebase.evidence import ProjectEvidence
from code_intel_server.codebase.weakening import weakened

PYTHON = "import app\n\n\ndef test_a():\n    assert app.x() == 1\n\n\ndef test_b():\n    value = app.y()\n    assert value == 2\n"
CLASS = (
    "class TestA:\n    def test_a(self):\n        assert f() == 1\n\n    def test_b(self):\n        assert g() == 2\n"
)
CASE = CLASS.replace("TestA:", "SomeTests(unittest.TestCase):")
JS = "describe('app', () => {\n  it('adds', () => {\n    expect(f(1)).toBe(2);\n  });\n\n  it('takes', () => {\n    expect(g(1)).toBe(0);\n  });\n});\n"
GO = 'package a\n\nimport "testing"\n\nfunc TestA(t *testing.T) {\n\tif f() != 1 {\n\t\tt.Fatal("f")\n\t}\n}\n\nfunc (s *Suite) TestB() {\n\ts.Equal(1, f())\n}\n'
RUST = "#[test]\nfn a() {\n    assert_eq!(1, f());\n}\n\n#[test]\nfn b() {\n    assert_eq!(2, g());\n}\n"
JAVA = "class AppTest {\n    @Test\n    void adds() {\n        assertEquals(2, f(1));\n    }\n\n    @Test\n    void takes() {\n        assertEquals(0, g(1));\n    }\n}\n"
RUBY = "class AppTest < Minitest::Test\n  def test_a\n    refute_equal 1, f\n    f.must_equal 2\n  end\n\n  def test_b\n    assert g\n  end\nend\n"
RSPEC = "describe App do\n  it 'adds' do\n    expect(f).to eq(1)\n  end\n\n  it 'takes' do\n    is_expected.to be_empty\n  end\nend\n"
ELIXIR = (
    'defmodule AppTest do\n  use ExUnit.Case\n\n  test "a" do\n    refute App.x()\n    assert App.y()\n  end\nend\n'
)
C = "#include <check.h>\n\nTEST(app, adds) {\n    EXPECT_EQ(2, f(1));\n}\n\nTEST(app, takes) {\n    EXPECT_EQ(0, g(1));\n}\n"
CSHARP = "public class AppTests {\n    [Fact]\n    public void Adds() {\n        Assert.Equal(2, F(1));\n    }\n}\n"
PHP = "<?php\nclass AppTest extends TestCase {\n    public function testAdds(): void {\n        $this->assertSame(2, f(1));\n    }\n}\n"
LIB = f"pub fn f() -> u8 {{\n    assert!(true || false);\n    1\n}}\n\n#[cfg(test)]\nmod tests {{\n    use super::*;\n\n{RUST}}}\n"


def at(place: str, line: str, text: str) -> str:
    """`text` with a line put behind the first one that ends with `place`."""
    assert place in text
    return text.replace(place, f"{place}\n{line}", 1)


def indented(text: str) -> str:
    return "".join(f"    {line}\n" if line else "\n" for line in text.splitlines())


PY, JSFILE = "tests/test_a.py", "src/a.test.js"
TAKEN = {
    "all in a string": (PY, PYTHON, f'X = """\n{PYTHON}"""\n'),
    "all in a string, and an empty one": (PY, PYTHON, f'X = """\n{PYTHON}"""\n\n\ndef test_nothing():\n    pass\n'),
    "a part in a string": (PY, PYTHON, PYTHON.replace("def test_b", "'''\ndef test_b") + "'''\n"),
    "a raw string": (PY, PYTHON, f"X = r'''\n{PYTHON}'''\n"),
    "an assertion in a string": (PY, PYTHON, PYTHON.replace("assert value == 2", '"assert value == 2"')),
    "a comment": (PY, PYTHON, PYTHON.replace("def test_b", "# def test_b")),
    "deleted behind it": (PY, PYTHON, f"{PYTHON}\n\ndel test_a\n"),
    "two deleted": (PY, PYTHON, f"{PYTHON}\n\ndel (test_a, test_b)\n"),
    "deleted from the globals": (PY, PYTHON, f"{PYTHON}\n\nglobals().pop('test_a')\n"),
    "another value": (PY, PYTHON, f"{PYTHON}\n\ntest_a = test_b = None\n"),
    "another value in a class": (PY, CLASS, f"{CLASS}\n    test_a = None\n"),
    "another test of the name": (PY, PYTHON, f"{PYTHON}\n\ndef test_a():\n    pass\n"),
    "another class of the name": (PY, CLASS, f"{CLASS}\n\nclass TestA:\n    pass\n"),
    "returned at once": (PY, PYTHON, at("def test_a():", "    return", PYTHON)),
    "returned below a docstring": (PY, PYTHON, at("def test_a():", '    """Says so."""\n    return None', PYTHON)),
    "returned before the assertion": (PY, PYTHON, at("value = app.y()", "    return", PYTHON)),
    "raised before it": (PY, PYTHON, at("value = app.y()", "    raise SystemExit", PYTHON)),
    "never": (PY, PYTHON, f"if False:\n{indented(PYTHON)}"),
    "never, by a name": (PY, PYTHON, f"RUN = 0\nif RUN:\n{indented(PYTHON)}"),
    "never, in the other branch": (PY, PYTHON, f"if True:\n    pass\nelse:\n{indented(PYTHON)}"),
    "an assertion never": (PY, PYTHON, PYTHON.replace("    assert value", "    if 0:\n        assert value")),
    "a loop over nothing": (PY, PYTHON, f"for _ in []:\n{indented(PYTHON)}"),
    "in a function": (PY, PYTHON, f"def later():\n{indented(PYTHON)}"),
    "a class that is made": (PY, CLASS, at("class TestA:", "    def __init__(self):\n        pass\n", CLASS)),
    "a class of no case": (PY, CASE, CASE.replace("unittest.TestCase", "object")),
    "an exit at the top": (PY, PYTHON, f"import sys\nsys.exit(0)\n{PYTHON}"),
    "skipped at the top": (PY, PYTHON, f"import pytest\npytest.skip('no', allow_module_level=True)\n{PYTHON}"),
    "the end at the top": (PY, PYTHON, f"raise SystemExit(0)\n{PYTHON}"),
    "the end of the run": (PY, PYTHON, at("value = app.y()", "    os._exit(0)", PYTHON)),
    "a loader": (PY, CASE, f"{CASE}\n\ndef load_tests(loader, tests, pattern):\n    return unittest.TestSuite()\n"),
    "a package that skips": ("tests/__init__.py", None, "import pytest\npytest.skip(allow_module_level=True)\n"),
    "no parameter": (PY, PYTHON, PYTHON.replace("def test_b", "@pytest.mark.parametrize('a', [])\ndef test_b")),
    "equal to itself": (PY, PYTHON, PYTHON.replace("value == 2", "value == value")),
    "too long to be parsed": (PY, PYTHON, f"{PYTHON}# {'x' * 1_100_000}\n"),
    "pytest.toml": ("pytest.toml", None, '[pytest]\naddopts = ["--deselect", "tests/test_a.py::test_a"]\n'),
    "an empty pytest.toml": ("pytest.toml", None, "[pytest]\n"),
    ".pytest.toml": (".pytest.toml", None, '[pytest]\naddopts = ["--ignore=tests/test_a.py"]\n'),
    "pytest.toml changed": ("pytest.toml", '[pytest]\nxfail_strict = true\n', '[pytest]\nxfail_strict = false\n'),
    "pytest.ini": ("pytest.ini", "[pytest]\n", "[pytest]\naddopts = --ignore tests\n"),
    "tox.ini": ("tox.ini", None, "[pytest]\naddopts = --deselect tests/test_a.py::test_a\n"),
    "the environment of tox": ("tox.ini", "[testenv]\n", "[testenv]\nsetenv = PYTEST_ADDOPTS=-x\n"),
    "setup.cfg": ("setup.cfg", "[metadata]\n", "[metadata]\n[tool:pytest]\naddopts = --ignore=tests\n"),
    "pyproject.toml": ("pyproject.toml", None, '[tool.pytest]\ntestpaths = ["unit"]\n'),
    "collect_ignore": ("conftest.py", None, "collect_ignore = ['tests/test_a.py']\n"),
    "collect_ignore_glob": ("tests/conftest.py", "", "collect_ignore_glob = ['*']\n"),
    "modifyitems": ("conftest.py", None, "def pytest_collection_modifyitems(items):\n    items[:] = []\n"),
    "ignore_collect": ("conftest.py", None, "def pytest_ignore_collect():\n    return True\n"),
    "generate_tests": ("conftest.py", None, "def pytest_generate_tests(metafunc):\n    metafunc.parametrize('a', [])\n"),
    "refute": ("test/a_test.exs", ELIXIR, ELIXIR.replace("refute ", "")),
    "a tag": ("test/a_test.exs", ELIXIR, ELIXIR.replace("  test", '  @tag skip: "no"\n  test')),
    "a module's tag": ("test/a_test.exs", ELIXIR, at("use ExUnit.Case", "  @moduletag :skip", ELIXIR)),
    "refute_equal": ("test/a_test.rb", RUBY, RUBY.replace("    refute_equal 1, f\n", "")),
    "must_equal": ("test/a_test.rb", RUBY, RUBY.replace("    f.must_equal 2\n", "")),
    "a skip of minitest": ("test/a_test.rb", RUBY, at("def test_b", "    skip", RUBY)),
    "returned in Ruby": ("test/a_test.rb", RUBY, at("def test_b", "    return", RUBY)),
    "a comment in Ruby": ("test/a_test.rb", RUBY, f"=begin\n{RUBY}=end\n"),
    "a document in Ruby": ("test/a_test.rb", RUBY, f"X = <<~END\n{RUBY}END\n"),
    "xit of rspec": ("spec/a_spec.rb", RSPEC, RSPEC.replace("it 'adds'", "xit 'adds'")),
    "is_expected": ("spec/a_spec.rb", RSPEC, RSPEC.replace("    is_expected.to be_empty\n", "")),
    "not built": ("tests/a.rs", RUST, f"#[cfg(any())]\n{RUST}"),
    "not built as a whole": ("tests/a.rs", RUST, f"#![cfg(any())]\n{RUST}"),
    "ignored": ("tests/a.rs", RUST, RUST.replace("#[test]\nfn b", "#[test]\n#[ignore]\nfn b")),
    "ignored by configuration": ("tests/a.rs", RUST, RUST.replace("#[test]\nfn b", "#[cfg_attr(all(), ignore)]\n#[test]\nfn b")),
    "a test beside the code": ("src/lib.rs", LIB, LIB.replace("#[test]\nfn b", "fn b")),
    "an assertion beside the code": ("src/lib.rs", LIB, LIB.replace("    assert_eq!(2, g());\n", "")),
    "a module that is not built": ("src/lib.rs", LIB, LIB.replace("cfg(test)", "cfg(any())")),
    "no module any more": ("src/lib.rs", LIB, LIB.partition("#[cfg")[0]),
    "returned in Rust": ("tests/a.rs", RUST, at("fn b() {", "    return;", RUST)),
    "a string in Rust": ("tests/a.rs", RUST, f'const X: &str = r#"\n{RUST}"#;\n'),
    "describe.skip": (JSFILE, JS, JS.replace("describe(", "describe.skip(")),
    "describe.skipIf": (JSFILE, JS, JS.replace("describe(", "describe.skipIf(true)(")),
    "it.todo": (JSFILE, JS, JS.replace("it('adds'", "it.todo('adds'")),
    "xit": (JSFILE, JS, JS.replace("it('adds'", "xit('adds'")),
    "an option": (JSFILE, JS, JS.replace("it('adds', ", "it('adds', { skip: true }, ")),
    "this.skip": (JSFILE, JS, JS.replace("    expect(f", "    this.skip();\n    expect(f")),
    "returned in JavaScript": (JSFILE, JS, at("it('adds', () => {", "    return;", JS)),
    "returned in TypeScript": ("src/a.test.ts", JS, at("it('adds', () => {", "    return;", JS)),
    "an exit in JavaScript": (JSFILE, JS, f"process.exit(0);\n{JS}"),
    "an exit in a test": (JSFILE, JS, JS.replace("    expect(g", "    process.exit(0);\n    expect(g")),
    "a template": (JSFILE, JS, f"const x = `\n{JS}`;\n"),
    "a comment in JavaScript": (JSFILE, JS, f"/*\n{JS}*/\n"),
    "never in JavaScript": (JSFILE, JS, f"if (0) {{\n{JS}}}\n"),
    "never without braces": (JSFILE, JS, f"if (0)\n{JS}"),
    "never by a name in JavaScript": (JSFILE, JS, f"if (process.env.ALL) {{\n{JS}}}\n"),
    "t.Skip": ("a_test.go", GO, at("func TestA(t *testing.T) {", "\tt.Skip()", GO)),
    "returned in Go": ("a_test.go", GO, at("func TestA(t *testing.T) {", "\treturn", GO)),
    "another name in Go": ("a_test.go", GO, GO.replace("func TestA", "func checkA")),
    "a method in Go": ("a_test.go", GO, GO.replace(") TestB", ") b")),
    "a main that runs nothing": ("a_test.go", GO, f"{GO}\nfunc TestMain(m *testing.M) {{\n\tos.Exit(0)\n}}\n"),
    "a build tag": ("a_test.go", GO, f"//go:build ignore\n\n{GO}"),
    "@Disabled": ("src/test/AppTest.java", JAVA, JAVA.replace("    @Test\n    void takes", "    @Disabled\n    @Test\n    void takes")),
    "@Ignore": ("src/test/AppTest.java", JAVA, f"@Ignore\n{JAVA}"),
    "@DisabledOnOs": ("src/test/AppTest.java", JAVA, f"@DisabledOnOs(OS.LINUX)\n{JAVA}"),
    "an assumption": ("src/test/AppTest.java", JAVA, at("void adds() {", "        assumeTrue(false);", JAVA)),
    "returned in Java": ("src/test/AppTest.java", JAVA, at("void adds() {", "        return;", JAVA)),
    "not compiled": ("tests/a_test.cpp", C, f"#if 0\n{C}#endif\n"),
    "not compiled by a name": ("tests/a_test.cpp", C, f"#ifdef NEVER\n{C}#endif\n"),
    "an assertion of C#": ("tests/AppTests.cs", CSHARP, CSHARP.replace("Assert.Equal(2, F(1));", "F(1);")),
    "another name in PHP": ("tests/AppTest.php", PHP, PHP.replace("testAdds", "adds")),
}  # fmt: skip
SWALLOWED = {
    "a try": (PY, PYTHON, PYTHON.replace("    assert value == 2\n", "    try:\n        assert value == 2\n    except AssertionError:\n        pass\n")),
    "a bare try": (PY, PYTHON, PYTHON.replace("    assert value == 2\n", "    try:\n        assert value == 2\n    except:\n        pass\n")),
    "suppress": (PY, PYTHON, at("value = app.y()", "    contextlib.suppress(AssertionError).__enter__()", PYTHON)),
    "a context of its own": (PY, PYTHON, "class Quiet:\n    def __enter__(self): ...\n\n    def __exit__(self, *a: object) -> bool:\n        return True\n\n\n" + PYTHON.replace("    assert value == 2\n", "    with Quiet():\n        assert value == 2\n")),
    "raises": (PY, PYTHON, PYTHON.replace("    assert value == 2\n", "    with pytest.raises(AssertionError):\n        assert value == 2\n")),
    "a pair": (PY, PYTHON, PYTHON.replace("assert value == 2", "assert (value == 2, 'two')")),
    "a mark by its name": (PY, PYTHON, f"pytestmark = getattr(pytest.mark, 'sk' + 'ip')\n{PYTHON}"),
    "a stand-in": (PY, PYTHON, PYTHON.replace("import app", "from unittest.mock import MagicMock\napp = MagicMock()")),
    "a stand-in for a function": (PY, PYTHON, at("def test_b():", "    monkeypatch.setattr(app, 'y', lambda: 2)", PYTHON)),
    "a flaky mark": (PY, PYTHON, PYTHON.replace("def test_b", "@pytest.mark.flaky(reruns=100)\ndef test_b")),
    "an empty catch": (JSFILE, JS, JS.replace("    expect(g(1)).toBe(0);", "    try { expect(g(1)).toBe(0); } catch {}")),
    "a promise that is caught": (JSFILE, JS, JS.replace("    expect(g(1)).toBe(0);", "    p.then(() => expect(g(1)).toBe(0)).catch(() => {});")),
    "a module that stands in": (JSFILE, JS, f"jest.mock('./app', () => ({{ g: () => 0 }}));\n{JS}"),
    "tried again": (JSFILE, JS, f"jest.retryTimes(100);\n{JS}"),
    "recovered": ("a_test.go", GO, at("func TestA(t *testing.T) {", "\tdefer func() { recover() }()", GO)),
    "only when long": ("a_test.go", GO, at("func TestA(t *testing.T) {", "\tif testing.Short() { return }", GO)),
    "panics": ("tests/a.rs", RUST, RUST.replace("#[test]\nfn b", "#[test]\n#[should_panic]\nfn b")),
    "unwound": ("tests/a.rs", RUST, RUST.replace("assert_eq!(2, g());", "let _ = std::panic::catch_unwind(|| assert_eq!(2, g()));")),
    "another macro": ("tests/a.rs", RUST, f"macro_rules! assert_eq {{ ($($t:tt)*) => {{}} }}\n{RUST}"),
    "an expected failure": ("src/test/AppTest.java", JAVA, JAVA.replace("@Test", "@Test(expected = AssertionError.class)")),
    "a thrown failure": ("src/test/AppTest.java", JAVA, JAVA.replace("assertEquals(2, f(1));", "assertThrows(AssertionError.class, () -> assertEquals(2, f(1)));")),
    "a caught failure": ("src/test/AppTest.java", JAVA, JAVA.replace("assertEquals(2, f(1));", "try { assertEquals(2, f(1)); } catch (Throwable t) {}")),
    "private": ("src/test/AppTest.java", JAVA, JAVA.replace("void adds", "private void adds")),
    "abstract": ("src/test/AppTest.java", JAVA, f"abstract {JAVA}"),
    "a fixture for all": ("tests/conftest.py", "A = 1\n", "A = 1\n@pytest.fixture(autouse=True)\ndef x(monkeypatch): ...\n"),
    "another module": ("tests/conftest.py", "A = 1\n", "A = 1\nsys.modules['app'] = fake\n"),
    "another error": ("tests/conftest.py", "A = 1\n", "A = 1\nbuiltins.AssertionError = Warning\n"),
    "no assertions": ("Makefile", "test:\n\tpytest\n", "export PYTHONOPTIMIZE=1\ntest:\n\tpytest\n"),
    "an environment": ("pytest.ini", "[pytest]\n", "[pytest]\nenv =\n    SKIP=1\n"),
    "fixtures": ("pytest.ini", "[pytest]\n", "[pytest]\nusefixtures = skipper\n"),
    "a set-up": ("jest.setup.js", "const a = 1;\n", "const a = 1;\nglobal.expect = fake;\n"),
    "a pipeline": (".github/workflows/ci.yml", "jobs:\n  t:\n    - run: pytest\n", "jobs:\n  t:\n    - run: pytest || true\n"),
    "a pipeline that goes on": (".github/workflows/ci.yml", "jobs:\n  t:\n    - run: pytest\n", "jobs:\n  t:\n    - run: pytest\n      continue-on-error: true\n"),
    "a pipeline that may fail": (".gitlab-ci.yml", "test:\n  script: pytest\n", "test:\n  script: pytest\n  allow_failure: true\n"),
}  # fmt: skip
TAKEN |= SWALLOWED
HONEST = {
    "blank lines": (PY, PYTHON, PYTHON.replace("\n\n\n", "\n" * 200)),
    "an assertion over lines": (PY, PYTHON, PYTHON.replace("app.x() == 1", "(\n        app.x()\n        == 1\n    )")),
    "another name": (PY, PYTHON, PYTHON.replace("test_a", "test_that_x_is_one")),
    "a helper": (PY, f"def made():\n    return 1\n\n\n{PYTHON}", f"def build():\n    return 1\n\n\n{PYTHON}"),
    "one more": (PY, PYTHON, f"{PYTHON}\n\ndef test_c():\n    assert app.z()\n"),
    "one more on a platform": (PY, PYTHON, f"{PYTHON}\n\nif POSIX:\n\n    def test_c():\n        assert app.z()\n"),
    "a word in a string": (PY, PYTHON, f"{PYTHON}\nNAMES = ['pytest.skip(', 'xit(', 'it.only']\n"),
    "a docstring": (PY, PYTHON, at("def test_a():", '    """Does not pytest.skip( or return True.\n\n    def test_c\n    """', PYTHON)),
    "a text with a test": (PY, f"{PYTHON}\nX = '''\ndef test_c():\n    assert 1\n'''\n", PYTHON),
    "a comment": (PY, PYTHON, f"# it.only, pytest.skip() and @Ignore\n{PYTHON}"),
    "a return at its end": (PY, PYTHON, f"{PYTHON}    return\n"),
    "a helper that returns": (PY, PYTHON, f"def made(x):\n    if x:\n        return 1\n    return 2\n\n\n{PYTHON}"),
    "a mark": (PY, PYTHON, f"{PYTHON}\n\ntest_a = pytest.mark.slow(test_a)\n"),
    "an attribute": (PY, PYTHON, f"{PYTHON}\n\ntest_a.slow = True\n"),
    "a main": (PY, PYTHON, f"{PYTHON}\n\nif __name__ == '__main__':\n    sys.exit(pytest.main())\n"),
    "into a class": (PY, PYTHON, f"class TestA:\n{indented(PYTHON)}"),
    "a class that is set up": (PY, CASE, CASE.replace("    def test_a", "    def setUp(self):\n        pass\n\n    def test_a")),
    "a local name": (PY, PYTHON, PYTHON.replace("value", "test_value").replace("    assert test", "    test_value += 0\n    assert test")),
    "blank lines in JavaScript": (JSFILE, JS, JS.replace("\n", "\n\n")),
    "other quotes": (JSFILE, JS, JS.replace("'", '"')),
    "a page": (JSFILE, JS, JS.replace("f(1)", "f({ skip: 10, limit: 5 })")),
    "a guard": (JSFILE, JS, at("it('adds', () => {", "    if (!ready) return;", JS)),
    "a word in JavaScript": (JSFILE, JS, JS.replace("'adds'", "'adds, no it.skip( or process.exit()'")),
    "a main of Go": ("a_test.go", GO, f"{GO}\nfunc TestMain(m *testing.M) {{\n\tos.Exit(m.Run())\n}}\n"),
    "a helper of Go": ("a_test.go", GO, f"{GO}\nfunc made() int {{\n\treturn 1\n}}\n"),
    "a module of Rust": ("tests/a.rs", RUST, f"#[cfg(test)]\nmod more {{\n    #[test]\n    fn c() {{\n        assert!(h());\n    }}\n}}\n\n{RUST}"),
    "code beside tests": ("src/lib.rs", LIB, LIB.replace("    assert!(true || false);\n", "    #[cfg(unix)]\n")),
    "an attribute of the module": ("src/lib.rs", LIB, LIB.replace("mod tests", "#[allow(dead_code)]\nmod tests")),
    "a return of Ruby": ("test/a_test.rb", RUBY, at("def test_a", "    return if none?", RUBY)),
    "a name of Java": ("src/test/AppTest.java", JAVA, JAVA.replace("takes", "subtracts")),
    "a name of C": ("tests/a_test.cpp", C, C.replace("takes", "subtracts")),
    "a package": ("tests/__init__.py", None, '"""The tests."""\n'),
    "a fixture": ("conftest.py", None, "import pytest\n\n\n@pytest.fixture\ndef app():\n    return 1\n"),
    "an expected error": (PY, PYTHON, f"{PYTHON}\n\ndef test_c():\n    with pytest.raises(ValueError):\n        app.z()\n"),
    "a new test with a stand-in": (PY, PYTHON, f"{PYTHON}\n\ndef test_c(monkeypatch):\n    monkeypatch.setattr(app, 'now', lambda: 2)\n    assert app.z()\n"),
    "a tuple": (PY, PYTHON, PYTHON.replace("value == 2", "(value, 1) == (2, 1)")),
    "a panic that is expected": ("tests/a.rs", RUST, f'{RUST}\n#[test]\n#[should_panic(expected = "full")]\nfn c() {{\n    h();\n}}\n'),
    "a catch that looks": (JSFILE, JS, JS.replace("    expect(g(1)).toBe(0);", "    try { g(1); } catch (error) { console.log(error); }\n    expect(g(1)).toBe(0);")),
    "another step": (".github/workflows/ci.yml", "jobs:\n  t:\n    - run: pytest\n", "jobs:\n  t:\n    - run: pytest\n    - run: mkdocs build\n"),
    "other settings": ("pytest.toml", "[pytest]\n", '[pytest]\nminversion = "9.0"\n'),
}  # fmt: skip


def said(root: Path, path: str, before: str | None, after: str) -> tuple[str, ...]:
    return ProjectEvidence(root).weakened(path, None if before is None else before.split("\n"), after.split("\n"))


@pytest.mark.parametrize(("path", "before", "after"), TAKEN.values(), ids=TAKEN)
def test_a_test_that_runs_no_more_is_told(tmp_path: Path, path: str, before: str | None, after: str) -> None:
    assert before != after
    assert said(tmp_path, path, before, after)


@pytest.mark.parametrize(("path", "before", "after"), HONEST.values(), ids=HONEST)
def test_an_honest_edit_is_not(tmp_path: Path, path: str, before: str | None, after: str) -> None:
    assert before != after
    assert said(tmp_path, path, before, after) == ()


UNITS = ["\n", " ", "\t\n", "a", '"', '"""\n', "def ", "def test\n", "class Test\n", "@a.", "@test.", "assert ", "assert(", "it.each", "it\n", "if 0:\n", "return\n", "(", "must_", "pending ", "Skip =", "expect", "parametrize(", "func ("]  # fmt: skip
SECONDS = 2.0
"""Of the processor: a twentieth of it is needed on the slowest of these, and three times as much was when it grew with the square."""


@pytest.mark.parametrize("unit", UNITS, ids=repr)
@pytest.mark.parametrize("path", ["tests/test_a.py", "tests/a.unknown"])
def test_no_text_takes_long(path: str, unit: str) -> None:
    """On 16 KiB of it, and with a word before it that a pattern begins with: blank lines and tabs held the server for good."""
    for begun in ("", "assert"):
        text = f"{PYTHON}{begun}{unit * (16 * 1024 // len(unit))}\nX = 1\n"
        spent = time.process_time()
        weakened(path, PYTHON.split("\n"), text.split("\n"))
        assert time.process_time() - spent < SECONDS, begun


def test_what_is_too_long_to_be_compared_tells_by_its_length() -> None:
    much = ["x = 1\n" * 1000] * 1000
    assert weakened(PY, PYTHON.split("\n"), much) == ("too long to be compared",)
    assert weakened("tests/data/a.json", ["{}"], much) == ()


def test_a_new_file_takes_nothing_away() -> None:
    assert weakened(PY, None, ["raise SkipTest"]) == weakened(PY, [""], ["raise SkipTest"]) == ()


def test_tests_under_a_condition_are_counted_once() -> None:
    hidden = f"if RUN:\n{indented(PYTHON)}".split("\n")
    assert weakened(PY, PYTHON.split("\n"), hidden) == ("2 tests more under a condition",)
    assert weakened(PY, hidden, PYTHON.split("\n")) == ()
    assert weakened(PY, hidden, [*hidden[:6]]) == ("1 test fewer", "1 assertion fewer")
