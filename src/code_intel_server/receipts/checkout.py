"""A clean checkout of exactly one tree, with single files of another laid over it, in a folder of ours (SPEC 4, Receipts).

Nothing of the user's is touched: the index is a scratch one and the folder is outside of the repository. A folder is held
by a lock while its run lives, so that what a killed run left is known and removed at the next start.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from code_intel_server.errors import Unavailable
from code_intel_server.receipts.files import FileClass, file_class, merged
from code_intel_server.workspace.git import Git, join_z, names_in, open_repository
from code_intel_server.workspace.git_child import Manner, environment_config, succeeded

_LOCK = "lock"
_PREFIX = "code-intel-runs-"
_GITLINK = "160000"


@dataclass(frozen=True, slots=True)
class Entry:
    """One side of a changed file; mode '000000' where it is not there."""

    mode: str
    oid: str

    @property
    def there(self) -> bool:
        """Whether the file exists on this side."""
        return self.mode != "000000"


@dataclass(frozen=True, slots=True)
class Changed:
    """A path that differs between two trees."""

    path: str
    old: Entry
    new: Entry

    @property
    def file_class(self) -> FileClass:
        """What the file is to the tests."""
        return file_class(self.path)


def changed(git: Git, old: str, new: str) -> tuple[Changed, ...]:
    """What differs between two trees or commits, renames as a file gone and one new."""
    out = git.must(
        "diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--ignore-submodules=none", old, new
    )
    fields = names_in(out)
    rows = ((head.lstrip(":").split(" "), path) for head, path in zip(fields, fields, strict=True))
    return tuple(Changed(path, Entry(row[0], row[2]), Entry(row[1], row[3])) for row, path in rows)


@contextmanager
def private_folder() -> Iterator[Path]:
    """A folder for one receipt, removed afterwards; what killed runs of this user left is removed before."""
    parent = Path(tempfile.gettempdir()) / f"{_PREFIX}{os.getuid()}"
    parent.mkdir(mode=0o700, exist_ok=True)
    look = parent.lstat()
    if parent.is_symlink() or look.st_uid != os.getuid():
        raise PermissionError(13, "belongs to somebody else", str(parent))
    _remove_leftovers(parent)
    folder = Path(tempfile.mkdtemp(dir=parent))
    with (folder / _LOCK).open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield folder
        finally:
            remove(folder)


def _remove_leftovers(parent: Path) -> None:
    for folder in parent.iterdir():
        with contextlib.suppress(OSError), (folder / _LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # held by a run that lives: BlockingIOError
            remove(folder)


def remove(folder: Path) -> None:
    """Remove a folder with all in it, folders without permission to write included."""
    for at, _, _ in os.walk(folder):
        with contextlib.suppress(OSError):
            Path(at).chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Checkouts:
    """Makes checkouts of one repository below one folder. `lacking` names submodules whose content is not at hand."""

    git: Git
    folder: Path

    def make(self, name: str, tree: str, over: tuple[Changed, ...] = (), *, side: str = "old") -> Path:
        """Check out `tree` with the `side` ('old' or 'new') of some changed files laid over it.

        A file of both classes keeps the tree's version but for its test tables. Raises Unavailable where git fails.
        """
        target = self.folder / name
        rows = {one.path: getattr(one, side) for one in over if one.file_class is not FileClass.BOTH}
        _export(self.git, tree, target, rows)
        for one in over:
            if one.file_class is FileClass.BOTH and one.old.there and one.new.there:
                mine, theirs = (one.new, one.old) if side == "old" else (one.old, one.new)
                self._merge(target / one.path, one.path, mine, theirs)
        return target

    def _merge(self, file: Path, path: str, product: Entry, runner: Entry) -> None:
        content = merged(path, self.git.read_blob(product.oid), self.git.read_blob(runner.oid))
        if content is not None:
            file.write_bytes(content)


def _export(git: Git, tree: str, target: Path, over: Mapping[str, Entry]) -> None:
    target.mkdir(parents=True)
    index = target.parent / f"{target.name}.index"
    env = {
        "GIT_INDEX_FILE": str(index),
        "GIT_WORK_TREE": str(target),
        "GIT_DIR": str(git.at.git_dir),
        **environment_config({"core.sparseCheckout": "false", "core.bare": "false"}),
    }

    def must(*arguments: str, stdin: bytes | None = None) -> bytes:
        # As the user: filters (LFS) turn what is stored into what the tests read.
        return succeeded(git.run(*arguments, manner=Manner.USER, env=env, stdin=stdin))

    try:
        must("read-tree", tree)
        rows = (
            f"{entry.mode} {entry.oid}\t{path}" if entry.there else f"0 {git.zero()}\t{path}"
            for path, entry in over.items()
        )
        if over:
            must("update-index", "-z", "--index-info", stdin=join_z(rows))
        must("checkout-index", "--all", "--quiet")
        for head, _, path in (row.partition("\t") for row in names_in(must("ls-files", "-s", "-z"))):
            if head.startswith(_GITLINK):
                _submodule(git.at.top / path, head.split()[1], target / path)
    finally:
        index.unlink(missing_ok=True)


def _submodule(place: Path, commit: str, target: Path) -> None:
    """The content of a submodule where its repository is at hand; else the empty folder that git leaves."""
    inner = open_repository(place) if place.is_dir() else ""
    if isinstance(inner, Git) and inner.at.top == place.resolve() and inner.oid(commit):
        with contextlib.suppress(OSError):
            target.rmdir()
        with contextlib.suppress(Unavailable):
            _export(inner, commit, target, {})
