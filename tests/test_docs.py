"""The documentation is true: generated pages are up to date, versions agree, links lead somewhere, commands run."""

import ast
import asyncio
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
from code_intel_server.cli.proof import SampleWork
from code_intel_server.cli.proof.agent import run_session
from code_intel_server.cli.words import TITLE_WIDTH, TITLES
from code_intel_server.contract.skills import Skill, prompt
from code_intel_server.flow.access import ACCESS
from code_intel_server.flow.phases import FLAG_ALIASES, FLAG_NAMES, STEPS, Phase
from code_intel_server.server import build
from code_intel_server.tools.lazy import LazyTools
from code_intel_server.workspace.project.config import Config
from code_intel_server.workspace.values import ProofStatus
from tests.cli.helpers import session, state
from tests.e2e.driver import ENVIRONMENT, git, repository
from tests.programs import ran

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), ROOT / ".github" / "CONTRIBUTING.md"]
_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
_SELF = ("./init-project.sh", "tests/run.sh")
_INSTALLS = ("uv ", "uvx ", "pipx ", "claude ", "codex ", "~/.local/share/")
"""First words of lines that install or register; tests/test_install.py and tests/e2e/clients run them."""


def commands(page: Path) -> list[str]:
    """The lines of a page's `sh` blocks, as a reader would type them."""
    return [line for block in _BLOCK.findall(page.read_text(encoding="utf-8")) for line in block.splitlines() if line]


