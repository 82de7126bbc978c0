"""SessionState: the only shape a session has, in memory and in a checkpoint (SPEC 7, v1.13 structure).

A state is never changed in place by a submit: handlers work on a copy, and only an accepted submit replaces the
original. `to_checkpoint` lays it out as v1.13 does (`orchestrator_state`, `phase_payloads`); control values are read
from the former alone.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Self, get_origin

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from code_intel_server.errors import Unavailable
from code_intel_server.flow.checks.query_frame import QueryFrame
from code_intel_server.flow.encoding import (
    packed_body,
    size_at_most,
    size_in_bytes,
    unpacked,
    utf8_bytes,
    with_lone_surrogates,
    without_lone_surrogates,
)
from code_intel_server.flow.phases import Flags, Intent, Phase, Place, Substep
from code_intel_server.flow.tasks import TaskModel, worst
from code_intel_server.flow.transitions import Counters, Route, RouteFacts, escalates, hands_over
from code_intel_server.workspace.values import GitIntent, ProofStatus, SeenTests, TaskBranch

CHECKPOINT_LIMIT = 256 * 1024
_FIRST_SENTENCE = re.compile(r"^.*?[.!?。](?=\s|$)", re.DOTALL)
_LINES = re.compile(r":\d+(?:-\d+)?")
_PATH = re.compile(r"[\w./\-]+\.\w+")
_NO_PATH = re.compile(r"[^\w./\-]")
_PATH_AT_MOST = 300
_FIRST_SENTENCE_LIMIT = 200
_REFERENCES_AT_MOST = 100
_BRIEF = 40
REASON_AT_MOST = 300
"""Characters of a reason that are kept: one that says more has said it in the decision log."""


class _Stored(BaseModel):
    """Strict and closed: a foreign or hand-made checkpoint does not pass for ours."""

    model_config = ConfigDict(extra="forbid", validate_assignment=False)


class CommandEvidence(_Stored):
    """A verify command as run: what the report shows and the commit trailer counts."""

    command: str
    outcome: ProofStatus
    returncode: int | None = None
    seconds: float = 0.0
    output_tail: str = ""
    reason: str = ""
    rewritten: list[str] = []


class Receipt(_Stored):
    """A passed verification, bound to the tree it judged (SPEC 4). `tree` is '' where there is no git."""

    status: ProofStatus
    tree: str
    verifier: str
    commands: list[CommandEvidence] = []
    left_out: list[str] = []
    tests: SeenTests | None = None
    said: str = ""
    """What the agent says that it ran, where no command is configured."""


class UsedRange(_Stored):
    """Evidence that was accepted: a second item on the same lines needs a reason, unless the work was `undone` since."""

    task_id: str
    item: str
    path: str
    start: int
    end: int
    reason: str = ""
    trivial: bool = False
    undone: bool = False


class LastSubmit(_Stored):
    """The last accepted payload, by digest, and the whole answer to it: the same payload again gets the same answer.

    Summaries that came with it are not stored a second time. Before the first submit its digest is '' and the answer that
    to start_session, of which phase and instruction are kept. In a list of submits it was the `number`th, `chain` is the
    digest of all up to it, whose hints and warnings the answer has too, and `onward` says whether the list goes on here.
    """

    digest: str
    response: dict[str, JsonValue]
    with_summaries: bool = False
    number: int = 1
    chain: str = ""
    onward: bool = False
    log_line: dict[str, JsonValue] = {}
    """Its line of the decision log, for the server that restores a session whose process ended before it was written."""


class Trees(_Stored):
    """Snapshots of the working tree ('' where there is no git).

    `start` when the session began, `base` what changes are measured from (the same, but HEAD's content after
    `continue`), `ready` when the first plan was accepted, `judged` at the last submit that looked, `committed` after
    the commit, `by_task` when each report was accepted.
    """

    start: str = ""
    base: str = ""
    ready: str = ""
    judged: str = ""
    committed: str = ""
    by_task: dict[str, str] = {}


class Marks(_Stored):
    """Positions in the ledger from which required tools count: since the last report, since this round's plan."""

    report: int = 0
    round: int = 0


