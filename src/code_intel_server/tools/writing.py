"""check_write_target, add_explored_files, review_changes: what may be written, and what was (SPEC 2, 4)."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from pydantic import JsonValue

from code_intel_server.codebase.files.roles import is_test_file
from code_intel_server.errors import CodeIntelError, Rejected
from code_intel_server.flow.checks.judgement import REASON_LENGTH, left_by_runs, list_of_paths, why_writable_now
from code_intel_server.flow.checks.writable import Why
from code_intel_server.flow.handlers.ready import CHECKED_AT_MOST
from code_intel_server.flow.handlers.review import committed, uncompared
from code_intel_server.flow.phases import READY_COMPLETE, READY_IMPL, Phase
from code_intel_server.flow.ports import Ports
from code_intel_server.flow.responses import say
from code_intel_server.flow.session import REASON_AT_MOST, SessionState
from code_intel_server.flow.turn import Note
from code_intel_server.tools.current_project import CurrentProject
from code_intel_server.tools.guard import REVIEW_ROWS, note_call
from code_intel_server.tools.services import ProjectServices, now
from code_intel_server.tools.session.answers import tasks_of
from code_intel_server.tools.session.sessions import Active, Sessions
from code_intel_server.tools.shaping import AROUND, DEFAULT_CHARACTERS, Fields, fitting_rows, narrowed, size_of
from code_intel_server.workspace.paths import Project
from code_intel_server.workspace.tree.review import ReviewPage, review

ADDED_AT_MOST = 20_000
_WEAK_CHARACTERS = 2_500
_DIFFS_IN_JSON = 2
"""A diff of nothing but quotes is twice as long in JSON; the whole diff of a file is not cut for that."""
_REFUSALS = {
    Why.UNEXPLORED: "tool_errors.check_write_target.write_blocked",
    Why.EARLY: "tool_errors.check_write_target.write_plan_first",
}


def _active(sessions: Sessions) -> Active:
    if sessions.active is None:
        raise Rejected("session_messages.no_active_session")
    return sessions.active


def check_write_target(current: CurrentProject, paths: Sequence[str]) -> Fields:
    """May these files be written? `{path, allowed, reason}` of each, and the ways out for those that may not."""
    active = _active(current.sessions)
    wanted = list(dict.fromkeys(path for path in paths if path.strip()))
    if not 0 < len(wanted) <= CHECKED_AT_MOST:
        expected = f"1 to {CHECKED_AT_MOST} paths"
        raise Rejected("tool_errors.generic.argument_invalid", field="paths", expected=expected)
    ports = current.sessions.ports(active)
    active = current.sessions.take_looked_at(active)
    verdicts = [row for path in wanted for row in _verdicts(active, ports, current.services.project, path)]
    remedies = dict.fromkeys(str(row.pop("remedy")) for row in verdicts if "remedy" in row)
    answer: Fields = {"results": [*verdicts], "allowed": all(row["allowed"] for row in verdicts)}
    return answer | ({"remedy": " ".join(remedies)} if remedies else {})


def _verdicts(active: Active, ports: Ports, project: Project, path: str) -> Iterator[Fields]:
    """The row of a path; of a link one for what it leads to and one for itself."""
    reasons: dict[str, Why | None] = {path: None}
    with suppress(CodeIntelError):
        reasons = {name: why_writable_now(active.state, ports, name) for name in _names(project, path)}
    for name, why in reasons.items():
        if why is not None and why.allowed:
            yield {"path": name, "allowed": True, "reason": str(why)}
            continue
        key = _REFUSALS[why] if why else "tool_errors.check_write_target.outside_project"
        message = active.settings.contract.message(key, {"path": path})
        row: Fields = {"path": name, "allowed": False, "reason": message.text, "error": message.error}
        yield row | ({"remedy": message.instruction} if message.instruction else {})


def add_explored_files(current: CurrentProject, paths: Sequence[str], reason: str) -> Fields:
    """Widen the writable set, with a reason that is logged and kept."""
    sessions = current.sessions
    services = sessions.services
    with services.mutex:
        active = _active(sessions)
        if not paths:
            raise Rejected("tool_errors.add_explored_files.no_files")
        if len(reason.strip()) < REASON_LENGTH:
            raise Rejected("tool_errors.add_explored_files.reason_required")
        state, named = active.state.draft(), {path: _names(services.project, path) for path in paths}
        added = list(dict.fromkeys(name for names in named.values() for name in names))
        folders = _folders(services, state, added)
        if empty := [path for path, names in named.items() if folders.issuperset(names)]:
            raise Rejected("tool_errors.add_explored_files.folder_named", files=list_of_paths(empty))
        added = [name for name in added if name not in folders]
        state.added_files |= dict.fromkeys(added, reason.strip()[:REASON_AT_MOST])
        state.explained_files = sorted({*state.explained_files, *_explained(state, sessions.ports(active), added)})
        if len(state.added_files) > ADDED_AT_MOST:
            size, limit = f"{len(state.added_files)} items", f"{ADDED_AT_MOST} files in a session"
            raise Rejected("common_failures.payload_too_large", field="paths", size=size, limit=limit)
        services.store.save(state.session_id, state.to_checkpoint())
        sessions.active = replace(active, state=state)
        services.decisions.append(
            {
                "ts": now(),
                "session_id": state.session_id,
                "what": "add_explored_files",
                "paths": added,
                "reason": reason,
            }
        )
    return {"added": [*added], "reason": reason.strip(), "writable": len(state.explored_files) + len(state.added_files)}


def _folders(services: ProjectServices, state: SessionState, names: Sequence[str]) -> set[str]:
    """Those of the names that are folders, and no repository within nor what was a file when the session began."""
    found = [
        name
        for name in names
        if services.project.root.joinpath(name).is_dir() and not services.project.root.joinpath(name).is_symlink()
    ]
    tree = services.tree
    return (
        {*found}.difference(*(tree.oids(at, found) for at in (state.trees.start, tree.snapshot()))) if found else set()
    )


def _explained(state: SessionState, ports: Ports, added: Sequence[str]) -> list[str]:
    """Those of the paths that may be written now, or were before they were added: the reason speaks of that change."""
    if state.place in {READY_IMPL, READY_COMPLETE}:
        return [*added]
    now = ports.tree.snapshot() if state.trees.judged else ""
    changes = ports.tree.changes(state.trees.judged, now) if now else ()
    changed = {path for change in changes for path in (change.path, change.old_path)}
    return [path for path in added if path in changed]


def _names(project: Project, path: str) -> list[str]:
    """Where a path leads, and a link by its own name; only the latter where it leads out of the project."""
    own = project.inside(path, follow=False)
    try:
        target = project.inside(path)
    except Rejected:
        if not (project.root / own).is_symlink():
            raise
        return [own]
    return [target] if own == target else [target, own]


def review_changes(current: CurrentProject, path: str | None, limit: int, offset: int) -> Fields:
    """Every change since the base as a reviewable list; one path shows its whole diff."""
    active = _active(current.sessions)
    state, services = active.state, current.services
    if not state.trees.base:
        raise Rejected("tool_errors.review_changes.task_branch_not_enabled")
    if state.phase is Phase.READY and not state.trees.ready:
        raise Rejected("tool_errors.review_changes.phase_blocked", phase=state.phase)
    present = services.tree.snapshot()
    ports = current.sessions.ports(active)
    wanted = None if path is None else _names(services.project, path)[-1]
    done, own = frozenset[str](), set[str]()
    if wanted is None:
        own = left_by_runs(state, ports, present)
        if state.phase is not Phase.QUALITY_REVIEW:
            done = committed(state, ports, services.tree.changes(state.trees.base, present), present) - own
    page = review(
        services.tree,
        state.trees.base,
        present,
        path=wanted,
        limit=min(max(limit, 1), REVIEW_ROWS),
        offset=max(offset, 0),
        tasks=tasks_of(services, state),
        characters=DEFAULT_CHARACTERS,
        needs_reason=lambda change: uncompared(state, ports, change),
        without=own | done,
        last=is_test_file,
    )
    if wanted and not page.total and services.tree.changes(state.trees.base, present):
        expected = "a path below which something changed"
        raise Rejected("tool_errors.generic.argument_invalid", field="path", expected=expected)
    more: Fields = {"tree": present} | ({"committed": len(done)} if done else {})
    return _page_as_answer(active, page, max(offset, 0), more) | _weak_evidence(state)


def _page_as_answer(active: Active, page: ReviewPage, offset: int, more: Fields) -> Fields:
    """As much of a page as the answer has room for, and how to see the rest."""
    found = [row.as_row() for row in page.rows]
    counted = any("lines" in row for row in found)
    room = page.characters - AROUND - size_of(_weak_evidence(active.state))
    shown = fitting_rows(found, _DIFFS_IN_JSON * page.characters if page.whole and not counted else room)
    following = offset + shown.rows
    truncated = following < page.total or shown.narrowed or any("cut" in row for row in found)
    answer: Fields = {
        "results": shown.results,
        "total": page.total,
        "truncated": truncated,
        "engine": "tree",
        "complete": not truncated,
        **more,
    }
    if following < page.total:
        answer["next_offset"] = following
    cut: list[JsonValue] = [row.path for row in page.rows[: shown.rows] if row.cut]
    if shown.narrowed:
        cut = [page.rows[0].path]
    if cut and page.total > 1:
        answer |= {"cut": cut, "remedy": say(active.settings.contract, Note("hints.shown_in_part"))}
    return answer


def with_review(current: CurrentProject, answer: Fields, check: Callable[[], None]) -> Fields:
    """The answer to a submit, at PRE_COMMIT with the changes where they are small: then nobody has to ask for them.

    `check` raises where nobody waits for the answer.
    """
    active = current.sessions.active
    if active is None or not answer.get("success") or answer.get("phase") != Phase.PRE_COMMIT:
        return answer
    try:
        found = review_changes(current, None, REVIEW_ROWS, 0)
    except CodeIntelError:
        return answer  # review_changes says why
    if not found["complete"] or size_of(found) > DEFAULT_CHARACTERS - AROUND - size_of(answer):
        return answer
    check()
    note_call(active, "review_changes", "ok", found)
    return answer | {"review": found["results"]} | _weak_evidence(active.state)


def _weak_evidence(state: SessionState) -> Fields:
    """The ranges that passed for their reason alone, as many as there is room for."""
    weak: list[JsonValue] = [
        {
            "item": used.item,
            "task": used.task_id,
            "path": used.path,
            "start_line": used.start,
            "end_line": used.end,
            "reason": used.reason,
        }
        for used in state.used_ranges
        if used.trivial
    ]
    return narrowed({"weak_evidence": weak}, _WEAK_CHARACTERS) if weak else {}
