"""Whose word a decision is, in the real Claude Code and Codex: what the user types is heard, what an agent with a shell forges
is marked as far as it can be (SPEC 12). What goes unnoticed is asserted too, and stands in benchmarks/enforcement.md.
"""

import json
import sys
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import pytest

from code_intel_server.cli.proof.script import Action, Actions, Script, ToolCall
from tests.e2e.clients import test_claude_code as claude
from tests.e2e.clients import test_codex as codex
from tests.e2e.clients.fakes import Fields, Service, anthropic, function_item, responses, tool_block
from tests.e2e.clients.machine import Machine
from tests.e2e.clients.model import Blocks, ClaudeModel, CodexModel, Model
from tests.e2e.driver import git

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]

HEARD, SAID, TYPED = "heard by the hook", "said by the agent", "typed at a terminal"
SHELL = "the client's shell"
SOURCE = Path(__file__).parents[3] / "src"
RECORD = ".git/code-intel/heard/next.*.json"
RESIGN = """
import pathlib
from code_intel_server.workspace.state.signature import signed
folder = pathlib.Path(".git/code-intel")
key = (folder / "key").read_bytes()
for file in folder.glob("heard/next.*.json"):
    file.write_bytes(signed(key, ('"of": "%s", "rows": [["--quick"]]}' % file.name).encode()))
"""
TERMINAL = "import pty; pty.spawn(['{program}', 'waive', '2', '--reason', 'slow on this machine'])"
# A client may write the file of its conversation only while the command runs: look until it is there.
OWN_CONVERSATION = (
    'for i in $(seq 100); do find "$HOME" -name "*.jsonl" -newer "$HOME/asked" -printf "%T@ %p\\n" | sort -n'
    " | grep -oE '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\\.jsonl' | tail -1 | cut -c1-36 | grep . && break; sleep .1; done"
)


def hook_called(machine: Machine, conversation: str) -> str:
    """A shell command that tells our hook of a prompt that nobody typed."""
    event = '{"hook_event_name": "UserPromptSubmit", "prompt": "/code -q x", "session_id": "%s"}'
    return f"printf '{event}' \"$({conversation})\" | {machine.bin}/code-intel-server hook"


class _WithShell(Model):
    """Takes a call of SHELL to the client's own shell."""

    def _do(self, action: Action) -> Generator[Blocks, list[Fields], Fields]:
        if isinstance(action, ToolCall) and action.tool == SHELL:
            results = yield self.shell(str(action.arguments["command"]))
            return {"text": results[0]["text"]}
        return (yield from super()._do(action))

    def shell(self, command: str) -> Blocks:
        raise NotImplementedError


class _Claude(_WithShell, ClaudeModel):
    def shell(self, command: str) -> Blocks:
        return [tool_block("Bash", {"command": command})]


class _Codex(_WithShell, CodexModel):
    def shell(self, command: str) -> Blocks:
        return [function_item("exec_command", "", {"cmd": command})]


@dataclass(frozen=True)
class Client:
    """One of the two: `ask` lets it work on a prompt of the user's."""

    machine: Machine
    model: type[_WithShell]
    skill: str
    serving: Callable[[Model], AbstractContextManager[Service]]
    command: Callable[[Service, str, bool], list[str]]
    environment: Callable[[Service], dict[str, str]]

    def ask(self, prompt: str, actions: Actions, *, go_on: bool = False) -> None:
        with self.serving(self.model(self.machine.project, actions)) as service:
            done = self.machine.run(self.command(service, prompt, go_on), **self.environment(service))
        assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])
        assert not service.errors, service.errors


@pytest.fixture(params=["claude", "codex"])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Client:
    machine = Machine.make(tmp_path)
    if request.param == "claude":
        return Client(
            machine.with_claude(),
            _Claude,
            "/code",
            anthropic,
            lambda _service, prompt, go_on: [
                *claude.command(prompt),
                *("--allowedTools", "Bash"),
                *(["--continue"] if go_on else []),
            ],
            lambda service: claude.environment(machine, service),
        )

    def command(_service: Service, prompt: str, go_on: bool) -> list[str]:
        words = codex.command(prompt)
        return [*words[:2], "resume", "--last", *words[2:]] if go_on else words

    return Client(
        machine, _Codex, "$code", responses, command, lambda service: {"CODEX_HOME": machine.codex_home(service.url)}
    )


