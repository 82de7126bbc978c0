"""sync_index, update_context, cleanup_stale_branches (SPEC 2, 6, 9, 11)."""

from code_intel_server.tools.desk import Progress
from code_intel_server.tools.shaping import Fields, plain
from code_intel_server.tools.workbench import Workbench


def sync_index(bench: Workbench, *, rebuild: bool, progress: Progress) -> Fields:
    """Bring Forest and Map up to date, and the symbol cache beside them."""
    desk = bench.desk
    report = desk.index.sync(rebuild=rebuild, progress=progress)
    desk.refresh_symbols()
    shaped = plain(report)
    return {"success": True, **(shaped if isinstance(shaped, dict) else {})}


def update_context(bench: Workbench, summary: str) -> Fields:
    """Store a new summary of the project's rules with the hash of their source."""
    active = bench.sessions.active
    context = active.kit.context if active else bench.desk.read_kit().context
    rules = context.update_context(summary)
    return {"success": True, "source": rules.source, "summary": rules.summary}


def cleanup_stale_branches(bench: Workbench, *, dry_run: bool) -> Fields:
    """Remove every stale task branch recoverably, with the checkpoints of their sessions; in a session with what is next there."""
    sessions = bench.sessions
    desk = sessions.desk
    with desk.mutex:
        desk.check_open()
        active = sessions.active
        mine = active.state.session_id if active else ""
        held = active is not None
        if not held:
            desk.lock.acquire()
        try:
            cleaned = desk.branches(active.kit.config if active else desk.read_kit().config).cleanup_stale(
                dry_run=dry_run
            )
            left = {name.removeprefix("llm_task_") for name in cleaned.left or {}}
            gone = [] if dry_run else sessions.forget_but({mine, *left})
            if not dry_run:
                sessions.measure_anew()
            next_step = sessions.next_step() if held else {}
        finally:
            if not held:
                desk.lock.release()
    return {
        "success": True,
        "dry_run": dry_run,
        "branches": [branch.name for branch in cleaned.branches],
        "archived": [*cleaned.archived],
        "checkpoints_removed": [*gone],
        "left": dict(cleaned.left or {}),
        **next_step,
    }
