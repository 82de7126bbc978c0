"""What the user had untracked before a session is his: who gives the session up has every text of it, before and after."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from code_intel_server.workspace.branches import abandon
from code_intel_server.workspace.branches.manager import BranchManager
from code_intel_server.workspace.branches.trash import Trash
from code_intel_server.workspace.tree.tree import BIG_BYTES, TreeJudge
from code_intel_server.workspace.values import Abandoned, GitIntent, TaskBranch
from tests.workspace.git_repo import Repo

SESSION = "20261122_120000"
AGAIN = f"as they were before session {SESSION} again (what they had become is in the trash)"
LEFT = f"changed since session {SESSION} began, left as they are (what they were before is in the trash)"


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    made = Repo.with_files(tmp_path, monkeypatch)
    made.write("mine.txt", "mine\n").chmod(0o640)
    made.write("notes/deep.txt", "deep\n")
    return made


class Session:
    """One that begins with the user's files and is given up."""

    def __init__(self, repo: Repo) -> None:
        self._repo, self._tree = repo, TreeJudge(repo.path)
        self.manager = BranchManager(repo.path, self._tree, patience=0.0)
        self._start, self._head = self._tree.snapshot(), repo.git("rev-parse", "HEAD")
        self.branch: TaskBranch | None = None
        self._intents: list[GitIntent] = []

    def on_a_branch(self) -> "Session":
        self.branch = self.manager.create(SESSION, (), lambda _: None, None)
        return self

    def abandon(self, *writable: str) -> Abandoned:
        before = self._tree.untracked_at(self._start, self._head)
        pending = self._intents[-1] if self._intents else None
        return self.manager.abandon(
            SESSION, self.branch, before, self._intents.append, pending, self._start, self._head, writable
        )

    def end(self) -> Abandoned:
        return self.manager.keep_earlier(SESSION, self._start, self._head)


def edited(repo: Repo) -> None:
    repo.write("mine.txt", "of the agent\n")


def committed(repo: Repo) -> None:
    repo.write("mine.txt", "of the agent\n")
    repo.commit("takes it in", "mine.txt")
    repo.write("mine.txt", "of the agent, edited\n")


def deleted(repo: Repo) -> None:
    (repo.path / "mine.txt").unlink()


def executable(repo: Repo) -> None:
    (repo.path / "mine.txt").chmod(0o750)


def linked(repo: Repo) -> None:
    (repo.path / "mine.txt").unlink()
    (repo.path / "mine.txt").symlink_to("b.py")


def made_a_folder(repo: Repo) -> None:
    (repo.path / "mine.txt").unlink()
    repo.write("mine.txt/inner.txt", "of the agent\n")


def grown(repo: Repo) -> None:
    os.truncate(repo.path / "mine.txt", BIG_BYTES + 1)


def staged(repo: Repo) -> None:
    repo.write("mine.txt", "of the agent\n")
    repo.git("add", "mine.txt")


CHANGES = [edited, committed, deleted, executable, linked, made_a_folder, grown, staged]


@pytest.mark.parametrize("change", CHANGES)
def test_a_users_file_that_the_session_might_write_gets_its_earlier_text_back(
    repo: Repo, change: Callable[[Repo], None]
) -> None:
    session = Session(repo).on_a_branch()
    change(repo)
    became = repo.files()
    done = session.abandon("mine.txt")
    assert (repo.read("mine.txt"), repo.git("status", "--porcelain")) == ("mine\n", "?? mine.txt\n?? notes/")
    os.umask(mask := os.umask(0))
    # Nobody knows that of one that is gone: it is as new.
    assert (repo.path / "mine.txt").stat().st_mode & 0o777 in {0o640, 0o644 & ~mask}
    assert done.warnings == (f"{AGAIN}: mine.txt",)
    earlier, work, *_ = done.archived
    assert repo.git("show", f"{earlier}:mine.txt") == "mine"
    Trash(repo.path).restore(work)
    assert repo.files() == became, "what it had become comes back in its place"


