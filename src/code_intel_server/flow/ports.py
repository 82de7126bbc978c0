"""The ports through which the flow reaches the world; implemented on lower floors, composed in `tools`.

Every method either returns a value or raises one of `errors`; none leaves a half-done effect that calling it again
with the same arguments (and the recorded intent) would not finish.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from pydantic import JsonValue

from code_intel_server.codebase.evidence import RangeVerdict, Reference, Replaced
from code_intel_server.workspace.values import (
    Abandoned,
    Beside,
    Change,
    CommandRun,
    CommitRequest,
    CommitResult,
    GitIntent,
    HandMerges,
    LedgerEntry,
    MergeResult,
    Prompt,
    Proof,
    RecordIntent,
    Retired,
    StaleBranch,
    Survey,
    TaskBranch,
    ToCommit,
)


class Branches(Protocol):
    """Git effects of a session (SPEC 6)."""

    def survey(self) -> Survey:
        """Describe HEAD, stale branches and uncommitted work."""
        ...

    def standing_base(self) -> str:
        """The recorded base of the task branch HEAD is on; '' where it is on none. Cheap, unlike `survey`."""
        ...

    def stale(self) -> tuple[StaleBranch, ...]:
        """Task branches of sessions that are over, by name."""
        ...

    def create(
        self, session_id: str, explained: Collection[str], record: RecordIntent, pending: GitIntent | None
    ) -> TaskBranch:
        """Make and check out `llm_task_<session_id>` from the branch HEAD is on; remember its base.

        `explained` are tracked paths changed during the session for which a reason was given. Raises
        UserActionNeeded('failures.READY.branch_creation_failed') naming other dirty tracked paths or the blocker.
        """
        ...

    def retire(self, choice: str, session_id: str, record: RecordIntent, pending: GitIntent | None) -> Retired:
        """`delete` all stale `llm_task_*`, or `merge` the current one into its recorded base and remove the rest.

        Raises UserActionNeeded('failures.BRANCH_INTERVENTION.branch_operation_failed').
        """
        ...

    def tip(self) -> str:
        """Object id of HEAD, '' without git or commits."""
        ...

    def current(self) -> str:
        """Name of the branch HEAD is on, '' where detached or without git."""
        ...

    def commit(self, request: CommitRequest, record: RecordIntent, pending: GitIntent | None) -> CommitResult:
        """Commit `keep`, discard `discard` recoverably; hooks and signing as the user set them.

        Raises UserActionNeeded('failures.PRE_COMMIT.finalize_failed') with the hook's output,
        Rejected('failures.PRE_COMMIT.head_moved') where HEAD is off the branch or its tip is not `expected_tip`,
        Rejected('failures.PRE_COMMIT.branch_gone') where there is no such branch any more.
        """
        ...

    def discard(self, request: CommitRequest, record: RecordIntent, pending: GitIntent | None) -> tuple[str, ...]:
        """Archive the present content of `request.discard`, then put these files back to the base's version (or remove them).

        Returns the archive refs; safe to repeat, and `commit` with the same request follows. Raises as `commit` does.
        """
        ...

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

        What is merged is `expected_tip`, or the last of the merges `by_hand` that were judged; without these they are
        looked for.

        With finish mode `branch` it only switches back and says how to push. Raises
        UserActionNeeded('failures.MERGE.merge_failed') naming conflicts; nothing has changed then.
        """
        ...

    def hand_merges(self, branch: TaskBranch, expected_tip: str, pending: GitIntent | None) -> HandMerges:
        """The merges of the base that were made by hand on top of `expected_tip`; none where the branch is there.

        Raises Rejected('failures.MERGE.head_moved') where anything else lies between.
        """
        ...

    def abandon(
        self,
        session_id: str,
        branch: TaskBranch | None,
        before: Mapping[str, str],
        record: RecordIntent,
        pending: GitIntent | None,
        start: str = "",
    ) -> Abandoned:
        """Shelve the session's branch and uncommitted work and return HEAD to base (`clean`, or a stop at escalation).

        `before` is `Survey.untracked` of the session's start: those files stay where they are. Without a branch all work
        since snapshot `start` stays, and a copy of it is shelved. What that is, and what the repository's state did not
        allow, is told in `warnings`.
        """
        ...


