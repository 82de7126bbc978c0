"""What the scripted agent does next: an honest agent that knows nothing but the last response.

It has no list of phases. A phase is left by filling the fields that `expected_payload` names, after calling the tools that
`instruction` names, with the procedures that `resources` or `procedures` name. That it comes from start_session to
SESSION_COMPLETE therefore shows that every response is self-contained (SPEC 4). The one thing it brings along is the
work itself, as a `Work`.

It speaks to no server: `Script.run` is a generator of actions that is sent their results, so that the same agent works over
a pipe (`agent`) and in the place of a client's model (tests).
"""

import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from code_intel_server.tools.shaping import places
from code_intel_server.workspace.project.rule_lines import own_lines

Fields = dict[str, Any]
ToolAnswers = Sequence[Fields]

_OURS = (
    "start_session",
    "submit_phase",
    "get_session_status",
    "sync_index",
    "update_context",
    "cleanup_stale_branches",
)
_ENDS = ("SESSION_COMPLETE", "SESSION_ABANDONED")
_PATIENCE = 3
_AS_BEFORE = "get_session_status repeats it"
_RULE_LINES = 200


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call; its result is what the tool answered."""

    tool: str
    arguments: Fields


@dataclass(frozen=True, slots=True)
class Edit:
    """A file's whole new text (path relative to the project); its result is {}."""

    path: str
    before: str
    after: str


Action = ToolCall | Edit
Actions = Generator[tuple[Action, ...], ToolAnswers, Fields]


@dataclass(frozen=True, slots=True)
class TaskEdits:
    """The edits of one task, and for each checklist item the lines that show it (`path:start-end`)."""

    edits: tuple[Edit, ...]
    evidence: Mapping[str, str]


class Work(Protocol):
    """The task itself: what an agent knows that no response can tell it."""

    query: str
    intent: str
    flags: Mapping[str, bool | str]
    words: Sequence[str]
    """What to search for."""
    symbol: str
    """A name to look up."""
    files: Sequence[str]
    """The files it is going to change, and those it has to know."""

    def tasks(self, response: Fields) -> list[Fields]:
        """New tasks for a plan; after a revert `response` says why."""

    def implement(self, task: Fields) -> TaskEdits:
        """The change of one task, from `next_task`."""

    def passed(self) -> bool:
        """What verification showed."""

    def issues(self) -> list[str]:
        """What quality review showed."""


class Stuck(Exception):
    """The responses do not say how to go on."""


