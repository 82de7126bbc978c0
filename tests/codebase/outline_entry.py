"""Prints a file's syntax tree, then its entry for samples/outlines.txt: `python tests/codebase/outline_entry.py FILE`."""

import sys
from pathlib import Path

from code_intel_server.codebase.files.languages import language_of
from code_intel_server.codebase.syntax.structure import outline, parse


def entry(path: Path) -> list[str]:
    """The lines of a file's entry."""
    data = path.read_bytes()
    language = language_of(path.name, data)
    assert language is not None
    made = outline(data, language)
    rows = [f"{one.kind} {one.qualified} {one.start_line}-{one.end_line}" for one in made.symbols]
    return [f"== {path.name} {language.name}{' has_errors' if made.has_errors else ''}", *rows]


if __name__ == "__main__":
    path = Path(sys.argv[1])
    language = language_of(path.name, path.read_bytes())
    parsed = parse(path.read_bytes(), language) if language else None
    pending = [(parsed.root, 0, "")] if parsed else []
    while pending:
        node, depth, field = pending.pop()
        print(f"{'  ' * depth}{field}{node.type}  {node.start_point.row + 1}-{node.end_point.row + 1}")
        named = [(child, node.field_name_for_child(at)) for at, child in enumerate(node.children) if child.is_named]
        pending += [(child, depth + 1, f"{field}: " if field else "") for child, field in reversed(named)]
    print("\n".join(entry(path)))
