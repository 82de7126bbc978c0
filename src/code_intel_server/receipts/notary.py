"""Runs old and new tests on old and new code in clean checkouts and says what was seen (SPEC 4, Receipts).

The runs and what they show together are `compare`'s; this module makes them, in the order in which they matter where
time is short: the original tests on the new product, the new suite, the base, the new tests on the base's product.
At the end come those that fail there on new functions that do nothing, and old ones with their assertions turned round.
"""

import os
import shlex
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from pathlib import Path

from code_intel_server.codebase.files.roles import Role, named_as_tests, role
from code_intel_server.common.own_folder import home_of
from code_intel_server.common.safe_open import open_below
from code_intel_server.errors import Unavailable
from code_intel_server.receipts.canary import UNCOUNTED, canary_alone, canary_in_run
from code_intel_server.receipts.checkout import Changed, Checkouts, receipt_folder
from code_intel_server.receipts.compare import RunComparison, Runs, receipt
from code_intel_server.receipts.execution import Execution, SuiteRunRecord, completed
from code_intel_server.receipts.files import FileClass
from code_intel_server.receipts.isolation import (
    BORROWED,
    IsolatedCheckout,
    borrowed,
    by_folder,
    can_confine,
    can_mount,
    fingerprint,
    inventory,
)
from code_intel_server.receipts.results import BAD, Case, CaseOutcome, SuiteRun, across, under_new_path, under_new_paths
from code_intel_server.receipts.runners.instruments import SELECTIVE, Instruments, Selection
from code_intel_server.receipts.scope import (
    changed_functions,
    changed_tests,
    inversions,
    mentions,
    mutants,
    renamed_files,
    shadowing,
    tied_by_tests,
)
from code_intel_server.receipts.undeclared import undeclared
from code_intel_server.workspace.git.repository import Git, split_z
from code_intel_server.workspace.project.config import Mutants, VerifyCommand

