"""A throw-away machine for a client: a home of its own, our command on its PATH, a project that init has set up."""

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from code_intel_server.cli.proof import SampleWork
from tests.e2e.clients.fakes import Fields
from tests.e2e.driver import git, repository

_KEPT = ("LANG", "LC_ALL", "TMPDIR")
_CODEX = """
model = "{model}"
model_provider = "scripted"
{sandbox}
[model_providers.scripted]
name = "scripted"
base_url = "{url}"
wire_api = "responses"
requires_openai_auth = false
supports_websockets = false
"""
_NO_SANDBOX = 'sandbox_mode = "danger-full-access"  # not every machine of ours can make sandboxes\n'
_SECONDS = 110


@dataclass(frozen=True)
class Machine:
    """`home` and `bin` of its own; `project` is a repository with its set-up committed."""

    home: Path
    bin: Path
    project: Path

    @classmethod
    def make(cls, folder: Path, *, set_up: bool = True) -> "Machine":
        """Everything below `folder`; without `set_up` nothing of ours is in the project."""
        machine = cls(folder / "home", folder / "bin", folder / "a project")
        machine.home.mkdir()
        machine.bin.mkdir()
        launcher = machine.bin / "code-intel-server"
        source = Path(__file__).parents[3] / "src"
        launcher.write_text(f'#!/bin/sh\nPYTHONPATH="{source}" exec "{sys.executable}" -m code_intel_server "$@"\n')
        launcher.chmod(0o755)
        files = {
            "app.py": 'def greet(name: str) -> str:\n    """Greet by name."""\n    return f"Hello, {name}!"\n',
            "secrets/vault.py": "TOKEN = 1\n",
            "README.md": "# A project\n",
            "CLAUDE.md": "# Rules\n\n- Greet everybody alike.\n",
        }
        repository(machine.project, files)
        if not set_up:
            return machine
        done = machine.run(["code-intel-server", "init", str(machine.project), "--no-proof", "--no-index", "--yes"])
        assert done.returncode == 0, done.stdout + done.stderr
        assert git(machine.project, "status", "--porcelain") == ""
        return machine

    def with_claude(self) -> "Machine":
        """The same, where the user has said in Claude Code that the project can be trusted."""
        (self.home / ".claude").mkdir()
        trusted = {"projects": {str(self.project): {"hasTrustDialogAccepted": True}}}
        (self.home / ".claude" / ".claude.json").write_text(json.dumps(trusted))
        return self

    def codex_home(self, url: str, model: str = "scripted-model", *, sandbox: bool = False, more: str = "") -> str:
        """The folder of Codex's settings, which lead to this model at this service."""
        folder = self.home / ".codex"
        folder.mkdir(exist_ok=True)
        config = _CODEX.format(model=model, url=url, sandbox="" if sandbox else _NO_SANDBOX)
        (folder / "config.toml").write_text(f"{config}\n{more}")
        return str(folder)

    def environment(self, **extra: str) -> dict[str, str]:
        """Built, not inherited: nothing of the caller's login may leak in."""
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        path = os.pathsep.join([str(self.bin), os.environ["PATH"]])
        return {**kept, "HOME": str(self.home), "PATH": path, "GIT_CONFIG_GLOBAL": os.devnull, **extra}

    def run(self, command: Sequence[str | Path], stdin: str = "", **extra: str) -> "subprocess.CompletedProcess[str]":
        """A command in the project."""
        return subprocess.run(
            [str(part) for part in command],
            cwd=self.project,
            env=self.environment(**extra),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )

    @contextmanager
    def started(self, command: Sequence[str | Path], **extra: str) -> "Iterator[subprocess.Popen[str]]":
        """A program that goes on by itself, with pipes; killed in the end if it still runs."""
        with subprocess.Popen(
            [str(part) for part in command],
            cwd=self.project,
            env=self.environment(**extra),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as program:
            try:
                yield program
            finally:
                program.kill()

    def wait_until_unlocked(self) -> None:
        """Until the server of a client that was killed has noticed and ended. Blocks on the lock, sleeps nowhere."""
        with (self.project / ".git" / "code-intel" / "lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH)

    def work(self) -> SampleWork:
        """A piece of work on the project."""
        return SampleWork(self.project, "app.py")

    def merged(self) -> str:
        """The message of the merge that base must hold now, with a tree that is clean but for the rules' new summary."""
        assert git(self.project, "rev-parse", "--abbrev-ref", "HEAD").strip() == "main"
        assert len(git(self.project, "log", "-1", "--format=%P").split()) == 2
        assert "llm_task_" not in git(self.project, "branch", "--list")
        assert git(self.project, "status", "--porcelain") == " M .code-intel/context.yml\n"
        assert "Greet everybody alike." in (self.project / ".code-intel/context.yml").read_text()
        assert "code_intel_proof" in (self.project / "app.py").read_text()
        assert (self.project / "secrets/vault.py").read_text() == "TOKEN = 1\n"
        return git(self.project, "log", "-1", "--format=%B")


def events(output: str) -> list[Fields]:
    """The JSON lines a client printed."""
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]
