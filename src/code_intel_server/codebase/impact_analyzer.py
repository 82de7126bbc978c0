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
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from code_intel_server.codebase import markup, ripgrep
from code_intel_server.codebase.answers import Answer, Page, Skipped, answer
from code_intel_server.codebase.ctags import Tag
from code_intel_server.codebase.definitions import NameMatch, bring_up_to_date, resolve
from code_intel_server.codebase.ignore import project_files
from code_intel_server.codebase.impact_values import Evidence, Impact, ImpactRow, Place, Target, Tie, ranked
from code_intel_server.codebase.kinds import CALLABLE, TYPES
from code_intel_server.codebase.project import Project, inside, shown
from code_intel_server.codebase.references import ENGINE, Asked, ReferenceRow, classify, occurrences
from code_intel_server.codebase.ripgrep import FileMatches, Match, Query
from code_intel_server.codebase.roles import RELEVANCE, Role, role
from code_intel_server.codebase.symbol_store import StoredSymbol
from code_intel_server.codebase.symbols import SymbolCache
from code_intel_server.codebase.syntax import Use
from code_intel_server.codebase.text import decode, read_text
from code_intel_server.errors import Rejected

History = Callable[[], Iterable[tuple[str, ...]]]
"""Paths that each commit changed, newest commit first."""

FIRST_FILES = Page(100)
MAX_TARGETS = 50
MAX_DEPTH = 5
_SECONDS = 15.0
_NAMES_A_FILE = 40
_FRONTIER = 25
_SHARED_BY = 8
_MAX_FILES_A_STEP = 80
_FADING = 0.45
_BROAD_COMMIT = 30

_WEIGHT = {Use.CALL: 0.7, Use.IMPORT: 0.6, Use.TYPE: 0.65, Use.ATTRIBUTE: 0.5, Use.OTHER: 0.45, Use.DEFINITION: 0.3}
_LOCATION = re.compile(r"(?P<path>.+):(?P<line>\d+)(?:-\d+)?")
_IMPORTING = re.compile(rb"\b(?:import|from|require|include|use|using|load|source|extends|render\w*|href|src)\b")
_COMMENTING = (b"#", b"//", b"*", b"/*", b"--", b'"""', b"<!--")
_COMMON_STEMS = frozenset(
    {"__init__", "index", "mod", "main", "lib", "utils", "util", "types", "base", "core", "common", "helpers", "setup"}
)


@dataclass(slots=True)
class _Analysis:
    """One run: what it asks about, what it found so far."""

    project: Project
    cache: SymbolCache
    deadline: float
    evidence: Evidence = field(default_factory=Evidence)
    targets: list[Target] = field(default_factory=list)
    unresolved: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)

    @property
    def late(self) -> bool:
        return time.monotonic() > self.deadline


@dataclass(frozen=True, slots=True)
class _Name:
    """A name whose uses are looked for. `weight` fades with every step; `homes` are files and scopes that tell its own from others of that name."""

    name: str
    weight: float
    homes: frozenset[str]
    own: frozenset[tuple[str, int]] = frozenset()


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
    run = _Analysis(project, cache, time.monotonic() + seconds)
    names = _resolve(run, asked)
    _follow(run, names, min(max(depth, 1), MAX_DEPTH))
    homes = tuple(dict.fromkeys(target.path for target in run.targets))
    _tie_by_file_name(run, homes)
    _tie_by_markup(run, homes, [target for target in asked if target[0] in ".#"])
    if history is not None:
        _tie_by_history(run, homes, history())
    return _conclude(run, page, skipped)


def _conclude(run: _Analysis, page: Page, skipped: Skipped | None) -> Impact:
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


# --- what is asked about -------------------------------------------------------------------------------------------


def _resolve(run: _Analysis, asked: Sequence[str]) -> list[_Name]:
    """Turn targets into names to follow, noting where they are defined."""
    names: list[_Name] = []
    for target in asked:
        if target[0] in ".#" and not run.project.root.joinpath(target).exists():
            continue  # CSS names have their own step
        path, line = _as_path(run.project, target)
        if path and line:
            names += _names_at(run, target, path, line)
        elif path:
            names += _names_in(run, target, path)
        else:
            names += _named(run, target)
    return names


def _as_path(project: Project, target: str) -> tuple[str, int]:
    """The file (and line) a target names; ('', 0) where it names none."""
    location = _LOCATION.fullmatch(target)
    for text, line in ((target, 0), *([(location["path"], int(location["line"]))] if location else [])):
        try:
            path = inside(project.root, text)
        except Rejected as problem:
            if problem.key.endswith("path_outside_project") and ("/" in text or ".." in text):
                raise
            continue
        if (project.root / path).is_file():
            return path, line
    return "", 0


