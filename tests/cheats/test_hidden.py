"""What git is told to pass over: in the commit, and where the commands that prove it look."""

import shutil
from collections.abc import Callable

import pytest

from tests.e2e.driver import git, repository
from tests.e2e.stage import Stage, plan, report, verdict


def submodule(stage: Stage) -> None:
    """A library under `vendor`, committed."""
    library = repository(stage.root.parent / "library", {"a.py": "one = 1\n"})
    stage.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "vendor")
    stage.git("commit", "-qm", "Add a library")


def test_an_edit_in_a_submodule(stage: Stage) -> None:
    """Stopped by: the files of a submodule are looked at like all others, and nobody explored this one."""
    submodule(stage)
    stage.planned()
    stage.edit()
    stage.write("vendor/a.py", "one = 2\n")
    stage.refused("nobody explored: vendor/a.py", **report())


def test_an_edit_in_a_submodule_that_is_not_committed_there(stage: Stage) -> None:
    """Stopped by: a commit here cannot hold it, so the work is not over before it is committed there; the refusal says how."""
    submodule(stage)
    stage.framed()
    stage.call("get_symbols", path="vendor/a.py")
    stage.explore("app.py", "vendor/a.py")
    stage.shut_gates()
    stage.accepted(tasks=[{"id": "t1", "description": "One", "status": "pending", "checklist": ["Two in the library"]}])
    stage.edit("vendor/a.py", "one = 2\n")
    stage.accepted(**report(evidence="vendor/a.py:1", item="Two in the library"))
    answer = stage.refused("no commit of this project can hold them: vendor/a.py", summary="Done.")
    for command in ("git -C vendor add -A", "git -C vendor commit -m"):
        assert command in answer["remedy"]
    stage.git("-C", "vendor", "add", "-A")
    stage.git("-C", "vendor", "commit", "-qm", "Two")
    stage.accepted(summary="Done.")
    stage.accepted(**verdict())
    stage.write("vendor/a.py", "one = 3\n")
    stage.refused("no commit of this project can hold them: vendor/a.py", **stage.commit())
    stage.git("-C", "vendor", "checkout", "-q", ".")
    assert stage.accepted(**stage.commit())["phase"] == "QUALITY_REVIEW"
    assert stage.git("rev-parse", "HEAD:vendor") == stage.git("-C", "vendor", "rev-parse", "HEAD")


def test_a_nested_repository_without_a_commit(stage: Stage) -> None:
    """Stopped by: its files are seen like those of any folder; removing its `.git` leads on."""
    stage.planned()
    stage.edit()
    stage.git("init", "-q", "tools")
    stage.write("tools/evil.py", "x = 1\n")
    stage.refused("nobody explored: tools/evil.py", **report())
    stage.explain("tools/evil.py")
    stage.finished()
    stage.refused("`git -C tools add -A`", **stage.commit())
    shutil.rmtree(stage.root / "tools/.git")
    stage.accepted(**stage.commit())
    assert "tools/evil.py" in stage.git("ls-tree", "-r", "--name-only", "HEAD")


def nothing(stage: Stage) -> None:
    """A `.git` that leads nowhere."""
    stage.write("pkg/in/.git", "gitdir: nowhere\n")


def our_git_directory(stage: Stage) -> None:
    """A file that leads to the project's own git directory."""
    stage.write("pkg/in/.git", "gitdir: ../../.git\n")


def link_to_our_git_directory(stage: Stage) -> None:
    """The same as a link."""
    (stage.root / "pkg/in/.git").symlink_to("../../.git")


def anothers_git_directory(stage: Stage) -> None:
    """A file that leads to the git directory of another repository within."""
    stage.git("init", "-q", "pkg/other")
    stage.write("pkg/in/.git", "gitdir: ../other/.git\n")


def bare(stage: Stage) -> None:
    """A repository without a working tree."""
    stage.git("init", "-q", "--bare", "pkg/in/.git")


def working_tree_elsewhere(stage: Stage) -> None:
    """A repository that says its files are in another place."""
    stage.git("init", "-q", "pkg/in")
    stage.git("-C", "pkg/in", "config", "core.worktree", str(stage.root.parent))


def excluded(stage: Stage) -> None:
    """A new repository that ignores all there is."""
    stage.git("init", "-q", "pkg/in")
    stage.write("pkg/in/.git/info/exclude", "*\n")


def copied_worktree(stage: Stage) -> None:
    """A file that leads to what git keeps of a linked worktree, in another place than that."""
    stage.git("worktree", "add", "-q", "--detach", "../elsewhere")
    shutil.copy(stage.root.parent / "elsewhere/.git", stage.root / "pkg/in/.git")


