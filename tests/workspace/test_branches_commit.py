"""PRE_COMMIT commits what was reviewed and nothing else, with the user's hooks, filters and signature."""

import contextlib
import os
import shlex
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from code_intel_server.errors import Rejected, UserActionNeeded
from code_intel_server.workspace.branches import archive_refs
from code_intel_server.workspace.branches.manager import BranchManager
from code_intel_server.workspace.git import repository as door
from code_intel_server.workspace.tree.tree import TreeJudge
from code_intel_server.workspace.values import CommitRequest, CommitResult, GitIntent, TaskBranch
from tests.workspace.git_repo import Repo

SESSION = "20261121_110000"
FAILED = "failures.PRE_COMMIT.finalize_failed"


class Work:
    """A repository with a task branch checked out."""

    def __init__(self, repo: Repo, root: Path | None = None) -> None:
        self.repo = repo
        self.root = root or repo.path
        self.branch = self.manager().create(SESSION, (), lambda _: None, None)

    def manager(self) -> BranchManager:
        return BranchManager(self.root, TreeJudge(self.root), patience=0.0)

    def commit(self, *keep: str, discard: tuple[str, ...] = (), message: str = "Do it", tip: str = "") -> CommitResult:
        tip = tip or self.repo.git("rev-parse", "HEAD")
        request = CommitRequest(SESSION, self.branch, tip, message, (("Code-Intel-Tasks", "t1"),), keep, discard)
        return self.manager().commit(request, lambda _: None, None)

    def refused(self, *keep: str) -> dict[str, object]:
        before = self.repo.sentinel()
        with pytest.raises(UserActionNeeded) as caught:
            self.commit(*keep)
        assert caught.value.key == FAILED
        assert self.repo.sentinel() == before, "a refusal changes nothing"
        return caught.value.details


@pytest.fixture
def work(repo: Repo) -> Work:
    return Work(repo)


def names(repo: Repo, revision: str = "HEAD") -> set[str]:
    """Status and path of what a commit changed."""
    rows = repo.git("diff-tree", "-r", "-z", "--no-commit-id", "--name-status", "--no-renames", revision).split("\0")
    return {f"{status} {path}" for status, path in zip(rows[::2], rows[1::2], strict=False)}


def test_only_reviewed_paths_are_committed_and_the_rest_stays_as_it_was(work: Work) -> None:
    repo = work.repo
    repo.write("a.py", "one = 2\n")
    repo.write("b.py", "two = 'staged'\n")
    repo.git("add", "b.py")
    repo.write("b.py", "two = 'edited'\n")
    repo.write("staged_new.py", "x\n")
    repo.git("add", "staged_new.py")
    repo.write("loose.py", "loose\n")
    files = repo.files()
    work.commit("a.py")
    assert names(repo) == {"M a.py"}
    assert repo.git("status", "--porcelain").splitlines() == ["MM b.py", "A  staged_new.py", "?? loose.py"]
    assert repo.git("show", ":b.py") == "two = 'staged'"
    assert repo.files() == files


def test_every_kind_of_change_can_be_committed(work: Work) -> None:
    repo = work.repo
    repo.write("gone.py", "x\n")
    repo.write("run.sh", "echo\n")
    repo.write("d/x", "x\n")
    repo.write("f", "f\n")
    repo.commit("more")
    (repo.path / "gone.py").unlink()
    (repo.path / "run.sh").chmod(0o755)
    (repo.path / "a.py").rename(repo.path / 'ä \n"neu".py')
    (repo.path / "link").symlink_to("b.py")
    (repo.path / "b.py").write_text("two\n")
    (repo.path / "d/x").unlink()
    (repo.path / "d").rmdir()
    repo.write("d", "now a file\n")
    (repo.path / "f").unlink()
    repo.write("f/inner", "now a folder\n")
    (repo.path / "e").symlink_to("f")
    repo.write("[*]?.py", "glob characters\n")
    repo.write(":(top)x", "pathspec magic\n")
    keep = [
        change.path
        for change in TreeJudge(repo.path).changes(
            repo.git("rev-parse", "HEAD^{tree}"), TreeJudge(repo.path).snapshot()
        )
    ]
    assert work.commit(*keep, "a.py").oid
    assert names(repo) == {
        "D gone.py", "M run.sh", "D a.py", 'A ä \n"neu".py', "A link", "M b.py", "D d/x", "A d", "D f", "A f/inner", "A e",
        "A [*]?.py", "A :(top)x",
    }  # fmt: skip
    assert repo.git("status", "--porcelain") == ""


