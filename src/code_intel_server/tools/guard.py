"""Around every tool call: may it run in this phase, what did it show, and how is a failure said (SPEC 2).

A tool that a phase forbids changes nothing. In a session every call of a tool that is not one of the session's own is a line
of the ledger, with its outcome, before the answer leaves; only `ok`, which may have found nothing, counts as a use.
"""

import errno
import logging
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from code_intel_server.common.plain import plain
from code_intel_server.common.printable import printable
from code_intel_server.contract import Contract
from code_intel_server.errors import CodeIntelError, Rejected, Unavailable
from code_intel_server.flow import responses
from code_intel_server.flow.access import ACCESS, Group, blocked_by
from code_intel_server.flow.checks.judgement import SHOWING
from code_intel_server.flow.phases import FLAG_NAMES
from code_intel_server.flow.turn import Note
from code_intel_server.tools.current_project import CurrentProject
from code_intel_server.tools.session.recovery import recoverable
from code_intel_server.tools.session.sessions import Active, Sessions
from code_intel_server.tools.shaping import Fields, within_limit

_LOG = logging.getLogger(__name__)
_FILES_AT_MOST = 200
_REVIEWED_IN_A_LINE = 50
REVIEW_ROWS = 1_000
"""Rows of a page of `review_changes` at most."""
_PROBLEMS_AT_MOST = 5
_SICK = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EIO,
    errno.EROFS,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOMEM,
    errno.EACCES,
    errno.EPERM,
    errno.ENOTDIR,
}
"""A full, broken, read-only or forbidden disk, a system without descriptors or memory, and a file where our folder has to be."""


def _program() -> tuple[int, int] | None:
    """The file of this program as it is on disk now; None where it is gone."""
    try:
        found = Path(__file__).stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


_BEGUN = _program()


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, the same as JSON text, and whether it reports an internal failure."""

    fields: Fields
    text: str
    failed: bool = False


class Guard:
    """The one way by which a tool runs."""

    def __init__(self, current: CurrentProject) -> None:
        self._current = current

    def call(self, tool: str, work: Callable[[], Fields]) -> Reply:
        """Run `work` as `tool` and shape what it answers. Never raises an Exception."""
        sessions = self._current.sessions
        active = sessions.active
        try:
            self._current.check_folder()
            self._check_phase(tool, active)
            answer = work()
        except CodeIntelError as error:
            self._note(tool, sessions, active, "refused", {})
            return self._refused(self._current.sessions, error)
        except Exception as error:  # noqa: BLE001 - the one broad except, at the boundary
            _LOG.exception("%s failed", tool)
            self._note(tool, sessions, active, "failed", {})
            sick = _sick_machine(error)
            if sick is not None:
                return self._refused(sessions, sick)
            where = Unavailable(
                "tool_errors.generic.internal_error", tool=tool, log=f"standard error ({type(error).__name__})"
            )
            return self._refused(sessions, where, failed=True)
        self._note(tool, sessions, active, "ok", answer)
        return self._bounded(answer)

    def misfit(self, tool: str, problems: Sequence[tuple[str, str]]) -> Reply:
        """Refuse a call whose arguments do not fit the tool's schema: which argument, and what is wrong with it."""

        def work() -> Fields:
            if tool == "submit_phase" and any(name.split(".")[0] == "data" for name, _ in problems):
                raise Rejected("tool_errors.generic.payload_not_in_data")
            if tool == "start_session" and (flags := [name for name, _ in problems if name in FLAG_NAMES]):
                raise Rejected("tool_errors.start_session.flags_beside", flags=flags)
            named = "; ".join(f"{printable(name)}: {printable(what)}" for name, what in problems[:_PROBLEMS_AT_MOST])
            raise Rejected("tool_errors.generic.arguments_invalid", tool=tool, problems=named)

        return self.call(tool, work)

    def _check_phase(self, tool: str, active: Active | None) -> None:
        phase = active.state.phase if active else None
        key = blocked_by(tool, phase)
        if key == "session_messages.no_active_session" and (others := recoverable(self._current.services)):
            raise Rejected("session_messages.interrupted_session", details={"recovery_available": others})
        if key is not None:
            allowed = ", ".join(sorted(ACCESS[tool].phases)) or "no phase: only while no session is active"
            raise Rejected(key, tool=tool, phase=phase or "none", allowed=allowed)

    def _note(self, tool: str, sessions: Sessions, active: Active | None, outcome: str, answer: Fields) -> None:
        if active is None or ACCESS[tool].group is Group.SESSION:
            return
        now = sessions.active  # after each change of its state another object with the same ledger
        if self._current.sessions is sessions and now is not None and now.ledger is active.ledger:
            note_call(active, tool, outcome, answer)
            if outcome == "ok" and tool in SHOWING:
                with suppress(CodeIntelError, OSError):  # then the next look or check_write_target saves it
                    sessions.take_looked_at(now, wait=False)

    def _refused(self, sessions: Sessions, error: CodeIntelError, *, failed: bool = False) -> Reply:
        """A refusal, with where the session is if one is active."""
        active = sessions.active
        contract = active.settings.contract if active else self._current.contract()
        try:
            message = responses.message_of(contract, error)
        except KeyError:
            _LOG.error("the contract has no message %s", error.key)
            message = contract.message(
                "tool_errors.generic.internal_error", {"tool": error.key, "log": "standard error"}
            )
        return self._bounded(responses.refused(message, self._standing(active) if active else {}, error), failed=failed)

    def _standing(self, active: Active) -> Fields:
        """The re-instruction; a world that cannot even be described must not hide the refusal."""
        try:
            ports = self._current.sessions.ports(active)
            return responses.reinstruction(active.state, active.settings.contract, ports)
        except (CodeIntelError, OSError):
            return {"phase": str(active.state.phase), "step": active.state.place.step, "call": "submit_phase"}

    def _bounded(self, answer: Fields, *, failed: bool = False) -> Reply:
        shaped = plain(answer | self._place())
        assert isinstance(shaped, dict)  # a mapping stays one
        return Reply(*within_limit(shaped, self._truncation_warning), failed)

    def _place(self) -> Fields:
        """Where the paths of every answer are, if not in the folder the client was started in: the session's own worktree."""
        sessions = self._current.sessions
        away = sessions.active is not None and sessions.services.project.home is not None
        return {"worktree": str(sessions.services.root)} if away else {}

    def _truncation_warning(self) -> str:
        return responses.say(self._current.contract(), Note("warnings.truncation_warning"))


