"""Ends a session that is not to be finished: its branch and uncommitted work shelved, HEAD back on the base (SPEC 3.2).

It never refuses for good, since `clean` is the way out of every session: what cannot be done (a merge half done, a base
checked out elsewhere) is left as it is and said as a warning; the work is shelved in any case.
"""

import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from code_intel_server.errors import UserActionNeeded
from code_intel_server.workspace import merges, status
from code_intel_server.workspace.git import HEADS, Git
from code_intel_server.workspace.refusals import refuse, words
from code_intel_server.workspace.shelf import (
    Kind,
    Shelf,
    Shelved,
    permissions_of,
    put_back,
    raw_oid,
    return_aside,
    tree_entries,
    write_back,
)
from code_intel_server.workspace.snapshot_index import lstat
from code_intel_server.workspace.tree import BIG_BYTES
from code_intel_server.workspace.values import Abandoned, GitIntent, GitOperation, Record, TaskBranch
from code_intel_server.workspace.worktrees import in_progress

_NAMED_AT_MOST = 20


@dataclass(frozen=True, slots=True)
class Abandon:
    """`before` are the user's untracked files of the session's start (from the top) → hash; `untracked` asks for today's."""

    git: Git
    session_id: str
    branch: TaskBranch
    before: Mapping[str, str]
    untracked: Callable[[], Mapping[str, str]]
    record: Record
    pending: GitIntent | None

    def run(self) -> Abandoned:
        """Shelve, put back, switch, remove; repeating it after a crash finishes it."""
        archived = list((self.pending.extra.get("archived", "") if self.pending else "").split())
        warnings: list[str] = []
        try:
            return_aside(self.git)
            if self.git.current() == self.branch.name:
                self._leave(archived, warnings)
            elif self.pending:
                self._give_back(archived, {})
            archived += merges.remove(self.git, [self.branch.name], reason="code-intel: session abandoned")
        except UserActionNeeded as error:
            warnings.append(words(error))
        return Abandoned(tuple(archived), self.git.current(), tuple(warnings))

    def _leave(self, archived: list[str], warnings: list[str]) -> None:
        tip = self.git.oid("HEAD")
        fresh = self._fresh()
        large = self._large(fresh)
        if large:
            warnings.append(f"too large to be shelved, left where they are: {_named(large)}")
        work, removable = self._work(tip, fresh.difference(large))
        shelf = Shelf(self.git, self.session_id)
        shelved: list[Shelved] = []
        if work:
            shelved.append(shelf.of_files(work, tip, Kind.WORK, branch=self.branch.name))
            if not in_progress(self.git) and status.staged(self.git):
                shelved.append(shelf.of_index(tip))
        shelf.keep(*shelved)
        permissions = permissions_of(self.git, self.before)
        archived += [each.ref for each in shelved]
        extra = {"archived": " ".join(archived), "base": self.branch.base}
        self.record(GitIntent(GitOperation.ABANDON, HEADS + self.branch.name, tip, "", secrets.token_hex(8), extra))
        merges.check_still(self.git)
        merges.check_free(self.git, HEADS + self.branch.base)
        if not self.git.oid(HEADS + self.branch.base):
            raise refuse("base_missing", f"the base branch {self.branch.base} does not exist; HEAD stays where it is")
        if removable:
            put_back(self.git, removable, tip, shelved[0].commit)
        merges.switch(self.git, self.branch.base, leaving=self.branch.name)
        self._give_back(archived, permissions)

    def _fresh(self) -> set[str]:
        """Untracked files that are not as the user had them at the session's start."""
        found = self.untracked().items()
        return {path for path, oid in found if not is_folder(self.git, path) and self.before.get(path) != oid}

    def _large(self, fresh: Collection[str]) -> list[str]:
        """Those that no shelf has to take: a file of hundreds of megabytes would stay in the repository for weeks.

        Not those whose place the base wants: they have to leave it.
        """
        large = [path for path in fresh if _is_large(self.git, path)]
        wanted = tree_entries(self.git, self.branch.base, large) if large else {}
        return sorted(set(large) - wanted.keys())

    def _work(self, tip: str, fresh: set[str]) -> tuple[list[str], list[str]]:
        """What has to be shelved, and what of it must leave the working tree before HEAD can.

        What the server itself writes (context.yml) is no work of the session; the user writes there as well, so it stays.
        So does what lies outside the project in its repository: nothing judges it, and nobody is asked about it.
        """
        inside = self.git.at.prefix
        unfinished = {path for path in status.unfinished(self.git) if path.startswith(inside)}
        changed = {path for path in unfinished if not is_folder(self.git, path)}
        # Files of the user's that the task branch has taken in: the switch will remove them, and they must come back.
        taken = set(tree_entries(self.git, tip, self.before))
        return sorted(changed | fresh | taken), sorted(changed | (fresh - self.before.keys()))

    def _give_back(self, archived: list[str], permissions: Mapping[str, int]) -> None:
        """Put the user's own untracked files, which left the tree with the task branch, where they were."""
        for ref in archived:
            if ref.endswith(Kind.WORK.value):
                write_back(self.git, self.git.oid(ref), self.before, permissions=permissions)


def copy_work(git: Git, session_id: str, touched: Collection[str]) -> Abandoned:
    """Shelve a copy of these paths (from the top) for a session that has no branch; the files stay where they are.

    Neither what HEAD holds just so nor a large file is copied: nothing takes them away.
    """
    tip = git.oid("HEAD")
    work = sorted(path for path in touched if not is_folder(git, path))
    if not work or not tip:
        return Abandoned((), git.current())
    large = [path for path in work if _is_large(git, path)]
    held = {path: oid for path, (_, oid) in tree_entries(git, tip, work).items()}
    copied = [path for path in work if path not in large and raw_oid(git, path) != held.get(path, "")]
    warnings: list[str] = []
    archived: tuple[str, ...] = ()
    if copied:
        shelf = Shelf(git, session_id)
        shelved = shelf.of_files(copied, tip, Kind.WORK, branch=git.current())
        shelf.keep(shelved)
        archived = (shelved.ref,)
        since = f"changed since session {session_id} began, left as they are (a copy is in the trash)"
        warnings.append(f"{since}: {_named(copied)}")
    if large:
        warnings.append(
            f"changed since session {session_id} began, too large to be copied, left as they are: {_named(large)}"
        )
    return Abandoned(archived, git.current(), tuple(warnings))


def _named(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _NAMED_AT_MOST} more" if len(paths) > _NAMED_AT_MOST else ""
    return ", ".join(paths[:_NAMED_AT_MOST]) + more


def _is_large(git: Git, path: str) -> bool:
    found = lstat(git.at.top, path, {})
    return found is not None and found.st_size > BIG_BYTES


def is_folder(git: Git, path: str) -> bool:
    """Whether a repository stands there (a submodule, a clone): its content is its own affair."""
    place = git.at.top / path
    return place.is_dir() and not place.is_symlink()
