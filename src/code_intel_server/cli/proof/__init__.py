"""Set-up's proof: a scripted session through a real server process, all the way to SESSION_COMPLETE (SPEC 12).

It works in a throw-away clone of the project (a sample repository where there is no commit to clone), on a sample file in it,
under an identity of its own, without hooks, signing and verify commands: it shows that this installation can lead a session
over these files, and changes nothing of the user's.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from code_intel_server import process
from code_intel_server.cli.proof.agent import SubmitStep, run_session
from code_intel_server.cli.proof.script import Edit, Fields, Stuck, TaskEdits
from code_intel_server.workspace.git.repository import TASK_PREFIX
from code_intel_server.workspace.paths import EXCLUDED, FOLDER

GIT_SECONDS = 300.0
_NAME = "code_intel_proof"
_FILE = "code_intel_sample.py"
_FUNCTION = f'def {_NAME}(word: str) -> str:\n    """Return the word in brackets."""\n    return f"[{{word}}]"\n'
_SAMPLE = {
    "README.md": "# Sample\n\nA repository to try code-intel on.\n",
    _FILE: 'def greet(name: str) -> str:\n    """Greet by name."""\n    return f"Hello, {name}!"\n',
}


@dataclass(frozen=True, slots=True)
class SetupProof:
    """How it ended: the last phase, the server's account, and what the session was led over."""

    phase: str
    account: str
    sample: bool
    seconds: float


class SampleWork:
    """Append one documented function to one file."""

    intent = "IMPLEMENT"
    flags: Mapping[str, bool | str] = {"gate_level": "full"}

    def __init__(self, root: Path, file: str) -> None:
        self._root = root
        self._file = file
        self.query = f"Add a small documented function {_NAME} to {file}."
        self.words: Sequence[str] = (_NAME, Path(file).stem)
        self.symbol = _NAME
        self.files: Sequence[str] = (file,)

    def tasks(self, response: Fields) -> list[Fields]:
        """One task with one item."""
        del response
        item = {"item": f"{_NAME} stands at the end of {self._file}", "status": "pending"}
        return [{"id": "t1", "description": f"Add {_NAME}", "status": "pending", "checklist": [item]}]

    def implement(self, task: Fields) -> TaskEdits:
        """The function at the end of the file, and the lines it takes."""
        before = (self._root / self._file).read_bytes().decode("utf-8")
        gap = ("" if before.endswith("\n") or not before else "\n") + ("\n\n" if before.strip() else "")
        start = (before + gap).count("\n") + 1
        lines = f"{self._file}:{start}-{start + _FUNCTION.count(chr(10)) - 1}"
        evidence = dict.fromkeys((str(item) for item in task["checklist"]), lines)
        return TaskEdits((Edit(self._file, before, before + gap + _FUNCTION),), evidence)

    def passed(self) -> bool:
        """The function is where it was put."""
        return _NAME in (self._root / self._file).read_text(encoding="utf-8")

    def issues(self) -> list[str]:
        """None."""
        return []


def prove(root: Path, tell: Callable[[str], None]) -> SetupProof:
    """Lead a session over a throw-away clone of the project at `root` and tell each step in a line.

    Raises Stuck with what the server said where it does not come to SESSION_COMPLETE, or git where it cannot clone.
    """
    import time

    began = time.monotonic()
    with _playground(root) as (project, sample):
        tell(f"a session over {'a sample repository' if sample else 'a throw-away clone'}, changing {_FILE}")
        script = run_session(
            SampleWork(project, _FILE),
            project,
            environment={"XDG_STATE_HOME": str(project.parent / "state")},
            on_step=lambda step: tell(_line(step)),
        )
        last = script.responses[-1]
        if last["phase"] != "SESSION_COMPLETE":
            raise Stuck(str(last.get("message")))
        if (
            "Merge" not in _git(project, "log", "-1", "--format=%s%n%P")
            and len(_git(project, "log", "-1", "--format=%P").split()) < 2
        ):
            raise Stuck("the session ended and no merge commit is there")
        return SetupProof(str(last["phase"]), str(last.get("instruction", "")), sample, time.monotonic() - began)


