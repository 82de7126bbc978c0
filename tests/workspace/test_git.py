"""The git door: nothing of a repository runs through our reads, and nothing of the environment steers them."""

import os
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from code_intel_server.errors import Unavailable, UserActionNeeded
from code_intel_server.workspace.branches.manager import BranchManager
from code_intel_server.workspace.branches.merges import merged_tree
from code_intel_server.workspace.branches.trash import Trash
from code_intel_server.workspace.git import child
from code_intel_server.workspace.git import repository as door
from code_intel_server.workspace.git.child import Manner
from code_intel_server.workspace.git.repository import (
    Git,
    RefChange,
    is_oid,
    is_safe_name,
    open_readable,
    open_repository,
)
from code_intel_server.workspace.tree.review import review
from code_intel_server.workspace.tree.tree import TreeJudge
from tests.workspace.git_repo import Repo

SESSION = "20261121_110000"

# Every key of git 2.39 to 2.54 that names something to be executed, or something that leads to it.
HOSTILE = {
    "alias.status": "!{evil}", "alias.rev-parse": "!{evil}", "core.alternateRefsCommand": "{evil}",
    "core.askPass": "{evil}", "core.editor": "{evil}", "core.fsmonitor": "{evil}", "core.gitProxy": "{evil}",
    "core.hooksPath": "{folder}/hooks", "core.pager": "{evil}", "core.sshCommand": "{evil}",
    "core.preloadIndex": "true", "core.untrackedCache": "true", "credential.helper": "!{evil}",
    "diff.external": "{evil}", "diff.evil.command": "{evil}", "diff.evil.textconv": "{evil}",
    "diff.evil.cachetextconv": "true", "difftool.evil.cmd": "{evil}", "fetch.bundleURI": "ext::{evil}",
    "filter.evil.clean": "{evil}", "filter.evil.smudge": "{evil}", "filter.evil.process": "{evil}",
    "filter.evil.required": "true", "gc.auto": "1", "gc.recentObjectsHook": "{evil}", "gpg.program": "{evil}",
    "gpg.ssh.program": "{evil}", "gpg.ssh.defaultKeyCommand": "{evil}", "gpg.x509.program": "{evil}",
    "hook.evil.command": "{evil}", "hook.evil.event": "post-index-change", "hook.a=b.command": "{evil}",
    "hook.a=b.event": "reference-transaction", "imap.tunnel": "{evil}", "include.path": "{folder}/included",
    "init.templateDir": "{folder}", "interactive.diffFilter": "{evil}", "log.showSignature": "true",
    "maintenance.auto": "true", "man.evil.cmd": "{evil}", "merge.evil.driver": "{evil}", "mergetool.evil.cmd": "{evil}",
    "pager.log": "{evil}", "pager.for-each-ref": "{evil}", "protocol.ext.allow": "always",
    "remote.origin.url": "ext::{evil}", "remote.origin.vcs": "evil", "remote.origin.uploadpack": "{evil}",
    "remote.origin.promisor": "true", "remote.origin.partialclonefilter": "blob:none", "sequence.editor": "{evil}",
    "sendemail.smtpserver": "{folder}/evil", "submodule.recurse": "true", "submodule.lib.update": "!{evil}",
    "tar.evil.command": "{evil}", "trailer.evil.command": "{evil}", "trailer.evil.cmd": "{evil}",
    "uploadpack.packObjectsHook": "{evil}", "url.ext::{evil}.insteadOf": "https://", "web.browser": "{evil}",
}  # fmt: skip
HOOKS = (
    "post-index-change", "post-checkout", "reference-transaction", "pre-commit", "fsmonitor-watchman", "pre-auto-gc",
    "post-merge",
)  # fmt: skip


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    return Repo.with_files(tmp_path, monkeypatch)


def opened(repo: Repo) -> Git:
    git = open_repository(repo.path, patience=0.0)
    assert isinstance(git, Git), git
    return git


