"""What of an index is open in this process: as its owner, as a reader, or not at all."""

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from code_intel_server.index.background import BackgroundSync
from code_intel_server.index.map import Map
from code_intel_server.index.retrieval.search import DenseSearch
from code_intel_server.index.storage.ownership import OwnerLock
from code_intel_server.index.storage.store import Store
from code_intel_server.index.sync import KnownVectors, Synchroniser, model_key
from code_intel_server.index.values import ChromaMode, FileLister, IndexSettings, SyncProgress
from code_intel_server.index.vectors.chromadb_manager import ChromaManager
from code_intel_server.index.vectors.dense import BruteForce
from code_intel_server.index.vectors.embedding import Encoder
from code_intel_server.workspace.paths import aimed_elsewhere

if TYPE_CHECKING:
    from code_intel_server.index.values import Matrix

DATABASE = Path("cache") / "index.sqlite3"
MAX_REFRESHED = 20
OWNER_RETRY_SECONDS = 1.0
SETTLE_LOOK_SECONDS = 0.2


class OpenIndex:
    """The open parts. `store` is None where a reader finds no index; only the owner has a `background`."""

    def __init__(
        self,
        store: Store | None,
        synchroniser: Synchroniser | None,
        background: BackgroundSync | None,
        chroma: ChromaManager | None = None,
        note: str = "",
        gap: str = "",
    ) -> None:
        """`note` says why this process does not write, `gap` what is therefore missing."""
        self.store = store
        self.synchroniser = synchroniser
        self.background = background
        self.chroma = chroma
        self.map: Map | None = None
        self._note, self._gap = note, gap
        self._brute = BruteForce(store) if store is not None else None
        self._asked_at = time.monotonic()

    def has_vectors_of(self, encoder: Encoder) -> bool:
        """Whether the vectors that are there are this model's: those of another may not be compared with its."""
        return self.store is not None and self.store.meta("model") == model_key(encoder)

    @property
    def pending(self) -> int:
        """Files known to want indexing, by whoever owns the index."""
        if self.background is None and self.store is not None:
            told = self.store.meta("pending")
            return int(told) if told.isdigit() else 0
        return self.synchroniser.pending if self.synchroniser is not None else 0

    @property
    def epoch(self) -> int:
        """Which of the files is open that the store has had."""
        return self.store.epoch if self.store is not None else 0

    def may_own(self, owner: OwnerLock) -> bool:
        """Whether a reader can now become the owner; asked at most once a second."""
        if time.monotonic() - self._asked_at < OWNER_RETRY_SECONDS:
            return False
        self._asked_at = time.monotonic()
        try:
            return owner.acquire()
        except OSError:
            return False

    @property
    def removed(self) -> bool:
        """Whether somebody took away what we own."""
        return self.store is not None and self.store.removed

    def gaps(self) -> list[str]:
        """What keeps an answer from being complete, in sentences."""
        gaps = [self._gap] if self._gap else []
        background, store = self.background, self.store
        if store is None:
            return gaps
        if background is not None and background.trouble and not background.running:
            gaps.append(background.trouble)
        if self.pending:
            gaps.append(f"{self.pending} files are still to be indexed.")
        elif (background is None or background.running) and not store.meta("synced_at"):
            gaps.append("The first index is being built.")
        return gaps

    def remarks(self) -> list[str]:
        """What was repaired or is done in a slower way, a sentence each; the answers are none the worse."""
        remarks = [self._note] if self._note else []
        remarks += self.store.remarks() if self.store is not None else []
        if self.chroma is not None:
            remarks += [*self.chroma.rebuilt, *([self.chroma.reason] if self.chroma.reason else [])]
        return list(dict.fromkeys(remarks))

    def engine(self, *, meaning: bool) -> str:
        """What answers."""
        if self.store is None:
            return "none"
        if not meaning:
            return "bm25"
        return "chromadb+bm25" if self.chroma is not None and self.chroma.answers else "sqlite-vectors+bm25"

    def age_hours(self) -> float | None:
        """Hours since the last complete sync; None where there was none. A clock that went back counts as long ago."""
        synced_at = self.store.meta("synced_at") if self.store is not None else ""
        if not synced_at:
            return None
        age = (time.time() - float(synced_at)) / 3600
        return age if age >= 0 else float("inf")

    def dense(self, vector: "Matrix") -> DenseSearch:
        """A vector search for this question."""

        def search(limit: int, files: Collection[int] | None) -> dict[int, float]:
            # Within a folder or language the store answers: exactly, and without asking ChromaDB for too many.
            near = self.chroma.near("forest", vector, limit) if self.chroma is not None and files is None else None
            if near is not None and self.store is not None and (found := self._own(near, limit)):
                if self._brute is not None:
                    self._brute.forget_unused()
                return found
            return self._brute.search(vector, limit, files) if self._brute is not None else {}

        return search

    def _own(self, near: dict[str, float], limit: int) -> dict[int, float]:
        """What was found, by our chunks; nothing where too much of it is of other checkouts."""
        store = self.store
        assert store is not None  # checked by the caller
        if not store.by_passage:
            return {seq: near[ident] for seq, ident in store.seqs_by_id(near).items()}
        found = {seq: near[key] for seq, key in store.view().of_passages(near).items()}
        return found if len(found) >= min(limit, store.count("chunks")) else {}

    def near_agreements(self, vector: "Matrix", limit: int) -> dict[str, float] | None:
        """Agreements near a vector, from ChromaDB; None where it cannot answer."""
        return self.chroma.near("map", vector, limit) if self.chroma is not None else None

    def kick(self) -> None:
        """Something was written that ChromaDB does not have yet."""
        if self.chroma is not None:
            self.chroma.kick()

    def settle(self, progress: SyncProgress) -> None:
        """Wait until ChromaDB has everything that is stored; not for one that fails, nor for a store that cannot be read."""
        chroma, store = self.chroma, self.store
        if chroma is None or store is None:
            return
        with contextlib.suppress(sqlite3.Error):
            total = store.outbox_size()
            while chroma.fills and not chroma.await_ready(SETTLE_LOOK_SECONDS):
                progress(max(0, total - store.outbox_size()), total, "")

    def stale(self, paths: Iterable[str]) -> list[str]:
        """Those of the files that no longer are what was indexed."""
        return self.synchroniser.stale(paths) if self.synchroniser is not None else []

    def refresh_stale(self, paths: Iterable[str]) -> bool:
        """Index those of the files anew that have changed; True where that was done. A running sync is not waited for."""
        if self.synchroniser is None or self.background is None:
            return False
        stale = self.stale(paths)[:MAX_REFRESHED]
        refreshed = bool(stale) and self.synchroniser.refresh(stale)
        if refreshed:
            self.kick()
        return refreshed

    def close(self) -> None:
        """Stop what runs and close the store, each of them whatever becomes of the others."""
        with contextlib.ExitStack() as ends:  # from the last to the first
            if self.store is not None:
                ends.callback(self.store.close)
            if self.chroma is not None:
                ends.callback(self.chroma.close)
            if self.background is not None:
                ends.callback(self.background.stop)


