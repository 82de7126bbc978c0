"""One process owns the index of a project: an OS lock that ends with its holder (SPEC 9)."""

import contextlib
import errno
import json
import os
import time
from pathlib import Path

from code_intel_server.common.locks import noted_by_holder, take_lock
from code_intel_server.workspace.files import make_folder
from code_intel_server.workspace.paths import aimed_elsewhere


class OwnerLock:
    """An exclusive lock on a file next to the index, held from before the first open until `release` or death."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: int | None = None

    def acquire(self) -> bool:
        """Take the lock unless another process has it. Raises OSError where the file cannot be made, or a link is in its way."""
        if self._handle is not None:
            return True
        if aimed_elsewhere(self._path):  # what we write would empty whatever file a repository aimed it at
            raise OSError(errno.ELOOP, "a link leads out of it", str(self._path))
        make_folder(self._path.parent)
        handle = take_lock(self._path)
        if handle is None:
            return False
        try:
            os.ftruncate(handle, 0)
            os.write(handle, json.dumps({"pid": os.getpid(), "since": int(time.time())}).encode())
        except OSError:
            os.close(handle)
            raise
        self._handle = handle
        return True

    @property
    def lost(self) -> bool:
        """Whether the file that was locked was removed or replaced behind our back: another process may own the index then."""
        if self._handle is None:
            return False
        try:
            return not os.path.samestat(os.fstat(self._handle), self._path.lstat())
        except OSError:
            return True

    def holder(self) -> str:
        """Who has it, in words; for a note."""
        pid = self._named()
        return f"process {pid}" if pid else "another process"

    def holder_pid(self) -> int | None:
        """The process that has it, None where none has. A look from outside, in nobody's way: the lock is tried only
        where the process it names lives, never while another is about to take it."""
        pid = self._named()
        if pid is None or not _lives(pid) or noted_by_holder(self._path, 0) is None:
            return None
        return pid

    def _named(self) -> int | None:
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            return int(json.loads(self._path.read_text(encoding="utf-8"))["pid"])
        return None

    def release(self) -> None:
        """Let another process have it."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
