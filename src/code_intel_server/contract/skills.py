"""The skills `code` and `outcome`: one source each, rendered for every client (SPEC 12).

A source is Markdown with sections for single clients: `<<claude: text>>` within a line, or a block from a line
`<<claude,any:` to a line `>>`. What a section holds stays only for its clients; everything else is for all.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from code_intel_server.resources import templates_dir

ARGUMENTS = "$ARGUMENTS"

_NAMES = r"<<([a-z]+(?:,[a-z]+)*):"
_BLOCK = re.compile(rf"^{_NAMES}\n(.*?)^>>\n", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(rf"{_NAMES} (.*?)>>")
_FRONTMATTER = re.compile(r"\A---\n.*?^---\n+", re.MULTILINE | re.DOTALL)


class Client(StrEnum):
    """For whom a skill is rendered; ANY is a client that takes it as an MCP prompt."""

    CLAUDE = "claude"
    CODEX = "codex"
    ANY = "any"


class Skill(StrEnum):
    """The skills there are."""

    CODE = "code"
    OUTCOME = "outcome"


def render(source: str, client: Client) -> str:
    """The text of a source for one client. Raises ValueError for a section of an unknown client or without an end."""

    def chosen(match: re.Match[str]) -> str:
        """A section's text where it is for this client, else nothing."""
        return match[2] if client in {Client(name) for name in match[1].split(",")} else ""

    text = _INLINE.sub(chosen, _BLOCK.sub(chosen, source))
    if "<<" in text:
        raise ValueError(f"a section without an end: {text[text.index('<<') :][:40]!r}")
    return re.sub(r"\n{3,}", "\n\n", text)


def prompt(skill: Skill, request: str) -> str:
    """The skill as an MCP prompt: its text without frontmatter, with the request put in."""
    return _FRONTMATTER.sub("", render(_source(skill), Client.ANY)).replace(ARGUMENTS, request)


def skill_files(client: Client) -> Mapping[str, str]:
    """The files that give `client` the skills: project-relative path -> text. Empty for ANY."""
    if client is Client.CLAUDE:
        return {f".claude/skills/{skill}/SKILL.md": render(_source(skill), client) for skill in Skill}
    if client is Client.CODEX:
        return {path: text for skill in Skill for path, text in _codex_files(skill).items()}
    return {}


def _codex_files(skill: Skill) -> dict[str, str]:
    folder = f".agents/skills/{skill}"
    return {
        f"{folder}/SKILL.md": render(_source(skill), Client.CODEX),
        f"{folder}/agents/openai.yaml": (_folder() / f"{skill}.openai.yaml").read_text(encoding="utf-8"),
    }


def _source(skill: Skill) -> str:
    return (_folder() / f"{skill}.md.in").read_text(encoding="utf-8")


def _folder() -> Path:
    return templates_dir() / "skills"
