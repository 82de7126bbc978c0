"""What a test needs of the machine, for `@pytest.mark.needs("strace")`; where it is missing, one line says so and the test is skipped."""

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from code_intel_server.codebase.symbols import ctags

HOME = Path.home()
"""Of who runs the tests: what may be kept from run to run lies there, and the settings of pip and npm. A test has a home of its own."""


def ran(
    argv: Sequence[str | Path], cwd: Path | None = None, env: Mapping[str, str] | None = None, *, check: bool = False
) -> "subprocess.CompletedProcess[str]":
    """A program that was run to its end, without input; what it printed is text."""
    return subprocess.run(argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=check)


def _succeeds(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


_FOUND: Mapping[str, Callable[[], bool]] = {
    "universal-ctags": lambda: ctags.ctags_program() is not None,
    "strace": lambda: _succeeds("strace", "-o", os.devnull, "true"),
    "unshare --net": lambda: _succeeds("unshare", "--map-root-user", "--net", "true"),
    "user namespaces": lambda: _succeeds("unshare", "--map-root-user", "--mount", "true"),
    "agnix": lambda: Path(sys.executable).with_name("agnix").exists(),
    "root": lambda: os.geteuid() == 0,
    "an ordinary user": lambda: os.geteuid() != 0,
}
"""What is not simply a program on the PATH."""


@functools.cache
def present(need: str) -> bool:
    """Whether this machine has a program, by its name, or one of the other needs above."""
    found = _FOUND.get(need)
    if found is not None:
        return found()
    return shutil.which(need) is not None
