"""Code under test that a test file replaces by its own is told; the file's own helpers, and new tests with theirs, are not (SPEC 4)."""

import time

import pytest

from code_intel_server.codebase.weakening import weakened

PYTHON = """import app
from app import f


def test_f():
    assert f(1) == 3
    assert app.g(2) == 4
"""
JS = """import { f } from "./a";
const b = require("./b");
test("f", () => {
  expect(f(1)).toBe(3);
  expect(b.g(1)).toBe(4);
});
"""


def ahead(line: str, text: str = PYTHON) -> str:
    """`text` with a line above its first assertion."""
    place = "    assert f(1)" if text is PYTHON else "  expect(f(1))"
    indent = place[: len(place) - len(place.lstrip())]
    return text.replace(place, f"{indent}{line}\n{place}")


def above(line: str, text: str = PYTHON) -> str:
    """`text` with lines above its test."""
    place = "def test_f" if text is PYTHON else "test("
    return text.replace(place, f"{line}\n{place}", 1)


TOLD = {
    "a lambda": ("a_test.py", PYTHON, ahead("f = lambda x: 3")),
    "a function in the test": ("a_test.py", PYTHON, ahead("def f(x): return 3")),
    "a lambda of the module": ("a_test.py", PYTHON, above("f = lambda x: 3")),
    "a function of the module": ("a_test.py", PYTHON, above("def f(x):\n    return 3\n")),
    "a class": ("a_test.py", PYTHON, above("class f(int):\n    pass\n")),
    "with a type": ("a_test.py", PYTHON, above("f: Callable[[int], int] = lambda x: 3")),
    "a member of the module": ("a_test.py", PYTHON, ahead("app.g = lambda x: 4")),
    "a parameter": ("a_test.py", PYTHON, PYTHON.replace("test_f()", "test_f(f=lambda x: 3)")),
    "a fixture of the name": ("a_test.py", PYTHON, above("@pytest.fixture\ndef f():\n    return lambda x: 3\n")),
    "imported under another name": (
        "a_test.py",
        PYTHON.replace("import f", "import (\n    e as f,\n)"),
        PYTHON.replace("from app import f", "def f(x): return 3"),
    ),
    "a constant": ("a.test.js", JS, ahead("const f = () => 3;", JS)),
    "a function of JavaScript": ("a.test.ts", JS, above("function f() { return 3; }", JS).replace('import { f } from "./a";\n', "")),
    "a member of a required module": ("a.test.js", JS, ahead("b.g = () => 4;", JS)),
}  # fmt: skip
NOT_TOLD = {
    "a helper": ("a_test.py", PYTHON, above("def made(x):\n    return x\n").replace("f(1)", "f(made(1))")),
    "a value": ("a_test.py", PYTHON, ahead("one = 1").replace("f(1)", "f(one)")),
    "an argument of the name": ("a_test.py", PYTHON, PYTHON.replace("app.g(2)", "app.g(\n        2,\n        f=f,\n    )")),
    "a comparison": ("a_test.py", PYTHON, PYTHON.replace("f(1) == 3", "(\n        f(1)\n        == 3\n    )")),
    "imported from elsewhere": ("a_test.py", PYTHON, PYTHON.replace("from app import f", "from app.things import f")),
    "a name that was the file's own": ("a_test.py", above("def h(x):\n    return 3\n"), above("h = lambda x: 3\n")),
    "what nothing calls": ("a_test.py", f"import e\n{PYTHON}", f"import e\n{above('e = 1')}"),
    "a new test with its own": ("a_test.py", PYTHON, f"{PYTHON}\n\ndef test_g():\n    app.h = lambda: 2\n    assert app.h() == 2\n"),
    "an attribute that is data": ("a_test.py", PYTHON, ahead("app.level = 2")),
    "required otherwise": ("a.test.js", JS, JS.replace('import { f } from "./a";', 'const { f } = require("./a");')),
    "imported late": ("a.test.js", JS, ahead('const f = (await import("./a")).f;', JS)),
    "another language": ("a_test.rb", "require 'a'\ndef test_f\n  assert f(1)\nend\n", "require 'a'\ndef f(x) = 3\ndef test_f\n  assert f(1)\nend\n"),
}  # fmt: skip


