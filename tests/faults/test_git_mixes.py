"""Git in every mix: what the user has, what comes in, who commits or holds the index when, which hook does what (rows 47-55)."""

import itertools
import json
import os
import random
import shutil
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from benchmarks.faults.results import Record, size, spread

from code_intel_server import process
from code_intel_server.errors import CodeIntelError
from code_intel_server.process import Completed
from code_intel_server.workspace.branches.trash import Trash
from code_intel_server.workspace.git import repository as door
from code_intel_server.workspace.values import CommitRequest, TaskBranch
from tests.workspace.git_repo import Repo
from tests.workspace.test_branches_killed import EFFECTS, SESSION, Journal, contents, copy, manager, reachable, template

TASK = f"llm_task_{SESSION}"
EVERYTHING = pytest.mark.timeout(3600)


def ignore(_: object) -> None:
    """A record nobody keeps."""


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    return template(tmp_path, monkeypatch)


# -- row 47: what the user has ---------------------------------------------------------------------------------------


def dirty(repo: Repo) -> None:
    repo.write("b.py", "two = 'the user edits'\n")


def staged(repo: Repo) -> None:
    repo.write("left.py", "left = 'staged'\n")
    repo.write("staged_new.py", "staged and new\n")
    repo.git("add", "left.py", "staged_new.py")


def untracked(repo: Repo) -> None:
    repo.write("own/notes.txt", "untracked\r\n")
    repo.write("a.py.orig", "beside it\n")


def ignored(repo: Repo) -> None:
    repo.write("own/secret.log", "ignored\n")
    repo.write("more.log", bytes(range(256)))


STATES = (dirty, staged, untracked, ignored)
SAFE = ("own/notes.txt", "a.py.orig", "own/secret.log", "more.log", "noise.log")
"""Untracked and ignored from before the operation: no operation touches them."""


@EVERYTHING
def test_no_operation_loses_anything_of_any_mix_of_what_a_user_has(
    repo: Repo, tmp_path: Path, record_property: Record
) -> None:
    mixes = list(product((False, True), repeat=len(STATES)))
    cases = spread(list(product(EFFECTS, mixes)), 5)
    for number, (name, mix) in enumerate(cases):
        mine = copy(repo, tmp_path / f"mix-{number}")
        EFFECTS[name].prepare(mine)
        for make in itertools.compress(STATES, mix):
            make(mine)
        before, kept, seen = contents(mine), mine.files(), mine.sentinel()
        try:
            EFFECTS[name].act(mine, ignore, None)
        except CodeIntelError:
            if name == "create":
                assert mine.sentinel() == seen, mix
        assert before <= reachable(mine), (name, mix)
        # What is untracked and new when a session is given up counts as its work and goes to the archive with it.
        safe = [path for path in SAFE if path in kept and (name != "abandon" or path.endswith(".log"))]
        now = mine.files()
        assert {path: now.get(path) for path in safe} == {path: kept[path] for path in safe}, (name, mix)
        shutil.rmtree(mine.path)
    record_property("executions", len(cases))


# -- row 48: what comes in -------------------------------------------------------------------------------------------


def _written(path: Path, text: str, mode: int) -> None:
    path.write_text(text)
    path.chmod(mode)


def _folder(path: Path, text: str) -> None:
    path.mkdir()
    (path / "inner").write_text(text)


INCOMING: dict[str, Callable[[Path], object]] = {
    "file": lambda path: path.write_text("from the base\n"),
    "program": lambda path: _written(path, "#!/bin/sh\n", 0o755),
    "link": lambda path: path.symlink_to("a.py"),
    "dangling": lambda path: path.symlink_to("nowhere"),
    "folder": lambda path: _folder(path, "x\n"),
}
IN_THE_WAY: dict[str, Callable[[Path], object]] = {
    "file": lambda path: path.write_text("mine\n"),
    "empty file": lambda path: path.touch(),
    "read-only": lambda path: _written(path, "mine\n", 0o400),
    "link": lambda path: path.symlink_to("b.py"),
    "dangling": lambda path: path.symlink_to("/nowhere"),
    "pipe": os.mkfifo,
    "full folder": lambda path: _folder(path, "mine\n"),
    "hard link": lambda path: path.hardlink_to(path.parent / "mine.txt"),
}
NAMES = (".env", "ä \n'x'", "[*]?", "-rf", ":(top)x")


