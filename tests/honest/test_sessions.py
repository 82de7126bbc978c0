"""Sessions of honest but awkward work. None may be blocked: where the server refuses, its own words name a way out that works."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from code_intel_server.cli import init
from tests.e2e.driver import Fields, git, repository
from tests.e2e.stage import APP, APP_DONE, FILES, ITEM, TESTS, Agent, Stage, plan, report, through_every_gate, verdict

CHECK = [sys.executable, "-B", "-c", "import app, sys; sys.exit(0 if app.main() == 2 else 'main is not two')"]
RECORDED = {"id": "t1", "description": "Task t1", "status": "completed", "checklist": [ITEM]}


def finish(stage: Stage, *decisions: object, **more: object) -> Fields:
    """From the completion to the merge of a fast session."""
    stage.accepted(summary="All tasks are done.")
    return finish_from_verify(stage, *decisions, **more)


def finish_from_verify(stage: Stage, *decisions: object, **more: object) -> Fields:
    stage.accepted(**verdict())
    return finish_from_commit(stage, *decisions, **more)


def finish_from_commit(stage: Stage, *decisions: object, **more: object) -> Fields:
    stage.accepted(**stage.commit(*decisions, **more))
    return merged(stage)


def merged(stage: Stage) -> Fields:
    answer = stage.accepted(summary="Merged.")
    assert answer["phase"] == "SESSION_COMPLETE"
    assert stage.git("rev-parse", "--abbrev-ref", "HEAD").strip() == "main"
    return answer


def on_base(stage: Stage, path: str, text: str) -> str:
    """The user commits a file to the base, and goes back to the task branch, whose name this is."""
    name = stage.git("branch", "--show-current").strip()
    stage.git("switch", "-q", "main")
    stage.write(path, text)
    stage.git("commit", "-qam", "Base moved")
    stage.git("switch", "-q", name)
    return name


def base(stage: Stage, files: dict[str, str | bytes]) -> None:
    """More files of the user's in the first commit of the test."""
    for path, content in files.items():
        (stage.root / path).parent.mkdir(parents=True, exist_ok=True)
        (stage.root / path).write_bytes(content.encode() if isinstance(content, str) else content)
    stage.git("add", "-A")
    stage.git("commit", "-qm", "More")


# -- plans ----------------------------------------------------------------------------------------------------------


def test_a_plan_is_sent_twice(stage: Stage) -> None:
    stage.planned()
    again = stage.accepted(**plan())
    assert again["next_task"]["id"] == "t1"


def test_a_task_is_split_after_the_plan(stage: Stage) -> None:
    stage.planned()
    halves = [{"id": name, "description": f"Half {name}", "checklist": [f"Part {name}"]} for name in ("t1a", "t1b")]
    answer = stage.accepted(tasks=halves, summary="Two halves.")
    assert "dropped t1" in answer["warning"]
    stage.edit(text=APP_DONE.replace("value + 1", "value + 1 + 0"))
    stage.accepted(**report("t1a", "app.py:2", "Part t1a"))
    stage.accepted(**report("t1b", "app.py:6", "Part t1b"))
    finish(stage)


def test_tasks_are_reordered_by_a_new_plan(stage: Stage) -> None:
    stage.ready()
    second = {"id": "t2", "description": "Second", "checklist": ["Second"]}
    stage.accepted(**plan("t1", [ITEM], second))
    first = {"id": "t1", "description": "Task t1", "checklist": [ITEM]}
    stage.edit()
    answer = stage.agent.submit(**report("t2", "app.py:2", "Second"))
    assert "plan again in another order" in answer["remedy"]
    stage.accepted(tasks=[second, first], summary="Other order.")
    stage.accepted(**report("t2", "app.py:2", "Second"))


def test_both_tasks_are_done_before_the_first_report(stage: Stage) -> None:
    stage.ready()
    stage.accepted(**plan("t1", [ITEM], {"id": "t2", "description": "Helper", "checklist": ["Helper"]}))
    stage.edit(text=APP_DONE.replace("value + 1", "value + 2"))
    stage.accepted(**report())
    stage.call("check_write_target", path="app.py")
    stage.accepted(**report("t2", "app.py:6", "Helper"))
    finish(stage)


def test_two_items_are_done_by_the_same_line(stage: Stage) -> None:
    stage.ready()
    stage.accepted(**plan("t1", [ITEM, "No branch"]))
    stage.edit()
    items = [{"item": name, "status": "done", "evidence": "app.py:2"} for name in (ITEM, "No branch")]
    answer = stage.agent.submit(task_id="t1", checklist=items, tools_used=["check_write_target"])
    assert "add a reason" in answer["remedy"]
    items[1]["reason"] = "The same statement does both."
    stage.accepted(task_id="t1", checklist=items, tools_used=["check_write_target"])


def test_a_second_task_goes_on_in_the_lines_of_the_first(stage: Stage) -> None:
    stage.ready()
    stage.accepted(**plan("t1", [ITEM], {"id": "t2", "description": "Better", "checklist": ["Better"]}))
    stage.edit()
    stage.accepted(**report())
    stage.edit(text=APP_DONE.replace("return 2", "return 1 + 1"))
    stage.accepted(**report("t2", "app.py:2", "Better"))


def test_nothing_has_to_be_done_after_all(stage: Stage) -> None:
    stage.planned()
    item = {"item": ITEM, "status": "skipped", "reason": "It returned two already."}
    stage.accepted(task_id="t1", checklist=[item], summary="Nothing to do.")
    stage.accepted(summary="Done.")
    stage.accepted(**verdict())
    answer = stage.accepted(**stage.commit())
    assert "Nothing to commit" in answer["warning"]
    merged(stage)


# -- changes of every form --------------------------------------------------------------------------------------------


def test_a_binary_file_is_added_and_one_changed(stage: Stage) -> None:
    base(stage, {"logo.png": b"\x89PNG\0old"})
    stage.ready("app.py", "logo.png")
    stage.accepted(**plan("t1", [ITEM, "New logo"]))
    stage.call("check_write_target", paths=["logo.png", "icon.png"])
    (stage.root / "logo.png").write_bytes(b"\x89PNG\0new")
    (stage.root / "icon.png").write_bytes(b"\x89PNG\0icon")
    items = [
        {"item": ITEM, "status": "done", "evidence": "logo.png:1"},
        {"item": "New logo", "status": "done", "evidence": "icon.png:1"},
    ]
    stage.accepted(task_id="t1", checklist=items, tools_used=["check_write_target"])
    finish(stage)


