"""start_session says what its caller lacks: hooks that do not run, writes that will be denied (SPEC 12)."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.driver import repository

from code_intel_server.common.own_folder import CALLER_NOTE
from code_intel_server.common.resources import templates_dir
from code_intel_server.tools import caller
from code_intel_server.tools.workbench import Workbench

QUICK = {"quick": True, "no_doc": True}
FILES = {"app.py": "def main():\n    return 1\n", ".code-intel/config.json": json.dumps({"sync_on_start": False})}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Workbench]:
    made = Workbench(repository(tmp_path / "repo", FILES))
    yield made
    made.desk.close()


def told(
    bench: Workbench, client: str = "", note: dict[str, object] | str | None = None, intent: str = "MODIFY"
) -> str:
    """The warnings of a start that this client asks for, its hook having left this note."""
    file = bench.desk.local / CALLER_NOTE
    if note is not None:
        file.parent.mkdir(exist_ok=True)
        file.write_text(note if isinstance(note, str) else json.dumps(note))
    sessions = bench.take_up(".")
    noted = caller.note(sessions)
    answer = sessions.start("Change main", intent, QUICK | {"clean": True})
    answer = caller.with_warnings(sessions, answer, noted, client)
    assert not file.exists(), "no later call may take it for its own"
    warnings = answer.get("warnings", [])
    assert isinstance(warnings, list)
    return "\n".join(str(one) for one in warnings)


def register(bench: Workbench, template: str, path: str) -> None:
    (bench.desk.root / path).parent.mkdir()
    (bench.desk.root / path).write_bytes((templates_dir() / template).read_bytes())


def test_a_client_whose_registered_hook_left_no_note_runs_none(bench: Workbench) -> None:
    assert "hook" not in told(bench, "codex-mcp-client")
    register(bench, "codex/hooks.json", ".codex/hooks.json")
    assert "Codex ran no hook before this call" in told(bench, "codex-mcp-client")
    assert "hook" not in told(bench, "claude-code")
    register(bench, "claude/settings.json", ".claude/settings.json")
    assert "Claude Code ran no hook before this call" in told(bench, "claude-code")
    assert "hook" not in told(bench, "claude-code", {"mode": "default", "attended": True, "writes": False})
    assert "hook" not in told(bench, "some other client")
    assert "ran no hook" in told(bench, "claude-code", "no JSON")


@pytest.mark.parametrize("mode", ["default", "dontAsk", "plan"])
def test_a_run_that_nobody_watches_and_that_may_not_write_is_told_so(bench: Workbench, mode: str) -> None:
    alone = {"mode": mode, "attended": False, "writes": False}
    assert f"(permission mode {mode})" in told(bench, "claude-code", alone)
    assert "permission" not in told(bench, "claude-code", alone | {"attended": True})
    assert "permission" not in told(bench, "claude-code", alone | {"writes": True})
    assert "permission" not in told(bench, "claude-code", alone | {"mode": "acceptEdits"})
    assert "permission" not in told(bench, "claude-code", alone, intent="QUESTION"), "it writes nothing"
