"""How a git effect says no: a reason for programs, a sentence for people, wrapped into the message of the phase."""

from code_intel_server.errors import CodeIntelError, UserActionNeeded


def refuse(reason: str, output: str, **details: object) -> UserActionNeeded:
    """A refusal inside an effect, key `tool_errors.git.<reason>`; nothing has changed."""
    return UserActionNeeded(f"tool_errors.git.{reason}", details={"reason": reason, **details}, output=output)


def failed(key: str, error: CodeIntelError, **params: object) -> UserActionNeeded:
    """The phase's own message around a refusal or a failure of git; details carry `reason` and `output`."""
    output = str(error.params.get("output") or error)
    details = {"reason": error.key.rpartition(".")[2], "output": output, **error.params, **error.details}
    return UserActionNeeded(key, details=details, output=output, errors=output, **params)
