"""The project the server works for: found by walking up from where it was started, or named by a call (SPEC 12)."""

from functools import lru_cache
from pathlib import Path

from code_intel_server.contract.loader import Contract
from code_intel_server.errors import Rejected
from code_intel_server.tools.desk import Desk, tool_allowed
from code_intel_server.tools.sessions import Sessions
from code_intel_server.workspace.paths import find_root


class Workbench:
    """One desk and its sessions; another project can be taken up only while no session is active."""

    def __init__(self, start: Path, override: Path | None = None) -> None:
        self._start = start
        self.desk = Desk(find_root(start, override))
        self.sessions = Sessions(self.desk)

    def take_up(self, repo_path: str) -> None:
        """Work for the project at `repo_path` (relative to where the server was started).

        Raises Rejected where there is no such folder, or a session of another project is active.
        """
        if repo_path in {"", "."}:
            return
        try:
            folder = (self._start / repo_path).resolve(strict=True)
            root = find_root(folder)
        except (OSError, ValueError, RuntimeError) as error:
            raise Rejected("tool_errors.generic.path_not_found", path=repo_path) from error
        if root == self.desk.root:
            return
        if self.sessions.active is not None:
            state = self.sessions.active.state
            raise Rejected(
                "tool_errors.start_session.session_active",
                session_id=state.session_id,
                phase=state.phase,
                query=state.query,
            )
        self.desk.close()
        self.desk = Desk(root)
        self.sessions = Sessions(self.desk)

    def contract(self) -> Contract:
        """The project's contract as it is now, for answers outside a session."""
        return _contract(self.desk.project.contract_file, _stamp(self.desk.project.contract_file))


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return (0, 0)
    return (status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=4)
def _contract(path: Path, _stamp: tuple[int, int]) -> Contract:
    return Contract.load(path, tool_allowed)
