"""The files a project gets: scaffold, skills, and our entries in the clients' configuration, all from the table of the clients."""

import json
import os
import shutil
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from code_intel_server.cli.command import COMMAND
from code_intel_server.cli.hook import ALLOW_WRITES
from code_intel_server.cli.init import merging
from code_intel_server.cli.init.scaffold import PlannedFile
from code_intel_server.common.resources import templates_dir
from code_intel_server.contract import CLAUDE, CLIENTS, CODEX, Client, ClientFile, skill_files
from code_intel_server.workspace.paths import FOLDER

_RULES = ("CLAUDE.md", ".claude/CLAUDE.md", "AGENTS.md")
_HOOK = f"{COMMAND} hook"


def found(root: Path) -> set[str]:
    """The clients that somebody uses here: the first two, and those whose program or whose files are there."""
    return {CLAUDE.name, CODEX.name} | {client.name for client in CLIENTS if _is_here(client, root)}


def _is_here(client: Client, root: Path) -> bool:
    there = any(shutil.which(program) for program in client.programs)
    return there or any((root / trace).exists() for trace in client.traces)


def planned_files(
    root: Path,
    clients: Sequence[Client],
    *,
    hooks: bool,
    config: dict[str, Any],
    ours: Collection[str] = (),
    unattended: bool = False,
) -> list[PlannedFile]:
    """Everything set-up writes. `config` overrides defaults of config.json; `ours` are paths an earlier run wrote.

    `unattended` lets Claude Code's hook grant, inside a session, what the session may write.
    """
    files = {one.path: one for one in _scaffold(config)}
    for client in clients:
        for one in client.files:
            if hooks or not (one.ours and one.hooks):
                made = _config_file(root, client, one, hooks=hooks, granting=unattended and client is CLAUDE)
                files.setdefault(made.path, made)
        for path, text in skill_files(client).items():
            files.setdefault(path, PlannedFile(path, text))
    for client in clients:
        if client.rules not in files and not any((root / name).exists() for name in _RULES if name not in ours):
            of = client if client is CLAUDE else CODEX  # all others share one text
            files[client.rules] = PlannedFile(client.rules, _text(f"{of.name}/{Path(client.rules).name}"))
    return [*files.values()]


def _scaffold(config: dict[str, Any]) -> Iterator[PlannedFile]:
    folder = templates_dir() / "code-intel"
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = file.relative_to(folder).as_posix()
        text = file.read_text(encoding="utf-8")
        if name == "config.json":
            for key, value in config.items():
                text = merging.with_member(text, (key,), value)
        yield PlannedFile(f"{FOLDER}/{name}", text)


def config_path(root: Path, file: ClientFile) -> str:
    """Where a client's file is in a project: the first of its places that exists, else the first."""
    return next((path for path in file.paths if os.path.lexists(root / path)), file.paths[0])


def _config_file(root: Path, client: Client, file: ClientFile, *, hooks: bool, granting: bool) -> PlannedFile:
    path, text = config_path(root, file), _text(f"{client.name}/{file.name}")
    if file.ours:
        return PlannedFile(path, text)
    if path.endswith(".toml"):
        table = ".".join(file.server)
        return PlannedFile(
            path, merge=lambda present: merging.with_table(present, table, text), unmerge=merging.without_block
        )
    return _entries(path, text, file, hooks=hooks, granting=granting)


def _entries(path: str, template: str, file: ClientFile, *, hooks: bool, granting: bool) -> PlannedFile:
    content = json.loads(template)
    groups = content.pop("hooks", {})
    if granting:
        template = template.replace(f'{_HOOK}"', f'{_HOOK} {ALLOW_WRITES}"', 1)
        groups = json.loads(template).get("hooks", {})
    only_hooks = file.hooks and not set(content) - {"version"}

    def merge(present: str) -> str:
        """The file with our entries, and with our hooks or without; none is made, or complained of, for the latter alone."""
        if not present.strip() and (hooks or not file.hooks):
            return template
        if only_hooks and not hooks:
            try:
                return _with_hooks(present, {}, groups)
            except merging.Unclear:
                return present
        return _with_hooks(_added(present, content), groups if hooks else {}, groups)

    return PlannedFile(path, merge=merge, unmerge=lambda present: _with_hooks(_taken_out(present, content), {}, groups))


def _leaves(content: dict[str, Any]) -> Iterator[tuple[merging.JsonPath, Any]]:
    """Our entries by their place, two steps down: a server, the items of a list."""
    for name, value in content.items():
        for below, inner in value.items() if isinstance(value, dict) else ():
            yield (name, below), inner


def _added(text: str, content: dict[str, Any]) -> str:
    for path, value in _leaves(content):
        if isinstance(value, list):
            for item in value:
                text = merging.with_item(text, path, item)
        else:
            text = merging.with_member(text, path, value)
    return text


def _taken_out(text: str, content: dict[str, Any]) -> str:
    for path, value in _leaves(content):
        if isinstance(value, list):
            for item in value:
                text = merging.without_item(text, path, item)
        else:
            text = merging.without_member(text, path)
    return text


def _with_hooks(text: str, wanted: dict[str, list[Any]], ours: dict[str, list[Any]]) -> str:
    """The text with these hooks of ours in it and no others, be they of an earlier version; those of the user's stay."""
    present = _hooks_in(text)
    for event, entries in wanted.items():
        for entry in entries:
            text = merging.with_item(text, ("hooks", event), entry)
    known = [_plain(entry) for entries in ours.values() for entry in entries]
    for event, entries in present.items():
        for entry in entries:
            if _plain(entry) in known and entry not in wanted.get(event, []):
                text = merging.without_item(text, ("hooks", event), entry)
    return text


def _plain(entry: object) -> object:
    """An entry without its matcher and without the grant: as some version of ours may have written it."""
    if isinstance(entry, list):
        return [_plain(one) for one in entry]
    if not isinstance(entry, dict):
        return entry.removesuffix(f" {ALLOW_WRITES}") if isinstance(entry, str) else entry
    return {name: _plain(value) for name, value in entry.items() if name != "matcher"}


def _hooks_in(text: str) -> dict[str, list[Any]]:
    content = merging.read(text) if text.strip() else {}
    hooks = content.get("hooks") if isinstance(content, dict) else None
    if not isinstance(hooks, dict):
        return {}
    return {event: [*there] for event, there in hooks.items() if isinstance(there, list)}


def _text(name: str) -> str:
    return (templates_dir() / name).read_text(encoding="utf-8")
