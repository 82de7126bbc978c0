"""A snapshot is the raw content of the working tree, taken without running or changing anything."""

import hashlib
import json
import mmap
import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from code_intel_server import process
from code_intel_server.errors import Unavailable
from code_intel_server.workspace.git import isolated_directory
from code_intel_server.workspace.tree import alterations, snapshot_index, stored_snapshots, tree
from code_intel_server.workspace.tree.tree import TreeJudge
from code_intel_server.workspace.values import Beside, Change, ChangeKind, Hunk
from tests.workspace.fallible import Fallible
from tests.workspace.git_repo import Repo


def paths(changes: tuple[Change, ...]) -> set[tuple[str, str]]:
    return {(change.path, change.kind.value) for change in changes}


def test_a_clean_tree_has_the_snapshot_of_its_head(repo: Repo) -> None:
    judge = TreeJudge(repo.path)
    assert (
        judge.snapshot() == repo.git("rev-parse", "HEAD^{tree}") == judge.head_snapshot(repo.git("rev-parse", "HEAD"))
    )


def test_every_kind_of_change_is_told(repo: Repo) -> None:
    repo.write("gone.py", "x\n" * 9)
    repo.write("old name.py", "".join(f"line {n}\n" for n in range(30)))
    repo.write("run.sh", "echo\n")
    repo.write("blob.bin", b"\0\1\2")
    repo.commit("more")
    judge = TreeJudge(repo.path)
    before = judge.snapshot()
    repo.write("a.py", "zero = 0\none = 1\n")
    (repo.path / "gone.py").unlink()
    (repo.path / "old name.py").rename(repo.path / "new näme\n.py")
    (repo.path / "run.sh").chmod(0o755)
    repo.write("blob.bin", b"\0\1\3")
    (repo.path / "link").symlink_to("a.py")
    repo.write("empty", "")
    after = judge.snapshot()
    changes = {change.path: change for change in judge.changes(before, after)}
    assert {path: change.kind.value for path, change in changes.items()} == {
        "a.py": "modified", "gone.py": "deleted", "new näme\n.py": "renamed", "run.sh": "mode",
        "blob.bin": "modified", "link": "added", "empty": "added",
    }  # fmt: skip
    assert changes["a.py"].hunks == (Hunk(0, 0, 1, 1),)
    assert changes["new näme\n.py"].old_path == "old name.py"
    assert changes["blob.bin"].binary
    assert changes["gone.py"].oid == ""
    assert judge.lines(after, "a.py") == ("zero = 0", "one = 1")
    assert judge.lines(before, "gone.py") == ("x",) * 9
    assert judge.lines(after, "gone.py") is None
    assert judge.lines(after, "blob.bin") is None
    assert judge.lines(after, "link") is None


def test_lines_that_read_like_headers_do_not_mislead(repo: Repo) -> None:
    repo.write("z.txt", "- old\n")
    judge = TreeJudge(repo.path)
    before = judge.snapshot()
    repo.write("a.py", "diff --git a/x b/x\n@@ -1 +1 @@\n-- a\n++ b")
    repo.write("z.txt", "++ new\nBinary files differ\n")
    changes = judge.changes(before, judge.snapshot())
    assert [(c.path, c.hunks) for c in changes] == [("a.py", (Hunk(1, 1, 1, 4),)), ("z.txt", (Hunk(1, 1, 1, 2),))]


@pytest.mark.parametrize("later", [False, True], ids=["in the first snapshot", "in a later one"])
def test_content_that_the_repository_only_happened_to_have_outlives_its_garbage_collection(
    repo: Repo, monkeypatch: pytest.MonkeyPatch, *, later: bool
) -> None:
    monkeypatch.setattr(isolated_directory, "_AT_ONCE", 20)
    judge = TreeJudge(repo.path)
    if later:
        judge.snapshot()
    repo.write("notes/mine.txt", "my only line\n")
    repo.git("add", "notes/mine.txt")
    repo.git("reset", "-q")
    start = judge.snapshot()
    repo.write("notes/mine.txt", "another\n")
    repo.git("gc", "--quiet", "--prune=now")
    fresh = TreeJudge(repo.path)
    assert fresh.content(start, "notes/mine.txt") == b"my only line\n"
    assert not list((repo.path / ".git/code-intel/tree/objects/pack").iterdir()), "packs would slow every read"
    assert paths(fresh.changes(start, fresh.snapshot())) == {("notes/mine.txt", "modified")}


def test_the_users_index_and_object_store_stay_as_they_are(repo: Repo) -> None:
    repo.write("a.py", "staged\n")
    repo.git("add", "a.py")
    repo.write("a.py", "unstaged\n")
    repo.write("new.py", "new\n")
    index = (repo.path / ".git/index").read_bytes()
    objects = sorted((repo.path / ".git/objects").rglob("*"))
    judge = TreeJudge(repo.path)
    judge.head_snapshot(repo.git("rev-parse", "HEAD"))
    judge.changes("", judge.snapshot())
    assert (repo.path / ".git/index").read_bytes() == index
    assert sorted((repo.path / ".git/objects").rglob("*")) == objects


def test_what_the_server_writes_and_what_is_ignored_does_not_count(repo: Repo) -> None:
    repo.write(".gitignore", "*.log\n")
    judge = TreeJudge(repo.path)
    before = judge.snapshot()
    repo.write("x.log", "noise")
    repo.write(".code-intel/sessions/1.json", "{}")
    assert judge.snapshot() == before
    repo.write(".code-intel/config.json", "{}")
    assert paths(judge.changes(before, judge.snapshot())) == {(".code-intel/config.json", "added")}


