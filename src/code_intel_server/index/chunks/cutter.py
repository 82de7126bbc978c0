"""Cuts many files: in processes of their own where there are enough of them, else here (see `cutting`).

A process answers files in the order in which it was asked for them, so when it ends the first unanswered one is the
suspect. It is tried once more, for the process may have been ended by somebody; then it is cut by lines, without its
grammar. Nothing is ever left out, and where no process can be had the work is done here.
"""

import contextlib
import os
import selectors
import signal
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from code_intel_server.common.child_link import ChildFailedError, ChildLink, StoppedError, why
from code_intel_server.common.child_wire import frame
from code_intel_server.index.chunks.cutting import Cut, Rules, cut_file, from_frame, rules_to_json
from code_intel_server.index.retrieval.words import Vocabulary
from code_intel_server.index.values import ChunkStrategy

MIN_FILES_FOR_PROCESSES = 200
"""From so many files on: fewer are cut before a process has come up."""

FILE_CPU_SECONDS = 20.0
FILE_SECONDS = 300.0
"""What one file may take of a processor's time, and of anybody's on a machine that has none to spare."""

MAX_PROCESSES = 2
"""More would wait for the one that stores what they cut."""

MAX_ENDS = 6
"""How many processes may end in one sync before the rest is cut here."""

_AHEAD = 12
"""Files that a process is asked for before it answers: the longest paths of so many fit into a pipe, so neither side waits for
the other to read."""

_LOOK_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be done with the files below `root`; `cpu_seconds` is what one of them may take in a process of its own.

    With a `vocabulary` chunks also get their bags for a static model.
    """

    root: Path
    rules: Rules
    vocabulary: Vocabulary | None = None
    cpu_seconds: float = FILE_CPU_SECONDS

    def cut(self, path: str, strategy: ChunkStrategy | None = None) -> Cut | None:
        """Cut one file here, by another strategy than the rules' where one is given."""
        rules = self.rules if strategy is None else replace(self.rules, strategy=strategy)
        return cut_file(self.root, path, rules, self.vocabulary)

    def opening(self) -> dict[str, object]:
        """What a process has to know; it makes no bags where the vocabulary is in no file that it could read."""
        source = self.vocabulary.source if self.vocabulary is not None else None
        return {
            "root": str(self.root.absolute()),  # a process has a folder of its own
            "rules": rules_to_json(self.rules),
            "vocabulary": str(source or ""),
            "cpu_seconds": self.cpu_seconds,
        }


