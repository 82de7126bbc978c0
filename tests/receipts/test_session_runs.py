"""The runs of a session: kept, never two at once, ended with whoever began them, and what they say of attacks (SPEC 4)."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from code_intel_server.receipts.isolation import can_mount
from code_intel_server.receipts.session_runs import SessionRuns, runs_tests
from code_intel_server.workspace.git.repository import open_repository
from code_intel_server.workspace.project.config import Config, VerifyCommand
from code_intel_server.workspace.proofs import Judged, ProofRequest
from code_intel_server.workspace.tree.tree import TreeJudge
from code_intel_server.workspace.values import ProofStatus, ToCommit
from tests.workspace.git_repo import Repo

PYTEST = (sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider")
CALC = "def add(a, b):\n    return a - b\n\n\ndef twice(a):\n    return 2 * a\n"
FIXED = CALC.replace("a - b", "a + b")
TESTS = (
    "from calc import add, twice\n\ndef test_add():\n    assert add(2, 0) == 2\n\n"
    "def test_twice():\n    assert twice(2) == 4\n"
)
SUM = "from calc import add\n\ndef test_sum():\n    assert add(2, 2) == 4\n"
WRONG = FIXED.replace("2 * a", "a")


def quiet(*_: object) -> None:
    """Nobody listens, nothing is checked."""


class World:
    """A repository with a bug, and what a server that works on it holds."""

    def __init__(self, repo: Repo, folder: Path) -> None:
        self.repo, self.folder = repo, folder
        self.tree = TreeJudge(repo.path)
        self.start = self.tree.snapshot()
        self.base = repo.git("rev-parse", "HEAD")
        self.config = Config(verify_commands=(VerifyCommand(argv=PYTEST, timeout=60),))

    def runs(self) -> SessionRuns:
        """Those of a server; another call is a restart."""
        return SessionRuns(self.tree, lambda: open_repository(self.repo.path), lambda: self.folder, lambda: b"k" * 32)

    def judge(self, **files: str) -> Judged:
        """What the runs say of these files."""
        return self.heard(quiet, **files)

    def heard(self, say: Callable[[str], None], **files: str) -> Judged:
        """The same, where somebody listens."""
        for name, text in files.items():
            self.repo.write(name.replace("__", "."), text)
        asked = ProofRequest(
            "s", self.config, self.config.verify_commands, self.tree.snapshot(), ToCommit(self.base, self.start)
        )
        return self.runs().judge(asked, say, quiet)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    for name in ("temporary", "kept"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    repo = Repo.with_files(tmp_path, monkeypatch, calc__py=CALC, test_calc__py=TESTS)
    return World(repo, tmp_path / "kept")


def refused(judged: Judged) -> str:
    """What a refusal says."""
    (run,) = judged.runs.values()
    assert run.outcome is ProofStatus.FAILED, judged
    assert len(run.output_tail.encode()) <= 2048
    return run.output_tail


def _asked(world: World, **files: str) -> ProofRequest:
    for name, text in files.items():
        world.repo.write(name.replace("__", "."), text)
    change = ToCommit(world.base, world.start)
    return ProofRequest("s", world.config, world.config.verify_commands, world.tree.snapshot(), change)


def _made_ahead(world: World, runs: SessionRuns, asked: ProofRequest) -> None:
    runs.ahead(asked)
    assert _soon((world.folder / "s.verdict.json").exists)


def test_what_was_run_ahead_is_not_run_again_for_the_verdict(world: World) -> None:
    runs, said = world.runs(), list[str]()
    asked = _asked(world, calc__py=FIXED, test_sum__py=SUM)
    _made_ahead(world, runs, asked)
    judged = runs.judge(asked, said.append, quiet)
    assert judged.tests is not None
    assert judged.tests.listed["fail_to_pass"] == ["test_sum.py::test_sum"]
    assert [one for one in said if "begun in the background" not in one] == []


def test_runs_that_go_on_for_a_change_are_not_begun_anew_for_the_same(world: World, tmp_path: Path) -> None:
    log = tmp_path / "log"
    world.config = Config(verify_commands=world.config.verify_commands, verify_mutants="off")
    said = f"\n\nwith open({str(log)!r}, 'a') as log:\n    log.write('x')\n"
    runs, asked = world.runs(), _asked(world, calc__py=FIXED + said, test_sum__py=SUM)
    runs.ahead(asked)
    assert _soon(log.exists)
    runs.ahead(asked)
    judged = runs.judge(asked, quiet, quiet)
    assert judged.tests is not None
    assert judged.tests.listed["fail_to_pass"] == ["test_sum.py::test_sum"]
    assert log.read_text() == "xx", "the original tests and the new ones, once each"


def test_a_failure_that_was_seen_ahead_is_not_believed_before_it_is_seen_again(world: World) -> None:
    runs = world.runs()
    asked = _asked(world, calc__py=WRONG)
    runs.ahead(asked)
    first, second = (runs.judge(asked, quiet, quiet).tests for _ in range(2))
    assert first is not None and second is not None
    assert (first.tries, second.tries) == (1, 2)


def test_runs_ahead_of_another_tree_are_ended_and_their_verdict_is_nobodys(world: World) -> None:
    runs = world.runs()
    runs.ahead(_asked(world, calc__py=WRONG))
    judged = runs.judge(_asked(world, calc__py=FIXED, test_sum__py=SUM), quiet, quiet)
    assert judged.tests is not None and not judged.tests.listed.get("failing")


def test_what_was_run_once_is_not_run_again_by_another_server(world: World) -> None:
    said: list[str] = []
    runs = world.runs()
    runs.begin("s", world.config, world.config.verify_commands, world.base)
    first = world.heard(said.append, calc__py=FIXED, test_sum__py=SUM)
    assert first.tests is not None
    assert first.tests.listed["fail_to_pass"] == ["test_sum.py::test_sum"]
    assert (runs.of_base("s"), runs.of_base("t")) == ({"passed": 2}, "")
    said.clear()
    assert world.heard(said.append) == first
    assert not said
    runs.forget("s")
    assert not [*world.folder.iterdir()]


def test_a_command_that_fails_as_it_did_before_is_proven_and_says_so(world: World) -> None:
    world.repo.write("test_old.py", "def test_old():\n    assert False\n")
    world.repo.git("add", "-A")
    world.repo.git("commit", "-qm", "An old failure")
    world.base, world.start = world.repo.git("rev-parse", "HEAD"), world.tree.snapshot()
    (run,) = world.judge(calc__py=FIXED, test_sum__py=SUM).runs.values()
    assert (run.outcome, run.returncode) == (ProofStatus.PROVEN, 1)
    assert run.reason == "3 passed, 1 failed as before"


def test_an_edited_record_of_the_base_is_not_believed(world: World) -> None:
    world.judge(calc__py=FIXED)
    kept = world.folder / "s.base.json"
    kept.write_bytes(kept.read_bytes().replace(b'"passed"', b'"failed"', 1))
    (world.folder / "s.verdict.json").unlink()
    said: list[str] = []
    judged = world.heard(said.append)
    assert any(text.startswith("base") for text in said)
    assert judged.tests is not None and judged.tests.counts["pass_to_pass"] == 2


def _begun(said: list[str]) -> list[str]:
    """The names of the runs that were begun."""
    return [text.partition(":")[0] for text in said if "background" not in text]


def test_another_verdict_runs_again_only_what_the_edit_in_between_changed(world: World) -> None:
    wrong = SUM.replace("== 4", "== 5")
    said: list[str] = []
    refused(world.heard(said.append, calc__py=FIXED, test_sum__py=wrong))
    assert _begun(said) == ["original", "new", "base", "red"]
    said.clear()
    judged = world.heard(said.append, test_sum__py=SUM)
    assert _begun(said)[:2] == ["new", "red"], "the tests alone changed"
    assert {"original", "base"}.isdisjoint(_begun(said))
    assert judged.tests is not None and not judged.tests.questions
    assert judged.tests.listed["fail_to_pass"] == ["test_sum.py::test_sum"]
    assert judged.tests.counts["pass_to_pass"] == 2
    said.clear()
    assert "test_calc.py::test_twice" in refused(world.heard(said.append, calc__py=WRONG))
    assert "original" in _begun(said) and "base" not in _begun(said), "the product changed"
    said.clear()
    again = world.heard(said.append, test_sum__py=SUM + "\n")
    assert "test_calc.py::test_twice" in refused(again)
    assert "original" in _begun(said), "it failed"


def test_the_original_tests_are_run_again_where_what_they_borrow_has_changed(world: World) -> None:
    world.repo.write(".git/info/exclude", ".venv\n")
    world.repo.write(".venv/lib/one.py", "")
    world.judge(calc__py=FIXED, test_sum__py=SUM.replace("== 4", "== 5"))
    world.repo.write(".venv/lib/two.py", "")
    said: list[str] = []
    world.heard(said.append, test_sum__py=SUM)
    assert "original" in _begun(said)


@pytest.mark.parametrize(
    "attack",
    [
        pytest.param({"test_new__py": "import pytest\npytest.exit('done', returncode=0)\n"}, id="pytest.exit"),
        pytest.param({"test_new__py": "import os\nos.execvp('true', ['true'])\n"}, id="execvp"),
        pytest.param(
            {
                "conftest__py": "import pytest\n@pytest.hookimpl(tryfirst=True)\ndef pytest_runtestloop():\n    return True\n"
            },
            id="runtestloop",
        ),
        pytest.param({"pluggy__py": "import os\nos._exit(0)\n"}, id="shadowed library"),
        pytest.param({"pytest__py": "print('3 passed')\n"}, id="shadowed runner"),
        pytest.param({"argparse__py": "raise SystemExit(0)\n"}, id="shadowed standard library"),
        pytest.param({"test_0__py": "# coding: utf-7\n#+AAo-import os+ADs-os._exit(0)\n"}, id="exit in an encoding"),
        pytest.param({"conftest__py": "import calc\ncalc.twice = lambda a: 2 * a\n"}, id="another meaning for all"),
        pytest.param({"test_calc__py": TESTS.replace("== 4", "== 2")}, id="expectation changed with the code"),
    ],
)
def test_broken_work_does_not_pass_by_steering_the_run(world: World, attack: dict[str, str]) -> None:
    judged = world.judge(calc__py=WRONG, **attack)
    assert judged.tests is not None
    if judged.runs and all(run.outcome is ProofStatus.PROVEN for run in judged.runs.values()):
        assert "test_calc.py::test_twice" in judged.tests.questions, judged
    else:
        assert refused(judged).startswith(("1 test failed\n", "the results prove nothing\n"))


TWICE = "from calc import twice\n\n\ndef test_x():\n    assert twice(2) == 4\n"
WEAKENED = {
    "deleted": "def test_other():\n    pass\n",
    "emptied": TWICE.replace("assert twice(2) == 4", "pass"),
    "skipped": "import pytest\n" + TWICE.replace("def test_x", "@pytest.mark.skip\ndef test_x"),
    "true": TWICE.replace("assert twice(2) == 4", "assert True"),
    "commented": TWICE.replace("assert", "# assert") + "    twice(2)\n",
    "renamed": TWICE.replace("test_x", "x_test"),
    "string": 'X = """\n' + TWICE + '"""\n\n\ndef test_x():\n    pass\n',
    "taken": TWICE + "\n\ndel test_x\n",
    "returned": TWICE.replace("    assert", "    return\n    assert"),
    "value": TWICE.replace("== 4", "== 2"),
    "argument": TWICE.replace("twice(2)", "twice(4)"),
    "looser": TWICE.replace("== 4", "is not None"),
    "nested": TWICE.replace("    assert", "    def check():\n        assert"),
    "margin": TWICE.replace("== 4", "== 4 or twice"),
    "around": TWICE.replace("def test_x", "def slow(f):\n    return lambda: None\n\n\n@slow\ndef test_x"),
    "stand_in": TWICE.replace("from calc import twice", "def twice(a):\n    return 2 * a"),
    "sliced": TWICE.replace("    assert twice(2) == 4", "    for n in [2][:0]:\n        assert twice(n) == 4"),
}


def test_tests_that_were_made_to_check_less_are_run_as_they_were(world: World) -> None:
    for name in WEAKENED:
        world.repo.write(f"test_{name}.py", TWICE)
    world.repo.commit("tests")
    world.base, world.start = world.repo.git("rev-parse", "HEAD"), world.tree.snapshot()
    world.repo.git("rm", "-q", "test_calc.py")
    files = {f"test_{name}__py": text for name, text in WEAKENED.items()}
    judged = world.judge(calc__py=WRONG, **files)
    assert judged.tests is not None
    questions = judged.tests.questions
    assert {id_ for id_, why in questions.items() if "fails with" in why} == {
        *(f"test_{name}.py::test_x" for name in WEAKENED),
        "test_calc.py::test_twice",
    }


def test_a_refusal_begins_with_failing_tests_and_counts_the_tries(world: World) -> None:
    tests = TESTS + "".join(f"\ndef test_{n}():\n    assert add({n}, {n}) == 0, 'x' * 900\n" for n in range(1, 30))
    said = refused(world.judge(calc__py=FIXED, test_calc__py=tests))
    assert said.startswith("29 tests failed\ntest_calc.py::test_1\n")
    assert said.splitlines()[-1].startswith("Try 1 on these files")
    assert refused(world.judge()).splitlines()[-1].startswith("Try 2 on these files")


def test_files_that_are_left_out_of_the_commit_are_left_out_of_the_run(world: World) -> None:
    world.repo.write("calc.py", FIXED)
    world.repo.write("test_sum.py", SUM)
    asked = ProofRequest(
        "s",
        world.config,
        world.config.verify_commands,
        world.tree.snapshot(),
        ToCommit(world.base, world.start, ("calc.py",)),
    )
    assert "test_sum.py::test_sum" in refused(world.runs().judge(asked, quiet, quiet))


def test_a_project_without_a_known_runner_pays_nothing(world: World) -> None:
    world.config = Config(verify_commands=(VerifyCommand(argv=("true",)), VerifyCommand(argv=("sh", "-c", "exit 0"))))
    judged = world.judge(calc__py=FIXED)
    assert (judged.runs, judged.tests and judged.tests.only_status) == ({}, True)
    assert not [*world.folder.iterdir()]
    for argv in (
        ("uv", "run", "pytest"),
        ("npm", "test"),
        ("go", "test", "./..."),
        (".venv/bin/pytest",),
        ("cargo", "test"),
        ("python3", "-m", "unittest", "discover"),
        ("sh", "test.sh"),
        ("./mvnw", "test"),
        ("sh", "run-tests.sh"),
        ("env", "X=1", "pytest"),
        ("sh", "-c", "PYTHONPATH=src pytest -q"),
    ):
        assert runs_tests(VerifyCommand(argv=argv))
    for argv in (
        ("uv", "run", "ruff"),
        ("node", "check.js"),
        ("go", "vet"),
        ("make", "lint"),
        ("sh", "-c", "test -f x"),
        ("sh", "latest.sh"),
        ("cargo", "clippy"),
    ):
        assert not runs_tests(VerifyCommand(argv=argv))


def test_what_the_tests_borrow_and_no_commit_holds_is_asked_for_when_it_changed(world: World) -> None:
    site = ".venv/lib/python3/site-packages"
    world.repo.write(".git/info/exclude", ".venv\n")
    world.repo.write(f"{site}/old.py", "")
    runs = world.runs()
    runs.begin("s", world.config, world.config.verify_commands, world.base)
    assert _soon((world.folder / "s.borrowed.json").exists)
    world.repo.write(f"{site}/answers.py", "def add(a, b):\n    return a + b\n")
    judged = world.judge(calc__py=FIXED)
    assert judged.tests is not None
    assert [what for what, why in judged.tests.questions.items() if "in no commit" in why] == [site]


def test_folders_beside_a_manifest_that_the_change_adds_are_asked_for_too(world: World) -> None:
    world.repo.write(".git/info/exclude", "node_modules\n")
    runs = world.runs()
    runs.begin("s", world.config, world.config.verify_commands, world.base)
    assert _soon((world.folder / "s.borrowed.json").exists)
    world.repo.write("lib/node_modules/core/index.js", "exports.price = 1\n")
    judged = world.judge(calc__py=FIXED, **{"lib/package__json": '{"name": "lib"}\n'})
    assert judged.tests is not None
    assert [what for what, why in judged.tests.questions.items() if "in no commit" in why] == ["lib/node_modules/core"]


def test_changed_code_that_no_test_loads_is_named(world: World) -> None:
    judged = world.judge(calc__py=FIXED, test_sum__py=SUM, unused__py="x = 1\n", page__js="f()\n", notes__md="#\n")
    assert judged.tests is not None
    assert judged.tests.not_loaded == ["unused.py"]


def test_a_project_may_have_a_module_called_like_one_of_ours(world: World) -> None:
    judged = world.judge(calc__py=FIXED, test_sum__py=SUM, traces__py="raise SystemExit('the project's own')\n")
    assert judged.tests is not None
    assert judged.tests.listed["fail_to_pass"] == ["test_sum.py::test_sum"]
    assert judged.tests.not_loaded == ["traces.py"]


def test_tests_beside_those_of_something_new_are_only_counted_as_not_judged(world: World) -> None:
    changed = TESTS.replace("add, twice", "add, thrice, twice") + "\n\ndef test_thrice():\n    assert thrice(1) == 3\n"
    judged = world.judge(calc__py=FIXED + "\n\ndef thrice(a):\n    return 3 * a\n", test_calc__py=changed)
    assert judged.tests is not None
    assert judged.tests.listed["fail_to_pass"] == ["test_calc.py::test_thrice"]
    assert "not_judged" not in judged.tests.listed
    assert (judged.tests.counts["not_judged"], judged.tests.counts["new_names"], judged.tests.notes) == (2, 1, [])


def test_changed_tests_that_no_command_runs_are_named(world: World) -> None:
    """Found in play: tests in another folder than the command's changed, and the proof said nothing of them."""
    world.repo.write("more/test_more.py", "def test_more():\n    assert True\n")
    world.repo.git("add", "-A")
    world.repo.git("commit", "-qm", "More")
    world.start, world.base = world.tree.snapshot(), world.repo.git("rev-parse", "HEAD")
    world.config = Config(verify_commands=(VerifyCommand(argv=(*PYTEST, "test_calc.py"), timeout=60),))
    changed = {"more/test_more__py": "def test_more():\n    assert False\n"}
    judged = world.judge(
        calc__py=FIXED, test_calc__py=TESTS + "\n\ndef test_five():\n    assert add(2, 3) == 5\n", **changed
    )
    assert judged.tests is not None
    assert judged.tests.not_loaded == ["more/test_more.py"]


