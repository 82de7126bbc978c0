"""A whole session with the default configuration opens no port and calls nobody (SPEC 2: local; issue Shows 3)."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.faults.scenarios import moves, prepared

from tests.e2e.driver import StartedServer, git


@pytest.mark.needs("strace")
def test_a_whole_session_with_its_index_makes_no_connection_and_listens_nowhere(tmp_path: Path) -> None:
    root, trace = prepared(tmp_path), tmp_path / "trace"
    (root / ".code-intel" / "config.json").write_text("{}\n")
    git(root, "commit", "-qam", "The default configuration")
    tracer = ("strace", "-f", "-qqq", "-o", str(trace), "-e", "trace=%network")
    with StartedServer(root, *tracer) as server:
        server.call("semantic_search", query="the main function")
        server.call("sync_index")
        for move in moves(root):
            assert move(server)["success"]
        server.call("record_outcome", outcome="success")
    calls = trace.read_text()
    assert re.findall(r"^.*\blisten\(.*$", calls, re.MULTILINE) == []
    reached = re.findall(r"^.*\b(?:connect|sendto|sendmsg)\(.*AF_INET.*$", calls, re.MULTILINE)
    assert reached == []


@pytest.mark.needs("strace")
def test_the_trace_would_have_shown_a_connection(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    script = "import socket\ns = socket.socket()\ns.bind(('127.0.0.1', 0))\ns.listen()\nsocket.create_connection(s.getsockname())"
    subprocess.run(
        ["strace", "-f", "-qqq", "-o", trace, "-e", "trace=%network", sys.executable, "-W", "ignore", "-c", script],
        check=True,
    )
    assert re.search(r"\blisten\(", trace.read_text())
    assert re.search(r"\bconnect\(.*AF_INET", trace.read_text())
