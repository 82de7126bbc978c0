"""How fast are the lookups beside the plain programs? Prints a Markdown table of medians and ratios.

    python benchmarks/lookups.py PROJECT [--rounds 7]

PROJECT is a source tree of at least 5,000 files (for the committed table: the sdists of django 5.2, sympy 1.13.3 and
sqlalchemy 2.0.40 unpacked side by side). Both sides of a row run alternately in one process on one warm page cache, so
that other load on the machine falls on both; a ratio is the median of those round by round, by the clock and in processor
time (children included), which the load of others leaves nearly alone. Nothing of PROJECT but `.code-intel/cache` is written.
"""

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from code_intel_server.codebase.answers import Page
from code_intel_server.codebase.explorer import Explorer
from code_intel_server.codebase.files import ripgrep
from code_intel_server.codebase.files.ignore import project_files
from code_intel_server.codebase.references.finder import collect
from code_intel_server.codebase.symbols import ctags
from code_intel_server.codebase.symbols.definitions import NameMatch

PATTERNS = (
    "QuerySet",
    "get_or_create",
    "sympify",
    "relationship",
    "ForeignKey",
    "expand_mul",
    "select_related",
    "declarative_base",
)
SINGLE = ("QuerySet", r"def get_\w+", "get_or_create", r"class \w+Error", "import")


@dataclass(frozen=True)
class Taken:
    """What one side took in each round: seconds by the clock, and of the processor with the programs it ran."""

    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)


def processor_seconds() -> float:
    """Of this process and the children it waited for, user and system."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def alternately(rounds: int, *sides: Callable[[], object]) -> list[Taken]:
    """Run the sides in turn, every second round backwards, after each ran once."""
    taken = [Taken() for _ in sides]
    for side in sides:
        side()
    for number in range(rounds):
        order = list(zip(sides, taken, strict=True))
        for side, its in order if number % 2 == 0 else reversed(order):
            started, before = time.perf_counter(), processor_seconds()
            side()
            its.wall.append(time.perf_counter() - started)
            its.processor.append(processor_seconds() - before)
    return taken


def ratio(ours: list[float], theirs: list[float]) -> float:
    """The median of the ratios round by round: what ran next to each other is compared."""
    return statistics.median(mine / other for mine, other in zip(ours, theirs, strict=True))


def raw_ripgrep(root: Path, pattern: str) -> None:
    subprocess.run(
        [ripgrep.ripgrep_program(), "--no-config", "--line-number", "-e", pattern, "--", "./"],
        cwd=root,
        capture_output=True,
        check=False,
    )


def raw_ctags(root: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [str(ctags.ctags_program()), "--options=NONE", "-R", "-f", f"{folder}/tags", "."],
            cwd=root,
            capture_output=True,
            check=True,
        )


def cold(root: Path) -> Explorer:
    found = Explorer(root)
    shutil.rmtree(found.project.cache_dir, ignore_errors=True)
    found.cache.refresh_all()
    return found


def row(what: str, base: str, theirs: Taken, ours: Taken, target: str) -> None:
    wall = [f"{statistics.median(side.wall) * 1000:.1f}" for side in (theirs, ours)]
    processor = [f"{statistics.median(side.processor) * 1000:.1f}" for side in (theirs, ours)]
    ratios = ratio(ours.wall, theirs.wall), ratio(ours.processor, theirs.processor)
    print(
        f"| {what} | {base} | {' | '.join(wall)} | {ratios[0]:.3f} | {' | '.join(processor)} | {ratios[1]:.3f} | {target} |",
        flush=True,
    )


def searches(found: Explorer, root: Path, rounds: int) -> None:
    sides = []
    for pattern in SINGLE:
        raw, ours = alternately(
            rounds,
            lambda pattern=pattern: raw_ripgrep(root, pattern),
            lambda pattern=pattern: found.search_text(pattern),
        )
        sides.append((raw, ours))
        total = found.search_text(pattern).total
        row(f"search_text `{pattern}` ({total} lines)", "raw rg", raw, ours, "≤ 1.5")
    wall = statistics.median(ratio(ours.wall, raw.wall) for raw, ours in sides)
    processor = statistics.median(ratio(ours.processor, raw.processor) for raw, ours in sides)
    print(f"| search_text, median of {len(SINGLE)} patterns | raw rg | | | {wall:.3f} | | | {processor:.3f} | ≤ 1.5 |")
    apart, together = alternately(
        rounds, lambda: [found.search_text(pattern) for pattern in PATTERNS], lambda: found.search_text(PATTERNS)
    )
    row("eight patterns at once", "one after another", apart, together, "≤ 0.5")


def caches(root: Path, rounds: int, touched: str) -> Explorer:
    plain, ours = alternately(max(rounds, 5), lambda: raw_ctags(root), lambda: cold(root))
    row("cold symbol cache", "ctags -R", plain, ours, "≤ 1.3")
    found = cold(root)

    def touch_and_refresh() -> None:
        os.utime(root / touched)
        found.cache.refresh([touched])

    def touch_and_refresh_all() -> None:
        os.utime(root / touched)
        found.cache.refresh_all()

    for what, act in (("that file", touch_and_refresh), ("whole project compared", touch_and_refresh_all)):
        (touched_one,) = alternately(len(ours.wall), act)
        row(f"after touching one file: {what}", "cold cache", ours, touched_one, "≤ 0.05")
    return found


def references(found: Explorer, root: Path, names: Sequence[str], rounds: int) -> None:
    """The first page of somebody who asks for the first time beside ripgrep alone; then the next page."""
    for name in names:

        def anew(name: str = name) -> None:
            Explorer(found.project.root).find_references(name)

        def again(name: str = name) -> None:
            found.find_references(name, page=Page(50, 50))

        raw, first, following = alternately(rounds, lambda name=name: raw_ripgrep(root, name), anew, again)
        total = len(collect(found.project, (name,)).rows)
        row(f"find_references `{name}` ({total})", "raw rg", raw, first, "")
        row(f"find_references `{name}`, next page", "raw rg", raw, following, "")


def definitions(found: Explorer, names: Sequence[str]) -> None:
    for title, match in (("exact", NameMatch.EXACT), ("prefix", NameMatch.PREFIX), ("fuzzy", NameMatch.FUZZY)):
        taken, spent = [], []
        for _ in range(20):
            for name in names:
                started, before = time.perf_counter(), time.thread_time()
                found.find_definitions(name, match=match)
                taken.append(time.perf_counter() - started)
                spent.append(time.thread_time() - before)
        p50, p95 = statistics.median(taken), sorted(taken)[int(len(taken) * 0.95)]
        print(
            f"| warm find_definitions, {title} ({len(taken)} calls) | | p50 {p50 * 1000:.2f} | p95 {p95 * 1000:.2f} | | | p50 {statistics.median(spent) * 1000:.2f} | | p50 < 10 ms |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("project", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--touch", default="Django-5.2/django/db/models/query.py")
    options = parser.parse_args()
    root = options.project.resolve()
    files = len(project_files(Explorer(root).project).paths)
    print(f"{files} files, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start.\n")
    print("| what | beside | ms there | ms ours | ratio | processor ms there | ours | ratio | target |")
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|")
    found = caches(root, options.rounds, options.touch)
    searches(found, root, options.rounds)
    definitions(found, PATTERNS)
    references(found, root, ("expand_mul", "get_or_create", "QuerySet", "sympify", "symbols"), options.rounds)
    print(f"\nLoad {os.getloadavg()[0]:.1f} at the end.")


if __name__ == "__main__":
    main()
