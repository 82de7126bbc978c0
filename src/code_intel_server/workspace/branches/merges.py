"""Brings a task branch home: merge commit, base, working tree, removal of the branch (SPEC 6.4, 6.5).

The merge is computed without the working tree (`git merge-tree`), so a conflict never reaches the user's files. Then the
base moves by compare-and-swap, then HEAD switches to it, then the branch is archived and dropped in one transaction.
Each step is recognised after a crash by looking at the refs. The order keeps every state whole: until the switch the
user is on the task branch with its files, after it on the base with the merge's.

Of the hooks `git merge` has, commit-msg judges the message and post-merge runs afterwards; pre-merge-commit does not
run, since it would look at a working tree that is not the merge's. post-checkout runs with the switch.
"""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from code_intel_server.common.own_folder import home_of
from code_intel_server.errors import Rejected, Unavailable, UserActionNeeded
from code_intel_server.workspace.branches.archive_refs import ArchiveKind, Archiver, scratch_index
from code_intel_server.workspace.branches.base_branches import BaseRecord, drop_changes, read_base, record_change
from code_intel_server.workspace.branches.commits import identity_missing
from code_intel_server.workspace.branches.messages import (
    after_hooks,
    commit_object,
    run_hook,
    trailer_list,
    with_missing,
    with_trailers,
)
from code_intel_server.workspace.branches.refusals import dirty, refuse
from code_intel_server.workspace.git.child import Manner, output_of
from code_intel_server.workspace.git.isolated_directory import RAW_ATTRIBUTES, IsolatedGit
from code_intel_server.workspace.git.repository import DIFFERING, HEADS, TASK_PREFIX, Git, RefChange, join_z, split_z
from code_intel_server.workspace.git.worktrees import bisecting, held_elsewhere, in_progress, is_shallow, rebased_here
from code_intel_server.workspace.tree import status
from code_intel_server.workspace.values import (
    GitIntent,
    GitOperation,
    HandMerges,
    MergeResult,
    RecordIntent,
    TaskBranch,
)

_ATTEMPTS = 5
_HAND_MERGES = 50
_NAMED_COMMITS = 20
_NO_MERGE_DRIVERS = RAW_ATTRIBUTES.replace("\n", " !merge\n")


