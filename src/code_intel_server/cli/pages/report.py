"""The report of one session as a page: what was asked, what came of it and what that rests on, then how (SPEC 12)."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from code_intel_server.cli.pages.record import Fields, SessionRecord, Submit, mapping, row_list, text, text_list
from code_intel_server.cli.pages.render import render_page
from code_intel_server.cli.words import TITLES, VERDICTS, duration, flag_typed, quantity
from code_intel_server.flow.checks.disposal import CHANGED, undecided
from code_intel_server.flow.phases import LAST_STEP

_ROW = 20
_TITLE_CHARACTERS = 160
_OPEN_FILES, _OPEN_EVIDENCE = 8, 6
_REMARKS = {
    "There while it was proven, but not in the commit": "beside",
    "Left uncommitted on purpose": "left",
    "Committed otherwise than it was reviewed, by a filter or hook": "altered",
    "Changed again after the report that showed it": "reworked",
    "Tasks that a later plan dropped": "dropped",
    "Tasks whose every item was skipped although files changed": "only_skipped",
}


def report_page(record: SessionRecord, project: str = "") -> str:
    """The whole page."""
    files = [*changed_files(text(record.diff, "text"))]
    title, rest = _title(record.request)
    kind, said = record.outcome
    return render_page(
        "report.html",
        record=record,
        project=project,
        title=title or f"Session {record.session_id}",
        rest=rest,
        kind=kind,
        outcome=said,
        branch=mapping(record.state, "task_branch"),
        flags=_flags(record),
        files=files,
        untracked=[] if files else sorted({text(used, "path") for used in record.evidence} - {""}),
        remarks=[(what, "; ".join(found)) for what, found in _remarks(record.state).items() if found],
        items=[
            text(item, "status") for task in row_list(record.state, "tasks") for item in row_list(task, "checklist")
        ],
        course=course(record),
        open_files=len(files) <= _OPEN_FILES,
        open_evidence=len(record.evidence) <= _OPEN_EVIDENCE,
    )


def _remarks(state: Fields) -> dict[str, list[str]]:
    """What a reader should know of the session's end, each with its files or places."""
    said = {entry: str(words) for entry, words in mapping(state, "must_verify").items()}
    explained = [f"{entry.partition(' ')[2]} ({words})" for entry, words in said.items() if words not in {"", CHANGED}]
    decisions = [f"{what} ({author})" for what, author in mapping(state, "decisions").items()]
    return {
        "Decided, and whose word that is": decisions,
        **{what: text_list(state, name) for what, name in _REMARKS.items()},
        "Reported, and gone at the commit": [f"{item} ({why})" for item, why in mapping(state, "undone").items()],
        "Configuration": ["trusted earlier, and another content since"] if state.get("earlier_config") is True else [],
        "To be verified by the impact, and undecided": undecided(said),
        "To be verified by the impact, and unaffected": explained,
    }


def _title(request: str) -> tuple[str, str]:
    """The first line of a request, and what a heading has no room for."""
    first, _, rest = request.strip().partition("\n")
    return (first, rest.strip()) if len(first) <= _TITLE_CHARACTERS else (f"{first[:_TITLE_CHARACTERS]}…", request)


def _flags(record: SessionRecord) -> list[str]:
    given = mapping(record.state, "flags").items()
    return [flag_typed(name, value) for name, value in given if value not in (False, "auto")]


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """One file of a diff: its path, what became of it, and its lines, each with its kind (add, cut, head or '')."""

    path: str
    became: str
    lines: list[tuple[str, str]]

    def count(self, kind: str) -> int:
        """How many lines were added, or cut."""
        return sum(one == kind for one, _ in self.lines)


def changed_files(diff: str) -> Iterator[ChangedFile]:
    """The files of a diff as git writes it."""
    for part in f"\n{diff}".split("\ndiff --git ")[1:]:
        first, *lines = part.rstrip("\n").split("\n")
        hunks = next((number for number, line in enumerate(lines) if line.startswith("@@")), len(lines))
        head = [("head", line) for line in lines[:hunks]]
        names = {line[:4]: line[4:].partition("/")[2] for _, line in head if line[4:] != "/dev/null"}
        became = [word for _, line in head for start, word in _BECAME.items() if line.startswith(start)]
        path = names.get("+++ ") or names.get("--- ") or first.rpartition(" b/")[2]
        marked = [(_KINDS.get(line[:1], ""), line) for line in lines[hunks:]]
        yield ChangedFile(path.rstrip('\t"'), " ".join(became), [*head, *marked])


_BECAME = {"new file": "new", "deleted file": "deleted", "rename to": "renamed"}
_KINDS = {"+": "add", "-": "cut", "@": "head"}


@dataclass(frozen=True, slots=True)
class Course:
    """The way of a session over the 19 steps: a drawing, and for each step what it took.

    A column of `width` for each accepted submit, `ROW` high rows for the steps; `ways` are lines (class, x, y, x, y),
    `dots` are (class, x, y, in words).
    """

    said: str
    width: int
    height: int
    ways: list[tuple[str, int, int, int, int]]
    dots: list[tuple[str, int, int, str]]
    steps: list[tuple[int, str, str]]


def course(record: SessionRecord) -> Course | None:
    """The drawing; None where nothing was submitted."""
    way = record.accepted
    if not way:
        return None
    points = [(0, 1), *((_ROW * number, one.step) for number, one in enumerate(way, 1))]
    at = [(x + _ROW // 2, _ROW * (step - 1) + _ROW // 2) for x, step in points]
    pairs = zip(itertools.pairwise(at), [None, *way], strict=False)
    seen = {1, *(one.step for one in way)}
    back = f"; went back {quantity(len(record.loops), 'time')}" if record.loops else ""
    return Course(
        said=f"{quantity(len(way), 'accepted submit')} over {len(seen)} of {LAST_STEP} steps{back}",
        width=_ROW * (len(way) + 1),
        height=_ROW * LAST_STEP,
        ways=[("loop" if one and one.loops else "way", *start, *stop) for (start, stop), one in pairs],
        dots=[
            (
                _dot(one, record, last=one is way[-1]),
                *point,
                f"{TITLES.get(one.step, '')}: {VERDICTS.get(one.event, 'accepted')}, {duration(one.seconds)}",
            )
            for one, point in zip(way, at[1:], strict=True)
        ],
        steps=[(step, *_spent(record, step, seen)) for step in range(1, LAST_STEP + 1)],
    )


def _dot(one: Submit, record: SessionRecord, *, last: bool) -> str:
    if last and record.end:
        return f"end {record.outcome[0]}"
    return "back" if one.loops else ""


def _spent(record: SessionRecord, step: int, seen: set[int]) -> tuple[str, str]:
    """(class, time) of one step."""
    if step == record.step and not record.end:
        return "here", "here now"
    if step not in seen:
        return "dim", "by a flag" if step in record.skipped else "–"
    known = [one.seconds for one in record.accepted if one.step == step and one.seconds is not None]
    refused = sum(one.step == step for one in record.refused)
    return ("refused" if refused else ""), duration(sum(known)) if known else ""
