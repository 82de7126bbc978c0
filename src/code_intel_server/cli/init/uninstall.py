"""`init --uninstall`: the project as it was before the first init (SPEC 12)."""

import contextlib
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from code_intel_server.cli.command import COMMAND
from code_intel_server.cli.console import Failed
from code_intel_server.cli.hook.sessions import worktrees_of
from code_intel_server.cli.init import unattended_runs
from code_intel_server.cli.init.project_files import planned_files
from code_intel_server.cli.init.scaffold import MANIFEST, Did, Done, Removal, leftovers, show_by_folder
from code_intel_server.contract import CLIENTS
from code_intel_server.workspace.files import read_regular, write_whole
from code_intel_server.workspace.git.repository import ARCHIVE, HEADS, TASK_PREFIX, Git, open_repository
from code_intel_server.workspace.paths import EXCLUDE_LIMIT, EXCLUDE_TITLE, EXCLUDED, FOLDER
from code_intel_server.workspace.project.trust import Approvals
from code_intel_server.workspace.state.key import private_folder, state_home
from code_intel_server.workspace.state.lock import ProjectLock


def uninstall(root: Path, *, dry_run: bool) -> int:
    """Take out what the manifest names and what the server wrote; what the user edited stays and is named. Raises Failed."""
    if not (root / MANIFEST).is_file():
        raise Failed(f"{root} was not set up by init (no {MANIFEST}): nothing to take out")
    opened = open_repository(root)
    git = opened if isinstance(opened, Git) else None
    _refuse_while_working(root, git)
    if not dry_run:
        Approvals().revoke(root / FOLDER / "config.json")
        unattended_runs.withdraw_from_codex(root)
    wanted = planned_files(root, CLIENTS, hooks=True, config={})
    _show(Removal(root, dry_run=dry_run).run(wanted), "would be " if dry_run else "")
    if dry_run:
        return 0
    if git is not None:
        _clean_exclude(git.at.common_dir / "info" / "exclude", git.at.prefix)
    if git is None or not _shared(git):
        shutil.rmtree(private_folder(git.at.git_dir if git else None, root), ignore_errors=True)
    print("code-intel is taken out of this project. What stays, to keep or to remove:")
    for what, how in _stays(root, git):
        print(f"  {what}: {how}")
    return 0


def _shared(git: Git) -> bool:
    """Whether our folder in git's serves others too: a project elsewhere in this worktree, or (it holds the key) other worktrees."""
    pattern = f":(top,glob)**/{MANIFEST}"
    known = git.run("ls-files", "-z", "--full-name", "--", pattern).stdout.decode("utf-8", "surrogateescape")
    others = {*filter(None, known.split("\0"))} - {git.at.prefix + MANIFEST}
    return bool(others) or (git.at.git_dir / "worktrees").is_dir()


def _stays(root: Path, git: Git | None) -> Iterator[tuple[str, str]]:
    """What is left of us on this machine: where it lies, and what takes it away."""
    if (root / FOLDER).is_dir():
        left = [*leftovers(root)]
        more = f" and {len(left) - 5} more" if left[5:] else ""
        yield f"{FOLDER}/", f"{len(left)} file(s) that you edited or added: {', '.join(left[:5])}{more}"
    if git is not None:
        yield from _stays_in_git(git)
    if state_home().exists():
        yield str(state_home()), "what you trusted, in all projects; rm -r removes it"
    yield sys.prefix, f"the program itself; {_taken_off()}"


def _stays_in_git(git: Git) -> Iterator[tuple[str, str]]:
    if git.run("ls-files", "--deleted", "-z", "--", git.at.prefix + FOLDER).stdout:
        yield "the commit of the set-up", "git status shows what is taken out of it, for you to commit"
    if branches := [name.removeprefix(HEADS) for name in git.refs(HEADS) if name.startswith(HEADS + TASK_PREFIX)]:
        yield ", ".join(branches), "branches of sessions; git branch -D removes them"
    if archived := git.refs(ARCHIVE):
        kept = f"{len(archived)} branch(es) or change(s) that sessions put away"
        yield ARCHIVE, f"{kept}; {COMMAND} trash list shows them, trash purge removes them"
    for private in dict.fromkeys(
        (private_folder(git.at.git_dir, git.at.top), private_folder(git.at.common_dir, git.at.top))
    ):
        if private.exists():
            yield str(private), "for other projects or worktrees of this repository; without any, rm -r removes it"


def _taken_off() -> str:
    """What removes the program, by how it was installed."""
    place = Path(sys.prefix)
    for pair, remover in ((("uv", "tools"), "uv tool uninstall"), (("pipx", "venvs"), "pipx uninstall")):
        if pair in pairwise(place.parts):
            return f"{remover} {COMMAND} removes it"
    if "code-intel" not in place.parts:  # an environment that may hold other programs
        return f"{shlex.quote(sys.executable)} -m pip uninstall {COMMAND} removes it"
    link = shutil.which(COMMAND)
    also = [link] if link and Path(link).is_symlink() and place in Path(link).resolve().parents else []
    return f"{shlex.join(['rm', '-r', str(place), *also])} removes it"


def _show(done: Sequence[Done], would: str) -> None:
    """One line for each file, but removed ones of one folder in one."""
    for line, one in show_by_folder(done, Did.REMOVED, would, " of ours"):
        print(line)
        if one.did in {Did.KEPT, Did.UNCLEAR}:
            print("    -> yours to decide")


def _refuse_while_working(root: Path, git: Git | None) -> None:
    owner = ProjectLock(private_folder(git.at.git_dir if git else None, root)).owner()
    if owner is not None:
        raise Failed(f"a session is running here ({owner.described()}): finish or abandon it first")
    unfinished = [*(root / FOLDER / "sessions").glob("*.json")]
    if unfinished:
        raise Failed("an interrupted session is kept here: resume it, or give it up with code-intel-server abandon")
    if made := worktrees_of(str(root)):
        named = ", ".join(made.values())
        raise Failed(f"sessions have worktrees: {named}. code-intel-server abandon or git worktree remove ends them")


def _clean_exclude(file: Path, prefix: str) -> None:
    with contextlib.suppress(OSError):
        lines = read_regular(file, EXCLUDE_LIMIT).decode("utf-8", "surrogateescape").splitlines(keepends=True)
        ours = {f"/{prefix}{FOLDER}/{name}/" for name in EXCLUDED} | {EXCLUDE_TITLE}
        kept = "".join(line for line in lines if line.rstrip("\n") not in ours)
        if kept:
            write_whole(file, kept.encode("utf-8", "surrogateescape"), 0o644)
        else:
            file.unlink()
