"""search_files: paths that a glob means or that a few remembered letters point at, best first (SPEC 2)."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from code_intel_server.codebase import globs, ripgrep
from code_intel_server.codebase.answers import FIRST_PAGE, Answer, Page, Skipped, answer
from code_intel_server.codebase.ignore import project_files
from code_intel_server.codebase.project import Project, inside, shown, there
from code_intel_server.codebase.roles import RELEVANCE, Role, role
from code_intel_server.errors import Rejected


@dataclass(frozen=True, slots=True)
class FileRow:
    """A file of the project. `why` is how it was found: glob, name, path, letters; `score` orders fuzzy finds (higher is better)."""

    path: str
    role: Role
    why: str
    score: float
    start_line: int = 1
    end_line: int = 1


def search_files(
    project: Project,
    pattern: str,
    *,
    path: str = ".",
    page: Page = FIRST_PAGE,
    skipped: Skipped | None = None,
) -> Answer[FileRow]:
    """Files below `path` whose path `pattern` means: a glob where it holds `*?[{`, else fuzzy (name, part of the path, letters in order).

    Raises Rejected('tool_errors.query.no_pattern') and the errors of `inside`.
    """
    if not pattern.strip():
        raise Rejected("tool_errors.query.no_pattern")
    where = inside(project.root, path)
    listing = project_files(project)
    below = [name for name in listing.paths if where in {".", name} or name.startswith(f"{where}/")]
    rows = _globbed(below, pattern, where) if globs.has_magic(pattern) else fuzzy(below, pattern)
    found = page.cut(rows)
    spelled = {shown(name): name for name in below if not name.isascii()}
    present = set(map(shown, there(project.root, (spelled.get(row.path, row.path) for row in found))))
    gone = sum(row.path not in present for row in found)
    problems = (*listing.problems, *([f"{gone} files of this page went while they were looked for"] if gone else []))
    return answer(
        [row for row in found if row.path in present],
        page,
        len(rows),
        engine=ripgrep.ENGINE,
        incomplete_because=problems,
        skipped=skipped,
    )


def _globbed(paths: Sequence[str], pattern: str, where: str) -> list[FileRow]:
    anchored = pattern if where == "." or "/" not in pattern or pattern.startswith("/") else f"{where}/{pattern}"
    found = [name for name in paths if globs.matches(name, pattern) or globs.matches(name, anchored)]
    return [
        FileRow(shown(name), role(name), "glob", 1.0)
        for name in sorted(found, key=lambda name: (RELEVANCE[role(name)], name))
    ]


def fuzzy(paths: Sequence[str], wanted: str) -> list[FileRow]:
    """Rank `paths` by how well they answer to `wanted`, leaving out those that do not hold its letters in order."""
    needle = wanted.strip().strip("/").lower().replace("\\", "/")
    letters = re.compile(".*?".join(re.escape(letter) for letter in needle if not letter.isspace()), re.DOTALL)
    rows = [row for name in paths if (row := _scored(name, needle, letters))]
    as_written = wanted.strip()
    return sorted(
        rows, key=lambda row: (-row.score, RELEVANCE[row.role], as_written not in row.path, len(row.path), row.path)
    )


def _scored(path: str, needle: str, letters: re.Pattern[str]) -> FileRow | None:
    lowered = path.lower()
    found = letters.search(lowered)
    if found is None:
        return None
    why, score = next(_grades(PurePosixPath(lowered), needle), ("letters", 0.0))
    if why == "letters":
        in_name = letters.search(lowered, lowered.rfind("/") + 1)
        best = in_name or found
        # Dense letters in the file's own name beat letters scattered over folders.
        score = (0.3 if in_name else 0.1) * len(needle) / max(best.end() - best.start(), 1)
    return FileRow(shown(path), role(path), why, round(score, 4))


def _grades(path: PurePosixPath, needle: str) -> Iterator[tuple[str, float]]:
    if str(path) == needle:
        yield "path", 1.0
    if path.name == needle:
        yield "name", 0.95
    if path.name.split(".")[0] == needle or path.stem == needle:
        yield "name", 0.9
    if str(path).endswith(f"/{needle}"):
        yield "path", 0.85
    if path.name.startswith(needle):
        yield "name", 0.75
    if needle in path.name:
        yield "name", 0.65
    if needle in str(path):
        yield "path", 0.5
