"""What an answer and a commit say of the tests that were seen (SPEC 4, Receipts)."""

from contextlib import nullcontext

import pytest

from code_intel_server.errors import Rejected
from code_intel_server.flow.handlers.seen_tests import require_reasons
from code_intel_server.flow.handlers.seen_tests import test_trailers as trailers
from code_intel_server.flow.handlers.seen_tests import tests_fields as fields
from code_intel_server.workspace.values import Proof, ProofStatus, SeenTests
from tests.flow.world import Session

NONE = {"fail_to_pass": 0, "pass_to_pass": 0, "flaky": 0}
ASKED = {"t.py::old": "passed before", "t.py::new": "skipped now"}


@pytest.mark.parametrize(
    ("tests", "said"),
    [(SeenTests(unavailable="no mounts"), "unavailable: no mounts"), (SeenTests(only_status=True), "exit status only")],
)
def test_where_no_test_was_seen_the_answer_and_the_commit_say_so(tests: SeenTests, said: str) -> None:
    more = ": no test was seen by name, and none ran on the old code" if tests.only_status else ""
    assert fields(tests, {}) == {"tests": f"{said}{more}"}
    kept = {"Cargo.toml": "The suite\nmoved."}
    assert trailers(tests, {}, kept) == [
        ("Code-Intel-Uncompared", "Cargo.toml: The suite moved."),
        ("Code-Intel-Tests", said),
    ]


def test_where_nothing_was_to_be_committed_nothing_is_said() -> None:
    assert (fields(None, {}), trailers(None, {})) == ({}, [])


def test_long_lists_are_cut_and_counted_and_notes_are_shown() -> None:
    ids = [f"t.py::{number}" for number in range(40)]
    tests = SeenTests({**NONE, "broken": 50}, {"broken": ids}, 3, notes=["code changed, and no test"])
    said = fields(tests, {})["tests"]
    assert isinstance(said, dict) and isinstance(said["broken"], list)
    assert said["broken"][-1] == f"and {50 - len(said['broken']) + 1} more"
    assert said["notes"] == ["code changed, and no test"]
    assert said["pass_to_pass"] == "0 of 3"


@pytest.mark.parametrize("others", [[], ["t.py::old"]])
def test_a_test_that_was_changed_on_purpose_is_said_in_one_line(others: list[str]) -> None:
    was = "was changed: as it was it fails with this change"
    counts = {**NONE, "broken": 1 + len(others), "fail_to_pass": 1}
    listed = {"fail_to_pass": ["t.py::new"], "broken": ["t.py::new", *others]}
    questions = {"t.py::new": was, **dict.fromkeys(others, "passed before")}
    reasons = dict.fromkeys(questions, "It has to be so.")
    said = fields(SeenTests(counts, listed, 2, questions), reasons)["tests"]
    assert said == {
        "fail_to_pass": ["t.py::new"],
        "pass_to_pass": "0 of 2",
        "with_a_reason": {**reasons, "t.py::new": f"{was}: It has to be so."},
        **({"broken": others} if others else {}),
    }


@pytest.mark.parametrize(
    ("later", "asked"),
    [
        ("2 failed in 7.31s at 12:04:59", False),
        ("200 failed in 1.04s at 12:04:01", True),
        ("2 of key2.pem failed in 1.04s", True),
    ],
)
def test_a_reason_counts_for_what_a_command_prints_whatever_time_it_took(later: str, asked: bool) -> None:
    """Found by a reviewer, who was asked again for a time; and by an opponent, whose reason counted for other numbers."""
    state = Session().to_ready().state
    for text, reason in (("2 failed in 1.04s at 12:04:01", "The file is made by the build."), (later, "")):
        proof = Proof(ProofStatus.PROVEN, "t", (), (), SeenTests({}, {}, 1, {"make": text}))
        with pytest.raises(Rejected) if asked and not reason else nullcontext():
            require_reasons(state, proof, reason)


