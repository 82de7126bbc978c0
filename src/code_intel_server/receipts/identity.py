"""Ids of tests that mean the same in every run: without roots, addresses and other accidents (SPEC 4, Receipts)."""

import re
from collections import Counter
from collections.abc import Iterable

_UUID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE)
_ADDRESS = re.compile(r"\b0x[0-9a-f]{4,}\b", re.IGNORECASE)
_DOCTEST_LINE = re.compile(r" \(line \d+\)$")
_NUMBER = re.compile(r"\d+")


def normal_id(id_: str, roots: Iterable[str] = ()) -> str:
    """An id without what differs between two runs of one test: checkout roots, addresses, UUIDs, doctests' line numbers."""
    for root in roots:
        id_ = id_.replace(root.rstrip("/") + "/", "").replace(root, ".")
    return _DOCTEST_LINE.sub("", _ADDRESS.sub("0x", _UUID.sub("uuid", id_)))


def distinct(ids: Iterable[str]) -> list[str]:
    """The ids with a number behind the second and later ones of a name, so that several tests of one name stay several."""
    seen: Counter[str] = Counter()
    named = []
    for id_ in ids:
        seen[id_] += 1
        named.append(id_ if seen[id_] == 1 else f"{id_} #{seen[id_]}")
    return named


def template(id_: str) -> str:
    """An id without parameters and numbers: what ids that differ from run to run have in common."""
    name, bracket, _ = id_.partition("[")
    return _NUMBER.sub("0", f"{name}[]" if bracket and id_.endswith("]") else id_)
