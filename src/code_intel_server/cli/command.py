"""The command that clients and hooks start: where they will find it, once the terminal of the set-up is closed."""

import os
import shutil
import sys
from itertools import pairwise
from pathlib import Path

COMMAND = "code-intel-server"

# Folders of the environments that uvx and `pipx run` make for one call, put on PATH for that call, and throw away some day.
_PASSING = frozenset({"archive-v0", "environments-v2", "builds-v0"})


def lasting_command() -> str | None:
    """The command on PATH, None where there is none or only that of an environment made for one call (uvx, pipx run)."""
    folders = [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if folder and not _passing(folder)]
    return shutil.which(COMMAND, path=os.pathsep.join(folders))


def how_to_install() -> str:
    """What makes the command last, from where this one runs."""
    if _passing(sys.prefix):
        return "this ran in an environment made for one call: uv tool install (or pipx install) of the same source makes it last"
    called = Path(sys.argv[0]).absolute()
    # Called by its name it may be a link in a folder of such links, where the environment's own holds a Python as well.
    folder = called.parent if called.name == COMMAND else Path(sys.executable).parent
    return f"add its folder to PATH: {folder}"


def _passing(folder: str) -> bool:
    parts = Path(folder).parts
    return bool(_PASSING.intersection(parts)) or any({*pair} == {"pipx", ".cache"} for pair in pairwise(parts))
