"""Ends a session that is not to be finished: its branch and uncommitted work shelved, HEAD back on the base (SPEC 3.2).

It never refuses for good, since `clean` is the way out of every session: what cannot be done (a merge half done, a base
checked out elsewhere) is left as it is and said as a warning; the work is shelved in any case.

What the user had untracked before the session is his: where the session may have written to it, it gets its earlier text
back, and what it had become goes to the shelf with the work. Any other such file that is otherwise now may have been
changed by the user himself; it stays, and its earlier text is shelved.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from code_intel_server.errors import UserActionNeeded
from code_intel_server.workspace.branches import merges
from code_intel_server.workspace.branches.archive_refs import (
    ArchivedContent,
    ArchiveKind,
    Archiver,
    entry_at,
    is_repository,
    is_same,
    permissions_of,
    put_back,
    raw_oid,
    return_aside,
    tree_entries,
    write_back,
)
from code_intel_server.workspace.branches.refusals import refuse, words
from code_intel_server.workspace.git.repository import DIFFERING, HEADS, Git, split_z
from code_intel_server.workspace.git.worktrees import in_progress
from code_intel_server.workspace.tree import status
from code_intel_server.workspace.tree.saved_files import NO_SAVED_FILES, SavedFiles
from code_intel_server.workspace.tree.snapshot_index import lstat
from code_intel_server.workspace.tree.tree import BIG_BYTES
from code_intel_server.workspace.values import Abandoned, GitIntent, GitOperation, RecordIntent, TaskBranch

_NAMED_AT_MOST = 20
_NOTED_AT_MOST = 200
_USUAL = {0o644, 0o755}


@dataclass(frozen=True, slots=True)
class Abandon:
    """`before` are the user's untracked files of the session's start (from the top) → hash; `untracked` asks for today's.

    `earlier` stores and names what of them is otherwise now, `writable` are the paths the session was allowed to write.
    """

    git: Git
    session_id: str
    branch: TaskBranch
    before: Mapping[str, str]
    untracked: Callable[[], Mapping[str, str]]
    record: RecordIntent
    pending: GitIntent | None
    earlier: Callable[[], SavedFiles] = lambda: NO_SAVED_FILES
    writable: Collection[str] = ()
    _archived: list[str] = field(default_factory=list)
    _warnings: list[str] = field(default_factory=list)

    def run(self) -> Abandoned:
        """Shelve, put back, switch, remove; repeating it after a crash finishes it."""
        self._archived.extend(self._noted("archived").split())
        try:
            return_aside(self.git)
            if self.git.current() == self.branch.name:
                self._leave()
            elif self.pending:
                self._give_back(json.loads(self._noted("permissions") or "{}"))
            else:
                self._keep_earlier()
            self._archived.extend(
                merges.remove_branches(self.git, [self.branch.name], reason="code-intel: session abandoned")
            )
        except UserActionNeeded as error:
            self._warnings.append(words(error))
        self._say_what_became_of_the_users()
        return Abandoned(tuple(self._archived), self.git.current(), tuple(self._warnings))

    def _noted(self, name: str) -> str:
        return self.pending.extra.get(name, "") if self.pending else ""

    def _leave(self) -> None:
        tip = self.git.oid("HEAD")
        found = self._earlier()
        fresh = self._fresh()
        large = self._large(fresh - self._returning)
        if large:
            self._warnings.append(f"too large to be shelved, left where they are: {_named(large)}")
        work, removable = self._work(tip, fresh.difference(large), found.keys() - large)
        archiver = Archiver(self.git, self.session_id)
        shelved = _shelve(archiver, found, work, tip, self.branch.name)
        if work and not in_progress(self.git) and status.staged(self.git):
            shelved.append(archiver.of_index(tip))
        archiver.keep(*shelved)
        self._archived.extend(each.ref for each in shelved)
        permissions = permissions_of(self.git, self.before)
        self._intend(tip, permissions)
        merges.check_still(self.git)
        merges.check_free(self.git, HEADS + self.branch.base)
        if not self.git.oid(HEADS + self.branch.base):
            raise refuse("base_missing", f"the base branch {self.branch.base} does not exist; HEAD stays where it is")
        if removable:
            put_back(
                self.git, removable, tip, next(each.commit for each in shelved if _holds(each.ref, ArchiveKind.WORK))
            )
        merges.switch(self.git, self.branch.base, leaving=self.branch.name)
        self._give_back(permissions)

    def _intend(self, tip: str, permissions: Mapping[str, int]) -> None:
        """Note where the way back begins; who takes it up after a kill finds no file any more that tells its permissions."""
        unusual = {path: mode for path, mode in permissions.items() if mode not in _USUAL}
        extra = {"archived": " ".join(self._archived), "base": self.branch.base}
        if unusual and len(unusual) <= _NOTED_AT_MOST:
            extra["permissions"] = json.dumps(unusual)
        self.record(GitIntent(GitOperation.ABANDON, HEADS + self.branch.name, tip, "", extra))

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

    def _work(self, tip: str, fresh: set[str], earlier: Collection[str]) -> tuple[list[str], list[str]]:
        """What has to be shelved, and what of it must leave the working tree before HEAD can.

        What the server itself writes (context.yml) is no work of the session; the user writes there as well, so it stays.
        So does what lies outside the project in its repository: nothing judges it, and nobody is asked about it.
        """
        inside = self.git.at.prefix
        unfinished = {path for path in status.unfinished(self.git) if path.startswith(inside)}
        changed = {path for path in unfinished if not is_folder(self.git, path)}
        # Files of the user's that the task branch has taken in: the switch will remove them, and they must come back.
        taken = set(tree_entries(self.git, tip, self.before))
        own = {path for path in earlier if not is_folder(self.git, path)}
        leaving = changed | (fresh - self.before.keys()) | (own & self._returning)
        return sorted(changed | fresh | taken | own), sorted(leaving)

    @property
    def _returning(self) -> set[str]:
        """The user's files that are to be as they were before, where they are not."""
        return self.before.keys() & set(self.writable)

    def _earlier(self) -> Mapping[str, tuple[str, str]]:
        found = self.earlier()
        if lost := _not_kept(self.git, found):
            self._warnings.append(f"{_lost_since(self.session_id)}: {_named(lost)}")
        return found.stored

    def _keep_earlier(self) -> None:
        """Where the user is on another branch his files stay as they are; what they were before the session is kept."""
        found, tip = self._earlier(), self.git.oid("HEAD")
        if found and tip:
            archiver = Archiver(self.git, self.session_id)
            shelved = _shelve(archiver, found, [], tip, self.branch.name)
            archiver.keep(*shelved)
            self._archived.extend(each.ref for each in shelved)

    def _give_back(self, permissions: Mapping[str, int]) -> None:
        """Put the user's own untracked files, which left the tree with the task branch, where they were.

        Those the session may have written to as they were before it, the others as they were last.
        """
        for kind, paths in ((ArchiveKind.EARLIER, self._returning), (ArchiveKind.WORK, self.before)):
            for ref in self._shelved_as(kind):
                write_back(self.git, self.git.oid(ref), paths, permissions=permissions)

    def _shelved_as(self, kind: ArchiveKind) -> list[str]:
        return [ref for ref in self._archived if _holds(ref, kind)]

    def _say_what_became_of_the_users(self) -> None:
        """Name the files whose earlier text was shelved: those that have it again, and those that are as they were left."""
        wanted: dict[str, tuple[str, str]] = {}
        for ref in self._shelved_as(ArchiveKind.EARLIER):
            wanted |= _changed_in(self.git, ref)
        back = sorted(path for path, entry in wanted.items() if is_same(self.git, entry_at(self.git, path), entry))
        left = sorted(wanted.keys() - set(back))
        if back:
            again = f"as they were before session {self.session_id} again (what they had become is in the trash)"
            self._warnings.append(f"{again}: {_named(back)}")
        if left:
            self._warnings.append(f"{_left_since(self.session_id)}: {_named(left)}")


