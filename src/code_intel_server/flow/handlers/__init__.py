"""The per-phase handler table: one plain function a place (DESIGN 2)."""

from collections.abc import Callable, Mapping
from typing import cast

from code_intel_server.flow.handlers import delivery, exploration, gates, intake, ready, verification
from code_intel_server.flow.payloads import Payload
from code_intel_server.flow.phases import READY_COMPLETE, READY_IMPL, READY_PLAN, Phase, Place
from code_intel_server.flow.turn import Outcome, Turn

AnyHandler = Callable[[Turn[Payload]], Outcome]

# A handler takes the payload model that `payloads.MODELS` names for its place; the cast says just that.
HANDLERS: Mapping[Place, AnyHandler] = {
    Place(Phase.BRANCH_INTERVENTION): cast("AnyHandler", intake.branch_intervention),
    Place(Phase.DOCUMENT_RESEARCH): cast("AnyHandler", intake.document_research),
    Place(Phase.QUERY_FRAME): cast("AnyHandler", intake.query_frame),
    Place(Phase.EXPLORATION): cast("AnyHandler", exploration.exploration),
    Place(Phase.Q1): cast("AnyHandler", gates.q1),
    Place(Phase.SEMANTIC): cast("AnyHandler", exploration.semantic),
    Place(Phase.Q2): cast("AnyHandler", gates.q2),
    Place(Phase.VERIFICATION): cast("AnyHandler", exploration.verification),
    Place(Phase.Q3): cast("AnyHandler", gates.q3),
    Place(Phase.IMPACT_ANALYSIS): cast("AnyHandler", exploration.impact_analysis),
    READY_PLAN: cast("AnyHandler", ready.plan),
    READY_IMPL: cast("AnyHandler", ready.report),
    READY_COMPLETE: cast("AnyHandler", ready.completion),
    Place(Phase.POST_IMPL_VERIFY): cast("AnyHandler", verification.post_impl_verify),
    Place(Phase.VERIFY_INTERVENTION): cast("AnyHandler", verification.verify_intervention),
    Place(Phase.PRE_COMMIT): cast("AnyHandler", delivery.pre_commit),
    Place(Phase.QUALITY_REVIEW): cast("AnyHandler", delivery.quality_review),
    Place(Phase.MERGE): cast("AnyHandler", delivery.merge),
}
