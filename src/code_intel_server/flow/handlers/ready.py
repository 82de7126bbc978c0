"""Steps 12 to 14: the plan, the reports, the completion (SPEC 4, READY)."""

from collections import Counter
from collections.abc import Iterable

from pydantic import JsonValue

from code_intel_server.errors import Rejected
from code_intel_server.flow.checks.judgement import (
    REASON_LENGTH,
    Judge,
    has_reason,
    left_by_runs,
    list_of_paths,
    paths_of,
    refuse_uncommitted_within,
    refuse_unexplored,
    rejected_paths,
    take_looked_at,
    unwritable,
)
from code_intel_server.flow.payloads import CompletionPayload, PlanPayload, ReportPayload
from code_intel_server.flow.phases import EXPLORATION, READY_PLAN, Event
from code_intel_server.flow.ports import Ports
from code_intel_server.flow.session import REASON_AT_MOST, SessionState, UsedRange
from code_intel_server.flow.tasks import (
    ChecklistItem,
    ItemStatus,
    TaskModel,
    TaskStatus,
    expect_report,
    next_task,
    plan_digest,
    progress_text,
    register,
)
from code_intel_server.flow.turn import Note, Outcome, Turn

CHECKED_AT_MOST = 100
"""Paths that a plan, or one call of `check_write_target`, may ask for."""


def plan(turn: Turn[PlanPayload]) -> Outcome:
    """Register the task list; the first one makes the task branch. The same list again changes nothing."""
    state, ports = turn.state, turn.ports
    identity = plan_digest(turn.payload.tasks)
    if state.place != READY_PLAN and state.plan_digest == identity:
        return _planned_already(state)
    dropped = [task.id for task in state.tasks if task.pending and task.id not in {t.id for t in turn.payload.tasks}]
    state.dropped = [name for name in [*state.dropped, *dropped] if name not in {t.id for t in turn.payload.tasks}]
    state.tasks = register(state.tasks, turn.payload.tasks, state.revert_reason)
    take_looked_at(state, ports)
    if not state.trees.ready:
        _enter_ready(turn)
    state.revert_reason, state.plan_digest = "", identity
    state.marks.round = max((call.seq for call in ports.ledger.entries()), default=0)
    changes = f"dropped {', '.join(dropped)}"
    warnings = (Note("warnings.plan_changed", {"changes": changes}),) if dropped else ()
    return Outcome(Event.PLANNED, _standing(state.tasks) | _write_checks(turn), warnings)


def _write_checks(turn: Turn[PlanPayload]) -> dict[str, JsonValue]:
    """Allow the files that the plan's tasks name, where they may be written; those that may not are answered.

    Where no exploration runs, the task that names a file which is there is the reason why it may be written.
    """
    state, ports = turn.state, turn.ports
    named = dict.fromkeys(path for task in turn.payload.tasks for path in task.files)
    if len(named) > CHECKED_AT_MOST:
        limit = f"{CHECKED_AT_MOST} files of a plan"
        raise Rejected("common_failures.payload_too_large", field="files", size=f"{len(named)} items", limit=limit)
    names = {path: _names(ports, path) for path in named}
    if not state.route.runs(EXPLORATION):
        reasons = {name: task.description for task in turn.payload.tasks for path in task.files for name in names[path]}
        strays = unwritable(state, ports, reasons)
        state.added_files |= {
            name: reason[:REASON_AT_MOST]
            for name, reason in reasons.items()
            if name in strays and len(reason) >= REASON_LENGTH and ports.evidence.exists(name)
        }
    strays = unwritable(state, ports, {name for own in names.values() for name in own})
    refused = [path for path, own in names.items() if not own or own & strays]
    # What only lacks a look was asked for all the same: until then it is a stray.
    allowed = (name for path, own in names.items() for name in own if path not in refused or name in state.unseen_files)
    state.explained_files = sorted({*state.explained_files, *allowed})
    return {"not_writable": [*refused]} if refused else {}