def test_an_empty_file_is_added(stage: Stage) -> None:
    stage.planned("pkg/deep.py")
    stage.call("check_write_target", path="pkg/__init__.py")
    stage.write("pkg/__init__.py", "")
    stage.accepted(**report(evidence="pkg/__init__.py:1"))
    finish(stage)


def test_a_link_is_added(stage: Stage) -> None:
    stage.planned("app.py", "main.py")
    stage.call("check_write_target", path="main.py")
    stage.edit()
    (stage.root / "main.py").symlink_to("app.py")
    stage.accepted(**report())
    finish(stage)
    assert stage.git("ls-files", "-s", "main.py").startswith("120000")


def test_a_link_is_turned_elsewhere(stage: Stage) -> None:
    """The link itself is what is explored, changed, pointed at and committed; one that leads out of the project too."""
    (stage.root / "main.py").symlink_to("app.py")
    (stage.root / "away").symlink_to("/usr")
    stage.git("add", "-A")
    stage.git("commit", "-qm", "Add links")
    stage.begin(no_doc=True)
    stage.accepted(action_type="change", target_symbols=["main"])
    stage.explore("main.py")
    for reason in ("needs_more_information", "has_unverified_hypotheses", "needs_impact_analysis"):
        stage.accepted(**{reason: False}, reason="It is all known already.")
    stage.explain("away")
    stage.accepted(**plan(items=[ITEM, "Turn the other link"]))
    assert stage.call("check_write_target", paths=["main.py", "away"])["allowed"]
    for name, target in (("main.py", "lib.py"), ("away", "pkg")):
        (stage.root / name).unlink()
        (stage.root / name).symlink_to(target)
    items = [
        {"item": ITEM, "status": "done", "evidence": "main.py:1"},
        {"item": "Turn the other link", "status": "done", "evidence": "away:1"},
    ]
    stage.accepted(task_id="t1", checklist=items, tools_used=["check_write_target"], summary="Done.")
    stage.accepted(summary="All tasks are done.")
    stage.accepted(**verdict())
    stage.accepted(**stage.commit())
    stage.accepted(issues=[], quality_prompt_used="quality_review")
    merged(stage)
    assert stage.git("show", "main:main.py") == "lib.py"
    assert stage.git("show", "main:away") == "pkg"


def test_only_a_comment_changes(stage: Stage) -> None:
    stage.planned()
    stage.edit(text=APP.replace("    return 1\n", "    # one, by decision 7\n    return 1\n", 1))
    answer = stage.agent.submit(**report())
    assert "add a reason" in answer["remedy"]
    stage.accepted(**report(reason="The task is to explain the constant."))
    finish(stage)


def test_only_formatting_changes(stage: Stage) -> None:
    stage.planned()
    stage.edit(text=APP.replace("return 1\n", "return  1\n", 1))
    answer = stage.agent.submit(**report())
    assert "add a reason" in answer["remedy"]
    stage.accepted(**report(reason="The task is to format the file."))


def test_only_an_indentation_changes_in_python(stage: Stage) -> None:
    base(stage, {"loop.py": "def go(x):\n    if x:\n        x = 1\n        x = 2\n    return x\n"})
    stage.planned("loop.py")
    stage.edit("loop.py", "def go(x):\n    if x:\n        x = 1\n    x = 2\n    return x\n")
    stage.accepted(**report(evidence="loop.py:4"))


def test_configuration_and_markup_change(stage: Stage) -> None:
    base(stage, {"settings.toml": "[a]\nx = 1\n", "site.css": ".a { color: red }\n", "page.html": "<p>one</p>\n"})
    stage.ready("settings.toml", "site.css", "page.html")
    stage.accepted(**plan("t1", ["Toml", "Css", "Html"]))
    stage.edit("settings.toml", "[a]\nx = 2\n")
    stage.edit("site.css", ".a { color: blue }\n")
    stage.edit("page.html", "<p>two</p>\n")
    places = {"Toml": "settings.toml:2", "Css": "site.css:1", "Html": "page.html:1"}
    items = [{"item": item, "status": "done", "evidence": place} for item, place in places.items()]
    stage.accepted(task_id="t1", checklist=items, tools_used=["check_write_target"])
    answer = stage.accepted(summary="Done.")
    assert "frontend_markup" in answer["procedures"]
    finish_from_verify(stage)


def test_a_generated_file_appears_while_working(stage: Stage) -> None:
    stage.planned()
    stage.edit()
    stage.write("pkg/generated_pb2.py", "x = 1\n")
    answer = stage.agent.submit(**report())
    assert "add_explored_files" in answer["remedy"]
    stage.call("add_explored_files", paths=answer["unexplored"], reason="Generated by the build of this task.")
    stage.accepted(**report())
    finish(stage)


def test_ignored_files_come_and_go(stage: Stage) -> None:
    stage.planned()
    stage.write("build/out.bin", "x")
    stage.edit()
    stage.write("__pycache__/app.pyc", "x")
    stage.accepted(**report())
    shutil.rmtree(stage.root / "build")
    finish(stage)


def test_what_a_run_of_the_tests_leaves_behind_is_no_change(stage: Stage) -> None:
    base(stage, {".gitignore": ".env\n"})
    check = "import app, pathlib; pathlib.Path('.coverage').write_bytes(b'x'); assert app.main() == 2"
    stage.user_wants([sys.executable, "-c", check])
    stage.planned()
    writing = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    subprocess.run([sys.executable, "-c", "import app"], cwd=stage.root, env=writing, check=True)
    stage.edit(
        text=APP_DONE + "\n\nLIMIT = 2\n"
    )  # another size: Python would else take the bytecode for that of this file
    stage.accepted(**report())
    finish(stage)
    assert {"__pycache__", ".coverage"} <= {path.name for path in stage.root.iterdir()}
    assert stage.git("show", "--name-only", "--format=", "HEAD^2").split() == ["app.py"]
    assert "Code-Intel-Proven-Beside" not in stage.git("log", "-1", "--format=%(trailers)")


