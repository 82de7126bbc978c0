"""The server ends with its client and on a signal, whatever its main thread waits for (SPEC 7)."""

import os
import signal
import subprocess
import sys

import pytest

DEAF = """
import os, select, signal, sys
from code_intel_server import lifetime
lifetime.end_with_the_client(os.dup(0))
# As where a signal comes a moment before the wait begins, or to another thread: the wait of this one is not interrupted.
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
print("waiting", flush=True)
select.poll().poll()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_that_does_not_wake_the_main_thread_ends_the_process(number: signal.Signals) -> None:
    child = subprocess.Popen([sys.executable, "-c", DEAF], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"waiting\n"
        os.kill(child.pid, number)
        try:
            assert child.wait(30) == 0
        finally:
            child.kill()
