"""Values that cross between the flow and the workspace: branches, changes of the tree, git intents, proofs.

Nothing here does anything; the flow (floor 3) and the git code (floor 2) both read it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class GitOperation(StrEnum):
    """The git effects of a session, each safe to repeat (SPEC 6)."""

    CREATE_BRANCH = "create_branch"
    RETIRE_BRANCHES = "retire_branches"
    COMMIT = "commit"
    MERGE = "merge"
    ABANDON = "abandon"


@dataclass(frozen=True, slots=True)
class GitIntent:
    """What is about to be done to the refs: written to the checkpoint before the effect, dropped with its result.

    `old` and `new` are the expected object ids of `ref` before and after; `new` is empty where only git can know it (a
    commit whose hooks may rewrite the message).
    """

    operation: GitOperation
    ref: str
    old: str
    new: str
    extra: Mapping[str, str] = field(default_factory=dict)


RecordIntent = Callable[[GitIntent], None]
"""Persists an intent; returns only when it is on disk."""


@dataclass(frozen=True, slots=True)
class TaskBranch:
    """The branch of a session. `base` is a branch name (`main`), `base_oid` its tip when the task branch was made."""

    name: str
    base: str
    base_oid: str


@dataclass(frozen=True, slots=True)
class Survey:
    """What the repository looks like before a session touches it. Reading it changes nothing.

    `blocker` says in one sentence why no task branch can ever be made here (no git, unborn or detached HEAD, bare,
    mid-merge …); empty where one can. `dirty` are tracked paths with changes (staged or not), `untracked` maps paths to
    the git hash of their content. `current` is the branch HEAD is on, '' where detached.
    """

    git: bool
    blocker: str
    current: str
    head: str
    stale: tuple[str, ...]
    current_base: str
    dirty: tuple[str, ...]
    untracked: Mapping[str, str]
    identity_missing: bool
    warnings: tuple[str, ...] = ()


EXECUTABLE = "100755"
"""Git's mode of a file that may be executed."""


class ChangeKind(StrEnum):
    """How a path differs between two trees."""

    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"
    RENAMED = "renamed"
    MODE = "mode"


@dataclass(frozen=True, slots=True)
class Hunk:
    """A changed place: `new_count` lines from `new_start` replace `old_count` lines from `old_start` (1-based).

    A count of 0 is a pure deletion or insertion next to that line, as in `diff -U0`.
    """

    old_start: int
    old_count: int
    new_start: int
    new_count: int


@dataclass(frozen=True, slots=True)
class Change:
    """One path that differs. `old_path` for a rename; `binary` where no lines can be known; `oid` of the new content.

    `link` where the path is a symbolic link now, `repository` where it is, or was, one of a repository within; `within` is
    the repository in which a file lies that is uncommitted there. `modes` are git's modes before and now of a file that was
    there and has another.
    """

    path: str
    kind: ChangeKind
    old_path: str = ""
    binary: bool = False
    oid: str = ""
    hunks: tuple[Hunk, ...] = ()
    link: bool = False
    modes: tuple[str, str] | None = None
    repository: bool = False
    within: str = ""


@dataclass(frozen=True, slots=True)
class CommitRequest:
    """What PRE_COMMIT wants done. Paths are relative to the project, `/`-separated.

    `keep` is committed, `discard` archived and then put back to the base's version (or removed), `leave` stays as it is,
    uncommitted. `branch` is empty after `continue` off a task branch: the commit then goes where HEAD is. `start` is
    the commit that changes are measured from, `base_snapshot` holds what a discarded file git did not track was like before.
    `executable` says of kept files whether they may be executed now where the session changed that.
    """

    session_id: str
    branch: TaskBranch | None
    expected_tip: str
    message: str
    trailers: tuple[tuple[str, str], ...]
    keep: tuple[str, ...]
    discard: tuple[str, ...] = ()
    leave: tuple[str, ...] = ()
    start: str = ""
    base_snapshot: str = ""
    executable: tuple[tuple[str, bool], ...] = ()
    archived: tuple[str, ...] = ()
    """What this commit's earlier attempts archived."""


@dataclass(frozen=True, slots=True)
class CommitResult:
    """`oid` of the commit, or '' where there was nothing to commit; `archived` refs hold what was discarded."""

    oid: str
    tip: str
    archived: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    """Files above or beside the project's folder, from the top, that are in no commit of it: changed, or untracked lock files."""


@dataclass(frozen=True, slots=True)
class MergeResult:
    """`oid` of the merge commit; '' where the task branch had not moved and was only removed, or was kept.

    `brought_back` are commits (at most twenty, newest first) that the base held when the task branch was made and had lost since.
    `combined` says that the merge holds more than the task branch: the base had moved on, and nobody has verified both together.
    `retired` is the session whose branch it was where another one has continued it, and it is gone now.
    `busy` says why the user's own folder could not take the merge, where the branch was kept for that.
    """

    oid: str
    from_branch: str
    to_branch: str
    pushed_hint: str = ""
    brought_back: tuple[str, ...] = ()
    combined: bool = False
    retired: tuple[str, ...] = ()
    busy: str = ""


