"""An anticipated failure in the packaged words, where no project's own contract is at hand."""

from code_intel_server.contract.loader import Contract
from code_intel_server.errors import CodeIntelError


def packaged_message(error: CodeIntelError) -> str:
    """What happened, and what to do about it."""
    message = Contract.load(None).message(error.key, error.params)
    return f"{message.text} {message.instruction or ''}".strip()
