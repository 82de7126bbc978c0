"""The content of the project's files, hashed as git would, without running or changing anything (SPEC 4, 6.7).

A snapshot is a git tree id over the *raw* bytes of every tracked and every untracked, not ignored file, made through
the private index of an isolated git directory. New content is kept as objects of it, so two snapshots can be compared after
a restart; a file over `big` bytes is hashed as a stream and not stored.

Raw is compared with raw: where a checkout converts (line endings, filter drivers), `head_snapshot` gives what the
checkout gave, not what the commit stores.
"""

import os
import threading
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from code_intel_server.common.own_folder import FOLDER, SERVER_WRITES
from code_intel_server.errors import Unavailable
from code_intel_server.process import MEBIBYTE
from code_intel_server.workspace.git.borrowed_objects import store_in_repository
from code_intel_server.workspace.git.checkout import Checkout
from code_intel_server.workspace.git.index_entries import side_by_side
from code_intel_server.workspace.git.isolated_directory import RAW_ATTRIBUTES, IsolatedGit, scratch_index
from code_intel_server.workspace.git.repository import (
    Git,
    is_oid,
    join_z,
    nul_terminated,
    open_readable,
    split_z,
)
from code_intel_server.workspace.tree import status
from code_intel_server.workspace.tree.alterations import Alterations
from code_intel_server.workspace.tree.nested import Nested, owner
from code_intel_server.workspace.tree.snapshot_index import SnapshotIndex, lstat, read_json, write_json
from code_intel_server.workspace.tree.stored_snapshots import StoredSnapshots
from code_intel_server.workspace.values import Beside, Change, ChangeKind

SERVER_PATHS = tuple(f"{FOLDER}/{name}" for name in SERVER_WRITES)
"""What our own server writes. What that of a project or a repository within writes counts: a folder of that name could hide anything."""

LEFT_BY_RUNS = ("__pycache__/", ".coverage", ".coverage.*")
"""What any run of Python or coverage leaves behind, whoever starts it: no change of anybody's, unless git tracks it."""

Cached = TypeVar("Cached")

BIG_BYTES = 8 * MEBIBYTE
STORE_LIMIT_BYTES = 256 * MEBIBYTE
_REMEMBERED_AT_MOST = 16
_REMEMBERED_BYTES = 256 * 1024