@EVERYTHING
def test_nothing_that_comes_in_takes_the_place_of_anything_untracked_or_ignored(
    repo: Repo, tmp_path: Path, record_property: Record
) -> None:
    cases = spread(list(product(INCOMING, IN_THE_WAY, NAMES)), 4)
    EFFECTS["merge"].prepare(repo)
    for number, (incoming, obstacle, name) in enumerate(cases):
        mine = copy(repo, tmp_path / f"in-{number}")
        mine.git("switch", "-q", "main")
        INCOMING[incoming](mine.path / name)
        mine.git("--literal-pathspecs", "add", "-f", "--", name)
        mine.git("commit", "-qm", "on base")
        mine.git("switch", "-q", TASK)
        IN_THE_WAY[obstacle](mine.path / name)
        if number % 2:
            mine.write(".git/info/exclude", "*\n")
        seen = listing(mine.path)
        branch = TaskBranch(TASK, "main", mine.git("rev-parse", "refs/tags/base"))
        try:
            manager(mine).merge(branch, SESSION, "", [], ignore, None)
        except CodeIntelError as error:
            assert name in json.dumps(error.details, ensure_ascii=False).replace("\\n", "\n"), (
                incoming,
                obstacle,
                name,
                error.details,
            )
        else:
            raise AssertionError(f"{(incoming, obstacle, name)} was not in the way")
        assert listing(mine.path) == seen, (incoming, obstacle, name)
        shutil.rmtree(mine.path)
    record_property("executions", len(cases))


def listing(root: Path) -> dict[str, tuple[int, bytes]]:
    """Every name but git's: mode and content; a pipe has none."""
    found = {}
    for path in root.rglob("*"):
        if ".git" not in path.relative_to(root).parts:
            mode = path.lstat().st_mode
            text = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
            found[path.relative_to(root).as_posix()] = (mode, text)
    return found


# -- row 49: conflicts -----------------------------------------------------------------------------------------------

LONG = "".join(f"line {n}\n" for n in range(40))


def _move(repo: Repo, name: str) -> None:
    (repo.path / name).parent.mkdir(exist_ok=True)
    (repo.path / "long.py").rename(repo.path / name)


def _link(repo: Repo) -> None:
    (repo.path / "long.py").unlink()
    (repo.path / "long.py").symlink_to("b.py")


def _into_folder(repo: Repo) -> None:
    (repo.path / "long.py").unlink()
    repo.write("long.py/inner.py", "in a folder\n")


EDITS: dict[str, Callable[[Repo, str], object]] = {
    "top": lambda repo, who: repo.write("long.py", LONG.replace("line 0\n", f"{who} 0\n")),
    "end": lambda repo, who: repo.write("long.py", LONG.replace("line 39\n", f"{who} 39\n")),
    "same": lambda repo, _: repo.write("long.py", LONG.replace("line 9\n", "the same\n")),
    "delete": lambda repo, _: (repo.path / "long.py").unlink(),
    "rename": lambda repo, who: _move(repo, f"{who}.py"),
    "rename alike": lambda repo, _: _move(repo, "moved/renamed.py"),
    "program": lambda repo, _: (repo.path / "long.py").chmod(0o755),
    "link": lambda repo, _: _link(repo),
    "folder": lambda repo, _: _into_folder(repo),
    "add": lambda repo, who: repo.write("added.py", f"by {who}\n"),
}


