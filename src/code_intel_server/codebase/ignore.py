"""Which files a project has, and how many are left out: the listing that search_files and the index share (SPEC 8).

`.gitignore` is honoured as ripgrep honours it (outside git as well), then the configured `exclude_patterns`; symlinks
are never followed; `.git`, `.code-intel` and what the server of a project within this one writes are never listed.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from code_intel_server.codebase import ripgrep
from code_intel_server.codebase.answers import Skipped
from code_intel_server.codebase.project import Project


@dataclass(frozen=True, slots=True)
class Listing:
    """Paths relative to the project, sorted; `problems` say what could not be listed."""

    paths: tuple[str, ...]
    problems: tuple[str, ...] = ()


def project_files(project: Project) -> Listing:
    """Every file that is neither ignored, excluded nor larger than 1 MB (binaries are still among them)."""
    paths, problems = ripgrep.list_files(project)
    return Listing(tuple(sorted(paths)), problems)


def count_skipped(project: Project) -> Skipped:
    """Count what lookups leave out: ignored or excluded, binary, larger than 1 MB. Costs four walks of the tree."""
    listed, _ = ripgrep.list_files(project)
    with_large, _ = ripgrep.list_files(project, ("--max-filesize", "1000G"))
    everything, _ = ripgrep.list_files(Project(project.root), ("--no-ignore", "--max-filesize", "1000G"))
    return Skipped(
        ignored=max(len(everything) - len(with_large), 0),
        binary=_count_binary(project),
        too_large=max(len(with_large) - len(listed), 0),
        counted=True,
    )


def _count_binary(project: Project) -> int:
    # With --text ripgrep reads on past NUL bytes, and it decodes UTF-16 first, so what still holds a NUL is binary.
    return len(ripgrep.matching_files(project, ripgrep.Query((r"\x00",)), extra=("--text",))[0])


class SkipCounter:
    """The latest count of skipped files, retaken at most every `seconds`, never by the caller who asks for it."""

    def __init__(self, project: Project, seconds: float = 60.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._project = project
        self._seconds = seconds
        self._clock = clock
        self._lock = Lock()
        self._latest = Skipped()
        self._due = float("-inf")

    @property
    def latest(self) -> Skipped:
        """What was counted last; `counted` is False before the first count."""
        return self._latest

    def refresh(self) -> Skipped:
        """Count again if that is due; callers run it where a few walks of the tree do no harm."""
        with self._lock:
            if self._clock() >= self._due:
                self._latest = count_skipped(self._project)
                self._due = self._clock() + self._seconds
        return self._latest
