"""The vocabulary of the flow: phases, steps, intents, flags, events (SPEC 3.1, 3.2)."""

from dataclasses import dataclass, fields
from enum import StrEnum


class Phase(StrEnum):
    """The 16 phases of v1.16; READY has three substeps."""

    BRANCH_INTERVENTION = "BRANCH_INTERVENTION"
    DOCUMENT_RESEARCH = "DOCUMENT_RESEARCH"
    QUERY_FRAME = "QUERY_FRAME"
    EXPLORATION = "EXPLORATION"
    Q1 = "Q1"
    SEMANTIC = "SEMANTIC"
    Q2 = "Q2"
    VERIFICATION = "VERIFICATION"
    Q3 = "Q3"
    IMPACT_ANALYSIS = "IMPACT_ANALYSIS"
    READY = "READY"
    POST_IMPL_VERIFY = "POST_IMPL_VERIFY"
    VERIFY_INTERVENTION = "VERIFY_INTERVENTION"
    PRE_COMMIT = "PRE_COMMIT"
    QUALITY_REVIEW = "QUALITY_REVIEW"
    MERGE = "MERGE"


class Substep(StrEnum):
    """Where READY stands: steps 12, 13 and 14."""

    PLAN = "plan"
    IMPL = "impl"
    COMPLETE = "complete"


class End(StrEnum):
    """How a session leaves the table."""

    COMPLETE = "SESSION_COMPLETE"
    ABANDONED = "SESSION_ABANDONED"


class Intent(StrEnum):
    """What the user wants; the last two investigate and change nothing."""

    IMPLEMENT = "IMPLEMENT"
    MODIFY = "MODIFY"
    INVESTIGATE = "INVESTIGATE"
    QUESTION = "QUESTION"


class GateLevel(StrEnum):
    """Whether Q1 to Q3 decide (auto) or everything runs (full)."""

    AUTO = "auto"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Place:
    """A phase, and inside READY its substep: what a session is at."""

    phase: Phase
    substep: Substep | None = None

    @property
    def step(self) -> int:
        """The step number, 2 to 19, of the v1.16 document."""
        return STEPS[self]

    @property
    def contract_key(self) -> str:
        """The key of its texts in the contract: the phase, or READY_PLAN, READY_IMPL, READY_COMPLETE."""
        return f"{self.phase}_{self.substep.name}" if self.substep else str(self.phase)

    @property
    def summary_key(self) -> str:
        """The key of its summary in `phase_payloads`, as v1.13 writes it: `step_05_EXPLORATION`."""
        return f"step_{self.step:02d}_{_SUMMARY_NAMES.get(self.substep, str(self.phase))}"


_SUMMARY_NAMES: dict[Substep | None, str] = {
    Substep.PLAN: "READY_PLANNING",
    Substep.IMPL: "READY_IMPLEMENTATION",
    Substep.COMPLETE: "READY_COMPLETION",
}

BRANCH_INTERVENTION = Place(Phase.BRANCH_INTERVENTION)
DOCUMENT_RESEARCH = Place(Phase.DOCUMENT_RESEARCH)
QUERY_FRAME = Place(Phase.QUERY_FRAME)
EXPLORATION = Place(Phase.EXPLORATION)
Q1 = Place(Phase.Q1)
SEMANTIC = Place(Phase.SEMANTIC)
Q2 = Place(Phase.Q2)
VERIFICATION = Place(Phase.VERIFICATION)
Q3 = Place(Phase.Q3)
IMPACT_ANALYSIS = Place(Phase.IMPACT_ANALYSIS)
READY_PLAN = Place(Phase.READY, Substep.PLAN)
READY_IMPL = Place(Phase.READY, Substep.IMPL)
READY_COMPLETE = Place(Phase.READY, Substep.COMPLETE)
POST_IMPL_VERIFY = Place(Phase.POST_IMPL_VERIFY)
VERIFY_INTERVENTION = Place(Phase.VERIFY_INTERVENTION)
PRE_COMMIT = Place(Phase.PRE_COMMIT)
QUALITY_REVIEW = Place(Phase.QUALITY_REVIEW)
MERGE = Place(Phase.MERGE)

PLACES = (
    BRANCH_INTERVENTION,
    DOCUMENT_RESEARCH,
    QUERY_FRAME,
    EXPLORATION,
    Q1,
    SEMANTIC,
    Q2,
    VERIFICATION,
    Q3,
    IMPACT_ANALYSIS,
    READY_PLAN,
    READY_IMPL,
    READY_COMPLETE,
    POST_IMPL_VERIFY,
    VERIFY_INTERVENTION,
    PRE_COMMIT,
    QUALITY_REVIEW,
    MERGE,
)
"""In the order of their steps: step 1 is start_session."""

GATED = {Q1: SEMANTIC, Q2: VERIFICATION, Q3: IMPACT_ANALYSIS}
"""Question → the place that runs only where its answer says so."""

STEPS = {place: step for step, place in enumerate(PLACES, 2)}
LAST_STEP = STEPS[MERGE]


@dataclass(frozen=True, slots=True)
class Flags:
    """The booleans of SPEC 3.2 and the gate level, as the user gave them."""

    gate_level: GateLevel = GateLevel.AUTO
    no_verify: bool = False
    no_quality: bool = False
    only_verify: bool = False
    only_explore: bool = False
    fast: bool = False
    quick: bool = False
    no_doc: bool = False
    no_intervention: bool = False
    clean: bool = False
    rebuild: bool = False
    worktree: bool = False

    def set_names(self) -> tuple[str, ...]:
        """The names of the flags that differ from their default, in declaration order."""
        return tuple(f.name for f in fields(self) if getattr(self, f.name) != f.default)


FLAG_NAMES = tuple(f.name for f in fields(Flags))

# Spellings of the v1.16 command line that people and models use for the same flags.
FLAG_ALIASES = {"no_doc_research": "no_doc", "gate": "gate_level"}

# Pairs that contradict each other (SPEC 3.2 `invalid_flags`).
CONFLICTS: tuple[tuple[str, str], ...] = (
    ("fast", "quick"),
    ("only_verify", "no_verify"),
    ("only_verify", "only_explore"),
    ("quick", "worktree"),
    ("only_verify", "worktree"),
)


class Event(StrEnum):
    """What an accepted submit means to the table."""

    OK = "ok"
    PLANNED = "planned"
    PLANNED_AGAIN = "planned_again"
    REPORTED = "reported"
    REPORTED_LAST = "reported_last"
    PASSED = "passed"
    FAILED = "failed"
    INTERVENED = "intervened"
    STOPPED = "stopped"
    COMMITTED = "committed"
    REVERTED = "reverted"
    CLEAN = "clean"
    ISSUES = "issues"
    MERGED = "merged"
