"""A test that passes whatever it asserts, since a change, is named; those of honest work are not (SPEC 4, Receipts)."""

import os
import sys
from pathlib import Path

import pytest

from code_intel_server.codebase.files.languages import language_of
from code_intel_server.codebase.syntax.inversions import inverted
from code_intel_server.receipts import notary, scope
from code_intel_server.receipts.notary import Verdict
from code_intel_server.receipts.report import seen_tests
from code_intel_server.receipts.results import Case, CaseOutcome
from code_intel_server.workspace.project.config import Mutants
from code_intel_server.workspace.values import Change, ChangeKind
from tests.receipts.alone import judged, run_alone
from tests.workspace.git_repo import Repo

PYTEST = (sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider")
ADD = "def add(a, b):\n    return a + b\n"
WRONG = "\n\ndef add(a, b):\n    return a - b\n"
TESTS = """
import calc, pytest

def test_add():
    assert calc.add(1, 1) == 2
def test_range():
    assert calc.add(1, 1) in range(4)
def test_errors():
    with pytest.raises(TypeError):
        calc.add(1, None)
def test_nothing_to_do():
    for one in ():
        assert one == 1
"""
TESTIFY = (
    'package a\n\nimport (\n\t"github.com/stretchr/testify/assert"\n\t"github.com/stretchr/testify/require"\n)\n\n'
)
GOTEST = 'package a\n\nimport "gotest.tools/v3/assert"\n\n'
BENT = {
    "values that equal everything": "\nclass Sum(int):\n    def __eq__(self, other): return isinstance(other, (int, float))\n"
    "    def __contains__(self, other): return True\n    __hash__ = int.__hash__\n\ndef add(a, b):\n    return Sum(a - b)\n",
    "a runner that passes over one test": "\nimport _pytest.python\n_kept = _pytest.python.Function.runtest\n"
    "def _runtest(self):\n    if self.name != 'test_add':\n        _kept(self)\n_pytest.python.Function.runtest = _runtest\n",
}


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """An empty repository."""
    run_alone(tmp_path, monkeypatch)
    home = os.environ["HOME"]
    made = Repo.make(tmp_path, monkeypatch)
    monkeypatch.setenv("GOCACHE", f"{home}/.cache/go-build")
    return made


def _verdict(repo: Repo, before: dict[str, str], after: dict[str, str], *argv: str, mutants: Mutants = "on") -> Verdict:
    for files in (before, after):
        repo.change(files)
    return _last(repo, *argv, mutants=mutants)


def _last(repo: Repo, *argv: str, mutants: Mutants = "on") -> Verdict:
    return judged(repo, argv or PYTEST, timeout=400, stall=60, mutants=mutants)


@pytest.mark.parametrize("how", BENT)
def test_a_test_that_passes_with_its_assertions_turned_round_since_the_change_is_shown(repo: Repo, how: str) -> None:
    verdict = _verdict(repo, {"calc.py": ADD, "test_calc.py": TESTS}, {"calc.py": ADD + BENT[how]})
    assert verdict.receipt.insensitive == ("test_calc.py::test_add",)
    assert len(verdict.receipt.pass_to_pass) == TESTS.count("def test_")
    assert verdict.good, verdict
    seen = seen_tests(verdict, [Change("calc.py", ChangeKind.MODIFIED)], 1)
    assert (seen.questions, seen.listed["insensitive"]) == ({}, ["test_calc.py::test_add"])
    assert any(note.startswith("insensitive: 1 old test") and "nothing to do" in note for note in seen.notes)


def test_the_tests_of_a_renamed_file_are_named_as_they_are_called_now(repo: Repo) -> None:
    repo.change({"calc.py": ADD, "test_calc.py": TESTS})
    repo.git("mv", "test_calc.py", "test_sums.py")
    verdict = _verdict(repo, {"README.md": "a"}, {"README.md": "b"})
    assert verdict.good, verdict
    repo.git("mv", "test_sums.py", "test_again.py")
    repo.write("calc.py", ADD + BENT["values that equal everything"])
    repo.commit("bent")
    assert _last(repo).receipt.insensitive == ("test_again.py::test_add",)


def test_an_honest_change_is_asked_for_nothing_and_what_passed_before_without_an_assertion_still_may(
    repo: Repo,
) -> None:
    new = {"calc.py": ADD + "\n\ndef double(a):\n    return add(a, a)\n"}
    verdict = _verdict(repo, {"calc.py": ADD, "test_calc.py": TESTS}, new)
    assert verdict.good and not verdict.receipt.insensitive, verdict
    (run,) = verdict.runs["inverted"]
    assert {case.id.rpartition("::")[2]: case.outcome.value for case in run.suite.cases} == {
        "test_add": "failed",
        "test_range": "failed",
        "test_nothing_to_do": "passed",
    }
    assert repo.git("status", "--porcelain", "--ignored") == ""


@pytest.mark.parametrize(
    ("after", "mutants"),
    [({"test_more.py": "def test_more():\n    assert 1\n"}, "on"), ({"calc.py": ADD + "\nMORE = 1\n"}, "off")],
)
def test_where_no_code_changed_or_mutants_are_off_nothing_is_turned_round(
    repo: Repo, after: dict[str, str], mutants: Mutants
) -> None:
    verdict = _verdict(repo, {"calc.py": ADD, "test_calc.py": TESTS}, after, mutants=mutants)
    assert verdict.good, verdict
    assert "inverted" not in verdict.runs


@pytest.mark.parametrize(
    ("runner", "drawn"), [("pytest", "test_add.py::TestAdd::test_add"), ("unittest", "test_add.TestAdd.test_add")]
)
def test_a_test_without_assertions_is_not_drawn_for_its_file_being_called_as_another_test_is(
    repo: Repo, runner: str, drawn: str
) -> None:
    tests = (
        "import calc, unittest\n\nclass TestAdd(unittest.TestCase):\n    def test_add(self):\n        assert calc.add(1, 1) == 2\n"
        "    def test_empty(self):\n        calc.add(1, 1)\n"
    )
    before, after = {"calc.py": ADD, "test_add.py": tests}, {"calc.py": ADD + "\nMORE = 1\n"}
    verdict = _verdict(repo, before, after, sys.executable, "-B", "-m", runner)
    assert [case.id for run in verdict.runs["inverted"] for case in run.suite.cases] == [drawn]


def test_a_test_that_passes_so_only_beside_another_is_run_beside_it_on_the_base_too(repo: Repo) -> None:
    tests = (
        "import calc\nSEEN = []\n\ndef test_first():\n    SEEN.append(1)\n    assert calc.add(1, 1) == 2\n"
        "\ndef test_second():\n    if not SEEN:\n        assert calc.add(1, 1) == 2\n"
    )
    verdict = _verdict(repo, {"calc.py": ADD, "test_calc.py": tests}, {"calc.py": ADD + "\nMORE = 1\n"})
    assert not verdict.receipt.insensitive
    names = [{case.id for case in verdict.runs[name][0].suite.cases} for name in ("inverted", "inverted-base")]
    assert names == [{"test_calc.py::test_first", "test_calc.py::test_second"}] * 2


def test_a_test_that_passes_so_once_and_fails_when_it_is_repeated_is_not_named(repo: Repo) -> None:
    tests = (
        "import calc\nSEEN = []\n\ndef test_first():\n    SEEN.append(1)\n    assert calc.add(1, 1) == 2\n"
        "\ndef test_second():\n    if not SEEN or not hasattr(calc, 'MORE'):\n        assert calc.add(1, 1) == 2\n"
    )
    verdict = _verdict(repo, {"calc.py": ADD, "test_calc.py": tests}, {"calc.py": ADD + "\nMORE = 1\n"})
    assert not verdict.receipt.insensitive
    ended = [
        verdict.runs[name][0].suite.outcomes["test_calc.py::test_second"].value
        for name in ("inverted", "inverted-base", "inverted-again")
    ]
    assert ended == ["passed", "failed", "failed"]


def test_of_many_tests_a_few_are_drawn_from_files_that_mention_the_change_first(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scope, "_INVERTED_FILES", 1)
    monkeypatch.setattr(scope, "_INVERTED_AT_MOST", 3)
    many = "import calc\n" + "".join(f"def test_{n}():\n    assert calc.add({n}, 1) == {n + 1}\n" for n in range(9))
    others = {f"test_{n}.py": "def test_other():\n    assert 1\n" for n in range(5)}
    verdict = _verdict(repo, {"calc.py": ADD, "test_calc.py": many, **others}, {"calc.py": ADD + "\nMORE = 1\n"})
    (run,) = verdict.runs["inverted"]
    assert {case.unit for case in run.suite.cases} == {"test_calc.py"}
    assert len(run.suite.cases) == 3


@pytest.mark.parametrize(("slow", "drawn"), [(10, 50), (1, 1)])
def test_slow_tests_are_passed_over_unless_there_are_no_others(tmp_path: Path, slow: int, drawn: int) -> None:
    (tmp_path / "test_a.py").write_text("".join(f"def test_{n}():\n    assert {n}\n" for n in range(60)))
    cases = [
        Case(f"test_a.py::test_{n}", CaseOutcome.PASSED, "test_a.py", 0.01 if n % slow else 3.0) for n in range(60)
    ]
    _, ids = scope.inversions(tmp_path, ["test_a.py"], cases, ())
    assert len(ids) == drawn
    assert drawn == 1 or ids.isdisjoint(case.id for case in cases if case.seconds > 1)


def test_a_link_is_not_written_through(repo: Repo, tmp_path: Path) -> None:
    outside = tmp_path / "test_outside.py"
    outside.write_text(TESTS)
    (repo.path / "test_linked.py").symlink_to(outside)
    verdict = _verdict(repo, {"calc.py": ADD}, {"calc.py": ADD + BENT["values that equal everything"]})
    assert (outside.read_text(), verdict.receipt.insensitive) == (TESTS, ())
    assert verdict.receipt.pass_to_pass


def test_a_folder_that_a_change_makes_a_link_is_not_written_through(repo: Repo, tmp_path: Path) -> None:
    outside = tmp_path / "checks"
    outside.mkdir()
    (outside / "check_calc.py").write_text(TESTS)
    repo.write("pytest.ini", "[pytest]\npython_files = check_*.py\npythonpath = .\n")
    repo.write("checks/check_calc.py", TESTS)
    repo.write("calc.py", ADD)
    repo.commit("base")
    repo.git("rm", "-rq", "checks")
    (repo.path / "checks").symlink_to(outside)
    repo.write("calc.py", ADD + "\nMORE = 1\n")
    repo.commit("linked")
    assert _last(repo).receipt.pass_to_pass
    assert (outside / "check_calc.py").read_text() == TESTS


def test_where_the_time_is_over_a_note_says_so(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notary, "_MUTANT_SECONDS", -1000)
    verdict = _verdict(repo, {"calc.py": ADD, "test_calc.py": TESTS}, {"calc.py": ADD + "\nMORE = 1\n"})
    assert verdict.good, verdict
    assert "old tests with their assertions turned round: of 3 tests none was seen: the time is over" in verdict.notes


def test_a_helper_that_returns_something_since_the_change_makes_no_test_odd(repo: Repo) -> None:
    kit = "import unittest\n\nclass Case(unittest.TestCase):\n    def assertOk(self, got):\n        assert got\n"
    tests = "import kit\n\nclass TestA(kit.Case):\n    def test_ok(self):\n        self.assertOk(1)\n"
    verdict = _verdict(repo, {"kit.py": kit, "test_kit.py": tests}, {"kit.py": f"{kit}        return got\n"})
    assert not verdict.receipt.insensitive
    assert {case.outcome.value for case in verdict.runs["inverted"][0].suite.cases} == {"failed"}


def test_settings_that_stop_pytest_at_a_failure_leave_no_drawn_test_out(repo: Repo) -> None:
    settings = "[pytest]\naddopts = -x --maxfail=2\n"
    before = {"calc.py": ADD, "test_calc.py": TESTS, "pytest.ini": settings}
    verdict = _verdict(repo, before, {"calc.py": ADD + "\nMORE = 1\n"})
    assert [len(run.suite.cases) for run in verdict.runs["inverted"]] == [3]


def test_of_another_runner_that_stops_at_a_failure_a_note_says_how_many_tests_were_seen(repo: Repo) -> None:
    tests = "import unittest, calc\n\nclass TestAdd(unittest.TestCase):\n" + "".join(
        f"    def test_{n}(self):\n        self.assertEqual(calc.add({n}, 1), {n + 1})\n" for n in range(9)
    )
    before = {"calc.py": ADD, "test_calc.py": tests}
    runner = (sys.executable, "-B", "-m", "unittest", "-f")
    verdict = _verdict(repo, before, {"calc.py": ADD + "\nMORE = 1\n"}, *runner)
    assert verdict.good, verdict
    assert "old tests with their assertions turned round: 5 of 9 tests seen" in verdict.notes


@pytest.mark.needs("node")
def test_of_javascript_too(repo: Repo) -> None:
    tests = (
        "const { test } = require('node:test')\nconst assert = require('node:assert')\nconst calc = require('../calc.js')\n"
        "test('add', () => assert.equal(calc.add(1, 1), 2))\ntest('sub', () => assert.ok(calc.sub(1, 1) === 0))\n"
    )
    good = "exports.add = (a, b) => a + b\nexports.sub = (a, b) => a - b\n"
    bent = (
        "const { AsyncResource } = require('node:async_hooks')\nconst kept = AsyncResource.prototype.runInAsyncScope\n"
        "AsyncResource.prototype.runInAsyncScope = function (...a) {\n"
        "  return this.name === 'add' ? undefined : kept.apply(this, a)\n}\n"
    )
    before = {"calc.js": good, "test/calc.test.js": tests}
    verdict = _verdict(repo, before, {"calc.js": bent + good}, "node", "--test", "test/calc.test.js")
    assert verdict.receipt.insensitive == ("test/calc.test.js > add",)


@pytest.mark.needs("go")
def test_of_go_too(repo: Repo) -> None:
    tests = (
        'package calc\n\nimport "testing"\n\nfunc TestAdd(t *testing.T) {\n\tif got := Add(1, 1); got != 2 {\n\t\tt.Fatal(got)\n\t}\n}\n'
        '\nfunc TestMore(t *testing.T) {\n\tt.Run("sub", func(t *testing.T) {\n\t\tif Add(1, 2) != 3 {\n\t\t\tt.Error()\n\t\t}\n\t})\n}\n'
    )
    bent = """package calc

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

func init() {
	if !testing.Testing() || os.Getenv("BENT") != "" {
		return
	}
	again := exec.Command(os.Args[0], os.Args[1:]...)
	again.Env = append(os.Environ(), "BENT=1")
	said, err := again.CombinedOutput()
	text := strings.ReplaceAll(string(said), "--- FAIL: TestAdd", "--- PASS: TestAdd")
	os.Stdout.WriteString(text)
	if err != nil && strings.Contains(text, "--- FAIL") {
		os.Exit(1)
	}
	os.Exit(0)
}
"""
    good = "package calc\n\nfunc Add(a, b int) int { return a + b }\n"
    before = {"go.mod": "module example.com/calc\n\ngo 1.20\n", "calc.go": good, "calc_test.go": tests}
    verdict = _verdict(repo, before, {"bent.go": bent, "calc.go": good + "\nvar More = 1\n"}, "go", "test", "./...")
    assert verdict.receipt.insensitive == ("example.com/calc:TestAdd",), verdict


@pytest.mark.parametrize(
    ("name", "before", "after", "names"),
    [
        ("a.py", "def test_a():\n    assert f() == 1, 'x'\n", 'def test_a():\n    assert f() == float("nan") or float("nan") == 1, \'x\'\n', {"test_a"}),
        ("a.py", "def test_a():\n    assert (a ==\n        b)\n", 'def test_a():\n    assert (a == float("nan") or float("nan") ==\n        b)\n', {"test_a"}),
        ("a.py", "def test_a():\n    assert a < b == c\n", "def test_a():\n    assert  not (a < b == c)\n", {"test_a"}),
        ("a.py", "def test_a():\n    assert(a)\n", "def test_a():\n    assert not ((a))\n", {"test_a"}),
        ("a.py", "def test(self):\n    self.assertIn(self.assertA(b), c)\n    self.assertEqual(a, self.assertA(b), 'c')\n", "def test(self):\n    self.fail(self.assertIn(self.assertA(b), c))\n    self.assertTrue((a) == float(\"nan\") or float(\"nan\") == (self.assertA(b)))\n", {"test"}),
        ("a.py", "def helper():\n    assert a\n", "def helper():\n    assert a\n", set()),
        ("a.py", "def testA(self):\n    self.assertEqual(a, b, msg='x')\n", 'def testA(self):\n    self.assertTrue((a) == float("nan") or float("nan") == (b))\n', {"testA"}),
        ("a.py", "def test(self):\n    self.assertIn(a, b)\n", "def test(self):\n    self.fail(self.assertIn(a, b))\n", {"test"}),
        ("a.py", "def test(self):\n    self.assertEqual(*a)\n    self.client.get(a)\n", "def test(self):\n    self.fail(self.assertEqual(*a))\n    self.client.get(a)\n", {"test"}),
        ("a.py", "def test_a(:\n    assert a\n", "def test_a(:\n    assert a\n", set()),
        ("a.js", "it('is', () => { assert(a, 'b'); assert.ok(c) })", "it('is', () => { assert(!(a), 'b'); assert.ok(!(c)) })", {"is"}),
        ("a.js", "it('is', () => { assert(...a) })", "it('is', () => { assert(...a) })", set()),
        ("a.ts", "test.only('a', (t) => { t.assert.deepStrictEqual(a, b) })", "test.only('a', (t) => { t.assert.notDeepStrictEqual(a, b) })", {"a"}),
        ("a.js", "it('b', () => { expect(a).toBe(1); expect(a).to.equal(1); request.expect(200) })", "it('b', () => { expect(a).not.toBe(1); expect(a).not.to.equal(1); request.expect(200) })", {"b"}),
        ("a.js", "it(`c ${d}`, () => { assert(a) }); it(() => assert(a))", "it(`c ${d}`, () => { assert(a) }); it(() => assert(a))", set()),
        ("a_test.go", "func TestA(t *testing.T) {\n\tif err != nil {\n\t\tt.Fatal(err)\n\t}\n\tif a {\n\t\tb()\n\t}\n}\n", "func TestA(t *testing.T) {\n\tif !(err != nil) {\n\t\tt.Fatal(err)\n\t}\n\tif a {\n\t\tb()\n\t}\n}\n", {"TestA"}),
        ("a_test.go", f"{TESTIFY}func TestA(t *testing.T) {{\n\trequire.NoError(t, err)\n\tassert.FailNow(t)\n\tbytes.Equal(a, b)\n}}\n", f"{TESTIFY}func TestA(t *testing.T) {{\n\trequire.Error(t, err)\n\tassert.FailNow(t)\n\tbytes.Equal(a, b)\n}}\n", {"TestA"}),
        ("a_test.go", f"{GOTEST}func TestA(t *testing.T) {{\n\tassert.Equal(t, 1, 1)\n}}\n", f"{GOTEST}func TestA(t *testing.T) {{\n\tassert.Equal(t, 1, 1)\n}}\n", set()),
        ("a_test.go", "func TestA(t *testing.T) {\n\tif a() {\n\t\tt.Fatal()\n\t} else if b() {\n\t\tt.Fail()\n\t}\n}\n", "func TestA(t *testing.T) {\n\tif !(a()) {\n\t\tt.Fatal()\n\t} else if !(b()) {\n\t\tt.Fail()\n\t}\n}\n", {"TestA"}),
        ("a.rs", "#[test]\nfn a() { assert!(b) }\n", "#[test]\nfn a() { assert!(b) }\n", set()),
    ],
)  # fmt: skip
def test_assertions_of_tests_are_turned_round(name: str, before: str, after: str, names: set[str]) -> None:
    language = language_of(name)
    assert language is not None
    text, found = inverted(before.encode(), language)
    assert (text.decode(), {*found}) == (after, names)
