"""One server for a long time, with a fault every hundred calls: does anything grow?

python -m tests.faults.soak --minutes 60 --out soak.json
"""

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.faults.interrupted import prepared
from tests.faults.test_process import Wire, descendants

CALLS_BETWEEN_FAULTS = 100
WARM_UP_CALLS = 200


def measure(server: Wire) -> dict[str, int]:
    """Memory in KiB, open descriptors, processes below."""
    return {
        "rss_kib": server.resident() // 1024,
        "descriptors": len(list(Path(f"/proc/{server.pid}/fd").iterdir())),
        "children": len(descendants(server.pid)),
    }


def one_call(server: Wire, number: int) -> None:
    """A lookup, another each time."""
    calls: tuple[tuple[str, dict[str, object]], ...] = (
        ("search_text", {"patterns": "main"}),
        ("find_definitions", {"symbol": "main"}),
        ("get_symbols", {"path": "app.py"}),
        ("find_references", {"symbol": "main"}),
        ("get_session_status", {}),
        ("submit_phase", {"data": {"nonsense": number}}),
    )
    tool, arguments = calls[number % len(calls)]
    server.call(tool, **arguments)


def fault(server: Wire) -> None:
    """Kill every child it has, and cancel a call that runs."""
    number = server.ask("search_text", patterns="main")
    server.notify("notifications/cancelled", requestId=number)
    for pid in descendants(server.pid):
        os.kill(pid, signal.SIGKILL)


def soak(minutes: float) -> dict[str, object]:
    """Run it; the figures after warming up and at the end."""
    with tempfile.TemporaryDirectory() as scratch, Wire(prepared(Path(scratch))) as server:
        server.call("start_session", query="Make main return two", flags={"no_doc": True})
        for number in range(WARM_UP_CALLS):
            one_call(server, number)
        first, ends, calls, faults = measure(server), time.monotonic() + minutes * 60, 0, 0
        while time.monotonic() < ends:
            one_call(server, calls)
            calls += 1
            if calls % CALLS_BETWEEN_FAULTS == 0:
                fault(server)
                faults += 1
        return {"minutes": minutes, "calls": calls, "faults": faults, "first": first, "last": measure(server)}


def main() -> int:
    """Parse the command line and soak."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    row = soak(given.minutes)
    given.out.write_text(json.dumps(row, indent=1) + "\n")
    print(row)
    return 0


if __name__ == "__main__":
    sys.exit(main())
