"""One session that touches all 19 steps, told as numbered moves, so that a test can kill the server after any of them."""

from collections.abc import Callable
from pathlib import Path

from code_intel_server.tools.shaping import places
from tests.e2e.driver import Fields, Server, git

QUERY = "Add a function that joins words to click's utils and use it; fix what tests show."
Move = Callable[[Server], Fields]

UTILS = "src/click/utils.py"
HELPER = "src/click/_winconsole_helper.py"


class Scenario:
    """The moves of the session on a repository made by `driver.foreign_repository`."""

    def __init__(self, root: Path, *, lists: bool = False) -> None:
        """With `lists` what may be sent together goes as one submit."""
        self.root = root
        self.lists = lists

    def prepare(self) -> None:
        """A stale branch, an untracked and an ignored file of the user's."""
        git(self.root, "branch", "llm_task_20200101_000000")
        (self.root / ".env").write_text("SECRET=1\n")
        (self.root / "notes.txt").write_text("my notes\n")

    def start(self, server: Server) -> Fields:
        return server.call("start_session", query=QUERY, intent="IMPLEMENT", flags={"gate_level": "full"})

    def moves(self) -> list[tuple[str, Move]]:
        """Name and action of each accepted submit, in order."""
        rounds: list[tuple[str, Move]] = []
        for number in range(3):
            if number:
                rounds += self._fix(number)
            rounds.append((f"fail {number}", self._verdict(passed=False, number=number)))
        return [
            ("branches", lambda s: s.accepted(choice="delete")),
            *self._understood(),
            ("q1", lambda s: s.accepted(needs_more_information=False, reason="Names are known already.")),
            ("semantic", self._semantic),
            ("q2", lambda s: s.accepted(has_unverified_hypotheses=False, reason="All of it was looked at.")),
            ("verify",
             lambda s: s.accepted(hypotheses_verified=[{"hypothesis": "utils is imported", "result": True, "evidence": f"{UTILS}:1"}])),
            ("q3", lambda s: s.accepted(needs_impact_analysis=False, reason="A new function only.")),
            ("impact", self._impact),
            ("plan", self._plan(["t1", "t2"], [])),
            *self._work("complete", {"t1": self._join, "t2": self._helper}),
            *rounds,
            ("intervene", lambda s: s.accepted(prompt_used="step_back", action_taken="Read the failing test first.")),
            *self._fix(3),
            ("pass", self._verdict(passed=True, number=9)),
            ("commit", self._commit(1)),
            ("issues",
             lambda s: s.accepted(issues=[f"{UTILS}: name the parameter better"], quality_prompt_used="quality_review", quality_score="fair")),
            *self._fix(4),
            ("pass again", self._verdict(passed=True, number=10)),
            ("commit again", self._commit(2)),
            ("quality", lambda s: s.accepted(issues=[], quality_prompt_used="quality_review", quality_score="good")),
            ("merge", lambda s: s.call("submit_phase", data={"summary": "Merged."})),
        ]  # fmt: skip

    def _understood(self) -> list[tuple[str, Move]]:
        """Steps 3 to 5."""
        documents: Fields = {"documents_reviewed": ["docs/design.md"]}
        frame: Fields = {
            "action_type": "add",
            "target_symbols": ["make_str"],
            "scope": "utils",
            "constraints": "",
            "desired_action": {"value": "a function that joins words", "quote": "a function that joins words"},
        }
        explored: Fields = {
            "explored_files": [UTILS],
            "findings": [f"{UTILS}:1 - helpers live here"],
            "tools_used": ["mcp__code-intel__find_definitions", "search_text", "get_symbols"],
        }

        def explore(server: Server) -> Fields:
            server.call("find_definitions", symbol="make_str")
            server.call("search_text", patterns=["def make_str", "import os"], path="src/click")
            server.call("get_symbols", path=UTILS)
            if not self.lists:
                return server.accepted(**explored)
            answer = server.call("submit_phase", data=[documents, frame, {**explored, "summary": "Looked at."}])
            assert answer["success"] and answer["accepted"] == 3, answer
            return answer

        if self.lists:
            return [("explore", explore)]
        alone = [("documents", documents), ("frame", frame)]
        return [*((name, lambda s, data=data: s.accepted(**data)) for name, data in alone), ("explore", explore)]

    def _semantic(self, server: Server) -> Fields:
        found = server.call("semantic_search", query="join words into a string")
        return server.accepted(search_query="join words", search_results=places(found), tools_used=["semantic_search"])

    def _impact(self, server: Server) -> Fields:
        server.call("analyze_impact", targets=["make_str"])
        return server.accepted(impact_summary={"callers": "none change"}, tools_used=["analyze_impact"])

    def _plan(self, fresh: list[str], recorded: list[str]) -> Move:
        def move(server: Server) -> Fields:
            done = [{"id": name, "description": f"Task {name}", "status": "completed"} for name in recorded]
            new = [
                {
                    "id": name,
                    "description": f"Task {name}",
                    "status": "pending",
                    "checklist": [{"item": f"Item {name}", "status": "pending"}],
                }
                for name in fresh
            ]
            return server.accepted(tasks=done + new, summary=f"Plan {fresh}")

        return move

    def _work(self, name: str, tasks: dict[str, Callable[[], str]]) -> list[tuple[str, Move]]:
        """The reports of these tasks and step 14."""
        done = {"summary": f"{', '.join(tasks)}: done."}

        def together(server: Server) -> Fields:
            reports = [self._done(server, task, edit) for task, edit in tasks.items()]
            answer = server.call("submit_phase", data=[*reports, done])
            assert answer["success"] and answer["accepted"] == len(tasks) + 1, answer
            return answer

        if self.lists:
            return [(name, together)]
        moves = [(f"report {task}", self._report(task, edit)) for task, edit in tasks.items()]
        return [*moves, (name, lambda s: s.accepted(**done))]

    def _report(self, task: str, edit: Callable[[], str]) -> Move:
        return lambda server: server.accepted(**self._done(server, task, edit))

    def _done(self, server: Server, task: str, edit: Callable[[], str]) -> Fields:
        """Do a task; its report."""
        evidence = edit()
        allowed = server.call("check_write_target", path=evidence.split(":")[0])
        assert allowed["allowed"], allowed
        item = {"item": f"Item {task}", "status": "done", "evidence": evidence}
        return {"task_id": task, "checklist": [item], "summary": f"{task} is done"}

    def _append(self, path: str, text: str) -> str:
        """Append once, whatever a kill made of the last attempt; the range of the text as evidence."""
        file = self.root / path
        before = file.read_text(encoding="utf-8") if file.exists() else ""
        if text not in before:
            file.write_text(before + text, encoding="utf-8")
        content = file.read_text(encoding="utf-8")
        start = content[: content.index(text)].count("\n") + 1
        lines = text.rstrip("\n").split("\n")
        skipped = next(i for i, line in enumerate(lines) if line.strip())
        return f"{path}:{start + skipped}-{start + len(lines) - 1}"

    def _join(self) -> str:
        return self._append(UTILS, '\n\ndef join_words(*words: str) -> str:\n    return " ".join(words)\n')

    def _helper(self) -> str:
        return self._append(HELPER, "def width(text: str) -> int:\n    return len(text)\n")

    def _fix(self, number: int) -> list[tuple[str, Move]]:
        name = f"fix{number}"
        recorded = ["t1", "t2", *[f"fix{n}" for n in range(1, number)]]

        def edit() -> str:
            return self._append(UTILS, f"\n\ndef fixed_{number}(value: int) -> int:\n    return value + {number}\n")

        return [(f"plan {name}", self._plan([name], recorded)), *self._work(f"complete {name}", {name: edit})]

    def _verdict(self, *, passed: bool, number: int) -> Move:
        def move(server: Server) -> Fields:
            return server.accepted(
                passed=passed,
                verifier_used="tests",
                details=f"round {number}",
                failed_tasks=[],
                summary=f"Round {number}.",
            )

        return move

    def _commit(self, number: int) -> Move:
        def move(server: Server) -> Fields:
            rows = server.call("review_changes")["results"]
            return server.accepted(
                reviewed_files=[row["path"] for row in rows],
                commit_message=f"Join words ({number})",
                review_prompt_used="garbage_detection",
                tools_used=["review_changes"],
            )

        return move
