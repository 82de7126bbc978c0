"""What runs where functions do nothing, and so nothing holds it back, changes and reaches nothing outside (SPEC 4, Receipts)."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from code_intel_server.receipts.checkout import receipt_folder
from code_intel_server.receipts.isolation import IsolatedCheckout, can_confine
from code_intel_server.receipts.notary import Verdict
from code_intel_server.workspace.project.config import Mutants
from tests.programs import ran
from tests.receipts.alone import judged
from tests.workspace.git_repo import Repo

PYTEST = (sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider")
CONFINED = pytest.mark.skipif(not can_confine(), reason="nothing can be confined here")
_LONGEST_SOCKET_NAME = 107
NAME = f"code-intel-test-{os.getpid()}"
HOSTILE = """
import ctypes, os, shutil, signal, socket, subprocess

OUTSIDE, PROCESS, PORT = {outside!r}, {process}, {port}

def connect(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as one:
        one.settimeout(5)
        one.connect(address)

def write(path):
    with open(path, "w") as file:
        file.write("written")

def attempt(*does):
    for one in does:
        try:
            one()
        except OSError:
            pass

def in_namespaces_of_its_own():
    if child := os.fork():
        return os.waitpid(child, 0)
    libc = ctypes.CDLL(None)
    libc.unshare(0x10000000 | 0x20000)
    for place in ("/", OUTSIDE, OUTSIDE + "/home", "/tmp"):
        libc.mount(None, place.encode(), None, ctypes.c_ulong(0x20 | 0x1000), None)
        libc.umount2(place.encode(), 2)
    try:
        write(OUTSIDE + "/nested")
    finally:
        os._exit(0)

def wreck():
    in_namespaces_of_its_own()
    for options in ("remount,rw", "remount,bind,rw"):
        for place in ("/", OUTSIDE):
            subprocess.run(["mount", "-o", options, place], capture_output=True)
    for place in (OUTSIDE + "/project/.git", "/dev", "/run", "/tmp"):
        subprocess.run(["umount", "-l", place], capture_output=True)
    attempt(
        lambda: connect(socket.AF_INET, ("127.0.0.1", PORT)),
        lambda: connect(socket.AF_UNIX, OUTSIDE + "/home/socket"),
        lambda: os.kill(PROCESS, signal.SIGKILL),
        *(lambda folder=folder: write(folder + "/{name}") for folder in ("/", "/tmp", "/var/tmp", "/dev/shm", "/etc")),
        *(lambda folder=folder: write(OUTSIDE + folder + "/added") for folder in ("/home", "/project", "/project/.git/hooks", "/common", "")),
        lambda: os.chmod(OUTSIDE + "/common", 0),
        lambda: os.truncate(OUTSIDE + "/common/file", 0),
        lambda: os.link(OUTSIDE + "/common/file", OUTSIDE + "/common/link"),
    )
    shutil.rmtree(OUTSIDE + "/home", ignore_errors=True)
    shutil.rmtree(OUTSIDE + "/common", ignore_errors=True)
"""
GUARDED = """
def check():
    raise PermissionError
"""
TESTS = """
import os, signal
import pytest
import calc

def test_connect(): assert callable(calc.connect)
"""
NEW_TESTS = """
def test_guard():
    with pytest.raises(PermissionError):
        calc.check()
        calc.wreck()
def test_parent():
    with pytest.raises(PermissionError):
        calc.check()
        os.kill(os.getppid(), signal.SIGKILL)
"""


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """A repository whose latest commit adds a guard, with what it guards from beside it."""
    for name in ("temporary", "common"):
        (tmp_path / name).mkdir()
    (tmp_path / "common" / "file").write_text("kept")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return Repo.make(tmp_path, monkeypatch)


@pytest.fixture
def victim() -> Iterator["subprocess.Popen[bytes]"]:
    """A process of the user's."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as made:
        yield made
        made.kill()


def _verdict(repo: Repo, mutants: Mutants = "auto", *, mount: bool | None = None) -> Verdict:
    return judged(repo, PYTEST, stall=60, mutants=mutants, mount=mount)


def _state(folder: Path) -> dict[str, tuple[int, bytes]]:
    found = (one for one in folder.rglob("*") if one.is_file() and "temporary" not in one.parts)
    return {str(one): (one.stat().st_mode, one.read_bytes()) for one in found}


@pytest.mark.parametrize("confined", [pytest.param(True, marks=CONFINED), False])
def test_a_guard_that_does_nothing_lets_nothing_through(
    repo: Repo, tmp_path: Path, victim: "subprocess.Popen[bytes]", confined: bool
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as network, socket.socket(socket.AF_UNIX) as local:
        listening = [network]
        if len(place := os.fsencode(tmp_path / "home" / "socket")) <= _LONGEST_SOCKET_NAME:
            local.bind(place)
            local.listen()
            listening.append(local)
        for one in listening:
            one.settimeout(0.1)
        harm = HOSTILE.format(
            outside=str(tmp_path), process=victim.pid, port=network.getsockname()[1], name=NAME if confined else "no/no"
        )
        if not confined:  # as root these would have an effect on the machine
            harm = harm.replace('["mount"', '["true"').replace('["umount"', '["true"')
        for tests, guard in (("", ""), (NEW_TESTS if confined else NEW_TESTS.partition("def test_parent")[0], GUARDED)):
            repo.write("calc.py", harm + guard)
            repo.write("test_calc.py", TESTS + tests)
            repo.commit("change")
        before = _state(tmp_path)
        verdict = _verdict(repo, mount=None) if confined else _verdict(repo, "on", mount=False)
        assert verdict.good, verdict
        ended = [case for run in verdict.runs["mutant"] for case in run.suite.cases]
        assert ended and all("DID NOT RAISE" in case.message for case in ended), verdict
        reached = []
        for one in listening:
            try:
                one.accept()[0].close()
                reached.append(one.family)
            except TimeoutError:
                pass
        harmed = (_state(tmp_path) != before, bool(reached), victim.poll() is not None)
    assert harmed == ((False,) * 3 if confined else (True,) * 3)
    folders = ("/", "/tmp", "/var/tmp", "/dev/shm", "/etc")
    assert not [folder for folder in folders if Path(folder, NAME).exists()]


PROBE = "from code_intel_server.receipts.isolation import can_confine, can_mount; print(can_mount(), can_confine())"
WITHOUT_NAMESPACES = 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"'


@pytest.mark.needs("user namespaces")
def test_where_there_are_no_user_namespaces_nothing_is_confined() -> None:
    without = ("unshare", "--map-root-user", "sh", "-c", WITHOUT_NAMESPACES, "sh")
    done = ran([*without, sys.executable, "-c", PROBE])
    assert (done.stdout, done.stderr) == ("False False\n", "")


@CONFINED
def test_where_rights_cannot_be_dropped_nothing_is_confined(tmp_path: Path) -> None:
    for name in ("sh", "unshare", "mount", "mkdir", "flock", "readlink", "grep"):
        (tmp_path / name).symlink_to(shutil.which(name) or name)
    done = ran([sys.executable, "-c", PROBE], env={**os.environ, "PATH": str(tmp_path)})
    assert (done.stdout, done.stderr) == ("True False\n", "")
    (tmp_path / "setpriv").symlink_to(shutil.which("setpriv") or "setpriv")
    assert (
        ran([sys.executable, "-c", PROBE], env={**os.environ, "PATH": str(tmp_path), "HOME": "/"}).stdout
        == "True True\n"
    )


@pytest.mark.parametrize("mutants", ["auto", "on", "off"])
def test_where_nothing_can_be_confined_only_who_asks_for_it_has_the_run(repo: Repo, mutants: Mutants) -> None:
    for tests, guard in (("", ""), (NEW_TESTS.partition("def test_parent")[0].replace("calc.wreck()", ""), GUARDED)):
        repo.write("calc.py", "connect = print\n" + guard)
        repo.write("test_calc.py", TESTS + tests)
        repo.commit("change")
    verdict = _verdict(repo, mutants, mount=False)
    assert verdict.good, verdict
    assert ("mutant" in verdict.runs) is (mutants == "on")
    assert any(note.startswith("new tests on emptied new code: not made") for note in verdict.notes) is (
        mutants == "auto"
    )


@pytest.mark.needs("an ordinary user")  # whom a permission stops
def test_a_home_that_may_not_be_looked_into_only_means_that_nothing_is_confined(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    (closed / "home").mkdir(parents=True)
    closed.chmod(0)
    done = ran([sys.executable, "-c", PROBE], env={**os.environ, "HOME": str(closed / "home")})
    closed.chmod(0o700)
    assert (done.stdout.split()[1:] in (["True"], ["False"]), done.stderr) == (True, "")


@CONFINED
def test_a_probe_that_a_machine_had_no_time_for_is_made_again() -> None:
    again = "import code_intel_server.receipts.isolation as of; of._PROBE_SECONDS = {}; print(of.can_mount(), of.can_confine())"
    done = ran([sys.executable, "-c", f"{again.format(0.001)}\n{again.format(60)}"])
    assert (done.stdout, done.stderr) == ("False False\nTrue True\n", "")


@CONFINED
def test_what_a_confined_run_writes_to_be_forgotten_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in ("home", "objects", "project/.venv"):
        (tmp_path / name).mkdir(parents=True)
    with receipt_folder() as runs:
        (runs / "new").mkdir()
        (results := runs / "results").touch()
        place = IsolatedCheckout(tmp_path / "project", runs / "new", tmp_path / "objects", (".venv",), confined=True)
        sizes = ["sh", "-c", 'df -Pk "$HOME" .venv /dev/shm >"$1"', "sh", str(results)]
        assert ran(place.command(sizes, ".", results)).returncode == 0
        rows = results.read_text().splitlines()[1:]
    assert [int(row.split()[1]) for row in rows] == [512 * 1024] * 3
