"""The table of one-line changes in `changes.txt`: some change what a program does or says, some nothing."""

import json
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from pathlib import Path

from code_intel_server.codebase.evidence.changed_syntax import compare
from code_intel_server.codebase.evidence.location import Replaced

HONEST, HOLLOW, MISSED = "honest", "hollow", "missed"
"""`MISSED` is hollow, and known to be taken."""


@dataclass(frozen=True)
class Change:
    """A change of one file."""

    kind: str
    path: str
    what: str
    rows: tuple[str, ...]

    def __str__(self) -> str:
        """`hollow a.py a docstring`."""
        return f"{self.kind} {self.path} {self.what}"

    @property
    def before(self) -> str:
        """The text before."""
        return "".join(f"{row[1:]}\n" for row in self.rows if row[0] != "+")

    @property
    def after(self) -> str:
        """The text after."""
        return "".join(f"{row[1:]}\n" for row in self.rows if row[0] != "-")

    @cached_property
    def hunks(self) -> list[Replaced]:
        """The hunks, as `diff -U0` tells them."""
        matcher = SequenceMatcher(None, self.before.splitlines(), self.after.splitlines(), autojunk=False)
        return [
            ((i1 + (i2 > i1), i2 - i1), (j1 + (j2 > j1), j2 - j1))
            for tag, i1, i2, j1, j2 in matcher.get_opcodes()
            if tag != "equal"
        ]

    @property
    def lines(self) -> tuple[int, int]:
        """The range that an agent names: the new lines, or the line beside what is gone."""
        firsts = [first for _, (first, _) in self.hunks]
        lasts = [first + max(count - 1, 0) for _, (first, count) in self.hunks]
        return max(min(firsts), 1), max(*lasts, 1)


def _read() -> list[Change]:
    parts = Path(__file__).with_name("changes.txt").read_text(encoding="utf-8").split("\n=== ")[1:]
    return [_change(*part.split("\n", 1)) for part in parts]


def _change(head: str, body: str) -> Change:
    kind, path, what = head.split(" | ")
    return Change(kind, path, what, tuple(row or " " for row in body.splitlines()))


CHANGES = _read()


Hunk = tuple[int, int, int, str, int]
"""First line and number of lines before, first line now, the text now, its number of lines."""


@dataclass(frozen=True)
class StrangersChange:
    """A change of somebody who had not read the judge; `known` where its verdict is wrong, and the label doubted by its writer."""

    kind: str
    set: str
    path: str
    language: str
    what: str
    base: str | None
    hunks: tuple[Hunk, ...]
    lines: tuple[tuple[int, int], ...]
    known: bool = False

    def __str__(self) -> str:
        """`hollow inventory.py assert True`."""
        return f"{self.kind} {self.path} {self.what}"

    @property
    def after(self) -> str:
        """The text after."""
        lines = (self.base or "").splitlines(keepends=True)
        for old_first, old_count, _, text, _ in reversed(self.hunks):
            start = old_first - 1 if old_count else old_first
            lines[start : start + old_count] = [text]
        return "".join(lines)

    def is_taken(self) -> bool:
        """Whether it is taken as evidence: an honest one for what it is, an empty override or documentation that was asked for too."""
        hunks = [((first, count), (at, many)) for first, count, at, _, many in self.hunks]
        before = self.base.encode() if self.base is not None else None
        difference = compare(self.path, before, self.after.encode(), hunks)
        verdicts = [difference.judge(start, end) for start, end in self.lines]
        allowed = self.kind == HONEST and any(
            one.overrides or (one.prose and "documentation" in self.what) for one in verdicts
        )
        return allowed or not all(one.empty or one.trivial for one in verdicts)


def _of_strangers() -> list[StrangersChange]:
    found = json.loads(Path(__file__).with_name("strangers.json").read_text(encoding="utf-8"))
    kinds = {"missed": HOLLOW, "refused": HONEST}
    return [
        StrangersChange(
            kinds.get(kind, kind), part, path, language, what,
            None if base is None else found["bases"][base],
            tuple(map(tuple, hunks)), tuple(map(tuple, lines)), kind in kinds,
        )
        for kind, part, path, language, what, base, hunks, lines in found["changes"]
    ]  # fmt: skip


STRANGERS = _of_strangers()
