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
