"""One file on its way into the index: read, cut into chunks, and its words made ready for storing. Knows no store.

That is most of the work of a sync and needs nothing but the file, so it can be done in this process or in another one.
"""

import hashlib
import re
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from code_intel_server.codebase.files.languages import Language, language_of
from code_intel_server.index.chunks.chunker import chunk_file
from code_intel_server.index.retrieval.lexical import index_terms, terms_of, words_of
from code_intel_server.index.retrieval.words import Vocabulary, packed_bag
from code_intel_server.index.values import Chunk, ChunkStrategy, FileState
from code_intel_server.workspace.files import read_beneath

_WRITTEN_BY_MACHINES = re.compile(
    r"(?:\.(?:min\.(?:js|css)|map|svg|lock|snap|po)|(?:^|/)(?:package-lock\.json|npm-shrinkwrap\.json|pnpm-lock\.yaml|go\.sum))$"
)
"""Text that nobody wrote and nobody reads; remembered without chunks."""

HEAD_BYTES = 8192
"""What tells a file's language and whether it is text."""


@dataclass(frozen=True, slots=True)
class Rules:
    """How files are cut: at most `max_tokens` a chunk, files of at most `max_bytes`."""

    strategy: ChunkStrategy
    max_tokens: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class Terms:
    """The words under which a chunk is found: of the names it defines, and of its text."""

    symbol: str
    body: str


@dataclass(frozen=True, slots=True)
class Cut:
    """A file that was read and cut; of each chunk its words and the digest of what is embedded.

    `bags` are what a static model embeds (`words.packed`), empty where no vocabulary was given. `skipped` says why a file is
    remembered without chunks (`binary`, `generated`), '' where it is not.
    """

    state: FileState
    chunks: Sequence[Chunk] = ()
    terms: Sequence[Terms] = ()
    digests: Sequence[bytes] = ()
    bags: Sequence[bytes] = ()
    skipped: str = ""


def cut_file(root: Path, path: str, rules: Rules, vocabulary: Vocabulary | None = None) -> Cut | None:
    """Read and cut one file; None where it is gone, no regular file, larger than the rules allow, or not to be read."""
    try:
        data, before = read_beneath(root, path, rules.max_bytes)
    except (OSError, ValueError):
        return None
    # The stat is from before the reading: what changes from then on changes it too.
    state = FileState(path, len(data), before.st_ctime_ns, hashlib.sha256(data).digest(), time.time_ns())
    if looks_binary(data) or written_by_machines(path):
        return Cut(state, skipped="binary" if looks_binary(data) else "generated")
    language = language_of(path, data[:HEAD_BYTES])
    chunks = _chunks(path, data, language, rules)
    terms, bags = [], []
    for chunk in chunks:
        words = words_of(chunk.text)
        terms.append(Terms(index_terms(" ".join((*chunk.names, chunk.scope))), terms_of(words)))
        if vocabulary is not None:
            bags.append(packed_bag(vocabulary.passage_bag(chunk.lead, chunk.text, words)))
    digests = [hashlib.blake2b(chunk.passage.encode("utf-8", "replace"), digest_size=16).digest() for chunk in chunks]
    return Cut(replace(state, language=language.name if language else ""), chunks, terms, digests, bags)


def _chunks(path: str, data: bytes, language: Language | None, rules: Rules) -> list[Chunk]:
    """By the rules; by lines where definitions are nested thousands deep, as nobody writes them."""
    try:
        return chunk_file(path, data, language, max_tokens=rules.max_tokens, strategy=rules.strategy)
    except RecursionError:
        return chunk_file(path, data, language, max_tokens=rules.max_tokens, strategy=ChunkStrategy.TEXT)


def written_by_machines(path: str) -> bool:
    """Whether its path says that nobody wrote it and nobody reads it."""
    return bool(_WRITTEN_BY_MACHINES.search(path))


def looks_binary(data: bytes) -> bool:
    """Whether this is no text: a NUL byte early on, unless a mark says UTF-16."""
    return not data.startswith((b"\xff\xfe", b"\xfe\xff")) and b"\0" in data[:HEAD_BYTES]


# Between processes


def rules_to_json(rules: Rules) -> dict[str, Any]:
    """The rules as JSON has them."""
    return asdict(rules)


def rules_from_json(given: dict[str, Any]) -> Rules:
    """The rules from what `rules_to_json` made."""
    return Rules(ChunkStrategy(given["strategy"]), int(given["max_tokens"]), int(given["max_bytes"]))


def to_frame(path: str, cut: Cut | None) -> tuple[dict[str, Any], bytes]:
    """What became of a file, as a frame has it: flat lists, since there are many, and the bags one behind the other."""
    if cut is None:
        return {"path": path}, b""
    state = cut.state
    head = {
        "path": path,
        "state": [state.size, state.ctime_ns, state.digest.hex(), state.indexed_ns, state.language],
        "skipped": cut.skipped,
        "chunks": [
            (
                (c.id, c.start_line, c.end_line, c.text, c.kind, c.symbol, c.scope, c.header, c.names),
                terms.symbol,
                terms.body,
                digest.hex(),
            )
            for c, terms, digest in zip(cut.chunks, cut.terms, cut.digests, strict=True)
        ],
        "bags": [len(bag) for bag in cut.bags],
    }
    return head, b"".join(cut.bags)


def from_frame(head: dict[str, Any], body: bytes) -> Cut | None:
    """The file from what `to_frame` made. Raises ValueError, KeyError or TypeError for anything else."""
    if "state" not in head:
        return None
    path = str(head["path"])
    size, ctime_ns, digest, indexed_ns, language = head["state"]
    chunks, terms, digests = [], [], []
    for (ident, start, end, text, kind, symbol, scope, header, names), about, words, of_passage in head["chunks"]:
        chunks.append(Chunk(ident, path, start, end, text, kind, symbol, scope, header, tuple(names)))
        terms.append(Terms(about, words))
        digests.append(bytes.fromhex(of_passage))
    ends = list(accumulate(head["bags"], initial=0))
    if ends[-1] != len(body):
        raise ValueError("the bags do not fit")
    bags = [body[start:end] for start, end in pairwise(ends)]
    state = FileState(path, size, ctime_ns, bytes.fromhex(digest), indexed_ns, language)
    return Cut(state, skipped=head["skipped"]) if head["skipped"] else Cut(state, chunks, terms, digests, bags)
