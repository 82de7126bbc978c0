"""Which tool may run in which phase: SPEC 2's table, as data, in one place."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from code_intel_server.flow.phases import Phase


class Group(StrEnum):
    """The groups of SPEC 2's tool table."""

    SESSION = "session"
    LOOKUP = "lookup"
    SEMANTIC = "semantic"
    IMPACT = "impact"
    CONTROL = "control"
    BRANCH = "branch"
    INDEX = "index"
    LEARNING = "learning"


@dataclass(frozen=True, slots=True)
class Access:
    """Where a tool runs: `phases` inside a session, `outside` without one; `blocked` is the message of its refusal."""

    group: Group
    phases: frozenset[Phase]
    outside: bool = True
    blocked: str = "tool_errors.generic.phase_blocked"


_EVERY = frozenset(Phase)
_LOOKUP = _EVERY - {Phase.BRANCH_INTERVENTION, Phase.MERGE}
_NEVER = frozenset[Phase]()
_AHEAD = frozenset({Phase.DOCUMENT_RESEARCH, Phase.QUERY_FRAME})
"""Where an agent explores that sends steps 3 to 12 as one list."""

ACCESS: Mapping[str, Access] = {
    "start_session": Access(Group.SESSION, _EVERY),
    "submit_phase": Access(Group.SESSION, _EVERY),
    "get_session_status": Access(Group.SESSION, _EVERY),
    "search_text": Access(Group.LOOKUP, _LOOKUP),
    "search_files": Access(Group.LOOKUP, _LOOKUP),
    "find_definitions": Access(Group.LOOKUP, _LOOKUP),
    "find_references": Access(Group.LOOKUP, _LOOKUP),
    "get_symbols": Access(Group.LOOKUP, _LOOKUP),
    "get_function_at_line": Access(Group.LOOKUP, _LOOKUP),
    "analyze_structure": Access(Group.LOOKUP, _LOOKUP),
    "query": Access(Group.LOOKUP, _LOOKUP),
    "semantic_search": Access(Group.SEMANTIC, frozenset({Phase.SEMANTIC})),
    "fetch_chunk_detail": Access(Group.SEMANTIC, frozenset({Phase.SEMANTIC, Phase.VERIFICATION})),
    "analyze_impact": Access(Group.IMPACT, _AHEAD | {Phase.EXPLORATION, Phase.VERIFICATION, Phase.IMPACT_ANALYSIS}),
    "check_write_target": Access(
        Group.CONTROL,
        frozenset({Phase.READY}),
        outside=False,
        blocked="tool_errors.check_write_target.write_phase_blocked",
    ),
    "add_explored_files": Access(
        Group.CONTROL, frozenset({Phase.READY}), outside=False, blocked="tool_errors.add_explored_files.phase_mismatch"
    ),
    "review_changes": Access(
        Group.CONTROL,
        frozenset({Phase.READY, Phase.POST_IMPL_VERIFY, Phase.PRE_COMMIT, Phase.QUALITY_REVIEW}),
        outside=False,
        blocked="tool_errors.review_changes.phase_blocked",
    ),
    "cleanup_stale_branches": Access(Group.BRANCH, frozenset({Phase.BRANCH_INTERVENTION})),
    "sync_index": Access(Group.INDEX, _EVERY),
    "update_context": Access(Group.INDEX, _EVERY),
    "record_outcome": Access(Group.LEARNING, _NEVER),
}

LOOKUPS = frozenset(tool for tool, access in ACCESS.items() if access.group is Group.LOOKUP)


def blocked_by(tool: str, phase: Phase | None) -> str | None:
    """The message key of the refusal where `tool` may not run in `phase` (None: no session); None where it may."""
    access = ACCESS[tool]
    if phase is None:
        return None if access.outside else "session_messages.no_active_session"
    return None if phase in access.phases else access.blocked
