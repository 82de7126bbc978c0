"""Follows the uses of the targets' names to the symbols around them, step by step (SPEC 8)."""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from code_intel_server.codebase import ripgrep
from code_intel_server.codebase.ctags import Tag
from code_intel_server.codebase.impact_run import IMPORTING, Analysis, Name, by_hand, tells
from code_intel_server.codebase.impact_values import Place, Tie
from code_intel_server.codebase.kinds import CALLABLE, DECLARATION, STYLES, TYPES
from code_intel_server.codebase.names import written
from code_intel_server.codebase.project import shown
from code_intel_server.codebase.ripgrep import FileMatches, Match, Query
from code_intel_server.codebase.roles import RELEVANCE, Role, role
from code_intel_server.codebase.symbol_store import StoredSymbol
from code_intel_server.codebase.symbols import SymbolCache
from code_intel_server.codebase.syntax import Use
from code_intel_server.codebase.telling import Asked, ReferenceRow, classify, occurrences
from code_intel_server.codebase.text import decode, is_binary

_FRONTIER = 25
_SHARED_BY = 8
_MAX_FILES_A_STEP = 80
_FADING = 0.45

_WEIGHT = {Use.CALL: 0.7, Use.IMPORT: 0.6, Use.TYPE: 0.65, Use.ATTRIBUTE: 0.5, Use.OTHER: 0.45, Use.DEFINITION: 0.3}
_COMMENTING = (b"#", b"//", b"*", b"/*", b"--", b'"""', b"<!--")


def follow(run: Analysis, names: Sequence[Name], depth: int) -> None:
    """Note in `run` every place that uses `names`, then those that use the symbols around these, `depth` steps far."""
    frontier = list(names)
    for step in range(1, depth + 1):
        frontier = [name for name in frontier if name.name not in run.seen]
        run.seen |= {name.name for name in frontier}
        if not frontier:
            return
        if run.late:
            run.problems.append(f"the time limit ended the search at depth {step - 1}")
            return
        frontier = _step(run, frontier, step)


def _step(run: Analysis, names: Sequence[Name], step: int) -> list[Name]:
    """Note every use of `names`; return the names of the symbols these uses stand in, strongest first."""
    by_name = {name.name: name for name in names}
    word = all(re.fullmatch(r"\w+", name) for name in by_name)
    found = ripgrep.search(run.project, Query(tuple(by_name), regex=False, word=word))
    run.problems += found.problems
    spread = _Spread(run.cache, by_name)
    onward: dict[str, float] = {}
    files = sorted(found.files, key=lambda file: (RELEVANCE[role(file.path)], file.path))
    pattern = occurrences(tuple(by_name))
    held = {
        file.path: {decode(name) for name in {found[0] for found in pattern.finditer(file.printed)}} for file in files
    }
    spread.count(held.values())
    for number, file in enumerate(files):
        strongest = max(
            (spread.weight(by_name[name], step) for name in held[file.path] if name in by_name), default=0.0
        )
        if strongest < 0.02:
            continue
        if role(file.path) in {Role.DOCUMENTATION, Role.CONFIGURATION}:
            _mention(run, file, by_name, spread, step)
            continue
        rows = _uses(run, file, pattern, parse=step == 1 and number < _MAX_FILES_A_STEP and not run.late)
        _note(run, file.path, rows, by_name, spread, step, onward)
    best = sorted(onward, key=lambda name: (-onward[name], name))[:_FRONTIER]
    return [Name(name, onward[name], frozenset()) for name in best]


@dataclass(slots=True)
class _Spread:
    """How much a name tells: less, the more definitions share it and the more files hold it."""

    cache: SymbolCache
    names: Mapping[str, Name]
    files: Counter[str] = field(default_factory=Counter)
    shared: dict[str, int] = field(default_factory=dict)

    def count(self, held: Iterable[Collection[str]]) -> None:
        """Take in which names each file holds, and ask the cache how many definitions share each."""
        for names in held:
            self.files.update(names)
        for name in self.names:
            self.shared[name] = len({(symbol.path, symbol.tag.scope) for symbol in _in_code(self.cache, name)})

    def weight(self, name: Name, step: int) -> float:
        """Of a plain use of `name`, `step` steps away from the target."""
        sharing = 1 / (1 + math.log2(max(self.shared.get(name.name, 1), 1)))
        spread = 1 / (1 + self.files[name.name] / 60)
        return float(name.weight * max(sharing, 0.12) * max(spread, 0.15) * _FADING ** (step - 1))


