"""Glob patterns over project paths: `*`, `?`, `[a-z]`, `{a,b}` within a name, `**` across folders.

A pattern without '/' matches the file name at any depth, as in `.gitignore`; one with '/' matches the whole path from
the root, and a trailing '/' (or a folder's bare path) everything below it. No pattern takes longer than its length
times the path's: an automaton follows every way at once, where a regular expression would try one after the other.
"""

import re
import time
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TypeVar

Item = TypeVar("Item")

MATCH_SECONDS = 15.0
"""How long paths are compared with patterns; what was not reached is reported."""

_CLASS = re.compile(r"\[[!^]?+(\]?+[^\]]*)\]")
_RANGE = re.compile(r"(.)-(.)", re.DOTALL)
_STAR = "[^/]*"
_ANY_FOLDERS, _ANYTHING = r"(?:.*/)?", ".*"
_WILD = {_STAR, _ANY_FOLDERS, _ANYTHING}
_OPEN, _OR, _CLOSE = "(?:", "|", ")"
_DEEPEST = 20
"""Braces within braces; what is deeper stands for itself."""
_PLACES = 100_000
"""What an automaton remembers, in places of its pattern; beyond, it begins to learn anew."""


@lru_cache(maxsize=32)
def matcher(pattern: str) -> Callable[[str], bool]:
    """Tell whether a path (relative, '/'-separated) is meant by `pattern`."""
    anchored = "/" in pattern.rstrip("/")
    body = pattern.strip("/") if pattern.startswith("/") else pattern.rstrip("/")
    before = [] if anchored or pattern.startswith("/") else [_ANY_FOLDERS]
    behind = [_OPEN, "/", _ANYTHING, _OR, _CLOSE] if pattern.endswith("/") else []
    return _Automaton([*before, *_parts(body), *behind]).accepts


def meant(
    found: Sequence[Item],
    patterns: Sequence[str],
    path: Callable[[Item], str],
    *,
    clock: Callable[[], float] = time.monotonic,
    seconds: float = MATCH_SECONDS,
) -> tuple[list[Item], str]:
    """Those whose `path` one of the patterns means, and what to report of those that were not reached in time, '' for none."""
    means = [matcher(pattern) for pattern in patterns]
    deadline = clock() + seconds
    kept: list[Item] = []
    for place, one in enumerate(found):
        if clock() > deadline:  # at each: a long pattern may take seconds for one long path
            return kept, f"{len(found) - place} files were not held against the pattern within {seconds:g} s"
        name = path(one)
        if any(fits(name) for fits in means):
            kept.append(one)
    return kept, ""


def has_magic(pattern: str) -> bool:
    """Whether `pattern` holds any glob character."""
    return any(character in pattern for character in "*?[{")


def fault(pattern: str) -> str:
    """What keeps ripgrep from reading a pattern, so that it would list nothing at all; '' where nothing does."""
    open_braces = position = 0
    while position < len(pattern):
        character = pattern[position]
        if character == "[":
            found = _CLASS.match(pattern, position)
            if found is None:
                return "a [ without its ]"
            if any(low > high for low, high in _RANGE.findall(found[1])):
                return f"{found[0]} runs backwards"
            position = found.end()
            continue
        open_braces += {"{": 1, "}": -1}.get(character, 0)
        if open_braces < 0:
            return "a } without its {"
        position += 2 if character == "\\" else 1
    if position > len(pattern):
        return "nothing follows the last \\"
    return "a { without its }" if open_braces else ""


def literal(pattern: str, but: str = "") -> str:
    """`pattern` with the glob characters standing for themselves, those in `but` excepted."""
    return re.sub(r"[*?\[\]{},\\]", lambda found: found[0] if found[0] in but else f"\\{found[0]}", pattern)


class _State(dict[str, "_State"]):
    """The places that some way through a pattern has come to, and the states that follow it by character, as far as known."""

    __slots__ = ("places",)

    def __init__(self, places: frozenset[int]) -> None:
        super().__init__()
        self.places = places