@dataclass(frozen=True, slots=True)
class IndexSources:
    """What an index is made of and made with; `folder` is `.code-intel`."""

    root: Path
    folder: Path
    settings: IndexSettings
    lister: FileLister
    encoder: Callable[[], Encoder | None]
    repository: Callable[[], str] = lambda: ""
    """What all clones of the repository have in common; '' for none."""
    shared: Callable[[], Path | None] = lambda: None
    """The folder in which the checkouts of one repository keep what their files hold; None where each keeps its own."""


def open_index(project: IndexSources, owner: OwnerLock) -> OpenIndex:
    """Open as the owner where nobody else is, else as a reader; never fails for the state of the index."""
    database = project.folder / DATABASE
    try:
        if not owner.acquire():
            return _open_reader(
                project, database, note=f"Another server ({owner.holder()}) keeps the index up to date."
            )
    except OSError as error:
        # Nobody can write here, so nobody owns it: read what there is, or work in a temporary folder.
        if not (aimed_elsewhere(database) or not os.access(database, os.R_OK)):
            return _open_reader(project, database, gap=f"The index folder cannot be written ({error.strerror}).")
    store = Store(database, writable=True, shared=project.shared())
    chroma_settings = project.settings.chroma
    if store.temporary and chroma_settings.mode is ChromaMode.LOCAL:
        chroma_settings = replace(chroma_settings, mode=ChromaMode.OFF)
    chroma = ChromaManager(project.root, project.folder, store, chroma_settings, project.repository)
    synchroniser = _synchroniser(project, store, chroma.vectors)

    def replace_damaged(reason: str) -> None:
        store.rebuild(f"it is damaged ({reason})", seen_at=synchroniser.seen_at)

    background = BackgroundSync(synchroniser, chroma.kick, replace_damaged)
    return OpenIndex(store, synchroniser, background, chroma)


def _open_reader(project: IndexSources, database: Path, *, note: str = "", gap: str = "") -> OpenIndex:
    try:
        store = Store(database, writable=False, shared=project.shared())
    except (sqlite3.Error, OSError):
        return OpenIndex(None, None, None, gap=f"{gap or note} It has nothing to read yet.")
    return OpenIndex(store, _synchroniser(project, store), None, note=note, gap=gap)


def _synchroniser(project: IndexSources, store: Store, known: KnownVectors = lambda _: {}) -> Synchroniser:
    return Synchroniser(project.root, store, project.settings, project.lister, project.encoder, known)
