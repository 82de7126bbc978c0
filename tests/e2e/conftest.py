"""A repository of a few files, and a server in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.driver import Server, repository
from tests.e2e.fast_session import FILES


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo", FILES)


@pytest.fixture
def server(root: Path) -> Iterator[Server]:
    with Server(root) as running:
        yield running