@dataclass(frozen=True, slots=True)
class HandMerges:
    """Merges of the base into the task branch that were made by hand, oldest first.

    `unreviewed` are the files in which they differ from what git makes of their two sides, those in conflict aside.
    """

    commits: tuple[str, ...] = ()
    unreviewed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Beside:
    """Files that stand otherwise on disk than in a checkout of a commit: git tracks them and was told not to look, or it does
    not track them."""

    tracked: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Retired:
    """Branches that were removed (each kept under an archive ref) and, for `merge`, the merge commit."""

    branches: tuple[str, ...]
    archived: tuple[str, ...]
    merged: str = ""
    session_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Abandoned:
    """What `clean` left: refs that hold the branch and the uncommitted work, the branch HEAD is on now, and what it could not do."""

    archived: tuple[str, ...]
    head: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StaleBranch:
    """A task branch no session owns any more; `base` is '' where it was not recorded, `current` where HEAD is on it."""

    name: str
    oid: str
    base: str
    current: bool


class ProofStatus(StrEnum):
    """What a verification verdict is worth (SPEC 4, POST_IMPL_VERIFY)."""

    PROVEN = "proven"
    FAILED = "failed"
    UNPROVEN = "unproven"
    WAIVED = "waived"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class ToCommit:
    """What is to be verified as a commit: upon `base` (a commit) what changed since snapshot `since`, `without` some paths."""

    base: str
    since: str
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SeenTests:
    """What old and new tests on old and new code showed, by test id (SPEC 4, Receipts).

    `counts` has every list's length, `listed` the first ids of each. `questions` maps what needs a reason (a test's id, or a
    sentence) to why. `only_status` where no test was named, `unavailable` why nothing can be concluded; `tries` counts the
    times that the same tree was run. `not_loaded` are changed files of code that the tests' processes loaded no line of,
    `uncompared` those that only tests mentioned before, where no run showed what passes without their change.
    """

    counts: dict[str, int] = field(default_factory=dict)
    listed: dict[str, list[str]] = field(default_factory=dict)
    passed_before: int = 0
    questions: dict[str, str] = field(default_factory=dict)
    runs: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    not_loaded: list[str] = field(default_factory=list)
    uncompared: list[str] = field(default_factory=list)
    only_status: bool = False
    unavailable: str = ""
    seconds: float = 0.0
    tries: int = 1

    @property
    def seen(self) -> bool:
        """Whether tests were seen one by one."""
        return not self.only_status and not self.unavailable


BY_NO_ASSERTION = "by an import, name or build error"
"""What the trailer says of tests that fail without a change because of what is not there."""

BESIDE = (
    "passes only beside files that are in no commit: in a clean checkout it fails with this change, and not without it"
)
"""Why a command that runs no tests needs a reason."""

WHERE_SURVIVED = "pass where new and changed functions do nothing"
"""What the trailer says of tests that survive a mutant."""


def fail_to_pass_count(count: int, new_names: int, survived: int = 0) -> str:
    """How many tests fail without a change, by no assertion, and pass where its functions do nothing, as trailers say it."""
    of_these = {
        BY_NO_ASSERTION: new_names,
        WHERE_SURVIVED: survived,
    }
    said = "; ".join(f"{number} {what}" for what, number in of_these.items() if number)
    return f"{count} ({said})" if said else str(count)


@dataclass(frozen=True, slots=True)
class CommandRun:
    """One verify command as the server ran it. `outcome` is proven, failed, unproven (could not start, not trusted) or waived.

    `rewritten` are files that were written while it ran and are as before again: what it saw of them nobody knows.
    """

    argv: tuple[str, ...]
    outcome: ProofStatus
    returncode: int | None
    seconds: float
    output_tail: str
    reason: str = ""
    rewritten: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Proof:
    """The verify commands of one verdict and the tree they judged, hashed after they ended.

    `left_out` are files of that tree that were not there for them: git tracks them, and leaves them out of the checkout.
    `tests` is what was seen test by test, None where nothing was to be committed or no command runs tests.
    """

    status: ProofStatus
    tree: str
    runs: tuple[CommandRun, ...] = ()
    left_out: tuple[str, ...] = ()
    tests: SeenTests | None = None


@dataclass(frozen=True, slots=True)
class Prompt:
    """A procedure the agent may name: from the project where it has one, else the packaged default."""

    kind: str
    name: str
    path: str
    text: str
    packaged: bool


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One call of one tool. `seq` counts from 1 within the session; `results` is the number of rows it returned.

    `tree` is the snapshot that it showed, where it showed one; `asks` are the ids and places that it said must be verified,
    of review_changes the paths of which it showed only a part.
    """

    seq: int
    tool: str
    phase: str
    outcome: str
    results: int
    files: tuple[str, ...]
    tree: str = ""
    asks: tuple[str, ...] = ()
