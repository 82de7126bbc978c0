"""The only exceptions raised on purpose.

Every one names a message of the contract by its dotted key, where its sentences are (SPEC 5), and carries the values of its
placeholders and the structured fields that the answer shows besides it. A value may be a phrase that is worded in code.
"""

from collections.abc import Mapping


class CodeIntelError(Exception):
    """An anticipated failure; `key` is the dotted contract key of its message."""

    def __init__(self, key: str, /, *, details: Mapping[str, object] | None = None, **params: object) -> None:
        super().__init__(f"{key} {params}" if params else key)
        self.key = key
        self.params = params
        self.details = dict(details or {})


class Rejected(CodeIntelError):
    """The agent asked for something it may not have; nothing has changed."""


class UserActionNeeded(CodeIntelError):
    """Only the user can go on from here (a conflict, a held lock, a missing identity); nothing has changed."""


class Unavailable(CodeIntelError):
    """Something that the answer needs cannot be had now (a missing program, a time limit, a damaged index)."""


def folder_taken(folder: object, error: OSError) -> Unavailable:
    """What the server keeps has no place, as something that is no folder stands there, or on the way there."""
    return Unavailable("tool_errors.generic.state_folder_unsafe", folder=str(error.filename or folder))


def state_unavailable(path: object, error: OSError) -> Unavailable:
    """What the server keeps cannot be read or written at a place."""
    why = error.strerror or str(error)
    return Unavailable("tool_errors.generic.state_unavailable", path=str(path), error=why)
