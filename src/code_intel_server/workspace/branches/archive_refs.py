"""Where content goes before it may leave the user's sight: archive refs (SPEC 6.1).

An archive ref `refs/code-intel/archive/<session>/<number>-<kind>` points to an annotated tag, whose message says in JSON
what it holds and whose date is the day it was shelved; the tag points to a commit, so nothing of it is ever collected.
Working tree content is shelved raw, as it lies on disk: no filter runs, and restoring gives the same bytes.
"""

import contextlib
import json
import os
import secrets
import shlex
import shutil
import stat
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from code_intel_server.errors import Unavailable, UserActionNeeded
from code_intel_server.process import Completed
from code_intel_server.workspace import atomic_writes
from code_intel_server.workspace.atomic_writes import IncomingFile
from code_intel_server.workspace.branches.refusals import refuse
from code_intel_server.workspace.git import isolated_directory
from code_intel_server.workspace.git import repository as door
from code_intel_server.workspace.git.child import Manner, command_name, environment_config, output_of
from code_intel_server.workspace.git.isolated_directory import RAW_ATTRIBUTES, IsolatedGit
from code_intel_server.workspace.git.repository import ARCHIVE, Git, RefChange, join_z, portions, split_z
from code_intel_server.workspace.tree.snapshot_index import hash_file, lstat, mode_of
from code_intel_server.workspace.tree.status import GITLINK

_US = "code-intel"
_NOBODY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", _US), ("EMAIL", "code-intel@localhost.invalid"))
}
_MANY = 2_000
_SPECIAL = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_DURABLE = environment_config({"core.fsync": "all"})


class ArchiveKind(StrEnum):
    """What an archive ref holds."""

    BRANCH = "branch"
    WORK = "work"
    DISCARD = "discard"
    STAGED = "staged"
    EARLIER = "earlier"


@dataclass(frozen=True, slots=True)
class ArchivedContent:
    """An archive ref to be created (`change`) and the commit behind it."""

    ref: str
    commit: str
    change: RefChange


