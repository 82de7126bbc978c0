"""The files of a project as a turn, a session or a run left them, known by one question to git (SPEC 12).

What the gate outside of sessions goes by. A `TreeState` is HEAD and the files that differ from it, each with a short hash of
its content, so that two of them can be compared without a walk through the project, and a commit of what was seen changes
nothing. Imported by the hook command: without pathlib or pydantic as far as a git directory of ours is there already.
"""

import hashlib
import json
import os
import stat
import time
from dataclasses import dataclass

from code_intel_server import process
from code_intel_server.common.own_folder import is_written
from code_intel_server.workspace.files import read_regular
from code_intel_server.workspace.state.signature import BadSignature, signed, verified

NAME = "outside"
"""Begins the names of what is kept, and is that of the git directory."""

_GIT_SECONDS = 5.0
_READ_LIMIT = 4_000_000
_HASHED_BYTES = 128 * 1024
_HASHED_FILES = 200
"""Larger files, and those beyond so many, are known by size and time."""
FILES_AT_MOST = 2_000

FileStates = dict[str, str]


@dataclass(frozen=True)
class TreeState:
    """HEAD, the files that differ from it by their path from the top, and when they were looked at (Unix time)."""

    head: str
    files: FileStates
    at: int

    @property
    def digest(self) -> str:
        """The same for the same content of all files at the same commit."""
        return hashlib.sha256(json.dumps([self.head, sorted(self.files.items())]).encode()).hexdigest()[:32]

    def kept(self) -> dict[str, object]:
        """As it is kept in a file."""
        return {"head": self.head, "files": self.files, "at": self.at}


def tree_state(kept: object) -> TreeState | None:
    """What `kept` made; None for anything else."""
    if not isinstance(kept, dict) or not isinstance(kept.get("files"), dict):
        return None
    head, at = kept.get("head"), kept.get("at")
    if not isinstance(head, str) or not isinstance(at, int):
        return None
    return TreeState(head, {str(path): str(known) for path, known in kept["files"].items()}, at)


