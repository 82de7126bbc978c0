"""What others' tools say of our tool list, scaffold and plugin: MCP Inspector in both protocol eras, `claude plugin validate`."""

import json
import os
import re
import sys
import zipfile
from pathlib import Path

import pytest

from code_intel_server.flow.access import ACCESS
from tests.e2e.clients import installed
from tests.e2e.clients.machine import Machine

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[3]
_VISIBLE_BYTES = 20_000


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspector_finds_no_schema_that_a_client_could_not_take(tmp_path: Path, era: str) -> None:
    machine = Machine.make(tmp_path)
    inspector, node = installed.inspector()
    path = os.pathsep.join([str(node.parent), str(machine.bin), os.environ["PATH"]])
    command = [str(inspector), "--cli", str(machine.bin / "code-intel-server"), "serve", "--method", "tools/list"]
    done = machine.run([*command, "--strict", "--protocol-era", era], PATH=path)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    tools = json.loads(done.stdout[done.stdout.index("{") :])["tools"]
    assert {tool["name"] for tool in tools} == set(ACCESS)
    seen = [{name: tool[name] for name in ("name", "description", "inputSchema")} for tool in tools]
    assert len(json.dumps(seen, ensure_ascii=False).encode()) < _VISIBLE_BYTES


def test_claude_code_accepts_plugin_and_marketplace(tmp_path: Path) -> None:
    machine = Machine.make(tmp_path)
    for folder in (ROOT / "plugin", ROOT):
        done = machine.run([installed.claude(), "plugin", "validate", folder])
        assert done.returncode == 0, done.stdout
        assert "Validation passed" in done.stdout


def _lines(client: str) -> list[str]:
    """What README and plugin have one type to register with a client."""
    text = "\n".join((ROOT / page).read_text(encoding="utf-8") for page in ("README.md", "plugin/README.md"))
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith(f"{client} ")]
    return [*dict.fromkeys(lines)]


_CONNECTED = "code-intel: code-intel-server serve - ✔ Connected"


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("plugin", {"plugin list": "✔ enabled", "mcp list": f"plugin:code-intel:{_CONNECTED}"}),
        ("mcp", {"mcp list": _CONNECTED}),
    ],
)
def test_the_lines_of_the_readme_register_with_claude_code(tmp_path: Path, what: str, says: dict[str, str]) -> None:
    machine = Machine.make(tmp_path, set_up=False)
    path = os.pathsep.join([str(installed.claude().parent), str(machine.bin), os.environ["PATH"]])
    for line in _lines("claude"):
        if line.startswith(f"claude {what} "):
            words = [str(ROOT) if word == "./" else word for word in line.split()]
            done = machine.run(words, PATH=path)
            assert done.returncode == 0, done.stdout + done.stderr
    for looks, said in says.items():
        assert said in machine.run(["claude", *looks.split()], PATH=path).stdout


def test_the_line_of_the_readme_registers_with_codex(tmp_path: Path) -> None:
    machine = Machine.make(tmp_path, set_up=False)
    path = os.pathsep.join([str(installed.codex().parent), str(machine.bin), os.environ["PATH"]])
    for line in _lines("codex"):
        assert machine.run(line.split(), PATH=path).returncode == 0
    listed = machine.run(["codex", "mcp", "list"], PATH=path).stdout
    assert re.search(r"^code_intel +code-intel-server +serve .*enabled", listed, re.MULTILINE), listed


def test_the_bundle_is_valid_and_holds_what_is_needed_to_run_it(tmp_path: Path) -> None:
    machine, packer = Machine.make(tmp_path), installed.mcpb()
    for name in ("manifest.json", "pyproject.toml", "README.md", "LICENSE", ".mcpbignore"):
        (machine.project / name).write_bytes((ROOT / name).read_bytes())
    for path in ("src/code_intel_server/__main__.py", "templates/claude/mcp.json", "tests/x.py", "docs/x.md"):
        (machine.project / path).parent.mkdir(parents=True, exist_ok=True)
        (machine.project / path).write_text("")
    done = machine.run([packer, "validate", "manifest.json"])
    assert done.returncode == 0, done.stdout + done.stderr
    done = machine.run([packer, "pack", ".", tmp_path / "out.mcpb"])
    assert done.returncode == 0, done.stdout + done.stderr
    held = set(zipfile.ZipFile(tmp_path / "out.mcpb").namelist())
    assert held >= {"manifest.json", "pyproject.toml", "src/code_intel_server/__main__.py", "templates/claude/mcp.json"}
    assert not {path.split("/")[0] for path in held} & {
        "tests", "docs", "benchmarks", "plugin", "codex-plugin", ".agents",
    }  # fmt: skip


@pytest.mark.needs("agnix")
@pytest.mark.parametrize("client", ["claude-code", "codex"])
def test_agnix_finds_no_error_in_the_scaffold(tmp_path: Path, client: str) -> None:
    program = Path(sys.executable).parent / "agnix"
    machine = Machine.make(tmp_path)
    done = machine.run([program, "-t", client, machine.project])
    assert "Found 0 errors" in done.stdout, done.stdout
