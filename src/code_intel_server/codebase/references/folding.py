"""Rows of tests and data behind those of the product, which one file of tests with forty rows would push off the page (SPEC 2)."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from code_intel_server.codebase.files.languages import LanguageKind, language_of
from code_intel_server.codebase.files.roles import Role, is_test_file, role
from code_intel_server.codebase.references.classify import PROSE, ReferenceRow
from code_intel_server.codebase.syntax.values import Use

_OF_A_TEST = 5
_PRODUCT = frozenset({Role.CODE, Role.MARKUP})
_NO_USE = PROSE | {Use.DEFINITION}


@dataclass(slots=True)
class RowFold:
    """Sets rows of `kinds` (of any, where empty) aside where `several` files hold the name, once the product uses it.

    What later rows are decides nothing.
    """

    kinds: frozenset[Use]
    several: bool
    folded: list[ReferenceRow] = field(default_factory=list)
    _used: bool = False

    def kept(self, rows: Sequence[ReferenceRow]) -> Sequence[ReferenceRow]:
        """The rows without all but the first of each file of tests and without those of data: whole files, in order."""
        crowding = [_crowds(row) and (not self.kinds or row.kind in self.kinds) for row in rows]
        self._used = self._used or any(
            role(row.path) in _PRODUCT and row.kind not in _NO_USE and not _is_data(row) for row in rows
        )
        if not (self.several and self._used and any(crowding)):
            return rows
        counts = Counter(row.path for row, crowds in zip(rows, crowding, strict=True) if crowds)
        seen: Counter[str] = Counter()
        kept = []
        for row, crowds in zip(rows, crowding, strict=True):
            seen[row.path] += crowds
            few = counts[row.path] <= _OF_A_TEST + 1  # to count one row takes as much as the row
            if crowds and (_is_data(row) or (seen[row.path] > _OF_A_TEST and not few)):
                self.folded.append(row)
            else:
                kept.append(row)
        return kept


def _crowds(row: ReferenceRow) -> bool:
    return is_test_file(row.path) or _is_data(row)


def _is_data(row: ReferenceRow) -> bool:
    """Whether a row only bears the name: in data of tests, in a drawing, as an attribute of markup."""
    language = language_of(row.path)
    if language is None:
        return False
    if language.kind is LanguageKind.CONFIG:
        return is_test_file(row.path)
    if row.kind is not Use.OTHER or language.name not in {"html", "xml"}:
        return False
    told = re.findall(rf"\b{re.escape(row.symbol)}\b(\s*=\s*[\"'])?", row.text)
    return row.path.endswith(".svg") or (bool(told) and all(told))
