"""Git used behind the server's back."""

import os
import shutil
import sys
from collections.abc import Callable

import pytest

from tests.e2e.stage import APP, APP_DONE, Stage, plan, report

EVIL = "def main():\n    return 666\n"


def commit_more(stage: Stage) -> None:
    stage.write("lib.py", "LIMIT = 99\n")
    stage.git("commit", "-qam", "More")


def amend(stage: Stage) -> None:
    stage.write("lib.py", "LIMIT = 99\n")
    stage.git("commit", "-qa", "--amend", "-m", "Amended")


def reset(stage: Stage) -> None:
    stage.git("reset", "-q", "--hard", "main")


def rebase(stage: Stage) -> None:
    name = stage.git("rev-parse", "--abbrev-ref", "HEAD").strip()
    stage.git("switch", "-q", "main")
    stage.git("commit", "-q", "--allow-empty", "-m", "Base moved")
    stage.git("switch", "-q", name)
    stage.git("rebase", "-q", "main")


def replant(stage: Stage) -> None:
    tree = stage.git("rev-parse", "HEAD^{tree}").strip()
    oid = stage.git("commit-tree", tree, "-p", "HEAD~1", "-m", "Like yours").strip()
    stage.git("update-ref", "HEAD", oid)


@pytest.mark.parametrize("move", [commit_more, amend, reset, rebase, replant])
def test_the_task_branch_is_moved_before_the_merge(stage: Stage, move: Callable[[Stage], None]) -> None:
    """Stopped by: the tip of the task branch must be the commit the session made; anything else is refused by both ids."""
    stage.committed()
    move(stage)
    before = stage.git("rev-parse", "main")
    stage.refused("somebody has committed to it", summary="Merged.")
    assert stage.git("rev-parse", "main") == before


@pytest.mark.parametrize("move", [commit_more, amend])
def test_the_task_branch_is_moved_before_the_commit(stage: Stage, move: Callable[[Stage], None]) -> None:
    """Stopped by: HEAD must be where the session left it; a commit of another hand is named, not built upon."""
    stage.verified("app.py", "lib.py")
    move(stage)
    stage.refused("head_moved", **stage.commit())


@pytest.mark.parametrize("more", ["", "# and the agent's, too early\n"])
def test_the_users_uncommitted_work_is_explained_away(stage: Stage, more: str) -> None:
    """Stopped by: a branch is made over changes of the session only; what was uncommitted before it is the user's."""
    stage.write("lib.py", "LIMIT = 12  # not ready yet\n")
    stage.ready("app.py", "lib.py")
    stage.cheat()
    stage.write("lib.py", stage.read("lib.py") + more)
    stage.refused("tracked files have changes that are not committed: lib.py", **plan())
    assert stage.git("branch", "--show-current").strip() == "main"
    assert stage.read("lib.py") == "LIMIT = 12  # not ready yet\n" + more


@pytest.mark.parametrize("mark", ["--skip-worktree", "--assume-unchanged"])
def test_what_the_user_hides_from_git_is_committed_with_the_work(stage: Stage, mark: str) -> None:
    """Seen by: what lay in a committed file uncommitted before the session is named by response and trailer."""
    stage.write("lib.py", stage.read("lib.py") + "\n\nSECRET = 'local'\n")
    stage.git("update-index", mark, "lib.py")
    stage.planned("app.py", "lib.py")
    stage.edit()
    stage.cheat()
    stage.edit("lib.py", stage.read("lib.py").replace("10", "11"))
    stage.finished()
    answer = stage.accepted(**stage.commit())
    assert "which the review did not show: lib.py" in answer["warning"]
    assert "Code-Intel-Unreviewed: lib.py" in stage.git("log", "-1", "--format=%B")
    stage.notice()


def test_the_branch_is_switched_before_the_commit(stage: Stage) -> None:
    """Stopped by: a commit is made on the task branch only."""
    stage.verified()
    stage.git("switch", "-q", "-c", "elsewhere")
    stage.refused("head_moved", **stage.commit())
    assert stage.git("log", "-1", "--format=%s").strip() == "Initial commit"


