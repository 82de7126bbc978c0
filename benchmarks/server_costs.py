"""What the server costs beside the least that is possible: start, memory, submits, a whole session, bytes a model sees.

    server_costs.py [--quick]      measures and writes server_costs.md

Compared with: a one-tool server on the same SDK (one_tool_server.py), a tool that does nothing on the same server, and the
same git commands run without our door (instrumented_server.py --bare).
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "src")]

import corpus  # noqa: E402
import measuring  # noqa: E402
from tests.e2e.driver import ENVIRONMENT, foreign_repository, git  # noqa: E402
from tests.e2e.scenario import Scenario  # noqa: E402
from wire import Client  # noqa: E402

from code_intel_server.flow.access import ACCESS  # noqa: E402

Row = list[object]
TREE_CHECKED = ("report t1", "report t2", "complete", "pass")
STRAIGHT = (
    "documents", "frame", "explore", "q1", "semantic", "q2", "verify", "q3", "impact", "plan", "report t1", "report t2",
    "complete", "pass", "commit", "quality", "merge",
)  # fmt: skip


def environment(folder: Path) -> dict[str, str]:
    """The tests' git identity and a state folder of our own."""
    return {
        **os.environ,
        **ENVIRONMENT,
        "PYTHONPATH": str(HERE.parent / "src"),
        "XDG_STATE_HOME": str(folder / "state"),
    }


# -- start and memory ------------------------------------------------------------------------------------------------


def start(folder: Path, rounds: int) -> list[Row]:
    """Spawn to answered initialize, and memory right after it and three seconds later."""
    env = environment(folder)
    sides = {
        "one tool": [sys.executable, str(HERE / "one_tool_server.py")],
        "ours": [sys.executable, "-m", "code_intel_server", "serve"],
    }
    seen: dict[str, dict[str, list[float]]] = {side: defaultdict(list) for side in sides}
    for number in range(rounds + 1):
        for side, argv in sides.items() if number % 2 else reversed(sides.items()):
            with Client(argv, folder, env) as client:
                if number == 0:
                    continue
                kept = seen[side]
                kept["wall"].append(client.started * 1e3)
                kept["cpu"].append(client.cpu_at_start * 1e3)
                kept["memory"].append(client.memory_at_start)
                kept["list"].append(measuring.timed(client.list_tools) * 1e3)
                if number <= 5:
                    time.sleep(3)
                    kept["later"].append(client.memory())
    return [
        _compared("spawn → answered initialize, wall ms", seen, "wall", 1.15),
        _compared("the same, processor ms", seen, "cpu", 1.15),
        _compared(f"tools/list right after it ({len(ACCESS)} tools beside 1), ms", seen, "list", None),
        _compared("memory at the answered initialize, MB", seen, "memory", 1.3),
        _compared("memory 3 s later, all rooms loaded, MB", seen, "later", 1.3),
    ]


def _compared(what: str, seen: dict[str, dict[str, list[float]]], key: str, limit: float | None) -> Row:
    there, ours = seen["one tool"][key], seen["ours"][key]
    share = measuring.ratio(ours, there)
    target, result = (f"≤ {limit} ×", measuring.verdict(share, limit)) if limit else ("", "")
    return [what, measuring.median(there), measuring.median(ours), f"{share:.2f} ×", target, result]


# -- submits that need no git ----------------------------------------------------------------------------------------


