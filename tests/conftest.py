"""What holds for all tests."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

# How long one example takes says how busy the machine is; pytest's own time limit finds what hangs.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")

_SAME_ROADS = {"cheats", "faults", "honest", "test_interrupted.py", "test_whole_session.py"}
"""Folders, and two files, whose hundreds of whole sessions take roads that tests/e2e has taken in the sight of coverage."""

_FOR_CHILDREN = "COVERAGE_PROCESS_CONFIG"


@pytest.fixture(scope="module", autouse=True)
def _children_unobserved(request: pytest.FixtureRequest) -> Iterator[None]:
    """Coverage watches no child process of those: that would take as long again as the tests themselves."""
    observed = os.environ.pop(_FOR_CHILDREN, None) if _SAME_ROADS & set(request.path.parts) else None
    yield
    if observed is not None:
        os.environ[_FOR_CHILDREN] = observed