STALL_SECONDS = 120.0
_NAMED_FILES = 6
_MANIFESTS = (":(glob)**/package.json", ":(glob)**/pyproject.toml")
_SIGNALS = 126
"""From here on an exit status is a shell's word for a command that could not run or was ended."""
_TIMES_THE_LIMITS = 3
_RED_STALL_SECONDS = 10.0
_TIMES_THE_SLOWEST = 20
_EXTRA = {"mutant": "new tests on emptied new code", "inverted": "old tests with their assertions turned round"}
"""What the runs are that only name tests, in the words of a note."""
_MUTANT_SECONDS = 5.0
_MUTANT_TIMES = 3
_MUTANT_STALL_SECONDS = 2.0
_MUTANT_ROUNDS = 5
_UNBUILT_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class OriginalRun:
    """What the base's tests showed on a new product, and one word for that checkout and what was borrowed for it."""

    runs: tuple[SuiteRunRecord, ...]
    content: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the runs of one change showed.

    `problems` refuse it, besides tests that fail or are unexplained; `notes` are reported. `uncompared` are changed files
    that only tests mentioned before and that no run could do without, `undeclared` lent packages that it is the first to
    load and that nothing asks for. `exit_status_only` where no run named a test: then the exit statuses are all there is.
    `original` is the run of the original tests where nothing failed in it that did not before: it need not be made again.
    """

    receipt: RunComparison
    runs: dict[str, tuple[SuiteRunRecord, ...]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    uncompared: tuple[str, ...] = ()
    undeclared: tuple[str, ...] = ()
    exit_status_only: bool = False
    unavailable: str = ""
    seconds: float = 0.0
    original: OriginalRun | None = None

    @property
    def good(self) -> bool:
        """Whether nothing is wrong and something was seen."""
        bad = self.receipt.failing or self.receipt.unexplained or self.problems or self.unavailable
        return not bad


@dataclass(frozen=True, slots=True)
class BaseRun:
    """What the base's tests showed on the base's product, and the fingerprint of what was borrowed for it."""

    runs: tuple[SuiteRunRecord, ...]
    fingerprint: str


@dataclass(slots=True)
class Notary:
    """Makes receipts of a repository's commits with the project's verify commands.

    `limit` in seconds is for all runs together (three times the commands' own by default), `stall` for one test. `check`
    is called several times a second while a command runs; what it raises ends the command and goes on to the caller.
    `mutants` adds the run of new tests where functions do nothing: code that nobody wrote, which `auto` runs only where it
    can be confined, and `on` with the user's rights elsewhere.
    """

    git: Git
    commands: Sequence[VerifyCommand]
    limit: float | None = None
    stall: float = STALL_SECONDS
    borrow: tuple[str, ...] = BORROWED
    tell: Callable[[str], None] = lambda _: None
    mount: bool | None = None
    check: Callable[[], None] = lambda: None
    mutants: Mutants = "off"
    _deadline: float = 0.0

    def verify(
        self,
        base: str,
        new: str,
        objects: Path | None = None,
        before: BaseRun | None = None,
        earlier: OriginalRun | None = None,
    ) -> Verdict:
        """Run what a change from `base` to `new` has to be seen by: commits, or snapshots with the folder of their objects.

        Both are of one kind: a snapshot holds bytes as they lie on disk. `before` is a run of `base` that was kept, `earlier`
        one of the original tests. Raises Unavailable where git fails.
        """
        began = self._begin()
        with receipt_folder() as folder:
            work = _Work(self, Checkouts(self.git, folder, objects), base, new)
            return replace(work.verdict(before, earlier), seconds=time.monotonic() - began)

    def run_base(self, base: str, objects: Path | None = None) -> BaseRun:
        """Run the tests of one commit or snapshot alone. Raises Unavailable where git fails."""
        self._begin()
        with receipt_folder() as folder:
            return _Work(self, Checkouts(self.git, folder, objects), base, base).base_alone()

    def fingerprint(self) -> str:
        """What tells whether that which is borrowed for runs is as it was."""
        return fingerprint(self._inventory())

    def borrowed(self) -> dict[str, str]:
        """The same for each folder of what is borrowed."""
        return by_folder(self._inventory(), self.top)

    @property
    def top(self) -> Path:
        """What a checkout stands in for, and has its borrowed folders from: the user's folder, in a session's own worktree too."""
        home, depth = home_of(str(self.git.at.root)), self.git.at.prefix.count("/")
        return Path(home, *[".."] * depth).resolve() if home else self.git.at.top

    def _inventory(self) -> dict[str, str]:
        listed = frozenset(split_z(self.git.must("ls-files", "-z")))
        # A package that the change adds has folders beside its manifest too, and those are in no commit either.
        others = split_z(self.git.must("ls-files", "-z", "--others", "--exclude-standard", "--", *_MANIFESTS))
        listed |= {path for path in others if not {*path.split("/")} & {*self.borrow}}
        return inventory(self.top, borrowed(self.top, listed, self.borrow))

    def _begin(self) -> float:
        began = time.monotonic()
        self._deadline = began + (self.limit or _TIMES_THE_LIMITS * sum(one.timeout for one in self.commands))
        return began

    def left(self) -> float:
        """Seconds left for runs."""
        return self._deadline - time.monotonic()


class _Work:
    """One receipt in the making."""

    def __init__(self, notary: Notary, checkouts: Checkouts, base: str, new: str) -> None:
        self._notary, self._checkouts = notary, checkouts
        self._git = notary.git
        self._base, self._new = checkouts.state(base), checkouts.state(new)
        self._changed = checkouts.changed(self._base, self._new)
        self._tracked = checkouts.files(self._new)
        self._borrowed = borrowed(notary.top, self._tracked, notary.borrow)
        self._mounted = can_mount() if notary.mount is None else notary.mount
        self._shadows = shadowing(
            self._changed, checkouts.files(self._base), [notary.top / one for one in self._borrowed]
        )
        instruments = Instruments(checkouts.folder / "instruments")
        self._execution = Execution(self._git.at, self._tracked, instruments, notary.stall, notary.left, notary.check)
        self._runs: dict[str, tuple[SuiteRunRecord, ...]] = {}
        self._canaries: dict[VerifyCommand, bool] = {}
        self._notes: list[str] = []
        self._problems: list[str] = []
        self._uncompared: list[str] = []
        self._confined = False

    def base_alone(self) -> BaseRun:
        """The base's tests on the base's product."""
        self._suite("base", self._place("base", self._base))
        return BaseRun(self._runs.get("base", ()), fingerprint(inventory(self._notary.top, self._borrowed)))

    def _base_run(self, before: BaseRun | None, now: str) -> SuiteRun:
        """What the base run showed: the kept one where it was made with what is borrowed now."""
        if before is None or before.fingerprint != now:
            return self._suite("base", self._place("base", self._base))
        self._runs["base"] = before.runs
        return across(one.suite for one in before.runs)

    def verdict(self, kept: BaseRun | None, earlier: OriginalRun | None) -> Verdict:
        """Make the runs and compare them."""
        top = self._notary.top
        before = inventory(top, self._borrowed)
        steering = [one for one in self._changed if one.file_class is not FileClass.PRODUCT]
        new_place = self._place("new", self._new)
        original_place = self._original_place(steering) or new_place
        known = kept.runs if kept and original_place is new_place else ()
        content = f"{self._checkouts.contents[original_place.checkout.name]} {fingerprint(before)}"
        if earlier and earlier.content == content and original_place is not new_place:
            original = self._keep("original", earlier.runs)
        else:
            original = self._suite("original", original_place, known)
        new, files = original, None
        if original_place is not new_place:
            files = None if self._shadows else changed_tests(steering, original.units.values()) or None
            new = self._new_suite(new_place, original, files)
        else:
            self._runs["new"] = self._runs["original"]
        if new.unavailable:
            return Verdict(RunComparison(), self._runs, (), tuple(self._notes), unavailable=new.unavailable)
        base = self._base_run(kept, fingerprint(before))
        if why := self._nothing_seen():
            return Verdict(RunComparison(), self._runs, (), tuple(self._notes), unavailable=why)
        if self._checkouts.unmerged:
            original = self._with_own_files(steering, original, base)
        red = self._red(steering, base, files)
        apart = self._apart(steering)
        flaky = self._flaky(base, [(new, new_place), *apart, (original, original_place)])
        if apart:
            worst = across((original, *(run for run, _ in apart)))
            original = replace(worst, whole=original.whole, unavailable=original.unavailable)
        self._require_failing(new_place)
        passed = base.ended(CaseOutcome.PASSED) & original.ended(CaseOutcome.PASSED) - flaky
        cases = [case for case in original.cases if case.id in passed]
        differing = sorted(path for path, _ in before.items() ^ inventory(top, self._borrowed).items())
        if differing:
            named = ", ".join(os.path.relpath(path, top) for path in dict.fromkeys(differing[:_NAMED_FILES]))
            self._problems.append(f"changed while the tests ran: {named}")
        if renamed := renamed_files(self._changed):
            base, original = under_new_paths(base, renamed), under_new_paths(original, renamed)
            flaky = {under_new_path(id_, renamed) for id_ in flaky}
        seen = Runs(base if base.listed else None, original, new, red)
        found = receipt(seen, flaky, same_environment=not differing)
        self._judge(new, base, found)
        if not found.failing and not self._problems:
            survived = self._survived({*found.fail_to_pass}) if found.fail_to_pass else ()
            odd = sorted(under_new_path(id_, renamed) for id_ in self._insensitive(steering, cases))
            found = replace(found, survived=survived, insensitive=tuple(odd))
        return replace(self._said(found, not new.listed), original=None if differing else self._to_keep(content, base))

    def _to_keep(self, content: str, base: SuiteRun) -> OriginalRun | None:
        """The run of the original tests where they ran to their end, failed no more than before, and can be believed."""
        runs = self._runs["original"]
        seen = across(run.suite for run in runs)
        ended = all(run.status is not None for run in runs) and not seen.unavailable and not seen.unbuilt
        believed = all(self._canaries.values()) and not self._checkouts.unmerged
        good = ended and believed and seen.ended(*BAD) <= base.ended(*BAD)
        return OriginalRun(runs, content) if good else None

    def _nothing_seen(self) -> str:
        """Why nothing can be reported: every command fails before and with the change, and none lists a test; else ''."""
        runs = [run for name in ("base", "new") for run in self._runs.get(name, ())]
        if any(run.suite.listed or not run.status for run in runs):
            return ""
        return f"{shlex.join(runs[-1].argv)}: exit status {runs[-1].status}, as before, and no test was seen"

    def _said(self, found: RunComparison, only_status: bool) -> Verdict:
        lacking = sorted(self._checkouts.lacking)
        self._notes += [f"submodule {path}: its content is not at hand, its folder was empty" for path in lacking]
        if pointers := sorted(self._checkouts.pointers):
            self._notes.append(
                f"only Git LFS's pointers were at hand of {len(pointers)} files, {pointers[0]} among them"
            )
        notes, problems = (tuple(dict.fromkeys(texts)) for texts in (self._notes, self._problems))
        return Verdict(found, self._runs, problems, notes, tuple(self._uncompared), self._undeclared(), only_status)

    def _undeclared(self) -> tuple[str, ...]:
        """The lent packages that tests load since the change, and that a fresh installation has no reason to bring."""
        base, now = (
            frozenset().union(*(run.lent for name in names for run in self._runs.get(name, ())))
            for names in (("base",), ("original", "new"))
        )

        def mentioning(words: Sequence[str]) -> Collection[str]:
            return self._checkouts.mentioning(self._new, words, whole=True, any_case=True)

        before = self._runs.get("base", ())
        # A runner that was ended, or did not begin, tells nothing.
        if not before or not all(run.loaded for run in before):
            return ()
        return tuple(undeclared(now - base, [self._notary.top / one for one in self._borrowed], mentioning))

    def _place(
        self, name: str, state: str, over: Iterable[Changed] = (), side: str = "old", *, merge: bool = True
    ) -> IsolatedCheckout:
        checkout = self._checkouts.make(name, state, tuple(over), side=side, merge=merge)
        objects = self._git.at.common_dir / "objects"
        return IsolatedCheckout(self._notary.top, checkout, objects, self._borrowed, self._mounted)

    def _original_place(self, steering: Sequence[Changed]) -> IsolatedCheckout | None:
        """The new product with the base's tests; None where that is what the change is."""
        if self._shadows:
            named = ", ".join(one.path for one in self._shadows)
            self._problems.append(f"stands in for a library, and was left out where the original tests ran: {named}")
        over = [*steering, *self._shadows]
        return self._place("original", self._new, over, "old") if over else None

    def _with_own_files(self, steering: Sequence[Changed], original: SuiteRun, base: SuiteRun) -> SuiteRun:
        """The original tests again with the commit's own manifest where it could not be merged and the base's does not do."""
        named = ", ".join(sorted(self._checkouts.unmerged))
        passed = base.ended(CaseOutcome.PASSED)
        if passed <= original.ended(CaseOutcome.PASSED):
            self._notes.append(f"{named}: could not be merged, the original tests ran with the base's")
            return original
        place = self._place("original-own", self._new, [*steering, *self._shadows], merge=False)
        again = self._suite("original", place)
        self._notes.append(f"{named}: could not be merged, the original tests ran with the base's, then the commit's")
        return (
            again
            if len(passed & again.ended(CaseOutcome.PASSED)) > len(passed & original.ended(CaseOutcome.PASSED))
            else original
        )

    # -- the runs ---------------------------------------------------------------------------------------------------

    def _suite(self, name: str, place: IsolatedCheckout, known: Sequence[SuiteRunRecord] = ()) -> SuiteRun:
        """One run of all commands; where `known` runs tell their runners, with a test that must fail among the others."""
        done = []
        runners = [run.runners for run in known] or [frozenset()] * len(self._notary.commands)
        for command, these in zip(self._notary.commands, runners, strict=True):
            if self._notary.left() <= 0:
                return self._left_out(name)
            takes = these and these <= UNCOUNTED
            run = self._with_canary(name, command, place, these, Selection()) if takes else None
            spoiled = run is None or run.contradiction or not run.suite.listed
            done.append(self._run(name, command, place, Selection()) if spoiled or run is None else run)
        return self._keep(name, done)

    def _with_canary(
        self, name: str, command: VerifyCommand, place: IsolatedCheckout, runners: Collection[str], wanted: Selection
    ) -> SuiteRunRecord:
        """One run with a test that must fail among the others, and what became of that put aside."""
        with canary_in_run(runners, place, wanted) as selection:
            run = self._run(name, command, place, selection)
        if not selection.canary:
            return run
        found = [case for case in run.suite.cases if selection.canary in case.id]
        if len(found) >= selection.canaries:
            self._canaries[command] = all(case.outcome is CaseOutcome.FAILED for case in found)
            if self._canaries[command] and run.status and run.status < _SIGNALS:
                run = replace(run, status=1)  # of a wrapper too, such as make's 2: the failing test accounts for it
        others = tuple(case for case in run.suite.cases if selection.canary not in case.id)
        return replace(run, suite=replace(run.suite, cases=others))

    def _chosen(
        self, name: str, place: IsolatedCheckout, files: Collection[str], others: Sequence[SuiteRunRecord]
    ) -> SuiteRun:
        """One run of all commands, left to the files where their runners can be; `others` showed what the rest shows."""
        done = []
        for command, other in zip(self._notary.commands, others, strict=True):
            if self._notary.left() <= 0:
                return self._left_out(name)
            inside = os.path.normpath(self._git.at.prefix + command.cwd)
            below = [file for file in files if inside == "." or file.startswith(f"{inside}/")]
            if not other.runners or not other.runners <= SELECTIVE:
                done.append(self._run(name, command, place, Selection()))
            elif not below:
                done.append(other)
            else:
                paths = tuple(sorted(os.path.realpath(place.seen_at / file) for file in below))
                functions = self._functions(below) if other.runners == {"go"} else ()
                done.append(self._of_files(name, command, place, Selection(paths, functions), other))
        return self._keep(name, done)

    def _of_files(
        self, name: str, command: VerifyCommand, place: IsolatedCheckout, wanted: Selection, other: SuiteRunRecord
    ) -> SuiteRunRecord:
        """One run of chosen files; as the new suite with a test that must fail, and the rest as `other` showed it."""
        if name != "new":
            run = self._run(name, command, place, wanted)
            return run if run.suite.listed else self._run(name, command, place, Selection())
        run = self._with_canary(name, command, place, other.runners, wanted)
        if wanted.functions and (run.suite.ended(*BAD) or not run.suite.listed):  # they may need what others leave
            return self._of_files(name, command, place, replace(wanted, functions=()), other)
        return completed(
            run if run.suite.listed else self._run(name, command, place, Selection()), other, wanted.functions
        )

    def _functions(self, files: Collection[str]) -> tuple[str, ...]:
        """The test functions of changed Go files that are to be run; () where it is all of their packages."""
        sides = [(one.old, one.new) for one in self._changed if one.path in files]
        found = [changed_functions(*map(self._checkouts.content, both)) for both in sides]
        return () if None in found else tuple(sorted(frozenset().union(*filter(None, found))))

    def _run(self, name: str, command: VerifyCommand, place: IsolatedCheckout, selection: Selection) -> SuiteRunRecord:
        self._notary.tell(f"{name}: {' '.join(command.argv)}")
        execution = self._execution
        if name == "red":
            cases = (case for run in self._runs["new"] for case in run.suite.cases)
            execution = replace(execution, stall=self._short_stall(_RED_STALL_SECONDS, cases))
        return execution.run(command, place, selection)

    def _short_stall(self, least: float, cases: Iterable[Case]) -> float:
        """What passes at once with the change is not waited for as long without it."""
        slowest = max((case.seconds for case in cases), default=0)
        return min(self._execution.stall, max(least, _TIMES_THE_SLOWEST * slowest))

    def _left_out(self, name: str) -> SuiteRun:
        self._notes.append(f"{name}: left out, the time for all runs is over")
        return SuiteRun(unavailable="left out: the time for all runs is over", whole=False)

    def _keep(self, name: str, done: Sequence[SuiteRunRecord]) -> SuiteRun:
        self._runs[name] = tuple(done)
        return across(one.suite for one in done)

    def _new_suite(self, place: IsolatedCheckout, original: SuiteRun, files: Collection[str] | None) -> SuiteRun:
        """The new and changed tests, and of the rest what they showed as original tests; all where `files` is None."""
        if files is None or original.unavailable:
            return self._suite("new", place, self._runs.get("original", ()))
        return self._chosen("new", place, files, self._runs["original"])

    def _red(self, steering: Sequence[Changed], base: SuiteRun, files: Collection[str] | None) -> SuiteRun:
        """New and changed tests on the base's product; where there are none that is what the base run showed."""
        if not any(one.new.there and one.file_class is FileClass.TEST for one in steering):
            return base
        place = self._place("red", self._base, steering, "new")
        if files is None or "base" not in self._runs:
            return self._suite("red", place)
        return self._chosen("red", place, files, self._runs["base"])

    def _readers(self, state: str) -> Callable[[str], Collection[str]]:
        """What says which files of a state mention one."""

        def of(path: str) -> Collection[str]:
            words, whole = mentions(path)
            return self._checkouts.mentioning(state, words, whole=whole) if words else ()

        return of

    def _apart(self, steering: Sequence[Changed]) -> list[tuple[SuiteRun, IsolatedCheckout]]:
        """The original tests beside files as they were that only tests tie to the change: they may be the tests' own."""
        try:
            groups, unsure = tied_by_tests(self._changed, self._readers(self._base), self._readers(self._new))
        except Unavailable:  # what mentions what cannot be told: the runs that were made say what they say
            groups, unsure = [], sorted(one.path for one in self._changed if one.file_class is FileClass.PRODUCT)
        self._uncompared += unsure
        done: list[tuple[SuiteRun, IsolatedCheckout]] = []
        for number, group in enumerate(groups, 1):
            name = f"apart-{number}"
            place = self._place(name, self._new, [*steering, *self._shadows, *group.files])
            collected = all(map(named_as_tests, group.readers))
            known = self._runs["original"]
            run = self._chosen(name, place, group.readers, known) if collected else self._suite(name, place, known)
            named = ", ".join(one.path for one in group.files[:_NAMED_FILES])
            if run.unavailable or run.unbuilt:
                self._uncompared += (one.path for one in group.files)
            else:
                self._notes.append(f"only tests mention {named}: the original tests ran beside it as it was, too")
                done.append((run, place))
        return done

    def _may_mutate(self, name: str) -> bool:
        """Whether code that nobody wrote may run; a note where it may not because it cannot be confined."""
        if self._notary.mutants == "off":
            return False
        self._confined = self._mounted and can_confine()
        if allowed := self._confined or self._notary.mutants == "on":
            return allowed
        self._notes.append(f"{_EXTRA[name]}: not made, this system cannot keep it from changing what is outside")
        return False

    def _survived(self, names: set[str]) -> tuple[str, ...]:
        """Those of the tests that pass where new and changed functions do nothing; a note where none was seen there."""
        if not self._may_mutate("mutant"):
            return ()
        try:
            files = mutants(self._changed, self._checkouts.content)
            if files is None:
                self._notes.append(f"{_EXTRA['mutant']}: left out, more files of code changed than are looked at")
            if not files:
                return ()
            suite = self._mutated("mutant", self._place("mutant", self._new), files, names)
        except (Unavailable, OSError) as error:
            self._notes.append(f"{_EXTRA['mutant']}: left out, no clean checkout: {error}")
            return ()
        return tuple(sorted(names & suite.ended(CaseOutcome.PASSED)))

    def _insensitive(self, steering: Sequence[Changed], cases: Collection[Case]) -> set[str]:
        """Those of the tests that pass with their assertions turned round and fail so without the change, of some of them."""
        code = [one for one in self._changed if one.file_class is FileClass.PRODUCT and role(one.path) is Role.CODE]
        if not code or not cases or not self._may_mutate("inverted"):
            return set()
        try:
            new = self._place("inverted", self._new, [*steering, *self._shadows])
            near = frozenset[str]().union(*(self._readers(self._base)(one.path) for one in code[:_NAMED_FILES]))
            files, names = inversions(new.checkout, self._checkouts.files(self._base), cases, near)
            odd = names & self._mutated("inverted", new, files, names).ended(CaseOutcome.PASSED)
            if odd:
                base = self._place("inverted-base", self._base)
                odd &= self._mutated("inverted-base", base, files, names).ended(CaseOutcome.FAILED)
            if odd:  # what depends on time may have passed by chance
                odd &= self._mutated("inverted-again", new, files, odd).ended(CaseOutcome.PASSED)
        except (Unavailable, OSError) as error:
            self._notes.append(f"{_EXTRA['inverted']}: left out, no clean checkout: {error}")
            return set()
        return odd

    def _mutated(
        self, name: str, place: IsolatedCheckout, files: Mapping[str, bytes], names: AbstractSet[str]
    ) -> SuiteRun:
        """A short run of chosen tests in a checkout with files that nobody wrote; a note where none was seen there."""
        runs = self._runs["new" if name == "mutant" else "original"]
        chosen = [
            (command, seen)
            for command, run in zip(self._notary.commands, runs, strict=True)
            if run.runners <= SELECTIVE and (seen := names & run.suite.outcomes.keys())
        ]
        if not chosen:
            return SuiteRun()
        cases = [case for run in runs for case in run.suite.cases]
        whole = sum(run.suite.seconds for run in runs)
        others = sum(case.seconds for case in cases if case.id not in names)  # in parallel more than the whole took
        seconds = max(whole - others, min(whole, _MUTANT_SECONDS))  # few tests are compiled as all are
        until = time.monotonic() + _MUTANT_SECONDS + _MUTANT_TIMES * seconds
        execution = replace(
            self._execution,
            stall=self._short_stall(_MUTANT_STALL_SECONDS, (case for case in cases if case.id in names)),
            left=lambda: min(self._notary.left(), until - time.monotonic()),
        )
        for path, text in files.items():
            os.close(open_below(place.checkout, path))  # a link on the way may lead out of the checkout
            (place.checkout / path).write_bytes(text)
        place = replace(place, confined=self._confined)
        done: list[SuiteRunRecord] = []
        for command, unseen in chosen:
            for _ in range(_MUTANT_ROUNDS):  # a panic of Go ends the other tests of its package
                if not unseen or execution.left() <= 0:
                    break
                self._notary.tell(f"{name}: {' '.join(command.argv)}")
                done.append(execution.run(command, place, Selection(ids=tuple(sorted(unseen)))))
                if not unseen & done[-1].suite.outcomes.keys():
                    break
                unseen.difference_update(done[-1].suite.outcomes)
        suite = self._keep(name, done)
        seen_now = names & suite.outcomes.keys()
        if suite.unavailable or not seen_now:
            printed = done[-1].output.decode("utf-8", "replace") if done else "the time is over"
            why = suite.unavailable or next(iter(suite.unbuilt.values()), printed).strip()[-_UNBUILT_CHARACTERS:]
            self._notes.append(f"{_EXTRA.get(name, name)}: of {len(names)} tests none was seen: {why}")
            return SuiteRun()
        if len(seen_now) < len(names):  # a runner that stops at the first failure, or the time is over
            self._notes.append(f"{_EXTRA.get(name, name)}: {len(seen_now)} of {len(names)} tests seen")
        return suite

    def _flaky(self, base: SuiteRun, suites: Sequence[tuple[SuiteRun, IsolatedCheckout]]) -> set[str]:
        """The tests that fail with the change and pass when they are run again, alone where the runner can."""
        failed_before = base.ended(*BAD)
        flaky: set[str] = set()
        for number, (suite, place) in enumerate(suites):
            again = suite.ended(CaseOutcome.FAILED) - failed_before - flaky
            if not again or any(suite is one for one, _ in suites[:number]):
                continue
            for command, run in zip(self._notary.commands, self._runs["new"], strict=True):
                alone = Selection(ids=tuple(sorted(again))) if run.runners & SELECTIVE else Selection()
                if self._notary.left() > 0 and (run.suite.listed or not again):
                    passed = self._execution.run(command, place, alone).suite.ended(CaseOutcome.PASSED)
                    flaky |= again & passed
        return flaky

    def _require_failing(self, place: IsolatedCheckout) -> None:
        """Hold that a test that must fail was seen to fail; where none was tried yet and the runner takes one, it is now."""
        for command, run in zip(self._notary.commands, self._runs["new"], strict=True):
            if command not in self._canaries and (not run.runners & SELECTIVE or self._notary.left() <= 0):
                if run.suite.listed:
                    runners = ", ".join(sorted(run.runners)) or "this runner"
                    self._notes.append(f"no test that must fail was tried: {runners} takes none")
                continue
            if command not in self._canaries:
                with canary_alone(run, place, [one.path for one in self._changed]) as selection:
                    done = self._execution.run(command, place, selection)
                ended = done.suite.ended(CaseOutcome.FAILED)
                failed = sum(selection.canary in id_ for id_ in ended) >= selection.canaries
                counted = done.status != 0 or run.runners <= UNCOUNTED
                self._canaries[command] = bool(selection.canary) and failed and counted
            if not self._canaries[command]:
                said = shlex.join(command.argv)
                self._problems.append(f"{said}: a test that must fail was not seen to fail: its results mean nothing")

    def _judge(self, new: SuiteRun, base: SuiteRun, found: RunComparison) -> None:
        """What exit statuses say besides the lists."""
        before = self._runs.get("base", ())
        for number, run in enumerate(self._runs["new"]):
            said = shlex.join(run.argv)
            then = before[number].status if number < len(before) else 0
            if run.status is None:
                self._problems.append(f"{said}: ended after its time limit")
            elif run.contradiction and not (run.status and run.status == then):
                self._problems.append(f"{said}: {run.contradiction}")
            elif run.status and not run.suite.listed:
                where = self._notes if run.status == then else self._problems
                where.append(f"{said}: exit status {run.status}" + (", as before" if run.status == then else ""))
            if not run.suite.listed:
                self._notes.append(f"{said}: only its exit status is known")
        unbuilt = sorted(new.unbuilt.keys() - base.unbuilt.keys())
        self._problems += [f"does not build: {unit}: {new.unbuilt[unit].strip()[-300:]}" for unit in unbuilt]
        if base.listed and not new.listed:
            self._problems.append(f"no test was seen with this commit, and {len(base.cases)} without it")
        if new.listed and not found.passed_before:
            self._notes.append("no test was seen to pass on the base: nothing can be said of what passed before")
