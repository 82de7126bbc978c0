"""People's commands: what they show, what they change, what they refuse (SPEC 12)."""

import contextlib
import json
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from code_intel_server import __main__
from code_intel_server.cli import abandon, doctor, find, init, resume, status, sync, trash, trust, waive
from code_intel_server.cli.doctor import clients as checkup_clients
from code_intel_server.cli.doctor import project as checkup_project
from code_intel_server.flow.tasks import ChecklistItem, ItemStatus, TaskModel, TaskStatus
from code_intel_server.tools.services import ProjectServices
from tests.cli.helpers import Said, parsed, project, session, state
from tests.e2e.driver import git


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = project(tmp_path / "repo", **{"pytest.ini": "[pytest]\n"})
    assert init.main([str(made), "--no-proof", "--no-index", "--yes"]) == 0
    monkeypatch.chdir(made)
    return made


def test_every_command_is_listed_and_explains_itself(capsys: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["code-intel-server"])
    assert __main__.main() == 0
    listed = capsys.readouterr().out
    for name in __main__.COMMANDS:
        assert f"  {name} " in listed
        if name == "hook":
            continue
        monkeypatch.setattr(sys, "argv", ["code-intel-server", name, "--help"])
        with pytest.raises(SystemExit) as ended:
            __main__.main()
        assert ended.value.code == 0
        assert "usage: code-intel-server" in capsys.readouterr().out


def test_an_unknown_command_and_the_version(capsys: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["code-intel-server", "dance"])
    assert __main__.main() == 2
    assert "no command 'dance'" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", ["code-intel-server", "--version"])
    assert __main__.main() == 0


# status


def test_status_draws_the_nineteen_steps_with_tasks_and_counters(root: Path, capsys: Said) -> None:
    items = (
        ChecklistItem(item="say it", status=ItemStatus.DONE, evidence="app.py:3"),
        ChecklistItem(item="test it", status=ItemStatus.SKIPPED, reason="there is a test"),
    )
    tasks = (
        TaskModel(id="t1", description="Say goodbye", status=TaskStatus.COMPLETED, checklist=items),
        TaskModel(id="t2", description="\x1b[31mRed", failure_count=2),
    )
    with session(root, state(tasks=tasks, verification_failure_count=2)):
        assert status.main([]) == 0
        drawn = capsys.readouterr().out
        assert status.main(["--json"]) == 0
        data = parsed(capsys.readouterr().out)
    assert "running" in drawn
    assert re.search(r"▶\s+13\s+Implementation\s+now: 1 of 2 tasks done", drawn)
    assert re.search(r"✓\s+5\s+Exploration", drawn)
    assert re.search(r"–\s+7\s+Semantic search\s+not needed", drawn)
    assert re.search(r"·\s+16\s+New approach\s+if needed", drawn)
    assert "2 failed verifications · 1 explored file" in drawn
    assert "app.py:3" in drawn
    assert "\x1b[31mRed" not in drawn
    assert len(data["session"]["steps"]) == 19
    assert data["session"]["live"] is True
    assert data["lock"]["session_id"] == "20260201_123456"


def test_status_without_a_session_says_so(root: Path, capsys: Said) -> None:
    assert status.main([]) == 0
    assert capsys.readouterr().out.startswith("no session is running")
    assert status.main(["--json"]) == 0
    assert parsed(capsys.readouterr().out)["session"] is None
    assert status.main(["--session", "20200101_000000"]) == 1
    assert status.main(["--project", "/nowhere/at/all"]) == 1


def test_status_names_a_checkpoint_that_is_not_obeyed(root: Path, capsys: Said) -> None:
    with session(root, state(), live=False):
        pass
    next((root / ".code-intel/sessions").glob("*.json")).write_text("{}")
    assert status.main([]) == 0
    assert "not obeyed: 20260201_123456.json" in capsys.readouterr().out
    assert doctor.main([]) in {0, 1}
    assert "checkpoint" in capsys.readouterr().out


# resume, abandon


def test_resume_names_what_was_interrupted_and_how_to_go_on(root: Path, capsys: Said) -> None:
    assert resume.main([]) == 1
    with session(root, state(), live=False):
        pass
    capsys.readouterr()
    assert resume.main([]) == 0
    assert "20260201_123456  step 13, Implementation: Say goodbye too." in capsys.readouterr().out
    assert resume.main(["--json"]) == 0
    assert parsed(capsys.readouterr().out)[0]["phase"] == "READY"


