"""One server for a long time: session after session, lookups between, a fault every hundred calls. Does anything grow?

python -m benchmarks.faults.soak --minutes 60 --out soak.json
"""

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from benchmarks.faults.scenarios import prepared
from tests.e2e.driver import Fields, git
from tests.faults.test_process import Wire, descendants

CALLS_BETWEEN_FAULTS = 100
WARM_UP_CALLS = 600
SECONDS_BETWEEN_SAMPLES = 30.0
CACHES = ("cache", "chroma")

DESCRIPTORS, DESCRIPTORS_A_THREAD = 20, 6
"""What may be open at any time: a worker thread keeps connections to index, contents and symbols, two files each."""

BOUNDS = {
    "rss_kib": 32 * 1024,
    "folders": 2,
    "threads": 8,
    "children": 4,
    "cache_bytes": 24 * 1024 * 1024,
    "record_bytes_a_session": 24 * 1024,
    "git_bytes_a_session": 96 * 1024,
    "state_bytes": 1024 * 1024,
}
"""What may be more at the end than after warming up.

The bytes of a session are what its record and its commits take; the caches' are write-ahead logs, of the index and of
the symbols, which SQLite empties at 4 MB each, and one damaged store set aside.
"""


def measure(server: Wire) -> dict[str, int]:
    """Memory in KiB, open descriptors and how many of them are folders, threads, processes below it, bytes on disk."""
    return {
        "rss_kib": server.resident() // 1024,
        "descriptors": len(list(Path(f"/proc/{server.pid}/fd").iterdir())),
        "folders": sum(path.is_dir() for path in Path(f"/proc/{server.pid}/fd").iterdir()),
        "threads": len(list(Path(f"/proc/{server.pid}/task").iterdir())),
        "children": len(descendants(server.pid)),
        "cache_bytes": sum(_bytes(server.root / ".code-intel" / name) for name in CACHES),
        "record_bytes": _bytes(server.root / ".code-intel", leave_out=CACHES),
        "git_bytes": _bytes(server.root / ".git"),
        "state_bytes": _bytes(server.root.parent / "state"),
    }


def _bytes(folder: Path, leave_out: tuple[str, ...] = ()) -> int:
    total = 0
    for path in folder.rglob("*"):
        if path.relative_to(folder).parts[0] not in leave_out:
            with suppress(OSError):
                total += path.lstat().st_size
    return total


