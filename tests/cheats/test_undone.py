"""Work that is there for its report and gone at the commit."""

import json

import pytest

from code_intel_server.cli.pages.record import session_record
from code_intel_server.cli.pages.report import report_page
from tests.e2e.stage import APP, APP_DONE, ITEM, REASON, Stage, plan, report, verdict


@pytest.mark.parametrize(
    "text",
    [
        APP,
        APP.replace("    return 1\n", "    pass  # TODO\n", 1),
        APP.replace("    return 1\n", "    return 1\n    return 2\n", 1),
        APP.replace("    return 1\n", "    raise NotImplementedError\n", 1),
    ],
    ids=["undone", "todo", "behind a return", "stub"],
)
def test_work_swapped_after_its_report(stage: Stage, text: str) -> None:
    """Stopped by: the evidence is judged again against what is to be committed; the item is named and goes back to the plan."""
    stage.verified("app.py", "lib.py")
    stage.cheat()
    stage.write("app.py", text)
    stage.write("lib.py", "LIMIT = 11\n\n\ndef other():\n    return LIMIT\n")
    answer = stage.accepted(**stage.commit())
    stage.notice()
    assert (answer["phase"], answer["undone"]) == ("READY", [f"t1: {ITEM} (app.py:2-2)"])
    done = [{**row, "checklist": [ITEM]} for row in answer["tasks"] if row["status"] == "completed"]
    stage.accepted(**plan("t2", [ITEM], *done))
    stage.edit("lib.py", stage.read("lib.py"))
    stage.edit(text=APP_DONE)
    stage.accepted(**report("t2"))
    stage.accepted(summary="Done again.")
    stage.accepted(**verdict())
    assert stage.accepted(**stage.commit())["phase"] == "MERGE"


def test_a_task_dropped_and_one_skipped_while_files_change(stage: Stage) -> None:
    """Stopped by: nothing; the answer and the trailers say it."""
    stage.ready("app.py", "lib.py")
    second = {"id": "t2", "description": "Second", "status": "pending", "checklist": ["Second"]}
    stage.accepted(**plan("t1", [ITEM], second, {**second, "id": "t3"}))
    stage.accepted(**plan("t1", [ITEM], second))
    stage.edit()
    stage.accepted(**report())
    stage.edit("lib.py", "LIMIT = 11\n\n\ndef other():\n    return LIMIT\n")
    answer = stage.accepted(task_id="t2", checklist=[{"item": "Second", "status": "skipped", "reason": REASON}])
    assert "although every item" in answer["warning"]
    stage.accepted(summary="Done.")
    stage.accepted(**verdict())
    stage.accepted(**stage.commit())
    message = stage.git("log", "-1", "--format=%B")
    assert "Code-Intel-Dropped: t3" in message and "Code-Intel-Only-Skipped: t2" in message
    kept = stage.root / ".code-intel" / "sessions" / f"{stage.call('get_session_status')['session_id']}.json"
    page = report_page(session_record({"state": json.loads(kept.read_text("utf-8"))}))
    assert "later plan dropped" in page and "t3" in page and "every item was skipped" in page


def test_an_older_trusted_configuration_put_back(stage: Stage) -> None:
    """Stopped by: nothing, since other branches may have it; the answer and the trailer say that another one was trusted since."""
    stage.user_wants(["true"])
    stage.user_wants(["true"], ["true", "again"])
    stage.write(".code-intel/config.json", stage.git("show", "HEAD~1:.code-intel/config.json"))
    stage.git("commit", "-qam", "As it was")
    said = stage.begin(fast=True, no_doc=True)
    assert "trusted another version of it" in str(said["warnings"])
