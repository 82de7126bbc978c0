"""Follows the uses of the targets' names to the symbols around them, step by step (SPEC 8).

Of a use the resolver says whether it certainly means the target; where the text does not tell, a name that many
definitions share or that is everywhere weighs little: it says little.
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from code_intel_server.codebase.files import ripgrep
from code_intel_server.codebase.files.ripgrep import FileMatches, Query
from code_intel_server.codebase.files.roles import RELEVANCE, Role, role
from code_intel_server.codebase.files.text import decode, is_binary
from code_intel_server.codebase.impact.run import Analysis, Name, by_hand, is_distinctive
from code_intel_server.codebase.impact.values import AffectedLine, Tie
from code_intel_server.codebase.references.classify import PROSE, NameQuery, ReferenceRow, classify, occurrences
from code_intel_server.codebase.resolution import Binding, Definition
from code_intel_server.codebase.symbols.cache import SymbolCache
from code_intel_server.codebase.symbols.kinds import DECLARATION, STYLE_KINDS
from code_intel_server.codebase.symbols.names import written
from code_intel_server.codebase.symbols.store import StoredSymbol
from code_intel_server.codebase.syntax.values import Use

_FRONTIER = 25
_SHARED_BY = 8
_MOST_FILES = 80
"""Files of a step that are parsed; of the others their first line is told."""
_FADING = 0.45
_OUTSIDE_HOME = 0.7
_LEAST = 0.02

_WEIGHT = {Use.CALL: 0.7, Use.IMPORT: 0.6, Use.TYPE: 0.65, Use.ATTRIBUTE: 0.5, Use.OTHER: 0.45, Use.DEFINITION: 0.3}
_PROSE_WEIGHT = 0.35
_CERTAIN = 1.35
_SPOKEN = 0.15
"""How much more a sentence says for each word of the changed code in it."""
_SHOWN_TEXT = 80
_STATE = 0.5
_STATES = 5
_CHANGED_LINES = 200


_WORD = re.compile(r"[^\W\d]\w{3,}")


def follow(run: Analysis, names: Sequence[Name], depth: int) -> None:
    """Note in `run` every place that uses `names`, then those that use the symbols around these, `depth` steps far."""
    frontier = [*names, *_used(run, {name.name for name in names})]
    for step in range(1, depth + 1):
        frontier = [name for name in frontier if name.name not in run.seen]
        run.seen |= {name.name for name in frontier}
        if not frontier:
            return
        if run.late:
            run.problems.append(f"the time limit ended the search at depth {step - 1}")
            return
        frontier = _Step(run, frontier, step).take()


def _used(run: Analysis, names: Set[str]) -> list[Name]:
    """Note what the changed lines use and other files define; the state of their class or module are names to follow."""
    state: dict[str, Definition] = {}
    for path, first, last in run.changed:
        lines = run.standing.texts(path, range(first, min(last, first + _CHANGED_LINES) + 1))
        run.words |= {word for text in lines for word in _WORD.findall(text)} - names
        for used in run.resolver.used_in(path, first, min(last, first + _CHANGED_LINES)):
            if used.path != path:
                run.evidence.add(used.path, AffectedLine(used.line, Tie.USED, used.qualified, strength=1.0))
            elif used.kind in {"field", "variable"} and "." in used.qualified and used.name not in names:
                state.setdefault(used.name, used)
    found = []
    for name, used in [*state.items()][:_STATES]:
        meant = run.resolver.target_at(used.path, used.line, used.column)
        if meant is not None and not meant.is_local and is_distinctive(name):
            found.append(Name(name, _STATE, frozenset(), frozenset({(used.path, used.line)}), meant, is_state=True))
    return found


@dataclass(slots=True)
class _Step:
    """One step away from what was followed before: the uses of `names`, and the names of the symbols they are in."""

    run: Analysis
    names: Sequence[Name]
    step: int
    onward: dict[str, float] = field(default_factory=dict)
    _by_name: dict[str, Name] = field(init=False)
    _pattern: re.Pattern[bytes] = field(init=False)

    def __post_init__(self) -> None:
        """Compile what finds the names."""
        self._by_name = {name.name: name for name in self.names}
        self._pattern = occurrences(tuple(self._by_name))

    def take(self) -> list[Name]:
        """Note every use; return the names of the symbols these uses are in, strongest first."""
        word = all(re.fullmatch(r"\w+", name) for name in self._by_name)
        found = ripgrep.search(self.run.project, Query(tuple(self._by_name), regex=False, word=word))
        self.run.problems += found.problems
        files = sorted(found.files, key=lambda file: (RELEVANCE[role(file.path)], file.path))
        held = [{decode(one) for one in set(self._pattern.findall(file.printed))} for file in files]
        spread = _Spread.of(self.run.cache, self._by_name, held)
        parsed = 0
        for file, names in zip(files, held, strict=True):
            known = [self._by_name[name] for name in names if name in self._by_name]
            if max((spread.weight(name) for name in known), default=0.0) * _FADING ** (self.step - 1) < _LEAST:
                continue
            if self.run.late:
                self.run.problems.append(f"the time limit ended the search at depth {self.step}")
                break
            parsed += 1
            self._note(file, spread, parse=parsed <= _MOST_FILES)
        best = sorted(self.onward, key=lambda name: (-self.onward[name], name))[:_FRONTIER]
        return [Name(name, self.onward[name], frozenset()) for name in best]

    def _note(self, file: FileMatches, spread: "_Spread", *, parse: bool) -> None:
        rows = self._rows(file, parse=parse)
        words = {word for row in rows for word in re.findall(r"\w+", row.text)} | set(re.findall(r"\w+", file.path))
        for row in rows:
            name = self._by_name.get(row.symbol)
            if name is None or (file.path, row.start_line) in name.own:
                continue
            binding = self._binding(name, file.path, row) if parse else Binding.POSSIBLE
            if binding is Binding.OTHER or (row.kind is Use.DEFINITION and self.step > 1):
                continue
            base = spread.weight(name, certain=binding is Binding.CERTAIN) * by_hand(file.path)
            base *= _FADING ** (self.step - 1)
            if binding is not Binding.CERTAIN and name.homes and not (name.homes & words or self._at_home(file, name)):
                base *= _OUTSIDE_HOME
            self._add(file.path, row, name, base, certain=binding is Binding.CERTAIN)

    def _rows(self, file: FileMatches, *, parse: bool) -> Sequence[ReferenceRow]:
        """Uses by the syntax tree, also in comments and strings; of documents, and where there are too many, by the line."""
        asked = NameQuery(self._pattern, include_comments=True)
        if parse:
            return classify(self.run.standing, file, asked) or ()
        first = next(iter(self.run.standing.matches(file, self._pattern).lines()), None)
        name = self._pattern.search(first.text) if first else None
        if first is None or name is None:
            return ()
        return [ReferenceRow(file.path, first.line, first.line, decode(first.text), decode(name[0]), Use.OTHER, "")]

    def _binding(self, name: Name, path: str, row: ReferenceRow) -> Binding:
        if name.meant is None or row.kind in PROSE or self.run.late:
            return Binding.POSSIBLE
        found = set(self.run.resolver.bindings(name.meant, path, row.start_line, self._pattern))
        if Binding.CERTAIN in found:
            return Binding.CERTAIN
        if row.kind is Use.DEFINITION:
            overrides = self.run.resolver.overrides(name.meant, path, row.start_line)
            return Binding.CERTAIN if overrides else Binding.POSSIBLE
        return Binding.OTHER if found == {Binding.OTHER} else Binding.POSSIBLE

    def _add(self, path: str, row: ReferenceRow, name: Name, base: float, *, certain: bool) -> None:
        if row.kind in PROSE or role(path) in {Role.DOCUMENTATION, Role.CONFIGURATION}:
            strength = base * _PROSE_WEIGHT * (1 + _SPOKEN * len(self.run.words.intersection(_WORD.findall(row.text))))
            text = row.text.strip()[:_SHOWN_TEXT]
            place = AffectedLine(row.start_line, Tie.MENTION, row.symbol, "", self.step, min(strength, 0.95), text=text)
        else:
            weight = min(base * _WEIGHT[row.kind], 0.95)
            place = AffectedLine(
                row.start_line, _tie(row, name, certain=certain), row.symbol, row.enclosing, self.step, weight, certain
            )
            self._go_on(path, row, base)
        self.run.evidence.add(path, place)

    def _at_home(self, file: FileMatches, name: Name) -> bool:
        """Whether the file speaks of the module or class that defines the name."""
        content = self.run.standing.content(file.path)
        text = "" if content is None or is_binary(content) else decode(content)
        return any(home in text for home in name.homes)

    def _go_on(self, path: str, row: ReferenceRow, base: float) -> None:
        """Follow the symbol around a use: nobody calls a test, and a name that many share leads astray."""
        inner = written(row.enclosing.rpartition(".")[2])
        if (
            row.kind is Use.DEFINITION
            or not is_distinctive(inner)
            or inner in self.run.seen
            or role(path) is not Role.CODE
            or (inner not in self.onward and len(_in_code(self.run.cache, inner)) > _SHARED_BY)
        ):
            return
        self.onward[inner] = max(self.onward.get(inner, 0.0), base)


def _tie(row: ReferenceRow, name: Name, *, certain: bool) -> Tie:
    if row.kind is Use.DEFINITION:
        return Tie.OVERRIDE if certain else Tie.SAME_NAME
    return Tie.STATE if name.is_state else Tie(row.kind.value)


@dataclass(frozen=True, slots=True)
class _Spread:
    """How much a name tells: less, the more definitions share it and the more files hold it."""

    files: Mapping[str, int]
    shared: Mapping[str, int]

    @classmethod
    def of(cls, cache: SymbolCache, names: Mapping[str, Name], held: Iterable[Collection[str]]) -> "_Spread":
        """From the names that each file holds, and the definitions that share each."""
        shared = {name: len({(one.path, one.tag.scope) for one in _in_code(cache, name)}) for name in names}
        return cls(Counter(name for one in held for name in one), shared)

    def weight(self, name: Name, *, certain: bool = False) -> float:
        """Of a plain use of `name`."""
        sharing = _CERTAIN if certain else max(1 / (1 + math.log2(max(self.shared.get(name.name, 1), 1))), 0.12)
        return float(name.weight * sharing * max(1 / (1 + self.files.get(name.name, 0) / 60), 0.15))


def _in_code(cache: SymbolCache, name: str) -> Sequence[StoredSymbol]:
    return [symbol for symbol in cache.store.named(name) if symbol.tag.kind not in STYLE_KINDS | {DECLARATION}]
