"""Sessions as people's commands see them: read from checkpoints and lock, changing nothing, without pydantic."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from code_intel_server.cli.pages.record import Submit, submits
from code_intel_server.cli.status.index_view import IndexView, look_at_index
from code_intel_server.cli.words import TITLES
from code_intel_server.common.own_folder import home_of
from code_intel_server.flow.encoding import unpacked
from code_intel_server.flow.phases import GATED, STEPS, VERIFY_INTERVENTION, Flags, GateLevel, Intent, Phase, Place
from code_intel_server.flow.transitions import ORDER, Route, RouteFacts
from code_intel_server.workspace.git.repository import Git, open_repository
from code_intel_server.workspace.git.worktrees import session_worktrees
from code_intel_server.workspace.paths import Project
from code_intel_server.workspace.state.checkpoints import CheckpointStore, Loaded
from code_intel_server.workspace.state.journals import Journal
from code_intel_server.workspace.state.key import load_key, private_folder
from code_intel_server.workspace.state.lock import Owner, ProjectLock

_DECISIONS_READ = 5000
_DECIDED_BY = {gated.step: gate.step for gate, gated in GATED.items()}


@dataclass(frozen=True, slots=True)
class StepView:
    """One of the 19 steps: `state` is done, now, skipped (by a flag, or not needed), open (not decided yet) or ahead."""

    number: int
    name: str
    state: str

    @property
    def title(self) -> str:
        """Its name for people."""
        return TITLES[self.number]


@dataclass(frozen=True, slots=True)
class SessionView:
    """A session that is not over: `state` is a checkpoint's orchestrator_state, `live` whether a process leads it now."""

    session_id: str
    state: Mapping[str, Any]
    live: bool
    root: Path
    """The project's root where it works: the project's own, or that in a worktree which it has to itself."""

    @property
    def phase(self) -> str:
        """Its phase."""
        return str(self.state["phase_state"]["current_phase"])

    @property
    def step(self) -> int:
        """Its step, 2 to 19."""
        return int(self.state["phase_state"]["step"])

    @property
    def instruction(self) -> str:
        """What the agent was told last."""
        last = self.state.get("last_submit") or {}
        return str(last.get("response", {}).get("instruction", ""))

    @property
    def title(self) -> str:
        """The name of its step for people."""
        return TITLES.get(self.step, "")

    def steps(self) -> list[StepView]:
        """The 19 steps and where the session is in them."""
        places = sorted({*ORDER, VERIFY_INTERVENTION}, key=lambda place: STEPS[place])
        return [
            StepView(1, "start_session", "done"),
            *(StepView(place.step, _name(place), self._state_of(place)) for place in places),
        ]

    def _state_of(self, place: Place) -> str:
        done = self.state["completed_steps"]
        if place.step == self.step:
            return "now"
        if place.step in done:
            return "done"
        possible = replace(
            _road(self.state), answers=RouteFacts(True, self.state["documents_enabled"], True, True, True)
        )
        if place.step < self.step or not possible.runs(place):
            return "open" if place == VERIFY_INTERVENTION and possible.runs(place) else "skipped"
        decided_at = _DECIDED_BY.get(place.step)
        if place == VERIFY_INTERVENTION or (decided_at is not None and decided_at not in done):
            return "open"
        return "ahead" if _road(self.state).runs(place) else "skipped"

    def as_json(self) -> dict[str, Any]:
        """What `--json` shows."""
        state = self.state
        return {
            "session_id": self.session_id,
            "live": self.live,
            "phase": self.phase,
            "step": self.step,
            "substep": state["phase_state"]["ready_substep"],
            "intent": state["intent"],
            "query": state["query"],
            "flags": {name: value for name, value in state["flags"].items() if value not in {False, "auto"}},
            "started_at": state["started_at"],
            "instruction": self.instruction,
            "completed_steps": state["completed_steps"],
            "steps": [
                {"step": row.number, "name": row.name, "title": row.title, "state": row.state} for row in self.steps()
            ],
            "tasks": state["tasks"],
            "counters": {
                **state["counters"],
                "submits": state["submits"],
                "compaction_count": state["compaction_count"],
            },
            "branch": state["task_branch"],
            "worktree": str(self.root) if Project(self.root).home else None,
            "explored_files": len(state["explored_files"]),
            "added_files": len(state["added_files"]),
            "receipt": state["receipt"],
        }


@dataclass(frozen=True, slots=True)
class ProjectView:
    """A project's sessions, the newest first, who holds its lock, and its index (None where none was built)."""

    root: Path
    sessions: tuple[SessionView, ...]
    owner: Owner | None
    unusable: tuple[str, ...]
    """Checkpoints that are not obeyed, each with its reason."""
    index: IndexView | None = None

    def submits(self, session_id: str) -> list[Submit]:
        """What a session has submitted, as far as the log still holds it."""
        log = Journal(Project(self.root).logs / "decisions.jsonl").tail(_DECISIONS_READ).records
        return submits(row for row in log if row.get("session_id") == session_id)

    def session(self, session_id: str | None = None) -> SessionView | None:
        """The one asked for, or the live one, or the newest."""
        if session_id is not None:
            return next((one for one in self.sessions if one.session_id == session_id), None)
        return next((one for one in self.sessions if one.live), None) or next(iter(self.sessions), None)


def read_view(root: Path) -> ProjectView:
    """The project's sessions as they are on disk now, those in worktrees of their own behind the others."""
    opened = open_repository(root)
    git = opened if isinstance(opened, Git) else None
    key_folder = private_folder(git.at.common_dir if git else None, root)
    sessions, owner, broken = _at(root, git.at.git_dir if git else None, key_folder)
    home = os.path.realpath(root)
    for record, path in session_worktrees(git) if git else ():
        if git and home_of(path) == home:
            more, _, torn = _at(Path(path) / git.at.prefix, record, key_folder)
            sessions, broken = (*sessions, *more), (*broken, *torn)
    return ProjectView(root, sessions, owner, broken, look_at_index(root))


def _at(
    root: Path, git_dir: Path | None, key_folder: Path
) -> tuple[tuple[SessionView, ...], Owner | None, tuple[str, ...]]:
    """The sessions at one root, who leads one there, and the checkpoints that are not obeyed."""
    owner = ProjectLock(private_folder(git_dir, root)).owner()
    if owner is not None and not owner.serves(root):
        owner = None  # a session of another project in this worktree
    project = Project(root)
    if not project.sessions.is_dir():
        return (), owner, ()
    store = CheckpointStore(project.sessions, load_key(key_folder))
    broken = tuple(f"{one.file.name}: {one.error or one.problem.value}" for one in store.unusable())
    return tuple(_view(root, loaded, owner) for loaded in store.usable()), owner, broken


def _view(root: Path, loaded: Loaded, owner: Owner | None) -> SessionView:
    state: Any = unpacked(loaded.body)["orchestrator_state"]
    live = owner is not None and owner.session_id == loaded.session_id
    return SessionView(loaded.session_id, state, live, root)


def _road(state: Mapping[str, Any]) -> Route:
    flags = {name: value for name, value in state["flags"].items() if name != "gate_level"}
    answers = RouteFacts(state["stale_branches"], state["documents_enabled"], state["q1"], state["q2"], state["q3"])
    return Route(Intent(state["intent"]), Flags(GateLevel(state["flags"]["gate_level"]), **flags), answers)


def _name(place: Place) -> str:
    return f"{place.phase} {place.substep}" if place.phase is Phase.READY else str(place.phase)
