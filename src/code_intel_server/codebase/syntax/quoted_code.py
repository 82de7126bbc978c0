"""Whether a name in a string is program all the same: what is interpolated, and what a shell is given to run (SPEC 2).

Most grammars take interpolated code apart, then the leaf around the name is none of text. Where a grammar shows the string
as one piece, the signs around the name tell. A use too many is seen and passed over; one too few is a broken rename.
"""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

_NO_TEXT = re.compile(
    r"(?:.*_)?(?:identifier|name)(?:_dollar_escaped)?|(?:braced_)?variable|varname|constant|function|method|word|(?:autoquoted_)?bareword"
)
"""Leaves that no grammar makes of mere text in a string."""

_WINDOW = 256
"""Bytes before the name that are looked at."""

_WORD = re.compile(rb"\w+")
_BRACES = re.compile(rb"\{[^{}]*\Z")
_SIGN_AND_BRACE = re.compile(rb"[#@]\{[^{}]*\Z")
_FORMAT_NAME = re.compile(rb"(?<!\{)(?:\{\{)*\{\s*\Z")
_FORMAT_WIDTH = re.compile(rb"\{[^{}]*:[^{}]*\Z")
_RUNS_TEXT = re.compile(rb"(?:^|[\s/])(?:trap|eval|alias|(?:ba|da|k|z)?sh\s+(?:-\S+\s+)*-\w*c)\s")


def shows_as_program(leaf: "Node") -> bool:
    """Whether the grammar shows this leaf in a string as program."""
    return _NO_TEXT.fullmatch(leaf.type) is not None


def is_program(language: str, text: bytes, byte: int, around: "Node", string: "Node") -> bool:
    """Whether the name at `byte` is used by a string that the grammar shows as one piece.

    `around` is the innermost macro or command around the string, or the string itself where there is none.
    """
    before = text[max(string.start_byte, byte - _WINDOW) : byte]
    if language == "rust":
        return around is not string and _is_format_argument(before, text, byte)
    if language == "bash":
        return (
            _RUNS_TEXT.search(text[max(around.start_byte, string.start_byte - _WINDOW) : string.start_byte]) is not None
        )
    if language == "fsharp":
        return text[string.start_byte : string.start_byte + 1] == b"$" and _BRACES.search(before) is not None
    return language in {"scss", "less"} and _SIGN_AND_BRACE.search(before) is not None


def _is_format_argument(before: bytes, text: bytes, byte: int) -> bool:
    """Rust's `{name}`, `{name:?}` and `{:width$}`."""
    name = _WORD.match(text, byte)
    behind = text[name.end() : name.end() + 1] if name else b""
    if behind == b"$":
        return _FORMAT_WIDTH.search(before) is not None
    return (behind in {b":", b"}"} or behind.isspace()) and _FORMAT_NAME.search(before) is not None
