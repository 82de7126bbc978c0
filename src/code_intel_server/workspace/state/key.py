"""The key that tells this machine's own checkpoints and ledgers from those that came with a repository (SPEC 7).

It lies in git's common folder, which no clone carries, or in the user's state folder where there is no git. Whoever can
run programs as this user can read it: it makes tampering evident, it does not make it impossible.
"""

import fcntl
import hashlib
import os
import stat
import time
from pathlib import Path

from code_intel_server.errors import folder_taken, state_unavailable
from code_intel_server.workspace.files import make_folder, sync, sync_folder, write_all

KEY_BYTES = 32
_TRIES = 100
_PAUSE_SECONDS = 0.02
_NAME = "code-intel"


def state_home() -> Path:
    """The server's folder for what belongs to the user and to no project (XDG_STATE_HOME, else ~/.local/state)."""
    given = os.environ.get("XDG_STATE_HOME", "")
    return (Path(given) if Path(given).is_absolute() else Path.home() / ".local" / "state") / _NAME


def path_hash(path: Path) -> str:
    """32 hexadecimal digits for a real path: the same for every alias of it."""
    return hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()[:32]


def private_folder(git_folder: Path | None, root: Path) -> Path:
    """Where key and lock of a project lie: in the given git folder, or by the hash of the real root in the user's state."""
    return git_folder / _NAME if git_folder is not None else state_home() / "projects" / path_hash(root)


def load_key(folder: Path) -> bytes:
    """The 32 bytes of `folder`'s key, made on first use; any number of processes that ask at once get the same.

    A key torn by a crash is made anew. Raises Unavailable('tool_errors.generic.state_unavailable'), or with
    `state_folder_unsafe` of the same section where something else stands in the folder's place.
    """
    try:
        make_folder(folder, 0o700)
        # Not O_EXCL: the lock decides who fills it, and one that a crash left empty is filled by the next.
        descriptor = os.open(
            folder / "key", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600
        )
        try:
            return _filled(descriptor, folder)
        finally:
            os.close(descriptor)
    except FileExistsError as error:
        raise folder_taken(folder, error) from error
    except OSError as error:
        raise state_unavailable(folder / "key", error) from error


def _filled(descriptor: int, folder: Path) -> bytes:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise OSError("not a regular file")
    if stat.S_IMODE(status.st_mode) != 0o600:
        os.fchmod(descriptor, 0o600)
    if _is_key(key := os.pread(descriptor, KEY_BYTES + 1, 0)):
        return key
    _lock(descriptor)
    if _is_key(key := os.pread(descriptor, KEY_BYTES + 1, 0)):
        return key
    key = os.urandom(KEY_BYTES)
    os.ftruncate(descriptor, 0)
    write_all(descriptor, key)
    sync(descriptor)
    sync_folder(folder)
    return key


def _lock(descriptor: int) -> None:
    """Wait for whoever is filling the key, a moment and not for ever: it may have been stopped."""
    for _ in range(_TRIES):
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE_SECONDS)
    raise OSError("another process is making it and does not finish")


def _is_key(data: bytes) -> bool:
    """Whether these are all bytes of a key; a power loss can leave the length without the content."""
    return len(data) == KEY_BYTES and any(data)
