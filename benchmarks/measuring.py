"""What every benchmark here shares: interleaved rounds, medians, a line about the machine, tables in Markdown."""

import math
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent


def timed(act: Callable[[], object]) -> float:
    """Wall seconds of one call."""
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def alternately(rounds: int, *sides: Callable[[], object]) -> list[list[float]]:
    """Wall seconds of each side in each round; the sides take turns, so that other load falls on all of them alike.

    Each side runs once before that. Every second round goes backwards, so that none always follows the same other.
    """
    for side in sides:
        side()
    taken: list[list[float]] = [[] for _ in sides]
    for number in range(rounds):
        order = range(len(sides)) if number % 2 == 0 else reversed(range(len(sides)))
        for at in order:
            taken[at].append(timed(sides[at]))
    return taken


def median(values: Sequence[float]) -> float:
    """The median."""
    return statistics.median(values)


def quantile(values: Iterable[float], share: float) -> float:
    """The value below which that share of the values lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Median of the ratios round by round: what ran side by side is compared with each other."""
    return statistics.median(mine / other for mine, other in zip(ours, theirs, strict=True))


def verdict(value: float, limit: float) -> str:
    """Whether a target is met."""
    return "met" if value <= limit else "missed"


def machine(*packages: str) -> str:
    """The machine, its load, and the versions that matter, in one paragraph."""
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    found = [
        f"Python {platform.python_version()}",
        _first_line("git", "--version").removeprefix("git version ").join(("git ", "")),
    ]
    found += [f"{name} {_version(name)}" for name in packages]
    undisturbed = os.sched_getscheduler(0) in {os.SCHED_RR, os.SCHED_FIFO}
    manner = "undisturbed but for the disk: run at real-time priority" if undisturbed else "read ratios before times"
    return (
        f"{os.cpu_count()} shared cores, {platform.system()} {platform.machine()}; load average {load} while it ran (other work "
        f"on the same machine; {manner}); {', '.join(found)}."
    )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return _first_line(package, "--version") or "missing"


def _first_line(*argv: str) -> str:
    if shutil.which(argv[0]) is None:
        return ""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return (done.stdout or done.stderr).splitlines()[0].split("(")[0].split(",")[0].strip()


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """A Markdown table; cells that are floats get three significant digits."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return lines + ["| " + " | ".join(_cell(one) for one in row) + " |" for row in rows]


def _cell(value: object) -> str:
    if isinstance(value, float):
        if math.isnan(value):
            return ""
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def write(name: str, lines: Sequence[str]) -> None:
    """Print a result and keep it as benchmarks/NAME; one of a small run (NAME.quick.md) as benchmarks/out/NAME.md."""
    text = "\n".join(lines).rstrip() + "\n"
    target = HERE / "out" / name.replace(".quick", "") if ".quick" in name else HERE / name
    target.parent.mkdir(exist_ok=True)
    target.write_text(text, encoding="utf-8")
    print(text)


def environment(**extra: str) -> dict[str, str]:
    """Our environment with the package under test first on the path, wherever an installed copy lies."""
    return {**os.environ, "PYTHONPATH": str(ROOT / "src"), **extra}


def python() -> str:
    """The interpreter that runs the benchmarks."""
    return sys.executable
