"""A folder that is swapped for a link out of the project while we read or write below it (row 45)."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.faults.results import Record, size

from code_intel_server.codebase.evidence.reader import ProjectEvidence
from code_intel_server.workspace import atomic_writes
from code_intel_server.workspace.atomic_writes import IncomingFile
from code_intel_server.workspace.git.repository import Git, open_repository
from tests.e2e.driver import repository

SWAPPER = """
import os, shutil, sys
os.chdir(sys.argv[1])
print("swapping", flush=True)

def until_done(act, *names):  # whoever writes may have made a folder of that name
    while True:
        try:
            return act(*names)
        except OSError:
            shutil.rmtree("a", ignore_errors=True)

while True:
    os.rename("a", "aside"); until_done(os.symlink, "../outside", "a")
    os.unlink("a"); until_done(os.rename, "aside", "a")
"""


@pytest.fixture
def swapped(tmp_path: Path) -> Iterator[Path]:
    """A project whose folder `a` is a link to the outside half of the time."""
    root = repository(tmp_path / "repo", {"a/x.py": "inside = 1\n\n\n", "b.py": "b = 1\n"})
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x.py").write_text("SECRET = 'canary-7391'\n" * 7)
    with subprocess.Popen([sys.executable, "-c", SWAPPER, str(root)], stdout=subprocess.PIPE) as swapper:
        try:
            assert swapper.stdout is not None
            assert swapper.stdout.readline() == b"swapping\n"
            yield root
        finally:
            swapper.kill()


@pytest.mark.timeout(3600)
def test_evidence_in_a_folder_that_is_swapped_for_a_link_is_never_read_outside(
    swapped: Path, record_property: Record
) -> None:
    evidence, least, times = ProjectEvidence(swapped), size(3_000, 1_000_000), 0
    seen: set[int | None] = set()
    deadline = time.monotonic() + 60  # on a busy machine the other process may wait for its turn
    while times < least or (len(seen) < 2 and time.monotonic() < deadline):
        seen.add(evidence.total_lines("a/x.py"))
        times += 1
    assert seen <= {3, None}
    assert len(seen) == 2, "the race was none"
    record_property("executions", times)


@pytest.mark.timeout(3600)
def test_no_file_that_is_placed_gets_out_through_it(swapped: Path, record_property: Record) -> None:
    git, least, times = open_repository(swapped), size(100, 20_000), 0
    assert isinstance(git, Git)
    placed: set[bool] = set()
    deadline = time.monotonic() + 60
    while times < least or (len(placed) < 2 and time.monotonic() < deadline):
        with contextlib.suppress(FileNotFoundError):  # the folder was just away
            placed.add(atomic_writes.place(git, IncomingFile(f"a/new{times % 7}/{times}.txt", "100644", b"x")))
        times += 1
    assert placed == {True, False}
    assert os.listdir(swapped.parent / "outside") == ["x.py"]  # noqa: PTH208
    record_property("executions", times)
