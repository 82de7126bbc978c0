"""Where things are: the project's root, its `.code-intel` folder, and what one path argument of an agent names.

A path from an agent is a claim. `relative_path` follows it as the operating system would (links, `..`, letter case on volumes
that fold it) and lets it through only if it ends in the project and not in git's own folder.
"""

import contextlib
import os
import re
import stat
import threading
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import accumulate
from pathlib import Path

from code_intel_server.common import globs, own_folder
from code_intel_server.common.printable import printable
from code_intel_server.errors import Rejected, UserActionNeeded
from code_intel_server.workspace.files import make_folder, read_regular, write_whole

FOLDER, EXCLUDED, SERVER_WRITES = own_folder.FOLDER, own_folder.EXCLUDED, own_folder.SERVER_WRITES

MAX_PATH_BYTES = 4096
MAX_NAME_BYTES = 255
MAX_SHOWN = 200
EXCLUDE_LIMIT = 1 << 20
EXCLUDE_TITLE = "# written by code-intel-server while it runs"


def find_root(start: Path, override: Path | None = None) -> Path:
    """The project of a working directory: `override`, else the nearest folder upwards with `.code-intel/`, else the git
    root, else `start` itself (SPEC 12).

    A `.code-intel` above the git root belongs to another project and is not taken.
    """
    if override is not None:
        return override.resolve()
    here = start.resolve()
    for folder in (here, *here.parents):
        if (folder / FOLDER).is_dir() or (folder / ".git").exists():
            return folder
    return here


@dataclass(frozen=True)
class Project:
    """A project by its real root, and the places the server knows in it."""

    root: Path
    folder: Path = field(init=False)
    home_folder: Path = field(init=False)
    """The folder with the settings and the logs: another one only where a session has a worktree of its own."""

    def __post_init__(self) -> None:
        """Resolve the root, so that one project has one name."""
        object.__setattr__(self, "root", self.root.resolve())
        object.__setattr__(self, "folder", self.root / FOLDER)
        home = own_folder.home_of(str(self.root))
        object.__setattr__(self, "home_folder", Path(home) / FOLDER if home else self.folder)

    @property
    def home(self) -> Path | None:
        """The user's own folder, where this is the worktree of one of its sessions."""
        return None if self.home_folder == self.folder else self.home_folder.parent

    @cached_property
    def sessions(self) -> Path:
        """Checkpoints."""
        return self.folder / "sessions"

    @cached_property
    def cache(self) -> Path:
        """Symbol cache, index and other things that can be made again."""
        return self.folder / "cache"

    @cached_property
    def logs(self) -> Path:
        """Decisions, outcomes, ledgers and the server's log."""
        return self.home_folder / "logs"

    @cached_property
    def config_file(self) -> Path:
        """Configuration of index, proofs and finish."""
        return self.home_folder / "config.json"

    @cached_property
    def context_file(self) -> Path:
        """Project rules and document research."""
        return self.home_folder / "context.yml"

    @cached_property
    def contract_file(self) -> Path:
        """The project's own messages and instructions."""
        return self.home_folder / "phase_contract.yml"

    @property
    def scaffolded(self) -> bool:
        """Whether the folder holds more than what the server itself leaves there."""
        try:
            return not {*os.listdir(self.home_folder)} <= {*EXCLUDED}
        except OSError:
            return False

    def ledger_file(self, session_id: str) -> Path:
        """The ledger of one session."""
        return self.logs / "ledger" / f"{session_id}.jsonl"

    def reads_file(self, session_id: str) -> Path:
        """Where the client's hook notes what the client has read by itself."""
        return self.sessions / f"{session_id}.reads"

    def inside(self, text: object, *, follow: bool = True) -> str:
        """`relative_path` for this root."""
        return relative_path(self.root, text, follow=follow)

    def writable(self, *parts: str) -> Path:
        """Make the folder `.code-intel/<parts>` for the server's own files and return it.

        Raises UserActionNeeded('tool_errors.generic.state_folder_unsafe') where one of its parts is a link or no folder: a
        repository could have aimed it anywhere. Raises OSError where it cannot be made.
        """
        of_worktree = {*parts[:1]} & {*EXCLUDED} - {"logs"}
        folder = (self.folder if of_worktree else self.home_folder).joinpath(*parts)
        if aimed_elsewhere(folder):
            raise unsafe_folder(folder)
        try:
            make_folder(folder)
        except (FileExistsError, NotADirectoryError):
            raise unsafe_folder(folder) from None
        return folder

    def check_folders(self) -> None:
        """Refuse a project whose repository aims one of the server's own folders elsewhere by a link.

        Raises UserActionNeeded('tool_errors.generic.state_folder_unsafe').
        """
        for name in (*EXCLUDED, "logs/sessions", "agreements"):
            if aimed_elsewhere(self.folder / name):
                raise unsafe_folder(self.folder / name)


