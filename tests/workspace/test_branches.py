"""Task branches are made, merged, retired and abandoned without losing a byte of the user's."""

from collections.abc import Callable
from pathlib import Path

import pytest

from code_intel_server.errors import Rejected, UserActionNeeded
from code_intel_server.workspace.branches.manager import BranchManager
from code_intel_server.workspace.tree.tree import BIG_BYTES, TreeJudge
from code_intel_server.workspace.values import CommitRequest, GitIntent, GitOperation, TaskBranch
from tests.workspace.git_repo import Repo

SESSION = "20261121_110000"
NAME = f"llm_task_{SESSION}"


def manager(repo: Repo, finish: str = "merge") -> BranchManager:
    return BranchManager(repo.path, TreeJudge(repo.path), finish=finish, patience=0.0)


class Intents(list[GitIntent]):
    """Records intents as the checkpoint would; `last` is what a restarted server is given."""

    @property
    def last(self) -> GitIntent:
        return self[-1]


def request(
    branch: TaskBranch | None, tip: str, *keep: str, discard: tuple[str, ...] = (), message: str = "Do it"
) -> CommitRequest:
    return CommitRequest(SESSION, branch, tip, message, (("Code-Intel-Tasks", "t1, t2"),), keep, discard)


def start(repo: Repo) -> TaskBranch:
    return manager(repo).create(SESSION, (), Intents().append, None)


def commit(repo: Repo, branch: TaskBranch, *keep: str, discard: tuple[str, ...] = ()) -> str:
    result = manager(repo).commit(
        request(branch, repo.git("rev-parse", "HEAD"), *keep, discard=discard), Intents().append, None
    )
    return result.oid


def refusal(act: Callable[[], object], key: str) -> dict[str, object]:
    with pytest.raises(UserActionNeeded) as caught:
        act()
    assert caught.value.key == key
    return caught.value.details


def test_a_whole_session_leaves_a_merge_commit_with_trailers_and_no_branch(repo: Repo) -> None:
    repo.write("notes.txt", "mine, untracked\n")
    repo.write(".git/info/exclude", ".env\n")
    repo.write(".env", "SECRET=1\n")
    first = repo.git("rev-parse", "HEAD")
    branch = start(repo)
    assert (branch, repo.git("branch", "--show-current")) == (TaskBranch(NAME, "main", first), NAME)
    repo.write("a.py", "one = 11\n")
    repo.write("new.py", "new = 1\n")
    done = commit(repo, branch, "a.py", "new.py")
    result = manager(repo).merge(branch, SESSION, "", [("Code-Intel-Tasks", "t1")], Intents().append, None)
    assert repo.git("rev-parse", "main") == result.oid == repo.git("rev-parse", "HEAD")
    assert repo.git("rev-parse", "main^1", "main^2").split() == [first, done]
    for revision in ("main", "main^2"):
        assert (
            repo.git("log", "-1", "--format=%(trailers:key=Code-Intel-Session,valueonly)", revision).strip() == SESSION
        )
    assert repo.git("branch", "--list", "llm_task_*") == ""
    assert repo.git("for-each-ref", "refs/code-intel/base") == ""
    assert repo.git("rev-parse", f"refs/code-intel/archive/{SESSION}/001-branch^{{commit}}") == done
    assert repo.git("status", "--porcelain") == "?? notes.txt"
    assert (repo.read(".env"), repo.read("notes.txt")) == ("SECRET=1\n", "mine, untracked\n")


def test_the_survey_tells_what_is_there_and_changes_nothing(repo: Repo) -> None:
    repo.git("branch", "llm_task_old")
    repo.write("a.py", "dirty\n")
    repo.write("loose.txt", "x\n")
    before = repo.sentinel()
    survey = manager(repo).survey()
    assert (survey.git, survey.blocker, survey.current, survey.stale) == (True, "", "main", ("llm_task_old",))
    assert (survey.dirty, survey.current_base, survey.identity_missing) == (("a.py",), "", False)
    assert survey.untracked == {"loose.txt": repo.git("hash-object", "loose.txt")}
    assert repo.sentinel() == before


