"""The private index behind the tree hash: a stat cache kept by git itself, over raw content.

Each update asks git three cheap questions (which files look changed, which are untracked, which became ignored) and
hands only those paths back to it. The work is done on a copy that then replaces the index, so a killed process leaves a
whole one, no lock is ever left over, and two processes can do it at the same time.
"""

import hashlib
import json
import os
import stat
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

from code_intel_server.errors import Unavailable
from code_intel_server.process import MEBIBYTE
from code_intel_server.workspace.git.borrowed_objects import keep_borrowed
from code_intel_server.workspace.git.index_entries import IndexEntries, IndexEntry, side_by_side
from code_intel_server.workspace.git.isolated_directory import IsolatedGit, scratch_index
from code_intel_server.workspace.git.repository import Git, join_z, portions, split_z
from code_intel_server.workspace.tree import status

_YES = {"true", "yes", "on", "1"}
_CLOCKS_DIFFER = 0.05
"""By how many seconds a file system's clock may lag behind ours."""
_LONG_AGO_NS = 1_000_000_000
_ADDING = ("update-index", "-z", "--add", "--remove", "--replace", "--stdin")


@dataclass(slots=True)
class _Updates:
    """What has to be done to the private index; paths are from the top of the repository."""

    entries: dict[str, IndexEntry | None] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    repositories: dict[str, str] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.entries or self.files or self.skipped)


