"""What history saw change together (SPEC 8): the oftener, the narrower and the later the commits, the likelier again."""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

_BROAD_COMMIT = 200
_FADING = 300
"""Commits after which one counts a third."""
_FRESH = 3
"""Commits after which what was just worked on counts a third."""
_OFTEN_CHANGED = 60
"""Files that change often are told whatever changed with them."""
_ORDINARY_COMMIT = 10


@dataclass(frozen=True, slots=True)
class Together:
    """How a file changed with the targets' files: `times` of their `changes`; `features` are that and its own changes in numbers."""

    times: int
    changes: int
    features: Mapping[str, float]

    @property
    def why(self) -> str:
        """That in words."""
        return f"changed together in {self.times} of {self.changes} commits" if self.times else "changes often"


def changed_together(
    homes: Collection[str], commits: Iterable[tuple[str, ...]], *, tied: Collection[str] = ()
) -> dict[str, Together]:
    """The files that changed with `homes`, those that change often, and those `tied` otherwise; `commits` newest first."""
    wanted = set(homes)
    times, ever = Counter[str](), Counter[str]()
    narrow, late, often = defaultdict[str, float](float), defaultdict[str, float](float), defaultdict[str, float](float)
    fresh = defaultdict[str, float](float)
    changes, lately = 0, 0.0
    for number, paths in enumerate(commits):
        if len(paths) > _BROAD_COMMIT:
            continue
        fading = math.exp(-number / _FADING)
        touches = not wanted.isdisjoint(paths)
        changes, lately = changes + touches, lately + touches * fading
        weight = 1 / math.sqrt(max(len(paths) - 1, 1))
        for path in paths:
            ever[path] += 1
            fresh[path] += math.exp(-number / _FRESH)
            often[path] += fading * min(1, _ORDINARY_COMMIT / len(paths))
            if touches:
                times[path] += 1
                narrow[path] += weight
                late[path] += weight * fading
    busy = sorted((path for path in often if often[path] >= 1), key=lambda path: -often[path])
    told = {*times, *busy[:_OFTEN_CHANGED], *ever.keys() & tied} - wanted
    return {
        path: Together(
            times[path],
            changes,
            {
                "share": math.sqrt(narrow[path] / (changes + 2)),
                "recent": math.sqrt(late[path] / (lately + 0.5)),
                "often": math.log1p(often[path]),
                "ever": math.log1p(ever[path]),
                "fresh": fresh[path],
            },
        )
        for path in told
    }
