"""A git that fails once, or is killed, before it has done anything."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from code_intel_server.process import Completed


class Fallible:
    """Runs every git but the `fatal`th (from 0, of the commands `which`, if any are named), which ends so before it has done anything."""

    def __init__(self, status: int, fatal: int, which: Collection[str], real: Callable[..., Completed]) -> None:
        self.status, self.fatal, self.which, self.real, self.seen = status, fatal, set(which), real, 0

    def run(self, argv: Sequence[str], **options: Any) -> Completed:
        counts = not self.which or not self.which.isdisjoint(argv)
        self.seen += counts
        if not counts or self.seen - 1 != self.fatal:
            return self.real(argv, **options)
        return Completed(tuple(argv), self.status, b"", b"fatal: could not open '/dev/null'\n", 0.0)
