"""The clients that a project can be set up for, one row each.

`init`, `doctor`, `--uninstall`, the skills and docs/reference/clients.md all follow from these rows and from the folder of the
same name under templates/, which holds the client's files as they are written where there is none.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Form(StrEnum):
    """How a client takes a procedure that its user calls by name."""

    SKILL = "skill"
    """SKILL.md in a folder of its name."""
    COMMAND = "command"
    """Markdown with a description in its frontmatter."""
    PLAIN = "plain command"
    """Markdown alone."""
    TOML = "TOML command"


@dataclass(frozen=True, slots=True)
class ClientFile:
    """A file of the client's that gets our entries, from the template `name` in the client's folder.

    `paths`: where the client looks for it; the first is made where there is none. `server` leads to our server in it. A file
    that is `ours` is written whole and taken out whole.
    """

    name: str
    paths: tuple[str, ...]
    server: tuple[str, ...] = ()
    hooks: bool = False
    ours: bool = False


@dataclass(frozen=True, slots=True)
class Client:
    """One client. `programs` on PATH and `traces` in a project say that somebody uses it; `typed` starts a session."""

    name: str
    title: str
    programs: tuple[str, ...]
    traces: tuple[str, ...]
    files: tuple[ClientFile, ...]
    form: Form
    skills: str
    voices: frozenset[str]
    """The sections of templates/skills that are for this client."""
    rules: str = "AGENTS.md"
    typed: str = "/code <what to do>"
    arguments: str = "$ARGUMENTS"
    """What the client replaces by the words behind a command."""
    approval: str = ""
    """What its user confirms once."""
    events: tuple[str, ...] = ()
    """The hook events that are registered, by the client's own names."""
    unable: tuple[str, ...] = ()
    """What it cannot do for a session."""
    evidence: str = ""
    """How the set-up is tested: driven for real, or its files compared with their documentation."""


_ARGUMENTS = frozenset({"any", "slash", "arguments"})
_BEHIND = frozenset({"any", "slash", "behind"})
_DRIVEN = "a whole session and a refusal, by the real client"
_COPILOT_HOOKS = ClientFile("hooks.json", (".github/hooks/code-intel.json",), hooks=True, ours=True)

