"""Refusals of tools in a session: each is provoked through the server, and then what its own words name is done."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest

from code_intel_server.contract.loader import Contract
from code_intel_server.workspace.state.signature import CHECKPOINT_SCHEMA, signed
from tests.e2e.stage import Agent, Stage, exploration, plan, report

MESSAGES = Contract.load(None).texts.messages
Call = tuple[str, Mapping[str, object]]


def asks(tool: str, **arguments: object) -> Call:
    return tool, arguments


def nothing(_stage: Stage) -> None:
    """No session."""


def begun(stage: Stage) -> None:
    stage.begin()


def exploring(stage: Stage) -> None:
    stage.framed()


def searching(stage: Stage) -> None:
    stage.begin(no_doc=True, gate_level="full")
    stage.accepted(action_type="change")
    stage.explore()
    stage.accepted(needs_more_information=True, reason="There is more to find.")


def ready(stage: Stage) -> None:
    stage.ready()


def planned(stage: Stage) -> None:
    stage.planned()


def edited(stage: Stage) -> None:
    stage.planned()
    stage.edit()


def finished(stage: Stage) -> None:
    stage.committed()
    stage.accepted(summary="Merged.")


def without_git(stage: Stage) -> None:
    shutil.rmtree(stage.root / ".git")
    stage.planned(quick=True)


def without_memory(stage: Stage) -> None:
    """Somebody has deleted what the session began with, a file of which is in no commit and has changed since."""
    stage.write("notes.txt", "The user's.\n")
    stage.planned()
    stage.write("notes.txt", "The user's, changed.\n")
    shutil.rmtree(stage.root / ".git/code-intel/tree")


def of_a_newer_version(stage: Stage) -> None:
    """The session's checkpoint as a version with another form of it would have written it."""
    stage.begin()
    stage.agent.kill()
    [file] = (path for path in (stage.root / ".code-intel/sessions").glob("*.json") if "previous" not in path.name)
    body = file.read_bytes().partition(b'", "mac": "')[2].partition(b'", ')[2]
    own, newer = (b'"schema_version": %d' % version for version in (CHECKPOINT_SCHEMA, CHECKPOINT_SCHEMA + 1))
    key = (stage.root / ".git/code-intel/key").read_bytes()
    file.write_bytes(signed(key, body.replace(own, newer, 1)))
    stage.restart()


def programs(stage: Stage) -> str:
    """A PATH with git, and with a ripgrep that cannot be started."""
    place = stage.root.parent / "bin"
    if not place.exists():
        place.mkdir()
        (place / "git").symlink_to(shutil.which("git") or "")
        (place / "rg").write_text("#!/no/such/shell\n", encoding="utf-8")
        (place / "rg").chmod(0o755)
    return str(place)


def without_ripgrep(stage: Stage) -> None:
    stage.agent.close()
    stage.agent = Agent(stage.root, PATH=programs(stage))
    stage.ready()


def command(stage: Stage, *words: str, **environment: str) -> str:
    """What a command of ours prints."""
    line = [sys.executable, "-m", "code_intel_server", *words]
    env = {**os.environ, "XDG_STATE_HOME": str(stage.root.parent / "state"), **environment}
    return subprocess.run(
        line, check=False, cwd=stage.root, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ).stdout


def doctor(stage: Stage) -> None:
    assert re.search(r"FAIL +ripgrep .*\n +→ install it", command(stage, "doctor", PATH=programs(stage)))


def in_its_place(folder: str, where: Callable[[Stage], object]) -> Callable[[Stage], object]:
    """A file stands where a folder of ours was."""

    def stand(stage: Stage) -> None:
        where(stage)
        (stage.root / folder).rename(stage.root.parent / "away")
        stage.write(folder, "")

    return stand


def put_back(folder: str) -> Callable[[Stage], object]:
    def put(stage: Stage) -> None:
        (stage.root / folder).unlink()
        (stage.root.parent / "away").rename(stage.root / folder)

    return put


@dataclass(frozen=True)
class Row:
    """What is refused where, and what is called then; `says` where no tool or argument of that is named by the refusal."""

    key: str
    where: Callable[[Stage], object]
    bad: Call
    good: Call
    says: str = ""
    between: tuple[Call | Callable[[Stage], object], ...] = field(default=())

    def __str__(self) -> str:
        return self.key


