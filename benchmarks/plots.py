"""Small line plots as SVG, readable on light and dark pages: both axes logarithmic, every series named at its last point."""

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

WIDTH, HEIGHT = 680, 380
LEFT, RIGHT, TOP, BOTTOM = 62, 210, 40, 48
COLOURS = ("#2f81f7", "#db6d28", "#3fb950", "#a371f7", "#d29922")
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#57606a}.t{font-size:14px;font-weight:600;fill:#24292f}"
    ".g{stroke:#d0d7de;stroke-width:1}@media(prefers-color-scheme:dark){text{fill:#8b949e}.t{fill:#e6edf3}.g{stroke:#30363d}}"
)


@dataclass(frozen=True)
class Series:
    """A name and its points (x, y), all above zero."""

    name: str
    points: Sequence[tuple[float, float]]
    dashed: bool = False


def draw(path: Path, title: str, across: str, up: str, series: Sequence[Series]) -> None:
    """Write the plot."""
    xs = [x for one in series for x, _ in one.points]
    ys = [y for one in series for _, y in one.points]
    left, right = math.log10(min(xs)), math.log10(max(xs))
    low, high = math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys)))

    def at(x: float, y: float) -> tuple[float, float]:
        wide = (math.log10(x) - left) / ((right - left) or 1)
        tall = (math.log10(y) - low) / ((high - low) or 1)
        return LEFT + wide * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - tall * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{html.escape(title)}">',
        f"<style>{STYLE}</style>",
        f'<text class="t" x="{LEFT}" y="20">{html.escape(title)}</text>',
    ]
    for power in range(low, high + 1):
        _, y = at(10**left, 10**power)
        parts.append(f'<line class="g" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{10**power:,g}</text>')
    for x in sorted(set(xs)):
        place, _ = at(x, 10**low)
        parts.append(f'<text x="{place:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{_short(x)}</text>')
    parts.append(f'<text x="{LEFT}" y="{HEIGHT - 8}">{html.escape(across)}</text>')
    parts.append(f'<text x="{LEFT}" y="34">{html.escape(up)}</text>')
    ends: list[tuple[float, float]] = []
    for number, one in enumerate(sorted(series, key=lambda each: -each.points[-1][1])):
        colour = COLOURS[number % len(COLOURS)]
        places = [at(x, y) for x, y in one.points]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        dash = ' stroke-dasharray="5 4"' if one.dashed else ""
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2"{dash} points="{line}"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        x, y = places[-1]
        y = max([y, *(end + 15 for at, end in ends[-1:] if at == x)])  # below the name before it
        ends.append((x, y))
        parts.append(f'<text x="{x + 8:.1f}" y="{y + 4:.1f}" style="fill:{colour}">{html.escape(one.name)}</text>')
    path.write_text("".join(parts) + "</svg>\n", encoding="utf-8")


def _short(value: float) -> str:
    return f"{value / 1000:.3g}k" if value >= 1000 else f"{value:g}"
