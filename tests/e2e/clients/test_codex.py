"""The real Codex, its model scripted: `$code` from start to merge with plain tools and in code mode, hooks on apply_patch."""

from pathlib import Path
from threading import Event

import pytest

from code_intel_server.cli.proof.script import Script
from tests.e2e.clients import installed
from tests.e2e.clients.documented import CODEX_ONCE, words
from tests.e2e.clients.fakes import Fields, responses
from tests.e2e.clients.machine import Machine, events
from tests.e2e.clients.model import CodexCodeModel, CodexModel, TryingCodex
from tests.e2e.driver import git

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[3]


def command(prompt: str) -> list[str]:
    """`codex exec` as docs/how-to/unattended.md has it, with every event as a line of JSON."""
    _, *options = words(CODEX_ONCE, prompt)
    return [str(installed.codex()), *options, "--json"]


@pytest.mark.parametrize(
    ("kind", "name"), [(CodexModel, "scripted-model"), (CodexCodeModel, "gpt-6-sol")], ids=["direct tools", "code mode"]
)
def test_code_goes_from_start_to_merge_and_the_hook_refuses_an_unexplored_file(
    tmp_path: Path, kind: type[CodexModel], name: str
) -> None:
    machine = Machine.make(tmp_path)
    work = machine.work()
    model = kind(machine.project, Script(work).run(), forbidden="secrets/vault.py")
    with responses(model) as service:
        done = machine.run(command(f"$code -g=f {work.query}"), CODEX_HOME=machine.codex_home(service.url, name))
    assert not service.errors, (service.errors, done.stdout[-3000:])
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])
    assert "The request is what the user wrote after `$code`" in model.first_prompt
    assert "was not explored" in model.refusal, model.refusal
    assert model.last["phase"] == "SESSION_COMPLETE", model.last
    assert "Code-Intel-Session:" in machine.merged()
    calls = [event["item"] for event in events(done.stdout) if event.get("item", {}).get("type") == "mcp_tool_call"]
    assert {call["server"] for call in calls} == {"code_intel"}


def test_as_a_plugin_it_leads_from_start_to_merge_and_its_hook_refuses_an_unexplored_file(tmp_path: Path) -> None:
    machine = Machine.make(tmp_path, set_up=False)
    folder = machine.home / ".codex"
    folder.mkdir()
    about = (ROOT / "codex-plugin" / "README.md").read_text(encoding="utf-8")
    lines = [line.replace("./", str(ROOT)) for line in about.splitlines() if line.startswith("codex ")]
    for line in lines:
        added = machine.run([installed.codex(), *line.split()[1:]], CODEX_HOME=str(folder))
        assert added.returncode == 0, added.stdout + added.stderr
    work = machine.work()
    model = CodexModel(machine.project, Script(work).run(), forbidden="secrets/vault.py")
    known = (folder / "config.toml").read_text()
    with responses(model) as service:
        machine.codex_home(service.url, more=known)
        done = machine.run(command(f"$code-intel:code -g=f {work.query}"), CODEX_HOME=str(folder))
    assert len(lines) == 2
    assert "$code-intel:code <request>" in about
    assert not service.errors, (service.errors, done.stdout[-3000:])
    assert "The request is what the user wrote after" in model.first_prompt
    assert "was not explored" in model.refusal, model.refusal
    assert model.last["phase"] == "SESSION_COMPLETE", model.last
    assert len(git(machine.project, "log", "-1", "--format=%P").split()) == 2


def test_after_a_kill_in_step_8_a_new_conversation_is_told_writes_nothing_and_resume_goes_on(tmp_path: Path) -> None:
    machine = Machine.make(tmp_path)
    work = machine.work()
    stopped = Event()

    def in_step_8(response: Fields) -> bool:
        if response.get("step") == 8:
            stopped.set()
        return response.get("step") == 8

    script = Script(work)
    first = CodexModel(machine.project, script.run(), pause=in_step_8)
    with responses(first) as service:
        typed = command(f"$code -g=f {work.query}")
        with machine.started(typed, CODEX_HOME=machine.codex_home(service.url)) as client:
            assert client.stdin is not None
            client.stdin.close()
            assert stopped.wait(90)
    machine.wait_until_unlocked()
    plain = TryingCodex(machine.project, "app.py")
    with responses(plain) as service:
        done = machine.run(command("Tidy up a little."), CODEX_HOME=machine.codex_home(service.url))
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])
    assert f"was interrupted in this project: {first.session_id}, step 8 of 19" in plain.first_prompt
    assert "was interrupted in step 8 of 19" in plain.told["app.py"]
    assert "code-intel-server abandon --yes" in plain.told["app.py"]
    model = CodexModel(machine.project, script.resume())
    with responses(model) as service:
        done = machine.run(command("$code --resume"), CODEX_HOME=machine.codex_home(service.url))
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])
    assert model.last["phase"] == "SESSION_COMPLETE", model.last
    assert machine.merged()
