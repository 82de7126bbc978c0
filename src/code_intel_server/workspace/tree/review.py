"""Every change since the base as a list to be reviewed, with diffs (`review_changes`, SPEC 2)."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from code_intel_server.workspace.tree.tree import TreeJudge
from code_intel_server.workspace.values import Change, ChangeKind, Hunk

DIFF_CHARACTERS = 4_000
PAGE_CHARACTERS = 60_000
CONTEXT_LINES = 3
_READ_AT_ONCE = 25
FEW, WHOLE_CHARACTERS = 8, 30_000
"""So many files are shown whole at once, where their diffs are no longer in all."""
MANY, MANY_LONG, LONG_LINES = 200, 20, 100
"""Of more files, or of more with so many changed lines, only counts are shown: nobody reads a hundred pages of diffs."""
_UNSEEN = "binary, no file, or too large to be shown: look at it yourself"


NeedsReason = Callable[[Change], tuple[str, ...]]
"""Why a change is kept only with a reason; nothing for most."""


@dataclass(frozen=True, slots=True)
class ReviewRow:
    """One changed path. `diff` is unified, `cut` where it was too long, '' for content of which `unseen` says why it is not shown.

    `mode` names git's modes before and now where they differ (`100644 → 100755`: it can be executed now). Of many files
    `lines` counts what the diff adds and takes away, in its place.
    """

    path: str
    status: str
    diff: str
    task: str = ""
    old_path: str = ""
    needs_reason: tuple[str, ...] = ()
    cut: bool = False
    unseen: str = ""
    mode: str = ""
    lines: str = ""

    def as_row(self) -> dict[str, object]:
        """The row as an answer shows it: only what it has to say."""
        row: dict[str, object] = {"path": self.path, "status": self.status}
        row |= {"lines": self.lines} if self.lines else {"diff": self.diff}
        for name in ("task", "old_path", "needs_reason", "cut", "unseen", "mode"):
            value = getattr(self, name)
            if value:
                row[name] = list(value) if isinstance(value, tuple) else value
        return row


@dataclass(frozen=True, slots=True)
class ReviewPage:
    """Rows `offset`… of `total`; `next_offset` where there are more.

    `characters` is what their diffs may fill; `whole` where these are all to be shown whole.
    """

    rows: tuple[ReviewRow, ...]
    total: int
    next_offset: int | None
    characters: int
    whole: bool


def review(
    tree: TreeJudge,
    base: str,
    now: str,
    *,
    path: str | None = None,
    limit: int = 50,
    offset: int = 0,
    tasks: Mapping[str, str] | None = None,
    needs_reason: NeedsReason | None = None,
    without: Collection[str] = (),
    last: Callable[[str], bool] = lambda _: False,
    characters: int = PAGE_CHARACTERS,
) -> ReviewPage:
    """List what differs between two snapshots, in the order of paths, those that are `last` behind all others.

    `path` limits it to a file or folder, `without` leaves paths out.

    A page ends early when its diffs fill `characters`, more where all are shown whole or only counted; so `next_offset` is what to go on with, not `offset + limit`. In a
    list a diff is cut at `DIFF_CHARACTERS`, but for a small change, and of many files only counted; that of a file which is
    asked for alone may fill the page.
    `tasks` maps paths to the task in which they changed.
    """
    changes = (change for change in tree.changes(base, now) if change.path not in without and _within(change, path))
    chosen = sorted(changes, key=lambda change: (last(change.path), change.path))
    alone = len(chosen) == 1 and path in {chosen[0].path, chosen[0].old_path}
    small = alone or _is_small(tree, (base, now), chosen)
    whole = small or path is not None
    characters = PAGE_CHARACTERS if whole or len(chosen) > MANY_LONG else characters
    most = characters if small else DIFF_CHARACTERS
    if len(chosen) > MANY or sum(_changed_lines(change) > LONG_LINES for change in chosen) > MANY_LONG:
        most = 0
    rows: list[ReviewRow] = []
    used = 0
    for row in _rows(tree, (base, now), chosen[offset : offset + max(limit, 1)], tasks or {}, needs_reason, most):
        used += len(row.diff)
        if rows and used > characters:
            break
        rows.append(row)
    end = offset + len(rows)
    return ReviewPage(tuple(rows), len(chosen), end if end < len(chosen) else None, characters, whole)


def _is_small(tree: TreeJudge, sides: tuple[str, str], changes: Sequence[Change]) -> bool:
    """Whether changes are few and short enough to be read at once."""
    if len(changes) > FEW:
        return False
    return sum(len(row.diff) for row in _rows(tree, sides, changes, {}, None, WHOLE_CHARACTERS)) <= WHOLE_CHARACTERS


def _within(change: Change, path: str | None) -> bool:
    if path is None or path in {"", "."}:
        return True
    folder = path.rstrip("/")
    return any(name == folder or name.startswith(folder + "/") for name in (change.path, change.old_path))


def _rows(
    tree: TreeJudge,
    sides: tuple[str, str],
    changes: Sequence[Change],
    tasks: Mapping[str, str],
    needs_reason: NeedsReason | None,
    most: int,
) -> Iterator[ReviewRow]:
    """The rows of changes, whose texts are read several at once: few enough that none is read in vain for long."""
    for start in range(0, len(changes), _READ_AT_ONCE):
        some = changes[start : start + _READ_AT_ONCE]
        if not most:
            yield from (_row(one, None, None, tasks.get(one.path, ""), needs_reason, most) for one in some)
            continue
        old = tree.texts(sides[0], {one.old_path or one.path for one in some if one.kind is not ChangeKind.ADDED})
        new = tree.texts(sides[1], {one.path for one in some if one.kind is not ChangeKind.DELETED})
        for one in some:
            before = () if one.kind is ChangeKind.ADDED else old[one.old_path or one.path]
            after = () if one.kind is ChangeKind.DELETED else new[one.path]
            yield _row(one, before, after, tasks.get(one.path, ""), needs_reason, most)


def _changed_lines(change: Change) -> int:
    return sum(hunk.old_count + hunk.new_count for hunk in change.hunks)


def _row(
    change: Change,
    before: Sequence[str] | None,
    after: Sequence[str] | None,
    task: str,
    needs_reason: NeedsReason | None,
    most: int,
) -> ReviewRow:
    mode = " → ".join(change.modes) if change.modes else ""
    why = needs_reason(change) if needs_reason else ()
    if not most and not change.binary:
        new, old = (sum(getattr(hunk, side) for hunk in change.hunks) for side in ("new_count", "old_count"))
        lines = f"+{new} -{old}"
        return ReviewRow(change.path, change.kind.value, "", task, change.old_path, why, mode=mode, lines=lines)
    if before is None or after is None:
        return ReviewRow(change.path, change.kind.value, "", task, change.old_path, why, unseen=_UNSEEN, mode=mode)
    diff = _diff(change.hunks, before, after)
    cut = len(diff) > most
    shown = _shortened(diff, most)
    return ReviewRow(change.path, change.kind.value, shown, task, change.old_path, why, cut, mode=mode)


def _diff(hunks: tuple[Hunk, ...], before: Sequence[str], after: Sequence[str]) -> str:
    """A unified diff out of git's own hunks, with context; hunks whose contexts touch are shown as one."""
    groups: list[list[Hunk]] = []
    for hunk in hunks:
        if groups and _begin(hunk) - _end(groups[-1][-1]) <= 2 * CONTEXT_LINES:
            groups[-1].append(hunk)
        else:
            groups.append([hunk])
    return "\n".join(line for group in groups for line in _group(group, before, after))


