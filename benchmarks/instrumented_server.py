"""The real server with two tools more, for server_costs.py: one that does nothing, and one that tells what children ran.

    instrumented_server.py PROJECT [--bare]

Every child goes through `process.run`. Here that door notes the argument list and the seconds; with --bare it is replaced
by Python's plain `subprocess.run`, so that the seconds are those of the same commands in the same states without our door.
"""

import gc
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

gc.disable()  # as cli/serve.py does
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from code_intel_server import process  # noqa: E402
from code_intel_server.server import build  # noqa: E402
from code_intel_server.tools.lazy import LazyTools  # noqa: E402

COMMANDS: list[tuple[str, float]] = []
_real = process.run


def noted(argv: Any, **options: Any) -> process.Completed:
    """Our door, with a note of what went through it."""
    began = time.perf_counter()
    try:
        return _real(argv, **options)
    finally:
        COMMANDS.append((subcommand(argv), time.perf_counter() - began))


def bare(
    argv: Any, *, cwd: Path, timeout: float, env: Any = None, stdin: bytes | None = None, **_: Any
) -> process.Completed:
    """The same child without our door."""
    began = time.perf_counter()
    given = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
    done: Any = subprocess.run(list(argv), cwd=cwd, env=env, timeout=timeout, capture_output=True, check=False, **given)  # type: ignore[call-overload]
    seconds = time.perf_counter() - began
    COMMANDS.append((subcommand(argv), seconds))
    return process.Completed(tuple(argv), done.returncode, done.stdout, done.stderr, seconds)


def subcommand(argv: Any) -> str:
    """`git diff-index` of a long argument list."""
    words = iter(argv)
    name = Path(next(words)).name
    for word in words:
        if word == "-c":
            next(words, None)
        elif not word.startswith("-"):
            return f"{name} {word}" if name == "git" else name
    return name


def main() -> None:
    """Serve."""
    process.run = bare if "--bare" in sys.argv else noted  # type: ignore[assignment]
    late = LazyTools(Path(sys.argv[1]), Path(sys.argv[1]))
    mcp = build(late)

    @mcp.tool()
    def do_nothing(data: dict[str, Any]) -> dict[str, Any]:
        """Answer at once."""
        return {"success": bool(data)}

    @mcp.tool()
    def commands_run() -> dict[str, Any]:
        """The children since the last question, with their seconds."""
        found = list(COMMANDS)
        COMMANDS.clear()
        return {"commands": found}

    late.load_soon()
    gc.freeze()
    gc.enable()
    mcp.run("stdio")
    late.close()


if __name__ == "__main__":
    main()
