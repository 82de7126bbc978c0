"""Tasks and their checklists: what a plan may be, and in which order it is reported (SPEC 4, READY)."""

import hashlib
import json
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, StrictBool, StrictStr

from code_intel_server.common.printable import blank
from code_intel_server.errors import Rejected
from code_intel_server.flow.transitions import FAILURE_LIMIT

Said = Annotated[str, AfterValidator(lambda text: "" if blank(text) else text)]
"""A text of the agent's; '' where a reader would see nothing of it."""


class TaskStatus(StrEnum):
    """A task is pending until the server has accepted its report."""

    PENDING = "pending"
    COMPLETED = "completed"


class ItemStatus(StrEnum):
    """A checklist item is pending in a plan, done or skipped in a report."""

    PENDING = "pending"
    DONE = "done"
    SKIPPED = "skipped"


def _in_one_text(value: object) -> object:
    several = isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)
    return ", ".join(value) if several else value  # type: ignore[arg-type]


class ChecklistItem(BaseModel):
    """One implementation item; `evidence` where done (one range or several), `reason` where skipped or where that needs one."""

    model_config = ConfigDict(frozen=True)

    item: str
    status: ItemStatus = ItemStatus.PENDING
    evidence: str | None = None
    reason: str | None = None


class SubmittedItem(ChecklistItem):
    """An item as an agent may write it: ranges as a list too, and nothing that a reader would not see."""

    item: Annotated[Said, BeforeValidator(lambda item: str(item) if type(item) is int else item)]
    evidence: Annotated[str | None, BeforeValidator(_in_one_text)] = None
    reason: Said | None = None


class TaskModel(BaseModel):
    """One task of the plan, as registered and as the server recorded its report; an `independent` one waits for no other."""

    model_config = ConfigDict(frozen=True)

    id: str
    description: str
    status: TaskStatus = TaskStatus.PENDING
    checklist: tuple[ChecklistItem, ...] = ()
    independent: bool = False
    failure_count: int = 0
    revert_reason: str = ""

    @property
    def pending(self) -> bool:
        """Whether its report is still awaited."""
        return self.status is TaskStatus.PENDING


def _item(value: object) -> object:
    return {"item": value} if isinstance(value, str) else value


PlannedItem = Annotated[SubmittedItem, BeforeValidator(_item)]


class PlannedTask(BaseModel):
    """A task as the agent sends it; `files` are those it is to change, as `check_write_target` would be asked for them.

    Counts and reverts are the server's; what a payload says of them is ignored.
    """

    id: Said
    description: Said = ""
    status: TaskStatus | None = None
    checklist: tuple[PlannedItem, ...] = ()
    independent: StrictBool = False
    files: tuple[StrictStr, ...] = ()


def next_task(tasks: Sequence[TaskModel]) -> TaskModel | None:
    """The task to report next: the first pending one in plan order."""
    return next((task for task in tasks if task.pending), None)


def progress_text(tasks: Sequence[TaskModel]) -> str:
    """`2/5` tasks completed."""
    return f"{sum(not task.pending for task in tasks)}/{len(tasks)}"


def register(recorded: Sequence[TaskModel], plan: Sequence[PlannedTask], revert_reason: str) -> tuple[TaskModel, ...]:
    """The task list after a plan or re-plan; idempotent. Raises Rejected with the READY message that applies.

    Completed tasks are taken from the record, never from the plan, and are in front in their order there; a pending
    one takes the plan's words and keeps the server's counts. A task new since a revert carries the reason of that revert.
    """
    known = {task.id: task for task in recorded}
    _check_plan(known, plan)
    kept = {task.id: task for task in recorded if not task.pending}
    new = (_registered(task, known.get(task.id), revert_reason) for task in plan if task.id not in kept)
    return (*kept.values(), *new)


def plan_digest(plan: Sequence[PlannedTask]) -> str:
    """Identifies a plan as it was sent: the same one again changes nothing (SPEC 3.3)."""
    rows = [
        [task.id, task.description, task.status, [entry.item for entry in task.checklist]]
        + ["independent"] * task.independent
        + ([[*task.files]] if task.files else [])
        for task in plan
    ]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def _check_plan(known: dict[str, TaskModel], plan: Sequence[PlannedTask]) -> None:
    if not plan:
        raise Rejected("failures.READY.empty_tasks")
    ids = [task.id for task in plan]
    if len(set(ids)) != len(ids):
        raise Rejected("failures.READY.duplicate_task_ids")
    for number, task in enumerate(plan, start=1):
        if not task.id.strip():
            raise Rejected("failures.READY.task_id_required", number=number)
        if not task.description.strip():
            raise Rejected("failures.READY.description_required", task_id=task.id)
        completed = task.id in known and not known[task.id].pending
        if task.status is TaskStatus.COMPLETED and not completed:
            raise Rejected("failures.READY.completed_not_recorded", task_id=task.id)
        if task.status is TaskStatus.PENDING and completed:
            raise Rejected("failures.READY.completed_missing", task_id=task.id)
        if not completed:
            _check_checklist(task)
    if not any(task.id not in known or known[task.id].pending for task in plan):
        raise Rejected("failures.READY.no_pending_tasks")


def _check_checklist(task: PlannedTask) -> None:
    items = [entry.item.strip() for entry in task.checklist]
    if not items or not all(items):
        raise Rejected("failures.READY.checklist_required", task_id=task.id)
    twin = next((item for item in items if items.count(item) > 1), None)
    if twin is not None:
        raise Rejected("failures.READY.checklist_items_duplicate", task_id=task.id, item=twin)


def _registered(task: PlannedTask, known: TaskModel | None, revert_reason: str) -> TaskModel:
    items = tuple(ChecklistItem(item=entry.item) for entry in task.checklist)
    return TaskModel(
        id=task.id,
        description=task.description,
        checklist=items,
        independent=task.independent,
        failure_count=known.failure_count if known else 0,
        revert_reason=known.revert_reason if known else revert_reason,
    )


def count_failures(tasks: Sequence[TaskModel], failed: Sequence[str], reason: str) -> tuple[TaskModel, ...]:
    """The tasks with the failing ones counted once more."""
    return tuple(
        task.model_copy(update={"failure_count": task.failure_count + 1, "revert_reason": reason})
        if task.id in failed
        else task
        for task in tasks
    )


def reset_failures(tasks: Sequence[TaskModel]) -> tuple[TaskModel, ...]:
    """The tasks with every failure count at 0, after an intervention."""
    return tuple(task.model_copy(update={"failure_count": 0}) for task in tasks)


def worst(tasks: Sequence[TaskModel]) -> int:
    """The highest failure count of any task; at FAILURE_LIMIT an intervention is due."""
    return max((min(task.failure_count, FAILURE_LIMIT) for task in tasks), default=0)


def expect_report(tasks: Sequence[TaskModel], task_id: str) -> TaskModel:
    """The task that `task_id` may report now. Raises Rejected where there is none, it is done, or another is first.

    One marked independent may be reported before others, as a helper has done it.
    """
    if not tasks:
        raise Rejected("failures.READY.no_tasks")
    task = next((task for task in tasks if task.id == task_id), None)
    if task is None:
        raise Rejected("failures.READY.unknown_task", task_id=task_id, tasks=[known.id for known in tasks])
    if not task.pending:
        raise Rejected("failures.READY.already_completed", task_id=task_id)
    expected = next_task(tasks)
    if expected is not None and expected.id != task_id and not task.independent:
        raise Rejected("failures.READY.wrong_order", expected_task=expected.id, task_id=task_id)
    return task
