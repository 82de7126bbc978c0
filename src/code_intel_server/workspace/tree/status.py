"""What is uncommitted, untracked or ignored, found out without running anything of the repository."""

import os
import threading
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path, PurePosixPath

from code_intel_server.common.own_folder import is_written
from code_intel_server.workspace.git.index_entries import IndexEntries
from code_intel_server.workspace.git.isolated_directory import NO_DRIVERS, IsolatedGit, scratch_index
from code_intel_server.workspace.git.repository import Git, join_z, nul_terminated, open_repository, portions, split_z

GITLINK = "160000"
LOCKS = (
    "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb", "poetry.lock",
    "uv.lock", "pdm.lock", "Pipfile.lock", "Cargo.lock", "go.sum", "go.work.sum", "composer.lock", "Gemfile.lock",
)  # fmt: skip
"""What fixes the versions of dependencies, often for all projects of a repository at its top."""
NESTED_AT_MOST = 32
"""Levels of repositories within repositories that are looked at as such; the files of a deeper one count like any others."""
_STAGED = ("diff-index", "--cached", "--name-only", "--no-renames", "--ignore-submodules=none", "-z")


def isolated_status(git: Git) -> IsolatedGit:
    """The room in which a file is compared with the user's index: line endings count as git counts them, drivers are off."""
    return IsolatedGit(git, "status", NO_DRIVERS)


def user_index(git: Git) -> Path:
    """The user's own index: looked at, never written from here."""
    return git.at.git_dir / "index"


def staged(git: Git) -> set[str]:
    """Paths whose index entry differs from HEAD's."""
    return set(split_z(git.must(*_STAGED, "HEAD", "--")))


def unstaged(git: Git, *, marked: bool = False) -> set[str]:
    """Tracked paths whose file differs from the index, or is gone.

    A file under a filter driver (LFS) whose time stamp alone has changed counts as different, because only running the
    driver could tell; the user's own `git status` settles it. A file that is where a sparse checkout leaves it out is
    looked at as git looks at it; those that the user has git not look at (skip-worktree, assume-unchanged) if `marked`.
    """
    room = isolated_status(git)
    config = room.prepare()
    index = user_index(git)
    sparse = config.get("core.sparsecheckout", "false").lower() in {"true", "yes", "on", "1"}
    hidden = _hidden(room, index, every=marked) if marked or sparse else []
    if not hidden:
        return set(split_z(room.must("ls-files", "-m", "-z", index=index)))
    with scratch_index(room.path / f"index.seen.{os.getpid()}.{threading.get_ident()}", index) as scratch:
        found = index.stat()
        for mark in ("--no-skip-worktree", "--no-assume-unchanged"):
            room.must("update-index", "-z", mark, "--stdin", index=scratch, stdin=join_z(hidden))
        os.utime(scratch, ns=(found.st_atime_ns, found.st_mtime_ns))  # else git takes young entries for settled
        return set(split_z(room.must("ls-files", "-m", "-z", index=scratch)))


def _hidden(room: IsolatedGit, index: Path, *, every: bool) -> list[str]:
    """The files that are there and marked as left out by a sparse checkout, or `every` one that git is told not to look at."""
    rows = (row.partition(" ") for row in nul_terminated(room.must("ls-files", "-v", "-z", index=index)))
    marked = (path for tag, _, path in rows if tag in {"S", "s"} or (every and tag.islower()))
    return [path for path in marked if os.path.lexists(room.git.at.top / path)]


def dirty(git: Git, nesting: int = 0) -> set[str]:
    """Tracked paths with changes, staged or not, submodules with changes of their own included (from the top)."""
    found = staged(git) | unstaged(git)
    for path in gitlinks(git) - found:
        if nesting < NESTED_AT_MOST and _submodule_dirty(git.at.top / path, nesting):
            found.add(path)
    return found


def unfinished(git: Git) -> set[str]:
    """Tracked paths with changes of the user's or the agent's (from the top): what the server writes itself is none.

    A project's first session writes `context.yml` (update_context) before its branch is made, and nothing commits it;
    the server of another project of the repository does so too.
    """
    return {path for path in dirty(git) if not is_written(path)}


def outside(git: Git) -> list[str]:
    """What the project's commit leaves above or beside its folder: tracked files with changes, and untracked lock files above."""
    if not git.at.prefix:
        return []
    folders = [f"{folder}/".removeprefix("./") for folder in PurePosixPath(git.at.prefix).parents]
    locks = [f"{folder}{name}" for folder in folders for name in LOCKS]
    room = isolated_status(git)
    room.prepare()
    untracked = room.must("ls-files", "-o", "--exclude-standard", "-z", "--", *locks, index=user_index(git))
    return sorted({path for path in unfinished(git) if not path.startswith(git.at.prefix)}.union(split_z(untracked)))


def gitlinks(git: Git) -> set[str]:
    """Paths of submodules in the index."""
    rows = nul_terminated(git.must("ls-files", "-s", "-z"))
    return {row.partition("\t")[2] for row in rows if row.startswith(GITLINK)}


def ignored_among(git: Git, paths: Sequence[str]) -> set[str]:
    """Which of these paths are ignored and not tracked."""
    room = isolated_status(git)
    room.prepare()
    listing = ("ls-files", "-o", "-i", "--exclude-standard", "-z", "--")
    found = (room.must(*listing, *some, index=user_index(git)) for some in portions(paths))
    return {name for output in found for name in split_z(output)} & set(paths)


def in_the_way(git: Git, incoming: Iterable[str]) -> list[str]:
    """Incoming paths where an untracked or ignored file, or a folder holding one, stands now (SPEC 6.5).

    Git itself would silently replace an ignored file. A tracked file of that name is no hit: git looks after those.
    """
    tracked = IndexEntries(git.must("ls-files", "-s", "-z"))
    return sorted(path for path in incoming if path not in tracked and _occupied(git.at.top, path, tracked))


def _occupied(top: Path, path: str, tracked: Collection[str]) -> bool:
    """Whether something untracked is at `path`, or a file is where one of its folders must come."""
    parts = path.split("/")
    for depth in range(1, len(parts)):
        parent = "/".join(parts[:depth])
        whole = top / parent
        if os.path.lexists(whole) and (whole.is_symlink() or not whole.is_dir()):
            return parent not in tracked
    whole = top / path
    if not os.path.lexists(whole):
        return False
    if whole.is_dir() and not whole.is_symlink():
        return any(_relative(top, folder, name) not in tracked for folder, _, names in os.walk(whole) for name in names)
    return True


def _relative(top: Path, folder: str, name: str) -> str:
    return Path(folder, name).relative_to(top).as_posix()


def _submodule_dirty(folder: Path, nesting: int) -> bool:
    if not os.path.lexists(folder / ".git"):
        return False
    inner = open_repository(folder)
    if isinstance(inner, str) or not inner.oid("HEAD"):
        return False
    return bool(dirty(inner, nesting + 1))
