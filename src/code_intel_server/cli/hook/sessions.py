"""The session a project is in, as its files tell within milliseconds: led by a live process, or interrupted (SPEC 7, 12).

The lock file says whether a live process leads a session, and which. Without one, a checkpoint that the server would restore
is a session all the same: whole, signed with this machine's key, its task branch still there. It guards the files for as
long as HEAD is where it left it: on its task branch or, before it has one, on the commit it began with. Who has gone on to
other work is not held up by it.
"""

import json
import os
import re

from code_intel_server.common.locks import noted_by_holder
from code_intel_server.common.own_folder import FOLDER, WORKTREES
from code_intel_server.common.printable import printable
from code_intel_server.workspace.files import read_regular

_READ_LIMIT = 1_000_000
_REFS_LIMIT = 64 * _READ_LIMIT
_LOOKED_AT = 8
"""Interrupted sessions that are looked at, the newest: more would take the hook's time."""
_KEY_BYTES = 32
_SHOWN = 80
_HEADS = "refs/heads/"


class Session:
    """A session that is not over, its control values straight from its checkpoint; `live` where a process leads it."""

    def __init__(self, root: str, session_id: str, data: bytes, *, live: bool) -> None:
        self.root = root
        self.id = session_id
        self.live = live
        body = json.loads(data)
        self.version = body["schema_version"]
        self.generation = int(body["generation"])
        self.owner = body["session_id"]
        if "packed" in body:
            from code_intel_server.flow.encoding import unpacked

            body = unpacked(body)
        state = body["orchestrator_state"]
        self.phase = str(state["phase_state"]["current_phase"])
        self.substep = state["phase_state"]["ready_substep"]
        self.step = int(state["phase_state"]["step"])
        self.submits = int(state.get("submits") or 0)
        self.explored = {str(path) for path in state["explored_files"]}
        self.added = {str(path) for path in state["added_files"]}
        self.unseen = {str(path) for path in state.get("unseen_files", ())}
        self.started_at = str(state["started_at"])
        self.query = printable(" ".join(str(state["query"]).split())[:_SHOWN])
        self.conversation = str(state.get("conversation") or "")
        self.branch = str((state["task_branch"] or {}).get("name", ""))
        self.base = str(state["base"])
        self.tip = str(state["tip"])
        last = (state["last_submit"] or {}).get("response", {})
        self.instruction = str(last.get("instruction", "")) if last.get("phase") == self.phase else ""

    @property
    def at_step(self) -> str:
        """`step 5 of 19`."""
        from code_intel_server.flow.phases import LAST_STEP

        return f"step {self.step} of {LAST_STEP}"


def nearest_project(start: str) -> str:
    """The nearest folder upwards with `.code-intel/`; '' where there is none below the git root."""
    folder = os.path.realpath(start)
    while True:
        if os.path.isdir(os.path.join(folder, ".code-intel")):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder or os.path.exists(os.path.join(folder, ".git")):
            return ""
        folder = parent


def worktrees_of(home: str) -> dict[str, str]:
    """The sessions of a project that have a worktree to themselves → the project's root in it, oldest first."""
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


def session_root(home: str, conversation: str, named: list[str], *, writes: bool) -> str:
    """The project's root that an event is about: `home`, or that in the worktree which a session has to itself.

    The one that holds a file which is `named`, else the one whose session the conversation leads. A session that was
    restored does not know its conversation: if it is the only one, what is no write is about it.
    """
    made = worktrees_of(home)
    for root in made.values():
        if any(path.startswith(f"{root}/") for path in named):
            return root
    leading = {root: _conversation(root, one) for one, root in made.items() if live_session(root) == one}
    mine = [root for root, said in leading.items() if said and said == conversation]
    only = [root for root, said in leading.items() if not said and not writes and len(leading) == 1]
    return mine[-1] if mine else only[0] if only and not live_session(home) else home


def _conversation(root: str, session_id: str) -> str:
    try:
        return led(root, session_id).conversation
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return ""


# -- led by a live process --------------------------------------------------------------------------------------------


def live_session(root: str) -> str:
    """The session of this project whose process lives and holds the lock; '' where there is none."""
    noted = noted_by_holder(os.path.join(lock_folder(root), "lock"), 32 * 1024)
    return "" if noted is None else _holder(noted, root)


def led(root: str, session_id: str) -> Session:
    """The session that a live process leads. Raises whatever keeps its checkpoint from being read."""
    with open(os.path.join(root, ".code-intel", "sessions", f"{session_id}.json"), "rb") as stream:
        return Session(root, session_id, stream.read(_READ_LIMIT), live=True)


def _holder(lock: bytes, root: str) -> str:
    """The session that a lock file names for this project; '' where it names none.

    Two projects of one worktree share the lock (`workspace.state.lock.Owner.serves`).
    """
    try:
        owner = json.loads(lock)
        held_for = owner.get("root") or ""
        mine = not held_for or held_for == printable(os.path.realpath(root))
        return str(owner.get("session_id") or "") if mine else ""
    except (ValueError, AttributeError):
        return ""


# -- interrupted ------------------------------------------------------------------------------------------------------


