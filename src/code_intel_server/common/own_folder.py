"""Our own folder in a project: its name, and what in it a server writes, for every room that looks at the user's files."""

import os
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
    return FOLDER in path and any(
        above == FOLDER and name in SERVER_WRITES for above, name in pairwise(path.split("/"))
    )


def home_of(root: str) -> str:
    """The project whose session has the worktree that `root` is in; '' where it is in none."""
    home, mark, below = root.rpartition(f"/{FOLDER}/{WORKTREES}/")
    return home if mark and below else ""


def worktrees_of(home: str) -> dict[str, str]:
    """The sessions of a project that have a worktree → the project's root in it, oldest first."""
    folder = os.path.join(home, FOLDER, WORKTREES)
    try:
        names = [] if os.path.islink(os.path.dirname(folder)) or os.path.islink(folder) else os.listdir(folder)
    except OSError:
        return {}
    made = [name for name in sorted(names) if os.path.isfile(os.path.join(folder, name, ".git"))]
    top = home
    while made and not os.path.lexists(os.path.join(top, ".git")) and top != os.path.dirname(top):
        top = os.path.dirname(top)
    below = "" if top == home else os.path.relpath(home, top)
    return {name: os.path.join(folder, name, below).rstrip("/") for name in made}
