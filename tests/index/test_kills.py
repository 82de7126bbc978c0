"""SIGKILL at random moments of a sync, to the server or to its ChromaDB child: nothing that is indexed gets lost."""

import os
import random
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from code_intel_server.index.values import ChromaMode
from tests.index.builders import children_of, everything_found, make_index, ready, write_files

SEED = 20261121
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


def project_files(generation: int) -> dict[str, str]:
    """Sixty modules; each generation changes a third of them."""
    return {
        f"src/m{n}.py": f"def function_{n}():\n"
        + f"    value = {n} * {generation if n % 3 == generation % 3 else 0}\n" * 30
        for n in range(60)
    }


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


def kill_once(project: Path, chance: random.Random, *, child: bool) -> None:
    """Start a sync and kill it, or its ChromaDB child, at a random moment of its life."""
    writer = start_writer(project)
    assert writer.stdout is not None
    assert writer.stdin is not None
    try:
        assert writer.stdout.readline() == "open\n"
        try:
            writer.wait(chance.uniform(0.0, 2.5))
        except subprocess.TimeoutExpired:
            victims = children_of(writer.pid) if child else []
            for victim in victims or [writer.pid]:
                os.kill(victim, signal.SIGKILL)
            if victims:
                writer.stdin.close()
                writer.wait(60)
    finally:
        writer.kill()
        writer.wait(10)
        writer.stdout.close()
        if not writer.stdin.closed:
            writer.stdin.close()


def kill_often(project: Path, times: int) -> None:
    chance = random.Random(SEED)  # noqa: S311 - a repeatable choice, no secret
    for round_ in range(times):
        write_files(project, project_files(round_))
        kill_once(project, chance, child=bool(round_ % 2))
        if round_ % 5 == 4 or round_ == times - 1:
            index = make_index(project, mode=ChromaMode.LOCAL)
            report = index.sync()
            assert report.files == 60
            assert ready(index), index.status().notes
            assert everything_found(index), f"after kill {round_} with seed {SEED}"
            assert index.status().owner
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
