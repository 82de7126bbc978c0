"""One verify command in one checkout, watched while it runs: which test ended how, which hangs (SPEC 4, Receipts)."""

import os
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from code_intel_server import process
from code_intel_server.receipts.checkout import MARK, end_marked, remove_folder
from code_intel_server.receipts.isolation import IsolatedCheckout, relative
from code_intel_server.receipts.results import BAD, Case, CaseOutcome, SuiteRun, merged_runs
from code_intel_server.receipts.runners.events import Events, written_since
from code_intel_server.receipts.runners.instruments import SELECTIVE, Instruments, Selection, npm_options
from code_intel_server.receipts.runners.texts import junit_rows
from code_intel_server.receipts.undeclared import packages
from code_intel_server.workspace.git.repository import Repository
from code_intel_server.workspace.project.config import VerifyCommand

_HANGS_AT_MOST = 5
_CANNOT_START = 127
_CLOCK_SECONDS = 0.1
_OUTPUT_BYTES = 64 * 1024
_STREAM_BYTES = 256 * process.MEBIBYTE


class _Stalled(Exception):
    """No test has ended for as long as is waited."""


@dataclass(frozen=True, slots=True)
class SuiteRunRecord:
    """One verify command in one checkout: what it listed, its exit status (None where it was ended) and its output's end.

    `loaded` are the project's files that the processes of its tests had loaded, where the runner tells, `lent` the packages
    of lent folders.
    """

    argv: tuple[str, ...]
    suite: SuiteRun
    status: int | None
    output: bytes = b""
    runners: frozenset[str] = frozenset()
    loaded: frozenset[str] = frozenset()
    lent: frozenset[str] = frozenset()

    @property
    def contradiction(self) -> str:
        """Where exit status and list do not agree; '' where they do, or where there is no list."""
        bad = len(self.suite.ended(*BAD)) + len(self.suite.unbuilt)
        if self.status == 0 and bad:
            return f"exit status 0, and {bad} failed"
        if self.status == 0 and "pytest" in self.runners and not self.suite.listed:
            return "exit status 0, and no test was seen to end"
        if self.status and self.suite.listed and not bad:
            return f"exit status {self.status}, and no test failed"
        return ""


