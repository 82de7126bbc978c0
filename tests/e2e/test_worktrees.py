"""Git worktrees: those that the user makes, and the one that a session with the flag worktree gets (SPEC 7, 12)."""

import json
from pathlib import Path

import pytest

from code_intel_server.cli import trust
from tests.cli.helpers import own_state
from tests.e2e.driver import Server, git, repository
from tests.e2e.fast_session import FILES, start

CONFIG = json.dumps({"verify_commands": [["true"]]})


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    own_state(monkeypatch, tmp_path)
    return repository(tmp_path / "project", {**FILES, ".code-intel/config.json": CONFIG})


def test_a_new_worktree_of_the_users_needs_no_trust_of_its_own(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(root)
    assert trust.main(["--yes"]) == 0
    second = tmp_path / "second"
    git(root, "worktree", "add", "-q", "-b", "side", str(second))
    monkeypatch.chdir(second)
    assert trust.main(["--check"]) == 0
    with Server(second) as server:
        answer = start(server, quick=True)
        assert not any("trust" in warning for warning in answer.get("warnings", [])), answer
    capsys.readouterr()
