"""Events of runners become a run (SPEC 4, Receipts)."""

import json

from code_intel_server.receipts.results import CaseOutcome
from code_intel_server.receipts.runners.events import Events


def _lines(*events: dict[str, object]) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def test_a_test_that_began_and_never_ended_has_timed_out() -> None:
    events = Events()
    events.feed(_lines({"event": "start", "id": "a", "unit": "f"}))
    assert events.run(1.0).outcomes == {"a": CaseOutcome.TIMEOUT}


def test_lines_that_are_no_events_are_counted_and_passed_over() -> None:
    events = Events()
    events.feed(b"no json\n[]\n" + b"x" * 600_000)
    events.feed(b"\n" + _lines({"event": "end", "id": "a", "unit": "f", "outcome": "passed"}))
    assert (events.unreadable, events.run(1.0).outcomes) == (4, {"a": CaseOutcome.PASSED})


def test_go_says_which_test_ended_how_what_it_printed_and_what_does_not_build() -> None:
    events = Events()
    test = {"Package": "p", "Test": "TestA/x"}
    events.feed(
        _lines(
            {"Action": "run", **test},
            {"Action": "output", **test, "Output": "wanted 1\n"},
            {"Action": "fail", **test, "Elapsed": 0.5},
            {"Action": "run", "Package": "p", "Test": "TestHangs"},
            {"Action": "fail", "Package": "p"},
            {"Action": "output", "Package": "q", "Output": "FAIL\tq [build failed]\n"},
            {"Action": "build-output", "ImportPath": "q", "Output": "undefined: x"},
        )
        + b"FAIL\told [setup failed]\n"
    )
    run = events.run(1.0)
    assert run.outcomes == {"p:TestA/x": CaseOutcome.FAILED, "p:TestHangs": CaseOutcome.TIMEOUT}
    assert (run.cases[0].message, run.cases[0].seconds, run.cases[0].unit) == ("wanted 1\n", 0.5, "p")
    assert run.unbuilt == {"q": "build failed", "old": "setup failed"}
    assert (events.runners, events.unreadable) == ({"go"}, 0)