def submits(folder: Path, sessions: int) -> list[Row]:
    """Accepted submits before READY in investigations, each beside a call that does nothing with the same payload."""
    scenario = Scenario(foreign_repository(folder / "submits"))
    nothing: list[float] = []
    ours: list[float] = []
    disk: list[float] = []
    with Client(_instrumented(scenario.root), scenario.root, environment(folder)) as client:
        client.call("sync_index")
        client.call("semantic_search", query="warm")
        for number in range(sessions):
            timed = _Timed(client, nothing, ours, disk, folder, counts=number > 0)
            client.call("start_session", query="Join words", intent="INVESTIGATE", flags={"gate_level": "full"})
            for name, move in scenario.moves():
                if name == "plan":
                    break
                if name not in {"branches", "frame"}:
                    move(timed)  # type: ignore[arg-type]
                elif name == "frame":
                    timed.accepted(action_type="add", target_symbols=["make_str"], scope="utils", constraints="")
    assert len(ours) >= 5 * (sessions - 1), "too few submits came without a child"
    rows: list[Row] = []
    for share, limit in ((0.5, 3.0), (0.99, 6.0)):
        there, mine = measuring.quantile(nothing, share), measuring.quantile(ours, share)
        title = f"submit_phase without git, fsync included, p{share * 100:.0f} ms ({len(ours)} submits)"
        rows.append(
            [title, there, mine, f"{mine / there:.2f} ×", f"≤ {limit:.0f} ×", measuring.verdict(mine / there, limit)]
        )
    bare = measuring.quantile(disk, 0.5), measuring.quantile(disk, 0.99)
    less = measuring.median([mine - two for mine, two in zip(ours, disk, strict=True)])
    rows.append(
        ["of that two fsyncs (file, folder), done bare beside each submit: p50, p99 ms", bare[0], bare[1], "", "", ""]
    )
    share = less / measuring.median(nothing)
    rows.append(
        ["the same submits less their two fsyncs, p50 ms", measuring.median(nothing), less, f"{share:.2f} ×", "", ""]
    )
    return rows


@dataclass
class _Timed:
    """Passes calls on; times submits, and beside each a call that does nothing and two fsyncs of a checkpoint's size."""

    client: Client
    nothing: list[float]
    ours: list[float]
    disk: list[float]
    folder: Path
    counts: bool

    def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        return self.client.call(tool, **arguments)

    def accepted(self, **data: object) -> dict[str, Any]:
        payload = {"summary": "Done.", "tools_used": [], **data}
        # Both behind the same: a call right behind another finds the processor's caches warm, and a third faster.
        self._stir()
        idle = measuring.timed(lambda: self.client.call("do_nothing", data=payload))
        synced = self._stir()
        began = time.perf_counter()
        answer = self.client.accepted(**data)
        taken = time.perf_counter() - began
        if self.counts and not self.client.call("commands_run")["commands"]:
            self.nothing.append(idle * 1e3)
            self.ours.append(taken * 1e3)
            self.disk.append(synced * 1e3)
        return answer

    def _stir(self) -> float:
        """What comes before either call: one that forgets the children, and two fsyncs of our own; the seconds of these."""
        self.client.call("commands_run")
        return measuring.timed(self._durable_write)

    def _durable_write(self) -> None:
        with (self.folder / "probe.tmp").open("wb") as file:
            file.write(b"x" * 6000)
            file.flush()
            os.fsync(file.fileno())
        (self.folder / "probe.tmp").replace(self.folder / "probe")
        above = os.open(self.folder, os.O_RDONLY)
        os.fsync(above)
        os.close(above)


def _instrumented(root: Path, *options: str) -> list[str]:
    return [sys.executable, str(HERE / "instrumented_server.py"), str(root), *options]


# -- whole sessions --------------------------------------------------------------------------------------------------


@dataclass
class Trip:
    """One session as its client saw it: wall ms a move and a tool, children with their ms, bytes of structure."""

    moves: dict[str, float] = field(default_factory=dict)
    submits: dict[str, float] = field(default_factory=dict)
    children: dict[str, list[tuple[str, float]]] = field(default_factory=dict)
    tools: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    size: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def git(self, move: str) -> float:
        return sum(ms for name, ms in self.children[move] if name.startswith("git"))

    def in_git(self) -> float:
        return sum(self.git(move) for move in self.children)


