"""search_files: paths that a glob means or that a few remembered letters point at, best first (SPEC 2)."""

import heapq
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from code_intel_server.codebase.answers import EXACT_TOTAL_LIMIT, FIRST_PAGE, LookupAnswer, Page, Row, Skipped, answer
from code_intel_server.codebase.files import ripgrep
from code_intel_server.codebase.files.ignore import project_files
from code_intel_server.codebase.files.project import ProjectScope, of_length, path_inside, valid_text, within
from code_intel_server.codebase.files.roles import RELEVANCE, Role, in_two, role
from code_intel_server.common import globs
from code_intel_server.errors import Rejected


@dataclass(frozen=True, slots=True)
class FileRow(Row):
    """A file of the project. `why` is how it was found: glob, name, path, letters; `score` orders fuzzy finds (higher is better)."""

    path: str
    role: Role
    why: str
    score: float

    def as_row(self) -> dict[str, object]:
        """The path, of a fuzzy find with its score."""
        return {"path": self.path} if self.why == "glob" else {"path": self.path, "score": round(self.score, 2)}


def search_files(
    project: ProjectScope, pattern: str, *, path: str = ".", page: Page = FIRST_PAGE, skipped: Skipped | None = None
) -> LookupAnswer[FileRow]:
    """Files below `path` whose path `pattern` means: a glob where it holds `*?[{`, else fuzzy (name, part of the path, letters in order).

    Raises Rejected('tool_errors.query.no_pattern') and the errors of `path_inside`.
    """
    if not of_length(pattern, "pattern").strip():
        raise Rejected("tool_errors.query.no_pattern")
    where = path_inside(project.root, path)
    where = within(project.root, where) or where  # what is below a link is listed where it leads
    listing = project_files(project)
    below = [name for name in listing.paths if where in {".", name} or name.startswith(f"{where}/")]
    ask = partial(_globbed, where) if globs.has_magic(pattern) else fuzzy
    total, rows = ask(below, pattern, page.range.stop)
    return answer(
        [replace(row, path=valid_text(row.path)) for row in page.cut(rows)],
        page,
        total,
        engine=ripgrep.ENGINE,
        incomplete_because=listing.problems,
        skipped=skipped,
    )


def _globbed(where: str, paths: Sequence[str], pattern: str, most: int) -> tuple[int, list[FileRow]]:
    """How many of `paths`, which are sorted, the pattern means, read from `where`, and the best `most` of them."""
    below = where != "." and "/" in pattern and not pattern.startswith("/")
    patterns = [pattern, *([f"{globs.literal(where)}/{pattern}"] if below else [])]
    found = globs.meant(paths, patterns, str)
    best = heapq.nsmallest(most, found, key=lambda name: RELEVANCE[role(name)])
    return len(found), [FileRow(name, role(name), "glob", 1.0) for name in best]


def fuzzy(paths: Sequence[str], wanted: str, most: int = EXACT_TOTAL_LIMIT) -> tuple[int, list[FileRow]]:
    """How many of `paths` hold the letters of `wanted` in order, and the `most` that answer to it best."""
    needle = wanted.strip().strip("/").lower().replace("\\", "/")
    letters = re.compile(_nearest([letter for letter in needle if not letter.isspace()]))
    scored = [(score, why, name) for name in paths for why, score in _scored(name, needle, letters)]
    # Only what may come onto the page is looked at more closely.
    least = min(heapq.nlargest(most, (score for score, _, _ in scored)), default=0.0)
    rows = [FileRow(name, role(name), why, score) for score, why, name in scored if score >= least]
    as_written = wanted.strip()
    return len(scored), heapq.nsmallest(
        most,
        rows,
        key=lambda row: (-row.score, RELEVANCE[row.role], as_written not in row.path, len(row.path), row.path),
    )


def _nearest(letters: Sequence[str]) -> str:
    """The letters in order from the group on, each the first behind the one before: where one is missing there is nothing to try again."""
    first, *others = [re.escape(letter) for letter in letters] or [""]
    before = f"[^{first}]*+" if first else ""
    return f"{before}({first}{''.join(f'[^{letter}]*+{letter}' for letter in others)})"


def _scored(path: str, needle: str, letters: re.Pattern[str]) -> Iterator[tuple[str, float]]:
    """Why a path answers and how well; nothing where it does not hold the letters."""
    lowered = path.lower()
    found = letters.match(lowered)
    if found is None:
        return
    if needle in lowered:
        yield _grade(lowered, needle)
        return
    in_name = letters.match(lowered, lowered.rfind("/") + 1)
    best = in_name or found
    # Dense letters in the file's own name beat letters scattered over folders.
    yield "letters", round((0.3 if in_name else 0.1) * len(needle) / max(best.end() - best.start(1), 1), 4)


def _grade(path: str, needle: str) -> tuple[str, float]:
    """How well a path answers that holds the needle as it is written."""
    name = path.rpartition("/")[2]
    grades = (
        (path == needle, "path", 1.0),
        (name == needle, "name", 0.95),
        (needle in {name.split(".")[0], in_two(name)[0]}, "name", 0.9),
        (path.endswith(f"/{needle}"), "path", 0.85),
        (name.startswith(needle), "name", 0.75),
        (needle in name, "name", 0.65),
    )
    return next(((why, score) for fits, why, score in grades if fits), ("path", 0.5))
