"""What stays of a session that has ended."""

import json
import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from tests.e2e.driver import repository

from code_intel_server.flow.dispatch import Submission
from code_intel_server.flow.session import SessionState
from code_intel_server.tools.services import ProjectServices
from code_intel_server.tools.session.endings import Endings


def test_each_project_of_a_worktree_keeps_its_own_last_answer(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", {"a/x.py": "1\n", "b/x.py": "1\n"})
    (root / ".git/code-intel").mkdir()
    whole, first, second = (Endings(ProjectServices(root / name)) for name in (".", "a", "b"))
    state = cast("SessionState", SimpleNamespace(session_id="s1"))
    answer = SimpleNamespace(state=SimpleNamespace(last_submit=None), response={"success": True})
    first.keep_final(state, cast("Submission", answer))
    second.forget_final()
    whole.forget_final()
    assert [kept["session_id"] for kept in first.finals()] == ["s1"]
    assert (second.finals(), whole.finals()) == ([], [])


def test_the_last_answer_of_a_session_in_a_worktree_is_kept_for_a_day(tmp_path: Path) -> None:
    """Found by a review: a submit of weeks later that reads alike was answered by a session long over."""
    root = repository(tmp_path / "repo", {"x.py": "1\n"})
    place = root / ".git/code-intel"
    place.mkdir()
    for name, age in (("now", 0), ("old", 90_000)):
        file = place / f"last_answer-{name}.json"
        file.write_text(json.dumps({"session_id": name}))
        os.utime(file, (time.time() - age, time.time() - age))
    assert [kept["session_id"] for kept in Endings(ProjectServices(root)).finals()] == ["now"]
