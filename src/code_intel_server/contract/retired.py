"""Messages of v1.16 that are in the contract and are never sent, each with the reason (SPEC 5)."""

from collections.abc import Mapping

RETIRED: Mapping[str, str] = {
    "common_failures.unknown_phase": "every phase has a handler: a test proves that the table is complete",
    "common_failures.required_tools_not_reported": "the ledger knows which tools ran; nobody has to say it again",
    "hints.phase_blocked_hint": "every refusal in a session says where it stands, and which call repeats the instruction",
    "tool_errors.query.semantic_search_failed": (
        "a search never fails: what is missing stands in `incomplete_because`, and words are searched instead"
    ),
    "failures.QUALITY_REVIEW.commit_execution_failed": (
        "nothing is committed after the quality review; files that moved since the commit are answered by "
        "failures.QUALITY_REVIEW.tree_changed, which carries the same error code"
    ),
    "tool_errors.review_changes.branch_manager_not_found": (
        "the task branch stands in the checkpoint; there is no branch manager object that could be missing"
    ),
    "tool_errors.query.chromadb_not_available": (
        "chromadb is a dependency, and without it search goes on over SQLite with warnings.index_lexical"
    ),
    "tool_errors.query.unknown_tool": "an unknown tool is the protocol's own error",
    "tool_errors.start_session.branch_setup_exception": (
        "an unexpected failure is tool_errors.generic.internal_error, whose text goes to the log and not to the agent"
    ),
}
