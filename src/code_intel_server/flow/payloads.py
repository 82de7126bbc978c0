"""One pydantic model a phase: the shape of what `submit_phase` takes (SPEC 4).

Shapes only: whether a field is empty, true or enough is content, and content has messages of its own in the contract.
Absent fields therefore get empty defaults, so that the phase's own words answer and not a validator's.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Annotated, TypeVar, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    JsonValue,
    StrictBool,
    StrictInt,
    StrictStr,
    ValidationError,
)

from code_intel_server.common.strict_numbers import finite, no_constant
from code_intel_server.errors import Rejected
from code_intel_server.flow.checks.query_frame import Slot
from code_intel_server.flow.phases import READY_COMPLETE, READY_IMPL, READY_PLAN, Place
from code_intel_server.flow.tasks import PlannedTask, Said, SubmittedItem

FIELD_LIMIT = 64 * 1024
PLAN_LIMIT = 96 * 1024
ITEM_LIMIT = 2000
DEPTH_LIMIT = 32


class Payload(BaseModel):
    """What every payload may carry."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    summary: Said = ""
    tools_used: tuple[StrictStr, ...] | None = None
    compaction_count: StrictInt | None = None

    @property
    def summed_up(self) -> str:
        """What its other fields say, where the summary is left out; '' where they say too little."""
        return next((text for name in SUMMING_UP if (text := getattr(self, name, ""))), "")


class BranchPayload(Payload):
    """What the user chose to do with stale branches."""

    choice: JsonValue = None


class DocumentPayload(Payload):
    """The documents that were read."""

    documents_reviewed: tuple[StrictStr, ...] = ()


def _slot(value: object) -> object:
    return {"value": value, "quote": ""} if isinstance(value, str) else {} if value is None else value


LenientSlot = Annotated[Slot, BeforeValidator(_slot)]


class QueryFramePayload(Payload):
    """The request taken apart into slots."""

    action_type: Said = ""
    target_symbols: tuple[StrictStr, ...] = ()
    scope: Said = ""
    constraints: Said = ""
    target_feature: LenientSlot = Slot()
    trigger_condition: LenientSlot = Slot()
    observed_issue: LenientSlot = Slot()
    desired_action: LenientSlot = Slot()


class ExplorationPayload(Payload):
    """The files that were looked at, and what they showed."""

    explored_files: tuple[StrictStr, ...] = ()
    findings: tuple[Said, ...] = ()


class Q1Payload(Payload):
    """Whether semantic search is needed."""

    needs_more_information: JsonValue = None
    reason: JsonValue = None
    needs_more_information_reason: JsonValue = None


class SemanticPayload(Payload):
    """What semantic search found."""

    search_query: Said = ""
    search_results: tuple[JsonValue, ...] = ()


class Q2Payload(Payload):
    """Whether hypotheses are left to verify."""

    has_unverified_hypotheses: JsonValue = None
    reason: JsonValue = None
    has_unverified_hypotheses_reason: JsonValue = None


class Hypothesis(BaseModel):
    """One verified (or refuted) hypothesis with its evidence."""

    model_config = ConfigDict(frozen=True)

    hypothesis: StrictStr
    result: StrictBool
    evidence: StrictStr = ""


class HypothesesPayload(Payload):
    """Every hypothesis with its evidence."""

    hypotheses_verified: tuple[Hypothesis, ...] = ()


class Q3Payload(Payload):
    """Whether the impact must be analysed."""

    needs_impact_analysis: JsonValue = None
    reason: JsonValue = None
    needs_impact_analysis_reason: JsonValue = None


class ImpactPayload(Payload):
    """What the change touches."""

    impact_summary: dict[str, JsonValue] = {}
    must_verify: dict[str, Said] = {}


class PlanPayload(Payload):
    """The whole task list."""

    tasks: tuple[PlannedTask, ...] = ()


class ReportPayload(Payload):
    """One task with its checklist."""

    task_id: StrictStr = ""
    checklist: tuple[SubmittedItem, ...] = ()

    @property
    def summed_up(self) -> str:
        """Each item with its evidence or reason."""
        return "; ".join(f"{one.item}: {one.evidence or one.reason or one.status}" for one in self.checklist)[
            :_SUMMED_UP
        ]


