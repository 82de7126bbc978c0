"""What a session tells of itself outside a submit: the answers to start_session and get_session_status (SPEC 2, 7)."""

from collections.abc import Sequence

from pydantic import JsonValue

from code_intel_server.codebase.answers import lines_of
from code_intel_server.flow import responses
from code_intel_server.flow.checks.judgement import list_of_paths
from code_intel_server.flow.phases import READY_PLAN, Phase
from code_intel_server.flow.ports import Ports
from code_intel_server.flow.session import LastSubmit, SessionState
from code_intel_server.flow.turn import Note
from code_intel_server.index.vectors.embedding import extra_missing
from code_intel_server.tools import learning
from code_intel_server.tools.services import ProjectServices, SessionSettings
from code_intel_server.tools.shaping import fitting_rows
from code_intel_server.workspace.project.trust import Approvals
from code_intel_server.workspace.values import Hunk, Survey

Fields = dict[str, JsonValue]

_CHANGES_CHARACTERS = 4_000


def first_answer(
    services: ProjectServices,
    state: SessionState,
    settings: SessionSettings,
    survey: Survey,
    ports: Ports,
    recoverable: Sequence[JsonValue],
    *,
    has_scaffold: bool,
) -> Fields:
    """The answer to start_session: where the session is, and all that the agent must know before it begins."""
    contract = settings.contract
    answer = responses.current_step(state, contract, ports)
    rules = settings.context.project_rules()
    if rules.source or rules.summary:
        answer["project_rules"] = {"source": rules.source, "summary": rules.summary}
    notes = _start_warnings(state, survey, has_scaffold=has_scaffold, untrusted=_untrusted(settings))
    hints = [str(hint) for hint in given] if isinstance(given := answer.get("hints"), list) else []
    if rules.update_required:
        answer["context_update_required"] = True
        hints.append(responses.say(contract, Note("hints.update_context", {"source": rules.source})))
    if recoverable:
        answer["recovery_available"] = [*recoverable]
        answer["message"] = responses.say(contract, Note("session_messages.checkpoint_recovery"))
        first = recoverable[0]
        assert isinstance(first, dict)  # made by _recoverable
        hints.append(responses.say(contract, Note("hints.recovery_choice", first)))
    if ignored := state.route.ignored_flags():
        answer["ignored_flags"] = [*ignored]
        notes.append(Note("warnings.ignored_flags", {"flags": ", ".join(ignored)}))
    if state.decisions:
        answer["decisions"] = {**state.decisions}
    if skipped := state.route.gates_skipped_by_flag():
        answer["skipped_gates"] = [*skipped]
    if extra_missing(model := settings.config.config.embedding_model):
        notes.append(Note("warnings.embedding_extra_missing", {"model": model}))
    if problems := _problems(settings):
        answer["contract_warnings"] = [*problems]
    if lessons := learning.lessons(services, state):
        answer["lessons"] = [responses.say(contract, lesson) for lesson in lessons]
    said = [responses.say(contract, note) for note in notes] + list(survey.warnings)
    if said:
        answer["warnings"] = [*said]
    if hints:
        answer["hints"] = [*hints]
    return answer


def first_instruction(answer: Fields) -> LastSubmit:
    """What the checkpoint keeps of the answer to start_session, for those who only read it: the hook and `status`."""
    return LastSubmit(digest="", response={name: answer[name] for name in ("phase", "instruction")})


def session_status(state: SessionState, settings: SessionSettings, ports: Ports) -> Fields:
    """Where a session stands, with everything an agent needs that has forgotten it (SPEC 7)."""
    answer = responses.current_step(state, settings.contract, ports)
    answer |= {
        "query": state.query,
        "intent": str(state.intent),
        "flags": [*state.flags.set_names()],
        "completed_steps": [*state.completed_steps],
        "phase_summaries": dict(state.summaries),
        "counters": {
            "verification_failure_count": state.verification_failure_count,
            "intervention_count": state.intervention_count,
            "quality_revert_count": state.quality_revert_count,
        },
    }
    if state.task_branch is not None:
        answer["branch"] = {"name": state.task_branch.name, "base": state.task_branch.base}
    return answer


