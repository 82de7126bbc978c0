"""analyze_impact: what a change to these symbols or files touches (SPEC 8).

From each target's definitions to the lines that use its name, to the symbols these stand in, and so on to `depth`; then
the softer ties: files that name the file, tests by their name, configuration and documentation that mention it, CSS
names that styles, pages and scripts share, and files that history saw change together. Every tie is a place with a
weight. A name shared by many definitions or found everywhere weighs little: it says little.
"""

import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from code_intel_server.codebase.answers import Answer, Page, Skipped, answer
from code_intel_server.codebase.definitions import NameMatch, bring_up_to_date, resolve
from code_intel_server.codebase.impact_run import Analysis, Name, module_word, tells
from code_intel_server.codebase.impact_ties import tie_by_file_name, tie_by_history, tie_by_markup
from code_intel_server.codebase.impact_uses import follow
from code_intel_server.codebase.impact_values import Impact, ImpactRow, Place, Target, Tie, ranked
from code_intel_server.codebase.kinds import CALLABLE, STYLES, TYPES
from code_intel_server.codebase.names import readings, style_kind, written
from code_intel_server.codebase.project import Project, inside, shown, there
from code_intel_server.codebase.references import ENGINE
from code_intel_server.codebase.standing import Standing
from code_intel_server.codebase.symbol_store import StoredSymbol
from code_intel_server.codebase.symbols import SymbolCache
from code_intel_server.errors import Rejected

History = Callable[[], Iterable[tuple[str, ...]]]
"""Paths that each commit changed, newest commit first."""

FIRST_FILES = Page(100)
MAX_TARGETS = 50
MAX_DEPTH = 5
_SECONDS = 15.0
_NAMES_A_FILE = 40

_LOCATION = re.compile(r"(?P<path>.+):(?P<line>\d+)(?:-\d+)?")


