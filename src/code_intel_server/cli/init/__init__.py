"""`init`: set a project up so that `/code` works, prove it, and say what to type next (SPEC 12).

One implementation for people, for init-project.sh and for tests. In order: what is there, what is wanted, write it, trust what
was written, first index, proof, offer to commit, next steps. Nothing of the user's is destroyed on the way, and
`--uninstall` takes out exactly what was put in.
"""

import argparse
import os
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from code_intel_server import __version__
from code_intel_server.cli.command import COMMAND, how_to_install, lasting_command
from code_intel_server.cli.console import INTERRUPTED, Failed, ask, guarded, progress_bar, system_said, typed_path
from code_intel_server.cli.init import proposals, unattended_runs
from code_intel_server.cli.init.project_files import found, planned_files
from code_intel_server.cli.init.scaffold import Did, Done, Manifest, Scaffold, show_by_folder
from code_intel_server.common import globs
from code_intel_server.common.own_folder import WORKTREES
from code_intel_server.common.printable import printable
from code_intel_server.contract import CLIENTS_BY_NAME, CODEX, Client, clients_named
from code_intel_server.errors import Rejected
from code_intel_server.workspace.paths import FOLDER
from code_intel_server.workspace.project.config import ConfigFile

if TYPE_CHECKING:
    from code_intel_server.workspace.git.repository import Git

_QUIET = {Did.UNCHANGED, Did.KEPT}


def main(arguments: list[str]) -> int:
    """Set up, or with --uninstall take out; the exit status."""
    options = _parser().parse_args(arguments)
    return guarded(lambda: _uninstall(options) if options.uninstall else _init(options))


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="code-intel-server init", description="Set a project up for code-intel.")
    made.add_argument("dir", nargs="?", type=Path, default=Path(), metavar="DIR", help="the project (default: here)")
    made.add_argument(
        "--client",
        action="append",
        choices=[*CLIENTS_BY_NAME, "all"],
        help="whom to register with, repeatable (default: as before, else Claude Code, Codex and who else is found)",
    )
    made.add_argument(
        "--include", action="append", default=[], metavar="DIR", help="index only these folders (repeatable)"
    )
    made.add_argument(
        "--exclude", action="append", default=[], metavar="GLOB", help="leave these out of index and searches"
    )
    made.add_argument("--no-hooks", action="store_true", help="register no hooks with the clients")
    made.add_argument(
        "--unattended",
        action=argparse.BooleanOptionalAction,
        help="let `claude -p` write what a session may write, approve the hooks in Codex (default: as before, else no)",
    )
    made.add_argument("--no-index", action="store_true", help="leave the first index to the first session")
    made.add_argument("--no-proof", action="store_true", help="skip the scripted session that proves the set-up")
    made.add_argument("--yes", action="store_true", help="answer every question with yes")
    made.add_argument("--dry-run", action="store_true", help="say what would be written, and write nothing")
    made.add_argument("--uninstall", action="store_true", help="take out what set-up wrote")
    return made


