"""The content of the project's files, hashed as git would, without running or changing anything (SPEC 4, 6.7).

A snapshot is a git tree id over the *raw* bytes of every tracked and every untracked, not ignored file, made through
the private index of an isolated git directory. New content is kept as objects of it, so two snapshots can be compared after
a restart; a file over `big` bytes is hashed as a stream and not stored.

Raw is compared with raw: where a checkout converts (line endings, filter drivers), `head_snapshot` gives what the
checkout gave, not what the commit stores.
"""

import os
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from code_intel_server.common.own_folder import FOLDER, SERVER_WRITES
from code_intel_server.errors import Unavailable
from code_intel_server.process import MEBIBYTE
from code_intel_server.workspace.git import diffs
from code_intel_server.workspace.git.borrowed_objects import store_in_repository
from code_intel_server.workspace.git.checkout import Checkout
from code_intel_server.workspace.git.child import is_yes, succeeded
from code_intel_server.workspace.git.index_entries import side_by_side
from code_intel_server.workspace.git.isolated_directory import RAW_ATTRIBUTES, IsolatedGit
from code_intel_server.workspace.git.repository import (
    ARGUMENT_BYTES,
    Git,
    Repository,
    is_oid,
    join_z,
    nul_terminated,
    open_readable,
    portions,
    split_z,
)
from code_intel_server.workspace.tree import status
from code_intel_server.workspace.tree.alterations import Alterations
from code_intel_server.workspace.tree.nested import Nested, owner
from code_intel_server.workspace.tree.snapshot_index import SnapshotIndex, discard_index, lstat, read_json, write_json
from code_intel_server.workspace.values import Beside, Change, ChangeKind

SERVER_PATHS = tuple(f"{FOLDER}/{name}" for name in SERVER_WRITES)
"""What our own server writes. What that of a project within this one writes counts: a folder of that name could hide anything."""

LEFT_BY_RUNS = ("__pycache__/", ".coverage", ".coverage.*")
"""What any run of Python or coverage leaves behind, whoever starts it: no change of anybody's, unless git tracks it."""

Cached = TypeVar("Cached")

BIG_BYTES = 8 * MEBIBYTE
STORE_LIMIT_BYTES = 256 * MEBIBYTE
_PATCH_BYTES = 24 * MEBIBYTE
_REMEMBERED_AT_MOST = 16
_REMEMBERED_BYTES = 256 * 1024
_NESTED_AT_MOST = 4