@pytest.mark.parametrize("age", ["-1", "-0.5", "nan", "inf", "x"])
def test_an_age_that_nothing_can_have_drops_nothing_from_the_trash(root: Path, capsys: Said, age: str) -> None:
    git(root, "branch", "llm_task_20200101_000000")
    assert abandon.main(["--yes"]) == 0
    with pytest.raises(SystemExit):
        trash.main(["purge", "--older-than", age, "--yes"])
    assert f"'{age}' is no number of days" in capsys.readouterr().err
    trash.main(["list"])
    assert "1 kept" in capsys.readouterr().out


def test_serve_for_a_project_that_is_not_there_says_so_and_makes_none(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "code_intel_server", "serve", "--project", str(tmp_path / "gone")]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"code-intel-server: {tmp_path / 'gone'} is no folder\n"
    assert not (tmp_path / "gone").exists()


def test_find_says_where_it_shows_only_the_first(root: Path, capsys: Said) -> None:
    (root / "many.py").write_text("TWICE = 1\n" * 3)
    find.main(["text", "TWICE", "--limit", "2"])
    assert "only the first 2 are shown: --limit shows more" in capsys.readouterr().out
    find.main(["text", "TWICE"])
    assert "only the first" not in capsys.readouterr().out


def test_abandon_archives_and_refuses_while_a_session_runs(root: Path, capsys: Said) -> None:
    git(root, "branch", "llm_task_20200101_000000")
    with session(root, state()):
        assert abandon.main(["--yes"]) == 1
        assert "a session is running" in capsys.readouterr().err
    assert abandon.main([]) == 1
    assert abandon.main(["--yes"]) == 0
    assert "llm_task_" not in git(root, "branch", "--list")
    assert not [*(root / ".code-intel/sessions").glob("*.json")]
    capsys.readouterr()
    assert trash.main(["list", "--json"]) == 0
    entry = parsed(capsys.readouterr().out)[0]
    assert entry["branch"] == "llm_task_20200101_000000"
    assert trash.main(["list"]) == 0
    assert trash.main(["restore", entry["entry"]]) == 0
    assert "llm_task_20200101_000000" in git(root, "branch", "--list")
    assert trash.main(["restore", "nothing/like-it"]) == 1
    assert trash.main(["purge", entry["entry"]]) == 1
    assert trash.main(["purge", "unknown", "--yes"]) == 1
    assert trash.main(["purge", entry["entry"], "--yes"]) == 0
    capsys.readouterr()
    assert trash.main(["list"]) == 0
    assert "the trash is empty" in capsys.readouterr().out


# trust, waive


def test_trust_is_for_the_file_as_it_is(root: Path, capsys: Said) -> None:
    assert trust.main(["--check"]) == 0
    config = root / ".code-intel/config.json"
    config.write_text(config.read_text() + "\n")
    assert trust.main(["--check"]) == 1
    assert trust.main([]) == 1
    assert "python3 -m pytest -q" in capsys.readouterr().out
    assert trust.main(["--yes"]) == 0
    assert trust.main(["--check"]) == 0
    assert trust.main(["--revoke"]) == 0
    assert trust.main(["--check"]) == 1
    config.write_text('{"resolution": {"language_servers": {"python": ["pyright-langserver", "--stdio"]}}}')
    assert trust.main(["--check"]) == 1
    assert trust.main([]) == 1
    assert "pyright-langserver --stdio   (language server for python" in capsys.readouterr().out
    config.unlink()
    assert trust.main(["--yes"]) == 1


def test_waive_takes_a_command_of_one_session_out(root: Path, capsys: Said) -> None:
    assert waive.main(["1", "--reason", "the service is down"]) == 1
    with session(root, state(), live=False):
        pass
    assert waive.main([]) == 0
    assert "1  python3 -m pytest -q" in capsys.readouterr().out
    assert waive.main(["make test", "--reason", "the service is down"]) == 1
    for unknown in ("'", "²", "2"):
        assert waive.main([unknown, "--reason", "the service is down"]) == 1
    assert waive.main(["1", "--reason", "no"]) == 1
    assert waive.main(["python3 -m pytest -q", "--reason", "the service is down"]) == 0
    capsys.readouterr()
    assert waive.main([]) == 0
    assert "waived: the service is down" in capsys.readouterr().out


# find, sync


