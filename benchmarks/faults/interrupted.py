"""A whole session whose server or git children are killed again and again, and resumed until it ends (P1, P2).

After every death of the server a new process takes over; `Acknowledged` says what it must still know. After the death of
a git child the server lives: it may refuse, with a typed error, and the same move is sent again.
"""

import contextlib
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.faults.kills import Kill, Shim, await_git, command
from benchmarks.faults.scenarios import SCENARIOS, Scenario, final_state, prepared
from benchmarks.faults.sentinel import Acknowledged, Sentinel
from benchmarks.faults.watched import TracedServer
from tests.e2e.driver import Server

STEPS_WITHOUT_KILLS = 12
TRIES = 3
NO_SESSION = {"no_active_session", "no_active_session_short"}


@dataclass(slots=True)
class Outcome:
    """What became of an interrupted session."""

    killed: Counter[str] = field(default_factory=Counter)
    commands: Counter[str] = field(default_factory=Counter)
    """The git commands at which a kill took place."""
    places: Counter[str] = field(default_factory=Counter)
    """Where the session stood when a kill took place."""
    trail: list[str] = field(default_factory=list)
    """The kills in their order, for a violation's sake."""
    unreached: int = 0
    refusals: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    final: str = ""


class Interrupted:
    """Runs a session at `root` to its end through `kills`, one at a time."""

    def __init__(self, root: Path, kills: Sequence[Kill], scenario: Scenario = SCENARIOS[0]) -> None:
        self.root, self.scenario = root, scenario
        self.waiting = list(kills)
        self.kill: Kill | None = None
        self.moves = scenario.moves(root)
        self.model = Acknowledged(list(scenario.road))
        self.outcome = Outcome()
        self.shim = Shim(root.parent / "shim")
        self.before: list[Sentinel] = []

    def run(self) -> Outcome:
        """To the end; what was lost or done twice is in `violations`."""
        self.before.append(Sentinel.of(self.root))
        for _ in range(len(self.waiting) + STEPS_WITHOUT_KILLS):
            if self.model.at == len(self.moves):
                break
            self._one_process()
        else:
            self.outcome.violations.append("the session did not end")
        await_git(self.root)
        user_removes_locks(self.root)
        self.outcome.violations += self.model.violations
        for before in self.before:
            self.outcome.violations += [f"lost: {row}" for row in before.lost(self.root)]
        self.outcome.final = final_state(self.root)
        return self.outcome

    def _one_process(self) -> None:
        self._next_kill()
        server: Server | None = None
        try:
            tracer = self.kill.tracer(self.shim.folder / "trace") if self.kill else ()
            server = TracedServer(self.root, *tracer, **self.shim.environment())
            self._resume(server)
            self._go_on(server)
        except (EOFError, BrokenPipeError, ValueError):
            self._server_died()
        except AssertionError as error:
            self.outcome.violations.append(f"{self.model.at}: no typed answer: {error}"[:2000])
        finally:
            if server is not None:
                server.kill()
            self._after_the_server()

    def _next_kill(self) -> None:
        self.kill = self.waiting.pop(0) if self.waiting else None
        self.shim.plan(self.kill)

    def _resume(self, server: Server) -> None:
        for _ in range(TRIES):
            status = server.call("get_session_status")
            if status["success"]:
                self.model.restored(status)
                self.model.at = max(self.model.at, 1)
                return
            if status["error"] in NO_SESSION:
                last = self.model.at == len(self.moves) - 1
                if self.model.at and not (last and self.model.in_flight):
                    self.outcome.violations.append(f"acknowledged session gone after move {self.model.at}")
                return
            self._fault_was_survived()
            self.outcome.refusals.append(f"restore: {status['error']}")
            await_git(self.root)
            user_removes_locks(self.root)

    def _go_on(self, server: Server) -> None:
        refused = 0
        while self.model.at < len(self.moves):
            if self.model.at == self.scenario.work and len(self.before) == 1:
                self.before.append(Sentinel.of(self.root))
            self._before_a_move()
            self.model.sending()
            answer = self.moves[self.model.at](server)
            self._fault_was_survived()
            if answer["success"]:
                refused = 0
                self.model.answered(answer)
                if self._wants_another_process():
                    return
                continue
            refused += 1
            self.outcome.refusals.append(f"{self.model.at}: {answer['error']}")
            if refused == TRIES:
                return
            await_git(self.root)
            user_removes_locks(self.root)

    def _before_a_move(self) -> None:
        """Nothing; for who plans by the move."""

    def _wants_another_process(self) -> bool:
        """Whether the faults that are left need a new server: none is planned here, or it came to a whole move without it."""
        return bool(self.waiting) and (self.kill is None or not self.kill.child)

    def _fault_was_survived(self) -> bool:
        """Whether the planned fault took place and left the server; then, if it can be here, the next one is planned."""
        if self.kill is None or not (self.shim.reached() if self.kill.child else self.kill.error):
            return False
        happened = self.shim.happened() if self.kill.child else self.shim.traced()
        if happened:
            self._count(self.kill)
        elif self.kill.child:
            self.outcome.unreached += 1
        else:
            return False
        self.kill = None
        if self.waiting and self.waiting[0].child:
            self._next_kill()
        else:
            self.shim.plan(None)
        return happened

    def _server_died(self) -> None:
        if self.kill is None:
            self.outcome.violations.append("a server died that nobody killed")
        else:
            self._count(self.kill)
            self.kill = None

    def _count(self, kill: Kill) -> None:
        self.outcome.killed[kill.label] += 1
        self.outcome.places[str(self.scenario.road[self.model.at][0])] += 1
        words = self.shim.reached().split()[1:] if kill.child else []
        if words:
            self.outcome.commands[command(words)] += 1
        self.outcome.trail.append(f"move {self.model.at}: {kill.label} {kill.number} {command(words) if words else ''}")

    def _after_the_server(self) -> None:
        """Every second time the next server comes while children of the dead one still work."""
        if self.kill is not None:
            self.outcome.unreached += 1
            self.kill = None
        if len(self.waiting) % 2:
            await_git(self.root)
            user_removes_locks(self.root)


def user_removes_locks(root: Path) -> None:
    """A git that was killed leaves its lock, which the server never removes (SPEC 6.1): the user does."""
    for lock in (root / ".git").rglob("*.lock"):
        if root / ".git" / "code-intel" not in lock.parents:
            lock.unlink(missing_ok=True)


def in_folder(folder: Path, kills: Sequence[Kill], scenario: Scenario = SCENARIOS[0], expected: str = "") -> Outcome:
    """One interrupted session in a repository of its own, removed afterwards unless something was violated."""
    folder.mkdir(parents=True)
    outcome = Interrupted(prepared(folder), kills, scenario).run()
    if expected and outcome.final != expected:
        outcome.violations.append(f"ended as {outcome.final}\nnot as {expected}")
    if not outcome.violations:
        with contextlib.suppress(OSError):
            shutil.rmtree(folder)
    return outcome
