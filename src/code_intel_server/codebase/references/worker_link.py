"""Tells the uses in many files, some of them in a process of its own that stays warm between questions.

Nobody ever waits for that process. It is given files ahead, the largest first, while we go on with the next ones here;
when none is left, we do those that it has not answered yet, the last given first, until it answers or all is done. So a
process that comes up slowly, hangs or is killed costs the time it would have saved and nothing else.
"""

import contextlib
import os
import selectors
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from pathlib import Path

from code_intel_server.codebase.files.ripgrep import FileMatches
from code_intel_server.codebase.references.classify import NameQuery, ReferenceRow, Told
from code_intel_server.codebase.syntax.skeletons import Skeleton, of_project
from code_intel_server.common.child_link import ChildLink
from code_intel_server.common.child_wire import frame

WORTH_A_PROCESS = 1_500_000
"""Bytes of files to parse (about a quarter of a second) from which on a process is started for it."""

WORTH_ASKING = 400_000
"""The same where the process runs already."""

IDLE_SECONDS = 120.0
"""How long the process is kept while nobody asks."""

_GROUP_BYTES = 150_000
_GROUP_FILES = 8
_PRINTED_BYTES = 12_000
_AHEAD = 2
"""Groups it is given ahead. With their lines they fit into a pipe, so that giving never waits."""

_STALE_SECONDS = 15.0
_FRAME_SECONDS = 5.0

Here = Callable[[FileMatches], Told]
"""Tells the uses in one file in this process."""


@dataclass(slots=True)
class _Given:
    """A group that the process has not answered yet: places in the list of files."""

    number: int
    places: Sequence[int]
    at: float


@dataclass(slots=True)
class _Child:
    """The process and what it still owes, to this question or to an earlier one."""

    link: ChildLink
    owes: dict[int, _Given] = field(default_factory=dict)


