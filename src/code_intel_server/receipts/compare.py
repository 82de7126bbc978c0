"""The receipt: what the runs of old and new tests on old and new code show together, test by test (SPEC 4, Receipts).

Four runs, each in a clean checkout:

    base       the base's tests on the base's product
    original   the base's tests on the new product: nothing that the change adds to a test can steer it
    new        the new and changed tests (or the whole suite) on the new product
    red        the new and changed tests on the base's product
    mutant     on the new product with new and changed functions that do nothing: what fails in `red`
    inverted   some of the base's tests, their assertions turned round, on the new product; where some pass, on the base's

Every test that passed in `base` must be seen to pass in `original`, by its id, or it is named. A test that passes in
`new` and does not in `red` is what the change is about; one that passes in `mutant` too does not show what that does.
One that passes in `inverted`, again too, and did not without the change, passes whatever it asserts.
Nothing here reads a test; nothing here runs one.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from code_intel_server.receipts.identity import template
from code_intel_server.receipts.results import BAD, CaseOutcome, SuiteRun

Ids = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of one change; None for one that was turned off, left out or could not be made."""

    base: SuiteRun | None
    original: SuiteRun | None
    new: SuiteRun
    red: SuiteRun | None = None


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Which test showed what, by id and sorted.

    `failing` are tests of the new suite that fail and are neither flaky nor failing before: they refuse a verdict.
    `new_names` are those of `fail_to_pass` that no assertion fails without the change: what they name is not there.
    `not_seen` are those of `fail_to_pass` of which nothing was seen without the change, though their file was built.
    `survived` are those of `fail_to_pass` that pass where the functions that the change adds or changes do nothing.
    `insensitive` are those that passed before and pass with their assertions turned round, which they did not before:
    shown and no more, for it is chance which tests are drawn, and an honest one can be among these.
    """

    fail_to_pass: Ids = ()
    new_names: Ids = ()
    not_seen: Ids = ()
    survived: Ids = ()
    pass_to_pass: Ids = ()
    failing: Ids = ()
    broken: Ids = ()
    missing: Ids = ()
    skipped_now: Ids = ()
    insensitive: Ids = ()
    removed: Ids = ()
    failing_before: Ids = ()
    flaky: Ids = ()
    timeout: Ids = ()
    not_built: Ids = ()
    not_judged: Ids = ()
    passed_before: int = 0
    not_run: Mapping[str, str] = field(default_factory=dict)
    """Runs that say nothing, and why."""

    @property
    def unexplained(self) -> Ids:
        """The tests that passed before the change and were not seen to pass with it: each needs a reason."""
        return tuple(sorted({*self.broken, *self.missing, *self.skipped_now, *self.not_built, *self._slow}))

    @property
    def _slow(self) -> set[str]:
        return {*self.timeout} - {*self.failing} - {*self.failing_before}


def receipt(runs: Runs, flaky: Collection[str] = (), *, same_environment: bool = True) -> RunComparison:
    """Compare the runs of one change.

    `flaky` are tests that failed once and passed when they alone were run again. `same_environment` says whether base
    and new ran under one fingerprint: only then a failure of before excuses one of now.
    """
    before = runs.base.ended(CaseOutcome.PASSED) if runs.base is not None else set()
    failed_before = runs.base.ended(*BAD) if runs.base is not None else set()
    excused = (failed_before if same_environment else set()) | {*flaky}
    now = runs.new.outcomes
    sides = _original(runs, before - {*flaky})
    failing = runs.new.ended(*BAD) - excused
    red = _red(runs, before, now)
    return RunComparison(
        fail_to_pass=_sorted(red["fail_to_pass"]),
        new_names=_sorted(_new_names(runs, red["fail_to_pass"])),
        not_seen=_sorted(_not_seen(runs, red["fail_to_pass"])),
        not_judged=_sorted(red["not_judged"]),
        failing=_sorted(failing),
        removed=_sorted(_removed(runs, before)),
        failing_before=_sorted(failed_before & _bad(runs)),
        flaky=_sorted({*flaky}),
        passed_before=len(before),
        not_run=_not_run(runs),
        **{name: _sorted(ids) for name, ids in sides.items()},
    )


WHY: Mapping[str, str] = {
    "broken": "passed before this change and fails with it",
    "timeout": "passed before this change and hangs with it",
    "missing": "passed before this change and is not seen with it",
    "skipped_now": "passed before this change and is skipped with it",
    "not_built": "passed before this change and does not build with it",
}
"""The lists of tests that need a reason, and why."""

CHANGED_EXPECTATION = "was changed: as it was it fails with this change, as it is now it fails without it"
"""Why a test needs a reason that is both among `broken` and among `fail_to_pass`."""

_NO_SUCH_NAME = (
    *("ImportError", "ModuleNotFoundError", "AttributeError", "NameError", "ReferenceError"),
    *("Error: Cannot find module", "SyntaxError: The requested module"),
)
_NO_SUCH_CALL = ("unexpected keyword argument", "is not a function", "is not a constructor")
"""How messages begin, and what those of a TypeError hold, where what a test names is not there."""

NONE_RED = "no new or changed test fails without this change"
ALL_SURVIVED = "every test that fails without this change passes where the functions that it adds or changes do nothing"


def questions(found: RunComparison, *, passing: int, behaviour_tested: bool) -> dict[str, str]:
    """What needs a reason: a test's id, or a sentence, with why.

    `passing` tests pass now: those removed are asked for where it are fewer than before, else they were replaced.
    `behaviour_tested` says that code and tests changed and were run without the change, which one of them should notice.
    """
    fewer = found.removed if passing < found.passed_before else ()
    asked = dict.fromkeys(fewer, "removed, and fewer tests pass than before")
    asked |= {id_: why for name, why in WHY.items() for id_ in getattr(found, name) if id_ in found.unexplained}
    asked |= dict.fromkeys({*found.broken} & {*found.fail_to_pass}, CHANGED_EXPECTATION)
    if behaviour_tested and not found.fail_to_pass:
        asked[NONE_RED] = "so none shows that it does what it should"
    # Of a mere limit of time a test fails by an assertion, and nothing takes no time.
    if behaviour_tested and found.new_names and found.survived == found.fail_to_pass:
        asked[ALL_SURVIVED] = "so none shows that these do what they should"
    return asked


def _original(runs: Runs, before: set[str]) -> dict[str, set[str]]:
    """Where the tests that passed on the base are when they run on the new product."""
    sides: dict[str, set[str]] = {
        name: set() for name in ("pass_to_pass", "broken", "timeout", "skipped_now", "missing", "not_built")
    }
    if runs.original is None or runs.original.unavailable or runs.base is None:
        return sides
    seen, units = runs.original.outcomes, runs.base.units
    passed_in_new = runs.new.ended(CaseOutcome.PASSED)
    where = {
        CaseOutcome.PASSED: "pass_to_pass",
        CaseOutcome.FAILED: "broken",
        CaseOutcome.TIMEOUT: "timeout",
        CaseOutcome.SKIPPED: "skipped_now",
    }
    for id_ in before:
        if id_ in seen:
            sides[where[seen[id_]]].add(id_)
        elif units.get(id_, "") in runs.original.unbuilt:
            sides["pass_to_pass" if id_ in passed_in_new else "not_built"].add(id_)
        else:
            sides["missing"].add(id_)
    renamed = _by_count(sides["missing"], runs.original.ended(CaseOutcome.PASSED) - runs.base.outcomes.keys())
    sides["missing"] -= renamed
    sides["pass_to_pass"] |= renamed
    return sides


def _by_count(missing: set[str], others: set[str]) -> set[str]:
    """Those of the missing whose template has as many tests of other ids: their ids differ from run to run."""
    wanted, found = Counter(map(template, missing)), Counter(map(template, others))
    return {id_ for id_ in missing if found[template(id_)] >= wanted[template(id_)]}


def _red(runs: Runs, before: set[str], now: Mapping[str, CaseOutcome]) -> dict[str, set[str]]:
    """What passes with the change and did not without it, and what a base that does not build leaves open."""
    if runs.red is None or runs.red.unavailable:
        return {"fail_to_pass": set(), "not_judged": set()}
    then = runs.red.outcomes
    passed = {id_ for id_, outcome in now.items() if outcome is CaseOutcome.PASSED}
    unseen = passed - then.keys()
    unbuilt = {id_ for id_ in unseen if runs.new.units.get(id_, "") in runs.red.unbuilt}
    failed = {id_ for id_ in passed & then.keys() if then[id_] in BAD}
    unseen -= _by_count(unseen - unbuilt, {*before, *then} - now.keys())  # seen under another id
    return {"fail_to_pass": failed | (unseen - before), "not_judged": unbuilt & before}


def _new_names(runs: Runs, ids: Collection[str]) -> set[str]:
    """Those that fail without the change, or are not seen, only because something that they name is not there."""
    if runs.red is None:
        return set()
    said = {case.id: case.message for case in runs.red.cases}
    unbuilt = {id_ for id_ in ids if id_ not in said and runs.new.units.get(id_, "") in runs.red.unbuilt}
    return unbuilt | {id_ for id_ in ids if any(map(_is_of_a_name, said.get(id_, "").splitlines()))}


def _not_seen(runs: Runs, ids: Collection[str]) -> set[str]:
    """Those of which the run without the change shows nothing: their file ended before, or what makes them was not there."""
    if runs.red is None:
        return set()
    return {id_ for id_ in {*ids} - runs.red.outcomes.keys() if runs.new.units.get(id_, "") not in runs.red.unbuilt}


def _is_of_a_name(line: str) -> bool:
    """Whether a line of a failure's message says that there is nothing of a name; pytest marks such lines by an E."""
    said = line.removeprefix("E ").strip()
    if said.startswith("TypeError"):
        return any(words in said for words in _NO_SUCH_CALL)
    return said.startswith(_NO_SUCH_NAME) and "'NoneType' object" not in said


def _removed(runs: Runs, before: set[str]) -> set[str]:
    """Tests that passed on the base and are not in the new suite, where the whole of it was run."""
    if runs.original is None or runs.original.unavailable or not runs.new.whole:
        return set()
    return (
        before - runs.new.outcomes.keys() - _by_count(before - runs.new.outcomes.keys(), {*runs.new.outcomes} - before)
    )


def _bad(runs: Runs) -> set[str]:
    original = runs.original.ended(*BAD) if runs.original is not None else set()
    return original | runs.new.ended(*BAD)


def _not_run(runs: Runs) -> dict[str, str]:
    named = {"base": runs.base, "original": runs.original, "new": runs.new, "red": runs.red}
    return {name: run.unavailable for name, run in named.items() if run is not None and run.unavailable}


def _sorted(ids: Collection[str]) -> Ids:
    return tuple(sorted(ids))
