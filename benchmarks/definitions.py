"""Definitions beside Python's own `ast`, by both engines: which one should tag Python, and is it good enough?

    python benchmarks/definitions.py name=path/to/package ...

Functions (methods among them) and classes of every file that `ast` parses are compared by (file, line, name, function or
class). Prints a Markdown table and, with --wrong, up to 20 differences of each kind.
"""

import argparse
import ast
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from code_intel_server.codebase.explorer import Explorer
from code_intel_server.codebase.files.ignore import project_files
from code_intel_server.codebase.symbols import ctags, tagging
from code_intel_server.codebase.symbols.ctags import Tag
from code_intel_server.codebase.symbols.kinds import CALLABLE

Found = set[tuple[str, int, str, str]]


def by_ast(root: Path, paths: Sequence[str]) -> tuple[Found, list[str]]:
    found: Found = set()
    parsed = []
    for path in paths:
        try:
            tree = ast.parse((root / path).read_bytes())
        except (SyntaxError, ValueError):
            continue
        parsed.append(path)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.add((path, node.lineno, node.name, "function"))
            elif isinstance(node, ast.ClassDef):
                found.add((path, node.lineno, node.name, "class"))
    return found, parsed


def row_of(path: str, tag: Tag, kind: str) -> Found:
    sort = "function" if kind in CALLABLE else kind
    return {(path, tag.start_line, tag.name, sort)} if sort in {"function", "class"} else set()


def by_ctags(root: Path, paths: Sequence[str]) -> Found:
    tagged = ctags.tag(root, paths, seconds=120)
    assert not tagged.problem, tagged.problem
    return {row for path, tags in tagged.tags.items() for tag in tags for row in row_of(path, tag, tag.kind)}


def by_tree(root: Path, paths: Sequence[str]) -> Found:
    from code_intel_server.codebase.files.languages import LANGUAGES_BY_NAME
    from code_intel_server.codebase.syntax import structure

    found: Found = set()
    for path in paths:
        for symbol in structure.outline((root / path).read_bytes(), LANGUAGES_BY_NAME["python"]).symbols:
            sort = "function" if symbol.kind.is_callable else symbol.kind.value
            if sort in {"function", "class"}:
                found.add((path, symbol.line, symbol.name, sort))
    return found


ENGINES: dict[str, Callable[[Path, Sequence[str]], Found]] = {ctags.ENGINE: by_ctags, tagging.SYNTAX_TREE: by_tree}


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("packages", nargs="+", metavar="name=path")
    parser.add_argument("--wrong", action="store_true")
    options = parser.parse_args()
    print("| package | files | ast | engine | recall | precision | seconds |\n|---|--:|--:|---|--:|--:|--:|")
    for package in options.packages:
        name, _, folder = package.partition("=")
        root = Path(folder).resolve()
        truth, paths = by_ast(
            root, [path for path in project_files(Explorer(root).project).paths if path.endswith(".py")]
        )
        for engine, find in ENGINES.items():
            started = time.perf_counter()
            found = find(root, paths)
            seconds = time.perf_counter() - started
            both = len(truth & found)
            print(
                f"| {name} | {len(paths)} | {len(truth)} | {engine} | {both / len(truth):.4f} | {both / len(found):.4f} | {seconds:.1f} |",
                flush=True,
            )
            if options.wrong:
                print("missed:", *sorted(truth - found)[:20], sep="\n  ")
                print("invented:", *sorted(found - truth)[:20], sep="\n  ")


if __name__ == "__main__":
    main()
