"""What a session can go on from: checkpoints that no live process has, and what they may lack (SPEC 7).

They are in the project, and in the worktrees that its sessions have for themselves.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from shlex import quote

from pydantic import JsonValue

from code_intel_server.common.own_folder import WORKTREES, home_of
from code_intel_server.contract import Contract
from code_intel_server.errors import Rejected, Unavailable
from code_intel_server.flow.session import SessionState
from code_intel_server.tools.services import ProjectServices
from code_intel_server.tools.session.decisions import accepted_submits
from code_intel_server.workspace.git.worktrees import session_worktrees
from code_intel_server.workspace.paths import Project
from code_intel_server.workspace.state.checkpoints import CheckpointStore, Loaded
from code_intel_server.workspace.state.journals import Journal
from code_intel_server.workspace.state.key import private_folder
from code_intel_server.workspace.state.lock import ProjectLock

_AT_MOST = 5
_QUERY_CHARACTERS = 300


def recoverable(services: ProjectServices) -> list[JsonValue]:
    """The sessions that can be restored, as an answer names them, newest first; those in worktrees of their own last."""
    rows: list[JsonValue] = []
    for root in (services.root, *idle_worktrees(services)):
        for loaded in _store(services, root).usable()[:_AT_MOST]:
            with suppress(Unavailable):
                state = SessionState.from_checkpoint(loaded.body)
                row: dict[str, JsonValue] = {
                    "session_id": state.session_id,
                    "phase": str(state.phase),
                    "step": state.place.step,
                    "query": state.query[:_QUERY_CHARACTERS],
                    "started_at": state.started_at,
                }
                rows.append(row | ({} if root == services.root else {"worktree": str(root)}))
    return rows[:_AT_MOST]


def unrestorable(services: ProjectServices, contract: Contract) -> list[JsonValue]:
    """What is kept of sessions and cannot be restored as things are, each with the way back."""
    errors = [one.as_error() for one in services.store.unusable()]
    messages = [contract.message(error.key, error.params) for error in errors]
    said: list[JsonValue] = [f"{message.text} {message.instruction}" for message in messages]
    if isinstance(git := services.git, str):
        return said
    known = {path for _, path in session_worktrees(git)}
    tops = [top for top in (services.project.folder / WORKTREES).glob("*") if str(top) not in known]
    moved = [top for top in tops if any(Project(top / git.at.prefix).sessions.glob("*.json"))]
    return said + [contract.message("warnings.worktree_moved", {"worktree": quote(str(top))}).text for top in moved]


def idle_worktrees(services: ProjectServices) -> list[Path]:
    """The project's roots in the worktrees of its sessions that no process leads, newest first."""
    if not (services.project.folder / WORKTREES).is_dir() or isinstance(git := services.git, str):
        return []
    mine = [one for one in session_worktrees(git) if home_of(one[1]) == str(services.root)]
    newest = sorted(mine, key=lambda one: one[1], reverse=True)
    roots = ((record, Path(path) / git.at.prefix) for record, path in newest)
    return [
        root
        for record, root in roots
        if root.is_dir() and ProjectLock(private_folder(record, root), root).owner() is None
    ]


def kept_at(services: ProjectServices, session_id: str | None, dropped: str) -> Path:
    """The root at which the session to restore is kept: the newest but `dropped` where none is named, the project's own first."""
    for root in (services.root, *idle_worktrees(services)):
        ids = {loaded.session_id for loaded in _store(services, root).usable()} - {dropped}
        if session_id in ids or (session_id is None and ids):
            return root
    return services.root


def _store(services: ProjectServices, root: Path) -> CheckpointStore:
    return services.store if root == services.root else CheckpointStore(Project(root).sessions, services.key)


def to_restore(store: CheckpointStore, session_id: str | None, dropped: str) -> Loaded:
    """The named checkpoint, or the newest but that of `dropped`, the active session if there is one.

    Raises Rejected, or Unavailable for a checkpoint that cannot be read, where there is none.
    """
    if session_id is not None:
        return store.load(session_id)
    found = next((one for one in store.usable() if one.session_id != dropped), None)
    if found is not None:
        return found
    broken = store.unusable()
    if broken:
        raise broken[0].as_error()
    if dropped:
        raise Rejected("tool_errors.get_session_status.nothing_else", session_id=dropped)
    raise Rejected("session_messages.no_active_session_short")


def lost_submits(decisions: Journal, finals: Sequence[Mapping[str, JsonValue]], state: SessionState) -> int:
    """How many submits of the session were accepted, as the decision log says, and are not in its state."""
    accepted = accepted_submits(decisions.tail().records, state.session_id)
    # A last submit that a kill came behind is in the log, and is to be sent again.
    ended = any(final.get("session_id") == state.session_id for final in finals)
    return max(0, accepted - ended - state.submits)