def trap(repo: Repo, folder: Path) -> Path:
    """Arm a repository with everything that could be executed; returns the marker that must never appear."""
    marker = folder / "marker"
    evil = folder / "evil"
    evil.write_text(f"#!/bin/sh\necho \"$0 $*\" >> '{marker}'\ncat\n")
    evil.chmod(0o755)
    for where in (folder / "hooks", repo.path / ".git/hooks"):
        where.mkdir(exist_ok=True)
        for hook in HOOKS:
            shutil.copy(evil, where / hook)
    (folder / "included").write_text(f"[core]\n\tfsmonitor = {evil}\n")
    for name, value in HOSTILE.items():
        places = {"evil": shlex.quote(str(evil)), "folder": folder}
        repo.git("config", name.format(**places), value.format(**places))
    repo.write(".git/info/attributes", "* filter=evil diff=evil merge=evil ident working-tree-encoding=UTF-16\n")
    repo.write(".gitattributes", "*.py filter=evil diff=evil\n")
    repo.write(".gitmodules", f'[submodule "lib"]\n\tpath = lib\n\turl = ext::{evil}\n\tupdate = !{evil}\n')
    return marker


def test_no_configuration_of_a_repository_runs_through_our_reads(repo: Repo, tmp_path: Path) -> None:
    repo.write("c.txt", "three\n")
    repo.commit("c")
    repo.git("branch", "llm_task_old")
    head = repo.git("rev-parse", "HEAD")
    marker = trap(repo, tmp_path)
    marker.unlink(missing_ok=True)
    os.utime(repo.path / "a.py", (1, 1))
    repo.write("b.py", "two = 3\n")
    repo.write("new.py", "new\n")
    judge = TreeJudge(repo.path)
    manager = BranchManager(repo.path, judge, patience=0.0)
    base = judge.head_snapshot(head)
    now = judge.snapshot()
    survey = manager.survey()
    manager.stale()
    manager.cleanup_stale(dry_run=True)
    manager.tip(), manager.current()
    review(judge, base, now)
    judge.lines(base, "b.py")
    judge.untracked_at(now, head)
    Trash(repo.path).entries()
    assert {change.path for change in judge.changes(base, now)} == {"b.py", "new.py", ".gitattributes", ".gitmodules"}
    assert survey.stale == ("llm_task_old",)
    assert not marker.exists(), marker.read_text()
    repo.fails("status")
    assert marker.exists(), "the trap itself must work"


def test_what_is_ours_is_written_without_the_users_hooks(repo: Repo, tmp_path: Path) -> None:
    repo.git("branch", "llm_task_old")
    marker = trap(repo, tmp_path)
    marker.unlink(missing_ok=True)
    assert BranchManager(repo.path, TreeJudge(repo.path)).cleanup_stale().archived
    assert Trash(repo.path).purge(older_than_days=-1)
    assert not marker.exists(), marker.read_text()


