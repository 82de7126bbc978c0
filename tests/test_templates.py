"""The scaffold is valid, short, free of this machine, and names only what exists (SPEC 12)."""

import fnmatch
import json
import re
import shutil
import sys
import tomllib
from pathlib import Path

import pytest

from code_intel_server.common.resources import templates_dir
from code_intel_server.contract import Contract
from code_intel_server.contract.clients import CLAUDE, CODEX
from code_intel_server.contract.skills import skill_files
from code_intel_server.contract.strict_yaml import parse_yaml
from tests.programs import ran

TEMPLATES = templates_dir()
SCAFFOLD = TEMPLATES / "code-intel"
FILES = sorted(path for path in TEMPLATES.rglob("*") if path.is_file())
PROMPTS = sorted(SCAFFOLD.rglob("*.md"))
CONTRACT = Contract.load(None)

# SPEC 12: the commands of the console script.
COMMANDS = {
    *("serve", "init", "doctor", "status", "report", "insights", "resume", "abandon"),
    *("trash", "trust", "waive", "verify-commit", "sync", "find", "hook"),
}


def name(path: Path) -> str:
    """The path below templates/."""
    return path.relative_to(TEMPLATES).as_posix()


def test_the_scaffold_has_every_file_of_the_specification() -> None:
    assert {path.relative_to(SCAFFOLD).as_posix() for path in SCAFFOLD.rglob("*") if path.is_file()} >= {
        "config.json",
        "context.yml",
        "phase_contract.yml",
        "task_planning.md",
        "user_escalation.md",
        "agreements/.gitkeep",
        "doc_research/default.md",
        "review_prompts/garbage_detection.md",
        "review_prompts/quality_review.md",
        *(f"verifiers/{kind}.md" for kind in ("backend", "frontend_markup", "tests", "api", "database", "docs", "generic")),
        *(f"interventions/{kind}.md" for kind in ("step_back", "hypothesis_review", "structure_review", "smaller_step")),
    }  # fmt: skip


