"""Whether two versions of a file say the same to whoever parses it, in whatever notation (SPEC 4, READY impl, evidence)."""

import ast
import json
import tomllib
import warnings
from collections.abc import Callable, Mapping
from xml.etree.ElementTree import ParseError, canonicalize

import yaml

from code_intel_server.codebase.files.languages import Language

_BYTES_AT_MOST = 256 * 1024
_LOADER: type[yaml.SafeLoader] | type[yaml.CSafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _yaml(text: str) -> object:
    """The documents as text without style or order of keys: an alias stays a name, so that none is ever followed."""
    loader = _LOADER(text)
    outer: list[str] = []
    open_nodes: list[tuple[str, list[str]]] = [("", outer)]
    try:
        while loader.check_event():
            event = loader.get_event()
            tag, anchor = getattr(event, "tag", None), getattr(event, "anchor", None)
            if isinstance(event, yaml.ScalarEvent):
                tag = tag or loader.resolve(yaml.ScalarNode, event.value, event.implicit)  # type: ignore[no-untyped-call]
                open_nodes[-1][1].append(repr((anchor, tag, event.value)))
            elif isinstance(event, yaml.CollectionStartEvent):
                open_nodes.append((repr((type(event).__name__, anchor, tag))[:-1], []))
            elif isinstance(event, yaml.CollectionEndEvent):
                start, inside = open_nodes.pop()
                if isinstance(event, yaml.MappingEndEvent):
                    inside = _in_order_of_keys(inside)
                open_nodes[-1][1].append(f"{start}, {inside})")
            else:
                open_nodes[-1][1].append(repr((type(event).__name__, anchor)))
    finally:
        loader.dispose()
    return outer


def _in_order_of_keys(parts: list[str]) -> list[str]:
    """Keys and values in turn, sorted by key; as they are where an anchor or a key twice makes the order count."""
    keys = parts[::2]
    if len(set(keys)) < len(keys) or any(
        not part.startswith(("(None,", "('MappingStartEvent', None,")) for part in keys
    ):
        return parts
    return [part for pair in sorted(zip(keys, parts[1::2], strict=True)) for part in pair]


def _json(text: str) -> object:
    """The document as text in the order of its keys; a key that is given twice keeps what was read last."""
    return json.dumps(json.loads(text), sort_keys=True)


def _toml(text: str) -> object:
    return json.dumps(tomllib.loads(text), sort_keys=True, default=repr)


def _python(text: str) -> object:
    """The program as Python reads it: without comments and however it is written."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.dump(ast.parse(text))


_READERS: Mapping[str, Callable[[str], object]] = {
    "json": _json,
    "yaml": _yaml,
    "toml": _toml,
    "xml": canonicalize,
    "python": _python,
}


def says_the_same(language: Language | None, before: bytes, after: bytes) -> bool:
    """Whether both are data, or a program, of the same meaning; not where one of them cannot be read, or is too large for that."""
    read = _READERS.get(language.name) if language is not None else None
    if read is None or max(len(before), len(after)) > _BYTES_AT_MOST:
        return False
    try:
        return repr(read(before.decode())) == repr(read(after.decode()))
    except (ValueError, SyntaxError, yaml.YAMLError, ParseError, RecursionError):
        return False