def test_an_ignored_file_is_the_work(stage: Stage) -> None:
    stage.planned("app.py", ".env")
    stage.call("check_write_target", path=".env")
    stage.write(".env", "MODE=two\n")
    answer = stage.agent.submit(**report(evidence=".env:1"))
    assert "add a reason" in answer["remedy"]
    stage.accepted(**report(evidence=".env:1", reason="The local setting is what was asked for."))


def test_a_formatter_touches_a_neighbour(stage: Stage) -> None:
    stage.planned()
    stage.edit()
    stage.write("lib.py", stage.read("lib.py") + "\n")
    answer = stage.agent.submit(**report())
    assert answer["unexplored"] == ["lib.py"]
    assert "Undo" in answer["remedy"]
    stage.git("checkout", "--", "lib.py")
    stage.accepted(**report())
    finish(stage)


# -- the user works too ------------------------------------------------------------------------------------------------


def test_the_user_edits_a_file_meanwhile_and_keeps_it(stage: Stage) -> None:
    stage.planned()
    stage.edit()
    stage.write("README.md", "# Mine\n")
    answer = stage.agent.submit(**report())
    assert "If the user edited it meanwhile" in answer["remedy"]
    stage.call("add_explored_files", paths=["README.md"], reason="The user edited it meanwhile.")
    stage.accepted(**report())
    finish(stage, {"path": "README.md", "decision": "leave", "reason": "The user's own."})
    assert stage.read("README.md") == "# Mine\n"
    assert "Mine" not in stage.git("show", "main:README.md")


def test_the_user_edits_a_file_during_the_verification(stage: Stage) -> None:
    stage.completed()
    stage.write("README.md", "# Mine\n")
    answer = stage.agent.submit(**verdict())
    assert "passed=false" in answer["remedy"]
    stage.accepted(**verdict(passed=False, details="README.md was edited by the user"))
    stage.call("add_explored_files", paths=["README.md"], reason="The user edited it meanwhile.")
    answer = stage.agent.submit(summary="Nothing more to do.")
    assert "report its items as 'skipped'" in answer["remedy"]
    stage.nothing_to_fix()
    finish_from_verify(stage, {"path": "README.md", "decision": "leave", "reason": "The user's own."})
    assert stage.read("README.md") == "# Mine\n"


def test_the_user_edits_a_file_after_the_verification(stage: Stage) -> None:
    stage.verified()
    stage.write("README.md", "# Mine\n")
    answer = stage.agent.submit(**stage.commit())
    assert "decide 'leave'" in answer["remedy"]
    finish_from_commit(stage, {"path": "README.md", "decision": "leave", "reason": "The user's own."})
    assert stage.read("README.md") == "# Mine\n"


def test_the_user_edits_during_only_verify(stage: Stage) -> None:
    stage.begin(only_verify=True)
    stage.write("README.md", "# Mine\n")
    answer = stage.agent.submit(**verdict())
    assert "clean and only_verify" in answer["remedy"]
    stage.begin(only_verify=True, clean=True)
    assert stage.accepted(**verdict())["phase"] == "SESSION_COMPLETE"


def test_the_user_commits_to_the_base_meanwhile(stage: Stage) -> None:
    stage.committed()
    on_base(stage, "README.md", "# Moved\n")
    merged(stage)
    assert stage.read("README.md") == "# Moved\n"
    assert stage.read("app.py") == APP_DONE


def test_a_conflict_is_resolved_by_hand(stage: Stage) -> None:
    stage.committed()
    on_base(stage, "app.py", APP.replace("return 1", "return 3", 1))
    answer = stage.agent.submit(summary="Merged.")
    assert "Merge the base branch into the task branch, resolve, commit there, and submit again" in answer["remedy"]
    stage.git("merge", "-q", "--no-ff", "-X", "ours", "-m", "Merge main", "main")
    merged(stage)
    assert "return 2" in stage.read("app.py")


def test_the_base_moves_so_that_the_merge_needs_more_than_its_conflicts(stage: Stage) -> None:
    """A file that nobody touched has to follow what the base did: the merge made by hand may hold that, and says so."""
    stage.user_wants([sys.executable, "-B", "-c", "import app, lib, sys; sys.exit(lib.other() != 10)"])
    stage.committed()
    on_base(stage, "app.py", "import lib\n\n" + APP.replace("return 1", "return lib.LIMIT", 1))
    assert not stage.agent.submit(summary="Merged.")["success"]
    stage.git("merge", "-q", "--no-ff", "--no-commit", "-X", "ours", "main")
    stage.write("lib.py", "LIMIT = 11\n\n\ndef other():\n    return LIMIT\n")
    stage.git("commit", "-qam", "Merge main")
    answer = stage.agent.submit(summary="Merged.")
    assert "Fix it in the merge (`git commit -a --amend`)" in answer["remedy"]
    stage.write("lib.py", "LIMIT = 11\n\n\ndef other():\n    return LIMIT - 1\n")
    stage.git("commit", "-q", "-a", "--amend", "--no-edit")
    answer = merged(stage)
    assert "lib.py" in answer["warning"]


@pytest.mark.parametrize("commands", [[], [["no-such-program"]], [[sys.executable, "-c", ""]]])
def test_the_user_edits_a_file_after_a_merge_by_hand(stage: Stage, commands: list[list[str]]) -> None:
    """Where no command runs, what lies beside the merge can prove nothing: it is named, and stays as it is."""
    stage.user_wants(*commands, trusted=commands != [[sys.executable, "-c", ""]])
    stage.committed()
    on_base(stage, "app.py", APP.replace("return 1", "return 3", 1))
    stage.git("merge", "-q", "--no-ff", "-X", "ours", "-m", "Merge main", "main")
    stage.write("README.md", "# Mine\n")
    answer = merged(stage)
    assert "Changed since the commit and not in the merge made by hand: README.md." in answer["warning"]
    assert stage.git("status", "--porcelain") == " M README.md\n"
    trailer = "Code-Intel-Unproven: " in stage.git("log", "-1", "--format=%B", "main")
    assert trailer == bool(commands)


