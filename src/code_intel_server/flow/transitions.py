"""The transition table, the phase matrix and `settle()`: the only code that decides a phase (SPEC 3).

Theory of the flow. A session is at a *place* (a phase; in READY also a substep). An accepted submit raises one
*event*. `TABLE[(place, event)]` names the *target*; a pair that is not in the table is an illegal move. Most targets
are `Forward`: the next place of `ORDER` that the matrix does not skip. A place is skipped when any *reason* in
`SKIPPED[place]` holds for the session; reasons are plain facts (a flag, an answer to Q1, no stale branch), so the
phase matrix of the v1.16 document can be read off `SKIPPED` by eye and the documentation is generated from it.
Everything skipped to the end is the end of the session: that is how an investigation ends after Q3 and `only_verify`
after its verdict. No flag is looked at anywhere else.

The four loops go back to READY's plan, and each passes a counter that only the server keeps:

    POST_IMPL_VERIFY failed, PRE_COMMIT reverted   verification_failure_count (and each failed task's own count)
    VERIFY_INTERVENTION                            intervention_count
    QUALITY_REVIEW issues                          quality_revert_count

At its limit a counter either moves on (QUALITY_REVIEW → MERGE with a warning, the third failure →
VERIFY_INTERVENTION) or hands over to the user (`requires_user_intervention`: the escalation, or every third failure
where flags leave no intervention). The consecutive count falls back to 0 when a commit is made or an intervention was
accepted, not on a verdict alone: else PRE_COMMIT → READY → verdict → PRE_COMMIT would be a loop without a counter.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Protocol

from code_intel_server.flow.phases import (
    BRANCH_INTERVENTION,
    DOCUMENT_RESEARCH,
    EXPLORATION,
    IMPACT_ANALYSIS,
    MERGE,
    PLACES,
    POST_IMPL_VERIFY,
    PRE_COMMIT,
    Q1,
    Q2,
    Q3,
    QUALITY_REVIEW,
    QUERY_FRAME,
    READY_COMPLETE,
    READY_IMPL,
    READY_PLAN,
    SEMANTIC,
    VERIFICATION,
    VERIFY_INTERVENTION,
    End,
    Event,
    Flags,
    GateLevel,
    Intent,
    Phase,
    Place,
    Substep,
)

FAILURE_LIMIT = 3
ESCALATION_LIMIT = 2
QUALITY_LIMIT = 3

# The way forward. VERIFY_INTERVENTION is not on it: only a counter leads there.
ORDER = tuple(place for place in PLACES if place != VERIFY_INTERVENTION)


class Reason(StrEnum):
    """Why the matrix leaves a place out."""

    INVESTIGATION = "investigation"
    ONLY_VERIFY = "only_verify"
    NO_VERIFY = "no_verify"
    NO_QUALITY = "no_quality"
    FAST = "fast"
    QUICK = "quick"
    NO_DOC = "no_doc"
    NO_INTERVENTION = "no_intervention"
    DOC_DISABLED = "doc_research disabled"
    NO_STALE_BRANCH = "no stale branch"
    WORKTREE = "worktree"
    Q1_NO = "Q1 = false"
    Q2_NO = "Q2 = false"
    Q3_NO = "Q3 = false"


_EXPLORING = frozenset({Reason.FAST, Reason.QUICK, Reason.ONLY_VERIFY})
_BUILDING = frozenset({Reason.INVESTIGATION, Reason.ONLY_VERIFY})

_FLAG_REASONS = frozenset(
    {Reason.NO_VERIFY, Reason.NO_QUALITY, Reason.FAST, Reason.QUICK, Reason.NO_DOC, Reason.NO_INTERVENTION}
)

# The phase matrix of v1.16, column by column: a place is skipped when one of its reasons holds.
SKIPPED: Mapping[Place, frozenset[Reason]] = {
    BRANCH_INTERVENTION: frozenset({Reason.NO_STALE_BRANCH, Reason.ONLY_VERIFY, Reason.WORKTREE}),
    DOCUMENT_RESEARCH: frozenset({Reason.NO_DOC, Reason.DOC_DISABLED, Reason.ONLY_VERIFY}),
    QUERY_FRAME: frozenset({Reason.ONLY_VERIFY}),
    EXPLORATION: _EXPLORING,
    Q1: _EXPLORING,
    SEMANTIC: _EXPLORING | {Reason.Q1_NO},
    Q2: _EXPLORING,
    VERIFICATION: _EXPLORING | {Reason.Q2_NO},
    Q3: _EXPLORING,
    IMPACT_ANALYSIS: _EXPLORING | {Reason.Q3_NO},
    READY_PLAN: _BUILDING,
    READY_IMPL: _BUILDING,
    READY_COMPLETE: _BUILDING,
    POST_IMPL_VERIFY: frozenset({Reason.INVESTIGATION, Reason.NO_VERIFY}),
    VERIFY_INTERVENTION: frozenset(
        {Reason.INVESTIGATION, Reason.ONLY_VERIFY, Reason.NO_VERIFY, Reason.QUICK, Reason.NO_INTERVENTION}
    ),
    PRE_COMMIT: _BUILDING | {Reason.QUICK},
    QUALITY_REVIEW: _BUILDING | {Reason.QUICK, Reason.FAST, Reason.NO_QUALITY},
    MERGE: _BUILDING | {Reason.QUICK},
}


class Target(Enum):
    """Where an event leads when it is not simply a place."""

    FORWARD = "the next place that is not skipped"
    FAILURE = "READY plan; VERIFY_INTERVENTION at the third failure; the end where READY is skipped"
    QUALITY = "READY plan; forward with a warning at the third time"
    COMPLETE = "the end of the session"
    ABANDON = "the end of the session, work archived"


# Row by row as SPEC 3.3 has them.
TABLE: Mapping[tuple[Place, Event], Target | Place] = {
    **{(place, Event.OK): Target.FORWARD for place in ORDER[: ORDER.index(READY_PLAN)]},  # steps 2 to 11
    (READY_PLAN, Event.PLANNED): READY_IMPL,
    (READY_IMPL, Event.PLANNED): READY_IMPL,
    (READY_COMPLETE, Event.PLANNED): READY_IMPL,
    (READY_COMPLETE, Event.PLANNED_AGAIN): READY_COMPLETE,
    (READY_IMPL, Event.REPORTED): READY_IMPL,
    (READY_IMPL, Event.REPORTED_LAST): READY_COMPLETE,
    (READY_COMPLETE, Event.OK): Target.FORWARD,
    (POST_IMPL_VERIFY, Event.PASSED): Target.FORWARD,
    (POST_IMPL_VERIFY, Event.FAILED): Target.FAILURE,
    (VERIFY_INTERVENTION, Event.INTERVENED): READY_PLAN,
    (VERIFY_INTERVENTION, Event.STOPPED): Target.ABANDON,
    (PRE_COMMIT, Event.COMMITTED): Target.FORWARD,
    (PRE_COMMIT, Event.REVERTED): Target.FAILURE,
    (QUALITY_REVIEW, Event.CLEAN): Target.FORWARD,
    (QUALITY_REVIEW, Event.ISSUES): Target.QUALITY,
    (MERGE, Event.MERGED): Target.COMPLETE,
}


# What may be sent together: (whose payload was accepted, where that led). A list of submits goes on behind these moves
# alone, so that nobody submits to an instruction that was not read: the first step brings the instructions of `AHEAD`,
# Q1 the three questions, step 13 names 14, and step 17 brings those of `ENDING`. What was answered against the server's
# assessment stops it too (`gates.answered_against`), and so does a commit with something to be read.
PIPELINED: frozenset[tuple[Place, Place]] = frozenset(
    {
        (DOCUMENT_RESEARCH, QUERY_FRAME),
        (QUERY_FRAME, EXPLORATION),
        (QUERY_FRAME, READY_PLAN),
        (EXPLORATION, Q1),
        (Q1, Q2),
        (Q2, Q3),
        (Q3, READY_PLAN),
        (READY_IMPL, READY_IMPL),
        (READY_IMPL, READY_COMPLETE),
        (PRE_COMMIT, QUALITY_REVIEW),
        (PRE_COMMIT, MERGE),
        (QUALITY_REVIEW, MERGE),
    }
)
AHEAD: tuple[Place, ...] = (QUERY_FRAME, EXPLORATION, Q1, READY_PLAN)
"""The places whose instructions come with that of the session's first step, where they follow it."""
ENDING: tuple[Place, ...] = (QUALITY_REVIEW, MERGE)
"""The places whose instructions come with that of PRE_COMMIT, where they follow it."""


