"""The project's lock: exactly one holder, known to the others, freed by death."""

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from code_intel_server.errors import Unavailable, UserActionNeeded
from code_intel_server.process import spawn
from code_intel_server.workspace.state.key import private_folder
from code_intel_server.workspace.state.lock import Owner, ProjectLock

HOLDER = """
import signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # a run under nohup hands an ignored one down
from pathlib import Path
from code_intel_server.errors import UserActionNeeded
from code_intel_server.workspace.state.lock import ProjectLock
for line in sys.stdin:
    folder = Path(line.rstrip())
    lock = ProjectLock(folder)
    try:
        lock.acquire("20260201_123456")
        print("held", flush=True)
    except UserActionNeeded as error:
        print(error.key, flush=True)
    sys.stdin.readline()
    lock.release()
"""


class Contender:
    """A real process that tries for one lock after the other, one line each."""

    def __init__(self) -> None:
        self.child = subprocess.Popen(
            [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.child.stdin is not None and self.child.stdout is not None
        self.into: IO[str] = self.child.stdin
        self.out: IO[str] = self.child.stdout

    def tell(self, line: str) -> None:
        """Send a folder, or an empty line to let go."""
        self.into.write(line + "\n")
        self.into.flush()

    def heard(self) -> str:
        """What it answered."""
        return self.out.readline().strip()

    def end(self) -> None:
        """End it by closing its input."""
        self.into.close()
        self.out.close()
        self.child.wait(60)


@pytest.fixture
def other() -> Iterator[Contender]:
    """One other process, ended afterwards by its end of input."""
    contender = Contender()
    yield contender
    if contender.child.poll() is None:
        contender.child.send_signal(signal.SIGCONT)
    contender.end()


def test_two_processes_that_try_at_once_two_hundred_times_are_never_both_or_neither_let_in(tmp_path: Path) -> None:
    contenders = [Contender(), Contender()]
    outcomes = []
    for number in range(200):
        for contender in contenders:
            contender.tell(str(tmp_path / str(number % 3)))
        outcomes.append(sorted(contender.heard() for contender in contenders))
        for contender in contenders:
            contender.tell("")
    for contender in contenders:
        contender.end()
    assert outcomes == [["held", "tool_errors.start_session.project_locked"]] * 200


def test_the_second_is_told_who_holds_it_and_since_when(tmp_path: Path, other: Contender) -> None:
    other.tell(str(tmp_path))
    assert other.heard() == "held"
    with pytest.raises(UserActionNeeded) as raised:
        ProjectLock(tmp_path).acquire()
    assert raised.value.key == "tool_errors.start_session.project_locked"
    assert raised.value.params["owner"] == f"process {other.child.pid}, session 20260201_123456"
    assert str(raised.value.params["since"]).startswith("20")
    assert raised.value.details["owner_pid"] == other.child.pid


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_the_owners_death_frees_it_and_what_it_wrote_is_not_believed(
    tmp_path: Path, other: Contender, number: signal.Signals
) -> None:
    other.tell(str(tmp_path))
    assert other.heard() == "held"
    other.child.send_signal(number)
    other.child.wait(60)
    assert json.loads((tmp_path / "lock").read_text())["pid"] == other.child.pid
    mine = ProjectLock(tmp_path)
    assert mine.owner() is None
    mine.acquire()
    assert mine.held()
    mine.release()


def test_a_stopped_owner_holds_it_still(tmp_path: Path, other: Contender) -> None:
    other.tell(str(tmp_path))
    assert other.heard() == "held"
    other.child.send_signal(signal.SIGSTOP)
    with pytest.raises(UserActionNeeded):
        ProjectLock(tmp_path).acquire()


def test_two_holders_in_one_process_exclude_each_other_too(tmp_path: Path) -> None:
    first, second = ProjectLock(tmp_path), ProjectLock(tmp_path)
    first.acquire("20260201_123456")
    with pytest.raises(UserActionNeeded):
        second.acquire()
    owner = second.owner()
    assert owner is not None
    assert (owner.pid, owner.session_id) == (os.getpid(), "20260201_123456")
    first.release()
    second.acquire()
    second.release()


def test_two_projects_of_one_worktree_share_the_lock_and_not_the_session(tmp_path: Path) -> None:
    here, there = tmp_path / "a", tmp_path / "b"
    here.mkdir()
    there.mkdir()
    mine = ProjectLock(tmp_path, here)
    mine.acquire("20260201_123456")
    with pytest.raises(UserActionNeeded) as raised:
        ProjectLock(tmp_path, there).acquire()
    assert str(raised.value.params["owner"]).endswith(f"session 20260201_123456 in {here}")
    assert raised.value.details["owner_root"] == str(here)
    owner = ProjectLock(tmp_path, there).owner()
    assert owner is not None
    assert owner.serves(here)
    assert not owner.serves(there)
    mine.release()


def test_taking_it_again_keeps_it_and_names_the_new_session(tmp_path: Path) -> None:
    mine = ProjectLock(tmp_path)
    mine.acquire("20260201_123456")
    mine.acquire("20260201_123457")
    owner = ProjectLock(tmp_path).owner()
    assert owner is not None
    assert owner.session_id == "20260201_123457"
    mine.release()
    mine.release()
    assert not mine.held()


def test_children_do_not_inherit_it(tmp_path: Path) -> None:
    mine = ProjectLock(tmp_path)
    mine.acquire()
    child = spawn(["cat"], cwd=tmp_path)
    with child:
        mine.release()
        second = ProjectLock(tmp_path)
        second.acquire()
        assert child.poll() is None, "the child lives on while the lock is free"
        second.release()
        assert child.stdin is not None
        child.stdin.close()


def test_looking_never_keeps_a_process_out(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    looking = os.open(tmp_path / "lock", os.O_RDONLY)
    fcntl.flock(looking, fcntl.LOCK_SH)
    waits: list[float] = []

    def pause(seconds: float) -> None:
        waits.append(seconds)
        fcntl.flock(looking, fcntl.LOCK_UN)

    mine = ProjectLock(tmp_path, pause=pause)
    mine.acquire()
    assert len(waits) == 1
    mine.release()
    os.close(looking)


def test_a_lock_file_that_was_removed_is_no_lock_any_more_and_the_holder_knows(tmp_path: Path) -> None:
    first, second = ProjectLock(tmp_path), ProjectLock(tmp_path)
    first.acquire()
    (tmp_path / "lock").unlink()
    assert not first.held()
    second.acquire()
    with pytest.raises(UserActionNeeded):
        first.acquire()
    second.release()


def test_a_lock_file_that_is_replaced_while_it_is_being_taken_is_taken_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = fcntl.flock
    replaced: list[int] = []

    def replace_once(descriptor: int, operation: int) -> None:
        if not replaced:
            replaced.append(descriptor)
            (tmp_path / "lock").unlink()
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", replace_once)
    mine = ProjectLock(tmp_path)
    mine.acquire()
    assert mine.held()
    assert replaced
    mine.release()


def test_every_alias_of_a_worktree_has_the_same_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    real = tmp_path / "real" / "project"
    (real / "sub").mkdir(parents=True)
    (tmp_path / "alias").symlink_to(real)
    (tmp_path / "parent").symlink_to(real.parent)
    aliases = [
        real, tmp_path / "alias", tmp_path / "parent" / "project", real / "sub" / "..", tmp_path / "real" / "." / "project",
        Path(os.path.relpath(real)),
    ]  # fmt: skip
    assert len({private_folder(None, alias) for alias in aliases}) == 1
    mine = ProjectLock(private_folder(None, aliases[0]))
    mine.acquire()
    for alias in aliases[1:]:
        with pytest.raises(UserActionNeeded):
            ProjectLock(private_folder(None, alias)).acquire()
    mine.release()
    git_folders = [alias / ".git" for alias in aliases]
    (real / ".git").mkdir()
    mine = ProjectLock(private_folder(git_folders[0], real))
    mine.acquire()
    for folder in git_folders[1:]:
        with pytest.raises(UserActionNeeded):
            ProjectLock(private_folder(folder, real)).acquire()
    mine.release()


@pytest.mark.parametrize("content", [
    b"", b"{", b"[]", b'{"pid": "7"}', b'{"pid": true}', b'{"pid": 1e999}', b"\xff\xfe", b"[" * 5000, b'{"since": 5}',
    b'{"host": null, "session_id": {}}',
])  # fmt: skip
def test_what_the_owner_wrote_may_be_anything(tmp_path: Path, content: bytes) -> None:
    mine = ProjectLock(tmp_path)
    mine.acquire()
    (tmp_path / "lock").write_bytes(content)
    assert ProjectLock(tmp_path).owner() == Owner()
    mine.release()


def test_an_owners_words_cannot_steer_a_terminal(tmp_path: Path) -> None:
    mine = ProjectLock(tmp_path)
    mine.acquire("\x1b[31mred\u202e")
    owner = ProjectLock(tmp_path).owner()
    assert owner is not None
    assert owner.session_id == "\\x1b[31mred\\u202e"
    assert Owner(7, host="elsewhere").described() == "process 7 on elsewhere"
    assert Owner().described() == "a process that has just begun"
    mine.release()


@pytest.mark.parametrize("make", [
    lambda path: path.symlink_to("/dev/null"), lambda path: path.mkdir(), lambda path: path.symlink_to(path.name),
])  # fmt: skip
def test_where_no_lock_can_be_the_reason_is_told(tmp_path: Path, make: object) -> None:
    assert callable(make)
    make(tmp_path / "lock")
    with pytest.raises(Unavailable, match="state_unavailable"):
        ProjectLock(tmp_path).acquire()
    assert ProjectLock(tmp_path).owner() is None


def test_a_system_that_cannot_lock_is_told_apart_from_a_held_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(*_: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    with pytest.raises(Unavailable, match="No locks available"):
        ProjectLock(tmp_path).acquire()
    assert ProjectLock(tmp_path).owner() is None