def _shelve(
    archiver: Archiver, earlier: Mapping[str, tuple[str, str]], work: Sequence[str], tip: str, branch: str
) -> list[ArchivedContent]:
    """What the user's files were before, and on top of it what they are now: so each can be brought back in place of the other."""
    shelved = [archiver.of_entries(earlier, tip, ArchiveKind.EARLIER, branch=branch)] if earlier else []
    if work:
        shelved.append(archiver.of_files(work, shelved[0].commit if shelved else tip, ArchiveKind.WORK, branch=branch))
    return shelved


def _holds(ref: str, kind: ArchiveKind) -> bool:
    return ref.endswith(f"-{kind.value}")


def _changed_in(git: Git, ref: str) -> dict[str, tuple[str, str]]:
    """What a shelved commit holds otherwise than its parent: path → mode and id."""
    commit = git.oid(ref)
    paths = split_z(git.must(*DIFFERING, f"{commit}^", commit))
    return tree_entries(git, commit, paths)


def _not_kept(git: Git, earlier: SavedFiles) -> list[str]:
    """What is said to be lost: not a repository within that is still there, which keeps its content itself."""
    return [path for path in earlier.not_kept if not is_repository(git, path)]


def _lost_since(session_id: str) -> str:
    return f"changed since session {session_id} began, too large (or repositories) for their earlier content to be kept"


def _left_since(session_id: str) -> str:
    return f"changed since session {session_id} began, left as they are (what they were before is in the trash)"


def copy_work(git: Git, session_id: str, touched: Collection[str], earlier: SavedFiles) -> Abandoned:
    """Shelve a copy of these paths (from the top) for a session that has no branch; the files stay where they are.

    Neither what HEAD holds just so nor a large file is copied: nothing takes them away. What of the user's they have
    taken the place of is shelved too.
    """
    tip = git.oid("HEAD")
    work = sorted(path for path in touched if not is_folder(git, path))
    if not (work or earlier.stored) or not tip:
        return Abandoned((), git.current())
    large = [path for path in work if _is_large(git, path)]
    held = {path: oid for path, (_, oid) in tree_entries(git, tip, work).items()}
    gone = earlier.stored.keys()
    copied = [path for path in work if path not in large and (path in gone or raw_oid(git, path) != held.get(path, ""))]
    archiver = Archiver(git, session_id)
    shelved = _shelve(archiver, earlier.stored, copied, tip, git.current())
    archiver.keep(*shelved)
    since = f"changed since session {session_id} began"
    said = (
        (copied, f"{since}, left as they are (a copy is in the trash)"),
        (large, f"{since}, too large to be copied, left as they are"),
        (sorted(gone), _left_since(session_id)),
        (_not_kept(git, earlier), _lost_since(session_id)),
    )
    warnings = tuple(f"{words}: {_named(paths)}" for paths, words in said if paths)
    return Abandoned(tuple(each.ref for each in shelved), git.current(), warnings)


def _named(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _NAMED_AT_MOST} more" if len(paths) > _NAMED_AT_MOST else ""
    return ", ".join(paths[:_NAMED_AT_MOST]) + more


def _is_large(git: Git, path: str) -> bool:
    found = lstat(git.at.top, path, {})
    return found is not None and found.st_size > BIG_BYTES


def is_folder(git: Git, path: str) -> bool:
    """Whether a repository is there (a submodule, a clone): its content is its own affair."""
    place = git.at.top / path
    return place.is_dir() and not place.is_symlink()
