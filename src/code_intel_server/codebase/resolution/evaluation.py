"""What a language's rules may ask of an evaluation: what names, expressions and types mean in the project's files."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from code_intel_server.codebase.resolution.model import BoundSymbol, Declaration, Key, Model
from code_intel_server.codebase.resolution.values import Class, Instance, Value, Values

if TYPE_CHECKING:
    from tree_sitter import Node

Answered = TypeVar("Answered")
Environment = Mapping[Key | str, Values]
"""What type parameters stand for; under SELF what a method was called on."""

SELF = "self"
NO_ENVIRONMENT: Environment = {}


class Files(Protocol):
    """The project's files as models."""

    def model(self, path: str) -> Model | None:
        """A file's model; None where there is no such file, or it cannot be parsed."""

    def is_file(self, path: str) -> bool:
        """Whether the project has such a file."""

    def is_folder(self, path: str) -> bool:
        """Whether the project has such a folder."""

    def named(self, name: str) -> tuple[str, ...]:
        """The project's files of that name, whatever their folder, in order."""

    def in_folder(self, path: str) -> tuple[str, ...]:
        """The files directly in a folder, in order."""

    def text(self, path: str) -> str:
        """A file's text, '' where there is none."""

    def holding(self, pattern: str) -> Mapping[str, tuple[str, ...]]:
        """The lines that match a regular expression, by file."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a name means: symbols and modules of the project; `outside` of it; `unknown` where there may be more."""

    symbols: frozenset[BoundSymbol] = frozenset()
    modules: frozenset[str] = frozenset()
    outside: str = ""
    unknown: bool = False

    @classmethod
    def of(cls, every: "Iterable[Meaning]") -> "Meaning":
        """All of these."""
        found = list(every)
        return cls(
            frozenset().union(*(each.symbols for each in found)),
            frozenset().union(*(each.modules for each in found)),
            next((each.outside for each in found if each.outside), ""),
            any(each.unknown for each in found),
        )

    def __bool__(self) -> bool:
        """Whether anything is known."""
        return bool(self.symbols or self.modules or self.outside or self.unknown)


@dataclass(frozen=True, slots=True)
class Call:
    """What a call gives a function: arguments, None for one that depends on the function itself; types; what it is wanted for."""

    model: Model
    given: "Sequence[Node | None]" = ()
    types: tuple[Values, ...] = ()
    wanted: Callable[[], Values] = frozenset
    bound: tuple[tuple[Any, Values], ...] = ()


NO_MEANING = Meaning()
NOT_KNOWN = Meaning(unknown=True)


class Evaluator(Protocol):
    """Answers the questions of one lookup."""

    @property
    def files(self) -> Files:
        """Where it reads."""

    @property
    def late(self) -> bool:
        """Whether the time is over."""

    def once(self, key: object, answer: Callable[[], Answered], meanwhile: Any = frozenset()) -> Answered:
        """What `answer` gives; asked once for a key, and not again while it works on it: then it is `meanwhile`."""

    def name(self, model: Model, node: "Node") -> Meaning:
        """What a bare name means where it is."""

    def lookup(self, model: Model, name: str, node: "Node") -> Meaning | None:
        """What the scopes around a place bind to a name, imports followed; None where none does."""

    def follow(self, symbol: BoundSymbol) -> Meaning:
        """The symbols that a symbol stands for: itself, or what it imports."""

    def in_module(self, path: str, name: str) -> Meaning:
        """What a module of the project holds under a name, imports followed."""

    def members(self, values: Values, name: str) -> Meaning:
        """What the values have under a name."""

    def member(self, value: Value, name: str) -> Meaning:
        """What one value has under a name."""

    def own_member(self, declaration: Declaration, name: str) -> list[BoundSymbol]:
        """The members of that name that a class declares itself."""

    def line_of_descent(self, value: Class | Instance) -> list[Value]:
        """A class and all it is built on, the nearest first; what is not of the project or not known stands among them."""

    def environment(self, value: Value | None) -> Environment:
        """What the type parameters of a value's class stand for."""

    def infer(self, model: Model, node: "Node") -> Values:
        """What an expression stands for."""

    def taken(self, values: Values, name: str) -> Values:
        """What the values give under a name."""

    def values(self, meaning: Meaning) -> Values:
        """What stands for a meaning in an expression."""

    def value_of(self, symbol: BoundSymbol) -> Values:
        """What a symbol stands for in an expression."""

    def value_of_declaration(self, declaration: Declaration, env: Environment = NO_ENVIRONMENT) -> Values:
        """What one declaration says that its symbol stands for."""

    def denoted(self, model: Model, node: "Node", env: Environment = NO_ENVIRONMENT) -> Values:
        """The classes that a type as it is written stands for."""

    def denoted_by(self, meaning: Meaning, env: Environment = NO_ENVIRONMENT) -> Values:
        """What a name stands for as a type."""

    def applied(self, transparent: Collection[str], values: Values, arguments: tuple[Values, ...]) -> Values:
        """Types with these arguments; `transparent` ones behave as what they hold."""

    def type_arguments(self, model: Model, node: "Node", env: Environment = NO_ENVIRONMENT) -> tuple[Values, ...]:
        """What the types in brackets stand for."""

    def call_environment(self, declaration: Declaration, receiver: Instance | Class | None, call: Call) -> Environment:
        """What type parameters stand for in a call: as it says, as its arguments tell, as it is wanted; else any of their bound."""

    def called(self, model: Model, values: Values, given: "list[Node]", call: Call | None = None) -> Values:
        """What calling the values gives."""

    def returns(
        self, declaration: Declaration, receiver: Instance | Class | None = None, call: Call | None = None
    ) -> Values:
        """What a call of a function gives."""
