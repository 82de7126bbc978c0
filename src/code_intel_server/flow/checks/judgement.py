"""Judging by the tree: evidence against changed hunks, changes against the writable set (SPEC 4, READY impl).

What the agent types is compared with two snapshots: the base of the session and now. A range counts when it touches a
hunk, when it is next to a deletion, or when what changed has no lines to point at (a new empty or binary file, a
mode or link); then `path:1`, or the path alone, is its form. What the hunks of a range are worth is a difference of syntax
(`Evidence.compare`): padding it with code that was there before makes a comment or a stub no implementation. Where there is
no git there are no snapshots, and the file counts as new.
"""

import re
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from posixpath import dirname

from code_intel_server.codebase.evidence import Reference, parse_references
from code_intel_server.codebase.files.languages import LanguageKind, language_of
from code_intel_server.codebase.files.roles import is_test_file
from code_intel_server.common.own_folder import is_written
from code_intel_server.common.printable import printable
from code_intel_server.errors import Rejected
from code_intel_server.flow.access import LOOKUPS
from code_intel_server.flow.checks.ranges import Spots, carried, followed, lines_of, meets, spots
from code_intel_server.flow.checks.writable import Why, why_writable_in
from code_intel_server.flow.ports import Evidence, Ports, SyntaxDifference
from code_intel_server.flow.session import REASON_AT_MOST, SessionState, UsedRange
from code_intel_server.flow.tasks import ChecklistItem
from code_intel_server.workspace.values import Change, ChangeKind

REASON_LENGTH = 10
WRITE_CHECK = "check_write_target"
SHOWING = (LOOKUPS - {"search_files"}) | {"start_session", "semantic_search", "fetch_chunk_detail", "analyze_impact"}
"""The tools whose answers show what is in a file."""
NAMED_AT_MOST = 20
RANGES_AT_MOST = 50
_UNPROVEN = frozenset(
    f"failures.READY.{name}"
    for name in (
        "checklist_evidence_empty_impl",
        "checklist_evidence_unchanged",
        "trivial_needs_reason",
        "range_reused_needs_reason",
    )
)
"""Refusals of a range that is there and proves nothing: another one of the item may."""

_WITHOUT_LINES = re.compile(r":1\Z")
_DOCUMENTATION = re.compile(
    r"\b(?:document\w*|\w*docs?|doc(?:string|block)s?|comment\w*|version(?:changed|added)|changelog|readme|release notes?|typos?|wording|explain\w*|describ\w*)\b",
    re.IGNORECASE,
)
"""Words of an item for which comments and docstrings are the work."""


def has_reason(item: ChecklistItem) -> bool:
    """Whether an item gives a reason of at least 10 characters."""
    return len((item.reason or "").strip()) >= REASON_LENGTH


def list_of_paths(paths: Iterable[str]) -> str:
    """Paths for a message: sorted, at most twenty, the rest counted."""
    ordered = sorted(paths)
    more = f" and {len(ordered) - NAMED_AT_MOST} more" if len(ordered) > NAMED_AT_MOST else ""
    return ", ".join(ordered[:NAMED_AT_MOST]) + more


def rejected_paths(key: str, name: str, paths: Iterable[str]) -> Rejected:
    """A refusal for some paths: `name` has them all in its details, its words as many as a message names."""
    ordered = sorted(paths)
    return Rejected(key, details={name: [*ordered]}, files=list_of_paths(ordered))


def missing_files(evidence: Evidence, names: Iterable[str]) -> list[str]:
    """Those of `names` that are neither a regular file nor a link inside the project."""
    return [name for name in names if not files_named(evidence, name)]


def files_named(evidence: Evidence, name: str) -> list[str]:
    """The file that a name leads to, if there is one in the project, and a link by its own name: it can change too."""
    own, target = evidence.own_name(name), evidence.normal(name)
    found = [target] if target is not None and evidence.exists(target) else []
    return [*found, own] if own is not None and own != target else found


