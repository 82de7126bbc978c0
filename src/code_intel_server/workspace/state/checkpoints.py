"""Checkpoints: what a session needs to go on after its process died, one file a session and the generation before it.

A file is one JSON object whose first two members are its seal (`seal`).

Writing: the new generation goes to a temporary file and to the disk, the present one gets a second name, then the new
one takes the name and the folder goes to the disk. At every moment `<id>.json` is a whole generation; once `save`
has returned it is the new one, even after a power loss.

Generations count up over the whole folder, so the newest session is found without asking a clock.
"""

import contextlib
import errno
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from pathlib import Path

from code_intel_server.common.strict_numbers import finite, no_constant
from code_intel_server.errors import CodeIntelError, Rejected, Unavailable, state_unavailable
from code_intel_server.workspace import files
from code_intel_server.workspace.paths import aimed_elsewhere, unsafe_folder
from code_intel_server.workspace.state.signature import (
    CHECKPOINT_SCHEMA,
    ID,
    MAX_CHECKPOINT_BYTES,
    BadSignature,
    signed,
    verified,
)

_KEPT_RESERVATIONS = 64

_FILE = re.compile(rf"(?P<id>{ID})(?:\.previous)?\.json")


class CheckpointProblem(Enum):
    """Why a checkpoint file is not obeyed."""

    MISSING = "missing"
    DAMAGED = "damaged"
    FOREIGN = "foreign"
    VERSION = "version"


@dataclass(frozen=True, slots=True)
class Loaded:
    """A checkpoint. `restored_previous` where the newest generation was unusable, for the reason `why`, and the one before it
    was taken."""

    session_id: str
    generation: int
    body: dict[str, object]
    restored_previous: bool = False
    why: str = ""


@dataclass(frozen=True, slots=True)
class Unusable:
    """A checkpoint file that is not obeyed, why, and what exactly was found."""

    session_id: str
    file: Path
    problem: CheckpointProblem
    error: str = ""

    def as_error(self, available: tuple[str, ...] = ()) -> CodeIntelError:
        """The contract's message for it."""
        section = "tool_errors.get_session_status"
        if self.problem is CheckpointProblem.MISSING:
            return Rejected(
                f"{section}.checkpoint_not_found", session_id=self.session_id, available=available or ("none",)
            )
        if self.problem is CheckpointProblem.VERSION:
            return Unavailable(f"{section}.checkpoint_version", file=self.file.name, version=self.error)
        key = "checkpoint_foreign" if self.problem is CheckpointProblem.FOREIGN else "checkpoint_damaged"
        return Unavailable(f"{section}.{key}", file=self.file.name, error=self.error)


class _Unreadable(Exception):
    def __init__(self, problem: CheckpointProblem, error: str) -> None:
        super().__init__(error)
        self.problem = problem
        self.error = error