class SnapshotIndex:
    """Keeps the private index of one working tree; not thread-safe (its owner holds a lock).

    `excluded` are paths from the top that never count; files over `big` bytes are hashed as a stream and not stored.
    `identify` tells what a repository within holds: '' for nothing, None where its files count like those of any folder;
    `contents` as for `update`.
    """

    def __init__(
        self,
        git: Git,
        room: IsolatedGit,
        identify: Callable[[str, bool], str | None],
        *,
        excluded: Sequence[str],
        big: int,
    ) -> None:
        self.tracked = IndexEntries()
        self._git = git
        self._room = room
        self._identify = identify
        self._repositories: dict[str, str] | None = None
        self._excluded = tuple(excluded)
        self._big = big
        self._user_index: object = None
        self._left_out = _LeftOut(git.at.top)
        self._last: tuple[object, str] = (None, "")
        self._streams = _Streams(room.path / "streams.json", big)

    @property
    def path(self) -> Path:
        """The index file."""
        return self._room.path / "index"

    @property
    def scope(self) -> tuple[str, ...]:
        """The arguments that limit a listing to the project."""
        return ("--", self._git.at.prefix) if self._git.at.prefix else ()

    def entries(self) -> IndexEntries:
        """Everything the index holds."""
        return IndexEntries(self._room.must("ls-files", "-t", "-s", "-z", index=self.path))

    def repositories(self) -> dict[str, str]:
        """Path → id of the repositories within, as of the last update."""
        if self._repositories is None:
            self._repositories = self.entries().repositories() if self.path.exists() else {}
        return self._repositories

    def left_out(self) -> list[str]:
        """The files that git tracks and that a sparse checkout, or whoever marked them so, left out of the working tree."""
        entries = self.entries()
        return [os.fsdecode(path) for path, entry in entries.rows() if entry.skipped] if entries.skips else []

    def update(self, *, contents: bool = False, of: Sequence[str] = ()) -> str:
        """Bring the index in line with the disk and return its tree (the project's part of it).

        `contents`: every file is read, whatever its stamps say: a write through a page in memory may leave them all; of those
        that are stored whole, `of` are.
        """
        self._room.prepare()
        if of and self.path.exists():
            self._forget_stamps([path for path in of if os.path.lexists(f"{self._git.at.top}/{path}")])
        found = self.path.stat() if contents and self.path.exists() else None
        if found is None:
            return self._update(contents=contents)
        self._streams.forget()
        # To git an index that is older than the files tells nothing about them: their content is compared.
        os.utime(self.path, ns=(_LONG_AGO_NS, _LONG_AGO_NS))
        try:
            return self._update(contents=True)
        finally:
            if self.path.stat().st_mtime_ns == _LONG_AGO_NS:
                os.utime(self.path, ns=(found.st_atime_ns, found.st_mtime_ns))

    def _forget_stamps(self, files: Sequence[str]) -> None:
        is_known = self._last[0] == signature(self.path)
        with scratch_index(self._work(), self.path) as work:
            self._look_again_at(files, work)
            work.replace(self.path)
        if is_known:
            self._last = (signature(self.path), self._last[1])

    def _work(self) -> Path:
        return self.path.with_name(f"index.{os.getpid()}.{threading.get_ident()}")

    def _update(self, *, contents: bool) -> str:
        before = signature(self.path)
        if before is None:
            self._user_index = None
        if before is None or before != self._last[0]:
            self._repositories = None
        updates = self._updates(contents=contents)
        if not updates and before is not None and self._last[0] == before:
            return self._last[1]
        work = self._work()
        with scratch_index(work, self.path if before is not None else None):
            self._apply(work, updates)
            tree = self._write_tree(work)
            is_known = before is not None and self._last[0] == before
            keep_borrowed(
                self._room, work, self._last[1] if is_known else self._git.project_tree("HEAD"), tree, self._big
            )
            work.replace(self.path)
        self._streams.save()
        self._last = (signature(self.path), tree)
        gone = self.repositories().keys() - updates.repositories.keys()
        self._repositories = updates.repositories
        return self._update(contents=False) if gone else tree  # what was in them is among the others only now

    def is_excluded(self, path: str) -> bool:
        """Whether the path (from the top) is one the server itself writes."""
        return any(path == out or path.startswith(out + "/") for out in self._excluded)

    def _updates(self, *, contents: bool) -> _Updates:
        updates = _Updates()
        missing: set[str] = set()
        now = (signature(status.user_index(self._git)), sorted(self._git.at.git_dir.glob("sharedindex.*")))
        follows = now != self._user_index or self._left_out.has_changed()
        if follows:
            missing = self._follow_user_index(updates)
        # Three looks at the disk that do not depend on one another: together they take as long as the longest.
        with ThreadPoolExecutor(3) as pool:
            changed = pool.submit(self._changed)
            others = pool.submit(self._listed, "-o")
            ignored = pool.submit(self._listed, "-i", "-c")
        if not follows and self._may_be_left_out(changed.result()):
            missing = self._follow_user_index(updates)
        missing.update(name.rstrip("/") for name in others.result())
        names = missing.union(changed.result(), self.repositories())
        for path in ignored.result():
            if path not in self.tracked:
                names.discard(path)
                updates.entries[path] = None
        while names:  # once for each level of folders that git takes for repositories
            plain = self._classify(updates, names, missing, contents=contents)
            names = {name.rstrip("/") for name in self._listed_in(plain)}
            missing.update(names)
        self._user_index = now
        return updates

    def _changed(self) -> list[str]:
        if not self.path.exists():
            return []
        differing = ("diff-files", "-z", "--name-only", "--ignore-submodules=dirty")
        return split_z(self._room.must(*differing, *self.scope, index=self.path))

    def _may_be_left_out(self, changed: Sequence[str]) -> bool:
        """Whether some of these went, and may be left out again: a sparse checkout forgets what it left out while it is there."""
        gone = any(not os.path.lexists(f"{self._git.at.top}/{path}") for path in changed)
        return gone and self._git.config().get("core.sparsecheckout", "false").lower() in _YES

    def _listed(self, *which: str) -> list[str]:
        return split_z(self._room.must("ls-files", *which, "--exclude-standard", "-z", *self.scope, index=self.path))

    def _listed_in(self, folders: Sequence[str]) -> list[str]:
        """The untracked files in folders that git passes over as repositories: it looks into one that holds an entry."""
        if not folders:
            return []
        nobodys = os.urandom(16).hex()  # a known name would hide a file that bears it
        held = [f"100644 {self._git.empty_tree()}\t{folder}/{nobodys}" for folder in folders]
        with scratch_index(self._work().with_suffix(".plain")) as scratch:
            self._room.must("update-index", "-z", "--index-info", index=scratch, stdin=join_z(held))
            listing = ("ls-files", "-o", "--exclude-standard", "-z", "--")
            return [
                name for some in portions(folders) for name in split_z(self._room.must(*listing, *some, index=scratch))
            ]

    def _follow_user_index(self, updates: _Updates) -> set[str]:
        """What the user's index tracks belongs to the snapshot even where it is ignored; returns what is missing here."""
        self.tracked = IndexEntries(self._git.must("ls-files", "-t", "-s", "-z", *self.scope))
        self._left_out = _LeftOut(self._git.at.top)
        missing: set[str] = set()
        mine = self.entries()
        if mine.is_same(self.tracked) and not mine.skips:
            return missing
        for path, (entry, known) in side_by_side(self.tracked.rows(), mine.rows()):
            if entry is None:
                continue
            if entry.skipped and self._left_out.is_absent(path):
                if known != entry:
                    updates.entries[path] = entry
                    updates.skipped.append(path)
            elif known is None:
                missing.add(path)
            elif known.skipped:
                updates.entries[path] = None  # git takes a skipped entry for deleted, whatever is on disk
                missing.add(path)
        return missing

    def _classify(self, updates: _Updates, names: Iterable[str], missing: set[str], *, contents: bool) -> list[str]:
        """Sort paths into content git may read, content hashed by us, repositories within, and what is gone.

        Returns the folders that git takes for repositories and that are none.
        """
        plain: list[str] = []
        linked: dict[str, bool] = {}
        skipped = set(updates.skipped)
        for path in sorted(names):
            if path in skipped:
                continue
            found = None if self.is_excluded(path) else lstat(self._git.at.top, path, linked)
            if found is None:
                updates.entries[path] = None
            elif stat.S_ISDIR(found.st_mode):
                if not self._directory(updates, path, contents=contents):
                    plain.append(path)
            elif stat.S_ISLNK(found.st_mode) or (found.st_size <= self._big and self._readable(path)):
                updates.files.append(path)
            else:
                entry, fresh = self._streams.entry(self._git, path, found)
                if fresh or path in missing:
                    updates.entries[path] = entry
        return plain

    def _readable(self, path: str) -> bool:
        return os.access(f"{self._git.at.top}/{path}", os.R_OK)  # a Path object a file would cost more than the file

    def _directory(self, updates: _Updates, path: str, *, contents: bool) -> bool:
        """Note what a repository within holds; whether the files in the folder need not be looked for."""
        tracked, known = self.tracked.get(path), self.repositories().get(path, "")
        oid = self._identify(path, contents) if os.path.lexists(self._git.at.top / path / ".git") else ""
        is_plain = oid is None
        if not oid and tracked is not None and tracked.mode == status.GITLINK:
            oid = tracked.oid  # a submodule that is not populated
        if oid:
            updates.repositories[path] = oid
        if oid != known or not oid:
            updates.entries[path] = IndexEntry(status.GITLINK, oid) if oid else None
        return not is_plain

    def _apply(self, work: Path, updates: _Updates) -> None:
        zero = self._git.zero()
        rows = [f"{e.mode} {e.oid}\t{path}" if e else f"0 {zero}\t{path}" for path, e in updates.entries.items()]
        if rows:
            self._room.must("update-index", "-z", "--index-info", index=work, stdin=join_z(rows))
        if updates.skipped:
            self._room.must(
                "update-index", "-z", "--skip-worktree", "--stdin", index=work, stdin=join_z(updates.skipped)
            )
        if updates.files:
            began = time.time() - _CLOCKS_DIFFER
            self._room.must(*_ADDING, index=work, stdin=join_z(updates.files))
            self._look_again_at(self._young(updates.files, began), work)

    def _young(self, files: Iterable[str], began: float) -> list[str]:
        """The files written in the second in which they were read: git compares change times by the second."""
        linked: dict[str, bool] = {}
        looks = ((path, lstat(self._git.at.top, path, linked)) for path in files)
        return [path for path, found in looks if found and int(found.st_ctime) >= int(began)]

    def _look_again_at(self, files: Sequence[str], work: Path) -> None:
        """Drop the stat data of these entries, so that the next update reads them again whatever their time stamps say."""
        for names in portions(files):
            rows = self._room.must("--literal-pathspecs", "ls-files", "-s", "-z", "--", *names, index=work)
            self._room.must("update-index", "-z", "--index-info", index=work, stdin=rows)

    def _write_tree(self, work: Path) -> str:
        if not work.exists():
            self._room.must("read-tree", "--empty", index=work)
        prefix = [f"--prefix={self._git.at.prefix}"] if self._git.at.prefix else []
        done = self._room.run("write-tree", "--missing-ok", *prefix, index=work)
        if done.ok:
            return done.text().strip()
        if prefix and "not found" in done.error_text():
            return self._git.empty_tree()
        raise Unavailable("tool_errors.git.failed", command="git write-tree", output=done.error_text())


