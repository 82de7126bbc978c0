"""Set-up leaves what is the user's: it is written once, kept where it was edited, and taken out byte for byte (SPEC 12)."""

import hashlib
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from code_intel_server.cli import init, trash
from code_intel_server.cli.doctor import project as checkup_project
from code_intel_server.cli.doctor.finding import Grade
from code_intel_server.cli.init.scaffold import Manifest
from code_intel_server.workspace.state.key import load_key
from tests.cli.helpers import Said, fingerprint, project, session, state
from tests.e2e.driver import git

QUICK = ["--no-proof", "--no-index"]


def test_no_written_file_holds_an_absolute_path(tmp_path: Path) -> None:
    root = project(tmp_path / "repo")
    init.main([str(root), *QUICK, "--yes"])
    for path in git(root, "show", "--name-only", "--format=", "HEAD").split():
        assert str(tmp_path) not in (root / path).read_text(encoding="utf-8"), path


def test_twice_is_as_once_and_uninstall_leaves_the_project_as_before(tmp_path: Path) -> None:
    mine = {
        ".mcp.json": '{"mcpServers": {"other": {"command": "x"}}}',
        ".claude/settings.json": '{\n  // mine\n  "permissions": {"allow": ["Read"]}\n}\n',
        ".codex/config.toml": 'model = "m"',
        "AGENTS.md": "# Mine\n",
    }
    root = project(tmp_path / "repo", **mine)
    exclude = (root / ".git/info/exclude").read_text()
    before = fingerprint(root)
    assert init.main([str(root), *QUICK]) == 0
    once = fingerprint(root)
    assert init.main([str(root), *QUICK]) == 0
    assert fingerprint(root) == once
    assert init.main([str(root), "--uninstall"]) == 0
    assert fingerprint(root) == before
    assert (root / ".git/info/exclude").read_text() == exclude
    assert not (root / ".git/code-intel").exists()


def test_what_the_user_edited_is_kept_and_a_new_default_lands_beside_it(tmp_path: Path, capsys: Said) -> None:
    root = project(tmp_path / "repo")
    init.main([str(root), *QUICK])
    guide = root / ".code-intel/task_planning.md"
    default = guide.read_text()
    guide.write_text("# Ours\n")
    init.main([str(root), *QUICK])
    assert not guide.with_name("task_planning.md.new").exists()
    manifest = Manifest.load(root)
    manifest.files[".code-intel/task_planning.md"] = "an older default"
    manifest.save(root)
    init.main([str(root), *QUICK])
    assert guide.read_text() == "# Ours\n"
    assert guide.with_name("task_planning.md.new").read_text() == default
    assert "new default beside it" in capsys.readouterr().out
    init.main([str(root), *QUICK])
    assert "compare with .code-intel/task_planning.md.new" in capsys.readouterr().out, "it waits for the user"
    assert init.main([str(root), "--uninstall"]) == 0
    assert guide.read_text() == "# Ours\n"
    assert not guide.with_name("task_planning.md.new").exists()


def test_a_new_default_is_laid_beside_an_edited_file_once(tmp_path: Path, capsys: Said) -> None:
    root = project(tmp_path / "repo", **{".code-intel/context.yml": "project_rules: {}\n"})
    init.main([str(root), *QUICK])
    (root / ".code-intel/task_planning.md").write_text("# Ours\n")
    manifest = Manifest.load(root)
    manifest.files[".code-intel/task_planning.md"] = "an older default"
    manifest.save(root)
    init.main([str(root), *QUICK])
    beside = [root / ".code-intel/task_planning.md.new", root / ".code-intel/context.yml.new"]
    for file in beside:
        file.unlink()
    capsys.readouterr()
    init.main([str(root), *QUICK])
    assert not any(file.exists() for file in beside)
    assert ".new" not in capsys.readouterr().out
    found = [one for one in checkup_project.scaffold(root) if one.grade is not Grade.GOOD]
    assert found == []


