"""What a contract may say: phases with their variants, and messages by dotted key.

The packaged file defines which keys exist; a project's file is laid over it key by key. What it gets wrong is reported
with its line and leaves the packaged text of that one key in force.
"""

import difflib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from code_intel_server.common.printable import printable
from code_intel_server.contract.messages import Message, misused_brace, placeholders
from code_intel_server.contract.nodes import Node, Scalar, Sequence, Table

MAX_MESSAGE_CHARACTERS = 8000
MAX_AT_LEAST = 8

MESSAGE_SECTIONS: Mapping[str, int] = {
    "common_failures": 1,
    "failures": 2,
    "success": 2,
    "tool_errors": 2,
    "session_messages": 1,
    "hints": 1,
    "server_assessment": 1,
    "lanes": 1,
    "query_frame_hints": 1,
    "questions": 1,
    "warnings": 1,
}
"""Section -> how many names lead to a message (failures.READY.unknown_task: 2)."""

SECTIONS = ("compaction_protocol", "phases", *MESSAGE_SECTIONS)
_MESSAGE_FIELDS = ("error", "message", "instruction", "requires_user_intervention")
_PHASE_FIELDS = ("instruction", "expected_payload", "required_tools", "resources", "variants")


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least `at_least` distinct tools of `names`; the name `lookup` means all lookup tools (SPEC 2)."""

    names: tuple[str, ...]
    at_least: int


UNASKED = frozenset({"constraints", "scope", "search_query", "quality_score", "tools_used", "compaction_count"})
"""Fields of a payload that 1.16 asked for and no agent has to send: a file written then may still describe them."""
UNSENT = frozenset({"failures.PRE_COMMIT.weakened_needs_reason"})
"""Messages of 1.16 that nothing sends any more: a file written then may still word them."""
REMOVED = frozenset(
    {
        "failures.MERGE.merge_holds_more",
        "tool_errors.record_outcome.outcome_invalid",
        "tool_errors.start_session.intent_invalid",
    }
)
"""Messages that scaffolds before 2.0 had beyond those of 1.16."""

RequiredTool = str | AnyOf
ToolAllowed = Callable[[str, str], bool]
"""(phase key, tool or group name) -> whether that tool can be called there at all."""


@dataclass(frozen=True, slots=True)
class PhasePart:
    """What is reported of a phase or a variant of it; None and {} leave what lies below."""

    instruction: str | None = None
    expected_payload: Mapping[str, str] = field(default_factory=dict)
    required_tools: tuple[RequiredTool, ...] | None = None
    resources: tuple[str, ...] | None = None

    def over(self, below: "PhasePart") -> "PhasePart":
        """This part laid over another, field by field, the payload key by key."""
        return PhasePart(
            instruction=below.instruction if self.instruction is None else self.instruction,
            expected_payload={**below.expected_payload, **self.expected_payload},
            required_tools=below.required_tools if self.required_tools is None else self.required_tools,
            resources=below.resources if self.resources is None else self.resources,
        )


@dataclass(frozen=True, slots=True)
class Texts:
    """All texts of a contract. A phase is keyed (phase, ''), its variants (phase, variant)."""

    compaction_protocol: str = ""
    phases: Mapping[tuple[str, str], PhasePart] = field(default_factory=dict)
    messages: Mapping[str, Message] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ContractProblem:
    """Something in the file that was not taken over; `line` is 1-based."""

    line: int
    text: str


def read_default(root: Table) -> tuple[Texts, list[ContractProblem]]:
    """The texts of the packaged file, whose keys are all new by definition."""
    reader = _Reader(Texts(), defines=True, allowed=lambda _phase, _tool: True)
    return reader.read(root), reader.problems


def overlay(base: Texts, root: Table, allowed: ToolAllowed) -> tuple[Texts, list[ContractProblem]]:
    """The texts of `base` with those of a project's file laid over them, and what of the file could not be used."""
    reader = _Reader(base, defines=False, allowed=allowed)
    return reader.read(root), reader.problems


