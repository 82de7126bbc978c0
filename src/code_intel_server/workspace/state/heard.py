"""What the client's prompt hook heard of the user's choices, signed, beside the project's lock and outside the tree (SPEC 12).

A file for each conversation and session: rows of words as `flow.checks.user_words` finds them, one row a prompt, never its
text. Two clients never write the same file. Each file is replaced as a whole, so a kill leaves the rows before or the rows
after. A damaged, foreign or oversized file reads as nothing heard. The key tells our own rows from what came with a copy of
the folder; a process of the same user can read it, so a row is no proof.
"""

import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from code_intel_server.workspace.files import discard, make_folder, read_regular, write_whole
from code_intel_server.workspace.state.signature import signed, verified

HEARD_FOLDER = "heard"
NO_SESSION = "next"
"""In place of a session's id, for what is heard while none is led: the next one may begin with it."""
ROWS_AT_MOST = 16
FILES_AT_MOST = 32
_FILE_BYTES = 16_000

HeardRows = list[list[str]]


def since(session_id: str, submits: int) -> str:
    """In place of a session's id, for what is heard since it accepted so many submits: after the next it answers nothing."""
    return f"{session_id}.{submits}"


def add(folder: Path, key: bytes, session: str, conversation: str, words: Sequence[str], *, afresh: bool) -> None:
    """Keep the words of one prompt; `afresh` in place of all earlier rows of its conversation. Raises OSError."""
    make_folder(folder / HEARD_FOLDER, 0o700)
    file = _file(folder, session, conversation)
    kept = [] if afresh else _rows(file, key)
    content = json.dumps({"of": file.name, "rows": [*kept, [*words]][-ROWS_AT_MOST:]}).encode()
    write_whole(file, signed(key, content[1:]))
    _drop_old(file.parent)


def rows(folder: Path, key: bytes, session: str, conversation: str) -> HeardRows:
    """What was heard in a conversation, oldest first; where it is not known ('') in any of this session's."""
    return [row for file in _files(folder, session, conversation) for row in _rows(file, key)]


def forget(folder: Path, session: str, conversation: str = "") -> None:
    """Remove what was heard in a conversation, or in all of a session's."""
    for file in _files(folder, session, conversation):
        discard(file)


def _file(folder: Path, session: str, conversation: str) -> Path:
    digest = hashlib.sha256(conversation.encode("utf-8", "replace")).hexdigest()[:16]
    return folder / HEARD_FOLDER / f"{session}.{digest}.json"


def _files(folder: Path, session: str, conversation: str) -> list[Path]:
    if conversation:
        return [_file(folder, session, conversation)]
    return sorted((folder / HEARD_FOLDER).glob(f"{session}.*.json"))


def _rows(file: Path, key: bytes) -> HeardRows:
    try:
        content = json.loads(verified(key, read_regular(file, _FILE_BYTES)))
        return [[str(word) for word in row] for row in content["rows"]] if content["of"] == file.name else []
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return []


def _drop_old(folder: Path) -> None:
    """Keep the files last written: conversations end without a word, and a kill leaves a temporary file behind."""
    with suppress(OSError), os.scandir(folder) as entries:
        stamped = sorted((entry.stat(follow_symlinks=False).st_mtime_ns, entry.path) for entry in entries)
        for _, path in stamped[:-FILES_AT_MOST]:
            discard(Path(path))
