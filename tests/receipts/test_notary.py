"""Receipts of real commits: real git, real checkouts, real pytest (SPEC 4, Receipts)."""

import os
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from code_intel_server.receipts.checkout import Checkouts, receipt_folder
from code_intel_server.receipts.isolation import can_mount
from code_intel_server.receipts.notary import Notary, Verdict
from code_intel_server.receipts.results import under_new_path
from code_intel_server.receipts.runners.events import written_since
from code_intel_server.workspace.git.repository import Git, open_repository
from code_intel_server.workspace.project.config import VerifyCommand
from code_intel_server.workspace.tree.tree import TreeJudge
from tests.receipts.alone import opened, run_alone
from tests.workspace.git_repo import Repo

PYTEST = (sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider")
CALC = "def add(a, b):\n    return a - b\n\n\ndef twice(a):\n    return 2 * a\n"
TESTS = (
    "import pytest\nfrom calc import add, twice\n\n"
    "def test_add():\n    assert add(2, 0) == 2\n\n"
    "@pytest.mark.parametrize('n', [1, 2])\ndef test_twice(n):\n    assert twice(n) == n + n\n\n"
    "def test_fails():\n    assert False\n\ndef test_old():\n    assert add(1, 0)\n"
)
FIXED = CALC.replace("a - b", "a + b")


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No plugin of ours in the runs, and folders of their own."""
    run_alone(tmp_path, monkeypatch)


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """A calculator with a bug, and its tests, one of which fails."""
    return Repo.with_files(tmp_path, monkeypatch, calc__py=CALC, test_calc__py=TESTS)


def _verdict(repo: Repo, *, stall: float = 60, mount: bool | None = None, **files: str) -> Verdict:
    repo.change({name.replace("__", "."): text for name, text in files.items()})
    return _notary(repo, stall, mount).verdict


class _Made:
    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict


def _notary(repo: Repo, stall: float, mount: bool | None) -> _Made:
    notary = Notary(opened(repo), [VerifyCommand(argv=PYTEST, timeout=60)], stall=stall, mount=mount)
    return _Made(notary.verify(repo.git("rev-parse", "HEAD^"), repo.git("rev-parse", "HEAD")))


@pytest.mark.parametrize(
    "mount", [pytest.param(True, marks=pytest.mark.skipif(not can_mount(), reason="no mounts")), False]
)
def test_a_fix_with_a_test_is_seen_to_fail_before_and_to_pass_now(repo: Repo, mount: bool) -> None:
    tests = TESTS.replace("add(2, 0) == 2", "add(2, 0) == 2\n\ndef test_sum():\n    assert add(2, 2) == 4")
    verdict = _verdict(repo, mount=mount, calc__py=FIXED, test_calc__py=tests)
    found = verdict.receipt
    assert found.fail_to_pass == ("test_calc.py::test_sum",)
    assert len(found.pass_to_pass) == found.passed_before == 4
    assert found.failing_before == ("test_calc.py::test_fails",)
    assert verdict.good, verdict
    assert not list((Path(os.environ["HOME"]).parent / "temporary").glob("*/*"))
    assert repo.git("status", "--porcelain", "--ignored") == ""


def test_a_broken_product_cannot_hide_behind_edited_tests(repo: Repo) -> None:
    tests = TESTS.replace("twice(n) == n + n", "twice(n) == n").replace("def test_old", "def not_a_test")
    verdict = _verdict(repo, calc__py=CALC.replace("2 * a", "a"), test_calc__py=tests)
    assert verdict.receipt.broken == ("test_calc.py::test_twice[1]", "test_calc.py::test_twice[2]")
    assert verdict.receipt.removed == ("test_calc.py::test_old",)
    assert not verdict.good


def test_an_original_test_file_that_cannot_be_imported_keeps_no_other_from_being_run(repo: Repo) -> None:
    other = "from calc import double\n\ndef test_other():\n    assert double(3) == 6\n"
    repo.write("calc.py", CALC + "\ndouble = twice\n")
    repo.write("test_other.py", other)
    repo.commit("two files")
    verdict = _verdict(repo, calc__py=FIXED, test_other__py=other.replace("double", "twice"))
    assert verdict.good, verdict
    assert verdict.receipt.pass_to_pass == (
        *("test_calc.py::test_add", "test_calc.py::test_old", "test_calc.py::test_twice[1]"),
        *("test_calc.py::test_twice[2]", "test_other.py::test_other"),
    )


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("near.py", "def near(a, b):\n    assert a == b\n", "def near(a, b):\n    assert a - b < 9\n"),
        ("sums.txt", "1 2\n2 4\n", "1 2\n"),
    ],
)
def test_a_broken_product_cannot_hide_behind_what_only_tests_read(repo: Repo, name: str, old: str, new: str) -> None:
    reads = "from near import near" if name == "near.py" else "near = None"
    body = (
        "near(twice(2), 4)"
        if name == "near.py"
        else (
            "for line in open('sums.txt'):\n        n, sum_ = map(int, line.split())\n        assert twice(n) == sum_"
        )
    )
    repo.write(name, old)
    repo.write("test_other.py", f"from calc import twice\n{reads}\n\ndef test_other():\n    {body}\n")
    repo.commit("another test")
    repo.write(name, new)
    verdict = _verdict(repo, calc__py=FIXED.replace("2 * a", "3 if a == 2 else 2 * a"))
    assert "test_other.py::test_other" in verdict.receipt.broken
    assert f"only tests mention {name}: the original tests ran beside it as it was, too" in verdict.notes


def test_a_part_of_the_product_that_only_tests_mention_may_change_beside_another(repo: Repo) -> None:
    repo.write("area.py", "def area(a):\n    return a\n")
    repo.write("test_area.py", "from area import area\n\ndef test_area():\n    assert area(1) == 1\n")
    repo.commit("another part")
    tests = "from area import area\n\ndef test_area():\n    assert area(1) == 1\n    assert area(2) == 4\n"
    verdict = _verdict(repo, area__py="def area(a):\n    return a * a\n", calc__py=FIXED, test_area__py=tests)
    assert verdict.good, verdict
    assert len(verdict.receipt.pass_to_pass) == 5


def test_a_renamed_file_takes_no_tests_of_one_whose_name_goes_on() -> None:
    renamed = {"a.test.ts": "b.test.ts"}
    assert under_new_path("a.test.ts:adds", renamed) == "b.test.ts:adds"
    assert under_new_path("a.test.tsx:adds", renamed) == "a.test.tsx:adds"


def test_the_tests_of_a_file_that_was_only_renamed_are_those_of_before(repo: Repo) -> None:
    repo.git("mv", "test_calc.py", "test_sums.py")
    verdict = _verdict(repo, calc__py=FIXED)
    found = verdict.receipt
    assert (found.failing_before, found.removed) == (("test_sums.py::test_fails",), ())
    assert len(found.pass_to_pass) == found.passed_before == 4
    assert verdict.good, verdict


def test_each_run_beside_files_as_they_were_is_in_the_receipt(repo: Repo) -> None:
    for name in ("one", "two"):
        repo.write(f"{name}.txt", "1\n")
        repo.write(f"test_{name}.py", f"def test_{name}():\n    assert open('{name}.txt').read()\n")
    repo.commit("two files that only tests read")
    verdict = _verdict(repo, calc__py=FIXED, one__txt="2\n", two__txt="2\n")
    assert {name for name in verdict.runs if name.startswith("apart")} == {"apart-1", "apart-2"}


def test_a_conftest_that_runs_nothing_is_seen_and_steers_no_original_test(repo: Repo) -> None:
    loop = "import pytest\n@pytest.hookimpl(tryfirst=True)\ndef pytest_runtestloop():\n    return True\n"
    verdict = _verdict(repo, conftest__py=loop)
    assert any("no test was seen with this commit" in problem for problem in verdict.problems)
    assert len(verdict.receipt.pass_to_pass) == 4


def test_a_product_that_makes_failures_pass_is_shown_by_a_test_that_must_fail(repo: Repo) -> None:
    forged = (
        FIXED.replace("a + b", "0") + "\nfrom _pytest.runner import CallInfo\n"
        "_real = CallInfo.from_call.__func__\n"
        "def _forged(cls, func, when, reraise=None):\n"
        "    call = _real(cls, func, when, reraise)\n    call.excinfo = None\n    return call\n"
        "CallInfo.from_call = classmethod(_forged)\n"
    )
    verdict = _verdict(repo, calc__py=forged)
    assert not verdict.receipt.broken
    assert any("must fail was not seen to fail" in problem for problem in verdict.problems)


def test_a_test_that_hangs_is_named_and_the_rest_goes_on_without_it(repo: Repo) -> None:
    hangs = CALC.replace("return a - b", "while b: pass\n    return a")
    tests = TESTS.replace("def test_add", "def test_a():\n    assert add(1, 1)\n\ndef test_add")
    verdict = _verdict(repo, stall=1, calc__py=hangs, test_calc__py=tests)
    assert verdict.receipt.failing == ("test_calc.py::test_a",)
    assert len(verdict.receipt.pass_to_pass) == 4


def test_a_test_that_fails_once_is_flaky_and_refuses_nothing(repo: Repo, tmp_path: Path) -> None:
    once = f"    import pathlib\n    mark = pathlib.Path({str(tmp_path / 'mark')!r})\n"
    tests = TESTS.replace(
        "    assert add(2, 0) == 2", f"{once}    first = not mark.exists()\n    mark.touch()\n    assert not first"
    )
    verdict = _verdict(repo, calc__py=CALC + "\n", test_calc__py=tests)
    assert verdict.receipt.flaky == ("test_calc.py::test_add",)
    assert verdict.good, verdict


def test_a_module_of_the_environment_in_place_of_the_checkouts_is_said(repo: Repo, tmp_path: Path) -> None:
    packages = repo.path / ".venv" / "site-packages" / "calculator"
    packages.mkdir(parents=True)
    (packages / "__init__.py").write_text("one = 1\n")
    repo.write(".gitignore", ".venv\n")
    (repo.path / "calculator").mkdir()
    repo.write("calculator/__init__.py", "one = 1\n")
    repo.commit("packaged")
    start = f"import sys\nsys.path.insert(0, {str(packages.parent)!r})\n"
    verdict = _verdict(repo, test_calc__py=start + "import calculator\ndef test(): assert calculator.one\n")
    assert verdict.unavailable.endswith("site-packages/calculator/__init__.py")


def test_a_command_that_lists_no_tests_gives_an_exit_status_and_says_so(repo: Repo) -> None:
    repo.write("calc.py", FIXED)
    repo.commit("fix")
    notary = Notary(opened(repo), [VerifyCommand(argv=("grep", "-q", "a + b", "calc.py"))])
    verdict = notary.verify(repo.git("rev-parse", "HEAD^"), repo.git("rev-parse", "HEAD"))
    assert (verdict.exit_status_only, verdict.good) == (True, True)
    back = notary.verify(repo.git("rev-parse", "HEAD"), repo.git("rev-parse", "HEAD^"))
    assert back.problems == ("grep -q 'a + b' calc.py: exit status 1",)
    repo.write("calc.py", CALC + "\n")
    repo.commit("nothing")
    nothing = notary.verify(repo.git("rev-parse", "HEAD~2"), repo.git("rev-parse", "HEAD"))
    assert nothing.unavailable == "grep -q 'a + b' calc.py: exit status 1, as before, and no test was seen"


@pytest.mark.skipif(shutil.which("node") is None, reason="no node")
def test_nodes_own_runner_reports_from_below_a_shell(repo: Repo) -> None:
    test = "const t = require('node:test'), a = require('node:assert')\nt('adds', () => a.equal(require('./add.js'), %s))\n"
    repo.write("add.js", "module.exports = 1\n")
    repo.write("add.test.js", test % 1)
    repo.commit("one")
    repo.write("add.js", "module.exports = 2\n")
    repo.write("add.test.js", test % 2)
    repo.commit("two")
    notary = Notary(opened(repo), [VerifyCommand(argv=("sh", "-c", "exec node --test"))])
    found = notary.verify(repo.git("rev-parse", "HEAD^"), repo.git("rev-parse", "HEAD")).receipt
    assert found.fail_to_pass == found.broken == ("add.test.js > adds",)


@pytest.mark.skipif(shutil.which("node") is None, reason="no node")
def test_a_failure_that_node_cannot_pass_on_leaves_the_tests_behind_it_to_be_seen(repo: Repo) -> None:
    """Found by an agent: the reporter ended with the first such failure, and new tests behind it were all taken for failing."""
    begin = "const t = require('node:test'), a = require('node:assert'), fixed = require('./fixed.js')\n"
    repo.write("fixed.js", "module.exports = false\n")
    repo.write("a.test.js", begin + "t('old', () => {})\n")
    repo.commit("one")
    repo.write("fixed.js", "module.exports = true\n")
    tests = "t('keys', () => a.deepEqual(fixed ? [] : [Symbol('key')], []))\nt('guard', () => {})\nt('old', () => {})\n"
    repo.write("a.test.js", begin + tests)
    repo.commit("two")
    notary = Notary(opened(repo), [VerifyCommand(argv=("node", "--test"))])
    found = notary.verify(repo.git("rev-parse", "HEAD^"), repo.git("rev-parse", "HEAD")).receipt
    assert (found.fail_to_pass, found.not_seen, found.pass_to_pass) == (("a.test.js > keys",), (), ("a.test.js > old",))


def test_a_checkout_has_exactly_the_tree_with_the_old_tests_over_it(repo: Repo, tmp_path: Path) -> None:
    base = repo.git("rev-parse", "HEAD")
    repo.write("calc.py", FIXED)
    repo.write("test_calc.py", "")
    repo.write("test_new.py", "")
    repo.commit("change")
    repo.write("calc.py", "not committed")
    checkouts, new = Checkouts(opened(repo), tmp_path / "runs"), repo.git("rev-parse", "HEAD")
    steering = [one for one in checkouts.changed(base, new) if one.path.startswith("test_")]
    made = checkouts.make("original", new, steering)
    assert _files(made) == {"calc.py": FIXED, "test_calc.py": TESTS}


def _files(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in folder.rglob("*")
        if path.is_file() and ".git" not in path.parts
    }


def test_a_snapshot_that_nobody_committed_is_checked_out_with_the_rest_of_the_repository(
    repo: Repo, tmp_path: Path
) -> None:
    repo.write("part/a.txt", "one\r\n")
    repo.write(".gitattributes", "*.txt text eol=lf\n")
    repo.commit("a part")
    judge = TreeJudge(repo.path / "part", big=100)
    base = judge.head_snapshot(repo.git("rev-parse", "HEAD"))
    repo.write("part/a.txt", "two\r\n")
    repo.write("part/new.txt", "more than is stored" * 10)
    new = judge.snapshot()
    git = open_repository(repo.path / "part")
    assert isinstance(git, Git)
    room = next((repo.path / ".git" / "code-intel").glob("*/objects"))
    checkouts = Checkouts(git, tmp_path / "runs", room)
    states = [checkouts.state(one) for one in (base, new)]
    assert [one.path for one in checkouts.changed(*states)] == ["part/a.txt", "part/new.txt"]
    before = git.must("count-objects")
    made = [checkouts.make(str(number), state) for number, state in enumerate(states)]
    assert [(one / "part/a.txt").read_bytes() for one in made] == [b"one\r\n", b"two\r\n"]
    assert _files(made[1]).keys() - _files(made[0]).keys() == {"part/new.txt"}
    assert (made[1] / "calc.py").read_text() == CALC
    assert git.must("count-objects") == before


def test_a_checkout_answers_what_git_is_asked_and_writes_nothing_into_the_users_repository(repo: Repo) -> None:
    repo.git("tag", "v1.2")
    asks = (
        "import subprocess\ndef git(*a): return subprocess.run(['git', *a], capture_output=True, text=True, check=True).stdout\n"
        "def test_version():\n    assert git('describe', '--tags').startswith('v1.2')\n"
        "def test_status():\n    assert git('status', '--porcelain') == ''\n    assert git('log', '-p')\n"
        "def test_commit():\n    git('commit', '-q', '--allow-empty', '-m', 'mine')\n    git('gc', '-q')\n"
    )
    repo.write("test_git.py", asks)
    repo.commit("change")
    before = repo.git("count-objects", "-v"), repo.git("for-each-ref")
    for mount in (True, False) if can_mount() else (False,):
        verdict = _notary(repo, 60, mount).verdict
        assert not verdict.receipt.failing, verdict.runs["new"][0].suite.cases
    assert (repo.git("count-objects", "-v"), repo.git("for-each-ref")) == before
    assert repo.git("log", "--format=%s", "-1") == "change"


def test_a_submodule_is_part_of_a_checkout_or_is_named(repo: Repo, tmp_path: Path) -> None:
    library = Repo(tmp_path / "library")
    library.path.mkdir()
    library.git("init", "-q")
    library.write("lib.txt", "one")
    library.commit("one")
    repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.path), "lib")
    repo.commit("with a submodule")
    first, second = (Checkouts(opened(repo), tmp_path / name) for name in ("a", "b"))
    head = repo.git("rev-parse", "HEAD")
    assert (first.make("new", head) / "lib" / "lib.txt").read_text() == "one"
    repo.git("submodule", "--quiet", "deinit", "--force", "--all")
    assert not list((second.make("new", head) / "lib").iterdir())
    assert (first.lacking, second.lacking) == (set(), {"lib"})


def test_what_a_killed_run_left_is_removed_at_the_next_start_and_what_lives_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with receipt_folder() as lives:
        (lives.parent / "unlocked" / "borrowed-objects").mkdir(parents=True)
        (lives.parent / "nobody's" / "folder").mkdir(parents=True)
        left, linked, foreign, fifo = (lives.parent / name for name in ("left", "linked", "foreign", "fifo"))
        for folder in (left, linked, foreign, fifo):
            (folder / "new").mkdir(parents=True)
            (folder / "lock").touch()
        (left / "borrowed-objects").mkdir()
        (linked / "borrowed-objects").symlink_to("/where/no/project/is")  # as where nothing can be mounted
        (left / "new").chmod(0o500)
        (fifo / "lock").unlink()
        os.mkfifo(fifo / "lock")
        with receipt_folder():
            assert lives.exists() and foreign.exists() and fifo.exists()
            assert not left.exists() and not linked.exists()
            assert (lives.parent / "nobody's" / "folder").exists() and not (lives.parent / "unlocked").exists()
    assert not lives.exists()


def test_runs_that_begin_together_leave_each_other_s_folders_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def lives(_: int) -> bool:
        with receipt_folder() as folder:
            return (folder / "lock").exists() and (folder / "borrowed-objects").exists()

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(lives, range(400)))


def test_a_results_file_that_a_test_made_a_fifo_keeps_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "results")
    assert written_since(tmp_path / "results", 0) == b""
