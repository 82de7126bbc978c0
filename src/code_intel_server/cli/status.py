"""`status`: the 19 steps and where the session stands; tasks, counters, branch, index, lock (SPEC 12)."""

import argparse
import json
import time
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from code_intel_server.cli.console import Failed, guarded, parser, project_root
from code_intel_server.cli.view import ProjectView, SessionView, StepView, look
from code_intel_server.printable import printable
from code_intel_server.workspace.paths import FOLDER

if TYPE_CHECKING:
    from rich.console import RenderableType

_MARKS = {"done": "[green]✓[/]", "now": "[bold yellow]▶[/]", "skipped": "[dim]–[/]", "ahead": "[dim]·[/]"}
_REFRESH_SECONDS = 0.5
_TALL = 45
"""Lines of a terminal from which the 19 steps stand one below the other."""


def main(arguments: list[str]) -> int:
    """Show where the project's session stands."""
    made = parser("status", "Where the session of a project stands.")
    made.add_argument("--session", metavar="ID", help="which session; the running one if not given")
    made.add_argument("--json", action="store_true", help="as JSON")
    made.add_argument("--watch", action="store_true", help="until interrupted, as it goes on")
    options = made.parse_args(arguments)
    return guarded(lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    root = project_root(options.project)
    if options.watch:
        return _watch(root, options.session)
    seen = look(root)
    session = seen.session(options.session)
    if options.session and session is None:
        raise Failed(f"no session {options.session} is kept here")
    if options.json:
        print(json.dumps(as_json(seen, session), ensure_ascii=False, indent=2))
    else:
        from rich.console import Console

        console = Console(highlight=False)
        console.print(drawn(seen, session), soft_wrap=not console.is_terminal)  # lines stay whole in a pipe
    return 0


def as_json(seen: ProjectView, session: SessionView | None) -> dict[str, Any]:
    """The project's state as data."""
    owner = seen.owner
    return {
        "project": str(seen.root),
        "set_up": (seen.root / FOLDER).is_dir(),
        "session": session.as_json() if session else None,
        "others": [one.session_id for one in seen.sessions if one is not session],
        "unusable_checkpoints": [*seen.unusable],
        "index": seen.index.as_json() if seen.index else None,
        "lock": {"pid": owner.pid, "since": owner.since, "session_id": owner.session_id} if owner else None,
    }


def _watch(root: Path, session_id: str | None) -> int:
    """Draw anew as it goes on: in place on a terminal, one under the other in a pipe where something has changed."""
    from rich.console import Console
    from rich.live import Live

    console = Console(highlight=False)
    if not console.is_terminal:
        return _follow(root, session_id)
    seen = look(root)
    with Live(drawn(seen, seen.session(session_id), console.height), console=console, auto_refresh=False) as live:
        while True:
            time.sleep(_REFRESH_SECONDS)
            seen = look(root)
            live.update(drawn(seen, seen.session(session_id), console.height), refresh=True)


def _follow(root: Path, session_id: str | None) -> int:
    last = None
    while True:
        seen = look(root)
        said = _said(seen, seen.session(session_id))
        if said != last:
            last = said
            print(said, flush=True)
        time.sleep(_REFRESH_SECONDS)


def _said(seen: ProjectView, session: SessionView | None) -> str:
    """Where things stand, in one line."""
    pending = f" · index: {seen.index.pending} files pending" if seen.index and seen.index.pending else ""
    if session is None:
        return f"no session is running{pending}"
    tasks = session.state["tasks"]
    done = sum(task["status"] == "completed" for task in tasks)
    counted = f" · tasks {done}/{len(tasks)}" if tasks else ""
    running = "" if session.live else " · interrupted"
    return f"{session.session_id} step {session.step} {session.phase}{counted} · submits {session.state['submits']}{running}{pending}"


def drawn(seen: ProjectView, session: SessionView | None, height: int | None = None) -> "RenderableType":
    """The project's state for a terminal, in `height` lines if that can be. All text that comes from files is escaped."""
    from rich.console import Group
    from rich.text import Text

    surroundings = _surroundings(seen)
    if session is None and not (seen.root / FOLDER).is_dir():
        return Text(f"code-intel is not set up in {seen.root}: code-intel-server init {quote(str(seen.root))}")
    if session is None:
        said = "no session is running" + (", none is kept" if not seen.unusable else "") + f" in {seen.root}"
        unusable = [Text(f"not obeyed: {printable(line)}", "yellow") for line in seen.unusable]
        return Group(Text(said), *unusable, surroundings)
    steps = _steps(session, columns=1 if height is None or height >= _TALL else 2)
    return Group(_heading(seen, session), steps, _counters(session), surroundings, *_tasks(session), _told(session))


def _heading(seen: ProjectView, session: SessionView) -> "RenderableType":
    from rich.text import Text

    state = session.state
    head = Text(f"{session.session_id}  ", "bold")
    head.append(
        "running" if session.live else "interrupted: /code --resume goes on", "green" if session.live else "yellow"
    )
    flags = " ".join(name for name, value in state["flags"].items() if value not in {False, "auto"})
    head.append(f"\n{state['intent']}{f' [{flags}]' if flags else ''}  ", "dim")
    head.append(printable(str(state["query"]))[:300])
    head.append(f"\n{seen.root}", "dim")
    return head


def _steps(session: SessionView, columns: int) -> "RenderableType":
    from rich.table import Table

    rows = [
        _cells(row)[: 4 if columns == 1 else 3] for row in session.steps()
    ]  # narrow: the mark alone tells the state
    length = -(-len(rows) // columns)
    table = Table(box=None, padding=(0, 1), show_header=False)
    for number in range(length):
        table.add_row(*[cell for row in rows[number::length] for cell in row])
    return table


def _cells(row: StepView) -> "list[RenderableType]":
    from rich.text import Text

    style = "bold" if row.state == "now" else "dim" if row.state != "done" else ""
    said = row.state if row.state not in {"done", "ahead"} else ""
    mark = Text.from_markup(_MARKS.get(row.state, _MARKS["ahead"]))
    return [mark, Text(f"{row.number:>2}", style), Text(row.name, style), Text(said, style)]


def _tasks(session: SessionView) -> list["RenderableType"]:
    from rich.text import Text

    lines: list[RenderableType] = []
    for task in session.state["tasks"]:
        done = task["status"] == "completed"
        failed = f"  failed {task['failure_count']}×" if task["failure_count"] else ""
        lines.append(
            Text(
                f"{'✓' if done else '○'} {printable(str(task['id']))}  {printable(str(task['description']))[:120]}{failed}"
            )
        )
        for item in task["checklist"]:
            proof = item.get("evidence") or item.get("reason") or ""
            lines.append(
                Text(
                    f"    {item['status']:<8} {printable(str(item['item']))[:100]}  {printable(str(proof))[:80]}", "dim"
                )
            )
    return lines


def _counters(session: SessionView) -> "RenderableType":
    from rich.text import Text

    state, counters = session.state, session.state["counters"]
    parts = [
        f"submits {state['submits']}",
        f"verification failures {counters['verification_failure_count']}",
        f"interventions {counters['intervention_count']}",
        f"quality reverts {counters['quality_revert_count']}",
        f"files {len(state['explored_files'])}+{len(state['added_files'])}",
    ]
    if state["task_branch"]:
        parts.append(
            f"branch {printable(str(state['task_branch']['name']))} from {printable(str(state['task_branch']['base']))}"
        )
    return Text(" · ".join(parts), "dim")


def _told(session: SessionView) -> "RenderableType":
    """What the agent was told last: at the end, because it may be cut where the terminal ends."""
    from rich.text import Text

    return Text(f"told: {printable(session.instruction)[:600]}" if session.instruction else "")


def _surroundings(seen: ProjectView) -> "RenderableType":
    """Index and lock: what there is besides the session."""
    from rich.text import Text

    index = seen.index.described() if seen.index else "index not built yet: the first session builds it"
    owner = seen.owner
    lock = f"lock held by {owner.described()} since {owner.since}" if owner else "lock free"
    return Text(f"{printable(index)}\n{printable(lock)}", "dim")
