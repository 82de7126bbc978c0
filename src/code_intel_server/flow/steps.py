"""The steps of the flow, one row each: its place, the payload that is submitted there, and what judges it (SPEC 4.2).

A new phase is a row here, its place in `phases`, its moves in `transitions` and its texts in the contract.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from pydantic import JsonValue

from code_intel_server.flow.handlers import delivery, exploration, gates, intake, ready, verdict
from code_intel_server.flow.payloads import (
    BranchPayload,
    CommitPayload,
    CompletionPayload,
    DocumentPayload,
    ExplorationPayload,
    HypothesesPayload,
    ImpactPayload,
    InterventionPayload,
    MergePayload,
    P,
    Payload,
    PlanPayload,
    Q1Payload,
    Q2Payload,
    Q3Payload,
    QualityPayload,
    QueryFramePayload,
    ReportPayload,
    SemanticPayload,
    VerdictPayload,
    validate,
)
from code_intel_server.flow.phases import (
    BRANCH_INTERVENTION,
    DOCUMENT_RESEARCH,
    EXPLORATION,
    IMPACT_ANALYSIS,
    MERGE,
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
    Phase,
    Place,
)
from code_intel_server.flow.ports import Ports
from code_intel_server.flow.session import SessionState
from code_intel_server.flow.turn import Outcome, Turn

Fields = Mapping[str, JsonValue]

_COMMON = frozenset(Payload.model_fields)


@dataclass(frozen=True, slots=True)
class Step:
    """A place of the flow, the model of its payload, and `begin`, which gives a turn and what judges it.

    `begin` raises Rejected for a payload of the wrong shape; judging changes the turn's draft, or raises Rejected.
    """

    place: Place
    payload: type[Payload]
    begin: Callable[[SessionState, Fields, Mapping[str, str], Ports], tuple[Turn[Payload], Callable[[], Outcome]]]

    @property
    def fields(self) -> frozenset[str]:
        """The fields of its payload besides those that every payload may carry."""
        return frozenset(self.payload.model_fields) - _COMMON


def _step(place: Place, payload: type[P], handler: Callable[[Turn[P]], Outcome]) -> Step:
    """A row: the types say that its handler takes its payload."""

    def begin(
        draft: SessionState, data: Fields, expected: Mapping[str, str], ports: Ports
    ) -> tuple[Turn[Payload], Callable[[], Outcome]]:
        turn = Turn(draft, validate(payload, data, expected), ports)
        return turn, partial(handler, turn)

    return Step(place, payload, begin)


_ROWS = (
    _step(BRANCH_INTERVENTION, BranchPayload, intake.branch_intervention),
    _step(DOCUMENT_RESEARCH, DocumentPayload, intake.document_research),
    _step(QUERY_FRAME, QueryFramePayload, intake.query_frame),
    _step(EXPLORATION, ExplorationPayload, exploration.exploration),
    _step(Q1, Q1Payload, gates.q1),
    _step(SEMANTIC, SemanticPayload, exploration.semantic),
    _step(Q2, Q2Payload, gates.q2),
    _step(VERIFICATION, HypothesesPayload, exploration.verification),
    _step(Q3, Q3Payload, gates.q3),
    _step(IMPACT_ANALYSIS, ImpactPayload, exploration.impact_analysis),
    _step(READY_PLAN, PlanPayload, ready.plan),
    _step(READY_IMPL, ReportPayload, ready.report),
    _step(READY_COMPLETE, CompletionPayload, ready.completion),
    _step(POST_IMPL_VERIFY, VerdictPayload, verdict.post_impl_verify),
    _step(VERIFY_INTERVENTION, InterventionPayload, verdict.verify_intervention),
    _step(PRE_COMMIT, CommitPayload, delivery.pre_commit),
    _step(QUALITY_REVIEW, QualityPayload, delivery.quality_review),
    _step(MERGE, MergePayload, delivery.merge),
)
BY_PLACE: Mapping[Place, Step] = {step.place: step for step in _ROWS}


def ignored_fields(place: Place, data: Fields) -> list[str]:
    """The fields of a payload that its place does not know."""
    return sorted(set(data) - _COMMON - BY_PLACE[place].fields)


def fits_another(place: Place, data: Fields) -> Phase | None:
    """The phase whose fields a payload carries when it carries none of its own place's."""
    given = set(data) - _COMMON
    if given & BY_PLACE[place].fields:
        return None
    best = max(BY_PLACE.values(), key=lambda other: len(given & other.fields))
    return best.place.phase if given & best.fields and best.place.phase is not place.phase else None
