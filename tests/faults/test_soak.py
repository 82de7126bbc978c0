"""The soak in small: session after session with faults between, and nothing grows beyond its bound (issue, Shows 4)."""

from pathlib import Path

from benchmarks.faults.scenarios import prepared
from benchmarks.faults.soak import BOUNDS, Soak, measure, over

from tests.faults.test_process import Wire


def test_sessions_with_faults_between_leave_nothing_behind(tmp_path: Path) -> None:
    with Wire(prepared(tmp_path)) as server:
        it = Soak(server, between_faults=15)
        it.call("semantic_search", query="the main function")  # what the index opens stays open
        it.call("sync_index")
        it.run(lambda: it.calls < 60)
        first, sessions = measure(server), it.sessions
        it.run(lambda: it.calls < 150)
        last = measure(server)
    assert sum(it.faults.values()) >= 4
    assert it.sessions - sessions >= 2
    assert over(first, last, it.sessions - sessions) == {}


def test_growth_beyond_a_bound_is_told() -> None:
    names = (
        "rss_kib",
        "descriptors",
        "folders",
        "threads",
        "children",
        "cache_bytes",
        "record_bytes",
        "git_bytes",
        "state_bytes",
    )
    first = dict.fromkeys(names, 0)
    assert over(first, first, 1) == {}
    grown = first | {"threads": 2, "descriptors": 37, "git_bytes": 10 * BOUNDS["git_bytes_a_session"]}
    assert over(first, grown, 5) == {"descriptors": 5, "git_bytes_a_session": 2 * BOUNDS["git_bytes_a_session"]}
