"""Which rows of `find_references` mean the symbol that was asked for, and which symbol that is (SPEC 2)."""

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import takewhile

from code_intel_server.codebase.answers import Page
from code_intel_server.codebase.external_resolution import Asked, ExternalSources, KnownSymbol
from code_intel_server.codebase.files import ripgrep
from code_intel_server.codebase.files.project import ProjectScope, inside_file, valid_text
from code_intel_server.codebase.files.ripgrep import Query
from code_intel_server.codebase.files.text import counted
from code_intel_server.codebase.references.classify import PROSE, ReferenceRow, occurrences
from code_intel_server.codebase.resolution import Binding, Definition, ResolvedTarget, Resolver, resolver_of
from code_intel_server.codebase.symbols import definitions
from code_intel_server.codebase.symbols.cache import SymbolCache
from code_intel_server.codebase.symbols.definitions import NameMatch
from code_intel_server.codebase.symbols.names import readings
from code_intel_server.codebase.symbols.store import StoredSymbol
from code_intel_server.codebase.syntax.values import Use
from code_intel_server.common.printable import printable
from code_intel_server.errors import Rejected

_AT = re.compile(r"(?P<path>.+?):(?P<line>\d{1,9})(?::(?P<column>\d{1,9}))?", re.DOTALL)
_NEAREST = 5
_MOST_DECLARATIONS = 5
_MOST_NAMES = 5
_UNLIKELY = 2
_BEHIND = re.compile(r"(?<!\w)(?P<owner>\w++)(?:\.prototype)?(?:\.|\?\.|->|::)(?=(?P<name>\w++))")
_MOST_ON_A_LINE = 20
"""Of a line that holds a name more often, as built code does, no more are resolved."""
_LIKELIEST = 3
"""So many rows that may mean it are shown first where no use is certain, beside those on its owner's name."""
_FILES = 3
"""So many files are named that hold the rows behind a page."""
_WORTH_A_PAGE = 5
"""So many rows that are not likely are shown on a page of their own."""
_MOST_FILES = 400
"""Of more files that hold a name only those that declare it are asked for its other names."""


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """`path:line[:column]`, 1-based, the path inside the project."""

    path: str
    line: int
    column: int | None = None

    @classmethod
    def parsed(cls, project: ProjectScope, at: str) -> "SourcePlace":
        """The place that a text names. Raises Rejected('tool_errors.generic.argument_invalid') and the errors of `inside_file`."""
        found = _AT.fullmatch(at.strip())
        if found is None:
            raise Rejected("tool_errors.generic.argument_invalid", field="at", expected="path:line or path:line:column")
        column = int(found["column"]) if found["column"] else None
        return cls(inside_file(project.root, found["path"]), int(found["line"]), column)


def no_name_at(at: str) -> Rejected:
    """The refusal of a place where no name stands that a resolver reads."""
    return Rejected("tool_errors.query.no_name_at", at=valid_text(at))


def target_of(project: ProjectScope, cache: SymbolCache, resolver: Resolver, symbol: str) -> ResolvedTarget | None:
    """What a qualified name means; None for a name that is not qualified, or of a language that no resolver reads.

    Raises Rejected('tool_errors.query.unknown_qualifier') where the project defines the name, but not there.
    """
    *scope, name = readings(symbol)[0] or [symbol]
    if not scope:
        return None
    definitions.bring_up_to_date(project, cache, name, NameMatch.EXACT)
    found = _named(cache, resolver, [*scope, name])
    if found is not None:
        return found
    same_name = definitions.resolve(cache, name)
    if not same_name:
        return ResolvedTarget(name, outside=".".join([*scope, name]))
    if not all(resolver_of(one.path) for one in same_name):
        return None
    if definitions.resolve(cache, symbol):
        return ResolvedTarget(name, outside=".".join([*scope, name]))
    raise Rejected(
        "tool_errors.query.unknown_qualifier", symbol=valid_text(symbol), nearest="; ".join(_nearest(scope, same_name))
    )


def _named(cache: SymbolCache, resolver: Resolver, parts: Sequence[str]) -> ResolvedTarget | None:
    """A symbol by its path of names: as it is defined, else as a member or a re-export of what holds it."""
    stored = definitions.resolve(cache, ".".join(parts))
    target = resolver.target((one.path, one.tag.start_line, one.tag.end_line, one.tag.name) for one in stored)
    if target is not None or len(parts) < 2:
        return target
    owners = _named(cache, resolver, parts[:-1])
    modules = () if owners else _modules(resolver, parts[:-1])
    return resolver.member(owners, modules, parts[-1])