def test_generated_pages_and_plugin_are_what_the_tables_say() -> None:
    done = ran([sys.executable, "docs/generate.py", "--check"], ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_version_is_the_same() -> None:
    server = json.loads((ROOT / "server.json").read_text())
    bundle = json.loads((ROOT / "manifest.json").read_text())
    plugin = json.loads((ROOT / "plugin" / ".claude-plugin" / "plugin.json").read_text())
    codex = json.loads((ROOT / "codex-plugin" / ".codex-plugin" / "plugin.json").read_text())
    found = {server["version"], bundle["version"], plugin["version"], codex["version"]}
    assert found == {__version__}
    assert f'version = "{__version__}"' in (ROOT / "pyproject.toml").read_text()
    assert f"## {__version__}" in (ROOT / "docs" / "CHANGELOG.md").read_text()
    assert f"mcp-name: {server['name']}" in (ROOT / "README.md").read_text()
    assert len(server["description"]) <= 100


def test_server_json_is_what_the_registry_takes_and_names_no_package_that_is_not_there() -> None:
    """What its schema of 2025-12-11 demands; the release adds the package that it has published."""
    server = json.loads((ROOT / "server.json").read_text())
    assert server["$schema"].endswith("/2025-12-11/server.schema.json")
    assert set(server) == {"$schema", "name", "title", "description", "version", "repository"}
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", server["name"])
    assert 1 <= len(server["title"]) <= 100
    assert {"url", "source"} <= set(server["repository"])
    assert re.fullmatch(r"\d+\.\d+\.\d+", server["version"])


@pytest.mark.needs("actionlint")
def test_the_workflows_pass_actionlint_and_pin_every_action_to_a_commit() -> None:
    workflows = [*(ROOT / ".github" / "workflows").glob("*.yml")]
    used = [use for file in workflows for use in re.findall(r"uses: (.+)", file.read_text(encoding="utf-8"))]
    assert [use for use in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", use)] == []
    done = ran(["actionlint", *workflows], ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in _LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


SPECIFICATION = ROOT / "docs" / "explanation" / "specification.md"
_REFERENCE = re.compile(r"\bSPEC (\d+(?:\.\d+)?)((?:, \d+(?:\.\d+)?)*)")
_WITH_WORDS = re.compile(r"\(SPEC (\d+(?:\.\d+)?),? (?!SPEC)([`A-Za-z_][\w` -]*)(?=[,;)])")
"""`(SPEC 4, READY impl)`: words that a reader looks for in the section."""


def _sections() -> dict[str, str]:
    """Number of each section of the specification → its text, that of the sections below it included."""
    found: dict[str, str] = {}
    open_: list[str] = []
    for line in SPECIFICATION.read_text(encoding="utf-8").replace("`", "").splitlines():
        if heading := re.match(r"#{2,3} (\d+(?:\.\d+)?)\.? \w", line):
            open_ = [number for number in open_ if heading[1].startswith(f"{number}.")] + [heading[1]]
        found |= {number: f"{found.get(number, '')}{line}\n" for number in open_}
    return found


def _within(words: str, section: str) -> bool:
    return words.casefold() in " ".join(section.split()).casefold()


def test_every_reference_to_the_specification_resolves_to_a_section_of_it() -> None:
    folders = (ROOT / name for name in ("src", "tests", "docs", "benchmarks", ".github"))
    files = [path for folder in folders for path in folder.rglob("*") if path.suffix in {".py", ".md", ".yml"}]
    sections, numbers, lost = _sections(), [], []
    for path in [*files, ROOT / "pyproject.toml"]:
        text = " ".join(path.read_text(encoding="utf-8").split())
        found = [number for one in _REFERENCE.finditer(text) for number in re.findall(r"\d[\d.]*", one[0])]
        said = [(one[1], part) for one in _WITH_WORDS.finditer(text) for part in one[2].replace("`", "").split(" and ")]
        lost += [f"{path}: SPEC {number}" for number in found if number not in sections]
        lost += [
            f"{path}: SPEC {number}, {part}" for number, part in said if not _within(part, sections.get(number, ""))
        ]
        lost += [f"{path}: {one}" for one in re.findall(r'"""(?:See )?SPEC.{20}', text)]  # behaviour comes first
        lost += [f"{path}: {one}" for one in re.findall(r"\bDESIGN \d", text)]  # a document that is not in the project
        numbers += found
    assert lost == []
    assert len(numbers) > 200


def test_server_access_table_specification_and_readme_name_the_same_tools(tmp_path: Path) -> None:
    listed = [tool.name for tool in asyncio.run(build(LazyTools(tmp_path)).list_tools())]
    source = (ROOT / "src/code_intel_server/server.py").read_text(encoding="utf-8")
    run_as = re.findall(r"\b(?:call|listed)\(\s*\"(\w+)\"", source)
    table = _sections()["2"].partition("\n\nL is")[0]
    specified = re.findall(r"^\| (?:(?!group)\w+ )?\| (\w+) \|.*\|.*\|$", table, re.MULTILINE)
    readme = (ROOT / "README.md").read_text(encoding="utf-8").partition("\n## Tools\n")[2].partition("\n## ")[0]
    shown = " · ".join(re.findall(r"^\| (?!group)[^|-]+ \| (.+) \|$", readme, re.MULTILINE)).split(" · ")
    for names in (listed, run_as, specified, shown):
        assert sorted(names) == sorted(ACCESS)


def test_the_specification_names_every_phase_flag_and_command() -> None:
    sections = _sections()
    assert [name for name in FLAG_NAMES if name not in sections["3.2"]] == []
    assert [place for place in STEPS if not re.search(rf"^\|.*\b{place.phase}\b", sections["4.2"], re.MULTILINE)] == []
    assert [name for name in COMMANDS if name not in sections["12"]] == []
    assert [name for name in Config.model_fields if name not in "".join(sections.values())] == []


def test_every_name_in_a_docstring_is_one_of_the_code() -> None:
    known = {"get_http_response"}  # an example
    named: dict[str, Path] = {}
    for path in (ROOT / "src").rglob("*.py"):
        lines = path.read_text(encoding="utf-8").splitlines()
        known |= {path.stem, path.parent.name}
        for node in ast.walk(ast.parse("\n".join(lines))):
            if (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
            ):
                named |= dict.fromkeys(re.findall(r"`(?:\w+\.)*([a-z]\w*_[a-z]\w*)[`(]", node.value.value), path)
                for number in range(node.lineno - 1, node.end_lineno or 0):
                    lines[number] = ""
        known |= set(re.findall(r"\w+", "\n".join(lines)))
    assert {name: path for name, path in named.items() if name not in known} == {}


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


def _machine(folder: Path, *, identity: bool = True) -> dict[str, str]:
    """A home of its own with our command on its PATH, and with `identity` a name for git."""
    launcher = folder / "bin" / "code-intel-server"
    launcher.parent.mkdir()
    launcher.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT / "src"}" exec "{sys.executable}" -m code_intel_server "$@"\n')
    launcher.chmod(0o755)
    home = folder / "home"
    home.mkdir()
    path = os.pathsep.join([str(launcher.parent), os.environ["PATH"]])
    ours = ENVIRONMENT if identity else {"GIT_CONFIG_SYSTEM": os.devnull}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "XDG_", "PYTHONPATH"))}
    return {**kept, **ours, "HOME": str(home), "PATH": path, "XDG_STATE_HOME": str(folder / "state")}


