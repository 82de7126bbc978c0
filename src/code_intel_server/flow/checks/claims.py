"""`path:line - what is there`, as agents write it, looked up: a wrong place becomes a hint with the right one (SPEC 4).

Never a refusal: the words around a place may mean anything. Judged is only a name that looks like code and is next to the
place, and one that occurs there, or whose definition the place lies in, is right.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import islice

from pydantic import JsonValue

from code_intel_server.codebase.evidence import Reference, find_claims
from code_intel_server.codebase.files.languages import language_of
from code_intel_server.flow.ports import Ports
from code_intel_server.flow.turn import Note

_CLAIMS_AT_MOST = 60
_HINTS_AT_MOST = 5
_NAMES_AT_MOST = 4
_NEAR = 20
"""Lines next to a place that count as the place: what a sentence says of a line may be in the lines around it."""

_NAME = re.compile(
    r"`([A-Za-z_$][\w$.:]*)(?:\(\))?`|(?<![\w$/.])([A-Za-z_$][\w$]*(?:(?:\.|::)[A-Za-z_$][\w$]*)+|[A-Za-z_$][\w$]*(?=\()"
    r"|[A-Za-z]\w*_\w+|[a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*)"
)


_LINKS = re.compile(
    r"[^\w`$]*(?:(?:is|are|at|in|within|inside|of|the|a|here|lies|def|defines?|defined|where|async|class|function|method)\b[^\w`$]*)*"
)
"""What may lie between a place and the name that it is said to be the place of."""


def wrong_places(texts: Iterable[str], ports: Ports) -> tuple[Note, ...]:
    """At most five hints about the first claims of these texts whose place is not what they say."""
    claims = islice((claim for text in texts for claim in find_claims(text)), _CLAIMS_AT_MOST)
    files = _Files(ports)
    hints = (hint for reference, words, follow in claims if (hint := _wrong(reference, words, files, follow=follow)))
    return tuple(islice(hints, _HINTS_AT_MOST))


class _Files:
    """The files of one question, each read once, and what is defined in them."""

    def __init__(self, ports: Ports) -> None:
        self.lines = cache(ports.evidence.lines)
        self.normal = ports.evidence.normal
        self.definitions = ports.relevance.definitions


def texts_of(value: JsonValue) -> Iterator[str]:
    """Every text in a JSON value, keys aside."""
    pending = [value]
    while pending:
        node = pending.pop()
        if isinstance(node, str):
            yield node
        elif isinstance(node, dict):
            pending += reversed(list(node.values()))
        elif isinstance(node, list):
            pending += reversed(node)


def _wrong(reference: Reference, words: str, files: _Files, *, follow: bool) -> Note | None:
    path = files.normal(reference.path)
    lines = files.lines(path) if path else None
    if path is None or lines is None:
        return None
    names = _names(words)
    exists = 1 <= reference.start <= reference.end <= len(lines)
    around = lines[max(reference.start - 1 - _NEAR, 0) : reference.end + _NEAR]
    if exists and (not names or any(_within(name, around) for name in names)):
        return None
    if exists:
        names = _next_to_place(words, names, follow=follow)
    found = _place(Reference(path, reference.start, reference.end), names, lines, files)
    if exists:
        name, place = found
        return Note("hints.symbol_elsewhere", {"claim": reference, "symbol": name, "place": place}) if place else None
    place = f" {found[0]} is at {found[1]}." if found[1] else ""
    return Note("hints.line_missing", {"claim": reference, "path": path, "total": len(lines), "place": place})


def _names(words: str) -> list[str]:
    """The names in a sentence that look like code, those of files aside."""
    found = (match[1] or match[2] for match in _NAME.finditer(words))
    return list(dict.fromkeys(name for name in found if language_of(name) is None))[:_NAMES_AT_MOST]


def _next_to_place(words: str, names: Sequence[str], *, follow: bool) -> list[str]:
    """The name that the place is said to be the place of: the rest of a sentence tells what it does, or is about others."""
    matches = [match for match in _NAME.finditer(words) if (match[1] or match[2]) in names]
    linked = [
        match for match in matches if _LINKS.fullmatch(words[: match.start()] if follow else words[match.end() :])
    ]
    return [match[1] or match[2] for match in linked][:1]


def _within(name: str, lines: Sequence[str]) -> bool:
    return any(_word(name).search(line) for line in lines)


def _word(name: str) -> re.Pattern[str]:
    """The last part of a name as a word: that is what is where it is defined and used."""
    return re.compile(rf"(?<!\w){re.escape(re.split(r'[.:]+', name.rstrip('.:'))[-1])}(?!\w)")


def _place(claimed: Reference, names: Sequence[str], lines: Sequence[str], files: _Files) -> tuple[str, str]:
    """A name and where it is: as defined in the claimed file, else nearest in it, else as defined elsewhere; ('', '') if unknown."""
    elsewhere = ("", "")
    for name, places in files.definitions(names).items():
        standing = [place for place in places if _holds_name(name, place, files)]
        here = [place for place in standing if place.path == claimed.path]
        if any(place.start <= claimed.start <= place.end for place in here):
            return "", ""
        if here:
            return name, f"{here[0].path}:{here[0].start}"
        uses = [number for number, line in enumerate(lines, 1) if _word(name).search(line)]
        if uses:
            return name, f"{claimed.path}:{min(uses, key=lambda number: abs(number - claimed.start))}"
        if standing and not elsewhere[0]:
            elsewhere = name, f"{standing[0].path}:{standing[0].start}"
    return elsewhere


def _holds_name(name: str, place: Reference, files: _Files) -> bool:
    lines = files.lines(place.path)
    return lines is not None and _within(name, lines[place.start - 1 : place.end])
