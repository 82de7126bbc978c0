"""What the user has just typed, or answered to a question of the agent's: the choices in it are noted for the server (SPEC 12).

It says nothing and never holds a prompt up: whatever fails, it was not heard.
"""

from collections.abc import Sequence
from pathlib import Path

from code_intel_server.cli.hook import dialects
from code_intel_server.cli.hook.sessions import interrupted, key_folder, led, live_session, lock_folder
from code_intel_server.errors import CodeIntelError
from code_intel_server.flow.checks.user_words import names_command, words_in
from code_intel_server.workspace.state import heard
from code_intel_server.workspace.state.key import load_key

Fields = dict[str, object]


def note_prompt(event: Fields, root: str) -> None:
    """Note what a prompt names of a session's choices: for the one that it may begin, and for the one it may answer."""
    prompt = dialects.user_text(event)
    try:
        words = words_in(prompt)
        if names_command(prompt) or any(word.startswith("--") for word in words):
            _keep(event, root, heard.NO_SESSION, words, afresh=True)
        live = live_session(root)
        session = led(root, live) if live else next(iter(interrupted(root)), None)
        if session and words:
            _keep(event, root, heard.since(session.id, session.submits), words, afresh=False)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError, CodeIntelError):
        return


def _keep(event: Fields, root: str, session: str, words: Sequence[str], *, afresh: bool) -> None:
    key = load_key(Path(key_folder(root)))
    heard.add(Path(lock_folder(root)), key, session, dialects.conversation(event), words, afresh=afresh)
