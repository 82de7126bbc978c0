"""Scripted models: the scripted agent in the place of a client's model, acting through the client's own tools.

What the agent wants to call becomes the client's tool calls, what it wants to edit becomes the client's own editing tools, and
what comes back is what the client shows a model. So everything between is the real thing: skill, registration, permissions,
hooks, the shapes in which results reach a model.
"""

import json
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

from code_intel_server.cli.proof.script import Action, Actions, Edit, ToolCall
from tests.e2e.clients.fakes import (
    Fields,
    asked,
    custom_item,
    function_item,
    message_item,
    said,
    text_block,
    tool_block,
)

Blocks = list[Fields]
Turns = Generator[Blocks, list[Fields], None]


class Model:
    """One model for a whole conversation. `say` answers with a text; `forbidden` is a path it tries to write first."""

    def __init__(
        self, root: Path, actions: Actions, *, forbidden: str = "", pause: Callable[[Fields], bool] | None = None
    ) -> None:
        self.root = root
        self.refusal = ""
        self.last: Fields = {}
        self.paused = False
        self.first_prompt = ""
        self.session_id = ""
        self._actions = actions
        self._forbidden = forbidden
        self._pause = pause or (lambda _response: False)
        self._turns: Turns | None = None

    def __call__(self, body: Fields) -> Blocks:
        """The reply to one request of the client."""
        if self._turns is None:
            self.first_prompt = self.prompt(body)
            self._turns = self._play()
            return next(self._turns)
        return self._turns.send(self.results(body))

    def go_on(self) -> None:
        """Let a paused model work again at the next request."""
        self.paused = False

    # What differs between clients

    def prompt(self, body: Fields) -> str:
        raise NotImplementedError

    def results(self, body: Fields) -> list[Fields]:
        """[{text, is_error}] of the calls in the last reply, in their order."""
        raise NotImplementedError

    def say(self, text: str) -> Blocks:
        raise NotImplementedError

    def call(self, tool: str, arguments: Fields) -> Blocks:
        raise NotImplementedError

    def write(self, edit: Edit) -> list[Blocks]:
        """The turns it takes to write a file."""
        raise NotImplementedError

    # What is the same

    def _play(self) -> Turns:
        try:
            wanted = next(self._actions)
            while True:
                answers = yield from self._all(wanted)
                wanted = self._actions.send(answers)
        except StopIteration as end:
            self.last = end.value
        while True:
            yield self.say("finished")

    def _all(self, wanted: Sequence[Action]) -> Generator[Blocks, list[Fields], list[Fields]]:
        """Several calls in one reply, as the skill asks for; anything else one by one."""
        if len(wanted) > 1 and all(isinstance(action, ToolCall) for action in wanted):
            calls = [action for action in wanted if isinstance(action, ToolCall)]
            results = yield [block for call in calls for block in self.call(call.tool, call.arguments)]
            return [json.loads(result["text"]) for result in results]
        answers: list[Fields] = []
        for action in wanted:
            answers.append((yield from self._do(action)))  # noqa: PERF401 - a comprehension cannot yield
        return answers

    def _do(self, action: Action) -> Generator[Blocks, list[Fields], Fields]:
        if isinstance(action, Edit):
            yield from self._edit(action)
            return {}
        results = yield self.call(action.tool, action.arguments)
        answer: Fields = json.loads(results[0]["text"])
        self.session_id = answer.get("session_id", self.session_id)
        if action.tool in {"start_session", "submit_phase"} and self._pause(answer):
            self.paused = True
            while self.paused:
                yield self.say("waiting")
        return answer

    def _edit(self, edit: Edit) -> Generator[Blocks, list[Fields], None]:
        if self._forbidden:
            path, self._forbidden = self._forbidden, ""
            before = (self.root / path).read_text(encoding="utf-8")
            for blocks in self.write(Edit(path, before, before + "# overwritten\n")):
                results = yield blocks
                self.refusal = results[0]["text"]
        for blocks in self.write(edit):
            results = yield blocks
            assert not results[0]["is_error"], results[0]


