"""How fast are the lookups beside the plain programs? Prints a Markdown table of medians and ratios.

    python benchmarks/lookups.py PROJECT [--rounds 7]

PROJECT is a source tree of at least 5,000 files (for the committed table: the sdists of django 5.2, sympy 1.13.3 and
sqlalchemy 2.0.40 unpacked side by side). Both sides of a row run alternately in one process on one warm page cache, so
that other load on the machine falls on both. Nothing of PROJECT but `.code-intel/cache` is written.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from code_intel_server.codebase import ctags, ripgrep
from code_intel_server.codebase.answers import Page
from code_intel_server.codebase.definitions import NameMatch
from code_intel_server.codebase.explorer import Explorer
from code_intel_server.codebase.ignore import project_files

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


def alternately(rounds: int, *sides: Callable[[], object]) -> list[float]:
    """Median seconds of each side."""
    taken: list[list[float]] = [[] for _ in sides]
    for side in sides:
        side()
    for _ in range(rounds):
        for side, times in zip(sides, taken, strict=True):
            started = time.perf_counter()
            side()
            times.append(time.perf_counter() - started)
    return [statistics.median(times) for times in taken]


def raw_ripgrep(root: Path, pattern: str) -> None:
    subprocess.run(
        [ripgrep.executable(), "--no-config", "--line-number", "-e", pattern, "--", "./"],
        cwd=root,
        capture_output=True,
        check=False,
    )


def raw_ctags(root: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [str(ctags.executable()), "--options=NONE", "-R", "-f", f"{folder}/tags", "."],
            cwd=root,
            capture_output=True,
            check=True,
        )


def cold(root: Path) -> Explorer:
    found = Explorer(root)
    shutil.rmtree(found.project.cache_dir, ignore_errors=True)
    found.cache.refresh_all()
    return found


def row(what: str, base: str, before: float, after: float, target: str) -> None:
    print(
        f"| {what} | {base} | {before * 1000:.1f} | {after * 1000:.1f} | {after / before:.3f} | {target} |", flush=True
    )


def searches(found: Explorer, root: Path, rounds: int) -> None:
    ratios = []
    for pattern in SINGLE:
        raw, ours = alternately(
            rounds,
            lambda pattern=pattern: raw_ripgrep(root, pattern),
            lambda pattern=pattern: found.search_text(pattern),
        )
        ratios.append(ours / raw)
        total = found.search_text(pattern).total
        row(f"search_text `{pattern}` ({total} lines)", "raw rg", raw, ours, "≤ 1.5")
    print(f"| search_text, median of {len(SINGLE)} patterns | raw rg | | | {statistics.median(ratios):.3f} | ≤ 1.5 |")
    apart, together = alternately(
        rounds, lambda: [found.search_text(pattern) for pattern in PATTERNS], lambda: found.search_text(PATTERNS)
    )
    row("eight patterns at once", "one after another", apart, together, "≤ 0.5")


def caches(root: Path, rounds: int, touched: str) -> Explorer:
    plain, ours = alternately(max(rounds // 2, 3), lambda: raw_ctags(root), lambda: cold(root))
    row("cold symbol cache", "ctags -R", plain, ours, "≤ 1.3")
    found = cold(root)

    def touch_and_refresh() -> None:
        os.utime(root / touched)
        found.cache.refresh([touched])

    def touch_and_refresh_all() -> None:
        os.utime(root / touched)
        found.cache.refresh_all()

    (one,) = alternately(rounds, touch_and_refresh)
    row("after touching one file: that file", "cold cache", ours, one, "≤ 0.05")
    (everything,) = alternately(rounds, touch_and_refresh_all)
    row("after touching one file: whole project compared", "cold cache", ours, everything, "≤ 0.05")
    return found


def references(found: Explorer, names: Sequence[str], rounds: int) -> None:
    """The first page beside the search alone, then the next page, whose files were read for the first."""
    for name in names:

        def anew(name: str = name) -> None:
            Explorer(found.project.root).find_references(name)

        def again(name: str = name) -> None:
            found.find_references(name, page=Page(50, 50))

        searched, first, following = alternately(
            rounds, lambda name=name: found.search_text(name, regex=False, word=True), anew, again
        )
        row(f"find_references `{name}` ({found.find_references(name).total})", "search_text", searched, first, "")
        row(f"find_references `{name}`, next page", "first page", first, following, "")


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
            f"| warm find_definitions, {title} ({len(taken)} calls) | | p50 {p50 * 1000:.2f} | p95 {p95 * 1000:.2f} | p50 of our own time {statistics.median(spent) * 1000:.2f} | p50 < 10 ms |",
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
    print("| what | beside | ms there | ms ours | ratio | target |\n|---|---|--:|--:|--:|--:|")
    found = caches(root, options.rounds, options.touch)
    searches(found, root, options.rounds)
    definitions(found, PATTERNS)
    references(found, ("get_or_create", "QuerySet", "sympify"), max(options.rounds // 2, 3))


if __name__ == "__main__":
    main()
