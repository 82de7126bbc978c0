"""HTML for people: one self-contained page without script or network, everything that is not ours escaped."""

import html
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from code_intel_server.printable import printable

# A page may load and run nothing at all: what slipped through the escaping would still do nothing.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def esc(value: object) -> str:
    """Any text, made harmless for HTML text and attributes; control and invisible characters are shown."""
    return html.escape(printable(str(value)), quote=True)


def page(title: str, header: str, sections: Sequence[tuple[str, str, str]]) -> str:
    """A whole document. `sections` are (anchor, heading, HTML); empty ones are left out."""
    shown = [section for section in sections if section[2]]
    links = "".join(f'<li><a href="#{anchor}">{esc(name)}</a></li>' for anchor, name, _ in shown)
    parts = "\n".join(
        f'<section id="{anchor}" aria-labelledby="h-{anchor}"><h2 id="h-{anchor}">{esc(name)}</h2>\n{body}\n</section>'
        for anchor, name, body in shown
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{esc(title)}</title>
<style>
{_style()}
</style>
</head>
<body>
<a class="skip" href="#main">To the content</a>
<header>
{header}
<nav aria-label="Sections"><ul>{links}</ul></nav>
</header>
<main id="main">
{parts}
</main>
</body>
</html>
"""


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column names its rows. Cells are HTML: escape them. '' without rows."""
    body = "\n".join(
        f'<tr><th scope="row">{row[0]}</th>{"".join(f"<td>{cell}</td>" for cell in row[1:])}</tr>' for row in rows
    )
    if not body:
        return ""
    top = "".join(f'<th scope="col">{esc(name)}</th>' for name in head)
    inner = f"<table><caption>{esc(caption)}</caption><thead><tr>{top}</tr></thead><tbody>\n{body}\n</tbody></table>"
    return scrolling(caption, inner)


def scrolling(label: str, inner: str, kind: str = "wide") -> str:
    """A region that scrolls sideways, by keyboard too."""
    return f'<div class="{kind}" role="region" aria-label="{esc(label)}" tabindex="0">{inner}</div>'


def tiles(figures: Iterable[tuple[str, object]]) -> str:
    """Figures in boxes."""
    boxes = "".join(f"<div><dt>{esc(name)}</dt><dd>{esc(value)}</dd></div>" for name, value in figures)
    return f'<dl class="tiles">{boxes}</dl>'


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """Names and HTML values; rows without a value are left out."""
    shown = "".join(f"<div><dt>{esc(name)}</dt><dd>{value}</dd></div>" for name, value in rows if value)
    return f'<dl class="facts">{shown}</dl>' if shown else ""


def bar(share: float, label: str) -> str:
    """A horizontal bar, 0 to 1, with what it stands for in words."""
    width = round(max(0.0, min(1.0, share)) * 100, 1)
    filled = f'<rect class="fill" width="{width}" height="8"/>'
    drawn = f'<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true"><rect class="track" width="100" height="8"/>{filled}</svg>'
    return f'<span class="barred">{drawn}<span>{esc(label)}</span></span>'


def key(name: str) -> str:
    """A dotted name as code, to be broken at its joints only."""
    joints = str.maketrans({".": ".<wbr>", "_": "_<wbr>"})
    return f"<code>{esc(name).translate(joints)}</code>"


def folded(summary: str, inner: str, *, opened: bool = False) -> str:
    """Something to unfold; `summary` and `inner` are HTML."""
    return f"<details{' open' if opened else ''}><summary>{summary}</summary>\n{inner}\n</details>"


def mark(text: str, kind: str) -> str:
    """A badge: `kind` is good, warn, bad or plain."""
    return f'<span class="mark {kind}">{esc(text)}</span>'


def quoted(label: str, content: object) -> str:
    """Text as it is, in a box that scrolls."""
    return f'<pre role="region" aria-label="{esc(label)}" tabindex="0">{esc(content)}</pre>'


@cache
def _style() -> str:
    return Path(__file__).with_name("page.css").read_text(encoding="utf-8").strip()
