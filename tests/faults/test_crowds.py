"""Crowds and deaths by the hundred: parallel submits, lookups beside them, cancels, clients that die, signals (rows 17, 24-28, 31)."""

import json
import os
import random
import signal
import time
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from benchmarks.faults.results import Record, size
from benchmarks.faults.scenarios import FILES, ROAD, moves, start
from benchmarks.faults.sentinel import Sentinel

from code_intel_server import process
from tests.e2e.driver import Fields, Server, foreign_repository, git, repository
from tests.e2e.scenario import Scenario
from tests.faults.test_process import EXIT_SECONDS, GONE_SECONDS, SIGNALS, Wire, descendants, gone_soon


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo", FILES)


def planned(number: int) -> Fields:
    """A plan that can be told from others."""
    task = {"id": f"t{number}", "description": f"Plan {number}", "status": "pending", "checklist": ["Return two"]}
    return {"tasks": [task], "summary": f"Plan {number}.", "tools_used": []}


def at_plan(root: Path, server: Server) -> None:
    for move in moves(root)[:2]:
        assert move(server)["success"]
    server.call("add_explored_files", paths=["app.py"], reason="holds the function to change")


def kept(root: Path) -> list[str]:
    """The tasks in the checkpoint on disk."""
    (path,) = (path for path in (root / ".code-intel/sessions").glob("*.json") if "previous" not in path.name)
    return [task["id"] for task in json.loads(path.read_text())["orchestrator_state"]["tasks"]]


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", [0, *(pytest.param(n, marks=pytest.mark.full) for n in range(1, 25))])
def test_rounds_of_two_hundred_submits_at_once_leave_one_whole_plan_in_memory_and_on_disk(
    root: Path, part: int, record_property: Record
) -> None:
    """Every second round all are the same: then all answers are, too."""
    rounds, many, number = size(1, 20), size(10, 200), 0
    with Wire(root) as server:
        at_plan(root, server)
        for each in range(rounds):
            plans = [planned(number + (0 if each % 2 else n)) for n in range(many)]
            number += many
            for plan in plans:
                server.ask("submit_phase", data=plan)
            answers = [server.answer()["result"]["structuredContent"] for _ in range(many)]
            assert all(answer["success"] and answer["step"] == 13 for answer in answers), each
            if each % 2:
                assert {json.dumps(answer, sort_keys=True) for answer in answers} == {
                    json.dumps(answers[0], sort_keys=True)
                }
            status = server.call("get_session_status")
            assert len(kept(root)) == 1
            assert f'"{kept(root)[0]}"' in json.dumps(status)
            assert kept(root)[0] in {plan["tasks"][0]["id"] for plan in plans}
    record_property("executions", rounds)
    assert git(root, "branch", "--list", "llm_task_*").count("llm_task_") == 1


def test_lookups_beside_submits_all_tell_the_same_truth(root: Path, record_property: Record) -> None:
    wanted, done = size(50, 10_000), 0
    looks: list[tuple[str, Fields]] = [
        ("search_text", {"patterns": "return 1"}),
        ("find_definitions", {"symbol": "main"}),
        ("get_symbols", {"path": "app.py"}),
        ("search_files", {"pattern": "*.py"}),
        ("get_function_at_line", {"path": "app.py", "line": 2}),
    ]
    with Wire(root) as server:
        at_plan(root, server)
        truth = [strict(server.call(tool, **arguments)) for tool, arguments in looks]
        while done < wanted:
            asked: dict[int, int] = {}
            for n in range(50):
                if n % 10 == 0:
                    asked[server.ask("submit_phase", data=planned(done + n))] = -1
                asked[server.ask(looks[n % 5][0], **looks[n % 5][1])] = n % 5
            for _ in range(len(asked)):
                answer = server.answer()
                content = answer["result"]["structuredContent"]
                which = asked.pop(answer["id"])
                assert content["success"] if which < 0 else strict(content) == truth[which], (which, content)
            done += 50
    record_property("executions", done)


def strict(answer: Fields) -> str:
    """What a lookup found."""
    return json.dumps(answer["results"], sort_keys=True)


def test_a_submit_cancelled_at_any_moment_is_done_or_undone_and_can_be_sent_again(
    root: Path, record_property: Record
) -> None:
    """The moment moves on by forty millionths of a second each time, from the call's beginning to beyond its end."""
    times = size(10, 1000)
    with Wire(root) as server:
        at_plan(root, server)
        server.accepted(**planned(0))
        for number in range(1, times + 1):
            call = server.ask("submit_phase", data=planned(number))
            until = time.perf_counter() + 0.04 * number / times
            while time.perf_counter() < until:
                pass
            server.notify("notifications/cancelled", requestId=call, reason="the user pressed escape")
            status = server.ask("get_session_status")
            answer = server.answer()
            while answer["id"] != status:
                answer = server.answer()
            now, disk = json.dumps(answer["result"]["structuredContent"]), kept(root)
            assert disk in ([f"t{number - 1}"], [f"t{number}"]), number
            assert (f'"t{number - 1}"' in now) != (f'"t{number}"' in now), number
            again = server.accepted(**planned(number))
            assert again["step"] == 13 and kept(root) == [f"t{number}"], number
    record_property("executions", times)


def works_in(root: Path) -> set[int]:
    """Processes whose working folder is in the repository."""
    found = set()
    for number in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 - thousands of times
        with suppress(OSError):
            if f"{os.readlink(f'/proc/{number}/cwd')}/".startswith(f"{root}/"):  # noqa: PTH115
                found.add(int(number))
    return found - {os.getpid()}


EMPTY = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
"""The blob of nothing."""