class CompletionPayload(Payload):
    """That all tasks are done."""


class VerdictPayload(Payload):
    """The verdict on the work."""

    passed: StrictBool | None = None
    verifier_used: StrictStr | tuple[StrictStr, ...] = ""
    failed_tasks: tuple[StrictStr, ...] = ()
    details: Said = ""
    tests_reason: Said = ""
    not_run: tuple[Said, ...] = ()

    @property
    def verifiers(self) -> tuple[str, ...]:
        """The names in `verifier_used`: one, or several that were followed next to each other."""
        return (self.verifier_used,) if isinstance(self.verifier_used, str) else self.verifier_used


class InterventionPayload(Payload):
    """Which intervention was made, and what came of it."""

    prompt_used: StrictStr = ""
    action_taken: Said = ""
    user_decision: StrictStr = ""


class ReviewedFile(BaseModel):
    """A reviewed path with what shall become of it."""

    model_config = ConfigDict(frozen=True)

    path: StrictStr
    decision: StrictStr = "keep"
    reason: Said = ""


def _reviewed(value: object) -> object:
    return {"path": value} if isinstance(value, str) else value


class CommitPayload(Payload):
    """The review of every change, and the message or the reason to go back."""

    reviewed_files: tuple[Annotated[ReviewedFile, BeforeValidator(_reviewed)], ...] = ()
    commit_message: Said = ""
    review_prompt_used: StrictStr = ""
    revert_reason: Said = ""
    tests_reason: Said = ""
    must_verify: dict[str, Said] = {}


class QualityPayload(Payload):
    """The defects that were found."""

    issues: tuple[Said, ...] | None = None
    quality_score: JsonValue = None
    quality_prompt_used: StrictStr = ""

    @property
    def summed_up(self) -> str:
        """The issues."""
        return "" if self.issues is None else "; ".join(self.issues)[:_SUMMED_UP] or "No issues."


class MergePayload(Payload):
    """That the work may be merged, with issues where no phase asked for them."""

    issues: tuple[Said, ...] | None = None

    @property
    def summed_up(self) -> str:
        """The issues."""
        return "; ".join(issue for issue in self.issues or () if issue.strip())[:_SUMMED_UP]


_SUMMED_UP = 2_000
SUMMED_UP_BY = ("details", "commit_message", "action_taken", "checklist", "issues")
"""Fields beside which no summary is asked for."""
SUMMING_UP = ("details", "commit_message", "revert_reason", "action_taken")
"""Fields that sum a step up where its `summary` is left out."""

GATE_FIELDS = ("needs_more_information", "has_unverified_hypotheses", "needs_impact_analysis")
"""What Q1, Q2 and Q3 ask, in their order."""

SHAPE_REFUSALS = frozenset(
    f"common_failures.{name}" for name in ("summary_required", "tools_used_invalid", "field_invalid")
)
"""What `validate` raises."""


def parsed(data: JsonValue) -> JsonValue:
    """`data` as it is meant: JSON text is parsed. Raises Rejected('session_messages.invalid_data')."""
    if not isinstance(data, str):
        return data
    try:
        return cast("JsonValue", json.loads(data, parse_constant=no_constant, parse_float=finite))
    except (ValueError, RecursionError) as error:
        raise Rejected("session_messages.invalid_data", error=str(error)) from error


def parse_object(data: JsonValue) -> dict[str, JsonValue]:
    """The payload as an object; a JSON string is parsed. Raises Rejected('session_messages.invalid_data')."""
    data = parsed(data)
    if not isinstance(data, dict):
        raise Rejected("session_messages.invalid_data", error="data must be an object")
    check_text(data)
    return data


