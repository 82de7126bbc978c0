"""What set-up writes into a project, and takes out again: planned as a whole, then applied, remembered in a manifest.

Files of ours (prompts, skills, configuration) are written whole; into files of the user's (`.mcp.json`, settings, hooks,
Codex's config.toml) only our entries are merged. `.code-intel/manifest.json` remembers the hash of what was written, and
`.code-intel/cache/before-init/` the bytes that were there before, so that

- a second run updates what nobody edited and lays a new default next to what somebody did (`*.new`),
- `--uninstall` brings back the bytes from before where nothing else changed them, and takes out only our entries where it did.
"""

import contextlib
import hashlib
import json
import os
import shutil
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from code_intel_server.cli.init import merging
from code_intel_server.common.own_folder import WORKTREES
from code_intel_server.workspace.files import make_folder, read_regular, write_whole
from code_intel_server.workspace.paths import EXCLUDED, FOLDER

MANIFEST = f"{FOLDER}/manifest.json"
BEFORE = f"{FOLDER}/cache/before-init"
_MAX_BYTES = 4 * 1024 * 1024


class Did(StrEnum):
    """What became of one file."""

    CREATED = "created"
    MERGED = "entry added"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    KEPT = "kept, yours"
    BESIDE = "kept, yours; new default beside it"
    UNCLEAR = "left alone"
    RESTORED = "as before"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file of ours, or our entries in one of the user's: `merge` and `unmerge` work on its text ('' where there is none)."""

    path: str
    text: str = ""
    merge: Callable[[str], str] | None = None
    unmerge: Callable[[str], str] | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """What happened to a path, with a note for people."""

    path: str
    did: Did
    note: str = ""


