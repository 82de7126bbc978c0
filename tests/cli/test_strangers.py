"""What a stranger does wrong, and what the machine refuses, ends in a message that says what to do: never in a traceback."""

import builtins
import hashlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from code_intel_server import __main__
from code_intel_server.cli import abandon, console, find, init, insights, status, sync, trust
from code_intel_server.cli.init.scaffold import MANIFEST, Manifest, Scaffold
from code_intel_server.workspace import files
from code_intel_server.workspace.project.trust import Approvals
from tests.cli.helpers import Said, fingerprint, project
from tests.e2e.driver import git
from tests.programs import ran

QUICK = ["--no-proof", "--no-index"]


def command(*arguments: str, cwd: Path, **more: str) -> subprocess.Popen[str]:
    """The command as a person starts it, with its output in pipes."""
    return subprocess.Popen(
        [sys.executable, "-m", "code_intel_server", *arguments],
        cwd=cwd,
        env={**os.environ, **more},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_home_folder_is_not_taken_for_a_project(
    tmp_path: Path, capsys: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for folder in (home, tmp_path, Path("/")):
        assert init.main([str(folder), *QUICK, "--dry-run"]) == 1
        assert "holds more than one project: name the folder of one" in capsys.readouterr().err
    git(home, "init", "--quiet")
    assert init.main([str(home), *QUICK, "--dry-run"]) == 0
    assert not (home / ".code-intel").exists()


def test_a_lookup_where_nothing_is_set_up_writes_nothing(tmp_path: Path, capsys: Said) -> None:
    (tmp_path / "app.py").write_text("def one() -> int:\n    return 1\n")
    before = fingerprint(tmp_path)
    for arguments in (["def", "one"], ["refs", "one"], ["impact", "one"], ["symbols", "app.py"], ["text", "one"]):
        assert find.main(["--project", str(tmp_path), *arguments]) == 0
    said = capsys.readouterr().out
    assert re.search(r"^app\.py:1: .*\bone\(\).*\[function\]$", said, re.MULTILINE)
    assert "cannot be written" not in said
    assert fingerprint(tmp_path) == before


def test_a_found_path_stays_on_its_line(tmp_path: Path, capsys: Said) -> None:
    (tmp_path / "new\nline.py").write_text("one = 1\n")
    assert find.main(["--project", str(tmp_path), "text", "one"]) == 0
    assert "new\\nline.py:1: one = 1\n" in capsys.readouterr().out


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("arguments", [["status"], ["find", "text", "greet"], ["insights", "--html", "--out", "-"]])
def test_output_that_cannot_be_written_is_said_in_one_line(tmp_path: Path, arguments: list[str]) -> None:
    root = project(tmp_path / "repo")
    (root / ".code-intel").mkdir()
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "code_intel_server", *arguments],
            cwd=root,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == "code-intel-server: No space left on device\n"


def test_a_reader_that_goes_away_is_no_failure(tmp_path: Path) -> None:
    root = project(tmp_path / "repo", **{"long.txt": "greet\n" * 900})
    with command("find", "text", "greet", "--limit", "900", cwd=root) as running:
        assert running.stdout and running.stderr
        running.stdout.close()
        assert running.stderr.read() == ""
    assert running.returncode == 0


def test_text_that_the_terminal_cannot_show_comes_out_escaped(tmp_path: Path) -> None:
    root = project(tmp_path / "repo", **{"page.py": "größe = '→'\n"})
    with command("find", "text", "gr", cwd=root, PYTHONIOENCODING="ascii") as running:
        out, err = running.communicate()
    assert err == ""
    assert "page.py:1: gr\\xf6\\xdfe = '\\u2192'" in out


def test_the_end_of_input_is_a_no(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said) -> None:
    root = project(tmp_path / "repo", **{"pytest.ini": "[pytest]\n"})
    init.main([str(root), *QUICK])

    def ended(_question: str) -> str:
        raise EOFError

    monkeypatch.setattr(builtins, "input", ended)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    (root / ".code-intel/config.json").write_text("{}")
    assert trust.main(["--project", str(root)]) == 1
    assert "not trusted" in capsys.readouterr().err
    assert console.ask("Well?", yes=False) is False


def test_an_interrupt_while_a_command_is_loaded_is_no_traceback(monkeypatch: pytest.MonkeyPatch, capsys: Said) -> None:
    def interrupted(_arguments: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(status, "main", interrupted)
    monkeypatch.setattr(sys, "argv", ["code-intel-server", "status"])
    assert __main__.main() == 130
    assert capsys.readouterr().err == "\ncode-intel-server: interrupted\n"


@pytest.fixture
def heeds_ctrl_c() -> Iterator[None]:
    """What is started ends at Ctrl-C as in a terminal, also where these tests run in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeds_ctrl_c")
def test_ctrl_c_ends_a_watch(tmp_path: Path) -> None:
    root = project(tmp_path / "repo")
    with command("status", "--watch", cwd=root) as running:
        try:
            assert running.stdout
            assert "no session is running" in running.stdout.readline()
            running.send_signal(signal.SIGINT)
            _, err = running.communicate(timeout=60)
        finally:
            running.kill()
    assert (running.returncode, err) == (130, "\ncode-intel-server: interrupted\n")


def test_a_page_cannot_be_written_over_a_folder(tmp_path: Path, capsys: Said) -> None:
    root = project(tmp_path / "repo")
    (root / ".code-intel").mkdir()
    assert insights.main(["--project", str(root), "--out", str(tmp_path)]) == 1
    assert "is a folder: name a file in it" in capsys.readouterr().err


def test_nothing_to_abandon_is_said_before_anything_is_asked(tmp_path: Path, capsys: Said) -> None:
    root = project(tmp_path / "repo")
    init.main([str(root), *QUICK])
    assert abandon.main(["--project", str(root)]) == 0
    assert "nothing to abandon" in capsys.readouterr().out
    git(root, "branch", "llm_task_20260201_123456")
    assert abandon.main(["--project", str(root)]) == 1
    assert "use --yes" in capsys.readouterr().err


def test_lines_of_status_stay_whole_in_a_pipe(tmp_path: Path, capsys: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    root = project(tmp_path / "a folder with quite a long name, longer than many a terminal is wide, as there are")
    (root / ".code-intel").mkdir()
    monkeypatch.setenv("COLUMNS", "40")
    assert status.main(["--project", str(root)]) == 0
    assert f"no session is running, none is kept in {root}\n" in capsys.readouterr().out


def test_what_is_trusted_already_is_not_asked_for_again(tmp_path: Path, capsys: Said) -> None:
    root = project(tmp_path / "repo")
    init.main([str(root), *QUICK])
    assert trust.main(["--project", str(root)]) == 0
    assert "trusted already, until the file changes" in capsys.readouterr().out


def test_an_earlier_configuration_is_the_newest_again_once_it_is_trusted_again(tmp_path: Path, capsys: Said) -> None:
    """Found in play: a session warned of a configuration that its user had trusted a minute before."""
    root = project(tmp_path / "repo")
    init.main([str(root), *QUICK])
    config = root / ".code-intel/config.json"
    first = config.read_text()
    for text in (first.replace("{", "{ ", 1), first):
        config.write_text(text)
        assert trust.main(["--project", str(root), "--yes"]) == 0
        assert "trusted, until the file changes" in capsys.readouterr().out
    assert not Approvals().superseded(config, hashlib.sha256(first.encode()).hexdigest())


@pytest.mark.needs("an ordinary user")
def test_an_index_of_somebody_else_is_said_to_be_that(tmp_path: Path, capsys: Said) -> None:
    root = project(tmp_path / "repo")
    init.main([str(root), *QUICK])
    (root / ".code-intel").chmod(0o555)
    try:
        assert sync.main(["--project", str(root)]) == 1
    finally:
        (root / ".code-intel").chmod(0o755)
    assert "cannot be written to: the index is its owner's" in capsys.readouterr().err


# a set-up that ends in the middle


@pytest.mark.parametrize(
    "written", [*range(0, 34, 9), *(pytest.param(n, marks=pytest.mark.full) for n in range(34) if n % 9)]
)
def test_a_set_up_that_is_cut_off_at_any_file_can_be_taken_out_or_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said, written: int
) -> None:
    """As a kill would leave it: what is on disk, without another word of the process that wrote it."""
    root = project(tmp_path / "repo", **{".mcp.json": '{"mcpServers": {}}'})
    before = fingerprint(root)
    real, count = files.write_whole, 0

    def cut_off(path: Path, data: bytes, mode: int = 0o600) -> None:
        nonlocal count
        if path.name != "manifest.json":
            count += 1
            if count > written:
                raise SystemExit(9)
        real(path, data, mode)

    with monkeypatch.context() as patched:
        patched.setattr("code_intel_server.cli.init.scaffold.write_whole", cut_off)
        with pytest.raises(SystemExit):
            init.main([str(root), *QUICK])
    assert init.main([str(root), "--uninstall"]) == 0
    assert fingerprint(root) == before
    with monkeypatch.context() as patched:
        count = 0
        patched.setattr("code_intel_server.cli.init.scaffold.write_whole", cut_off)
        with pytest.raises(SystemExit):
            init.main([str(root), *QUICK])
    assert init.main([str(root), *QUICK]) == 0
    assert init.main([str(root), "--uninstall"]) == 0
    assert fingerprint(root) == before
    capsys.readouterr()


def test_a_full_disk_leaves_no_half_of_a_set_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said) -> None:
    root = project(tmp_path / "repo")
    before = fingerprint(root)

    def full(path: Path, _data: bytes, _mode: int = 0o600) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("code_intel_server.cli.init.scaffold.write_whole", full)
    assert init.main([str(root), *QUICK]) == 1
    assert "No space left on device. Run init again when it is mended" in capsys.readouterr().err
    assert fingerprint(root) == before


def test_an_interrupted_set_up_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said) -> None:
    root = project(tmp_path / "repo")

    def interrupted(*_arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Scaffold, "apply", interrupted)
    assert init.main([str(root), *QUICK]) == 130
    assert "interrupted. Run init again to finish; --uninstall" in capsys.readouterr().err


def test_an_interrupt_leaves_no_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_arguments: object) -> None:
        raise KeyboardInterrupt

    for step in ("write_all", "sync"):
        with monkeypatch.context() as patched:
            patched.setattr(files, step, interrupted)
            with pytest.raises(KeyboardInterrupt):
                files.write_whole(tmp_path / "file", b"new")
        assert [*tmp_path.iterdir()] == []


def test_a_file_written_by_a_run_that_was_killed_counts_as_ours_again(tmp_path: Path) -> None:
    root = project(tmp_path / "repo")
    init.main([str(root), *QUICK])
    right = (root / MANIFEST).read_bytes()
    manifest = Manifest.load(root)
    manifest.files[".code-intel/task_planning.md"] = "of an older default"
    manifest.save(root)
    assert init.main([str(root), *QUICK]) == 0
    assert (root / MANIFEST).read_bytes() == right


# what init says


def test_how_to_commit_names_the_project_when_it_is_not_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    root = project(tmp_path / "my repo")
    init.main([str(root), *QUICK])
    line = next(line for line in capsys.readouterr().out.splitlines() if "not committed yet" in line)
    typed = line.partition("To do it: ")[2]
    subprocess.run(["sh", "-c", typed], check=True, cwd=tmp_path, capture_output=True)
    assert git(root, "status", "--porcelain").strip() == ""
    monkeypatch.chdir(root)
    (root / ".code-intel/config.json").write_text("{}\n")
    init.main([".", *QUICK])
    assert "To do it: git add -- " in capsys.readouterr().out


def test_a_repository_without_a_commit_and_a_folder_without_one_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    init.main([str(plain), *QUICK])
    assert "this is not a git repository: sessions can investigate" in (said := capsys.readouterr().out)
    assert "git init, and a first commit" in said
    git(plain, "init", "--quiet")
    init.main([str(plain), *QUICK])
    assert "has no commit yet" in capsys.readouterr().out
    monkeypatch.setenv("PATH", str(tmp_path))
    assert init.main([str(plain), "--no-index"]) == 0
    said = capsys.readouterr().out
    assert "git cannot be run: it is not installed" in said
    assert "git init" not in said
    assert "proof: left out, it needs git" in said


def test_a_commit_that_fails_is_told_in_one_line_with_what_to_do_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    root = project(tmp_path / "repo")
    (root / ".git/hooks/pre-commit").write_text("#!/bin/sh\necho no\necho never >&2\nexit 1\n")
    (root / ".git/hooks/pre-commit").chmod(0o755)
    monkeypatch.chdir(root)
    assert init.main([".", *QUICK, "--yes"]) == 0
    said = capsys.readouterr().out
    assert "  not committed: " in said
    assert "  Once that is mended: git add -- " in said


# init-project.sh: what it can say before it installs anything


def _script(*arguments: str, **environment: str | None) -> str:
    """What the script says in an environment that differs in this; it must fail, and have made nothing."""
    changed = {**os.environ, **environment}
    script = Path(__file__).parents[2] / "init-project.sh"
    done = ran(["bash", script, *arguments], env={name: value for name, value in changed.items() if value is not None})
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout == ""
    return done.stderr.removeprefix("init-project.sh: ")


def test_the_script_says_what_is_wrong_before_it_installs(tmp_path: Path) -> None:
    old = tmp_path / "python-old"
    old.write_text('#!/bin/sh\ncase "$*" in *version_info*) exit 1 ;; esac\n')
    old.chmod(0o755)
    home = {"HOME": str(tmp_path), "XDG_DATA_HOME": None, "CODE_INTEL_VENV": None}
    here = str(tmp_path)
    assert _script(here, HOME=None) == "HOME is not set: set it to your home folder\n"
    assert _script(f"{here}/nowhere", **home) == f"{here}/nowhere is no folder\n"
    assert "nowhere is no folder" in _script("--client", "all", "--exclude=x", f"{here}/nowhere", "--yes", **home)
    assert _script(here, **home, PYTHON="no-such-python") == "PYTHON=no-such-python cannot be found\n"
    assert "is too old: needs Python 3.11" in _script(here, **home, PYTHON=str(old))
    assert [path.name for path in tmp_path.iterdir()] == ["python-old"]
    for folder, name in ((".", "first"), (".code-intel/worktrees/second", "second")):
        sessions = tmp_path / folder / ".code-intel/sessions"
        sessions.mkdir(parents=True)
        (sessions / f"{name}.json").touch()
        assert _script(here, **home).startswith(f"session {name} is not over: end it first")
        (sessions / f"{name}.json").unlink()


def test_a_dry_run_of_the_script_installs_nothing_and_shows_what_this_checkout_would_write(tmp_path: Path) -> None:
    """Found by a user: the way to look at an upgrade was the upgrade."""
    project, script = tmp_path / "project", Path(__file__).parents[2] / "init-project.sh"
    project.mkdir()
    environment = {**os.environ, "HOME": str(tmp_path / "home")}
    first = ran(["bash", script, "--venv", tmp_path / "nothing", project, "--dry-run"], env=environment)
    assert (first.returncode, "would install code-intel-server" in first.stdout) == (0, True)
    assert not (tmp_path / "nothing").exists() and not (tmp_path / "home").exists()
    there = ran(["bash", script, "--venv", sys.prefix, project, "--dry-run"], env=environment)
    assert there.returncode == 0, there.stderr
    assert f"would install code-intel-server from {script.parent}" in there.stdout
    assert "would be created" in there.stdout and not [*project.iterdir()]