@dataclass(frozen=True, slots=True)
class Counters:
    """The loop counters of SPEC 3.4; `task_failures` is the highest failure count of any task."""

    verification_failures: int = 0
    task_failures: int = 0
    interventions: int = 0
    quality_reverts: int = 0


@dataclass(frozen=True, slots=True)
class RouteFacts:
    """What the session found out about its own road: at the start, and by Q1 to Q3."""

    stale_branches: bool = False
    documents_enabled: bool = True
    q1: bool = False
    q2: bool = False
    q3: bool = False


@dataclass(frozen=True, slots=True)
class Route:
    """Everything the table needs to know of a session."""

    intent: Intent
    flags: Flags
    answers: RouteFacts = RouteFacts()

    @property
    def investigating(self) -> bool:
        """Whether nothing is going to be implemented."""
        return self.intent in {Intent.INVESTIGATE, Intent.QUESTION} or self.flags.only_explore

    def reasons(self) -> frozenset[Reason]:
        """The reasons that hold, after the precedence of SPEC 3.2: only_verify, then investigation, then the rest."""
        flags, answers = self.flags, self.answers
        gate_full = flags.gate_level is GateLevel.FULL
        held = {
            Reason.DOC_DISABLED: not answers.documents_enabled,
            Reason.NO_STALE_BRANCH: not answers.stale_branches,
            Reason.Q1_NO: not (answers.q1 or gate_full),
            Reason.Q2_NO: not (answers.q2 or gate_full),
            Reason.Q3_NO: not (answers.q3 or gate_full),
        }
        if flags.only_verify:
            held[Reason.ONLY_VERIFY] = True
        elif self.investigating:
            held |= {Reason.INVESTIGATION: True, Reason.NO_DOC: flags.no_doc}
        else:
            held |= {
                Reason.NO_DOC: flags.no_doc,
                Reason.NO_VERIFY: flags.no_verify,
                Reason.NO_QUALITY: flags.no_quality,
                Reason.FAST: flags.fast,
                Reason.QUICK: flags.quick,
                Reason.NO_INTERVENTION: flags.no_intervention,
                Reason.WORKTREE: flags.worktree,
            }
        return frozenset(reason for reason, holds in held.items() if holds)

    def runs(self, place: Place) -> bool:
        """Whether the matrix lets this session come to `place`."""
        return not (SKIPPED[place] & self.reasons())

    def gates_skipped_by_flag(self) -> tuple[str, ...]:
        """The phases that would have run but for a flag, for the commit trailer and the report (SPEC 3.2)."""
        held = self.reasons() & _FLAG_REASONS
        return tuple(place.contract_key for place in (*ORDER, VERIFY_INTERVENTION) if SKIPPED[place] & held)

    def ignored_flags(self) -> tuple[str, ...]:
        """The set flags that this road never looks at (they shape only what does not run)."""
        if self.flags.only_verify:
            shaping = {"no_quality", "fast", "quick", "no_doc", "no_intervention", "gate_level"}
        elif self.investigating:
            shaping = {"no_verify", "no_quality", "fast", "quick", "no_intervention", "worktree"}
        else:
            return ()
        return tuple(name for name in self.flags.set_names() if name in shaping)