def client_dies(root: Path, turn: int, after: float) -> tuple[tuple[str, int], tuple[str, int]]:
    """A process that is the client makes the session's next move and is killed so many seconds later; before and expected places."""
    server = Server(root)
    status = server.call("get_session_status")
    if not status["success"]:
        (root / "app.py").write_text(f"def main():\n    return {turn} + 1\n")
        git(root, "commit", "-qam", f"The user's own {turn}")
        status = start(server)
    place = (status["phase"], status["step"])
    at = ROAD.index(place)
    client = os.fork()
    if client == 0:
        with suppress(BaseException):
            moves(root)[at](server)
        time.sleep(60)
        os._exit(0)
    stdin, stdout = server._process.stdin, server._process.stdout
    assert stdin is not None and stdout is not None
    stdin.close()
    stdout.close()
    time.sleep(after)
    below = descendants(server.pid)
    os.kill(client, signal.SIGKILL)
    os.waitpid(client, 0)
    server.wait(GONE_SECONDS)
    server.close()
    assert gone_soon(below)
    deadline = time.monotonic() + GONE_SECONDS
    while works_in(root) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not works_in(root)
    return place, ROAD[at + 1]


def test_a_client_killed_in_the_middle_of_a_call_leaves_no_process_and_a_session_that_goes_on(
    root: Path, record_property: Record
) -> None:
    times, chance = size(3, 500), random.Random(27)  # noqa: S311 - repeatable, not secret
    allowed: tuple[Any, ...] = ()
    for turn in range(times):
        before = Sentinel.of(root)
        if allowed:
            with Server(root) as looking:
                status = looking.call("get_session_status")
                place = (status["phase"], status["step"]) if status["success"] else ROAD[-1]
                assert place in allowed, turn
        allowed = client_dies(root, turn, chance.uniform(0, 0.25))
        for lock in (root / ".git").rglob("*.lock"):  # of a git that was ended in the middle: the user's to remove
            lock.unlink()
        # The client that was killed as it wrote app.py left it empty: no content to be lost.
        empty = before.files["app.py"].endswith(EMPTY)
        assert [row for row in before.lost(root) if row != "file app.py" or not empty] == [], turn
    record_property("executions", times)


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_each_signal_in_each_phase_ends_it_in_two_seconds_and_the_session_goes_on(
    tmp_path: Path, record_property: Record
) -> None:
    root = foreign_repository(tmp_path / "repo")
    (root / ".code-intel").mkdir()
    (root / ".code-intel" / "config.json").write_text(json.dumps({"sync_on_start": False}))
    git(root, "add", "-A")
    git(root, "commit", "-qm", "Configure")
    scenario, phases, count = Scenario(root), set(), 0
    scenario.prepare()
    server = Server(root)
    place = scenario.start(server)
    for name, move in scenario.moves():
        phases.add(place["phase"])
        for number in SIGNALS:
            below = descendants(server.pid)
            os.kill(server.pid, number)
            server.wait(EXIT_SECONDS)
            server.close()
            assert gone_soon(below), (name, number)
            server = Server(root)
            status = server.call("get_session_status")
            assert (status["phase"], status["step"]) == (place["phase"], place["step"]), (name, number)
            count += 1
        place = move(server)
        assert place["success"], (name, place)
    assert place["phase"] == "SESSION_COMPLETE"
    server.close()
    assert len(phases) == 16, sorted(phases)
    record_property("executions", count)


BAD_CHILDREN = ("sleep 60", "sleep 60 & wait", "trap '' TERM INT HUP; sleep 60; sleep 60", "(sleep 60 &) ; sleep 60",
                "exec sleep 60", "while :; do :; done", "for n in 1 2 3 4 5 6 7 8; do sleep 60 & done; wait", "kill -STOP $$",
                "trap 'sleep 60' TERM; sleep 60", "yes", "cat /dev/zero", "sh -c 'sh -c \"sleep 60 & sleep 60\" & wait'")  # fmt: skip


def test_a_child_that_will_not_end_is_ended_with_all_it_started(tmp_path: Path, record_property: Record) -> None:
    cases = list(product(BAD_CHILDREN, (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5)))[: size(12, 200)]
    os.chdir(tmp_path)
    for script, limit in cases:
        began = time.monotonic()
        done = process.run(["sh", "-c", script], cwd=tmp_path, timeout=limit, max_output=1 << 20)
        assert not done.ok, script
        assert time.monotonic() - began < limit + GONE_SECONDS, script
        left = works_in(tmp_path)
        assert gone_soon(left), script
    record_property("executions", len(cases))


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_of_ten_servers_started_at_once_one_gets_the_project(root: Path, record_property: Record) -> None:
    """A hundred times: each is a process of its own that asks as soon as it lives."""
    for turn in range(100):
        servers = [Server(root) for _ in range(10)]
        try:
            for server in servers:
                server._number += 1
                words = {
                    "name": "start_session",
                    "arguments": {"query": "Make main return two", "flags": {"quick": True}},
                }
                server._send({"jsonrpc": "2.0", "id": server._number, "method": "tools/call", "params": words})
            answers = []
            for server in servers:
                assert server._process.stdout is not None
                while (message := json.loads(server._process.stdout.readline())).get("id") != server._number:
                    pass
                answers.append(message["result"]["structuredContent"])
            assert sum(answer["success"] for answer in answers) == 1, turn
            assert all(answer["success"] or answer["error"] == "project_locked" for answer in answers), turn
            winner = next(s for s, answer in zip(servers, answers, strict=True) if answer["success"])
            winner.call("start_session", flags={"clean": True})
        finally:
            for server in servers:
                server.close()
    record_property("executions", 1000)
