"""The doctor's look at the clients: command, registration, hooks, and a real handshake with the server."""

import json
import os
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import Any

from code_intel_server import __version__, process
from code_intel_server.cli.command import COMMAND, how_to_install, lasting_command
from code_intel_server.cli.doctor.finding import Finding, Grade, bad, good, warning
from code_intel_server.cli.init import merging

_HOOK = f"{COMMAND} hook"
_EVENTS = ("PreToolUse", "SessionStart", "Stop")
_SLOW_HOOK_MS = 100
_TOOLS_AT_LEAST = 20


def launcher(root: Path) -> Iterator[Finding]:
    """The command that the clients start."""
    found = lasting_command()
    if found is None:
        yield bad("command", f"{COMMAND} is not on PATH: clients cannot start it", how_to_install())
        return
    done = process.run([found, "--version"], cwd=root, timeout=30)
    version = done.stdout.decode().strip()
    if version == __version__:
        yield good("command", found)
    else:
        yield warning(
            "command", f"{found} is version {version or 'unknown'}, this is {__version__}", "run init-project.sh again"
        )


def claude(root: Path) -> Iterator[Finding]:
    """Claude Code: server, permissions, hooks, skill."""
    file = root / ".mcp.json"
    if not file.exists() and not (root / ".claude" / "skills" / "code").is_dir():
        yield Finding("claude code", Grade.UNUSED, "not registered here")
        return
    again = f"code-intel-server init --client claude {quote(str(root))}"
    content = _json(file)
    if isinstance(content, str):
        yield bad("claude code", f".mcp.json: {content}", f"mend it, then {again}")
    elif "code-intel" not in _members(content, "mcpServers"):
        yield bad("claude code", ".mcp.json has no server code-intel", again)
    else:
        yield good("claude code", "registered in .mcp.json")
    settings = _json(root / ".claude" / "settings.json")
    if isinstance(settings, str):
        yield bad("claude hooks", f".claude/settings.json: {settings}", f"mend it, then {again}")
    else:
        yield _hooks("claude hooks", settings, again)
    yield _skill(root, "claude skill", ".claude/skills/code/SKILL.md", again)


def codex(root: Path) -> Iterator[Finding]:
    """Codex: server, hooks, skill; whether the user trusts the project is Codex's own secret."""
    file = root / ".codex" / "config.toml"
    if not file.exists() and not (root / ".agents" / "skills" / "code").is_dir():
        yield Finding("codex", Grade.UNUSED, "not registered here")
        return
    again = f"code-intel-server init --client codex {quote(str(root))}"
    try:
        content: Any = tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        yield bad("codex", f".codex/config.toml: {error}", f"mend it, then {again}")
    else:
        if "code_intel" in _members(content, "mcp_servers"):
            yield good("codex", "registered in .codex/config.toml (Codex reads it once you trust the project)")
        else:
            yield bad("codex", ".codex/config.toml has no server code_intel", again)
    hooks = _json(root / ".codex" / "hooks.json")
    if isinstance(hooks, str):
        yield bad("codex hooks", f".codex/hooks.json: {hooks}", f"mend it, then {again}")
    else:
        found = _hooks("codex hooks", hooks, again)
        yield _approved(root, found) if found.grade is Grade.GOOD else found
    yield _skill(root, "codex skill", ".agents/skills/code/SKILL.md", again)


def hook(root: Path) -> Iterator[Finding]:
    """The hook answers, and fast enough not to be noticed."""
    event = {"hook_event_name": "PreToolUse", "tool_name": "Write", "cwd": os.devnull, "tool_input": {"file_path": "x"}}
    program = lasting_command()
    if program is None:
        return
    took = []
    for _ in range(3):
        began = time.monotonic()
        done = process.run([program, "hook"], cwd=root, timeout=20, stdin=json.dumps(event).encode())
        took.append((time.monotonic() - began) * 1000)
        if done.returncode:
            yield bad(
                "hook", f"exit status {done.returncode}: {done.stderr.decode()[:200]}", "run init-project.sh again"
            )
            return
    fastest = min(took)
    if fastest > _SLOW_HOOK_MS:
        yield warning(
            "hook", f"takes {fastest:.0f} ms", "every write waits for it; is the machine busy, or the disk remote?"
        )
    else:
        yield good("hook", f"answers in {fastest:.0f} ms")


def server(root: Path) -> Iterator[Finding]:
    """A real handshake over stdio: start, list the tools, end."""
    from code_intel_server.cli.proof.agent import handshake
    from code_intel_server.cli.proof.script import Stuck

    began = time.monotonic()
    try:
        tools = handshake(root)
    except Stuck as stuck:
        yield bad("server", f"does not answer: {stuck}", "code-intel-server serve in a terminal shows why")
        return
    seconds = time.monotonic() - began
    if len(tools) < _TOOLS_AT_LEAST:
        yield bad("server", f"offers only {len(tools)} tools", "reinstall code-intel-server")
    else:
        yield good("server", f"answers with {len(tools)} tools in {seconds:.1f} s")


def _hooks(name: str, settings: dict[str, Any], again: str) -> Finding:
    hooks = _members(settings, "hooks")
    there = [event for event in _EVENTS if _HOOK in json.dumps(hooks.get(event))]
    if len(there) == len(_EVENTS):
        return good(name, ", ".join(there))
    if there:
        missing = ", ".join(event for event in _EVENTS if event not in there)
        return warning(name, f"only {', '.join(there)}: {missing} missing", again)
    return Finding(name, Grade.UNUSED, "none registered (init without --no-hooks adds them)")


def _approved(root: Path, found: Finding) -> Finding:
    """`found`, unless Codex says that it would leave hooks of it out: it does that in silence."""
    from code_intel_server.cli.clients import codex_hooks

    try:
        left_out = codex_hooks.unapproved(root)
    except codex_hooks.Unanswered:
        return found
    if not left_out:
        return good(found.name, f"{found.text}; approved in Codex")
    text = f"not approved in Codex, which leaves them out in silence: {', '.join(left_out)}"
    return warning(found.name, text, f"/hooks in codex, or: {COMMAND} init --unattended {quote(str(root))}")


def _skill(root: Path, name: str, path: str, again: str) -> Finding:
    return good(name, path) if (root / path).is_file() else bad(name, f"{path} is missing", again)


def _json(file: Path) -> dict[str, Any] | str:
    """The object in a file ({} where there is none), or what is wrong with it."""
    if not file.exists():
        return {}
    try:
        content = merging.read(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, merging.Unclear) as error:
        return str(error)
    return content if isinstance(content, dict) else "not an object"


def _members(content: Any, name: str) -> dict[str, Any]:
    found = content.get(name) if isinstance(content, dict) else None
    return found if isinstance(found, dict) else {}