def _names_at(run: _Analysis, target: str, path: str, line: int) -> list[_Name]:
    run.cache.refresh([path])
    around = [
        symbol for symbol in run.cache.store.in_file(path) if symbol.tag.start_line <= line <= symbol.tag.end_line
    ]
    if not around:
        # An import or a bare statement: the file as a whole, but less surely all it defines.
        return [replace(name, weight=name.weight * 0.5) for name in _names_in(run, target, path)]
    symbol = min(around, key=lambda symbol: symbol.tag.end_line - symbol.tag.start_line)
    return [_defined(run, target, [symbol])]


def _names_in(run: _Analysis, target: str, path: str) -> list[_Name]:
    """The names a file defines, the outer and public ones first."""
    run.cache.refresh([path])
    symbols = run.cache.store.in_file(path)
    run.targets.append(Target(target, "", shown(path), 1, 1))
    run.evidence.add(path, Place(1, Tie.DEFINES, target, depth=0, weight=0.99))
    grouped: dict[str, list[StoredSymbol]] = {}
    for symbol in symbols:
        if symbol.tag.kind in CALLABLE | TYPES or not symbol.tag.scope:
            grouped.setdefault(symbol.tag.name, []).append(symbol)
    weighed = sorted(((_own_weight(found[0]), name) for name, found in grouped.items() if _tells(name)), reverse=True)
    return [
        _Name(
            name,
            weight,
            _homes(grouped[name]),
            frozenset((symbol.path, symbol.tag.start_line) for symbol in grouped[name]),
        )
        for weight, name in weighed[:_NAMES_A_FILE]
    ]


def _own_weight(symbol: StoredSymbol) -> float:
    weight = 1.0 if not symbol.tag.scope else 0.6
    if symbol.tag.kind not in CALLABLE | TYPES:
        weight *= 0.6
    return weight * (0.6 if symbol.tag.name.startswith("_") else 1.0)


def _named(run: _Analysis, target: str) -> list[_Name]:
    run.problems += bring_up_to_date(run.project, run.cache, target, NameMatch.EXACT)
    symbols = resolve(run.cache, target)
    if symbols:
        return [_defined(run, target, symbols)]
    run.unresolved.append(target)
    bare = re.split(r"::|->|[.#]", target.removesuffix("()"))[-1]
    return [_Name(bare, 0.8, frozenset())] if _tells(bare) else []


def _defined(run: _Analysis, target: str, symbols: Sequence[StoredSymbol]) -> _Name:
    for symbol in symbols:
        tag = symbol.tag
        run.targets.append(Target(target, tag.name, shown(symbol.path), tag.start_line, tag.end_line))
        run.evidence.add(
            symbol.path,
            Place(tag.start_line, Tie.DEFINES, target, tag.scope, depth=0, weight=0.99 / math.sqrt(len(symbols))),
        )
    own = frozenset((symbol.path, symbol.tag.start_line) for symbol in symbols)
    return _Name(symbols[0].tag.name, 1.0, _homes(symbols), own)


def _homes(symbols: Sequence[StoredSymbol]) -> frozenset[str]:
    """Words that a file holds which means these symbols and not others of their name: their scopes, their modules."""
    scopes = {part for symbol in symbols for part in symbol.tag.scope.split(".") if _tells(part)}
    stems = {stem for symbol in symbols if (stem := _module_word(symbol.path))}
    return frozenset(scopes | stems)


def _module_word(path: str) -> str:
    pure = PurePosixPath(path)
    word = pure.parent.name if pure.stem in _COMMON_STEMS else pure.name.split(".")[0]
    return word if _tells(word) else ""


def _tells(name: str) -> bool:
    """Whether a name is worth following: not so short or so special that it is everywhere."""
    return len(name) >= 3 and not (name.startswith("__") and name.endswith("__"))


# --- following uses ------------------------------------------------------------------------------------------------


def _follow(run: _Analysis, names: Sequence[_Name], depth: int) -> None:
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


def _step(run: _Analysis, names: Sequence[_Name], step: int) -> list[_Name]:
    """Note every use of `names`; return the names of the symbols these uses stand in, strongest first."""
    by_name = {name.name: name for name in names}
    word = all(re.fullmatch(r"\w+", name) for name in by_name)
    found = ripgrep.search(run.project, Query(tuple(by_name), regex=False, word=word))
    run.problems += found.problems
    spread = _Spread(run.cache, by_name)
    onward: dict[str, float] = {}
    files = sorted(found.files, key=lambda file: (RELEVANCE[role(file.path)], file.path))
    pattern = occurrences(tuple(by_name))
    held = {file.path: {decode(name) for name in pattern.findall(file.printed)} for file in files}
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
    return [_Name(name, onward[name], frozenset()) for name in best]


