"""Every point of every move: a session is played once and kept as it stood before each move; then each move is played again
from there, with a fault at its first system call, its second, and so on until it has no more.

After each fault the session goes on: a new process restores it (or the same one, after a typed refusal), the move is sent
again, and everything must stand as it does where nothing failed. A state on disk that this move has been taken up from
before is not taken up again: nothing could come out differently.

python -m benchmarks.faults.points --out FOLDER [--how caller|server|EIO|ENOSPC|EROFS] [--scenario NAME] [--every N]
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.faults.gate import Call, Fault, Gate
from benchmarks.faults.interrupted import NO_SESSION, TRIES, user_removes_locks
from benchmarks.faults.kills import await_git
from benchmarks.faults.scenarios import SCENARIOS, THROUGH_EVERY_PHASE, Move, Scenario, final_state, prepared
from benchmarks.faults.sentinel import Acknowledged, Sentinel
from benchmarks.faults.watched import GatedServer
from tests.e2e.driver import Fields, Server, git

HOWS = ("caller", "server", "EIO", "ENOSPC", "EROFS")
"""The caller of the Nth system call is killed before it; the server is killed there and its child goes on alone; an error."""

PLAYED = (SCENARIOS[2], SCENARIOS[1], SCENARIOS[0], THROUGH_EVERY_PHASE)

TO_THE_END = 40
"""After every such point the session is also played on to its end."""

_SESSION = re.compile(r"\d{8}_\d{6}(?:_\d{1,4})?")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[0-9:.]+(?:Z|[+-]\d\d:?\d\d)?")
_ARCHIVED = re.compile(r"(refs/code-intel/archive/ID/)\d+")
_OBJECT = re.compile(r"\b[0-9a-f]{40}\b")
_COUNTED = {"checksum", "mac", "generation"}
_ONLY_REPORTED = {"resolved", "archived", "log_line"}
_MARKS = re.compile(r'\n"(?:round|report)": \d+,?')
"""Places in the ledger: a call that is made again has another."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What a move leaves: all that has to be the same whatever failed on the way. Times, ids of sessions and of commits are
    left out; a commit is its tree and its words. What was archived twice is no difference, what was not archived is."""

    seen: str
    archived: frozenset[str]

    @classmethod
    def of(cls, root: Path) -> "Standing":
        """The state of the repository at `root`."""
        form = "%(refname)%00%(tree)%(*tree)%00%(contents)%00%01"
        rows = [row.strip("\n").split("\0") for row in git(root, "for-each-ref", f"--format={form}").split("\1")]
        refs = {row[0]: "\n".join(row[1:]) for row in rows if row[0]}
        trees = dict(row.split() for row in git(root, "log", "--all", "--reflog", "--format=%H %T").splitlines())
        sessions = root / ".code-intel" / "sessions"
        bodies = {path.name: _body(path) for path in sorted(sessions.glob("*.json")) if "previous" not in path.name}
        files = Sentinel.of(root)
        told = json.dumps(
            [
                {name: text for name, text in refs.items() if "/archive/" not in name},
                bodies,
                dict(files.files),
                files.index,
                files.refs["HEAD"],
                git(root, "status", "--porcelain", "--branch"),
            ],
            indent=0,
        )

        def plain(text: str) -> str:
            known = _OBJECT.sub(lambda found: trees.get(found[0], found[0]), text)
            return _ARCHIVED.sub(r"\1N", _MARKS.sub("", _TIME.sub("TIME", _SESSION.sub("ID", known))))

        return cls(plain(told), frozenset(plain(text) for name, text in refs.items() if "/archive/" in name))

    def differences(self, other: "Standing") -> list[str]:
        """What is not the same in `other`, each in a line."""
        mine, theirs = self.seen.splitlines(), other.seen.splitlines()
        rows = [f"- {row}" for row in mine if row not in theirs] + [f"+ {row}" for row in theirs if row not in mine]
        return rows[:20] + [f"not archived: {row}" for row in self.archived - other.archived]


def _body(path: Path) -> Fields:
    body: Fields = json.loads(path.read_bytes())
    told = {name: value for name, value in body.items() if name not in _COUNTED}
    return {name: _without_advice(value) for name, value in told.items()}


def _without_advice(value: Any) -> Any:
    """Without what is only told: where a disk fails, the definitions of named symbols are left out; and what an attempt
    that failed has archived is named by `trash list` (and looked for here), not by the answer to the next attempt."""
    if isinstance(value, dict):
        return {name: _without_advice(one) for name, one in value.items() if name not in _ONLY_REPORTED}
    return [_without_advice(one) for one in value] if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class Stage:
    """A move: what lay on disk before it, and how everything stands after it; `spent` is what the move itself writes over."""

    number: int
    before: Path
    sentinel: Sentinel
    after: Standing
    spent: frozenset[str]


@dataclass(frozen=True, slots=True)
class Point:
    """What became of one fault. `call` is None where the move has no such place."""

    call: Call | None
    refusals: tuple[str, ...] = ()
    violations: tuple[str, ...] = ()
    known: bool = False


@dataclass(slots=True)
class Tally:
    """What became of the faults of one kind in one move."""

    kinds: Counter[str] = field(default_factory=Counter)
    commands: Counter[str] = field(default_factory=Counter)
    known: int = 0
    refusals: int = 0
    violations: list[str] = field(default_factory=list)

    def add(self, number: int, how: str, point: Point) -> None:
        """One more."""
        assert point.call is not None
        alone = how == "server" and point.call.who != "server"
        killed = f"server while git goes on: {point.call.kind}" if alone else point.call.label
        self.kinds[killed if how in {"caller", "server"} else f"{point.call.label} {how}"] += 1
        if point.call.who not in {"server", "git"}:
            self.commands[point.call.who] += 1
        self.known += point.known
        self.refusals += len(point.refusals)
        self.violations += [f"{number} ({point.call}): {row}" for row in point.violations]


class Played:
    """A session played once in `folder`, and played again from any of its moves."""

    def __init__(self, folder: Path, scenario: Scenario) -> None:
        self.scenario, self.folder = scenario, folder
        self.ground = folder / "ground"
        self.ground.mkdir(parents=True)
        self.root = prepared(self.ground)
        if scenario.prepare is not None:
            scenario.prepare(self.root)
        self.moves: Sequence[Move] = scenario.moves(self.root)
        self.stages = [self._stage(number) for number in range(len(self.moves))]
        self.final = final_state(self.root)
        self._taken_up: set[str] = set()

    def _stage(self, number: int) -> Stage:
        before = self.folder / f"before-{number}"
        shutil.copytree(self.ground, before, symlinks=True)
        sentinel = Sentinel.of(self.root)
        with Server(self.root) as server:
            if number:
                assert server.call("get_session_status")["success"]
            answer = self.moves[number](server)
            place = (str(answer.get("phase")), int(answer.get("step") or 0))
            assert answer["success"] and place == self.scenario.road[number + 1], (number, answer)
        return Stage(number, before, sentinel, Standing.of(self.root), frozenset(sentinel.lost(self.root)))

    def play(self, number: int, fault: Fault) -> Point:
        """The move of that number with this fault in it, and what comes of it."""
        stage = self.stages[number]
        self.lay(stage.number)
        point = _Run(self, stage, fault).play()
        if point.call is None or point.known:
            return point
        violations = [*point.violations, *self._compared(stage)]
        if not violations and fault.number % TO_THE_END == 0:
            violations = self._played_on(number)
        return Point(point.call, point.refusals, tuple(violations))

    def _compared(self, stage: Stage) -> list[str]:
        rows = [f"not as without a fault: {row}" for row in stage.after.differences(Standing.of(self.root))]
        return rows + [f"lost: {row}" for row in stage.sentinel.lost(self.root) if row not in stage.spent]

    def _played_on(self, number: int) -> list[str]:
        with Server(self.root) as server:
            if number + 1 < len(self.moves):
                assert server.call("get_session_status")["success"]
            for move in self.moves[number + 1 :]:
                answer = move(server)
                if not answer["success"]:
                    return [f"went on to a refusal: {answer['error']}"]
        final = final_state(self.root)
        return [] if final == self.final else [f"ended as {final}\nnot as {self.final}"]

    def calls(self, number: int) -> Sequence[Call]:
        """The system calls of a move without a fault, in their order."""
        self.lay(number)
        gate = Gate()
        with GatedServer(self.root, gate) as server:
            if number:
                assert server.call("get_session_status")["success"]
            gate.arm(None)
            assert self.moves[number](server)["success"]
            gate.disarm()
            calls = gate.calls
        gate.close()
        return calls

    def lay(self, number: int) -> None:
        """Put everything back to how it was before the move of that number."""
        shutil.rmtree(self.ground)
        shutil.copytree(self.stages[number].before, self.ground, symlinks=True)

    def taken_up_before(self, number: int) -> bool:
        """Whether this move was taken up from what lies on disk now before."""
        told = hashlib.sha1(str(number).encode())
        for folder, folders, names in os.walk(self.ground):
            folders.sort()
            for name in sorted(names):
                path = Path(folder, name)
                told.update(os.fsencode(path.relative_to(self.ground)) + b"\0" + _essence(path))
            told.update("\0".join(folders).encode())
        known = told.hexdigest() in self._taken_up
        self._taken_up.add(told.hexdigest())
        return known


def _essence(path: Path) -> bytes:
    """The content of a file, but for what is another in each run: process ids, times, what the file system says of files."""
    if path.is_symlink() or path.name == "stderr.log" or path.name.endswith("-shm"):
        return b""
    content = path.read_bytes()
    if path.parent.name == "code-intel" and path.name == "lock":
        return b""
    if path.name == "decisions.jsonl":
        return b"%d %d" % (content.count(b"\n"), content.endswith(b"\n"))
    return b"%d" % len(content) if path.name == "index" and path.parent.name == "tree" else content


class _Run:
    """One play of one move with one fault."""

    def __init__(self, played: Played, stage: Stage, fault: Fault) -> None:
        self.played, self.stage, self.fault = played, stage, fault
        self.model = Acknowledged(list(played.scenario.road), at=stage.number)
        self.move = played.moves[stage.number]
        self.last = stage.number == len(played.moves) - 1
        self.refusals: list[str] = []
        self.violations: list[str] = []

    def play(self) -> Point:
        """To the move's end."""
        gate, died, known = Gate(), False, False
        server = GatedServer(self.played.root, gate)
        try:
            if self.stage.number:
                self._restore(server)
            self.model.sending()
            gate.arm(self.fault)
            self._send(server)
        except (EOFError, BrokenPipeError, ValueError):
            died = True
            if gate.fired is None:
                self.violations.append("a server died that nobody killed")
        except AssertionError as error:
            self.violations.append(f"no typed answer: {error}"[:2000])
        finally:
            (server.kill if died else server.close)()
        if died:
            known = self._take_up(gate)
        gate.close()
        return Point(gate.fired, tuple(self.refusals), (*self.violations, *self.model.violations), known)

    def _take_up(self, gate: Gate) -> bool:
        """A new process takes the session up; every second time while children of the dead one still work. Whether that was
        known already."""
        if self.fault.number % 2 or self.fault.how != "server":
            gate.close()
            user_removes_locks(self.played.root)
            if self.played.taken_up_before(self.stage.number):
                return True
        try:
            with Server(self.played.root) as server:
                if not self._restore(server) or self.stage.number:
                    self._send(server)
        except (EOFError, BrokenPipeError, ValueError):
            self.violations.append("the next server died")
        except AssertionError as error:
            self.violations.append(f"no typed answer: {error}"[:2000])
        return False

    def _restore(self, server: Server) -> bool:
        """Whether there was a session to restore."""
        for _ in range(TRIES):
            status = server.call("get_session_status")
            if status["success"]:
                self.model.restored(status)
                return True
            if status["error"] in NO_SESSION:
                if self.stage.number and not (self.last and self.model.in_flight):
                    self.violations.append("the acknowledged session is gone")
                return False
            self._refused(f"restore: {status['error']}")
        self.violations.append(f"cannot be restored: {self.refusals[-1]}")
        return False

    def _send(self, server: Server) -> None:
        for _ in range(TRIES):
            answer = self.move(server)
            if answer["success"]:
                self.model.answered(answer)
                return
            if answer["error"] == "session_active" and self._begun(answer):
                return
            self._refused(str(answer["error"]))
        self.violations.append(f"refused again and again: {self.refusals[-1]}")

    def _begun(self, answer: Fields) -> bool:
        """Whether a start that was refused had begun the session: the next one says so, and where it stands."""
        place = (str(answer.get("phase")), int(answer.get("step") or 0))
        return self.stage.number == 0 and bool(self.refusals) and place == self.played.scenario.road[1]

    def _refused(self, why: str) -> None:
        self.refusals.append(why)
        await_git(self.played.root)
        user_removes_locks(self.played.root)