def _problems(settings: SessionSettings) -> list[str]:
    """What of the project's own texts and settings cannot be used."""
    context = (*settings.context.context.warnings, *settings.context.missing_research())
    return [
        *settings.contract.warnings,
        *(f"config.json {said}" for said in settings.config.warnings),
        *(f"context.yml {said}" for said in context),
        *settings.prompts.warnings,
    ]


def _untrusted(settings: SessionSettings) -> bool:
    """Whether commands are configured that the user has not trusted: they will not run."""
    config = settings.config
    return any(config.commands) and not Approvals().trusted(config.path, config.digest)


def _start_warnings(state: SessionState, survey: Survey, *, has_scaffold: bool, untrusted: bool) -> list[Note]:
    notes: list[Note] = []
    commits = state.route.runs(READY_PLAN) and not state.flags.quick
    if not survey.git:
        notes.append(Note("warnings.no_git"))
    if commits and survey.identity_missing:
        notes.append(Note("warnings.identity_missing"))
    if untrusted:
        notes.append(Note("warnings.config_untrusted", {"file": ".code-intel/config.json"}))
    if state.earlier_config:
        notes.append(Note("warnings.config_trusted_earlier", {"file": ".code-intel/config.json"}))
    if commits and survey.dirty:
        notes.append(Note("warnings.dirty_tree", {"files": ", ".join(survey.dirty[:20])}))
    if state.worktrees_within:
        notes.append(Note("warnings.worktrees_within", {"folders": list_of_paths(state.worktrees_within)}))
    if not has_scaffold:
        notes.append(Note("warnings.no_scaffold"))
    skipped = state.route.gates_skipped_by_flag()
    if skipped and state.phase is not Phase.POST_IMPL_VERIFY:
        notes.append(Note("warnings.skipped_gates", {"phases": ", ".join(skipped)}))
    return notes


def changes_so_far(services: ProjectServices, state: SessionState) -> Fields:
    """What this session has changed since its base, for an agent that did not see it happen: files, lines and tasks.

    Only once a plan was accepted; as many files as there is room for.
    """
    if not state.trees.base or not state.trees.ready:
        return {}
    tasks = tasks_of(services, state)
    rows: list[Fields] = []
    for change in services.tree.changes(state.trees.base, services.tree.snapshot()):
        row: Fields = {"path": change.path, "status": str(change.kind), "lines": ", ".join(map(_lines, change.hunks))}
        task = tasks.get(change.path, "")
        rows.append(row | ({"old_path": change.old_path} if change.old_path else {}) | ({"task": task} if task else {}))
    shown = fitting_rows(rows, _CHANGES_CHARACTERS)
    more = len(rows) - shown.rows
    return {"changed_files": shown.results} | ({"more_changed_files": more} if more else {})


def _lines(hunk: Hunk) -> str:
    """`12-15` as it is now, or where lines were only deleted."""
    if hunk.new_count:
        return lines_of(hunk.new_start, hunk.new_start + hunk.new_count - 1)
    return f"{hunk.old_count} deleted after {hunk.new_start}"


def tasks_of(services: ProjectServices, state: SessionState) -> dict[str, str]:
    """Each changed path's tasks: those whose evidence names it, else the first at whose report it had changed."""
    found: dict[str, str] = {}
    for task in state.tasks:
        named = ",".join(item.evidence or "" for item in task.checklist).split(",")
        for path in {place.rpartition(":")[0].strip() for place in named}:
            found[path] = f"{found[path]}, {task.id}" if path in found else task.id
    before = state.trees.ready or state.trees.base
    for task_id, tree in state.trees.by_task.items():
        for change in services.tree.changes(before, tree):
            found.setdefault(change.path, task_id)
        before = tree
    return found
