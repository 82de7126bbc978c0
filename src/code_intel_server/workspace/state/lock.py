"""One project, one session: an operating system lock that its owner's death releases (SPEC 7).

The lock is `flock` on a file that is never removed; what the file says about its owner is for people and believed only
while the lock is held. Looking whether it is held takes it shared for an instant, so taking it tries for a moment.
"""

import contextlib
import json
import os
import socket
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from code_intel_server.common.locks import noted_by_holder, take_lock
from code_intel_server.common.printable import printable
from code_intel_server.errors import UserActionNeeded, folder_taken, state_unavailable
from code_intel_server.workspace.files import make_folder, write_all

_INFO_BYTES = 32 * 1024
_TRIES = 4
_PAUSE_SECONDS = 0.005


@dataclass(frozen=True, slots=True)
class Owner:
    """Who holds the lock, and for the project at which `root`.

    `since` is an ISO time in UTC; fields are empty or 0 where the owner has not said yet.
    """

    pid: int = 0
    since: str = ""
    session_id: str = ""
    host: str = ""
    root: str = ""

    def described(self) -> str:
        """The owner in words."""
        who = f"process {self.pid}" if self.pid else "a process that has just begun"
        who += f" on {self.host}" if self.host and self.host != socket.gethostname() else ""
        who += f", session {self.session_id}" if self.session_id else ""
        return f"{who} in {self.root}" if self.root else who

    def serves(self, root: Path) -> bool:
        """Whether the session is of the project at `root`: projects of one worktree share the lock, not the session."""
        return not self.root or self.root == _shown_root(root)


class ProjectLock:
    """The lock of one worktree, in its git directory or, without git, in the user's state (`key.private_folder`).

    `root` is the project it is taken for: there may be several in one worktree.
    """

    def __init__(self, folder: Path, root: Path | None = None, *, pause: Callable[[float], None] = time.sleep) -> None:
        self._path = folder / "lock"
        self._root = "" if root is None else _shown_root(root)
        self._pause = pause
        self._descriptor: int | None = None

    def acquire(self, session_id: str = "") -> None:
        """Take the lock, or keep it under a new session id.

        Raises UserActionNeeded('tool_errors.start_session.project_locked') with who holds it and since when, and
        Unavailable('tool_errors.generic.state_unavailable') where the system cannot lock, or `state_folder_unsafe` of the same
        section where something else stands in the folder's place.
        """
        try:
            if self._descriptor is None or not self.held():
                self.release()
                self._descriptor = self._taken()
            since = datetime.now(UTC).isoformat(timespec="seconds")
            self._tell(Owner(os.getpid(), since, session_id, socket.gethostname()[:100], self._root))
        except FileExistsError as error:
            self.release()
            raise folder_taken(self._path.parent, error) from error
        except OSError as error:
            self.release()
            raise state_unavailable(self._path, error) from error

    def release(self) -> None:
        """Give the lock back; nothing where it is not held."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, 0)
        os.close(descriptor)

    def held(self) -> bool:
        """Whether this object holds the lock still: false also when its file was removed or replaced behind our back."""
        return self._descriptor is not None and _same_file(self._descriptor, self._path)

    def owner(self) -> Owner | None:
        """Who holds the lock now, in this process or another; None where nobody does. Changes nothing, waits for nothing."""
        noted = noted_by_holder(self._path, _INFO_BYTES)
        return None if noted is None else _owner_in(noted)

    def _taken(self) -> int:
        """A descriptor that holds the lock on the file that has the name now."""
        make_folder(self._path.parent, 0o700)
        for attempt in range(_TRIES):
            if attempt:
                self._pause(_PAUSE_SECONDS)
            descriptor = take_lock(self._path)
            if descriptor is not None and _same_file(descriptor, self._path):
                return descriptor
            if descriptor is not None:
                os.close(descriptor)
        owner = self.owner() or Owner()
        raise UserActionNeeded(
            "tool_errors.start_session.project_locked",
            owner=owner.described(),
            since=owner.since or "a moment ago",
            details={"owner_pid": owner.pid, "owner_session_id": owner.session_id, "owner_root": owner.root},
        )

    def _tell(self, owner: Owner) -> None:
        assert self._descriptor is not None  # acquire has just set it
        info = json.dumps(asdict(owner)).encode()
        os.ftruncate(self._descriptor, 0)
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        write_all(self._descriptor, info)


def _owner_in(noted: bytes) -> Owner:
    """What the holder wrote, believed only in its form."""
    try:
        info = json.loads(noted)
    except (ValueError, RecursionError):
        return Owner()
    if not isinstance(info, dict):
        return Owner()

    def text(name: str, most: int = 100) -> str:
        value = info.get(name)
        return printable(value)[:most] if isinstance(value, str) else ""

    pid = info.get("pid")
    return Owner(
        pid if type(pid) is int else 0, text("since"), text("session_id"), text("host"), text("root", _INFO_BYTES)
    )


def _shown_root(root: Path) -> str:
    """A project's root as the lock file names it: real, and in printable letters."""
    return printable(os.path.realpath(root))


def _same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except OSError:
        return False
