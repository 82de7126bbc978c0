"""Only plain, shallow, tagless YAML with unique keys is read; everything else is refused with its line."""

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from code_intel_server.contract import strict_yaml
from code_intel_server.contract.nodes import MAX_CONTRACT_BYTES, Broken, Node, Scalar, Sequence, Table
from code_intel_server.contract.strict_yaml import MAX_NESTING, parse_yaml


def plain(node: Node) -> object:
    """The node as dicts, lists and strings."""
    if isinstance(node, Table):
        return {name: plain(child) for name, child in node.items.items()}
    if isinstance(node, Sequence):
        return [plain(child) for child in node.items]
    return node.text


def refusal(text: str | bytes) -> Broken:
    """The refusal of a text."""
    with pytest.raises(Broken) as caught:
        parse_yaml(text if isinstance(text, bytes) else text.encode())
    return caught.value


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "~: 1\n", "''", "---\n...\n"])
def test_an_empty_document_is_an_empty_mapping_or_a_plain_one(text: str) -> None:
    assert plain(parse_yaml(text.encode())) in ({}, {"~": "1"})


def test_scalars_stay_the_text_that_was_written() -> None:
    root = parse_yaml(b"a: no\nb: 1.10\nc: 'true'\nd: true\ne: [x, 2]\nf: >-\n  one\n  two\n")
    assert plain(root) == {"a": "no", "b": "1.10", "c": "true", "d": "true", "e": ["x", "2"], "f": "one two"}
    quoted, unquoted = root.items["c"], root.items["d"]
    assert isinstance(quoted, Scalar)
    assert isinstance(unquoted, Scalar)
    assert (quoted.plain, unquoted.plain) == (False, True)


def test_every_node_knows_its_line() -> None:
    root = parse_yaml(b"a:\n  b:\n    - c\n    - d\n")
    inner = root.items["a"]
    assert isinstance(inner, Table)
    items = inner.items["b"]
    assert isinstance(items, Sequence)
    assert [item.line for item in items.items] == [3, 4]
    assert (root.line, inner.line, items.line) == (1, 1, 2), "a block is where its name stands"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: &x 1\nb: *x\n", 1, "anchors"),
        ("a: 1\nb: *x\n", 2, "anchors"),
        ("a: &x {}\n", 1, "anchors"),
        ("&x a: 1\n", 1, "anchors"),
        ("a: 1\nb: !!python/object/apply:os.system [id]\n", 2, "tags"),
        ("a: !!str 1\n", 1, "tags"),
        ("a: !local {b: 1}\n", 1, "tags"),
        ("!!map\na: 1\n", 1, "tags"),
        ("a: 1\nb: 2\na: 3\n", 3, "'a' stands twice"),
        ("a: {b: 1, b: 2}\n", 1, "'b' stands twice"),
        ("? [a, b]\n: 1\n", 1, "plain name"),
        ("? {a: b}\n: 1\n", 1, "plain name"),
        ("- a\n", 1, "mapping"),
        ("just text\n", 1, "mapping"),
        ("&anchor\n", 1, "anchors"),
        ("''\n---\na: 1\n", 2, "more than one document"),
        ("a: 1\n---\nb: 2\n", 2, "more than one document"),
        ("a: 1\nb: [1, 2\n", 3, "did not find"),
        ("a: 'open\n", 2, "end of stream"),
        ("a: 1\n\tb: 2\n", 2, "found"),
        ("a: 1\nb: x\x00y\n", 2, "does not allow"),
        ("a: 1\nb: \x1b[31m\n", 2, "does not allow"),
        (b"a: 1\nb: \xff\n", 2, "not UTF-8"),
        (b"\xff\xfea\x00:\x00", 1, "not UTF-8"),
    ],
)
def test_what_is_refused_is_named_with_its_line(text: str | bytes, line: int, words: str) -> None:
    broken = refusal(text)
    assert (broken.line, words in broken.problem) == (line, True), broken


def test_a_byte_order_mark_is_skipped() -> None:
    assert plain(parse_yaml(b"\xef\xbb\xbfa: 1\n")) == {"a": "1"}


@pytest.mark.parametrize("opening", ["[", "{a: ", "{? "])
def test_deep_nesting_is_refused_before_it_costs_anything(opening: str) -> None:
    text = "a: " + opening * ((MAX_CONTRACT_BYTES - 10) // len(opening))
    assert f"deeper than {MAX_NESTING}" in refusal(text).problem


def test_a_file_over_the_limit_is_refused_unread() -> None:
    assert refusal(b"a" * (MAX_CONTRACT_BYTES + 1)).problem == "larger than 256 KB"
    assert plain(parse_yaml(b"a: 1 #" + b"x" * (MAX_CONTRACT_BYTES - 6))) == {"a": "1"}


def test_without_libyaml_the_same_is_read_and_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml, "__with_libyaml__", False)
    strict_yaml.parse_yaml.cache_clear()
    assert plain(parse_yaml(b"a: [b, {c: d}]\n# pure\n")) == {"a": ["b", {"c": "d"}]}
    assert refusal("a: 1\nb: *pure\n").line == 2
    assert refusal("a: pure\nb: \x07\n").line == 2
    strict_yaml.parse_yaml.cache_clear()


def test_an_error_without_a_place_is_said_of_the_first_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise yaml.MarkedYAMLError

    monkeypatch.setattr(yaml, "parse", fail)
    broken = refusal("placeless: 1\n")
    assert (broken.line, broken.problem) == (1, "not YAML")


@settings(max_examples=300)
@given(st.text(alphabet="abc:-[]{}&*!|>'\"#%@`,? \n\t0~", max_size=80))
def test_any_text_is_read_or_refused_and_what_is_read_is_what_yaml_reads(text: str) -> None:
    try:
        ours = plain(parse_yaml(text.encode()))
    except Broken:
        return
    theirs = yaml.load(text, Loader=yaml.CBaseLoader) or {}  # noqa: S506 - BaseLoader makes strings only
    assert ours == theirs


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        assert isinstance(parse_yaml(data), Table)
    except Broken as broken:
        assert broken.line >= 1
