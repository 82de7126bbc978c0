"""The door of the room: definitions at a place, symbols by their qualified name, and what occurrences of a name mean."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from code_intel_server.codebase.files.project import ProjectScope
from code_intel_server.codebase.resolution.evaluation import NOT_KNOWN, Meaning
from code_intel_server.codebase.resolution.evaluator import SHALLOW, LazyEvaluator
from code_intel_server.codebase.resolution.languages import RESOLVERS
from code_intel_server.codebase.resolution.model import BoundSymbol, Declaration, Key, Model, Scope
from code_intel_server.codebase.resolution.store import ProjectFiles
from code_intel_server.codebase.resolution.values import Binding, Class

if TYPE_CHECKING:
    from tree_sitter import Node

RESOLUTION_SECONDS = 6.0
"""How long one question may be worked on; what is not known by then stays possible."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A place that defines a symbol. `qualified` names it with the classes and functions it is in; column 1-based."""

    path: str
    line: int
    end_line: int
    column: int
    name: str
    kind: str
    qualified: str


@dataclass(frozen=True, slots=True)
class Resolution:
    """What is at a place: its definitions, or what `outside` of the project it is; `certain` where there can be no other."""

    name: str
    definitions: tuple[Definition, ...]
    outside: str = ""
    certain: bool = True


@dataclass(frozen=True, slots=True)
class ResolvedTarget:
    """What a question is about: these symbols of the project, or what is called `outside` of it."""

    name: str
    symbols: frozenset[BoundSymbol] = frozenset()
    outside: str = ""
    is_type: bool | None = None
    """Of one that is a type and a value of one name: which is meant, None for both."""

    @property
    def files(self) -> frozenset[str]:
        """Where the symbols are declared."""
        return frozenset(one.model.path for symbol in self.symbols for one in symbol.declarations)

    @property
    def is_local(self) -> bool:
        """Whether nothing outside of one function can mean them."""
        return bool(self.symbols) and all(
            symbol.scope.around("function") is not None and symbol.scope.kind != "class" for symbol in self.symbols
        )

    @property
    def hints(self) -> frozenset[str]:
        """Words that are in most files which certainly use them: of their classes and of their files."""
        stems = {path.rpartition("/")[2].partition(".")[0] for path in self.files}
        folders = {path.rpartition("/")[0].rpartition("/")[2] for path in self.files}
        owners = {symbol.owner.name for symbol in self.symbols if symbol.owner is not None} - {""}
        for symbol in self.symbols:
            owners.update(name for name, member in symbol.declarations[0].model.apart if member == symbol)
        return frozenset((owners or folders if stems & _PACKAGES else owners or stems) - {""})


