"""Every client of the table is set up, examined and taken out again, whatever its user has in its files (SPEC 12)."""

import io
import json
import os
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from code_intel_server.cli import hook, init
from code_intel_server.cli.doctor import clients as examined
from code_intel_server.cli.doctor.finding import Grade
from code_intel_server.cli.init.merging import read
from code_intel_server.cli.init.project_files import found
from code_intel_server.contract.clients import CLIENTS, CLIENTS_BY_NAME, Client, ClientFile
from tests.cli.helpers import Said, fingerprint, project, session, state

QUICK = ["--no-proof", "--no-index"]
NAMES = [client.name for client in CLIENTS]
MERGED = [(client, file) for client in CLIENTS for file in client.files if not file.ours]
IDS = [f"{client.name}-{file.name}" for client, file in MERGED]
NEW = [client.name for client in CLIENTS if client.name not in {"claude", "codex"}]


def hostile(file: ClientFile) -> str:
    """What a user may have in such a file: a BOM, comments, entries of their own beside ours."""
    if file.paths[0].endswith(".toml"):
        return "\ufeff# mine\n[mcp_servers.other]\ncommand = 'x' # why\n"
    top = file.server[0] if file.server else "hooks"
    return f'\ufeff// mine\r\n{{\r\n\t"{top}": {{ /* mine too */ "other": {{"command": "x"}} }}, // why\r\n\t"z": [1,],\r\n}}\r\n'


@pytest.mark.parametrize("client", CLIENTS, ids=NAMES)
def test_a_client_is_set_up_found_well_and_taken_out_without_a_trace(tmp_path: Path, client: Client) -> None:
    root = project(tmp_path / "repo")
    before = fingerprint(root)
    assert init.main([str(root), *QUICK, "--client", client.name]) == 0
    for file in client.files:
        text = (root / file.paths[0]).read_text()
        content = tomllib.loads(text) if file.paths[0].endswith(".toml") else {} if file.ours else json.loads(text)
        for name in file.server:
            content = content[name]
        assert "code-intel-server" in text
    grades = {one.name: one.grade for one in examined.registered(root) if one.grade is not Grade.UNUSED}
    assert set(grades) == {client.title.lower(), f"{client.name} hooks", f"{client.name} skill"}
    assert set(grades.values()) == {Grade.GOOD}
    assert init.main([str(root), "--uninstall"]) == 0
    assert fingerprint(root) == before


@pytest.mark.parametrize(("client", "file"), MERGED, ids=IDS)
def test_what_the_user_has_in_a_file_stays_byte_for_byte(tmp_path: Path, client: Client, file: ClientFile) -> None:
    text = hostile(file)
    root = project(tmp_path / "repo")
    path = root / file.paths[0]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode())
    before = fingerprint(root)
    assert init.main([str(root), *QUICK, "--client", client.name]) == 0
    written = path.read_bytes().decode()
    assert written.startswith("\ufeff") and written.count("\r\n") in {0, written.count("\n")}
    assert all(line.strip(",") in written for line in text.splitlines() if "other" not in line)
    assert "code-intel-server" in written
    path.write_bytes((written + ("# later\r\n" if path.suffix == ".toml" else "// later\r\n")).encode())
    assert init.main([str(root), "--uninstall"]) == 0
    rest = path.read_bytes().decode()
    assert "code-intel-server" not in rest
    assert "later" in rest
    assert "mine" in rest
    if path.suffix != ".toml":
        assert read(rest) == read(text)
    path.write_bytes(text.encode())
    assert fingerprint(root) == before


def _holding(data: bytes) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.write_bytes(data)

    return make


def _huge(path: Path) -> None:
    with path.open("wb") as stream:
        stream.truncate(8 << 20)


def _read_only(path: Path) -> None:
    path.write_bytes(b"")
    path.chmod(0o444)


def _leading_to(place: str) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.symlink_to(place.format(name=path.name))

    return make


