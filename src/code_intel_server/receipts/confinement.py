"""Set namespaces up so that what runs in them can change, signal and reach nothing outside (SPEC 4, Receipts).

    python -I -S confinement.py '{"private": …, "kept": …, "written": …, "sockets": …, "scratch": …}'

A program of its own, run where mounts, processes and network are unshared. Everything becomes read-only but what is
`written`; the one network is a loopback of its own. `private` folders (home, temporary ones) become overlays: what is
written there goes to memory and is forgotten. Their sockets lead nowhere, as do those that are named. A command that
begins with `CAPLESS` can undo none of it.
"""

import ctypes
import fcntl
import json
import os
import socket
import stat
import struct
import sys

CAPLESS = (
    *("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all", "--no-new-privs"),
    *("sh", "-c", '"$@"; exit $?', "sh"),  # the first of the processes stays: signals that end others do not end it
)
_DEVICES = ("null", "zero", "full", "random", "urandom")
_MOUNT_SETATTR = 442
_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_READ_ONLY = 1
_BIND, _RECURSIVE = 0x1000, 0x4000
MEMORY = "size=512m"
"""What is written and forgotten takes no more of the machine's memory, however much it has."""

_SIOCSIFFLAGS = 0x8914
_UP = 0x1


def _called(result: int, path: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)


def _mount(source: str, target: str, kind: str = "", flags: int = _BIND, data: str = "") -> None:
    texts = [os.fsencode(text) for text in (source, target, kind)]
    _called(ctypes.CDLL(None, use_errno=True).mount(*texts, ctypes.c_ulong(flags), os.fsencode(data)), target)


def _set(path: str, *, read_only: bool, flags: int = 0) -> None:
    wanted = struct.pack("4Q", *((_READ_ONLY, 0) if read_only else (0, _READ_ONLY)), 0, 0)
    call = ctypes.CDLL(None, use_errno=True).syscall
    _called(call(_MOUNT_SETATTR, _AT_FDCWD, os.fsencode(path), flags, wanted, len(wanted)), path)


def _held(path: str) -> str:
    """A path that leads to what is there now, whatever is mounted over it."""
    return f"/proc/self/fd/{os.open(path, os.O_PATH)}"


def main(plan: dict[str, list[str]]) -> None:
    """Mount what the plan says."""
    (scratch,) = plan["scratch"]
    os.makedirs(scratch, exist_ok=True)  # noqa: PTH103 - a program that starts fast
    _set("/", read_only=True, flags=_AT_RECURSIVE)
    kept = {path: _held(path) for path in (*plan["kept"], *plan["written"])}
    _mount("none", scratch, "tmpfs", 0, MEMORY)
    memory = _held(scratch)
    for number, folder in enumerate(plan["private"]):
        upper, work = f"{memory}/{number}", f"{memory}/{number}.work"
        os.mkdir(upper)  # noqa: PTH102
        os.mkdir(work)  # noqa: PTH102
        data = f"lowerdir={_held(folder)},upperdir={upper},workdir={work},userxattr"
        _mount("none", folder, "overlay", 0, data)
    for path, real in kept.items():
        _mount(real, path)
    for path in plan["written"]:
        _set(path, read_only=False)
    _devices(f"{memory}/dev")
    for path in plan["sockets"]:
        if os.path.exists(path) and stat.S_ISSOCK(os.lstat(path).st_mode):  # noqa: PTH110
            _mount("/dev/null", path)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", _UP))


def _devices(folder: str) -> None:
    """Devices that change nothing, instead of those of the machine: a file system that is read-only does not keep from these."""
    for name in ("", "shm", "pts"):
        os.mkdir(f"{folder}/{name}")  # noqa: PTH102
    for name in _DEVICES:
        with open(f"{folder}/{name}", "x"):  # noqa: PTH123
            _mount(f"/dev/{name}", f"{folder}/{name}")
    _mount("none", f"{folder}/pts", "devpts", 0, "newinstance,ptmxmode=0666")
    links = {"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}
    for name, leads_to in links.items():
        os.symlink(leads_to, f"{folder}/{name}")  # noqa: PTH211
    _mount(folder, "/dev", flags=_BIND | _RECURSIVE)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
