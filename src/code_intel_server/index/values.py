"""The values that the rooms of the index hand to each other: settings, chunks, hits and answers."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from code_intel_server.codebase.answers import InFile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from code_intel_server.codebase.files.ignore import FileListing

    Matrix = NDArray[np.float32]
    """Unit vectors, one a row."""

_WHY_CHARACTERS = 200

FileLister = Callable[[], "FileListing"]
"""Lists the project's files, relative to its root and `/`-separated, ignored ones left out; and says what kept it from more."""

SyncProgress = Callable[[int, int, str], None]
"""Called with files done, files in all, and a short message."""


def path_tag(path: str) -> str:
    """What the ids of a file's chunks begin with."""
    return hashlib.blake2b(path.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


def lookup_names(kind: str, name: str) -> tuple[str, ...]:
    """What a definition is looked for by: its name, and of a module's (`Plug.Conn`) the last part too."""
    return (name, name.rpartition(".")[2]) if kind == "module" and "." in name else (name,)


class ChunkStrategy(StrEnum):
    """How files are cut (`config.json` `chunk_strategy`)."""

    AST = "ast"
    """By syntax where a grammar knows the language."""
    TEXT = "text"
    """By windows of lines only."""


class ChromaMode(StrEnum):
    """Where ChromaDB runs (`config.json` `chroma.mode`)."""

    LOCAL = "local"
    """In a child process of ours, on `.code-intel/chroma/`."""
    HTTP = "http"
    """A ChromaDB server that somebody runs."""
    OFF = "off"
    """Not at all: vectors are searched in SQLite."""


@dataclass(frozen=True, slots=True)
class ChromaSettings:
    """How to reach ChromaDB. `timeout` in seconds bounds every request; the first open may take `open_timeout`.

    A folder of ours has it only from `min_chunks` on; fewer vectors are compared one by one. A server has all of them.
    """

    mode: ChromaMode = ChromaMode.LOCAL
    host: str = "localhost"
    port: int = 8000
    ssl: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    tenant: str = "default_tenant"
    database: str = "default_database"
    timeout: float = 10.0
    open_timeout: float = 30.0
    min_chunks: int = 50_000


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """The part of `config.json` that shapes the index; the defaults are the configuration's (SPEC 9).

    What `exclude_patterns` leave out is not in it: no listing of files has it (`codebase.files.ignore`).
    """

    source_dirs: tuple[str, ...] = ()
    chunk_strategy: ChunkStrategy = ChunkStrategy.AST
    chunk_max_tokens: int = 512
    sync_ttl_hours: float = 1.0
    sync_on_start: bool = True
    max_file_bytes: int = 1_000_000
    chroma: ChromaSettings = field(default_factory=ChromaSettings)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a file. Lines are 1-based and inclusive.

    `id` is the path's tag (`path_tag`) and a `key` that is free of the path.
    `symbol` is the name it defines (`''` for none), `scope` the qualified name of what encloses it, `kind` what it is
    (`function`, `class`, `section`, `text` …), `header` the line(s) that introduce the parent, shown before the text
    where the chunk is only a part of it, `names` all that it defines.
    """

    id: str
    path: str
    start_line: int
    end_line: int
    text: str
    kind: str = "text"
    symbol: str = ""
    scope: str = ""
    header: str = ""
    names: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """What tells it from the other chunks of any file with the same content."""
        return self.id[8:]

    @property
    def qualified(self) -> str:
        """`Scope.symbol`, as far as known."""
        return ".".join(part for part in (self.scope, self.symbol) if part)

    @property
    def passage(self) -> str:
        """What is embedded: where the chunk is, then its text. Free of the path, so that a rename costs nothing."""
        return f"{self.lead}\n{self.text}" if self.lead else self.text

    @property
    def lead(self) -> str:
        """Where the chunk stands, as far as that is embedded: the lines around it, or its name."""
        return self.header or self.qualified


@dataclass(frozen=True, slots=True)
class FileState:
    """What the index knows of a file: size in bytes, change time in ns (its mtime can be set), SHA-256, and when it was indexed (ns since the epoch)."""

    path: str
    size: int
    ctime_ns: int
    digest: bytes
    indexed_ns: int
    language: str = ""


class Collection(StrEnum):
    """Which collection answers (SPEC 9)."""

    AUTO = "auto"
    MAP = "map"
    FOREST = "forest"


@dataclass(frozen=True, slots=True)
class Hit(InFile):
    """One result of a search. `fresh` is False where the file has changed since and could not be indexed anew."""

    chunk_id: str
    path: str
    start_line: int
    end_line: int
    symbol: str
    kind: str
    score: float
    why: str
    text: str
    language: str = ""
    fresh: bool = True

    def as_row(self) -> dict[str, object]:
        """All but what is plain: the language, and that it is fresh."""
        row: dict[str, object] = {"chunk_id": self.chunk_id, "start_line": self.start_line, "end_line": self.end_line}
        row |= {
            "symbol": self.symbol,
            "kind": self.kind,
            "score": round(self.score, 2),
            "why": self.why[:_WHY_CHARACTERS],
        }
        return row | ({} if self.fresh else {"fresh": False}) | {"text": self.text}


@dataclass(frozen=True, slots=True)
class Agreement:
    """A question that once led to these symbols and files, and ended well (SPEC 10)."""

    id: str
    query: str
    symbols: tuple[str, ...]
    files: tuple[str, ...]
    session_id: str = ""
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """What a semantic search found and what it is worth (SPEC 2, warranty).

    `collection` names who answered; `agreements` are Map's hits, best first; `pending` counts files that wait to be
    indexed; `notes` say in sentences what is missing (then it is not `complete`), repaired or slower than usual.
    """

    hits: tuple[Hit, ...]
    total: int
    engine: str
    complete: bool
    collection: Collection = Collection.FOREST
    agreements: tuple[Agreement, ...] = ()
    pending: int = 0
    indexed_files: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What a sync did. Counts are files but for `chunks` (written) and `embedded` (of those, encoded anew)."""

    files: int = 0
    added: int = 0
    changed: int = 0
    removed: int = 0
    renamed: int = 0
    unchanged: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    chunks: int = 0
    embedded: int = 0
    seconds: float = 0.0
    cancelled: bool = False
    notes: tuple[str, ...] = ()
