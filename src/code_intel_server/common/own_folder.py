"""Our own folder in a project: its name, and what in it a server writes, for every room that looks at the user's files."""

from itertools import pairwise

FOLDER = ".code-intel"

WORKTREES = "worktrees"
"""Where sessions with the flag worktree work, a folder each, named by the session."""

CONFIG_FILE = f"{FOLDER}/config.json"
"""What names the verify commands."""

CALLER_NOTE = "caller.json"
"""What the hook notes of a client that calls start_session; it lies next to the lock, outside this folder."""

EXCLUDED = ("sessions", "cache", "chroma", "logs", WORKTREES)
"""Names under `.code-intel` that git never sees (SPEC 6.8)."""

SERVER_WRITES = (*EXCLUDED, "agreements", "context.yml")
"""Names under `.code-intel` that the server itself writes: never a change of the user's or the agent's (SPEC 4)."""


def is_written(path: str) -> bool:
    """Whether a relative path is, or lies below, what a server writes: that of the project or of one that lies within it."""
    pairs = pairwise(path.split("/")) if FOLDER in path else ()
    return any(above == FOLDER and name in SERVER_WRITES for above, name in pairs)


def home_of(root: str) -> str:
    """The project whose session has the worktree that `root` is in; '' where it is in none."""
    home, mark, below = root.rpartition(f"/{FOLDER}/{WORKTREES}/")
    return home if mark and below else ""
