"""What every lookup answers: rows, totals, and what the answer is worth (SPEC 2, Answers and Warranty)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Content = TypeVar("Content")
Found_co = TypeVar("Found_co", covariant=True)
"""Answers are only read: one of symbols is one of objects too."""

EXACT_TOTAL_LIMIT = 10_000
"""Totals are exact up to here; beyond it an answer says `total_at_least`."""


class Row:
    """What a lookup finds. Answers hold its short form: a line of text, or an object without what is plain anyway (SPEC 2)."""

    __slots__ = ()

    def as_row(self) -> object:
        """The short form, as JSON data."""
        raise NotImplementedError


class InFile(Row):
    """A place in a file: answers group such rows by path, and by whatever else `heading` says of several of them."""

    __slots__ = ()
    path: str

    @property
    def heading(self) -> Mapping[str, object]:
        """What a row shares with others of its file, besides the path."""
        return {}


def lines_of(start: int, end: int) -> str:
    """`12`, or `12-15` where it is more than one line."""
    return str(start) if end <= start else f"{start}-{end}"


def labelled(text: str, kind: str, scope: str) -> str:
    """A line of code with what it is and the symbol it is in: `pay(order)  [call in Basket.checkout]`."""
    return f"{text}  [{kind} in {scope}]" if scope else f"{text}  [{kind}]"


@dataclass(frozen=True, slots=True)
class Skipped:
    """How many files of the project a lookup passes over by policy, and when that was last counted."""

    ignored: int = 0
    binary: int = 0
    too_large: int = 0
    counted: bool = False


@dataclass(frozen=True, slots=True)
class LookupAnswer(Generic[Found_co]):
    """One page of rows, most relevant first, and its warranty.

    `total` counts all rows there are; with `total_at_least` there are more. `complete` is False where something that
    may hold further rows was not looked at, and `incomplete_because` then says what, one sentence each. `pending` is the
    number of files whose symbols are not yet (or no longer) in the cache, `other` that of rows which certainly mean another symbol.
    """

    results: tuple[Found_co, ...]
    total: int
    engine: str
    total_at_least: bool = False
    truncated: bool = False
    next_offset: int | None = None
    complete: bool = True
    incomplete_because: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    skipped: Skipped = field(default_factory=Skipped)
    counts: tuple[tuple[str, int], ...] = ()
    pending: int = 0
    other: int = 0


@dataclass(frozen=True, slots=True)
class Page:
    """Which rows of an answer are wanted: `limit` of them from `offset` (0-based)."""

    limit: int = 50
    offset: int = 0

    @property
    def range(self) -> range:
        """The numbers (0-based) of the rows on this page."""
        start = max(self.offset, 0)
        return range(start, min(start + max(self.limit, 1), EXACT_TOTAL_LIMIT))

    def cut(self, rows: Sequence[Content]) -> tuple[Content, ...]:
        """The rows of this page."""
        return tuple(rows[self.range.start : self.range.stop])

    def next_offset(self, available: int) -> int | None:
        """Where the next page starts, None where this one is the last of `available` rows."""
        end = max(self.offset, 0) + max(self.limit, 1)
        return end if end < available else None


FIRST_PAGE = Page()


def answer(
    results: Sequence[Content],
    page: Page,
    found: int,
    *,
    engine: str,
    incomplete_because: Iterable[str] = (),
    notes: Iterable[str] = (),
    skipped: Skipped | None = None,
    counts: tuple[tuple[str, int], ...] = (),
    pending: int = 0,
    more: bool = False,
    other: int = 0,
) -> LookupAnswer[Content]:
    """The answer whose page holds `results` out of `found` rows; `more` says that there are further ones nobody collected."""
    reasons = tuple(incomplete_because)
    at_least = more or found > EXACT_TOTAL_LIMIT
    total = min(found, EXACT_TOTAL_LIMIT)
    following = page.next_offset(total)
    return LookupAnswer(
        results=tuple(results),
        total=total,
        engine=engine,
        total_at_least=at_least,
        truncated=following is not None or at_least,
        next_offset=following,
        complete=not reasons,
        incomplete_because=reasons,
        notes=tuple(notes),
        skipped=skipped or Skipped(),
        counts=counts,
        pending=pending,
        other=other,
    )
