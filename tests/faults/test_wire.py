"""What a client may write: broken frames, payloads that mean nothing, paths of every kind (P4; SPEC 2, 4)."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.faults.results import Record, size
from benchmarks.faults.scenarios import FILES
from benchmarks.faults.sentinel import Sentinel

from tests.e2e.driver import ENVIRONMENT, Fields, Server, git, repository
from tests.faults.test_process import Wire

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}


NEARLY_IDS = (
    b"00", b"-01", b'"\\x"', b'"\\u12"', b'"\t"', b'"\\ud800"', b'"\xed\xa0\x80"', b"1e5", b"99999999999999999999",
)  # fmt: skip


def frames(seed: int, count: int) -> Iterator[bytes]:
    """Lines that are nearly, or not at all, JSON-RPC; none holds a newline."""
    chance = random.Random(seed)  # noqa: S311 - repeatable, not secret
    good = [
        {"jsonrpc": "2.0", "id": "f", "method": "tools/call", "params": {"name": "get_session_status", "arguments": {}}},
        {"jsonrpc": "2.0", "id": "f", "method": "tools/list", "params": {}},
        {"jsonrpc": "2.0", "id": "f", "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "f"}},
    ]  # fmt: skip
    fixed = [
        b"",
        b"{",
        b"[]",
        b"null",
        b"42",
        b'"text"',
        b"\xff\xfe\x00",
        b"\x00" * 50,
        b'{"jsonrpc":"2.0"}',
        b'{"jsonrpc":"1.0","id":"f","method":"ping"}',
        b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":{},"method":"ping"}',
        b'{"jsonrpc":"2.0","id":"f","method":"tools/call","params":[]}',
        b'{"jsonrpc":"2.0","id":"f","method":"tools/call","params":{"name":"nope","arguments":{}}}',
        b'{"jsonrpc":"2.0","id":"f","method":"tools/call","params":{"name":"submit_phase","arguments":{"data":"\\ud800"}}}',
        b'{"jsonrpc":"2.0","id":"f","method":"tools/call","params":{"name":"search_text","arguments":{"patterns":"\\u0000"}}}',
        b"[" * 5000,
        b'{"a":' * 3000,
        b'{"jsonrpc":"2.0","id":"f","method":"ping","params":{"x":"' + b"y" * 1_000_000 + b'"}}',
        b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"ping"}',
        b'{"jsonrpc":"2.0","id":"f","method":"ping","method":"tools/list"}',
        b'{"jsonrpc":"2.0","id":"f","method":"ping","params":{"n":NaN}}',
        b"Content-Length: 30\r",
        *(b'{"jsonrpc":"2.0","id":%b,"method":"ping","params":[}' % value for value in NEARLY_IDS),
    ]
    yield from fixed
    for _ in range(count - len(fixed)):
        line = bytearray(json.dumps(chance.choice(good)).encode())
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(line))
            line[at : at + chance.randint(0, 3)] = bytes(
                chance.choice(b'{}[]":,\\0x\xc3\xff ') for _ in range(chance.randint(0, 3))
            )
            line = line or bytearray(b"x")
        yield bytes(line).replace(b"\n", b" ")


def test_the_server_outlives_a_thousand_broken_frames_and_says_only_json_rpc(
    tmp_path: Path, record_property: Record
) -> None:
    root = repository(tmp_path / "repo", FILES)
    child = subprocess.Popen(
        [sys.executable, "-m", "code_intel_server", "serve"],
        cwd=root,
        env={**os.environ, **ENVIRONMENT, "XDG_STATE_HOME": str(tmp_path / "state")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert child.stdin is not None and child.stdout is not None

    def say(line: bytes) -> None:
        assert child.stdin is not None
        child.stdin.write(line + b"\n")
        child.stdin.flush()

    def hear_until(wanted: str) -> list[Fields]:
        assert child.stdout is not None
        heard: list[Fields] = []
        while not heard or heard[-1].get("id") != wanted:
            line = child.stdout.readline()
            assert line, "the server died"
            heard.append(json.loads(line))
        return heard

    say(json.dumps({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": HELLO}).encode())
    hear_until("hello")
    say(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
    for number, frame in enumerate(frames(7, count := size(1000, 6000))):
        say(frame)
        if number % 50 == 49:
            say(b'{"jsonrpc":"2.0","id":"p%d","method":"ping"}' % number)
            said = hear_until(f"p{number}")
            assert all(message.get("jsonrpc") == "2.0" for message in said)
            assert "Traceback" not in json.dumps(said)
    call = {"name": "search_text", "arguments": {"patterns": "main"}}
    say(json.dumps({"jsonrpc": "2.0", "id": "last", "method": "tools/call", "params": call}).encode())
    assert hear_until("last")[-1]["result"]["structuredContent"]["total"] >= 1
    record_property("executions", count)
    child.stdin.close()
    child.wait(10)
    child.stdout.close()


UNREADABLE = {
    "a lone surrogate": '{"x": "\\ud800"}',
    "a lone surrogate as a key": '{"\\udfff": "x"}',
    "two hundred levels": f'{{"x": {"[" * 250}{"]" * 250}}}',
    "a hundred thousand levels": f'{{"x": {"[" * 100_000}{"]" * 100_000}}}',
    "a number of five thousand digits": f'{{"x": 1{"0" * 5000}}}',
    "another id within": '{"id": 99, "method": "x", "y": "\\ud800"}',
    "brackets and an id in a text": '{"x": "}}]\\"id\\": 99, {", "y": "\\ud800"}',
}


@pytest.mark.parametrize("data", UNREADABLE.values(), ids=UNREADABLE.keys())
@pytest.mark.parametrize("last", [False, True], ids=["id first", "id last"])
def test_a_request_that_cannot_be_read_is_answered_under_its_own_id(server: Wire, data: str, last: bool) -> None:
    """Found by the payload fuzz: it was dropped without an answer, and the client waited for ever."""
    call = f'"method": "tools/call", "params": {{"name": "submit_phase", "arguments": {{"data": {data}}}}}'
    server.say(f'{{"jsonrpc": "2.0", {call}, "id": "q1"}}' if last else f'{{"jsonrpc": "2.0", "id": "q1", {call}}}')
    answer = server.answer()
    assert (answer["id"], answer["error"]["code"]) == ("q1", -32700)
    assert server.call("search_text", patterns="main")["total"] >= 1


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    with Wire(repository(tmp_path_factory.mktemp("wire") / "repo", FILES)) as running:
        yield running


def kinds_of_path(root: Path) -> list[str]:
    """About three hundred ways to name a file that is not, or should not be, one of the project's."""
    up = [
        "../" * n + tail for n in (1, 2, 5, 30) for tail in ("", "canary", "etc/passwd", "repo-evil/x", ".git/config")
    ]
    absolute = [
        "/", "//", "/etc/passwd", "/dev/zero", "/dev/stdin", "/proc/self/environ", str(root.parent / "canary"),
        f"{root}-evil/x",
    ]  # fmt: skip
    ours = [
        ".git", ".git/config", ".git/HEAD", ".GIT/config", ".git./config", ".code-intel/sessions",
        ".code-intel/../../canary",
    ]  # fmt: skip
    odd = [
        "", " ", ".", "./", "..", "...", "~", "~root", "$HOME", "`id`", "$(id)", "*", "?", "[", "{a,b}", "-", "--",
        "--pre=id", "-f/etc/passwd", "-rf", "@", ":0", ":(top)", ":!app.py", "HEAD:app.py", "file:///etc/passwd",
        "\\\\server\\share", "C:\\x", "con", "nul",
    ]  # fmt: skip
    text = [
        "a\0b", "\n", "a\nb", "\r", "\x1b[31m", "\u202eapp.py", "\u200bapp.py", "\ufeffapp.py", "ａｐｐ.py", "é",
        "e\u0301", "😀", "x" * 255, "x" * 256, "x/" * 2000, "x" * 70000,
    ]  # fmt: skip
    links = ["out", "out/canary", "loop", "loop/x", "fifo", "abs", "abs/passwd", "dangling", "inside", "inside/app.py"]
    known = ["app.py", "README.md"]
    wrapped = [
        f"{before}{name}{after}"
        for name in (*known, *links[:4])
        for before in ("./", "x/../", ".//", "../repo/", "/")
        for after in ("", "/", "/.", "/..", "//", " ", ".")
    ]
    return list(dict.fromkeys([*up, *absolute, *ours, *odd, *text, *links, *known, *wrapped]))


