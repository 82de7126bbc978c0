"""Brings the store up to date with the project's files: only what changed, in batches, resumable at any point.

A file is looked at by its stat and, where that differs or is too young to be trusted, by its SHA-256. Each batch is one
transaction, so a kill loses at most one batch, and the next run goes on with the files that are missing. Files are
removed last: what was only renamed finds the vectors of its old place and is not embedded anew.
"""

import hashlib
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path

from code_intel_server.codebase.languages import language_of
from code_intel_server.index.chunker import CHUNKER_VERSION, chunk_file
from code_intel_server.index.embedding import Encoder
from code_intel_server.index.rows import FileWrite, pack
from code_intel_server.index.store import Store
from code_intel_server.index.values import (
    Chunk,
    FileLister,
    FileState,
    IndexSettings,
    Progress,
    SyncReport,
)

BATCH_CHUNKS = 512
RACY_NS = 2_000_000_000
"""A file whose mtime lies this close to when it was indexed may have changed since without its stat telling."""

_WRITTEN_BY_MACHINES = re.compile(
    r"(?:\.(?:min\.(?:js|css)|map|svg|lock|snap|po)|(?:^|/)(?:package-lock\.json|npm-shrinkwrap\.json|pnpm-lock\.yaml|go\.sum))$"
)
"""Text that nobody wrote and nobody reads; remembered without chunks."""

_BINARY_PROBE = 8192
_FIRST_BATCH_CHUNKS = 128


