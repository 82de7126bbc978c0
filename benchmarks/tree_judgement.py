"""What judging the tree costs: a snapshot cold, warm and after one change, by number of files; and one big untracked file.

    python benchmarks/tree_judgement.py [files ...]

prints a Markdown table. The repositories are made in a temporary folder and removed.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from code_intel_server.workspace.tree.tree import TreeJudge

BIG_MEBIBYTES = 300
ROUNDS = 7


def milliseconds(act: Callable[[], object]) -> float:
    """Wall time of one call."""
    began = time.perf_counter()
    act()
    return (time.perf_counter() - began) * 1000


def make(folder: Path, files: int) -> None:
    """A committed repository of small Python files, a hundred a folder."""
    for number in range(files):
        path = folder / f"d{number // 1000}" / f"s{number // 100}" / f"f{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"x = {number}\n" * 20)
    identity = (
        "-c",
        "user.name=Bench",
        "-c",
        "user.email=bench@example.com",
        "-c",
        "gc.auto=0",
        "-c",
        "maintenance.auto=false",
    )
    for arguments in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "files")):
        subprocess.run(["git", *identity, *arguments], cwd=folder, check=True)


def row(folder: Path, files: int) -> str:
    """One line of the table."""
    judge = TreeJudge(folder)
    cold = milliseconds(judge.snapshot)
    before = judge.snapshot()
    warm = sorted(milliseconds(judge.snapshot) for _ in range(ROUNDS))
    (folder / "d0/s0/f1.py").write_text("changed\n")
    one = milliseconds(judge.snapshot)
    after = judge.snapshot()
    changes = milliseconds(lambda: judge.changes(before, after))
    return f"| {files:,} | {cold:.0f} | {warm[ROUNDS // 2]:.0f} | {warm[0]:.0f} | {one:.0f} | {changes:.0f} |"


def big_file(folder: Path) -> str:
    """What one big untracked file costs, in time and in bytes kept."""
    judge = TreeJudge(folder)
    judge.snapshot()
    kept = stored(folder)
    with (folder / "big.bin").open("wb") as file:
        for _ in range(BIG_MEBIBYTES):
            file.write(os.urandom(1 << 20))
    first, again = milliseconds(judge.snapshot), milliseconds(judge.snapshot)
    return f"{BIG_MEBIBYTES} MiB untracked: {first:.0f} ms once, {again:.0f} ms from then on; {stored(folder) - kept:,} bytes of objects kept."


def stored(folder: Path) -> int:
    """Bytes of objects, the project's and ours."""
    return sum(path.stat().st_size for path in (folder / ".git").rglob("objects/*/*") if path.is_file())


def main() -> None:
    """Measure and print."""
    print("| files | cold ms | warm ms (median) | warm ms (best) | one file changed ms | changes() ms |")
    print("|-|-|-|-|-|-|")
    with tempfile.TemporaryDirectory() as folder:
        for files in [int(word) for word in sys.argv[1:]] or [1_000, 10_000, 50_000]:
            project = Path(folder, str(files))
            project.mkdir()
            make(project, files)
            print(row(project, files), flush=True)
        print(f"\n{big_file(project)}")


if __name__ == "__main__":
    main()