def path_calls(path: str) -> list[tuple[str, dict[str, object]]]:
    """Every tool that takes a path, with this one."""
    return [
        ("search_text", {"patterns": "SECRET", "path": path}), ("search_files", {"pattern": "*", "path": path}),
        ("find_definitions", {"symbol": "SECRET", "path": path}),
        ("find_references", {"symbol": "SECRET", "path": path}), ("get_symbols", {"path": path}),
        ("get_function_at_line", {"path": path, "line": 1}), ("analyze_structure", {"path": path}),
        ("analyze_impact", {"targets": [path]}), ("semantic_search", {"query": "SECRET", "path": path}),
    ]  # fmt: skip


class Lenient(Server):
    """A server whose protocol errors are counted and not raised."""

    def try_call(self, tool: str, **arguments: object) -> str:
        """The answer, or the error of the protocol, as text."""
        try:
            return json.dumps(self.call(tool, **arguments), ensure_ascii=False)
        except AssertionError as error:
            assert "internal" not in str(error).lower() and "Traceback" not in str(error), (
                tool,
                arguments,
                str(error)[:400],
            )
            return str(error)


def tricky(folder: Path) -> Path:
    """A repository with links out of it, a loop and a pipe, and a secret beside it."""
    root = repository(folder / "repo", FILES)
    (folder / "canary").write_text("SECRET = 'canary-7391'\n")
    (folder / "repo-evil").mkdir()
    (folder / "repo-evil" / "x").write_text("SECRET = 'canary-7391'\n")
    for name, target in {"out": "..", "loop": "loop", "abs": "/etc", "dangling": "nowhere", "inside": "."}.items():
        (root / name).symlink_to(target)
    os.mkfifo(root / "fifo")
    return root


