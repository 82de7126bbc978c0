"""How answers look on the wire: plain JSON, safe to show, within 10,000 characters unless more was asked for (SPEC 2)."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum

from pydantic import JsonValue

from code_intel_server.codebase.answers import Answer
from code_intel_server.printable import printable

Fields = dict[str, JsonValue]

DEFAULT_CHARACTERS = 10_000
MAX_BYTES = 256 * 1024
_MAX_TEXT = 64 * 1024
_WIDEST = 4
"""Bytes of a character at most."""


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


def rows(answer: Answer[object], offset: int = 0, budget: int = DEFAULT_CHARACTERS) -> Fields:
    """An answer as every list tool gives it, cut to `budget` characters of JSON with the place to go on from."""
    shaped: list[JsonValue] = []
    used = 400
    for row in answer.results:
        entry = plain(row)
        used += len(json.dumps(entry, ensure_ascii=False)) + 2
        if shaped and used > budget:
            break
        shaped.append(entry)
    cut = len(shaped) < len(answer.results)
    result: Fields = {
        "results": shaped,
        "total": answer.total,
        "truncated": answer.truncated or cut,
        "engine": answer.engine,
        "complete": answer.complete,
    }
    if answer.total_at_least:
        result["total_at_least"] = True
    following = offset + len(shaped) if cut else answer.next_offset
    if following is not None:
        result["next_offset"] = following
    if answer.incomplete_because:
        result["incomplete_because"] = [printable(reason) for reason in answer.incomplete_because]
    if answer.notes:
        result["notes"] = [printable(note) for note in answer.notes]
    if answer.counts:
        result["counts"] = {printable(pattern): count for pattern, count in answer.counts}
    if answer.skipped.counted:
        result["skipped"] = {
            "ignored": answer.skipped.ignored,
            "binary": answer.skipped.binary,
            "too_large": answer.skipped.too_large,
        }
    if answer.pending:
        result["pending"] = answer.pending
    return result


def within_limit(answer: Fields, warning: Callable[[], str]) -> tuple[Fields, str]:
    """An answer of at most 256 KB, and its JSON: rows are dropped from the end, then long texts are cut, and
    `truncation_warning` says so.
    """
    text = as_json(answer)
    if len(text) * _WIDEST <= MAX_BYTES or _bytes(text) <= MAX_BYTES:
        return answer, text
    cut = dict(answer)
    cut |= {"truncated": True, "truncation_warning": warning()}
    results = cut.get("results")
    if isinstance(results, list):
        while results and _size(cut) > MAX_BYTES:
            results = results[: len(results) // 2]
            cut["results"] = results
    if _size(cut) > MAX_BYTES:
        cut = {name: _shortened(value) for name, value in cut.items()}
    return cut, as_json(cut)


def as_json(answer: Fields) -> str:
    """An answer as the text that stands beside its structure."""
    return json.dumps(answer, ensure_ascii=False)


def _shortened(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return value[: _MAX_TEXT // 4]
    if isinstance(value, list):
        return [_shortened(item) for item in value[:50]]
    if isinstance(value, dict):
        return {name: _shortened(item) for name, item in list(value.items())[:50]}
    return value


def _size(answer: Fields) -> int:
    return _bytes(as_json(answer))


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