def interrupted(root: str) -> list[Session]:
    """The sessions that no process leads and the server would restore, the last saved first."""
    folder = os.path.join(root, ".code-intel", "sessions")
    if os.path.islink(folder) or os.path.islink(os.path.dirname(folder)):
        return []
    try:
        names = [name for name in os.listdir(folder) if name.endswith(".json")]
        if not names:
            return []
        key = read_regular(os.path.join(key_folder(root), "key"), _KEY_BYTES)
    except OSError:
        return []
    from code_intel_server.workspace.state.signature import ID

    kept = re.compile(rf"({ID})(?:\.previous)?\.json", re.ASCII)
    ids = sorted({match[1] for name in names if (match := kept.fullmatch(name))})
    found = [_restorable(root, os.path.join(folder, session_id), key) for session_id in ids[-_LOOKED_AT:]]
    return sorted((one for one in found if one is not None), key=lambda one: -one.generation)


def is_here(session: Session) -> bool:
    """Whether HEAD is where an interrupted session left it; where that cannot be known (no git, refs in tables), it is."""
    git = _git_folder(session.root)
    try:
        head = read_regular(os.path.join(git, "HEAD"), _READ_LIMIT).decode("utf-8", "surrogateescape").strip()
    except OSError:
        return True
    if _in_tables(git):
        return True
    name = head.removeprefix("ref:").strip() if head.startswith("ref:") else ""
    if session.branch:
        return name == _HEADS + session.branch
    return name.removeprefix(_HEADS) == session.base and (_oid(git, name) if name else head) == session.tip


def _restorable(root: str, file: str, key: bytes) -> Session | None:
    """The generation of a checkpoint that the server would restore (`workspace.state.checkpoints`), if its branch is there."""
    from code_intel_server.workspace.state.signature import CHECKPOINT_SCHEMA, verified

    for end in (".json", ".previous.json"):
        try:
            session = Session(
                root, os.path.basename(file), verified(key, read_regular(file + end, _READ_LIMIT)), live=False
            )
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            continue
        git = _git_folder(root)
        known = session.version == CHECKPOINT_SCHEMA and session.owner == session.id
        gone = git and session.branch and not _in_tables(git) and not _oid(git, _HEADS + session.branch)
        return session if known and not gone else None
    return None


# -- git's files ------------------------------------------------------------------------------------------------------


def lock_folder(root: str) -> str:
    """Where `workspace.state.lock` keeps the lock of this worktree: in its git directory, or the user's state without git."""
    git = _git_folder(root)
    if git:
        return os.path.join(git, "code-intel")
    import hashlib

    state = os.environ.get("XDG_STATE_HOME", "")
    home = state if os.path.isabs(state) else os.path.join(os.path.expanduser("~"), ".local", "state")
    digest = hashlib.sha256(os.fsencode(os.path.realpath(root))).hexdigest()[:32]
    return os.path.join(home, "code-intel", "projects", digest)


def head_of(root: str) -> tuple[str, str, str, str]:
    """The worktree's top, its git directory, the one all worktrees share, and HEAD's commit ('' where no file tells it)."""
    git = _git_folder(root)
    if not git:
        return "", "", "", ""
    top = root
    while not os.path.lexists(os.path.join(top, ".git")):
        top = os.path.dirname(top)
    try:
        head = read_regular(os.path.join(git, "HEAD"), _READ_LIMIT).decode("utf-8", "surrogateescape").strip()
    except OSError:
        head = ""
    if head.startswith("ref:"):
        head = "" if _in_tables(git) else _oid(git, head.removeprefix("ref:").strip())
    return top, git, _common(git), head


def signing_key(common: str) -> bytes:
    """The key that checkpoints are signed with; nothing where there is none."""
    try:
        return read_regular(os.path.join(common, "code-intel", "key"), _KEY_BYTES)
    except OSError:
        return b""


def key_folder(root: str) -> str:
    """Where `workspace.state.key` keeps the key: all worktrees of a repository share it."""
    git = _git_folder(root)
    return os.path.join(_common(git), "code-intel") if git else lock_folder(root)


def _git_folder(root: str) -> str:
    """The git directory of the worktree that holds a folder; '' without git."""
    folder = root
    while True:
        entry = os.path.join(folder, ".git")
        if os.path.isdir(entry):
            return entry
        if os.path.isfile(entry):
            with open(entry, encoding="utf-8") as stream:
                target = stream.read(4096).removeprefix("gitdir:").strip()
            return os.path.normpath(os.path.join(folder, target))
        parent = os.path.dirname(folder)
        if parent == folder:
            return ""
        folder = parent


def _common(git: str) -> str:
    """The git directory that all worktrees share."""
    try:
        target = read_regular(os.path.join(git, "commondir"), _READ_LIMIT).decode("utf-8", "surrogateescape").strip()
    except FileNotFoundError:
        return git
    return os.path.normpath(os.path.join(git, target))


def _in_tables(git: str) -> bool:
    return os.path.isdir(os.path.join(_common(git), "reftable"))


def _oid(git: str, name: str) -> str:
    """The object that a ref names, '' where there is no such ref."""
    common = _common(git)
    try:
        return read_regular(os.path.join(common, name), _READ_LIMIT).decode().strip()
    except OSError:
        pass
    try:
        packed = read_regular(os.path.join(common, "packed-refs"), _REFS_LIMIT)
    except OSError:
        return ""
    found = re.search(rb"^([0-9a-f]+) " + re.escape(os.fsencode(name)) + rb"$", packed, re.MULTILINE)
    return found[1].decode() if found else ""