@dataclass(frozen=True, slots=True)
class Settled:
    """Where an event led, with the counters as they then stand.

    `forced` where a limit moved the session on (quality issues unresolved); `needs_user` where a limit hands over.
    """

    to: Place | End
    counters: Counters
    forced: bool = False
    needs_user: bool = False


class IllegalMove(Exception):
    """An event that the table does not know at this place."""


def begin(route: Route) -> Place:
    """The first place of a session."""
    first = _forward(route, -1)
    assert isinstance(first, Place), "every road has a first place"  # proven for every flag set by a test
    return first


def settle(route: Route, place: Place, event: Event, counters: Counters) -> Settled:
    """Follow the table from `place` on `event`. Raises IllegalMove for a pair that is not in it."""
    target = TABLE.get((place, event))
    if target is None:
        raise IllegalMove(f"{event} at {place}")
    counters = _after_event(event, counters)
    if isinstance(target, Place):
        return Settled(target, counters)
    if target is Target.FORWARD:
        return Settled(_forward(route, ORDER.index(place)), counters)
    if target is Target.FAILURE:
        return _failed(route, counters)
    if target is Target.QUALITY:
        return _quality(route, counters)
    return Settled(End.COMPLETE if target is Target.COMPLETE else End.ABANDONED, counters)


