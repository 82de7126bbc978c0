"""The life of a session over a real process: start, lock, recovery, clean, endings, bad repositories (SPEC 2, 3, 7)."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.driver import Fields, Server, fingerprint, git, repository

FILES = {
    "app.py": "def main():\n    return 1\n",
    "README.md": "# App\n\nSays one.\n",
    "CLAUDE.md": "# Rules\n\n- Keep it small.\n",
    ".gitignore": ".env\n",
}
REASON = "Everything was found already."


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo", FILES)


@pytest.fixture
def server(root: Path) -> Iterator[Server]:
    with Server(root) as running:
        yield running


def start(server: Server, **flags: object) -> Fields:
    answer = server.call("start_session", query="Make main return two", intent="MODIFY", flags=flags)
    assert answer["success"], answer
    return answer


def to_ready(server: Server) -> None:
    """A fast session up to its plan, with app.py explained."""
    start(server, fast=True, no_doc=True)
    server.accepted(action_type="change", target_symbols=["main"])
    added = server.call("add_explored_files", paths=["app.py"], reason="holds the function to change")
    assert added["added"] == ["app.py"]


def plan(server: Server) -> Fields:
    task = {"id": "t1", "description": "Return two", "status": "pending", "checklist": ["Return two"]}
    return server.accepted(tasks=[task])


def edit_and_report(server: Server, root: Path) -> Fields:
    assert server.call("check_write_target", path="app.py")["allowed"]
    (root / "app.py").write_text("def main():\n    return 2\n")
    item = {"item": "Return two", "status": "done", "evidence": "app.py:2"}
    return server.accepted(task_id="t1", checklist=[item], tools_used=["check_write_target"])


def finish(server: Server, root: Path) -> Fields:
    """From the plan to the merge of a fast session."""
    plan(server)
    edit_and_report(server, root)
    server.accepted(summary="All is done.")
    server.accepted(passed=True, verifier_used="generic", details="looked at it")
    rows = server.call("review_changes")["results"]
    server.accepted(
        reviewed_files=[row["path"] for row in rows],
        commit_message="Return two",
        review_prompt_used="garbage_detection",
        tools_used=["review_changes"],
    )
    return server.call("submit_phase", data={"summary": "Merged."})


def test_a_start_says_rules_first_phase_and_what_a_newcomer_must_know(server: Server) -> None:
    answer = start(server)
    assert answer["phase"] == "DOCUMENT_RESEARCH"
    assert answer["project_rules"] == {"source": "CLAUDE.md", "summary": ""}
    assert answer["context_update_required"] is True
    assert "No .code-intel folder" in str(answer["warnings"])


def test_a_fast_session_ends_in_a_merge_and_says_which_gates_were_skipped(server: Server, root: Path) -> None:
    to_ready(server)
    final = finish(server, root)
    assert final["phase"] == "SESSION_COMPLETE"
    assert "Code-Intel-Skipped: DOCUMENT_RESEARCH, EXPLORATION" in git(root, "log", "-1", "--format=%B")
    assert (root / "app.py").read_text().endswith("return 2\n")
    assert git(root, "branch", "--list", "llm_task_*") == ""


def test_a_second_start_names_the_active_session_and_the_choices(server: Server) -> None:
    first = start(server)
    again = server.call("start_session", query="Something else", intent="MODIFY", flags={})
    assert again["error"] == "session_active"
    assert again["session_id"] == first["session_id"]
    assert again["phase"] == "DOCUMENT_RESEARCH"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"query": "x", "flags": {"fast": True, "quick": True}}, "invalid_flags"),
        ({"query": "x", "flags": {"only_verify": True, "no_verify": True}}, "invalid_flags"),
        ({"query": "x", "flags": {"only_verify": True, "only_explore": True}}, "invalid_flags"),
        ({"query": "x", "flags": {"turbo": True}}, "invalid_flags"),
        ({"query": "x", "flags": {"fast": "yes"}}, "payload_mismatch"),
        ({"query": "x", "flags": {"gate_level": "half"}}, "payload_mismatch"),
        ({"query": "  "}, "query_required"),
        ({"query": "x", "repo_path": "nowhere"}, "path_not_found"),
    ],
)
def test_a_bad_start_is_refused_and_leaves_no_lock(server: Server, arguments: dict[str, object], error: str) -> None:
    answer = server.call("start_session", **arguments)
    assert answer["success"] is False
    assert answer["error"] == error, answer
    start(server)


def test_flags_are_understood_as_people_spell_them(server: Server) -> None:
    answer = server.call("start_session", query="x", flags={"--no-doc-research": True, "gate": "f"})
    assert answer["phase"] == "QUERY_FRAME"


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


def test_an_investigation_changes_nothing_and_needs_no_git(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "app.py").write_text("def main():\n    return 1\n")
    with Server(tmp_path / "plain") as server:
        answer = server.call("start_session", query="What does main do?", intent="QUESTION", flags={"fast": True})
        assert answer["ignored_flags"] == ["fast"]
        server.accepted(documents_reviewed=[])
        server.accepted(action_type="explain")
        server.call("search_text", patterns="main")
        server.call("get_symbols", path="app.py")
        server.accepted(explored_files=["app.py"], findings=["app.py:1"], tools_used=["search_text", "get_symbols"])
        server.accepted(needs_more_information=False, reason=REASON)
        server.accepted(has_unverified_hypotheses=False, reason=REASON)
        answer = server.accepted(needs_impact_analysis=False, reason=REASON)
        assert answer["phase"] == "SESSION_COMPLETE"
        refused = server.call("start_session", query="Change main", intent="MODIFY", flags={})
        assert refused["error"] == "branch_setup_failed"
        assert server.call("start_session", query="Change main", intent="MODIFY", flags={"quick": True})["success"]


@pytest.mark.parametrize("kind", ["unborn", "detached"])
def test_where_no_branch_can_ever_be_made_the_start_says_so(tmp_path: Path, kind: str) -> None:
    root = tmp_path / "repo"
    if kind == "unborn":
        root.mkdir()
        git(root, "init", "-q", "-b", "main")
        (root / "app.py").write_text("x = 1\n")
    else:
        repository(root, FILES)
        git(root, "checkout", "-q", "--detach")
    with Server(root) as server:
        answer = server.call("start_session", query="Change it", flags={})
        assert answer["error"] == "branch_setup_failed"
        assert answer["requires_user_intervention"] is True


def test_work_from_before_the_session_stops_the_branch_and_is_named(server: Server, root: Path) -> None:
    (root / "README.md").write_text("# Mine\n")
    answer = start(server, fast=True, no_doc=True)
    assert "README.md" in str(answer["warnings"])
    server.accepted(action_type="change")
    task = {"id": "t1", "description": "Return two", "status": "pending", "checklist": ["Return two"]}
    refused = server.refused(tasks=[task])
    assert refused["error"] == "branch_creation_failed"
    assert "README.md" in json.dumps(refused)
    git(root, "commit", "-qam", "Mine")
    server.accepted(tasks=[task], summary="Once more.")


def test_a_missing_identity_is_said_at_the_start(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", FILES)
    git(root, "config", "--unset", "user.name")
    git(root, "config", "--unset", "user.email")
    git(root, "config", "user.useConfigOnly", "true")
    blank = dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"), "")
    with Server(root, EMAIL="", HOME=str(tmp_path), **blank) as server:
        answer = server.call("start_session", query="Change it", flags={})
        assert "user.email" in str(answer["warnings"])


def test_clean_archives_the_session_and_goes_back_to_base(server: Server, root: Path) -> None:
    (root / "mine.txt").write_text("mine\n")
    to_ready(server)
    plan(server)
    edit_and_report(server, root)
    (root / "fresh.py").write_text("x = 1\n")
    before = fingerprint(root / "mine.txt")
    answer = server.call("start_session", flags={"clean": True})
    assert answer["success"], answer
    assert git(root, "rev-parse", "--abbrev-ref", "HEAD").strip() == "main"
    assert (root / "app.py").read_text() == FILES["app.py"]
    assert fingerprint(root / "mine.txt") == before
    assert git(root, "branch", "--list", "llm_task_*") == ""
    assert not list((root / ".code-intel" / "sessions").glob("*.json"))
    kept = git(root, "for-each-ref", "--format=%(refname)", "refs/code-intel/archive").split()
    archived = [git(root, "ls-tree", "-r", "--name-only", ref) for ref in kept]
    assert any("fresh.py" in names for names in archived)
    assert any("return 2" in git(root, "show", f"{ref}:app.py") for ref in kept)
    assert server.call("get_session_status")["error"] == "no_active_session"


def test_clean_keeps_a_copy_of_work_that_has_no_branch_and_names_it(server: Server, root: Path) -> None:
    server.call("start_session", query="Do it", flags={"quick": True, "no_doc": True})
    (root / "app.py").write_text("def main():\n    return 'unfinished'\n")
    answer = server.call("start_session", flags={"clean": True})
    assert "app.py" in answer["warnings"][0]
    assert "unfinished" in (root / "app.py").read_text()
    kept = git(root, "for-each-ref", "--format=%(refname)", "refs/code-intel/archive").split()
    assert "unfinished" in git(root, "show", f"{kept[-1]}:app.py")


def test_clean_with_a_query_starts_anew(server: Server) -> None:
    first = start(server)
    answer = server.call("start_session", query="Another task", flags={"clean": True})
    assert answer["success"]
    assert answer["session_id"] != first["session_id"]
    assert answer["cleaned"]


def test_clean_with_a_query_says_all_that_clean_alone_would_say(server: Server, root: Path) -> None:
    first = start(server)
    git(root, "branch", "llm_task_20200101_000000")
    (root / "mine.txt").write_text("mine\n")
    answer = server.call("start_session", query="Another task", flags={"clean": True})
    assert answer["branches_removed"] == ["llm_task_20200101_000000"]
    assert answer["checkpoints_removed"] == [first["session_id"]]
    assert "mine.txt" in answer["warnings"][0]
    assert "No .code-intel folder" in answer["warnings"][1]


def test_a_query_that_cannot_be_taken_cleans_nothing(server: Server) -> None:
    first = start(server)
    for query, error in (("odd \0 text", "payload_mismatch"), ("x" * 70_000, "payload_too_large")):
        assert server.call("start_session", query=query, flags={"clean": True})["error"] == error
    assert server.call("get_session_status")["session_id"] == first["session_id"]


def test_a_start_that_is_refused_after_cleaning_says_what_was_cleaned(server: Server, root: Path) -> None:
    first = start(server)
    git(root, "checkout", "-q", "--detach")
    answer = server.call("start_session", query="Another task", flags={"clean": True})
    assert answer["error"] == "branch_setup_failed"
    assert answer["checkpoints_removed"] == [first["session_id"]]
    assert answer["cleaned"]


def test_rebuild_without_a_query_rebuilds_the_index_and_ends(server: Server) -> None:
    answer = server.call("start_session", flags={"rebuild": True})
    assert answer["phase"] == "SESSION_COMPLETE"
    assert "Index rebuilt" in answer["message"]
    assert server.call("get_session_status")["error"] == "no_active_session"


def test_the_projects_own_words_are_used_for_a_rebuild_too(server: Server, root: Path) -> None:
    (root / ".code-intel").mkdir(exist_ok=True)
    own = "success:\n  session:\n    rebuild_done:\n      message: 'Fresh: {files} files.'\n"
    (root / ".code-intel" / "phase_contract.yml").write_text(own)
    assert server.call("start_session", flags={"rebuild": True})["message"].startswith("Fresh: ")


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

    def test_a_submit_without_a_session_points_to_the_checkpoint(self, root: Path) -> None:
        self.interrupted(root)
        with Server(root) as server:
            answer = server.refused(action_type="change")
            assert "get_session_status(discard_active=true" in answer["message"]
            assert answer["recovery_available"]

    def test_a_new_session_says_that_recovery_is_available(self, root: Path) -> None:
        session_id = self.interrupted(root)
        with Server(root) as server:
            answer = start(server)
            assert [row["session_id"] for row in answer["recovery_available"]] == [session_id]
            restored = server.call("get_session_status", discard_active=True)
            assert restored["session_id"] == session_id
            assert restored["phase"] == "QUERY_FRAME"

    def test_a_named_session_is_restored(self, root: Path) -> None:
        session_id = self.interrupted(root)
        with Server(root) as server:
            assert server.call("get_session_status", session_id="../../etc/passwd")["success"] is False
            assert server.call("get_session_status", session_id=session_id)["phase"] == "QUERY_FRAME"

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

    def test_a_checkpoint_of_another_machine_is_not_obeyed(self, root: Path) -> None:
        session_id = self.interrupted(root)
        (root / ".git" / "code-intel" / "key").unlink()
        with Server(root) as server:
            answer = server.call("get_session_status", session_id=session_id)
            assert answer["success"] is False
            assert "recovery_available" not in start(server)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_process_at_once_and_the_session_can_be_resumed(root: Path, number: signal.Signals) -> None:
    server = Server(root)
    session_id = start(server)["session_id"]
    assert server.signal(number) == 0
    server.close()
    with Server(root) as again:
        assert again.call("get_session_status")["session_id"] == session_id


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


def test_only_verify_judges_the_tree_as_it_is_and_ends(server: Server) -> None:
    answer = start(server, only_verify=True, fast=True)
    assert (answer["phase"], answer["step"]) == ("POST_IMPL_VERIFY", 15)
    assert answer["ignored_flags"] == ["fast"]
    final = server.accepted(passed=True, verifier_used="generic", details="fine")
    assert final["phase"] == "SESSION_COMPLETE"


def test_tools_are_refused_where_the_phase_forbids_them_and_say_what_to_do(server: Server) -> None:
    start(server, no_doc=True)
    refusals: list[tuple[str, dict[str, object], str]] = [
        ("semantic_search", {"query": "x"}, "phase_blocked"),
        ("analyze_impact", {"targets": ["main"]}, "phase_blocked"),
        ("check_write_target", {"path": "app.py"}, "write_phase_blocked"),
        ("add_explored_files", {"paths": ["app.py"], "reason": "for the test"}, "phase_mismatch"),
        ("review_changes", {}, "phase_blocked"),
        ("cleanup_stale_branches", {}, "phase_blocked"),
        ("record_outcome", {"outcome": "success"}, "phase_blocked"),
    ]
    for tool, arguments, error in refusals:
        answer = server.call(tool, **arguments)
        assert answer["success"] is False
        assert answer["error"] == error, answer
        assert answer["phase"] == "QUERY_FRAME"
        assert answer["expected_payload"]


def test_arguments_that_do_not_fit_are_refused_in_our_words_with_the_reinstruction(server: Server) -> None:
    refused = server.call("find_definitions", name="x")
    assert [*refused][:4] == ["success", "error", "message", "remedy"]
    assert refused["error"] == "argument_invalid"
    assert refused["message"].endswith("nothing was done: symbol: Field required.")
    assert "'INVESTIGATE' or 'QUESTION'" in server.call("start_session", query="x", intent="CHANGE")["message"]
    start(server, no_doc=True)
    for wrong in ({"summary": "x", "tools_used": []}, {"data": [1]}, {}):
        answer = server.call("submit_phase", **wrong)
        assert "send that as `data`" in answer["remedy"]
        assert answer["expected_payload"]["action_type"] == "str"
    assert [*answer][:4] == ["success", "error", "message", "remedy"]
    assert "Unknown tool" in str(server.answer_to("dance"))


def test_a_refused_tool_does_not_count_and_an_empty_answer_does(server: Server) -> None:
    start(server, no_doc=True)
    server.accepted(action_type="change")
    server.call("search_text", patterns="nothing_like_this_anywhere")
    server.call("search_text", patterns="(")
    answer = server.refused(explored_files=["app.py"], findings=["x"], tools_used=["search_text", "query"])
    assert "at least 2 distinct tools" in answer["message"]
    server.call("query", question="where is main defined?")
    server.accepted(explored_files=["app.py"], findings=["x"], tools_used=["search_text", "query"])


def test_a_file_is_writable_when_explored_added_or_new_beside_one(server: Server, root: Path) -> None:
    to_ready(server)
    plan(server)
    assert server.call("check_write_target", path="./app.py")["allowed"] is True
    assert server.call("check_write_target", path=str(root / "app.py"))["allowed"] is True
    blocked = server.call("check_write_target", path="README.md")
    assert blocked["allowed"] is False
    assert "add_explored_files" in blocked["remedy"]
    assert server.call("check_write_target", path="new.py")["allowed"] is True
    assert server.call("check_write_target", path="deep/new.py")["allowed"] is False
    assert server.call("add_explored_files", paths=["README.md"], reason="short")["success"] is False
    server.call("add_explored_files", paths=["README.md"], reason="documents the change")
    assert server.call("check_write_target", path="README.md")["allowed"] is True


def test_the_outcome_of_a_finished_session_teaches_the_map(server: Server, root: Path) -> None:
    to_ready(server)
    finish(server, root)
    answer = server.call("record_outcome", outcome="success", notes="works")
    assert answer["success"], answer
    assert list((root / ".code-intel" / "agreements").iterdir())
    found = server.call("semantic_search", query="Make main return two")
    assert found["forest_skipped"] is True
    assert found["results"][0]["path"] == "app.py"


def test_an_outcome_needs_a_finished_session(server: Server) -> None:
    assert server.call("record_outcome", outcome="success")["error"] == "no_finished_session"


def test_the_listing_of_tools_is_small_annotated_and_complete(server: Server) -> None:
    tools = server.list_tools()
    assert len(tools) == 21
    for tool in tools:
        assert tool["title"] and tool["description"]
        assert set(tool["annotations"]) >= {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
        assert tool["inputSchema"]["type"] == tool["outputSchema"]["type"] == "object"
    seen = [{key: tool[key] for key in ("name", "description", "inputSchema")} for tool in tools]
    assert len(json.dumps(seen).encode()) < 20 * 1024
    loaded = {tool["name"] for tool in tools if tool.get("_meta", {}).get("anthropic/alwaysLoad")}
    assert loaded == {"start_session", "submit_phase", "get_session_status"}


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
        edit_and_report(server, root)
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
