"""The hook refuses what check_write_target would refuse, stays silent without a session, and is quick (SPEC 12)."""

import io
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from code_intel_server.cli import abandon, hook
from code_intel_server.cli.status.view import read_view
from code_intel_server.common.own_folder import CALLER_NOTE
from code_intel_server.flow.phases import Phase, Substep
from code_intel_server.flow.session import Trees
from code_intel_server.tools.current_project import CurrentProject
from code_intel_server.tools.services import ProjectServices
from code_intel_server.workspace.state.signature import signed, verified
from code_intel_server.workspace.values import TaskBranch
from tests.cli.helpers import Said, project, session, state
from tests.e2e.driver import git

MODULES_AT_MOST = 100
FORBIDDEN = {
    "pydantic", "mcp", "yaml", "rich", "git", "anyio", "asyncio", "subprocess", "typing", "pathlib", "argparse",
}  # fmt: skip


class Asked:
    """What a hook call left: exit status and what it said."""

    def __init__(self, status: int, out: str, err: str) -> None:
        self.status = status
        self.out = out
        self.err = err


Ask = Callable[..., Asked]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return project(tmp_path / "my pröject", **{"pkg/a.py": "x = 1\n"})


@pytest.fixture
def ask(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said) -> "Ask":
    def asked(event: object, raw: bytes | None = None, arguments: Sequence[str] = ()) -> Asked:
        data = raw if raw is not None else json.dumps(event).encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        capsys.readouterr()
        status = hook.main([*arguments])
        said = capsys.readouterr()
        return Asked(status, said.out, said.err)

    return asked


@contextmanager
def left(root: Path, *, branch: str = "", **more: Any) -> Iterator[ProjectServices]:
    """A session whose server was killed, HEAD as it left it: on its task branch, or on main."""
    tip = git(root, "rev-parse", "main").strip()
    if branch:
        git(root, "checkout", "-q", "-b", branch)
        more["task_branch"] = TaskBranch(branch, "main", tip)
    with session(root, state(base="main", tip=tip, **more), live=False) as services:
        yield services


def started(root: Path, source: str) -> dict[str, object]:
    return {"hook_event_name": "SessionStart", "source": source, "cwd": str(root)}


def write(root: Path, path: str, tool: str = "Write", **more: object) -> dict[str, object]:
    name = "notebook_path" if tool == "NotebookEdit" else "file_path"
    return {"hook_event_name": "PreToolUse", "tool_name": tool, "cwd": str(root), "tool_input": {name: path}, **more}


@pytest.mark.parametrize("tool", ["Write", "Edit", "NotebookEdit"])
def test_only_explored_files_may_be_written(root: Path, ask: Ask, tool: str) -> None:
    with session(root, state()):
        assert ask(write(root, str(root / "app.py"), tool)).status == 0
        assert ask(write(root, "app.py", tool)).status == 0
        refused = ask(write(root, str(root / "secrets/vault.py"), tool))
    assert refused.status == 2
    assert 'add_explored_files(["secrets/vault.py"]' in refused.err


def test_added_files_and_new_files_beside_explored_ones_may_be_written(root: Path, ask: Ask) -> None:
    kept = state(explored_files=["pkg/a.py"], added_files={"secrets/vault.py": "the task changes it"})
    with session(root, kept):
        assert ask(write(root, "secrets/vault.py")).status == 0
        assert ask(write(root, "pkg/new.py")).status == 0
        assert ask(write(root, "elsewhere/new.py")).status == 2


def test_a_new_file_beside_one_that_nothing_has_shown_may_be_written(root: Path, ask: Ask) -> None:
    """As `check_write_target` says."""
    with session(root, state(explored_files=["app.py"], unseen_files=["secrets/vault.py"])):
        assert ask(write(root, "secrets/new.py")).status == 0
        assert ask(write(root, "secrets/vault.py")).status == 2


def test_a_file_made_during_the_session_may_be_written_again(root: Path, ask: Ask) -> None:
    (root / "pkg/made.py").write_text("y = 1\n")
    before, after = "2026-02-01T12:34:56+00:00", "2999-01-01T00:00:00+00:00"
    with session(root, state(explored_files=["pkg/a.py"], started_at=before)):
        assert ask(write(root, "pkg/made.py")).status == 0
    with session(root, state(explored_files=["pkg/a.py"], started_at=after)):
        assert ask(write(root, "pkg/made.py")).status == 2