class Soak:
    """Endless calls of one client; refusals are counted, and anything but a typed answer raises."""

    def __init__(self, server: Wire, between_faults: int = CALLS_BETWEEN_FAULTS) -> None:
        self.server, self.root, self._between = server, server.root, between_faults
        self.calls = self.sessions = self.abandoned = 0
        self.refused: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()

    def call(self, tool: str, **arguments: object) -> Fields:
        """One call, and every hundredth time a fault after it."""
        answer = self.server.call(tool, **arguments)
        self.calls += 1
        if not answer.get("success", True):
            self.refused[str(answer["error"])] += 1
        if self.calls % self._between == 0:
            self._fault()
        return answer

    def submit(self, **data: object) -> Fields:
        """A submit; what a fault got in the way of is sent again."""
        payload = {"summary": "Done.", "tools_used": [], **data}
        for _ in range(5):
            answer = self.call("submit_phase", data=payload)
            if answer["success"]:
                break
        return answer

    def run(self, goes_on: Callable[[], bool]) -> None:
        """Session after session, every seventh given up."""
        while goes_on():
            for step in self._session(self.sessions):
                if not step.get("success", True):
                    break
                self._look(self.calls)
            self._end()

    def _session(self, number: int) -> Iterator[Fields]:
        task = {"id": "t1", "description": "Return it", "status": "pending", "checklist": ["Return it"]}
        yield self.call("start_session", query="Make main return more", flags={"fast": True, "no_doc": True})
        yield self.submit(action_type="change", target_symbols=["main"])
        self.call("add_explored_files", paths=["app.py"], reason="holds the function to change")
        yield self.submit(tasks=[task])
        self.call("check_write_target", path="app.py")
        (self.root / "app.py").write_text(f"def main():\n    return {number + 2}\n")
        done = {"item": "Return it", "status": "done", "evidence": "app.py:2"}
        yield self.submit(task_id="t1", checklist=[done], tools_used=["check_write_target"])
        if number % 7 == 6:
            return
        yield self.submit()
        yield self.submit(passed=True, verifier_used="generic", details="looked at it")
        self.call("review_changes")
        words = {"reviewed_files": ["app.py"], "commit_message": "Return it", "review_prompt_used": "garbage_detection"}
        yield self.submit(**words, tools_used=["review_changes"])
        yield self.submit()

    def _look(self, number: int) -> None:
        looks: tuple[tuple[str, dict[str, object]], ...] = (
            ("search_text", {"patterns": "main"}),
            ("find_definitions", {"symbol": "main"}),
            ("get_symbols", {"path": "app.py"}),
            ("find_references", {"symbol": "main"}),
            ("analyze_structure", {"path": "app.py"}),
            ("get_session_status", {}),
            ("submit_phase", {"data": {"nonsense": number}}),
            ("search_files", {"pattern": "*.py"}),
            ("query", {"question": "where is main defined?"}),
        )
        for place in range(3):
            tool, arguments = looks[(number + place * 4) % len(looks)]
            self.call(tool, **arguments)

    def _end(self) -> None:
        """A session that did not get to its end is given up; nothing of it stays in the way of the next."""
        status = self.call("get_session_status")
        if status["success"]:
            self.call("start_session", query="", flags={"clean": True})
            self.abandoned += 1
        self.sessions += 1
        if self.sessions % 5 == 0:
            self.call("semantic_search", query="the main function")
            self.call("sync_index")

    def _fault(self) -> None:
        """In turn: a lookup and a submit that are cancelled, children killed, a frame that is none."""
        kind = ("cancelled lookup", "cancelled submit", "killed children", "broken frame")[
            sum(self.faults.values()) % 4
        ]
        self.faults[kind] += 1
        if kind == "broken frame":
            self.server.say('{"jsonrpc": "2.0", "id": [}')
            return
        tool = "submit_phase" if kind == "cancelled submit" else "search_text"
        arguments: dict[str, object] = {"data": {"x": 1}} if tool == "submit_phase" else {"patterns": "main"}
        number = self.server.ask(tool, **arguments)
        if kind == "killed children":
            for pid in descendants(self.server.pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        else:
            self.server.notify("notifications/cancelled", requestId=number)


def soak(minutes: float) -> dict[str, object]:
    """Run it; the figures after warming up, twice a minute, and at the end."""
    with tempfile.TemporaryDirectory() as scratch, Wire(prepared(Path(scratch))) as server:
        it = Soak(server)
        it.run(lambda: it.calls < WARM_UP_CALLS)
        first, sessions, began = measure(server), it.sessions, time.monotonic()
        samples = [first]

        def goes_on() -> bool:
            if time.monotonic() - began > len(samples) * SECONDS_BETWEEN_SAMPLES:
                samples.append(measure(server))
            return time.monotonic() - began < minutes * 60

        it.run(goes_on)
        last = measure(server)
        row: dict[str, object] = {
            "minutes": minutes,
            "calls": it.calls,
            "sessions": it.sessions,
            "abandoned": it.abandoned,
            "faults": dict(it.faults),
            "refused": dict(it.refused.most_common()),
            "first": first,
            "middle": samples[len(samples) // 2],
            "last": last,
            "samples": len(samples),
            "over": over(first, last, it.sessions - sessions),
            "commits": int(git(server.root, "rev-list", "--count", "main")),
        }
        return row


def over(first: dict[str, int], last: dict[str, int], sessions: int) -> dict[str, int]:
    """What grew beyond its bound, and by how much; descriptors are bounded as such, not in their growth."""
    grown = {name: last[name] - first[name] for name in first if name in BOUNDS or name.endswith("_bytes")}
    for name in ("record_bytes", "git_bytes"):
        grown[f"{name}_a_session"] = grown.pop(name) // max(1, sessions)
    open_at_most = DESCRIPTORS + DESCRIPTORS_A_THREAD * last["threads"]
    more = max(0, last["descriptors"] - open_at_most)
    return {name: n for name, n in grown.items() if n > BOUNDS[name]} | ({"descriptors": more} if more else {})


def main() -> int:
    """Parse the command line and soak."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    row = soak(given.minutes)
    given.out.write_text(json.dumps(row, indent=1) + "\n")
    print(row)
    return 1 if row["over"] else 0


if __name__ == "__main__":
    sys.exit(main())
