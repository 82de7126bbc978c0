"""What an impact analysis answers (SPEC 8)."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from code_intel_server.codebase.answers import LookupAnswer, Row
from code_intel_server.codebase.files.roles import Role

MOST_PLACES = 2
"""Lines of a file that its row tells."""
MOST_MUST_VERIFY = 15


class Tie(StrEnum):
    """How a place is tied to what is to be changed."""

    DEFINES = "defines"
    OVERRIDE = "override"
    CALL = "call"
    IMPORT = "import"
    ATTRIBUTE = "attribute"
    TYPE = "type"
    OTHER = "other"
    STATE = "state"
    USED = "used"
    SAME_NAME = "same_name"
    MARKUP = "markup"
    NAMES_FILE = "names_file"
    TEST_NAME = "test_name"
    MENTION = "mention"
    TOGETHER = "changed_together"


_DIRECT = {Tie.OVERRIDE, Tie.CALL, Tie.IMPORT, Tie.ATTRIBUTE, Tie.TYPE, Tie.OTHER, Tie.MARKUP}
_STRONG = 0.4

_WORDS = {
    Tie.DEFINES: "defines {}",
    Tie.OVERRIDE: "overrides {} or is overridden by it",
    Tie.SAME_NAME: "defines another {}",
    Tie.STATE: "uses the same state {}",
    Tie.USED: "defines {}, which the changed code uses",
    Tie.MARKUP: "speaks of {}",
    Tie.NAMES_FILE: "names the file {}",
    Tie.TEST_NAME: "by its name tests {}",
    Tie.MENTION: "mentions {}",
    Tie.OTHER: "uses {}",
    Tie.TOGETHER: "{}",
}


@dataclass(frozen=True, slots=True)
class AffectedLine:
    """A line that may be affected: `symbol` is the target it is tied to, `inside` what it is in, `depth` the steps away.

    `strength` is 0 to 1; `certain` where the text leaves no doubt that the target is meant. Line 0 stands for the file.
    """

    line: int
    tie: Tie
    symbol: str
    inside: str = ""
    depth: int = 1
    strength: float = 0.5
    certain: bool = False
    text: str = ""

    @property
    def breaks(self) -> bool:
        """Whether it means the target itself: certainly, or, where no resolver reads it, by a name of the target's own."""
        return self.depth == 1 and self.tie in _DIRECT and (self.certain or self.strength >= _STRONG)

    @property
    def why(self) -> str:
        """What ties it, in words."""
        words = _WORDS.get(self.tie, f"{self.tie.value} of {{}}").format(self.symbol)
        steps = f", {self.depth} steps away" if self.depth > 1 else ""
        return f"{words}{steps}{f': {self.text}' if self.text else ''}"

    def as_row(self) -> str:
        """`12: call of pay  [certain, in Basket.checkout]`; of a whole file `why` alone, behind its first line."""
        marks = ", ".join([*(["certain"] if self.certain else []), *([f"in {self.inside}"] if self.inside else [])])
        return f"{max(self.line, 1)}: {self.why}{f'  [{marks}]' if marks else ''}"


@dataclass(frozen=True, slots=True)
class ImpactRow(Row):
    """A file that a change may touch, its strongest places first; `chance` (0 to 1) that it has to change too.

    `must_verify` is the id of an entry that must be looked at, '' for what should.
    """

    path: str
    group: Role
    chance: float
    places: tuple[AffectedLine, ...]
    more_places: int = 0
    must_verify: str = ""

    @property
    def start_line(self) -> int:
        """The line of the strongest place."""
        return max(self.places[0].line, 1)

    @property
    def why(self) -> str:
        """What ties the strongest place."""
        return self.places[0].why

    def as_row(self) -> Mapping[str, object]:
        """Path, group, the id of what must be verified, and a line for each place."""
        row: dict[str, object] = {"id": self.must_verify} if self.must_verify else {}
        row |= {"path": self.path, "group": self.group, "rows": tuple(place.as_row() for place in self.places)}
        return row | ({"more_places": self.more_places} if self.more_places else {})


def entry_id(path: str, place: AffectedLine) -> str:
    """The id of a must_verify entry: the same whenever the same is found."""
    said = f"{path}\0{place.tie}\0{place.symbol}\0{place.inside}"
    return hashlib.sha256(said.encode("utf-8", "surrogateescape")).hexdigest()[:6]


@dataclass(frozen=True, slots=True)
class ImpactTarget:
    """What is to be changed: a symbol with where it is defined, or a file (then `symbol` is '')."""

    asked: str
    symbol: str
    path: str
    start_line: int
    end_line: int


@dataclass(frozen=True, slots=True)
class Impact:
    """The whole analysis. `must_verify` are the rows that must be looked at; `unresolved` targets name nothing."""

    answer: LookupAnswer[ImpactRow]
    targets: tuple[ImpactTarget, ...]
    must_verify: tuple[ImpactRow, ...]
    unresolved: tuple[str, ...]