class _Watched:
    """Passes calls on and notes what each cost."""

    def __init__(self, client: Client, trip: Trip) -> None:
        self.client, self.trip, self.move = client, trip, ""

    def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        began = time.perf_counter()
        answer = self.client.call(tool, **arguments)
        taken = (time.perf_counter() - began) * 1e3
        ran = [(name, seconds * 1e3) for name, seconds in self.client.call("commands_run")["commands"]]
        self.trip.moves[self.move] = self.trip.moves.get(self.move, 0.0) + taken
        if tool == "submit_phase":
            self.trip.submits[self.move] = taken
            self.trip.children[f"{self.move} submit"] = ran
        else:
            self.trip.children.setdefault(self.move, []).extend(ran)
        self.trip.tools[tool] += taken
        self.trip.size[tool] += len(json.dumps(answer, ensure_ascii=False).encode())
        return answer

    def accepted(self, **data: object) -> dict[str, Any]:
        answer = self.call("submit_phase", data={"summary": "Done.", "tools_used": [], **data})
        assert answer["success"], answer
        return answer


def trip(template: Path, folder: Path, *, bare: bool, straight: bool) -> Trip:
    """A whole session on a copy of the template, with the index open before it begins."""
    root = folder / "trip" / "repo"
    shutil.rmtree(root.parent, ignore_errors=True)
    shutil.copytree(template, root)
    git(root, "status", "--porcelain")  # the copies' stat values into git's index
    scenario = Scenario(root)
    if not straight:
        scenario.prepare()
    found = Trip()
    with Client(_instrumented(root, *(["--bare"] if bare else [])), root, environment(folder)) as client:
        client.call("sync_index")
        client.call("semantic_search", query="warm")
        client.call("find_definitions", symbol="make_str")
        client.call("commands_run")
        watched = _Watched(client, found)
        watched.move = "start"
        scenario.start(watched)  # type: ignore[arg-type]
        for name, move in scenario.moves():
            if straight and name not in STRAIGHT:
                continue
            watched.move = name
            answer = move(watched)  # type: ignore[arg-type]
        assert answer["phase"] == "SESSION_COMPLETE", answer
    return found


def sessions(folder: Path, rounds: int, files: int) -> tuple[list[Row], list[Row], list[Row]]:
    """Rows about submits with a tree check and whole sessions; where the time goes by move; bytes."""
    template = foreign_repository(folder / "template")
    corpus.make(template / "lib", files)
    git(template, "add", "-A")
    git(template, "commit", "-q", "-m", "More")
    git(template, "gc", "-q")
    ours, plain = [], []
    for number in range(rounds):
        for bare in (False, True) if number % 2 else (True, False):
            (plain if bare else ours).append(trip(template, folder, bare=bare, straight=True))
    rows: list[Row] = []
    for name in TREE_CHECKED:
        there = [one.git(f"{name} submit") for one in plain]
        mine = [one.submits[name] for one in ours]
        limit = 1.5 * measuring.median(there) + 3
        value = measuring.median(mine)
        commands = sum(command.startswith("git") for command, _ in ours[-1].children[f"{name} submit"])
        rows.append(
            [f"submit `{name}`, ms ({commands} git commands)", measuring.median(there), value,
             f"{measuring.ratio(mine, there):.2f} ×", f"≤ 1.5 × + 3 ms ({limit:.0f})", measuring.verdict(value, limit)]
        )  # fmt: skip
    whole = [sum(one.moves.values()) for one in ours]
    there = [one.in_git() for one in plain]
    share = measuring.ratio(whole, there)
    rows.append(
        [f"whole session, all gates, {files:,} files, ms", measuring.median(there), measuring.median(whole),
         f"{share:.2f} ×", "≤ 3 ×", measuring.verdict(share, 3)]
    )  # fmt: skip
    by_move: list[Row] = []
    for name in ours[0].moves:
        lists = [one.children.get(name, []) + one.children.get(f"{name} submit", []) for one in ours]
        bare_ms = [one.git(name) if name in one.children else 0.0 for one in plain]
        bare_ms = [
            extra + (one.git(f"{name} submit") if f"{name} submit" in one.children else 0.0)
            for extra, one in zip(bare_ms, plain, strict=True)
        ]
        by_move.append(
            [name, measuring.median([one.moves[name] for one in ours]), measuring.median(bare_ms),
             sum(command.startswith("git") for command, _ in lists[-1]),
             ", ".join(_counted(command for command, _ in lists[-1]))]
        )  # fmt: skip
    return rows, by_move, _sizes(template, folder, ours[0])


