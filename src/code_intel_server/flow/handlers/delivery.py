"""Steps 17 to 19: review and commit, quality, merge (SPEC 4, 6)."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pydantic import JsonValue

from code_intel_server.codebase.files.roles import Role, role
from code_intel_server.common.own_folder import CONFIG_FILE
from code_intel_server.common.printable import printable
from code_intel_server.errors import Rejected
from code_intel_server.flow.checks import disposal
from code_intel_server.flow.checks.authors import keep_waivers
from code_intel_server.flow.checks.judgement import Judge, left_by_runs, list_of_paths, paths_of, rejected_paths
from code_intel_server.flow.handlers.review import Review, reviewed
from code_intel_server.flow.handlers.seen_tests import require_reasons, test_trailers, to_commit
from code_intel_server.flow.handlers.undone import reworked, undone
from code_intel_server.flow.handlers.verdict import (
    count_round_failure,
    failure_text,
    proof_failed,
    proof_fields,
    receipt_of,
)
from code_intel_server.flow.payloads import CommitPayload, MergePayload, QualityPayload
from code_intel_server.flow.phases import MERGE, POST_IMPL_VERIFY, QUALITY_REVIEW, Event
from code_intel_server.flow.session import SessionState
from code_intel_server.flow.transitions import settle
from code_intel_server.flow.turn import Note, Outcome, Turn
from code_intel_server.workspace.values import (
    BESIDE,
    EXECUTABLE,
    Change,
    CommitRequest,
    GitOperation,
    HandMerges,
    ProofStatus,
)

_OURS = re.compile(r"^(?=[ \t>]*code-intel-[\w-]+[ \t]*:)", re.IGNORECASE | re.MULTILINE)
"""Where a line of a message begins that reads like one of our trailers: it becomes a quotation."""
_LATER = "these lines are gone since a later round, which may do it elsewhere"


def pre_commit(turn: Turn[CommitPayload]) -> Outcome:
    """Commit what was reviewed, on a tree that is still proven; or go back to the plan."""
    state, payload = turn.state, turn.payload
    adopted, archived = _finish_pending(turn)
    if payload.revert_reason.strip():
        return _reverted(state, payload.revert_reason.strip(), {"archived": [*archived]} if archived else {})
    if not payload.commit_message.strip():
        raise Rejected("failures.PRE_COMMIT.missing_commit_message")
    disposal.note_calls(state, turn.calls())
    disposal.dispose(state, payload.must_verify)
    if state.task_branch is None and not state.branch_policy:
        raise Rejected("failures.PRE_COMMIT.branch_manager_not_found")
    if turn.ports.documents.find_prompt("review_prompts", payload.review_prompt_used) is None:
        names = ", ".join(prompt.name for prompt in turn.ports.documents.prompts("review_prompts"))
        raise Rejected("failures.PRE_COMMIT.review_prompt_not_found", name=payload.review_prompt_used, available=names)
    now = turn.ports.tree.snapshot(contents=True)
    changes = turn.ports.tree.changes(state.trees.base, now)
    review = reviewed(turn, changes, now, adopted)
    own = sorted(left_by_runs(state, turn.ports, now).difference(review.keep, review.discard, review.leave))
    _refuse_unseen(turn, review, changes, now)
    request = _request(turn, review, now, changes, own)
    if review.discard:
        request = replace(request, archived=archived)
        archived = turn.ports.branches.discard(request, turn.ports.record, state.pending)
        now = turn.ports.tree.snapshot()
        # What is back as it was needs no second discard, but an earlier commit of this session may still hold it.
        request = replace(
            request, keep=(*review.keep, *_taken_back(turn, now, review.keep, review.leave, own)), discard=()
        )
    missing = None if adopted else _judged_again(turn, now, request.leave)
    if missing:
        return _reverted(state, missing[0], {"undone": [*missing[1]], "archived": [*archived]}, (missing[2],))
    before = state.receipt
    proven = _proven(turn, now, archived, request.leave, own)
    if isinstance(proven, Outcome):
        return proven
    _refuse_unreviewed(turn, request, now, proven)
    voided = before is not None and before is not state.receipt and before.status is not ProofStatus.NONE
    return _commit(turn, request, proven, archived, adopted, voided=voided)


def _judged_again(turn: Turn[CommitPayload], now: str, left: Sequence[str]) -> tuple[str, list[str], Note] | None:
    """Keep what a reason was given for; why the rest of what is undone goes back to the plan, its items, and what is reported."""
    state = turn.state
    judge = Judge.at(state, turn.ports, now)
    found = undone(turn, judge, left)
    lost = [one for one in found if not one.reason and one.task_id in state.round_tasks]
    state.undone = {str(one): one.reason or _LATER for one in found if one not in lost}
    state.reworked = reworked(judge, found)
    if not lost:
        return None
    gone = {(one.task_id, one.item) for one in lost}
    state.used_ranges = [
        used.model_copy(update={"undone": True}) if (used.task_id, used.item) in gone else used
        for used in state.used_ranges
    ]
    items = [str(one) for one in lost]
    note = Note("failures.PRE_COMMIT.work_undone", {"items": "; ".join(items)})
    return f"no longer in what was to be committed: {'; '.join(items)}", items, note


def _refuse_unseen(turn: Turn[CommitPayload], review: Review, changes: Sequence[Change], now: str) -> None:
    """What is to be committed was looked at as it is: refused are files not shown, or in part, or changed since the last look."""
    looks = [call for call in turn.calls() if call.tool == "review_changes" and call.tree]
    if not looks or not now:
        return
    trees = {look.tree for look in looks} - {now}
    moved = {tree: {change.path for change in turn.ports.tree.changes(tree, now)} for tree in trees} | {now: set()}
    named = {path for look in looks for path in look.files}
    renamed = {change.old_path: change.path for change in changes}
    unseen = {renamed.get(path, path) for path in review.keep} - review.committed
    said = {path: printable(path) for path in unseen}  # as an answer shows a name
    partly: set[str] = set()
    for look in looks:
        shown = {path for path in unseen - moved[look.tree] if said[path] in look.files}
        in_part = {path for path in shown if said[path] in look.asks}
        partly |= in_part
        unseen -= shown - in_part
    partly = {path for path in unseen if path in partly or said[path] not in named}
    if partly:
        files = list_of_paths(partly)
        raise Rejected("failures.PRE_COMMIT.shown_in_part", details={"cut": sorted(partly)}, files=files)
    if unseen:
        files = list_of_paths(unseen)
        raise Rejected("failures.PRE_COMMIT.changed_meanwhile", details={"changed": sorted(unseen)}, files=files)


def _finish_pending(turn: Turn[CommitPayload]) -> tuple[str, tuple[str, ...]]:
    """The commit that a former attempt made without an answer (a kill, a held index), and the archives of that attempt."""
    state, ports = turn.state, turn.ports
    if state.pending is None or state.pending.operation is not GitOperation.COMMIT:
        return "", ()
    nothing = CommitRequest(state.session_id, state.task_branch, state.tip, "", (), ())
    result = ports.branches.commit(nothing, ports.record, state.pending)
    state.pending = None
    if result.oid:
        state.tip = result.oid
        state.commits.append(result.oid)
        state.trees.committed = ports.tree.head_snapshot(result.oid)
    return result.oid, result.archived


def _refuse_unreviewed(turn: Turn[CommitPayload], request: CommitRequest, reviewed: str, now: str) -> None:
    """What is committed is what was reviewed, also where a verify command wrote to it meanwhile."""
    changes = turn.ports.tree.changes(reviewed, now) if reviewed != now else ()
    moved = {change.path for change in changes} & {*request.keep}
    if moved:
        raise rejected_paths("failures.PRE_COMMIT.changed_meanwhile", "changed", moved)


def _reverted(
    state: SessionState, reason: str, fields: dict[str, JsonValue], warnings: tuple[Note, ...] = ()
) -> Outcome:
    state.receipt = None
    count_round_failure(state, (), reason)
    return Outcome(Event.REVERTED, fields, warnings)


def _proven(
    turn: Turn[CommitPayload], now: str, archived: Sequence[str], leave: Sequence[str], own: Sequence[str]
) -> Outcome | str:
    """Run the proofs again where the tree is not the one they judged: the tree then, or the way back where they fail.

    So do tests that ran in a clean checkout, where what is left out of the commit was in it.
    """
    state, ports, receipt = turn.state, turn.ports, turn.state.receipt
    judged = receipt is not None and receipt.tree == now
    if receipt is not None and receipt.tests is not None and receipt.tests.seen and leave:
        judged = False
    if not state.route.runs(POST_IMPL_VERIFY) or judged:
        return now
    verifier, said = (receipt.verifier, receipt.said) if receipt else ("", "")
    proof = ports.proofs.run(state.session_id, ports.progress, now, to_commit(state, (*leave, *own)))
    if proof.status is ProofStatus.FAILED:
        run = next(run for run in proof.runs if run.outcome is ProofStatus.FAILED)
        command = shlex.join(run.argv)
        note = Note("failures.PRE_COMMIT.proof_failed", {"command": command, "output": failure_text(run, 1500)})
        fields: dict[str, JsonValue] = {**proof_fields(proof), "archived": [*archived]}
        return _reverted(state, f"{command} fails on the tree that was to be committed", fields, (note,))
    keep_waivers(state, ports, proof)
    require_reasons(state, proof, turn.payload.tests_reason)
    state.receipt = receipt_of(proof, verifier, said)
    return proof.tree


def _request(
    turn: Turn[CommitPayload], review: Review, now: str, changes: Sequence[Change], own: Sequence[str]
) -> CommitRequest:
    state = turn.state
    modes = {change.path: change.modes[1] for change in changes if change.modes}
    return CommitRequest(
        session_id=state.session_id,
        branch=state.task_branch,
        expected_tip=state.tip,
        message=_OURS.sub("> ", turn.payload.commit_message.strip()),
        trailers=(),
        keep=(*review.keep, *_taken_back(turn, now, review.keep, review.discard, review.leave, own)),
        discard=tuple(review.discard),
        leave=tuple(review.leave),
        start=_start(state),
        base_snapshot=state.trees.start,
        executable=tuple((path, mode == EXECUTABLE) for path, mode in modes.items() if path in review.keep),
    )


def _taken_back(turn: Turn[CommitPayload], now: str, *decided: Sequence[str]) -> list[str]:
    """Paths that an earlier commit of this session changed and that are now as in the base again.

    A path that neither the tip nor the start holds was in no commit: it lay untracked there before the session.
    """
    state, tree = turn.state, turn.ports.tree
    if not state.trees.committed:
        return []
    since = tree.changes(state.trees.committed, now)
    named_already = {path for paths in decided for path in paths}
    paths = {path for change in since for path in (change.path, change.old_path) if path} - named_already
    if not paths:
        return []
    commits = (tree.head_snapshot(state.tip), tree.head_snapshot(_start(state)))
    return sorted(path for path in paths if any(tree.exists(commit, path) for commit in commits))


def _start(state: SessionState) -> str:
    return state.task_branch.base_oid if state.task_branch else state.head_at_start


def _commit(
    turn: Turn[CommitPayload],
    request: CommitRequest,
    reviewed: str,
    archived: Sequence[str],
    adopted: str,
    *,
    voided: bool,
) -> Outcome:
    """Commit, and hold the commit against what was reviewed: a filter, a hook or a write at that moment is named."""
    state, ports = turn.state, turn.ports
    state.left = _left(turn, request, reviewed)
    # What lay there uncommitted before the session is committed with it, and the review showed only what came on top.
    unseen = ports.tree.uncommitted(state.trees.base, _start(state), request.keep)
    unseen_row = (("Code-Intel-Unreviewed", " ".join(list_of_paths(unseen).split())),) if unseen else ()
    beside = _beside(turn, request, reviewed)
    request = replace(request, trailers=(*trailers(state), *unseen_row), archived=tuple(archived))
    result = ports.branches.commit(request, ports.record, state.pending)
    state.pending, state.tip = None, result.tip
    state.trees.committed = state.trees.judged = ports.tree.snapshot()
    oid = result.oid or adopted
    fields: dict[str, JsonValue] = {"archived": [*result.archived]} if result.archived else {}
    if not oid:
        none = "warnings.nothing_more_to_commit" if state.commits else "warnings.nothing_to_commit"
        return Outcome(Event.COMMITTED, fields, (Note(none),))
    fields["commit"] = oid
    if result.oid:
        state.commits.append(result.oid)
    # What a hook put into an earlier commit is still in the branch where this one did not keep it.
    earlier = {*state.altered, *(ports.tree.altered(adopted, (), reviewed) if adopted else ())} - {*request.keep}
    state.altered = sorted({*ports.tree.altered(oid, request.keep, reviewed), *earlier})
    other = (Note("warnings.committed_differs", {"files": list_of_paths(state.altered)}),) if state.altered else ()
    state.left = [path for path in state.left if path not in state.altered]
    written = _written_since(turn, reviewed, state.trees.committed).difference(state.left) if result.oid else set()
    within = {*ports.tree.worktrees()}.difference(state.worktrees_within)
    rows = (
        ("warnings.committed_unseen", "files", list_of_paths(unseen if result.oid else ())),
        ("warnings.proven_beside", "files", list_of_paths(beside if result.oid else ())),
        ("warnings.impact_undecided", "places", list_of_paths(disposal.settle_entries(state, request.keep))),
        ("warnings.left_uncommitted", "files", list_of_paths(state.left)),
        ("warnings.written_at_commit", "files", list_of_paths(written)),
        ("warnings.worktrees_within", "folders", list_of_paths(within)),
        ("warnings.outside_uncommitted", "files", list_of_paths(result.outside)),
        ("warnings.reworked", "items", "; ".join(state.reworked)),
        ("warnings.work_undone", "items", "; ".join(f"{item}: {reason}" for item, reason in state.undone.items())),
    )
    notes = [Note("warnings.proof_voided")] if voided else []
    notes += [Note(key, {field: text}) for key, field, text in rows if text]
    return Outcome(Event.COMMITTED, fields, (*notes, *_receipt_warnings(state), *other))


def _left(turn: Turn[CommitPayload], request: CommitRequest, reviewed: str) -> list[str]:
    """What is left uncommitted: somebody may have committed it where the branch was to begin."""
    tree = turn.ports.tree
    changes = tree.changes(tree.head_snapshot(request.expected_tip), reviewed) if request.leave else ()
    differing = {path for change in changes for path in (change.path, change.old_path)}
    return [path for path in request.leave if path in differing]


def _written_since(turn: Turn[CommitPayload], reviewed: str, now: str) -> set[str]:
    """What was written between two snapshots and is not as HEAD has it: by a hook that did not stage it, or by somebody."""
    tree = turn.ports.tree
    moved = paths_of(tree.changes(reviewed, now)) if reviewed != now else set()
    return moved & paths_of(tree.changes(tree.head_snapshot(turn.state.tip), now)) if moved else moved


def _beside(turn: Turn[CommitPayload], request: CommitRequest, proven: str) -> list[str]:
    """What the verify commands found otherwise than the commit will hold it, what is left uncommitted aside.

    It was no change of the session, or none that git was to see: untracked before, marked as not to be looked at, left out.
    Of untracked files, whose names are the user's own affair, the trailer says how many there are. Where no command proved
    anything there is one file that matters: the one that names the commands.
    """
    state = turn.state
    state.beside = []
    if state.receipt is None:
        return []
    found = turn.ports.tree.beside(_start(state), proven, {*request.keep, *request.leave})
    tracked = sorted({*found.tracked, *state.receipt.left_out})
    own = left_by_runs(state, turn.ports, proven)
    untracked = [path for path in found.untracked if path in own or role(path) is not Role.DOCUMENTATION]
    if all(run.outcome is not ProofStatus.PROVEN for run in state.receipt.commands):
        tracked, untracked = [path for path in tracked if path == CONFIG_FILE], []
    counted = f"{len(untracked)} untracked file(s)" if untracked else ""
    questions = state.receipt.tests.questions if state.receipt.tests else {}
    alone = [
        f"files in no commit, for {it[:200]}: {state.test_reasons[it]}"
        for it, why in questions.items()
        if why.startswith(BESIDE)
    ]
    state.beside = [" ".join(words.split()) for words in (list_of_paths(tracked), counted, *alone) if words]
    return [*tracked, *untracked]


def _receipt_warnings(state: SessionState) -> tuple[Note, ...]:
    if state.receipt is None:
        return ()
    return tuple(
        Note(f"warnings.{run.outcome}", {"command": run.command, "reason": run.reason})
        for run in state.receipt.commands
        if run.outcome in {ProofStatus.UNPROVEN, ProofStatus.WAIVED}
    )


def trailers(state: SessionState) -> tuple[tuple[str, str], ...]:
    """What commit and merge say of how they came about (SPEC 3.2, 4, 6.3)."""
    rows = [("Code-Intel-Session", state.session_id)]
    if state.tasks:
        rows.append(("Code-Intel-Tasks", ", ".join(" ".join(task.id.split()) for task in state.tasks)))
    skipped = state.route.gates_skipped_by_flag()
    if skipped:
        rows.append(("Code-Intel-Skipped", ", ".join(skipped)))
    rows += [("Code-Intel-Decision", f"{what}, {author}") for what, author in _in_one_line(state.decisions)]
    if state.receipt is not None:
        if state.receipt.status is ProofStatus.NONE:
            said = f"; by the agent's word: {state.receipt.said}" if state.receipt.said else ""
            rows.append(("Code-Intel-Proof", f"none, as no verify commands are configured{said}"))
        passed = (run for run in state.receipt.commands if run.outcome is ProofStatus.PROVEN)
        rows += [("Code-Intel-Proof", " ".join(run.command.split())) for run in passed]
        rows += [
            (f"Code-Intel-{run.outcome.capitalize()}", " ".join(run.command.split()))
            for run in state.receipt.commands
            if run.outcome in {ProofStatus.UNPROVEN, ProofStatus.WAIVED}
        ]
        rows += test_trailers(state.receipt.tests, state.test_reasons, state.file_reasons)
        rewritten = sorted({path for run in state.receipt.commands for path in run.rewritten})
        if rewritten:
            rows.append(("Code-Intel-Rewritten-In-Proof", " ".join(list_of_paths(rewritten).split())))
    rows += [("Code-Intel-Not-Run", " ".join(what.split())) for what in state.not_run]
    rows += [("Code-Intel-Undone", f"{item}: {reason}") for item, reason in _in_one_line(state.undone)]
    rows += [("Code-Intel-Reworked", " ".join(item.split())) for item in state.reworked]
    if state.dropped:
        rows.append(("Code-Intel-Dropped", ", ".join(" ".join(name.split()) for name in state.dropped)))
    if state.only_skipped:
        rows.append(("Code-Intel-Only-Skipped", ", ".join(" ".join(name.split()) for name in state.only_skipped)))
    if state.earlier_config:
        rows.append(("Code-Intel-Config", "trusted earlier, and another content since"))
    if state.beside:
        rows.append(("Code-Intel-Proven-Beside", "; ".join(state.beside)))
    if state.left:
        rows.append(("Code-Intel-Left", " ".join(list_of_paths(state.left).split())))
    if state.altered:
        rows.append(("Code-Intel-Altered", f"{len(state.altered)} file(s) by a filter or hook"))
    if state.unresolved_issues:
        rows.append(("Code-Intel-Unresolved", f"{len(state.unresolved_issues)} quality issue(s)"))
    return tuple(rows)


def _in_one_line(said: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(" ".join(item.split()), " ".join(reason.split())) for item, reason in said.items()]


def quality_review(turn: Turn[QualityPayload]) -> Outcome:
    """Take the quality verdict on exactly what was committed."""
    state, payload, ports = turn.state, turn.payload, turn.ports
    if payload.issues is None:
        raise Rejected("failures.QUALITY_REVIEW.issues_required")
    if ports.documents.find_prompt("review_prompts", payload.quality_prompt_used) is None:
        names = ", ".join(prompt.name for prompt in ports.documents.prompts("review_prompts"))
        raise Rejected(
            "failures.QUALITY_REVIEW.quality_prompt_not_found", name=payload.quality_prompt_used, available=names
        )
    issues = tuple(issue.strip() for issue in payload.issues if issue.strip())
    if issues:
        return _issues(state, issues)
    now = ports.tree.snapshot()
    if now != state.trees.committed:
        strays = [change.path for change in ports.tree.changes(state.trees.committed, now)]
        raise rejected_paths("failures.QUALITY_REVIEW.tree_changed", "changed", strays)
    return Outcome(Event.CLEAN)


def _issues(state: SessionState, issues: tuple[str, ...]) -> Outcome:
    if settle(state.route, QUALITY_REVIEW, Event.ISSUES, state.counters).forced:
        state.unresolved_issues, state.forced = [*issues], True
        return Outcome(
            Event.ISSUES, {"issues": [*issues]}, (Note("failures.QUALITY_REVIEW.quality_forced_completion"),)
        )
    state.receipt = None
    state.revert_reason = "Quality review: " + "; ".join(issues)
    state.round_tasks = []
    return Outcome(Event.ISSUES)


def merge(turn: Turn[MergePayload]) -> Outcome:
    """Merge the task branch into its base and remove it."""
    state, ports = turn.state, turn.ports
    if turn.payload.issues and state.route.runs(QUALITY_REVIEW):
        here, other = MERGE.phase, QUALITY_REVIEW.phase
        raise Rejected("common_failures.payload_fits_other_phase", phase=here, other_phase=other)
    if issues := [issue for issue in turn.payload.issues or () if issue.strip()]:
        state.unresolved_issues, state.forced = issues, True
    if state.route.runs(QUALITY_REVIEW) and QUALITY_REVIEW.step not in state.completed_steps:
        raise Rejected("failures.MERGE.quality_review_required")
    if state.task_branch is None:
        if not state.branch_policy:
            raise Rejected("failures.MERGE.branch_manager_not_found")
        return Outcome(Event.MERGED, {}, _late(turn), ending=Note("success.MERGE.no_task_branch_complete"))
    by_hand = ports.branches.hand_merges(state.task_branch, state.tip, state.pending)
    warnings = _hand_merges_proven(turn, by_hand) if by_hand.commits else _late(turn)
    result = ports.branches.merge(
        state.task_branch, state.session_id, state.tip, trailers(state), ports.record, state.pending, by_hand
    )
    state.pending = None
    where = {"from_branch": result.from_branch, "to_branch": result.to_branch}
    if result.pushed_hint:
        kept = Note("success.MERGE.branch_kept", where)
        if result.busy:
            kept = Note("success.MERGE.branch_kept_busy", where | {"why": result.busy})
        return Outcome(Event.MERGED, {"push": result.pushed_hint}, warnings, ending=kept)
    if not result.oid:
        unmoved = Note("success.MERGE.unmoved_branch_removed", where)
        return Outcome(Event.MERGED, {}, warnings, ending=unmoved, retired=result.retired)
    if result.combined:
        warnings = (*warnings, Note("warnings.merged_combined", {"branch": result.to_branch}))
    if result.brought_back:
        back = ", ".join(oid[:12] for oid in result.brought_back)
        warnings = (*warnings, Note("warnings.brought_back", {"branch": result.to_branch, "commits": back}))
    done = Note("success.MERGE.merge_success", where)
    return Outcome(Event.MERGED, {"merge_commit": result.oid}, warnings, ending=done, retired=result.retired)


def _late(turn: Turn[MergePayload]) -> tuple[Note, ...]:
    """What was changed since the commit and is in none: nobody judges it any more, so it is named."""
    tree = turn.ports.tree
    now = tree.snapshot()
    late = _not_in(turn, tree.head(), now) if now and turn.state.trees.committed not in {"", now} else set()
    return (Note("warnings.changed_since_commit", {"files": list_of_paths(late)}),) if late else ()


def _hand_merges_proven(turn: Turn[MergePayload], by_hand: HandMerges) -> tuple[Note, ...]:
    """Run the proofs on what was merged by hand, which no phase has seen; what to report of it.

    Raises Rejected where they fail, or where files that are not in the merge could make them pass. Where none runs,
    such files prove nothing, and somebody may be writing them: they are named.
    """
    state, ports = turn.state, turn.ports
    said = Note("warnings.merged_by_hand", {"commits": ", ".join(oid[:12] for oid in by_hand.commits)})
    more = Note("warnings.merged_unreviewed", {"files": list_of_paths(by_hand.unreviewed)})
    notes = (said, more) if by_hand.unreviewed else (said,)
    now = ports.tree.snapshot()
    if not state.route.runs(POST_IMPL_VERIFY):
        return notes
    strays = _not_in(turn, by_hand.commits[-1], now)
    if strays and ports.proofs.would_run(state.session_id):
        raise rejected_paths("failures.MERGE.uncommitted", "changed", strays)
    if strays:
        notes = (*notes, Note("warnings.merged_beside", {"files": list_of_paths(strays)}))
    if state.receipt is not None and state.receipt.tree == now:
        return notes
    proof = ports.proofs.run(state.session_id, ports.progress, now)
    if proof.status is ProofStatus.FAILED:
        raise proof_failed("failures.MERGE.proof_failed", proof)
    keep_waivers(state, ports, proof)
    before = state.receipt
    state.receipt = receipt_of(proof, before.verifier if before else "", before.said if before else "")
    return notes


def _not_in(turn: Turn[MergePayload], merge: str, now: str) -> set[str]:
    """What lies on disk otherwise than in a merge, but for what was uncommitted already when the session committed."""
    state, tree = turn.state, turn.ports.tree

    def differing(old: str, new: str) -> set[str]:
        return {change.path for change in tree.changes(old, new)}

    then = differing(tree.head_snapshot(state.tip), state.trees.committed) - differing(state.trees.committed, now)
    return differing(tree.head_snapshot(merge), now) - then - {*state.left}