def test_the_task_branch_is_deleted_before_the_commit(stage: Stage) -> None:
    """Stopped by: a commit is made on the task branch only; it is said how the branch comes back, and then it is made."""
    stage.verified()
    branch = stage.git("branch", "--show-current").strip()
    tip = stage.git("rev-parse", "HEAD").strip()
    stage.git("symbolic-ref", "HEAD", "refs/heads/main")
    stage.git("branch", "-q", "-D", branch)
    answer = stage.refused(f"The task branch {branch} is gone", **stage.commit())
    assert f"git switch -c {branch} {tip[:12]}" in answer["remedy"]
    stage.git("switch", "-q", "-c", branch, tip[:12])
    assert stage.accepted(**stage.commit())["phase"] == "MERGE"


def test_head_is_detached_before_the_commit(stage: Stage) -> None:
    """Stopped by: a commit is made on the task branch only."""
    stage.verified()
    stage.git("checkout", "-q", "--detach")
    stage.refused("head_moved", **stage.commit())


def test_the_work_is_committed_by_hand_to_avoid_the_review(stage: Stage) -> None:
    """Stopped by: changes are measured from the session's start, not from HEAD, and the moved tip is refused."""
    stage.planned()
    stage.edit()
    stage.write("lib.py", "LIMIT = 99\n")
    stage.git("commit", "-qam", "All done by hand")
    stage.refused("nobody explored: lib.py", **report())


def base_moves(stage: Stage, path: str, text: str) -> None:
    """Somebody commits to the base; HEAD is on the task branch before and after."""
    name = stage.git("rev-parse", "--abbrev-ref", "HEAD").strip()
    stage.git("switch", "-q", "main")
    stage.write(path, text)
    stage.git("commit", "-qam", "Base moved")
    stage.git("switch", "-q", name)


def test_a_merge_by_hand_that_holds_more(stage: Stage) -> None:
    """Seen by: response and trailer of the merge name what a hand-made merge changes beyond the files in conflict."""
    stage.committed()
    base_moves(stage, "README.md", "# App\n\nMoved on.\n")
    stage.git("merge", "-q", "--no-commit", "--no-ff", "main")
    stage.write("lib.py", "LIMIT = 99\n")
    stage.git("commit", "-qam", "Merge main")
    answer = stage.accepted(summary="Merged.")
    assert "change more than the conflicts: lib.py" in answer["warning"]
    assert "Code-Intel-Unreviewed: lib.py" in stage.git("log", "-1", "--format=%B", "main")
    stage.notice()


def test_a_merge_by_hand_that_drops_what_the_base_did(stage: Stage) -> None:
    """Seen by: response and trailer of the merge name what a hand-made merge changes beyond the files in conflict."""
    stage.committed()
    base_moves(stage, "README.md", "# App\n\nMoved on.\n")
    stage.git("merge", "-q", "-s", "ours", "-m", "Merge main", "main")
    assert "README.md" in stage.accepted(summary="Merged.")["warning"]
    assert "Code-Intel-Unreviewed: README.md" in stage.git("log", "-1", "--format=%B", "main")
    stage.notice()


def test_a_merge_by_hand_that_merges_nothing(stage: Stage) -> None:
    """Stopped by: a merge of a base that the branch holds already brings nothing in; it is a commit of another hand."""
    stage.committed()
    stage.write("backdoor.py", "x = 1\n")
    stage.git("add", "backdoor.py")
    tree = stage.git("write-tree").strip()
    oid = stage.git("commit-tree", tree, "-p", "HEAD", "-p", "main", "-m", "Merge main").strip()
    stage.git("reset", "-q", "--soft", oid)
    stage.cheat()
    stage.refused("somebody has committed to it", summary="Merged.")


def test_a_merge_by_hand_that_breaks_what_was_proven(stage: Stage) -> None:
    """Stopped by: what was merged by hand is proven anew, as it is in the merge and not as it lies on disk."""
    stage.user_wants([sys.executable, "-B", "-c", "import app, sys; sys.exit(app.main() != 2)"])
    stage.committed()
    base_moves(stage, "app.py", APP_DONE.replace("return 2", "return 3"))
    stage.git("merge", "-q", "--no-ff", "-X", "theirs", "-m", "Merge main", "main")
    stage.refused("merged by hand", summary="Merged.")
    stage.write("app.py", APP_DONE)
    stage.refused("not part of the merge made by hand: app.py", summary="Merged.")
    stage.git("commit", "-q", "-a", "--amend", "--no-edit")
    assert stage.accepted(summary="Merged.")["phase"] == "SESSION_COMPLETE"
    assert stage.git("show", "main:app.py") == APP_DONE


