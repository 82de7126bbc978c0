"""`status --watch`: a session in people's words while it goes on: what was found, refused, decided and run, and how it ended.

What happened is printed once and stays; on a terminal one line below it says what is going on now. In a pipe there is
only what happened, each line whole.
"""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from code_intel_server.cli.console import shown_path
from code_intel_server.cli.pages.record import Submit, session_record
from code_intel_server.cli.status import grid, heading, mark
from code_intel_server.cli.status.view import ProjectView, SessionView, read_view
from code_intel_server.cli.words import TITLE_WIDTH, TITLES, duration, elapsed, quantity
from code_intel_server.common.printable import printable
from code_intel_server.flow.access import ACCESS, Group
from code_intel_server.flow.phases import READY_IMPL
from code_intel_server.tools.services import ProjectServices, now
from code_intel_server.workspace.files import read_regular

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

    from code_intel_server.workspace.values import LedgerEntry

_REFRESH_SECONDS = 0.5
_NAMED = 3
_LOOKS = {tool for tool, access in ACCESS.items() if access.group in {Group.LOOKUP, Group.SEMANTIC, Group.IMPACT}}


def watch(root: Path, wanted: str | None) -> int:
    """Follow the session asked for, else the one that runs, else the next one, until it is over."""
    from rich.console import Console

    console = Console(highlight=False)
    with _live(console) as live:
        watching = Watch(root, wanted, console)
        while watching.goes_on():
            if live is not None:
                live.update(watching.now(), refresh=True)
            time.sleep(_REFRESH_SECONDS)
    return 0


@contextmanager
def _live(console: "Console") -> "Iterator[Live | None]":
    from rich.live import Live

    if not console.is_terminal:
        yield None
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield live


class Watch:
    """A session followed: what was printed of it so far."""

    def __init__(self, root: Path, wanted: str | None, console: "Console") -> None:
        self._services, self._wanted, self._console = ProjectServices(root), wanted, console
        self._followed = ""
        self._session: SessionView | None = None
        self._printed: list[Submit] = []
        self._calls: tuple[LedgerEntry, ...] = ()
        self._waited = False
        self._read: object = None

    def goes_on(self) -> bool:
        """Print what has happened since the last call; whether there is more to come."""
        seen = read_view(self._services.root)
        session = seen.session(self._wanted or self._followed or None)
        if self._wanted is None and (live := next((one for one in seen.sessions if one.live), None)):
            session = live  # begun while an interrupted one was followed
        if session is None and (over := self._followed or self._wanted):
            self._say_submits(seen, over)
            return self._say_end(over)
        if session is None:
            self._say_waiting()
            return True
        if session.session_id != self._followed:
            self._say("") if self._waited or self._followed else None
            self._followed, self._printed = session.session_id, []
            self._say(heading(session))
        elif self._session is not None and self._session.live != session.live:
            self._say("it goes on" if session.live else "interrupted: its client is gone. /code --resume goes on")
        self._session = session
        self._calls = self._services.ledger(session.session_id).entries()
        self._say_submits(seen, session.session_id)
        return True

    def now(self) -> "RenderableType":
        """What is going on at this moment."""
        from rich.text import Text

        session = self._session
        if session is None:
            return ""
        last = self._printed[-1].at if self._printed else session.state["started_at"]
        task = next((task for task in session.state["tasks"] if task["status"] != "completed"), None)
        said = [
            self._runs_now(session.session_id),
            _looked(self._calls[self._printed[-1].calls if self._printed else 0 :]),
        ]
        if session.step == READY_IMPL.step and task is not None:
            said.insert(0, f"{task['id']}: {task['description']}")
        said.append(duration(elapsed(last, now())) if session.live else "interrupted")
        table = grid()
        text = Text(" ".join(printable(" · ".join(filter(None, said))).split())[:300])
        table.add_row(Text(*mark("now")), Text(str(session.step)), Text(session.title, "bold"), text)
        return table

    def _runs_now(self, session_id: str) -> str:
        """Which test run is going on."""
        try:
            run = json.loads(read_regular(self._services.project.cache / "runs" / f"{session_id}.now.json", 10_000))
        except (OSError, ValueError):
            return ""
        return f"tests of {run['run']}" if isinstance(run, dict) and isinstance(run.get("run"), str) else ""

    def _say(self, what: "RenderableType") -> None:
        from rich.text import Text

        shown = Text(what) if isinstance(what, str) else what  # a path may look like markup
        self._console.print(shown, soft_wrap=not self._console.is_terminal)

    def _say_waiting(self) -> None:
        if not self._waited:
            yet = "" if self._services.project.folder.is_dir() else " (not set up yet: code-intel-server init)"
            self._say(f"no session is running in {self._services.root}{yet}: waiting for one")
        self._waited = True

    def _say_submits(self, seen: ProjectView, session_id: str) -> None:
        log = self._services.project.logs / "decisions.jsonl"
        stamp = (session_id, log.stat().st_mtime_ns, log.stat().st_size) if log.exists() else None
        if stamp == self._read:
            return
        self._read = stamp
        for one in seen.submits(session_id)[len(self._printed) :]:
            before = self._printed[-1].calls if self._printed else 0
            looked = _looked(self._calls[before : one.calls]) if not one.refused else ""
            self._say_submit(one, [*one.lines, *([looked] if looked else [])] or ["done"])
            self._printed.append(one)

    def _say_submit(self, one: Submit, lines: Sequence[str]) -> None:
        from rich.text import Text

        lines = [printable(line)[:400] for line in lines]
        sign, style = mark("refused" if one.refused else "back" if one.loops else "done")
        title = TITLES.get(one.step, "")
        if self._console.is_terminal:
            table = grid()
            table.add_row(Text(sign, style), Text(str(one.step)), Text(title, "bold"), Text("\n".join(lines)))
            self._say(table)
            return
        for number, line in enumerate(lines):
            head = f"{sign}  {one.step:>2}  {title:<{TITLE_WIDTH}}" if number == 0 else " " * (TITLE_WIDTH + 7)
            self._say(Text(f"{head}  {line}"))

    def _say_end(self, session_id: str) -> bool:
        """The outcome, and where the report is; False, because nothing more is to come."""
        from rich.text import Text

        from code_intel_server.cli.report import write_report
        from code_intel_server.tools.session.archives import read_archive

        record = read_archive(self._services, session_id)
        if record is None:
            self._say(f"session {printable(session_id)} is not kept here")
            return False
        told = session_record(record)
        kind, said = told.outcome
        style = {"good": "bold green", "warn": "bold yellow", "bad": "bold red"}.get(kind, "bold")
        self._say(Text(f"\n{printable(said)}", style))
        submitted = quantity(len(told.accepted), "submit")
        self._say(f"{duration(told.seconds)}, {submitted}, {len(told.refused)} refused")
        report = shown_path(self._services.root, str(write_report(self._services, session_id)))
        self._console.print(Text(f"report: {report}"), soft_wrap=True)  # whole, so that it can be copied
        return False


def _looked(calls: "Sequence[LedgerEntry]") -> str:
    """What was looked at: `5 lookups: src/cli.py, docs/cli.md and 4 more`."""
    looks = [call for call in calls if call.tool in _LOOKS and call.outcome == "ok"]
    files = [*dict.fromkeys(file for call in looks for file in call.files)]
    more = f" and {len(files) - _NAMED} more" if len(files) > _NAMED else ""
    return f"{quantity(len(looks), 'lookup')}: {', '.join(files[:_NAMED]) or 'nothing found'}{more}" if looks else ""