@EVERYTHING
def test_each_pair_of_edits_merges_as_git_merges_it_or_is_told_and_touches_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Record
) -> None:
    origin = Repo.with_files(tmp_path, monkeypatch, long__py=LONG, b__py="two\n")
    cases, conflicts = spread(list(product(EDITS, EDITS)), 4), 0
    for number, (ours, theirs) in enumerate(cases):
        mine = copy(origin, tmp_path / f"pair-{number}")
        branch = manager(mine).create(SESSION, (), ignore, None)
        EDITS[ours](mine, "task")
        mine.commit("task")
        mine.git("switch", "-q", "main")
        EDITS[theirs](mine, "base")
        mine.commit("base")
        mine.git("switch", "-q", TASK)
        clone = copy(mine, tmp_path / f"clone-{number}")
        clone.git("switch", "-q", "main")
        conflict = clone.fails("merge", "-q", "--no-ff", "--no-edit", TASK)
        seen = mine.sentinel()
        try:
            manager(mine).merge(branch, SESSION, "", [], ignore, None)
        except CodeIntelError as error:
            assert conflict, (ours, theirs, error.details)
            assert error.details["reason"] == "conflict" and error.details["conflicts"], (ours, theirs)
            assert mine.sentinel() == seen, (ours, theirs)
            conflicts += 1
        else:
            assert not conflict, (ours, theirs)
            assert mine.git("rev-parse", "main^{tree}") == clone.git("rev-parse", "main^{tree}"), (ours, theirs)
            assert mine.git("status", "--porcelain") == ""
        shutil.rmtree(mine.path)
        shutil.rmtree(clone.path)
    assert len(cases) < 50 or 20 < conflicts < 80
    record_property("executions", len(cases))


# -- rows 50 and 52: who does what at which of our steps ---------------------------------------------------------------


def disturbed(
    monkeypatch: pytest.MonkeyPatch, repo: Repo, journal: Journal, name: str, at: int, disturb: Callable[[Repo], object]
) -> tuple[bool, object]:
    """Run an effect; before its `at`th git child somebody else acts. Whether that child came, and the error if there was one."""
    steps = itertools.count(1)
    real, came = process.run, False

    def counted(argv: Sequence[str], **options: Any) -> Completed:
        nonlocal came
        if next(steps) == at:
            came = True
            disturb(repo)
        return real(argv, **options)

    with monkeypatch.context() as patch:
        patch.setattr(process, "run", counted)
        try:
            EFFECTS[name].act(repo, journal.record, journal.pending())
        except CodeIntelError as error:
            return came, error
    return came, None


def user_commits(path: str) -> Callable[[Repo], object]:
    """The user, in another terminal, commits to the base a change of this file."""

    def act(repo: Repo) -> None:
        blob = repo.git("hash-object", "-w", "--stdin", stdin=b"by the user meanwhile\n")
        entry = f"100644 blob {blob}\t{path}\n"
        rows = [
            row
            for row in repo.git("ls-tree", "-r", "main").splitlines(True)
            if not row.rstrip("\n").endswith(f"\t{path}")
        ]
        if any("/" in row for row in rows):
            raise AssertionError("flat trees only")
        rows = [row if row.endswith("\n") else f"{row}\n" for row in rows]
        tree = repo.git("mktree", stdin="".join([*rows, entry]).encode())
        tip = repo.git("commit-tree", "-p", "main", "-m", "by the user", tree)
        repo.git("update-ref", "refs/heads/main", tip)
        repo.git("update-ref", "refs/test/by-the-user", tip)

    return act


@EVERYTHING
@pytest.mark.parametrize("path", ["other.py", "a.py"], ids=["beside", "in conflict"])
@pytest.mark.parametrize(
    "name", ["merge", "merge into a moved base", "keep the branch", "abandon", "merge the stale branch"]
)
@pytest.mark.full
def test_what_the_user_commits_to_the_base_at_any_of_our_steps_stays_in_it(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, path: str, record_property: Record
) -> None:
    EFFECTS[name].prepare(repo)
    before, came, at = contents(repo), True, 0
    while came:
        at += 1
        mine, journal = copy(repo, tmp_path / f"at-{at}"), Journal(tmp_path / f"journal-{at}.json")
        came, error = disturbed(monkeypatch, mine, journal, name, at, user_commits(path))
        if came:
            mine.git("merge-base", "--is-ancestor", "refs/test/by-the-user", "main")
            assert before <= reachable(mine), (at, error)
            _, again = disturbed(monkeypatch, mine, journal, name, 0, ignore)
            mine.git("merge-base", "--is-ancestor", "refs/test/by-the-user", "main")
            assert before <= reachable(mine), (at, error, again)
        else:
            assert error is None
        shutil.rmtree(mine.path)
    record_property("executions", at - 1)
    assert at > 10