def test_a_branch_is_not_made_on_a_dirty_tree(repo: Repo) -> None:
    repo.write("a.py", "dirty\n")
    repo.write("b.py", "staged\n")
    repo.git("add", "b.py")
    before = repo.sentinel()
    details = refusal(lambda: start(repo), "failures.READY.branch_creation_failed")
    assert (details["reason"], details["files"]) == ("dirty", ["a.py", "b.py"])
    assert repo.sentinel() == before


def test_a_branch_is_not_made_over_an_edit_where_a_sparse_checkout_leaves_the_file_out(repo: Repo) -> None:
    """Found by an opponent: git itself calls such a file modified, and the switch took it away."""
    repo.git("sparse-checkout", "set", "--no-cone", "/a.py")
    repo.write("b.py", "of the user\n")
    assert repo.git("status", "--porcelain") == " M b.py"
    assert manager(repo).survey().dirty == ("b.py",)
    with pytest.raises(UserActionNeeded):
        start(repo)
    repo.write("b.py", "two = 2\n")
    assert manager(repo).survey().dirty == ()
    assert start(repo).name == NAME


def test_what_git_is_told_not_to_look_at_is_no_obstacle_and_is_known_for_what_it_is(repo: Repo) -> None:
    """A local edit that the user hides from git stays his: it is neither called dirty nor taken for what HEAD holds."""
    repo.write("a.py", "local\n")
    repo.git("update-index", "--skip-worktree", "a.py")
    repo.write("b.py", "local\n")
    repo.git("update-index", "--assume-unchanged", "b.py")
    assert manager(repo).survey().dirty == ()
    judge, head = TreeJudge(repo.path), repo.git("rev-parse", "HEAD")
    assert judge.uncommitted(judge.snapshot(), head, ["a.py", "b.py"]) == ("a.py", "b.py")
    repo.write("b.py", "two = 2\n")
    fresh = TreeJudge(repo.path)
    fresh.tidy()
    assert fresh.uncommitted(fresh.snapshot(), head, ["a.py", "b.py"]) == ("a.py",)


def test_what_only_a_filter_could_tell_is_not_called_uncommitted(repo: Repo) -> None:
    repo.git("config", "filter.up.clean", "tr a-z A-Z")
    repo.write(".gitattributes", "*.up filter=up\n")
    repo.write("f.up", "small\n")
    repo.commit("filtered")
    judge, head = TreeJudge(repo.path), repo.git("rev-parse", "HEAD")
    start, names = judge.snapshot(), ["f.up", "g.up"]
    repo.write("f.up", "other\n")
    repo.write("g.up", "new\n")
    assert judge.uncommitted(start, head, names) == ()
    assert judge.uncommitted(judge.snapshot(), head, names) == ("g.up",)


def test_abandoning_shelves_the_work_and_returns_to_base(repo: Repo) -> None:
    repo.write("mine.txt", "untracked before\n")
    before = manager(repo).survey().untracked
    files = repo.files()
    branch = start(repo)
    repo.write("a.py", "work in progress\n")
    repo.write("staged.py", "staged\n")
    repo.git("add", "staged.py")
    repo.write("staged.py", "and changed again\n")
    repo.write("fresh/new.bin", b"\0\r\n")
    (repo.path / "b.py").unlink()
    done = manager(repo).abandon(SESSION, branch, before, Intents().append, None)
    assert (done.head, done.warnings, repo.files()) == ("main", (), files)
    assert repo.git("status", "--porcelain") == "?? mine.txt"
    assert repo.git("branch", "--list", "llm_task_*") == ""
    repo.git("gc", "-q", "--prune=now")
    work, staged, tip = done.archived
    assert repo.git("show", f"{work}:a.py") == "work in progress"
    assert repo.git("cat-file", "blob", f"{work}:fresh/new.bin") == "\0\r"
    assert repo.fails("rev-parse", "--verify", f"{work}:b.py")
    assert repo.git("show", f"{staged}:staged.py") == "staged"
    assert repo.git("rev-parse", f"{tip}^{{commit}}") == branch.base_oid