def _modules(resolver: Resolver, parts: Sequence[str]) -> Iterator[str]:
    """The files of a module, whose path ends with its name, or is that of a package with the rest."""
    stems = ["/" + "/".join(parts)]
    if root := resolver.package(parts[0]):
        folder = f"/{root}".rpartition("/")[0]
        stems.append("/".join((folder, *parts[1:])) if parts[1:] else f"/{root}".rpartition(".")[0])
    endings = tuple(stem + index for stem in stems for index in ("", "/__init__", "/index", "/mod"))
    for path in resolver.files.listed:
        if f"/{path.rpartition('.')[0]}".endswith(endings) and resolver_of(path):
            yield path


def _nearest(scope: Sequence[str], same_name: Sequence[StoredSymbol]) -> list[str]:
    """The definitions of a name whose qualifier is most like the one that was asked for."""
    wanted = ".".join(scope)

    def likeness(one: StoredSymbol) -> float:
        return -difflib.SequenceMatcher(None, wanted.lower(), (one.tag.scope or one.path).lower()).ratio()

    chosen = sorted(same_name, key=lambda one: (likeness(one), one.path, one.tag.start_line))[:_NEAREST]
    return [
        f"{one.tag.scope}.{one.tag.name}"
        if one.tag.scope
        else f"{one.tag.name} ({valid_text(one.path)}:{one.tag.start_line})"
        for one in chosen
    ]


def other_names(project: ProjectScope, resolver: Resolver, target: ResolvedTarget) -> Sequence[str]:
    """The names under which the project imports or exports a target otherwise."""
    if not target.symbols or target.is_local:
        return ()
    holding, _ = ripgrep.matching_files(project, Query((target.name,), regex=False, word=True))
    near = {path for path in holding if resolver_of(path)} if len(holding) <= _MOST_FILES else target.files
    found = set(resolver.aliases(target, sorted(near)))
    if "default" in found:
        found.remove("default")
        stems = "|".join(sorted({re.escape(path.rpartition("/")[2].partition(".")[0]) for path in target.files}))
        importing, _ = ripgrep.matching_files(project, Query((rf"from\s+['\"][^'\"]*({stems}|\.|/)(\.\w+)?['\"]",)))
        found |= resolver.aliases(target, importing[:_MOST_FILES]) - {"default"}
    return sorted(found)


@dataclass(frozen=True, slots=True)
class SourcesSaid:
    """What the project's own sources know of what is asked for: its symbols, or none unless they know each."""

    name: str = ""
    symbols: Sequence[KnownSymbol] = ()
    notes: Sequence[str] = ()

    @classmethod
    def of(cls, asked: Sequence[Asked]) -> "SourcesSaid":
        """The answers to one question each as the answer to all."""
        known = [one.symbol for one in asked if one.symbol is not None]
        notes = list(dict.fromkeys(valid_text(note) for one in asked for note in one.notes))
        return cls(asked[0].name if asked else "", known if len(known) == len(asked) else (), notes)

    @classmethod
    def at(cls, sources: ExternalSources | None, place: SourcePlace, name: str) -> "SourcesSaid":
        """What the sources say of a place, at which `name` is likely to be meant."""
        return cls() if sources is None else cls.of([sources.symbol_at(place.path, place.line, place.column, name)])

    @property
    def names(self) -> Sequence[str]:
        """What it is called where it is used."""
        return [name for one in self.symbols for name in one.names][:_MOST_NAMES]

    @property
    def engines(self) -> Sequence[str]:
        """Who says it."""
        return list(dict.fromkeys(printable(one.engine) for one in self.symbols))


def said_of(sources: ExternalSources | None, resolver: Resolver, target: ResolvedTarget | None) -> SourcesSaid:
    """What the sources say of a target's symbols."""
    if sources is None or target is None:
        return SourcesSaid()
    declared = resolver.definitions(target.symbols)[:_MOST_DECLARATIONS]
    return SourcesSaid.of([sources.symbol_at(one.path, one.line, name=one.name) for one in declared])


