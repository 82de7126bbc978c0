"""The documentation is true: generated pages are up to date, versions agree, links lead somewhere, commands run."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from code_intel_server import __version__
from code_intel_server.__main__ import COMMANDS
from code_intel_server.contract.skills import Skill, prompt
from code_intel_server.flow.phases import FLAG_ALIASES, FLAG_NAMES
from code_intel_server.workspace.values import ProofStatus
from tests.e2e.driver import ENVIRONMENT, repository

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), ROOT / ".github" / "CONTRIBUTING.md"]
_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")
_SELF = ("./init-project.sh", "tests/run.sh")


def commands(page: Path) -> list[str]:
    """The lines of a page's `sh` blocks, as a reader would type them."""
    return [line for block in _BLOCK.findall(page.read_text(encoding="utf-8")) for line in block.splitlines() if line]


def test_generated_pages_and_plugin_are_what_the_tables_say() -> None:
    done = subprocess.run(
        [sys.executable, "docs/generate.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_version_is_the_same() -> None:
    server = json.loads((ROOT / "server.json").read_text())
    bundle = json.loads((ROOT / "manifest.json").read_text())
    plugin = json.loads((ROOT / "plugin" / ".claude-plugin" / "plugin.json").read_text())
    found = {server["version"], server["packages"][0]["version"], bundle["version"], plugin["version"]}
    assert found == {__version__}
    assert f'version = "{__version__}"' in (ROOT / "pyproject.toml").read_text()
    assert f"## {__version__}" in (ROOT / "docs" / "CHANGELOG.md").read_text()
    assert f"mcp-name: {server['name']}" in (ROOT / "README.md").read_text()
    assert len(server["description"]) <= 100


def test_server_json_is_what_the_registry_takes() -> None:
    """What its schema of 2025-12-11 demands of a stdio server on PyPI; a version must be one version."""
    server = json.loads((ROOT / "server.json").read_text())
    assert server["$schema"].endswith("/2025-12-11/server.schema.json")
    assert set(server) <= {"$schema", "name", "title", "description", "version", "repository", "packages", "websiteUrl"}
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", server["name"])
    assert 1 <= len(server["title"]) <= 100
    assert {"url", "source"} <= set(server["repository"])
    (package,) = server["packages"]
    assert (package["registryType"], package["identifier"]) == ("pypi", "code-intel-server")
    assert package["transport"] == {"type": "stdio"}
    assert re.fullmatch(r"\d+\.\d+\.\d+", package["version"])
    assert all(one["type"] == "positional" and one["value"] for one in package["packageArguments"])
    assert package["packageArguments"][0]["value"] in COMMANDS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in _LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def _spellings(text: str) -> dict[str, str]:
    """Long → short spelling of each flag in a table, without values."""
    rows = re.findall(r"^\| `(--[a-z-]+)[^|]*\| *`?(-[a-z]+)?[^|]*\|", text, re.MULTILINE)
    return dict(rows)


def test_the_reference_lists_every_trailer_and_no_other() -> None:
    said = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    known = set(re.findall(r"Code-Intel-[A-Z][A-Za-z-]*[a-z]", said))
    known |= {f"Code-Intel-{status.capitalize()}" for status in (ProofStatus.UNPROVEN, ProofStatus.WAIVED)}
    page = (ROOT / "docs/reference/trailers.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(Code-Intel-[\w-]+)`", page, re.MULTILINE)) == known


def test_the_readme_and_the_reference_list_every_flag_in_both_spellings() -> None:
    table = _spellings(prompt(Skill.CODE, ""))
    assert table["--no-intervention"] == "-ni"
    assert {long for long, short in table.items() if not short} == {
        *("--no-verify", "--no-quality", "--no-doc-research", "--rebuild")
    }
    aliases = dict(FLAG_ALIASES)
    passed = {aliases.get(name, name) for name in (long[2:].replace("-", "_") for long in table)}
    assert passed - {"resume"} == set(FLAG_NAMES)
    for page in (ROOT / "README.md", ROOT / "docs" / "reference" / "phases.md"):
        assert _spellings(page.read_text(encoding="utf-8")) == table, page


def _machine(folder: Path) -> dict[str, str]:
    """A home of its own with our command on its PATH."""
    launcher = folder / "bin" / "code-intel-server"
    launcher.parent.mkdir()
    launcher.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT / "src"}" exec "{sys.executable}" -m code_intel_server "$@"\n')
    launcher.chmod(0o755)
    home = folder / "home"
    home.mkdir()
    path = os.pathsep.join([str(launcher.parent), os.environ["PATH"]])
    return {**os.environ, **ENVIRONMENT, "HOME": str(home), "PATH": path, "XDG_STATE_HOME": str(folder / "state")}


def _typed(lines: list[str], cwd: Path, environment: dict[str, str]) -> str:
    """Run lines in one shell that stops at the first failure; what it printed."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join(lines)],
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_command_of_the_readme_runs(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", {"app.py": "def main() -> int:\n    return 0  # TODO: more\n"})
    lines = commands(ROOT / "README.md")
    assert {line.split()[0] for line in lines} == {*_SELF, "code-intel-server"}
    ours = [line for line in lines if not line.startswith(_SELF)]
    said = _typed(["code-intel-server init . --no-proof --no-index", *ours], root, _machine(tmp_path))
    assert "0 broken" in said
    assert not (root / ".code-intel").exists()


def test_every_command_of_the_tutorial_runs(tmp_path: Path) -> None:
    said = _typed(commands(ROOT / "docs" / "tutorial" / "first-session.md"), tmp_path, _machine(tmp_path))
    assert "0 broken" in said
    assert "shop.py:1: function" in said


@pytest.mark.full
@pytest.mark.timeout(900)
def test_the_first_command_of_the_readme_ends_in_session_complete(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    shutil.copytree(
        ROOT, checkout, ignore=shutil.ignore_patterns(".git", ".venv*", "__pycache__", ".*_cache", ".code-intel")
    )
    root = repository(tmp_path / "my-project", {"app.py": "def main() -> int:\n    return 0\n"})
    environment = {**os.environ, **ENVIRONMENT, "HOME": str(tmp_path), "PYTHON": sys.executable}
    environment = {name: value for name, value in environment.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    line = next(line for line in commands(ROOT / "README.md") if line.startswith("./init-project.sh"))
    said = _typed([line], checkout, environment)
    assert "SESSION_COMPLETE after" in said
    assert (tmp_path / ".local" / "bin" / "code-intel-server").exists()
    assert (root / ".mcp.json").is_file()
