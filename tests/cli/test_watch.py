"""`status` beside a session that is going on: the picture in a real terminal, line by line in a pipe, the index (SPEC 12)."""

import io
import os
import re
import select
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from code_intel_server.cli import init, status
from code_intel_server.cli.proof import SampleWork
from code_intel_server.cli.proof.agent import SubmitStep, run_session
from code_intel_server.cli.status.view import read_view
from code_intel_server.cli.status.watch import Watch
from code_intel_server.flow.phases import Flags, Phase
from code_intel_server.flow.session import Receipt
from code_intel_server.flow.tasks import ChecklistItem, TaskModel
from code_intel_server.tools.services import ProjectServices
from code_intel_server.tools.session.archives import archive
from code_intel_server.workspace.values import ProofStatus
from tests.cli.helpers import Said, parsed, project, session, state
from tests.e2e.driver import ENVIRONMENT

_SECONDS = 60.0
_WIDTH, _HEIGHT = 60, 40


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
        # Its width is the terminal's: pytest's readline has told its children another.
        self.type(f'unset COLUMNS LINES; trap : INT; {command}; echo "ended with $?"', "Enter")

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
def test_a_whole_session_is_told_on_a_terminal_and_in_a_pipe_and_ends_with_its_outcome_and_report(
    root: Path, terminal: Terminal, tmp_path: Path
) -> None:
    terminal.wait_for("no session is running in .*: waiting for one")
    command = [sys.executable, "-m", "code_intel_server", "status", "--watch", "--project", str(root)]
    with (tmp_path / "piped").open("w+") as piped, subprocess.Popen(command, stdout=piped) as watching:

        def look(step: SubmitStep) -> None:
            """The agent goes on only when the watcher has seen where it has come to."""
            if step.next == "EXPLORATION":
                terminal.wait_for("Add a small documented function", "✓ +4 +Request", "▶ +5 +Exploration +")
            elif step.next == "POST_IMPL_VERIFY":
                terminal.wait_for(r"13 +Implementation +t1 done: app\.py:\d+-\d+", "▶ +15 +Verification")

        script = run_session(SampleWork(root, "app.py"), root, on_step=look)
        assert script.responses[-1]["phase"] == "SESSION_COMPLETE"
        assert watching.wait(timeout=_SECONDS) == 0
        piped.seek(0)
        lines = piped.read().splitlines()
    shown = terminal.wait_for("Merged into main as ", "report: /", "ended with 0")
    assert "▶" not in shown
    assert not re.search("READY|submit_phase|[A-Z]+_[A-Z]+", "\n".join(lines))
    told = [line[1:].strip() for line in lines if line.startswith("✓")]
    assert [line.split()[0] for line in told] == [str(step) for step in (*range(3, 16), 17, 18, 19)]
    assert re.match(r"5 +Exploration +Seen so far: \S+:1", told[2])
    assert re.match(r" +\d lookups: app\.py, ", lines[lines.index(f"✓   {told[2]}") + 1])
    assert re.fullmatch(r"Merged into main as \w+, by the agent's word alone", lines[-3])
    report = Path(lines[-1].removeprefix("report: "))
    assert "Add a small documented function" in report.read_text(encoding="utf-8")


def _unwrapped(screen: str) -> str:
    return re.sub(r"\s*\n\s*", " ", screen)


# step by step, without a server


AT = "2026-02-01T12:35:{:02}+00:00"
SESSION = "20260201_123456"


class Screen:
    """What a watch has printed, on a terminal of some width or in a pipe (0)."""

    def __init__(self, root: Path, width: int) -> None:
        self._out = io.StringIO()
        self.console = Console(
            file=self._out, width=width or None, force_terminal=width > 0, no_color=True, highlight=False
        )
        self.watch = Watch(root, None, self.console)

    def look(self) -> list[str]:
        """The lines that one look adds."""
        self._out.seek(0)
        self._out.truncate()
        self.watch.goes_on()
        return [re.sub("\x1b\\[[0-9;]*m", "", line).rstrip() for line in self._out.getvalue().splitlines()]

    def now(self) -> str:
        """The line that says what is going on."""
        self._out.seek(0)
        self._out.truncate()
        self.console.print(self.watch.now())
        return re.sub("\x1b\\[[0-9;]*m", "", self._out.getvalue())


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with nothing but its files."""
    made = project(tmp_path_factory.mktemp("plain") / "repo [/b]")
    (made / ".code-intel").mkdir()
    return made


@pytest.fixture
def quiet(plain: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The same without a session or a log."""
    shutil.rmtree(plain / ".code-intel")
    (plain / ".code-intel").mkdir()
    return plain


def log(services: ProjectServices, second: int, step: int, event: str, **more: object) -> None:
    """One accepted submit; with `reason` one that was refused."""
    verdict = "refused" if "reason" in more else "accepted"
    row = {"session_id": SESSION, "what": "submit", "at": AT.format(second), "verdict": verdict}
    services.decisions.append({**row, "step": step, "event": event, "next_step": step + 1, **more})


