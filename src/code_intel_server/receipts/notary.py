"""Runs old and new tests on old and new code in clean checkouts and says what was seen (SPEC 4, Receipts).

The runs and what they show together are `compare`'s; this module makes them, in the order in which they matter where
time is short: the new suite, the original tests on the new product, the base, the new tests on the base's product.
"""

import os
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from code_intel_server import process
from code_intel_server.codebase.roles import named_as_tests
from code_intel_server.receipts.checkout import Changed, Checkouts, private_folder
from code_intel_server.receipts.compare import Receipt, Runs, receipt
from code_intel_server.receipts.files import FileClass
from code_intel_server.receipts.isolation import BORROWED, Place, borrowed, can_mount, fingerprint
from code_intel_server.receipts.results import Case, Outcome, SuiteRun, merged
from code_intel_server.receipts.runners.events import Events, written_since
from code_intel_server.receipts.runners.instruments import SELECTIVE, WITH_CANARY, Instruments, Selection
from code_intel_server.workspace.config import VerifyCommand
from code_intel_server.workspace.git import Git, split_z

STALL_SECONDS = 120.0
_TIMES_THE_LIMITS = 3
_HANGS_AT_MOST = 5
_OUTPUT_BYTES = 64 * 1024
_BAD = (Outcome.FAILED, Outcome.TIMEOUT)


class _Stalled(Exception):
    """No test has ended for as long as is waited."""


