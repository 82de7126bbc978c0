"""Brings the store up to date with the project's files: only what changed, in batches, resumable at any point.

A file is looked at by its stat and, where that differs or is too young to be trusted, by its SHA-256. Each batch is one
transaction, so a kill loses at most one batch, and the next run goes on with the files that are missing. What another
checkout of the repository has indexed already, or this one under another name, is neither cut nor embedded again.
"""

import contextlib
import hashlib
import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from code_intel_server.codebase.files.languages import language_of
from code_intel_server.index.chunks.chunker import CHUNKER_VERSION
from code_intel_server.index.chunks.cutter import MIN_FILES_FOR_PROCESSES, Cutter, Job
from code_intel_server.index.chunks.cutting import HEAD_BYTES, Cut, Rules, written_by_machines
from code_intel_server.index.storage.contents import FileWrite, key_of, passage_of
from code_intel_server.index.storage.rows import pack
from code_intel_server.index.storage.store import Store
from code_intel_server.index.storage.texts import read_texts
from code_intel_server.index.values import FileLister, FileState, IndexSettings, SyncProgress, SyncReport
from code_intel_server.index.vectors.embedding import Encoder, StaticEncoder
from code_intel_server.workspace.files import read_beneath

BATCH_CHUNKS = 512
ADOPTED_FILES = 1000
RACY_NS = 2_000_000_000
"""A file whose change time lies this close to when it was indexed may have changed since without its stat telling."""

PARTLY_LISTED = "Not every file could be listed; what is indexed of the others stays as it is:"
WAITING = "waiting for the sync that is under way"

POLL_SECONDS = 0.2
"""How often who waits for a run under way asks whether to go on waiting."""

_PASSING_SECONDS = 0.005
_FIRST_BATCH_CHUNKS = 128


KnownVectors = Callable[[Sequence[int]], Mapping[int, bytes]]
"""Passages → the packed vectors of those that are known."""


