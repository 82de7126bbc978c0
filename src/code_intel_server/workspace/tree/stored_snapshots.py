"""The snapshots of a private store, read and compared; content that was too big to be kept has an id there and nothing else."""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from code_intel_server.errors import Unavailable
from code_intel_server.process import MEBIBYTE
from code_intel_server.workspace.git import diffs
from code_intel_server.workspace.git.child import is_yes, succeeded
from code_intel_server.workspace.git.isolated_directory import IsolatedGit
from code_intel_server.workspace.git.repository import ARGUMENT_BYTES, Git, nul_terminated, portions
from code_intel_server.workspace.tree import status
from code_intel_server.workspace.tree.snapshot_index import SnapshotIndex
from code_intel_server.workspace.values import Change

_MANY_PATHS = 200
_PATCH_BYTES = 24 * MEBIBYTE


@dataclass(frozen=True, slots=True)
class StoredSnapshots:
    """The store of one working tree: its isolated git directory `room`, and the private index in it."""

    git: Git
    room: IsolatedGit
    index: SnapshotIndex

    def is_there(self, snapshot: str) -> bool:
        """Whether the store has a snapshot."""
        exists = ("cat-file", "-e", snapshot)
        return (self.room.path / "HEAD").exists() and is_yes(self.room.run(*exists, index=self.index.path))

    def require(self, *snapshots: str) -> None:
        """Raise Unavailable('tool_errors.tree.snapshot_lost') for a snapshot that the store no longer has."""
        there = (self.room.path / "HEAD").exists()
        known = self.room.headers(snapshots, index=self.index.path) if there else {}
        for snapshot in snapshots if there else snapshots[:1]:
            if snapshot not in known:
                raise Unavailable("tool_errors.tree.snapshot_lost", snapshot=snapshot)

    def rows(self, snapshot: str, paths: Sequence[str]) -> list[tuple[str, str]]:
        """(mode, type and id; path) of those of the paths that a snapshot holds; raises as `require` does."""
        rows: list[tuple[str, str]] = []
        if len(paths) > _MANY_PATHS:  # git holds each entry against each path
            wanted = {*paths}
            listed = self.room.run("ls-tree", "-r", "-z", snapshot, index=self.index.path)
            if not listed.ok:
                self.require(snapshot)
            found = (row.partition("\t") for row in nul_terminated(succeeded(listed)))
            return [(head, path) for head, _, path in found if path in wanted]
        for names in portions(path for path in paths if path and path[0] != "/" and ".." not in path.split("/")):
            listed = self.room.run("ls-tree", "-z", snapshot, "--", *names, index=self.index.path)
            if not listed.ok:
                self.require(snapshot)
            found = (row.partition("\t") for row in nul_terminated(succeeded(listed)))
            rows += [(head, path) for head, _, path in found]
        return rows

    def links(self, snapshot: str, paths: Sequence[str]) -> dict[str, str]:
        """Those of the paths at which a snapshot holds a repository within, and by which id."""
        rows = self.rows(snapshot, paths)
        return {path: head.split()[2] for head, path in rows if head.startswith(status.GITLINK)}

    def blob(self, oid: str) -> bytes | None:
        """The content behind an id; None where it was too big to be kept. A git that fails is never taken for that."""
        return next((content for *_, content in self.room.contents({oid: 0}, index=self.index.path)), None)

    def blobs(self, oids: Collection[str]) -> Iterator[tuple[str, str, bytes]]:
        """Id, kind and content of those that are kept."""
        return self.room.contents(dict.fromkeys(oids, 0), index=self.index.path)

    def changes(self, old: str, new: str) -> tuple[Change, ...]:
        """Every path in which two trees differ, with hunks where both contents are there."""
        entries = self._entries(old, new, "--no-renames")
        sizes = self._sizes(entries)
        # Looking for similar files reads them; where some cannot be read only identical ones are renames.
        renames = "-M100%" if None in sizes.values() else "-M"
        if {"A", "D"} <= {entry.status for entry in entries}:
            entries = self._entries(old, new, renames)
        whole = [entry for entry in entries if None not in {sizes.get(entry.old_oid, 0), sizes.get(entry.new_oid, 0)}]
        patches: list[diffs.Patch] = []
        for limits in _portions(whole, sizes, everything=len(whole) == len(entries)):
            patches += diffs.parse_patches(self._diff("-p", "-U0", renames, "--full-index", old, new, *limits))
        changes = {change.path: change for change in diffs.join(whole, patches)}
        return tuple(changes.get(entry.path) or entry.unseen() for entry in entries)

    def differing(self, old: str, new: str) -> set[str]:
        """The paths in which two trees differ, told without reading any content."""
        return {entry.path for entry in self._entries(old, new, "--no-renames")}

    def _entries(self, old: str, new: str, renames: str) -> list[diffs.RawEntry]:
        return diffs.parse_raw(self._diff("--raw", "-z", "--no-abbrev", renames, old, new))

    def _diff(self, *options: str) -> bytes:
        fixed = ("diff-tree", "-r", "--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none")
        return self.room.must(*fixed, *options, index=self.index.path)

    def _sizes(self, entries: Sequence[diffs.RawEntry]) -> dict[str, int | None]:
        """Content → its size in bytes; None where it is neither in the room nor in the repository."""
        sides = [side for e in entries for side in ((e.old_mode, e.old_oid), (e.new_mode, e.new_oid))]
        asked = {
            oid for mode, oid in sides if mode not in {status.GITLINK, "000000"}
        }  # a submodule's commit is not read
        headers = self.room.headers(asked, index=self.index.path)
        return {oid: headers[oid][1] if oid in headers else None for oid in asked}


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