@dataclass(frozen=True, slots=True)
class Receivers:
    """What a member is called on, as far as its name tells: the owner of this one, or of others of the same name."""

    own: Set[str] = frozenset()
    others: Mapping[str, str] = field(default_factory=dict)
    """The place that defines another, by its owner in small letters."""
    is_shared: bool = False
    """Whether others of the name are defined."""

    @classmethod
    def of(cls, cache: SymbolCache, resolver: Resolver, target: ResolvedTarget | None) -> "Receivers":
        """Of the definitions that the cache has."""
        if target is None or not target.symbols:
            return cls()
        meant = {(one.path, one.line) for one in resolver.definitions(target.symbols)}
        own: set[str] = set()
        others: dict[str, str] = {}
        same_name = definitions.resolve(cache, target.name)
        for one in same_name:
            owner = one.tag.scope.removesuffix(".prototype").rpartition(".")[2].lower().lstrip("_")
            if (one.path, one.tag.start_line) in meant:
                own.add(owner)
            elif owner:
                others.setdefault(owner, f"{one.path}:{one.tag.start_line}")
        is_shared = any((one.path, one.tag.start_line) not in meant for one in same_name)
        return cls(own, {owner: place for owner, place in others.items() if own and owner not in own}, is_shared)

    def rank(self, row: ReferenceRow) -> int:
        """0 behind a name of its owner, 1 where the name does not tell, 2 behind that of another's owner."""
        found = _receiver(row)
        return 0 if found in self.own else 2 if found in self.others else 1

    def notes(self, rows: Iterable[ReferenceRow]) -> Iterator[str]:
        """Which others the rows of the last rank are likely to mean, a sentence each."""
        unsure = (row for row in rows if self.others and row.binding is not Binding.CERTAIN)
        counts = Counter(found for row in unsure if (found := _receiver(row)) in self.others)
        for owner, count in counts.most_common(_FILES):
            yield f"last: {counted(count, 'row')} on {owner}, as {valid_text(self.others[owner])} defines"


def by_file(rows: Iterable[ReferenceRow], most: int) -> str:
    """How many rows each file has, those with the most by name."""
    counts = Counter(row.path for row in rows)
    first = counts.most_common(most)
    files = [f"{valid_text(path)} {count}" for path, count in first]
    if len(counts) > len(first):
        others = counted(len(counts) - len(first), "other file")
        files.append(f"{others} {counts.total() - sum(count for _, count in first)}")
    return ", ".join(files)


def _receiver(row: ReferenceRow) -> str:
    """The word that a row's name stands behind, in small letters; '' where it is no word."""
    for found in _BEHIND.finditer(row.text):
        if found["name"] == row.symbol:
            return found["owner"].lower().lstrip("_")
    return ""


