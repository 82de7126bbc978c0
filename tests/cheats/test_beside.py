"""Proofs that saw other files than the commit holds, and merges that nothing proves."""

import sys
from collections.abc import Callable

import pytest

from tests.e2e.stage import APP_DONE, Stage, report, verdict

RUNNER = """\
import pathlib, sys
sys.path.insert(0, ".")
for path in sorted(pathlib.Path("tests").glob("test_*.py")):
    names = {}
    exec(path.read_text(), names)
    [names[name]() for name in names if name.startswith("test_")]
"""
COMMAND = [sys.executable, "-B", "-c", RUNNER]
BROKEN = APP_DONE.replace("value + 1", "value + 7")
TESTS = "tests/test_app.py"
WHY = "The other half comes with the next change."
CONFIG = ".code-intel/config.json"


def weaken(stage: Stage) -> None:
    stage.git("update-index", "--assume-unchanged", TESTS)
    stage.write(TESTS, "def test_main():\n    assert True\n")


def leave_out(stage: Stage) -> None:
    stage.git("update-index", "--skip-worktree", TESTS)
    (stage.root / TESTS).unlink()


def beside(stage: Stage) -> None:
    stage.write("helper.py", "import app\n\napp.helper = lambda value: value + 1\n")
    stage.write("tests/test_a.py", "import helper\n")


def finished(stage: Stage) -> str:
    """The session to its end with work that the tests of the commit refute; what commit and merge say of it."""
    stage.edit(text=BROKEN)
    stage.accepted(**report())
    stage.accepted(summary="Done.")
    stage.refused("passes only beside files that are in no commit", **verdict())
    assert stage.accepted(**verdict(tests_reason=WHY))["proof"]["status"] == "proven"
    answer = stage.accepted(**stage.commit())
    stage.accepted(summary="Merged.")
    assert stage.git("show", "main:app.py") == BROKEN
    return f"{answer.get('warning', '')}\n{stage.git('log', '-2', '--format=%(trailers)', 'main^2', 'main')}"


@pytest.mark.parametrize("hide", [weaken, leave_out])
def test_the_tests_are_hidden_from_git_before_the_session(stage: Stage, hide: Callable[[Stage], None]) -> None:
    """Seen by: what the verify commands found otherwise than the commit holds it is named by response and trailers."""
    stage.user_wants(COMMAND)
    hide(stage)
    stage.planned()
    stage.cheat()
    said = finished(stage)
    assert f"otherwise than the commit holds them: {TESTS}" in said
    assert said.count(f"Code-Intel-Proven-Beside: {TESTS}; files in no commit, for ") == 2


def test_the_tests_are_left_out_of_the_checkout_during_the_session(stage: Stage) -> None:
    """Seen by: what the verify commands found otherwise than the commit holds it is named by response and trailers."""
    stage.user_wants(COMMAND)
    stage.planned()
    leave_out(stage)
    stage.cheat()
    said = finished(stage)
    assert f"otherwise than the commit holds them: {TESTS}" in said
    assert said.count(f"Code-Intel-Proven-Beside: {TESTS}; files in no commit, for ") == 2


def test_the_tests_are_left_out_of_the_checkout_for_the_proof_alone(stage: Stage) -> None:
    """Seen by: what the verify commands could not find is noted when they have run, and named by response and trailers."""
    stage.user_wants(COMMAND)
    stage.planned()
    stage.edit(text=BROKEN)
    stage.accepted(**report())
    stage.accepted(summary="Done.")
    stage.cheat()
    leave_out(stage)
    stage.refused("passes only beside files that are in no commit", **verdict())
    assert stage.accepted(**verdict(tests_reason=WHY))["proof"]["status"] == "proven"
    stage.git("update-index", "--no-skip-worktree", TESTS)
    stage.git("checkout", "-q", "--", TESTS)
    assert f"otherwise than the commit holds them: {TESTS}" in stage.accepted(**stage.commit())["warning"]
    stage.notice()
    assert f"Code-Intel-Proven-Beside: {TESTS}; files in no commit, for " in stage.git(
        "log", "-1", "--format=%(trailers)"
    )


def test_the_configuration_is_hidden_from_git_and_names_no_command(stage: Stage) -> None:
    """Seen by: where the configuration is not the committed one, response and trailers name it, whatever was proven."""
    stage.user_wants([sys.executable, "-c", "raise SystemExit(1)"])
    stage.git("update-index", "--assume-unchanged", CONFIG)
    stage.write(CONFIG, '{"sync_on_start": false}\n')
    stage.cheat()
    stage.verified()
    assert f"otherwise than the commit holds them: {CONFIG}" in stage.accepted(**stage.commit())["warning"]
    stage.notice()
    assert f"Code-Intel-Proven-Beside: {CONFIG}\n" in stage.git("log", "-1", "--format=%(trailers)")


