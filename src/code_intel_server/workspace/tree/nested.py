"""Repositories within the project: submodules, clones, a `git init` in a folder; their files count like all others.

A snapshot holds each by the commit it is at, as git does. Where its files are otherwise than in that commit, or there is
none yet, it holds an id of ours that stands for both; what two ids differ in is asked of the judge of that repository.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from code_intel_server.errors import CodeIntelError
from code_intel_server.workspace.git.repository import Git, Repository, open_readable
from code_intel_server.workspace.git.worktrees import worktree_of
from code_intel_server.workspace.tree.snapshot_index import read_json, write_json
from code_intel_server.workspace.values import Change


class NestedJudge(Protocol):
    """What is asked of a repository's own working tree; see `TreeJudge`."""

    def head(self) -> str:
        """Its commit, '' before the first."""

    def snapshot(self, *, contents: bool = False) -> str:
        """The id of its content now."""

    def head_snapshot(self, commit: str) -> str:
        """The id of a commit's content."""

    def changes(self, old: str, new: str) -> tuple[Change, ...]:
        """What differs between two ids."""

    def tidy(self) -> None:
        """Forget what is only true within one session."""


AnyJudge = TypeVar("AnyJudge", bound=NestedJudge)


class Nested(Generic[AnyJudge]):
    """The repositories within one working tree, by their paths from its top; `memory` is the file of what our ids stand for."""

    def __init__(self, git: Git, memory: Path, judge: Callable[[Path], AnyJudge]) -> None:
        self._git = git
        self._memory = memory
        self._make = judge
        self._judges: dict[str, tuple[object, AnyJudge | None]] = {}
        self._worktrees: set[str] = set()
        self._clean: dict[str, tuple[str, str]] = {}

    def identify(self, path: str, *, contents: bool = False) -> str | None:
        """The id of what a repository holds now; None where its files count like those of any folder.

        '' where nothing counts: it is another working tree of ours.
        """
        judge = self._judge(path)
        if judge is None:
            return "" if path in self._worktrees else None
        head, tree = judge.head(), judge.snapshot(contents=contents)
        if not head and tree == self._git.empty_tree():
            return None
        if head and (self._clean.get(path) == (head, tree) or tree == judge.head_snapshot(head)):
            self._clean[path] = head, tree
            return head
        oid = hashlib.new(self._git.hash_name(), f"{head} {tree}".encode(), usedforsecurity=False).hexdigest()
        known = read_json(self._memory)
        if oid not in known:
            write_json(self._memory, {**known, oid: [head, tree]})
        return oid

    def commit_of(self, oid: str) -> str:
        """The commit that an id of a snapshot stands for; '' where there was none."""
        known = self._known(oid)
        return oid if known is None else known[0]

    def at(self, path: str, oid: str) -> tuple[AnyJudge, str] | None:
        """The judge of a repository and its own snapshot behind an id; None where it is not there any more."""
        judge = self._judge(path)
        known = self._known(oid)
        return None if judge is None else (judge, known[1] if known else judge.head_snapshot(oid))

    def changes(self, path: str, old: str, new: str) -> tuple[Change, ...] | None:
        """What differs in the files of a repository beyond its commit, paths from the top; None where all that differs is the commit.

        '' stands for "was not there".
        """
        if not new or not (self._known(old) or self._known(new)):
            return None
        now, then = self.at(path, new), self.at(path, old) if old else None
        if now is None:
            return None
        judge, tree = now
        head = self.commit_of(new)
        before = then[1] if then and self.commit_of(old) == head else judge.head_snapshot(head)
        return tuple(_below(path, change) for change in judge.changes(before, tree))

    def tidy(self) -> None:
        """Between sessions: forget what is only true within one."""
        self._memory.unlink(missing_ok=True)
        for _, judge in self._judges.values():
            if judge is not None:
                judge.tidy()

    def _known(self, oid: str) -> tuple[str, str] | None:
        found = read_json(self._memory).get(oid) if oid else None
        return (str(found[0]), str(found[1])) if isinstance(found, list) and len(found) == 2 else None

    def worktrees(self) -> list[str]:
        """The other working trees of ours that lie within: they are the user's own, and may have a session of their own."""
        for path in [*self._worktrees]:
            self._judge(path)
        return sorted(self._worktrees)

    def _judge(self, path: str) -> AnyJudge | None:
        """None for a folder that is no repository, for one that leads to another's git directory, and for a working tree of ours."""
        root = self._git.at.top / path
        now = _stamp(root / ".git")
        known, judge = self._judges.get(path, (None, None))
        if now is None or known != now:
            at = _opened(root) if now else None
            judge = self._make(root) if at and at.common_dir != self._git.at.common_dir else None
            self._judges[path] = now, judge
            (self._worktrees.add if at and judge is None else self._worktrees.discard)(path)
        return judge


def _stamp(git: Path) -> object:
    """What tells whether a folder's `.git` is still the same; None where there is none."""
    try:
        found = git.lstat()
    except OSError:
        return None
    return found.st_ino, found.st_mode, 0 if stat.S_ISDIR(found.st_mode) else found.st_ctime_ns


def _opened(root: Path) -> Repository | None:
    """The repository whose working tree is at `root`; None where there is none, or its git directory is that of another one."""
    try:
        git = open_readable(root)
    except (CodeIntelError, OSError):
        return None
    if isinstance(git, str) or git.at.top != git.at.root:
        return None
    own = git.at.git_dir.parent if git.at.git_dir.name == ".git" else worktree_of(git.at.git_dir)
    return git.at if own is None or os.path.realpath(own) == str(git.at.root) else None


def _below(path: str, change: Change) -> Change:
    old = f"{path}/{change.old_path}" if change.old_path else ""
    return replace(change, path=f"{path}/{change.path}", old_path=old, within=change.within or path)


def owner(path: str, repositories: Mapping[str, str]) -> str:
    """The outermost of the repositories that a path lies in; '' where it lies in none."""
    return min((one for one in repositories if path.startswith(f"{one}/")), key=len, default="")
