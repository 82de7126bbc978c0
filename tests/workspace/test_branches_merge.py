"""Merging moves the base by compare-and-swap and never touches a file that git does not track."""

from pathlib import Path

import pytest

from code_intel_server.errors import Rejected, Unavailable, UserActionNeeded
from code_intel_server.workspace.branches.manager import BranchManager
from code_intel_server.workspace.tree.tree import TreeJudge
from code_intel_server.workspace.values import GitIntent, MergeResult, TaskBranch
from tests.workspace.git_repo import Repo

SESSION = "20261121_110000"
TASK = f"llm_task_{SESSION}"


class Work:
    """A task branch with one commit that changes a.py; `on_base` commits to the base meanwhile."""

    def __init__(self, repo: Repo) -> None:
        self.repo = repo
        self.intents: list[GitIntent] = []
        self.branch: TaskBranch = self.manager().create(SESSION, (), self.intents.append, None)
        repo.write("a.py", "one = 'task'\n")
        self.tip = repo.commit("task", "a.py")

    def manager(self, finish: str = "merge") -> BranchManager:
        return BranchManager(self.repo.path, TreeJudge(self.repo.path), patience=0.0, finish=finish)

    def merge(self, pending: GitIntent | None = None, expected: str = "", finish: str = "merge") -> MergeResult:
        manager = self.manager(finish)
        return manager.merge(self.branch, SESSION, expected, [("Code-Intel-Tasks", "t1")], self.intents.append, pending)

    def refused(self, expected: str = "") -> dict[str, object]:
        before = self.repo.sentinel()
        with pytest.raises(UserActionNeeded) as caught:
            self.merge(expected=expected)
        assert caught.value.key == "failures.MERGE.merge_failed"
        assert self.repo.sentinel() == before, "a refusal changes nothing"
        return caught.value.details

    def on_base(self, **files: str | None) -> str:
        self.repo.git("switch", "-q", "main")
        for name, text in files.items():
            path = name.replace("__", ".")
            if text is None:
                (self.repo.path / path).unlink()
            else:
                self.repo.write(path, text)
        oid = self.repo.commit("on base", *[name.replace("__", ".") for name in files])
        self.repo.git("switch", "-q", TASK)
        return oid


@pytest.fixture
def work(repo: Repo) -> Work:
    return Work(repo)


def test_a_base_that_moved_is_merged_anew(work: Work) -> None:
    moved = work.on_base(b__py="two = 'base'\n", c__py="three\n")
    result = work.merge()
    repo = work.repo
    assert repo.git("rev-parse", "main^1", "main^2").split() == [moved, work.tip]
    assert (repo.read("a.py"), repo.read("b.py"), repo.read("c.py")) == ("one = 'task'\n", "two = 'base'\n", "three\n")
    assert repo.git("status", "--porcelain") == ""
    assert repo.git("rev-parse", "HEAD") == result.oid


def test_a_merge_of_both_sides_is_marked_as_one_that_nobody_verified(work: Work) -> None:
    """Found by an opponent: each side passed its tests, both together were merged as if they had."""
    work.on_base(b__py="two = 'moved'\n")
    done = work.merge()
    assert done.combined
    assert "Code-Intel-Unproven: the merge as a whole, as main had moved on" in work.repo.git(
        "log", "-1", "--format=%B"
    )
    assert work.merge(work.intents[-1]).combined, "told again after a kill"


def test_there_is_always_a_merge_commit_with_trailers(work: Work) -> None:
    work.repo.git("config", "merge.ff", "only")
    work.merge()
    assert work.repo.git("log", "-1", "--format=%B").strip() == (
        f"Merge branch '{TASK}' into main\n\nCode-Intel-Session: {SESSION}\nCode-Intel-Tasks: t1"
    )


