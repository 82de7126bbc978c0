"""Run a command so that the project it sees, at the project's own path, is a clean checkout (SPEC 4, Receipts).

A private mount puts the checkout where the project is, for the command and its descendants alone: editable installs,
absolute paths and ids mean what they always mean, and nothing is left when the last process ends. It needs no
privileges, but user namespaces, which macOS lacks and some systems forbid; the command then runs in the checkout's own
folder, and a census of loaded files tells whether that was what was tested.

Folders that git ignores and tests need (`.venv`, `node_modules`) are borrowed: in the mount as an overlay whose writes
go to memory and are forgotten, so that two runs share nothing they can write; else as links.
"""

import functools
import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from code_intel_server import process
from code_intel_server.receipts import confinement
from code_intel_server.receipts.checkout import BORROWED_OBJECTS, LOCK, receipt_folder

BORROWED = (".venv", "venv", "node_modules")
"""Folders that are borrowed from the project where git ignores them, at its root and next to a manifest."""

_UNSHARE = ("unshare", "--user", "--map-current-user", "--keep-caps", "--mount")
_CONFINED = ("--pid", "--fork", "--kill-child", "--mount-proc", "--net", "--ipc")
_CONFINE = '"$1" -I -S "$2" "$3" && shift 3 && exec "$@"'
_PROBE_SECONDS = 10
_PROBE = """
results=$1 name=$2; shift 2
readlink /proc/self/ns/net /proc/self/ns/pid >"$results"
for folder do (: >"$folder/$name") 2>/dev/null || true; done
grep -q '^CapBnd:[[:space:]]*0*$' /proc/self/status
"""
_MOUNT = """
set -e
top=$1 checkout=$2 scratch=$3 inside=$4 objects=$5 borrowed=$6 lock=$7 memory=$8 count=$9; shift 9
# The lock is ours as long as we live: whoever gets it ends the run, whose process group this still is.
( ( exec >/dev/null 2>&1; flock "$lock" true && kill -KILL 0 ) & )
mkdir -p "$scratch"
mount -t tmpfs -o "$memory" none "$scratch"
mount --bind "$objects" "$borrowed"
mount -o remount,bind,ro "$borrowed" 2>/dev/null || true
while [ "$count" -gt 0 ]; do
  if [ -d "$top/$1" ]; then
    mkdir -p "$checkout/$1" "$scratch/$count/upper" "$scratch/$count/work"
    mount -t overlay none -o "lowerdir=$top/$1,upperdir=$scratch/$count/upper,workdir=$scratch/$count/work,userxattr" \
      "$checkout/$1" 2>/dev/null || mount --bind "$top/$1" "$checkout/$1"
  else
    mkdir -p "$(dirname "$checkout/$1")"
    cp -p "$top/$1" "$checkout/$1"
  fi
  count=$((count - 1)); shift
done
mount --rbind "$checkout" "$top"
cd "$top/$inside"
exec "$@"
"""


def can_mount() -> bool:
    """Whether this system lets us mount privately: tried, and again where that took too long."""
    try:
        return _mounts()
    except OSError:
        return False


@functools.cache
def _mounts() -> bool:
    argv = [*_UNSHARE, "mount", "-t", "tmpfs", "none", "/tmp"]  # noqa: S108
    return shutil.which("unshare") is not None and _answer(process.run(argv, cwd=Path("/"), timeout=_PROBE_SECONDS))


def _answer(done: process.Completed) -> bool:
    """Whether a probe succeeded; raises TimeoutError where a machine under load had no time for it, which says nothing."""
    if done.timed_out:
        raise TimeoutError
    return done.ok


def can_confine() -> bool:
    """Whether this system keeps a confined command from writing outside, from other processes and from the network: tried."""
    try:
        return can_mount() and _confines()
    except (OSError, ValueError):
        return False


