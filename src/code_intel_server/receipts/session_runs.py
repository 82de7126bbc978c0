"""The test runs of a session: the base's in the background from its start, the others for its verdicts (SPEC 4, Receipts).

Never two runs at once. What was seen is kept per trees, commands and fingerprint of what is borrowed, sealed, so that a
server that was killed runs nothing twice and an agent that edits the file has changed nothing.
"""

import contextlib
import hashlib
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pydantic import TypeAdapter

from code_intel_server.common.printable import printable
from code_intel_server.errors import CodeIntelError, Unavailable
from code_intel_server.receipts.execution import SuiteRunRecord
from code_intel_server.receipts.notary import BaseRun, Notary, OriginalRun
from code_intel_server.receipts.report import outcomes, seen_tests
from code_intel_server.receipts.results import across
from code_intel_server.workspace.files import read_regular, write_whole
from code_intel_server.workspace.git.repository import Git
from code_intel_server.workspace.project.config import Config, VerifyCommand
from code_intel_server.workspace.proofs import Judged, ProofRequest, Say, StopCheck
from code_intel_server.workspace.state.signature import BadSignature, signed, verified
from code_intel_server.workspace.values import Change, CommandRun, ProofStatus, SeenTests

BORROWED_NOW = "lent to the tests, changed since the session began, and in no commit"
_FOLDERS_AT_MOST = 6
_LINE_CHARACTERS = 200
_KEPT_BYTES = 64 * 1024 * 1024
_WAIT_SECONDS = 0.2
_RUNNERS = frozenset(
    {"pytest", "py.test", "unittest", "mocha", "jest", "vitest", "tox", "nox", "ctest", "phpunit", "rspec"}
)
"""Programs and modules that run nothing but tests."""

_WITH_TEST = frozenset(
    {
        *("go", "cargo", "node", "npm", "npx", "pnpm", "yarn", "bun", "make", "just", "task", "uv", "poetry", "hatch"),
        *("mvn", "mvnw", "gradle", "gradlew", "dotnet", "swift", "mix", "sbt", "bundle"),
    }
)
"""Programs that run tests where an argument says so."""

_RUN_TESTS = re.compile(r"(?:run|all)[-_]?tests?\b")
"""How the names of scripts begin that run tests, whatever their ending."""

Kept = TypeVar("Kept")


class TreeSource(Protocol):
    """The part of the working tree's judge that is needed here."""

    @property
    def objects(self) -> Path:
        """Where snapshots' contents are."""

    def head_snapshot(self, commit: str) -> str:
        """The snapshot that a checkout of `commit` would have."""

    def as_committed(self, commit: str, old: str, new: str, without: Sequence[str] = ()) -> tuple[str, str]:
        """The snapshots of a checkout of `commit`, and of a commit to be."""

    def changes(self, old: str, new: str) -> tuple[Change, ...]:
        """What differs between two snapshots."""


class _Stopped(Exception):
    """The session that a run in the background was for is over."""


@dataclass(frozen=True, slots=True)
class _KeptBase:
    key: str
    run: BaseRun


@dataclass(frozen=True, slots=True)
class _KeptOriginal:
    key: str
    run: OriginalRun


@dataclass(frozen=True, slots=True)
class _KeptBorrowed:
    folders: dict[str, str]


@dataclass(frozen=True, slots=True)
class _KeptAlone:
    key: str


@dataclass(frozen=True, slots=True)
class _KeptWritten:
    between: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _KeptVerdict:
    key: str
    runs: tuple[CommandRun, ...]
    tests: SeenTests
    failed: bool


