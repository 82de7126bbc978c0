"""Steps 15 and 16: the verdict, proven by the server's own run, and the way out of repeated failure (SPEC 4)."""

import re
import shlex
import textwrap

from pydantic import JsonValue

from code_intel_server.errors import Rejected
from code_intel_server.flow.checks.authors import decided, keep_waivers
from code_intel_server.flow.checks.judgement import left_by_runs, list_of_paths, refuse_unexplored
from code_intel_server.flow.handlers.seen_tests import require_reasons, tests_fields, to_commit
from code_intel_server.flow.payloads import InterventionPayload, VerdictPayload
from code_intel_server.flow.phases import Event
from code_intel_server.flow.session import REASON_AT_MOST, CommandEvidence, Receipt, SessionState
from code_intel_server.flow.tasks import count_failures, reset_failures
from code_intel_server.flow.turn import Note, Outcome, Turn
from code_intel_server.workspace.values import CommandRun, Proof, ProofStatus

INTERVENTION_DECISIONS = ("continue", "stop")
DETAILS_AT_MOST = 8_000
SAID_AT_MOST = 200
NOT_RUN_AT_MOST = 20
REWRITTEN_AT_MOST = 100
LEFT_OUT_AT_MOST = 100
_PASSED = re.compile(r"\b(\d+) passed\b")
_NARROWED = re.compile(r"\w/\w|[a-z]\.[a-z]|::|\s-k\s", re.IGNORECASE)
"""What a text has that speaks of a part of the tests: a path, a name within one, an option."""


def post_impl_verify(turn: Turn[VerdictPayload]) -> Outcome:
    """Take a verdict: a pass only where the configured commands pass, a failure on the agent's word."""
    payload = turn.payload
    if payload.passed is None:
        raise Rejected("failures.POST_IMPL_VERIFY.passed_required")
    verifiers = _verifiers(turn)
    unknown = set(payload.failed_tasks) - {task.id for task in turn.state.tasks}
    if unknown:
        raise Rejected(
            "failures.POST_IMPL_VERIFY.unknown_failed_tasks",
            tasks=", ".join(sorted(unknown)),
            registered=", ".join(t.id for t in turn.state.tasks),
        )
    if not payload.passed and not payload.details.strip():
        raise Rejected("failures.POST_IMPL_VERIFY.details_required")
    not_run = (what[:REASON_AT_MOST] for what in payload.not_run if what)
    turn.state.not_run = [*dict.fromkeys((*turn.state.not_run, *not_run))][-NOT_RUN_AT_MOST:]
    return _passed(turn, verifiers) if payload.passed else _failed(turn)


def _verifiers(turn: Turn[VerdictPayload]) -> str:
    """The paths of the verifiers that were followed, each of which exists."""
    documents = turn.ports.documents
    known = documents.prompts("verifiers")
    paths: list[str] = []
    for name in turn.payload.verifiers or ("",):
        exact = documents.find_prompt("verifiers", name)
        words = re.findall(r"[\w-]+", name)
        found = [exact] if exact else [prompt for prompt in known if prompt.name in words]
        if not found:
            available = ", ".join(prompt.name for prompt in known)
            raise Rejected("failures.POST_IMPL_VERIFY.verifier_not_found", name=name, available=available)
        paths += [prompt.path for prompt in found]
    return ", ".join(dict.fromkeys(paths))


def _passed(turn: Turn[VerdictPayload], verifier: str) -> Outcome:
    state, ports = turn.state, turn.ports
    # add_explored_files is READY's: here the way out is another one.
    which = "tree_changed" if state.flags.only_verify else "unexplored_changes"
    now = ports.tree.snapshot(contents=True)
    before = left_by_runs(state, ports, now)
    refuse_unexplored(state, ports, now, f"failures.POST_IMPL_VERIFY.{which}", before)
    proof = ports.proofs.run(state.session_id, ports.progress, now, to_commit(state, sorted(before)))
    if proof.status is ProofStatus.FAILED:
        raise proof_failed("failures.POST_IMPL_VERIFY.proof_failed", proof)
    keep_waivers(state, ports, proof)
    require_reasons(state, proof, turn.payload.tests_reason)
    state.receipt = receipt_of(proof, verifier, turn.payload.details)
    ending = _passed_ending(state)
    fields = proof_fields(proof) | tests_fields(proof.tests, state.test_reasons)
    left = left_by_runs(state, ports, proof.tree) - before
    notes = (Note("warnings.left_by_runs", {"files": list_of_paths(left)}),) if left else ()
    warnings = (*proof_warnings(proof), *notes, *_counted_otherwise(turn.payload.details, proof))
    return Outcome(Event.PASSED, fields, warnings, ending=ending)


def _counted_otherwise(details: str, proof: Proof) -> tuple[Note, ...]:
    """The agent's number of passed tests and the server's own, where a text that speaks of all of them has another."""
    said = _PASSED.findall(re.sub(r"(?<=\d),(?=\d)", "", details))
    seen = {shlex.join(run.argv): _PASSED.findall(f"{run.reason}\n{run.output_tail}") for run in proof.runs}
    if not said or _NARROWED.search(details) or {*said} & {number for own in seen.values() for number in own}:
        return ()
    return tuple(
        Note("warnings.counted_otherwise", {"said": said[-1], "command": command, "seen": ", ".join(own)})
        for command, own in seen.items()
        if own
    )


