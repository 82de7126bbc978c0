"""Text of unknown origin made safe to show: what would steer a terminal or hide from a reader becomes visible."""

import re

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and newline, DEL, C1
    "\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # invisible, bidirectional, separators
    "\ud800-\udfff\U000e0000-\U000e007f]"  # lone surrogates, tag characters
)
_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | {chr(0xFE00 + at) for at in range(16)}
"""Letters, symbols and marks by their category that no font shows."""
_LONG = 100
_PLAIN = b"\t\n" + bytes(range(0x20, 0x7F))


def printable(text: str) -> str:
    """`text` with control, bidirectional and invisible characters and lone surrogates written as escapes (SPEC 2)."""
    # Python's own notion leaves out all that the pattern finds, and a line break; nearly every long text is plain ASCII,
    # and bytes are looked through ten times sooner than the pattern does it.
    if text.isprintable():
        return text
    if len(text) > _LONG and text.isascii() and not text.encode().translate(None, _PLAIN):
        return text
    return _HIDDEN.sub(lambda match: _escape(ord(match[0])), text)


def blank(text: str) -> bool:
    """Whether a reader would see nothing of `text`: white space, control and format characters, and fillers."""
    if text.isascii():
        return not text.strip()
    import unicodedata  # not at the top: the hook, which has no time, loads this module

    return all(sign in _FILLERS or unicodedata.category(sign)[0] in "CZ" for sign in text)


def _escape(code: int) -> str:
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