@dataclass(slots=True)
class _Spread:
    """How much a name tells: less, the more definitions share it and the more files hold it."""

    cache: SymbolCache
    names: Mapping[str, _Name]
    files: Counter[str] = field(default_factory=Counter)
    shared: dict[str, int] = field(default_factory=dict)

    def count(self, held: Iterable[Collection[str]]) -> None:
        for names in held:
            self.files.update(names)
        for name in self.names:
            self.shared[name] = len({(symbol.path, symbol.tag.scope) for symbol in self.cache.store.named(name)})

    def weight(self, name: _Name, step: int) -> float:
        """Of a plain use of `name`, `step` steps away from the target."""
        sharing = 1 / (1 + math.log2(max(self.shared.get(name.name, 1), 1)))
        spread = 1 / (1 + self.files[name.name] / 60)
        return float(name.weight * max(sharing, 0.12) * max(spread, 0.15) * _FADING ** (step - 1))


def _uses(run: _Analysis, file: FileMatches, pattern: re.Pattern[bytes], *, parse: bool) -> list[ReferenceRow]:
    """Uses in a file by its syntax tree, or, further away and where there are many, by the look of the line and cached symbols."""
    if parse:
        return list(classify(run.project, file, Asked(pattern, include_comments=False)))
    symbols = [symbol.tag for symbol in run.cache.store.in_file(file.path) if symbol.tag.kind in CALLABLE | TYPES]
    return [
        _by_look(file.path, match, found, symbols)
        for match in file.lines()
        if not match.text.lstrip().startswith(_COMMENTING)
        for found in pattern.finditer(match.text)
    ]


def _by_look(path: str, match: Match, found: re.Match[bytes], symbols: Sequence[Tag]) -> ReferenceRow:
    """What a name on a line most likely is."""
    name = decode(found[0])
    around = [tag for tag in symbols if tag.start_line < match.line <= tag.end_line]
    tag = min(around, key=lambda tag: tag.end_line - tag.start_line, default=None)
    if any(other.name == name and other.start_line == match.line for other in symbols):
        use = Use.DEFINITION
    elif _IMPORTING.match(match.text.lstrip()):
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
    run: _Analysis,
    path: str,
    rows: Sequence[ReferenceRow],
    names: Mapping[str, _Name],
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
            * _by_hand(path)
            * (1.0 if not name.homes or name.homes & words or _imports_home(run, path, name) else 0.7)
        )
        weight = min(base * _WEIGHT.get(row.kind, 0.3), 0.95)
        tie = Tie.SAME_NAME if row.kind is Use.DEFINITION else Tie(row.kind.value)
        run.evidence.add(path, Place(row.start_line, tie, row.symbol, row.enclosing, step, weight))
        _go_on(run, path, row, base, onward)


def _by_hand(path: str) -> float:
    """What is vendored, built or translated follows the change by itself."""
    return 0.2 if role(path) is Role.VENDORED else 1.0


def _imports_home(run: _Analysis, path: str, name: _Name) -> bool:
    """Whether the file speaks of the module or class that defines the name."""
    text = read_text(run.project.root / path) or ""
    return any(home in text for home in name.homes)


def _go_on(run: _Analysis, path: str, row: ReferenceRow, base: float, onward: dict[str, float]) -> None:
    """Follow the symbol around a use: nobody calls a test, and a name that many share leads astray."""
    inner = row.enclosing.rpartition(".")[2]
    if row.kind is Use.DEFINITION or not _tells(inner) or inner in run.seen or role(path) is not Role.CODE:
        return
    if inner not in onward and len(run.cache.store.named(inner)) > _SHARED_BY:
        return
    onward[inner] = max(onward.get(inner, 0.0), base)


def _mention(run: _Analysis, file: FileMatches, names: Mapping[str, _Name], spread: _Spread, step: int) -> None:
    pattern = occurrences(tuple(names))
    for match in file.lines():
        for found in {decode(name) for name in pattern.findall(match.text)}:
            weight = 0.35 * spread.weight(names[found], step) if found in names else 0.0
            if weight >= 0.02:
                run.evidence.add(file.path, Place(match.line, Tie.MENTION, found, "", step, weight))


