"""Work judged a second time, against what is to be committed: what a report showed must still be there (SPEC 4, PRE_COMMIT)."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from code_intel_server.flow.checks.judgement import REASON_LENGTH, Judge
from code_intel_server.flow.payloads import CommitPayload
from code_intel_server.flow.session import REASON_AT_MOST, SessionState, UsedRange
from code_intel_server.flow.tasks import ItemStatus
from code_intel_server.flow.turn import Turn

_FILES_SEARCHED = 50


class Undone(NamedTuple):
    """An item whose evidence no longer counts, and the reason given for that; '' where there is none."""

    task_id: str
    item: str
    evidence: str
    reason: str

    def __str__(self) -> str:
        """`t1: Return two (app.py:2)`."""
        return f"{self.task_id}: {self.item} ({self.evidence})"


def undone(turn: Turn[CommitPayload], judge: Judge, left: Sequence[str]) -> list[Undone]:
    """The reported items of which no evidence counts in the judge's snapshot, `left` being what stays out of the commit.

    A decision about the file with a reason is the reason; an item that a later task repeats is that task's.
    """
    if not judge.state.trees.base or not judge.now:
        return []
    found = []
    for used in _open(judge.state):
        if any(one.path not in left and judge.still_counts(one) for one in used):
            continue
        if all(one.path in left for one in used) or not any(_is_elsewhere(judge, one) for one in used):
            where = ", ".join(f"{one.path}:{one.start}-{one.end}" for one in used)
            found.append(Undone(used[0].task_id, used[0].item, where, _reason(turn, used)))
    return found


def reworked(judge: Judge, gone: Sequence[Undone]) -> list[str]:
    """The items whose reported lines do something else in the judge's snapshot than at their report, without being `gone`."""
    if not judge.state.trees.base or not judge.now:
        return []
    known = {(one.task_id, one.item) for one in gone}
    found = [
        one
        for used in _open(judge.state)
        for one in used
        if (one.task_id, one.item) not in known and judge.reworked(one)
    ]
    return [f"{one.task_id}: {one.item} ({one.path}:{one.start}-{one.end})" for one in found]


def _open(state: SessionState) -> Iterable[list[UsedRange]]:
    """The evidence of every done item that no later task says something about."""
    items: dict[tuple[str, str], list[UsedRange]] = {}
    for used in state.used_ranges:
        items.setdefault((used.task_id, used.item), []).append(used)
    last = {item.item: task.id for task in state.tasks if not task.pending for item in task.checklist}
    done = {(task.id, one.item) for task in state.tasks for one in task.checklist if one.status is ItemStatus.DONE}
    return (used for (task_id, item), used in items.items() if last.get(item) == task_id and (task_id, item) in done)


def _is_elsewhere(judge: Judge, used: UsedRange) -> bool:
    """Whether the lines that were shown count in another place by now: work that was moved is not undone."""
    tree = judge.ports.tree
    then = judge.state.trees.by_task.get(used.task_id, "")
    lines = tree.lines(then, used.path) if then else None
    wanted = {line.strip() for line in (lines or ())[used.start - 1 : used.end] if len(line.strip()) > 1}
    if not wanted:
        return False
    found: set[str] = set()
    for path in [*dict.fromkeys(change.path for change in judge.changes.values())][:_FILES_SEARCHED]:
        for number, line in enumerate(tree.lines(judge.now, path) or (), 1):
            if line.strip() in wanted - found and judge.counts_at(path, number, number):
                found.add(line.strip())
    return 2 * len(found) >= len(wanted)


def _reason(turn: Turn[CommitPayload], used: Sequence[UsedRange]) -> str:
    normal = turn.ports.evidence.normal
    paths = {one.path for one in used}
    given = (entry.reason.strip() for entry in turn.payload.reviewed_files if normal(entry.path) in paths)
    return next((reason[:REASON_AT_MOST] for reason in given if len(reason) >= REASON_LENGTH), "")