def test_cases_of_one_test_are_listed_once_with_their_number_and_a_single_one_by_its_parameter() -> None:
    ids = [*(f"app/[id]/t.py::A::test_x[{number}-a::b[0]]" for number in range(12)), "t.py::test_y[1]", "t.py::test_z"]
    said = fields(SeenTests({**NONE, "fail_to_pass": 50}, {"fail_to_pass": ids}), {})["tests"]
    assert isinstance(said, dict)
    folded = ["app/[id]/t.py::A::test_x[...] (12)", "t.py::test_y[1]", "t.py::test_z"]
    assert said["fail_to_pass"] == [*folded, "and 36 more"]


@pytest.mark.parametrize(
    ("counts", "passed_before", "names"),
    [
        ({}, 0, []),
        ({"flaky": 2}, 0, ["Code-Intel-Flaky"]),
        ({"insensitive": 2}, 0, ["Code-Intel-Insensitive"]),
        ({"pass_to_pass": 4}, 4, ["Code-Intel-Pass-To-Pass"]),
        ({"fail_to_pass": 1}, 0, ["Code-Intel-Fail-To-Pass"]),
    ],
)
def test_only_what_there_is_becomes_a_trailer(counts: dict[str, int], passed_before: int, names: list[str]) -> None:
    assert [name for name, _ in trailers(SeenTests(NONE | counts, passed_before=passed_before), {})] == names


def test_how_many_tests_fail_without_the_change_by_no_assertion_is_in_the_trailer() -> None:
    tests = SeenTests({**NONE, "fail_to_pass": 12, "new_names": 9})
    assert trailers(tests, {}) == [("Code-Intel-Fail-To-Pass", "12 (9 by an import, name or build error)")]


@pytest.mark.parametrize(("new_names", "said"), [(0, ""), (9, "9 by an import, name or build error; ")])
def test_how_many_of_them_pass_where_new_functions_do_nothing_is_in_the_trailer(new_names: int, said: str) -> None:
    tests = SeenTests({**NONE, "fail_to_pass": 12, "new_names": new_names, "survived": 2})
    said = f"12 ({said}2 pass where new and changed functions do nothing)"
    assert trailers(tests, {}) == [("Code-Intel-Fail-To-Pass", said)]


def test_changed_code_that_no_test_loads_is_shown_and_becomes_a_trailer() -> None:
    tests = SeenTests(NONE, not_loaded=["a.py", "b.py"])
    assert fields(tests, {})["tests"] == {"fail_to_pass": [], "pass_to_pass": "0 of 0", "not_loaded": ["a.py", "b.py"]}
    assert trailers(tests, {}) == [("Code-Intel-Not-Loaded", "a.py; b.py")]


def test_what_only_tests_mentioned_before_is_named_in_answer_and_trailer() -> None:
    tests = SeenTests(NONE, uncompared=["prices.csv"])
    assert fields(tests, {})["tests"] == {"fail_to_pass": [], "pass_to_pass": "0 of 0", "uncompared": ["prices.csv"]}
    assert trailers(tests, {}) == [("Code-Intel-Uncompared", "prices.csv: before this change only tests mentioned it")]


def test_what_has_a_reason_is_counted_with_it() -> None:
    tests = SeenTests(NONE, questions=ASKED)
    reasons = dict.fromkeys(ASKED, "The rule\nwas changed.")
    assert trailers(tests, reasons) == [("Code-Intel-Original-Tests", "2 with a reason: The rule was changed.")]
    assert fields(tests, reasons)["tests"] == {"fail_to_pass": [], "pass_to_pass": "0 of 0", "with_a_reason": reasons}


def test_a_verdict_keeps_nothing_where_nothing_is_asked() -> None:
    assert fields(SeenTests(NONE), {}) == {"tests": {"fail_to_pass": [], "pass_to_pass": "0 of 0"}}
