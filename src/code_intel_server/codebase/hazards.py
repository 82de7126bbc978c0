"""Texts that a grammar does not survive: it aborts the whole process, or never comes back. They are not given to it.

Each was found with the grammars of tree-sitter-language-pack 0.13: the scanner of YAML writes beyond its buffer from about
256 nested levels on, that of Kotlin aborts from about 1,024 open strings on, and that of Swift takes the square of the
number of `#` in a row and looks at no clock. The rules err on the safe side; nobody writes such a file by hand.
"""

import re

_NESTED_YAML = re.compile(rb"^[ \t?:\-]{240}", re.MULTILINE)
"""Every level takes a column of its own, be it blank or a dash."""

_RAW_SWIFT = re.compile(rb"#{256}")
_OPEN_STRINGS = 1000


def hazardous(text: bytes, language: str) -> bool:
    """Whether the language's grammar must not see this text."""
    if language == "yaml":
        return _NESTED_YAML.search(text) is not None
    if language == "swift":
        return _RAW_SWIFT.search(text) is not None
    return language == "kotlin" and text.count(b"${") > _OPEN_STRINGS
