"""find_references beside jedi's answers, for 100 symbols drawn by a seed.

    python benchmarks/references_vs_jedi.py name=path/to/package ... [--symbols 100] [--seed 20261121]

Functions, classes and methods of the package's own code are drawn without replacement (dunder names left out: they are used without
being written), each package its share of the number. jedi resolves types and our answer compares names, so ours is expected to hold every line of jedi's
(recall) and more (precision, against jedi, is therefore a lower bound on what it is worth). Compared by (file, line). A
symbol of which jedi knows no use but the definition itself still counts. Where jedi fails, or takes longer than `--seconds`, the
next symbol of the draw takes its place, and the table says how often that was. Prints a Markdown table.
"""

import argparse
import ast
import random
import signal
import statistics
import time
from pathlib import Path

import jedi

from code_intel_server.codebase.answers import Page
from code_intel_server.codebase.explorer import Explorer
from code_intel_server.codebase.ignore import project_files
from code_intel_server.codebase.roles import Role, role

Place = tuple[str, int]


class TooSlowError(Exception):
    """jedi took longer than it may."""


def give_up(*_: object) -> None:
    raise TooSlowError


def defined(root: Path, paths: list[str]) -> list[tuple[str, int, int, str]]:
    """(path, line, column of the name, name) of every function, class and method."""
    found = []
    for path in paths:
        source = (root / path).read_text(encoding="utf-8", errors="replace")
        try:
            tree = ast.parse(source)
        except SyntaxError:
            continue
        lines = source.split("\n")
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.name.startswith(
                "__"
            ):
                column = lines[node.lineno - 1].find(node.name, node.col_offset)
                if column >= 0:
                    found.append((path, node.lineno, column, node.name))
    return found


def by_jedi(project: jedi.Project, root: Path, path: str, line: int, column: int, seconds: int) -> set[Place]:
    signal.alarm(seconds)
    try:
        script = jedi.Script(path=root / path, project=project)
        names = script.get_references(line, column, include_builtins=False, scope="project")
    finally:
        signal.alarm(0)
    return {
        (name.module_path.relative_to(root).as_posix(), name.line)
        for name in names
        if name.module_path and name.line and name.module_path.is_relative_to(root)
    }


def by_us(explorer: Explorer, name: str) -> set[Place]:
    return {(row.path, row.start_line) for row in explorer.find_references(name, page=Page(10_000)).results}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("packages", nargs="+", metavar="name=path")
    parser.add_argument("--symbols", type=int, default=100)
    parser.add_argument("--seed", type=int, default=20261121)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--missed", action="store_true")
    options = parser.parse_args()
    signal.signal(signal.SIGALRM, give_up)
    print(
        "| package | symbols | jedi gave none | jedi's places | found by us | recall | ours | precision against jedi | median s jedi | median s ours |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    totals = [0, 0, 0, 0, 0]
    missed: list[str] = []
    for number, package in enumerate(options.packages):
        share = (options.symbols + len(options.packages) - 1 - number) // len(options.packages)
        totals = [total + count for total, count in zip(totals, compared(package, share, options, missed), strict=True)]
    print(
        f"| **all** | {totals[0]} | {totals[1]} | {totals[2]} | {totals[3]} | {totals[3] / totals[2]:.4f} | {totals[4]} | {totals[3] / totals[4]:.3f} | | |"
    )
    if options.missed:
        print("\n".join(missed))


def compared(package: str, share: int, options: argparse.Namespace, missed: list[str]) -> list[int]:
    """The row of one package: symbols, symbols jedi gave nothing for, its places, those of them we found, our places."""
    name, _, folder = package.partition("=")
    root = Path(folder).resolve()
    explorer = Explorer(root)
    paths = [path for path in project_files(explorer.project).paths if path.endswith(".py") and role(path) is Role.CODE]
    everything = sorted(defined(root, paths))
    project = jedi.Project(root)
    counts = [0, 0, 0, 0, 0]
    jedi_seconds, our_seconds = [], []
    for path, line, column, symbol in random.Random(options.seed).sample(everything, len(everything)):
        if counts[0] == share:
            break
        started = time.perf_counter()
        try:
            theirs = by_jedi(project, root, path, line, column, options.seconds)
        except Exception as problem:  # noqa: BLE001 - jedi raises what it likes
            counts[1] += 1
            missed.append(f"jedi failed on {path}:{line} {symbol}: {type(problem).__name__}")
            continue
        middle = time.perf_counter()
        ours = by_us(explorer, symbol)
        jedi_seconds.append(middle - started)
        our_seconds.append(time.perf_counter() - middle)
        gained = (1, 0, len(theirs), len(theirs & ours), len(ours))
        counts = [count + more for count, more in zip(counts, gained, strict=True)]
        missed += [f"{symbol} ({path}:{line}): {place[0]}:{place[1]}" for place in sorted(theirs - ours)]
    row(name, counts, statistics.median(jedi_seconds), statistics.median(our_seconds))
    return counts


def row(name: str, counts: list[int], theirs: float, ours: float) -> None:
    print(
        f"| {name} | {counts[0]} | {counts[1]} | {counts[2]} | {counts[3]} | {counts[3] / counts[2]:.4f} | {counts[4]} | {counts[3] / counts[4]:.3f} | {theirs:.2f} | {ours:.2f} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
