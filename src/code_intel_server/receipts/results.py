"""What one run of a test suite showed, test by test (SPEC 4, Receipts)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property


class CaseOutcome(StrEnum):
    """How one test ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    TIMEOUT = "timeout"


BAD = (CaseOutcome.FAILED, CaseOutcome.TIMEOUT)
_BADNESS = {CaseOutcome.SKIPPED: 0, CaseOutcome.PASSED: 1, CaseOutcome.FAILED: 2, CaseOutcome.TIMEOUT: 3}


@dataclass(frozen=True, slots=True)
class Case:
    """One test of one run: its normalised id, and the unit (file or package) that it belongs to."""

    id: str
    outcome: CaseOutcome
    unit: str = ""
    seconds: float = 0.0
    message: str = ""


@dataclass(frozen=True)
class SuiteRun:
    """One run of the verify commands in a clean checkout.

    `unbuilt` are the units that could not be compiled or collected, with the first line of why.
    `unavailable` says why nothing can be concluded from the run; '' where something can. `whole` is
    false where only some of the suite was run.
    """

    cases: tuple[Case, ...] = ()
    unbuilt: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    unavailable: str = ""
    whole: bool = True

    @cached_property
    def outcomes(self) -> dict[str, CaseOutcome]:
        """The outcome by id."""
        return {case.id: case.outcome for case in self.cases}

    @cached_property
    def units(self) -> dict[str, str]:
        """The unit by id."""
        return {case.id: case.unit for case in self.cases}

    @property
    def listed(self) -> bool:
        """Whether the run said which tests it ran; else its exit status is all there is."""
        return bool(self.cases) or bool(self.unbuilt)

    def ended(self, *outcomes: CaseOutcome) -> set[str]:
        """The ids of the tests that ended so."""
        return {case.id for case in self.cases if case.outcome in outcomes}


def under_new_path(id_: str, renamed: Mapping[str, str]) -> str:
    """A test's id after its file was renamed, where it begins with that."""
    ends = ("", ":", " ", "/", "#")  # `a.test.ts` is no beginning of `a.test.tsx`
    begin = (old for old in renamed if id_.startswith(old) and id_[len(old) : len(old) + 1] in ends)
    return next((renamed[old] + id_.removeprefix(old) for old in begin), id_)


def under_new_paths(run: SuiteRun, renamed: Mapping[str, str]) -> SuiteRun:
    """A run of before with the tests of renamed files as they are called now."""
    new = renamed.get
    cases = (replace(one, id=under_new_path(one.id, renamed), unit=new(one.unit, one.unit)) for one in run.cases)
    unbuilt = {new(unit, unit): why for unit, why in run.unbuilt.items()}
    return replace(run, cases=tuple(cases), unbuilt=unbuilt)


def across(runs: Iterable[SuiteRun]) -> SuiteRun:
    """The runs of several commands as one: of a test that two of them ran, the worse outcome counts."""
    runs = tuple(runs)
    worst: dict[str, Case] = {}
    for case in (case for run in runs for case in run.cases):
        if case.id not in worst or _BADNESS[case.outcome] > _BADNESS[worst[case.id].outcome]:
            worst[case.id] = case
    return replace(merged_runs(runs), cases=tuple(worst.values()))


def merged_runs(runs: Iterable[SuiteRun]) -> SuiteRun:
    """Several runs as one: of a test that was run again, the last outcome counts."""
    cases: dict[str, Case] = {}
    unbuilt: dict[str, str] = {}
    seconds, unavailable, whole = 0.0, "", True
    for run in runs:
        cases |= {case.id: case for case in run.cases}
        unbuilt |= run.unbuilt
        seconds += run.seconds
        unavailable, whole = unavailable or run.unavailable, whole and run.whole
    return SuiteRun(tuple(cases.values()), unbuilt, seconds, unavailable, whole)
