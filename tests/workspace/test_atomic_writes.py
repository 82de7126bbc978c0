"""A file that comes back into the user's tree is there as before or as it shall be, whenever the writer is killed."""

import contextlib
import errno
import os
import signal
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from code_intel_server.workspace import atomic_writes
from code_intel_server.workspace.atomic_writes import IncomingFile
from code_intel_server.workspace.branches import archive_refs
from code_intel_server.workspace.branches.manager import BranchManager
from code_intel_server.workspace.branches.trash import Trash
from code_intel_server.workspace.git.repository import Git, open_repository
from code_intel_server.workspace.tree.tree import TreeJudge
from tests.workspace.git_repo import Repo

CALLS = ("open", "mkdir", "write", "fsync", "fchmod", "link", "rename", "unlink", "symlink", "close")
SESSION = "20261121_110000"
BIG = "kept = 'x'\n" * 9_000


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """A commit with a file, a program, a link and a file in folders; then all of them were changed, one is gone."""
    repo = Repo.make(tmp_path, monkeypatch)
    repo.write("a.py", BIG)
    repo.write("run.sh", "#!/bin/sh\n").chmod(0o755)
    repo.write("new/deep/x.txt", "deep\n")
    (repo.path / "link").symlink_to("a.py")
    repo.commit("kept")
    repo.write("a.py", "mine = 1\n").chmod(0o600)
    repo.write("run.sh", "echo\n")
    (repo.path / "link").unlink()
    (repo.path / "new/deep/x.txt").unlink()
    (repo.path / "new/deep").rmdir()
    (repo.path / "new").rmdir()
    return repo


PATHS = ("a.py", "run.sh", "link", "new/deep/x.txt")


def door(repo: Repo) -> Git:
    found = open_repository(repo.path)
    assert isinstance(found, Git)
    return found


def act(repo: Repo) -> list[str]:
    return archive_refs.write_back(door(repo), "HEAD", PATHS, replace=("a.py", "run.sh"))


def place_all(git: Git) -> None:
    """What writing back does to the tree, without the git children before it."""
    for path, mode, content in (
        ("a.py", "100644", BIG.encode()),
        ("run.sh", "100755", b"#!/bin/sh\n"),
        ("link", "120000", b"a.py"),
        ("new/deep/x.txt", "100644", b"deep\n"),
    ):
        atomic_writes.remove_unfinished(git, [path])
        atomic_writes.place(git, IncomingFile(path, mode, content), replace=path in {"a.py", "run.sh"})