def test_a_hook_that_rewrites_what_was_reviewed(stage: Stage) -> None:
    """Seen by: the commit is held against what was reviewed, not against what the hook left on disk."""
    stage.verified()
    hook = stage.write(".git/hooks/pre-commit", "#!/bin/sh\nsed -i s/2/666/ app.py && git add app.py\n")
    hook.chmod(0o755)
    answer = stage.accepted(**stage.commit())
    assert "does not hold what was reviewed: app.py" in answer["warning"]
    hook.unlink()
    stage.accepted(summary="Merged.")
    assert "Code-Intel-Altered: 1 file(s)" in stage.git("log", "-1", "--format=%B", "main")
    stage.notice()


def hooked(stage: Stage, script: str) -> None:
    """Install a pre-commit hook."""
    stage.write(".git/hooks/pre-commit", f"#!/bin/sh\n{script}\n").chmod(0o755)


def test_a_hook_that_commits_what_was_to_be_left(stage: Stage) -> None:
    """Seen by: every path of the commit is held against the review; what was committed is not said to be left."""
    stage.verified()
    stage.write("lib.py", "LIMIT = 99\n")
    stage.write("README.md", "# Mine\n")
    hooked(stage, "git add lib.py")
    stage.cheat()
    left = [{"path": path, "decision": "leave", "reason": "The user's own."} for path in ("lib.py", "README.md")]
    answer = stage.accepted(**stage.commit(*left))
    assert "does not hold what was reviewed: lib.py." in answer["warning"]
    assert "README.md" in answer["warning"]
    stage.notice()
    stage.accepted(summary="Merged.")
    for commit in ("main", "main^2"):
        said = stage.git("log", "-1", "--format=%(trailers)", commit)
        assert "Code-Intel-Left: README.md\n" in said
        assert "lib.py" not in said
    assert "Code-Intel-Altered: 1 file(s)" in stage.git("log", "-1", "--format=%B", "main")


def test_a_hook_that_commits_all_that_was_to_be_left(stage: Stage) -> None:
    """Seen by: every path of the commit is held against the review; what was committed is not said to be left."""
    stage.verified()
    stage.write("lib.py", "LIMIT = 99\n")
    hooked(stage, "git add -A")
    stage.cheat()
    answer = stage.accepted(**stage.commit({"path": "lib.py", "decision": "leave", "reason": "The user's own."}))
    assert "does not hold what was reviewed: lib.py." in answer["warning"]
    assert "Left uncommitted" not in answer["warning"]
    stage.notice()
    stage.accepted(summary="Merged.")
    assert "Code-Intel-Left" not in stage.git("log", "-2", "--format=%B", "main", "main^2")


def test_a_hook_that_commits_a_file_nobody_reviewed(stage: Stage) -> None:
    """Seen by: every path of the commit is held against the review, also one that is only in the index."""
    stage.verified()
    hooked(stage, "echo 'x = 1' >pkg/evil.py && git add pkg/evil.py && rm pkg/evil.py")
    stage.cheat()
    assert "does not hold what was reviewed: pkg/evil.py." in stage.accepted(**stage.commit())["warning"]
    stage.notice()


def test_a_hook_that_keeps_a_reviewed_file_out_of_the_commit(stage: Stage) -> None:
    """Seen by: a reviewed path that the commit lacks differs as well."""
    stage.verified()
    hooked(stage, "git rm -q --cached app.py")
    stage.cheat()
    assert "does not hold what was reviewed: app.py." in stage.accepted(**stage.commit())["warning"]
    stage.notice()


def test_an_object_that_stands_in_for_the_commit_that_was_reviewed(stage: Stage) -> None:
    """Stopped by: git is told to look at no replacements; what was committed is what is merged."""
    stage.committed()
    tip, tree = stage.git("rev-parse", "HEAD", "HEAD^{tree}").split()
    stage.write("lib.py", "LIMIT = 99\n")
    stage.git("add", "lib.py")
    evil = stage.git("write-tree").strip()
    stage.git("checkout", "-q", tip, "--", "lib.py")
    base_moves(stage, "README.md", "# App\n\nMoved on.\n")
    stage.git("replace", tree, evil)
    stage.cheat()
    stage.accepted(summary="Merged.")
    assert "LIMIT = 10" in stage.git("--no-replace-objects", "show", "main:lib.py")
    assert stage.git("--no-replace-objects", "show", "main:app.py") == APP_DONE