@dataclass(slots=True)
class Manifest:
    """What earlier runs wrote. `files`: path -> SHA-256 as written; `created`: the paths that were not there before;
    `offered`: path -> SHA-256 of the default that was laid next to a file of the user's."""

    version: str = ""
    options: dict[str, object] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    created: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    offered: dict[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, root: Path) -> "Manifest":
        """The project's manifest; an empty one where there is none that can be read."""
        try:
            data = json.loads(read_regular(root / MANIFEST, _MAX_BYTES))
            return cls(
                str(data["version"]),
                dict(data["options"]),
                {str(path): str(digest) for path, digest in data["files"].items()},
                [str(path) for path in data["created"]],
                [str(path) for path in data["folders"]],
                {str(path): str(digest) for path, digest in data.get("offered", {}).items()},
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return cls()

    def save(self, root: Path) -> None:
        """Write it, sorted, so that it makes small differences in commits."""
        content: dict[str, object] = {
            "about": "What code-intel-server init wrote here; it lets --uninstall take out exactly that.",
            "version": self.version,
            "options": self.options,
            "files": dict(sorted(self.files.items())),
            "created": sorted(set(self.created)),
            "folders": sorted(set(self.folders)),
        }
        if self.offered:
            content["offered"] = dict(sorted(self.offered.items()))
        write_whole(root / MANIFEST, (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode(), 0o644)


class Scaffold:
    """Applies wanted files to one project."""

    def __init__(self, root: Path, *, dry_run: bool = False) -> None:
        self._root = root
        self._dry = dry_run
        self.manifest = Manifest.load(root)

    def apply(self, wanted: Sequence[PlannedFile]) -> list[Done]:
        """Bring every wanted file about; what was done to each. Raises OSError."""
        if not self._dry:
            self._announce(wanted)
        return self._done(wanted)

    def _done(self, wanted: Sequence[PlannedFile]) -> list[Done]:
        return [self._merge(one) if one.merge is not None else self._whole(one) for one in wanted]

    def _announce(self, wanted: Sequence[PlannedFile]) -> None:
        """Name in the manifest on disk what is about to be new: a run that is killed in the middle can then be taken out."""
        plan = Scaffold(self._root, dry_run=True)
        plan._done(wanted)
        plan.manifest.files |= self.manifest.files
        folder = self._root / FOLDER
        new = not folder.exists()
        make_folder(folder)
        try:
            plan.manifest.save(self._root)
        except (OSError, KeyboardInterrupt):
            if new:
                with contextlib.suppress(OSError):
                    folder.rmdir()
            raise
        self.manifest.folders = plan.manifest.folders

    def finish(self, version: str, options: Mapping[str, object]) -> None:
        """Remember what was written."""
        self.manifest.version, self.manifest.options = version, dict(options)
        if not self._dry:
            self.manifest.save(self._root)

    def _whole(self, wanted: PlannedFile) -> Done:
        data = wanted.text.encode()
        present = self._present(wanted.path)
        if present is None:
            self._write(wanted.path, data, created=True)
            return Done(wanted.path, Did.CREATED)
        known = self.manifest.files.get(wanted.path)
        if present == data:
            if known is not None:  # a run that was killed between writing it and saying so
                self.manifest.files[wanted.path] = _digest(data)
            return Done(wanted.path, Did.UNCHANGED)
        if known == _digest(present):
            self._write(wanted.path, data, created=False)
            return Done(wanted.path, Did.UPDATED)
        if _digest(data) in {known, self.manifest.offered.get(wanted.path)}:
            if self._present(f"{wanted.path}.new") is None:
                return Done(wanted.path, Did.KEPT)
            return Done(wanted.path, Did.BESIDE, f"compare with {wanted.path}.new")
        self.manifest.offered[wanted.path] = _digest(data)
        return self._beside(wanted.path, data, Did.BESIDE)

    def _merge(self, wanted: PlannedFile) -> Done:
        assert wanted.merge is not None  # asked by the caller
        try:
            self._target(wanted.path)
            present = self._present(wanted.path)
        except OSError as error:
            return self._left_alone(wanted, error.strerror or str(error))
        try:
            before = (present or b"").decode("utf-8")
            after = merging.in_line_ends(before, wanted.merge)
        except (merging.Unclear, UnicodeDecodeError) as error:
            return self._left_alone(wanted, f"it could not be read: {error}")
        if after == before:
            return Done(wanted.path, Did.UNCHANGED)
        if _is_read_only(self._root / wanted.path):
            return self._left_alone(wanted, "it is read-only")
        if present is None:
            self._write(wanted.path, after.encode(), created=True)
            return Done(wanted.path, Did.CREATED)
        ours = wanted.unmerge is None or merging.in_line_ends(before, wanted.unmerge) != before
        self._keep_before(wanted.path, present, ours=ours)
        self._write(wanted.path, after.encode(), created=False)
        return Done(wanted.path, Did.UPDATED if ours else Did.MERGED)

    def _left_alone(self, wanted: PlannedFile, why: str) -> Done:
        """Lay our entries next to a file that they cannot be written into; the other files are written all the same."""
        assert wanted.merge is not None  # asked by the caller
        note = f"{why}; add the entry from {wanted.path}.new yourself"
        return self._beside(wanted.path, wanted.merge("").encode(), Did.UNCLEAR, note)

    def _beside(self, path: str, data: bytes, did: Did, note: str = "") -> Done:
        """Lay a new default next to a file that is not ours to change."""
        beside = f"{path}.new"
        present = self._present(beside)
        if present != data and (present is None or self.manifest.files.get(beside) == _digest(present)):
            self._write(beside, data, created=present is None)
        return Done(path, did, note or f"compare with {beside}")

    def _keep_before(self, path: str, data: bytes, *, ours: bool) -> None:
        """The user's bytes from before our first entry. Once the user has edited what we wrote they count no more: from
        then on only our entries are taken out. Without anything of `ours` in them, what was said of the file is void."""
        kept = self._root / BEFORE / path
        if self._dry:
            return
        known = self.manifest.files.get(path)
        if known is not None and known != _digest(data):
            kept.unlink(missing_ok=True)
            self.manifest.created = [name for name in self.manifest.created if name != path]
        if known is not None and ours:
            return
        make_folder(kept.parent)
        write_whole(kept, data, 0o600)

    def _present(self, path: str) -> bytes | None:
        try:
            return read_regular(Path(os.path.realpath(self._root / path)), _MAX_BYTES)
        except FileNotFoundError:
            return None

    def _write(self, path: str, data: bytes, *, created: bool) -> None:
        self.manifest.files[path] = _digest(data)
        if created:
            self.manifest.created.append(path)
        parents = [parent.as_posix() for parent in Path(path).parents if parent != Path()]
        self.manifest.folders += [parent for parent in parents if not (self._root / parent).exists()]
        if self._dry:
            return
        self._target(path)
        make_folder((self._root / path).parent)
        write_whole(self._target(path), data, 0o644)

    def _target(self, path: str) -> Path:
        """The file itself where the user has put a link: the link stays one. Raises OSError where it leads outside."""
        real = Path(os.path.realpath(self._root / path))
        if not real.is_relative_to(self._root.resolve()):
            raise OSError(f"{path} leads outside the project; nothing is written there")
        return real


class Removal:
    """Takes out what the manifest says was written, and what the server wrote while it ran."""

    def __init__(self, root: Path, *, dry_run: bool = False) -> None:
        self._root = root
        self._dry = dry_run
        self._manifest = Manifest.load(root)

    def run(self, wanted: Sequence[PlannedFile]) -> list[Done]:
        """Undo every written file, then the folders that are empty then; what was done to each. Raises OSError."""
        unmerge = {one.path: one.unmerge for one in wanted if one.unmerge is not None}
        paths = sorted(self._manifest.files, key=lambda path: (path.startswith(FOLDER), path))
        done = [self._undo(path, unmerge.get(path)) for path in paths]
        if not self._dry:
            for name in {*EXCLUDED} - {WORKTREES}:
                shutil.rmtree(self._root / FOLDER / name, ignore_errors=True)
            with contextlib.suppress(OSError):  # never with a worktree in it
                (self._root / FOLDER / WORKTREES).rmdir()
            (self._root / MANIFEST).unlink(missing_ok=True)
            self._remove_folders()
        return done

    def _undo(self, path: str, unmerge: Callable[[str], str] | None) -> Done:
        file = self._root / path
        if not Path(os.path.realpath(file)).is_relative_to(self._root.resolve()):
            return Done(path, Did.KEPT, "it leads outside the project")
        try:
            present = read_regular(Path(os.path.realpath(file)), _MAX_BYTES)
        except FileNotFoundError:
            return Done(path, Did.REMOVED, "it was gone already")
        except OSError as error:
            return Done(path, Did.KEPT, f"{error.strerror or error}: it is not what init wrote")
        untouched = _digest(present) == self._manifest.files[path]
        if untouched and path in self._manifest.created:
            self._unlink(file)
            return Done(path, Did.REMOVED)
        if untouched and (before := self._before(path)) is not None:
            self._put(file, before)
            return Done(path, Did.RESTORED)
        if unmerge is None:
            return Done(path, Did.KEPT, "you have edited it: remove it yourself if you do not want it")
        return self._unmerged(path, file, present, unmerge)

    def _unmerged(self, path: str, file: Path, present: bytes, unmerge: Callable[[str], str]) -> Done:
        try:
            rest = merging.in_line_ends(present.decode("utf-8"), unmerge)
        except (merging.Unclear, UnicodeDecodeError) as error:
            return Done(path, Did.UNCLEAR, f"{error}; take the code-intel entries out yourself")
        if path in self._manifest.created and rest.strip() in {"", "{}"}:
            self._unlink(file)
            return Done(path, Did.REMOVED)
        if _is_read_only(file):
            return Done(path, Did.UNCLEAR, "it is read-only; take the code-intel entries out yourself")
        self._put(file, rest.encode())
        return Done(path, Did.RESTORED, "your other changes stay")

    def _before(self, path: str) -> bytes | None:
        try:
            return read_regular(self._root / BEFORE / path, _MAX_BYTES)
        except OSError:
            return None

    def _unlink(self, file: Path) -> None:
        """Remove a file of ours; where it was written through a link of the user's, the link stays as it was."""
        if not self._dry:
            Path(os.path.realpath(file)).unlink()

    def _put(self, file: Path, data: bytes) -> None:
        if not self._dry:
            write_whole(Path(os.path.realpath(file)), data, 0o644)

    def _remove_folders(self) -> None:
        for folder in sorted(self._manifest.folders, key=lambda name: -name.count("/")):
            with contextlib.suppress(OSError):
                if Path(os.path.realpath(self._root / folder)).is_relative_to(self._root.resolve()):
                    (self._root / folder).rmdir()


def _is_read_only(file: Path) -> bool:
    """Whether nobody may write a file that is there: its owner has said so, whatever root could do."""
    try:
        return not file.stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH)
    except OSError:
        return False


def leftovers(root: Path) -> Iterator[str]:
    """What still is under `.code-intel/` after a removal: files that people edited or added."""
    for file in sorted((root / FOLDER).rglob("*")):
        if file.is_file():
            yield file.relative_to(root).as_posix()


def show_by_folder(done: Sequence[Done], did: Did, would: str, whose: str = "") -> list[tuple[str, Done]]:
    """Print a line for the files of each folder of which that became; of the others, give the line of each."""
    plain = [one for one in done if one.did is did and not one.note and "/" in one.path]
    for folder, count in Counter(one.path.split("/")[0] for one in plain).items():
        print(f"  {would}{did:<12} {folder}/ ({count} file{'s' if count > 1 else ''}{whose})")
    others = (one for one in done if one not in plain)
    return [(f"  {would}{one.did:<12} {one.path}{f'  ({one.note})' if one.note else ''}", one) for one in others]


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
