"""Proofs that the server runs: bent, dodged, waived by the wrong hand."""

import json
import sys

from tests.e2e.stage import APP_DONE, ITEM, Stage, plan, report, verdict

CHECK = "import app, sys; sys.exit(0 if app.main() == 2 else 'main is not two')"
COMMAND = [sys.executable, "-B", "-c", CHECK]
WRONG = APP_DONE.replace("return 2", "return 3")


def wrong(stage: Stage) -> None:
    """A session before its verdict whose work the check refutes."""
    stage.user_wants(COMMAND)
    stage.planned()
    stage.edit(text=WRONG)
    stage.accepted(**report())
    stage.accepted(summary="Done.")


def test_passed_is_typed_while_the_command_fails(stage: Stage) -> None:
    """Stopped by: the server runs the command itself and refuses the verdict with its output."""
    wrong(stage)
    stage.refused("main is not two", **verdict())
    fields = {"proof": "proven", "waived": True, "receipt": {"status": "proven"}, "verify_commands": []}
    stage.refused("main is not two", **verdict(**fields))


def test_the_command_is_taken_out_of_the_configuration(stage: Stage) -> None:
    """Stopped by: the session keeps the commands it began with; the edited file is a change nobody explored."""
    wrong(stage)
    stage.write(".code-intel/config.json", json.dumps({"verify_commands": []}))
    stage.refused("config.json", **verdict())
    stage.git("update-index", "--assume-unchanged", ".code-intel/config.json")
    stage.refused("config.json", **verdict())


def test_the_command_is_taken_out_and_the_server_killed(stage: Stage) -> None:
    """Stopped by: the configuration's hash is in the checkpoint; with another one the verdict is marked unproven."""
    stage.user_wants(COMMAND)
    stage.planned("app.py", ".code-intel/config.json")
    stage.edit(text=WRONG)
    stage.call("check_write_target", paths=".code-intel/config.json")
    stage.write(".code-intel/config.json", json.dumps({"verify_commands": []}))
    stage.accepted(**report())
    stage.accepted(summary="Done.")
    stage.cheat()
    answer = stage.kill_and_restart()
    assert "config.json" in str(answer["warnings"])
    answer = stage.accepted(**verdict())
    assert answer["proof"]["status"] == "unproven"
    assert "unproven" in answer["warning"]
    stage.notice()
    stage.accepted(**stage.commit())
    assert "Code-Intel-Unproven" in stage.git("log", "-1", "--format=%B")


def test_a_command_the_user_never_trusted(stage: Stage) -> None:
    """Stopped by: nothing of the repository runs before the user trusted it; the verdict is marked unproven."""
    marker = stage.root.parent / "ran"
    stage.user_wants([sys.executable, "-c", f"open({str(marker)!r}, 'w')"], trusted=False)
    stage.completed()
    answer = stage.accepted(**verdict())
    assert answer["proof"]["status"] == "unproven"
    assert not marker.exists()
    stage.notice()


def test_trust_forged_without_the_users_key(stage: Stage) -> None:
    """Stopped by: approvals are signed with a key in the user's state folder."""
    marker = stage.root.parent / "ran2"
    stage.user_wants([sys.executable, "-c", f"open({str(marker)!r}, 'w')"], trusted=True)
    for file in (stage.root.parent / "state/code-intel/trust").glob("*.json"):
        sealed = json.loads(file.read_text())
        file.write_text(json.dumps({**sealed, "mac": "0" * len(sealed["mac"])}))
    stage.completed()
    assert stage.accepted(**verdict())["proof"]["status"] == "unproven"
    assert not marker.exists()
    stage.notice()


def test_a_waiver_forged_without_the_users_key(stage: Stage) -> None:
    """Stopped by: approvals are signed with a key in the user's state folder."""
    wrong(stage)
    session = stage.call("get_session_status")["session_id"]
    stage.approvals.waive(stage.root, session, COMMAND, "The user says that this may fail.")
    for file in (stage.root.parent / "state/code-intel/waivers").glob("*.json"):
        sealed = json.loads(file.read_text())
        content = sealed["content"].replace("may fail", "may FAIL")
        file.write_text(json.dumps({**sealed, "content": content}))
    stage.refused("main is not two", **verdict())


def test_a_waiver_of_another_session(stage: Stage) -> None:
    """Stopped by: a waiver is for one command of one session."""
    wrong(stage)
    stage.approvals.waive(stage.root, "20200101_000000", COMMAND, "The user says that this may fail.")
    stage.refused("main is not two", **verdict())


def test_the_work_is_broken_after_it_was_proven(stage: Stage) -> None:
    """Stopped by: the receipt is bound to the tree; the commands run again before the commit and send it back."""
    stage.user_wants(COMMAND)
    stage.verified()
    stage.write("app.py", WRONG)
    stage.cheat()
    answer = stage.accepted(**stage.commit())
    assert answer["phase"] == "READY"
    assert "main is not two" in str(answer)
    assert stage.git("log", "--format=%s", "-1").strip() == "Configure"
    stage.notice()


def test_a_failing_proof_cannot_be_escaped_by_going_on(stage: Stage) -> None:
    """Stopped by: no payload leads from a failing proof to the commit; only a fix does (or the user's waiver)."""
    wrong(stage)
    for payload in (verdict(), {"commit_message": "x", "reviewed_files": ["app.py"]}, {"summary": "x"}, plan()):
        stage.refused("", **payload)
    stage.accepted(**verdict(passed=False, details="main is not two"))
    stage.refused("needs a new plan before it can be completed", summary="Nothing to fix, really.")
    stage.nothing_to_fix()
    stage.refused("main is not two", **verdict())


def test_a_verify_command_that_rewrites_the_reviewed_work(stage: Stage) -> None:
    """Stopped by: what is kept must be as it was reviewed when the commands have ended."""
    script = "import pathlib as p; f = p.Path('app.py'); f.write_text(f.read_text() + 'EVIL = 1\\n')"
    stage.user_wants([sys.executable, "-c", script])
    stage.verified()
    stage.write("app.py", APP_DONE)
    stage.refused("changed after they were reviewed: app.py", **stage.commit())
    assert "EVIL" not in stage.git("show", "HEAD:app.py")


def test_the_script_that_the_command_runs_is_replaced(stage: Stage) -> None:
    """Stopped by: the tree; the script is a file of the project that nobody explored."""
    stage.write("check.py", CHECK)
    stage.git("add", "check.py")
    stage.user_wants([sys.executable, "-B", "check.py"])
    stage.planned()
    stage.edit(text=WRONG)
    stage.accepted(**report())
    stage.write("check.py", "print('fine')\n")
    stage.refused("check.py", summary="Done.")


def test_a_fix_task_does_not_wipe_the_failures(stage: Stage) -> None:
    """Stopped by: consecutive failures are counted for the session; new task ids do not start anew."""
    stage.completed()
    done = [{"id": "t1", "description": "Task t1", "status": "completed", "checklist": [ITEM]}]
    for number in range(3):
        answer = stage.accepted(**verdict(passed=False, details=f"round {number}"))
        if number == 2:
            break
        name = f"fix{number}"
        stage.accepted(**plan(name, [name], *done))
        stage.edit(text=APP_DONE + f"\n\ndef {name}():\n    return {number}\n")
        stage.accepted(**report(name, "app.py:14", name))
        stage.accepted(summary=f"{name} done.")
        done.append({"id": name, "description": name, "status": "completed", "checklist": [name]})
    assert answer["phase"] == "VERIFY_INTERVENTION"
    stage.notice()
