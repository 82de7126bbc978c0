"""The ports through which the flow reaches the world; implemented on lower floors, composed in `tools`.

Every method either returns a value or raises one of `errors`; none leaves a half-done effect that calling it again
with the same arguments (and the recorded intent) would not finish. Only types are imported here: the flow's own tests
give it a world in memory instead.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from code_intel_server.codebase.evidence import RangeVerdict, Reference, Replaced
from code_intel_server.workspace.values import CommandRun, RecordIntent

if TYPE_CHECKING:
    from code_intel_server.workspace.branches import BranchManager
    from code_intel_server.workspace.project.context_provider import ContextProvider
    from code_intel_server.workspace.proofs import ProofRunner
    from code_intel_server.workspace.state.journals import LedgerFile
    from code_intel_server.workspace.tree.tree import TreeJudge


class SyntaxDifference(Protocol):
    """What two versions of a file differ in, without comments, white space and what cannot run."""

    @property
    def by_lines(self) -> bool:
        """Whether code was compared line by line, for want of a syntax tree."""

    def judge(self, start: int, end: int) -> RangeVerdict:
        """What lines `start`..`end` (1-based, inclusive) of the later version show."""


class Evidence(Protocol):
    """Looks at the project's files for the evidence rules of SPEC 4."""

    def exists(self, path: str) -> bool:
        """Whether a regular file inside the project (symlinks resolved) has this path."""

    def normal(self, path: str) -> str | None:
        """The path relative to the project, '/'-separated, as the file system spells it; None outside the project."""

    def own_name(self, path: str) -> str | None:
        """As `normal`, but a link named by the last part stays itself; None where that lies outside the project."""

    def total_lines(self, path: str) -> int | None:
        """Number of lines of a regular file inside the project; None where there is none."""

    def lines(self, path: str) -> Sequence[str] | None:
        """The lines of a text file inside the project as they are now; None where there is none, or it is over 1 MB."""

    def compare(
        self, path: str, before: bytes | None, after: bytes | None, hunks: Sequence[Replaced]
    ) -> "SyntaxDifference":
        """What two versions of a file differ in by syntax; `before` None where there was none, `after` None for the file as it lies."""


DOCUMENTS_AT_MOST = 12
"""Documents that DOCUMENT_RESEARCH lists."""


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

    def definitions(self, symbols: Sequence[str]) -> Mapping[str, Sequence[Reference]]:
        """Where the symbol cache has each symbol defined, as far as it knows by now; never raises."""


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

    def waived(self, session_id: str, run: CommandRun) -> Author | None:
        """How it is known that the user waived a command; None where the user was asked and denies it: it is waived no more."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Everything the flow may reach."""

    branches: "BranchManager"
    tree: "TreeJudge"
    evidence: Evidence
    proofs: "ProofRunner"
    documents: "ContextProvider"
    relevance: Relevance
    ledger: "LedgerFile"
    user: User
    record: RecordIntent
    progress: Callable[[float, float, str], None]