class SessionRuns:
    """The runs of one project's sessions. `folder` makes the folder where they are kept, `git` opens the repository."""

    def __init__(
        self, trees: TreeSource, git: Callable[[], Git | str], folder: Callable[[], Path], key: Callable[[], bytes]
    ) -> None:
        self._trees, self._git, self._folder, self._key = trees, git, folder, key
        self._running = threading.Lock()
        self._stop = threading.Event()
        self._ahead: ProofRequest | None = None
        self._ahead_stop = threading.Event()

    # -- the base, in the background ----------------------------------------------------------------------------------

    def begin(self, session_id: str, config: Config, commands: Sequence[VerifyCommand], commit: str) -> None:
        """Run the base's tests in the background, unless that was done before."""
        chosen = tuple(one for one in commands if runs_tests(one))
        if not chosen:
            return
        self.stop()
        stop = self._stop = threading.Event()

        def work() -> None:
            """Run, and leave it to the verdict to say what is wrong where that fails."""
            with contextlib.suppress(CodeIntelError, OSError):
                self._keep_borrowed(session_id, config, chosen)
            with contextlib.suppress(CodeIntelError, OSError, _Stopped), self._running:
                self._run_base(session_id, config, chosen, commit, stop)

        with contextlib.suppress(RuntimeError):  # no more threads: the verdict runs it
            threading.Thread(target=work, name="base-run", daemon=True).start()

    def _keep_borrowed(self, session_id: str, config: Config, chosen: Sequence[VerifyCommand]) -> None:
        """Remember what is borrowed as the session finds it."""
        git = self._git()
        if not isinstance(git, str) and self._read(session_id, "borrowed", _KeptBorrowed) is None:
            found = _notary(git, config, chosen, lambda _: None, lambda: None).borrowed()
            self._write(session_id, "borrowed", _KeptBorrowed(found))

    def _run_base(
        self, session_id: str, config: Config, chosen: Sequence[VerifyCommand], commit: str, stop: threading.Event
    ) -> None:
        git = self._git()
        if isinstance(git, str) or stop.is_set():
            return

        def check() -> None:
            if stop.is_set():
                raise _Stopped

        with self._saying(session_id) as say:
            notary = _notary(git, config, chosen, say, check)
            base = self._trees.head_snapshot(commit)
            key = _key(chosen, base)
            kept = self._read(session_id, "base", _KeptBase)
            if kept is None or (kept.key, kept.run.fingerprint) != (key, notary.fingerprint()):
                run = notary.run_base(base, self._trees.objects)
                run = replace(run, runs=_without_output(run.runs))
                self._write(session_id, "base", _KeptBase(key, run))

    def stop(self) -> None:
        """End what runs in the background."""
        self._stop.set()
        self._ahead_stop.set()

    def of_base(self, session_id: str) -> Mapping[str, int] | str:
        """How many of the base's tests ended how, `running` while they do; '' where nothing is known."""
        kept = self._read(session_id, "base", _KeptBase)
        if kept is None:
            return "running" if self._file(session_id, "now").exists() else ""
        cases = across(run.suite for run in kept.run.runs).cases
        return Counter(str(case.outcome) for case in cases)

    # -- the verdict ----------------------------------------------------------------------------------------------------

    def ahead(self, asked: ProofRequest) -> None:
        """Begin the runs of a change in the background: who asks for it soon waits the less, who asks for another ends them."""
        if asked == self._ahead and not self._ahead_stop.is_set():
            return
        self._ahead_stop.set()
        stop = self._ahead_stop = threading.Event()
        self._ahead = asked

        def check() -> None:
            if stop.is_set():
                raise _Stopped

        def work() -> None:
            """Leave it to the verdict to say what is wrong where that fails."""
            with contextlib.suppress(CodeIntelError, OSError, _Stopped):
                self._judge(asked, lambda _: None, check, ahead=True)

        with contextlib.suppress(RuntimeError):  # no more threads: the verdict makes them
            threading.Thread(target=work, name="runs-ahead", daemon=True).start()

    def judge(self, asked: ProofRequest, say: Say, check: StopCheck) -> Judged:
        """Make the runs of a change, or take what they showed the last time; see `workspace.proofs.Suites`."""
        if asked != self._ahead:
            self._ahead_stop.set()
        return self._judge(asked, say, check)

    def _judge(self, asked: ProofRequest, say: Say, check: StopCheck, *, ahead: bool = False) -> Judged:
        chosen = tuple(one for one in asked.commands if runs_tests(one))
        if not chosen:
            return Judged(tests=SeenTests(only_status=True) if asked.commands else None)
        change = asked.change
        while not self._running.acquire(timeout=_WAIT_SECONDS):
            check()
            say("tests that were begun in the background still run")
        try:
            base, tree = self._trees.as_committed(change.base, change.since, asked.snapshot, change.without)
            return self._judged(asked, chosen, base, tree, say, check, ahead=ahead)
        except Unavailable as error:
            return Judged(tests=SeenTests(unavailable=str(error.params.get("output", error.key))[:300]))
        except OSError as error:
            return Judged(tests=SeenTests(unavailable=error.strerror or str(error)))
        finally:
            self._running.release()

    def _judged(
        self,
        asked: ProofRequest,
        chosen: Sequence[VerifyCommand],
        base: str,
        tree: str,
        say: Say,
        check: StopCheck,
        *,
        ahead: bool,
    ) -> Judged:
        git = self._git()
        if isinstance(git, str):
            return Judged(tests=SeenTests(unavailable=git))
        with self._saying(asked.session_id) as note:

            def tell(text: str) -> None:
                note(text)
                say(text)

            notary = _notary(git, asked.config, chosen, tell, check)
            key = _key(chosen, base, tree, notary.fingerprint())
            last = self._read(asked.session_id, "verdict", _KeptVerdict)
            tries = last.tests.tries + 1 if last is not None and last.key == key else 1
            if last is not None and tries > 1 and not last.failed:
                return Judged(dict(zip(chosen, last.runs, strict=False)), last.tests)
            before = self._read(asked.session_id, "base", _KeptBase)
            known = before.run if before is not None and before.key == _key(chosen, base) else None
            earlier = self._read(asked.session_id, "original", _KeptOriginal)
            again = earlier.run if earlier is not None and earlier.key == _key(chosen) else None
            verdict = notary.verify(base, tree, self._trees.objects, known, again)
            if verdict.original:
                original = replace(verdict.original, runs=_without_output(verdict.original.runs))
                self._write(asked.session_id, "original", _KeptOriginal(_key(chosen), original))
            if known is None and not ahead and "base" in verdict.runs:
                run = BaseRun(_without_output(verdict.runs["base"]), notary.fingerprint())
                self._write(asked.session_id, "base", _KeptBase(_key(chosen, base), run))
        seen = seen_tests(verdict, self._trees.changes(base, tree), tries)
        then = self._read(asked.session_id, "borrowed", _KeptBorrowed)
        if then is not None and not seen.unavailable:
            differing = sorted(folder for folder, _ in then.folders.items() ^ notary.borrowed().items())
            seen = replace(seen, questions=seen.questions | dict.fromkeys(differing[:_FOLDERS_AT_MOST], BORROWED_NOW))
        runs = () if seen.unavailable else outcomes(verdict, seen)
        failed = any(run.outcome is ProofStatus.FAILED for run in runs)
        check()
        # Made ahead, beside checks of the agent's that may want the same port, only what is good is believed.
        if not ahead or not (failed or seen.questions or seen.unavailable):
            self._write(asked.session_id, "verdict", _KeptVerdict(key, runs, seen, failed))
        return Judged(dict(zip(chosen, runs, strict=False)), seen)

    def beside(self, asked: ProofRequest, say: Say, check: StopCheck) -> dict[VerifyCommand, str]:
        """Run in clean checkouts what runs no tests, and passed in the project's folder; see `workspace.proofs.Suites`.

        Only exit statuses count, the base's only where the change fails. Where no checkout can be had, nothing is known.
        """
        change, git = asked.change, self._git()
        others = [one for one in asked.commands if not runs_tests(one)]
        if isinstance(git, str) or not others:
            return {}

        def failing(commands: Sequence[VerifyCommand], state: str) -> dict[VerifyCommand, str]:
            """What those of the commands print last that ran in a clean checkout of a state and failed there."""
            notary = _notary(git, asked.config, commands, lambda text: say(f"in a clean {text}"), check)
            runs = notary.run_base(state, self._trees.objects).runs
            return {
                one: _last_line(run.output)
                for one, run in zip(commands, runs, strict=False)
                if run.status and not run.suite.unavailable
            }

        while not self._running.acquire(timeout=_WAIT_SECONDS):
            check()
            say("tests that were begun in the background still run")
        try:
            base, tree = self._trees.as_committed(change.base, change.since, asked.snapshot, change.without)
            good = _KeptAlone(_key(others, tree))
            if self._read(asked.session_id, "alone", _KeptAlone) == good:
                return {}
            failed = failing(others, tree)
            before = failing([*failed], base) if failed else {}
            found = {one: said for one, said in failed.items() if one not in before}
            if not found:
                self._write(asked.session_id, "alone", good)
        except (Unavailable, OSError):
            return {}
        finally:
            self._running.release()
        return found

    def note_written(self, session_id: str, before: str, after: str) -> None:
        """Remember the snapshots between which a command ran in the project and something changed."""
        self._write(session_id, "written", _KeptWritten((*self.written(session_id), (before, after))))

    def written(self, session_id: str) -> tuple[tuple[str, str], ...]:
        """What was noted so, in order."""
        kept = self._read(session_id, "written", _KeptWritten)
        return kept.between if kept else ()

    # -- what is kept ----------------------------------------------------------------------------------------------------

    def forget(self, session_id: str) -> None:
        """Stop what runs in the background and remove what a session kept."""
        self.stop()
        for kind in ("base", "original", "borrowed", "verdict", "alone", "written", "now"):
            with contextlib.suppress(CodeIntelError, OSError):
                self._file(session_id, kind).unlink(missing_ok=True)

    @contextlib.contextmanager
    def _saying(self, session_id: str) -> Iterator[Say]:
        """Says what runs in a file that `status --watch` reads, as long as it does."""
        file = self._file(session_id, "now")

        def say(text: str) -> None:
            with contextlib.suppress(OSError):
                write_whole(file, json.dumps({"run": text, "since": time.time()}).encode())

        try:
            yield say
        finally:
            file.unlink(missing_ok=True)

    def _file(self, session_id: str, kind: str) -> Path:
        return self._folder() / f"{session_id}.{kind}.json"

    def _read(self, session_id: str, kind: str, form: type[Kept]) -> Kept | None:
        try:
            data = verified(self._key(), read_regular(self._file(session_id, kind), _KEPT_BYTES))
            kept: Kept = TypeAdapter(form).validate_json(data)
        except (OSError, ValueError, BadSignature):
            return None
        return kept

    def _write(self, session_id: str, kind: str, kept: Any) -> None:
        """Keep it; what is too large, or has no place, is run again another time."""
        data = TypeAdapter(type(kept)).dump_json(kept)
        if len(data) < _KEPT_BYTES:
            with contextlib.suppress(OSError):
                write_whole(self._file(session_id, kind), signed(self._key(), data[1:]))


