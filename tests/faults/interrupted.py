"""A whole session whose server is killed again and again at chosen system calls, and resumed until it ends.

`strace` delivers SIGKILL at the Nth call of a kind: to the server's thread, or to a git child of it, whichever makes
its Nth first. After every death a new process takes over; `Acknowledged` says what it must still know.
"""

import contextlib
import json
import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.driver import Fields, Server, git, repository
from tests.faults.sentinel import Acknowledged, Sentinel

CALLS = {
    "rename": ("rename,renameat,renameat2", 5),
    "fsync": ("fsync,fdatasync", 8),
    "unlink": ("unlink,unlinkat", 4),
    "write": ("write,pwrite64", 25),
    "child": ("vfork", 15),
}
"""Kind → its system calls, and the highest number at which it is worth a try."""

FILES = {
    "app.py": "def main():\n    return 1\n",
    "README.md": "# App\n\nSays one.\n",
    ".gitignore": ".env\n",
    ".code-intel/config.json": json.dumps({"sync_on_start": False}) + "\n",
}
STEP_LIMIT = 200


@dataclass(frozen=True, slots=True)
class Kill:
    """SIGKILL at the `number`th call of a kind, counted by thread."""

    kind: str
    number: int

    def words(self) -> tuple[str, ...]:
        """The tracer's part of the command line."""
        calls = CALLS[self.kind][0]
        inject = f"inject={calls}:signal=SIGKILL:when={self.number}"
        return ("strace", "-f", "-qqq", "-o", "/dev/null", "-e", f"trace={calls}", "-e", inject)


def seeded(seed: int, count: int) -> list[Kill]:
    """`count` kills spread over all kinds, the same for the same seed."""
    chance = random.Random(seed)  # noqa: S311 - repeatable, not secret
    kinds = [*CALLS]
    return [
        Kill(kind, chance.randint(1, CALLS[kind][1])) for kind in (kinds[(seed + n) % len(kinds)] for n in range(count))
    ]


def prepared(folder: Path) -> Path:
    """A small repository in which the user has a stash, an untracked and an ignored file, and a branch of their own."""
    root = repository(folder / "repo", FILES)
    git(root, "branch", "mine")
    (root / "app.py").write_text("stashed = True\n")
    git(root, "stash", "-q")
    (root / ".env").write_text("SECRET=1\n")
    (root / "notes.txt").write_text("my notes\n")
    return root


def moves(root: Path) -> list[Callable[[Server], Fields]]:
    """A fast session, each move safe to send again."""
    task = {"id": "t1", "description": "Return two", "status": "pending", "checklist": ["Return two"]}
    done = {"item": "Return two", "status": "done", "evidence": "app.py:2"}

    def plan(server: Server) -> Fields:
        server.call("add_explored_files", paths=["app.py"], reason="holds the function to change")
        return server.submit(tasks=[task])

    def report(server: Server) -> Fields:
        server.call("check_write_target", path="app.py")
        (root / "app.py").write_text("def main():\n    return 2\n")
        return server.submit(task_id="t1", checklist=[done], tools_used=["check_write_target"])

    def commit(server: Server) -> Fields:
        server.call("review_changes")
        return server.submit(
            reviewed_files=["app.py"],
            commit_message="Return two",
            review_prompt_used="garbage_detection",
            tools_used=["review_changes"],
        )

    return [
        lambda s: s.call("start_session", query="Make main return two", flags={"fast": True, "no_doc": True}),
        lambda s: s.submit(action_type="change", target_symbols=["main"]),
        plan,
        report,
        lambda s: s.submit(summary="All is done."),
        lambda s: s.submit(passed=True, verifier_used="generic", details="looked at it"),
        commit,
        lambda s: s.call("submit_phase", data={"summary": "Merged."}),
    ]


ROAD = [
    ("none", 0),
    ("QUERY_FRAME", 4),
    ("READY", 12),
    ("READY", 13),
    ("READY", 14),
    ("POST_IMPL_VERIFY", 15),
    ("PRE_COMMIT", 17),
    ("MERGE", 19),
    ("SESSION_COMPLETE", 19),
]
"""What the moves answer where nothing fails; a test proves it."""


