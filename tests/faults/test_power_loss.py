"""After a power loss at any moment an acknowledged submit is still there, and nothing torn is obeyed (P1; SPEC 7)."""

import dataclasses
from pathlib import Path

import pytest
from benchmarks.faults.power import TRACER, Disk, Op, Replay, recorded, replay
from benchmarks.faults.results import kept
from benchmarks.faults.scenarios import SCENARIOS, Scenario, prepared

from tests.e2e.driver import StartedServer


def replayed(folder: Path, stride: int, scenario: Scenario = SCENARIOS[1]) -> Replay:
    """A real session is recorded, and its power losses are replayed."""
    root, trace = prepared(folder), folder / "trace"
    sessions, private = root / ".code-intel" / "sessions", root / ".git" / "code-intel"
    with StartedServer(root, *TRACER, "-o", str(trace)) as server:
        for move in scenario.moves(root):
            assert move(server)["success"]
    ops = recorded(trace, [sessions, private])
    answers = _moves_answered(ops)
    assert answers.count("answer") == len(scenario.road) - 1
    kept = [op for op, what in zip(ops, answers, strict=True) if what]
    return replay(kept, sessions, private / "key", scenario.road, folder / "scratch", stride)


def _moves_answered(ops: list[Op]) -> list[str]:
    """'answer' where the answer acknowledges a move, '' where it is another tool's, 'op' elsewhere."""
    rows = []
    for op in ops:
        acknowledges = b'"structuredContent"' in op.data and b'"expected_payload"' in op.data
        rows.append("op" if op.what != "answer" else "answer" if acknowledges else "")
    return rows


@pytest.mark.needs("strace")
def test_an_acknowledged_submit_outlives_the_power_in_some_hundred_states(tmp_path: Path) -> None:
    found = replayed(tmp_path, 7)
    assert found.violations == []
    assert found.states > 100 and found.restored > 50


@pytest.mark.needs("strace")
@pytest.mark.full
@pytest.mark.timeout(3600)
def test_an_acknowledged_submit_outlives_the_power_in_every_state(tmp_path: Path) -> None:
    """Of two sessions: one that is merged, one with left-overs that are discarded."""
    total = Replay()
    for scenario in SCENARIOS[:2]:
        (tmp_path / scenario.name).mkdir()
        found = replayed(tmp_path / scenario.name, 1, scenario)
        total.states += found.states
        total.restored += found.restored
        total.previous += found.previous
        total.violations += found.violations
    kept("power", dataclasses.asdict(total))
    assert total.violations == []


def test_the_model_of_the_disk_forgets_what_was_not_synced() -> None:
    disk = Disk()
    for op in (Op("create", "/d/tmp"), Op("write", "/d/tmp", data=b"new"), Op("rename", "/d/tmp", "/d/name")):
        disk.do(op)
    states = [dict(state) for state in disk.after_power_loss()]
    assert {} in states and {"/d/name": b""} in states and {"/d/name": b"new"} in states
    assert {"/d/name": b"\0\0\0"} in states and {"/d/tmp": b"new"} in states
    disk = Disk()
    for op in (
        Op("create", "/d/tmp"),
        Op("write", "/d/tmp", data=b"new"),
        Op("sync", "/d/tmp"),
        Op("rename", "/d/tmp", "/d/name"),
        Op("folder", "/d"),
    ):
        disk.do(op)
    assert [dict(state) for state in disk.after_power_loss()] == [{"/d/name": b"new"}] * 2


@pytest.mark.needs("strace")
def test_the_replay_notices_a_server_that_does_not_sync(tmp_path: Path) -> None:
    root, scenario, trace = prepared(tmp_path), SCENARIOS[0], tmp_path / "trace"
    sessions, private = root / ".code-intel" / "sessions", root / ".git" / "code-intel"
    with StartedServer(root, *TRACER, "-o", str(trace)) as server:
        for move in scenario.moves(root)[:2]:
            assert move(server)["success"]
    ops = [op for op in recorded(trace, [sessions, private]) if op.what not in {"sync", "folder"}]
    found = replay(ops, sessions, private / "key", scenario.road, tmp_path / "scratch", 3)
    assert found.violations
