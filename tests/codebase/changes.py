"""The table of one-line changes in `changes.txt`: some change what a program does or says, some nothing."""

from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from pathlib import Path

from code_intel_server.codebase.reference import Replaced

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