@dataclass(frozen=True, slots=True)
class Execution:
    """Runs commands in checkouts of the repository at `at`, whose files are `tracked`.

    `stall` is how long a test may take, `left` how long all may go on, in seconds. What `check` raises ends a command.
    """

    at: Repository
    tracked: Collection[str]
    instruments: Instruments
    stall: float
    left: Callable[[], float]
    check: Callable[[], None] = lambda: None

    def run(self, command: VerifyCommand, place: IsolatedCheckout, selection: Selection) -> SuiteRunRecord:
        """Run it; a test that hangs is named, and the rest goes on without it where the runner can."""
        done: list[SuiteRunRecord] = []
        while len(done) < _HANGS_AT_MOST:
            run = self._once(command, place, selection)
            done.append(run)
            hung = tuple(case.id for case in run.suite.cases if case.outcome is CaseOutcome.TIMEOUT)
            if not hung or not run.runners & SELECTIVE or self.left() <= 0:
                break
            selection = replace(selection, skip=(*selection.skip, *hung))
        suite = _joined([one.suite for one in done])
        loaded, lent = (frozenset().union(*(getattr(one, of) for one in done)) for of in ("loaded", "lent"))
        status = done[-1].status if len(done) == 1 else done[-1].status or 1
        return replace(done[-1], suite=suite, status=status, loaded=loaded, lent=lent)

    def _once(self, command: VerifyCommand, place: IsolatedCheckout, selection: Selection) -> SuiteRunRecord:
        results = self.instruments.results()
        events = Events(roots=(str(place.checkout), str(place.seen_at)))
        temporary = place.checkout.with_name("t")  # short: names of sockets have at most 107 bytes
        remove_folder(temporary)
        temporary.mkdir()
        env = process.clean_environment({MARK: str(temporary)})
        env |= place.prepare()
        env |= self.instruments.variables(command.argv, results, place.seen_at, selection, env)
        inside = os.path.normpath(self.at.prefix + command.cwd)
        if not (place.checkout / inside).resolve().is_relative_to(place.checkout.resolve()):
            suite = SuiteRun(unavailable=f"its folder {command.cwd} leads out of the project", whole=False)
            return SuiteRunRecord(command.argv, suite, _CANNOT_START, b"", frozenset())
        env |= npm_options([place.checkout / inside, place.checkout], env["NODE_OPTIONS"])
        argv = place.command(self.instruments.command(command.argv), inside, results)
        began, began_at = time.monotonic(), time.time() - _CLOCK_SECONDS
        watch = _Watch(events, results, self.stall, self.check)
        status, output = self._start(argv, place, inside, command, env, watch)
        if not events.listed:
            events.add(junit_rows(place.checkout, began_at), "JUnit files")
        suite = events.run(time.monotonic() - began, whole=selection.whole)
        elsewhere = place.tested_elsewhere(events.census, self.tracked)
        if elsewhere:
            suite = replace(suite, unavailable=f"not the checkout is tested but {elsewhere}")
        if watch.flooded:
            suite = replace(suite, unavailable="more results were written than can be those of tests")
        inner = {relative(file, place.seen_at) for file in events.census | events.loaded}
        loaded = frozenset(inner.intersection(self.tracked))
        inner |= {relative(file, place.top) for file in events.census | events.loaded}
        lent = packages(path for path in inner if path.startswith(tuple(f"{one}/" for one in place.borrowed)))
        return SuiteRunRecord(command.argv, suite, status, output, frozenset(events.runners), loaded, lent)

    def _start(
        self,
        argv: list[str],
        place: IsolatedCheckout,
        inside: str,
        command: VerifyCommand,
        env: dict[str, str],
        watch: "_Watch",
    ) -> tuple[int | None, bytes]:
        folder = Path("/") if place.mounted else place.checkout / inside
        try:
            done = process.run(
                argv,
                cwd=folder,
                timeout=min(command.timeout, max(self.left(), 1)),
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
            return _CANNOT_START, str(error).encode()
        finally:
            end_marked(place.checkout.parent)
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
        began = self._offset
        while self._offset < _STREAM_BYTES and (data := written_since(self.results, self._offset)):
            self._offset += len(data)
            self.events.feed(data)
        return self._offset > began

    @property
    def flooded(self) -> bool:
        """Whether more was written than is read."""
        return self._offset >= _STREAM_BYTES


def completed(chosen: SuiteRunRecord, whole: SuiteRunRecord, functions: Collection[str] = ()) -> SuiteRunRecord:
    """A run of chosen tests (of Go, of those functions) with the others as they ended in the whole run."""
    if chosen.suite.whole:
        return chosen
    seen = {case.unit for case in chosen.suite.cases} | chosen.suite.unbuilt.keys()
    left = (case for case in whole.suite.cases if case.id not in chosen.suite.outcomes)
    rest = tuple(case for case in left if case.unit not in seen or (functions and _function(case.id) not in functions))
    suite = replace(chosen.suite, cases=(*chosen.suite.cases, *rest), whole=True)
    if chosen.status not in {0, 1} or chosen.suite.unbuilt or chosen.suite.ended(*BAD):
        return replace(chosen, suite=suite)
    # All of its own passed, so its status says what a part of a suite is worth, as a limit of coverage does: the rest's counts.
    elsewhere = any(case.outcome in BAD for case in rest) or whole.suite.unbuilt.keys() - seen
    mended = whole.status == 1 and not elsewhere and (whole.suite.unbuilt or whole.suite.ended(*BAD))
    return replace(chosen, suite=suite, status=0 if mended else whole.status)


def _function(id_: str) -> str:
    """The top-level function of a Go test."""
    return id_.partition(":")[2].partition("/")[0]


def _joined(suites: Sequence[SuiteRun]) -> SuiteRun:
    """The runs of one command that were needed because tests hung: what hung stays a timeout."""
    if len(suites) == 1:
        return suites[0]
    whole = merged_runs(suites)
    hung: dict[str, Case] = {
        case.id: case for suite in suites for case in suite.cases if case.outcome is CaseOutcome.TIMEOUT
    }
    cases = {case.id: case for case in whole.cases} | hung
    return replace(whole, cases=tuple(cases.values()), whole=suites[0].whole)