def test_what_was_found_refused_decided_and_run_is_told_once(quiet: Path) -> None:
    screen = Screen(quiet, 60)
    assert screen.look()[0].startswith("no session is running in")  # where a path is broken, its spaces say
    assert screen.look() == []
    with session(quiet, state()) as services:
        ledger = services.ledger(SESSION)
        ledger.add("find_definitions", "EXPLORATION", "ok", 1, ["src/cli.py"])
        ledger.add("search_text", "EXPLORATION", "ok", 9, [f"docs/{n}.md" for n in range(5)])
        log(services, 1, 5, "ok", account="list_items is defined in src/cli.py:88 and called four times", ledger=2)
        assert screen.look() == [
            "",
            "Say goodbye too.",
            "session 20260201_123456 · running",
            "✓   5  Exploration       list_items is defined in",
            "                         src/cli.py:88 and called four times",
            "                         2 lookups: src/cli.py, docs/0.md,",
            "                         docs/1.md and 3 more",
        ]
        log(services, 2, 6, "ok", account="enough is known: the names", ledger=2)
        log(services, 3, 13, "", reason="failures.READY.x", said="docs/cli.md:3\ndid not \x1b[31mchange", ledger=2)
        run = {"command": "pytest -q", "outcome": "failed", "seconds": 12.3, "returncode": 1}
        log(
            services,
            4,
            15,
            "failed",
            said="two tests",
            proof={"status": "failed", "commands": [run]},
            next_step=12,
            ledger=2,
        )
        assert screen.look() == [
            "✓   6  Enough known?     enough is known: the names",
            "✗  13  Implementation    refused: docs/cli.md:3 did not",
            "                         \\x1b[31mchange",
            "↩  15  Verification      failed: two tests",
            "                         ran pytest -q: failed, 12 s",
            "                         back to Plan",
        ]
        assert screen.look() == []


def test_at_200_columns_and_in_a_pipe_a_line_stays_whole(quiet: Path) -> None:
    with session(quiet, state()) as services:
        log(services, 1, 5, "ok", account="word " * 20)
        for width in (200, 0):
            assert Screen(quiet, width).look()[2:] == ["✓   5  Exploration       " + ("word " * 20).strip()]


def test_what_is_going_on_names_the_task_and_what_was_looked_at(quiet: Path) -> None:
    item = ChecklistItem(item="say it")
    tasks = (TaskModel(id="t1", description="Say [goodbye]", checklist=(item,)),)
    with session(quiet, state(tasks=tasks)) as services:
        screen = Screen(quiet, 200)
        screen.look()
        services.ledger(SESSION).add("search_text", "READY", "ok", 1, ["app.py"])
        screen.look()
        assert re.fullmatch(r"▶  13  Implementation    t1: Say \[goodbye\] · 1 lookup: app\.py · .+\n", screen.now())


def test_an_interrupted_session_is_said_to_be_that_until_it_goes_on_or_another_begins(quiet: Path) -> None:
    screen = Screen(quiet, 100)
    with session(quiet, state()):
        assert screen.look()[1] == "session 20260201_123456 · running"
    assert screen.look() == ["interrupted: its client is gone. /code --resume goes on"]
    assert "interrupted" in screen.now()
    with session(quiet, state()):
        assert screen.look() == ["it goes on"]
    assert screen.look() == ["interrupted: its client is gone. /code --resume goes on"]
    with session(quiet, state("20260202_000000", query="Another one.")):
        assert screen.look() == ["", "Another one.", "session 20260202_000000 · running"]


def test_a_watch_ends_with_the_outcome_and_the_report(quiet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(quiet, 60)
    monkeypatch.chdir(quiet)
    with session(quiet, state()) as services:
        screen.look()
        log(services, 40, 19, "merged", account="merged into main as 1a2b3c", next_step=19)
        ended = state(receipt=Receipt(status=ProofStatus.PROVEN, tree="", verifier="generic"))
        archive(services, ended, (), "SESSION_COMPLETE", "2026-02-01T12:39:08+00:00")
        services.store.delete(SESSION)
        assert screen.look() == [
            "✓  19  Merge             merged into main as 1a2b3c",
            "",
            "Merged into main as 1a2b3c, proven",
            "4 min 12 s, 1 submit, 0 refused",
            "report: .code-intel/logs/reports/20260201_123456.html",
        ]
        assert screen.watch.goes_on() is False
    assert "Say goodbye too." in (quiet / ".code-intel/logs/reports/20260201_123456.html").read_text(encoding="utf-8")


def test_steps_that_are_not_decided_yet_are_not_said_to_be_skipped(quiet: Path) -> None:
    def states(**more: Any) -> dict[int, str]:
        with session(quiet, state(**more)):
            seen = read_view(quiet).session()
        assert seen is not None
        return {row.number: row.state for row in seen.steps()}

    early = states(phase=Phase.EXPLORATION, substep=None, completed_steps=[3, 4])
    assert {number for number, said in early.items() if said == "open"} == {7, 9, 11, 16}
    assert {number for number, said in early.items() if said == "skipped"} == {2}
    decided = states(phase=Phase.Q2, substep=None, completed_steps=[3, 4, 5, 6], q1=False)
    assert (decided[7], decided[9], decided[11]) == ("skipped", "open", "open")
    wanted = states(phase=Phase.Q2, substep=None, completed_steps=[3, 4, 5, 6, 7], flags=Flags(no_quality=True))
    assert (wanted[7], wanted[18], wanted[19]) == ("done", "skipped", "ahead")
    fast = states(completed_steps=[3, 4, 12], flags=Flags(fast=True, no_verify=True))
    assert {number for number, said in fast.items() if said == "skipped"} == {2, *range(5, 12), 15, 16, 18}


def test_the_index_is_told_without_being_opened(root: Path, capsys: Said) -> None:
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


def test_an_index_that_is_missing_or_damaged_is_said_and_left_alone(root: Path, capsys: Said) -> None:
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
