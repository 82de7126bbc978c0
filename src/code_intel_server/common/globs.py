"""Glob patterns over project paths: `*`, `?`, `[a-z]`, `{a,b}` within a name, `**` across folders.

A pattern without '/' matches the file name at any depth, as in `.gitignore`; one with '/' matches the whole path from
the root, and a trailing '/' (or a folder's bare path) everything below it. Made into a regular expression that goes back
only to where a `**` begins: within a folder, and up to the next `**`, the first place where a piece fits is as good as any.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import islice, product
from typing import TypeVar

Item = TypeVar("Item")

_CLASS = re.compile(r"\[[!^]?+(\]?+[^\]]*)\]")
_RANGE = re.compile(r"(.)-(.)", re.DOTALL)
_STAR, _ANY_FOLDERS, _ANYTHING = "[^/]*?", "(?:[^/]*/)*?", ".*?"
_OPEN, _OR, _CLOSE = "(?:", "|", ")"
_DEEPEST = 20
"""Braces within braces; what is deeper is literal."""
_ALTERNATIVES, _PIECES = 1000, 50_000
"""What braces may make of a pattern; of more only the first count."""


@lru_cache(maxsize=32)
def matcher(pattern: str) -> Callable[[str], bool]:
    """Tell whether a path (relative, '/'-separated) is meant by `pattern`."""
    anchored = "/" in pattern.rstrip("/")
    body = pattern.strip("/") if pattern.startswith("/") else pattern.rstrip("/")
    before = [] if anchored or pattern.startswith("/") else [_ANY_FOLDERS]
    behind = [_OPEN, "/", _ANYTHING, _OR, _CLOSE] if pattern.endswith("/") else []
    ways = _alternatives([*before, *_parts(body), *behind])
    fits = re.compile("|".join(map(_expression, ways)), re.DOTALL).fullmatch
    return lambda path: fits(path) is not None


def meant(found: Iterable[Item], patterns: Sequence[str], path: Callable[[Item], str]) -> list[Item]:
    """Those whose `path` one of the patterns means."""
    means = [matcher(pattern) for pattern in patterns]
    return [one for one in found if any(fits(path(one)) for fits in means)]


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
    if open_braces:
        return "a { without its }"
    parts = _parts(pattern)
    return "too many alternatives in braces" if len(_alternatives(parts)) >= _most(parts) > 1 else ""


def literal(pattern: str, but: str = "") -> str:
    """`pattern` with the glob characters literal, those in `but` excepted."""
    return re.sub(r"[*?\[\]{},\\]", lambda found: found[0] if found[0] in but else f"\\{found[0]}", pattern)


def _alternatives(parts: Sequence[str]) -> list[list[str]]:
    """The parts without their braces, one list for each choice that these leave."""
    most = _most(parts)
    ways: list[list[str]] = [[]]
    around: list[tuple[list[list[str]], list[list[str]]]] = []
    for part in parts:
        if part == _OPEN:
            around.append((ways, []))
            ways = [[]]
        elif part == _OR:
            around[-1][1].extend(ways)
            ways = [[]]
        elif part == _CLOSE:
            before, others = around.pop()
            ways = [[*first, *second] for first, second in islice(product(before, [*others, *ways]), most)]
        else:
            for way in ways:
                way.append(part)
    return ways


def _most(parts: Sequence[str]) -> int:
    return max(min(_ALTERNATIVES, _PIECES // max(len(parts), 1)), 1)


def _expression(parts: Sequence[str]) -> str:
    """The regular expression of a pattern without braces."""
    groups: list[tuple[str, list[str]]] = [
        ("", [""])
    ]  # what crosses folders, and the pieces between the stars behind it
    for part in parts:
        if part in {_ANY_FOLDERS, _ANYTHING}:
            groups.append((part, [""]))
        elif part == _STAR:
            groups[-1][1].append("")
        else:
            groups[-1][1][-1] += part
    *before, (folders, (first, *pieces)) = groups
    # The last piece has to end where the path does: the first place where it fits may be too early.
    end = [f"{_STAR}{pieces.pop()}"] if pieces else []
    start = [f"(?>{deep}{_pieces(one, others)})" for deep, (one, *others) in before]
    return "".join([*start, folders, _pieces(first, pieces), *end])


def _pieces(first: str, others: Sequence[str]) -> str:
    return first + "".join(f"(?>{_STAR}{one})" for one in others)


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
    """One character of these; None where they are no set (`[z-a]`), so that they are literal."""
    negated = inner[:1] in {"!", "^"}
    members = re.sub(r"([\\\[\]&~|^])", r"\\\1", inner[negated:])
    one = f"(?!/)[{'^' if negated else ''}{members}]"
    try:
        re.compile(one)
    except re.error:
        return None
    return one