def every_point(played: Played, number: int, how: str, step: int = 1, first: int = 1) -> Tally:
    """Each `step`th point of a move, from the `first` on, with a fault of this kind."""
    tally = Tally()
    for at, call in enumerate(played.calls(number), 1):
        of_use = call.who != "server" if how == "server" else call.disk or how == "caller"
        if of_use and at % step == first % step:
            point = played.play(number, Fault(at, how))
            if point.call is not None:  # one run may have a call less than the other
                tally.add(at, how, point)
    return tally


def run(out: Path, hows: Sequence[str], scenarios: Sequence[Scenario], step: int, share: tuple[int, int]) -> int:
    """Every move of the scenarios, one line each in `out`, the ones that are there left out; how many went wrong.

    `share` is which of how many processes this is."""
    done = {tuple(json.loads(line)["at"]) for line in out.read_text().splitlines()} if out.exists() else set()
    bad = 0
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as scratch:
        for scenario in scenarios:
            units = [(number, how) for how in hows for number in range(len(scenario.road) - 1)]
            mine = [unit for unit in units[share[0] :: share[1]] if (scenario.name, *unit) not in done]
            played = Played(Path(scratch) / scenario.name, scenario) if mine else None
            for number, how in mine:
                assert played is not None
                began = time.monotonic()
                tally = every_point(played, number, how, step)
                bad += len(tally.violations)
                with out.open("a") as file:
                    file.write(json.dumps(_row(scenario, number, how, tally, time.monotonic() - began)) + "\n")
    return bad


def _row(scenario: Scenario, number: int, how: str, tally: Tally, seconds: float) -> dict[str, object]:
    place, step = scenario.road[number]
    return {
        "at": [scenario.name, number, how],
        "place": f"{place} {step}",
        "killed": sum(tally.kinds.values()),
        "kinds": dict(sorted(tally.kinds.items())),
        "commands": dict(sorted(tally.commands.items())),
        "known": tally.known,
        "refusals": tally.refusals,
        "violations": tally.violations,
        "seconds": round(seconds, 1),
    }


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--how", choices=HOWS, action="append")
    parser.add_argument("--scenario", action="append")
    parser.add_argument("--every", type=int, default=1, help="only each so-manieth point")
    parser.add_argument("--share", default="0/1", help="which of how many processes this is")
    given = parser.parse_args()
    which, of = map(int, given.share.split("/"))
    chosen = [scenario for scenario in PLAYED if not given.scenario or scenario.name in given.scenario]
    bad = run(given.out, given.how or HOWS, chosen, given.every, (which, of))
    rows = [json.loads(line) for line in given.out.read_text().splitlines()]
    print(f"{sum(row['killed'] for row in rows)} faults in {len(rows)} moves, {bad} violations")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
