"""Changing a few values of one section of a YAML file and nothing else of it.

The parser says where each value is; the new text takes its place. The result is read again: where it does not say what
was meant (a form of YAML that resists patching), the file is refused rather than rewritten without its comments.
"""

import re
from collections.abc import Mapping

from code_intel_server.contract import Broken, Node, Scalar, Sequence, Table

_STEP = "  "
_COMMENTED = re.compile(
    # Behind a value all blanks belong to the comment, behind a key without one only the last.
    r"""\s*[\w'"-]+:(?:\s*+(?:"[^"\\]*"|'[^']*'|[|>][-+0-9]*+|[^\s"'#|>](?:[^"'#]*[^\s"'#])?)(\s+#.*)|\s*(\s#.*))"""
)


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
    lines = text.split("\n")
    header = _find(lines, section, 0, len(lines), "")
    if header is None:
        body = [] if not text.strip() else text.rstrip("\n").split("\n")
        return "\n".join([*body, f"{section}:", *_written(_STEP, name, value), ""])
    start, end = header + 1, _block_end(lines, header, "")
    if re.sub(r"(?<!\s)\s+#.*", "", lines[header]).rstrip() not in {f"{section}:", f"'{section}':", f'"{section}":'}:
        raise Broken(header + 1, f"{section} must be written as a block, one key a line")
    indent = next((_indent(line) for line in lines[start:end] if _is_content(line)), _STEP)
    at = _find(lines, name, start, end, indent)
    if at is None:
        return "\n".join([*lines[:start], *_written(indent, name, value), *lines[start:]])
    comment = _trailing_comment(lines[at])
    rest = lines[_value_end(lines, at, indent) :]
    return "\n".join([*lines[:at], *_written(indent, name, value, comment), *rest])


def _written(indent: str, name: str, value: str, comment: str = "") -> list[str]:
    """A key with its value: one line in double quotes, or a literal block for more than one line."""
    if "\n" not in value:
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t")
        return [f'{indent}{name}: "{escaped}"{comment}']
    # The figure says how far the block is indented: its first line may itself begin with spaces.
    block = (f"{indent}{_STEP}{line}" if line else "" for line in value.split("\n"))
    return [f"{indent}{name}: |{len(_STEP)}-{comment}", *block]


def _find(lines: list[str], name: str, start: int, end: int, indent: str) -> int | None:
    """The line of a key at exactly this indentation."""
    key = re.compile(rf"{indent}(?:{re.escape(name)}|'{re.escape(name)}'|\"{re.escape(name)}\")\s*:(?:\s|$)")
    return next((at for at in range(start, end) if key.match(lines[at])), None)


def _block_end(lines: list[str], header: int, indent: str) -> int:
    """The line after the last that is indented deeper than the header at `header`."""
    for at in range(header + 1, len(lines)):
        if _is_content(lines[at]) and len(_indent(lines[at])) <= len(indent):
            return at
    return len(lines)


def _value_end(lines: list[str], at: int, indent: str) -> int:
    """The line after a value: deeper lines are its own; blank lines and comments that follow at its level are not.

    In a literal block everything that is indented deeper belongs to it, comments of YAML included: they are text there.
    """
    literal = re.search(r":\s*[|>][-+0-9]*\s*(?:#.*)?$", lines[at]) is not None
    end = at + 1
    for here in range(at + 1, len(lines)):
        line = lines[here]
        if not line.strip():
            continue
        deeper = len(_indent(line)) > len(indent)
        if not deeper or (not literal and line.lstrip().startswith("#")):
            break
        end = here + 1
    return end


def _trailing_comment(line: str) -> str:
    """The comment behind a key's value, where it surely is one."""
    found = _COMMENTED.fullmatch(line)
    return found[1] or found[2] if found else ""


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" "))]


def _is_content(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


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
