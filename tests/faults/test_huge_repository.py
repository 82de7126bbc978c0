"""A million files and two gigabytes: a whole session, every lookup, the hook; each within its time, in bounded memory (row 56).

HUGE_FILES and HUGE_BYTES name the size (a million and 2 GB); HUGE_FOLDER where it is built, on a disk with as many inodes.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from benchmarks.faults.results import Record, kept
from benchmarks.faults.scenarios import FILES, moves

from tests.e2e.driver import ENVIRONMENT, Fields, git
from tests.faults.test_process import Wire, descendants

A_FOLDER = 1000
CONTENTS = 5000
"""How many different files there are; the others repeat them under another name."""
LOOKUP_SECONDS = 60.0
MOVE_SECONDS = 600.0
"""What one git command of a move may take at most (`git.child.USER_SECONDS`); a lookup's engines have 15 s each."""
FILES_THERE = int(os.environ.get("HUGE_FILES", "1000000"))
LARGE = int(os.environ.get("HUGE_BYTES", "2000000000"))
MEMORY = 1_000_000_000
"""Of the server and of each of its children, in bytes (the plan's row 56)."""


def built(root: Path, files: int, large: int) -> None:
    """A repository of so many files, in one commit, and an untracked file of so many bytes."""
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    git(root, "config", "user.name", "Test")
    git(root, "config", "user.email", "test@example.invalid")
    with subprocess.Popen(["git", "fast-import", "--quiet"], cwd=root, stdin=subprocess.PIPE) as child:
        assert child.stdin is not None
        write = child.stdin.write
        for number in range(CONTENTS):
            text = f"def function_{number}(value):\n    return value + {number}\n".encode()
            write(b"blob\nmark :%d\ndata %d\n%b\n" % (number + 1, len(text), text))
        write(b"commit refs/heads/main\ncommitter Test <test@example.invalid> 1700000000 +0000\ndata 4\nHuge\n")
        for name, own in FILES.items():
            write(b"M 100644 inline %b\ndata %d\n%b\n" % (name.encode(), len(own.encode()), own.encode()))
        for number in range(files):
            where = b"src/d%04d/f%07d.py" % (number // A_FOLDER, number)
            write(b"M 100644 :%d %b\n" % (number % CONTENTS + 1, where))
    assert child.returncode == 0
    git(root, "checkout", "-q", "main")
    with (root / "recording.bin").open("wb") as file:
        file.truncate(large)


class Memory:
    """The largest resident set that the server, or any one of its children, was seen with."""

    def __init__(self, pid: int) -> None:
        self.server = self.child = 0
        self.whose = ""
        self._pid, self._over = pid, threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._over.wait(0.1):
            self.server = max(self.server, _resident(self._pid))
            for pid in descendants(self._pid):
                seen, said = _resident(pid), _words(pid)
                if seen > self.child and said != _words(self._pid):  # it has begun its own program
                    self.child, self.whose = seen, said[-200:]

    def close(self) -> None:
        """Look no more."""
        self._over.set()
        self._thread.join()


def _resident(pid: int) -> int:
    with suppress(OSError, ValueError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _words(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
    return ""


def hooked(root: Path) -> tuple[int, float]:
    """What the write hook says of a file that nobody explained, and how long it took."""
    event = {
        "hook_event_name": "PreToolUse",
        "tool_name": "Write",
        "cwd": str(root),
        "tool_input": {"file_path": str(root / "src/d0000/f0000001.py")},
    }
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "code_intel_server", "hook"],
        input=json.dumps(event).encode(),
        cwd=root,
        env={**os.environ, **ENVIRONMENT, "XDG_STATE_HOME": str(root.parent / "state")},
        capture_output=True,
        check=False,
    )
    return done.returncode, time.monotonic() - began


@pytest.fixture(scope="module")
def huge() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=os.environ.get("HUGE_FOLDER"), ignore_cleanup_errors=True) as folder:
        root = Path(folder) / "repo"
        built(root, FILES_THERE, LARGE)
        yield root


@contextmanager
def timed(times: dict[str, float], name: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    times[name] = round(time.monotonic() - began, 1)


LOOKS: dict[str, tuple[str, Fields]] = {
    "search_text, one hit": ("search_text", {"patterns": "def main"}),
    "search_text, a million hits": ("search_text", {"patterns": "return value"}),
    "search_text, none": ("search_text", {"patterns": "nowhere_at_all"}),
    "search_files, one": ("search_files", {"pattern": "app.py"}),
    "search_files, all": ("search_files", {"pattern": "*.py"}),
    "find_definitions": ("find_definitions", {"symbol": "main"}),
    "find_definitions, many": ("find_definitions", {"symbol": "function_77"}),
    "find_references": ("find_references", {"symbol": "main"}),
    "get_symbols": ("get_symbols", {"path": "app.py"}),
    "analyze_impact": ("analyze_impact", {"targets": ["main"]}),
    "semantic_search": ("semantic_search", {"query": "return two"}),
}


def figures(name: str, times: dict[str, float], memory: Memory) -> None:
    """Keep what was measured for the page."""
    told = {"files": FILES_THERE, "seconds": times, "server": memory.server, "child": memory.child}
    print(name, json.dumps(told), memory.whose)
    kept(name, {**told, "whose": memory.whose})
    assert memory.server < MEMORY and memory.child < MEMORY, (memory.server, memory.child, memory.whose)


@pytest.mark.full
@pytest.mark.timeout(7200)
def test_a_whole_session_among_a_million_files_ends_in_time_and_loses_nothing(
    huge: Path, record_property: Record
) -> None:
    times: dict[str, float] = {}
    with Wire(huge) as server:
        memory = Memory(server.pid)
        for number, move in enumerate(moves(huge)):
            with timed(times, f"move {number}"):
                answer = move(server)
            print(number, times[f"move {number}"], str(answer)[:160], flush=True)
            assert answer["success"], (number, answer)
            if number == 2:
                status, times["hook"] = hooked(huge)
                assert status == 2, "nobody explained that file"
        assert answer["phase"] == "SESSION_COMPLETE"
        memory.close()
    assert "return 2" in git(huge, "show", "main:app.py")
    assert git(huge, "status", "--porcelain") == "?? recording.bin\n"
    assert (huge / "recording.bin").stat().st_size == LARGE
    assert max(times.values()) < MOVE_SECONDS, times
    figures("huge-session", times, memory)
    record_property("executions", len(times))


@pytest.mark.full
@pytest.mark.timeout(7200)
def test_every_lookup_in_a_million_files_answers_in_time_and_says_what_it_left_out(
    huge: Path, record_property: Record
) -> None:
    times: dict[str, float] = {}
    with Wire(huge) as server:
        memory = Memory(server.pid)
        for name, (tool, arguments) in LOOKS.items():
            with timed(times, name):
                answer = server.call(tool, **arguments)
            print(name, times[name], str(answer)[:160], flush=True)
            assert answer["complete"] or answer["incomplete_because"], (name, answer)
        sync = server.ask("sync_index")
        with timed(times, "search_text beside a sync"):
            asked = server.ask("search_text", patterns="def main")
            while (said := server.answer())["id"] != asked:
                assert said["id"] == sync
        found = said["result"]["structuredContent"]
        assert found["total"] == 1 or not found["complete"]
        server.notify("notifications/cancelled", requestId=sync, reason="long enough")
        memory.close()
    figures("huge-lookups", times, memory)
    assert max(times.values()) < LOOKUP_SECONDS, times
    record_property("executions", len(times))
