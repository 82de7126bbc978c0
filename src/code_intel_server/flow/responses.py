"""The self-contained answer to every submit: an agent that has forgotten everything can act on any one of them (SPEC 4).

Only prose is ever left out (`shortened`): in an answer that leads to no other place the instruction and the procedures are
as before, and the answer names the call that repeats them. What a lost answer is repeated from is always the whole.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from pydantic import JsonValue

from code_intel_server.common.plain import plain
from code_intel_server.contract import Contract, Message, PhaseText
from code_intel_server.errors import CodeIntelError
from code_intel_server.flow.checks.disposal import open_entries
from code_intel_server.flow.checks.verifiers import PACKAGED, fitting_verifiers
from code_intel_server.flow.handlers.gates import assessments
from code_intel_server.flow.handlers.ready import task_brief
from code_intel_server.flow.payloads import SUMMED_UP_BY
from code_intel_server.flow.phases import (
    DOCUMENT_RESEARCH,
    EXPLORATION,
    GATED,
    MERGE,
    POST_IMPL_VERIFY,
    PRE_COMMIT,
    Q1,
    QUALITY_REVIEW,
    QUERY_FRAME,
    READY_IMPL,
    READY_PLAN,
    End,
    GateLevel,
    Phase,
    Place,
)
from code_intel_server.flow.ports import DOCUMENTS_AT_MOST, Ports
from code_intel_server.flow.session import LastSubmit, SessionState
from code_intel_server.flow.tasks import TaskStatus, next_task, progress_text
from code_intel_server.flow.transitions import AHEAD, ENDING, escalates
from code_intel_server.flow.turn import Note
from code_intel_server.workspace.values import Prompt

Fields = dict[str, JsonValue]

# The prompts whose text is sent where the project has no file of its own to read (SPEC 4, VERIFY_INTERVENTION).
_PROMPTS: Mapping[Phase, tuple[str, ...]] = {
    Phase.DOCUMENT_RESEARCH: ("doc_research",),
    Phase.POST_IMPL_VERIFY: ("verifiers",),
    Phase.VERIFY_INTERVENTION: ("interventions",),
    Phase.PRE_COMMIT: ("review_prompts",),
    Phase.QUALITY_REVIEW: ("review_prompts",),
}

_PROSE = frozenset({"task_planning", "procedure", "procedures", "documents", "resources", "then"})
"""What an answer says once a phase besides its instruction; get_session_status says it again."""


def variant(state: SessionState, ports: Ports) -> str:
    """Which wording of a place's texts this session needs."""
    if state.place == READY_PLAN:
        unexplored = not state.explored_files and not state.added_files
        return "revert" if state.revert_reason else "unexplored" if unexplored else ""
    if state.phase is Phase.VERIFY_INTERVENTION and escalates(state.counters):
        return "user_escalation"
    if state.phase is Phase.POST_IMPL_VERIFY and state.flags.only_verify:
        return "only_verify"
    if state.phase is Phase.BRANCH_INTERVENTION:
        return _left_to_choose(ports)
    if state.phase is Phase.DOCUMENT_RESEARCH and not ports.documents.any_document():
        return "no_documents"
    if state.phase is Phase.Q1 and state.flags.gate_level is GateLevel.FULL:
        return "gate_full"
    return ""


def _left_to_choose(ports: Ports) -> str:
    stale = ports.branches.stale()
    if not stale:
        return "none_left"
    return "" if any(branch.current and branch.base for branch in stale) else "no_merge"


