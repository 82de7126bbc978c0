"""The git effects of a session, each safe to repeat (SPEC 6).

Every effect goes: is it legal → compute → record the intent → do it. Given the recorded intent again, it looks at the
refs first: what is done is not done twice, what is half done is finished.
"""

import contextlib
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from code_intel_server.errors import CodeIntelError, Rejected, Unavailable
from code_intel_server.workspace import atomic_writes
from code_intel_server.workspace.branches import merges, stale
from code_intel_server.workspace.branches.abandon import Abandon, copy_work
from code_intel_server.workspace.branches.archive_refs import permissions_of, return_aside, tree_entries
from code_intel_server.workspace.branches.base_branches import (
    BaseRecord,
    is_branch_name,
    read_base,
    record_change,
    stale_branches,
)
from code_intel_server.workspace.branches.commits import Commit, identity_missing
from code_intel_server.workspace.branches.messages import stamped
from code_intel_server.workspace.branches.refusals import NOT_COMMITTED, dirty, failed, failing_as, refuse
from code_intel_server.workspace.branches.session_worktrees import why_in_use
from code_intel_server.workspace.branches.stale import Cleaned
from code_intel_server.workspace.git.repository import HEADS, TASK_PREFIX, Git, RefChange, is_safe_name, open_readable
from code_intel_server.workspace.git.worktrees import bisecting, in_progress, is_shallow
from code_intel_server.workspace.paths import Project
from code_intel_server.workspace.tree import status
from code_intel_server.workspace.tree.saved_files import SavedFiles, but_grown, saved_files
from code_intel_server.workspace.tree.tree import TreeJudge
from code_intel_server.workspace.values import (
    Abandoned,
    CommitRequest,
    CommitResult,
    GitIntent,
    GitOperation,
    HandMerges,
    MergeResult,
    RecordIntent,
    Retired,
    StaleBranch,
    Survey,
    TaskBranch,
)

CREATION_FAILED = "failures.READY.branch_creation_failed"
OPERATION_FAILED = "failures.BRANCH_INTERVENTION.branch_operation_failed"
FINALIZE_FAILED = "failures.PRE_COMMIT.finalize_failed"
MERGE_FAILED = "failures.MERGE.merge_failed"
SWITCH_FAILED = "tool_errors.git.switch_failed"


