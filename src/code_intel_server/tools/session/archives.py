"""The archive of sessions that are over: one compact file each under `.code-intel/logs/sessions/` (SPEC 10).

It holds what `report`, `insights`, `record_outcome` and `lessons` need once checkpoint, ledger and snapshots are gone. The
same record is gathered of a session that still runs, so that a report of it reads alike.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import JsonValue

from code_intel_server.errors import CodeIntelError
from code_intel_server.flow.session import SessionState, UsedRange
from code_intel_server.workspace.files import read_regular, write_whole
from code_intel_server.workspace.state.checkpoints import is_id, valid_id

if TYPE_CHECKING:
    from code_intel_server.tools.services import ProjectServices
    from code_intel_server.workspace.values import LedgerEntry

SCHEMA = 1
MAX_ARCHIVE_BYTES = 512 * 1024
KEPT_ARCHIVES = 200
_KEPT_IN = ("logs", "sessions")
MAX_DECISIONS = 1000
_DECISIONS_SEARCHED = 5000
_DIFF_CHARACTERS = 128 * 1024
_EVIDENCE_LINES = 60
_LINE_CHARACTERS = 300

ArchiveRecord = dict[str, JsonValue]


def gather(
    services: "ProjectServices", state: SessionState, entries: Sequence["LedgerEntry"], end: str, at: str
) -> ArchiveRecord:
    """What a report shows of a session. `end` is '' for one that is not over."""
    return {
        "schema": SCHEMA,
        "session_id": state.session_id,
        "end": end,
        "ended_at": at,
        "state": state.layout(),
        "tools": _tools(entries),
        "decisions": decisions_of(services, state.session_id),
        "evidence": [_evidence(services, state, used) for used in state.used_ranges],
        "diff": _diff(services, state),
    }


def archive(
    services: "ProjectServices", state: SessionState, entries: Sequence["LedgerEntry"], end: str, at: str
) -> None:
    """Keep what a report needs of a session that is over; at most 512 KB a session, 200 sessions.

    Raises UserActionNeeded('tool_errors.generic.state_folder_unsafe') where a link leads elsewhere: old files are removed here.
    """
    folder = services.project.writable(*_KEPT_IN)
    write_whole(folder / f"{state.session_id}.json", _within_limit(gather(services, state, entries, end, at)))
    for old in finished_sessions(services)[KEPT_ARCHIVES:]:
        (folder / f"{old}.json").unlink(missing_ok=True)


def archive_folder(services: "ProjectServices") -> Path:
    """Where finished sessions are kept."""
    return services.project.home_folder.joinpath(*_KEPT_IN)


def read_archive(services: "ProjectServices", session_id: str) -> ArchiveRecord | None:
    """A finished session as it was kept; None where there is none."""
    try:
        record = json.loads(
            read_regular(archive_folder(services) / f"{valid_id(session_id)}.json", MAX_ARCHIVE_BYTES * 2)
        )
    except (OSError, ValueError, RecursionError, CodeIntelError):
        return None
    return record if isinstance(record, dict) else None


def finished_sessions(services: "ProjectServices") -> list[str]:
    """The ids of the sessions that are over, newest first."""
    folder = archive_folder(services)
    found = (path.stem for path in folder.glob("*.json")) if folder.is_dir() else ()
    return sorted(filter(is_id, found), reverse=True)


def decisions_of(services: "ProjectServices", session_id: str) -> list[JsonValue]:
    """The decisions of one session that the log still holds, oldest first, at most MAX_DECISIONS."""
    rows = (row for row in services.decisions.tail(_DECISIONS_SEARCHED).records if row.get("session_id") == session_id)
    return [json.loads(json.dumps(row)) for row in rows][-MAX_DECISIONS:]


def _tools(entries: Sequence["LedgerEntry"]) -> JsonValue:
    """Phase → tool → how often it was called, how often that failed, how many rows it gave."""
    counted: dict[str, dict[str, dict[str, int]]] = {}
    for call in entries:
        row = counted.setdefault(call.phase, {}).setdefault(call.tool, {"calls": 0, "failed": 0, "results": 0})
        row["calls"] += 1
        row["failed"] += call.outcome != "ok"
        row["results"] += call.results
    shaped: JsonValue = json.loads(json.dumps(counted))
    return shaped


def _evidence(services: "ProjectServices", state: SessionState, used: UsedRange) -> JsonValue:
    """The lines that an item was accepted for, as they were then; of a file that was deleted, as they had been."""
    then = state.trees.by_task.get(used.task_id) or state.trees.judged
    text, version = _lines(services, then, used.path), "reported"
    if text is None:
        text, version = _lines(services, state.trees.base, used.path), "before"
    wanted = (text or ())[used.start - 1 : used.end]
    return {
        **used.model_dump(),
        "version": version if text is not None else "none",
        "lines": [line[:_LINE_CHARACTERS] for line in wanted[:_EVIDENCE_LINES]],
        "cut": max(0, len(wanted) - _EVIDENCE_LINES),
    }


def _lines(services: "ProjectServices", snapshot: str, path: str) -> tuple[str, ...] | None:
    if not snapshot:
        return None
    try:
        return services.tree.lines(snapshot, path)
    except (CodeIntelError, OSError):
        return None


def _diff(services: "ProjectServices", state: SessionState) -> JsonValue:
    """What the session committed, from where its branch began to its last commit."""
    git, branch = services.git, state.task_branch
    if isinstance(git, str) or branch is None or not state.commits:
        return None
    try:
        words = ("diff", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=none", "-M")
        done = git.run(*words, branch.base_oid, state.commits[-1], "--")
    except (CodeIntelError, OSError):
        return None
    text = done.stdout.decode("utf-8", "replace") if done.ok else ""
    return {
        "base": branch.base_oid,
        "tip": state.commits[-1],
        "into": branch.base,
        "text": text[:_DIFF_CHARACTERS],
        "cut": max(0, len(text) - _DIFF_CHARACTERS),
    }


def _within_limit(record: ArchiveRecord) -> bytes:
    """The record as JSON, its bulkiest parts given up one after the other until it fits; the state always stays."""
    without: tuple[Mapping[str, JsonValue], ...] = (
        {},
        {"diff": None},
        {"evidence": []},
        {"decisions": []},
        {"tools": {}},
    )
    data = b""
    for loss in without:
        if loss:
            given_up = record.get("given_up")
            lost: list[JsonValue] = [*(given_up if isinstance(given_up, list) else []), *loss]
            record |= {**loss, "given_up": lost}
        data = json.dumps(record, ensure_ascii=False).encode("utf-8", "backslashreplace")
        if len(data) <= MAX_ARCHIVE_BYTES:
            break
    return data