class TreeJudge:
    """The content of one working tree. Safe to call from several threads; two processes do not disturb each other."""

    def __init__(self, root: Path, *, big: int = BIG_BYTES, depth: int = 0) -> None:
        self._root = root
        self._big = big
        self._depth = depth
        self._lock = threading.Lock()
        self._opened: StoredSnapshots | None = None
        self._nested: Nested[TreeJudge] | None = None
        # What two ids mean never changes, nor what a snapshot holds.
        self._compared: dict[tuple[str, str], tuple[Change, ...]] = {}
        self._held: dict[tuple[str, str], tuple[str, bytes | None]] = {}

    def snapshot(self, *, contents: bool = False, of: Collection[str] = ()) -> str:
        """Identify the present content of all tracked and untracked (not ignored) files; '' without git.

        `contents`: read every file, also where its stamps say that nobody wrote it; `of` does so for these paths.
        """
        with self._lock:
            stored = self._open()
            if stored is None:
                return ""
            return stored.index.update(contents=contents, of=[stored.git.at.prefix + path for path in of])

    def changes(self, old: str, new: str) -> tuple[Change, ...]:
        """What differs between two snapshots, renames found, hunks as `diff -U0`; '' is the empty tree.

        Raises Unavailable('tool_errors.tree.snapshot_lost') where the private store of a snapshot was deleted, and
        Unavailable('tool_errors.git.failed') where git failed.
        """
        stored = self._stored()
        if stored is None or old == new:
            return ()
        known = self._compared.get((old, new))
        if known is not None:
            return known
        found = self._changes(stored, old, new)
        with self._lock:
            _remember(self._compared, (old, new), found)
        return found

    def _changes(self, stored: StoredSnapshots, old: str, new: str) -> tuple[Change, ...]:
        git = stored.git
        stored.require(*filter(None, (old, new)))
        found = stored.changes(old or git.empty_tree(), new or git.empty_tree())
        within = [change.path for change in found if change.repository]
        if not within or self._nested is None:
            return found
        sides = [stored.links(snapshot, within) if snapshot else {} for snapshot in (old, new)]
        changes: list[Change] = []
        for change in found:
            was, now = (side.get(change.path, "") for side in sides)
            files = self._nested.changes(git.at.prefix + change.path, was, now) if change.repository else None
            if files is None or self._nested.commit_of(was) != self._nested.commit_of(now):
                changes.append(replace(change, oid=self._nested.commit_of(now) if change.repository else change.oid))
            changes += [_from_project(git, one) for one in files or ()]
        return tuple(changes)

    def lines(self, snapshot: str, path: str) -> tuple[str, ...] | None:
        """The lines of a file in a snapshot; None where it has none (absent, binary, too big)."""
        content = self.content(snapshot, path)
        return None if content is None else _lines(content)

    def texts(self, snapshot: str, paths: Collection[str]) -> dict[str, tuple[str, ...] | None]:
        """`lines` of several files, at the cost of one. Raises as `changes` does."""
        stored = self._stored()
        rows = stored.rows(snapshot, sorted(paths)) if stored and snapshot and paths else []
        oids = {name: head.split()[2] for head, name in rows if head.startswith("100") and name in paths}
        found = {} if stored is None else {oid: content for oid, _, content in stored.blobs({*oids.values()})}
        known = {name: _lines(found[oid]) for name, oid in oids.items() if oid in found}
        others = {
            path: self.lines(snapshot, path) for path in paths if path not in oids
        }  # in a repository within, or nowhere
        return {**dict.fromkeys(paths), **known, **others}

    def exists(self, snapshot: str, path: str) -> bool:
        """Whether a path is a file, a link or a submodule of a snapshot. Raises as `changes` does."""
        return bool(self.oids(snapshot, [path]))

    def oids(self, snapshot: str, paths: Sequence[str]) -> dict[str, str]:
        """The object ids of those of `paths` that a snapshot holds. Raises as `changes` does."""
        stored = self._stored()
        if stored is None or not snapshot or not paths:
            return {}
        wanted = {*paths}
        rows = stored.rows(snapshot, paths)
        found = {name: head.split()[2] for head, name in rows if name in wanted and " tree " not in head}
        for path in paths if stored.index.repositories() else ():
            if path not in found and (inside := self._inside(stored, snapshot, path)):
                judge, theirs, rest = inside
                if oid := judge.oids(theirs, [rest]).get(rest):
                    found[path] = oid
        return found

    def _inside(self, stored: StoredSnapshots, snapshot: str, path: str) -> "tuple[TreeJudge, str, str] | None":
        """Where a path lies in a repository within: its judge, its own snapshot, and the path there."""
        prefix = stored.git.at.prefix
        repository = owner(prefix + path, stored.index.repositories())
        if not repository or self._nested is None:
            return None
        name = repository.removeprefix(prefix)
        oid = stored.links(snapshot, [name]).get(name)
        found = self._nested.at(repository, oid) if oid else None
        return (*found, path[len(name) + 1 :]) if found else None

    def content(self, snapshot: str, path: str) -> bytes | None:
        """The raw bytes of a file in a snapshot; None where it is absent, no regular file, or too big to be kept. Raises as `changes` does."""
        mode, content = self.held(snapshot, path)
        return content if mode.startswith("100") else None

    def held(self, snapshot: str, path: str) -> tuple[str, bytes | None]:
        """Git's mode ('' where there is nothing) and the bytes of a file, or a link's target; None where too big to be kept. Raises as `changes` does."""
        known = self._held.get((snapshot, path))
        if known is not None:
            return known
        stored = self._stored()
        if stored is None or not snapshot:
            return "", None
        heads = [head.split() for head, name in stored.rows(snapshot, [path]) if name == path]
        if not heads and (inside := self._inside(stored, snapshot, path)):
            return inside[0].held(inside[1], inside[2])
        if not heads or heads[0][1] != "blob":
            return "", None
        content = stored.blob(heads[0][2])
        if content is not None and len(content) <= _REMEMBERED_BYTES:
            with self._lock:
                _remember(self._held, (snapshot, path), (heads[0][0], content))
        return heads[0][0], content

    def altered(self, commit: str, paths: Sequence[str], snapshot: str) -> tuple[str, ...]:
        """What a commit (of one parent) holds otherwise than reviewed: by filters, by hooks, by somebody at that moment.

        See `Alterations.of`. Raises as `changes` does.
        """
        stored = self._stored()
        if stored is None or not snapshot:
            return ()
        return Alterations(stored.git, stored.room, stored.index.path).of(commit, paths, snapshot)

    def beside(self, commit: str, snapshot: str, paths: Collection[str]) -> Beside:
        """What stood, `paths` aside, otherwise on disk when `snapshot` was taken than in a checkout of `commit`, but for what is left out.

        Raises as `changes` does.
        """
        checkout = self.head_snapshot(commit)
        stored = self._stored()
        if stored is None or not snapshot:
            return Beside()
        stored.require(snapshot)
        differing = stored.differing(checkout, snapshot).difference(paths)
        there, committed = (self.oids(tree, sorted(differing)) for tree in (snapshot, checkout))
        gone = committed.keys() - there.keys()
        both = sorted(committed.keys() & there.keys())
        alterations = Alterations(stored.git, stored.room, stored.index.path)
        hidden = alterations.among(commit, both, snapshot) if both else ()
        return Beside(tuple(sorted({*hidden, *gone})), tuple(sorted(there.keys() - committed.keys())))

    def left_out(self) -> tuple[str, ...]:
        """The files that git tracks and that the working tree lacked at the last snapshot, by a sparse checkout or a mark of the index.

        A snapshot holds them all the same: they are no change of anybody's.
        """
        with self._lock:
            stored = self._open()
            if stored is None:
                return ()
            return tuple(path.removeprefix(stored.git.at.prefix) for path in stored.index.left_out())

    def head_snapshot(self, commit: str) -> str:
        """The snapshot that a checkout of `commit` would have; remembered, since only a clean tree can tell it exactly."""
        with self._lock:
            stored = self._open()
            if stored is None or not commit:
                return ""
            memory = stored.room.path / "heads.json"
            known = read_json(memory)
            snapshot = known.get(commit)
            if isinstance(snapshot, str) and is_oid(snapshot) and stored.is_there(snapshot):
                return snapshot
            stored.index.update()
            made = Checkout(stored.git, stored.room, stored.index).tree_of(commit)
            write_json(memory, {**known, commit: made})
            return made

    # -- more than snapshots ----------------------------------------------------------------------------------------

    def as_committed(self, commit: str, old: str, new: str, without: Collection[str] = ()) -> tuple[str, str]:
        """What a checkout of `commit` holds, and of a commit upon it with what differs between two snapshots, but for some paths.

        Both are snapshots. Raises as `changes` does.
        """
        before = self.head_snapshot(commit)
        stored = self._stored()
        if stored is None:
            raise Unavailable("tool_errors.git.failed", command="git write-tree", output="there is no repository")
        git, room = stored.git, stored.room
        stored.require(*filter(None, (before, old, new)))
        differing = ("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--ignore-submodules=none")
        sides = (old or git.empty_tree(), new or git.empty_tree())
        with scratch_index(room.path / f"index.committed.{os.getpid()}.{threading.get_ident()}") as scratch:
            room.must("read-tree", before, index=scratch)
            fields = nul_terminated(room.must(*differing, *sides, index=scratch))
            rows = ((head.split(" "), path) for head, path in zip(fields, fields, strict=True))
            left = {*without}
            entries = [(path, head[1], self._committed(head[3])) for head, path in rows if path not in left]
            lines = [f"{mode} {oid}\t{path}" for path, mode, oid in entries if oid]
            if lines:
                room.must("update-index", "-z", "--index-info", index=scratch, stdin=join_z(lines))
            return before, os.fsdecode(room.must("write-tree", "--missing-ok", index=scratch)).strip()

    def _committed(self, oid: str) -> str:
        """What a commit holds for the id of an entry: of a repository within its commit, '' where it has none."""
        return self._nested.commit_of(oid) if self._nested else oid

    def worktrees(self) -> tuple[str, ...]:
        """The other working trees of the repository that lie in the project, at which nobody looks, as of the last snapshot."""
        with self._lock:
            stored = self._open()
            found = self._nested.worktrees() if stored and self._nested else []
        return tuple(path.removeprefix(stored.git.at.prefix) for path in found) if stored else ()

    def head(self) -> str:
        """The commit HEAD is at; '' where there is none."""
        stored = self._stored()
        return stored.git.oid("HEAD") if stored else ""

    @property
    def objects(self) -> Path:
        """The folder with what snapshots hold and the repository does not."""
        stored = self._stored()
        return stored.room.objects if stored else self._root

    def untracked(self) -> dict[str, str]:
        """Untracked, not ignored files of the project → git hash of their content."""
        with self._lock:
            stored = self._open()
            if stored is None:
                return {}
            prefix, index = stored.git.at.prefix, stored.index
            index.update()
            both = side_by_side(index.entries().rows(), index.tracked.rows())
            return {path.removeprefix(prefix): e.oid for path, (e, tracked) in both if e and not tracked}

    def written_since(self, moment_ns: int) -> tuple[str, ...]:
        """The files of the last snapshot that somebody wrote, moved or touched after a moment (Unix time), whatever is in them now."""
        with self._lock:
            stored = self._open()
            if stored is None:
                return ()
            names = stored.index.entries()
        at, linked = stored.git.at, dict[str, bool]()
        looks = ((name, lstat(at.top, name, linked)) for name in names)
        return tuple(name.removeprefix(at.prefix) for name, look in looks if look and look.st_ctime_ns > moment_ns)

    def untracked_at(self, start: str, commit: str) -> dict[str, str]:
        """Files that snapshot `start` holds beyond `commit`, which HEAD was at: what was untracked then → its hash.

        Where the snapshot is no longer known, everything untracked now: whoever puts a tree back leaves it alone then.
        """
        try:
            changes = self.changes(self.head_snapshot(commit), start)
        except Unavailable:
            return self.untracked()
        return {change.path: change.oid for change in changes if change.kind in {ChangeKind.ADDED, ChangeKind.RENAMED}}

    def store(self, snapshot: str, paths: Sequence[str]) -> dict[str, tuple[str, str]]:
        """Copy what a snapshot holds of these paths into the repository's own store: mode and id of what is there then.

        What was too big to be kept is left out, and so are repositories within. Raises as `changes` does.
        """
        stored = self._stored()
        if stored is None or not snapshot:
            return {}
        wanted = set(paths)
        rows = ((head.split(), name) for head, name in stored.rows(snapshot, paths))
        found = {name: (head[0], head[2]) for head, name in rows if name in wanted and head[1] == "blob"}
        there = store_in_repository(stored.room, stored.index.path, {oid for _, oid in found.values()})
        return {name: entry for name, entry in found.items() if entry[1] in there}

    def uncommitted(self, snapshot: str, commit: str, paths: Sequence[str]) -> tuple[str, ...]:
        """Those of `paths` that a snapshot held otherwise than a checkout of `commit`: untracked, or with changes.

        Not what the commit holds under a filter driver: only the driver could tell. Raises as `changes` does.
        """
        had, committed = self.oids(snapshot, paths), self.oids(self.head_snapshot(commit), paths)
        own = [path for path in paths if path in had and had[path] != committed.get(path)]
        stored = self._stored()
        tracked = [path for path in own if path in committed]
        if stored is None or not tracked:
            return tuple(own)
        stdin = join_z(stored.git.at.prefix + path for path in tracked)
        told = split_z(stored.git.must("check-attr", "-z", "--stdin", "filter", stdin=stdin))[2::3]
        driven = {path for path, value in zip(tracked, told, strict=True) if value not in {"unspecified", "unset"}}
        return tuple(path for path in own if path not in driven)

    def forget(self) -> None:
        """Throw the private index and objects away: no snapshot made so far can be compared afterwards."""
        with self._lock:
            stored = self._open()
            if stored:
                stored.room.empty()
            self._opened = None
            self._compared.clear()
            self._held.clear()

    def follow_ignored(self) -> None:
        """At the start of a session: leave out what the user has git ignore now. A line added later hides nothing."""
        with self._lock:
            stored = self._open()
            if stored:
                stored.room.follow()

    def tidy(self) -> None:
        """Between sessions: drop what is only true within one, and everything where the private store has outgrown its limit.

        Cheaper than `forget`, which makes the next snapshot read every file again.
        """
        with self._lock:
            stored = self._open()
            if stored:
                (stored.room.path / "heads.json").unlink(missing_ok=True)
                if self._nested is not None:
                    self._nested.tidy()
        if stored and _size(stored.room.objects) > STORE_LIMIT_BYTES:
            self.forget()

    def _stored(self) -> StoredSnapshots | None:
        with self._lock:
            return self._open()

    def _open(self) -> StoredSnapshots | None:
        if self._opened is None:
            git = open_readable(self._root)
            if isinstance(git, str):
                return None
            excluded = () if self._depth else tuple(git.at.prefix + path for path in SERVER_PATHS)
            room = IsolatedGit(git, "tree", RAW_ATTRIBUTES, excluded, LEFT_BY_RUNS, lasting=True)
            room.prepare()
            self._nested = Nested(git, room.path / "nested.json", self._judge_of)
            index = SnapshotIndex(git, room, self._identify, excluded=excluded, big=self._big)
            self._opened = StoredSnapshots(git, room, index)
        return self._opened

    def _judge_of(self, root: Path) -> "TreeJudge":
        return TreeJudge(root, big=self._big, depth=self._depth + 1)

    def _identify(self, path: str, contents: bool) -> str | None:
        if self._nested is None or self._depth == status.NESTED_AT_MOST:
            return None
        return self._nested.identify(path, contents=contents)


def _lines(content: bytes) -> tuple[str, ...] | None:
    """The lines of a text; None where it is binary."""
    if b"\0" in content[:8000]:
        return None
    rows = content.decode("utf-8", "replace").split("\n")
    if rows[-1] == "":
        rows.pop()
    return tuple(row.removesuffix("\r") for row in rows)


def _remember(memory: dict[tuple[str, str], Cached], key: tuple[str, str], value: Cached) -> None:
    """The newest few."""
    if len(memory) >= _REMEMBERED_AT_MOST:
        memory.pop(next(iter(memory)))
    memory[key] = value


def _from_project(git: Git, change: Change) -> Change:
    """A change whose paths are read from the top, read from the project."""
    prefix = git.at.prefix
    names = (change.path, change.old_path, change.within)
    path, old_path, within = (name.removeprefix(prefix) for name in names)
    return replace(change, path=path, old_path=old_path, within=within)


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())
