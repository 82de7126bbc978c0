"""Server-run proofs: the configured commands, run by us, judged by their status, bound to the tree they ran on (SPEC 4).

What runs is what the user trusted: the commands as they were read when the session began, and only if the user trusted a
file with exactly those bytes. What could not be run is never taken for a success; it is `unproven`, with the reason.
"""

import re
import shlex
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol

from pydantic import JsonValue

from code_intel_server.common.printable import printable
from code_intel_server.errors import Rejected
from code_intel_server.process import Completed, Overflow, clean_environment, run
from code_intel_server.workspace.paths import FOLDER, Project
from code_intel_server.workspace.project.config import Config, ConfigFile, VerifyCommand
from code_intel_server.workspace.project.trust import Approvals
from code_intel_server.workspace.tree.tree import TreeJudge
from code_intel_server.workspace.values import BESIDE, ChangeKind, CommandRun, Proof, ProofStatus, SeenTests, ToCommit

MAX_TAIL_CHARACTERS = 4000
MAX_NAMED_FILES = 5
PROGRESS_SECONDS = 1.0
_OUTPUT_BYTES = 64 * 1024
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_STARTS_OTHERS = re.compile(
    r"(?:python|pypy|ruby|perl|php|node|deno|bun|lua|julia|Rscript)[\d.]*|(?:ba|da|z|k|fi)?sh|pwsh|env|uv|uvx|poetry|pipenv|pdm|hatch|npx"
    r"|pnpm|yarn|bundle|coverage|time|timeout|nice|xvfb-run|run|exec|tsx|ts-node|[\w]+=.*|[\d.]+[smh]?"
)

Progress = Callable[[float, float, str], None]
Say = Callable[[str], None]
StopCheck = Callable[[], None]


@dataclass(frozen=True, slots=True)
class ProofRequest:
    """What is asked of the test suites: the commands, in which session, for which snapshot, to be committed how."""

    session_id: str
    config: Config
    commands: Sequence[VerifyCommand]
    snapshot: str
    change: ToCommit


@dataclass(frozen=True, slots=True)
class Judged:
    """What clean checkouts showed: the outcome of those commands that need no other run, and the tests."""

    runs: Mapping[VerifyCommand, CommandRun] = field(default_factory=dict)
    tests: SeenTests | None = None


class Suites(Protocol):
    """Runs those of the commands that are known to run tests in clean checkouts, test by test."""

    def judge(self, asked: ProofRequest, say: Say, check: StopCheck) -> Judged:
        """Run them; `say` is told what runs, `check` is called while it does and may raise."""

    def beside(self, asked: ProofRequest, say: Say, check: StopCheck) -> Mapping[VerifyCommand, str]:
        """Those of the commands that run no tests and passed in the project's folder which pass in a clean checkout of the base and fail in one of the change, and what they print last there."""

    def begin(self, session_id: str, config: Config, commands: Sequence[VerifyCommand], commit: str) -> None:
        """Start the tests of a commit in the background."""

    def ahead(self, asked: ProofRequest) -> None:
        """Start in the background what `judge` will soon be asked."""

    def note_written(self, session_id: str, before: str, after: str) -> None:
        """Remember the snapshots between which a command ran in the project and something changed."""

    def written(self, session_id: str) -> Sequence[tuple[str, str]]:
        """What was noted so, in order."""

    def of_base(self, session_id: str) -> Mapping[str, int] | str:
        """How many of the base's tests ended how, `running` while they do; '' where nothing is known."""


