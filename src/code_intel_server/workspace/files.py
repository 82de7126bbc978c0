"""Reading files that someone else may have prepared, and writing files that must be whole after a crash.

A file under `.code-intel/` may be a symbolic link, a pipe that never answers, or a terabyte of nothing: reading asks what
it is before the first byte. Writing goes to a temporary file, to the disk, and only then to its name, so a reader or a
power loss meets the old content or the new, never a mixture.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import stat

from code_intel_server.common import own_folder, safe_open

TYPE_CHECKING = False
if TYPE_CHECKING:  # the hook, which has no time, reads by this module too
    from pathlib import Path

_TEMPORARY = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{16}\.tmp")
_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)


def read_regular(path: str | Path, limit: int, *, follow: bool = False) -> bytes:
    """The bytes of a regular file of at most `limit` bytes.

    Never blocks, never reads beyond the limit. Raises OSError: ENOENT, ELOOP for a symbolic link (unless `follow`), EFBIG
    beyond the limit, EINVAL for what is no regular file.
    """
    descriptor = open_regular(path, follow=follow)
    try:
        return _read_whole(descriptor, limit, str(path))
    finally:
        os.close(descriptor)


def open_regular(path: str | Path, *, follow: bool = False) -> int:
    """A descriptor of a regular file, to be read. Never blocks; raises OSError as `read_regular`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW))
    # `open` would refuse a folder's descriptor and leave it open.
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return descriptor


def read_beneath(root: Path, path: str, limit: int) -> tuple[bytes, os.stat_result]:
    """The bytes of a regular file of at most `limit` bytes, reached from `root` through no link, and its look before they were read.

    Raises OSError: as `read_regular` and `safe_open.open_below` do; ValueError for a path with a NUL.
    """
    descriptor = safe_open.open_below(root, path)
    try:
        look = os.fstat(descriptor)
        return _read_whole(descriptor, limit, path), look
    finally:
        os.close(descriptor)


def write_whole(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Replace `path` by `data`, durably: after a crash the old content or the new is there. Raises OSError.

    `mode` is for a file that is new; one that exists keeps its own. When only the folder's own sync fails (`sync_folder`)
    the new content is visible already.
    """
    temporary = stage(path, data, mode)
    try:
        with contextlib.suppress(FileNotFoundError):
            temporary.chmod(stat.S_IMODE(path.stat().st_mode))
        temporary.replace(path)
    except (OSError, KeyboardInterrupt):
        discard(temporary)
        raise
    sync_folder(path.parent)


def stage(path: Path, data: bytes, mode: int = 0o600) -> Path:
    """Write `data` durably to a temporary file next to `path` and name it; nothing stays behind where that fails."""
    temporary = temporary_for(path)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        try:
            write_all(descriptor, data)
            sync(descriptor)
        finally:
            os.close(descriptor)
    except (OSError, KeyboardInterrupt):
        discard(temporary)
        raise
    return temporary


def temporary_for(path: Path) -> Path:
    """A name next to `path` that nobody has and `remove_temporary_files` knows."""
    return path.with_name(f".{path.name}.{os.urandom(8).hex()}.tmp")


def discard(temporary: str | Path) -> None:
    """Remove a temporary file if it can be removed; a later sweep takes what could not."""
    with contextlib.suppress(OSError):
        os.unlink(temporary)


def remove_temporary_files(folder: Path) -> int:
    """Remove the temporary files that killed writers left in `folder`; how many. For the folder's only writer."""
    removed = 0
    for entry in _entries(folder):
        if _TEMPORARY.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
            discard(entry.path)
            removed += 1
    return removed


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of `data`, however few bytes the system takes at a time."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def sync(descriptor: int) -> None:
    """Bring a file's content to the disk itself; on macOS fsync alone stops at the drive's cache."""
    if _FULL_SYNC is not None:
        with contextlib.suppress(OSError):
            fcntl.fcntl(descriptor, _FULL_SYNC)
            return
    os.fsync(descriptor)


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path, mode: int = 0o755) -> None:
    """Make a folder and its parents durably; one that exists already is left as it is.

    Raises OSError; FileNotFoundError where a project or repository was removed that it would be in.
    """
    if folder.is_dir():
        return
    if folder.name == ".git" or (folder.name == own_folder.FOLDER and not folder.parent.is_dir()):
        raise FileNotFoundError(errno.ENOENT, "its project was removed", str(folder))
    make_folder(folder.parent, mode)
    folder.mkdir(mode, exist_ok=True)
    sync_folder(folder.parent)


def _read_whole(descriptor: int, limit: int, path: str) -> bytes:
    data = _read_up_to(descriptor, limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"larger than {limit} bytes", path)
    return data


def _read_up_to(descriptor: int, limit: int) -> bytes:
    pieces = bytearray()
    while len(pieces) < limit:
        piece = os.read(descriptor, min(limit - len(pieces), 1 << 20))
        if not piece:
            break
        pieces += piece
    return bytes(pieces)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except FileNotFoundError:
        return []
