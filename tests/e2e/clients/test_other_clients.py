"""OpenCode, Gemini CLI, Qwen Code and Copilot CLI, the real programs with scripted models: from the command to the merge (SPEC 12)."""

import json
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from code_intel_server.cli.proof.script import Script
from tests.e2e.clients import installed
from tests.e2e.clients.fakes import Service, completions, gemini
from tests.e2e.clients.machine import Machine
from tests.e2e.clients.model import CopilotModel, GeminiModel, NamedModel, OpenCodeModel, QwenModel
from tests.e2e.driver import git

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]


@dataclass(frozen=True)
class Real:
    """A client: its program, its model, its service, how it is run with a request."""

    name: str
    program: Callable[[], Path]
    model: type[NamedModel]
    service: Callable[[Any], AbstractContextManager[Service]]
    words: tuple[str, ...]


REAL = [
    Real("opencode", installed.opencode, OpenCodeModel, completions, ("run", "--auto", "--command", "code", "--", "{query}")),
    Real("gemini", installed.gemini, GeminiModel, gemini, ("--approval-mode", "auto_edit", "-p", "/code-intel:code {query}")),
    Real("qwen", installed.qwen, QwenModel, completions, ("--approval-mode", "auto-edit", "-p", "/code {query}")),
    Real("copilot", installed.copilot, CopilotModel, completions, ("--allow-all-tools", "--trust-folder", "-p", "/code {query}")),
]  # fmt: skip
OPENCODE = {
    "provider": {"scripted": {"npm": "@ai-sdk/openai-compatible", "models": {"scripted-model": {"tool_call": True, "limit": {"context": 200000, "output": 8000}}}}},
    "model": "scripted/scripted-model",
    "small_model": "scripted/scripted-model",
    "autoupdate": False,
}  # fmt: skip


def environment(machine: Machine, real: Real, url: str) -> dict[str, str]:
    """What leads the client to the scripted model and away from the network."""
    if real.name == "opencode":
        config: dict[str, Any] = json.loads(json.dumps(OPENCODE))
        config["provider"]["scripted"]["options"] = {"baseURL": url, "apiKey": "none"}
        (machine.home / "opencode.json").write_text(json.dumps(config))
        return {"OPENCODE_CONFIG": str(machine.home / "opencode.json"), "OPENCODE_DISABLE_MODELS_FETCH": "1"}
    if real.name == "gemini":
        (machine.home / ".gemini").mkdir(exist_ok=True)
        settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
        (machine.home / ".gemini" / "settings.json").write_text(json.dumps(settings))
        return {
            "GOOGLE_GEMINI_BASE_URL": url,
            "GEMINI_API_KEY": "none",
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "GEMINI_MODEL": "gemini-2.5-pro",
        }
    if real.name == "qwen":
        return {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none", "OPENAI_MODEL": "scripted-model"}
    return {
        "COPILOT_PROVIDER_BASE_URL": url,
        "COPILOT_MODEL": "scripted-model",
        "COPILOT_OFFLINE": "true",
        "COPILOT_AUTO_UPDATE": "false",
    }


def set_up(folder: Path, real: Real) -> Machine:
    machine = Machine.make(folder)
    command = ["code-intel-server", "init", "--no-proof", "--no-index", "--client", real.name, "--yes"]
    assert machine.run(command).returncode == 0
    assert not git(machine.project, "status", "--porcelain")
    return machine


def ask(machine: Machine, real: Real, model: NamedModel, query: str) -> None:
    """Run the client with one request until it ends."""
    with real.service(model) as service:
        words = [word.format(query=query) for word in real.words]
        done = machine.run([real.program(), *words], **environment(machine, real, service.url))
    assert not service.errors, (service.errors, done.stdout[-3000:], done.stderr[-3000:])
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])


@pytest.mark.parametrize("real", REAL, ids=[real.name for real in REAL])
def test_the_command_goes_from_start_to_merge_and_the_hook_refuses_an_unexplored_file(
    tmp_path: Path, real: Real
) -> None:
    machine = set_up(tmp_path, real)
    work = machine.work()
    model = real.model(machine.project, Script(work).run(), forbidden="secrets/vault.py")
    ask(machine, real, model, f"-g=f {work.query}")
    assert work.query in model.first_prompt
    assert "The code-intel server leads through this work" in model.first_prompt
    assert "was not explored" in model.refusal, model.refusal
    assert model.last["phase"] == "SESSION_COMPLETE", model.last
    assert "Code-Intel-Session:" in machine.merged()


@pytest.mark.parametrize("real", REAL, ids=[real.name for real in REAL])
def test_a_session_that_a_conversation_left_in_step_8_goes_on_in_the_next(tmp_path: Path, real: Real) -> None:
    machine = set_up(tmp_path, real)
    work = machine.work()
    script = Script(work)
    first = real.model(machine.project, script.run(), pause=lambda response: response.get("step") == 8)
    ask(machine, real, first, f"-g=f {work.query}")
    machine.wait_until_unlocked()
    second = real.model(machine.project, script.resume())
    ask(machine, real, second, "--resume")
    assert second.last["phase"] == "SESSION_COMPLETE", second.last
    assert "Code-Intel-Session:" in machine.merged()


LISTING = [real for real in REAL if real.name != "copilot"]
"""Copilot CLI's list shows only the servers that its user added."""


@pytest.mark.parametrize("real", LISTING, ids=[real.name for real in LISTING])
def test_mcp_list_says_connected(tmp_path: Path, real: Real) -> None:
    machine = set_up(tmp_path, real)
    done = machine.run([real.program(), "mcp", "list"], **environment(machine, real, "http://127.0.0.1:9/v1"))
    plain = " ".join(re.sub(r"\x1b\[\d*m", "", done.stdout + done.stderr).split())
    assert re.search(r"✓ code-intel.* - Connected|✓ code-intel connected", plain), plain
