"""Outline against Python's own parser: recall and precision of functions, classes and methods with their lines, and speed.

    python -m pip download --no-deps django sympy sqlalchemy   (unpack them anywhere)
    python benchmarks/definitions_vs_ast.py FOLDER...

A definition is (kind, qualified name, first line of the definition, last line). Files that Python itself cannot parse are
left out and counted. Prints one row of a Markdown table a folder.
"""

import ast
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from code_intel_server.codebase.files.languages import LANGUAGES_BY_NAME
from code_intel_server.codebase.syntax.structure import outline
from code_intel_server.codebase.syntax.values import SymbolKind

Found = tuple[str, str, int, int]
_KINDS = {SymbolKind.FUNCTION: "function", SymbolKind.METHOD: "function", SymbolKind.CLASS: "class"}


@dataclass
class Score:
    """Counts over one tree; `seconds` is the outline's time, parsing included."""

    files: int = 0
    skipped: int = 0
    expected: int = 0
    found: int = 0
    right: int = 0
    octets: int = 0
    seconds: float = 0.0

    @property
    def recall(self) -> float:
        return self.right / max(self.expected, 1)

    @property
    def precision(self) -> float:
        return self.right / max(self.found, 1)


def by_ast(source: bytes) -> set[Found]:
    """Every function and class that Python's parser sees."""

    def visit(node: ast.AST, scope: str) -> Iterator[Found]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                kind = "class" if isinstance(child, ast.ClassDef) else "function"
                name = f"{scope}.{child.name}" if scope else child.name
                yield kind, name, child.lineno, child.end_lineno or child.lineno
                yield from visit(child, name)
            else:
                yield from visit(child, scope)

    return set(visit(ast.parse(source), ""))


def by_outline(source: bytes) -> set[Found]:
    """Every function and class of our outline."""
    symbols = outline(source, LANGUAGES_BY_NAME["python"]).symbols
    return {(_KINDS[s.kind], s.qualified, s.start_line, s.end_line) for s in symbols if s.kind in _KINDS}


def score(files: Iterator[Path] | list[Path]) -> Score:
    """Compare both over all files."""
    total = Score()
    for path in files:
        source = path.read_bytes()
        try:
            expected = by_ast(source)
        except (SyntaxError, ValueError, RecursionError):
            total.skipped += 1
            continue
        started = time.perf_counter()
        found = by_outline(source)
        total.seconds += time.perf_counter() - started
        total.files += 1
        total.octets += len(source)
        total.expected += len(expected)
        total.found += len(found)
        total.right += len(expected & found)
    return total


def main() -> None:
    """Print the table."""
    print("| tree | files | definitions | recall | precision | MB/s |")
    print("|---|---:|---:|---:|---:|---:|")
    for folder in sys.argv[1:]:
        result = score(sorted(Path(folder).rglob("*.py")))
        speed = result.octets / 1e6 / max(result.seconds, 1e-9)
        print(
            f"| {Path(folder).name} | {result.files} | {result.expected} | {result.recall:.4%} | {result.precision:.4%} | {speed:.2f} |"
        )


if __name__ == "__main__":
    main()
