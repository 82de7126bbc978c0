"""Where to begin with a report: each of its parts asked in its own way, and the answers fused by file (SPEC 2).

The title with what is named, and the prose, are asked by words and meaning, what the report names is looked up, frames of tracebacks are
matched with the project's files whatever machine they come from. Each source orders files; a file's worth is the sum of
what its places are worth there. The weights are round numbers (benchmarks/localisation.md says what each part gives).
"""

import re
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from code_intel_server.codebase.answers import Row
from code_intel_server.codebase.issue_report import IssueReport, matching
from code_intel_server.index.retrieval.ranking import Candidate
from code_intel_server.index.storage.store import Store
from code_intel_server.index.vectors.placement import aside

MOST = 8
CHARACTERS = 1_500
"""What the points of an answer may take."""
_CANDIDATES = 60
_ASKED = 1_500
_COMMON = 8
"""A name that more files define says nothing of the place."""
_LEAST = 0.12
_ALIKE, _ALIKE_AMONG = 0.4, 4
"""What a file must be worth that is nothing but like the report, and among how many of the first it must be."""
_HALVED_AFTER = 5
"""By how many places a rank is worth half."""
_BEHIND = 0.1
"""What is left of a file that is aside."""
_STANDS_ASIDE = frozenset({"test", "vendored", "generated", "example", "doc"})
_TITLE, _PROSE, _EVERYTHING, _FRAME, _PATH, _NAMED, _IN_CODE = 1.0, 1.0, 0.5, 1.0, 1.0, 0.5, 0.3

_LIKE = "like the"

AskIndex = Callable[[str, int], Sequence[Candidate]]
"""Called with a question and a limit: the best chunks."""


@dataclass(frozen=True, slots=True)
class StartingPoint(Row):
    """A place to begin at; `symbol` is '' where it is none."""

    path: str
    start_line: int
    end_line: int
    symbol: str
    why: str

    def as_row(self) -> dict[str, object]:
        """All that there is."""
        return {name: value for name in self.__slots__ if (value := getattr(self, name))}


class CodeRange(NamedTuple):
    """Lines of a file, and the symbol they are; '' where they are none."""

    path: str
    start: int
    end: int
    symbol: str


ScoredRange = tuple[float, CodeRange, str]
"""What a source says: how much, of which place, why."""


@dataclass(slots=True)
class _File:
    """What was found of a file: how much it is worth, and its places with what each gave."""

    worth: float = 0.0
    places: dict[CodeRange, float] = field(default_factory=lambda: defaultdict(float))
    why: dict[str, tuple[float, CodeRange]] = field(default_factory=dict)

    @property
    def known(self) -> list[str]:
        """What is known of the file: all but likeness."""
        return [why for why in self.why if not why.startswith(_LIKE)]

    def add(self, worth: float, place: CodeRange, why: str) -> None:
        """Take in one more reason."""
        self.worth += worth
        self.places[place] += worth
        if why not in self.why or self.why[why][0] < worth:
            self.why[why] = (worth, place)


def starting_points(report: IssueReport, store: Store, ask: AskIndex, *, most: int = MOST) -> list[StartingPoint]:
    """The best places to begin at, at most one a file."""
    found = [*_by_asking(report, ask)]
    with store.reading() as connection:
        found += _by_lookup(report, connection)
    return fused(found, most)


def fused(found: Iterable[ScoredRange], most: int = MOST, least: float = _LEAST) -> list[StartingPoint]:
    """The files with the most worth in all, each with its best place and why; what is aside is behind.

    `least` is what a file must be worth compared with the best.
    """
    files: dict[str, _File] = defaultdict(_File)
    for worth, place, why in found:
        files[place.path].add(worth, place, why)
    for path, file in files.items():
        if is_aside(path):
            file.worth *= _BEHIND
    ranked = sorted(files.items(), key=lambda one: (-one[1].worth, one[0]))[:most]
    best = ranked[0][1].worth if ranked else 0.0
    points: list[StartingPoint] = []
    for _, file in ranked:
        enough = least if file.known else max(least, _ALIKE)
        if file.worth >= best * enough and (file.known or len(points) < _ALIKE_AMONG):
            points.append(_point(file))
    return points


def is_aside(path: str) -> bool:
    """Whether a file is a test, vendored, generated, an example or a document."""
    return not _STANDS_ASIDE.isdisjoint(aside(path, frozenset())[1].split(", "))


def _point(file: _File) -> StartingPoint:
    place = max(file.places, key=lambda one: (file.places[one], -one.start))
    reasons = sorted(file.known or file.why, key=lambda why: -file.why[why][0])
    said = [_said(why, file.why[why][1], place) for why in reasons[: 2 if file.known else 1]]
    return StartingPoint(*place, "; ".join(said))


def _said(why: str, of: CodeRange, place: CodeRange) -> str:
    """A reason, with its line where it is one of other lines than those that are shown."""
    elsewhere = of.end < place.start or place.end < of.start
    return f"{why} in line {of.start}" if elsewhere and of.symbol else why


