"""Counts the house at several commits: lines, modules, exports, names, sizes, cycles; writes benchmarks/house.md.

python benchmarks/house.py [REVISION...]     default: the commit before 2.0's work began, and HEAD

A line of code is one that holds a token other than a comment or a docstring. A public name counts as shared where several
modules define it at their top level. A cycle is a group of modules that import each other, types included.
"""

import ast
import io
import re
import subprocess
import sys
import tarfile
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BEFORE = "4d2206c"
PACKAGE = "code_intel_server"
_BLANK = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
_ROOMS = {
    "evidence": r"/codebase/evidence|/judgement\.py",
    "tree": r"/workspace/(tree|review|status|snapshot_index|alterations|diffs)\b",
}
"""What judges the work and what looks at the tree, by their paths of before and of now."""
_WHY = """## Where the lines are

2.0 was to have at most 24,500 lines of code; it has more than before. The rows below say for what. New
with 2.0 are the resolvers and the sources beside them (`codebase/resolution`, `codebase/references`,
`codebase/external_resolution`), the runs that prove a commit (`receipts`), evidence by syntax trees
(`codebase/evidence`), sessions in worktrees and commits under hooks and filters (`workspace/branches`),
what clients' hooks report (`cli/hook`), lists of payloads and starting points (`tools/session`). What
they replaced is gone: the modules that read tests for signs of weakening, parsing and cutting in helper
processes. Still our own: editing JSON and TOML in place (`cli/init/merging.py`), globs and locks
(`common`). Four searches for what else could go (unused names, unread fields, options that nobody passes,
wrappers with one caller) found 297 lines. The rest is capabilities; where one stood against the figure,
the capability was kept."""
_Row = tuple[str, str]


def main(revisions: list[str]) -> None:
    """Write the page."""
    counted = [dict(_measured(_sources(revision))) for revision in revisions]
    names = [
        subprocess.check_output(["git", "log", "-1", "--format=%h, %as", one], cwd=ROOT, text=True).strip()
        for one in revisions
    ]
    lines = [
        "# The house, counted",
        "",
        "By `benchmarks/house.py`, from any commit: lines of code are without blanks, comments and docstrings.",
        "",
        f"| | {' | '.join(names)} |",
        f"|---|{'---|' * len(names)}",
        *(f"| {what} | {' | '.join(one.get(what, '') for one in counted)} |" for what in counted[-1]),
    ]
    rooms = _rooms(_sources(revisions[-1]))
    lines += [
        "",
        _WHY,
        "",
        f"| room of {names[-1]} | modules | lines of code |",
        "|---|---|---|",
        *(f"| {room} | {modules} | {code:,} |" for code, modules, room in rooms),
    ]
    (ROOT / "benchmarks/house.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _sources(revision: str) -> dict[str, str]:
    """The Python files of src and tests at a commit, by path."""
    archive = subprocess.check_output(["git", "archive", revision, "src", "tests"], cwd=ROOT)
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        files = [one for one in tar if one.isfile() and one.name.endswith(".py")]
        return {one.name: found.read().decode() for one in files if (found := tar.extractfile(one))}


def _measured(files: Mapping[str, str]) -> Iterator[_Row]:
    source = {path: text for path, text in files.items() if path.startswith("src/")}
    trees = {path: ast.parse(text) for path, text in source.items()}
    code = {path: _code_lines(text, trees[path]) for path, text in source.items()}
    tests = [text for path, text in files.items() if path.startswith("tests/")]
    rooms = Counter(path.rpartition("/")[0] for path in source if not path.endswith("__init__.py"))
    names = Counter(name for tree in trees.values() for name in set(_public(tree)))
    functions = sorted(_functions(trees.values()))
    yield "src, lines of code", f"{sum(code.values()):,}"
    for what, where in _ROOMS.items():
        yield f"{what}, lines of code", f"{sum(lines for path, lines in code.items() if re.search(where, path)):,}"
    yield "src, physical lines", f"{sum(text.count(chr(10)) for text in source.values()):,}"
    yield "tests, lines of code", f"{sum(_code_lines(text, ast.parse(text)) for text in tests):,}"
    yield "tests, physical lines", f"{sum(text.count(chr(10)) for text in tests):,}"
    yield "modules", f"{len(source):,}"
    yield "rooms; modules in the largest", f"{len(rooms)}; {max(rooms.values())}"
    yield "public names", f"{len(names):,}"
    yield "of them in several modules", f"{sum(count > 1 for count in names.values())}"
    yield "files of more than 400 physical lines", f"{sum(text.count(chr(10)) > 400 for text in source.values())}"
    yield "functions: median and longest, lines", f"{functions[len(functions) // 2]}, {functions[-1]}"
    yield "functions of more than 40 lines", f"{sum(length > 40 for length in functions)}"
    yield "modules in import cycles", f"{len(_in_cycles(trees))}"
    yield (
        "`noqa` and `type: ignore`",
        f"{sum(len(re.findall('# noqa|# type: ignore', one)) for one in source.values())}",
    )
    yield "monkeypatches in tests", f"{sum(len(re.findall(r'monkeypatch[.]setattr', one)) for one in tests)}"


def _rooms(files: Mapping[str, str]) -> list[tuple[int, int, str]]:
    """Lines of code, modules and name of each package, the largest first."""
    code, modules = Counter[str](), Counter[str]()
    for path, text in files.items():
        if path.startswith(f"src/{PACKAGE}/"):
            room = path.removeprefix(f"src/{PACKAGE}/").rpartition("/")[0] or "the root"
            code[room] += _code_lines(text, ast.parse(text))
            modules[room] += not path.endswith("__init__.py")
    return sorted(((lines, modules[room], room) for room, lines in code.items()), reverse=True)


def _code_lines(text: str, tree: ast.AST) -> int:
    prose: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            prose.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _BLANK:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - prose)


def _public(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node.name
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        yield from (one.id for one in targets if isinstance(one, ast.Name) and not one.id.startswith("_"))


def _functions(trees: Iterable[ast.Module]) -> Iterator[int]:
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield (node.end_lineno or node.lineno) - node.lineno + 1


def _in_cycles(trees: Mapping[str, ast.Module]) -> set[str]:
    """The modules that reach themselves by what they import at their top level, types included."""
    name_of = {path: path[4:-3].replace("/", ".").removesuffix(".__init__") for path in trees}
    known = set(name_of.values())
    graph = {name_of[path]: set(_imported(tree, known)) - {name_of[path]} for path, tree in trees.items()}
    return {start for start in graph if start in _reached(graph, start)}


def _imported(tree: ast.Module, known: set[str]) -> Iterator[str]:
    inner = [node for one in tree.body if isinstance(one, ast.If) for node in one.body]
    for node in (*tree.body, *inner):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(PACKAGE):
            for one in node.names:
                full = f"{node.module}.{one.name}"
                yield full if full in known else node.module


def _reached(graph: Mapping[str, set[str]], start: str) -> set[str]:
    seen, pending = set[str](), list(graph[start])
    while pending:
        one = pending.pop()
        if one not in seen:
            seen.add(one)
            pending += graph.get(one, ())
    return seen


if __name__ == "__main__":
    main(sys.argv[1:] or [BEFORE, "HEAD"])
