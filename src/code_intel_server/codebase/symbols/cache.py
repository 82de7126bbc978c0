"""The symbol cache: always asked first, never believed further than the files themselves (SPEC 8).

Two clocks keep it honest without a daemon. Every file that an answer names is looked at again before the answer leaves
(`recheck`). The whole project is compared with the cache (`verify`) before an answer whenever the last comparison is
older than twenty times what it cost: so it takes at most a twentieth of the time, a tenth of a second on 50,000 files
every few seconds, and "nothing found" is never said without one.
"""

import math
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock

from code_intel_server.codebase.files.ignore import files_of_any_size
from code_intel_server.codebase.files.project import MAX_FILE_BYTES, ProjectScope
from code_intel_server.codebase.symbols.store import Stamp, StoredFile, StoredSymbol, SymbolStore
from code_intel_server.codebase.symbols.tagging import Tagging, content_keys, tag_files, taggable

FILES_A_BATCH = 400
INLINE_LIMIT = 300
"""So many changed files a lookup brings up to date itself; more are left to `refresh_all`."""

_VERIFY_SHARE = 20
LOOKUP_SECONDS = 5.0
"""Most that a lookup waits for changed files to be tagged."""

COMPARE_SECONDS = 10.0
"""Most that a lookup waits for the files to be compared with the cache."""

_BATCH_SECONDS = 30.0
RACY_NS = 2_000_000_000
"""A file that was written so shortly before may have been written once more without its look telling."""

_WORKERS = 2

TaggingProgress = Callable[[int, int], None]
"""Called with (files done, files to do)."""


@dataclass(frozen=True, slots=True)
class CacheDifference:
    """How the project differs from the cache: files to tag, files that are gone.

    `unseen` are those that time did not suffice for; `walked_at` is when the tree was walked, in monotonic seconds.
    """

    pending: tuple[str, ...]
    gone: tuple[str, ...]
    problems: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    walked_at: float = -math.inf


@dataclass(frozen=True, slots=True)
class Refresh:
    """What a refresh did."""

    tagged: int
    unchanged: int
    removed: int
    problems: tuple[str, ...]
    seconds: float
    cancelled: bool = False


@dataclass(frozen=True, slots=True)
class _Batch:
    """Files that were looked at: what those hold that were tagged, and how many were known by their content or `unchanged`."""

    size: int
    files: tuple[StoredFile, ...]
    adopted: int
    unchanged: int
    problems: tuple[str, ...]


