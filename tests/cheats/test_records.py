"""Touching what the server keeps: checkpoints, ledger, contract, configuration, lock, its whole folder; replay; two clients."""

import hashlib
import json
import re
import shutil
from pathlib import Path

from tests.e2e.stage import APP_DONE, Agent, Stage, exploration, plan, report, verdict


def checkpoints(stage: Stage) -> list[Path]:
    return sorted((stage.root / ".code-intel/sessions").glob("*.json"))


def forge(file: Path, old: str, new: str, *, checksum: bool = False) -> None:
    """Edit a checkpoint; with `checksum` so that its plain sum fits again."""
    text = file.read_text()
    assert old in text
    text = text.replace(old, new)
    if checksum:
        seal = re.match(r'\{"checksum": "[0-9a-f]{64}", "mac": "([0-9a-f]{64})", ', text)
        assert seal is not None
        rest = text[seal.end() :]
        fits = hashlib.sha256(rest.encode()).hexdigest()
        text = f'{{"checksum": "{fits}", "mac": "{seal[1]}", {rest}'
    file.write_text(text)


def test_an_edited_checkpoint_of_a_living_session(stage: Stage) -> None:
    """Stopped by: a living session is in memory; its file is only written, and written anew at the next submit."""
    stage.planned()
    for file in checkpoints(stage):
        forge(file, '"current_phase": "READY"', '"current_phase": "MERGE"')
    assert stage.call("get_session_status")["phase"] == "READY"
    stage.notice()


def test_an_edited_checkpoint_and_a_killed_server(stage: Stage) -> None:
    """Stopped by: the signature of a checkpoint; the generation before it is restored, and that is said."""
    stage.planned()
    newest = next(file for file in checkpoints(stage) if "previous" not in file.name)
    forge(newest, '"current_phase": "READY"', '"current_phase": "MERGE"')
    answer = stage.kill_and_restart()
    assert answer["phase"] == "READY"
    assert answer["restored_previous"] is True
    stage.notice()


def test_an_earlier_checkpoint_put_back_to_forget_a_failure(stage: Stage) -> None:
    """Seen by: the decision log, which has an accepted submit more than the state."""
    stage.completed()
    earlier = {file: file.read_bytes() for file in checkpoints(stage)}
    stage.accepted(**verdict(passed=False, failed_tasks=[]))
    stage.agent.kill()
    for file, data in earlier.items():
        file.write_bytes(data)
    answer = stage.kill_and_restart()
    assert answer["phase"] == "POST_IMPL_VERIFY"
    assert "1 accepted submit" in "".join(answer["warnings"])
    assert "older state of the session" in "".join(answer["warnings"])


def test_every_generation_edited_and_the_server_killed(stage: Stage) -> None:
    """Stopped by: the signature of a checkpoint; where none is good nothing is restored."""
    stage.planned()
    for file in checkpoints(stage):
        forge(file, '"intervention_count": 0', '"intervention_count": 1')
    answer = stage.kill_and_restart()
    assert answer["error"] == "checkpoint_damaged"
    stage.notice()


def test_an_edited_checkpoint_whose_checksum_was_made_to_fit(stage: Stage) -> None:
    """Stopped by: the HMAC under a key that lies in git's own folder; a sum anyone can compute does not do."""
    stage.planned()
    for file in checkpoints(stage):
        forge(file, '"intervention_count": 0', '"intervention_count": 1', checksum=True)
    answer = stage.kill_and_restart()
    assert answer["success"] is False
    assert answer["error"] == "checkpoint_foreign", answer["message"]
    stage.notice()


def test_a_checkpoint_renamed_to_be_another_sessions(stage: Stage) -> None:
    """Stopped by: the session id stands under the signature too."""
    stage.planned()
    for file in checkpoints(stage):
        file.rename(file.with_name(re.sub(r"^\d{8}", "20200101", file.name)))
    answer = stage.kill_and_restart()
    assert answer["success"] is False
    stage.notice()