def test_head_is_elsewhere_after_a_merge_by_hand(stage: Stage) -> None:
    """The way back is named, and not the files in which the branches differ."""
    stage.user_wants([sys.executable, "-c", ""])
    stage.committed()
    name = on_base(stage, "lib.py", "LIMIT = 11\n")
    stage.git("merge", "-q", "--no-ff", "-m", "Merge main", "main")
    stage.git("switch", "-q", "main")
    answer = stage.agent.submit(summary="Merged.")
    assert f"run `git switch {name}`" in answer["remedy"]
    stage.git("switch", "-q", name)
    merged(stage)


def test_one_summary_serves_all_the_work(stage: Stage) -> None:
    """Found with real agents: they wrote the same summary in four or five places."""
    stage.planned()
    stage.edit()
    asked = stage.call("get_session_status")["expected_payload"]
    assert "summary" not in asked
    bare = [
        {"task_id": "t1", "checklist": [{"item": ITEM, "status": "done", "evidence": "app.py:2"}]},
        {"summary": "Main returns two."},
        {"passed": True, "verifier_used": "generic", "details": "3 tests pass."},
    ]
    kept = {
        "reviewed_files": ["app.py"],
        "commit_message": "Return two\n\nAs asked.",
        "review_prompt_used": "garbage_detection",
    }
    for data in (bare[:2], bare[2]):
        assert stage.call("submit_phase", data=data)["success"]
    stage.call("review_changes")
    assert stage.call("submit_phase", data=kept)["phase"] == "MERGE"
    answer = stage.call("submit_phase", data={"issues": ["app.py:2 - nobody tests it"]})
    assert answer["phase"] == "SESSION_COMPLETE", answer
    assert "by the agent's word: 3 tests pass; 1 quality issue(s) unresolved" in answer["instruction"]
    said = stage.git("log", "-1", "--format=%B", "main")
    assert "by the agent's word: 3 tests pass." in said and "Code-Intel-Unresolved: 1 quality issue(s)" in said


def test_untracked_files_of_the_user_stay(stage: Stage) -> None:
    stage.write("notes.txt", "mine\n")
    stage.write(".env", "SECRET=1\n")
    stage.reported()
    finish(stage)
    assert stage.read("notes.txt") == "mine\n"
    assert stage.git("status", "--porcelain") == "?? notes.txt\n"


def test_work_from_before_the_session_is_committed_on_the_way(stage: Stage) -> None:
    stage.write("README.md", "# Mine\n")
    stage.ready()
    answer = stage.agent.submit(**plan())
    assert "submit the same plan again" in answer["remedy"]
    stage.git("commit", "-qam", "Mine")
    stage.accepted(**plan(), more="x")
    stage.edit()
    stage.accepted(**report())
    finish(stage)


# -- proofs --------------------------------------------------------------------------------------------------------------


def test_a_failing_proof_is_fixed(stage: Stage) -> None:
    stage.user_wants(CHECK)
    stage.planned()
    stage.edit(text=APP_DONE.replace("return 2", "return 3"))
    stage.accepted(**report())
    stage.accepted(summary="Done.")
    answer = stage.agent.submit(**verdict())
    assert "plan a fix" in answer["remedy"]
    stage.accepted(**verdict(passed=False, details="main is not two"))
    stage.accepted(**plan("t2", ["Fix"], RECORDED))
    stage.edit()
    stage.accepted(**report("t2", "app.py:2", "Fix"))
    finish(stage)


def test_tests_are_red_before_the_session_and_the_user_waives(stage: Stage) -> None:
    red = [sys.executable, "-c", "import sys; sys.exit('red since monday')"]
    stage.user_wants(red)
    stage.completed()
    answer = stage.agent.submit(**verdict())
    assert "code-intel-server waive" in answer["remedy"]
    session = stage.call("get_session_status")["session_id"]
    stage.approvals.waive(stage.root, session, red, "Red since Monday, not ours.")
    answer = stage.accepted(**verdict())
    assert answer["proof"]["status"] == "waived"
    finish_from_commit(stage)
    assert "Code-Intel-Waived" in stage.git("log", "-1", "--format=%B")


def test_a_verify_command_that_cannot_be_started(stage: Stage) -> None:
    stage.user_wants(["no-such-program-anywhere"])
    stage.completed()
    answer = stage.accepted(**verdict())
    assert answer["proof"]["status"] == "unproven"
    finish_from_commit(stage)


def test_a_verify_command_leaves_a_report_behind(stage: Stage) -> None:
    made = "import os; os.makedirs('htmlcov', exist_ok=True); [open(name, 'a').write('x') for name in ('htmlcov/index.html', 'report.txt')]"
    stage.user_wants([sys.executable, "-c", made])
    stage.completed()
    assert "Left by the verify commands: htmlcov/index.html, report.txt." in stage.accepted(**verdict())["warning"]
    assert [row["path"] for row in stage.call("review_changes")["results"]] == ["app.py"]
    finish_from_commit(stage)
    assert stage.read("htmlcov/index.html") == "x"
    assert stage.read("report.txt") == "x"
    assert stage.git("show", "--name-only", "--format=", "HEAD^2").split() == ["app.py"]


def test_a_failing_verify_command_leaves_a_report_behind(stage: Stage) -> None:
    check = "import pathlib; pathlib.Path('coverage.xml').write_text('x'); import app; assert app.main() == 2"
    stage.user_wants([sys.executable, "-B", "-c", check])
    stage.planned()
    stage.edit(text=APP_DONE.replace("return 2\n", "return 3\n", 1))
    stage.accepted_list(report(), {"summary": "Done."})
    stage.refused("AssertionError", **verdict())
    stage.write("app.py", APP_DONE)
    finish_from_verify(stage)
    assert stage.git("show", "--name-only", "--format=", "HEAD^2").split() == ["app.py"]


def test_a_report_that_a_verify_command_left_is_kept_by_its_name(stage: Stage) -> None:
    stage.user_wants([sys.executable, "-c", "open('report.txt', 'a').write('x')"])
    stage.verified()
    stage.call("review_changes", path="report.txt")
    stage.accepted(**stage.commit({"path": "report.txt", "decision": "keep", "reason": "It is wanted."}))
    assert stage.git("show", "--name-only", "--format=", "HEAD").split() == ["app.py", "report.txt"]