@pytest.mark.parametrize("path", PROMPTS, ids=name)
def test_a_prompt_is_short_has_one_title_and_ends_properly(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    assert lines[0].startswith("# ")
    assert sum(line.startswith("# ") for line in lines) == 1
    assert len(lines) <= 60
    assert len(text) <= 2000
    assert max(map(len, lines)) <= 140
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


def test_the_planning_guide_fits_into_every_planning_answer() -> None:
    assert len((SCAFFOLD / "task_planning.md").read_bytes()) < 1200


@pytest.mark.parametrize("path", FILES, ids=name)
def test_a_template_holds_nothing_of_a_machine(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"(?<![\w.])/(home|root|tmp|usr|opt|work|Users)/", text)
    assert "\r" not in text
    assert "\t" not in text


@pytest.mark.parametrize("path", FILES, ids=name)
def test_a_template_names_only_commands_and_files_that_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for command in re.findall(r"code-intel-server ([a-z]+)", text):
        assert command in COMMANDS
    for named in re.findall(r"\.code-intel/([\w/.*]*\w+\.(?:md|yml|json)|[\w/]+/\*\.md)", text):
        assert list(SCAFFOLD.glob(named)), named


def test_every_resource_of_the_contract_is_in_the_scaffold_and_named_by_its_instruction() -> None:
    scaffold = [f".code-intel/{path.relative_to(SCAFFOLD).as_posix()}" for path in SCAFFOLD.rglob("*")]
    for (phase, variant), part in CONTRACT.texts.phases.items():
        for resource in part.resources or ():
            assert fnmatch.filter(scaffold, resource), resource
            stem = resource.rsplit("/", 1)[-1].split(".")[0].strip("*") or resource.split("/")[1]
            assert stem in (CONTRACT.phase(phase, variant).instruction), (phase, variant, resource)


def test_the_configuration_holds_the_v1_16_keys_and_runs_nothing_by_itself() -> None:
    config = json.loads((SCAFFOLD / "config.json").read_text(encoding="utf-8"))
    assert set(config) >= {
        *("version", "embedding_model", "source_dirs", "exclude_patterns", "chunk_strategy", "chunk_max_tokens"),
        *("sync_ttl_hours", "sync_on_start"),
    }
    assert (config["embedding_model"], config["chunk_strategy"]) == ("bundled", "ast")
    assert config["verify_commands"] == []
    assert config["finish"] == "merge"
    assert config["headless"] == {"stale_branches": "continue", "escalation": "stop"}


def test_the_context_is_plain_yaml_without_a_rule_that_nobody_wrote() -> None:
    root = parse_yaml((SCAFFOLD / "context.yml").read_bytes())
    assert set(root.items) == {"project_rules", "doc_research", "document_search"}
    assert '\n  summary: ""\n' in (SCAFFOLD / "context.yml").read_text(encoding="utf-8")


def test_claude_is_given_the_server_and_its_hooks() -> None:
    server = json.loads((TEMPLATES / "claude" / "mcp.json").read_text(encoding="utf-8"))["mcpServers"]["code-intel"]
    assert server == {"type": "stdio", "command": "code-intel-server", "args": ["serve"], "alwaysLoad": True}
    settings = json.loads((TEMPLATES / "claude" / "settings.json").read_text(encoding="utf-8"))
    assert settings["permissions"]["allow"] == ["mcp__code-intel"]
    assert hooks(settings) == {
        "PreToolUse": "Edit|Write|NotebookEdit|mcp__code-intel__start_session",
        "PostToolUse": "Read|Grep|Bash|AskUserQuestion",
        "SessionStart": None,
        "UserPromptSubmit": None,
        "Stop": None,
    }


def test_codex_is_given_the_server_and_its_hooks() -> None:
    config = tomllib.loads((TEMPLATES / "codex" / "config.toml").read_text(encoding="utf-8"))
    assert config["mcp_servers"]["code_intel"] == {
        "command": "code-intel-server", "args": ["serve"], "required": True, "startup_timeout_sec": 30,
        "tool_timeout_sec": 600, "default_tools_approval_mode": "approve",
    }  # fmt: skip
    file = json.loads((TEMPLATES / "codex" / "hooks.json").read_text(encoding="utf-8"))
    # `Edit|Write` also matches apply_patch there; models without that tool call it in a shell.
    judged = "Edit|Write|Bash|mcp__code_intel__start_session"
    assert hooks(file) == {"PreToolUse": judged, "SessionStart": None, "UserPromptSubmit": None, "Stop": None}


def hooks(settings: dict[str, dict[str, list[dict[str, object]]]]) -> dict[str, object]:
    """Event -> matcher, after a look at what runs there."""
    found: dict[str, object] = {}
    for event, (entry,) in settings["hooks"].items():
        assert entry["hooks"] == [{"type": "command", "command": "code-intel-server hook", "timeout": 10}]
        found[event] = entry.get("matcher")
    return found


@pytest.mark.needs("agnix")
@pytest.mark.parametrize("client", ["claude-code", "codex"])
def test_agnix_finds_no_error_in_the_scaffold(tmp_path: Path, client: str) -> None:
    shutil.copytree(SCAFFOLD, tmp_path / ".code-intel")
    for source, target in {
        "claude/mcp.json": ".mcp.json",
        "claude/settings.json": ".claude/settings.json",
        "claude/CLAUDE.md": ".claude/CLAUDE.md",
        "codex/config.toml": ".codex/config.toml",
        "codex/hooks.json": ".codex/hooks.json",
        "codex/AGENTS.md": "AGENTS.md",
    }.items():
        (tmp_path / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(TEMPLATES / source, tmp_path / target)
    for path, text in {**skill_files(CLAUDE), **skill_files(CODEX)}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    done = ran([Path(sys.executable).with_name("agnix"), "-t", client, tmp_path])
    assert "Found 0 errors" in done.stdout + done.stderr
