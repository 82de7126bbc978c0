"""What a start with the flag `rebuild` says of the index: alone, or besides what else it did (SPEC 3.2)."""

from typing import TYPE_CHECKING

from pydantic import JsonValue

from code_intel_server.contract import Contract
from code_intel_server.errors import Unavailable
from code_intel_server.flow import responses
from code_intel_server.flow.phases import End
from code_intel_server.flow.turn import Note

if TYPE_CHECKING:
    from code_intel_server.index.values import SyncReport

Fields = dict[str, JsonValue]

_UNFINISHED = "tool_errors.sync_index.rebuild_unfinished"


def rebuild_answer(contract: Contract, done: "SyncReport") -> Fields:
    """The answer where nothing else was wanted. Raises Unavailable('tool_errors.sync_index.rebuild_unfinished')."""
    if done.cancelled:
        raise Unavailable(_UNFINISHED, reason=_why(done))
    return {"success": True, "phase": str(End.COMPLETE), "call": "none", "message": _rebuild_note(contract, done)}


def after_rebuild(answer: Fields, contract: Contract, done: "SyncReport") -> Fields:
    """What a start or `clean` answers after a rebuild: a session needs to be informed only of one that ended early."""
    if done.cancelled:
        message = contract.message(_UNFINISHED, {"reason": _why(done)})
        known = answer.get("warnings")
        warnings = [*known] if isinstance(known, list) else []
        return answer | {"warnings": [*warnings, f"{message.text} {message.instruction or ''}".rstrip()]}
    if answer.get("call") == "none":
        return answer | {"message": f"{answer['message']} {_rebuild_note(contract, done)}"}
    return answer


def _rebuild_note(contract: Contract, done: "SyncReport") -> str:
    return responses.say(contract, Note("success.session.rebuild_done", {"files": done.files, "chunks": done.chunks}))


def _why(done: "SyncReport") -> str:
    return " ".join(done.notes) or "it was stopped."