def half_of_it(stage: Stage) -> tuple[str, str, str]:
    """Two functions are changed, reviewed and committed: that commit, the base, and a commit that has only one of the changes."""
    both = APP_DONE.replace("value + 1", "value + 2")
    stage.planned()
    stage.edit(text=both)
    stage.finished()
    stage.accepted(**stage.commit())
    stage.write("app.py", APP_DONE)
    stage.git("add", "app.py")
    half = stage.git("commit-tree", stage.git("write-tree").strip(), "-m", "Half").strip()
    stage.git("checkout", "-q", "HEAD", "--", "app.py")
    tip, base = stage.git("rev-parse", "HEAD", "main").split()
    return tip, base, half


def merged_whole(stage: Stage) -> None:
    """The merge holds both changes, whatever common ancestor git was to see."""
    stage.cheat()
    stage.accepted(summary="Merged.")
    assert stage.git("show", "main:app.py") == APP_DONE.replace("value + 1", "value + 2")
    stage.notice()


@pytest.mark.parametrize("moved", [False, True], ids=["base still", "base moved"])
def test_a_history_grafted_so_that_half_of_what_was_reviewed_is_merged(stage: Stage, moved: bool) -> None:
    """Stopped by: no grafts are read; parents are those that the commits name."""
    tip, base, half = half_of_it(stage)
    if moved:
        base_moves(stage, "README.md", "# App\n\nMoved on.\n")
    (stage.root / ".git/info/grafts").write_text(f"{tip} {half}\n{base} {half}\n")
    merged_whole(stage)


def test_a_merge_driver_that_makes_something_else(stage: Stage) -> None:
    """Seen by: drivers are the user's and run; a trailer of the merge names them where both sides had changed."""
    stage.committed()
    base_moves(stage, "app.py", APP.replace("value - 1", "value - 2"))
    driver = stage.write(".git/driver", "#!/bin/sh\necho 'def main(): return 666' >\"$1\"\n")
    driver.chmod(0o755)
    stage.git("config", "merge.evil.driver", f"{driver} %A")
    (stage.root / ".git/info/attributes").write_text("app.py merge=evil\n")
    stage.cheat()
    stage.accepted(summary="Merged.")
    assert "666" in stage.read("app.py")
    assert "Code-Intel-Merge-Drivers: evil" in stage.git("log", "-1", "--format=%B", "main")
    stage.notice()


@pytest.mark.parametrize("how", ["attribute", "default"])
def test_a_conflict_that_is_told_to_be_none(stage: Stage, how: str) -> None:
    """Seen by: where git was told to keep the lines of both sides, a trailer of the merge says so."""
    stage.committed()
    base_moves(stage, "app.py", APP.replace("return 1", "return 666"))
    if how == "attribute":
        (stage.root / ".git/info/attributes").write_text("app.py merge=union\n")
    else:
        stage.git("config", "merge.default", "union")
    stage.cheat()
    stage.accepted(summary="Merged.")
    assert "return 666" in stage.read("app.py")
    assert "return 2" in stage.read("app.py")
    assert "Code-Intel-Merge-Drivers: union" in stage.git("log", "-1", "--format=%B", "main")
    stage.notice()


def test_a_hook_that_takes_the_trailers_out(stage: Stage) -> None:
    """Stopped by: what a hook takes out of the message's trailers is put back."""
    stage.verified(no_quality=True)
    for name in ("commit-msg", "prepare-commit-msg"):
        hook = stage.write(f".git/hooks/{name}", '#!/bin/sh\necho "Nothing to see" >"$1"\n')
        hook.chmod(0o755)
    stage.accepted(**stage.commit())
    stage.accepted(summary="Merged.")
    for commit in ("main", "main^2"):
        said = stage.git("log", "-1", "--format=%(trailers)", commit)
        assert "Code-Intel-Session: " in said
        assert "Code-Intel-Skipped: " in said
    stage.notice()


def test_a_hook_that_puts_the_trailers_where_git_takes_them_for_text(stage: Stage) -> None:
    """Stopped by: trailers that are not at the end of the message, each on a line of its own, are put there."""
    stage.verified(no_quality=True)
    script = '#!/bin/sh\n{ sed "s/^Code-Intel/  &/" "$1"; echo; echo "All of it was reviewed."; } >"$1.new"; mv "$1.new" "$1"\n'
    stage.write(".git/hooks/commit-msg", script).chmod(0o755)
    stage.cheat()
    stage.accepted(**stage.commit())
    stage.accepted(summary="Merged.")
    for commit in ("main", "main^2"):
        assert stage.git("log", "-1", "--format=%B", commit).count("Code-Intel-Skipped: ") == 1
        said = stage.git("log", "-1", "--format=%(trailers)", commit)
        assert "Code-Intel-Session: " in said
        assert "Code-Intel-Skipped: " in said
    stage.notice()