class TreeJudge:
    """Implements the `WorkTree` port. Safe to call from several threads; two processes do not disturb each other."""

    def __init__(self, root: Path, *, big: int = BIG_BYTES, depth: int = 0) -> None:
        self._root = root
        self._big = big
        self._depth = depth
        self._lock = threading.Lock()
        self._opened: tuple[Git, IsolatedGit, SnapshotIndex] | None = None
        self._nested: Nested[TreeJudge] | None = None
        # What two ids mean never changes, nor what a snapshot holds.
        self._compared: dict[tuple[str, str], tuple[Change, ...]] = {}
        self._held: dict[tuple[str, str], tuple[str, bytes | None]] = {}

    # -- the port ---------------------------------------------------------------------------------------------------

    def snapshot(self, *, contents: bool = False) -> str:
        """Identify the present content of all tracked and untracked (not ignored) files; '' without git.

        `contents`: read every file, also where its stamps say that nobody wrote it.
        """
        with self._lock:
            opened = self._open()
            return opened[2].update(contents=contents) if opened else ""

    def changes(self, old: str, new: str) -> tuple[Change, ...]:
        """What differs between two snapshots, renames found, hunks as `diff -U0`; '' is the empty tree.

        Raises Unavailable('tool_errors.tree.snapshot_lost') where the private store of a snapshot was deleted, and
        Unavailable('tool_errors.git.failed') where git failed.
        """
        with self._lock:
            opened = self._open()
        if opened is None or old == new:
            return ()
        known = self._compared.get((old, new))
        if known is not None:
            return known
        found = self._changes(opened, old, new)
        with self._lock:
            _remember(self._compared, (old, new), found)
        return found

    def _changes(self, opened: tuple[Git, IsolatedGit, SnapshotIndex], old: str, new: str) -> tuple[Change, ...]:
        git, room, index = opened
        _require(room, index, *filter(None, (old, new)))
        found = _Comparison(room, index, old or git.empty_tree(), new or git.empty_tree()).changes()
        within = [change.path for change in found if change.repository]
        if not within or self._nested is None:
            return found
        sides = [_links(room, index, snapshot, within) if snapshot else {} for snapshot in (old, new)]
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
        if content is None or b"\0" in content[:8000]:
            return None
        rows = content.decode("utf-8", "replace").split("\n")
        if rows[-1] == "":
            rows.pop()
        return tuple(row.removesuffix("\r") for row in rows)

    def exists(self, snapshot: str, path: str) -> bool:
        """Whether a path is a file, a link or a submodule of a snapshot. Raises as `changes` does."""
        return bool(self.oids(snapshot, [path]))

    def oids(self, snapshot: str, paths: Sequence[str]) -> dict[str, str]:
        """The object ids of those of `paths` that a snapshot holds. Raises as `changes` does."""
        with self._lock:
            opened = self._open()
        if opened is None or not snapshot or not paths:
            return {}
        _, room, index = opened
        found: dict[str, str] = {}
        for names in portions(paths):
            rows = _rows(room, index, snapshot, names)
            found |= {name: head.split()[2] for head, name in rows if name in set(names) and " tree " not in head}
        for path in paths if index.repositories() else ():
            if path not in found and (inside := self._inside(opened, snapshot, path)):
                judge, theirs, rest = inside
                if oid := judge.oids(theirs, [rest]).get(rest):
                    found[path] = oid
        return found

    def _inside(
        self, opened: tuple[Git, IsolatedGit, SnapshotIndex], snapshot: str, path: str
    ) -> "tuple[TreeJudge, str, str] | None":
        """Where a path lies in a repository within: its judge, its own snapshot, and the path there."""
        git, room, index = opened
        repository = owner(git.at.prefix + path, index.repositories())
        if not repository or self._nested is None:
            return None
        name = repository.removeprefix(git.at.prefix)
        oid = _links(room, index, snapshot, [name]).get(name)
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
        with self._lock:
            opened = self._open()
        if opened is None or not snapshot:
            return "", None
        _, room, index = opened
        heads = [head.split() for head, name in _rows(room, index, snapshot, [path]) if name == path]
        if not heads and (inside := self._inside(opened, snapshot, path)):
            return inside[0].held(inside[1], inside[2])
        if not heads or heads[0][1] != "blob":
            return "", None
        content = _blob(room, index, heads[0][2])
        if content is not None and len(content) <= _REMEMBERED_BYTES:
            with self._lock:
                _remember(self._held, (snapshot, path), (heads[0][0], content))
        return heads[0][0], content

    def altered(self, commit: str, paths: Sequence[str], snapshot: str) -> tuple[str, ...]:
        """What a commit (of one parent) holds otherwise than reviewed: by filters, by hooks, by somebody at that moment.

        See `Alterations.of`. Raises as `changes` does.
        """
        with self._lock:
            opened = self._open()
        if opened is None or not snapshot:
            return ()
        git, room, index = opened
        return Alterations(git, room, index.path).of(commit, paths, snapshot)

    def beside(self, commit: str, snapshot: str, paths: Collection[str]) -> Beside:
        """What stood, `paths` aside, otherwise on disk when `snapshot` was taken than in a checkout of `commit`, but for what is left out.

        Raises as `changes` does.
        """
        checkout = self.head_snapshot(commit)
        with self._lock:
            opened = self._open()
        if opened is None or not snapshot:
            return Beside()
        git, room, index = opened
        _require(room, index, snapshot)
        differing = _Comparison(room, index, checkout, snapshot).paths().difference(paths)
        there, committed = (self.oids(tree, sorted(differing)) for tree in (snapshot, checkout))
        gone = committed.keys() - there.keys()
        both = sorted(committed.keys() & there.keys())
        hidden = Alterations(git, room, index.path).among(commit, both, snapshot) if both else ()
        return Beside(tuple(sorted({*hidden, *gone})), tuple(sorted(there.keys() - committed.keys())))

    def left_out(self) -> tuple[str, ...]:
        """The files that git tracks and that the working tree lacked at the last snapshot, by a sparse checkout or a mark of the index.

        A snapshot holds them all the same: they are no change of anybody's.
        """
        with self._lock:
            opened = self._open()
            if opened is None:
                return ()
            git, _, index = opened
            return tuple(path.removeprefix(git.at.prefix) for path in index.left_out())

    def head_snapshot(self, commit: str) -> str:
        """The snapshot that a checkout of `commit` would have; remembered, since only a clean tree can tell it exactly."""
        with self._lock:
            opened = self._open()
            if opened is None or not commit:
                return ""
            git, room, index = opened
            memory = room.path / "heads.json"
            known = read_json(memory)
            snapshot = known.get(commit)
            if isinstance(snapshot, str) and is_oid(snapshot) and _is_there(room, index, snapshot):
                return snapshot
            index.update()
            made = Checkout(git, room, index).tree_of(commit)
            write_json(memory, {**known, commit: made})
            return made

    # -- beyond the port --------------------------------------------------------------------------------------------

    def as_committed(self, commit: str, old: str, new: str, without: Collection[str] = ()) -> tuple[str, str]:
        """What a checkout of `commit` holds, and of a commit upon it with what differs between two snapshots, but for some paths.

        Both are snapshots. Raises as `changes` does.
        """
        before = self.head_snapshot(commit)
        with self._lock:
            opened = self._open()
        if opened is None:
            raise Unavailable("tool_errors.git.failed", command="git write-tree", output="there is no repository")
        git, room, index = opened
        _require(room, index, *filter(None, (before, old, new)))
        scratch = room.path / f"index.committed.{os.getpid()}.{threading.get_ident()}"
        differing = ("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--ignore-submodules=none")
        try:
            room.must("read-tree", before, index=scratch)
            fields = nul_terminated(
                room.must(*differing, old or git.empty_tree(), new or git.empty_tree(), index=scratch)
            )
            rows = ((head.split(" "), path) for head, path in zip(fields, fields, strict=True))
            entries = [(path, head[1], self._committed(head[3])) for head, path in rows if path not in {*without}]
            lines = [f"{mode} {oid}\t{path}" for path, mode, oid in entries if oid]
            if lines:
                room.must("update-index", "-z", "--index-info", index=scratch, stdin=join_z(lines))
            return before, os.fsdecode(room.must("write-tree", "--missing-ok", index=scratch)).strip()
        finally:
            discard_index(scratch)

    def _committed(self, oid: str) -> str:
        """What a commit holds for the id of an entry: of a repository within its commit, '' where it has none."""
        return self._nested.commit_of(oid) if self._nested else oid

    def repository(self) -> Repository | None:
        """Where the repository is; None without git."""
        with self._lock:
            opened = self._open()
        return opened[0].at if opened else None

    def head(self) -> str:
        """The commit HEAD is at; '' where there is none."""
        with self._lock:
            opened = self._open()
        return opened[0].oid("HEAD") if opened else ""

    @property
    def objects(self) -> Path:
        """The folder with what snapshots hold and the repository does not."""
        with self._lock:
            opened = self._open()
        return opened[1].objects if opened else self._root

    def untracked(self) -> dict[str, str]:
        """Untracked, not ignored files of the project → git hash of their content."""
        with self._lock:
            opened = self._open()
            if opened is None:
                return {}
            git, _, index = opened
            index.update()
            both = side_by_side(index.entries().rows(), index.tracked.rows())
            return {path.removeprefix(git.at.prefix): e.oid for path, (e, tracked) in both if e and not tracked}

    def written_since(self, moment_ns: int) -> tuple[str, ...]:
        """The files of the last snapshot that somebody wrote, moved or touched after a moment (Unix time), whatever is in them now."""
        with self._lock:
            opened = self._open()
            if opened is None:
                return ()
            git, _, index = opened
            names = index.entries()
        top, linked = git.at.top, dict[str, bool]()
        looks = ((name, lstat(top, name, linked)) for name in names)
        return tuple(name.removeprefix(git.at.prefix) for name, look in looks if look and look.st_ctime_ns > moment_ns)

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
        with self._lock:
            opened = self._open()
        if opened is None or not snapshot:
            return {}
        _, room, index = opened
        wanted = set(paths)
        rows = ((head.split(), name) for names in portions(paths) for head, name in _rows(room, index, snapshot, names))
        found = {name: (head[0], head[2]) for head, name in rows if name in wanted and head[1] == "blob"}
        there = store_in_repository(room, index.path, {oid for _, oid in found.values()})
        return {name: entry for name, entry in found.items() if entry[1] in there}

    def uncommitted(self, snapshot: str, commit: str, paths: Sequence[str]) -> tuple[str, ...]:
        """Those of `paths` that a snapshot held otherwise than a checkout of `commit`: untracked, or with changes.

        Not what the commit holds under a filter driver: only the driver could tell. Raises as `changes` does.
        """
        had, committed = self.oids(snapshot, paths), self.oids(self.head_snapshot(commit), paths)
        own = [path for path in paths if path in had and had[path] != committed.get(path)]
        with self._lock:
            opened = self._open()
        tracked = [path for path in own if path in committed]
        if opened is None or not tracked:
            return tuple(own)
        git = opened[0]
        stdin = join_z(git.at.prefix + path for path in tracked)
        told = split_z(git.must("check-attr", "-z", "--stdin", "filter", stdin=stdin))[2::3]
        driven = {path for path, value in zip(tracked, told, strict=True) if value not in {"unspecified", "unset"}}
        return tuple(path for path in own if path not in driven)

    def forget(self) -> None:
        """Throw the private index and objects away: no snapshot made so far can be compared afterwards."""
        with self._lock:
            opened = self._open()
            if opened:
                opened[1].empty()
            self._opened = None
            self._compared.clear()
            self._held.clear()

    def follow_ignored(self) -> None:
        """At the start of a session: leave out what the user has git ignore now. A line added later hides nothing."""
        with self._lock:
            opened = self._open()
            if opened:
                opened[1].follow()

    def tidy(self) -> None:
        """Between sessions: drop what is only true within one, and everything where the private store has outgrown its limit.

        Cheaper than `forget`, which makes the next snapshot read every file again.
        """
        with self._lock:
            opened = self._open()
            if opened:
                (opened[1].path / "heads.json").unlink(missing_ok=True)
                if self._nested is not None:
                    self._nested.tidy()
        if opened and _size(opened[1].objects) > STORE_LIMIT_BYTES:
            self.forget()

    def _open(self) -> tuple[Git, IsolatedGit, SnapshotIndex] | None:
        if self._opened is None:
            git = open_readable(self._root)
            if isinstance(git, str):
                return None
            excluded = tuple(git.at.prefix + path for path in SERVER_PATHS)
            room = IsolatedGit(git, "tree", RAW_ATTRIBUTES, excluded, LEFT_BY_RUNS, lasting=True)
            room.prepare()
            self._nested = Nested(git, room.path / "nested.json", self._judge_of)
            index = SnapshotIndex(git, room, self._identify, excluded=excluded, big=self._big)
            self._opened = (git, room, index)
        return self._opened

    def _judge_of(self, root: Path) -> "TreeJudge":
        return TreeJudge(root, big=self._big, depth=self._depth + 1)

    def _identify(self, path: str, contents: bool) -> str:
        return self._nested.identify(path, contents=contents) if self._nested and self._depth < _NESTED_AT_MOST else ""


