"""What each tool does, free of MCP. Each room is loaded when it is first asked for, as `tools.exploration`."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    from code_intel_server.tools import (
        caller,
        current_project,
        exploration,
        guard,
        learning,
        maintenance,
        services,
        writing,
    )

__all__ = ["caller", "current_project", "exploration", "guard", "learning", "maintenance", "services", "writing"]


def __getattr__(name: str) -> "ModuleType":
    """A room by its name, at its first use (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")


def load() -> None:
    """Load every room now."""
    for name in __all__:
        import_module(f"{__name__}.{name}")