def test_a_merge_of_another_branch_by_hand(stage: Stage) -> None:
    """Stopped by: only a merge of the base is accepted on top of the session's commit."""
    stage.committed()
    name = stage.git("rev-parse", "--abbrev-ref", "HEAD").strip()
    stage.git("switch", "-q", "-c", "evil", "main")
    stage.write("lib.py", "LIMIT = 99\n")
    stage.git("commit", "-qam", "Evil")
    stage.git("switch", "-q", name)
    stage.git("merge", "-q", "--no-ff", "-m", "Merge main", "evil")
    stage.refused("somebody has committed to it", summary="Merged.")


@pytest.mark.parametrize("mark", ["--assume-unchanged", "--skip-worktree"])
def test_an_edit_hidden_by_a_mark_of_the_index(stage: Stage, mark: str) -> None:
    """Stopped by: the tree is hashed through a private index that knows no marks."""
    stage.planned()
    stage.git("update-index", mark, "lib.py")
    stage.edit()
    stage.write("lib.py", "LIMIT = 99\n")
    stage.refused("nobody explored: lib.py", **report())


def test_an_edit_hidden_by_settings_of_the_stat_cache(stage: Stage) -> None:
    """Stopped by: the private index trusts the change time, whatever the repository's configuration says."""

    stage.planned()
    stage.git("config", "core.trustctime", "false")
    stage.git("config", "core.checkStat", "minimal")
    stage.edit()
    stage.agent.submit(**report(evidence="app.py:6"))
    found = (stage.root / "lib.py").stat()
    stage.write("lib.py", stage.read("lib.py").replace("10", "99"))
    os.utime(stage.root / "lib.py", ns=(found.st_atime_ns, found.st_mtime_ns))
    stage.refused("nobody explored: lib.py", **report())


@pytest.mark.parametrize("where", [".git/info/exclude", "excludesfile"])
def test_an_edit_of_a_tracked_file_hidden_by_ignoring_it(stage: Stage, where: str) -> None:
    """Stopped by: what git tracks is in the tree hash, ignored or not."""
    stage.planned()
    if where == "excludesfile":
        (stage.root.parent / "ignore").write_text("lib.py\n")
        stage.git("config", "core.excludesFile", str(stage.root.parent / "ignore"))
    else:
        with (stage.root / where).open("a") as file:
            file.write("lib.py\n")
    stage.edit()
    stage.write("lib.py", "LIMIT = 99\n")
    stage.refused("nobody explored: lib.py", **report())


def test_an_edit_hidden_by_untracking_and_ignoring_the_file(stage: Stage) -> None:
    """Stopped by: a file that leaves the tree is a change as well, and nobody explored it."""
    stage.planned()
    stage.git("rm", "-q", "--cached", "lib.py")
    with (stage.root / ".git/info/exclude").open("a") as file:
        file.write("lib.py\n")
    stage.edit()
    stage.write("lib.py", "LIMIT = 99\n")
    stage.refused("nobody explored: lib.py", **report())


@pytest.mark.parametrize("where", [".gitignore", ".git/info/exclude"])
def test_a_new_file_hidden_by_ignoring_it(stage: Stage, where: str) -> None:
    """Stopped by: the project's .gitignore is a change nobody explored, and lines that git alone sees hide nothing."""
    stage.planned()
    with (stage.root / where).open("a") as file:
        file.write("pkg/evil.py\n")
    stage.edit()
    stage.write("pkg/evil.py", "x = 1\n")
    stage.refused(f"nobody explored: {'.gitignore' if where == '.gitignore' else 'pkg/evil.py'}", **report())


def test_other_content_is_staged_than_lies_on_disk(stage: Stage) -> None:
    """Stopped by: what is committed is the reviewed file on disk; other staged content is put aside recoverably."""
    stage.verified()
    stage.write("app.py", EVIL)
    stage.git("add", "app.py")
    stage.write("app.py", APP_DONE)
    stage.accepted(**stage.commit())
    assert stage.git("show", "HEAD:app.py") == APP_DONE
    stage.notice()


