"""The end of the process, its children, its pipes, and calls side by side (P4; SPEC 6.7, 7)."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from benchmarks.faults.results import Record
from benchmarks.faults.scenarios import FILES, moves

from code_intel_server import process
from code_intel_server.workspace.project.trust import Approvals
from tests.e2e.driver import ENVIRONMENT, Fields, Server, git, repository

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
EXIT_SECONDS = 2.0
GONE_SECONDS = 20.0
"""Until what was killed is gone, on a busy machine; what the tests start would live for a minute."""


class Wire(Server):
    """A server whose requests are sent without waiting for their answers."""

    def ask(self, tool: str, **arguments: object) -> int:
        """Send a tool call; its id."""
        self._number += 1
        call = {"name": tool, "arguments": arguments}
        self._send({"jsonrpc": "2.0", "id": self._number, "method": "tools/call", "params": call})
        return self._number

    def say(self, line: str) -> None:
        """Send a line, whatever it is."""
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()

    def answer(self) -> Fields:
        """The next message that is an answer."""
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            message: Fields = json.loads(line)
            if "id" in message:
                return message
        raise EOFError

    def close_input(self) -> None:
        """The client closes its end of the pipe and says nothing more."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def notify(self, method: str, **params: object) -> None:
        """Send a notification."""
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def ended_within(self, seconds: float) -> bool:
        """Whether the process ends by itself in that time."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def resident(self) -> int:
        """Bytes of memory in use."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(next(row for row in status.splitlines() if row.startswith("VmRSS:")).split()[1]) * 1024


def descendants(pid: int) -> set[int]:
    """Every living process below `pid`."""
    found: set[int] = set()
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # it has just ended
            for child in task.read_text().split():
                found |= {int(child)} | descendants(int(child))
    return found


def alive(pids: set[int]) -> set[int]:
    """Those that still run (a zombie does not)."""
    found = set()
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError):  # it is gone, or goes while it is read
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z":
                found.add(pid)
    return found


def until(holds: Callable[[], object], seconds: float = 20) -> None:
    """Wait for a condition, looking twenty times a second."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it never came true"
        threading.Event().wait(0.05)


def gone_soon(pids: set[int]) -> bool:
    """Whether all of them end long before they would by themselves: nobody lives any more who could end them later."""
    deadline = time.monotonic() + GONE_SECONDS
    while alive(pids) and time.monotonic() < deadline:
        threading.Event().wait(0.05)
    return not alive(pids)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo", FILES)


@pytest.fixture
def server(root: Path) -> Iterator[Wire]:
    with Wire(root) as running:
        yield running


def commands(root: Path, *argv: list[str], limit: float = 60) -> None:
    """The user's verify commands, trusted; the limit of each in seconds."""
    config = root / ".code-intel" / "config.json"
    rows = [{"argv": words, "timeout": limit} for words in argv]
    config.write_text(json.dumps({"sync_on_start": False, "verify_commands": rows}))
    git(root, "commit", "-qam", "Configure")
    Approvals(root.parent / "state" / "code-intel").trust(config)


def at_verification(root: Path, server: Server) -> None:
    for move in moves(root)[:5]:
        assert move(server)["success"]


VERDICT = {"passed": True, "verifier_used": "generic", "details": "looked", "summary": "Verified.", "tools_used": []}


