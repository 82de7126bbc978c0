"""The small, safe part of YAML that a contract may use (SPEC 5), read into nodes that remember their line.

Built from parser events rather than from `yaml.load`: nothing is ever constructed, every scalar stays the text that was
written (`no` is "no", `1.10` is "1.10"), and aliases, tags, duplicate keys and deep nesting are refused with their line.
Importing this module loads PyYAML (25 ms), so the loader imports it on first use.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

import yaml
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)
from yaml.reader import ReaderError

from code_intel_server.contract.nodes import MAX_CONTRACT_BYTES, Broken, Node, Scalar, Sequence, Table

MAX_NESTING = 12
TOO_DEEP = f"nested deeper than {MAX_NESTING} levels"


@lru_cache(maxsize=4)
def parse_yaml(data: bytes) -> Table:
    """Parse one document whose root is a mapping; an empty document is an empty mapping. Raises Broken, nothing else.

    Remembered by content, so that every session start after the first costs no parsing.
    """
    if len(data) > MAX_CONTRACT_BYTES:
        raise Broken(1, f"larger than {MAX_CONTRACT_BYTES // 1024} KB")
    text = _decode(data)
    # libyaml is in every wheel; a PyYAML built without it parses the same events, more slowly.
    loader = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
    try:
        return _root(yaml.parse(text, Loader=loader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        # libyaml 0.2.6 looks ahead far enough to meet a limit of its own before ours: one refusal, the same words.
        problem = (error.problem or error.context or "not YAML").replace("exceeded maximum nesting depth", TOO_DEEP)
        raise Broken(mark.line + 1 if mark else 1, problem) from None
    except ReaderError as error:
        line = text.encode().count(b"\n", 0, error.position) + 1
        raise Broken(line, "a character that YAML does not allow") from None


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Broken(data.count(b"\n", 0, error.start) + 1, "not UTF-8") from None


def _root(events: Iterator[Event]) -> Table:
    next(events)  # the stream's start
    event = next(events)
    if isinstance(event, StreamEndEvent):
        return Table({}, 1)
    assert isinstance(event, DocumentStartEvent)  # the parser's own grammar
    root = _node(events, next(events), 1)
    if isinstance(root, Scalar) and not root.text:
        root = Table({}, root.line)
    if not isinstance(root, Table):
        raise Broken(root.line, "the file must be a mapping (section: ...)")
    while not isinstance(event := next(events), StreamEndEvent):
        if not isinstance(event, DocumentEndEvent):
            raise Broken(_line(event), "more than one document")
    return root


def _node(events: Iterator[Event], event: Event, depth: int) -> Node:
    line = _line(event)
    if depth > MAX_NESTING:
        raise Broken(line, TOO_DEEP)
    if isinstance(event, AliasEvent) or (isinstance(event, NodeEvent) and event.anchor):
        raise Broken(line, "anchors and aliases are not allowed")
    assert isinstance(event, ScalarEvent | SequenceStartEvent | MappingStartEvent)  # the parser's own grammar
    if event.tag is not None:
        raise Broken(line, "tags (!...) are not allowed")
    if isinstance(event, ScalarEvent):
        return Scalar(event.value, not event.style, line)
    if isinstance(event, SequenceStartEvent):
        return Sequence(_items(events, depth), line)
    return Table(_entries(events, depth), line)


def _items(events: Iterator[Event], depth: int) -> tuple[Node, ...]:
    items: list[Node] = []
    while not isinstance(event := next(events), SequenceEndEvent):
        items.append(_node(events, event, depth + 1))
    return tuple(items)


def _entries(events: Iterator[Event], depth: int) -> dict[str, Node]:
    items: dict[str, Node] = {}
    while not isinstance(event := next(events), MappingEndEvent):
        key = _node(events, event, depth + 1)
        if not isinstance(key, Scalar):
            raise Broken(key.line, "a key must be a plain name")
        if key.text in items:
            raise Broken(key.line, f"the key '{key.text}' stands twice")
        value = _node(events, next(events), depth + 1)
        # What is wrong with a name is looked for where the name is: a block begins only below it.
        items[key.text] = value if isinstance(value, Scalar) else replace(value, line=key.line)
    return items


def _line(event: Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1
