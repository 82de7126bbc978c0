"""Refs in tables instead of files (git 2.45 and later): a session works there as anywhere."""

import subprocess
from pathlib import Path

import pytest

from code_intel_server.errors import UserActionNeeded
from code_intel_server.workspace.branches.manager import BranchManager
from code_intel_server.workspace.branches.trash import Trash
from code_intel_server.workspace.tree.tree import TreeJudge
from code_intel_server.workspace.values import CommitRequest
from tests.workspace.git_repo import Repo

SESSION = "20261122_130000"


def knows_reftable() -> bool:
    """Whether the git at hand can make such a repository."""
    asked = subprocess.run(["git", "init", "-h"], capture_output=True, check=False).stdout
    return b"--ref-format" in asked or b"--[no-]ref-format" in asked


pytestmark = pytest.mark.skipif(not knows_reftable(), reason="this git keeps refs in files only")


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    made = Repo.make(tmp_path, monkeypatch, ref_format="reftable")
    made.write("a.py", "one = 1\n")
    made.commit("first")
    return made


def manager(repo: Repo) -> BranchManager:
    return BranchManager(repo.path, TreeJudge(repo.path), patience=0.0)


def test_work_is_committed_merged_archived_and_restored(repo: Repo) -> None:
    branches = manager(repo)
    branch = branches.create(SESSION, (), lambda _: None, None)
    repo.write("a.py", "one = 2\n")
    request = CommitRequest(SESSION, branch, branch.base_oid, "Do it", (), ("a.py",))
    done = branches.commit(request, lambda _: None, None)
    branches.merge(branch, SESSION, done.tip, [], lambda _: None, None)
    assert repo.git("show", "main:a.py") == "one = 2"
    (entry,) = Trash(repo.path).entries()
    assert Trash(repo.path).restore(entry.ref).branch == branch.name


@pytest.mark.parametrize("linked", [False, True], ids=["main worktree", "linked worktree"])
@pytest.mark.parametrize("command", ["cherry-pick", "revert"])
def test_what_is_half_done_is_seen_though_no_file_tells(
    repo: Repo, tmp_path: Path, command: str, *, linked: bool
) -> None:
    """Found by an opponent: a session committed and cleaned in the middle of the user's cherry-pick."""
    if linked:
        repo.git("worktree", "add", "-q", "-b", "linked", str(tmp_path / "linked"))
        repo = Repo(tmp_path / "linked")
    for text in ("one = 2\n", "one = 3\n"):
        repo.write("a.py", text)
        repo.commit(text)
    branch = manager(repo).create(SESSION, (), lambda _: None, None)
    assert repo.fails(command, "HEAD~1")
    with pytest.raises(UserActionNeeded) as refused:
        manager(repo).commit(
            CommitRequest(SESSION, branch, branch.base_oid, "Do it", (), ("a.py",)), lambda _: None, None
        )
    assert f"a {command} is in progress" in str(refused.value.params)
    repo.git(command, "--abort")
    assert repo.read("a.py") == "one = 3\n"
