"""`hook`: what Claude Code and Codex ask before a write, after a compaction and at the end of a turn (SPEC 12).

It must answer in under 100 ms, so it imports next to nothing and reads the state where it lies: the lock file says whether a
live process leads a session, and which; that session's newest checkpoint says what may be written. The judgement itself is
`flow.writable`, the same as the server's. The tree check of the server stays the law; this is the early warning.

Clients let a hook that fails (exit 1, a traceback) pass. So its own failure during a session is a refusal with the reason
(exit 2), and without a session it is silence.
"""

import fcntl
import json
import os
import re
import sys

from code_intel_server.flow.writable import Why, why_writable_in
from code_intel_server.printable import printable

_READ_LIMIT = 1_000_000
_WRITERS = frozenset({"Edit", "Write", "NotebookEdit", "MultiEdit", "apply_patch"})
_PATCH_FILE = r"(?m)^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.*\S|.)"
_REFUSE = 2

Fields = dict[str, object]


class _Session:
    """The session a live process holds in a project; control values straight from its checkpoint."""

    def __init__(self, root: str, session_id: str) -> None:
        self.root = root
        self.id = session_id
        with open(os.path.join(root, ".code-intel", "sessions", f"{session_id}.json"), "rb") as stream:
            body = json.loads(stream.read(_READ_LIMIT))
        if "packed" in body:
            from code_intel_server.flow.packing import unpacked

            body = unpacked(body)
        state = body["orchestrator_state"]
        self.phase = str(state["phase_state"]["current_phase"])
        self.substep = state["phase_state"]["ready_substep"]
        self.step = int(state["phase_state"]["step"])
        self.explored = {str(path) for path in state["explored_files"]}
        self.added = {str(path) for path in state["added_files"]}
        self.started_at = str(state["started_at"])
        last = (state["last_submit"] or {}).get("response", {})
        self.instruction = str(last.get("instruction", "")) if last.get("phase") == self.phase else ""


def main(_arguments: list[str]) -> int:
    """Answer one hook event from standard input; 0 lets pass, 2 refuses with the reason on standard error."""
    try:
        event: Fields = json.loads(sys.stdin.buffer.read(16 * _READ_LIMIT))
        start = str(event.get("cwd") or "")
    except (ValueError, AttributeError, RecursionError):
        event, start = {"hook_event_name": "PreToolUse", "tool_name": "Write"}, ""
    root = project_root(start or os.getcwd())
    session_id = live_session(root) if root else ""
    if not session_id:
        return 0
    try:
        return answer(event, _Session(root, session_id))
    except Exception as error:  # noqa: BLE001 - clients let exit 1 pass: whatever it is must become a refusal
        said = f"{type(error).__name__}: {error}"
        print(f"code-intel: this cannot be judged ({said}). Call get_session_status, then try again.", file=sys.stderr)
        return _REFUSE


def answer(event: Fields, session: _Session) -> int:
    """Judge one event of a live session."""
    name = event.get("hook_event_name")
    if name == "PreToolUse":
        return _before_write(event, session)
    if name == "SessionStart":
        return _after_start(event, session)
    if name == "Stop":
        return _before_stop(event, session)
    return 0


def project_root(start: str) -> str:
    """The nearest folder upwards with `.code-intel/`; '' where there is none below the git root."""
    folder = os.path.realpath(start)
    while True:
        if os.path.isdir(os.path.join(folder, ".code-intel")):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder or os.path.exists(os.path.join(folder, ".git")):
            return ""
        folder = parent


