"""Where the packaged templates are: next to the package in a wheel, in the checkout's `templates/` otherwise."""

from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=1)
def templates_dir() -> Path:
    """The folder that holds `code-intel/`, `claude/` and `codex/`, of which there is no other copy."""
    packaged = Path(__file__).parents[1] / "_templates"
    return packaged if packaged.is_dir() else Path(__file__).parents[3] / "templates"