def test_an_older_default_that_nobody_edited_is_updated(tmp_path: Path) -> None:
    root = project(tmp_path / "repo")
    init.main([str(root), *QUICK])
    guide = root / ".code-intel/task_planning.md"
    default = guide.read_bytes()
    guide.write_bytes(b"# Older\n")
    manifest = Manifest.load(root)
    manifest.files[".code-intel/task_planning.md"] = hashlib.sha256(b"# Older\n").hexdigest()
    manifest.save(root)
    init.main([str(root), *QUICK])
    assert guide.read_bytes() == default


def test_later_additions_of_the_user_survive_uninstall(tmp_path: Path) -> None:
    root = project(tmp_path / "repo", **{".mcp.json": "{}\n"})
    init.main([str(root), *QUICK])
    content = json.loads((root / ".mcp.json").read_text())
    content["mcpServers"]["later"] = {"command": "y"}
    (root / ".mcp.json").write_text(json.dumps(content, indent=2))
    settings = json.loads((root / ".claude/settings.json").read_text())
    settings["permissions"]["allow"].append("Bash(make:*)")
    (root / ".claude/settings.json").write_text(json.dumps(settings))
    init.main([str(root), *QUICK])
    assert init.main([str(root), "--uninstall"]) == 0
    assert json.loads((root / ".mcp.json").read_text()) == {"mcpServers": {"later": {"command": "y"}}}
    assert json.loads((root / ".claude/settings.json").read_text()) == {"permissions": {"allow": ["Bash(make:*)"]}}


def test_an_entry_added_again_after_the_user_took_it_out_does_not_cost_their_other_edits(tmp_path: Path) -> None:
    root = project(tmp_path / "repo", **{".mcp.json": '{"mcpServers": {}}\n'})
    init.main([str(root), *QUICK])
    (root / ".mcp.json").write_text('{"mcpServers": {"mine": {"command": "z"}}}')
    init.main([str(root), *QUICK])
    init.main([str(root), "--uninstall"])
    assert json.loads((root / ".mcp.json").read_text()) == {"mcpServers": {"mine": {"command": "z"}}}


def test_a_manifest_that_names_files_outside_takes_none_of_them_out(tmp_path: Path) -> None:
    root = project(tmp_path / "repo")
    init.main([str(root), *QUICK])
    mine = tmp_path / "mine.txt"
    mine.write_text("mine")
    (tmp_path / "empty").mkdir()
    (root / "away").symlink_to(tmp_path)
    pulled = Manifest.load(root)
    for path in ("../mine.txt", "away/mine.txt"):
        pulled.files[path] = hashlib.sha256(b"mine").hexdigest()
        pulled.created.append(path)
    pulled.folders += ["../empty", "away/empty"]
    pulled.save(root)
    assert init.main([str(root), "--uninstall"]) == 0
    assert mine.read_text() == "mine"
    assert (tmp_path / "empty").is_dir()


def test_rules_files_are_written_only_where_the_project_has_none(tmp_path: Path) -> None:
    root = project(tmp_path / "repo", **{"CLAUDE.md": "# Mine\n"})
    init.main([str(root), *QUICK])
    assert not (root / ".claude/CLAUDE.md").exists()
    assert not (root / "AGENTS.md").exists()


def test_through_a_folder_that_leads_outside_nothing_is_written(tmp_path: Path, capsys: Said) -> None:
    root, outside = project(tmp_path / "repo"), tmp_path / "outside"
    outside.mkdir()
    (root / ".agents").symlink_to(outside)
    assert init.main([str(root), *QUICK]) == 1
    assert [*outside.iterdir()] == []
    assert "leads outside" in capsys.readouterr().err


def test_a_file_written_through_a_link_is_taken_out_and_the_link_is_not(tmp_path: Path) -> None:
    root = project(tmp_path / "repo")
    before = fingerprint(root)
    (root / "AGENTS.md").symlink_to("RULES.md")
    assert init.main([str(root), *QUICK]) == 0
    assert (root / "RULES.md").is_file()
    assert init.main([str(root), "--uninstall"]) == 0
    assert (root / "AGENTS.md").is_symlink()
    assert not (root / "RULES.md").exists()
    (root / "AGENTS.md").unlink()
    assert fingerprint(root) == before


