"""What a project already has that set-up can use: its check commands, and how a missing program is installed here."""

import contextlib
import json
import os
import re
import shlex
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from code_intel_server import process
from code_intel_server.workspace.git.repository import BARE, NO_REPOSITORY, NO_WORKTREE, NOT_INSTALLED

_MAX_BYTES = 1_000_000
_MAKE_TEST = re.compile(r"^test\s*:(?!=)", re.MULTILINE)
_PLACEHOLDER = "no test specified"

CommandProposal: TypeAlias = tuple[list[str], str]
"""A command, and what it lacks to run here if that is known already."""


def verify_commands(root: Path) -> tuple[list[list[str]], list[str]]:
    """Commands that prove the project and can run here, as its own files name them; and of those that cannot, what they lack.

    Nothing of the project is run to find that out.
    """
    found = [*_python(root), *_others(root)]
    if not found and _MAKE_TEST.search(_text(root / "Makefile")):
        found = [(["make", "test"], "")]
    lacks = [lack or _not_there(root, argv[0]) for argv, lack in found]
    can = [argv for (argv, _), lack in zip(found, lacks, strict=True) if not lack]
    return can, [f"{shlex.join(argv)} ({lack})" for (argv, _), lack in zip(found, lacks, strict=True) if lack]


def _not_there(root: Path, program: str) -> str:
    place = str(root / program) if "/" in program else program
    return "" if shutil.which(place) else f"{program} cannot be started here"


def _others(root: Path) -> Iterator[CommandProposal]:
    if _npm_test(root):
        manager = next((name for name, lock in _LOCKS if (root / lock).is_file()), "npm")
        yield [manager, "run", "test"] if manager == "bun" else [manager, "test"], ""
    for file, argv in _BUILD_FILES.items():
        if (root / file).is_file():
            yield argv, ""


_BUILD_FILES = {
    "Cargo.toml": ["cargo", "test", "--quiet"],
    "go.mod": ["go", "test", "./..."],
    "pom.xml": ["mvn", "--quiet", "test"],
    "gradlew": ["./gradlew", "test"],
}
_LOCKS = (
    ("pnpm", "pnpm-lock.yaml"),
    ("yarn", "yarn.lock"),
    ("bun", "bun.lock"),
    ("bun", "bun.lockb"),
    ("npm", "package-lock.json"),
)


def _python(root: Path) -> Iterator[CommandProposal]:
    """pytest where the project's environment has it, unittest where the tests are for that."""
    folder, tests = next(
        ((name, files) for name in _TEST_FOLDERS if (files := [*(root / name).glob("test_*.py")])), ("", [])
    )
    configured = _configures_pytest(root)
    if not (configured or tests):
        return
    if pytest := _pytest(root):
        yield [*pytest, "-q"], ""
    elif not configured and any("unittest" in _text(file) for file in tests):
        yield ["python3", "-m", "unittest", "discover", "-s", folder], ""
    else:
        yield ["python3", "-m", "pytest", "-q"], "python3 has no pytest"


_TEST_FOLDERS = ("tests", "test", ".")
_RUNNERS = (("uv.lock", "uv"), ("poetry.lock", "poetry"), ("pdm.lock", "pdm"))
_HAS_PYTEST = "import importlib.util, sys; sys.exit(importlib.util.find_spec('pytest') is None)"


def _pytest(root: Path) -> list[str]:
    """How pytest is started here; [] where nobody has it."""
    for folder in (".venv", "venv"):
        if any((root / folder).glob("lib/python*/site-packages/pytest/__init__.py")):
            return [f"{folder}/bin/python", "-m", "pytest"]
    for lock, program in _RUNNERS:
        if (root / lock).is_file() and shutil.which(program):
            return [program, "run", "pytest"]
    with contextlib.suppress(OSError):  # from the root: a pytest.py of the project is none
        if process.run(["python3", "-c", _HAS_PYTEST], cwd=Path("/"), timeout=20).ok:
            return ["python3", "-m", "pytest"]
    return []


def _configures_pytest(root: Path) -> bool:
    if (root / "pytest.ini").is_file() or "[tool:pytest]" in _text(root / "setup.cfg"):
        return True
    try:
        return "pytest" in tomllib.loads(_text(root / "pyproject.toml")).get("tool", {})
    except tomllib.TOMLDecodeError:
        return False


def _npm_test(root: Path) -> bool:
    try:
        package = json.loads(_text(root / "package.json") or "{}")
        script = package.get("scripts", {}).get("test", "")
    except (ValueError, AttributeError):
        return False
    return isinstance(script, str) and bool(script) and _PLACEHOLDER not in script


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > _MAX_BYTES:
            return ""
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def install_command(package: str) -> list[str]:
    """How this system installs a package; [] where we do not know."""
    sudo = [] if os.geteuid() == 0 else ["sudo"]
    for program, arguments in (
        ("apt-get", ["install", "-y"]),
        ("dnf", ["install", "-y"]),
        ("pacman", ["-S", "--noconfirm"]),
        ("zypper", ["install", "-y"]),
        ("apk", ["add"]),
    ):
        if shutil.which(program):
            return [*sudo, program, *arguments, _NAMES.get(program, {}).get(package, package)]
    for program in ("brew", "port"):
        if shutil.which(program):
            return [*(sudo if program == "port" else []), program, "install", package]
    return []


def without_git(why: str) -> str:
    """What makes git usable in a folder, where `why` it is not is what `open_repository` says."""
    if why == NOT_INSTALLED:
        return shlex.join(install_command("git")) or "install git with your package manager"
    if why == NO_REPOSITORY:
        return "git init, and a first commit"
    if why in {BARE, NO_WORKTREE}:
        return "set a worktree of it up (git worktree add makes one)"
    return "mend that"


_NAMES = {
    "dnf": {"universal-ctags": "ctags"},
    "pacman": {"universal-ctags": "ctags"},
    "apk": {"universal-ctags": "ctags"},
}
