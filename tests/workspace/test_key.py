"""The key: made once, the same for all, never in a clone."""

import fcntl
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from code_intel_server.errors import Unavailable
from code_intel_server.workspace.state.key import load_key, private_folder, state_home

ASK = """
import sys
from pathlib import Path
from code_intel_server.workspace.state.key import load_key
sys.stdin.readline()
print(load_key(Path(sys.argv[1])).hex())
"""


def test_the_key_is_32_random_bytes_that_only_the_user_can_read(tmp_path: Path) -> None:
    key = load_key(tmp_path / "code-intel")
    assert len(key) == 32
    assert load_key(tmp_path / "code-intel") == key
    assert load_key(tmp_path / "other") != key
    assert stat.S_IMODE((tmp_path / "code-intel" / "key").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "code-intel").stat().st_mode) == 0o700


def test_processes_that_ask_at_once_all_get_the_same_key(tmp_path: Path) -> None:
    for number in range(5):
        children = [
            subprocess.Popen(
                [sys.executable, "-c", ASK, str(tmp_path / str(number))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(4)
        ]
        for child in children:
            assert child.stdin is not None
            child.stdin.write("\n")
            child.stdin.flush()
        answers = {child.communicate(timeout=30)[0].strip() for child in children}
        assert answers == {load_key(tmp_path / str(number)).hex()}


@pytest.mark.parametrize("torn", [b"", b"short", bytes(32), b"x" * 33], ids=["empty", "short", "zeros", "long"])
def test_a_key_that_a_crash_tore_is_made_anew(tmp_path: Path, torn: bytes) -> None:
    (tmp_path / "key").write_bytes(torn)
    key = load_key(tmp_path)
    assert len(key) == 32
    assert any(key)
    assert load_key(tmp_path) == key


def test_a_process_stopped_while_making_it_keeps_nobody_waiting_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("code_intel_server.workspace.state.key._TRIES", 2)
    with (tmp_path / "key").open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(Unavailable, match="does not finish"):
            load_key(tmp_path)
    assert len(load_key(tmp_path)) == 32


def test_a_key_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    load_key(tmp_path)
    (tmp_path / "key").chmod(0o644)
    load_key(tmp_path)
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600


@pytest.mark.parametrize("make", [
    os.mkfifo, lambda path: path.mkdir(), lambda path: path.symlink_to("/dev/zero"), lambda path: path.symlink_to("elsewhere"),
], ids=["fifo", "folder", "device", "link"])  # fmt: skip
def test_what_is_no_plain_file_is_no_key(tmp_path: Path, make: object) -> None:
    assert callable(make)
    make(tmp_path / "key")
    with pytest.raises(Unavailable, match="state_unavailable"):
        load_key(tmp_path)
    assert not (tmp_path / "elsewhere").exists()


def test_with_git_it_lies_in_the_folder_no_clone_carries_and_without_in_the_users_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert private_folder(tmp_path / ".git", tmp_path) == tmp_path / ".git" / "code-intel"
    without = private_folder(None, tmp_path)
    assert without.parent == tmp_path / "state" / "code-intel" / "projects"
    assert private_folder(None, tmp_path / "other") != without


@pytest.mark.parametrize("given", ["", "relative/state"])
def test_a_state_home_that_is_not_absolute_is_ignored(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", given)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert state_home() == tmp_path / ".local" / "state" / "code-intel"
