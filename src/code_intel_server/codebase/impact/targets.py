"""Turns what an impact analysis is asked about into names to follow, noting where they are defined (SPEC 8)."""

import math
import re
from collections.abc import Sequence
from dataclasses import replace

from code_intel_server.codebase.files.project import ProjectScope, path_inside, valid_text
from code_intel_server.codebase.impact.run import Analysis, Name, is_distinctive, module_word
from code_intel_server.codebase.impact.values import AffectedLine, ImpactTarget, Tie
from code_intel_server.codebase.symbols.definitions import NameMatch, bring_up_to_date, resolve
from code_intel_server.codebase.symbols.freshness import SourceFiles
from code_intel_server.codebase.symbols.kinds import CALLABLE, STYLE_KINDS, TYPES
from code_intel_server.codebase.symbols.names import readings, style_kind, written
from code_intel_server.codebase.symbols.store import StoredSymbol
from code_intel_server.errors import Rejected

_NAMES_A_FILE = 40
_BROAD = 15
"""Names of a file, members of a class or definitions of a name from which on a target is called broad."""
_SHOWN = 8
_MOST_DEFINITIONS = 50
"""Definitions of one name that are distinguished from others of it."""

_LOCATION = re.compile(r"(?P<path>.+):(?P<line>\d+)(?:-\d+)?")


def names_of(run: Analysis, asked: Sequence[str]) -> list[Name]:
    """The names that the targets are used by; CSS names have their own step."""
    names: list[Name] = []
    for target in asked:
        if is_style(run.project, target):
            continue
        path, line = _as_path(run.project, target)
        if path and line:
            names += _names_at(run, target, path, line)
        elif path:
            names += _names_in(run, target, path)
        else:
            names += _named(run, target)
    return names


def is_style(project: ProjectScope, target: str) -> bool:
    """Whether a target is written as a CSS class or id, and no file is called so (`.gitignore`)."""
    return bool(style_kind(target)) and not project.root.joinpath(target).exists()


def _as_path(project: ProjectScope, target: str) -> tuple[str, int]:
    """The file (and line) a target names; ('', 0) where it names none."""
    location = _LOCATION.fullmatch(target)
    for text, line in ((target, 0), *([(location["path"], int(location["line"]))] if location else [])):
        try:
            path = path_inside(project.root, text)
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
        return [replace(name, weight=name.weight * 0.5) for name in _names_in(run, target, path, broad=False)]
    return [_defined(run, target, [min(around, key=lambda symbol: symbol.tag.end_line - symbol.tag.start_line)])]


def _names_in(run: Analysis, target: str, path: str, *, broad: bool = True) -> list[Name]:
    """The names a file defines, the outer and public ones first."""
    symbols = _symbols_in(run, path)
    run.targets.append(ImpactTarget(target, "", valid_text(path), 1, 1))
    run.evidence.add(path, AffectedLine(1, Tie.DEFINES, target, depth=0, strength=0.99))
    grouped: dict[str, list[StoredSymbol]] = {}
    for symbol in symbols:
        if symbol.tag.kind in CALLABLE | TYPES or not symbol.tag.scope:
            grouped.setdefault(written(symbol.tag.name), []).append(symbol)
    weighed = sorted(
        ((_own_weight(found[0]), name) for name, found in grouped.items() if is_distinctive(name)), reverse=True
    )
    if broad:
        _say_broad(run, target, [name for _, name in weighed])
    return [_name(run, name, weight, grouped[name]) for weight, name in weighed[:_NAMES_A_FILE]]


def _say_broad(run: Analysis, target: str, members: Sequence[str]) -> None:
    if len(members) > _BROAD:
        named = ", ".join(members[:_SHOWN])
        run.notes.append(f"{target} holds {len(members)} names: ask for those that change, like {named}, …")


def _symbols_in(run: Analysis, path: str) -> list[StoredSymbol]:
    run.cache.refresh([path])
    run.cache.recheck(run.cache.store.in_file(path))
    return [
        symbol
        for symbol in run.cache.store.in_file(path)
        if symbol.tag.kind not in STYLE_KINDS and run.standing.defines(symbol)
    ]


def _own_weight(symbol: StoredSymbol) -> float:
    weight = 1.0 if not symbol.tag.scope else 0.6
    if symbol.tag.kind not in CALLABLE | TYPES:
        weight *= 0.6
    return weight * (0.6 if symbol.tag.name.startswith("_") else 1.0)


def _named(run: Analysis, target: str) -> list[Name]:
    run.problems += bring_up_to_date(run.project, run.cache, target, NameMatch.EXACT)[0]
    if run.cache.recheck(resolve(run.cache, target)):
        run.standing = SourceFiles(run.project.root)
    symbols = [symbol for symbol in resolve(run.cache, target) if run.standing.defines(symbol)]
    symbols = [symbol for symbol in symbols if symbol.tag.kind not in STYLE_KINDS] or symbols
    if symbols:
        if len(symbols) > _BROAD:
            places = ", ".join(f"{valid_text(one.path)}:{one.tag.start_line}" for one in symbols[:_SHOWN])
            run.notes.append(f"{target} is defined {len(symbols)} times: ask for one, like {places}, …")
        name = _defined(run, target, symbols[:_MOST_DEFINITIONS])
        return [name if len(symbols) <= _MOST_DEFINITIONS else replace(name, meant=None)]
    run.unresolved.append(target)
    bare = [written(part) for part in readings(target)[-1][-1:]]
    return [Name(name, 0.8, frozenset()) for name in bare if is_distinctive(name)]


def _defined(run: Analysis, target: str, symbols: Sequence[StoredSymbol]) -> Name:
    for symbol in symbols:
        tag = symbol.tag
        run.targets.append(ImpactTarget(target, tag.name, valid_text(symbol.path), tag.start_line, tag.end_line))
        run.evidence.add(
            symbol.path,
            AffectedLine(
                tag.start_line, Tie.DEFINES, target, tag.scope, depth=0, strength=0.99 / math.sqrt(len(symbols))
            ),
        )
    first = symbols[0]
    if len(symbols) == 1:
        run.changed.append((first.path, first.tag.start_line, first.tag.end_line))
        if first.tag.kind in TYPES:
            inner = [one.tag.name for one in run.cache.store.in_file(first.path) if one.tag.scope == first.tag.name]
            _say_broad(run, target, [f"{first.tag.name}.{name}" for name in dict.fromkeys(inner)])
    if not is_distinctive(first.tag.name) and first.tag.scope and (owners := resolve(run.cache, first.tag.scope)):
        return _name(run, owners[0].tag.name, 1.0, owners)  # a constructor is used by its class's name
    return _name(run, written(first.tag.name), 1.0, symbols)


def _name(run: Analysis, name: str, weight: float, symbols: Sequence[StoredSymbol]) -> Name:
    return Name(
        name,
        weight,
        _homes(symbols),
        frozenset((symbol.path, symbol.tag.start_line) for symbol in symbols),
        run.resolver.target((one.path, one.tag.start_line, one.tag.end_line, one.tag.name) for one in symbols),
    )


def _homes(symbols: Sequence[StoredSymbol]) -> frozenset[str]:
    """Words that a file holds which means these symbols and not others of their name: their scopes, their modules."""
    scopes = {part for symbol in symbols for part in symbol.tag.scope.split(".") if is_distinctive(part)}
    stems = {stem for symbol in symbols if (stem := module_word(symbol.path))}
    return frozenset(scopes | stems)