def test_a_folder_that_is_called_like_a_servers_hides_nothing_within_the_project(repo: Repo) -> None:
    repo.write("x.py", "x = 1\n")
    repo.commit("one")
    judge = TreeJudge(repo.path)
    before = judge.snapshot()
    hidden = [f"lib/.code-intel/{name}/evil.py" for name in ("agreements", "cache", "logs")]
    for path in hidden:
        repo.write(path, "x = 2\n")
    assert {path for path, _ in paths(judge.changes(before, judge.snapshot()))} == set(hidden)


def test_a_tracked_file_counts_although_it_is_ignored(repo: Repo) -> None:
    repo.write(".gitignore", "*.log\n")
    repo.write("kept.log", "1\n")
    repo.git("add", "-f", "kept.log")
    repo.commit("with log")
    judge = TreeJudge(repo.path)
    before = judge.snapshot()
    repo.write("kept.log", "2\n")
    assert paths(judge.changes(before, judge.snapshot())) == {("kept.log", "modified")}


def test_a_file_that_becomes_ignored_leaves_the_snapshot_as_it_would_for_a_new_judge(repo: Repo) -> None:
    judge = TreeJudge(repo.path)
    repo.write("out/x.txt", "x")
    judge.snapshot()
    repo.write(".gitignore", "out/\n")
    after = judge.snapshot()
    judge.forget()
    assert TreeJudge(repo.path).snapshot() == after


def test_a_file_removed_from_the_index_and_ignored_is_gone(repo: Repo) -> None:
    judge = TreeJudge(repo.path)
    before = judge.snapshot()
    repo.write(".gitignore", "b.py\n")
    repo.git("rm", "-q", "--cached", "b.py")
    assert paths(judge.changes(before, judge.snapshot())) == {(".gitignore", "added"), ("b.py", "deleted")}


def test_a_touched_file_is_no_change(repo: Repo) -> None:
    judge = TreeJudge(repo.path)
    before = judge.snapshot()
    os.utime(repo.path / "a.py", (1, 1))
    assert judge.snapshot() == before


def test_a_change_within_the_same_time_stamp_is_seen(repo: Repo) -> None:
    """Same size, same mtime: only the racy-clean rule or the other stat fields can tell."""
    judge = TreeJudge(repo.path)
    stamps = (repo.path / "a.py").stat()
    before = judge.snapshot()
    repo.write("a.py", "one = 9\n")
    os.utime(repo.path / "a.py", ns=(stamps.st_atime_ns, stamps.st_mtime_ns))
    assert paths(judge.changes(before, judge.snapshot())) == {("a.py", "modified")}


def test_a_change_within_one_second_is_seen_when_the_file_keeps_its_size_and_an_old_time_stamp(repo: Repo) -> None:
    """Git compares change times by the second, and takes only an entry as young as the index for doubtful."""
    judge = TreeJudge(repo.path)
    seen = []
    for value in range(10, 20):
        repo.write("a.py", f"one = {value}\n")
        os.utime(repo.path / "a.py", (1, 1))
        seen.append(judge.snapshot())
    assert len(set(seen)) == len(seen)


