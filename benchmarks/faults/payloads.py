"""Payloads that no phase may accept: broken in their shape, or whole in shape and wrong in what they say (SPEC 4)."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from tests.e2e.driver import Fields
from tests.faults.test_wire import kinds_of_path

TEXTS = (
    "",
    " ",
    "\x00",
    "a\x00b",
    "\ud800",
    "\udfff\ud800",
    "\u202egnp.exe",
    "\u200b\ufeff",
    "\x1b]0;owned\x07",
    "\x1b[2J",
    "{0.__class__}",
    "{summary}",
    "%s%n",
    "$(id)",
    "`id`",
    "--amend",
    "-m",
    "../../etc/passwd",
    "é" * 300,
    "x" * 5000,
    "x" * 70_000,
    "\n" * 3000,
    "Ω" * 33_000,
)
NUMBERS = (-1, 0, 10**400, 1e308, -0.0, 2**63, True)


def text(root: Path) -> st.SearchStrategy[str]:
    """Hostile text, and names of files that are none."""
    return st.one_of(st.sampled_from(TEXTS), st.sampled_from(kinds_of_path(root)), st.text(max_size=30))


def anything(root: Path) -> st.SearchStrategy[object]:
    """Any JSON value, nested and large now and then."""
    leaf = st.one_of(st.none(), st.booleans(), st.sampled_from(NUMBERS), text(root))
    deep = st.integers(50, 400).map(_nested)
    wide = st.sampled_from([["x"] * 2001, [{}] * 300, {str(n): n for n in range(3000)}])
    tree = st.recursive(
        leaf,
        lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(text(root), inner, max_size=4)),
        max_leaves=10,
    )
    return st.one_of(tree, tree, deep, wide)


def _nested(depth: int) -> object:
    value: object = "x"
    for level in range(depth):
        value = [value] if level % 2 else {"x": value}
    return value


WRONG_SUMMARIES: tuple[object, ...] = (
    None,
    "",
    " ",
    [],
    {},
    7,
    True,
    "a\x00b",
    "\ud800",
    "x" * 70_000,
    ["x"],
    _nested(300),
)
FIELDS = [
    "tools_used",
    "compaction_count",
    "choice",
    "documents_reviewed",
    "action_type",
    "target_symbols",
    "scope",
    "constraints",
    "desired_action",
    "explored_files",
    "findings",
    "needs_more_information",
    "reason",
    "search_results",
    "has_unverified_hypotheses",
    "hypotheses_verified",
    "needs_impact_analysis",
    "impact_summary",
    "tasks",
    "task_id",
    "checklist",
    "passed",
    "verifier_used",
    "details",
    "failed_tasks",
    "prompt_used",
    "action_taken",
    "user_decision",
    "reviewed_files",
    "commit_message",
    "review_prompt_used",
    "revert_reason",
    "issues",
    "quality_prompt_used",
    "quality_score",
]


def broken(root: Path) -> st.SearchStrategy[object]:
    """No object at all, or one without a summary that could be one; the other fields hold anything."""
    fields = st.dictionaries(st.sampled_from(FIELDS), anything(root), max_size=6)
    shaped = st.builds(lambda rest, wrong: {**rest, "summary": wrong}, fields, st.sampled_from(WRONG_SUMMARIES))
    none: st.SearchStrategy[object] = st.sampled_from(
        [None, [], 7, True, "", "x", "[", "{", "[" * 50_000, '{"a":' * 5000, '{"a": NaN}', "nul\x00"]
    )
    return st.one_of(shaped, shaped, none, st.lists(anything(root), max_size=3))


SPOKEN: dict[str, Callable[[str], Fields]] = {
    "BRANCH_INTERVENTION": lambda x: {"choice": f"{x}?"},
    "DOCUMENT_RESEARCH": lambda x: {"documents_reviewed": [f"{x}?"]},
    "QUERY_FRAME": lambda x: {"action_type": "add", "desired_action": {"value": x, "quote": f"{x} in no query"}},
    "EXPLORATION": lambda x: {
        "explored_files": [f"{x}?"],
        "findings": [x],
        "tools_used": ["search_text", "get_symbols", "find_definitions", "mcp__code-intel__query", x],
    },
    "Q1": lambda x: {"needs_more_information": x, "reason": x},
    "SEMANTIC": lambda x: {"search_query": x, "search_results": [], "tools_used": ["semantic_search"]},
    "Q2": lambda x: {"has_unverified_hypotheses": x, "reason": x},
    "VERIFICATION": lambda x: {"hypotheses_verified": [{"hypothesis": x, "result": True, "evidence": f"{x}?:{x}"}]},
    "Q3": lambda x: {"needs_impact_analysis": x, "reason": x},
    "IMPACT_ANALYSIS": lambda x: {"impact_summary": x, "tools_used": ["analyze_impact"]},
    "READY": lambda x: {
        "task_id": f"{x}?",
        "checklist": [{"item": x, "status": "done", "evidence": f"{x}:1"}],
        "tools_used": ["check_write_target"],
    },
    "POST_IMPL_VERIFY": lambda x: {"passed": True, "verifier_used": f"{x}?", "details": x, "failed_tasks": [x]},
    "VERIFY_INTERVENTION": lambda x: {"prompt_used": f"{x}?", "action_taken": x, "user_decision": x},
    "PRE_COMMIT": lambda x: {
        "reviewed_files": [x, {"path": x, "decision": "discard", "reason": x}],
        "commit_message": f"x{x}",
        "review_prompt_used": f"{x}?",
        "tools_used": ["review_changes"],
    },
    "QUALITY_REVIEW": lambda x: {"issues": [], "quality_prompt_used": f"{x}?", "quality_score": x},
    "MERGE": lambda _x: {"summary": ""},
}
"""Phase → a payload whose shape is right and whose words are not, whatever `x` is."""


def spoken(phase: str, root: Path) -> st.SearchStrategy[object]:
    """What the phase asks for, with hostile words in it."""
    return text(root).map(lambda words: {"summary": "Done.", "tools_used": [], **SPOKEN[phase](words)})


Value = TypeVar("Value")


def samples(strategy: st.SearchStrategy[Value], count: int, first: int = 0) -> list[Value]:
    """About so many values of a strategy, the same for the same seed."""
    found: list[Value] = []

    @seed(first)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(value: Value) -> None:
        found.append(value)

    collect()
    return found


class Store:
    """Hostile values and words, of which payloads are put together by the thousand, anew each time."""

    def __init__(self, root: Path, count: int, first: int = 0) -> None:
        self._values, self._words = samples(anything(root), count, first), samples(text(root), count, first)
        self._chance = random.Random(first)

    def payloads(self, phase: str, count: int) -> Iterator[Fields]:
        """So many that this phase must refuse: without a summary, or with hostile words in what a phase asks for.

        Where it takes anything that is well-formed (`fits_any`), nothing well-formed of another is among them.
        """
        chance = self._chance
        others = [phase] if fits_any(phase) else [name for name in SPOKEN if name not in alike(phase)]
        for _ in range(count):
            if chance.random() < 0.5:
                fields = {name: chance.choice(self._values) for name in chance.sample(FIELDS, chance.randint(0, 6))}
                yield {**fields, "summary": chance.choice(WRONG_SUMMARIES)}
            else:
                said = SPOKEN[chance.choice((phase, chance.choice(others)))](chance.choice(self._words))
                yield {"summary": "Done.", "tools_used": [], **said}


def fits_any(phase: str) -> bool:
    """Whether a summary alone is an answer there: the end of READY, a merge."""
    return phase in {"READY", "MERGE"}


def alike(phase: str) -> set[str]:
    """Phases that take the same fields."""
    return {"Q1", "Q2", "Q3"} if phase in {"Q1", "Q2", "Q3"} else {phase}
