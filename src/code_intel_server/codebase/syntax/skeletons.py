"""Of a file that was parsed before, the part that must be parsed to tell the uses of a name: all but the members in which it does not stand.

Most names are in a few functions of a large file. So where a file parsed whole and without an error, the places of its
members are noted (`members`); asked for another name, only those are parsed that hold it, with all that is around
them: the file's skeleton. What was noted counts for the same bytes in the same language and version of the grammars. Were there an error anywhere, what
the grammar made of one part could depend on the parts before: such a file is always parsed whole.
"""

import hashlib
import threading
from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from code_intel_server.codebase.files.languages import Language
from code_intel_server.codebase.syntax.members import SHAPES, spans_of

if TYPE_CHECKING:
    from code_intel_server.codebase.syntax.grammars import Parsed

WORTH_NOTING = 4096
"""Bytes of a file from which on it is noted."""

_WORTH_LEAVING_OUT = 2048
_SHARE_LEFT_OUT = 4
"""At least so many bytes, and one of so many, must be left out; else the file is parsed whole."""

_DIGEST_BYTES = 16
_NUMBER_BYTES = array("I").itemsize
_MOST_BYTES = 8 * 1024 * 1024
_MOST_FILES = 20_000


class Skeleton(NamedTuple):
    """Where the members of a file stand: their `spans` as pairs of 32-bit numbers, the outer before the inner; `digest` is that of its content."""

    digest: bytes
    spans: bytes

    @property
    def packed(self) -> bytes:
        """Both in one."""
        return self.digest + self.spans

    @classmethod
    def unpacked(cls, packed: bytes) -> "Skeleton | None":
        """The skeleton that `packed` gave; None for what it cannot have given."""
        whole = len(packed) >= _DIGEST_BYTES and (len(packed) - _DIGEST_BYTES) % (2 * _NUMBER_BYTES) == 0
        return cls(packed[:_DIGEST_BYTES], packed[_DIGEST_BYTES:]) if whole else None


class Shelf(Protocol):
    """Where skeletons outlive the process."""

    def skeleton(self, path: str) -> bytes | None:
        """What was put there for a file; None where nothing was, or it cannot be had."""

    def put_skeletons(self, packed: Mapping[str, bytes]) -> None:
        """Keep these in place of those before, as far as that can be done at once."""


class Skeletons:
    """The skeletons of a project's files; the longest unused forgotten beyond 8 MiB or 20,000 files. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Skeleton] = OrderedDict()
        self._bytes = 0
        self._shelf: Shelf | None = None
        self._new: dict[str, bytes] = {}

    def of(self, path: str) -> Skeleton | None:
        """What was noted of a file last; it may have changed since."""
        with self._lock:
            found = self._kept.get(path)
            if found is not None:
                self._kept.move_to_end(path)
                return found
            shelf = self._shelf
        packed = shelf.skeleton(path) if shelf else None
        found = Skeleton.unpacked(packed) if packed else None
        if found is not None:
            self._keep(path, found)
        return found

    def note(self, path: str, skeleton: Skeleton) -> None:
        """Keep a file's skeleton in place of the one before."""
        self._keep(path, skeleton)
        with self._lock:
            if self._shelf is not None:
                self._new[path] = skeleton.packed

    def keep_on(self, shelf: Shelf) -> None:
        """From now on look there too, and put there with `save` what is new."""
        with self._lock:
            self._shelf = shelf

    def save(self) -> None:
        """Put what was noted since the last time where it outlives the process."""
        with self._lock:
            new, self._new = self._new, {}
            shelf = self._shelf
        if shelf is not None and new:
            shelf.put_skeletons(new)

    def _keep(self, path: str, skeleton: Skeleton) -> None:
        with self._lock:
            before = self._kept.pop(path, None)
            self._kept[path] = skeleton
            self._bytes += len(skeleton.spans) - (len(before.spans) if before else 0)
            while self._bytes > _MOST_BYTES or len(self._kept) > _MOST_FILES:
                _, gone = self._kept.popitem(last=False)
                self._bytes -= len(gone.spans)


@lru_cache(maxsize=16)
def of_project(_root: Path) -> Skeletons:
    """The skeletons of the project at `_root`, kept as long as this process lives."""
    return Skeletons()


def parse(data: bytes, language: Language, path: str, lines: Sequence[int], known: Skeletons) -> "Parsed | None":
    """The syntax tree of a file as `structure.parse` makes it, of which all may be missing that is on none of the 1-based `lines`.

    What is there reads as in the whole. Notes the file in `known` where it had to be parsed whole.
    """
    from code_intel_server.codebase.syntax import grammars

    if language.name not in SHAPES or len(data) < WORTH_NOTING:
        return grammars.parse(data, language)
    digest = _digest(data, language)
    skeleton = known.of(path)
    if skeleton is not None and skeleton.digest == digest:
        return _again(data, language, lines, skeleton)
    parsed = grammars.parse(data, language)
    if parsed is not None and parsed.text is data:
        known.note(path, Skeleton(digest, spans_of(parsed)))
    return parsed


def _digest(data: bytes, language: Language) -> bytes:
    from code_intel_server.codebase.syntax import grammars

    key = grammars.version().encode()[:64]
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES, key=key, person=language.name.encode()[:16]).digest()


def _again(data: bytes, language: Language, lines: Sequence[int], skeleton: Skeleton) -> "Parsed | None":
    from code_intel_server.codebase.syntax import grammars

    starts = grammars.line_starts(data)
    gaps = _gaps(skeleton, [starts[line - 1] for line in lines if line <= len(starts)], len(data))
    part = grammars.parse_without(data, language, gaps, starts) if gaps else None
    if part is not None:
        return part
    whole = grammars.parse(data, language)
    if whole is not None:
        whole.line_starts = starts
    return whole


def _gaps(skeleton: Skeleton, wanted: Sequence[int], size: int) -> Sequence[tuple[int, int]]:
    """What to leave out of a file of so many bytes; nothing where that is not worth it."""
    gaps = without(array("I", skeleton.spans), wanted)
    left_out = sum(end - start for start, end in gaps)
    worth_it = left_out >= max(_WORTH_LEAVING_OUT, size // _SHARE_LEFT_OUT)
    return gaps if worth_it and gaps[-1][1] <= size else ()


def without(spans: Sequence[int], wanted: Sequence[int]) -> list[tuple[int, int]]:
    """The outermost spans that hold none of the bytes `wanted`, which are in order; what adjoins is joined."""
    gaps: list[tuple[int, int]] = []
    end = 0
    for begin, behind in zip(spans[::2], spans[1::2], strict=True):
        if not end <= begin < behind or bisect_left(wanted, begin) != bisect_left(wanted, behind):
            continue
        if gaps and end == begin:
            gaps[-1] = (gaps[-1][0], behind)
        else:
            gaps.append((begin, behind))
        end = behind
    return gaps