# --- softer ties ---------------------------------------------------------------------------------------------------


def _tie_by_file_name(run: _Analysis, homes: Sequence[str]) -> None:
    """Files that name a target's file (imports, includes, templates, links), and tests that by their name belong to it."""
    words = {PurePosixPath(home).name: home for home in homes} | {
        word: home for home in homes if (word := _module_word(home))
    }
    if not words:
        return
    found = ripgrep.search(run.project, Query(tuple(words), regex=False, word=True))
    run.problems += found.problems
    pattern = occurrences(tuple(words))
    for file in found.files:
        weight = 0.4 * _by_hand(file.path) / (1 + len(found.files) / 100)
        for match in file.lines():
            name = pattern.search(match.text)
            if name is None or words.get(decode(name[0])) in {None, file.path}:
                continue
            whole = b"." in name[0]
            if whole or _IMPORTING.search(match.text):
                run.evidence.add(
                    file.path,
                    Place(match.line, Tie.NAMES_FILE, words[decode(name[0])], weight=weight if whole else 0.8 * weight),
                )
    _tie_by_test_name(run, homes)


def _tie_by_test_name(run: _Analysis, homes: Sequence[str]) -> None:
    """`tests/test_ext_autodoc_config.py` tests `ext/autodoc/`: the words of its name begin with, or hold, those of the path's end."""
    wanted = {home: _name_words(_module_word(home)) for home in homes if _module_word(home)}
    for path in project_files(run.project).paths if wanted else ():
        if role(path) is not Role.TESTS:
            continue
        words = [
            word
            for word in _name_words(PurePosixPath(path).name.split(".")[0])
            if word not in {"test", "tests", "spec"}
        ]
        for home, module in wanted.items():
            if words in (module, _plural(module)):
                run.evidence.add(path, Place(1, Tie.TEST_NAME, home, weight=0.5))
            elif any(words[start : start + len(module)] == module for start in range(len(words))):
                run.evidence.add(path, Place(1, Tie.TEST_NAME, home, weight=0.25))


def _name_words(stem: str) -> list[str]:
    """`ResponseWriter_test` → ['response', 'writer', 'test']."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", stem)]


def _plural(words: Sequence[str]) -> list[str]:
    return [*words[:-1], words[-1].removesuffix("s") if words[-1].endswith("s") else f"{words[-1]}s"] if words else []


def _tie_by_markup(run: _Analysis, homes: Sequence[str], asked: Sequence[str]) -> None:
    """Classes and ids that the targets declare or bear, wherever else styles, pages and scripts speak of them."""
    names = {name for name in asked if re.fullmatch(r"[.#]-?[A-Za-z_][\w-]*", name)}
    for home in homes:
        names |= {mention.name for mention in markup.mentions(home, read_text(run.project.root / home) or "")}
    if not names:
        return
    globs = [part for glob in markup.GLOBS for part in ("--type-add", f"page:{glob}")]
    query = Query(tuple(sorted({name[1:] for name in names}))[:200], regex=False)
    files, problems = ripgrep.matching_files(run.project, query, extra=(*globs, "--type", "page"))
    run.problems += problems
    for path in files:
        if run.late:
            run.problems.append("the time limit ended the search for CSS names")
            return
        for mention in markup.mentions(path, read_text(run.project.root / path) or ""):
            if mention.name in names and path not in homes:
                run.evidence.add(path, Place(mention.line, Tie.MARKUP, mention.name, mention.side.value, weight=0.5))
    if (
        asked
        and not homes
        and not any(place.tie is Tie.MARKUP for lines in run.evidence.places.values() for place in lines.values())
    ):
        run.unresolved += list(asked)


def _tie_by_history(run: _Analysis, homes: Sequence[str], commits: Iterable[tuple[str, ...]]) -> None:
    """Files that changed together with a target's file: the oftener and the narrower the commits, the stronger."""
    wanted = set(homes)
    together: dict[tuple[str, str], float] = {}
    alone: Counter[str] = Counter()
    for paths in commits:
        touched = wanted.intersection(paths)
        if not touched or len(paths) > _BROAD_COMMIT:
            continue
        for home in touched:
            alone[home] += 1
            for path in paths:
                if path != home:
                    together[home, path] = together.get((home, path), 0.0) + 1 / math.sqrt(len(paths) - 1)
    for (home, path), strength in together.items():
        share = strength / (alone[home] + 2)
        if share >= 0.01 and (run.project.root / path).is_file():
            run.evidence.add(path, Place(1, Tie.TOGETHER, home, weight=min(0.8 * math.sqrt(share), 0.6)))