class UsesHelper:
    """Shares the work of one question at a time with its process. Safe to use from several threads."""

    def __init__(self, idle_seconds: float = IDLE_SECONDS) -> None:
        self._idle_seconds = idle_seconds
        self._mutex = threading.Lock()
        self._child: _Child | None = None
        self._numbers = 0
        self._used = 0.0
        self._timer: threading.Timer | None = None

    @property
    def process_id(self) -> int | None:
        """The process, where one runs."""
        return self._child.link.pid if self._child is not None else None

    def tell(
        self, root: Path, files: Sequence[FileMatches], sizes: Sequence[int], asked: NameQuery, here: Here
    ) -> list[Told]:
        """The rows of each file, `sizes` being their bytes; `here` tells those of one file in this process."""
        if (os.cpu_count() or 1) < 2 or not self._mutex.acquire(blocking=False):
            return [here(file) for file in files]
        try:
            work = _Work(root, files, sizes, asked)
            if sum(sizes) >= (WORTH_ASKING if self._child is not None else WORTH_A_PROCESS):
                self._share(work, here)
            return [work.told[at] if at in work.told else here(file) for at, file in enumerate(files)]
        finally:
            self._mutex.release()

    def close(self) -> None:
        """End the process, when the question under way is answered."""
        with self._mutex:
            self._drop()
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def _share(self, work: "_Work", here: Here) -> None:
        try:
            self._forget_or_drop(work)
            if self._child is None:
                self._child = _Child(ChildLink("code_intel_server.codebase.references.worker", work.root, {}))
            while True:
                self._give(work)
                if self._took(work):
                    continue
                place = work.next() if work.waiting else self._unanswered(work)
                if place is None:
                    break
                work.told[place] = here(work.files[place])
        except (OSError, EOFError, ValueError, KeyError, TypeError):
            self._drop()  # what it has not answered is done here
        self._keep_for_a_while()

    def _give(self, work: "_Work") -> None:
        """Let the process have work ahead. Raises OSError or EOFError."""
        child = self._child
        while child is not None and work.waiting and len(child.owes) < _AHEAD:
            places = work.group()
            if not places:
                break
            self._numbers += 1
            child.owes[self._numbers] = _Given(self._numbers, places, time.monotonic())
            child.link.send(work.request(self._numbers, places), time.monotonic() + _FRAME_SECONDS)

    def _took(self, work: "_Work") -> bool:
        """Whether an answer has come. Raises OSError, EOFError, ValueError, KeyError or TypeError for anything else."""
        child = self._child
        if child is None or not child.owes or not _has_come(child.link):
            return False
        head, noted = child.link.receive(time.monotonic() + _FRAME_SECONDS)
        given = child.owes.pop(head["number"])
        for next_one in child.owes.values():
            next_one.at = time.monotonic()  # it may have had to wait until this answer was read
        told = [None if one is None else tuple(map(ReferenceRow.unpacked, one)) for one in head["told"]]
        # What an earlier question had to do itself is not wanted any more.
        for place, one in zip(given.places, told, strict=True) if given.number in work.numbers else ():
            work.told.setdefault(place, one)
        if given.number in work.numbers:
            work.note(given.places, head["noted"], noted)
        return True

    def _unanswered(self, work: "_Work") -> int | None:
        """A file that the process was given and has not answered, from the end; None where there is none."""
        owed = self._child.owes.values() if self._child is not None else ()
        places = (place for given in reversed(list(owed)) if given.number in work.numbers for place in given.places)
        return next((place for place in places if place not in work.told), None)

    def _forget_or_drop(self, work: "_Work") -> None:
        """Give up a process that owes an answer for too long: it hangs, unless the answer only lay there unread.

        Raises as `_took` does.
        """
        while self._took(work):
            pass
        now = time.monotonic()
        if self._child is not None and any(now - given.at > _STALE_SECONDS for given in self._child.owes.values()):
            self._drop()

    def _keep_for_a_while(self) -> None:
        self._used = time.monotonic()
        if self._child is not None and self._timer is None:
            self._later(self._idle_seconds)

    def _later(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self._end_if_idle)
        self._timer.daemon = True
        self._timer.start()

    def _end_if_idle(self) -> None:
        with self._mutex:
            if self._timer is not threading.current_thread():
                return  # closed meanwhile
            self._timer = None
            left = self._used + self._idle_seconds - time.monotonic()
            if left > 0 and self._child is not None:
                self._later(left)
            else:
                self._drop()

    def _drop(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            with contextlib.suppress(OSError):
                child.link.close()


class _Work:
    """The files of one question: which wait, which are done."""

    def __init__(self, root: Path, files: Sequence[FileMatches], sizes: Sequence[int], asked: NameQuery) -> None:
        self.root = root
        self.files = files
        self._skeletons = of_project(root)
        self.told: dict[int, Told] = {}
        self.numbers: set[int] = set()
        # The largest first: at the end the two are then no further apart than a small file takes.
        self.waiting = deque(sorted(range(len(files)), key=lambda place: -sizes[place]))
        self._sizes = sizes
        self._asked = asked

    def next(self) -> int:
        """The file that is to be done here now."""
        return self.waiting.popleft()

    def group(self) -> list[int]:
        """Files for the process: few enough that it answers soon; none where the next one's lines are too many for a pipe."""
        places: list[int] = []
        size = printed = 0
        while self.waiting and len(places) < _GROUP_FILES and (not places or size < _GROUP_BYTES):
            place = self.waiting[0]
            printed += len(self.files[place].printed) + len(self._skeleton(place))
            size += self._sizes[place]
            if printed > _PRINTED_BYTES:
                break
            places.append(self.waiting.popleft())
        return places

    def request(self, number: int, places: Sequence[int]) -> bytes:
        """The frame that asks for these files."""
        self.numbers.add(number)
        chosen = [(self.files[place], self._skeleton(place)) for place in places]
        head = {
            "number": number,
            "root": str(self.root),
            "names": self._asked.names.pattern.decode("latin-1"),
            "include_comments": self._asked.include_comments,
            "files": [[file.path, file.count, len(file.printed), len(skeleton)] for file, skeleton in chosen],
        }
        return frame(head, b"".join(file.printed + skeleton for file, skeleton in chosen))

    def note(self, places: Sequence[int], sizes: Sequence[int], noted: bytes) -> None:
        """Keep the skeletons that the process made. Raises ValueError for anything else."""
        ends = list(accumulate(sizes, initial=0))
        for place, (start, end) in zip(places, pairwise(ends), strict=True):
            skeleton = Skeleton.unpacked(noted[start:end])
            if skeleton is not None:
                self._skeletons.note(self.files[place].path, skeleton)

    def _skeleton(self, place: int) -> bytes:
        known = self._skeletons.of(self.files[place].path)
        return known.packed if known is not None else b""


def _has_come(link: ChildLink) -> bool:
    """Whether something can be read from the process: an answer, or its end."""
    with selectors.PollSelector() as selector:
        selector.register(link.answers, selectors.EVENT_READ)
        return bool(selector.select(0))