@pytest.mark.parametrize("ignored", [True, False], ids=["ignored", "untracked"])
def test_a_file_of_the_users_in_the_way_is_never_overwritten(work: Work, ignored: bool) -> None:
    work.on_base(**{"__env": "FROM_BASE=1\n", "deep/x__txt": "base\n"})
    repo = work.repo
    if ignored:
        repo.write(".git/info/exclude", ".env\ndeep\n")
    repo.write(".env", "SECRET=1\n")
    repo.write("deep/x.txt/inner", "mine, and a folder\n")
    assert work.refused()["files"] == [".env", "deep/x.txt"]
    (repo.path / ".env").unlink()
    (repo.path / "deep/x.txt/inner").unlink()
    assert work.merge().oid, "an empty folder is not in the way"


def test_a_file_where_a_folder_must_come_is_in_the_way(work: Work) -> None:
    work.on_base(**{"deep/x__txt": "base\n"})
    work.repo.write(".git/info/exclude", "deep\n")
    work.repo.write("deep", "my file\n")
    assert work.refused()["files"] == ["deep/x.txt"]
    (work.repo.path / "deep").unlink()
    (work.repo.path / "deep").symlink_to(work.repo.path.parent)
    assert work.refused()["files"] == ["deep/x.txt"]


def test_a_left_edit_stays_through_the_merge(work: Work) -> None:
    work.on_base(c__py="three\n")
    work.repo.write("b.py", "two = 'my own edit'\n")
    work.merge()
    assert work.repo.read("b.py") == "two = 'my own edit'\n"
    assert work.repo.git("status", "--porcelain") == " M b.py"


def test_a_left_edit_that_the_base_changed_too_is_in_the_way(work: Work) -> None:
    work.on_base(b__py="two = 'base'\n")
    work.repo.write("b.py", "two = 'my own edit'\n")
    details = work.refused()
    assert (details["reason"], details["files"]) == ("dirty", ["b.py"])


@pytest.mark.parametrize(
    ("base", "conflicts"),
    [({"a__py": "one = 'base'\n"}, ["a.py"]), ({"a__py": None}, ["a.py"])],
    ids=["content", "deleted on base"],
)
def test_conflicts_are_named_and_nothing_is_touched(
    work: Work, base: dict[str, str | None], conflicts: list[str]
) -> None:
    work.on_base(**base)
    details = work.refused()
    assert (details["reason"], details["conflicts"]) == ("conflict", conflicts)


def test_a_rename_against_a_deletion_is_a_conflict(work: Work) -> None:
    work.on_base(b__py=None)
    work.repo.git("mv", "b.py", "renamed.py")
    work.repo.git("commit", "-qm", "rename")
    assert work.refused()["reason"] == "conflict"


def test_a_criss_cross_history_merges_or_conflicts_cleanly(work: Work) -> None:
    repo = work.repo
    base = work.on_base(b__py="two = 'base'\n")
    repo.git("merge", "-q", "-m", "cross 1", base)
    repo.git("switch", "-q", "main")
    repo.git("merge", "-q", "-m", "cross 2", work.tip)
    repo.write("b.py", "two = 'again'\n")
    repo.commit("again", "b.py")
    repo.git("switch", "-q", TASK)
    repo.write("b.py", "two = 'task'\n")
    repo.commit("other", "b.py")
    assert work.refused()["conflicts"] == ["b.py"]


def test_a_base_that_moves_while_we_merge_is_not_overwritten(work: Work) -> None:
    """The user commits to the base between our merge and our swap: once, and we merge again."""
    repo = work.repo
    once = repo.path.parent / "once"
    repo.hook(
        "commit-msg",
        f"test -e '{once}' && exit 0; touch '{once}'\n"
        "tip=$(git commit-tree -p main -m 'by the user' main^{tree})\n"
        "git update-ref refs/heads/main $tip\n",
    )
    work.merge()
    assert repo.git("log", "--first-parent", "--format=%s", "main").splitlines()[1] == "by the user"
    assert repo.git("rev-parse", "main^2") == work.tip