class CheckpointStore:
    """The checkpoints in one folder, written by one thread of the process that holds the project's lock, read by any.

    `key` is the HMAC key (`key.load_key`). A folder that a link aims elsewhere holds none and is never written to.
    """

    def __init__(self, folder: Path, key: bytes) -> None:
        self._folder = folder
        self._key = key
        self._generations: dict[str, int] = {}
        self._written: dict[str, tuple[int, ...]] = {}

    def save(self, session_id: str, body: Mapping[str, object]) -> int:
        """Write the next generation durably and return its number; the one before it stays next to it.

        `body` is plain JSON data and may not use the names of our own fields. Raises
        Rejected('tool_errors.generic.checkpoint_too_large') beyond MAX_CHECKPOINT_BYTES,
        Unavailable('tool_errors.generic.checkpoint_not_saved') where nothing has changed, and
        Unavailable('tool_errors.generic.checkpoint_unconfirmed') where the new generation is in place but the disk did not
        confirm it; UserActionNeeded('tool_errors.generic.state_folder_unsafe') where a link leads out of it; ValueError for
        what is no JSON (NaN), which is our own mistake.
        """
        if aimed_elsewhere(self._folder):
            raise unsafe_folder(self._folder)
        path = self._path(session_id)
        generation = self._next_generation(session_id)
        data = self._sealed(session_id, generation, body)
        if len(data) > MAX_CHECKPOINT_BYTES:
            raise Rejected("tool_errors.generic.checkpoint_too_large", size=len(data), limit=MAX_CHECKPOINT_BYTES)
        try:
            temporary = self._staged(path, data)
            try:
                written = _identity(temporary.lstat())
                self._keep_previous(path, self._previous(session_id), self._written.get(session_id))
                temporary.replace(path)
            except OSError:
                files.discard(temporary)
                raise
        except OSError as error:
            raise Unavailable("tool_errors.generic.checkpoint_not_saved", error=error.strerror or str(error)) from error
        self._generations[session_id], self._written[session_id] = generation, written
        try:
            files.sync_folder(self._folder)
        except OSError as error:
            raise Unavailable(
                "tool_errors.generic.checkpoint_unconfirmed", error=error.strerror or str(error)
            ) from error
        return generation

    def load(self, session_id: str) -> Loaded:
        """The newest usable generation of a session.

        Raises Rejected('tool_errors.get_session_status.checkpoint_not_found'), or Unavailable with `checkpoint_damaged`,
        `checkpoint_foreign` or `checkpoint_version` of the same section.
        """
        try:
            found = self._load(session_id)
        except Rejected:  # no id at all, so no file was looked for: what there is has to be reported all the same
            found = Unusable(str(session_id)[:60], self._folder, CheckpointProblem.MISSING)
        if isinstance(found, Unusable):
            raise found.as_error(tuple(entry.session_id for entry in self.usable()))
        return found

    def usable(self) -> tuple[Loaded, ...]:
        """All checkpoints that can be restored, the last saved first."""
        found = [entry for entry in self._all() if isinstance(entry, Loaded)]
        return tuple(sorted(found, key=lambda entry: entry.generation, reverse=True))

    def unusable(self) -> tuple[Unusable, ...]:
        """Sessions whose files are there and are not obeyed, by name."""
        return tuple(entry for entry in self._all() if isinstance(entry, Unusable))

    def delete(self, session_id: str) -> bool:
        """Remove a session's checkpoint; whether there was one. Raises OSError.

        The older generation goes first: a death in between must not leave it to be restored.
        """
        paths = [self._previous(session_id), self._path(session_id)]
        existed = [] if aimed_elsewhere(self._folder) else [_unlink(path) for path in paths]
        self._generations.pop(session_id, None)
        self._written.pop(session_id, None)
        if any(existed):
            files.sync_folder(self._folder)
        return any(existed)

    def delete_all(self) -> tuple[str, ...]:
        """Remove every checkpoint, usable or not, and what killed writers left; the sessions that had one. Raises OSError."""
        gone = tuple(session_id for session_id in self._ids() if self.delete(session_id))
        self.sweep()
        return gone

    def sweep(self) -> int:
        """Remove temporary files of killed writers; only for the holder of the project's lock, before its first save."""
        return 0 if aimed_elsewhere(self._folder) else files.remove_temporary_files(self._folder)

    def _path(self, session_id: str) -> Path:
        return self._folder / f"{valid_id(session_id)}.json"

    def _previous(self, session_id: str) -> Path:
        return self._folder / f"{valid_id(session_id)}.previous.json"

    def _ids(self) -> list[str]:
        if aimed_elsewhere(self._folder):
            return []
        try:
            names = [entry.name for entry in self._folder.iterdir()]
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted({match["id"] for name in names if (match := _FILE.fullmatch(name))})

    def _all(self) -> Iterator[Loaded | Unusable]:
        return (self._load(session_id) for session_id in self._ids())

    def _next_generation(self, session_id: str) -> int:
        """One more than any in the folder; looked up once a session, since then we are the only writer."""
        if session_id not in self._generations:
            known = [entry.generation for entry in self._all() if isinstance(entry, Loaded)]
            self._generations[session_id] = max(known, default=0)
        return max(self._generations.values()) + 1

    def _staged(self, path: Path, data: bytes) -> Path:
        try:
            return files.stage(path, data)
        except FileNotFoundError:
            files.make_folder(self._folder)
            return files.stage(path, data)

    def _keep_previous(self, path: Path, previous: Path, written: tuple[int, ...] | None) -> None:
        """Give the present generation its second name without taking the first from it.

        Only a usable one: a damaged file must not displace the good generation that was restored in its place. What is
        still the file that we wrote last (`written`) needs no reading.
        """
        try:
            present = path.lstat()
            if written is None or _identity(present) != written:
                self._opened(path)
        except (_Unreadable, FileNotFoundError):
            return
        link = files.temporary_for(previous)
        try:
            os.link(path, link, follow_symlinks=False)
        except OSError as error:
            if error.errno not in {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS}:
                raise
            path.replace(previous)  # a volume without hard links: the name is missing for a moment, the data is not
            return
        try:
            link.replace(previous)
        except OSError:
            files.discard(link)
            raise
        if present.st_nlink > 1:
            files.discard(link)  # still there where both were names of one file already

    def _sealed(self, session_id: str, generation: int, body: Mapping[str, object]) -> bytes:
        envelope = {"schema_version": CHECKPOINT_SCHEMA, "generation": generation, "session_id": session_id}
        if clash := envelope.keys() & body.keys():
            raise ValueError(f"a checkpoint's body may not hold {sorted(clash)}")
        return signed(self._key, _encode({**envelope, **body})[1:] + b"\n")

    def _load(self, session_id: str) -> Loaded | Unusable:
        newest, previous = self._path(session_id), self._previous(session_id)
        try:
            return self._read(newest, session_id)
        except _Unreadable as unreadable:
            failed = unreadable
        # A file of a newer version is whole: an older generation must not quietly take its place.
        if failed.problem is not CheckpointProblem.VERSION:
            with contextlib.suppress(_Unreadable):
                found = self._read(previous, session_id)
                return replace(found, restored_previous=True, why=failed.error)
        return Unusable(session_id, newest, failed.problem, failed.error)

    def _read(self, path: Path, session_id: str) -> Loaded:
        content = self._opened(path)
        version, generation = content.pop("schema_version", None), content.pop("generation", None)
        owner = content.pop("session_id", None)
        if type(version) is not int or not 1 <= version <= CHECKPOINT_SCHEMA:
            raise _Unreadable(CheckpointProblem.VERSION, str(version)[:20])
        if owner != session_id or type(generation) is not int:
            raise _Unreadable(CheckpointProblem.FOREIGN, "it belongs to another session")
        return Loaded(session_id, generation, content)

    def _opened(self, path: Path) -> dict[str, object]:
        """The JSON of a file that proves to be ours."""
        try:
            data = files.read_regular(path, MAX_CHECKPOINT_BYTES)
        except FileNotFoundError:
            raise _Unreadable(CheckpointProblem.MISSING, "no such file") from None
        except OSError as error:
            raise _Unreadable(CheckpointProblem.DAMAGED, error.strerror or str(error)) from None
        try:
            return _decode(verified(self._key, data))
        except BadSignature as broken:
            raise _Unreadable(
                CheckpointProblem.FOREIGN if broken.foreign else CheckpointProblem.DAMAGED, str(broken)
            ) from None
        except (ValueError, RecursionError) as error:
            raise _Unreadable(CheckpointProblem.DAMAGED, f"not a checkpoint's JSON ({error})"[:200]) from None


