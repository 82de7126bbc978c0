"""Opens what lies below a folder without following a link on the way.

A path that was judged once may lead elsewhere a moment later: whoever may write in the project can put a link in the
place of a folder. So the folders are opened one by one, each from the one before it, and a link ends the walk.
"""

from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:  # as in `workspace.files`
    from pathlib import Path

_TO_PASS = getattr(os, "O_PATH", getattr(os, "O_SEARCH", os.O_RDONLY)) | os.O_DIRECTORY | os.O_CLOEXEC
"""A folder is only passed through: that needs no permission to list it, as no path does that is opened whole."""
_FOLDER = _TO_PASS | os.O_NOFOLLOW
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NO_NAMES = frozenset({"", ".", ".."})


def open_below(root: Path | str, path: str) -> int:
    """A descriptor of the regular file at `path` ('/'-separated, from `root`), which is opened itself even where it is a link.

    Never waits on a FIFO. Raises OSError: ENOENT, ELOOP or ENOTDIR for a link on the way or at its end, EINVAL for what is
    no regular file or no plain path; ValueError for a path with a NUL.
    """
    *folders, name = _parts(path)
    folder = _open_folder(root, folders)
    try:
        handle = os.open(name, _FILE, dir_fd=folder)
    finally:
        os.close(folder)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "not a regular file", path)
    return handle


def _open_folder(root: Path | str, names: list[str]) -> int:
    folder = os.open(root, _TO_PASS)
    for name in names:
        try:
            inner = os.open(name, _FOLDER, dir_fd=folder)
        finally:
            os.close(folder)
        folder = inner
    return folder


def _parts(path: str) -> list[str]:
    parts = path.split("/")
    if not _NO_NAMES.isdisjoint(parts):
        raise OSError(errno.EINVAL, "not a path below a folder", path)
    return parts
