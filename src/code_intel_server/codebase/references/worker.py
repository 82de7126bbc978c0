"""The child process that tells uses: a grammar keeps its interpreter to itself while it parses, so of many files some are
parsed here.

Reads one request after the other from stdin, each with files, their matching lines as ripgrep printed them and their
skeletons as far as known, answers with their rows and new skeletons on what was stdout, and ends with the server, whose
death closes the pipes.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import IO

from code_intel_server.codebase.files.ripgrep import FileMatches
from code_intel_server.codebase.references.classify import NameQuery, classify
from code_intel_server.codebase.symbols.freshness import SourceFiles
from code_intel_server.codebase.syntax.skeletons import Skeleton
from code_intel_server.common.child_wire import frame, read_frame, work


def serve(read: Callable[[int], bytes], out: IO[bytes]) -> None:
    """Answer until the pipe closes: the request's number and the rows of each of its files."""
    while True:
        head, body = read_frame(read)
        standing = SourceFiles(Path(head["root"]))
        asked = NameQuery(re.compile(head["names"].encode("latin-1")), head["include_comments"])
        told: list[list[object] | None] = []
        noted: list[bytes] = []
        rest = memoryview(body)
        for path, count, of_lines, of_skeleton in head["files"]:
            printed, packed = bytes(rest[:of_lines]), bytes(rest[of_lines : of_lines + of_skeleton])
            rest = rest[of_lines + of_skeleton :]
            given = Skeleton.unpacked(packed)
            if given is not None:
                standing.skeletons.note(path, given)
            rows = classify(standing, FileMatches(path, count, printed), asked)
            told.append(None if rows is None else [row.packed() for row in rows])
            known = standing.skeletons.of(path)
            noted.append(known.packed if known is not None and known != given else b"")
        answer = {"number": head["number"], "told": told, "noted": list(map(len, noted))}
        out.write(frame(answer, b"".join(noted)))
        out.flush()


if __name__ == "__main__":
    work(serve)
