"""Reads what `git diff-tree` prints: which paths differ, how, and in which lines."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from code_intel_server.workspace.tree.status import GITLINK
from code_intel_server.workspace.values import Change, ChangeKind, Hunk

_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_KINDS = {"A": ChangeKind.ADDED, "D": ChangeKind.DELETED, "R": ChangeKind.RENAMED, "C": ChangeKind.ADDED}


@dataclass(frozen=True, slots=True)
class RawEntry:
    """One line of `--raw -z`: modes and ids before and after, the status letter, the path(s)."""

    old_mode: str
    new_mode: str
    old_oid: str
    new_oid: str
    status: str
    path: str
    old_path: str = ""

    @property
    def patches(self) -> int:
        """How many `diff --git` sections this entry has: a change of type is printed as a deletion and a creation."""
        return 2 if self.status == "T" else 1

    def change(self) -> Change:
        """The entry as the flow knows it, without lines."""
        kind = _KINDS.get(self.status, ChangeKind.MODIFIED)
        if self.status == "M" and self.old_oid == self.new_oid:
            kind = ChangeKind.MODE
        gone = self.status == "D"
        old_path = self.old_path if self.status == "R" else ""
        link = self.new_mode == "120000"
        other = self.status in "MRT" and self.old_mode != self.new_mode
        modes = (self.old_mode, self.new_mode) if other else None
        oid = "" if gone else self.new_oid
        within = GITLINK in {self.old_mode, self.new_mode}
        return Change(self.path, kind, old_path=old_path, oid=oid, link=link, modes=modes, repository=within)

    def unseen(self) -> Change:
        """The entry where the content itself was not kept: no lines can be known."""
        return replace(self.change(), binary=True)


def parse_raw(output: bytes) -> list[RawEntry]:
    """The entries of `diff-tree -r -z --raw --no-abbrev`."""
    fields = iter(output.split(b"\0"))
    entries = []
    for head in fields:
        if not head.startswith(b":"):
            continue
        old_mode, new_mode, old_oid, new_oid, status = head[1:].decode().split(" ")
        first = os.fsdecode(next(fields))
        second = os.fsdecode(next(fields)) if status[0] in "RC" else ""
        entries.append(
            RawEntry(old_mode, new_mode, old_oid, new_oid, status[0], second or first, first if second else "")
        )
    return entries


@dataclass(frozen=True, slots=True)
class Patch:
    """One `diff --git` section of `-U0` output."""

    hunks: tuple[Hunk, ...] = ()
    binary: bool = False


def parse_patches(output: bytes) -> list[Patch]:
    """The sections of `diff-tree -p -U0` in the order printed.

    Content is skipped by the counts of its hunk header, so a changed line that itself reads like a header misleads nobody.
    """
    patches: list[Patch] = []
    lines = iter(output.split(b"\n"))
    for line in lines:
        if line.startswith(b"diff --git "):
            patches.append(Patch())
        elif line.startswith(b"Binary files ") and patches:
            patches[-1] = replace(patches[-1], binary=True)
        elif patches and (found := _HUNK.match(line)):
            old_start, old_count, new_start, new_count = (int(n) if n is not None else 1 for n in found.groups())
            _skip(lines, old_count + new_count)
            hunk = Hunk(old_start, old_count, new_start, new_count)
            patches[-1] = replace(patches[-1], hunks=(*patches[-1].hunks, hunk))
    return patches


def join(entries: list[RawEntry], patches: list[Patch]) -> tuple[Change, ...]:
    """Entries and their sections, which git prints in the same order, as changes."""
    rest = iter(patches)
    changes = []
    for entry in entries:
        own = [next(rest, Patch()) for _ in range(entry.patches)]
        changes.append(
            replace(
                entry.change(),
                binary=any(patch.binary for patch in own),
                hunks=tuple(hunk for patch in own for hunk in patch.hunks),
            )
        )
    return tuple(changes)


def _skip(lines: Iterator[bytes], count: int) -> None:
    """Pass over `count` content lines; the remark about a missing newline at the end of a file is none."""
    while count > 0:
        line = next(lines, None)
        if line is None:
            return
        count -= not line.startswith(b"\\")
