"""What git is told to pass over: in the commit, and where the commands that prove it look."""

from tests.e2e.driver import git
from tests.e2e.stage import Stage


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
