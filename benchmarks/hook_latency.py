"""How long a client waits for the hook, against a bare interpreter, and which modules it loads; writes benchmarks/hook_latency.md.

python benchmarks/hook_latency.py [--python ENVIRONMENT/bin/python] [--runs 200]

Name the interpreter of an environment into which the wheel was installed: then its console script is measured, as the clients
start it. Every round runs each case once, so that what else the machine does meets all of them alike.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RUNS = 200
BIG = 240_000
WIDE, CHANGED, LINES = 10_000, 100, 100
FACTOR, LIMIT = 4, 100

# The project and its live session, by this process: what the tests of the hook use, from this checkout.
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from tests.cli.helpers import project, session, state  # noqa: E402
from tests.e2e.driver import git  # noqa: E402

from code_intel_server.flow.session import SessionState  # noqa: E402


@dataclass(frozen=True)
class Case:
    """A command with its standard input, and the exit status it must have."""

    name: str
    command: tuple[str, ...]
    given: bytes
    status: int = 0


def main() -> None:
    """Measure, and write the table."""
    given = argparse.ArgumentParser()
    given.add_argument("--python", type=Path, default=Path(sys.executable))
    given.add_argument("--runs", type=int, default=RUNS)
    options = given.parse_args()
    python, runs = options.python, options.runs
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = f"{folder}/state"
        with _cases(python, Path(folder)) as cases:
            tables = {"As the machine was": _measured(cases, runs)}
            with _undisturbed() as alone:
                if alone:
                    tables["Undisturbed: at real-time priority, the rest of the machine waits"] = _measured(cases, runs)
            modules = _modules(python, cases[3])
    text = _page(tables, modules, runs, (before, os.getloadavg()[0]))
    (ROOT / "benchmarks/hook_latency.md").write_text(text, encoding="utf-8")
    print(text)


@contextmanager
def _cases(python: Path, folder: Path) -> Iterator[list[Case]]:
    """Nothing, and the hook in every situation it meets."""
    idle, busy, full, left = (project(folder / name) for name in ("idle", "busy", "full", "left"))
    for root in (idle, busy, full, left):
        (root / ".code-intel").mkdir(exist_ok=True)
    padded: SessionState = state("20260201_123457", summaries={"step_05_EXPLORATION": "seen " * (BIG // 5)})
    tip = git(left, "rev-parse", "main").strip()
    wide, changed = (_wide(folder / name) for name in ("wide", "changed"))
    for number in range(CHANGED):
        (changed / f"src/p{number}/m{number}.py").write_text("x = 2\n" * LINES)
    killed = session(left, state(base="main", tip=tip), live=False)
    with session(busy, state()), session(full, padded), killed:
        hook = _hook(python)
        yield [
            Case("`python -c pass`", (str(python), "-c", "pass"), b""),
            Case("outside every project", hook, _write(folder, "app.py")),
            Case("a project without a session", hook, _write(idle, "app.py")),
            Case("a session: write allowed", hook, _write(busy, "app.py")),
            Case("a session: write refused", hook, _write(busy, "secrets/vault.py"), 2),
            Case("the same, checkpoint of 240 KB", hook, _write(full, "secrets/vault.py"), 2),
            Case("an interrupted session: write refused", hook, _write(left, "secrets/vault.py"), 2),
            Case(f"no session, {WIDE:,} files: a turn begins", hook, _turn(wide, "SessionStart")),
            Case("the same: a turn ends, nothing was changed", hook, _turn(wide, "Stop")),
            Case(f"the same: a turn ends, {CHANGED} files were changed", hook, _turn(changed, "Stop")),
        ]


def _hook(python: Path) -> tuple[str, ...]:
    script = python.with_name("code-intel-server")
    return (str(script), "hook") if script.exists() else (str(python), "-m", "code_intel_server", "hook")


def _wide(root: Path) -> Path:
    """A project of many files with verify commands."""
    files = {f"src/p{number % 200}/m{number}.py": f"x = {number}\n" * LINES for number in range(WIDE)}
    return project(root, **files, **{".code-intel/config.json": '{"verify_commands": [["pytest", "-q"]]}'})


def _turn(root: Path, name: str) -> bytes:
    return json.dumps({"hook_event_name": name, "cwd": str(root), "session_id": "one"}).encode()


def _write(root: Path, path: str) -> bytes:
    event = {"hook_event_name": "PreToolUse", "tool_name": "Write", "cwd": str(root)}
    return json.dumps({**event, "tool_input": {"file_path": path, "content": "x = 1\n" * 400}}).encode()


@dataclass
class Spent:
    """Milliseconds of every run of a case: by the clock, and of processor time (which other work on the machine changes little)."""

    clock: list[float]
    processor: list[float]


def _measured(cases: list[Case], runs: int) -> dict[str, Spent]:
    """Every case in every round; the first round is not counted."""
    took = {case.name: Spent([], []) for case in cases}
    for number in range(runs + 1):
        for case in cases:
            clock, processor = _run(case)
            if number:
                took[case.name].clock.append(clock)
                took[case.name].processor.append(processor)
    return took


def _run(case: Case) -> tuple[float, float]:
    with tempfile.TemporaryFile() as given:
        given.write(case.given)
        given.seek(0)
        began = time.perf_counter()
        child = subprocess.Popen(case.command, stdin=given, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        clock = (time.perf_counter() - began) * 1000
        child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == case.status, (case, child.returncode)
    return clock, (usage.ru_utime + usage.ru_stime) * 1000


@contextmanager
def _undisturbed() -> Iterator[bool]:
    """Children go before everything else on the machine; False where this user may not ask for that."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    except (AttributeError, PermissionError):
        yield False
        return
    try:
        yield True
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def _modules(python: Path, case: Case) -> list[tuple[str, int]]:
    """Modules that the hook loads and an empty program does not, with the microseconds of each."""
    timed = (str(python), "-X", "importtime")
    usual = {name for name, _ in _imports((*timed, "-c", "pass"), b"")}
    words = case.command[1:] if case.command[0] == str(python) else case.command
    return [row for row in _imports((*timed, *words), case.given) if row[0] not in usual]