def test_an_unreviewed_file_is_staged(stage: Stage) -> None:
    """Stopped by: only reviewed paths are committed, whatever the user's index holds."""
    stage.verified()
    stage.write("lib.py", "LIMIT = 99\n")
    stage.git("add", "lib.py")
    payload = stage.commit({"path": "lib.py", "decision": "leave", "reason": "Not mine."})
    stage.accepted(**payload)
    assert "99" not in stage.git("show", "HEAD:lib.py")
    stage.notice()


def test_a_clean_filter_that_commits_something_else(stage: Stage) -> None:
    """Stopped by: the commit is compared with the disk; what a filter made of it is named, and stands in a trailer."""
    stage.verified()
    stage.git("config", "filter.evil.clean", "sed s/2/666/")
    (stage.root / ".git/info/attributes").write_text("app.py filter=evil\n")
    stage.cheat()
    answer = stage.accepted(**stage.commit())
    assert "does not hold what was reviewed: app.py" in answer["warning"]
    stage.notice()


def test_a_hook_that_commits_something_else(stage: Stage) -> None:
    """Stopped by: hooks are the user's and run; what one made of the reviewed content is named in the answer."""
    stage.verified()
    hook = stage.root / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(
        "#!/bin/sh\noid=$(sed s/2/666/ app.py | git hash-object -w --stdin)\ngit update-index --cacheinfo 100644,$oid,app.py\n"
    )
    hook.chmod(0o755)
    stage.cheat()
    answer = stage.accepted(**stage.commit())
    assert "does not hold what was reviewed: app.py" in answer["warning"]
    stage.notice()
    final = stage.accepted(summary="Merged.")
    assert final["phase"] == "SESSION_COMPLETE"
    assert "Code-Intel-Altered" in stage.git("log", "-1", "--format=%B", "main")


def test_a_tag_with_the_name_of_the_task_branch(stage: Stage) -> None:
    """Stopped by: refs are named in full; a tag of the same name is no branch."""
    stage.committed()
    name = stage.git("rev-parse", "--abbrev-ref", "HEAD").strip()
    tip = stage.git("rev-parse", "HEAD").strip()
    stage.git("tag", name, "main")
    stage.git("tag", "main", "HEAD~1")
    stage.accepted(summary="Merged.")
    assert tip in stage.git("log", "-1", "--format=%P", "refs/heads/main").split()
    stage.notice()


def test_a_replacement_that_shows_other_content(stage: Stage) -> None:
    """Stopped by: the tree is compared in a git directory of our own that knows no replacements."""
    stage.verified("app.py")
    fake = stage.git("hash-object", "-w", "README.md").strip()
    real = stage.git("hash-object", "-w", "app.py").strip()
    stage.git("replace", real, fake)
    row = stage.call("review_changes")["results"][0]
    assert "+    return 2" in row["diff"]
    stage.notice()


def test_a_repository_within_the_repository(stage: Stage) -> None:
    """Stopped by: a nested repository is one entry of the tree, and a new one where nobody explored."""
    stage.planned()
    stage.edit()
    inner = stage.root / "pkg/inner"
    inner.mkdir()
    stage.git("init", "-q", str(inner))
    (inner / "evil.py").write_text("x = 1\n")
    stage.git("-C", str(inner), "add", "-A")
    stage.git("-C", str(inner), "commit", "-qm", "Evil")
    stage.refused("pkg/inner", **report())


def test_git_itself_is_moved_out_of_the_way(stage: Stage) -> None:
    """Stopped by: a tree that cannot be judged is not taken for unchanged; back in place the session goes on."""
    stage.planned()
    stage.edit()
    stage.write("lib.py", "LIMIT = 99\n")
    (stage.root / ".git").rename(stage.root / "git.away")
    answer = stage.agent.submit(**report())
    shown = answer["success"]
    if (stage.root / ".git").exists():
        shutil.rmtree(stage.root / ".git")
    (stage.root / "git.away").rename(stage.root / ".git")
    assert shown is False
    stage.notice()
    stage.refused("nobody explored: lib.py", **report())


def test_the_base_branch_is_deleted_or_renamed(stage: Stage) -> None:
    """Stopped by: a merge needs the recorded base; a missing one is named and nothing is changed."""
    stage.committed()
    stage.git("branch", "-m", "main", "trunk")
    answer = stage.agent.submit(summary="Merged.")
    stage.git("branch", "-m", "trunk", "main")
    assert "does not exist any more" in str(answer)
    stage.notice()