def _counted(names: Any) -> list[str]:
    found: dict[str, int] = defaultdict(int)
    for name in names:
        found[name.removeprefix("git ")] += 1
    return [f"{count} {name}" if count > 1 else name for name, count in found.items()]


def _sizes(template: Path, folder: Path, straight: Trip) -> list[Row]:
    """Bytes that a model sees."""
    with Client(_instrumented(template), template, environment(folder)) as client:
        seen = [
            {"name": tool["name"], "description": tool["description"], "inputSchema": tool["inputSchema"]}
            for tool in client.list_tools()
            if tool["name"] not in {"do_nothing", "commands_run"}
        ]
    listed = len(json.dumps(seen, ensure_ascii=False, separators=(",", ":")).encode())
    every = trip(template, folder, bare=False, straight=False)
    led = ("start_session", "submit_phase", "get_session_status")

    def kilobytes(one: Trip, only: tuple[str, ...] | None = None) -> float:
        return sum(size for tool, size in one.size.items() if only is None or tool in only) / 1024

    rows: list[Row] = [
        ["tools/list: names, descriptions, input schemas", listed / 1024, 20.0, measuring.verdict(listed, 20 * 1024)]
    ]
    for title, one in (
        ("all gates, nothing fails (17 submits)", straight),
        (f"all 19 steps with three failures and two reverts ({len(every.submits)} submits)", every),
    ):
        rows.append([f"session tools, {title}", kilobytes(one, led), 60.0, measuring.verdict(kilobytes(one, led), 60)])
        rows.append([f"every tool, {title}", kilobytes(one), 60.0, measuring.verdict(kilobytes(one), 60)])
    return rows


# -- the table -------------------------------------------------------------------------------------------------------


def main() -> None:
    """Measure everything and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    with tempfile.TemporaryDirectory(prefix="server-costs-") as scratch:
        folder = Path(scratch).resolve()
        (folder / "empty").mkdir()
        begun = start(folder / "empty", 5 if quick else 15)
        plain = submits(folder, 3 if quick else 30)
        checked, by_move, sizes = sessions(folder, 2 if quick else 5, 200 if quick else 1_000)
    header = ["what", "there", "ours", "ratio", "target", "result"]
    notes = HERE / "server_costs.notes.md"
    measuring.write(
        "server_costs.quick.md" if quick else "server_costs.md",
        [
            "# What the server costs",
            "",
            f"Written by `server_costs.py`. {measuring.machine('mcp', 'pydantic')} Medians; ratios are medians of the ratios of runs side by side.",
            "",
            "*There* is a one-tool server on the same SDK (start, memory), a call on the same server that does nothing (submits",
            "without git), the same git commands run by plain `subprocess.run` in the same states (tree checks, whole session).",
            "",
            *measuring.table(header, begun + plain + checked),
            "",
            "## Bytes that a model sees",
            "",
            *measuring.table(["what", "KB", "limit", "result"], sizes),
            "",
            "## Where a session's time goes",
            "",
            *measuring.table(["move", "ms, all its calls", "git bare, ms", "git commands", "which"], by_move),
            "",
            *(notes.read_text(encoding="utf-8").splitlines() if notes.exists() else []),
        ],
    )


if __name__ == "__main__":
    main()
