"""What holds for all tests."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.programs import present

# How long one example takes says how busy the machine is; pytest's own time limit finds what hangs.
settings.register_profile("full", deadline=None)
settings.register_profile("sample", deadline=None, max_examples=25)
settings.load_profile("sample")

_SAME_ROADS = {"cheats", "faults", "honest", "test_interrupted.py", "test_whole_session.py"}
"""Folders, and two files, whose hundreds of whole sessions take roads that tests/e2e has taken in the sight of coverage."""

_FOR_CHILDREN = "COVERAGE_PROCESS_CONFIG"
_FOLDERS_OF_A_USER = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs something that is not here, each with the one line that names it."""
    for item in items:
        for need in (need for mark in item.iter_markers("needs") for need in mark.args):
            if not present(need):
                item.add_marker(pytest.mark.skip(reason=f"needs {need}"))
                break


@pytest.fixture(scope="session", autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or writes the home of who runs it, which may be read-only."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        for name in _FOLDERS_OF_A_USER:
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(scope="module", autouse=True)
def _children_unobserved(request: pytest.FixtureRequest) -> Iterator[None]:
    """Coverage watches no child process of those: that would take as long again as the tests themselves."""
    observed = os.environ.pop(_FOR_CHILDREN, None) if _SAME_ROADS & set(request.path.parts) else None
    yield
    if observed is not None:
        os.environ[_FOR_CHILDREN] = observed
