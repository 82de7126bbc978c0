"""What is behind the tools, made when it is first needed: a client waits for the handshake, so that must not wait.

Loading the rooms takes a third of what the protocol library takes. It happens at the first call or a moment after the start,
in the background, whichever comes first.
"""

import gc
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from code_intel_server import tools

if TYPE_CHECKING:
    from code_intel_server.tools.current_project import CurrentProject
    from code_intel_server.tools.guard import Guard

_LOAD_AFTER_SECONDS = 0.5


class LazyTools:
    """The project of a working directory (or of the project `override`) and the guard around it."""

    def __init__(self, start: Path, override: Path | None = None) -> None:
        self._where = (start, override)
        self._making = threading.Lock()
        self._made: tuple[CurrentProject, Guard] | None = None

    @property
    def current(self) -> "CurrentProject":
        """Where all tools work."""
        return self._both()[0]

    @property
    def guard(self) -> "Guard":
        """The one way by which a tool runs."""
        return self._both()[1]

    def load_soon(self) -> None:
        """Load in the background what the first call will need, once the client has had its handshake."""
        timer = threading.Timer(_LOAD_AFTER_SECONDS, self._load)
        timer.daemon = True
        timer.start()

    def close(self) -> None:
        """Let go of what calls have opened."""
        if self._made is not None:
            self._made[0].services.close()

    def _load(self) -> None:
        self._both()
        tools.load()
        gc.freeze()  # it stays for good, and collections while a search makes thousands of rows would look through all of it

    def _both(self) -> "tuple[CurrentProject, Guard]":
        with self._making:
            if self._made is None:
                current = tools.current_project.CurrentProject(*self._where)
                self._made = (current, tools.guard.Guard(current))
            return self._made
