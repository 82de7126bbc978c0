"""Every rule by which four runs of old and new tests become a receipt (SPEC 4, Receipts)."""

import pytest

from code_intel_server.receipts.compare import CHANGED_EXPECTATION, WHY, RunComparison, Runs, questions, receipt
from code_intel_server.receipts.results import Case, CaseOutcome, SuiteRun


def run(text: str = "", *, unbuilt: str = "", whole: bool = True, unavailable: str = "") -> SuiteRun:
    """A run written as 'a+ b- c~ d!': passed, failed, skipped, timed out; 'u/a+' belongs to the unit u."""
    ends = {"+": CaseOutcome.PASSED, "-": CaseOutcome.FAILED, "~": CaseOutcome.SKIPPED, "!": CaseOutcome.TIMEOUT}
    cases = tuple(Case(word[:-1], ends[word[-1]], word[:-1].rpartition("/")[0]) for word in text.split())
    return SuiteRun(cases, dict.fromkeys(unbuilt.split(), "error"), whole=whole, unavailable=unavailable)


def compared(base: str, original: str, new: str, red: str = "", **more: str) -> RunComparison:
    """The receipt of four runs; `unbuilt_original`, `unbuilt_red` name units that did not build there."""
    return receipt(
        Runs(
            run(base),
            run(original, unbuilt=more.get("unbuilt_original", "")),
            run(new),
            run(red, unbuilt=more.get("unbuilt_red", "")),
        )
    )


def test_a_test_that_passed_and_passes_again_is_pass_to_pass() -> None:
    out = compared("a+ b+", "a+ b+", "a+ b+")
    assert out.pass_to_pass == ("a", "b")
    assert out.unexplained == ()


def test_a_new_test_that_fails_on_the_base_is_fail_to_pass() -> None:
    assert compared("a+", "a+", "a+ n+", "a+ n-").fail_to_pass == ("n",)


def test_a_test_whose_id_holds_the_time_is_not_fail_to_pass() -> None:
    """Found with a real agent in marshmallow: two parameters are `datetime.now()`, and the trailer said 5 where 3 was true."""
    assert compared("t[07:01]+", "t[07:02]+", "t[07:03]+ n[1]+", "n[1]-").fail_to_pass == ("n[1]",)
    assert compared("t[1]+", "t[1]+", "t[2]+", "t[2]-").fail_to_pass == ("t[2]",)


def test_a_new_test_that_hangs_on_the_base_is_fail_to_pass() -> None:
    assert compared("a+", "a+", "a+ n+", "n!").fail_to_pass == ("n",)


def test_a_new_test_that_passes_on_the_base_too_is_not() -> None:
    assert compared("a+", "a+", "a+ n+", "n+").fail_to_pass == ()


def test_where_the_new_tests_do_not_build_on_the_base_only_the_new_ones_are_fail_to_pass() -> None:
    out = compared("u/a+", "u/a+", "u/a+ u/n+", "", unbuilt_red="u")
    assert out.fail_to_pass == ("u/n",)
    assert out.not_judged == ("u/a",)


@pytest.mark.parametrize(
    ("message", "of_a_name"),
    [
        (
            "    def test_n():\n>       from calc import twice\nE       ImportError: cannot import name 'twice'\n\nt.py:2: ImportError",
            True,
        ),
        ("Traceback\nAttributeError: module 'calc' has no attribute 'twice'", True),
        ("TypeError: twice is not a function\n    at t.js:3:1", True),
        ("E       TypeError: add() got an unexpected keyword argument 'c'", True),
        ("E       AttributeError: 'NoneType' object has no attribute 'x'", False),
        ("E       TypeError: unsupported operand type(s) for +: 'int' and 'str'", False),
        (">       assert name_error == 'NameError'\nE       AssertionError: assert 'KeyError' == 'NameError'", False),
    ],
)
def test_what_fails_only_because_what_it_names_is_new_is_told_from_an_assertion(message: str, of_a_name: bool) -> None:
    red = SuiteRun((Case("n", CaseOutcome.FAILED, message=message),))
    found = receipt(Runs(run("a+"), run("a+"), run("a+ n+"), red))
    assert (found.fail_to_pass, found.new_names) == (("n",), ("n",) if of_a_name else ())


