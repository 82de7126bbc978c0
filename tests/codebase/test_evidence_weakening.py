"""What a change takes from the tests is said: fewer tests, fewer assertions, new skips (SPEC 4, PRE_COMMIT)."""

import pytest

from code_intel_server.codebase.weakening import leaves_the_tests, weakened

PYTHON = "def test_a():\n    assert f() == 1\n\n\ndef test_b():\n    assert g() == 2\n"
JAVASCRIPT = "it('adds', () => {\n  expect(f()).toBe(1);\n});\n"

CASES = [
    ("tests/test_a.py", PYTHON, PYTHON.partition("\n\n\n")[0], ("1 test fewer", "1 assertion fewer")),
    ("tests/test_a.py", PYTHON, PYTHON.replace("    assert g()", "    # assert g()"), ("1 assertion fewer",)),
    ("tests/test_a.py", PYTHON, "@pytest.mark.skip\n" + PYTHON, ("1 skip more",)),
    ("tests/test_a.py", PYTHON, "__test__ = False\n" + PYTHON, ("1 skip more",)),
    ("tests/test_a.py", PYTHON, "import unittest\nraise unittest.SkipTest('no')\n" + PYTHON, ("2 tests fewer", "2 assertions fewer", "1 skip more")),
    ("tests/test_a.py", PYTHON, PYTHON.replace("g() == 2", "True"), ("1 assertion that always holds more",)),
    ("tests/test_a.py", PYTHON, PYTHON + "\n\ndef test_c():\n    assert h()\n", ()),
    ("tests/test_a.py", PYTHON, PYTHON.replace("def test_b", "def b_test"), ("1 test fewer",)),
    ("tests/test_a.py", "class TestA:\n" + PYTHON, "class ATest:\n" + PYTHON, ("1 test class fewer",)),
    ("tests/check_a.py", "def should_add():\n    assert f()\n", "def adds():\n    assert f()\n", ("1 test fewer", "1 assertion fewer")),
    ("src/a.test.js", JAVASCRIPT, JAVASCRIPT.replace("it(", "xit("), ("1 test fewer", "1 skip more")),
    ("src/a.test.js", JAVASCRIPT, JAVASCRIPT.replace("it(", "it.only("), ("1 test fewer", "1 focused test more")),
    ("a_test.go", "func TestA(t *testing.T) {\n\tt.Error(1)\n}\n", "func TestA(t *testing.T) {\n\tt.Skip()\n}\n", ("1 assertion fewer", "1 skip more")),
    ("src/a.py", PYTHON, "", ()),
]  # fmt: skip


@pytest.mark.parametrize(("path", "before", "after", "said"), CASES, ids=range(len(CASES)))
def test_what_a_test_file_lost_is_said(path: str, before: str, after: str, said: tuple[str, ...]) -> None:
    assert weakened(path, before.splitlines(), after.splitlines()) == said


def test_a_removed_test_file_is_counted_by_its_tests() -> None:
    assert weakened("tests/test_a.py", PYTHON.splitlines(), None) == ("file with 2 tests removed",)
    assert weakened("tests/test_a.py", None, PYTHON.splitlines()) == ()


@pytest.mark.parametrize(
    ("old", "new", "leaves"),
    [
        ("tests/test_a.py", "tests/test_b.py", False),
        ("tests/test_a.py", "tests/unit/test_a.py", False),
        ("tests/test_a.py", "tests/a.py", True),
        ("tests/test_a.py", "a.py", True),
        ("src/a.test.ts", "src/a.ts", True),
        ("src/a.test.ts", "src/a.spec.ts", False),
        ("tests/AppTest.java", "tests/AppOld.java", True),
        ("tests/helper.py", "tests/helpers.py", False),
        ("tests/helper.py", "helper.py", True),
        ("app.py", "lib.py", False),
    ],
)
def test_a_renamed_test_file_leaves_the_tests_by_its_folder_or_its_name(old: str, new: str, leaves: bool) -> None:
    assert leaves_the_tests(old, new) is leaves
