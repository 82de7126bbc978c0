"""The project the server works for: found by walking up from where it was started, or named by a call (SPEC 12).

While a session has a worktree to itself that is the project; before and after it is the user's folder, its home.
"""

import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from pydantic import JsonValue

from code_intel_server.contract import Contract
from code_intel_server.errors import CodeIntelError, Rejected
from code_intel_server.flow import responses
from code_intel_server.flow.turn import Note
from code_intel_server.tools.services import ProjectServices, ToolProgress, tool_allowed
from code_intel_server.tools.session.endings import with_cleaned
from code_intel_server.tools.session.flags import parse_flags
from code_intel_server.tools.session.recovery import kept_at
from code_intel_server.tools.session.sessions import Sessions, rows_of
from code_intel_server.tools.session.user_words import Ask
from code_intel_server.tools.shaping import Fields
from code_intel_server.workspace.branches import sweep_worktrees
from code_intel_server.workspace.paths import find_root


class CurrentProject:
    """One project's services and its sessions; another project can be taken up only while no session is active."""

    def __init__(self, start: Path, override: Path | None = None) -> None:
        self._start = start
        self._home = find_root(start, override)
        self._swapping = threading.Lock()
        self.sessions = Sessions(ProjectServices(self._home), self._move)
        """Those of the present project, and with them its services: who needs both asks once, since another call may take
        up another project at any moment."""

    @property
    def services(self) -> ProjectServices:
        """The services of the present project."""
        return self.sessions.services

    def take_up(self, repo_path: str) -> Sessions:
        """The sessions of the project at `repo_path` (relative to where the server was started), which it works for now.

        '.' is the project the server was started for, and while a session is active that session's. Raises Rejected where
        there is no such folder, or a session of another project is active.
        """
        home = repo_path in {"", "."}
        present = self.sessions
        if home and present.active is not None:
            return present
        root = self._home if home else self._root_at(repo_path)
        if root == present.services.root:
            return present
        self._refuse_in_a_session()  # at once: a submit that verifies has the mutex for minutes
        with self._swapping, self.services.mutex:  # nobody is in the middle of a start or a submit there
            if root != self.services.root:
                self._swap(root)
            return self.sessions

    # -- sessions in worktrees of their own ---------------------------------------------------------------------------

    def start(
        self, sessions: Sessions, query: str, intent: str, flags: Mapping[str, object], progress: ToolProgress, ask: Ask
    ) -> Fields:
        """`Sessions.start`; one that cleans away a session with a worktree begins in the user's folder."""
        wanted = parse_flags(flags)
        if not (wanted.clean and query.strip() and sessions.services.project.home and sessions.active):
            return self._settled(lambda: sessions.start(query, intent, flags, progress, ask))
        cleaned = self.start(sessions, "", intent, {"clean": True}, progress, ask)
        self.sessions.hooked, self.sessions.conversation = sessions.hooked, sessions.conversation
        try:
            begun = self.start(self.sessions, query, intent, {**flags, "clean": False}, progress, ask)
        except CodeIntelError as error:
            error.details = with_cleaned({}, cleaned) | error.details
            raise
        return with_cleaned(begun, cleaned)

    def submit(self, data: JsonValue, progress: ToolProgress, ask: Ask) -> Fields:
        """`Sessions.submit`; the last submit of a session, sent again, finds it in the worktree where a kill left it."""
        sessions = self.sessions
        if sessions.active is None and (session_id := sessions.last_ended(data)):
            self._go_to(kept_at(sessions.services, session_id, ""))
        return self._settled(lambda: self.sessions.submit(data, progress, ask))

    def status(self, sessions: Sessions, *, discard_active: bool, session_id: str | None) -> Fields:
        """`Sessions.status`; restores a session in its worktree too."""
        active = sessions.active
        dropped = active.state.session_id if active else ""
        if active is not None and (not discard_active or session_id == dropped):
            return self._settled(lambda: sessions.status(discard_active=discard_active, session_id=session_id))
        home = sessions.services.project.home
        place = kept_at(ProjectServices(home) if home else sessions.services, session_id, dropped)
        left: tuple[str, ...] = ()
        if place != sessions.services.root:
            left = sessions.drop() if active is not None else ()
            self._go_to(place)
            sessions, discard_active = self.sessions, False
        answer = self._settled(lambda: sessions.status(discard_active=discard_active, session_id=session_id))
        return answer | ({"warnings": [*left, *rows_of(answer, "warnings")]} if left else {})

    def check_folder(self) -> None:
        """End the session of a folder that somebody has removed, and make nothing in it; Rejected says what is kept."""
        active, root, home = self.sessions.active, self.services.root, self.services.project.home
        if root.is_dir():
            return
        if active is not None:
            self.sessions.lose()
        if root != self._home:
            self._go_to(home or self._home)
        if active is not None and home is not None:
            raise Rejected("session_messages.worktree_removed", session_id=active.state.session_id, worktree=root)
        if active is not None or root == self._home:
            raise Rejected("session_messages.folder_removed", folder=root)

    def _settled(self, work: Callable[[], Fields]) -> Fields:
        """What a call answers, the user's folder being the project again where that has ended a session with a worktree."""
        try:
            answer = work()
        except BaseException:
            self._go_home()
            raise
        left = self._go_home()
        if not left:
            return answer
        kept = Note("warnings.worktree_kept", {"worktree": left[0], "reason": left[1]})
        return answer | {"warnings": [*rows_of(answer, "warnings"), responses.say(self.contract(), kept)]}

    def _go_home(self) -> tuple[Path, str] | None:
        """Leave a worktree without a session, and remove it where that session is over; the worktree that stays, and why."""
        left = self.services.root
        home = self.services.project.home
        if home is None or self.sessions.active is not None or left == self._home:
            return None
        self._go_to(home)
        git = self.services.git
        if isinstance(git, str):
            return None
        why = sweep_worktrees(self.services.project, git).get(left)
        return (left, why) if why else None

    def _go_to(self, root: Path) -> None:
        with self._swapping, self.services.mutex:
            if root != self.services.root:
                self._swap(root)

    def _move(self, root: Path) -> Sessions:
        self._swap(root)  # under the mutex of the sessions that ask for it
        return self.sessions

    def _root_at(self, repo_path: str) -> Path:
        try:
            return find_root((self._start / repo_path).resolve(strict=True))
        except (OSError, ValueError, RuntimeError) as error:
            raise Rejected("tool_errors.generic.path_not_found", path=repo_path) from error

    def _refuse_in_a_session(self) -> None:
        active = self.sessions.active
        if active is not None:
            state = active.state
            raise Rejected(
                "tool_errors.start_session.session_active",
                session_id=state.session_id,
                phase=state.phase,
                query=state.query,
            )

    def _swap(self, root: Path) -> None:
        self._refuse_in_a_session()
        left, self.sessions = self.sessions, Sessions(ProjectServices(root), self._move)
        left.services.close()  # last: what cannot be let go of keeps nobody from the other project

    def contract(self) -> Contract:
        """The project's contract as it is now, for answers outside a session."""
        return Contract.load(self.services.project.contract_file, tool_allowed)
