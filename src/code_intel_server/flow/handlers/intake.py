"""Steps 2 to 4: stale branches, documents, the request itself (SPEC 4)."""

import re
from collections.abc import Mapping

from pydantic import JsonValue

from code_intel_server.codebase.evidence import references_in
from code_intel_server.common.printable import printable
from code_intel_server.errors import Rejected
from code_intel_server.flow.checks.authors import decided
from code_intel_server.flow.checks.claims import wrong_places
from code_intel_server.flow.checks.judgement import files_named, list_of_paths, missing_files
from code_intel_server.flow.checks.query_frame import SLOTS, QueryFrame, Slot, fold, quotes
from code_intel_server.flow.payloads import BranchPayload, DocumentPayload, QueryFramePayload
from code_intel_server.flow.phases import Event, Intent
from code_intel_server.flow.ports import Evidence, SymbolRelevance
from code_intel_server.flow.turn import Note, Outcome, Turn
from code_intel_server.workspace.values import TaskBranch

CHOICES = ("delete", "merge", "continue")
WORDS_AT_MOST = 2_000
SYMBOLS_AT_MOST = 500
_FAR = 0.1
"""Likeness below which a target symbol deserves a hint: of 44 judged by hand over click the relevant ones reach 0.11."""

# The slots that matter, by intent, where none is filled: which of them the request fills, only its reader knows.
_WANTED: Mapping[Intent, tuple[str, ...]] = {
    Intent.IMPLEMENT: ("target_feature", "desired_action"),
    Intent.MODIFY: ("target_feature", "desired_action"),
    Intent.INVESTIGATE: ("target_feature", "trigger_condition", "observed_issue"),
    Intent.QUESTION: ("target_feature",),
}


def branch_intervention(turn: Turn[BranchPayload]) -> Outcome:
    """Carry out what the user chose to do with stale branches."""
    choice = turn.payload.choice
    if choice not in CHOICES:
        raise Rejected("failures.BRANCH_INTERVENTION.invalid_choice")
    if choice == "merge" and not turn.ports.branches.standing_base():
        raise Rejected(
            "failures.BRANCH_INTERVENTION.merge_not_offered", reason="HEAD is on no task branch with a recorded base"
        )
    offered = [name for name in CHOICES if name != "merge" or turn.ports.branches.standing_base()]
    choice = decided(turn.state, turn.ports, "stale_branches", str(choice), offered)
    return _continue(turn) if choice == "continue" else _retire(turn, choice)


def _continue(turn: Turn[BranchPayload]) -> Outcome:
    """Stay on the current branch; a task branch with a recorded base goes on as this session's own."""
    state, ports = turn.state, turn.ports
    survey = ports.branches.survey()
    state.branch_policy = "continue"
    if survey.current_base:
        state.task_branch = TaskBranch(survey.current, survey.current_base, state.head_at_start)
        state.base = survey.current_base
    state.tip = survey.head
    state.trees.base = ports.tree.head_snapshot(state.head_at_start)
    return Outcome(Event.OK, {"branch_policy": "continue"})


def _retire(turn: Turn[BranchPayload], choice: str) -> Outcome:
    state, ports = turn.state, turn.ports
    retired = ports.branches.retire(choice, state.session_id, ports.record, state.pending)
    state.pending = None
    state.base = ports.branches.current()
    state.head_at_start = ports.branches.tip()
    state.trees.start = state.trees.base = ports.tree.snapshot()
    fields: dict[str, JsonValue] = {"branches_removed": [*retired.branches], "archived": [*retired.archived]}
    warnings: tuple[Note, ...] = ()
    if retired.merged:
        fields["merge_commit"] = retired.merged
        warnings = (Note("warnings.merged_unfinished", {"branch": retired.branches[0]}),)
    return Outcome(Event.OK, fields, warnings, retired=retired.session_ids)


def document_research(turn: Turn[DocumentPayload]) -> Outcome:
    """Accept documents that exist; none only where the project has none."""
    documents = turn.payload.documents_reviewed
    if not documents and turn.ports.documents.any_document():
        raise Rejected("failures.DOCUMENT_RESEARCH.empty_documents")
    missing = missing_files(turn.ports.evidence, (_path_of(turn.ports.evidence, entry) for entry in documents))
    if missing:
        raise Rejected("failures.DOCUMENT_RESEARCH.document_not_found", files=list_of_paths(missing))
    return Outcome(Event.OK, hints=wrong_places((*documents, turn.payload.summary), turn.ports))


def _path_of(evidence: Evidence, entry: str) -> str:
    """The path of a reviewed document, of which the entry may say more: `docs/rules.md:12 - every option is documented`."""
    if files_named(evidence, entry):
        return entry
    found = references_in(entry)
    return found[0].path if found else entry.partition(" - ")[0].strip()


def _bounded(slot: Slot) -> Slot:
    """A slot as it is kept for the session."""
    return slot.model_copy(update={"value": slot.value[:WORDS_AT_MOST], "quote": slot.quote[:WORDS_AT_MOST]})


_FEW_SENTENCES = 400
"""A request of so many characters says what it says: its slots may all be left out."""


def _is_far(row: SymbolRelevance, query: str) -> bool:
    """Whether a target symbol has neither meaning nor a word in common with the request."""
    words = re.findall(r"\w{4,}", fold(query))
    name = row.symbol.casefold()
    return not row.meant and row.score is not None and row.score < _FAR and not any(word in name for word in words)


def query_frame(turn: Turn[QueryFramePayload]) -> Outcome:
    """Keep the slots whose quotes the user really said; name what is missing and score the symbols."""
    payload, state = turn.payload, turn.state
    if not payload.action_type.strip():
        raise Rejected("failures.QUERY_FRAME.action_type_required")
    slots: dict[str, Slot] = {name: getattr(payload, name) for name in SLOTS}
    filled = {name: slot for name, slot in slots.items() if slot.filled}
    for name, slot in filled.items():
        if not slot.quote.strip():
            raise Rejected("failures.QUERY_FRAME.quote_required", slot=name, query=state.query)
        # What cannot be shown comes as it was shown: the answer that asks for the quotes holds the query so.
        if not quotes(slot.quote, state.query) and not quotes(slot.quote, printable(state.query)):
            raise Rejected("failures.QUERY_FRAME.quote_not_found", slot=name, quote=slot.quote, query=state.query)
    state.query_frame = QueryFrame(
        action_type=payload.action_type[:WORDS_AT_MOST],
        target_symbols=payload.target_symbols[:SYMBOLS_AT_MOST],
        scope=payload.scope[:WORDS_AT_MOST],
        constraints=payload.constraints[:WORDS_AT_MOST],
        slots={name: _bounded(slot) for name, slot in filled.items()},
    )
    scored = turn.ports.relevance.symbols(payload.target_symbols, state.query)
    relevance: list[JsonValue] = [
        {"symbol": row.symbol, "score": row.score and round(row.score, 2), "resolved": [*row.resolved]}
        for row in scored
    ]
    known = {"target_feature"} if any(row.resolved for row in scored) else set[str]()
    asked = () if filled or len(state.query) <= _FEW_SENTENCES else _WANTED[state.intent]
    hints = tuple(Note(f"query_frame_hints.{name}_missing") for name in asked if name not in known)
    far = [f"{row.symbol} ({row.score:.2f})" for row in scored if _is_far(row, state.query)]
    hints += (Note("hints.target_symbols_far", {"symbols": ", ".join(far)}),) if far else ()
    fields: dict[str, JsonValue] = {"symbol_relevance": relevance} if relevance else {}
    return Outcome(Event.OK, fields, hints=hints)
