"""What an expression may stand for, as far as its text tells: sets of these values, `UNKNOWN` among them where it does not."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from code_intel_server.codebase.resolution.model import Declaration

_MOST_WEIGHT = 200
"""How many values one may hold, all that these hold included: `Ext<P, P, P>` of aliases in a row holds three to the power of them."""


class Binding(StrEnum):
    """Whether an occurrence of a name means a symbol: `other` certainly means something else."""

    CERTAIN = "certain"
    POSSIBLE = "possible"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Module:
    """The names at the top of a file, or of a package's folder."""

    path: str


@dataclass(frozen=True, slots=True)
class Class:
    """A class, interface or type itself."""

    declaration: Declaration
    arguments: tuple["Values", ...] = ()
    weight: int = field(init=False, default=1, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Hold no more than can be compared."""
        _hold(self)


@dataclass(frozen=True, slots=True)
class Instance:
    """Something of that class. `above`: seen from within as one of what the class is built on (`super()`)."""

    declaration: Declaration
    arguments: tuple["Values", ...] = ()
    above: bool = False
    weight: int = field(init=False, default=1, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Hold no more than can be compared."""
        _hold(self)


@dataclass(frozen=True, slots=True)
class Function:
    """A function; `receiver` is what it was taken from."""

    declaration: Declaration
    receiver: "Instance | Class | None" = None
    bound: "tuple[tuple[object, Values], ...]" = ()
    """What the type parameters around its type stand for."""
    weight: int = field(init=False, default=1, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Hold no more than can be compared."""
        if self.bound or self.receiver is not None:
            weight = _weight(values for _, values in self.bound) + (self.receiver.weight if self.receiver else 0)
            if weight > 2 * _MOST_WEIGHT:
                object.__setattr__(self, "bound", tuple((key, UNKNOWN) for key, _ in self.bound))
                weight = 2 * _MOST_WEIGHT
            object.__setattr__(self, "weight", weight)


@dataclass(frozen=True, slots=True)
class Outside:
    """What the project does not define: of the standard library, of an absent package, a literal."""

    name: str
    arguments: tuple["Values", ...] = ()
    weight: int = field(init=False, default=1, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Hold no more than can be compared."""
        _hold(self)


@dataclass(frozen=True, slots=True)
class Unknown:
    """The text does not tell."""


Value: TypeAlias = Module | Class | Instance | Function | Outside | Unknown
Values: TypeAlias = frozenset[Value]

UNKNOWN: Values = frozenset({Unknown()})
NO_VALUES: Values = frozenset()


def _weight(every: Iterable[Values]) -> int:
    return 1 + sum(1 if isinstance(value, Module | Unknown) else value.weight for values in every for value in values)


def _hold(value: Class | Instance | Outside) -> None:
    """Note how much a value holds; of what holds too much, nothing of that is known."""
    if value.arguments:
        weight = _weight(value.arguments)
        if weight > _MOST_WEIGHT:
            object.__setattr__(value, "arguments", (UNKNOWN,) * len(value.arguments))
            weight = 1 + len(value.arguments)
        object.__setattr__(value, "weight", weight)


def one(value: Value) -> Values:
    """The set of one value."""
    return frozenset({value})


def union(every: Iterable[Values]) -> Values:
    """All values of these sets."""
    return frozenset().union(*every)


def outside(name: str, *arguments: Values) -> Values:
    """Something that the project does not define, with what it holds."""
    return one(Outside(name, arguments))


def instances(values: Values) -> Values:
    """What objects of these classes are; anything else is left as it is."""
    return frozenset(
        Instance(value.declaration, value.arguments) if isinstance(value, Class) else value for value in values
    )