def _remember(memory: dict[tuple[str, str], Cached], key: tuple[str, str], value: Cached) -> None:
    """The newest few."""
    if len(memory) >= _REMEMBERED_AT_MOST:
        memory.pop(next(iter(memory)))
    memory[key] = value


class _Comparison:
    """Compares two trees of which some content may not have been kept because it was too big."""

    def __init__(self, room: IsolatedGit, index: SnapshotIndex, old: str, new: str) -> None:
        self._room = room
        self._index = index
        self._trees = (old, new)

    def changes(self) -> tuple[Change, ...]:
        """Every differing path, with hunks where both contents are there."""
        entries = diffs.parse_raw(self._diff("--raw", "-z", "--no-abbrev", "--no-renames"))
        sizes = self._sizes(entries)
        # Looking for similar files reads them; where some cannot be read only identical ones are renames.
        renames = "-M100%" if None in sizes.values() else "-M"
        if {"A", "D"} <= {entry.status for entry in entries}:
            entries = diffs.parse_raw(self._diff("--raw", "-z", "--no-abbrev", renames))
        whole = [entry for entry in entries if None not in {sizes.get(entry.old_oid, 0), sizes.get(entry.new_oid, 0)}]
        patches: list[diffs.Patch] = []
        for limits in _portions(whole, sizes, everything=len(whole) == len(entries)):
            patches += diffs.parse_patches(self._diff("-p", "-U0", renames, "--full-index", limits=limits))
        changes = {change.path: change for change in diffs.join(whole, patches)}
        return tuple(changes.get(entry.path) or entry.unseen() for entry in entries)

    def paths(self) -> set[str]:
        """The paths that differ, told without reading any content."""
        return {entry.path for entry in diffs.parse_raw(self._diff("--raw", "-z", "--no-abbrev", "--no-renames"))}

    def _diff(self, *options: str, limits: Sequence[str] = ()) -> bytes:
        fixed = ("diff-tree", "-r", "--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none")
        return self._room.must(*fixed, *options, *self._trees, *limits, index=self._index.path)

    def _sizes(self, entries: Sequence[diffs.RawEntry]) -> dict[str, int | None]:
        """Content → its size in bytes; None where it is neither in the room nor in the repository."""
        sides = [side for e in entries for side in ((e.old_mode, e.old_oid), (e.new_mode, e.new_oid))]
        asked = {
            oid for mode, oid in sides if mode not in {status.GITLINK, "000000"}
        }  # nobody reads a submodule's commit
        stdin = "".join(f"{oid}\n" for oid in sorted(asked)).encode()
        rows = self._room.must("cat-file", "--batch-check", index=self._index.path, stdin=stdin).decode().splitlines()
        words = (row.split(" ") for row in rows)
        return {oid: int(rest[1]) if len(rest) == 2 else None for oid, *rest in words}


