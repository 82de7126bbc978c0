"""What clients other than Claude Code and Codex call their events, tools and arguments, and how they want to be answered.

Imported by every hook call: it imports next to nothing.
"""

import json
import os
import sys

Fields = dict[str, object]

_EVENTS = {
    "BeforeTool": "PreToolUse",
    "AfterAgent": "Stop",
    "preToolUse": "PreToolUse",
    "sessionStart": "SessionStart",
    "stop": "Stop",
}
WRITERS = frozenset(
    {"Edit", "Write", "NotebookEdit", "MultiEdit"}  # Claude Code, Codex, Cursor
    | {"write_file", "replace", "edit"}  # Gemini CLI, Qwen Code
    | {"write", "multiedit"}  # OpenCode
    | {"create", "str_replace", "insert"}  # Copilot CLI
    | {"create_file", "replace_string_in_file", "multi_replace_string_in_file", "insert_edit_into_file"}  # VS Code
)
READERS = frozenset({"Read", "read_file", "read", "view"})
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
