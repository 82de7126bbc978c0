"""`serve`: the MCP server over stdin and stdout."""

import argparse
import gc
import sys
from pathlib import Path

_BY_HAND = """\
`serve` talks to a client over stdin: clients start it.
There is nothing to type here. You may want:
  code-intel-server init DIR        set a project up
  /code REQUEST                     in Claude Code
  $code REQUEST                     in Codex
  code-intel-server status --watch  see what it does
  code-intel-server doctor          find what is wrong"""


def main(arguments: list[str]) -> int:
    """Serve until the client is gone."""
    parser = argparse.ArgumentParser(
        prog="code-intel-server serve",
        description="Serve MCP over stdin and stdout. Clients start it; there is nothing to type by hand.",
    )
    parser.add_argument(
        "--project", type=Path, metavar="DIR", help="the project; else found by walking up from the working directory"
    )
    options = parser.parse_args(arguments)
    if sys.stdin is not None and sys.stdin.isatty():
        print(_BY_HAND, file=sys.stderr)
        return 2
    if options.project is not None and not options.project.is_dir():
        # Else lookups would fail one by one, and a sync would make the folder.
        print(f"code-intel-server: {options.project} is no folder", file=sys.stderr)
        return 1
    gc.disable()  # a fifth of the time that importing takes would go into looking for garbage; `serve` enables it again
    from code_intel_server.server import serve

    serve(Path.cwd(), options.project)
    return 0
