"""The child process that reads and cuts files for a large sync: it takes that work off the server's one interpreter.

Reads the rules and then lists of paths from stdin, answers each file in order on what was stdout, and ends with the
server, whose death closes the pipes. A file that takes too much processor time ends this process by a signal, which
works in the middle of a grammar too: the server then knows which file it was.
"""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import IO

from code_intel_server.common.child_wire import frame, read_frame, work
from code_intel_server.index.chunks.cutting import Rules, cut_file, rules_from_json, to_frame
from code_intel_server.index.retrieval.words import Vocabulary


def serve(read: Callable[[int], bytes], out: IO[bytes]) -> None:
    """Answer until the pipe closes: a word once we can work, then a frame a file."""
    request, _ = read_frame(read)
    root, rules, seconds = Path(request["root"]), rules_from_json(request["rules"]), float(request["cpu_seconds"])
    vocabulary = Vocabulary.read(Path(request["vocabulary"])) if request["vocabulary"] else None
    out.write(frame({"ready": os.getpid()}))
    out.flush()
    while True:
        _, paths = read_frame(read)
        for path in paths.split(b"\0"):
            out.write(_answer(root, os.fsdecode(path), rules, vocabulary, seconds))
            out.flush()


def _answer(root: Path, path: str, rules: Rules, vocabulary: Vocabulary | None, seconds: float) -> bytes:
    # Nobody handles SIGPROF here: it ends the process, whatever runs.
    signal.setitimer(signal.ITIMER_PROF, seconds)
    answer = frame(*to_frame(path, cut_file(root, path, rules, vocabulary)))
    signal.setitimer(signal.ITIMER_PROF, 0)
    return answer


if __name__ == "__main__":
    work(serve)
