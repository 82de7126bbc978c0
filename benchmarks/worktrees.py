"""Worktrees of one repository: seconds to the first complete search and disk of each, beside a cold index of the same tree.

    worktrees.py [FILES] [WORKTREES]

The tree is made by corpus.py; each worktree then changes ten files, adds one and removes one. Every index is built in a
process of its own through the server's `ProjectServices`, and asked one question. What a worktree takes on disk is its own
database and what it adds to the one in the common git folder. Prints a Markdown table.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import corpus
import measuring

QUESTIONS = ("read a line from a socket", "parse a date", "tokenize source code", "compress a file", "HTTPConnection")


def first_search(root: Path) -> None:
    """Sync and ask; prints seconds, of them of the processor, chunks embedded, and what was found."""
    from code_intel_server.tools.services import ProjectServices

    (root / ".code-intel").mkdir(exist_ok=True)
    began = time.perf_counter()
    services = ProjectServices(root)
    report = services.index.sync()
    answer = services.index.search(QUESTIONS[0])
    seconds, busy = time.perf_counter() - began, sum(os.times()[:4])
    assert answer.complete and answer.hits
    found = [[(hit.path, hit.text) for hit in services.index.search(one).hits] for one in QUESTIONS]
    services.close()
    print(
        json.dumps({"seconds": seconds, "busy": busy, "chunks": report.chunks, "files": report.files, "found": found})
    )


def measured(root: Path) -> dict[str, object]:
    """One index in a process of its own, and what it takes on disk."""
    git = subprocess.run(
        ["git", "-C", str(root), "rev-parse", "--git-common-dir"], capture_output=True, text=True, check=True
    )
    shared = root / git.stdout.strip() / "code-intel"
    before = _bytes(shared)
    done = subprocess.run([sys.executable, __file__, "--one", str(root)], capture_output=True, text=True, check=True)
    grown = _bytes(shared) - before
    return json.loads(done.stdout) | {"MB": (_bytes(root / ".code-intel") + grown) / 1e6}


def _bytes(folder: Path) -> int:
    """What the databases of a folder take on disk."""
    return sum(file.stat().st_blocks * 512 for file in folder.rglob("*.sqlite3*"))


def main() -> None:
    """Build the repository, its worktrees and the table."""
    if sys.argv[1:2] == ["--one"]:
        first_search(Path(sys.argv[2]))
        return
    files, count = (int(one) for one in (*sys.argv[1:], "5000", "50")[:2]) if len(sys.argv) > 2 else (5000, 50)
    folder = Path(tempfile.mkdtemp(prefix="worktrees-"))
    root = folder / "repository"
    corpus.make(root, files)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-C", str(root)]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "corpus"]):
        subprocess.run([*git, *arguments], check=True)
    cold, begun, same = measured(root), [], 0
    names = sorted(path.relative_to(root) for path in root.rglob("*.py"))
    for number in range(count):
        other = folder / f"other{number}"
        subprocess.run([*git, "worktree", "add", "-q", "--detach", str(other)], check=True)
        for name in names[number * 12 : number * 12 + 10]:
            with (other / name).open("a") as file:
                file.write(f"\n\ndef added_in_worktree_{number}():\n    return {number}\n")
        (other / names[number * 12 + 10]).unlink()
        (other / f"new_{number}.py").write_text(f"def new_in_worktree_{number}():\n    return {number}\n")
        begun.append(measured(other))
        if number % 10 == 0:  # the same worktree from nothing
            shutil.rmtree(other / ".code-intel")
            (shared := root / ".git/code-intel").rename(folder / "kept")
            same += measured(other)["found"] == begun[-1]["found"]
            shutil.rmtree(shared)
            (folder / "kept").rename(shared)
    shutil.rmtree(folder)
    rows = [("files", 0), ("chunks", 0), ("seconds", 2), ("busy", 2), ("MB", 1)]
    print(f"{measuring.machine('numpy')}\n\n| | cold | {count} worktrees, median (most) | share |\n|---|---|---|---|")
    for name, digits in rows:
        values = [float(one[name]) for one in begun]
        middle = statistics.median(values)
        share = f"{middle / float(cold[name]):.3f}"
        print(f"| {name} | {float(cold[name]):.{digits}f} | {middle:.{digits}f} ({max(values):.{digits}f}) | {share} |")
    print(
        f"\nAnswers to {len(QUESTIONS)} questions the same as from a cold index: {same} of {len(range(0, count, 10))} worktrees."
    )


if __name__ == "__main__":
    main()