@dataclass(slots=True)
class _Tally:
    """Counts of the running sync."""

    counts: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    added_digests: dict[bytes, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A file that was read and cut."""

    state: FileState
    chunks: Sequence[Chunk]


@dataclass(frozen=True, slots=True)
class Scan:
    """What a look at all files found: `todo` want indexing, `gone` are no longer there, `touched` only changed their stat."""

    todo: tuple[str, ...]
    gone: tuple[str, ...]
    touched: tuple[FileState, ...]
    unchanged: int
    skipped: Counter[str]


class Synchroniser:
    """Indexes one project into one store; one run at a time. `encoder` may answer None: chunks then wait for vectors."""

    def __init__(
        self,
        root: Path,
        store: Store,
        settings: IndexSettings,
        lister: FileLister,
        encoder: Callable[[], Encoder | None],
    ) -> None:
        self._root = root
        self._store = store
        self._settings = settings
        self._lister = lister
        self._encoder = encoder
        self._running = threading.Lock()
        self.on_batch: Callable[[], None] = lambda: None
        """Called after every batch, in the syncing thread: ChromaDB is filled while the next one is cut and embedded."""
        self.pending = 0
        """Files known to want indexing; exact while a sync runs and right after one."""

    # Looking

    def scan(self) -> Scan:
        """Compare every listed file's stat (and where needed its content) with the store; writes nothing."""
        known = self._store.files()
        todo: list[str] = []
        touched: list[FileState] = []
        skipped: Counter[str] = Counter()
        present: set[str] = set()
        for path in self._lister():
            if not self._wanted(path):
                skipped["excluded"] += 1
                continue
            if not _storable(path):
                skipped["undecodable_name"] += 1
                continue
            state = self._stat(path)
            if state is None:
                continue
            if state.size > self._settings.max_file_bytes:
                skipped["too_large"] += 1
                continue
            present.add(path)
            verdict = self._compare(known.get(path), state)
            if verdict is None:
                todo.append(path)
            elif verdict is not known[path]:
                touched.append(verdict)
        gone = tuple(path for path in known if path not in present)
        return Scan(tuple(todo), gone, tuple(touched), len(present) - len(todo), skipped)

    def _compare(self, known: FileState | None, now: FileState) -> FileState | None:
        """The state to keep, or None where the file wants indexing."""
        if known is None:
            return None
        same_stat = (known.size, known.mtime_ns) == (now.size, now.mtime_ns)
        if same_stat and known.indexed_ns - known.mtime_ns > RACY_NS:
            return known
        if known.size != now.size:
            return None
        digest = self._digest(now.path)
        if digest != known.digest:
            return None
        return replace(known, size=now.size, mtime_ns=now.mtime_ns, indexed_ns=time.time_ns())

    def stale(self, paths: Iterable[str]) -> list[str]:
        """Those of the files that no longer have the content that was indexed (stat, then SHA-256)."""
        wanted = list(paths)
        known = self._store.files_at(wanted)
        return [path for path in wanted if not self._holds(known.get(path), self._stat(path))]

    def _holds(self, known: FileState | None, now: FileState | None) -> bool:
        return known is not None and now is not None and self._compare(known, now) is not None

    def _stat(self, path: str) -> FileState | None:
        try:
            found = (self._root / path).lstat()
        except (OSError, ValueError):
            return None
        return FileState(path, found.st_size, found.st_mtime_ns, b"", 0)

    def _digest(self, path: str) -> bytes:
        try:
            return hashlib.sha256((self._root / path).read_bytes()).digest()
        except OSError:
            return b""

    def _wanted(self, path: str) -> bool:
        dirs = self._settings.source_dirs
        if dirs and not any(folder in {".", ""} or path == folder or path.startswith(folder + "/") for folder in dirs):
            return False
        return not any(_matches(path, pattern) for pattern in self._settings.exclude_patterns)

    # Doing

    def run(
        self,
        *,
        progress: Progress | None = None,
        should_stop: Callable[[], bool] = lambda: False,
        first: Callable[[str], float] | None = None,
    ) -> SyncReport:
        """Index what changed. `first` orders the files (the highest value first): what a waiting question needs.

        A second caller waits for the running sync and then finds nothing left to do.
        """
        with self._running:
            return self._run(progress or _silent, should_stop, first)

    def _run(
        self, progress: Progress, should_stop: Callable[[], bool], first: Callable[[str], float] | None
    ) -> SyncReport:
        started = time.monotonic()
        self._adopt_versions()
        scan = self.scan()
        tally = _Tally(skipped=scan.skipped)
        todo = sorted(scan.todo, key=first, reverse=True) if first else scan.todo
        if todo:
            self._tell_pending(len(todo))
        self._store.touch(scan.touched)
        known = self._store.files()
        cancelled = not self._index(todo, known, tally, progress, should_stop)
        if not cancelled:
            tally.counts["renamed"] = sum(1 for path in scan.gone if _take(tally.added_digests, known[path].digest))
            self._store.remove(scan.gone)
            cancelled = not self._embed_missing(progress, should_stop)
        if not cancelled:
            self._store.set_meta(synced_at=str(time.time()), pending="0")
        counts = tally.counts
        return SyncReport(
            files=self._store.count("files"),
            added=counts["added"] - counts["renamed"],
            changed=counts["changed"],
            removed=0 if cancelled else len(scan.gone) - counts["renamed"],
            renamed=counts["renamed"],
            unchanged=scan.unchanged,
            skipped=dict(tally.skipped),
            chunks=counts["chunks"],
            embedded=counts["embedded"],
            seconds=time.monotonic() - started,
            cancelled=cancelled,
        )

    def refresh(self, paths: Sequence[str]) -> bool:
        """Index these files now, or forget them where they are gone; False where a running sync is about to do so."""
        if not self._running.acquire(blocking=False):
            return False
        try:
            known = self._store.files_at(paths)
            present = [path for path in paths if self._stat(path) is not None]
            for batch in self._batches(present, _Tally()):
                self._write(batch, known, _Tally())
            self._store.remove([path for path in paths if path not in present])
        finally:
            self._running.release()
        return True

    def _adopt_versions(self) -> None:
        """Start over where the rules of cutting changed; drop vectors of another model."""
        settings = self._settings
        recipe = f"{CHUNKER_VERSION}/{settings.chunk_strategy}/{settings.chunk_max_tokens}"
        if self._store.meta("recipe") != recipe:
            self._store.remove(self._store.files())
            self._store.set_meta(recipe=recipe)
        encoder = self._encoder()
        if encoder is not None and self._store.meta("model") != model_key(encoder):
            self._store.forget_vectors()
            self._store.set_meta(model=model_key(encoder))

    def _index(
        self,
        todo: Sequence[str],
        known: dict[str, FileState],
        tally: _Tally,
        progress: Progress,
        should_stop: Callable[[], bool],
    ) -> bool:
        done = 0
        for batch in self._batches(todo, tally):
            if should_stop():
                return False
            self._write(batch, known, tally)
            done += len(batch)
            self._tell_pending(len(todo) - done)
            self.on_batch()
            progress(done, len(todo), batch[-1].state.path)
        self.pending = 0
        return not should_stop()

    def _tell_pending(self, count: int) -> None:
        """Keep it for this process, and in the store for those who look from outside (`status`)."""
        self.pending = count
        self._store.set_meta(pending=str(count))

    def _batches(self, todo: Sequence[str], tally: _Tally) -> Iterator[list[_Loaded]]:
        """Files read and cut; the first batch is small, so that a question asked meanwhile finds something soon."""
        batch: list[_Loaded] = []
        chunks, limit = 0, _FIRST_BATCH_CHUNKS
        for path in todo:
            loaded = self._load(path, tally)
            if loaded is None:
                continue
            batch.append(loaded)
            chunks += max(1, len(loaded.chunks))
            if chunks >= limit:
                yield batch
                batch, chunks, limit = [], 0, BATCH_CHUNKS
        if batch:
            yield batch

    def _load(self, path: str, tally: _Tally) -> _Loaded | None:
        """Read and cut one file; a binary or generated one is remembered without chunks, an unreadable one is counted."""
        state = self._stat(path)
        try:
            data = (self._root / path).read_bytes()
        except OSError:
            tally.skipped["unreadable"] += 1
            return None
        if state is None:
            return None
        state = replace(state, size=len(data), digest=hashlib.sha256(data).digest(), indexed_ns=time.time_ns())
        if is_binary(data) or _WRITTEN_BY_MACHINES.search(path):
            tally.skipped["binary" if is_binary(data) else "generated"] += 1
            return _Loaded(state, ())
        language = language_of(path, data[:_BINARY_PROBE])
        settings = self._settings
        chunks = chunk_file(
            path, data, language, max_tokens=settings.chunk_max_tokens, strategy=settings.chunk_strategy
        )
        return _Loaded(replace(state, language=language.name if language else ""), chunks)

    def _write(self, batch: Sequence[_Loaded], known: dict[str, FileState], tally: _Tally) -> None:
        chunks = [chunk for loaded in batch for chunk in loaded.chunks]
        digests = [
            hashlib.blake2b(chunk.passage.encode("utf-8", "replace"), digest_size=16).digest() for chunk in chunks
        ]
        vectors = self._vectors(chunks, digests, tally)
        writes, at = [], 0
        for loaded in batch:
            end = at + len(loaded.chunks)
            writes.append(FileWrite(loaded.state, loaded.chunks, vectors[at:end], digests[at:end]))
            at = end
        self._store.write(writes)
        for loaded in batch:
            was_known = loaded.state.path in known
            tally.counts["changed" if was_known else "added"] += 1
            if not was_known:
                digest = loaded.state.digest
                tally.added_digests[digest] = tally.added_digests.get(digest, 0) + 1
        tally.counts["chunks"] += len(chunks)

    def _vectors(self, chunks: Sequence[Chunk], digests: Sequence[bytes], tally: _Tally) -> list[bytes | None]:
        encoder = self._encoder()
        if encoder is None or not chunks:
            return [None] * len(chunks)
        known = self._store.vectors_by_digest(digests)
        wanted = {digest: chunk for chunk, digest in zip(chunks, digests, strict=True) if digest not in known}
        if wanted:
            matrix = encoder.encode([chunk.passage for chunk in wanted.values()], "passage")
            known.update(zip(wanted, pack(matrix), strict=True))
            tally.counts["embedded"] += len(wanted)
        return [known[digest] for digest in digests]

    def _embed_missing(self, progress: Progress, should_stop: Callable[[], bool]) -> bool:
        """Vectors for chunks that were stored without an embedder or under another model."""
        encoder = self._encoder()
        while encoder is not None and (rows := self._store.without_vectors(BATCH_CHUNKS)):
            if should_stop():
                return False
            vectors = pack(encoder.encode([row.chunk.passage for row in rows], "passage"))
            self._store.set_vectors({row.chunk.id: vector for row, vector in zip(rows, vectors, strict=True)})
            progress(0, 0, "embedding")
        return True


def model_key(encoder: Encoder) -> str:
    """What the store remembers of its model."""
    return f"{encoder.name}/{encoder.dim}"


def is_binary(data: bytes) -> bool:
    """Whether this is no text: a NUL byte early on, unless a mark says UTF-16."""
    return not data.startswith((b"\xff\xfe", b"\xfe\xff")) and b"\0" in data[:_BINARY_PROBE]


def _matches(path: str, pattern: str) -> bool:
    """Glob over the whole path; a leading `**/` also matches at the top."""
    return fnmatchcase(path, pattern) or (pattern.startswith("**/") and fnmatchcase(path, pattern[3:]))


def _storable(path: str) -> bool:
    """Whether the name is text: others can neither be stored nor told to a client."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _take(counts: dict[bytes, int], digest: bytes) -> bool:
    if counts.get(digest, 0) <= 0:
        return False
    counts[digest] -= 1
    return True


def _silent(done: int, total: int, message: str) -> None:
    """Progress that nobody wants."""