@dataclass(slots=True)
class _Tally:
    """Counts of the running sync."""

    counts: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    added_digests: dict[bytes, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Scan:
    """What a look at all files found: `todo` want indexing, `gone` are no longer there, `touched` only changed their stat.

    `problems` say why files may be missing from it.
    """

    todo: tuple[str, ...]
    gone: tuple[str, ...]
    touched: tuple[FileState, ...]
    unchanged: int
    skipped: Counter[str]
    problems: tuple[str, ...] = ()


class Synchroniser:
    """Indexes one project into one store; one run at a time. `encoder` may answer None: chunks then wait for vectors."""

    def __init__(
        self,
        root: Path,
        store: Store,
        settings: IndexSettings,
        lister: FileLister,
        encoder: Callable[[], Encoder | None],
        known_vectors: KnownVectors = lambda _: {},
    ) -> None:
        """`known_vectors` are those that somebody else has made with the same model: they are not made again."""
        self._root = root
        self._store = store
        self._settings = settings
        self._lister = lister
        self._encoder = encoder
        self._known_vectors = known_vectors
        self._recipe = f"{CHUNKER_VERSION}/{settings.chunk_strategy}/{settings.chunk_max_tokens}"
        self._running = threading.Lock()
        self._rebuild_waits = threading.Event()
        """Set while a rebuild waits for its turn: what a run under way does is about to be thrown away."""
        self.seen_at = 0
        """The store's epoch at which the last run began."""
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
        listing = self._lister()
        for path in listing.paths:
            if path in present:
                continue
            if not self._below_source_dirs(path):
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
        gone = tuple(path for path in known if path not in present and (not listing.problems or not self._stat(path)))
        return Scan(tuple(todo), gone, tuple(touched), len(present) - len(todo), skipped, listing.problems)

    def _compare(self, known: FileState | None, now: FileState) -> FileState | None:
        """The state to keep, or None where the file wants indexing."""
        if known is None:
            return None
        same_stat = (known.size, known.ctime_ns) == (now.size, now.ctime_ns)
        if same_stat and known.indexed_ns - known.ctime_ns > RACY_NS:
            return known
        if known.size != now.size:
            return None
        digest = self._digest(now.path)
        if digest != known.digest:
            return None
        return replace(known, size=now.size, ctime_ns=now.ctime_ns, indexed_ns=time.time_ns())

    def stale(self, paths: Iterable[str]) -> list[str]:
        """Those of the files that no longer have the content that was indexed (stat, then SHA-256)."""
        wanted = list(paths)
        known = self._store.files_at(wanted)
        return [path for path in wanted if not self._holds(known.get(path), self._stat(path))]

    def _holds(self, known: FileState | None, now: FileState | None) -> bool:
        return known is not None and now is not None and self._compare(known, now) is not None

    def _stat(self, path: str) -> FileState | None:
        try:
            found = os.lstat(f"{self._root}/{path}")  # for every file: pathlib would take twice as long
        except (OSError, ValueError):
            return None
        return FileState(path, found.st_size, found.st_ctime_ns, b"", 0)

    def _digest(self, path: str) -> bytes:
        try:
            return hashlib.sha256(read_beneath(self._root, path, self._settings.max_file_bytes)[0]).digest()
        except OSError:
            return b""

    def _below_source_dirs(self, path: str) -> bool:
        dirs = self._settings.source_dirs
        return not dirs or any(one in {".", "", path} or path.startswith(f"{one}/") for one in dirs)

    # Doing

    def run(
        self,
        *,
        progress: SyncProgress | None = None,
        should_stop: Callable[[], bool] = lambda: False,
        first: Callable[[str], float] | None = None,
        anew: bool = False,
    ) -> SyncReport:
        """Index what changed, or everything with `anew`. `first` orders the files (the highest value first): what
        a waiting question needs.

        One run at a time: who comes later waits, told so by `progress`, until `should_stop`. A rebuild ends a run that only
        takes in changes, and that run's caller waits for it. Where somebody replaces the store meanwhile, because it is
        damaged, all is looked at again.
        """
        tell = progress or _silent
        while True:
            if not self._takes_turn(tell, should_stop, anew=anew):
                return SyncReport(files=self._store.count("files"), cancelled=True)
            try:
                report = self._in_turn(tell, should_stop, first, anew=anew)
            finally:
                self._running.release()
            # A run that nobody stopped was ended by a rebuild.
            if not report.cancelled or should_stop():
                return report

    def _takes_turn(self, progress: SyncProgress, should_stop: Callable[[], bool], *, anew: bool) -> bool:
        """Wait for the run under way; False where `should_stop` said so first."""
        if anew:
            self._rebuild_waits.set()
        try:
            while True:
                if self._running.acquire(timeout=POLL_SECONDS):
                    if anew or not self._rebuild_waits.is_set():
                        return True
                    self._running.release()
                    time.sleep(_PASSING_SECONDS)  # the rebuild goes first
                progress(0, 0, WAITING)
                if should_stop():
                    return False
        finally:
            if anew:
                self._rebuild_waits.clear()

    def _in_turn(
        self,
        progress: SyncProgress,
        should_stop: Callable[[], bool],
        first: Callable[[str], float] | None,
        *,
        anew: bool,
    ) -> SyncReport:
        def ends() -> bool:
            return should_stop() or (not anew and self._rebuild_waits.is_set())

        if anew and not should_stop():
            self._store.rebuild()
        while True:
            self.seen_at = self._store.epoch
            with self._store.contents.in_use():
                self._store.rejoin()
                report = self._run(progress, lambda: self.seen_at != self._store.epoch or ends(), first, anew=anew)
            if self.seen_at == self._store.epoch or ends():
                break
        if not report.cancelled:
            with contextlib.suppress(sqlite3.Error, OSError):
                self._store.contents.clean_up_if_due()
        return report

    def _run(
        self,
        progress: SyncProgress,
        should_stop: Callable[[], bool],
        first: Callable[[str], float] | None,
        *,
        anew: bool,
    ) -> SyncReport:
        started = time.monotonic()
        self._adopt_versions()
        scan = self.scan()
        tally = _Tally(skipped=scan.skipped, notes=[f"{PARTLY_LISTED} {said}" for said in scan.problems[:1]])
        todo = sorted(scan.todo, key=first, reverse=True) if first else scan.todo
        if todo:
            self._tell_pending(len(todo))
        self._store.touch(scan.touched)
        known = self._store.files()
        wanted = todo if anew else self._adopt(todo, known, tally, should_stop)
        cancelled = should_stop() or not self._index(wanted, known, tally, progress, should_stop, anew=anew)
        if not cancelled:
            gone = [known[path] for path in scan.gone if path in known]
            tally.counts["renamed"] = sum(_take(tally.added_digests, state.digest) for state in gone)
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
            notes=tuple(tally.notes),
        )

    def refresh(self, paths: Sequence[str]) -> bool:
        """Index these files now, or forget them where they are gone; False where a running sync is about to do so."""
        if not self._running.acquire(blocking=False):
            return False
        try:
            known = self._store.files_at(paths)
            present = [path for path in paths if self._stat(path) is not None]
            with self._store.contents.in_use():
                wanted = self._adopt(present, known, _Tally(), lambda: False)
                for batch in self._batches(self._cutter(lambda: False).cut(wanted), _Tally()):
                    self._write(batch, known, _Tally())
            self._store.remove([path for path in paths if path not in present])
        finally:
            self._running.release()
        return True

    def _adopt_versions(self) -> None:
        """Start over where the rules of cutting changed; drop vectors of another model."""
        if self._store.meta("recipe") != self._recipe:
            self._store.remove(self._store.files())
            self._store.set_meta(recipe=self._recipe)
        encoder = self._encoder()
        if encoder is not None and self._store.meta("model") != model_key(encoder):
            self._store.forget_vectors()
            self._store.set_meta(model=model_key(encoder))

    def _adopt(
        self, todo: Sequence[str], known: dict[str, FileState], tally: _Tally, should_stop: Callable[[], bool]
    ) -> list[str]:
        """Take over what is known of the content of files, and answer which files have other content."""
        if self._store.contents.empty:
            return [*todo]
        left: list[str] = []
        for at in range(0, len(todo), ADOPTED_FILES):
            if should_stop():
                break
            part = todo[at : at + ADOPTED_FILES]
            read = {path: found for path in part if (found := self._read(path))}
            there = self._store.contents.known([key for key, _ in read.values()])
            adopted = [(state, content) for key, state in read.values() if (content := there.get(key))]
            if adopted:
                self._store.adopt(adopted)
            self._count([state for state, _ in adopted], known, tally)
            done = {state.path for state, _ in adopted}
            left += [path for path in part if path not in done]
            if not done:  # a project like no other here: what it holds is read once, to be cut
                return [*left, *todo[at + ADOPTED_FILES :]]
        return left

    def _read(self, path: str) -> tuple[bytes, FileState] | None:
        """The key of a file's content, and the file as it is; None where it cannot be read or only its path tells what it is."""
        if written_by_machines(path):
            return None
        try:
            data, before = read_beneath(self._root, path, self._settings.max_file_bytes)
        except (OSError, ValueError):
            return None
        language = language_of(path, data[:HEAD_BYTES])
        digest, name = hashlib.sha256(data).digest(), language.name if language else ""
        state = FileState(path, len(data), before.st_ctime_ns, digest, time.time_ns(), name)
        return key_of(digest, name, self._recipe), state

    def _index(
        self,
        todo: Sequence[str],
        known: dict[str, FileState],
        tally: _Tally,
        progress: SyncProgress,
        should_stop: Callable[[], bool],
        *,
        anew: bool,
    ) -> bool:
        done = 0
        cutter = self._cutter(should_stop)
        bulk = self._store.in_bulk() if len(todo) >= MIN_FILES_FOR_PROCESSES else contextlib.nullcontext()
        with bulk, contextlib.closing(cutter.cut(todo)) as cuts:
            for batch in self._batches(cuts, tally):
                if should_stop():
                    return False
                self._write(batch, known, tally, anew=anew)
                done += len(batch)
                self._tell_pending(len(todo) - done)
                progress(done, len(todo), batch[-1].state.path)
        tally.notes += cutter.notes
        if cutter.stopped:
            return False
        self.pending = 0
        return not should_stop()

    def _cutter(self, should_stop: Callable[[], bool]) -> Cutter:
        settings = self._settings
        rules = Rules(settings.chunk_strategy, settings.chunk_max_tokens, settings.max_file_bytes)
        encoder = self._encoder()
        job = Job(self._root, rules, encoder.vocabulary if isinstance(encoder, StaticEncoder) else None)
        return Cutter(job, self._store.path.parent, should_stop)

    def _tell_pending(self, count: int) -> None:
        """Keep it for this process, and in the store for those who look from outside (`status`)."""
        self.pending = count
        self._store.set_meta(pending=str(count))

    def _batches(self, cuts: Iterable[Cut | None], tally: _Tally) -> Iterator[list[Cut]]:
        """Files to be stored together; the first batch is small, so that a question asked meanwhile finds something soon."""
        batch: list[Cut] = []
        chunks, limit = 0, _FIRST_BATCH_CHUNKS
        for cut in cuts:
            if cut is None:
                tally.skipped["unreadable"] += 1
                continue
            if cut.skipped:
                tally.skipped[cut.skipped] += 1
            batch.append(cut)
            chunks += max(1, len(cut.chunks))
            if chunks >= limit:
                yield batch
                batch, chunks, limit = [], 0, BATCH_CHUNKS
        if batch:
            yield batch

    def _write(self, batch: Sequence[Cut], known: dict[str, FileState], tally: _Tally, *, anew: bool = False) -> None:
        vectors = self._vectors(batch, tally, anew=anew)
        files = []
        for cut in batch:
            key = key_of(cut.state.digest, cut.state.language, self._recipe)
            files.append(FileWrite(cut, [vectors.pop(digest, None) for digest in cut.digests], key, anew))
        self._store.write(files)
        self._count([cut.state for cut in batch], known, tally)
        tally.counts["chunks"] += sum(len(cut.chunks) for cut in batch)

    def _count(self, states: Iterable[FileState], known: dict[str, FileState], tally: _Tally) -> None:
        for state in states:
            was_known = state.path in known
            tally.counts["changed" if was_known else "added"] += 1
            if not was_known:
                tally.added_digests[state.digest] = tally.added_digests.get(state.digest, 0) + 1

    def _vectors(self, batch: Sequence[Cut], tally: _Tally, *, anew: bool) -> dict[bytes, bytes]:
        """The vectors of all chunks that have none yet, by digest; none without an embedder."""
        encoder = self._encoder()
        wanted = {digest: (cut, at) for cut in batch for at, digest in enumerate(cut.digests)}
        if encoder is None or not wanted:
            return {}
        passages = [passage_of(digest) for digest in wanted]
        there = set() if anew else self._store.contents.passages_with_vectors(passages, model_key(encoder))
        wanted = {digest: place for digest, place in wanted.items() if passage_of(digest) not in there}
        # The bundled model makes them faster than a server gives them, which may also keep us waiting.
        asks = not anew and not isinstance(encoder, StaticEncoder)
        known = self._known_vectors([*map(passage_of, wanted)]) if asks else {}
        found = {digest: known[passage_of(digest)] for digest in wanted if passage_of(digest) in known}
        wanted = {digest: place for digest, place in wanted.items() if digest not in found}
        if not wanted:
            return found
        if isinstance(encoder, StaticEncoder) and all(cut.bags for cut, _ in wanted.values()):
            matrix = encoder.encode_bags([cut.bags[at] for cut, at in wanted.values()])
        else:
            matrix = encoder.encode([cut.chunks[at].passage for cut, at in wanted.values()], "passage")
        tally.counts["embedded"] += len(wanted)
        return found | dict(zip(wanted, pack(matrix), strict=True))

    def _embed_missing(self, progress: SyncProgress, should_stop: Callable[[], bool]) -> bool:
        """Vectors for chunks that were stored without an embedder or under another model."""
        encoder, after = self._encoder(), 0
        while encoder is not None and (rows := self._store.without_vectors(BATCH_CHUNKS, after)):
            if should_stop():
                return False
            after = rows[-1].seq
            read = [one.row for one in read_texts(self._root, rows, self._settings.max_file_bytes) if one.fresh]
            known = {} if isinstance(encoder, StaticEncoder) else self._known_vectors([row.passage for row in read])
            lacking = [row for row in read if row.passage not in known]
            vectors = pack(encoder.encode([row.chunk.passage for row in lacking], "passage"))
            made = {row.seq: vector for row, vector in zip(lacking, vectors, strict=True)}
            self._store.set_vectors(made | {row.seq: known[row.passage] for row in read if row.passage in known})
            progress(0, 0, "embedding")
        return True


def model_key(encoder: Encoder) -> str:
    """What the store remembers of its model."""
    return f"{encoder.name}/{encoder.dim}"


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
