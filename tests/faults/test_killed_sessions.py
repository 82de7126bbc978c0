"""A session that is killed again and again ends as one that was not, and loses nothing (P1, P2; SPEC 6, 7)."""

import shutil
from pathlib import Path

import pytest
from benchmarks.faults import around
from benchmarks.faults.campaign import run
from benchmarks.faults.interrupted import Outcome, in_folder
from benchmarks.faults.kills import Kill, Shim, failing, seeded
from benchmarks.faults.scenarios import ROAD, SCENARIOS, prepared
from benchmarks.faults.sentinel import Acknowledged, Sentinel

from tests.e2e.driver import Server, git

linux = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="the forking of servers is written for Linux")
pytestmark = linux


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    folder = tmp_path_factory.mktemp("undisturbed")
    return {scenario.name: in_folder(folder / scenario.name, [], scenario) for scenario in SCENARIOS}


def test_the_sessions_go_their_known_roads_where_nothing_fails(undisturbed: dict[str, Outcome]) -> None:
    for outcome in undisturbed.values():
        assert outcome.violations == []
        assert outcome.refusals == []
    assert "Return two" in undisturbed["merged"].final
    assert "parents 2" in undisturbed["discarded"].final
    assert "Return two" not in undisturbed["abandoned"].final


@pytest.mark.needs("strace")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_session_killed_again_and_again_ends_the_same_and_keeps_every_acknowledged_submit(
    tmp_path: Path, undisturbed: dict[str, Outcome], seed: int
) -> None:
    scenario = SCENARIOS[seed % len(SCENARIOS)]
    outcome = in_folder(tmp_path / "it", seeded(seed, 6), scenario, undisturbed[scenario.name].final)
    assert outcome.violations == []
    assert sum(outcome.killed.values()) >= 2


@pytest.mark.needs("strace")
@pytest.mark.parametrize("seed", [1, 2])
def test_a_disk_that_fails_again_and_again_costs_refusals_and_nothing_else(
    tmp_path: Path, undisturbed: dict[str, Outcome], seed: int
) -> None:
    scenario = SCENARIOS[seed % len(SCENARIOS)]
    outcome = in_folder(tmp_path / "it", failing(seed, 6), scenario, undisturbed[scenario.name].final)
    assert outcome.violations == []
    assert sum(outcome.killed.values()) >= 2


@pytest.mark.parametrize(
    ("scenario", "how", "child"),
    [(SCENARIOS[1], "finished", 30), (SCENARIOS[1], "unstarted", 31), (SCENARIOS[2], "unstarted", 33)],
)
def test_a_kill_at_a_git_child_of_branch_commit_merge_and_clean_costs_nothing(
    tmp_path: Path, undisturbed: dict[str, Outcome], scenario: object, how: str, child: int
) -> None:
    assert scenario in SCENARIOS
    known = next(each for each in SCENARIOS if each == scenario)
    outcome = around.one(tmp_path / "it", known, how, child)
    assert outcome.violations == []
    assert outcome.final == undisturbed[known.name].final
    assert outcome.killed


def test_an_untracked_file_stays_out_where_the_server_is_killed_after_the_branch_moved(
    tmp_path: Path, undisturbed: dict[str, Outcome]
) -> None:
    """Every child of the commit that changes something, the server killed after it; one of them moves the branch."""
    for child in range(5, 9):
        kill = Kill("finished", 1, child, writers=True)
        outcome = in_folder(tmp_path / str(child), [kill], SCENARIOS[0], undisturbed["merged"].final)
        assert outcome.violations == []


def test_the_last_submit_sent_again_ends_a_session_that_was_killed_after_its_answer_was_kept(tmp_path: Path) -> None:
    """Found by the kill run: the kept answer was told again and the checkpoint stayed."""
    root = prepared(tmp_path)
    shim, sessions, aside = Shim(tmp_path / "shim"), root / ".code-intel" / "sessions", tmp_path / "aside"
    *before, last = SCENARIOS[0].moves(root)
    with Server(root, **shim.environment()) as server:
        for move in before:
            assert move(server)["success"]
        shim.plan(Kill("unstarted", 1, 9, writers=True))
        assert not last(server)["success"]
        shutil.copytree(sessions, aside)
        shim.plan(None)
        told = last(server)
        assert told["phase"] == "SESSION_COMPLETE"
        assert not list(sessions.glob("*.json"))
    shutil.copytree(aside, sessions, dirs_exist_ok=True)
    with Server(root) as server:
        again = last(server)
    assert again["phase"] == "SESSION_COMPLETE"
    assert again["merge_commit"] == told["merge_commit"]
    assert not list(sessions.glob("*.json"))
    assert git(root, "rev-list", "--count", "main").strip() == "3"


@pytest.mark.needs("strace")
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

    @pytest.mark.needs("strace")
    def test_a_kill_at_a_system_call_takes_place_before_that_call(self, tmp_path: Path) -> None:
        """So the Nth and the (N+1)th lie on both sides of it."""
        outcome = in_folder(tmp_path / "it", [Kill("rename", 1)], SCENARIOS[0])
        assert dict(outcome.killed) == {"server rename": 1}

    def test_there_are_as_many_moves_as_places_on_the_road(self, tmp_path: Path) -> None:
        for scenario in SCENARIOS:
            assert len(scenario.moves(tmp_path)) == len(scenario.road) - 1