@functools.cache
def _confines() -> bool:
    with receipt_folder() as folder:
        for name in ("project", "checkout", "objects"):
            (folder / name).mkdir()
        results, name = folder / "results", f"probe-{folder.name}"
        results.touch()
        place = IsolatedCheckout(folder / "project", folder / "checkout", folder / "objects", confined=True)
        outside = [*place.private, folder, place.top, Path("/dev/shm"), Path("/")]  # noqa: S108 - nothing is to be there
        argv = ["sh", "-c", _PROBE, "sh", str(results), name, *map(str, outside)]
        done = process.run(place.command(argv, ".", results), cwd=Path("/"), timeout=_PROBE_SECONDS)
        # False where it may not be looked into.
        written = [one / name for one in outside if os.path.lexists(one / name)]
        for one in written:
            one.unlink()
        inside = results.read_text(encoding="utf-8").split()
        ours = {str(Path(f"/proc/self/ns/{kind}").readlink()) for kind in ("net", "pid")}
        return _answer(done) and not written and len(inside) == len(ours) and not ours & {*inside}


@dataclass(frozen=True, slots=True)
class IsolatedCheckout:
    """A checkout and the project it stands in for; `objects` are the project's, `borrowed` folders relative to `top`.

    One that is `confined` keeps what runs in it from changing or reaching anything outside.
    """

    top: Path
    checkout: Path
    objects: Path
    borrowed: tuple[str, ...] = ()
    mounted: bool = True
    confined: bool = False

    @property
    def seen_at(self) -> Path:
        """Where the command sees the checkout."""
        return self.top if self.mounted else self.checkout

    @property
    def _objects(self) -> Path:
        return self.checkout.with_name(BORROWED_OBJECTS)

    @property
    def private(self) -> list[Path]:
        """Folders in which a confined command may write what is forgotten, none in another."""
        named = (os.environ.get("HOME", "/"), tempfile.gettempdir(), "/tmp", "/var/tmp", "/run")  # noqa: S108
        folders = {Path(one).resolve() for one in named if Path(one).is_dir()} - {Path("/")}
        return [one for one in sorted(folders) if folders.isdisjoint(one.parents)]

    def command(self, argv: Iterable[str], inside: str, results: Path) -> list[str]:
        """The command line that runs `argv`, which writes to `results`, in folder `inside` of the checkout."""
        if not self.mounted:
            return [*argv]
        scratch = self.checkout.with_name(self.checkout.name + ".written")
        lock = self.checkout.with_name(LOCK)
        places = (self.top, self.checkout, scratch, inside, self.objects, self._objects, lock)
        memory = confinement.MEMORY if self.confined else "size=50%"
        mount = ["sh", "-c", _MOUNT, "sh", *map(str, places), memory, str(len(self.borrowed)), *self.borrowed]
        if not self.confined:
            return [*_UNSHARE, *mount, *argv]
        plan = {"kept": [lock], "written": [results], "scratch": [scratch], "private": self.private}
        said = json.dumps({name: [*map(str, paths)] for name, paths in plan.items()} | {"sockets": _sockets()})
        confine = ["sh", "-c", _CONFINE, "sh", sys.executable, confinement.__file__, said]
        return [*_UNSHARE, *_CONFINED, *confine, *mount, *confinement.CAPLESS, *argv]

    def prepare(self) -> Mapping[str, str]:
        """Make what a run without a mount needs; the variables that lead it to the checkout."""
        if self.mounted:
            return {}
        if not self._objects.is_symlink():
            self._objects.rmdir()
            self._objects.symlink_to(self.objects)
        for folder in self.borrowed:
            link = self.checkout / folder
            if link.exists():
                continue
            link.parent.mkdir(parents=True, exist_ok=True)
            if (self.top / folder).is_dir():
                link.symlink_to(self.top / folder)
            else:
                shutil.copy2(self.top / folder, link)
        search = [str(self.checkout / "src"), str(self.checkout), os.environ.get("PYTHONPATH", "")]
        return {"PYTHONPATH": os.pathsep.join(filter(None, search))}

    def tested_elsewhere(self, census: Collection[str], tracked: Collection[str]) -> str:
        """A loaded file that stands in for one of the checkout's; '' where the checkout is what was tested.

        `census` are the files of loaded modules, `tracked` the checkout's own, relative to it.
        """
        if not self.mounted and (led := _led_back(self.top, self.borrowed)):
            return led
        ours = {path.removeprefix("src/").removeprefix("lib/") for path in tracked}
        for file in census:
            inside = relative(file, self.seen_at)
            if inside in tracked:
                continue
            if not self.mounted and relative(file, self.top) in tracked:
                return file
            tail = file.partition("/site-packages/")[2]
            if "/" in tail and tail in ours:
                return file
        return ""