def said(path: str, before: str, after: str) -> list[str]:
    assert before != after
    return [phrase for phrase in weakened(path, before.split("\n"), after.split("\n")) if "stand-in" in phrase]


@pytest.mark.parametrize(("path", "before", "after"), TOLD.values(), ids=TOLD)
def test_code_under_test_that_the_test_replaces_is_told(path: str, before: str, after: str) -> None:
    assert said(path, before, after) == ["1 stand-in more"]
    assert said(path, after, before) == []


@pytest.mark.parametrize(("path", "before", "after"), NOT_TOLD.values(), ids=NOT_TOLD)
def test_what_replaces_nothing_under_test_is_not(path: str, before: str, after: str) -> None:
    assert said(path, before, after) == []


LASTING = {
    "a function": ("tests/test_a.py", "import app\napp.f = lambda: 1\n", "app.f"),
    "by another name": ("tests/conftest.py", "from pkg import app as a\n\n\ndef good(): ...\n\n\na.b.f: object = good\n", "a.b.f"),
    "by its name": ("test_a.py", "import app\nsetattr(app, 'f', print)\n", "app"),
}  # fmt: skip
NOT_LASTING = {
    "data": ("test_a.py", "import app\napp.testing = True\napp.level = 2\napp.names = ['a']\n"),
    "for a time": ("test_a.py", "import app\n\n\ndef test_f():\n    app.f = lambda: 1\n"),
    "its own": ("test_a.py", "class A: ...\n\n\nA.f = print\n"),
    "no test": ("app/setup.py", "import app\napp.f = print\n"),
    "another language": ("a.test.js", "import * as app from './app';\napp.f = () => 1;\n"),
    "too long": ("test_a.py", "import app\napp.f = print\n" + "#" * 5_000_000),
}  # fmt: skip


@pytest.mark.parametrize(("path", "text", "name"), LASTING.values(), ids=LASTING)
def test_what_a_test_file_means_otherwise_for_all_tests_is_told(path: str, text: str, name: str) -> None:
    """Also of a new file: it is loaded in one run with the others."""
    assert weakened(path, None, text.split("\n")) == (f"another meaning for all tests of {name}",)
    assert weakened(path, text.split("\n"), [*text.split("\n"), "A = 1"]) == ()
    first = text.split("\n")[:1]
    assert f"another meaning for all tests of {name}" in weakened(path, first, text.split("\n"))


@pytest.mark.parametrize(("path", "text"), NOT_LASTING.values(), ids=NOT_LASTING)
def test_what_a_new_file_keeps_to_itself_is_not(path: str, text: str) -> None:
    assert weakened(path, None, text.split("\n")) == ()


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("tests/test_0.py", "import os\nos._exit(0)\n"),
        ("tests/test_0.py", "import atexit, os\natexit.register(os._exit, 0)\n"),
        ("main_test.go", 'package a\n\nimport (\n\t"os"\n\t"testing"\n)\n\nfunc TestMain(m *testing.M) {\n\tos.Exit(0)\n}\n'),
    ],
)  # fmt: skip
def test_a_new_file_that_ends_the_run_is_told(path: str, text: str) -> None:
    assert weakened(path, None, text.split("\n")) == ("1 exit from the whole run more",)


def test_a_new_file_that_ends_with_what_the_run_gave_is_not() -> None:
    text = 'package a\n\nimport (\n\t"os"\n\t"testing"\n)\n\nfunc TestMain(m *testing.M) {\n\tos.Exit(m.Run())\n}\n'
    assert weakened("main_test.go", None, text.split("\n")) == ()


@pytest.mark.parametrize(
    "unit", ["import (", "import a, ", "f = ", "f: ", "app.", "app.g = ", "def f(a, ", "const f ", "a.f", "f("]
)
@pytest.mark.parametrize(("path", "text"), [("a_test.py", PYTHON), ("a.test.js", JS)])
def test_no_text_of_names_takes_long(path: str, text: str, unit: str) -> None:
    long = text + unit * (32 * 1024 // len(unit))
    began = time.process_time()
    weakened(path, long.split("\n"), f"{long}\n{unit}".split("\n"))
    assert time.process_time() - began < 2.0, "of the processor; a tenth of it is needed"
