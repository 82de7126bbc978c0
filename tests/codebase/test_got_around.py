"""A test that stands as before is told where it is left early, asserts only under a condition, or is replaced by a decorator (SPEC 4)."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from code_intel_server.codebase.weakening import weakened

PY = "tests/test_a.py"
B = "import os\nimport pytest\n\n\ndef test_a():\n    x = f(1)\n    assert x == 4\n"


def begun(line: str) -> str:
    return B.replace("def test_a():\n", f"def test_a():\n{line}")


CHECK = "def check(x):\n    assert x.all()\n\n\n"
JS = "it('a', () => {\n  expect(f(1)).toBe(4);\n});\n"
AROUND = {
    "noop deco": (
        PY,
        B,
        B.replace("def test_a", "def slow(f):\n    return lambda *a, **k: None\n\n\n@slow\ndef test_a"),
    ),
    "noop deco def": (
        PY,
        B,
        B.replace(
            "def test_a", "def slow(f):\n    def inner(*a, **k):\n        pass\n    return inner\n\n\n@slow\ndef test_a"
        ),
    ),
    "noop deco wraps": (
        PY,
        B,
        B.replace(
            "def test_a",
            "def slow(f):\n    @functools.wraps(f)\n    def inner(*a, **k):\n        return None\n    return inner\n\n\n@slow\ndef test_a",
        ),
    ),
    "imported deco": (PY, B, B.replace("def test_a", "from tests.util import slow\n\n\n@slow\ndef test_a")),
    "used deco": (
        PY,
        "def slow(f):\n    return lambda *a, **k: None\n\n\n" + B,
        "def slow(f):\n    return lambda *a, **k: None\n\n\n" + B.replace("def test_a", "@slow\ndef test_a"),
    ),
    "assign": (PY, B, B + "\n\ntest_a = (lambda f: lambda: None)(test_a)\n"),
    "class deco": (
        PY,
        B,
        B.replace(
            "def test_a",
            "class slow:\n    def __init__(self, f): pass\n    def __call__(self): pass\n\n\n@slow\ndef test_a",
        ),
    ),
    "skipif alias": (
        PY,
        B,
        B.replace("def test_a", "skip = pytest.mark.skipif(True, reason='x')\n\n\n@skip\ndef test_a"),
    ),
    "mark alias": (PY, B, B.replace("def test_a", "m = pytest.mark\n\n\n@m.skip\ndef test_a")),
    "mark import": (
        PY,
        B,
        B.replace("import pytest", "from pytest import mark as m").replace("def test_a", "@m.skip\ndef test_a"),
    ),
    "mark import2": (PY, B, B.replace("def test_a", "@m.skipif(True, reason='x')\ndef test_a")),
    "unittest alias": (
        PY,
        B,
        B.replace("import pytest", "from unittest import skip as slow").replace("def test_a", "@slow('x')\ndef test_a"),
    ),
    "from unittest skip": (
        PY,
        B,
        B.replace("import pytest", "from unittest import skip").replace("def test_a", "@skip('x')\ndef test_a"),
    ),
    "used alias": (
        PY,
        B.replace("def test_a", "later = pytest.mark.skip\n\n\ndef test_a"),
        B.replace("def test_a", "later = pytest.mark.skip\n\n\n@later\ndef test_a"),
    ),
    "env return": (PY, B, begun("    if os.environ.get('X'):\n        return\n")),
    "env return sys": (PY, B, begun("    if sys.platform:\n        return\n")),
    "return after first": (PY, B, B.replace("    assert", "    if x != 4:\n        return\n    assert")),
    "if assert": (PY, B, B.replace("    assert x == 4", "    if x == 4:\n        assert x == 4")),
    "for empty": (PY, B, B.replace("    assert x == 4", "    for y in []:\n        assert x == 4")),
    "for var": (PY, B, B.replace("    assert x == 4", "    for y in ys:\n        assert x == 4")),
    "js guard": (
        "src/a.test.js",
        "it('a', () => {\n  expect(f(1)).toBe(4);\n});\n",
        "it('a', () => {\n  if (process.env.CI) return;\n  expect(f(1)).toBe(4);\n});\n",
    ),
    "js redefine": (
        "src/a.test.js",
        "it('a', () => {\n  expect(f(1)).toBe(4);\n});\n",
        "const it = (n, f) => {};\nit('a', () => {\n  expect(f(1)).toBe(4);\n});\n",
    ),
    "js if": (
        "src/a.test.js",
        "it('a', () => {\n  expect(f(1)).toBe(4);\n});\n",
        "it('a', () => {\n  if (f(1) === 4) expect(f(1)).toBe(4);\n});\n",
    ),
    "go env": (
        "a_test.go",
        "package a\n\nfunc TestA(t *testing.T) {\n\tif f(1) != 4 {\n\t\tt.Fatal(1)\n\t}\n}\n",
        'package a\n\nfunc TestA(t *testing.T) {\n\tif os.Getenv("X") != "1" {\n\t\treturn\n\t}\n\tif f(1) != 4 {\n\t\tt.Fatal(1)\n\t}\n}\n',
    ),
    "java if": (
        "src/test/java/ATest.java",
        "class ATest {\n  @Test void a() {\n    assertEquals(4, f(1));\n  }\n}\n",
        'class ATest {\n  @Test void a() {\n    if (System.getenv("X") != null) return;\n    assertEquals(4, f(1));\n  }\n}\n',
    ),
    "rust if": (
        "tests/a.rs",
        "#[test]\nfn a() {\n    assert_eq!(f(), 4);\n}\n",
        '#[test]\nfn a() {\n    if std::env::var("X").is_ok() { return; }\n    assert_eq!(f(), 4);\n}\n',
    ),
}
UNCALLED = {
    "into a helper that nobody calls": (PY, B, B.replace("    assert x == 4\n", "    x.close()\n\n\ndef check(x):\n    assert x == 4\n")),
    "its call is gone": (PY, f"{CHECK}{B}    check(x)\n", f"{CHECK}{B}"),
    "a helper that calls itself": (PY, B, B.replace("    assert x == 4\n", "    x.close()\n\n\ndef check(x):\n    assert x == 4\n    check(x)\n")),
    "a function of JavaScript": ("src/a.test.js", JS, JS.replace("  expect(f(1)).toBe(4);\n", "  f(1);\n") + "function check() {\n  expect(f(1)).toBe(4);\n}\n"),
}  # fmt: skip
HONEST = {
    "into a helper that is called": (
        PY,
        B,
        B.replace("    assert x == 4\n", "    check(x)\n\n\ndef check(x):\n    assert x == 4\n"),
    ),
    "a helper that was not called before": (PY, f"{CHECK}{B}", f"{B}\n\n{CHECK}"),
    "a fixture that asserts": (
        PY,
        B,
        f"@pytest.fixture(autouse=True)\ndef left(x):\n    yield\n    assert not x\n\n\n{B}",
    ),
    "a hook that asserts": (PY, B, f"def teardown_module():\n    assert not left()\n\n\n{B}"),
    "a helper for other files": (
        "src/a.test.js",
        JS,
        f"export function check() {{\n  expect(f(1)).toBe(4);\n}}\n\n{JS}",
    ),
    "a helper of a class": (PY, B, f"{B}\n\nclass Mixin:\n    def check(self):\n        assert self.x\n"),
    "a mark": (PY, B, B.replace("def test_a", "@pytest.mark.slow\ndef test_a")),
    "a mark by another name": (PY, B, B.replace("def test_a", "slow = pytest.mark.slow\n\n\n@slow\ndef test_a")),
    "a function that gives a mark": (
        PY,
        B,
        B.replace("def test_a", "def slow(n):\n    return pytest.mark.slow(n)\n\n\n@slow(1)\ndef test_a"),
    ),
    "a decorator from elsewhere": (
        PY,
        B,
        B.replace("def test_a", "from freezegun import freeze_time\n\n\n@freeze_time('2020-01-01')\ndef test_a"),
    ),
    "a decorator on a new test": (
        PY,
        B,
        f"{B}\n\ndef slow(f):\n    return lambda: f()\n\n\n@slow\ndef test_b():\n    assert g()\n",
    ),
    "a decorator that was there": (
        PY,
        B.replace("def test_a", "def slow(f):\n    return lambda: f()\n\n\n@slow\ndef test_a"),
        B.replace("def test_a", "def slow(f):\n    return lambda: f()\n\n\n@slow\ndef test_a") + "    assert g()\n",
    ),
    "a helper that is left early": (PY, B, f"def made(x):\n    if x:\n        return 1\n    return 2\n\n\n{B}"),
    "a return behind all assertions": (PY, B, f"{B}    if x:\n        return\n    x.close()\n"),
    "a new assertion under a condition": (PY, B, f"{B}    if x:\n        assert g()\n"),
    "a test that is left early, and new": (
        PY,
        B,
        f"{B}\n\ndef test_b():\n    if os.name == 'nt':\n        return\n    assert g()\n",
    ),
    "a guard of JavaScript": (
        "src/a.test.js",
        "it('a', () => {\n  expect(f(1)).toBe(4);\n});\n",
        "it('a', () => {\n  if (!ready) return;\n  expect(f(1)).toBe(4);\n});\n",
    ),
    "a runner that is extended": (
        "src/a.test.js",
        "it('a', () => {\n  expect(f(1)).toBe(4);\n});\n",
        "const it = base.extend({});\nit('a', () => {\n  expect(f(1)).toBe(4);\n});\n",
    ),
}


def said(path: str, before: str, after: str) -> tuple[str, ...]:
    assert before != after
    return weakened(path, before.splitlines(), after.splitlines())


@pytest.mark.parametrize(("path", "before", "after"), AROUND.values(), ids=AROUND)
def test_a_test_that_is_got_around_is_said(path: str, before: str, after: str) -> None:
    assert said(path, before, after)


@pytest.mark.parametrize(("path", "before", "after"), UNCALLED.values(), ids=UNCALLED)
def test_an_assertion_where_nothing_calls_it_is_said(path: str, before: str, after: str) -> None:
    assert "1 assertion more that nothing calls" in said(path, before, after)


@pytest.mark.parametrize(("path", "before", "after"), HONEST.values(), ids=HONEST)
def test_what_keeps_the_test_is_not(path: str, before: str, after: str) -> None:
    assert said(path, before, after) == ()


def test_another_body_of_a_decorator_is_said() -> None:
    before = B.replace("def test_a", "def slow(f):\n    return f\n\n\n@slow\ndef test_a")
    after = before.replace("return f\n", "return lambda: None\n")
    assert said(PY, before, after) == ("tests replaced by what `slow` gives",)


@given(st.lists(st.sampled_from(["def test_a():", "  assert f(1) == 4", "@slow", "def slow(f):", "  if x: return", "class TestA:", "test_a = (", "\r", "é", "  it('a', () => {"]), max_size=30), st.sampled_from(["\n", "\r\n"]))  # fmt: skip
def test_any_lines_are_compared_and_nothing_is_lost_without_a_change(lines: list[str], end: str) -> None:
    text = end.join(lines).split("\n")
    assert weakened(PY, text, text) == ()
    assert weakened("src/a.test.js", text, text) == ()
    weakened(PY, B.split("\n"), text)


@pytest.mark.parametrize("unit", ["@a{0}\ndef test_{0}():\n    assert f({0}) == {0}\n", "class A{0}:\n", "if a:\n return\n", "test_{0} = (test_{0})\n", "from a import ("])  # fmt: skip
def test_the_time_grows_with_the_text_alone(unit: str) -> None:
    def seconds(count: int) -> float:
        lines = "".join(unit.format(number) for number in range(count)).split("\n")
        started = time.process_time()
        weakened(PY, ["def test_a():", "  assert f()", *lines], [*lines, "def test_a():", "  assert g()"])
        return time.process_time() - started

    seconds(100)
    assert min(seconds(2_000) for _ in range(2)) < 40 * max(min(seconds(125) for _ in range(3)), 0.005)
