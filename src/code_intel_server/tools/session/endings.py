"""How sessions end other than by their last phase: given up, dropped, retired, forgotten; and the last answer, kept (SPEC 3.2, 7).

Nothing of the user's is lost by any of it: work is shelved, and what stays where it is is named.
"""

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from pydantic import JsonValue

from code_intel_server.errors import CodeIntelError, Unavailable
from code_intel_server.flow import responses
from code_intel_server.flow.dispatch import Submission
from code_intel_server.flow.phases import End
from code_intel_server.flow.session import SessionState
from code_intel_server.flow.turn import Note
from code_intel_server.tools import learning
from code_intel_server.tools.services import ProjectServices, SessionSettings, now
from code_intel_server.tools.session import archives
from code_intel_server.workspace.files import read_regular, write_whole
from code_intel_server.workspace.git.repository import open_repository
from code_intel_server.workspace.project.trust import Approvals
from code_intel_server.workspace.state import heard
from code_intel_server.workspace.state.checkpoints import is_id
from code_intel_server.workspace.state.tree_state import Worktree
from code_intel_server.workspace.values import Abandoned, GitIntent

Fields = dict[str, JsonValue]

MAX_LAST_ANSWER_BYTES = 1024 * 1024
_FINAL = "last_answer{}.json"
_KEPT_FINALS = 8
_FINAL_SECONDS = 86_400
"""How long a lost answer of a session in a worktree is asked for: what reads alike later is another session's submit."""