def unexplored(
    state: SessionState, ports: Ports, since: str, now: str, left: Collection[str] | None = None
) -> list[str]:
    """The paths changed between two snapshots that are not in the writable set; `left` is what `left_by_runs` found."""
    if not since or not now or since == now:
        return []
    changes = ports.tree.changes(since, now)
    touched = paths_of(changes).difference(left_by_runs(state, ports, now) if left is None else left)
    known = (*state.explored_files, *state.added_files)
    moved = {change.path for change in changes if change.repository and _any_below(change.path, known)}
    swapped = _swapped(changes).intersection(known)
    moved |= {path for path in touched if not swapped.isdisjoint(_folders(path))}
    return sorted(unwritable(state, ports, touched - moved))


def unwritable(state: SessionState, ports: Ports, paths: Collection[str]) -> set[str]:
    """Those of normalised paths that are not in the writable set: `why_writable` for thousands at once."""
    known = (*state.explored_files, *state.added_files)
    asked = {*paths}.difference(known)
    existed = (
        {*ports.tree.oids(state.trees.start, sorted(asked))}
        if state.trees.start
        else {path for path in asked if ports.evidence.exists(path)}
    )
    beside = {dirname(path) for path in (*known, *state.unseen_files)}
    new = {path for path in asked - existed if dirname(path) in beside}
    return asked.difference(new, looked_at(state, ports))


def paths_of(changes: Iterable[Change]) -> set[str]:
    """The paths of changes, old names included."""
    return {path for change in changes for path in (change.path, change.old_path) if path}


def left_by_runs(state: SessionState, ports: Ports, now: str) -> set[str]:
    """The files that a verify command made, and nobody wrote, explored, added or committed: reports, no work of this session.

    Code and what was there before are never among them: whoever wrote it while a command ran, it is judged.
    """
    own: dict[str, str] = {}
    tree = ports.tree
    for before, after in ports.proofs.written(state.session_id):
        was = tree.oids(before, sorted(own))
        mine = {path for path, oid in own.items() if was.get(path) == oid}
        made = {change.path for change in tree.changes(before, after) if change.kind is ChangeKind.ADDED}
        own = {**tree.oids(after, sorted(mine | {path for path in made if not _is_code(path)}))}
    known = {*state.explored_files, *state.added_files}
    for snapshot in (state.trees.base, state.trees.committed):
        known |= tree.oids(snapshot, sorted(own)).keys() if snapshot and own else set()
    at = tree.oids(now, sorted(own)) if now else own
    return {path for path, oid in own.items() if at.get(path) == oid and path not in known}


def _is_code(path: str) -> bool:
    language = language_of(path)
    return language is not None and language.kind is LanguageKind.CODE


def _any_below(folder: str, paths: Iterable[str]) -> bool:
    """Whether one of the paths lies in a folder: who may write in a repository within may commit there."""
    return any(path.startswith(f"{folder}/") for path in paths)


def _swapped(changes: Iterable[Change]) -> set[str]:
    """The names of files and links that came or changed: where one takes the place of a folder, that is what was asked about."""
    return {change.path for change in changes if not change.repository and change.kind is not ChangeKind.DELETED}


def _folders(path: str) -> list[str]:
    return [str(folder) for folder in PurePosixPath(path).parents]


def refuse_uncommitted_within(state: SessionState, ports: Ports, now: str) -> None:
    """Raise Rejected for explored files that changed in repositories within and are not committed there (SPEC 6).

    Those that were added with a reason are left to the decision at the commit.
    """
    if state.flags.quick or not state.trees.base or not now:
        return
    found = [change for change in ports.tree.changes(state.trees.base, now) if change.within]
    known = left_by_runs(state, ports, now).union(state.added_files)
    refuse_within([change for change in found if change.path not in known])


def refuse_within(changes: Iterable[Change], key: str = "failures.READY.repository_uncommitted") -> None:
    """Raise Rejected(key) for changes that no commit of the project can hold."""
    paths = {change.path: change.within for change in changes if change.within}
    if paths:
        first = min(paths.values())
        raise Rejected(key, details={"files": sorted(paths)}, files=list_of_paths(paths), repository=first)


def shown_files(ports: Ports) -> frozenset[str]:
    """The files that a tool of ours, or the client by its own tools, has shown in this session; a mere name shows nothing."""
    calls = (call for call in ports.ledger.entries() if call.outcome == "ok" and call.tool in SHOWING)
    return frozenset(path for call in calls for path in call.files).union(ports.ledger.reads())


