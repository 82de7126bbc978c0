"""The project the server works for: found by walking up from where it was started, or named by a call (SPEC 12)."""

import threading
from pathlib import Path

from code_intel_server.contract import Contract
from code_intel_server.errors import Rejected
from code_intel_server.tools.services import ProjectServices, tool_allowed
from code_intel_server.tools.session.sessions import Sessions
from code_intel_server.workspace.paths import find_root


class CurrentProject:
    """One project's services and its sessions; another project can be taken up only while no session is active."""

    def __init__(self, start: Path, override: Path | None = None) -> None:
        self._start = start
        self._home = find_root(start, override)
        self._swapping = threading.Lock()
        self.sessions = Sessions(ProjectServices(self._home))
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
        left, self.sessions = self.sessions, Sessions(ProjectServices(root))
        left.services.close()  # last: what cannot be let go of keeps nobody from the other project

    def contract(self) -> Contract:
        """The project's contract as it is now, for answers outside a session."""
        return Contract.load(self.services.project.contract_file, tool_allowed)
