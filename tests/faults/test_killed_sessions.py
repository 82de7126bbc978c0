"""A session that is killed again and again ends as one that was not, and loses nothing (P1, P2; SPEC 6, 7)."""

import shutil
from pathlib import Path

import pytest

from tests.e2e.driver import git
from tests.faults.campaign import run
from tests.faults.interrupted import ROAD, Outcome, in_folder, moves, prepared, seeded
from tests.faults.sentinel import Acknowledged, Sentinel

needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed: no kill points run")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return in_folder(tmp_path_factory.mktemp("undisturbed") / "0", [])


def test_the_session_goes_the_known_road_where_nothing_fails(undisturbed: Outcome) -> None:
    assert undisturbed.violations == []
    assert undisturbed.refusals == []
    assert "Return two" in undisturbed.final
    assert "parents 2" in undisturbed.final


@needs_strace
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_a_session_killed_six_times_ends_the_same_and_keeps_every_acknowledged_submit(
    tmp_path: Path, undisturbed: Outcome, seed: int
) -> None:
    outcome = in_folder(tmp_path / "it", seeded(seed, 6))
    assert outcome.violations == []
    assert outcome.final == undisturbed.final
    assert len(outcome.killed) >= 3


@needs_strace
@pytest.mark.full
@pytest.mark.timeout(3600)
def test_hundreds_of_kills_do_the_same(tmp_path: Path) -> None:
    assert run(300, 1000, tmp_path / "kills.jsonl") == 0


class TestTheHarnessItself:
    def test_the_model_notices_a_lost_and_a_doubled_submit(self) -> None:
        model = Acknowledged(ROAD)
        model.answered({"phase": "QUERY_FRAME", "step": 4})
        model.answered({"phase": "READY", "step": 12})
        model.restored({"phase": "QUERY_FRAME", "step": 4})
        assert len(model.violations) == 1
        model.restored({"phase": "READY", "step": 13})
        assert len(model.violations) == 2
        model.sending()
        model.restored({"phase": "READY", "step": 13})
        assert len(model.violations) == 2

    def test_the_sentinel_notices_what_becomes_unreachable(self, tmp_path: Path) -> None:
        root = prepared(tmp_path)
        before = Sentinel.of(root)
        assert before.changed(Sentinel.of(root)) == []
        assert before.lost(root) == []
        (root / "notes.txt").write_text("overwritten\n")
        assert before.changed(Sentinel.of(root)) == ["file notes.txt"]
        assert before.lost(root) == ["file notes.txt"]
        git(root, "stash", "drop", "-q")
        assert any(row.startswith("commit") for row in before.lost(root))
        (root / ".env").unlink()
        git(root, "branch", "-D", "mine")
        changed = before.changed(Sentinel.of(root))
        assert {"file .env", "ref refs/heads/mine", "ref refs/stash"} <= set(changed)

    def test_there_are_as_many_moves_as_places_on_the_road(self, tmp_path: Path) -> None:
        assert len(moves(tmp_path)) == len(ROAD) - 1
