"""The project's files without walking the tree each time (SPEC 8): a listing holds while nothing it was made from changed.

It was made from the folders and the ignore files. A folder's time changes when a name in it comes or goes, so one stat a
folder, instead of a walk that judges every name by every ignore rule, tells whether the listing may still be believed;
where the time differs, the names tell. Folders in which nothing was listed are watched too, since a file may appear
there; of a large tree of such folders (an ignored `node_modules`) only the top ones. And no listing is believed for
longer than a minute, nor where a lookup is about to say that there is nothing.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from threading import Lock

from code_intel_server.codebase.files import ripgrep
from code_intel_server.codebase.files.ignore import FileListing
from code_intel_server.codebase.files.project import GIT_FOLDER, ProjectScope, is_state

BELIEVED_SECONDS = 60.0
_SETTLED_NS = 2_000_000_000
"""A folder changed this shortly before it was read may change again without its time telling (coarse clocks)."""

_MEANWHILE_NS = 20_000_000
"""A folder changed no longer than this before the walk began may have been walked before it changed."""

_UNLISTED_FOLDERS = 300
_ANY_SIZE = ("--max-filesize", "1000G")
_IGNORE_FILES = (".gitignore", ".ignore", ".rgignore")
_UNSETTLED = -1
_UNCERTAIN = b""
"""The digest of no folder: the next look at it differs."""

Look = tuple[int, int] | None
"""(mtime in ns, size) of a file, None where there is none."""


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder as it was read: its time (or that this tells nothing), and of its names a digest, those of folders (not
    git's own nor ours) and those of ignore files: a million names are not kept twice.
    """

    mtime_ns: int
    names: bytes
    folders: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Made:
    """A listing and what it was made from."""

    listing: FileListing
    at: float
    folders: Mapping[str, _Folder]
    rules: Mapping[str, Look]


class Lister:
    """Lists one project's files, files over 1 MB among them: whoever wants them looks at each anyway. Safe to use from several threads."""

    def __init__(self, project: ProjectScope, clock: Callable[[], float] = time.monotonic) -> None:
        self._project = project
        self._clock = clock
        self._lock = Lock()
        self._made: _Made | None = None

    def files(self, *, fresh: bool = False) -> FileListing:
        """Every file that is neither ignored nor excluded, sorted; with `fresh` listed now, whatever is remembered."""
        with self._lock:
            made = None if fresh else self._believed()
            self._made = made or self._list()
            return self._made.listing

    def _believed(self) -> _Made | None:
        made = self._made
        if made is None or made.listing.problems or self._clock() - made.at > BELIEVED_SECONDS:
            return None
        if any(_look(path) != look for path, look in made.rules.items()):
            return None
        folders = _still(self._project.root, made.folders)
        return None if folders is None else replace(made, folders=folders)

    def _list(self) -> _Made:
        at = self._clock()
        # Read before the walk: what changes during it is noticed next time.
        rules = {path: _look(path) for path in _outer_rules(self._project.root)}
        started_ns = time.time_ns()
        paths, problems = ripgrep.list_files(self._project, _ANY_SIZE)
        listing = FileListing(tuple(byte_order(paths)), problems)
        folders = _read_folders(self._project.root, listing.paths, started_ns)
        rules |= {path: _look(path) for path in _inner_rules(self._project.root, folders)}
        return _Made(listing, at, folders, rules)


def byte_order(paths: Iterable[str]) -> list[str]:
    """The paths in the order of their bytes, which is also the symbol cache's."""
    ordered = sorted(paths)
    # Only what is no UTF-8 has another place among characters than among bytes.
    if not all(map(str.isascii, ordered)):
        ordered.sort(key=os.fsencode)
    return ordered