def test_a_folder_replaced_by_a_link_is_committed(work: Work) -> None:
    repo = work.repo
    repo.write("d/x", "x\n")
    repo.write("e/x", "x\n")
    repo.commit("folders")
    shutil.rmtree(repo.path / "d")
    (repo.path / "d").symlink_to("e")
    work.commit("d", "d/x")
    assert names(repo) == {"A d", "D d/x"}
    assert repo.git("status", "--porcelain") == ""


def test_a_repository_within_is_not_said_to_be_discarded(work: Work) -> None:
    """No shelf can hold what it holds, so it stays; whoever reviews it puts it back there, or leaves it."""
    repo = work.repo
    (repo.path / "within").mkdir()
    within = Repo(repo.path / "within")
    within.git("init", "-q")
    within.write("x", "x\n")
    within.commit("x")
    with pytest.raises(Rejected) as refused:
        work.commit("a.py", discard=("within",))
    assert (refused.value.key, refused.value.details["files"]) == ("failures.PRE_COMMIT.repository_within", ["within"])
    assert repo.read("within/x") == "x\n"


def test_a_submodule_pointer_is_committed(work: Work, tmp_path: Path) -> None:
    repo = work.repo
    other = Repo(tmp_path / "other")
    other.path.mkdir()
    other.git("init", "-q")
    other.write("lib.c", "x\n")
    other.commit("lib")
    repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other.path), "lib")
    repo.commit("submodule")
    Repo(repo.path / "lib").commit("next")
    work.commit("lib")
    assert names(repo) == {"M lib"}
    assert repo.git("rev-parse", "HEAD:lib") == Repo(repo.path / "lib").git("rev-parse", "HEAD")


def test_filters_and_line_endings_work_as_in_git_add(work: Work) -> None:
    repo = work.repo
    repo.git("config", "filter.upper.clean", "tr a-z A-Z")
    repo.git("config", "filter.upper.smudge", "tr A-Z a-z")
    repo.write(".gitattributes", "*.up filter=upper\n*.txt text eol=crlf\n")
    repo.write("x.up", "shout\n")
    repo.write("w.txt", "one\r\n")
    work.commit(".gitattributes", "x.up", "w.txt")
    assert repo.git("cat-file", "blob", "HEAD:x.up") == "SHOUT"
    assert repo.git("cat-file", "blob", "HEAD:w.txt") == "one"
    assert repo.git("status", "--porcelain") == ""


def test_nothing_to_commit_is_no_commit(work: Work) -> None:
    tip = work.repo.git("rev-parse", "HEAD")
    assert work.commit("a.py") == CommitResult("", tip)
    os.utime(work.repo.path / "a.py", (1, 1))
    assert work.commit("a.py", "never/was.py").oid == ""


def test_an_ignored_file_is_never_committed(work: Work) -> None:
    repo = work.repo
    repo.write(".gitignore", ".env\nb.py\n")
    repo.write(".env", "SECRET=1\n")
    repo.write("b.py", "two = 3\n")
    work.commit(".gitignore", ".env", "b.py")
    assert names(repo) == {"A .gitignore", "M b.py"}, "b.py is tracked, though ignored"
    repo.git("rm", "-q", "--cached", "b.py")
    work.commit("b.py")
    assert names(repo) == {"D b.py"}
    assert repo.read("b.py") == "two = 3\n"


