"""Git worktrees: those that the user makes, and the one that a session with the flag worktree gets (SPEC 7, 12)."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from code_intel_server.cli import abandon, doctor, resume, status, trash, trust, waive
from code_intel_server.workspace.project.trust import Approvals
from tests.cli.helpers import own_state
from tests.e2e.driver import Fields, Server, git, repository
from tests.e2e.fast_session import FILES, commit_all, edit_and_report, plan, start, to_ready
from tests.faults.test_process import Wire, descendants, until

ARCHIVE, FORMAT = "refs/code-intel/archive", "--format=%(refname)"
CONFIG = json.dumps({"verify_commands": [["true"]]})


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    own_state(monkeypatch, tmp_path)
    return repository(tmp_path / "project", {**FILES, ".code-intel/config.json": CONFIG})


def test_a_new_worktree_of_the_users_needs_no_trust_of_its_own(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(root)
    assert trust.main(["--yes"]) == 0
    second = tmp_path / "second"
    git(root, "worktree", "add", "-q", "-b", "side", str(second))
    monkeypatch.chdir(second)
    assert trust.main(["--check"]) == 0
    with Server(second) as server:
        answer = start(server, quick=True)
        assert not any("trust" in warning for warning in answer.get("warnings", [])), answer
    capsys.readouterr()


def test_a_folder_that_claims_to_be_a_worktree_of_a_trusted_repository_is_not_trusted(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    assert trust.main(["--yes"]) == 0
    foreign = tmp_path / "foreign"
    shutil.copytree(root / ".code-intel", foreign / ".code-intel")
    record = foreign / "record"
    record.mkdir()
    for path, text in {
        foreign / ".git": f"gitdir: {record}",
        record / "commondir": str(root / ".git"),
        record / "gitdir": str(foreign / ".git"),
        record / "HEAD": "ref: refs/heads/main",
    }.items():
        path.write_text(text + "\n")
    assert git(foreign, "rev-parse", "--git-common-dir").strip() == str(root / ".git"), "git itself believes it"
    monkeypatch.chdir(foreign)
    assert trust.main(["--check"]) == 1


def begin(server: Server, **flags: object) -> Path:
    """A fast session with a worktree up to its plan, app.py being writable; the worktree."""
    answer = start(server, fast=True, no_doc=True, no_verify=True, worktree=True, **flags)
    server.accepted(action_type="change", target_symbols=["main"])
    server.call("add_explored_files", paths=["app.py"], reason="holds the function to change")
    return Path(answer["worktree"])


def commit(server: Server, place: Path) -> None:
    """From the plan to the commit."""
    plan(server)
    edit_and_report(server, place)
    server.accepted(summary="All is done.")
    commit_all(server)


def merge(server: Server) -> Fields:
    return server.call("submit_phase", data={"summary": "Merged."})


def nothing_left(root: Path) -> None:
    """No worktree, no task branch and no checkpoint of any session."""
    assert len(git(root, "worktree", "list").splitlines()) == 1
    assert git(root, "branch", "--list", "llm_task_*", "--format=%(refname:short)") == ""
    assert not list((root / ".code-intel").glob("worktrees/*"))
    assert not list((root / ".code-intel").glob("sessions/*.json"))


def test_a_session_works_in_its_worktree_and_is_merged_where_the_users_folder_is_clean(root: Path) -> None:
    with Server(root) as server:
        place = begin(server)
        assert place.parent == root / ".code-intel/worktrees"
        assert git(place, "branch", "--show-current").startswith("llm_task_")
        found = server.call("search_text", patterns="def main")
        assert found["worktree"] == str(place) and found["results"][0]["path"] == "app.py"
        assert str(place) in server.call("get_session_status")["hints"][0]
        commit(server, place)
        assert (root / "app.py").read_text() == FILES["app.py"]
        assert git(root, "status", "--porcelain") == "" and git(root, "branch", "--show-current") == "main\n"
        done = merge(server)
        assert done["phase"] == "SESSION_COMPLETE" and "worktree" not in done
        assert (root / "app.py").read_text() == "def main():\n    return 2\n"
        assert git(root, "status", "--porcelain") == "" and git(root, "branch", "--show-current") == "main\n"
        assert merge(server) == done, "a lost answer can be asked for again"
        nothing_left(root)
        assert server.call("record_outcome", outcome="success")["success"]


@pytest.mark.parametrize("use", ["edit", "switch", "detach", "in the way"])
def test_where_the_users_folder_is_in_use_the_branch_is_kept_for_it(root: Path, use: str) -> None:
    with Server(root) as server:
        place = begin(server)
        if use == "in the way":
            (place / "new.py").write_text("x = 1\n")
            server.call("add_explored_files", paths=["new.py"], reason="a new file that is wanted")
        commit(server, place)
        if use == "edit":
            (root / "README.md").write_text("# Mine\n")
        elif use == "in the way":
            (root / "new.py").write_text("mine = 1\n")
        else:
            git(root, "switch", "-q", *(["-c", "other"] if use == "switch" else ["--detach"]))
        before = (git(root, "status", "--porcelain"), git(root, "rev-parse", "HEAD"))
        done = merge(server)
        assert done["phase"] == "SESSION_COMPLETE" and "git push" in done["push"]
        assert f"git merge llm_task_{done['session_id']}" in done["message"]
        why = {
            "edit": "README.md is changed there and not committed",
            "switch": "it is on other",
            "detach": "it is on no branch",
            "in the way": "new.py is in the way there, in no commit",
        }
        assert f"is in use: {why[use]}." in done["message"]
        assert (git(root, "status", "--porcelain"), git(root, "rev-parse", "HEAD")) == before
        assert git(root, "show", f"llm_task_{done['session_id']}:app.py") == "def main():\n    return 2\n"
        assert len(git(root, "worktree", "list").splitlines()) == 1
        question = server.call("start_session", query="What is main?", intent="QUESTION")
        assert question["phase"] == "DOCUMENT_RESEARCH", "a branch that was kept is no stale one"


@pytest.mark.full
def test_among_two_hundred_worktrees_a_session_has_its_own_and_leaves_theirs(root: Path, tmp_path: Path) -> None:
    for number in range(200):
        git(root, "worktree", "add", "-q", "--detach", str(tmp_path / f"other{number}"))
    gone, used = tmp_path / "other7", tmp_path / "other8"
    shutil.rmtree(gone)  # as a user does it, without a word to git
    before = git(root, "worktree", "list", "--porcelain")
    with Server(used) as theirs, Server(root) as server:
        start(theirs, only_explore=True)
        place = begin(server)
        shutil.rmtree(used)
        commit(server, place)
        assert merge(server)["phase"] == "SESSION_COMPLETE"
        assert theirs.call("find_definitions", symbol="main")["error"] == "folder_removed"
        assert not used.exists(), "nobody makes anew what the user has removed"
    assert (root / "app.py").read_text() == "def main():\n    return 2\n"
    assert not place.exists()
    listed = git(root, "worktree", "list", "--porcelain").splitlines()
    assert [one for one in before.splitlines() if one.startswith("worktree")] == [
        one for one in listed if one.startswith("worktree")
    ]


def test_what_the_user_commits_meanwhile_is_merged_or_to_be_merged_by_hand_in_the_worktree(root: Path) -> None:
    with Server(root) as server:
        place = begin(server)
        commit(server, place)
        for name, text in (("README.md", "# Mine\n"), ("app.py", "def main():\n    return 3\n")):
            (root / name).write_text(text)
            git(root, "commit", "-qam", f"Change {name}")
        refused = merge(server)
        assert refused["error"] == "merge_failed" and refused["conflicts"] == ["app.py"], refused
        assert git(root, "status", "--porcelain") == "" and refused["worktree"] == str(place)
        subprocess.run(["git", "merge", "-q", "main"], cwd=place, capture_output=True, check=False)
        (place / "app.py").write_text("def main():\n    return 2 + 3\n")
        git(place, "commit", "-qam", "Merge main")
        assert merge(server)["merge_commit"]
        assert (root / "app.py").read_text() == "def main():\n    return 2 + 3\n"
        assert (root / "README.md").read_text() == "# Mine\n" and git(root, "status", "--porcelain") == ""
        nothing_left(root)


def test_what_the_user_has_uncommitted_neither_hinders_a_worktree_nor_gets_into_it(root: Path) -> None:
    (root / "README.md").write_text("# Mine\n")
    (root / "notes.txt").write_text("mine\n")
    with Server(root) as server:
        answer = start(server, fast=True, no_doc=True, worktree=True)
        assert any("README.md" in warning for warning in answer["warnings"])
        place = Path(answer["worktree"])
        assert git(place, "status", "--porcelain") == ""
        assert (place / "README.md").read_text() == FILES["README.md"]
    assert (root / "README.md").read_text() == "# Mine\n"


def test_two_clients_in_one_folder_work_in_worktrees_of_their_own(root: Path) -> None:
    with Server(root) as first, Server(root) as second, Server(root) as third:
        one, other = begin(first), begin(second)
        assert one != other
        assert start(third, fast=True, no_doc=True)["phase"] == "QUERY_FRAME", "a third leads one in the folder itself"
        third.call("start_session", flags={"clean": True})
        third.close()
        assert one.is_dir() and other.is_dir(), "who lives keeps his worktree"
        commit(first, one)
        assert merge(first)["phase"] == "SESSION_COMPLETE"
        (other / "README.md").write_text("# Other\n")
        second.call("add_explored_files", paths=["README.md"], reason="is to be changed too")
        plan(second)
        item = {"item": "Return two", "status": "done", "evidence": "README.md:1"}
        second.call("check_write_target", paths="README.md")
        second.accepted(task_id="t1", checklist=[item])
        second.accepted(summary="All is done.")
        second.call("review_changes")
        second.accepted(reviewed_files=["README.md"], commit_message="Other", review_prompt_used="garbage_detection")
        assert merge(second)["merge_commit"]
        assert ((root / "app.py").read_text(), (root / "README.md").read_text()) == (
            "def main():\n    return 2\n",
            "# Other\n",
        )
        nothing_left(root)


def test_of_two_sessions_in_worktrees_each_has_its_last_answer_again(root: Path) -> None:
    with Server(root) as first, Server(root) as second:
        one, other = begin(first), begin(second)
        commit(first, one)
        commit(second, other)
        ends = [(first, {"summary": "The first is merged."}), (second, {"summary": "The second is merged."})]
        answers = [server.call("submit_phase", data=data) for server, data in ends]
        assert [server.call("submit_phase", data=data) for server, data in ends] == answers
        place = begin(second)
        second.kill()
    with Server(root) as again:
        interrupted = again.call("submit_phase", data={"summary": "The first is merged."})
        assert interrupted["recovery_available"][0]["worktree"] == str(place), "it may be this one's last submit"


def test_two_clients_in_two_worktrees_of_the_users_lead_a_session_each(root: Path, tmp_path: Path) -> None:
    side = tmp_path / "side"
    git(root, "worktree", "add", "-q", "-b", "side", str(side))
    with Server(root) as first, Server(side) as second:
        for server in (first, second):
            to_ready(server)
        for server, place in ((first, root), (second, side)):
            plan(server)
            edit_and_report(server, place)
            server.accepted(summary="All is done.")
            server.accepted(passed=True, verifier_used="generic", details="looked at it")
        for server in (first, second):
            server.call("review_changes")
            server.accepted(
                reviewed_files=["app.py"], commit_message="Return two", review_prompt_used="garbage_detection"
            )
        assert merge(first)["merge_commit"] and merge(second)["merge_commit"]
    assert git(root, "show", "main:app.py") == git(root, "show", "side:app.py") == "def main():\n    return 2\n"


class TestKilled:
    def test_a_session_is_restored_in_its_worktree(self, root: Path) -> None:
        with Server(root) as server:
            place = begin(server)
            plan(server)
            (place / "app.py").write_text("def main():\n    return 2\n")
            server.kill()
        with Server(root) as server:
            answer = server.call("submit_phase", data={"summary": "?"})
            assert answer["recovery_available"][0]["worktree"] == str(place)
            fresh = start(server, fast=True, no_doc=True)
            assert fresh["phase"] == "QUERY_FRAME" and fresh["recovery_available"], fresh
            back = server.call("get_session_status", discard_active=True)
            assert back["restored"] and back["worktree"] == str(place)
            edit_and_report(server, place)
            server.accepted(summary="All is done.")
            server.call("review_changes")
            server.accepted(reviewed_files=["app.py"], commit_message="Two", review_prompt_used="garbage_detection")
            server.kill()
        with Server(root) as server:
            assert server.call("get_session_status")["phase"] == "MERGE"
            assert merge(server)["merge_commit"]
            nothing_left(root)

    def test_clean_shelves_its_work_and_removes_the_worktree(self, root: Path) -> None:
        with Server(root) as server:
            place = begin(server)
            plan(server)
            (place / "app.py").write_text("mine = 'uncommitted'\n")
            server.kill()
        with Server(root) as server:
            cleaned = server.call("start_session", flags={"clean": True})
            assert cleaned["branches_removed"] == [f"llm_task_{place.name}"]
            nothing_left(root)
        kept = [git(root, "show", f"{ref}:app.py") for ref in git(root, "for-each-ref", ARCHIVE, FORMAT).split()]
        assert "mine = 'uncommitted'\n" in kept

    def test_what_was_never_told_of_is_removed(self, root: Path) -> None:
        (root / ".code-intel/worktrees/20260101_000000.making").mkdir(parents=True)
        place = root / ".code-intel/worktrees/20260101_000000"
        git(root, "worktree", "add", "-q", "-b", "llm_task_20260101_000000", str(place))
        (place / "app.py").unlink()
        with Server(root) as server:
            start(server, fast=True, no_doc=True)
        assert not place.exists() and len(git(root, "worktree", "list").splitlines()) == 1


def test_abandoned_by_clean_a_session_with_a_worktree_can_be_followed_by_another(root: Path) -> None:
    with Server(root) as server:
        place = begin(server)
        (place / "notes.txt").write_text("not lost\n")
        answer = start(server, clean=True, fast=True, no_doc=True)
        assert answer["phase"] == "QUERY_FRAME" and "worktree" not in answer and answer["cleaned"]
        assert not place.exists()
    kept = [
        git(root, "ls-tree", "-r", "--name-only", ref) for ref in git(root, "for-each-ref", ARCHIVE, FORMAT).split()
    ]
    assert any("notes.txt" in names for names in kept)


def test_a_worktree_that_the_user_removes_ends_its_session_and_its_commits_are_kept(root: Path) -> None:
    with Server(root) as server:
        place = begin(server)
        commit(server, place)
        tip = git(place, "rev-parse", "HEAD").strip()
        shutil.rmtree(place)
        told = server.call("search_text", patterns="main")
        assert told["error"] == "worktree_removed" and place.name in told["message"]
        assert server.call("search_text", patterns="def main")["results"][0]["path"] == "app.py"
        nothing_left(root)
        assert tip in git(root, "rev-list", "--glob", ARCHIVE)
        assert start(server, fast=True, no_doc=True)["phase"] == "QUERY_FRAME"


def test_a_folder_of_the_users_that_is_gone_is_not_made_anew_and_a_session_that_comes_back_goes_on(
    root: Path, tmp_path: Path
) -> None:
    side, away = tmp_path / "side", tmp_path / "away"
    git(root, "worktree", "add", "-q", "-b", "side", str(side))
    with Server(side) as server:
        to_ready(server)
        session_id = plan(server)["session_id"]
        side.rename(away)
        arguments: dict[str, Fields] = {"search_text": {"patterns": "x"}, "submit_phase": {"data": {}}}
        for tool in ("search_text", "sync_index", "get_session_status", "submit_phase", "start_session"):
            told = server.call(tool, **arguments.get(tool, {}))
            assert told["error"] == "folder_removed" and str(side) in told["message"], (tool, told)
        assert not side.exists()
        away.rename(side)
        assert server.call("get_session_status")["session_id"] == session_id
        edit_and_report(server, side)
        shutil.rmtree(side)
        assert server.submit(summary="All is done.")["error"] == "folder_removed"
        assert not side.exists()
    assert git(root, "branch", "--list", "llm_task_*", "--format=%(refname:short)").strip() == f"llm_task_{session_id}"
    with Server(root) as server:
        assert start(server, fast=True, no_doc=True)["phase"] == "BRANCH_INTERVENTION"


def test_a_folder_that_is_gone_is_not_made_anew_by_calls_that_come_at_once_nor_by_a_run_in_the_background(
    root: Path, tmp_path: Path
) -> None:
    side, began = tmp_path / "side", tmp_path / "began"
    git(root, "worktree", "add", "-q", "-b", "side", str(side))
    test = f"import pathlib, time\n\ndef test_it():\n    pathlib.Path({str(began)!r}).touch()\n    time.sleep(60)\n"
    (side / "test_it.py").write_text(test)
    config = {"verify_commands": [[sys.executable, "-m", "pytest", "-q", "test_it.py"]]}
    (side / ".code-intel/config.json").write_text(json.dumps(config))
    git(side, "add", "-A")
    git(side, "commit", "-qm", "A test that takes its time")
    Approvals().trust(side / ".code-intel/config.json")
    with Wire(side) as server:
        to_ready(server)
        until(began.exists)
        shutil.rmtree(side)
        for _ in range(4):
            server.ask("search_text", patterns="main")
        answers = [server.answer()["result"]["structuredContent"]["error"] for _ in range(4)]
        assert {*answers} == {"folder_removed"}
        until(lambda: not descendants(server.pid))
        assert server.call("search_text", patterns="main")["error"] == "folder_removed"
    assert not side.exists()


def test_a_project_that_is_removed_while_its_session_is_in_a_worktree_of_it_is_not_made_anew(root: Path) -> None:
    with Server(root) as server:
        commit(server, begin(server))
        shutil.rmtree(root)
        for _ in range(2):
            assert server.call("search_text", patterns="main")["error"] == "folder_removed"
    assert not root.exists()


def test_a_worktree_removed_after_a_kill_leaves_a_branch_that_can_be_chosen_about(root: Path) -> None:
    with Server(root) as server:
        place = begin(server)
        commit(server, place)
        server.kill()
    git(root, "worktree", "remove", "--force", str(place))
    with Server(root) as server:
        assert start(server, fast=True, no_doc=True)["phase"] == "BRANCH_INTERVENTION"
        assert server.accepted(choice="delete")["branches_removed"] == [f"llm_task_{place.name}"]


def test_what_git_has_nowhere_else_keeps_the_worktree_when_its_session_is_over(root: Path) -> None:
    with Server(root) as server:
        place = begin(server)
        commit(server, place)
        (place / "late.txt").write_text("left by the user\n")
        done = merge(server)
        assert done["phase"] == "SESSION_COMPLETE" and any(str(place) in said for said in done["warnings"]), done
        assert (place / "late.txt").read_text() == "left by the user\n"


def test_commits_on_no_branch_are_in_the_trash_when_their_worktree_is_removed(root: Path) -> None:
    with Server(root) as server:
        place = begin(server)
        commit(server, place)
        (place / "late.txt").write_text("left by the user\n")
        merge(server)
        git(place, "switch", "-q", "--detach")
        git(place, "add", "late.txt")
        git(place, "commit", "-qm", "Keep it")
        oid = git(place, "rev-parse", "HEAD").strip()
        start(server, fast=True, no_doc=True)
        assert not place.exists()
        assert oid in git(root, "rev-list", "--glob", ARCHIVE)


def test_a_worktree_of_the_users_own_stays_where_those_of_sessions_are(root: Path) -> None:
    mine = root / ".code-intel/worktrees/mine"
    git(root, "worktree", "add", "-q", "-b", "mine", str(mine))
    with Server(root) as server:
        begin(server)
    assert (mine / "app.py").exists()


def test_a_session_whose_worktree_the_user_moves_is_over_and_its_branch_stays(root: Path, tmp_path: Path) -> None:
    with Server(root) as server:
        place = begin(server)
        commit(server, place)
        git(root, "worktree", "move", str(place), str(tmp_path / "moved"))
        assert server.call("search_text", patterns="main")["error"] == "worktree_removed"
        assert server.call("search_text", patterns="def main")["results"][0]["path"] == "app.py"
        assert git(tmp_path / "moved", "branch", "--show-current").strip() == f"llm_task_{place.name}"


def test_a_detached_head_gets_no_worktree_and_nothing_is_left(root: Path) -> None:
    git(root, "switch", "-q", "--detach")
    with Server(root) as server:
        answer = server.call("start_session", query="Change main", flags={"worktree": True})
        assert answer["error"] == "branch_setup_failed"
        nothing_left(root)


def test_the_settings_of_the_users_folder_hold_though_they_are_not_committed(root: Path) -> None:
    git(root, "rm", "-q", "--cached", ".code-intel/config.json")
    git(root, "commit", "-q", "-m", "Not shared")
    Approvals().trust(root / ".code-intel/config.json")
    (root / ".code-intel/verifiers").mkdir()
    (root / ".code-intel/verifiers/mine.md").write_text("# Mine\n\nLook closely.\n")
    with Server(root) as server:
        place = begin(server)
        assert not (place / ".code-intel/config.json").exists()
        answer = server.call("get_session_status")
        assert not any("trust" in warning for warning in answer.get("warnings", []))


@pytest.mark.parametrize("flags", [{"quick": True}, {"only_verify": True}])
def test_a_worktree_is_for_sessions_that_commit(root: Path, flags: dict[str, bool]) -> None:
    with Server(root) as server:
        answer = server.call("start_session", query="Change main", flags={"worktree": True, **flags})
        assert answer["error"] == "invalid_flags"
        asked = server.call("start_session", query="What is main?", intent="QUESTION", flags={"worktree": True})
        assert asked["ignored_flags"] == ["worktree"] and "worktree" not in asked


def test_a_project_below_the_top_of_its_repository_has_its_root_in_the_worktree(tmp_path: Path) -> None:
    top = repository(
        tmp_path / "mono", {f"sub/{name}": text for name, text in FILES.items()} | {"other/x.py": "x = 1\n"}
    )
    root = top / "sub"
    (root / ".code-intel").mkdir()
    with Server(root) as server:
        place = begin(server)
        assert place.name == "sub" and place.parents[2] == root / ".code-intel"
        commit(server, place)
        assert merge(server)["merge_commit"]
    assert (root / "app.py").read_text() == "def main():\n    return 2\n"
    assert len(git(top, "worktree", "list").splitlines()) == 1


def test_a_sparse_checkout_stays_sparse_in_the_worktree(root: Path) -> None:
    (root / "large").mkdir()
    (root / "large/data.txt").write_text("x\n")
    git(root, "add", "large")
    git(root, "commit", "-q", "-m", "Large")
    git(root, "sparse-checkout", "set", "--no-cone", "/*", "!/large/")
    with Server(root) as server:
        place = begin(server)
        assert not (place / "large").exists()
        commit(server, place)
        assert merge(server)["merge_commit"]
        nothing_left(root)
    assert git(root, "ls-files", "large") == "large/data.txt\n" and not (root / "large").exists()


def test_submodules_are_named_and_one_that_was_fetched_keeps_the_worktree(root: Path, tmp_path: Path) -> None:
    inner = repository(tmp_path / "inner", {"in.py": "y = 1\n"})
    git(root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "lib")
    git(root, "commit", "-q", "-m", "With a submodule")
    with Server(root) as server:
        answer = start(server, fast=True, no_doc=True, no_verify=True, worktree=True)
        place = Path(answer["worktree"])
        assert any("lib" in warning for warning in answer["warnings"])
        git(place, "-c", "protocol.file.allow=always", "submodule", "update", "-q", "--init")
        server.accepted(action_type="change", target_symbols=["main"])
        server.call("add_explored_files", paths=["app.py"], reason="holds the function to change")
        commit(server, place)
        done = merge(server)
        assert done["merge_commit"] and any(str(place) in said for said in done["warnings"])
        assert (root / "lib/in.py").exists() and (place / "lib/in.py").exists()
        way_out = re.findall(r"`git ([^`]+)`", " ".join(done["warnings"]))
        git(root, *way_out[0].split())
        nothing_left(root)


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        ([".venv/bin/check"], 'grep -q "return 2" app.py'),
        ([".venv/bin/python", "-m", "pytest", "-q"], f'exec {sys.executable} "$@"'),
    ],
)
def test_the_proof_finds_what_git_ignores_in_the_users_folder(root: Path, argv: list[str], text: str) -> None:
    tool = root / argv[0]
    tool.parent.mkdir(parents=True)
    tool.write_text(f"#!/bin/sh\n{text}\n")
    tool.chmod(0o755)
    config = root / ".code-intel/config.json"
    config.write_text(json.dumps({"verify_commands": [argv]}))
    (root / ".gitignore").write_text(".venv/\n")
    (root / "test_app.py").write_text("import app\n\n\ndef test_it():\n    assert app.main() in {1, 2}\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "Configure")
    Approvals().trust(config)
    with Server(root) as server:
        answer = start(server, fast=True, no_doc=True, worktree=True)
        server.accepted(action_type="change", target_symbols=["main"])
        server.call("add_explored_files", paths=["app.py"], reason="holds the function to change")
        plan(server)
        edit_and_report(server, Path(answer["worktree"]))
        server.accepted(summary="All is done.")
        verdict = server.accepted(passed=True, verifier_used="generic", details="looked at it")
        assert verdict["proof"]["status"] == "proven", verdict["proof"]


class TestCommands:
    """People's commands in the user's folder know of its sessions' worktrees."""

    @pytest.fixture
    def place(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
        monkeypatch.chdir(root)
        with Server(root) as server:
            found = begin(server)
            (found / "notes.txt").write_text("not lost\n")
            yield found

    def said(self, capsys: pytest.CaptureFixture[str]) -> str:
        return " ".join(capsys.readouterr().out.split())

    def test_while_it_runs(self, root: Path, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert status.main([]) == 0
        shown = self.said(capsys)
        assert "running" in shown and f"in its own worktree: {place}" in shown
        assert status.main(["--json"]) == 0
        assert json.loads(capsys.readouterr().out)["session"]["worktree"] == str(place)
        doctor.main([])
        assert f"runs in {place}" in self.said(capsys)
        assert waive.main(["1", "--reason", "the machine has no such tool"]) == 0
        assert [one.argv for one in Approvals().waivers(place, place.name)] == [("true",)]
        assert abandon.main(["--yes"]) == 0
        assert "nothing to abandon" in self.said(capsys) and place.is_dir()

    def test_after_a_kill(
        self, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(root)
        with Server(root) as server:
            place = begin(server)
            (place / "notes.txt").write_text("not lost\n")
            server.kill()
        assert resume.main([]) == 0
        assert str(place) in self.said(capsys)
        doctor.main([])
        assert "1 interrupted" in self.said(capsys)
        assert abandon.main(["--yes"]) == 0
        assert "1 task branch(es) archived, 1 checkpoint(s) removed, HEAD on main." in self.said(capsys)
        nothing_left(root)
        assert trash.main(["list"]) == 0
        assert place.name in self.said(capsys)

    def test_over_and_kept(self, root: Path, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
        for file in (place / ".code-intel/sessions").iterdir():
            file.unlink()
        doctor.main([])
        assert f"{place}: its session is over" in self.said(capsys)
