"""The end of the server: with its client, at once, and with every child (SPEC 7)."""

import os
import select
import signal
import threading
import time

from code_intel_server import process

_EXIT_GRACE_SECONDS = 1.2
_PARENT_POLL_SECONDS = 0.5


_OTHER_SECONDS = 5.0
"""How long the thread that ends the process is waited for: longer than it may take."""

_enders: list[int] = []
"""The threads that wanted to end the process, in order; the first one does."""


def end_now(*_signal: object) -> None:
    """Nothing needs saving: what was answered is on disk. Children go with us. Returns only into itself.

    Only once: the main thread's handler and the thread that watches hear the same signal.
    """
    me = threading.get_ident()
    _enders.append(me)
    if _enders[0] != me:
        time.sleep(_OTHER_SECONDS)  # to go on would let the interpreter end under the one that is still at it
        os._exit(0)
    if _enders.count(me) == 1:
        process.end_all()
        os._exit(0)


def end_with_the_client(stdin: int) -> None:
    """Watch in a thread for a signal, the end of the pipe or of the parent: none waits for a tool that still runs.

    To be called by the main thread. Its own handlers would wait for it: a signal that comes just before it begins to
    wait for the client, or that the kernel hands to another thread, wakes it only with the next request.
    """
    signalled, tell = os.pipe()
    os.set_blocking(tell, False)
    signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end_now)
    parent = os.getppid()
    # Node gives its children sockets as pipes, and ends them by half: that is no POLLHUP.
    gone = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)

    def watch() -> None:
        """Wait for any of them and end the process; after the end of pipe or parent a moment later."""
        poller = select.poll()
        poller.register(stdin, gone)
        poller.register(signalled, select.POLLIN)
        while os.getppid() == parent:
            events = dict(poller.poll(_PARENT_POLL_SECONDS * 1000))
            if signalled in events:
                end_now()
            if events.get(stdin, 0) & gone:
                break
        time.sleep(_EXIT_GRACE_SECONDS)
        end_now()

    threading.Thread(target=watch, name="end-with-client", daemon=True).start()
