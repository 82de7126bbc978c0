"""A process that is killed in the middle of a git effect loses nothing, and the next one finishes it, once.

Each effect runs once, and around each of its steps the project is copied as it lies on disk: what a process leaves that is
killed there (tests/faults kills real ones). Steps are the git children that write, the recording of an intent, and the
moving and removing of files. Then the effect is called again in each copy, with the intent that was on disk.
"""

import contextlib
import json
import re
import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from code_intel_server import process
from code_intel_server.errors import Rejected, Unavailable, UserActionNeeded
from code_intel_server.process import Completed
from code_intel_server.workspace.branches.manager import BranchManager
from code_intel_server.workspace.branches.trash import Trash
from code_intel_server.workspace.tree.tree import TreeJudge
from code_intel_server.workspace.values import CommitRequest, GitIntent, GitOperation, RecordIntent, TaskBranch
from tests.workspace.fallible import Fallible
from tests.workspace.git_repo import Repo

SESSION = "20261121_110000"
PUBLISHING = {"update-ref", "switch", "restore", "update-index", "hook"}
WRITING = PUBLISHING | {"commit-tree", "mktag", "hash-object", "read-tree", "write-tree"}

Act = Callable[[Repo, RecordIntent, GitIntent | None], object]


@dataclass(frozen=True)
class Effect:
    """How to bring a repository to the point of an effect, and the effect."""

    prepare: Callable[[Repo], None]
    act: Act


def manager(repo: Repo, finish: str = "merge") -> BranchManager:
    return BranchManager(repo.path, TreeJudge(repo.path), finish=finish, patience=0.0)


def ignore(_: object) -> None:
    """A record nobody keeps."""


def branch(repo: Repo) -> TaskBranch:
    return TaskBranch(f"llm_task_{SESSION}", "main", repo.git("rev-parse", "refs/tags/base"))


def started(repo: Repo) -> None:
    repo.write("mine.txt", "untracked from before\n")
    manager(repo).create(SESSION, (), ignore, None)


def worked(repo: Repo) -> None:
    """Reviewed changes, a change to be discarded, an edit to be left, and staged content of the user's."""
    started(repo)
    repo.write("a.py", "one = 'kept'\n")
    repo.write("new.py", "new = 1\n")
    (repo.path / "gone.py").unlink()
    repo.write("b.py", "two = 'discarded'\n")
    repo.write("junk/tmp.py", "junk\n")
    repo.write("left.py", "left = 'staged'\n")
    repo.git("add", "left.py")
    repo.write("left.py", "left = 'edited'\n")


def committed(repo: Repo) -> None:
    started(repo)
    repo.write("a.py", "one = 'committed'\n")
    repo.commit("work", "a.py")


def base_moved(repo: Repo) -> None:
    committed(repo)
    repo.git("switch", "-q", "main")
    repo.write("b.py", "two = 'moved'\n")
    repo.commit("meanwhile", "b.py")
    repo.git("switch", "-q", f"llm_task_{SESSION}")


def half_done(repo: Repo) -> None:
    committed(repo)
    worked_on = {
        "a.py": "one = 'unfinished'\n",
        "new.py": "new\n",
        "mine.txt": "changed by the task\n",
        "staged.py": "staged\n",
    }
    for name, text in worked_on.items():
        repo.write(name, text)
    repo.git("add", "staged.py")
    repo.write("staged.py", "changed after staging\n")
    (repo.path / "gone.py").unlink()


def of_the_users(repo: Repo) -> None:
    """What he had untracked was taken in and edited, was edited, made executable and removed by the task."""
    for name in ("taken.txt", "edited.txt", "run.sh", "gone.txt", "his.txt"):
        repo.write(name, f"{name} from before\n")
    repo.write(".git/begun", TreeJudge(repo.path).snapshot())
    manager(repo).create(SESSION, (), ignore, None)
    repo.write("taken.txt", "of the task\n")
    repo.commit("work", "taken.txt")
    repo.write("edited.txt", "of the task\n")
    repo.write("his.txt", "of the user\n")
    (repo.path / "run.sh").chmod(0o755)
    (repo.path / "gone.txt").unlink()


def with_stale(repo: Repo) -> None:
    committed(repo)
    repo.git("branch", "llm_task_other", "main")


def stale_unmoved(repo: Repo) -> None:
    started(repo)
    repo.git("branch", "llm_task_other", "main")


