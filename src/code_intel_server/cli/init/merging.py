"""Adding our entries to configuration files that belong to the user, and taking them out again, without touching the rest.

JSON is edited as text: a small scanner finds where each value is, so that order, spacing, comments and trailing commas of
everything else stay as they are. TOML gets one block at its end. Whatever cannot be read for certain is refused (`Unclear`)
and left alone.
"""

import json
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

JsonPath = tuple[str, ...]

_SPACE = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_SCALAR = re.compile(r"true|false|null|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_REMARK = re.compile(r"[ \t]*//[^\n]*")
"""A comment behind a value, on its line: it belongs to that value."""
_BOM = "\ufeff"
_MAX_DEPTH = 100

TOML_TITLE = "# code-intel: written by `code-intel-server init`, removed by `init --uninstall`"


class Unclear(Exception):
    """A file that cannot be read for certain; `line` is 1-based."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"line {line}: {why}")
        self.line = line
        self.why = why


@dataclass(slots=True)
class _Value:
    """Where a value is: [start, end) of the text; members of an object, items of an array."""

    start: int
    end: int
    data: Any
    members: dict[str, tuple[int, "_Value"]] | None = None
    items: list["_Value"] | None = None


def in_line_ends(text: str, edit: Callable[[str], str]) -> str:
    """What `edit` makes of the text, its lines ended as those of the text are: all by CR LF, or as `edit` ends them."""
    plain = text.replace("\r\n", "\n")
    if plain == text or plain.replace("\n", "\r\n") != text:
        return edit(text)
    return edit(plain).replace("\n", "\r\n")


def read(text: str) -> Any:
    """The data of a JSON text with comments and trailing commas allowed. Raises Unclear."""
    return _scan(text).data


def with_member(text: str, path: JsonPath, value: object) -> str:
    """The text with `value` at `path`, objects on the way made where they are missing; as it is where it is there already.

    An existing other value at `path` is replaced. An empty text is an empty object. Raises Unclear.
    """
    if not text.strip():
        text = "{}\n"
    root = _scan(text)
    node, depth = root, 0
    while depth < len(path) - 1 and node.members is not None and path[depth] in node.members:
        node = node.members[path[depth]][1]
        depth += 1
    for name in reversed(path[depth + 1 :]):
        value = {name: value}
    if node.members is None:
        what = f"'{'.'.join(path[:depth])}'" if depth else "the file"
        raise Unclear(_line(text, node.start), f"{what} is no object")
    name = path[depth]
    if name in node.members:
        old = node.members[name][1]
        return text if old.data == value else text[: old.start] + _written(text, node, value) + text[old.end :]
    return _inserted(text, node, f"{json.dumps(name, ensure_ascii=False)}: {_written(text, node, value)}")


def with_item(text: str, path: JsonPath, item: object) -> str:
    """The text with `item` in the array at `path`, which is made where it is missing. Raises Unclear."""
    found = _at(_scan(text if text.strip() else "{}"), path)
    if found is None:
        return with_member(text, path, [item])
    if found.items is None:
        raise Unclear(_line(text, found.start), f"'{'.'.join(path)}' is no list")
    return text if item in found.data else _inserted(text, found, _written(text, found, item))


def without_member(text: str, path: JsonPath) -> str:
    """The text without the member at `path`, and without objects on the way that are empty then. Raises Unclear."""
    if not text.strip():
        return text
    holder = _at(_scan(text), path[:-1])
    if holder is None or holder.members is None or path[-1] not in holder.members:
        return text
    start, value = holder.members[path[-1]]
    text = _cut(text, holder, start, value.end)
    return _without_if_empty(text, path[:-1])


def without_item(text: str, path: JsonPath, item: object) -> str:
    """The text without `item` in the array at `path`, and without what is empty then. Raises Unclear."""
    if not text.strip():
        return text
    holder = _at(_scan(text), path)
    for value in (holder.items or []) if holder is not None else []:
        assert holder is not None  # the loop runs over its items
        if value.data == item:
            return _without_if_empty(_cut(text, holder, value.start, value.end), path)
    return text


def with_table(text: str, table: str, block: str) -> str:
    """A TOML text with our block at its end, between a title and a blank line; as it is where `table` is there already.

    Raises Unclear where the text is no TOML, or would be none afterwards.
    """
    present = _toml(text)
    for name in table.split("."):
        present = present.get(name) if isinstance(present, dict) else None
    if present is not None:
        return text
    gap = "" if not text.strip() else "\n" if text.endswith("\n") else "\n\n"
    joined = f"{text}{gap}{TOML_TITLE}\n{block.strip()}\n"
    try:
        _toml(joined)
    except Unclear as error:
        top = table.partition(".")[0]
        line = re.search(rf"^\s*{re.escape(top)}\b", text, re.MULTILINE)
        at = _line(text, line.end()) if line else error.line
        raise Unclear(at, f"'{top}' is written so that no [{table}] can stand behind it") from error
    return joined


def without_block(text: str) -> str:
    """A TOML text without our block: from its title to the next table that is not ours; remarks behind it stay."""
    block = re.compile(
        rf"(?:^\n)?^{re.escape(TOML_TITLE)}\n(?:(?!^\[(?!mcp_servers\.code_intel\b)).*\n?)*", re.MULTILINE
    )
    return block.sub(lambda match: _trailing_remarks(match[0]), text, count=1)


def _trailing_remarks(block: str) -> str:
    lines = block.splitlines(keepends=True)
    last = len(lines)
    while last and (not lines[last - 1].strip() or _is_remark(lines[last - 1])):
        last -= 1
    return "".join(lines[last:])


def _is_remark(line: str) -> bool:
    return line.startswith("#") and not line.startswith("# code-intel:")


def _toml(text: str) -> Any:
    try:
        return tomllib.loads(text.removeprefix(_BOM))
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"line (\d+)", str(error))
        raise Unclear(int(found[1]) if found else 1, str(error)) from error


# -- scanning --------------------------------------------------------------------------------------------------------


def _scan(text: str) -> _Value:
    begin = len(_BOM) if text.startswith(_BOM) else 0
    value = _value(text, _skip(text, begin), 0)
    behind = _skip(text, value.end)
    if behind != len(text):
        raise Unclear(_line(text, behind), "something stands behind the end")
    return value


def _value(text: str, at: int, depth: int) -> _Value:
    if depth > _MAX_DEPTH:
        raise Unclear(_line(text, at), "nested too deeply")
    if text.startswith("{", at):
        return _object(text, at, depth)
    if text.startswith("[", at):
        return _array(text, at, depth)
    match = _STRING.match(text, at) or _SCALAR.match(text, at)
    if match is None:
        raise Unclear(_line(text, at), "not valid JSON")
    try:
        return _Value(at, match.end(), json.loads(match[0]))
    except ValueError:
        raise Unclear(_line(text, at), "not valid JSON") from None


def _object(text: str, at: int, depth: int) -> _Value:
    value = _Value(at, at, {}, members={})
    assert value.members is not None  # set above
    at = _skip(text, at + 1)
    while not text.startswith("}", at):
        key = _STRING.match(text, at)
        if key is None:
            raise Unclear(_line(text, at), "not valid JSON")
        name = _value(text, at, depth).data
        colon = _skip(text, key.end())
        if not text.startswith(":", colon):
            raise Unclear(_line(text, colon), "not valid JSON")
        if name in value.members:
            raise Unclear(_line(text, at), f"'{name}' stands twice")
        member = _value(text, _skip(text, colon + 1), depth + 1)
        value.members[name] = (at, member)
        value.data[name] = member.data
        at = _next(text, member.end, "}")
    value.end = at + 1
    return value


def _array(text: str, at: int, depth: int) -> _Value:
    value = _Value(at, at, [], items=[])
    assert value.items is not None  # set above
    at = _skip(text, at + 1)
    while not text.startswith("]", at):
        item = _value(text, at, depth + 1)
        value.items.append(item)
        value.data.append(item.data)
        at = _next(text, item.end, "]")
    value.end = at + 1
    return value


def _next(text: str, at: int, closing: str) -> int:
    at = _skip(text, at)
    if text.startswith(",", at):
        return _skip(text, at + 1)
    if not text.startswith(closing, at):
        raise Unclear(_line(text, at), "not valid JSON")
    return at


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _at(root: _Value, path: JsonPath) -> _Value | None:
    for name in path:
        if root.members is None or name not in root.members:
            return None
        root = root.members[name][1]
    return root


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


# -- editing ---------------------------------------------------------------------------------------------------------


def _children(node: _Value) -> list[tuple[int, int]]:
    """[start, end) of each member (from its key) or item."""
    if node.members is not None:
        return [(start, value.end) for start, value in node.members.values()]
    return [(item.start, item.end) for item in node.items or []]


def _indent(text: str, at: int) -> str:
    """The white space at the beginning of the line that holds `at`."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip())]


def _step(text: str) -> str:
    """How this file indents: as its first indented line does, else two spaces."""
    found = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    return found[1] if found else "  "


def _inner(text: str, node: _Value) -> str:
    children = _children(node)
    if children and "\n" in text[node.start : children[0][0]]:
        return _indent(text, children[0][0])
    return _indent(text, node.start) + _step(text)


def _written(text: str, node: _Value, value: object) -> str:
    """A value as it is written inside `node`."""
    step = _step(text)
    dumped = json.dumps(value, ensure_ascii=False, indent="\t" if "\t" in step else len(step))
    return dumped.replace("\n", "\n" + _inner(text, node))


def _inserted(text: str, node: _Value, entry: str) -> str:
    """`entry` behind the last child of an object or array, on a line of its own."""
    inner, children = _inner(text, node), _children(node)
    if not children:
        return f"{text[: node.start + 1]}\n{inner}{entry}\n{_indent(text, node.start)}{text[node.end - 1 :]}"
    last = children[-1][1]
    comma = _skip(text, last)
    if text.startswith(",", comma):
        last = comma + 1
    else:
        text = f"{text[:last]},{text[last:]}"
        node, last = replace(node, end=node.end + 1), last + 1
    remark = _REMARK.match(text, last)
    last = remark.end() if remark else last
    return f"{text[:last]}\n{inner}{entry}{_rest(text, last, node)}"


def _rest(text: str, last: int, node: _Value) -> str:
    """What follows the last child, its closing bracket on a line of its own."""
    if "\n" not in text[last : node.end]:
        return f"\n{_indent(text, node.start)}{text[last:].lstrip(' ')}"
    return text[last:]


def _cut(text: str, node: _Value, start: int, end: int) -> str:
    """Without the child at [start, end), with the comma and the line that belonged to it."""
    children = _children(node)
    index = children.index((start, end))
    if index:
        before = children[index - 1][1]
        comma = _skip(text, before)
        between = (text[before:comma] + text[comma + 1 : start]).rstrip()
        return text[:before] + between + text[end:]
    if len(children) > 1:
        return text[:start] + text[children[1][0] :]
    closing = text[_next(text, end, text[node.end - 1]) :]
    return text[: node.start + 1] + closing


def _without_if_empty(text: str, path: JsonPath) -> str:
    node = _at(_scan(text), path)
    if path and node is not None and not node.data:
        return without_member(text, path)
    return text
