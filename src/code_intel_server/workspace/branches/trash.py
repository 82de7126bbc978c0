"""What sessions have shelved: list it, bring it back, let go of what is old (`code-intel-server trash`, SPEC 6.1)."""

import contextlib
import itertools
import json
import os
import shlex
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from code_intel_server.errors import Rejected, UserActionNeeded
from code_intel_server.workspace.branches import archive_refs
from code_intel_server.workspace.branches.archive_refs import ArchiveKind
from code_intel_server.workspace.branches.base_branches import BaseRecord, is_branch_name, read_base, record_change
from code_intel_server.workspace.branches.refusals import refuse
from code_intel_server.workspace.git.repository import (
    ARCHIVE,
    DIFFERING,
    HEADS,
    Git,
    RefChange,
    is_oid,
    open_repository,
    split_z,
)

KEEP_DAYS = 90
_DAY_SECONDS = 86400
_NOTHING = ("", "")
_FORMAT = "%00".join(("%(refname)", "%(objectname)", "%(*objectname)", "%(taggerdate:unix)", "%(contents:subject)"))


@dataclass(frozen=True, slots=True)
class TrashEntry:
    """One archive ref: what it holds, of which session, since when (seconds of the epoch)."""

    ref: str
    kind: ArchiveKind
    session_id: str
    created: int
    commit: str
    branch: str
    base: str
    base_oid: str


@dataclass(frozen=True, slots=True)
class Restored:
    """What came back: a branch, or files; `hint` is what to type next."""

    branch: str = ""
    files: tuple[str, ...] = ()
    hint: str = ""