@pytest.mark.parametrize("change", CHANGES)
def test_one_that_the_user_may_have_changed_himself_stays_and_its_earlier_text_is_kept(
    repo: Repo, change: Callable[[Repo], None]
) -> None:
    session = Session(repo).on_a_branch()
    change(repo)
    became = repo.files()
    done = session.abandon()
    if change is made_a_folder:  # what is in it is new: it goes as all that is new goes
        del became["mine.txt/inner.txt"]
    assert repo.files() == became
    assert done.warnings[-1] == f"{LEFT}: mine.txt"
    entry = next(ref for ref in done.archived if ref.endswith("-earlier"))
    assert repo.git("show", f"{entry}:mine.txt") == "mine"
    if change is not grown:  # what no entry holds is overwritten by none
        assert Trash(repo.path).restore(entry).files == ("mine.txt",)
        assert repo.read("mine.txt") == "mine\n"


@pytest.mark.parametrize("there", ["file", "link"])
def test_a_folder_of_the_users_that_was_replaced_comes_back(repo: Repo, there: str) -> None:
    session = Session(repo).on_a_branch()
    shutil.rmtree(repo.path / "notes")
    if there == "file":
        repo.write("notes", "of the agent\n")
    else:
        (repo.path / "notes").symlink_to("/tmp")
    done = session.abandon("notes/deep.txt")
    assert (repo.read("notes/deep.txt"), done.head) == ("deep\n", "main")
    assert done.warnings == (f"{AGAIN}: notes/deep.txt",)


def test_what_stands_in_its_place_for_good_stays_and_is_told(repo: Repo) -> None:
    repo.write(".git/info/exclude", "*.log\n")
    session = Session(repo).on_a_branch()
    (repo.path / "mine.txt").unlink()
    repo.write("mine.txt/build.log", "ignored\n")
    done = session.abandon("mine.txt")
    assert (repo.read("mine.txt/build.log"), done.warnings) == ("ignored\n", (f"{LEFT}: mine.txt",))
    assert repo.git("show", f"{done.archived[0]}:mine.txt") == "mine"


def test_one_that_is_as_it_was_is_no_matter_though_it_is_ignored_by_now(repo: Repo) -> None:
    session = Session(repo).on_a_branch()
    repo.write(".gitignore", "mine.txt\n")
    done = session.abandon("mine.txt")
    assert (repo.read("mine.txt"), repo.git("status", "--porcelain")) == ("mine\n", "?? mine.txt\n?? notes/")
    assert done.warnings in {(), (f"{AGAIN}: mine.txt",)}


def test_the_earlier_text_is_kept_where_the_user_has_left_the_branch_or_none_was_made(repo: Repo) -> None:
    session = Session(repo).on_a_branch()
    committed(repo)
    repo.git("checkout", "-q", "-f", "main")
    done = session.abandon("mine.txt")
    assert repo.git("show", f"{done.archived[0]}:mine.txt") == "mine"
    assert done.warnings == (f"{LEFT}: mine.txt",)
    repo.write("mine.txt", "mine\n")
    repo.write("b.py", "two = 'unfinished before'\n")
    without = Session(repo)
    deleted(repo)
    repo.write("b.py", "two = 'of the agent'\n")
    repo.write("a.py", "one = 'of the agent'\n")
    done = without.abandon("mine.txt", "a.py", "b.py")
    earlier, work = done.archived
    assert repo.git("diff", "--name-status", "HEAD", earlier).split("\n") == ["M\tb.py", "A\tmine.txt"]
    assert repo.git("diff", "--name-status", earlier, work).split("\n") == ["M\ta.py", "M\tb.py", "D\tmine.txt"]
    assert done.warnings[-1] == f"{LEFT}: b.py, mine.txt"
    Trash(repo.path).restore(earlier)
    assert (repo.read("b.py"), repo.read("mine.txt")) == ("two = 'unfinished before'\n", "mine\n")


def test_of_one_that_was_too_large_to_be_kept_it_is_said(repo: Repo) -> None:
    os.truncate(repo.path / "mine.txt", BIG_BYTES + 1)
    session = Session(repo).on_a_branch()
    edited(repo)
    done = session.abandon("mine.txt")
    assert repo.read("mine.txt") == "of the agent\n"
    assert done.warnings[0].endswith("for their earlier content to be kept: mine.txt")


