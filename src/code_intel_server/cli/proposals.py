"""What a project already has that set-up can use: its check commands, and how a missing program is installed here."""

import json
import os
import re
import shlex
import shutil
import tomllib
from pathlib import Path
from typing import Any

from code_intel_server.workspace.git import BARE, NO_REPOSITORY, NO_WORKTREE, NOT_INSTALLED

_MAX_BYTES = 1_000_000
_MAKE_TEST = re.compile(r"^test\s*:(?!=)", re.MULTILINE)
_PLACEHOLDER = "no test specified"


def verify_commands(root: Path) -> list[list[str]]:
    """Commands that prove the project, as its own files name them; the most specific of each ecosystem."""
    found: list[list[str]] = []
    if _has_pytest(root):
        found.append(["python3", "-m", "pytest", "-q"])
    if _npm_test(root):
        manager = next((name for name, lock in _LOCKS if (root / lock).is_file()), "npm")
        found.append([manager, "run", "test"] if manager == "bun" else [manager, "test"])
    if (root / "Cargo.toml").is_file():
        found.append(["cargo", "test", "--quiet"])
    if (root / "go.mod").is_file():
        found.append(["go", "test", "./..."])
    if (root / "pom.xml").is_file():
        found.append(["mvn", "--quiet", "test"])
    if (root / "gradlew").is_file():
        found.append(["./gradlew", "test"])
    if not found and _MAKE_TEST.search(_text(root / "Makefile")):
        found.append(["make", "test"])
    return found


_LOCKS = (
    ("pnpm", "pnpm-lock.yaml"),
    ("yarn", "yarn.lock"),
    ("bun", "bun.lock"),
    ("bun", "bun.lockb"),
    ("npm", "package-lock.json"),
)


def _has_pytest(root: Path) -> bool:
    if (root / "pytest.ini").is_file() or "[tool:pytest]" in _text(root / "setup.cfg"):
        return True
    try:
        project: dict[str, Any] = tomllib.loads(_text(root / "pyproject.toml"))
    except tomllib.TOMLDecodeError:
        return False
    if "pytest" in project.get("tool", {}):
        return True
    return bool(project) and any(
        (root / name).is_dir() and any((root / name).glob("test_*.py")) for name in ("tests", "test")
    )


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
