"""Blanks what a grammar stumbles over before it parses, or puts it otherwise: of the same length, so that lines and offsets stay those of the file.

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

_VARIANCE = re.compile(
    # `interface Box<in A, out B>`: the grammar knows no such modifiers.
    rb"[<,]\s*(?://[^\n]{0,200}\n\s*|/\*[^\n]{0,200}?\*/\s*)?((?:in[ \t]+)?(?:out|in))[ \t]+(?=[A-Za-z_$])"
)
_ESCAPED_TICK = re.compile(
    # In a type the grammar takes the tick of "\\`" for the template's end.
    rb"(\\`)"
)
_ONLY_TYPES = re.compile(rb"^export[ \t]+(type)[ \t]*\*", re.MULTILINE)
_CALL_SIGNATURE = re.compile(
    # `<A>(a: A): B` or `(a: A): B` on a line of its own: the grammar takes it for more of the line above.
    rb"\n[ \t]*([ \t])(?=<(?:[A-Za-z_$]|\r?\n)|\((?:[^()]|\([^()]*\)){0,1000}\):)"
)
_GOES_ON = frozenset({b"extends", b"as", b"is", b"keyof", b"typeof", b"return", b"async", b"implements", b"satisfies"})
_LONGEST_COMMENT = 8000
_SPACE = b" \t\r\n"
_LAST_OF_A_TYPE = re.compile(rb"[\w$>)\]}\"'`]")
_LAST_WORD = re.compile(rb"[\w$]{1,40}\Z")
_MENDED = frozenset({"typescript", "tsx"})


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


def mended(text: bytes, language: str) -> bytes:
    """The text with what makes a grammar err in it put otherwise, of the same length; it may have done no harm, so only for what errs."""
    if language not in _MENDED:
        return text
    changed = bytearray(text)
    for pattern in (_VARIANCE, _ONLY_TYPES, _ESCAPED_TICK):
        for match in pattern.finditer(text):
            start, end = match.span(1)
            changed[start:end] = b" " * (end - start)
    for match in _CALL_SIGNATURE.finditer(text):
        if _ends_a_type(text, match.start()):
            changed[match.start(1)] = ord(";")
    return bytes(changed)


def _ends_a_type(text: bytes, end: int) -> bool:
    """Whether what stands before `end`, comments apart, may be the end of a type."""
    while True:
        while end and text[end - 1] in _SPACE:
            end -= 1
        begin = text.rfind(b"\n", max(end - _LONGEST_COMMENT, 0), end) + 1
        if text.endswith(b"*/", 0, end):
            end = max(text.rfind(b"/*", max(end - _LONGEST_COMMENT, 0), end), 0)
        elif text[begin:end].lstrip().startswith(b"//"):
            end = begin
        else:
            break
    if not _LAST_OF_A_TYPE.match(text, end - 1) or text.endswith(b"=>", 0, end):
        return False
    word = _LAST_WORD.search(text[max(end - 40, 0) : end])
    return word is None or word[0] not in _GOES_ON
