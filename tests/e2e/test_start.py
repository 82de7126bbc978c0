"""What a server loads before it answers the handshake, and how the rest comes when it is asked for."""

import sys
import threading
from pathlib import Path

import pytest

from code_intel_server import tools
from code_intel_server.tools.lazy import LazyTools
from tests.e2e.driver import StartedServer, repository
from tests.programs import ran

HEAVY = {"chromadb", "numpy", "tree_sitter", "tree_sitter_language_pack", "git", "torch", "onnxruntime"}


def loaded_by(root: Path, *calls: str) -> set[str]:
    """Names of the modules that a server has loaded after the handshake and these calls."""
    with StartedServer(root, PYTHONPROFILEIMPORTTIME="1") as server:
        for tool in calls:
            server.call(tool)
    lines = (root.parent / "stderr.log").read_text(encoding="utf-8").splitlines()
    return {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}


def test_the_handshake_is_answered_before_anything_heavy_is_loaded(tmp_path: Path) -> None:
    names = loaded_by(repository(tmp_path / "repo", {"app.py": "x = 1\n"}))
    assert "code_intel_server.server" in names
    assert not HEAVY & {name.partition(".")[0] for name in names}


def test_a_first_call_loads_the_rooms_it_needs_and_still_nothing_heavy(tmp_path: Path) -> None:
    names = loaded_by(repository(tmp_path / "repo", {"app.py": "x = 1\n"}), "get_session_status")
    assert "code_intel_server.tools.session.sessions" in names
    assert not (HEAVY - {"git"}) & {name.partition(".")[0] for name in names}


def test_first_calls_at_the_same_time_find_the_same_workbench(tmp_path: Path) -> None:
    late, found = LazyTools(tmp_path), list[object]()
    threads = [threading.Thread(target=lambda: found.append(late.current)) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 16
    assert set(map(id, found)) == {id(late.current)}
    late.close()


def test_what_stays_for_good_is_looked_through_by_no_collection(tmp_path: Path) -> None:
    load = "import gc, sys; from pathlib import Path; from code_intel_server.tools.lazy import LazyTools; LazyTools(Path(sys.argv[1]))._load()"
    ask = "print(gc.get_freeze_count() > 10 * len(gc.get_objects()))"
    done = ran([sys.executable, "-c", f"{load}; {ask}", tmp_path], check=True)
    assert done.stdout == "True\n"


def test_there_are_no_other_rooms(tmp_path: Path) -> None:
    with pytest.raises(AttributeError, match="no attribute 'kitchen'"):
        tools.kitchen  # noqa: B018 - that is the question
