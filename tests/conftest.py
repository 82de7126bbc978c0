"""What holds for all tests."""

from collections.abc import Iterator

import pytest
from coverage import Coverage
from hypothesis import settings

from tests.e2e.zygote import OBSERVED_INTO
from tests.programs import present

# How long one example takes says how busy the machine is; pytest's own time limit finds what hangs.
settings.register_profile("full", deadline=None)
settings.register_profile("sample", deadline=None, max_examples=25)
settings.load_profile("sample")

_OBSERVED = {"e2e", "test_learning.py"}
"""A folder and a file whose servers take roads that no test takes in its own process."""

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
def _servers_observed(request: pytest.FixtureRequest) -> Iterator[None]:
    """Where coverage is measured it watches the servers of these, and no other child: that would cost as much as all tests."""
    with pytest.MonkeyPatch.context() as patch:
        if Coverage.current() is not None and _OBSERVED & set(request.path.parts):
            patch.setenv(OBSERVED_INTO, str(request.config.rootpath / ".coverage"))
        yield