def test_a_verify_command_formats_the_work(stage: Stage) -> None:
    fix = (
        "import pathlib as p; f = p.Path('app.py'); t = f.read_text(); f.write_text(t.replace('return  2', 'return 2'))"
    )
    stage.user_wants([sys.executable, "-c", fix])
    stage.planned()
    stage.edit(text=APP_DONE.replace("return 2", "return  2"))
    stage.accepted(**report())
    finish(stage)
    assert stage.read("app.py") == APP_DONE


def test_a_review_that_finds_something_goes_back_and_is_proven_anew(stage: Stage) -> None:
    stage.user_wants(CHECK)
    stage.verified()
    stage.call("review_changes")
    stage.accepted(revert_reason="A better name is needed.", tools_used=["review_changes"])
    stage.accepted(**plan("t2", ["Rename"], RECORDED))
    stage.edit(text=APP_DONE.replace("def spare", "def unused"))
    stage.accepted(**report("t2", "app.py:9", "Rename"))
    finish(stage)


def test_a_discard_makes_the_proof_run_again(stage: Stage) -> None:
    stage.user_wants(CHECK)
    stage.planned("app.py", "lib.py")
    stage.edit()
    stage.edit("lib.py", "LIMIT = 11\n")
    stage.accepted(**report())
    finish(stage, {"path": "lib.py", "decision": "discard", "reason": "Not needed."})
    assert "LIMIT = 10" in stage.read("lib.py")


def test_a_file_is_put_back_to_its_base_version_in_a_later_round(stage: Stage) -> None:
    stage.framed()
    stage.explore("app.py", "lib.py")
    stage.shut_gates()
    stage.accepted(**plan())
    stage.edit()
    stage.edit("lib.py", "LIMIT = 11\n")
    stage.finished()
    stage.accepted(**stage.commit())
    quality = {"quality_prompt_used": "quality_review", "quality_score": "fair"}
    stage.accepted(issues=["lib.py:1 should not have changed"], **quality)
    stage.accepted(**plan("t2", ["Put back"], RECORDED))
    stage.edit("lib.py", FILES["lib.py"])
    answer = stage.agent.submit(**report("t2", "lib.py:1", "Put back"))
    if not answer["success"]:
        item = {"item": "Put back", "status": "skipped", "reason": "Put back to the base's version."}
        assert "skipped" in answer["remedy"]
        stage.accepted(task_id="t2", checklist=[item], tools_used=["check_write_target"], summary="t2 is done.")
    stage.accepted(summary="Done again.")
    stage.accepted(**verdict(details="again"))
    stage.accepted(**stage.commit(commit_message="Put lib back"))
    stage.accepted(issues=[], **quality)
    merged(stage)
    assert stage.read("lib.py") == FILES["lib.py"]
    assert stage.git("diff", "--name-only", "main~1", "main").split() == ["app.py"]


def test_after_a_quality_review_with_issues_only_what_is_new_is_planned_and_reviewed(stage: Stage) -> None:
    """Found with a real agent: what was committed had to be reviewed again, and finished tasks pasted into the plan."""
    stage.framed()
    stage.explore("app.py", "lib.py")
    stage.shut_gates()
    stage.accepted(**plan())
    stage.edit()
    stage.accepted_list(report(), {"summary": "Done."})
    stage.accepted(**verdict())
    stage.accepted(**stage.commit())
    assert [row["path"] for row in stage.call("review_changes")["results"]] == ["app.py"]
    stage.accepted(issues=["lib.py:1 is too low"], quality_prompt_used="quality_review")
    answer = stage.accepted(**plan("t2", ["Raise it"]))
    assert answer["task_progress"] == "1/2"
    stage.edit("lib.py", "LIMIT = 11\n")
    stage.accepted_list(report("t2", "lib.py:1", "Raise it"), {"summary": "Done again."})
    answer = stage.accepted(**verdict(details="again"))
    assert [row["path"] for row in answer["review"]] == ["lib.py"]
    assert [row["path"] for row in stage.call("review_changes", path="app.py")["results"]] == ["app.py"]
    stage.accepted(reviewed_files=["lib.py"], commit_message="Raise it", review_prompt_used="garbage_detection")
    stage.accepted(issues=[], quality_prompt_used="quality_review")
    merged(stage)
    assert stage.git("diff", "--name-only", "main~1", "main").split() == ["app.py", "lib.py"]


def test_a_test_is_rightly_changed_with_a_reason(stage: Stage) -> None:
    stage.planned("app.py", "tests/test_app.py")
    stage.edit()
    stage.edit("tests/test_app.py", TESTS.replace("def test_spare():\n    assert helper(0) == 1\n", ""))
    stage.finished()
    answer = stage.agent.submit(**stage.commit())
    assert "reason" in answer["remedy"]
    row = {"path": "tests/test_app.py", "decision": "keep", "reason": "spare() has no callers any more."}
    finish_from_commit(stage, row)


def test_a_project_without_tests_is_verified_on_the_agents_word(stage: Stage) -> None:
    shutil.rmtree(stage.root / "tests")
    stage.git("commit", "-qam", "No tests")
    stage.completed()
    answer = stage.accepted(**verdict())
    assert answer["proof"] == "none"
    finish_from_commit(stage)


def test_a_verifier_that_is_missing_is_replaced_by_one_that_is_named(stage: Stage) -> None:
    stage.completed()
    answer = stage.agent.submit(**verdict(verifier_used="rust"))
    assert "generic" in answer["message"]
    stage.accepted(**verdict(verifier_used="generic"))


# -- interruptions ------------------------------------------------------------------------------------------------------


def test_an_answer_is_lost_and_the_submit_sent_again(stage: Stage) -> None:
    stage.planned()
    stage.edit()
    first = stage.accepted(**report())
    assert stage.accepted(**report()) == first
    finish(stage)


def test_the_server_is_killed_after_every_submit(stage: Stage) -> None:
    stage.planned()
    stage.kill_and_restart()
    stage.edit()
    stage.accepted(**report())
    stage.kill_and_restart()
    finish(stage)