class TestTheEnd:
    @pytest.mark.parametrize("number", SIGNALS)
    def test_a_signal_while_a_command_runs_ends_everything_in_two_seconds_and_the_session_goes_on(
        self, root: Path, number: signal.Signals
    ) -> None:
        mark = root.parent / "running"
        script = f"trap '' TERM INT HUP; sleep 60 & touch {mark}; sleep 60"
        commands(root, ["sh", "-c", script])
        server = Wire(root)
        at_verification(root, server)
        server.ask("submit_phase", data=VERDICT)
        until(mark.exists)
        below = descendants(server.pid)
        assert len(below) >= 2
        os.kill(server.pid, number)
        assert server.ended_within(EXIT_SECONDS)
        server.close()
        assert gone_soon(below)
        with Wire(root) as again:
            assert again.call("get_session_status")["phase"] == "POST_IMPL_VERIFY"

    @pytest.mark.parametrize("done", [0, 1, 3, 6])
    def test_a_signal_between_calls_ends_it_in_any_phase(self, root: Path, done: int) -> None:
        server = Wire(root)
        for move in moves(root)[:done]:
            place = move(server)
        below = descendants(server.pid)
        os.kill(server.pid, SIGNALS[done % 3])
        assert server.ended_within(EXIT_SECONDS)
        server.close()
        assert gone_soon(below)
        with Wire(root) as again:
            answer = again.call("get_session_status")
            assert answer["success"] is (done > 0)
            assert done == 0 or (answer["phase"], answer["step"]) == (place["phase"], place["step"])

    def test_the_end_of_the_pipe_does_not_wait_for_a_command(self, root: Path) -> None:
        mark = root.parent / "running"
        commands(root, ["sh", "-c", f"touch {mark}; sleep 60"])
        server = Wire(root)
        at_verification(root, server)
        server.ask("submit_phase", data=VERDICT)
        until(mark.exists)
        below = descendants(server.pid)
        server.close_input()
        assert server.ended_within(EXIT_SECONDS)
        server.close()
        assert gone_soon(below)

    def test_a_socket_closed_by_half_is_the_end_too(self, root: Path) -> None:
        """Node gives a child sockets for pipes, and `stdin.end()` shuts down one direction only."""
        mark = root.parent / "running"
        commands(root, ["sh", "-c", f"touch {mark}; sleep 60"])
        with Wire(root) as first:
            at_verification(root, first)
        ours, theirs = socket.socketpair()
        child = subprocess.Popen(
            [sys.executable, "-m", "code_intel_server", "serve"],
            cwd=root,
            env={**os.environ, **ENVIRONMENT, "XDG_STATE_HOME": str(root.parent / "state")},
            stdin=theirs.fileno(),
            stdout=theirs.fileno(),
            stderr=subprocess.DEVNULL,
        )
        theirs.close()
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}
        status = {"name": "get_session_status", "arguments": {}}
        verdict = {"name": "submit_phase", "arguments": {"data": VERDICT}}
        for message in (
            {"id": 1, "method": "initialize", "params": hello},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/call", "params": status},
        ):
            ours.sendall(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        with ours.makefile("rb") as heard:
            heard.readline()
            assert b'"id":2' in heard.readline().replace(b" ", b"")
        ours.sendall(
            json.dumps({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": verdict}).encode() + b"\n"
        )
        until(mark.exists)
        ours.shutdown(socket.SHUT_WR)
        child.wait(EXIT_SECONDS)
        ours.close()

    def test_a_parent_that_is_gone_is_noticed_though_the_pipe_stays_open(self, root: Path) -> None:
        reading, writing = os.pipe()
        starter = (
            "import subprocess, sys\n"
            "child = subprocess.Popen([sys.executable, '-m', 'code_intel_server', 'serve'], stdin=int(sys.argv[1]),"
            " stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)\n"
            "print(child.pid, flush=True)\nsys.stdin.readline()\n"
        )
        parent = subprocess.Popen(
            [sys.executable, "-c", starter, str(reading)],
            cwd=root,
            env={**os.environ, **ENVIRONMENT, "XDG_STATE_HOME": str(root.parent / "state")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=(reading,),
        )
        assert parent.stdout is not None and parent.stdin is not None
        pid = int(parent.stdout.readline())
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}
        os.write(
            writing, json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}).encode() + b"\n"
        )
        until(lambda: len(list(Path(f"/proc/{pid}/task").iterdir())) > 1)  # its watcher runs
        parent.kill()
        parent.wait(10)
        parent.stdin.close()
        parent.stdout.close()
        until(lambda: not alive({pid}), 5)
        os.close(reading)
        os.close(writing)


class TestVerifyCommands:
    @pytest.mark.parametrize(("script", "says"), [
        ("sleep 60", "limit"),
        ("sleep 60 & sleep 60 & wait", "limit"),
        ("trap '' TERM; sleep 60; sleep 60", "limit"),
        ("yes | head -c 10000000000; exit 1", ""),
        ("cat; exit 1", ""),
    ], ids=["hangs", "forks", "ignores SIGTERM", "prints 10 GB", "reads stdin"])  # fmt: skip
    def test_a_bad_command_is_bounded_in_time_memory_and_processes_and_the_wire_stays_whole(
        self, root: Path, script: str, says: str
    ) -> None:
        commands(root, ["sh", "-c", script], limit=4)
        with Wire(root) as server:
            at_verification(root, server)
            before, memory = descendants(server.pid), server.resident()
            began = time.monotonic()
            answer = server.call("submit_phase", data=VERDICT)
            assert time.monotonic() - began < 4 + 6
            assert answer["success"] is False
            assert says in json.dumps(answer)
            assert alive(descendants(server.pid)) <= before
            assert server.resident() - memory < 64 * 1024 * 1024
            assert server.call("get_session_status")["phase"] == "POST_IMPL_VERIFY"

    def test_a_cancelled_submit_is_undone_its_command_ended_and_it_can_be_sent_again(self, root: Path) -> None:
        mark = root.parent / "running"
        commands(root, ["sh", "-c", f"test -e {mark} && exit 0; touch {mark}; sleep 60"])
        with Wire(root) as server:
            at_verification(root, server)
            before = descendants(server.pid)
            number = server.ask("submit_phase", data=VERDICT)
            until(mark.exists)
            server.notify("notifications/cancelled", requestId=number, reason="the user pressed escape")
            until(lambda: alive(descendants(server.pid)) <= before, 5)
            status = server.ask("get_session_status")
            answers = [server.answer()]
            while answers[-1]["id"] != status:
                answers.append(server.answer())
            assert answers[-1]["result"]["structuredContent"]["phase"] == "POST_IMPL_VERIFY"
            assert server.call("submit_phase", data=VERDICT)["phase"] == "PRE_COMMIT"


class TestSideBySide:
    def test_a_review_that_was_cancelled_was_shown_to_nobody(self, root: Path) -> None:
        rows = "".join(f"\n\nROW_{number} = {number}\n" for number in range(800))
        with Wire(root) as server:
            at_verification(root, server)
            (root / "app.py").write_text(f"def main():\n    return 2\n{rows}")
            assert "review" not in server.call("submit_phase", data=VERDICT)
            kept = {"reviewed_files": ["app.py"], "commit_message": "Two", "review_prompt_used": "garbage_detection"}
            before = descendants(server.pid)
            number = server.ask("review_changes")
            server.notify("notifications/cancelled", requestId=number, reason="the user pressed escape")
            status = server.ask("get_session_status")
            until(lambda: server.answer()["id"] == status)
            until(lambda: alive(descendants(server.pid)) <= before)
            refused = server.submit(**kept)
            assert not refused["success"] and "review_changes" in refused["message"]
            assert server.call("review_changes")["results"]
            server.accepted(**kept)

    def test_of_two_hundred_submits_at_once_one_wins_and_none_is_lost(self, root: Path, server: Wire) -> None:
        for move in moves(root)[:2]:
            move(server)
        server.call("add_explored_files", paths=["app.py"], reason="holds the function to change")
        for number in range(200):
            task = {"id": f"t{number}", "description": "Return two", "status": "pending", "checklist": ["Return two"]}
            server.ask("submit_phase", data={"tasks": [task], "summary": f"Plan {number}.", "tools_used": []})
        answers = [server.answer()["result"]["structuredContent"] for _ in range(200)]
        assert all(answer["success"] and answer["step"] == 13 for answer in answers)
        last = server.call("get_session_status")
        server.kill()
        with Wire(root) as again:
            restored = again.call("get_session_status")
            assert restored["tasks"] == last["tasks"] if "tasks" in last else restored["step"] == 13
        assert git(root, "branch", "--list", "llm_task_*").count("llm_task_") == 1

    def test_the_same_submit_two_hundred_times_at_once_has_one_effect_and_one_answer(
        self, root: Path, server: Wire
    ) -> None:
        for move in moves(root)[:6]:
            move(server)
        rows = server.call("review_changes")["results"]
        data = {
            "reviewed_files": [row["path"] for row in rows],
            "commit_message": "Return two",
            "review_prompt_used": "garbage_detection",
            "tools_used": ["review_changes"],
            "summary": "Reviewed.",
        }
        for _ in range(200):
            server.ask("submit_phase", data=data)
        answers = [server.answer()["result"]["structuredContent"] for _ in range(200)]
        assert {json.dumps(answer, sort_keys=True) for answer in answers} == {json.dumps(answers[0], sort_keys=True)}
        assert answers[0]["phase"] == "MERGE"
        assert git(root, "rev-list", "--count", "main..HEAD").strip() == "1"

    def test_lookups_go_on_while_a_submit_waits_for_its_command(self, root: Path) -> None:
        mark = root.parent / "running"
        commands(root, ["sh", "-c", f"touch {mark}; sleep 60"])
        with Wire(root) as server:
            at_verification(root, server)
            server.ask("submit_phase", data=VERDICT)
            until(mark.exists)
            lookup = server.ask("search_text", patterns="main")
            assert server.answer()["id"] == lookup
            os.kill(server.pid, signal.SIGTERM)
            assert server.ended_within(EXIT_SECONDS)

    def test_a_client_that_stops_reading_costs_no_memory_and_later_gets_every_answer(
        self, root: Path, server: Wire, record_property: Record
    ) -> None:
        (root / "wide.txt").write_text("".join(f"needle {n} {'x' * 80}\n" for n in range(2000)))
        server.call("search_text", patterns="needle", limit=200)
        memory = server.resident()
        asked = [server.ask("search_text", patterns="needle", limit=200) for _ in range(100)]
        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in descendants(server.pid)), 60)
        assert server.resident() - memory < 128 * 1024 * 1024
        assert sorted(server.answer()["id"] for _ in asked) == asked
        record_property("executions", len(asked))


