"""Every line of the documentation that installs this program does, in a home of its own; none needs a registry that has it not."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.e2e.driver import git, repository
from tests.programs import ran

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "plugin" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_INSTALLS = re.compile(r"^(?:uvx? |pipx ).*|(?<=`)uvx [^`]+", re.MULTILINE)
TOOLS = ("uv", "pipx")


def lines() -> list[str]:
    """The lines with which uv or pipx install, in the order of the pages."""
    found = [line for page in PAGES for line in _INSTALLS.findall(page.read_text(encoding="utf-8"))]
    return [*dict.fromkeys(line for line in found if " build " not in line)]


def shell(line: str, cwd: Path, environment: dict[str, str]) -> str:
    """What a line prints. It must succeed."""
    done = ran(["bash", "-c", line], cwd, environment)
    assert done.returncode == 0, f"{line}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


def home(folder: Path, *path: Path, **more: str) -> dict[str, str]:
    """The environment of somebody who has only just come."""
    (folder / "home").mkdir()
    bins = [str(folder / "home/.local/bin"), *map(str, path), "/usr/local/bin:/usr/bin:/bin"]
    kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_", "SSL_", "LANG"))}
    return {**kept, "HOME": str(folder / "home"), "PATH": os.pathsep.join(bins), **more}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone of what is here now, built and not: no environments, no caches."""
    folder = tmp_path_factory.mktemp("checkout") / "code-intel"
    leave = shutil.ignore_patterns(
        ".git", ".venv*", "__pycache__", ".*_cache", ".code-intel", "dist", "benchmarks", "tests"
    )
    shutil.copytree(ROOT, folder, ignore=leave)
    return repository(folder, {})


def works(command: Path, folder: Path, environment: dict[str, str]) -> None:
    """The installed command sets a project up and finds nothing broken."""
    root = repository(folder / "project", {"app.py": "def main() -> int:\n    return 0\n"})
    shell(f"{command} init . --no-proof --no-index --yes", root, environment)
    assert "def main" in shell(f"{command} find text 'def main'", root, environment)
    path = os.pathsep.join([str(command.parent), environment["PATH"]])
    assert "0 broken" in shell(f"{command} doctor", root, {**environment, "PATH": path})


def test_no_line_installs_from_a_registry_that_does_not_have_this_program() -> None:
    texts = [*PAGES, *(ROOT / "src").rglob("*.py"), *(ROOT / "templates").rglob("*.*")]
    named = re.compile(r"\b(?:install|uvx|add) [\"']?code-intel-server\b(?! serve)")
    assert [path.name for path in texts if named.search(path.read_text(encoding="utf-8", errors="replace"))] == []


def test_the_wheel_holds_all_that_a_set_up_needs(checkout: Path, tmp_path: Path) -> None:
    """Its dependencies are borrowed here; the long variants install them too."""
    shell(f"{sys.executable} -m hatchling build -t wheel", checkout, {**os.environ})
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    (wheel,) = (checkout / "dist").glob("*.whl")
    site = next((tmp_path / "venv/lib").glob("python*/site-packages"))
    install = [
        sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", str(site), str(wheel),
    ]  # fmt: skip
    subprocess.run(install, check=True)
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    command = "venv/bin/python -c 'import code_intel_server; print(code_intel_server.__file__)'"
    assert shell(command, tmp_path, home(tmp_path)).startswith(str(site))
    works(_launcher(tmp_path), tmp_path, {**os.environ, "HOME": str(tmp_path / "home")})


def _launcher(folder: Path) -> Path:
    """The console script, as an installer writes it."""
    script = folder / "venv/bin/code-intel-server"
    script.write_text(
        f"#!{folder}/venv/bin/python\nfrom code_intel_server.__main__ import main\nraise SystemExit(main())\n"
    )
    script.chmod(0o755)
    return script


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """uv and pipx from the registry, in an environment of their own."""
    folder = tmp_path_factory.mktemp("tools")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    done = subprocess.run([folder / "bin/pip", "install", "-q", *TOOLS], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"uv and pipx cannot be installed: {done.stderr.strip()[-200:]}")
    return folder / "bin"


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("line", lines())
def test_a_line_of_the_documentation_installs_a_command_that_works(
    line: str, checkout: Path, tools: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    caches = tmp_path_factory.getbasetemp()
    environment = home(tmp_path, tools, UV_CACHE_DIR=str(caches / "uv"), PIP_CACHE_DIR=str(caches / "pip"))
    if "dist/" in line:
        shutil.rmtree(checkout / "dist", ignore_errors=True)
        shell("uv build --wheel", checkout, environment)
    repository(tmp_path / "home/my-project", {"app.py": "def main() -> int:\n    return 0\n"})
    said = shell(line.replace("git+URL", f"git+file://{checkout}"), checkout, environment)
    if line.startswith("uvx"):
        assert "app.py:1: " in said
    else:
        works(tmp_path / "home/.local/bin/code-intel-server", tmp_path, environment)
        assert "uninstall" in shell("code-intel-server init . --uninstall", tmp_path / "project", environment)
    assert git(checkout, "status", "--porcelain") == ""
