"""Right after set-up, without network: the first semantic answer of the real server comes within two seconds."""

import os
import shutil
import sysconfig
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.e2e.driver import StartedServer

FILES = 1_000
ANSWER_SECONDS = 2.0
TRIES = 3
"""The best of a few is the program; the rest is what else the machine was doing."""

WITHOUT_NETWORK = ("unshare", "--map-root-user", "--net")


def foreign_project(root: Path) -> Path:
    """A thousand files of the standard library, spread evenly over it."""
    library = Path(sysconfig.get_path("stdlib"))
    found = [path for path in sorted(library.rglob("*.py")) if "site-packages" not in path.parts]
    found = [path for path in found if 0 < path.stat().st_size < 200_000]
    for number in range(FILES):
        source = found[number * len(found) // FILES]
        target = root / "src" / source.relative_to(library)  # not where the server would import it from
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    return root


def first_answer(root: Path, before: Sequence[str]) -> tuple[float, list[str], str]:
    """Seconds from the start of the process to the answer, the paths found, and the libraries it has mapped."""
    shutil.rmtree(root / ".code-intel", ignore_errors=True)
    started = time.perf_counter()
    with StartedServer(root, *before) as server:
        answer = server.call("semantic_search", query="how does argparse print its usage message")
        seconds = time.perf_counter() - started
        mapped = Path(f"/proc/{server.pid}/maps").read_text()
    return seconds, [row["path"] for row in answer["results"]], mapped


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.needs("unshare --net")
def test_the_first_answer_comes_within_two_seconds_without_network_or_torch(tmp_path: Path) -> None:
    root = foreign_project(tmp_path / "project")
    times = []
    for _ in range(TRIES):
        seconds, paths, mapped = first_answer(root, WITHOUT_NETWORK)
        times.append(seconds)
        assert "src/argparse.py" in paths
        assert "torch" not in mapped
    if min(times) >= ANSWER_SECONDS and os.getloadavg()[0] > (os.cpu_count() or 1):
        pytest.skip(f"answered after {min(times):.1f} s, on a machine too busy to judge that")
    assert min(times) < ANSWER_SECONDS, times