def _by_asking(report: IssueReport, ask: AskIndex) -> Iterator[ScoredRange]:
    """What words and meaning say."""
    functions = dict.fromkeys(frame.function for frame in report.frames if frame.function)
    everything = "\n".join((report.title, report.prose, " ".join((*report.names, *functions, *report.code_names))))
    asked = (
        (" ".join((report.title, *report.names)), _TITLE, f"{_LIKE} title"),
        (f"{report.title}\n{report.prose}", _PROSE, f"{_LIKE} text"),
        (everything, _EVERYTHING, f"{_LIKE} text"),
    )
    for text, weight, why in asked:
        if text.strip():
            yield from _by_meaning(ask(text[:_ASKED], _CANDIDATES), weight, why)


def _by_lookup(report: IssueReport, connection: sqlite3.Connection) -> Iterator[ScoredRange]:
    """What is reported by the frames, paths and names of a report."""
    known = _known_files(connection) if report.frames or report.paths else {}
    yield from _by_frames(connection, report, known)
    for path in report.paths:
        if found := matching(path, known.get(path.rpartition("/")[2], ())):
            yield _PATH, CodeRange(found, 1, 1, ""), "path named"
    yield from _by_names(connection, report.names, _NAMED)
    yield from _by_names(connection, report.code_names, _IN_CODE)


def _by_meaning(found: Sequence[Candidate], weight: float, why: str) -> Iterator[ScoredRange]:
    """The files in order, each once, as those that are aside take no rank."""
    rank = 0
    seen: set[str] = set()
    for one in found:
        chunk = one.row.chunk
        if chunk.path in seen:
            continue
        seen.add(chunk.path)
        worth = weight * (_HALVED_AFTER + 1) / (_HALVED_AFTER + 1 + rank)
        rank += not is_aside(chunk.path)
        yield worth, CodeRange(chunk.path, chunk.start_line, chunk.end_line, chunk.qualified), why


def _known_files(connection: sqlite3.Connection) -> dict[str, list[str]]:
    """The project's files by their name."""
    known: dict[str, list[str]] = defaultdict(list)
    for (path,) in connection.execute("SELECT path FROM named_files"):
        known[path.rpartition("/")[2]].append(path)
    return known


def _by_frames(
    connection: sqlite3.Connection, report: IssueReport, known: dict[str, list[str]]
) -> Iterator[ScoredRange]:
    """The files of a traceback that are the project's: where it ended first."""
    seen: set[str] = set()
    for frame in report.frames:
        path = matching(frame.path, known.get(frame.path.rpartition("/")[2], ()))
        if not path or path in seen or is_aside(path):
            continue
        seen.add(path)
        place = next(_chunks(connection, _OF_FUNCTION, (path, frame.function)), None) if frame.function else None
        place = place or next(_chunks(connection, _AT_LINE, (path, frame.line, frame.line)), None)
        yield _FRAME / len(seen), place or CodeRange(path, 1, 1, ""), "traceback"


def _by_names(connection: sqlite3.Connection, names: Iterable[str], weight: float) -> Iterator[ScoredRange]:
    """The definitions of what is named, where few files have one; each file once."""
    seen: set[str] = set()
    for name in names:
        *scope, last = re.split(r"\.|::|->|#", name)
        found = [*_defined(connection, last)]
        if scope:
            found = [one for one in found if _is_in(one, scope[-1])] or found
        files = {one.path for one in found if not is_aside(one.path)}
        if not 0 < len(files) <= _COMMON:
            continue
        for one in found:
            if one.path in files and one.path not in seen:
                seen.add(one.path)
                yield weight / len(files), one, f"defines {last}"


def _is_in(place: CodeRange, scope: str) -> bool:
    """Whether a definition is in a class or a file of that name."""
    return scope in place.symbol.split(".")[:-1] or place.path.rpartition("/")[2].partition(".")[0] == scope


def _defined(connection: sqlite3.Connection, name: str) -> Iterator[CodeRange]:
    """Where a name is defined in this very spelling: chunks that are about it, else such as also define it."""
    found = connection.execute(_DEFINED, (name,)).fetchall()
    own = [row for row in found if row[-1]]
    for path, start, end, symbol, scope, _ in own or found:
        yield CodeRange(path, start, end, ".".join(filter(None, (scope, symbol))))


def _chunks(connection: sqlite3.Connection, query: str, values: Sequence[object]) -> Iterator[CodeRange]:
    for path, start, end, symbol, scope in connection.execute(query, values):
        yield CodeRange(path, start, end, ".".join(filter(None, (scope, symbol))))


_COLUMNS = "path, start_line, end_line, symbol, scope"
_DEFINED = (
    f"SELECT {_COLUMNS}, own FROM definitions WHERE name = ?1 COLLATE NOCASE AND name = ?1 COLLATE BINARY "
    "ORDER BY path, start_line LIMIT 200"
)
_OF_FUNCTION = f"SELECT {_COLUMNS} FROM definitions WHERE path = ? AND name = ? COLLATE NOCASE ORDER BY own DESC, start_line LIMIT 1"
_AT_LINE = (
    f"SELECT {_COLUMNS} FROM chunks WHERE path = ? AND start_line <= ? AND end_line >= ? "
    "ORDER BY start_line DESC LIMIT 1"
)