@dataclass(frozen=True, slots=True)
class Merge:
    """One merge of a task branch; `operation` is the intent it records (the end of a session, or of a stale branch).

    `tip` is the commit that was judged: what the branch points to a moment later is not merged. `home` is the user's folder
    where this is a session's own worktree: it is on the base, and git takes it to the merge.
    """

    git: Git
    branch: TaskBranch
    trailers: Sequence[tuple[str, str]]
    record: RecordIntent
    pending: GitIntent | None
    operation: GitOperation = GitOperation.MERGE
    tip: str = ""
    home: Git | None = None

    def run(self) -> MergeResult:
        """Merge, switch to base, remove the branch; a typed refusal before the base has moved changes nothing."""
        oid = self._published()
        if oid is None:
            self._check()
            oid = self._merged()
        switch(self.git, self.branch.base, leaving=self.branch.name)
        if oid and self.home is None:  # there git has run it
            run_hook(self.git, "post-merge", "0", may_fail=True)
        remove_branches(self.git, [self.branch.name], reason=f"code-intel: merged into {self.branch.base}")
        back = _brought_back(self.git, self.branch, f"{oid}^1") if oid else ()
        combined = bool(oid) and self.git.oid(oid, "tree") != self.git.oid(f"{oid}^2", "tree")
        return MergeResult(oid, self.branch.name, self.branch.base, brought_back=back, combined=combined)

    def keep_branch(self) -> MergeResult:
        """Finish mode `branch`: keep the task branch, return to base, say how to push. An unmoved one is removed."""
        tip = self.git.oid(self._task)
        if not tip or self.git.is_ancestor(tip, self._base):
            return self.run()
        check_still(self.git)
        check_free(self.git, self._base)
        switch(self.git, self.branch.base, leaving=self.branch.name)
        kept = BaseRecord(self.branch.base, self.branch.base_oid, kept=True)
        self.git.transact([record_change(self.git, self.branch.name, kept)], reason="code-intel: branch kept")
        return MergeResult("", self.branch.name, self.branch.base, push_hint(self.git, self.branch))

    @property
    def _task(self) -> str:
        return HEADS + self.branch.name

    @property
    def _base(self) -> str:
        return HEADS + self.branch.base

    def _published(self) -> str | None:
        """What a former attempt made of the base, where it got that far: its merge commit, or '' for nothing to merge."""
        pending = self.pending
        if pending is None or pending.operation is not self.operation or pending.ref != self._base:
            return None
        if not self.git.is_ancestor(pending.new, self.git.oid(self._base)):
            return None
        return "" if pending.new == pending.old else pending.new

    def _check(self) -> None:
        check_still(self.git)
        if not self.git.oid(self._base):
            raise refuse("base_missing", f"the base branch {self.branch.base} does not exist any more")
        if not self.git.oid(self._task):
            raise refuse("branch_missing", f"the task branch {self.branch.name} does not exist any more")
        check_head(self.git, self.branch)
        check_free(self.git, self._base)

    def _merged(self) -> str:
        """Move the base to the merge commit; '' where the base already holds everything of the task branch."""
        tip = self.tip or self.git.oid(self._task)
        for _ in range(_ATTEMPTS):
            base = self.git.oid(self._base)
            if self.git.is_ancestor(tip, base):
                if self.home is None:
                    check_way(self.git, base)
                self._intend(base, base, tip)
                return ""
            oid = self._merge_commit(base, tip)
            check_way(self.home or self.git, oid)
            (self.home or self.git).await_index()
            self._intend(base, oid, tip)
            if self._swap(base, oid):
                return oid
        raise refuse("base_moving", f"{self.branch.base} moved again and again while it was merged into")

    def _intend(self, old: str, new: str, tip: str) -> None:
        extra = {"task": tip, "branch": self.branch.name, "base_oid": self.branch.base_oid}
        self.record(GitIntent(self.operation, self._base, old, new, extra))

    def _merge_commit(self, base: str, tip: str) -> str:
        if identity_missing(self.git):
            raise refuse("identity_missing", "git does not know your name and e-mail address")
        tree = merged_tree(self.git, base, tip)
        subject = f"Merge branch '{self.branch.name}' into {self.branch.base}"
        back = _brought_back(self.git, self.branch, base)
        rows = [*self.trailers, *_driven(self.git, base, tip, tree)]
        if tree != self.git.oid(tip, "tree"):
            rows.append(("Code-Intel-Unproven", f"the merge as a whole, as {self.branch.base} had moved on"))
        rows += [("Code-Intel-Brought-Back", " ".join(oid[:12] for oid in back))] if back else []
        message = after_hooks(self.git, with_trailers(subject, rows), prepare=False, env={})
        return commit_object(self.git, tree, [base, tip], with_missing(message, rows))

    def _swap(self, base: str, oid: str) -> bool:
        """Whether the base went from `base` to `oid`; False where somebody moved it first."""
        if self.home is not None:
            return self._forwarded(self.home, base, oid)
        try:
            reason = f"merge {self.branch.name}: code-intel"
            self.git.transact([RefChange(self._base, base, oid)], reason=reason, manner=Manner.USER)
        except Unavailable:
            if self.git.oid(self._base) == base:
                raise
            return False
        return True

    def _forwarded(self, home: Git, base: str, oid: str) -> bool:
        """Whether git has taken the user's folder, which is on the base, and the base with it to the merge."""
        if home.current() != self.branch.base:  # a hook of the merge may have taken its time
            raise refuse("switch_failed", f"the user's folder is not on {self.branch.base} any more")
        forward = ("merge", "--ff-only", "--quiet", "--no-overwrite-ignore", oid)
        done = home.run(*forward, manner=Manner.USER)
        now = home.oid(self._base)
        if now == base:
            raise refuse("switch_failed", output_of(done))
        return now == oid


def _brought_back(git: Git, branch: TaskBranch, base: str) -> tuple[str, ...]:
    """Commits that were taken off the base since the task branch was made (a rebase, a reset, a fetch by force): the task
    branch is on them, so a merge brings them back, and nobody has reviewed that."""
    if not branch.base_oid or not git.oid(branch.base_oid) or git.is_ancestor(branch.base_oid, base):
        return ()
    return tuple(git.text("rev-list", f"--max-count={_NAMED_COMMITS}", branch.base_oid, f"^{base}").split())


def _driven(git: Git, base: str, tip: str, tree: str) -> list[tuple[str, str]]:
    """A trailer for what merges files of both sides otherwise than by their lines: drivers of the configuration, and git's
    own `union`, which leaves no conflict. What they make of them nobody has reviewed."""
    if git.is_ancestor(base, tip):
        return []
    config = git.config()
    drivers = {name[6:-7] for name in config if name.startswith("merge.") and name.endswith(".driver")}
    drivers |= {"union"} & {config.get("merge.default", ""), *_merge_attributes(git, base, tip, tree)}
    return [("Code-Intel-Merge-Drivers", " ".join(", ".join(sorted(drivers)).split())[:200])] if drivers else []


