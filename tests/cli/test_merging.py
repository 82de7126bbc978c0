"""Our entries go into the user's files and out again, and everything else stays as it was."""

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from code_intel_server.cli.init.merging import (
    Unclear,
    read,
    with_item,
    with_member,
    with_table,
    without_block,
    without_item,
    without_member,
)

ENTRY = {"command": "code-intel-server", "args": ["serve"]}
PATH = ("mcpServers", "code-intel")

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
documents = st.dictionaries(
    st.text(), st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)
)


@settings(max_examples=40)
@given(documents, st.sampled_from([None, 0, 2, 4, "\t"]))
def test_any_json_is_read_as_the_standard_library_reads_it(document: dict[str, Any], indent: int | str | None) -> None:
    assert read(json.dumps(document, indent=indent)) == document


@given(documents, st.sampled_from([None, 2, "\t"]))
def test_a_member_goes_in_and_out_and_the_rest_stays(document: dict[str, Any], indent: int | str | None) -> None:
    document.pop("mcpServers", None)
    text = json.dumps(document, indent=indent)
    added = with_member(text, PATH, ENTRY)
    assert json.loads(added) == document | {"mcpServers": {"code-intel": ENTRY}}
    assert with_member(added, PATH, ENTRY) == added
    assert json.loads(without_member(added, PATH)) == document


@given(st.lists(st.text()), st.sampled_from([None, 2]))
def test_an_item_goes_in_once_and_out_again(items: list[str], indent: int | None) -> None:
    wanted = "mcp__code-intel"
    items = [item for item in items if item != wanted]
    text = json.dumps({"permissions": {"allow": items, "deny": ["x"]}}, indent=indent)
    added = with_item(text, ("permissions", "allow"), wanted)
    assert json.loads(added)["permissions"]["allow"] == [*items, wanted]
    assert with_item(added, ("permissions", "allow"), wanted) == added
    gone = json.loads(without_item(added, ("permissions", "allow"), wanted))
    assert gone["permissions"].get("allow", []) == items
    assert gone["permissions"]["deny"] == ["x"]


def test_a_comment_stays_with_the_value_it_stands_behind() -> None:
    text = '{\n  "mcpServers": {\n    "other": {"command": "x"} // the other\n  }\n}\n'
    added = with_member(text, PATH, ENTRY)
    assert '"other": {"command": "x"}, // the other\n' in added
    assert read(added)["mcpServers"] == {"other": {"command": "x"}, "code-intel": ENTRY}
    assert read(without_member(added, PATH)) == read(text)


def test_what_is_in_the_way_is_named() -> None:
    with pytest.raises(Unclear, match="line 1: the file is no object"):
        with_member("null\n", PATH, ENTRY)
    with pytest.raises(Unclear, match=r"line 2: 'mcp_servers' is written so that no \[mcp_servers.code_intel\] can"):
        with_table("a = 1\nmcp_servers = {}\n", "mcp_servers.code_intel", BLOCK)


def test_a_member_that_says_something_else_is_replaced_in_place() -> None:
    text = '{"mcpServers": {"code-intel": {"command": "old"}, "b": 1}}'
    assert with_member(text, PATH, {"command": "new"}).count("code-intel") == 1
    assert read(with_member(text, PATH, {"command": "new"})) == {
        "mcpServers": {"code-intel": {"command": "new"}, "b": 1}
    }


@pytest.mark.parametrize(("text", "line"), [
    ('{\n"a": }', 2), ('{"a": 1', 1), ("[1, 2", 1), ('{"a": 1}\nand more', 2), ('{"a": 1, "a": 2}', 1), ("{a: 1}", 1),
    ("[" * 200, 1), ('{"a" 1}', 1), ('{"a": "\\x"}', 1),
])  # fmt: skip
def test_what_cannot_be_read_for_certain_is_refused_with_its_line(text: str, line: int) -> None:
    with pytest.raises(Unclear) as unclear:
        read(text)
    assert unclear.value.line == line


def test_a_place_that_is_no_object_or_list_is_refused() -> None:
    with pytest.raises(Unclear):
        with_member('{"mcpServers": []}', PATH, ENTRY)
    with pytest.raises(Unclear):
        with_item('{"permissions": {"allow": "all"}}', ("permissions", "allow"), "x")


BLOCK = '[mcp_servers.code_intel]\ncommand = "c"\n\n[mcp_servers.code_intel.env]\nA = "b"\n'


@pytest.mark.parametrize("text", ["", "a = 1\n", '[projects."x y"]\ntrust_level = "trusted"', "a = 1\n\n\n"])
def test_a_table_goes_into_toml_and_out_again(text: str) -> None:
    added = with_table(text, "mcp_servers.code_intel", BLOCK)
    assert tomllib.loads(added)["mcp_servers"]["code_intel"]["env"] == {"A": "b"}
    assert with_table(added, "mcp_servers.code_intel", BLOCK) == added
    assert tomllib.loads(without_block(added)) == tomllib.loads(text)
    later = without_block(added + "\n[mine]\nx = 1\n")
    assert tomllib.loads(later) == tomllib.loads(text) | {"mine": {"x": 1}}


def test_toml_that_is_broken_or_would_be_is_refused() -> None:
    with pytest.raises(Unclear) as unclear:
        with_table("a = 1\nb = = 2\n", "mcp_servers.code_intel", BLOCK)
    assert unclear.value.line == 2
    with pytest.raises(Unclear):
        with_table("mcp_servers = { other = { command = 'x' } }\n", "mcp_servers.code_intel", BLOCK)