class _LeftOut:
    """Where a sparse checkout left files out. Git never looks at such a place again, whatever is written there; we do.

    Of a folder that is missing the files below it need not be looked for.
    """

    def __init__(self, top: Path) -> None:
        self._top = str(top)
        self._missing: list[str] = []
        self._here: list[str] = []
        self._folders: set[str] = set()

    def is_absent(self, path: str) -> bool:
        """Whether nothing is at a place that was left out, which is remembered; to be asked in the order of the paths."""
        if self._missing and path.startswith(f"{self._missing[-1]}/"):
            return True
        for folder in accumulate(path.split("/")[:-1], "{}/{}".format):
            if folder not in self._folders:
                if not self._exists(folder):
                    self._missing.append(folder)
                    return True
                self._folders.add(folder)
        is_here = self._exists(path)
        (self._here if is_here else self._missing).append(path)
        return not is_here

    def has_changed(self) -> bool:
        """Whether something came to where nothing stood, or went from where something did."""
        return any(map(self._exists, self._missing)) or not all(map(self._exists, self._here))

    def _exists(self, path: str) -> bool:
        return os.path.lexists(f"{self._top}/{path}")


class _Streams:
    """Hashes of files too big (or not readable) to be handed to git, remembered by their stat data."""

    def __init__(self, path: Path, big: int) -> None:
        self._path = path
        self._big = big
        self._known = read_json(path)
        self._changed = False

    def entry(self, git: Git, path: str, found: os.stat_result) -> tuple[IndexEntry, bool]:
        """The index entry of the file, and whether it is news."""
        marks = [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_mode]
        known = self._known.get(path)
        if isinstance(known, list) and known[:-1] == marks:
            return IndexEntry(mode_of(found), str(known[-1])), False
        oid = hash_file(git.at.top / path, found, git.hash_name())
        self._known[path] = [*marks, oid]
        self._changed = True
        return IndexEntry(mode_of(found), oid), True

    def forget(self) -> None:
        """Believe no stamp from here on."""
        self._known = {}

    def save(self) -> None:
        """Write what is known, if it has changed since it was read."""
        if self._changed:
            write_json(self._path, self._known)
            self._changed = False