def _init(options: argparse.Namespace) -> int:
    # Before "/ cannot be written to", which would send one for sudo.
    if options.dir.is_dir() and _holds_everything(root := options.dir.resolve()):
        raise Failed(f"{root} holds more than one project: name the folder of one, or make it a git repository first")
    root = _checked_root(options.dir)
    _no_session_under_way(root, yes=options.yes, dry_run=options.dry_run)
    print(f"code-intel {__version__}: setting up {root}")
    scaffold = Scaffold(root, dry_run=options.dry_run)
    agreed = "verify_commands" not in scaffold.manifest.options
    choices = _choices(root, options, scaffold.manifest)
    clients = _clients(root, options.client, choices)
    unattended, said_now = unattended_runs.wanted(options, scaffold.manifest, clients)
    if unattended:
        choices["unattended"] = True
    wanted = planned_files(
        root,
        clients,
        hooks=not options.no_hooks,
        config=_config(choices),
        ours=scaffold.manifest.created,
        unattended=unattended,
    )
    _tell_place(root)
    before = ConfigFile.load(root / FOLDER / "config.json")
    if options.unattended is False and not options.dry_run:
        unattended_runs.withdraw_from_codex(root)
    done = _apply(scaffold, wanted, choices)
    _show(done, dry_run=options.dry_run)
    if options.dry_run:
        return 0
    _exclude_from_git(root)
    if said_now and CODEX in clients:
        unattended_runs.approve_in_codex(root)
    written = {one.path for one in done if one.did in {Did.CREATED, Did.UPDATED}}
    _trust(root, before, written=f"{FOLDER}/config.json" in written, agreed=agreed)
    _programs(options)
    if not options.no_index:
        _index(root)
    if not options.no_proof:
        _prove(root)
    _offer_commit(root, yes=options.yes)
    unclear = [one.path for one in done if one.did is Did.UNCLEAR]
    _next_steps(clients, unclear, unattended=unattended)
    return 1 if unclear else 0


def _checked_root(given: Path) -> Path:
    if not given.is_dir():
        raise Failed(f"{given} is no folder")
    root = given.resolve()
    if (root / "HEAD").is_file() and (root / "objects").is_dir() and (root / "refs").is_dir():
        raise Failed(f"{root} is git's own folder: name the folder of the working tree (git worktree add makes one)")
    if not os.access(root, os.W_OK):
        raise Failed(f"{root} cannot be written to")
    folder = root / FOLDER
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise Failed(f"{folder} is no folder: move it away first")
    return root


def _no_session_under_way(root: Path, *, yes: bool, dry_run: bool) -> None:
    """Stop where a session is not over, unless the user wants it so: its agent would be asked about all that is written now."""
    from code_intel_server.workspace.git.repository import open_repository
    from code_intel_server.workspace.paths import Project

    git, project = open_repository(root), Project(root)
    below = "" if isinstance(git, str) else git.at.prefix
    folders = [root, *(place / below for place in (project.folder / WORKTREES).glob("*"))]
    checkpoints = [path for folder in folders for path in Project(folder).sessions.glob("*.json")]
    names = ", ".join(sorted({printable(path.stem) for path in checkpoints}))
    if names and dry_run:
        print(f"session {names} is not over: without --dry-run, init stops here and asks")
        return
    question = f"Session {names} is not over, and its agent will be asked about each file that is written now. Go on?"
    if names and not ask(question, yes=yes):
        raise Failed(
            f"session {names} is not over: its agent would be asked about each file that is written now. End it first "
            "(`/code --resume` goes on with it, `code-intel-server abandon` gives it up), or use --yes"
        )


def _holds_everything(root: Path) -> bool:
    """Whether this is a home folder or one above it, and no repository: set up by mistake, all below would be its project."""
    if (root / ".git").exists():
        return False
    try:
        home = Path.home().resolve()
    except RuntimeError:
        home = root / "?"
    return root == Path(root.anchor) or home.is_relative_to(root)


# -- what is wanted --------------------------------------------------------------------------------------------------


def _choices(root: Path, options: argparse.Namespace, manifest: Manifest) -> dict[str, Any]:
    """What config.json is to say beyond the defaults: this run's options, else those of the last run."""
    choices: dict[str, Any] = {name: value for name, value in manifest.options.items() if isinstance(value, list)}
    if options.include:
        choices["include"] = [_inside(root, folder) for folder in options.include]
    if options.exclude:
        for pattern in options.exclude:
            if not pattern.strip():
                raise Failed("--exclude: an empty pattern would leave everything out")
            if why := globs.fault(pattern):
                raise Failed(f"--exclude {pattern}: {why}")
        choices["exclude"] = options.exclude
    if "verify_commands" not in choices:
        choices["verify_commands"] = _agreed_commands(root, options)
    return choices


