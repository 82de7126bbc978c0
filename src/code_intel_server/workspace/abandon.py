"""Ends a session that is not to be finished: its branch and uncommitted work shelved, HEAD back on the base (SPEC 3.2).

It never refuses for good, since `clean` is the way out of every session: what cannot be done (a merge half done, a base
checked out elsewhere) is left as it is and said as a warning; the work is shelved in any case.
"""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from code_intel_server.errors import UserActionNeeded
from code_intel_server.workspace import merges, status
from code_intel_server.workspace.git import HEADS, Git
from code_intel_server.workspace.refusals import refuse
from code_intel_server.workspace.shelf import Kind, Shelf, Shelved, put_back, return_aside, tree_entries, write_back
from code_intel_server.workspace.values import Abandoned, GitIntent, GitOperation, Record, TaskBranch


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
                self._leave(archived)
            elif self.pending:
                self._give_back(archived)
            archived += merges.remove(self.git, [self.branch.name], reason="code-intel: session abandoned")
        except UserActionNeeded as error:
            warnings.append(str(error.params.get("output") or error))
        return Abandoned(tuple(archived), self.git.current(), tuple(warnings))

    def _leave(self, archived: list[str]) -> None:
        tip = self.git.oid("HEAD")
        work, removable = self._work(tip)
        shelf = Shelf(self.git, self.session_id)
        shelved: list[Shelved] = []
        if work:
            shelved.append(shelf.of_files(work, tip, Kind.WORK, branch=self.branch.name))
            if not self.git.in_progress() and status.staged(self.git):
                shelved.append(shelf.of_index(tip))
        shelf.keep(*shelved)
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
        self._give_back(archived)

    def _work(self, tip: str) -> tuple[list[str], list[str]]:
        """What has to be shelved, and what of it must leave the working tree before HEAD can.

        What the server itself writes (context.yml) is no work of the session; the user writes there as well, so it stays.
        """
        changed = {path for path in status.unfinished(self.git) if not is_folder(self.git, path)}
        fresh = {
            path
            for path, oid in self.untracked().items()
            if not is_folder(self.git, path) and self.before.get(path) != oid
        }
        # Files of the user's that the task branch has taken in: the switch will remove them, and they must come back.
        taken = set(tree_entries(self.git, tip, self.before))
        return sorted(changed | fresh | taken), sorted(changed | (fresh - self.before.keys()))

    def _give_back(self, archived: list[str]) -> None:
        """Put the user's own untracked files, which left the tree with the task branch, where they were."""
        for ref in archived:
            if ref.endswith(Kind.WORK.value):
                write_back(self.git, self.git.oid(ref), self.before)


def is_folder(git: Git, path: str) -> bool:
    """Whether a repository stands there (a submodule, a clone): its content is its own affair."""
    place = git.at.top / path
    return place.is_dir() and not place.is_symlink()
