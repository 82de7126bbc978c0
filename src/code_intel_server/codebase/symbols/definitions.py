"""find_definitions: where a symbol is defined, from the symbol cache (SPEC 2, SPEC 8)."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain
from pathlib import PurePosixPath

from code_intel_server.codebase.answers import (
    EXACT_TOTAL_LIMIT,
    FIRST_PAGE,
    InFile,
    LookupAnswer,
    Page,
    Skipped,
    answer,
    labelled,
    lines_of,
)
from code_intel_server.codebase.files import ripgrep
from code_intel_server.codebase.files.project import ProjectScope, of_length, path_inside, valid_text
from code_intel_server.codebase.files.ripgrep import SEARCH_SECONDS, Query
from code_intel_server.codebase.files.roles import RELEVANCE, role
from code_intel_server.codebase.symbols import ctags, tagging
from code_intel_server.codebase.symbols.cache import INLINE_LIMIT, SymbolCache
from code_intel_server.codebase.symbols.ctags import Tag
from code_intel_server.codebase.symbols.freshness import SourceFiles
from code_intel_server.codebase.symbols.kinds import CALLABLE, DECLARATION, STYLE_KINDS, TYPES, wanted_kinds
from code_intel_server.codebase.symbols.names import definition_text, readings, style_kind, style_spellings
from code_intel_server.codebase.symbols.store import StoredSymbol
from code_intel_server.errors import Rejected

_IN_MEMORY = "the symbol cache lives in memory: its folder cannot be written"

TEXT_COLUMNS = 200
DEFINITION_SECONDS = 30.0
"""What a second search of the tree, for a name that was not found, has left of this, and a second at least."""
_LEAST_SECONDS = 1.0
_IMPL = "impl"
_STYLE_SHEETS = frozenset({"css", "scss", "less", "sass"})


class NameMatch(StrEnum):
    """How a symbol's name is compared with what was asked."""

    EXACT = "exact"
    PREFIX = "prefix"
    FUZZY = "fuzzy"


@dataclass(frozen=True, slots=True)
class DefinitionRow(InFile):
    """A definition. `scope` is what it is in ('Outer.Inner'), `text` its first line, `engine` who found it."""

    path: str
    start_line: int
    end_line: int
    symbol: str
    kind: str
    scope: str
    signature: str
    text: str
    language: str
    engine: str

    @property
    def qualified(self) -> str:
        """The name with what it is in: 'Outer.method'."""
        return f"{self.scope}.{self.symbol}" if self.scope else self.symbol

    def as_row(self) -> str:
        """`12-15: pay(order)  [method in Basket]`."""
        said = " ".join(self.signature.split())
        said = said if self.symbol in said else f"{self.symbol}  {said}"
        return f"{lines_of(self.start_line, self.end_line)}: {labelled(said, self.kind, self.scope)}"


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A symbol as it was asked for, taken apart."""

    name: str
    scope: tuple[str, ...]
    kinds: frozenset[str] | None
    below: str
    match: NameMatch
    also: tuple[str, ...] = ()
    """Ways in which a style sheet's names may be kept."""

    def accepts(self, symbol: StoredSymbol) -> bool:
        """Whether kind, scope and place of the symbol fit; the name does already."""
        if self.kinds is not None and symbol.tag.kind not in self.kinds:
            return False
        if self.below not in {".", symbol.path} and not symbol.path.startswith(f"{self.below}/"):
            return False
        return not self.scope or _address(symbol)[-len(self.scope) :] == self.scope


def find_definitions(
    project: ProjectScope,
    cache: SymbolCache,
    symbol: str,
    *,
    kind: str | None = None,
    path: str = ".",
    match: NameMatch = NameMatch.EXACT,
    page: Page = FIRST_PAGE,
    skipped: Skipped | None = None,
) -> LookupAnswer[DefinitionRow]:
    """Where `symbol` is defined: its name, or the name with what it is in (`Class.method`, `ns::f`, `package.module.f`).

    A selector (`move:to:`) is found by its first word too; `.name` and `#name` are a style sheet's, where it has them.

    What is only declared (`int f(void);`) is told where its definition is not in the project.
    `prefix` and `fuzzy` (letters in order) ignore case. Every file of the page is looked at again before it is named.
    Raises Rejected('tool_errors.query.no_symbol') and the errors of `path_inside`.
    """
    below, began = path_inside(project.root, path), time.monotonic()
    wanted = _taken_apart(symbol, kind, below, match)
    problems, walked_at = bring_up_to_date(project, cache, symbol, match)
    found = _found(cache, wanted)
    standing = SourceFiles(project.root)
    if cache.recheck(page.cut(found)):
        found = _found(cache, wanted)
    if not found and walked_at < began:
        cache.verify(fresh=True)
        problems, _ = bring_up_to_date(project, cache, symbol, match, seconds=_seconds_left(began))
        found = _found(cache, wanted)
    if not found:
        problems = (*problems, *_unread(project, cache, symbol, match, below, _seconds_left(began)))
    asked = page.cut(found)
    rows = [_row(entry, standing) for entry in asked if standing.defines(entry)]
    return answer(
        rows,
        page,
        len(found),
        engine=" + ".join(sorted({row.engine for row in rows}) or _asked_of(cache)),
        incomplete_because=(*problems, *_left_out(len(asked) - len(rows))),
        skipped=skipped,
        pending=cache.pending,
        notes=(
            *(() if found or not kind else _of_other_kinds(cache, symbol, kind, below, match)),
            *(() if cache.store.persistent or not project.keeps else (_IN_MEMORY,)),
        ),
    )