def _typed(lines: list[str], cwd: Path, environment: dict[str, str]) -> str:
    """Run lines in one shell that stops at the first failure; what it printed."""
    done = ran(["bash", "-euo", "pipefail", "-c", "\n".join(lines)], cwd, environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _answered(line: str) -> str:
    """A line as it runs where nobody can be asked; index and proof of a set-up have tests of their own."""
    if not re.match(r"code-intel-server (init|trust|abandon)\b", line) or re.search("--(check|revoke|uninstall)", line):
        return line
    return f"{line} --yes --no-proof --no-index" if " init" in line else f"{line} --yes"


def _ours(text: str) -> list[str]:
    """The commands of a page that a shell runs: in `sh` blocks, and ours within sentences; what lasts until it is ended is none."""
    found = re.findall(r"^```(?:ba)?sh\n(.*?)^```|`(code-intel-server [^`]+)`", text, re.MULTILINE | re.DOTALL)
    lines = [line for block, inline in found for line in (block or inline).splitlines() if line]
    return [_answered(line) for line in lines if not line.startswith(_INSTALLS) and "--watch" not in line]


def test_every_command_of_the_readme_runs(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", {"app.py": "def main() -> int:\n    return 0  # TODO: more\n"})
    lines = [line for line in commands(ROOT / "README.md") if not line.startswith((*_INSTALLS, *_SELF))]
    assert {line.split()[0] for line in lines} == {"code-intel-server"}
    said = _typed(["code-intel-server init . --no-proof --no-index", *lines], root, _machine(tmp_path))
    assert "0 broken" in said
    assert not (root / ".code-intel").exists()


def test_the_tutorial_leads_someone_without_a_git_identity_to_a_proven_merge(tmp_path: Path) -> None:
    before, _, after = (ROOT / "docs/tutorial/first-session.md").read_text(encoding="utf-8").partition("\n## 4.")
    machine, shop = _machine(tmp_path, identity=False), tmp_path / "shop"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "python"], check=True)  # has no pytest
    machine["PATH"] = os.pathsep.join([str(tmp_path / "python" / "bin"), machine["PATH"]])
    said = _typed(_ours(before), tmp_path, machine)
    assert "0 broken" in said
    assert re.search(r"^shop\.py:1: (def )?price\b", said, re.MULTILINE)
    assert "trusted already" in said
    command = (str(tmp_path / "bin" / "code-intel-server"), "serve")
    script = run_session(SampleWork(shop, "shop.py"), shop, command=command, environment=machine)
    assert script.responses[-1]["phase"] == "SESSION_COMPLETE"
    said = _typed(_ours(after), shop, machine)
    assert "Code-Intel-Proof: python3 -m unittest discover -s tests" in said
    assert "What stays" in said


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "how-to").glob("*.md")), ids=lambda page: page.stem)
def test_every_command_of_a_how_to_runs(tmp_path: Path, page: Path) -> None:
    files = {
        "src/app.py": "def main() -> int:\n    return 0\n",
        "lib/a.py": "A = 1\n",
        ".code-intel/config.json": _CONFIG,
    }
    root, machine = repository(tmp_path / "repo", files), _machine(tmp_path)
    lines = [line.replace("ENTRY", "20200101_000000/001-branch") for line in _ours(page.read_text(encoding="utf-8"))]
    if not lines:
        return
    _typed(["code-intel-server init . --no-proof --no-index --yes"], root, machine)
    git(root, "update-ref", "refs/code-intel/archive/20200101_000000/001-branch", "HEAD")
    kept = state()
    with session(root, kept, live=False):
        git(root, "branch", f"llm_task_{kept.session_id}")
    _typed(lines, root, machine)