def _passed_ending(state: SessionState) -> Note | None:
    if state.flags.only_verify:
        return Note("success.POST_IMPL_VERIFY.only_verify_passed")
    return Note("success.POST_IMPL_VERIFY.session_complete_quick") if state.flags.quick else None


def _failed(turn: Turn[VerdictPayload]) -> Outcome:
    state, payload = turn.state, turn.payload
    state.receipt = None
    reason = payload.details.strip()
    if state.flags.only_verify:
        ending = Note("success.POST_IMPL_VERIFY.only_verify_failed")
        return Outcome(Event.FAILED, {"passed": False}, ending=ending)
    count_round_failure(state, payload.failed_tasks, reason)
    return Outcome(Event.FAILED)


def count_round_failure(state: SessionState, failed: tuple[str, ...], reason: str) -> None:
    """Count a failed verification on its tasks (none named: all of this round) and open a new round."""
    state.tasks = count_failures(state.tasks, failed or tuple(state.round_tasks), reason[:REASON_AT_MOST])
    state.revert_reason = reason[:DETAILS_AT_MOST]
    state.round_tasks = []


def proof_failed(key: str, proof: Proof) -> Rejected:
    """The refusal of a verdict that a command contradicts, with the command and the tail of its output."""
    run = next(run for run in proof.runs if run.outcome is ProofStatus.FAILED)
    return Rejected(key, details=proof_fields(proof), command=shlex.join(run.argv), output=failure_text(run))


def failure_text(run: CommandRun, most: int | None = None) -> str:
    """Why a command failed: its time limit or signal, and the end of what it printed; its exit status where that is all."""
    tail = run.output_tail if most is None else run.output_tail[-most:]
    return "\n".join(filter(None, [run.reason, tail])) or f"exit status {run.returncode}, without a word"


def receipt_of(proof: Proof, verifier: str, said: str) -> Receipt:
    """What the session keeps of a proof, and where there is none of what the agent `said`."""
    commands = [
        CommandEvidence(
            command=shlex.join(run.argv),
            outcome=run.outcome,
            returncode=run.returncode,
            seconds=round(run.seconds, 2),
            output_tail=run.output_tail[-4000:],
            reason=run.reason,
            rewritten=[*run.rewritten[:REWRITTEN_AT_MOST]],
        )
        for run in proof.runs
    ]
    left_out = [*proof.left_out[:LEFT_OUT_AT_MOST]]
    return Receipt(
        status=proof.status,
        tree=proof.tree,
        verifier=verifier,
        commands=commands,
        left_out=left_out,
        tests=proof.tests,
        said=textwrap.shorten(said, SAID_AT_MOST, placeholder=" ...") if proof.status is ProofStatus.NONE else "",
    )


def proof_fields(proof: Proof) -> dict[str, JsonValue]:
    """A proof as an answer shows it."""
    runs: list[JsonValue] = [
        {
            "command": shlex.join(run.argv),
            "outcome": str(run.outcome),
            "returncode": run.returncode,
            "seconds": round(run.seconds, 2),
            "reason": run.reason,
            **({"output_tail": run.output_tail[-1500:]} if run.outcome is not ProofStatus.PROVEN else {}),
        }
        for run in proof.runs
    ]
    return {"proof": {"status": str(proof.status), "commands": runs}} if runs else {"proof": str(proof.status)}


def proof_warnings(proof: Proof) -> tuple[Note, ...]:
    """What must be reported about a verdict that the server did not fully prove."""
    notes = [
        Note(f"warnings.{run.outcome}", {"command": shlex.join(run.argv), "reason": run.reason})
        for run in proof.runs
        if run.outcome in {ProofStatus.UNPROVEN, ProofStatus.WAIVED}
    ]
    notes += [
        Note("warnings.rewritten_in_proof", {"command": shlex.join(run.argv), "files": list_of_paths(run.rewritten)})
        for run in proof.runs
        if run.rewritten
    ]
    if proof.status is ProofStatus.NONE:
        notes.append(Note("warnings.proof_none"))
    return tuple(notes)


def verify_intervention(turn: Turn[InterventionPayload]) -> Outcome:
    """Accept an intervention by an existing prompt; in escalation by the procedure, with the user's decision."""
    state, payload = turn.state, turn.payload
    kind = "user_escalation" if state.escalating else "interventions"
    prompt = turn.ports.documents.find_prompt(kind, payload.prompt_used)
    if prompt is None and state.escalating:
        raise Rejected("failures.VERIFY_INTERVENTION.escalation_prompt_required", count=state.intervention_count)
    if prompt is None:
        names = ", ".join(prompt.name for prompt in turn.ports.documents.prompts(kind))
        raise Rejected("failures.VERIFY_INTERVENTION.prompt_not_found", name=payload.prompt_used, available=names)
    if not payload.action_taken.strip():
        raise Rejected("failures.VERIFY_INTERVENTION.action_taken_required")
    if state.escalating and payload.user_decision not in INTERVENTION_DECISIONS:
        raise Rejected("failures.VERIFY_INTERVENTION.user_decision_required")
    if state.escalating and _decision(turn) == "stop":
        return Outcome(Event.STOPPED, ending=Note("success.session.abandoned", {"session_id": state.session_id}))
    state.tasks = reset_failures(state.tasks)
    return Outcome(Event.INTERVENED)


def _decision(turn: Turn[InterventionPayload]) -> str:
    return decided(turn.state, turn.ports, "user_decision", turn.payload.user_decision, INTERVENTION_DECISIONS)