def _merge_attributes(git: Git, base: str, tip: str, tree: str) -> set[str]:
    """How the files that the merge took from both sides are to be merged, as the attributes say; nothing runs to tell."""
    sides = (set(split_z(git.must(*DIFFERING, side, tree))) for side in (base, tip))
    both = sorted(set.intersection(*sides))
    told = split_z(git.must("check-attr", "-z", "--stdin", "merge", stdin=join_z(both))) if both else []
    return set(told[2::3])


def hand_merges(git: Git, branch: TaskBranch, expected: str, pending: GitIntent | None) -> HandMerges:
    """What lies between where the session left the task branch and where it is: nothing, or merges of the base.

    After a conflict the base is merged into the task branch by hand and committed (SPEC 4, MERGE), again where it has
    moved on meanwhile: that new tip is accepted. Nobody reviewed what such a merge holds, and it may have to change more
    than the files in conflict; so trailers name the merges and those files, and the flow has it proven. Any other tip is
    refused with Rejected('failures.MERGE.head_moved'): it would bring in what no phase has seen.
    """
    tip = git.oid(HEADS + branch.name)
    base = git.oid(HEADS + branch.base)
    # An intent alone proves nothing: only where the base holds its merge is the tip no longer the question.
    merging = pending is not None and pending.operation is GitOperation.MERGE
    published = pending is not None and merging and bool(base) and git.is_ancestor(pending.new, base)
    if not tip or not expected or tip == expected or published:
        return HandMerges()
    found = _hand_merges(git, tip, expected, base)
    if not found:
        raise Rejected("failures.MERGE.head_moved", branch=branch.name, expected=expected[:12], found=tip[:12])
    check_head(git, branch)  # what is proven next is what lies on disk
    unreviewed = {path for merge, ours, theirs in found for path in _more_than_merged(git, merge, ours, theirs)}
    return HandMerges(tuple(merge for merge, _, _ in found), tuple(sorted(unreviewed)))


def hand_trailers(by_hand: HandMerges) -> list[tuple[str, str]]:
    """What the merge commit says of merges made by hand."""
    rows = [("Code-Intel-Merged-By-Hand", merge) for merge in by_hand.commits]
    if by_hand.unreviewed:
        rows.append(("Code-Intel-Unreviewed", trailer_list(by_hand.unreviewed)))
    return rows


def _hand_merges(git: Git, tip: str, expected: str, base: str) -> list[tuple[str, str, str]]:
    """The merges of the base that lead from `expected` to `tip`, oldest first, each with its two parents (the task's,
    the base's); nothing where anything else lies between, a merge of what the branch held already included."""
    found: list[tuple[str, str, str]] = []
    while tip != expected and len(found) < _HAND_MERGES:
        parents = git.text("rev-list", "--parents", "--no-walk", tip).split()[1:]
        of_base = [parent for parent in parents if base and git.is_ancestor(parent, base)]
        ours = [parent for parent in parents if parent not in of_base]
        if len(parents) != 2 or len(of_base) != 1 or git.is_ancestor(of_base[0], ours[0]):
            return []
        found.insert(0, (tip, ours[0], of_base[0]))
        tip = ours[0]
    return found if tip == expected else []


