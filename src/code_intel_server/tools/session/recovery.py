"""What a session can go on from: checkpoints that no live process has, and what they may lack (SPEC 7)."""

from collections.abc import Mapping

from pydantic import JsonValue

from code_intel_server.errors import Rejected, Unavailable
from code_intel_server.flow.session import SessionState
from code_intel_server.tools.session.decisions import accepted_submits
from code_intel_server.workspace.state.checkpoints import CheckpointStore, Loaded
from code_intel_server.workspace.state.journals import Journal

_AT_MOST = 5
_QUERY_CHARACTERS = 300


def recoverable(store: CheckpointStore) -> list[JsonValue]:
    """The sessions that can be restored, as an answer names them, newest first."""
    rows: list[JsonValue] = []
    for loaded in store.usable()[:_AT_MOST]:
        try:
            state = SessionState.from_checkpoint(loaded.body)
        except Unavailable:
            continue
        rows.append(
            {
                "session_id": state.session_id,
                "phase": str(state.phase),
                "step": state.place.step,
                "query": state.query[:_QUERY_CHARACTERS],
                "started_at": state.started_at,
            }
        )
    return rows


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


def lost_submits(decisions: Journal, final: Mapping[str, JsonValue] | None, state: SessionState) -> int:
    """How many submits of the session were accepted, as the decision log says, and are not in its state."""
    accepted = accepted_submits(decisions.tail().records, state.session_id)
    # A last submit that a kill came behind is in the log, and is to be sent again.
    ended = final is not None and final.get("session_id") == state.session_id
    return max(0, accepted - ended - state.submits)