def _sick_machine(error: Exception) -> Unavailable | None:
    """The typed error for a disk or a system that fails, which is no mistake of ours; None for anything else."""
    if isinstance(error, ImportError) and _program() != _BEGUN:
        return Unavailable("tool_errors.generic.program_replaced")
    if isinstance(error, OSError) and error.errno in _SICK:
        path, why = error.filename or "the disk", error.strerror or str(error)
    elif isinstance(error, sqlite3.OperationalError):
        path, why = "a cache under .code-intel", str(error)
    else:
        return None
    return Unavailable("tool_errors.generic.state_unavailable", path=printable(str(path)), error=why)


def note_call(active: Active, tool: str, outcome: str, answer: Fields) -> None:
    """Record in the session's ledger that a tool ran, and what its answer showed."""
    tree = str(answer.get("tree", ""))
    asked = answer.get("cut" if tool == "review_changes" else "must_verify")
    asks = [str(entry) for entry in asked] if isinstance(asked, list) else []
    if tool != "review_changes":
        files = _files_shown(answer, _FILES_AT_MOST)
        active.ledger.add(tool, str(active.state.phase), outcome, _rows_of(answer), files, tree, asks)
        return
    # Every row of a page counts, and nothing of what it says of other files: as many lines as they need.
    files = _files_shown(answer.get("results", []), REVIEW_ROWS)
    for begin in range(0, max(len(files), 1), _REVIEWED_IN_A_LINE):
        part = files[begin : begin + _REVIEWED_IN_A_LINE]
        cut = [path for path in asks if path in part]
        active.ledger.add(tool, str(active.state.phase), outcome, len(part), part, tree, cut)


def _rows_of(answer: Fields) -> int:
    """How many rows an answer holds; of one that is no list, 1."""
    results = answer.get("results")
    if not isinstance(results, list):
        return int(bool(answer))
    rows = [entry.get("rows") if isinstance(entry, dict) else None for entry in results]
    return sum(len(one) if isinstance(one, list) else 1 for one in rows)


def _files_shown(answer: JsonValue, most: int) -> list[str]:
    """The project paths that an answer named, each once; those that it refused aside."""
    found: dict[str, None] = {}
    stack: list[JsonValue] = [answer]
    while stack and len(found) < most:
        node = stack.pop()
        if isinstance(node, dict):
            path = node.get("path")
            if isinstance(path, str) and node.get("allowed") is not False:
                found[path] = None
            stack.extend(reversed(list(node.values())))
        elif isinstance(node, list):
            stack.extend(reversed(node))
    return list(found)


def contract_of(current: CurrentProject) -> Contract:
    """The contract that speaks now: the session's, or the project's."""
    active = current.sessions.active
    return active.settings.contract if active else current.contract()
