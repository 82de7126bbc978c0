"""`init --unattended`: what is granted to runs that nobody watches, only on the user's word, and taken back (SPEC 12)."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from code_intel_server.cli import init
from code_intel_server.cli.doctor import clients as checkup_clients
from code_intel_server.cli.doctor.finding import Grade
from code_intel_server.cli.init import codex_hooks
from code_intel_server.cli.init.scaffold import Manifest
from tests.cli.helpers import Said, fingerprint, project

QUICK = ["--no-proof", "--no-index"]
GRANT = "code-intel-server hook --allow-writes"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """On a machine without Codex: its own approvals are tests/e2e/clients' business."""
    git = shutil.which("git")
    assert git is not None
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").symlink_to(git)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return project(tmp_path / "repo")


def hooks(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((root / ".claude/settings.json").read_text())["hooks"]
    return found


def commands(root: Path) -> list[str]:
    """What runs before a write in Claude Code."""
    return [hook["command"] for group in hooks(root)["PreToolUse"] for hook in group["hooks"]]


def test_it_is_granted_kept_by_later_runs_and_taken_back(root: Path, capsys: Said) -> None:
    before = fingerprint(root)
    assert init.main([str(root), *QUICK, "--unattended"]) == 0
    said = capsys.readouterr().out
    assert (
        "Codex's hooks could not be approved (codex is not on PATH): start codex here and approve them with /hooks"
        in said
    )
    assert "codex exec --trust '$code <what to do>'" in said
    assert commands(root) == [GRANT]
    init.main([str(root), *QUICK])
    assert commands(root) == [GRANT]
    assert "could not be approved" not in capsys.readouterr().out, "the manifest's word is not the user's"
    init.main([str(root), *QUICK, "--no-unattended"])
    assert commands(root) == ["code-intel-server hook"]
    assert "unattended" not in Manifest.load(root).options
    init.main([str(root), *QUICK, "--unattended"])
    assert init.main([str(root), "--uninstall"]) == 0
    assert fingerprint(root) == before


@pytest.mark.parametrize(("answer", "granted"), [("", False), ("y", True)])
def test_who_sits_there_is_asked_and_enter_is_no(
    root: Path, monkeypatch: pytest.MonkeyPatch, answer: str, granted: bool
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)

    def said(question: str) -> str:
        asked.append(question)
        return answer

    monkeypatch.setattr("builtins.input", said)
    init.main([str(root), *QUICK])
    (question,) = [one for one in asked if "nobody watches" in one]
    assert "writes what the running session may write" in question and "approval of code-intel's hooks" in question
    assert (commands(root) == [GRANT]) is granted


@pytest.mark.parametrize("options", [["--yes"], []])
def test_where_nobody_can_be_asked_nothing_is_granted(root: Path, options: list[str]) -> None:
    init.main([str(root), *QUICK, *options])
    assert commands(root) == ["code-intel-server hook"]


def test_without_hooks_it_cannot_be(root: Path, capsys: Said) -> None:
    assert init.main([str(root), *QUICK, "--unattended", "--no-hooks"]) == 1
    assert "leave --no-hooks out" in capsys.readouterr().err


def test_hooks_of_an_earlier_version_are_replaced_and_those_of_the_user_stay(root: Path) -> None:
    ours = {"type": "command", "command": "code-intel-server hook", "timeout": 10}
    slow, theirs = {**ours, "timeout": 60}, {"type": "command", "command": "mine"}
    old = {
        "PreToolUse": [{"matcher": "Edit|Write|NotebookEdit", "hooks": [ours]}, {"matcher": "Edit", "hooks": [theirs]}],
        "SessionStart": [{"matcher": "compact|resume", "hooks": [ours]}],
        "Stop": [{"hooks": [ours]}, {"hooks": [slow]}],
    }
    (root / ".claude").mkdir()
    (root / ".claude/settings.json").write_text(json.dumps({"hooks": old}))
    init.main([str(root), *QUICK])
    assert commands(root) == ["mine", "code-intel-server hook"]
    assert hooks(root)["PreToolUse"][1]["matcher"].endswith("|mcp__code-intel__start_session")
    assert hooks(root)["SessionStart"] == [{"hooks": [ours]}]
    assert hooks(root)["Stop"] == [{"hooks": [ours]}, {"hooks": [slow]}]


@pytest.mark.parametrize(
    "answers", ["exit 3", "echo nonsense; cat", 'echo \'{"id": 0, "error": {"message": "no"}}\'; cat', "exec sleep 60"]
)
def test_a_codex_that_does_not_answer_as_expected_stops_nothing(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said, answers: str
) -> None:
    monkeypatch.setattr(codex_hooks, "_SECONDS", 0.3)
    codex = tmp_path / "bin" / "codex"
    codex.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{answers}\n")
    codex.chmod(0o755)
    assert init.main([str(root), *QUICK, "--unattended"]) == 0
    assert "could not be approved (its app server does not answer as expected" in capsys.readouterr().out
    (finding,) = [one for one in checkup_clients.registered(root) if one.name == "codex hooks"]
    assert finding.grade is Grade.GOOD, "what Codex does not say is no finding"
