"""The course of a session as a drawing: a row for each of the 19 steps, a column for each accepted submit, loops leading back."""

import itertools
from collections.abc import Sequence

from code_intel_server.cli.page import esc, scrolling
from code_intel_server.cli.record import LOOP_EVENTS, STEP_NAMES, Visit, duration
from code_intel_server.flow.phases import LAST_STEP

Point = tuple[int, int]

_LEFT, _TOP, _ROW = 200, 26, 24
_WIDEST, _NARROWEST, _AIMED = 60, 16, 800


def drawn(visits: Sequence[Visit], end: str) -> str:
    """The drawing as SVG in a region that scrolls; '' where nothing was submitted."""
    if not visits:
        return ""
    column = max(_NARROWEST, min(_WIDEST, _AIMED // (len(visits) + 1)))
    width, height = _LEFT + column * (len(visits) + 1) + 20, _TOP + _ROW * LAST_STEP + 20
    seen = {1, *(visit.step for visit in visits)}
    points = [(_LEFT, _y(1)), *((_LEFT + column * visit.number, _y(visit.step)) for visit in visits)]
    parts = [
        *(_row(step, width, reached=step in seen) for step in range(1, LAST_STEP + 1)),
        *_ways(points, visits),
        f'<circle cx="{points[0][0]}" cy="{points[0][1]}" r="4"/>',
        *(
            _dot(visit, point, end if visit is visits[-1] else "")
            for visit, point in zip(visits, points[1:], strict=True)
        ),
    ]
    said = f"{len(visits)} accepted submits over {len(seen)} of 19 steps, ways back: {sum(v.loops for v in visits)}."
    svg = (
        f'<svg class="course" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{esc(said)}">\n' + "\n".join(parts) + "\n</svg>"
    )
    return (
        f"<p>{esc(said)} From left to right: accepted submits; dashed: the session went back, and went on from the dot at the end of the dotted line. A ring marks a step with refusals.</p>\n"
        + scrolling("The course of the session", svg)
    )


def _y(step: int) -> int:
    return _TOP + _ROW * (step - 1)


def _row(step: int, width: int, *, reached: bool) -> str:
    kind = "" if reached else ' class="dim"'
    return (
        f'<line class="grid" x1="{_LEFT - 8}" y1="{_y(step)}" x2="{width}" y2="{_y(step)}"/>'
        f'<text x="0" y="{_y(step) + 4}"{kind}>{step:>2} {esc(STEP_NAMES[step])}</text>'
    )


def _ways(points: Sequence[Point], visits: Sequence[Visit]) -> list[str]:
    """A line to each visit from the one before it; where the session went back, a loop to where it had been before."""
    ways: list[str] = []
    loops = 0
    for index, (start, stop) in enumerate(itertools.pairwise(points)):
        came_from = visits[index - 1] if index else None
        if came_from is not None and came_from.loops:
            loops += 1
            before = next((point for point in reversed(points[1:index]) if point[1] == stop[1]), None)
            ways.append(_loop(start, before or stop, came_from, loops))
            if before:
                ways.append(f'<path class="again" d="M{before[0]} {before[1]} L{stop[0]} {stop[1]}"/>')
        else:
            ways.append(f'<path class="way" d="M{start[0]} {start[1]} L{stop[0]} {stop[1]}"/>')
    return ways


def _loop(start: Point, stop: Point, visit: Visit, count: int) -> str:
    """An arc below the way it closes, up to an arrow on the earlier step, with its number."""
    (x1, y1), (x2, y2) = start, stop
    near, far = (x1 - (x1 - x2) // 2, y1 + 16), (x2 - 4, y1 + 4)
    middle = ((x1 + 3 * near[0] + 3 * far[0] + x2) // 8, (y1 + 3 * near[1] + 3 * far[1] + y2) // 8)
    path = f"M{x1} {y1} C{near[0]} {near[1]}, {far[0]} {far[1]}, {x2} {y2 + 14}"
    name = f"{LOOP_EVENTS[visit.event]}: back from step {visit.step} to {visit.next_step}"
    return (
        f'<g><title>{esc(name)}</title><path class="loop" d="{path}"/>'
        f'<path class="tip" d="M{x2} {y2 + 6} l-5 10 h10 z"/>'
        f'<text class="loop-name" x="{middle[0] - 10}" y="{middle[1] + 12}">{count}</text></g>'
    )


def _dot(visit: Visit, point: Point, end: str) -> str:
    refused = f", {len(visit.refusals)} refused before" if visit.refusals else ""
    name = (
        f"{visit.number}. {STEP_NAMES.get(visit.step, visit.step)}: {visit.event}, {duration(visit.seconds)}{refused}"
    )
    kinds = ["refused"] if visit.refusals else []
    if end:
        kinds += ["end"] if end == "SESSION_COMPLETE" else ["end", "broken"]
    kind = f' class="{" ".join(kinds)}"' if kinds else ""
    radius = 7 if end else 5
    return f'<circle{kind} cx="{point[0]}" cy="{point[1]}" r="{radius}"><title>{esc(name)}</title></circle>'
