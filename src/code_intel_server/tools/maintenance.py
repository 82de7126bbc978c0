"""sync_index, update_context, cleanup_stale_branches (SPEC 2, 6, 9, 11)."""

from code_intel_server.common.plain import plain
from code_intel_server.tools.current_project import CurrentProject
from code_intel_server.tools.services import ToolProgress
from code_intel_server.tools.shaping import Fields


def sync_index(current: CurrentProject, *, rebuild: bool, progress: ToolProgress) -> Fields:
    """Bring Forest and Map up to date, and the symbol cache besides them."""
    services = current.services
    report = services.index.sync(rebuild=rebuild, progress=progress)
    services.refresh_symbols()
    shaped = plain(report)
    return {"success": True, **(shaped if isinstance(shaped, dict) else {})}


def update_context(current: CurrentProject, summary: str) -> Fields:
    """Store a new summary of the project's rules with the hash of their source."""
    active = current.sessions.active
    context = active.settings.context if active else current.services.read_kit().context
    rules = context.update_context(summary)
    return {"success": True, "source": rules.source, "summary": rules.summary}


def cleanup_stale_branches(current: CurrentProject, *, dry_run: bool) -> Fields:
    """Remove every stale task branch recoverably, with the checkpoints of their sessions; in a session with what is next there."""
    sessions = current.sessions
    services = sessions.services
    with services.mutex:
        services.check_open()
        active = sessions.active
        mine = active.state.session_id if active else ""
        in_session = active is not None
        if not in_session:
            services.lock.acquire()
        try:
            cleaned = services.branches(active.settings.config if active else services.read_kit().config).cleanup_stale(
                dry_run=dry_run
            )
            left = {name.removeprefix("llm_task_") for name in cleaned.left or {}}
            gone = [] if dry_run else sessions.forget_but({mine, *left})
            if not dry_run:
                sessions.measure_anew()
            next_step = sessions.next_step() if in_session else {}
        finally:
            if not in_session:
                services.lock.release()
    return {
        "success": True,
        "dry_run": dry_run,
        "branches": [branch.name for branch in cleaned.branches],
        "archived": [*cleaned.archived],
        "checkpoints_removed": [*gone],
        "left": dict(cleaned.left or {}),
        **next_step,
    }
