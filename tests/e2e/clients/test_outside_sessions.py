"""The gate outside of sessions in the real Claude Code and Codex: a stubborn model, a pass, a failure, a stop (SPEC 12)."""

import fcntl
import json
import sys
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import pytest

from code_intel_server.cli.proof.script import Edit
from tests.e2e.clients import test_claude_code as claude
from tests.e2e.clients import test_codex as codex
from tests.e2e.clients.fakes import Fields, Service, anthropic, responses, tool_block
from tests.e2e.clients.machine import Machine
from tests.e2e.clients.model import Trying, TryingClaude, TryingCodex
from tests.e2e.driver import git

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]

HELD = "changed outside a session in this turn: app.py"
TEST = "import app\n\n\ndef test_greet():\n    assert app.greet('you') == {wanted!r}\n"


@dataclass(frozen=True)
class Client:
    """One client on its machine: `ask` is one prompt with a model, and everything that its model was shown."""

    machine: Machine
    model: type[Trying]
    serving: Callable[[Trying], AbstractContextManager[Service]]
    ask_with: Callable[[Service, str], None]

    def ask(self, prompt: str, *edited: str) -> list[Fields]:
        with self.serving(self.model(self.machine.project, *edited)) as service:
            self.ask_with(service, prompt)
        assert not service.errors, service.errors
        return service.requests

    def status(self) -> str:
        return self.machine.run(["code-intel-server", "status"]).stdout.replace("\n", " ")

    def wait_for_the_run(self) -> None:
        """Until the run in the background has ended. Blocks on its lock, sleeps nowhere."""
        with (self.machine.project / ".git/code-intel/outside.lock.json").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH)


@pytest.fixture(params=["claude", "codex"])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Client:
    if request.param == "claude":
        machine = Machine.make(tmp_path).with_claude()
        return Client(machine, TryingClaude, anthropic, lambda service, text: _ask_claude(machine, service, text))
    machine = Machine.make(tmp_path)
    return Client(machine, TryingCodex, responses, lambda service, text: _ask_codex(machine, service, text))


def _ask_claude(machine: Machine, service: Service, prompt: str) -> None:
    claude.ask(machine, service, prompt)


def _ask_codex(machine: Machine, service: Service, prompt: str) -> None:
    done = machine.run(codex.command(prompt), CODEX_HOME=machine.codex_home(service.url))
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])


def configured(machine: Machine, mode: str, wanted: str = "Hello, you!") -> None:
    file = machine.project / ".code-intel/config.json"
    config = json.loads(file.read_text())
    config |= {"outside_sessions": mode, "verify_commands": [[sys.executable, "-m", "pytest", "-q"]]}
    file.write_text(json.dumps(config))
    (machine.project / "test_app.py").write_text(TEST.format(wanted=wanted))
    git(machine.project, "add", "-A")
    git(machine.project, "commit", "-qm", "tests")
    assert machine.run(["code-intel-server", "trust", "--yes"]).returncode == 0


def shown(requests: list[Fields], text: str) -> list[int]:
    """The requests whose model was shown a text, by their number."""
    return [number for number, body in enumerate(requests) if text in json.dumps(body, ensure_ascii=False)]


def test_a_stubborn_model_is_held_once_and_a_turn_without_edits_never(client: Client) -> None:
    configured(client.machine, "remind")
    requests = client.ask("Tidy up a little.", "app.py")
    assert shown(requests, HELD) == [len(requests) - 1], "held once, and the last word is the model's"
    assert "pytest -q`" in json.dumps(requests[-1])
    again = client.ask("And how does it look?")
    assert shown(again, "outside a session") == []
    assert len(again) == 1
    assert "last proven" not in client.status()


def test_a_run_in_the_background_is_told_when_the_next_turn_ends(client: Client) -> None:
    configured(client.machine, "verify")
    first = client.ask("Tidy up a little.", "app.py")
    assert shown(first, "outside a session") == [], "it runs, and holds nobody"
    client.wait_for_the_run()
    assert "on these files: proven" in client.status()
    assert shown(client.ask("And now?"), "outside a session") == []


def test_a_failure_holds_the_next_turn_once_with_the_tests_name(client: Client) -> None:
    configured(client.machine, "verify", wanted="Good day, you!")
    client.ask("Tidy up a little.", "app.py")
    client.wait_for_the_run()
    second = client.ask("And now?")
    assert shown(second, "test_greet") == [1], "said after the first word, and once"
    assert len(second) == 2
    assert len(client.ask("And now?")) == 1


@pytest.mark.parametrize("works", [True, False])
def test_in_claude_code_an_agent_that_ran_the_tests_well_is_not_reminded(tmp_path: Path, works: bool) -> None:
    machine = Machine.make(tmp_path).with_claude()
    configured(machine, "remind", wanted="Hello, you!" if works else "Good day, you!")

    class Testing(TryingClaude):
        def _edit(self, edit: Edit) -> Generator[list[Fields], list[Fields], None]:
            yield from super()._edit(edit)
            yield [tool_block("Bash", {"command": f"{sys.executable} -m pytest -q", "description": "Run the tests"})]

    with anthropic(Testing(machine.project, "app.py")) as service:
        claude.ask(machine, service, "Tidy up a little.", "--allowedTools", "Bash")
    assert "1 passed" in json.dumps(service.requests[-1]) or not works
    assert bool(shown(service.requests, HELD)) is not works
