"""What was shelved can be listed, brought back, and let go."""

import time
from pathlib import Path

import pytest

from code_intel_server.errors import Rejected, UserActionNeeded
from code_intel_server.workspace.branches.archive_refs import ArchiveKind
from code_intel_server.workspace.branches.manager import BranchManager
from code_intel_server.workspace.branches.trash import KEEP_DAYS, Trash
from code_intel_server.workspace.tree.tree import TreeJudge
from code_intel_server.workspace.values import CommitRequest
from tests.workspace.git_repo import Repo

SESSION = "20261121_110000"
BRANCH = f"llm_task_{SESSION}"
DAY = 86400


def manager(repo: Repo) -> BranchManager:
    return BranchManager(repo.path, TreeJudge(repo.path))


def ignore(_: object) -> None:
    """A record nobody keeps."""


def collect(repo: Repo) -> None:
    """Let git forget everything that nothing points to."""
    repo.git("reflog", "expire", "--expire=now", "--all")
    repo.git("gc", "-q", "--prune=now")


def abandoned(repo: Repo) -> tuple[str, ...]:
    """An abandoned session with one commit and uncommitted work; returns its archive refs."""
    branch = manager(repo).create(SESSION, (), ignore, None)
    repo.write("a.py", "one = 'committed'\n")
    repo.commit("by hand", "a.py")
    repo.write("a.py", "one = 'unfinished'\r\n")
    repo.write("new/x.bin", bytes(range(256)))
    (repo.path / "new/x.bin").chmod(0o755)
    (repo.path / "link").symlink_to("a.py")
    (repo.path / "b.py").unlink()
    return manager(repo).abandon(SESSION, branch, {}, ignore, None).archived


def test_entries_say_what_they_hold_and_since_when(repo: Repo) -> None:
    refs = abandoned(repo)
    rows = {entry.ref: entry for entry in Trash(repo.path).entries()}
    assert set(rows) == set(refs)
    assert {entry.kind for entry in rows.values()} == {ArchiveKind.WORK, ArchiveKind.BRANCH}
    assert {(entry.session_id, entry.branch) for entry in rows.values()} == {(SESSION, BRANCH)}
    assert all(abs(entry.created - time.time()) < 60 for entry in rows.values())


def test_a_branch_comes_back_with_its_base_even_after_everything_unreachable_is_gone(repo: Repo) -> None:
    _, ref = abandoned(repo)
    tip = repo.git("rev-parse", f"{ref}^{{commit}}")
    collect(repo)
    restored = Trash(repo.path).restore(ref)
    assert (restored.branch, restored.hint) == (BRANCH, f"git switch {BRANCH}")
    assert repo.git("rev-parse", BRANCH) == tip
    assert manager(repo).stale()[0].base == "main"
    assert Trash(repo.path).restore(ref).branch == BRANCH, "a second time it is there already"
    repo.git("branch", "-qf", BRANCH, "main")
    assert Trash(repo.path).restore(ref.removeprefix("refs/code-intel/archive/")).branch == f"{BRANCH}-2"


def test_files_come_back_byte_for_byte(repo: Repo) -> None:
    work, ref = abandoned(repo)
    collect(repo)
    Trash(repo.path).restore(ref)
    repo.git("switch", "-q", BRANCH)
    restored = Trash(repo.path).restore(work)
    assert restored.files == ("a.py", "b.py", "link", "new/x.bin")
    files = repo.files()
    assert files["a.py"] == ("file", b"one = 'unfinished'\r\n")
    assert files["new/x.bin"] == ("exec", bytes(range(256)))
    assert files["link"] == ("link", b"a.py")
    assert "b.py" not in files
    assert Trash(repo.path).restore(work).files == (), "nothing is left to bring back"


def test_a_folder_in_the_place_of_a_kept_file_is_named(repo: Repo) -> None:
    work, ref = abandoned(repo)
    Trash(repo.path).restore(ref)
    repo.git("switch", "-q", BRANCH)
    repo.write("new/x.bin/inside.txt", "mine\n")
    with pytest.raises(UserActionNeeded) as caught:
        Trash(repo.path).restore(work)
    assert caught.value.details["files"] == ["new/x.bin"]


