"""What the runs of a receipt's test see of the world: folders of their own, and no plugin or option of ours."""

import tempfile
from pathlib import Path

import pytest


def run_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the runs of this test a temporary folder of their own and pytest without our plugins and options."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
