"""Finds the id of a JSON-RPC request in a line that no parser takes (lone surrogates, too deep, too long a number)."""

import json
import re

# A string without end is one token too, up to the end of the line: each of its quotes would be tried as a start otherwise.
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*(?:"|\\?\Z)|[{}\[\]]', re.DOTALL)
_VALUE = re.compile(r'\s*:\s*("(?:[^"\\]|\\.){0,200}"|-?\d{1,18})\s*[,}]', re.DOTALL)


def request_id(line: str) -> int | str | None:
    """The `id` of the outermost object, where that has a `method` too (a notification has no id, an answer no method)."""
    depth = 0
    found: int | str | None = None
    method = False
    for token in _TOKEN.finditer(line):
        text = token[0]
        if text in "{[":
            depth += 1
        elif text in "}]":
            depth -= 1
        elif depth == 1 and text == '"method"':
            method = True
        elif depth == 1 and text == '"id"' and (value := _VALUE.match(line, token.end())):
            found = _read(value[1])
    return found if method else None


def _read(value: str) -> int | str | None:
    """A number or a string; None for what is nearly one (007, an unknown escape) and for text that no answer can carry."""
    try:
        found: int | str = json.loads(value)
        str(found).encode("utf-8")
    except ValueError:
        return None
    return found
