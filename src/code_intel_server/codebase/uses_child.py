"""The child process that tells uses: a grammar keeps its interpreter to itself while it parses, so of many files some are
parsed here.

Reads one request after the other from stdin, each with files and their matching lines as ripgrep printed them, answers
with their rows on what was stdout, and ends with the server, whose death closes the pipes.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import IO

from code_intel_server.child_wire import frame, read_frame, work
from code_intel_server.codebase.references import Asked, classify
from code_intel_server.codebase.ripgrep import FileMatches
from code_intel_server.codebase.standing import Standing


def serve(read: Callable[[int], bytes], out: IO[bytes]) -> None:
    """Answer until the pipe closes: the request's number and the rows of each of its files."""
    while True:
        head, printed = read_frame(read)
        standing = Standing(Path(head["root"]))
        asked = Asked(re.compile(head["names"].encode("latin-1")), head["include_comments"])
        told: list[list[object] | None] = []
        start = 0
        for path, count, size in head["files"]:
            rows = classify(standing, FileMatches(path, count, printed[start : start + size]), asked)
            told.append(None if rows is None else [row.packed() for row in rows])
            start += size
        out.write(frame({"number": head["number"], "told": told}))
        out.flush()


if __name__ == "__main__":
    work(serve)
