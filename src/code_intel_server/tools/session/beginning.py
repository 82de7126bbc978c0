"""What a session begins as: where its road starts, and how the project looks then (SPEC 3, 6)."""

from datetime import datetime

from code_intel_server.flow.session import SessionState, Trees
from code_intel_server.flow.transitions import Route, RouteFacts, begin
from code_intel_server.tools.services import ProjectServices, SessionSettings, now
from code_intel_server.workspace.git.repository import TASK_PREFIX
from code_intel_server.workspace.project.trust import Approvals
from code_intel_server.workspace.state.checkpoints import new_session_id
from code_intel_server.workspace.values import Survey, TaskBranch


def fresh_id(services: ProjectServices, survey: Survey) -> str:
    """An id that no branch and no checkpoint bears."""
    taken = {name.removeprefix(TASK_PREFIX) for name in survey.stale}
    taken |= {file.stem for file in services.project.sessions.glob("*.json")}
    return new_session_id(datetime.now(), services.private, taken.__contains__)  # noqa: DTZ005 - read by people


def fresh(
    services: ProjectServices,
    route: Route,
    query: str,
    settings: SessionSettings,
    survey: Survey,
    branch: TaskBranch | None = None,
) -> SessionState:
    """The state of a new session; nothing is written. `branch` is its own where it has a worktree to itself: no other is in its way."""
    session_id = branch.name.removeprefix(TASK_PREFIX) if branch else fresh_id(services, survey)
    services.tree.follow_ignored()
    start = services.tree.snapshot() if survey.git else ""
    answers = RouteFacts(bool(survey.stale), settings.context.context.research_enabled)
    place = begin(Route(route.intent, route.flags, answers))
    config = settings.config
    return SessionState(
        earlier_config=bool(config.config.verify_commands) and Approvals().superseded(config.path, config.digest),
        session_id=session_id,
        intent=route.intent,
        query=query,
        flags=route.flags,
        started_at=now(),
        phase=place.phase,
        substep=place.substep,
        stale_branches=answers.stale_branches,
        documents_enabled=answers.documents_enabled,
        headless_branches=settings.config.config.headless.stale_branches,
        headless_escalation=settings.config.config.headless.escalation,
        base=branch.base if branch else survey.current,
        task_branch=branch,
        head_at_start=survey.head,
        tip=survey.head,
        trees=Trees(start=start, base=start, judged=start),
        worktrees_within=[*services.tree.worktrees()] if start else [],
        digests=settings.digests(),
    )