class Resolver:
    """Answers the questions of one lookup about the project as it looks now."""

    def __init__(self, project: ProjectScope, seconds: float = RESOLUTION_SECONDS) -> None:
        self.files = ProjectFiles(project)
        self._evaluator = LazyEvaluator(self.files, RESOLVERS, seconds)
        self.through: Counter[BoundSymbol] = Counter()
        """Members that the target overrides: how many occurrences mean them, and so may mean the target when the program runs."""
        self._root: dict[Key, BoundSymbol] = {}
        self._related: dict[tuple[Key, Key], bool] = {}

    @property
    def late(self) -> bool:
        """Whether the time ran out."""
        return self._evaluator.late

    def be_brief(self) -> None:
        """Leave open from now on what only a long chain of expressions tells."""
        self._evaluator.depth = SHALLOW

    def at(self, path: str, line: int, column: int | None = None) -> Resolution | None:
        """What the name at a place means; without a column the line's first definition, else its first name.

        None where no name is there, or no resolver reads the file.
        """
        place = self._place(path, line, column)
        if place is None:
            return None
        model, node = place
        meant = self._meaning(model, node)
        definitions = self.definitions(meant.symbols)
        definitions += tuple(_module(path) for path in sorted(meant.modules))
        return Resolution(model.text(node), definitions, meant.outside, certain=bool(meant) and not meant.unknown)

    def target_at(self, path: str, line: int, column: int | None = None) -> ResolvedTarget | None:
        """What the name at a place means, without symbols where that is not known; None where no name is there."""
        place = self._place(path, line, column)
        if place is None:
            return None
        model, node = place
        meant = self._meaning(model, node)
        own = model.by_name_byte.get(node.start_byte)
        if own is not None and not meant.symbols:
            return ResolvedTarget(own.name, frozenset({own}))
        name = next((symbol.name for symbol in _sorted(meant.symbols)), model.text(node))
        rules = self._evaluator.rules(model)
        is_type = rules.is_type(node) if any(map(rules.is_type_and_value, meant.symbols)) else None
        return ResolvedTarget(name, meant.symbols, "" if meant.symbols else meant.outside, is_type)

    def target(self, places: Iterable[tuple[str, int, int, str]]) -> ResolvedTarget | None:
        """The symbols whose definitions are there (path, 1-based first and last line, name); None where there are none."""
        found: set[BoundSymbol] = set()
        last = ""
        for path, start, end, name in places:
            last = name
            model = self.files.model(path)
            inside = [
                (one.line, symbol)
                for symbol in (model.by_name_byte.values() if model else ())
                for one in symbol.declarations
                if symbol.name == name and start <= one.line <= end and one.kind not in _STANDING_FOR
            ]
            if inside:
                found.add(min(inside, key=lambda pair: pair[0])[1])
        return ResolvedTarget(last, frozenset(found)) if found else None

    def member(self, owners: ResolvedTarget | None, modules: Iterable[str], name: str) -> ResolvedTarget | None:
        """What classes or modules hold under a name, inherited and re-exported; None where nothing."""
        values = self._evaluator.values(Meaning(owners.symbols if owners else frozenset(), frozenset(modules)))
        languages = {
            self._evaluator.rules(one.model)
            for symbol in (owners.symbols if owners else ())
            for one in symbol.declarations
        }
        names = {each for language in languages for each in language.member_names(name)} or {name}
        symbols = frozenset().union(*(self._evaluator.members(values, each).symbols for each in sorted(names)))
        return ResolvedTarget(name, symbols) if symbols else None

    def package(self, name: str) -> str:
        """The file that a package of the project begins with, '' where it has none of that name."""
        return next(filter(None, (rules.packages(self._evaluator).get(name) for rules in RESOLVERS.values())), "")

    def aliases(self, target: ResolvedTarget, paths: Iterable[str]) -> frozenset[str]:
        """The other names under which these files import or export the target."""
        found: set[str] = set()
        for path in paths:
            model = self.files.model(path)
            tables = (model.top.symbols, model.exports) if model else ()
            for symbol in [one for table in tables for one in table.values()]:
                if symbol.name == target.name or not any(
                    one.kind in _STANDING_FOR and _names(one, target.name) for one in symbol.declarations
                ):
                    continue
                if self._evaluator.follow(symbol).symbols & target.symbols:
                    found.add(symbol.name)
        return frozenset(found)

    def bindings(
        self, target: ResolvedTarget | None, path: str, line: int, names: re.Pattern[bytes]
    ) -> Iterator[Binding]:
        """What every occurrence of the names on a line is to the target; without one, to whatever the project declares for others."""
        model = self.files.model(path)
        starts = model.parsed.line_starts if model else ()
        if model is None or not 0 < line <= len(starts):
            return
        begin = starts[line - 1]
        for match in names.finditer(model.parsed.text[begin : model.parsed.line_end(line)]):
            node = model.leaf(begin + match.start())
            if node is not None and node.byte_range == (begin + match.start(), begin + match.end()):
                yield self._binding_or_possible(target, model, node)

    def overrides(self, target: ResolvedTarget, path: str, line: int) -> bool:
        """Whether a member that a line declares overrides the target, or is overridden by it."""
        model = self.files.model(path)
        own = model.by_name_byte.values() if model else ()
        return any(
            self._may_be(symbol, wanted) or self._may_be(wanted, symbol)
            for symbol in own
            if symbol.name == target.name and any(one.line == line for one in symbol.declarations)
            for wanted in target.symbols - {symbol}
        )

    def used_in(self, path: str, first: int, last: int) -> Iterator[Definition]:
        """Where the project defines what these lines (1-based) name, each symbol once."""
        model = self.files.model(path)
        starts = model.parsed.line_starts if model else ()
        if model is None or not 0 < first <= min(last, len(starts)):
            return
        begin, end = starts[first - 1], model.parsed.line_end(min(last, len(starts)))
        seen: set[BoundSymbol] = set()
        for found in _WORD.finditer(model.parsed.text[begin:end]):
            node = model.leaf(begin + found.start())
            if node is None or not _is_name(node):
                continue
            new = self._meaning(model, node).symbols - seen
            seen |= new
            yield from (one for one in self.definitions(new) if one.kind not in _STANDING_FOR)

    def _meaning(self, model: Model, node: "Node") -> Meaning:
        """What a name means; not known where a text nests deeper than can be followed, which is no reason to know nothing else."""
        try:
            return self._evaluator.meaning(model, node)
        except RecursionError:
            return NOT_KNOWN

    def _binding_or_possible(self, target: ResolvedTarget | None, model: Model, node: "Node") -> Binding:
        try:
            return self._binding(target, model, node)
        except RecursionError:
            return Binding.POSSIBLE

    def _binding(self, target: ResolvedTarget | None, model: Model, node: "Node") -> Binding:
        meant = self._evaluator.meaning(model, node)
        if target is None:
            return self._declared(meant)
        verdict = self.verdict(target, meant)
        if target.is_type is not None and self._evaluator.rules(model).is_type(node) is (not target.is_type):
            return Binding.OTHER
        if verdict is Binding.OTHER and node.start_byte not in model.by_name_byte:
            self.through.update(
                symbol for symbol in meant.symbols if any(self._may_be(symbol, wanted) for wanted in target.symbols)
            )
        return verdict

    @staticmethod
    def _declared(meant: Meaning) -> Binding:
        if any(not ResolvedTarget("", frozenset({symbol})).is_local for symbol in meant.symbols) or meant.modules:
            return Binding.CERTAIN
        return Binding.POSSIBLE if meant.unknown or not meant else Binding.OTHER

    def verdict(self, target: ResolvedTarget, meant: Meaning) -> Binding:
        """Whether a meaning is the target's."""
        if not target.symbols:
            return self._outside_verdict(target, meant)
        if meant.symbols & target.symbols or self._roots(meant.symbols) & self._roots(target.symbols):
            return Binding.CERTAIN
        if meant.unknown or not meant:
            return Binding.POSSIBLE
        return Binding.OTHER

    @staticmethod
    def _outside_verdict(target: ResolvedTarget, meant: Meaning) -> Binding:
        if meant.outside and f".{meant.outside}".endswith(f".{target.outside}"):
            return Binding.CERTAIN
        return Binding.POSSIBLE if meant.unknown or not meant else Binding.OTHER

    def definitions(self, symbols: Iterable[BoundSymbol]) -> tuple[Definition, ...]:
        """Where symbols are declared."""
        return tuple(_definition(one) for symbol in _sorted(symbols) for one in symbol.declarations)

    def _roots(self, symbols: Iterable[BoundSymbol]) -> frozenset[BoundSymbol]:
        found = []
        for symbol in symbols:
            if symbol.key not in self._root:
                rules = self._evaluator.rules(symbol.declarations[0].model)
                self._root[symbol.key] = rules.root(self._evaluator, symbol)
            found.append(self._root[symbol.key])
        return frozenset(found)

    def _may_be(self, symbol: BoundSymbol, wanted: BoundSymbol) -> bool:
        """Whether `wanted` overrides a member, so that who uses that one may get it."""
        mine, other = symbol.owner, wanted.owner
        if mine is None or other is None or symbol.name != wanted.name:
            return False
        key = (mine.key, other.key)
        if key not in self._related:
            rules = self._evaluator.rules(mine.model)
            self._related[key] = self._descends(other, mine) or rules.may_be(self._evaluator, mine, other)
        return self._related[key]

    def _descends(self, one: Declaration, above: Declaration) -> bool:
        line = self._evaluator.line_of_descent(Class(one))
        return any(isinstance(base, Class) and base.declaration == above for base in line)

    def _place(self, path: str, line: int, column: int | None) -> "tuple[Model, Node] | None":
        model = self.files.model(path)
        if model is None or not 0 < line <= len(model.parsed.line_starts):
            return None
        begin, end = model.parsed.line_starts[line - 1], model.parsed.line_end(line)
        if column is not None:
            byte = begin + len(model.parsed.text[begin:end].decode("utf-8", "replace")[: column - 1].encode())
            node = model.leaf(byte) if byte < end else None
            return (model, node) if node is not None and _is_name(node) else None
        own = sorted(byte for byte in model.by_name_byte if begin <= byte < end)
        for byte in (*own, *(begin + found.start() for found in _WORD.finditer(model.parsed.text[begin:end]))):
            node = model.leaf(byte)
            if node is not None and _is_name(node):
                return model, node
        return None


