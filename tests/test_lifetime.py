"""The server ends with its client and on a signal, whatever its main thread waits for (SPEC 7)."""

import os
import signal
import subprocess
import sys

import pytest

DEAF = """
import os, select, signal, sys
from code_intel_server.common import lifetime
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


SLOW = """
import threading, time
from code_intel_server import process
from code_intel_server.common import lifetime
begun = threading.Event()
def slowly():
    begun.set()
    time.sleep(0.5)
    print("children ended", flush=True)
process.end_all = slowly
threading.Thread(target=lifetime.end_now, daemon=True).start()
begun.wait()
lifetime.end_now()
print("went on", flush=True)
"""


def test_who_comes_second_waits_until_the_first_has_ended_the_children() -> None:
    done = subprocess.run([sys.executable, "-c", SLOW], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "children ended\n")


INTERRUPTED = """
import os, signal
from code_intel_server import process
from code_intel_server.common import lifetime
signal.signal(signal.SIGTERM, lifetime.end_now)
def once():
    os.kill(os.getpid(), signal.SIGTERM)
    print("children ended", flush=True)
process.end_all = once
lifetime.end_now()
"""


def test_a_signal_in_the_middle_of_the_end_does_not_begin_it_again() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "children ended\n")