def _line(step: SubmitStep) -> str:
    mark = "ok" if step.accepted else "refused"
    tools = f"  {', '.join(dict.fromkeys(step.tools))}" if step.tools else ""
    return f"{mark:<7} {step.number:>2} {step.phase:<19} → {step.next:<19} {step.seconds:5.1f} s{tools}"


@contextmanager
def _playground(root: Path) -> Iterator[tuple[Path, bool]]:
    """A repository to change: (project, whether it is the sample); removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="code-intel-proof-")).resolve()
    try:
        top = _git(root, "rev-parse", "--show-toplevel", check=False).strip()
        has_commit = bool(_git(root, "rev-parse", "--verify", "--quiet", "HEAD^{commit}", check=False).strip())
        if top and has_commit:
            _git(folder, "clone", "--quiet", "--shared", "--no-tags", "--single-branch", "--", top, "clone")
            project = folder / "clone" / root.resolve().relative_to(Path(top).resolve())
            project.mkdir(parents=True, exist_ok=True)
        else:
            project = _sample(folder / "clone")
        _prepare(root, project)
        yield project, not (top and has_commit)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _sample(project: Path) -> Path:
    project.mkdir()
    _git(project, "init", "--quiet", "--initial-branch=main")
    for name, text in _SAMPLE.items():
        (project / name).write_text(text, encoding="utf-8")
    return project


def _prepare(root: Path, project: Path) -> None:
    """Identity, no hooks, no signing; the project's scaffold as it is now, without verify commands; a clean tree."""
    for name, value in (
        ("user.name", "code-intel proof"),
        ("user.email", "proof@code-intel.invalid"),
        ("core.hooksPath", os.devnull),
        ("commit.gpgSign", "false"),
        ("gc.auto", "0"),
    ):
        _git(project, "config", name, value)
    branch = _git(project, "rev-parse", "--abbrev-ref", "HEAD", check=False).strip()
    if branch.startswith(TASK_PREFIX):  # a session of the project's own is under way
        _git(project, "branch", "--quiet", "-M", "main")
    elif branch in {"HEAD", ""}:
        _git(project, "checkout", "--quiet", "-B", "main", check=False)
    scaffold = root / FOLDER
    if scaffold.is_dir():
        leave = shutil.ignore_patterns(*EXCLUDED, "*.tmp")
        shutil.copytree(scaffold, project / FOLDER, dirs_exist_ok=True, ignore=leave)
    else:
        (project / FOLDER).mkdir(exist_ok=True)
    (project / _FILE).write_text(_SAMPLE[_FILE], encoding="utf-8")
    _without_commands(project / FOLDER / "config.json")
    _git(project, "add", "--all", "--", ".")
    _git(project, "add", "--force", "--", _FILE)  # whatever .gitignore says
    _git(project, "commit", "--quiet", "--allow-empty", "--no-verify", "-m", "Prepare the proof")


def _without_commands(config: Path) -> None:
    """The proof is of the set-up, not of the project's tests; and it merges, whatever the project prefers."""
    try:
        content = json.loads(config.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    if isinstance(content, dict):
        config.write_text(json.dumps(content | {"verify_commands": [], "finish": "merge"}), encoding="utf-8")


def _git(folder: Path, *arguments: str, check: bool = True) -> str:
    """Git's output. Raises Stuck where it fails; with check=False '' then."""
    environment = process.clean_environment(
        {"GIT_LFS_SKIP_SMUDGE": "1", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8"}
    )
    try:
        done = process.run(["git", *arguments], cwd=folder, timeout=GIT_SECONDS, env=environment)
    except OSError as error:
        raise Stuck(f"git cannot be started: {error}") from error
    if done.returncode == 0:
        return done.stdout.decode("utf-8", "surrogateescape")
    if check:
        raise Stuck(f"git {arguments[0]}: {done.stderr.decode('utf-8', 'replace').strip()}")
    return ""