def commit(repo: Repo, record: RecordIntent, pending: GitIntent | None) -> object:
    kept = ("a.py", "new.py", "gone.py")
    request = CommitRequest(
        SESSION, branch(repo), branch(repo).base_oid, "Do it", (), kept, ("b.py", "junk/tmp.py"), ("left.py",)
    )
    return manager(repo).commit(request, record, pending).tip


def merge(repo: Repo, record: RecordIntent, pending: GitIntent | None) -> object:
    return manager(repo).merge(branch(repo), SESSION, "", [], record, pending).to_branch


def keep(repo: Repo, record: RecordIntent, pending: GitIntent | None) -> object:
    return manager(repo, "branch").merge(branch(repo), SESSION, "", [], record, pending).pushed_hint


def abandon(repo: Repo, record: RecordIntent, pending: GitIntent | None) -> object:
    before = {"mine.txt": "0" * 40 if repo.read("mine.txt") == "" else repo.git("rev-parse", "refs/tags/mine")}
    return manager(repo).abandon(SESSION, branch(repo), before, record, pending).warnings


def abandon_with_the_users(repo: Repo, record: RecordIntent, pending: GitIntent | None) -> object:
    begun, head = repo.read(".git/begun"), branch(repo).base_oid
    before = TreeJudge(repo.path).untracked_at(begun, head)
    writable = ("taken.txt", "edited.txt", "run.sh", "gone.txt")
    return manager(repo).abandon(SESSION, branch(repo), before, record, pending, begun, head, writable).warnings


def retire(choice: str) -> Act:
    def act(repo: Repo, record: RecordIntent, pending: GitIntent | None) -> object:
        done = manager(repo).retire(choice, "20261121_990000", record, pending)
        return (done.branches, done.session_ids, bool(done.merged))

    return act


EFFECTS = {
    "create": Effect(
        lambda repo: None, lambda repo, record, pending: asdict(manager(repo).create(SESSION, (), record, pending))
    ),
    "commit": Effect(worked, commit),
    "merge": Effect(committed, merge),
    "merge an unmoved branch": Effect(started, merge),
    "merge into a moved base": Effect(base_moved, merge),
    "keep the branch": Effect(committed, keep),
    "abandon": Effect(half_done, abandon),
    "abandon with files of the user's": Effect(of_the_users, abandon_with_the_users),
    "delete stale branches": Effect(with_stale, retire("delete")),
    "merge the stale branch": Effect(with_stale, retire("merge")),
    "merge the stale branch that has not moved": Effect(stale_unmoved, retire("merge")),
}


