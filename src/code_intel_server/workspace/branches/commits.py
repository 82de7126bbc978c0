"""Commits reviewed paths and nothing else (SPEC 6.3).

It is `git commit --only` in single steps, so that the new commit is known, and recorded, before the branch moves to it
by compare-and-swap: a commit the user makes meanwhile is never reverted, and after a crash one look at the branch tells
whether ours is there. The index that is committed is a temporary one (the user's, with what is not reviewed taken back
to HEAD); hooks see it as they do under `git commit --only`. Afterwards the user's own index follows for exactly the
committed paths. Clean filters, hooks (pre-commit, prepare-commit-msg, commit-msg, post-commit, reference-transaction)
and signing are the user's.
"""

from collections.abc import Collection, Sequence
from pathlib import Path

from code_intel_server.errors import Rejected, Unavailable
from code_intel_server.workspace.branches import archive_refs
from code_intel_server.workspace.branches.archive_refs import (
    ArchiveKind,
    Archiver,
    is_repository,
    put_back,
    scratch_index,
    write_index,
)
from code_intel_server.workspace.branches.messages import (
    after_hooks,
    commit_object,
    run_hook,
    stamped,
    trailer_list,
    with_missing,
    with_trailers,
    without_trailers,
)
from code_intel_server.workspace.branches.refusals import refuse
from code_intel_server.workspace.git.child import Manner, is_yes, output_of
from code_intel_server.workspace.git.index_entries import IndexEntries
from code_intel_server.workspace.git.repository import DIFFERING, HEADS, Git, RefChange, join_z, split_z
from code_intel_server.workspace.git.worktrees import in_progress
from code_intel_server.workspace.tree import status
from code_intel_server.workspace.tree.snapshot_index import lstat
from code_intel_server.workspace.values import CommitRequest, CommitResult, GitIntent, GitOperation, RecordIntent

LEFT = "Code-Intel-Left"
HEAD_MOVED = "failures.PRE_COMMIT.head_moved"
BRANCH_GONE = "failures.PRE_COMMIT.branch_gone"