def with_notes(found: LookupAnswer[DefinitionRow], *notes: str) -> LookupAnswer[DefinitionRow]:
    """The answer with more notes."""
    return replace(found, notes=(*notes, *found.notes))


def _asked_of(cache: SymbolCache) -> Sequence[str]:
    """Who was asked where nobody found anything: those who tagged the project's files; of none, who would be asked first."""
    return [*filter(None, cache.store.engines())] or [
        tagging.SYNTAX_TREE if ctags.ctags_program() is None else ctags.ENGINE
    ]


def _seconds_left(began: float) -> float:
    return min(max(DEFINITION_SECONDS - (time.monotonic() - began), _LEAST_SECONDS), SEARCH_SECONDS)


def _unread(
    project: ProjectScope, cache: SymbolCache, symbol: str, match: NameMatch, below: str, seconds: float
) -> Iterator[str]:
    """What may define a name that was not found: files that hold it in a language that no engine knows."""
    if unread := cache.store.tagged_by(tagging.NO_ENGINE):
        name = "" if match is NameMatch.FUZZY else _written(symbol)
        query = Query((name,), regex=False, ignore_case=match is NameMatch.PREFIX)
        holding, problems = ripgrep.matching_files(project, query, path=below, seconds=seconds)
        yield from problems
        if places := sorted(unread.intersection(holding)):
            more = f" and {len(places) - 1} more" if len(places) > 1 else ""
            yield f"nothing here knows definitions in the language of {valid_text(places[0])}{more}"


def _of_other_kinds(cache: SymbolCache, symbol: str, kind: str, below: str, match: NameMatch) -> Iterator[str]:
    """What the name is defined as, where it is not defined as what was asked for."""
    kinds = sorted({entry.tag.kind for entry in _found(cache, _taken_apart(symbol, None, below, match))})
    if kinds:
        yield f"it is defined here, as {' and '.join(kinds)}: ask for that kind, or for none, instead of {valid_text(kind)}"


def resolve(cache: SymbolCache, symbol: str) -> list[StoredSymbol]:
    """The definitions the cache has for an exact, perhaps qualified, name, best first."""
    return _found(cache, _taken_apart(symbol, None, ".", NameMatch.EXACT))


def bring_up_to_date(
    project: ProjectScope, cache: SymbolCache, name: str, match: NameMatch, *, seconds: float = SEARCH_SECONDS
) -> tuple[tuple[str, ...], float]:
    """Tag what has to be tagged before the cache can answer about `name` (its last part, where it is qualified).

    Returns what was left out, a sentence each, and when (monotonic seconds) the tree was walked for it. On a cold cache only files that hold the name are tagged: a definition holds the name it defines. They are looked for at most `seconds`.
    """
    name = _written(name)
    difference = cache.verify()
    problems, walked_at = difference.problems, difference.walked_at
    if not difference.pending and not difference.unseen:
        return problems, walked_at
    if len(difference.pending) <= INLINE_LIMIT and not difference.unseen:
        return (*problems, *cache.refresh(difference.pending)), walked_at
    if match is NameMatch.FUZZY:
        missing = f"{len(difference.pending)} files are not in the symbol cache yet"
        return ((*problems, missing) if difference.pending else problems), walked_at
    holding, unread = ripgrep.matching_files(
        project, Query((name,), regex=False, ignore_case=match is NameMatch.PREFIX), seconds=seconds
    )
    wanted = set(holding).intersection(chain(difference.pending, difference.unseen))
    return (*problems, *unread, *cache.refresh(wanted)), walked_at


def _written(symbol: str) -> str:
    """The last part of a name, as its definition holds it."""
    *_, last = readings(symbol)[-1] or [symbol]
    return definition_text(last)