class _Reader:
    """One walk over one file; collects problems as it goes."""

    def __init__(self, base: Texts, *, defines: bool, allowed: ToolAllowed) -> None:
        self.problems: list[ContractProblem] = []
        self._base = base
        self._defines = defines
        self._allowed = allowed

    def read(self, root: Table) -> Texts:
        """The base's texts with what the document says over them; what it may not say is noted and left out."""
        protocol = self._base.compaction_protocol
        phases = dict(self._base.phases)
        messages = dict(self._base.messages)
        for name, node in root.items.items():
            if name == "compaction_protocol":
                protocol = self._text(node, name) or protocol
            elif name == "phases":
                self._phases(node, phases)
            elif name in MESSAGE_SECTIONS:
                for key, leaf in self._leaves(node, name, MESSAGE_SECTIONS[name]):
                    self._message(key, leaf, messages)
            else:
                self._unknown(node.line, name, SECTIONS)
        return Texts(protocol, phases, messages)

    # Phases

    def _phases(self, node: Node, phases: dict[tuple[str, str], PhasePart]) -> None:
        for name, entry in self._entries(node, "phases"):
            if not self._exists(entry.line, name, [phase for phase, variant in phases if not variant]):
                continue
            self._phase(entry, name, "", phases)
            variants = entry.items.get("variants")
            for variant, part in self._entries(variants, f"phases.{name}.variants") if variants else ():
                if self._exists(part.line, variant, [known for phase, known in phases if phase == name and known]):
                    self._phase(part, name, variant, phases)

    def _phase(self, entry: Table, name: str, variant: str, phases: dict[tuple[str, str], PhasePart]) -> None:
        below = phases.get((name, variant), PhasePart())
        part = PhasePart()
        for key, node in entry.items.items():
            if key == "instruction":
                part = replace(part, instruction=self._text(node, key))
            elif key == "expected_payload":
                known = [*below.expected_payload, *phases.get((name, ""), below).expected_payload]
                part = replace(part, expected_payload=self._payload(node, known))
            elif key == "required_tools":
                part = replace(part, required_tools=self._required(node, name))
            elif key == "resources":
                part = replace(part, resources=self._strings(node, key))
            elif key != "variants" or variant:
                self._unknown(node.line, key, _PHASE_FIELDS)
        phases[name, variant] = part.over(below)

    def _payload(self, node: Node, known: list[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        if not isinstance(node, Table):
            self._problem(node.line, "expected_payload must be a mapping from field to description")
            return found
        for name, value in node.items.items():
            if name not in UNASKED and self._exists(value.line, name, known):
                text = self._text(value, name)
                found.update({name: text} if text else {})
        return found

    def _required(self, node: Node, phase: str) -> tuple[RequiredTool, ...] | None:
        if not isinstance(node, Sequence):
            self._problem(node.line, "required_tools must be a list")
            return None
        rules = [self._rule(item, phase) for item in node.items]
        return None if None in rules else tuple(rule for rule in rules if rule is not None)

    def _rule(self, node: Node, phase: str) -> RequiredTool | None:
        if isinstance(node, Scalar):
            return node.text if self._callable(node, phase) else None
        if not isinstance(node, Table) or set(node.items) != {"any_of", "at_least"}:
            self._problem(node.line, "a required tool is a name, or {any_of: ..., at_least: ...}")
            return None
        return self._any_of(node.items["any_of"], node.items["at_least"], phase)

    def _any_of(self, tools: Node, at_least: Node, phase: str) -> AnyOf | None:
        choices = tools.items if isinstance(tools, Sequence) else (tools,)
        if not choices or not all(isinstance(one, Scalar) and self._callable(one, phase) for one in choices):
            self._problem(tools.line, "any_of must be `lookup` or a list of tools")
            return None
        names = tuple(one.text for one in choices if isinstance(one, Scalar))
        most = MAX_AT_LEAST if "lookup" in names else len(set(names))
        count = at_least.text if isinstance(at_least, Scalar) else ""
        if not (count.isascii() and count.isdecimal() and len(count) < 3 and 1 <= int(count) <= most):
            self._problem(at_least.line, f"at_least must be a number from 1 to {most}")
            return None
        return AnyOf(names, int(count))

    def _callable(self, node: Scalar, phase: str) -> bool:
        if node.text == "submit_phase":
            self._problem(node.line, "submit_phase ends the phase and cannot be required before it")
            return False
        if not self._allowed(phase, node.text):
            self._problem(node.line, f"the tool '{node.text}' cannot be called in {phase}, so it cannot be required")
            return False
        return True

    # Messages

    def _leaves(self, node: Node, prefix: str, depth: int) -> Iterator[tuple[str, Table]]:
        for name, entry in self._entries(node, prefix):
            key = f"{prefix}.{name}"
            if depth == 1:
                yield key, entry
            else:
                yield from self._leaves(entry, key, depth - 1)

    def _message(self, key: str, entry: Table, messages: dict[str, Message]) -> None:
        if key in REMOVED:
            self._problem(entry.line, f"'{key}' was removed in 2.0: delete it (docs/how-to/upgrading.md)")
        if key in UNSENT | REMOVED or not self._exists(entry.line, key, messages):
            return
        base = messages.get(key, Message())
        made = base
        for name, node in entry.items.items():
            if name == "requires_user_intervention":
                made = replace(made, requires_user_intervention=self._flag(node, base.requires_user_intervention))
            elif name in _MESSAGE_FIELDS:
                text = self._template(node, key, base)
                if text is not None:
                    made = _with(made, name, text)
            else:
                self._unknown(node.line, name, _MESSAGE_FIELDS)
        messages[key] = made

    def _template(self, node: Node, key: str, base: Message) -> str | None:
        text = self._text(node, key)
        if text is None:
            return None
        brace = misused_brace(text)
        if brace is not None:
            self._problem(node.line, f"{key}: '{brace[:40]}' is no placeholder; write {{{{ and }}}} for braces")
            return None
        unknown = set() if self._defines else placeholders(text) - base.names()
        if unknown:
            names = ", ".join(f"{{{name}}}" for name in sorted(base.names())) or "none"
            self._problem(node.line, f"{key}: unknown placeholder {{{min(unknown)}}} (this message has: {names})")
            return None
        return text

    # Pieces

    def _entries(self, node: Node, where: str) -> Iterator[tuple[str, Table]]:
        if not isinstance(node, Table):
            self._problem(node.line, f"{where} must be a mapping")
            return
        for name, entry in node.items.items():
            if isinstance(entry, Table):
                yield name, entry
            else:
                self._problem(entry.line, f"{where}.{name} must be a mapping")

    def _text(self, node: Node, name: str) -> str | None:
        if not isinstance(node, Scalar) or not node.text.strip():
            self._problem(node.line, f"{name} must be a text")
            return None
        if len(node.text) > MAX_MESSAGE_CHARACTERS:
            self._problem(node.line, f"{name} is longer than {MAX_MESSAGE_CHARACTERS} characters")
            return None
        if node.text != printable(node.text):
            self._problem(node.line, f"{name} holds control or invisible characters")
            return None
        return node.text

    def _strings(self, node: Node, name: str) -> tuple[str, ...] | None:
        if isinstance(node, Sequence) and all(isinstance(item, Scalar) for item in node.items):
            return tuple(item.text for item in node.items if isinstance(item, Scalar))
        self._problem(node.line, f"{name} must be a list of texts")
        return None

    def _flag(self, node: Node, otherwise: bool) -> bool:
        if isinstance(node, Scalar) and node.plain and node.text in {"true", "false"}:
            return node.text == "true"
        self._problem(node.line, "requires_user_intervention must be true or false")
        return otherwise

    def _exists(self, line: int, name: str, known: Collection[str]) -> bool:
        if self._defines or name in known:
            return True
        self._unknown(line, name, known)
        return False

    def _unknown(self, line: int, name: str, known: Collection[str]) -> None:
        near = difflib.get_close_matches(name, known, n=1)
        self._problem(line, f"unknown key '{name[:100]}'" + (f" (did you mean '{near[0]}'?)" if near else ""))

    def _problem(self, line: int, text: str) -> None:
        self.problems.append(ContractProblem(line, printable(text)))


def _with(template: Message, name: str, text: str) -> Message:
    """`template` with one of its texts replaced."""
    if name == "error":
        return replace(template, error=text)
    return replace(template, text=text) if name == "message" else replace(template, instruction=text)
