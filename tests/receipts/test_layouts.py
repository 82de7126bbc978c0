"""Whatever a project's layout, the checkout is what is tested, or it is said that it is not (SPEC 4, Receipts)."""

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from code_intel_server.receipts.isolation import can_mount
from code_intel_server.receipts.notary import Notary, Verdict
from code_intel_server.workspace.project.config import VerifyCommand
from tests.programs import HOME
from tests.receipts.alone import judged, opened, run_alone
from tests.workspace.git_repo import Repo

ADD = "def add(a, b):\n    return a - b\n"
TEST = "from calc import add\n\n\ndef test_zero():\n    assert add(1, 0) == 1\n"
NEW_TEST = TEST + "\n\ndef test_add():\n    assert add(1, 1) == 2\n"
MOUNTED = pytest.mark.skipif(not can_mount(), reason="no mounts")


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """An empty repository."""
    run_alone(tmp_path, monkeypatch)
    monkeypatch.setenv("CARGO_HOME", os.environ.get("CARGO_HOME", str(HOME / ".cargo")))
    monkeypatch.setenv("RUSTUP_HOME", os.environ.get("RUSTUP_HOME", str(HOME / ".rustup")))
    return Repo.make(tmp_path, monkeypatch)


def _verdict(repo: Repo, *argv: str, project: str = ".", mount: bool | None = None, cwd: str = ".") -> Verdict:
    return judged(repo, argv, below=project, cwd=cwd, mount=mount)


