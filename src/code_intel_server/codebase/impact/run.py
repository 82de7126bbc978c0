"""What the steps of one impact analysis share: what was asked, what was found, and which names say anything (SPEC 8)."""

import re
import time
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from code_intel_server.codebase.files.project import ProjectScope
from code_intel_server.codebase.files.roles import Role, role
from code_intel_server.codebase.impact.ledger import ImpactLedger
from code_intel_server.codebase.impact.values import ImpactTarget
from code_intel_server.codebase.resolution import ResolvedTarget as Meant
from code_intel_server.codebase.resolution import Resolver
from code_intel_server.codebase.symbols.cache import SymbolCache
from code_intel_server.codebase.symbols.freshness import SourceFiles

IMPORTING = re.compile(rb"\b(?:import|from|require|include|use|using|load|source|extends|render\w*|href|src)\b")
"""Words of lines that name another file."""

_COMMON_STEMS = frozenset(
    {"__init__", "index", "mod", "main", "lib", "utils", "util", "types", "base", "core", "common", "helpers", "setup"}
)


@dataclass(frozen=True, slots=True)
class Name:
    """A name whose uses are looked for. `weight` fades with every step; `own` are the places that define it.

    `homes` are files and scopes that tell its own from others of that name; `meant` are the symbols, where a resolver knows them.
    """

    name: str
    weight: float
    homes: frozenset[str]
    own: frozenset[tuple[str, int]] = frozenset()
    meant: Meant | None = None
    is_state: bool = False


@dataclass(slots=True)
class Analysis:
    """One run: what it asks about, what it found so far."""

    project: ProjectScope
    cache: SymbolCache
    deadline: float
    standing: SourceFiles
    resolver: Resolver
    evidence: ImpactLedger = field(default_factory=ImpactLedger)
    targets: list[ImpactTarget] = field(default_factory=list)
    changed: list[tuple[str, int, int]] = field(default_factory=list)
    """What is to be changed: file, first and last line."""
    unresolved: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)
    """What the changed lines are written with."""

    @property
    def late(self) -> bool:
        """Whether the time for this analysis is over."""
        return time.monotonic() > self.deadline

    @property
    def homes(self) -> tuple[str, ...]:
        """The files of the targets."""
        return tuple(dict.fromkeys(target.path for target in self.targets))


def module_word(path: str) -> str:
    """The word by which other files speak of this one: its stem, its folder's name where that says nothing; '' where neither does."""
    pure = PurePosixPath(path)
    word = pure.parent.name if pure.stem in _COMMON_STEMS else pure.name.split(".")[0]
    return word if is_distinctive(word) else ""


def is_distinctive(name: str) -> bool:
    """Whether a name is worth following: not so short or so special that it is everywhere."""
    return len(name) >= 3 and not (name.startswith("__") and name.endswith("__"))


def by_hand(path: str) -> float:
    """What is vendored, built or translated follows the change by itself."""
    return 0.2 if role(path) is Role.VENDORED else 1.0