def test_uninstall_leaves_no_worktree_of_a_session_without_its_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = project(tmp_path / "repo")
    init.main([str(root), *QUICK, "--yes"])
    place = root / ".code-intel/worktrees/20260201_123456"
    git(root, "worktree", "add", "-q", "--detach", str(place))
    assert init.main([str(root), "--uninstall"]) == 1
    assert str(place) in capsys.readouterr().err and (place / "app.py").exists()
    git(root, "worktree", "remove", str(place))
    assert init.main([str(root), "--uninstall"]) == 0
    assert not (root / ".code-intel").exists()


def test_uninstall_refuses_what_init_did_not_write_and_a_project_at_work(tmp_path: Path, capsys: Said) -> None:
    root = project(tmp_path / "repo")
    assert init.main([str(root), "--uninstall"]) == 1
    init.main([str(root), *QUICK])
    with session(root, state()):
        assert init.main([str(root), "--uninstall"]) == 1
    assert init.main([str(root), "--uninstall"]) == 1
    said = capsys.readouterr().err
    assert "a session is running here" in said
    assert "an interrupted session is kept here" in said
    shutil.rmtree(root / ".code-intel/sessions")
    before = fingerprint(root)
    assert init.main([str(root), "--uninstall", "--dry-run"]) == 0
    assert fingerprint(root) == before


@pytest.mark.parametrize(
    ("place", "removed_by"),
    [
        ("share/uv/tools/code-intel-server", "uv tool uninstall code-intel-server"),
        ("share/pipx/venvs/code-intel-server", "pipx uninstall code-intel-server"),
        ("share/code-intel/venv", "rm -r {place} {link}"),
        ("work/venv", "-m pip uninstall code-intel-server"),
    ],
)
def test_uninstall_names_all_that_stays_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said, place: str, removed_by: str
) -> None:
    program = tmp_path / place / "bin" / "code-intel-server"
    program.parent.mkdir(parents=True)
    program.touch(0o755)
    link = tmp_path / "links" / "code-intel-server"
    link.parent.mkdir()
    link.symlink_to(program)
    monkeypatch.setenv("PATH", str(link.parent), prepend=os.pathsep)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / place))
    root = project(tmp_path / "repo")
    assert init.main([str(root), *QUICK, "--yes"]) == 0
    git(root, "branch", "llm_task_20200101_000000")
    git(root, "update-ref", "refs/code-intel/archive/20200101_000000/001-branch", "HEAD")
    (root / ".code-intel/task_planning.md").write_text("# Mine\n")
    capsys.readouterr()
    assert init.main([str(root), "--uninstall"]) == 0
    said = capsys.readouterr().out.partition("What stays")[2]
    for place_of_it in (
        ".code-intel/task_planning.md",
        "the commit of the set-up",
        "llm_task_20200101_000000",
        "refs/code-intel/archive/: 1 ",
        str(tmp_path / "state" / "code-intel"),
        f"{tmp_path / place}: the program itself",
        removed_by.format(place=tmp_path / place, link=link),
    ):
        assert place_of_it in said
    assert not (root / ".git/code-intel").exists()
    assert trash.main(["--project", str(root), "list"]) == 0


def test_the_key_stays_and_is_named_while_another_worktree_may_use_it(tmp_path: Path, capsys: Said) -> None:
    root = project(tmp_path / "repo")
    assert init.main([str(root), *QUICK, "--yes"]) == 0
    load_key(root / ".git/code-intel")
    git(root, "worktree", "add", "-q", str(tmp_path / "second"))
    assert init.main([str(root), "--uninstall"]) == 0
    assert (root / ".git/code-intel/key").is_file()
    assert f"{root / '.git/code-intel'}: for other projects or worktrees" in capsys.readouterr().out