class WorkTree(Protocol):
    """The content of the project's files, hashed as git would, without running or changing anything (SPEC 4, 6.7)."""

    def snapshot(self, *, contents: bool = False, of: Collection[str] = ()) -> str:
        """Identify the present content of all tracked and untracked (not ignored) files; '' without git.

        `contents`: read every file, also where its stamps say that nobody wrote it; `of` does so for these paths.
        What the server itself writes under `.code-intel/` is never part of it. Content is kept in a private object
        store for the life of the session so that two snapshots can be compared after a restart.
        """
        ...

    def changes(self, old: str, new: str) -> tuple[Change, ...]:
        """What differs between two snapshots, renames found, hunks as `diff -U0`."""
        ...

    def lines(self, snapshot: str, path: str) -> tuple[str, ...] | None:
        """The lines of a file in a snapshot; None where it has none (absent, binary, too big)."""
        ...

    def oids(self, snapshot: str, paths: Sequence[str]) -> Mapping[str, str]:
        """The object ids of those of the paths that are files, links or submodules of a snapshot, at the cost of one."""
        ...

    def exists(self, snapshot: str, path: str) -> bool:
        """Whether a path is a file of a snapshot."""
        ...

    def content(self, snapshot: str, path: str) -> bytes | None:
        """The bytes of a file in a snapshot; None where it is absent, no regular file, or too big to be kept."""
        ...

    def altered(self, commit: str, paths: Sequence[str], snapshot: str) -> tuple[str, ...]:
        """What a commit holds otherwise than reviewed: by filters, by hooks, by somebody at that moment.

        These are those of `paths` whose content is not the snapshot's (line endings aside), and other paths it changes.
        """
        ...

    def uncommitted(self, snapshot: str, commit: str, paths: Sequence[str]) -> tuple[str, ...]:
        """Those of `paths` that a snapshot held otherwise than a checkout of `commit`: untracked, or with changes."""
        ...

    def beside(self, commit: str, snapshot: str, paths: Collection[str]) -> Beside:
        """What stood, `paths` aside, otherwise on disk when `snapshot` was taken than in a checkout of `commit`, but for what is left out."""
        ...

    def head_snapshot(self, commit: str) -> str:
        """The snapshot that a checkout of `commit` would have, for measuring from a commit."""
        ...


class SyntaxDifference(Protocol):
    """What two versions of a file differ in, without comments, white space and what cannot run."""

    def judge(self, start: int, end: int) -> RangeVerdict:
        """What lines `start`..`end` (1-based, inclusive) of the later version show."""
        ...


class Evidence(Protocol):
    """Looks at the project's files for the evidence rules of SPEC 4."""

    def exists(self, path: str) -> bool:
        """Whether a regular file inside the project (symlinks resolved) has this path."""
        ...

    def normal(self, path: str) -> str | None:
        """The path relative to the project, '/'-separated, as the file system spells it; None outside the project."""
        ...

    def own_name(self, path: str) -> str | None:
        """As `normal`, but a link named by the last part stays itself; None where that lies outside the project."""
        ...

    def total_lines(self, path: str) -> int | None:
        """Number of lines of a regular file inside the project; None where there is none."""
        ...

    def lines(self, path: str) -> Sequence[str] | None:
        """The lines of a text file inside the project as they are now; None where there is none, or it is over 1 MB."""
        ...

    def compare(
        self, path: str, before: bytes | None, after: bytes | None, hunks: Sequence[Replaced]
    ) -> "SyntaxDifference":
        """What two versions of a file differ in by syntax; `before` None where there was none, `after` None for the file as it lies."""
        ...