def check_text(data: Mapping[str, JsonValue]) -> None:
    """Refuse lone surrogates, NUL, fields over 64 KB (a plan: 96 KB), more than 2,000 items and absurd nesting."""
    for name, value in data.items():
        size = 0
        for items, (text, depth) in enumerate(_leaves(value), 1):
            if depth > DEPTH_LIMIT or items > ITEM_LIMIT * 8:
                raise Rejected(
                    "common_failures.payload_too_large",
                    field=name,
                    size=f"over {items} values",
                    limit=f"{ITEM_LIMIT} items",
                )
            size += _checked_size(name, text)
        limit = PLAN_LIMIT if name == "tasks" else FIELD_LIMIT
        if size > limit:
            key = "failures.READY.plan_too_large" if name == "tasks" else "common_failures.payload_too_large"
            raise Rejected(key, field=name, size=f"{size // 1024} KB", limit=f"{limit // 1024} KB")
        if isinstance(value, list | dict) and len(value) > ITEM_LIMIT:
            raise Rejected(
                "common_failures.payload_too_large", field=name, size=f"{len(value)} items", limit=f"{ITEM_LIMIT} items"
            )
        _checked_size(name, name)


def _leaves(value: JsonValue) -> Iterator[tuple[str, int]]:
    """Every string, key and scalar below `value` as text, with its depth; iterative, so depth cannot hurt."""
    stack: list[tuple[JsonValue, int]] = [(value, 0)]
    while stack:
        node, depth = stack.pop()
        if isinstance(node, dict):
            stack.extend((child, depth + 1) for child in node.values())
            yield from ((key, depth + 1) for key in node)
        elif isinstance(node, list):
            stack.extend((child, depth + 1) for child in node)
            yield ("", depth + 1)
        else:
            yield (node if isinstance(node, str) else str(node), depth)


def _checked_size(name: str, text: str) -> int:
    if "\x00" in text:
        raise Rejected("common_failures.text_invalid", field=name)
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        raise Rejected("common_failures.text_invalid", field=name.encode("ascii", "replace").decode()) from error


def ready_place(data: Mapping[str, JsonValue]) -> Place:
    """Inside READY the payload's shape picks the substep."""
    if "tasks" in data:
        return READY_PLAN
    return READY_IMPL if "task_id" in data or "checklist" in data else READY_COMPLETE


P = TypeVar("P", bound=Payload)


def validate(model: type[P], data: Mapping[str, JsonValue], expected: Mapping[str, str]) -> P:
    """The typed payload of a place, whose texts in the contract are `expected`. Raises Rejected for a missing summary, a wrong tools list or a wrong field type."""
    try:
        payload = model.model_validate(data)
    except ValidationError as error:
        found = error.errors()[0]
        field = str(found["loc"][0])
        if field == "summary":
            raise Rejected("common_failures.summary_required") from error
        if field == "tools_used":
            raise Rejected("common_failures.tools_used_invalid") from error
        wanted = expected.get(field, found["msg"])
        if len(found["loc"]) > 1:
            wanted = f"{wanted} ({'.'.join(map(str, found['loc']))}: {found['msg']})"
        raise Rejected("common_failures.field_invalid", field=field, expected=wanted) from error
    if not payload.summary:
        sums = [name for name in SUMMING_UP if name in model.model_fields]
        said = payload.summed_up
        if sums and not said:
            raise Rejected("common_failures.field_invalid", field=sums[0], expected=expected.get(sums[0], "str"))
        if not said:
            raise Rejected("common_failures.summary_required")
        payload = payload.model_copy(update={"summary": said})
    return payload


def missing_fields(data: Mapping[str, JsonValue], expected: Mapping[str, str]) -> list[str]:
    """The fields of an expected payload that are not in `data`, those that it marks with a condition aside."""
    return sorted(name for name, shape in expected.items() if name not in data and "(" not in shape)


def digest(data: Mapping[str, JsonValue]) -> str:
    """Identifies a payload, compaction_count aside: the same work sent again after a lost answer."""
    body = {name: value for name, value in data.items() if name != "compaction_count"}
    return hashlib.sha256(json.dumps(body, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def chained(chain: str, identity: str) -> str:
    """Identifies a row of payloads: those of `chain` ('' for none) and one more."""
    return hashlib.sha256(f"{chain}{identity}".encode()).hexdigest()