BAD: dict[str, tuple[Callable[[Path], None], str]] = {
    "cut off": (_holding(b'{"a": '), "could not be read"),
    "no text": (_holding(b"\xff\xfe\x00"), "could not be read"),
    "UTF-16": (_holding('{"a": 1}'.encode("utf-16")), "could not be read"),
    "Latin-1": (_holding(b'{"a": "\xe9"}'), "could not be read"),
    "deep": (_holding(b"[" * 5000), "could not be read"),
    "a NUL": (_holding(b'{"a": "\0"}'), "could not be read"),
    "a string": (_holding(b'"x"'), "could not be read"),
    "our places hold something else": (
        _holding(b'{"mcpServers": [1], "mcp": 3, "servers": null, "hooks": "x"}'),
        "could not be read",
    ),
    "a name twice": (
        _holding(
            b'{"mcpServers": {}, "mcp": {}, "servers": {}, "hooks": {}, "mcpServers": {}, "mcp": {}, "a":1, "a":2}'
        ),
        "could not be read",
    ),
    "huge": (_huge, "larger than"),
    "read-only": (_read_only, "it is read-only"),
    "a folder": (lambda path: path.mkdir(), "not a regular file"),
    "a pipe": (os.mkfifo, "not a regular file"),
    "a link to itself": (_leading_to("{name}"), "symbolic link"),
    "a link outside": (_leading_to("../../outside/file"), "leads outside the project"),
}


def seen_at(path: Path) -> object:
    """A file, link or whatever else as it is, without reading what is no file."""
    look = path.lstat()
    content: object = path.readlink() if path.is_symlink() else path.read_bytes() if path.is_file() else b""
    return look.st_mode, look.st_ino, content


QUICK_PAIRS = {(kind, number % len(MERGED)) for number, kind in enumerate(BAD)}
"""Each kind once and each file once; every pair of them in the full run."""


@pytest.mark.parametrize(("kind", "client", "file"), [
    pytest.param(
        *(kind, client, file), id=f"{kind}-{client.name}-{file.name}",
        marks=() if (kind, number) in QUICK_PAIRS else pytest.mark.full)
    for kind in BAD for number, (client, file) in enumerate(MERGED)
])  # fmt: skip
def test_a_file_in_bad_shape_is_left_alone_and_named_and_all_else_is_set_up(
    tmp_path: Path, client: Client, file: ClientFile, kind: str, capsys: Said
) -> None:
    root = project(tmp_path / "repo")
    make, why = BAD[kind]
    path = root / file.paths[0]
    path.parent.mkdir(exist_ok=True)
    make(path)
    before = seen_at(path)
    assert init.main([str(root), *QUICK, "--client", client.name]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert f"left alone {file.paths[0]} (" in said
    assert why in said
    assert f"add the entry from {file.paths[0]}.new yourself" in said
    assert "code-intel" in (root / f"{file.paths[0]}.new").read_text()
    assert seen_at(path) == before
    assert all((root / one.paths[0]).is_file() for one in client.files if one is not file)
    assert (root / client.skills.format(skill="code")).is_file()
    grades = [one for one in examined.registered(root) if one.grade is not Grade.GOOD]
    assert file.server == () or [one for one in grades if one.grade is Grade.BAD]
    assert grades
    assert init.main([str(root), "--uninstall"]) == 0
    assert seen_at(path) == before
    assert not (root / f"{file.paths[0]}.new").exists()


@pytest.mark.parametrize(("client", "file"), MERGED, ids=IDS)
def test_a_file_made_read_only_later_stays_as_it_is_and_uninstall_says_so(
    tmp_path: Path, client: Client, file: ClientFile, capsys: Said
) -> None:
    root = project(tmp_path / "repo")
    path = root / file.paths[0]
    path.parent.mkdir(exist_ok=True)
    path.write_text("# mine\n" if path.suffix == ".toml" else '{"mine": 1}\n')
    assert init.main([str(root), *QUICK, "--client", client.name]) == 0
    path.write_text(path.read_text() + "\n")
    path.chmod(0o444)
    before = seen_at(path)
    assert init.main([str(root), *QUICK, "--client", client.name]) == 0, "nothing is to be changed in it"
    assert init.main([str(root), "--uninstall"]) == 0
    assert "it is read-only; take the code-intel entries out yourself" in capsys.readouterr().out
    assert seen_at(path) == before


@pytest.mark.parametrize(("client", "file"), MERGED, ids=IDS)
def test_a_link_within_the_project_stays_one_and_what_it_leads_to_gets_the_entry(
    tmp_path: Path, client: Client, file: ClientFile
) -> None:
    root = project(tmp_path / "repo")
    path, real = root / file.paths[0], root / "settings" / "real"
    real.parent.mkdir()
    real.write_text("")
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(os.path.relpath(real, path.parent))
    assert init.main([str(root), *QUICK, "--client", client.name]) == 0
    assert path.is_symlink()
    assert "code-intel" in real.read_text()
    assert init.main([str(root), "--uninstall"]) == 0
    assert path.is_symlink()
    assert real.read_text() == ""


def test_clients_are_found_by_their_program_and_by_their_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert found(tmp_path) == {"claude", "codex"}
    (tmp_path / ".gemini").mkdir()
    (tmp_path / "bin" / "copilot").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "copilot").chmod(0o755)
    assert found(tmp_path) == {"claude", "codex", "gemini", "copilot"}