def _is_there(room: IsolatedGit, index: SnapshotIndex, snapshot: str) -> bool:
    return (room.path / "HEAD").exists() and is_yes(room.run("cat-file", "-e", snapshot, index=index.path))


def _require(room: IsolatedGit, index: SnapshotIndex, *snapshots: str) -> None:
    """Raise Unavailable('tool_errors.tree.snapshot_lost') for a snapshot that the private store no longer has."""
    if not (room.path / "HEAD").exists():
        raise Unavailable("tool_errors.tree.snapshot_lost", snapshot=snapshots[0])
    asked = "".join(f"{snapshot}\n" for snapshot in snapshots).encode()
    for row in room.must("cat-file", "--batch-check", index=index.path, stdin=asked).decode().splitlines():
        if row.endswith(" missing"):
            raise Unavailable("tool_errors.tree.snapshot_lost", snapshot=row.removesuffix(" missing"))


def _rows(room: IsolatedGit, index: SnapshotIndex, snapshot: str, paths: Sequence[str]) -> list[tuple[str, str]]:
    """(mode, type and id; path) of those of the paths that a snapshot holds; raises as `_require` does."""
    inside = [path for path in paths if path and path[0] != "/" and ".." not in path.split("/")]
    if not inside:
        return []
    listed = room.run("ls-tree", "-z", snapshot, "--", *inside, index=index.path)
    if not listed.ok:
        _require(room, index, snapshot)
    rows = (row.partition("\t") for row in nul_terminated(succeeded(listed)))
    return [(head, path) for head, _, path in rows]


