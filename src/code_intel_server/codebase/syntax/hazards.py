"""Texts that a grammar does not survive: it aborts the whole process, or never comes back. They are not given to it.

Each was found with the grammars of tree-sitter-language-pack 0.13: the scanner of YAML writes beyond its buffer from about
256 nested levels on, that of Kotlin aborts from about 1,024 open strings on, and that of Swift takes the square of the
number of `#` in a row, or of comments open in one another, and looks at no clock. The rules err on the safe side; nobody writes such a file by hand.
"""

import re

_NESTED_YAML = re.compile(rb"[ \t?:\-]{240}")
"""Every level takes a column of its own, be it blank or a dash; what begins a line its scanner decides."""

_RAW_SWIFT = re.compile(rb"#{64}")
_COMMENT_EDGE = re.compile(rb"/\*|\*/")
_OPEN_COMMENTS = 100
_OPEN_STRINGS = 1000


def hazardous(text: bytes, language: str) -> bool:
    """Whether the language's grammar must not see this text."""
    if language == "yaml":
        return _NESTED_YAML.search(text) is not None
    if language == "swift":
        return _RAW_SWIFT.search(text) is not None or _deepest_comment(text) > _OPEN_COMMENTS
    return language == "kotlin" and text.count(b"${") > _OPEN_STRINGS


def _deepest_comment(text: bytes) -> int:
    depth = deepest = 0
    for edge in _COMMENT_EDGE.finditer(text):
        depth = depth + 1 if edge[0] == b"/*" else max(depth - 1, 0)
        deepest = max(deepest, depth)
    return deepest
