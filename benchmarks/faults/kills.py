"""Where a fault lands: at a system call of the server, at a git child of it, or at a system call of that child.

A fault is SIGKILL, or an error of the disk that the call returns instead of being done.

The server's own calls are counted by `strace`, attached to it and detached from each child as soon as that runs another
program. Git children are counted by a small `git` of ours that stands first in the PATH: it lets all but one through, and
that one it kills before it runs, or runs with a kill at its Nth system call; or it kills the server around it.
"""

import math
import os
import random
import shlex
import shutil
import stat
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CALLS = {
    "rename": "rename,renameat,renameat2",
    "fsync": "fsync,fdatasync",
    "unlink": "unlink,unlinkat",
    "write": "write,pwrite64",
    "mkdir": "mkdir,mkdirat",
    "child": "vfork",
    "link": "link,linkat",
    "open": "openat",
}
"""Kind → its system calls."""

SERVER_CALLS = {"rename": 5, "fsync": 6, "unlink": 4, "write": 12, "mkdir": 15, "child": 25}
"""Kind → the highest number at which it is worth a try, counted in one thread of the server."""

CHILD_CALLS = {"rename": 2, "fsync": 3, "unlink": 2, "write": 4, "mkdir": 2, "link": 2, "open": 25}
"""The same in one git child."""

AROUND = ("unstarted", "orphaned", "finished")
"""A git child is killed before it runs; the server is killed as it begins, and it goes on alone; or as it ends."""

WRITERS = ("update-ref", "commit", "checkout", "read-tree", "commit-tree", "merge-tree", "write-tree", "update-index",
           "symbolic-ref", "switch", "hash-object", "add", "mktag", "restore", "reset", "rm", "branch")  # fmt: skip
"""Git commands that change something."""

_SHIM = """#!/bin/sh
# Counts the calls of git and kills at the one in the plan.
read -r at only how calls number what <{folder}/plan
if [ "$only" = writers ]; then
  case " $* " in {writers}) ;; *) exec {git} "$@" ;; esac
fi
printf x >>{folder}/count
read -r count <{folder}/count
if [ "${{#count}}" -ne "$at" ]; then exec {git} "$@"; fi
printf '%s %s\\n' "$how" "$*" >>{folder}/reached
case $how in
  unstarted) kill -KILL $$ ;;
  orphaned) kill -KILL $PPID; exec {git} "$@" ;;
  finished) {git} "$@"; kill -KILL $PPID ;;
  during) exec {strace} -f -qqq -o {folder}/trace -e "trace=$calls" -e "inject=$calls:$what:when=$number" {git} "$@" ;;
esac
"""


@dataclass(frozen=True, slots=True)
class Kill:
    """SIGKILL at the `number`th call of `kind`: of a server's thread, or (`child` > 0) at the `child`th git child.

    For a child `kind` is one of AROUND, or a kind of system call of its own. `writers` counts only children that change something.
    """

    kind: str
    number: int = 1
    child: int = 0
    writers: bool = False
    error: str = ""
    """ENOSPC, EIO, EROFS: the call fails instead of being the last."""
    lasting: bool = False
    """It fails from the Nth time on, as long as that process lives."""

    @property
    def label(self) -> str:
        """What is counted in the tables."""
        if self.error:
            return f"{'git' if self.child else 'server'} {self.kind} {self.error}{' lasting' if self.lasting else ''}"
        if not self.child:
            return f"server {self.kind}"
        return f"git {self.kind}" if self.kind in CHILD_CALLS else f"around git: {self.kind}"

    @property
    def what(self) -> str:
        """The fault in the words of strace."""
        return f"error={self.error}" if self.error else "signal=SIGKILL"

    @property
    def when(self) -> str:
        """When it takes place, in the words of strace."""
        return f"{self.number}+" if self.lasting else str(self.number)

    def tracer(self, log: Path) -> tuple[str, ...]:
        """The words of a strace that is to be attached to the server; none where the fault is at a child."""
        if self.child:
            return ()
        calls = CALLS[self.kind]
        inject = f"inject={calls}:{self.what}:when={self.when}"
        return ("strace", "-f", "-b", "execve", "-qqq", "-o", str(log), "-e", f"trace={calls}", "-e", inject)


def seeded(seed: int, count: int) -> list[Kill]:
    """`count` kills over all places, the same for the same seed; three in four near something that is written."""
    chance = random.Random(seed)
    return [_drawn(chance) for _ in range(count)]