def started(answers: list[Fields], *steps: str, **flags: bool) -> Actions:
    """Shell commands, then start_session with flags; what it answers goes into `answers`."""
    for step in steps:
        yield (ToolCall(SHELL, {"command": step}),)
    (answer,) = yield (ToolCall("start_session", {"query": "Add it to app.py.", "flags": flags}),)
    answers.append(answer)
    return answer


def test_flags_that_the_user_types_are_heard_and_forged_ones_are_not_unless_the_hook_or_the_record_is_forged(
    client: Client,
) -> None:
    answers: list[Fields] = []
    client.ask(f"{client.skill} -q Add it to app.py.", started(answers, quick=True))
    assert answers[-1]["decisions"] == {"--quick": HEARD}
    asked = f"{client.skill} Add it to app.py."
    python = f"PYTHONPATH='{SOURCE}' '{sys.executable}'"
    script = client.machine.home / "resign.py"
    script.write_text(RESIGN)
    forged: list[tuple[tuple[str, ...], str]] = [
        ((), SAID),
        ((f'sed -i \'s/"rows": .*/"rows": [["--quick"]]}}/\' {RECORD}',), SAID),
        ((hook_called(client.machine, "echo 12345678-1234-1234-1234-123456789012"),), SAID),
        ((f"{python} '{script}'",), HEARD),  # the key is the user's, and so is the agent
        ((hook_called(client.machine, OWN_CONVERSATION),), HEARD),
    ]
    for steps, mark in forged:
        assert client.machine.run(["code-intel-server", "abandon", "--yes"]).returncode == 0
        (client.machine.home / "asked").touch()
        client.ask(asked, started(answers, *steps, quick=True))
        assert answers[-1]["decisions"] == {"--quick": mark}, (steps, answers[-1])


def test_a_choice_about_left_over_branches_is_heard_where_the_user_answers_and_marked_where_nobody_was_asked(
    client: Client,
) -> None:
    answers: list[Fields] = []
    git(client.machine.project, "branch", "llm_task_20260101_000000")
    client.ask(f"{client.skill} -q Add it to app.py.", started(answers, quick=True))
    assert answers[-1]["phase"] == "BRANCH_INTERVENTION", answers[-1]

    def chosen() -> Actions:
        yield (ToolCall("get_session_status", {}),)
        (answer,) = yield (ToolCall("submit_phase", {"data": {"choice": "delete", "summary": "As the user said."}}),)
        answers.append(answer)
        return answer

    client.ask("Delete them.", chosen(), go_on=True)
    assert answers[-1]["decisions"] == {"stale branches: delete": HEARD}, answers[-1]

    def forged() -> Actions:
        yield from started(answers, "git branch llm_task_20260101_000001", quick=True)
        return (yield from chosen())

    assert client.machine.run(["code-intel-server", "abandon", "--yes"]).returncode == 0
    client.ask(f"{client.skill} Add it to app.py.", forged())
    assert answers[-1]["decisions"] == {"stale branches: delete": SAID}, answers[-1]


def test_a_waiver_by_the_agents_shell_is_marked_unless_it_makes_a_terminal(client: Client) -> None:
    machine = client.machine
    file = machine.project / ".code-intel/config.json"
    failing = [[sys.executable, "-c", f"raise SystemExit({number})"] for number in (1, 2)]
    file.write_text(json.dumps(json.loads(file.read_text()) | {"verify_commands": failing}))
    git(machine.project, "commit", "-qam", "commands")
    assert machine.run(["code-intel-server", "trust", "--yes"]).returncode == 0
    work = machine.work()
    work.flags = {"quick": True}
    script = Script(work)

    def waived() -> Actions:
        (response,) = yield (
            ToolCall("start_session", {"query": work.query, "intent": work.intent, "flags": dict(work.flags)}),
        )
        program = machine.bin / "code-intel-server"  # a login shell has a PATH of its own
        plain = f"{program} waive 1 --reason 'slow on this machine' </dev/null"
        yield (ToolCall(SHELL, {"command": plain}),)
        yield (ToolCall(SHELL, {"command": f'{sys.executable} -c "{TERMINAL.format(program=program)}"'}),)
        return (yield from script.go_on(response))

    client.ask(f"{client.skill} -q {work.query}", waived())
    marks = script.responses[-1]["decisions"]
    assert [mark for what, mark in marks.items() if "SystemExit(1)" in what] == [SAID], marks
    assert [mark for what, mark in marks.items() if "SystemExit(2)" in what] == [TYPED], marks