def _links(room: IsolatedGit, index: SnapshotIndex, snapshot: str, paths: Sequence[str]) -> dict[str, str]:
    """Those of the paths at which a snapshot holds a repository within, and by which id."""
    rows = [row for names in portions(paths) for row in _rows(room, index, snapshot, names)]
    return {path: head.split()[2] for head, path in rows if head.startswith(status.GITLINK)}


def _from_project(git: Git, change: Change) -> Change:
    """A change whose paths are read from the top, read from the project."""
    prefix = git.at.prefix
    names = (change.path, change.old_path, change.within)
    path, old_path, within = (name.removeprefix(prefix) for name in names)
    return replace(change, path=path, old_path=old_path, within=within)


def _blob(room: IsolatedGit, index: SnapshotIndex, oid: str) -> bytes | None:
    """The content behind an id; None where it was too big to be kept. A git that fails is never taken for that."""
    answer = room.must("cat-file", "--batch", index=index.path, stdin=f"{oid}\n".encode())
    head, _, content = answer.partition(b"\n")
    return None if head.endswith(b" missing") else content[: int(head.split()[2])]


def _portions(
    entries: Sequence[diffs.RawEntry], sizes: Mapping[str, int | None], *, everything: bool
) -> list[tuple[str, ...]]:
    """Path arguments for the patches of these entries, so that no command line and no patch grows too long.

    One portion without paths where `everything` that differs is wanted and small.
    """
    costs = [(sizes.get(entry.old_oid) or 0) + (sizes.get(entry.new_oid) or 0) for entry in entries]
    if everything and sum(costs) <= _PATCH_BYTES:
        return [()]
    groups: list[list[str]] = []
    left = letters = 0
    for entry, cost in zip(entries, costs, strict=True):
        names = [name for name in (entry.path, entry.old_path) if name]
        length = sum(len(os.fsencode(name)) + 1 for name in names)
        if not groups or cost > left or length > letters:
            groups.append([])
            left, letters = _PATCH_BYTES, ARGUMENT_BYTES
        groups[-1] += names
        left, letters = left - cost, letters - length
    return [("--", *names) for names in groups]


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())
