"""The skills `code` and `outcome`: one source each, rendered for every client (SPEC 12).

A source is Markdown with sections for some voices: `<<claude: text>>` within a line, or a block from a line `<<claude,any:`
to a line `>>`. What a section holds stays only for the clients whose row has one of its voices; everything else is for all.
"""

import json
import re
from collections.abc import Mapping, Set
from enum import StrEnum
from pathlib import Path

from code_intel_server.common.resources import templates_dir
from code_intel_server.contract.clients import CLIENTS, CODEX, PROMPT, Client, Form

ARGUMENTS = "$ARGUMENTS"

_NAMES = r"<<([a-z]+(?:,[a-z]+)*):"
_BLOCK = re.compile(rf"^{_NAMES}\n(.*?)^>>\n", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(rf"{_NAMES} (.*?)>>")
_VOICES = PROMPT.union(*(client.voices for client in CLIENTS))
_FRONTMATTER = re.compile(r"\A---\n.*?^---\n+", re.MULTILINE | re.DOTALL)


class Skill(StrEnum):
    """The skills there are."""

    CODE = "code"
    OUTCOME = "outcome"


def render_skill(source: str, voices: Set[str]) -> str:
    """The text of a source with the sections for these voices. Raises ValueError for a section of nobody or without an end."""

    def chosen(match: re.Match[str]) -> str:
        """A section's text where it is for one of the voices, else nothing."""
        names = {*match[1].split(",")}
        if unknown := names - _VOICES:
            raise ValueError(f"a section for nobody: {', '.join(unknown)}")
        return match[2] if names & voices else ""

    text = _INLINE.sub(chosen, _BLOCK.sub(chosen, source))
    if "<<" in text:
        raise ValueError(f"a section without an end: {text[text.index('<<') :][:40]!r}")
    return re.sub(r"\n{3,}", "\n\n", text)


def prompt(skill: Skill, request: str) -> str:
    """The skill as an MCP prompt: its text without frontmatter, with the request put in."""
    return _FRONTMATTER.sub("", render_skill(_source(skill), PROMPT)).replace(ARGUMENTS, request)


def skill_files(client: Client) -> Mapping[str, str]:
    """The files that give `client` the skills: project-relative path -> text."""
    files = {}
    for skill in Skill:
        path = client.skills.format(skill=skill)
        files[path] = _written(client, render_skill(_source(skill), client.voices))
        if client is CODEX:
            policy = (_folder() / f"{skill}.openai.yaml").read_text(encoding="utf-8")
            files[path.replace("SKILL.md", "agents/openai.yaml")] = policy
    return files


def _written(client: Client, text: str) -> str:
    """A skill in the client's form."""
    if client.form is Form.SKILL:
        return text
    call = client.typed.partition("code <")[0]
    body = _FRONTMATTER.sub("", text).replace(ARGUMENTS, client.arguments).replace("`/outcome ", f"`{call}outcome ")
    (about,) = re.findall(r"^description: (.*)$", text, re.MULTILINE)[:1]
    if client.form is Form.TOML:
        return f"description = {json.dumps(about)}\nprompt = '''\n{body}'''\n"
    return f"---\ndescription: {json.dumps(about)}\n---\n\n{body}" if client.form is Form.COMMAND else body


def _source(skill: Skill) -> str:
    return (_folder() / f"{skill}.md.in").read_text(encoding="utf-8")


def _folder() -> Path:
    return templates_dir() / "skills"