def template(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    repo = Repo.with_files(folder, monkeypatch, a__py="one\n", b__py="two\n", gone__py="gone\n", left__py="left\n")
    repo.git("tag", "base")
    repo.git("tag", "mine", repo.git("hash-object", "-w", "--stdin", stdin=b"untracked from before\n"))
    repo.write(".gitignore", "*.log\n")
    repo.write("noise.log", "ignored\n")
    repo.commit("ignore rules", ".gitignore")
    repo.git("tag", "-f", "base")
    return repo


class Journal:
    """Keeps the last recorded intent on disk, as the checkpoint does."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def record(self, intent: GitIntent) -> None:
        self.path.write_text(json.dumps(asdict(intent)))

    def pending(self) -> GitIntent | None:
        if not self.path.exists():
            return None
        value: dict[str, Any] = json.loads(self.path.read_text())
        return GitIntent(**{**value, "operation": GitOperation(value["operation"])})


class Steps:
    """Copies project and intent as they lie on disk before the first step of an effect and behind each.

    Storing an object changes nothing anybody sees, so by default only steps that publish count: a ref, the user's
    index, the working tree, an intent. With `every` each writing git child counts, and both sides of it.
    """

    def __init__(self, repo: Repo, journal: Path, copies: Path, *, every: bool) -> None:
        self.repo = repo
        self.journal = journal
        self.copies = copies
        self.every = every
        self.seen = 0
        self.tick()

    def tick(self) -> None:
        shutil.copytree(self.repo.path, self.copies / f"{self.seen}", symlinks=True)
        if self.journal.exists():
            shutil.copyfile(self.journal, self.copies / f"{self.seen}.json")
        self.seen += 1

    def around(self, act: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            if self.every:
                self.tick()
            result = act(*arguments, **options)
            self.tick()
            return result

        return counted

    def run(self, real: Callable[..., Completed]) -> Callable[..., Completed]:
        def counted(argv: Sequence[str], **options: Any) -> Completed:
            ours = "GIT_INDEX_FILE" in options["env"]
            counts = WRITING & set(argv) if self.every else PUBLISHING & set(argv) and not ours
            done: Completed = (self.around(real) if counts else real)(argv, **options)
            return done

        return counted

    def path(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def counted(path: Path, *arguments: Any, **options: Any) -> Any:
            step = real if ".git" in path.parts else self.around(real)
            return step(path, *arguments, **options)

        return counted


def at_each_step(
    repo: Repo, act: Act, copies: Path, monkeypatch: pytest.MonkeyPatch, *, every: bool
) -> Iterator[tuple[Repo, Journal]]:
    """Do it; then the project and the intent as whoever was killed at a step left them, step by step, the whole at last."""
    journal = Journal(copies.with_suffix(".json"))
    steps = Steps(repo, journal.path, copies, every=every)
    with monkeypatch.context() as patched:
        patched.setattr(process, "run", steps.run(process.run))
        for name in ("rename", "unlink", "symlink_to"):
            patched.setattr(Path, name, steps.path(getattr(Path, name)))
        act(repo, steps.around(journal.record), None)
    for number in range(0, steps.seen, 1 if every else 2):  # each second step tells in CI what all of them tell in full
        yield refreshed(copies / f"{number}"), Journal(copies / f"{number}.json")
    yield repo, journal


def outcome(repo: Repo) -> dict[str, object]:
    """What can be seen of an effect, object ids aside."""
    ours = repo.git("for-each-ref", "--format=%(refname)", "refs/heads", "refs/code-intel/base").split()
    graph = {ref: repo.git("log", "--format=%T %s", ref).splitlines() for ref in ours if ref.startswith("refs/heads")}
    return {
        "files": repo.files(), "status": repo.git("status", "--porcelain", "-z"), "index": repo.git("ls-files", "-s"),
        "head": repo.git("symbolic-ref", "HEAD"), "refs": ours, "history": graph,
    }  # fmt: skip


def contents(repo: Repo) -> set[str]:
    """The hash of every file the user has, of everything staged, and of every commit."""
    loose = [name for name, (kind, _) in repo.files().items() if kind != "link"]
    files = repo.git(
        "hash-object", "--no-filters", "--stdin-paths", stdin="".join(f"{n}\n" for n in loose).encode()
    ).split()
    staged = [row.split()[1] for row in repo.git("ls-files", "-s").splitlines()]
    return {*files, *staged, *repo.git("rev-list", "--all").split()}


def reachable(repo: Repo) -> set[str]:
    """What is on disk, in the index, or reachable from a ref."""
    objects = repo.git("rev-list", "--objects", "--all").splitlines()
    return contents(repo) | {line.split(" ")[0] for line in objects}


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.full)], ids=["published", "every"])
@pytest.mark.parametrize("name", EFFECTS)
@pytest.mark.timeout(900)
def test_an_effect_killed_at_any_step_loses_nothing_and_is_finished_once(
    name: str, every: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    effect = EFFECTS[name]
    origin = template(tmp_path, monkeypatch)
    effect.prepare(origin)
    before = contents(origin)
    control = copy(origin, tmp_path / "control")
    wanted = effect.act(control, ignore, None)
    expected = outcome(control)
    count = 0
    for repo, journal in at_each_step(origin, effect.act, tmp_path / "killed", monkeypatch, every=every):
        assert before <= reachable(repo), f"lost by a kill at step {count}"
        result = effect.act(repo, journal.record, journal.pending())
        assert before <= reachable(repo), f"lost by recovery from step {count}"
        assert outcome(repo) == expected, f"after a kill at step {count}"
        if name != "commit":
            assert result == wanted, f"after a kill at step {count}"
        assert not list((repo.path / ".git/code-intel").glob("aside/*/*"))
        count += 1
    assert count >= 3


def test_what_the_user_had_is_what_he_has_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the kills of this effect come to in the end."""
    repo = template(tmp_path, monkeypatch)
    of_the_users(repo)
    abandon_with_the_users(repo, ignore, None)
    found = {name: (kind, content.decode()) for name, (kind, content) in repo.files().items()}
    for name in ("taken.txt", "edited.txt", "run.sh", "gone.txt"):
        assert found[name] == ("file", f"{name} from before\n")
    assert found["his.txt"] == ("file", "of the user\n")


def archived(repo: Repo) -> set[str]:
    """What the archive says of each thing in it, times and ids of commits aside."""
    bodies = repo.git(
        "for-each-ref", "--format=%(objecttype) %(tree)%(*tree) %(contents)%00", "refs/code-intel/archive"
    )
    trees = dict(row.split() for row in repo.git("log", "--all", "--reflog", "--format=%H %T").splitlines())
    return {
        re.sub(r"\b[0-9a-f]{40}\b", lambda found: trees.get(found[0], found[0]), body.strip())
        for body in bodies.split("\0")
    }


@pytest.mark.parametrize(
    ("name", "which"),
    [("delete stale branches", ["cat-file"]), *(pytest.param(name, [], marks=pytest.mark.full) for name in EFFECTS)],
)
@pytest.mark.parametrize("status", [-signal.SIGKILL, 128], ids=["killed", "failed"])
@pytest.mark.timeout(900)
def test_a_git_that_failed_in_an_effect_is_never_taken_for_an_answer(
    status: int, name: str, which: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by the kills at every point: a record that a killed git did not show was archived as if there were none."""
    effect, real = EFFECTS[name], process.run
    origin = template(tmp_path, monkeypatch)
    effect.prepare(origin)
    control = copy(origin, tmp_path / "control")
    effect.act(control, ignore, None)
    expected, kept = outcome(control), archived(control)
    fatal = 0
    while True:
        repo = copy(origin, tmp_path / f"failed-{fatal}")
        journal, gits = Journal(tmp_path / f"journal-{fatal}.json"), Fallible(status, fatal, which, real)
        with monkeypatch.context() as patched:
            patched.setattr(process, "run", gits.run)
            with contextlib.suppress(Unavailable, Rejected, UserActionNeeded):
                effect.act(repo, journal.record, None)
        effect.act(repo, journal.record, journal.pending())
        assert outcome(repo) == expected, f"git {fatal}"
        assert kept <= archived(repo), f"git {fatal}"
        shutil.rmtree(repo.path)
        if gits.seen <= fatal:
            break
        fatal += 1
    assert fatal >= (1 if which else 10)


HALVES = {
    "the branch without its record": f"refs/code-intel/base/llm_task_{SESSION}",
    "the record without its branch": f"refs/heads/llm_task_{SESSION}",
}


@pytest.mark.parametrize("missing", HALVES.values(), ids=HALVES.keys())
def test_a_branch_of_which_git_was_killed_between_the_two_refs_is_finished(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by the kills at every point: a transaction of refs is all or nothing for readers, not for who is killed."""
    repo, journal = template(tmp_path, monkeypatch), Journal(tmp_path / "journal.json")
    wanted = manager(repo).create(SESSION, (), journal.record, None)
    expected = outcome(repo)
    repo.git("switch", "-q", "main")
    repo.git("update-ref", "-d", missing)
    assert manager(repo).create(SESSION, (), journal.record, journal.pending()) == wanted
    assert outcome(repo) == expected


def test_a_branch_that_is_gone_takes_the_record_along_that_git_was_killed_before_removing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = template(tmp_path, monkeypatch)
    committed(repo)
    record = repo.git("rev-parse", f"refs/code-intel/base/llm_task_{SESSION}")
    journal = Journal(tmp_path / "journal.json")
    merge(repo, journal.record, None)
    expected = outcome(repo)
    repo.git("update-ref", f"refs/code-intel/base/llm_task_{SESSION}", record)
    merge(repo, journal.record, journal.pending())
    assert outcome(repo) == expected


def test_a_restored_branch_gets_the_record_that_git_was_killed_before_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = template(tmp_path, monkeypatch)
    committed(repo)
    repo.git("switch", "-q", "main")
    manager(repo).cleanup_stale()
    trash, name = Trash(repo.path), f"llm_task_{SESSION}"
    (entry,) = trash.entries()
    trash.restore(entry.ref)
    expected = outcome(repo)
    repo.git("update-ref", "-d", f"refs/code-intel/base/{name}")
    trash.restore(entry.ref)
    assert outcome(repo) == expected


def copy(repo: Repo, target: Path) -> Repo:
    shutil.copytree(repo.path, target, symlinks=True)
    return refreshed(target)


def refreshed(path: Path) -> Repo:
    """The copy at `path`, whose files git takes for those of its index."""
    found = Repo(path)
    found.git("update-index", "-q", "--refresh") if not found.fails("rev-parse", "HEAD") else None
    return found