def test_a_repository_within_keeps_its_content_itself_and_is_said_to_be_gone_where_it_is(repo: Repo) -> None:
    repo.git("init", "-q", "clone")
    Repo(repo.path / "clone").commit("one")
    session = Session(repo).on_a_branch()
    Repo(repo.path / "clone").commit("two")
    other = Session(repo)
    other.branch = session.branch
    shutil.rmtree(repo.path / "clone")
    assert session.abandon().warnings[0].endswith("for their earlier content to be kept: clone")
    repo.git("init", "-q", "clone")
    Repo(repo.path / "clone").commit("three")
    assert other.abandon().warnings == ()


def test_the_earlier_text_outlives_the_private_store_and_a_garbage_collection(repo: Repo) -> None:
    repo.git("add", "mine.txt")  # now the repository has the content, and the store need not copy it
    repo.git("reset", "-q")
    session = Session(repo).on_a_branch()
    edited(repo)
    done = session.abandon()
    shutil.rmtree(repo.path / ".git/code-intel")
    repo.git("reflog", "expire", "--expire=now", "--all")
    repo.git("gc", "-q", "--prune=now")
    assert repo.git("show", f"{done.archived[0]}:mine.txt") == "mine"


def test_what_only_grew_lost_nothing(repo: Repo) -> None:
    """A log or a list of the user's own grows with every session."""
    session = Session(repo)
    repo.write("mine.txt", "mine\nand more\n")
    assert session.end().archived == ()
    repo.write("notes/deep.txt", "dee\n")
    done = session.end()
    assert done.warnings == (f"{LEFT}: notes/deep.txt",)
    assert repo.git("diff", "--name-only", f"{done.archived[0]}^", done.archived[0]) == "notes/deep.txt"
    for number in range(60):
        repo.write(f"many/{number}", f"{number}\n")
    other = Session(repo)
    (repo.path / "mine.txt").unlink()
    (repo.path / "mine.txt").mkdir()
    for number in range(60):
        repo.write(f"many/{number}", "other\n")
    (ref,) = other.end().archived
    assert len(repo.git("diff", "--name-only", f"{ref}^", ref).split()) == 61


def test_of_many_files_all_are_kept(repo: Repo) -> None:
    for number in range(150):
        repo.write(f"many/{number}.txt", f"{number}\n")
    session = Session(repo).on_a_branch()
    shutil.rmtree(repo.path / "many")
    done = session.abandon()
    shutil.rmtree(repo.path / ".git/code-intel")
    repo.git("gc", "-q", "--prune=now")
    assert repo.git("show", f"{done.archived[0]}:many/149.txt") == "149"
    assert len(Trash(repo.path).restore(done.archived[0]).files) == 150


class Killed(BaseException):
    """As if the process ended here."""


def test_permissions_are_known_again_to_who_takes_the_way_back_up_after_a_kill(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(*_: object, **__: object) -> None:
        raise Killed

    session = Session(repo).on_a_branch()
    committed(repo)
    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(abandon, "write_back", kill)
        session.abandon("mine.txt")
    assert not (repo.path / "mine.txt").exists()
    assert session.abandon("mine.txt").warnings == (f"{AGAIN}: mine.txt",)
    assert repo.read("mine.txt") == "mine\n"
    assert (repo.path / "mine.txt").stat().st_mode & 0o777 == 0o640


def test_the_executable_bit_is_no_matter_where_the_repository_does_not_heed_it(repo: Repo) -> None:
    repo.git("config", "core.filemode", "false")
    (repo.path / "mine.txt").chmod(0o755)
    session = Session(repo).on_a_branch()
    edited(repo)
    done = session.abandon()
    assert done.warnings == (f"{LEFT}: mine.txt",)
    (repo.path / "mine.txt").write_text("mine\n")
    assert Trash(repo.path).restore(done.archived[0]).files == ()
