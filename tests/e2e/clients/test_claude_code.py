"""The real Claude Code, its model scripted: `/code` from start to merge, hooks, resume after a kill, compaction."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest

from code_intel_server.cli.proof.script import Actions, Script, ToolCall
from tests.e2e.clients import installed
from tests.e2e.clients.documented import CLAUDE_ONCE, words
from tests.e2e.clients.fakes import Fields, Service, anthropic
from tests.e2e.clients.machine import Machine, events
from tests.e2e.clients.model import ClaudeModel, TryingClaude, names

ROOT = Path(__file__).parents[3]
pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine.make(tmp_path).with_claude()


def environment(machine: Machine, service: Service) -> dict[str, str]:
    return {
        "CLAUDE_CONFIG_DIR": str(machine.home / ".claude"), "ANTHROPIC_BASE_URL": service.url,
        "ANTHROPIC_API_KEY": "none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1", "DISABLE_INSTALLATION_CHECKS": "1",
        "CLAUDE_CODE_MAX_RETRIES": "1",
    }  # fmt: skip


def command(prompt: str) -> list[str]:
    """`claude -p` as docs/how-to/unattended.md has it, with every event as a line of JSON."""
    _, *options = words(CLAUDE_ONCE, prompt)
    return [str(installed.claude()), *options, "--output-format", "stream-json", "--verbose"]


def conversation() -> list[str]:
    """The same, taking the user's messages from its standard input."""
    return [word for word in command("") if word] + ["--input-format", "stream-json"]


def say(client: "subprocess.Popen[str]", text: str) -> None:
    """The next message of the user in a conversation that stays open."""
    assert client.stdin is not None
    message = {"type": "user", "message": {"role": "user", "content": text}}
    client.stdin.write(json.dumps(message) + "\n")
    client.stdin.flush()


def until(client: "subprocess.Popen[str]", wanted: Callable[[Fields], bool]) -> list[Fields]:
    """Read events up to the wanted one."""
    assert client.stdout is not None
    seen: list[Fields] = []
    for line in client.stdout:
        seen += events(line)
        if seen and wanted(seen[-1]):
            return seen
    raise AssertionError(f"the client ended first: {seen[-3:]}")


def ask(machine: Machine, service: Service, prompt: str, *arguments: str) -> list[Fields]:
    """One `claude -p`; its events."""
    done = machine.run([*command(prompt), *arguments], **environment(machine, service))
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr)
    assert not service.errors, service.errors
    return events(done.stdout)


def recorded() -> Actions:
    """What the skill `outcome` asks of an agent."""
    (answer,) = yield (ToolCall("record_outcome", {"outcome": "success", "notes": "as wanted"}),)
    return answer


def test_code_goes_from_start_to_merge_and_the_hook_refuses_an_unexplored_file(machine: Machine) -> None:
    work = machine.work()
    model = ClaudeModel(machine.project, Script(work).run(), forbidden="secrets/vault.py")
    with anthropic(model) as service:
        seen = ask(machine, service, f"/code -g=f {work.query}")
    servers = next(event for event in seen if event.get("subtype") == "init")["mcp_servers"]
    assert [(one["name"], one["status"]) for one in servers] == [("code-intel", "connected")]
    assert f"The request: -g=f {work.query}" in model.first_prompt
    assert "mcp__code-intel__submit_phase" in names(service.requests)
    assert "was not explored" in model.refusal
    assert model.last["phase"] == "SESSION_COMPLETE", model.last
    assert "Code-Intel-Session:" in machine.merged()
    recorder = ClaudeModel(machine.project, recorded())
    with anthropic(recorder) as service:
        ask(machine, service, "/outcome success")
    assert "The user's judgement: success" in recorder.first_prompt
    assert recorder.last["success"] is True, recorder.last
    agreements = [*(machine.project / ".code-intel" / "agreements").glob("*.*")]
    assert [path for path in agreements if path.name != ".gitkeep"], "a success fills the Map"


