"""A project of the files that a module names, as the tools see it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.driver import repository

from code_intel_server.tools.current_project import CurrentProject


@pytest.fixture
def current(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[CurrentProject]:
    """The project of the module's FILES."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = CurrentProject(repository(tmp_path / "home", request.module.FILES))
    yield made
    made.services.close()
