"""`status`: the 19 steps and where the session is; tasks, counters, branch, index, lock (SPEC 12).

`view` reads sessions as they are on disk, `watch` follows one while it goes on.
"""

import argparse
import json
from collections.abc import Iterator
from shlex import quote
from typing import TYPE_CHECKING, Any

from code_intel_server.cli.console import Failed, guarded, parser, project_root
from code_intel_server.cli.hook import outside_sessions
from code_intel_server.cli.pages.record import SessionRecord
from code_intel_server.cli.status.view import ProjectView, SessionView, read_view
from code_intel_server.cli.words import TITLE_WIDTH, flag_typed, quantity
from code_intel_server.common.printable import printable
from code_intel_server.workspace.paths import FOLDER, Project

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

_MARKS = {
    "done": ("✓", "green"),
    "now": ("▶", "bold yellow"),
    "skipped": ("–", "dim"),
    "refused": ("✗", "yellow"),
    "back": ("↩", "red"),
}
_STATES = {"skipped": "not needed", "open": "if needed"}
TEXT_WIDTH = 110
"""Columns of prose: longer lines are hard to read."""


def main(arguments: list[str]) -> int:
    """Show where the project's session stands."""
    made = parser("status", "Where the session of a project stands.")
    made.add_argument("--session", metavar="ID", help="which session; the running one if not given")
    made.add_argument("--json", action="store_true", help="as JSON")
    made.add_argument("--watch", action="store_true", help="as it goes on, until it is over")
    options = made.parse_args(arguments)
    return guarded(lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    root = project_root(options.project)
    if options.watch:
        from code_intel_server.cli.status.watch import watch

        return watch(root, options.session)
    seen = read_view(root)
    session = seen.session(options.session)
    if options.session and session is None:
        raise Failed(f"no session {options.session} is running or interrupted here")
    if options.json:
        print(json.dumps(project_as_json(seen, session), ensure_ascii=False, indent=2))
    else:
        from rich.console import Console

        console = Console(highlight=False)
        for part in drawn(seen, session):
            console.print(part, soft_wrap=not console.is_terminal)  # lines stay whole in a pipe
    return 0


def project_as_json(seen: ProjectView, session: SessionView | None) -> dict[str, Any]:
    """The project's state as data."""
    owner = seen.owner
    return {
        "project": str(seen.root),
        "set_up": (seen.root / FOLDER).is_dir(),
        "session": session.as_json() if session else None,
        "others": [one.session_id for one in seen.sessions if one is not session],
        "unusable_checkpoints": [*seen.unusable],
        "index": seen.index.as_json() if seen.index else None,
        "outside_sessions": outside_sessions.described(str(seen.root))[1],
        "lock": {"pid": owner.pid, "since": owner.since, "session_id": owner.session_id} if owner else None,
    }


def drawn(seen: ProjectView, session: SessionView | None) -> "Iterator[RenderableType]":
    """The project's state for a terminal, part by part. All text that comes from files is escaped."""
    from rich.text import Text

    if session is None and not (seen.root / FOLDER).is_dir():
        yield Text(f"code-intel is not set up in {seen.root}: code-intel-server init {quote(str(seen.root))}")
        return
    if session is None:
        yield Text("no session is running" + (", none is kept" if not seen.unusable else "") + f" in {seen.root}")
        yield from (Text(f"not obeyed: {printable(line)}", "yellow") for line in seen.unusable)
        yield _surroundings(seen)
        return
    yield heading(session)
    yield _steps(seen, session)
    yield from _tasks(session)
    yield _counters(session)
    yield _surroundings(seen)
    if session.instruction:
        yield Text(f"the agent was told: {printable(session.instruction)[:600]}", "dim")


def heading(session: SessionView) -> "RenderableType":
    """The request, and which session it is."""
    from rich.text import Text

    state = session.state
    head = Text(" ".join(printable(str(state["query"])).split())[:300], "bold")
    given = "".join(
        f" {flag_typed(name, value)}" for name, value in state["flags"].items() if value not in (False, "auto")
    )
    head.append(f"\nsession {session.session_id}{given} · ", "not bold dim")
    if session.live:
        head.append("running", "not bold green")
    else:
        head.append("interrupted: /code --resume goes on", "not bold yellow")
    return head


def grid() -> "Table":
    """The columns of a step: mark, number, title, text."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=1)
    table.add_column(width=2, justify="right")
    table.add_column(width=TITLE_WIDTH, no_wrap=True)
    table.add_column(overflow="fold", max_width=TEXT_WIDTH)
    return table


def mark(state: str) -> tuple[str, str]:
    """The sign of a step or submit, and its style."""
    return _MARKS.get(state, ("·", "dim"))


def _steps(seen: ProjectView, session: SessionView) -> "Table":
    from rich.text import Text

    table = grid()
    by_flag = SessionRecord(state=session.state).skipped
    said = {one.step: one.lines[0] for one in seen.submits(session.session_id) if not one.refused and one.lines}
    for row in session.steps():
        style = {"now": "bold", "done": ""}.get(row.state, "dim")
        text = _where(session) if row.state == "now" else _STATES.get(row.state, said.get(row.number, ""))
        text = "left out by a flag" if row.state == "skipped" and row.number in by_flag else text
        table.add_row(
            Text(*mark(row.state)), Text(str(row.number), style), Text(row.title, style), Text(printable(text), style)
        )
    return table


def _where(session: SessionView) -> str:
    """Where the step that the session is at stands."""
    tasks = session.state["tasks"]
    done = sum(task["status"] == "completed" for task in tasks)
    return f"now: {done} of {quantity(len(tasks), 'task')} done" if tasks else "now"


def _tasks(session: SessionView) -> "Iterator[RenderableType]":
    from rich.padding import Padding
    from rich.text import Text

    for task in session.state["tasks"]:
        done = task["status"] == "completed"
        failed = f"  failed {task['failure_count']}×" if task["failure_count"] else ""
        head = Text(*mark("done" if done else "ahead"))
        head.append(f" {printable(str(task['id']))}  {printable(str(task['description']))[:120]}{failed}", "not dim")
        yield head
        for item in task["checklist"]:
            proof = item.get("evidence") or item.get("reason") or ""
            said = f"{item['status']}: {printable(str(item['item']))[:100]}  {printable(str(proof))[:80]}"
            yield Padding(Text(said.rstrip(), "dim"), (0, 0, 0, 4))


def _counters(session: SessionView) -> "RenderableType":
    from rich.text import Text

    state, counters = session.state, session.state["counters"]
    happened = {
        "submit": state["submits"],
        "failed verification": counters["verification_failure_count"],
        "intervention": counters["intervention_count"],
        "quality loop": counters["quality_revert_count"],
        "explored file": len(state["explored_files"]) + len(state["added_files"]),
    }
    parts = [quantity(count, what) for what, count in happened.items() if count]
    if state["task_branch"]:
        branch = state["task_branch"]
        parts.append(f"branch {printable(str(branch['name']))} from {printable(str(branch['base']))}")
    own = f"\nin its own worktree: {printable(str(session.root))}" if Project(session.root).home else ""
    return Text(" · ".join(parts) + own, "dim")


def _surroundings(seen: ProjectView) -> "RenderableType":
    """Index, lock and the gate outside of sessions: what there is besides the session."""
    from rich.text import Text

    index = seen.index.described() if seen.index else "index not built yet: the first session builds it"
    owner = seen.owner
    lock = f"lock held by {owner.described()} since {owner.since}" if owner else "lock free"
    outside, _ = outside_sessions.described(str(seen.root))
    return Text(f"{seen.root}\n{printable(index)}\n{printable(lock)}\n{printable(outside)}", "dim")
