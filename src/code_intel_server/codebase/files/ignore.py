"""Which files a project has, and how many are left out: the listing that search_files and the index share (SPEC 8).

`.gitignore` is honoured as ripgrep honours it (outside git as well), then the configured `exclude_patterns`; symlinks
are never followed; `.git`, `.code-intel` and what the server of a project within this one writes are never listed.
"""

import contextlib
import time
from dataclasses import dataclass
from threading import Lock, Thread

from code_intel_server.codebase.answers import Skipped
from code_intel_server.codebase.files import ripgrep
from code_intel_server.codebase.files.project import ProjectScope
from code_intel_server.errors import CodeIntelError

_ANY_SIZE = ("--max-filesize", "1000G")


@dataclass(frozen=True, slots=True)
class FileListing:
    """Paths relative to the project, sorted; `problems` say what could not be listed."""

    paths: tuple[str, ...]
    problems: tuple[str, ...] = ()


def project_files(project: ProjectScope) -> FileListing:
    """Every file that is neither ignored, excluded nor larger than 1 MB (binaries are still among them)."""
    paths, problems = ripgrep.list_files(project)
    return FileListing(tuple(sorted(paths)), problems)


def files_of_any_size(project: ProjectScope) -> FileListing:
    """Every file that is neither ignored nor excluded."""
    paths, problems = ripgrep.list_files(project, _ANY_SIZE)
    return FileListing(tuple(sorted(paths)), problems)


def count_skipped(project: ProjectScope) -> Skipped:
    """Count what lookups leave out: ignored or excluded, binary, larger than 1 MB. Costs four walks of the tree."""
    listed, _ = ripgrep.list_files(project)
    with_large, _ = ripgrep.list_files(project, _ANY_SIZE)
    everything, _ = ripgrep.list_files(ProjectScope(project.root), ("--no-ignore", *_ANY_SIZE))
    return Skipped(
        ignored=max(len(everything) - len(with_large), 0),
        binary=_count_binary(project),
        too_large=max(len(with_large) - len(listed), 0),
        counted=True,
    )


def _count_binary(project: ProjectScope) -> int:
    # With --text ripgrep reads on past NUL bytes, and it decodes UTF-16 first, so what still holds a NUL is binary.
    return len(ripgrep.matching_files(project, ripgrep.Query((r"\x00",)), extra=("--text",))[0])


FIRST_SECONDS = 0.1
"""How long a lookup waits for the first count: small projects are counted by then, and larger ones for the next lookup."""


class SkipCounter:
    """The latest count of skipped files, retaken at most once a minute, never by the caller who asks for it."""

    def __init__(self, project: ProjectScope) -> None:
        self._project = project
        self._lock = Lock()
        self._beginning = Lock()
        self._first: Thread | None = None
        self._latest = Skipped()
        self._due = float("-inf")

    @property
    def latest(self) -> Skipped:
        """What was counted last; `counted` is False before the first count."""
        return self._latest

    def begin(self) -> None:
        """Count in the background where nothing was counted yet, and give that a moment."""
        if self._latest.counted:
            return
        with self._beginning:
            if self._first is None:
                first = Thread(target=self._count_first, name="skip-count", daemon=True)
                first.start()  # may fail where there are no more threads
                self._first = first
        self._first.join(FIRST_SECONDS)

    def _count_first(self) -> None:
        with contextlib.suppress(CodeIntelError, OSError):  # the lookup itself will tell
            self.refresh()

    def refresh(self) -> Skipped:
        """Count again if that is due; callers run it where a few walks of the tree do no harm."""
        with self._lock:
            if time.monotonic() >= self._due:
                self._latest = count_skipped(self._project)
                self._due = time.monotonic() + 60.0
        return self._latest