def test_an_edit_of_what_the_server_writes_as_well_stays_when_the_session_is_abandoned(repo: Repo) -> None:
    """The user wrote to context.yml, before the session and during it: no work of the session, and nobody's to undo."""
    repo.write(".code-intel/context.yml", "before\n")
    repo.write(".code-intel/agreements/one.md", "before\n")
    repo.commit("Set up")
    repo.write(".code-intel/context.yml", "of the user\n")
    branch = start(repo)
    repo.write(".code-intel/agreements/one.md", "of the user\n")
    repo.git("add", ".code-intel/agreements")
    repo.write("a.py", "work in progress\n")
    done = manager(repo).abandon(SESSION, branch, {}, Intents().append, None)
    assert (done.head, done.warnings, repo.read("a.py")) == ("main", (), "one = 1\n")
    assert repo.read(".code-intel/context.yml") == repo.read(".code-intel/agreements/one.md") == "of the user\n"
    assert repo.git("status", "--porcelain") == "M  .code-intel/agreements/one.md\n M .code-intel/context.yml"


def test_an_edit_of_what_the_server_writes_is_not_overwritten_by_the_way_back(repo: Repo) -> None:
    repo.write(".code-intel/context.yml", "before\n")
    repo.commit("Set up")
    branch = start(repo)
    repo.write(".code-intel/context.yml", "committed\n")
    repo.commit("by hand", ".code-intel/context.yml")
    repo.write(".code-intel/context.yml", "of the user\n")
    done = manager(repo).abandon(SESSION, branch, {}, Intents().append, None)
    assert "uncommitted changes are in the way: .code-intel/context.yml" in done.warnings[0]
    assert (done.head, repo.read(".code-intel/context.yml")) == (NAME, "of the user\n")


def test_what_the_user_does_outside_the_project_stays_when_the_session_is_abandoned(repo: Repo) -> None:
    """The project is a folder of a repository in which the user goes on with other things."""
    repo.write("sub/x.py", "x = 1\n")
    repo.commit("sub")
    sub = BranchManager(repo.path / "sub", TreeJudge(repo.path / "sub"), patience=0.0)
    branch = sub.create(SESSION, (), Intents().append, None)
    repo.write("sub/x.py", "work in progress\n")
    repo.write("a.py", "of the user\n")
    repo.write("new.py", "of the user\n")
    repo.git("add", "new.py")
    done = sub.abandon(SESSION, branch, {}, Intents().append, None)
    assert (done.head, done.warnings, repo.read("sub/x.py")) == ("main", (), "x = 1\n")
    assert repo.git("status", "--porcelain") == " M a.py\nA  new.py"
    assert repo.read("a.py") == repo.read("new.py") == "of the user\n"
    assert repo.git("show", f"{done.archived[0]}:sub/x.py") == "work in progress"


def test_a_users_untracked_file_that_was_committed_comes_back_when_the_session_is_abandoned(repo: Repo) -> None:
    repo.write("mine.txt", "before\n").chmod(0o640)
    before = manager(repo).survey().untracked
    branch = start(repo)
    repo.write("mine.txt", "changed by the task\n")
    commit(repo, branch, "mine.txt")
    done = manager(repo).abandon(SESSION, branch, before, Intents().append, None)
    assert (done.warnings, repo.read("mine.txt")) == ((), "changed by the task\n")
    assert repo.git("status", "--porcelain") == "?? mine.txt"
    assert (repo.path / "mine.txt").stat().st_mode & 0o777 == 0o640