def test_in_a_copy_of_the_project_what_was_there_before_the_session_is_not_taken_for_new(
    root: Path, ask: Ask, tmp_path: Path
) -> None:
    """All files of a copy were made just now, and the session that it holds began before."""
    key, began = root / ".git/code-intel/key", int(time.time()) - 60
    with left(root, explored_files=["pkg/a.py"], started_at=datetime.fromtimestamp(began, UTC).isoformat()):
        (root / "pkg/b.py").write_text("y = 1\n")
        os.utime(root / "pkg/b.py", (began - 60, began - 60))
        assert key.is_file()
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-a", str(root), str(copy)], check=True)
    assert ask(write(copy, "pkg/new.py")).status == 0
    refused = ask(write(copy, "pkg/b.py"))
    assert refused.status == 2 and "it has not explored this file" in refused.err


@pytest.mark.parametrize(
    ("tool", "event", "given"),
    [
        ("Read", "PostToolUse", {"file_path": "secrets/vault.py"}),
        ("Grep", "PostToolUse", {"pattern": "def", "path": "secrets/vault.py", "output_mode": "content"}),
        ("Bash", "PreToolUse", {"command": "sed -n 1,20p secrets/vault.py app.py nothing.py /etc/passwd | head"}),
        ("Bash", "PostToolUse", {"command": "ls; grep -n 'def|class' secrets/vault.py"}),
        ("Bash", "PostToolUse", {"command": "sed -n '1,5p;10,20p' secrets/vault.py"}),
        ("Bash", "PostToolUse", {"command": "cat 2>/dev/null secrets/vault.py\necho done"}),
    ],
)
def test_what_the_client_has_read_by_itself_need_not_be_looked_at_again(
    root: Path, ask: Ask, tool: str, event: str, given: dict[str, str]
) -> None:
    with session(root, state(unseen_files=["secrets/vault.py"])) as services:
        assert ask(write(root, "secrets/vault.py")).status == 2
        read = {"hook_event_name": event, "tool_name": tool, "cwd": str(root), "tool_input": given}
        assert ask(read).status == 0
        assert ask(write(root, "secrets/vault.py")).status == 0
        note = services.project.reads_file(state().session_id)
        assert "passwd" not in note.read_text() and "nothing" not in note.read_text()


@pytest.mark.parametrize(
    ("tool", "given", "response"),
    [
        ("Bash", {"command": "cat /dev/null # secrets/vault.py"}, {}),
        ("Bash", {"command": "cat app.py > secrets/vault.py; echo secrets/vault.py"}, {}),
        ("Bash", {"command": "cd pkg && cat ../secrets/vault.py secrets/vault.py"}, {}),
        ("Bash", {"command": "grep -c def secrets/vault.py; rg --files secrets/vault.py"}, {}),
        ("Bash", {"command": "cat 'secrets/vault.py"}, {}),
        ("Read", {"file_path": "secrets/vault.py"}, {"is_error": True}),
        ("Grep", {"pattern": "def", "path": "secrets/vault.py"}, {}),
        ("Grep", {"pattern": "def", "path": "secrets", "output_mode": "content"}, {}),
    ],
)
def test_what_was_named_and_not_shown_is_not_looked_at(
    root: Path, ask: Ask, tool: str, given: dict[str, str], response: dict[str, bool]
) -> None:
    with session(root, state(unseen_files=["secrets/vault.py"])):
        read = {"hook_event_name": "PostToolUse", "tool_name": tool, "cwd": str(root), "tool_input": given}
        assert ask(read | {"tool_response": response}).status == 0
        assert ask(write(root, "secrets/vault.py")).status == 2


def test_a_read_is_noted_through_no_link(root: Path, ask: Ask, tmp_path: Path) -> None:
    with session(root, state(unseen_files=["secrets/vault.py"])) as services:
        services.project.reads_file(state().session_id).symlink_to(tmp_path / "elsewhere")
        tool_input = {"file_path": "secrets/vault.py"}
        event = {"hook_event_name": "PostToolUse", "tool_name": "Read", "cwd": str(root), "tool_input": tool_input}
        assert ask(event).status == 0
        assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("phase", ["EXPLORATION", "POST_IMPL_VERIFY", "QUALITY_REVIEW"])
