"""What the runs of a receipt's test see of the world: folders of their own, and no plugin or option of ours."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from code_intel_server.receipts.notary import Notary, Verdict
from code_intel_server.workspace.git.repository import Git, open_repository
from code_intel_server.workspace.project.config import VerifyCommand
from tests.workspace.git_repo import Repo


def run_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the runs of this test a temporary folder of their own and pytest without our plugins and options."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)


def opened(repo: Repo, below: str = ".") -> Git:
    """Git as the server sees it from a folder of the repository."""
    git = open_repository(repo.path / below)
    assert isinstance(git, Git)
    return git


def judged(
    repo: Repo, argv: Sequence[str], *, below: str = ".", cwd: str = ".", timeout: float = 100, **settings: Any
) -> Verdict:
    """The verdict on the last commit against the one before, by one command."""
    notary = Notary(opened(repo, below), [VerifyCommand(argv=tuple(argv), timeout=timeout, cwd=cwd)], **settings)
    return notary.verify(repo.git("rev-parse", "HEAD^"), repo.git("rev-parse", "HEAD"))