def _sockets() -> list[str]:
    """The sockets with a place in the file system, which no network of one's own keeps from."""
    rows = Path("/proc/net/unix").read_text("utf-8", "surrogateescape").splitlines()
    return sorted({"/" + row.partition(" /")[2] for row in rows if " /" in row})


def _led_back(top: Path, folders: Iterable[str]) -> str:
    """A link in a borrowed folder that leads to the project's own files, as npm workspaces have them; '' where none does."""
    for folder in folders:
        for link in (one for pattern in ("*", "@*/*") for one in (top / folder).glob(pattern) if one.is_symlink()):
            place = link.resolve()
            if place.is_relative_to(top) and not place.is_relative_to((top / folder).resolve()):
                return str(link)
    return ""


def borrowed(top: Path, listed: Collection[str], names: Collection[str] = BORROWED) -> tuple[str, ...]:
    """The folders and files to borrow: of these names, at the root and next to tracked manifests, and not tracked themselves."""
    folders = {"", *(path.rpartition("/")[0] for path in listed if path.endswith(("package.json", "pyproject.toml")))}
    found = (f"{folder}/{name}" if folder else name for folder in folders for name in names)
    tracked = {path.split("/", 1)[0] for path in listed} | {*listed}
    return tuple(sorted(path for path in found if path not in tracked and (top / path).exists()))


def inventory(top: Path, borrowed: Iterable[str]) -> dict[str, str]:
    """Size and time of every file that is borrowed, caches left out: what tells whether they are as they were."""
    found = {}
    for name in borrowed:
        rows = [(str(top), [], [name])] if (top / name).is_file() else os.walk(top / name)
        for at, below, names in rows:
            below[:] = [one for one in below if one not in {"__pycache__", ".cache", ".vite", ".vitest"}]
            for one in names:
                path = os.path.join(at, one)  # noqa: PTH118 - tens of thousands of files
                look = os.lstat(path)
                found[path] = f"{look.st_size} {look.st_mtime_ns}"
    return found


def by_folder(found: Mapping[str, str], top: Path) -> dict[str, str]:
    """An inventory as one word for each folder, by its path below `top`: small enough to be kept."""
    rows: dict[str, list[str]] = {}
    for path, look in sorted(found.items()):
        folder, _, name = os.path.relpath(path, top).rpartition("/")
        rows.setdefault(folder or name, []).append(f"{name} {look}")
    return {
        folder: hashlib.sha256("\n".join(texts).encode("utf-8", "surrogateescape")).hexdigest()[:16]
        for folder, texts in rows.items()
    }


def fingerprint(found: Mapping[str, str]) -> str:
    """One word for an inventory."""
    rows = "\n".join(f"{path} {look}" for path, look in sorted(found.items()))
    return hashlib.sha256(rows.encode("utf-8", "surrogateescape")).hexdigest()


def relative(file: str, folder: Path) -> str:
    """A file's path inside a folder; '' where it is not below it."""
    prefix = str(folder) + "/"
    return file.removeprefix(prefix) if file.startswith(prefix) else ""