def test_hooks_in_the_configuration_are_switched_off_by_name(repo: Repo) -> None:
    for name in ("lint", "a=b", "a.b"):
        repo.git("config", f"hook.{name}.command", "x")
    done = opened(repo).run("config", "--get-regexp", r"^hook\..*\.enabled$", manner=Manner.OWN)
    assert set(done.text().splitlines()) == {f"hook.{name}.enabled false" for name in ("lint", "a=b", "a.b")}
    assert opened(repo).run("config", "--get-regexp", r"^hook\..*\.enabled$", manner=Manner.USER).text() == ""


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GIT_DIR", "/nowhere"), ("GIT_WORK_TREE", "/"), ("GIT_INDEX_FILE", "/nowhere"), ("GIT_OBJECT_DIRECTORY", "/nowhere"),
        ("GIT_CONFIG_PARAMETERS", "'core.fsmonitor=touch {marker}'"), ("GIT_CONFIG_GLOBAL", "{evil_config}"),
        ("GIT_CONFIG_COUNT", "x"), ("GIT_EXTERNAL_DIFF", "touch {marker}"), ("GIT_SSH_COMMAND", "touch {marker}"),
        ("GIT_PAGER", "touch {marker}"), ("GIT_TRACE", "{marker}"), ("GIT_TRACE2_EVENT", "{marker}"), ("GIT_NAMESPACE", "x"),
        ("GIT_CEILING_DIRECTORIES", "/"), ("GIT_DEFAULT_HASH", "sha256"), ("GIT_REPLACE_REF_BASE", "refs/x"),
        ("GIT_ATTR_SOURCE", "HEAD"), ("GIT_EXEC_PATH", "/nowhere"), ("GIT_TEMPLATE_DIR", "/nowhere"), ("GIT_LITERAL_PATHSPECS", "x"),
    ],
)  # fmt: skip
def test_the_environment_does_not_steer_git(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    marker = tmp_path / "marker"
    (tmp_path / "evil").write_text(f"[core]\n\tfsmonitor = touch {marker}\n")
    head, tree = repo.git("rev-parse", "HEAD", "HEAD^{tree}").split()
    monkeypatch.setenv(name, value.format(marker=marker, evil_config=tmp_path / "evil"))
    judge = TreeJudge(repo.path)
    manager = BranchManager(repo.path, judge)
    assert (manager.tip(), judge.snapshot(), manager.survey().dirty) == (head, tree, ())
    assert not marker.exists()


def test_nothing_is_fetched_to_answer_a_question(repo: Repo, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    for name, value in {
        "core.repositoryformatversion": "1",
        "extensions.partialClone": "origin",
        "protocol.ext.allow": "always",
        "remote.origin.url": f"ext::touch {str(marker).replace(' ', '% ')}",
        "remote.origin.promisor": "true",
    }.items():
        repo.git("config", name, value)
    oid = repo.git("rev-parse", "HEAD:a.py")
    (repo.path / ".git/objects" / oid[:2] / oid[2:]).unlink()
    git = opened(repo)
    with pytest.raises(Unavailable) as caught:
        git.read_blob(oid)
    assert (caught.value.key, caught.value.params["command"]) == ("tool_errors.git.failed", "git cat-file")
    judge = TreeJudge(repo.path)
    judge.head_snapshot(repo.git("rev-parse", "HEAD"))
    assert not marker.exists()
    repo.fails("cat-file", "blob", oid)
    assert marker.exists(), "the trap itself must work"


def test_a_shipped_git_directory_cannot_turn_our_folder_against_us(repo: Repo, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    common = tmp_path / "common"
    shutil.copytree(repo.path / ".git", common)
    (common / "config").write_text(f"[core]\n\tfsmonitor = touch {marker}\n")
    for room in ("tree", "status", "shelf"):
        planted = repo.path / ".git/code-intel" / room
        (planted / "hooks").mkdir(parents=True)
        (planted / "hooks/post-index-change").write_text(f"#!/bin/sh\ntouch {marker}\n")
        (planted / "hooks/post-index-change").chmod(0o755)
        (planted / "commondir").write_text(f"{common}\n")
        (planted / "objects").symlink_to(tmp_path)
    judge = TreeJudge(repo.path)
    assert judge.snapshot() == repo.git("rev-parse", "HEAD^{tree}")
    BranchManager(repo.path, judge).survey()
    assert not marker.exists()
    assert not (repo.path / ".git/code-intel/tree/commondir").exists()


@pytest.mark.parametrize("outside", ["outside", "nowhere", ""])
def test_our_folder_is_never_followed_elsewhere_and_no_file_is_taken_for_it(
    repo: Repo, tmp_path: Path, outside: str
) -> None:
    (tmp_path / "outside").mkdir()
    if outside:
        (repo.path / ".git/code-intel").symlink_to(tmp_path / outside)
    else:
        repo.write(".git/code-intel", "")
    with pytest.raises(UserActionNeeded) as caught:
        TreeJudge(repo.path).snapshot()
    assert caught.value.key == "tool_errors.git.folder_unsafe"
    assert not list((tmp_path / "outside").iterdir())


def no_repository(repo: Repo, tmp_path: Path) -> Path:
    return tmp_path / "home"


def bare(repo: Repo, tmp_path: Path) -> Path:
    repo.git("clone", "-q", "--bare", str(repo.path), str(tmp_path / "bare"))
    return tmp_path / "bare"


def git_directory(repo: Repo, tmp_path: Path) -> Path:
    return repo.path / ".git"


def worktree_elsewhere(repo: Repo, tmp_path: Path) -> Path:
    repo.git("config", "core.worktree", str(tmp_path / "home"))
    return repo.path


def broken(repo: Repo, tmp_path: Path) -> Path:
    (repo.path / ".git/config").write_text("[core\n")
    return repo.path


def another_owner(repo: Repo, tmp_path: Path) -> Path:
    for path in (repo.path, repo.path / ".git"):
        os.chown(path, 12345, 12345)
    return repo.path


def vanished_worktree(repo: Repo, tmp_path: Path) -> Path:
    repo.git("worktree", "add", "-q", str(tmp_path / "linked"))
    shutil.rmtree(repo.path / ".git/worktrees/linked")
    return tmp_path / "linked"


@pytest.mark.parametrize(
    ("prepare", "sentence"),
    [
        (no_repository, "not a git repository"),
        (bare, "bare"),
        (git_directory, "bare|not in the working tree"),
        (vanished_worktree, "leads to .*worktrees/linked, where no repository is"),
        (worktree_elsewhere, "not in the working tree"),
        (broken, "cannot read"),
        pytest.param(another_owner, "another user owns it", marks=pytest.mark.needs("root")),
    ],
)
def test_where_there_is_no_working_tree_one_sentence_says_why(
    repo: Repo, tmp_path: Path, prepare: Callable[[Repo, Path], Path], sentence: str
) -> None:
    root = prepare(repo, tmp_path)
    reason = open_repository(root)
    assert isinstance(reason, str)
    assert re.search(sentence, reason)
    manager = BranchManager(root, TreeJudge(root))
    if "cannot read" in reason:  # a disk may fail for a moment: that is not taken for a project without git
        with pytest.raises(Unavailable, match=r"git\.failed"):
            manager.survey()
    else:
        survey = manager.survey()
        assert (survey.git, survey.blocker) == (False, reason)


def test_what_does_not_exist_any_more_is_no_ancestor_and_has_none(repo: Repo) -> None:
    git, head, gone = opened(repo), repo.git("rev-parse", "HEAD"), "1" * 40
    pairs = [(gone, "HEAD"), (head, gone), (head, "refs/heads/gone"), (head, "refs/heads/"), (head, ""), ("", "HEAD")]
    assert [git.is_ancestor(*pair) for pair in pairs] == [False] * len(pairs)
    assert git.is_ancestor(head, "HEAD")


def test_a_folder_on_another_file_system_than_the_repository_above_it_is_a_project_without_git(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git looks no further than that."""
    inner, lstat = repo.path / "mounted", Path.lstat
    inner.mkdir()
    (repo.path / ".git/HEAD").write_text("")
    with pytest.raises(Unavailable, match=r"git\.failed"):
        open_readable(inner)

    def elsewhere(path: Path) -> os.stat_result:
        found = lstat(path)
        return os.stat_result((*found[:2], found.st_dev + 1, *found[3:])) if path == inner else found

    monkeypatch.setattr(Path, "lstat", elsewhere)
    assert isinstance(open_readable(inner), str)


@pytest.mark.parametrize("name", ["with space", "two\nlines", "next\x85line", "last\n"])
def test_a_repository_is_found_whatever_its_folder_is_called(repo: Repo, tmp_path: Path, name: str) -> None:
    repo.git("clone", "-q", str(repo.path), str(tmp_path / name))
    found = open_repository(tmp_path / name)
    assert isinstance(found, Git)
    assert (found.at.top, found.at.git_dir) == (tmp_path / name, tmp_path / name / ".git")


def test_an_embedded_bare_repository_is_not_entered(repo: Repo, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    repo.git("clone", "-q", "--bare", str(repo.path), str(repo.path / "trap"))
    Repo(repo.path / "trap").git("config", "core.fsmonitor", f"touch {marker}")
    Repo(repo.path / "trap").git("config", "core.worktree", str(repo.path))
    Repo(repo.path / "trap").git("config", "core.bare", "false")
    reason = open_repository(repo.path / "trap")
    assert isinstance(reason, str)
    TreeJudge(repo.path).snapshot()
    assert not marker.exists()


def test_git_itself_may_be_missing(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    git = opened(repo)
    monkeypatch.setenv("PATH", "/nonexistent")
    assert "cannot be run" in str(open_repository(repo.path))
    with pytest.raises(Unavailable) as caught:
        git.run("version")
    assert caught.value.key == "tool_errors.git.missing"


def test_a_folder_that_is_gone_is_not_taken_for_a_missing_git(repo: Repo) -> None:
    git = opened(repo)
    shutil.rmtree(repo.path)
    with pytest.raises(Unavailable, match="is not there") as caught:
        git.run("version")
    assert caught.value.key == "tool_errors.git.failed"


def test_a_child_that_was_killed_is_an_error_and_never_a_no(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by the kill run: a killed `symbolic-ref` was taken for a detached HEAD, and the branch HEAD was on removed."""
    git = opened(repo)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").write_text("#!/bin/sh\nkill -KILL $$\n")
    (tmp_path / "bin" / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    for ask in (git.current, lambda: git.oid("HEAD"), lambda: git.is_ancestor("a" * 40, "HEAD"), lambda: opened(repo)):
        with pytest.raises(Unavailable, match="signal 9"):
            ask()


def test_a_question_that_git_cannot_answer_is_an_error(repo: Repo) -> None:
    git = opened(repo)
    (repo.path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    assert git.current() == "main"
    (repo.path / ".git" / "config").write_text("[core\n")
    with pytest.raises(Unavailable):
        git.current()


def test_a_command_that_prints_too_much_is_ended(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "MAX_GIT_OUTPUT", 10)
    with pytest.raises(Unavailable) as caught:
        opened(repo)
    assert caught.value.key == "tool_errors.git.too_much_output"


def test_only_a_list_of_files_may_be_as_long_as_that_of_a_million(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    git = opened(repo)
    blob = git.write_blob(b"x" * 2000)
    assert child.MAX_GIT_OUTPUT == 64 * 1024 * 1024 < child.MAX_GIT_LISTING
    for number in range(50):
        (repo.path / f"{number:040}.txt").touch()
    repo.git("add", ".")
    repo.git("commit", "-q", "-m", "many")
    monkeypatch.setattr(child, "MAX_GIT_OUTPUT", 1000)
    assert len(git.must("ls-files", "-z")) > 2000
    assert len(git.must("--literal-pathspecs", "ls-tree", "-r", "-z", "HEAD")) > 2000
    with pytest.raises(Unavailable) as caught:
        git.read_blob(blob)
    assert caught.value.key == "tool_errors.git.too_much_output"


def test_a_ref_transaction_is_all_or_nothing(repo: Repo) -> None:
    git = opened(repo)
    head = repo.git("rev-parse", "HEAD")
    other = repo.commit("other")
    with pytest.raises(Unavailable):
        git.transact([RefChange("refs/heads/x", "", head), RefChange("refs/heads/main", head, other)], reason="r")
    assert repo.fails("rev-parse", "--verify", "refs/heads/x")
    git.transact([RefChange("refs/heads/x", "", head), RefChange("refs/heads/y", "", head)], reason="r")
    with pytest.raises(Unavailable):
        git.transact([RefChange("refs/heads/x", head, ""), RefChange("refs/heads/y", other, "")], reason="r")
    git.transact([RefChange("refs/heads/x", head, other), RefChange("refs/heads/y", head, "")], reason="r")
    assert git.refs("refs/heads") == {"refs/heads/main": other, "refs/heads/x": other}


def test_a_symbolic_ref_is_removed_without_what_it_stands_for(repo: Repo) -> None:
    head = repo.git("rev-parse", "HEAD")
    repo.git("symbolic-ref", "refs/heads/alias", "refs/heads/main")
    git = opened(repo)
    git.transact([RefChange("refs/heads/alias", head, "")], reason="r")
    assert git.refs("refs/heads") == {"refs/heads/main": head}


def test_a_lock_that_is_let_go_is_waited_for(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = repo.path / ".git/index.lock"
    lock.touch()
    monkeypatch.setattr("time.sleep", lambda _: lock.unlink(missing_ok=True))
    git = open_repository(repo.path, patience=10.0)
    assert isinstance(git, Git)
    git.await_index()
    assert not lock.exists()


@given(st.text())
def test_only_full_hex_ids_are_object_ids(text: str) -> None:
    assert is_oid(text) == (len(text) in {40, 64} and set(text) <= set("0123456789abcdef"))


@given(st.text(alphabet="ab0._-/~^: \n\0é@{\\", max_size=12))
def test_what_may_name_a_session_is_a_ref_component_to_git_too(text: str) -> None:
    if is_safe_name(text):
        assert not set(text) & set("/~^: \n\0é@{\\")
        assert ".." not in text
        assert text[0] not in "-."
        assert not text.endswith((".", ".lock"))


def test_names_are_divided_into_portions_that_fit() -> None:
    names = [f"{'x' * 50}{n}" for n in range(100)]
    groups = list(door.portions(names, limit=500))
    assert [name for group in groups for name in group] == names
    assert max(sum(len(name) + 1 for name in group) for group in groups) <= 500
    assert list(door.portions(["y" * 900], limit=500)) == [["y" * 900]]
    assert list(door.portions([])) == []


def test_a_file_that_was_renamed_goes_by_its_new_name_in_the_history(repo: Repo) -> None:
    repo.write("old.py", "a = 1\nb = 2\nc = 3\n")
    repo.write("use.py", "1\n")
    repo.commit("one")
    repo.git("mv", "old.py", "new.py")
    repo.commit("two")
    repo.write("old.py", "another\n")
    repo.commit("three")
    assert opened(repo).changed_together(3) == [("old.py",), ("new.py",), ("new.py", "use.py")]


def test_what_changed_together_is_read_from_the_history(repo: Repo) -> None:
    repo.write("sub/x\n.py", "1\n")
    repo.write("sub/y.py", "1\n")
    repo.commit("two")
    assert opened(repo).changed_together(5) == [("sub/x\n.py", "sub/y.py"), ("a.py", "b.py")]
    inner = open_repository(repo.path / "sub")
    assert isinstance(inner, Git)
    assert inner.changed_together(5) == [("x\n.py", "y.py")]


def test_a_forged_commit_graph_does_not_choose_the_common_ancestor_of_a_merge(repo: Repo) -> None:
    repo.write("a.py", "one\n2\n3\n4\n5\n6\nseven\n")
    base = repo.commit("base")
    repo.git("switch", "-qc", "task")
    repo.write("a.py", "ONE\n2\n3\n4\n5\n6\nseven\n")
    first = repo.commit("first change")
    repo.write("a.py", "ONE\n2\n3\n4\n5\n6\nSEVEN\n")
    tip = repo.commit("second change")
    repo.git("switch", "-q", "main")
    moved = repo.commit("the base moves on")
    half = repo.git("commit-tree", f"{first}^{{tree}}", "-m", "half")
    repo.git("update-ref", "refs/heads/half", half)
    repo.git("-c", "commitGraph.generationVersion=1", "commit-graph", "write", "--reachable")
    forge_parent(repo.path / ".git/objects/info/commit-graph", {first: half, base: half})
    git = opened(repo)
    assert repo.git("merge-base", moved, tip) == half
    assert git.text("cat-file", "blob", f"{merged_tree(git, moved, tip)}:a.py") == "ONE\n2\n3\n4\n5\n6\nSEVEN"


def forge_parent(graph: Path, parents: dict[str, str]) -> None:
    """Give commits of a commit-graph file another first parent, as old as need be."""
    data = bytearray(graph.read_bytes())
    rows = range(8, 8 + 12 * data[6], 12)
    chunks = {bytes(data[at : at + 4]): int.from_bytes(data[at + 4 : at + 12], "big") for at in rows}
    names = [bytes(data[at : at + 20]).hex() for at in range(chunks[b"OIDL"], chunks[b"CDAT"], 20)]
    for commit, parent in parents.items():
        row = chunks[b"CDAT"] + 36 * names.index(commit)
        data[row + 20 : row + 24] = names.index(parent).to_bytes(4, "big")
    graph.chmod(0o644)
    graph.write_bytes(data)