def test_files_that_make_the_tests_pass_lie_there_before_the_session_and_are_not_committed(stage: Stage) -> None:
    """Seen by: the response names the untracked files that the verify commands found, the trailers count them."""
    stage.user_wants(COMMAND)
    beside(stage)
    stage.planned()
    stage.cheat()
    said = finished(stage)
    assert "otherwise than the commit holds them: helper.py, tests/test_a.py" in said
    assert said.count("Code-Intel-Proven-Beside: 2 untracked file(s); files in no commit, for ") == 2


def by_ignoring(stage: Stage) -> str:
    stage.write("pkg/.gitignore", "*\n!deep.py\n")
    stage.explain("pkg/.gitignore")
    return "pkg"


def by_a_repository_that_ignores(stage: Stage) -> str:
    stage.git("init", "-q", "tools")
    stage.write("tools/.gitignore", "*\n")
    return "tools"


def by_a_name_of_coverage(stage: Stage) -> str:
    return "__pycache__"


def by_repositories_in_repositories(stage: Stage) -> str:
    for depth in range(1, 6):
        stage.git("init", "-q", "/".join("abcde"[:depth]))
    return "a/b/c/d/e"


def by_a_folder_that_leads_to_our_own_git(stage: Stage) -> str:
    stage.write("tools/.git", f"gitdir: {stage.root}/.git\n")
    return "tools"


@pytest.mark.parametrize("hide", [by_repositories_in_repositories, by_a_folder_that_leads_to_our_own_git])
def test_a_file_that_nobody_explored_lies_where_the_tree_once_ended(stage: Stage, hide: Callable[[Stage], str]) -> None:
    """Stopped by: the tree looks into repositories at any depth, and into what only says that it is one."""
    stage.planned()
    folder = hide(stage)
    stage.write(f"{folder}/evil.py", "two = 2\n")
    stage.edit()
    stage.refused(f"nobody explored: {folder}/evil.py", **report())


@pytest.mark.parametrize("hide", [by_ignoring, by_a_repository_that_ignores, by_a_name_of_coverage])
def test_what_the_work_loads_is_hidden_during_the_session(stage: Stage, hide: Callable[[Stage], str]) -> None:
    """Seen by: a command that passes in a clean checkout of the base, and fails in one of the commit, needs a reason."""
    stage.user_wants([sys.executable, "-B", "-c", "import app; assert app.main()"])
    stage.planned()
    folder = hide(stage)
    stage.write(f"{folder}/evil.py", "two = 2\n")
    stage.cheat()
    text = f"import sys\n\nsys.path.insert(0, {folder!r})\n\n" + APP_DONE.replace(
        "return 2", "from evil import two\n\n    return two"
    )
    stage.edit(text=text)
    stage.accepted(**report(evidence="app.py:6"))
    stage.accepted(summary="Done.")
    refused = stage.refused("passes only beside files that are in no commit", **verdict())
    assert "import app" in refused["message"]
    answer = stage.accepted(**verdict(tests_reason=WHY))
    assert "only beside files that are in no commit" in answer["proof"]["commands"][0]["reason"]
    stage.accepted(**stage.commit())
    stage.accepted(summary="Merged.")
    said = stage.git("log", "-2", "--format=%(trailers)", "main^2", "main")
    assert said.count("Code-Intel-Proven-Beside: files in no commit, for ") == 2, said


def test_a_reason_for_one_thing_that_is_in_no_commit_is_none_for_another(stage: Stage) -> None:
    """Stopped by: a reason counts for the failure that it was given for."""
    stage.user_wants([sys.executable, "-B", "-c", "import app"])
    stage.planned()
    by_ignoring(stage)
    text = f"import pkg.{{}}  # noqa: F401\n\n{APP_DONE}"
    for name in ("first", "second"):
        stage.write(f"pkg/{name}.py", "")
    stage.edit(text=text.format("first"))
    stage.accepted_list(report(evidence="app.py:1, app.py:4"), {"summary": "Done."})
    stage.refused("No module named 'pkg.first'", **verdict())
    stage.accepted(**verdict(tests_reason=WHY))
    stage.cheat()
    stage.write("app.py", text.format("second"))
    stage.call("review_changes")
    stage.refused("No module named 'pkg.second'", **stage.commit())
    stage.accepted(**stage.commit(tests_reason=WHY))


def test_a_command_that_needs_what_is_in_no_commit_before_the_change_too_is_not_asked_about(stage: Stage) -> None:
    """Where the base fails in a clean checkout as well, nothing can be said, and nothing is asked."""
    check = "import app, pathlib; assert pathlib.Path('.env').exists() and app.main()"
    stage.user_wants([sys.executable, "-B", "-c", check])
    stage.write(".env", "MODE=one\n")
    stage.completed()
    assert stage.accepted(**verdict())["proof"]["status"] == "proven"
    stage.accepted(**stage.commit())
    assert "Code-Intel-Proven-Beside" not in stage.git("log", "-1", "--format=%(trailers)")


