"""The end of the server: with its client, at once, and with every child (SPEC 7)."""

import os
import select
import threading
import time

from code_intel_server import process

_EXIT_GRACE_SECONDS = 1.2
_PARENT_POLL_SECONDS = 0.5


def end_now(*_signal: object) -> None:
    """Nothing needs saving: what was answered is on disk. Children go with us."""
    process.end_all()
    os._exit(0)


def end_with_the_client(stdin: int) -> None:
    """Watch in a thread for the end of the pipe or of the parent: neither waits for a tool that still runs."""
    parent = os.getppid()
    # Node gives its children sockets as pipes, and ends them by half: that is no POLLHUP.
    gone = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)

    def watch() -> None:
        poller = select.poll()
        poller.register(stdin, gone)
        while os.getppid() == parent:
            if any(event & gone for _, event in poller.poll(_PARENT_POLL_SECONDS * 1000)):
                break
        time.sleep(_EXIT_GRACE_SECONDS)
        end_now()

    threading.Thread(target=watch, name="end-with-client", daemon=True).start()