def aimed_elsewhere(path: Path) -> bool:
    """Whether a link is at or below the last `.code-intel` of a path: a repository could have put it there."""
    return any(os.path.islink(one) for one in _own_part(str(path)))


@lru_cache(maxsize=256)
def _own_part(path: str) -> tuple[str, ...]:
    """The last `.code-intel` of a path and what is below it, one path each: asked before every write of the same few files."""
    parts = Path(path).parts
    if FOLDER not in parts:
        return ()
    below = parts[::-1].index(FOLDER)
    prefix = os.path.join(*parts[: len(parts) - below])
    return tuple(accumulate(parts[len(parts) - below :], os.path.join, initial=prefix))


def unsafe_folder(folder: Path) -> UserActionNeeded:
    """The refusal to write where a link leads."""
    name = "/".join(folder.parts[folder.parts.index(FOLDER) :]) if FOLDER in folder.parts else folder.name
    return UserActionNeeded("tool_errors.generic.state_folder_unsafe", folder=printable_path(name))


def relative_path(root: Path, text: object, *, follow: bool = True) -> str:
    """The path that `text` names, relative to `root`, '/'-separated, links resolved, spelled as on disk; '.' for the root.

    It need not exist. With `follow=False` a link named by the last part stays itself. Raises
    Rejected('tool_errors.generic.path_outside_project') and Rejected('tool_errors.generic.path_invalid') with its reason.
    """
    given = _checked(text)
    base = os.path.realpath(root)
    joined = os.path.join(base, given)  # pathlib would fold 'a/../b' before links are looked at
    real = os.path.realpath(joined) if follow else _real_but_last(joined)
    if os.path.commonpath([base, real]) != base:
        raise Rejected("tool_errors.generic.path_outside_project", path=printable_path(given))
    relative = os.path.relpath(real, base)
    if relative == ".":
        return relative
    parts = relative.split("/")
    if any(len(os.fsencode(part)) > MAX_NAME_BYTES for part in parts):
        raise _invalid(given, f"a name longer than {MAX_NAME_BYTES} bytes")
    # `realpath` leaves a link in place only where it leads to itself.
    if follow and any(os.path.islink(part) for part in (real, *map(str, Path(real).parents))):
        raise _invalid(given, "a symbolic link that leads to itself")
    if folds_case(base):
        parts = as_spelled(Path(base), parts)
    if any(part.casefold() == ".git" for part in parts):
        raise _invalid(given, "inside git's own folder")
    return "/".join(parts)


def printable_path(text: str) -> str:
    """A path as a message may show it: escaped and cut."""
    safe = printable(text).replace("\n", "\\n").replace("\t", "\\t")
    return safe if len(safe) <= MAX_SHOWN else f"{safe[:MAX_SHOWN]}…"


def as_spelled(root: Path, parts: list[str]) -> list[str]:
    """`parts` below `root` with the letters the file system gives them; those that do not exist stay as they are."""
    spelled: list[str] = []
    folder = root
    for part in parts:
        spelled.append(_spelling(folder, part))
        folder = folder / spelled[-1]
    return spelled