def test_a_branch_that_is_being_rebased_stays_when_the_session_is_abandoned(repo: Repo) -> None:
    branch = start(repo)
    repo.git("commit", "-q", "--allow-empty", "-m", "one")
    repo.git("-c", "sequence.editor=echo break >", "rebase", "-q", "-i", "main")
    done = manager(repo).abandon(SESSION, branch, {}, Intents().append, None)
    assert done.warnings == (f"a rebase of {branch.name} is in progress: finish or abort it first",)
    repo.git("rebase", "--abort")
    assert repo.git("symbolic-ref", "--short", "HEAD") == branch.name


def test_head_off_the_branch_or_moved_is_no_place_to_commit(repo: Repo) -> None:
    branch = start(repo)
    tip = repo.git("rev-parse", "HEAD")
    repo.write("a.py", "x\n")
    repo.git("commit", "-qam", "behind our back")
    with pytest.raises(Rejected) as caught:
        manager(repo).commit(request(branch, tip, "a.py"), Intents().append, None)
    assert caught.value.key == "failures.PRE_COMMIT.head_moved"
    assert (
        caught.value.params["found"]
        == repo.git("rev-parse", "HEAD")[:12]
        != tip[:12]
        == caught.value.params["expected"]
    )


def test_deleting_stale_branches_keeps_them_restorable(repo: Repo) -> None:
    repo.git("switch", "-qc", "llm_task_1")
    tip = repo.commit("unmerged")
    repo.git("switch", "-q", "main")
    intents = Intents()
    retired = manager(repo).retire("delete", SESSION, intents.append, None)
    assert (retired.branches, retired.session_ids, intents.last.operation) == (
        ("llm_task_1",),
        ("1",),
        GitOperation.RETIRE_BRANCHES,
    )
    repo.git("reflog", "expire", "--expire=now", "--all")
    repo.git("gc", "-q", "--prune=now")
    assert repo.git("rev-parse", f"{retired.archived[0]}^{{commit}}") == tip
    assert manager(repo).retire("delete", SESSION, intents.append, intents.last).branches == ("llm_task_1",)


def test_merging_the_stale_branch_head_is_on_removes_the_others_too(repo: Repo) -> None:
    repo.git("branch", "llm_task_other")
    branch = start(repo)
    repo.write("a.py", "one = 5\n")
    commit(repo, branch, "a.py")
    retired = manager(repo).retire("merge", "20261121_999999", Intents().append, None)
    assert retired.merged == repo.git("rev-parse", "main") == repo.git("rev-parse", "HEAD")
    assert (retired.branches, repo.git("branch", "--format=%(refname:short)")) == ((NAME, "llm_task_other"), "main")


def test_finish_mode_branch_keeps_the_branch_and_says_how_to_push(repo: Repo) -> None:
    branch = start(repo)
    repo.write("a.py", "one = 5\n")
    tip = commit(repo, branch, "a.py")
    result = manager(repo, "branch").merge(branch, SESSION, "", [], Intents().append, None)
    assert result.pushed_hint.splitlines() == [
        f"git push --set-upstream origin {NAME}",
        f"gh pr create --base main --head {NAME}",
    ]
    assert (repo.git("branch", "--show-current"), repo.git("rev-parse", NAME), repo.read("a.py")) == (
        "main",
        tip,
        "one = 1\n",
    )
    assert manager(repo).survey().stale == ()


def test_conflicts_never_reach_the_users_files(repo: Repo) -> None:
    branch = start(repo)
    repo.write("a.py", "one = 'task'\n")
    commit(repo, branch, "a.py")
    repo.git("switch", "-q", "main")
    repo.write("a.py", "one = 'user'\n")
    repo.commit("on base")
    repo.git("switch", "-q", NAME)
    before = repo.sentinel()
    details = refusal(
        lambda: manager(repo).merge(branch, SESSION, "", [], Intents().append, None), "failures.MERGE.merge_failed"
    )
    assert (details["reason"], details["conflicts"]) == ("conflict", ["a.py"])
    assert repo.sentinel() == before
    repo.fails("merge", "-q", "main")
    repo.write("a.py", "one = 'both'\n")
    repo.commit("merged by hand")
    result = manager(repo).merge(branch, SESSION, "", [], Intents().append, None)
    assert (repo.git("rev-parse", "main"), repo.read("a.py")) == (result.oid, "one = 'both'\n")


