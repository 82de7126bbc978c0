"""Templates filled: the one place that knows Jinja2."""

from functools import cache
from pathlib import Path

from jinja2 import ChainableUndefined, Environment, FileSystemLoader
from markupsafe import Markup

from code_intel_server.cli.pages.record import row_list, text_list
from code_intel_server.cli.pages.tally import counts_in_words
from code_intel_server.cli.words import TITLES, duration, moment, quantity
from code_intel_server.common.printable import printable
from code_intel_server.flow.phases import READY_COMPLETE, READY_PLAN, STEPS
from code_intel_server.workspace.state.checkpoints import is_id


def render_page(name: str, **values: object) -> str:
    """A page from its template. What is missing from a record reads as empty."""
    return _environment().get_template(name).render(values)


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=ChainableUndefined,
        finalize=_harmless,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {"titles": TITLES, "counted": quantity, "in_words": counts_in_words}
    made.filters |= {
        "rows": row_list,
        "texts": text_list,
        "duration": duration,
        "day": _day,
        "clock": _clock,
        "phase": phase_title,
        "started": _started,
    }
    return made


def _harmless(value: object) -> object:
    """Any text with control and invisible characters shown; Jinja2 escapes it for HTML after that."""
    if value is None:
        return ""
    return value if isinstance(value, Markup) else printable(str(value))


def _day(at: object) -> str:
    """A time of the log with its day, as people write it; what is none as it is."""
    return f"{at[:10]} {at[11:16]} UTC" if isinstance(at, str) and moment(at) and at.endswith("+00:00") else str(at)


def _started(session_id: object) -> str:
    """When a session began, as its id tells."""
    said = str(session_id)
    return f"{said[:4]}-{said[4:6]}-{said[6:8]} {said[9:11]}:{said[11:13]}" if is_id(said) else ""


def phase_title(key: str) -> str:
    """A phase, or the key of a summary (`step_13_READY_IMPLEMENTATION.t1`), as people read it."""
    name, _, task = key.partition(".")
    step = int(name[5:7]) if name[:5] == "step_" and name[5:7].isdigit() else _PHASES.get(name, 0)
    return f"{TITLES.get(step, name)}{f', {task}' if task else ''}"


_PHASES = {str(place.phase): step for place, step in STEPS.items() if place not in {READY_PLAN, READY_COMPLETE}}


def _clock(at: object) -> str:
    """The time of day of a time of the log."""
    return str(at)[11:19] if moment(at) else str(at)
