"""SIGKILL at random moments of a sync, to the server or to one of its children: nothing that is indexed gets lost."""

import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from code_intel_server.index.chunks.cutter import MIN_FILES_FOR_PROCESSES
from code_intel_server.index.values import ChromaMode
from tests.index.builders import children_of, everything_found, everything_held, make_index, owns, ready, write_files

SEED = 20261121
WORDS = [
    first + second
    for first in ("bar", "cod", "dim", "fog", "gum", "hil", "jot", "kin")
    for second in ("a", "o", "u", "ex", "im", "ut", "ark", "olm")
]
WRITER = """
import os, sys
from pathlib import Path
from tests.index.builders import ChromaMode, make_index, manager_of, ready

index = make_index(Path(sys.argv[1]), mode=ChromaMode.LOCAL)
print("open", flush=True)
index.sync()
print("synced", flush=True)
ready(index)
print("child", manager_of(index).child_pid, flush=True)
sys.stdin.readline()
"""


SMALL = 60
LARGE = 3 * MIN_FILES_FOR_PROCESSES
"""So many that those that change in one generation are cut in processes of their own."""

SERVER, CHROMA, CUTTER = (
    "the server",
    "code_intel_server.index.vectors.chroma_child",
    "code_intel_server.index.chunks.cutter_child",
)


def project_files(generation: int, count: int = SMALL) -> dict[str, str]:
    """`count` modules that have nothing in common; each generation changes a third of them."""
    return {f"src/m{n}.py": module(n, generation if n % 3 == generation % 3 else 0) for n in range(count)}


def module(number: int, generation: int) -> str:
    """A function whose words, and so whose vector, are its own."""
    words = random.Random(f"{number}/{generation}").choices(WORDS, k=12)  # noqa: S311 - repeatable, no secret
    lines = [f"    {word} = {number} * {generation}\n" for word in words]
    return f"def function_{number}():\n" + "".join(lines)


def start_writer(project: Path) -> "subprocess.Popen[str]":
    root = Path(__file__).parents[2]
    environment = os.environ | {"PYTHONPATH": f"{root / 'src'}:{root}"}
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(project)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )


def kill_once(project: Path, chance: random.Random, victim: str, seconds: float) -> None:
    """Start a sync and kill it, or a child of it, at a random moment of its life."""
    writer = start_writer(project)
    assert writer.stdout is not None
    assert writer.stdin is not None
    try:
        assert writer.stdout.readline() == "open\n"
        try:
            writer.wait(chance.uniform(0.0, seconds))
        except subprocess.TimeoutExpired:
            victims = [pid for pid in children_of(writer.pid) if victim in command_of(pid)]
            for pid in victims or [writer.pid]:
                os.kill(pid, signal.SIGKILL)
            if victims:
                writer.stdin.close()
                writer.wait(60)
    finally:
        writer.kill()
        writer.wait(10)
        writer.stdout.close()
        if not writer.stdin.closed:
            writer.stdin.close()


def command_of(pid: int) -> str:
    """The command line of a process, '' where it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def kill_often(
    project: Path, times: int, victims: Sequence[str] = (SERVER, CHROMA), count: int = SMALL, seconds: float = 2.5
) -> None:
    chance = random.Random(SEED)  # noqa: S311 - a repeatable choice, no secret
    for round_ in range(times):
        write_files(project, project_files(round_, count))
        kill_once(project, chance, victims[round_ % len(victims)], seconds)
        if round_ % 5 == 4 or round_ == times - 1:
            index = make_index(project, mode=ChromaMode.LOCAL)
            report = index.sync()
            assert report.files == count
            assert ready(index), index.search("login").notes
            whole = everything_found if count == SMALL else everything_held
            assert whole(index), f"after kill {round_} with seed {SEED}"
            assert owns(index)
            index.close()


def test_every_chunk_is_found_after_kills_in_the_middle_of_a_sync(tmp_path: Path) -> None:
    kill_often(tmp_path, 5)


def test_the_child_ends_with_a_killed_server(tmp_path: Path) -> None:
    write_files(tmp_path, project_files(0))
    writer = start_writer(tmp_path)
    assert writer.stdout is not None
    assert writer.stdin is not None
    lines = [writer.stdout.readline() for _ in range(3)]
    child = int(lines[2].split()[1])
    writer.kill()
    writer.wait(10)
    writer.stdin.close()
    writer.stdout.close()
    # The kernel's own notice: the child's entry goes when it has ended and was reaped by init.
    deadline = time.monotonic() + 20
    while (
        Path(f"/proc/{child}").exists()
        and "Z" not in Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0]
    ):
        assert time.monotonic() < deadline, "the child outlived its server"
        select.select([], [], [], 0.02)


@pytest.mark.full
@pytest.mark.timeout(900)
def test_every_chunk_is_found_after_fifty_kills(tmp_path: Path) -> None:
    kill_often(tmp_path, 50)


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_every_chunk_is_found_after_fifty_kills_of_a_large_sync_and_of_what_cuts_for_it(tmp_path: Path) -> None:
    kill_often(tmp_path, 50, (CUTTER, SERVER, CUTTER, CHROMA), LARGE, 1.5)
