"""Writing what was not explored, by every way round the tools."""

import mmap
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.stage import APP, APP_DONE, Stage, plan, report, verdict

OTHER = "LIMIT = 99\n\n\ndef other():\n    return LIMIT\n"


def by_shell(root: Path) -> None:
    (root / "lib.py").write_text(OTHER)


def by_symlink(root: Path) -> None:
    (root / "alias.py").symlink_to("lib.py")
    (root / "alias.py").write_text(OTHER)


def by_hard_link(root: Path) -> None:
    os.link(root / "lib.py", root / "twin.py")
    (root / "twin.py").write_text(OTHER)
    (root / "twin.py").unlink()


def by_dots(root: Path) -> None:
    (root / "pkg" / ".." / "lib.py").write_text(OTHER)


def by_replacement(root: Path) -> None:
    (root / "fresh.tmp").write_text(OTHER)
    (root / "fresh.tmp").replace(root / "lib.py")


def by_deletion(root: Path) -> None:
    (root / "lib.py").unlink()


def by_renaming(root: Path) -> None:
    (root / "lib.py").rename(root / "lib2.py")


def by_linking_away(root: Path) -> None:
    (root / "lib.py").unlink()
    (root / "lib.py").symlink_to("/dev/null")


def by_mode(root: Path) -> None:
    (root / "lib.py").chmod(0o755)


def by_keeping_size_and_time(root: Path) -> None:
    found = (root / "lib.py").stat()
    (root / "lib.py").write_text((root / "lib.py").read_text().replace("10", "99"))
    os.utime(root / "lib.py", ns=(found.st_atime_ns, found.st_mtime_ns))


@pytest.mark.parametrize(
    "write",
    [
        by_shell,
        by_symlink,
        by_hard_link,
        by_dots,
        by_replacement,
        by_deletion,
        by_renaming,
        by_linking_away,
        by_mode,
        by_keeping_size_and_time,
    ],
)
def test_an_unexplored_file_is_changed_behind_the_tools(stage: Stage, write: Callable[[Path], None]) -> None:
    """Stopped by: the tree; every file changed since the last report must be in the writable set, whoever wrote it."""
    stage.planned()
    stage.edit()
    write(stage.root)
    stage.refused("lib.py", **report())


@pytest.mark.parametrize("path", ["new/file.py", "pkg/sub/file.py", ".github/workflows/ci.yml", "tests/conftest.py"])
def test_a_new_file_where_nothing_was_explored(stage: Stage, path: str) -> None:
    """Stopped by: a new file is writable only beside an explored one."""
    stage.planned()
    stage.edit()
    assert stage.call("check_write_target", path=path)["allowed"] is False
    stage.write(path, "x = 1\n")
    stage.refused(path, **report())


@pytest.mark.parametrize(
    "path", ["./lib.py", "pkg/../lib.py", "{root}/lib.py", "{root}/pkg/../lib.py", "alias.py", "LIB.PY/../lib.py"]
)
def test_another_name_for_an_unexplored_file(stage: Stage, path: str) -> None:
    """Stopped by: a path is followed as the operating system would before it is judged."""
    (stage.root / "alias.py").symlink_to("lib.py")
    stage.git("add", "-A")
    stage.git("commit", "-qm", "Add an alias")
    stage.planned()
    answer = stage.call("check_write_target", path=path.format(root=stage.root))
    assert answer["allowed"] is False
    assert answer["results"][0]["path"] == "lib.py"
    stage.notice()


def test_a_refused_write_made_by_shell_all_the_same(stage: Stage) -> None:
    """Stopped by: the tree is judged, not the tool; asking and ignoring the answer helps nothing."""
    stage.planned()
    assert stage.call("check_write_target", path="lib.py")["allowed"] is False
    stage.write("lib.py", OTHER)
    stage.refused("nobody explored: lib.py", **report(evidence="lib.py:1"))


def test_code_written_before_it_was_understood(stage: Stage) -> None:
    """Stopped by: the tree at READY is compared with the session's start."""
    stage.begin(fast=True, no_doc=True)
    stage.write("app.py", APP_DONE)
    stage.cheat()
    stage.accepted(action_type="change")
    stage.refused("changed before the plan was accepted: app.py", **plan())


def test_an_explored_file_written_before_ready(stage: Stage) -> None:
    """Stopped by: the tree at READY; exploring a file allows to write it later, not now."""
    stage.framed()
    stage.explore()
    stage.write("app.py", APP_DONE)
    stage.cheat()
    for field in ("needs_more_information", "has_unverified_hypotheses", "needs_impact_analysis"):
        stage.accepted(**{field: False}, reason="Everything was found already.")
    stage.refused("changed before the plan was accepted: app.py", **plan())