class Endings:
    """The ends of one project's sessions; called under its mutex."""

    def __init__(self, services: ProjectServices) -> None:
        self._services = services

    def clean(self, settings: SessionSettings, states: Sequence[SessionState], others: Sequence[Fields] = ()) -> Fields:
        """Archive the work of these sessions, remove stale branches and all checkpoints, go back to base.

        `others` are the answers of the same in worktrees of sessions: what they name is named here too.
        """
        branches = self._services.branches(settings.config)
        before = {branch.name for branch in branches.stale()}
        left = [*_rows(others, "warnings")]
        for state in states:
            left += self.abandon(settings, state).warnings
            learning.record_end(self._services, state, "abandoned", "clean", now())
            archives.archive(
                self._services, state, self._services.ledger(state.session_id).entries(), str(End.ABANDONED), now()
            )
        cleaned = branches.cleanup_stale()
        # What had to stay, or was gone before (the user renamed it), is in no archive of ours.
        removed = [*_rows(others, "branches_removed"), *sorted(before - {branch.name for branch in branches.stale()})]
        left += [f"{name}: {why}" for name, why in (cleaned.left or {}).items()]
        gone = [*_rows(others, "checkpoints_removed"), *self._services.store.delete_all()]
        for state in states:
            self.forget(state.session_id)
        self._services.tree.tidy()
        values = {"branches": len(removed), "checkpoints": len(gone), "current": branches.current() or "no branch"}
        answer: Fields = {
            "success": True,
            "phase": str(End.ABANDONED),
            "call": "none",
            "message": responses.say(settings.contract, Note("success.session.clean_done", values)),
            "branches_removed": removed,
            "checkpoints_removed": gone,
        }
        return answer | {"warnings": left} if left else answer

    def abandon(self, settings: SessionSettings, state: SessionState) -> Abandoned:
        """Shelve a session's branch and uncommitted work; what was untracked at its start stays, as it was then where the session may have written to it."""
        trees, head = state.trees, state.task_branch.base_oid if state.task_branch else state.head_at_start
        before = self._services.tree.untracked_at(trees.start, head)

        def record(intent: GitIntent) -> None:
            """Save the session with what git is about to do, so that a kill can be gone on from."""
            pending = state.model_copy(update={"pending": intent})
            self._services.store.save(state.session_id, pending.to_checkpoint())

        branches = self._services.branches(settings.config)
        writable = (*state.explored_files, *state.added_files)
        return branches.abandon(
            state.session_id, state.task_branch, before, record, state.pending, trees.start, head, writable
        )

    def keep_earlier(self, settings: SessionSettings, state: SessionState) -> tuple[str, ...]:
        """Shelve what the user had uncommitted at the session's start and its tasks took away; what to report of that.

        The commit holds what became of it, the session's own snapshots alone what it was.
        """
        if not state.tasks:
            return ()
        head = state.task_branch.base_oid if state.task_branch else state.head_at_start
        return self._services.branches(settings.config).keep_earlier(state.session_id, state.trees.start, head).warnings

    def restorable(self) -> list[SessionState]:
        """The sessions whose checkpoints can be read, newest first."""
        states: list[SessionState] = []
        for loaded in self._services.store.usable():
            try:
                states.append(SessionState.from_checkpoint(loaded.body))
            except Unavailable:
                continue
        return states

    def drop(self, settings: SessionSettings, state: SessionState) -> tuple[str, ...]:
        """Give up a fresh session for one that is restored, its work kept recoverably; what to report of that."""
        left = self.abandon(settings, state).warnings if state.branch_policy is None else ()
        learning.record_end(self._services, state, "abandoned", "another session was restored", now())
        self.forget(state.session_id)
        return left

    def forget_but(self, mine: Collection[str]) -> list[str]:
        """Remove every other session's checkpoint and ledger; the ids that had one."""
        gone = [loaded.session_id for loaded in self._services.store.usable() if loaded.session_id not in mine]
        for session_id in gone:
            self.forget(session_id)
        return gone

    def retire(self, session_id: str) -> None:
        """Forget a session whose branch the user gave up or took over; what it failed on is kept for lessons.

        The branch may be anybody's who calls it like one of ours: then there is nothing to forget.
        """
        if not is_id(session_id):
            return
        with contextlib.suppress(CodeIntelError):
            state = SessionState.from_checkpoint(self._services.store.load(session_id).body)
            learning.record_end(self._services, state, learning.ABANDONED, "its branch was retired", now())
        self.forget(session_id)

    def forget(self, session_id: str) -> None:
        """Remove a session's checkpoint, ledger, marker and approvals."""
        self._services.store.delete(session_id)
        self._services.project.ledger_file(session_id).unlink(missing_ok=True)
        self.marker(session_id).unlink(missing_ok=True)
        self._services.project.reads_file(session_id).unlink(missing_ok=True)
        self._services.forget_runs(session_id)
        with contextlib.suppress(CodeIntelError):
            Approvals().forget(self._services.root, session_id)
        heard.forget(self._services.local, session_id)

    def keep_accounted(self, session_id: str) -> None:
        """Let the gate outside of sessions ask for no run of what a session has left: its own end accounts for it (SPEC 12)."""
        home = self._services.project.home
        git = self._services.git if home is None else open_repository(home)
        if isinstance(git, str):
            return
        at, root = git.at, os.path.realpath(home or self._services.root)
        with contextlib.suppress(CodeIntelError, OSError):
            place = Worktree(root, str(at.top), str(at.git_dir), str(at.common_dir), git.oid("HEAD"))
            kept = place.read("verdict", self._services.key)
            kept |= {"proven": place.look().kept(), "by": f"session {session_id}"}
            place.write("verdict", kept, self._services.key)

    def marker(self, session_id: str) -> Path:
        """Where the client's hook notes that the agent's memory was compacted (SPEC 7)."""
        return self._services.project.sessions / f"{session_id}.compacted"

    def _final_file(self, of: str = "") -> Path:
        """Where the last answer is kept: each project of a worktree has its own, and each session `of` its own worktree."""
        git = self._services.git
        prefix = b"" if isinstance(git, str) else os.fsencode(git.at.prefix)
        name = f".{hashlib.sha256(prefix).hexdigest()[:16]}" if prefix else ""
        return self._services.home_local / _FINAL.format(f"{name}-{of}" if of else name)

    def keep_final(self, state: SessionState, submission: Submission) -> None:
        """Keep the last answer of a session until the next one starts: a lost one can be asked for again."""
        assert submission.state is not None  # an end is an accepted submit
        last = submission.state.last_submit
        record = {
            "session_id": state.session_id,
            "digest": last.digest if last else "",
            "number": last.number if last else 0,
            "chain": last.chain if last else "",
            "worktree": self._services.project.home is not None,
            "response": submission.response,
        }
        write_whole(self._final_file(state.session_id if record["worktree"] else ""), json.dumps(record).encode())
        for old in self._worktree_finals()[_KEPT_FINALS:]:
            old.unlink(missing_ok=True)

    def finals(self) -> list[Fields]:
        """The last answers that were kept, each with the digest of its payload: of the project, then of worktrees, newest first."""
        found: list[Fields] = []
        young = time.time() - _FINAL_SECONDS
        for file in (self._final_file(), *(file for file in self._worktree_finals() if _made(file) > young)):
            with contextlib.suppress(OSError, ValueError):
                if isinstance(record := json.loads(read_regular(file, MAX_LAST_ANSWER_BYTES)), dict):
                    found.append(record)
        return found

    def _worktree_finals(self) -> list[Path]:
        one = self._final_file("*")
        return sorted(one.parent.glob(one.name), key=_made, reverse=True)

    def forget_final(self) -> None:
        """Forget the project's last answer as a session begins; one with a worktree to itself is in the way of none."""
        if self._services.project.home is None:
            self._final_file().unlink(missing_ok=True)


def with_cleaned(answer: Fields, cleaned: Fields) -> Fields:
    """An answer with what `clean` did before it: nothing that was removed, or had to be left, goes unsaid."""
    told: Fields = {"cleaned": cleaned["message"]}
    told |= {name: cleaned[name] for name in ("branches_removed", "checkpoints_removed")}
    given = [fields.get("warnings") for fields in (cleaned, answer)]
    said = [warning for warnings in given if isinstance(warnings, list) for warning in warnings]
    return answer | told | ({"warnings": [*said]} if said else {})


def _made(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:
        return 0


def _rows(answers: Sequence[Fields], name: str) -> Iterator[JsonValue]:
    for answer in answers:
        rows = answer.get(name)
        yield from rows if isinstance(rows, list) else ()
