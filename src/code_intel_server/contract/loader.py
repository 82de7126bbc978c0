"""The contract of a session: the packaged texts with the project's `phase_contract.yml` laid over them (SPEC 5)."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from code_intel_server.common.resources import templates_dir
from code_intel_server.contract.messages import Message
from code_intel_server.contract.nodes import MAX_CONTRACT_BYTES, Broken, Table
from code_intel_server.contract.schema import (
    ContractProblem,
    PhasePart,
    RequiredTool,
    Texts,
    ToolAllowed,
    overlay,
    read_default,
)

MAX_CONTRACT_WARNINGS = 20


@dataclass(frozen=True, slots=True)
class PhaseText:
    """What the agent reads in a phase. `resources` are `.code-intel/` files or globs that the instruction names."""

    instruction: str
    expected_payload: Mapping[str, str]
    required_tools: tuple[RequiredTool, ...]
    resources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Contract:
    """Every text of one session.

    `warnings` names, line by line, what of the project's file could not be used; `digest` is the SHA-256 of that file,
    '' where there is none.
    """

    texts: Texts
    warnings: tuple[str, ...] = ()
    digest: str = ""

    @classmethod
    def load(cls, project_file: Path | None, tool_allowed: ToolAllowed = lambda _phase, _tool: True) -> "Contract":
        """The contract of a project; a missing or broken file leaves the packaged texts in force. Never raises.

        `tool_allowed` tells which tools can be called in a phase: a required tool that cannot be would end every
        session there, so it is reported and not taken over.
        """
        data = _read(project_file)
        if data is None:
            return cls(default_texts())
        if isinstance(data, ContractProblem):
            return cls(default_texts(), _worded([data]))
        texts, problems = _laid_over(data, tool_allowed)
        return cls(texts, _worded(problems), hashlib.sha256(data).hexdigest())

    @property
    def compaction_protocol(self) -> str:
        """How the agent keeps compaction_count: its entry in expected_payload (SPEC 4)."""
        return self.texts.compaction_protocol

    def phase(self, key: str, variant: str = "") -> PhaseText:
        """The texts of a phase (READY_PLAN, Q1, ...) or of one of its variants. Raises KeyError for one that is not."""
        part = self.texts.phases[key, ""]
        if variant:
            part = self.texts.phases[key, variant].over(part)
        return _phase_text(part)

    def message(self, key: str, params: Mapping[str, object] | None = None) -> Message:
        """The message of a dotted key (failures.READY.unknown_task) with its values. Raises KeyError for an unknown key."""
        return self.texts.messages[key].render(params or {})


@lru_cache(maxsize=1)
def default_texts() -> Texts:
    """The packaged texts, parsed once a process. Raises ValueError where the package itself is broken."""
    texts, problems = read_default(_default_root())
    if problems:
        raise ValueError(f"packaged phase_contract.yml, line {problems[0].line}: {problems[0].text}")
    return texts


@lru_cache(maxsize=1)
def _default_root() -> Table:
    return _parse((templates_dir() / "code-intel" / "phase_contract.yml").read_bytes())


def _read(project_file: Path | None) -> bytes | ContractProblem | None:
    """The file's bytes, at most one more than allowed; None where there is no file, a Problem where it cannot be read."""
    try:
        if project_file is None or not project_file.exists():
            return None
        if not project_file.is_file():  # a named pipe would block us for ever
            return ContractProblem(1, "not a regular file")
        with project_file.open("rb") as stream:
            return stream.read(MAX_CONTRACT_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        return ContractProblem(1, f"cannot be read ({type(error).__name__})")


def _laid_over(data: bytes, tool_allowed: ToolAllowed) -> tuple[Texts, list[ContractProblem]]:
    try:
        root = _parse(data)
        if root is _default_root():  # the scaffold's untouched copy
            return default_texts(), []
        return overlay(default_texts(), root, tool_allowed)
    except Broken as broken:
        return default_texts(), [ContractProblem(broken.line, broken.problem)]


def _parse(data: bytes) -> Table:
    from code_intel_server.contract.strict_yaml import parse_yaml

    return parse_yaml(data)


def _worded(problems: list[ContractProblem]) -> tuple[str, ...]:
    """The problems in the packaged words: the project's own wording of this message may be the problem."""
    template = default_texts().messages["warnings.contract_problem"]
    worded = [
        template.render({"line": problem.line, "problem": problem.text}).text
        for problem in problems[:MAX_CONTRACT_WARNINGS]
    ]
    rest = len(problems) - MAX_CONTRACT_WARNINGS
    return tuple(worded if rest <= 0 else [*worded, f"… and {rest} more"])


def _phase_text(part: PhasePart) -> PhaseText:
    return PhaseText(
        instruction=part.instruction or "",
        expected_payload=part.expected_payload,
        required_tools=part.required_tools or (),
        resources=part.resources or (),
    )
