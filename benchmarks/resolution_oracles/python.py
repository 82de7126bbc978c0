"""What jedi and basedpyright say of symbols and places of a Python project, as a truth for `benchmarks/resolution.py`.

    python benchmarks/resolution_oracles/python.py PROJECT OUT.json SEED PER_STRATUM    (basedpyright-langserver on PATH)

A line that only the other of the two tells is a use. A line on which basedpyright finds no definition at all is undecided.
"""

import ast
import io
import json
import keyword
import os
import random
import re
import signal
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import jedi

ASIDE = {"tests", "test", "docs", "examples", "benchmarks", "scripts", "docs_src"}
SECONDS = 60
MOST_ASKED = 250
Definition = tuple[str, int, int, str, str, str]
"""Path, line, column, name, owner, kind."""


class Pyright:
    """A language server for one project."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._opened: set[str] = set()
        self._number = 0
        self._process = subprocess.Popen(
            ["basedpyright-langserver", "--stdio"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        folders = [{"uri": root.as_uri(), "name": "project"}]
        wanted = {"workspace": {"configuration": True, "workspaceFolders": True}}
        self._ask(
            "initialize",
            {"processId": os.getpid(), "rootUri": root.as_uri(), "workspaceFolders": folders, "capabilities": wanted},
        )
        self._send({"method": "initialized", "params": {}})

    def places(self, what: str, path: str, line: int, column: int) -> set[tuple[str, int]]:
        """References of, or definitions for, a 1-based line and 0-based column."""
        if path not in self._opened:
            self._opened.add(path)
            text = (self.root / path).read_text(errors="replace")
            opened = {"uri": (self.root / path).as_uri(), "languageId": "python", "version": 1, "text": text}
            self._send({"method": "textDocument/didOpen", "params": {"textDocument": opened}})
        at = {"line": line - 1, "character": column}
        asked = {
            "textDocument": {"uri": (self.root / path).as_uri()},
            "position": at,
            "context": {"includeDeclaration": True},
        }
        found = self._ask(f"textDocument/{what}", asked) or []
        return {
            (
                self._inside(one.get("uri") or one["targetUri"]),
                (one.get("range") or one["targetSelectionRange"])["start"]["line"] + 1,
            )
            for one in found
        }

    def close(self) -> None:
        self._process.kill()

    def _inside(self, uri: str) -> str:
        path = Path(unquote(urlparse(uri).path))
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else str(path)

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._process.stdin.flush()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout
        size = 0
        while line := self._process.stdout.readline().strip():
            if line.lower().startswith(b"content-length"):
                size = int(line.split(b":")[1])
        return json.loads(self._process.stdout.read(size))  # type: ignore[no-any-return]

    def _ask(self, method: str, params: dict[str, Any]) -> Any:
        self._number += 1
        number = self._number
        self._send({"id": number, "method": method, "params": params})
        while True:
            message = self._read()
            if "method" in message and "id" in message:
                asked = message["params"]["items"] if message["method"] == "workspace/configuration" else []
                self._send({"id": message["id"], "result": [{} for _ in asked] or None})
            elif message.get("id") == number:
                return message.get("result")


def definitions(root: Path, paths: list[str]) -> list[Definition]:
    """Functions, classes, and what modules and classes assign or annotate; overloads and setters left out."""
    found: list[Definition] = []

    def visit(path: str, lines: list[str], node: ast.AST, owner: str, *, inside: bool) -> None:
        for child in ast.iter_child_nodes(node):
            target = None
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                marks = " ".join(map(ast.unparse, child.decorator_list))
                column = lines[child.lineno - 1].find(child.name, child.col_offset + 4)
                if not (
                    inside or child.name.startswith("__") or "overload" in marks or ".setter" in marks or column < 0
                ):
                    kind = "class" if isinstance(child, ast.ClassDef) else "function"
                    found.append((path, child.lineno, column, child.name, owner, kind))
                is_function = not isinstance(child, ast.ClassDef)
                visit(path, lines, child, f"{owner}.{child.name}".lstrip("."), inside=inside or is_function)
            elif isinstance(child, ast.AnnAssign) and isinstance(node, ast.ClassDef):
                target = child.target
            elif (
                isinstance(child, ast.Assign)
                and isinstance(node, ast.ClassDef | ast.Module)
                and len(child.targets) == 1
            ):
                target = child.targets[0]
            else:
                visit(path, lines, child, owner, inside=inside)
            if isinstance(target, ast.Name) and not inside and not target.id.startswith("__"):
                found.append((path, target.lineno, target.col_offset, target.id, owner, "variable"))

    for path in paths:
        text = (root / path).read_text(errors="replace")
        try:
            visit(path, text.split("\n"), ast.parse(text), "", inside=False)
        except SyntaxError:
            continue
    return found


def is_code(path: str) -> bool:
    *folders, name = path.split("/")
    return not ASIDE.intersection(folders) and not name.startswith(("test_", "conftest"))


def used_names(root: Path, paths: list[str], names: set[str]) -> Iterator[tuple[str, int, int, str]]:
    """Where any of the names stands and is not defined."""
    for path in filter(is_code, paths):
        before = ""
        try:
            for token in tokenize.generate_tokens(io.StringIO((root / path).read_text(errors="replace")).readline):
                is_name = token.type == tokenize.NAME and not keyword.iskeyword(token.string)
                if is_name and before not in {"def", "class"} and token.string in names:
                    yield path, token.start[0], token.start[1], token.string
                before = token.string
        except (tokenize.TokenError, IndentationError):
            continue


def by_jedi(root: Path, project: jedi.Project, one: Definition) -> set[tuple[str, int]]:
    """jedi's references, none where it fails or takes too long."""
    signal.alarm(SECONDS)
    try:
        names = jedi.Script(path=root / one[0], project=project).get_references(one[1], one[2], include_builtins=False)
        inside = [name for name in names if name.module_path and name.line and name.module_path.is_relative_to(root)]
        return {(name.module_path.relative_to(root).as_posix(), name.line) for name in inside}
    except Exception:  # noqa: BLE001 - jedi raises what it likes
        return set()
    finally:
        signal.alarm(0)