def test_a_base_that_never_rests_is_told(work: Work) -> None:
    work.repo.hook("commit-msg", "git update-ref refs/heads/main $(git commit-tree -p main -m again main^{tree})\n")
    with pytest.raises(UserActionNeeded) as caught:
        work.merge()
    assert caught.value.details["reason"] == "base_moving"
    assert (work.repo.git("symbolic-ref", "--short", "HEAD"), work.repo.git("rev-parse", "HEAD")) == (TASK, work.tip)


def test_a_base_checked_out_elsewhere_is_left_alone(work: Work, tmp_path: Path) -> None:
    work.repo.git("worktree", "add", "-q", str(tmp_path / "other"), "main")
    details = work.refused()
    assert (details["reason"], details["worktree"]) == ("held_elsewhere", str(tmp_path / "other"))


@pytest.mark.parametrize("busy", ["rebase", "bisect"])
def test_a_base_that_another_worktree_rebases_or_bisects_is_left_alone(work: Work, tmp_path: Path, busy: str) -> None:
    """Git would not switch to it afterwards, and the user's rebase could not end."""
    work.on_base(c__txt="three\n")
    other = tmp_path / "other"
    work.repo.git("worktree", "add", "-q", str(other), "main")
    if busy == "rebase":
        work.repo.git("-C", str(other), "-c", "sequence.editor=echo break >", "rebase", "-q", "-i", "main~1")
    else:
        work.repo.git("-C", str(other), "bisect", "start", "main", "main~1")
    work.repo.git("-C", str(other), "checkout", "-q", "--detach")
    base = work.repo.git("rev-parse", "main")
    details = work.refused()
    assert (details["reason"], details["worktree"]) == ("held_elsewhere", str(other))
    assert work.repo.git("rev-parse", "main") == base


def test_a_cherry_pick_of_several_commits_is_seen_between_two_of_them(work: Work) -> None:
    work.repo.write(".git/sequencer/todo", "pick 1234567 another\n")
    assert work.refused()["reason"] == "in_progress"


def test_a_bisect_that_took_head_away_is_named(work: Work) -> None:
    work.repo.git("bisect", "start")
    work.repo.git("checkout", "-q", "--detach")
    with pytest.raises(UserActionNeeded) as caught:
        work.merge()
    assert "git bisect reset" in str(caught.value.details["output"])


def test_a_base_that_is_gone_is_told(work: Work) -> None:
    work.repo.git("branch", "-q", "-m", "main", "trunk")
    assert work.refused()["reason"] == "base_missing"


def test_a_head_elsewhere_is_told_how_to_come_back(work: Work) -> None:
    work.repo.git("switch", "-q", "main")
    details = work.refused()
    assert f"git switch {TASK}" in str(details["output"])


@pytest.mark.parametrize("finish", ["merge", "branch"])
def test_an_unmoved_branch_is_only_removed(repo: Repo, finish: str) -> None:
    manager = BranchManager(repo.path, TreeJudge(repo.path), finish=finish)
    branch = manager.create(SESSION, (), lambda _: None, None)
    result = manager.merge(branch, SESSION, "", [], lambda _: None, None)
    head = repo.git("symbolic-ref", "HEAD"), repo.git("rev-parse", "HEAD")
    assert (result.oid, result.pushed_hint, *head) == ("", "", "refs/heads/main", branch.base_oid)
    assert repo.git("branch", "--list", "llm*") == ""


def test_a_dirty_submodule_stays_as_it_is(work: Work, tmp_path: Path) -> None:
    other = Repo(tmp_path / "other")
    other.path.mkdir()
    other.git("init", "-q")
    other.write("lib.c", "x\n")
    other.commit("lib")
    work.repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other.path), "lib")
    work.repo.commit("submodule")
    work.repo.write("lib/lib.c", "edited\n")
    assert work.manager().survey().dirty == ("lib",)
    work.merge()
    assert work.repo.read("lib/lib.c") == "edited\n"


def test_the_message_hook_may_refuse_the_merge(work: Work) -> None:
    work.repo.hook("commit-msg", "echo 'no ticket' >&2; exit 1\n")
    assert work.refused()["output"] == "no ticket"