CLAUDE = Client(
    "claude",
    "Claude Code",
    ("claude",),
    (".claude",),
    (
        ClientFile("mcp.json", (".mcp.json",), ("mcpServers", "code-intel")),
        ClientFile("settings.json", (".claude/settings.json",), hooks=True),
    ),
    Form.SKILL,
    ".claude/skills/{skill}/SKILL.md",
    frozenset({"claude", "arguments"}),
    rules=".claude/CLAUDE.md",
    approval="approve the server `code-intel` once when asked",
    events=("PreToolUse", "PostToolUse", "SessionStart", "UserPromptSubmit", "Stop"),
    evidence=_DRIVEN,
)
CODEX = Client(
    "codex",
    "Codex",
    ("codex",),
    (".codex",),
    (
        ClientFile("config.toml", (".codex/config.toml",), ("mcp_servers", "code_intel")),
        ClientFile("hooks.json", (".codex/hooks.json",), hooks=True),
    ),
    Form.SKILL,
    ".agents/skills/{skill}/SKILL.md",
    frozenset({"codex"}),
    typed="$code <what to do>",
    approval="trust the project and its hooks once when asked",
    events=("PreToolUse", "SessionStart", "UserPromptSubmit", "Stop"),
    unable=("it declines questions of the server by itself",),
    evidence=_DRIVEN,
)
OPENCODE = Client(
    "opencode",
    "OpenCode",
    ("opencode",),
    (".opencode", "opencode.json", "opencode.jsonc"),
    (
        ClientFile("opencode.json", ("opencode.json", "opencode.jsonc"), ("mcp", "code-intel")),
        ClientFile("code-intel.js", (".opencode/plugins/code-intel.js",), hooks=True, ours=True),
    ),
    Form.COMMAND,
    ".opencode/commands/{skill}.md",
    _ARGUMENTS,
    events=("chat.message", "tool.execute.before"),
    unable=("no hook holds the end of a turn", "no hook tells of compaction"),
    evidence=_DRIVEN,
)
GEMINI = Client(
    "gemini",
    "Gemini CLI",
    ("gemini",),
    (".gemini", "GEMINI.md"),
    (ClientFile("settings.json", (".gemini/settings.json",), ("mcpServers", "code-intel"), hooks=True),),
    Form.TOML,
    ".gemini/commands/code-intel/{skill}.toml",  # `/code` alone is renamed where a skill or prompt has that name too
    _ARGUMENTS,
    typed="/code-intel:code <what to do>",
    arguments="{{args}}",
    approval="trust the folder and its hooks once when asked",
    events=("BeforeTool", "SessionStart", "BeforeAgent", "AfterAgent"),
    unable=("no hook tells of compaction",),
    evidence=_DRIVEN,
)
QWEN = Client(
    "qwen",
    "Qwen Code",
    ("qwen",),
    (".qwen", "QWEN.md"),
    (ClientFile("settings.json", (".qwen/settings.json",), ("mcpServers", "code-intel"), hooks=True),),
    Form.COMMAND,
    ".qwen/commands/{skill}.md",
    _ARGUMENTS,
    arguments="{{args}}",
    approval="trust the folder once when asked",
    events=("PreToolUse", "SessionStart", "UserPromptSubmit", "Stop"),
    unable=("its model finds the tools by a search of its own",),
    evidence=_DRIVEN,
)
CURSOR = Client(
    "cursor",
    "Cursor",
    ("cursor", "cursor-agent"),
    (".cursor",),
    (
        ClientFile("mcp.json", (".cursor/mcp.json",), ("mcpServers", "code-intel")),
        ClientFile("hooks.json", (".cursor/hooks.json",), hooks=True),
    ),
    Form.PLAIN,
    ".cursor/commands/{skill}.md",
    _BEHIND,
    approval="enable the server `code-intel` once in its settings",
    events=("preToolUse", "sessionStart", "beforeSubmitPrompt", "stop"),
    unable=("no hook tells of compaction",),
    evidence="its files by their documented forms; the program itself was never run: it needs an account",
)
VSCODE = Client(
    "vscode",
    "VS Code with Copilot",
    ("code", "code-insiders"),
    (".vscode",),
    (ClientFile("mcp.json", (".vscode/mcp.json",), ("servers", "code-intel")), _COPILOT_HOOKS),
    Form.SKILL,
    ".github/skills/{skill}/SKILL.md",
    _BEHIND,
    approval="start the server `code-intel` once when asked",
    events=("PreToolUse", "SessionStart", "UserPromptSubmit", "Stop"),
    evidence="its files by their documented forms; the program itself was never run: it needs an account",
)
COPILOT = Client(
    "copilot",
    "Copilot CLI",
    ("copilot",),
    (".github/mcp.json", ".github/copilot"),
    (ClientFile("mcp.json", (".github/mcp.json",), ("mcpServers", "code-intel")), _COPILOT_HOOKS),
    Form.SKILL,
    ".github/skills/{skill}/SKILL.md",
    _BEHIND,
    approval="trust the folder once when asked",
    events=("PreToolUse", "SessionStart", "UserPromptSubmit", "Stop"),
    evidence=_DRIVEN,
)

CLIENTS: tuple[Client, ...] = (CLAUDE, CODEX, OPENCODE, GEMINI, QWEN, CURSOR, VSCODE, COPILOT)
CLIENTS_BY_NAME = {client.name: client for client in CLIENTS}
PROMPT = frozenset({"any", "prompt", "arguments"})
"""The sections for a client that takes the skills as MCP prompts."""


def clients_named(names: Sequence[str]) -> tuple[Client, ...]:
    """The rows of some clients, in the order of the table."""
    return tuple(client for client in CLIENTS if client.name in names)
