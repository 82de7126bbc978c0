"""How a symbol's name is taken apart, and how it is written where it is used.

An Objective-C method is called what its selector says (`initWithName:age:`), by Xcode, clangd and ctags alike; where it is
called, arguments stand between the selector's words, so its first word finds it.
"""

import re

_SEPARATOR = re.compile(r"::|(?<!\boperator)->|[.#\\]")
_METHOD = re.compile(r"(?<=\w):(?=\w+$)")
"""Lua's `table:method`; a colon is part of the name itself elsewhere (`s:DoIt` of Vim, `log:info` of a shell)."""
_SELECTOR = re.compile(r"(\w+):(?:\w*:)*")
_OPERATOR = re.compile(r"operator\W+")
_SPACED_OPERATOR = re.compile(r"\boperator\s+(?=[^\w\s])")
_CALLED = re.compile(r"(?<!\boperator)\(\)$")
_STYLE = re.compile(r"([.#])-?[A-Za-z_][\w-]*")
_MARKED = re.compile(r"([$@%]?)([A-Za-z_][\w-]*)")
_MESSAGE = re.compile(r"[-+]?\[(\w+)(?:\(\w*\))? +([\w:]+)\]")
"""How debuggers write a method: -[Class(Category) selector:]."""


def symbol_parts(symbol: str) -> list[str]:
    """A symbol as it was asked for, the name last and what it is in before it; empty where there is no name."""
    bare = _CALLED.sub("", _SPACED_OPERATOR.sub("operator", symbol.strip())).removeprefix("crate::")
    message = _MESSAGE.fullmatch(bare)
    if message or _SELECTOR.fullmatch(bare):
        return list(message.groups()) if message else [bare]
    return [part for part in _SEPARATOR.split(bare) if part]


def readings(symbol: str) -> list[list[str]]:
    """What `symbol_parts` gives, and behind it what the name is where its colon comes before a method."""
    whole = symbol_parts(symbol)
    method = _METHOD.split(whole[-1]) if whole else []
    return [whole, [*whole[:-1], *method]] if len(method) > 1 and not _SELECTOR.fullmatch(whole[-1]) else [whole]


def style_spellings(name: str) -> tuple[str, ...]:
    """The other ways in which a style sheet's name may be kept: `$x` of SCSS, `@x` of Less and `%x` are asked for as `x`, and the other way round."""
    found = _MARKED.fullmatch(name)
    if found is None:
        return ()
    return (found[2],) if found[1] else tuple(mark + name for mark in "$@%")


def written(name: str) -> str:
    """What is in the text where `name` is used: the first word of a selector, any other name itself."""
    selector = _SELECTOR.fullmatch(name)
    return selector[1] if selector else name


def definition_text(name: str) -> str:
    """A text that every file holds which defines `name`: an operator may be written with a space before it."""
    return "operator" if _OPERATOR.fullmatch(name) else written(name)


def operator_sign(name: str) -> str:
    """`==` of `operator==`, which may be written with blanks before it; '' for any other name."""
    return name.removeprefix("operator") if _OPERATOR.fullmatch(name) else ""


def expression(name: str) -> str:
    """A regex, for Python and ripgrep, of the ways in which `written` names are on one line."""
    sign = operator_sign(name)
    return rf"operator[ \t\f\v]*{_escaped(sign)}" if sign else _escaped(name)


def broken(name: str) -> str:
    """A regex of an operator's name over two or more lines; '' for any other name."""
    sign = operator_sign(name)
    return rf"\boperator[ \t\f\v\r]*\n\s*{_escaped(sign)}" if sign else ""


def _escaped(text: str) -> str:
    return re.sub(r"[\\.+*?()|\[\]{}^$]", r"\\\g<0>", text)


def style_kind(symbol: str) -> str:
    """What `.name` and `#name` are to a style sheet, as kinds of symbols; '' for anything else."""
    found = _STYLE.fullmatch(symbol.strip())
    return "" if found is None else "selector" if found[1] == "." else "id"
