"""Values of any kind as plain JSON."""

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum

from pydantic import JsonValue

from code_intel_server.common.printable import printable


def plain(value: object) -> JsonValue:
    """A value as JSON: dataclasses by field, enums by value, absent fields left out, text made safe to show."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return printable(value.value if isinstance(value, Enum) else value)
    if isinstance(value, dict):
        return {printable(str(key)): plain(item) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        named = {field.name: getattr(value, field.name) for field in fields(value)}
        return {name: plain(item) for name, item in named.items() if item is not None and item != ()}
    if isinstance(value, Mapping):
        return {printable(str(key)): plain(item) for key, item in value.items()}
    if isinstance(value, Iterable):
        return [plain(item) for item in value]
    return printable(str(value))