@dataclass(slots=True)
class _Notes:
    """What the agent remembers of the phase it is in."""

    used: list[str] = field(default_factory=list)
    rows: dict[str, list[Fields]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    refusals: int = 0

    def places(self, *tools: str) -> list[str]:
        """`path:line` of what these tools showed."""
        return places({"results": [row for tool in tools or tuple(self.rows) for row in self.rows.get(tool, [])]})


class Script:
    """One session of one piece of work, as a generator of actions."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.responses: list[Fields] = []
        """Every response to start_session and submit_phase."""
        self._notes = _Notes()
        self._seen: list[str] = []

    def run(self) -> Actions:
        """From start_session to the end; returns the last response. Raises Stuck where the responses lead no further."""
        work = self.work
        call = ToolCall("start_session", {"query": work.query, "intent": work.intent, "flags": dict(work.flags)})
        (response,) = yield (call,)
        return (yield from self.go_on(response))

    def resume(self) -> Actions:
        """From get_session_status, as after a restart, to the end."""
        (response,) = yield (ToolCall("get_session_status", {}),)
        return (yield from self.go_on(response))

    def go_on(self, response: Fields) -> Actions:
        """From any response to the end."""
        self.responses.append(response)
        if response.get("context_update_required"):
            yield from self._summarise_rules(str(response["project_rules"]["source"]))
        while response.get("phase") not in _ENDS:
            self._check(response)
            if _AS_BEFORE in response["instruction"]:
                (whole,) = yield (ToolCall("get_session_status", {}),)
                response = {**whole, **response, "instruction": whole["instruction"]}
            yield from self._look_things_up(response)
            data = yield from self._payload(response)
            (response,) = yield (ToolCall("submit_phase", {"data": data}),)
            self.responses.append(response)
            if response.get("success"):
                self._notes = _Notes()
        return response

    def _check(self, response: Fields) -> None:
        if "phase" not in response or "expected_payload" not in response:
            raise Stuck(str(response.get("message") or response))
        if not response.get("success", False):
            self._notes.refusals += 1
            if self._notes.refusals >= _PATIENCE:
                said = [str(response.get(name, "")) for name in ("message", "remedy")]
                raise Stuck(" ".join([f"{response['phase']}:", *filter(None, said), *self._notes.refused[-3:]]))

    def _summarise_rules(self, source: str) -> Generator[tuple[Action, ...], ToolAnswers, None]:
        """Read the project's rules and hand in what they say: their list items, or every line where there is no list; not what set-up wrote."""
        (read,) = yield (ToolCall("search_text", {"patterns": [r"\S"], "path": source, "limit": _RULE_LINES}),)
        lines = own_lines(row.partition(": ")[2] for entry in read.get("results", []) for row in entry["rows"])
        items = [line for line in lines if line.startswith(("-", "*"))]
        summary = "\n".join([f"Rules of {source}:", *(items or lines)])
        (answer,) = yield (ToolCall("update_context", {"summary": summary}),)
        if not answer.get("success"):
            raise Stuck(f"update_context: {answer.get('message')}")

    # -- lookups -----------------------------------------------------------------------------------------------------

    def _look_things_up(self, response: Fields) -> Generator[tuple[Action, ...], ToolAnswers, None]:
        """Call, all at once, the tools that the instruction names and the work has arguments for."""
        calls = [call for tool in _named(str(response["instruction"])) if (call := self._call(tool, response))]
        if not calls:
            return
        answers = yield tuple(calls)
        for call, answer in zip(calls, answers, strict=True):
            if answer.get("success", True):
                self._notes.used.append(call.tool)
                self._notes.rows[call.tool] = [row for row in answer.get("results", []) if isinstance(row, dict)]
            else:
                self._notes.refused.append(f"{call.tool}: {answer.get('message')}")
        self._seen += self._notes.places()

    def _call(self, tool: str, response: Fields) -> ToolCall | None:
        work = self.work
        first = next(iter(work.files), "")
        arguments: dict[str, Fields] = {
            "query": {"question": work.query, "limit": 5},
            "search_text": {"patterns": [*work.words], "regex": False, "limit": 10},
            "search_files": {"pattern": "*.md" if "documents_reviewed" in response["expected_payload"] else first},
            "find_definitions": {"symbol": work.symbol, "limit": 10},
            "find_references": {"symbol": work.symbol, "limit": 10},
            "get_symbols": {"path": first},
            "get_function_at_line": {"path": first, "line": 1},
            "analyze_structure": {"path": first},
            "semantic_search": {"query": work.query, "limit": 5},
            "analyze_impact": {"targets": [first], "limit": 20},
            "review_changes": {"limit": 200},
        }
        return ToolCall(tool, arguments[tool]) if tool in arguments else None

    # -- payloads ----------------------------------------------------------------------------------------------------

    def _payload(self, response: Fields) -> Generator[tuple[Action, ...], ToolAnswers, Fields]:
        """Every field that `expected_payload` names and does not call optional, filled."""
        expected: Mapping[str, str] = response["expected_payload"]
        data: Fields = {}
        if "task_id" in expected:
            data |= yield from self._implemented(response["next_task"])
        if "documents_reviewed" in expected:
            data["documents_reviewed"] = yield from self._documents(response)
        for name in expected:
            if name not in data and not _left_out(name, expected):
                data[name] = self._value(name, response)
        return data

    def _value(self, name: str, response: Fields) -> object:
        phase, step = response["phase"], response.get("step")
        values = self._plain_values(response)
        if name in values:
            return values[name]
        if name.endswith("_used"):
            return _procedure(response)
        if name.endswith(("_information", "_hypotheses", "_analysis")):
            return False
        raise Stuck(
            f"step {step} {phase} expects '{name}' ({response['expected_payload'][name]}), and nothing says what it is"
        )

    def _plain_values(self, response: Fields) -> Fields:
        work, notes = self.work, self._notes
        places = notes.places() or self._seen
        proof = places[0] if places else f"{next(iter(work.files), '')}:1"
        return {
            "summary": f"Seen so far: {', '.join(list(dict.fromkeys(self._seen))[:3]) or 'nothing'}.",
            "tools_used": list(dict.fromkeys(notes.used)),
            "compaction_count": response.get("compaction_count", 0),
            "choice": "continue",
            "action_type": "add",
            "target_symbols": [work.symbol],
            "desired_action": {"value": work.query, "quote": work.query},
            "explored_files": [*work.files],
            "findings": [f"{place} - seen while exploring" for place in places[:5]] or [f"{proof} - read"],
            "reason": "The lookups so far answer what this change needs.",
            "search_results": [f"{place} - found by meaning" for place in notes.places("semantic_search")],
            "hypotheses_verified": [{"hypothesis": f"{proof} exists", "result": True, "evidence": proof}],
            "impact_summary": {"callers": "a new function, called from nowhere yet", "tests": "none change"},
            "tasks": [*_recorded(response), *work.tasks(response)],
            "passed": work.passed(),
            "details": "As seen by running the procedure.",
            "action_taken": "The failing check was read again from its first line; the next change aims at its cause.",
            "user_decision": "stop",
            "reviewed_files": [_reviewed(row) for row in notes.rows.get("review_changes", [])],
            "commit_message": work.query,
            "issues": work.issues() if "issues" in response["expected_payload"] else [],
        }

    def _documents(self, response: Fields) -> Generator[tuple[Action, ...], ToolAnswers, list[str]]:
        """Project documents, unless the instruction says that there are none."""
        if "empty list" in str(response["instruction"]):
            return []
        found: list[str] = []
        for pattern in ("*.md", "*.rst", "*.adoc"):
            (answer,) = yield (ToolCall("search_files", {"pattern": pattern, "limit": 20}),)
            found += [row["path"] for row in answer.get("results", []) if not row["path"].startswith(".")]
        return found[:3]

    def _implemented(self, task: Fields) -> Generator[tuple[Action, ...], ToolAnswers, Fields]:
        """Ask before writing, widen the writable set where that is the answer, write, and name the lines."""
        change = self.work.implement(task)
        paths = list(dict.fromkeys(edit.path for edit in change.edits))
        (verdict,) = yield (ToolCall("check_write_target", {"paths": paths}),)
        refused = [row["path"] for row in verdict.get("results", ()) if not row["allowed"]]
        if refused:
            reason = f"Task {task['id']} changes it: {task['description']}"
            yield (ToolCall("add_explored_files", {"paths": refused, "reason": reason}),)
            yield (ToolCall("check_write_target", {"paths": refused}),)
        self._notes.used.append("check_write_target")
        for edit in change.edits:
            yield (edit,)
        checklist = [{"item": item, "status": "done", "evidence": change.evidence[item]} for item in task["checklist"]]
        return {"task_id": task["id"], "checklist": checklist, "tools_used": ["check_write_target"]}


def _named(instruction: str) -> list[str]:
    """The tools an instruction names, in its order."""
    names = re.findall(r"\b[a-z]+(?:_[a-z]+)+\b|\bquery\b", instruction)
    return [name for name in dict.fromkeys(names) if name not in _OURS]


def _left_out(name: str, expected: Mapping[str, str]) -> bool:
    """Whether a field is only for cases that an honest success is not: fixes, reverts, named failures."""
    words = str(expected[name])
    if name == "desired_action":
        return False
    return "(optional)" in words or "instead of" in words or "(if " in words or "leave out" in words


def _procedure(response: Fields) -> str:
    """A procedure that the response names: the generic one where there is a choice."""
    sent = response.get("procedure")
    names = [sent["name"]] if isinstance(sent, dict) else [*response.get("procedures", {})]
    names += [str(path) for path in response.get("resources", [])]
    if not names:
        raise Stuck(f"{response['phase']} wants a procedure and names none")
    return str(next((name for name in names if "generic" in name), names[0]))


def _recorded(response: Fields) -> list[Fields]:
    """The tasks a revert came back with, as they have to be sent again."""
    tasks = [task for task in response.get("tasks", []) if isinstance(task, dict)]
    return [{"id": task["id"], "description": task["description"], "status": task["status"]} for task in tasks]


def _reviewed(row: Fields) -> object:
    """A changed path as reviewed: what may bear on the tests needs a reason."""
    if row.get("needs_reason"):
        return {
            "path": row["path"],
            "decision": "keep",
            "reason": "The check is replaced by the new one of this change.",
        }
    return row["path"]