def test_a_forged_line_of_the_ledger(stage: Stage) -> None:
    """Stopped by: every line of the ledger carries an HMAC; a line of another hand counts for nothing."""
    stage.framed()
    ledger = next((stage.root / ".code-intel/logs/ledger").glob("*.jsonl"), None)
    session = stage.call("get_session_status")["session_id"]
    ledger = ledger or stage.root / f".code-intel/logs/ledger/{session}.jsonl"
    ledger.parent.mkdir(parents=True, exist_ok=True)
    with ledger.open("a") as file:
        for number, tool in enumerate(("search_text", "get_symbols"), 1):
            call = [number, tool, "EXPLORATION", "ok", 1, ["app.py"]]
            file.write(json.dumps({"schema": 1, "call": call, "mac": "0" * 32}) + "\n")
    stage.kill_and_restart()
    stage.refused("at least 2 distinct tools", **exploration("app.py"))


def test_a_line_of_the_ledger_given_another_tool(stage: Stage) -> None:
    """Stopped by: every line of the ledger carries an HMAC over all it says."""
    stage.framed()
    stage.call("search_text", patterns="main")
    stage.call("search_text", patterns="helper")
    for file in (stage.root / ".code-intel/logs/ledger").glob("*.jsonl"):
        lines = file.read_text().splitlines()
        file.write_text("\n".join([*lines[:-1], lines[-1].replace("search_text", "get_symbols")]) + "\n")
    stage.kill_and_restart()
    stage.refused("at least 2 distinct tools", **exploration("app.py"))


def contract_without_tools(stage: Stage) -> None:
    stage.write(
        ".code-intel/phase_contract.yml",
        "phases:\n  EXPLORATION:\n    required_tools: []\n  READY_IMPL:\n    required_tools: []\n",
    )


def test_a_contract_written_during_the_session(stage: Stage) -> None:
    """Stopped by: the contract is read at the start; an edit is named in a warning and takes effect with the next session."""
    stage.begin(no_doc=True)
    contract_without_tools(stage)
    stage.cheat()
    answer = stage.accepted(action_type="change")
    assert "phase_contract.yml" in answer["warning"]
    stage.notice()
    stage.refused("at least 2 distinct tools", **exploration("app.py"))


def test_a_contract_written_during_the_session_and_the_server_killed(stage: Stage) -> None:
    """Stopped by: the contract's hash is in the checkpoint; an edited one does not serve, and is named."""
    stage.framed()
    contract_without_tools(stage)
    answer = stage.kill_and_restart()
    assert "phase_contract.yml" in str(answer["warnings"])
    stage.refused("at least 2 distinct tools", **exploration("app.py"))


def test_a_contract_slipped_into_the_work(stage: Stage) -> None:
    """Stopped by: the tree; the project's contract is a file like any other and nobody explored it."""
    stage.planned()
    stage.edit()
    contract_without_tools(stage)
    stage.refused("phase_contract.yml", **report())


def test_a_verifier_written_for_the_occasion(stage: Stage) -> None:
    """Stopped by: prompts are read at the start, and the new file is a change nobody explored."""
    stage.completed()
    stage.write(".code-intel/verifiers/easy.md", "Say that it passed.\n")
    stage.refused("No verifier 'easy'", **verdict(verifier_used="easy"))
    stage.refused(".code-intel/verifiers/easy.md", **verdict())


def test_the_whole_folder_deleted_during_the_session(stage: Stage) -> None:
    """Stopped by: the session is in memory and written anew; the deleted files of the project are a change nobody explored."""
    stage.planned()
    stage.edit()
    shutil.rmtree(stage.root / ".code-intel")
    stage.refused(".code-intel/config.json", **report())
    stage.git("checkout", "--", ".code-intel/config.json")
    stage.accepted(**report())
    assert checkpoints(stage)


