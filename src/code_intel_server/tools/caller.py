"""What is known of the client that starts a session: do its hooks run, and may it write files? (SPEC 12)

Its hook notes both a moment before start_session is called (`cli.hook`). Where a project has that hook and no note lies
there, the client runs no hooks: Codex leaves out, in silence, those that its user has not approved.
"""

import json
from pathlib import Path

from code_intel_server.common.own_folder import CALLER_NOTE
from code_intel_server.flow import responses
from code_intel_server.flow.phases import READY_PLAN
from code_intel_server.flow.turn import Note
from code_intel_server.tools.session.sessions import Sessions
from code_intel_server.tools.shaping import Fields
from code_intel_server.workspace.files import read_regular

_NOTE_BYTES, _SETTINGS_BYTES = 10_000, 4 * 1024 * 1024
_CLIENTS = {
    "claude": (".claude/settings.json", "warnings.hooks_unseen_claude"),
    "codex": (".codex/hooks.json", "warnings.hooks_unseen_codex"),
}
_WRITING_MODES = {"acceptEdits", "bypassPermissions", "auto"}


def caller_note(sessions: Sessions) -> Fields | None:
    """What the caller's hook has noted for this call; None where none ran. No later call may take it for its own."""
    return _taken(sessions.services.local / CALLER_NOTE)


def with_warnings(sessions: Sessions, answer: Fields, note: Fields | None, client: str) -> Fields:
    """The answer to start_session with what its caller lacks for the session that has begun.

    `caller_note` is what its hook has noted, `client` the name by which it introduced itself.
    """
    active = sessions.active
    if active is None:
        return answer
    project = sessions.services.project
    lacks = _hooks_missing(project.home or project.root, client) if note is None else _writes_missing(note)
    if lacks is None or not active.state.route.runs(READY_PLAN):
        return answer
    given = answer.get("warnings")
    return answer | {
        "warnings": [*(given if isinstance(given, list) else []), responses.say(active.settings.contract, lacks)]
    }


def _taken(file: Path) -> Fields | None:
    try:
        data = read_regular(file, _NOTE_BYTES)
        file.unlink()
        note = json.loads(data)
    except (OSError, ValueError):
        return None
    return note if isinstance(note, dict) else None


def _hooks_missing(root: Path, client: str) -> Note | None:
    found = next((known for name, known in _CLIENTS.items() if client.startswith(name)), None)
    if found is None:
        return None
    try:
        registered = "__start_session" in read_regular(root / found[0], _SETTINGS_BYTES, follow=True).decode()
    except (OSError, UnicodeDecodeError):
        return None
    return Note(found[1]) if registered else None


def _writes_missing(note: Fields) -> Note | None:
    if note.get("attended") or note.get("writes") or note.get("mode") in _WRITING_MODES:
        return None
    return Note("warnings.writes_not_granted", {"mode": str(note.get("mode"))})
