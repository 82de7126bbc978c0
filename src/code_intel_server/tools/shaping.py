"""How answers look on the wire: plain JSON, safe to show, within 10,000 characters unless more was asked for (SPEC 2)."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from pydantic import JsonValue

from code_intel_server.codebase.answers import InFile, LookupAnswer, Row
from code_intel_server.common.plain import plain
from code_intel_server.common.printable import printable

Fields = dict[str, JsonValue]

DEFAULT_CHARACTERS = 10_000
MAX_ANSWER_BYTES = 256 * 1024
_SHORTER = (16 * 1024, 4 * 1024, 1024)
"""Characters of a text that are left, step by step, of an answer that is too large whatever rows are dropped."""
_ITEMS = 50
_WIDEST = 4
"""Bytes of a character at most."""
AROUND = 400
"""Characters of an answer that are not its rows."""
_CAN_BE_CUT = 2
_ONE_LINE = re.compile(r"(\d+)(: .*)")
_OF_A_GROUP = len(', "rows": [], ')


def answer_rows(answer: LookupAnswer[object], offset: int = 0, budget: int = DEFAULT_CHARACTERS) -> Fields:
    """An answer as every list tool gives it, cut to `budget` characters of JSON with the place to go on from."""
    found = fitting_rows(answer.results, budget - AROUND)
    cut = found.rows < len(answer.results)
    truncated = answer.truncated or cut or found.narrowed
    result: Fields = {
        "results": found.results,
        "total": answer.total,
        "truncated": truncated,
        "engine": answer.engine,
        "complete": answer.complete and not truncated,
    }
    if answer.total_at_least:
        result["total_at_least"] = True
    following = offset + found.rows if cut else answer.next_offset
    if following is not None:
        result["next_offset"] = following
    return result | _warranty(answer)


class Fitted(NamedTuple):
    """Results that fit, how many rows they hold, and whether the only one had to lose its ends for it."""

    results: list[JsonValue]
    rows: int
    narrowed: bool


def fitting_rows(found: Iterable[object], room: int) -> Fitted:
    """The first rows that fit into `room` characters, those that are places in a file grouped by it (SPEC 2).

    Lines of one file that read the same share a row: `12, 40: text`.
    """
    results: list[JsonValue] = []
    groups: dict[str, list[JsonValue]] = {}
    alike: dict[tuple[str, str], int] = {}
    count = 0
    for row in found:
        entry = plain(row.as_row() if isinstance(row, Row) else row)
        heading = plain({"path": row.path, **row.heading}) if isinstance(row, InFile) else None
        name = answer_text(heading) if isinstance(heading, dict) else ""
        number, text = _line(entry)
        if (same := alike.get((name, text))) is not None:
            room -= len(number) + 2
            if room < 0:
                break
            numbers = str(groups[name][same]).removesuffix(text)
            if numbers.rpartition(" ")[2] != number:  # two names of one thing on a line
                groups[name][same] = f"{numbers}, {number}{text}"
            count += 1
            continue
        new = name not in groups
        room -= size_of(entry) + 2 + (len(name) + _OF_A_GROUP if new and name else 0)
        narrow = room < 0
        if narrow:
            if results:
                break
            entry = _shorter(entry, room + size_of(entry))
        if not isinstance(heading, dict):
            results.append(entry)
        elif new:
            groups[name] = [entry]
            results.append({**heading, "rows": groups[name]})
        else:
            groups[name].append(entry)
        if number and name:
            alike[name, text] = len(groups[name]) - 1
        count += 1
        if narrow:
            return Fitted(results, count, narrowed=True)
    return Fitted(results, count, narrowed=False)


def _line(entry: JsonValue) -> tuple[str, str]:
    """A row of one line as its number and `: text`; both '' for any other row."""
    found = _ONE_LINE.fullmatch(entry) if isinstance(entry, str) else None
    return (found[1], found[2]) if found else ("", "")


def _shorter(entry: JsonValue, room: int) -> JsonValue:
    """A row that alone is too large, without its ends."""
    if isinstance(entry, dict):
        return narrowed({**entry, "cut": True}, room)
    return f"{entry[: max(room, 0) // 2]}…" if isinstance(entry, str) else entry


def places(answer: Mapping[str, Any]) -> list[str]:
    """`path:line` of every row of a lookup's answer."""
    return [
        f"{entry['path']}:{line}"
        for entry in answer.get("results", [])
        for row in entry.get("rows", ["1:"])
        for line in (
            [row["start_line"]] if isinstance(row, dict) else row.partition(":")[0].partition("-")[0].split(", ")
        )
    ]