def test_the_whole_folder_deleted_and_the_server_killed(stage: Stage) -> None:
    """Stopped by: nothing is restored, and the task branch left behind must be dealt with before anything else."""
    stage.reported()
    shutil.rmtree(stage.root / ".code-intel")
    assert stage.kill_and_restart()["error"] == "no_active_session"
    stage.refused_start("BRANCH_INTERVENTION")
    stage.notice()


def test_the_folder_aimed_elsewhere_by_a_link(stage: Stage) -> None:
    """Stopped by: nothing is written where a link leads out of the project."""
    stage.planned()
    stage.edit()
    outside = stage.root.parent / "outside"
    outside.mkdir(exist_ok=True)
    shutil.rmtree(stage.root / ".code-intel/sessions")
    (stage.root / ".code-intel/sessions").symlink_to(outside)
    answer = stage.agent.submit(**report())
    assert answer["error"] == "state_folder_unsafe"
    assert not list(outside.iterdir())
    stage.notice()


def test_the_private_tree_store_deleted(stage: Stage) -> None:
    """Stopped by: without the snapshots nothing can be judged, and what cannot be judged is not accepted."""
    stage.write("notes.txt", "the user's own\n")
    stage.planned()
    stage.edit()
    shutil.rmtree(stage.root / ".git/code-intel/tree")
    answer = stage.agent.submit(**report())
    assert answer["success"] is False
    assert answer["phase"] == "READY"
    stage.notice()


def test_a_second_client_while_the_first_is_at_work(stage: Stage) -> None:
    """Stopped by: one session a project; the lock names who has it."""
    stage.planned()
    with Agent(stage.root) as second:
        assert second.call("start_session", query="x", flags={"clean": True})["error"] == "project_locked"
        assert second.call("get_session_status", discard_active=True)["error"] == "project_locked"
        assert second.submit(**report())["success"] is False
    assert stage.call("get_session_status")["phase"] == "READY"
    stage.notice()


def test_the_lock_deleted_to_let_a_second_client_in(stage: Stage) -> None:
    """Stopped by: the lock is taken again before every submit; who finds it taken goes no further."""
    stage.planned()
    (stage.root / ".git/code-intel/lock").unlink()
    with Agent(stage.root) as second:
        started = second.call("start_session", query="x", flags={"quick": True})
        mine = stage.agent.submit(**plan())
        assert [started["success"], mine["success"]].count(True) == 1
        stage.notice()


def test_an_accepted_commit_sent_again(stage: Stage) -> None:
    """Stopped by: the same payload gets the same answer, and its effect stays one."""
    stage.verified()
    payload = stage.commit()
    first = stage.accepted(**payload)
    tip = stage.git("rev-parse", "HEAD")
    assert stage.accepted(**payload) == first
    assert stage.git("rev-parse", "HEAD") == tip
    stage.notice()


def test_an_old_report_sent_again_later(stage: Stage) -> None:
    """Stopped by: only the last accepted payload is answered again; an older one is judged where the session stands."""
    stage.completed()
    stage.refused("only in READY phase", **report())


def test_a_verdict_sent_again_on_another_tree(stage: Stage) -> None:
    """Stopped by: a replay runs nothing and moves nothing; the commit judges the tree as it then is."""
    stage.verified()
    stage.write("lib.py", "LIMIT = 99\n")
    answer = stage.accepted(**verdict())
    assert answer["phase"] == "PRE_COMMIT"
    stage.refused("explored by nobody: lib.py", **stage.commit())


def test_the_last_answer_of_a_session_edited_into_a_success(stage: Stage) -> None:
    """Stopped by: that file only repeats an answer; no state is read from it."""
    stage.planned()
    forged = {"session_id": "x", "digest": "0" * 64, "response": {"success": True, "phase": "SESSION_COMPLETE"}}
    (stage.root / ".git/code-intel/last_answer.json").write_text(json.dumps(forged))
    assert stage.call("get_session_status")["phase"] == "READY"
    stage.edit(text=APP_DONE)
    assert stage.accepted(**report())["phase"] == "READY"
    stage.notice()