def test_nothing_of_the_users_is_overwritten(repo: Repo) -> None:
    work, _ = abandoned(repo)
    repo.write("new/x.bin", "mine now\n")
    before = repo.sentinel()
    with pytest.raises(UserActionNeeded) as caught:
        Trash(repo.path).restore(work)
    assert (caught.value.key, caught.value.details["files"]) == ("tool_errors.trash.in_the_way", ["a.py", "new/x.bin"])
    assert repo.sentinel() == before


def test_a_link_in_place_of_a_folder_is_in_the_way(repo: Repo, tmp_path: Path) -> None:
    branch = manager(repo).create(SESSION, (), ignore, None)
    repo.write("new/x", "x\n")
    work, *_ = manager(repo).abandon(SESSION, branch, {}, ignore, None).archived
    (tmp_path / "outside").mkdir()
    (repo.path / "new").symlink_to(tmp_path / "outside")
    with pytest.raises(UserActionNeeded):
        Trash(repo.path).restore(work)
    assert not list((tmp_path / "outside").iterdir())


def test_discarded_files_come_back(repo: Repo) -> None:
    branch = manager(repo).create(SESSION, (), ignore, None)
    repo.write("a.py", "one = 2\n")
    request = CommitRequest(SESSION, branch, branch.base_oid, "m", (), (), discard=("a.py",))
    done = manager(repo).commit(request, ignore, None)
    assert (done.oid, repo.read("a.py")) == ("", "one = 1\n")
    assert Trash(repo.path).restore(done.archived[0]).files == ("a.py",)
    assert repo.read("a.py") == "one = 2\n"


def test_what_was_staged_is_brought_back_by_the_user(repo: Repo) -> None:
    branch = manager(repo).create(SESSION, (), ignore, None)
    repo.write("a.py", "staged\n")
    repo.git("add", "a.py")
    refs = manager(repo).abandon(SESSION, branch, {}, ignore, None).archived
    staged = next(ref for ref in refs if ref.endswith("staged"))
    assert Trash(repo.path).restore(staged).hint == f"git restore --staged --source={staged} -- ."


def test_unknown_entries_are_refused(repo: Repo) -> None:
    for ref in ("refs/heads/main", "", "../x", "--all"):
        with pytest.raises(Rejected) as caught:
            Trash(repo.path).restore(ref)
        assert caught.value.key == "tool_errors.trash.unknown"


def test_entries_are_kept_ninety_days(repo: Repo) -> None:
    refs = abandoned(repo)
    trash = Trash(repo.path)
    assert trash.purge(now=time.time() + (KEEP_DAYS - 1) * DAY) == ()
    assert set(trash.purge(now=time.time() + (KEEP_DAYS + 1) * DAY)) == set(refs)
    assert trash.entries() == ()


def test_chosen_entries_can_be_purged_at_once_and_nothing_else(repo: Repo) -> None:
    work, branch = abandoned(repo)
    trash = Trash(repo.path)
    assert trash.purge(refs=[work, "refs/heads/main", "refs/code-intel/archive/none"]) == (work,)
    assert [entry.ref for entry in trash.entries()] == [branch]
    assert repo.git("rev-parse", "main")


def test_refs_that_somebody_else_wrote_are_listed_without_harm(repo: Repo) -> None:
    repo.git("update-ref", "refs/code-intel/archive/odd", "HEAD")
    repo.git("update-ref", "refs/code-intel/archive/x/y/z-nokind", "HEAD")
    rows = Trash(repo.path).entries()
    assert [(row.session_id, row.created, row.commit) for row in rows] == [
        ("", 0, repo.git("rev-parse", "HEAD")),
        ("x/y", 0, repo.git("rev-parse", "HEAD")),
    ]


def test_without_git_there_is_no_trash(tmp_path: Path) -> None:
    with pytest.raises(UserActionNeeded) as caught:
        Trash(tmp_path)
    assert caught.value.key == "tool_errors.git.not_a_repository"
