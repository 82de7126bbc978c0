"""Names of the code under test that a test file itself gives another meaning: what is asserted is then the test's own (SPEC 4)."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from code_intel_server.codebase.reached import Reached

_ASSIGNED = r"(?:[ \t]*+:[^=\n(]{0,200}+)?[ \t]*+=(?![=>])"
_DOTTED = r"\w++(?:\.\w++)+"


class _Ways:
    """How a language imports names, gives names a meaning of one's own, and says a name that it only imports again."""

    def __init__(self, imported: str, own: str) -> None:
        self.imported = re.compile(imported, re.MULTILINE)
        self.own = re.compile(own, re.MULTILINE)


_PYTHON = _Ways(
    r"^(?:from[ \t]++[\w.]++[ \t]++)?import[ \t]++(\([^()]{0,2000}+\)|[^\n]{0,500}+)",
    r"^(?:async[ \t]++)?(?:def|class)[ \t]++(\w++)(?:\([^\n]{0,300}?\b(\w++)[ \t]*+=[ \t]*+lambda\b)?"
    rf"|^(\w++){_ASSIGNED}(?=[^\n]*(?<![,(])$)|^({_DOTTED}){_ASSIGNED}",
)
_JAVASCRIPT = _Ways(
    r"^import[ \t]++(\{[^{}]{0,2000}+\}|[^;\n]{0,500}+)|^(?:const|let|var)[ \t]++([^=\n]{0,500}+)=[ \t]*+(?:await[ \t]++)?(?:require|import)\b",
    r"^(?:const|let|var|(?:async[ \t]++)?function\*?|class)[ \t]++(\w++)(?!.{0,200}\b(?:require|import)\b)"
    rf"|^(\w++)[ \t]*+=(?![=>])|^({_DOTTED})[ \t]*+=(?![=>])",
)
_WAYS = {
    ".py": _PYTHON,
    **dict.fromkeys((".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".mts", ".cts"), _JAVASCRIPT),
}
_LASTING = re.compile(
    rf"^({_DOTTED}){_ASSIGNED}(?![ \t]*+(?:[\d\"'\[{{(]|(?:True|False|None)\b))|^setattr\([ \t]*+(\w++(?:\.\w++)*)",
    re.MULTILINE,
)
"""A member of something imported that a module of Python's gives another meaning as it is loaded: all that runs later sees it."""
_WORD = re.compile(r"[A-Za-z_$]\w*+")
_NO_NAMES = frozenset({"as", "from", "import", "type", "typeof", "default"})


def stood_in_for(path: str, before: "Reached", after: "Reached") -> list[str]:
    """What the tests called as the project's before and define themselves now: imported names, and members of imported modules."""
    ways = next((ways for ending, ways in _WAYS.items() if path.endswith(ending)), None)
    if ways is None:
        return []
    imported = _names(ways.imported.findall(before.text))
    fresh = _own(ways, after) - _own(ways, before)
    return sorted(name for name in fresh if name.split(".")[0] in imported and _called(name, before.text, after.text))


def lasting(path: str, after: "Reached") -> set[str]:
    """Members of imported modules that a test file means otherwise from the moment it is loaded, for every other file too."""
    if not path.endswith(".py"):
        return set()
    source = after.source.decode("utf-8", "replace")
    imported = _names(_PYTHON.imported.findall(after.text))
    found = {one or other for one, other in _LASTING.findall(source)}
    return {name for name in found if name.split(".")[0] in imported}


def _names(found: Iterable[str | tuple[str, ...]]) -> set[str]:
    """The names that imports bring in; of `a as b` both, of `a.b` the first."""
    said = (part for one in found for part in ([one] if isinstance(one, str) else one))
    return {word for part in said for word in _WORD.findall(part) if word not in _NO_NAMES}


def _own(ways: _Ways, read: "Reached") -> set[str]:
    """The names of the file's own. Of a function within a test `text` lacks the name, so the whole source is asked."""
    lines = map(str.strip, read.source.decode("utf-8", "replace").split("\n"))
    return {name for groups in ways.own.findall("\n".join(lines)) for name in groups if name}


def _called(name: str, before: str, after: str) -> bool:
    """Whether both versions call it, elsewhere than where it is defined."""
    call = re.compile(rf"(?<![\w.])(?<!def )(?<!class )(?<!function ){re.escape(name)}\(")
    return call.search(before) is not None and call.search(after) is not None