def test_a_users_untracked_file_changed_by_the_task_stays_and_is_kept_too(repo: Repo) -> None:
    repo.write("mine.txt", "before\n")
    before = manager(repo).survey().untracked
    branch = start(repo)
    repo.write("mine.txt", "changed by the task\n")
    done = manager(repo).abandon(SESSION, branch, before, Intents().append, None)
    assert repo.read("mine.txt") == "changed by the task\n"
    assert repo.git("show", f"{done.archived[0]}:mine.txt") == "changed by the task"


def test_ignored_files_and_repositories_within_survive_an_abandoned_session(repo: Repo) -> None:
    repo.write(".git/info/exclude", "build/\n")
    branch = start(repo)
    repo.write("build/out.o", "artefact\n")
    repo.git("init", "-q", "clone")
    Repo(repo.path / "clone").write("x", "x\n")
    Repo(repo.path / "clone").commit("x")
    done = manager(repo).abandon(SESSION, branch, {}, Intents().append, None)
    assert (done.head, repo.read("build/out.o"), repo.read("clone/x")) == ("main", "artefact\n", "x\n")


def test_a_session_without_a_branch_has_nothing_to_abandon(repo: Repo) -> None:
    repo.write("a.py", "mine\n")
    before = repo.sentinel()
    assert manager(repo).abandon(SESSION, None, {}, Intents().append, None).head == "main"
    assert repo.sentinel() == before


def test_work_without_a_branch_stays_is_copied_and_named(repo: Repo) -> None:
    repo.write("mine.txt", "from before\n")
    tree = TreeJudge(repo.path)
    begun = tree.snapshot()
    repo.write("a.py", "one = 'of the session'\n")
    repo.write("new.py", "x = 1\n")
    status = repo.git("status", "--porcelain")
    done = manager(repo).abandon(SESSION, None, {}, Intents().append, None, begun)
    assert repo.git("status", "--porcelain") == status
    assert done.warnings[0].endswith("(a copy is in the trash): a.py, new.py")
    assert repo.git("show", f"{done.archived[0]}:a.py") == "one = 'of the session'"
    assert repo.git("ls-tree", "--name-only", done.archived[0], "mine.txt") == ""
    lost = manager(repo).abandon(SESSION, None, {}, Intents().append, None, "f" * 40)
    assert "cannot be told any more" in lost.warnings[0]


def test_of_work_without_a_branch_neither_a_large_file_nor_what_head_holds_is_copied(repo: Repo) -> None:
    begun, head = TreeJudge(repo.path).snapshot(), repo.git("rev-parse", "HEAD")
    large(repo, "dump.bin")
    repo.write("a.py", "one = 'committed meanwhile'\n")
    repo.git("commit", "-qam", "the user's own")
    done = manager(repo).abandon(SESSION, None, {}, Intents().append, None, begun, head)
    assert (done.archived, repo.objects_over(1_000_000)) == ((), [])
    assert [warning.partition(", too large")[2] for warning in done.warnings] == [
        " to be copied, left as they are: dump.bin"
    ]
    repo.write("new.py", "x = 1\n")
    (ref,) = manager(repo).abandon(SESSION, None, {}, Intents().append, None, begun, head).archived
    assert repo.git("diff", "--name-only", "HEAD", ref) == "new.py"


def test_a_large_file_is_left_where_it_is_by_an_abandoned_session(repo: Repo) -> None:
    branch = start(repo)
    large(repo, "dump.bin")
    repo.write("new.py", "x = 1\n")
    done = manager(repo).abandon(SESSION, branch, {}, Intents().append, None)
    assert (done.head, done.warnings) == ("main", ("too large to be shelved, left where they are: dump.bin",))
    assert (repo.git("status", "--porcelain"), repo.objects_over(1_000_000)) == ("?? dump.bin", [])