def looked_at(state: SessionState, ports: Ports) -> list[str]:
    """The files that were claimed as explored before anything had shown them, and have been looked at since."""
    if not state.unseen_files:
        return []
    shown = shown_files(ports)
    return [path for path in state.unseen_files if not shown.isdisjoint((path, printable(path)))]


def take_looked_at(state: SessionState, ports: Ports) -> bool:
    """Make what was looked at since its claim writable; whether there was any."""
    found = looked_at(state, ports)
    state.explored_files = [*state.explored_files, *found]
    state.unseen_files = [path for path in state.unseen_files if path not in found]
    return bool(found)


def why_writable_now(state: SessionState, ports: Ports, path: str) -> Why:
    """Why a normalised path may, or may not, be written at this place of the session."""
    # What did not exist when the session began is new; a new file may lie also where one lies that nothing has shown.
    existed = ports.tree.exists(state.trees.start, path) if state.trees.start else ports.evidence.exists(path)
    known = (*state.explored_files, *(looked_at(state, ports) if existed else state.unseen_files))
    return why_writable_in(str(state.phase), state.substep, path, known, state.added_files, exists=existed)


def refuse_unexplored(
    state: SessionState,
    ports: Ports,
    now: str,
    key: str = "failures.READY.unexplored_changes",
    left: Collection[str] | None = None,
) -> None:
    """Raise Rejected(key) for changes since the last judgement outside the writable set."""
    strays = unexplored(state, ports, state.trees.judged, now, left)
    if strays:
        raise rejected_paths(key, "unexplored", strays)