class ProofRunner:
    """Runs the verify commands of one configuration.

    `check` is called several times a second while a command runs; whatever it or the progress callback raises ends the
    command with all its descendants and goes on to the caller. Where what passes is committed (`commits`), commands that
    run no tests run in a clean checkout too.
    """

    def __init__(
        self,
        project: Project,
        config: ConfigFile,
        tree: TreeJudge,
        approvals: Approvals | None = None,
        check: StopCheck = lambda: None,
        suites: Suites | None = None,
        *,
        commits: bool = True,
    ) -> None:
        self._suites = suites
        self._commits = commits
        self._project = project
        self._config = config
        self._tree = tree
        self._given = approvals
        self._check = check

    @cached_property
    def _approvals(self) -> Approvals:
        """Looked for when something is to be run: a runner is made for every submit."""
        return Approvals() if self._given is None else self._given

    def run(self, session_id: str, progress: Progress, tree: str = "", change: ToCommit | None = None) -> Proof:
        """Run all commands in the project, the waived and the untrusted excepted, and take the tree's hash when they ended.

        `tree` is the present snapshot where the caller has just taken one. With `change`, commands that run tests run in
        clean checkouts of what is to be committed instead.

        Every command runs, also after one has failed: whoever repairs wants to see all that is broken.
        """
        tree = tree or self._tree.snapshot()
        if self._config.lost("verify_commands"):
            return Proof(ProofStatus.UNPROVEN, tree, (_unreadable(self._config),))
        commands = self._config.config.verify_commands
        if not commands:
            return Proof(ProofStatus.NONE, tree, left_out=self._tree.left_out())
        if self._suites is None or change is None or not change.base:
            tests = None
            runs, tree = self._in_project(session_id, {}, tree, progress)
        else:
            asked = ProofRequest(session_id, self._config.config, self.runnable(session_id), tree, change)
            runs, tree, tests = self._in_checkouts(self._suites, asked, progress)
        progress(len(commands), len(commands), "verify commands done")
        return Proof(_overall(runs), tree, tuple(runs), self._tree.left_out(), tests)

    def _in_project(
        self, session_id: str, judged: Mapping[VerifyCommand, CommandRun], tree: str, progress: Progress
    ) -> tuple[list[CommandRun], str]:
        """The outcome of each command, run here unless it is `judged` already, and the snapshot after the last one."""
        commands = self._config.config.verify_commands
        waived = {waiver.argv: waiver.reason for waiver in self._approvals.waivers(self._project.root, session_id)}
        trusted = self._approvals.trusted(self._config.path, self._config.digest)
        runs: list[CommandRun] = []
        for number, command in enumerate(commands):
            if command in judged:
                runs.append(judged[command])
            elif command.argv in waived:
                runs.append(_not_run(command, ProofStatus.WAIVED, waived[command.argv]))
            elif not trusted:
                reason = f"{FOLDER}/{self._config.path.name} is not trusted: code-intel-server trust"
                runs.append(_not_run(command, ProofStatus.UNPROVEN, reason))
            else:
                began, before = time.time_ns(), tree
                try:
                    done = self._run(command, _Ticker(progress, number, len(commands), command))
                finally:
                    tree = self._tree.snapshot()
                    if self._suites is not None and tree != before:
                        self._suites.note_written(session_id, before, tree)
                runs.append(self._with_changes(done, before, tree, began))
        return runs, tree

    def _in_checkouts(
        self, suites: Suites, asked: ProofRequest, progress: Progress
    ) -> tuple[list[CommandRun], str, SeenTests | None]:
        """As `_in_project`, but what runs tests in clean checkouts of the change; and the tests that were seen."""
        commands = self._config.config.verify_commands
        say = _Teller(progress, len(commands)).tell
        judged = suites.judge(asked, say, self._check)
        runs, tree = self._in_project(asked.session_id, judged.runs, asked.snapshot, progress)
        if judged.runs and self._rewritten(asked.snapshot, tree):
            # The tests saw the tree before a command rewrote it: what is believed of them is of the one that is committed.
            # What they left is in no commit.
            made = [one.path for one in self._tree.changes(asked.snapshot, tree) if one.kind is ChangeKind.ADDED]
            without = (*asked.change.without, *made)
            asked = replace(asked, snapshot=tree, change=replace(asked.change, without=without))
            judged = suites.judge(asked, say, self._check)
            runs = [judged.runs.get(command, done) for command, done in zip(commands, runs, strict=True)]
        tests = judged.tests
        alone = [one for one in asked.commands if one not in judged.runs]
        if not self._commits or not alone or _overall(runs) is ProofStatus.FAILED:
            return runs, tree, tests
        beside = suites.beside(replace(asked, commands=alone), say, self._check)
        why = {command: f"{BESIDE}: {said}" if said else BESIDE for command, said in beside.items()}
        runs = [
            _and(done, why[command]) if command in why else done for command, done in zip(commands, runs, strict=True)
        ]
        questions = {shlex.join(command.argv): said for command, said in why.items()}
        return runs, tree, replace(tests, questions=tests.questions | questions) if tests else tests

    def _rewritten(self, before: str, after: str) -> bool:
        """Whether files that were there are others now."""
        changes = self._tree.changes(before, after) if before != after else ()
        return any(change.kind is not ChangeKind.ADDED for change in changes)

    def written(self, session_id: str) -> Sequence[tuple[str, str]]:
        """The snapshots before and after each run in the project that changed something."""
        return self._suites.written(session_id) if self._suites is not None else ()

    def runnable(self, session_id: str) -> tuple[VerifyCommand, ...]:
        """The commands that may run in a clean checkout: trusted, and neither waived nor wanted in place."""
        commands = [one for one in self._config.config.verify_commands if not one.in_place]
        if not commands or not self._approvals.trusted(self._config.path, self._config.digest):
            return ()
        waived = {waiver.argv for waiver in self._approvals.waivers(self._project.root, session_id)}
        return tuple(one for one in commands if one.argv not in waived)

    def begin(self, session_id: str, commit: str) -> None:
        """Start what the verdict will want of a session's base, in the background."""
        if self._suites is not None and commit and (commands := self.runnable(session_id)):
            self._suites.begin(session_id, self._config.config, commands, commit)

    def ahead(self, session_id: str, tree: str, change: ToCommit) -> None:
        """Start the runs of a change in the background, before `run` is called with the same."""
        if self._suites is not None and change.base and (commands := self.runnable(session_id)):
            self._suites.ahead(ProofRequest(session_id, self._config.config, commands, tree, change))

    def would_run(self, session_id: str) -> bool:
        """Whether some command can be started: it is configured, trusted, not waived, and its program and folder are there."""
        if self._config.lost("verify_commands") or not self._approvals.trusted(self._config.path, self._config.digest):
            return False
        return any(map(self._startable, self._unwaived(session_id)))

    def expected(self, session_id: str) -> dict[str, JsonValue]:
        """The commands that `run` would start, and how the base's tests ended; nothing where it would start none."""
        if not self.would_run(session_id):
            return {}
        commands: list[JsonValue] = [shlex.join(one.argv) for one in self._unwaived(session_id)]
        base = self._suites.of_base(session_id) if self._suites is not None else ""
        return {"verify_commands": commands} | ({"base": base if isinstance(base, str) else {**base}} if base else {})

    def _unwaived(self, session_id: str) -> list[VerifyCommand]:
        waived = {waiver.argv for waiver in self._approvals.waivers(self._project.root, session_id)}
        return [one for one in self._config.config.verify_commands if one.argv not in waived]

    def script(self, path: str) -> str:
        """The configured command that runs this file of the project: as its program, by an interpreter or as a module; or ''."""
        return self._naming(path, run=True)

    def argument(self, path: str) -> str:
        """The configured command that hands this file of the project to a program; '' where none does."""
        return self._naming(path, run=False)

    def _naming(self, path: str, *, run: bool) -> str:
        for command in self._config.config.verify_commands:
            folder = self._folder(command)
            if folder is None:
                continue
            for number, word in enumerate(command.argv):
                before = command.argv[:number]
                if not before and "/" not in word:
                    continue  # looked up in PATH
                if self._names(folder / word, before, path) and _runs(before) is run:
                    return shlex.join(command.argv)
        return ""

    def _names(self, place: Path, before: tuple[str, ...], path: str) -> bool:
        """Whether a word of a command, put below its folder as `place`, stands for `path`."""
        if before[-1:] != ("-m",):
            return _inside(place, self._project.root) == path
        module = place.parent / place.name.replace(".", "/")
        found = (module.with_suffix(".py"), module / "__main__.py", module / "__init__.py")
        return any(_inside(file, self._project.root) == path for file in found)

    def _startable(self, command: VerifyCommand) -> bool:
        folder = self._folder(command)
        if folder is None:
            return False
        program = self._program(command, folder)
        place = str(folder / program) if "/" in program else program
        return shutil.which(place, path=clean_environment().get("PATH")) is not None

    def _program(self, command: VerifyCommand, folder: Path) -> str:
        """The program of a command; that of the user's folder (`.venv/bin/python`) where a session's worktree has none."""
        program, home = command.argv[0], self._project.home
        if home is None or "/" not in program or (folder / program).exists():
            return program
        there = home / folder.relative_to(self._project.root) / program
        return str(there) if there.exists() else program

    def _run(self, command: VerifyCommand, ticker: "_Ticker") -> CommandRun:
        folder = self._folder(command)
        if folder is None:
            return _not_run(
                command, ProofStatus.UNPROVEN, f"there is no folder {printable(command.cwd)} in the project"
            )

        def waiting() -> None:
            self._check()
            ticker.tick()

        waiting()
        try:
            done = run(
                [self._program(command, folder), *command.argv[1:]],
                cwd=folder,
                timeout=command.timeout,
                env=clean_environment(),
                max_output=_OUTPUT_BYTES,
                overflow=Overflow.KEEP_TAIL,
                merge=True,
                on_wait=waiting,
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
            return _not_run(command, ProofStatus.UNPROVEN, f"{printable(command.argv[0])} cannot be started: {reason}")
        return _judgement(command, done)

    def _folder(self, command: VerifyCommand) -> Path | None:
        try:
            folder = self._project.root / self._project.inside(command.cwd)
        except Rejected:
            return None
        return folder if folder.is_dir() else None

    def _with_changes(self, done: CommandRun, before: str, after: str, began: int) -> CommandRun:
        """Say which files changed while a command ran, by it or by somebody at the same time; also those that are as before again."""
        changed = [change.path for change in self._tree.changes(before, after)]
        again = sorted({*self._tree.written_since(began)}.difference(changed)) if done.seconds else []
        said = [
            done.reason,
            f"files changed while it ran: {_named(changed)}" if changed else "",
            f"files were written while it ran and are as before again: {_named(again)}" if again else "",
        ]
        reason = "; ".join(filter(None, said))
        return replace(done, reason=reason, rewritten=tuple(again))


class _Ticker:
    """Progress by time: a command says nothing about how far it is, so its share grows towards its time limit."""

    def __init__(self, progress: Progress, number: int, total: int, command: VerifyCommand) -> None:
        self._progress = progress
        self._number = number
        self._total = total
        self._limit = command.timeout
        self._name = printable(shlex.join(command.argv))[:100]
        self._started = time.monotonic()
        self._told = 0.0

    def tick(self) -> None:
        """Tell the time that has passed, at most once a second."""
        now = time.monotonic()
        if self._told and now - self._told < PROGRESS_SECONDS:
            return
        self._told = now
        passed = now - self._started
        done = self._number + min(passed / self._limit, 0.99)
        self._progress(done, self._total, f"{self._name} ({passed:.0f} s of at most {self._limit:.0f} s)")


class _Teller:
    """Tells what runs in clean checkouts, at once where it is another run, else once a second."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress = progress
        self._total = total
        self._last = ("", 0.0)

    def tell(self, text: str) -> None:
        """Say that this is what runs."""
        now = time.monotonic()
        if text == self._last[0] and now - self._last[1] < PROGRESS_SECONDS:
            return
        self._last = (text, now)
        self._progress(0, self._total, printable(text)[:200])


def _named(paths: list[str]) -> str:
    rest = len(paths) - MAX_NAMED_FILES
    return ", ".join(map(printable, paths[:MAX_NAMED_FILES])) + (f" and {rest} more" if rest > 0 else "")


def named_command(config: Config, text: str) -> VerifyCommand | None:
    """The verify command a person means: by its number (from 1) or as they would type it."""
    commands = config.verify_commands
    if re.fullmatch(r"[1-9]\d{0,3}", text, re.ASCII):
        return commands[int(text) - 1] if int(text) <= len(commands) else None
    wanted = " ".join(text.split())
    return next((one for one in commands if wanted in {shlex.join(one.argv), " ".join(one.argv)}), None)


def output_tail(output: bytes) -> str:
    """The end of what a command printed: colours dropped, carriage returns as lines, other control characters visible."""
    text = _ANSI.sub("", output.decode("utf-8", "replace"))
    text = printable(text.replace("\r\n", "\n").replace("\r", "\n")).strip("\n")
    return text if len(text) <= MAX_TAIL_CHARACTERS else f"…{text[-MAX_TAIL_CHARACTERS:]}"


def _judgement(command: VerifyCommand, done: Completed) -> CommandRun:
    reason = ""
    if done.timed_out:
        reason = f"ended after its time limit of {command.timeout:g} s"
    elif done.returncode < 0:
        reason = f"ended by signal {-done.returncode}"
    return CommandRun(
        argv=command.argv,
        outcome=ProofStatus.PROVEN if done.ok else ProofStatus.FAILED,
        returncode=done.returncode,
        seconds=done.seconds,
        output_tail=output_tail(done.stdout),
        reason=reason,
    )


def _and(done: CommandRun, reason: str) -> CommandRun:
    return replace(done, reason="; ".join(filter(None, [done.reason, reason])))


def _runs(before: tuple[str, ...]) -> bool:
    """Whether the word behind these words of a command is what is run, not what is handed to what is run."""
    programs = [word.rpartition("/")[2] for word in before if not word.startswith("-")]
    return before[-1:] == ("-m",) or ("-m" not in before and all(_STARTS_OTHERS.fullmatch(word) for word in programs))


def _inside(file: Path, root: Path) -> str:
    """A file's path from the root, links followed; '' where it is none of the project's."""
    try:
        return file.resolve().relative_to(root.resolve()).as_posix()
    except (OSError, RuntimeError, ValueError):
        return ""


def _not_run(command: VerifyCommand, outcome: ProofStatus, reason: str) -> CommandRun:
    return CommandRun(command.argv, outcome, None, 0.0, "", reason)


def _unreadable(config: ConfigFile) -> CommandRun:
    """Stands for commands that are configured and could not be read."""
    why = config.warnings[0] if config.warnings else "unreadable"
    reason = f"{FOLDER}/{config.path.name} cannot be used ({why})"
    return CommandRun(("verify_commands",), ProofStatus.UNPROVEN, None, 0.0, "", reason)


def _overall(runs: list[CommandRun]) -> ProofStatus:
    """The worst that happened to any command."""
    outcomes = {done.outcome for done in runs}
    for status in (ProofStatus.FAILED, ProofStatus.UNPROVEN, ProofStatus.WAIVED):
        if status in outcomes:
            return status
    return ProofStatus.PROVEN