def _still(root: Path, folders: Mapping[str, _Folder]) -> dict[str, _Folder] | None:
    """The folders with their present times where they hold the names they held; None where one does not."""
    now: dict[str, _Folder] = {}
    for path, folder in folders.items():
        try:
            mtime_ns = os.lstat(f"{root}/{path}").st_mtime_ns
        except OSError:
            return None
        if mtime_ns != folder.mtime_ns:
            again = _read(root, path, time.time_ns())
            if again is None or again.names != folder.names:
                return None
            now[path] = again
        else:
            now[path] = folder
    return now


def _read_folders(root: Path, paths: Iterable[str], started_ns: int) -> dict[str, _Folder]:
    """The folders a listing was made from: those of its files, those above them, and those besides where nothing is listed."""
    listed = {"."}
    for path in paths:
        above = path.rpartition("/")[0]
        while above and above not in listed:
            listed.add(above)
            above = above.rpartition("/")[0]
    folders = {path: folder for path in listed if (folder := _read_walked(root, path, started_ns))}
    for path, folder in list(folders.items()):
        for below in _folders_in(path, folder):
            if below not in folders:
                folders |= _unlisted(root, below, started_ns)
    return folders


def _unlisted(root: Path, top: str, started_ns: int) -> dict[str, _Folder]:
    """A folder in which nothing is listed, and those below it, the upper ones first, as far as they are not too many."""
    found: dict[str, _Folder] = {}
    pending = [top]
    while pending and len(found) < _UNLISTED_FOLDERS:
        path = pending.pop(0)
        if folder := _read_walked(root, path, started_ns):
            found[path] = folder
            pending += _folders_in(path, folder)
    return found


def _folders_in(path: str, folder: _Folder) -> Iterator[str]:
    below = (name if path == "." else f"{path}/{name}" for name in folder.folders)
    return (one for one in below if not is_state(one))


def _read(root: Path, path: str, now_ns: int) -> _Folder | None:
    """A folder's time and names; None where it cannot be read."""
    try:
        mtime_ns = os.lstat(f"{root}/{path}").st_mtime_ns
        with os.scandir(f"{root}/{path}") as entries:
            names = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
    except OSError:
        return None
    told = "".join(f"{name}/\0" if names[name] else f"{name}\0" for name in sorted(names))
    return _Folder(
        mtime_ns if mtime_ns < now_ns - _SETTLED_NS else _UNSETTLED,
        blake2b(os.fsencode(told), digest_size=16).digest(),
        tuple(name for name in names if names[name] and name != GIT_FOLDER),
        tuple(name for name in _IGNORE_FILES if names.get(name) is False),
    )


def _read_walked(root: Path, path: str, started_ns: int) -> _Folder | None:
    """`_read`, for a folder that was walked since `started_ns`: what it held then is uncertain where it changed or went meanwhile."""
    folder = _read(root, path, started_ns)
    if folder is None:
        return None
    try:
        # Once more, behind the names: they may hold what came after the first look, and after the walk.
        changed_ns = os.lstat(f"{root}/{path}").st_mtime_ns
    except OSError:
        changed_ns = started_ns
    return folder if changed_ns < started_ns - _MEANWHILE_NS else _Folder(_UNSETTLED, _UNCERTAIN)


def _inner_rules(root: Path, folders: Mapping[str, _Folder]) -> Iterator[str]:
    for path, folder in folders.items():
        yield from (f"{root}/{path}/{name}" for name in folder.rules)


def _outer_rules(root: Path) -> Iterator[str]:
    """Ignore files outside the project's folders that ripgrep honours: those above it, git's own, the user's."""
    for above in root.parents:
        yield from (f"{above}/{name}" for name in _IGNORE_FILES)
    for folder in (root, *root.parents):
        yield f"{folder}/{GIT_FOLDER}/info/exclude"
    home = Path(os.environ.get("HOME", "/"))
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    yield from (f"{home}/.gitconfig", f"{config}/git/config", f"{config}/git/ignore")


def _look(path: str) -> Look:
    try:
        status = os.stat(path)  # noqa: PTH116 - a score of them before every lookup
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
