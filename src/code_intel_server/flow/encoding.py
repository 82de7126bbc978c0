"""How a state is written as a checkpoint: its size, packed where it would be too large, and names that are no UTF-8 (SPEC 7).

Packing loses nothing: the content is compressed into one member. Without pydantic, because the hook command reads checkpoints in under 100 ms.
"""

import json
import marshal
import zlib
from base64 import b85decode, b85encode
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from pydantic import JsonValue

MAX_UNPACKED_BYTES = 64 * 1024 * 1024
PACKED = "packed"
_STATE, _PAYLOADS = "orchestrator_state", "phase_payloads"
_SHOWN = ("session_id", "phase_state", "counters")


def packed_body(body: "Mapping[str, JsonValue]") -> "dict[str, JsonValue]":
    """A checkpoint body with everything but its place and counters compressed."""
    data = zlib.compress(json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass"), 6)
    state = body[_STATE]
    shown = {name: state[name] for name in _SHOWN} if isinstance(state, dict) else {}
    return {_STATE: shown, _PAYLOADS: {}, PACKED: b85encode(data).decode("ascii")}


def unpacked(body: Mapping[str, object]) -> Mapping[str, object]:
    """A checkpoint body as it was before `packed_body`; one that is not packed as it is. Raises ValueError for what is neither."""
    text = body.get(PACKED)
    if text is None:
        return body
    if not isinstance(text, str):
        raise ValueError("packed is no text")  # noqa: TRY004 - one kind: this is no checkpoint
    inflater = zlib.decompressobj()
    try:
        data = inflater.decompress(b85decode(text), MAX_UNPACKED_BYTES)
    except zlib.error as error:
        raise ValueError("packed cannot be unpacked") from error
    content = json.loads(data.decode("utf-8", "surrogatepass"))
    if not inflater.eof or not isinstance(content, dict):
        raise ValueError("packed holds no checkpoint")
    return content


def size_at_most(body: "Mapping[str, JsonValue]") -> int:
    """A bound of `size_in_bytes` in a tenth of its time: it is asked with every submit, and nearly all are far from the limit.

    Of a byte in Python's own form JSON makes no more than eight: a control character six, `false` with its comma seven.
    """
    try:
        return 8 * len(marshal.dumps(cast("dict[str, str]", body), 2))  # later versions write what comes twice but once
    except ValueError:  # a string of a class of its own
        return size_in_bytes(body)


def size_in_bytes(body: "Mapping[str, JsonValue]") -> int:
    """What a body takes as JSON."""
    return utf8_bytes(json.dumps(body, ensure_ascii=False))


# Lone surrogates stand for the bytes of a file's name that is no UTF-8. No strict reader of JSON takes them, so they pass
# it as private characters that no name is known to have.
_PRIVATE = {0xDC80 + byte: 0x10DC80 + byte for byte in range(128)}
_LONE = {private: lone for lone, private in _PRIVATE.items()}


def without_lone_surrogates(text: str) -> str:
    """The text with private characters in their place."""
    return text.translate(_PRIVATE)


def with_lone_surrogates(value: object) -> object:
    """Plain data with lone surrogates where private characters stand for them."""
    match value:
        case str() if type(value) is str:
            return value.translate(_LONE)
        case dict():
            return {with_lone_surrogates(key): with_lone_surrogates(one) for key, one in value.items()}
        case list() | tuple() | set() | frozenset():
            return type(value)(with_lone_surrogates(one) for one in value)
        case _:
            return value


def utf8_bytes(text: str) -> int:
    """The length of a text as UTF-8; a file's name need not be that, and then holds lone surrogates."""
    return len(text.encode("utf-8", "surrogatepass"))
