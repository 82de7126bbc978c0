"""Opening what lies below a folder without following a link on the way."""

import errno
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from code_intel_server.common import safe_open

READING = """
import os
from code_intel_server.common import safe_open
if os.geteuid() == 0:  # whom no permission stops
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
try:
    os.listdir("inner")
except PermissionError:
    with open(safe_open.open_below(".", "inner/deep/a.py"), "rb") as file:
        print(file.read().decode())
"""


def test_a_folder_that_may_be_passed_but_not_listed_is_no_obstacle(tmp_path: Path) -> None:
    deep = tmp_path / "root" / "inner" / "deep"
    deep.mkdir(parents=True)
    (deep / "a.py").write_text("one")
    (deep / "a.py").chmod(0o644)
    folders = (deep, deep.parent, deep.parent.parent)
    for folder in folders:
        folder.chmod(0o311)
    # Nobody's process can write no measurements into our folder.
    unmeasured = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    command = [sys.executable, "-c", READING]
    done = subprocess.run(command, cwd=tmp_path / "root", env=unmeasured, capture_output=True, text=True, check=False)
    for folder in folders:
        folder.chmod(0o755)
    assert (done.stdout, done.stderr) == ("one\n", "")


def open_below(folder: Path) -> int:
    """How many descriptors of this process are of the folder or what lies in it, whatever else is opened and closed beside."""
    statuses = [one.lstat() for one in (folder, *folder.rglob("*"))]
    found = {(status.st_dev, status.st_ino) for status in statuses}
    count = 0
    for name in os.listdir("/dev/fd"):  # noqa: PTH208 - closed again, unlike an iterator's, before they are looked at
        with suppress(OSError):
            status = os.fstat(int(name))
            count += (status.st_dev, status.st_ino) in found
    return count


@pytest.mark.parametrize("path", ["linked/a.py", "linked/deep/a.py", "file/a.py", "inner/link.py"])
def test_a_link_or_a_file_in_the_place_of_a_folder_ends_the_walk(tmp_path: Path, path: str) -> None:
    (tmp_path / "inner" / "deep").mkdir(parents=True)
    for name in ("inner/a.py", "inner/deep/a.py", "file"):
        (tmp_path / name).write_text("one")
    (tmp_path / "linked").symlink_to("inner")
    (tmp_path / "inner" / "link.py").symlink_to("a.py")
    with pytest.raises(OSError) as caught:
        safe_open.open_below(tmp_path, path)
    assert caught.value.errno in {errno.ELOOP, errno.ENOTDIR}
    assert open_below(tmp_path) == 0