def live_session(root: str) -> str:
    """The session of this project whose process lives and holds the lock; '' where there is none."""
    try:
        descriptor = os.open(os.path.join(lock_folder(root), "lock"), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _holder(os.pread(descriptor, 32 * 1024, 0), root)
    except OSError:
        return ""
    finally:
        os.close(descriptor)
    return ""


def _holder(lock: bytes, root: str) -> str:
    """The session that a lock file names for this project; '' where it names none.

    Two projects of one worktree share the lock (`workspace.lock.Owner.serves`).
    """
    try:
        owner = json.loads(lock)
        held_for = owner.get("root") or ""
        mine = not held_for or held_for == printable(os.path.realpath(root))
        return str(owner.get("session_id") or "") if mine else ""
    except (ValueError, AttributeError):
        return ""


def lock_folder(root: str) -> str:
    """Where `workspace.lock` keeps the lock of this worktree: its git directory, or the user's state without git."""
    folder = root
    while True:
        entry = os.path.join(folder, ".git")
        if os.path.isdir(entry):
            return os.path.join(entry, "code-intel")
        if os.path.isfile(entry):
            with open(entry, encoding="utf-8") as stream:
                target = stream.read(4096).removeprefix("gitdir:").strip()
            return os.path.join(os.path.normpath(os.path.join(folder, target)), "code-intel")
        parent = os.path.dirname(folder)
        if parent == folder:
            break
        folder = parent
    import hashlib

    state = os.environ.get("XDG_STATE_HOME", "")
    home = state if os.path.isabs(state) else os.path.join(os.path.expanduser("~"), ".local", "state")
    digest = hashlib.sha256(os.fsencode(os.path.realpath(root))).hexdigest()[:32]
    return os.path.join(home, "code-intel", "projects", digest)


def targets(event: Fields) -> list[str]:
    """The paths a tool is about to write."""
    given = event.get("tool_input")
    values = given if isinstance(given, dict) else {"input": given} if isinstance(given, str) else {}
    if event.get("tool_name") == "Bash":  # Codex models without the tool call apply_patch in a shell
        command = str(values.get("command") or values.get("cmd") or "")
        return re.findall(_PATCH_FILE, command) if "apply_patch" in command else []
    if event.get("tool_name") not in _WRITERS:
        return []
    if event.get("tool_name") == "apply_patch" or "command" in values or "input" in values:
        text = values.get("command") or values.get("input") or values.get("patch") or ""
        words = text if isinstance(text, list) else [text]
        return re.findall(_PATCH_FILE, "\n".join(str(word) for word in words))
    named = values.get("file_path") or values.get("notebook_path") or values.get("path")
    if not isinstance(named, str):
        raise ValueError(f"{event.get('tool_name')} names no path")  # noqa: TRY004 - one kind: it cannot be judged
    return [named]


def inside(root: str, cwd: str, path: str) -> str:
    """`path` relative to the project, links resolved; '' where it lies outside."""
    real = os.path.realpath(os.path.join(cwd, path))
    return os.path.relpath(real, root) if real != root and os.path.commonpath([root, real]) == root else ""


def _before_write(event: Fields, session: _Session) -> int:
    cwd = str(event.get("cwd") or session.root)
    for path in targets(event):
        relative = inside(session.root, cwd, path)
        if not relative or relative.split(os.sep)[0] == ".git":
            continue
        if reason := refusal(session, relative):
            print(reason, file=sys.stderr)
            return _REFUSE
    return 0


def refusal(session: _Session, path: str) -> str:
    """Why a file of the project may not be written now; '' where it may."""
    why = _why(session, path, exists=True)
    if why is Why.UNEXPLORED:  # only then does it matter when the file was made
        why = _why(session, path, exists=_existed(os.path.join(session.root, path), session.started_at))
    if why is Why.EARLY:
        return (
            f"code-intel: {path} may not be written in step {session.step} ({session.phase}). Files are written in steps 13 and 14 only. "
            "Go on with submit_phase; get_session_status tells the instruction."
        )
    if why is Why.UNEXPLORED:
        return (
            f"code-intel: {path} was not explored in this session. Look at it first, then make it writable with "
            f'add_explored_files(["{path}"], reason), and write again.'
        )
    return ""


def _why(session: _Session, path: str, *, exists: bool) -> Why:
    return why_writable_in(session.phase, session.substep, path, session.explored, session.added, exists=exists)


def _existed(path: str, started_at: str) -> bool:
    """Whether a file was there when the session began: as good as its times tell, for what is written since is new."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    from datetime import datetime

    return getattr(status, "st_birthtime", status.st_ctime) < datetime.fromisoformat(started_at).timestamp()


def _mark(session: _Session) -> None:
    """Leave the note for the server; through no link, since the agent may have put one there, and clients may confine it and not us."""
    folder = session.root
    for name in (".code-intel", "sessions"):
        folder = os.path.join(folder, name)
        if os.path.islink(folder):
            return
    marker = os.path.join(folder, f"{session.id}.compacted")
    if not os.path.islink(marker):
        os.close(os.open(marker, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644))


def _after_start(event: Fields, session: _Session) -> int:
    """Mark the session as compacted for the server, and hand the agent where it stands: standard output enters its context."""
    if event.get("source") == "compact":
        _mark(session)
    print(
        f"A code-intel session is active in this project: {session.id}, step {session.step} of 19, phase {session.phase}"
        f"{' (' + str(session.substep) + ')' if session.substep else ''}.\n"
        f"{session.instruction}\n"
        "Call get_session_status for the expected payload and the summaries of the phases so far; then go on with submit_phase "
        "until phase is SESSION_COMPLETE."
    )
    return 0


def _before_stop(event: Fields, session: _Session) -> int:
    """Remind once: a turn that goes on because of this hook is not held again."""
    if event.get("stop_hook_active"):
        return 0
    reason = (
        f"code-intel: session {session.id} is in step {session.step} ({session.phase}), not complete. Go on: get_session_status, do what "
        "it says, submit_phase. If you are waiting for the user's answer, or the user wanted to stop, end your turn again."
    )
    print(json.dumps({"decision": "block", "reason": reason}))
    return 0
