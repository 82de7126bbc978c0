"""Blanks what a grammar stumbles over before it parses: of the same length, so that lines and offsets stay those of the file.

Each pattern takes time in proportion to the text, whatever the text: it stops where the next match could begin, or soon.
"""

import re

_TYPE_BEHIND_A_MACRO = re.compile(
    # `class SHOP_EXPORT Price : public Base {` reads like a function Price that returns a class SHOP_EXPORT.
    rb"\b(?:class|struct|union)[ \t]+((?:[A-Z][A-Z0-9_]+(?:\([^()\n]*\))?\s+)+)"
    rb"(?=[A-Za-z_]\w*(?:::\w+)*(?:<[^;{}()]{0,300}>)?\s*(?:final\s*)?(?:\{|:(?!:)[^;{}()]{0,1000}\{))"
)
_CONFIGURED = re.compile(
    # `cfg_unix! { … }` stands around whole items; to the grammar they are loose tokens.
    rb"^(cfg_\w+![ \t]*\{)[ \t]*$(?:\n(?!\}|cfg_).*)*\n(\})",
    re.MULTILINE,
)
_STRING_OF_ARITHMETIC = re.compile(
    # `eval "((` begins a string; the grammar takes what follows for arithmetic.
    rb'[ \t=]"(\(\()'
)

_CLASS_ON_ONE_LINE = re.compile(
    # `class A { companion object { val X = 1 } }`: the grammar misses the end of the statement before the brace.
    rb"""(?<=[\w)\]"'}])( )(?=\}[ \t;})]{0,60}\r?$)""",
    re.MULTILINE,
)

_PATTERNS = {
    "cpp": (_TYPE_BEHIND_A_MACRO, b" "),
    "cuda": (_TYPE_BEHIND_A_MACRO, b" "),
    "rust": (_CONFIGURED, b" "),
    "kotlin": (_CLASS_ON_ONE_LINE, b";"),
    "bash": (_STRING_OF_ARITHMETIC, b"_"),
}
_NOT_BLANK = re.compile(rb"[^\n]")


def masked(text: bytes, language: str) -> bytes:
    """The text for the parser; the groups of the language's pattern are blanked, line feeds apart."""
    if language not in _PATTERNS:
        return text
    pattern, blank = _PATTERNS[language]
    parts, at = [], 0
    for match in pattern.finditer(text):
        for start, end in match.regs[1:]:
            parts += [text[at:start], _NOT_BLANK.sub(blank, text[start:end])]
            at = end
    return b"".join([*parts, text[at:]]) if parts else text