@dataclass(frozen=True)
class Worktree:
    """A project in a worktree: its root, the worktree's top, its git directory, the one all worktrees share, and HEAD's commit."""

    root: str
    top: str
    git_dir: str
    common: str
    head: str

    @property
    def private(self) -> str:
        """Where what is kept lies."""
        return os.path.join(self.git_dir, "code-intel")

    def file(self, name: str) -> str:
        """A file that is kept for this project; two projects of one worktree have their own."""
        prefix = os.path.relpath(self.root, self.top)
        own = "" if prefix == "." else f".{hashlib.sha256(os.fsencode(prefix)).hexdigest()[:16]}"
        return os.path.join(self.private, f"{NAME}.{name}{own}.json")

    def look(self) -> TreeState:
        """The project's files now. Raises OSError where git does not answer, and what preparing our git directory raises."""
        self._prepare()
        at = int(time.time())
        untracked = "--untracked-files=all"
        asked = ("status", "--porcelain", "-z", untracked, "--no-renames", "--ignore-submodules=dirty")
        prefix = os.path.relpath(self.root, self.top)
        told = self._git(*asked, "--", *([] if prefix == "." else [prefix]))
        paths = [os.fsdecode(row[3:]) for row in told.split(b"\0") if row]
        paths = sorted(path for path in paths if not is_written(path))[:FILES_AT_MOST]
        return TreeState(self.head, {path: self._known(path, number) for number, path in enumerate(paths)}, at)

    def changed(self, since: TreeState, now: TreeState) -> set[str]:
        """The files that were changed since, committed meanwhile or not; not those that are again as HEAD has them."""
        committed = self._committed(since, now) if since.head != now.head else set[str]()
        found = committed | now.files.keys()
        return {path for path in found if since.files.get(path) != (now.files.get(path) or self._known(path, 0))}

    def _committed(self, since: TreeState, now: TreeState) -> set[str]:
        """The files of commits that were made since: not those of a checkout or a pull, which are older."""
        asked = ("log", "-m", "--first-parent", "--no-renames", "--no-show-signature", "--name-only", "-z", "--format=")
        try:
            told = self._git(*asked, f"--since={since.at}", f"{since.head}..{now.head}")
        except OSError:
            return set()
        names = (os.fsdecode(name).strip("\n") for name in told.split(b"\0"))
        inside = "" if self.root == self.top else os.path.relpath(self.root, self.top) + "/"
        return {name for name in names if name and name.startswith(inside) and not is_written(name)}

    def _known(self, path: str, number: int) -> str:
        """What tells one content of a file from another; 'gone' where there is none."""
        place = os.path.join(self.top, path)
        try:
            status = os.lstat(place)
            if stat.S_ISLNK(status.st_mode):
                return f"link {os.readlink(place)}"
            if not stat.S_ISREG(status.st_mode):
                return "folder"
            if status.st_size > _HASHED_BYTES or number >= _HASHED_FILES:
                return f"{status.st_size} {status.st_mtime_ns}"
        except OSError:
            return "gone"
        content = _read(place, _HASHED_BYTES + 1)
        return f"{hashlib.sha256(content).hexdigest()[:24]}{' x' if status.st_mode & stat.S_IXUSR else ''}"

    # -- git ------------------------------------------------------------------------------------------------------------

    def _git(self, *arguments: str) -> bytes:
        """Ask through the git directory of ours: nothing of the repository's configuration is read (`isolated_directory`)."""
        settings = {
            "GIT_DIR": os.path.join(self.private, NAME),
            "GIT_WORK_TREE": self.top,
            "GIT_INDEX_FILE": os.path.join(self.git_dir, "index"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "LC_ALL": "C",
        }
        argv = ["git", "--no-pager", "--literal-pathspecs", *arguments]
        from pathlib import Path

        env = process.clean_environment(settings)
        done = process.run(argv, cwd=Path(self.top), timeout=_GIT_SECONDS, env=env)
        if not done.ok or done.truncated:
            raise OSError(f"git {arguments[0]}: {done.error_text()[:200]}")
        return done.stdout

    def _prepare(self) -> None:
        """Have our git directory, as new as what it is made from, with HEAD where the repository's is."""
        folder = os.path.join(self.private, NAME)
        made = _modified(os.path.join(folder, "config"))
        sources = (f"{self.common}/config", f"{self.git_dir}/config.worktree", f"{self.common}/info/exclude")
        shared = any(name.startswith("sharedindex.") for name in os.listdir(self.git_dir))
        if not made or shared or any(_modified(source) > made for source in sources):
            self._make(folder)
        head = os.path.join(folder, "HEAD")
        wanted = f"{self.head}\n".encode()
        if _read(head) != wanted:
            replace(head, wanted)

    def _make(self, folder: str) -> None:
        """Make it anew: once, and after a change of the repository's configuration."""
        from pathlib import Path

        from code_intel_server.errors import CodeIntelError
        from code_intel_server.workspace.git.isolated_directory import NO_DRIVERS, IsolatedGit
        from code_intel_server.workspace.git.repository import Git, open_repository
        from code_intel_server.workspace.tree.tree import LEFT_BY_RUNS

        git = open_repository(Path(self.root))
        if not isinstance(git, Git):
            raise OSError(git)
        try:
            IsolatedGit(git, NAME, NO_DRIVERS, (), LEFT_BY_RUNS).prepare()
        except CodeIntelError as error:
            raise OSError(error.key) from error
        os.utime(os.path.join(folder, "config"))

    # -- what is kept ---------------------------------------------------------------------------------------------------

    def read(self, name: str, key: bytes = b"") -> dict[str, object]:
        """A file that is kept, with `key` only one that this machine has signed; {} where there is none that can be used."""
        try:
            data = _read(self.file(name))
            content = json.loads(verified(key, data) if key else data)
        except (BadSignature, ValueError, RecursionError):
            return {}
        return content if isinstance(content, dict) else {}

    def write(self, name: str, content: dict[str, object], key: bytes = b"") -> None:
        """Keep it; raises OSError."""
        data = json.dumps(content).encode()
        replace(self.file(name), signed(key, data[1:]) if key else data)


def replace(path: str, data: bytes) -> None:
    """Write a file so that a reader meets the old content or the new one."""
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    fresh = f"{path}.{os.getpid()}.new"
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as stream:
        stream.write(data)
    os.replace(fresh, path)


def _read(path: str, limit: int = _READ_LIMIT) -> bytes:
    """What a regular file holds, up to a limit; nothing where there is none."""
    try:
        return read_regular(path, limit)
    except OSError:
        return b""


def _modified(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0