def test_checkout_and_merge_hooks_run_and_their_failure_is_no_failure(work: Work) -> None:
    log = work.repo.path.parent / "log"
    for hook in ("post-checkout", "post-merge"):
        work.repo.hook(hook, f"echo {hook} >> '{log}'; exit 1\n")
    assert work.merge().oid
    assert log.read_text().split() == ["post-checkout", "post-merge"]


def test_merge_drivers_of_the_user_work(work: Work) -> None:
    repo = work.repo
    repo.git("config", "merge.ours.driver", "true")
    repo.write(".git/info/attributes", "a.py merge=ours\n")
    work.on_base(a__py="one = 'base'\n")
    work.merge()
    assert repo.read("a.py") == "one = 'base'\n"


def test_a_held_index_is_told_before_the_base_moves(work: Work) -> None:
    lock = work.repo.path / ".git/index.lock"
    lock.touch()
    details = work.refused()
    assert (details["reason"], lock.exists()) == ("index_locked", True)
    assert details["output"] == f"another git process has held {lock} for 0.0 s"


def test_a_switch_that_fails_is_finished_by_the_next_attempt(work: Work) -> None:
    """Something of the user's appears between the move of the base and the switch."""
    work.on_base(late__txt="from base\n")
    repo = work.repo
    repo.write(".git/info/exclude", "late.txt\n")
    repo.hook(
        "reference-transaction",
        'test "$1" = committed && test ! -e stop && { echo mine > late.txt; : > stop; }\nexit 0\n',
    )
    with pytest.raises(UserActionNeeded) as caught:
        work.merge()
    assert (caught.value.details["reason"], caught.value.details["files"]) == ("in_the_way", ["late.txt"])
    assert repo.read("late.txt") == "mine\n"
    assert repo.git("symbolic-ref", "--short", "HEAD") == TASK
    (repo.path / "late.txt").unlink()
    result = work.merge(work.intents[-1])
    assert repo.git("rev-parse", "main", "HEAD").split() == [result.oid, result.oid]
    assert repo.git("log", "--merges", "--format=%s", "main").count("Merge branch") == 1
    assert repo.read("late.txt") == "from base\n"


def test_what_nobody_reviewed_is_not_merged(work: Work) -> None:
    work.repo.write("sneaky.py", "x\n")
    work.repo.commit("behind our back", "sneaky.py")
    with pytest.raises(Rejected) as caught:
        work.merge(expected=work.tip)
    assert caught.value.key == "failures.MERGE.head_moved"


def test_what_was_judged_is_merged_whatever_the_branch_points_to_a_moment_later(work: Work) -> None:
    work.on_base(a__py="one = 'base'\n")
    work.repo.fails("merge", "-q", "main")
    work.repo.write("a.py", "one = 'both'\n")
    judged = work.repo.commit("merged by hand", "a.py")
    by_hand = work.manager().hand_merges(work.branch, work.tip, None)
    assert by_hand.commits == (judged,)
    work.repo.write("a.py", "one = 'evil'\n")
    work.repo.git("commit", "-q", "-a", "--amend", "-m", "merged by hand")
    work.manager().merge(work.branch, SESSION, work.tip, [], lambda _: None, None, by_hand)
    assert work.repo.git("show", "main:a.py") == "one = 'both'"


def test_a_base_merged_by_hand_is_accepted_and_named(work: Work) -> None:
    work.on_base(a__py="one = 'base'\n")
    assert work.refused(expected=work.tip)["reason"] == "conflict"
    work.repo.fails("merge", "-q", "main")
    work.repo.write("a.py", "one = 'both'\n")
    by_hand = work.repo.commit("merged by hand", "a.py")
    work.merge(expected=work.tip)
    assert work.repo.read("a.py") == "one = 'both'\n"
    assert work.repo.git("log", "-1", "--format=%(trailers:key=Code-Intel-Merged-By-Hand,valueonly)").strip() == by_hand