class Trying(Model):
    """Writes files of a plain conversation, and keeps what it was told of each in `told`."""

    def __init__(self, root: Path, *paths: str) -> None:
        super().__init__(root, self._writes(paths))
        self.told: dict[str, str] = {}

    def _writes(self, paths: Sequence[str]) -> Actions:
        for path in paths:
            before = (self.root / path).read_text(encoding="utf-8")
            yield (Edit(path, before, before + "# tried\n"),)
        return {}

    def _edit(self, edit: Edit) -> Generator[Blocks, list[Fields], None]:
        for blocks in self.write(edit):
            results = yield blocks
            self.told[edit.path] = results[0]["text"]


class ClaudeModel(Model):
    """Through Claude Code: MCP tools by their full name, Read and Write."""

    def prompt(self, body: Fields) -> str:
        return "\n".join(block.get("text", "") for block in _blocks(body) if block["type"] == "text")

    def results(self, body: Fields) -> list[Fields]:
        """Those of the last message that holds any: a client may add remarks of its own behind it."""
        held = [
            [block for block in _content(message) if block["type"] == "tool_result"] for message in body["messages"]
        ]
        found = next((blocks for blocks in reversed(held) if blocks), [])
        return [{"text": _joined(block.get("content")), "is_error": bool(block.get("is_error"))} for block in found]

    def say(self, text: str) -> Blocks:
        return [text_block(text)]

    def call(self, tool: str, arguments: Fields) -> Blocks:
        return [tool_block(f"mcp__code-intel__{tool}", arguments)]

    def write(self, edit: Edit) -> list[Blocks]:
        path = str(self.root / edit.path)
        return [
            [tool_block("Read", {"file_path": path})],
            [tool_block("Write", {"file_path": path, "content": edit.after})],
        ]


class CodexModel(Model):
    """Through Codex with plain function tools."""

    namespace = "mcp__code_intel"

    def prompt(self, body: Fields) -> str:
        items = [item for item in body["input"] if item.get("type") == "message"]
        return "\n".join(part.get("text", "") for item in items for part in item["content"])

    def results(self, body: Fields) -> list[Fields]:
        """Those behind the last call of the model."""
        kinds = [str(item.get("type", "")) for item in body["input"]]
        last = max((at for at, kind in enumerate(kinds) if kind.endswith("_call")), default=len(kinds))
        outputs = [item for item in body["input"][last:] if str(item.get("type", "")).endswith("_call_output")]
        return [self._result(item) for item in outputs]

    def _result(self, item: Fields) -> Fields:
        output = item["output"]
        text = output if isinstance(output, str) else "\n".join(part.get("text", "") for part in output)
        text = text.rpartition("Output:\n")[2] or text
        content = _parsed(text)
        structured = content.get("structuredContent") if content else None
        return {"text": json.dumps(structured) if structured else text, "is_error": False}

    def say(self, text: str) -> Blocks:
        return [message_item(text)]

    def call(self, tool: str, arguments: Fields) -> Blocks:
        return [function_item(tool, self.namespace, arguments)]

    def write(self, edit: Edit) -> list[Blocks]:
        command = f"apply_patch <<'PATCH'\n{patch(edit)}PATCH"
        return [[function_item("exec_command", "", {"cmd": command})]]


class CodexCodeModel(CodexModel):
    """Through Codex in code mode: everything is JavaScript."""

    def call(self, tool: str, arguments: Fields) -> Blocks:
        return [custom_item("exec", f"text(await tools.{self.namespace}__{tool}({json.dumps(arguments)}))")]

    def write(self, edit: Edit) -> list[Blocks]:
        return [[custom_item("exec", f"text(await tools.apply_patch({json.dumps(patch(edit))}))")]]


class NamedModel(Model):
    """Through a client whose tools are found by the ends of their names; `writer` writes a whole file at `path_field`."""

    writer, path_field, text_field = "write", "filePath", "content"

    def __call__(self, body: Fields) -> Blocks:
        self._names = self.names(body)
        return super().__call__(body)

    def names(self, body: Fields) -> list[str]:
        return [str(tool["function"]["name"]) for tool in body["tools"]]

    def prompt(self, body: Fields) -> str:
        return "\n".join(_joined(message.get("content")) for message in body["messages"] if message["role"] == "user")

    def results(self, body: Fields) -> list[Fields]:
        last = max((at for at, message in enumerate(body["messages"]) if message.get("tool_calls")), default=0)
        held = [message for message in body["messages"][last:] if message["role"] == "tool"]
        return [{"text": _result_text(_joined(message["content"])), "is_error": False} for message in held]

    def say(self, text: str) -> Blocks:
        return [said(text)]

    def call(self, tool: str, arguments: Fields) -> Blocks:
        name = next(name for name in self._names if name.endswith(tool) and name != tool)
        return [asked(name, arguments)]

    def write(self, edit: Edit) -> list[Blocks]:
        fields = {self.path_field: str(self.root / edit.path), self.text_field: edit.after}
        return [[asked(self.writer, fields)]]