def test_nothing_is_written_outside_ready(root: Path, ask: Ask, phase: str) -> None:
    with session(root, state(phase=Phase(phase), substep=None)):
        refused = ask(write(root, "app.py"))
    assert refused.status == 2
    assert phase in refused.err


def test_nothing_is_written_before_a_plan_is_accepted_be_it_the_first_or_one_after_a_setback(
    root: Path, ask: Ask
) -> None:
    with session(root, state(substep=Substep.PLAN, trees=Trees())):
        assert ask(write(root, "app.py")).status == 2
    with session(root, state(substep=Substep.PLAN, trees=Trees(ready="a"))):
        assert ask(write(root, "app.py")).status == 2
    with session(root, state(substep=Substep.COMPLETE)):
        assert ask(write(root, "app.py")).status == 0


def test_without_a_session_everything_passes_silently(root: Path, ask: Ask) -> None:
    for event in (
        write(root, "secrets/vault.py"),
        started(root, "resume"),
        {"hook_event_name": "Stop", "cwd": str(root)},
    ):
        passed = ask(event)
        assert (passed.status, passed.out, passed.err) == (0, "", "")


class TestAfterAKill:
    """A checkpoint that no process leads is a session all the same, for as long as it can be restored."""

    def test_in_step_8_nothing_is_written_and_both_ways_on_are_named(self, root: Path, ask: Ask) -> None:
        with left(root, phase=Phase.Q2, substep=None):
            refused = ask(write(root, "app.py"))
            read = ask({**write(root, "app.py"), "tool_name": "Read"})
        assert refused.status == 2
        assert refused.err == (
            'code-intel: app.py may not be written: session 20260201_123456 ("Say goodbye too.") was interrupted in step 8 of 19 '
            "(Q2), and files are written in steps 13 and 14 only. Ask the user: go on with it (get_session_status restores it), "
            "or give it up (`code-intel-server abandon --yes`; its work is kept in the trash).\n"
        )
        assert (read.status, read.err) == (0, "")

    def test_in_step_13_what_it_explored_is_written_and_nothing_else(
        self, root: Path, ask: Ask, tmp_path: Path
    ) -> None:
        with left(root, branch="llm_task_20260201_123456"):
            assert ask(write(root, "app.py")).status == 0
            assert ask(write(root, str(tmp_path / "notes.txt"))).status == 0
            refused = ask(write(root, "secrets/vault.py"))
        assert refused.status == 2
        assert (
            "was interrupted in step 13 of 19 (READY), and it has not explored this file. Ask the user" in refused.err
        )

    @pytest.mark.parametrize("source", ["startup", "resume", "clear", "compact"])
    def test_a_conversation_is_told_of_it_and_of_both_ways_on(self, root: Path, ask: Ask, source: str) -> None:
        with left(root, phase=Phase.Q2, substep=None):
            told = ask(started(root, source))
        assert told.status == 0
        assert "interrupted in this project: 20260201_123456, step 8 of 19, phase Q2" in told.out
        assert "get_session_status" in told.out and "code-intel-server abandon --yes" in told.out
        assert "Until one of the two has happened" in told.out

    def test_the_end_of_a_turn_is_not_held(self, root: Path, ask: Ask) -> None:
        with left(root):
            assert ask({"hook_event_name": "Stop", "cwd": str(root)}).out == ""

    @pytest.mark.parametrize("branch", ["", "llm_task_20260201_123456"])
    def test_who_has_gone_on_to_other_work_writes_and_is_told_that_it_waits(
        self, root: Path, ask: Ask, branch: str
    ) -> None:
        with left(root, branch=branch):
            git(root, "checkout", "-q", "main")
            git(root, "commit", "-q", "--allow-empty", "-m", "Something else")
            assert ask(write(root, "secrets/vault.py")).status == 0
            told = ask(started(root, "startup"))
        assert "step 13 of 19" in told.out
        assert "Until one of the two" not in told.out

    def test_a_branch_whose_ref_is_packed_is_found(self, root: Path, ask: Ask) -> None:
        with left(root, branch="llm_task_20260201_123456"):
            git(root, "pack-refs", "--all")
            assert ask(write(root, "secrets/vault.py")).status == 2
        with left(root):
            git(root, "checkout", "-q", "main")
            assert ask(write(root, "secrets/vault.py")).status == 2

    def test_one_whose_branch_is_gone_counts_no_more(self, root: Path, ask: Ask) -> None:
        with left(root, branch="llm_task_20260201_123456"):
            git(root, "update-ref", "-d", "refs/heads/llm_task_20260201_123456")  # HEAD names it still
            assert ask(write(root, "secrets/vault.py")).status == 0
            assert ask(started(root, "resume")).out == ""

    def test_a_damaged_a_foreign_and_a_newer_checkpoint_hold_nobody_up(self, root: Path, ask: Ask) -> None:
        with left(root) as services:
            file = next((root / ".code-intel/sessions").glob("*.json"))
            whole = file.read_bytes()
            newer = verified(services.key, whole).replace(b'"schema_version": 1', b'"schema_version": 9')
            for data in (whole[:-9], b"", b"[]", signed(b"x" * 32, whole), signed(services.key, newer[1:])):
                file.write_bytes(data)
                assert ask(write(root, "secrets/vault.py")).status == 0
                assert ask(started(root, "resume")).out == ""
            file.write_bytes(whole)
            assert ask(write(root, "secrets/vault.py")).status == 2
            (services.private / "key").unlink()
            assert ask(write(root, "secrets/vault.py")).status == 0

    def test_the_generation_before_a_torn_one_counts(self, root: Path, ask: Ask) -> None:
        with left(root) as services:
            services.store.save("20260201_123456", services.store.load("20260201_123456").body)
            file = root / ".code-intel/sessions/20260201_123456.json"
            file.write_bytes(file.read_bytes()[:-9])
            assert ask(write(root, "secrets/vault.py")).status == 2

    def test_of_several_the_one_whose_place_it_is_guards(self, root: Path, ask: Ask) -> None:
        with left(root), left(root, session_id="20260202_123456", branch="llm_task_20260202_123456"):
            assert "20260202_123456" in ask(write(root, "secrets/vault.py")).err
            git(root, "checkout", "-q", "main")
            assert "20260201_123456" in ask(write(root, "secrets/vault.py")).err
            assert "20260202_123456" in ask(started(root, "startup")).out

    def test_its_own_failure_refuses_with_the_reason_and_the_ways_on(self, root: Path, ask: Ask) -> None:
        with left(root):
            refused = ask(write(root, "app.py", tool_input={"something": "else"}))
        assert refused.status == 2
        assert "cannot be judged" in refused.err and "abandon --yes" in refused.err

    def test_abandoned_it_is_forgotten(self, root: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
        current = CurrentProject(root)
        current.take_up(".").start("Change it", "MODIFY", {})
        current.services.close()
        monkeypatch.chdir(root)
        assert ask(write(root, "secrets/vault.py")).status == 2
        assert abandon.main(["--yes"]) == 0
        assert ask(write(root, "secrets/vault.py")).status == 0

    def test_in_a_worktree_key_and_refs_are_those_of_the_repository(self, root: Path, ask: Ask, tmp_path: Path) -> None:
        second = tmp_path / "second"
        git(root, "worktree", "add", "-q", str(second))
        tip = git(second, "rev-parse", "HEAD").strip()
        with session(second, state(base="second", tip=tip), live=False):
            assert ask(write(second, "secrets/vault.py")).status == 2
            assert ask(write(root, "secrets/vault.py")).status == 0
            git(second, "commit", "-q", "--allow-empty", "-m", "Something else")
            assert ask(write(second, "secrets/vault.py")).status == 0


def test_before_start_session_the_hook_notes_that_it_runs_and_whether_files_may_be_written(
    root: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / ".code-intel").mkdir()
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ATTENDED", "0")
    event = {"hook_event_name": "PreToolUse", "tool_name": "mcp__code-intel__start_session", "cwd": str(root)}
    assert ask({**event, "permission_mode": "default", "session_id": "a talk"}).status == 0
    note = root / ".git" / "code-intel" / CALLER_NOTE
    assert json.loads(note.read_text()) == {
        "mode": "default",
        "attended": False,
        "writes": False,
        "conversation": "a talk",
    }
    with left(root):
        assert ask(event, arguments=["--allow-writes"]).status == 0
    assert json.loads(note.read_text())["writes"] is True


class TestAllowWrites:
    """With --allow-writes Claude Code need not ask its user about what the running session may write."""

    def test_what_the_session_may_write_is_allowed(self, root: Path, ask: Ask) -> None:
        with session(root, state()):
            allowed = ask(write(root, "app.py"), arguments=["--allow-writes"])
            assert json.loads(allowed.out)["hookSpecificOutput"]["permissionDecision"] == "allow"
            assert ask(write(root, "app.py")).out == ""
            assert ask(write(root, "secrets/vault.py"), arguments=["--allow-writes"]).status == 2

    def test_outside_the_project_and_for_what_rules_the_client_the_user_is_asked(
        self, root: Path, ask: Ask, tmp_path: Path
    ) -> None:
        own = [".claude/settings.json", ".mcp.json", ".code-intel/config.json", ".git/hooks/pre-commit"]
        with session(root, state(explored_files=own)):
            for path in (str(tmp_path / "notes.txt"), *own):
                passed = ask(write(root, path), arguments=["--allow-writes"])
                assert (passed.status, passed.out) == (0, ""), path

    def test_without_a_live_session_the_user_is_asked(self, root: Path, ask: Ask) -> None:
        assert ask(write(root, "app.py"), arguments=["--allow-writes"]).out == ""
        with left(root):
            assert ask(write(root, "app.py"), arguments=["--allow-writes"]).out == ""


def test_paths_outside_the_project_and_in_gits_folder_are_not_judged(root: Path, ask: Ask, tmp_path: Path) -> None:
    with session(root, state()):
        assert ask(write(root, str(tmp_path / "notes.txt"))).status == 0
        assert ask(write(root, "../other/x.py")).status == 0


def test_a_link_is_judged_by_where_it_leads(root: Path, ask: Ask) -> None:
    (root / "alias.py").symlink_to("secrets/vault.py")
    with session(root, state(explored_files=["alias.py"])):
        assert ask(write(root, "alias.py")).status == 2


PATCH = """*** Begin Patch
*** Update File: app.py
@@
-x
+y
*** Add File: secrets/new.py
+z
*** End Patch
"""


@pytest.mark.parametrize(
    "given",
    [{"command": PATCH}, {"command": ["apply_patch", PATCH]}, {"input": PATCH}, {"patch": PATCH, "input": PATCH}],
)
def test_every_file_of_a_patch_is_judged(root: Path, ask: Ask, given: object) -> None:
    event = {"hook_event_name": "PreToolUse", "tool_name": "apply_patch", "cwd": str(root), "tool_input": given}
    with session(root, state(explored_files=["app.py"])):
        refused = ask(event)
    assert refused.status == 2
    assert "secrets/new.py" in refused.err


def test_a_move_is_judged_by_its_target_too() -> None:
    text = "*** Begin Patch\n*** Update File: a.py\n*** Move to: b/c.py\n@@\n*** Delete File: d e.py\n*** End Patch"
    event: hook.Fields = {"tool_name": "apply_patch", "tool_input": {"command": text}}
    assert hook.targets(event) == ["a.py", "b/c.py", "d e.py"]


def test_a_shell_command_is_judged_only_where_it_applies_a_patch(root: Path, ask: Ask) -> None:
    shell = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "cwd": str(root)}
    with session(root, state(explored_files=["app.py"])):
        assert ask({**shell, "tool_input": {"command": "make test"}}).status == 0
        assert ask({**shell, "tool_input": {"command": f"apply_patch <<'X'\n{PATCH}X"}}).status == 2