class SessionState(_Stored):
    """Everything the server must remember of one session."""

    session_id: str
    intent: Intent
    query: str
    flags: Flags = Flags()
    started_at: str = ""
    phase: Phase
    substep: Substep | None = None

    stale_branches: bool = False
    documents_enabled: bool = True
    q1: bool = False
    q2: bool = False
    q3: bool = False

    headless_branches: str = "continue"
    headless_escalation: str = "stop"

    branch_policy: str | None = None
    task_branch: TaskBranch | None = None
    base: str = ""
    head_at_start: str = ""
    tip: str = ""
    pending: GitIntent | None = None

    explored_files: list[str] = []
    added_files: dict[str, str] = {}
    explained_files: list[str] = []
    query_frame: QueryFrame | None = None
    confidence: float | None = None
    unseen_files: list[str] = []
    unresolved_symbols: list[str] = []
    not_run: list[str] = []
    """What the agent's verdicts say could not be checked, and why."""
    must_verify: dict[str, str] = {}
    """What analyze_impact asked to verify, id and place, with what became of it: CHANGED, why it need not change, '' undecided."""
    tasks: tuple[TaskModel, ...] = ()
    plan_digest: str = ""
    round_tasks: list[str] = []
    used_ranges: list[UsedRange] = []
    revert_reason: str = ""

    verification_failure_count: int = 0
    intervention_count: int = 0
    quality_revert_count: int = 0
    compaction_count: int = 0
    compacted: bool = False
    hooked: bool = False

    trees: Trees = Trees()
    marks: Marks = Marks()
    receipt: Receipt | None = None
    unresolved_issues: list[str] = []
    forced: bool = False
    commits: list[str] = []
    left: list[str] = []
    """Changed files that the last review left uncommitted."""
    worktrees_within: list[str] = []
    """Other working trees of the repository that lay in the project when the session began."""
    altered: list[str] = []
    """Files that a filter or hook committed otherwise than reviewed."""
    beside: list[str] = []
    """What the verify commands found on disk otherwise than the commit holds it, in words."""
    test_reasons: dict[str, str] = {}
    test_findings: dict[str, str] = {}
    """What each of these reasons was given for."""
    file_reasons: dict[str, str] = {}
    undone: dict[str, str] = {}
    """Reported items whose changes are there no more, and why that is accepted."""
    reworked: list[str] = []
    """Those whose lines do something else at the commit than at their report."""
    dropped: list[str] = []
    """Tasks that a later plan left out."""
    only_skipped: list[str] = []
    decisions: dict[str, str] = {}
    """What the user is said to have decided, flags included, and whose word that is (`ports.Author`)."""
    conversation: str = ""
    """By what the client that began it tells its conversations apart; '' where that is not known."""
    earlier_config: bool = False
    digests: dict[str, str] = {}

    completed_steps: list[int] = []
    summaries: dict[str, str] = {}
    last_submit: LastSubmit | None = None
    submits: int = 0

    @property
    def place(self) -> Place:
        """Where the session stands."""
        return Place(self.phase, self.substep)

    @property
    def route(self) -> Route:
        """What the transition table needs to know."""
        answers = RouteFacts(self.stale_branches, self.documents_enabled, self.q1, self.q2, self.q3)
        return Route(self.intent, self.flags, answers)

    @property
    def counters(self) -> Counters:
        """The loop counters as the table takes them."""
        return Counters(
            self.verification_failure_count, worst(self.tasks), self.intervention_count, self.quality_revert_count
        )

    @property
    def escalating(self) -> bool:
        """Whether this VERIFY_INTERVENTION must ask the user."""
        return self.phase is Phase.VERIFY_INTERVENTION and escalates(self.counters)

    @property
    def handed_over(self) -> bool:
        """Whether the user must be asked before this READY plan is made anew."""
        return hands_over(self.route, self.place, self.counters)

    def draft(self) -> Self:
        """A copy to work on: its lists, mappings, trees and marks are its own; what is frozen or only replaced is shared."""
        own: dict[str, object] = {name: getattr(self, name).copy() for name in _COLLECTIONS}
        own["trees"] = self.trees.model_copy(update={"by_task": dict(self.trees.by_task)})
        own["marks"] = self.marks.model_copy()
        return self.model_copy(update=own)

    def to_checkpoint(self) -> dict[str, JsonValue]:
        """The v1.13 layout, at most 256 KB.

        What is too large loses the oldest summaries first (compressed), then no more than its readability (packed whole),
        and the words around the evidence of completed work only where even that does not fit. Control state is kept.
        """
        body, size = self._fitting()
        if size <= CHECKPOINT_LIMIT:
            return body
        small = packed_body(body)
        if size_in_bytes(small) <= CHECKPOINT_LIMIT:
            return small
        return packed_body(self._shortened().layout())

    @classmethod
    def _validated(cls, text: str) -> Self:
        strict = without_lone_surrogates(text)
        state = cls.model_validate_json(strict, strict=True)
        return state if strict == text else cls.model_validate(with_lone_surrogates(state.model_dump()))

    def layout(self) -> dict[str, JsonValue]:
        """The v1.13 layout in plain; the oldest summaries are compressed as far as 256 KB ask for it."""
        return self._fitting()[0]

    def _fitting(self) -> tuple[dict[str, JsonValue], int]:
        """`layout` and its size in bytes, or a bound of it that fits, too."""
        body = self._layout(self.summaries)
        if (most := size_at_most(body)) <= CHECKPOINT_LIMIT:
            return body, most
        size = size_in_bytes(body)
        over = size - CHECKPOINT_LIMIT
        if over <= 0:
            return body, size
        summaries = dict(self.summaries)
        for key, text in summaries.items():
            summaries[key] = compress(text)
            over -= utf8_bytes(text) - utf8_bytes(summaries[key])
            if over <= 0:
                break
        body = self._layout(summaries)
        return body, size_in_bytes(body)

    def _shortened(self) -> Self:
        """A copy that keeps of completed items and used ranges the `path:line` and the beginning of their words."""
        tasks = tuple(task if task.pending else _brief(task) for task in self.tasks)
        ranges = [used.model_copy(update={"reason": used.reason[:_BRIEF]}) for used in self.used_ranges]
        summaries = {key: compress(text)[:_FIRST_SENTENCE_LIMIT] for key, text in self.summaries.items()}
        last = self.last_submit.model_copy(update={"response": {}, "log_line": {}}) if self.last_submit else None
        changes = {"tasks": tasks, "used_ranges": ranges, "summaries": summaries, "last_submit": last}
        return self.model_copy(update=changes)

    def _layout(self, summaries: Mapping[str, str]) -> dict[str, JsonValue]:
        flat: dict[str, JsonValue] = self.model_dump(mode="json", exclude=_APART)
        # As it stands: it is plain JSON data already, as large as all the rest together.
        flat["last_submit"] = None if self.last_submit is None else dict(self.last_submit)
        flat["phase_state"] = {
            "current_phase": str(self.phase),
            "step": self.place.step,
            "ready_substep": str(self.substep) if self.substep else None,
        }
        flat["counters"] = {
            "verification_failure_count": self.verification_failure_count,
            "quality_revert_count": self.quality_revert_count,
            "intervention_count": self.intervention_count,
        }
        return {
            "orchestrator_state": flat,
            "phase_payloads": {key: {"summary": text} for key, text in summaries.items()},
        }

    @classmethod
    def from_checkpoint(cls, body: Mapping[str, object]) -> Self:
        """Read a checkpoint body. Raises Unavailable('session_messages.checkpoint_restore_failed') for any other shape."""
        try:
            plain = unpacked(body)
            state, payloads = plain["orchestrator_state"], plain["phase_payloads"]
            if not isinstance(state, dict) or not isinstance(payloads, dict):
                raise TypeError("not a v1.13 layout")
            flat = {name: value for name, value in state.items() if name not in _RETIRED}
            phase_state, counters = flat.pop("phase_state"), flat.pop("counters")
            if not isinstance(phase_state, dict) or not isinstance(counters, dict):
                raise TypeError("phase_state and counters are objects")
            flat["phase"], flat["substep"] = phase_state["current_phase"], phase_state["ready_substep"]
            flat |= {name: counters[name] for name in _COUNTERS}
            flat["summaries"] = {key: _summary(entry) for key, entry in payloads.items()}
            restored = cls._validated(json.dumps(flat, ensure_ascii=False))
            restored.place.step  # noqa: B018 - a substep outside READY (or none inside) is no place
        except (KeyError, TypeError, ValueError, ValidationError) as error:
            raise Unavailable("session_messages.checkpoint_restore_failed", reason=type(error).__name__) from error
        return restored


