"""The worktree of its own that a session with the flag worktree works in: made, merged from, removed (SPEC 6, 12).

It is below `.code-intel/worktrees` of the user's folder, its home, and has the task branch checked out from the start. A lock
beside it says that it is being made: until the session is on disk nobody knows of it, so what a kill leaves then is removed.
Later it goes only as `git worktree remove` lets it go: not with anything in it that git has nowhere else.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from code_intel_server.common.own_folder import FOLDER, WORKTREES, home_of
from code_intel_server.common.printable import printable
from code_intel_server.errors import CodeIntelError, Rejected, UserActionNeeded
from code_intel_server.workspace.branches import merges
from code_intel_server.workspace.branches.archive_refs import ArchiveKind, Archiver
from code_intel_server.workspace.branches.base_branches import BaseRecord, drop_changes, read_base, record_change
from code_intel_server.workspace.git.child import Manner, output_of
from code_intel_server.workspace.git.repository import (
    DIFFERING,
    HEADS,
    TASK_PREFIX,
    Git,
    RefChange,
    open_readable,
    split_z,
)
from code_intel_server.workspace.git.worktrees import in_progress, session_worktrees
from code_intel_server.workspace.paths import Project
from code_intel_server.workspace.state.key import private_folder
from code_intel_server.workspace.state.lock import ProjectLock
from code_intel_server.workspace.tree import status
from code_intel_server.workspace.values import TaskBranch

_MAKING = ".making"


@contextmanager
def new_worktree(project: Project, git: Git, session_id: str) -> Iterator[tuple[Path, TaskBranch]]:
    """The project's root in a new worktree, and the branch that is checked out there; both go again where the block fails.

    Raises Rejected('tool_errors.start_session.branch_setup_failed').
    """
    top = project.writable(WORKTREES) / session_id
    making = ProjectLock(Path(f"{top}{_MAKING}"))
    making.acquire(session_id)
    try:
        branch = _made(git, top, session_id)
        yield top / git.at.prefix, branch
    except BaseException:
        _discard(git, top)
        raise
    finally:
        shutil.rmtree(f"{top}{_MAKING}", ignore_errors=True)
        making.release()


def why_in_use(home: Git, base: str, tip: str) -> str:
    """What keeps the user's folder from being brought to a merge of `tip` into `base`; '' where nothing does."""
    if home.current() != base:
        return f"it is on {home.current() or 'no branch'}"
    if under_way := in_progress(home):
        return f"{under_way} is under way there"
    if os.path.lexists(home.at.git_dir / "index.lock"):
        return "git is at work there"
    if ProjectLock(private_folder(home.at.git_dir, home.at.root)).owner() is not None:
        return "another session works there"
    if changed := sorted(status.unfinished(home)):
        return f"{_named(changed)} changed there and not committed"
    if blocking := status.in_the_way(home, split_z(home.must(*DIFFERING, HEADS + base, tip))):
        return f"{_named(blocking)} in the way there, in no commit"
    return ""


def _named(paths: Sequence[str]) -> str:
    return f"{printable(paths[0])}{f' and {len(paths) - 1} more are' if paths[1:] else ' is'}"


def lose_worktree(git: Git, root: Path, branch: TaskBranch) -> None:
    """Keep the branch of a worktree that somebody has removed in the trash, and let git forget both."""
    _remove(git, _top_of(root))
    merges.remove_branches(git, [branch.name], reason="code-intel: its worktree was removed")


def sweep_worktrees(project: Project, git: Git) -> dict[Path, str]:
    """Remove the worktrees whose session is over, and what kills have left; those that stay (by the project's root), and why.

    `git` is that of the user's folder. Never raises CodeIntelError.
    """
    kept: dict[Path, str] = {}
    folder = project.folder / WORKTREES
    with suppress(CodeIntelError, OSError):
        for marker in folder.glob(f"*{_MAKING}") if folder.is_dir() else ():
            making = ProjectLock(marker)
            with suppress(UserActionNeeded):
                making.acquire()
                if not _has_checkpoint(marker.with_suffix("") / git.at.prefix):  # its maker may just have ended
                    _discard(git, marker.with_suffix(""))
                shutil.rmtree(marker, ignore_errors=True)
                making.release()
        for record, path in session_worktrees(git):
            if home_of(path) != str(project.root) or os.path.lexists(f"{path}{_MAKING}"):
                continue
            root = Path(path) / git.at.prefix
            led = ProjectLock(private_folder(record, root)).owner() is not None
            if led or _has_checkpoint(root):
                continue
            try:
                why = _remove(git, Path(path))
            except CodeIntelError as error:  # the others are looked at all the same
                why = str(error.params.get("error") or error.key)
            if why:
                kept[root] = why
            else:
                _drop_unmoved(git, TASK_PREFIX + Path(path).name)
    return kept


def _has_checkpoint(root: Path) -> bool:
    return any(Project(root).sessions.glob("*.json"))


def _remove(git: Git, top: Path) -> str:
    """Remove a worktree as far as git does: why it stays, '' where it is gone. Files that git ignores go with it.

    Commits that nothing but its HEAD leads to are kept in the trash: git would let them go.
    """
    made = open_readable(top) if top.is_dir() else ""
    if isinstance(made, Git) and not made.current() and (oid := made.oid("HEAD")):
        holding = git.must("for-each-ref", "--count=1", f"--contains={oid}")
        if not holding.strip():
            archiver = Archiver(git, top.name)
            archiver.keep(
                archiver.of_commit(oid, ArchiveKind.BRANCH, branch=TASK_PREFIX + top.name, base="", base_oid="")
            )
    done = git.run("worktree", "remove", str(top), manner=Manner.USER)
    return output_of(done) if os.path.lexists(top) else ""


def _made(git: Git, top: Path, session_id: str) -> TaskBranch:
    base, head = git.current(), git.oid("HEAD")
    name = TASK_PREFIX + session_id
    record = record_change(git, name, BaseRecord(base, head))
    git.transact([RefChange(HEADS + name, "", head), record], reason=f"branch: created from {base}")
    done = git.run("worktree", "add", "--quiet", str(top), name, manner=Manner.USER)
    made = open_readable(top) if top.is_dir() else ""
    if isinstance(made, str) or made.current() != name:  # a failing post-checkout hook is no failure
        raise Rejected("tool_errors.start_session.branch_setup_failed", error=output_of(done))
    return TaskBranch(name, base, head)


def _discard(git: Git, top: Path) -> None:
    """Remove a worktree that nobody has been told of, and its branch."""
    with suppress(CodeIntelError):
        shutil.rmtree(top, ignore_errors=True)
        git.run("worktree", "remove", "--force", "--force", str(top), manner=Manner.OWN)
        _drop_unmoved(git, TASK_PREFIX + top.name)


def _drop_unmoved(git: Git, name: str) -> None:
    """Remove a task branch that holds no commit of its own and is not used any more."""
    record, tip = read_base(git, name), git.oid(HEADS + name)
    if record is not None and tip == record.oid:
        git.transact([RefChange(HEADS + name, tip, ""), *drop_changes(git, name)], reason="code-intel: never used")


def _top_of(root: Path) -> Path:
    """The worktree that a project's root is in: the folder below `worktrees`."""
    below = Path(home_of(str(root))) / FOLDER / WORKTREES
    return below / root.relative_to(below).parts[0]