def test_its_own_failure_during_a_session_refuses_with_the_reason(root: Path, ask: Ask) -> None:
    with session(root, state()):
        checkpoint = next((root / ".code-intel/sessions").glob("*.json"))
        whole = checkpoint.read_bytes()
        checkpoint.write_bytes(whole[: len(whole) // 2])
        torn = ask(write(root, "app.py"))
        assert torn.status == 2
        assert "cannot be judged" in torn.err
        checkpoint.write_bytes(whole)
        assert ask(write(root, "app.py", tool_input={"something": "else"})).status == 2
        checkpoint.unlink()
        assert ask(write(root, "app.py")).status == 2


def test_words_that_are_no_event_are_refused_only_during_a_session(
    root: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    for raw in (b"", b"nonsense", b"[]", b"\xff"):
        assert ask(None, raw).status == 0
    with session(root, state()):
        for raw in (b"", b"nonsense", b"[]", b"\xff"):
            assert ask(None, raw).status == 2


@pytest.mark.parametrize("source", ["compact", "resume"])
def test_the_agent_is_told_where_it_stands_and_the_server_learns_of_a_compaction(
    root: Path, ask: Ask, source: str
) -> None:
    kept = state()
    with session(root, kept):
        told = ask({"hook_event_name": "SessionStart", "source": source, "cwd": str(root / "secrets")})
    assert told.status == 0
    assert "step 13 of 19, phase READY (impl)" in told.out
    assert "get_session_status" in told.out
    assert (root / ".code-intel/sessions" / f"{kept.session_id}.compacted").is_file() is (source == "compact")


@pytest.mark.parametrize("name", ["sessions", "sessions/{}.compacted"])
def test_the_note_of_a_compaction_is_written_through_no_link(root: Path, ask: Ask, tmp_path: Path, name: str) -> None:
    """An agent that is confined to the project could aim one at any file of the user's: the hook is not confined."""
    theirs = tmp_path / "theirs"
    kept = state()
    with session(root, kept):
        place = root / ".code-intel" / name.format(kept.session_id)
        if name == "sessions":
            place.rename(theirs)
        else:
            theirs.write_text("the user's own\n")
        place.symlink_to(theirs)
        told = ask({"hook_event_name": "SessionStart", "source": "compact", "cwd": str(root)})
    assert "phase READY" in told.out
    assert not [*theirs.glob("*.compacted")] if name == "sessions" else theirs.read_text() == "the user's own\n"


def test_before_the_first_submit_too_the_agent_is_told_what_to_do(root: Path, ask: Ask) -> None:
    current = CurrentProject(root)
    try:
        instruction = str(current.take_up(".").start("Change it", "MODIFY", {})["instruction"])
        told = ask({"hook_event_name": "SessionStart", "source": "compact", "cwd": str(root)})
        assert instruction in told.out
        assert "step 3 of 19, phase DOCUMENT_RESEARCH." in told.out
        assert read_view(root).sessions[0].instruction == instruction
        answer = current.sessions.submit({"summary": "Read.", "tools_used": [], "documents_reviewed": ["README.md"]})
        assert answer["success"], answer
        told = ask({"hook_event_name": "SessionStart", "source": "compact", "cwd": str(root)})
        assert str(answer["instruction"]) in told.out
    finally:
        current.services.close()


def test_stopping_in_the_middle_is_answered_once(root: Path, ask: Ask) -> None:
    with session(root, state()):
        first = ask({"hook_event_name": "Stop", "cwd": str(root), "stop_hook_active": False})
        again = ask({"hook_event_name": "Stop", "cwd": str(root), "stop_hook_active": True})
        other = ask({"hook_event_name": "Notification", "cwd": str(root)})
    assert json.loads(first.out)["decision"] == "block"
    assert (again.status, again.out, other.status) == (0, "", 0)


def test_a_worktree_has_its_own_lock(root: Path, ask: Ask, tmp_path: Path) -> None:
    git(root, "worktree", "add", "-q", str(tmp_path / "second"))
    second = tmp_path / "second"
    with session(second, state()):
        assert ask(write(second, "secrets/vault.py")).status == 2
        assert ask(write(root, "secrets/vault.py")).status == 0


class TestWorktreeOfASession:
    @pytest.fixture
    def place(self, root: Path) -> Path:
        found = root / ".code-intel/worktrees/20260201_123456"
        git(root, "worktree", "add", "-q", "-b", "llm_task_20260201_123456", str(found))
        return found

    def test_its_files_are_judged_by_it_wherever_the_client_is(self, root: Path, place: Path, ask: Ask) -> None:
        with session(place, state(conversation="mine")):
            for cwd, who in itertools.product((root, place), ("mine", "other")):
                assert ask(write(cwd, str(place / "app.py"), session_id=who)).status == 0
                assert ask(write(cwd, str(place / "secrets/vault.py"), session_id=who)).status == 2

    def test_its_conversation_does_not_write_into_the_users_folder(self, root: Path, place: Path, ask: Ask) -> None:
        with session(place, state(conversation="mine")):
            for cwd, path in ((root, "app.py"), (root, str(root / "app.py")), (place, str(root / "app.py"))):
                refused = ask(write(cwd, path, session_id="mine"))
                assert refused.status == 2 and f"Write {place}/app.py" in refused.err
            assert ask(write(root, "secrets/vault.py", session_id="other")).status == 0

    def test_its_conversation_is_told_where_it_works_and_held(self, root: Path, place: Path, ask: Ask) -> None:
        stop = {"hook_event_name": "Stop", "cwd": str(root)}
        with session(place, state(conversation="mine")):
            assert str(place) in ask(started(root, "compact") | {"session_id": "mine"}).out
            assert ask(started(root, "compact") | {"session_id": "other"}).out == ""
            assert json.loads(ask(stop | {"session_id": "mine"}).out)["decision"] == "block"
            assert ask(stop | {"session_id": "other"}).out == ""
        assert [*(place / ".code-intel/sessions").glob("*.compacted")]

    def test_restored_it_is_told_to_the_only_conversation_that_there_can_be(
        self, root: Path, place: Path, ask: Ask
    ) -> None:
        with session(place, state()):
            assert str(place) in ask(started(root, "resume") | {"session_id": "any"}).out
            assert ask(write(root, "secrets/vault.py", session_id="any")).status == 0

    def test_interrupted_it_is_told_of_and_guards_its_own_files_alone(self, root: Path, place: Path, ask: Ask) -> None:
        tip = git(root, "rev-parse", "main").strip()
        branch = TaskBranch("llm_task_20260201_123456", "main", tip)
        with session(place, state(base="main", tip=tip, task_branch=branch), live=False):
            told = ask(started(root, "startup")).out
            assert "was interrupted" in told and str(place) in told
            assert ask(write(root, "secrets/vault.py")).status == 0
            assert ask(write(root, str(place / "secrets/vault.py"))).status == 2


def test_a_neighbours_session_in_the_same_worktree_is_not_ours(root: Path, ask: Ask) -> None:
    for name in ("one", "two"):
        (root / name / ".code-intel").mkdir(parents=True)
    with session(root / "one", state()):
        assert ask(write(root / "one", "deep/b.py")).status == 2
        passed = ask(write(root / "two", "deep/b.py"))
        assert (passed.status, passed.out, passed.err) == (0, "", "")
        assert read_view(root / "one").session() is not None
        assert read_view(root / "one").owner is not None
        assert read_view(root / "two").owner is None


@pytest.mark.parametrize("live", [True, False], ids=["led", "interrupted"])
def test_a_project_without_git_is_guarded_too(tmp_path: Path, ask: Ask, *, live: bool) -> None:
    plain = tmp_path / "plain"
    (plain / "b").mkdir(parents=True)
    with session(plain, state(), live=live):
        assert ask(write(plain, "b/c.py")).status == 2


def test_it_imports_next_to_nothing() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "code_intel_server", "hook"]
    done = subprocess.run(command, input=b"{}", capture_output=True, check=True, env=_bare())
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines() if "|" in line}
    started = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "pass"], capture_output=True, check=True, env=_bare()
    )
    usual = {line.rpartition("|")[2].strip() for line in started.stderr.decode().splitlines() if "|" in line}
    added = {name for name in loaded - usual if not name.startswith("_")}
    assert not {name.split(".")[0] for name in added} & FORBIDDEN, sorted(added)
    assert len(added) < MODULES_AT_MOST, sorted(added)


@pytest.mark.full
def test_it_answers_within_a_hundred_milliseconds(root: Path) -> None:
    event = json.dumps(write(root, "app.py")).encode()

    def timed(command: list[str], given: bytes) -> float:
        began = time.perf_counter()
        subprocess.run(command, input=given, capture_output=True, check=True, env=_bare())
        return (time.perf_counter() - began) * 1000

    with session(root, state()):
        hooks = [timed([sys.executable, "-m", "code_intel_server", "hook"], event) for _ in range(200)]
    nothing = [timed([sys.executable, "-c", "pass"], b"") for _ in range(200)]
    assert statistics.median(hooks) <= 4 * statistics.median(nothing)
    # On a machine that is busy with other things an empty interpreter alone can take longer than the limit.
    p95, idle = statistics.quantiles(hooks, n=20)[-1], statistics.quantiles(nothing, n=20)[-1]
    assert p95 < max(100, 3 * idle), (p95, idle)


def _bare() -> dict[str, str]:
    """Without what a coverage run puts into children."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COV")}
