"""What an impact analysis answers, and the ledger in which its evidence adds up to a ranking (SPEC 8)."""

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from code_intel_server.codebase.answers import Answer, Row
from code_intel_server.codebase.roles import RELEVANCE, Role, role

MAX_PLACES = 3
_REPEATED = 0.1


class Tie(StrEnum):
    """How a place is tied to what is to be changed."""

    DEFINES = "defines"
    CALL = "call"
    IMPORT = "import"
    ATTRIBUTE = "attribute"
    TYPE = "type"
    OTHER = "other"
    SAME_NAME = "same_name"
    MARKUP = "markup"
    NAMES_FILE = "names_file"
    TEST_NAME = "test_name"
    MENTION = "mention"
    TOGETHER = "changed_together"


DIRECT = frozenset({Tie.DEFINES, Tie.CALL, Tie.IMPORT, Tie.ATTRIBUTE, Tie.TYPE, Tie.OTHER, Tie.MARKUP})
"""Ties that break when what they name changes."""


@dataclass(frozen=True, slots=True)
class Place:
    """A line that may be affected: `symbol` is the target it is tied to, `inside` what it stands in, `depth` the steps away."""

    line: int
    tie: Tie
    symbol: str
    inside: str = ""
    depth: int = 1
    weight: float = 0.5

    def as_row(self) -> str:
        """`12: call of pay  [in Basket.checkout]`."""
        return f"{self.line}: {_reason(self)}{f'  [in {self.inside}]' if self.inside else ''}"


@dataclass(frozen=True, slots=True)
class ImpactRow(Row):
    """A file that a change may touch, with its strongest places; `start_line` is that of the strongest."""

    path: str
    start_line: int
    end_line: int
    group: Role
    must_verify: bool
    score: float
    why: str
    places: tuple[Place, ...]
    more_places: int

    def as_row(self) -> dict[str, object]:
        """Path, group and score, and a line for each place: `12: call of pay  [in Basket.checkout]`."""
        row: dict[str, object] = {"path": self.path, "group": self.group, "must_verify": self.must_verify}
        row |= {"score": round(self.score, 2), "rows": tuple(place.as_row() for place in self.places)}
        return row | ({"more_places": self.more_places} if self.more_places else {})


@dataclass(frozen=True, slots=True)
class Target:
    """What is to be changed: a symbol with where it is defined, or a file (then `symbol` is '')."""

    asked: str
    symbol: str
    path: str
    start_line: int
    end_line: int


@dataclass(frozen=True, slots=True)
class Impact:
    """The whole analysis. `must_verify` and `should_verify` are 'path:line', strongest first; `unresolved` targets name nothing."""

    answer: Answer[ImpactRow]
    targets: tuple[Target, ...]
    must_verify: tuple[str, ...]
    should_verify: tuple[str, ...]
    unresolved: tuple[str, ...]


MUST_WEIGHT = 0.3
"""A direct tie of at least this weight must be verified: its name is neither shared by many definitions nor everywhere."""


@dataclass(slots=True)
class Evidence:
    """Places by file. The strongest of one line counts; ties of different sorts add up, more of the same hardly do."""

    places: dict[str, dict[int, Place]] = field(default_factory=dict)

    def add(self, path: str, place: Place) -> None:
        """Note a place, unless a stronger one stands on its line."""
        lines = self.places.setdefault(path, {})
        if place.line not in lines or lines[place.line].weight < place.weight:
            lines[place.line] = place

    def keep(self, paths: Collection[str]) -> None:
        """Forget the places in all other files."""
        self.places = {path: lines for path, lines in self.places.items() if path in paths}

    def rows(self) -> Iterator[ImpactRow]:
        """One row a file, in no order."""
        for path, lines in self.places.items():
            yield _row(path, sorted(lines.values(), key=lambda place: (-place.weight, place.depth, place.line)))


def _row(path: str, places: list[Place]) -> ImpactRow:
    best = places[0]
    must = [place for place in places if place.tie in DIRECT and place.depth <= 1 and place.weight >= MUST_WEIGHT]
    return ImpactRow(
        path=path,
        start_line=best.line,
        end_line=best.line,
        group=_group(path),
        must_verify=bool(must),
        score=_score(places),
        why=_reason(best),
        places=tuple(places[:MAX_PLACES]),
        more_places=max(len(places) - MAX_PLACES, 0),
    )


def _score(places: list[Place]) -> float:
    """Each sort of tie by its strongest place, a little more where there are many; sorts are independent witnesses."""
    sorts: dict[Tie, list[float]] = {}
    for place in places:
        sorts.setdefault(place.tie, []).append(place.weight)
    strengths = (max(weights) * (1 + _REPEATED * math.log2(len(weights))) for weights in sorts.values())
    return round(1 - math.prod(1 - min(strength, 0.99) for strength in strengths), 4)


def _group(path: str) -> Role:
    """Vendored code is code to an impact analysis; it only ranks last."""
    found = role(path)
    return Role.CODE if found is Role.VENDORED else found


def _reason(place: Place) -> str:
    steps = f", {place.depth} steps away" if place.depth > 1 else ""
    words = {
        Tie.DEFINES: f"defines {place.symbol}",
        Tie.SAME_NAME: f"defines another {place.symbol} (an override?)",
        Tie.MARKUP: f"speaks of {place.symbol}",
        Tie.NAMES_FILE: f"names the file {place.symbol}",
        Tie.TEST_NAME: f"by its name tests {place.symbol}",
        Tie.MENTION: f"mentions {place.symbol}",
        Tie.TOGETHER: f"changed together with {place.symbol}",
        Tie.OTHER: f"uses {place.symbol}",
    }
    return f"{words.get(place.tie) or f'{place.tie.value} of {place.symbol}'}{steps}"


def ranked(rows: Iterator[ImpactRow]) -> list[ImpactRow]:
    """Strongest first."""
    return sorted(rows, key=lambda row: (-row.score, RELEVANCE[role(row.path)], row.path))
