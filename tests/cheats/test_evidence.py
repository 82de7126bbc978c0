"""Evidence that proves nothing."""

import pytest

from tests.e2e.stage import APP, APP_DONE, ITEM, Stage, plan, report

TWO = {"id": "t2", "description": "Second", "status": "pending", "checklist": ["Second"]}


@pytest.mark.parametrize(
    ("evidence", "says"),
    [
        ("app.py:6", "was not changed"),
        ("lib.py:5", "was not changed"),
        ("app.py:99", "exceeds file length"),
        ("app.py:0", "within 1-10"),
        ("app.py:3-1", "invalid format"),
        ("nowhere.py:1", "not found"),
        ("../outside.py:1", "not found"),
        ("/etc/passwd:1", "not found"),
        ("pkg:1", "not found"),
        ("app.py line 2", "invalid format"),
        ("app.py", "invalid format"),
        ("", "requires evidence"),
    ],
)
def test_evidence_that_points_to_no_changed_line(stage: Stage, evidence: str, says: str) -> None:
    """Stopped by: evidence is an existing range inside the project that touches a hunk changed since the base."""
    stage.planned()
    stage.edit()
    stage.refused(says, **report(evidence=evidence))


@pytest.mark.parametrize(
    "path",
    [".git/config", ".code-intel/logs/decisions.jsonl", ".code-intel/context.yml", "lib/.code-intel/context.yml"],
)
def test_a_file_of_gits_or_the_servers_own(stage: Stage, path: str) -> None:
    """Stopped by: what git and the server keep for themselves is no work, whatever the reason given."""
    stage.write(".code-intel/context.yml", "version: 1\n")
    stage.write("lib/.code-intel/context.yml", "version: 1\n")
    stage.planned()
    stage.call("check_write_target", path="app.py")
    stage.refused("was not changed", **report(evidence=f"{path}:1", reason="It was written during this task."))


@pytest.mark.parametrize(
    ("body", "evidence", "says"),
    [
        ("    pass\n", "app.py:2", "Empty implementation"),
        ("    ...\n", "app.py:1-2", "Empty implementation"),
        ("    # TODO: return 2\n    raise NotImplementedError\n", "app.py:2-3", "Empty implementation"),
        ('    """Return two."""\n', "app.py:2", "Empty implementation"),
        ("    # now returns two\n    return 1\n", "app.py:2", ""),
        ("\n    return 1\n", "app.py:2", ""),
    ],
    ids=["pass", "ellipsis", "todo", "docstring", "comment", "blank"],
)
def test_an_empty_implementation(stage: Stage, body: str, evidence: str, says: str) -> None:
    """Stopped by: the syntax tree; stubs are no implementation, a comment alone needs a reason."""
    stage.planned()
    stage.edit(text=APP.replace("    return 1\n", body, 1))
    stage.refused(says, **report(evidence=evidence))


def test_white_space_only(stage: Stage) -> None:
    """Stopped by: a range in which only white space changed proves nothing without a reason."""
    stage.planned()
    stage.edit(text=APP.replace("    return 1\n", "    return  1\n", 1))
    stage.refused("shows no changed code", **report())


def test_evidence_for_work_that_was_undone_before_the_report(stage: Stage) -> None:
    """Stopped by: the tree is judged as it is when the report comes."""
    stage.planned()
    stage.edit()
    stage.write("app.py", APP)
    stage.refused("was not changed", **report())


def test_evidence_in_a_file_that_was_changed_before_the_session(stage: Stage) -> None:
    """Stopped by: changes count from the session's base; what was committed before is not this session's."""
    stage.write("app.py", APP_DONE)
    stage.git("commit", "-qam", "Already done")
    stage.planned()
    stage.call("check_write_target", path="app.py")
    stage.refused("was not changed", **report())


def test_the_range_of_another_task(stage: Stage) -> None:
    """Stopped by: a range proves one item; a second one on the same lines needs a reason."""
    stage.ready()
    stage.accepted(**plan("t1", [ITEM], TWO))
    stage.edit()
    stage.accepted(**report())
    stage.call("check_write_target", path="app.py")
    stage.refused("already proves", **report("t2", "app.py:2", "Second"))


def test_the_range_of_another_task_padded_with_unchanged_lines(stage: Stage) -> None:
    """Stopped by: what counts is the changed lines in a range; padding adds none."""
    stage.ready()
    stage.accepted(**plan("t1", [ITEM], TWO))
    stage.edit()
    stage.accepted(**report(evidence="app.py:1-2"))
    stage.call("check_write_target", path="app.py")
    stage.refused("already proves", **report("t2", "app.py:2-3", "Second"))


