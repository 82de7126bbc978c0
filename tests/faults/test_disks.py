"""A disk that is really full, or really read-only: typed refusals while it lasts, and the same end afterwards (SPEC 7)."""

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from benchmarks.faults.interrupted import Outcome
from benchmarks.faults.results import Record
from benchmarks.faults.scenarios import SCENARIOS, Scenario, final_state, prepared
from benchmarks.faults.sentinel import Sentinel

from tests.e2e.driver import Fields, Server

SIZE = "32m"

pytestmark = pytest.mark.needs("root")


def _mount(*words: str) -> bool:
    return subprocess.run(["mount", *words], capture_output=True, check=False).returncode == 0


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own."""
    folder = tmp_path / "small"
    folder.mkdir()
    if not _mount("-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)):
        pytest.skip("needs to mount a file system, which not even root may here")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk: Path, left: int) -> Path:
    """Take all space but about `left` bytes."""
    filler = disk / "filler"
    descriptor = os.open(filler, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        for size in (1 << 20, 1 << 16, 1 << 12):
            with suppress(OSError):
                while True:
                    if os.write(descriptor, b"\0" * size) < size:
                        break
        os.truncate(filler, max(0, os.fstat(descriptor).st_size - left))
    finally:
        os.close(descriptor)
    return filler


def through_full_disks(disk: Path, scenario: Scenario, left: list[int]) -> Outcome:
    """Before each move the disk is filled but for so many bytes; the move is made, then made again with the space back."""
    root, outcome = prepared(disk), Outcome()
    before = Sentinel.of(root)
    with Server(root) as server:
        for number, move in enumerate(scenario.moves(root)):
            answer: Fields = {}
            for space in left:
                filler, answer = fill(disk, space), {}
                outcome.killed["filled"] += 1
                try:
                    answer = move(server)
                except OSError as error:  # the user's own edit does not fit
                    assert error.errno == errno.ENOSPC
                except AssertionError as error:
                    outcome.violations.append(f"move {number}, {space} bytes left: {str(error)[:600]}")
                filler.unlink()
                if answer.get("success"):
                    break
                if answer:
                    outcome.refusals.append(f"{number}: {answer['error']}")
            if not answer.get("success"):
                answer = move(server)
            assert answer["success"], (number, answer)
    outcome.violations += [f"lost: {row}" for row in before.lost(root)]
    outcome.final = final_state(root)
    return outcome


@pytest.mark.timeout(300)
def test_a_full_disk_costs_typed_refusals_and_the_session_goes_on_when_there_is_space(
    small: Path, tmp_path: Path
) -> None:
    for scenario in (SCENARIOS[0], SCENARIOS[2]):
        plain, full = small / f"{scenario.name}-plain", small / f"{scenario.name}-full"
        plain.mkdir()
        full.mkdir()
        expected = through_full_disks(plain, scenario, [])
        found = through_full_disks(full, scenario, [0, 16384])
        assert found.violations == []
        assert found.final == expected.final
        assert len(found.refusals) >= 2


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_a_disk_filled_to_any_degree_costs_typed_refusals_and_nothing_else(
    small: Path, tmp_path: Path, record_property: Record
) -> None:
    fillings = 0
    for part, left in enumerate(
        ([0, 512, 1024, 2048], [100, 3000, 4096, 6000], [0, 5000, 8192, 12288], [0, 1, 20000, 30000])
    ):
        for scenario in SCENARIOS:
            plain, full = small / f"{scenario.name}-plain-{part}", small / f"{scenario.name}-full-{part}"
            plain.mkdir()
            full.mkdir()
            expected = through_full_disks(plain, scenario, [])
            found = through_full_disks(full, scenario, left)
            assert (found.violations, found.final) == ([], expected.final), (scenario.name, left)
            fillings += found.killed["filled"]
    record_property("executions", fillings)


def test_a_state_folder_that_is_read_only_is_said_at_the_start(small: Path) -> None:
    root = prepared(small)
    folder = root / ".code-intel"
    assert _mount("--bind", str(folder), str(folder))
    assert _mount("-o", "remount,bind,ro", str(folder))
    try:
        with Server(root) as server:
            refused = server.call("start_session", query="Make main return two", flags={"fast": True})
            assert refused["success"] is False and refused["error"] in {"state_unavailable", "checkpoint_not_saved"}
            assert server.call("search_text", patterns="main")["total"] >= 1
    finally:
        subprocess.run(["umount", str(folder)], check=True)
    with Server(root) as server:
        assert server.call("start_session", query="Make main return two", flags={"fast": True})["success"]
