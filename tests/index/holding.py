"""A thread is held at a chosen point while another one goes past: what the tests of races are made of."""

import threading
from collections.abc import Callable

from code_intel_server.index.values import ChromaMode, ChromaSettings, IndexSettings

LONG = 60.0
OFF = IndexSettings(chroma=ChromaSettings(mode=ChromaMode.OFF))


class Held:
    """Something that a thread is made to wait in."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.go_on = threading.Event()

    def wait(self) -> None:
        self.entered.set()
        assert self.go_on.wait(LONG)


class Queue:
    """A lock that tells when somebody begins to wait for it, or to hold it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._arrived = threading.Semaphore(0)
        self._waiting: set[int] = set()

    def acquire(self, *, timeout: float) -> bool:
        me = threading.get_ident()
        if me not in self._waiting:
            self._waiting.add(me)
            self._arrived.release()
        if not self._lock.acquire(timeout=timeout):
            return False
        self._waiting.discard(me)
        return True

    def release(self) -> None:
        self._lock.release()

    def await_arrivals(self, count: int) -> None:
        for _ in range(count):
            assert self._arrived.acquire(timeout=LONG)


def aside(call: Callable[[], object]) -> tuple[threading.Thread, list[BaseException]]:
    """The call in a thread of its own, and what it raised."""
    raised: list[BaseException] = []

    def work() -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    return thread, raised
