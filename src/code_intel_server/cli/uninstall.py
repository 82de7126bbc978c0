"""`init --uninstall`: the project as it was before the first init (SPEC 12)."""

import contextlib
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from code_intel_server.cli.console import Failed
from code_intel_server.cli.scaffold import MANIFEST, Did, Done, Removal, leftovers
from code_intel_server.cli.wanted import Clients, wanted_files
from code_intel_server.workspace.files import read_regular, write_whole
from code_intel_server.workspace.git import ARCHIVE, Git, open_repository
from code_intel_server.workspace.key import private_folder
from code_intel_server.workspace.lock import ProjectLock
from code_intel_server.workspace.paths import EXCLUDED, FOLDER
from code_intel_server.workspace.trust import Approvals

_EXCLUDE_TITLE = "# written by code-intel-server while it runs"
_EXCLUDE_LIMIT = 1 << 20


def uninstall(root: Path, *, dry_run: bool) -> int:
    """Take out what the manifest names and what the server wrote; what the user edited stays and is named. Raises Failed."""
    if not (root / MANIFEST).is_file():
        raise Failed(f"{root} was not set up by init (no {MANIFEST}): nothing to take out")
    opened = open_repository(root)
    git = opened if isinstance(opened, Git) else None
    _refuse_while_working(root, git)
    if not dry_run:
        Approvals().revoke(root / FOLDER / "config.json")
    wanted = wanted_files(root, Clients.ALL, hooks=True, config={})
    _show(Removal(root, dry_run=dry_run).run(wanted), "would be " if dry_run else "")
    if dry_run:
        return 0
    _forget_private(root, git)
    left = [*leftovers(root)] if (root / FOLDER).is_dir() else []
    if left:
        print(f"  {len(left)} file(s) you edited or added stay under {FOLDER}/: {', '.join(left[:5])}")
    print("code-intel is taken out of this project. The program itself stays: remove its environment to be rid of it.")
    return 0


def _show(done: Sequence[Done], would: str) -> None:
    """One line for each file, but removed ones of one folder in one."""
    plain = [one for one in done if one.did is Did.REMOVED and not one.note and "/" in one.path]
    for folder, count in Counter(one.path.split("/")[0] for one in plain).items():
        print(f"  {would}{Did.REMOVED:<12} {folder}/ ({count} file{'s' if count > 1 else ''} of ours)")
    for one in done:
        if one in plain:
            continue
        print(f"  {would}{one.did:<12} {one.path}{f'  ({one.note})' if one.note else ''}")
        if one.did in {Did.KEPT, Did.UNCLEAR}:
            print("    -> yours to decide")


def _refuse_while_working(root: Path, git: Git | None) -> None:
    owner = ProjectLock(private_folder(git.at.git_dir if git else None, root)).owner()
    if owner is not None:
        raise Failed(f"a session is running here ({owner.described()}): finish or abandon it first")
    unfinished = [*(root / FOLDER / "sessions").glob("*.json")]
    if unfinished:
        raise Failed("an interrupted session is kept here: resume it, or give it up with code-intel-server abandon")


def _forget_private(root: Path, git: Git | None) -> None:
    """Key and lock, and our lines in info/exclude. What sessions have archived is the user's and stays."""
    private = private_folder(git.at.git_dir if git else None, root)
    if git is not None:
        _clean_exclude(git.at.common_dir / "info" / "exclude", git.at.prefix)
        if archived := git.refs(ARCHIVE):
            print(f"  {len(archived)} archived branch(es) or change(s) stay under {ARCHIVE} (code-intel-server trash)")
            return
    shutil.rmtree(private, ignore_errors=True)


def _clean_exclude(file: Path, prefix: str) -> None:
    with contextlib.suppress(OSError):
        lines = read_regular(file, _EXCLUDE_LIMIT).decode("utf-8", "surrogateescape").splitlines(keepends=True)
        ours = {f"/{prefix}{FOLDER}/{name}/" for name in EXCLUDED} | {_EXCLUDE_TITLE}
        kept = "".join(line for line in lines if line.rstrip("\n") not in ours)
        if kept:
            write_whole(file, kept.encode("utf-8", "surrogateescape"), 0o644)
        else:
            file.unlink()
