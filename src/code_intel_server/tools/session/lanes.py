"""Lanes: how much of the flow a change is led through where no flag of the call says so (SPEC 3.2).

A lane is a set of flags, so what it leaves out is named as for any flag. Which one fits is advised from what is cheaply known:
in how many files the names of the request stand (size and fan-in at once), and whether any command proves the work (risk).
"""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from code_intel_server.codebase.files.languages import language_of
from code_intel_server.codebase.issue_report import read_report
from code_intel_server.errors import CodeIntelError
from code_intel_server.flow.phases import Flags, GateLevel
from code_intel_server.flow.transitions import Route
from code_intel_server.flow.turn import Note
from code_intel_server.tools.services import ProjectServices, SessionSettings

FEW_FILES = 5
LANE_SECONDS = 0.5
NAMES_AT_MOST = 5
_LETTERS = 2_000
_SHOWN = 60
_NOTHING_KNOWN = "lanes.nothing_known"
"""What is advised where a request names nothing, and so only said where the session would not explore."""


class Lane(StrEnum):
    """The lanes, from the shortest to the longest."""

    QUICK = "quick"
    FAST = "fast"
    AUTO = "auto"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Advice:
    """The lane that fits and the note that says why."""

    lane: Lane
    why: Note


def with_lane(flags: Flags, lane: Lane) -> Flags:
    """The flags, with those of a lane."""
    gate = GateLevel.FULL if lane is Lane.FULL else flags.gate_level
    if lane is Lane.QUICK and flags.worktree:
        lane = Lane.FAST  # quick does not commit, and what is not committed is not taken over
    return replace(flags, gate_level=gate, quick=lane is Lane.QUICK, fast=lane is Lane.FAST)


def route_in_lane(
    services: ProjectServices, settings: SessionSettings, query: str, route: Route, *, chosen: bool
) -> tuple[Route, Note | None]:
    """The route in the configured lane, and what to report of lanes; as it is where the call has `chosen` or changes nothing."""
    if chosen or route.investigating or route.flags.only_verify:
        return route, None
    advice = advise(services, settings, query)
    configured = settings.config.config.lane
    lane = (advice.lane if advice else Lane.AUTO) if configured == "advised" else Lane(configured)
    led = replace(route, flags=with_lane(route.flags, lane))
    return led, _lane_note(settings, advice, lane) if advice else None


def _lane_note(settings: SessionSettings, advice: Advice, runs: Lane) -> Note | None:
    if advice.lane is runs:
        return None if runs is Lane.AUTO else advice.why  # that the usual way fits tells nobody anything
    by_gate = advice.lane in {Lane.AUTO, Lane.FULL}
    flag = f"gate_level={advice.lane}" if by_gate else str(advice.lane)
    why = settings.contract.message(advice.why.key, advice.why.params).text
    return Note("lanes.another", {"why": why, "runs": runs, "flag": flag})


def code_names_in(query: str) -> list[str]:
    """What a request names as code does: set apart, a path, a call, a word of mixed or joined parts."""
    report = read_report(query[:_LETTERS])
    return [*dict.fromkeys(name.strip("./") for name in (*report.names, *report.paths))][:NAMES_AT_MOST]


def advise(services: ProjectServices, settings: SessionSettings, query: str) -> Advice | None:
    """The lane that fits a request; None where nobody could look in time."""
    names = code_names_in(query)
    found: Sequence[str] | None = None if names else ()
    if names:
        with contextlib.suppress(CodeIntelError, OSError):
            found = services.explorer.files_mentioning([*map(_word, names)], LANE_SECONDS)
    if found is None:
        return None
    if not found:
        return Advice(Lane.AUTO, Note(_NOTHING_KNOWN, {"lane": Lane.AUTO}))
    return lane_for_names(names, len(found), proven=bool(settings.config.config.verify_commands))


def _word(name: str) -> str:
    """What others write who use it: the stem of a file, the last part of a dotted name."""
    last = name.rsplit("/", 1)[-1]
    return last.split(".")[0] if last != name or language_of(name) else name.rsplit(".", 1)[-1]


def lane_for_names(names: Sequence[str], files: int, *, proven: bool) -> Advice:
    """The lane for names that are in so many files; without a command that proves the work the shortest is too short."""
    if files == 1 and not proven:
        return _advice(Lane.FAST, "unproven", names, files)
    # In many files it is auto that decides by what it finds: a name may only be an example ("as `app.get`").
    lane = Lane.QUICK if files == 1 else Lane.FAST if files <= FEW_FILES else Lane.AUTO
    return _advice(lane, "stands_in", names, files)


def _advice(lane: Lane, why: str, names: Sequence[str] = (), files: int = 0) -> Advice:
    return Advice(lane, Note(f"lanes.{why}", {"lane": lane, "names": ", ".join(names)[:_SHOWN], "files": files}))
