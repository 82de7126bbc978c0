"""A client that speaks JSON-RPC to a real server process over stdio, can be killed at any time, and a repository to work on."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, Protocol, Self

import code_intel_server
from tests.e2e import zygote

Fields = dict[str, Any]

ENVIRONMENT = {
    # The server runs elsewhere: it must be the code under test, wherever an installed copy lies.
    "PYTHONPATH": str(Path(code_intel_server.__file__).parents[1]),
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_AUTHOR_NAME": "Test",
    "GIT_AUTHOR_EMAIL": "test@example.invalid",
    "GIT_COMMITTER_NAME": "Test",
    "GIT_COMMITTER_EMAIL": "test@example.invalid",
}


def git(root: Path, *arguments: str) -> str:
    """Run git in a test repository and return what it printed."""
    done = subprocess.run(
        ["git", *arguments], cwd=root, env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True, check=True
    )
    return done.stdout


def repository(root: Path, files: Mapping[str, str]) -> Path:
    """A git repository on `main` with one commit of `files` and an identity of its own."""
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "-q", "-b", "main")
    git(root, "config", "user.name", "Test")
    git(root, "config", "user.email", "test@example.invalid")
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "Initial commit")
    return root


def foreign_repository(root: Path) -> Path:
    """The sources of the installed package `click` as a git repository: real code that is not ours."""
    spec = find_spec("click")
    assert spec is not None and spec.origin is not None
    shutil.copytree(Path(spec.origin).parent, root / "src" / "click", ignore=shutil.ignore_patterns("__pycache__"))
    return repository(
        root,
        {
            "README.md": "# click\n\nCommand line interfaces.\n",
            "docs/design.md": "# Design\n\nCommands are functions with decorators.\n",
            "CLAUDE.md": "# Rules\n\n- Keep it small.\n",
            ".gitignore": ".env\nbuild/\n",
            "tests/test_basic.py": "def test_nothing():\n    assert 1 + 1 == 2\n",
        },
    )


def fingerprint(*paths: Path) -> dict[str, str]:
    """SHA-256 of each file."""
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


class Child(Protocol):
    """What the driver needs of the process that serves; a `subprocess.Popen` has it."""

    pid: int
    stdin: IO[bytes] | None
    stdout: IO[bytes] | None

    def poll(self) -> int | None: ...

    def wait(self, timeout: float) -> int: ...

    def send_signal(self, number: int, /) -> None: ...


class Server:
    """One server process, forked where that can be. Use as a context manager; `kill` ends it as power loss would."""

    def __init__(self, root: Path, **environment: str) -> None:
        """Start it and shake hands."""
        self.root = root
        self._number = 0
        self._log = (root.parent / "stderr.log").open("ab")
        state = str(root.parent / "state")
        self._process = self._started({**os.environ, **ENVIRONMENT, "XDG_STATE_HOME": state, **environment})
        try:
            self._shake_hands()
        except (OSError, EOFError, ValueError):
            self.kill()
            raise

    def _started(self, environment: Mapping[str, str]) -> Child:
        if sys.platform != "linux":
            return self._command(environment)
        child = zygote.shared().fork(self.root, environment, self._log)
        child.go()
        return child

    def _command(self, environment: Mapping[str, str], *before: str) -> Child:
        return subprocess.Popen(
            [*before, sys.executable, "-m", "code_intel_server", "serve"],
            cwd=self.root,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )

    def _shake_hands(self) -> None:
        client = {"name": "tests", "version": "0"}
        self._rpc("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def call(self, tool: str, **arguments: object) -> Fields:
        """The structured content of a tool call; text and structure must say the same."""
        result = self._rpc("tools/call", name=tool, arguments=arguments)
        assert not result.get("isError"), result
        content: Fields = result["structuredContent"]
        assert json.loads(result["content"][0]["text"]) == content
        return content

    def answer_to(self, tool: str, **arguments: object) -> Fields:
        """The whole JSON-RPC answer to a call, an `error` of the protocol too."""
        return self._answer("tools/call", name=tool, arguments=arguments)

    def submit(self, **data: object) -> Fields:
        """submit_phase with a summary and an empty tools list unless given."""
        return self.call("submit_phase", data={"summary": "Done.", "tools_used": [], **data})

    def accepted(self, **data: object) -> Fields:
        """A submit that must be accepted."""
        answer = self.submit(**data)
        assert answer["success"], answer
        return answer

    def refused(self, **data: object) -> Fields:
        """A submit that must be refused."""
        answer = self.submit(**data)
        assert answer["success"] is False, answer
        return answer

    def list_tools(self) -> list[Fields]:
        tools: list[Fields] = self._rpc("tools/list")["tools"]
        return tools

    def kill(self) -> None:
        """SIGKILL, as if the machine had lost power for this process."""
        self._process.send_signal(signal.SIGKILL)
        self._end()

    def signal(self, number: signal.Signals) -> int:
        """Send a signal and wait for the end; the exit status."""
        self._process.send_signal(number)
        return self._process.wait(10)

    def wait(self, seconds: float) -> None:
        """Until it has ended by itself."""
        self._process.wait(seconds)

    def close(self) -> None:
        """Close the pipe, as a client that ends does."""
        if self._process.poll() is None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.wait(20)
        self._end()

    def _end(self) -> None:
        self._process.wait(20)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None and not stream.closed:
                stream.close()
        self._log.close()

    def _rpc(self, method: str, **params: object) -> Fields:
        answer = self._answer(method, **params)
        assert "error" not in answer, answer
        result: Fields = answer["result"]
        return result

    def _answer(self, method: str, **params: object) -> Fields:
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        while True:
            answer = self._read()
            if answer.get("id") == self._number and "method" not in answer:
                return answer

    def _read(self) -> Fields:
        assert self._process.stdout is not None
        if not (line := self._process.stdout.readline()):
            raise EOFError("the server ended")
        message: Fields = json.loads(line)
        return message

    def _send(self, message: Fields) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()


class StartedServer(Server):
    """A server started by its command, as clients do; `before` are words that stand before that, such as a tracer's."""

    def __init__(self, root: Path, *before: str, **environment: str) -> None:
        self._before = before
        super().__init__(root, **environment)

    def _started(self, environment: Mapping[str, str]) -> Child:
        return self._command(environment, *self._before)
