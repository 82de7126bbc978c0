"""`insights`: what fails most and where time goes, over all sessions of a project (SPEC 10)."""

import argparse
import json
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from code_intel_server.cli.console import guarded, parser, scaffolded_root, show
from code_intel_server.cli.words import TITLE_WIDTH, TITLES, duration, quantity
from code_intel_server.common.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from code_intel_server.cli.pages.tally import Tally
    from code_intel_server.tools.services import ProjectServices

_TOP = 10


def main(arguments: list[str]) -> int:
    """Say what the project's sessions have in common."""
    made = parser("insights", "What fails most and where time goes, over all sessions of a project.")
    made.add_argument(
        "--html", action="store_true", help="as a self-contained HTML page, with a report of each session"
    )
    made.add_argument("--out", metavar="FILE", help="where to write the page; - for standard output")
    made.add_argument("--json", action="store_true", help="as JSON")
    options = made.parse_args(arguments)
    return guarded(lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    from code_intel_server.cli.pages.tally import tally
    from code_intel_server.tools.services import ProjectServices

    services = ProjectServices(scaffolded_root(options.project))
    found = tally(services)
    found.notes += _going_on(services.root)
    if options.html or options.out:
        print(*filter(None, [_write(services, found, options.out)]), sep="", end="")
    elif options.json:
        print(json.dumps(found.as_json(), ensure_ascii=True, indent=2))
    else:
        for line in lines(found):
            show(printable(line), indent=8)
    return 0


def _write(services: "ProjectServices", found: "Tally", out: str | None) -> str:
    """Write the page and the reports it links to; where it is, as a line, '' for standard output."""
    from code_intel_server.cli.pages.render import render_page
    from code_intel_server.cli.report import reports_folder, write_page, write_report

    reports: dict[str, str] = {}
    if out != "-":
        beside = Path(out).expanduser().absolute().parent if out else reports_folder(services)
        for one in found.trend:
            if one.kept and (path := write_report(services, one.session_id)):
                reports[one.session_id] = os.path.relpath(path, beside)
    page = render_page("insights.html", tally=found, project=services.root.name, reports=reports)
    path = write_page(page, out, reports_folder(services) / "insights.html")
    return f"{path}\n" if path else ""


def _going_on(root: "Path") -> list[str]:
    """What is counted although it is not over."""
    from code_intel_server.cli.status.view import read_view

    return [
        f"“{' '.join(str(one.state['query']).split())[:100]}” is {'going on' if one.live else 'interrupted'} at step"
        f" {one.step}, {one.title}: what it did so far is counted."
        for one in read_view(root).sessions[:5]
    ]


def lines(found: "Tally") -> "Iterator[str]":
    """The insights as plain text."""
    from code_intel_server.cli.pages.tally import counts_in_words

    if not found.sessions:
        yield "There is no session yet."
        yield from found.notes
        return
    ends = ", ".join(f"{count} {end}" for end, count in found.ends.most_common())
    yield f"{quantity(found.sessions, 'session')}{f' ({ends})' if ends else ''}, {found.looping} of them went back"
    yield from ("", f"{'Step':<{TITLE_WIDTH + 3}} accepted refused back     time   median")
    for number, step in sorted(found.steps.items()):
        yield (
            f"{number:>2} {TITLES.get(number, ''):<{TITLE_WIDTH}} {step.accepted:>8} {step.refusals.total():>7}"
            f" {step.loops.total():>4} {duration(step.total):>8} {duration(step.median):>8}"
        )
    yield from _ranked("What was refused", counts_in_words(found.refusals))
    yield from _ranked("Why sessions went back", counts_in_words(found.loops))
    yield from _ranked("What sessions failed on", found.failures)
    if found.trend:
        yield from ("", "The last sessions, newest first")
        for one in reversed(found.trend):
            yield f"  {one.outcome:<10} {' '.join(one.request.split())[:150] or one.session_id}"
    yield from ("", *found.notes) if found.notes else ()


def _ranked(title: str, counts: Counter[str]) -> "Iterator[str]":
    if counts:
        yield from ("", title)
        yield from (f"{count:>6}  {' '.join(said.split())[:150]}" for said, count in counts.most_common(_TOP))
