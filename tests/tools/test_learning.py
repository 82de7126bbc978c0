"""What sessions leave behind: outcomes by themselves, the archive, lessons for sessions like them (SPEC 10)."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.driver import Fields, Server, git, repository
from tests.tools.past_sessions import ALIKE, PAST, UNLIKE

from code_intel_server.flow import responses
from code_intel_server.flow.phases import Flags, Intent, Phase
from code_intel_server.flow.session import SessionState
from code_intel_server.flow.tasks import TaskModel
from code_intel_server.tools import learning
from code_intel_server.tools.services import ProjectServices
from code_intel_server.tools.session import archives

AT = "2026-01-01T00:00:00+00:00"
ESCAPE = "\x1b[31mred"


@pytest.fixture
def services(tmp_path: Path) -> Iterator[ProjectServices]:
    made = ProjectServices(tmp_path)
    yield made
    made.close()


def state(session_id: str, query: str, reason: str = "", **more: object) -> SessionState:
    """A session that failed on `reason`."""
    tasks = (TaskModel(id="t1", description="The task", revert_reason=reason),)
    return SessionState(
        session_id=session_id, intent=Intent.MODIFY, query=query, phase=Phase.MERGE, tasks=tasks, **more
    )


@pytest.fixture
def shop(services: ProjectServices) -> ProjectServices:
    """A desk whose log holds the thirty sessions."""
    for number, (query, symbols, files, reason) in enumerate(PAST):
        services.outcomes.append(
            {
                "session_id": f"s{number:02}", "outcome": "abandoned", "query": query, "symbols": symbols,
                "files": files, "failures": [reason],
            }
        )  # fmt: skip
    return services


def lessons_for(services: ProjectServices, query: str) -> list[str]:
    contract = services.read_kit().contract
    return [responses.say(contract, one) for one in learning.lessons(services, state("new", query))]


def test_most_sessions_like_a_failed_one_are_told_its_failure(shop: ProjectServices) -> None:
    told = [any(PAST[like][3] in lesson for lesson in lessons_for(shop, query)) for query, like in ALIKE]
    assert sum(told[:8]) == 8  # the half that set the threshold
    assert sum(told[8:]) >= 6  # the half that only judges it


@pytest.mark.parametrize("query", UNLIKE)
def test_a_query_unlike_every_past_session_gets_no_lesson(shop: ProjectServices, query: str) -> None:
    assert lessons_for(shop, query) == []


def test_two_sessions_that_failed_alike_make_one_lesson_that_says_so(shop: ProjectServices) -> None:
    lessons = lessons_for(shop, "Paginate the orders endpoint by cursor")
    assert lessons[0] == "2 similar session(s), the likest s04, failed on: The snapshot of the API was stale."


def test_there_are_at_most_three_lessons_the_likest_first(services: ProjectServices) -> None:
    for number in range(5):
        learning.record_end(services, state(f"s{number}", "Cache the catalogue", f"Reason {number}"), "forced", "", AT)
    assert len(lessons_for(services, "Cache the catalogue")) == 3


def test_a_lesson_shows_no_control_characters(services: ProjectServices) -> None:
    learning.record_end(services, state("s1", "Cache the catalogue", f"It was {ESCAPE}\nand more"), "forced", "", AT)
    (lesson,) = lessons_for(services, "Cache the catalogue")
    assert "\x1b" not in lesson
    assert "\n" not in lesson


def test_torn_foreign_and_newer_lines_cost_only_themselves(shop: ProjectServices) -> None:
    log = shop.project.logs / "outcomes.jsonl"
    newer = {"schema": 9, "session_id": "n", "query": "Paint the shed", "failures": ["Wet."], "shape": {"new": [1]}}
    odd = [b"[1]", b'{"query": 7, "failures": "x"}', json.dumps(newer).encode(), b'{"query": "Cache the ca']
    log.write_bytes(log.read_bytes() + b"\n".join(odd))
    assert lessons_for(shop, "Paint the shed") == ["1 similar session(s), the likest n, failed on: Wet."]
    assert lessons_for(shop, "Cache product prices in the catalogue")


def test_an_end_that_a_kill_kept_from_the_log_is_recorded_at_the_next_start(services: ProjectServices) -> None:
    for session_id, forced in (("20260101_000001", True), ("20260101_000002", False)):
        archives.archive(services, state(session_id, "Q", "Broken", forced=forced), (), "SESSION_COMPLETE", AT)
    assert learning.catch_up(services, AT) == ["20260101_000001"]
    assert learning.catch_up(services, AT) == []
    (row,) = services.outcomes.tail().records
    assert (row["outcome"], row["failures"]) == ("forced", ["Broken"])


def test_a_verification_that_fails_by_itself_is_a_failed_session() -> None:
    only = state("s", "Verify", flags=Flags(only_verify=True), summaries={"step_15_POST_IMPL_VERIFY": "Two tests fail"})
    assert learning.verdict_on(only, "SESSION_COMPLETE") == ("failed", "verification failed")
    assert learning.failures_of(only) == ["Two tests fail"]


def test_an_archive_too_big_gives_up_its_bulk_but_never_its_state(services: ProjectServices) -> None:
    kept = state("20260101_000001", "Q", summaries={"a": "x" * 1000})
    record = archives.gather(services, kept, (), "SESSION_COMPLETE", AT)
    record["diff"] = {"text": "y" * archives.MAX_ARCHIVE_BYTES}
    read = json.loads(archives._within_limit(record))
    assert read["given_up"] == ["diff"]
    assert read["state"] == kept.to_checkpoint()


# -- over a real server ---------------------------------------------------------------------------------------------

QUERY = "Make main return two"


def failing(server: Server, query: str, reason: str) -> Fields:
    """A session whose verification fails, and which is then given up with `clean`."""
    answer = server.call("start_session", query=query, intent="MODIFY", flags={"quick": True, "no_doc": True})
    server.accepted(action_type="change", target_symbols=["main"])
    server.call("add_explored_files", paths=["app.py"], reason="holds the function")
    server.accepted(tasks=[{"id": "t1", "description": "Do it", "status": "pending", "checklist": ["Do it"]}])
    item = {"item": "Do it", "status": "skipped", "reason": "It cannot be done here."}
    server.accepted(task_id="t1", checklist=[item])
    server.accepted(summary="All is done.")
    server.accepted(passed=False, verifier_used="generic", details=reason)
    server.call("start_session", flags={"clean": True})
    return answer


def test_two_sessions_that_fail_alike_are_a_lesson_for_the_third_and_for_no_other(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", {"app.py": "def main():\n    return 1\n"})
    with Server(root) as server:
        failing(server, "Make main return two", "The fixture expects one.")
        failing(server, "main should return two", "The fixture expects one.")
        third = server.call("start_session", query="Let main return two instead of one", intent="MODIFY")
        server.call("start_session", flags={"clean": True})
        other = server.call("start_session", query="Translate the manual to Japanese", intent="MODIFY")
    assert [lesson.split(" failed on: ")[1] for lesson in third["lessons"]] == ["The fixture expects one."]
    assert third["lessons"][0].startswith("2 similar session(s)")
    assert "lessons" not in other


def test_a_checkpoint_left_behind_is_not_called_abandoned_until_it_is_cleaned(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", {"app.py": "def main():\n    return 1\n"})
    log = root / ".code-intel/logs/outcomes.jsonl"
    with Server(root) as server:
        server.call("start_session", query=QUERY, intent="MODIFY", flags={"fast": True, "no_doc": True})
        server.kill()
    with Server(root) as server:
        server.call("start_session", query="Something else", intent="MODIFY", flags={"fast": True, "no_doc": True})
        assert not log.exists()
        server.call("start_session", flags={"clean": True})
    assert "abandoned" in log.read_text()


def test_a_session_whose_branch_is_retired_is_recorded_as_abandoned_and_its_failure_is_a_lesson(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", {"app.py": "def main():\n    return 1\n"})
    server = Server(root)
    server.call("start_session", query="Make main return two", intent="MODIFY", flags={"fast": True, "no_doc": True})
    server.accepted(action_type="change", target_symbols=["main"])
    server.call("add_explored_files", paths=["app.py"], reason="Holds main")
    planned = server.accepted(
        tasks=[{"id": "t1", "description": "Return two", "status": "pending", "checklist": ["two"]}]
    )
    retired = planned["session_id"]
    server.kill()
    with Server(root) as server:
        answer = server.call("start_session", query="Something else", intent="MODIFY", flags={"no_doc": True})
        assert answer["phase"] == "BRANCH_INTERVENTION"
        server.accepted(choice="delete")
    assert not [*(root / ".code-intel/sessions").glob(f"{retired}.*")]
    rows = [json.loads(line) for line in (root / ".code-intel/logs/outcomes.jsonl").read_text().splitlines()]
    (row,) = [row for row in rows if row["session_id"] == retired]
    assert (row["outcome"], row["notes"], row["query"]) == (
        "abandoned",
        "its branch was retired",
        "Make main return two",
    )
    assert f"llm_task_{retired}" not in git(root, "branch", "--list")
    assert retired in git(root, "for-each-ref", "--format=%(refname)", "refs/code-intel/archive")