@pytest.mark.parametrize("rows", ["0", "-1", "many"])
def test_find_asked_for_no_rows_says_so(root: Path, capsys: Said, rows: str) -> None:
    with pytest.raises(SystemExit) as ended:
        find.main(["text", "def", "--limit", rows])
    assert ended.value.code == 2
    assert "--limit" in capsys.readouterr().err


def test_find_answers_as_the_server_does(root: Path, capsys: Said) -> None:
    assert find.main(["def", "greet"]) == 0
    said = capsys.readouterr().out
    assert re.match(r"app\.py:1: (def )?greet\(", said)
    assert "1 found by" in said
    assert find.main(["text", "TOKEN", "--json"]) == 0
    assert [row["path"] for row in parsed(capsys.readouterr().out)["results"]] == ["secrets/vault.py"]
    assert find.main(["refs", "nobody_calls_this"]) == 1
    assert find.main(["symbols", "app.py"]) == 0
    assert find.main(["impact", "greet", "--json"]) == 0
    assert '"must_verify"' in capsys.readouterr().out
    assert find.main(["symbols", "../outside.py"]) == 1


def test_find_leaves_no_trace_in_git(root: Path) -> None:
    (root / ".git" / "info" / "exclude").unlink(missing_ok=True)
    before = git(root, "status", "--porcelain")
    find.main(["def", "greet"])
    assert git(root, "status", "--porcelain") == before


def test_find_says_of_each_row_what_a_person_asks_next(root: Path, capsys: Said) -> None:
    (root / "shop.py").write_text(
        "from app import greet\n\n\nclass Shop:\n    def open(self, name):\n        return greet(name)\n",
        encoding="utf-8",
    )
    find.main(["def", "open"])
    said = capsys.readouterr().out
    assert re.search(r"^shop\.py:5: (def )?open\(self, name\)  \[method in Shop\]$", said, re.MULTILINE)
    find.main(["refs", "greet"])
    assert "shop.py:6: return greet(name)  [call in Shop.open]\n" in capsys.readouterr().out
    find.main(["symbols", "shop.py"])
    assert "shop.py:5:   def open(self, name)\n" in capsys.readouterr().out
    find.main(["impact", "greet"])
    assert "shop.py:6: must verify  code  call of greet  [certain, in Shop.open]\n" in capsys.readouterr().out


@pytest.mark.parametrize(("arguments", "said"), [
    (["symbols", "."], "find text PATTERN --path DIR"),
    (["symbols", "nowhere.py"], "Paths are from where you stand"),
    (["text", "x", "--path", "/"], "inside the project"),
    (["text", "("], "backslash"),
    (["def", " "], "No symbol specified\n"), (["refs", "nowhere.greet"], "or for the bare name."),
])  # fmt: skip
def test_find_advises_people_in_the_terms_of_the_command(
    root: Path, capsys: Said, arguments: list[str], said: str
) -> None:
    assert find.main(arguments) == 1
    told = capsys.readouterr().err
    assert said in told
    assert not _AGENTS_TERMS.search(told)


def test_a_message_and_its_advice_are_two_sentences(root: Path, capsys: Said) -> None:
    assert find.main(["--project", str(root), "text", "("]) == 1
    assert "unclosed group. A backslash lets" in capsys.readouterr().err


def test_what_find_notes_of_an_answer_is_in_the_terms_of_the_command(root: Path, capsys: Said) -> None:
    (root / "said.py").write_text("# greet\n", encoding="utf-8")
    find.main(["refs", "greet"])
    told = capsys.readouterr().out
    assert "`find text` shows these" in told
    padding = "".join(f"value_{number} = {number}\n" for number in range(1000))
    for number in range(30):
        (root / f"uses{number}.py").write_text(f"from app import greet\n\ngreet('x')\n{padding}", encoding="utf-8")
    find.main(["refs", "greet", "--limit", "2"])
    told += capsys.readouterr().out
    assert "--limit shows more" in told
    assert not _AGENTS_TERMS.search(told)


_AGENTS_TERMS = re.compile(r"None|include_comments|next page|regex=|at=|(search|find|get|analyze)_\w+")


def test_sync_builds_the_index_and_says_what_it_did(root: Path, capsys: Said) -> None:
    assert sync.main([]) == 0
    assert re.search(r"\d+ files \(\d+ added", capsys.readouterr().out)
    assert sync.main(["--rebuild"]) == 0


