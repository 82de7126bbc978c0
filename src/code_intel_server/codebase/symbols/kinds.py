"""One vocabulary for the kinds of symbols, whichever engine found them."""

from functools import lru_cache

DECLARATION = "declaration"
"""What says only that something is defined elsewhere: `int f(void);`."""

_PLAIN = {
    "func": "function",
    "subroutine": "function",
    "procedure": "function",
    "generator": "function",
    "singletonmethod": "method",
    "singleton method": "method",
    "getter": "method",
    "setter": "method",
    "enumerator": "member",
    "enumconstant": "member",
    "enumconstants": "member",
    "typedef": "type",
    "accessor": "property",
    "typealias": "type",
    "implementation": "impl",
    "protocol": "interface",
    "annotation": "interface",
    "define": "constant",
    "const": "constant",
    "var": "variable",
    "package": "module",
    "talias": "type",
    "methodspec": "method",
    "anonmember": "field",
    "prototype": DECLARATION,
    "externvar": DECLARATION,
    "enumname": "enum",
}
_ALIAS_IS = {"Ruby": "method"}
_MEMBER_IS = {"Python": "method", "Java": "field"}

CALLABLE = frozenset({"function", "method", "constructor", "macro"})
TYPES = frozenset({"class", "struct", "interface", "trait", "enum", "union", "type", "object", "impl"})
STYLE_KINDS = frozenset({"selector", "id"})
"""What a style sheet declares: names that pages bear, and that code of the same name has nothing to do with."""

_GROUPS = {
    "function": CALLABLE | {DECLARATION},
    "method": frozenset({"method", "constructor"}),
    "class": TYPES - {"impl"},
    "type": TYPES,
}


@lru_cache(maxsize=1024)
def normal_kind(kind: str, language: str) -> str:
    """The common word for a ctags `kind` of `language`."""
    if kind == "member":
        return _MEMBER_IS.get(language, "field")
    if kind == "alias":
        return _ALIAS_IS.get(language, "type")
    return _PLAIN.get(kind.lower(), kind.lower())


def wanted_kinds(kind: str) -> frozenset[str]:
    """The kinds that somebody means who asks for `kind`: who says function also means methods, who says class also structs."""
    lowered = kind.strip().lower()
    return _GROUPS.get(_PLAIN.get(lowered, lowered), frozenset({_PLAIN.get(lowered, lowered)}))