def _more_than_merged(git: Git, tip: str, ours: str, theirs: str) -> list[str]:
    """The files of a hand-made merge that are not as git itself merges their lines, those in conflict aside.

    No driver of the configuration is asked: the same one has made the merge, and nobody has seen what it makes.
    """
    room = IsolatedGit(git, "merge", _NO_MERGE_DRIVERS)
    room.prepare()
    with scratch_index(git) as index:
        done = room.run("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs, index=index)
        fields = split_z(done.stdout)
        if done.returncode not in {0, 1} or not fields:
            raise refuse("merge_impossible", output_of(done))
        paths = split_z(room.must(*DIFFERING, fields[0], tip, index=index))
    room.empty()
    return sorted(set(paths) - set(fields[1:]))


def merged_tree(git: Git, ours: str, theirs: str) -> str:
    """The tree of a merge; UserActionNeeded('tool_errors.git.conflict') naming the files where there is none."""
    done = git.run("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs, manner=Manner.USER)
    fields = split_z(done.stdout)
    if done.returncode == 0 and fields:
        return fields[0]
    if done.returncode == 1:
        files = sorted(set(fields[1:]))
        raise refuse("conflict", f"conflicts in: {', '.join(files)}", conflicts=files)
    shallow = " (the history is shallow: `git fetch --unshallow` may help)" if is_shallow(git) else ""
    raise refuse("merge_impossible", output_of(done) + shallow)


def check_head(git: Git, branch: TaskBranch) -> None:
    """Refuse where HEAD is not on the task branch."""
    current = git.current()
    if current != branch.name:
        first = "end the bisect (`git bisect reset`), " if not current and bisecting(git) else ""
        words = f"HEAD is not on {branch.name}: {first}run `git switch {branch.name}` and submit again"
        raise refuse("head_moved", words)


def check_still(git: Git) -> None:
    """Refuse while something of the user's is half done, or somebody holds the index."""
    half_done = in_progress(git)
    if half_done:
        raise refuse("in_progress", f"{half_done} is in progress")
    git.await_index()


def check_free(git: Git, ref: str) -> None:
    """Refuse where another working tree has the branch checked out, or is rebasing or bisecting it.

    A session's own worktree never checks its base out.
    """
    if home_of(str(git.at.top)):
        return
    holder = held_elsewhere(git).get(ref)
    if holder is not None:
        raise _held(ref.removeprefix(HEADS), holder)


def _held(name: str, path: str) -> UserActionNeeded:
    return refuse(
        "held_elsewhere", f"{name} is checked out in {path}, or being rebased or bisected there", worktree=path
    )


def check_way(git: Git, target: str) -> None:
    """Refuse where going from HEAD to `target` would meet a file git does not track, or uncommitted changes (SPEC 6.5)."""
    head = git.oid("HEAD")
    if git.oid(head, "tree") == git.oid(target, "tree"):
        return
    incoming = split_z(git.must(*DIFFERING, head, target))
    hits = status.in_the_way(git, incoming)
    if hits:
        raise refuse("in_the_way", f"untracked or ignored files are in the way: {', '.join(hits[:20])}", files=hits)
    changed = sorted(status.dirty(git) & set(incoming))
    if changed:
        raise dirty("uncommitted changes are in the way", changed)


def switch(git: Git, target: str, *, leaving: str) -> None:
    """Check out branch `target` where HEAD is still on `leaving`; elsewhere the user has moved on and nothing is done.

    A session's own worktree only leaves its branch: `target` is its home's, and it is about to go.
    """
    if git.current() != leaving or leaving == target:
        return
    own = bool(home_of(str(git.at.top)))
    if not own:
        check_way(git, HEADS + target)
    git.await_index()
    where = ("--detach",) if own else ("--no-guess", "--no-overwrite-ignore", target)
    done = git.run("switch", "--quiet", *where, manner=Manner.USER)
    if git.current() != (
        "" if own else target
    ):  # a failing post-checkout hook is no failure: the switch is done by then
        git.refuse_filter(done)
        raise refuse("switch_failed", output_of(done))


def check_removable(git: Git, names: Iterable[str], *, leaving: str) -> None:
    """Refuse where one of the branches is in use; `leaving` is one that HEAD is about to leave."""
    held, rebased = held_elsewhere(git), rebased_here(git)
    current = git.current()
    for name in names:
        if not git.oid(HEADS + name):
            continue
        if name == current != leaving:  # git would delete it all the same and leave HEAD on a branch without a commit
            raise refuse("head_moved", f"HEAD is on {name}: switch to another branch first")
        if HEADS + name in held:
            raise _held(name, held[HEADS + name])
        if HEADS + name in rebased:
            raise refuse("in_progress", f"a rebase of {name} is in progress: finish or abort it first")


def remove_branches(git: Git, names: Sequence[str], *, reason: str) -> list[str]:
    """Drop branches in one transaction, each tip and base record kept under an archive ref; returns those refs."""
    changes: list[RefChange] = []
    refs: list[str] = []
    check_removable(git, names, leaving="")
    for name in names:
        tip = git.oid(HEADS + name)
        if not tip:
            changes += drop_changes(git, name)  # git killed between two refs of its transaction
            continue
        base = read_base(git, name) or BaseRecord("", "")
        archiver = Archiver(git, name.removeprefix(TASK_PREFIX))
        shelved = archiver.of_commit(tip, ArchiveKind.BRANCH, branch=name, base=base.base, base_oid=base.oid)
        refs.append(shelved.ref)
        changes += [shelved.change, RefChange(HEADS + name, tip, ""), *drop_changes(git, name)]
    if changes:
        git.transact(changes, reason=reason)
    return refs


def push_hint(git: Git, branch: TaskBranch) -> str:
    """The commands that publish a kept branch and open a pull request."""
    config = git.config()
    remotes = sorted(
        name[len("remote.") : -len(".url")] for name in config if name.startswith("remote.") and name.endswith(".url")
    )
    remote = config.get(f"branch.{branch.base}.remote", "")
    if remote not in remotes:
        remote = "origin" if "origin" in remotes or not remotes else remotes[0]
    push = shlex.join(["git", "push", "--set-upstream", remote, branch.name])
    request = shlex.join(["gh", "pr", "create", "--base", branch.base, "--head", branch.name])
    return f"{push}\n{request}"