def current_step(state: SessionState, contract: Contract, ports: Ports, *, first: bool = True) -> Fields:
    """Where the session is and what to do there; the `first` time an agent hears it with the rule of compaction_count."""
    wording = variant(state, ports)
    text = contract.phase(state.place.contract_key, wording)
    material = _material(state, contract, ports)
    expected = _expected(text, state, contract, first=first)
    if state.phase is Phase.PRE_COMMIT and not material:
        del expected["must_verify"]  # nothing is open
    fields: Fields = {
        "success": True,
        "session_id": state.session_id,
        "phase": str(state.phase),
        "step": state.place.step,
        "instruction": text.instruction.rstrip(),
        "expected_payload": expected,
        "call": "submit_phase",
        "compaction_count": state.compaction_count,
    }
    if resources := _resources(state, ports, text):
        fields["resources"] = [*resources]
    fields |= _prompts(state, ports, text) | _ahead(state, contract, ports) | material
    if hints := [say(contract, note) for note in _standing_hints(state, ports, wording)]:
        fields["hints"] = [*hints]
    if state.handed_over:
        third = Note("warnings.third_failure", {"count": state.verification_failure_count})
        fields |= {"warning": say(contract, third), "requires_user_intervention": True}
    if state.escalating:
        count = Note("failures.VERIFY_INTERVENTION.escalation_count", {"count": state.intervention_count})
        how = Note("failures.VERIFY_INTERVENTION.user_escalation")
        message = f"{say(contract, count)} {say(contract, how)}"
        fields |= {"message": message, "requires_user_intervention": True}
    return fields


def _expected(text: PhaseText, state: SessionState, contract: Contract, *, first: bool) -> Fields:
    """What to send, with the rule of compaction_count unless a hook of the client does what that is for.

    A summary is asked for where no other field sums the step up.
    """
    asked: Fields = {**text.expected_payload}
    if any(name in asked for name in SUMMED_UP_BY):
        asked = _but_summary(text)
    return asked | ({"compaction_count": contract.compaction_protocol} if first or not state.hooked else {})


def _but_summary(text: PhaseText) -> Fields:
    return {name: what for name, what in text.expected_payload.items() if name != "summary"}


def _ahead(state: SessionState, contract: Contract, ports: Ports) -> Fields:
    """At the step that begins the work, and at the one that commits it, what follows and may be submitted with it."""
    if state.place == PRE_COMMIT:
        ending = [_then(place, state, contract, ports) for place in ENDING if state.route.runs(place)]
        return {"then": ending} if ending else {}
    begins = DOCUMENT_RESEARCH if state.route.runs(DOCUMENT_RESEARCH) else QUERY_FRAME
    following = [place for place in AHEAD if state.route.runs(place) and place != begins]
    if state.flags.gate_level is GateLevel.FULL and Q1 in following:  # every gate's phase comes between
        following = following[: following.index(Q1)]
    if state.place != begins or not following:
        return {}
    return {"then": [_then(place, state, contract, ports) for place in following]}


def _then(place: Place, state: SessionState, contract: Contract, ports: Ports) -> JsonValue:
    """What a later place asks, in few words: one summary serves a list."""
    unexplored = place == READY_PLAN and not state.route.runs(EXPLORATION)
    text = contract.phase(place.contract_key, "unexplored" if unexplored else "")
    guide: Fields = {"task_planning": _planning_guide(ports)} if place == READY_PLAN else {}
    return {
        "phase": str(place.phase),
        "instruction": text.instruction.rstrip(),
        "expected_payload": {**text.expected_payload} if place == MERGE else _but_summary(text),
        **guide,
        **(_procedures(text, ports) if place == QUALITY_REVIEW else {}),
    }


def _procedures(text: PhaseText, ports: Ports) -> Fields:
    """The project's own review procedures by their files, those of the package as text."""
    own: Fields = {"resources": [*found]} if (found := ports.documents.existing(text.resources)) else {}
    return own | _packaged(text, ports.documents.prompts("review_prompts"))


