"""What a commit holds otherwise than reviewed: by filters, by hooks, by somebody at that moment (SPEC 6)."""

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from code_intel_server.process import MEBIBYTE
from code_intel_server.workspace.atomic_writes import PLAIN, PROGRAM
from code_intel_server.workspace.git.child import is_yes
from code_intel_server.workspace.git.index_entries import IndexEntries, IndexEntry
from code_intel_server.workspace.git.isolated_directory import IsolatedGit
from code_intel_server.workspace.git.repository import DIFFERING, Git, join_z, split_z
from code_intel_server.workspace.tree.snapshot_index import hash_file

_LOOKED_INTO = 32 * MEBIBYTE
"""Content of a commit beyond is taken for altered wherever its id is another."""
_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:ext-\d-[\w.-]+ sha256:[0-9a-f]{64}\n)*"
    rb"oid sha256:(?P<oid>[0-9a-f]{64})\nsize (?P<size>\d{1,18})\n"
)
_IDENT = re.compile(rb"\$Id:[^$\n]*+\$")


@dataclass(frozen=True, slots=True)
class _Look:
    """What is compared of a content: its digest with line endings as line feeds, the same with `$Id$` as git stores it,
    and what it points to as a pointer."""

    digest: bytes
    bare: bytes
    pointer: tuple[str, int] | None
    itself: tuple[str, int]


class Alterations:
    """Compares a commit (of one parent) with a snapshot of which `index` is the private index file."""

    def __init__(self, git: Git, room: IsolatedGit, index: Path) -> None:
        self._git = git
        self._room = room
        self._index = index

    def of(self, commit: str, paths: Sequence[str], snapshot: str) -> tuple[str, ...]:
        """Those of `paths` whose content in the commit is not the snapshot's or that it lacks, and every other path it changes.

        One outside the project's folder comes with `../`. Line endings are no difference, nor is the expansion of `$Id$`
        under the attribute `ident`, nor a pointer of large file storage to the very content, nor the executable bit where the
        repository does not heed it. Content that was too big to be kept is read from disk, where it is still there as it was seen.
        """
        prefix = self._git.at.prefix
        changed = self._room.must(*DIFFERING, f"{commit}^", commit, index=self._index)
        touched = {os.path.relpath(path, prefix) if prefix else path for path in split_z(changed)}
        return (*self.among(commit, paths, snapshot), *sorted(touched - {*paths}))

    def among(self, commit: str, paths: Sequence[str], snapshot: str) -> tuple[str, ...]:
        """Those of `paths` whose content in the commit is not the snapshot's, or that one of them lacks; `of` says what is alike."""
        prefix = self._git.at.prefix
        stored = f"{commit}:{prefix}" if prefix else f"{commit}^{{tree}}"
        known = self._room.run("rev-parse", "--quiet", "--verify", "--end-of-options", stored, index=self._index)
        trees = [known.text().strip() if is_yes(known) else self._git.empty_tree(), snapshot]
        there, here = (IndexEntries(self._room.must("ls-tree", "-r", "-z", tree, index=self._index)) for tree in trees)
        differing = [path for path in sorted(set(paths)) if there.get(path) != here.get(path)]
        sides = {path: (there.get(path), here.get(path)) for path in differing}
        looks = dict(self._looks({entry.oid for both in sides.values() for entry in both if entry}))
        alike = {path for path, both in sides.items() if self._is_same_kind(*both)}
        other = [path for path, both in sides.items() if path not in alike or self._is_other(path, *both, looks)]
        expanded = self._expanded([path for path in other if path in alike and _is_bare(*sides[path], looks)])
        return tuple(path for path in other if path not in expanded)

    def _is_other(self, path: str, stored: IndexEntry | None, seen: IndexEntry | None, looks: dict[str, _Look]) -> bool:
        if stored is None or seen is None:
            return True
        committed = looks.get(stored.oid)
        if committed is None:
            return True
        reviewed = looks.get(seen.oid) or self._on_disk(path, seen)
        if reviewed is None:
            return True
        if committed.pointer is not None:
            return committed.pointer != reviewed.itself
        return committed.digest != reviewed.digest

    def _is_same_kind(self, stored: IndexEntry | None, seen: IndexEntry | None) -> bool:
        if stored is None or seen is None:
            return False
        return stored.mode == seen.mode or (
            {stored.mode, seen.mode} == {PROGRAM, PLAIN} and not self._git.heeds_executable_bit()
        )

    def _expanded(self, paths: list[str]) -> set[str]:
        """Those of the paths in which git expands `$Id$`."""
        if not paths:
            return set()
        stdin = join_z(self._git.at.prefix + path for path in paths)
        told = split_z(self._git.must("check-attr", "-z", "--stdin", "ident", stdin=stdin))
        return {path for path, value in zip(paths, told[2::3], strict=True) if value == "set"}

    def _on_disk(self, path: str, seen: IndexEntry) -> _Look | None:
        """What is compared of a file that was too big to be kept; None where it is not as it was seen any more."""
        file = self._git.at.top / f"{self._git.at.prefix}{path}"
        try:
            found = file.lstat()
            if not stat.S_ISREG(found.st_mode) or hash_file(file, found, self._git.hash_name()) != seen.oid:
                return None
            return _streamed(file)
        except OSError:
            return None

    def _looks(self, oids: Iterable[str]) -> Iterator[tuple[str, _Look]]:
        """What is compared, by id; nothing of what is not kept, no file, or too large."""
        headers = self._room.headers(oids, index=self._index)
        sizes = {oid: size for oid, (kind, size) in headers.items() if kind == "blob" and size <= _LOOKED_INTO}
        for oid, _, content in self._room.contents(sizes, index=self._index):
            found = _POINTER.fullmatch(content)
            pointer = (found["oid"].decode(), int(found["size"])) if found else None
            itself = (hashlib.sha256(content).hexdigest(), len(content))
            text = content.replace(b"\r\n", b"\n")
            digest = hashlib.sha256(text).digest()
            bare = hashlib.sha256(_IDENT.sub(b"$Id$", text)).digest() if b"$Id:" in text else digest
            yield oid, _Look(digest, bare, pointer, itself)


def _is_bare(stored: IndexEntry | None, seen: IndexEntry | None, looks: dict[str, _Look]) -> bool:
    """Whether what is stored is what was seen without the expansion of `$Id$`."""
    both = [looks.get(entry.oid) for entry in (stored, seen) if entry]
    return len(both) == 2 and both[0] is not None and both[1] is not None and both[0].digest == both[1].bare


def _streamed(file: Path) -> _Look:
    """What is compared of a file, read in pieces; it is no pointer, being too big for one. Raises OSError."""
    raw, lines, size, last = hashlib.sha256(), hashlib.sha256(), 0, b""
    with file.open("rb") as stream:
        while piece := stream.read(MEBIBYTE):
            raw.update(piece)
            size += len(piece)
            piece = last + piece
            last = b"\r" if piece.endswith(b"\r") else b""  # its line feed may be the next piece's first byte
            lines.update(piece.removesuffix(b"\r").replace(b"\r\n", b"\n"))
    lines.update(last)
    return _Look(lines.digest(), lines.digest(), None, (raw.hexdigest(), size))