def test_a_write_through_a_page_in_memory_is_seen_where_contents_are_asked_for(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second write to a page that is still dirty changes no stamp of its file."""
    judge = TreeJudge(repo.path)
    long_after = time.time() + 100  # as if the file had been written long before it was looked at
    monkeypatch.setattr(snapshot_index, "time", SimpleNamespace(time=lambda: long_after))
    with (repo.path / "a.py").open("r+b") as file, mmap.mmap(file.fileno(), 0) as page:
        page[6:7] = b"7"
        os.utime(repo.path / "a.py", (1, 1))
        before = judge.snapshot()
        os.utime(repo.path / ".git/code-intel/tree/index", (long_after, long_after))
        stamps = (repo.path / "a.py").stat()
        page[6:7] = b"8"
        assert (repo.path / "a.py").stat() == stamps
        assert judge.snapshot() == before
        after = judge.snapshot(contents=True)
    assert paths(judge.changes(before, after)) == {("a.py", "modified")}
    assert judge.snapshot() == judge.snapshot(contents=True) == after


def test_a_folder_takes_the_place_of_a_file_and_back(repo: Repo) -> None:
    judge = TreeJudge(repo.path)
    before = judge.snapshot()
    (repo.path / "a.py").unlink()
    repo.write("a.py/inner.txt", "in\n")
    folder = judge.snapshot()
    assert paths(judge.changes(before, folder)) == {("a.py", "deleted"), ("a.py/inner.txt", "added")}
    (repo.path / "a.py/inner.txt").unlink()
    (repo.path / "a.py").rmdir()
    repo.write("a.py", "one = 1\n")
    assert judge.snapshot() == before


def test_a_folder_replaced_by_a_link_hides_what_was_in_it(repo: Repo) -> None:
    repo.write("d/x", "x\n")
    repo.write("e/x", "x\n")
    judge = TreeJudge(repo.path)
    before = judge.snapshot()
    (repo.path / "d/x").unlink()
    (repo.path / "d").rmdir()
    (repo.path / "d").symlink_to("e")
    assert paths(judge.changes(before, judge.snapshot())) == {("d", "added"), ("d/x", "deleted")}


def test_a_big_file_is_hashed_but_not_stored(repo: Repo) -> None:
    judge = TreeJudge(repo.path, big=1000)
    before = judge.snapshot()
    content = os.urandom(3_000)
    repo.write("big.bin", content)
    repo.write("a.py", "one = 2\n")
    after = judge.snapshot()
    oid = repo.git("hash-object", "--no-filters", "big.bin")
    changes = {change.path: change for change in judge.changes(before, after)}
    assert (changes["big.bin"].oid, changes["big.bin"].binary) == (oid, True)
    assert changes["a.py"].hunks == (Hunk(1, 1, 1, 1),)
    assert not list((repo.path / ".git").rglob(oid[2:]))
    assert judge.lines(after, "big.bin") is None
    assert judge.snapshot() == after == TreeJudge(repo.path, big=1000).snapshot()
    repo.write("big.bin", content[::-1])
    assert judge.snapshot() != after


def test_big_files_are_renamed_only_when_identical(repo: Repo) -> None:
    judge = TreeJudge(repo.path, big=1000)
    repo.write("big.bin", os.urandom(3_000))
    before = judge.snapshot()
    (repo.path / "big.bin").rename(repo.path / "moved.bin")
    changes = judge.changes(before, judge.snapshot())
    assert [(c.path, c.kind, c.old_path) for c in changes] == [("moved.bin", ChangeKind.RENAMED, "big.bin")]


def test_the_project_may_be_a_folder_of_the_repository(repo: Repo) -> None:
    repo.write("sub/pkg/x.py", "x = 1\n")
    repo.write("other/y.py", "y = 1\n")
    head = repo.commit("monorepo")
    judge = TreeJudge(repo.path / "sub")
    before = judge.snapshot()
    assert before == judge.head_snapshot(head) == repo.git("rev-parse", "HEAD:sub")
    repo.write("other/y.py", "y = 2\n")
    repo.write("sub/pkg/x.py", "x = 2\n")
    repo.write("sub/.code-intel/logs/l", "")
    assert paths(judge.changes(before, judge.snapshot())) == {("pkg/x.py", "modified")}
    assert judge.untracked() == {}


def test_a_project_folder_without_files_has_the_empty_snapshot(repo: Repo) -> None:
    (repo.path / "sub").mkdir()
    assert TreeJudge(repo.path / "sub").snapshot() == repo.git("hash-object", "-t", "tree", "/dev/null")


def test_line_endings_are_compared_raw_with_what_the_checkout_gave(repo: Repo) -> None:
    repo.write(".gitattributes", "*.txt text eol=crlf\n")
    repo.write("w.txt", "one\r\ntwo\r\n")
    repo.write("u.txt", "one\r\n")
    head = repo.commit("crlf")
    judge = TreeJudge(repo.path)
    before = judge.snapshot()
    assert judge.head_snapshot(head) == before != repo.git("rev-parse", "HEAD^{tree}")
    repo.write("w.txt", "one\r\n2\r\n")
    assert [(c.path, c.hunks) for c in judge.changes(before, judge.snapshot())] == [("w.txt", (Hunk(2, 1, 2, 1),))]
    repo.write("w.txt", "one\ntwo\n")  # git sees no change here, the tree does
    assert paths(judge.changes(before, judge.snapshot())) == {("w.txt", "modified")}


def test_the_head_of_a_dirty_crlf_tree_is_converted_without_a_driver(repo: Repo) -> None:
    repo.write(".gitattributes", "*.txt text eol=crlf\n")
    repo.write("w.txt", "one\r\n")
    head = repo.commit("crlf")
    clean = TreeJudge(repo.path).snapshot()
    repo.write("w.txt", "two\r\n")
    assert TreeJudge(repo.path).head_snapshot(head) == clean


def test_filters_hooks_and_monitors_of_the_repository_do_not_run(repo: Repo, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    evil = f"touch '{marker}'; cat"
    repo.write(".gitattributes", "*.py filter=evil diff=evil\n*.txt filter=evil ident text\n")
    head = repo.commit("attributes")
    for name, value in {
        "filter.evil.clean": evil, "filter.evil.smudge": evil, "filter.evil.process": evil, "filter.evil.required": "true",
        "diff.evil.textconv": evil, "diff.evil.command": evil, "diff.external": evil, "core.fsmonitor": evil,
        "core.hooksPath": str(tmp_path), "core.pager": evil, "core.sshCommand": evil, "gc.recentObjectsHook": evil,
    }.items():  # fmt: skip
        repo.git("config", name, value)
    for hook in ("post-index-change", "post-checkout", "reference-transaction"):
        (tmp_path / hook).write_text(f"#!/bin/sh\ntouch '{marker}'\n")
        (tmp_path / hook).chmod(0o755)
    judge = TreeJudge(repo.path)
    before = judge.head_snapshot(head)
    os.utime(repo.path / "a.py", (1, 1))
    repo.write("b.py", "two = 3\n")
    repo.write("c.txt", "$Id$\n")
    assert paths(judge.changes(before, judge.snapshot())) == {("b.py", "modified"), ("c.txt", "added")}
    judge.untracked()
    assert not marker.exists()
    repo.fails("status")
    assert marker.exists(), "the trap itself must work"


def test_submodules_count_by_their_head_and_their_files(repo: Repo, tmp_path: Path) -> None:
    other = Repo(tmp_path / "other")
    other.path.mkdir()
    other.git("init", "-q")
    other.write("lib.c", "int x;\n")
    other.commit("lib")
    repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other.path), "lib")
    head = repo.commit("submodule")
    judge = TreeJudge(repo.path)
    before = judge.snapshot()
    assert before == repo.git("rev-parse", "HEAD^{tree}") == judge.head_snapshot(head)
    inner = Repo(repo.path / "lib")
    inner.write("lib.c", "int y;\n")
    inner.write("new.c", "int z;\n")
    dirty = judge.snapshot()
    assert paths(judge.changes(before, dirty)) == {("lib/lib.c", "modified"), ("lib/new.c", "added")}
    assert {change.within for change in judge.changes(before, dirty)} == {"lib"}
    assert judge.lines(dirty, "lib/lib.c") == ("int y;",) and judge.lines(before, "lib/lib.c") == ("int x;",)
    assert judge.exists(before, "lib/lib.c") and not judge.exists(before, "lib/new.c")
    assert TreeJudge(repo.path).lines(dirty, "lib/new.c") == ("int z;",), "another process knows it too"
    assert paths(judge.changes(dirty, before)) == {("lib/lib.c", "modified"), ("lib/new.c", "deleted")}
    assert judge.as_committed(head, before, dirty)[1] == before, "no commit of ours can hold them"
    inner.commit("moved on")
    clean = judge.snapshot()
    assert paths(judge.changes(before, clean)) == paths(judge.changes(dirty, clean)) == {("lib", "modified")}
    inner.write("lib.c", "int w;\n")
    both = judge.changes(before, judge.snapshot())
    assert paths(both) == {("lib", "modified"), ("lib/lib.c", "modified")}
    inner.git("checkout", "-q", ".")
    assert judge.snapshot() == clean


def test_a_submodule_that_is_not_populated_is_no_change(repo: Repo) -> None:
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},lib")
    (repo.path / "lib").mkdir()
    repo.git("commit", "-qm", "pointer")
    assert TreeJudge(repo.path).snapshot() == repo.git("rev-parse", "HEAD^{tree}")


def test_repositories_within_the_tree_are_links_and_unborn_ones_their_files(repo: Repo) -> None:
    judge = TreeJudge(repo.path)
    before = judge.snapshot()
    repo.git("init", "-q", "nested")
    assert judge.snapshot() == before
    nested = Repo(repo.path / "nested")
    nested.write("x", "x")
    assert paths(judge.changes(before, judge.snapshot())) == {("nested/x", "added")}
    nested.git("init", "-q", "deeper")
    nested.write("deeper/y", "y")
    assert paths(judge.changes(before, judge.snapshot())) == {("nested/x", "added"), ("nested/deeper/y", "added")}
    shutil.rmtree(repo.path / "nested/deeper/.git")
    shutil.rmtree(repo.path / "nested/.git")
    plain = judge.changes(before, judge.snapshot())
    assert {(change.path, change.within) for change in plain} == {("nested/x", ""), ("nested/deeper/y", "")}
    repo.git("init", "-q", "nested")
    nested.write("z", "z")
    assert ("nested/z", "added") in paths(judge.changes(before, judge.snapshot()))
    shutil.rmtree(repo.path / "nested")
    assert judge.snapshot() == before
    repo.git("init", "-q", "nested")
    nested.write("x", "x")
    nested.commit("born")
    assert paths(judge.changes(before, judge.snapshot())) == {("nested", "added")}
    nested.write("x", "y")
    both = {("nested", "added"), ("nested/x", "modified")}
    assert paths(judge.changes(before, judge.snapshot())) == both


def test_a_worktree_within_its_own_repository_is_no_change(repo: Repo) -> None:
    judge = TreeJudge(repo.path)
    before = judge.snapshot()
    repo.git("worktree", "add", "-q", "-b", "side", "beside")
    (repo.path / "beside/more.py").write_text("x = 1\n")
    assert judge.snapshot() == before


def test_a_mode_counts_whatever_the_configuration_says(repo: Repo) -> None:
    repo.write("run.sh", "true\n")
    repo.commit("a script")
    repo.git("config", "core.fileMode", "false")
    judge = TreeJudge(repo.path)
    before = judge.snapshot()
    (repo.path / "run.sh").chmod(0o755)
    assert paths(judge.changes(before, judge.snapshot())) == {("run.sh", "mode")}


def test_what_is_ignored_from_the_middle_of_a_session_on_is_seen_all_the_same(repo: Repo, tmp_path: Path) -> None:
    judge = TreeJudge(repo.path)
    judge.follow_ignored()
    before = judge.snapshot()
    repo.write(".git/info/exclude", "hidden.py\n")
    (tmp_path / "ignore").write_text("other.py\n")
    repo.git("config", "core.excludesFile", str(tmp_path / "ignore"))
    repo.write("hidden.py", "x = 1\n")
    repo.write("other.py", "x = 1\n")
    both = {("hidden.py", "added"), ("other.py", "added")}
    assert paths(judge.changes(before, judge.snapshot())) == both
    assert paths(judge.changes(before, TreeJudge(repo.path).snapshot())) == both
    judge.follow_ignored()
    assert judge.snapshot() == before, "the next session leaves out what the user has git ignore"


def test_a_sparse_checkout_has_the_snapshot_of_its_head(repo: Repo) -> None:
    repo.write("in/x", "x\n")
    repo.write("out/y", "y\n")
    head = repo.commit("folders")
    judge = TreeJudge(repo.path)
    before = judge.snapshot()
    repo.git("sparse-checkout", "set", "--cone", "--sparse-index", "in")
    assert not (repo.path / "out").exists()
    assert judge.snapshot() == before == TreeJudge(repo.path).head_snapshot(head)
    repo.write("in/x", "2\n")
    assert paths(judge.changes(before, judge.snapshot())) == {("in/x", "modified")}
    repo.git("sparse-checkout", "disable")
    repo.write("out/y", "2\n")
    assert paths(judge.changes(before, judge.snapshot())) == {("in/x", "modified"), ("out/y", "modified")}


def test_what_is_written_where_a_sparse_checkout_left_a_file_out_is_seen_and_its_removal_too(repo: Repo) -> None:
    """Found by a review: git takes such an entry for absent whatever is on disk, and nothing looked."""
    for name in ("in/x", "out/deep/y", "out/z"):
        repo.write(name, f"{name}\n")
    repo.commit("folders")
    repo.git("sparse-checkout", "set", "--cone", "in")
    judge = TreeJudge(repo.path)
    before = judge.snapshot()
    repo.write("out/new", "untracked\n")
    assert paths(judge.changes(before, judge.snapshot())) == {("out/new", "added")}
    repo.write("out/deep/y", "2\n")
    both = {("out/new", "added"), ("out/deep/y", "modified")}
    assert paths(judge.changes(before, judge.snapshot())) == both
    assert paths(judge.changes(before, TreeJudge(repo.path).snapshot())) == both
    shutil.rmtree(repo.path / "out")
    assert judge.snapshot() == before


def test_a_file_cannot_be_hidden_by_the_bit_of_a_sparse_checkout(repo: Repo) -> None:
    repo.write("x", "x\n")
    repo.commit("x")
    judge = TreeJudge(repo.path)
    before = judge.snapshot()
    (repo.path / "x").unlink()
    repo.git("update-index", "--skip-worktree", "x")
    judge.snapshot()
    repo.write("x", "another\n")
    assert paths(judge.changes(before, judge.snapshot())) == {("x", "modified")}
    repo.write("x", "yet another\n")
    assert paths(judge.changes(before, judge.snapshot())) == {("x", "modified")}


@pytest.mark.parametrize("setting", ["core.splitIndex", "core.untrackedCache", "core.ignoreCase", "index.threads"])
def test_index_settings_of_the_user_do_not_matter(repo: Repo, setting: str) -> None:
    repo.git("config", setting, "true")
    repo.git("update-index", "--split-index") if "split" in setting else None
    repo.write("c.py", "three\n")
    repo.git("add", "c.py")
    repo.write("d.py", "four\n")
    judge = TreeJudge(repo.path)
    before = judge.head_snapshot(repo.git("rev-parse", "HEAD"))
    assert paths(judge.changes(before, judge.snapshot())) == {("c.py", "added"), ("d.py", "added")}
    assert set(judge.untracked()) == {"d.py"}


def test_sha256_repositories_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = Repo.make(tmp_path, monkeypatch, object_format="sha256")
    repo.write("a", "a\n")
    head = repo.commit("first")
    judge = TreeJudge(repo.path, big=3)
    repo.write("b", "long\n")
    assert paths(judge.changes(judge.head_snapshot(head), judge.snapshot())) == {("b", "added")}


def test_a_linked_worktree_has_its_own_snapshot(repo: Repo, tmp_path: Path) -> None:
    repo.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    side = Repo(tmp_path / "side")
    here, there = TreeJudge(repo.path), TreeJudge(side.path)
    assert here.snapshot() == there.snapshot()
    side.write("a.py", "side\n")
    assert paths(there.changes(here.snapshot(), there.snapshot())) == {("a.py", "modified")}


def test_an_unborn_branch_has_a_snapshot_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = Repo.make(tmp_path, monkeypatch)
    empty = TreeJudge(repo.path).snapshot()
    repo.write("a", "a")
    judge = TreeJudge(repo.path)
    assert paths(judge.changes(empty, judge.snapshot())) == {("a", "added")}


def test_without_git_there_is_no_snapshot(tmp_path: Path) -> None:
    judge = TreeJudge(tmp_path)
    assert (judge.snapshot(), judge.changes("", ""), judge.lines("x", "y"), judge.head_snapshot("HEAD")) == (
        "",
        (),
        None,
        "",
    )
    assert judge.untracked() == {}
    judge.forget()


def test_odd_things_in_the_tree_are_no_content(repo: Repo) -> None:
    judge = TreeJudge(repo.path)
    before = judge.snapshot()
    os.mkfifo(repo.path / "pipe")
    (repo.path / "loop").symlink_to("loop")
    (repo.path / "b.py").unlink()
    os.mkfifo(repo.path / "b.py")
    assert paths(judge.changes(before, judge.snapshot())) == {("loop", "added"), ("b.py", "deleted")}


def test_names_that_are_no_text_survive(repo: Repo) -> None:
    judge = TreeJudge(repo.path)
    before = judge.snapshot()
    name = os.fsdecode(b'caf\xe9 \t"q" *[x]?.py')
    (repo.path / name).write_text("x\n")
    after = judge.snapshot()
    assert paths(judge.changes(before, after)) == {(name, "added")}
    assert judge.lines(after, name) == ("x",)


def test_snapshots_can_be_compared_after_a_restart(repo: Repo) -> None:
    before = TreeJudge(repo.path).snapshot()
    repo.write("a.py", "one = 2\n")
    middle = TreeJudge(repo.path).snapshot()
    repo.write("a.py", "one = 3\n")
    judge = TreeJudge(repo.path)
    assert (
        paths(judge.changes(before, middle)) == paths(judge.changes(middle, judge.snapshot())) == {("a.py", "modified")}
    )
    assert judge.lines(middle, "a.py") == ("one = 2",)


def test_changes_faster_than_the_clock_ticks_are_seen(repo: Repo) -> None:
    """Same size, written in the same tick as the snapshot before: the time stamps cannot tell."""
    judge = TreeJudge(repo.path)
    snapshots = set()
    for round_ in range(30):
        repo.write("a.py", f"one = {round_:02}\n")
        snapshots.add(judge.snapshot())
    assert len(snapshots) == 30


def test_what_was_untracked_at_a_start_is_known_later(repo: Repo) -> None:
    repo.write("mine.txt", "mine\n")
    head = repo.git("rev-parse", "HEAD")
    judge = TreeJudge(repo.path)
    start = judge.snapshot()
    repo.write("mine.txt", "changed\n")
    repo.write("later.txt", "later\n")
    repo.commit("taken in", "mine.txt")
    mine = repo.git("hash-object", "--stdin", stdin=b"mine\n")
    assert TreeJudge(repo.path).untracked_at(start, head) == {"mine.txt": mine}
    judge.forget()
    assert set(judge.untracked_at(start, head)) == {"later.txt"}, "unknown: better to leave everything where it is"


def test_a_file_that_becomes_a_link_is_one_change(repo: Repo) -> None:
    judge = TreeJudge(repo.path)
    before = judge.snapshot()
    (repo.path / "a.py").unlink()
    (repo.path / "a.py").symlink_to("b.py")
    repo.write("b.py", "two = 3\n")
    changes = judge.changes(before, judge.snapshot())
    assert [(c.path, c.kind.value, c.hunks) for c in changes] == [
        ("a.py", "modified", (Hunk(1, 1, 0, 0), Hunk(0, 0, 1, 1))),
        ("b.py", "modified", (Hunk(1, 1, 1, 1),)),
    ]


def test_very_long_patches_are_read_in_portions(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = TreeJudge(repo.path)
    for number in range(20):
        repo.write(f"n{number:02}.txt", f"{number}\n" * 50)
    before = judge.snapshot()
    for number in range(20):
        repo.write(f"n{number:02}.txt", f"{number}\n" * 50 + "more\n")
    (repo.path / "n07.txt").rename(repo.path / "renamed.txt")
    after = judge.snapshot()
    whole = judge.changes(before, after)
    monkeypatch.setattr(stored_snapshots, "_PATCH_BYTES", 500)
    assert judge.changes(before, after) == whole
    assert {c.hunks for c in whole} == {(Hunk(50, 0, 51, 1),)}
    assert len(whole) == 20


def test_a_lost_store_is_a_typed_error(repo: Repo) -> None:
    judge = TreeJudge(repo.path)
    repo.write("a.py", "one = 2\n")
    before = judge.snapshot()
    judge.forget()
    repo.write("a.py", "one = 3\n")
    with pytest.raises(Unavailable) as caught:
        judge.changes(before, judge.snapshot())
    assert caught.value.key == "tool_errors.tree.snapshot_lost"


@pytest.mark.parametrize(
    "ask",
    [
        lambda judge, snapshot: judge.changes("", snapshot),
        lambda judge, snapshot: judge.content(snapshot, "a.py"),
        lambda judge, snapshot: judge.exists(snapshot, "a.py"),
        lambda judge, snapshot: judge.oids(snapshot, ["a.py"]),
    ],
)
def test_a_private_store_that_is_gone_as_a_whole_is_said_to_be_lost(
    repo: Repo, ask: Callable[[TreeJudge, str], object]
) -> None:
    judge = TreeJudge(repo.path)
    snapshot = judge.snapshot()
    shutil.rmtree(repo.path / ".git/code-intel/tree")
    with pytest.raises(Unavailable) as caught:
        ask(judge, snapshot)
    assert caught.value.key == "tool_errors.tree.snapshot_lost"


@pytest.mark.parametrize("path", ["", "../a.py", "/etc/passwd", "x/../../a.py"])
def test_no_snapshot_holds_what_is_no_path_of_the_project(repo: Repo, path: str) -> None:
    judge = TreeJudge(repo.path)
    snapshot = judge.snapshot()
    assert not judge.exists(snapshot, path)
    assert judge.content(snapshot, path) is None
    assert judge.oids(snapshot, ["a.py", path]).keys() == {"a.py"}


def test_tidying_keeps_the_stat_cache_until_the_store_outgrows_its_limit(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = TreeJudge(repo.path)
    repo.write("new.txt", "content\n")
    before = judge.snapshot()
    judge.head_snapshot(repo.git("rev-parse", "HEAD"))
    judge.tidy()
    assert judge.changes("", before)
    assert not (repo.path / ".git/code-intel/tree/heads.json").exists()
    monkeypatch.setattr(tree, "STORE_LIMIT_BYTES", 1)
    judge.tidy()
    assert not (repo.path / ".git/code-intel/tree").exists()
    assert judge.snapshot() == before
    TreeJudge(repo.path.parent).tidy()


def test_what_the_server_writes_is_no_part_of_the_head_either(repo: Repo) -> None:
    repo.write(".code-intel/logs/old.jsonl", "{}\n")
    (repo.path / "link").symlink_to("a.py")
    head = repo.commit("logs by mistake")
    judge = TreeJudge(repo.path)
    (repo.path / "link").unlink()
    (repo.path / "link").symlink_to("b.py")
    assert paths(judge.changes(judge.head_snapshot(head), judge.snapshot())) == {("link", "modified")}


def test_a_snapshot_tells_what_it_holds(repo: Repo) -> None:
    judge = TreeJudge(repo.path)
    repo.write("d/x", "x\n")
    now = judge.snapshot()
    assert [judge.exists(now, path) for path in ("a.py", "d/x", "d", "nowhere", "[a].py")] == [
        True, True, False, False, False,
    ]  # fmt: skip
    assert judge.oids(now, ["d/x", "none"]) == {"d/x": repo.git("hash-object", "d/x")}
    assert judge.oids("", ["a.py"]) == {}


def test_a_git_child_that_was_killed_while_it_held_our_index_does_not_stop_the_next_snapshot(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by the kill run: its lock stood in the way of every later snapshot of the same thread."""
    judge = TreeJudge(repo.path)
    first = judge.snapshot()
    (repo.path / "new.py").write_text("x = 1\n")
    (tmp_path / "bin").mkdir()
    git = shutil.which("git")
    killed = 'case "$*" in *write-tree*) : >"$GIT_INDEX_FILE.lock"; kill -KILL $$;; esac'
    (tmp_path / "bin" / "git").write_text(f'#!/bin/sh\n{killed}\nexec {git} "$@"\n')
    (tmp_path / "bin" / "git").chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
        with pytest.raises(Unavailable):
            judge.snapshot()
    assert judge.snapshot() != first
    assert not list((repo.path / ".git" / "code-intel").rglob("*.lock"))


def test_a_commit_is_held_against_all_that_was_reviewed(repo: Repo) -> None:
    """Also where the project is a folder of its repository: what a hook committed beside it is named."""
    repo.write("sub/kept.py", "x = 1\n")
    repo.write("sub/lost.py", "y = 1\n")
    repo.write("sub/crlf.py", "z = 1\r\n")
    judge = TreeJudge(repo.path / "sub")
    seen = judge.snapshot()
    (repo.path / "sub/lost.py").unlink()
    repo.write("sub/kept.py", "x = 2\n")
    repo.write("sub/crlf.py", "z = 1\n")
    repo.write("sub/stray.py", "")
    repo.write("beside.py", "")
    commit = repo.commit("more than that")
    kept = ["kept.py", "lost.py", "crlf.py", "never.py"]
    assert judge.altered(commit, kept, seen) == ("kept.py", "lost.py", "../beside.py", "stray.py")
    repo.git("rm", "-q", "-r", "sub")
    (repo.path / "sub").mkdir()
    assert judge.altered(repo.commit("all of it gone"), kept, seen)[:3] == ("crlf.py", "kept.py", "lost.py")


def test_line_endings_of_what_was_too_big_to_be_kept_are_no_difference(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alterations, "MEBIBYTE", 7)  # a carriage return ends a piece of the file now and then
    repo.write(".gitattributes", "*.txt text\n")
    repo.commit("attributes")
    judge = TreeJudge(repo.path, big=1000)
    repo.write("same.txt", b"line\r\n" * 500)
    repo.write("other.txt", b"line\r\n" * 500 + b"\r")
    seen = judge.snapshot()
    commit = repo.commit("both")
    assert judge.altered(commit, ["same.txt", "other.txt"], seen) == ()
    repo.write("other.txt", b"line\r\n" * 500)
    assert judge.altered(repo.commit("swapped"), ["same.txt", "other.txt"], seen)[:1] == ("other.txt",)


def pointer_to(content: bytes, more: str = "") -> str:
    """What large file storage commits for a content."""
    digest = hashlib.sha256(content).hexdigest()
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize {len(content)}\n{more}"


@pytest.mark.parametrize("big", [8, 1 << 20], ids=["too big to be kept", "kept"])
def test_a_pointer_of_large_file_storage_is_that_to_the_content_that_was_reviewed(repo: Repo, big: int) -> None:
    """Found by an opponent: whatever began like a pointer was believed."""
    content = b"reviewed content\n"
    names = ("good.bin", "other.bin", "more.sh", "short.bin")
    for name in names:
        repo.write(name, content.decode())
    judge = TreeJudge(repo.path, big=big)
    seen = judge.snapshot()
    pointers = {
        "good.bin": pointer_to(content),
        "other.bin": pointer_to(b"another content!\n"),
        "more.sh": pointer_to(content, "rm -rf everything\n"),
        "short.bin": pointer_to(content)[:-9],
    }
    for name, text in pointers.items():
        oid = repo.git("hash-object", "-w", "--stdin", stdin=text.encode())
        repo.git("update-index", "--add", "--cacheinfo", f"100644,{oid},{name}")
    repo.git("commit", "-qm", "pointers")
    assert judge.altered(repo.git("rev-parse", "HEAD"), names, seen) == ("more.sh", "other.bin", "short.bin")


def test_the_expansion_of_an_ident_is_no_difference_and_what_else_stands_there_is(repo: Repo) -> None:
    repo.write(".gitattributes", "marked* ident\n")
    repo.commit("attributes")
    judge = TreeJudge(repo.path)
    for name in ("marked.py", "marked2.py", "plain.py"):
        repo.write(name, "# $Id: 0123 $\nx = '$Id: open\n$'\n")
    seen = judge.snapshot()
    for name, text in (("marked2.py", "# $Id$\nx = 2\n"), ("plain.py", "# $Id$\nx = '$Id: open\n$'\n")):
        repo.write(name, text)
    commit = repo.commit("all")
    assert repo.git("show", "HEAD:marked.py") == "# $Id$\nx = '$Id: open\n$'"
    names = ("marked.py", "marked2.py", "plain.py")
    assert judge.altered(commit, names, seen) == ("marked2.py", "plain.py")


def test_another_kind_of_the_same_content_is_another_file(repo: Repo) -> None:
    """A hook may make a reviewed file executable, or a link of it, without a letter of it changing."""
    names = ("run.sh", "link", "same.py")
    for name in names:
        repo.write(name, "a.py")
    judge = TreeJudge(repo.path)
    seen = judge.snapshot()
    repo.git("add", "-A")
    repo.git("update-index", "--chmod=+x", "run.sh")
    repo.git("update-index", "--cacheinfo", f"120000,{repo.git('rev-parse', ':link')},link")
    repo.git("commit", "-qm", "otherwise")
    commit = repo.git("rev-parse", "HEAD")
    assert judge.altered(commit, names, seen) == ("link", "run.sh")
    repo.git("config", "core.filemode", "false")
    assert judge.altered(commit, names, seen) == ("link",)


def test_one_altered_file_is_found_among_hundreds_that_differ_by_line_endings_only(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by an opponent: only the first fifty differing files were looked into."""
    names = [f"f{number:03}.py" for number in range(120)]
    for name in names:
        repo.write(name, f"{name}\r\n" * 20)
    judge = TreeJudge(repo.path)
    seen = judge.snapshot()
    for name in names:
        repo.write(name, f"{name}\n" * 20)
    repo.write("f119.py", "666\n")
    monkeypatch.setattr(isolated_directory, "_AT_ONCE", 1000)
    assert judge.altered(repo.commit("converted"), names, seen) == ("f119.py",)


def test_a_name_that_differs_by_its_case_only_is_another_file_where_the_volume_says_so(repo: Repo) -> None:
    """Found by an opponent: `core.ignoreCase`, set by hand, hid `A.py` beside `a.py`."""
    judge = TreeJudge(repo.path)
    before = judge.snapshot()
    repo.git("config", "core.ignoreCase", "true")
    repo.write("A.py", "evil = 1\n")
    assert paths(judge.changes(before, judge.snapshot())) == {("A.py", "added")}


@pytest.mark.parametrize("attribute", ["-diff", "binary", "diff=x", "-text -diff"])
def test_what_the_project_calls_binary_is_compared_line_by_line_all_the_same(repo: Repo, attribute: str) -> None:
    """Found by an opponent: without lines nothing could be held against the evidence."""
    repo.write(".gitattributes", f"* {attribute}\n")
    repo.commit("attributes")
    judge = TreeJudge(repo.path)
    before = judge.snapshot()
    repo.write("a.py", "one = 1\ntwo = 2\n")
    [change] = judge.changes(before, judge.snapshot())
    assert change.hunks == (Hunk(1, 0, 2, 1),)


Asked = Callable[[TreeJudge, Repo], object]
QUESTIONS: dict[str, Asked] = {
    "content": lambda judge, repo: judge.content(repo.git("rev-parse", "HEAD^{tree}"), "a.py"),
    "lines": lambda judge, repo: judge.lines(repo.git("rev-parse", "HEAD^{tree}"), "a.py"),
    "exists": lambda judge, repo: judge.exists(repo.git("rev-parse", "HEAD^{tree}"), "a.py"),
    "oids": lambda judge, repo: judge.oids(repo.git("rev-parse", "HEAD^{tree}"), ["a.py", "b.py"]),
    "altered": lambda judge, repo: judge.altered(repo.git("rev-parse", "HEAD"), ["a.py"], judge.snapshot()),
    "changes": lambda judge, repo: judge.changes(repo.git("rev-parse", "HEAD~^{tree}"), judge.snapshot()),
    "head_snapshot": lambda judge, repo: judge.head_snapshot(repo.git("rev-parse", "HEAD")),
    "untracked": lambda judge, repo: judge.untracked(),
}


@pytest.mark.parametrize("status", [128, -9], ids=["failed", "killed"])
@pytest.mark.parametrize("name", QUESTIONS)
def test_a_git_that_failed_is_no_answer_about_a_tree(
    name: str, status: int, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by the errors at every point: a rev-parse that the disk failed made a whole commit look altered."""
    repo.write("a.py", "one = 'reviewed'\n")
    repo.commit("work", "a.py")
    repo.write("extra.txt", "untracked\n")
    expected, real = QUESTIONS[name](TreeJudge(repo.path), repo), process.run
    for fatal in range(99):
        shutil.rmtree(repo.path / ".git/code-intel", ignore_errors=True)
        gits = Fallible(status, fatal, (), real)
        with monkeypatch.context() as patched:
            patched.setattr(process, "run", gits.run)
            with suppress(Unavailable):
                assert QUESTIONS[name](TreeJudge(repo.path), repo) == expected, f"git {fatal}"
        if gits.seen <= fatal:
            break
    assert fatal >= 3


def test_a_damaged_memory_of_heads_is_no_snapshot(repo: Repo) -> None:
    head = repo.git("rev-parse", "HEAD")
    expected = TreeJudge(repo.path).head_snapshot(head)
    (repo.path / ".git/code-intel/tree/heads.json").write_text(json.dumps({head: "--batch"}))
    assert TreeJudge(repo.path).head_snapshot(head) == expected


@pytest.mark.parametrize("folder", ["", "pkg"])
def test_what_stands_on_disk_otherwise_than_in_a_commit_is_told(repo: Repo, folder: str) -> None:
    """What git was told to overlook is tracked all the same, in a project that is a folder of its repository as well."""
    names = ("kept.py", "hidden.py", "left.py", "gone.py", "same.py")
    for name in names:
        repo.write(f"pkg/{name}", f"{name} = 1\n")
    repo.write("elsewhere.py", "x = 1\n")
    repo.commit("more")
    head = repo.git("rev-parse", "HEAD")
    repo.git("update-index", "--assume-unchanged", "pkg/hidden.py")
    repo.git("update-index", "--skip-worktree", "pkg/left.py")
    for name in ("left.py", "gone.py"):
        (repo.path / "pkg" / name).unlink()
    for name in ("hidden.py", "kept.py", "new.py"):
        repo.write(f"pkg/{name}", "y = 2\n")
    judge = TreeJudge(repo.path / folder)
    prefix = "" if folder else "pkg/"
    told = judge.beside(head, judge.snapshot(), {f"{prefix}kept.py"})
    assert told == Beside(tuple(f"{prefix}{name}" for name in ("gone.py", "hidden.py")), (f"{prefix}new.py",))
    assert judge.left_out() == (f"{prefix}left.py",)
    assert judge.beside(head, "", ()) == Beside()


def test_nothing_lies_beside_a_commit_that_is_checked_out(repo: Repo) -> None:
    """Line endings that the checkout gave are no difference; a filter driver that git is told of hides none."""
    repo.write(".gitattributes", "*.txt text eol=crlf\n")
    repo.write("a.txt", "one\r\n")
    repo.commit("more")
    head = repo.git("rev-parse", "HEAD")
    judge = TreeJudge(repo.path)
    assert judge.beside(head, judge.snapshot(), ()) == Beside()
    repo.write(".git/info/attributes", "* filter=some\n")
    repo.git("update-index", "--assume-unchanged", "a.py")
    repo.write("a.py", "another = 1\n")
    assert judge.beside(head, judge.snapshot(), ()) == Beside(("a.py",), ())
