"""A test that stands unchanged in another file that runs alike was moved; one that might not run there is gone (SPEC 4)."""

from pathlib import Path

import pytest

from code_intel_server.codebase.evidence import ProjectEvidence

HEAD = "import pytest\n\nfrom app import helper, main\n\n\n"
ONE = "def test_one():\n    assert main() == 1\n"
TWO = (
    '@pytest.mark.parametrize("value", [1, 2])\ndef test_two(value):\n    # of both\n    assert helper(value) > value\n'
)
CASE = "class TestCase:\n    def test_in_it(self):\n        assert helper(1)\n"
A, B = "tests/test_a.py", "tests/test_b.py"
ALL = f"{HEAD}{ONE}\n\n{TWO}\n\n{CASE}"
LESS = f"import pytest\n\nfrom app import helper\n\n\n{TWO}\n\n{CASE}"
MORE = f"from app import main\n\n\n{ONE}"
JS = "import { f } from './f';\n\ntest('one', () => {\n  expect(f()).toBe(1);\n});\n\ndescribe('two', () => {\n  it('is', () => expect(f()).toBe(1));\n});\n"
GO = 'package a\n\nimport "testing"\n\nfunc TestOne(t *testing.T) {\n\tif f() != 1 {\n\t\tt.Fatal("f")\n\t}\n}\n'
GO_TWO = GO.replace("TestOne", "TestTwo")
RUST = "use app::f;\n\n#[test]\nfn one() {\n    assert_eq!(1, f());\n}\n\n#[test]\nfn two() {\n    assert_eq!(2, f());\n}\n"


def told(root: Path, path: str, before: str, after: str | None, *beside: tuple[str, str | None, str]) -> bool:
    def lines(text: str | None) -> list[str] | None:
        return None if text is None else text.split("\n")

    (root / "Cargo.toml").touch()
    others = [(name, lines(was), lines(now)) for name, was, now in beside]
    return bool(ProjectEvidence(root).weakened(path, lines(before), lines(after), "", lambda: others))


MOVED = {
    "one to a new file": (A, ALL, LESS, (B, None, MORE)),
    "one to a file that is there": (A, ALL, LESS, (B, "def test_b():\n    assert True is True\n", f"{MORE}\n\ndef test_b():\n    assert True is True\n")),
    "all to a new file": (A, ALL, None, (B, None, ALL)),
    "all to two files": (A, ALL, None, (B, None, LESS), ("tests/test_c.py", None, MORE)),
    "a parametrized one": (A, ALL, f"{HEAD}{ONE}\n\n{CASE}", (B, None, f"import pytest\nfrom app import helper\n\n\n{TWO}")),
    "a class": (A, ALL, f"{HEAD}{ONE}\n\n{TWO}", (B, None, f"from app import helper\n\n\n{CASE}")),
    "with what it needs": (A, f"LIMIT = 3\n{HEAD}def test_l():\n    assert LIMIT == main()\n", f"{HEAD}", (B, None, "from app import main\n\nLIMIT = 3\n\n\ndef test_l():\n    assert LIMIT == main()\n")),
    "in JavaScript": ("src/a.test.js", JS, JS.partition("describe")[0], ("src/b.test.js", None, "import { f } from './f';\n\ndescribe('two', () => {\n  it('is', () => expect(f()).toBe(1));\n});\n")),
    "in Go": ("a_test.go", f"{GO}\n{GO_TWO.partition(chr(10) * 2)[2].partition(chr(10) * 2)[2]}", GO, ("b_test.go", None, GO_TWO)),
    "in Rust": ("tests/a.rs", RUST, RUST.partition("\n#[test]\nfn two")[0], ("tests/b.rs", None, "use app::f;\n\n#[test]\nfn two() {\n    assert_eq!(2, f());\n}\n")),
}  # fmt: skip
GONE = {
    "nowhere": (A, ALL, LESS, (B, None, "x = 1\n")),
    "with an assertion less": (A, ALL, LESS, (B, None, MORE.replace("assert main() == 1", "assert main()"))),
    "to what no runner collects": (A, ALL, LESS, ("tests/more.py", None, MORE)),
    "to another make of name": (A, ALL, LESS, ("tests/b_test.py", None, MORE)),
    "to another suffix": (A, ALL, LESS, ("tests/test_b.txt", None, MORE)),
    "to another folder": (A, ALL, LESS, ("tests/build/test_b.py", None, MORE)),
    "under a mark": (A, ALL, LESS, (B, None, MORE.replace("def test", "@pytest.mark.skip\ndef test"))),
    "under the mark of a module": (A, ALL, LESS, (B, "pytestmark = pytest.mark.skip\n", f"pytestmark = pytest.mark.skip\n{MORE}")),
    "behind an end": (A, ALL, LESS, (B, None, f"import sys\nsys.exit()\n{MORE}")),
    "behind a skip": (A, ALL, LESS, (B, None, f"import pytest\npytest.skip(allow_module_level=True)\n{MORE}")),
    "under a condition": (A, ALL, LESS, (B, None, "from app import main\nif CI:\n    def test_one():\n        assert main() == 1\n")),
    "in a string": (A, ALL, LESS, (B, None, f'from app import main\nX = """\n{ONE}"""\n')),
    "in a function": (A, ALL, LESS, (B, None, "from app import main\ndef f():\n    def test_one():\n        assert main() == 1\n")),
    "and taken away there": (A, ALL, LESS, (B, None, f"{MORE}\n\ntest_one = None\n")),
    "and hidden there": (A, ALL, LESS, (B, None, f"{MORE}\n\ndef test_one():\n    pass\n")),
    "where its names are others": (A, ALL, LESS, (B, None, MORE.replace("from app", "from fake"))),
    "where its name is made anew": (A, ALL, LESS, (B, None, f"{MORE}\n\ndef main():\n    return 1\n")),
    "where something else is done": (A, ALL, LESS, (B, None, f"import app\nfrom app import main\n\nvars(app).update(x=1)\n\n{ONE}")),
    "where there was one already": (A, ALL, LESS, (B, MORE, MORE)),
    "and one of two alike": (A, f"{HEAD}{ONE}\n\nclass TestB:\n    x = 1\n\n    {ONE.replace(chr(10), chr(10) + '    ')}", HEAD, (B, None, MORE)),
    "to a file that cannot be read": (A, ALL, LESS, (B, None, f"{MORE}\ndef (\n")),
    "where all are skipped in JavaScript": ("src/a.test.js", JS, JS.partition("describe")[0], ("src/b.test.js", None, "import { f } from './f';\ndescribe.skip('all', () => {\ndescribe('two', () => {\n  it('is', () => expect(f()).toBe(1));\n});\n});\n")),
    "under a build tag": ("a_test.go", GO, None, ("b_test.go", None, f"//go:build never\n\n{GO}")),
    "for one system": ("a_test.go", GO, None, ("b_windows_test.go", None, GO)),
    "to a module that is declared nowhere": ("src/tests/a.rs", RUST, None, ("src/tests/b.rs", None, RUST)),
    "to what is not built": ("tests/a_test.cpp", "TEST(a, b) { EXPECT_EQ(1, f()); }\n", None, ("tests/b_test.cpp", None, "TEST(a, b) { EXPECT_EQ(1, f()); }\n")),
    "ignored in Rust": ("tests/a.rs", RUST, RUST.partition("\n#[test]\nfn two")[0], ("tests/b.rs", None, "use app::f;\n\n#[test]\n#[ignore]\nfn two() {\n    assert_eq!(2, f());\n}\n")),
}  # fmt: skip