class Archiver:
    """Shelves content of one repository for one session."""

    def __init__(self, git: Git, session_id: str) -> None:
        self._git = git
        self._session = session_id if door.is_safe_name(session_id) else "unknown"
        self._taken: set[str] = set(git.refs(f"{ARCHIVE}{self._session}/"))

    def of_commit(self, commit: str, kind: ArchiveKind, **facts: str) -> ArchivedContent:
        """Prepare an archive ref for a commit that exists; `facts` say what it was."""
        ref = self._free_ref(kind)
        body = json.dumps({"kind": kind.value, "session": self._session, **facts}, sort_keys=True)
        stamp = f"{int(time.time())} +0000"
        lines = [
            f"object {commit}",
            "type commit",
            f"tag {kind.value}",
            f"tagger {_US} <{_US}@localhost.invalid> {stamp}",
            "",
            body,
            "",
        ]
        data = "\n".join(lines).encode("utf-8", "surrogateescape")
        tag = self._git.text("mktag", manner=Manner.OWN, stdin=data)
        return ArchivedContent(ref, commit, RefChange(ref, "", tag))

    def of_files(self, paths: Sequence[str], parent: str, kind: ArchiveKind, **facts: str) -> ArchivedContent:
        """Prepare an archive ref for the present raw content of `paths` (from the top), as a commit on `parent`."""
        return self.of_commit(self.commit_files(paths, parent, kind), kind, **facts)

    def of_entries(
        self, entries: Mapping[str, tuple[str, str]], parent: str, kind: ArchiveKind, **facts: str
    ) -> ArchivedContent:
        """Prepare an archive ref for stored contents: path from the top → mode and id, as a commit on `parent`."""
        rows = join_z(f"{mode} {oid}\t{path}" for path, (mode, oid) in entries.items())
        with scratch_index(self._git) as index:
            env = {"GIT_INDEX_FILE": str(index)}
            self._git.must("read-tree", parent, manner=Manner.OWN, env=env)
            self._git.must("update-index", "-z", "--replace", "--index-info", manner=Manner.OWN, env=env, stdin=rows)
            tree = self._git.must("write-tree", manner=Manner.OWN, env=env).decode().strip()
        return self.of_commit(self._commit(tree, parent, f"Kept by code-intel: {kind.value}"), kind, **facts)

    def of_index(self, parent: str) -> ArchivedContent:
        """Prepare an archive ref for what the user has staged."""
        with scratch_index(self._git, copy=True) as index:
            tree = self._git.must("write-tree", manner=Manner.OWN, env={"GIT_INDEX_FILE": str(index)}).decode().strip()
        return self.of_commit(self._commit(tree, parent, "What was staged"), ArchiveKind.STAGED)

    def keep(self, *shelved: ArchivedContent, reason: str = "code-intel: archive") -> None:
        """Create the refs; from here on the content is safe."""
        if shelved:
            self._git.transact([each.change for each in shelved], reason=reason)

    def commit_files(self, paths: Sequence[str], parent: str, kind: ArchiveKind) -> str:
        """A commit whose tree is `parent`'s with the present raw content of `paths`; objects go to the repository."""
        room = IsolatedGit(self._git, "shelf", RAW_ATTRIBUTES)
        room.prepare()
        env = {**_DURABLE, "GIT_OBJECT_DIRECTORY": str(self._git.at.common_dir / "objects")}
        linked: dict[str, bool] = {}
        present = [path for path in paths if _is_file(lstat(self._git.at.top, path, linked))]
        gone = sorted(set(paths) - set(present))
        zero = self._git.zero()
        with scratch_index(self._git) as index:
            room.must("read-tree", parent, index=index, env=env)
            if gone:
                room.must(
                    "update-index",
                    "-z",
                    "--index-info",
                    index=index,
                    env=env,
                    stdin=join_z(f"0 {zero}\t{path}" for path in gone),
                )
            if present:
                room.must(
                    "update-index", "-z", "--add", "--replace", "--stdin", index=index, env=env, stdin=join_z(present)
                )
            tree = room.must("write-tree", index=index, env=env).decode().strip()
        return self._commit(tree, parent, f"Kept by code-intel: {kind.value}")

    def _commit(self, tree: str, parent: str, message: str) -> str:
        words = ("-c", "commit.gpgsign=false", "commit-tree", "--no-gpg-sign", "-p", parent, tree)
        return self._git.must(*words, manner=Manner.OWN, stdin=message.encode(), env=_NOBODY).decode().strip()

    def _free_ref(self, kind: ArchiveKind) -> str:
        number = 1 + len(self._taken)
        while (ref := f"{ARCHIVE}{self._session}/{number:03}-{kind.value}") in self._taken:
            number += 1
        self._taken.add(ref)
        return ref


def put_back(git: Git, paths: Sequence[str], source: str, shelved: str) -> None:
    """Give `paths` (from the top) the content they have in commit `source`, or remove them where it has none.

    Every file is first moved aside and compared with what commit `shelved` keeps of it, and nothing that is in its
    place by then is overwritten, so an edit that came in between is noticed and nothing is lost:
    UserActionNeeded('tool_errors.git.changed_meanwhile'). The user's index follows. A pipe, a socket or a device is nothing
    that could be kept: UserActionNeeded('tool_errors.git.special_file') where one is, and nothing has changed.
    """
    _refuse_special(git, paths)
    wanted = tree_entries(git, source, paths)
    kept = tree_entries(git, shelved, paths)
    aside = _aside(git) / shelved
    moved: list[tuple[Path, Path]] = []
    try:
        for path in paths:
            _move_aside(git, path, kept.get(path), aside / path, moved)
        _restore(git, {path: wanted[path] for path in paths if path in wanted}, source)
        drop = [path for path in paths if path not in wanted]
        if drop:
            write_index(git, "update-index", "-z", "--force-remove", "--stdin", stdin=join_z(drop))
    except BaseException:
        for place, original in reversed(moved):
            _return(place, original)
        raise
    if aside.exists():
        shutil.rmtree(aside)  # what stayed here would come back (`return_aside`): a failure has to be heard


