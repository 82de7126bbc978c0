"""The life of a session over a real process: start, clean, endings, bad repositories (SPEC 2, 3, 7)."""

import json
from pathlib import Path

import pytest

from code_intel_server.flow.access import ACCESS
from tests.e2e.driver import Server, fingerprint, git, repository
from tests.e2e.fast_session import FILES, edit_and_report, finish, plan, start, to_ready

REASON = "Everything was found already."


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


def test_what_is_wrong_with_a_file_of_the_project_is_said_with_its_name(server: Server, root: Path) -> None:
    (root / ".code-intel").mkdir(exist_ok=True)
    (root / ".code-intel/config.json").write_text('{"sync_on_start": false,\n "finish": "rebase"}')
    (root / ".code-intel/context.yml").write_text("doc_research:\n  enabled: maybe\n")
    problems = start(server)["contract_warnings"]
    assert [problem.partition(":")[0] for problem in problems] == ["config.json line 2", "context.yml line 2"]


def test_flags_are_understood_as_people_spell_them(server: Server) -> None:
    answer = server.call("start_session", query="x", flags={"--no-doc-research": True, "gate": "f"})
    assert answer["phase"] == "QUERY_FRAME"


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
        ("fetch_chunk_detail", {"chunk_id": "x"}, "phase_blocked"),
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
    refused = server.call("get_symbols", name="x")
    assert [*refused][:4] == ["success", "error", "message", "remedy"]
    assert refused["error"] == "argument_invalid"
    assert refused["message"].endswith("nothing was done: path: Field required; name: unknown argument.")
    assert "'INVESTIGATE' or 'QUESTION'" in server.call("start_session", query="x", intent="CHANGE")["message"]
    start(server, no_doc=True)
    for wrong in ({"data": 1}, {}):
        answer = server.call("submit_phase", **wrong)
        assert "send that as `data`" in answer["remedy"]
        assert answer["expected_payload"]["action_type"] == "str"
    assert [*answer][:4] == ["success", "error", "message", "remedy"]
    assert "Unknown tool" in str(server.answer_to("dance"))


def test_a_payload_without_its_wrapper_is_taken_as_it_is_meant(server: Server) -> None:
    start(server, no_doc=True)
    refused = server.call("submit_phase", summary="x", dta={})
    assert (refused["error"], refused["ignored_fields"]) == ("payload_mismatch", ["dta"])
    assert server.call("submit_phase", summary="x", action_type="change")["phase"] == "EXPLORATION"


def test_an_argument_that_no_tool_has_is_refused_by_name(server: Server) -> None:
    unknown = server.call("search_text", patterns="main", paths=["src"])
    assert (unknown["success"], unknown["error"]) == (False, "argument_invalid")
    assert unknown["message"].endswith("paths: unknown argument.")
    beside = server.call("start_session", query="Change main", quick=True, no_doc=True)
    assert beside["message"].startswith("These belong into flags: quick, no_doc.")
    assert server.call("get_session_status")["error"] == "no_active_session"
    start(server, no_doc=True)
    twice = server.call("submit_phase", data={"summary": "x", "action_type": "add"}, summary="x")
    assert twice["message"].endswith("summary: unknown argument.")
    assert server.call("get_session_status")["phase"] == "QUERY_FRAME"


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
    assert [path.relative_to(root).as_posix() for path in (root / ".code-intel/agreements").iterdir()] == [
        answer["file"]
    ]
    assert f"{answer['file']} keeps which code answered" in answer["message"]
    found = server.call("semantic_search", query="Make main return two")
    assert found["forest_skipped"] is True
    assert found["results"][0]["path"] == "app.py"
    taken_back = server.call("record_outcome", outcome="failure", notes="it broke the list")
    assert taken_back["file"] == answer["file"] and "is removed" in taken_back["message"]
    assert not list((root / ".code-intel/agreements").iterdir())
    assert "forest_skipped" not in server.call("semantic_search", query="Make main return two")
    assert "file" not in server.call("record_outcome", outcome="failure")


def test_an_outcome_needs_a_finished_session(server: Server) -> None:
    assert server.call("record_outcome", outcome="success")["error"] == "no_finished_session"


def test_the_listing_of_tools_is_small_annotated_and_complete(server: Server) -> None:
    tools = server.list_tools()
    assert {tool["name"] for tool in tools} == set(ACCESS)
    for tool in tools:
        assert tool["title"] and tool["description"]
        assert set(tool["annotations"]) >= {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
        assert tool["inputSchema"]["type"] == tool["outputSchema"]["type"] == "object"
    seen = [{key: tool[key] for key in ("name", "description", "inputSchema")} for tool in tools]
    assert len(json.dumps(seen).encode()) < 20 * 1024
    loaded = {tool["name"] for tool in tools if tool.get("_meta", {}).get("anthropic/alwaysLoad")}
    assert loaded == {"start_session", "submit_phase", "get_session_status"}


def test_a_session_that_runs_in_another_worktree_leaves_no_stale_branch_until_it_is_over(
    root: Path, tmp_path: Path
) -> None:
    git(root, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    with Server(root) as first, Server(tmp_path / "side") as second:
        to_ready(first)
        plan(first)
        assert start(second, fast=True, no_doc=True)["phase"] == "QUERY_FRAME"
        second.call("start_session", flags={"clean": True})
        assert second.call("cleanup_stale_branches", dry_run=True)["branches"] == []
        assert git(root, "branch", "--list", "llm_task_*")
        first.kill()
        assert start(second, fast=True, no_doc=True)["phase"] == "BRANCH_INTERVENTION"


def test_a_branch_that_is_only_called_like_a_task_branch_is_removed_like_one(server: Server, root: Path) -> None:
    for name in ("llm_task_by_hand", "llm_task_20200101_000000"):
        git(root, "branch", name)
    assert start(server, fast=True, no_doc=True)["phase"] == "BRANCH_INTERVENTION"
    answer = server.accepted(choice="delete")
    assert answer["branches_removed"] == ["llm_task_20200101_000000", "llm_task_by_hand"]
    assert server.call("get_session_status")["phase"] == answer["phase"] == "QUERY_FRAME"