class Commit:
    """One commit of reviewed paths; see `BranchManager.commit`."""

    def __init__(self, git: Git, request: CommitRequest, record: RecordIntent, pending: GitIntent | None) -> None:
        self._git = git
        self._request = request
        self._record = record
        self._pending = pending if pending and pending.operation is GitOperation.COMMIT else None
        self._branch = request.branch.name if request.branch else git.current()
        self._ref = HEADS + self._branch
        self._keep = [_from_top(git, path) for path in request.keep]
        self._discard = [_from_top(git, path) for path in request.discard]
        noted = self._pending.extra.get("archived", "").split() if self._pending else []
        self._archived = tuple(dict.fromkeys((*request.archived, *noted)))

    def run(self) -> CommitResult:
        """Commit, or say that there was nothing to commit; Rejected where HEAD is not where it was left."""
        finished = self._finished()
        if finished is not None:
            return finished
        self._check()
        self._discard_files()
        self._git.await_index()
        with scratch_index(self._git, copy=True) as index:
            env = {"GIT_INDEX_FILE": str(index)}
            self._stage(env)
            if self._tree(env) == self._git.oid(self._request.expected_tip, "tree"):
                return CommitResult("", self._request.expected_tip, self._archived)
            run_hook(self._git, "pre-commit", env=env)
            trailers = stamped(self._request.trailers, self._request.session_id)
            message = after_hooks(self._git, with_trailers(self._request.message, trailers), prepare=True, env=env)
            tree = self._tree(env)
            message = self._truthful(message, trailers, tree)
            if tree == self._git.oid(self._request.expected_tip, "tree"):
                return CommitResult("", self._request.expected_tip, self._archived)
            oid = commit_object(self._git, tree, [self._request.expected_tip], message)
            self._publish(oid, message)
            run_hook(self._git, "post-commit", env={}, may_fail=True)
        return CommitResult(oid, oid, self._archived)

    def _truthful(self, message: str, trailers: Sequence[tuple[str, str]], tree: str) -> str:
        """The message with all its trailers, none saying that a file was left which a hook has put into the tree."""
        left = {_from_top(self._git, path): path for path in self._request.leave}
        changed = self._changed(self._request.expected_tip, tree) if left else []
        if left.keys().isdisjoint(changed):
            return with_missing(message, trailers)
        said = [row for row in trailers if row[0] == LEFT]
        rest = sorted(left[path] for path in left.keys() - {*changed})
        true = [row for row in trailers if row not in said] + ([(LEFT, trailer_list(rest))] if rest else [])
        return with_missing(without_trailers(message, said), true)

    def discard_only(self) -> tuple[str, ...]:
        """Archive and put back what is discarded, and commit nothing yet; the archive refs."""
        if self._is_published():
            return self._archived
        self._check()
        self._discard_files()
        return self._archived

    def _finished(self) -> CommitResult | None:
        """The result where a former attempt got as far as moving the branch."""
        if self._pending is None or not self._is_published():
            return None
        self._align(self._pending.old, self._pending.new)
        return CommitResult(self._pending.new, self._git.oid(self._ref), self._archived)

    def _is_published(self) -> bool:
        pending = self._pending
        return pending is not None and bool(pending.new) and self._git.is_ancestor(pending.new, self._ref)

    def _check(self) -> None:
        current, tip = self._git.current(), self._git.oid("HEAD")
        if not current or current != self._branch or tip != self._request.expected_tip:
            raise Rejected(
                HEAD_MOVED if self._git.oid(self._ref) else BRANCH_GONE,
                details={"current": current, "tip": tip, "expected_tip": self._request.expected_tip},
                branch=self._branch,
                current=current or "detached HEAD",
                found=tip[:12],
                expected=self._request.expected_tip[:12],
            )
        half_done = in_progress(self._git)
        if half_done:
            raise refuse("in_progress", f"{half_done} is in progress")
        if identity_missing(self._git):
            raise refuse("identity_missing", "git does not know your name and e-mail address")

    # -- discarding -------------------------------------------------------------------------------------------------

    def _discard_files(self) -> None:
        """Archive, then put back; a second attempt finds nothing left to do for the files already back."""
        if not self._discard:
            return
        within = [path for path in self._discard if is_repository(self._git, path)]
        if within:
            raise Rejected(
                "failures.PRE_COMMIT.repository_within", details={"files": within}, files=", ".join(within[:20])
            )
        base = self._base()
        head = archive_refs.tree_entries(self._git, self._request.expected_tip, self._discard)
        wanted = archive_refs.tree_entries(self._git, base, self._discard)
        paths = self._differing(wanted)
        # What an earlier commit of this session made of the path has to be undone in this one.
        self._keep += [path for path in self._discard if head.get(path) != wanted.get(path)]
        if not paths:
            return
        archiver = Archiver(self._git, self._request.session_id)
        shelved = archiver.of_files(paths, self._request.expected_tip, ArchiveKind.DISCARD, branch=self._branch)
        archiver.keep(shelved)
        self._archived = (*self._archived, shelved.ref)
        self._intend("")
        put_back(self._git, paths, base, shelved.commit)

    def _base(self) -> str:
        """The commit whose version a discarded path gets: where task branch and base part, else HEAD."""
        branch = self._request.branch
        if self._request.start:
            return self._request.start
        if branch is None:
            return self._request.expected_tip
        base = self._git.oid(HEADS + branch.base) or branch.base_oid
        done = self._git.run("merge-base", base, self._request.expected_tip)
        return done.text().strip() if is_yes(done) else branch.base_oid

    def _differing(self, wanted: dict[str, tuple[str, str]]) -> list[str]:
        """What is to be discarded and does not have (as far as git can tell without a filter) the base's content yet."""
        indexed = IndexEntries(self._git.must("ls-files", "-t", "-s", "-z"))
        edited = status.unstaged(self._git)
        linked: dict[str, bool] = {}

        def settled(path: str) -> bool:
            """Whether a path is already as the base has it, in the index and in the tree."""
            there = lstat(self._git.at.top, path, linked) is not None
            if path not in wanted:
                return not there and path not in indexed
            entry = indexed.get(path)
            return there and entry is not None and (entry.mode, entry.oid) == wanted[path] and path not in edited

        return [path for path in self._discard if not settled(path)]

    # -- staging ----------------------------------------------------------------------------------------------------

    def _stage(self, env: dict[str, str]) -> None:
        """Make the temporary index: HEAD's content, with the present content of what is kept."""
        keep = set(self._keep)
        indexed = IndexEntries(self._git.must("ls-files", "-t", "-s", "-z", env=env))
        add, remove = self._sorted_out(indexed)
        others = status.staged(self._git) - keep
        head = archive_refs.tree_entries(self._git, self._request.expected_tip, others)
        zero = self._git.zero()
        rows = [
            f"{head[path][0]} {head[path][1]}\t{path}" if path in head else f"0 {zero}\t{path}"
            for path in sorted(others)
        ]
        rows += [f"0 {zero}\t{path}" for path in remove]
        # Entered anew, an entry loses the marks (assume-unchanged, skip-worktree) that would hide its content.
        rows += [f"{indexed[path].mode} {indexed[path].oid}\t{path}" for path in add if path in indexed]
        self._update(env, rows, "--index-info")
        self._update(env, add, "--add", "--replace", "--stdin")
        if not self._git.heeds_executable_bit():
            for bit, sign in ((True, "+"), (False, "-")):
                marked = [_from_top(self._git, path) for path, now in self._request.executable if now is bit]
                self._update(env, [path for path in marked if path in add], f"--chmod={sign}x", "--stdin")

    def _sorted_out(self, indexed: Collection[str]) -> tuple[list[str], list[str]]:
        """What is kept, as paths to add and paths to remove. An ignored file git does not track is never added."""
        linked: dict[str, bool] = {}
        add: list[str] = []
        remove: list[str] = []
        for path in self._keep:
            (add if _committable(self._git.at.top, path, linked) else remove).append(path)
        fresh = [path for path in add if path not in indexed]
        ignored = status.ignored_among(self._git, fresh) if fresh else set()
        return [path for path in add if path not in ignored], remove + sorted(ignored)

    def _update(self, env: dict[str, str], rows: Sequence[str], *options: str) -> None:
        if rows:
            done = self._git.run("update-index", "-z", *options, manner=Manner.USER, stdin=join_z(rows), env=env)
            self._git.refuse_filter(done)
            if not done.ok:
                raise refuse("staging_failed", output_of(done))

    def _changed(self, old: str, new: str) -> list[str]:
        return split_z(self._git.must(*DIFFERING, old, new))

    def _tree(self, env: dict[str, str]) -> str:
        return self._git.must("write-tree", manner=Manner.USER, env=env).decode().strip()

    # -- publishing -------------------------------------------------------------------------------------------------

    def _publish(self, oid: str, message: str) -> None:
        self._intend(oid)
        subject = message.partition("\n")[0][:100]
        try:
            self._git.transact(
                [RefChange(self._ref, self._request.expected_tip, oid)], reason=f"commit: {subject}", manner=Manner.USER
            )
        except Unavailable:
            tip, expected = self._git.oid(self._ref), self._request.expected_tip
            if tip != expected:
                current = self._git.current() or "detached HEAD"
                raise Rejected(
                    HEAD_MOVED, branch=self._branch, current=current, found=tip[:12], expected=expected[:12]
                ) from None
            raise
        self._align(self._request.expected_tip, oid)

    def _intend(self, new: str) -> None:
        extra = {"archived": " ".join(self._archived)} if self._archived else {}
        old = self._request.expected_tip
        self._record(GitIntent(GitOperation.COMMIT, self._ref, old, new, extra))

    def _align(self, old: str, new: str) -> None:
        """Bring the user's index in line with the commit for exactly its paths; other content staged there is shelved."""
        paths = self._changed(old, new)
        mine = archive_refs.tree_entries(self._git, new, paths)
        before = archive_refs.tree_entries(self._git, old, paths)
        listed = self._git.must("--literal-pathspecs", "ls-files", "-t", "-s", "-z")
        entries = IndexEntries(listed)
        present = {path: (entry.mode, entry.oid) for path in paths if (entry := entries.get(path))}
        if any(entry not in {mine.get(path), before.get(path)} for path, entry in present.items()):
            archiver = Archiver(self._git, self._request.session_id)
            staged = archiver.of_index(old)
            archiver.keep(staged)
            self._archived = (*self._archived, staged.ref)
        zero = self._git.zero()
        stale = [path for path in paths if present.get(path) != mine.get(path)]
        rows = [f"{mine[path][0]} {mine[path][1]}\t{path}" if path in mine else f"0 {zero}\t{path}" for path in stale]
        if rows:
            write_index(self._git, "update-index", "-z", "--index-info", stdin=join_z(rows))
            write_index(self._git, "update-index", "-q", "--refresh", may_fail=True)


def identity_missing(git: Git) -> bool:
    """Whether a commit would fail because git knows no name or address."""
    asked = (git.run("var", f"GIT_{who}_IDENT", manner=Manner.USER) for who in ("AUTHOR", "COMMITTER"))
    return not all(done.ok for done in asked)


def _from_top(git: Git, path: str) -> str:
    """A project path as a path from the top; Rejected where it is none."""
    parts = path.split("/")
    if not path or "\0" in path or any(part in {"", ".", ".."} or part.lower() == ".git" for part in parts):
        raise Rejected("failures.PRE_COMMIT.path_invalid", path=path)
    return git.at.prefix + path


def _committable(top: Path, path: str, linked: dict[str, bool]) -> bool:
    """Whether there is a file, a link or a repository at the path."""
    found = lstat(top, path, linked)
    return found is not None and (
        not (top / path).is_dir() or (top / path).is_symlink() or (top / path / ".git").exists()
    )
