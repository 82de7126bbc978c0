"""Outlines of real files in thirty languages and more beside what a second reader wrote down from the source alone, and beside ctags.

    python benchmarks/outlines.py FOLDER [--wrong]

FOLDER holds the files as OWNER/NAME/PATH, at the commits `outlines_expected.json` names; one that is not there, or has another
hash, is named and not measured. A symbol is (type or callable, name, line of the name); beside that its scope is compared, the
innermost type or callable around it. Writes benchmarks/outlines.md, with `outlines.notes.md` below it; --wrong also prints
every difference.

What the reader counted. Types: whatever names a type, aliases too; a block that gives a type its methods (impl, @implementation,
extension) under the name of the type, an instance under that of its class. Callables: what is declared or bound as a function
under a name of its own: member declarations, aliases of methods, methods of an object that is bound to a name, tests with a
name. Not: closures without a name, accessors of properties, modules, packages and namespaces. Clauses of one function are one;
functions of different arity are not clauses of each other.
"""

import argparse
import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from measuring import HERE, table, write

from code_intel_server.codebase.files.languages import language_of
from code_intel_server.codebase.symbols import ctags, kinds
from code_intel_server.codebase.syntax.structure import outline
from code_intel_server.codebase.syntax.values import Outline, Symbol, SymbolKind

Row = tuple[str, str, int]
"""(type or callable, name, line)."""

_HEADER = (
    "language", "file", "symbols", "found", "missing", "extra", "wrong scope", "reader erred", "ctags has of them", "ctags has, we lack",
)  # fmt: skip


@dataclass
class Compared:
    """One file. `ctags_rows` is None where ctags does not know the language."""

    language: str
    expected: Counter[Row]
    found: Counter[Row]
    misplaced: list[str]
    erred: int
    ctags_rows: set[Row] | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def missing(self) -> list[Row]:
        return sorted((self.expected - self.found).elements(), key=lambda row: row[2])

    @property
    def extra(self) -> list[Row]:
        return sorted((self.found - self.expected).elements(), key=lambda row: row[2])


def counted(symbol: Symbol) -> str:
    """`type`, `callable`, or '' for what the reader did not count."""
    if symbol.kind.is_callable:
        return "callable"
    return "type" if symbol.kind.is_type or symbol.kind is SymbolKind.TYPE else ""


def around(symbol: Symbol, symbols: Sequence[Symbol]) -> str:
    """The name of the innermost type or callable around it, a scope written in its own name included."""
    at = symbol.parent_index
    if symbol.scope != (symbols[at].qualified if at is not None else ""):
        return symbol.scope.rpartition(".")[2]
    while at is not None and not counted(symbols[at]):
        at = symbols[at].parent_index
    return symbols[at].name if at is not None else ""


def misplaced(made: Outline, scopes: dict[Row, list[str]]) -> list[str]:
    """The symbols both have but put into different scopes."""
    wrong = []
    for symbol in made.symbols:
        row = (counted(symbol), symbol.name, symbol.line)
        wanted = scopes.get(row)
        if wanted and (ours := around(symbol, made.symbols)) not in wanted:
            wrong.append(f"{symbol.name} {symbol.line}: in {ours or 'nothing'}, not {wanted[0] or 'nothing'}")
    return wrong


def corrected(entry: dict[str, Any]) -> list[list[Any]]:
    """The reader's list with what the reader was found wrong about put right."""
    rows = [*entry["symbols"]]
    for error in entry["erred"]:
        if error["wrote"]:
            rows.remove(error["wrote"])
        if error["right"]:
            rows.append(error["right"])
    return rows


def by_ctags(root: Path, path: str) -> set[Row] | None:
    """What ctags finds, if it knows the language."""
    if not ctags.accepts(path):
        return None
    tagged = ctags.tag(root, [path], seconds=60)
    if tagged.problem:
        sys.exit(f"ctags: {tagged.problem}")
    rows = set()
    for tag in tagged.tags.get(path, ()):
        sort = "callable" if tag.kind in kinds.CALLABLE else "type" if tag.kind in kinds.TYPES else ""
        if sort and not tag.name.startswith("__anon"):
            rows.add((sort, tag.name, tag.start_line))
    return rows


