"""A fault at every system call of every move: the session ends as without it, and nothing is lost (P1, P2; rows 1, 4, 51).

In CI some points of each move, spread over all of it; each of them in the full run.
"""

from collections import Counter
from pathlib import Path

import pytest
from benchmarks.faults import gate
from benchmarks.faults.gate import Fault, Gate
from benchmarks.faults.points import HOWS, PLAYED, Played, every_point
from benchmarks.faults.results import Record
from benchmarks.faults.scenarios import SCENARIOS, THROUGH_EVERY_PHASE
from benchmarks.faults.watched import GatedServer

pytestmark = [
    pytest.mark.skipif(bool(gate.missing()), reason=f"no gate before system calls: {gate.missing()}"),
    pytest.mark.timeout(600),
]
EVERY = {"caller": 397, "server": 101, "EIO": 197}
"""How many points lie between two that CI plays."""


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    return Played(tmp_path_factory.mktemp("played") / "it", SCENARIOS[1])


@pytest.mark.parametrize(
    "how", ["caller", *(pytest.param(how, marks=pytest.mark.full) for how in EVERY if how != "caller")]
)
def test_a_fault_at_any_point_of_any_move_is_as_if_it_had_not_been(
    played: Played, how: str, record_property: Record
) -> None:
    count = 0
    for number in range(len(played.moves)):
        tally = every_point(played, number, how, EVERY[how], first=EVERY[how] // 2 + 7 * number)
        assert tally.violations == []
        count += sum(tally.kinds.values())
    record_property("executions", count)
    assert count >= 4


@pytest.mark.full
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("scenario", PLAYED, ids=lambda scenario: scenario.name)
def test_every_fiftieth_point_of_every_session_is_as_if_it_had_not_been(
    tmp_path: Path, record_property: Record, scenario: object
) -> None:
    known = next(one for one in PLAYED if one == scenario)
    session, count = Played(tmp_path / "it", known), 0
    for how in HOWS:
        for number in range(len(session.moves)):
            tally = every_point(session, number, how, 50)
            assert tally.violations == []
            count += sum(tally.kinds.values())
    record_property("executions", count)


class TestTheHarnessItself:
    def test_a_move_has_the_same_calls_each_time(self, played: Played) -> None:
        """But for what another thread does meanwhile, and for git that looks again at files written in this second."""
        first, second = (Counter((call.kind, call.who) for call in played.calls(5)) for _ in range(2))
        lasting = {what for what in first if what[0] in {"fsync", "link"} and what[1] == "server"}
        assert {what: first[what] for what in lasting} == {what: second[what] for what in lasting}
        assert {("fsync", "server")} <= lasting
        assert {("rename", "server"), ("exec", "git")} <= {*first}

    def test_what_is_killed_at_a_call_never_makes_it(self, played: Played) -> None:
        """At the renaming of the checkpoint, one of a few, the new generation lies beside the old one, and the server has ended."""
        renaming = ("rename", "server")
        for number in range(40):  # another thread's calls, and git's second looks, may come sooner or later
            calls = [(call.kind, call.who) for call in played.calls(5)]
            places = [place for place, call in enumerate(calls, 1) if call == renaming]
            played.lay(5)
            sessions = played.root / ".code-intel/sessions"
            names = {path.name for path in sessions.iterdir()}
            before = {path.name: path.read_bytes() for path in sessions.glob("*.json")}
            shift = (0, -1, 1, -2, 2)[number // len(places) % 5]
            made = self._killed_at(max(places[number % len(places)] + shift, 1), played)
            after = {path.name: path.read_bytes() for path in sessions.glob("*.json")}
            fresh = {path.name for path in sessions.iterdir()} - names
            if made[-1:] == [renaming] and fresh and after == before:
                return
        pytest.fail("no renaming left the new generation beside the old one")

    def _killed_at(self, number: int, played: Played) -> list[tuple[str, str]]:
        """The calls up to the one at which somebody was killed: the server, if it was the server's."""
        keeper = Gate()
        server = GatedServer(played.root, keeper)
        assert server.call("get_session_status")["success"]
        keeper.arm(Fault(number))
        try:
            played.moves[5](server)
        except EOFError:
            server.wait(20)
            server.close()
        else:
            server.kill()
        keeper.close()
        assert len(keeper.calls) < number or keeper.fired == keeper.calls[number - 1]
        return [(call.kind, call.who) for call in keeper.calls[:number]]

    def test_a_point_at_which_something_is_lost_is_noticed(self, played: Played) -> None:
        """A move that is taken up to another end than without the fault. Of the rest of his files the session keeps the earlier text."""
        last, moves = len(played.moves) - 1, list(played.moves)

        def careless(server: object) -> dict[str, object]:
            (played.root / ".env").write_text("overwritten\n")
            return moves[last](server)  # type: ignore[arg-type]

        played.moves = [*moves[:last], careless]
        try:
            point = played.play(last, Fault(20))
        finally:
            played.moves = moves
        assert any(row.startswith("lost: file .env") for row in point.violations)
        assert any("not as without a fault" in row for row in point.violations)

    def test_there_are_as_many_moves_as_places_on_the_road(self, tmp_path: Path) -> None:
        assert len(THROUGH_EVERY_PHASE.moves(tmp_path)) == len(THROUGH_EVERY_PHASE.road) - 1