@pytest.mark.parametrize("case", MOVED.values(), ids=MOVED.keys())
def test_a_test_that_runs_elsewhere_as_it_did_is_not_told(
    tmp_path: Path, case: tuple[str, str, str | None, tuple[str, str | None, str]]
) -> None:
    path, before, after, *beside = case
    assert told(tmp_path, path, before, after)
    assert not told(tmp_path, path, before, after, *beside)


@pytest.mark.parametrize("case", GONE.values(), ids=GONE.keys())
def test_one_that_may_not_is(tmp_path: Path, case: tuple[str, str, str | None, tuple[str, str | None, str]]) -> None:
    path, before, after, *beside = case
    assert told(tmp_path, path, before, after, *beside)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("pytest.ini", "[pytest]\naddopts = --ignore-glob=*_b.py\n", True),
        ("pytest.ini", "[pytest]\naddopts = -q\n", False),
        ("pyproject.toml", '[tool.ruff]\nignore = ["E1"]\n[tool.pytest.ini_options]\ntestpaths = ["tests"]\n', False),
        ("Cargo.toml", "[package]\nautotests = false\n", True),
        ("pyproject.toml", '[tool.pytest.ini_options]\naddopts = ["-k", "not one"]\n', True),
        ("tests/conftest.py", "collect_ignore = ['test_b.py']\n", True),
        ("tests/conftest.py", "import pytest\n", False),
        (".code-intel/config.json", '{"verify_commands": [["pytest", "-k", "test_a"]]}', True),
        (".code-intel/config.json", '{"verify_commands": [["pytest", "tests/test_a.py"]]}', True),
        (".code-intel/config.json", '{"verify_commands": [["pytest", "--ignore-glob=*b.py"]]}', True),
        (".code-intel/config.json", '{"verify_commands": [["python", "-m", "pytest", "-q"]]}', False),
        (".github/workflows/ci.yml", "- run: pytest tests/test_a.py\n", True),
        (".github/workflows/ci.yml", "- run: pytest tests\n", False),
        ("Makefile", "test:\n\tpytest tests/test_a.py\n", True),
        ("Makefile", "build:\n\tcc test_a.c\n", False),
    ],
)
def test_what_tells_files_apart_in_the_project_makes_a_move_one_that_is_asked_for(
    tmp_path: Path, name: str, text: str, *, says: bool
) -> None:
    for folder in ("tests", ".code-intel", ".github/workflows"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / name).write_text(text)
    assert told(tmp_path, A, ALL, LESS, (B, None, MORE)) is says


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("tests/test_a.py", "spec/test_a.py", True),
        ("tests/test_a.py", "tests/unit/test_a.py", False),
        ("tests/unit/test_a.py", "tests/test_a.py", False),
        ("tests/test_a.py", "tests/build/test_a.py", True),
        ("tests/test_a.py", "tests/.old/test_a.py", True),
        ("build/tests/test_a.py", "build/tests/test_b.py", False),
        ("pkg/a_test.go", "pkg/testdata/a_test.go", True),
        ("pkg/a_test.go", "pkg/_old/a_test.go", True),
        ("tests/a.rs", "tests/old/a.rs", True),
    ],
)
def test_a_file_that_is_moved_whole_has_to_be_run_where_it_goes(
    tmp_path: Path, old: str, new: str, *, says: bool
) -> None:
    """Found by an opponent: a file of tests could be renamed into a folder that its runner passes by."""
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths =\n    tests\n    build/tests\n")
    text = (GO if new.endswith(".go") else RUST if new.endswith(".rs") else ALL).split("\n")
    assert bool(ProjectEvidence(tmp_path).weakened(new, text, text, old)) is says
