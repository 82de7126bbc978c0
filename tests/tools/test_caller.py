"""start_session says what its caller lacks: hooks that do not run, writes that will be denied (SPEC 12)."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.driver import repository

from code_intel_server.common.own_folder import CALLER_NOTE
from code_intel_server.common.resources import templates_dir
from code_intel_server.tools import caller
from code_intel_server.tools.current_project import CurrentProject

QUICK = {"quick": True, "no_doc": True}
FILES = {"app.py": "def main():\n    return 1\n", ".code-intel/config.json": json.dumps({"sync_on_start": False})}


@pytest.fixture
def current(tmp_path: Path) -> Iterator[CurrentProject]:
    made = CurrentProject(repository(tmp_path / "repo", FILES))
    yield made
    made.services.close()


def told(
    current: CurrentProject, client: str = "", note: dict[str, object] | str | None = None, intent: str = "MODIFY"
) -> str:
    """The warnings of a start that this client asks for, its hook having left this note."""
    file = current.services.local / CALLER_NOTE
    if note is not None:
        file.parent.mkdir(exist_ok=True)
        file.write_text(note if isinstance(note, str) else json.dumps(note))
    sessions = current.take_up(".")
    noted = caller.caller_note(sessions)
    answer = sessions.start("Change main", intent, QUICK | {"clean": True})
    answer = caller.with_warnings(sessions, answer, noted, client)
    assert not file.exists(), "no later call may take it for its own"
    warnings = answer.get("warnings", [])
    assert isinstance(warnings, list)
    return "\n".join(str(one) for one in warnings)


def register(current: CurrentProject, template: str, path: str) -> None:
    (current.services.root / path).parent.mkdir()
    (current.services.root / path).write_bytes((templates_dir() / template).read_bytes())


def test_a_client_whose_registered_hook_left_no_note_runs_none(current: CurrentProject) -> None:
    assert "hook" not in told(current, "codex-mcp-client")
    register(current, "codex/hooks.json", ".codex/hooks.json")
    assert "Codex ran no hook before this call" in told(current, "codex-mcp-client")
    assert "hook" not in told(current, "claude-code")
    register(current, "claude/settings.json", ".claude/settings.json")
    assert "Claude Code ran no hook before this call" in told(current, "claude-code")
    assert "hook" not in told(current, "claude-code", {"mode": "default", "attended": True, "writes": False})
    assert "hook" not in told(current, "some other client")
    assert "ran no hook" in told(current, "claude-code", "no JSON")


@pytest.mark.parametrize("mode", ["default", "dontAsk", "plan"])
def test_a_run_that_nobody_watches_and_that_may_not_write_is_told_so(current: CurrentProject, mode: str) -> None:
    alone = {"mode": mode, "attended": False, "writes": False}
    assert f"(permission mode {mode})" in told(current, "claude-code", alone)
    assert "permission" not in told(current, "claude-code", alone | {"attended": True})
    assert "permission" not in told(current, "claude-code", alone | {"writes": True})
    assert "permission" not in told(current, "claude-code", alone | {"mode": "acceptEdits"})
    assert "permission" not in told(current, "claude-code", alone, intent="QUESTION"), "it writes nothing"
