"""Task branches that no session owns any more: merged on the user's word, removed recoverably (SPEC 4 BRANCH_INTERVENTION)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from code_intel_server.errors import CodeIntelError
from code_intel_server.workspace.branches import merges
from code_intel_server.workspace.branches.base_branches import read_base, stale_branches
from code_intel_server.workspace.branches.refusals import NOT_COMMITTED, dirty, refuse, words
from code_intel_server.workspace.git.repository import HEADS, TASK_PREFIX, Git
from code_intel_server.workspace.tree import status
from code_intel_server.workspace.values import (
    GitIntent,
    GitOperation,
    MergeResult,
    RecordIntent,
    Retired,
    StaleBranch,
    TaskBranch,
)


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What `cleanup_stale` removed (or, on a dry run, would remove), where it is kept, and what it had to leave."""

    branches: tuple[StaleBranch, ...]
    archived: tuple[str, ...] = ()
    left: Mapping[str, str] | None = None


def merge_stale(git: Git, record: RecordIntent, pending: GitIntent | None) -> MergeResult | None:
    """Merge the stale branch HEAD is on; after a crash the one the intent names. Raises UserActionNeeded."""
    name = git.current()
    if pending and "branch" in pending.extra:
        name = pending.extra["branch"]
        branch = TaskBranch(name, pending.ref.removeprefix(HEADS), pending.extra["base_oid"])
    else:
        base = read_base(git, name) if name in stale_branches(git) else None
        if base is None:
            raise refuse("base_unknown", f"it is not recorded which branch {name or 'HEAD'} came from")
        changed = sorted(status.unfinished(git))
        if changed:
            raise dirty(NOT_COMMITTED, changed)
        branch = TaskBranch(name, base.base, base.oid)
    unproven = "all of it: its session did not come to its end"
    trailers = [("Code-Intel-Session", name.removeprefix(TASK_PREFIX)), ("Code-Intel-Unproven", unproven)]
    return merges.Merge(git, branch, trailers, record, pending, GitOperation.RETIRE_BRANCHES).run()


def remove_stale(git: Git, session_id: str, record: RecordIntent, last: GitIntent | None) -> Retired:
    """Remove all stale branches; the intent goes on with what the last one said (a merge that is done stays known)."""
    own = TASK_PREFIX + session_id
    names = [name for name in sorted(stale_branches(git)) if name != own]
    before = last.extra.get("removed", "").split() if last else []
    gone = sorted({*before, *names})
    if names:
        last = last or GitIntent(GitOperation.RETIRE_BRANCHES, HEADS, "", "")
        record(replace(last, extra={**last.extra, "removed": " ".join(gone)}))
    if git.current() in names:
        current = git.current()
        merges.switch(git, _home(git, current), leaving=current)
    archived = merges.remove_branches(git, names, reason="code-intel: stale branches removed")
    return Retired(tuple(gone), tuple(archived))


def clean(git: Git, found: Sequence[StaleBranch], *, dry_run: bool = False) -> Cleaned:
    """Remove these branches recoverably; one that cannot go is left and named. With `dry_run` only say what would become of each."""
    gone: list[StaleBranch] = []
    archived: list[str] = []
    left: dict[str, str] = {}
    for branch in found:
        try:
            base = _home(git, branch.name) if branch.current else ""
            if dry_run:
                merges.check_removable(git, [branch.name], leaving=branch.name)
            else:
                if base:
                    merges.switch(git, base, leaving=branch.name)
                archived += merges.remove_branches(git, [branch.name], reason="code-intel: cleanup")
        except CodeIntelError as error:
            left[branch.name] = words(error)
        else:
            gone.append(branch)
    return Cleaned(tuple(gone), tuple(archived), left)


def _home(git: Git, name: str) -> str:
    """The base to which HEAD can go back from a stale branch: it exists, is free, and the tree is clean."""
    base = read_base(git, name)
    if base is None or not git.oid(HEADS + base.base):
        raise refuse("base_unknown", f"HEAD is on {name}, and it is not known which branch to return to")
    changed = sorted(status.unfinished(git))
    if changed:
        raise dirty(NOT_COMMITTED, changed)
    merges.check_still(git)
    merges.check_free(git, HEADS + base.base)
    return base.base
