"""find_references beside TypeScript's own parser: every use of 150 names a package, and what each is.

    npm install typescript@5.9            (anywhere; NODE_PATH then says where)
    python benchmarks/references_vs_typescript.py name=path/to/sources ... [--names 150] [--seed 20261122] [--wrong]

Names that a file defines are drawn without replacement. Both compare names and not types, so both should hold the same
(file, line) and for each of them the same roles; of the roles those count that have one meaning in both: definition, call, import,
attribute, type. Prints a Markdown table; --wrong also every difference.
"""

import argparse
import json
import random
import re
import subprocess
from collections import defaultdict
from pathlib import Path

from code_intel_server.codebase.answers import Page
from code_intel_server.codebase.explorer import Explorer
from code_intel_server.codebase.files.ignore import project_files

Place = tuple[str, int]
Role = tuple[str, int, str]
_SOURCES = re.compile(r".*\.(?:[mc]?[jt]s|[jt]sx)")
_WORD = re.compile(r"[A-Za-z_]\w+")
_KEYWORDS = frozenset(
    [
        "abstract",
        "any",
        "as",
        "assert",
        "async",
        "await",
        "boolean",
        "break",
        "case",
        "catch",
        "class",
        "const",
        "continue",
        "default",
        "delete",
        "do",
        "else",
        "enum",
        "export",
        "extends",
        "false",
        "finally",
        "for",
        "from",
        "function",
        "get",
        "if",
        "implements",
        "import",
        "in",
        "infer",
        "instanceof",
        "is",
        "keyof",
        "let",
        "module",
        "namespace",
        "never",
        "new",
        "null",
        "number",
        "object",
        "of",
        "out",
        "override",
        "package",
        "private",
        "protected",
        "public",
        "readonly",
        "require",
        "return",
        "satisfies",
        "set",
        "static",
        "string",
        "super",
        "switch",
        "symbol",
        "this",
        "throw",
        "true",
        "try",
        "type",
        "typeof",
        "undefined",
        "unknown",
        "using",
        "var",
        "void",
        "while",
        "with",
        "yield",
    ]
)
"""They are names in places, and we tell all the others, too."""

_COUNTED = frozenset({"definition", "call", "import", "attribute", "type"})


def by_typescript(root: Path, paths: list[str]) -> dict[str, set[Role]]:
    """For each name its (path, line, role)."""
    script = Path(__file__).with_name("typescript_names.js")
    done = subprocess.run(
        ["node", str(script)], cwd=root, input="\n".join(paths), capture_output=True, text=True, check=True
    )
    found: dict[str, set[Role]] = defaultdict(set)
    for line in done.stdout.splitlines():
        file = json.loads(line)
        for number, name, role in file["names"]:
            found[name].add((file["path"], number, role))
    return found


def by_us(explorer: Explorer, name: str) -> set[Role]:
    rows = explorer.find_references(name, page=Page(10_000)).results
    return {(row.path, row.start_line, row.kind.value) for row in rows if _SOURCES.fullmatch(row.path)}


def places(roles: set[Role]) -> set[Place]:
    return {(path, line) for path, line, _ in roles}


def counted(roles: set[Role]) -> set[Role]:
    return {one for one in roles if one[2] in _COUNTED}


def compared(package: str, options: argparse.Namespace, wrong: list[str]) -> list[int]:
    """Names, TypeScript's places, ours, both; TypeScript's roles, those of them we tell."""
    root = Path(package.partition("=")[2]).resolve()
    explorer = Explorer(root)
    paths = sorted(path for path in project_files(explorer.project).paths if _SOURCES.fullmatch(path))
    theirs = by_typescript(root, paths)
    defined = sorted(
        name
        for name in theirs
        if _WORD.fullmatch(name) and name not in _KEYWORDS and any(one[2] == "definition" for one in theirs[name])
    )
    counts = [0] * 6
    for name in random.Random(options.seed).sample(defined, min(options.names, len(defined))):
        ours, wanted = by_us(explorer, name), theirs[name]
        both = places(ours) & places(wanted)
        told = counted(wanted) & ours
        gained = (1, len(places(wanted)), len(places(ours)), len(both), len(counted(wanted)), len(told))
        counts = [count + more for count, more in zip(counts, gained, strict=True)]
        wrong += [f"missing {name} {place}" for place in sorted(places(wanted) - both)]
        wrong += [f"extra {name} {place}" for place in sorted(places(ours) - both)]
        wrong += [f"role {name} {one}" for one in sorted(counted(wanted) - ours) if one[:2] in both]
    return counts


def row(name: str, counts: list[int]) -> str:
    names, theirs, ours, both, roles, told = counts
    return f"| {name} | {names} | {theirs} | {ours} | {both / theirs:.4f} | {both / ours:.4f} | {roles} | {told / roles:.4f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="+", metavar="name=path")
    parser.add_argument("--names", type=int, default=150)
    parser.add_argument("--seed", type=int, default=20261122)
    parser.add_argument("--wrong", action="store_true")
    options = parser.parse_args()
    print("| sources | names | TypeScript's places | ours | recall | precision | roles | told alike |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    totals, wrong = [0] * 6, list[str]()
    for package in options.packages:
        counts = compared(package, options, wrong)
        print(row(package.partition("=")[0], counts), flush=True)
        totals = [total + count for total, count in zip(totals, counts, strict=True)]
    print(row("**all**", totals))
    if options.wrong:
        print(*wrong, sep="\n")


if __name__ == "__main__":
    main()
