"""What history saw change together (SPEC 8): the oftener, the narrower and the later the commits, the likelier again."""

import math
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

_BROAD_COMMIT = 200
_FADING = 300
"""Commits after which one counts a third."""
_OFTEN_CHANGED = 60
"""Files that change often are told whatever changed with them."""
_ORDINARY_COMMIT = 10


@dataclass(frozen=True, slots=True)
class Together:
    """How a file changed with the targets' files: `times` of their `changes`; `share` and `recent` 0 to 1, `often` from 0 on."""

    times: int
    changes: int
    share: float
    recent: float
    often: float

    @property
    def why(self) -> str:
        """That in words."""
        return f"changed together in {self.times} of {self.changes} commits" if self.times else "changes often"


def changed_together(homes: Collection[str], commits: Iterable[tuple[str, ...]]) -> dict[str, Together]:
    """The files that changed with `homes`, and those that change often; `commits` newest first."""
    wanted = set(homes)
    times: Counter[str] = Counter()
    narrow, late, often = dict[str, float](), dict[str, float](), dict[str, float]()
    changes, lately = 0, 0.0
    for number, paths in enumerate(commits):
        if len(paths) > _BROAD_COMMIT:
            continue
        fading = math.exp(-number / _FADING)
        touches = not wanted.isdisjoint(paths)
        changes, lately = changes + touches, lately + touches * fading
        weight = 1 / math.sqrt(max(len(paths) - 1, 1))
        for path in paths:
            often[path] = often.get(path, 0.0) + fading * min(1, _ORDINARY_COMMIT / len(paths))
            if touches:
                times[path] += 1
                narrow[path] = narrow.get(path, 0.0) + weight
                late[path] = late.get(path, 0.0) + weight * fading
    busy = sorted((path for path in often if often[path] >= 1), key=lambda path: -often[path])
    told = {*times, *busy[:_OFTEN_CHANGED]} - wanted
    return {
        path: Together(
            times[path],
            changes,
            math.sqrt(narrow.get(path, 0.0) / (changes + 2)),
            math.sqrt(late.get(path, 0.0) / (lately + 0.5)),
            math.log1p(often[path]),
        )
        for path in told
    }
