"""The index of one project as the tools see it: search, sync, chunks and agreements behind one door (SPEC 9).

Nothing is opened, loaded or started before it is needed. The first process that asks owns the index and writes it;
another one reads it and answers from what is there. Whatever is missing or broken makes an answer poorer and is reported in its
notes, but it never stops a session.
"""

import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from code_intel_server.codebase.files.project import valid_text
from code_intel_server.codebase.issue_report import IssueReport
from code_intel_server.contract import packaged_message
from code_intel_server.errors import CodeIntelError, Rejected, Unavailable
from code_intel_server.index.map import SHORT_CUT, Map
from code_intel_server.index.retrieval.questions import Question, relevance, understand
from code_intel_server.index.retrieval.ranking import Candidate
from code_intel_server.index.retrieval.search import DenseSearch, SearchScope, agreed, describe, find
from code_intel_server.index.retrieval.starting_points import MOST, StartingPoint, starting_points
from code_intel_server.index.storage.open_index import IndexSources, OpenIndex, open_index
from code_intel_server.index.storage.ownership import OwnerLock
from code_intel_server.index.storage.rows import ChunkRow
from code_intel_server.index.storage.store import Store
from code_intel_server.index.storage.texts import ReadChunk, read_texts
from code_intel_server.index.values import (
    Agreement,
    Collection,
    FileLister,
    Hit,
    IndexSettings,
    SearchAnswer,
    SyncProgress,
    SyncReport,
)
from code_intel_server.index.vectors.embedding import Encoder

if TYPE_CHECKING:
    from code_intel_server.index.values import Matrix

FIRST_ANSWER_SECONDS = 0.7
"""How long the first question waits for the first sync."""

FIRST_BATCH_LOOK_SECONDS = 0.05
FIRST_BATCH_SECONDS = 8.0
"""How long it waits at most while there is nothing at all to answer from, on a machine that is slow or busy."""

CATCH_UP_SECONDS = 0.2
"""How long the first question of a process waits where an earlier process left an index."""


