"""What many tests of the workspace begin with."""

from pathlib import Path

import pytest

from tests.workspace.git_repo import Repo


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """A repository with one commit of `a.py` and `b.py`."""
    return Repo.with_files(tmp_path, monkeypatch)
