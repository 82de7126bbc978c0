"""Locks that end with their holder: `flock` on a file that says who holds it. Imports next to nothing: the hook asks too."""

import fcntl
import os


def take_lock(path: "str | os.PathLike[str]") -> int | None:
    """A descriptor that holds the lock, for the life of it; None where another has it. Raises OSError."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def noted_by_holder(path: "str | os.PathLike[str]", limit: int) -> bytes | None:
    """The first `limit` bytes of a file whose lock somebody holds; None where nobody does. Takes it shared for an instant."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.pread(descriptor, limit, 0)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return None
