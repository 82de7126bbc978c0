"""What values and comparisons of assertions have in common with others that mean the same (SPEC 4, PRE_COMMIT).

Other quotes, other ends of lines, `1_000` for `1000`, and unittest's methods for the operators of a plain `assert` expect nothing else.
"""

import re
from collections.abc import Sequence

_PLAIN = re.compile(rb"(['\"])([^'\"\\$#{\n]*+)\1")
_WHOLE = re.compile(rb"-?\d[\w]{0,30}+")
_DIGITS = re.compile(rb"-?(?:0[xX][0-9a-fA-F]++|0[bB][01]++|0[oO][0-7]++|\d++)")
_MEANS = {
    b"Equal": (b"assert", b"=="),
    b"AlmostEqual": (b"assert", b"=="),
    b"NotEqual": (b"assert", b"!="),
    b"True": (b"assert",),
    b"False": (b"assert", b"not"),
    b"Is": (b"assert", b"is"),
    b"IsNot": (b"assert", b"is not"),
    b"IsNone": (b"assert", b"is", b"None"),
    b"IsNotNone": (b"assert", b"is not", b"None"),
    b"In": (b"assert", b"in"),
    b"NotIn": (b"assert", b"not in"),
    b"Greater": (b"assert", b">"),
    b"GreaterEqual": (b"assert", b">="),
    b"Less": (b"assert", b"<"),
    b"LessEqual": (b"assert", b"<="),
    b"IsInstance": (b"assert",),
    b"NotIsInstance": (b"assert", b"not"),
    b"Raises": (b"raises",),
    b"RaisesRegex": (b"raises",),
}
_METHODS = {b"assert" + name: means for name, means in _MEANS.items()} | {
    b"assert" + name: _MEANS[b"Equal"]
    for name in (b"Equals", b"ListEqual", b"DictEqual", b"SetEqual", b"TupleEqual", b"SequenceEqual", b"MultiLineEqual")
}


def keys(value: bytes) -> Sequence[bytes]:
    """What is compared of a value: equal for those of one meaning."""
    if means := _METHODS.get(value):
        return means
    if plain := _PLAIN.fullmatch(value):
        return (b'"' + plain[2] + b'"',)
    return (_number(value),) if _WHOLE.fullmatch(value) else (value.replace(b"\r\n", b"\n"),)


def _number(value: bytes) -> bytes:
    """A whole number in plain digits; another only without underscores."""
    bare = value.replace(b"_", b"")
    if not _DIGITS.fullmatch(bare):
        return bare
    try:
        return str(int(bare, 0)).encode()
    except ValueError:
        return bare  # an octal number of another language