def _identity(found: os.stat_result) -> tuple[int, ...]:
    """What a file cannot change its content without changing, but on purpose."""
    return found.st_ino, found.st_size, found.st_mtime_ns


def is_id(text: str) -> bool:
    """Whether this has the form of a session id."""
    return bool(re.fullmatch(ID, text, re.ASCII))


def valid_id(session_id: object) -> str:
    """`session_id` if it has the form of one (20260201_123456, 20260201_123456_2), so that it can name a file.

    Raises Rejected('tool_errors.get_session_status.checkpoint_not_found').
    """
    if isinstance(session_id, str) and is_id(session_id):
        return session_id
    raise Rejected(
        "tool_errors.get_session_status.checkpoint_not_found", session_id=str(session_id)[:60], available=("none",)
    )


def new_session_id(now: datetime, folder: Path, taken: Callable[[str], bool]) -> str:
    """A session id for `now` that no process gets twice: reserved in `folder`, which all worktrees of a repository share.

    `taken` says whether a branch, archive or checkpoint has the id already. Raises
    Unavailable('tool_errors.generic.state_unavailable').
    """
    stem = now.strftime("%Y%m%d_%H%M%S")
    reserved = folder / "session-ids"
    try:
        files.make_folder(reserved, 0o700)
        for number in range(1, 10_000):
            candidate = stem if number == 1 else f"{stem}_{number}"
            if not taken(candidate) and _reserve(reserved / candidate):
                _forget_old(reserved)
                return candidate
        raise OSError(errno.EEXIST, "no session id is left for this second")
    except OSError as error:
        raise state_unavailable(reserved, error) from error


def _reserve(path: Path) -> bool:
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return False
    return True


def _forget_old(reserved: Path) -> None:
    """Drop all but the last reservations: ids that old are protected by branch, archive and checkpoint names."""
    names = sorted(entry.name for entry in reserved.iterdir() if re.fullmatch(ID, entry.name, re.ASCII))
    for name in names[:-_KEPT_RESERVATIONS]:
        _unlink(reserved / name)


def _unlink(path: Path) -> bool:
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    return True


def _encode(body: Mapping[str, object]) -> bytes:
    # A lone surrogate is written as it is: `json.loads` reads it back, and refusing text is the flow's business.
    return json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8", "surrogatepass")


def _decode(data: bytes) -> dict[str, object]:
    """The object of a text that begins as one. Raises ValueError or RecursionError."""
    content: dict[str, object] = json.loads(
        data, object_pairs_hook=_unique, parse_constant=no_constant, parse_float=finite
    )
    return content


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("a name stands twice")
    return content
