"""Power loss, replayed: what may be on the disk at any moment of a real session, after ALICE's model.

`strace` records what the server does to the folders of its state and when it answers. A file's content is on the disk up
to its last fsync, and what follows may be there in part, as zeros, or not at all; names made or removed since the last
fsync of their folder may be there in any combination. Every such state is laid out and asked for the session.
"""

import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

from benchmarks.faults.scenarios import Place

from code_intel_server.errors import CodeIntelError
from code_intel_server.workspace.state.checkpoints import CheckpointStore, Loaded

CALLS = "openat,write,pwrite64,ftruncate,fsync,fdatasync,rename,renameat,renameat2,link,linkat,unlink,unlinkat,mkdir"
TRACER = ("strace", "-f", "--seccomp-bpf", "-y", "-xx", "-s", "4000000", "-e", f"trace={CALLS}")
COMBINATIONS_AT_MOST = 64

_STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_FD = re.compile(r"\d+<((?:\\x[0-9a-f]{2})*)")
_LINE = re.compile(r"(?P<pid>\d+) +(?P<rest>.*)")


@dataclass(frozen=True, slots=True)
class Op:
    """One thing done: `what` is create, write, sync, rename, link, unlink, folder (a folder's sync) or answer."""

    what: str
    path: str = ""
    other: str = ""
    data: bytes = b""


def recorded(trace: Path, folders: Sequence[Path]) -> list[Op]:
    """The operations in these folders (not below them), and the answers, in the order in which they ended."""
    names = [str(folder) for folder in folders]
    waiting: dict[str, str] = {}
    ops: list[Op] = []
    for line in trace.read_text().splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        pid, rest = match["pid"], match["rest"]
        if rest.endswith("<unfinished ...>"):
            waiting[pid] = rest.removesuffix("<unfinished ...>")
            continue
        if rest.startswith("<... "):
            rest = waiting.pop(pid, "") + rest.partition("resumed>")[2]
        op = _op(rest)
        if op is not None and (op.what == "answer" or _inside(op, names)):
            ops.append(op)
    return ops


def _inside(op: Op, folders: list[str]) -> bool:
    folder, _, name = op.path.rpartition("/")
    # The stores beside them are SQLite's own to sync, and are made anew.
    return op.path in folders if op.what == "folder" else folder in folders and ".sqlite3" not in name


def _op(call: str) -> Op | None:
    name, _, rest = call.partition("(")
    if not re.search(r"\)\s+= \d", rest):
        return None
    strings = [_bytes(found) for found in _STRING.findall(rest)]
    opened = _FD.match(rest)
    path = _bytes(opened[1]).decode("utf-8", "replace") if opened else ""
    named = [text.decode("utf-8", "replace") for text in strings]
    if name in {"write", "pwrite64"} and strings:
        if path.startswith("pipe:"):
            return Op("answer", data=strings[0]) if b'"result"' in strings[0] else None
        return Op("write", path, data=strings[0])
    if name == "openat" and "O_CREAT" in rest:
        return Op("create", named[0])
    if name in {"fsync", "fdatasync"}:
        return Op("folder" if Path(path).is_dir() else "sync", path)
    if name.startswith("rename"):
        return Op("rename", named[0], named[1])
    if name.startswith("link"):
        return Op("link", named[0], named[1])
    return Op("unlink", named[0]) if name.startswith("unlink") else None


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


