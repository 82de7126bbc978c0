"""`query` beside `semantic_search` on the messages of fix commits: is a file that the fix changed among the first five?

    PYTHONPATH=src python benchmarks/query_routing.py --mirrors DIR [--seed N] [--each 4] [--recent 200] REPOSITORY ...

REPOSITORY is a folder of DIR, `owner+name`, with a bare git directory or one in `repo`. Of each the seed draws commits whose subject says
fix, with a code file that is no test; the parent of the oldest of them is laid out and indexed once, and only files that it has count.
Both tools are called as outside a session, in this process; a path counts where an agent reads it, once.
"""

import argparse
import random
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from code_intel_server.codebase.files.languages import language_of
from code_intel_server.index.retrieval.starting_points import is_aside
from code_intel_server.tools import exploration
from code_intel_server.tools.current_project import CurrentProject

FIRST = 5
_LEAST_WORDS = 3
_TRAILER = re.compile(r"^[A-Z][\w-]+: .*$|\(#\d+\)|#\d+", re.MULTILINE)
_CONFIG = '{"sync_on_start": false, "chroma": {"mode": "off"}}'


def git(folder: Path, *arguments: str) -> str:
    """What git says."""
    argv = ["git", f"--git-dir={folder}", *arguments]
    return subprocess.run(argv, capture_output=True, text=True, check=True, errors="replace").stdout


def fixes(folder: Path) -> Iterator[tuple[str, str, list[str]]]:
    """Commit, message and changed source files of the newest fixes, newest first."""
    log = git(folder, "log", "-4000", "--no-merges", "-i", "--grep=fix", "--name-only", "--format=%x00%H%x01%B%x01")
    for entry in log.split("\0")[1:]:
        commit, message, files = entry.split("\1")
        subject = message.strip().partition("\n")[0]
        source = [name for name in files.split("\n") if name and language_of(name) and not is_aside(name)]
        source = [name for name in source if not name.endswith((".json", ".yml", ".yaml", ".toml", ".css", ".html"))]
        if re.search(r"\bfix", subject, re.IGNORECASE) and 0 < len(source) <= 4:
            subject, body = (_TRAILER.sub("", part).strip() for part in (subject, message.partition(subject)[2]))
            if len(subject.split()) >= _LEAST_WORDS:
                yield commit, f"{subject}\n{body}".strip(), source


def lay_out(folder: Path, revision: str, root: Path) -> None:
    """The tree of a revision, as far as the mirror has it."""
    index = {"GIT_INDEX_FILE": str(root / ".index"), "PATH": "/usr/bin:/bin:/usr/local/bin"}
    for step in (("read-tree", revision), ("checkout-index", "-a", "-q")):
        argv = ["git", f"--git-dir={folder}", f"--work-tree={root}", *step]
        subprocess.run(argv, env=index, capture_output=True, check=False, cwd=root)
    (root / ".index").unlink(missing_ok=True)


def paths(answer: Any) -> list[str]:
    """Every path of an answer in order, once."""
    found: dict[str, None] = {}
    stack = [answer]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            if isinstance(node.get("path"), str):
                found[node["path"]] = None
            stack.extend(reversed(list(node.values())))
        elif isinstance(node, list):
            stack.extend(reversed(node))
    return list(found)


def ask(folder: Path, drawn: list[tuple[str, str, list[str]]], root: Path) -> Iterator[dict[str, bool | str]]:
    """Whether each tool answers each message, and its subject alone."""
    lay_out(folder, f"{drawn[-1][0]}^", root)
    (root / ".code-intel").mkdir(exist_ok=True)
    (root / ".code-intel/config.json").write_text(_CONFIG)
    current = CurrentProject(root)
    try:
        current.services.index.sync()
        for _, message, files in drawn:
            row: dict[str, bool | str] = {"text": message}
            for kind, text in (("whole", message), ("subject", message.partition("\n")[0])):
                meant = exploration.semantic_search(current, text, 20, ".", None, "forest")
                routed = exploration.query(current, text, 20)
                row[f"semantic {kind}"] = bool(set(files) & set(paths(meant)[:FIRST]))
                row[f"query {kind}"] = bool(set(files) & set(paths(routed)[:FIRST]))
                row[f"tool {kind}"] = str(routed["tool"])
            yield row
    finally:
        current.services.close()


def main() -> None:
    """Draw, ask, count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repositories", nargs="+")
    parser.add_argument("--mirrors", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=20261123)
    parser.add_argument("--each", type=int, default=4)
    parser.add_argument("--recent", type=int, default=200, help="of so many of the newest fixes is drawn")
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    rows: list[dict[str, bool | str]] = []
    for name in arguments.repositories:
        folder = arguments.mirrors / name / "repo"
        folder = folder if folder.is_dir() else arguments.mirrors / name
        recent = [one for _, one in zip(range(arguments.recent), fixes(folder), strict=False)]
        chosen = sorted(
            random.Random(f"{arguments.seed} {name}").sample(range(len(recent)), min(arguments.each, len(recent)))
        )
        root = Path(tempfile.mkdtemp(prefix="query-routing-"))
        try:
            rows += ask(folder, [recent[at] for at in chosen], root)
        finally:
            shutil.rmtree(root, ignore_errors=True)
        print(name, len(rows), flush=True)
    for kind in ("whole", "subject"):
        counts = {tool: sum(bool(row[f"{tool} {kind}"]) for row in rows) for tool in ("semantic", "query")}
        tools = {
            tool: sum(row[f"tool {kind}"] == tool for row in rows) for tool in {row[f"tool {kind}"] for row in rows}
        }
        print(
            f"{kind}: of {len(rows)} in the first {FIRST}: semantic_search {counts['semantic']}, query {counts['query']}; {tools}"
        )
    if arguments.verbose:
        for row in rows:
            print({name: value if name != "text" else str(value)[:90] for name, value in row.items()})


if __name__ == "__main__":
    main()
