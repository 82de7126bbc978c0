"""What a statement looks like in the place of code not yet written, in each language (SPEC 4, READY impl).

The text of one whole statement is compared with these; which statements there are, the syntax tree says (`effects`).
"""

import re
from functools import cache

from code_intel_server.codebase.files.languages import LANGUAGES_BY_NAME

# "TODO" counts as a message where it opens it in capitals: 'Todo not found' is what a real to-do list says.
_NOT_YET = (
    r"(?:(?i:[^\"'`]*\b(?:not[\s_]+(?:yet[\s_]+)?(?:been[\s_]+)?implemented|unimplemented|implement[\s_]+me|to[\s_]+be[\s_]+implemented"
    r"|notimplemented|implementation[\s_]+(?:goes[\s_]+here|pending|missing))\b[^\"'`]*)|TODO\b[^\"'`]*|(?i:fixme|stub|todo)[.!]*)"
)
_QUOTED = rf"@?[\"'`]{_NOT_YET}[\"'`]"
_EXCEPTION = r"(?:\w*(?:NotImplemented|UnsupportedOperation|Unimplemented)\w*)"
_RAISE = r"(?:raise|throw|fail|die|croak|confess)"

_ANY = (
    # raise NotImplementedError(...), throw new UnsupportedOperationException(), throw std::not_implemented{}
    rf"{_RAISE}\b[\s(]*+(?:new\s++)?\[?[\w.:\\]*{_EXCEPTION}\b.*",
    r"throw\s+[\w:]*not_implemented\b.*",
    # any exception that says so
    rf"{_RAISE}\b[\s(]*+(?:new\s++)?[\w.:\\<>]*+\s*+(?:[({{,]\s*+)?{_QUOTED}.*",
    # functions that end the program, or the call, with the message
    (
        rf"(?:\w+(?:\.|::))*(?:panic!?|fatalError|preconditionFailure|assertionFailure|error|stop|failwith|invalid_arg|abort|die|todo|bail!"
        rf"|@panic|@compileError|revert|notImplemented|NSAssert|fatal|Fatal|Fatalf|Panicf|perror|exit)\s*+(?:[({{]\s*+)?(?:\w+(?:\.|::)\w+\s*\()?"
        rf"(?:\w+,\s*)?{_QUOTED}.*"
    ),
    rf"(?:static_)?assert\w*!?\s*+(?:\(\s*+)?(?:(?:!|false\s*(?:&&|,)|0\s*(?:&&|,)|False\s*,|NO\s*,)\s*+)?{_QUOTED}\s*\)?",
    # an error value that says so
    rf"return\b.*(?:errors\.New|fmt\.Errorf|Error|Err|Errorf)\([^\"'`]*{_QUOTED}.*",
    rf"(?:Err|Left|Error|Promise\.reject)\s*\([^\"'`]*{_QUOTED}.*",
    # only a note to the reader of a log
    (
        r"(?:console\.\w+|print(?:ln|f)?!?|fmt\.Print\w*|System\.out\.print\w*|puts|echo|Console\.Write\w*|log\.\w+|logger\.\w+|Write-(?:Output|Host))"
        r"\s*+(?:\(\s*+)?[\"'`](?i:\W*(?:not (?:yet )?implemented|todo: implement)[^\"'`]*)[\"'`]\s*\)?"
    ),
)

_MEANT = {"<QUOTED>": _QUOTED, "<EXCEPTION>": _EXCEPTION, "<NOT YET>": _NOT_YET}
"""What a language's own patterns (`Language.stubs`) may name."""

_DRESS = re.compile(r"^(?:=>?|->)\s*|[;\s]+$")
LONGEST_STUB = 600
"""Bytes; a longer statement says more than that it is to be written."""

_TODO_LINE = re.compile(r"\W*(?:TODO|FIXME|TBD|XXX)\b.*", re.DOTALL)
_NOTE_LINE = re.compile(
    r"\W*(?i:not (?:yet )?implemented|implement (?:me|this|later)|implementation (?:goes )?here)\W*"
)


@cache
def _compiled(patterns: tuple[str, ...]) -> "re.Pattern[str]":
    """Compiled when a language is first met: all of them at once took 100 ms of the first report of a session."""
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.DOTALL)


def is_stub(statement: str, language: str) -> bool:
    """Whether the text of one statement only says that the code is still to be written."""
    if len(statement) > LONGEST_STUB:
        return False
    text = _DRESS.sub("", statement.strip())
    own = of_language(language)
    return bool(_compiled(_ANY).fullmatch(text) or (own and _compiled(own).fullmatch(text)))


@cache
def of_language(name: str) -> tuple[str, ...]:
    """The patterns of one language alone, written out."""
    known = LANGUAGES_BY_NAME.get(name)
    return tuple(re.sub("<[A-Z ]+>", lambda one: _MEANT[one[0]], pattern) for pattern in known.stubs) if known else ()


def is_todo(line: str) -> bool:
    """Whether a line of prose or comment only says that something is still to be done."""
    return bool(_TODO_LINE.fullmatch(line) or _NOTE_LINE.fullmatch(line))
