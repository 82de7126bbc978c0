"""Where is the cause of a report? The file that the fix changed among the first 1, 3, 5, 8 starting points, and what each part is worth.

    PYTHONPATH=src python benchmarks/localisation.py --data dev.jsonl --mirrors DIR --work DIR

--data has one report a line: {id, repo, base_commit, text, files}; --mirrors one git directory a repository, `owner+name/repo`. The
`*.py` of each base commit are laid out below --work and indexed once; a second run finds them there. Asked is what `start_session`
and `query` answer with, in this process; each part is switched off in turn. 95 % intervals are Wilson's.
"""

import argparse
import json
import math
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any

from code_intel_server.codebase.issue_report import read_report
from code_intel_server.index.code_index import CodeIndex
from code_intel_server.index.retrieval import starting_points
from code_intel_server.tools.services import ProjectServices
from code_intel_server.tools.shaping import fitting_rows, size_of

FIRST = (1, 3, 5, 8)
PARTS = {"all": "", "title with names": "_TITLE", "prose": "_PROSE", "everything": "_EVERYTHING", "frames": "_FRAME"}
PARTS |= {"paths": "_PATH", "names": "_NAMED", "names in code": "_IN_CODE", "tests behind": "_BEHIND"}
_CONFIG = '{"sync_on_start": false, "chroma": {"mode": "off"}}'


def lay_out(git: Path, revision: str, root: Path) -> None:
    """The Python files of a revision, as far as the mirror has them."""
    listing = subprocess.run(
        ["git", f"--git-dir={git}", "ls-tree", "-r", "-z", revision], capture_output=True, text=True, check=True
    )
    rows = [row.partition("\t") for row in listing.stdout.split("\0") if row.endswith(".py") and row.startswith("100")]
    for meta, _, name in rows:
        done = subprocess.run(
            ["git", f"--git-dir={git}", "cat-file", "blob", meta.split()[2]], capture_output=True, check=False
        )
        if done.returncode == 0:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(done.stdout)


def opened(issue: dict[str, Any], arguments: argparse.Namespace) -> CodeIndex:
    """The index of a report's base commit, made where there is none."""
    root = arguments.work / issue["id"]
    if not (root / ".code-intel").is_dir():
        root.mkdir(parents=True, exist_ok=True)
        lay_out(arguments.mirrors / issue["repo"].replace("/", "+") / "repo", issue["base_commit"], root)
        (root / ".code-intel").mkdir()
    (root / ".code-intel/config.json").write_text(_CONFIG)
    index = ProjectServices(root).index
    index.sync()
    return index


def wilson(hits: int, count: int, z: float = 1.96) -> str:
    """A share in percent with its interval."""
    p = hits / count
    middle, half = p + z * z / 2 / count, z * math.sqrt(p * (1 - p) / count + z * z / 4 / count / count)
    low, high = ((middle + sign * half) / (1 + z * z / count) for sign in (-1, 1))
    return f"{100 * p:.1f} ({100 * low:.0f} to {100 * high:.0f})"


def main() -> None:
    """Ask every report with each part switched off, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("data", "mirrors", "work"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    arguments = parser.parse_args()
    ranks: dict[str, list[int]] = {part: [] for part in PARTS}
    sizes, times = [], []
    for line in arguments.data.read_text().splitlines():
        issue = json.loads(line)
        index, report = opened(issue, arguments), read_report(issue["text"])
        for part, constant in PARTS.items():
            kept = getattr(starting_points, constant, None)
            if constant:
                setattr(starting_points, constant, 1.0 if part == "tests behind" else 0.0)
            began = time.perf_counter()
            found = index.starting_points(report)
            if constant:
                setattr(starting_points, constant, kept)
            else:
                times.append(time.perf_counter() - began)
                sizes.append(size_of(fitting_rows(found, starting_points.CHARACTERS).results))
            paths = [one.path for one in found]
            ranks[part].append(next((at for at, path in enumerate(paths, 1) if path in issue["files"]), 99))
        index.close()
    print("| without | " + " | ".join(f"acc@{first}" for first in FIRST) + " |\n|---" + "|---" * len(FIRST) + "|")
    for part, every in ranks.items():
        cells = (wilson(sum(rank <= first for rank in every), len(every)) for first in FIRST)
        print(f"| {'nothing: the product' if part == 'all' else part} | " + " | ".join(cells) + " |")
    print(
        f"\n{len(sizes)} reports; {statistics.median(sizes):.0f} bytes in the middle, {max(sizes)} at most; "
        f"{1e3 * statistics.median(times):.0f} ms in the middle, {1e3 * max(times):.0f} at most."
    )


if __name__ == "__main__":
    main()
