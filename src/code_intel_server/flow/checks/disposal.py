"""What became of the entries that analyze_impact said must be verified (SPEC 4, IMPACT_ANALYSIS and PRE_COMMIT)."""

from collections.abc import Collection, Mapping

from code_intel_server.errors import Rejected
from code_intel_server.flow.session import SessionState
from code_intel_server.workspace.values import LedgerEntry

CHANGED = "changed"


def note_calls(state: SessionState, calls: Collection[LedgerEntry]) -> None:
    """Take up what these calls asked to verify: 'ID path:line' each."""
    for entry in (entry for call in calls if call.tool == "analyze_impact" for entry in call.asks):
        state.must_verify.setdefault(entry, "")


def open_entries(state: SessionState, calls: Collection[LedgerEntry], changed: Collection[str]) -> list[str]:
    """The entries, 'ID path:line' each, of files that are not `changed` and of which nothing is said yet."""
    asked = {entry: "" for call in calls if call.tool == "analyze_impact" for entry in call.asks} | state.must_verify
    return [entry for entry, words in asked.items() if not words and _path(entry) not in changed]


def dispose(state: SessionState, said: Mapping[str, str]) -> None:
    """Note what the agent says of entries, by id. Raises Rejected for an id that was never asked about."""
    entries = {entry.partition(" ")[0]: entry for entry in state.must_verify}
    for name, words in said.items():
        if name not in entries:
            known = ", ".join(entries) or "none"
            raise Rejected(
                "common_failures.field_invalid", field="must_verify", expected=f"an object by these ids: {known}"
            )
        state.must_verify[entries[name]] = " ".join(words.split())


def settle_entries(state: SessionState, kept: Collection[str]) -> list[str]:
    """What was committed is changed, and what was not is not; the entries that nobody decided."""
    for entry, words in state.must_verify.items():
        if _path(entry) in kept:
            state.must_verify[entry] = CHANGED
        elif words.lower() == CHANGED:
            state.must_verify[entry] = ""
    return undecided(state.must_verify)


def undecided(entries: Mapping[str, str]) -> list[str]:
    """The places of which nothing is reported."""
    return [entry.partition(" ")[2] for entry, words in entries.items() if not words]


def _path(entry: str) -> str:
    return entry.partition(" ")[2].rpartition(":")[0]