@EVERYTHING
@pytest.mark.full
@pytest.mark.parametrize("name", EFFECTS)
def test_an_index_that_is_held_from_any_of_our_steps_on_is_told_never_freed_and_then_it_is_finished(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, record_property: Record
) -> None:
    def hold(mine: Repo) -> None:
        mine.write(".git/index.lock", "held by somebody\n")

    EFFECTS[name].prepare(repo)
    before, came, at = contents(repo), True, 0
    while came:
        at += 1
        mine, journal = copy(repo, tmp_path / f"at-{at}"), Journal(tmp_path / f"journal-{at}.json")
        came, error = disturbed(monkeypatch, mine, journal, name, at, hold)
        if came:
            assert mine.read(".git/index.lock") == "held by somebody\n", at
            assert before <= reachable(mine), (at, error)
            (mine.path / ".git/index.lock").unlink()
            if error is not None:
                _, again = disturbed(monkeypatch, mine, journal, name, 0, ignore)
                assert again is None, (at, error, again)
                assert before <= reachable(mine), (at, error)
        shutil.rmtree(mine.path)
    record_property("executions", at - 1)
    assert at > 3


# -- row 54: hooks and signing -----------------------------------------------------------------------------------------

HOOKS = ("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "reference-transaction", "post-checkout", "post-merge",
         "post-index-change", "pre-merge-commit", "post-rewrite")  # fmt: skip
DEEDS = {
    "fails": "exit 3\n",
    "dies": "kill -KILL $$\n",
    "hangs": "sleep 60\n",
    "rewrites a file": "printf 'one = 9\\n' > a.py\n",
    "rewrites and adds": "printf 'one = 9\\n' > a.py; git add a.py 2>/dev/null; exit 0\n",
    "writes beside": "echo x > beside.txt\n",
    "rewrites its arguments": 'for f in "$@"; do test -f "$f" && echo rewritten > "$f"; done; exit 0\n',
    "prints a lot": "yes | head -c 3000000; exit 1\n",
    "leaves a child": "sleep 30 >/dev/null 2>&1 & exit 0\n",
}
SIGNERS = {
    "fails": "exit 2\n",
    "hangs": "sleep 60\n",
    "lies": "echo nonsense\n",
    "dies": "kill -KILL $$\n",
    "silent": "cat >/dev/null\n",
}


def tried(repo: Repo, name: str) -> CodeIntelError | None:
    """Run the effect; its typed refusal."""
    try:
        EFFECTS[name].act(repo, ignore, None)
    except CodeIntelError as error:
        return error
    return None


@EVERYTHING
def test_whatever_a_hook_does_nothing_is_lost_and_the_end_is_one_or_a_typed_refusal(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Record
) -> None:
    monkeypatch.setattr(door, "USER_SECONDS", 1.0)
    cases = spread(list(product(("commit", "merge into a moved base"), HOOKS, DEEDS)), 4)
    for number, (name, hook, deed) in enumerate(cases):
        mine = copy(repo, tmp_path / f"hook-{number}")
        EFFECTS[name].prepare(mine)
        before, tips = contents(mine), mine.git("rev-parse", "main", TASK)
        if deed.startswith("rewrites"):  # what the user's own hook overwrites is the hook's doing
            before -= {mine.git("hash-object", "--no-filters", "a.py")}
        mine.hook(hook, DEEDS[deed])
        refused = tried(mine, name)
        (mine.path / ".git/hooks" / hook).unlink()
        assert before <= reachable(mine), (name, hook, deed)
        moved = mine.git("for-each-ref", "--format=%(objectname)", "refs/heads").split() != tips.split()
        assert refused is not None or moved or deed.startswith(("rewrites", "writes")), (name, hook, deed)
        # A hook that adds whenever the index changes calls itself without end, and is ended with its gits.
        ended = deed in {"hangs", "dies"} or (hook, deed) == ("post-index-change", "rewrites and adds")
        assert ended or not list((mine.path / ".git").glob("*.lock")), (name, hook, deed)
        shutil.rmtree(mine.path)
    record_property("executions", len(cases))