@dataclass(slots=True)
class Binder:
    """Tells of rows whether they mean the target; counts those that do not.

    Without a target (a bare name) whatever the project declares under the name is meant, as far as it declares any. What
    the project's sources know of the symbol goes before what the text tells.
    """

    project: ProjectScope
    resolver: Resolver
    target: ResolvedTarget | None
    names: Sequence[str]
    own: Set[tuple[str, int]] = frozenset()
    """Path and line of definitions that are meant, whatever the resolver knows of them."""
    said: SourcesSaid = field(default_factory=SourcesSaid)
    receivers: Receivers = field(default_factory=Receivers)
    others: int = 0
    is_late: bool = False
    _pattern: re.Pattern[bytes] = field(init=False)

    def __post_init__(self) -> None:
        """Compile what finds the names."""
        self._pattern = occurrences(self.names)

    @property
    def is_one(self) -> bool:
        """Whether certain symbols are meant, not whatever bears the name."""
        return self.target is not None or bool(self.said.symbols)

    def bound(self, rows: Sequence[ReferenceRow], *, every: bool, shown: bool = True) -> Sequence[ReferenceRow]:
        """The rows that mean the target or may, each with its binding, the certain ones first, last those on others' owners.

        `every`: these are all rows there are, so that they tell whether the project declares a bare name. Where they are not,
        a bare name's rows stay in order, whatever is known of each: those that are not `shown` are not looked at.
        """
        is_part = not (self.is_one or every)
        if is_part:
            self.resolver.be_brief()
        if is_part and not shown:
            return rows
        told = [replace(row, binding=self._binding(row)) for row in rows]
        self.is_late = self.is_late or self.resolver.late
        if not self.is_one and (is_part or not any(row.binding is Binding.CERTAIN for row in told)):
            told = [row if row.binding is Binding.CERTAIN else replace(row, binding=Binding.POSSIBLE) for row in told]
        if is_part:
            return told
        kept = [row for row in told if row.binding is not Binding.OTHER]
        self.others += len(told) - len(kept)
        return sorted(kept, key=self.rank)

    def rank(self, row: ReferenceRow) -> int:
        """How far behind a row comes: -1 for a certain one, the more the less likely it means the target."""
        return -1 if row.binding is Binding.CERTAIN else self.receivers.rank(row)

    def ended(self, page: Page, rows: Sequence[ReferenceRow]) -> Page:
        """The page, ended behind the certain uses; where there are none, behind the likeliest rows, or before those that are unlikely."""
        shown = rows[page.range.start : page.range.stop]

        def within(rank: int) -> int:
            return sum(1 for _ in takewhile(lambda row: self.rank(row) <= rank, rows))

        certain = within(-1)
        end = len(rows)
        if any(row.kind is not Use.DEFINITION for row in rows[:certain]):
            end = certain
        elif self.receivers.is_shared:
            end = max(within(0), min(certain + _LIKELIEST, within(_UNLIKELY - 1)))
        if page.offset < end < len(rows) - 1:  # to tell of one row takes as much as the row
            shown = shown[: end - page.offset]
        unlikely = sum(1 for _ in takewhile(lambda row: self.rank(row) == _UNLIKELY, reversed(shown)))
        kept = len(shown) - unlikely if _WORTH_A_PAGE <= unlikely < len(shown) else len(shown)
        return Page(kept, page.offset) if page.offset + kept < len(rows) else page

    def possible(self, page: Page, rows: Sequence[ReferenceRow]) -> Iterator[str]:
        """How many rows behind the page may mean the target, and in which files, a sentence."""
        rest = [row for row in rows[page.range.stop :] if row.binding == Binding.POSSIBLE]
        if rest:
            more = counted(len(rest), "more row")
            yield f"possible: {more} may mean it, from offset={page.range.stop} on: {by_file(rest, _FILES)}"

    def _binding(self, row: ReferenceRow) -> Binding:
        if row.kind in PROSE:
            return Binding.POSSIBLE
        names, place = set(self.names), (row.path, row.start_line)
        if any(one.is_on(*place, names) for one in self.said.symbols):
            return Binding.CERTAIN
        found = self._resolved(row)
        if self.said.symbols and all(one.means_other(*place, names) for one in self.said.symbols):
            # Of two that disagree neither is believed.
            return Binding.POSSIBLE if found is Binding.CERTAIN else Binding.OTHER
        return found

    def _resolved(self, row: ReferenceRow) -> Binding:
        if self.target is None and self.is_one:
            return Binding.POSSIBLE
        if row.kind is Use.DEFINITION and (self.target is None or (row.path, row.start_line) in self.own):
            return Binding.CERTAIN
        found: set[Binding] = set()
        bindings = self.resolver.bindings(self.target, row.path, row.start_line, self._pattern)
        for number, binding in enumerate(bindings):
            if binding is Binding.CERTAIN:
                return binding
            found.add(binding if number < _MOST_ON_A_LINE else Binding.POSSIBLE)
            if number >= _MOST_ON_A_LINE:
                break
        return Binding.OTHER if found == {Binding.OTHER} else Binding.POSSIBLE

    def give_up(self, symbol: str | None) -> None:
        """Say that nothing of the name is known. Raises Rejected('tool_errors.query.unknown_qualifier')."""
        raise Rejected(
            "tool_errors.query.unknown_qualifier", symbol=valid_text(symbol or self.names[0]), nearest="none"
        )

    def overridden(self) -> Iterator[tuple[Definition, int]]:
        """What the target overrides, and how many occurrences were told for that."""
        for symbol, count in self.resolver.through.most_common(_NEAREST):
            yield self.resolver.definitions([symbol])[0], count

    def near(self) -> frozenset[str]:
        """The files that use the target, and those that hold a word which most such files hold."""
        known = frozenset(place.path for one in self.said.symbols for place in one.references)
        if self.target is None:
            return known
        hints = tuple(sorted(self.target.hints))
        found, _ = ripgrep.matching_files(self.project, Query(hints, regex=False, word=True)) if hints else ((), ())
        return self.target.files.union(found, known)