def undecided(
    root: Path, server: Pyright, paths: list[str], name: str, uses: set[tuple[str, int]]
) -> list[tuple[str, int]]:
    """Lines with the name on which the server knows nothing."""
    found, asked = [], 0
    for path in paths:
        for number, line in enumerate((root / path).read_text(errors="replace").split("\n"), 1):
            match = re.search(rf"(?<!\w){name}(?!\w)", line)
            if match and (path, number) not in uses and asked < MOST_ASKED:
                asked += 1
                if not server.places("definition", path, number, match.start()):
                    found.append((path, number))
    return found


def give_up(*_: object) -> None:
    raise TimeoutError


def main() -> None:
    root, out, seed, per = Path(sys.argv[1]).resolve(), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    signal.signal(signal.SIGALRM, give_up)
    listed = subprocess.run(["git", "-C", root, "ls-files", "*.py"], capture_output=True, text=True, check=True)
    paths = listed.stdout.split()
    every = definitions(root, paths)
    owners: dict[str, set[tuple[str, str]]] = {}
    for path, _, _, name, owner, _ in every:
        owners.setdefault(name, set()).add((path, owner))
    strata: dict[str, list[Definition]] = {"unique": [], "few": [], "common": []}
    for one in sorted(every):
        if is_code(one[0]):
            count = len(owners[one[3]])
            strata["unique" if count == 1 else "few" if count <= 5 else "common"].append(one)
    drawing, server = random.Random(seed), Pyright(root)
    project = jedi.Project(root, added_sys_path=[str(root / "src")])
    symbols = []
    for stratum, members in strata.items():
        for one in drawing.sample(members, min(per, len(members))):
            uses = server.places("references", *one[:3]) | by_jedi(root, project, one)
            unknown = undecided(root, server, paths, one[3], uses)
            fields = dict(zip(("path", "line", "column", "name", "owner", "kind"), one, strict=True))
            symbols.append({**fields, "stratum": stratum, "uses": sorted(uses), "undecided": unknown})
    places = sorted(used_names(root, paths, set(owners)))
    sites = [
        {
            "path": path,
            "line": line,
            "column": column,
            "name": name,
            "truth": sorted(server.places("definition", path, line, column)),
        }
        for path, line, column, name in drawing.sample(places, min(60, len(places)))
    ]
    server.close()
    out.write_text(
        json.dumps({"root": str(root), "exts": [".py"], "symbols": symbols, "sites": sites}), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
