"""Whether two versions of a file of data say the same, in whatever notation (SPEC 4, READY impl, evidence)."""

import json
import tomllib
from collections.abc import Callable, Mapping
from xml.etree.ElementTree import ParseError, canonicalize

import yaml

from code_intel_server.codebase.files.languages import Language

_BYTES_AT_MOST = 256 * 1024
_LOADER: type[yaml.SafeLoader] | type[yaml.CSafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _yaml(text: str) -> object:
    """The events of the documents without their style: aliases stay names, so that none is ever followed."""
    loader, found = _LOADER(text), []
    try:
        while loader.check_event():
            event = loader.get_event()
            tag = getattr(event, "tag", None)
            if isinstance(event, yaml.ScalarEvent):
                tag = tag or loader.resolve(yaml.ScalarNode, event.value, event.implicit)  # type: ignore[no-untyped-call]
            found.append((type(event), getattr(event, "anchor", None), tag, getattr(event, "value", None)))
    finally:
        loader.dispose()
    return found


_READERS: Mapping[str, Callable[[str], object]] = {
    "json": json.loads,
    "yaml": _yaml,
    "toml": tomllib.loads,
    "xml": canonicalize,
}


def says_the_same(language: Language | None, before: bytes, after: bytes) -> bool:
    """Whether both are data of the same meaning; not where one of them cannot be read, or is too large for that."""
    read = _READERS.get(language.name) if language is not None else None
    if read is None or max(len(before), len(after)) > _BYTES_AT_MOST:
        return False
    try:
        return repr(read(before.decode())) == repr(read(after.decode()))
    except (ValueError, yaml.YAMLError, ParseError, RecursionError):
        return False
