"""find_references beside jedi's answers, for 100 symbols drawn by a seed.

    python benchmarks/references_vs_jedi.py name=path/to/package ... [--symbols 100] [--seed 20261121]

Functions, classes and methods of the package's own code are drawn without replacement (dunder names left out: they are used without
being written). jedi resolves types and our answer compares names, so ours is expected to hold every line of jedi's
(recall) and more (precision, against jedi, is therefore a lower bound on what it is worth). Compared by (file, line). A
symbol for which jedi fails, or knows no use but the definition itself, still counts. Prints a Markdown table.
"""

import argparse
import ast
import random
import statistics
import time
from pathlib import Path

import jedi

from code_intel_server.codebase.answers import Page
from code_intel_server.codebase.explorer import Explorer
from code_intel_server.codebase.ignore import project_files
from code_intel_server.codebase.roles import Role, role

Place = tuple[str, int]


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


def by_jedi(project: jedi.Project, root: Path, path: str, line: int, column: int) -> set[Place]:
    script = jedi.Script(path=root / path, project=project)
    names = script.get_references(line, column, include_builtins=False, scope="project")
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
    parser.add_argument("--missed", action="store_true")
    options = parser.parse_args()
    share = options.symbols // len(options.packages)
    print(
        "| package | symbols | jedi's places | found by us | recall | ours | precision against jedi | median s jedi | median s ours |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    totals = [0, 0, 0, 0]
    missed: list[str] = []
    for package in options.packages:
        name, _, folder = package.partition("=")
        root = Path(folder).resolve()
        explorer = Explorer(root)
        paths = [
            path for path in project_files(explorer.project).paths if path.endswith(".py") and role(path) is Role.CODE
        ]
        drawn = random.Random(options.seed).sample(sorted(defined(root, paths)), share)
        project = jedi.Project(root)
        counts, failed = [0, 0, 0], 0
        jedi_seconds, our_seconds = [], []
        for path, line, column, symbol in drawn:
            started = time.perf_counter()
            try:
                theirs = by_jedi(project, root, path, line, column)
            except Exception as problem:  # noqa: BLE001 - jedi raises what it likes
                failed += 1
                missed.append(f"jedi failed on {path}:{line} {symbol}: {type(problem).__name__}")
                continue
            middle = time.perf_counter()
            ours = by_us(explorer, symbol)
            jedi_seconds.append(middle - started)
            our_seconds.append(time.perf_counter() - middle)
            counts = [counts[0] + len(theirs), counts[1] + len(theirs & ours), counts[2] + len(ours)]
            missed += [f"{symbol} ({path}:{line}): {place[0]}:{place[1]}" for place in sorted(theirs - ours)]
        row(name, len(drawn) - failed, counts, statistics.median(jedi_seconds), statistics.median(our_seconds))
        totals = [total + count for total, count in zip(totals, [len(drawn) - failed, *counts], strict=True)]
    print(
        f"| **all** | {totals[0]} | {totals[1]} | {totals[2]} | {totals[2] / totals[1]:.4f} | {totals[3]} | {totals[2] / totals[3]:.3f} | | |"
    )
    if options.missed:
        print("\n".join(missed))


def row(name: str, symbols: int, counts: list[int], theirs: float, ours: float) -> None:
    print(
        f"| {name} | {symbols} | {counts[0]} | {counts[1]} | {counts[1] / counts[0]:.4f} | {counts[2]} | {counts[1] / counts[2]:.3f} | {theirs:.2f} | {ours:.2f} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