_SERVER = """
import sys, tempfile
from pathlib import Path
from code_intel_server.receipts.notary import Notary
from code_intel_server.workspace.project.config import VerifyCommand
from code_intel_server.workspace.git.repository import open_repository
tempfile.tempdir = sys.argv[2]
notary = Notary(open_repository(Path(sys.argv[1])), [VerifyCommand(argv=tuple(sys.argv[3:]))])
notary.run_base("HEAD")
"""


@pytest.mark.skipif(not can_mount(), reason="no mounts")
def test_a_run_ends_with_the_server_that_was_killed(world: World, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    hangs = f"import os, pathlib, subprocess, time\n\ndef test():\n    child = subprocess.Popen(['sleep', '600'])\n    pathlib.Path({str(mark)!r}).write_text(f'{{os.getpid()}} {{child.pid}}\\n')\n    time.sleep(600)\n"
    world.repo.write("test_hangs.py", hangs)
    world.repo.commit("hangs")
    command = [sys.executable, "-c", _SERVER, str(world.repo.path), tempfile.gettempdir(), *PYTEST]
    server = subprocess.Popen(command)
    assert _soon(lambda: mark.exists() and mark.read_text().endswith("\n"))
    server.send_signal(signal.SIGKILL)
    server.wait()
    pids = [int(word) for word in mark.read_text().split()]
    assert _soon(lambda: not any(map(_lives, pids)))


def _lives(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def _soon(happened: Callable[[], bool]) -> bool:
    end = time.monotonic() + 60
    while not happened() and time.monotonic() < end:
        os.sched_yield()
        time.sleep(0.05)
    return happened()
