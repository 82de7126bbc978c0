"""Whether a file of tests got new tests and nothing else."""

import pytest

from code_intel_server.codebase.files.languages import language_of
from code_intel_server.codebase.syntax.added_tests import only_adds_tests

PYTHON = """\
import pytest

from app import helper


def test_one():
    assert helper(1) == 2


class TestMore:
    def test_two(self):
        assert helper(2) == 3
"""
NODE = """\
import { helper } from './app';

describe('helper', () => {
  it('adds', () => {
    expect(helper(1)).toBe(2);
  });
});
"""
GO = 'package app\n\nimport "testing"\n\nfunc TestOne(t *testing.T) {\n\tif Helper(1) != 2 {\n\t\tt.Fatal("no")\n\t}\n}\n'
NEW_PYTHON = "\n\n@pytest.mark.parametrize('value', [\n    1,\n])\ndef test_three(value):\n    assert value\n"
NEW_IT = "  it('adds more', () => {});\n"
END = "        assert helper(2) == 3\n"
BODY = "    assert helper(1) == 2\n"


def only_adds(path: str, before: str, after: str) -> bool:
    assert before != after
    return only_adds_tests(before.encode(), after.encode(), language_of(path))


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("t.py", PYTHON, PYTHON + NEW_PYTHON),
        ("t.py", PYTHON, PYTHON.replace(BODY, f"{BODY}{NEW_PYTHON}")),
        ("t.py", PYTHON, PYTHON + "\n    async def test_three(self):\n        assert True\n"),
        ("t.py", PYTHON, PYTHON.replace("import helper", "import helper, main") + NEW_PYTHON),
        ("t.py", PYTHON, f"import os\n{PYTHON}\n# More.\nclass MoreTests:\n    pass\n"),
        ("t.test.js", NODE, NODE.replace("});\n});", f"}});\n{NEW_IT}}});")),
        ("t.test.ts", NODE, f"{NODE}\ndescribe('other', () => {{\n{NEW_IT}}});\n"),
        ("t.test.js", NODE, NODE.replace("{ helper }", "{ helper, main }") + "test(`main`, main);\n"),
        ("t.test.js", NODE, f"import main from './main';\n{NODE}"),
        ("t_test.go", GO, GO + "\nfunc TestTwo(t *testing.T) {\n}\n"),
        ("t_test.go", GO, GO.replace('"testing"', '(\n\t"testing"\n\t"time"\n)')),
    ],
)  # fmt: skip
def test_tests_that_are_added_with_their_imports_take_nothing_away(path: str, before: str, after: str) -> None:
    assert only_adds(path, before, after)


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("t.py", PYTHON, PYTHON.replace(BODY, f"    return\n{BODY}")),
        ("t.py", PYTHON, PYTHON.replace("def test_one", "@pytest.mark.skip\ndef test_one")),
        ("t.py", PYTHON, PYTHON.replace("class", "@pytest.mark.skip\nclass")),
        ("t.py", PYTHON, f"{PYTHON}\npytestmark = pytest.mark.skip\n"),
        ("t.py", PYTHON, PYTHON.replace("def test_one", '"""\ndef test_one').replace("\nclass", '"""\n\nclass')),
        ("t.py", PYTHON, f"{PYTHON}\n\ndef test_one():\n    assert True\n"),
        ("t.py", PYTHON, f"{PYTHON}\n\ndef helper(value):\n    return value + 1\n"),
        ("t.py", PYTHON, f"{PYTHON}\n\n@pytest.fixture(autouse=True)\ndef fake():\n    pass\n"),
        ("t.py", PYTHON, PYTHON.replace("import helper\n", "import helper\nfrom fake import helper\n")),
        ("t.py", PYTHON, PYTHON.replace("import helper\n", "import helper\nfrom fake import *\n")),
        ("t.py", PYTHON, PYTHON.replace("import helper", "import main as helper")),
        ("t.py", PYTHON, PYTHON.replace("from app", "from app.fake")),
        ("t_test.go", GO, GO.replace('"testing"', '"fake/testing"')),
        ("t.py", PYTHON, PYTHON.replace(END, "        assert helper(2) == 4\n")),
        ("t.py", PYTHON, PYTHON.replace(END, "        pass\n") + NEW_PYTHON),
        ("t.py", PYTHON, PYTHON[: PYTHON.index("\n\nclass")] + NEW_PYTHON),
        ("t.py", PYTHON, f"{PYTHON}\n\ndef test_three(:\n"),
        ("t.test.js", NODE, NODE.replace("describe(", "describe.skip(")),
        ("t.test.js", NODE, f"{NODE}it.only('all', () => {{}});\n"),
        ("t.test.js", NODE, f"{NODE}describe('x', () => {{ it.only('all', () => {{}}); }});\n"),
        ("t.test.js", NODE, f"{NODE}beforeEach(() => {{}});\n"),
        ("t.test.js", NODE, f"if (false) {{\n{NODE.partition(';')[2]}}}\n"),
        ("t.test.js", NODE, NODE.replace("  it(", "  /*\n  it(").replace("  });\n});", "  }); */\n});")),
        ("t_test.go", GO, GO + "\nfunc TestMain(m *testing.M) {\n}\n"),
        ("t.rs", "#[test]\nfn one() {}\n", "#[test]\n#[ignore]\nfn one() {}\n"),
        ("t.rs", "#[test]\nfn one() {}\n", "#[test]\nfn one() {}\n#[test]\nfn two() {}\n"),
    ],
)  # fmt: skip
def test_what_can_switch_an_old_test_off_is_more_than_an_added_test(path: str, before: str, after: str) -> None:
    assert not only_adds(path, before, after)
