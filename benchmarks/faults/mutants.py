"""Switch off one safety device after the other and see that a test notices (issue, Shows 2).

python -m benchmarks.faults.mutants --out mutants.json
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A device, the text that makes it work, what stands there instead, and the tests that should notice."""

    device: str
    file: str
    text: str
    instead: str
    tests: str


MUTANTS = (
    Mutant("fsync", "workspace/files.py", "os.fsync(descriptor)", "None", "tests/workspace/test_checkpoints_faults.py"),
    Mutant(
        "lock",
        "common/locks.py",
        "fcntl.LOCK_EX | fcntl.LOCK_NB",
        "fcntl.LOCK_SH | fcntl.LOCK_NB",
        "tests/workspace/test_lock.py",
    ),
    Mutant(
        "archive ref",
        "workspace/git/repository.py",
        '                lines.append(b"create " + ref + b"\\0" + new)',
        '                lines += [b"create " + ref + b"\\0" + new] if b"archive" not in ref else []',
        "tests/workspace/test_trash.py tests/workspace/test_branches.py",
    ),
    Mutant(
        "compare-and-swap",
        "workspace/git/repository.py",
        'lines.append(b"update " + ref + b"\\0" + new + b"\\0" + old)',
        'lines.append(b"update " + ref + b"\\0" + new + b"\\0")',
        "tests/workspace/test_branches_merge.py tests/workspace/test_git.py",
    ),
    Mutant(
        "config scrubbing",
        "workspace/git/repository.py",
        '    "core.fsmonitor=false",\n',
        "",
        "tests/workspace/test_git.py tests/workspace/test_tree.py tests/faults/test_hostile_repository.py",
    ),
    Mutant(
        "environment scrubbing",
        "process.py",
        'if not name.startswith(("GIT_", "RIPGREP_", "CTAGS"))',
        "if not name.startswith(())",
        "tests/faults/test_hostile_repository.py",
    ),
    Mutant(
        "checkpoint key",
        "workspace/state/signature.py",
        "hmac.compare_digest(",
        "(lambda *_: True)(",
        "tests/workspace/test_checkpoints.py",
    ),
    Mutant(
        "replay",
        "flow/dispatch.py",
        "state.last_submit.digest == identity",
        "False",
        "tests/faults/test_rule_machine.py",
    ),
    Mutant(
        "plan after failure",
        "flow/handlers/ready.py",
        "    if state.place == READY_PLAN:\n        raise",
        "    if False:\n        raise",
        "tests/flow/test_ready.py tests/flow/test_submit.py tests/cheats/test_order.py",
    ),
    Mutant(
        "a killed child is no answer",
        "workspace/git/child.py",
        "if done.returncode < 0:",
        "if False:",
        "tests/workspace/test_git.py",
    ),
    Mutant(
        "folders opened without links",
        "workspace/atomic_writes.py",
        "os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC",
        "os.O_DIRECTORY | os.O_CLOEXEC",
        "tests/workspace/test_atomic_writes.py",
    ),
    Mutant(
        "a file gets its name when it is whole",
        "workspace/atomic_writes.py",
        "            files.write_all(descriptor, file.content)\n            files.sync(descriptor)\n            yield temporary\n",
        "            yield temporary\n            files.write_all(descriptor, file.content)\n            files.sync(descriptor)\n",
        "tests/workspace/test_atomic_writes.py",
    ),
    Mutant(
        "untracked stays out",
        "flow/handlers/delivery.py",
        "return sorted(path for path in paths if any(tree.exists(commit, path) for commit in commits))",
        "return sorted(paths)",
        "tests/flow/test_submit.py",
    ),
    Mutant(
        "group kill", "process.py", "os.killpg(group, number)", "os.kill(group, number)", "tests/faults/test_process.py"
    ),
)


def try_one(mutant: Mutant, scratch: Path) -> dict[str, str]:
    """Whether its tests fail on a copy of the sources with the device off."""
    copy = scratch / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir()
    for name in ("src", "tests", "templates", "docs"):
        shutil.copytree(HERE / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(HERE / "pyproject.toml", copy)
    path = copy / "src" / "code_intel_server" / mutant.file
    source = path.read_text()
    if mutant.text not in source:
        return {"device": mutant.device, "result": "the text is gone: update the mutant"}
    path.write_text(source.replace(mutant.text, mutant.instead))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not full", *mutant.tests.split()],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": "src"},
        capture_output=True,
        text=True,
        check=False,
    )
    failed = [line.split(" - ")[0] for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return {
        "device": mutant.device,
        "result": "caught" if done.returncode == 1 and failed else "survived",
        "by": failed[0].split("::", 1)[-1] if failed else "",
    }


def main() -> int:
    """Parse the command line and try them all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="*", default=[])
    given = parser.parse_args()
    rows: list[dict[str, str]] = json.loads(given.out.read_text()) if given.out.exists() else []
    done = {row["device"] for row in rows if row["result"] == "caught"}
    rows = [row for row in rows if row["device"] in done]
    with tempfile.TemporaryDirectory() as scratch:
        for mutant in MUTANTS:
            if mutant.device in done or (given.only and mutant.device not in given.only):
                continue
            rows.append(try_one(mutant, Path(scratch)))
            print(rows[-1], flush=True)
            given.out.write_text(json.dumps(rows, indent=1) + "\n")
    return 0 if all(row["result"] == "caught" for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