def _material(state: SessionState, contract: Contract, ports: Ports) -> Fields:
    """What a phase is about, as the server knows it."""
    if state.phase is Phase.BRANCH_INTERVENTION:
        return {"branches": [{"name": branch.name, "base": branch.base} for branch in ports.branches.stale()]}
    if state.phase is Phase.DOCUMENT_RESEARCH:
        found = [*ports.documents.documents_for(state.query, DOCUMENTS_AT_MOST)]
        return {"documents": [*found]} if found else {}
    if state.phase is Phase.QUERY_FRAME:
        return {"query": state.query}
    if state.phase is Phase.READY:
        return _ready(state, ports)
    if state.phase is Phase.POST_IMPL_VERIFY:
        return {**ports.proofs.expected(state.session_id)}
    if state.phase is Phase.PRE_COMMIT:
        left = open_entries(state, ports.ledger.entries(), _changed(state, ports))
        return {"must_verify": [*left]} if left else {}
    assessed = {field: say(contract, note) for field, note in assessments(state, ports.ledger.entries())}
    return {"server_assessment": {**assessed}} if assessed else {}


def _standing_hints(state: SessionState, ports: Ports, wording: str) -> Iterator[Note]:
    """How to merge from here, what is chosen where nobody can be asked (SPEC 12), which judgement changes nothing."""
    if state.phase is Phase.BRANCH_INTERVENTION and wording != "none_left":
        mergeable = [branch.name for branch in ports.branches.stale() if branch.base]
        if wording == "no_merge" and mergeable:
            yield Note("hints.merge_way", {"branches": mergeable, "first": mergeable[-1]})
        yield Note("hints.unattended_branch_choice", {"choice": state.headless_branches})
    if state.escalating:
        yield Note("hints.unattended_escalation", {"choice": state.headless_escalation})
    if state.flags.gate_level is GateLevel.FULL and state.place in GATED:
        yield Note("hints.gate_forced", {"phase": GATED[state.place].phase})


def _resources(state: SessionState, ports: Ports, text: PhaseText) -> tuple[str, ...]:
    """The files under `.code-intel/` that a phase names; of the research prompts those that the project has chosen."""
    found = ports.documents.existing(text.resources)
    if state.phase is Phase.POST_IMPL_VERIFY:
        fit = fitting_verifiers(_changed(state, ports), {_stem(path) for path in found})
        return tuple(path for path in found if _stem(path) in fit or _stem(path) not in PACKAGED)
    if state.phase is not Phase.DOCUMENT_RESEARCH:
        return found
    unchosen = {prompt.path for prompt in ports.documents.prompts("doc_research")}
    unchosen -= {prompt.path for prompt in ports.documents.chosen_research()}
    return tuple(path for path in found if path not in unchosen)


def _prompts(state: SessionState, ports: Ports, text: PhaseText) -> Fields:
    """Procedures that exist only in the package: by name, and as text where there is but one to follow."""
    kinds = ("user_escalation",) if state.escalating else _PROMPTS.get(state.phase, ())
    known = [prompt for kind in kinds for prompt in ports.documents.prompts(kind)]
    if state.phase is Phase.DOCUMENT_RESEARCH:
        known = [*ports.documents.chosen_research()]
    found = _packaged(text, known)
    named = found.get("procedures")
    if state.phase is not Phase.POST_IMPL_VERIFY or not isinstance(named, dict):
        return found
    fit = fitting_verifiers(_changed(state, ports), named.keys())
    return {"procedures": {name: one for name, one in named.items() if name in fit}}


def _packaged(text: PhaseText, known: Sequence[Prompt]) -> Fields:
    """Those of the procedures that a place wants and only the package has."""
    wanted = {_stem(resource) for resource in text.resources}
    named = [one for one in known if one.packaged and (_stem(one.path) in wanted or "*" in wanted)]
    if len(named) == 1:
        return {"procedure": {"name": named[0].name, "text": named[0].text}}
    return {"procedures": {one.name: one.text for one in named}} if named else {}


def _changed(state: SessionState, ports: Ports) -> list[str]:
    """The paths this session has changed, as last judged."""
    trees = state.trees
    return (
        [change.path for change in ports.tree.changes(trees.base, trees.judged)] if trees.base and trees.judged else []
    )


def _stem(path: str) -> str:
    return path.rsplit("/", 1)[-1].removesuffix(".md")


