"""Reads the few parts of a SCIP index that resolution needs, straight from protobuf's wire format.

A file may have hundreds of megabytes: only where each document lies is read at once, and what is asked about later.
Field numbers: scip.proto of Sourcegraph's SCIP (Index, Metadata, ToolInfo, Document, Occurrence).
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass

Wire = int | bytes
_MOST_VARINT_BYTES = 10
_HEAD_BYTES = 512
_MOST_DOCUMENT_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class RawOccurrence:
    """A range (0-based line, columns as the document counts them) and its symbol."""

    line: int
    start: int
    end: int
    symbol: bytes
    defines: bool


@dataclass(frozen=True, slots=True)
class Extent:
    """Where a document lies in the file."""

    offset: int
    size: int


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A number and where it ends. Raises ValueError where there is none."""
    if at < len(data) and data[at] < 128:  # most are short
        return data[at], at + 1
    value = 0
    for shift, byte in enumerate(data[at : at + _MOST_VARINT_BYTES]):
        value |= (byte & 127) << 7 * shift
        if byte < 128:
            return value, at + shift + 1
    raise ValueError("a number without an end")


def fields(data: bytes) -> Iterator[tuple[int, Wire]]:
    """The fields of a message in order. Raises ValueError for anything else."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        value: Wire
        if tag & 7 == 0:
            value, at = varint(data, at)
        else:
            size, at = varint(data, at) if tag & 7 == 2 else ({1: 8, 5: 4}.get(tag & 7, len(data)), at)
            if size > len(data) - at:
                raise ValueError("a field longer than its message")
            value = data[at : at + size]
            at += size
        yield tag >> 3, value


def documents(descriptor: int, size: int) -> tuple[bytes, dict[str, list[Extent]]]:
    """The metadata, and where the documents of each path lie. Raises ValueError or OSError."""
    metadata = b""
    found: dict[str, list[Extent]] = {}
    at = 0
    while at < size:
        head = os.pread(descriptor, _HEAD_BYTES, at)
        tag, used = varint(head, 0)
        length, used = varint(head, used)
        if tag & 7 != 2 or length > size - at - used:
            raise ValueError("not a SCIP index")
        extent = Extent(at + used, length)
        if tag >> 3 == 1:
            metadata = read(descriptor, extent)
        elif tag >> 3 == 2:
            found.setdefault(_path(descriptor, extent, head[used:]), []).append(extent)
        at += used + length
    if not metadata:
        raise ValueError("not a SCIP index")
    return metadata, found


def _path(descriptor: int, extent: Extent, head: bytes) -> str:
    if head[:1] == b"\x0a":  # the path comes first, as every indexer writes it
        length, at = varint(head, 1)
        if at + length <= min(len(head), extent.size):
            return head[at : at + length].decode("utf-8", "replace")
    paths = [value for number, value in fields(read(descriptor, extent)) if number == 1 and isinstance(value, bytes)]
    return paths[-1].decode("utf-8", "replace") if paths else ""


def read(descriptor: int, extent: Extent) -> bytes:
    """The bytes of a part. Raises ValueError where the file has changed meanwhile, or the part is too large."""
    data = os.pread(descriptor, extent.size, extent.offset) if extent.size <= _MOST_DOCUMENT_BYTES else b""
    if len(data) != extent.size:
        raise ValueError("too large a document, or the file changed")
    return data


def occurrences(document: bytes) -> tuple[list[RawOccurrence], int, bytes]:
    """A document's occurrences that lie on one line, how it counts columns, and its text where it has one. Raises ValueError."""
    found: list[RawOccurrence] = []
    encoding, text = 0, b""
    for number, value in fields(document):
        if number == 2 and isinstance(value, bytes):
            found += _occurrence(value)
        elif number == 5 and isinstance(value, bytes):
            text = value
        elif number == 6 and isinstance(value, int):
            encoding = value
    return found, encoding, text


def _occurrence(data: bytes) -> Iterator[RawOccurrence]:
    place: list[int] = []
    symbol, roles = b"", 0
    for number, value in fields(data):
        if number == 1:  # packed, or one number a field
            place += [value] if isinstance(value, int) else _numbers(value)
        elif number == 2 and isinstance(value, bytes):
            symbol = value
        elif number == 3 and isinstance(value, int):
            roles = value
    if len(place) == 4 and place[0] == place[2]:
        del place[2]
    if len(place) == 3 and symbol:
        yield RawOccurrence(place[0], place[1], place[2], symbol, bool(roles & 1))


def _numbers(data: bytes) -> list[int]:
    found, at = [], 0
    while at < len(data):
        value, at = varint(data, at)
        found.append(value)
    return found


def tool(metadata: bytes) -> str:
    """Which indexer wrote the file, and its version; '' where it does not say. Raises ValueError."""
    info = dict(fields(metadata)).get(2, b"")
    parts = dict(fields(info)) if isinstance(info, bytes) else {}
    said = (parts.get(number) for number in (1, 2))
    return " ".join(value.decode("utf-8", "replace") for value in said if isinstance(value, bytes))
