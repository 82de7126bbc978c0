"""What shall become of every changed path: the agent's decisions, each asked for and reasoned (SPEC 4, PRE_COMMIT)."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from code_intel_server.codebase.files.roles import TEST_TABLES, is_runner_file, is_test_file, named_as_tests
from code_intel_server.common import globs
from code_intel_server.common.printable import printable
from code_intel_server.errors import Rejected
from code_intel_server.flow.checks.judgement import left_by_runs, paths_of, refuse_within, rejected_paths, unexplored
from code_intel_server.flow.payloads import CommitPayload, ReviewedFile
from code_intel_server.flow.ports import Ports
from code_intel_server.flow.session import REASON_AT_MOST, SessionState
from code_intel_server.flow.turn import Turn
from code_intel_server.workspace.values import Change, ChangeKind, ProofStatus

FILE_DECISIONS = ("keep", "discard", "leave")


@dataclass(slots=True)
class Review:
    """What shall become of each changed path; `committed` are those of which nothing is left to decide."""

    keep: list[str] = field(default_factory=list)
    discard: list[str] = field(default_factory=list)
    leave: list[str] = field(default_factory=list)
    committed: frozenset[str] = frozenset()


def reviewed(turn: Turn[CommitPayload], changes: Sequence[Change], now: str, adopted: str = "") -> Review:
    """Sort every changed path by the agent's decision. Raises Rejected naming what was not, or wrongly, reviewed.

    What an `adopted` commit holds is not known to be as it was reviewed: a hook may have changed it before a kill.
    """
    changed = {change.path: change for change in changes}
    own = left_by_runs(turn.state, turn.ports, now)
    decisions = _decisions(turn, changed, own)
    review = Review(committed=frozenset() if adopted else committed(turn.state, turn.ports, changes, now))
    decisions = {path: ReviewedFile(path=path) for path in review.committed} | decisions
    missing = [path for path in changed if path not in decisions and path not in own]
    if missing:
        raise rejected_paths("failures.PRE_COMMIT.files_not_reviewed", "missing", missing)
    strays = unexplored(turn.state, turn.ports, turn.state.trees.judged, now, own)
    strays = [path for path in strays if path in decisions and decisions[path].decision == "keep"]
    if strays:
        raise rejected_paths("failures.PRE_COMMIT.unexplored_changes", "unexplored", strays)
    _require_reasons(turn, changed, decisions, review.committed)
    refuse_within(
        (changed[path] for path, entry in decisions.items() if entry.decision != "leave"),
        "failures.PRE_COMMIT.repository_uncommitted",
    )
    for path, decided in decisions.items():
        old = changed[path].old_path
        bucket: list[str] = getattr(review, decided.decision)
        bucket.extend([path, old] if old else [path])
    return review


def committed(state: SessionState, ports: Ports, changes: Sequence[Change], now: str) -> frozenset[str]:
    """The changed paths that this session's last commit holds as they are now, and as they were reviewed."""
    if not state.commits or not now:
        return frozenset()
    since = ports.tree.changes(ports.tree.head_snapshot(state.tip), now)
    other = paths_of(since) | {*state.altered}
    return frozenset(change.path for change in changes if other.isdisjoint({change.path, change.old_path}))


def _decisions(turn: Turn[CommitPayload], changed: dict[str, Change], own: Collection[str]) -> dict[str, ReviewedFile]:
    exact: dict[str, ReviewedFile] = {}
    globbed: dict[str, list[ReviewedFile]] = {}
    shown = {printable(path): path for path in changed}
    for entry in turn.payload.reviewed_files:
        if entry.decision not in FILE_DECISIONS:
            raise Rejected(
                "common_failures.field_invalid", field="reviewed_files.decision", expected="keep, discard or leave"
            )
        if entry.decision == "discard" and not entry.reason.strip():
            raise Rejected("failures.PRE_COMMIT.review_failed", details={"path": entry.path}, files=entry.path)
        if entry.decision == "leave" and not entry.reason.strip():
            raise Rejected("failures.PRE_COMMIT.leave_needs_reason", files=entry.path)
        # A changed link is itself what is reviewed, not what it leads to. A name that cannot be shown comes as it was shown.
        path = entry.path if entry.path in changed else turn.ports.evidence.normal(entry.path) or entry.path
        path = path if path in changed else shown.get(entry.path, path)
        if path in changed:
            _decide(exact, path, entry)
        else:
            for known in filter(_covered(entry.path), (path for path in changed if path not in own)):
                globbed.setdefault(known, []).append(entry)
    for known, entries in globbed.items():
        if known not in exact:  # a file named by itself needs no glob
            for entry in entries:
                _decide(exact, known, entry)
    return exact


