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
from code_intel_server.cli.init.project_files import config_path
from code_intel_server.cli.init.scaffold import Manifest
from code_intel_server.cli.pages.record import mapping
from code_intel_server.contract import CLAUDE, CLIENTS, CODEX, Client, ClientFile, Skill
from code_intel_server.workspace.files import read_regular

_HOOK = f"{COMMAND} hook"
_NO_HOOKS = "none registered (init without --no-hooks adds them)"
_MAX_BYTES = 4 * 1024 * 1024
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


def registered(root: Path) -> Iterator[Finding]:
    """Every client that the project is set up for: server, hooks, skill."""
    known = Manifest.load(root).options.get("clients")
    for client in CLIENTS:
        yield from _client(root, client, known if isinstance(known, list) else None)


def _client(root: Path, client: Client, known: list[str] | None) -> Iterator[Finding]:
    (registry,) = [one for one in client.files if one.server]
    skill = client.skills.format(skill=Skill.CODE)
    path = config_path(root, registry)
    if client.name not in known if known else not (root / path).exists() and not (root / skill).is_file():
        if client in {CLAUDE, CODEX}:
            yield Finding(client.title.lower(), Grade.UNUSED, "not registered here")
        return
    again = f"{COMMAND} init --client {client.name} {quote(str(root))}"
    content = _content(root / path)
    if isinstance(content, str):
        yield bad(client.title.lower(), f"{path}: {content}", f"mend it, then {again}")
    elif registry.server[1] in mapping(content, registry.server[0]):
        yield good(client.title.lower(), f"registered in {path}")
    else:
        yield bad(client.title.lower(), f"{path} has no server {registry.server[1]}", again)
    for file in client.files:
        if file.hooks and not (file is registry and isinstance(content, str)):
            yield _hooks(root, client, file, again)
    yield (
        good(f"{client.name} skill", skill)
        if (root / skill).is_file()
        else bad(f"{client.name} skill", f"{skill} is missing", again)
    )


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


def _hooks(root: Path, client: Client, file: ClientFile, again: str) -> Finding:
    name, path = f"{client.name} hooks", config_path(root, file)
    if not path.endswith(".json"):
        return good(name, path) if (root / path).exists() else Finding(name, Grade.UNUSED, _NO_HOOKS)
    content = _content(root / path)
    if isinstance(content, str):
        return bad(name, f"{path}: {content}", f"mend it, then {again}")
    hooks = mapping(content, "hooks")
    there = [event for event in client.events if _HOOK in json.dumps(hooks.get(event))]
    if missing := [event for event in client.events if event not in there]:
        only = f"only {', '.join(there)}: {', '.join(missing)} missing"
        return warning(name, only, again) if there else Finding(name, Grade.UNUSED, _NO_HOOKS)
    whole = good(name, ", ".join(there))
    return _approved(root, whole) if client is CODEX else whole


def _approved(root: Path, found: Finding) -> Finding:
    """`found`, unless Codex says that it would leave hooks of it out: it does that in silence."""
    from code_intel_server.cli.init import codex_hooks

    try:
        left_out = codex_hooks.unapproved(root)
    except codex_hooks.Unanswered:
        return found
    if not left_out:
        return good(found.name, f"{found.text}; approved in Codex")
    text = f"not approved in Codex, which leaves them out in silence: {', '.join(left_out)}"
    return warning(found.name, text, f"/hooks in codex, or: {COMMAND} init --unattended {quote(str(root))}")


def _content(file: Path) -> dict[str, Any] | str:
    """The object in a file ({} where there is none), or what is wrong with it."""
    try:
        text = read_regular(file, _MAX_BYTES, follow=True).decode("utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        return (error.strerror if isinstance(error, OSError) else None) or str(error)
    try:
        content = tomllib.loads(text.removeprefix("\ufeff")) if file.suffix == ".toml" else merging.read(text)
    except (ValueError, RecursionError, merging.Unclear) as error:
        return str(error)
    return content if isinstance(content, dict) else "not an object"
