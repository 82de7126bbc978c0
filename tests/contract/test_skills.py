"""One source gives every client its skill: only what it understands, named as it calls it (SPEC 12)."""

import re
import tomllib
from dataclasses import fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from code_intel_server.contract.clients import CLAUDE, CLIENTS, CODEX, GEMINI, PROMPT, Client
from code_intel_server.contract.skills import ARGUMENTS, Skill, prompt, render_skill, skill_files
from code_intel_server.contract.strict_yaml import parse_yaml
from code_intel_server.flow.phases import STEPS, Flags, Intent, Phase

OUTCOMES = "`/code-intel:outcome success`, `/code-intel:outcome partial` or `/code-intel:outcome failure`"
NAMES = [client.name for client in CLIENTS]


def skill(client: Client, name: Skill = Skill.CODE) -> str:
    """The skill or command of a client."""
    return skill_files(client)[client.skills.format(skill=name)]


def frontmatter(text: str) -> set[str]:
    """The keys of a skill's frontmatter."""
    assert text.startswith("---\n")
    return set(parse_yaml(text.split("---\n")[1].encode()).items)


# The renderer


def test_a_section_stays_only_for_its_clients() -> None:
    source = "a\n<<claude:\nonly\nclaude\n>>\nb <<codex: x>><<claude,any: y>> c\n"
    assert render_skill(source, CLAUDE.voices) == "a\nonly\nclaude\nb y c\n"
    assert render_skill(source, CODEX.voices) == "a\nb x c\n"
    assert render_skill(source, PROMPT) == "a\nb y c\n"


def test_blank_lines_left_by_a_removed_section_are_closed() -> None:
    assert render_skill("a\n\n<<claude:\nx\n>>\n\nb\n", CODEX.voices) == "a\n\nb\n"


@pytest.mark.parametrize("source", ["<<nobody: x>>", "<<claude:\nopen\n", "a << b", "<<claude: two\nlines>>"])
def test_a_section_that_nobody_understands_is_an_error(source: str) -> None:
    with pytest.raises(ValueError, match=r"nobody|without an end"):
        render_skill(source, CLAUDE.voices)


@settings(deadline=None)
@given(st.text().filter(lambda text: "<<" not in text and "\n\n\n" not in text), st.sampled_from(CLIENTS))
def test_a_text_without_sections_is_the_same_for_everyone(text: str, client: Client) -> None:
    assert render_skill(text, client.voices) == text


# The files


def test_each_client_gets_its_files_where_it_looks_for_them() -> None:
    assert set(skill_files(CLAUDE)) == {".claude/skills/code/SKILL.md", ".claude/skills/outcome/SKILL.md"}
    assert set(skill_files(CODEX)) == {
        ".agents/skills/code/SKILL.md",
        ".agents/skills/code/agents/openai.yaml",
        ".agents/skills/outcome/SKILL.md",
        ".agents/skills/outcome/agents/openai.yaml",
    }
    assert set(skill_files(GEMINI)) == {
        ".gemini/commands/code-intel/code.toml",
        ".gemini/commands/code-intel/outcome.toml",
    }


@pytest.mark.parametrize("client", CLIENTS, ids=NAMES)
@pytest.mark.parametrize("name", Skill)
def test_every_client_is_given_the_request_and_the_command_by_its_own_name(client: Client, name: Skill) -> None:
    text = skill(client, name)
    if "arguments" in client.voices:
        assert text.count(client.arguments) == 1
    else:
        assert f"{client.typed[0]}{name}`" in text
    assert "<<" not in text
    assert "the prompt `outcome`" not in text


def test_a_command_in_toml_is_valid_and_holds_the_whole_text() -> None:
    command = tomllib.loads(skill(GEMINI))
    assert command.keys() == {"description", "prompt"}
    assert command["prompt"].rstrip() in prompt(Skill.CODE, "{{args}}").replace(
        "the prompt `outcome` (success, partial or failure)", OUTCOMES
    )


