"""Glob patterns over project paths: `*`, `?`, `[a-z]`, `{a,b}` within a name, `**` across folders.

A pattern without '/' matches the file name at any depth, as in `.gitignore`; one with '/' matches the whole path from
the root, and a trailing '/' (or a folder's bare path) everything below it.
"""

import re
from functools import lru_cache

_STAR = "[^/]*"
_ANY_FOLDERS, _ANYTHING = r"(?:.*/)?", ".*"
_NOT_FIXED = {_STAR, _ANY_FOLDERS, _ANYTHING, "/", "(?:", "|", ")"}
"""Elements of no fixed length, and those where the name or the alternative ends."""
_DEEPEST = 20
"""Braces within braces; what is deeper stands for itself."""


@lru_cache(maxsize=256)
def compiled(pattern: str) -> re.Pattern[str]:
    """The regular expression that fully matches the paths `pattern` means."""
    anchored = "/" in pattern.rstrip("/")
    body = pattern.strip("/") if pattern.startswith("/") else pattern.rstrip("/")
    prefix = "" if anchored or pattern.startswith("/") else r"(?:.*/)?"
    return re.compile(
        f"{prefix}{_translate(body)}(?:/.*)?" if pattern.endswith("/") else prefix + _translate(body), re.DOTALL
    )


def matches(path: str, pattern: str) -> bool:
    """Whether `path` (relative, '/'-separated) is meant by `pattern`."""
    return compiled(pattern).fullmatch(path) is not None


def has_magic(pattern: str) -> bool:
    """Whether `pattern` holds any glob character."""
    return any(character in pattern for character in "*?[{")


def _translate(pattern: str) -> str:
    parts: list[str] = []
    depth = position = 0
    while position < len(pattern):
        piece, position, depth = _next(pattern, position, depth)
        parts.append(piece)
    return "".join(_without_retries(parts)) + ")" * depth


def _without_retries(parts: list[str]) -> list[str]:
    """What stands between two stars, or between two `**/`, is taken where it first occurs: the second makes up for any other place."""
    names = _at_the_first(parts, _STAR, f"{_STAR}?", _NOT_FIXED)
    return _at_the_first(names, _ANY_FOLDERS, r"(?:.*?/)??", _NOT_FIXED - {_STAR, "/"})


def _at_the_first(parts: list[str], wild: str, nearest: str, ends: set[str]) -> list[str]:
    found: list[str] = []
    place = 0
    while place < len(parts):
        end = place + 1
        while parts[place] == wild and end < len(parts) and parts[end] not in ends:
            end += 1
        if parts[place] == wild and end < len(parts) and parts[end] == wild:
            found.append(f"(?>{nearest}{''.join(parts[place + 1 : end])})")
        else:
            found += parts[place:end]
        place = end
    return found


def _next(pattern: str, position: int, depth: int) -> tuple[str, int, int]:
    """The regular expression of the element at `position`, the position behind it, and the depth of open braces."""
    character = pattern[position]
    if pattern.startswith("**/", position) and (position == 0 or pattern[position - 1] == "/"):
        return _ANY_FOLDERS, position + 3, depth
    if pattern.startswith("**", position):
        return _ANYTHING, position + 2, depth
    if character == "[" and (end := pattern.find("]", position + 2)) != -1:
        return _character_class(pattern[position + 1 : end]), end + 1, depth
    if character == "{" and depth < _DEEPEST and pattern.find("}", position) >= 0:
        return "(?:", position + 1, depth + 1
    if character == "," and depth:
        return "|", position + 1, depth
    if character == "}" and depth:
        return ")", position + 1, depth - 1
    if character == "\\" and position + 1 < len(pattern):
        return re.escape(pattern[position + 1]), position + 2, depth
    return {"*": _STAR, "?": "[^/]"}.get(character) or re.escape(character), position + 1, depth


def _character_class(inner: str) -> str:
    negated = inner[:1] in {"!", "^"}
    members = re.sub(r"([\\\[\]&~|^])", r"\\\1", inner[negated:])
    try:
        re.compile(f"[{members}]")
    except re.error:
        return re.escape(f"[{inner}]")
    return f"(?!/)[{'^' if negated else ''}{members}]"