def _in_code(cache: SymbolCache, name: str) -> Sequence[StoredSymbol]:
    return [symbol for symbol in cache.store.named(name) if symbol.tag.kind not in STYLES | {DECLARATION}]


def _uses(run: Analysis, file: FileMatches, pattern: re.Pattern[bytes], *, parse: bool) -> list[ReferenceRow]:
    """Uses in a file by its syntax tree, or, further away and where there are many, by the look of the line and cached symbols."""
    if parse:
        return list(classify(run.standing, file, Asked(pattern, include_comments=False)) or ())
    symbols = [symbol.tag for symbol in run.cache.store.in_file(file.path) if symbol.tag.kind in CALLABLE | TYPES]
    return [
        _by_look(run, file.path, match, found, symbols)
        for match in run.standing.matches(file, pattern).lines()
        if not match.text.lstrip().startswith(_COMMENTING)
        for found in pattern.finditer(match.text)
    ]


def _by_look(run: Analysis, path: str, match: Match, found: re.Match[bytes], symbols: Sequence[Tag]) -> ReferenceRow:
    """What a name on a line most likely is."""
    name = decode(found[0])
    around = [tag for tag in symbols if tag.start_line < match.line <= tag.end_line]
    tag = min(around, key=lambda tag: tag.end_line - tag.start_line, default=None)
    if tag is not None and not run.standing.holds(path, tag.name, tag.scope):
        tag = None
    if any(written(other.name) == name and other.start_line == match.line for other in symbols):
        use = Use.DEFINITION
    elif IMPORTING.match(match.text.lstrip()):
        use = Use.IMPORT
    else:
        use = Use.CALL if match.text[found.end() : found.end() + 1] == b"(" else Use.OTHER
    return ReferenceRow(
        path=shown(path),
        start_line=match.line,
        end_line=match.line,
        text=decode(match.text),
        symbol=name,
        kind=use,
        enclosing=f"{tag.scope}.{tag.name}".strip(".") if tag else "",
        enclosing_kind=tag.kind if tag else "",
        enclosing_line=tag.start_line if tag else 0,
    )


def _note(
    run: Analysis,
    path: str,
    rows: Sequence[ReferenceRow],
    names: Mapping[str, Name],
    spread: _Spread,
    step: int,
    onward: dict[str, float],
) -> None:
    words = {word for row in rows for word in re.findall(r"\w+", row.text)} | set(re.findall(r"\w+", path))
    for row in rows:
        name = names.get(row.symbol)
        if name is None or (path, row.start_line) in name.own or (step > 1 and row.kind is Use.DEFINITION):
            continue
        base = (
            spread.weight(name, step)
            * by_hand(path)
            * (1.0 if not name.homes or name.homes & words or _imports_home(run, path, name) else 0.7)
        )
        weight = min(base * _WEIGHT.get(row.kind, 0.3), 0.95)
        tie = Tie.SAME_NAME if row.kind is Use.DEFINITION else Tie(row.kind.value)
        run.evidence.add(path, Place(row.start_line, tie, row.symbol, row.enclosing, step, weight))
        _go_on(run, path, row, base, onward)


def _imports_home(run: Analysis, path: str, name: Name) -> bool:
    """Whether the file speaks of the module or class that defines the name."""
    content = run.standing.content(path)
    text = "" if content is None or is_binary(content) else decode(content)
    return any(home in text for home in name.homes)


def _go_on(run: Analysis, path: str, row: ReferenceRow, base: float, onward: dict[str, float]) -> None:
    """Follow the symbol around a use: nobody calls a test, and a name that many share leads astray."""
    inner = written(row.enclosing.rpartition(".")[2])
    if row.kind is Use.DEFINITION or not tells(inner) or inner in run.seen or role(path) is not Role.CODE:
        return
    if inner not in onward and len(_in_code(run.cache, inner)) > _SHARED_BY:
        return
    onward[inner] = max(onward.get(inner, 0.0), base)


def _mention(run: Analysis, file: FileMatches, names: Mapping[str, Name], spread: _Spread, step: int) -> None:
    pattern = occurrences(tuple(names))
    for match in run.standing.matches(file, pattern).lines():
        for found in {decode(name) for name in pattern.findall(match.text)}:
            weight = 0.35 * spread.weight(names[found], step) if found in names else 0.0
            if weight >= 0.02:
                run.evidence.add(file.path, Place(match.line, Tie.MENTION, found, "", step, weight))
