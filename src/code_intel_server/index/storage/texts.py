"""The text of chunks, from the checkout's own files: none is kept anywhere else."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from code_intel_server.index.chunks.chunker import decode_text
from code_intel_server.index.chunks.windows import Span, TokenLines
from code_intel_server.index.storage.rows import ChunkRow
from code_intel_server.workspace.files import read_beneath


class ReadChunk(NamedTuple):
    """A chunk with its text; not `fresh` where the file is no longer what was indexed: then what stands there now, if anything."""

    row: ChunkRow
    fresh: bool


def read_texts(root: Path, rows: Iterable[ChunkRow], max_bytes: int) -> list[ReadChunk]:
    """The chunks in their order with the text that their lines have now, each file read once."""
    wanted = [*rows]
    by_file: defaultdict[str, list[int]] = defaultdict(list)
    for number, row in enumerate(wanted):
        by_file[row.chunk.path].append(number)
    found: dict[int, ReadChunk] = {}
    for path, numbers in by_file.items():
        try:
            data = read_beneath(root, path, max_bytes)[0]
        except (OSError, ValueError):
            data = b""
        fresh = hashlib.sha256(data).digest() == wanted[numbers[0]].digest
        lines = TokenLines(decode_text(data))
        for number in numbers:
            found[number] = ReadChunk(_with_text(wanted[number], lines), fresh)
    return [found[number] for number in range(len(wanted))]


def _with_text(row: ChunkRow, lines: TokenLines) -> ChunkRow:
    chunk = row.chunk
    text = lines.text(Span(chunk.start_line - 1, chunk.end_line))[row.at : row.at + row.size]
    return row._replace(chunk=replace(chunk, text=text))