class OpenCodeModel(NamedModel):
    """Through OpenCode, which wants a file read before it is written."""

    def write(self, edit: Edit) -> list[Blocks]:
        return [[asked("read", {"filePath": str(self.root / edit.path)})], *super().write(edit)]


class QwenModel(NamedModel):
    """Through Qwen Code, which shows its model the tools of servers only after a search and asks it other things in between."""

    writer, path_field = "write_file", "file_path"

    def __call__(self, body: Fields) -> Blocks:
        return super().__call__(body) if "tool_search" in self.names(body) else self.say("ok")

    def call(self, tool: str, arguments: Fields) -> Blocks:
        return [asked(f"mcp__code-intel__{tool}", arguments)]

    def write(self, edit: Edit) -> list[Blocks]:
        return [[asked("read_file", {"file_path": str(self.root / edit.path)})], *super().write(edit)]


class CopilotModel(NamedModel):
    """Through Copilot CLI, where the model asks for the skill that the prompt names."""

    skill = ""

    def __call__(self, body: Fields) -> Blocks:
        if not self.skill:
            self.skill = "asked for"
            return [asked("skill", {"skill": "code"})]
        if self.skill == "asked for":
            self.skill = self.prompt(body) + "".join(result["text"] for result in self.results(body))
        return super().__call__(body)

    def prompt(self, body: Fields) -> str:
        return super().prompt(body) + self.skill

    def write(self, edit: Edit) -> list[Blocks]:
        fields = {"path": str(self.root / edit.path), "old_str": edit.before, "new_str": edit.after}
        return [[asked("edit", fields)]]


class GeminiModel(NamedModel):
    """Through Gemini CLI."""

    writer, path_field = "write_file", "file_path"

    def names(self, body: Fields) -> list[str]:
        return [one["name"] for tool in body["tools"] for one in tool.get("functionDeclarations", [])]

    def prompt(self, body: Fields) -> str:
        parts = [part for content in body["contents"] if content["role"] == "user" for part in content["parts"]]
        return "\n".join(part.get("text", "") for part in parts)

    def results(self, body: Fields) -> list[Fields]:
        held = [
            part["functionResponse"]["response"] for part in body["contents"][-1]["parts"] if "functionResponse" in part
        ]
        return [
            {"text": _result_text(str(one.get("output", one.get("error", one)))), "is_error": False} for one in held
        ]


def _result_text(text: str) -> str:
    """The first JSON object in what a client shows of a result; the text where it holds none."""
    at = text.find("{")
    try:
        content, _ = json.JSONDecoder().raw_decode(text[at:]) if at >= 0 else (None, 0)
    except ValueError:
        return text
    return json.dumps(content) if isinstance(content, dict) else text


def patch(edit: Edit) -> str:
    """An edit as apply_patch takes it: what was appended, behind the last line of before."""
    context = edit.before.rstrip("\n").split("\n")[-1:]
    added = edit.after[len(edit.before) :].rstrip("\n").split("\n")
    body = "\n".join([f" {line}" for line in context] + [f"+{line}" for line in added])
    return f"*** Begin Patch\n*** Update File: {edit.path}\n@@\n{body}\n*** End of File\n*** End Patch\n"


def _blocks(body: Fields) -> list[Fields]:
    return [block for message in body["messages"] for block in _content(message)]


def _content(message: Fields) -> list[Fields]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _joined(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content or [])


def _parsed(text: str) -> Fields:
    try:
        content = json.loads(text)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def names(requests: Sequence[Fields]) -> set[str]:
    """The tools that a client showed its model."""
    return {str(tool.get("name")) for body in requests for tool in body.get("tools", [])}


class TryingClaude(Trying, ClaudeModel):
    """A plain conversation in Claude Code."""


class TryingCodex(Trying, CodexModel):
    """A plain conversation in Codex."""
