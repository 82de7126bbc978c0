"""What the user has just typed, or answered to a question of the agent's: the choices in it are noted for the server (SPEC 12).

It says nothing and never holds a prompt up: whatever fails, it was not heard.
"""

from pathlib import Path

from code_intel_server.cli.hook import dialects
from code_intel_server.cli.hook.sessions import key_folder, live_session, lock_folder
from code_intel_server.errors import CodeIntelError
from code_intel_server.flow.checks.user_words import names_command, words_in
from code_intel_server.workspace.state import heard
from code_intel_server.workspace.state.key import load_key

Fields = dict[str, object]


def note_prompt(event: Fields, root: str) -> None:
    """Note what a prompt names of a session's choices; outside a session only one that may begin it."""
    prompt = dialects.user_text(event)
    try:
        words = words_in(prompt)
        session = live_session(root)
        begins = not session and (names_command(prompt) or any(word.startswith("--") for word in words))
        if begins or (session and words):
            key = load_key(Path(key_folder(root)))
            whose = session or heard.NO_SESSION, dialects.conversation(event)
            heard.add(Path(lock_folder(root)), key, *whose, words, afresh=begins)
    except (OSError, ValueError, CodeIntelError):
        return
