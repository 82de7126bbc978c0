"""Skeletons: what was noted of a file, when it is believed, and where it is kept."""

import contextlib
import sqlite3
import time
from array import array
from bisect import bisect_left
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.codebase.lookup_project import explorer, write

from code_intel_server.codebase.explorer import Explorer
from code_intel_server.codebase.files.languages import LANGUAGES_BY_NAME
from code_intel_server.codebase.files.project import ProjectScope
from code_intel_server.codebase.symbols.store_file import SYMBOLS_SCHEMA
from code_intel_server.codebase.syntax import grammars, skeletons
from code_intel_server.codebase.syntax.skeletons import Skeleton, Skeletons
from code_intel_server.codebase.syntax.structure import Parsed

SHOP = "class Shop:\n" + "".join(
    f"    def method{n}(self):\n        return self.other{n}  # {'.' * 40}\n\n" for n in range(60)
)


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of each part that was parsed from now on."""
    sizes: list[int] = []
    parse_without = grammars.parse_without

    def counting(*given: Any) -> Parsed | None:
        found = parse_without(*given)
        if found is not None:
            sizes.append(sum(part.end_byte - part.start_byte for part in found.tree.included_ranges))
        return found

    monkeypatch.setattr(grammars, "parse_without", counting)
    return sizes


def places(found: Explorer, name: str) -> list[tuple[int, str, str]]:
    return [(row.start_line, row.kind.value, row.enclosing) for row in found.find_references(name).results]


def test_another_name_in_the_same_file_takes_only_the_part_that_holds_it(tmp_path: Path, parts: list[int]) -> None:
    found = explorer(tmp_path, {"shop.py": SHOP})
    assert places(found, "other3") == [(12, "attribute", "Shop.method3")]
    assert parts == []
    assert places(found, "other39") == [(120, "attribute", "Shop.method39")]
    assert len(parts) == 1
    assert 0 < parts[0] < 300


def test_a_changed_file_is_parsed_whole(tmp_path: Path, parts: list[int]) -> None:
    found = explorer(tmp_path, {"shop.py": SHOP})
    places(found, "other3")
    write(tmp_path, {"shop.py": "x = 1\n" + SHOP.replace("    def method0", "    async def method0")})
    assert places(found, "other3") == [(13, "attribute", "Shop.method3")]
    assert parts == []


def test_what_was_noted_outlives_the_process_where_the_file_was_tagged(tmp_path: Path, parts: list[int]) -> None:
    found = explorer(tmp_path, {"shop.py": SHOP})
    found.refresh_all()
    places(found, "other3")
    skeletons.of_project.cache_clear()
    assert places(Explorer(tmp_path), "other39") == [(120, "attribute", "Shop.method39")]
    assert len(parts) == 1


@pytest.mark.parametrize("junk", [b"", b"short", b"x" * 16, b"x" * 25])
def test_what_is_no_skeleton_is_not_believed(tmp_path: Path, parts: list[int], junk: bytes) -> None:
    found = explorer(tmp_path, {"shop.py": SHOP})
    found.refresh_all()
    found.cache.store.put_skeletons({"shop.py": junk})
    assert places(found, "other39") == [(120, "attribute", "Shop.method39")]
    assert parts == []


def test_a_skeleton_of_a_longer_text_is_not_believed(tmp_path: Path, parts: list[int]) -> None:
    found = explorer(tmp_path, {"shop.py": SHOP})
    places(found, "other3")
    known = skeletons.of_project(ProjectScope.at(tmp_path).root)
    noted = known.of("shop.py")
    assert noted is not None
    beyond = array("I", [12, len(SHOP) + 1]).tobytes()
    known.note("shop.py", noted._replace(spans=beyond))
    assert places(found, "other39") == [(120, "attribute", "Shop.method39")]
    assert parts == []


@given(spans=st.lists(st.integers(0, len(SHOP) + 5), max_size=30).filter(lambda spans: len(spans) % 2 == 0))
def test_whatever_stands_there_for_a_skeleton_what_is_left_out_lies_in_order_and_apart(spans: list[int]) -> None:
    gaps = skeletons.without(spans, [500, 900])
    assert all(begin < end for begin, end in gaps)
    assert all(end < begin for (_, end), (begin, _) in pairwise(gaps))
    assert all(bisect_left([500, 900], begin) == bisect_left([500, 900], end) for begin, end in gaps)
    language = LANGUAGES_BY_NAME["python"]
    skeleton = Skeleton(b"", array("I", spans).tobytes())
    assert skeletons._again(SHOP.encode(), language, [1], skeleton) is not None


def test_no_lookup_waits_for_another_process_that_writes_to_the_symbols(tmp_path: Path) -> None:
    found = explorer(tmp_path, {"shop.py": SHOP})
    found.refresh_all()
    store = ProjectScope.at(tmp_path).cache_dir / f"symbols-{SYMBOLS_SCHEMA}.sqlite3"
    with contextlib.closing(sqlite3.connect(store, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        assert places(found, "other39") == [(120, "attribute", "Shop.method39")]
        assert time.monotonic() - began < 5  # it was 10: as long as a tagging waits


def test_a_store_that_cannot_be_written_costs_nothing_else(tmp_path: Path) -> None:
    found = explorer(tmp_path, {"shop.py": SHOP})
    found.refresh_all()
    with contextlib.closing(
        sqlite3.connect(ProjectScope.at(tmp_path).cache_dir / f"symbols-{SYMBOLS_SCHEMA}.sqlite3")
    ) as connection:
        connection.execute("ALTER TABLE files RENAME COLUMN skeleton TO gone")
    assert places(found, "other39") == [(120, "attribute", "Shop.method39")]


def test_the_longest_unused_skeletons_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skeletons, "_MOST_BYTES", 48)
    known = Skeletons()
    for name in ("a", "b", "a", "c", "a", "d"):
        known.note(name, Skeleton(name.encode() * 16, bytes(16)))
    assert [known.of(name) is not None for name in "abcd"] == [True, False, True, True]
    monkeypatch.setattr(skeletons, "_MOST_FILES", 1)
    known.note("e", Skeleton(bytes(16), b""))
    assert [known.of(name) is not None for name in "abcde"] == [False] * 4 + [True]
