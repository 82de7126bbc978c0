"""config.json: every setting has a default, every mistake a warning with its line, and none stops anyone."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from code_intel_server.common.resources import templates_dir
from code_intel_server.workspace.project.config import (
    ABOUT,
    WHOLE_FILE,
    Chroma,
    Config,
    ConfigFile,
    Finish,
    Headless,
    Resolution,
    VerifyCommand,
)

V1_16 = """{
  "version": "1.0",
  "embedding_model": "multilingual-e5-small",
  "source_dirs": ["src", "lib"],
  "exclude_patterns": ["**/node_modules/**", "**/__pycache__/**"],
  "chunk_strategy": "ast",
  "chunk_max_tokens": 512,
  "sync_ttl_hours": 1,
  "sync_on_start": true
}
"""


def loaded(tmp_path: Path, content: str | bytes | dict[str, object]) -> ConfigFile:
    """The configuration of a file with that content."""
    path = tmp_path / "config.json"
    if isinstance(content, dict):
        content = json.dumps(content, indent=1)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return ConfigFile.load(path)


def test_no_file_gives_the_defaults_and_says_nothing(tmp_path: Path) -> None:
    found = ConfigFile.load(tmp_path / "config.json")
    assert found == ConfigFile(tmp_path / "config.json")
    assert found.config.embedding_model == "bundled"
    assert not found.lost("verify_commands")


def test_the_example_of_the_design_document_is_taken_as_it_stands(tmp_path: Path) -> None:
    found = loaded(tmp_path, V1_16)
    assert found.warnings == ()
    assert found.config.source_dirs == ("src", "lib")
    assert found.config.embedding_model == "multilingual-e5-small"
    assert len(found.digest) == 64


def test_the_packaged_configuration_says_what_the_defaults_are(tmp_path: Path) -> None:
    found = ConfigFile.load(templates_dir() / "code-intel" / "config.json")
    assert found.warnings == ()
    differing = {name for name in Config.model_fields if getattr(found.config, name) != getattr(Config(), name)}
    assert differing <= {"source_dirs", "exclude_patterns"}


def test_verify_commands_are_lists_or_objects(tmp_path: Path) -> None:
    commands = [["python", "-c", "a\n\tb"], {"argv": ["npm", "test"], "timeout": 60, "cwd": "web"}]
    found = loaded(tmp_path, {"verify_commands": commands, "finish": "branch"})
    assert found.warnings == ()
    assert found.config.verify_commands == (
        VerifyCommand(argv=("python", "-c", "a\n\tb")),
        VerifyCommand(argv=("npm", "test"), timeout=60.0, cwd="web"),
    )
    assert found.config.verify_commands[0].timeout == 300
    assert found.config.finish is Finish.BRANCH


def test_chroma_and_headless_have_their_forms(tmp_path: Path) -> None:
    found = loaded(
        tmp_path,
        {
            "chroma": {"mode": "http", "host": "db", "port": 443, "ssl": True, "headers": {"X-Chroma-Token": "t"}},
            "headless": {"stale_branches": "delete", "escalation": "continue"},
        },
    )
    assert found.warnings == ()
    assert (found.config.chroma.port, found.config.headless.stale_branches) == (443, "delete")
    defaults = Config()
    assert (defaults.headless.stale_branches, defaults.headless.escalation) == ("continue", "stop")


def test_resolution_names_an_index_and_servers_which_are_commands_to_trust(tmp_path: Path) -> None:
    server = {"language_servers": {"python": ["pyright-langserver", "--stdio"]}}
    found = loaded(tmp_path, {"resolution": {"scip": "./build/index.scip", **server}})
    assert (found.warnings, found.config.resolution.scip) == ((), "build/index.scip")
    assert any(found.commands)
    assert not any(loaded(tmp_path, {"resolution": {"scip": "index.scip"}}).commands)


def test_a_source_folder_counts_as_it_is_listed_however_it_is_written(tmp_path: Path) -> None:
    found = loaded(tmp_path, {"source_dirs": ["./src/", "lib//", " src/../lib ", "web//app/", "."]})
    assert found.config.source_dirs == ("src", "lib", "lib", "web/app", ".")
    assert found.warnings == ()


def test_that_no_source_folder_is_there_is_said(tmp_path: Path) -> None:
    """Else the index is empty, and every search by meaning finds nothing without a word."""
    folder = tmp_path / ".code-intel"
    folder.mkdir()
    found = loaded(folder, {"source_dirs": ["src", "lib"]})
    assert found.warnings == ("line 2: source_dirs: src, lib: none of them is in the project, so nothing is indexed",)
    assert not found.lost("source_dirs")
    for no_name in ("x" * 4000, "a\0b"):
        (warning,) = loaded(folder, {"source_dirs": [no_name]}).warnings
        assert "none of them is in the project" in warning
        assert warning.isprintable()
    (tmp_path / "lib").mkdir()
    assert loaded(folder, {"source_dirs": ["src", "lib"]}).warnings == ()


def test_an_unknown_key_is_named_with_its_line_and_the_rest_serves(tmp_path: Path) -> None:
    found = loaded(tmp_path, '{\n "chunk_max_tokens": 256,\n "embeding_model": "x"\n}')
    assert found.warnings == ("line 3: unknown key 'embeding_model' (did you mean 'embedding_model'?)",)
    assert found.config.chunk_max_tokens == 256
    assert found.fell_back == frozenset()


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("verify_comands", [], "unknown key 'verify_comands' (did you mean 'verify_commands'?)"),
        ("colour", 1, "unknown key 'colour' (known are version, embedding_model, "),
        ("finish", "squash", "finish: must be 'merge' or 'branch'; the default serves"),
        ("chroma", {"prot": 1}, "chroma.prot: unknown key (did you mean 'port'?); the default serves"),
        ("headless", {"zz": 1}, "headless.zz: unknown key (known are stale_branches, escalation); "),
        ("verify_commands", ["pytest -q"], 'verify_commands.0: a list of arguments, for example ["python3", '),
        ("verify_commands", [{"cmd": ["pytest"]}], "verify_commands.0.argv: is missing; the default serves"),
        ("chunk_max_tokens", "512", "chunk_max_tokens: must be a valid integer; the default serves"),
        ("source_dirs", [1], "source_dirs.0: must be a valid string; the default serves"),
        ("embedding_model", {"a": {"b": 1}}, "embedding_model: must be a valid string; the default serves"),
        ("verify_commands", "pytest", "verify_commands: must be a list; the default serves"),
        ("verify_commands", [[]], "verify_commands.0.argv: must have at least 1 item; the default serves"),
        ("chroma", "local", "chroma: must be an object; the default serves"),
        ("headless", [], "headless: must be an object; the default serves"),
        ("exclude_patterns", ["*.min.js", "[a"], "exclude_patterns: '[a' cannot be read: a [ without its ]"),
    ],
)
def test_a_problem_is_told_in_words_with_what_is_allowed(tmp_path: Path, key: str, value: object, said: str) -> None:
    assert said in loaded(tmp_path, {key: value}).warnings[0]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("chunk_max_tokens", "512"),
        ("chunk_max_tokens", 1),
        ("chunk_max_tokens", True),
        ("sync_on_start", "yes"),
        ("sync_ttl_hours", -1),
        ("sync_ttl_hours", None),
        ("source_dirs", "src"),
        ("source_dirs", [1]),
        ("exclude_patterns", {}),
        ("exclude_patterns", ["["]),
        ("finish", "rebase"),
        ("chroma", {"mode": "remote"}),
        ("chroma", {"prot": 1}),
        ("chroma", {"port": 0}),
        ("headless", []),
        ("resolution", {"scip": "../index.scip"}),
        ("resolution", {"scip": "/index.scip"}),
        ("resolution", {"lsp": {}}),
        ("resolution", {"language_servers": {"python": []}}),
        ("resolution", {"language_servers": {"python": "pyright --stdio"}}),
        ("resolution", {"language_servers": {"python": ["pyright\0"]}}),
        ("verify_commands", ["pytest -q"]),
        ("verify_commands", [[]]),
        ("verify_commands", [["  "]]),
        ("verify_commands", [["pytest", "a\0b"]]),
        ("verify_commands", [["pytest", "\x1b[2J"]]),
        ("verify_commands", [["pytest", "\ud800"]]),
        ("verify_commands", [["pytest", 1]]),
        ("verify_commands", [{"argv": ["pytest"], "timeout": 1e9}]),
        ("verify_commands", [{"cmd": ["pytest"]}]),
        ("verify_commands", "pytest"),
        ("verify_commands", None),
    ],
)
def test_a_wrong_value_falls_back_alone_and_is_named_with_its_line(tmp_path: Path, key: str, value: object) -> None:
    found = loaded(tmp_path, {"embedding_model": "kept", key: value})
    assert getattr(found.config, key) == getattr(Config(), key)
    assert found.config.embedding_model == "kept"
    assert found.warnings
    assert all(warning.startswith("line 3: ") and warning.isprintable() for warning in found.warnings)
    assert found.lost(key)
    assert not found.lost("embedding_model")


@pytest.mark.parametrize(
    ("content", "warning"),
    [
        (b'{\n "a": 1,\n}', ("line 3: ", "line 2: ")),  # the brace, or since Python 3.13 the comma
        (b"", "line 1: "),
        (b"[]", "line 1: the file must be an object"),
        (b'{\n"version": "1",\n"version": "2"}', "line 2: 'version' stands twice"),
        (b'{\n"sync_ttl_hours": NaN}', "line 1: NaN is no number"),
        (b'{\n\n"a": "\xff"}', "line 3: not UTF-8"),
        (b"[" * 100_000, "line 1: "),
        (b'{"a": ' + b"9" * 5000 + b"}", "line 1: "),
        (b" " * 300_000, "line 1: larger than 256 KB"),
    ],
    ids=["comma", "empty", "list", "twice", "nan", "latin", "deep", "digits", "large"],
)
def test_a_broken_file_gives_the_defaults_and_names_the_line(
    tmp_path: Path, content: bytes, warning: str | tuple[str, ...]
) -> None:
    found = loaded(tmp_path, content)
    assert found.config == Config()
    assert len(found.warnings) == 1
    assert found.warnings[0].startswith(warning)
    assert found.fell_back == {WHOLE_FILE}
    assert found.lost("verify_commands"), "a guard that cannot be read must not pass for one that was never wanted"


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.mkdir(), lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_plain_file_is_not_read(tmp_path: Path, make: object) -> None:
    assert callable(make)
    make(tmp_path / "config.json")
    found = ConfigFile.load(tmp_path / "config.json")
    assert found.config == Config()
    assert found.lost("verify_commands")


def test_a_byte_order_mark_is_taken_and_the_digest_is_of_the_bytes(tmp_path: Path) -> None:
    plain, marked = loaded(tmp_path, b'{"version": "1.0"}'), loaded(tmp_path, b'\xef\xbb\xbf{"version": "1.0"}')
    assert marked.warnings == ()
    assert plain.config == marked.config
    assert plain.digest != marked.digest


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*Config.model_fields, "mode", "argv", "x"]), inner, max_size=4)))  # fmt: skip
def test_no_json_at_all_stops_a_start(tmp_path_factory: pytest.TempPathFactory, content: object) -> None:
    path = tmp_path_factory.getbasetemp() / "config.json"
    path.write_text(json.dumps(content))
    found = ConfigFile.load(path)
    assert isinstance(found.config, Config)


@pytest.mark.parametrize("folder", ["/etc", "../other", "src/../..", ".."])
def test_a_source_folder_outside_the_project_is_said(tmp_path: Path, folder: str) -> None:
    found = loaded(tmp_path, {"source_dirs": ["src", folder]})
    assert found.warnings == ("line 2: source_dirs: folders of the project, named from its root; the default serves",)
    assert found.config.source_dirs == ()


def test_an_empty_pattern_does_not_exclude_everything(tmp_path: Path) -> None:
    found = loaded(tmp_path, {"exclude_patterns": ["**/gen/**", " "]})
    assert found.config.exclude_patterns == Config().exclude_patterns
    assert "an empty pattern would exclude everything" in found.warnings[0]


def test_the_reference_tells_of_every_setting_what_it_is_for() -> None:
    parts: dict[str, type[BaseModel]] = {
        "verify_commands": VerifyCommand,
        "headless": Headless,
        "chroma": Chroma,
        "resolution": Resolution,
    }
    settings = {*Config.model_fields} - {"headless", "chroma", "resolution"}
    settings |= {f"{name}.{key}" for name, part in parts.items() for key in part.model_fields}
    assert {*ABOUT} == settings
