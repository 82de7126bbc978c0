"""One process owns the index of a project: an OS lock that ends with its holder (SPEC 9)."""

import contextlib
import errno
import fcntl
import json
import os
import time
from pathlib import Path

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
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(handle, 0)
            os.write(handle, json.dumps({"pid": os.getpid(), "since": int(time.time())}).encode())
        except BlockingIOError:
            os.close(handle)
            return False
        except OSError:
            os.close(handle)
            raise
        self._handle = handle
        return True

    @property
    def held(self) -> bool:
        """Whether this process has it."""
        return self._handle is not None

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
        if pid is None or not _lives(pid):
            return None
        try:
            handle = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return pid
        except OSError:
            return None
        else:
            return None
        finally:
            os.close(handle)

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
