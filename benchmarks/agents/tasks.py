"""The tasks: laid out at the parent commit, and scored by hidden tests and by what the change obliges to."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
HOME = Path(os.environ.get("AGENTS_HOME", Path.home() / ".cache/code-intel-agents"))
FLAGS = {"quick": "-q ", "fast": "-f ", "auto": "", "full": "-g=f "}
ARMS = ("bare", "lookups", *FLAGS)


@dataclass(frozen=True, slots=True)
class Task:
    """One commit to be made again: its repository, the request, and what is hidden from the agent."""

    name: str
    repository: str
    commit: str
    request: str
    hidden_tests: list[str]
    obligations: list[dict[str, Any]]
    url: str
    tests: str
    hidden: str
    setup: list[str]


FIRST, HARDER = "tasks.toml", "hard_tasks.toml"


def load(*files: str) -> dict[str, Task]:
    """The tasks of both files, or of those that are named, by name."""
    read = [tomllib.loads((HERE / file).read_text(encoding="utf-8")) for file in files or (FIRST, HARDER)]
    return {
        row["name"]: Task(**row, **data["repositories"][row["repository"]]) for data in read for row in data["tasks"]
    }


def git(at: Path, *words: str) -> str:
    """What git prints."""
    return subprocess.run(["git", "-C", at, *words], capture_output=True, text=True, check=True).stdout


def lay_out(task: Task, arm: str, name: str, server: str) -> Path:
    """HOME/NAME/project: the parent commit without later history, its environment, and the server set up unless bare."""
    folder = HOME / name
    project = folder / "project"
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main", str(project))
    mirror = mirrored(task)
    parent = git(mirror, "rev-parse", f"{task.commit}^").strip()
    git(project, "config", "user.name", "A Developer")
    git(project, "config", "user.email", "developer@example.org")
    bring(mirror, parent, project)
    with (project / ".git/info/exclude").open("a") as exclude:
        exclude.write("/.venv\n/node_modules\n")
    equip(project, task)
    start = git(project, "rev-parse", "HEAD").strip()
    if arm != "bare":
        set_up(project, task, server, skill=arm != "lookups")
    (folder / "run.json").write_text(
        json.dumps({"task": task.name, "arm": arm, "name": name, "server": server, "start": start})
    )
    return project


def equip(project: Path, task: Task) -> None:
    """Make the environment of the tests; packages of Node.js are installed once a repository and copied."""
    packages = HOME / "node_modules" / task.repository
    if packages.exists():
        subprocess.run(["cp", "-a", packages, project / "node_modules"], check=True)
        return
    for line in task.setup:
        subprocess.run(["bash", "-c", line.format(python=sys.executable)], cwd=project, check=True)
    if (project / "node_modules").exists():
        packages.parent.mkdir(exist_ok=True)
        subprocess.run(["cp", "-a", project / "node_modules", packages], check=True)


def bring(mirror: Path, commit: str, project: Path) -> None:
    """Check a commit out with all its history, or as one commit where the stored history lacks large files."""
    try:
        git(mirror, "push", "-q", str(project), f"{commit}:refs/heads/parent")
    except subprocess.CalledProcessError:
        archive = subprocess.run(["git", "-C", mirror, "archive", commit], capture_output=True, check=True).stdout
        subprocess.run(["tar", "-x", "-C", project], input=archive, check=True)
        git(project, "add", "-A")
        git(project, "commit", "-q", "-m", git(mirror, "log", "-1", "--format=%s", commit).strip())
        return
    git(project, "reset", "-q", "--hard", "parent")
    git(project, "branch", "-q", "-D", "parent")


def mirrored(task: Task) -> Path:
    """The repository's stored copy: $AGENTS_REPOSITORIES/OWNER+NAME/repo, else cloned into HOME."""
    owner_name = task.url.removeprefix("github:")
    stored = Path(os.environ.get("AGENTS_REPOSITORIES", HOME / "repositories")) / owner_name.replace("/", "+") / "repo"
    if not stored.exists():
        git(HOME, "clone", "-q", "--bare", f"https://github.com/{owner_name}", str(stored))
    return stored


def set_up(project: Path, task: Task, server: str, *, skill: bool) -> None:
    """As a user would: init, the project's test command for the server to run, trusted and committed; skill or none."""
    subprocess.run([server, "init", str(project), "--client", "claude", "--no-proof", "--yes"], check=True)
    config = project / ".code-intel/config.json"
    settings = json.loads(config.read_text(encoding="utf-8"))
    settings["verify_commands"] = [shlex.split(task.tests)]
    config.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
    subprocess.run([server, "trust", "--yes"], cwd=project, check=True)
    if not skill:
        shutil.rmtree(project / ".claude")
    git(project, "add", "-A")
    if git(project, "status", "--porcelain"):
        git(project, "commit", "-q", "-m", "Set up code-intel")


def stamp(name: str, key: str) -> None:
    """Write down when an agent began or finished."""
    file = HOME / name / "run.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), key: time.time()}))


def score(name: str) -> dict[str, Any]:
    """Hidden tests and obligations of a finished run, and the size of its change."""
    folder = HOME / name
    project = folder / "project"
    run = json.loads((folder / "run.json").read_text())
    task = load()[run["task"]]
    own = (":!.code-intel", ":!.claude", ":!.mcp.json", ":!CLAUDE.md")
    git(project, "add", "-A", "--intent-to-add")
    changed = git(project, "diff", "--name-only", run["start"], "--", *own).split("\n")[:-1]
    size = git(project, "diff", "--shortstat", run["start"], "--", *own).strip()
    (folder / "change.diff").write_text(git(project, "diff", run["start"], "--", *own))
    met = {row["id"]: holds(project, row, set(changed)) for row in task.obligations}
    return {
        "branch": git(project, "branch", "--show-current").strip(),
        "hidden": hidden(project, task),
        "obligations": met,
        "files": len(changed),
        "diff": size,
    }


def holds(project: Path, row: dict[str, Any], changed: set[str]) -> bool:
    """Whether the tree meets an obligation (tasks.toml says how they are written)."""
    found = any(
        re.search(row["pattern"], path.read_text(encoding="utf-8"), re.MULTILINE)
        for path in project.glob(row["files"])
        if not row.get("changed") or path.relative_to(project).as_posix() in changed
    )
    return found is not row.get("absent", False)


def hidden(project: Path, task: Task) -> str:
    """Run the real commit's versions of its tests over the agent's work, in a copy: 'pass', or the end of what they print."""
    copy = project.parent / "scored"
    shutil.rmtree(copy, ignore_errors=True)
    # The environment is installed from the project's own path: so the copy is what is put aside.
    subprocess.run(["cp", "-a", project, copy], check=True)
    try:
        for path in task.hidden_tests:
            (project / path).write_text(git(mirrored(task), "show", f"{task.commit}:{path}"), encoding="utf-8")
        command = task.hidden.format(files=" ".join(task.hidden_tests))
        done = subprocess.run(["bash", "-c", command], cwd=project, capture_output=True, text=True, check=False)
        return "pass" if done.returncode == 0 else (done.stdout + done.stderr)[-1500:]
    finally:
        shutil.rmtree(project)
        copy.rename(project)