def _warranty(answer: LookupAnswer[object]) -> Fields:
    """What an answer is worth, as far as there is something to say of it."""
    said: Fields = {}
    if answer.incomplete_because:
        said["incomplete_because"] = [printable(reason) for reason in answer.incomplete_because]
    if answer.notes:
        said["notes"] = [printable(note) for note in answer.notes]
    if answer.counts:
        said["counts"] = {printable(pattern): count for pattern, count in answer.counts}
    skipped = answer.skipped
    if skipped.ignored or skipped.binary or skipped.too_large:
        said["skipped"] = {"ignored": skipped.ignored, "binary": skipped.binary, "too_large": skipped.too_large}
    if answer.other:
        said["other"] = answer.other
    if answer.pending:
        said["pending"] = answer.pending
    return said


def narrowed(fields: Fields, room: int) -> Fields:
    """Fields of at most `room` characters: the longest texts and lists lose their ends, and `left_out` counts what."""
    kept, left_out = dict(fields), Fields()
    while (over := size_of({**kept, "left_out": left_out}) - room) > 0:
        name = max(fields, key=lambda name: size_of(kept[name]))
        whole, value = fields[name], kept[name]
        if not isinstance(whole, str | list) or not isinstance(value, str | list) or len(value) < _CAN_BE_CUT:
            break
        size = size_of(value)
        # Not more than is too much, and at most half: another text or list may be the longer one then.
        kept[name] = shorter = _beginning(value, len(value) * max(size - over, size // 2) // size)
        left_out[name] = len(whole) - len(shorter)
    return {**kept, "left_out": left_out} if left_out else kept


def _beginning(value: str | list[JsonValue], most: int) -> str | list[JsonValue]:
    """The first items of a list, or of a text the first lines, if there are any within `most` characters."""
    if isinstance(value, list):
        return value[:most]
    return value[: value.rfind("\n", 0, most) + 1].rstrip("\n") or value[:most]


def within_limit(answer: Fields, warning: Callable[[], str]) -> tuple[Fields, str]:
    """An answer of at most 256 KB, and its JSON: rows are dropped from the end, then long texts are cut, and
    `truncation_warning` says so.
    """
    text = answer_text(answer)
    if len(text) * _WIDEST <= MAX_ANSWER_BYTES or _bytes(text) <= MAX_ANSWER_BYTES:
        return answer, text
    cut = dict(answer)
    cut |= {"truncated": True, "truncation_warning": warning()}
    results = cut.get("results")
    if isinstance(results, list):
        while results and _size(cut) > MAX_ANSWER_BYTES:
            results = results[: len(results) // 2]
            cut["results"] = results
    for most in _SHORTER:
        if _size(cut) > MAX_ANSWER_BYTES:
            cut = {name: _shortened(value, most) for name, value in cut.items()}
    while _size(cut) > MAX_ANSWER_BYTES:
        del cut[max(cut, key=lambda name: size_of(cut[name]))]
    return cut, answer_text(cut)


def answer_text(answer: Fields) -> str:
    """An answer as the text that is next to its structure."""
    return json.dumps(answer, ensure_ascii=False)


def _shortened(value: JsonValue, most: int) -> JsonValue:
    if isinstance(value, str):
        return value[:most]
    if isinstance(value, list):
        return [_shortened(item, most) for item in value[:_ITEMS]]
    if isinstance(value, dict):
        return {name: _shortened(item, most) for name, item in list(value.items())[:_ITEMS]}
    return value


def size_of(value: object) -> int:
    """Characters of a value as JSON."""
    return len(json.dumps(value, ensure_ascii=False))


def _size(answer: Fields) -> int:
    return _bytes(answer_text(answer))


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