@dataclass(slots=True)
class Content:
    """A file's bytes, and how many of them an fsync has brought to the disk."""

    data: bytearray = field(default_factory=bytearray)
    safe: int = 0

    def remains(self) -> list[bytes]:
        """What may be left of it."""
        kept, rest = bytes(self.data[: self.safe]), bytes(self.data[self.safe :])
        if not rest:
            return [kept]
        return [kept, kept + rest, kept + b"\0" * len(rest), kept + rest[: len(rest) // 2]]


class Disk:
    """Names and contents, as the kernel has them and as the disk is sure to have them."""

    def __init__(self) -> None:
        self.now: dict[str, Content] = {}
        self.safe: dict[str, Content] = {}
        self.pending: list[tuple[str, Content | None, str]] = []
        """Changes of names since the last sync of their folder: name, content (None: removed), and a name that goes too."""

    def do(self, op: Op) -> None:
        """Let one operation happen."""
        if op.what == "create" and op.path not in self.now:
            self._name(op.path, Content())
        elif op.what == "write" and op.path in self.now:
            self.now[op.path].data += op.data
        elif op.what == "sync" and op.path in self.now:
            self.now[op.path].safe = len(self.now[op.path].data)
        elif op.what == "link" and op.path in self.now:
            self._name(op.other, self.now[op.path])
        elif op.what == "rename" and op.path in self.now:
            content = self.now.pop(op.path)
            self._name(op.other, content, op.path)
        elif op.what == "unlink" and op.path in self.now:
            del self.now[op.path]
            self.pending.append((op.path, None, ""))
        elif op.what == "folder":
            self._synced(op.path)

    def _name(self, path: str, content: Content, instead: str = "") -> None:
        self.now[path] = content
        self.pending.append((path, content, instead))

    def _synced(self, folder: str) -> None:
        here = [change for change in self.pending if change[0].rpartition("/")[0] == folder]
        self.pending = [change for change in self.pending if change not in here]
        self.safe = _changed(self.safe, here)

    def after_power_loss(self) -> Iterator[dict[str, bytes]]:
        """Every state the disk may be in, as path → bytes."""
        numbers = range(len(self.pending))
        chosen = [some for count in range(len(self.pending) + 1) for some in combinations(numbers, count)]
        step = max(1, len(chosen) // COMBINATIONS_AT_MOST)
        for some in [*chosen[::step], tuple(numbers)]:
            names = _changed(self.safe, [self.pending[number] for number in some])
            unsure = [path for path, content in names.items() if len(content.remains()) > 1]
            yield {path: content.remains()[0] for path, content in names.items()}
            for path in unsure:
                for left in names[path].remains()[1:]:
                    yield {other: left if other == path else c.remains()[0] for other, c in names.items()}


def _changed(names: dict[str, Content], changes: Sequence[tuple[str, Content | None, str]]) -> dict[str, Content]:
    after = dict(names)
    for path, content, instead in changes:
        if instead:
            after.pop(instead, None)
        if content is None:
            after.pop(path, None)
        else:
            after[path] = content
    return after


@dataclass(slots=True)
class Replay:
    """What the replay found: how many states were asked, and what was wrong."""

    states: int = 0
    restored: int = 0
    previous: int = 0
    violations: list[str] = field(default_factory=list)


def replay(
    ops: Sequence[Op], sessions: Path, key: Path, road: Sequence[Place], scratch: Path, stride: int = 1
) -> Replay:
    """Lay out every state (or each `stride`-th) of every moment and ask for the session.

    From the answer on that acknowledged a move, the session must be there, at that place or one further.
    """
    disk, found, acknowledged, number = Disk(), Replay(), 0, 0
    seen: set[tuple[int, int]] = set()
    for op in ops:
        acknowledged += op.what == "answer"
        disk.do(op)
        for state in disk.after_power_loss():
            number += 1
            mark = (acknowledged, hash(tuple(sorted(state.items()))))
            if mark in seen or number % stride:
                continue
            seen.add(mark)
            found.states += 1
            _ask(state, sessions, key, road, acknowledged, scratch, found)
    return found


def _ask(
    state: dict[str, bytes], sessions: Path, key: Path, road: Sequence[Place], moves: int, scratch: Path, found: Replay
) -> None:
    folder = scratch / "sessions"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for path, data in state.items():
        if Path(path).parent == sessions:
            (folder / Path(path).name).write_bytes(data)
    secret = state.get(str(key), b"")
    loaded: Loaded | None = None
    if len(secret) == 32:
        try:
            store = CheckpointStore(folder, secret)
            loaded = next(iter(store.usable()), None)
            store.sweep()
        except CodeIntelError as error:
            found.violations.append(f"after {moves} answers: {error}")
            return
    allowed = {road[moves], road[min(moves + 1, len(road) - 1)]}
    if loaded is None:
        if 0 < moves < len(road) - 2:
            found.violations.append(f"after {moves} answers there is no session: {sorted(Path(p).name for p in state)}")
        return
    found.restored += 1
    found.previous += loaded.restored_previous
    place = _place(loaded)
    if place not in allowed:
        found.violations.append(f"after {moves} answers it stands at {place}, expected one of {sorted(allowed)}")


def _place(loaded: Loaded) -> Place:
    from code_intel_server.flow.session import SessionState

    state = SessionState.from_checkpoint(loaded.body)
    return str(state.phase), state.place.step