class BranchManager:
    """`finish` is `merge` or `branch` (SPEC 12); `patience` in seconds is how long a held index is waited for.

    `finish_now` is asked when a session ends: who finds only then that the base takes no merge may still keep the branch.
    """

    def __init__(
        self,
        root: Path,
        tree: TreeJudge,
        *,
        finish: str = "merge",
        finish_now: Callable[[], str] = str,
        patience: float = 10.0,
    ) -> None:
        self._root = root
        self._tree = tree
        self._finish = finish
        self._finish_now = finish_now
        self._patience = patience
        self._opened: Git | None = None

    # -- looking ----------------------------------------------------------------------------------------------------

    def survey(self) -> Survey:
        """Describe HEAD, stale branches and uncommitted work; changes nothing, runs nothing of the repository."""
        git = self._open()
        if isinstance(git, str):
            return Survey(False, git, "", "", (), "", (), {}, identity_missing=False)
        current, head = git.current(), git.oid("HEAD")
        base = read_base(git, current) if current.startswith(TASK_PREFIX) else None
        return Survey(
            git=True,
            blocker=_blocker(git, current, head),
            current=current,
            head=head,
            stale=tuple(sorted(stale_branches(git))),
            current_base=base.base if base else "",
            dirty=tuple(sorted(status.unfinished(git))) if head else (),
            untracked=self._tree.untracked(),
            identity_missing=identity_missing(git),
            warnings=_warnings(git),
        )

    def standing_base(self) -> str:
        """The recorded base of the task branch HEAD is on; '' where it is on none."""
        git = self._open()
        current = "" if isinstance(git, str) else git.current()
        base = read_base(git, current) if not isinstance(git, str) and current.startswith(TASK_PREFIX) else None
        return base.base if base else ""

    def tip(self) -> str:
        """Object id of HEAD, '' without git or commits."""
        git = self._open()
        return "" if isinstance(git, str) else git.oid("HEAD")

    def current(self) -> str:
        """Name of the branch HEAD is on, '' where detached or without git."""
        git = self._open()
        return "" if isinstance(git, str) else git.current()

    def stale(self) -> tuple[StaleBranch, ...]:
        """Task branches of sessions that are over, but not those finish mode `branch` kept."""
        git = self._open()
        if isinstance(git, str):
            return ()
        current = git.current()
        rows = sorted(stale_branches(git).items())
        return tuple(
            StaleBranch(name, oid, (read_base(git, name) or BaseRecord("", "")).base, name == current)
            for name, oid in rows
        )

    # -- effects ----------------------------------------------------------------------------------------------------

    def create(
        self, session_id: str, explained: Collection[str], record: RecordIntent, pending: GitIntent | None
    ) -> TaskBranch:
        """Make and check out `llm_task_<session_id>` from the branch HEAD is on; remember its base.

        `explained` are tracked paths changed during the session for which a reason was given: they come along.

        Raises UserActionNeeded('failures.READY.branch_creation_failed'): `reason`, `output` and `files` in the details.
        """
        with failing_as(CREATION_FAILED):
            return self._create(self._require(), session_id, explained, record, pending)

    def retire(self, choice: str, session_id: str, record: RecordIntent, pending: GitIntent | None) -> Retired:
        """`delete` all stale task branches, or `merge` the current one into its recorded base and remove the rest.

        Raises UserActionNeeded('failures.BRANCH_INTERVENTION.branch_operation_failed').
        """
        with failing_as(OPERATION_FAILED, choice=choice):
            git = self._require()
            own = pending if pending and pending.operation is GitOperation.RETIRE_BRANCHES else None
            remember = _Recorded(record, own)
            merged = stale.merge_stale(git, remember, own) if choice == "merge" else None
            removed = stale.remove_stale(git, session_id, remember, remember.last)
        names = [*([merged.from_branch] if merged else []), *removed.branches]
        sessions = tuple(name.removeprefix(TASK_PREFIX) for name in names)
        return Retired(tuple(names), removed.archived, merged.oid if merged else "", sessions)

    def commit(self, request: CommitRequest, record: RecordIntent, pending: GitIntent | None) -> CommitResult:
        """Commit `keep`, discard `discard` recoverably; hooks and signing as the user set them.

        Raises UserActionNeeded('failures.PRE_COMMIT.finalize_failed') with the hook's output,
        Rejected('failures.PRE_COMMIT.head_moved') where HEAD is off the branch or its tip is not `expected_tip`,
        Rejected('failures.PRE_COMMIT.branch_gone') where there is no such branch any more.
        """
        with failing_as(FINALIZE_FAILED):
            git = self._require()
            return_aside(git)
            result = Commit(git, request, record, pending).run()
            return replace(result, outside=tuple(status.outside(git)))

    def discard(self, request: CommitRequest, record: RecordIntent, pending: GitIntent | None) -> tuple[str, ...]:
        """Archive the present content of `request.discard`, then put these files back to the base's version (or remove them).

        Returns the archive refs; safe to repeat. Raises as `commit` does.
        """
        with failing_as(FINALIZE_FAILED):
            git = self._require()
            return_aside(git)
            self._refuse_lost(git, request)
            permissions = permissions_of(git, [git.at.prefix + path for path in request.discard])
            archived = Commit(git, request, record, pending).discard_only()
        self._give_back(git, request, permissions)
        return archived

    def _refuse_lost(self, git: Git, request: CommitRequest) -> None:
        """Refuse to discard what git never tracked and was too big to be kept as it was before the session: it would be gone."""
        full = {git.at.prefix + path: path for path in request.discard}
        commit = request.start or request.expected_tip
        tracked = tree_entries(git, commit, full) if git.oid(commit) else {}
        held = {
            path: self._tree.held(request.base_snapshot, path) for name, path in full.items() if name not in tracked
        }
        lost = sorted(path for path, (mode, content) in held.items() if mode and content is None)
        if lost:
            raise Rejected("failures.PRE_COMMIT.original_not_kept", details={"files": lost}, files=", ".join(lost[:20]))

    def _give_back(self, git: Git, request: CommitRequest, permissions: Mapping[str, int]) -> None:
        """Files and links that git did not track before the session get the content they had then: they are the user's (SPEC 6.1)."""
        for path in request.discard:
            full = git.at.prefix + path
            mode, content = "", None
            if not os.path.lexists(self._root / path):
                mode, content = self._tree.held(request.base_snapshot, path)
            if content is not None:
                atomic_writes.place(git, atomic_writes.IncomingFile(full, mode, content, permissions.get(full)))

    def merge(
        self,
        branch: TaskBranch,
        session_id: str,
        expected_tip: str,
        trailers: Sequence[tuple[str, str]],
        record: RecordIntent,
        pending: GitIntent | None,
        by_hand: HandMerges | None = None,
    ) -> MergeResult:
        """Merge the task branch into its base with a merge commit, switch to base, remove the branch recoverably.

        Raises UserActionNeeded('failures.MERGE.merge_failed'), `conflicts` or `files` in the details; nothing has changed
        then. Raises UserActionNeeded('tool_errors.git.switch_failed') where the base has the merge, HEAD being still on the branch.
        """
        remember = _Recorded(record, pending)
        try:
            git = self._require()
            found = merges.hand_merges(git, branch, expected_tip, pending)  # refuses a branch that has moved meanwhile
            by_hand = found if by_hand is None else by_hand
            rows = [*stamped(trailers, session_id), *merges.hand_trailers(by_hand)]
            tip = by_hand.commits[-1] if by_hand.commits else expected_tip
            home = self._home()
            merge = merges.Merge(git, branch, rows, remember, pending, tip=tip, home=home)
            wanted = "branch" in {self._finish, self._finish_now()}
            busy = "" if wanted or home is None else why_in_use(home, branch.base, tip)
            result = replace(merge.keep_branch(), busy=busy) if wanted or busy else merge.run()
            owner = branch.name.removeprefix(TASK_PREFIX)
            return result if owner == session_id or result.pushed_hint else replace(result, retired=(owner,))
        except Rejected:
            raise
        except CodeIntelError as error:
            raise failed(SWITCH_FAILED if self._is_merged(remember.last) else MERGE_FAILED, error) from error

    def _is_merged(self, last: GitIntent | None) -> bool:
        """Whether the base holds the merge that the last intent names: what failed then came after it."""
        git = self._open()
        if isinstance(git, str) or last is None or last.operation is not GitOperation.MERGE or last.new == last.old:
            return False
        with contextlib.suppress(Unavailable):
            return git.is_ancestor(last.new, git.oid(last.ref))
        return False

    def hand_merges(self, branch: TaskBranch, expected_tip: str, pending: GitIntent | None) -> HandMerges:
        """The merges of the base that were made by hand on top of `expected_tip`.

        Raises Rejected('failures.MERGE.head_moved') where anything else lies between.
        """
        with failing_as(MERGE_FAILED):
            return merges.hand_merges(self._require(), branch, expected_tip, pending)

    def abandon(
        self,
        session_id: str,
        branch: TaskBranch | None,
        before: Mapping[str, str],
        record: RecordIntent,
        pending: GitIntent | None,
        start: str = "",
        head: str = "",
        writable: Collection[str] = (),
    ) -> Abandoned:
        """Shelve the session's branch and uncommitted work and return HEAD to base (`clean`).

        `before` is `Survey.untracked` of the session's start: those files stay where they are, those in `writable`, which
        the session may have written to, as they were in snapshot `start`, taken at commit `head`. Where no branch was made (yet), all work since
        then stays, and a copy of it is shelved. Never refuses because of the repository's state: what stays, or had to be
        left, is told in `warnings`.
        """
        git = self._open()
        if isinstance(git, str):
            return Abandoned((), "")
        branch = branch or self._begun(git, session_id, pending)
        if branch is None:
            return self._copy_work(git, session_id, start, head)
        prefix = git.at.prefix
        own = pending if pending and pending.operation is GitOperation.ABANDON else None

        def untracked() -> Mapping[str, str]:
            return {prefix + path: oid for path, oid in self._tree.untracked().items()}

        def lost() -> SavedFiles:
            return saved_files(self._tree, prefix, start, branch.base_oid)

        mine = {prefix + path: oid for path, oid in before.items()}
        allowed = {prefix + path for path in writable}
        return Abandon(git, session_id, branch, mine, untracked, record, own, lost, allowed).run()

    def _begun(self, git: Git, session_id: str, pending: GitIntent | None) -> TaskBranch | None:
        """The session's branch where it was made and the state that names it was not saved any more."""
        name = TASK_PREFIX + session_id
        if pending is None or pending.operation is not GitOperation.CREATE_BRANCH or not git.oid(HEADS + name):
            return None
        base = read_base(git, name)
        return TaskBranch(name, base.base, base.oid) if base else None

    def _copy_work(self, git: Git, session_id: str, start: str, head: str) -> Abandoned:
        """Keep a copy of what changed since the session's start; the files themselves stay, on the user's own branch."""
        try:
            changes = self._tree.changes(start, self._tree.snapshot()) if start else ()
        except Unavailable:
            lost = f"what changed since session {session_id} began cannot be told any more; all files stay as they are"
            return Abandoned((), git.current(), (lost,))
        touched = {path for change in changes for path in (change.path, change.old_path) if path}
        mine = saved_files(self._tree, git.at.prefix, start, head or git.oid("HEAD"))
        return copy_work(git, session_id, {git.at.prefix + path for path in touched}, mine)

    def keep_earlier(self, session_id: str, start: str, head: str) -> Abandoned:
        """At the end of a session that was not given up: shelve what it took away of what the user had uncommitted at its start."""
        git = self._open()
        if isinstance(git, str) or not start:
            return Abandoned((), "")
        return copy_work(git, session_id, (), but_grown(git, saved_files(self._tree, git.at.prefix, start, head)))

    def cleanup_stale(self, *, dry_run: bool = False) -> Cleaned:
        """Remove every stale task branch recoverably; one that cannot go (no base to return to, held) is left and named."""
        found = self.stale()
        git = self._open()
        return Cleaned(found) if isinstance(git, str) else stale.clean(git, found, dry_run=dry_run)

    # -- inside -----------------------------------------------------------------------------------------------------

    def _open(self) -> Git | str:
        if self._opened is None:
            opened = open_readable(self._root, self._patience)
            if isinstance(opened, str):
                return opened
            self._opened = opened
        return self._opened

    def _home(self) -> Git | None:
        """The user's folder, where this is the worktree of one of its sessions."""
        home = Project(self._root).home
        opened = open_readable(home, self._patience) if home is not None else None
        if isinstance(opened, str):
            raise refuse("not_a_repository", opened)
        return opened

    def _require(self) -> Git:
        git = self._open()
        if isinstance(git, str):
            raise refuse("not_a_repository", git)
        return git

    def _create(
        self, git: Git, session_id: str, explained: Collection[str], record: RecordIntent, pending: GitIntent | None
    ) -> TaskBranch:
        if not is_safe_name(session_id):
            raise refuse("bad_name", f"a session cannot be called {session_id!r}")
        name = TASK_PREFIX + session_id
        half = self._half_created(git, name, pending)
        if half is None:
            half = self._new_branch(git, name, explained, record)
        merges.switch(git, name, leaving=half.base)
        if git.current() != name:
            raise refuse("head_moved", f"HEAD has left {half.base}: run `git switch {half.base}` and submit again")
        return half

    def _half_created(self, git: Git, name: str, pending: GitIntent | None) -> TaskBranch | None:
        """The branch of a former attempt, where it got that far."""
        ours = pending is not None and pending.operation is GitOperation.CREATE_BRANCH and pending.ref == HEADS + name
        tip = git.oid(HEADS + name)
        record = read_base(git, name)
        if ours and tip and record:
            return TaskBranch(name, record.base, record.oid)
        if pending is not None and ours and tip == pending.new:
            # git killed between two refs of its transaction: each takes its place by a rename of its own
            record = BaseRecord(pending.extra["base"], pending.new)
            git.transact([record_change(git, name, record)], reason="code-intel: base recorded")
            return TaskBranch(name, record.base, record.oid)
        if tip:
            raise refuse("branch_exists", f"a branch {name} exists already")
        return None

    def _new_branch(self, git: Git, name: str, explained: Collection[str], record: RecordIntent) -> TaskBranch:
        base, head = git.current(), git.oid("HEAD")
        blocker = _blocker(git, base, head)
        if blocker:
            raise refuse("blocked", blocker)
        git.await_index()
        changed = sorted(set(status.unfinished(git)) - {git.at.prefix + path for path in explained})
        if changed:
            raise dirty(NOT_COMMITTED, changed)
        remember = record_change(git, name, BaseRecord(base, head))
        record(GitIntent(GitOperation.CREATE_BRANCH, HEADS + name, "", head, {"base": base}))
        git.transact([RefChange(HEADS + name, "", head), remember], reason=f"branch: created from {base}")
        return TaskBranch(name, base, head)


@dataclass(slots=True)
class _Recorded:
    """Records intents, and keeps the last: the next step goes on from it."""

    record: RecordIntent
    last: GitIntent | None

    def __call__(self, intent: GitIntent) -> None:
        """Record one."""
        self.record(intent)
        self.last = intent


def _blocker(git: Git, current: str, head: str) -> str:
    """Why no task branch can be made here, in one sentence; '' where one can."""
    if not current:
        first = "end the bisect (`git bisect reset`) or " if bisecting(git) else ""
        return f"HEAD is detached: {first}check out a branch first"
    if not head:
        return f"the branch {current} has no commit yet: make a first commit"
    if not is_branch_name(git, current):
        return f"the branch name {current!r} cannot be given to git safely"
    half_done = in_progress(git)
    return f"{half_done} is in progress: finish or abort it first" if half_done else ""


def _warnings(git: Git) -> tuple[str, ...]:
    found = []
    if os.path.lexists(git.at.git_dir / "index.lock"):
        found.append(f"{git.at.git_dir / 'index.lock'} exists: another git command is running, or one was killed")
    if is_shallow(git):
        found.append("the history is shallow: merging may need `git fetch --unshallow`")
    return tuple(found)