ODD = [
    nothing, our_git_directory, link_to_our_git_directory, anothers_git_directory, bare, working_tree_elsewhere,
    excluded, copied_worktree,
]  # fmt: skip


@pytest.mark.parametrize("make", ODD, ids=lambda make: make.__name__)
def test_a_folder_that_git_takes_for_a_repository_and_is_none_of_its_own(
    stage: Stage, make: Callable[[Stage], None]
) -> None:
    """Stopped by: the files in it count like those of any folder; they can be added with a reason, and committed or not."""
    stage.planned()
    stage.edit()
    (stage.root / "pkg/in").mkdir()
    make(stage)
    stage.write("pkg/in/evil.py", "x = 1\n")
    stage.refused("nobody explored: pkg/in/evil.py", **report())
    stage.explain("pkg/in/evil.py")
    stage.accepted(**report())
    stage.write("pkg/in/evil.py", "x = 2\n")
    stage.accepted(summary="Done.")
    stage.accepted(**verdict())
    stage.write("pkg/in/more.py", "x = 1\n")
    stage.refused("not reviewed: pkg/in/more.py", **stage.commit() | {"reviewed_files": ["app.py", "pkg/in/evil.py"]})
    shutil.rmtree(stage.root / "pkg/in")
    stage.accepted(**stage.commit())


def test_a_repository_deeper_than_any_project_has_them(stage: Stage) -> None:
    """Stopped by: repositories within one another are looked into however deep they lie."""
    stage.planned()
    stage.edit()
    deep = "in/" * 40
    for level in range(1, 41):
        stage.git("init", "-q", "in/" * level)
    stage.write(f"{deep}evil.py", "x = 1\n")
    stage.refused(f"nobody explored: {deep}evil.py", **report())
    stage.write("in/in/in/in/in/evil.py", "x = 1\n")
    stage.refused("nobody explored: in/in/in/in/in/evil.py", **report())
    shutil.rmtree(stage.root / "in")
    stage.accepted(**report())


def test_a_repository_within_that_is_made_another_after_it_was_looked_at(stage: Stage) -> None:
    """Stopped by: what its `.git` is now is looked at, not what it was."""
    library = repository(stage.root / "pkg/in", {"a.py": "one = 1\n"})
    stage.planned()
    stage.edit()
    shutil.rmtree(library / ".git")
    stage.write("pkg/in/.git", "gitdir: ../../.git\n")
    stage.write("pkg/in/evil.py", "x = 1\n")
    assert "pkg/in/evil.py" in stage.refused("nobody explored", **report())["unexplored"]


def test_another_working_tree_of_the_project_within_it(stage: Stage) -> None:
    """Seen by: nobody looks at its files, which have a session of their own, and the answers say so."""
    stage.git("worktree", "add", "-q", "old")
    first = stage.begin(fast=True, no_doc=True)
    assert "lie in the project: old." in str(first["warnings"])
    stage.accepted(action_type="change")
    stage.explain("app.py")
    stage.accepted(**plan())
    stage.edit()
    stage.git("worktree", "add", "-q", "--detach", "pkg/new")
    for folder in ("old", "pkg/new"):
        stage.write(f"{folder}/evil.py", "x = 1\n")
    stage.accepted_list(report(), {"summary": "Done."})
    stage.accepted(**verdict())
    assert "lie in the project: pkg/new." in stage.accepted(**stage.commit())["warning"]


def test_what_is_called_like_a_servers_folder_in_a_repository_within(stage: Stage) -> None:
    """Stopped by: only what our own server writes is no change."""
    stage.planned()
    stage.edit()
    stage.git("init", "-q", "pkg/in")
    stage.write("pkg/in/.code-intel/logs/evil.py", "x = 1\n")
    stage.refused("nobody explored: pkg/in/.code-intel/logs/evil.py", **report())


def test_what_a_build_leaves_in_a_submodule_may_stay_there(stage: Stage) -> None:
    submodule(stage)
    stage.planned()
    stage.edit()
    stage.write("vendor/a.o", "built\n")
    stage.explain("vendor/a.o")
    stage.finished()
    left = {"path": "vendor/a.o", "decision": "leave", "reason": "The build left it there."}
    stage.accepted(**stage.commit(left))
    assert (stage.root / "vendor/a.o").exists()


