"""Runs that nobody watches, by the real clients on a machine that trusts nothing yet: with exactly the documented lines, and without.

The lines for a machine that is thrown away are those that test_claude_code and test_codex run (SPEC 12).
"""

import json
import re
from collections.abc import Generator
from pathlib import Path

import pytest

from code_intel_server.cli.proof.script import Edit, Script
from tests.e2e.clients import installed
from tests.e2e.clients.documented import CLAUDE, CODEX, REQUEST, SET_UP
from tests.e2e.clients.fakes import Fields, anthropic, responses
from tests.e2e.clients.machine import Machine, events
from tests.e2e.clients.model import Blocks, ClaudeModel, CodexModel, names
from tests.e2e.clients.test_claude_code import environment
from tests.e2e.driver import git

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]

HOOKED = "was not explored"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Nothing was ever approved or trusted on it; both clients are on its PATH."""
    made = Machine.make(tmp_path)
    for name, program in (("claude", installed.claude()), ("codex", installed.codex())):
        (made.bin / name).symlink_to(program)
        (made.home / f".{name}").mkdir()
    return made


def run_claude(machine: Machine, line: str, model: ClaudeModel) -> tuple[list[Fields], list[Fields]]:
    """What the client printed as events, and what it asked its model."""
    with anthropic(model) as service:
        command = line.replace("claude -p", "claude -p --output-format stream-json --verbose", 1)
        done = machine.run(["sh", "-c", command], **environment(machine, service))
    assert not service.errors, service.errors
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr)
    return events(done.stdout), service.requests


def run_codex(machine: Machine, line: str, model: CodexModel) -> tuple[str, list[Fields]]:
    """What the client printed on standard error, and what it asked its model."""
    with responses(model) as service:
        config = machine.home / ".codex" / "config.toml"
        kept = config.read_text() if config.exists() else ""
        machine.codex_home(service.url, sandbox=True, more=kept)
        done = machine.run(["sh", "-c", line])
    assert not service.errors, (service.errors, done.stderr[-2000:])
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])
    return done.stderr, service.requests


@pytest.mark.needs("user namespaces")  # of which Codex makes its sandbox
def test_after_init_unattended_neither_client_needs_more_and_uninstall_takes_all_of_it_back(machine: Machine) -> None:
    settings = machine.project / ".claude" / "settings.json"
    codex = machine.home / ".codex" / "config.toml"
    before = json.loads(settings.read_text())
    codex.write_text("# mine\n")
    done = machine.run(["sh", "-c", f"{SET_UP} --no-proof --no-index --yes"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 hooks approved in Codex" in done.stdout
    assert "claude -p '/code" in done.stdout

    script = Script(machine.work())
    claude = ClaudeModel(machine.project, script.run(), forbidden="secrets/vault.py")
    run_claude(machine, CLAUDE.replace(REQUEST, machine.work().query), claude)
    assert HOOKED in claude.refusal
    assert "warnings" not in script.responses[0]
    assert claude.last["phase"] == "SESSION_COMPLETE"

    git(machine.project, "reset", "-q", "--hard", "HEAD^")
    script = Script(machine.work())
    scripted = CodexModel(machine.project, script.run(), forbidden="secrets/vault.py")
    run_codex(machine, CODEX.replace(REQUEST, machine.work().query), scripted)
    assert HOOKED in scripted.refusal
    assert scripted.last["phase"] == "SESSION_COMPLETE"
    assert "approved in Codex" in machine.run(["code-intel-server", "doctor"]).stdout

    done = machine.run(["code-intel-server", "init", "--no-unattended", "--no-proof", "--no-index"])
    assert "4 approvals of hooks taken out" in done.stdout, done.stdout + done.stderr
    assert json.loads(settings.read_text()) == before
    assert "trusted_hash" not in codex.read_text()
    assert "not approved in Codex" in machine.run(["code-intel-server", "doctor"]).stdout
    machine.run(["sh", "-c", f"{SET_UP} --no-proof --no-index --yes"])
    done = machine.run(["code-intel-server", "init", "--uninstall"])
    assert "4 approvals of hooks taken out" in done.stdout, done.stdout + done.stderr
    assert "trusted_hash" not in codex.read_text()
    assert not settings.exists()


class Denied(ClaudeModel):
    """Does what the skill says where the client denies a write: no other way, tell the user."""

    told = ""
    script: Script

    def _edit(self, edit: Edit) -> Generator[Blocks, list[Fields], None]:
        for blocks in self.write(edit):
            results = yield blocks
            if results[0]["is_error"]:
                self.told = "\n".join([results[0]["text"], *self.script.responses[0]["warnings"]])
                while True:
                    yield self.say(self.told)


def test_without_the_permission_the_user_reads_what_to_do_and_that_line_goes_on_to_the_merge(machine: Machine) -> None:
    work = machine.work()
    script = Script(work)
    model = Denied(machine.project, script.run())
    model.script = script
    seen, _ = run_claude(machine, f'claude -p "/code {work.query}"', model)
    result = next(event["result"] for event in seen if event["type"] == "result")
    assert "haven't granted it yet" in result
    assert "Nobody answers permission prompts here (permission mode default)" in result
    (line,) = re.findall(r'`(claude -p [^`]*--resume")`', model.first_prompt)
    again = ClaudeModel(machine.project, Script(work).resume())
    run_claude(machine, line, again)
    assert again.last["phase"] == "SESSION_COMPLETE"
    assert machine.merged()


def test_without_trust_codex_has_no_tools_and_skill_and_client_say_what_to_do(machine: Machine) -> None:
    model = CodexModel(machine.project, iter(()))  # type: ignore[arg-type]  # it calls nothing
    said, requests = run_codex(machine, f"codex exec '$code {machine.work().query}'", model)
    assert not {name for name in names(requests) if "code_intel" in name}
    assert "**The tools are not there**" in model.first_prompt
    assert "codex exec --trust" in model.first_prompt
    assert "codex exec --trust" in said


@pytest.mark.needs("user namespaces")
def test_without_approval_of_its_hooks_codex_is_told_so_and_the_tree_finds_the_unexplored_write(
    machine: Machine,
) -> None:
    script = Script(machine.work())
    model = CodexModel(machine.project, script.run())
    run_codex(machine, f"codex exec --trust '$code {machine.work().query}'", model)
    assert "Codex ran no hook before this call" in json.dumps(script.responses[0]["warnings"])
    assert model.last["phase"] == "SESSION_COMPLETE"
