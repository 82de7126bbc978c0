"""Proofs: commands really run, their status decides, and what did not run proves nothing."""

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from code_intel_server.workspace import proofs as proofs_module
from code_intel_server.workspace.paths import Project
from code_intel_server.workspace.project.config import ConfigFile
from code_intel_server.workspace.project.trust import Approvals
from code_intel_server.workspace.proofs import ProofRunner, named_command, output_tail
from code_intel_server.workspace.tree.tree import TreeJudge
from code_intel_server.workspace.values import CommandRun, Proof, ProofStatus

SESSION = "20260201_123456"
PROVEN, FAILED, UNPROVEN, WAIVED, NONE = (
    ProofStatus.PROVEN, ProofStatus.FAILED, ProofStatus.UNPROVEN, ProofStatus.WAIVED, ProofStatus.NONE,
)  # fmt: skip


class World:
    """A real git repository with one committed file, and a user who trusts its configuration."""

    def __init__(self, tmp_path: Path) -> None:
        self.root = tmp_path / "project"
        self.root.mkdir()
        self.approvals = Approvals(tmp_path / "state")
        subprocess.run(["git", "init", "-q", "-b", "main"], cwd=self.root, check=True)
        (self.root / "a.py").write_text("print('a')\n")
        subprocess.run(["git", "add", "a.py"], cwd=self.root, check=True)
        identity = ["-c", "user.name=T", "-c", "user.email=t@example.org"]
        subprocess.run(["git", *identity, "commit", "-qm", "start"], cwd=self.root, check=True)

    def configured(self, *commands: object, text: str | None = None) -> ConfigFile:
        """Write the configuration and read it as a session start does."""
        path = self.root / ".code-intel" / "config.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"verify_commands": commands}) if text is None else text)
        return ConfigFile.load(path)

    def runner(self, config: ConfigFile, check: Callable[[], None] = lambda: None) -> ProofRunner:
        """The runner of one session."""
        return ProofRunner(Project(self.root), config, TreeJudge(self.root), self.approvals, check)

    def prove(self, *commands: object) -> Proof:
        """Trust and run these commands."""
        config = self.configured(*commands)
        self.approvals.trust(config.path)
        return self.runner(config).run(SESSION, quiet)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A project of its own."""
    return World(tmp_path)


def quiet(_done: float, _total: float, _message: str) -> None:
    """Progress that nobody looks at."""


def python(code: str) -> list[str]:
    """A command that runs `code`."""
    return [sys.executable, "-c", code]


def only(proof: Proof) -> CommandRun:
    """The one run of a proof."""
    (done,) = proof.runs
    return done


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):  # it is gone, or goes while it is read
        return False


def test_commands_that_succeed_prove_the_tree_they_ran_on(world: World) -> None:
    proof = world.prove(python("print('12 passed')"), ["git", "--version"])
    assert proof.status is PROVEN
    assert [done.outcome for done in proof.runs] == [PROVEN, PROVEN]
    assert proof.runs[0].output_tail == "12 passed"
    assert proof.tree == TreeJudge(world.root).snapshot() != ""


def test_one_that_fails_fails_the_proof_and_the_others_run_all_the_same(world: World) -> None:
    proof = world.prove(python("print('1 failed'); raise SystemExit(3)"), python("print('fine')"))
    assert proof.status is FAILED
    assert [(done.outcome, done.returncode, done.output_tail) for done in proof.runs] == [
        (FAILED, 3, "1 failed"),
        (PROVEN, 0, "fine"),
    ]


def test_without_commands_there_is_no_proof_but_a_tree(world: World) -> None:
    runner = world.runner(world.configured())
    proof = runner.run(SESSION, quiet)
    assert (proof.status, proof.runs) == (NONE, ())
    assert proof.tree == TreeJudge(world.root).snapshot()


def test_commands_of_a_file_that_nobody_trusted_do_not_run(world: World) -> None:
    marker = world.root / "marker"
    proof = world.runner(world.configured(["touch", str(marker)])).run(SESSION, quiet)
    assert proof.status is UNPROVEN
    assert "not trusted" in only(proof).reason
    assert not marker.exists()


def test_an_edit_after_trusting_ends_the_trust(world: World) -> None:
    world.approvals.trust(world.configured(["true"]).path)
    marker = world.root / "marker"
    proof = world.runner(world.configured(["touch", str(marker)])).run(SESSION, quiet)
    assert proof.status is UNPROVEN
    assert not marker.exists()


def test_an_edit_during_the_session_does_not_change_what_runs(world: World) -> None:
    config = world.configured(python("print('as it was read')"))
    world.approvals.trust(config.path)
    runner = world.runner(config)
    world.configured(["touch", str(world.root / "marker")])
    proof = runner.run(SESSION, quiet)
    assert only(proof).output_tail == "as it was read"
    assert not (world.root / "marker").exists()


@pytest.mark.parametrize("text", ['{"verify_commands": "pytest"}', "{broken", '{"verify_commands": [["a", 1]]}'])
def test_commands_that_cannot_be_read_are_unproven_and_not_absent(world: World, text: str) -> None:
    config = world.configured(text=text)
    world.approvals.trust(config.path)
    proof = world.runner(config).run(SESSION, quiet)
    assert proof.status is UNPROVEN
    assert "line 1" in only(proof).reason


def test_a_waived_command_does_not_run_and_says_why(world: World) -> None:
    marker = world.root / "marker"
    world.approvals.waive(world.root, SESSION, ["touch", str(marker)], "red before this session")
    proof = world.prove(["touch", str(marker)], ["true"])
    assert proof.status is WAIVED
    assert [(done.outcome, done.reason) for done in proof.runs] == [(WAIVED, "red before this session"), (PROVEN, "")]
    assert not marker.exists()


def test_a_waiver_of_another_session_counts_for_nothing(world: World) -> None:
    world.approvals.waive(world.root, "20260201_123457", ["false"], "red before this session")
    assert world.prove(["false"]).status is FAILED


def test_a_failure_weighs_more_than_what_could_not_run_and_that_more_than_a_waiver(world: World) -> None:
    world.approvals.waive(world.root, SESSION, ["waived"], "red before this session")
    assert world.prove(["waived"], ["no-such-program"], ["false"]).status is FAILED
    assert world.prove(["waived"], ["no-such-program"], ["true"]).status is UNPROVEN


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (["no-such-program-anywhere"], "No such file"),
        (["./a.py"], "Permission denied"),
        ({"argv": ["true"], "cwd": "missing"}, "no folder missing"),
        ({"argv": ["true"], "cwd": ".."}, "no folder .."),
        ({"argv": ["true"], "cwd": "/"}, "no folder /"),
        ({"argv": ["true"], "cwd": "a.py"}, "no folder a.py"),
        ({"argv": ["true"], "cwd": "out"}, "no folder out"),
    ],
)
def test_what_cannot_be_started_is_unproven_with_the_reason(world: World, command: object, why: str) -> None:
    (world.root / "out").symlink_to("/etc")
    proof = world.prove(command)
    assert proof.status is UNPROVEN
    assert why in only(proof).reason


def test_commands_run_in_their_folder_without_a_shell_and_without_input(world: World) -> None:
    (world.root / "web").mkdir()
    code = "import os, sys; print(os.getcwd(), sys.argv[1:], repr(sys.stdin.read()))"
    proof = world.prove({"argv": [*python(code), "$HOME; touch marker", "*"], "cwd": "web"})
    assert only(proof).output_tail == f"{world.root / 'web'} ['$HOME; touch marker', '*'] ''"
    assert not list(world.root.rglob("marker"))


def test_a_command_over_its_time_limit_fails_and_takes_its_descendants_with_it(world: World) -> None:
    pids = world.root / "pids"
    # A shell has begun long before the limit, on a busy machine too; what it starts ignores the signal as it does.
    code = f"trap '' TERM; sleep 60 & echo $$ $! >{shlex.quote(str(pids))}; echo hanging; sleep 60"
    started = time.monotonic()
    proof = world.prove({"argv": ["sh", "-c", code], "timeout": 1.5})
    assert time.monotonic() - started < 10
    assert proof.status is FAILED
    assert only(proof).reason.startswith("ended after its time limit of 1.5 s")
    assert only(proof).output_tail == "hanging"
    assert not any(alive(int(pid)) for pid in pids.read_text().split())


def test_a_command_that_dies_by_a_signal_fails_and_says_which(world: World) -> None:
    proof = world.prove(python("import os; os.kill(os.getpid(), 9)"))
    assert proof.status is FAILED
    assert only(proof).reason == "ended by signal 9"


def test_both_streams_are_kept_in_their_order_and_only_the_end_of_them(world: World) -> None:
    code = "import os\nfor n in range(3000):\n os.write(1 + n % 2, b'line %d\\n' % n)"
    tail = only(world.prove(python(code))).output_tail
    assert tail.startswith("…")
    assert len(tail) == proofs_module.MAX_TAIL_CHARACTERS + 1
    numbers = [int(line.split()[1]) for line in tail.splitlines()[1:]]
    assert numbers == list(range(numbers[0], 3000))


def test_output_without_end_fills_no_memory(world: World) -> None:
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    proof = world.prove({"argv": ["yes", "x" * 1000], "timeout": 1})
    assert proof.status is FAILED
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000  # kilobytes


@pytest.mark.parametrize(("output", "shown"), [
    (b"\x1b[31mred\x1b[0m \x1b]0;title\x07x", "red x"), (b"10%\r20%\r\ndone", "10%\n20%\ndone"),
    (b"\x1b[2Jkept\x9b\x00\xff", "kept\ufffd\\x00\ufffd"), ("a\u202eb".encode(), "a\\u202eb"), (b"", ""),
])  # fmt: skip
def test_output_cannot_steer_a_terminal(output: bytes, shown: str) -> None:
    assert output_tail(output) == shown


def test_files_that_changed_while_a_command_ran_are_named_and_the_proof_is_of_the_tree_after_it(world: World) -> None:
    before = TreeJudge(world.root).snapshot()
    proof = world.prove(python("open('a.py', 'a').write('# touched')"), ["true"])
    assert proof.status is PROVEN
    assert [done.reason for done in proof.runs] == ["files changed while it ran: a.py", ""]
    assert proof.tree == TreeJudge(world.root).snapshot() != before


def test_a_file_that_is_as_before_again_was_perhaps_another_while_the_command_read_it(world: World) -> None:
    """Found by an opponent: good content was swapped in for the proof, and the bad back before the tree was looked at."""
    swap = "import os, time; t = open('a.py').read(); s = os.stat('a.py'); open('a.py', 'w').write('good'); open('a.py', 'w').write(t)"
    proof = world.prove(python(f"{swap}; os.utime('a.py', ns=(s.st_atime_ns, s.st_mtime_ns))"), ["true"])
    assert [done.reason for done in proof.runs] == ["files were written while it ran and are as before again: a.py", ""]


def test_many_changed_files_are_counted(world: World) -> None:
    proof = world.prove(python("[open(f'n{n}', 'w') for n in range(9)]"))
    assert only(proof).reason == "files changed while it ran: n0, n1, n2, n3, n4 and 4 more"


def test_a_project_without_git_is_proven_without_a_tree(tmp_path: Path) -> None:
    world = World(tmp_path)
    (world.root / ".git").rename(tmp_path / "gone")
    proof = world.prove(["true"])
    assert (proof.status, proof.tree) == (PROVEN, "")


def test_variables_that_would_aim_git_elsewhere_do_not_reach_the_commands(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("MY_TOKEN", "kept")
    proof = world.prove(python("import os; print(os.environ.get('GIT_DIR'), os.environ['MY_TOKEN'])"))
    assert only(proof).output_tail == "None kept"


def test_progress_grows_with_time_and_ends_whole(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proofs_module, "PROGRESS_SECONDS", 0.0)
    told: list[tuple[float, float, str]] = []
    config = world.configured({"argv": python("import time; time.sleep(0.3)"), "timeout": 60}, ["true"])
    world.approvals.trust(config.path)
    world.runner(config).run(SESSION, lambda *event: told.append(event))
    done = [event[0] for event in told]
    assert done == sorted(done)
    assert len([share for share in done if 0 < share < 1]) >= 3
    assert [*told[-1]] == [2, 2, "verify commands done"]
    assert "of at most 60 s" in told[0][2]
    assert all(event[1] == 2 for event in told)


class Cancelled(Exception):
    """The client asked for the end."""


@pytest.mark.parametrize("by", ["check", "progress"])
def test_whoever_cancels_ends_the_command_and_hears_his_own_word(
    world: World, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proofs_module, "PROGRESS_SECONDS", 0.0)
    pid_file = world.root / "pid"
    code = f"import os, time; open({str(pid_file)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    config = world.configured(python(code))
    world.approvals.trust(config.path)

    def cancel(*_: object) -> None:
        if pid_file.exists() and pid_file.read_text():
            raise Cancelled

    runner = world.runner(config, check=cancel if by == "check" else lambda: None)
    with pytest.raises(Cancelled):
        runner.run(SESSION, cancel if by == "progress" else quiet)
    assert not alive(int(pid_file.read_text()))


def test_a_command_is_named_by_number_or_as_it_is_typed(world: World) -> None:
    config = world.configured(["pytest", "-k", "a b"], ["make", "test"]).config
    first, second = config.verify_commands
    assert named_command(config, "1") == first
    assert named_command(config, "2") == second
    assert named_command(config, "make  test ") == second
    assert named_command(config, "pytest -k 'a b'") == first
    assert named_command(config, "pytest -k a b") == first
    for unknown in ("0", "3", "make", "", "99999", "٢"):
        assert named_command(config, unknown) is None


def test_the_example_of_a_real_test_run_reads_like_its_terminal(world: World) -> None:
    (world.root / "test_a.py").write_text("def test_a():\n    assert 1 == 2\n")
    proof = world.prove([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", "."])
    assert proof.status is FAILED
    assert only(proof).returncode == 1
    assert only(proof).output_tail.splitlines()[-1].startswith("1 failed in")
    assert os.environ.get("PYTEST_CURRENT_TEST"), "it ran inside this very test"


def test_whether_a_command_would_run_is_known_without_running_it(world: World) -> None:
    def would(*commands: object, trust: bool = True, text: str | None = None) -> bool:
        config = world.configured(*commands, text=text)
        if trust:
            world.approvals.trust(config.path)
        return world.runner(config).would_run(SESSION)

    writes = python("open('ran', 'w')")
    assert not would()
    assert not would(writes, trust=False)
    assert not would(text="{")
    assert not would(["no-such-program"], ["./no-such-script"], {"argv": writes, "cwd": "nowhere"})
    assert would(["no-such-program"], writes)
    (world.root / "script").write_text("#!/bin/sh\n")
    (world.root / "script").chmod(0o755)
    assert would(["./script"])
    config = world.configured(writes)
    world.approvals.trust(config.path)
    assert world.runner(config).expected(SESSION) == {"verify_commands": [shlex.join(writes)]}
    world.approvals.waive(world.root, SESSION, tuple(writes), "broken elsewhere")
    assert not world.runner(config).would_run(SESSION)
    assert world.runner(config).expected(SESSION) == {}
    assert not (world.root / "ran").exists()


@pytest.mark.parametrize(
    ("command", "path"),
    [
        (["./check.sh"], "check.sh"),
        (["sh", "tools/check.sh", "-q"], "tools/check.sh"),
        ({"argv": ["python3", "../check.py"], "cwd": "tools"}, "check.py"),
        (["tools/../tools/check.sh"], "tools/check.sh"),
        (["/usr/bin/python3", "check.py"], "check.py"),
        (["bash", "-e", "check.sh"], "check.sh"),
        (["python", "-u", "check.py"], "check.py"),
        (["uv", "run", "check.py"], "check.py"),
        (["python", "-m", "tools.check"], "tools/check.py"),
        (["python", "-m", "tools"], "tools/__main__.py"),
        (["./run_tests.sh"], "run_tests.sh"),
        (["python3", "tests/test_app.py"], "tests/test_app.py"),
    ],
)
def test_the_file_that_a_command_runs_is_known(world: World, command: object, path: str) -> None:
    (world.root / "tools").mkdir()
    runner = world.runner(world.configured(["true"], command))
    assert runner.script(path)
    assert runner.argument(path) == runner.script("other.sh") == ""


@pytest.mark.parametrize(
    ("command", "path"),
    [
        (["pytest", "-q"], "pytest"),
        (["sh", "../outside.sh"], "outside.sh"),
        ({"argv": ["sh", "check.sh"], "cwd": "nowhere"}, "check.sh"),
        (["sh", "a\u0000b"], "a"),
    ],
)
def test_what_is_no_file_of_the_project_is_not_taken_for_one(world: World, command: object, path: str) -> None:
    assert world.runner(world.configured(command)).script(path) == ""


@pytest.mark.parametrize(
    ("command", "path"),
    [
        (["pytest", "tests/test_app.py"], "tests/test_app.py"),
        (["python", "-m", "pytest", "-c", "ci/pytest.toml"], "ci/pytest.toml"),
        (["make", "-f", "ci/rules.mk"], "ci/rules.mk"),
    ],
)
def test_a_file_that_is_handed_to_a_program_is_told_from_what_runs(world: World, command: list[str], path: str) -> None:
    runner = world.runner(world.configured(command))
    assert (runner.script(path), runner.argument(path)) == ("", " ".join(command))
