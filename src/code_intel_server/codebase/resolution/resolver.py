"""The door of the room: definitions at a place, symbols by their qualified name, and what occurrences of a name mean."""

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from code_intel_server.codebase.project import Project
from code_intel_server.codebase.resolution.evaluator import Evaluator, Meaning
from code_intel_server.codebase.resolution.model import Declaration, Key, Model, Symbol
from code_intel_server.codebase.resolution.store import ProjectFiles
from code_intel_server.codebase.resolution.values import Binding, Class

SECONDS = 6.0
"""How long one question may be worked on; what is not told by then stays possible."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A place that defines a symbol. `qualified` names it with the classes and functions it stands in; column 1-based."""

    path: str
    line: int
    end_line: int
    column: int
    name: str
    kind: str
    qualified: str


@dataclass(frozen=True, slots=True)
class Found:
    """What stands at a place: its definitions, or what `outside` of the project it is; `certain` where there can be no other."""

    name: str
    definitions: tuple[Definition, ...]
    outside: str = ""
    certain: bool = True


@dataclass(frozen=True, slots=True)
class Target:
    """The symbols that a question is about; all have one name."""

    name: str
    symbols: frozenset[Symbol]

    @property
    def keys(self) -> frozenset[Key]:
        """Their keys."""
        return frozenset(symbol.key for symbol in self.symbols)


class Resolver:
    """Answers the questions of one lookup about the project as it looks now."""

    def __init__(self, project: Project, seconds: float = SECONDS) -> None:
        self.files = ProjectFiles(project)
        self._evaluator = Evaluator(self.files, time.monotonic() + seconds)
        self._root: dict[Key, Symbol] = {}
        self._related: dict[tuple[Key, Key], bool] = {}

    @property
    def late(self) -> bool:
        """Whether the time ran out."""
        return self._evaluator.late

    def at(self, path: str, line: int, column: int | None = None) -> Found | None:
        """What the name at a place means; without a column the line's first definition, else its first name.

        None where no name stands there, or no resolver reads the file.
        """
        place = self._place(path, line, column)
        if place is None:
            return None
        model, node = place
        meant = self._evaluator.meaning(model, node)
        definitions = tuple(_definition(one) for symbol in _sorted(meant.symbols) for one in symbol.declarations)
        definitions += tuple(_module(path) for path in sorted(meant.modules))
        return Found(model.text(node), definitions, meant.outside, certain=bool(meant) and not meant.unknown)

    def target_at(self, path: str, line: int, column: int | None = None) -> Target | None:
        """The symbols that the name at a place means; None where there are none in the project."""
        place = self._place(path, line, column)
        if place is None:
            return None
        model, node = place
        symbols = self._evaluator.meaning(model, node).symbols
        name = next((symbol.name for symbol in _sorted(symbols)), "")
        return Target(name, symbols) if symbols else None

    def target(self, places: Iterable[tuple[str, int, str]]) -> Target | None:
        """The symbols defined at these places (path, 1-based line, name)."""
        found: set[Symbol] = set()
        name = ""
        for path, line, name in places:
            model = self.files.model(path)
            if model is None:
                continue
            for symbol in model.by_name_byte.values():
                if symbol.name == name and any(one.line == line and one.model is model for one in symbol.declarations):
                    found.add(symbol)
        return Target(name, frozenset(found)) if found else None

    def verdicts(self, target: Target, path: str, line: int, names: re.Pattern[bytes]) -> Iterator[tuple[int, Binding]]:
        """(1-based column, binding) of every occurrence of the names on a line."""
        model = self.files.model(path)
        starts = model.parsed.line_starts if model else ()
        if model is None or not 0 < line <= len(starts):
            return
        begin = starts[line - 1]
        for match in names.finditer(model.parsed.text[begin : model.parsed.line_end(line)]):
            node = model.leaf(begin + match.start())
            if node is not None:
                meant = self._evaluator.meaning(model, node)
                own = model.by_name_byte.get(node.start_byte)
                declares = own is not None and not any(one.kind == "import" for one in own.declarations)
                verdict = self.verdict(target, meant)
                yield match.start() + 1, Binding.OTHER if declares and verdict is Binding.POSSIBLE and not meant.unknown else verdict

    def verdict(self, target: Target, meant: Meaning) -> Binding:
        """Whether a meaning is the target's."""
        if meant.symbols & target.symbols or self._roots(meant.symbols) & self._roots(target.symbols):
            return Binding.CERTAIN
        if meant.unknown or not meant:
            return Binding.POSSIBLE
        if any(self._may_be(symbol, wanted) for symbol in meant.symbols for wanted in target.symbols):
            return Binding.POSSIBLE
        return Binding.OTHER

    def _roots(self, symbols: Iterable[Symbol]) -> frozenset[Symbol]:
        found = []
        for symbol in symbols:
            if symbol.key not in self._root:
                self._root[symbol.key] = symbol.declarations[0].model.language.root(self._evaluator, symbol)
            found.append(self._root[symbol.key])
        return frozenset(found)

    def _may_be(self, symbol: Symbol, wanted: Symbol) -> bool:
        """Whether `wanted` overrides a member, so that who uses that one may get it."""
        mine, other = symbol.owner, wanted.owner
        if mine is None or other is None or symbol.name != wanted.name:
            return False
        key = (mine.key, other.key)
        if key not in self._related:
            self._related[key] = self._descends(other, mine)
        return self._related[key]

    def _descends(self, one: Declaration, above: Declaration) -> bool:
        line = self._evaluator.line_of_descent(Class(one))
        return any(isinstance(base, Class) and base.declaration == above for base in line)

    def _place(self, path: str, line: int, column: int | None) -> "tuple[Model, object] | None":
        model = self.files.model(path)
        if model is None or not 0 < line <= len(model.parsed.line_starts):
            return None
        begin, end = model.parsed.line_starts[line - 1], model.parsed.line_end(line)
        if column is not None:
            byte = begin + len(model.parsed.text[begin:end].decode("utf-8", "replace")[: column - 1].encode())
            node = model.leaf(byte) if byte < end else None
            return (model, node) if node is not None and _is_name(model, node) else None
        own = sorted(byte for byte in model.by_name_byte if begin <= byte < end)
        for byte in (*own, *(begin + found.start() for found in _WORD.finditer(model.parsed.text[begin:end]))):
            node = model.leaf(byte)
            if node is not None and _is_name(model, node):
                return model, node
        return None


_WORD = re.compile(rb"[^\W\d]\w*")


def _is_name(model: Model, node: object) -> bool:
    return "identifier" in node.type


def _sorted(symbols: Iterable[Symbol]) -> Sequence[Symbol]:
    return sorted(symbols, key=lambda symbol: symbol.key)


def _definition(one: Declaration) -> Definition:
    parts = [one.name]
    scope = one.scope
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