def killed(git: Git, fatal: int) -> bool:
    """Place all in a child that dies before its `fatal`th call (a write: in its middle); whether it died."""
    child = os.fork()
    if child == 0:
        seen = 0

        def watched(real: Callable[..., Any], name: str) -> Callable[..., Any]:
            def call(*arguments: Any, **options: Any) -> Any:
                nonlocal seen
                seen += 1
                if seen == fatal:
                    if name == "write":
                        real(arguments[0], arguments[1][: len(arguments[1]) // 2])
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*arguments, **options)

            return call

        with contextlib.suppress(Exception):
            for name in CALLS:
                setattr(os, name, watched(getattr(os, name), name))
            place_all(git)
            os._exit(0)
        os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def test_a_writer_killed_at_any_system_call_leaves_the_old_or_the_new_and_the_next_one_finishes(
    repo: Repo, record_property: Callable[[str, object], None]
) -> None:
    git, old = door(repo), repo.files()
    assert act(repo) == sorted(PATHS)
    wanted = repo.files()
    assert wanted["a.py"] == ("file", BIG.encode())
    assert set(wanted) == set(PATHS)
    for fatal in range(1, 500):
        for path in PATHS:
            (repo.path / path).unlink()
        (repo.path / "new/deep").rmdir()
        (repo.path / "new").rmdir()
        repo.write("a.py", old["a.py"][1]).chmod(0o600)
        repo.write("run.sh", old["run.sh"][1]).chmod(0o755)
        died = killed(git, fatal)
        for path, found in repo.files().items():
            assert found in (old.get(path), wanted[path]), (fatal, path)
        assert {"a.py", "run.sh"} <= repo.files().keys(), "what was there is never missing"
        place_all(git)
        assert repo.files() == wanted, fatal
        assert not list((repo.path / ".git/code-intel/incoming").iterdir())
        if not died:
            break
    record_property("executions", fatal)
    assert fatal > 40


def test_a_replaced_file_keeps_its_permissions_and_its_other_names_their_content(repo: Repo) -> None:
    os.link(repo.path / "a.py", repo.path / "other.py")
    (repo.path / "run.sh").chmod(0o440)
    act(repo)
    assert stat.S_IMODE((repo.path / "a.py").stat().st_mode) == 0o600
    assert stat.S_IMODE((repo.path / "run.sh").stat().st_mode) == 0o550, "read-only as before, and a program"
    assert repo.read("other.py") == "mine = 1\n"


def test_what_stands_there_is_not_replaced_unasked(repo: Repo) -> None:
    git = door(repo)
    assert archive_refs.write_back(git, "HEAD", PATHS) == ["link", "new/deep/x.txt"]
    assert not atomic_writes.place(git, IncomingFile("a.py", "100644", b"x"))
    assert repo.read("a.py") == "mine = 1\n"
    (repo.path / "folder").mkdir()
    assert not atomic_writes.place(git, IncomingFile("folder", "100644", b"x"), replace=True)


@pytest.mark.parametrize("make", [Path.symlink_to, lambda path, _: path.write_text("a file")], ids=["link", "file"])
def test_a_link_or_file_in_place_of_a_folder_is_never_followed(
    repo: Repo, tmp_path: Path, make: Callable[[Path, Path], object]
) -> None:
    (tmp_path / "outside").mkdir()
    make(repo.path / "new", tmp_path / "outside")
    assert "new/deep/x.txt" not in act(repo)
    assert list((tmp_path / "outside").iterdir()) == []


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP])
def test_without_hard_links_it_is_renamed_and_still_takes_nobodys_place(
    repo: Repo, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def no_links(*_: object, **__: object) -> None:
        raise OSError(number, "no links")

    monkeypatch.setattr(os, "link", no_links)
    assert set(act(repo)) == set(PATHS)
    assert not atomic_writes.place(door(repo), IncomingFile("link", "100644", b"x"))


@pytest.mark.parametrize("path", ["new/deep/x.txt", "a.py"])
def test_between_two_mounts_of_one_file_system_it_is_written_beside_its_target(
    repo: Repo, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """Both have one device number, and neither a link nor a rename leads from one to the other."""

    def across(real: Callable[..., None]) -> Callable[..., None]:
        def call(source: str, target: str, *, src_dir_fd: int, dst_dir_fd: int, **more: Any) -> None:
            if not os.path.sameopenfile(src_dir_fd, dst_dir_fd):
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
            real(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd, **more)

        return call

    monkeypatch.setattr(os, "link", across(os.link))
    monkeypatch.setattr(os, "rename", across(os.rename))
    git = open_repository(repo.path, patience=0.0)
    assert isinstance(git, Git)
    assert atomic_writes.place(git, IncomingFile(path, "100644", b"back\n"), replace=True)
    assert repo.read(path) == "back\n"
    assert not [name for name in repo.files() if name.endswith(".tmp")]


@pytest.mark.parametrize("error", [0, errno.EPERM, errno.EXDEV])
def test_a_file_made_in_our_own_folder_moves_in_where_nothing_stands(
    repo: Repo, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    git = open_repository(repo.path)
    assert isinstance(git, Git)
    made = repo.write(".git/code-intel/restored/new/deep/x.txt", "made\n")
    (made.parent / "link").symlink_to("x.txt")
    real = {name: getattr(os, name) for name in ("link", "rename")}

    def across(name: str) -> Callable[..., None]:
        def call(source: str, *arguments: Any, **options: Any) -> None:
            if error and source in {"x.txt", "link"} and (name == "link" or error == errno.EXDEV):
                raise OSError(error, os.strerror(error))
            real[name](source, *arguments, **options)

        return call

    for name in real:
        monkeypatch.setattr(os, name, across(name))
    assert atomic_writes.move_in(git, made, "new/deep/x.txt", "100644")
    assert atomic_writes.move_in(git, made.parent / "link", "new/deep/link", atomic_writes.LINK)
    assert (repo.read("new/deep/x.txt"), (repo.path / "new/deep/link").readlink()) == ("made\n", Path("x.txt"))
    repo.write(".git/code-intel/restored/other", "made\n")
    assert not atomic_writes.move_in(git, repo.path / ".git/code-intel/restored/other", "new/deep/x.txt", "100644")
    assert not atomic_writes.move_in(git, repo.path / ".git/code-intel/restored/other", "a.py/below", "100644")
    assert repo.read("new/deep/x.txt") == "made\n"


def test_a_name_taken_at_the_last_moment_stays_the_users(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.link

    def late(*arguments: Any, **options: Any) -> None:
        repo.write("new/deep/x.txt", "mine\n")
        real(*arguments, **options)

    monkeypatch.setattr(os, "link", late)
    assert archive_refs.write_back(door(repo), "HEAD", ["new/deep/x.txt"]) == []
    assert repo.read("new/deep/x.txt") == "mine\n"


def test_a_full_disk_leaves_the_old_and_no_temporary_file(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    before = repo.files()
    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        atomic_writes.place(door(repo), IncomingFile("a.py", "100644", b"x"), replace=True)
    monkeypatch.undo()
    assert repo.files() == before
    assert not list((repo.path / ".git/code-intel/incoming").iterdir())


def test_where_the_git_directory_is_another_file_system_the_file_waits_beside_its_target(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    shm = Path("/dev/shm")
    if not shm.is_dir() or shm.stat().st_dev == repo.path.stat().st_dev:
        pytest.skip("no second file system here")
    elsewhere = shm / f"code-intel-test-{os.getpid()}"
    elsewhere.mkdir()
    try:
        own = repo.path / ".git/code-intel"
        own.mkdir(exist_ok=True)
        (own / "incoming").symlink_to(elsewhere)
        monkeypatch.setattr(atomic_writes, "_FOLDER", os.O_RDONLY | os.O_DIRECTORY)  # the link stands for a mount
        left = repo.write(f"new/deep/.code-intel-{'0' * 24}.tmp", "of a killed writer")
        assert set(act(repo)) == set(PATHS)
        assert not left.exists()
        assert set(repo.files()) == set(PATHS)
    finally:
        elsewhere.rmdir()


def test_the_file_of_a_writer_that_lives_is_not_swept(repo: Repo) -> None:
    import fcntl

    own = repo.path / ".git/code-intel/incoming"
    own.mkdir(parents=True)
    held, link = own / f".code-intel-{'1' * 24}.tmp", own / f".code-intel-{'2' * 24}.tmp"
    link.symlink_to("a.py")
    (own / "users.tmp").write_text("not ours")
    with held.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        atomic_writes.remove_unfinished(door(repo), ["a.py"])
        assert sorted(path.name for path in own.iterdir()) == [held.name, "users.tmp"]
    atomic_writes.remove_unfinished(door(repo), ["a.py"])
    assert [path.name for path in own.iterdir()] == ["users.tmp"]


def test_each_folder_is_swept_once_however_many_files_come_back_to_it(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        repo.write(f"many/{number}.txt", "x\n")
    repo.commit("many")
    for number in range(30):
        (repo.path / f"many/{number}.txt").unlink()
    scanned: list[str] = []
    real = os.scandir

    def noted(folder: Path) -> object:
        scanned.append(str(folder))
        return real(folder)

    monkeypatch.setattr(os, "scandir", noted)
    assert len(archive_refs.write_back(door(repo), "HEAD", [f"many/{number}.txt" for number in range(30)])) == 30
    assert len(scanned) == len(set(scanned)) <= 2


def test_restoring_a_file_in_place_of_a_folder_that_becomes_empty(repo: Repo) -> None:
    repo.git("checkout", "-q", "--", ".")
    work = BranchManager(repo.path, TreeJudge(repo.path))
    branch = work.create(SESSION, (), lambda _: None, None)
    (repo.path / "new/deep/x.txt").unlink()
    (repo.path / "new/deep").rmdir()
    repo.write("new/deep", "a file now\n")
    kept, *_ = work.abandon(SESSION, branch, {}, lambda _: None, None).archived
    assert repo.read("new/deep/x.txt") == "deep\n"
    assert set(Trash(repo.path).restore(kept).files) == {"new/deep", "new/deep/x.txt"}
    assert repo.read("new/deep") == "a file now\n"
