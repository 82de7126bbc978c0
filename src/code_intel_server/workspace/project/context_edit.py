"""Changing a few values of one section of a YAML file and nothing else of it.

The parser says where each value is; the new text takes its place. The result is read again: where it does not say what
was meant (a form of YAML that resists patching), the file is refused rather than rewritten without its comments.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from code_intel_server.contract import Broken, Node, Scalar, Sequence, Table

if TYPE_CHECKING:
    import yaml

_STEP = "  "
_BLOCK = re.compile(r"[|>][-+0-9]*(?P<comment>[^\n]*)")


def with_values(data: bytes, section: str, values: Mapping[str, str]) -> bytes:
    """`data` with the texts `values` in `section`, which is made at the end where it is missing. Raises Broken."""
    from code_intel_server.contract import parse_yaml

    before = parse_yaml(data)
    text = data.decode("utf-8-sig").replace("\r\n", "\n")
    for name, value in values.items():
        if _value(before, section, name) != value:
            text = _with_value(text, section, name, value)
    changed = text.encode()
    _check(before, parse_yaml(changed), section, values)
    return changed


def _with_value(text: str, section: str, name: str, value: str) -> str:
    import yaml

    key, content = _member(yaml.compose(text, Loader=yaml.SafeLoader), section)
    if key is None or content is None:
        return "\n".join([*text.rstrip("\n").split("\n"), f"{section}:", *_line(_STEP, name, value), ""]).lstrip("\n")
    header = key.start_mark.line + 1
    if isinstance(content, yaml.ScalarNode) and not content.value:
        indent, old = _STEP, None
    elif isinstance(content, yaml.MappingNode) and not content.flow_style and content.start_mark.line >= header:
        indent, old = " " * content.start_mark.column, _member(content, name)[1]
    else:
        raise Broken(header, f"{section} must be written as a block, one key a line")
    if old is None:
        lines = text.split("\n")
        return "\n".join([*lines[:header], *_line(indent, name, value), *lines[header:]])
    start, end = old.start_mark.index, old.end_mark.index
    block = _BLOCK.match(text, start) if isinstance(old, yaml.ScalarNode) and old.style in {"|", ">"} else None
    end = start + len(text[start:end].rstrip()) if block else end
    behind = text.find("\n", end) if "\n" in text[end:] else len(text)
    head, *rest = _written(indent, value)
    blank = "" if text[start - 1].isspace() else " "
    return (
        "\n".join([f"{text[:start]}{blank}{head}{block['comment'] if block else text[end:behind]}", *rest])
        + text[behind:]
    )


def _member(node: "yaml.Node | None", name: str) -> "tuple[yaml.Node | None, yaml.Node | None]":
    """A key of a mapping and its value."""
    pairs = node.value if node is not None and isinstance(node.value, list) else []
    return next(((key, value) for key, value in pairs if key.value == name), (None, None))


def _line(indent: str, name: str, value: str) -> list[str]:
    head, *rest = _written(indent, value)
    return [f"{indent}{name}: {head}", *rest]


def _written(indent: str, value: str) -> list[str]:
    """A value: one line in double quotes, or a literal block for more than one line."""
    if "\n" not in value:
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t")
        return [f'"{escaped}"']
    # The figure says how far the block is indented: its first line may itself begin with spaces.
    return [f"|{len(_STEP)}-", *(f"{indent}{_STEP}{line}" if line else "" for line in value.split("\n"))]


def _value(root: Table, section: str, name: str) -> str | None:
    table = root.items.get(section)
    node = table.items.get(name) if isinstance(table, Table) else None
    return node.text if isinstance(node, Scalar) else None


def _check(before: Table, after: Table, section: str, values: Mapping[str, str]) -> None:
    """The new file says what was meant, and what it said besides."""
    for name, value in values.items():
        if _value(after, section, name) != value:
            raise Broken(1, f"{section}.{name} cannot be changed in a file of this form")
    for name in before.items.keys() | after.items.keys():
        left_out = values if name == section else {}
        if _plain(before.items.get(name), left_out) != _plain(after.items.get(name), left_out):
            raise Broken(1, f"{section} cannot be changed in a file of this form")


def _plain(node: Node | None, left_out: Mapping[str, str]) -> object:
    """A node without its lines, and without some names; a missing or empty one is an empty mapping."""
    match node:
        case Scalar():
            return node.text or {}
        case Sequence():
            return [_plain(item, {}) for item in node.items]
        case Table():
            return {name: _plain(item, {}) for name, item in node.items.items() if name not in left_out}
        case None:
            return {}
