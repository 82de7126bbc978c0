"""The pieces of a contract file as written: text, lists and mappings, each with its line."""

from collections.abc import Mapping
from dataclasses import dataclass

MAX_CONTRACT_BYTES = 256 * 1024


class Broken(Exception):
    """The file cannot be used at all; `line` is 1-based."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"line {line}: {problem}")
        self.line = line
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Scalar:
    """A piece of text; `plain` where it was written without quotes."""

    text: str
    plain: bool
    line: int


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list."""

    items: tuple["Node", ...]
    line: int


@dataclass(frozen=True, slots=True)
class Table:
    """A mapping from plain names."""

    items: Mapping[str, "Node"]
    line: int


Node = Scalar | Sequence | Table
