"""Files: read only what they are, written whole or not at all."""

import errno
import os
import stat
from pathlib import Path

import pytest

from code_intel_server.workspace import files
from code_intel_server.workspace.files import make_folder, read_regular, remove_temporary_files, stage, write_whole


def test_a_plain_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    assert read_regular(tmp_path / "a", 5) == b"12345"
    with pytest.raises(OSError, match="larger than 4 bytes") as raised:
        read_regular(tmp_path / "a", 4)
    assert raised.value.errno == errno.EFBIG


def test_a_file_that_lies_about_its_size_is_not_read_beyond_the_limit() -> None:
    # A file of /proc says that it is empty and goes on nevertheless.
    assert Path("/proc/self/maps").stat().st_size == 0
    with pytest.raises(OSError, match="larger than 10 bytes"):
        read_regular(Path("/proc/self/maps"), 10)


def test_a_link_is_followed_only_on_request_and_then_to_a_plain_file_alone(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "pipe").symlink_to("fifo")
    os.mkfifo(tmp_path / "fifo")
    assert read_regular(tmp_path / "link", 5, follow=True) == b"12345"
    with pytest.raises(OSError, match="not a regular file"):
        read_regular(tmp_path / "pipe", 5, follow=True)


@pytest.mark.parametrize(("make", "number"), [
    (lambda path: path.symlink_to("b"), errno.ELOOP),
    (lambda path: path.symlink_to("/etc/passwd"), errno.ELOOP),
    (os.mkfifo, errno.EINVAL),
    (lambda path: path.mkdir(), errno.EINVAL),
    (lambda path: None, errno.ENOENT),
], ids=["dangling", "link", "fifo", "folder", "nothing"])  # fmt: skip
def test_what_is_no_plain_file_is_not_read_and_nothing_stays_open(tmp_path: Path, make: object, number: int) -> None:
    assert callable(make)
    make(tmp_path / "a")
    before = len([*Path("/dev/fd").iterdir()])
    with pytest.raises(OSError, match=r".") as raised:
        read_regular(tmp_path / "a", 100)
    assert raised.value.errno == number
    assert len([*Path("/dev/fd").iterdir()]) == before


def test_a_new_file_has_the_given_mode_and_one_that_exists_keeps_its_own(tmp_path: Path) -> None:
    write_whole(tmp_path / "a", b"1")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600
    (tmp_path / "a").chmod(0o640)
    write_whole(tmp_path / "a", b"2")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640
    assert (tmp_path / "a").read_bytes() == b"2"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_name_that_cannot_be_taken_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").touch()
    with pytest.raises(OSError, match="directory"):
        write_whole(tmp_path / "a", b"1")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_content_is_written_whole_however_little_the_system_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, data[:3]))
    write_whole(tmp_path / "a", b"0123456789")
    monkeypatch.undo()
    assert (tmp_path / "a").read_bytes() == b"0123456789"


@pytest.mark.parametrize("works", [True, False])
def test_where_the_system_has_a_full_sync_it_is_used_and_the_plain_one_where_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, works: bool
) -> None:
    asked: list[str] = []

    def full(_descriptor: int, command: int) -> int:
        asked.append(f"full {command}")
        if not works:
            raise OSError(errno.ENOTSUP, "Operation not supported")
        return 0

    monkeypatch.setattr(files, "_FULL_SYNC", 51)
    monkeypatch.setattr("fcntl.fcntl", full)
    monkeypatch.setattr(os, "fsync", lambda _: asked.append("plain"))
    stage(tmp_path / "a", b"1")
    assert asked == (["full 51"] if works else ["full 51", "plain"])


def test_folders_are_made_with_their_parents_and_those_that_exist_stay(tmp_path: Path) -> None:
    make_folder(tmp_path / "a" / "b", 0o700)
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700
    (tmp_path / "a" / "b" / "x").touch()
    make_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b" / "x").exists()


def test_sweeping_takes_only_our_temporary_files_and_no_folder_or_link_of_that_name(tmp_path: Path) -> None:
    stage(tmp_path / "a", b"1")
    (tmp_path / ".a.0123456789abcdef.tmp").mkdir()
    (tmp_path / ".b.0123456789abcdef.tmp").symlink_to("/etc/passwd")
    (tmp_path / ".a.0123.tmp").touch()
    assert remove_temporary_files(tmp_path) == 1
    assert len(list(tmp_path.iterdir())) == 3
    assert remove_temporary_files(tmp_path / "missing") == 0