def _group(group: list[Hunk], before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    start = max(_begin(group[0]) - CONTEXT_LINES, 0)
    stop = min(_end(group[-1]) + CONTEXT_LINES, len(after))
    old_count = stop - start + sum(hunk.old_count - hunk.new_count for hunk in group)
    old_start = _old_begin(group[0]) - (_begin(group[0]) - start)
    yield f"@@ -{_place(old_start, old_count)} +{_place(start, stop - start)} @@"
    at = start
    for hunk in group:
        yield from (f" {line}" for line in after[at : _begin(hunk)])
        old = _old_begin(hunk)
        yield from (f"-{line}" for line in before[old : old + hunk.old_count])
        yield from (f"+{line}" for line in after[_begin(hunk) : _end(hunk)])
        at = _end(hunk)
    yield from (f" {line}" for line in after[at:stop])


def _begin(hunk: Hunk) -> int:
    """Where the hunk's new lines begin, counted from 0; of a pure deletion, the line it is before."""
    return hunk.new_start - 1 if hunk.new_count else hunk.new_start


def _end(hunk: Hunk) -> int:
    return _begin(hunk) + hunk.new_count


def _old_begin(hunk: Hunk) -> int:
    return hunk.old_start - 1 if hunk.old_count else hunk.old_start


def _place(start: int, count: int) -> str:
    return f"{start + 1 if count else start},{count}"


def _shortened(diff: str, most: int) -> str:
    if len(diff) <= most:
        return diff
    kept = diff[:most].rpartition("\n")[0]
    return f"{kept}\n… {diff.count(chr(10)) - kept.count(chr(10))} more lines"
