"""Sessions whose server was killed, or that another process meets: lock, recovery, left-over work (SPEC 3, 7)."""

import os
import signal
from pathlib import Path

import pytest

from tests.e2e.driver import Server, git
from tests.e2e.fast_session import finish, plan, start, to_ready


def test_a_second_process_is_told_who_has_the_project_and_its_lookups_work(server: Server, root: Path) -> None:
    start(server)
    with Server(root) as other:
        answer = other.call("start_session", query="Me too", flags={})
        assert answer["error"] == "project_locked"
        assert str(server.pid) in answer["message"]
        assert other.call("search_text", patterns="main")["total"] >= 1
    server.kill()
    with Server(root) as third:
        assert third.call("start_session", query="Now me", flags={})["success"]


class TestRecovery:
    def interrupted(self, root: Path) -> str:
        server = Server(root)
        session_id = start(server)["session_id"]
        server.accepted(documents_reviewed=["README.md"], summary="One is said.")
        server.kill()
        return str(session_id)

    def test_status_restores_by_itself_with_the_summaries(self, root: Path) -> None:
        session_id = self.interrupted(root)
        with Server(root) as server:
            answer = server.call("get_session_status")
            assert answer["session_id"] == session_id
            assert answer["phase"] == "QUERY_FRAME"
            assert answer["phase_summaries"] == {"step_03_DOCUMENT_RESEARCH": "One is said."}
            assert answer["completed_steps"] == [3]
            server.accepted(action_type="change")

    def test_a_new_session_says_that_recovery_is_available(self, root: Path) -> None:
        session_id = self.interrupted(root)
        with Server(root) as server:
            answer = start(server)
            assert [row["session_id"] for row in answer["recovery_available"]] == [session_id]
            assert "To restore, call get_session_status(discard_active=true" in answer["message"]
            assert session_id in str(answer["hints"])
            restored = server.call("get_session_status", discard_active=True)
            assert restored["session_id"] == session_id
            assert restored["phase"] == "QUERY_FRAME"

    def test_a_named_session_is_restored(self, root: Path) -> None:
        session_id = self.interrupted(root)
        with Server(root) as server:
            assert server.call("get_session_status", session_id="../../etc/passwd")["success"] is False
            assert server.call("get_session_status", session_id=session_id)["phase"] == "QUERY_FRAME"

    @pytest.mark.parametrize("wanted", ["nope", "20200101_000000"])
    def test_who_asks_for_a_session_that_is_not_there_is_told_which_there_are(self, root: Path, wanted: str) -> None:
        session_id = self.interrupted(root)
        with Server(root) as server:
            answer = server.call("get_session_status", session_id=wanted)
            assert answer["message"] == f"No checkpoint of session '{wanted}'. There are: {session_id}."

    @pytest.mark.parametrize(("tool", "arguments"), [
        ("submit_phase", {"data": {"summary": "Done."}}), ("check_write_target", {"path": "app.py"}),
        ("review_changes", {}),
    ])  # fmt: skip
    def test_whatever_needs_a_session_tells_of_the_one_that_can_be_restored(
        self, root: Path, tool: str, arguments: dict[str, object]
    ) -> None:
        session_id = self.interrupted(root)
        with Server(root) as server:
            answer = server.call(tool, **arguments)
            assert (answer["success"], answer["error"]) == (False, "no_active_session")
            assert "get_session_status restores it" in answer["remedy"]
            assert answer["recovery_available"][0]["session_id"] == session_id

    def test_with_nothing_else_to_restore_the_active_session_stays_and_is_named(self, server: Server) -> None:
        """A lost answer to a restore is asked for again: that must not look like a session that is gone."""
        session_id = start(server)["session_id"]
        answer = server.call("get_session_status", discard_active=True)
        assert answer["error"] == "checkpoint_not_found"
        assert f"session {session_id} stays active" in answer["message"]
        assert answer["instruction"] and answer["session_id"] == session_id
        assert server.accepted(documents_reviewed=["README.md"])["phase"] == "QUERY_FRAME"

    def test_who_asks_for_another_session_than_the_active_one_is_told_which_one_answers(self, root: Path) -> None:
        old = self.interrupted(root)
        with Server(root) as server:
            fresh = start(server)["session_id"]
            answer = server.call("get_session_status", session_id=old)
            assert answer["session_id"] == fresh
            assert f"Session {old} was not restored: {fresh} is active" in answer["warnings"][0]
            assert "warnings" not in server.call("get_session_status", session_id=fresh)
            assert server.call("get_session_status", session_id=old, discard_active=True)["session_id"] == old

    def test_the_final_answer_can_be_asked_for_again_after_a_kill(self, server: Server, root: Path) -> None:
        to_ready(server)
        final = finish(server, root)
        server.kill()
        with Server(root) as again:
            assert again.call("submit_phase", data={"summary": "Merged."}) == final
            other = again.refused(summary="Something else.")
            assert other["error"] == "no_active_session"

    def test_a_lost_answer_is_repeated_with_the_warning_that_it_had_of_an_edited_configuration(
        self, server: Server, root: Path
    ) -> None:
        start(server)
        (root / ".code-intel" / "config.json").write_text("{}\n")
        answer = server.accepted(documents_reviewed=["README.md"])
        assert ".code-intel/config.json" in answer["warning"]
        assert server.accepted(documents_reviewed=["README.md"]) == answer

    def test_a_checkpoint_of_another_machine_is_not_obeyed(self, root: Path) -> None:
        session_id = self.interrupted(root)
        (root / ".git" / "code-intel" / "key").unlink()
        with Server(root) as server:
            answer = server.call("get_session_status", session_id=session_id)
            assert answer["success"] is False
            answer = start(server)
            assert "recovery_available" not in answer
            assert f"Checkpoint {session_id}.json was not written by this installation" in answer["warnings"][0]

    def test_where_the_users_state_has_moved_a_start_says_so_and_the_way_back_restores_it(self, tmp_path: Path) -> None:
        """Without git the key of a checkpoint is there."""
        root = tmp_path / "plain"
        root.mkdir()
        (root / "app.py").write_text("def main():\n    return 1\n")
        with Server(root) as server:
            session_id = start(server, quick=True)["session_id"]
            server.kill()
        with Server(root, XDG_STATE_HOME=str(tmp_path / "moved")) as server:
            assert "XDG_STATE_HOME or this folder has moved" in start(server, quick=True)["warnings"][0]
            server.kill()
        with Server(root) as server:
            assert server.call("get_session_status")["session_id"] == session_id

    def test_where_the_project_was_renamed_a_start_says_how_git_finds_a_sessions_worktree(self, root: Path) -> None:
        with Server(root) as server:
            place = Path(start(server, fast=True, no_doc=True, worktree=True)["worktree"])
            server.kill()
        renamed = root.rename(root.with_name("renamed"))
        with Server(renamed) as server:
            said = start(server, fast=True, no_doc=True)["warnings"][0]
            assert f"after `git worktree repair {renamed / place.relative_to(root)}`" in said
            git(renamed, *said.partition("`git ")[2].partition("`")[0].split())
            back = server.call("get_session_status", discard_active=True)
            assert back["session_id"] == place.name and back["restored"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_process_at_once_and_the_session_can_be_resumed(root: Path, number: signal.Signals) -> None:
    server = Server(root)
    session_id = start(server)["session_id"]
    assert server.signal(number) == 0
    server.close()
    with Server(root) as again:
        assert again.call("get_session_status")["session_id"] == session_id


def test_a_session_whose_branch_was_continued_and_merged_by_another_cannot_be_restored_any_more(root: Path) -> None:
    """It would stand in the middle of a branch that is gone."""
    with Server(root) as server:
        to_ready(server)
        plan(server)
        server.kill()
    with Server(root) as server:
        start(server, fast=True, no_doc=True)
        server.accepted(choice="continue")
        server.accepted(action_type="change")
        server.call("add_explored_files", paths=["app.py"], reason="holds the function to change")
        assert finish(server, root)["phase"] == "SESSION_COMPLETE"
        assert git(root, "branch", "--list", "llm_task_*") == ""
        assert server.call("get_session_status")["error"] == "no_active_session"
        assert "recovery_available" not in start(server)


@pytest.mark.parametrize("here", [True, False])
def test_work_that_was_left_on_a_task_branch_is_continued_or_the_users_own_branch_is_worked_on(
    root: Path, here: bool
) -> None:
    """HEAD on the left branch: its uncommitted work goes on, and is merged where it came from. Else HEAD gets the commit."""
    with Server(root) as server:
        to_ready(server)
        plan(server)
        (root / "app.py").write_text("def main():\n    return 2\n")
        server.kill()
    for file in (root / ".code-intel" / "sessions").iterdir():
        file.unlink()
    if not here:
        git(root, "stash", "-q")
        git(root, "switch", "-q", "main")
    with Server(root) as server:
        assert start(server, fast=True, no_doc=True)["phase"] == "BRANCH_INTERVENTION"
        assert server.accepted(choice="continue")["branch_policy"] == "continue"
        server.accepted(action_type="change", target_symbols=["main"])
        server.call("add_explored_files", paths=["app.py"], reason="holds the function to change")
        final = finish(server, root)
    assert final["phase"] == "SESSION_COMPLETE"
    assert "return 2" in git(root, "show", "main:app.py")
    parents = git(root, "log", "-1", "--format=%P", "main").split()
    left = git(root, "branch", "--list", "llm_task_*")
    if here:
        assert (len(parents), left) == (2, "")
    else:
        assert final["message"] == "No task branch. Session complete."
        assert len(parents) == 1 and "llm_task_" in left


def test_a_repository_that_git_cannot_read_for_a_while_is_no_project_without_git(root: Path) -> None:
    with Server(root) as server:
        session = start(server)["session_id"]
        server.kill()
    head = root / ".git" / "HEAD"
    whole = head.read_bytes()
    head.write_bytes(b"")  # what git sees of a disk that fails
    with Server(root) as server:
        refused = server.call("start_session", query="Make main return two", intent="INVESTIGATE", flags={})
        assert (refused["success"], refused["error"]) == (False, "git_failed")
        assert server.call("search_text", patterns="main")["total"] == 1
        head.write_bytes(whole)
        assert server.call("get_session_status")["session_id"] == session


def test_a_file_of_the_users_whose_name_is_no_utf_8_stays_out_of_a_whole_session_that_is_killed(root: Path) -> None:
    with Server(root) as server:
        to_ready(server)
        plan(server)
        odd = root / os.fsdecode(b"caf\xe9.txt")
        odd.write_text("the user's\n")
        server.call("check_write_target", path="app.py")
        (root / "app.py").write_text("def main():\n    return 2\n")
        done = {"task_id": "t1", "checklist": [{"item": "Return two", "status": "done", "evidence": "app.py:2"}]}
        server.call("check_write_target", paths=server.submit(**done)["unchecked"])
        server.accepted(**done)
        server.accepted(summary="All is done.")
        server.accepted(passed=True, verifier_used="generic", details="looked at it")
        server.call("review_changes")
        answer = server.accepted(
            reviewed_files=["app.py", {"path": "*.txt", "decision": "leave", "reason": "the user's own"}],
            commit_message="Return two",
            review_prompt_used="garbage_detection",
            tools_used=["review_changes"],
        )
        assert answer["phase"] == "MERGE"
        server.kill()
    with Server(root) as server:
        assert server.call("get_session_status")["phase"] == "MERGE"
        assert server.accepted(summary="Merged.")["phase"] == "SESSION_COMPLETE"
    assert git(root, "show", "--name-only", "--format=", "HEAD^2").split() == ["app.py"]
    assert odd.read_text() == "the user's\n"