@EVERYTHING
@pytest.mark.full
@pytest.mark.parametrize("deed", SIGNERS)
@pytest.mark.parametrize("name", ["commit", "merge into a moved base"])
def test_a_signature_that_fails_is_told_and_nothing_is_published_without_it(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, deed: str
) -> None:
    monkeypatch.setattr(door, "USER_SECONDS", 1.0)
    EFFECTS[name].prepare(repo)
    program = tmp_path / "signer"
    program.write_text(f"#!/bin/sh\n{SIGNERS[deed]}")
    program.chmod(0o755)
    repo.git("config", "gpg.program", str(program))
    repo.git("config", "commit.gpgSign", "true")
    before, tips = contents(repo), repo.git("rev-parse", "main", TASK)
    assert tried(repo, name) is not None
    assert repo.git("rev-parse", "main", TASK) == tips
    assert before <= reachable(repo)


# -- row 55: everything archived comes back ----------------------------------------------------------------------------


@EVERYTHING
def test_whatever_was_archived_comes_back_after_everything_unreachable_is_gone(
    repo: Repo, record_property: Record
) -> None:
    """Sessions given up, discards, and stale branches deleted: each is restored to what it was, byte for byte."""
    chance, times, kept = random.Random(55), size(3, 200), []  # noqa: S311 - repeatable, not secret
    repo.commit("all of it")
    for number in range(times):
        session = f"20261121_{number:06}"
        branch = manager(repo).create(session, (), ignore, None)
        wanted = {f"n{number}_{n}.bin": chance.randbytes(chance.randint(0, 300)) for n in range(chance.randint(1, 3))}
        if number % 3 == 0:  # committed, then deleted as stale
            for path, data in wanted.items():
                repo.write(path, data)
            repo.git("add", "-f", "--", *wanted)
            repo.git("commit", "-qm", "work")
            repo.git("switch", "-q", "main")
            tip = repo.git("rev-parse", branch.name)
            manager(repo).retire("delete", "20261122_000000", ignore, None)
            kept.append((branch.name, tip, wanted))
        else:
            for path, data in wanted.items():
                repo.write(path, data)
            if number % 3 == 1:  # uncommitted, given up
                archived = manager(repo).abandon(session, branch, {}, ignore, None).archived
            else:  # discarded by the review
                request = CommitRequest(session, branch, branch.base_oid, "m", (), (), discard=tuple(wanted))
                archived = manager(repo).commit(request, ignore, None).archived
                manager(repo).abandon(session, branch, {}, ignore, None)
            (ref,) = (ref for ref in archived if ref.endswith(("work", "discard")))
            kept.append((ref, "", wanted))
        assert not [path for path in wanted if (repo.path / path).exists()], number
        assert repo.git("symbolic-ref", "HEAD") == "refs/heads/main"
    repo.git("reflog", "expire", "--expire=now", "--all")
    repo.git("gc", "-q", "--prune=now")
    entries = {entry.branch: entry.ref for entry in Trash(repo.path).entries() if entry.kind.value == "branch"}
    for name, tip, wanted in kept:
        if tip:
            assert Trash(repo.path).restore(entries[name]).branch == name
            assert repo.git("rev-parse", name) == tip
            assert set(wanted) <= set(repo.git("ls-tree", "-r", "--name-only", name).splitlines())
        else:
            assert set(Trash(repo.path).restore(name).files) == set(wanted)
            assert {path: (repo.path / path).read_bytes() for path in wanted} == wanted
    record_property("executions", len(kept))