def test_marks_in_the_index_do_not_hide_content(work: Work) -> None:
    repo = work.repo
    repo.git("update-index", "--assume-unchanged", "a.py")
    repo.write("a.py", "one = 2\n")
    work.commit("a.py")
    assert repo.git("show", "HEAD:a.py") == "one = 2"


def test_other_content_staged_for_a_committed_path_is_kept(work: Work) -> None:
    repo = work.repo
    repo.write("a.py", "one = 'staged'\n")
    repo.git("add", "a.py")
    repo.write("a.py", "one = 'final'\n")
    done = work.commit("a.py")
    assert repo.git("status", "--porcelain") == ""
    repo.git("gc", "-q", "--prune=now")
    assert repo.git("show", f"{done.archived[0]}:a.py") == "one = 'staged'"


def test_discarded_files_get_the_bases_version_and_stay_in_the_archive(work: Work) -> None:
    repo = work.repo
    repo.write("a.py", "one = 2\n")
    repo.write("b.py", "two = 'bad'\r\n")
    repo.write("junk/deep/x", "junk\n")
    done = work.commit("a.py", discard=("b.py", "junk/deep/x"))
    assert names(repo) == {"M a.py"}
    assert (repo.read("b.py"), (repo.path / "junk").exists()) == ("two = 2\n", False)
    assert repo.git("cat-file", "-s", f"{done.archived[0]}:b.py") == str(len("two = 'bad'\r\n"))
    assert repo.git("show", f"{done.archived[0]}:junk/deep/x") == "junk"


def test_discarding_what_an_earlier_commit_of_the_session_made_is_committed(work: Work) -> None:
    repo = work.repo
    repo.write("a.py", "one = 'first round'\n")
    repo.write("new.py", "new\n")
    work.commit("a.py", "new.py")
    work.commit(discard=("a.py", "new.py"))
    assert names(repo) == {"M a.py", "D new.py"}
    assert repo.git("diff", "--stat", work.branch.base_oid, "HEAD") == ""
    assert repo.git("status", "--porcelain") == ""


def test_hooks_run_as_in_git_commit(work: Work) -> None:
    repo = work.repo
    log = repo.path.parent / "log"
    repo.hook("pre-commit", f"git diff --cached --name-only >> '{log}'\nprintf 'one = 9\\n' > a.py\ngit add a.py\n")
    repo.hook("prepare-commit-msg", f"echo \"prepare $2\" >> '{log}'\n")
    repo.hook("commit-msg", 'echo "Change-Id: I1" >> "$1"\n')
    repo.hook("post-commit", f"git rev-parse HEAD >> '{log}'\n")
    repo.write("a.py", "one = 2\n")
    repo.write("b.py", "not reviewed\n")
    repo.git("add", "b.py")
    done = work.commit("a.py")
    assert log.read_text().split("\n") == ["a.py", "prepare message", done.oid, ""]
    assert repo.git("show", "HEAD:a.py") == "one = 9"
    assert repo.git("log", "-1", "--format=%(trailers:key=Change-Id,valueonly)").strip() == "I1"
    assert repo.git("log", "-1", "--format=%(trailers:key=Code-Intel-Session,valueonly)").strip() == SESSION
    assert repo.git("status", "--porcelain") == "M  b.py"


@pytest.mark.parametrize("hook", ["pre-commit", "prepare-commit-msg", "commit-msg"])
def test_a_failing_hook_keeps_everything_and_its_words_are_told(work: Work, hook: str) -> None:
    work.repo.write("a.py", "one = 2\n")
    work.repo.hook(hook, "echo said on stdout; echo 'no: line too long' >&2; exit 3\n")
    details = work.refused("a.py")
    assert details["reason"] == "hook_failed"
    assert {"said on stdout", "no: line too long"} <= set(str(details["output"]).splitlines())