def test_an_unexplored_file_changed_after_the_last_report(stage: Stage) -> None:
    """Stopped by: the tree is judged again at the completion."""
    stage.reported()
    stage.write("lib.py", OTHER)
    stage.refused("nobody explored: lib.py", summary="All is done.")


def test_an_unexplored_file_changed_before_the_verdict(stage: Stage) -> None:
    """Stopped by: the tree is judged again before the proofs run."""
    stage.completed()
    stage.write("lib.py", OTHER)
    stage.refused("lib.py", **verdict())


def test_an_unexplored_file_changed_after_the_receipt(stage: Stage) -> None:
    """Stopped by: the tree is judged again before the commit; it is neither kept nor committed."""
    stage.verified()
    stage.write("lib.py", OTHER)
    stage.refused("explored by nobody: lib.py", **stage.commit())


def test_a_file_changed_between_the_review_and_the_commit_payload(stage: Stage) -> None:
    """Stopped by: the tree is compared with the base when the payload comes; the new path is not reviewed."""
    stage.verified()
    payload = stage.commit()
    stage.write("lib.py", OTHER)
    stage.refused("not reviewed: lib.py", **payload)


def test_a_file_changed_after_the_commit(stage: Stage) -> None:
    """Stopped by: QUALITY_REVIEW takes its verdict only on exactly what was committed."""
    stage.framed()
    stage.explore()
    for field in ("needs_more_information", "has_unverified_hypotheses", "needs_impact_analysis"):
        stage.accepted(**{field: False}, reason="Everything was found already.")
    stage.accepted(**plan())
    stage.edit()
    stage.finished()
    stage.accepted(**stage.commit())
    stage.write("app.py", APP_DONE.replace("return 2", "return 666"))
    stage.refused("Files changed since the commit: app.py", issues=[], quality_prompt_used="quality_review")


def test_a_file_changed_after_the_commit_of_a_fast_session(stage: Stage) -> None:
    """Seen by: no step judges it any more, so the last answer says that it is in no commit."""
    stage.write("notes.txt", "the user's, and older than the session\n")
    stage.committed()
    stage.write("lib.py", OTHER)
    stage.write("new.py", "x = 1\n")
    answer = stage.accepted(summary="Merged.")
    assert "Changed since the commit, and in no commit: lib.py, new.py." in answer["warning"]
    assert OTHER not in stage.git("show", "main:lib.py")


def test_a_file_changed_after_a_commit_of_nothing(stage: Stage) -> None:
    """Seen by: it is named at the end of a session whose branch has not moved, too."""
    stage.verified()
    stage.accepted(**stage.commit({"path": "app.py", "decision": "discard", "reason": "Not wanted after all."}))
    stage.write("lib.py", OTHER)
    assert "Changed since the commit, and in no commit: lib.py." in stage.accepted(summary="Merged.")["warning"]


def test_a_hook_that_writes_files_and_commits_none(stage: Stage) -> None:
    """Seen by: the answer of the commit names what lies there otherwise than it was reviewed and than it was committed."""
    stage.write(".git/hooks/pre-commit", "#!/bin/sh\necho '# more' >>lib.py\necho >made.txt\n").chmod(0o755)
    stage.verified()
    answer = stage.accepted(**stage.commit())
    assert "while it was committed" in answer["warning"] and "in no commit: lib.py, made.txt." in answer["warning"]
    assert "warning" not in stage.accepted(summary="Merged.")


def test_a_file_made_a_folder_of_files_that_nobody_explored(stage: Stage) -> None:
    """Stopped by: a name that was asked for speaks of a file; what lies below a folder of that name has names of its own."""
    stage.planned()
    assert stage.call("check_write_target", path="app.py")["allowed"]
    (stage.root / "app.py").unlink()
    stage.write("app.py/deep.py", "def main():\n    return 2\n")
    stage.refused("nobody explored: app.py/deep.py", **report(evidence="app.py"))
    stage.explain("app.py/deep.py")
    stage.accepted(**report(evidence="app.py/deep.py:2"))


def test_a_dirty_file_is_not_carried_into_the_merge(stage: Stage) -> None:
    """Stopped by: only the committed content is merged; an edit after the commit stays uncommitted or stops the switch."""
    stage.committed()
    stage.write("app.py", APP.replace("return 1", "return 666"))
    stage.call("submit_phase", data={"summary": "Merged."})
    assert "666" not in stage.git("show", "main:app.py")
    stage.notice()


def test_the_writable_set_widened_without_a_reason(stage: Stage) -> None:
    """Stopped by: add_explored_files wants a reason, which is logged and kept."""
    stage.planned()
    for reason in ("", "needed", "   .   .   "):
        assert stage.call("add_explored_files", paths=["lib.py"], reason=reason)["success"] is False
    assert stage.call("check_write_target", path="lib.py")["allowed"] is False
    stage.notice()


