"""A checkpoint that would be too large, packed: the same content without loss, compressed into one member (SPEC 7).

Without pydantic, because the hook command reads checkpoints in under 100 ms.
"""

import json
import zlib
from base64 import b85decode, b85encode
from collections.abc import Mapping

MAX_UNPACKED_BYTES = 64 * 1024 * 1024
PACKED = "packed"
_STATE, _PAYLOADS = "orchestrator_state", "phase_payloads"
_SHOWN = ("session_id", "phase_state", "counters")


def packed_body(body: Mapping[str, object]) -> dict[str, object]:
    """A checkpoint body with everything but its place and counters compressed."""
    data = zlib.compress(json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass"), 6)
    state = body[_STATE]
    shown = {name: state[name] for name in _SHOWN} if isinstance(state, Mapping) else {}
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
