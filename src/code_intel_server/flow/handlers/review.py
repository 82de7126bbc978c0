"""What shall become of every changed path: the agent's decisions, each asked for and reasoned (SPEC 4, PRE_COMMIT)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from posixpath import dirname

from code_intel_server import globs
from code_intel_server.codebase.reference import Version
from code_intel_server.codebase.roles import named_as_tests
from code_intel_server.errors import Rejected
from code_intel_server.flow.judgement import named, unexplored
from code_intel_server.flow.payloads import CommitPayload, ReviewedFile
from code_intel_server.flow.ports import Ports
from code_intel_server.flow.turn import Turn
from code_intel_server.printable import printable
from code_intel_server.workspace.values import Change, ChangeKind

DECISIONS = ("keep", "discard", "leave")


@dataclass(slots=True)
class Review:
    """What shall become of each changed path."""

    keep: list[str] = field(default_factory=list)
    discard: list[str] = field(default_factory=list)
    leave: list[str] = field(default_factory=list)


def reviewed(turn: Turn[CommitPayload], changes: Sequence[Change], now: str) -> Review:
    """Sort every changed path by the agent's decision. Raises Rejected naming what was not, or wrongly, reviewed."""
    changed = {change.path: change for change in changes}
    decisions = _decisions(turn, changed)
    missing = [path for path in changed if path not in decisions]
    if missing:
        raise Rejected(
            "failures.PRE_COMMIT.files_not_reviewed", details={"missing": sorted(missing)}, files=named(missing)
        )
    _require_reasons(turn, changed, decisions, now)
    review = Review()
    for path, decided in decisions.items():
        old = changed[path].old_path
        bucket: list[str] = getattr(review, decided.decision)
        bucket.extend([path, old] if old else [path])
    return review


def _decisions(turn: Turn[CommitPayload], changed: dict[str, Change]) -> dict[str, ReviewedFile]:
    exact: dict[str, ReviewedFile] = {}
    globbed: dict[str, list[ReviewedFile]] = {}
    shown = {printable(path): path for path in changed}
    for entry in turn.payload.reviewed_files:
        if entry.decision not in DECISIONS:
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
            for known in filter(_covered(entry.path), changed):
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
    turn: Turn[CommitPayload], changed: dict[str, Change], decisions: dict[str, ReviewedFile], now: str
) -> None:
    state, ports = turn.state, turn.ports
    kept = {path for path, entry in decisions.items() if entry.decision == "keep"}
    strays = [path for path in unexplored(state, ports, state.trees.judged, now) if path in kept]
    if strays:
        raise Rejected("failures.PRE_COMMIT.unexplored_changes", details={"unexplored": [*strays]}, files=named(strays))
    staying = [changed[path] for path in kept]
    tests = state.receipt.tests if state.receipt else None
    if tests is not None and tests.seen:
        return  # what tests no longer show was asked by running those of before
    for path in sorted(kept):
        weak = _weakened(turn, changed[path], now, staying)
        entry = decisions[path]
        # A reason given for a whole glob speaks of no file in particular.
        given = entry.reason.strip() if ports.evidence.normal(entry.path) == path else ""
        if weak and not given:
            raise Rejected("failures.PRE_COMMIT.weakened_needs_reason", files=f"{path} ({'; '.join(weak)})")


_NO_TEXT = ("\0",)
"""Stands for content that is there and cannot be read as lines."""


def _weakened(turn: Turn[CommitPayload], change: Change, now: str, others: Sequence[Change]) -> tuple[str, ...]:
    ports, base = turn.ports, turn.state.trees.base
    before = ports.tree.lines(base, change.old_path or change.path)
    after = ports.tree.lines(now, change.path)
    there = change.kind is not ChangeKind.DELETED

    def nearby() -> list[Version]:
        return beside(ports, change.path, (base, now), others)

    return weakened(ports, change.path, before, after or (_NO_TEXT if there else None), change.old_path, nearby)


def beside(ports: Ports, path: str, sides: tuple[str, str], changes: Sequence[Change]) -> list[Version]:
    """The versions in two snapshots of the other files of the folder of `path` that changed and are still there."""
    near = (change for change in changes if change.path != path and dirname(change.path) == dirname(path))
    return [
        (
            change.path,
            ports.tree.lines(sides[0], change.old_path or change.path),
            ports.tree.lines(sides[1], change.path),
        )
        for change in near
        if change.kind is not ChangeKind.DELETED
    ]


def weakened(
    ports: Ports,
    path: str,
    before: Sequence[str] | None,
    after: Sequence[str] | None,
    old_path: str = "",
    nearby: Callable[[], Sequence[Version]] = tuple,
) -> tuple[str, ...]:
    """What a change takes from the proof: from tests, from what decides which of them run, from what the commands run.

    A file of tests that a command hands to its runner is asked only for what it loses, also to another file `nearby`.
    """
    names = [*dict.fromkeys((old_path or path, path))]
    named_by_a_command = any(ports.proofs.script(name) or ports.proofs.argument(name) for name in names)
    found = ports.evidence.weakened(path, before, after, old_path, tuple if named_by_a_command else nearby)
    for name in names:
        command = ports.proofs.script(name) or ("" if named_as_tests(name) else ports.proofs.argument(name))
        if command:
            return (*found, f"the verify command {command} runs this file")
    left = _folders(old_path) - _folders(path) if old_path else set()
    command = next((command for folder in sorted(left) if (command := ports.proofs.argument(folder))), "")
    return (*found, f"leaves a folder that the verify command {command} names") if command else found


def _folders(path: str) -> set[str]:
    parts = path.split("/")[:-1]
    return {"/".join(parts[: number + 1]) for number in range(len(parts))}
