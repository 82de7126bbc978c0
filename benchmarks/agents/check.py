"""Whether a task measures what it says: told by the parent commit and by the real one."""

import re
import shlex
import shutil
import subprocess
import time
from typing import Any

from benchmarks.agents import tasks
from benchmarks.agents.tasks import HOME, Task


def check(task: Task) -> str:
    """Lay the parent out, then make it the real commit; one line of what was seen, 'ok' or 'NOT OK' first."""
    name = f"check-{task.name}"
    shutil.rmtree(HOME / name, ignore_errors=True)
    project = tasks.lay_out(task, "bare", name, "")
    began = time.perf_counter()
    suite = subprocess.run(shlex.split(task.tests), cwd=project, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - began
    before = tasks.score(name)
    change = tasks.git(tasks.mirrored(task), "diff", "--binary", f"{task.commit}^", task.commit)
    subprocess.run(["git", "-C", project, "apply", "-"], input=change, text=True, check=True)
    wrong = _wrong(before, tasks.score(name))
    if suite.returncode:
        wrong.append(f"the parent's own tests fail: {suite.stdout[-1500:]}{suite.stderr[-500:]}")
    shutil.rmtree(HOME / name)
    seen = "; ".join(wrong) or f"{len(task.obligations)} obligations, suite {seconds:.0f} s"
    return f"{'NOT OK' if wrong else 'ok'} {task.name}: {seen}"


def _wrong(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    wrong = [f"{key} holds on the parent" for key, held in before["obligations"].items() if held]
    wrong += [f"{key} does not hold on the commit" for key, held in after["obligations"].items() if not held]
    if before["hidden"] == "pass" or re.search("ENOENT|No such file", before["hidden"]):
        wrong.append(f"the hidden tests on the parent: {before['hidden']}")
    if after["hidden"] != "pass":
        wrong.append(f"the hidden tests on the commit: {after['hidden']}")
    return wrong
