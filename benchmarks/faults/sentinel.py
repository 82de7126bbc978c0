"""What a user has, hashed: every file, the index, refs, stash and reflogs; and what the server has said yes to (SPEC 6, 7)."""

import hashlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.driver import Fields, git

OURS = (".code-intel", ".git")


@dataclass(frozen=True, slots=True)
class Sentinel:
    """A repository as its user sees it. Taken before a fault and after, it tells what changed and what was lost."""

    files: Mapping[str, str]
    """Path → git blob id of the content (of the target for a link), with the kind before it."""
    index: str
    refs: Mapping[str, str]
    """Every ref that is not ours, HEAD among them (`ref: …` or an id)."""
    reflogs: frozenset[str]
    """Every object id that a reflog (the stash's too) names."""

    @classmethod
    def of(cls, root: Path) -> "Sentinel":
        """The state of the repository at `root`."""
        return cls(_files(root), git(root, "ls-files", "-s", "-t"), _refs(root), _reflogs(root))

    def changed(self, after: "Sentinel") -> list[str]:
        """What is not as it was, each named."""
        rows = [f"file {name}" for name in _different(self.files, after.files)]
        rows += [f"ref {name}" for name in _different(self.refs, after.refs)]
        rows += ["index"] if self.index != after.index else []
        return rows + (["reflog"] if not self.reflogs <= after.reflogs else [])

    def lost(self, root: Path) -> list[str]:
        """What can no longer be reached: content that is neither on disk nor under any ref or reflog (P2)."""
        now = _files(root)
        reachable = set(git(root, "rev-list", "--objects", "--no-object-names", "--all", "--reflog").split())
        on_disk = {entry.partition(" ")[2] for entry in now.values()}
        kept = reachable | on_disk
        files = [f"file {name}" for name, entry in self.files.items() if entry.partition(" ")[2] not in kept]
        staged = [line for line in self.index.splitlines() if line.split()[2] not in kept]
        ids = {oid for oid in self.refs.values() if not oid.startswith("ref:")} | self.reflogs
        return [*files, *(f"index {line}" for line in staged), *(f"commit {oid}" for oid in sorted(ids - reachable))]


def _files(root: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for folder, folders, names in os.walk(root):
        if Path(folder) == root:
            folders[:] = [name for name in folders if name not in OURS]
        for name in [*names, *(f for f in folders if Path(folder, f).is_symlink())]:
            path = Path(folder, name)
            mode = path.lstat().st_mode
            content = os.fsencode(path.readlink()) if stat.S_ISLNK(mode) else path.read_bytes()
            blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
            kind = "link" if stat.S_ISLNK(mode) else "exec" if mode & 0o100 else "file"
            found[path.relative_to(root).as_posix()] = f"{kind} {blob}"
    return found


def _refs(root: Path) -> dict[str, str]:
    rows = git(root, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    refs = dict(row.split(" ", 1) for row in rows if not row.startswith(("refs/code-intel/", "refs/heads/llm_task_")))
    return refs | {"HEAD": (root / ".git" / "HEAD").read_text().strip()}


def _reflogs(root: Path) -> frozenset[str]:
    ids: set[str] = set()
    for log in (root / ".git" / "logs").rglob("*"):
        if log.is_file() and "code-intel" not in log.parts:
            ids |= {word for line in log.read_text().splitlines() for word in line.split()[:2]}
    return frozenset(oid for oid in ids if set(oid) != {"0"})


def _different(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


@dataclass(slots=True)
class Acknowledged:
    """The model of P1: where the last yes of the server led, and where the submit without an answer may have led.

    `road` is what the same session answered without faults: the phase and step before each move and at the end.
    """

    road: list[tuple[str, int]]
    at: int = 0
    in_flight: bool = False
    violations: list[str] = field(default_factory=list)

    def sending(self) -> None:
        """A move begins; until its answer is read it may or may not have happened."""
        self.in_flight = True

    def answered(self, answer: Fields) -> None:
        """The server said yes: from here on nothing may undo it."""
        self.at += 1
        self.in_flight = False
        self._expect(answer, {self.road[self.at]}, "answered")

    def restored(self, status: Fields) -> None:
        """A new process restored the session: it stands where it was acknowledged, or one move on."""
        allowed = {self.road[self.at]}
        if self.in_flight and self.at + 1 < len(self.road):
            allowed.add(self.road[self.at + 1])
        self._expect(status, allowed, "restored")

    def _expect(self, answer: Fields, allowed: set[tuple[str, int]], what: str) -> None:
        place = (str(answer.get("phase")), int(answer.get("step") or 0))
        if place not in allowed:
            self.violations.append(f"{what} at {place}, expected {sorted(allowed)}")