def _clients(root: Path, given: list[str] | None, choices: dict[str, Any]) -> tuple[Client, ...]:
    """Whom this run registers with: as it says, else those of earlier runs; `choices` then names them all."""
    known = {one for one in choices.get("clients", ()) if one in CLIENTS_BY_NAME}
    now = ({*CLIENTS_BY_NAME} if "all" in given else {*given}) if given else known or found(root)
    choices["clients"] = sorted(known | now)
    return clients_named([*now])


def _inside(root: Path, folder: str) -> str:
    path = (root / typed_path(root, folder)).resolve()
    if not path.is_dir() or not path.is_relative_to(root):
        raise Failed(f"--include {folder}: no folder of the project")
    return path.relative_to(root).as_posix()


def _agreed_commands(root: Path, options: argparse.Namespace) -> list[list[str]]:
    """The commands that prove the project and that the user wants run."""
    if (root / FOLDER / "config.json").exists():
        return []
    found, lacking = proposals.verify_commands(root)
    for one in lacking:
        print(f"  would prove changes, but not yet: {one}. Then set verify_commands in {FOLDER}/config.json")
    if not found:
        return []
    shown = ", ".join(shlex.join(command) for command in found)
    if options.dry_run:
        print(f"  would propose as verify_commands: {shown}")
        return []
    if ask(f"Shall the server prove every change with: {shown}?", yes=options.yes):
        return found
    print(f"  To have the server prove changes, set verify_commands in {FOLDER}/config.json, for example: {shown}")
    return []


def _config(choices: dict[str, Any]) -> dict[str, Any]:
    config: dict[str, Any] = {}
    if choices.get("include"):
        config["source_dirs"] = choices["include"]
    if choices.get("exclude"):
        config["exclude_patterns"] = [*_default_excludes(), *choices["exclude"]]
    if choices.get("verify_commands"):
        config["verify_commands"] = choices["verify_commands"]
    return config


def _default_excludes() -> list[str]:
    import json

    from code_intel_server.common.resources import templates_dir

    text = (templates_dir() / "code-intel" / "config.json").read_text(encoding="utf-8")
    return [str(pattern) for pattern in json.loads(text)["exclude_patterns"]]


# -- doing it --------------------------------------------------------------------------------------------------------


def _tell_place(root: Path) -> None:
    """Say so where only a part of a repository is set up: mostly the whole was meant."""
    above = next((parent for parent in root.parents if (parent / ".git").exists()), None)
    if (root / ".git").exists() or above is None:
        return
    outer = f", which has a set-up of its own in {above / FOLDER}" if (above / FOLDER).is_dir() else ""
    print(f"  only this folder of the repository {above}{outer} becomes the project")
    print(f"  (for the whole repository: code-intel-server init {shlex.quote(str(above))})")


def _apply(scaffold: Scaffold, wanted: Sequence[Any], choices: dict[str, Any]) -> list[Done]:
    """Write; the manifest knows of every file that was written, however it ends."""
    try:
        done = scaffold.apply(wanted)
        scaffold.finish(__version__, choices)
    except OSError as error:
        raise Failed(
            f"cannot write: {system_said(error)}. Run init again when it is mended; --uninstall takes out what is there."
        ) from error
    except KeyboardInterrupt:
        raise Failed(
            "interrupted. Run init again to finish; --uninstall takes out what is there.", INTERRUPTED
        ) from None
    return done


def _show(done: Sequence[Done], *, dry_run: bool) -> None:
    """One line for each file, but new ones of one folder of ours in one."""
    rest = show_by_folder(done, Did.CREATED, "would be " if dry_run else "")
    for line, one in rest:
        if one.did not in _QUIET:
            print(line)
    quiet = sum(one.did in _QUIET for one in done)
    if quiet:
        print(f"  {quiet} file(s) stay as they are")


