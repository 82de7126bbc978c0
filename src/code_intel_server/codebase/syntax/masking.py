"""Blanks what a grammar stumbles over before it parses, or puts it otherwise: of the same length, so that lines and offsets stay those of the file.

Each pattern takes time in proportion to the text, whatever the text: it stops where the next match could begin, or soon.
"""

import re
from typing import NamedTuple

_TYPE_BEHIND_A_MACRO = re.compile(
    # `class SHOP_EXPORT Price : public Base {` reads like a function Price that returns a class SHOP_EXPORT.
    rb"\b(?:class|struct|union)[ \t]+((?:[A-Z][A-Z0-9_]+(?:\([^()\n]*\))?\s+)+)"
    rb"(?=[A-Za-z_]\w*(?:::\w+)*(?:<[^;{}()]{0,300}>)?\s*(?:final\s*)?(?:\{|:(?!:)[^;{}()]{0,1000}\{))"
)
_CONFIGURED = re.compile(
    # `cfg_unix! { … }` is around whole items; to the grammar they are loose tokens.
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

_EXTERN_C = re.compile(
    # The brace that it opens is closed under another condition: all between would be part of the first.
    rb'^([ \t]*#[ \t]*if(?:def|[ \t]++defined)[ \t]*+(?:\([ \t]*+)?__cplusplus\b[^\n]*\n[ \t]*(?:extern[ \t]+"C"[ \t]*(?:\n[ \t]*)?\{|\})[^\n]*\n'
    rb"[ \t]*#[ \t]*endif)",
    re.MULTILINE,
)

_COMMENT_IN_A_MACRO = re.compile(
    # The grammar takes a comment for the end of a macro that goes on in the next line.
    rb"(/\*(?:[^*/\n]|\*(?!/)|/(?!\*)){0,300}\*/)(?=[^\n]{0,300}\\\r?\n)"
)

_Patterns = tuple[tuple[bytes, "re.Pattern[bytes]"], ...]
_C: _Patterns = ((b"__cplusplus", _EXTERN_C), (b"\\", _COMMENT_IN_A_MACRO))
_CPP: _Patterns = ((b"", _TYPE_BEHIND_A_MACRO), (b"\\", _COMMENT_IN_A_MACRO))
_PATTERNS: dict[str, tuple[bytes, _Patterns]] = {
    "c": (b" ", _C),
    "objective-c": (b" ", _C),
    "cpp": (b" ", _CPP),
    "cuda": (b" ", _CPP),
    "rust": (b" ", ((b"cfg_", _CONFIGURED),)),
    "kotlin": (b";", ((b"", _CLASS_ON_ONE_LINE),)),
    "bash": (b"_", ((b"((", _STRING_OF_ARITHMETIC),)),
}
"""What is put in place of what a language's patterns match; each with a text that it does not match without."""

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

_MACRO_BEFORE = re.compile(
    # `LIB_API int f(void)`: two types to the grammar.
    rb"^[ \t]*(?:(?:static|extern|inline|const)[ \t]+)*([A-Z][A-Z0-9_]{2,}(?:[ \t]*\([^()\n]{0,100}\))?)[ \t\r\n]++"
    rb"(?=(?:[A-Za-z_]\w*+[ \t\r\n*]++){1,6}(?:\([ \t]*+)?[A-Za-z_]\w*+\)?[ \t]*+[(;=\[])",
    re.MULTILINE,
)
_MACRO_BEHIND = re.compile(
    # `void f(const char *format, ...) LIB_PRINTF(1, 2);`
    rb"\)[ \t\r\n]{1,40}([A-Z][A-Z0-9_]{2,}(?:[ \t]*\([^()\n]{0,100}\))?)[ \t]*(?=;|\{|\n[ \t]*\{)"
)
_MACRO_ALONE = re.compile(
    # `DIAGNOSTIC_PUSH`, `DEFINE_LIST(a, b)`: statements without an end.
    rb"^([ \t]*[A-Z][A-Z0-9_]{3,}(?:\([^()\n]{0,200}\))?)[ \t]*\r?$",
    re.MULTILINE,
)
_FURTHEST = 2000
_DIRECTIVE = re.compile(rb"[ \t]*#[ \t]*(if(?:n?def)?|el(?:se|if)|endif)\b")
_QUOTED = re.compile(rb"""\x22(?:[^\x22\\]|\\.){0,80}\x22|'(?:[^'\\]|\\.){0,200}'""")


_ENDS_A_STATEMENT = (b";", b"{", b"}", b",", b":", b"\\", b"/", b"")


class _Condition(NamedTuple):
    """Where a condition of the preprocessor begins, how deep in braces, and where its second branch does, if it is not the same line.

    `is_other` in what is another's second branch, or once the own is reached; `is_half` where only the own is.
    """

    line: int
    depth: int
    other: int
    is_other: bool = False
    is_half: bool = False


def masked(text: bytes, language: str) -> bytes:
    """The text for the parser; the groups of the language's patterns are blanked, line feeds apart."""
    if language in _PATTERNS:
        blank, patterns = _PATTERNS[language]
        for needed, pattern in patterns:
            if needed in text:
                text = _blanked(text, pattern, blank)
    return text


def _blanked(text: bytes, pattern: "re.Pattern[bytes]", blank: bytes) -> bytes:
    parts, at = [], 0
    for match in pattern.finditer(text):
        for start, end in match.regs[1:]:
            parts += [text[at:start], _NOT_BLANK.sub(blank, text[start:end])]
            at = end
    return b"".join([*parts, text[at:]]) if parts else text


def mended(text: bytes, language: str) -> bytes:
    """The text with what makes a grammar err in it put otherwise, of the same length; it may have done no harm, so only for what errs."""
    mend = _MENDS.get(language)
    return mend(text) if mend else text


def _script(text: bytes) -> bytes:
    changed = bytearray(text)
    for pattern in (_VARIANCE, _ONLY_TYPES, _ESCAPED_TICK):
        for match in pattern.finditer(text):
            start, end = match.span(1)
            changed[start:end] = b" " * (end - start)
    for match in _CALL_SIGNATURE.finditer(text):
        if _ends_a_type(text, match.start()):
            changed[match.start(1)] = ord(";")
    return bytes(changed)


def _plain_c(text: bytes) -> bytes:
    """C without the macros that are where its grammar has no place for a name, and with one of two branches that share a brace."""
    text = _on_one_path(text)
    changed = bytearray(text)
    for pattern, fits in ((_MACRO_ALONE, _is_alone), (_MACRO_BEHIND, _is_declared), (_MACRO_BEFORE, None)):
        for match in pattern.finditer(text):
            start, end = match.span(1)
            if fits is None or fits(text, start, end):
                changed[start:end] = _NOT_BLANK.sub(b" ", text[start:end])
    return bytes(changed)


def _on_one_path(text: bytes) -> bytes:
    """C without the other branches of conditions whose first one opens or closes a bracket for what follows, or is half a statement."""
    lines = text.split(b"\n")
    around: list[_Condition] = []
    depth = 0
    last = b""
    for number, line in enumerate(lines):
        directive = _DIRECTIVE.match(line)
        if directive is None:
            if not (around and around[-1].is_other):
                depth, last = depth + _braces(line), line.strip() or last
        elif directive[1].startswith(b"if"):
            around.append(_Condition(number, depth, number, is_other=bool(around and around[-1].is_other)))
        elif around and directive[1] == b"endif":
            begun = around.pop()
            is_half = (begun.is_half or not begun.is_other) and depth > 0 and last[-1:] not in _ENDS_A_STATEMENT
            if begun.other > begun.line and (depth != begun.depth or is_half):
                for left in (begun.line, *range(begun.other, number + 1)):
                    lines[left] = _NOT_BLANK.sub(b" ", lines[left])
        elif around and around[-1].other == around[-1].line:
            around[-1] = around[-1]._replace(other=number, is_half=not around[-1].is_other, is_other=True)
    return b"\n".join(lines)


def _braces(line: bytes) -> int:
    """How many more brackets a line opens than it closes, those in quotes apart."""
    code = _QUOTED.sub(b"", line) if b'"' in line or b"'" in line else line
    return len(code.translate(None, b"})")) - len(code.translate(None, b"{("))


def _is_alone(text: bytes, start: int, end: int) -> bool:
    """Whether what is on a line of its own is no part of a list or of a definition that goes on."""
    before = text[max(start - _FURTHEST, 0) : start].rstrip()
    after = text[end : end + _FURTHEST].lstrip()[:1]
    if before.rpartition(b"\n")[2].lstrip().startswith(b"#"):
        return text[start] not in _SPACE and after != b"{"
    return before.endswith((b";", b"}", b"*/")) or (before.endswith(b"{") and after != b"}")


def _is_declared(text: bytes, start: int, _end: int) -> bool:
    """Whether what ends before `start` began at the margin: a statement within a body does not."""
    before = text[max(start - _FURTHEST, 0) : start]
    lines = before.split(b"\n")
    for line in reversed(lines):
        if any(mark in line for mark in b";{}#"):
            return False
        if line[:1].strip():
            return True
    return False


_MENDS = {"typescript": _script, "tsx": _script, "c": _plain_c}


def _ends_a_type(text: bytes, end: int) -> bool:
    """Whether what is before `end`, comments apart, may be the end of a type."""
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
