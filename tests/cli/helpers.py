"""A project to set up, a live session in it, and people's commands run in this process."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from code_intel_server.flow.phases import Flags, Intent, Phase, Substep
from code_intel_server.flow.session import SessionState, Trees
from code_intel_server.tools.services import ProjectServices
from tests.e2e.driver import repository

FILES = {
    "app.py": 'def greet(name: str) -> str:\n    """Greet by name."""\n    return f"Hello, {name}!"\n',
    "secrets/vault.py": "TOKEN = 1\n",
    "README.md": "# A project\n",
}

Said = pytest.CaptureFixture[str]


def project(folder: Path, **more: str) -> Path:
    """A repository with one commit."""
    return repository(folder, {**FILES, **more})


def own_state(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Approvals and locks of this test's own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))


def fingerprint(root: Path) -> dict[str, str]:
    """Every file below `root`, git's own aside, by its content; folders too."""
    found = {}
    for path in sorted(root.rglob("*")):
        if ".git" in path.relative_to(root).parts:
            continue
        found[path.relative_to(root).as_posix()] = (
            "folder" if path.is_dir() else hashlib.sha256(path.read_bytes()).hexdigest()
        )
    return found


def state(session_id: str = "20260201_123456", **more: Any) -> SessionState:
    """A session in step 13 that has explored app.py."""
    fields: dict[str, Any] = {
        "session_id": session_id, "intent": Intent.IMPLEMENT, "query": "Say goodbye too.", "flags": Flags(),
        "started_at": "2026-02-01T12:34:56+00:00", "phase": Phase.READY, "substep": Substep.IMPL,
        "explored_files": ["app.py"], "completed_steps": [3, 4, 5, 6, 8, 10, 12], "trees": Trees(ready="a"),
    }  # fmt: skip
    return SessionState(**(fields | more))


@contextmanager
def session(root: Path, kept: SessionState, *, live: bool = True) -> Iterator[ProjectServices]:
    """A checkpoint of a session, and with `live` a process (this one) that holds its lock."""
    services = ProjectServices(root)
    services.store.save(kept.session_id, kept.to_checkpoint())
    if live:
        services.lock.acquire(kept.session_id)
    try:
        yield services
    finally:
        services.close()


def parsed(text: str) -> Any:
    """What a command printed with --json."""
    return json.loads(text)