REASON = "It belongs to the task."
ADD = asks("add_explored_files", paths=["pkg/deep.py"], reason=REASON)
SYMBOLS = asks("get_symbols", path="app.py")
LOOKS = (asks("search_text", patterns="def main"), SYMBOLS, asks("get_symbols", path="pkg/deep.py"))
PLAN = asks("submit_phase", data=plan())
STATUS = asks("get_session_status")
READ = asks("submit_phase", data={"documents_reviewed": ["README.md"], "summary": "Read."})
ANEW = asks("start_session", query="x", flags={"clean": True})
OURS, SESSIONS = ".git/code-intel", ".code-intel/sessions"
DO = "DO keep main small and return a number.\nDON'T import anything from other packages.\nDO test every function. " * 4

ROWS = (
    Row("generic.argument_invalid", edited, asks("review_changes", path="nowhere"), asks("review_changes", path="app.py")),
    Row("generic.arguments_invalid", planned, asks("search_text", patterns=5), asks("search_text", patterns="main")),
    Row("generic.payload_not_in_data", ready, asks("submit_phase"), PLAN),
    Row("generic.path_outside_project", ready, asks("get_symbols", path="/etc/passwd"), SYMBOLS),
    Row("generic.path_not_found", ready, asks("get_symbols", path="ap.py"), asks("search_files", pattern="app")),
    Row("generic.not_a_file", ready, asks("get_symbols", path="pkg"), asks("search_files", pattern="pkg/*")),
    Row("generic.path_closed", ready, asks("get_symbols", path=".code-intel/config.json"), SYMBOLS, "Read it yourself", (lambda stage: stage.read(".code-intel/config.json"),)),
    Row("generic.program_missing", without_ripgrep, asks("search_text", patterns="main"), SYMBOLS, "`code-intel-server doctor`; use another lookup", (doctor,)),
    Row("generic.checkpoint_not_saved", in_its_place(SESSIONS, begun), READ, READ, f"{SESSIONS}, then submit again", (put_back(SESSIONS),)),
    Row("generic.state_folder_unsafe", in_its_place(OURS, ready), PLAN, PLAN, "replace it with a real folder", (put_back(OURS),)),
    Row("generic.pattern_invalid", ready, asks("search_text", patterns="main("), asks("search_text", patterns="main(", regex=False)),
    Row("generic.pattern_not_one_line", ready, asks("search_text", patterns="def main():\n    return 1"), asks("search_text", patterns=["def main", "return 1"])),
    Row("query.no_pattern", ready, asks("search_text", patterns=""), asks("search_text", patterns="main"), "No pattern"),
    Row("query.no_file_path", ready, asks("get_symbols", path=""), SYMBOLS),
    Row("query.no_symbol", ready, asks("find_definitions"), asks("find_definitions", symbol="main")),
    Row("query.no_name_at", ready, asks("find_definitions", at="app.py:3"), asks("find_definitions", symbol="main")),
    Row("query.unknown_qualifier", ready, asks("find_references", symbol="Nobody.main"), asks("find_references", symbol="main"), "bare name"),
    Row("semantic_search.empty_query", searching, asks("semantic_search", query=" "), asks("semantic_search", query="returns one")),
    Row("fetch_chunk_detail.unknown_chunk", searching, asks("fetch_chunk_detail", chunk_id="none"), asks("semantic_search", query="returns one"), "Search again"),
    Row("start_session.query_required", nothing, asks("start_session", query=" "), asks("start_session", query="Make main return two")),
    Row("start_session.flags_unknown", nothing, asks("start_session", query="x", flags={"quik": True}), asks("start_session", query="x", flags={"quick": True})),
    Row("start_session.flags_beside", nothing, asks("start_session", query="x", quick=True), asks("start_session", query="x", flags={"quick": True})),
    Row("start_session.invalid_flags", nothing, asks("start_session", query="x", flags={"quick": True, "fast": True}), asks("start_session", query="x", flags={"quick": True}), "leave one out"),
    Row("start_session.session_active", begun, asks("start_session", query="x"), STATUS),
    Row("get_session_status.checkpoint_not_found", nothing, asks("get_session_status", session_id="20200101_000000"), asks("start_session", query="x")),
    Row("get_session_status.checkpoint_version", of_a_newer_version, STATUS, asks("start_session", query="x"), "start a new session"),
    Row("get_session_status.nothing_else", begun, asks("get_session_status", discard_active=True), READ, "do what the instruction says"),
    Row("check_write_target.write_blocked", planned, asks("check_write_target", path="pkg/deep.py"), asks("check_write_target", path="pkg/deep.py"), "add_explored_files", (ADD,)),
    Row("check_write_target.write_plan_first", ready, asks("check_write_target", path="app.py"), asks("check_write_target", path="app.py"), "Submit the plan first", (PLAN,)),
    Row("check_write_target.write_phase_blocked", begun, asks("check_write_target", path="app.py"), READ, "Go on with the current phase"),
    Row("check_write_target.outside_project", planned, asks("check_write_target", path="/etc/passwd"), asks("check_write_target", path="app.py"), "outside of the project"),
    Row("add_explored_files.phase_mismatch", exploring, ADD, asks("submit_phase", data={**exploration("app.py", "pkg/deep.py"), "summary": "Seen."}), "named in explored_files", LOOKS),
    Row("add_explored_files.no_files", planned, asks("add_explored_files", paths=[], reason=REASON), ADD, "No files provided"),
    Row("add_explored_files.folder_named", planned, asks("add_explored_files", paths=["pkg"], reason=REASON), ADD, "Name the files below it"),
    Row("add_explored_files.reason_required", planned, asks("add_explored_files", paths=["pkg/deep.py"], reason="x"), ADD),
    Row("review_changes.phase_blocked", begun, asks("review_changes"), READ, "from step 13"),
    Row("review_changes.task_branch_not_enabled", without_git, asks("review_changes"), asks("submit_phase", data=report()), "", (lambda stage: stage.edit(), lambda stage: stage.read("app.py"))),
    Row("tree.snapshot_lost", without_memory, asks("review_changes"), ANEW, "with the flag clean"),
    Row("record_outcome.unknown_session", finished, asks("record_outcome", outcome="success", session_id="20200101_000000"), asks("record_outcome", outcome="success"), "leave session_id out"),
    Row("update_context.summary_required", ready, asks("update_context", summary="short"), asks("update_context", summary=DO)),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_what_a_tool_refuses_is_done_as_it_says(stage: Stage, row: Row) -> None:
    row.where(stage)
    tool, arguments = row.bad
    refused = stage.call(tool, **arguments)
    [refused] = refused.get("results", [refused])
    message = str(refused.get("message") or refused["reason"])
    template = re.sub(r"\\{\w+\\}", ".*", re.escape(MESSAGES[f"tool_errors.{row.key}"].text))
    assert re.fullmatch(template, message, re.DOTALL), message
    said = f"{message} {stage.call(tool, **arguments).get('remedy', '')}"
    then, others = row.good
    other = {then} - {tool} or {name for name in others if others[name] != arguments.get(name)}
    assert row.says in said if row.says else any(name in said for name in other), said
    for step in (*row.between, row.good):
        if not isinstance(step, tuple):
            step(stage)
            continue
        answer = stage.call(step[0], **step[1])
        assert answer.get("success", True) and answer.get("allowed", True) and answer.get("results", True), answer


def test_a_file_in_the_way_of_what_comes_back_from_the_trash_is_moved_away_as_the_refusal_says(stage: Stage) -> None:
    stage.verified("app.py", "lib.py")
    stage.write("lib.py", "LIMIT = 12\n")
    discarded = {"path": "lib.py", "decision": "discard", "reason": "It is not needed after all."}
    stage.accepted(**stage.commit(discarded))
    stage.write("lib.py", "LIMIT = 13\n")
    [entry] = re.findall(r"^(\S+-discard)", command(stage, "trash", "list"), re.MULTILINE)
    assert "lib.py. Move them away first" in " ".join(command(stage, "trash", "restore", entry).split())
    (stage.root / "lib.py").rename(stage.root.parent / "lib.py")
    assert "1 file(s) are back" in command(stage, "trash", "restore", entry)
    assert stage.read("lib.py") == "LIMIT = 12\n"