def _ready(state: SessionState, ports: Ports) -> Fields:
    fields: Fields = {}
    if state.tasks:
        fields["task_progress"] = progress_text(state.tasks)
    upcoming = next_task(state.tasks)
    if state.place == READY_IMPL and upcoming is not None:
        fields["next_task"] = task_brief(upcoming)
        if upcoming is state.tasks[0] and state.route.runs(POST_IMPL_VERIFY):
            fields |= {name: row for name, row in ports.proofs.expected(state.session_id).items() if name != "base"}
    if state.place == READY_PLAN:
        fields["task_planning"] = _planning_guide(ports)
        if state.revert_reason:
            fields["revert_reason"] = state.revert_reason
            fields["tasks"] = [_task_row(state, index) for index in range(len(state.tasks))]
    return fields


def _planning_guide(ports: Ports) -> str:
    guide = ports.documents.find_prompt("task_planning", "task_planning")
    return guide.text if guide else ""


def _task_row(state: SessionState, index: int) -> JsonValue:
    task = state.tasks[index]
    row: Fields = {"id": task.id, "description": task.description, "status": str(task.status)}
    if task.status is TaskStatus.PENDING:
        row["checklist"] = [item.item for item in task.checklist]
    if task.failure_count:
        row |= {"failure_count": task.failure_count, "revert_reason": task.revert_reason}
    return row


def shortened(fields: Mapping[str, JsonValue], contract: Contract) -> Fields:
    """An answer that leads to no other place, without the prose that the agent has had: one line names who repeats it."""
    kept = {name: value for name, value in fields.items() if name not in _PROSE}
    return kept | {"instruction": say(contract, Note("session_messages.as_before"))}


def reinstruction(state: SessionState, contract: Contract, ports: Ports) -> Fields:
    """Where the session still stands, for an agent that knows it: shortened, unless that has become another instruction."""
    whole = current_step(state, contract, ports, first=False)
    before = state.last_submit.response.get("instruction") if state.last_submit else None
    return shortened(whole, contract) if whole["instruction"] == before else whole


def without_text(fields: Fields) -> Fields:
    """An answer whose procedure is only named."""
    sent = fields.get("procedure")
    return fields | {"procedure": {"name": sent["name"]}} if isinstance(sent, dict) else fields


def with_earlier_notes(fields: Fields, last: LastSubmit | None) -> Fields:
    """An answer with the hints, the warnings and the commit of the submits that were accepted before it in the same list."""
    if last is None:
        return fields
    warnings = [str(part.get("warning") or "") for part in (last.response, fields)]
    lines = dict.fromkeys(line for warning in warnings for line in warning.splitlines())
    merged: Fields = {"warning": "\n".join(lines)} if lines else {}
    for name in ("hints", "ignored_fields"):
        given = [part.get(name) for part in (last.response, fields)]
        if rows := [*dict.fromkeys(str(row) for rows in given if isinstance(rows, list) for row in rows)]:
            merged[name] = [*rows]
    if "commit" in last.response:
        merged["commit"] = fields.get("commit", last.response["commit"])
    return fields | merged


def refusal(
    state: SessionState, contract: Contract, ports: Ports, error: CodeIntelError, extra: Fields, *, known: bool
) -> Fields:
    """Why a submit was refused, and where the session still stands, whose instruction is `known` or not."""
    still = reinstruction(state, contract, ports) if known else current_step(state, contract, ports)
    still["current_phase"] = str(state.phase)
    return refused(message_of(contract, error), still, error) | extra


def message_of(contract: Contract, error: CodeIntelError) -> Message:
    """What an error says; in a phase's own message about what failed below it that is followed by what to do about it."""
    message, cause = contract.message(error.key, error.params), error.__cause__
    if not isinstance(cause, CodeIntelError) or not cause.key.startswith("tool_errors."):
        return message
    remedy = contract.message(cause.key, cause.params).instruction
    if not remedy or remedy == message.instruction:
        return message
    causes = {name: error.params[name] for name in ("errors", "output") if name in error.params}
    said = {name: f"{str(text).removesuffix('.')}. {remedy.removesuffix('.')}" for name, text in causes.items()}
    instruction = contract.message(error.key, dict(error.params) | said).instruction
    if instruction == message.instruction:  # the message has the cause, not the instruction
        instruction = f"{remedy} {instruction or ''}".strip()
    return replace(message, instruction=instruction)