def runs_tests(command: VerifyCommand) -> bool:
    """Whether a command starts a program that is known to run tests; of others only the exit status is known."""
    said = [word for argument in command.argv for word in argument.split()]  # a shell's script is one argument
    words = {word.rpartition("/")[2] for word in said if not word.startswith("-")}
    with_test = words & _WITH_TEST and any("test" in word for word in said[1:])
    return bool(words & _RUNNERS or with_test or any(map(_is_test_script, words)))


def _is_test_script(name: str) -> bool:
    words = re.split(r"[-_.]", name)
    return bool(_RUN_TESTS.match(name)) or (words[-1] == "sh" and not {"test", "tests"}.isdisjoint(words))


def _last_line(output: bytes) -> str:
    lines = printable(output.decode("utf-8", "replace")).split("\n")
    return next((line.strip()[:_LINE_CHARACTERS] for line in reversed(lines) if line.strip()), "")


def _notary(git: Git, config: Config, commands: Sequence[VerifyCommand], tell: Say, check: StopCheck) -> Notary:
    limit, borrow = config.verify_limit or None, config.borrowed_folders
    return Notary(git, commands, limit=limit, borrow=borrow, tell=tell, check=check, mutants=config.verify_mutants)


def _key(commands: Sequence[VerifyCommand], *parts: str) -> str:
    said = json.dumps([[command.model_dump() for command in commands], *parts])
    return hashlib.sha256(said.encode()).hexdigest()


def _without_output(runs: Sequence[SuiteRunRecord]) -> tuple[SuiteRunRecord, ...]:
    return tuple(replace(one, output=b"") for one in runs)