class Proofs(Protocol):
    """Runs the configured verify commands (SPEC 4, POST_IMPL_VERIFY)."""

    def run(
        self,
        session_id: str,
        progress: Callable[[float, float, str], None],
        tree: str = "",
        change: ToCommit | None = None,
    ) -> Proof:
        """Run them all in the project and bind the outcome to the tree hash taken after they ended.

        `tree` is the snapshot the caller has just taken: it is where nothing runs. With `change`, commands that run
        tests run in clean checkouts of what is to be committed, and test by test.
        """
        ...

    def written(self, session_id: str) -> Sequence[tuple[str, str]]:
        """The snapshots before and after each run in the project during which something changed there."""
        ...

    def would_run(self, session_id: str) -> bool:
        """Whether `run` would start a command: one is configured, trusted, not waived, and there."""
        ...

    def expected(self, session_id: str) -> Mapping[str, JsonValue]:
        """What `run` will run (`verify_commands`), and how the base's tests ended so far (`base`); nothing where it runs nothing."""
        ...

    def script(self, path: str) -> str:
        """The configured command that runs this file of the project; '' where none does."""
        ...

    def argument(self, path: str) -> str:
        """The configured command that hands this file of the project to what it runs; '' where none does."""
        ...


DOCUMENTS_AT_MOST = 12
"""Documents that DOCUMENT_RESEARCH lists."""


class Documents(Protocol):
    """Project documents and prompts (SPEC 11)."""

    def any_document(self) -> bool:
        """Whether some project document matches `document_search` (scaffold and client files are none)."""
        ...

    def documents_for(self, query: str, most: int) -> tuple[str, ...]:
        """At most `most` of the project's documents, those that speak about the query first."""
        ...

    def chosen_research(self) -> tuple[Prompt, ...]:
        """The doc_research prompts that `default_prompts` names, in its order; all where it names none that is there."""
        ...

    def find_prompt(self, kind: str, name: str) -> Prompt | None:
        """The prompt of `kind` (verifiers, interventions, review_prompts, doc_research, user_escalation, task_planning)
        that `name` names by stem, file name or path."""
        ...

    def prompts(self, kind: str) -> tuple[Prompt, ...]:
        """All prompts of a kind, the project's before the packaged."""
        ...

    def existing(self, names: Sequence[str]) -> tuple[str, ...]:
        """Those of the `.code-intel/*` names (globs allowed) that exist, as project-relative paths."""
        ...


@dataclass(frozen=True, slots=True)
class SymbolRelevance:
    """How a target symbol relates to the query: cosine `score` of their embeddings (None: no embedder) and where it is defined.

    `meant`: the query names it, or it is defined where the session begins.
    """

    symbol: str
    score: float | None
    resolved: tuple[str, ...]
    meant: bool = False


class Relevance(Protocol):
    """Embedding verification of QUERY_FRAME."""

    def symbols(self, symbols: Sequence[str], query: str) -> tuple[SymbolRelevance, ...]:
        """Score each symbol against the query and resolve it in the symbol cache; never raises, never waits for an index."""
        ...

    def definitions(self, symbols: Sequence[str]) -> Mapping[str, Sequence[Reference]]:
        """Where the symbol cache has each symbol defined, as far as it knows by now; never raises."""
        ...


class Author(StrEnum):
    """Whose word a decision is, and how that is known. A hook's record and a terminal are no proof: the agent runs as the same user."""

    USER = "answered by the user"
    TERMINAL = "typed at a terminal"
    HOOK = "heard by the hook"
    AGENT = "said by the agent"


class User(Protocol):
    """The user's own words, as far as they can be had without the agent (SPEC 12)."""

    def decides(self, what: str, choice: str, choices: Sequence[str]) -> tuple[str, Author]:
        """What the user decided since the last accepted submit, and how that is known; `choice` where nothing else was said.

        `what` names the question in the contract (`questions.<what>`).
        """
        ...

    def waived(self, session_id: str, run: CommandRun) -> Author | None:
        """How it is known that the user waived a command; None where the user was asked and denies it: it is waived no more."""
        ...


class Ledger(Protocol):
    """The server's own record of the tools that really ran (SPEC 2)."""

    def entries(self) -> tuple[LedgerEntry, ...]:
        """Every call of this session in order."""
        ...

    def reads(self) -> Collection[str]:
        """The files that the client has read by its own tools, as far as its hook noted it."""
        ...


@dataclass(frozen=True, slots=True)
class Ports:
    """Everything the flow may reach."""

    branches: Branches
    tree: WorkTree
    evidence: Evidence
    proofs: Proofs
    documents: Documents
    relevance: Relevance
    ledger: Ledger
    user: User
    record: RecordIntent
    progress: Callable[[float, float, str], None]
