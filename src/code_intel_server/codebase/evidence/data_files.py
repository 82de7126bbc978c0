"""Whether two versions of a file say the same to whoever parses it, in whatever notation (SPEC 4, READY impl, evidence)."""

import ast
import json
import tomllib
import warnings
from collections.abc import Callable, Mapping

from code_intel_server.codebase.files.languages import Language

_BYTES_AT_MOST = 256 * 1024


def _python(text: str) -> str:
    """The program as Python reads it: without comments and however it is written."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.dump(ast.parse(text))


_READERS: Mapping[str, Callable[[str], str]] = {
    "json": lambda text: json.dumps(json.loads(text), sort_keys=True),
    "toml": lambda text: json.dumps(tomllib.loads(text), sort_keys=True, default=repr),
    "python": _python,
}


def says_the_same(language: Language | None, before: bytes, after: bytes) -> bool:
    """Whether both are data, or a program, of the same meaning; not where one of them cannot be read, or is too large for that."""
    read = _READERS.get(language.name) if language is not None else None
    if read is None or max(len(before), len(after)) > _BYTES_AT_MOST:
        return False
    try:
        return read(before.decode()) == read(after.decode())
    except (ValueError, SyntaxError, RecursionError):
        return False