@pytest.mark.parametrize("name", Skill)
def test_frontmatter_holds_the_keys_that_the_client_reads(name: Skill) -> None:
    assert frontmatter(skill(CODEX, name)) == {"name", "description"}
    assert frontmatter(skill(CLAUDE, name)) == {
        "name",
        "description",
        "argument-hint",
        "allowed-tools",
        "disable-model-invocation",
    }


@pytest.mark.parametrize("name", Skill)
def test_codex_is_told_not_to_start_a_skill_by_itself(name: Skill) -> None:
    assert "allow_implicit_invocation: false" in skill_files(CODEX)[f".agents/skills/{name}/agents/openai.yaml"]


def test_the_calls_are_named_as_each_client_needs_them() -> None:
    claude, codex = skill(CLAUDE), skill(CODEX)
    assert "mcp__code-intel__start_session" in claude
    assert "await tools.mcp__code_intel__start_session({" in codex
    assert "tools.mcp__" not in claude
    assert "mcp__code-intel" not in codex
    assert "await tools.mcp__code_intel__record_outcome({" in skill(CODEX, Skill.OUTCOME)
    assert "mcp__code-intel__record_outcome" in skill(CLAUDE, Skill.OUTCOME)


@pytest.mark.parametrize("name", Skill)
def test_only_claude_gets_its_substitution_and_only_codex_the_dollar_command(name: Skill) -> None:
    claude, codex = skill(CLAUDE, name), skill(CODEX, name)
    assert claude.count("$") == claude.count(ARGUMENTS) == 1
    assert ARGUMENTS not in codex
    assert f"${name}" in codex
    # `!` before a backtick makes Claude Code run what follows.
    assert not re.search(r"(^|\s)!`", claude, re.MULTILINE)


def test_a_prompt_is_the_text_without_frontmatter_with_the_request_put_in() -> None:
    text = prompt(Skill.CODE, "-q rename \\1 to $ARGUMENTS2")
    assert text.startswith("# code\n")
    assert "The request: -q rename \\1 to $ARGUMENTS2\n" in text
    assert "mcp__" not in text
    assert prompt(Skill.OUTCOME, "success").count("success") > 1


# What the text says is what the server does


@pytest.mark.parametrize("client", CLIENTS, ids=NAMES)
def test_every_flag_of_the_server_stands_in_the_table_with_its_v1_16_spelling(client: Client) -> None:
    rows = [
        [cell.strip() for cell in row.strip("|").split("|")]
        for row in skill(client).splitlines()
        if row.startswith("| `--")
    ]
    assert {row[0].strip("`"): row[1].strip("`") for row in rows} == {
        "--gate=LEVEL": "-g=LEVEL",
        "--no-verify": "",
        "--no-quality": "",
        "--only-verify": "-v",
        "--only-explore": "-e",
        "--fast": "-f",
        "--quick": "-q",
        "--no-doc-research": "",
        "--no-intervention": "-ni",
        "--resume": "-r",
        "--clean": "-c",
        "--rebuild": "",
        "--worktree": "-w",
    }
    passed = {match[0] for row in rows for match in re.findall(r"`((\w+)(: \"full\")?)`", row[2])[:1]}
    assert {name.split(":")[0] for name in passed} == {field.name for field in fields(Flags)}


@pytest.mark.parametrize("client", CLIENTS, ids=NAMES)
def test_every_phase_stands_at_its_step_and_every_intent_is_explained(client: Client) -> None:
    text = skill(client)
    table = {
        int(step): names
        for numbers, names in re.findall(r"^\| ([\d, ]+) \| ([\w, ]+) \|", text, re.MULTILINE)
        for step in numbers.split(", ")
    }
    assert sorted(table) == list(range(1, 20))
    for place, step in STEPS.items():
        assert str(place.phase) in table[step]
    assert {phase for phase in Phase if phase in text} == set(Phase)
    assert all(f"| {intent} |" in text for intent in Intent)


@pytest.mark.parametrize("client", CLIENTS, ids=NAMES)
def test_what_the_server_teaches_is_not_taught_twice(client: Client) -> None:
    text = skill(client)
    assert len(text) < 9000
    for field in ("explored_files", "documents_reviewed", "failed_tasks", "reviewed_files", "quality_score"):
        assert field not in text