def test_a_large_file_in_the_place_of_one_of_the_base_is_shelved_and_makes_way(repo: Repo) -> None:
    branch = start(repo)
    repo.git("rm", "-q", "a.py")
    repo.git("commit", "-qm", "drop a")
    large(repo, "a.py")
    done = manager(repo).abandon(SESSION, branch, {}, Intents().append, None)
    assert (done.head, done.warnings, repo.read("a.py")) == ("main", (), "one = 1\n")
    assert repo.git("cat-file", "-s", f"{done.archived[0]}:a.py") == str(BIG_BYTES + 1)


def large(repo: Repo, path: str) -> None:
    """A file of a byte more than is kept; without a hole it would take seconds to write."""
    with (repo.path / path).open("wb") as file:
        file.truncate(BIG_BYTES + 1)


def test_a_branch_whose_making_was_not_noted_any_more_is_abandoned_like_any_other(repo: Repo) -> None:
    repo.write("mine.txt", "mine\n")
    before = manager(repo).survey().untracked
    intents = Intents()
    manager(repo).create(SESSION, (), intents.append, None)
    repo.write("a.py", "one = 'unfinished'\n")
    done = manager(repo).abandon(SESSION, None, before, Intents().append, intents.last)
    assert (done.head, repo.git("branch", "--list", "llm*")) == ("main", "")
    assert repo.git("status", "--porcelain") == "?? mine.txt"
    assert repo.git("show", f"{done.archived[0]}:a.py") == "one = 'unfinished'"


def test_abandoning_from_another_branch_leaves_the_tree_alone(repo: Repo) -> None:
    branch = start(repo)
    repo.git("switch", "-q", "main")
    repo.write("a.py", "mine\n")
    done = manager(repo).abandon(SESSION, branch, {}, Intents().append, None)
    assert (len(done.archived), repo.read("a.py"), repo.git("branch", "--list", "llm*")) == (1, "mine\n", "")


@pytest.mark.parametrize("obstacle", ["merge", "base gone", "base elsewhere", "file in the way", "lock"])
def test_what_cannot_be_abandoned_is_shelved_and_told(repo: Repo, tmp_path: Path, obstacle: str) -> None:
    branch = start(repo)
    repo.write("a.py", "one = 'unfinished'\n")
    if obstacle == "merge":
        repo.write(".git/MERGE_HEAD", repo.git("rev-parse", "HEAD") + "\n")
    elif obstacle == "base gone":
        repo.git("branch", "-q", "-m", "main", "trunk")
    elif obstacle == "base elsewhere":
        repo.git("worktree", "add", "-q", str(tmp_path / "other"), "main")
    elif obstacle == "file in the way":
        repo.write(".git/info/exclude", "b.py\n")
        repo.git("rm", "-q", "b.py")
        repo.git("commit", "-qm", "drop b")
        repo.write("b.py", "ignored, mine\n")
    else:
        (repo.path / ".git/index.lock").touch()
    done = manager(repo).abandon(SESSION, branch, {}, Intents().append, None)
    assert done.head == NAME
    assert len(done.warnings) == 1
    assert repo.git("show", f"{done.archived[0]}:a.py") == "one = 'unfinished'"
    if obstacle == "file in the way":
        assert repo.read("b.py") == "ignored, mine\n"


def test_a_branch_of_that_name_is_not_taken_over(repo: Repo) -> None:
    repo.git("branch", NAME)
    assert refusal(lambda: start(repo), "failures.READY.branch_creation_failed")["reason"] == "branch_exists"


@pytest.mark.parametrize("name", ["", "../x", "a/b", "-x", "x..y", "x.lock", "a b", "é"])
def test_sessions_are_called_by_plain_names(repo: Repo, name: str) -> None:
    details = refusal(
        lambda: manager(repo).create(name, (), Intents().append, None), "failures.READY.branch_creation_failed"
    )
    assert details["reason"] == "bad_name"


