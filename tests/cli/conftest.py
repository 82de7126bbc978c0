"""What every test of a command has for itself."""

from pathlib import Path

import pytest

from tests.cli.helpers import own_state


@pytest.fixture(autouse=True)
def _own_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own_state(monkeypatch, tmp_path)