def refused(message: Message, still: Fields, error: CodeIntelError) -> Fields:
    """What was refused and what can be done about it, in front of where the session `still` is: it is read first."""
    said: Fields = {"success": False, "error": message.error, "message": message.text}
    if message.instruction:
        said["remedy"] = message.instruction
    fields = said | still | said
    if message.requires_user_intervention:
        fields["requires_user_intervention"] = True
    return fields | {name: plain(value) for name, value in error.details.items()}


def accepted(
    state: SessionState,
    contract: Contract,
    ports: Ports,
    extra: Mapping[str, JsonValue],
    warnings: Iterable[Note],
    hints: Iterable[Note],
) -> Fields:
    """The answer to an accepted submit that leads to another place."""
    fields = current_step(state, contract, ports, first=False) | dict(extra)
    said = [*([str(fields["warning"])] if state.handed_over else []), *(say(contract, note) for note in warnings)]
    if said:
        fields["warning"] = "\n".join(said)
    suggested = [say(contract, note) for note in hints]
    standing_hints = fields.get("hints")
    if isinstance(standing_hints, list):
        suggested = [*(str(hint) for hint in standing_hints), *suggested]
    if suggested:
        fields["hints"] = [*suggested]
    return fields


def finished(
    state: SessionState,
    contract: Contract,
    end: End,
    ending: Note,
    extra: Mapping[str, JsonValue],
    warnings: Iterable[Note],
) -> Fields:
    """The last answer of a session, with a one-paragraph account."""
    message = say(contract, ending)
    account = say(
        contract, Note("success.session.complete", {"session_id": state.session_id, "account": account_of(state)})
    )
    fields: Fields = {
        "success": True,
        "session_id": state.session_id,
        "phase": str(end),
        "step": state.place.step,
        "instruction": account if end is End.COMPLETE else message,
        "expected_payload": {},
        "call": "none",
        "compaction_count": state.compaction_count,
        "message": message,
        "completed_steps": [*state.completed_steps],
        "hints": [say(contract, Note("hints.record_outcome"))],
    }
    said = [say(contract, note) for note in warnings]
    if said:
        fields["warning"] = "\n".join(said)
    return fields | dict(extra)


def account_of(state: SessionState) -> str:
    """What happened, in one paragraph of figures."""
    done = sum(task.status is TaskStatus.COMPLETED for task in state.tasks)
    parts = [f"{len(state.completed_steps)} step(s)"]
    if state.tasks:
        parts.append(f"{done} of {len(state.tasks)} tasks completed")
    if state.commits:
        parts.append(f"{len(state.commits)} commit(s)")
    parts.append(f"verification: {state.receipt.status if state.receipt else _unverified(state)}")
    if state.receipt and state.receipt.said:
        parts.append(f"by the agent's word: {state.receipt.said.rstrip('.')}")
    if state.not_run:
        parts.append(f"not run: {', '.join(state.not_run)}")
    if state.intervention_count:
        parts.append(f"{state.intervention_count} intervention(s)")
    if state.quality_revert_count:
        parts.append(f"{state.quality_revert_count} quality revert(s)")
    if state.unresolved_issues:
        parts.append(f"{len(state.unresolved_issues)} quality issue(s) unresolved")
    skipped = state.route.gates_skipped_by_flag()
    if skipped:
        parts.append(f"skipped by flags: {', '.join(skipped)}")
    return "; ".join(parts) + "."


def _unverified(state: SessionState) -> str:
    return "not part of this session" if not state.route.runs(POST_IMPL_VERIFY) else "not passed"


def say(contract: Contract, note: Note) -> str:
    """A message of the contract with its placeholders filled."""
    return contract.message(note.key, note.params).text
