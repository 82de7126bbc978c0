"""What the working trees of a repository are in the middle of: a branch may be taken though no HEAD is on it.

Git checks out, moves or deletes no branch that another working tree has checked out, rebases or bisects; a branch that
is moved by `update-ref` it is not asked about, so we look ourselves, before anything is published.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from code_intel_server.common.own_folder import home_of
from code_intel_server.workspace.files import read_regular
from code_intel_server.workspace.git.repository import HEADS, Git
from code_intel_server.workspace.state.checkpoints import is_id
from code_intel_server.workspace.state.key import private_folder
from code_intel_server.workspace.state.lock import ProjectLock

# What lies in the git directory while something is half done, and what to call it.
_IN_PROGRESS = {
    "MERGE_HEAD": "a merge",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase or `git am`",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "sequencer/todo": "a cherry-pick or revert of several commits",
}
_KEPT_AS_REFS = ("CHERRY_PICK_HEAD", "REVERT_HEAD")
"""Those of them that git keeps among its refs where these are in tables (reftable), not in files."""
_REBASED = ("rebase-merge/head-name", "rebase-apply/head-name")
_SMALL_FILE_BYTES = 1 << 20


def in_progress(git: Git) -> str:
    """What is half done in this working tree ("a merge"), or ''."""
    as_refs = _KEPT_AS_REFS if (git.at.git_dir / "reftable").is_dir() else ()
    found = (
        words
        for name, words in _IN_PROGRESS.items()
        if (git.at.git_dir / name).exists() or (name in as_refs and git.oid(name))
    )
    return next(found, "")


def is_shallow(git: Git) -> bool:
    """Whether the history ends where a clone or a fetch cut it off."""
    return (git.at.common_dir / "shallow").exists()


def bisecting(git: Git) -> bool:
    """Whether a `git bisect` has begun in this working tree and was not reset: it may have left HEAD on no branch."""
    return (git.at.git_dir / "BISECT_START").exists()


def rebased_here(git: Git) -> set[str]:
    """Full names of the branches that a rebase of this working tree will move when it ends."""
    return set(_rebased(git.at.git_dir))


def held_elsewhere(git: Git) -> dict[str, str]:
    """Full names of branches that other working trees have checked out, rebase or bisect → the path of that tree.

    The worktree of a session that somebody has removed by hand holds nothing any more.
    """
    held: dict[str, str] = {}
    for folder, path in _others(git):
        held |= dict.fromkeys((*_rebased(folder), *_bisected(folder)), path)
    here = os.path.realpath(git.at.top)
    for block in git.must("worktree", "list", "--porcelain", "-z").split(b"\0\0"):
        fields = dict(os.fsdecode(line).partition(" ")[::2] for line in block.split(b"\0") if line)
        path, branch = fields.get("worktree", ""), fields.get("branch", "")
        if branch and os.path.realpath(path) != here and not (home_of(path) and not os.path.lexists(path)):
            held[branch] = path
    return held


def session_worktrees(git: Git) -> list[tuple[Path, str]]:
    """The other working trees that sessions have for themselves: git's record of each, and its path, there or not."""
    return [(folder, path) for folder, path in _others(git) if home_of(path) and is_id(Path(path).name)]


def led_elsewhere(git: Git) -> set[str]:
    """Ids of the sessions that run in other working trees: a process that lives leads them."""
    owners = (ProjectLock(private_folder(folder, Path(path))).owner() for folder, path in _others(git))
    return {owner.session_id for owner in owners if owner is not None and owner.session_id}


def _others(git: Git) -> Iterator[tuple[Path, str]]:
    """The git directories of the other working trees, and where those trees are."""
    main = git.at.common_dir
    if main != git.at.git_dir:
        yield main, str(main.parent if main.name == ".git" else main)
    for folder in (main / "worktrees").glob("*"):
        if Path(os.path.realpath(folder)) != git.at.git_dir:
            yield folder, str(worktree_of(folder) or folder)


def worktree_of(folder: Path) -> Path | None:
    """Where the working tree of a linked worktree's git directory is, as git has noted; None for another git directory."""
    noted = _read(folder / "gitdir").strip().removesuffix("/.git")
    return Path(os.path.normpath(folder / noted)) if noted else None  # git may keep it relative


def _rebased(folder: Path) -> list[str]:
    names = [_read(folder / name).strip() for name in _REBASED]
    names += _read(folder / "rebase-merge" / "update-refs").splitlines()[::3]  # each with what it was and will be
    return [name for name in names if name.startswith(HEADS)]


def _bisected(folder: Path) -> list[str]:
    name = _read(folder / "BISECT_START").strip()
    return [HEADS + name.removeprefix(HEADS)] if name else []


def _read(file: Path) -> str:
    try:
        return os.fsdecode(read_regular(file, _SMALL_FILE_BYTES))
    except OSError:
        return ""