def unchecked(state: SessionState, ports: Ports, now: str) -> list[str]:
    """The paths changed since the last judgement that were allowed at no time of the session (SPEC 4, READY impl).

    `check_write_target` allows, and so does a reason given for a path once it may be written or was. None while there are strays: what nobody explored has to be reported first.
    """
    before = state.trees.judged
    if not before or not now or before == now:
        return []
    left = left_by_runs(state, ports, now)
    if unexplored(state, ports, before, now, left):
        return []
    checks = (call for call in ports.ledger.entries() if call.tool == WRITE_CHECK and call.outcome == "ok")
    allowed = {*state.explained_files, *(path for call in checks for path in call.files)}
    changes = ports.tree.changes(before, now)
    swapped = _swapped(changes)
    # A name that cannot be shown is asked for as it was shown.
    names = {
        one.path: (one.path, *swapped.intersection(_folders(one.path)), one.old_path, printable(one.path))
        for one in changes
    }
    moved = {change.path for change in changes if change.repository and _any_below(change.path, allowed)}
    return sorted(
        path for path, spellings in names.items() if path not in moved | left and allowed.isdisjoint(spellings)
    )


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges the evidence of one report against one moment of the tree."""

    state: SessionState
    ports: Ports
    now: str
    changes: Mapping[str, Change]
    _since: dict[str, Mapping[str, Change]] = field(default_factory=dict)
    _differences: dict[tuple[str, str], SyntaxDifference] = field(default_factory=dict)
    _unread: set[str] = field(default_factory=set)

    @classmethod
    def at(cls, state: SessionState, ports: Ports, now: str) -> "Judge":
        """A judge for the present snapshot `now`; without a base nothing is measured."""
        base = state.trees.base
        changes = ports.tree.changes(base, now) if base and now else ()
        by_path = {change.path: change for change in changes}
        by_path |= {change.old_path: change for change in changes if change.old_path}
        return cls(state, ports, now, by_path)

    def accept(self, task_id: str, item: ChecklistItem) -> list[UsedRange]:
        """The ranges that prove a done item: at least one of those it names, all of which are there.

        Raises Rejected with the READY message of the first range that is not there, else of the first that proves nothing.
        """
        proven: list[UsedRange] = []
        refusals: list[Rejected] = []
        references = self._parse(item)
        for reference in references:
            try:
                used = _used(task_id, item, reference, trivial=self._is_weak(item, reference))
                if not has_reason(item) and (other := self._item_resting_on(used, references)):
                    raise Rejected(
                        "failures.READY.range_reused_needs_reason",
                        item=item.item,
                        other_item=other,
                        evidence=reference,
                    )
                proven.append(used)
            except Rejected as refusal:
                if refusal.key not in _UNPROVEN:
                    raise
                refusals.append(refusal)
        if not proven:
            raise refusals[0]
        return [used for used in proven if not used.trivial] or proven

    def still_counts(self, used: UsedRange) -> bool:
        """Whether evidence of an earlier report shows work in the present snapshot too, wherever its lines went in its file.

        What passed for its reason has only to be a change still.
        """
        path, (start, end) = self._followed(used)
        change = self._change_of(path)
        if change is None:
            return used.trivial and not self.ports.tree.exists(self.now, path)  # git ignores it
        reference = Reference(path, start, end)
        if self._gone(reference, change):
            return not self.ports.tree.exists(self.state.trees.by_task.get(used.task_id, self.now), used.path)
        if used.trivial or change.link or change.repository or not change.hunks:
            return True
        return change.binary or self.counts_at(path, start, end, item=used.item)

    def reworked(self, used: UsedRange) -> bool:
        """Whether the lines of an earlier report do something else by now, and no later report shows them."""
        change = self._later(used).get(used.path)
        if change is None or not (change.binary or change.kind is ChangeKind.DELETED or _meets_old(change, used)):
            return False
        path, (start, end) = self._followed(used)
        later = self.state.used_ranges[self.state.used_ranges.index(used) + 1 :]
        shown = (self._followed(other) for other in later if other.task_id != used.task_id)
        if any(other == path and first <= end and start <= last for other, (first, last) in shown):
            return False
        if change.binary or change.kind is ChangeKind.DELETED:
            return True
        return not self._compared(self.state.trees.by_task[used.task_id], path, change).judge(start, end).trivial

    def not_by_syntax(self) -> list[str]:
        """The files that were compared line by line, or not at all, being too large or too deep."""
        by_lines = {path for (_, path), difference in self._differences.items() if difference.by_lines}
        return sorted(self._unread | by_lines)

    def counts_at(self, path: str, start: int, end: int, item: str = "") -> bool:
        """Whether lines of a changed file are work, for an item of these words."""
        change = self.changes.get(path)
        if change is None or not any(meets(hunk, start, end) for hunk in change.hunks):
            return False
        verdict = self._difference(path, change).judge(start, end)
        prose = verdict.prose and bool(_DOCUMENTATION.search(item))
        return prose or not (verdict.empty or verdict.trivial)

    def _followed(self, used: UsedRange) -> tuple[str, tuple[int, int]]:
        """Where the lines of an earlier report are now: the file, by its new name, and first and last line."""
        change = self._later(used).get(used.path)
        if change is None:
            return used.path, (used.start, used.end)
        path = used.path if change.kind is ChangeKind.DELETED else change.path
        return path, carried(change.hunks, used.start, used.end)

    def _later(self, used: UsedRange) -> Mapping[str, Change]:
        """What changed after a report, by old and new names."""
        then = self.state.trees.by_task.get(used.task_id, self.now)
        if then not in self._since:
            later = self.ports.tree.changes(then, self.now) if then != self.now else ()
            by_path = {change.path: change for change in later}
            self._since[then] = by_path | {change.old_path: change for change in later if change.old_path}
        return self._since[then]

    def _change_of(self, path: str) -> Change | None:
        """How a path changed; of a file in a repository within that is at another commit, how that did."""
        around = (one for one in self.changes.values() if one.repository and path.startswith(f"{one.path}/"))
        return self.changes.get(path) or next(around, None)

    def _is_weak(self, item: ChecklistItem, reference: Reference) -> bool:
        """Whether a range proves the item only for its reason. Raises Rejected where it proves nothing."""
        change = self._change_of(reference.path)
        if change is not None and self._gone(reference, change):
            total = self._base_lines(change, reference)
            self._in_range(reference, total)
            return False
        if change is not None and (change.link or change.repository):
            return False
        total = self._present_lines(reference)
        if change is not None and _has_no_lines(change, total):
            self._in_range(reference, max(total, 1))
            if change.binary and self.ports.tree.content(self.now, reference.path) is None:
                self._unread.add(reference.path)
            return False
        if not (total == 0 and reference.start == reference.end == 1):
            self._in_range(reference, total)
        return self._weakness(item, reference, change)

    def _weakness(self, item: ChecklistItem, reference: Reference, change: Change | None) -> bool:
        """Whether the range passes only for its reason. Raises Rejected where it touches no change, or has no reason."""
        what = self._what_is_weak(item, reference, change)
        if what and not has_reason(item):
            raise Rejected("failures.READY.trivial_needs_reason", item=item.item, evidence=reference, what=what)
        return bool(what)

    def _what_is_weak(self, item: ChecklistItem, reference: Reference, change: Change | None) -> str:
        """What a range holds instead of changed code; '' where it holds some."""
        measured = bool(self.state.trees.base and self.now)
        if measured and change is None and self._ignored(reference):
            return "a file that git ignores, so nobody can tell whether it was changed"
        touched = change is not None and any(meets(hunk, reference.start, reference.end) for hunk in change.hunks)
        if measured and not touched:
            raise Rejected("failures.READY.checklist_evidence_unchanged", evidence=reference, item=item.item)
        verdict = self._difference(reference.path, change).judge(reference.start, reference.end)
        if verdict.empty and not verdict.overrides:
            raise Rejected("failures.READY.checklist_evidence_empty_impl", evidence=reference)
        if verdict.prose and _DOCUMENTATION.search(item.item):
            return ""
        if verdict.empty:
            return "an empty override"
        return verdict.why if verdict.trivial else ""

    def _difference(self, path: str, change: Change | None) -> SyntaxDifference:
        """What a file differs in from the base; without one all of it counts as new."""
        return self._compared(self.state.trees.base, path, change)

    def _compared(self, then: str, path: str, change: Change | None) -> SyntaxDifference:
        if (then, path) not in self._differences:
            content = self.ports.tree.content
            now = content(self.now, path) if self.now else None
            before = content(then, change.old_path or path) if change else None
            hunks = [((h.old_start, h.old_count), (h.new_start, h.new_count)) for h in change.hunks] if change else []
            self._differences[then, path] = self.ports.evidence.compare(path, before, now, hunks)
        return self._differences[then, path]

    def _parse(self, item: ChecklistItem) -> list[Reference]:
        text = (item.evidence or "").strip()
        if not text:
            raise Rejected("failures.READY.checklist_evidence_required", item=item.item)
        bare = _WITHOUT_LINES.sub("", text)
        whole = self.changes.get(bare)
        if whole is not None and (self._gone(Reference(bare, 1, 1), whole) or not whole.hunks or whole.repository):
            return [Reference(bare, 1, 1)]
        if whole is not None and bare == text and not any(hunk.new_count for hunk in whole.hunks):
            # What was taken out of a file has no line to point to.
            gaps = [max(hunk.new_start, 1) for hunk in whole.hunks]
            return [Reference(bare, gaps[0], gaps[-1])]
        references = parse_references(text)
        if len(references) > RANGES_AT_MOST:
            many, limit = f"{len(references)} ranges", f"{RANGES_AT_MOST} ranges of an item"
            raise Rejected("common_failures.payload_too_large", field="evidence", size=many, limit=limit)
        if not references or any(reference.start > reference.end for reference in references):
            raise Rejected("failures.READY.checklist_evidence_format_invalid", evidence=text)
        return list(dict.fromkeys(map(self._in_project, references)))

    def _in_project(self, reference: Reference) -> Reference:
        path = self.ports.evidence.normal(reference.path)
        own = self.ports.evidence.own_name(reference.path) or ""
        if path is not None and (reference.start, reference.end) == (1, 1) and self._is_changed_link(own):
            return Reference(own, 1, 1)
        if path is None:
            raise Rejected("failures.READY.checklist_evidence_file_not_found", file_path=reference.path)
        return Reference(path, reference.start, reference.end)

    def _is_changed_link(self, path: str) -> bool:
        """A changed link has no lines: it is pointed at by its own name, as `path:1`."""
        change = self.changes.get(path)
        return change is not None and change.link and change.path == path

    def _gone(self, reference: Reference, change: Change) -> bool:
        return change.kind is ChangeKind.DELETED or (
            change.kind is ChangeKind.RENAMED and reference.path == change.old_path
        )

    def _base_lines(self, change: Change, reference: Reference) -> int:
        lines = self.ports.tree.lines(self.state.trees.base, change.old_path or change.path)
        return max(len(lines), 1) if lines is not None else max(reference.end, 1) if change.binary else 1

    def _present_lines(self, reference: Reference) -> int:
        total = self.ports.evidence.total_lines(reference.path)
        if total is None:
            raise Rejected("failures.READY.checklist_evidence_file_not_found", file_path=reference.path)
        return total

    def _in_range(self, reference: Reference, total: int) -> None:
        if not (reference.start >= 1 and reference.end <= total):
            line = reference.start if reference.start < 1 else reference.end
            raise Rejected("failures.READY.checklist_evidence_line_out_of_range", line=line, total=total)

    def _ignored(self, reference: Reference) -> bool:
        """An ignored file is in no snapshot: it can only be pointed at as a whole."""
        whole = (reference.start, reference.end) == (1, 1)
        if reference.path.split("/")[0] == ".git" or is_written(reference.path):
            return False
        return whole and not self.ports.tree.exists(self.now, reference.path)

    def _item_resting_on(self, used: UsedRange, references: Sequence[Reference]) -> str | None:
        """The item that already rests on the changes of a range, where nothing in it is left for a second one.

        A detail within another item's lines is left to it as long as the other has work of its own, beside all
        `references` of the item: so the order of two reports changes nothing. In a test file only the very same line: a
        parametrised test, which has several, holds the cases of several items.
        """
        others = [one for one in self.state.used_ranges if _another(one, used) and not one.undone]
        if is_test_file(used.path):
            one_line = used.start == used.end
            same_line = (one for one in others if one_line and self._followed(one)[1] == (used.start, used.end))
            return next((one.item for one in same_line), None)
        change = self.changes.get(used.path)
        mine = spots(change.hunks, used.start, used.end) if change else Spots()
        if change is None or not mine:
            return next((other.item for other in others if _same(other, used)), None)
        changed = spots(change.hunks, 1, sys.maxsize)
        taken: dict[tuple[str, str], Spots] = {}
        for other in others:
            item = (other.task_id, other.item)
            taken[item] = taken.get(item, Spots()) | (changed & self._now_at(other))
        own = (spots(change.hunks, one.start, one.end) for one in references if one.path == used.path)
        claimed = Spots().union(*own)
        full: dict[tuple[str, str], Spots] = {}
        for item, theirs in taken.items():
            rest = theirs - claimed - Spots().union(*(its for one, its in taken.items() if one != item))
            if theirs & mine and not self._work_at(used.path, rest, item[1]):
                full[item] = theirs
        left = mine - Spots().union(*full.values())
        if not full or self._work_at(used.path, left, used.item):
            return None
        return next(item for _, item in full)

    def _work_at(self, path: str, places: Spots, item: str) -> bool:
        """Whether some changed places of a file are work for an item; comments and blank lines round it are not."""
        return any(self.counts_at(path, start, end, item=item) for start, end in lines_of(places))

    def _now_at(self, other: UsedRange) -> Spots:
        """Where the lines of an earlier report are in the present snapshot."""
        change = self._later(other).get(other.path)
        return followed(change.hunks if change else (), other.start, other.end)


def _used(task_id: str, item: ChecklistItem, reference: Reference, *, trivial: bool) -> UsedRange:
    return UsedRange(
        task_id=task_id,
        item=item.item,
        path=reference.path,
        start=reference.start,
        end=reference.end,
        reason=(item.reason or "").strip()[:REASON_AT_MOST],
        trivial=trivial,
    )


def _meets_old(change: Change, used: UsedRange) -> bool:
    """Whether what took the place of some lines took that of a reported range."""
    spans = ((hunk.old_start, hunk.old_start + max(hunk.old_count - 1, 0)) for hunk in change.hunks)
    return any(first <= used.end and used.start <= last for first, last in spans)


def _has_no_lines(change: Change, total: int) -> bool:
    """A binary file, an emptied or new empty one, a changed mode: nothing but the path can be shown."""
    return change.binary or total == 0 or (not change.hunks and change.kind is not ChangeKind.DELETED)


def _another(one: UsedRange, other: UsedRange) -> bool:
    """Whether two ranges of one file prove different items."""
    return one.path == other.path and (one.task_id, one.item) != (other.task_id, other.item)


def _same(one: UsedRange, other: UsedRange) -> bool:
    """Whether one of two ranges contains the other, so that both items rest on the same lines."""
    inside = one.start >= other.start and one.end <= other.end
    return inside or (other.start >= one.start and other.end <= one.end)