def glob_filter(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    """Tell whether a project-relative path matches one of `patterns` (`globs`); one that ends in '/' names all below a folder at the root."""
    means = [globs.matcher(_from_root(pattern)) for pattern in patterns if pattern.strip("/")]
    return lambda path: any(fits(path) for fits in means)


def _from_root(pattern: str) -> str:
    if "/" not in pattern:
        return pattern
    below = "**" if pattern.endswith("/") else ""
    return f"/{pattern.removeprefix('./').lstrip('/')}{below}"


def in_main_worktree(path: Path, *, claimed: bool = False) -> Path:
    """The same place in the main worktree of its repository: itself unless it is in a linked worktree.

    A linked worktree is one of which the repository itself has a record, and that leads back to it: no folder can claim to
    be another's. Of a main worktree whose git directory lies elsewhere there is no record: `claimed` believes its claim.
    """
    real = Path(os.path.realpath(path))
    for top in real.parents:
        entry = top / ".git"
        if os.path.lexists(entry):
            break
    else:
        return real
    try:
        record = Path(os.path.join(top, _line(entry).removeprefix("gitdir: ")))  # it may be relative
        if claimed and not (record / "commondir").exists():
            place = Path(os.path.realpath(record))
            return (place.parent if place.name == ".git" else place) / real.relative_to(top)
        common = Path(os.path.realpath(record / _line(record / "commondir")))
        if Path(os.path.realpath(record)).parent != common / "worktrees":
            return real
        if not os.path.samefile(record / _line(record / "gitdir"), entry):
            return real
    except (OSError, UnicodeDecodeError):
        return real
    return (common.parent if common.name == ".git" else common) / real.relative_to(top)


def _line(file: Path) -> str:
    return read_regular(file, EXCLUDE_LIMIT).decode().rstrip("\n")


def exclude_from_git(project: Project, git_common_dir: Path, worktree_root: Path) -> bool:
    """Name the server's own folders in `info/exclude` of the repository, once; whether it had to be written (SPEC 6.8).

    `worktree_root` is where the patterns are anchored. Raises OSError, and ValueError where the project is not below it.
    """
    prefix = project.folder.relative_to(worktree_root.resolve()).as_posix()
    escaped = re.sub(r"([\\*?\[\]])", r"\\\1", prefix)
    file = Path(os.path.realpath(git_common_dir / "info" / "exclude"))
    try:
        present = read_regular(file, EXCLUDE_LIMIT)
    except FileNotFoundError:
        present = b""
    lines = present.decode("utf-8", "surrogateescape").splitlines()
    missing = [line for name in EXCLUDED if (line := f"/{escaped}/{name}/") not in lines]
    if not missing:
        return False
    added = "\n".join([EXCLUDE_TITLE, *missing, ""]).encode("utf-8", "surrogateescape")
    make_folder(file.parent)
    write_whole(file, present + (b"" if not present or present.endswith(b"\n") else b"\n") + added, 0o644)
    return True


def _checked(text: object) -> str:
    if not isinstance(text, str) or not text.strip():
        raise Rejected("tool_errors.generic.argument_invalid", field="path", expected="a path inside the project")
    if "\0" in text:
        raise _invalid(text, "a NUL character")
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError:
        raise _invalid(text, "a lone surrogate") from None
    if size > MAX_PATH_BYTES:
        raise _invalid(text, f"longer than {MAX_PATH_BYTES} bytes")
    return text


def _invalid(text: str, reason: str) -> Rejected:
    return Rejected("tool_errors.generic.path_invalid", path=printable_path(text), reason=reason)


def _real_but_last(joined: str) -> str:
    folder, name = os.path.split(joined.rstrip("/") or "/")
    if name in {"", ".", ".."}:
        return os.path.realpath(joined)
    return os.path.join(os.path.realpath(folder), name)


@lru_cache(maxsize=16)
def folds_case(root: str) -> bool:
    """Whether the volume takes `README` for `readme`: asked of the root's own name, so nothing is written."""
    swapped = root.swapcase()
    try:
        return swapped != root and os.path.samefile(root, swapped)
    except OSError:
        return False


@lru_cache(maxsize=16)
def keeps_modes(folder: str) -> bool:
    """Whether the volume of a folder of ours keeps who may execute a file."""
    probe = Path(folder) / f"mode.{os.getpid()}.{threading.get_ident()}"
    try:
        probe.touch(0o600)
        plain = probe.stat().st_mode
        probe.chmod(0o700)
        return bool(probe.stat().st_mode & ~plain & stat.S_IXUSR)
    except OSError:
        return False
    finally:
        with contextlib.suppress(OSError):
            probe.unlink()


def _spelling(folder: Path, part: str) -> str:
    try:
        names = os.listdir(folder)
    except OSError:
        return part
    if part in names:
        return part
    wanted = _folded(part)
    return next((name for name in names if _folded(name) == wanted), part)


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()
