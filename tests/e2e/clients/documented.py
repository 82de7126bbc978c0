"""The lines of docs/how-to/unattended.md, which the clients' tests run as they stand there."""

import re
import shlex
from pathlib import Path

_PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "unattended.md"
_BLOCK = re.compile(r"^```bash\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LINES = [line for block in _BLOCK.findall(_PAGE.read_text(encoding="utf-8")) for line in block.splitlines()]

REQUEST = "add a --json option to the list command"
SET_UP, CLAUDE, CODEX, CLAUDE_ONCE, CODEX_ONCE = _LINES


def words(line: str, prompt: str) -> list[str]:
    """The words of a documented line, with another prompt."""
    return [prompt if REQUEST in word else word for word in shlex.split(line)]