def test_two_clients_that_share_a_file_share_it(tmp_path: Path) -> None:
    root = project(tmp_path / "repo")
    before = fingerprint(root)
    assert init.main([str(root), *QUICK, "--client", "vscode", "--client", "copilot"]) == 0
    assert json.loads((root / ".github/hooks/code-intel.json").read_text())["version"] == 1
    assert init.main([str(root), "--uninstall"]) == 0
    assert fingerprint(root) == before


def test_an_opencode_jsonc_is_used_where_the_user_has_one(tmp_path: Path) -> None:
    root = project(tmp_path / "repo", **{"opencode.jsonc": '{\n  // mine\n  "model": "x"\n}\n'})
    assert init.main([str(root), *QUICK, "--client", "opencode"]) == 0
    assert not (root / "opencode.json").exists()
    assert read((root / "opencode.jsonc").read_text())["mcp"]["code-intel"]["type"] == "local"


WRITES = {
    "gemini": {"hook_event_name": "BeforeTool", "tool_name": "write_file", "tool_input": {"file_path": "secrets/vault.py"}},
    "qwen": {"hook_event_name": "PreToolUse", "tool_name": "edit", "tool_input": {"file_path": "secrets/vault.py"}},
    "opencode": {"hook_event_name": "PreToolUse", "tool_name": "write", "tool_input": {"filePath": "secrets/vault.py"}},
    "cursor": {"hook_event_name": "preToolUse", "tool_name": "Write", "tool_input": {"file_path": "secrets/vault.py"}},
    "vscode": {"hookEventName": "PreToolUse", "tool_name": "multi_replace_string_in_file",
     "tool_input": {"replacements": [{"filePath": "app.py"}, {"filePath": "secrets/vault.py"}]}},
    "copilot": {"hook_event_name": "PreToolUse", "tool_name": "create", "tool_input": {"path": "secrets/vault.py"}},
}  # fmt: skip


@pytest.mark.parametrize("name", NEW)
def test_the_hook_refuses_a_write_in_the_dialect_of_the_client(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    root = project(tmp_path / "repo")
    spoken = "copilot" if name == "vscode" else name
    where: dict[str, object] = {"workspace_roots": [str(root)]} if name == "cursor" else {"cwd": str(root)}
    with session(root, state()):
        event = json.dumps(WRITES[name] | where)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(event.encode())))
        status = hook.main(["--client", spoken])
    said = capsys.readouterr()
    if spoken in {"cursor", "copilot"}:
        answer = json.loads(said.out)
        assert status == 0
        assert "deny" in {answer.get("permission"), answer.get("permissionDecision")}
    else:
        assert status == 2
    assert "secrets/vault.py was not explored" in said.out + said.err


def test_every_row_of_the_table_has_what_its_columns_need() -> None:
    assert len(CLIENTS_BY_NAME) == len(CLIENTS) == 8
    for client in CLIENTS:
        assert [file for file in client.files if file.server]
        assert client.evidence
