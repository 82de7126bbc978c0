"""Which runs a change needs whole, and what of it is left out of the original tests' run (SPEC 4, Receipts)."""

from pathlib import Path

import pytest

from code_intel_server.receipts.checkout import Changed, FileSide
from code_intel_server.receipts.results import Case, CaseOutcome, SuiteRun, across
from code_intel_server.receipts.scope import changed_functions, changed_tests, mentions, shadowing, tied_by_tests

NONE, FILE = FileSide("000000", "0"), FileSide("100644", "1")
UNITS = {"tests/test_a.py", "test/app.js"}


def _changed(*paths: str) -> list[Changed]:
    """Files by their path: `+a` is added, `-a` deleted, `a` changed."""
    sides = {"+": (NONE, FILE), "-": (FILE, NONE)}
    return [Changed(path.lstrip("+-"), *sides.get(path[0], (FILE, FILE))) for path in paths]


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["tests/test_a.py", "+tests/test_b.py"], {"tests/test_a.py", "tests/test_b.py"}),
        (["test/app.js", "+test/more.js"], {"test/app.js", "test/more.js"}),
        (["test/app.js", "+test/data.json"], None),
        (["tests/helper.py", "tests/test_a.py"], None),
        (["-tests/test_a.py"], None),
        (["tests/test_a.py", "pyproject.toml"], None),
        (["+tests/conftest.py"], None),
        (["+tests/__init__.py"], None),
        (["+test/jest.config.js"], None),
    ],
)
def test_a_run_is_left_to_new_and_changed_tests_unless_something_else_bears_on_others(
    paths: list[str], expected: set[str] | None
) -> None:
    assert changed_tests(_changed(*paths), UNITS) == expected


GO = 'package calc\n\nimport "testing"\n\nfunc TestA(t *testing.T) { help(t) }\n\nfunc help(t *testing.T) {}\n'
MORE = "func TestB(t *testing.T) {}\n"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (GO, GO + MORE, {"TestB"}),
        (GO, GO.replace("{ help", "{ t.Log(1); help"), {"TestA"}),
        (GO, "// Says nothing.\n" + GO.replace('"testing"', '(\n\t"os"\n\t"testing"\n)') + MORE, {"TestB"}),
        ("", GO, {"TestA"}),
        (GO, GO + "func helps() int { return 1 }\nconst one = 1\n" + MORE, {"TestB"}),
        (GO, GO.replace("{}", "{ t.Fatal() }") + MORE, None),
        (GO + MORE, GO, None),
        (GO, GO + "func TestMain(m *testing.M) {}\n" + MORE, None),
        (GO, GO + "func init() {}\n" + MORE, None),
        (GO, GO + "var one = help(nil)\n" + MORE, None),
        (GO, GO.replace('"testing"', 'testing "example.com/fake"') + MORE, None),
        (GO, "//go:build linux\n\n" + GO + MORE, None),
        (GO, GO + "func broken(\n", None),
    ],
)
def test_of_a_go_package_new_and_changed_functions_run_unless_something_else_bears_on_others(
    old: str, new: str, expected: set[str] | None
) -> None:
    assert changed_functions(old.encode(), new.encode()) == expected


@pytest.mark.parametrize(
    ("paths", "base", "expected"),
    [
        (["+random.py"], [], ["random.py"]),
        (["+src/json/__init__.py", "+src/json/more.py"], [], ["src/json/__init__.py", "src/json/more.py"]),
        (["+library.py"], [], ["library.py"]),
        (["+calc/__init__.py", "+calc/random.py", "random.py"], [], []),
        (["+library/more.py"], ["library/__init__.py"], []),
        (["+docs/json/conf.py"], [], []),
    ],
)
def test_an_added_module_of_a_librarys_name_is_found(
    paths: list[str], base: list[str], expected: list[str], tmp_path: Path
) -> None:
    (tmp_path / "lib" / "python3.11" / "site-packages" / "library").mkdir(parents=True)
    assert [one.path for one in shadowing(_changed(*paths), base, [tmp_path])] == expected


def test_of_a_test_that_two_commands_ran_the_worse_outcome_counts() -> None:
    runs = [
        SuiteRun((Case("a", outcome),)) for outcome in (CaseOutcome.FAILED, CaseOutcome.PASSED, CaseOutcome.SKIPPED)
    ]
    assert across(runs).outcomes == across(reversed(runs)).outcomes == {"a": CaseOutcome.FAILED}


Mentioned = dict[str, set[str]]
TESTS = {"tests/test_cart.py"}


def _tied(*paths: str, before: Mentioned, now: Mentioned | None = None) -> tuple[list[set[str]], list[str]]:
    """What is found of changed files; `before` and `now` say which files mention which."""
    later = before | (now or {})
    found, unsure = tied_by_tests(
        _changed(*paths), lambda path: before.get(path, set()), lambda path: later.get(path, set())
    )
    return [{one.path for one in group.files} for group in found], unsure


def test_what_only_tests_tie_to_a_change_can_be_as_it_was() -> None:
    helper = {"tax.py": {"cart.py"}, "checks.py": TESTS}
    assert _tied("tax.py", "checks.py", before=helper) == ([{"checks.py"}], [])
    data = {"prices.txt": {*TESTS, "README.md", ".ci/x.yml"}}
    assert _tied("+tax.py", "prices.txt", before=data) == ([{"prices.txt"}], [])


def test_what_the_product_mentions_belongs_to_it() -> None:
    assert _tied("tax.py", "rates.json", before={"rates.json": {*TESTS, "cart.py"}}) == ([], [])
    assert _tied("tax.py", "cart.py", before={"tax.py": {*TESTS, "cart.py"}, "cart.py": TESTS}) == ([], [])
    assert _tied("a/tax.go", "a/cart.go", before={"a/cart.go": {"b/b_test.go"}}) == ([], [])
    assert _tied("checks.py", before={"checks.py": TESTS}) == ([], [])


def test_what_the_product_mentions_only_now_is_named() -> None:
    helper = {"checks.py": TESTS}
    assert _tied("tax.py", "checks.py", before=helper, now={"checks.py": {*TESTS, "tax.py"}}) == ([], ["checks.py"])


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("shop/checks.py", (("checks",), True)),
        ("shop/checks/__init__.py", (("checks",), True)),
        ("internal/check/check.go", (('/check"',), False)),
        ("cart.go", ((), False)),
        ("data/cases.json", (("cases.json", "data/", '"data"', "'data'", '"cases"', "'cases'"), False)),
    ],
)
def test_files_are_mentioned_by_module_package_or_name(path: str, words: object) -> None:
    assert mentions(path) == words
