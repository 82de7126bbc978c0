"""All 19 steps on a real foreign repository over a real stdio process."""

from pathlib import Path

import git as gitpython
import pytest

from tests.e2e.driver import Server, fingerprint, foreign_repository, git
from tests.e2e.scenario import Scenario

ALL_STEPS = {*range(2, 20)}


def finished_as_promised(root: Path, before: dict[str, str]) -> None:
    """Base holds the merge with trailers; no task branch, no checkpoint; the user's own files untouched."""
    assert git(root, "rev-parse", "--abbrev-ref", "HEAD").strip() == "main"
    message = git(root, "log", "-1", "--format=%B")
    assert "Code-Intel-Session:" in message
    assert "Code-Intel-Tasks: t1, t2, fix1, fix2, fix3, fix4" in message
    assert len(git(root, "log", "-1", "--format=%P").split()) == 2
    assert "llm_task_" not in git(root, "branch", "--list")
    assert not list((root / ".code-intel" / "sessions").glob("*.json"))
    assert fingerprint(root / ".env", root / "notes.txt") == before
    assert git(root, "status", "--porcelain") == "?? notes.txt\n"
    assert "join_words" in (root / "src/click/utils.py").read_text()
    commits = git(root, "log", "--format=%s%n%b", "main^2", "--not", "main^1")
    assert commits.count("Code-Intel-Session:") == 2
    read_by_gitpython(root)


def read_by_gitpython(root: Path) -> None:
    """The same end, as code that is not ours and not git's reads it."""
    with gitpython.Repo(root) as repo:
        merge = repo.head.commit
        assert repo.active_branch.name == "main"
        assert [head.name for head in repo.heads] == ["main"]
        assert len(merge.parents) == 2
        assert "\nCode-Intel-Session: " in str(merge.message)
        path = "src/click/utils.py"
        assert (merge.tree / path).data_stream.read() == (root / path).read_bytes()


def test_a_session_touches_all_nineteen_steps_and_leaves_only_a_merge(tmp_path: Path) -> None:
    scenario = Scenario(foreign_repository(tmp_path / "repo"), lists=True)
    scenario.prepare()
    before = fingerprint(scenario.root / ".env", scenario.root / "notes.txt")
    with Server(scenario.root) as server:
        answer = scenario.start(server)
        assert (answer["phase"], answer["step"]) == ("BRANCH_INTERVENTION", 2)
        for _, move in scenario.moves():
            answer = move(server)
    assert answer["phase"] == "SESSION_COMPLETE"
    assert set(answer["completed_steps"]) == ALL_STEPS
    finished_as_promised(scenario.root, before)
    archived = git(scenario.root, "for-each-ref", "--format=%(refname)", "refs/code-intel/archive")
    assert "20200101_000000" in archived


@pytest.mark.timeout(600)
def test_the_session_goes_on_to_the_same_end_after_a_kill_behind_every_accepted_submit(tmp_path: Path) -> None:
    scenario = Scenario(foreign_repository(tmp_path / "repo"))
    scenario.prepare()
    before = fingerprint(scenario.root / ".env", scenario.root / "notes.txt")
    server = Server(scenario.root)
    scenario.start(server)
    answer = {}
    for _, move in scenario.moves():
        server.kill()
        server = Server(scenario.root)
        restored = server.call("get_session_status")
        assert restored["restored"] is True
        answer = move(server)
    server.close()
    assert answer["phase"] == "SESSION_COMPLETE"
    finished_as_promised(scenario.root, before)