def _exclude_from_git(root: Path) -> None:
    """What the server writes while it runs is never the user's to commit (SPEC 6.8)."""
    from code_intel_server.workspace.branches import identity_missing
    from code_intel_server.workspace.git.repository import open_repository
    from code_intel_server.workspace.paths import Project, exclude_from_git

    git = open_repository(root)
    if isinstance(git, str):
        print(f"  {git}: sessions can investigate and do quick work (-e, -q).")
        print(f"    To make the rest possible: {proposals.without_git(git)}")
        return
    exclude_from_git(Project(root), git.at.common_dir, git.at.top)
    if not git.run("rev-parse", "--verify", "--quiet", "HEAD").ok:
        print("  this repository has no commit yet: sessions that change code need one to start from")
    if identity_missing(git):
        print("  git does not know who you are, so commits will fail. To tell it:")
        print("    git config --global user.name NAME; git config --global user.email ADDRESS")


def _trust(root: Path, before: ConfigFile, *, written: bool, agreed: bool) -> None:
    """What the user has agreed to in this run may run, and what they had trusted `before` and this run wrote anew.

    Commands that came with the repository need the user's word, also those that its manifest had written into the file.
    """
    from code_intel_server.workspace.project.trust import Approvals

    approvals, file = Approvals(), ConfigFile.load(before.path)
    servers = file.config.resolution.language_servers
    known = approvals.trusted(file.path, before.digest) and file.commands == before.commands
    if written and (known or not any(file.commands) or (agreed and not servers)):
        approvals.trust(file.path)
    elif any(file.commands) and not approvals.trusted(file.path, file.digest):
        there = "" if root == Path.cwd() else f" --project {shlex.quote(str(root))}"
        what = "commands of config.json" if servers else "verify commands"
        print(f"  the {what} do not run until you have read and trusted them: {COMMAND} trust{there}")


def _programs(options: argparse.Namespace) -> None:
    """Offer Universal Ctags; everything works without it, definitions then come from tree-sitter."""
    from code_intel_server.codebase.symbols import ctags

    if ctags.ctags_program() is not None:
        return
    command = proposals.install_command("universal-ctags")
    if not command:
        print("  Universal Ctags is not installed; definitions come from tree-sitter")
        return
    question = f"Install Universal Ctags with: {shlex.join(command)}?"
    if not shutil.which(command[0]) or not ask(question, yes=options.yes and command[0] != "sudo"):
        print(
            f"  Universal Ctags is not installed; definitions come from tree-sitter. To add it: {shlex.join(command)}"
        )
        return
    from code_intel_server import process

    try:
        ended = process.run(command, cwd=Path.cwd(), timeout=600)
    except OSError as error:
        print(f"  could not be installed ({error}); going on without")
        return
    print("  Universal Ctags installed" if ended.returncode == 0 else "  could not be installed; going on without")


def _index(root: Path) -> None:
    from code_intel_server.tools.services import ProjectServices

    services = ProjectServices(root)
    try:
        with progress_bar("  index") as report:
            synced = services.index.sync(progress=report)
            services.explorer.refresh_all()
            services.index.settle(report)
    except Rejected as refused:
        if refused.key != "tool_errors.sync_index.not_owner":
            raise
        print(
            "  index: kept by a server that is open. End its client and start it again, so that it runs this version."
        )
        return
    finally:
        services.close()
    written = f"{synced.chunks} chunks written" if synced.chunks else "up to date"
    print(f"  index: {synced.files} files, {written}, {synced.seconds:.1f} s")


def _prove(root: Path) -> None:
    from code_intel_server.cli.proof import prove
    from code_intel_server.cli.proof.script import Stuck

    if shutil.which("git") is None:
        print("proof: left out, it needs git")
        return
    print("proof: a scripted session through the real server")
    try:
        proof = prove(root, lambda line: print(f"  {line}", flush=True))
    except Stuck as stuck:
        raise Failed(
            f"the proof did not come to its end: {stuck}. code-intel-server doctor looks for the reason."
        ) from stuck
    print(f"  {proof.phase} after {proof.seconds:.1f} s")