def _refuse_special(git: Git, paths: Iterable[str]) -> None:
    for path in paths:
        kind = _SPECIAL.get(_file_type(git.at.top / path))
        if kind:
            why = f"{kind} stands at {path}, which git cannot hold: remove it (`rm {shlex.quote(path)}`)"
            raise refuse("special_file", why, path=path)


def _file_type(place: Path) -> int:
    try:
        return stat.S_IFMT(place.lstat().st_mode)
    except OSError:
        return 0


def return_aside(git: Git) -> None:
    """After a crash in `put_back`: what was moved aside goes back where nothing has taken its place.

    The effect is then done again from its beginning. A copy whose place is taken is dropped where its shelf holds it;
    where it does not, it is an edit nobody has seen, and stays.
    """
    for folder in _aside(git).glob("*"):
        places = {place.relative_to(folder).as_posix(): place for place in folder.rglob("*") if _is_file(place.lstat())}
        kept = tree_entries(git, folder.name, places) if git.oid(folder.name) else {}
        for path, place in places.items():
            _return(place, git.at.top / path)
            if os.path.lexists(place) and path in kept and kept[path][1] == _oid_of(git, place):
                place.unlink()
        _remove_empty(folder)


def _remove_empty(folder: Path) -> None:
    for inner in [*sorted(folder.rglob("*"), reverse=True), folder]:
        with contextlib.suppress(OSError):
            inner.rmdir()


def write_back(
    git: Git,
    commit: str,
    paths: Collection[str],
    *,
    replace: Collection[str] = (),
    permissions: Mapping[str, int] | None = None,
) -> list[str]:
    """Write the raw content commit keeps of `paths`, each file whole or not at all; returns what was written.

    To where nothing is now; in place of what is there for those in `replace`, which the caller has looked at.
    `permissions` are those the files had, where they are known: git keeps none but the executable bit.
    """
    had = permissions or {}
    written = []
    entries = tree_entries(git, commit, paths)
    atomic_writes.remove_unfinished(git, entries)
    for path, (mode, oid) in sorted(entries.items()):
        if mode == GITLINK or (path not in replace and os.path.lexists(git.at.top / path)):
            continue
        if atomic_writes.place(
            git, IncomingFile(path, mode, git.read_blob(oid), had.get(path)), replace=path in replace
        ):
            written.append(path)
    return written


def permissions_of(git: Git, paths: Collection[str]) -> dict[str, int]:
    """The permissions of those of `paths` (from the top) that are regular files now."""
    found = ((path, lstat(git.at.top, path, {})) for path in paths)
    return {path: stat.S_IMODE(look.st_mode) for path, look in found if look and stat.S_ISREG(look.st_mode)}


def write_index(git: Git, *arguments: str, stdin: bytes | None = None, may_fail: bool = False) -> Completed:
    """Run a command that writes the user's index, waiting for whoever holds it.

    Raises UserActionNeeded('tool_errors.git.index_locked') after the patience, Unavailable where the command fails.
    """
    deadline = time.monotonic() + git.patience
    while True:
        git.await_index()
        done = git.run("--literal-pathspecs", *arguments, manner=Manner.USER, stdin=stdin)
        if done.ok or may_fail:
            return done
        git.refuse_filter(done)
        if "index.lock" not in done.error_text() or time.monotonic() >= deadline:
            raise Unavailable("tool_errors.git.failed", command=command_name(done), output=output_of(done))


def scratch_index(git: Git, *, copy: bool = False) -> contextlib.AbstractContextManager[Path]:
    """A temporary index next to the user's, optionally a copy of it; without one git makes the file itself."""
    path = git.own_folder() / f"index.{secrets.token_hex(6)}"
    return isolated_directory.scratch_index(path, git.at.git_dir / "index" if copy else None)


def raw_oid(git: Git, path: str) -> str:
    """The hash of the raw content at a path from the top; '' where there is no file or link."""
    return _oid_of(git, git.at.top / path) if _is_file(lstat(git.at.top, path, {})) else ""


def entry_at(git: Git, path: str) -> tuple[str, str]:
    """Git's mode and the hash of the raw content of what is at a path from the top; both '' where there is no file or link."""
    found = lstat(git.at.top, path, {})
    return (mode_of(found), _oid_of(git, git.at.top / path)) if found and _is_file(found) else ("", "")


