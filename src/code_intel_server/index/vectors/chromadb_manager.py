"""ChromaDB as the graph over the store's vectors: opened, proved, filled, repaired, and done without when it fails.

Up to `ChromaSettings.min_chunks` vectors are compared one by one, which is as fast and exact; ChromaDB has nothing to do
then. Above, a thread of ours fills it after each sync; what it has not got yet is compared one by one besides it. At open
it must prove itself: its files have to be as they were left (`seal`), known vectors have to find themselves (its `count()`
stays right when its graph is gone). What fails is set aside and filled again from the store, nothing is embedded anew.

On a server the checkouts and clones of a repository share one collection a model, by what is embedded: what one of them has
embedded the others take from there (`vectors`). Nobody removes anything from it; who asks wants more than he needs, and
keeps what is his.
"""

import base64
import contextlib
import hashlib
import os
import platform
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from code_intel_server.common.child_link import ChildFailedError
from code_intel_server.index.storage.fingerprint import FolderFingerprint
from code_intel_server.index.storage.rows import OutboxItem, passage_key, unpack
from code_intel_server.index.storage.store import Store
from code_intel_server.index.values import ChromaMode, ChromaSettings
from code_intel_server.index.vectors.chroma_link import ChromaLink
from code_intel_server.index.vectors.dense import compared

if TYPE_CHECKING:
    from code_intel_server.index.values import Matrix

VECTORS_A_BATCH = 2048
"""Vectors handed over at once, where so many wait: a fifth less work for ChromaDB than with 512."""

BATCH_SECONDS = 120.0
PROBE_IDS = 200
PROBE_RECALL = 0.95
PROBE_NEIGHBOURS = 10
SAME_COSINE = 0.9995
ATTEMPTS = 3
"""How often a child that ended or hung is replaced before ChromaDB waits for the next sync."""

WAITING_AT_MOST = 512
"""Vectors that ChromaDB has not got yet and that are compared besides it; with more all are compared in the store."""

OVER_FETCH = 4
"""So many times as many vectors are asked for where others' are among them."""

CRASHES_FORGIVEN = 1
"""How many times in a row the child may end or hang while it opens the folder before the folder is set aside."""
FORMAT = 2
COLLECTIONS = ("forest", "map")


class ChromaState(StrEnum):
    """What ChromaDB can do just now."""

    OFF = "off"
    EXACT = "exact"
    """Not needed for so few vectors."""
    CLOSED = "closed"
    FILLING = "filling"
    READY = "ready"
    FAILED = "failed"


