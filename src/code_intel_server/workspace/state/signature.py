"""The seal of a checkpoint file: a SHA-256 and an HMAC, of fixed length, of every byte that follows them (SPEC 7).

So nothing of a file that this machine did not write reaches the JSON parser, and damage (the sum is wrong) can be known from
a stranger's file (the sum is right, the HMAC is not). Without pathlib or pydantic, because the hook command asks the same.
"""

import hashlib
import hmac
import re

ID = r"\d{8}_\d{6}(?:_\d{1,4})?"
"""The form of a session id, which names its checkpoint: `<id>.json`, the generation before it `<id>.previous.json`."""

CHECKPOINT_SCHEMA = 1
MAX_CHECKPOINT_BYTES = 1_000_000
"""What is larger is neither read nor written; the flow compresses summaries long before (SessionState.to_checkpoint)."""

_SEAL = re.compile(rb'\{"checksum": "(?P<sum>[0-9a-f]{64})", "mac": "(?P<mac>[0-9a-f]{64})", ')


class BadSignature(ValueError):
    """A file that is not what this machine wrote; `foreign` where it is whole and another machine's."""

    def __init__(self, why: str, *, foreign: bool = False) -> None:
        super().__init__(why)
        self.foreign = foreign


def signed(key: bytes, rest: bytes) -> bytes:
    """A file whose members behind the seal are `rest`: JSON text of an object, without its first brace."""
    checksum, mac = hashlib.sha256(rest).hexdigest(), _mac(key, rest)
    return f'{{"checksum": "{checksum}", "mac": "{mac}", '.encode() + rest


def verified(key: bytes, data: bytes) -> bytes:
    """The JSON text of a file's members behind its seal, as an object. Raises BrokenSeal."""
    seal = _SEAL.match(data)
    if seal is None:
        raise BadSignature("its beginning is not a checkpoint's")
    rest = data[seal.end() :]
    if not hmac.compare_digest(hashlib.sha256(rest).hexdigest(), seal["sum"].decode()):
        raise BadSignature("its checksum does not fit: torn or edited")
    if not hmac.compare_digest(_mac(key, rest), seal["mac"].decode()):
        raise BadSignature("its signature is not of this machine's key", foreign=True)
    return b"{" + rest


def _mac(key: bytes, rest: bytes) -> str:
    return hmac.digest(key, b"checkpoint\0" + rest, "sha256").hex()