def _names(ports: Ports, path: str) -> set[str]:
    """Where a path leads, and a link by its own name; none for what lies outside the project or in a `.git`."""
    found = {name for name in (ports.evidence.own_name(path), ports.evidence.normal(path)) if name}
    return set() if any(part.casefold() == ".git" for name in found for part in name.split("/")) else found


def _planned_already(state: SessionState) -> Outcome:
    """The plan that holds, sent once more: whatever was reported since stays reported."""
    if next_task(state.tasks) is None:
        return Outcome(Event.PLANNED_AGAIN, {"progress": progress_text(state.tasks), "all_complete": True})
    return Outcome(Event.PLANNED, _standing(state.tasks))


def _enter_ready(turn: Turn[PlanPayload]) -> None:
    state, ports = turn.state, turn.ports
    now = turn.now
    touched = _refuse_early_changes(turn, now)
    if state.branch_policy is None and not state.flags.quick and state.task_branch is None:
        # An explanation is one of what the session changed: what was uncommitted before it is the user's (SPEC 6.2).
        mine = ports.tree.uncommitted(state.trees.start, state.head_at_start, sorted(touched))
        explained = touched.difference(mine)
        state.task_branch = ports.branches.create(state.session_id, explained, ports.record, state.pending)
        state.base, state.tip, state.pending = state.task_branch.base, state.task_branch.base_oid, None
    state.trees.ready = state.trees.judged = now


def _refuse_early_changes(turn: Turn[PlanPayload], now: str) -> frozenset[str]:
    """What changed between the session's start and its plan, written before it was understood: refused without a reason.

    What was uncommitted at the start and is now as the last commit has it was undone, which a warning may have asked for.
    """
    state, start, tree = turn.state, turn.state.trees.start, turn.ports.tree
    if not start or not now or start == now:
        return frozenset()
    touched = paths_of(tree.changes(start, now))
    early = touched - set(state.added_files)
    if early and state.head_at_start:
        early &= paths_of(tree.changes(tree.head_snapshot(state.head_at_start), now))
    if early:
        raise rejected_paths("failures.READY.changes_before_ready", "changed", early)
    return frozenset(touched)


def report(turn: Turn[ReportPayload]) -> Outcome:
    """Record a task as completed when its checklist is proven and the tree holds no stray change."""
    state, ports, payload = turn.state, turn.ports, turn.payload
    task = expect_report(state.tasks, payload.task_id)
    items = _checklist(task, payload.checklist)
    now = turn.now
    judge = Judge.at(state, ports, now)
    used = _proven(judge, state, task.id, [item for item in items if item.status is ItemStatus.DONE])
    refuse_unexplored(state, ports, now)
    skipped = _skipped_with_changes(turn, items, now)
    state.tasks = tuple(_completed(t, items) if t.id == task.id else t for t in state.tasks)
    state.round_tasks.append(task.id)
    state.trees.judged = state.trees.by_task[task.id] = now
    state.marks.report = max((call.seq for call in ports.ledger.entries()), default=0)
    trivial = "; ".join(f"{row.item} ({row.reason})" for row in used if row.trivial)
    weak = (Note("warnings.weak_evidence", {"items": trivial}),) if trivial else ()
    unjudged = judge.not_by_syntax()
    if unjudged:
        weak = (*weak, Note("warnings.not_by_syntax", {"files": list_of_paths(unjudged)}))
    if skipped:
        state.only_skipped.append(task.id)
        weak = (*weak, Note("warnings.only_skipped", {"task_id": task.id, "files": list_of_paths(skipped)}))
    if next_task(state.tasks) is None:
        return Outcome(Event.REPORTED_LAST, {"progress": progress_text(state.tasks), "all_complete": True}, weak)
    return Outcome(Event.REPORTED, _standing(state.tasks), weak)