class _Automaton:
    """Follows all ways through a pattern at once, and learns which state one character leads to."""

    def __init__(self, parts: list[str]) -> None:
        self._parts = _folders_spelled_out(parts)
        self._ways = _ways_on(self._parts)
        self._consumes = [_consumer(part) for part in self._parts]
        self._nowhere = _State(frozenset())
        self._start = _State(self._closed([0]))
        self._states: dict[frozenset[int], _State] = {}
        self._learnt = 0

    def accepts(self, path: str) -> bool:
        """Whether some way through the pattern ends where the path does."""
        state = self._start
        for character in path:
            following = state.get(character)
            if following is None:
                following = self._learn(state, character)
            if following is self._nowhere:
                return False
            state = following
        return len(self._parts) in state.places

    def _learn(self, state: _State, character: str) -> _State:
        found = self._after(state.places, character)
        if self._learnt > _PLACES:
            self._start = _State(self._start.places)
            self._states, self._learnt = {}, 0
        following = self._states.get(found) if found else self._nowhere
        if following is None:
            following = self._states[found] = _State(found)
            self._learnt += len(found)
        self._learnt += 1
        state[character] = following
        return following

    def _after(self, at: frozenset[int], character: str) -> frozenset[int]:
        led: list[int] = []
        for place in at:
            consumes = self._consumes[place] if place < len(self._parts) else None
            if consumes is not None and consumes(character):
                led.append(place if self._parts[place] in _WILD else place + 1)
        return self._closed(led)

    def _closed(self, places: list[int]) -> frozenset[int]:
        """These places and all that are reached from them without a character."""
        seen, waiting = set(places), list(places)
        while waiting:
            for place in self._ways[waiting.pop()]:
                if place not in seen:
                    seen.add(place)
                    waiting.append(place)
        return frozenset(seen)


def _folders_spelled_out(parts: Iterable[str]) -> list[str]:
    spelled: list[str] = []
    for part in parts:
        spelled += [_OPEN, _ANYTHING, "/", _OR, _CLOSE] if part == _ANY_FOLDERS else [part]
    return spelled


def _ways_on(parts: list[str]) -> list[list[int]]:
    """For every place, and the end, the places reached from it without a character."""
    ways: list[list[int]] = [[place + 1] if part in {*_WILD, _OPEN, _CLOSE} else [] for place, part in enumerate(parts)]
    opened: list[int] = []
    ends: list[list[int]] = []
    for place, part in enumerate(parts):
        if part == _OPEN:
            opened.append(place)
            ends.append([])
        elif part == _OR:
            ways[opened[-1]].append(place + 1)
            ends[-1].append(place)
        elif part == _CLOSE:
            opened.pop()
            for end in ends.pop():
                ways[end].append(place)
    return [*ways, []]


@lru_cache(maxsize=1024)
def _consumer(part: str) -> Callable[[str], bool] | None:
    if part in {_OPEN, _OR, _CLOSE}:
        return None
    one = re.compile({_STAR: "[^/]", _ANYTHING: "."}.get(part, part), re.DOTALL).fullmatch
    return lambda character: one(character) is not None


def _parts(pattern: str) -> list[str]:
    parts: list[str] = []
    depth = position = 0
    while position < len(pattern):
        pieces, position, depth = _next(pattern, position, depth)
        parts += pieces
    return [*parts, *[_CLOSE] * depth]


def _next(pattern: str, position: int, depth: int) -> tuple[list[str], int, int]:
    """The regular expressions of the element at `position`, the position behind it, and the depth of open braces."""
    character = pattern[position]
    if pattern.startswith("**/", position) and (position == 0 or pattern[position - 1] == "/"):
        return [_ANY_FOLDERS], position + 3, depth
    if pattern.startswith("**", position):
        return [_ANYTHING], position + 2, depth
    if character == "[" and (end := pattern.find("]", position + 2)) != -1:
        one = _character_class(pattern[position + 1 : end])
        return ([one] if one else [re.escape(each) for each in pattern[position : end + 1]]), end + 1, depth
    if character == "{" and depth < _DEEPEST and pattern.find("}", position) >= 0:
        return [_OPEN], position + 1, depth + 1
    if character == "," and depth:
        return [_OR], position + 1, depth
    if character == "}" and depth:
        return [_CLOSE], position + 1, depth - 1
    if character == "\\" and position + 1 < len(pattern):
        return [re.escape(pattern[position + 1])], position + 2, depth
    return [{"*": _STAR, "?": "[^/]"}.get(character) or re.escape(character)], position + 1, depth


def _character_class(inner: str) -> str | None:
    """One character of these; None where they are no set (`[z-a]`), so that they stand for themselves."""
    negated = inner[:1] in {"!", "^"}
    members = re.sub(r"([\\\[\]&~|^])", r"\\\1", inner[negated:])
    one = f"(?!/)[{'^' if negated else ''}{members}]"
    try:
        re.compile(one)
    except re.error:
        return None
    return one