@dataclass(slots=True)
class Outcome:
    """What became of an interrupted session."""

    killed: list[Kill] = field(default_factory=list)
    survived: list[Kill] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    final: str = ""


class Interrupted:
    """Runs the session at `root` to its end through `kills`, one a server process."""

    def __init__(self, root: Path, kills: Sequence[Kill]) -> None:
        self.root = root
        self.waiting = list(kills)
        self.moves = moves(root)
        self.model = Acknowledged(ROAD)
        self.outcome = Outcome()

    def run(self) -> Outcome:
        """To the end; what was lost or done twice is in `violations`."""
        before = Sentinel.of(self.root)
        for _ in range(STEP_LIMIT):
            if self.model.at == len(self.moves):
                break
            self._one_process()
        else:
            self.outcome.violations.append("the session did not end")
        self.outcome.violations += self.model.violations
        self.outcome.violations += [f"lost: {row}" for row in before.lost(self.root)]
        self.outcome.final = final_state(self.root)
        return self.outcome

    def _one_process(self) -> None:
        kill = self.waiting.pop(0) if self.waiting else None
        server: Server | None = None
        try:
            server = Server(self.root, *(kill.words() if kill else ()))
            self._resume(server)
            self._go_on(server)
        except (EOFError, BrokenPipeError, ValueError):
            self._count(kill, died=True)
        else:
            self._count(kill, died=False)
        finally:
            if server is not None:
                server.kill()
            self._user_removes_locks()

    def _resume(self, server: Server) -> None:
        status = server.call("get_session_status")
        last = self.model.at == len(self.moves) - 1
        if status["success"]:
            self.model.restored(status)
            self.model.at = max(self.model.at, 1)
        elif not (self.model.at == 0 or (last and self.model.in_flight)):
            self.outcome.violations.append(f"acknowledged session gone after move {self.model.at}: {status['error']}")

    def _go_on(self, server: Server) -> None:
        while self.model.at < len(self.moves):
            self.model.sending()
            answer = self.moves[self.model.at](server)
            if not answer["success"]:
                self.outcome.refusals.append(f"{self.model.at}: {answer['error']}")
                return
            self.model.answered(answer)

    def _count(self, kill: Kill | None, *, died: bool) -> None:
        if kill is not None:
            (self.outcome.killed if died else self.outcome.survived).append(kill)
        elif died:
            self.outcome.violations.append("a server died that nobody killed")

    def _user_removes_locks(self) -> None:
        """A git that was killed leaves its lock, which the server never removes (SPEC 6.1): the user does."""
        for lock in (self.root / ".git").rglob("*.lock"):
            if "code-intel" not in lock.parts:
                lock.unlink()


def final_state(root: Path) -> str:
    """Everything that has to be the same however often the session was killed; the session's id is left out."""
    told = git(root, "log", "--format=%s|%T|%an", "main").strip()
    branches = git(root, "branch", "--format=%(refname:short)").split()
    sessions = root / ".code-intel" / "sessions"
    left = sorted(path.suffix for path in sessions.glob("*.json")) if sessions.is_dir() else []
    status = git(root, "status", "--porcelain").strip()
    parents = git(root, "log", "-1", "--format=%P", "main").split()
    session = git(root, "log", "-1", "--format=%(trailers:key=Code-Intel-Session,valueonly)", "main").strip()
    told = told.replace(session, "ID") if session else told
    return "\n".join([told, f"parents {len(parents)}", f"branches {branches}", f"checkpoints {left}", status])


def in_folder(folder: Path, kills: Sequence[Kill]) -> Outcome:
    """One interrupted session in a repository of its own, removed afterwards."""
    folder.mkdir(parents=True)
    outcome = Interrupted(prepared(folder), kills).run()
    with contextlib.suppress(OSError):
        shutil.rmtree(folder)
    return outcome
