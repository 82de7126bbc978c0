"""How a git effect says no: a reason for programs, a sentence for people, wrapped into the message of the phase."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from code_intel_server.errors import CodeIntelError, Rejected, UserActionNeeded

_WITHOUT_OUTPUT = {
    "tool_errors.generic.checkpoint_not_saved": "the session could not be saved: {error}",
    "tool_errors.generic.state_unavailable": "{path} cannot be used: {error}",
    "tool_errors.git.changed_meanwhile": "{path} was changed by somebody while it was being put back",
    "tool_errors.git.failed": "{command} failed without a word",
    "tool_errors.git.folder_unsafe": "{path} is a link that leads somewhere else, or no folder",
    "tool_errors.git.hook_failed": "the hook {hook} refused and did not say why",
    "tool_errors.git.index_locked": "another git process has held {path} for {seconds} s",
    "tool_errors.git.missing": "git cannot be started: {reason}",
    "tool_errors.git.switch_failed": "git did not switch, and did not say why",
    "tool_errors.git.timed_out": "{command} was stopped after {seconds} s",
    "tool_errors.git.too_much_output": "{command} printed more than can be read",
}
"""Failures that git had no words for: what is as the cause in the phase's own message."""


NOT_COMMITTED = "tracked files have changes that are not committed"


def words(error: CodeIntelError) -> str:
    """What went wrong in a git effect, as one sentence for people."""
    said = str(error.params.get("output") or "")
    return (
        said or _WITHOUT_OUTPUT.get(error.key, "").format_map(error.params) or str(error.params.get("error") or error)
    )


def refuse(reason: str, output: str, **details: object) -> UserActionNeeded:
    """A refusal inside an effect, key `tool_errors.git.<reason>`; nothing has changed."""
    return UserActionNeeded(f"tool_errors.git.{reason}", details={"reason": reason, **details}, output=output)


def dirty(said: str, changed: Sequence[str]) -> UserActionNeeded:
    """The refusal for tracked files with changes, of which it names twenty."""
    return refuse("dirty", f"{said}: {', '.join(changed[:20])}", files=changed)


@contextmanager
def failing_as(key: str, **params: object) -> Iterator[None]:
    """Within the block whatever git refuses or fails at is raised as the phase's own message; Rejected is one already."""
    try:
        yield
    except Rejected:
        raise
    except CodeIntelError as error:
        raise failed(key, error, **params) from error


def failed(key: str, error: CodeIntelError, **params: object) -> UserActionNeeded:
    """The phase's own message around a refusal or a failure of git; details carry `reason` and `output`."""
    output = words(error)
    details = {"reason": error.key.rpartition(".")[2], **error.params, "output": output, **error.details}
    details.pop("error", None)  # the name that the answer itself has for what is wrong
    return UserActionNeeded(key, details=details, output=output, errors=output, **params)