def test_a_user_who_moves_on_between_two_attempts_is_not_moved_back(repo: Repo) -> None:
    intents = Intents()
    manager(repo).create(SESSION, (), intents.append, None)
    repo.git("switch", "-qc", "elsewhere")
    details = refusal(
        lambda: manager(repo).create(SESSION, (), intents.append, intents.last), "failures.READY.branch_creation_failed"
    )
    assert details["reason"] == "head_moved"
    assert repo.git("symbolic-ref", "--short", "HEAD") == "elsewhere"


def test_changes_that_were_explained_come_along(repo: Repo) -> None:
    repo.write("a.py", "explained\n")
    assert manager(repo).create(SESSION, ("a.py",), Intents().append, None).name == NAME
    assert repo.git("status", "--porcelain") == " M a.py"


def test_what_the_server_writes_itself_is_no_unfinished_work_of_the_users(repo: Repo) -> None:
    inner = "lib/.code-intel/context.yml"
    for path in (".code-intel/context.yml", ".code-intel/agreements/one.md", ".code-intel/config.json", inner):
        repo.write(path, "before\n")
    repo.git("add", ".")
    repo.git("commit", "-qm", "Set up")
    repo.write(".code-intel/context.yml", "summary\n")
    repo.write(".code-intel/agreements/one.md", "more\n")
    repo.write(inner, "of the project in this one\n")
    assert manager(repo).survey().dirty == ()
    assert start(repo).name == NAME
    assert repo.git("status", "--porcelain").split() == [
        "M", ".code-intel/agreements/one.md", "M", ".code-intel/context.yml", "M", inner,
    ]  # fmt: skip
    repo.write(".code-intel/config.json", "mine\n")
    assert manager(repo).survey().dirty == (".code-intel/config.json",)


@pytest.mark.parametrize("choice", ["delete", "merge"])
def test_stale_branches_are_not_touched_on_a_dirty_tree(repo: Repo, choice: str) -> None:
    start(repo)
    repo.write("a.py", "dirty\n")
    before = repo.sentinel()
    details = refusal(
        lambda: manager(repo).retire(choice, "20261121_999999", Intents().append, None),
        "failures.BRANCH_INTERVENTION.branch_operation_failed",
    )
    assert (details["reason"], details["files"]) == ("dirty", ["a.py"])
    assert repo.sentinel() == before


@pytest.mark.parametrize("choice", ["delete", "merge"])
def test_a_stale_branch_whose_base_is_unknown_is_not_left(repo: Repo, choice: str) -> None:
    repo.git("switch", "-qc", "llm_task_1")
    details = refusal(
        lambda: manager(repo).retire(choice, SESSION, Intents().append, None),
        "failures.BRANCH_INTERVENTION.branch_operation_failed",
    )
    assert details["reason"] == "base_unknown"
    assert repo.git("symbolic-ref", "--short", "HEAD") == "llm_task_1"


@pytest.mark.parametrize(
    "record",
    [b"", b"{", b"[]", b'{"base": "main"}', b'{"base": "-x", "oid": "%s"}' % (b"0" * 40), b"[" * 100_000, b"\xff"],
)
def test_a_forged_base_record_is_no_record(repo: Repo, record: bytes) -> None:
    start(repo)
    oid = repo.git("hash-object", "-w", "--stdin", stdin=record)
    repo.git("update-ref", f"refs/code-intel/base/{NAME}", oid)
    assert manager(repo).survey().current_base == ""


