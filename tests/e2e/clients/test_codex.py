"""The real Codex, its model scripted: `$code` from start to merge with plain tools and in code mode, hooks on apply_patch."""

from pathlib import Path

import pytest

from code_intel_server.cli.script import Script
from tests.e2e.clients import installed
from tests.e2e.clients.fakes import responses
from tests.e2e.clients.machine import Machine, events
from tests.e2e.clients.model import CodexCodeModel, CodexModel

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]

CONFIG = """
model = "{model}"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "danger-full-access"

[model_providers.scripted]
name = "scripted"
base_url = "{url}"
wire_api = "responses"
requires_openai_auth = false
supports_websockets = false

[projects."{project}"]
trust_level = "trusted"
"""


@pytest.mark.parametrize(
    ("kind", "name"), [(CodexModel, "scripted-model"), (CodexCodeModel, "gpt-6-sol")], ids=["direct tools", "code mode"]
)
def test_code_goes_from_start_to_merge_and_the_hook_refuses_an_unexplored_file(
    tmp_path: Path, kind: type[CodexModel], name: str
) -> None:
    machine = Machine.make(tmp_path)
    work = machine.work()
    model = kind(machine.project, Script(work).run(), forbidden="secrets/vault.py")
    folder = machine.home / ".codex"
    folder.mkdir()
    with responses(model) as service:
        (folder / "config.toml").write_text(CONFIG.format(model=name, url=service.url, project=machine.project))
        command = [
            str(installed.codex()),
            "exec",
            "--json",
            "--dangerously-bypass-hook-trust",
            f"$code -g=f {work.query}",
        ]
        done = machine.run(command, CODEX_HOME=str(folder))
    assert not service.errors, (service.errors, done.stdout[-3000:])
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])
    assert "The request is what the user wrote after `$code`" in model.first_prompt
    assert "was not explored" in model.refusal, model.refusal
    assert model.last["phase"] == "SESSION_COMPLETE", model.last
    assert "Code-Intel-Session:" in machine.merged()
    calls = [event["item"] for event in events(done.stdout) if event.get("item", {}).get("type") == "mcp_tool_call"]
    assert {call["server"] for call in calls} == {"code_intel"}
