"""Members and constants that follow each other in an outline, known by their names in one row instead of a row each."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from code_intel_server.codebase.answers import LookupAnswer
from code_intel_server.codebase.symbols.file_structure import OUTLINE_COLUMNS, SymbolRow

_FOLDED = frozenset({"member", "constant", "variable", "field", "property", "key", "selector", "id"})
_RUN = 3
"""So many one after the other are folded."""


def folded(outline: LookupAnswer[SymbolRow]) -> LookupAnswer[SymbolRow]:
    """The outline with all its names in fewer rows; a note says how many symbols there are."""
    rows = [row for run in _runs(outline.results) for row in _rows_of(run)]
    if len(rows) == len(outline.results):
        return outline
    note = f"{outline.total} symbols; members and constants that follow each other are named in one row"
    return replace(outline, results=tuple(rows), total=len(rows), notes=(*outline.notes, note))


def _runs(rows: Sequence[SymbolRow]) -> Iterator[list[SymbolRow]]:
    """The rows, those together that may be folded into one: neighbours in one scope with nothing in them."""
    run: list[SymbolRow] = []
    for number, row in enumerate(rows):
        holds_others = number + 1 < len(rows) and rows[number + 1].depth > row.depth
        folds = row.kind in _FOLDED and not holds_others
        if run and not (folds and (run[-1].scope, run[-1].depth) == (row.scope, row.depth)):
            yield run
            run = []
        run.append(row)
        if not folds:
            yield run
            run = []
    if run:
        yield run


def _rows_of(run: list[SymbolRow]) -> Iterator[SymbolRow]:
    """The run in as few rows as have room for its names."""
    if len(run) < _RUN:
        yield from run
        return
    piece: list[SymbolRow] = []
    for row in run:
        if piece and sum(len(one.symbol) + 2 for one in piece) + len(row.symbol) > OUTLINE_COLUMNS:
            yield _one(piece)
            piece = []
        piece.append(row)
    yield _one(piece)


def _one(rows: Sequence[SymbolRow]) -> SymbolRow:
    if len(rows) == 1:
        return rows[0]
    kinds = Counter(row.kind for row in rows)
    said = ", ".join(f"{count} {kind}{'s' * (count > 1)}" for kind, count in kinds.items())
    return replace(rows[0], end_line=rows[-1].end_line, signature=", ".join(row.symbol for row in rows), kind=said)
