"""analyze_impact: what a change to these symbols or files touches (SPEC 8).

From each target's definitions to the lines that use it, to the symbols these are in, and so on to `depth`; besides that
what history saw change together, and the softer ties: files that name the file, tests by their name, configuration and
documentation that mention it, CSS names that styles, pages and scripts share. Every tie is a place.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from code_intel_server.codebase.answers import LookupAnswer, Page, Skipped, answer
from code_intel_server.codebase.files.project import ProjectScope, there
from code_intel_server.codebase.files.text import counted
from code_intel_server.codebase.impact.history import changed_together
from code_intel_server.codebase.impact.run import Analysis
from code_intel_server.codebase.impact.surroundings import (
    tie_by_file_name,
    tie_by_markup,
    tie_by_test_name,
    word_similarity,
)
from code_intel_server.codebase.impact.targets import is_style, names_of
from code_intel_server.codebase.impact.uses import follow
from code_intel_server.codebase.impact.values import Impact, ImpactRow
from code_intel_server.codebase.references.finder import ENGINE
from code_intel_server.codebase.resolution import Resolver
from code_intel_server.codebase.symbols.cache import SymbolCache
from code_intel_server.codebase.symbols.freshness import SourceFiles
from code_intel_server.errors import Rejected

History = Callable[[], Iterable[tuple[str, ...]]]
"""Paths that each commit changed, newest commit first."""

FIRST_IMPACTS = Page(20)
MAX_TARGETS = 50
MAX_DEPTH = 5
_SECONDS = 15.0
_LIKELY = 0.05
"""Where history is known, the first answer ends behind what is less likely to change too than this, but for so many files:"""
_AT_LEAST = 5
_MOST_NOTES = 2


def analyze_impact(
    project: ProjectScope,
    cache: SymbolCache,
    targets: Sequence[str],
    *,
    depth: int = 2,
    page: Page = FIRST_IMPACTS,
    history: History | None = None,
    skipped: Skipped | None = None,
    seconds: float = _SECONDS,
) -> Impact:
    """What a change to `targets` (symbols, `Class.method`, `.css-class`, `#id`, paths, `path:line`) touches, file by file.

    Raises Rejected('tool_errors.query.no_symbol') where there is no target.
    """
    asked = [target.strip() for target in targets if target.strip() and "\0" not in target][:MAX_TARGETS]
    if not asked:
        raise Rejected("tool_errors.query.no_symbol")
    run = gathered(project, cache, asked, depth=depth, history=history, seconds=seconds)
    rows = run.evidence.rows()
    page = _first(rows) if page == FIRST_IMPACTS and run.evidence.together else page
    found: LookupAnswer[ImpactRow] = answer(
        page.cut(rows),
        page,
        len(rows),
        engine=ENGINE,
        incomplete_because=dict.fromkeys(run.problems),
        notes=[*(f"nothing is called {name} here" for name in run.unresolved), *_few(run.notes)],
        skipped=skipped,
        counts=tuple(sorted(Counter(row.group.value for row in rows).items())),
        pending=run.cache.pending,
    )
    must = tuple(row for row in rows if row.must_verify)
    return Impact(found, tuple(run.targets), must, tuple(run.unresolved))


def _few(notes: Sequence[str]) -> Sequence[str]:
    every = list(dict.fromkeys(notes))
    more = len(every) - _MOST_NOTES
    return every if more <= 0 else [*every[:_MOST_NOTES], f"{counted(more, 'further target')} as broad"]


def _first(rows: Sequence[ImpactRow]) -> Page:
    """The first page: it ends where what follows is unlikely. The targets' own files come first, however likely they are."""
    shown = enumerate(rows[: FIRST_IMPACTS.limit], 1)
    likely = [number for number, row in shown if row.chance >= _LIKELY or row.must_verify]
    return Page(max([_AT_LEAST, *likely[-1:]]))


def gathered(
    project: ProjectScope,
    cache: SymbolCache,
    asked: Sequence[str],
    *,
    depth: int = 2,
    history: History | None = None,
    seconds: float = _SECONDS,
) -> Analysis:
    """All evidence for `analyze_impact`, before it is ranked."""
    run = Analysis(project, cache, time.monotonic() + seconds, SourceFiles(project.root), Resolver(project))
    names = names_of(run, asked)
    follow(run, names, min(max(depth, 1), MAX_DEPTH))
    homes = run.homes
    tie_by_file_name(run, homes)
    tie_by_test_name(run, homes)
    tie_by_markup(run, homes, [target for target in asked if is_style(project, target)])
    run.evidence.homes = frozenset(homes)
    if history is not None and homes:
        run.evidence.together = changed_together(homes, history(), tied=run.evidence.paths)
    run.evidence.keep(set(there(project.root, run.evidence.paths)))
    run.evidence.similarity = word_similarity(run)
    return run