def test_the_writable_set_widened_outside_ready(stage: Stage) -> None:
    """Stopped by: add_explored_files runs in READY alone."""
    stage.verified()
    stage.write("lib.py", OTHER)
    answer = stage.call("add_explored_files", paths=["lib.py"], reason="I changed it just now.")
    assert answer["error"] == "phase_mismatch"
    stage.refused("explored by nobody: lib.py", **stage.commit())


@pytest.mark.parametrize("folder", [".", "pkg", "{root}/pkg/"])
def test_a_folder_added_instead_of_its_files(stage: Stage, folder: str) -> None:
    """Stopped by: the writable set holds files; a folder is refused, with the way out."""
    stage.planned()
    answer = stage.call("add_explored_files", paths=[folder.format(root=stage.root)], reason="All of it is needed.")
    assert answer["error"] == "folder_named"
    assert "Name the files" in answer["remedy"]
    stage.edit()
    stage.write("pkg/deep.py", "def deep():\n    return 4\n")
    stage.refused("nobody explored: pkg/deep.py", **report())


@pytest.mark.parametrize("made", [Path.mkdir, Path.touch])
def test_a_folder_made_of_a_name_that_was_added(stage: Stage, made: Callable[[Path], None]) -> None:
    """Stopped by: what is below a folder has names of its own, also where the folder came later."""
    stage.planned()
    stage.explain("made")
    made(stage.root / "made")
    stage.edit()
    (stage.root / "made").unlink() if made is Path.touch else None
    stage.write("made/deep.py", "def deep():\n    return 4\n")
    stage.refused("nobody explored: made/deep.py", **report())


def test_a_repository_named_instead_of_its_files(stage: Stage) -> None:
    """Stopped by: the name of a repository within speaks of its commit, not of the files in it."""
    stage.git("init", "-q", "tools")
    stage.write("tools/one.py", "x = 1\n")
    stage.planned()
    stage.call("add_explored_files", paths=["tools"], reason="The tools are needed.")
    stage.edit()
    stage.write("tools/one.py", "x = 2\n")
    stage.refused("nobody explored: tools/one.py", **report())


def test_a_folder_asked_for_instead_of_its_files(stage: Stage) -> None:
    """Stopped by: a write is allowed by the name of the file."""
    stage.planned("app.py", "pkg/deep.py")
    stage.call("check_write_target", path="pkg")
    stage.edit()
    stage.write("pkg/new.py", "x = 2\n")
    stage.refused("check_write_target for pkg/new.py", **report())


class Page:
    """A file written through a page in memory: while the page is dirty, another write changes no stamp of the file."""

    def __init__(self, stage: Stage, path: str) -> None:
        self.file = stage.root / path
        with self.file.open("r+b") as file:
            self.page = mmap.mmap(file.fileno(), 0)
        self.page[0:1] = self.page[0:1]
        os.utime(self.file, (1, 1))

    def replace(self, old: bytes, new: bytes) -> None:
        before = self.file.stat()
        at = self.page.find(old)
        self.page[at : at + len(new)] = new
        assert self.file.stat() == before


def test_an_unexplored_file_is_written_through_a_page_before_the_verdict(stage: Stage) -> None:
    """Stopped by: contents are compared where it is decided, whatever the stamps say."""
    page = Page(stage, "lib.py")
    stage.completed()
    page.replace(b"10", b"99")
    stage.refused("lib.py", **verdict())


def test_a_quick_session_writes_an_unexplored_file_through_a_page(stage: Stage) -> None:
    """Stopped by: a quick session is over with its verdict, so contents are compared there."""
    page = Page(stage, "lib.py")
    stage.completed(quick=True)
    page.replace(b"10", b"99")
    stage.refused("lib.py", **verdict())


def test_a_quick_session_without_a_verification_writes_an_unexplored_file_through_a_page(stage: Stage) -> None:
    """Stopped by: such a session is over with its last report's completion."""
    page = Page(stage, "lib.py")
    stage.reported(quick=True, no_verify=True)
    page.replace(b"10", b"99")
    stage.refused("nobody explored: lib.py", summary="Done.")


def test_an_unexplored_file_is_written_through_a_page_before_the_commit(stage: Stage) -> None:
    """Stopped by: the commit's own look compares contents too."""
    page = Page(stage, "lib.py")
    stage.verified()
    page.replace(b"10", b"99")
    stage.refused("not reviewed: lib.py", **stage.commit())


def test_work_that_is_done_through_a_page_is_seen_by_its_report(stage: Stage) -> None:
    page = Page(stage, "app.py")
    stage.planned()
    assert stage.call("check_write_target", path="app.py")["allowed"]
    page.replace(b"return 1", b"return 2")
    stage.accepted(**report())