class Trash:
    """The archive of the repository at `root`; raises UserActionNeeded('tool_errors.git.not_a_repository') without git."""

    def __init__(self, root: Path) -> None:
        git = open_repository(root)
        if isinstance(git, str):
            raise refuse("not_a_repository", git)
        self._git: Git = git

    def entries(self) -> tuple[TrashEntry, ...]:
        """Everything that is kept, the newest first."""
        out = self._git.must("for-each-ref", f"--format={_FORMAT}", ARCHIVE)
        rows = [_entry(os.fsdecode(line)) for line in out.split(b"\n") if line]
        return tuple(sorted(rows, key=lambda row: (-row.created, row.ref)))

    def restore(self, ref: str) -> Restored:
        """Bring one entry back: its branch, or its files where nothing of the user's is in their way.

        Raises Rejected('tool_errors.trash.unknown') for no such entry, UserActionNeeded('tool_errors.trash.in_the_way')
        with `files`; nothing has changed then. The entry stays.
        """
        entry = next((row for row in self.entries() if row.ref in {ref, ARCHIVE + ref}), None)
        if entry is None:
            raise Rejected("tool_errors.trash.unknown", ref=ref)
        if entry.kind is ArchiveKind.BRANCH:
            return self._restore_branch(entry)
        if entry.kind is ArchiveKind.STAGED:
            command = shlex.join(["git", "restore", "--staged", f"--source={entry.ref}", "--", "."])
            return Restored(hint=command)
        return self._restore_files(entry)

    def purge(
        self, *, older_than_days: float = KEEP_DAYS, refs: Sequence[str] | None = None, now: float | None = None
    ) -> tuple[str, ...]:
        """Drop entries older than that (or exactly `refs`, whatever their age) and return their refs."""
        limit = (time.time() if now is None else now) - older_than_days * _DAY_SECONDS
        present = self._git.refs(ARCHIVE)
        old = [row.ref for row in self.entries() if row.created <= limit]
        doomed = [ref for ref in (old if refs is None else refs) if ref in present]
        if doomed:
            self._git.transact([RefChange(ref, present[ref], "") for ref in doomed], reason="code-intel: purged")
        return tuple(doomed)

    def _restore_branch(self, entry: TrashEntry) -> Restored:
        wanted = entry.branch if is_branch_name(self._git, entry.branch) else f"restored-{entry.session_id}"
        name = self._free_name(wanted, entry.commit)
        changes = []
        if not self._git.oid(HEADS + name):
            changes.append(RefChange(HEADS + name, "", entry.commit))
        if entry.base and is_oid(entry.base_oid) and read_base(self._git, name) is None:
            changes.append(record_change(self._git, name, BaseRecord(entry.base, entry.base_oid)))
        if changes:
            self._git.transact(changes, reason=f"branch: restored from {entry.ref}")
        return Restored(branch=name, hint=shlex.join(["git", "switch", name]))

    def _free_name(self, wanted: str, commit: str) -> str:
        """The name itself where it is free (or holds this very commit), else with a number."""
        number, name = 1, wanted
        while self._git.oid(HEADS + name) not in {"", commit}:
            number += 1
            name = f"{wanted}-{number}"
        return name

    def _restore_files(self, entry: TrashEntry) -> Restored:
        """A file comes back where nothing is, or where a version is that it was put back to, or that is itself kept."""
        before = f"{entry.commit}^"
        paths = split_z(self._git.must(*DIFFERING, before, entry.commit))
        kept = archive_refs.tree_entries(self._git, entry.commit, paths)
        known = [kept, archive_refs.tree_entries(self._git, before, paths), *self._later(entry, paths)]
        present = {path: archive_refs.entry_at(self._git, path) for path in paths}
        wanted = [
            path for path in paths if not archive_refs.is_same(self._git, present[path], kept.get(path, _NOTHING))
        ]
        going = set(wanted) - kept.keys()
        hits = [
            path
            for path in wanted
            if present[path][1] not in {"", *(entries.get(path, _NOTHING)[1] for entries in known)}
            or (not present[path][1] and self._stays(path, going))
            or archive_refs.blocked(self._git.at.top, path, going)
        ]
        if hits:
            raise UserActionNeeded("tool_errors.trash.in_the_way", details={"files": hits}, files=", ".join(hits[:20]))
        for path in going:
            self._remove(path)
        back = [path for path in wanted if path in kept]
        done = {*archive_refs.write_back(self._git, entry.commit, back, replace=wanted), *going}
        return Restored(files=tuple(path for path in wanted if path in done), hint="git status")

    def _later(self, entry: TrashEntry, paths: Sequence[str]) -> list[dict[str, tuple[str, str]]]:
        """What the user's files had become, of which the entry holds the earlier versions: it was shelved on top of them."""
        if entry.kind is not ArchiveKind.EARLIER:
            return []
        same = (row for row in self.entries() if row.kind is ArchiveKind.WORK and row.session_id == entry.session_id)
        return [archive_refs.tree_entries(self._git, row.commit, paths) for row in same]

    def _stays(self, path: str, removed: Collection[str]) -> bool:
        """Whether what is at a path, being neither file nor link, is still there without the removed files."""
        place = self._git.at.top / path
        if not place.is_dir():
            return os.path.lexists(place)
        inside = (Path(folder, name) for folder, _, names in os.walk(place) for name in names)
        return any(file.relative_to(self._git.at.top).as_posix() not in removed for file in inside)

    def _remove(self, path: str) -> None:
        """A file and the folders that are empty without it."""
        place = self._git.at.top / path
        place.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            for folder in itertools.takewhile(lambda folder: folder != self._git.at.top, place.parents):
                folder.rmdir()


def _entry(line: str) -> TrashEntry:
    ref, oid, tagged, date, subject = line.split("\0")
    facts = _facts(subject)
    session, _, name = ref.removeprefix(ARCHIVE).rpartition("/")
    kind = name.rpartition("-")[2]
    return TrashEntry(
        ref,
        ArchiveKind(kind) if kind in set(ArchiveKind) else ArchiveKind.WORK,
        facts.get("session", session),
        int(date or 0),
        tagged or oid,
        facts.get("branch", ""),
        facts.get("base", ""),
        facts.get("base_oid", ""),
    )


def _facts(subject: str) -> dict[str, str]:
    """The JSON in a tag's message; nothing where it makes no sense (anybody may write refs)."""
    try:
        value = json.loads(subject)
    except (ValueError, RecursionError):
        return {}
    return {key: text for key, text in value.items() if isinstance(text, str)} if isinstance(value, dict) else {}