def test_the_context_is_cleared_and_the_work_begun_anew(stage: Stage) -> None:
    stage.reported()
    answer = stage.call("start_session", query="The same again", intent="MODIFY", flags={})
    assert "clean" in answer["remedy"]
    stage.begin("The same again", fast=True, no_doc=True, clean=True)
    assert stage.read("app.py") == APP
    stage.accepted(action_type="change")
    stage.explain("app.py")
    stage.accepted(**plan())
    stage.edit()
    stage.accepted(**report())
    finish(stage)


def test_the_rules_are_summed_up_and_the_session_is_given_up(stage: Stage) -> None:
    base(stage, {".code-intel/context.yml": "# the user's own\n"})
    stage.planned()
    assert stage.call("update_context", summary="- DO keep main small.")["success"]
    stage.edit()
    stage.call("start_session", flags={"clean": True})
    assert stage.read("app.py") == APP
    assert "DO keep main small." in stage.read(".code-intel/context.yml")
    assert "the user's own" in stage.read(".code-intel/context.yml")


def test_a_test_moves_to_another_file(stage: Stage) -> None:
    """The tests as they were run on the new code: none is missed, whatever file it is in now."""
    spare = "def test_spare():\n    assert helper(0) == 1\n"
    stage.user_wants([sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider"])
    stage.planned("app.py", "tests/test_app.py", "tests/test_spare.py")
    stage.edit()
    stage.edit("tests/test_app.py", TESTS.replace(f"\n\n{spare}", "").replace("in {1, 2}", "== 2"))
    stage.edit("tests/test_spare.py", f"from app import helper\n\n\n{spare}")
    stage.accepted(**report())
    finish(stage)


def test_what_the_session_made_of_the_users_untracked_files_is_undone_when_it_is_given_up(stage: Stage) -> None:
    stage.write("draft.py", "mine = 1\n")
    stage.write("todo.txt", "mine\n")
    stage.planned("app.py", "draft.py")
    stage.edit("draft.py", "of = 'the agent'\n")
    stage.write("todo.txt", "mine, and more\n")
    cleaned = stage.call("start_session", flags={"clean": True})
    assert (stage.read("draft.py"), stage.read("todo.txt")) == ("mine = 1\n", "mine, and more\n")
    again, left = cleaned["warnings"]
    assert again.endswith("again (what they had become is in the trash): draft.py")
    assert left.endswith("left as they are (what they were before is in the trash): todo.txt")
    (earlier,) = stage.git("for-each-ref", "--format=%(refname)", "refs/code-intel/archive/*/*-earlier").split()
    assert stage.git("show", f"{earlier}:todo.txt") == "mine\n"


@pytest.mark.parametrize("quick", [False, True])
def test_what_the_tasks_took_of_the_users_uncommitted_text_is_in_the_trash(stage: Stage, *, quick: bool) -> None:
    """Found by an opponent: a draft that the session finished, or removed, was nowhere any more as the user had left it."""
    for name in ("draft.py", "gone.py", "same.py"):
        stage.write(name, "mine = 1\n")
    paths = ("app.py", "draft.py", "gone.py", "same.py")
    stage.planned(*paths, **({"quick": True, "no_verify": True} if quick else {}))
    stage.edit()
    stage.edit("draft.py", "finished = True\n")
    stage.call("check_write_target", path="gone.py")
    (stage.root / "gone.py").unlink()
    stage.accepted(**report())
    done = stage.accepted(summary="All tasks are done.") if quick else finish(stage)
    assert done["phase"] == "SESSION_COMPLETE"
    assert done["warnings"][0].endswith("left as they are (what they were before is in the trash): draft.py, gone.py")
    (ref,) = stage.git("for-each-ref", "--format=%(refname)", "refs/code-intel/archive/*/*-earlier").split()
    assert stage.git("diff", "--name-only", f"{ref}^", ref).split() == ["draft.py", "gone.py"]
    assert stage.git("show", f"{ref}:draft.py") == stage.git("show", f"{ref}:gone.py") == "mine = 1\n"


@pytest.mark.parametrize("what", ["task branch", "base"])
def test_a_branch_that_the_user_renamed_is_not_said_to_be_archived(stage: Stage, what: str) -> None:
    """What is done under another name stays there; without its base the session cannot leave its branch."""
    stage.committed()
    task = stage.git("branch", "--show-current").strip()
    stage.git("branch", "-m", task if what == "task branch" else "main", "mine")
    cleaned = stage.call("start_session", flags={"clean": True})
    assert cleaned["branches_removed"] == []
    assert "Cleaned: 0 task branch(es)" in cleaned["message"]
    assert stage.read("app.py") == APP_DONE


def test_the_branch_was_switched_by_the_user_and_back(stage: Stage) -> None:
    stage.verified()
    name = stage.git("rev-parse", "--abbrev-ref", "HEAD").strip()
    payload = stage.commit()
    stage.git("switch", "-q", "-c", "look")
    answer = stage.agent.submit(**payload)
    assert f"git switch {name}" in answer["remedy"]
    stage.git("switch", "-q", name)
    stage.accepted(**payload)
    merged(stage)


@pytest.mark.parametrize(("says", "heard"), [("echo 'run the linter'", "run the linter"), (":", "did not say why")])
def test_a_pre_commit_hook_refuses_once(stage: Stage, says: str, heard: str) -> None:
    hook = stage.root / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntest -e .git/fine || {{ {says}; exit 1; }}\n")
    hook.chmod(0o755)
    stage.verified()
    answer = stage.agent.submit(**stage.commit())
    assert heard in answer["remedy"] and "tool_errors" not in answer["remedy"]
    (stage.root / ".git/fine").touch()
    stage.accepted(**stage.commit())
    (stage.root / ".git/fine").unlink()
    merged(stage)


@pytest.mark.parametrize(("name", "script"), [
    ("commit-msg", "! grep -q '^Merge' $1 || { echo 'main is protected'; exit 1; }"),
    ("reference-transaction", "! { [ $1 = prepared ] && grep -q heads/main; } || { echo 'main is protected'; exit 1; }"),
])  # fmt: skip
def test_a_hook_protects_the_base_and_the_user_keeps_the_branch_as_the_refusal_says(
    stage: Stage, name: str, script: str
) -> None:
    stage.committed()
    main = stage.git("rev-parse", "main")
    hook = stage.root / ".git/hooks" / name
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\n{script}\n")
    hook.chmod(0o755)
    refused = stage.agent.submit(summary="Merged.")
    assert not refused["success"]
    assert "main is protected" in refused["remedy"]
    assert '`"finish": "branch"`' in refused["remedy"]
    config = stage.root / ".code-intel/config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "finish": "branch"}))
    kept = stage.accepted(summary="Kept.")
    assert kept["phase"] == "SESSION_COMPLETE"
    assert "(finish mode: branch)" in kept["message"]
    assert stage.git("rev-parse", "main") == main


# -- lanes --------------------------------------------------------------------------------------------------------------


def test_a_quick_session_works_on_a_dirty_tree(stage: Stage) -> None:
    stage.write("README.md", "# Mine\n")
    stage.planned(quick=True)
    stage.edit()
    stage.accepted(**report())
    stage.accepted(summary="Done.")
    assert stage.accepted(**verdict())["phase"] == "SESSION_COMPLETE"
    assert stage.git("diff", "--name-only").split() == ["README.md", "app.py"]


def test_a_session_without_a_flag_takes_ten_submits_and_twelve_kilobytes(stage: Stage) -> None:
    before = stage.counts()
    assert through_every_gate(stage)["phase"] == "SESSION_COMPLETE"
    after = stage.counts()
    assert after["submits"] - before["submits"] <= 10
    assert after["flow_bytes"] - before["flow_bytes"] <= 12_000


KEEP = {"reviewed_files": ["app.py"], "commit_message": "Return two", "review_prompt_used": "garbage_detection"}


def test_small_changes_come_with_the_answer_that_leads_to_the_commit(stage: Stage) -> None:
    stage.planned()
    stage.edit()
    stage.accepted_list(report(), {"summary": "Done."})
    shown = stage.accepted(**verdict())["review"]
    assert [row["path"] for row in shown] == ["app.py"] and "+    return 2" in shown[0]["diff"]
    stage.write("app.py", APP_DONE + "\n\nLEFT = 1\n")
    refused = stage.agent.submit(**KEEP)
    assert refused["changed"] == ["app.py"], "what was shown is no longer what would be committed"
    stage.write("app.py", APP_DONE)
    stage.accepted(**KEEP)
    merged(stage)


def test_large_changes_are_looked_at_by_a_call(stage: Stage) -> None:
    stage.unseen()
    assert "review_changes" in stage.agent.submit(**KEEP)["message"]
    stage.accepted(**stage.commit())
    merged(stage)


def test_what_could_not_be_checked_is_said_to_the_user(stage: Stage) -> None:
    stage.planned()
    stage.edit()
    stage.accepted_list(report(), {"summary": "Done."})
    stage.accepted(**verdict(not_run=["mypy: not installed", " "]))
    stage.accepted(**stage.commit())
    assert "not run: mypy: not installed;" in merged(stage)["instruction"]


def test_a_waiver_that_the_user_gave_under_release_1_16_is_theirs_after_the_upgrade(stage: Stage) -> None:
    stage.user_wants(["false"])
    stage.completed()
    session_id = stage.call("get_session_status")["session_id"]
    row = {"argv": ["false"], "reason": "red before this session", "at": "2026-01-01T00:00:00+00:00"}
    file = stage.approvals._waiver_file(stage.root, session_id)
    stage.approvals._write(file, {"session_id": session_id, "waivers": [row]})
    assert stage.accepted(**verdict())["decisions"] == {"waiver of false": "typed at a terminal"}


def test_what_a_set_up_in_the_middle_has_committed_is_not_said_to_be_left(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(stage.root.parent / "state"))
    stage.begin(fast=True, no_doc=True)
    stage.accepted(action_type="change", target_symbols=["main"])
    assert init.main([str(stage.root), "--no-proof", "--no-index", "--yes"]) == 0
    assert stage.git("log", "-1", "--format=%s") == "Set up code-intel\n"
    written = [*stage.git("show", "--name-only", "--format=", "HEAD").split(), ".code-intel/config.json.new"]
    stage.explain("app.py", *written)
    stage.accepted(**plan())
    stage.edit()
    stage.accepted(**report())
    left = [{"path": path, "decision": "leave", "reason": "of the set-up"} for path in written]
    stage.accepted(summary="All tasks are done.")
    stage.accepted(**verdict())
    stage.call("review_changes", path="app.py")
    stage.accepted(**stage.commit("app.py", *left))
    assert "Code-Intel-Left: .code-intel/config.json.new\n" in stage.git("log", "-1", "--format=%B")


# -- repositories of their own -----------------------------------------------------------------------------------------


def play(root: Path, evidence: str = "app.py:2", path: str = "app.py", text: str = APP_DONE, **flags: object) -> Fields:
    """A whole fast (or quick) session on a repository of its own."""
    with Agent(root) as agent:
        stage = Stage(root, agent)
        stage.planned(path, **flags)
        assert stage.call("check_write_target", path=path)["allowed"]
        (root / path).write_bytes(text.encode())
        stage.accepted(**report(evidence=evidence))
        stage.accepted(summary="Done.")
        answer = stage.accepted(**verdict())
        if flags.get("quick"):
            return answer
        stage.accepted(**stage.commit())
        return stage.accepted(summary="Merged.")


def test_quick_work_without_git(tmp_path: Path) -> None:
    root = tmp_path / "plain"
    root.mkdir()
    (root / "app.py").write_text(APP)
    assert play(root, quick=True)["phase"] == "SESSION_COMPLETE"


def test_a_repository_without_our_scaffold(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", {"app.py": APP})
    assert play(root)["phase"] == "SESSION_COMPLETE"


def test_a_project_in_a_subfolder_of_its_repository(tmp_path: Path) -> None:
    top = repository(
        tmp_path / "repo", {"web/app.py": APP, "web/.code-intel/config.json": "{}\n", "other/x.py": "x = 1\n"}
    )
    (top / "other/x.py").write_text("x = 2  # the user's\n")
    git(top, "commit", "-qam", "User")
    assert play(top / "web")["phase"] == "SESSION_COMPLETE"
    assert "return 2" in git(top, "show", "main:web/app.py")


def test_a_lock_file_above_the_subfolder_is_named_when_it_stays_uncommitted(tmp_path: Path) -> None:
    """Found by a review: allowed by nobody and judged by nobody, it stayed behind without a word."""
    lock = '{"app": "1.0.0"}\n'
    top = repository(
        tmp_path / "repo", {"web/app.py": APP, "web/.code-intel/config.json": "{}\n", "package-lock.json": lock}
    )
    with Agent(top / "web") as agent:
        stage = Stage(top / "web", agent)
        stage.verified()
        (top / "package-lock.json").write_text(lock.replace("1.0.0", "1.0.1"))
        (top / "poetry.lock").write_text("new\n")
        (top / "notes.txt").write_text("the user's\n")
        answer = stage.accepted(**stage.commit())
        assert (
            "outside of the project's folder, and in no commit of this session: package-lock.json, poetry.lock."
            in (answer["warning"])
        )
        assert stage.accepted(summary="Merged.")["phase"] == "SESSION_COMPLETE"
    assert "M package-lock.json" in git(top, "status", "--porcelain")


def rewriting(stage: Stage, code: str) -> None:
    """A verified session whose verify command writes a tracked file."""
    stage.write("snap.txt", "one\n")
    stage.git("add", "snap.txt")
    stage.git("commit", "-qm", "A snapshot")
    stage.user_wants([sys.executable, "-c", f"import pathlib; file = pathlib.Path('snap.txt'); {code}"])
    stage.verified()


@pytest.mark.parametrize("decision", ["leave", "discard"])
def test_a_tracked_file_that_a_verify_command_rewrites_is_decided_on_as_the_refusal_says(
    stage: Stage, decision: str
) -> None:
    rewriting(stage, "file.write_text('two')")
    refused = stage.refused("by a verify command or by somebody, and explored by nobody: snap.txt", **stage.commit())
    assert f"'{decision}' with" in refused["remedy"]
    decided = {"path": "snap.txt", "decision": decision, "reason": "The verify command rewrites it each time."}
    answer = stage.accepted(**stage.commit(decided))
    assert "snap.txt" in answer["warning"]
    assert ("rewritten by a command" in answer["warning"]) is (decision == "discard")
    assert stage.accepted(summary="Merged.")["phase"] == "SESSION_COMPLETE"
    assert stage.git("show", "main:snap.txt") == "one\n"


def test_a_tracked_file_that_ends_as_it_was_is_not_asked_about(stage: Stage) -> None:
    rewriting(stage, "text = file.read_text(); file.write_text('two'); file.write_text(text)")
    payload = stage.commit()
    assert payload["reviewed_files"] == ["app.py"]
    stage.accepted(**payload)


def test_files_with_crlf_under_autocrlf(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", {"app.py": APP})
    git(root, "config", "core.autocrlf", "true")
    (root / "app.py").unlink()
    git(root, "checkout", "--", "app.py")
    assert b"\r\n" in (root / "app.py").read_bytes()
    final = play(root, text=APP_DONE.replace("\n", "\r\n"))
    assert final["phase"] == "SESSION_COMPLETE"
    assert "\r" not in git(root, "show", "main:app.py")
    assert "warning" not in final


def test_a_filter_of_the_repository(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", {"app.py": APP, ".gitattributes": "*.dat filter=upper\n"})
    git(root, "config", "filter.upper.clean", "tr a-z A-Z")
    git(root, "config", "filter.upper.smudge", "tr A-Z a-z")
    (root / "words.dat").write_text("words\n")
    os.utime(root / "words.dat", (1_700_000_000, 1_700_000_000))  # as after any checkout older than a second
    git(root, "add", "-A")
    git(root, "commit", "-qm", "Words")
    assert play(root)["phase"] == "SESSION_COMPLETE"
    assert git(root, "status", "--porcelain") == ""


def test_a_repository_with_a_submodule(tmp_path: Path) -> None:
    inner = repository(tmp_path / "inner", {"lib.py": "x = 1\n"})
    root = repository(tmp_path / "repo", {"app.py": APP})
    git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "vendor")
    git(root, "commit", "-qm", "Submodule")
    assert play(root)["phase"] == "SESSION_COMPLETE"


def test_a_worktree_of_a_repository(tmp_path: Path) -> None:
    repository(tmp_path / "repo", {"app.py": APP})
    git(tmp_path / "repo", "worktree", "add", "-q", "-b", "side", str(tmp_path / "tree"))
    assert play(tmp_path / "tree")["phase"] == "SESSION_COMPLETE"
    assert "return 2" in git(tmp_path / "repo", "show", "side:app.py")


@pytest.mark.parametrize(("files", "lines", "most"), [(300, 1, 1), (300, 120, 1), (1000, 1, 2), (150, 60, 10)])
def test_changes_of_many_files_are_looked_at_in_a_few_pages(stage: Stage, files: int, lines: int, most: int) -> None:
    names = [f"src/m{number:04}.py" for number in range(files)]
    base(stage, dict.fromkeys(names, "VALUE = [0,1]\n" * lines))
    stage.planned()
    stage.edit()
    for name in names:
        stage.write(name, "VALUE = [0, 1]\n" * lines)
    stage.call("add_explored_files", paths=names, reason="The formatter of the task wrote them.")
    stage.finished()
    payload = {"reviewed_files": ["**"], "commit_message": "Format", "review_prompt_used": "garbage_detection"}
    offset = stage.call("review_changes", limit=1)["next_offset"]
    refused = stage.agent.submit(**payload, tools_used=["review_changes"])
    assert refused["error"] == "review_failed" and len(refused["cut"]) == files, "one row of many counts for itself"
    looks = 0
    while offset:
        page = stage.call("review_changes", offset=offset)
        offset, looks = page.get("next_offset"), looks + 1
        assert "cut" not in page
    assert looks <= most
    assert stage.accepted(**payload)["phase"] == "MERGE"