_WORD = re.compile(rb"[^\W\d]\w*")
_STANDING_FOR = frozenset({"import", "export"})
_PACKAGES = frozenset({"__init__", "index", "mod", "lib", "main"})


def _is_name(node: "Node") -> bool:
    return "identifier" in node.type


def _names(one: Declaration, name: str) -> bool:
    """Whether the statement that an import or export is in holds a name, or exports the whole."""
    around = one.name_node.parent or one.node
    return one.name == "default" or name.encode() in (around.text or b"") or around.type == "import_clause"


def _sorted(symbols: Iterable[BoundSymbol]) -> Sequence[BoundSymbol]:
    return sorted(symbols, key=lambda symbol: symbol.key)


def _definition(one: Declaration) -> Definition:
    parts = [one.name]
    scope: Scope | None = one.scope
    while scope is not None:
        if scope.owner is not None:
            parts.append(scope.owner.name)
        scope = scope.parent
    return Definition(
        one.model.path,
        one.line,
        one.node.end_point.row + 1,
        one.name_node.start_point.column + 1,
        one.name,
        one.kind,
        ".".join(reversed(parts)),
    )


def _module(path: str) -> Definition:
    name = path.rpartition("/")[2].partition(".")[0]
    return Definition(path, 1, 1, 1, name, "module", name)