def walk_paths(root: Path, step: int) -> int:
    """Ask every tool with every step-th path; how many calls were made."""
    made = 0
    with Lenient(root) as server:
        for number, path in enumerate(kinds_of_path(root)):
            for place, (tool, arguments) in enumerate(path_calls(path)):
                if (number + place) % step == 0:
                    answer = server.try_call(tool, **arguments)
                    assert "canary-7391" not in answer and "root:x:0" not in answer, (tool, path)
                    made += 1
        assert server.call("search_text", patterns="main")["total"] >= 1
    return made


def test_no_kind_of_path_leads_out_of_the_project_or_breaks_a_tool(tmp_path: Path) -> None:
    root = tricky(tmp_path)
    assert len(kinds_of_path(root)) >= 280
    (root / "fifo").unlink()
    before = Sentinel.of(root)
    os.mkfifo(root / "fifo")
    assert walk_paths(root, 9) >= 280
    (root / "fifo").unlink()
    assert before.changed(Sentinel.of(root)) == []


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_no_path_in_any_tool_leads_out_of_the_project(tmp_path: Path, record_property: Record) -> None:
    made = walk_paths(tricky(tmp_path), 1)
    record_property("executions", made)
    assert made >= 280 * 9


def test_no_kind_of_path_is_written_or_made_writable_outside(tmp_path: Path) -> None:
    root = tricky(tmp_path)
    with Lenient(root) as server:
        assert server.call("start_session", query="Change it", flags={"quick": True, "no_doc": True})["success"]
        server.accepted(action_type="change")
        for path in kinds_of_path(root):
            added = server.try_call("add_explored_files", paths=[path], reason="because a test wants it")
            if '"added": ["' in added:
                names = json.loads(added)["added"]
                assert all((root / name).is_symlink() or (root / name).resolve().is_relative_to(root) for name in names)
            server.try_call("check_write_target", path=path)
        assert server.call("get_session_status")["phase"] == "READY"
    assert git(root, "log", "--oneline").count("\n") == 1