@pytest.mark.parametrize("status", [0, 1])
def test_what_a_merge_driver_made_of_a_merge_by_hand_is_named_as_unreviewed(work: Work, status: int) -> None:
    """Found by an opponent: the merge was held against one that the same driver made, conflicts of its invention left out."""
    work.on_base(b__py="two = 'base'\n", c__py="x = 1\n")
    work.repo.git("config", "merge.evil.driver", f"sh -c 'echo evil = 666 >%A; exit {status}'")
    work.repo.write(".git/info/attributes", "* merge=evil\n")
    work.repo.write("b.py", "two = 'ours'\n")
    work.repo.git("commit", "-q", "-a", "--amend", "--no-edit")
    tip = work.repo.git("rev-parse", "HEAD")
    (work.repo.git if status == 0 else work.repo.fails)("merge", "-q", "--no-edit", "main")
    if status:
        work.repo.git("commit", "-q", "-a", "-m", "merged by hand")
    work.repo.write("a.py", "unseen = 1\n")
    work.repo.git("commit", "-q", "-a", "--amend", "-m", "merged by hand")
    by_hand = work.manager().hand_merges(work.branch, tip, None)
    assert by_hand.unreviewed == ("a.py",)
    assert work.repo.read("b.py") == "evil = 666\n"


def test_a_base_that_moves_again_may_be_merged_by_hand_again(work: Work) -> None:
    made = []
    for turn in ("first", "second"):
        work.on_base(a__py=f"one = 'base, {turn}'\n")
        assert work.refused(expected=work.tip)["reason"] == "conflict"
        work.repo.fails("merge", "-q", "main")
        work.repo.write("a.py", f"one = 'both, {turn}'\n")
        made.append(work.repo.commit("merged by hand", "a.py"))
    work.merge(expected=work.tip)
    assert work.repo.read("a.py") == "one = 'both, second'\n"
    named = work.repo.git("log", "-1", "--format=%(trailers:key=Code-Intel-Merged-By-Hand,valueonly)").split()
    assert named == made


def test_between_merges_by_hand_nothing_else_is_accepted(work: Work) -> None:
    for turn in ("first", "second"):
        work.on_base(a__py=f"one = 'base, {turn}'\n")
        work.repo.fails("merge", "-q", "main")
        work.repo.write("a.py", f"one = 'both, {turn}'\n")
        work.repo.commit("merged by hand", "a.py")
        if turn == "first":
            work.repo.write("sneaky.py", "x\n")
            work.repo.commit("behind our back", "sneaky.py")
    with pytest.raises(Rejected) as caught:
        work.merge(expected=work.tip)
    assert caught.value.key == "failures.MERGE.head_moved"


@pytest.mark.parametrize("name", ["feature/x", "-x", "@", "HEAD", "ä"])
def test_bases_of_any_name_work_or_are_refused(repo: Repo, name: str) -> None:
    repo.git("symbolic-ref", "HEAD", f"refs/heads/{name}")
    repo.git("update-ref", "refs/heads/main-2", "main") if name == "a b" else repo.git(
        "update-ref", f"refs/heads/{name}", "main"
    )
    manager = BranchManager(repo.path, TreeJudge(repo.path))
    if name in {"-x", "HEAD", "@"}:
        with pytest.raises(UserActionNeeded):
            manager.create(SESSION, (), lambda _: None, None)
        return
    branch = manager.create(SESSION, (), lambda _: None, None)
    repo.write("a.py", "one = 2\n")
    repo.commit("x", "a.py")
    assert manager.merge(branch, SESSION, "", [], lambda _: None, None).to_branch == name
    assert repo.git("symbolic-ref", "HEAD") == f"refs/heads/{name}"


def test_a_tag_of_the_same_name_as_the_base_is_no_trap(work: Work) -> None:
    work.repo.git("tag", "main", "main~0")
    work.on_base(b__py="moved\n")
    work.merge()
    assert work.repo.git("symbolic-ref", "HEAD") == "refs/heads/main"
    assert work.repo.git("status", "--porcelain") == ""


