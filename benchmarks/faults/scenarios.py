"""The sessions that are interrupted: what a user has before, the moves of the agent, and how it must end."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.driver import Fields, Server, git, repository

from code_intel_server.tools.shaping import places

FILES = {
    "app.py": "def main():\n    return 1\n",
    "README.md": "# App\n\nSays one.\n",
    ".gitignore": ".env\n",
    ".code-intel/config.json": json.dumps({"sync_on_start": False}) + "\n",
}
Move = Callable[[Server], Fields]
Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A session: its moves, each safe to send again, and what they answer where nothing fails (a test proves it).

    `work` says after how many moves the session's own work on disk counts as the user's too: from then on it must not get lost.
    """

    name: str
    moves: Callable[[Path], list[Move]]
    road: list[Place]
    work: int | None = None
    prepare: Callable[[Path], object] | None = None
    """What the user has besides `prepared`."""


def prepared(folder: Path) -> Path:
    """A small repository in which the user has a stash, an untracked and an ignored file, and a branch of their own."""
    root = repository(folder / "repo", FILES)
    git(root, "branch", "mine")
    (root / "app.py").write_text("stashed = True\n")
    git(root, "stash", "-q")
    (root / ".env").write_text("SECRET=1\n")
    (root / "notes.txt").write_text("my notes\n")
    return root


def start(server: Server) -> Fields:
    """A fast session: no documents, no exploration, no quality review."""
    return server.call("start_session", query="Make main return two", flags={"fast": True, "no_doc": True})


def frame(server: Server) -> Fields:
    """What is asked for."""
    return server.submit(action_type="change", target_symbols=["main"])


def plan(server: Server) -> Fields:
    """One task."""
    task = {"id": "t1", "description": "Return two", "status": "pending", "checklist": ["Return two"]}
    added = server.call("add_explored_files", paths=["app.py"], reason="holds the function to change")
    return server.submit(tasks=[task]) if added.get("success", True) else added


def report(root: Path) -> Move:
    """The task done: one line of one file."""

    def move(server: Server) -> Fields:
        server.call("check_write_target", path="app.py")
        (root / "app.py").write_text("def main():\n    return 2\n")
        done = {"item": "Return two", "status": "done", "evidence": "app.py:2"}
        return server.submit(task_id="t1", checklist=[done], tools_used=["check_write_target"])

    return move


def moves(root: Path) -> list[Move]:
    """A fast session from start to merge."""

    def commit(server: Server) -> Fields:
        server.call("review_changes")
        return server.submit(
            reviewed_files=["app.py"],
            commit_message="Return two",
            review_prompt_used="garbage_detection",
            tools_used=["review_changes"],
        )

    return [start, frame, plan, report(root), *_delivered(commit)]


def _delivered(commit: Move) -> list[Move]:
    return [
        lambda s: s.submit(summary="All is done."),
        lambda s: s.submit(passed=True, verifier_used="generic", details="looked at it"),
        commit,
        lambda s: s.call("submit_phase", data={"summary": "Merged."}),
    ]


def discarding_moves(root: Path) -> list[Move]:
    """The same with a new file, one that is deleted, and left-overs that the review discards."""

    def report_three(server: Server) -> Fields:
        added = server.call("add_explored_files", paths=["README.md", "app.py"], reason="both belong to the change")
        if not added.get("success", True):
            return added
        server.call("check_write_target", paths=["app.py", "util.py", "left.log", "README.md"])
        (root / "app.py").write_text("def main():\n    return 2\n")
        (root / "util.py").write_text("def two():\n    return 2\n")
        (root / "left.log").write_text("left over\n")
        (root / "README.md").unlink(missing_ok=True)
        done = {"item": "Return two", "status": "done", "evidence": "app.py:2"}
        return server.submit(task_id="t1", checklist=[done], tools_used=["check_write_target"])

    def commit(server: Server) -> Fields:
        server.call("review_changes")
        return server.submit(
            reviewed_files=[
                "app.py",
                "util.py",
                "README.md",
                {"path": "left.log", "decision": "discard", "reason": "written by a run"},
            ],
            commit_message="Return two",
            review_prompt_used="garbage_detection",
            tools_used=["review_changes"],
        )

    return [start, frame, plan, report_three, *_delivered(commit)]


def abandoning_moves(root: Path) -> list[Move]:
    """A session that is given up in the middle of its work."""

    def clean(server: Server) -> Fields:
        return server.call("start_session", query="", flags={"clean": True})

    return [start, frame, plan, report(root), clean]


def stale(root: Path) -> None:
    """A task branch that an older session left."""
    git(root, "branch", "llm_task_20200101_000000")