def analyze_impact(
    project: Project,
    cache: SymbolCache,
    targets: Sequence[str],
    *,
    depth: int = 2,
    page: Page = FIRST_FILES,
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
    run = Analysis(project, cache, time.monotonic() + seconds, Standing(project.root))
    names = _resolve(run, asked)
    follow(run, names, min(max(depth, 1), MAX_DEPTH))
    homes = tuple(dict.fromkeys(target.path for target in run.targets))
    tie_by_file_name(run, homes)
    tie_by_markup(run, homes, [target for target in asked if _is_style(run.project, target)])
    if history is not None:
        tie_by_history(run, homes, history())
    return _conclude(run, page, skipped)


def _conclude(run: Analysis, page: Page, skipped: Skipped | None) -> Impact:
    run.evidence.keep(set(there(run.project.root, run.evidence.places)))
    rows = ranked(run.evidence.rows())
    counted = Counter(row.group.value for row in rows)
    found: Answer[ImpactRow] = answer(
        page.cut(rows),
        page,
        len(rows),
        engine=ENGINE,
        incomplete_because=dict.fromkeys(run.problems),
        notes=[f"nothing is called {name} here" for name in run.unresolved],
        skipped=skipped,
        counts=tuple(sorted(counted.items())),
        pending=run.cache.pending,
    )
    return Impact(
        answer=found,
        targets=tuple(run.targets),
        must_verify=tuple(f"{row.path}:{row.start_line}" for row in found.results if row.must_verify),
        should_verify=tuple(f"{row.path}:{row.start_line}" for row in found.results if not row.must_verify),
        unresolved=tuple(run.unresolved),
    )


def _resolve(run: Analysis, asked: Sequence[str]) -> list[Name]:
    """Turn targets into names to follow, noting where they are defined."""
    names: list[Name] = []
    for target in asked:
        if _is_style(run.project, target):
            continue  # CSS names have their own step
        path, line = _as_path(run.project, target)
        if path and line:
            names += _names_at(run, target, path, line)
        elif path:
            names += _names_in(run, target, path)
        else:
            names += _named(run, target)
    return names


def _is_style(project: Project, target: str) -> bool:
    """Whether a target is written as a CSS class or id, and no file is called so (`.gitignore`)."""
    return bool(style_kind(target)) and not project.root.joinpath(target).exists()


def _as_path(project: Project, target: str) -> tuple[str, int]:
    """The file (and line) a target names; ('', 0) where it names none."""
    location = _LOCATION.fullmatch(target)
    for text, line in ((target, 0), *([(location["path"], int(location["line"]))] if location else [])):
        try:
            path = inside(project.root, text)
        except Rejected as problem:
            if problem.key.endswith(("path_outside_project", "path_closed")) and ("/" in text or ".." in text):
                raise
            continue
        if (project.root / path).is_file():
            return path, line
    return "", 0


def _names_at(run: Analysis, target: str, path: str, line: int) -> list[Name]:
    around = [symbol for symbol in _symbols_in(run, path) if symbol.tag.start_line <= line <= symbol.tag.end_line]
    if not around:
        # An import or a bare statement: the file as a whole, but less surely all it defines.
        return [replace(name, weight=name.weight * 0.5) for name in _names_in(run, target, path)]
    symbol = min(around, key=lambda symbol: symbol.tag.end_line - symbol.tag.start_line)
    return [_defined(run, target, [symbol])]


def _names_in(run: Analysis, target: str, path: str) -> list[Name]:
    """The names a file defines, the outer and public ones first."""
    symbols = _symbols_in(run, path)
    run.targets.append(Target(target, "", shown(path), 1, 1))
    run.evidence.add(path, Place(1, Tie.DEFINES, target, depth=0, weight=0.99))
    grouped: dict[str, list[StoredSymbol]] = {}
    for symbol in symbols:
        if symbol.tag.kind in CALLABLE | TYPES or not symbol.tag.scope:
            grouped.setdefault(written(symbol.tag.name), []).append(symbol)
    weighed = sorted(((_own_weight(found[0]), name) for name, found in grouped.items() if tells(name)), reverse=True)
    return [
        Name(
            name,
            weight,
            _homes(grouped[name]),
            frozenset((symbol.path, symbol.tag.start_line) for symbol in grouped[name]),
        )
        for weight, name in weighed[:_NAMES_A_FILE]
    ]


def _symbols_in(run: Analysis, path: str) -> list[StoredSymbol]:
    run.cache.refresh([path])
    run.cache.recheck(run.cache.store.in_file(path), run.standing)
    return [
        symbol
        for symbol in run.cache.store.in_file(path)
        if symbol.tag.kind not in STYLES and run.standing.defines(symbol)
    ]


def _own_weight(symbol: StoredSymbol) -> float:
    weight = 1.0 if not symbol.tag.scope else 0.6
    if symbol.tag.kind not in CALLABLE | TYPES:
        weight *= 0.6
    return weight * (0.6 if symbol.tag.name.startswith("_") else 1.0)


def _named(run: Analysis, target: str) -> list[Name]:
    run.problems += bring_up_to_date(run.project, run.cache, target, NameMatch.EXACT)[0]
    if run.cache.recheck(resolve(run.cache, target), run.standing):
        run.standing = Standing(run.project.root)
    symbols = [symbol for symbol in resolve(run.cache, target) if run.standing.defines(symbol)]
    symbols = [symbol for symbol in symbols if symbol.tag.kind not in STYLES] or symbols
    if symbols:
        return [_defined(run, target, symbols)]
    run.unresolved.append(target)
    bare = [written(part) for part in readings(target)[-1][-1:]]
    return [Name(name, 0.8, frozenset()) for name in bare if tells(name)]


def _defined(run: Analysis, target: str, symbols: Sequence[StoredSymbol]) -> Name:
    for symbol in symbols:
        tag = symbol.tag
        run.targets.append(Target(target, tag.name, shown(symbol.path), tag.start_line, tag.end_line))
        run.evidence.add(
            symbol.path,
            Place(tag.start_line, Tie.DEFINES, target, tag.scope, depth=0, weight=0.99 / math.sqrt(len(symbols))),
        )
    own = frozenset((symbol.path, symbol.tag.start_line) for symbol in symbols)
    return Name(written(symbols[0].tag.name), 1.0, _homes(symbols), own)


def _homes(symbols: Sequence[StoredSymbol]) -> frozenset[str]:
    """Words that a file holds which means these symbols and not others of their name: their scopes, their modules."""
    scopes = {part for symbol in symbols for part in symbol.tag.scope.split(".") if tells(part)}
    stems = {stem for symbol in symbols if (stem := module_word(symbol.path))}
    return frozenset(scopes | stems)
