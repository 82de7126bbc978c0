"""Copies between an isolated git directory and the repository it borrows from: git stores no object that the repository has already.

There it may be nobody's: what was staged once and changed since is gone after the user's next `git gc --prune=now`, and
whoever is to give the user's file back needs it. So the room keeps what a snapshot has beyond a tree that cannot vanish.
"""

import os
import threading
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from code_intel_server.process import MEBIBYTE
from code_intel_server.workspace.git.child import Manner
from code_intel_server.workspace.git.isolated_directory import IsolatedGit
from code_intel_server.workspace.git.repository import split_z
from code_intel_server.workspace.tree.status import GITLINK

_AT_ONCE = 16 * MEBIBYTE
_LOOSE_AT_MOST = 100


def keep_borrowed(room: IsolatedGit, index: Path, kept: str, tree: str, big: int) -> None:
    """Copy into the room what `tree` has beyond the tree `kept` and only the repository stores; no content over `big` bytes."""
    if kept == tree:
        return
    differing = ("diff-tree", "-r", "-t", "-z", "--raw", "--no-abbrev", "--no-renames", kept, tree)
    done = room.run(*differing, index=index)
    if not done.ok:  # a partial clone that lacks trees of its commit
        return
    heads = (head.split() for head in split_z(done.stdout)[::2])
    found = {tree, *(words[3] for words in heads if words[1] not in {GITLINK, "000000"})}
    lent = sorted(oid for oid in found if not _place(room, oid).exists())
    if not lent:
        return
    asked = room.must("cat-file", "--batch-check", index=index, stdin=_lines(lent)).decode().splitlines()
    rows = (row.split() for row in asked)
    sizes = {row[0]: int(row[2]) for row in rows if len(row) == 3 and (row[1] == "tree" or int(row[2]) <= big)}
    for group in _groups(sizes):
        _copy(room, room.must("cat-file", "--batch", index=index, stdin=_lines(group)))


def store_in_repository(room: IsolatedGit, index: Path, oids: Iterable[str]) -> set[str]:
    """Store these contents of the room in the repository itself, for whoever keeps them by a ref; those that are there then."""
    asked = room.must("cat-file", "--batch-check", index=index, stdin=_lines(sorted(oids))).decode().splitlines()
    sizes = {row[0]: int(row[2]) for row in (row.split() for row in asked) if len(row) == 3}
    for group in _groups(sizes):
        pack = room.must("pack-objects", "-q", "--stdout", "--window=0", index=index, stdin=_lines(group))
        # Of many a pack: brought to the disk one by one they would take seconds.
        storing = ("unpack-objects", "-q") if len(group) <= _LOOSE_AT_MOST else ("index-pack", "--stdin")
        room.git.must(*storing, manner=Manner.OWN, stdin=pack)
    return {*sizes}


def _groups(sizes: dict[str, int]) -> Iterator[list[str]]:
    """The objects in groups of which each can be read at once."""
    group: list[str] = []
    left = _AT_ONCE
    for oid, size in sizes.items():
        if group and size > left:
            yield group
            group, left = [], _AT_ONCE
        group.append(oid)
        left -= size
    if group:
        yield group


def _copy(room: IsolatedGit, answer: bytes) -> None:
    """Store what `cat-file --batch` printed, each object as git stores one that is in no pack; none that vanished meanwhile."""
    at = 0
    while at < len(answer):
        start = answer.index(b"\n", at) + 1
        words = answer[at : start - 1].split()
        if len(words) != 3:
            at = start
            continue
        oid, kind, size = words
        at = start + int(size) + 1
        place = _place(room, oid.decode())
        place.parent.mkdir(exist_ok=True)
        fresh = place.with_name(f"tmp_obj_{os.getpid()}.{threading.get_ident()}")
        fresh.write_bytes(zlib.compress(b"%b %b\0" % (kind, size) + answer[start : at - 1], 1))
        fresh.replace(place)


def _place(room: IsolatedGit, oid: str) -> Path:
    return room.objects / oid[:2] / oid[2:]


def _lines(oids: Iterable[str]) -> bytes:
    return "".join(f"{oid}\n" for oid in oids).encode()