@dataclass(frozen=True, slots=True)
class CommandRun:
    """One verify command in one checkout: what it listed, its exit status (None where it was ended) and its output's end."""

    argv: tuple[str, ...]
    suite: SuiteRun
    status: int | None
    output: bytes = b""
    runners: frozenset[str] = frozenset()

    @property
    def contradiction(self) -> str:
        """Where exit status and list do not agree; '' where they do, or where there is no list."""
        bad = len(self.suite.ended(*_BAD)) + len(self.suite.unbuilt)
        if self.status == 0 and bad:
            return f"exit status 0, and {bad} failed"
        if self.status == 0 and "pytest" in self.runners and not self.suite.listed:
            return "exit status 0, and no test was seen to end"
        if self.status and self.suite.listed and not bad:
            return f"exit status {self.status}, and no test failed"
        return ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the runs of one change showed.

    `problems` refuse it, beside tests that fail or are unexplained; `notes` are said. `exit_status_only` where no run
    named a test: then the exit statuses are all there is.
    """

    receipt: Receipt
    runs: dict[str, tuple[CommandRun, ...]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    exit_status_only: bool = False
    unavailable: str = ""
    seconds: float = 0.0

    @property
    def good(self) -> bool:
        """Whether nothing is wrong and something was seen."""
        bad = self.receipt.failing or self.receipt.unexplained or self.problems or self.unavailable
        return not bad


@dataclass(frozen=True, slots=True)
class BaseRun:
    """What the base's tests showed on the base's product, and the fingerprint of what was borrowed for it."""

    runs: tuple[CommandRun, ...]
    fingerprint: str


@dataclass(slots=True)
class Notary:
    """Makes receipts of a repository's commits with the project's verify commands.

    `limit` in seconds is for all runs together (three times the commands' own by default), `stall` for one test. `check`
    is called several times a second while a command runs; what it raises ends the command and goes on to the caller.
    """

    git: Git
    commands: Sequence[VerifyCommand]
    limit: float | None = None
    stall: float = STALL_SECONDS
    borrow: tuple[str, ...] = BORROWED
    tell: Callable[[str], None] = lambda _: None
    mount: bool | None = None
    check: Callable[[], None] = lambda: None
    _deadline: float = 0.0

    def verify(self, base: str, new: str, objects: Path | None = None, before: BaseRun | None = None) -> Verdict:
        """Run what a change from `base` to `new` has to be seen by: commits, or snapshots with the folder of their objects.

        Both are of one kind: a snapshot holds bytes as they lie on disk. `before` is a run of `base` that was kept. Raises
        Unavailable where git fails.
        """
        began = self._begin()
        with private_folder() as folder:
            work = _Work(self, Checkouts(self.git, folder, objects), base, new)
            return replace(work.verdict(before), seconds=time.monotonic() - began)

    def run_base(self, base: str, objects: Path | None = None) -> BaseRun:
        """Run the tests of one commit or snapshot alone. Raises Unavailable where git fails."""
        self._begin()
        with private_folder() as folder:
            return _Work(self, Checkouts(self.git, folder, objects), base, base).base_alone()

    def fingerprint(self) -> str:
        """What tells whether that which is borrowed for runs is as it was."""
        listed = frozenset(split_z(self.git.must("ls-files", "-z")))
        return fingerprint(self.git.at.top, borrowed(self.git.at.top, listed, self.borrow))

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
        self._instruments = Instruments(checkouts.folder / "instruments")
        self._changed = checkouts.changed(self._base, self._new)
        self._tracked = checkouts.files(self._new)
        self._borrowed = borrowed(self._git.at.top, self._tracked, notary.borrow)
        self._mounted = can_mount() if notary.mount is None else notary.mount
        self._runs: dict[str, tuple[CommandRun, ...]] = {}
        self._notes: list[str] = []
        self._problems: list[str] = []

    def base_alone(self) -> BaseRun:
        """The base's tests on the base's product."""
        self._suite("base", self._place("base", self._base))
        return BaseRun(self._runs.get("base", ()), fingerprint(self._git.at.top, self._borrowed))

    def _base_run(self, before: BaseRun | None, now: str) -> SuiteRun:
        """What the base run showed: the kept one where it was made with what is borrowed now."""
        if before is None or before.fingerprint != now:
            return self._suite("base", self._place("base", self._base))
        self._runs["base"] = before.runs
        return merged(one.suite for one in before.runs)

    def verdict(self, kept: BaseRun | None = None) -> Verdict:
        """Make the runs and compare them."""
        top = self._git.at.top
        before = fingerprint(top, self._borrowed)
        steering = [one for one in self._changed if one.file_class is not FileClass.PRODUCT]
        new_place = self._place("new", self._new)
        new = self._suite("new", new_place)
        if new.unavailable:
            return Verdict(Receipt(), self._runs, (), tuple(self._notes), unavailable=new.unavailable)
        original_place = self._place("original", self._new, steering, "old") if steering else new_place
        original = self._suite("original", original_place) if steering else new
        base = self._base_run(kept, before)
        red = self._red(steering, base)
        flaky = self._flaky(new, original, base, new_place, original_place)
        self._canaries(new_place)
        same = fingerprint(top, self._borrowed) == before
        if not same:
            self._problems.append(f"changed while the tests ran: {', '.join(self._borrowed)}")
        seen = Runs(base if base.listed else None, original, new, red)
        found = receipt(seen, flaky, same_environment=same)
        self._judge(new, base, found)
        only_status = not new.listed
        lacking = sorted(self._checkouts.lacking)
        self._notes += [f"submodule {path}: its content is not at hand, its folder was empty" for path in lacking]
        return Verdict(
            found, self._runs, tuple(dict.fromkeys(self._problems)), tuple(dict.fromkeys(self._notes)), only_status
        )

    def _place(self, name: str, tree: str, over: Iterable[Changed] = (), side: str = "old") -> Place:
        checkout = self._checkouts.make(name, tree, tuple(over), side=side)
        at = self._git.at
        return Place(at.top, checkout, at.common_dir / "objects", self._borrowed, self._mounted)

    # -- the runs ---------------------------------------------------------------------------------------------------

    def _suite(self, name: str, place: Place, selection: Selection | None = None) -> SuiteRun:
        """One run of all commands."""
        done = []
        for command in self._notary.commands:
            if self._notary.left() <= 0:
                self._notes.append(f"{name}: left out, the time for all runs is over")
                return SuiteRun(unavailable="left out: the time for all runs is over", whole=False)
            self._notary.tell(f"{name}: {' '.join(command.argv)}")
            done.append(self._command(command, place, selection or Selection()))
        self._runs[name] = tuple(done)
        return merged(one.suite for one in done)

    def _red(self, steering: Sequence[Changed], base: SuiteRun) -> SuiteRun:
        """New and changed tests on the base's product; where there are none that is what the base run showed."""
        tests = [one for one in steering if one.file_class is FileClass.TEST]
        if not any(one.new.there for one in tests):
            return base
        place = self._place("red", self._base, steering, "new")
        collected = all(named_as_tests(one.path) and one.path.endswith(".py") for one in tests)
        files = tuple(os.path.realpath(place.seen_at / one.path) for one in tests) if collected else None
        return self._suite("red", place, Selection(files=files))

    def _flaky(self, new: SuiteRun, original: SuiteRun, base: SuiteRun, *places: Place) -> set[str]:
        """The tests that fail with the change and pass when they are run again, alone where the runner can."""
        failed_before = base.ended(*_BAD)
        flaky: set[str] = set()
        for suite, place in zip((new, original), places, strict=True):
            again = suite.ended(Outcome.FAILED) - failed_before - flaky
            if not again or (suite is original and original is new):
                continue
            for command, run in zip(self._notary.commands, self._runs["new"], strict=True):
                alone = Selection(ids=tuple(sorted(again))) if run.runners & SELECTIVE else Selection()
                if self._notary.left() > 0 and (run.suite.listed or not again):
                    passed = self._command(command, place, alone).suite.ended(Outcome.PASSED)
                    flaky |= again & passed
        return flaky

    def _canaries(self, place: Place) -> None:
        """Put a test that must fail where the runner takes one: a product that makes failures pass is shown."""
        for command, run in zip(self._notary.commands, self._runs["new"], strict=True):
            if not run.runners & WITH_CANARY or self._notary.left() <= 0:
                if run.suite.listed:
                    runners = ", ".join(sorted(run.runners)) or "this runner"
                    self._notes.append(f"no test that must fail was tried: {runners} takes none")
                continue
            name = f"test_{secrets.token_hex(8)}"
            done = self._command(command, place, Selection(canary=name))
            failed = any(name in id_ for id_ in done.suite.ended(Outcome.FAILED))
            if not failed or done.status == 0:
                said = " ".join(command.argv)
                self._problems.append(f"{said}: a test that must fail was not seen to fail: its results mean nothing")

    def _judge(self, new: SuiteRun, base: SuiteRun, found: Receipt) -> None:
        """What exit statuses say beside the lists."""
        before = self._runs.get("base", ())
        for number, run in enumerate(self._runs["new"]):
            said = " ".join(run.argv)
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

    # -- one command ------------------------------------------------------------------------------------------------

    def _command(self, command: VerifyCommand, place: Place, selection: Selection) -> CommandRun:
        """Run one command; a test that hangs is named, and the rest goes on without it where the runner can."""
        done: list[CommandRun] = []
        while len(done) < _HANGS_AT_MOST:
            run = self._once(command, place, selection)
            done.append(run)
            hung = tuple(case.id for case in run.suite.cases if case.outcome is Outcome.TIMEOUT)
            if not hung or "pytest" not in run.runners or self._notary.left() <= 0:
                break
            selection = replace(selection, skip=(*selection.skip, *hung))
        suite = _joined([one.suite for one in done])
        return replace(done[-1], suite=suite, status=done[-1].status if len(done) == 1 else done[-1].status or 1)

    def _once(self, command: VerifyCommand, place: Place, selection: Selection) -> CommandRun:
        results = self._instruments.results()
        events = Events(roots=(str(place.checkout), str(place.seen_at)))
        env = process.clean_environment()
        env |= place.prepare()
        env |= self._instruments.variables(command.argv, results, selection, env)
        inside = os.path.normpath(self._git.at.prefix + command.cwd)
        argv = place.command(self._instruments.command(command.argv), inside)
        began = time.monotonic()
        status, output = self._start(argv, place, inside, command, env, self._watch(events, results))
        suite = events.run(status or 0, time.monotonic() - began, whole=selection.whole)
        elsewhere = place.tested_elsewhere(events.census, self._tracked)
        if elsewhere:
            suite = replace(suite, unavailable=f"not the checkout is tested but {elsewhere}")
        return CommandRun(command.argv, suite, status, output, frozenset(events.runners))

    def _watch(self, events: Events, results: Path) -> "_Watch":
        return _Watch(events, results, self._notary.stall, self._notary.check)

    def _start(
        self, argv: list[str], place: Place, inside: str, command: VerifyCommand, env: dict[str, str], watch: "_Watch"
    ) -> tuple[int | None, bytes]:
        folder = Path("/") if place.mounted else place.checkout / inside
        try:
            done = process.run(
                argv,
                cwd=folder,
                timeout=min(command.timeout, max(self._notary.left(), 1)),
                env=env,
                max_output=_OUTPUT_BYTES,
                overflow=process.Overflow.KEEP_TAIL,
                merge=True,
                on_wait=watch.look,
            )
        except _Stalled:
            watch.read()
            return None, b""
        except OSError as error:
            return 127, str(error).encode()
        watch.read()
        return None if done.timed_out else done.returncode, done.stdout


@dataclass(slots=True)
class _Watch:
    """Reads events while a command runs, and ends it when a test takes too long."""

    events: Events
    results: Path
    stall: float
    check: Callable[[], None]
    _offset: int = 0
    _since: float = field(default_factory=time.monotonic)

    def look(self) -> None:
        """Read on; raises _Stalled, and what the check raises."""
        self.check()
        if self.read():
            self._since = time.monotonic()
        elif self.events.running and time.monotonic() - self._since > self.stall:
            raise _Stalled

    def read(self) -> bool:
        """Whether something new was written."""
        data = written_since(self.results, self._offset)
        self._offset += len(data)
        self.events.feed(data)
        return bool(data)


def _joined(suites: Sequence[SuiteRun]) -> SuiteRun:
    """The runs of one command that were needed because tests hung: what hung stays a timeout."""
    if len(suites) == 1:
        return suites[0]
    whole = merged(suites)
    hung: dict[str, Case] = {
        case.id: case for suite in suites for case in suite.cases if case.outcome is Outcome.TIMEOUT
    }
    cases = {case.id: case for case in whole.cases} | hung
    return replace(whole, cases=tuple(cases.values()), whole=suites[0].whole)
