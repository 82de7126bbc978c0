"""The ledger of an impact analysis: what ties each file, and how likely that makes it to change too (SPEC 8)."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from code_intel_server.codebase.files.project import valid_text
from code_intel_server.codebase.files.roles import RELEVANCE, Role, role
from code_intel_server.codebase.impact.history import Together
from code_intel_server.codebase.impact.values import (
    MOST_MUST_VERIFY,
    MOST_PLACES,
    AffectedLine,
    ImpactRow,
    Tie,
    entry_id,
)

_MUST_CHANCE = 0.25
"""What is as likely as this to change too must be verified, and so must the likeliest of what certainly means the target:"""
_MOST_BOUND = 4

# A logistic regression over commits of 10 repositories: `python benchmarks/impact_recall.py --fit` makes it anew. Ties that
# moved nothing (types, overrides, state, what is farther away) are left out.
WEIGHTS: Mapping[str, float] = {
    "one": -4.97,
    "share": 2.5,
    "recent": 4.05,
    "often": 0.68,
    "ever": -0.22,
    "fresh": 0.52,
    "similarity": 2.65,
    Tie.CALL: 0.72,
    Tie.ATTRIBUTE: 0.56,
    Tie.OTHER: 1.1,
    Tie.USED: 0.51,
    Tie.MARKUP: 0.39,
    Tie.NAMES_FILE: 1.42,
    Tie.TEST_NAME: 1.75,
    Tie.MENTION: 1.4,
    "is_code": -0.91,
    "is_tests": -0.55,
    "is_markup": -0.71,
    "is_documentation": -0.23,
}


@dataclass(slots=True)
class ImpactLedger:
    """Places by file, the strongest of a line, and what history says of the file."""

    places: dict[str, dict[int | Tie, AffectedLine]] = field(default_factory=dict)
    together: dict[str, Together] = field(default_factory=dict)
    similarity: dict[str, float] = field(default_factory=dict)
    """How similar files are to the changed code in their rare words."""
    homes: frozenset[str] = frozenset()
    """The files of the targets."""

    def add(self, path: str, place: AffectedLine) -> None:
        """Note a place, unless a stronger one is on its line, or ties the file as a whole in the same way."""
        places, key = self.places.setdefault(path, {}), place.line or place.tie
        if key not in places or places[key].strength < place.strength:
            places[key] = place

    def keep(self, paths: Collection[str]) -> None:
        """Forget all other files."""
        self.places = {path: lines for path, lines in self.places.items() if path in paths}
        self.together = {path: found for path, found in self.together.items() if path in paths}

    @property
    def paths(self) -> set[str]:
        """The files that anything ties."""
        return {*self.places, *self.together}

    def features(self, path: str) -> dict[str, float]:
        """What is known of a file, as numbers: what `WEIGHTS` weigh."""
        found = {"one": 1.0, f"is_{_group(path)}": 1.0, "similarity": self.similarity.get(path, 0.0)}
        for place in self.places.get(path, {}).values():
            if place.depth == 1:
                found[place.tie.value] = max(found.get(place.tie.value, 0.0), place.strength)
        if (together := self.together.get(path)) is not None:
            found |= together.features
        return found

    def chance(self, path: str) -> float:
        """How likely a file is to change too."""
        return 1 / (1 + math.exp(-sum(WEIGHTS.get(name, 0.0) * value for name, value in self.features(path).items())))

    def rows(self) -> list[ImpactRow]:
        """A row for every file: the targets' own, those that must be verified, and the others, each the likeliest first."""
        every = sorted(map(self._row, self.paths), key=lambda row: (-row.chance, RELEVANCE[role(row.path)], row.path))
        own = [row for row in every if row.path in self.homes]
        others = [row for row in every if row.path not in self.homes]
        bound = [row for row in others if any(place.breaks for place in row.places)][:_MOST_BOUND]
        must = [row for row in others if row.chance >= _MUST_CHANCE or row in bound][:MOST_MUST_VERIFY]
        marked = [replace(row, must_verify=entry_id(row.path, row.places[0])) for row in sorted(must, key=_by_witness)]
        return [*own, *marked, *(row for row in others if row not in must)]

    def _row(self, path: str) -> ImpactRow:
        places = sorted(
            self.places.get(path, {}).values(), key=lambda one: (-one.certain, -one.strength, one.depth, one.line)
        )
        together = self.together.get(path)
        # History is a witness of its own: it is reported besides the places, never in their stead.
        said = (AffectedLine(0, Tie.TOGETHER, together.why),) if together and (together.times or not places) else ()
        chosen = (*places[: MOST_PLACES - len(said)], *said) or tuple(places[:1])
        more = len(places) - sum(place.tie is not Tie.TOGETHER for place in chosen)
        return ImpactRow(valid_text(path), _group(path), self.chance(path), chosen, more)


def _by_witness(row: ImpactRow) -> tuple[bool, bool]:
    """What is certainly bound first, then what changed together, then what is only spoken of."""
    return not row.places[0].certain, all(place.tie is not Tie.TOGETHER for place in row.places)


def _group(path: str) -> Role:
    """Vendored code is code to an impact analysis."""
    found = role(path)
    return Role.CODE if found is Role.VENDORED else found
