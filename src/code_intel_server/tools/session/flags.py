"""Flags as clients send them: booleans by name, a gate level, the long spellings of v1.16 (SPEC 3.2)."""

from collections.abc import Mapping
from dataclasses import fields

from code_intel_server.errors import Rejected
from code_intel_server.flow.phases import CONFLICTS, FLAG_ALIASES, FLAG_NAMES, Flags, GateLevel

_LANES = frozenset({"gate_level", "fast", "quick", "only_verify", "only_explore"})
_GATES = {"full": GateLevel.FULL, "f": GateLevel.FULL, "auto": GateLevel.AUTO, "a": GateLevel.AUTO}


def parse_flags(given: Mapping[str, object]) -> Flags:
    """The flags of a call. Raises Rejected for an unknown name, a wrong type or a contradiction."""
    named = {_name(name): value for name, value in given.items()}
    unknown = sorted(set(named) - set(FLAG_NAMES))
    if unknown:
        raise Rejected(
            "tool_errors.start_session.flags_unknown", flags=", ".join(unknown), available=", ".join(FLAG_NAMES)
        )
    values: dict[str, bool] = {}
    for field in fields(Flags):
        if field.name != "gate_level" and named.get(field.name) is not None:
            values[field.name] = _value(field.name, named[field.name])
    flags = Flags(_gate(named.get("gate_level")), **values)
    for first, second in CONFLICTS:
        if getattr(flags, first) and getattr(flags, second):
            raise Rejected(
                "tool_errors.start_session.invalid_flags", first=first, second=second, why=_WHY[first, second]
            )
    return flags


def chooses_lane(given: Mapping[str, object]) -> bool:
    """Whether a call says how much of the flow it wants, the default included."""
    return any(_name(name) in _LANES and value not in {None, False} for name, value in given.items())


_WHY = {
    ("fast", "quick"): "quick already skips more than fast does",
    ("only_verify", "no_verify"): "one runs nothing but the verification, the other everything else",
    ("only_verify", "only_explore"): "one runs only the verification, the other only the exploration",
    ("quick", "worktree"): "quick leaves its changes uncommitted in the user's folder",
    ("only_verify", "worktree"): "only_verify judges what is in the user's folder",
}


def _name(name: str) -> str:
    plain = name.strip().lstrip("-").replace("-", "_").lower()
    return FLAG_ALIASES.get(plain, plain)


def _gate(value: object) -> GateLevel:
    if value is None:
        return GateLevel.AUTO
    if not isinstance(value, str) or value.lower() not in _GATES:
        raise Rejected("common_failures.field_invalid", field="flags.gate_level", expected="'auto' or 'full'")
    return _GATES[value.lower()]


def _value(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise Rejected("common_failures.field_invalid", field=f"flags.{name}", expected="true or false")
    return value