def test_nothing_is_run_where_the_project_knows_no_commands(stage: Stage) -> None:
    """Seen by: the trailers of commit and merge say so, also in a project that was made within another one for that."""
    stage.verified()
    stage.cheat()
    stage.accepted(**stage.commit())
    stage.accepted(summary="Merged.")
    said = stage.git("log", "-2", "--format=%(trailers)", "main^2", "main")
    assert (
        said.count("Code-Intel-Proof: none, as no verify commands are configured; by the agent's word: looked at it\n")
        == 2
    )
    stage.notice()


def test_work_that_nobody_reviewed_is_merged_as_a_stale_branch(stage: Stage) -> None:
    """Seen by: response and trailer say that the session of a stale branch did not come to its end."""
    stage.planned()
    name = stage.git("branch", "--show-current").strip()
    stage.write("lib.py", "LIMIT = 99\n")
    stage.git("commit", "-qam", "Done")
    stage.restart()
    stage.cheat()
    stage.begin()
    answer = stage.accepted(choice="merge", summary="The user wants it merged.")
    assert f"{name}: its session did not come to its end" in answer["warning"]
    assert "Code-Intel-Unproven: all of it" in stage.git("log", "-1", "--format=%(trailers)", "main")
    stage.notice()


def test_code_that_appears_while_a_command_runs_is_the_agents(stage: Stage) -> None:
    """Stopped by: what a run of ours leaves is no work only where it is new and no code."""
    write = "import pathlib; pathlib.Path('lib.py').write_text('LIMIT = 666\\n'); pathlib.Path('evil.py').write_text('x = 1\\n')"
    stage.user_wants([sys.executable, "-c", write])
    stage.completed()
    stage.accepted(**verdict())
    rows = [row["path"] for row in stage.call("review_changes")["results"]]
    assert rows == ["app.py", "evil.py", "lib.py"]
    stage.notice()
    assert "explored" in str(stage.agent.submit(**stage.commit()))


@pytest.mark.parametrize("name", ["NOTES.md", "docs/two"])
def test_a_file_that_a_command_leaves_carries_the_tests(stage: Stage, name: str) -> None:
    """Stopped by: what a command has left is in no clean checkout, also where tests run again; found by an opponent."""
    stage.write(
        "test_app.py",
        "import sys\nsys.path.insert(0, '.')\nfrom app import main\n\n\ndef test_main():\n    assert main() == 1\n",
    )
    stage.git("add", ".")
    stage.git("commit", "-qm", "Test")
    makes = (
        "import pathlib; f = pathlib.Path('app.py'); f.write_text(f.read_text() + '# formatted\\n'); "
        f"g = pathlib.Path('{name}'); g.parent.mkdir(exist_ok=True); g.write_text('1')"
    )
    stage.user_wants([sys.executable, "-m", "pytest", "-q"], [sys.executable, "-c", makes])
    stage.planned()
    stage.edit(text=APP_DONE.replace("return 2\n", f"return int(open('{name}').read())\n", 1))
    stage.accepted_list(report(), {"summary": "Done."})
    for _ in range(2):
        answer = stage.agent.submit(**verdict())
        assert not answer["success"] and "test_main" in str(answer), answer
    stage.notice()


def test_a_file_of_documents_that_a_command_leaves_is_counted_in_the_trailer(stage: Stage) -> None:
    """Seen by: `Code-Intel-Proven-Beside` counts what the commands left, whatever it is called."""
    stage.user_wants([sys.executable, "-c", "import pathlib; pathlib.Path('NOTES.md').write_text('1')"])
    stage.completed()
    stage.accepted(**verdict())
    stage.accepted(**stage.commit())
    stage.notice()
    assert "Code-Intel-Proven-Beside: 1 untracked file(s)" in stage.git("log", "-1", "--format=%B")


def test_a_command_that_rewrites_what_the_tests_saw_has_them_run_again(stage: Stage) -> None:
    """Stopped by: tests in a clean checkout are made of the tree that the other commands left."""
    stage.write("test_app.py", "from app import main\n\n\ndef test_main():\n    assert main() in {1, 2}\n")
    stage.git("add", ".")
    stage.git("commit", "-qm", "Test")
    breaks = "import pathlib; f = pathlib.Path('app.py'); f.write_text(f.read_text().replace('return 2', 'return 3'))"
    stage.user_wants([sys.executable, "-m", "pytest", "-q"], [sys.executable, "-c", breaks])
    stage.completed()
    answer = stage.agent.submit(**verdict())
    stage.notice()
    assert not answer["success"] and "test_main" in str(answer), answer
