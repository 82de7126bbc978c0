"""What in a file of rules is the project's own: set-up writes a frame for them, and how our own steps are started."""

from collections.abc import Iterable
from functools import lru_cache

from code_intel_server.common.resources import templates_dir

_FRAMES = ("claude/CLAUDE.md", "codex/AGENTS.md")


def own_lines(lines: Iterable[str]) -> list[str]:
    """The lines that say something and are none of those set-up writes, stripped, in their order."""
    stripped = (line.strip() for line in lines)
    return [line for line in stripped if line and line not in _ours()]


@lru_cache(maxsize=1)
def _ours() -> frozenset[str]:
    texts = ((templates_dir() / name).read_text(encoding="utf-8") for name in _FRAMES)
    return frozenset(line.strip() for text in texts for line in text.splitlines())