def test_a_stale_branch_held_by_another_worktree_stays(repo: Repo, tmp_path: Path) -> None:
    repo.git("worktree", "add", "-q", "-b", "llm_task_1", str(tmp_path / "held"))
    repo.git("branch", "llm_task_2")
    dry = manager(repo).cleanup_stale(dry_run=True)
    assert repo.git("branch", "--list", "--format=%(refname:short)", "llm*").split() == ["llm_task_1", "llm_task_2"]
    cleaned = manager(repo).cleanup_stale()
    assert [branch.name for branch in cleaned.branches] == ["llm_task_2"]
    assert "held" in str((cleaned.left or {})["llm_task_1"])
    assert (dry.branches, dry.left) == (cleaned.branches, cleaned.left)
    details = refusal(
        lambda: manager(repo).retire("delete", SESSION, Intents().append, None),
        "failures.BRANCH_INTERVENTION.branch_operation_failed",
    )
    assert details["reason"] == "held_elsewhere"


def test_cleaning_up_returns_from_a_stale_branch_to_its_base(repo: Repo) -> None:
    branch = start(repo)
    repo.write("a.py", "one = 2\n")
    tip = commit(repo, branch, "a.py")
    dry = manager(repo).cleanup_stale(dry_run=True)
    assert ([one.name for one in dry.branches], dry.left, dry.archived) == ([NAME], {}, ())
    assert repo.git("symbolic-ref", "--short", "HEAD") == NAME
    cleaned = manager(repo).cleanup_stale()
    assert dry.branches == cleaned.branches
    assert (repo.git("symbolic-ref", "--short", "HEAD"), repo.git("branch", "--list", "llm*")) == ("main", "")
    assert repo.git("rev-parse", f"{cleaned.archived[0]}^{{commit}}") == tip


def test_a_dry_run_says_what_a_clean_up_would_leave_and_why(repo: Repo) -> None:
    branch = start(repo)
    commit(repo, branch, "a.py")
    repo.write("a.py", "not = committed\n")
    dry = manager(repo).cleanup_stale(dry_run=True)
    cleaned = manager(repo).cleanup_stale()
    assert dry.branches == cleaned.branches == ()
    assert dry.left == cleaned.left
    assert "a.py" in str((cleaned.left or {})[NAME])


def test_what_stands_in_the_way_of_a_branch_is_said_in_one_sentence(repo: Repo, tmp_path: Path) -> None:
    for prepare, sentence in (
        (("switch", "-q", "--detach"), "detached"),
        (("symbolic-ref", "HEAD", "refs/heads/unborn"), "no commit yet"),
    ):
        repo.git(*prepare)
        survey = manager(repo).survey()
        assert sentence in survey.blocker
        assert refusal(lambda: start(repo), "failures.READY.branch_creation_failed")["reason"] == "blocked"
    repo.git("symbolic-ref", "HEAD", "refs/heads/main")
    for state in ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD"):
        repo.write(f".git/{state}", repo.git("rev-parse", "HEAD") + "\n")
        assert "in progress" in manager(repo).survey().blocker
        (repo.path / ".git" / state).unlink()
    (repo.path / ".git/rebase-merge").mkdir()
    assert "rebase" in manager(repo).survey().blocker
    nowhere = BranchManager(tmp_path, TreeJudge(tmp_path)).survey()
    assert (nowhere.git, nowhere.blocker) == (False, "this is not a git repository")


def test_without_git_every_effect_says_so(tmp_path: Path) -> None:
    nowhere = BranchManager(tmp_path, TreeJudge(tmp_path))
    assert (nowhere.tip(), nowhere.current(), nowhere.stale(), nowhere.cleanup_stale().branches) == ("", "", (), ())
    assert nowhere.abandon(SESSION, TaskBranch("x", "y", "z"), {}, Intents().append, None).archived == ()
    with pytest.raises(UserActionNeeded) as caught:
        nowhere.create(SESSION, (), Intents().append, None)
    assert caught.value.details["reason"] == "not_a_repository"


def test_a_held_index_is_a_warning_of_the_survey_and_refuses_a_branch(repo: Repo) -> None:
    lock = repo.path / ".git/index.lock"
    lock.touch()
    assert str(lock) in manager(repo).survey().warnings[0]
    assert refusal(lambda: start(repo), "failures.READY.branch_creation_failed")["reason"] == "index_locked"
    assert lock.exists()
