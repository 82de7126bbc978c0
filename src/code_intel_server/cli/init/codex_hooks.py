"""Whether Codex's user has approved our hooks of a project, asked of Codex itself, and the approval on the user's word.

`codex exec` leaves out, in silence, hooks that nobody has approved, and has no door to approve them. Its app server has: it
lists a project's hooks with their hashes and keeps the user's approval of a hash in their own config.toml. No hash is
computed here, and an approval is believed only when Codex lists it as such.
"""

import json
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from code_intel_server import __version__, process
from code_intel_server.cli.command import COMMAND

if TYPE_CHECKING:
    import subprocess

_SECONDS = 30.0
_OURS = f"{COMMAND} hook"
_APPROVED = {"trusted", "managed"}

AskCodex = Callable[[str, dict[str, Any]], Any]


class Unanswered(Exception):
    """Codex is not there, or does not answer as expected; the text says why."""


def unapproved(root: Path) -> list[str]:
    """The events whose hook of ours Codex would leave out in this project, were it trusted. Raises Unanswered."""
    with _asking(root) as ask:
        return [str(hook["eventName"]) for hook in _ours(ask, root) if hook["trustStatus"] not in _APPROVED]


def approve(root: Path) -> int:
    """Approve our hooks of a project in the user's own Codex configuration; how many there are. Raises Unanswered."""
    with _asking(root) as ask:
        hooks = _ours(ask, root)
        approvals = {hook["key"]: {"trusted_hash": hook["currentHash"]} for hook in hooks}
        _write(ask, {"keyPath": "hooks.state", "value": approvals, "mergeStrategy": "upsert"})
        left_out = [hook["eventName"] for hook in _ours(ask, root) if hook["trustStatus"] not in _APPROVED]
    if left_out or not hooks:
        raise Unanswered(f"not approved: {', '.join(left_out) or 'no hook of ours is listed'}")
    return len(hooks)


def withdraw(root: Path) -> int:
    """Take approvals of our hooks out of the user's Codex configuration; how many there were. Raises Unanswered."""
    with _asking(root) as ask:
        keys = [hook["key"] for hook in _ours(ask, root) if hook["trustStatus"] != "untrusted"]
        edits = [{"keyPath": f"hooks.state.{_quoted(key)}", "value": None, "mergeStrategy": "replace"} for key in keys]
        _write(ask, *edits)
    return len(keys)


def _ours(ask: AskCodex, root: Path) -> list[dict[str, Any]]:
    (row,) = ask("hooks/list", {"cwds": [str(root)]})["data"]
    return [hook for hook in row["hooks"] if hook["command"] == _OURS and hook["source"] == "project"]


def _write(ask: AskCodex, *edits: dict[str, Any]) -> None:
    if edits:
        ask("config/batchWrite", {"edits": [*edits]})


@contextmanager
def _asking(root: Path) -> Iterator[AskCodex]:
    """Codex's app server for a project that it takes for trusted while it runs: else it lists no hooks."""
    codex = shutil.which("codex")
    if codex is None:
        raise Unanswered("codex is not on PATH")
    trusted = f'projects={{{_quoted(str(root))}={{trust_level="trusted"}}}}'
    try:
        child = process.spawn([codex, "app-server", "-c", trusted], cwd=root)
    except OSError as error:
        raise Unanswered(str(error)) from error
    limit = threading.Timer(_SECONDS, process.end_group, [child])
    try:
        limit.start()
        yield _talk(child)
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise Unanswered(
            f"its app server does not answer as expected ({type(error).__name__}: {error})"[:200]
        ) from error
    finally:
        limit.cancel()
        process.end_group(child)
        for stream in (child.stdin, child.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()


def _talk(child: "subprocess.Popen[bytes]") -> AskCodex:
    """Shake hands, and ask one thing after the other: a line of JSON each way."""
    sender, receiver, numbers = child.stdin, child.stdout, count()
    assert sender is not None and receiver is not None  # `process.spawn` pipes both

    def send(message: dict[str, Any]) -> None:
        """Write one line."""
        sender.write(json.dumps(message).encode() + b"\n")
        sender.flush()

    def ask(method: str, params: dict[str, Any]) -> Any:
        """The result of one request; what else Codex says meanwhile is passed over."""
        number = next(numbers)
        send({"id": number, "method": method, "params": params})
        for line in receiver:
            answer = json.loads(line)
            if answer.get("id") == number:
                return answer["result"]
        raise ValueError("it has ended")

    ask("initialize", {"clientInfo": {"name": "code-intel", "version": __version__}})
    send({"method": "initialized"})
    return ask


def _quoted(text: str) -> str:
    """A key as TOML quotes it."""
    return json.dumps(text, ensure_ascii=False)