def _imports(command: tuple[str, ...], given: bytes) -> list[tuple[str, int]]:
    done = subprocess.run(command, input=given, capture_output=True, text=False, check=False)
    rows = [line.removeprefix("import time:").split("|") for line in done.stderr.decode().splitlines() if "|" in line]
    return [(name.strip(), int(own)) for own, _, name in rows if own.strip().isdigit()]


def _page(
    tables: dict[str, dict[str, Spent]], modules: list[tuple[str, int]], runs: int, load: tuple[float, float]
) -> str:
    lines = [
        "# What a hook costs",
        "",
        f"Generated by `benchmarks/hook_latency.py`: milliseconds from start to exit, {runs} runs of each case, interleaved. Python",
        f"{sys.version.split()[0]}, two shared cores, load {load[0]:.1f} at the beginning and {load[1]:.1f} at the end. The aims: p95 under {LIMIT} ms; before a write p50 at most",
        f"{FACTOR} × an interpreter that does nothing. Processor time is what other work on the machine changes least.",
    ]
    for title, took in tables.items():
        lines += ["", f"## {title}", "", *_table(took)]
    lines += ["", "## Modules"]
    lines += [
        "",
        f"Modules that the hook loads and `python -c pass` does not: {len(modules)}, none of them from outside the standard library but its",
        "own. Microseconds each took by itself, in one run:",
        "",
        "| module | µs |",
        "|---|---|",
        *[f"| {name} | {own} |" for name, own in modules],
    ]
    return "\n".join(lines) + "\n"


def _table(took: dict[str, Spent]) -> list[str]:
    median = statistics.median
    bare = next(iter(took.values()))
    lines = [
        "| case | p50 | p95 | worst | p50 ÷ bare | processor, p50 | processor ÷ bare |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, spent in took.items():
        p95 = statistics.quantiles(spent.clock, n=20)[-1]
        p50, used = median(spent.clock), median(spent.processor)
        times = f"{p50:.0f} | {p95:.0f} | {max(spent.clock):.0f} | {p50 / median(bare.clock):.2f}"
        lines.append(f"| {name} | {times} | {used:.1f} | {used / median(bare.processor):.2f} |")
    return lines


if __name__ == "__main__":
    main()