_COLLECTIONS = tuple(
    name for name, field in SessionState.model_fields.items() if get_origin(field.annotation) in {list, dict}
)
_COUNTERS = ("verification_failure_count", "quality_revert_count", "intervention_count")
_RETIRED = frozenset({"dirty_at_start"})
_APART = {"summaries", "last_submit", "phase", "substep", *_COUNTERS}


def _summary(entry: object) -> str:
    if not isinstance(entry, dict) or not isinstance(entry.get("summary"), str):
        raise TypeError("phase_payloads hold summaries")
    return str(entry["summary"])


def _brief(task: TaskModel) -> TaskModel:
    items = tuple(item.model_copy(update={"reason": (item.reason or "")[:_BRIEF] or None}) for item in task.checklist)
    return task.model_copy(update={"checklist": items, "description": task.description[:_BRIEF]})


def compress(summary: str) -> str:
    """The first sentence (at most 200 characters) and the first hundred `path:line` of a summary."""
    match = _FIRST_SENTENCE.match(summary)
    first = (match.group() if match else summary)[:_FIRST_SENTENCE_LIMIT]
    references = [ref for ref in dict.fromkeys(_references(summary)) if ref not in first]
    return " ".join([first, *references[:_REFERENCES_AT_MOST]])


def _references(text: str) -> Iterator[str]:
    """Every `path:line` of a text, looked for from its colon: a long word costs no more than a short one."""
    for lines in _LINES.finditer(text):
        before = text[max(0, lines.start() - _PATH_AT_MOST) : lines.start()]
        path = _NO_PATH.split(before)[-1]
        if _PATH.fullmatch(path):
            yield path + lines.group()