class ChromaManager:
    """Owns the child; only the owner of the index may have one."""

    def __init__(
        self,
        root: Path,
        folder: Path,
        store: Store,
        settings: ChromaSettings,
        repository: Callable[[], str] = lambda: "",
    ) -> None:
        """`folder` is `.code-intel`; `repository` gives what its clones have in common, '' for none."""
        self._root = root
        self._repository = repository
        self._folder = folder / "chroma"
        self._cache = folder / "cache"
        self._store = store
        self._settings = settings
        self._seal = (
            FolderFingerprint(self._folder, self._cache / "chroma.seal") if settings.mode is ChromaMode.LOCAL else None
        )
        self._shared = store.by_passage = settings.mode is ChromaMode.HTTP
        self._changed = threading.Condition()
        self._asked = False
        self._stopped = False
        self._thread: threading.Thread | None = None
        self._link: ChromaLink | None = None
        self._epoch = -1
        self._identities: dict[str, dict[str, str | int]] = {}
        self._is_open = False
        self._sends_all = False
        """Whether vectors that the server has are sent once more: some of them could not be found."""
        self._crashed_opens = 0
        self.state = ChromaState.OFF if settings.mode is ChromaMode.OFF else ChromaState.CLOSED
        self.reason = ""
        """Why it failed, in a sentence; '' where it did not."""
        self.rebuilt: list[str] = []
        """What had to be rebuilt, in sentences."""

    # For searches

    def near(self, key: str, vector: "Matrix", limit: int) -> dict[str, float] | None:
        """Cosines of the nearest ids; None where ChromaDB cannot answer or has too little of what is stored.

        On a server those of "forest" are keys of passages, other checkouts' among them.
        """
        link = self._link
        if link is None or not self.answers:
            return None
        waiting = self._store.outbox(key, WAITING_AT_MOST + 1)
        if len(waiting) > WAITING_AT_MOST:
            return None
        request = {"op": "near", "key": key, "limit": limit * (OVER_FETCH if self._shared else 1)}
        try:
            found = link.ask(request, vector.reshape(1, -1), timeout=self._settings.timeout)
        except ChildFailedError as error:
            self._fail(str(error), link)
            self.kick()
            return None
        cosines = dict(zip(found["ids"][0], found["cosines"][0], strict=True)) if found["ids"] else {}
        return cosines | compared(waiting, vector)

    def vectors(self, passages: Sequence[int]) -> dict[int, bytes]:
        """The vectors of passages that another checkout has brought to the server; none where it does not answer."""
        link = self._lending() if passages else None
        if link is None:
            return {}
        request = {"op": "vectors", "key": "forest", "ids": [*map(passage_key, passages)]}
        try:
            found = link.ask(request, timeout=self._settings.timeout)
        except ChildFailedError as error:
            self._fail(str(error), link)
            return {}
        packed, ids = base64.b64decode(found["vectors"]), found["ids"]
        size = len(packed) // max(1, len(ids))
        numbers = {passage_key(passage): passage for passage in passages}
        return {numbers[ident]: packed[at * size : (at + 1) * size] for at, ident in enumerate(ids)}

    def _lending(self) -> ChromaLink | None:
        """The opened server of the model that is used now, where checkouts share one; not waited for where it failed."""
        if not self._shared or self.state is ChromaState.FAILED:
            return None
        if not self._is_open:
            self.kick()
        with self._changed:
            self._changed.wait_for(lambda: self._is_open or self._thread is None, self._settings.open_timeout)
            known = self._is_open and self._identities["forest"]["model"] == self._store.meta("model")
            return self._link if known else None

    @property
    def answers(self) -> bool:
        """Whether it is open, proved, and of the store that is there now."""
        return self.state is ChromaState.READY and self._is_same_store()

    def counts(self) -> dict[str, int] | None:
        """How many vectors ChromaDB says it holds; None where it cannot answer. For people: it proves nothing."""
        try:
            counts: dict[str, int] = self._ask({"op": "count"})["counts"]
        except ChildFailedError:
            return None
        return counts

    def kick(self) -> None:
        """The store may have something new; returns at once."""
        with self._changed:
            if self.state is ChromaState.OFF or self._stopped:
                return
            self._asked = True
            if self._thread is None:
                thread = threading.Thread(target=self._work, name="chroma", daemon=True)
                thread.start()  # may fail where there are no more threads; it waits for the lock
                self._thread = thread

    def await_ready(self, timeout: float) -> bool:
        """Wait until ChromaDB has everything; False where `timeout` seconds were not enough or it is not used."""
        deadline = time.monotonic() + timeout
        with self._changed:
            while self._thread is not None or not self.answers or self._store.outbox_size():
                left = deadline - time.monotonic()
                unused = self._thread is None and self.state in {ChromaState.OFF, ChromaState.EXACT}
                if left <= 0 or unused:
                    return False
                self._changed.wait(left)
        return True

    @property
    def fills(self) -> bool:
        """Whether it is being filled just now."""
        return self._thread is not None and not self._stopped

    @property
    def child_pid(self) -> int | None:
        """The child's process id while there is one."""
        link = self._link
        return link.pid if link is not None else None

    def close(self) -> None:
        """End the child and the thread."""
        with self._changed:
            link, thread = self._link, self._thread
            settled = self.state is ChromaState.READY and link is not None and not self._stopped
            self._stopped = True
        if link is not None:
            link.close()
        if thread is not None and thread is not threading.current_thread():
            thread.join(5.0)
        if settled and self._seal is not None:
            self._seal.put()

    # The thread

    def _work(self) -> None:
        as_it_should = False
        try:
            while self._is_asked():
                self._try()
            as_it_should = True
        finally:
            if not as_it_should:  # nobody may believe that it still fills; the next kick starts another
                self._fail("the thread that fills it ended unexpectedly", self._link)
                self._end_thread()

    def _is_asked(self) -> bool:
        """Whether there is something to do; else the thread has ended for whoever looks."""
        with self._changed:
            asked, self._asked = self._asked and not self._stopped, False
            if not asked:
                self._end_thread()
            return asked

    def _end_thread(self) -> None:
        with self._changed:
            self._thread = None
            self._changed.notify_all()

    def _try(self) -> None:
        for _ in range(ATTEMPTS):
            try:
                self._bring_up_to_date()
            except (ChildFailedError, OSError, sqlite3.Error) as error:
                self._fail(str(error), self._link)
                if isinstance(error, ChildFailedError) and error.crashed and not self._stopped:
                    continue
            return

    def _bring_up_to_date(self) -> None:
        while not self._stopped:
            if self._is_not_needed():
                self._retire()
                return
            if self._link is not None and not self._is_same_store():
                self._let_go()
            if self._link is None:
                self._open()
            self._fill()
            if self._is_same_store():
                break
        with self._changed:
            if self._link is not None:  # else a search found it ended meanwhile, and has said so
                self._set(ChromaState.READY)

    def _is_not_needed(self) -> bool:
        """Whether so few vectors are compared one by one; half as many where the folder is there already."""
        few = self._settings.min_chunks
        if self._settings.mode is ChromaMode.HTTP or not few:
            return False
        return self._store.count("chunks") < (few // 2 if self._link is not None else few)

    def _retire(self) -> None:
        """Do without ChromaDB, and without its folder: a later one is filled from nothing."""
        self._let_go()
        shutil.rmtree(self._folder, ignore_errors=True)
        if not os.path.lexists(self._folder):
            self._store.use_chroma("")
        self._set(ChromaState.EXACT)

    def _is_same_store(self) -> bool:
        """Whether the store's file is still the one whose vectors ChromaDB holds."""
        return self._epoch == self._store.epoch

    def _set(self, state: ChromaState) -> None:
        with self._changed:
            self.state = state
            self.reason = ""
            self._changed.notify_all()

    def _fail(self, reason: str, link: ChromaLink | None) -> None:
        """Do without `link`, which failed; nothing where another one has taken its place meanwhile."""
        with self._changed:
            if link is self._link:
                self._link = None
                self.reason = f"ChromaDB failed ({reason}); vectors are searched in SQLite meanwhile."
                self.state = ChromaState.FAILED
                self._is_open = False
                self._changed.notify_all()
        if link is not None:
            link.close()

    def _let_go(self) -> None:
        """End the child, if there is one."""
        with self._changed:
            link, self._link, self._is_open = self._link, None, False
        if link is not None:
            link.close()

    # Opening and proving

    def _open(self) -> None:
        self._set(ChromaState.FILLING)
        self._epoch = self._store.epoch
        forest: dict[str, str | int] = {"model": self._store.meta("model"), "format": FORMAT}
        of_store = forest | {"store": self._store.meta("store")}
        self._identities = {"forest": forest if self._shared else of_store, "map": of_store}
        used = self._store.meta("chroma") == str(self._settings.mode)
        self._store.use_chroma(str(self._settings.mode))
        self._break_seal()
        try:
            opened = self._connect()
        except ChildFailedError as error:
            if not self._blames_folder(error):
                raise
            self._set_aside(str(error))
            opened = self._connect()
        if opened["created"]:
            if used:  # else it has just been filled
                self._store.refill_outbox()
        elif (problem := self._problem(opened["counts"])) and self._is_same_store():
            self._start_over(problem)
        self._crashed_opens = 0
        with self._changed:
            self._is_open = self._link is not None
            self._changed.notify_all()

    def _names(self) -> dict[str, str]:
        """What the collections are called."""
        if not self._shared:
            return {key: key for key in COLLECTIONS}
        own = project_key(self._root)
        return {"forest": shared_collection(self._repository() or own, self._store.meta("model")), "map": f"map-{own}"}

    def _break_seal(self) -> None:
        """Set a folder aside that was changed while nobody had it open, or that leads ChromaDB to files elsewhere."""
        if self._seal is None:
            return
        if self._seal.holds_links():
            self._set_aside("it holds links that lead elsewhere")
        changed = self._seal.broken()
        if changed:
            self._set_aside(f"{changed} was changed while nobody had it open")
        self._seal.lift()

    def _blames_folder(self, error: ChildFailedError) -> bool:
        """Whether a failure to open it, or to find in it, means that the folder is damaged.

        A child that ended or hung may have been killed, or starved of processor time; only one that does so again
        was brought down by what it read.
        """
        if self._stopped or self._settings.mode is ChromaMode.HTTP or "another process has" in str(error):
            return False
        self._crashed_opens += error.crashed
        return not error.crashed or self._crashed_opens > CRASHES_FORGIVEN

    def _connect(self) -> dict[str, Any]:
        settings = self._settings
        request = {
            "op": "open",
            "mode": str(settings.mode),
            "path": str(self._folder),
            "lock": str(self._cache / "chroma.lock"),
            "host": settings.host,
            "port": settings.port,
            "ssl": settings.ssl,
            "headers": dict(settings.headers),
            "tenant": settings.tenant,
            "database": settings.database,
            "identities": self._identities,
            "names": self._names(),
        }
        link = ChromaLink(self._cache)
        with self._changed:
            if not self._stopped:
                self._link = link  # at once: who closes the index need not wait until it has opened
        try:
            if self._link is not link:
                raise ChildFailedError("the index is closed", crashed=False)
            return link.ask(request, timeout=settings.open_timeout)
        except ChildFailedError:
            self._let_go()
            link.close()
            raise

    def _problem(self, counts: dict[str, int]) -> str:
        """What is wrong with an opened ChromaDB, '' where nothing is."""
        held = self._store.settled()
        if held is not None and (counts["forest"] < held["forest"] if self._shared else held != counts):
            return f"it holds {counts['forest']} of {held['forest']} vectors"
        # What still waits to be sent cannot be found and proves nothing.
        sample = self._store.sample_ids(PROBE_IDS, sent=True)
        if not sample:
            return ""
        vectors = unpack([vector for _, vector in sample], len(sample[0][1]) // 2)
        try:
            found = self._ask({"op": "near", "key": "forest", "limit": PROBE_NEIGHBOURS}, vectors)
        except ChildFailedError as error:
            if not self._blames_folder(error):
                raise
            return str(error)
        recalled = sum(
            ident in ids or (bool(cosines) and cosines[0] >= SAME_COSINE)
            for (ident, _), ids, cosines in zip(sample, found["ids"], found["cosines"], strict=True)
        )
        if recalled < PROBE_RECALL * len(sample):
            return f"{len(sample) - recalled} of {len(sample)} known chunks could not be found again"
        return ""

    def _start_over(self, problem: str) -> None:
        if self._settings.mode is ChromaMode.LOCAL:
            self._set_aside(problem)
            self._connect()
        else:
            self.rebuilt.append(f"The ChromaDB collection was filled anew, because {problem}.")
            self._sends_all = True
        self._store.refill_outbox()

    def _set_aside(self, problem: str) -> None:
        """Move the folder out of the way; the last such folder is kept, for whoever wants to look."""
        self._let_go()
        kept = self._cache / "chroma.damaged"
        shutil.rmtree(kept, ignore_errors=True)
        with contextlib.suppress(FileNotFoundError):
            self._folder.rename(kept)
        self.rebuilt.append(f"The ChromaDB folder was set aside as {kept.name} and filled anew, because {problem}.")

    # Filling

    def _fill(self) -> None:
        """Hand over everything that the store has in its outbox."""
        for key in COLLECTIONS:
            while not self._stopped and self._is_same_store() and (items := self._store.outbox(key, VECTORS_A_BATCH)):
                self._set(ChromaState.FILLING)
                self._hand_over(key, items)
                self._store.acknowledge(key, items[-1].seq, seen_at=self._epoch)
        self._sends_all = self._sends_all and bool(self._store.outbox_size())

    def _hand_over(self, key: str, items: list[OutboxItem]) -> None:
        # The store says what is true now, so of several changes to one id only that counts.
        latest = {item.id: item.vector for item in items}
        shared = self._shared and key == "forest"
        gone = [ident for ident, vector in latest.items() if vector is None and not shared]
        put = {ident: vector for ident, vector in latest.items() if vector is not None}
        if gone:
            self._ask({"op": "drop", "key": key, "ids": gone})
        if put and shared and not self._sends_all:  # what another checkout has brought need not be sent again
            for ident in self._ask({"op": "known", "key": key, "ids": list(put)})["ids"]:
                del put[ident]
        if put:
            blobs = list(put.values())
            self._ask({"op": "put", "key": key, "ids": list(put)}, unpack(blobs, len(blobs[0]) // 2))

    def _ask(self, request: dict[str, Any], vectors: "Matrix | None" = None) -> dict[str, Any]:
        link = self._link
        if link is None:
            raise ChildFailedError("it ended", crashed=True)
        return link.ask(request, vectors, timeout=max(self._settings.timeout, BATCH_SECONDS))


def project_key(root: Path) -> str:
    """Names the collections of one checkout on one machine, on a server that many may share."""
    return _hashed(f"{platform.node()}\0{root.resolve()}")


def shared_collection(repository: str, model: str) -> str:
    """Names the collection of all checkouts of a repository with the same model."""
    return "forest-" + _hashed(f"{repository}\0{model}\0{FORMAT}")


def _hashed(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
