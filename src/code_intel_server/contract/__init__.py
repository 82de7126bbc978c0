"""The contract: every text an agent sees, packaged and as a project words it (SPEC 5)."""

from code_intel_server.contract.loader import Contract, PhaseText
from code_intel_server.contract.messages import Message
from code_intel_server.contract.schema import AnyOf, RequiredTool

__all__ = ["AnyOf", "Contract", "Message", "PhaseText", "RequiredTool"]
