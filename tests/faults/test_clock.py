"""Sessions under a system clock that jumps by years, forwards and back, at any moment (row 16)."""

import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.faults.results import Record, size
from benchmarks.faults.scenarios import SCENARIOS, final_state, prepared

from tests.e2e.driver import StartedServer

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static long away(void) { /* seconds from now, read anew each time */
    long seconds = 0;
    const char *name = getenv("FALSE_CLOCK");
    FILE *file = name ? fopen(name, "r") : NULL;
    if (file) {
        if (fscanf(file, "%ld", &seconds) != 1) seconds = 0;
        fclose(file);
    }
    return seconds;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += away();
    return failed;
}

time_t time(time_t *kept) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (kept) *kept = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict kept, void *restrict zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    kept->tv_sec = now.tv_sec;
    kept->tv_usec = now.tv_nsec / 1000;
    return 0;
}
"""
"""What stands before the C library's clock; the monotonic clocks stay true, as the kernel's do when a date is set."""
DAY = 86_400


class Clock:
    """What a server with this environment, and each of its children, takes for now."""

    def __init__(self, folder: Path) -> None:
        self.file, self.library = folder / "clock", folder / "clock.so"
        source = folder / "clock.c"
        source.write_text(SHIM)
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", self.library, source, "-ldl"], check=True)
        self.set(0)

    def set(self, days: float) -> None:
        """So many days from now."""
        partial = self.file.with_suffix(".partial")
        partial.write_text(f"{int(days * DAY)}\n")
        partial.replace(self.file)

    def environment(self) -> dict[str, str]:
        """For the server and its children."""
        return {"LD_PRELOAD": str(self.library), "FALSE_CLOCK": str(self.file)}


@pytest.fixture
def clock(tmp_path: Path) -> Iterator[Clock]:
    yield Clock(tmp_path)


@pytest.mark.needs("cc")
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
        server = StartedServer(root, **clock.environment())
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
                server = StartedServer(root, **clock.environment())
                status = server.call("get_session_status")
                assert (status["phase"], status["step"]) == scenario.road[number + 1], (number, days)
        server.close()
        assert "checkpoints []" in final_state(root)
        turn += 1
    record_property("executions", jumps)


@pytest.mark.needs("cc")
def test_the_false_clock_is_one(clock: Clock) -> None:
    """The harness is proven: a child sees the year that was set."""
    clock.set(3650)
    words = ["date", "+%Y"]
    year = subprocess.run(
        words, capture_output=True, text=True, check=True, env={**os.environ, **clock.environment()}
    ).stdout
    real = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert int(year) - int(real) in {9, 10}