def compare(root: Path, entry: dict[str, Any]) -> Compared | str:
    """The comparison of one file, or why there is none."""
    path = f"{entry['repo']}/{entry['path']}"
    if not (root / path).is_file():
        return "not there"
    data = (root / path).read_bytes()
    if hashlib.sha256(data).hexdigest() != entry["sha256"]:
        return "another version"
    language = language_of(path, data)
    if language is None:
        return "of no known language"
    made = outline(data, language)
    scopes: dict[Row, list[str]] = {}
    for sort, name, line, scope in corrected(entry):
        scopes.setdefault((sort, name, line), []).append(scope)
    return Compared(
        language=language.name,
        expected=Counter({row: len(wanted) for row, wanted in scopes.items()}),
        found=Counter((sort, s.name, s.line) for s in made.symbols if (sort := counted(s))),
        misplaced=misplaced(made, scopes),
        erred=len(entry["erred"]),
        ctags_rows=by_ctags(root, path),
    )


def bare(name: str) -> str:
    """A name without what one engine writes before or behind it and another does not; a selector stays whole."""
    name = name.removeprefix("operator").strip().partition("{")[0]
    return name if name.endswith(":") else re.split(r"::|[.:]", name)[-1] or name


def places(rows: Iterable[Row]) -> set[tuple[str, int]]:
    """Rows by name and line alone: ctags's sorts of symbols are not ours."""
    return {(bare(name), line) for _, name, line in rows}


def row_of(entry: dict[str, Any], one: Compared) -> list[object]:
    theirs = one.ctags_rows
    wanted = places(one.expected)
    return [
        one.language,
        f"{entry['repo']}: {entry['path'].rpartition('/')[2]}",
        one.expected.total(),
        one.found.total(),
        len(one.missing),
        len(one.extra),
        len(one.misplaced),
        one.erred,
        "unknown to it" if not theirs else f"{len(wanted & places(theirs))} of {len(wanted)}",
        "" if not theirs else len((places(theirs) & wanted) - places(one.found)),
    ]


def told(entry: dict[str, Any], one: Compared) -> list[str]:
    """Every difference, in words."""
    lines = [f"missing {row}" for row in one.missing] + [f"extra {row}" for row in one.extra]
    lines += [f"scope {text}" for text in one.misplaced]
    if one.ctags_rows:
        theirs, wanted = places(one.ctags_rows), places(one.expected)
        lines += [f"ctags lacks {row}" for row in sorted(wanted - theirs)]
        lines += [f"ctags alone has {row}" for row in sorted(theirs - wanted)]
    return [f"{one.language} {entry['path']}: {line}" for line in lines]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--wrong", action="store_true", help="print every difference")
    options = parser.parse_args()
    entries = json.loads((HERE / "outlines_expected.json").read_text(encoding="utf-8"))
    rows, left_out, compared = [], [], []
    for entry in entries:
        one = compare(options.folder.resolve(), entry)
        if isinstance(one, str):
            left_out.append(f"{entry['repo']}/{entry['path']} ({one})")
            continue
        compared.append(one)
        rows.append(row_of(entry, one))
        if options.wrong:
            print(*told(entry, one), sep="\n")
    expected = sum(one.expected.total() for one in compared)
    missing, extra = (sum(len(one.missing) for one in compared), sum(len(one.extra) for one in compared))
    wrong = sum(len(one.misplaced) for one in compared)
    lines = [
        "# Outlines of real files",
        "",
        (
            f"{len(compared)} files in {len({one.language for one in compared})} languages, {expected} types and callables: "
            f"{missing} missing, {extra} extra, {wrong} in the wrong scope. Symbols compared by sort, name and line; "
            "`outlines.py` says what counts, `outlines_expected.json` where each file is from."
        ),
        "",
        *table(_HEADER, rows),
        "",
        "Not measured: " + (", ".join(left_out) or "none") + ".",
    ]
    notes = HERE / "outlines.notes.md"
    write("outlines.md", [*lines, "", notes.read_text(encoding="utf-8") if notes.exists() else ""])


if __name__ == "__main__":
    main()