def whole_moves(root: Path) -> list[Move]:
    """A session through every phase: stale branches, all gates, three failures, an intervention, a review that sends it back."""
    reason = "Because it was looked at."

    def explore(server: Server) -> Fields:
        server.call("search_text", patterns="return")
        server.call("get_symbols", path="app.py")
        tools = ["search_text", "get_symbols"]
        return server.submit(explored_files=["app.py"], findings=["app.py:1 - all of it"], tools_used=tools)

    found: list[str] = []

    def semantic(server: Server) -> Fields:
        """Sent again it says what it said: where the first one was taken, the phase may not search any more."""
        answer = server.call("semantic_search", query="return two")
        if not found:
            found.extend(places(answer))
        return server.submit(search_query="two", search_results=found, tools_used=["semantic_search"])

    def impact(server: Server) -> Fields:
        server.call("analyze_impact", targets=["main"])
        return server.submit(impact_summary={"callers": "none"}, tools_used=["analyze_impact"])

    def round_of(number: int) -> list[Move]:
        """Plan, report and end of one task, the `number`th of the session."""

        def planned(server: Server) -> Fields:
            old = [{"id": f"t{n}", "description": f"Task {n}", "status": "completed"} for n in range(1, number)]
            items = [f"Return {number}"]
            new = {"id": f"t{number}", "description": f"Task {number}", "status": "pending", "checklist": items}
            return server.submit(tasks=[*old, new], summary=f"Plan {number}.")

        def reported(server: Server) -> Fields:
            server.call("check_write_target", path="app.py")
            (root / "app.py").write_text(f"def main():\n    return {number + 1}\n")
            done = {"item": f"Return {number}", "status": "done", "evidence": "app.py:2"}
            words = f"Task {number} is done."
            return server.submit(
                task_id=f"t{number}", checklist=[done], tools_used=["check_write_target"], summary=words
            )

        return [planned, reported, lambda s: s.submit(summary=f"Round {number} is done.")]

    def verdict(number: int, passed: bool) -> Move:
        words = {"verifier_used": "generic", "details": f"round {number}", "failed_tasks": []}
        return lambda s: s.submit(passed=passed, summary=f"Round {number}.", **words)

    def commit(number: int) -> Move:
        def committed(server: Server) -> Fields:
            server.call("review_changes")
            return server.submit(
                reviewed_files=["app.py"],
                commit_message=f"Return {number}",
                review_prompt_used="garbage_detection",
                tools_used=["review_changes"],
            )

        return committed

    def quality(*issues: str) -> Move:
        return lambda s: s.submit(issues=[*issues], quality_prompt_used="quality_review", quality_score="fair")

    return [
        lambda s: s.call("start_session", query="Make main return two", flags={"gate_level": "full"}),
        lambda s: s.submit(choice="delete"),
        lambda s: s.submit(documents_reviewed=["README.md"]),
        frame,
        explore,
        lambda s: s.submit(needs_more_information=False, reason=reason),
        semantic,
        lambda s: s.submit(has_unverified_hypotheses=False, reason=reason),
        lambda s: s.submit(hypotheses_verified=[{"hypothesis": "It is one", "result": True, "evidence": "app.py:1"}]),
        lambda s: s.submit(needs_impact_analysis=False, reason=reason),
        impact,
        *(move for number in (1, 2, 3) for move in (*round_of(number), verdict(number, passed=False))),
        lambda s: s.submit(prompt_used="step_back", action_taken="Read the failing test first."),
        *round_of(4),
        verdict(4, passed=True),
        commit(4),
        quality("app.py: say why"),
        *round_of(5),
        verdict(5, passed=True),
        commit(5),
        quality(),
        lambda s: s.call("submit_phase", data={"summary": "Merged."}),
    ]


ROAD: list[Place] = [
    ("none", 0),
    ("QUERY_FRAME", 4),
    ("READY", 12),
    ("READY", 13),
    ("READY", 14),
    ("POST_IMPL_VERIFY", 15),
    ("PRE_COMMIT", 17),
    ("MERGE", 19),
    ("SESSION_COMPLETE", 19),
]

_ROUND: list[Place] = [("READY", 13), ("READY", 14), ("POST_IMPL_VERIFY", 15)]
WHOLE: list[Place] = [
    ("none", 0),
    ("BRANCH_INTERVENTION", 2),
    ("DOCUMENT_RESEARCH", 3),
    ("QUERY_FRAME", 4),
    ("EXPLORATION", 5),
    ("Q1", 6),
    ("SEMANTIC", 7),
    ("Q2", 8),
    ("VERIFICATION", 9),
    ("Q3", 10),
    ("IMPACT_ANALYSIS", 11),
    *[("READY", 12), *_ROUND] * 3,
    ("VERIFY_INTERVENTION", 16),
    *[("READY", 12), *_ROUND, ("PRE_COMMIT", 17), ("QUALITY_REVIEW", 18)] * 2,
    ("MERGE", 19),
    ("SESSION_COMPLETE", 19),
]

SCENARIOS = (
    Scenario("merged", moves, ROAD),
    Scenario("discarded", discarding_moves, ROAD, work=4),
    Scenario("abandoned", abandoning_moves, [*ROAD[:5], ("SESSION_ABANDONED", 0)], work=4),
)
THROUGH_EVERY_PHASE = Scenario("whole", whole_moves, WHOLE, prepare=stale)


def final_state(root: Path) -> str:
    """Everything that has to be the same however often the session was killed; the session's id is left out."""
    told = git(root, "log", "--topo-order", "--format=%s|%T|%an", "main").strip()
    branches = git(root, "branch", "--format=%(refname:short)").split()
    sessions = root / ".code-intel" / "sessions"
    left = sorted(path.suffix for path in sessions.glob("*.json")) if sessions.is_dir() else []
    status = git(root, "status", "--porcelain", "--branch").strip()
    parents = git(root, "log", "-1", "--format=%P", "main").split()
    session = git(root, "log", "-1", "--format=%(trailers:key=Code-Intel-Session,valueonly)", "main").strip()
    told = told.replace(session, "ID") if session else told
    return "\n".join([told, f"parents {len(parents)}", f"branches {branches}", f"checkpoints {left}", status])