def test_sync_leaves_nothing_for_the_next_server_to_hand_to_chromadb(root: Path) -> None:
    assert sync.main([]) == 0
    with contextlib.closing(sqlite3.connect(root / ".code-intel" / "cache" / "index.sqlite3")) as kept:
        counts = kept.execute("SELECT (SELECT count(*) FROM outbox), count(content) FROM files").fetchone()
    assert counts[0] == 0 < counts[1]


def test_commands_that_need_a_set_up_project_say_how_to_get_one(tmp_path: Path, capsys: Said) -> None:
    for command in (sync, resume, abandon, trust, waive):
        assert command.main(["--project", str(tmp_path)]) == 1
        assert "run code-intel-server init" in capsys.readouterr().err


# doctor


def test_doctor_finds_a_healthy_project_healthy(
    root: Path, capsys: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _launcher(tmp_path, monkeypatch)
    monkeypatch.setattr(checkup_clients, "_SLOW_HOOK_MS", 60_000)  # a loaded machine is no finding about the project
    capsys.readouterr()
    assert doctor.main(["--json"]) == 0
    graded = {one["name"]: one["grade"] for one in parsed(capsys.readouterr().out)["findings"]}
    for name in (
        "python",
        "git",
        "ripgrep",
        "scaffold",
        "texts",
        "claude code",
        "codex",
        "hook",
        "server",
        "verify commands",
    ):
        assert graded[name] == "ok", name


def test_doctor_calls_no_branch_of_a_session_that_is_not_over_left_over(root: Path) -> None:
    for session_id in ("20260201_123456", "20250101_000000"):
        git(root, "branch", f"llm_task_{session_id}")
    with session(root, state(session_id="20260201_123456")):
        (found,) = [one for one in checkup_project.repository(root) if one.name == "task branches"]
    assert found.text == "1 left over"


def test_doctor_finds_what_is_broken_and_says_what_to_do(
    root: Path, capsys: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    (root / ".mcp.json").write_text("{broken")
    (root / ".claude/settings.json").write_text("[]")
    (root / ".codex/config.toml").write_text("a = =")
    (root / ".codex/hooks.json").write_text("{}")
    (root / ".claude/skills/code/SKILL.md").unlink()
    (root / ".code-intel/config.json").write_text('{"verify_commands": [["x"]], "finsh": "merge"}')
    (root / ".code-intel/task_planning.md.new").write_text("")
    (root / "app.py").write_text("changed = 1\n")
    git(root, "branch", "llm_task_20200101_000000")
    with session(root, state(), live=False):
        pass
    capsys.readouterr()
    assert doctor.main([]) == 1
    said = capsys.readouterr().out
    for expected in (
        "FAIL  command",
        "FAIL  claude code",
        ".mcp.json: line 1",
        "FAIL  claude hooks",
        "FAIL  codex",
        "warn  scaffold",
        "unknown key 'finsh'",
        "not trusted: they do not run",
        "uncommitted change",
        "1 left over",
        "1 interrupted",
        "→ /code --resume",
    ):
        assert expected in said, said
    assert doctor.main(["--project", str(tmp_path)]) == 1
    assert "no .code-intel/ here" in capsys.readouterr().out


def test_a_repository_that_git_cannot_read_is_said_and_costs_a_lookup_only_its_history(
    root: Path, capsys: Said
) -> None:
    (root / ".git/HEAD").write_text("")
    assert doctor.main([]) == 1
    said = capsys.readouterr().out
    assert "FAIL  repository" in said
    assert "git fsck" in said and "tool_errors" not in said
    assert list(ProjectServices(root).history()) == []


def _launcher(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command `code-intel-server` of this very code on PATH."""
    import os

    made = folder / "bin" / "code-intel-server"
    made.parent.mkdir()
    source = Path(__file__).parents[2] / "src"
    made.write_text(f'#!/bin/sh\nPYTHONPATH="{source}" exec "{sys.executable}" -m code_intel_server "$@"\n')
    made.chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([str(made.parent), os.environ["PATH"]]))


def test_json_of_status_is_json_when_there_is_nothing_at_all(tmp_path: Path, capsys: Said) -> None:
    assert status.main(["--project", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["set_up"] is False
    assert status.main(["--project", str(tmp_path)]) == 0
    assert "code-intel is not set up in" in capsys.readouterr().out
    assert trash.main(["--project", str(tmp_path), "list"]) == 1
    assert "this is not a git repository. What sessions put away is kept in git." in capsys.readouterr().err