def test_a_hook_that_hangs_meets_its_time_limit(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    work.repo.write("a.py", "one = 2\n")
    work.repo.hook("pre-commit", "echo waiting for ever >&2\nsleep 60\n")
    monkeypatch.setattr(door, "USER_SECONDS", 0.5)
    assert work.refused("a.py")["reason"] == "timed_out"


def test_a_hook_may_veto_the_branch_move(work: Work) -> None:
    work.repo.write("a.py", "one = 2\n")
    work.repo.hook("reference-transaction", 'test "$1" != prepared || { echo frozen >&2; exit 1; }\n')
    assert "frozen" in str(work.refused("a.py")["output"])


def test_a_commit_made_by_the_user_meanwhile_is_not_reverted(work: Work) -> None:
    repo = work.repo
    repo.write("a.py", "one = 2\n")
    repo.hook("pre-commit", "unset GIT_INDEX_FILE\ngit commit -q --no-verify --allow-empty -m 'by the user'\n")
    with pytest.raises(Rejected) as caught:
        work.commit("a.py")
    assert caught.value.key == "failures.PRE_COMMIT.head_moved"
    assert repo.git("log", "-1", "--format=%s") == "by the user"
    assert repo.read("a.py") == "one = 2\n"


@pytest.mark.needs("ssh-keygen")
def test_commits_are_signed_where_the_user_signs(work: Work, tmp_path: Path) -> None:
    repo = work.repo
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True, capture_output=True)
    for name, value in {"gpg.format": "ssh", "user.signingkey": str(key), "commit.gpgsign": "yes"}.items():
        repo.git("config", name, value)
    repo.write("a.py", "one = 2\n")
    work.commit("a.py")
    assert "gpgsig -----BEGIN SSH SIGNATURE-----" in repo.git("cat-file", "commit", "HEAD")
    repo.git("config", "user.signingkey", str(tmp_path / "none"))
    repo.write("a.py", "one = 3\n")
    assert "none" in str(work.refused("a.py")["output"])


def test_a_missing_identity_is_said(work: Work) -> None:
    repo = work.repo
    home = repo.path.parent / "home"
    (home / ".gitconfig").write_text("[user]\n\tuseConfigOnly = true\n")
    repo.write("a.py", "one = 2\n")
    assert work.manager().survey().identity_missing
    assert work.refused("a.py")["reason"] == "identity_missing"