def is_same(git: Git, one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Whether two files (mode and id) need not be distinguished: by the executable bit only where the repository heeds it."""
    if one[1] == other[1] and {one[0], other[0]} == {atomic_writes.PROGRAM, atomic_writes.PLAIN}:
        return not git.heeds_executable_bit()
    return one == other


def tree_entries(git: Git, commit: str, paths: Collection[str]) -> dict[str, tuple[str, str]]:
    """Path → (mode, id) of those of the paths that the commit holds as files, links or submodules."""
    wanted = set(paths)
    # Asking for many paths costs more than reading the whole tree.
    limits = portions(sorted(wanted)) if len(wanted) < _MANY else [[]]
    found: dict[str, tuple[str, str]] = {}
    for names in limits:
        every = [] if names else ["-r"]
        listed = git.must("--literal-pathspecs", "ls-tree", *every, "-z", "--full-tree", commit, "--", *names)
        rows = (row.partition("\t") for row in split_z(listed))
        found |= {
            path: (head[:6], head.rpartition(" ")[2])
            for head, _, path in rows
            if path in wanted and " tree " not in head
        }
    return found


def _move_aside(git: Git, path: str, kept: tuple[str, str] | None, place: Path, moved: list[tuple[Path, Path]]) -> None:
    original = git.at.top / path
    found = lstat(git.at.top, path, {})
    if not _is_file(found):
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    original.rename(place)
    moved.append((place, original))
    if kept is None or _oid_of(git, place) != kept[1]:
        raise UserActionNeeded("tool_errors.git.changed_meanwhile", path=path)
    folder = original.parent
    while folder != git.at.top:
        try:
            folder.rmdir()
        except OSError:
            break
        folder = folder.parent


def is_repository(git: Git, path: str) -> bool:
    """Whether a repository of its own is at a path from the top (a submodule, a clone): no shelf can hold its content."""
    place = git.at.top / path
    return place.is_dir() and not place.is_symlink() and os.path.lexists(place / ".git")


def blocked(top: Path, path: str, going: Collection[str] = ()) -> bool:
    """Whether a file or a link stands, that is not `going` away, where one of the path's folders must be."""
    parents = [top / parent for parent in Path(path).parents if parent.parts and parent.as_posix() not in going]
    return any(os.path.lexists(parent) and (parent.is_symlink() or not parent.is_dir()) for parent in parents)


def _aside(git: Git) -> Path:
    return git.own_folder() / "aside"


def _return(place: Path, original: Path) -> None:
    if not os.path.lexists(original):
        original.parent.mkdir(parents=True, exist_ok=True)
        place.rename(original)


def _oid_of(git: Git, path: Path) -> str:
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode):
        target = os.fsencode(path.readlink())
        return git.text("hash-object", "--stdin", "--no-filters", stdin=target)
    return hash_file(path, found, git.hash_name())


def _restore(git: Git, entries: Mapping[str, tuple[str, str]], source: str) -> None:
    """Check the paths out of `source` next to the tree, then put each where nothing is; git itself would overwrite what came meanwhile."""
    if not entries:
        return
    words = ("restore", f"--source={source}", "--staged", "--pathspec-from-file=-", "--pathspec-file-nul")
    write_index(git, *words, stdin=join_z(entries))
    names = [path for path, (mode, _) in entries.items() if mode != GITLINK]
    made = git.own_folder() / "restored"
    shutil.rmtree(made, ignore_errors=True)
    try:
        with scratch_index(git, copy=True) as index:  # git would note in it where it put the files
            checkout = ("checkout-index", "--ignore-skip-worktree-bits", f"--prefix={made}/", "-z", "--stdin")
            git.must(*checkout, manner=Manner.USER, env={"GIT_INDEX_FILE": str(index)}, stdin=join_z(names))
        for path in names:
            if not atomic_writes.move_in(git, made / path, path, entries[path][0]):
                raise UserActionNeeded("tool_errors.git.changed_meanwhile", path=path)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _is_file(found: os.stat_result | None) -> bool:
    return found is not None and not stat.S_ISDIR(found.st_mode)
