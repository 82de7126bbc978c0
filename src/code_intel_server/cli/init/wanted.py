"""The files a project gets, from the templates: scaffold, skills, and our entries in the clients' configuration."""

import json
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from code_intel_server.cli.command import COMMAND
from code_intel_server.cli.hook import ALLOW_WRITES
from code_intel_server.cli.init import merging
from code_intel_server.cli.init.scaffold import Wanted
from code_intel_server.contract.skills import Client, skill_files
from code_intel_server.resources import templates_dir
from code_intel_server.workspace.paths import FOLDER

_SERVER = ("mcpServers", "code-intel")
_ALLOW = ("permissions", "allow")
_TOOLS = "mcp__code-intel"
_RULES = ("CLAUDE.md", ".claude/CLAUDE.md", "AGENTS.md")
_TABLE = "mcp_servers.code_intel"
_HOOK = {"type": "command", "command": f"{COMMAND} hook", "timeout": 10}
_GRANTING_HOOK = {**_HOOK, "command": f"{COMMAND} hook {ALLOW_WRITES}"}


class Clients(StrEnum):
    """For whom a project is set up."""

    CLAUDE = "claude"
    CODEX = "codex"
    ALL = "all"


def wanted_files(
    root: Path,
    clients: Clients,
    *,
    hooks: bool,
    config: dict[str, Any],
    ours: Sequence[str] = (),
    unattended: bool = False,
) -> list[Wanted]:
    """Everything set-up writes. `config` overrides defaults of config.json; `ours` are paths an earlier run wrote.

    `unattended` lets Claude Code's hook grant, inside a session, what the session may write.
    """
    files = [*_scaffold(config)]
    if clients in {Clients.CLAUDE, Clients.ALL}:
        files += [
            *_claude(hooks=hooks, unattended=unattended),
            *_skills(Client.CLAUDE),
            *_rules(root, "claude", ".claude/CLAUDE.md", ours),
        ]
    if clients in {Clients.CODEX, Clients.ALL}:
        files += [*_codex(hooks=hooks), *_skills(Client.CODEX), *_rules(root, "codex", "AGENTS.md", ours)]
    return files


def _scaffold(config: dict[str, Any]) -> list[Wanted]:
    folder = templates_dir() / "code-intel"
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    wanted = []
    for file in files:
        name = file.relative_to(folder).as_posix()
        text = file.read_text(encoding="utf-8")
        wanted.append(Wanted(f"{FOLDER}/{name}", _configured(text, config) if name == "config.json" else text))
    return wanted


def _configured(text: str, config: dict[str, Any]) -> str:
    """The default configuration with some values changed, written as the template is."""
    for name, value in config.items():
        text = merging.with_member(text, (name,), value)
    return text


def _skills(client: Client) -> list[Wanted]:
    return [Wanted(path, text) for path, text in skill_files(client).items()]


def _rules(root: Path, client: str, path: str, ours: Sequence[str]) -> list[Wanted]:
    """A file for the project's rules, where it has none of its own."""
    others = [name for name in _RULES if name not in ours and (root / name).exists()]
    if others:
        return []
    return [Wanted(path, (templates_dir() / client / Path(path).name).read_text(encoding="utf-8"))]


def _claude(*, hooks: bool, unattended: bool) -> list[Wanted]:
    entry = _template("claude/mcp.json")["mcpServers"]["code-intel"]
    groups = _template("claude/settings.json")["hooks"] if hooks else {}
    if unattended and hooks:
        groups["PreToolUse"] = [{**group, "hooks": [_GRANTING_HOOK]} for group in groups["PreToolUse"]]

    def settings(text: str) -> str:
        """The settings with our permission in them, and with our hooks or without."""
        if hooks and not unattended and not text.strip():
            return _text("claude/settings.json")
        return _with_hooks(merging.with_item(text, _ALLOW, _TOOLS), groups)

    def without(text: str) -> str:
        """The settings without anything of ours."""
        return _with_hooks(merging.without_item(text, _ALLOW, _TOOLS), {})

    return [
        Wanted(
            ".mcp.json",
            merge=lambda text: merging.with_member(text, _SERVER, entry) if text.strip() else _text("claude/mcp.json"),
            unmerge=lambda text: merging.without_member(text, _SERVER),
        ),
        Wanted(".claude/settings.json", merge=settings, unmerge=without),
    ]


def _codex(*, hooks: bool) -> list[Wanted]:
    block = (templates_dir() / "codex" / "config.toml").read_text(encoding="utf-8")
    groups = _template("codex/hooks.json")["hooks"]

    def wanted_hooks(text: str) -> str:
        """The hooks with ours among them, or without ours; no file is made for the latter, and none complained of."""
        if hooks:
            return _with_hooks(text, groups) if text.strip() else _text("codex/hooks.json")
        try:
            return _with_hooks(text, {})
        except merging.Unclear:
            return text

    return [
        Wanted(
            ".codex/config.toml",
            merge=lambda text: merging.with_table(text, _TABLE, block),
            unmerge=merging.without_block,
        ),
        Wanted(".codex/hooks.json", merge=wanted_hooks, unmerge=lambda text: _with_hooks(text, {})),
    ]


def _with_hooks(text: str, groups: dict[str, list[Any]]) -> str:
    """The text with these hooks of ours in it and no others, be they of an earlier version; those of the user's stay."""
    present = _hooks_in(text)
    for event, entries in groups.items():
        for entry in entries:
            text = merging.with_item(text, ("hooks", event), entry)
    for event, entries in present.items():
        for entry in entries:
            if _is_ours(entry) and entry not in groups.get(event, []):
                text = merging.without_item(text, ("hooks", event), entry)
    return text


def _hooks_in(text: str) -> dict[str, list[Any]]:
    content = merging.read(text) if text.strip() else {}
    hooks = content.get("hooks") if isinstance(content, dict) else None
    return (
        {event: [*found] for event, found in hooks.items() if isinstance(found, list)}
        if isinstance(hooks, dict)
        else {}
    )


def _is_ours(entry: object) -> bool:
    """Whether this is a group as some version of ours writes it; one that the user has changed is theirs."""
    return (
        isinstance(entry, dict)
        and entry.get("hooks") in ([_HOOK], [_GRANTING_HOOK])
        and entry.keys() <= {"matcher", "hooks"}
    )


def _template(name: str) -> Any:
    return json.loads(_text(name))


def _text(name: str) -> str:
    return (templates_dir() / name).read_text(encoding="utf-8")