def _proven(judge: Judge, state: SessionState, task_id: str, done: Iterable[ChecklistItem]) -> list[UsedRange]:
    """The ranges that prove these items. A refusal speaks of the first that is not proven and names the others."""
    used: list[UsedRange] = []
    refusals: dict[str, Rejected] = {}
    for item in done:
        try:
            proven = judge.accept(task_id, item)
        except Rejected as refusal:
            refusals[item.item] = refusal
            continue
        used += proven
        state.used_ranges += proven
    if refusals:
        first, *others = refusals
        if others:
            refusals[first].details["refused_too"] = [*others]
        raise refusals[first]
    return used


def _skipped_with_changes(turn: Turn[ReportPayload], items: Iterable[ChecklistItem], now: str) -> list[str]:
    """The files that changed for a task of which every item was skipped."""
    before = turn.state.trees.judged
    if any(item.status is ItemStatus.DONE for item in items) or not before or not now or before == now:
        return []
    own = left_by_runs(turn.state, turn.ports, now)
    return [change.path for change in turn.ports.tree.changes(before, now) if change.path not in own]


def _checklist(task: TaskModel, reported: tuple[ChecklistItem, ...]) -> tuple[ChecklistItem, ...]:
    """The reported items, by their words or their number, in the plan's order, each done or skipped as it must be."""
    planned = [item.item for item in task.checklist]
    numbers = {str(number): name for number, name in enumerate(planned, 1) if str(number) not in planned}
    reported = tuple(item.model_copy(update={"item": numbers.get(item.item, item.item)}) for item in reported)
    if Counter(planned) != Counter(item.item for item in reported):
        raise Rejected("failures.READY.checklist_items_mismatch", details={"checklist": [*planned]})
    by_name = {item.item: item for item in reported}
    for item in by_name.values():
        if item.status is ItemStatus.PENDING:
            raise Rejected("failures.READY.checklist_item_pending", item=item.item)
        if item.status is ItemStatus.SKIPPED and not has_reason(item):
            raise Rejected("failures.READY.checklist_reason_required", item=item.item)
    return tuple(by_name[name] for name in planned)


def _completed(task: TaskModel, reported: tuple[ChecklistItem, ...]) -> TaskModel:
    items = tuple(
        ChecklistItem(
            item=one.item, status=one.status, evidence=one.evidence, reason=one.reason and one.reason[:REASON_AT_MOST]
        )
        for one in reported
    )
    return task.model_copy(update={"status": TaskStatus.COMPLETED, "checklist": items})


def completion(turn: Turn[CompletionPayload]) -> Outcome:
    """Leave READY when every task is reported and nothing strayed since."""
    state, ports = turn.state, turn.ports
    if not state.tasks:
        raise Rejected("failures.READY.no_tasks_registered")
    if state.place == READY_PLAN:
        raise Rejected("failures.READY.plan_after_setback", reason=state.revert_reason)
    pending = [task.id for task in state.tasks if task.pending]
    if pending:
        raise Rejected("failures.READY.incomplete_tasks", details={"pending": [*pending]}, count=len(pending))
    quick_end = state.flags.quick and state.flags.no_verify
    now = ports.tree.snapshot(contents=quick_end)  # nobody looks after it
    refuse_uncommitted_within(state, ports, now)
    refuse_unexplored(state, ports, now)
    state.trees.judged = now
    ending = Note("success.READY.session_complete_no_verify_quick") if quick_end else None
    return Outcome(Event.OK, ending=ending)


def _standing(tasks: tuple[TaskModel, ...]) -> dict[str, JsonValue]:
    """What an agent needs to go on with a plan."""
    upcoming = next_task(tasks)
    assert upcoming is not None  # a plan has a pending task, and so has a report that is not the last
    return {"progress": progress_text(tasks), "next_task": task_brief(upcoming)}


def task_brief(task: TaskModel) -> dict[str, JsonValue]:
    """A pending task as the agent must report it."""
    brief: dict[str, JsonValue] = {
        "id": task.id,
        "description": task.description,
        "checklist": [item.item for item in task.checklist],
    }
    if task.failure_count or task.revert_reason:
        brief |= {"failure_count": task.failure_count, "revert_reason": task.revert_reason}
    return brief