def test_a_measured_run_is_given_to_the_client_itself(machine: Machine) -> None:
    """`python -m benchmarks.agents run`: here with the scripted model in the place of the user's account."""
    run = machine.home / "agents" / "task-auto-1"
    run.mkdir(parents=True)
    (run / "project").symlink_to(machine.project)
    (run / "run.json").write_text(json.dumps({"task": "express-render-null", "arm": "auto"}))
    (machine.bin / "claude").symlink_to(installed.claude())
    model = ClaudeModel(machine.project, Script(machine.work()).run())
    with anthropic(model) as service:
        agents = {"AGENTS_HOME": str(run.parent), "PYTHONPATH": str(ROOT), **environment(machine, service)}
        done = machine.run([sys.executable, "-m", "benchmarks.agents", "run", run.name, "claude"], **agents)
    assert done.returncode == 0, done.stderr
    assert "app.render(name, null, callback)" in model.first_prompt
    stamps = json.loads((run / "run.json").read_text())
    assert stamps["begin"] < stamps["finish"]
    assert events((run / "transcript.jsonl").read_text())[-1]["type"] == "result"
    assert model.last["phase"] == "SESSION_COMPLETE", model.last


def test_claude_mcp_list_says_connected_once_the_user_has_approved_the_server(machine: Machine) -> None:
    def listed() -> str:
        with anthropic(lambda _body: []) as service:
            done = machine.run([installed.claude(), "mcp", "list"], **environment(machine, service))
        return next(line for line in done.stdout.splitlines() if line.startswith("code-intel:"))

    assert "Pending approval" in listed()
    settings = machine.home / ".claude" / "settings.json"
    settings.write_text(json.dumps({"enabledMcpjsonServers": ["code-intel"]}))  # what the user's yes is kept as
    assert listed() == "code-intel: code-intel-server serve - ✔ Connected"


@pytest.mark.parametrize("step", [8, 13])
def test_after_a_kill_a_new_conversation_is_told_writes_nothing_else_and_resume_goes_on(
    machine: Machine, step: int
) -> None:
    work = machine.work()
    script = Script(work)
    stopped = Event()

    def at_the_step(response: Fields) -> bool:
        if response.get("step") == step:
            stopped.set()
        return response.get("step") == step

    first = ClaudeModel(machine.project, script.run(), pause=at_the_step)
    with (
        anthropic(first) as service,
        machine.started(command(f"/code -g=f {work.query}"), **environment(machine, service)),
    ):
        assert stopped.wait(90)
    machine.wait_until_unlocked()

    plain = TryingClaude(machine.project, "secrets/vault.py", "app.py")
    before = (machine.project / "app.py").read_text()
    with anthropic(plain) as service:
        ask(machine, service, "Tidy up a little.")
    assert f"was interrupted in this project: {first.session_id}, step {step} of 19" in plain.first_prompt
    assert f"was interrupted in step {step} of 19" in plain.told["secrets/vault.py"]
    assert "get_session_status restores it" in plain.told["secrets/vault.py"]
    assert "code-intel-server abandon --yes" in plain.told["secrets/vault.py"]
    if step == 8:
        assert "files are written in steps 13 and 14 only" in plain.told["app.py"]
    else:
        assert "has been updated successfully" in plain.told["app.py"]
        (machine.project / "app.py").write_text(before)

    model = ClaudeModel(machine.project, script.resume())
    with anthropic(model) as service:
        ask(machine, service, "/code --resume")
    assert "`--resume`" in model.first_prompt
    assert model.last["phase"] == "SESSION_COMPLETE"
    assert machine.merged()


def test_compaction_in_the_middle_brings_the_summaries_back_without_the_model_counting(machine: Machine) -> None:
    work = machine.work()
    script = Script(work)
    model = ClaudeModel(machine.project, script.run(), pause=lambda response: response.get("step") == 12)
    with anthropic(model) as service, machine.started(conversation(), **environment(machine, service)) as talk:
        say(talk, f"/code {work.query}")
        until(talk, lambda event: event.get("type") == "result")
        paused = len(script.responses)
        say(talk, "/compact")
        until(talk, lambda event: event.get("type") == "result")
        model.go_on()
        say(talk, "Go on.")
        until(talk, lambda event: event.get("type") == "result")
    assert not service.errors, service.errors
    next_answer = script.responses[paused + 1]
    assert "step_05_EXPLORATION" in next_answer["phase_summaries"], next_answer.keys()
    assert model.last["phase"] == "SESSION_COMPLETE"
    reminded = [
        body for body in service.requests if "A code-intel session is active in this project" in json.dumps(body)
    ]
    assert reminded, "what the SessionStart hook printed never reached the model"
