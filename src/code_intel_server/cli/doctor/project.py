"""The doctor's look at one project: repository, scaffold, its texts, trust, index, sessions."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

from code_intel_server import __version__
from code_intel_server.cli.doctor.finding import Finding, Grade, bad, good, warning
from code_intel_server.cli.hook import outside_sessions
from code_intel_server.cli.hook.sessions import worktrees_of
from code_intel_server.cli.init.proposals import without_git
from code_intel_server.cli.init.scaffold import MANIFEST, Manifest
from code_intel_server.cli.status.index_view import look_at_index
from code_intel_server.cli.status.view import read_view
from code_intel_server.common.printable import printable
from code_intel_server.errors import Unavailable
from code_intel_server.workspace.git.repository import TASK_PREFIX
from code_intel_server.workspace.paths import FOLDER, Project

_NAMED = 5


def repository(root: Path) -> Iterator[Finding]:
    """Whether sessions can make, commit and merge task branches here."""
    from code_intel_server.tools.services import ProjectServices

    services = ProjectServices(root)
    try:
        survey = services.branches(services.read_kit().config).survey()
    except Unavailable as error:
        yield bad(
            "repository", str(error.params.get("output", error)), "`git status` and `git fsck` say what is damaged"
        )
        return
    if not survey.git:
        remedy = f"{without_git(survey.blocker)}: until then only investigation and quick work"
        yield warning("repository", survey.blocker, remedy)
        return
    if survey.blocker:
        yield warning("repository", survey.blocker, "mend it before you start work that is to be committed")
    else:
        yield good("repository", f"on {printable(survey.current)}")
    if survey.identity_missing:
        yield bad(
            "git identity", "none: commits would fail", "git config user.name NAME; git config user.email ADDRESS"
        )
    if survey.dirty:
        shown = ", ".join(printable(path) for path in survey.dirty[:_NAMED])
        yield warning(
            "working tree", f"{len(survey.dirty)} uncommitted change(s): {shown}", "commit them before a session"
        )
    if left := {*survey.stale} - {TASK_PREFIX + one.session_id for one in read_view(root).sessions}:
        yield warning("task branches", f"{len(left)} left over", "/code asks about them, or: code-intel-server abandon")
    for said in survey.warnings:
        yield warning("repository", said, "until then commits or merges of a session may be refused")


def scaffold(root: Path) -> Iterator[Finding]:
    """Whether what init wrote is there, and from this version."""
    again = f"code-intel-server init {quote(str(root))}"
    if not (root / FOLDER).is_dir():
        yield bad("scaffold", f"no {FOLDER}/ here", again)
        return
    if not os.access(root / FOLDER, os.W_OK):
        yield bad(
            "scaffold", f"{FOLDER}/ cannot be written to", f"become its owner, or chmod u+w {quote(str(root / FOLDER))}"
        )
    if not (root / MANIFEST).is_file():
        yield warning("scaffold", "not written by init (no manifest)", again)
        return
    manifest = Manifest.load(root)
    missing = [path for path in manifest.files if not path.endswith(".new") and not (root / path).exists()]
    fresh = [path for path in manifest.files if path.endswith(".new") and (root / path).exists()]
    if missing:
        yield warning("scaffold", f"{len(missing)} file(s) gone: {', '.join(sorted(missing)[:_NAMED])}", again)
    if manifest.version != __version__:
        yield warning(
            "scaffold", f"written by {manifest.version or 'an unknown version'}, this is {__version__}", again
        )
    if fresh:
        contract = any(path.endswith("phase_contract.yml.new") for path in fresh)
        yield warning(
            "scaffold",
            f"new defaults beside yours: {', '.join(fresh[:_NAMED])}"
            + ("; each text that your phase_contract.yml holds is used, also one of a former version" * contract),
            "compare, merge, delete the .new file" + ("; keep only the keys that you changed in yours" * contract),
        )
    if not missing and manifest.version == __version__:
        edited = sum(_edited(root / path, digest) for path, digest in manifest.files.items())
        yield good("scaffold", f"{len(manifest.files)} files, {edited} edited by you")


def _edited(path: Path, digest: str) -> bool:
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() != digest


def texts(root: Path) -> Iterator[Finding]:
    """Whether contract, configuration, context and prompts can be read."""
    from code_intel_server.tools.services import ProjectServices

    settings = ProjectServices(root).read_kit()
    for name, problems in (
        ("phase_contract.yml", settings.contract.warnings),
        ("config.json", settings.config.warnings),
        ("context.yml", settings.context.context.warnings),
        ("prompts", settings.prompts.warnings),
    ):
        for problem in problems:
            said = printable(problem).removeprefix(f"{name} ")
            yield warning(name, said, f"mend {FOLDER}/{name}" if "." in name else f"mend it in {FOLDER}/")
    if not any(
        (
            settings.contract.warnings,
            settings.config.warnings,
            settings.context.context.warnings,
            settings.prompts.warnings,
        )
    ):
        yield good("texts", "contract, configuration, context and prompts can be read")


def trust(root: Path) -> Iterator[Finding]:
    """Whether the project's commands may run."""
    from code_intel_server.workspace.project.config import ConfigFile
    from code_intel_server.workspace.project.trust import Approvals

    config = ConfigFile.load(Project(root).config_file)
    if not config.config.verify_commands:
        yield Finding("verify commands", Grade.UNUSED, "none: verdicts are the agent's word alone")
    for name, commands in zip(("verify commands", "language servers"), config.commands, strict=True):
        if commands and Approvals().trusted(config.path, config.digest):
            yield good(name, f"{len(commands)}, trusted")
        elif commands:
            said = f"{len(commands)}, not trusted: they do not run"
            yield warning(name, said, "read them, then: code-intel-server trust")


def outside_gate(root: Path) -> Iterator[Finding]:
    """What is reported at the end of a turn that changed files outside a session."""
    mode, commands = outside_sessions.settings(str(root))
    text = outside_sessions.described(str(root))[0].removeprefix("outside sessions: ")
    if mode == "off" or not commands:
        yield Finding("outside sessions", Grade.UNUSED, text)
    else:
        yield good("outside sessions", text)


def index(root: Path) -> Iterator[Finding]:
    """The state of the index, as far as its files tell; nothing is opened for writing."""
    seen = look_at_index(root)
    if seen is not None:
        yield good("index", seen.described().removeprefix("index "))
    elif any(Project(root).cache.glob("index.sqlite3*")):
        yield warning("index", "cannot be read", "the next session sets it aside and builds it anew")
    else:
        yield warning("index", "not built yet", "the first session builds it, or: code-intel-server sync")


def sessions(root: Path) -> Iterator[Finding]:
    """Lock and checkpoints."""
    seen = read_view(root)
    if seen.owner is not None:
        yield good("lock", f"held by {printable(seen.owner.described())} since {seen.owner.since}")
    for one in seen.sessions:
        if one.live and one.root != root:
            yield good("worktree", f"session {one.session_id} runs in {one.root}")
    waiting = [one for one in seen.sessions if not one.live]
    if waiting:
        yield warning("sessions", f"{len(waiting)} interrupted", "/code --resume, or: code-intel-server abandon")
    for line in seen.unusable:
        yield warning("checkpoint", printable(line), "code-intel-server abandon removes it; work on branches stays")
    used = {str(one.root) for one in seen.sessions}
    for place in sorted({*worktrees_of(str(root)).values()} - used):
        yield warning("worktree", f"{place}: its session is over", "look what is in it, then: git worktree remove")
    if not waiting and not seen.unusable:
        yield good("sessions", "none interrupted" if seen.owner is None else "running")
