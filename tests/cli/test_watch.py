"""`status` beside a session that is going on: the picture in a real terminal, line by line in a pipe, the index (SPEC 12)."""

import os
import re
import select
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from code_intel_server.cli import init, status
from code_intel_server.cli.proof import SampleWork
from code_intel_server.cli.scripted_agent import Step, run_session
from tests.cli.helpers import own_state, parsed, project
from tests.e2e.driver import ENVIRONMENT

_SECONDS = 60.0
_WIDTH, _HEIGHT = 100, 30


class Terminal:
    """A command in a tmux window of its own; `wait_for` looks at its screen whenever something was drawn."""

    def __init__(self, folder: Path, command: str, environment: dict[str, str]) -> None:
        self._tmux = ["tmux", "-S", str(folder / "socket"), "-f", os.devnull]
        drawn = folder / "drawn"
        os.mkfifo(drawn)
        size = ["-x", str(_WIDTH), "-y", str(_HEIGHT)]
        variables = [word for name, value in environment.items() for word in ("-e", f"{name}={value}")]
        self._run("new-session", "-d", *size, *variables, "sh")
        self._run("pipe-pane", "-O", f"cat > {shlex.quote(str(drawn))}")
        self._drawn = os.open(drawn, os.O_RDONLY)
        # The shell tells the exit status: tmux loses it where it sees the end of the output before the child's signal.
        self.type(f'trap : INT; {command}; echo "ended with $?"', "Enter")

    def _run(self, *words: str) -> str:
        done = subprocess.run([*self._tmux, *words], capture_output=True, text=True, timeout=20, check=True)
        return done.stdout

    def type(self, *keys: str) -> None:
        self._run("send-keys", *keys)

    def screen(self) -> str:
        return self._run("capture-pane", "-p")

    def wait_for(self, *wanted: str) -> str:
        """The first screen that shows all of these (regular expressions; a line of the picture may be wrapped)."""
        until = time.monotonic() + _SECONDS
        while not all(re.search(one, _unwrapped(seen := self.screen())) for one in wanted):
            assert time.monotonic() < until, seen
            self._something_drawn()
        return seen

    def _something_drawn(self) -> None:
        """Wait for it, a moment only: not everything that changes is drawn by the command. What is left unread would stop tmux."""
        if select.select([self._drawn], [], [], 0.3)[0] and not os.read(self._drawn, 1 << 20):
            select.select([], [], [], 0.3)  # the pipe's other end is closed

    def close(self) -> None:
        subprocess.run([*self._tmux, "kill-server"], capture_output=True, timeout=20, check=False)
        os.close(self._drawn)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that was set up and indexed."""
    own_state(monkeypatch, tmp_path)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    made = project(tmp_path / "repo")
    assert init.main([str(made), "--no-proof", "--yes"]) == 0
    return made


@pytest.fixture
def terminal(root: Path, tmp_path: Path) -> Iterator[Terminal]:
    command = f"{shlex.quote(sys.executable)} -m code_intel_server status --watch --project {shlex.quote(str(root))}"
    made = Terminal(tmp_path, command, {**ENVIRONMENT, "XDG_STATE_HOME": os.environ["XDG_STATE_HOME"]})
    try:
        yield made
    finally:
        made.close()


@pytest.mark.needs("tmux")
def test_watch_follows_a_live_session_on_a_terminal_from_start_to_end(root: Path, terminal: Terminal) -> None:
    terminal.wait_for("no session is running", "lock free")
    seen: list[str] = []

    def look(step: Step) -> None:
        """The agent goes on only when the watcher has seen where it has come to."""
        if step.next == "EXPLORATION":
            seen.append(
                terminal.wait_for(
                    "Add a small documented function",
                    "✓ +4 +QUERY_FRAME",
                    "▶ +5 +EXPLORATION",
                    "· +13 +READY impl",
                    r"index \d+ files, \d+ chunks .*owner process \d+",
                    r"lock held by process \d+, session \d{8}_\d{6}",
                )
            )
        elif step.next == "POST_IMPL_VERIFY":
            seen.append(
                terminal.wait_for(
                    "▶ +15 +POST_IMPL_VERIFY",
                    "✓ t1 +Add code_intel_proof",
                    r"done +code_intel_proof .*app\.py:\d+-\d+",
                    "branch llm_task_",
                )
            )

    script = run_session(SampleWork(root, "app.py"), root, on_step=look)
    assert script.responses[-1]["phase"] == "SESSION_COMPLETE"
    assert len(seen) == 2
    assert "▶" not in terminal.wait_for("no session is running", "lock free")
    terminal.type("C-c")
    terminal.wait_for("code-intel-server: interrupted", "ended with 130")


def _unwrapped(screen: str) -> str:
    return re.sub(r"\s*\n\s*", " ", screen)


def test_in_a_pipe_every_accepted_submit_is_one_line(root: Path) -> None:
    command = [sys.executable, "-m", "code_intel_server", "status", "--watch", "--project", str(root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        lines = iter(watching.stdout.readline, "")
        assert next(lines) == "no session is running\n"
        seen: list[str] = []

        def look(step: Step) -> None:
            if step.next in {"EXPLORATION", "PRE_COMMIT"}:
                seen.append(next(line for line in lines if f" {step.next}" in line))

        run_session(SampleWork(root, "app.py"), root, on_step=look)
        end = next(line for line in lines if line.startswith("no session"))
        watching.terminate()
    assert re.fullmatch(r"\d{8}_\d{6} step 5 EXPLORATION · submits 2\n", seen[0])
    assert re.fullmatch(r"\d{8}_\d{6} step 17 PRE_COMMIT · tasks 1/1 · submits \d+\n", seen[1])
    assert end == "no session is running\n"


def test_the_index_is_told_without_being_opened(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert status.main(["--project", str(root), "--json"]) == 0
    told = parsed(capsys.readouterr().out)["index"]
    assert told["files"] > 0
    assert told["chunks"] >= told["files"]
    assert (told["pending"], told["owner_pid"]) == (0, None)
    assert told["engine"] in {"chromadb+bm25", "sqlite-vectors+bm25"}
    assert told["model"]
    assert status.main(["--project", str(root)]) == 0
    assert "no server has it open" in capsys.readouterr().out.replace("\n", " ")


def test_an_index_that_is_missing_or_damaged_is_said_and_left_alone(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = root / ".code-intel/cache/index.sqlite3"
    for more in root.glob(".code-intel/cache/index.sqlite3-*"):
        more.unlink()
    file.write_bytes(b"no database at all" * 1000)
    capsys.readouterr()
    assert status.main(["--project", str(root), "--json"]) == 0
    assert parsed(capsys.readouterr().out)["index"] is None
    assert file.read_bytes() == b"no database at all" * 1000
    file.unlink()
    assert status.main(["--project", str(root)]) == 0
    assert "not built yet" in capsys.readouterr().out
    assert not file.exists()