def test_a_mode_that_git_is_told_not_to_look_at(stage: Stage) -> None:
    """Stopped by: the bit is looked at as it is, and one that belongs to the work is committed."""
    stage.git("config", "core.fileMode", "false")
    stage.planned("app.py", "README.md")
    stage.edit()
    (stage.root / "lib.py").chmod(0o755)
    stage.refused("nobody explored: lib.py", **report())
    (stage.root / "lib.py").chmod(0o644)
    assert stage.call("check_write_target", path="README.md")["allowed"]
    (stage.root / "README.md").chmod(0o755)
    stage.finished()
    stage.accepted(**stage.commit())
    assert stage.git("ls-tree", "HEAD", "README.md", "app.py").split()[::4][:2] == ["100755", "100644"]


def test_attributes_of_the_repository_changed_in_the_session(stage: Stage) -> None:
    """Seen by: what lies there is compared byte by byte, and the commit with what was reviewed."""
    stage.planned()
    stage.edit()
    stage.git("config", "filter.old.clean", "sed s/99/10/")
    stage.write(".git/info/attributes", "*.py filter=old\n")
    stage.write("lib.py", stage.read("lib.py").replace("10", "99"))
    stage.refused("nobody explored: lib.py", **report())
    stage.explain("lib.py")
    stage.finished()
    assert "does not hold what was reviewed: lib.py" in stage.accepted(**stage.commit())["warning"]


def test_the_folder_of_a_verify_command_is_led_elsewhere(stage: Stage) -> None:
    """Stopped by: where a command runs is found out when it runs; outside the project nothing runs."""
    (stage.root / "checks").mkdir()
    stage.write("checks/keep", "\n")
    stage.git("add", "checks")
    command = {"argv": ["python3", "-c", "import os; assert os.path.exists('keep')"], "cwd": "checks"}
    stage.user_wants(command)  # type: ignore[arg-type]
    stage.planned("app.py", "checks/keep")
    stage.edit()
    outside = stage.root.parent / "outside"
    outside.mkdir()
    (outside / "keep").write_text("\n")
    shutil.rmtree(stage.root / "checks")
    (stage.root / "checks").symlink_to(outside)
    stage.explain("checks")
    stage.call("check_write_target", paths=["checks", "checks/keep"])
    stage.accepted(**report())
    stage.accepted(summary="Done.")
    answer = stage.agent.submit(**verdict())
    assert "no folder checks in the project" in str(answer), answer


def test_another_commit_of_a_submodule_that_git_is_told_to_ignore(stage: Stage) -> None:
    """Stopped by: only reviewed paths are committed, and a submodule is a path whatever git is told to ignore."""
    inner = stage.root / "dep"
    git(stage.root, "init", "-q", "-b", "main", "dep")
    for text in ("good", "evil"):
        (inner / "dep.py").write_text(f"NAME = '{text}'\n")
        git(inner, "add", "dep.py")
        git(inner, "commit", "-qm", text)
    good, evil = git(inner, "rev-parse", "HEAD~1", "HEAD").split()
    git(inner, "checkout", "-q", good)
    stage.write(".gitmodules", '[submodule "dep"]\n\tpath = dep\n\turl = ../dep\n\tignore = all\n')
    stage.git("add", ".gitmodules", "dep")
    stage.git("commit", "-qm", "A submodule")
    stage.verified()
    stage.cheat()
    stage.git("update-index", "--cacheinfo", f"160000,{evil},dep")
    stage.accepted(**stage.commit())
    assert stage.git("rev-parse", "HEAD:dep").strip() == good
    stage.accepted(summary="Merged.")
    assert stage.git("rev-parse", "main:dep").strip() == good
    stage.notice()


def test_a_hook_that_commits_another_commit_of_a_submodule_that_git_is_told_to_ignore(stage: Stage) -> None:
    """Seen by: every path of the commit is held against the review, submodules that git is told to ignore as well."""
    stage.write(".gitmodules", '[submodule "dep"]\n\tpath = dep\n\turl = ../dep\n\tignore = all\n')
    first = stage.git("rev-parse", "HEAD").strip()
    stage.git("update-index", "--add", "--cacheinfo", f"160000,{first},dep")
    stage.git("add", ".gitmodules")
    stage.git("commit", "-qm", "A submodule")
    (stage.root / "dep").mkdir()
    evil = stage.git("rev-parse", "HEAD").strip()
    stage.verified()
    hook = stage.write(".git/hooks/pre-commit", f"#!/bin/sh\ngit update-index --cacheinfo 160000,{evil},dep\n")
    hook.chmod(0o755)
    stage.cheat()
    answer = stage.accepted(**stage.commit())
    assert "does not hold what was reviewed: dep." in answer["warning"]
    stage.notice()
    stage.accepted(summary="Merged.")
    assert "Code-Intel-Altered: 1 file(s)" in stage.git("log", "-1", "--format=%B", "main")
