"""The contract: every text an agent sees, packaged and as a project words it (SPEC 5)."""

from code_intel_server.contract.clients import (
    CLAUDE,
    CLIENTS,
    CLIENTS_BY_NAME,
    CODEX,
    Client,
    ClientFile,
    clients_named,
)
from code_intel_server.contract.loader import Contract, PhaseText
from code_intel_server.contract.messages import Message
from code_intel_server.contract.nodes import Broken, Node, Scalar, Sequence, Table
from code_intel_server.contract.packaged import packaged_message
from code_intel_server.contract.schema import AnyOf, RequiredTool
from code_intel_server.contract.skills import Skill, prompt, skill_files
from code_intel_server.contract.strict_yaml import parse_yaml

__all__ = [
    "CLAUDE",
    "CLIENTS",
    "CLIENTS_BY_NAME",
    "CODEX",
    "AnyOf",
    "Broken",
    "Client",
    "ClientFile",
    "Contract",
    "Message",
    "Node",
    "PhaseText",
    "RequiredTool",
    "Scalar",
    "Sequence",
    "Skill",
    "Table",
    "clients_named",
    "packaged_message",
    "parse_yaml",
    "prompt",
    "skill_files",
]