def test_one_line_of_code_for_two_items_with_comments_round_the_code(stage: Stage) -> None:
    """Stopped by: what is left to the other item has to be work; comments and blank lines round it are none."""
    stage.ready()
    stage.accepted(**plan("t1", [ITEM], TWO))
    stage.edit(text=APP.replace("return 1", "# Two is\n    # what they want.\n\n    return 2", 1))
    stage.accepted(**report(evidence="app.py:2-5"))
    stage.call("check_write_target", path="app.py")
    stage.refused("already proves", **report("t2", "app.py:5", "Second"))


def test_the_lines_of_another_task_moved_down(stage: Stage) -> None:
    """Stopped by: a used range is followed through later edits of its file."""
    stage.ready()
    stage.accepted(**plan("t1", [ITEM], TWO))
    stage.edit()
    stage.accepted(**report(evidence="app.py:1-2"))
    stage.edit(text="# A module.\n#\n# It says two.\n" + APP_DONE)
    stage.refused("already proves", **report("t2", "app.py:4-5", "Second"))


def test_the_same_range_for_two_items_of_one_report(stage: Stage) -> None:
    """Stopped by: a range proves one item; a second one on the same lines needs a reason."""
    stage.ready()
    stage.accepted(**plan("t1", [ITEM, "Another"]))
    stage.edit()
    items = [{"item": name, "status": "done", "evidence": "app.py:2"} for name in (ITEM, "Another")]
    stage.refused("already proves", task_id="t1", checklist=items, tools_used=["check_write_target"])


def test_an_ignored_file_that_nobody_touched(stage: Stage) -> None:
    """Stopped by: no snapshot holds an ignored file, so it proves an item only with a reason, shown in review_changes."""
    stage.write("build/out.py", "def built():\n    return 1\n")
    stage.planned()
    stage.call("check_write_target", path="app.py")
    stage.refused("shows no changed code", **report(evidence="build/out.py:1"))


def test_a_link_to_a_file_outside(stage: Stage) -> None:
    """Stopped by: links are followed before a path is judged; what lies outside is no evidence."""
    stage.planned()
    stage.call("check_write_target", path="notes.py")
    (stage.root / "notes.py").symlink_to("/etc/passwd")
    stage.refused("not found", **report(evidence="notes.py:1"))


def test_a_link_to_an_unchanged_file(stage: Stage) -> None:
    """Stopped by: links are followed; the file they lead to was not changed."""
    stage.planned()
    stage.call("check_write_target", path="alias.py")
    (stage.root / "alias.py").symlink_to("lib.py")
    stage.refused("was not changed", **report(evidence="alias.py:5"))


def test_an_unchanged_line_of_a_file_that_was_renamed_and_changed(stage: Stage) -> None:
    """Stopped by: by its new name a renamed file is judged as any changed file, hunk by hunk, white space aside."""
    stage.planned("app.py", "main.py")
    stage.call("check_write_target", path="main.py")
    (stage.root / "app.py").unlink()
    stage.write("main.py", APP_DONE.replace("- 1", "-  1"))
    stage.refused("was not changed", **report(evidence="main.py:6"))
    stage.refused("changes of white space or notation", **report(evidence="main.py:10"))
    stage.accepted(**report(evidence="main.py:2"))


def test_a_skipped_item_without_a_reason(stage: Stage) -> None:
    """Stopped by: skipping needs a reason of ten characters."""
    stage.planned()
    item = {"item": ITEM, "status": "skipped", "reason": "n/a"}
    stage.refused("requires reason", task_id="t1", checklist=[item])


def test_evidence_beside_the_change_of_a_quick_session(stage: Stage) -> None:
    """Stopped by: without a task branch the session's start is the base, so the tree is judged there too."""
    stage.planned(quick=True)
    stage.edit()
    stage.refused("was not changed", **report(evidence="app.py:6"))


@pytest.mark.parametrize(
    ("text", "lines"),
    [(APP + "# nothing\n" * 900_000, "11-900010"), (f"{APP}{'b=1;' * 400_000}\n", "11-11")],
    ids=["9 MB of comments", "1.6 MB in a line"],
)
def test_what_no_syntax_tree_is_made_of_is_said_not_to_be_judged(stage: Stage, text: str, lines: str) -> None:
    """Seen by: the answer names the files."""
    stage.planned()
    stage.edit(text=text)
    answer = stage.agent.submit(**report(evidence=f"app.py:{lines}"))
    assert "syntax tree: app.py" in answer.get("warning", ""), answer
    stage.notice()
