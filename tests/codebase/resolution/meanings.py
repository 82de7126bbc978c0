"""Small projects in which a mark stands before the name that is asked about."""

from collections.abc import Mapping
from pathlib import Path

from tests.codebase.lookup_project import explorer

MARK = "§"


def meaning(root: Path, files: Mapping[str, str]) -> list[str]:
    """`path:line` of the definitions of the one name behind a mark, else what the answer's note says."""
    [(path, text)] = [(path, text) for path, text in files.items() if MARK in text]
    before = text.partition(MARK)[0]
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    found = explorer(root, {**files, path: text.replace(MARK, "")}).find_definitions(at=f"{path}:{line}:{column}")
    unsure = any("not known" in note for note in found.notes)
    return (
        list(found.notes[:1])
        if unsure or not found.results
        else [f"{row.path}:{row.start_line}" for row in found.results]
    )


def bindings(root: Path, files: Mapping[str, str], symbol: str | None = None, at: str | None = None) -> dict[str, str]:
    """`path:line` → binding of every reference."""
    rows = explorer(root, files).find_references(symbol, at=at).results
    return {f"{row.path}:{row.start_line}": row.binding for row in rows}