def test_an_identity_from_the_environment_counts(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    (work.repo.path.parent / "home/.gitconfig").write_text("[user]\n\tuseConfigOnly = true\n")
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Grace")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "grace@example.com")
    work.repo.write("a.py", "one = 2\n")
    work.commit("a.py")
    assert work.repo.git("log", "-1", "--format=%an %ce") == "Grace grace@example.com"


def test_a_held_index_is_told_and_never_freed(work: Work) -> None:
    repo = work.repo
    repo.write("a.py", "one = 2\n")
    lock = repo.path / ".git/index.lock"
    lock.touch()
    details = work.refused("a.py")
    assert (details["reason"], details["path"]) == ("index_locked", str(lock))
    assert lock.exists()
    lock.unlink()
    assert work.commit("a.py").oid


def test_nothing_is_committed_while_the_user_merges(work: Work) -> None:
    repo = work.repo
    repo.write("a.py", "one = 2\n")
    repo.write(".git/MERGE_HEAD", repo.git("rev-parse", "HEAD") + "\n")
    assert work.refused("a.py")["reason"] == "in_progress"


def test_a_switched_branch_is_no_place_to_commit(work: Work) -> None:
    tip = work.repo.git("rev-parse", "HEAD")
    for place in (("switch", "-q", "main"), ("switch", "-q", "--detach")):
        work.repo.git(*place)
        with pytest.raises(Rejected):
            work.commit("a.py", tip=tip)


@pytest.mark.parametrize(
    "path", ["../x", "/etc/passwd", "a/../b", ".git/config", "x/.GIT/y", "", "a//b", "./a.py", "a\0b"]
)
def test_paths_that_are_none_are_refused(work: Work, path: str) -> None:
    with pytest.raises(Rejected) as caught:
        work.commit(path)
    assert caught.value.key == "failures.PRE_COMMIT.path_invalid"


def test_after_continue_the_commit_goes_where_head_is(repo: Repo) -> None:
    repo.write("a.py", "one = 2\n")
    manager = BranchManager(repo.path, TreeJudge(repo.path))
    request = CommitRequest(SESSION, None, repo.git("rev-parse", "HEAD"), "On main", (), ("a.py",), ())
    done = manager.commit(request, lambda _: None, None)
    assert repo.git("rev-parse", "main") == done.oid


def test_the_message_keeps_its_hash_lines_and_its_own_trailers(work: Work) -> None:
    work.repo.write("a.py", "one = 2\n")
    work.commit("a.py", message="Fix #1\n\n# not a comment\n--- nor a divider\n\nSigned-off-by: Ada <a@b>")
    assert work.repo.git("log", "-1", "--format=%B").strip() == (
        "Fix #1\n\n# not a comment\n--- nor a divider\n\n"
        f"Signed-off-by: Ada <a@b>\nCode-Intel-Session: {SESSION}\nCode-Intel-Tasks: t1"
    )


def test_a_trailer_cannot_smuggle_lines(work: Work) -> None:
    work.repo.write("a.py", "one = 2\n")
    request = CommitRequest(
        SESSION, work.branch, work.branch.base_oid, "m", (("Code-Intel-Tasks", "a\nEvil: b"),), ("a.py",)
    )
    work.manager().commit(request, lambda _: None, None)
    assert work.repo.git("log", "-1", "--format=%(trailers:key=Evil)") == ""


def test_the_project_may_be_a_folder_of_the_repository(repo: Repo) -> None:
    repo.write("sub/x.py", "x = 1\n")
    repo.commit("sub")
    work = Work(repo, repo.path / "sub")
    repo.write("sub/x.py", "x = 2\n")
    repo.write("sub/new.py", "n\n")
    repo.write("a.py", "outside\n")
    work.commit("x.py", "new.py")
    assert names(repo) == {"M sub/x.py", "A sub/new.py"}


def test_a_linked_worktree_commits_to_its_own_branch(repo: Repo, tmp_path: Path) -> None:
    repo.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    side = Repo(tmp_path / "side")
    work = Work(side)
    side.write("a.py", "side\n")
    done = work.commit("a.py")
    assert side.git("rev-parse", f"llm_task_{SESSION}") == done.oid
    assert side.git("status", "--porcelain") == repo.git("status", "--porcelain") == ""
    work.manager().merge(work.branch, SESSION, "", [], lambda _: None, None)
    assert side.git("show", "side:a.py") == "side"


def test_a_sparse_checkout_commits_what_it_shows(repo: Repo) -> None:
    repo.write("in/x", "x\n")
    repo.write("out/y", "y\n")
    repo.commit("folders")
    repo.git("sparse-checkout", "set", "--cone", "--sparse-index", "in")
    work = Work(repo)
    repo.write("in/x", "2\n")
    work.commit("in/x")
    assert names(repo) == {"M in/x"}
    work.manager().merge(work.branch, SESSION, "", [], lambda _: None, None)
    assert repo.git("ls-tree", "-r", "--name-only", "main").split() == ["a.py", "b.py", "in/x", "out/y"]
    assert not (repo.path / "out").exists()
    assert repo.git("status", "--porcelain") == ""


def test_a_partial_clone_reads_without_the_network_and_commits(repo: Repo, tmp_path: Path) -> None:
    repo.git("config", "uploadpack.allowFilter", "true")
    subprocess.run(
        ["git", "clone", "-q", "--filter=blob:none", "--depth=1", f"file://{repo.path}", str(tmp_path / "clone")],
        check=True,
    )
    clone = Repo(tmp_path / "clone")
    work = Work(clone)
    clone.write("a.py", "one = 2\n")
    done = work.commit("a.py")
    result = work.manager().merge(
        TaskBranch(work.branch.name, "main", work.branch.base_oid), SESSION, done.oid, [], lambda _: None, None
    )
    assert clone.git("rev-parse", "main") == result.oid
    assert work.manager().survey().warnings == ("the history is shallow: merging may need `git fetch --unshallow`",)


def test_discarding_may_come_before_the_commit_and_be_repeated_after_it(work: Work) -> None:
    repo = work.repo
    repo.write("a.py", "one = 2\n")
    repo.write("b.py", "two = 'bad'\n")
    tip = repo.git("rev-parse", "HEAD")
    request = CommitRequest(SESSION, work.branch, tip, "Do it", (), ("a.py",), ("b.py",))
    intents: list[GitIntent] = []
    archived = work.manager().discard(request, intents.append, None)
    assert (repo.read("b.py"), len(archived), repo.git("rev-parse", "HEAD")) == ("two = 2\n", 1, tip)
    assert work.manager().discard(request, intents.append, intents[-1]) == archived
    done = work.manager().commit(request, intents.append, intents[-1])
    assert names(repo) == {"M a.py"}
    again = (
        work.manager().discard(request, intents.append, intents[-1]),
        work.manager().commit(request, intents.append, intents[-1]),
    )
    assert again == (archived, CommitResult(done.oid, done.oid, archived))


def test_what_lay_untracked_before_comes_back_as_it_was_links_and_permissions_too(repo: Repo) -> None:
    repo.write("mine/secret", "my line\n").chmod(0o600)
    repo.write("mine/run", "echo\n").chmod(0o700)
    (repo.path / "mine/link").symlink_to("secret")
    paths = ("mine/secret", "mine/run", "mine/link")
    work, start = Work(repo), TreeJudge(repo.path).snapshot()
    (repo.path / "mine/link").unlink()
    for path in paths:
        repo.write(path, "the agent's\n")
    tip = repo.git("rev-parse", "HEAD")
    request = CommitRequest(SESSION, work.branch, tip, "Do it", (), (), paths, base_snapshot=start)
    work.manager().discard(request, lambda _: None, None)
    modes = [oct((repo.path / path).stat().st_mode & 0o777) for path in paths[:2]]
    assert (modes, repo.read("mine/secret"), repo.read("mine/run")) == (["0o600", "0o700"], "my line\n", "echo\n")
    assert (repo.path / "mine/link").readlink() == Path("secret")


def test_a_large_file_of_the_users_that_cannot_come_back_is_not_discarded(repo: Repo) -> None:
    repo.write("mine.bin", b"mine" * 9)
    work, tree = Work(repo), TreeJudge(repo.path, big=20)
    start, tip = tree.snapshot(), repo.git("rev-parse", "HEAD")
    repo.write("mine.bin", b"the agent's")
    request = CommitRequest(SESSION, work.branch, tip, "Do it", (), (), ("mine.bin",), base_snapshot=start)
    with pytest.raises(Rejected) as caught:
        BranchManager(repo.path, tree, patience=0.0).discard(request, lambda _: None, None)
    assert (caught.value.key, caught.value.details) == (
        "failures.PRE_COMMIT.original_not_kept",
        {"files": ["mine.bin"]},
    )
    assert repo.read("mine.bin") == "the agent's"


def test_an_edit_that_comes_between_archive_and_discard_is_not_lost(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = work.repo
    repo.write("a.py", "one = 'shelved'\n")
    repo.write("b.py", "two = 'shelved'\n")
    keep = archive_refs.Archiver.keep

    def edited_meanwhile(self: archive_refs.Archiver, *shelved: archive_refs.ArchivedContent) -> None:
        keep(self, *shelved)
        repo.write("b.py", "two = 'edited meanwhile'\n")

    monkeypatch.setattr(archive_refs.Archiver, "keep", edited_meanwhile)
    with pytest.raises(UserActionNeeded) as caught:
        work.commit(discard=("a.py", "b.py"))
    assert (caught.value.details["reason"], caught.value.details["path"]) == ("changed_meanwhile", "b.py")
    assert (repo.read("a.py"), repo.read("b.py")) == ("one = 'shelved'\n", "two = 'edited meanwhile'\n")


@pytest.mark.parametrize("broken", ["clean", "smudge"])
def test_a_filter_that_fails_at_a_discard_leaves_the_files(work: Work, broken: str) -> None:
    """Git names the one filter in quotes, the other without, behind a line that names the program."""
    repo = work.repo
    repo.write(".gitattributes", "*.py filter=broken\n")
    for way in ("clean", "smudge"):
        repo.git("config", f"filter.broken.{way}", "false" if way == broken else "cat")
    repo.git("config", "filter.broken.required", "true")
    repo.write("a.py", "one = 'mine'\n")
    with pytest.raises(Rejected) as caught:
        work.commit(discard=("a.py",))
    assert (caught.value.key, caught.value.params["filter"]) == ("tool_errors.git.filter_failed", "broken")
    assert repo.read("a.py") == "one = 'mine'\n"


def test_a_link_is_discarded_as_a_link(work: Work, tmp_path: Path) -> None:
    repo = work.repo
    (repo.path / "a.py").unlink()
    (repo.path / "a.py").symlink_to(tmp_path)
    done = work.commit(discard=("a.py",))
    assert repo.files()["a.py"] == ("file", b"one = 1\n")
    assert repo.git("cat-file", "blob", f"{done.archived[0]}:a.py") == str(tmp_path)


def test_staging_that_fails_is_told(work: Work) -> None:
    repo = work.repo
    repo.git("config", "core.autocrlf", "true")
    repo.git("config", "core.safecrlf", "true")
    repo.write("a.py", "one\r\ntwo\n")
    details = work.refused("a.py")
    assert details["reason"] == "staging_failed"
    assert "a.py" in str(details["output"])


def test_a_hook_that_takes_everything_back_makes_no_commit(work: Work) -> None:
    repo = work.repo
    repo.hook("pre-commit", "git reset -q -- a.py\n")
    repo.write("a.py", "one = 2\n")
    assert work.commit("a.py").oid == ""


def test_a_message_hook_that_empties_the_message_stops_the_commit(work: Work) -> None:
    work.repo.hook("commit-msg", ': > "$1"\n')
    work.repo.write("a.py", "one = 2\n")
    assert "empty" in str(work.refused("a.py")["output"])


def test_an_unseen_edit_that_was_moved_aside_by_a_killed_process_comes_back(work: Work) -> None:
    """Killed between moving a file aside and comparing it with the archive: only the copy aside has the edit."""
    repo = work.repo
    shelved = repo.git("rev-parse", "HEAD")
    for name, text in (("a.py", "edited, unseen\n"), ("b.py", "two = 2\n"), ("new/c.py", "unseen\n")):
        repo.write(f".git/code-intel/aside/{shelved}/{name}", text)
    (repo.path / "a.py").unlink()
    repo.write("new/c.py", "somebody else's\n")
    work.manager().discard(CommitRequest(SESSION, work.branch, shelved, "m", (), ()), lambda _: None, None)
    assert (repo.read("a.py"), repo.read("b.py"), repo.read("new/c.py")) == (
        "edited, unseen\n",
        "two = 2\n",
        "somebody else's\n",
    )
    left = [path for path in (repo.path / ".git/code-intel/aside").rglob("*") if path.is_file()]
    assert [path.read_text() for path in left] == ["unseen\n"], "what is nowhere else is kept"


@pytest.mark.parametrize("sign", ["#", ";", "//"])
def test_a_line_behind_which_git_reads_no_trailer_is_taken_out_of_the_message(work: Work, sign: str) -> None:
    work.repo.write("a.py", "one = 2\n")
    work.commit("a.py", message=f"Fix it\n\n{sign} {'-' * 24} >8 {'-' * 24}\nmore")
    assert work.repo.git("log", "-1", "--format=%(trailers:key=Code-Intel-Session,valueonly)").strip() == SESSION
    assert work.repo.git("log", "-1", "--format=%B").startswith("Fix it\n\nmore\n")


def test_what_is_saved_while_a_filter_of_the_users_runs_is_not_overwritten_by_a_discard(work: Work) -> None:
    """Found by an opponent: git restored all files at once, over whatever had come to their places meanwhile."""
    repo = work.repo
    slow = f"echo precious > {shlex.quote(f'{repo.path}/b.py')}; cat"  # stands for an editor while large files are downloaded
    repo.write("a.py", "one = 2\n")
    repo.write("b.py", "two = 3\n")
    repo.git("config", "filter.slow.smudge", slow)
    repo.write(".git/info/attributes", "a.py filter=slow\n")
    with pytest.raises(UserActionNeeded) as caught:
        work.commit("c.py", discard=("a.py", "b.py"))
    assert caught.value.key == FAILED
    assert repo.read("b.py") == "precious\n"


def test_without_a_task_branch_a_discard_goes_back_to_head(repo: Repo) -> None:
    repo.write("a.py", "one = 2\n")
    manager = BranchManager(repo.path, TreeJudge(repo.path))
    request = CommitRequest(SESSION, None, repo.git("rev-parse", "HEAD"), "m", (), (), ("a.py",))
    assert len(manager.discard(request, lambda _: None, None)) == 1
    assert repo.read("a.py") == "one = 1\n"
    stale = CommitRequest(SESSION, None, "0" * 40, "m", (), (), ("a.py",))
    with pytest.raises(Rejected):
        manager.discard(stale, lambda _: None, None)
    (repo.path / ".git/index.lock").touch()
    repo.write("a.py", "one = 2\n")
    with pytest.raises(UserActionNeeded) as caught:
        BranchManager(repo.path, TreeJudge(repo.path), patience=0.0).discard(request, lambda _: None, None)
    assert caught.value.key == FAILED
    assert repo.read("a.py") == "one = 2\n"


def test_a_discard_whose_copy_cannot_be_cleared_away_is_told_and_can_be_repeated(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by the runs with a failing disk: the copy stayed without a word, and the discarded file came back later."""

    def fails(_path: object, **_options: object) -> None:
        raise OSError(5, "Input/output error")

    work.repo.write("left.log", "left over\n")
    work.repo.write("a.py", "one = 2\n")
    with monkeypatch.context() as patch:
        patch.setattr("code_intel_server.workspace.branches.archive_refs.shutil.rmtree", fails)
        with pytest.raises(OSError, match="Input/output"):
            work.commit("a.py", discard=("left.log",))
    work.commit("a.py", discard=("left.log",))
    assert not (work.repo.path / "left.log").exists()
    assert not list((work.repo.path / ".git" / "code-intel" / "aside").glob("*"))


@pytest.mark.parametrize("kind", ["a named pipe", "a socket"])
def test_what_is_no_file_in_the_place_of_one_is_called_by_its_name(work: Work, kind: str) -> None:
    """Found by an opponent: it was said to have been changed by somebody, again and again."""
    (work.repo.path / "b.py").unlink()
    if kind == "a socket":
        with socket.socket(socket.AF_UNIX) as listening, contextlib.chdir(work.repo.path):
            listening.bind("b.py")
    else:
        os.mkfifo(work.repo.path / "b.py")
    with pytest.raises(UserActionNeeded) as caught:
        work.commit(discard=("b.py",))
    assert caught.value.details["reason"] == "special_file"
    assert f"{kind} stands at b.py" in str(caught.value.details["output"])
    assert "rm b.py" in str(caught.value.details["output"])
    (work.repo.path / "b.py").unlink()
    work.commit(discard=("b.py",))
    assert work.repo.read("b.py") == "two = 2\n"