def test_a_new_test_in_a_file_that_does_not_build_without_the_change_fails_by_no_assertion() -> None:
    out = compared("u/a+", "u/a+", "u/a+ u/n+ v/m+", "v/m-", unbuilt_red="u")
    assert (out.fail_to_pass, out.new_names) == (("u/n", "v/m"), ("u/n",))


def test_a_new_test_that_the_run_without_the_change_did_not_see_is_told_from_one_that_failed() -> None:
    out = compared("u/a+", "u/a+", "u/a+ u/n+ u/m+", "u/a+ u/n-")
    assert (out.fail_to_pass, out.not_seen) == (("u/m", "u/n"), ("u/m",))


def test_a_test_that_fails_on_the_new_product_is_broken_and_needs_a_reason() -> None:
    out = compared("a+ b+", "a- b+", "a+ b+")
    assert out.broken == out.unexplained == ("a",)


def test_a_changed_expectation_is_asked_for_as_that() -> None:
    found = receipt(Runs(run("a+ b+"), run("a- b-"), run("a+ b+"), run("a- b+")))
    asked = questions(found, passing=2, behaviour_tested=True)
    assert asked == {"a": CHANGED_EXPECTATION, "b": WHY["broken"]}


def test_a_test_that_is_not_seen_any_more_is_missing() -> None:
    out = compared("a+ b+", "b+", "a+ b+")
    assert out.missing == out.unexplained == ("a",)


def test_a_test_that_is_skipped_now_is_named() -> None:
    assert compared("a+", "a~", "a+").skipped_now == ("a",)


def test_a_test_that_hangs_now_is_named() -> None:
    out = compared("a+", "a!", "a+")
    assert out.timeout == out.unexplained == ("a",)


def test_an_original_test_that_does_not_build_counts_by_the_commits_version_of_it() -> None:
    out = compared("u/a+ u/b+", "", "u/a+", unbuilt_original="u")
    assert out.pass_to_pass == ("u/a",)
    assert out.not_built == ("u/b",)


def test_a_test_taken_out_of_the_new_suite_is_named_though_the_product_still_passes_it() -> None:
    out = compared("a+ b+", "a+ b+", "a+")
    assert out.removed == ("b",)
    assert out.unexplained == ()


def test_tests_that_were_not_run_are_not_called_removed() -> None:
    assert receipt(Runs(run("a+ b+"), run("a+ b+"), run("a+", whole=False))).removed == ()


def test_a_new_test_that_fails_refuses_the_verdict() -> None:
    assert compared("a+", "a+", "a+ n-").failing == ("n",)


def test_what_failed_before_and_fails_now_refuses_nothing() -> None:
    out = compared("a- b+", "a- b+", "a- b+")
    assert out.failing == ()
    assert out.failing_before == ("a",)


def test_in_another_environment_a_failure_of_before_excuses_nothing() -> None:
    out = receipt(Runs(run("a-"), run("a-"), run("a-")), same_environment=False)
    assert out.failing == ("a",)


def test_a_test_that_passed_when_it_ran_again_is_flaky_and_refuses_nothing() -> None:
    out = receipt(Runs(run("a+ b+"), run("a- b+"), run("a- b+")), flaky={"a"})
    assert out.flaky == ("a",)
    assert out.failing == out.unexplained == ()


def test_ids_that_differ_from_run_to_run_are_counted_by_what_they_have_in_common() -> None:
    out = compared("t[17:03]+ t[17:04]+", "t[18:03]+ t[18:04]+", "t[19:03]+ t[19:04]+")
    assert out.unexplained == ()
    assert len(out.pass_to_pass) == 2


def test_one_test_fewer_among_such_ids_is_missing() -> None:
    assert len(compared("t[1]+ t[2]+", "t[3]+", "t[3]+").missing) == 2


def test_a_run_that_says_nothing_is_named_with_the_reason() -> None:
    out = receipt(Runs(run("a+"), run(unavailable="no clean checkout"), run("a+")))
    assert out.not_run == {"original": "no clean checkout"}
    assert out.unexplained == out.removed == ()
