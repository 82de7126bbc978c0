"""Test runners are watched, chosen from and tried with a test that must fail (SPEC 4, Receipts)."""

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from code_intel_server.receipts.notary import Verdict
from tests.receipts.alone import judged
from tests.workspace.git_repo import Repo

NODE_MODULES = Path(os.environ.get("CODE_INTEL_NODE_MODULES", "/nowhere"))
"""A folder with jest, mocha and vitest installed, for those who have one."""

GO = {
    "go.mod": "module example.com/calc\n\ngo 1.20\n",
    "calc.go": "package calc\n\nfunc Add(a, b int) int { return a + b }\n",
    "calc_test.go": 'package calc\n\nimport "testing"\n\nfunc TestAdd(t *testing.T) {\n\tif Add(1, 1) != 2 {\n\t\tt.Fatal()\n\t}\n}\n'
    "\nfunc TestOther(t *testing.T) {}\n",
    "text/text.go": 'package text\n\nfunc Text() string { return "x" }\n',
    "text/text_test.go": 'package text\n\nimport "testing"\n\nfunc TestText(t *testing.T) { _ = Text() }\n',
}
ADD = "exports.add = (a, b) => a + b\n"
HANGING = "exports.add = (a, b) => { while (a) {} return a + b }\n"


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """An empty repository."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    home = os.environ["HOME"]
    made = Repo.make(tmp_path, monkeypatch)
    monkeypatch.setenv("GOCACHE", f"{home}/.cache/go-build")
    return made


def _verdict(repo: Repo, *argv: str, stall: float = 60) -> Verdict:
    return judged(repo, argv, stall=stall)


@pytest.mark.needs("go")
def test_a_go_test_that_hangs_is_named_and_the_rest_goes_on_without_it(repo: Repo) -> None:
    repo.change(GO)
    repo.change({"calc.go": GO["calc.go"].replace("return", "for b > 0 {\n\t}\n\treturn")})
    verdict = _verdict(repo, "go", "test", "./...", stall=3)
    assert verdict.receipt.timeout == ("example.com/calc:TestAdd",)
    assert verdict.receipt.pass_to_pass == ("example.com/calc/text:TestText", "example.com/calc:TestOther")


@pytest.mark.needs("go")
def test_of_a_go_package_the_changed_tests_are_run_again_and_the_others_stay_as_they_were(repo: Repo) -> None:
    repo.change(GO)
    changed = GO["calc_test.go"].replace("Add(1, 1) != 2", "Add(1, 1) != 3")
    more = "\nfunc TestMore(t *testing.T) {\n\tif Add(2, 2) != 5 {\n\t\tt.Fatal()\n\t}\n}\n"
    repo.change({"calc.go": GO["calc.go"].replace("a + b", "a + b + 1"), "calc_test.go": changed + more})
    verdict = _verdict(repo, "go", "test", "./...")
    red = [case.id for run in verdict.runs["red"] for case in run.suite.cases]
    assert sorted(red) == ["example.com/calc:TestAdd", "example.com/calc:TestMore"]
    assert verdict.receipt.fail_to_pass == ("example.com/calc:TestAdd", "example.com/calc:TestMore")
    assert verdict.receipt.broken == ("example.com/calc:TestAdd",)
    assert not verdict.problems
    new = {case.id for run in verdict.runs["new"] for case in run.suite.cases}
    assert new == {*red, "example.com/calc:TestOther", "example.com/calc/text:TestText"}


@pytest.mark.needs("go")
def test_a_changed_go_test_that_needs_what_another_leaves_is_run_with_its_package(repo: Repo) -> None:
    files = GO | {"calc_test.go": GO["calc_test.go"].replace("func TestAdd", "var ready bool\n\nfunc TestAdd")}
    files["calc_test.go"] = files["calc_test.go"].replace(
        "TestAdd(t *testing.T) {", "TestAdd(t *testing.T) {\n\tready = true"
    )
    repo.change(files)
    needs = "\nfunc TestZ(t *testing.T) {\n\tif !ready || Add(0, 1) != 2 {\n\t\tt.Fatal()\n\t}\n}\n"
    repo.change(
        {
            "calc.go": "package calc\n\nfunc Add(a, b int) int {\n\tif a == 0 {\n\t\treturn 2\n\t}\n\treturn a + b\n}\n",
            "calc_test.go": files["calc_test.go"] + needs,
        }
    )
    verdict = _verdict(repo, "go", "test", "./...")
    assert verdict.good, verdict
    assert verdict.receipt.fail_to_pass == ("example.com/calc:TestZ",)


@pytest.mark.needs("go")
def test_the_test_that_must_fail_is_put_into_a_package_that_runs(repo: Repo) -> None:
    other = {"_tools/go.mod": "module example.com/tools\n", "_tools/a_test.go": GO["calc_test.go"]}
    repo.change(GO | other)
    repo.change({"_tools/a.go": "package calc\n"})
    assert _verdict(repo, "go", "test", "./...").good


@pytest.mark.needs("go")
def test_a_go_package_that_ends_itself_well_is_shown_by_a_test_that_must_fail(repo: Repo) -> None:
    repo.change(GO)
    ends = 'package calc\n\nimport "os"\n\nfunc init() { os.Exit(0) }\n'
    repo.change({"ends.go": ends})
    verdict = _verdict(repo, "go", "test", "./...")
    assert verdict.receipt.missing == ("example.com/calc:TestAdd", "example.com/calc:TestOther")
    assert any("must fail was not seen to fail" in problem for problem in verdict.problems)


@pytest.mark.needs("node")
def test_a_product_that_softens_assertions_is_shown_by_the_test_that_must_fail(repo: Repo) -> None:
    _base(repo, RUNNERS["node"][1] + TEST)
    soft = "require('node:assert').equal = () => {}\n"
    repo.change({"add.js": ADD.replace("a + b", "0") + soft})
    verdict = _verdict(repo, "node", "--test")
    assert any("must fail was not seen to fail" in problem for problem in verdict.problems), verdict


@pytest.mark.needs("node")
def test_an_assertion_that_fails_behind_the_end_of_its_test_is_seen_beside_the_test_that_must_fail(repo: Repo) -> None:
    begin = RUNNERS["node"][1] + TEST
    _base(repo, begin)
    late = begin + "test('late', () => { setTimeout(() => a.equal(add(1, 1), 3), 20) })\n"
    repo.change({"add.js": ADD + "exports.twice = (n) => n * 2\n", "late.test.js": late})
    verdict = _verdict(repo, "node", "--test")
    assert verdict.receipt.failing == ("late.test.js",)


@pytest.mark.needs("node")
def test_a_new_helper_in_the_folder_of_the_tests_is_no_test_that_does_not_build(repo: Repo) -> None:
    """Found in play: node runs every file below `test/`, and one without a test refused honest work."""
    begin = "const test = require('node:test')\n" + TEST.replace("./add", "../add")
    one = begin + "test('adds', () => a.equal(add(1, 1), 2))\n"
    repo.change({"add.js": ADD, "test/one.test.js": one})
    two = "const { pair } = require('./support/pairs')\ntest('pairs', () => a.equal(add(...pair), 2))\n"
    repo.change(
        {"add.js": ADD + "\n", "test/one.test.js": one + two, "test/support/pairs.js": "exports.pair = [1, 1]\n"}
    )
    verdict = _verdict(repo, "node", "--test")
    assert verdict.problems == ()
    assert verdict.receipt.pass_to_pass == ("test/one.test.js > adds",)


@pytest.mark.needs("node")
@pytest.mark.parametrize("module", [False, True])
def test_the_files_that_tests_of_node_load_are_told(repo: Repo, module: bool) -> None:
    begin = "import test from 'node:test'\nimport './add.js'\n" if module else RUNNERS["node"][1] + TEST
    kind = "module" if module else "commonjs"
    one = begin + "test('adds', () => {})\n"
    add = "export const add = 1\n" if module else ADD
    repo.change({"package.json": json.dumps({"type": kind}), "add.js": add, "one.test.js": one})
    repo.change({"add.js": add + "\n", "other.js": "\n"})
    verdict = _verdict(repo, "node", "--test")
    assert {path for run in verdict.runs["new"] for path in run.loaded} == {"add.js", "one.test.js"}


@pytest.mark.needs("node")
def test_the_last_of_a_thousand_files_that_a_test_of_node_loads_is_told(repo: Repo) -> None:
    """Found by an agent in ESLint: what its new test loaded was said to be loaded by none."""
    many = {f"lib/m{number}.js": "" for number in range(1100)}
    last = "require('fs').readdirSync('lib').forEach((name) => require('./lib/' + name))\nrequire('./add.js')\n"
    repo.change({**many, "add.js": ADD, "one.test.js": RUNNERS["node"][1] + TEST + last + "test('adds', () => {})\n"})
    repo.change({"add.js": ADD + "\n"})
    verdict = _verdict(repo, "node", "--test")
    assert "add.js" in {path for run in verdict.runs["new"] for path in run.loaded}


@pytest.mark.needs("go")
def test_a_forged_stream_of_any_go_package_that_changed_is_shown(repo: Repo) -> None:
    repo.change(GO)
    forges = (
        'package text\n\nimport (\n\t"fmt"\n\t"os"\n)\n\nfunc init() {\n'
        '\tfmt.Println("=== RUN   TestText\\n--- PASS: TestText (0.00s)\\nPASS")\n\tos.Exit(0)\n}\n'
    )
    repo.change({"calc.go": GO["calc.go"] + "\n", "text/forges.go": forges})
    verdict = _verdict(repo, "go", "test", "./...")
    assert not verdict.receipt.unexplained
    assert any("must fail was not seen to fail" in problem for problem in verdict.problems)


@pytest.mark.needs("go")
def test_a_command_that_runs_some_go_tests_only_is_believed(repo: Repo) -> None:
    repo.change(GO)
    more = "\nfunc TestAddMore(t *testing.T) {\n\tif Add(2, 2) != 5 {\n\t\tt.Fatal()\n\t}\n}\n"
    more += "\nfunc TestUnwanted(t *testing.T) { t.Fatal() }\n"
    files = {"calc.go": GO["calc.go"].replace("a + b", "a + b + b/2"), "calc_test.go": GO["calc_test.go"] + more}
    repo.change(files)
    verdict = _verdict(repo, "go", "test", "-run", "^TestAdd", "./...")
    assert verdict.good, verdict
    assert verdict.receipt.fail_to_pass == ("example.com/calc:TestAddMore",)


@pytest.mark.needs("go", "make")
def test_make_around_go_is_believed_though_its_exit_status_is_its_own(repo: Repo) -> None:
    repo.change(GO | {"Makefile": "test:\n\tgo test ./...\n"})
    new = 'package calc\n\nimport "testing"\n\nfunc TestNew(t *testing.T) { _ = Add(1, 2) }\n'
    repo.change({"new_test.go": new})
    verdict = _verdict(repo, "make", "test")
    assert verdict.good, verdict


def test_unittest_is_watched_and_a_file_that_hangs_or_cannot_be_imported_is_named(repo: Repo) -> None:
    begin = "import unittest\nfrom add import add\n\nclass Test(unittest.TestCase):\n"
    one = (
        begin
        + "    def test_a(self): self.assertEqual(add(0, 1), 1)\n    def test_b(self): self.assertTrue(add(1, 1))\n"
    )
    repo.change({"add.py": "def add(a, b):\n    return a + b\n", "test_one.py": one})
    two = begin + "    def test_c(self): self.assertEqual(add(-1, 2), 1)\n"
    repo.change({"add.py": "def add(a, b):\n    while a > 0: pass\n    return a + b\n\nc = 1\n", "test_two.py": two})
    repo.change({"test_two.py": two.replace("import add", "import add, c")})
    verdict = _verdict(repo, sys.executable, "-B", "-m", "unittest", stall=2)
    assert verdict.receipt.failing_before == ("test_one.Test.test_b",)
    assert verdict.receipt.pass_to_pass == ("test_one.Test.test_a", "test_two.Test.test_c")
    repo.git("reset", "-q", "--soft", "HEAD~2")
    repo.git("commit", "-q", "-m", "one change")
    verdict = _verdict(repo, sys.executable, "-B", "-m", "unittest", stall=2)
    assert verdict.receipt.failing == ("test_one.Test.test_b",)
    assert verdict.receipt.fail_to_pass == ("test_two.Test.test_c",)
    assert not any("must fail" in text for text in (*verdict.notes, *verdict.problems))


RUNNERS = {
    "node": (("node", "--test"), "const test = require('node:test')\n"),
    "mocha": (("node_modules/.bin/mocha", "*.test.js"), "const test = it\n"),
    "jest": (("node_modules/.bin/jest",), ""),
    "vitest": (("node_modules/.bin/vitest", "run", "--globals"), ""),
}
TEST = "const a = require('node:assert')\nconst { add } = require('./add.js')\n"


@pytest.fixture(params=RUNNERS)
def runner(request: pytest.FixtureRequest, repo: Repo) -> tuple[tuple[str, ...], str]:
    """A runner of Node.js by its command, and how its tests begin."""
    name = str(request.param)
    if shutil.which("node") is None or (name != "node" and not (NODE_MODULES / name).is_dir()):
        pytest.skip(f"no {name}")
    if name != "node":
        (repo.path / "node_modules").symlink_to(NODE_MODULES)
    return RUNNERS[name][0], RUNNERS[name][1] + TEST


def _base(repo: Repo, begin: str) -> None:
    passes = begin + "test('adds', () => a.equal(add(1, 1), 2))\ntest('nothing', () => {})\n"
    other = begin + "test('zero', () => a.equal(add(0, 0), 0))\n"
    package = json.dumps({"name": "calc", "version": "1.0.0"})
    repo.change(
        {
            ".gitignore": "node_modules\n",
            "package.json": package,
            "add.js": ADD,
            "one.test.js": passes,
            "two.test.js": other,
        }
    )


def test_what_passed_passes_and_a_new_test_is_seen_to_fail_before(
    repo: Repo, runner: tuple[tuple[str, ...], str]
) -> None:
    argv, begin = runner
    _base(repo, begin)
    new = begin + "const { twice } = require('./add.js')\ntest('twice', () => a.equal(twice(2), 4))\n"
    repo.change({"add.js": ADD + "exports.twice = (n) => n * 2\n", "three.test.js": new})
    verdict = _verdict(repo, *argv)
    assert verdict.good, verdict
    assert verdict.receipt.fail_to_pass == ("three.test.js > twice",)
    assert verdict.receipt.pass_to_pass == ("one.test.js > adds", "one.test.js > nothing", "two.test.js > zero")
    assert not any("must fail" in note for note in verdict.notes), verdict.notes


def test_a_file_that_cannot_be_loaded_keeps_no_other_from_being_run(
    repo: Repo, runner: tuple[tuple[str, ...], str]
) -> None:
    argv, begin = runner
    _base(repo, begin)
    old = begin + "if (!require('./add.js').sum) throw new Error('no sum')\ntest('sum', () => {})\n"
    repo.change({"add.js": ADD + "exports.sum = exports.add\n", "sum.test.js": old})
    broken = ADD.replace("a + b", "a - b")
    repo.change({"add.js": broken, "sum.test.js": begin + "test('sum', () => {})\n"})
    verdict = _verdict(repo, *argv)
    assert verdict.receipt.broken == ("one.test.js > adds",), verdict
    assert {"one.test.js > nothing", "two.test.js > zero"} <= {*verdict.receipt.pass_to_pass}


@pytest.mark.skipif(shutil.which("node") is None or not (NODE_MODULES / "mocha").is_dir(), reason="no mocha")
def test_a_hook_in_the_file_of_other_tests_judges_a_new_test_of_mocha(repo: Repo) -> None:
    """Found by a reviewer, when the files of other tests were not loaded to save time."""
    argv, begin = RUNNERS["mocha"][0], RUNNERS["mocha"][1] + TEST
    (repo.path / "node_modules").symlink_to(NODE_MODULES)
    leaks = "exports.calls = 0\nexports.twice = (n) => { exports.calls++; return 2 * n }\n"
    _base(repo, begin)
    repo.change({"two.test.js": begin + "afterEach(() => a(!require('./add.js').calls))\ntest('zero', () => {})\n"})
    new = begin + "test('twice', () => a(require('./add.js').twice(2) === 4))\n"
    repo.change({"add.js": ADD + leaks, "three.test.js": new})
    assert not _verdict(repo, *argv).good


@pytest.mark.needs("npm")
def test_an_npm_setting_that_replaces_the_options_of_node_hides_no_test_and_repairs_none(repo: Repo) -> None:
    test = RUNNERS["node"][1] + TEST + "test('adds', () => a.equal(add(1, 1), 2))\n"
    package = json.dumps({"name": "calc", "version": "1.0.0", "scripts": {"test": "node --test"}})
    repo.change({"package.json": package, "add.js": ADD, "one.test.js": test})
    repo.change({".npmrc": "node-options=--max-old-space-size=512\n", "two.test.js": test})
    honest = _verdict(repo, "npm", "test")
    assert honest.good, honest
    assert honest.receipt.pass_to_pass == ("one.test.js > adds",)
    repair = "require('../add.js').add = (a, b) => a + b\n"
    repo.change(
        {".npmrc": "node-options=--require ./tools/r.js\n", "tools/r.js": repair, "add.js": "exports.add = 0\n"}
    )
    assert _verdict(repo, "npm", "test").receipt.broken == ("one.test.js > adds", "two.test.js > adds")


def test_a_test_that_hangs_is_named_and_the_rest_goes_on(repo: Repo, runner: tuple[tuple[str, ...], str]) -> None:
    argv, begin = runner
    _base(repo, begin)
    repo.change({"add.js": HANGING})
    verdict = _verdict(repo, *argv, stall=3)
    assert {id_.partition(" > ")[0] for id_ in verdict.receipt.failing} == {"one.test.js"}
    assert "two.test.js > zero" in verdict.receipt.pass_to_pass


LOOKS = {
    "pytest": (
        ("python", "-m", "pytest", "-q", "-p", "no:cacheprovider"),
        "test_look.py",
        "from look import seen\n\ndef test_look():\n    assert seen == []\n",
    ),
    "unittest": (
        ("python", "-m", "unittest"),
        "test_look.py",
        (
            "import unittest\nfrom look import seen\n\nclass Look(unittest.TestCase):\n"
            "    def test_look(self):\n        self.assertEqual(seen, [])\n"
        ),
    ),
    "node": (
        ("node", "--test"),
        "look.test.js",
        (
            "const test = require('node:test')\nconst { seen } = require('./look.js')\n"
            "test('look', () => require('node:assert').deepEqual(seen, []))\n"
        ),
    ),
    "go": (
        ("go", "test", "./..."),
        "look_test.go",
        (
            'package look\n\nimport "testing"\n\nfunc TestLook(t *testing.T) {\n'
            "\tif seen := Seen(); len(seen) > 0 {\n\t\tt.Fatal(seen)\n\t}\n}\n"
        ),
    ),
}
PRODUCT = {
    "look.py": (
        "import os, re, subprocess, sys, tempfile\n"
        "home = os.path.dirname(sys.prefix)\n"  # the folder of an environment may be called after us
        "said = [*map('='.join, os.environ.items()), *sys.path, *sys.modules]\n"
        "said += open('/proc/self/mountinfo') if os.path.exists('/proc/self/mountinfo') else []\n"
        "said = [one.replace(home, '') for one in said if 'PWD=' not in one]\n"
        "seen = [one for one in said if re.search('code.intel|instruments|_results', one, re.I)]\n"
        "seen += os.listdir(tempfile.gettempdir())\n"
    ),
    "look.js": (
        "const fs = require('node:fs')\nconst names = Object.keys(process.env).concat(Object.keys(globalThis))\n"
        "const { PATH, PYTHONPATH = '', PYTEST_ADDOPTS = '' } = process.env\n"
        "exports.seen = [...names, PATH, PYTHONPATH, PYTEST_ADDOPTS]\n"
        "  .filter((one) => /code.?intel|instruments|_results/i.test(one))\n"
        "  .concat(fs.readdirSync(require('node:os').tmpdir()))\n"
    ),
    "look.go": (
        'package look\n\nimport (\n\t"os"\n\t"regexp"\n)\n\nfunc Seen() (seen []string) {\n'
        '\ttell := regexp.MustCompile("(?i)code.intel|instruments|_results")\n'
        "\tfor _, one := range os.Environ() {\n\t\tif tell.MatchString(one) {\n\t\t\tseen = append(seen, one)\n\t\t}\n\t}\n"
        "\treturn seen\n}\n"
    ),
    "go.mod": "module example.com/look\n\ngo 1.19\n",
}


@pytest.mark.parametrize("name", LOOKS)
def test_what_is_tested_finds_nothing_of_ours(repo: Repo, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    argv, file, test = LOOKS[name]
    if name in {"node", "go"} and shutil.which(name) is None:
        pytest.skip(f"no {name}")
    for variable in [one for one in os.environ if "CODE_INTEL" in one]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    repo.change({"README.md": "Looks.\n"})
    repo.change({**PRODUCT, file: test})
    verdict = _verdict(repo, *argv)
    assert verdict.good, verdict
    assert len(verdict.receipt.fail_to_pass) == 1


@pytest.mark.needs("node")
def test_a_program_that_a_test_of_node_starts_is_run_where_single_files_are_chosen(repo: Repo) -> None:
    begin = "const test = require('node:test')\nconst { execFileSync } = require('node:child_process')\n"
    runs = "test('runs', () => require('node:assert').match(String(execFileSync('node', ['cli.js'])), /^WORD/))\n"
    repo.change({"cli.js": "console.log('one')\n", "cli.test.js": begin + runs.replace("WORD", "one")})
    repo.change({"cli.js": "console.log('one two')\n", "more.test.js": begin + runs.replace("WORD", "one two")})
    verdict = _verdict(repo, "node", "--test")
    assert verdict.good, verdict
    assert verdict.receipt.fail_to_pass == ("more.test.js > runs",)