class Cutter:
    """Cuts the files of one sync. `notes` say in sentences what did not go as it should, `stopped` whether it ended early."""

    def __init__(self, job: Job, folder: Path, should_stop: Callable[[], bool]) -> None:
        """`folder` is where the processes run; `should_stop` ends a wait for them."""
        self._job = job
        self._folder = folder
        self._should_stop = should_stop
        self._processes: list[_Process] = []
        self._ends = 0
        self._suspects: set[str] = set()
        self.notes: list[str] = []
        self.stopped = False

    def cut(self, paths: Sequence[str]) -> Generator[Cut | None]:
        """What becomes of each file, about in order; ends early where it should stop. Close the iterator when done with it."""
        if len(paths) < MIN_FILES_FOR_PROCESSES:
            yield from map(self._job.cut, paths)
            return
        waiting = deque(paths)
        try:
            for _ in range(min(MAX_PROCESSES, os.cpu_count() or 1)):
                self._start()
            while waiting or any(process.asked for process in self._processes):
                yield from self._round(waiting)
        except StoppedError:
            self.stopped = True
        finally:
            for process in self._processes:
                process.close()
            self._processes.clear()

    @property
    def process_ids(self) -> tuple[int, ...]:
        """The processes that cut."""
        return tuple(process.pid for process in self._processes)

    def _round(self, waiting: deque[str]) -> Iterator[Cut | None]:
        """An answer of every process that has one; one file cut here where there is no process."""
        if not self._processes:
            path = waiting.popleft()
            # One that a process has ended at may end this one.
            yield self._job.cut(path, ChunkStrategy.TEXT if path in self._suspects else None)
        for process in self._processes:
            process.ask_ahead(waiting)
        deadline = time.monotonic() + FILE_SECONDS
        for process in self._answering(deadline):
            try:
                answer = process.answer(deadline)
            except ChildFailedError as error:
                yield from self._after_end(process, error, waiting)
            else:
                yield answer

    def _answering(self, deadline: float) -> Sequence["_Process"]:
        """The processes that have an answer, once one has; all of them at the deadline."""
        asked = [process for process in self._processes if process.asked]
        with selectors.PollSelector() as selector:
            for process in asked:
                selector.register(process.answers, selectors.EVENT_READ, process)
            while asked and time.monotonic() < deadline:
                if ready := selector.select(_LOOK_SECONDS):
                    return [key.data for key, _ in ready]
                if self._should_stop():
                    raise StoppedError
        return asked

    def _after_end(self, process: "_Process", error: ChildFailedError, waiting: deque[str]) -> Iterator[Cut | None]:
        """Take back what was asked for, cut the file that is to blame by lines, and start another process."""
        self._processes.remove(process)
        suspect = process.asked[0] if process.asked and process.ready else ""
        waiting.extendleft(reversed(process.asked))
        if suspect and (process.overran or suspect in self._suspects):
            waiting.popleft()
            reason = "took too long" if process.overran else "ended the process that cuts files"
            self.notes.append(f"{suspect} was cut by lines only, because its syntax {reason}.")
            yield self._job.cut(suspect, ChunkStrategy.TEXT)
        self._suspects.add(suspect)
        self._ends += 1
        if process.ready and self._ends <= MAX_ENDS:
            self._start()
        elif not self._processes:
            self._fell_back(str(error))

    def _start(self) -> None:
        """Have one more process; none where it cannot be started."""
        try:
            process = _Process(self._job.opening(), self._folder, self._should_stop)
        except OSError as error:
            self._fell_back(str(error))
        else:
            self._processes.append(process)

    def _fell_back(self, reason: str) -> None:
        if not self._processes:
            self.notes.append(f"Files were cut in the server, because no process for it works ({reason}).")


class _Process:
    """A process that cuts, and what it was asked for and has not answered; of no more use after ChildFailedError."""

    def __init__(self, opening: dict[str, object], folder: Path, should_stop: Callable[[], bool]) -> None:
        self._link = ChildLink("code_intel_server.index.chunks.cutter_child", folder, {}, should_stop)
        self._opening = opening
        self.asked: deque[str] = deque()
        self.ready = False
        """Whether it has come up."""
        self._late = False

    @property
    def pid(self) -> int:
        return self._link.pid

    @property
    def answers(self) -> IO[bytes]:
        """Where its answers come from, to wait for them."""
        return self._link.answers

    @property
    def overran(self) -> bool:
        """Whether it has ended, or was ended, because one file took too long."""
        return self._late or self._link.ended_by == signal.SIGPROF

    def ask_ahead(self, waiting: deque[str]) -> None:
        """Move files from `waiting` to `asked`, once there is room for many; who has ended will not answer."""
        request = b""
        if self._opening:
            request, self._opening = frame(self._opening), {}
        if len(self.asked) <= _AHEAD // 2:
            group = [waiting.popleft() for _ in range(min(len(waiting), _AHEAD - len(self.asked)))]
            self.asked += group
            request += frame({}, b"\0".join(map(os.fsencode, group))) if group else b""
        with contextlib.suppress(OSError, EOFError):
            self._link.send(request, time.monotonic() + FILE_SECONDS)

    def answer(self, deadline: float) -> Cut | None:
        """What became of the first file asked for."""
        try:
            if not self.ready:
                self._link.receive(deadline)
                self.ready = True
            head, body = self._link.receive(deadline)
            if head.get("path") != self.asked[0]:
                raise ValueError("another file")
            cut = from_frame(head, body)
        except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
            self._late = isinstance(error, TimeoutError)
            self.close()
            raise ChildFailedError(why(error), crashed=True) from error
        self.asked.popleft()
        return cut

    def close(self) -> None:
        self._link.close()