def start_at_once(root: Path, rounds: int) -> list[int]:
    """Two live servers start a session at the same moment; how many got in, each round."""
    won: list[int] = []
    with Wire(root) as first, Wire(root) as second, ThreadPoolExecutor(2) as pool:
        for _ in range(rounds):
            gate = threading.Barrier(2)

            def go(server: Wire, gate: threading.Barrier = gate) -> Fields:
                gate.wait()
                return server.call("start_session", query="Make main return two", flags={"quick": True})

            answers = list(pool.map(go, (first, second)))
            won.append(sum(answer["success"] for answer in answers))
            assert all(answer["success"] or answer["error"] == "project_locked" for answer in answers)
            for server, answer in zip((first, second), answers, strict=True):
                if answer["success"]:
                    server.call("start_session", flags={"clean": True})
    return won


class TestTwoServers:
    def test_of_two_that_start_at_once_exactly_one_gets_the_project(self, root: Path) -> None:
        assert start_at_once(root, 10) == [1] * 10

    @pytest.mark.full
    @pytest.mark.timeout(900)
    def test_of_two_that_start_at_once_two_hundred_times_too(self, root: Path) -> None:
        assert start_at_once(root, 200) == [1] * 200

    def test_a_stopped_holder_keeps_the_project_and_is_named_and_goes_on_when_continued(
        self, root: Path, server: Wire
    ) -> None:
        moves(root)[0](server)
        with Wire(root) as other:
            os.kill(server.pid, signal.SIGSTOP)
            refused = other.call("start_session", query="Me too", flags={})
            assert refused["error"] == "project_locked"
            assert str(server.pid) in refused["message"]
            os.kill(server.pid, signal.SIGCONT)
            assert server.submit(action_type="change", target_symbols=["main"])["step"] == 12


