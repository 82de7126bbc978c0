"""ChromaDB's files damaged in generated ways and its process killed in every way, again and again: nothing is silently missing."""

import os
import random
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from benchmarks.faults.results import Record, size

from code_intel_server.index.values import ChromaSettings, IndexSettings
from tests.index.builders import SAMPLE, everything_found, make_index, manager_of, ready, write_files
from tests.index.cases import Case
from tests.index.test_chromadb_manager import segments

PAGE = 4096


def _page(data: bytes, chance: random.Random, page: bytes) -> bytes:
    at = chance.randrange(0, max(1, len(data)), PAGE)
    return data[:at] + page[: len(data) - at] + data[at + PAGE :]


def _flipped(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.randint(1, 20)):
        if changed:
            changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


KINDS: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "garbage": lambda data, chance: chance.randbytes(len(data)),
    "garbage page": lambda data, chance: _page(data, chance, chance.randbytes(PAGE)),
    "zero page": lambda data, chance: _page(data, chance, bytes(PAGE)),
    "cut": lambda data, chance: data[: chance.randrange(len(data) + 1)],
    "empty": lambda _, __: b"",
    "bits": _flipped,
    "longer": lambda data, chance: data + chance.randbytes(chance.randint(1, 5000)),
    "first half twice": lambda data, _: data[: len(data) // 2] * 2,
    "gone": lambda data, _: data,
}


@pytest.mark.full
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(40))
def test_no_generated_damage_makes_an_answer_silently_incomplete(
    local: Case, part: int, record_property: Record
) -> None:
    """Twenty-five damages to a part, to one or several of the files; each is followed by a start and a look for everything."""
    chance, count = random.Random(5700 + part), 25  # noqa: S311 - repeatable, not secret
    for number in range(count):
        files = segments(local.root)
        for target in chance.sample(files, chance.choice((1, 1, 1, min(2, len(files))))):
            kind = chance.choice([*KINDS])
            if kind == "gone":
                target.unlink()
            else:
                target.write_bytes(KINDS[kind](target.read_bytes(), chance))
        if number % 10 == 9:
            for folder in [path for path in (local.root / ".code-intel/chroma").iterdir() if path.is_dir()]:
                shutil.rmtree(folder)
        local.open().sync()
        assert local.index.search("login throttle").hits[0].path == "src/auth/throttle.py", (number, kind)
        assert ready(local.index) and everything_found(local.index), (number, kind)
        local.index.close()
    record_property("executions", count)


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_a_child_that_crashes_or_hangs_a_hundred_times_is_replaced_each_time(
    tmp_path: Path, record_property: Record
) -> None:
    write_files(tmp_path, SAMPLE)
    index = make_index(tmp_path, IndexSettings(chroma=ChromaSettings(timeout=2.0, min_chunks=0)))
    index.sync()
    times = size(6, 100)
    for number in range(times):
        assert ready(index), number
        pid = manager_of(index).child_pid
        assert pid is not None
        os.kill(pid, (signal.SIGKILL, signal.SIGSEGV, signal.SIGSTOP, signal.SIGABRT, signal.SIGBUS)[number % 5])
        assert index.search("login throttle").hits[0].path == "src/auth/throttle.py", number
    assert ready(index) and everything_found(index)
    index.close()
    record_property("executions", times)
