"""Puts a file into the user's tree whole: whenever the process is killed, it is there as before or as it shall be.

Content is written to a temporary file, brought to the disk, and only then gets its name: by a link where nothing is
(a link never takes another's place), by a rename where a known version is replaced. The temporary file lies in our
folder of the git directory, or next to its target where that is another file system; one that a killed writer left is
removed by the next. Folders are opened one by one and never through a link, so one that is swapped for a link in the
meantime leads nowhere.
"""

import contextlib
import errno
import fcntl
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from code_intel_server.workspace import files
from code_intel_server.workspace.git.repository import Git

LINK, PROGRAM, PLAIN = "120000", "100755", "100644"
_TEMPORARY = re.compile(r"\.code-intel-[0-9a-f]{24}\.tmp")
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class IncomingFile:
    """A file to be placed: its path from the top, its mode as git writes it, its bytes (a link's target).

    `permissions` are those it had, where they are known and nothing is there that tells them.
    """

    path: str
    mode: str
    content: bytes
    permissions: int | None = None


def place(git: Git, file: IncomingFile, *, replace: bool = False) -> bool:
    """Put the file where nothing is, or with `replace` in the place of what does; whether that was done.

    A replaced file keeps its permissions, but for the executable bit; other names of it (hard links) keep the old content.
    Nothing is done where a folder is at the path, or a file or link in the place of one of its folders. Raises OSError.
    """
    with _target(git, file.path) as target:
        if target is None:
            return False
        folder, name = target
        found = _found(folder, name)
        if found is not None and (not replace or stat.S_ISDIR(found.st_mode)):
            return False
        with _staging(git, folder) as staging:
            try:
                done = _placed(file, found, staging, target)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                done = _placed(file, found, folder, target)  # two mounts of one file system have one number
            os.fsync(folder)
    return done


def move_in(git: Git, made: Path, path: str, mode: str) -> bool:
    """Give a file or link that was made in our own folder its name at a path from the top, where nothing is; whether that was done.

    Raises OSError.
    """
    with _target(git, path) as target:
        if target is None or _found(*target) is not None:
            return False
        folder, name = target
        if not made.is_symlink():
            with made.open("rb") as stream:
                files.sync(stream.fileno())
        staging = os.open(made.parent, _FOLDER)
        try:
            done = _link(made.name, staging, name, folder)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            content = os.fsencode(made.readlink()) if made.is_symlink() else made.read_bytes()
            return place(git, IncomingFile(path, mode, content))
        finally:
            os.close(staging)
        os.fsync(folder)
    return done


@contextlib.contextmanager
def _target(git: Git, path: str) -> Iterator[tuple[int, str] | None]:
    """The folder that a path from the top is in, and its name there; None where a file or a link is in the place of a folder."""
    *parents, name = path.split("/")
    with contextlib.ExitStack() as open_folders:
        try:
            folder = open_folders.enter_context(_folder(git.at.top, parents))
        except (NotADirectoryError, FileExistsError):
            yield None
            return
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            yield None
            return
        yield folder, name


def _placed(file: IncomingFile, found: os.stat_result | None, staging: int, target: tuple[int, str]) -> bool:
    """Write the file in `staging` and give it its name in the target's folder; False where something is there by now."""
    folder, name = target
    with _staged(staging, file, found) as temporary:
        if found is None:
            return _link(temporary, staging, name, folder)
        os.rename(temporary, name, src_dir_fd=staging, dst_dir_fd=folder)
    return True


def remove_unfinished(git: Git, paths: Iterable[str]) -> None:
    """Remove what a killed writer of these paths left; one that still writes holds its file locked."""
    for folder in {_own(git), *((git.at.top / path).parent for path in paths)}:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in [entry for entry in entries if _TEMPORARY.fullmatch(entry.name)]:
                _remove_unless_held(Path(entry.path))


def _remove_unless_held(path: Path) -> None:
    with contextlib.suppress(OSError):
        if path.is_symlink():
            path.unlink()
            return
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def _folder(top: Path, parents: list[str]) -> Iterator[int]:
    """The folder below `top`, made where it is missing and opened without following a link."""
    folder = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in parents:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, dir_fd=folder)
                os.fsync(folder)
            inner = os.open(name, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


def _own(git: Git) -> Path:
    return git.own_folder() / "incoming"


@contextlib.contextmanager
def _staging(git: Git, folder: int) -> Iterator[int]:
    """Our own folder where a rename into `folder` is possible, else a second hold of `folder` itself."""
    own = _own(git)
    own.mkdir(exist_ok=True)
    descriptor = os.open(own, _FOLDER)
    try:
        if os.fstat(descriptor).st_dev != os.fstat(folder).st_dev:
            os.close(descriptor)
            descriptor = os.dup(folder)
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _staged(staging: int, file: IncomingFile, found: os.stat_result | None) -> Iterator[str]:
    """The name of a temporary file with the content, on the disk and locked; gone at the end."""
    temporary = f".code-intel-{secrets.token_hex(12)}.tmp"
    try:
        if file.mode == LINK:
            os.symlink(file.content, temporary, dir_fd=staging)
            yield temporary
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(temporary, flags, 0o755 if file.mode == PROGRAM else 0o644, dir_fd=staging)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            had = stat.S_IMODE(found.st_mode) if found is not None and stat.S_ISREG(found.st_mode) else file.permissions
            if had is not None:
                # Executable for whoever may read, where git says so.
                os.fchmod(descriptor, had | (had & 0o444) >> 2 if file.mode == PROGRAM else had & ~0o111)
            files.write_all(descriptor, file.content)
            files.sync(descriptor)
            yield temporary
        finally:
            os.close(descriptor)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=staging)


def _link(temporary: str, staging: int, name: str, folder: int) -> bool:
    """Give the temporary file its name unless something is there by now."""
    try:
        os.link(temporary, name, src_dir_fd=staging, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if _found(folder, name) is not None:
            return False
        os.rename(temporary, name, src_dir_fd=staging, dst_dir_fd=folder)
    return True


def _found(folder: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