class SymbolCache:
    """Definitions of one project. Safe to use from several threads and processes at once."""

    def __init__(self, project: ProjectScope, shared: Callable[[], Path | None] = lambda: None) -> None:
        """`shared` gives the folder in which all checkouts of the repository keep what their files define."""
        self.project = project
        self.store = SymbolStore(project, shared)
        self._lock = Lock()
        self._difference: CacheDifference | None = None
        self._verified_until = -math.inf

    @property
    def pending(self) -> int:
        """How many files the last comparison found untagged or changed; 0 before the first."""
        return len(self._difference.pending) if self._difference else 0

    def verify(self, *, force: bool = False, fresh: bool = False) -> CacheDifference:
        """Compare project and cache, unless that was done recently enough; forgets files that are gone.

        With `fresh` in any case, with `force` also however long it takes.
        """
        if force:  # a lookup does not wait for as long as that may take
            started = time.monotonic()
            difference = self._compare(math.inf)
            with self._lock:
                return self._take(difference, started)
        with self._lock:
            if self._difference is not None and not fresh and time.monotonic() < self._verified_until:
                return self._difference
            started = time.monotonic()
            return self._take(self._compare(COMPARE_SECONDS), started)

    def _take(self, difference: CacheDifference, started: float) -> CacheDifference:
        self._difference = difference
        cost = time.monotonic() - started
        self._verified_until = started + cost + _VERIFY_SHARE * cost
        if difference.gone:
            self.store.forget(difference.gone)
        return difference

    def refresh(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Bring these files up to date (those that are gone are forgotten); returns what went wrong, a sentence each."""
        wanted = sorted(set(paths))
        stamps = {path: stamp for path in wanted if (stamp := stamp_of(self.project, path))}
        if missing := [path for path in wanted if path not in stamps]:
            self.store.forget(missing)
        changed = self._changed(stamps)
        problems: list[str] = []
        deadline = time.monotonic() + LOOKUP_SECONDS
        for batch in _batches(sorted(changed)):
            left = deadline - time.monotonic()
            if left <= 0:
                problems.append("the time limit ended the tagging of changed files")
                break
            tagged = self._tag({path: changed[path] for path in batch}, left)
            self.store.put(tagged.files)
            problems += tagged.problems
        self._settle(set(stamps) if not problems else set())
        return tuple(problems)

    def recheck(self, symbols: Sequence[StoredSymbol]) -> bool:
        """Look again at every file these symbols are in; True where some had changed and are now up to date."""
        stamps = {symbol.path: symbol.stamp for symbol in symbols}
        stale = {path for path, stamp in stamps.items() if stamp_of(self.project, path) != stamp}
        if stale:
            self.refresh(stale)
        return bool(stale)

    def refresh_all(
        self, progress: TaggingProgress = lambda _done, _total: None, cancelled: Callable[[], bool] = lambda: False
    ) -> Refresh:
        """Bring every file up to date; meant for a thread of its own. Already committed batches survive a cancel."""
        started = time.monotonic()
        difference = self.verify(force=True)
        is_new = self.store.empty
        problems = list(difference.problems)
        tagged = unchanged = done = 0
        with self.store.in_bulk() if is_new else nullcontext():
            for batch in self._tag_in_parallel(_batches(difference.pending), is_new, cancelled):
                self.store.put(batch.files)
                problems += batch.problems
                tagged += batch.adopted + len(batch.files)
                unchanged += batch.unchanged
                done += batch.size
                progress(done, len(difference.pending))
        finished = not cancelled()
        if finished:
            self.store.index()
            self.store.clean_up()
            self._difference = replace(difference, pending=(), gone=())
        return Refresh(
            tagged=tagged,
            unchanged=unchanged,
            removed=len(difference.gone),
            problems=tuple(dict.fromkeys(problems)),
            seconds=time.monotonic() - started,
            cancelled=not finished,
        )

    def _settle(self, paths: set[str]) -> None:
        with self._lock:
            if self._difference is not None:
                left = tuple(path for path in self._difference.pending if path not in paths)
                unseen = tuple(path for path in self._difference.unseen if path not in paths)
                self._difference = replace(self._difference, pending=left, unseen=unseen)

    def _compare(self, seconds: float) -> CacheDifference:
        started = time.monotonic()
        # Before the walk: what another thread tags meanwhile is not taken for gone.
        known = self.store.stamps()
        listing = files_of_any_size(self.project)
        paths = [path for path in listing.paths if taggable(path)]
        pending, gone, left = self._held_against(paths, known, time.monotonic() + seconds)
        problems = (
            *listing.problems,
            *([f"{left} files were not compared with the symbol cache in time"] if left else []),
        )
        unseen = tuple(paths[len(paths) - left :])
        return CacheDifference(tuple(pending), () if problems else tuple(gone), problems, unseen, started)

    def _held_against(
        self, paths: Sequence[str], known: Mapping[str, Stamp], deadline: float
    ) -> tuple[list[str], list[str], int]:
        """Which files look otherwise than known, and which of the known are gone; how many were not looked at in time."""
        pending: list[str] = []
        there: set[str] = set()
        for place, path in enumerate(paths):
            if place % FILES_A_BATCH == 0 and time.monotonic() > deadline:
                return pending, [], len(paths) - place
            stamp = stamp_of(self.project, path)
            if stamp is not None:
                there.add(path)
                if stamp != known.get(path):
                    pending.append(path)
        return pending, [path for path in known if path not in there], 0

    def _changed(self, stamps: Mapping[str, Stamp]) -> Mapping[str, Stamp]:
        """Those files that look otherwise than when they were tagged."""
        known = self.store.stamps_of(stamps)
        return {path: stamp for path, stamp in stamps.items() if known.get(path) != stamp}

    def _tag(self, stamps: Mapping[str, Stamp], seconds: float, *, is_new: bool = False) -> "_Batch":
        """Take over what is known of the content of files, and tag the others, which are then to be put into the store."""
        root, began = self.project.root, time.time_ns()
        keys = {} if is_new else content_keys(root, stamps)
        adopted = self.store.adopt({path: (stamps[path], key) for path, key in keys.items()}) if keys else set()
        lacking = sorted(stamps.keys() - adopted)
        tagging = tag_files(root, lacking, seconds=seconds) if lacking else Tagging(())
        # The stamp was taken before the tagging: a file edited meanwhile looks changed next time.
        keys = content_keys(root, lacking) if is_new else keys
        files = []
        for file in tagging.files:
            stamp = stamps[file.path]
            settled = stamp.ctime_ns < began - RACY_NS and stamp_of(self.project, file.path) == stamp
            key = keys.get(file.path) if settled else None
            files.append(StoredFile(file.path, stamp, file.engine, file.tags, key))
        return _Batch(len(stamps), tuple(files), len(adopted), 0, tagging.problems)

    def _tag_in_parallel(
        self, batches: Iterable[Sequence[str]], is_new: bool, cancelled: Callable[[], bool]
    ) -> Iterator["_Batch"]:
        """Tag what has changed while the caller stores what came before; `is_new` where the cache knows nothing yet."""

        def work(batch: Sequence[str]) -> _Batch | None:
            """Look at one batch and tag it in a thread of the pool; None once cancelled."""
            if cancelled():
                return None
            stamps = {path: stamp for path in batch if (stamp := stamp_of(self.project, path))}
            changed = stamps if is_new else self._changed(stamps)
            tagged = self._tag(changed, _BATCH_SECONDS, is_new=is_new)
            return replace(tagged, size=len(batch), unchanged=len(stamps) - len(changed))

        # Only a little ahead of the caller, so that a large project does not pile up in memory.
        waiting: deque[Future[_Batch | None]] = deque()
        with ThreadPoolExecutor(_WORKERS, thread_name_prefix="tagging") as pool:
            for batch in batches:
                waiting.append(pool.submit(work, batch))
                if len(waiting) > 2 * _WORKERS:
                    yield from filter(None, [waiting.popleft().result()])
            while waiting:
                yield from filter(None, [waiting.popleft().result()])


def stamp_of(project: ProjectScope, path: str) -> Stamp | None:
    """How a file looks now; None for what is no regular file of at most 1 MB.

    By its change time: an unpacked archive sets the other one back, or to a year no table holds.
    """
    try:
        status = os.lstat(f"{project.root}/{path}")
    except (OSError, ValueError):
        return None
    regular = (status.st_mode & 0o170000) == 0o100000
    return Stamp(status.st_ctime_ns, status.st_size) if regular and status.st_size <= MAX_FILE_BYTES else None


def _batches(paths: Sequence[str]) -> Iterator[Sequence[str]]:
    return (paths[start : start + FILES_A_BATCH] for start in range(0, len(paths), FILES_A_BATCH))
