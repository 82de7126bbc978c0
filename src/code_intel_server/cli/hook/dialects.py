"""What clients other than Claude Code and Codex call their events, tools and arguments, and how they want to be answered.

Imported by every hook call: it imports next to nothing.
"""

import json
import os
import re
import sys

Fields = dict[str, object]

_EVENTS = {
    "BeforeTool": "PreToolUse",
    "AfterAgent": "Stop",
    "preToolUse": "PreToolUse",
    "sessionStart": "SessionStart",
    "stop": "Stop",
    "BeforeAgent": "UserPromptSubmit",
    "beforeSubmitPrompt": "UserPromptSubmit",
}
_PROMPTS = re.compile(rb'"hook_?[eE]vent_?[nN]ame"\s*:\s*"(?:UserPromptSubmit|BeforeAgent|beforeSubmitPrompt)"')
QUESTION = "AskUserQuestion"
WRITERS = frozenset(
    {"Edit", "Write", "NotebookEdit", "MultiEdit"}  # Claude Code, Codex, Cursor
    | {"write_file", "replace", "edit"}  # Gemini CLI, Qwen Code
    | {"write", "multiedit"}  # OpenCode
    | {"create", "str_replace", "insert"}  # Copilot CLI
    | {"create_file", "replace_string_in_file", "multi_replace_string_in_file", "insert_edit_into_file"}  # VS Code
)
READERS = frozenset({"Read", "Grep", "read_file", "read", "view"})
PATCHERS = frozenset({"apply_patch", "patch"})
_PATHS = ("file_path", "notebook_path", "path", "filePath")
_PATCHES = ("command", "input", "patch", "patchText")
_REFUSE = 2


def understood(event: Fields, client: str) -> Fields:
    """The event with the names that Claude Code uses; `client` remembers who wants the answer."""
    name = str(event.get("hook_event_name") or event.get("hookEventName") or "")
    roots = event.get("workspace_roots")
    root = roots[0] if isinstance(roots, list) and roots else ""
    again = event.get("stop_hook_active") or event.get("loop_count")
    return event | {
        "client": client,
        "hook_event_name": _EVENTS.get(name, name),
        "cwd": event.get("cwd") or root or os.getcwd(),
        "stop_hook_active": again,
    }


def event_name(data: bytes) -> str:
    """What bytes that are no JSON, cut off by a limit for instance, are judged as: a prompt is never held up."""
    return "UserPromptSubmit" if _PROMPTS.search(data) else "PreToolUse"


def is_from_user(event: Fields) -> bool:
    """Whether an event brings words of the user's: a prompt, or the answer to a question of the agent's."""
    name = event.get("hook_event_name")
    return name == "UserPromptSubmit" or (name == "PostToolUse" and event.get("tool_name") == QUESTION)


def user_text(event: Fields) -> str:
    """The user's words: a prompt, or what was chosen and typed in a question's form."""
    if event.get("hook_event_name") == "UserPromptSubmit":
        return str(event.get("prompt") or "")
    response = event.get("tool_response")
    answers = response.get("answers") if isinstance(response, dict) else None
    return "\n".join(str(answer) for answer in answers.values()) if isinstance(answers, dict) else ""


def conversation(event: Fields) -> str:
    """By what the client tells its conversations apart; '' where it does not."""
    return str(event.get("session_id") or event.get("conversation_id") or event.get("sessionId") or "")


def patch_text(values: Fields) -> str | None:
    """The patch among a tool's arguments; None where there is none."""
    text = next((values[name] for name in _PATCHES if values.get(name)), None)
    return None if text is None else "\n".join(map(str, text)) if isinstance(text, list) else str(text)


def named_paths(values: Fields) -> list[str]:
    """The paths that a writing tool's arguments name."""
    parts = values.get("replacements")
    given = [values, *(one for one in parts if isinstance(one, dict))] if isinstance(parts, list) else [values]
    return [path for one in given for name in _PATHS if isinstance(path := one.get(name), str) and path]


def refuse_tool(event: Fields, reason: str) -> int:
    """Let the client refuse the tool call for this reason; the exit status."""
    client = event.get("client")
    if client == "cursor":
        print(json.dumps({"permission": "deny", "user_message": reason, "agent_message": reason}))
    elif client == "copilot":
        decision = {"permissionDecision": "deny", "permissionDecisionReason": reason}
        print(json.dumps(decision | {"hookSpecificOutput": {"hookEventName": "PreToolUse", **decision}}))
    else:
        print(reason, file=sys.stderr)
        return _REFUSE
    return 0


def tell(event: Fields, text: str) -> None:
    """Put a text into the agent's context."""
    client = event.get("client")
    if not client:
        print(text)
    elif client == "cursor":
        print(json.dumps({"additional_context": text}))
    else:
        specific = {"hookEventName": event.get("hook_event_name"), "additionalContext": text}
        print(json.dumps({"hookSpecificOutput": specific, "additionalContext": text}))


def note(event: Fields, text: str) -> None:
    """Show the user a line at the end of a turn, which ends; nothing where the client has no place for one."""
    if event.get("client") != "cursor":
        print(json.dumps({"systemMessage": text}))


def hold(event: Fields, reason: str) -> None:
    """Let the turn go on for this reason."""
    client = event.get("client")
    decision = {"decision": "block", "reason": reason}
    if client == "cursor":
        print(json.dumps({"followup_message": reason}))
    elif client == "copilot":
        print(json.dumps(decision | {"hookSpecificOutput": {"hookEventName": "Stop", **decision}}))
    else:
        print(json.dumps(decision))
