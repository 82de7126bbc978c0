"""Sessions under a system clock that jumps by years, forwards and back, at any moment (row 16)."""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.driver import Server
from tests.faults.results import Record, size
from tests.faults.scenarios import SCENARIOS, final_state, prepared

LIBRARY = next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))), None)
needs_faketime = pytest.mark.skipif(LIBRARY is None, reason="faketime is not installed")


class Clock:
    """What a server with this environment takes for now; no monotonic clock is touched."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.set(0)

    def set(self, days: float) -> None:
        """So many days from now."""
        partial = self.file.with_suffix(".partial")
        partial.write_text(f"{days:+.4f}d\n")
        partial.replace(self.file)

    def environment(self) -> dict[str, str]:
        """For the server and its children."""
        return {
            "LD_PRELOAD": str(LIBRARY),
            "FAKETIME_TIMESTAMP_FILE": str(self.file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_DONT_RESET": "1",
        }


@pytest.fixture
def clock(tmp_path: Path) -> Iterator[Clock]:
    yield Clock(tmp_path / "clock")


@needs_faketime
@pytest.mark.full
@pytest.mark.timeout(3600)
def test_a_session_goes_its_way_whatever_the_clock_says_from_one_call_to_the_next(
    tmp_path: Path, clock: Clock, record_property: Record
) -> None:
    """Every third time the process is killed as well: what is restored is the newest by its counter, not by any date."""
    chance, jumps = random.Random(16), 0  # noqa: S311 - repeatable, not secret
    turn = 0
    while jumps < size(20, 200):
        scenario = SCENARIOS[turn % 2]
        folder = tmp_path / str(turn)
        folder.mkdir()
        root = prepared(folder)
        server = Server(root, **clock.environment())
        for number, move in enumerate(scenario.moves(root)):
            days = chance.choice((-3650, 3650, -1, 1, -0.0001, 0, 7300, -7300)) + chance.random()
            clock.set(days)
            jumps += 1
            answer = move(server)
            assert answer["success"], (number, days, answer)
            assert (answer["phase"], answer["step"]) == scenario.road[number + 1]
            if jumps % 3 == 0 and number + 2 < len(scenario.road):
                server.kill()
                clock.set(-days)
                server = Server(root, **clock.environment())
                status = server.call("get_session_status")
                assert (status["phase"], status["step"]) == scenario.road[number + 1], (number, days)
        server.close()
        assert "checkpoints []" in final_state(root)
        turn += 1
    record_property("executions", jumps)


@needs_faketime
def test_the_false_clock_is_one(clock: Clock) -> None:
    """The harness is proven: a child sees the year that was set."""
    import subprocess

    clock.set(3650)
    words = ["date", "+%Y"]
    year = subprocess.run(
        words, capture_output=True, text=True, check=True, env={**os.environ, **clock.environment()}
    ).stdout
    real = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert int(year) - int(real) in {9, 10}