def _environment(repo: Repo, link: str) -> str:
    """A virtual environment of the project whose site-packages lead to the project, as an editable install has it; its Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(repo.path / ".venv")], check=True)
    site = next((repo.path / ".venv").glob("lib/python*/site-packages"))
    (site / "__editable__calc.pth").write_text(link)
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    (site / "finder.py").write_text(FINDER.format(path=str(repo.path / "src" / "calc" / "__init__.py")))
    return ".venv/bin/python"


FINDER = """import importlib.util, sys
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return importlib.util.spec_from_file_location(name, {path!r}) if name == "calc" else None
sys.meta_path.insert(0, Finder)
"""


@pytest.mark.parametrize("mount", [pytest.param(True, marks=MOUNTED), False])
def test_an_editable_install_of_a_src_layout_is_tested_in_the_checkout_or_it_is_said_that_it_is_not(
    repo: Repo, mount: bool
) -> None:
    repo.change({"src/calc/__init__.py": ADD, "tests/test_calc.py": TEST, ".gitignore": ".venv\n"})
    repo.change({"src/calc/__init__.py": ADD.replace("-", "+"), "tests/test_calc.py": NEW_TEST})
    python = _environment(repo, "import finder\n")
    verdict = _verdict(repo, python, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", mount=mount)
    if mount:
        assert verdict.receipt.fail_to_pass == ("tests/test_calc.py::test_add",)
        assert verdict.good, verdict
    else:
        assert verdict.unavailable == f"not the checkout is tested but {repo.path}/src/calc/__init__.py"


def test_a_command_below_the_root_of_a_project_below_the_root_of_a_repository_is_run_there(repo: Repo) -> None:
    repo.change({"web/py/calc.py": ADD, "web/py/test_calc.py": TEST, "py/test_calc.py": "def test_other(): pass\n"})
    repo.change({"web/py/calc.py": ADD.replace("-", "+"), "web/py/test_calc.py": NEW_TEST})
    argv = (sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider")
    verdict = _verdict(repo, *argv, project="web", cwd="py")
    assert verdict.receipt.fail_to_pass == ("web/py/test_calc.py::test_add",)
    assert verdict.receipt.pass_to_pass == ("web/py/test_calc.py::test_zero",)


@pytest.mark.needs("npm")
@pytest.mark.parametrize("mount", [pytest.param(True, marks=MOUNTED), False])
def test_a_package_of_an_npm_workspace_is_taken_from_the_checkout_or_it_is_said_that_it_is_not(
    repo: Repo, mount: bool
) -> None:
    test = "require('node:test')('adds', () => require('node:assert').equal(require('@calc/add')(1, 1), %d))\n"
    packages = {
        ".gitignore": "node_modules\n",
        "package.json": json.dumps({"private": True, "workspaces": ["packages/*"]}),
        "packages/add/package.json": json.dumps({"name": "@calc/add", "version": "1.0.0", "main": "add.js"}),
        "packages/add/add.js": "module.exports = (a, b) => a - b\n",
        "packages/use/package.json": json.dumps(
            {"name": "@calc/use", "version": "1.0.0", "scripts": {"test": "node --test"}}
        ),
        "packages/use/use.test.js": test % 0,
    }
    repo.change(packages)
    repo.change({"packages/add/add.js": "module.exports = (a, b) => a + b\n", "packages/use/use.test.js": test % 2})
    for name in ("add", "use"):
        link = repo.path / "node_modules" / "@calc" / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(f"../../packages/{name}")
    verdict = _verdict(repo, "npm", "test", "--workspaces", "--if-present", mount=mount)
    if mount:
        assert verdict.receipt.fail_to_pass == ("packages/use/use.test.js > adds",)
    else:
        assert "node_modules/@calc" in verdict.unavailable


@pytest.mark.needs("make")
def test_a_command_that_sets_the_search_path_itself_is_listed_by_test(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    repo.change({"src/calc.py": ADD, "test_calc.py": TEST, "Makefile": "test:\n\tPYTHONPATH=src python -m pytest -q\n"})
    commands = (
        ("env", "PYTHONPATH=src", sys.executable, "-m", "pytest", "-q"),
        ("sh", "-c", f"PYTHONPATH=src {sys.executable} -m pytest -q"),
        ("make", "test"),
    )
    made = Notary(opened(repo), [VerifyCommand(argv=argv) for argv in commands]).run_base("HEAD")
    assert [[case.id for case in run.suite.cases] for run in made.runs] == [["test_calc.py::test_zero"]] * 3


@pytest.mark.needs("npm")
def test_what_npm_is_told_by_a_file_of_the_change_neither_hides_tests_nor_steers_those_of_before(repo: Repo) -> None:
    test = "require('node:test')('adds', () => require('node:assert').equal(require('./add.js')(1, 1), 2))\n"
    package = json.dumps({"name": "add", "version": "1.0.0", "scripts": {"test": "node --test"}})
    right, wrong = (f"module.exports = (a, b) => {body}\n" for body in ("a + b", "0"))
    repo.change({"package.json": package, "add.js": right, "add.test.js": test})
    repo.change({"add.js": right + "// again\n", ".npmrc": "node-options=--max-old-space-size=512\n"})
    verdict = _verdict(repo, "npm", "test")
    assert verdict.good, verdict
    assert verdict.receipt.pass_to_pass == ("add.test.js > adds",)
    repairs = "require.cache[require.resolve('./add.js')] = { exports: (a, b) => a + b }\n"
    repo.change({"add.js": wrong, ".npmrc": "node-options=--require ./setup.js\n", "setup.js": repairs})
    assert _verdict(repo, "npm", "test").receipt.broken == ("add.test.js > adds",)


def test_a_repository_within_the_project_that_nobody_else_has_is_empty_in_the_checkout(repo: Repo) -> None:
    repo.change({"calc.py": ADD})
    inner = repo.write("inner/a.py", "one = 1\n").parent
    for arguments in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "inner")):
        subprocess.run(["git", *arguments], cwd=inner, check=True)
    repo.change({"calc.py": ADD + "import inner.a\n"})
    verdict = _verdict(repo, sys.executable, "-B", "-c", "import calc")
    assert any(note.startswith("submodule inner: its content is not at hand") for note in verdict.notes), verdict
    assert any("exit status 1" in problem for problem in verdict.problems)


@pytest.mark.needs("cargo")
def test_a_cargo_workspace_is_run_whole_and_its_targets_are_listed(repo: Repo) -> None:
    crate = '[package]\nname = "{}"\nversion = "0.1.0"\nedition = "2021"\n[lib]\ndoctest = false\n'
    tests = "#[cfg(test)]\nmod tests {\n    #[test]\n    fn adds() { assert_eq!(super::add(1, 0), 1) }\n%s}\n"
    more = "    #[test]\n    fn sums() { assert_eq!(super::add(1, 1), 2) }\n"
    add = "pub fn add(a: i32, b: i32) -> i32 { a %s b }\n"
    repo.change(
        {
            "Cargo.toml": '[workspace]\nmembers = ["add", "twice"]\nresolver = "2"\n',
            "add/Cargo.toml": crate.format("add"),
            "add/src/lib.rs": add % "-" + tests % "",
            "twice/Cargo.toml": crate.format("twice") + '[dependencies]\nadd = { path = "../add" }\n',
            "twice/src/lib.rs": "pub use add::add;\n" + tests % "",
        }
    )
    repo.change({"add/src/lib.rs": add % "+" + tests % more})
    verdict = _verdict(repo, "cargo", "test", "--offline", "--workspace")
    assert verdict.receipt.pass_to_pass == ("add::tests::adds", "twice::tests::adds")
    assert verdict.receipt.fail_to_pass == ("add::tests::sums",)
    assert verdict.good, verdict


def test_junit_files_that_a_command_leaves_are_its_results(repo: Repo) -> None:
    script = (
        "from calc import add\nfrom pathlib import Path\nbad = add(1, 1) != 2\n"
        "fail = '<failure message=\"wrong\"/>' if bad else ''\n"
        'tests = f\'<testcase classname="c" name="zero"/><testcase classname="c" name="adds">{fail}</testcase>\'\n'
        "Path('report.xml').write_text(f'<testsuite>{tests}</testsuite>')\nraise SystemExit(bad)\n"
    )
    repo.change({"calc.py": ADD, "check.py": script})
    repo.change({"calc.py": ADD.replace("-", "+")})
    verdict = _verdict(repo, sys.executable, "-B", "check.py")
    assert (verdict.receipt.pass_to_pass, verdict.receipt.fail_to_pass) == (("c.zero",), ("c.adds",))
