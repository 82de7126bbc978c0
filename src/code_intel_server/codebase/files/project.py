"""The project as the lookups see it: its root, what is left out of it, and the one way a path argument enters."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from code_intel_server.common.own_folder import FOLDER as OUR_FOLDER
from code_intel_server.common.own_folder import SERVER_WRITES, is_written
from code_intel_server.errors import Rejected

GIT_FOLDER = ".git"

NEVER_LISTED = (f"**/{GIT_FOLDER}", f"/{OUR_FOLDER}", f"**/{OUR_FOLDER}/{{{','.join(SERVER_WRITES)}}}")
"""As globs: git's own store, that of embedded repositories too, our own folder, and what the server of a project within this one writes."""

MAX_ASKED = 10_000
MAX_FILE_BYTES = 1024 * 1024
"""Larger files are skipped (SPEC 8)."""


@dataclass(frozen=True, slots=True)
class ProjectScope:
    """A project's root (absolute, symlinks resolved) and the globs its configuration excludes (gitignore syntax)."""

    root: Path
    exclude_patterns: tuple[str, ...] = ()
    keeps: bool = True
    """Whether something may be kept on disk: else caches live in memory."""

    @classmethod
    def at(cls, root: Path | str, exclude_patterns: tuple[str, ...] = (), *, keeps: bool = True) -> "ProjectScope":
        """The project in the folder `root`."""
        return cls(Path(root).resolve(strict=True), tuple(exclude_patterns), keeps)

    @property
    def cache_dir(self) -> Path:
        """Where disposable caches live."""
        return self.root / ".code-intel" / "cache"


def path_inside(root: Path, path: str) -> str:
    """`path` relative to `root`, '/'-separated, '.' for the root itself.

    Accepts relative and absolute paths; symlinks are followed to judge, not to rename. Raises
    Rejected('tool_errors.generic.path_outside_project') for what leads out of the project,
    Rejected('tool_errors.generic.path_closed') for what is in git's or our own folder,
    Rejected('tool_errors.generic.path_not_found') for what does not exist.
    """
    if not path or "\0" in path:
        raise Rejected("tool_errors.generic.path_not_found", path=valid_text(path).replace("\0", "\\0"))
    lexical = Path(os.path.normpath(root / path))
    try:
        real = lexical.resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as problem:
        # Said only of what lies inside: whether something outside exists is none of the caller's business.
        key = "path_not_found" if lexical.is_relative_to(root) else "path_outside_project"
        raise Rejected(f"tool_errors.generic.{key}", path=valid_text(path)) from problem
    if not real.is_relative_to(root):
        raise Rejected("tool_errors.generic.path_outside_project", path=valid_text(path))
    named = lexical if lexical.is_relative_to(root) else real
    relative = PurePosixPath(named.relative_to(root).as_posix())
    if any(map(is_closed, (str(relative), real.relative_to(root).as_posix()))):
        raise Rejected("tool_errors.generic.path_closed", path=valid_text(path))
    return str(relative)


def of_length(text: str, field: str) -> str:
    """What was asked for, where a program's argument and a database's pattern can hold it.

    Raises Rejected('tool_errors.generic.argument_invalid') for more than MAX_ASKED bytes of UTF-8.
    """
    if len(text.encode("utf-8", "surrogatepass")) > MAX_ASKED:
        expected = f"at most {MAX_ASKED} bytes"
        raise Rejected("tool_errors.generic.argument_invalid", field=field, expected=expected)
    return text


def is_closed(path: str) -> bool:
    """Whether a relative path leads into git's store or our own folder, whatever the letters' case."""
    parts = path.casefold().split("/")
    return GIT_FOLDER in parts or parts[:1] == [OUR_FOLDER]


def is_state(path: str) -> bool:
    """Whether a relative path is our own folder, or lies in what the server of a project within this one writes.

    That project's prompts and settings are text as any other.
    """
    return path == OUR_FOLDER or is_written(path)


def within(root: Path, path: str) -> str | None:
    """Where an existing path leads, links followed, relative to `root`; None where that is outside, in git's or in our folder."""
    try:
        real = (root / path).resolve(strict=True).relative_to(root).as_posix()
    except (OSError, RuntimeError, ValueError):
        return None
    return None if is_closed(real) else real


def there(root: Path, paths: Iterable[str]) -> Iterator[str]:
    """Those of the paths at which something still is."""
    return (path for path in paths if os.path.lexists(root / path))


def inside_file(root: Path, path: str) -> str:
    """`path_inside`, for a regular file only (no folder, FIFO or device).

    Raises Rejected('tool_errors.generic.not_a_file') for anything else.
    """
    if not path:
        raise Rejected("tool_errors.query.no_file_path")
    relative = path_inside(root, path)
    if not (root / relative).is_file():
        raise Rejected("tool_errors.generic.not_a_file", path=valid_text(path))
    return relative


def valid_text(path: str) -> str:
    """A path as valid text: each byte of a name that is no UTF-8 becomes a question mark."""
    return path if path.isascii() else path.encode("utf-8", "replace").decode("utf-8")