_CONFIG = json.dumps({"verify_commands": [["true"]]})


_TABLES = {
    r"in (\d+) MB": ("server_costs.md", "memory at the answered initialize, MB", 2),
    r"costs a model ([\d.]+) KB": ("server_costs.md", "tools/list: names, descriptions, input schemas", 1),
    r"takes ([\d.]+) times": ("server_costs.md", "whole session, all gates, 1,000 files, ms", 3),
    r"answers in ([\d.]+) ms at 35,279 chunks": ("index_growth.md", "35,279", 1),
    r"chunks of code and ([\d.]+) ms at\s178,207": ("index_growth.md", "178,207", 1),
}
"""A figure of the README: the table that has it, the first cell of its row, its column."""


@pytest.mark.parametrize("pattern", _TABLES)
def test_the_figures_of_the_readme_are_those_of_the_tables(pattern: str) -> None:
    file, row, column = _TABLES[pattern]
    table = (ROOT / "benchmarks" / file).read_text(encoding="utf-8")
    cells = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith(f"| {row} |")]
    said = re.findall(pattern, (ROOT / "README.md").read_text(encoding="utf-8"))
    assert said == [cells[-1][column].removesuffix(" ×")]


def test_steps_phases_and_places_are_counted_alike_everywhere() -> None:
    counts = {"steps": 1 + len(STEPS), "phases": len(Phase), "places": len(STEPS)}
    pages = (
        "README.md",
        "docs/explanation/how-it-works.md",
        "docs/reference/phases.md",
        "docs/tutorial/first-session.md",
    )
    text = "\n".join((ROOT / page).read_text(encoding="utf-8") for page in pages)
    said = re.findall(r"\b(\d+) (steps|phases|places)\b", text)
    assert {what for _, what in said} == {*counts}
    assert [(number, what) for number, what in said if int(number) != counts[what]] == []


def test_the_clients_of_the_readme_are_those_the_tests_drive() -> None:
    drives = (ROOT / "tests/e2e/clients/installed.py").read_text(encoding="utf-8")
    claude, codex = re.findall(r"@(?:anthropic-ai/claude-code|openai/codex)@(\d+\.\d+)", drives)
    assert f"Claude Code {claude}, Codex {codex}," in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("word", ["submit", "gate", "lane", "Map", "Forest"])
def test_the_readme_explains_a_word_of_ours_where_it_first_stands(word: str) -> None:
    prose = re.sub(r"```.*?```|`[^`]*`", "", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    before, first, _ = prose.partition(next(iter(re.findall(rf"\b{word}s?\b", prose))))
    assert before.endswith("*"), f"{before[-80:]}{first}"


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
    assert re.search(r"^ +\d+ s  \w", said, re.MULTILINE), "how far pip is, while it installs"
    assert (tmp_path / ".local" / "bin" / "code-intel-server").exists()
    assert (root / ".mcp.json").is_file()
    venv = tmp_path / ".local/share/code-intel/venv"
    size = sum(path.lstat().st_blocks for path in venv.rglob("*")) * 512 / 2**20
    (told,) = re.findall(r"\((\d+) MB, of them", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert abs(size - int(told)) < 0.05 * size
    subprocess.run([venv / "bin/python", "-m", "pip", "check"], check=True)


def test_the_session_in_the_readme_is_written_as_status_watch_writes_it() -> None:
    lines = re.findall(r"^[✓✗↩] .*$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(lines) > 12
    for line in lines:
        step = int(line[3:5])
        assert line[1:].startswith(f"  {step:>2}  {TITLES[step]:<{TITLE_WIDTH}}  "), line