def _offer_commit(root: Path, *, yes: bool) -> None:
    from code_intel_server.workspace.branches import identity_missing
    from code_intel_server.workspace.git.child import Manner
    from code_intel_server.workspace.git.repository import TASK_PREFIX, Git, join_z, open_repository, split_z

    git = open_repository(root)
    if not isinstance(git, Git):
        return
    if (branch := git.current()).startswith(TASK_PREFIX):
        print(f"  not committed: {branch} belongs to a session. There these files are your own changes; its agent")
        print("  names them with add_explored_files and leaves them out of its commit. Or end the session first.")
        return
    manifest = Manifest.load(root)
    written = [path for path in manifest.files if not path.endswith(".new")]
    paths = [git.at.prefix + path for path in (*written, f"{FOLDER}/manifest.json")]
    ignored = set(split_z(git.run("check-ignore", "-z", "--stdin", stdin=join_z(paths)).stdout))
    tracked = [path for path in paths if path not in ignored]
    if not tracked or not git.run("status", "--porcelain", "--", *tracked).stdout:
        return
    question = f"Commit the {len(tracked)} files of the set-up?"
    shown = shlex.join(_collected(git, tracked))
    there = "" if root == Path.cwd() else f"-C {shlex.quote(str(root))} "
    # `commit -- PATHS` leaves what the user has staged of their own out of it.
    by_hand = f"git {there}add -- {shown} && git {there}commit -m 'Set up code-intel' -- {shown}"
    if identity_missing(git) or not ask(question, yes=yes):  # the lack of a name was said above
        print(f"  not committed yet. To do it: {by_hand}")
        return
    added = git.run("add", "--", *tracked, manner=Manner.USER)
    committed = git.run("commit", "--quiet", "-m", "Set up code-intel", "--", *tracked, manner=Manner.USER)
    if added.returncode or committed.returncode:
        why = printable((added if added.returncode else committed).stderr.decode("utf-8", "replace")).split()
        print(f"  not committed: {' '.join(why)[:300] or 'git refused'}")
        print(f"  Once that is mended: {by_hand}")
    else:
        print("  committed")


def _collected(git: "Git", ours: Sequence[str]) -> list[str]:
    """Our files as few words, from the project's root: a folder in their place where git would take nothing else in it."""
    prefix, tops = git.at.prefix, {path.removeprefix(git.at.prefix).split("/")[0] for path in ours}
    at_tops = [prefix + top for top in sorted(tops)]
    there = git.must("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *at_tops)
    others = {os.fsdecode(path) for path in there.split(b"\0") if path} - {*ours}
    words: dict[str, None] = {}
    for path in sorted(ours):
        outermost_first = [*reversed(Path(path).parents)][1:]
        folders = (f"{folder}/" for folder in outermost_first if str(folder).startswith(prefix) or not prefix)
        alone = next((one for one in folders if not any(other.startswith(one) for other in others)), path)
        words[alone.removeprefix(prefix)] = None
    return [*words]


def _next_steps(clients: Sequence[Client], unclear: Sequence[str], *, unattended: bool) -> None:
    if unclear:
        print(
            f"\nNot ready yet: {', '.join(unclear)} left alone, as said above. Mend it, run this again; then start your client and type:"
        )
    else:
        print("\nReady. Start your client in the project and type:")
    width = max(13, *(len(client.title) for client in clients))
    for client in clients:
        approval = f"      ({client.approval})" if client.approval else ""
        print(f"  {client.title:<{width}} {client.typed}{approval}")
    if unattended:
        print("Where nobody watches: claude -p '/code <what to do>', codex exec --trust '$code <what to do>'")
    if lasting_command() is None:
        print(f"\nThe clients start `{COMMAND}`, which is not on your PATH: {how_to_install()}")
    print("\nLook: code-intel-server status, doctor.  Remove: code-intel-server init --uninstall")


# -- taking it out ---------------------------------------------------------------------------------------------------


def _uninstall(options: argparse.Namespace) -> int:
    from code_intel_server.cli.init.uninstall import uninstall

    return uninstall(_checked_root(options.dir), dry_run=options.dry_run)
