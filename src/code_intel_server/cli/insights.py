"""`insights`: what fails most and where time goes, over all sessions of a project (SPEC 10)."""

import argparse
import json
from collections import Counter
from statistics import median
from typing import TYPE_CHECKING

from code_intel_server.cli.console import guarded, parser, scaffolded_root
from code_intel_server.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from code_intel_server.cli.tally import Tally

_TOP = 10


def main(arguments: list[str]) -> int:
    """Say what the project's sessions have in common."""
    made = parser("insights", "What fails most and where time goes, over all sessions of a project.")
    made.add_argument("--html", action="store_true", help="as a self-contained HTML page")
    made.add_argument("--out", metavar="FILE", help="where to write the page; - for standard output")
    made.add_argument("--json", action="store_true", help="as JSON")
    options = made.parse_args(arguments)
    return guarded(lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    from code_intel_server.cli.tally import tally
    from code_intel_server.tools.desk import Desk

    desk = Desk(scaffolded_root(options.project))
    counted = tally(desk)
    counted.notes += _going_on(desk.root)
    if options.html or options.out:
        from code_intel_server.cli.insights_page import insights_page
        from code_intel_server.cli.report import write_page

        page = insights_page(desk.root.name, counted)
        write_page(page, options.out, desk.project.logs / "reports" / "insights.html")
    elif options.json:
        print(json.dumps(counted.as_json(), ensure_ascii=True, indent=2))
    else:
        print("\n".join(printable(line) for line in lines(counted)))
    return 0


def _going_on(root: "Path") -> list[str]:
    """What is counted although it is not over."""
    from code_intel_server.cli.view import look

    seen = look(root)
    notes = [
        f"Session {one.session_id} is going on in process {seen.owner.pid}, at step {one.step}: what it did so far is counted."
        for one in seen.sessions
        if one.live and seen.owner is not None
    ]
    waiting = [one.session_id for one in seen.sessions if not one.live]
    if waiting:
        notes.append(f"Interrupted and not over: {', '.join(waiting[:5])}. What they did so far is counted.")
    return notes


def lines(counted: "Tally") -> "Iterator[str]":
    """The insights as plain text."""
    from code_intel_server.cli.record import LOOP_EVENTS

    if not counted.sessions:
        yield "There is no session yet."
        yield from counted.notes
        return
    ends = ", ".join(f"{count} {end}" for end, count in counted.ends.most_common())
    yield f"{counted.sessions} sessions{f' ({ends})' if ends else ''}, {counted.looping} with loops"
    yield f"outcomes, oldest first: {' '.join(outcome for _, outcome in counted.trend) or 'none'}"
    yield from ("", "Step                    accepted refused back     time   median  fails most on")
    yield from _steps(counted)
    yield from _ranked("Refusals by key", counted.refusals)
    yield from _ranked("Loops", Counter({LOOP_EVENTS[event]: count for event, count in counted.loops.items()}))
    yield from _ranked("Refused evidence", counted.evidence)
    yield from _ranked("What sessions failed on", counted.failures)
    yield from _tools(counted)
    yield from ("", *counted.notes) if counted.notes else ()


def _steps(counted: "Tally") -> "Iterator[str]":
    from code_intel_server.cli.record import STEP_NAMES, duration

    for step, phase in sorted(counted.phases.items()):
        usual = duration(median(phase.seconds)) if phase.seconds else "–"
        yield (
            f"{step:>2} {STEP_NAMES.get(step, ''):<20} {phase.accepted:>8} {phase.refusals.total():>7} {phase.loops.total():>4}"
            f" {duration(sum(phase.seconds)):>8} {usual:>8}  {phase.worst}"
        )


def _ranked(title: str, counts: Counter[str]) -> "Iterator[str]":
    if counts:
        yield from ("", title)
        yield from (f"{count:>6}  {' '.join(key.split())[:150]}" for key, count in counts.most_common(_TOP))


def _tools(counted: "Tally") -> "Iterator[str]":
    if counted.tools:
        yield from ("", "Tools per phase")
        for phase, tools in counted.tools.items():
            yield f"  {phase:<20} {', '.join(f'{tool} {count}' for tool, count in tools.most_common())}"