class CodeIndex:
    """Forest and Map of one project; every method may be called from any thread."""

    def __init__(
        self,
        root: Path,
        settings: IndexSettings,
        *,
        encoder: Callable[[], Encoder],
        lister: FileLister,
        folder: Path | None = None,
        shared: Callable[[], Path | None] = lambda: None,
        repository: Callable[[], str] = lambda: "",
    ) -> None:
        """`folder` is `.code-intel`, `shared` one of all checkouts of the `repository`, which is called so in every clone; `encoder` may raise Unavailable, search then goes by words."""
        self.root = root
        self.settings = settings
        self._folder = folder or root / ".code-intel"
        self._load_encoder = encoder
        self._lister = lister
        self._shared = shared
        self._repository = repository
        self._lock = threading.RLock()
        # A sync asks for the encoder, and whoever closes the index holds the lock above until that sync has ended.
        self._encoder_lock = threading.Lock()
        self._owner = OwnerLock(self._folder / "cache" / "index.lock")
        self._opened: OpenIndex | None = None
        self._closed = False
        self._encoder: Encoder | None = None
        self._encoder_note = ""

    # For the tools

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        path: str = "",
        language: str = "",
        collection: Collection = Collection.AUTO,
        wait: float = FIRST_ANSWER_SECONDS,
    ) -> SearchAnswer:
        """Map first, then Forest (SPEC 9). Never raises for the state of the index: the answer's notes say what is missing.

        `wait` is how long in seconds a first question waits for a first sync (0: not at all); where nothing is there then,
        it waits on for the first batch, `FIRST_BATCH_SECONDS` at most. Raises
        Rejected('tool_errors.semantic_search.empty_query').
        """
        if not query.strip():
            raise Rejected("tool_errors.semantic_search.empty_query")
        opened = self._open()
        seen_at = opened.epoch
        question = understand(query)
        try:
            self._prepare(opened, question, wait)
            answer = self._answer(
                opened, question, limit, SearchScope(path.strip("/"), language.strip().lower()), collection
            )
            if language and not answer.hits:
                answer = _without_language(answer, language, opened.store)
        except sqlite3.OperationalError as error:
            answer = SearchAnswer((), 0, "none", complete=False, notes=(f"The index cannot be read now: {error}",))
        except sqlite3.DatabaseError as error:
            trouble = self._damaged(opened, str(error), seen_at)
            answer = SearchAnswer((), 0, "none", complete=False, notes=(*trouble, *opened.remarks()))
        if opened.background is not None:
            opened.background.start_if_due()
        return answer

    def starting_points(self, report: IssueReport, most: int = MOST) -> list[StartingPoint]:
        """Where to begin with a report, from what is indexed; nothing where no sync has ended yet, and never waits for one."""
        opened = self._open()
        store = opened.store
        if store is None or not store.meta("synced_at"):
            return []

        def ask(text: str, limit: int) -> Sequence[Candidate]:
            question = understand(text)
            return find(store, question, self._dense(opened, question), limit=limit)

        with contextlib.suppress(sqlite3.Error):
            found = starting_points(report, store, ask, most=most)
            if opened.refresh_stale({one.path for one in found}):
                found = starting_points(report, store, ask, most=most)
            return found
        return []

    def chunk(self, chunk_id: str, neighbours: int = 1) -> tuple[Hit, ...]:
        """A chunk with up to `neighbours` (at most 10) chunks before and after it in its file, in order.

        Raises Rejected('tool_errors.fetch_chunk_detail.unknown_chunk') where no chunk has the id (any more), Unavailable
        where the index was closed meanwhile.
        """
        opened = self._open_still()
        store = opened.store
        rows = store.neighbours(chunk_id, max(0, min(neighbours, 10))) if store is not None else []
        if not rows:
            raise Rejected("tool_errors.fetch_chunk_detail.unknown_chunk", chunk_id=chunk_id)
        return tuple(
            _hit(one, 1.0 if one.row.chunk.id == chunk_id else 0.0, "")
            for one in read_texts(self.root, rows, self.settings.max_file_bytes)
        )

    def sync(
        self,
        *,
        progress: SyncProgress | None = None,
        should_stop: Callable[[], bool] = lambda: False,
        rebuild: bool = False,
    ) -> SyncReport:
        """Bring Forest and Map up to date, in the calling thread; with `rebuild` from nothing.

        Raises Rejected('tool_errors.sync_index.not_owner') where another process owns the index, Unavailable where it was
        closed meanwhile. What cannot be written (full disk) is in the report's notes.
        """
        opened = self._open_still()
        if opened.background is None or opened.store is None or opened.synchroniser is None:
            raise Rejected("tool_errors.sync_index.not_owner", holder=self._owner.holder())
        try:
            report = opened.background.run_now(progress, should_stop, anew=rebuild)
            self._map(opened).refresh()
            opened.kick()
        except sqlite3.OperationalError as error:
            return SyncReport(notes=(f"The index could not be written: {error}",), cancelled=True)
        except sqlite3.DatabaseError as error:
            # Not what was open at first: a rebuild has made another file.
            if trouble := self._damaged(opened, str(error), opened.synchroniser.seen_at):
                return SyncReport(notes=trouble, cancelled=True)
            report = opened.background.run_now(progress, should_stop)
        return replace(report, notes=(*report.notes, *opened.remarks(), *self._encoder_notes()))

    def settle(self, progress: SyncProgress) -> None:
        """Wait until ChromaDB has what a sync has stored: for who closes the index next. Raises Unavailable once it is closed."""
        self._open_still().settle(progress)

    def start(self) -> None:
        """Sync in the background where `sync_on_start` and `sync_ttl_hours` want it; returns at once."""
        if not self.settings.sync_on_start:
            return
        opened = self._open()
        if opened.background is None or opened.store is None:
            return
        age = opened.age_hours()
        if age is None or age >= self.settings.sync_ttl_hours:
            opened.background.start()

    def record(self, query: str, symbols: Sequence[str], files: Sequence[str], session_id: str = "") -> Agreement:
        """Keep what a successful session agreed on, as a file and in Map (SPEC 10). Raises OSError."""
        agreement = Map.write(self._folder / "agreements", query, symbols, files, session_id)
        self._agreements_changed()
        return agreement

    def forget(self, query: str, session_id: str) -> str:
        """Take back what this session agreed on; the name of its file, '' where there is none of it. Raises OSError."""
        name = Map.remove(self._folder / "agreements", query, session_id)
        if name:
            self._agreements_changed()
        return name

    def _agreements_changed(self) -> None:
        opened = self._open()
        if opened.store is not None and opened.store.writable:
            with contextlib.suppress(sqlite3.Error):  # the file is what counts: the next question takes it in
                self._map(opened).refresh()
                opened.kick()

    def likeness(self, texts: Sequence[str], query: str) -> tuple[float | None, ...]:
        """Cosine likeness of each text to the query; None without an embedder. For QUERY_FRAME (SPEC 4)."""
        encoder = self._embedder()
        if encoder is None or not texts:
            return (None,) * len(texts)
        scores = encoder.encode(list(texts), "passage") @ encoder.encode([query], "query")[0]
        return tuple(round(float(score), 4) for score in scores)

    def close(self) -> None:
        """Stop what runs, end the ChromaDB child, let another process own the index; a call that comes late finds nothing."""
        with self._lock, contextlib.ExitStack() as ends:
            self._closed = True
            ends.callback(self._owner.release)
            opened, self._opened = self._opened, None
            if opened is not None:
                opened.close()

    # Answering

    def _answer(
        self, opened: OpenIndex, question: Question, limit: int, scope: SearchScope, collection: Collection
    ) -> SearchAnswer:
        if opened.store is None:
            return SearchAnswer((), 0, "none", complete=False, notes=tuple(opened.gaps()))
        vector = self._vector(opened, question)
        agreements: tuple[Agreement, ...] = ()
        if collection is not Collection.FOREST:
            agreements = self._agreements(opened, question, vector)
            hits = self._hits_of_map(opened, agreements, limit)
            # An agreement whose code is gone is no short cut.
            if collection is Collection.MAP or (hits and agreements[0].score >= SHORT_CUT):
                return self._finish(opened, hits, agreements, Collection.MAP, vector is not None)
        found = self._forest(opened, question, vector, limit, scope)
        texts = read_texts(self.root, [one.row for one in found], self.settings.max_file_bytes)
        gone = {read.row.chunk.path for read in texts if not read.fresh and not read.row.chunk.text}
        read_hits = [_hit(read, one.score, describe(one)) for read, one in zip(texts, found, strict=True)]
        hits = [hit for hit in read_hits if hit.path not in gone]
        return self._finish(opened, hits, agreements, Collection.FOREST, vector is not None, gone)

    def _vector(self, opened: OpenIndex, question: Question) -> "Matrix | None":
        """The question's vector; None where vectors cannot be compared."""
        encoder = self._embedder()
        if encoder is None or not opened.has_vectors_of(encoder):
            return None  # the sync that is about to adopt the model makes them anew
        vector = encoder.encode([question.text], "query")[0]
        return vector if vector.any() else None

    def _dense(self, opened: OpenIndex, question: Question) -> DenseSearch | None:
        vector = self._vector(opened, question)
        return opened.dense(vector) if vector is not None else None

    def _agreements(self, opened: OpenIndex, question: Question, vector: "Matrix | None") -> tuple[Agreement, ...]:
        known = self._map(opened)
        known.refresh()
        return known.search(question.text, vector, opened.near_agreements)

    def _forest(
        self, opened: OpenIndex, question: Question, vector: "Matrix | None", limit: int, scope: SearchScope
    ) -> list[Candidate]:
        store = opened.store
        assert store is not None  # checked by _answer
        dense = opened.dense(vector) if vector is not None else None
        found = find(store, question, dense, limit=limit, scope=scope)
        if opened.refresh_stale({one.row.chunk.path for one in found}):
            found = find(store, question, dense, limit=limit, scope=scope)
        return found

    def _hits_of_map(self, opened: OpenIndex, agreements: Sequence[Agreement], limit: int) -> list[Hit]:
        """The chunks that define what the agreements name, those of the best agreement first."""
        store = opened.store
        assert store is not None  # checked by _answer
        rows: dict[int, tuple[ChunkRow, Agreement]] = {}
        for agreement in agreements:
            if agreement.score < SHORT_CUT and rows:
                break
            for row in agreed(store, agreement):
                rows.setdefault(row.seq, (row, agreement))
        found = [*rows.values()][:limit]
        texts = read_texts(self.root, [row for row, _ in found], self.settings.max_file_bytes)
        return [
            _hit(read, agreement.score, f'agreed for "{agreement.query}"')
            for read, (_, agreement) in zip(texts, found, strict=True)
        ]

    def _finish(
        self,
        opened: OpenIndex,
        hits: Sequence[Hit],
        agreements: tuple[Agreement, ...],
        collection: Collection,
        meaning: bool,
        gone: AbstractSet[str] = frozenset(),
    ) -> SearchAnswer:
        stale = {hit.path for hit in hits if not hit.fresh} | gone
        gaps = [*opened.gaps(), *self._encoder_notes()]
        if self._encoder is not None and not opened.has_vectors_of(self._encoder):
            gaps.append("Only words were compared, because the vectors are still those of another model.")
        if stale:
            gaps.append(f"Changed since they were indexed: {', '.join(sorted(stale))}.")
        return SearchAnswer(
            hits=tuple(hits),
            total=len(hits),
            engine=opened.engine(meaning=meaning),
            complete=not gaps,
            collection=collection,
            agreements=agreements,
            pending=opened.pending,
            indexed_files=opened.store.count("files") if opened.store else 0,
            notes=(*gaps, *opened.remarks()),
        )

    # Getting ready

    def _open(self) -> OpenIndex:
        """What is open; a reader tries to become the owner each time."""
        with self._lock:
            opened = self._opened
            if self._closed:
                return OpenIndex(None, None, None, gap="The index was closed, because another project was taken up.")
            if opened is not None and (self._owner.lost or opened.removed):
                self._owner.release()  # the cache may be removed at any time; it is made again, by whoever comes first
            elif opened is not None and (opened.background is not None or not opened.may_own(self._owner)):
                return opened
            if opened is not None:
                opened.close()
            sources = (self.settings, self._lister, self._embedder, self._repository, self._shared)
            self._opened = open_index(IndexSources(self.root, self._folder, *sources), self._owner)
            return self._opened

    def _open_still(self) -> OpenIndex:
        """What is open, for answers that cannot say that nothing is. Raises Unavailable where the index was closed."""
        opened = self._open()
        if self._closed:
            raise Unavailable("tool_errors.generic.project_left")
        return opened

    def _prepare(self, opened: OpenIndex, question: Question, wait: float) -> None:
        """Start the first sync of this process, what the question is likely about first, and wait a moment for it."""
        background = opened.background
        if background is None or background.ran:
            return
        store = opened.store
        empty = store is not None and not store.count("files")
        thread = background.start(relevance(question))
        thread.join(wait if empty else min(wait, CATCH_UP_SECONDS))
        deadline = time.monotonic() + FIRST_BATCH_SECONDS - FIRST_ANSWER_SECONDS
        while (
            wait
            and store is not None
            and thread.is_alive()
            and time.monotonic() < deadline
            and not store.count("chunks")
        ):
            thread.join(FIRST_BATCH_LOOK_SECONDS)

    def _embedder(self) -> Encoder | None:
        with self._encoder_lock:
            if self._encoder is None and not self._encoder_note:
                try:
                    self._encoder = self._load_encoder()
                except CodeIntelError as error:
                    self._encoder_note = f"Only words were compared. {packaged_message(error)}"
            return self._encoder

    def _encoder_notes(self) -> tuple[str, ...]:
        return (self._encoder_note,) if self._encoder_note else ()

    def _map(self, opened: OpenIndex) -> Map:
        with self._lock:
            if opened.map is None:
                assert opened.store is not None  # callers have checked
                opened.map = Map(self._folder / "agreements", opened.store, self._embedder)
            return opened.map

    def _damaged(self, opened: OpenIndex, reason: str, seen_at: int) -> tuple[str, ...]:
        """Replace a damaged store while running, unless that was done since, and fill it again in the background.

        What keeps it from that, in a sentence.
        """
        with self._lock:
            if opened.background is not None and opened.store is not None:
                try:
                    opened.store.rebuild(f"it is damaged ({reason})", seen_at=seen_at)
                except (sqlite3.Error, OSError) as error:
                    return (f"The index is damaged ({reason}) and cannot be replaced: {error}",)
                opened.background.start()
        return ()


def _without_language(answer: SearchAnswer, language: str, store: Store | None) -> SearchAnswer:
    """Nothing was found: say so where nothing in the index is of that language, for it may be misspelt."""
    known = store.languages() if store is not None else []
    if not known or language.strip().lower() in known:
        return answer
    note = f"No indexed file is of the language {valid_text(language)}; there are: {', '.join(known)}."
    return replace(answer, complete=False, notes=(*answer.notes, note))


def _hit(read: ReadChunk, score: float, why: str) -> Hit:
    row, chunk = read.row, read.row.chunk
    return Hit(
        chunk_id=chunk.id,
        path=chunk.path,
        start_line=chunk.start_line,
        end_line=chunk.end_line,
        symbol=chunk.qualified,
        kind=chunk.kind,
        score=round(score, 4),
        why=why,
        text=chunk.text,
        language=row.language,
        fresh=read.fresh,
    )