def _taken_apart(symbol: str, kind: str | None, below: str, match: NameMatch) -> list[_Wanted]:
    """The ways in which a symbol can be read, the likeliest first."""
    found = []
    kinds, style = wanted_kinds(kind) if kind else None, style_kind(of_length(symbol, "symbol"))
    if style and kinds is None:
        found.append(_Wanted(symbol.strip()[1:], (), frozenset({style}), below, match))
    for *scope, name in filter(None, readings(symbol)):
        found.append(
            _Wanted(name, tuple(scope), kinds, below, match, () if match is NameMatch.FUZZY else style_spellings(name))
        )
    if not found or "\0" in symbol:
        raise Rejected("tool_errors.query.no_symbol")
    return found


def _found(cache: SymbolCache, readings_: Sequence[_Wanted]) -> list[StoredSymbol]:
    """What the first reading that has any definition stands for, best first."""
    every = (_ranked(_defined(_matching(cache, wanted), wanted), wanted) for wanted in readings_)
    return next(filter(None, every), [])


def _defined(symbols: Iterable[StoredSymbol], wanted: _Wanted) -> Sequence[StoredSymbol]:
    """The definitions, and of what has none here the declarations, as a header has them of a library."""
    every = list(symbols)
    if wanted.kinds == frozenset({DECLARATION}):
        return every
    known = {(symbol.tag.name, symbol.tag.scope) for symbol in every if symbol.tag.kind != DECLARATION}
    return [one for one in every if one.tag.kind != DECLARATION or (one.tag.name, one.tag.scope) not in known]


def _matching(cache: SymbolCache, wanted: _Wanted) -> Iterable[StoredSymbol]:
    kept = (
        symbol for name in wanted.also for symbol in _stored(cache, name, wanted.match) if _is_styles_own(symbol.tag)
    )
    return filter(wanted.accepts, dict.fromkeys(chain(_stored(cache, wanted.name, wanted.match), kept)))


def _stored(cache: SymbolCache, name: str, match: NameMatch) -> Iterable[StoredSymbol]:
    limit = 2 * EXACT_TOTAL_LIMIT
    if match is NameMatch.EXACT:
        return cache.store.named(name)
    return cache.store.prefixed(name, limit) if match is NameMatch.PREFIX else cache.store.lettered(name, limit)


def _is_styles_own(tag: Tag) -> bool:
    """Whether a style sheet's own language names it, not a page: a variable, a mixin, a placeholder."""
    return tag.language.lower() in _STYLE_SHEETS and (tag.kind not in STYLE_KINDS or tag.name.startswith("%"))


def _address(symbol: StoredSymbol) -> tuple[str, ...]:
    """Folders, module and scopes in one line: ('django', 'db', 'models', 'query', 'QuerySet')."""
    path = PurePosixPath(symbol.path)
    stem = () if path.stem in {"__init__", "index", "mod", "lib", "main"} else (path.stem,)
    return (*path.parts[:-1], *stem, *(part for part in symbol.tag.scope.split(".") if part))


def _ranked(symbols: Iterable[StoredSymbol], wanted: _Wanted) -> list[StoredSymbol]:
    def rank(symbol: StoredSymbol) -> tuple[object, ...]:
        """Nearest name first, what is only declared last, then the file's part in the project, what others import before members and `impl` blocks, place."""
        tag = symbol.tag
        weight = 0 if tag.kind in CALLABLE or tag.kind in TYPES else 1
        return (
            _distance(tag.name, wanted),
            tag.kind == DECLARATION,
            RELEVANCE[role(symbol.path)],
            tag.kind == _IMPL,
            weight,
            bool(tag.scope),
            symbol.path,
            tag.start_line,
            tag.end_line,
        )

    return sorted(symbols, key=rank)


def _distance(name: str, wanted: _Wanted) -> tuple[int, int]:
    """How far a name is from what was asked: the same, in another case, beginning with it, holding it, its letters only."""
    lowered, asked = name.lower(), wanted.name.lower()
    if name == wanted.name:
        return 0, 0
    if lowered == asked:
        return 1, 0
    if lowered.startswith(asked):
        return 2, len(name)
    return (3, len(name)) if asked in lowered else (4, len(name))


def _left_out(count: int) -> Iterator[str]:
    if count:
        yield f"{count} definitions of this page no longer stand in their files and are left out"


def _row(symbol: StoredSymbol, standing: SourceFiles) -> DefinitionRow:
    tag = symbol.tag
    text = standing.text(symbol.path, tag.start_line).strip()[:TEXT_COLUMNS]
    signature = f"{tag.name}{tag.signature}" if tag.signature.startswith("(") else tag.signature or text
    return DefinitionRow(
        path=valid_text(symbol.path),
        start_line=tag.start_line,
        end_line=tag.end_line,
        symbol=tag.name,
        kind=tag.kind,
        scope=tag.scope,
        signature=signature,
        text=text,
        language=tag.language.lower(),
        engine=symbol.engine,
    )