def test_the_group_of_a_child_that_was_reaped_is_never_signalled(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its number may be another's by then."""
    signalled: list[int] = []
    monkeypatch.setattr(process, "_signal_group", lambda group, _number: signalled.append(group))
    child = process.spawn(["true"], cwd=tmp_path)
    child.wait(10)
    process.end_group(child)
    for stream in (child.stdin, child.stdout):
        assert stream is not None
        stream.close()
    assert signalled == []


def test_a_child_that_left_others_behind_takes_them_along(tmp_path: Path) -> None:
    done = process.run(["sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!"], cwd=tmp_path, timeout=20)
    assert done.ok
    assert gone_soon({int(done.text())})


SILENT = ["sh", "-c", "exec >&- 2>&-; sleep ${0}; exit 7"]
"""Says nothing more, and lives on."""


def test_the_end_of_a_child_that_closed_its_output_is_awaited(tmp_path: Path) -> None:
    called: list[None] = []
    done = process.run([*SILENT, "0.2"], cwd=tmp_path, timeout=20, on_wait=lambda: called.append(None))
    assert (done.returncode, done.timed_out) == (7, False)
    assert called
    late = process.run([*SILENT, "60"], cwd=tmp_path, timeout=0.3)
    assert late.timed_out
    assert late.seconds < 20


def test_no_child_is_started_once_the_end_has_begun(tmp_path: Path) -> None:
    script = (
        "from pathlib import Path\nfrom code_intel_server import process\nprocess.end_all()\n"
        "try:\n    process.run(['true'], cwd=Path('.'), timeout=5)\nexcept PermissionError:\n    print('refused')\n"
    )
    done = process.run([sys.executable, "-c", script], cwd=tmp_path, timeout=60, env={**os.environ, **ENVIRONMENT})
    assert done.text().strip() == "refused"


CHATTY = "import os\nfor number in range(20000): os.write(1, b'%06d\\n' % number)"


def test_a_child_that_prints_much_in_small_pieces_is_not_read_piece_by_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[int] = []
    read = os.read

    def counted(descriptor: int, most: int) -> bytes:
        piece = read(descriptor, most)
        reads.append(len(piece))
        return piece

    monkeypatch.setattr(os, "read", counted)
    done = process.run([sys.executable, "-c", CHATTY], cwd=tmp_path, timeout=60)
    assert done.stdout == b"".join(b"%06d\n" % number for number in range(20000))
    assert len(reads) < 30 + done.seconds / process._PAUSE_SECONDS
