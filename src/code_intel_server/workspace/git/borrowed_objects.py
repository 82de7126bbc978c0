"""Copies between an isolated git directory and the repository it borrows from: git stores no object that the repository has already.

There it may be nobody's: what was staged once and changed since is gone after the user's next `git gc --prune=now`, and
whoever is to give the user's file back needs it. So the room keeps what a snapshot has beyond a tree that cannot vanish.
"""

import os
import threading
import zlib
from collections.abc import Iterable
from pathlib import Path

from code_intel_server.workspace.git.child import Manner
from code_intel_server.workspace.git.isolated_directory import IsolatedGit, id_lines, in_groups
from code_intel_server.workspace.git.repository import split_z
from code_intel_server.workspace.tree.status import GITLINK

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
    headers = room.headers(lent, index=index)
    sizes = {oid: size for oid, (kind, size) in headers.items() if kind == "tree" or size <= big}
    for oid, kind, content in room.contents(sizes, index=index):
        _store(_place(room, oid), b"%b %d\0" % (kind.encode(), len(content)) + content)


def store_in_repository(room: IsolatedGit, index: Path, oids: Iterable[str]) -> set[str]:
    """Store these contents of the room in the repository itself, for whoever keeps them by a ref; those that are there then."""
    sizes = {oid: size for oid, (_, size) in room.headers(oids, index=index).items()}
    for group in in_groups(sizes):
        pack = room.must("pack-objects", "-q", "--stdout", "--window=0", index=index, stdin=id_lines(group))
        # Of many a pack: brought to the disk one by one they would take seconds.
        storing = ("unpack-objects", "-q") if len(group) <= _LOOSE_AT_MOST else ("index-pack", "--stdin")
        room.git.must(*storing, manner=Manner.OWN, stdin=pack)
    return {*sizes}


def _store(place: Path, content: bytes) -> None:
    """Store an object as git stores one that is in no pack."""
    place.parent.mkdir(exist_ok=True)
    fresh = place.with_name(f"tmp_obj_{os.getpid()}.{threading.get_ident()}")
    fresh.write_bytes(zlib.compress(content, 1))
    fresh.replace(place)


def _place(room: IsolatedGit, oid: str) -> Path:
    return room.objects / oid[:2] / oid[2:]