def test_keeping_the_branch_names_the_remote_of_the_base(work: Work) -> None:
    repo = work.repo
    repo.git("remote", "add", "upstream", "https://example.invalid/x.git")
    repo.git("config", "branch.main.remote", "upstream")
    repo.write(".git/info/exclude", ".env\n")
    result = work.merge(finish="branch")
    assert result.pushed_hint.splitlines()[0] == f"git push --set-upstream upstream {TASK}"
    again = work.merge(finish="branch")
    assert again == result
    assert work.manager().cleanup_stale().branches == (), "a kept branch is not stale"


def test_a_held_ref_is_a_typed_error_and_nothing_is_half_done(work: Work) -> None:
    refs = work.repo.path / ".git/refs/heads"
    work.repo.git("pack-refs", "--all")
    (refs / "main.lock").touch()
    with pytest.raises(UserActionNeeded) as caught:
        work.merge()
    assert "main.lock" in str(caught.value.details["output"])
    (refs / "main.lock").unlink()
    assert work.merge().oid


def test_a_missing_identity_is_told_before_anything_moves(work: Work) -> None:
    (work.repo.path.parent / "home/.gitconfig").write_text("[user]\n\tuseConfigOnly = true\n")
    assert work.refused()["reason"] == "identity_missing"


def test_histories_without_a_common_commit_are_told(work: Work) -> None:
    repo = work.repo
    tree = repo.git("rev-parse", "main^{tree}")
    repo.git("update-ref", "refs/heads/main", repo.git("commit-tree", "-m", "rewritten", tree))
    details = work.refused()
    assert details["reason"] == "merge_impossible"
    assert details["output"] == "fatal: refusing to merge unrelated histories"
    repo.write(".git/shallow", repo.git("rev-parse", "main") + "\n")
    assert "git fetch --unshallow" in str(work.refused()["output"])


def test_commits_that_the_base_has_lost_since_are_named_when_the_merge_brings_them_back(repo: Repo) -> None:
    first = repo.git("rev-parse", "main")
    repo.write("c.txt", "three\n")
    lost = repo.commit("a commit that goes", "c.txt")
    work = Work(repo)
    repo.git("update-ref", "refs/heads/main", first)
    done = work.merge()
    assert done.brought_back == (lost,)
    assert f"Code-Intel-Brought-Back: {lost[:12]}" in repo.git("log", "-1", "--format=%B", "main")
    assert work.merge(work.intents[-1]).brought_back == (lost,), "told again after a kill"


def test_a_task_branch_that_is_gone_is_told(work: Work) -> None:
    work.repo.git("switch", "-q", "main")
    work.repo.git("branch", "-q", "-D", TASK)
    assert work.refused()["reason"] == "branch_missing"


def test_a_checkout_that_fails_leaves_head_on_the_task_branch(work: Work) -> None:
    repo = work.repo
    work.on_base(c__txt="three\n")
    repo.write(".git/info/attributes", "c.txt filter=broken\n")
    repo.git("config", "filter.broken.smudge", "false")
    repo.git("config", "filter.broken.required", "true")
    with pytest.raises(Rejected) as caught:
        work.merge()
    assert (caught.value.key, caught.value.params["filter"]) == ("tool_errors.git.filter_failed", "broken")
    assert (repo.git("symbolic-ref", "--short", "HEAD"), repo.read("a.py")) == (TASK, "one = 'task'\n")
    repo.git("config", "filter.broken.smudge", "cat")
    assert work.merge(work.intents[-1]).oid == repo.git("rev-parse", "HEAD")


def test_what_keeps_a_session_from_being_saved_is_said_in_words(work: Work) -> None:
    class Full(list[GitIntent]):
        def append(self, _: GitIntent) -> None:
            raise Unavailable("tool_errors.generic.checkpoint_not_saved", error="No space left on device")

    work.intents = Full()
    details = work.refused()
    said = "the session could not be saved: No space left on device"
    assert (details["output"], "error" in details) == (said, False)
