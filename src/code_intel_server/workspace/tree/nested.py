"""Repositories within the project: submodules, clones, a `git init` in a folder; their files count like all others.

A snapshot holds each by the commit it is at, as git does. Where its files are otherwise than in that commit, or there is
none yet, it holds an id of ours that stands for both; what two ids differ in is asked of the judge of that repository.
"""

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from code_intel_server.errors import CodeIntelError
from code_intel_server.workspace.git.repository import Git, Repository
from code_intel_server.workspace.tree.snapshot_index import read_json, write_json
from code_intel_server.workspace.values import Change


class NestedJudge(Protocol):
    """What is asked of a repository's own working tree; see `TreeJudge`."""

    def repository(self) -> Repository | None:
        """Where it is; None where there is none."""

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
        self._judges: dict[str, AnyJudge | None] = {}
        self._clean: dict[str, tuple[str, str]] = {}

    def identify(self, path: str, *, contents: bool = False) -> str:
        """The id of what a repository holds now; '' where it holds nothing, or is another working tree of ours."""
        judge = self._judge(path)
        if judge is None:
            return ""
        head, tree = judge.head(), judge.snapshot(contents=contents)
        if not head and tree == self._git.empty_tree():
            return ""
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
        for judge in filter(None, self._judges.values()):
            judge.tidy()

    def _known(self, oid: str) -> tuple[str, str] | None:
        found = read_json(self._memory).get(oid) if oid else None
        return (str(found[0]), str(found[1])) if isinstance(found, list) and len(found) == 2 else None

    def _judge(self, path: str) -> AnyJudge | None:
        """None for a folder that is no repository, or of which git knows another working tree as ours."""
        if path not in self._judges:
            root = self._git.at.top / path
            judge = self._make(root)
            try:
                at = judge.repository()
            except (CodeIntelError, OSError):
                at = None
            own = at is not None and at.top == Path(os.path.realpath(root)) and at.common_dir != self._git.at.common_dir
            self._judges[path] = judge if own else None
        return self._judges[path]


def _below(path: str, change: Change) -> Change:
    old = f"{path}/{change.old_path}" if change.old_path else ""
    return replace(change, path=f"{path}/{change.path}", old_path=old, within=change.within or path)


def owner(path: str, repositories: Mapping[str, str]) -> str:
    """The outermost of the repositories that a path lies in; '' where it lies in none."""
    return min((one for one in repositories if path.startswith(f"{one}/")), key=len, default="")