def _after_event(event: Event, counters: Counters) -> Counters:
    """The counters that an event moves, before any limit is looked at. Failing tasks are counted by the handler."""
    failures, quality = counters.verification_failures, counters.quality_reverts
    if event in {Event.FAILED, Event.REVERTED}:
        return Counters(failures + 1, counters.task_failures, counters.interventions, quality)
    if event is Event.INTERVENED:
        return Counters(0, 0, counters.interventions + 1, quality)
    if event is Event.COMMITTED:
        return Counters(0, counters.task_failures, counters.interventions, quality)
    if event is Event.ISSUES:
        return Counters(failures, counters.task_failures, counters.interventions, quality + 1)
    return counters


def _forward(route: Route, index: int) -> Place | End:
    reasons = route.reasons()
    return next((place for place in ORDER[index + 1 :] if not SKIPPED[place] & reasons), End.COMPLETE)


def _failed(route: Route, counters: Counters) -> Settled:
    if not route.runs(READY_PLAN):
        return Settled(End.COMPLETE, counters)
    worst = max(counters.verification_failures, counters.task_failures)
    if route.runs(VERIFY_INTERVENTION):
        to = VERIFY_INTERVENTION if worst >= FAILURE_LIMIT else READY_PLAN
        return Settled(to, counters, needs_user=to is VERIFY_INTERVENTION and escalates(counters))
    return Settled(READY_PLAN, counters, needs_user=hands_over(route, READY_PLAN, counters))


def _quality(route: Route, counters: Counters) -> Settled:
    if counters.quality_reverts >= QUALITY_LIMIT:
        return Settled(_forward(route, ORDER.index(QUALITY_REVIEW)), counters, forced=True)
    return Settled(READY_PLAN, counters)


class SessionPosition(Protocol):
    """What is at a place: a session."""

    phase: Phase
    substep: Substep | None
    verification_failure_count: int
    intervention_count: int
    quality_revert_count: int


def enter(standing: SessionPosition, settled: Settled) -> None:
    """Write where an event led and its counters: the only assignment of a phase. An end keeps the last place."""
    counters = settled.counters
    standing.verification_failure_count = counters.verification_failures
    standing.intervention_count = counters.interventions
    standing.quality_revert_count = counters.quality_reverts
    if isinstance(settled.to, Place):
        standing.phase, standing.substep = settled.to.phase, settled.to.substep


def hands_over(route: Route, place: Place, counters: Counters) -> bool:
    """Whether the user must say how to plan: every third failure in a row, where flags leave no intervention (SPEC 3.4)."""
    failures = counters.verification_failures
    return (
        place == READY_PLAN and failures > 0 and failures % FAILURE_LIMIT == 0 and not route.runs(VERIFY_INTERVENTION)
    )


def escalates(counters: Counters) -> bool:
    """Whether the next intervention must ask the user (SPEC 3.4)."""
    return counters.interventions >= ESCALATION_LIMIT
