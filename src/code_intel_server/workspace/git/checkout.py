"""What a checkout of a commit gives, worked out without one."""

import threading

from code_intel_server.workspace.git.index_entries import IndexEntries, IndexEntry, side_by_side
from code_intel_server.workspace.git.isolated_directory import IsolatedGit, scratch_index
from code_intel_server.workspace.git.repository import Git, join_z
from code_intel_server.workspace.tree import status
from code_intel_server.workspace.tree.snapshot_index import SnapshotIndex

_CONVERT_AT_MOST = 500


class Checkout:
    """Works out the raw content a checkout of a commit gives, without a filter driver."""

    def __init__(self, git: Git, room: IsolatedGit, index: SnapshotIndex) -> None:
        self._git = git
        self._room = room
        self._index = index

    def tree_of(self, commit: str) -> str:
        """A snapshot id.

        A file that is unchanged since its checkout is on disk as checked out. For the others git converts line
        endings itself; what only a filter driver could tell stays as the commit stores it.
        """
        tree = self._git.project_tree(commit)
        stored = IndexEntries(self._room.must("ls-tree", "-r", "-z", tree, index=self._index.path))
        prefix = self._git.at.prefix
        changed = status.unstaged(self._git, marked=True)
        wanted: dict[str, IndexEntry | None] = {}
        unsure = []
        sides = side_by_side(stored.rows(below=prefix), self._index.entries().rows(), self._index.tracked.rows())
        for full, (entry, raw, tracked) in sides:
            path = full[len(prefix) :]
            if entry is None:
                continue
            if self._index.is_excluded(full):
                wanted[path] = None
            elif raw and tracked and tracked.oid == entry.oid and full not in changed:
                if raw.oid != entry.oid:
                    wanted[path] = IndexEntry(entry.mode, raw.oid)
            elif entry.mode.startswith("100"):
                unsure.append(path)
        if self._converts():
            wanted |= {path: self._converted(path, stored[path]) for path in unsure[:_CONVERT_AT_MOST]}
        return self._edited(tree, {path: new for path, new in wanted.items() if new != stored[path]})

    def _converts(self) -> bool:
        config = self._git.config()
        eager = config.get("core.autocrlf", "false").lower() not in {"false", "no", "off", "0"}
        attributes = (self._git.at.common_dir / "info" / "attributes", self._git.at.top / ".gitattributes")
        return eager or any(path.exists() for path in attributes)

    def _converted(self, path: str, entry: IndexEntry) -> IndexEntry:
        room = status.isolated_status(self._git)
        room.prepare()
        full = self._git.at.prefix + path
        user_index = status.user_index(self._git)
        done = room.run("cat-file", "--filters", f"--path={full}", entry.oid, index=user_index)
        if not done.ok:
            return entry
        storing = ("hash-object", "-w", "--stdin", "--no-filters")
        oid = self._room.must(*storing, index=self._index.path, stdin=done.stdout).decode().strip()
        return IndexEntry(entry.mode, oid)

    def _edited(self, tree: str, edits: dict[str, IndexEntry | None]) -> str:
        if not edits:
            return tree
        zero = self._git.zero()
        rows = [f"{e.mode} {e.oid}\t{path}" if e else f"0 {zero}\t{path}" for path, e in edits.items()]
        with scratch_index(self._room.path / f"index.head.{threading.get_ident()}") as scratch:
            self._room.must("read-tree", tree, index=scratch)
            self._room.must("update-index", "-z", "--index-info", index=scratch, stdin=join_z(rows))
            return self._room.must("write-tree", "--missing-ok", index=scratch).decode().strip()
