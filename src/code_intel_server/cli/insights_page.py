"""Insights as a page: what fails most, and where time goes (SPEC 10)."""

from collections import Counter
from statistics import median

from code_intel_server.cli.page import bar, esc, key, mark, page, scrolling, table, tiles
from code_intel_server.cli.record import LOOP_EVENTS, STEP_NAMES, duration
from code_intel_server.cli.tally import Tally, kind_of


def insights_page(project: str, counted: Tally) -> str:
    """The whole page."""
    notes = "".join(f"<p>{mark('note', 'warn')} {esc(note)}</p>" for note in counted.notes)
    lead = "What fails most, and where time goes." if counted.sessions else "There is no session yet."
    return page(
        f"Insights: {project}",
        f'<h1>Insights: {esc(project)}</h1><p class="lead">{lead}</p>{notes}',
        [
            ("figures", "Figures", _figures(counted) if counted.sessions else ""),
            ("trend", "Outcomes", _trend(counted)),
            ("phases", "Steps", _phases(counted)),
            ("refusals", "Refusals", _ranked("Refusals by key", "Key", counted.refusals)),
            (
                "loops",
                "Loops",
                _ranked(
                    "Why sessions went back", "Why", Counter({LOOP_EVENTS[k]: n for k, n in counted.loops.items()})
                ),
            ),
            ("evidence", "Evidence", _ranked("Refused evidence by key", "Key", counted.evidence)),
            (
                "failures",
                "What sessions failed on",
                _ranked("In the words of the sessions", "Failure", counted.failures),
            ),
            ("tools", "Tools per phase", _tools(counted)),
        ],
    )


def _figures(counted: Tally) -> str:
    return tiles(
        [
            ("sessions", counted.sessions),
            *counted.ends.most_common(),
            ("with loops", counted.looping),
            ("ways back", counted.loops.total()),
            ("refused submits", counted.refusals.total()),
            ("refused evidence", counted.evidence.total()),
        ]
    )


def _trend(counted: Tally) -> str:
    """A column for each of the last sessions; the words are in the table below it."""
    if not counted.trend:
        return ""
    heights = {"success": 40, "partial": 26, "other": 14, "wrong": 40}
    columns = "".join(
        f'<rect class="{kind_of(outcome)}" x="{n * 22}" y="{44 - heights[kind_of(outcome)]}" width="16" height="{heights[kind_of(outcome)]}"><title>{esc(session_id)}: {esc(outcome)}</title></rect>'
        for n, (session_id, outcome) in enumerate(counted.trend)
    )
    names = Counter(outcome for _, outcome in counted.trend)
    said = ", ".join(f"{name}: {count}" for name, count in names.most_common())
    width = len(counted.trend) * 22
    drawn = f'<svg class="columns" width="{width}" height="46" viewBox="0 0 {width} 46" role="img" aria-label="{esc(said)}">{columns}</svg>'
    rows = (
        (
            esc(session_id),
            mark(outcome, {"success": "good", "wrong": "bad", "partial": "warn"}.get(kind_of(outcome), "plain")),
        )
        for session_id, outcome in reversed(counted.trend)
    )
    return (
        f"<p>The last {len(counted.trend)} sessions, oldest first. {esc(said)}.</p>{scrolling('Outcome of the last sessions', drawn)}"
        + table("Each session", ("Session", "Outcome"), rows)
    )


def _phases(counted: Tally) -> str:
    longest = max((sum(phase.seconds) for phase in counted.phases.values()), default=0.0) or 1.0
    return table(
        "Each step over all sessions",
        ("Step", "Accepted", "Refused", "Ways back", "Fails most on", "Time in all", "Median stay"),
        (
            (
                f"{step} {esc(STEP_NAMES.get(step, ''))}",
                str(phase.accepted),
                str(phase.refusals.total()),
                str(phase.loops.total()),
                key(phase.worst) if phase.worst else "",
                bar(sum(phase.seconds) / longest, duration(sum(phase.seconds))),
                duration(median(phase.seconds) if phase.seconds else None),
            )
            for step, phase in sorted(counted.phases.items())
        ),
    )


def _ranked(caption: str, head: str, counts: Counter[str]) -> str:
    most = max(counts.values(), default=1)
    return table(
        caption,
        (head, "How often"),
        ((key(name), bar(count / most, str(count))) for name, count in counts.most_common(20)),
    )


def _tools(counted: Tally) -> str:
    return table(
        "Calls over all sessions",
        ("Phase", "Tool", "Calls"),
        (
            (esc(phase), f"<code>{esc(tool)}</code>", str(calls))
            for phase, tools in counted.tools.items()
            for tool, calls in tools.most_common()
        ),
    )