def hash_file(path: Path, found: os.stat_result, name: str) -> str:
    """The blob id of a file's raw content, read in pieces; an unreadable file is distinguished by its stat data only."""
    digest = hashlib.new(name, usedforsecurity=False)
    digest.update(b"blob %d\0" % found.st_size)
    try:
        with path.open("rb") as file:
            while piece := file.read(MEBIBYTE):
                digest.update(piece)
    except OSError:
        digest.update(repr((found.st_mtime_ns, found.st_ino)).encode())
    return digest.hexdigest()


def lstat(top: Path, path: str, linked: dict[str, bool]) -> os.stat_result | None:
    """What is at a path: None for nothing, for what git cannot hold, and for anything behind a symbolic link."""
    parent = path.rpartition("/")[0]
    if parent and _behind_link(top, parent, linked):
        return None
    try:
        found = os.lstat(f"{top}/{path}")
    except (OSError, ValueError):
        return None
    return found if stat.S_IFMT(found.st_mode) in {stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR} else None


def _behind_link(top: Path, folder: str, linked: dict[str, bool]) -> bool:
    if folder not in linked:
        parent = folder.rpartition("/")[0]
        linked[folder] = (bool(parent) and _behind_link(top, parent, linked)) or (top / folder).is_symlink()
    return linked[folder]


def mode_of(found: os.stat_result) -> str:
    """Git's mode of a file or link."""
    if stat.S_ISLNK(found.st_mode):
        return "120000"
    return "100755" if found.st_mode & stat.S_IXUSR else "100644"


def signature(path: Path) -> tuple[int, ...] | None:
    """What tells whether a file was replaced or rewritten; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size, found.st_ino, found.st_ctime_ns)


def read_json(path: Path) -> dict[str, object]:
    """A side table of ours; anything but a readable object counts as empty (it is a cache)."""
    try:
        value: object = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def write_json(path: Path, value: Mapping[str, object]) -> None:
    """Replace a side table as a whole."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}")
    fresh.write_text(json.dumps(value), "utf-8")
    fresh.replace(path)
