"""The table leads every legal session to its end, by the road the v1.16 matrix draws (SPEC 3)."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter

import pytest

from code_intel_server.flow.phases import (
    CONFLICTS,
    POST_IMPL_VERIFY,
    PRE_COMMIT,
    QUALITY_REVIEW,
    READY_COMPLETE,
    READY_IMPL,
    READY_PLAN,
    VERIFY_INTERVENTION,
    End,
    Event,
    Flags,
    GateLevel,
    Intent,
    Phase,
    Place,
)
from code_intel_server.flow.transitions import (
    ESCALATION_LIMIT,
    FAILURE_LIMIT,
    ORDER,
    PIPELINED,
    QUALITY_LIMIT,
    SKIPPED,
    TABLE,
    Counters,
    IllegalMove,
    Route,
    RouteFacts,
    begin,
    escalates,
    settle,
)

BOOLEANS = (
    "no_verify",
    "no_quality",
    "only_verify",
    "only_explore",
    "fast",
    "quick",
    "no_doc",
    "no_intervention",
    "worktree",
)

# The Phase Matrix of the v1.16 document: steps that run, by column, when a stale branch exists and every Q says yes.
MATRIX: dict[str, tuple[Intent, dict[str, bool], list[int]]] = {
    "impl": (Intent.IMPLEMENT, {}, [*range(2, 16), 17, 18, 19]),
    "investigate": (Intent.INVESTIGATE, {}, [*range(2, 12)]),
    "question": (Intent.QUESTION, {}, [*range(2, 12)]),
    "only_explore": (Intent.MODIFY, {"only_explore": True}, [*range(2, 12)]),
    "no_verify": (Intent.IMPLEMENT, {"no_verify": True}, [*range(2, 15), 17, 18, 19]),
    "no_quality": (Intent.IMPLEMENT, {"no_quality": True}, [*range(2, 16), 17, 19]),
    "fast": (Intent.IMPLEMENT, {"fast": True}, [2, 3, 4, 12, 13, 14, 15, 17, 19]),
    "quick": (Intent.IMPLEMENT, {"quick": True}, [2, 3, 4, 12, 13, 14, 15]),
    "quick no_verify": (Intent.IMPLEMENT, {"quick": True, "no_verify": True}, [2, 3, 4, 12, 13, 14]),
    "no_doc": (Intent.IMPLEMENT, {"no_doc": True}, [2, *range(4, 16), 17, 18, 19]),
    "no_intervention": (Intent.IMPLEMENT, {"no_intervention": True}, [*range(2, 16), 17, 18, 19]),
    "only_verify": (Intent.IMPLEMENT, {"only_verify": True}, [15]),
}


def flags_of(given: dict[str, bool], gate: GateLevel = GateLevel.AUTO) -> Flags:
    """Flags by name."""
    return Flags(gate, **given)


FORWARD = {
    READY_PLAN: Event.PLANNED,
    READY_IMPL: Event.REPORTED_LAST,
    POST_IMPL_VERIFY: Event.PASSED,
    PRE_COMMIT: Event.COMMITTED,
    QUALITY_REVIEW: Event.CLEAN,
    Place(Phase.MERGE): Event.MERGED,
}


def walk(route: Route) -> list[int]:
    """The steps of a session in which everything goes well."""
    at: Place | End = begin(route)
    steps: list[int] = []
    while isinstance(at, Place):
        steps.append(at.step)
        at = settle(route, at, FORWARD.get(at, Event.OK), Counters()).to
    assert at is End.COMPLETE
    return steps


@pytest.mark.parametrize("column", MATRIX)
def test_every_column_of_the_phase_matrix_gives_its_road(column: str) -> None:
    intent, flags, steps = MATRIX[column]
    assert walk(Route(intent, flags_of(flags), RouteFacts(True, True, True, True, True))) == steps


@pytest.mark.parametrize(("answers", "left_out"), [((1, 0, 0), {9, 11}), ((0, 1, 0), {7, 11}), ((0, 0, 1), {7, 9})])
def test_a_question_answered_no_skips_its_phase(answers: tuple[int, int, int], left_out: set[int]) -> None:
    steps = walk(Route(Intent.IMPLEMENT, Flags(), RouteFacts(False, True, *map(bool, answers))))
    assert set(range(3, 16)) - set(steps) == left_out


def test_gate_full_runs_everything_whatever_the_answers() -> None:
    route = Route(Intent.IMPLEMENT, Flags(gate_level=GateLevel.FULL), RouteFacts(stale_branches=True))
    assert walk(route) == [*range(2, 16), 17, 18, 19]


def test_an_investigation_ends_after_q3_where_no_impact_analysis_is_needed() -> None:
    assert walk(Route(Intent.INVESTIGATE, Flags())) == [3, 4, 5, 6, 8, 10]


def test_disabled_document_research_is_left_out_but_is_no_skipped_gate() -> None:
    route = Route(Intent.IMPLEMENT, Flags(), RouteFacts(documents_enabled=False))
    assert walk(route)[0] == 4
    assert route.gates_skipped_by_flag() == ()


def test_gates_that_a_flag_skipped_are_named() -> None:
    assert Route(Intent.IMPLEMENT, Flags(no_quality=True, no_doc=True)).gates_skipped_by_flag() == (
        "DOCUMENT_RESEARCH",
        "QUALITY_REVIEW",
    )


def test_flags_that_only_shape_implementation_are_ignored_by_an_investigation() -> None:
    route = Route(Intent.QUESTION, Flags(fast=True, no_quality=True, no_doc=True))
    assert route.ignored_flags() == ("no_quality", "fast")
    assert 5 in walk(route)


def test_only_verify_ignores_what_shapes_the_rest() -> None:
    route = Route(Intent.IMPLEMENT, Flags(only_verify=True, fast=True, gate_level=GateLevel.FULL))
    assert route.ignored_flags() == ("gate_level", "fast")
    assert Route(Intent.IMPLEMENT, Flags(fast=True)).ignored_flags() == ()


def test_a_flag_that_only_verify_ignores_skips_nothing() -> None:
    route = Route(Intent.IMPLEMENT, Flags(only_verify=True, no_doc=True))
    assert route.ignored_flags() == ("no_doc",)
    assert route.gates_skipped_by_flag() == ()
    assert Route(Intent.QUESTION, Flags(no_doc=True)).gates_skipped_by_flag() == ("DOCUMENT_RESEARCH",)


def test_a_move_that_is_not_in_the_table_is_illegal() -> None:
    with pytest.raises(IllegalMove):
        settle(Route(Intent.IMPLEMENT, Flags()), PRE_COMMIT, Event.PASSED, Counters())


def test_the_third_failure_leads_to_an_intervention_and_escalates_after_two() -> None:
    route = Route(Intent.IMPLEMENT, Flags())
    counters = Counters()
    for round_number in range(3):
        for _ in range(FAILURE_LIMIT - 1):
            settled = settle(route, POST_IMPL_VERIFY, Event.FAILED, counters)
            assert settled.to == READY_PLAN
            counters = settled.counters
        settled = settle(route, POST_IMPL_VERIFY, Event.FAILED, counters)
        assert settled.to == VERIFY_INTERVENTION
        assert settled.needs_user is (round_number >= ESCALATION_LIMIT) is escalates(settled.counters)
        counters = settle(route, VERIFY_INTERVENTION, Event.INTERVENED, settled.counters).counters
        assert (counters.verification_failures, counters.interventions) == (0, round_number + 1)


def test_a_task_that_failed_three_times_leads_to_an_intervention() -> None:
    settled = settle(Route(Intent.MODIFY, Flags()), POST_IMPL_VERIFY, Event.FAILED, Counters(0, FAILURE_LIMIT))
    assert settled.to == VERIFY_INTERVENTION


@pytest.mark.parametrize("flags", [Flags(no_intervention=True), Flags(quick=True)])
def test_without_interventions_every_third_failure_needs_the_user(flags: Flags) -> None:
    counters, asked = Counters(), []
    for _ in range(7):
        settled = settle(Route(Intent.IMPLEMENT, flags), POST_IMPL_VERIFY, Event.FAILED, counters)
        assert settled.to == READY_PLAN
        counters = settled.counters
        asked.append(settled.needs_user)
    assert asked == [False, False, True, False, False, True, False]


def test_the_third_quality_revert_merges_with_a_warning() -> None:
    route, counters = Route(Intent.IMPLEMENT, Flags()), Counters()
    for _ in range(QUALITY_LIMIT - 1):
        settled = settle(route, QUALITY_REVIEW, Event.ISSUES, counters)
        assert (settled.to, settled.forced) == (READY_PLAN, False)
        counters = settled.counters
    settled = settle(route, QUALITY_REVIEW, Event.ISSUES, counters)
    assert (settled.to, settled.forced) == (Place(Phase.MERGE), True)


def test_a_stop_in_escalation_abandons_the_session() -> None:
    settled = settle(Route(Intent.IMPLEMENT, Flags()), VERIFY_INTERVENTION, Event.STOPPED, Counters(3, 3, 2))
    assert settled.to is End.ABANDONED


def legal_flag_sets() -> Iterator[Flags]:
    """Every combination of flags that start_session takes."""
    for values in itertools.product((False, True), repeat=len(BOOLEANS)):
        given = dict(zip(BOOLEANS, values, strict=True))
        if any(given[one] and given[other] for one, other in CONFLICTS):
            continue
        for gate in GateLevel:
            yield flags_of(given, gate)


def all_roads() -> Iterator[Route]:
    """Every legal flag set, intent, start and set of answers."""
    answers = [RouteFacts(*values) for values in itertools.product((False, True), repeat=5)]
    for flags in legal_flag_sets():
        for intent in Intent:
            for answer in answers:
                yield Route(intent, flags, answer)


@dataclass(frozen=True)
class Node:
    """Where sessions stand; `ahead` are the places that can still come, which is all that the table sees of their roads."""

    place: Place
    counters: Counters
    ahead: frozenset[Place]


Edge = tuple[Event, Node | End, bool]
"""What happened, where it led, and whether the user is asked."""
LOOP = {*ORDER[ORDER.index(READY_PLAN) :], VERIFY_INTERVENTION}
"""Where a session may come again."""


def node(place: Place, counters: Counters, runs: frozenset[Place]) -> Node:
    """The same node for all sessions that differ only in what lies behind them."""
    ahead = LOOP if place in LOOP else LOOP.union(ORDER[ORDER.index(place) :])
    return Node(place, fold(counters), runs & ahead)


def successors(route: Route, runs: frozenset[Place], at: Node) -> Iterator[Edge]:
    """Every legal event at a node."""
    counters = at.counters
    for place, event in TABLE:
        if place != at.place or (event is Event.STOPPED and not escalates(counters)):
            continue
        for task_failed in (False, True) if event in {Event.FAILED, Event.REVERTED} else (False,):
            failures = min(counters.task_failures + task_failed, FAILURE_LIMIT)
            settled = settle(route, place, event, replace(counters, task_failures=failures))
            to = settled.to if isinstance(settled.to, End) else node(settled.to, settled.counters, runs)
            yield event, to, settled.needs_user


def fold(counters: Counters) -> Counters:
    """Failures count modulo 3 beyond 3, interventions up to the limit: the graph is finite, and no rule can tell."""
    failures = counters.verification_failures
    return Counters(
        failures if failures <= FAILURE_LIMIT else (failures - 1) % FAILURE_LIMIT + 1,
        counters.task_failures,
        min(counters.interventions, ESCALATION_LIMIT),
        counters.quality_reverts,
    )


def explore(route: Route, runs: frozenset[Place], graph: dict[Node, list[Edge]]) -> None:
    """Add to the graph what is reachable on one road."""
    frontier = [node(begin(route), Counters(), runs)]
    while frontier:
        at = frontier.pop()
        if at not in graph:
            graph[at] = list(successors(route, runs, at))
            frontier += [to for _, to, _ in graph[at] if not isinstance(to, End)]


def reaches_an_end(graph: dict[Node, list[Edge]]) -> set[Node]:
    """The nodes from which completion, or a hand-over to the user, can be reached."""
    before: dict[Node, list[Node]] = {}
    good: list[Node] = []
    for at, edges in graph.items():
        for _, to, _ in edges:
            if isinstance(to, End):
                good.append(at)
            else:
                before.setdefault(to, []).append(at)
    reached = set(good)
    while good:
        new = set(before.get(good.pop(), ())) - reached
        reached |= new
        good += new
    return reached


def has_silent_cycle(graph: dict[Node, list[Edge]]) -> bool:
    """Whether a cycle exists that asks nobody. A plan or a report stays in READY by its own: tasks bound it, a replay is none."""
    inside = {Event.PLANNED, Event.PLANNED_AGAIN, Event.REPORTED}
    edges = {
        at: [
            to for event, to, asks in out if not asks and not isinstance(to, End) and not (event in inside and to == at)
        ]
        for at, out in graph.items()
    }
    # The re-plan from READY_COMPLETE goes back to reports; a report that is not new is refused, so tasks bound it too.
    for at in edges:
        if at.place == READY_COMPLETE:
            edges[at] = [to for to in edges[at] if to.place != READY_IMPL]
    try:
        TopologicalSorter(edges).prepare()
    except CycleError:
        return True
    return False


def behind_which_a_list_goes_on(graph: dict[Node, list[Edge]]) -> list[tuple[Node, Node, bool]]:
    """The moves inside of lists: from where, to where the next element is judged, and whether the user is asked there."""
    reported = [
        (at, to, asks)
        for at, out in graph.items()
        for event, to, asks in out
        # A list stops behind issues in any case (test_pipeline).
        if not isinstance(to, End) and event not in {Event.PLANNED, Event.PLANNED_AGAIN, Event.ISSUES}
    ]
    return [(at, to, asks) for at, to, asks in reported if (at.place, to.place) in PIPELINED]


def test_every_reachable_state_under_every_legal_flag_set_has_a_way_out(
    record_property: Callable[[str, object], None],
) -> None:
    legal = list(all_roads())
    distinct = {route.reasons(): route for route in legal}  # the table sees nothing of a road but its reasons
    graph: dict[Node, list[Edge]] = {}
    for route in distinct.values():
        explore(route, frozenset(place for place in SKIPPED if route.runs(place)), graph)
    assert reaches_an_end(graph) == set(graph)
    assert not has_silent_cycle(graph)
    assert all(at.place in at.ahead for at in graph)
    moves = behind_which_a_list_goes_on(graph)
    assert {(at.place, to.place) for at, to, _ in moves} == PIPELINED
    # A commit ends a row of failed verifications; nothing else is counted within a list.
    left = {PRE_COMMIT: 0}
    kept = (
        (at, to, replace(at.counters, verification_failures=left.get(at.place, at.counters.verification_failures)))
        for at, to, _ in moves
    )
    assert all(to.counters == counters for _, to, counters in kept), "a list passes no limit unseen"
    assert not any(asks for _, _, asks in moves), "a list passes no limit unseen"
    flag_sets = sum(1 for _ in legal_flag_sets())
    print(f"\n{flag_sets} legal flag sets, {len(legal)} roads, {len(distinct)} distinct, {len(graph)} states")
    record_property("flag_sets", flag_sets)
    record_property("roads", len(legal))
    record_property("executions", len(legal))
    record_property("states", len(graph))
    assert len(legal) == flag_sets * 4 * 32
