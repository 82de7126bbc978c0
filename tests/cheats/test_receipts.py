"""A session whose verify command runs tests: what the commit says of them was seen in clean checkouts (SPEC 4, Receipts)."""

import sys
import time
from pathlib import Path

import pytest

from code_intel_server.cli import verify_commit
from tests.e2e.stage import APP_DONE, TESTS, Stage, report, verdict

PYTEST = [
    "env",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1",
    sys.executable,
    "-B",
    "-m",
    "pytest",
    "-q",
    "-p",
    "no:cacheprovider",
]
TESTED = TESTS.replace("main() in {1, 2}", "main() == 2")
REASON = "The callers want it to be so from now on."


def reported(stage: Stage, app: str = APP_DONE, *, mutants: str = "off", **files: str) -> None:
    """A session that has written these files and reported its last task."""
    stage.user_wants(PYTEST, verify_mutants=mutants)
    names = [name.replace("__", "/") + ".py" for name in files]
    stage.planned("app.py", "tests/test_app.py", *names)
    stage.edit(text=app)
    for name, text in zip(names, files.values(), strict=True):
        stage.edit(name, text)
    stage.accepted(**report())


def before_the_verdict(stage: Stage, app: str = APP_DONE, *, mutants: str = "off", **files: str) -> None:
    """The same before its verification."""
    reported(stage, app, mutants=mutants, **files)
    stage.accepted(summary="Done.")


def message(stage: Stage, revision: str = "HEAD") -> str:
    return stage.git("log", "-1", "--format=%B", revision)


@pytest.fixture(autouse=True)
def _trusted(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the user allowed on the stage holds for commands too."""
    monkeypatch.setenv("XDG_STATE_HOME", str(stage.root.parent / "state"))


def test_the_runs_that_begin_with_the_last_report_are_not_made_again_for_the_verdict(
    stage: Stage, tmp_path: Path
) -> None:
    log = tmp_path / "runs"
    reported(stage, tests__test_app=f"{TESTED}\n\nwith open({str(log)!r}, 'a') as log:\n    log.write('x')\n")
    kept = stage.root / ".code-intel" / "cache" / "runs"
    end = time.monotonic() + 120
    while not [*kept.glob("*.verdict.json")]:
        assert time.monotonic() < end
        time.sleep(0.05)
    begun = log.read_text()
    stage.accepted(summary="Done.")
    assert stage.accepted(**verdict())["proof"]["status"] == "proven"
    assert log.read_text() == begun


def test_the_commit_and_the_merge_say_which_tests_fail_without_it(stage: Stage) -> None:
    before_the_verdict(stage, tests__test_app=TESTED)
    answer = stage.accepted(**verdict())
    assert (answer["tests"]["fail_to_pass"], answer["tests"]["pass_to_pass"]) == (
        ["tests/test_app.py::test_main"],
        "3 of 3",
    )
    stage.accepted(**stage.commit(commit_message="Return two\n\nCode-Intel-Fail-To-Pass: 99"))
    stage.accepted(summary="Done.")
    assert "\n> Code-Intel-Fail-To-Pass: 99\n" in message(stage, "HEAD^2")
    for revision in ("HEAD", "HEAD^2"):
        assert "Code-Intel-Fail-To-Pass: 1\nCode-Intel-Pass-To-Pass: 3 of 3" in message(stage, revision)
    assert verify_commit.main(["--project", str(stage.root)]) == 0
    forged = message(stage).replace("Fail-To-Pass: 1", "Fail-To-Pass: 2")
    stage.git("commit", "-q", "--amend", "-m", forged)
    assert verify_commit.main(["--project", str(stage.root)]) == 1


def test_a_test_that_no_longer_passes_needs_a_reason_which_is_kept(stage: Stage) -> None:
    """Noticed by: the test as it was, run on the new code; the question comes once, and its answer is in the commit."""
    app = APP_DONE.replace("value + 1", "value + 2")
    tests = TESTED.replace("helper(1) == 2", "helper(1) == 3").replace("helper(2) == 3", "helper(2) == 4")
    before_the_verdict(stage, app, tests__test_app=tests.replace("helper(0) == 1", "helper(0) == 2"))
    stage.refused("tests/test_app.py::test_helper (was changed: as it was it fails with this change", **verdict())
    answer = stage.accepted(**verdict(tests_reason=REASON))
    said = answer["tests"]["with_a_reason"]["tests/test_app.py::test_helper"]
    assert said.startswith("was changed") and said.endswith(f"without it: {REASON}")
    assert "broken" not in answer["tests"]
    stage.accepted(**stage.commit())
    assert f"Code-Intel-Original-Tests: 2 with a reason: {REASON}" in message(stage)
    assert verify_commit.main(["--project", str(stage.root)]) == 0


def test_a_new_function_whose_tests_need_it_to_do_nothing_needs_a_reason_which_is_kept(stage: Stage) -> None:
    """Noticed by: the new tests, run where new functions do nothing; all of them pass there."""
    app = APP_DONE + "\n\ndef half(value):\n    return value * 2\n"
    test = "\n\ndef test_half(monkeypatch):\n    import app\n    monkeypatch.setattr(app, 'half', lambda value: value / 2)\n"
    before_the_verdict(stage, app, mutants="on", tests__test_app=TESTS + test + "    assert app.half(4) == 2\n")
    stage.refused("where the functions that it adds or changes do nothing", **verdict())
    answer = stage.accepted(**verdict(tests_reason=REASON))
    assert answer["tests"]["survived"] == answer["tests"]["fail_to_pass"] == ["tests/test_app.py::test_half"]
    stage.accepted(**stage.commit())
    said = "1 (1 by an import, name or build error; 1 pass where new and changed functions do nothing)"
    assert f"Code-Intel-Fail-To-Pass: {said}\n" in message(stage)
    assert f"Code-Intel-Original-Tests: 1 with a reason: {REASON}" in message(stage)
    assert verify_commit.main(["--project", str(stage.root)]) == 0


def test_a_failing_test_refuses_with_its_name_and_message(stage: Stage) -> None:
    before_the_verdict(stage, APP_DONE.replace("return 2\n", "return 3\n", 1), tests__test_app=TESTED)
    stage.refused("1 test failed\ntests/test_app.py::test_main", **verdict())
    stage.write("app.py", APP_DONE)
    assert stage.accepted(**verdict())["tests"]["fail_to_pass"]