def _drawn(chance: random.Random) -> Kill:
    place = chance.choice(("server", "server", "during", "during", "around"))
    if place == "server":
        kind = chance.choice([*SERVER_CALLS])
        return Kill(kind, _low(chance, SERVER_CALLS[kind]))
    writers = chance.random() < 0.75
    child = _low(chance, 12 if writers else 40)
    if place == "around":
        return Kill(chance.choice(AROUND), 1, child, writers)
    kind = chance.choice([*CHILD_CALLS])
    return Kill(kind, _low(chance, CHILD_CALLS[kind]), child, writers)


ERRORS = ("ENOSPC", "EIO", "EROFS")
SERVER_ERRORS = {"rename": 5, "fsync": 6, "unlink": 4, "mkdir": 15, "link": 2}
"""The server's calls that are failed; its writes also go to the client's pipe, so a full disk is a real one (`disks.py`)."""


def failing(seed: int, count: int) -> list[Kill]:
    """`count` errors of the disk, the same for the same seed."""
    chance = random.Random(seed)
    return [_error(chance) for _ in range(count)]


def _error(chance: random.Random) -> Kill:
    error, lasting = chance.choice(ERRORS), chance.random() < 0.3
    if chance.random() < 0.4:
        kind = chance.choice([*SERVER_ERRORS])
        return Kill(kind, _low(chance, SERVER_ERRORS[kind]), error=error, lasting=lasting)
    kind, writers = chance.choice([*CHILD_CALLS]), chance.random() < 0.75
    child = _low(chance, 12 if writers else 40)
    return Kill(kind, _low(chance, CHILD_CALLS[kind]), child, writers, error, lasting)


def _low(chance: random.Random, limit: int) -> int:
    """From 1 to the limit, low numbers more often: they are reached in every move."""
    return int(math.exp(chance.uniform(0, math.log(limit + 0.999))))


class Shim:
    """The counting `git` in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "bin").mkdir(parents=True)
        git, strace = shutil.which("git"), shutil.which("strace") or "strace"
        assert git is not None
        writers = "|".join(f"*' {name} '*" for name in WRITERS)
        quoted = {"git": shlex.quote(git), "strace": shlex.quote(strace), "folder": shlex.quote(str(folder))}
        program = folder / "bin" / "git"
        program.write_text(_SHIM.format(writers=writers, **quoted))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        self.plan(None)

    def environment(self) -> dict[str, str]:
        """The PATH that leads to it."""
        return {"PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}

    def plan(self, kill: Kill | None) -> None:
        """From now on count anew, and do this."""
        for name in ("count", "trace", "reached"):
            (self.folder / name).write_bytes(b"")
        words = "0 any none none 0 none"
        if kill is not None and kill.child:
            how = "during" if kill.kind in CHILD_CALLS else kill.kind
            calls = CALLS.get(kill.kind, "none")
            which = "writers" if kill.writers else "any"
            words = f"{kill.child} {which} {how} {calls} {kill.when} {kill.what}"
        (self.folder / "plan").write_text(words + "\n")

    def reached(self) -> str:
        """`how` and the arguments of the child of the plan; '' where it has not come yet."""
        return (self.folder / "reached").read_text().partition("\n")[0]

    def happened(self) -> bool:
        """Whether that child came to its Nth system call, or the kill was around it."""
        row = self.reached()
        return bool(row) and (not row.startswith("during") or self.traced())

    def traced(self) -> bool:
        """Whether strace tells of a kill or an error it put in."""
        told = (self.folder / "trace").read_bytes()
        return b"killed by SIGKILL" in told or b"(INJECTED)" in told

    def calls(self) -> int:
        """How many children were counted."""
        return len((self.folder / "count").read_bytes())


def command(words: Sequence[str]) -> str:
    """The subcommand in a git command line."""
    rest = iter(words)
    for word in rest:
        if word == "-c":
            next(rest, None)
        elif not word.startswith("-"):
            return word
    return "git"


def await_git(root: Path, seconds: float = 60) -> None:
    """Until no git works in the repository any more."""
    deadline = time.monotonic() + seconds
    while _git_works_in(str(root)):
        assert time.monotonic() < deadline, "a git child did not end"
        time.sleep(0.01)


def _git_works_in(root: str) -> bool:
    for number in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 - thousands of times
        try:
            folder = os.readlink(f"/proc/{number}/cwd")  # noqa: PTH115
            named = Path(f"/proc/{number}/comm").read_text().strip()
        except OSError:
            continue
        if named in {"git", "sh", "strace"} and (folder == root or folder.startswith(f"{root}/")):
            return True
    return False