def _decide(decisions: dict[str, ReviewedFile], path: str, entry: ReviewedFile) -> None:
    """Note what shall become of a path. Raises Rejected where another entry for the same path says otherwise."""
    known = decisions.get(path)
    if known is not None and known.decision != entry.decision:
        raise Rejected(
            "failures.PRE_COMMIT.decided_twice",
            details={"path": path},
            files=path,
            first=known.decision,
            second=entry.decision,
        )
    if known is None or not known.reason.strip():
        decisions[path] = entry


def _covered(pattern: str) -> Callable[[str], bool]:
    """Tell whether a folder (`src/`) or a glob from the root covers a path: `*` within one level, `**` across levels."""
    if pattern.startswith("/") or pattern.endswith("/"):
        return lambda path: path.startswith(pattern)
    # A bracket or brace is part of a name here: `app/[id]/**` speaks of the folder that is called so.
    return globs.matcher("/" + globs.literal(pattern, but="*?"))


def _require_reasons(
    turn: Turn[CommitPayload], changed: dict[str, Change], decisions: dict[str, ReviewedFile], committed: frozenset[str]
) -> None:
    state, ports = turn.state, turn.ports
    kept = {path for path, entry in decisions.items() if entry.decision == "keep"}
    before = {printable(path) for path in kept & committed}
    state.file_reasons = {name: reason for name, reason in state.file_reasons.items() if name in before}
    for path in sorted(kept - committed):
        why = uncompared(state, ports, changed[path])
        entry = decisions[path]
        # A reason given for a whole glob speaks of no file in particular.
        given = entry.reason.strip() if ports.evidence.normal(entry.path) == path else ""
        if why and not given:
            raise Rejected("failures.PRE_COMMIT.tests_changed_need_reason", files=f"{path} ({'; '.join(why)})")
        if why:
            state.file_reasons[printable(path)] = given[:REASON_AT_MOST]


def uncompared(state: SessionState, ports: Ports, change: Change) -> tuple[str, ...]:
    """Why a change needs a reason: it may bear on what the tests show, and no run compared them with those of before.

    Nothing where one did: what tests no longer show was asked then. A new file of tests takes nothing away.
    """
    receipt = state.receipt
    if receipt is not None and receipt.tests is not None and receipt.tests.seen:
        return ()
    names = [*dict.fromkeys((change.old_path or change.path, change.path))]
    proven = receipt is not None and receipt.status is ProofStatus.PROVEN
    for name in names:
        command = ports.proofs.script(name) or ("" if named_as_tests(name) else ports.proofs.argument(name))
        if command:
            return (f"the verify command {command} runs this file",)
        if is_runner_file(name) or (proven and name.rpartition("/")[2] in TEST_TABLES):
            return ("it may decide which tests run, and no run compared them",)
        if is_test_file(name) and change.kind is not ChangeKind.ADDED:
            return ("a test of before, and no run compared it",)
    left = _folders(change.old_path) - _folders(change.path) if change.old_path else set()
    command = next((command for folder in sorted(left) if (command := ports.proofs.argument(folder))), "")
    return (f"leaves a folder that the verify command {command} names",) if command else ()


def _folders(path: str) -> set[str]:
    parts = path.split("/")[:-1]
    return {"/".join(parts[: number + 1]) for number in range(len(parts))}
