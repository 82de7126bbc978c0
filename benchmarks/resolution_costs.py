"""What find_references costs in one checkout beside another: cold symbol cache, first and next page, memory.

    python benchmarks/resolution_costs.py ROOT ROUNDS NAMES --python OLD/bin/python --python NEW/bin/python

Each interpreter has one of the two checkouts installed. They take turns on a copy of ROOT each: the cache is removed and
filled (where --cold), then a new process asks for the names. Medians of processor seconds (our process, without ripgrep),
seconds by the clock and megabytes.
"""

import argparse
import json
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

Figures = dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("rounds", type=int)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--python", action="append", default=[])
    parser.add_argument("--cold", action="store_true", help="fill the symbol cache before, and time that")
    options = parser.parse_args()
    if not options.python:
        print(json.dumps(probe(options.root, options.names, cold=options.cold)))
        return
    seen: dict[str, list[Figures]] = {python: [] for python in options.python}
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(len(options.python)):
            shutil.copytree(options.root, Path(scratch, str(number)), symlinks=True)
        for turn in range(options.rounds):
            for python in options.python if turn % 2 else reversed(options.python):
                copy = Path(scratch, str(options.python.index(python)))
                shutil.rmtree(copy / ".code-intel", ignore_errors=True)
                figures = asked(python, copy, ["--cold"]) if options.cold else {}
                seen[python].append(figures | asked(python, copy, options.names))
    for what in seen[options.python[0]][0]:
        old, new = (statistics.median(one[what] for one in seen[python]) for python in options.python)
        print(f"| {what} | {old:.3f} | {new:.3f} | {new / old:.2f} |")


def asked(python: str, root: Path, arguments: list[str]) -> Figures:
    """The figures of one new process."""
    argv = [python, __file__, str(root), "1", *([] if arguments[0] != "--cold" else ["-"]), *arguments]
    found: Figures = json.loads(subprocess.run(argv, check=True, capture_output=True).stdout)
    return found


def probe(root: Path, names: list[str], *, cold: bool) -> Figures:
    """What it costs here."""
    from code_intel_server.codebase.answers import Page
    from code_intel_server.codebase.explorer import Explorer

    explorer = Explorer(root, ("**/node_modules/**",))
    figures: Figures = {}

    def timed(what: str, act: Callable[[], object]) -> object:
        began, used = time.perf_counter(), time.process_time()
        done = act()
        figures[f"{what}, processor s"] = time.process_time() - used
        figures[f"{what}, s"] = time.perf_counter() - began
        return done

    if cold:
        timed("cold symbol cache", explorer.refresh_all)
    else:
        explorer.find_definitions("Nothing_of_that_name")  # opens the cache
        for name in names:
            timed(f"{name}, first page", partial(explorer.find_references, name))
            timed(f"{name}, next page", partial(explorer.find_references, name, page=Page(50, 50)))
    figures[f"memory after {'the cache' if cold else 'the pages'}, MB"] = (
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    )
    explorer.close()
    return figures


if __name__ == "__main__":
    main()
